# SPDX-License-Identifier: Apache-2.0
"""Generated cases are in the equivalence tests; here are those worth a name.
"""

from nova import objects

from nfv_sched.fit.numa import pack
from nfv_sched.fit.numa import topology
from nfv_sched.tests import base


def host_cell(threads=2, cores=4, pinned=(), legacy=False, pages=(4,)):
    """A host cell of cores 0, 1, ... with as many threads each."""
    cpus = set(range(threads * cores))
    return topology.HostCell(objects.NUMACell(
        id=0, cpuset=set(cpus) if legacy else set(), pcpuset=cpus,
        memory=4096, memory_usage=0, cpu_usage=0, pinned_cpus=set(pinned),
        siblings=[set(range(core * threads, core * threads + threads))
                  for core in range(cores)],
        mempages=[objects.NUMAPagesTopology(
            size_kb=size, total=4 * 1024 * 1024 // size, used=0, reserved=0)
            for size in pages]))


def guest_cell(vcpus, threads=topology.THREADS_PREFER, pagesize=None):
    return topology.GuestCell(
        0, vcpus, 1024, pagesize, topology.DEDICATED, threads)


class TestPins(base.TestCase):

    def test_whole_cores_first(self):
        self.assertEqual({4, 5, 6, 7}, pack.pins(
            host_cell(pinned=(0, 2)), guest_cell(4), 0))

    def test_one_thread_of_each_if_that_is_the_most(self):
        self.assertEqual({1, 3, 4}, pack.pins(
            host_cell(cores=3, pinned=(0, 2)), guest_cell(3), 0))

    def test_what_is_left_if_no_even_share_is(self):
        self.assertEqual({1, 2, 3, 4, 5}, pack.pins(
            host_cell(cores=3, pinned=(0,)), guest_cell(5), 0))

    def test_isolated(self):
        cell = guest_cell(2, topology.THREADS_ISOLATE)
        self.assertEqual({2, 4}, pack.pins(
            host_cell(pinned=(0,), legacy=True), cell, 0))

    def test_emulator_threads(self):
        self.assertEqual({0, 1, 2}, pack.pins(host_cell(), guest_cell(2), 1))


class TestState(base.TestCase):

    def test_numbers_of_cpus_do_not_matter(self):
        self.assertEqual(host_cell(pinned=(0,)).state,
                         host_cell(pinned=(1,)).state)

    def test_what_matters(self):
        cells = [host_cell(), host_cell(pinned=(0,)), host_cell(pinned=(2,)),
                 host_cell(pinned=(0, 1)), host_cell(pinned=(0, 2)),
                 host_cell(legacy=True), host_cell(threads=1, cores=8),
                 host_cell(pages=(2048,))]
        self.assertEqual(len(cells), len({cell.state for cell in cells}))
