# SPDX-License-Identifier: Apache-2.0
"""Where a guest cell fits; each case is put to the installed Nova, too.

Generated cases are in the equivalence tests; here are those worth a name.
"""

import fixtures
from nova import objects
from nova.virt import hardware

from nfv_sched.fit.numa import fit
from nfv_sched.fit.numa import topology
from nfv_sched.tests import base
from nfv_sched.tests import strategies
from nfv_sched.tests.unit.fit.numa import base as numa_base

GIB = 1048576


def host(threads=1, mempages=(), **fields):
    """A host NUMA node with four shared and eight dedicated CPUs."""
    fields = {'cpuset': set(range(4)), 'pcpuset': set(range(4, 12)),
              'memory': 4096, 'cpu_usage': 0, 'memory_usage': 0,
              'pinned_cpus': set(), **fields}
    cpus = sorted(fields['cpuset'] | fields['pcpuset'])
    return objects.NUMACell(
        id=0, mempages=list(mempages), socket=0, siblings=[
            set(cpus[first:first + threads])
            for first in range(0, len(cpus), threads)], **fields)


def guest(shared=0, dedicated=0, memory=512, threads=None, pagesize=None,
          emulator=None):
    cpus = set(range(shared)), set(range(shared, shared + dedicated))
    policy = None
    if dedicated:
        policy = 'mixed' if shared else 'dedicated'
    obj = objects.InstanceNUMATopology(cells=[objects.InstanceNUMACell(
        id=0, cpuset=cpus[0], pcpuset=cpus[1], memory=memory,
        cpu_policy=policy, cpu_thread_policy=threads, pagesize=pagesize)])
    if emulator:
        obj.emulator_threads_policy = emulator
    return obj


class FitTestCase(base.TestCase):

    def setUp(self):
        super().setUp()
        self.useFixture(fixtures.FakeLogger('nova.virt.hardware'))

    def shortage(self, host_cell, guest_topology, cpu=1.0, ram=1.0):
        """What the host cell lacks; whether it lacks anything, Nova says."""
        read = topology.guest(guest_topology)
        found = fit.shortage(
            topology.HostCell(host_cell), read.cells[0], read.reserved,
            fit.Ratios(cpu, ram))
        limits = objects.NUMATopologyLimits(
            cpu_allocation_ratio=cpu, ram_allocation_ratio=ram)
        self.assertEqual(
            hardware.numa_fit_instance_to_host(
                objects.NUMATopology(cells=[strategies.clone(host_cell)]),
                strategies.clone(guest_topology), provider_mapping=None,
                limits=limits) is not None,
            found[0] == fit.FITS)
        return found

    def assertFits(self, host_cell, guest_topology, **ratios):
        self.assertEqual((fit.FITS, 0, 0), self.shortage(
            host_cell, guest_topology, **ratios))

    def assertLacks(self, code, need, have, host_cell, guest_topology,
                    **ratios):
        self.assertEqual((code, need, have), self.shortage(
            host_cell, guest_topology, **ratios))


class TestCPUs(FitTestCase):

    def test_dedicated(self):
        self.assertFits(host(), guest(dedicated=8))
        self.assertLacks(fit.NO_DEDICATED, 9, 8, host(), guest(dedicated=9))
        self.assertLacks(fit.NO_DEDICATED, 6, 5, host(pinned_cpus={4, 5, 6}),
                         guest(dedicated=6))

    def test_emulator_threads_need_a_cpu_more(self):
        self.assertFits(host(), guest(dedicated=7, emulator='isolate'))
        self.assertLacks(fit.NO_DEDICATED, 9, 8, host(),
                         guest(dedicated=8, emulator='isolate'))

    def test_shared(self):
        self.assertFits(host(), guest(4))
        self.assertLacks(fit.NO_SHARED, 5, 4, host(), guest(5), cpu=16.0)

    def test_shared_cpus_are_overcommitted_up_to_the_ratio(self):
        self.assertLacks(fit.NO_SHARED_ROOM, 2, 1, host(cpu_usage=7),
                         guest(2), cpu=2.0)
        self.assertFits(host(cpu_usage=6), guest(2), cpu=2.0)


class TestThreads(FitTestCase):

    def test_require(self):
        self.assertFits(host(2), guest(dedicated=4, threads='require'))
        self.assertLacks(fit.NO_THREADS, 2, 0, host(),
                         guest(dedicated=2, threads='require'))
        # Of the last three cores one has both threads free.
        self.assertLacks(
            fit.NO_THREADS, 4, 2, host(2, pinned_cpus={4, 5, 6, 8}),
            guest(dedicated=4, threads='require'))

    def test_isolate(self):
        self.assertFits(host(), guest(dedicated=8, threads='isolate'))
        self.assertLacks(fit.NO_THREADS, 2, 0, host(2),
                         guest(dedicated=2, threads='isolate'))

    def test_isolate_where_the_same_cpus_are_shared(self):
        """Half of the CPUs stay idle; a core in use is none."""
        both = set(range(8))
        self.assertFits(host(2, cpuset=both, pcpuset=both),
                        guest(dedicated=4, threads='isolate'))
        self.assertLacks(
            fit.NO_THREADS, 4, 3,
            host(2, cpuset=both, pcpuset=both, pinned_cpus={5}),
            guest(dedicated=4, threads='isolate'))


class TestMemory(FitTestCase):

    def test_without_pages(self):
        """Never more than the host cell has, whatever the ratio."""
        self.assertFits(host(), guest(1, memory=4096))
        self.assertLacks(fit.NO_MEMORY, 4097, 4096, host(),
                         guest(1, memory=4097), ram=2.0)
        self.assertLacks(fit.NO_MEMORY_ROOM, 1024, 512,
                         host(memory_usage=3584), guest(1, memory=1024))
        self.assertFits(host(memory_usage=3584), guest(1, memory=1024),
                        ram=2.0)

    def test_pinned_guests_do_not_overcommit(self):
        self.assertLacks(
            fit.NO_MEMORY, 1024, 512, host(memory_usage=3584),
            guest(dedicated=1, memory=1024), ram=2.0)

    def test_small_pages_are_the_memory(self):
        small = numa_base.pages(kb4=1024 * 256)
        self.assertFits(host(mempages=small), guest(dedicated=1, memory=1024))
        self.assertLacks(fit.NO_MEMORY, 1025, 1024, host(mempages=small),
                         guest(dedicated=1, memory=1025))

    def test_pages_of_one_size(self):
        both = numa_base.pages(kb4=1024 * 256, kb2048=256)
        self.assertFits(host(mempages=both),
                        guest(dedicated=1, pagesize=2048))
        self.assertLacks(fit.NO_PAGES, 514, 512, host(mempages=both),
                         guest(dedicated=1, memory=514, pagesize=2048))
        # No multiple of the size of a page.
        self.assertLacks(fit.NO_PAGES, 511, 0, host(mempages=both),
                         guest(dedicated=1, memory=511, pagesize=2048))
        self.assertLacks(fit.NO_PAGES, 1024, 0, host(mempages=both),
                         guest(dedicated=1, memory=1024, pagesize=GIB))


class TestCellMemory(base.TestCase):
    """Pinned guests as Nova 29 takes them: also by the memory of the cell."""

    def test_pinned_guests(self):
        pages = numa_base.pages(kb4=1024 * 256, kb2048=1024)
        for needed, unused, pagesize, expected in (
                (False, 512, 2048, fit.FITS), (True, 512, 2048, fit.NO_MEMORY),
                (True, 1024, 2048, fit.FITS), (True, 512, None, fit.NO_MEMORY),
                (True, 1024, None, fit.FITS)):
            self.useFixture(fixtures.MonkeyPatch(
                'nfv_sched.fit.numa.fit.needs_cell_memory',
                lambda needed=needed: needed))
            read = topology.guest(guest(
                dedicated=1, memory=1024, pagesize=pagesize))
            self.assertEqual(expected, fit.check(
                topology.HostCell(host(
                    mempages=pages, memory_usage=4096 - unused)),
                read.cells[0], None, 0, fit.Ratios(1.0, 1.0)),
                (needed, unused, pagesize))
