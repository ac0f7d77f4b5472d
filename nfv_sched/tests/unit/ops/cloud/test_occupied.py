# SPDX-License-Identifier: Apache-2.0

import dataclasses

from nfv_sched.fit.numa import topology
from nfv_sched.fit import occupancy
from nfv_sched.ops.cloud import occupied
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.simulator import restore_hosts
from nfv_sched.tests import base

SIBLINGS = (frozenset((4, 5)), frozenset((6, 7)))


def node(number, *, siblings=SIBLINGS, sizes=(2048, 4)):
    return snapshot.Node(
        number=number, dedicated=frozenset((4, 5, 6, 7)), siblings=siblings,
        memory=4096, pages=tuple(
            snapshot.Pages(size=size, total=8) for size in sizes))


def part(**fields):
    return snapshot.GuestNode(**{
        'host_node': 3, 'pins': {0: 4}, 'dedicated': frozenset((0,)),
        'memory': 16, 'cpu_policy': 'dedicated', **fields})


class TestShare(base.TestCase):

    def share(self, *, host=node(3), **fields):
        share, = occupied.shares([node(0), host], [part(**fields)])
        return share

    def test_pinned(self):
        self.assertEqual(
            occupancy.Share(1, frozenset((4, 6)), 0, 16, 4),
            self.share(reserved=frozenset((6,))))

    def test_isolated(self):
        self.assertEqual({4, 5}, self.share(thread_policy='isolate').cpus)
        # Without hyperthreading, no siblings are in the snapshot.
        self.assertEqual({4}, self.share(
            thread_policy='isolate', host=node(3, siblings=())).cpus)

    def test_a_node_that_the_host_does_not_report(self):
        self.assertEqual((), occupied.shares(
            [node(0), node(3)], [part(host_node=1)]))


class TestWithoutServers(base.TestCase):

    def test_nodes_are_those_of_an_empty_host(self):
        full = dataclasses.replace(
            node(3), pinned=frozenset((4, 6)), memory_used=64, shared_used=2,
            pages=(snapshot.Pages(size=4, total=99, used=9, reserved=1),))
        empty = occupied.without_servers(self.cloud(nodes=(full,)))
        self.assertEqual(
            self.view(occupancy.empty(self.topology((full,)))),
            self.view(self.topology(empty.hosts[0].nodes)))

    def topology(self, nodes):
        return topology.host_topology(restore_hosts.topology(nodes))

    def view(self, host):
        return [(cell.free_cpus, cell.cpu_usage, cell.memory_usage,
                 cell.pages) for cell in host.cells]

    def cloud(self, **fields):
        return snapshot.Cloud(
            taken='', hosts=(snapshot.Host(
                name='one', hypervisor='one', uuid='host', **fields),),
            servers=(snapshot.Server(
                uuid='x', name='x', host='one',
                flavor=snapshot.Flavor(name='f', vcpus=1, memory=512),
                ports=(snapshot.Port(id='p', rules=3),
                       snapshot.Port(id='q', vnic_type='direct', rules=3))),))

    def test_ports_and_rules(self):
        cloud = self.cloud(network=snapshot.HostNetwork(
            vswitch_ports=9, security_rules=9), memory_used=1024)
        self.assertEqual(occupied.Totals(512, 1, 3),
                         occupied.totals(cloud)['one'])
        host = occupied.without_servers(cloud).hosts[0]
        self.assertEqual((512, 8, 6), (
            host.memory_used, host.network.vswitch_ports,
            host.network.security_rules))

    def test_devices(self):
        states = ('claimed', 'unclaimable', 'allocated', 'unavailable',
                  'removed', 'available')
        host, = occupied.without_servers(self.cloud(devices=tuple(
            snapshot.Device(address=str(number), vendor='8086',
                            product='154c', kind='type-VF', status=status)
            for number, status in enumerate(states)))).hosts
        self.assertEqual([*['available'] * 4, 'removed', 'available'],
                         [device.status for device in host.devices])
