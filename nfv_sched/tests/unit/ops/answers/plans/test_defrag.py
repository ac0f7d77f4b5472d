# SPDX-License-Identifier: Apache-2.0
"""Moves that make room for more guests of a flavor."""

import dataclasses
import uuid

from nfv_sched.ops.answers.plans import defrag
from nfv_sched.ops.answers.plans import document
from nfv_sched.ops.answers.plans import rendering
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.model import arrangements
from nfv_sched.ops.model import movable
from nfv_sched.ops.model import trial
from nfv_sched.ops.simulator import servers
from nfv_sched.ops.simulator import start
from nfv_sched.tests import base
from nfv_sched.tests import filled

GROUP = 'c0000000-0000-4000-8000-000000000000'


def running(name, host, node, cpus, **fields):
    """Return a server pinned to host CPUs of a node of a ``filled`` host."""
    return snapshot.Server(**{**dict(
        uuid=str(uuid.uuid5(uuid.NAMESPACE_URL, name)),
        name=name, host=host.name, cell='cell1', ports=(),
        project='11111111111111111111111111111111',
        flavor=filled.flavor(len(cpus)), nodes=(snapshot.GuestNode(
            host_node=node, pins=dict(enumerate(cpus)),
            dedicated=frozenset(range(len(cpus))),
            memory=1024 * len(cpus), page_size=1048576,
            cpu_policy='dedicated'),),
        allocations={host.uuid: {'PCPU': len(cpus),
                                 'MEMORY_MB': 1024 * len(cpus)}}), **fields})


def occupied(host, here):
    parts = [part for server in here for part in server.nodes]
    root, = host.providers
    return dataclasses.replace(
        host, stats={'num_instances': str(len(here))},
        memory_used=sum(part.memory for part in parts),
        nodes=tuple(_used(node, [
            part for part in parts if part.host_node == node.number])
            for node in host.nodes),
        providers=(dataclasses.replace(root, inventories={
            name: dataclasses.replace(inventory, used=sum(
                server.allocations[host.uuid].get(name, 0)
                for server in here))
            for name, inventory in root.inventories.items()}),))


def _used(node, parts):
    memory = sum(part.memory for part in parts)
    small, huge = node.pages
    return dataclasses.replace(
        node, pinned=frozenset(cpu for part in parts
                               for cpu in part.pins.values()),
        memory_used=memory, pages=(
            small, dataclasses.replace(huge, used=memory // 1024)))


def cloud(hosts, found, **fields):
    return filled.cloud(
        [occupied(host, [server for server in found
                         if server.host == host.name]) for host in hosts],
        [filled.flavor(vcpus) for vcpus in (2, 4, 6)],
        servers=tuple(found), **fields)


# Each host has a node with the CPUs 1 to 3 and 5 to 7 for pinned guests.
ONE, TWO, THREE = (filled.host(name, 4, 1) for name in ('one', 'two',
                                                        'three'))


class DefragTest(base.TestCase):

    def plan(self, found, vcpus=6, count=1, **kwargs):
        self.found = defrag.plan(
            found, filled.flavor(vcpus), count,
            document.DefragOptions(**kwargs))
        return self.found

    def assertMoves(self, expected, plan):
        self.assertEqual(expected, [
            (move.server, move.source, move.destination)
            for move in plan.moves])

    def test_none_needed(self):
        plan = self.plan(cloud([ONE], []))
        self.assertMoves([], plan)
        self.assertEqual((1, 1, True, True),
                         (plan.fits_before, plan.fits_after, plan.enough,
                          plan.exact))

    def test_least_memory(self):
        large = running('large', ONE, 0, (1, 5, 2, 6))
        plan = self.plan(cloud([ONE, TWO, THREE], [
            large, running('small', TWO, 0, (1, 5)),
            running('other', THREE, 0, (1, 5, 2, 6))]))
        self.assertEqual(['small'], [move.server for move in plan.moves])

    def test_max_moves(self):
        found = cloud([ONE, TWO], [
            running('a', ONE, 0, (1, 5)), running('b', ONE, 0, (2, 6)),
            running('c', TWO, 0, (1, 5))])
        self.assertMoves([('c', 'two', 'one')],
                         self.plan(found, max_moves=1))

    def test_more_moves_than_servers(self):
        """They take neither memory nor time: no more servers can leave."""
        found = cloud([ONE, TWO], [
            running('a', ONE, 0, (1, 5)), running('b', TWO, 0, (1, 5))])
        self.assertEqual(
            self.plan(found, count=2).moves,
            self.plan(found, count=2, max_moves=10 ** 9).moves)

    def random_cloud(self, seed):
        flavors = [filled.flavor(vcpus) for vcpus in range(1, 7)]
        return filled.filled(filled.cloud(
            [filled.host(f'host-{number}', 5, 2) for number in range(4)],
            flavors), .7, seed, flavors[:4], 12)

    def test_proof(self):
        """The relaxed program would allow 6."""
        plan = self.plan(self.random_cloud(2), 6, 50, max_moves=2)
        self.assertEqual((4, 5, 5), (
            plan.fits_before, plan.fits_after, plan.bound))

    def test_by_way_of_a_third_host(self):
        """Without it 7 fit."""
        plan = self.plan(self.random_cloud(770), 4, 50)
        self.assertEqual((8, 8), (plan.fits_after, plan.bound))
        self.assertLess(len({move.server_id for move in plan.moves}),
                        len(plan.moves))

    def test_copied_by_way_of_a_third_host(self):
        """Its allocations are known by the host where it was at first."""
        one = running('a', ONE, 0, (1, 5))
        found = cloud([ONE, TWO, THREE], [dataclasses.replace(
            one, allocations={ONE.uuid: {'DISK_GB': 20}})])
        with start.started(found) as state:
            known = arrangements.Positions(found, state)
            for source, name in (('one', 'three'), ('three', 'two')):
                self.assertEqual(20480, trial.move_of(
                    known, one.uuid, source, name,
                    movable.LIVE).copied.disk_mib)

    def test_more_cells_than_can_be_tried(self):
        found = cloud([filled.host('wide', 2, 16)], [])
        plan = defrag.plan(found, filled.flavor(
            16, hw__numa_nodes='8'), 50)
        self.assertEqual((), plan.moves)
        self.assertIsNone(plan.bound)

    def test_avoided(self):
        found = cloud([ONE, TWO], [
            running('a', ONE, 0, (1, 5)), running('b', TWO, 0, (1, 5))])
        self.assertMoves([('b', 'two', 'one')],
                         self.plan(found, avoid=['a*']))
        self.assertEqual(
            {movable.obstacle(movable.ObstacleKind.AVOIDED)},
            {each.obstacle for each in self.plan(
                found, avoid=['a*']).not_movable})
        plan = self.plan(found, avoid=['one'])
        self.assertMoves([], plan)
        self.assertFalse(plan.enough)

    def test_no_destination(self):
        plan = self.plan(cloud([ONE, TWO], [
            running('a', ONE, 0, (1, 5, 2, 6)),
            running('b', TWO, 0, (1, 5, 2, 6))]))
        self.assertMoves([], plan)
        self.assertEqual(0, plan.bound)
        self.assertEqual(
            '0 more pinned.6 fit now; no plan of 10 moves makes room for '
            'more.', rendering.defrag_text(plan)[0])

    def test_nothing_gained(self):
        """A server in the way finds a host, which then takes one less."""
        plan = self.plan(cloud([ONE, TWO], [
            running('a', ONE, 0, (1, 5))]), count=2)
        self.assertMoves([], plan)
        self.assertEqual((1, 1), (plan.fits_after, plan.bound))

    def test_server_groups(self):
        a, b = (running('a', ONE, 0, (1, 5)), running('b', TWO, 0, (1, 5)))
        for policy, most, moves in (
                ('anti-affinity', '', 0), ('anti-affinity', '\u00b2', 0),
                ('anti-affinity', '2', 1), ('soft-anti-affinity', '', 0),
                ('soft-affinity', '', 1)):
            plan = self.plan(cloud([ONE, TWO], [a, b], groups=(
                snapshot.Group(uuid=GROUP, policy=policy,
                               rules={'max_server_per_host': most},
                               members=(a.uuid, b.uuid)),)))
            self.assertEqual(moves, len(plan.moves), (policy, most))
            if policy == 'anti-affinity':
                self.assertEqual(moves, plan.bound)

    def test_policies_are_not_worsened(self):
        near, away = (filled.host(name, 3, 2) for name in ('near', 'away'))
        prefers = filled.flavor(
            2, 'prefers', nfv__vswitch_numa_affinity='prefer')
        found = [
            running('a', near, 0, (1, 7), flavor=prefers),
            running('b', away, 0, (1, 7)), running('c', near, 1, (4, 10)),
            running('d', away, 1, (4, 10))]
        plan = self.plan(cloud([near, away], found), 4)
        self.assertTrue(plan.enough)
        for move in plan.moves:
            if move.server == 'a':
                gain, = move.gains
                self.assertEqual(('near', 1), (gain.host, gain.servers))

    def test_a_flavor_that_nova_refuses(self):
        self.assertRaises(
            servers.Refused, defrag.plan, cloud([ONE], []),
            filled.flavor(2, hw__cpu_thread_policy='sometimes'), 1)

    def test_large_cloud(self):
        """Where not everything is tried, pairs of servers are, too."""
        hosts = [filled.host(f'host-{number}', 4, 1) for number in range(8)]
        found = [running(f'{number}{half}', host, 0, cpus)
                 for number, host in enumerate(hosts)
                 for half, cpus in enumerate(((1, 5), (2, 6)))]
        plan = self.plan(cloud(hosts, found), count=2)
        self.assertTrue(plan.enough)
        self.assertEqual(4, len(plan.moves))
