# SPDX-License-Identifier: Apache-2.0
"""Plans that empty a host, against all ways in the simulator.

Each host of generated clouds is emptied in the simulator in every order and
with every destination; the plan moves as many guests as the best of them.  The
number of clouds is a fiftieth of ``NFV_SCHED_EQUIVALENCE_CASES``.
"""

import hypothesis

from nfv_sched.nova import scheduler
from nfv_sched.ops.answers.plans import document
from nfv_sched.ops.answers.plans import drain
from nfv_sched.ops.answers.plans import rolling
from nfv_sched.ops.model import arrangements
from nfv_sched.ops.model import movable
from nfv_sched.ops.model import trial
from nfv_sched.ops.simulator import start
from nfv_sched.tests.equivalence import inhabited
from nfv_sched.tests.equivalence import test_stock
from nfv_sched.tests.unit.ops.answers.plans import test_rolling

#: Hosts with more guests are not emptied in every order.
MOST = 5


class _Ways:
    """All ways to empty a host, within the context of its cloud."""

    def __init__(self, found, host):
        self._found = found
        self._known = known = arrangements.Positions(
            found, start.restored(found))
        self._kinds = {}
        for uuid in known.on_host[host]:
            kinds = movable.COLD, movable.LIVE
            if not known.why_not(movable.COLD, uuid) and (
                    self._loses_limits(uuid)):
                kinds = movable.COLD,
            for kind in kinds:
                if known.why_not(kind, uuid) is None:
                    self._kinds[uuid] = kind
        self._moves = [
            trial.move_of(known, uuid, host, name, kind)
            for uuid, kind in self._kinds.items()
            for name in known.hosts if name != host]
        # A host that refuses a guest now takes it no more then.
        self._moves = [move for move in self._moves if self._after([move])]
        self._best = 0
        self._seen = set()

    def _loses_limits(self, uuid):
        """Up to Nova 33 fewer hosts may take a strict guest live than cold."""
        terms = self._known.guest(uuid).counted.guest_request.terms
        return terms is not None and terms.strict and (
            not scheduler.live_migration_carries_limits())

    @property
    def guests(self):
        return len(self._kinds)

    def _after(self, moves):
        """What the cloud is like after moves; None if one fails."""
        state = start.restored(self._found)
        if trial.failure(state, self._known, moves) is not None:
            return None
        moved = {move.id for move in moves}
        return frozenset(
            (server.uuid, server.host.name, server.nodes and tuple(
                server.nodes), str(server.devices))
            for server in state.servers.values() if server.uuid in moved)

    def most(self, moves=()):
        self._best = max(self._best, len(moves))
        moved = {move.id for move in moves}
        could = {move.id for move in self._moves}
        for move in self._moves:
            if self._best == len(could) or len(could) <= self._best:
                break
            if move.id in moved:
                continue
            after = self._after([*moves, move])
            if after is not None and after not in self._seen:
                self._seen.add(after)
                self.most((*moves, move))
        return self._best


class TestDrain(test_stock.EquivalenceTestCase):

    def test_most_guests_move(self):
        seen = dict.fromkeys(
            ('plans', 'exact', 'skipped', 'moves', 'cold', 'not all',
             'refused', 'made room'), 0)

        @hypothesis.settings(
            test_stock.SETTINGS, max_examples=max(6, test_stock.CASES // 50))
        @hypothesis.given(case=inhabited.clouds())
        def check(case):
            _seed, found = case
            for host in found.hosts:
                self._check(found, host.name, seen)

        check()
        print('drain: %s' % seen)
        self.assert_seen(seen['moves'], seen['plans'] // 4)
        self.assert_seen(seen['exact'], seen['plans'] * 9 // 10)
        self.assert_seen(seen['not all'], 0)

    def _check(self, found, host, seen):
        plan = drain.plan(found, host, seconds=600)
        self.assertEqual(plan.exact, plan.bound == len(plan.moves))
        seen['exact'] += plan.exact
        self.assertEqual(
            {server.uuid for server in found.servers if server.host == host},
            {guest.server_id for guest in plan.servers})
        self.assertTrue(all(
            guest.obstacle or guest.lacks for guest in plan.staying))
        seen['plans'] += 1
        seen['moves'] += len(plan.moves)
        seen['cold'] += sum(move.kind == movable.COLD for move in plan.moves)
        seen['refused'] += len(plan.failed)
        with start.started(found) as state:
            known = arrangements.Positions(found, state)
            self.assertIsNone(trial.failure(
                start.restored(found), known, plan.moves))
            ways = _Ways(found, host)
            if ways.guests > MOST:
                seen['skipped'] += 1
                return
            self.assertEqual(ways.most(), len(plan.moves))
            seen['not all'] += len(plan.moves) < ways.guests
        if len(plan.moves) < ways.guests:
            self._check_room(found, host, plan, seen)

    def _check_room(self, found, host, plan, seen):
        """Moves on other hosts are possible, and do not move fewer guests."""
        more = drain.plan(found, host, document.DrainOptions(
            make_room=True, relax=False), seconds=600)
        self.assertEqual(plan.moves, more.moves[:len(plan.moves)])
        self.assertEqual(
            sorted(guest.server_id for guest in plan.servers),
            sorted(guest.server_id for guest in more.servers
                   if guest.makes_room_for is None))
        seen['made room'] += len(plan.staying) - len(more.staying)
        self.assertEqual([], list(test_rolling.problems(
            found, document.RollingDrain(
                at_once=1, rounds=(document.DrainRound(
                    round=1, enabled=(), hosts=(more,)),), not_emptied=()),
            [host],
            is_emptied=not more.staying)))

    def test_rounds(self):
        """Each host is empty once, as far as moves can do that."""
        seen = dict.fromkeys(('plans', 'rounds', 'moves', 'not emptied'), 0)

        @hypothesis.settings(
            test_stock.SETTINGS, max_examples=max(6, test_stock.CASES // 100))
        @hypothesis.given(case=inhabited.clouds(),
                          at_once=hypothesis.strategies.integers(1, 2),
                          make_room=hypothesis.strategies.booleans())
        def check(case, at_once, make_room):
            _seed, found = case
            hosts = [host.name for host in found.hosts]
            plan = rolling.plan(found, hosts, document.DrainOptions(
                make_room=make_room, relax=False), at_once=at_once)
            self.assertEqual([], list(test_rolling.problems(
                found, plan, hosts)))
            seen['plans'] += 1
            seen['rounds'] += len(plan.rounds)
            seen['moves'] += len(plan.moves)
            seen['not emptied'] += len(plan.not_emptied)

        check()
        print('rounds: %s' % seen)
        self.assert_seen(seen['moves'], 0)
