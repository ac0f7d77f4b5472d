# SPDX-License-Identifier: Apache-2.0
"""Attribute the servers that Placement would grant and a host does not take.

A limit is lifted by leaving it out of the request, or by not asking a filter.
The servers that fit then are counted anew.  Servers that one limit alone gives
back are attributed to this limit, or to several of which any one would do;
servers that only several limits together give back to these.  What no limit
gives back is left to the caller: it is lost to the CPUs of the NUMA nodes.
"""

from collections.abc import Callable, Sequence
import typing as ty

from nfv_sched.ops.model.counting import document

#: Returns how many servers fit beside those that do now, once limits are
#: lifted.
Gain = Callable[[frozenset[document.LostLimit]], int]


class Cause(ty.NamedTuple):
    """The limits to which some servers are lost."""

    limits: tuple[document.LostLimit, ...]
    #: whether lifting any one of them gives the servers back; if not, only
    #: lifting all of them does
    any_one: bool = True


def attribute(limits: Sequence[document.LostLimit],
              gain: Gain) -> dict[Cause, int]:
    """Return the number of servers lost to each cause.

    The sum is what lifting all limits gives back.  What lifting one limit
    alone gives back is the sum of the causes with this limit and ``any_one``.

    :param limits: limits that may be lifted, in the order to name them
    :param gain: called several times with the same limits
    """
    everything = frozenset(limits)
    most = gain(everything) if everything else 0
    if not most:
        return {}
    alone = {limit: gain(frozenset([limit])) for limit in limits}
    shared = _count_overlaps(alone, most, everything, gain)
    causes = {Cause((limit,)): alone[limit] - shared[limit]
              for limit in limits}
    # Servers that any one of several limits gives back.
    attributed = 0
    for count in sorted(set(shared.values()) - {0}):
        causes[Cause(tuple([
            limit for limit, each in shared.items() if each >= count
        ]))] = count - attributed
        attributed = count
    rest = most - sum(causes.values())
    if rest > 0:
        together = _limits_to_lift(limits, alone, most, gain)
        causes[Cause(together, False)] = rest
    # With three limits or more, whose servers overlap in part, more may have
    # been attributed than there are.
    cut = {}
    for cause, count in causes.items():
        count = min(count, most)
        if count > 0:
            cut[cause] = count
            most -= count
    return cut


def _count_overlaps(alone: dict[document.LostLimit, int], most: int,
                    everything: frozenset[document.LostLimit],
                    gain: Gain) -> dict[document.LostLimit, int]:
    """Return how many servers each limit shares with others.

    Such a server fits if this limit alone is lifted, and also if all limits
    but this one are.
    """
    helpful = [limit for limit, count in alone.items() if count]
    if len(helpful) < 2 or sum(alone.values()) <= most:
        return dict.fromkeys(alone, 0)
    return {limit: max(0, count - (most - gain(everything - {limit})))
            if count else 0 for limit, count in alone.items()}


def _limits_to_lift(limits: Sequence[document.LostLimit],
                    alone: dict[document.LostLimit, int], most: int,
                    gain: Gain) -> tuple[document.LostLimit, ...]:
    """Return limits that have to be lifted together, as few as suffice."""
    remaining = frozenset(limits)
    for limit in reversed(limits):
        if gain(remaining - {limit}) >= most:
            remaining -= {limit}
    # Without those that give back as much by themselves.
    needed = [limit for limit in limits if limit in remaining and
              most - gain(remaining - {limit}) > alone[limit]]
    if len(needed) < 2:
        needed = [limit for limit in limits if limit in remaining]
    return tuple(needed)
