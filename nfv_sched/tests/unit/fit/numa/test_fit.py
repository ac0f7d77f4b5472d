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
FITS = fit.FITS, 0, 0


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

    def assertShortages(self, *cases, **ratios):
        """Each is a host, a guest and what is lacking: code, need, have."""
        for of_host, of_guest, *lacking in cases:
            self.assertEqual(
                tuple(lacking or FITS),
                self.shortage(host(**of_host), guest(**of_guest), **ratios),
                (of_host, of_guest))


class TestCPUs(FitTestCase):

    def test_dedicated(self):
        self.assertShortages(
            ({}, {'dedicated': 8}),
            ({}, {'dedicated': 9}, fit.NO_DEDICATED, 9, 8),
            ({'pinned_cpus': {4, 5, 6}}, {'dedicated': 6},
             fit.NO_DEDICATED, 6, 5),
            # Emulator threads need a CPU more.
            ({}, {'dedicated': 7, 'emulator': 'isolate'}),
            ({}, {'dedicated': 8, 'emulator': 'isolate'},
             fit.NO_DEDICATED, 9, 8))

    def test_shared(self):
        """They are overcommitted up to the ratio."""
        self.assertShortages(({}, {'shared': 4}))
        self.assertShortages(
            ({}, {'shared': 5}, fit.NO_SHARED, 5, 4), cpu=16.0)
        self.assertShortages(
            ({'cpu_usage': 7}, {'shared': 2}, fit.NO_SHARED_ROOM, 2, 1),
            ({'cpu_usage': 6}, {'shared': 2}), cpu=2.0)

    def test_threads(self):
        """Where the same CPUs are shared, half of them stay idle."""
        pairs, both = {'threads': 2}, set(range(8))
        legacy = {**pairs, 'cpuset': both, 'pcpuset': both}
        require, isolate = {'threads': 'require'}, {'threads': 'isolate'}
        self.assertShortages(
            (pairs, {**require, 'dedicated': 4}),
            ({}, {**require, 'dedicated': 2}, fit.NO_THREADS, 2, 0),
            # Of the last three cores one has both threads free.
            ({**pairs, 'pinned_cpus': {4, 5, 6, 8}},
             {**require, 'dedicated': 4}, fit.NO_THREADS, 4, 2),
            ({}, {**isolate, 'dedicated': 8}),
            (pairs, {**isolate, 'dedicated': 2}, fit.NO_THREADS, 2, 0),
            (legacy, {**isolate, 'dedicated': 4}),
            ({**legacy, 'pinned_cpus': {5}}, {**isolate, 'dedicated': 4},
             fit.NO_THREADS, 4, 3))


class TestMemory(FitTestCase):

    def test_without_pages(self):
        """Never more than the host cell has; pinned guests get no more."""
        used, large = {'memory_usage': 3584}, {'memory': 1024}
        self.assertShortages(
            ({}, {'shared': 1, 'memory': 4096}),
            (used, {**large, 'shared': 1}, fit.NO_MEMORY_ROOM, 1024, 512))
        self.assertShortages(
            ({}, {'shared': 1, 'memory': 4097}, fit.NO_MEMORY, 4097, 4096),
            (used, {**large, 'shared': 1}),
            (used, {**large, 'dedicated': 1}, fit.NO_MEMORY, 1024, 512),
            ram=2.0)

    def test_pages(self):
        """Small ones are the memory; of large ones a multiple is needed."""
        small = {'mempages': numa_base.pages(kb4=1024 * 256)}
        both = {'mempages': numa_base.pages(kb4=1024 * 256, kb2048=256)}
        for of_host, memory, pagesize, *lacking in (
                (small, 1024, None),
                (small, 1025, None, fit.NO_MEMORY, 1025, 1024),
                (both, 512, 2048),
                (both, 514, 2048, fit.NO_PAGES, 514, 512),
                (both, 511, 2048, fit.NO_PAGES, 511, 0),
                (both, 1024, GIB, fit.NO_PAGES, 1024, 0)):
            self.assertShortages((of_host, {
                'dedicated': 1, 'memory': memory, 'pagesize': pagesize},
                *lacking))


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
