# SPDX-License-Identifier: Apache-2.0
"""Named cases; test_occupancy of the equivalence tests generates the others.
"""

from nova import objects

from nfv_sched.fit.numa import topology
from nfv_sched.fit import occupancy
from nfv_sched.tests import base

MIB = 1024


def host(pinned=(), legacy=False, pages=(4,), nodes=1):
    """Hosts of four cores with two threads on each NUMA node."""
    cells = []
    for node in range(nodes):
        cpus = set(range(8 * node, 8 * node + 8))
        cells.append(objects.NUMACell(
            id=node, cpuset=set(cpus) if legacy else set(), pcpuset=cpus,
            memory=4096, memory_usage=0, cpu_usage=0,
            pinned_cpus=cpus & set(pinned), siblings=[
                {cpu, cpu + 1} for cpu in sorted(cpus) if cpu % 2 == 0],
            mempages=[objects.NUMAPagesTopology(
                size_kb=size, total=4096 * MIB // size, used=0, reserved=1)
                for size in pages]))
    return topology.host_topology(objects.NUMATopology(cells=cells))


def guest_cell(vcpus=2, threads=topology.THREADS_PREFER,
               policy=topology.DEDICATED, shared=0):
    return topology.GuestCell(shared, vcpus, 1024, None, policy, threads)


def share(found, position, cell, cpus, size):
    host_cell = found.cells[position]
    return occupancy.share(
        position, cell, cpus, size, host_cell.siblings,
        [pages.size_kb for pages in host_cell.pages])


def state(found):
    return [(cell.free_cpus, cell.cpu_usage, cell.memory_usage, cell.pages)
            for cell in found.cells]


class TestShare(base.TestCase):
    def test_isolated_vcpus_on_cpus_of_another_cell(self):
        cell = guest_cell(threads=topology.THREADS_ISOLATE)
        self.assertEqual({8, 9}, share(
            host(legacy=True, nodes=2), 1, cell, {2, 8}, None).cpus)


class TestTake(base.TestCase):
    def test_not_recorded(self):
        for before, cpus in ((host(pinned=(0,)), {0, 1}), (host(), {7, 8}),
                             (host(pages=()), {0, 1})):
            self.assertRaises(
                occupancy.UnrecordedError, occupancy.take, before,
                [share(before, 0, guest_cell(), cpus, None)])


class TestGiveBack(base.TestCase):
    def test_nothing_beyond_an_empty_host(self):
        before = host(pinned=(0,))
        share = occupancy.Share(0, frozenset((0, 1, 99)), 3, 2048, 4)
        self.assertEqual(state(host()), state(
            occupancy.give_back(before, [share])))


class TestFreed(base.TestCase):

    def setUp(self):
        super().setUp()
        vacant = host()
        self.full = occupancy.take(vacant, [share(
            vacant, 0, guest_cell(1, policy=topology.MIXED, shared=1), {0},
            None)])

    def test_everything(self):
        self.assertEqual(state(host()), state(occupancy.empty(self.full)))

    def test_one_resource(self):
        (full,), (vacant,) = state(self.full), state(host())
        for name, places in (('cpus', [0]), ('shared', [1]),
                             ('memory', [2, 3])):
            self.assertEqual([tuple(
                vacant[place] if place in places else full[place]
                for place in range(4))], state(occupancy.freed(
                    self.full, **{name: True})))


class TestTotal(base.TestCase):

    def test_servers_on_the_same_cpu(self):
        self.assertEqual(
            occupancy.Usage(frozenset((1, 2)), 3, 12, {4: 1024, 2048: 4}),
            occupancy.total([
                occupancy.Share(0, frozenset((1,)), 0, 4, 4),
                occupancy.Share(0, frozenset((1, 2)), 3, 8, 2048)]))


class TestAmounts(base.TestCase):

    SERVER = occupancy.Amounts(1, 512, 10, 2)

    def test_plus(self):
        self.assertEqual((2, 1024, 20, 4), self.SERVER.plus(self.SERVER))
        self.assertEqual(
            occupancy.NOTHING, self.SERVER.plus(self.SERVER, -1))

    def test_flavor(self):
        self.assertEqual(
            occupancy.Amounts(1, 512, 3, 2), occupancy.amounts(objects.Flavor(
                memory_mb=512, root_gb=1, ephemeral_gb=2, vcpus=2, swap=9)))

    def test_undo(self):
        node = objects.ComputeNode(
            memory_mb=1024, memory_mb_used=0, free_ram_mb=1024, local_gb=9,
            local_gb_used=0, free_disk_gb=9, vcpus_used=1, running_vms=0)
        before = node.obj_clone()
        undo = occupancy.record(node, self.SERVER)
        self.assertEqual(
            (512, 512, 10, -1, 3, 1),
            (node.memory_mb_used, node.free_ram_mb, node.local_gb_used,
             node.free_disk_gb, node.vcpus_used, node.running_vms))
        undo()
        self.assertEqual(before.obj_to_primitive(), node.obj_to_primitive())
