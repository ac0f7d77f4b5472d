# SPDX-License-Identifier: Apache-2.0
"""What the filters use of Nova is there, or the operator is told."""

import ast
import importlib.util
import logging
import subprocess
import sys
from unittest import mock

import fixtures
from nova import exception
from nova import objects
from nova.scheduler import manager
from oslo_upgradecheck import upgradecheck

from nfv_sched.checks import scheduler as scheduler_checks
from nfv_sched.filters import vswitch_port_limit
from nfv_sched.nova import interfaces
from nfv_sched.tests import base as tests_base
from nfv_sched.tests.unit import clouds
from nfv_sched.tests.unit.filters import base
from nfv_sched.tests.unit.filters import network

FEATURE = interfaces.Feature

# Prints the modules of a scheduler with all filters and weighers.
_LOADED = """
import sys
from nfv_sched import filters
from nfv_sched import weights
filters.all_filters()
weights.all_weighers()
print(*(name for name in sys.modules if name.startswith('nfv_sched')))
"""


def _uses(path: str) -> set[str]:
    """Return the names of Nova that a module uses, with their modules."""
    with open(path) as source:
        tree = ast.parse(source.read())
    imported = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (
                node.module or '').split('.')[0] == 'nova':
            for alias in node.names:
                imported[alias.asname or alias.name] = (
                    f'{node.module}.{alias.name}')
        elif isinstance(node, ast.Import):
            imported.update({
                'nova': 'nova' for alias in node.names
                if alias.name.split('.')[0] == 'nova'})

    def name_of(node):
        if isinstance(node, ast.Name):
            return imported.get(node.id)
        if isinstance(node, ast.Attribute):
            start = name_of(node.value)
            return start and f'{start}.{node.attr}'
        return None

    return {name for node in ast.walk(tree)
            if isinstance(node, ast.Attribute) and (name := name_of(node))}


def _is_module(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


class InterfacesTestCase(tests_base.TestCase):
    """A check of Nova after something of it has been taken away."""

    def setUp(self):
        super().setUp()
        interfaces.broken.cache_clear()
        self.addCleanup(interfaces.broken.cache_clear)
        self.log = self.useFixture(fixtures.FakeLogger(
            'nfv_sched.nova.interfaces', level=logging.ERROR))

    def take_schedule(self):
        """Give the scheduler's method other parameters."""
        # A fixture of fixtures would have any parameters.
        patch = mock.patch.object(
            manager.SchedulerManager, '_schedule',
            lambda self, context, spec_obj, summaries: [])
        patch.start()
        self.addCleanup(patch.stop)

    def take_labels(self):
        """Leave limits of a claim without labels, as before Nova 20."""
        class NUMATopologyLimits:
            cpu_allocation_ratio = ram_allocation_ratio = 1.0

        self.useFixture(fixtures.MonkeyPatch(
            'nova.objects.NUMATopologyLimits', NUMATopologyLimits))


class TestMissing(InterfacesTestCase):

    def test_nothing(self):
        self.assertEqual([], interfaces.missing())
        self.assertEqual(frozenset(), interfaces.broken())
        self.assertEqual('', self.log.output)

    def test_kinds(self):
        """Modules, names, parameters and fields; each by its name."""
        all_features = (FEATURE.LIMITS,)
        found = interfaces.missing([
            interfaces.Used('nova.none', 'x', all_features),
            interfaces.Used('nova.objects', 'None_', all_features),
            interfaces.Used('nova.objects', 'NUMACell', all_features,
                            ('cpuset', 'none')),
            interfaces.Used('nova.scheduler.utils', 'request_is_rebuild',
                            all_features, ('spec_obj', 'none')),
            interfaces.Used('nova.scheduler.host_manager', 'HostState',
                            all_features, ('numa_topology', 'none'))])
        self.assertEqual(
            ['nova.none.x', 'nova.objects.None_',
             'nova.objects.NUMACell: attribute none',
             'nova.scheduler.utils.request_is_rebuild: parameter none',
             'nova.scheduler.host_manager.HostState: attribute none'],
            [item.what.partition(' (')[0] for item in found])

    def test_all_uses_are_listed(self):
        """What a module of the scheduler uses of Nova is checked."""
        loaded = subprocess.run(
            [sys.executable, '-W', 'ignore', '-c', _LOADED], text=True,
            stdout=subprocess.PIPE, check=True).stdout.split()
        self.assertIn('nfv_sched.filters.network', loaded)
        listed = {f'{item.module}.{name}' for item in interfaces.INTERFACES
                  for name in item.name.split('|')}
        listed |= {name.rpartition('.')[0] for name in listed}
        listed.add('nova.conf.CONF')
        unlisted = set()
        for module in loaded:
            path = importlib.util.find_spec(module).origin
            for name in _uses(path):
                if name not in listed and not _is_module(name) and not any(
                        name.startswith(f'{known}.') and
                        not _is_module(known) for known in listed):
                    unlisted.add((module, name))
        # Of the validators, which nova-api loads.
        unlisted = {(module, name) for module, name in unlisted
                    if '.extra_specs.' not in name}
        self.assertEqual(set(), unlisted)

    def test_what_all_filters_need(self):
        """Nothing that is kept can be kept without it."""
        self.useFixture(fixtures.MonkeyPatch(
            'nfv_sched.nova.interfaces.INTERFACES', (interfaces.Used(
                'nova.objects', 'None_', (FEATURE.FILTERS,)),)))
        self.assertTrue(interfaces.is_broken(FEATURE.LIMITS))
        self.assertTrue(interfaces.is_broken(FEATURE.POLICIES))

    def test_one_error(self):
        self.take_schedule()
        for _ in range(2):
            vswitch_port_limit.VSwitchPortLimitFilter()
        self.assertEqual(1, len(self.log.output.splitlines()))
        self.assertEqual({FEATURE.LIMITS}, interfaces.broken())
        self.assertIn('provider_summaries', self.log.output)

    def test_check(self):
        self.assertEqual(upgradecheck.Code.SUCCESS,
                         scheduler_checks.nova_interfaces().code)
        self.take_schedule()
        result = scheduler_checks.nova_interfaces()
        self.assertEqual(upgradecheck.Code.FAILURE, result.code)
        self.assertIn('provider_summaries', result.details)


class TestLimits(InterfacesTestCase, network.NetworkTestCase):
    """Limits that cannot be kept accept no host."""

    def test_closed(self):
        ports = vswitch_port_limit.VSwitchPortLimitFilter()
        self.neutron()
        self.assertEqual(['host1'], self.passing(
            [self.host()], self.spec(), ports))
        self.take_schedule()
        interfaces.broken.cache_clear()
        self.assertRaises(
            exception.NoValidHost, self.passing, [self.host()], self.spec(),
            ports)


class TestPolicies(InterfacesTestCase, base.FilterTestCase):
    """Policies that cannot be kept accept no host; others do."""

    def test_closed(self):
        self.assertEqual(['one'], self.passing(
            [clouds.host('one')], clouds.spec('strict')))
        limits = objects.NUMATopologyLimits
        self.take_labels()
        interfaces.broken.cache_clear()
        self.assertEqual({FEATURE.POLICIES}, interfaces.broken())
        self.useFixture(fixtures.MonkeyPatch(
            'nova.objects.NUMATopologyLimits', limits))
        self.assertRaises(
            exception.NoValidHost, self.passing, [clouds.host('one')],
            clouds.spec('strict'))
        self.assertEqual(['one'], self.passing(
            [clouds.host('one')], clouds.spec()))
