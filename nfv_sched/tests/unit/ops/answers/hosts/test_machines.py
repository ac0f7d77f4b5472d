# SPDX-License-Identifier: Apache-2.0
"""What facts about a machine add to a host, and where they contradict it."""

from nfv_sched.ops.answers.hosts import machines
from nfv_sched.ops.answers.machine import values
from nfv_sched.ops.cloud import snapshot
from nfv_sched.tests import base
from nfv_sched.tests import snapshots


def machine(*nodes, offline=()):
    """Return a machine; nodes are the CPUs of each core of each NUMA node."""
    return values.Machine(nodes=tuple(
        values.MachineNode(number=number, cores=tuple(
            values.Core(cpus=cpus) for cpus in cores))
        for number, cores in enumerate(nodes)), offline=dict.fromkeys(offline))


# Siblings are 0 and 4, 1 and 5 on node 0, 2 and 6, 3 and 7 on node 1; the
# first core of each is the platform's.
HOST = snapshots.host(nodes=[snapshots.node(
    number, 2, 2, 2, shared=0, dedicated=frozenset(cpus))
    for number, cpus in ((0, [1, 5]), (1, [3, 7]))])
CORES = ([(0, 4), (1, 5)], [(2, 6), (3, 7)])


class MachinesTest(base.TestCase):

    def contradictions(self, *nodes, **fields):
        return list(machines.contradictions(HOST, machine(*nodes, **fields)))

    def test_cores(self):
        self.assertEqual(
            (frozenset([2, 6]), frozenset([3, 7])),
            machines.cores(machine(*CORES), 1))
        self.assertEqual((), machines.cores(machine(*CORES), 2))
        self.assertEqual((), machines.cores(None, 0))

    def test_contradictions(self):
        """Neither another NUMA node nor a CPU that is off is one."""
        platform, own = [(0, 4), (1, 5)], [(2, 6), (3, 7)]
        for nodes, offline, expected in (
                ((platform, own), (), []),
                ((platform, own, [(8, 9)]), (), []),
                (([(0, 4), (1,)], [(2, 6)]), (3, 5, 7), []),
                ((platform, [(2, 6)]), (), ['CPU 3,7 of node 1 missing']),
                ((own, platform), (), ['CPU 1,5 on node 1 instead of 0',
                                       'CPU 3,7 on node 0 instead of 1']),
                (([(0, 1), (4, 5)], own), (),
                 ['CPU 0-1,4-5 of node 0 with other siblings'])):
            self.assertEqual(
                expected, self.contradictions(*nodes, offline=offline))

    def test_shared(self):
        """CPUs for shared guests must be there as those for pinned ones."""
        host = snapshots.host(nodes=[snapshots.node(
            0, 2, 2, 1, shared=1)])
        self.assertEqual(
            ['CPU 0 of node 0 missing'],
            list(machines.contradictions(host, machine([(2,), (1, 3)]))))

    def test_more_siblings(self):
        """What Nova tells apart is not of one core."""
        self.assertEqual(
            ['CPU 0-1,4-5 of node 0 with other siblings'],
            self.contradictions([(0, 1, 4, 5)], CORES[1]))
        host = snapshots.host(nodes=[snapshots.node(
            0, shared=0, dedicated=frozenset([1, 2, 3, 5]), siblings=tuple(
                map(frozenset, ([1, 5], [2], [3]))))])
        for cores, found in (
                ([(1, 5), (2, 6), (3, 7)], []),
                ([(1, 5), (2, 3)],
                 ['CPU 2-3 of node 0 with other siblings'])):
            self.assertEqual(found, list(machines.contradictions(
                host, machine(cores))))

    def test_siblings_that_nova_does_not_say(self):
        host = snapshots.host(nodes=[snapshots.node(
            0, shared=0, dedicated=frozenset([1, 2]), siblings=())])
        self.assertEqual([], list(machines.contradictions(
            host, machine([(1, 2)]))))

    def test_no_nodes(self):
        host = snapshot.Host(name='a', hypervisor='a', uuid='a')
        self.assertEqual([], list(machines.contradictions(
            host, machine(*CORES))))
        self.assertEqual([], list(machines.notes(host, machine(*CORES))))

    def test_notes(self):
        self.assertEqual([], list(machines.notes(HOST, None)))
        self.assertEqual([], list(machines.notes(HOST, machine(*CORES, []))))
        self.assertEqual(
            ['CPU 8-9,11 on node 2, which the host does not report, by the '
             'facts about it'],
            list(machines.notes(HOST, machine(*CORES, [(8, 9), (11,)]))))
