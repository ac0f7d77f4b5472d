# SPDX-License-Identifier: Apache-2.0
"""Moves that empty hosts, or spread servers over NUMA nodes."""

import dataclasses

from nfv_sched.ops.answers.plans import defrag
from nfv_sched.ops.answers.plans import document
from nfv_sched.ops.answers.plans import rearrange
from nfv_sched.ops.answers.plans import rendering
from nfv_sched.ops.cloud import snapshot
from nfv_sched.tests import base
from nfv_sched.tests import filled
from nfv_sched.tests.unit.ops.answers.plans import running as running_servers
from nfv_sched.tests.unit.ops.answers.plans import test_defrag

ONE, TWO, THREE = test_defrag.ONE, test_defrag.TWO, test_defrag.THREE
running, cloud = test_defrag.running, test_defrag.cloud


def plan(found, spread, max_moves=10, avoid=(), failed=(), **options):
    return rearrange.plan(found, document.RearrangeOptions(
        spread=spread, max_moves=max_moves, avoid=avoid, **options),
        failed=failed)


class RearrangeTestCase(base.TestCase):

    def assertPlan(self, moves, figures, plan):
        """Compare a plan.

        :param moves: (server, destination) of each, in any order
        :param figures: before, after, bound, and whether it is enough
        """
        self.assertEqual(sorted(moves), sorted(
            (move.server, move.destination) for move in plan.moves))
        self.assertEqual(figures, (plan.before, plan.after, plan.bound,
                                   plan.enough))


class ConsolidateTest(RearrangeTestCase):
    """The last host is empty already."""

    def setUp(self):
        super().setUp()
        self.servers = [
            running('a', ONE, 0, (1, 5)), running('b', TWO, 0, (1, 5)),
            running('c', TWO, 0, (2, 6))]
        self.found = cloud([ONE, TWO, THREE], self.servers)

    def test_fewest_moves(self):
        found = plan(self.found, False)
        self.assertPlan([('a', 'two')], (1, 2, 2, True), found)
        self.assertTrue(found.exact)

    def test_failed_moves_and_hosts(self):
        """Of three hosts one at least stays in use."""
        a, b = self.servers[:2]
        self.assertPlan([('b', 'one'), ('c', 'one')], (1, 2, 2, False), plan(
            self.found, False, hosts=2, failed=[(a.uuid, 'two')]))
        self.assertPlan([(each, 'three') for each in 'abc'], (1, 2, 2, True),
                        plan(self.found, False, hosts=1, failed=[
                            (a.uuid, 'two'), (b.uuid, 'one')]))

    def test_again(self):
        """Hosts that are empty already are not to be emptied once more."""
        found = plan(self.found, False, hosts=1)
        self.assertEqual(found.options, rearrange.options_again(
            found, self.found))
        again = rearrange.options_again(found, cloud(
            [ONE, TWO, THREE], self.servers[1:]))
        self.assertEqual(0, again.hosts)
        self.assertPlan([], (1, 1, None, True), rearrange.plan(
            self.found, again))

    def test_none_of_a_host_that_stays_in_use(self):
        """A server that cannot be moved keeps its host in use."""
        locked = dataclasses.replace(self.servers[0], locked=True)
        found = plan(cloud([ONE, TWO, THREE], [
            locked, *self.servers[1:]]), False)
        self.assertPlan([('b', 'one'), ('c', 'one')], (1, 2, 2, True), found)
        self.assertEqual(['a'], [each.server for each in found.not_movable])

    def test_avoid(self):
        for pattern in ('b', 'tw?', self.servers[1].uuid):
            self.assertPlan(
                [] if pattern == 'tw?' else [('a', 'two')],
                (1, 1, 1, True) if pattern == 'tw?' else (1, 2, 2, True),
                plan(self.found, False, avoid=(pattern,)))

    def test_no_room(self):
        found = cloud([ONE, TWO], [
            running('a', ONE, 0, (1, 5)),
            running('b', TWO, 0, (1, 5, 2, 6, 3, 7))])
        for hosts in (None, 1):
            none = plan(found, False, hosts=hosts)
            self.assertPlan([], (0, 0, 0, hosts is None), none)
            self.assertTrue(none.exact)

    def test_anti_affinity(self):
        members = [each.uuid for each in self.servers[:2]]
        found = dataclasses.replace(self.found, groups=(snapshot.Group(
            uuid=test_defrag.GROUP, name='group', policy='anti-affinity',
            members=tuple(members)),))
        self.assertPlan([], (1, 1, 1, True), plan(found, False))


class SpreadTest(RearrangeTestCase):
    """Each host has one NUMA node with six CPUs for pinned servers."""

    def setUp(self):
        super().setUp()
        self.found = cloud([ONE, TWO, THREE], [
            running('a', ONE, 0, (1, 5)), running('b', ONE, 0, (2, 6)),
            running('c', ONE, 0, (3, 7)), running('d', TWO, 0, (1, 5))])

    def test_within_one_server(self):
        """That is two CPUs; 2.7 of each node are in use on average."""
        found = plan(self.found, True)
        self.assertEqual((3, 0, 0, True), (found.before, found.after,
                                           found.bound, found.enough))
        self.assertEqual([('one', 'three')], [
            (move.source, move.destination) for move in found.moves])

    def test_nothing_can_move(self):
        self.assertPlan([], (3, 3, 3, False), plan(dataclasses.replace(
            self.found, servers=tuple([dataclasses.replace(each, locked=True)
                                       for each in self.found.servers])),
            True))

    def test_empty_plan_once_even(self):
        self.assertPlan([], (0, 0, None, True), plan(cloud(
            [ONE, TWO], [running('a', ONE, 0, (1, 5)),
                         running('b', TWO, 0, (1, 5))]), True, points=1))

    def test_points(self):
        """There are to be 3 CPUs in use of each node; 4, 2 and 2 can be."""
        found = plan(self.found, True, points=5)
        self.assertEqual((7, 3, 3, False), (found.before, found.after,
                                            found.bound, found.enough))
        self.assertEqual(1, len(found.moves))

    def test_least_memory(self):
        large = running('large', ONE, 0, (1, 5))
        large = dataclasses.replace(large, nodes=(dataclasses.replace(
            large.nodes[0], memory=4096),), flavor=dataclasses.replace(
                large.flavor, name='large', memory=4096), allocations={
                    ONE.uuid: {'PCPU': 2, 'MEMORY_MB': 4096}})
        self.assertPlan([('small', 'two')], (4, 0, 0, True), plan(cloud(
            [ONE, TWO], [large, running('small', ONE, 0, (2, 6))]), True,
            points=1))

    def test_disabled_host(self):
        """It gets no servers, and its nodes do not count."""
        for state in ('enabled', 'up'):
            self.assertPlan([], (2, 2, 2, False), plan(cloud(
                [ONE, TWO, dataclasses.replace(THREE, **{state: False})],
                [running('a', ONE, 0, (1, 5, 2, 6)),
                 running('b', TWO, 0, (1, 5))]), True, points=1))

    def test_unlike_cells(self):
        """The bound is not known: either cell may be on a node."""
        one, two = (filled.host(name, 4, 2) for name in ('one', 'two'))
        unlike = dataclasses.replace(
            filled.flavor(6, 'unlike'), extra_specs={
                **filled.PINNED, 'hw:numa_nodes': '2',
                'hw:numa_cpus.0': '0,1', 'hw:numa_cpus.1': '2-5',
                'hw:numa_mem.0': '2048', 'hw:numa_mem.1': '4096'})
        first, second = (sorted(node.dedicated) for node in one.nodes)
        nodes = tuple([
            each for node, cpus in ((0, first[:2]), (1, second[:4]))
            for each in running('x', one, node, cpus).nodes])
        nodes = (nodes[0], dataclasses.replace(
            nodes[1], pins=dict(enumerate(second[:4], 2)),
            dedicated=frozenset(range(2, 6))))
        found = cloud([one, two], [
            running('s', one, 0, (*first[:2], *second[:4]), flavor=unlike,
                    nodes=nodes),
            running('t', one, 0, first[2:6]),
            running('u', one, 1, second[4:6]),
            running('v', two, 0, first[:2])])
        found = plan(dataclasses.replace(found, flavors=(
            *found.flavors, unlike)), True, max_moves=1, points=9)
        self.assertEqual((8, 1, None), (
            found.before, found.after, found.bound))


class DevicesTest(running_servers.RunningTestCase):
    """Each host has one VF, on one of its two NUMA nodes."""

    HEAD = running_servers.HEAD.replace(
        'type: VF, node', 'type: VF, live_migratable: true, node').replace(
            '{type: VF}', '{type: VF, live_migratable: true}')

    def test_none_is_free(self):
        self.assertBound(2, 'a vf one', 'b p4 two')
        self.assertBound(1, 'a vf one', 'b vf two')

    def test_other_node_is_full(self):
        """The server has to be on the NUMA node of the VF."""
        self.assertBound(2, 'a vf one', 'b strict two', 'c p4 two')
        self.assertBound(1, 'a vf one', 'b strict two', 'c strict two')

    def test_fewer_than_asked_for(self):
        """With PCI in Placement, claims may take fewer devices."""
        vfs = 'type: VF, live_migratable: true'
        found = self.running(steps='[]', head=f'''
pci_in_placement: true
hosts:
  - {{name: one, cores: 4, memory: 8 GiB, platform_cores: 0, vswitch_cores: 0,
     shared_cores_per_node: 0, pci_devices: [
     {{{vfs}, node: 0, count: 3}}, {{{vfs}, node: 1, count: 4}},
     {{{vfs}, node: 1, count: 3}}]}}
pci_aliases: {{nic: {{{vfs}, numa_policy: required}}}}
flavors:
  two: {{memory: 256 MiB, vcpus: 1, extra_specs: {{
     hw:cpu_policy: dedicated, 'pci_passthrough:alias': 'nic:2'}}}}
''')
        plan = defrag.plan(found, found.flavors[0], 15)
        self.assertLessEqual(plan.fits_before, plan.bound)
        self.assertEqual(5, plan.fits_before)

    def assertBound(self, bound, *servers):
        """Assert what no moves exceed; the third host is empty already."""
        found = plan(self.running(*servers, head=self.HEAD), False)
        self.assertEqual((bound, bound), (found.after, found.bound))


class HeadlineTest(base.TestCase):

    def test_headlines(self):
        servers = [running(name, host, 0, (1, 5)) for name, host in (
            ('a', ONE), ('b', TWO), ('c', THREE))]
        found = cloud([ONE, TWO, THREE], servers)
        for options, text in (
                ({'hosts': 1}, '0 hosts without servers now, 1 host after 1 '
                 'migration with 2048 MiB of memory; no fewer moves do.'),
                ({}, '0 hosts without servers now, 2 hosts after 2 migrations '
                 'with 4096 MiB of memory; no plan of 10 moves does better.')):
            self.assertEqual(text, rendering.rearrange_text(
                plan(found, False, **options))[0])
        self.assertEqual(
            '3 hosts without servers: no move is needed.',
            rendering.rearrange_text(plan(
                cloud([ONE, TWO, THREE], []), False))[0])
