# SPDX-License-Identifier: Apache-2.0

import dataclasses

import hypothesis
from hypothesis import strategies as st

from nfv_sched.ops.run import schedule
from nfv_sched.ops.run import values
from nfv_sched.tests import base

HOSTS = st.sampled_from(('one', 'two', 'three', 'four'))
MOVES = st.lists(st.builds(
    lambda kind, name, seconds, related, **fields: values.Move(
        kind=kind, id=name, name=name, related=tuple(related), copied=None
        if kind == 'shelve' else values.CopiedData(
            memory_mib=7 * seconds, disk_mib=3 * seconds), **fields),
    st.sampled_from(('live', 'live', 'cold', 'shelve')),
    st.sampled_from('abcdefgh'), st.integers(1, 40),
    st.lists(st.sampled_from('abcdefgh'), max_size=2), source=HOSTS,
    destination=HOSTS, only_node=st.sampled_from((None, 0, 1))), max_size=9)


def simulated(moves, parallel):
    """Run moves second by second, as the runner does, at 10 MiB/s."""
    waiting = [move for move in moves if move.copied is not None]
    mib, ended, now = {}, {}, 0
    while waiting or mib:
        blocking = list(mib)
        for move in list(waiting):
            if len(mib) < parallel and not any(
                    schedule.depends(move, each) for each in blocking) and all(
                    end + schedule.pause(move, each) <= now
                    for each, end in ended.items()):
                waiting.remove(move)
                mib[move] = move.copied.mib
            blocking.append(move)
        # The first that has begun to leave each host.
        for move in {move.source: move for move in reversed(mib)}.values():
            mib[move] -= 10
            if not mib[move]:
                ended[move] = now + 1
                del mib[move]
        now += 1
    return max(ended.values(), default=0)


class ScheduleTest(base.TestCase):

    @hypothesis.settings(max_examples=300)
    @hypothesis.given(MOVES, st.integers(1, 4))
    def test_seconds(self, moves, parallel):
        moves = [dataclasses.replace(move, number=number)
                 for number, move in enumerate(moves, 1)]
        self.assertEqual(simulated(moves, parallel),
                         schedule.seconds(moves, 10, parallel))
