# SPDX-License-Identifier: Apache-2.0

import types

from nfv_sched.ops.model.verdicts import placement
from nfv_sched.ops.simulator import placement as simulated
from nfv_sched.tests import base
from nfv_sched.tests import snapshots

PCI = 'CUSTOM_PCI_8086_1515'


class _Cloud:
    """Hosts in Placement only."""

    def __init__(self):
        self.placement = simulated.Placement()
        self.hosts = {}
        self.manager = types.SimpleNamespace(aggs_by_id={
            1: types.SimpleNamespace(uuid='agg-a', name='racks')})

    def add(self, name, devices=0, traits=(), **amounts):
        self.hosts[name] = types.SimpleNamespace(uuid=name)
        self.placement.add(snapshots.provider(
            name, traits, aggregates=('agg-a',) if 'A' in traits else (),
            **amounts))
        for number in range(devices):
            self.placement.add(snapshots.provider(
                f'{name}-{number}', parent=name, **{PCI: 1}))


def misses(answer):
    """What each host lacks, as texts."""
    return {name: tuple(lack.text for lack in lacks)
            for name, lacks in answer.lacks.items()}


def removed(answer):
    return {each.need.text: each.hosts for each in answer.stage.removed}


class PlacementTest(base.TimedTestCase):

    def setUp(self):
        super().setUp()
        self.cloud = _Cloud()

    def explain(self, *queries):
        return placement.explain(
            self.cloud, [simulated.Query.parse(query) for query in queries])

    def without(self, answer):
        return {each.need.text: (each.hosts_missing_it, each.hosts_without_it)
                for each in answer.stage.requirements}

    def test_one_requirement_dropped(self):
        self.cloud.add('few', VCPU=2, MEMORY_MB=100, traits='A')
        self.cloud.add('low', VCPU=8, MEMORY_MB=10, traits='A')
        self.cloud.add('bare', VCPU=8, MEMORY_MB=100)
        self.cloud.add('bad', VCPU=1, MEMORY_MB=1, traits='F')
        answer = self.explain(
            'resources=VCPU:4,MEMORY_MB:50&required=A,!F&member_of=in:agg-a')
        self.assertEqual({
            'VCPU=4': (2, 1), 'MEMORY_MB=50': (2, 1), 'trait A': (2, 0),
            'no trait F': (1, 0), 'aggregate racks': (2, 0)},
            self.without(answer))
        self.assertEqual(frozenset(), answer.found)
        self.assertEqual({
            'few': ('VCPU 4 needed, 2 free',),
            'low': ('MEMORY_MB 50 needed, 10 free',),
            'bare': ('no trait A', 'not in aggregate racks'),
            'bad': ('VCPU 4 needed, 1 free', 'MEMORY_MB 50 needed, 1 free',
                    'no trait A', 'has trait F', 'not in aggregate racks')},
            misses(answer))
        self.assertEqual({
            'VCPU=4': 2, 'MEMORY_MB=50': 2, 'trait A': 2, 'no trait F': 1,
            'aggregate racks': 2}, removed(answer))

    def test_removed_by_both_queries(self):
        """What the second query does not ask for removes no host."""
        self.cloud.add('old', VCPU=4, traits='T')
        self.cloud.add('new', PCPU=4, VCPU=0, traits='T')
        self.cloud.add('off', PCPU=4, VCPU=4, traits='F')
        answer = self.explain('resources=PCPU:4&required=!T,!F',
                              'resources=VCPU:4&required=!F')
        self.assertEqual({'old'}, answer.found)
        self.assertEqual({'no trait T': 1, 'no trait F': 1}, removed(answer))
        self.assertEqual((2, 2), self.without(answer)['no trait T'])

    def test_groups_with_other_forbidden_traits(self):
        self.cloud.add('a', 2, VCPU=1)
        answer = self.explain(
            f'resources=VCPU:1&resources_a={PCI}:1&resources_b={PCI}:1&'
            f'required_b=!T&resources_c={PCI}:1&required_c=T&'
            'group_policy=none')
        self.assertEqual([(0, 0), (0, 0), (0, 0), (1, 1)], list(
            self.without(answer).values()))

    def test_fallback(self):
        """A host that has VCPU only is found by the second query."""
        self.cloud.add('old', VCPU=4)
        self.cloud.add('new', PCPU=2, VCPU=2)
        self.cloud.add('mixed', PCPU=2, VCPU=3)
        answer = self.explain('resources=PCPU:2,VCPU:2', 'resources=VCPU:4')
        self.assertEqual({'old', 'new', 'mixed'}, set(answer.found))
        self.assertEqual({}, removed(answer))
        answer = self.explain('resources=PCPU:3,VCPU:2', 'resources=VCPU:5')
        self.assertEqual(frozenset(), answer.found)
        # As VCPU, both requirements are one amount: 5.
        self.assertEqual({'PCPU=3': (3, 3), 'VCPU=2': (0, 2)},
                         self.without(answer))
        self.assertEqual(('VCPU 5 needed, 4 free',), misses(answer)['old'])
        self.assertEqual({'PCPU=3': 2, 'VCPU=5': 1}, removed(answer))

    def test_devices(self):
        self.cloud.add('none', VCPU=1)
        self.cloud.add('one', 1, VCPU=1)
        self.cloud.add('two', 2, VCPU=1)
        answer = self.explain(
            f'resources=VCPU:1&resources_a={PCI}:1&resources_b={PCI}:1&'
            'group_policy=none')
        self.assertEqual({'two'}, set(answer.found))
        self.assertEqual((1, 3), self.without(answer)[f'2 times {PCI}=1'])
        self.assertEqual((f'{PCI}=1 on one provider needed, none has it',),
                         misses(answer)['none'])
        self.assertEqual((f'2 times {PCI}=1 needed, not all of it at once',),
                         misses(answer)['one'])

    def test_limit(self):
        for name in 'abc':
            self.cloud.add(name, VCPU=1)
        answer = self.explain('resources=VCPU:1&limit=2')
        self.assertEqual({'a', 'b'}, set(answer.found))
        self.assertEqual((2, 1), (
            answer.stage.max_placement_results, answer.stage.hosts_cut_off))
        self.assertEqual(['c'], list(answer.lacks))

    def test_tree(self):
        for name in 'ab':
            self.cloud.add(name, VCPU=1)
        answer = self.explain('resources=VCPU:1&in_tree=b')
        self.assertEqual((1, 2), self.without(answer)['host b'])
        self.assertEqual(('not host b',), misses(answer)['a'])
