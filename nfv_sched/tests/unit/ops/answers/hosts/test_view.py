# SPDX-License-Identifier: Apache-2.0
"""Hosts as they are seen: numbers of hosts that are made by hand."""

import dataclasses
import json

import hypothesis
from hypothesis import strategies as st

from nfv_sched.ops.answers.hosts import document
from nfv_sched.ops.answers.hosts import rendering
from nfv_sched.ops.answers.hosts import view
from nfv_sched.ops.answers.machine import values as machine_values
from nfv_sched.ops.cloud import snapshot
from nfv_sched.tests import base
from nfv_sched.tests import snapshots


def look(host, *servers, **fields):
    (found,) = view.views(snapshots.cloud([host], servers, **fields))
    return found


class HostTest(base.TestCase):

    def test_numbers(self):
        host = snapshots.host(nodes=[
            snapshots.node(0, 4, 1, pinned=frozenset([1, 2])),
            snapshots.node(1, 4, 1, pinned=frozenset([5]))], cpu_ratio=4.0)
        found = look(host, snapshots.server('a', {0: [1]}),
                     snapshots.server('b', {0: [2], 1: [5]}),
                     snapshots.server('c'))
        self.assertEqual([(1, 2, 4), (2, 1, 4)], [
            (each.largest_fit, each.pcpus_used, each.shared_vcpu_limit)
            for each in found.numa_nodes])
        self.assertEqual([['a', 'b'], ['b']], [
            [guest.label for guest in each.servers]
            for each in found.numa_nodes])
        self.assertEqual(['c'], [guest.label for guest in found.floating])
        self.assertEqual((3, 3, 6, 2), (
            found.pcpus_free, found.pcpus_used, found.pcpus,
            found.largest_fit))
        self.assertEqual((), found.notes)

    def test_wholeness(self):
        """Of what the free CPUs could be for one guest on one node."""
        for pinned, whole in (
                (([], []), 1.0), (([1, 2], [5]), 2 / 3),
                (([1, 2, 3], [5]), 1.0), (([1, 2, 3], [5, 6, 7]), None)):
            host = snapshots.host(nodes=[
                snapshots.node(number, 4, 1, pinned=frozenset(cpus))
                for number, cpus in enumerate(pinned)])
            self.assertEqual(whole, look(host).wholeness, pinned)

    def test_networks(self):
        """By name; one without a name by what Neutron calls it, or UUID."""
        ports = [snapshot.Port(id=str(number), **fields) for number, fields in
                 enumerate((
                     dict(network='2', network_name='b'),
                     dict(network='1', network_name='a', physnet='one'),
                     dict(network='1', network_name='a', physnet='one'),
                     dict(network='3'), dict(network='4'), {}))]
        cloud = snapshots.cloud(
            [snapshots.host()], [snapshots.server(ports=tuple(ports)),
                                 snapshots.server('other', ports=None)],
            networks=(snapshot.Network(id='3', name='c'),))
        (host,) = view.views(cloud)
        self.assertEqual(
            [('4', None), ('a', 'one'), ('b', None), ('c', None)],
            list(host.networks))

    def test_labels(self):
        """The switch is where the option says; networks are no labels."""
        names = frozenset(['sw', 'nfv_node0', 'nfv_osd', 'physnet0'])
        host = snapshots.host(nodes=[snapshots.node(physnets=names),
                                     snapshots.node(1)])
        found = look(host, options={'nfv_sched': {'vswitch_label': 'sw'}})
        self.assertEqual(
            [True, False], [each.switch for each in found.numa_nodes])
        self.assertEqual((('physnet0',), ('osd',)), (
            found.numa_nodes[0].networks, found.numa_nodes[0].places))

    def test_places_like_nodes(self):
        names = ('nfv_node0', 'nfv_node0x', 'nfv_nodes', 'n0', 'n0x')
        for prefix, networks, places in (
                (None, ('n0', 'n0x'), ('node0x', 'nodes')),
                ('n', ('n0x',), ('node0', 'node0x', 'nodes'))):
            found = look(
                snapshots.host(nodes=[snapshots.node(
                    physnets=frozenset(names))]),
                options={'nfv_sched': {'node_label_prefix': prefix}})
            self.assertEqual((networks, places), (
                found.numa_nodes[0].networks, found.numa_nodes[0].places))

    def test_ports(self):
        def ports(host):
            use = host.network.vswitch_ports
            return use.used, use.limit

        network = snapshot.HostNetwork(vswitch_ports=10, routers=1)
        host = snapshots.host(network=network)
        found = look(host)
        self.assertEqual((14, 254), ports(found))
        found = look(
            host, aggregates=[
                snapshot.Aggregate(name='a', hosts=('compute-1',), metadata={
                    'vswitch_ports_per_node': '40'}),
                snapshot.Aggregate(name='b', hosts=('compute-2',), metadata={
                    'vswitch_ports_per_node': '20'})],
            options={'nfv_sched': {'vswitch_physical_ports': 2}})
        self.assertEqual((12, 40), ports(found))
        found = look(snapshots.host(), options={
            'nfv_sched': {'vswitch_ports_per_node': 0}})
        self.assertEqual((None, None), ports(found))

    def test_state(self):
        for enabled, up, state in (
                (True, True, 'up'), (False, True, 'disabled'),
                (True, False, 'down'), (False, False, 'disabled, down')):
            self.assertEqual(state, look(snapshots.host(
                enabled=enabled, up=up)).state)
        unmapped = look(snapshots.host(mapped=False))
        self.assertEqual('unmapped', unmapped.state)
        self.assertIn('discover_hosts', ' '.join(unmapped.notes))

    def test_no_nodes(self):
        host = dataclasses.replace(snapshots.host(), nodes=None, vcpus=4)
        found = look(host, snapshots.server())
        self.assertEqual((0, 0, 1), (
            found.pcpus_free, found.largest_fit, len(found.floating)))
        self.assertIsNone(found.wholeness)
        self.assertIn('reports no NUMA nodes', found.notes[0])

    def test_ratio(self):
        """That of the host; else the options, as Nova takes them."""
        for ratio, options, limit in (
                (2.0, {'cpu_allocation_ratio': 8.0}, 4),
                (None, {'cpu_allocation_ratio': 8.0,
                        'initial_cpu_allocation_ratio': 4.0}, 16),
                (None, {'cpu_allocation_ratio': None,
                        'initial_cpu_allocation_ratio': 4.0}, 8),
                (None, {}, 2)):
            found = look(snapshots.host(cpu_ratio=ratio),
                         options={'DEFAULT': options})
            self.assertEqual(limit, found.numa_nodes[0].shared_vcpu_limit)

    def test_hidden(self):
        """CPUs that nova-compute does not report, if it says how many."""
        for info, hidden in (
                (json.dumps({'topology': {
                    'cells': 2, 'sockets': 1, 'cores': 4, 'threads': 2}}), 2),
                ('', None), ('[]', None), ('{"topology": {}}', None),
                ('{"topology": {"cells": "x"}}', None),
                ('{"topology": {"cells": 1e999}}', None),
                ('[' * 100000, None)):
            self.assertEqual(hidden, look(snapshots.host(
                cpu_info=info)).cpus_not_for_servers)

    def test_facts(self):
        node = snapshots.node(0, 2, 2, 1, shared=0,
                              dedicated=frozenset([1]))
        host = snapshots.host(nodes=[node])
        cloud = snapshots.cloud([host, snapshots.host('b', [node])])
        found, other = view.views(cloud, facts={
            host.uuid: machine_values.Machine(nodes=tuple(
                machine_values.MachineNode(number=number, cores=tuple(
                    machine_values.Core(cpus=cpus) for cpus in cores))
                for number, cores in enumerate((
                    [(0, 2), (1, 3)], [(4, 5)]))))})
        self.assertEqual([[0, 2], [1, 3]], [
            [cpu.cpu for cpu in core.cpus]
            for core in found.numa_nodes[0].cores])
        self.assertEqual(
            [document.CPUState.FREE, document.CPUState.OTHER],
            [cpu.state for cpu in found.numa_nodes[0].cores[1].cpus])
        self.assertEqual(5, found.cpus_not_for_servers)
        self.assertEqual(1, len(found.notes))
        self.assertEqual((1, 1), (found.pcpus, found.largest_fit))
        self.assertEqual(([[1]], None, ()), (
            [[cpu.cpu for cpu in core.cpus]
             for core in other.numa_nodes[0].cores],
            other.cpus_not_for_servers, other.notes))

    def test_facts_without_nodes(self):
        """Of a host without NUMA nodes it is not known what is Nova's."""
        host = snapshot.Host(name='a', hypervisor='a', uuid='a', vcpus=2)
        cloud = snapshots.cloud([host])
        self.assertEqual(view.views(cloud), view.views(cloud, facts={
            'a': machine_values.Machine(nodes=(machine_values.MachineNode(
                number=0, cores=(machine_values.Core(cpus=(0, 1)),)),))}))

    def test_unknown_servers(self):
        """Of those that have devices or CPUs, nothing is known but that."""
        host = snapshots.host(
            nodes=[snapshots.node(pinned=frozenset([1]))],
            devices=[snapshot.Device(
                address='0000:01:00.1', vendor='8086', product='1',
                kind='type-VF', node=7, status='allocated', server='gone')])
        found = look(host)
        self.assertEqual([
            'node 0: CPU 1 taken by a server that is not known, such as one '
            'that is being moved',
            '1 devices of servers that are not known here, such as '
            '0000:01:00.1'], list(found.notes))
        self.assertIn('by unknown server', rendering.devices(
            found.devices_without_node[0]))

    def test_node_that_is_not_there(self):
        found = look(snapshots.host(), snapshots.server('a', {3: [1]}))
        self.assertEqual(('a is on node 3, which the host does not report',),
                         found.notes)
        self.assertEqual((), found.numa_nodes[0].servers)


class CloudTest(base.TestCase):

    def test_titles(self):
        hosts = [snapshots.host('a', uuid='1'),
                 snapshots.host('b', uuid='2', hypervisor='x'),
                 snapshots.host('b', uuid='3', hypervisor='y'),
                 snapshots.host('c', uuid='4'), snapshots.host('c', uuid='5')]
        self.assertEqual({'1': 'a', '2': 'b (x)', '3': 'b (y)',
                          '4': 'c (4)', '5': 'c (5)'}, view.titles(hosts))

    def test_hosts_of_a_name(self):
        """A server is on the compute node that its allocations are of."""
        hosts = [snapshots.host(uuid=uuid, hypervisor=uuid) for uuid in 'xy']
        found = view.views(snapshots.cloud(hosts, [
            snapshots.server('a', allocations={'y': {'VCPU': 1}}),
            snapshots.server('b', allocations={'x': {'VCPU': 1}}),
            snapshots.server('c')]))
        self.assertEqual([['b', 'c'], ['a']], [
            [guest.label for guest in each.servers] for each in found])

    def test_cells(self):
        hosts = [snapshots.host(uuid=cell, cell=cell) for cell in 'xy']
        found = view.views(snapshots.cloud(hosts, [
            snapshots.server('a', cell='y'), snapshots.server('b', host=None),
            snapshots.server('c', host='other', cell='x')]))
        self.assertEqual([[], ['a']], [
            [guest.label for guest in each.servers] for each in found])

    def test_stable(self):
        servers = [snapshots.server(name, created=created)
                   for name, created in (('b', '2026-01-02'),
                                         ('a', '2026-01-02'),
                                         ('c', '2026-01-01'))]
        for order in (servers, servers[::-1]):
            self.assertEqual(['c', 'a', 'b'], [
                guest.label for guest in look(
                    snapshots.host(), *order).servers])

    @hypothesis.settings(max_examples=50, deadline=None)
    @hypothesis.given(
        st.integers(), st.integers(1, 8), st.integers(1, 12),
        st.sampled_from((1, 2, 4)), st.integers(0, 20))
    def test_generated(self, seed, nodes, cores, threads, guests):
        """Every CPU is shown once, and the numbers agree with the states."""
        cloud = snapshots.generated(2, nodes, cores, threads, guests, seed)
        for host, found in zip(cloud.hosts, view.views(cloud)):
            self.assertEqual((), found.notes)
            for node, each in zip(host.nodes, found.numa_nodes):
                cpus = [cpu for core in each.cores for cpu in core.cpus]
                self.assertEqual(node.shared | node.dedicated,
                                 {cpu.cpu for cpu in cpus})
                self.assertEqual(
                    each.pcpus_used, sum(bool(cpu.users) for cpu in cpus))
                self.assertEqual(each.pcpus_free, sum(
                    cpu.state is document.CPUState.FREE for cpu in cpus))


GIB = 1024


def paged_host(reserved=None, small=8, huge_reserved=1, size=4, used=0,
               reserved_pages=0):
    """A host of two NUMA nodes with 8 GiB of small pages each.

    :param reserved: MiB that Placement has as reserved
    :param used: small pages on each node that are used
    :param reserved_pages: small pages on each node that are reserved
    """
    pages = tuple(each for each in (
        small and snapshot.Pages(
            size=size, total=small * GIB * 1024 // size, used=used,
            reserved=reserved_pages),
        snapshot.Pages(size=GIB * 1024, total=96, reserved=huge_reserved))
        if each)
    made = snapshots.host(nodes=[
        snapshots.node(number, pages=pages) for number in (0, 1)])
    return made if reserved is None else dataclasses.replace(
        made, providers=(snapshot.Provider(
            uuid=made.uuid, name=made.name, inventories={
                'MEMORY_MB': snapshot.Inventory(
                    total=208 * GIB, reserved=reserved)}),))


class SmallPagesTest(base.TestCase):

    def test_floating(self):
        """Servers on NUMA nodes are recorded by the host."""
        floating = [snapshots.server(f's{number}') for number in range(3)]
        small = view.small_pages(
            paged_host(reserved=6 * GIB, huge_reserved=1, used=GIB * 256),
            [*floating, snapshots.server('pinned', {0: [1]})])
        # 2 GiB of the reserve are huge pages of the switch.
        self.assertEqual(document.SmallPagesUse(
            size_kib=4, total_mib=16 * GIB, reserved_mib=4 * GIB,
            used_on_nodes_mib=2 * GIB, used_without_nodes_mib=3 * GIB,
            free_mib=7 * GIB), small)
        self.assertEqual(10 * GIB, small.available_mib)

    def test_reserve_used(self):
        floating = [snapshots.server(f's{number}') for number in range(3)]
        small = view.small_pages(paged_host(reserved=18 * GIB), floating)
        self.assertEqual((0, -3 * GIB), (small.available_mib, small.free_mib))

    def test_reserved_small_pages(self):
        """They are part of the reserve, not more of it."""
        for reserved, expected in ((3, 4), (5, 5)):
            self.assertEqual(expected * GIB, view.small_pages(
                paged_host(reserved=reserved * GIB, huge_reserved=0,
                           reserved_pages=2 * GIB * 256), ()).reserved_mib)

    def test_without_placement(self):
        """The host itself counts what is reserved as used."""
        made = dataclasses.replace(
            paged_host(huge_reserved=0), memory_used=5 * GIB)
        self.assertEqual(4 * GIB, view.small_pages(
            made, [snapshots.server()]).reserved_mib)

    def test_other_sizes(self):
        self.assertEqual((64, 16 * GIB), (
            view.small_pages(paged_host(size=64), ()).size_kib,
            view.small_pages(paged_host(size=64), ()).total_mib))
        self.assertIsNone(view.small_pages(paged_host(small=0), ()))
        self.assertIsNone(view.small_pages(dataclasses.replace(
            paged_host(), nodes=None), ()))


class NameTest(base.TestCase):

    def test_labels(self):
        servers = [snapshot.Server(
            uuid=uuid * 9, name=name, flavor=snapshots.flavor())
            for uuid, name in (('a', 'x'), ('b', 'y'), ('c', 'x'), ('d', ''))]
        self.assertEqual({
            'aaaaaaaaa': 'x (aaaaaaaa)', 'bbbbbbbbb': 'y',
            'ccccccccc': 'x (cccccccc)', 'ddddddddd': '(dddddddd)',
        }, view.labels(servers))


class GuestTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.host = snapshots.host(nodes=[
            snapshots.node(number, physnets=frozenset(names))
            for number, names in enumerate((['vs', 'physnet0'], ['physnet1'],
                                            []))])

    def remote(self, server, switch=(0,), **fields):
        host = snapshots.host(nodes=self.host.nodes, **fields)
        return view.server_on_host(server, host, server.name,
                                   frozenset(switch)).remote

    def test_parts(self):
        """Nova puts no two on a node; they would be shown as one part."""
        once = snapshots.server(pins={0: [1]})
        apart = snapshots.server(pins={0: [1, 2], 2: [3]}, shared={2: 1})
        for nodes, parts in ((apart.nodes, [(0, 2, 0), (2, 1, 1)]),
                             (once.nodes * 2, [(0, 2, 0)])):
            self.assertEqual(parts, [
                (part.node, part.pinned_vcpus, part.shared_vcpus)
                for part in view.server_on_host(
                    snapshots.server(nodes=nodes), self.host, 'vm',
                    frozenset()).numa_nodes])

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

    def test_wanted(self):
        for physnet, specs, wants in (
                (None, {}, False), ('physnet9', {}, True),
                (None, {'nfv:vswitch_numa_affinity': 'prefer'}, True)):
            server = snapshots.server(
                pins={1: [1]}, ports=(snapshot.Port(id='p', physnet=physnet),),
                flavor=snapshot.Flavor(
                    name='f', vcpus=1, memory=1, extra_specs=specs))
            self.assertEqual(wants, view.server_on_host(
                server, self.host, 'vm', frozenset([0])).lacks_nearby)

    def test_floating(self):
        """What floats over the host is remote from nothing."""
        server = snapshots.server(ports=(snapshot.Port(
            id='p', physnet='physnet1'),))
        self.assertEqual((), self.remote(server))
