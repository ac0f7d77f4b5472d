# SPDX-License-Identifier: Apache-2.0
"""How much room for large guests a guest takes."""

import dataclasses

from nova import objects

from nfv_sched.fit.numa import fragmentation
from nfv_sched.fit.numa import topology
from nfv_sched.tests import base as tests_base
from nfv_sched.tests.unit import clouds

HUGE = 1048576


@dataclasses.dataclass
class Node:
    """A host NUMA node.

    :ivar free: free CPUs, of 8
    :ivar pages: free pages of 1 GiB, of 8; None for no huge pages
    """

    free: int = 8
    pages: int | None = None


def host(*nodes, **fields):
    made = clouds.host_topology(
        nodes=len(nodes), cpus=8,
        free={number: node.free for number, node in enumerate(nodes)},
        **fields)
    for cell, node in zip(made.cells, nodes):
        if node.pages is not None:
            cell.mempages = cell.mempages + [objects.NUMAPagesTopology(
                size_kb=HUGE, total=8, used=8 - node.pages, reserved=0)]
    return made


def guest(vcpus=2, pagesize=None, cells=1, memory=1024, threads=None):
    made = clouds.guest(cells=cells, vcpus=vcpus, memory=memory)
    for cell in made.cells:
        cell.pagesize = pagesize
        cell.cpu_thread_policy = threads
    return made


class FragmentationTestCase(tests_base.TestCase):

    def lost(self, made, wanted=None, chosen=(0,), near=()):
        return fragmentation.lost(
            topology.host_topology(made),
            topology.guest(wanted or guest()), chosen, near)


class TestLost(FragmentationTestCase):

    def assertLess(self, less, more):
        self.assertTrue(0 <= less < more, (less, more))

    def test_fuller_node(self):
        """The less is free, the less is lost."""
        losses = [self.lost(host(Node(free), Node())) for free in range(2, 9)]
        self.assertEqual(sorted(set(losses)), losses)

    def test_pairs_of_hosts(self):
        for less, more in (
                # The same node, but the other one is free.
                (host(Node(4), Node(2)), host(Node(4), Node(8))),
                # CPUs are used up where pages are.
                (host(Node(8, 0)), host(Node(4, 8))),
                # Threads of a core that is in use are worth less.
                (host(Node(5), threads=2), host(Node(5), threads=1)),
                # Two equal nodes are kept for guests with two.
                (host(Node(8), Node(4)), host(Node(6), Node(6))),
                (host(*[Node(8)] * 3), host(*[Node(8)] * 2))):
            self.assertLess(self.lost(less), self.lost(more))

    def test_chosen_nodes(self):
        made = host(Node(6), Node(4), Node(4))
        self.assertLess(self.lost(made, chosen=(1,)),
                        self.lost(made, chosen=(0,)))
        made = host(Node(4), Node(6), Node(8))
        self.assertLess(self.lost(made, guest(cells=2), (0, 1)),
                        self.lost(made, guest(cells=2), (1, 2)))

    def test_pages(self):
        """CPUs without pages are no room for guests with pages."""
        few, many = host(Node(8, 1)), host(Node(8, 8))
        for wanted in guest(), guest(pagesize=-1), guest(pagesize=4):
            self.assertLess(self.lost(few, wanted), self.lost(many, wanted))
        for size in HUGE, -2, -3:
            self.assertLess(self.lost(many), self.lost(
                many, guest(pagesize=size)))

    def test_floating_cells(self):
        """vCPUs that are not pinned take memory only."""
        made = host(Node(4, 8))
        wanted = guest(pagesize=HUGE)
        wanted.cells[0].cpuset, wanted.cells[0].pcpuset = {0, 1}, set()
        wanted.cells[0].cpu_policy = None
        self.assertLess(self.lost(made, wanted),
                        self.lost(made, guest(pagesize=HUGE)))

    def test_devices(self):
        made = host(Node(), Node())
        self.assertLess(self.lost(made, near={1}), self.lost(made, near={0}))
        self.assertEqual(frozenset({1}), fragmentation.nodes_with_devices(
            clouds.pci_stats(made, {0: 0, 1: 2}).pools))
        self.assertEqual(frozenset(), fragmentation.nodes_with_devices(None))

    def test_isolated_vcpus_take_whole_cores(self):
        made = host(Node(), threads=2)
        for cell in made.cells:
            cell.cpuset = cell.pcpuset
        self.assertEqual(
            self.lost(made, guest(4)),
            self.lost(made, guest(2, threads='isolate')))

    def test_core_without_cpus(self):
        """Nova takes such a host."""
        made = host(Node())
        expected = self.lost(made)
        for cell in made.cells:
            cell.siblings = [set(), *cell.siblings]
        self.assertEqual(expected, self.lost(made))

    def test_nodes_of_all_kinds(self):
        """Nothing raises, and nothing is gained."""
        bare = host(Node())
        bare.cells[0].mempages = []
        no_cores = host(Node())
        no_cores.cells[0].siblings = []
        shared = host(Node())
        shared.cells[0].cpuset, shared.cells[0].pcpuset = {0, 1}, set()
        nothing = host(Node())
        nothing.cells[0].mempages[0].total = 0
        for made in (bare, no_cores, shared, nothing, host(Node(0, 0)),
                     host(Node(1)), host(*[Node(4)] * 8)):
            for wanted in guest(), guest(12, HUGE), guest(4, -3, memory=90000):
                self.assertGreaterEqual(self.lost(made, wanted), 0)
