# SPDX-License-Identifier: Apache-2.0
"""Commands that tell how a host is emptied, and what its loss does."""

import json
import os

import fixtures

from nfv_sched.ops.cloud import file
from nfv_sched.tests.unit.ops.answers.plans import running
from nfv_sched.tests.unit.ops.answers.plans import test_making_room
from nfv_sched.tests.unit.ops.answers.plans import test_rendering
from nfv_sched.tests.unit.ops.commands import base


class PlanningTest(base.CommandTestCase, running.RunningTestCase):

    def save(self, *servers, steps=''):
        self.file = os.path.join(
            self.useFixture(fixtures.TempDir()).path, 'cloud')
        file.save(self.running(*servers, steps=steps), self.file)

    def run_it(self, *args):
        code, out, err = self.run_command(*args, '--from', self.file)
        self.assertEqual('', err)
        return code, out

    def test_drain(self):
        self.save('b vf one', 'a p4 one', 'c p4 two')
        code, out = self.run_it('host', 'drain', 'one')
        self.assertEqual(0, code)
        for text in ('2 servers of one: 1 live, 1 cold.', 'Move  Server',
                     'it has PCI devices of an alias', 'made in the simul'):
            self.assertIn(text, out)
        code, out = self.run_it('host', 'drain', 'one', '-f', 'json')
        found = json.loads(out)
        self.assertEqual(
            [('a', 'live'), ('b', 'cold')],
            sorted((each['server'], each['how'])
                   for each in found['servers']))
        code, out = self.run_it('host', 'drain', 'one', '-f', 'value', '-c',
                                'Server')
        self.assertEqual(['a', 'b'], sorted(out.split()))

    def test_drain_commands(self):
        self.save('a p1 one', 'b vf one', 'c vf two', 'd vf three')
        code, out = self.run_it('host', 'drain', 'one', '-f', 'commands')
        self.assertEqual(3, code)
        commands = [found for _version, found in test_rendering.parsed(
            out.splitlines())]
        self.assertEqual(
            ['compute service set', 'server migrate'],
            [found.command for found in commands])

    def test_drain_servers(self):
        """Some servers of a host, which stays open to others."""
        self.save('a p1 one', 'b p1 one', 'c p1 two')
        code, out = self.run_it('host', 'drain', 'one', '--server', 'b')
        self.assertEqual(0, code)
        self.assertIn('1 of 2 servers of one: 1 live.\n', out)
        code, out = self.run_it('host', 'drain', 'one', '--server', 'b',
                                '--server', 'a', '-f', 'commands')
        self.assertEqual(0, code)
        self.assertEqual(2, out.count(' server migrate '))
        self.assertNotIn('--disable', out)
        for name, error in (('c', 'server c is not on one, but on two'),
                            ('d', "no server named 'd'")):
            code, _out, err = self.run_command(
                'host', 'drain', 'one', '--server', name, '--from', self.file)
            self.assertEqual(2, code)
            self.assertIn(error, err)

    def test_drain_nothing(self):
        self.save('a p1 one')
        self.assertEqual((0, 'two has no servers.\n'),
                         self.run_it('host', 'drain', 'two'))

    def test_drain_not_confirmed(self):
        self.save('a p1 one', steps="""\
            - {resize: a, flavor: p2, host: two, confirm: false}
            """)
        code, out = self.run_it('host', 'drain', 'one')
        self.assertEqual(3, code)
        self.assertEqual(
            'one has no servers. Also holding resources of one: a: its '
            'resize to two is not confirmed: it can come back.',
            ' '.join(out.split()))
        _code, out = self.run_it('host', 'drain', 'one', '-f', 'json')
        self.assertEqual(
            [('a', 'resize', 'one', 'two', True)],
            [tuple(each[key] for key in (
                'server', 'how', 'source', 'destination', 'to_confirm'))
             for each in json.loads(out)['unfinished']])

    def test_drain_make_room(self):
        self.save(*test_making_room.TIGHT)
        self.assertEqual(3, self.run_it('host', 'drain', 'one')[0])
        code, out = self.run_it('host', 'drain', 'one', '--make-room')
        self.assertEqual(0, code)
        for text in ('1 server of one: 1 live. 1 move on other hosts to make '
                     'room.', 'From', 'makes room for a'):
            self.assertIn(text, out)
        code, out = self.run_it('host', 'drain', 'one', '--make-room', '-f',
                                'json')
        room, guest = json.loads(out)['servers']
        self.assertEqual(
            (1, 'u', 'three', 'two', guest['server_id']),
            tuple(room[key] for key in ('move', 'server', 'source',
                                        'destination', 'makes_room_for')))
        self.assertEqual((2, 'a', None), tuple(
            guest[key] for key in ('move', 'server', 'makes_room_for')))
        code, out = self.run_it('host', 'drain', 'one', '--make-room', '-f',
                                'csv')
        self.assertEqual(
            [('u', 'three', 'two'), ('a', 'one', 'three')],
            [(row['Server'], row['From'], row['To'])
             for row in self.csv_rows(out)])
        code, out = self.run_it('host', 'drain', 'one', '--make-room',
                                '--at-once', '1')
        self.assertEqual(0, code)
        self.assertIn('makes room for a', out)
        self.assertIn('From', out)

    def test_drain_relax(self):
        policy = 'nfv:vswitch_numa_affinity'
        for flavor, becomes, text in (
                ('strict', 'prefer', f'with {policy}=prefer, which is not '
                                     'kept there'),
                ('prefer', 'prefer', f'if {policy}=prefer may be kept less')):
            self.save(f'a {flavor} one', 'w strict two', 'x strict two',
                      'y strict three', 'z strict three')
            code, out = self.run_it('host', 'drain', 'one', '--relax')
            self.assertEqual(3, code)
            self.assertRegex(' '.join(out.split()),
                             rf'It could go to (two|three) {text}')
            _code, out = self.run_it('host', 'drain', 'one', '--relax', '-f',
                                     'json')
            server, = json.loads(out)['servers']
            relaxation, = server['relaxations']
            self.assertEqual(
                [{'policy': f'{policy}={flavor}',
                  'becomes': f'{policy}={becomes}', 'kept': 'no'}],
                relaxation['policies'])

    def test_drain_hosts(self):
        self.save('a p1 one', 'b vf one', 'c p1 two')
        code, out = self.run_it('host', 'drain', 'one', 't*')
        self.assertEqual(0, code)
        for text in ('3 hosts emptied in 3 rounds by 3 moves: 2 live, 1 cold.',
                     'it has no servers', 'must be enabled again'):
            self.assertIn(text, ' '.join(out.split()))
        code, out = self.run_it('host', 'drain', '--availability-zone',
                                'nova', '-f', 'json')
        self.assertEqual(
            [('three', []), ('two', ['c']), ('one', ['a', 'b'])],
            [(host['host'], sorted(each['server']
                                   for each in host['servers']))
             for each in json.loads(out)['rounds'] for host in each['hosts']])
        self.assertEqual([[], ['three'], ['three', 'two']], [
            each['enabled'] for each in json.loads(out)['rounds']])
        code, out = self.run_it('host', 'drain', '*', '-f', 'csv')
        rows = self.csv_rows(out)
        self.assertEqual(
            [(1, 'three', ''), (2, 'two', 'c')],
            [(row['Round'], row['Host'], row['Server'])
             for row in rows[:2]])
        self.assertEqual(
            {'a', 'b'}, {row['Server'] for row in rows[2:]})
        # One host of which no others are known to come is one, too.
        code, out = self.run_it('host', 'drain', 'two', '--at-once', '2')
        self.assertIn('1 host emptied in 1 round by 1 move: 1 live.', out)

    def test_drain_hosts_stuck(self):
        self.save('a p4 one', 'b p4 one', 'c p4 two', 'd p4 two', 'e p4 three',
                  'f p4 three')
        code, out = self.run_it('host', 'drain', '*')
        self.assertEqual(3, code)
        self.assertIn('None of 3 hosts is emptied.', out)
        self.assertIn('not at all', out)
        code, out = self.run_it('host', 'drain', '*', '-f', 'json')
        self.assertEqual(
            [], json.loads(out)['rounds'])
        self.assertEqual(
            {('one', 2, 0), ('two', 2, 0), ('three', 2, 0)}, {
                (each['host'], len(each['servers']), each['others'])
                for each in json.loads(out)['not_emptied']})

    def test_drain_hosts_usage(self):
        self.save('a p1 one')
        for args, text in (
                ((), 'HOST, --aggregate or --availability-zone is needed'),
                (('one', 'two', '--server', 'a'), '--server is for one host'),
                (('one', 'two', '-f', 'commands'), 'several are emptied in '
                 'rounds by "plan run": write the plan with --save FILE'),
                (('one', 'x'), "no host named 'x'"),
                (('x*',), "no host matches 'x*'")):
            code, _out, err = self.run_command(
                'host', 'drain', *args, '--from', self.file)
            self.assertEqual(2, code)
            self.assertIn(text, err)

    def test_no_host(self):
        self.save('a p1 one')
        for args, text in ((('host', 'drain', 'x'), "no host named 'x'"),
                           (('cloud', 'failover', '--host', 'x'),
                            "no host named 'x'")):
            code, _out, err = self.run_command(*args, '--from', self.file)
            self.assertEqual((2, f'error: {text}\n'), (code, err))

    def test_failover(self):
        self.save('a p4 one', 'b p4 two', 'c p4 three', 'd p4 three')
        self.assertEqual(
            (0, 'If any one host of 3 is lost, all its servers find a '
                'place.\n'), self.run_it('cloud', 'failover'))
        code, out = self.run_it('cloud', 'failover', '--host', 't*',
                                '--together')
        self.assertEqual(3, code)
        self.assertIn('If 2 hosts are lost at once: ', out)
        code, out = self.run_it('cloud', 'failover', '--together', '-f',
                                'json')
        self.assertEqual(
            [('one', 1, 0, 'a'), ('three', 2, 0, 'd'), ('two', 1, 0, 'b')],
            sorted((each['host'], each['servers'], each['evacuable'],
                    each['stranded'][0]['server'])
                   for each in json.loads(out)['hosts']))

    def test_failover_rows(self):
        """A row for each stranded server, with what names it to the API."""
        self.save('a p4 one', 'b p4 two', 'c p4 three', 'd p4 three')
        self.assertEqual(
            (0, ''), self.run_it('cloud', 'failover', '-f', 'value'))
        code, out = self.run_it('cloud', 'failover', '--together', '-f',
                                'csv')
        self.assertEqual(3, code)
        rows = self.csv_rows(out)
        self.assertEqual(
            [('one', 'a'), ('three', 'c'), ('three', 'd'), ('two', 'b')],
            sorted((row['Host'], row['Server']) for row in rows))
        ids = {server.name: server.uuid
               for server in file.load(self.file).servers}
        for row in rows:
            self.assertEqual((ids[row['Server']], 'p4'),
                             (row['Server ID'], row['Flavor']))
            self.assertIn('there is no other host', row['Why'])
