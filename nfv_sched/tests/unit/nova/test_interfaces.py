# SPDX-License-Identifier: Apache-2.0
"""What the filters use of Nova is there, or the operator is told."""

import ast
import functools
import importlib.util
import logging
import pathlib
from unittest import mock

import fixtures
from keystoneauth1 import loading as ks_loading
from nova import exception
from nova import objects
from nova.scheduler.client import report
from nova.scheduler import manager
from openstack import proxy
from oslo_upgradecheck import upgradecheck
import urllib3

from nfv_sched.checks import scheduler as scheduler_checks
from nfv_sched.filters import vswitch_port_limit
from nfv_sched.nova import features
from nfv_sched.nova import interfaces
from nfv_sched.tests import base as tests_base
from nfv_sched.tests.unit import clouds
from nfv_sched.tests.unit.filters import base
from nfv_sched.tests.unit.filters import network
from nfv_sched.tests.unit import test_house

FEATURE = features.Feature

_LIBRARIES = ('keystoneauth1', 'nova', 'openstack', 'requests', 'urllib3')


def _uses(path: pathlib.Path) -> set[str]:
    """Return the names of Nova and the libraries of HTTP in a module."""
    tree = test_house.tree(path)
    imported = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (
                node.module or '').split('.')[0] in _LIBRARIES:
            for alias in node.names:
                imported[alias.asname or alias.name] = (
                    f'{node.module}.{alias.name}')
        elif isinstance(node, ast.Import):
            names = {alias.name.split('.')[0] for alias in node.names}
            imported.update({
                name: name for name in names.intersection(_LIBRARIES)})

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
        self.useFixture(fixtures.MockPatchObject(features, 'LACKING', set()))
        self.log = self.useFixture(fixtures.FakeLogger(
            'nfv_sched.nova.features', level=logging.ERROR))

    def lacking(self):
        return {feature for item in interfaces.missing()
                for feature in item.features}

    def note(self):
        """What the first filter does with a release that is not known."""
        self.useFixture(fixtures.MockPatchObject(
            features, 'release', lambda: max(features.RELEASES) + 1))
        vswitch_port_limit.VSwitchPortLimitFilter()

    def take_query(self):
        # A fixture of fixtures would have any parameters.
        patch = mock.patch.object(
            report.SchedulerReportClient, 'get_allocation_candidates',
            lambda self, context, request: None)
        patch.start()
        self.addCleanup(patch.stop)

    def take_labels(self):
        """Leave limits of a claim without labels, as before Nova 20."""
        class NUMATopologyLimits:
            cpu_allocation_ratio = ram_allocation_ratio = 1.0

        self.useFixture(fixtures.MonkeyPatch(
            'nova.objects.NUMATopologyLimits', NUMATopologyLimits))


class TestMissing(InterfacesTestCase):

    def lost(self, owner, name, value=None):
        """Return what is missing after a change; None deletes the name."""
        before = vars(owner)[name]
        if value is None:
            delattr(owner, name)
        else:
            setattr(owner, name, value)
        self.addCleanup(setattr, owner, name, before)
        found = self.lacking()
        setattr(owner, name, before)
        self.assertEqual(set(), self.lacking())
        return found

    def test_nothing(self):
        self.assertEqual([], interfaces.missing())
        self.note()
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
        """What the scheduler uses of Nova and of libraries is checked."""
        loaded = test_house.loaded()
        self.assertIn(test_house.ROOT / 'filters/network.py', loaded)
        loaded.append(test_house.ROOT / 'ledger/client.py')
        listed = {f'{item.module}.{name}' for item in interfaces.INTERFACES
                  for name in item.name.split('|')}
        listed |= {name.rpartition('.')[0] for name in listed}
        listed.add('nova.conf.CONF')
        unlisted = set()
        for path in loaded:
            for name in _uses(path):
                if name not in listed and not _is_module(name) and not any(
                        name.startswith(f'{known}.') and
                        not _is_module(known) for known in listed):
                    unlisted.add((path, name))
        # Of the validators, which nova-api loads.
        unlisted = {(path, name) for path, name in unlisted
                    if '.extra_specs.' not in name}
        self.assertEqual(set(), unlisted)

    def test_release(self):
        """That of the newest Nova if the version does not tell."""
        self.addCleanup(features.release.cache_clear)
        newest = max(features.RELEASES)
        for version, release in (('31.2.0', 31), ('35.0.0.0rc1', 35),
                                 ('0.0.0', newest), ('master', newest)):
            features.release.cache_clear()
            self.useFixture(fixtures.MonkeyPatch(
                'importlib.metadata.version', lambda name: version))
            self.assertEqual(release, features.release(), version)

    def test_lost(self):
        """Also a module, and a method with any parameters or with fewer."""
        for owner, name, value, expected in (
                (report.SchedulerReportClient, 'get_allocation_candidates',
                 lambda self, *args, **kwargs: None,
                 {FEATURE.JOURNAL, FEATURE.LIMITS}),
                (manager, 'report', None, {FEATURE.JOURNAL, FEATURE.LIMITS}),
                (ks_loading, 'load_adapter_from_conf_options', None,
                 {FEATURE.LEDGER}),
                (proxy.Proxy, 'request',
                 lambda self, url, method, params=None, timeout=None,
                 headers=None: None, {FEATURE.LIMITS})):
            self.assertEqual(expected, self.lost(owner, name, value), name)

    def test_wrapped(self):
        """Another plugin may have wrapped what is wrapped here."""
        method = report.SchedulerReportClient.get_allocation_candidates

        @functools.wraps(method)
        def query(*args, **kwargs):
            return method(*args, **kwargs)

        self.useFixture(fixtures.MonkeyPatch(
            'nova.scheduler.client.report.SchedulerReportClient.'
            'get_allocation_candidates', query))
        self.assertEqual([], interfaces.missing())

    def test_library(self):
        """One that reads Neutron's answers in another way."""
        self.useFixture(fixtures.MockPatchObject(
            urllib3.HTTPResponse, 'read', lambda self, amt=None: b''))
        self.assertIn(
            'urllib3.HTTPResponse.read: parameter decode_content',
            [item.what for item in interfaces.missing()])

    def test_attributes(self):
        for cls, name, feature in (
            (objects.CellMapping, 'is_cell0', FEATURE.LIMITS),
            (objects.InstancePCIRequest, 'alias_name', FEATURE.ALIASES),
            (objects.InstancePCIRequest, 'count', FEATURE.POLICIES),
            (objects.Instance, 'task_state', FEATURE.LIVE_MIGRATION),
            (objects.InstanceMapping, 'queued_for_delete', FEATURE.LIMITS),
            (objects.Flavor, 'extra_specs', FEATURE.EXTRA_SPECS),
        ):
            self.assertIn(feature, self.lost(cls, name), name)

    def test_what_all_filters_need(self):
        """Nothing that is kept can be kept without it."""
        self.useFixture(fixtures.MonkeyPatch(
            'nfv_sched.nova.interfaces.INTERFACES', (interfaces.Used(
                'nova.objects', 'None_', (FEATURE.FILTERS,)),)))
        self.assertFalse(features.is_broken(FEATURE.LIMITS))
        self.note()
        self.assertTrue(features.is_broken(FEATURE.LIMITS))
        self.assertTrue(features.is_broken(FEATURE.POLICIES))

    def test_one_error(self):
        self.take_query()
        vswitch_port_limit.VSwitchPortLimitFilter()
        self.assertEqual('', self.log.output)  # a release that is known
        for _ in range(2):
            self.note()
        self.assertEqual(1, len(self.log.output.splitlines()))
        self.assertIn('parameter resources', self.log.output)

    def test_check(self):
        self.assertEqual(upgradecheck.Code.SUCCESS,
                         scheduler_checks.nova_interfaces().code)
        self.take_query()
        result = scheduler_checks.nova_interfaces()
        self.assertEqual(upgradecheck.Code.FAILURE, result.code)
        self.assertIn('parameter resources', result.details)


class TestLimits(InterfacesTestCase, network.NetworkTestCase):
    """Limits that cannot be kept accept no host."""

    def test_closed(self):
        ports = vswitch_port_limit.VSwitchPortLimitFilter()
        self.neutron()
        self.assertEqual(['host1'], self.passing(
            [self.host()], self.spec(), ports))
        self.take_query()
        self.note()
        self.assertRaises(
            exception.NoValidHost, self.passing, [self.host()], self.spec(),
            ports)


class TestFields(InterfacesTestCase, base.FilterTestCase):
    """Versioned objects that keep their fields under other names."""

    def setUp(self):
        super().setUp()
        self.useFixture(fixtures.MonkeyPatch(
            'nfv_sched.nova.fields.PREFIX', '_other_'))

    def test_closed(self):
        """Any request may have a policy."""
        self.assertEqual({FEATURE.EXTRA_SPECS}, self.lacking())
        self.note()
        self.assertEqual(1, len(self.log.output.splitlines()))
        for filters in ([self.topology], [self.vswitch]):
            for policy in ('strict', None):
                self.assertRaises(
                    exception.NoValidHost, self.passing,
                    [clouds.host('one')], clouds.spec(policy), filters)

    def test_others(self):
        """What all features need does not matter without a policy."""
        with mock.patch.object(features, 'LACKING', {FEATURE.FILTERS}):
            for filters in ([self.topology], [self.vswitch]):
                self.assertEqual(['one'], self.passing(
                    [clouds.host('one')], clouds.spec(), filters))


class TestPolicies(InterfacesTestCase, base.FilterTestCase):
    """Policies that cannot be kept accept no host; others do."""

    def test_closed(self):
        self.assertEqual(['one'], self.passing(
            [clouds.host('one')], clouds.spec('strict')))
        limits = objects.NUMATopologyLimits
        self.take_labels()
        self.assertEqual({FEATURE.POLICIES}, self.lacking())
        self.note()
        self.useFixture(fixtures.MonkeyPatch(
            'nova.objects.NUMATopologyLimits', limits))
        self.assertRaises(
            exception.NoValidHost, self.passing, [clouds.host('one')],
            clouds.spec('strict'))
        self.assertEqual(['one'], self.passing(
            [clouds.host('one')], clouds.spec()))

    def test_prediction(self):
        """It matters where strict policies are content with it."""
        self.useFixture(fixtures.MonkeyPatch(
            'nova.compute.claims.Claim._test_numa_topology',
            fixtures.MonkeyPatch.delete))
        self.assertEqual({FEATURE.PREDICTION}, self.lacking())
        self.note()

        def passing(policy):
            return [self.passing([clouds.host('one')], clouds.spec(policy),
                                 filters) for filters in (
                [self.topology], [self.vswitch],
                [self.topology, self.vswitch])]

        self.assertEqual([['one']] * 3, passing('strict'))
        self.flags(strict_enforcement='predicted')
        self.assertEqual([['one']] * 3, passing('prefer'))
        self.assertEqual([['one']] * 3, passing(None))
        for filters in ([self.topology], [self.vswitch]):
            self.assertRaises(
                exception.NoValidHost, self.passing, [clouds.host('one')],
                clouds.spec('strict'), filters)
