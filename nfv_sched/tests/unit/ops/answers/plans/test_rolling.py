# SPDX-License-Identifier: Apache-2.0

from nfv_sched.ops.answers.plans import document
from nfv_sched.ops.answers.plans import rolling
from nfv_sched.ops.model import arrangements
from nfv_sched.ops.model import movable
from nfv_sched.ops.model import trial
from nfv_sched.ops.simulator import start
from nfv_sched.tests.unit.ops.answers.plans import running

HOSTS = ('one', 'two', 'three')


def problems(cloud, plan, hosts, is_emptied=True):
    """Yield what is wrong with a plan: each host is to be empty once."""
    where = {server.uuid: server.host for server in cloud.servers}
    for of_round in plan.rounds:
        closed = {each.host for each in of_round.hosts}
        if len(of_round.hosts) > plan.at_once:
            yield f'too many at once: {closed}'
        for move in (move for each in of_round.hosts for move in each.moves):
            if where[move.id] != move.source:
                yield f'{move} begins elsewhere'
            if move.destination in closed:
                yield f'{move} goes to a host that is emptied'
            where[move.id] = move.destination or None
        yield from (f'{host} is not empty' for host in where.values()
                    if host in closed and is_emptied)
    if sorted(hosts) != sorted([
            *(each.host for each in plan.emptied),
            *(each.host for each in plan.not_emptied)]):
        yield 'hosts are missing, or there twice'
    with start.started(cloud) as state:
        failure = trial.failure(
            start.restored(cloud), arrangements.Positions(cloud, state),
            plan.moves)
        if failure is not None:
            yield f'{failure}'


class RollingTest(running.RunningTestCase):

    def plan(self, *servers, hosts=HOSTS, at_once=1, steps='', shelve=False,
             **changes):
        """Plan for a cloud; returns the hosts of each round.

        :param changes: name of a server -> fields that are otherwise
        """
        cloud = self.running(*servers, steps=steps, **changes)
        self.found = rolling.plan(cloud, hosts, document.DrainOptions(
            make_room=False, relax=False, shelve=shelve), at_once=at_once)
        self.assertEqual([], list(problems(cloud, self.found, hosts)))
        return [[each.host for each in of_round.hosts]
                for of_round in self.found.rounds]

    def moves(self):
        return [(move.name, move.source, move.destination)
                for move in self.found.moves]

    def test_each_host_once(self):
        """The emptiest first; its servers' new hosts come last."""
        self.assertEqual([['three'], ['two'], ['one']], self.plan(
            'a p1 one', 'b p1 one', 'c p1 two'))
        # Nothing moves twice: hosts that were emptied take them.
        self.assertEqual(['c', 'a', 'b'], [
            name for name, _source, _destination in self.moves()])
        self.assertEqual((), self.found.not_emptied)

    def test_moves_twice(self):
        """A server moves again with a host that had to take it."""
        self.assertEqual([['one'], ['two'], ['three']], self.plan(
            'a p4 one', 'b p4 two', 'c p4 two', 'd p4 three'))
        names = [name for name, _source, _target in self.moves()]
        self.assertEqual(sorted('aabcd'), sorted(names))

    def test_tried_again(self):
        """A host for which others make room by coming back."""
        self.assertEqual([['two'], ['three'], ['one']], self.plan(
            'a p4 one', 'b p4 two', 'c p1 two', 'd p4 three', 'e p2 three'))

    def test_stuck(self):
        self.assertEqual([['three'], ['two']], self.plan(
            'a p1 one', 'b p1 one', 'c p1 two', b={'state': 'suspended'}))
        plan, = self.found.not_emptied
        guest, = plan.servers
        self.assertEqual(('one', 'b', 1, ()), (
            plan.host, guest.server, plan.others, plan.moves))
        self.assertEqual(movable.obstacle(
            movable.ObstacleKind.STATE, 'suspended'), guest.obstacle)

    def test_shelved(self):
        """Only if no more hosts can be emptied; then others may be."""
        servers = [f'{name} p4 {host}' for name, host in zip(
            'abcdef', HOSTS * 2)]
        self.assertEqual([['one'], ['two'], ['three']], self.plan(
            *servers, shelve=True))
        self.assertEqual((), self.found.not_emptied)
        # The first host that comes back takes the servers of the next.
        self.assertEqual(['a', 'd'], sorted(
            move.name for move in self.found.moves
            if move.kind == movable.SHELVE))
        self.assertEqual(6, len(self.found.moves))

    def test_not_shelved(self):
        """A locked server keeps the others of its host from it."""
        self.assertEqual([['three'], ['two']], self.plan(
            'a p1 one', 'b p1 one', 'c p1 two', shelve=True,
            a={'state': 'suspended'}, b={'locked': True}))
        plan, = self.found.not_emptied
        self.assertEqual(
            {'a': None, 'b': movable.obstacle(movable.ObstacleKind.LOCKED)},
            {guest.server: guest.not_shelved for guest in plan.servers})
        self.assertEqual([['three'], ['two'], ['one']], self.plan(
            'a p1 one', 'b p1 one', 'c p1 two', shelve=True,
            a={'state': 'suspended'}))

    def test_may_come_back(self):
        self.assertEqual([['three']], self.plan('a p1 one', steps="""\
            - {resize: a, flavor: p2, host: two, confirm: false}
            """))
        one, two = self.found.not_emptied
        self.assertEqual(['a'], [each.server for each in one.unfinished])
        self.assertEqual(['a'], [each.server for each in two.staying])

    def test_server_groups(self):
        self.assertEqual([['three'], ['one'], ['two']], self.plan(
            'a p1 one apart', 'b p1 two apart'))
        self.assertEqual([], self.plan(
            'a p1 one apart', 'b p1 two apart', 'c p1 three apart'))
