# SPDX-License-Identifier: Apache-2.0
"""Generated cases are in the equivalence tests; here are those worth a name.
"""

from nova import objects

from nfv_sched.fit.numa import pack
from nfv_sched.fit.numa import topology
from nfv_sched.tests import base


class TestPins(base.TestCase):

    def test_pins(self):
        """Of a host cell whose cores are CPUs 0 and 1, 2 and 3, and so on."""
        prefer, isolate = topology.THREADS_PREFER, topology.THREADS_ISOLATE
        for title, cores, pinned, vcpus, threads, reserved, pins in (
                ('whole cores first',
                 4, {0, 2}, 4, prefer, 0, {4, 5, 6, 7}),
                ('one thread of each if that is the most',
                 3, {0, 2}, 3, prefer, 0, {1, 3, 4}),
                ('what is left if no even share is',
                 3, {0}, 5, prefer, 0, {1, 2, 3, 4, 5}),
                ('isolated', 4, {0}, 2, isolate, 0, {2, 4}),
                ('emulator threads', 4, set(), 2, prefer, 1, {0, 1, 2})):
            host = topology.HostCell(objects.NUMACell(
                id=0, cpuset=set(), pcpuset=set(range(2 * cores)),
                memory=4096, memory_usage=0, cpu_usage=0, pinned_cpus=pinned,
                siblings=[{2 * core, 2 * core + 1} for core in range(cores)],
                mempages=[]))
            self.assertEqual(pins, pack.pins(host, topology.GuestCell(
                0, vcpus, 1024, None, topology.DEDICATED, threads),
                reserved), title)
