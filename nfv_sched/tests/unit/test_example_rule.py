# SPDX-License-Identifier: Apache-2.0
"""A rule that another package brings; see the page "Add a rule".

It is in ``examples/nfvx``, and found there; its metadata with the entry points
are in a directory, as pip would write it.
"""

import itertools
import os
import pathlib
import tomllib

import fixtures
from nova import exception
from nova.scheduler import weights as nova_weights
from nova.virt import hardware
from stevedore import _cache
from stevedore import extension

import nfv_sched
from nfv_sched.base import extra_specs
from nfv_sched import filters
from nfv_sched.fit import rules
from nfv_sched.scheduler import validators
from nfv_sched.tests import strategies
from nfv_sched.tests.unit import clouds
from nfv_sched.tests.unit.filters import test_refusing
from nfv_sched import weights

EXAMPLE = pathlib.Path(nfv_sched.__file__).parents[1] / 'examples' / 'nfvx'
KEY = 'nfvx:even_nodes'
EVEN = 'EvenNodesFilter'
ALL = (*test_refusing.OURS, EVEN)


class Installed(fixtures.Fixture):
    """The package of the example is installed.

    :param more: group -> names and values of further entry points
    """

    def __init__(self, more=None):
        super().__init__()
        self._more = more or {}

    def _setUp(self):
        self.useFixture(fixtures.PythonPathEntry(str(EXAMPLE)))
        with open(EXAMPLE / 'pyproject.toml', 'rb') as source:
            groups = tomllib.load(source)['project']['entry-points']
        for group, members in self._more.items():
            groups[group].update(members)
        site = self.useFixture(fixtures.TempDir()).path
        info = os.path.join(site, 'nfvx-1.0.dist-info')
        os.mkdir(info)
        for name, lines in (
                ('METADATA', ['Name: nfvx', 'Version: 1.0']),
                ('entry_points.txt', itertools.chain.from_iterable(
                    [f'[{group}]', *(f'{name} = {value}' for name, value in
                                     members.items())]
                    for group, members in groups.items()))):
            with open(os.path.join(info, name), 'w') as target:
                target.write('\n'.join([*lines, '']))
        self.useFixture(fixtures.PythonPathEntry(site))
        self.addCleanup(self._forget)
        # stevedore remembers, in the process and in files.
        self.useFixture(fixtures.MockPatchObject(
            extension.ExtensionManager, 'ENTRY_POINT_CACHE', {}))
        self.useFixture(fixtures.MockPatchObject(
            _cache, '_c', _cache.Cache(os.path.join(site, 'cache'))))
        self.useFixture(fixtures.MockPatchObject(
            _cache, 'get_group_all', _cache._c.get_group_all))
        self._forget()

    @staticmethod
    def _forget():
        rules.classes.cache_clear()
        extra_specs.keys.cache_clear()


class ExampleTestCase(test_refusing.RefusingTestCase):

    def setUp(self):
        super().setUp()
        self.addCleanup(self.assertNotInstalled)
        self.useFixture(Installed())
        self.filters.update(
            (cls.__name__, cls()) for cls in filters.all_filters()
            if cls.__name__ == EVEN)
        self.weighers = [
            cls() for cls in weights.all_weighers() if cls.__name__ in (
                'VSwitchNUMAAffinityWeigher', 'EvenNodesWeigher')]

    def assertNotInstalled(self):
        """It is gone for the tests after this one."""
        self.assertNotIn('even_nodes', [cls.name for cls in rules.classes()])

    def spec(self, even='strict', vswitch=None, **shape):
        return clouds.spec(vswitch, extra_specs={KEY: even}, **shape)

    def claimed(self, state, spec):
        placed = hardware.numa_fit_instance_to_host(
            strategies.clone(state.numa_topology),
            spec.numa_topology.obj_clone(), provider_mapping=None,
            limits=state.limits['numa_topology'])
        return [cell.id for cell in placed.cells]

    def place(self, state, spec, enabled=ALL):
        if self.run_filters([state], spec, enabled):
            return self.claimed(state, spec)
        self.assertRefusedBy(EVEN, enabled)
        return None


class ExampleTest(ExampleTestCase):

    def test_entry_points(self):
        self.assertIn('even_nodes', [cls.name for cls in rules.classes()])
        self.assertIn(EVEN, self.filters)
        self.assertEqual(2, len(self.weighers))
        self.assertIn(KEY, extra_specs.keys())

    def test_claim_is_held_to_even_nodes(self):
        """By the labels of the nodes; Nova would choose others."""
        for nodes, free, cells, expected in (
                (2, {0: 2}, 1, [0]), (4, {0: 2, 2: 3}, 1, [2]),
                (4, {0: 2, 2: 3}, 2, [2, 0]), (3, {0: 1}, 1, [2]),
                (2, {0: 1}, 1, None), (4, {0: 2, 2: 1}, 2, None),
                (2, {}, 2, None)):
            made = dict(nodes=nodes, free=free, switch=None)
            stock = clouds.host(**made)
            self.run_filters([stock], clouds.spec(cells=cells), ALL)
            self.assertIn(
                1, [node % 2 for node in self.claimed(
                    stock, clouds.spec(cells=cells))])
            state, spec = clouds.host(**made), self.spec(cells=cells)
            self.assertEqual(
                expected, self.place(state, spec),
                f'{nodes} nodes, {free} free, {cells} wanted')
            if expected:
                self.assertEqual(
                    {f'nfv_node{node}' for node in expected},
                    state.limits['numa_topology'].network_metadata.physnets)

    def test_claim_that_cannot_be_held(self):
        made = dict(free={1: 2}, switch=None, node_labels=False)
        self.assertIsNone(self.place(clouds.host(**made), self.spec()))
        self.assertIn(f'{KEY}=strict: labels nfv_node0, nfv_node1, ... needed',
                      self.ours.lines[0])
        self.flags(strict_enforcement='predicted')
        self.assertEqual(
            [0], self.place(clouds.host(**made), self.spec()))
        self.assertIsNone(self.place(
            clouds.host(**{**made, 'free': {0: 2}}), self.spec()))

    def test_reasons(self):
        for made, shape, text in (
                (dict(free={0: 1}), {},
                 '2 dedicated CPUs on one NUMA node with an even number '
                 'needed, 1 free'),
                ({}, dict(cells=2),
                 '2 host NUMA nodes with an even number needed, has 1'),
                ({}, dict(numa=False), 'set hw:numa_nodes')):
            self.assertIsNone(
                self.place(clouds.host(**made), self.spec(**shape)))
            self.assertIn(f'{KEY}=strict: ', self.ours.lines[0])
            self.assertIn(text, self.ours.lines[0])

    def test_not_enabled(self):
        """The rule does not count, and its key is still known."""
        self.assertEqual(['host1'], self.run_filters(
            [clouds.host(free={0: 1})], self.spec(), test_refusing.OURS))

    def test_weighers(self):
        """Together with the vSwitch rule; what was told to claims, too."""
        def hosts():
            return [
                clouds.host('neither', nodes=3, switch=(2,), free={
                    0: 1, 2: 1}),
                clouds.host('even', nodes=3, switch=(1,), free={1: 1}),
                clouds.host('both', nodes=3, switch=(2,)),
                clouds.host('switch', nodes=3, switch=(1,), free={
                    0: 1, 2: 1})]

        for enabled in (ALL, test_refusing.OURS):
            states, spec = hosts(), self.spec('prefer', 'prefer')
            self.assertEqual(4, len(self.run_filters(states, spec, enabled)))
            handler = nova_weights.HostWeightHandler()
            weighed = {
                each.obj.host: each.weight
                for each in handler.get_weighed_objects(
                    self.weighers, states, spec)}
            self.assertEqual({'neither': 0.0, 'even': 1000.0, 'both': 2000.0,
                              'switch': 1000.0}, weighed)
            if EVEN in enabled:
                self.assertEqual(
                    {'neither': [1], 'even': [0], 'both': [2], 'switch': [1]},
                    {state.host: self.claimed(state, spec)
                     for state in states})

    def test_keys(self):
        """Those of the namespace are its own; ours are still looked at."""
        for key, passes in (
                ('nfvx:no_such_key', True), ('nfvx:even_node', True),
                ('nfv:no_such_key', False), ('nfv:even_nodes', False)):
            self.assertEqual(passes, bool(self.run_filters(
                [clouds.host()], clouds.spec(
                    extra_specs={key: 'strict', KEY: 'strict'}), ALL)), key)
        self.assertEqual([], self.run_filters(
            [clouds.host()], self.spec('yes'), ALL))
        self.assertIn(f"{KEY}: 'yes' is not one of strict, prefer",
                      self.ours.lines[0])

    def test_validators(self):
        known = {
            validator.name: validator for ext in extension.ExtensionManager(
                'nova.api.extra_spec_validators')
            if ext.name in ('nfvx', 'nfv_sched')
            for validator in ext.plugin.register()}
        self.assertEqual(1 + len(validators.register()), len(known))
        known[KEY].validate(KEY, 'strict')
        self.assertRaises(exception.ValidationError,
                          known[KEY].validate, KEY, 'yes')
