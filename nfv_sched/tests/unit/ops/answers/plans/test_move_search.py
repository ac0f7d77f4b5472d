# SPDX-License-Identifier: Apache-2.0

import fixtures

from nfv_sched.nova import scheduler
from nfv_sched.ops.answers.plans import document
from nfv_sched.ops.answers.plans import drain
from nfv_sched.ops.answers.plans import refusals
from nfv_sched.ops.answers.plans import rolling
from nfv_sched.ops.model import movable
from nfv_sched.ops.model import trial
from nfv_sched.tests.unit.ops.answers.plans import running
from nfv_sched.tests.unit.ops.answers.plans import test_rolling

#: No host takes "a", unless "u" leaves host three for host two.
TIGHT = ('a p4 one', 'x fat3 two', 'y fat3 two', 'z p4 three', 'u p1 three')
ROOM = document.DrainOptions(make_room=True, relax=False)


class MakingRoomTest(running.RunningTestCase):

    def plan(self, *servers, **kwargs):
        """Empty host one; returns (name, source, destination) of each move."""
        self.cloud_found = self.running(*servers)
        self.found = drain.plan(
            self.cloud_found, 'one', ROOM, **kwargs)
        self.assertEqual([], list(test_rolling.problems(
            self.cloud_found, document.RollingDrain(
                at_once=1, rounds=() if self.found.staying else (
                    document.DrainRound(round=1, enabled=(), hosts=(
                        self.found,)),),
                not_emptied=(self.found,) if self.found.staying else ()),
            ['one'])))
        return [(move.name, move.source, move.destination)
                for move in self.found.moves]

    def test_several_moves(self):
        moves = self.plan(*TIGHT, 'v p1 three')
        self.assertEqual(['u', 'v'], sorted(name for name, *_rest
                                            in moves[:2]))
        self.assertEqual([('a', 'one', 'three')], moves[2:])

    def test_after_others(self):
        """First the guests that find a host as it is."""
        moves = self.plan(*TIGHT, 'b p1 one')
        self.assertEqual(['b', 'u', 'a'], [name for name, *_rest in moves])

    def test_no_room(self):
        self.assertEqual([], self.plan(
            'a p4 one', 'x p4 two', 'y p4 two', 'z p4 three', 'u p1 three'))
        guest, = self.found.staying
        self.assertEqual({refusals.LackKind.PLACEMENT: 2},
                         running.causes(guest))
        self.assertEqual((False, None), (self.found.exact, self.found.bound))

    def test_server_group(self):
        """Only the host without another member is of use."""
        moves = self.plan('a p1 one apart', 'b p1 two apart', 'z p4 three',
                          'u p4 three')
        (_name, *places), last = moves
        self.assertEqual(['three', 'two'], places)
        self.assertEqual(('a', 'one', 'three'), last)

    def test_strict(self):
        # Only on host two there are free CPUs, far from the switch.
        moves = self.plan('a strict one', 'x strict two', 'y strict two',
                          'z strict three', 's p4 three', 'u p2 three')
        (_name, *places), last = moves
        self.assertEqual(['three', 'two'], places)
        self.assertEqual(('a', 'one', 'three'), last)
        # Its limits would be lost if it were moved live by Nova 33.
        carried = scheduler.live_migration_carries_limits()
        self.assertEqual(
            (movable.LIVE, None) if carried else
            (movable.COLD, movable.obstacle(movable.ObstacleKind.LIMITS)),
            (self.found.servers[1].how, self.found.servers[1].obstacle))

    def test_lost_limits(self):
        """A strict server is migrated cold where a live one loses limits."""
        with fixtures.MonkeyPatch(
                'nfv_sched.nova.scheduler.live_migration_carries_limits',
                lambda: False):
            self.test_strict()

    def plan_refused(self, refuses):
        """Plan where the simulator refuses the moves that a function says."""
        real = trial.failure

        def failure(state, known, moves, **more):
            for done, move in enumerate(moves):
                if refuses(move):
                    return trial.Failure(done, move, 'the disk is full')
            return real(state, known, moves, **more)

        with fixtures.MonkeyPatch(
                'nfv_sched.ops.model.trial.failure', failure):
            return drain.plan(self.running(*TIGHT), 'one', ROOM)

    def test_refused_at_last(self):
        """The server may not go where its own move was refused."""
        found = self.plan_refused(
            lambda move: (move.name, move.destination) == ('a', 'three'))
        self.assertEqual((), found.moves)
        self.assertEqual(('a to three: the disk is full',), found.failed)

    def test_refused_by_the_simulator(self):
        found = self.plan_refused(lambda move: move.name == 'u')
        self.assertEqual(['a'], [move.name for move in found.moves[1:]])
        self.assertEqual(('u to two: the disk is full',), found.failed)

    def test_rounds(self):
        cloud = self.running(*TIGHT)
        self.assertEqual(1, len(rolling.plan(cloud, ['one']).not_emptied))
        found = rolling.plan(cloud, ['one'], ROOM)
        self.assertEqual(['u', 'a'], [move.name for move in found.moves])
        # Neither loses nor gets servers while it is to be empty.
        found = rolling.plan(cloud, test_rolling.HOSTS, ROOM, at_once=2)
        self.assertEqual([], list(test_rolling.problems(
            cloud, found, test_rolling.HOSTS)))
        self.assertEqual((), found.not_emptied)
