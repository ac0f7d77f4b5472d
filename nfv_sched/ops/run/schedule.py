# SPDX-License-Identifier: Apache-2.0
"""Say which moves of a plan wait for which, and how long all of them take."""

import bisect
from collections.abc import Iterable
import math

from nfv_sched.ops.run import values


def depends(move: values.Move, earlier: values.Move) -> bool:
    if move.is_shelving:
        # The last resort: not before all that can move has moved.
        return not earlier.is_shelving
    # It may need the capacity that the other frees, and a claim depends on
    # those before it, unless each can only be on a NUMA node of its own. Moves
    # that leave the same host do not depend on each other.
    return (move.id == earlier.id
            or move.source == earlier.destination
            or move.destination == earlier.source
            or move.destination == earlier.destination and (
                None in (move.only_node, earlier.only_node)
                or move.only_node == earlier.only_node)
            or earlier.id in move.related or move.id in earlier.related)


def pause(move: values.Move, earlier: values.Move) -> int:
    """Return for how many seconds Nova may not know of an earlier move."""
    if earlier.kind == 'live' and earlier.id in move.related:
        return values.SYNCED_SECONDS
    return values.FREED_SECONDS * (
        earlier.is_of_server and earlier.source == move.destination)


def seconds(moves: Iterable[values.Move], mib_per_second: int,
            parallel: int) -> int | None:
    """Return how long migrations take, if only copying takes time.

    They begin as ``plan run`` has them begin, and a host sends one server at a
    time: so does Nova, if they are live; others share the network.

    :param parallel: maximum number of moves at a time
    :returns: None if it is not known what one of them copies
    """
    migrations = [move for move in moves if move.copied is not None]
    # Those that have not begun -> those of them that they wait for.
    waiting = {number: {each for each in range(number)
                        if depends(move, migrations[each])}
               for number, move in enumerate(migrations)}
    ready = [0.0] * len(migrations)
    ends = [0.0]  # sorted
    sent: dict[str, float] = {}  # host -> when it has sent all so far
    while waiting:
        free = [each for each, earlier in waiting.items() if not earlier]
        now = max(min(ready[each] for each in free), ends[-parallel:][0])
        number = next(each for each in free if ready[each] <= now)
        del waiting[number]
        move = migrations[number]
        if (mib := move.copied.mib) is None:
            return None
        end = sent[move.source] = mib / mib_per_second + max(
            now, sent.get(move.source, 0.0))
        bisect.insort(ends, end)
        for each, earlier in waiting.items():
            if number in earlier:
                earlier.remove(number)
                ready[each] = max(
                    ready[each], end + pause(migrations[each], move))
    return math.ceil(ends[-1])
