# SPDX-License-Identifier: Apache-2.0
"""Nova's NUMA topologies, read into small values."""

from nova import objects

from nfv_sched.fit.numa import topology
from nfv_sched.tests import base
from nfv_sched.tests.unit import clouds


def host_cell(**fields):
    """A view of a host NUMA node with eight CPUs in pairs of threads."""
    obj = objects.NUMACell(**{
        'id': 3, 'cpuset': {0, 1, 2, 4}, 'pcpuset': {5, 6, 7},
        'memory': 4096, 'cpu_usage': 5, 'memory_usage': 1024,
        'pinned_cpus': {6}, 'siblings': [{0, 1}, {2, 3}, {4, 5}, {6, 7}],
        'mempages': [
            objects.NUMAPagesTopology(
                size_kb=4, total=1000, used=100, reserved=10),
            objects.NUMAPagesTopology(
                size_kb=2048, total=8, used=3, reserved=1)],
        'socket': 1, **fields})
    return topology.HostCell(obj)


class TestHostCell(base.TestCase):

    def test_cpus(self):
        cell = host_cell()
        self.assertEqual((3, 4, 3, 5), (
            cell.id, cell.shared, cell.dedicated, cell.cpu_usage))
        self.assertEqual({5, 7}, cell.free_cpus)
        self.assertEqual({5, 6, 7}, host_cell(pinned_cpus=set()).free_cpus)
        self.assertEqual(1, cell.socket)
        self.assertIsNone(host_cell(socket=None).socket)

    def test_cores(self):
        """A CPU of which no core is known is a core of its own."""
        self.assertEqual(3, host_cell().shared_cores)
        self.assertEqual(4, host_cell(siblings=[]).shared_cores)
        self.assertEqual(2, host_cell().threads)
        self.assertEqual(3, host_cell(siblings=[{0}, {1, 2, 4}]).threads)
        self.assertEqual(1, host_cell(siblings=[]).threads)

    def test_legacy(self):
        self.assertFalse(host_cell().legacy)
        self.assertTrue(host_cell(pcpuset={0, 1, 2, 4}).legacy)

    def test_memory(self):
        """Used and reserved pages are not free."""
        cell = host_cell()
        self.assertEqual((4096, 1024), (cell.memory, cell.memory_usage))
        self.assertEqual(
            (topology.CellPages(4, 890 * 4, 4000, 40),
             topology.CellPages(2048, 4 * 2048, 8 * 2048, 2048)), cell.pages)
        for cell in cell, host_cell():  # the pages are read, or not yet
            self.assertEqual(4 * 2048, cell.free_kb(2048))
            self.assertIsNone(cell.free_kb(1048576))
        self.assertEqual((), host_cell(mempages=[]).pages)

    def test_state(self):
        """Numbers of CPUs do not matter, but what is free of each core."""
        self.assertEqual(host_cell(pinned_cpus={6}).state,
                         host_cell(pinned_cpus={7}).state)
        cells = [host_cell(**fields) for fields in (
            *({'pinned_cpus': cpus} for cpus in (
                set(), {5}, {6}, {5, 6}, {6, 7})),
            {'cpuset': {5, 6, 7}}, {'siblings': []}, {'mempages': []})]
        self.assertEqual(len(cells), len({cell.state for cell in cells}))

    def test_emptied(self):
        """As if no guest was there; what is reserved stays so."""
        cell = host_cell()
        empty = cell.emptied()
        self.assertEqual({5, 6, 7}, empty.free_cpus)
        self.assertEqual((0, 0), (empty.cpu_usage, empty.memory_usage))
        self.assertEqual([990 * 4, 7 * 2048],
                         [page.free_kb for page in empty.pages])
        self.assertEqual(7 * 2048, empty.free_kb(2048))
        self.assertEqual(({5, 7}, 5, 4 * 2048), (
            cell.free_cpus, cell.cpu_usage, cell.free_kb(2048)))
        # The pages are not read yet.
        self.assertEqual(7 * 2048, host_cell().emptied().free_kb(2048))
        self.assertEqual(empty.pages, empty.emptied().pages)

    def test_pages_without_fields(self):
        """What old releases do not write is nothing."""
        pages = objects.NUMAPagesTopology(size_kb=2048, total=8, used=3)
        for empty, free in (False, 5), (True, 8):
            cell = host_cell(mempages=[pages])
            cell = cell.emptied() if empty else cell
            self.assertEqual(free * 2048, cell.free_kb(2048))
            self.assertEqual(free * 2048, cell.pages[0].free_kb)

    def test_fields_that_old_releases_do_not_write(self):
        cell = topology.HostCell(objects.NUMACell(
            id=0, cpuset={0, 1}, memory=512))
        self.assertEqual((2, 0, 0, 0, set(), (), None), (
            cell.shared, cell.dedicated, cell.cpu_usage, cell.memory_usage,
            cell.free_cpus, cell.pages, cell.socket))
        self.assertEqual(((frozenset(), False),), topology.HostTopology(
            (cell,)).networks.near)

    def test_odd(self):
        for fields in ({'id': 0}, {'id': 0, 'cpuset': {0}},
                       {'cpuset': {0}, 'memory': 1}):
            self.assertRaises(topology.OddTopologyError, topology.HostCell,
                              objects.NUMACell(**fields))
        cell = host_cell(mempages=[objects.NUMAPagesTopology(
            size_kb=0, total=1, used=0, reserved=0)])
        self.assertRaises(
            topology.OddTopologyError, lambda: cell.pages)


class TestHostTopology(base.TestCase):

    def test_numbers_are_not_positions(self):
        host = topology.host_topology(objects.NUMATopology(cells=[
            objects.NUMACell(id=number, cpuset=set(), memory=512)
            for number in (8, 0, 4)]))
        self.assertEqual([0b001, 0b010, 0b100, 0], [
            host.bit_of(number) for number in (8, 0, 4, 1)])
        self.assertEqual([8, 4], host.nodes(0b101))

    def test_networks(self):
        host = topology.host_topology(clouds.host_topology(
            nodes=3, switch=(1, 2), physnets={'foo': (0,), 'bar': (0, 2)},
            tunnel=(0, 1)))
        self.assertEqual({
            clouds.VSWITCH: 0b110, 'foo': 0b001, 'bar': 0b101,
            'nfv_node0': 0b001, 'nfv_node1': 0b010, 'nfv_node2': 0b100,
        }, host.labels)
        self.assertEqual(0b011, host.tunnel)

    def test_no_networks(self):
        obj = clouds.host_topology()
        for cell in obj.cells:
            cell.network_metadata = objects.NetworkMetadata()
        host = topology.host_topology(obj)
        self.assertEqual(({}, 0), (host.labels, host.tunnel))

    def test_nothing(self):
        for obj in (None, objects.NUMATopology(cells=[]),
                    objects.NUMATopology()):
            self.assertIsNone(topology.host_topology(obj))


class TestGuest(base.TestCase):

    def guest(self, **fields):
        return topology.guest(objects.InstanceNUMATopology(
            cells=[objects.InstanceNUMACell(**{
                'id': 0, 'cpuset': {0}, 'pcpuset': {1, 2}, 'memory': 512,
                **fields})]))

    def test_cells(self):
        for policy, cpus in ((None, topology.SHARED),
                             ('shared', topology.SHARED),
                             ('dedicated', topology.DEDICATED),
                             ('mixed', topology.MIXED)):
            guest = self.guest(cpu_policy=policy)
            self.assertEqual((topology.GuestCell(
                1, 2, 512, None, cpus, topology.THREADS_PREFER),),
                guest.cells)
            self.assertEqual(((0,), 0, False), guest[1:])

    def test_thread_policies(self):
        for policy, cpus, siblings, isolates in (
                (None, 'dedicated', False, False),
                ('prefer', 'dedicated', False, False),
                ('require', 'dedicated', True, False),
                ('isolate', 'mixed', False, True),
                ('require', None, False, False),
                ('isolate', 'shared', False, False)):
            guest = self.guest(cpu_policy=cpus, cpu_thread_policy=policy)
            self.assertEqual((siblings, isolates), (
                guest.requires_siblings, guest.isolates), (policy, cpus))

    def test_pages(self):
        for pagesize, read, several in (
                (None, None, False), (0, None, False), (2048, 2048, False),
                (-1, topology.PAGES_SMALL, True),
                (-2, topology.PAGES_LARGE, True),
                (-3, topology.PAGES_ANY, True)):
            guest = self.guest(pagesize=pagesize)
            self.assertEqual(read, guest.cells[0].pagesize)
            self.assertEqual(several, guest.any_pages)

    def test_emulator_threads(self):
        for policy, reserved in ((None, 0), ('share', 0), ('isolate', 1)):
            obj = clouds.guest()
            obj.emulator_threads_policy = policy
            self.assertEqual(reserved, topology.guest(obj).reserved)

    def test_nothing(self):
        for obj in (None, objects.InstanceNUMATopology(cells=[]),
                    objects.InstanceNUMATopology()):
            self.assertIsNone(topology.guest(obj))

    def test_odd(self):
        self.assertRaises(
            topology.OddTopologyError, topology.guest,
            objects.InstanceNUMATopology(cells=[
                objects.InstanceNUMACell(id=0, cpuset={0})]))
