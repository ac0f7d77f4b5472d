# SPDX-License-Identifier: Apache-2.0

import dataclasses

import fixtures

from nfv_sched.nova import scheduler
from nfv_sched.ops.answers.plans import document
from nfv_sched.ops.answers.plans import drain
from nfv_sched.ops.answers.plans import refusals
from nfv_sched.ops.answers.plans import rendering
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.model import arrangements
from nfv_sched.ops.model import movable
from nfv_sched.ops.model import trial
from nfv_sched.ops.simulator import start
from nfv_sched.tests.unit.ops.answers.plans import running
from nfv_sched.tests.unit.ops.answers.plans import test_move_search

Kind = movable.ObstacleKind
STOPPED = movable.obstacle(Kind.STATE, 'stopped')


class DrainTest(running.RunningTestCase):

    def plan(self, *servers, host='one', steps='', head=running.HEAD,
             options=None, failed=None, **changes):
        """Return the plan as name -> (kind, destination, reason or causes).

        :param head: all of the cloud but the steps
        :param changes: name of a server -> fields that are otherwise
        """
        self.found = drain.plan(
            self.running(*servers, steps=steps, head=head, **changes), host,
            document.DrainOptions(**options or {}),
            failed=failed or {})
        return {each.server: (each.how, each.destination,
                              each.obstacle if each.how and each.destination
                              else running.causes(each))
                for each in self.found.servers}

    def refuse(self, why, degrades=False):
        """Let the simulator refuse moves, for which there is a reason."""
        real = trial.failure

        def failure(state, known, moves, **more):
            for done, move in enumerate(moves):
                if why(move) is not None:
                    return trial.Failure(done, move, why(move), degrades)
            return real(state, known, moves, **more)

        self.useFixture(fixtures.MonkeyPatch(
            'nfv_sched.ops.model.trial.failure', failure))

    def evacuate(self, *servers, hosts=('one',), avoid=(), **changes):
        """Return the destination of each server; None if it stays."""
        self.found = drain.evacuate(
            self.running(*servers, **changes), hosts, avoid=avoid)
        self.assertEqual({'evacuate'}, {
            move.kind for move in self.found.moves})
        return {each.server: each.destination for each in self.found.servers}

    def test_evacuated(self):
        """In whatever task, and locked, but not in every state."""
        found = self.evacuate(
            'a p3 one', 'b p1 one', 'c strict one', 'd p1 one', 'e p1 one',
            'x p4 two',
            'y p4 two', b={'task': 'powering-off', 'locked': True},
            d={'state': 'shelved'}, e={'task': 'migrating'})
        self.assertEqual({'a': 'three', 'b': 'three', 'c': 'three',
                          'd': None, 'e': None}, found)
        self.assertEqual([Kind.STATE, Kind.BUSY], [
            each.obstacle.kind for each in self.found.servers[-2:]])

    def test_evacuated_without_what_they_prefer(self):
        """Where that is kept if there is such a host."""
        found = self.evacuate('a prefer one', 'x strict two', 'y strict two',
                              'z strict three')
        self.assertEqual({'a': 'three'}, found)
        found = self.evacuate(
            'a prefer one', 'v strict two', 'w strict two',
            'y strict three', 'z strict three')
        self.assertIsNotNone(found['a'])

    def test_evacuated_together(self):
        """All servers of the hosts count; none goes to one of them."""
        found = self.evacuate(
            'a p4 one', 'b p4 one', 'd p4 two', 'z p4 three',
            hosts=('one', 'two'))
        self.assertEqual(1, sum(
            found[name] == 'three' for name in ('a', 'b', 'd')))
        self.assertEqual({None, 'three'}, set(found.values()))
        self.assertTrue(self.found.exact)

    def test_max_moves(self):
        """The first of the plan; who stays in any case keeps the reason."""
        servers = ('a p1 one', 'b p4 one', 'c p3 one', 'y p4 two',
                   'z p4 two', 'w p4 three')
        all_moves = self.plan(*servers)
        moves = self.found.moves
        self.assertEqual((True, 2), (self.found.exact, len(moves)))
        for most in (1, 2, 3):
            found = self.plan(*servers, options={'max_moves': most})
            self.assertEqual(moves[:most], self.found.moves)
            self.assertEqual((True, min(most, 2)),
                             (self.found.exact, self.found.bound))
            self.assertNotIn('No other', rendering.drain_text(self.found)[0])
            beyond = {move.name for move in moves[most:]}
            for name, outcome in found.items():
                self.assertEqual(
                    (None, None, movable.obstacle(Kind.MAX_MOVES))
                    if name in beyond else all_moves[name], outcome)

    def test_only_node(self):
        """That of the switch, unless more than that node may matter."""
        strict, options = 'nfv:vswitch_numa_affinity: strict', 'options:\n'
        pages = '\n      hw:mem_page_size: any'
        vf = "\n      pci_passthrough:alias: 'nic:1'"
        for what, more, server, kind, node in (
                (strict, '', 'strict', 'live', 0),
                (strict, '\n    disk: 1', 'strict', 'cold', 0),
                (strict, '\n    disk: 1', 'strict', 'live', None),
                (strict, pages, 'strict', 'cold', None),
                (strict, vf, 'strict', 'evacuate', None),
                (options, '  nfv_sched: {strict_enforcement: predicted}\n',
                 'strict', 'cold', None),
                (strict, '', 'strict together', 'cold', None),
                (strict, '', 'prefer', 'cold', None)):
            cloud = self.running(
                'a {} one {}'.format(*server.partition(' ')[::2]),
                head=running.HEAD.replace(what, what + more))
            with start.started(cloud) as state:
                self.assertEqual(node, trial.move_of(
                    arrangements.Positions(cloud, state),
                    cloud.servers[0].uuid, 'one', 'two', kind).only_node)

    def shelve(self, *servers, **changes):
        return self.plan(*servers, options={'shelve': True}, **changes)

    def test_avoid(self):
        """Neither such hosts, nor such servers, in any way."""
        avoided = movable.obstacle(Kind.AVOIDED)
        for option in ({}, {'shelve': True}):
            self.assertEqual(
                {'a': ('live', 'three', None), 'b': (None, None, avoided)},
                self.plan('a p1 one', 'b p1 one', 'x p1 two', options={
                    'avoid': ('b', 'tw?', 'one'), **option}))
        self.assertEqual(avoided, self.found.servers[1].not_shelved)
        for avoid, how in (
                ((), 'live'), (('two',), None), (('u', '[xy]'), None)):
            self.assertEqual(how, self.plan(
                *test_move_search.TIGHT, options={
                    'make_room': True, 'avoid': avoid})['a'][0])
        self.assertEqual({'a': None, 'b': 'three'}, self.evacuate(
            'a p1 one', 'b p1 one', avoid=('a', 'two')))

    def test_policies(self):
        """A guest that has what it prefers goes only where it is kept."""
        found = self.plan('a prefer one', 'x strict two', 'y strict two',
                          'z strict three')
        kind, destination, reason = found['a']
        self.assertEqual('three', destination)
        if scheduler.live_migration_carries_limits():
            self.assertEqual(('live', None), (kind, reason))
        else:
            # A live migration of this Nova may end on either node.
            self.assertEqual('cold', kind)
            self.assertEqual(Kind.REFUSED_LIVE, reason.kind)
            self.assertIn('three: nfv:vswitch_numa_affinity=prefer',
                          reason.name)
        self.assertEqual((), self.found.failed)

    def test_refused_by_the_simulator(self):
        """What it refuses is not tried again, and told."""
        refused = None
        self.refuse(lambda move: 'the disk is full' if (
            move.destination == 'two' or move.kind == refused) else None)
        found = self.plan('a p1 one', 'b p4 three', a={'state': 'stopped'})
        self.assertEqual(('cold', 'three', STOPPED), found['a'])
        refused = 'live'
        self.assertEqual(
            ('cold', 'three'), self.plan('a p1 one', 'b p4 three')['a'][:2])
        refused = 'cold'
        found = self.plan('a p1 one', 'b p4 three', a={'state': 'stopped'})
        self.assertEqual(
            (None, None, {refusals.LackKind.SIMULATOR: 2}), found['a'])
        self.assertEqual(['the disk is full'], [
            each.why for each in self.found.servers[0].lacks])
        self.assertEqual(2, len(self.found.failed))
        self.assertIsNone(self.found.bound)

    def test_live_elsewhere(self):
        """Rather live to another host than cold."""
        def why(move):
            return 'the disk is full' if (
                move.destination, move.kind) == ('three', 'live') else None

        self.refuse(why)
        found = self.plan('a p1 one', 'b p4 three')
        self.assertEqual(('live', 'two', None), found['a'])
        self.assertEqual(('a to three: the disk is full',),
                         self.found.failed)
        self.refuse(why, degrades=True)
        found = self.plan('a p1 one', 'b p4 three')
        self.assertEqual(
            ('cold', 'three', movable.obstacle(
                Kind.REFUSED_LIVE, 'three: the disk is full')), found['a'])

    def test_where_it_was_not_tried_cold(self):
        """That it cannot go there live is not why it stays."""
        self.refuse(lambda move: 'no' if move.destination == 'three' else None)
        self.refuse(lambda move: 'worse' if (
            move.name, move.kind) == ('a', 'live') else None, degrades=True)
        found = self.plan('a p3 one', 'b fat3 one', 'c p4 two', 'd p4 three')
        self.assertEqual('two', found['b'][1])
        self.assertEqual(
            (None,
             {refusals.LackKind.GUESTS: 1, refusals.LackKind.SIMULATOR: 1}),
            found['a'][::2])

    def test_cold_if_live_fails_everywhere(self):
        """No more than some hosts are tried."""
        self.refuse(lambda move: 'no' if move.kind == 'live' else None)
        names = [f'g{number}' for number in range(8)]
        found = self.plan(*(f'{name} p1 one' for name in names))
        self.assertEqual(
            {'cold'}, {kind for kind, *_rest in found.values()})
        self.assertEqual(8, len(self.found.moves))
        self.assertEqual(6, len(self.found.failed))

    def unfinished(self, cloud, host):
        return [(each.server, rendering.unfinished_move(each, host))
                for each in drain.unfinished(cloud, host)]

    def test_on_its_way(self):
        cloud = self.running('a p1 one', 'b p1 one')
        a, b = cloud.servers
        moves = (
            snapshot.Migration(
                uuid='1', server=a.uuid, kind='live-migration',
                status='running', source='one', target='two'),
            # Nobody moves this one: a record that was left behind.
            snapshot.Migration(
                uuid='2', server=b.uuid, kind='live-migration',
                status='running', source='one', target='two'))
        cloud = dataclasses.replace(cloud, moves=moves, servers=(
            dataclasses.replace(a, task='migrating'), b))
        self.assertEqual(
            [('a', 'its live migration from one is running')],
            self.unfinished(cloud, 'two'))
        self.assertEqual((), drain.unfinished(cloud, 'one'))
        # An evacuation comes to the host, and leaves the other for good.
        evacuated = dataclasses.replace(
            cloud, moves=(dataclasses.replace(
                moves[0], kind='evacuation', status='pre-migrating'),),
            servers=(dataclasses.replace(a, task='rebuilding'), b))
        self.assertEqual(
            [('a', 'its evacuation from one is pre-migrating')],
            self.unfinished(evacuated, 'two'))
        evacuated = dataclasses.replace(
            evacuated, moves=(dataclasses.replace(
                evacuated.moves[0], status='done'),),
            servers=(dataclasses.replace(
                a, host='two', task='rebooting'), b))
        self.assertEqual((), drain.unfinished(evacuated, 'one'))
        # Others are told of when they are drained.
        self.assertEqual((), drain.unfinished(cloud, 'three'))
        left = dataclasses.replace(
            cloud, moves=(dataclasses.replace(
                moves[0], kind='resize', status='finished'),))
        self.assertEqual((), drain.unfinished(left, 'two'))
        moved = dataclasses.replace(
            cloud.servers[0], host='two', task='resize_reverting')
        moves = (dataclasses.replace(
            moves[0], kind='migration', status='reverting'),)
        self.assertEqual(
            [('a', 'its cold migration to two is reverting')],
            self.unfinished(dataclasses.replace(
                cloud, moves=moves, servers=(moved, b)), 'one'))

    def hinted(self, *servers, hints, seconds=drain.SECONDS, **kwargs):
        """Return moves with hints: name of a server -> hint -> names."""
        cloud = self.running(*servers, **kwargs)
        uuids = {server.name: server.uuid for server in cloud.servers}
        cloud = dataclasses.replace(cloud, servers=tuple([
            dataclasses.replace(each, hints={
                hint: tuple(map(uuids.__getitem__, names.split()))
                for hint, names in hints.get(each.name, {}).items()})
            for each in cloud.servers]))
        self.found = drain.plan(cloud, 'one', seconds=seconds)
        self.assertEqual((), self.found.failed)
        self.assertEqual(seconds > 0, self.found.exact)
        return [(each.server, each.destination) for each in self.found.servers
                if each.destination]

    def test_same_host(self):
        """A server follows one of those that it must be with."""
        for hint in ('a', 'a c', 'c a'):
            self.assertEqual([('a', 'two'), ('b', 'two')], self.hinted(
                'c p4 one', 'a p1 one', 'b p1 one', 'd p4 two', 'e p4 three',
                'f p4 three', hints={'b': {'same_host': hint}}))
            of_a, of_b = self.found.moves
            self.assertEqual((), of_a.related)
            self.assertIn(of_a.id, of_b.related)
        # Both go where there is room for both, if there is time to find it.
        for seconds, found in ((600, [('a', 'three'), ('b', 'three')]),
                               (0, [('a', 'two')])):
            self.assertEqual(found, self.hinted(
                'a p2 one', 'b p2 one', 'c p4 two', 'd p2 two', 'e p4 three',
                hints={'b': {'same_host': 'a'}}, seconds=seconds))
            self.assertEqual(2, self.found.bound)
        self.assertIn('Other plans move 2 at most.',
                      rendering.drain_text(self.found)[0])
        # One after the other.
        self.assertEqual(
            [('c', 'two'), ('b', 'two'), ('a', 'two')], self.hinted(
                'a p1 one', 'b p1 one', 'c p1 one', 'd p4 two',
                'e p4 three', 'f p2 three', hints={
                    'a': {'same_host': 'b'}, 'b': {'same_host': 'c'}}))

        self.assertEqual(3, len(self.hinted(
            'b p1 one', 'a p1 one', 'c p1 one', hints={
                'a': {'same_host': 'b c'}, 'b': {'same_host': 'a'}})))

    def test_same_host_as_one_that_stays(self):
        self.assertEqual([('a', 'two')], self.hinted(
            'a p1 one', 'b p1 two', hints={'a': {'same_host': 'b'}}))
        self.assertEqual([], self.hinted(
            'a p4 one', 'b p1 one', 'c p4 two', 'd p1 two', 'e p4 three',
            'f p1 three', hints={'b': {'same_host': 'a'}}))
        self.assertEqual({refusals.LackKind.HINT: 2}, running.causes(
            next(each for each in self.found.servers if each.server == 'b')))
        # Neither can be the first.
        self.assertEqual([], self.hinted('a p1 one', 'b p1 one', hints={
            'a': {'same_host': 'b'}, 'b': {'same_host': 'a'}}))

    def test_different_host(self):
        self.assertEqual([('a', 'three'), ('b', 'two')], sorted(self.hinted(
            'a p1 one', 'b p1 one', 'c p4 two', 'd p4 three',
            hints={'a': {'different_host': 'b c'}})))
        # Of two that are alike, the one that a hint names counts.
        for name in 'ce':
            self.assertEqual(3, len(self.hinted(
                'a p2 one', 'c p1 one', 'e p1 one', 'f p4 two', 'x p1 two',
                'g p4 three', 'h p3 three', hints={
                    'a': {'different_host': name},
                    **dict.fromkeys('ce', {'different_host': 'a'})})))

    def test_hints_without_filter(self):
        self.assertEqual(['a', 'b'], sorted(dict(self.hinted(
            'a p1 one', 'b p1 one', hints={
                'a': {'same_host': 'b'}, 'b': {'same_host': 'a'}},
            head=running.HEAD.replace('SameHostFilter,', '')))))

    def test_related(self):
        """Nova compares with the hosts of an anti-affinity group only."""
        for group, count in (('apart', 1), ('soft', 0)):
            self.hinted(f'a p1 one {group}', f'b p1 two {group}', hints={})
            of_a, = self.found.moves
            self.assertEqual(count, len(of_a.related))
            self.assertNotIn(of_a.id, of_a.related)

    def test_failed(self):
        uuid, = [each.uuid for each in self.running('a p1 one').servers]
        for name, other in (('two', 'three'), ('three', 'two')):
            found = self.plan('a p1 one', failed={(uuid, name): 'no route'})
            self.assertEqual(('live', other, None), found['a'])
        failed = {(uuid, name): 'no route' for name in ('two', 'three')}
        for make_room in (False, True):
            found = self.plan('a p1 one', options={'make_room': make_room},
                              failed=failed)
            self.assertEqual(
                (None, None, {refusals.LackKind.FAILED: 2}), found['a'])
        lack, = self.found.servers[0].lacks
        self.assertEqual('no route', lack.why)
        found = self.shelve('a p1 one', failed=failed)
        self.assertEqual('shelve', found['a'][0])
        found = self.shelve('a p1 one', failed={**failed, (uuid, ''): 'no'})
        self.assertIsNone(found['a'][0])

    def test_shelved(self):
        """Only what finds no host, after all moves."""
        servers = ('a p4 one', 'b p3 one', 'c p4 two', 'd p2 two',
                   'e p4 three', 'f p1 three')
        found = self.shelve(*servers)
        self.assertEqual('live', found['b'][0])
        self.assertEqual(
            ('shelve', None, {refusals.LackKind.PLACEMENT: 2}), found['a'])
        self.assertEqual([('b', 'live', 'three'), ('a', 'shelve', '')], [
            (move.name, move.kind, move.destination)
            for move in self.found.moves])
        self.assertEqual((), self.found.staying)
        self.assertIsNone(self.plan(*servers)['a'][0])

    def test_shelved_by_state(self):
        """Those that Nova does not move, whatever hosts there are."""
        servers = 'a p1 one', 'b p1 one', 'c p1 one'
        found = self.shelve(*servers, a={'state': 'suspended'},
                            b={'state': 'shelved'})
        for name, state in (('a', 'suspended'), ('b', 'shelved')):
            self.assertEqual(
                ('shelve', None, movable.obstacle(Kind.STATE, state)),
                found[name])
        self.assertEqual('live', found['c'][0])
        self.assertEqual((), self.found.failed)

    def test_not_shelved(self):
        """A locked server is not, nor one that Nova does not shelve."""
        tpm = {'image': {'hw_tpm_version': '2.0'}, 'state': 'suspended'}
        for change, reason, obstacle in (
                ({'locked': True}, Kind.LOCKED, Kind.LOCKED),
                ({'locked': True, 'state': 'suspended'}, Kind.STATE,
                 Kind.LOCKED),
                ({'task': 'rebooting'}, Kind.BUSY, Kind.BUSY),
                (tpm, Kind.STATE, Kind.TPM_SHELVED)):
            self.shelve('a p1 one', 'b p1 one', a=change)
            self.assertEqual(['b'], [move.name for move in self.found.moves])
            guest, = self.found.staying
            self.assertEqual((reason, obstacle), (
                guest.obstacle.kind, guest.not_shelved.kind))

    def test_shelved_last(self):
        """Neither if others make room, nor if a policy could be relaxed."""
        servers = ('a prefer one', 'w strict two', 'x strict two',
                   'y strict three', 'z strict three')
        options = {'shelve': True}
        self.assertEqual('shelve', self.plan(*servers, options=options)[
            'a'][0])
        self.plan(*servers, options={'relax': True, **options})
        guest, = self.found.servers
        self.assertIsNone(guest.how)
        self.assertTrue(guest.relaxations)
        self.plan(*test_move_search.TIGHT, options={
            'make_room': True, **options})
        self.assertEqual((), self.found.shelved)
        self.plan(*test_move_search.TIGHT, options=options)
        self.assertEqual(['a'], [each.server for each in self.found.shelved])

    def test_shelving_refused(self):
        self.refuse(lambda move: 'no' if move.name == 'a' else None)
        found = self.shelve(
            'a p1 one', 'b p1 one', **dict.fromkeys(
                'ab', {'state': 'suspended'}))
        self.assertEqual(
            {'a': None, 'b': 'shelve'},
            {name: kind for name, (kind, *_rest) in found.items()})
        self.assertEqual(('to shelve a: no',), self.found.failed)
