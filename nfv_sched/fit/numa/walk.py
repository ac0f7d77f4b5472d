# SPDX-License-Identifier: Apache-2.0
"""Predict the answer of Nova's own search for host NUMA nodes.

``nova.virt.hardware.numa_fit_instance_to_host`` tries permutations of host
cells and takes the first that fits.  On the way it changes the guest cells:
the ``id`` of a guest cell becomes that of the host cell that it last fitted,
its results are cached under that ``id``, and a request for "large" pages
becomes one for the size that was found first.  So where guest cells differ
from each other, or page sizes differ between host cells, the answer depends on
the course of the search, and one guest cell may get the cached result of
another.  :func:`search` follows it step by step, without the permutations
that change nothing, and accepts a host if and only if Nova does.
"""

from collections.abc import Callable, Sequence

# Most permutations of a search; stock Nova needs tens of milliseconds.
MAX_STEPS = 4000

# (guest cell, host cell, page request) -> (whether it fits, page size found
# or 0, whether Nova sets the id of the guest cell, as it may without a fit)
Fits = Callable[[int, int, int | None], tuple[bool, int, bool]]


class Undecided(Exception):
    """The search was given up before it was known what Nova chooses."""


class Traces:
    """State of the guest cells, which Nova's search changes.

    :param pagesizes: page request of each guest cell, KiB, one of
        ``topology.PAGES_*``, or None
    :ivar pinned: position of the host cell whose CPUs each guest cell was
        pinned to last; -1 if none. Where Nova has a cached result, it takes
        the host cell without pinning the vCPUs anew. If this differs from the
        host cell chosen, the pins belong to another NUMA node and the claim
        cannot be recorded.
    """

    __slots__ = ('ids', 'pagesizes', 'pinned')

    def __init__(self, ids: Sequence[int], pagesizes: Sequence[int | None]):
        self.ids = list(ids)
        self.pagesizes = list(pagesizes)
        self.pinned = [-1] * len(self.ids)


def _advance(current: list[int], depth: int, hosts: int) -> bool:
    """Step to the next permutation by ``depth``; False after the last."""
    count = len(current)
    while depth >= 0:
        used = set(current[:depth])
        for position in range(current[depth] + 1, hosts):
            if position not in used:
                current[depth] = position
                used.add(position)
                free = (p for p in range(hosts) if p not in used)
                for index in range(depth + 1, count):
                    current[index] = next(free)
                return True
        depth -= 1
    return False


def search(host_ids: Sequence[int], order: Sequence[int], traces: Traces,
           fits: Fits, accepts: Callable[[int], bool],
           max_steps: int = MAX_STEPS) -> tuple[int, ...] | None:
    """Return the assignment that Nova chooses.

    :param traces: state of the guest cells, changed as Nova changes it
    :param accepts: returns whether the chosen host cells, as a bitmask,
        satisfy the networks and PCI requests
    :returns: position of the host cell of each guest cell; None if Nova finds
        none
    :raises Undecided: after ``max_steps`` permutations
    """
    ids, pagesizes = traces.ids, traces.pagesizes
    count, hosts = len(ids), len(order)
    cached: dict[tuple[int, int], bool] = {}
    current = list(range(count))
    steps = 0
    while True:
        steps += 1
        if steps > max_steps:
            raise Undecided()
        changed = False
        broken = -1
        chosen = 0
        for guest in range(count):
            host = order[current[guest]]
            number = host_ids[host]
            # Nova's fit_cache and not_fit_cache use the current id of the
            # guest cell, which another guest cell may have had before.
            key = (number, ids[guest])
            if (fit := cached.get(key)) is None:
                changed = True
                fit, pagesize, renumbered = fits(guest, host, pagesizes[guest])
                if pagesize:
                    pagesizes[guest] = pagesize
                if renumbered:
                    ids[guest] = number
                    traces.pinned[guest] = host
                cached[key] = fit
            # On a hit Nova sets the id without pinning the vCPUs again.
            elif fit and ids[guest] != number:
                changed = True
                ids[guest] = number
            if not fit:
                broken = guest
                break
            chosen |= 1 << host
        if broken < 0:
            if accepts(chosen):
                return tuple(order[position] for position in current)
            # Networks and PCI devices are tested on whole permutations only,
            # so the next one differs in the last cell.
            broken = count - 1
        elif changed:
            # The guest cells have changed: the same cells may fit next time.
            broken = count - 1
        if not _advance(current, broken, hosts):
            return None
