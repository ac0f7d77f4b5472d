# SPDX-License-Identifier: Apache-2.0
"""Bitmasks and matching against plain enumeration."""

import itertools
from unittest import mock

from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st

from nfv_sched.fit.numa import candidates
from nfv_sched.tests import base

HOSTS = 6
SETTINGS = settings(max_examples=500)
masks = st.lists(st.integers(0, 2 ** HOSTS - 1), min_size=1, max_size=5)
groups = st.lists(st.integers(0, 2 ** HOSTS - 1), max_size=3)


def enumerate_all(rows, needed, order=range(HOSTS)):
    """Assignments in the order of a permutation walk."""
    for assignment in itertools.permutations(order, len(rows)):
        if all(mask >> host & 1 for mask, host in zip(rows, assignment)):
            chosen = candidates.mask_of(assignment)
            if all(chosen & group for group in needed):
                yield assignment


def counted(test, most):
    """A condition on all cells that fails if it is tested too often."""
    numbers = itertools.count(1)

    def counting(chosen):
        assert next(numbers) <= most
        return test(chosen)

    return candidates.Condition(counting, -1)


class TestCandidates(base.TestCase):

    @SETTINGS
    @given(masks)
    def test_matching(self, rows):
        self.assertEqual(
            any(True for _ in enumerate_all(rows, ())),
            candidates.has_matching(rows))

    @SETTINGS
    @given(masks, groups)
    def test_feasible(self, rows, needed):
        self.assertEqual(
            any(True for _ in enumerate_all(rows, needed)),
            candidates.feasible(rows, needed))

    @SETTINGS
    @given(masks, groups, st.permutations(range(HOSTS)))
    def test_same_order_as_a_walk(self, rows, needed, order):
        self.assertEqual(
            list(enumerate_all(rows, needed, order)),
            list(candidates.assignments(rows, order, needed)))

    @SETTINGS
    @given(masks, groups, st.integers(0, 2 ** HOSTS - 1))
    def test_most_local(self, rows, needed, local):
        best = max(
            ((candidates.mask_of(a) & local).bit_count()
             for a in enumerate_all(rows, needed)), default=-1)
        self.assertEqual(best, candidates.most_local(rows, local, needed))

    @SETTINGS
    @given(masks, groups, st.permutations(range(HOSTS)),
           st.integers(0, 2 ** HOSTS - 1), st.data())
    def test_condition(self, rows, needed, order, relevant, data):
        met = data.draw(st.sets(st.integers(0, 2 ** HOSTS - 1)))
        condition = candidates.Condition(
            lambda chosen: chosen & relevant in met, relevant)
        expected = [
            assignment for assignment in enumerate_all(rows, needed, order)
            if condition.test(candidates.mask_of(assignment))]
        self.assertEqual(expected, list(candidates.assignments(
            rows, order, needed, condition)))
        self.assertEqual(bool(expected), candidates.satisfiable(
            rows, needed, condition))
        self.assertEqual(
            expected[0] if expected else None,
            candidates.first(rows, order, needed, condition))

    @SETTINGS
    @given(st.integers(1, 4), st.permutations(range(HOSTS)), st.data())
    def test_tries_before(self, count, order, data):
        walk = list(itertools.permutations(order, count))
        index = data.draw(st.integers(0, len(walk) - 1))
        self.assertEqual(
            index, candidates.tries_before(walk[index], order))

    def test_large_refusal_is_quick(self):
        # 16 host cells, 8 guest cells, room on 7: 518918400 permutations.
        self.assertFalse(candidates.feasible([0b1111111] * 8))
        self.assertTrue(candidates.feasible([0xffff] * 8, [1 << 15]))

    def test_devices_on_many_cells(self):
        """Without the sets that leave guest cells over."""
        masks = [2 ** 32 - 1] * 8
        condition = counted(lambda chosen: bool(chosen), 100)
        self.assertTrue(candidates.satisfiable(masks, (), condition))
        self.assertEqual(
            tuple(range(8)),
            candidates.first(masks, range(32), (), condition))

    def test_too_many_sets(self):
        masks = [2 ** 32 - 1] * 8
        for search in (
                lambda condition: candidates.satisfiable(
                    masks, (), condition),
                lambda condition: candidates.first(
                    masks, range(32), (), condition),
                lambda condition: candidates.most_local(
                    masks, 1, (), condition)):
            self.assertRaises(
                candidates.TooManySets, search,
                counted(lambda chosen: False, candidates.MAX_SETS))
        self.assertEqual([], list(candidates.some(
            masks, range(32), (), counted(
                lambda chosen: False, candidates.MAX_SETS), 5)))

    def test_most_local_of_many(self):
        """All 16 guest cells differ; there are 65,536 sets of them."""
        masks = [0xffff & ~(1 << row) for row in range(16)]
        with mock.patch.object(candidates, 'satisfiable',
                               wraps=candidates.satisfiable) as satisfiable:
            self.assertEqual(2, candidates.most_local(masks, 0b11))
        self.assertGreater(16 * 256, satisfiable.call_count)
