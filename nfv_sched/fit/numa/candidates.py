# SPDX-License-Identifier: Apache-2.0
"""Search NUMA candidates: sets of assignments, without listing them.

An assignment gives each guest cell a host cell of its own.  A set of
assignments is described by *masks*, a bitmask of host cells for each guest
cell; by *groups*, bitmasks of host cells, such as those near a network or with
a label, and at least one cell of each group must be chosen; and by a
*condition*, a predicate on the bitmask of the chosen host cells, such as that
they have the PCI devices.

Sets are narrowed by AND.  A bipartite matching shows whether a set is empty.

The functions take these as parameters, and ``order``: the positions of the
host cells in the order in which Nova tries them.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
import functools
import itertools
import math
import operator
import typing as ty

Masks = Sequence[int]

# Sets of host cells that are tested against a condition at most, which takes a
# quarter of a second. For 6 guest cells there are 924 of 12 host cells; for 8
# there are 12,870 of 16 and ten million of 32.
MAX_SETS = 1 << 12

# Sets of as many guest cells that are tried at most: all of 10 guest cells.
_MAX_ROW_SETS = 1 << 8


class TooManySets(Exception):
    """The search was given up before it was known whether a set is empty."""


class Condition(ty.NamedTuple):
    """A condition on all the chosen host cells together."""

    #: predicate on the bitmask of the chosen host cells; the search also calls
    #: it with only some of them, or none, so it must not raise
    test: Callable[[int], bool]
    relevant: int  #: bitmask of the host cells on which its answer depends

    def __and__(self, other: 'Condition') -> 'Condition':
        return Condition(lambda chosen: self.test(chosen)
                         and other.test(chosen),
                         self.relevant | other.relevant)


def bits(mask: int) -> list[int]:
    """Return the positions of the bits that are set, ascending."""
    positions = []
    while mask:
        low = mask & -mask
        positions.append(low.bit_length() - 1)
        mask ^= low
    return positions


def has_matching(masks: Masks) -> bool:
    """Return whether each guest cell can have a host cell of its own."""
    count = len(masks)
    if count == 1:
        return masks[0] != 0
    union = functools.reduce(operator.or_, masks, 0)
    if union.bit_count() < count or not all(masks):
        return False
    # With two masks the conditions above are Hall's, and sufficient; so they
    # are if all masks are the same.
    if count == 2 or masks.count(union) == count:
        return True

    owners: dict[int, int] = {}

    def place(row: int, seen: int) -> tuple[bool, int]:
        options = masks[row]
        for bit in bits(options & ~seen):
            if seen >> bit & 1:
                continue
            seen |= 1 << bit
            if (owner := owners.get(bit)) is None:
                owners[bit] = row
                return True, seen
            placed, seen = place(owner, seen)
            if placed:
                owners[bit] = row
                return True, seen
        return False, seen

    for row in range(count):
        if not place(row, 0)[0]:
            return False
    return True


def _all_can_host(masks: Masks, hosts: Iterable[int]) -> bool:
    """Return whether each of these host cells can have its own guest cell."""
    columns = []
    for host in hosts:
        column = 0
        for row, mask in enumerate(masks):
            if mask >> host & 1:
                column |= 1 << row
        columns.append(column)
    return not columns or has_matching(columns)


def feasible(masks: Masks, groups: Iterable[int] = ()) -> bool:
    """Return whether any assignment takes a host cell of every group.

    If the guest cells can be matched, and a host cell of each group can be
    matched, both can be at once (theorem of Mendelsohn and Dulmage).  So a
    host cell for each group is searched for, not a whole assignment.
    """
    if len(masks) == 1:
        mask = masks[0]
        for group in groups:
            mask &= group
        return mask != 0
    if not has_matching(masks):
        return False
    union = 0
    for mask in masks:
        union |= mask
    # The smallest groups first: they leave the fewest branches.
    needed = sorted({group & union for group in groups}, key=int.bit_count)
    if not needed:
        return True
    if not needed[0]:
        return False

    def choose(index: int, chosen: int) -> bool:
        while index < len(needed) and needed[index] & chosen:
            index += 1
        if index == len(needed):
            return _all_can_host(masks, bits(chosen))
        # Every guest cell has a host cell already.
        if chosen.bit_count() == len(masks):
            return False
        return any(choose(index + 1, chosen | 1 << bit)
                   for bit in bits(needed[index]))

    return choose(0, 0)


def _sets_meeting(masks: Masks, groups: Sequence[int],
                  condition: Condition) -> Iterator[int]:
    """Yield the sets of relevant host cells that meet a condition.

    :returns: bitmasks; for each there is an assignment that uses all these
        host cells and no other relevant one
    :raises TooManySets: after ``MAX_SETS`` sets
    """
    union = functools.reduce(operator.or_, masks, 0)
    relevant = union & condition.relevant
    single = bits(relevant)
    # The other guest cells must find a host cell that is not relevant.
    least = max(len(masks) - (union & ~relevant).bit_count(), 0)
    # Only the cells that the condition looks at are enumerated, not the
    # assignments: these grow with the factorial of the cells.
    tested = 0
    for size in range(least, min(len(masks), len(single)) + 1):
        for chosen in itertools.combinations(single, size):
            tested += 1
            if tested > MAX_SETS:
                raise TooManySets()
            part = mask_of(chosen)
            if condition.test(part):
                usable = ~(relevant & ~part)
                if feasible([mask & usable for mask in masks],
                            [*groups, *(1 << bit for bit in chosen)]):
                    yield part


def satisfiable(masks: Masks, groups: Sequence[int] = (),
                condition: Condition | None = None) -> bool:
    """Return whether there is an assignment; may raise TooManySets."""
    if condition is None:
        return feasible(masks, groups)
    if len(masks) == 1:
        mask = masks[0]
        for group in groups:
            mask &= group
        return any(condition.test(1 << bit) for bit in bits(mask))
    if not feasible(masks, groups):
        return False
    return any(True for _ in _sets_meeting(masks, groups, condition))


def assignments(
    masks: Masks, order: Sequence[int], groups: Sequence[int] = (),
    condition: Condition | None = None,
) -> Iterator[tuple[int, ...]]:
    """Yield the assignments in the order in which Nova tries them.

    :returns: tuples of the position of the host cell of each guest cell
    :raises TooManySets: if the next one takes too long to find
    """
    count = len(masks)
    if not satisfiable(masks, groups, condition):
        return
    if count == 1:
        mask = masks[0]
        for group in groups:
            mask &= group
        for host in order:
            if mask >> host & 1 and (
                    condition is None or condition.test(1 << host)):
                yield (host,)
        return

    chosen: list[int] = []

    def leads_on(rest: list[int], used: int) -> bool:
        unmet_groups = [group for group in groups if not group & used]
        if not rest:
            return not unmet_groups and (
                condition is None or condition.test(used))
        if condition is None:
            return feasible(rest, unmet_groups)
        return satisfiable(rest, unmet_groups, Condition(
            lambda part: condition.test(part | used),
            condition.relevant & ~used))

    def descend(remaining_masks: list[int], used: int):
        if not remaining_masks:
            yield tuple(chosen)
            return
        mask = remaining_masks[0]
        for host in order:
            bit = 1 << host
            if not mask & bit or used & bit:
                continue
            rest = [m & ~bit for m in remaining_masks[1:]]
            if not leads_on(rest, used | bit):
                continue
            chosen.append(host)
            yield from descend(rest, used | bit)
            chosen.pop()

    yield from descend(list(masks), 0)


def first(masks: Masks, order: Sequence[int], groups: Sequence[int] = (),
          condition: Condition | None = None) -> tuple[int, ...] | None:
    return next(assignments(masks, order, groups, condition), None)


def some(masks: Masks, order: Sequence[int], groups: Sequence[int],
         condition: Condition | None, most: int) -> Iterator[tuple[int, ...]]:
    """Yield the first ``most`` assignments, fewer if that takes too long."""
    try:
        yield from itertools.islice(
            assignments(masks, order, groups, condition), most)
    except TooManySets:
        return


def mask_of(assignment: Iterable[int]) -> int:
    mask = 0
    for host in assignment:
        mask |= 1 << host
    return mask


def row_sets(count: int, size: int) -> Iterator[tuple[int, ...]]:
    """Yield sets of ``size`` out of ``count`` guest cells, not too many."""
    return itertools.islice(
        itertools.combinations(range(count), size), _MAX_ROW_SETS)


def most_local(masks: Masks, local: int, groups: Sequence[int] = (),
               condition: Condition | None = None) -> int:
    """Return the most guest cells that can be on certain host cells at once.

    Of many unlike guest cells, only some combinations are tried.

    :returns: -1 if there is no assignment at all
    :raises TooManySets: if that takes too long to tell
    """
    count = len(masks)
    for target in range(count, 0, -1):
        tried = set()
        for rows in row_sets(count, target):
            narrowed = tuple(
                mask & local if row in rows else mask
                for row, mask in enumerate(masks))
            # Which guest cell has which mask makes no difference to whether
            # there is an assignment; like guest cells are tried once.
            key = tuple(sorted(narrowed))
            if key in tried:
                continue
            tried.add(key)
            if satisfiable(narrowed, groups, condition):
                return target
    return 0 if satisfiable(masks, groups, condition) else -1


def tries_before(assignment: Sequence[int], order: Sequence[int]) -> int:
    """Return how many permutations Nova tries before an assignment."""
    remaining = list(order)
    count = len(assignment)
    tries = 0
    for index, host in enumerate(assignment):
        position = remaining.index(host)
        tries += position * math.perm(len(remaining) - 1, count - index - 1)
        del remaining[position]
    return tries
