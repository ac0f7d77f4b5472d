# SPDX-License-Identifier: Apache-2.0
"""How guests are called, and what of them is remote."""

from nfv_sched.ops.answers.hosts import guests
from nfv_sched.ops.cloud import snapshot
from nfv_sched.tests import base
from nfv_sched.tests import snapshots


class NameTest(base.TestCase):

    def test_labels(self):
        servers = [snapshot.Server(
            uuid=uuid * 9, name=name, flavor=snapshots.flavor())
            for uuid, name in (('a', 'x'), ('b', 'y'), ('c', 'x'), ('d', ''))]
        self.assertEqual({
            'aaaaaaaaa': 'x (aaaaaaaa)', 'bbbbbbbbb': 'y',
            'ccccccccc': 'x (cccccccc)', 'ddddddddd': '(dddddddd)',
        }, guests.labels(servers))


class GuestTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.host = snapshots.host(nodes=[
            snapshots.node(number, physnets=frozenset(names))
            for number, names in enumerate((['vs', 'physnet0'], ['physnet1'],
                                            []))])

    def remote(self, server, switch=(0,), **fields):
        host = snapshots.host(nodes=self.host.nodes, **fields)
        return guests.server_on_host(server, host, server.name,
                                     frozenset(switch)).remote

    def test_parts(self):
        server = snapshots.server(pins={0: [1, 2], 2: [3]}, shared={2: 1})
        self.assertEqual([(0, 2, 0), (2, 1, 1)], [
            (part.node, part.pinned_vcpus, part.shared_vcpus)
            for part in guests.server_on_host(
                server, self.host, 'vm', frozenset()).numa_nodes])

    def test_two_parts_on_a_node(self):
        """Nova does not do that; it is shown as one part."""
        server = snapshots.server(pins={0: [1]})
        server = snapshots.server(nodes=server.nodes * 2)
        (part,) = guests.server_on_host(
            server, self.host, 'vm', frozenset()).numa_nodes
        self.assertEqual(2, part.pinned_vcpus)

    def test_device(self):
        server = snapshots.server(pins={0: [1]})
        for node, found in (
                (1, ('device 0000:01:00.0 is near node 1',)),
                (0, ()), (None, ())):
            device = snapshot.Device(
                address='0000:01:00.0', vendor='8086', product='1',
                kind='type-VF', node=node, server=server.uuid)
            self.assertEqual(found, self.remote(server, devices=(device,)))

    def test_network(self):
        for physnet, found in (
                ('physnet1', ('network physnet1 is near node 1',)),
                ('physnet0', ()), ('physnet9', ()), (None, ())):
            server = snapshots.server(pins={0: [1]}, ports=(
                snapshot.Port(id='p', physnet=physnet),))
            self.assertEqual(found, self.remote(server))

    def test_switch(self):
        port = snapshot.Port(id='p')
        for pins, switch, vnic, found in (
                ({1: [1]}, [0], 'normal',
                 ('the virtual switch is on node 0',)),
                ({1: [1]}, [0, 2], 'normal',
                 ('the virtual switch is on node 0, 2',)),
                ({1: [1]}, [0], 'direct', ()),
                ({1: [1]}, [], 'normal', ()),
                ({0: [1], 1: [5]}, [0], 'normal', ())):
            port = snapshot.Port(id='p', vnic_type=vnic)
            server = snapshots.server(pins=pins, ports=(port,))
            self.assertEqual(found, self.remote(server, switch))

    def test_floating(self):
        """What floats over the host is remote from nothing."""
        server = snapshots.server(ports=(snapshot.Port(
            id='p', physnet='physnet1'),))
        self.assertEqual((), self.remote(server))
