# SPDX-License-Identifier: Apache-2.0
"""One guest on one host, against the answer of Nova's own claim."""

import itertools

from nova import objects
from nova.virt import hardware

from nfv_sched.fit.numa import candidates
from nfv_sched.fit.numa import evaluation
from nfv_sched.fit.numa import topology
from nfv_sched.fit.numa import walk
from nfv_sched.nova import scheduler
from nfv_sched.tests import base as tests_base
from nfv_sched.tests.equivalence import claims
from nfv_sched.tests import strategies
from nfv_sched.tests.unit import clouds
from nfv_sched.tests.unit.fit.numa import base


class TestWhereItFits(tests_base.TestCase):

    def test_emulator_threads_are_in_the_first_guest_cell(self):
        guest = clouds.guest(cells=2)
        guest.emulator_threads_policy = 'isolate'
        found = base.evaluation(
            clouds.host_topology(free={0: 2}), guest)
        self.assertEqual((0b10, 0b11), found.masks)
        self.assertFalse(found.interchangeable)

    def test_static_masks(self):
        """Where it could be without other guests.

        Nova may take unlike guest cells for each other, and narrow a page
        request to any size that a host cell has.
        """
        full, small = (clouds.host_topology(nodes=3, free=free)
                       for free in ({1: 0}, {}))
        full.cells[2].pcpuset = small.cells[2].pcpuset = {8}
        paged = base.with_pages(clouds.host_topology(), (4,), (4, 2048))
        for host, guest, masks, static_masks, static_fits in (
                (full, clouds.guest(), (0b001,), (0b011,), (0b011,)),
                (small, base.unlike_guest(2, 1), (0b011, 0b111),
                 (0b111, 0b111), (0b011, 0b111)),
                (paged, base.unlike_guest(1, pagesize=topology.PAGES_LARGE),
                 (0b10,), (0b11,), (0b10,))):
            found = base.evaluation(host, guest)
            self.assertEqual((masks, static_masks, static_fits), (
                found.masks, found.static_masks, found.static_fits))

    def test_more_guest_cells_than_host_cells(self):
        found = base.evaluation(
            clouds.host_topology(), clouds.guest(cells=3))
        self.assertTrue(found.too_few_cells)
        self.assertFalse(found.accepted())
        self.assertIsNone(found.choose())
        self.assertIsNone(found.choose_steered([]))

    def test_uniform(self):
        """Whether the order of Nova's search does not matter."""
        host, with_pages = clouds.host_topology, base.with_pages
        large = base.unlike_guest(1, pagesize=topology.PAGES_LARGE)
        for expected, host, guest in (
                (True, host(), base.unlike_guest(2, 1)),
                (False, host(free={1: 1}), base.unlike_guest(2, 1)),
                (True, with_pages(host(), (4, 2048), (4, 2048)), large),
                (False, with_pages(host(), (4, 2048), (4, 65536)), large)):
            self.assertEqual(
                expected, base.evaluation(host, guest).uniform)


class TestChoice(tests_base.TestCase):
    """The host cells that the claim takes."""

    def test_devices_in_claims(self):
        """A claim of the installed release sorts as it is said to."""
        sorting = evaluation.CellSorting(
            devices_in_claims=scheduler.claims_sort_by_devices())
        guest = clouds.guest()
        for free in ({0: 4, 1: 3}, {0: 3, 1: 4}, {0: 4, 1: 4}):
            host = clouds.host_topology(free=free)
            stats = clouds.pci_stats(host, {0: 4})
            claimed = claims.numa_fit(
                strategies.clone(host), strategies.clone(guest), None, [],
                stats)
            self.assertEqual(
                tuple(cell.id for cell in claimed.cells),
                base.evaluation(host, guest, pools=stats.pools,
                                sorting=sorting).choose())

    def test_devices_in_claims_of_either_release(self):
        """The filter sorts by devices even where claims do not."""
        host = clouds.host_topology(free={0: 4, 1: 3})
        pools = clouds.pci_stats(host, {0: 4}).pools
        for in_claims, requested, order in (
                (True, False, [1, 0]), (False, False, [0, 1]),
                (True, True, [0, 1]), (False, True, [0, 1])):
            self.assertEqual(order, base.evaluation(
                host, clouds.guest(), pools=pools, pci_requested=requested,
                sorting=evaluation.CellSorting(
                    devices_in_claims=in_claims)).order)

    def test_unlike_guest_cells(self):
        """The course of Nova's search is followed."""
        limits = objects.NUMATopologyLimits(
            cpu_allocation_ratio=1.0, ram_allocation_ratio=1.0)
        for free in itertools.product((0, 1, 2, 3), repeat=3):
            host = clouds.host_topology(nodes=3, free=dict(enumerate(free)))
            for vcpus in ((1, 2), (2, 1), (3, 1, 2)):
                guest = base.unlike_guest(*vcpus)
                placed = hardware.numa_fit_instance_to_host(
                    strategies.clone(host), strategies.clone(guest),
                    provider_mapping=None, limits=limits)
                self.assertEqual(
                    placed and tuple(cell.id for cell in placed.cells),
                    base.evaluation(host, guest).choose())

    def test_condition(self):
        found = base.evaluation(clouds.host_topology(), clouds.guest())
        second = candidates.Condition(lambda chosen: chosen == 0b10, 0b11)
        self.assertEqual((1,), found.choose([], second))
        self.assertTrue(found.accepted([], second))
        self.assertFalse(found.accepted([0b01], second))

    def test_what_is_not_narrowed_yet(self):
        """The claim reads the request as it was."""
        narrowed = base.unlike_guest(1, pagesize=2048)
        large = base.unlike_guest(1, pagesize=topology.PAGES_LARGE)
        found = base.evaluation(
            clouds.host_topology(), narrowed, pristine=topology.guest(large))
        self.assertEqual([2048], found.request_traces().pagesizes)
        self.assertEqual(
            [topology.PAGES_LARGE], found.claim_traces().pagesizes)


class TestSteered(tests_base.TestCase):
    """The host cells that the claim takes with labels of ours."""

    def test_pins_of_another_host_cell(self):
        """Such a claim cannot be recorded."""
        host = clouds.host_topology(nodes=4)
        for exact, expected in (((0, 1), (0, 1)), ((1, 3), None)):
            found = base.evaluation(host, clouds.guest(cells=2))
            groups = [1 << node for node in exact]
            self.assertEqual(exact, found.choose(groups))
            self.assertEqual(expected, found.choose_steered(groups))

    def test_long_claims(self):
        found = base.evaluation(
            clouds.host_topology(nodes=16), clouds.guest(cells=4, vcpus=1))
        self.assertEqual((12, 13, 14, 15), found.choose(
            [1 << node for node in range(12, 16)]))
        self.assertIsNone(found.choose_steered(
            [1 << node for node in range(12, 16)]))
        for chosen, tries in (
                ((0, 1, 2, 3), 0), ((0, 1, 2, 5), 2),
                ((1, 0, 2, 3), 15 * 14 * 13)):
            self.assertEqual(tries, found.claim_tries(chosen))

    def test_undecided(self):
        """A search that is too long to follow."""
        found = base.evaluation(
            clouds.host_topology(nodes=16, free={0: 2}),
            base.unlike_guest(3, 3, 3, 3, 1))
        self.assertRaises(
            walk.Undecided, found.choose_steered,
            [1 << node for node in range(12, 16)])

    def test_many_permutations(self):
        for nodes, cells, many in ((2, 2, False), (16, 5, False),
                                   (16, 6, True), (16, 8, True)):
            self.assertEqual(many, base.evaluation(
                clouds.host_topology(nodes=nodes),
                clouds.guest(cells=cells, vcpus=1)).many_permutations)

    def test_many_sets_of_cells(self):
        """Nova's own search ends early, the search for any choice does not."""
        busy = {node: 2 for node in range(16)}
        found = base.evaluation(
            clouds.host_topology(nodes=32, free=busy), clouds.guest(cells=8))
        chosen = tuple(range(16, 24))
        first = candidates.Condition(
            lambda cells: cells == candidates.mask_of(chosen), -1)
        self.assertTrue(found.accepted((), first))
        self.assertEqual(chosen, found.choose((), first))
        self.assertRaises(walk.Undecided, found.choose_steered, (), first)
        none = candidates.Condition(lambda cells: False, -1)
        self.assertFalse(found.accepted((), none))
        self.assertIsNone(found.choose((), none))
        self.assertIsNone(found.claimed((), none))
