# SPDX-License-Identifier: Apache-2.0

"""When Nova's search may take the pins of one host cell to another.

The rule by which a guest with the thread policy ``isolate`` is held to its
host cells is compared with all courses that the search can take.
"""

from collections.abc import Callable, Iterator
import itertools

from nfv_sched.fit.numa import walk
from nfv_sched.tests import base

#: Numbers of the host cells, in their own order: as usual, and as odd as can
#: be for a search that compares them with the numbers of guest cells.
NUMBERINGS = (lambda cells: list(range(cells)),
              lambda cells: list(range(cells))[::-1],
              lambda cells: list(range(1, cells + 1)),
              lambda cells: [8 * cell for cell in range(cells)])


class _Unknown(Exception):
    """The course depends on an answer that is not chosen yet."""


def courses(guests: int, numbers: list[int], order: list[int], alike: bool,
            accepts: Callable[[int], bool]) -> Iterator[bool | None]:
    """Nova's search on every host that differs in what fits.

    :param alike: whether the guest cells fit the same host cells
    :returns: for each course None if no place is found, else whether all
        pins are on their host cells
    """
    chosen: list[dict] = [{}]
    while chosen:
        answers = chosen.pop()

        def fits(guest, host, _pagesize, answers=answers):
            key = host if alike else (guest, host)
            if key not in answers:
                raise _Unknown(key)
            return answers[key], 0, answers[key]

        traces = walk.Traces(list(range(guests)), [None] * guests)
        try:
            found = walk.search(numbers, order, traces, fits, accepts)
        except _Unknown as unknown:
            chosen += [{**answers, unknown.args[0]: answer}
                       for answer in (True, False)]
        else:
            yield None if found is None else list(found) == traces.pinned


class PinsStayTest(base.TestCase):
    """Where ``isolate`` is safe, and that it is not beyond."""

    def outcomes(self, guests: int, hosts: int, alike: bool,
                 predicates: list[Callable[[int], bool]]) -> set[bool | None]:
        orders = itertools.permutations(range(hosts)) \
            if hosts > guests else [range(hosts)]
        return {
            outcome for numbering, order, accepts in itertools.product(
                NUMBERINGS, list(orders), predicates)
            for outcome in courses(
                guests, numbering(hosts), list(order), alike, accepts)}

    @staticmethod
    def every_predicate(guests: int, hosts: int) -> list:
        """All that could be asked of the chosen host cells together."""
        sets = [sum(1 << cell for cell in cells)
                for cells in itertools.combinations(range(hosts), guests)]
        return [dict(zip(sets, answers)).__getitem__ for answers in
                itertools.product((False, True), repeat=len(sets))]

    @staticmethod
    def one_group(hosts: int) -> list:
        return [lambda chosen, group=group: bool(chosen & group)
                for group in range(1, 1 << hosts)]

    def test_safe(self):
        for guests, hosts, alike, predicates in (
                (2, 2, False, self.every_predicate(2, 2)),
                # Like guest cells on all host cells, or near one group.
                *((cells, cells, True, self.every_predicate(cells, cells))
                  for cells in (2, 3, 4)),
                (2, 3, True, self.every_predicate(2, 3)),
                (2, 4, True, self.one_group(4)),
                (3, 4, True, self.one_group(4)),
                # Two guest cells that lack nothing.
                *((2, hosts, False, [lambda chosen: True])
                  for hosts in (3, 4, 5))):
            self.assertEqual(
                {None, True}, self.outcomes(guests, hosts, alike, predicates),
                (guests, hosts, alike))

    def test_not_safe(self):
        """Labels of exact host cells, and guest cells that differ."""
        for guests, hosts, alike, predicate in (
                (2, 4, True, lambda chosen: chosen == 0b0101),
                (3, 4, True, lambda chosen: chosen == 0b1011),
                (3, 3, False, lambda chosen: True),
                (2, 3, False, lambda chosen: chosen == 0b011)):
            self.assertIn(
                False, self.outcomes(guests, hosts, alike, [predicate]),
                (guests, hosts, alike))


class SearchTest(base.TestCase):
    """The course of the search, on answers that are given."""

    def search(self, fits, accepts=lambda chosen: True, numbers=(0, 1, 2),
               order=(0, 1, 2), guests=2, **kwargs):
        """Return the assignment, and note what was asked on the way."""
        self.asked = []

        def answer(guest, host, _pagesize):
            self.asked.append((guest, host))
            return (guest, host) in fits, 0, (guest, host) in fits

        self.traces = walk.Traces(list(range(guests)), [None] * guests)
        return walk.search(
            numbers, order, self.traces, answer, accepts, **kwargs)

    def test_first_in_the_order(self):
        everywhere = set(itertools.product(range(2), range(3)))
        for order in itertools.permutations(range(3)):
            self.assertEqual(
                order[:2], self.search(everywhere, order=order))
            self.assertEqual(list(order[:2]), self.traces.pinned)

    def test_nothing_fits(self):
        self.assertIsNone(self.search(set()))
        # What is known of a host cell is not asked again.
        self.assertEqual([(0, 0), (0, 1), (0, 2)], self.asked)

    def test_refused_by_networks_or_devices(self):
        everywhere = set(itertools.product(range(2), range(3)))
        self.assertEqual((1, 2), self.search(
            everywhere, lambda chosen: chosen == 0b110))
        self.assertIsNone(self.search(everywhere, lambda chosen: False))

    def test_numbers_that_cells_carry(self):
        """Nova remembers by them, and mistakes one guest cell for another.

        Guest cell 1 fits host cell 0 only, takes its number and later, on
        host cell 1, that of guest cell 0, which fits there.
        """
        self.assertEqual((2, 1), self.search(
            {(0, 1), (0, 2), (1, 0)}, lambda chosen: chosen == 0b110))
        self.assertEqual([2, 1], self.traces.ids)
        self.assertEqual([2, 0], self.traces.pinned)
        self.assertNotIn((1, 1), self.asked)

    def test_pages_are_narrowed(self):
        """To the size that was found first."""
        requests = []

        def fits(guest, host, pagesize):
            requests.append((host, pagesize))
            return host == 1, 2048, False

        traces = walk.Traces([0], [-2])
        self.assertEqual((1,), walk.search(
            (0, 1), (0, 1), traces, fits, lambda chosen: True))
        self.assertEqual([(0, -2), (1, 2048)], requests)
        self.assertEqual([2048], traces.pagesizes)
        self.assertEqual([-1], traces.pinned)

    def test_given_up(self):
        everywhere = set(itertools.product(range(2), range(3)))
        steps = len(list(itertools.permutations(range(3), 2)))
        self.assertIsNone(self.search(
            everywhere, lambda chosen: False, max_steps=steps))
        self.assertRaises(
            walk.Undecided, self.search, everywhere, lambda chosen: False,
            max_steps=steps - 1)
