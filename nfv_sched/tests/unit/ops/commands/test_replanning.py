# SPDX-License-Identifier: Apache-2.0

import dataclasses

from nfv_sched.ops.answers.plans import document
from nfv_sched.ops.answers.plans import drain
from nfv_sched.ops.answers.plans import rearrange
from nfv_sched.ops.answers.plans import rolling
from nfv_sched.ops.cli import errors
from nfv_sched.ops.commands import plan_file
from nfv_sched.ops.commands import replanning
from nfv_sched.ops.run import values
from nfv_sched.tests.unit.ops.answers.plans import running
from nfv_sched.tests.unit.ops.answers.plans import test_move_search

OPTIONS = document.DrainOptions(make_room=True, relax=True, shelve=True,
                                cold_for_vfs=True)


class ReplanningTest(running.RunningTestCase):

    def test_drain_options(self):
        """A server elsewhere that makes room is none of those to be moved."""
        cloud = self.running(*test_move_search.TIGHT, 'b p1 one')
        server = next(each for each in cloud.servers if each.name == 'a')
        plan = drain.plan(cloud, 'one', OPTIONS, uuids={server.uuid})
        self.assertEqual(['u', 'a'], [each.server for each in plan.servers])
        self.assertEqual(
            ('host', 'drain', '--cold-for-vfs', '--make-room', '--relax',
             '--shelve',
             f'--server={server.uuid}', '--', 'one'),
            plan_file.moves_of(plan).command)
        plan = document.with_time(plan, 5, 3)
        self.assertEqual(plan, replanning.plan_again(plan, cloud).content)

    def test_evacuation(self):
        """Of hosts that are down still; one that is unknown is an error."""
        cloud = self.running('a p1 one', 'b p1 two')
        plan = drain.evacuate(cloud, ['one', 'two'], relax=True, avoid=('x*',))
        self.assertEqual(('host', 'evacuate', '--relax', '--avoid=x*', '--',
                          'one', 'two'), plan_file.moves_of(plan).command)
        down = dataclasses.replace(cloud, hosts=tuple([
            dataclasses.replace(host, up=host.name != 'two')
            for host in cloud.hosts]))
        again = replanning.plan_again(plan, down).content
        self.assertEqual((('two',), ['b'], True, ('x*',)), (
            again.hosts, [each.server for each in again.servers],
            again.relax, again.avoid))
        self.assertRaises(errors.CloudUnreadError, replanning.plan_again,
                          plan, cloud)
        self.assertRaises(
            errors.NotInCloudError, replanning.plan_again,
            dataclasses.replace(plan, hosts=('four',)), down)

    def test_consolidation(self):
        """A host that is empty already is not to be emptied once more."""
        plan = rearrange.plan(
            self.running('a p1 one', 'b p4 two'), document.RearrangeOptions(
                spread=False, max_moves=3, avoid=('x',), hosts=1))
        self.assertEqual(
            ('cloud', 'consolidate', '--avoid=x', '--max-moves=3',
             '--hosts=1'), plan_file.moves_of(plan).command)
        self.assertEqual(['a'], [move.server for move in plan.moves])
        again = replanning.plan_again(
            plan, self.running('a p1 two', 'b p4 two')).content
        self.assertEqual((0, (), True), (
            again.options.hosts, again.moves, again.enough))
        again = replanning.plan_again(
            plan, self.running('a p4 one', 'b p4 two', 'c p4 three')).content
        self.assertEqual(('1 host emptied, not 2',),
                         plan_file.moves_of(again).left_undone)

    def test_options_of_rounds(self):
        cloud = self.running(*test_move_search.TIGHT)
        plan = rolling.plan(cloud, ['one'], OPTIONS)
        self.assertEqual(
            ('host', 'drain', '--at-once=1', '--cold-for-vfs', '--make-room',
             '--relax', '--shelve', '--', 'one'),
            plan_file.moves_of(plan, 1).command)
        plan = document.with_time(plan, 5, 3)
        estimate, = document.estimates_of(plan)
        again = replanning.plan_again(plan, cloud, round_number=1).content
        self.assertEqual([estimate], document.estimates_of(again))


class RoundsTest(running.RunningTestCase):
    def planned(self, *servers, at_once=1, shelve=False,
                hosts=('one', 'two', 'three')):
        cloud = self.running(*servers)
        self.options = document.DrainOptions(
            make_room=False, relax=False, shelve=shelve)
        self.document = rolling.plan(
            cloud, hosts, self.options, at_once=at_once)
        return self.rounds()

    def again(self, round_number, *servers, closed=(), failed=(), done=(),
              reason=values.REASON, away=(), left=()):
        """Plan anew, in a cloud of these servers.

        :param closed: names of hosts that are disabled for the round
        :param failed: names and destinations of moves that have failed
        :param away: names of hosts that are down
        :param left: names of hosts that have left the cloud
        """
        cloud = running.disabled(
            self.running(*servers), *closed, reason=reason)
        cloud = dataclasses.replace(cloud, hosts=tuple([
            dataclasses.replace(host, up=host.name not in away)
            for host in cloud.hosts if host.name not in left]))
        uuids = {server.name: server.uuid for server in cloud.servers}
        self.document = replanning.plan_again(
            self.document, cloud, {(uuids[name], host): 'it has failed'
                                   for name, host in failed},
            round_number, done).content
        self.assertEqual([self.options] * len(self.plans()), [
            each.options for each in self.plans()])
        return self.rounds()

    def plans(self):
        return [*[host for each in self.document.rounds
                  for host in each.hosts], *self.document.not_emptied]

    def rounds(self):
        return {each.round: [host.host for host in each.hosts]
                for each in self.document.rounds}

    def moves(self, number):
        return [(move.name, move.source, move.destination) for move
                in plan_file.moves_of(self.document, number).moves]

    def test_numbers(self):
        servers = 'a p4 one', 'b p4 one', 'c p4 two', 'd p4 three'
        self.assertEqual({1: ['two'], 2: ['one'], 3: ['three']},
                         self.planned(*servers))
        self.assertEqual([('c', 'two', 'three')], self.moves(1))
        self.assertEqual({2: ['one'], 3: ['three']}, self.again(
            2, 'a p4 one', 'b p4 two', 'c p4 three', 'd p4 three',
            closed=['one']))
        self.assertEqual([('a', 'one', 'two')], self.moves(2))
        self.assertEqual([('c', 'three', 'one'), ('d', 'three', 'one')],
                         self.moves(3))
        second, third = self.document.rounds
        self.assertEqual((('two',), ('two', 'one')),
                         (second.enabled, third.enabled))
        plan = plan_file.moves_of(self.document)
        self.assertEqual((2, 3, ('one',), ('two',)), (
            plan.round, plan.next_round, plan.closed_hosts,
            plan.enabled_hosts))
        for number in (1, 4):
            error = self.assertRaises(
                ValueError, plan_file.moves_of, self.document, number)
            self.assertEqual(f'there is no round {number}: the plan has 2 '
                             'rounds, 2 to 3', str(error))

    def test_failed(self):
        """Another host takes it; one that was done is still to come back."""
        self.assertEqual({1: ['one', 'three'], 2: ['two']}, self.planned(
            'a p1 one', 'b p1 three', 'c p1 two', 'd p1 two', at_once=2))
        rest = 'b p1 three', 'c p1 two', 'd p1 two', 'a p1 two'
        self.assertEqual({1: ['one', 'three'], 2: ['two']}, self.again(
            1, *rest, closed=['one', 'three'], done=[1]))
        self.assertEqual([('b', 'three', 'two')], self.moves(1))
        self.assertEqual(('one', 'three'), self.document.rounds[1].enabled)
        # There is no other host but that which is not back yet.
        self.assertEqual({1: ['one'], 2: ['two', 'three']}, self.again(
            1, *rest, closed=['one', 'three'], failed=[('b', 'two')]))
        self.assertEqual([], self.moves(1))
        self.assertEqual(('three',), self.document.rounds[0].given_up)
        self.assertEqual(
            ('three is not emptied in this round',),
            plan_file.moves_of(self.document).left_undone)
        self.assertIn(('b', 'three', 'one'), self.moves(2))
        # The next new plan tries it again.
        self.assertEqual({1: ['one', 'three'], 2: ['two']}, self.again(
            1, *rest, closed=['one', 'three']))
        self.assertEqual((), self.document.rounds[0].given_up)

    def test_nowhere(self):
        """No other host is disabled in the same run."""
        self.planned('a p1 one', 'b p1 two', 'c p1 two', 'd p1 two',
                     hosts=('one', 'two'))
        self.assertEqual({1: [], 2: ['two']}, self.again(
            1, 'a p1 one', 'b p1 two', 'c p1 two', 'd p1 two', closed=['one'],
            failed=[('a', 'two'), ('a', 'three')]))
        plan = plan_file.moves_of(self.document)
        self.assertEqual(
            ((), (), ('one',), 2, ('one is not emptied in this round',)),
            (plan.moves, plan.closed_hosts, plan.given_up_hosts,
             plan.next_round, plan.left_undone))
        # It is disabled, so it takes none of the others.
        self.assertEqual({'three'}, {to for _name, _from, to in self.moves(2)})
        last, = plan_file.moves_of(self.document, 2).left_undone[1:]
        self.assertRegex(last, r'a \(\S+\) stays on one; its move to (two|'
                         'three) has failed: it has failed')

    def test_only_one(self):
        self.planned('a p1 one', hosts=('one', 'three'))
        self.assertEqual({2: []}, self.again(
            2, 'a p1 one', closed=['one'],
            failed=[('a', 'two'), ('a', 'three')]))
        plan = plan_file.moves_of(self.document)
        self.assertEqual((2, None, ('three',), ('one',)), (
            plan.round, plan.next_round, plan.enabled_hosts,
            plan.given_up_hosts))
        self.assertEqual('one is not emptied', plan.left_undone[0])
        self.assertEqual(2, len(plan.left_undone))

    def test_shelved(self):
        """If no other host can be emptied by then, in the same round."""
        self.planned('a p1 one', hosts=('one',), shelve=True)
        self.assertEqual({1: ['one']}, self.again(
            1, 'a p1 one', closed=['one'],
            failed=[('a', 'two'), ('a', 'three')]))
        self.assertEqual([('a', 'one', '')], self.moves(1))
        self.assertEqual((), self.document.rounds[0].given_up)

    def test_not_begun(self):
        """Hosts that are not disabled yet may change their rounds."""
        self.assertEqual({1: ['two'], 2: ['one']}, self.planned(
            'a p1 one', 'b p1 one', 'c p1 two', hosts=('one', 'two')))
        self.assertEqual({1: ['one'], 2: ['two']}, self.again(
            1, 'a p1 one', 'b p1 two', 'c p1 two'))

    def test_disabled_by_others(self):
        """A host that was disabled before takes no servers in any round."""
        self.planned('a p4 one', 'b p4 one', 'c p1 two')
        self.again(1, 'a p4 one', 'b p4 one', 'c p1 two', closed=['three'],
                   reason='broken')
        self.assertEqual([], [
            move for number in self.rounds() for move in self.moves(number)
            if move[2] == 'three'])

    def test_disabled_before(self):
        """A round that has begun goes on with a host closed before it."""
        self.planned('a p1 one', 'b p1 one', 'c p1 two', 'd p1 two',
                     'e p1 two', hosts=('one', 'two'))
        self.assertEqual({1: ['one'], 2: ['two']}, self.rounds())
        self.assertEqual({1: ['one'], 2: ['two']}, self.again(
            1, 'a p1 three', 'b p1 one', closed=['one'], done=[1],
            reason='broken'))

    def test_back(self):
        """A host that was emptied and enabled again is done."""
        self.planned('a p1 one', 'b p1 three', 'c p1 two', 'd p1 two',
                     at_once=2)
        self.assertEqual({1: ['three'], 2: ['two']}, self.again(
            1, 'b p1 three', 'c p1 two', 'd p1 two', 'a p1 two', 'e p1 one',
            closed=['three'], done=[1]))

    def test_emptied_before(self):
        """One that an earlier plan has emptied is done when it is enabled."""
        self.planned('b p1 three', 'c p1 two', at_once=2)
        self.assertIn('one', self.rounds()[1])
        self.assertNotIn('one', self.again(
            1, 'b p1 three', 'c p1 two', closed=['three'], done=[1])[1])

    def test_left_the_cloud(self):
        self.planned('a p1 one', 'b p1 two', 'c p1 three')
        self.assertEqual([['one'], ['three'], ['two']],
                         list(self.rounds().values()))
        self.assertEqual({1: ['one'], 2: ['three']}, self.again(
            1, 'a p1 one', 'c p1 three', closed=['one'], left=['two']))
        # Nor is one that was emptied before.
        self.planned('a p1 one', 'b p1 two', 'c p1 three')
        self.assertEqual({1: ['three'], 2: ['two']}, self.again(
            1, 'a p1 two', 'b p1 two', 'c p1 three', left=['one'], done=[1]))

    def test_gone_again(self):
        """A host of an earlier round that is down by now is not needed."""
        self.planned('a p1 one', 'b p1 one', 'c p1 two')
        self.assertEqual({2: ['two'], 3: ['one']}, self.again(
            2, 'a p1 one', 'b p1 one', 'c p1 two', closed=['two'],
            away=['three']))
        self.assertEqual((), self.document.rounds[0].enabled)
