# SPDX-License-Identifier: Apache-2.0

import argparse
from collections.abc import Iterable
import dataclasses
import json
import os
import re
import shlex
import subprocess
import sys
from unittest import mock

from cliff import commandmanager
import fixtures
from openstackclient import shell

from nfv_sched.ops.plans import movable
from nfv_sched.ops.plans import refusals
from nfv_sched.ops.plans import rendering
from nfv_sched.ops.plans import trial
from nfv_sched.tests import base

LIVE = trial.ServerMove(
    uuid='11111111-1111-1111-1111-111111111111', name='fw 1', flavor='fw.8',
    memory=8192, source='one', destination='two')


def parsed(lines: Iterable[str]) -> list[tuple[str, argparse.Namespace]]:
    """What python-openstackclient understands of lines.

    :returns: of each line without comment, the version of the compute API,
        and the arguments of the command
    """
    manager = commandmanager.CommandManager('openstack.cli')
    for group in ('compute', 'network'):
        manager.add_command_group(f'openstack.{group}.v2')
    found = []
    for line in lines:
        line = line.removeprefix('timeout 3600 ').removesuffix(' || :')
        if not line.startswith('openstack '):
            continue
        words = shlex.split(line)[1:]
        options, words = shell.OpenStackShell().parser.parse_known_args(words)
        factory, name, rest = manager.find_command(words)
        parser = factory(mock.Mock(), None).get_parser(name)
        with mock.patch.object(parser, 'error', side_effect=AssertionError):
            arguments = parser.parse_args(rest)
        arguments.command = name
        found.append((options.os_compute_api_version, arguments))
    return found


#: An openstack client, and a Nova in a file, with a server named on each line:
#: UUID, host, status, task, and what becomes of its next move.
CLIENT = """\
import json, sys, time
words = sys.argv[1:]
with open(PATH) as file:
    cloud = json.load(file)
cloud['calls'].append(' '.join(words))
uuid = words[-1]
server = cloud['servers'].get(uuid)
end = server and server['end']
code = 0
if 'migration' in words and 'list' in words:
    server = cloud['servers'][words[words.index('--server') + 1]]
    print(server['migration'].pop(0) if len(server['migration']) > 1
          else server['migration'][0])
elif 'service' in words and '--disable' not in words:
    for host, states in sorted(cloud['services'].items()):
        print(host, states)
elif 'show' in words:
    if server['polls'] == 0:
        server.update(server.pop('then', {}))
    server['polls'] -= 1
    # In the order of the columns.
    for column in sorted(words[number + 1] for number, word
                         in enumerate(words) if word == '-c'):
        print(server[column])
elif 'migrate' in words:
    host = words[words.index('--host') + 1]
    live = '--live-migration' in words
    if end == 'refused':
        print('No valid host was found.', file=sys.stderr)
        code = 1
    else:
        server['polls'] = 2
        # Nova ends the migration after the server is shown on its new host.
        server['migration'] = ['running', 'post-migrating', (
            'error' if end in ('late', 'error', 'record') else
            'completed' if live else 'finished')]
        server['then'] = {
            'OS-EXT-STS:task_state': None,
            'status': ('ERROR' if end == 'error' else
                       server['status'] if live or end == 'late'
                       else 'VERIFY_RESIZE')}
        if end != 'late':
            server['then']['OS-EXT-SRV-ATTR:host'] = host
        server['OS-EXT-STS:task_state'] = 'migrating'
        if live:
            server['status'] = 'MIGRATING'
elif 'confirm' in words:
    server['polls'] = 2
    server['migration'] = ['confirming', 'confirmed']
    server['then'] = {'status': 'ERROR' if end == 'confirm' else 'SHUTOFF',
                      'OS-EXT-STS:vm_state': 'stopped'}
elif 'shelve' in words and end == 'refused':
    code = 1
elif 'shelve' in words:
    # It waits for the status, or forever if the image cannot be saved.
    server['polls'] = 3
    server['OS-EXT-STS:task_state'] = 'shelving_offloading'
    server['then'] = {
        None: {'status': 'SHELVED_OFFLOADED', 'polls': 3, 'then': {
            'OS-EXT-SRV-ATTR:host': None}},
        'late': {}, 'kept': {'status': 'SHELVED'}}[end]
    server['then']['OS-EXT-STS:task_state'] = None
    code = 124 if end == 'late' else 0
with open(PATH, 'w') as file:
    json.dump(cloud, file)
sys.exit(code)
"""


#: What a script says at its end.
CHECK = ('To check strict policies, with access to the databases of Nova: '
         'nfv-sched cloud audit --kind policy-not-kept --host=two\n')
#: Compute services of hosts, as the client lists them.
SERVICES = {'one': 'enabled up', 'two': 'enabled up'}


class ScriptTest(base.TestCase):
    """The script in a shell, with a client that behaves like the real one.

    That is: what it is told to migrate is not over when it ends.
    """

    def run_script(self, moves, services=SERVICES, changed={}, **ends):
        """Run the script of moves.

        :param services: host -> status and state of its compute service
        :param changed: UUID of a server -> what has changed since the plan
        :param ends: UUID of a server -> what becomes of its move
        :returns: exit code, hosts of the servers, and the commands
        """
        directory = self.useFixture(fixtures.TempDir()).path
        path = os.path.join(directory, 'cloud.json')
        with open(path, 'w') as file:
            json.dump({'calls': [], 'services': services, 'servers': {
                move.uuid: {
                    'OS-EXT-SRV-ATTR:host': move.source, 'polls': -1,
                    'status': 'PAUSED' if move.paused else 'ACTIVE',
                    'OS-EXT-STS:vm_state':
                        'paused' if move.paused else 'active',
                    'OS-EXT-STS:task_state': None, 'migration': [],
                    'locked': False, 'end': ends.get(move.uuid),
                    **changed.get(move.uuid, {})}
                for move in reversed(moves)}}, file)
        head = f'#!{sys.executable}\nPATH = {path!r}\n'
        for name, text in (('openstack', head + CLIENT),
                           ('sleep', '#!/bin/sh\n')):
            with open(os.path.join(directory, name), 'w') as file:
                file.write(text)
            os.chmod(file.name, 0o700)
        done = subprocess.run(
            ['sh'], input='\n'.join(rendering.commands(moves, (
                rendering.disable('one', 'broken'),))), text=True,
            capture_output=True, timeout=60,
            env={'PATH': f'{directory}:{os.environ["PATH"]}'})
        with open(path) as file:
            cloud = json.load(file)
        self.errors, self.output = done.stderr, done.stdout
        return done.returncode, {
            uuid: (server['OS-EXT-SRV-ATTR:host'], server['status'])
            for uuid, server in cloud['servers'].items()}, [
                call for call in cloud['calls']
                if not re.search('server show|(migration|service) list', call)]

    def moves(self, *kinds):
        return [dataclasses.replace(
            LIVE, uuid=f'u{number}', kind=kind.removeprefix('paused '),
            destination='' if kind == 'shelve' else 'two',
            paused=kind.startswith('paused'))
            for number, kind in enumerate(kinds)]

    def test_all_moves(self):
        code, servers, calls = self.run_script(self.moves(
            'live', 'cold', 'paused live'))
        self.assertEqual((0, ''), (code, self.errors))
        self.assertEqual({
            'u0': ('two', 'ACTIVE'), 'u1': ('two', 'SHUTOFF'),
            'u2': ('two', 'PAUSED')}, servers)
        self.assertEqual(5, len(calls))
        self.assertEqual(
            CHECK,
            self.output)

    def test_server_is_not_as_planned(self):
        """Nothing is changed."""
        for kind, changed in (
                ('live', {'OS-EXT-SRV-ATTR:host': 'three'}),
                ('cold', {'OS-EXT-SRV-ATTR:host': None}),
                ('live', {'OS-EXT-STS:task_state': 'rebooting'}),
                ('live', {'OS-EXT-STS:vm_state': 'stopped'}),
                ('cold', {'OS-EXT-STS:vm_state': 'resized'}),
                ('shelve', {'OS-EXT-STS:vm_state': 'error'}),
                ('live', {'locked': True}), ('shelve', {'locked': True})):
            code, servers, calls = self.run_script(
                self.moves('live', kind), changed={'u1': changed})
            self.assertEqual((1, []), (code, calls), (kind, changed))
            self.assertIn('stopped: server u1 is not idle on one, not locked '
                          'and active', self.errors)
            self.assertIn(str(*changed.values()), self.errors)

    def test_host_is_not_as_planned(self):
        for services, error in (
                ({'one': 'enabled up'}, 'nova-compute on two is not up'),
                ({**SERVICES, 'two': 'enabled down'},
                 'nova-compute on two is not up'),
                ({**SERVICES, 'two': 'disabled up'}, 'two is disabled'),
                ({**SERVICES, 'one': 'enabled down'},
                 'nova-compute on one is not up')):
            code, _servers, calls = self.run_script(
                self.moves('live'), services)
            self.assertEqual((1, [], f'stopped: {error}\n'),
                             (code, calls, self.errors))
        code, _servers, _calls = self.run_script(
            self.moves('live'), {**SERVICES, 'one': 'disabled up'})
        self.assertEqual(0, code)

    def test_server_moves_twice(self):
        """The second move begins where the first has ended."""
        there, = self.moves('live')
        back = dataclasses.replace(there, source='two', destination='one')
        code, servers, calls = self.run_script([there, back])
        self.assertEqual((0, ''), (code, self.errors))
        self.assertEqual(('one', 'ACTIVE'), servers['u0'])

    def test_server_changes_meanwhile(self):
        """It is looked at again before its move."""
        moves = self.moves('live', 'live')
        moves[1] = dataclasses.replace(moves[1], uuid='u0')
        code, _servers, calls = self.run_script(moves)
        self.assertEqual((1, 2), (code, len(calls)))
        self.assertIn('stopped: server u0 is not idle on one', self.errors)

    def test_failures(self):
        """Nothing is begun after one, whenever it fails."""
        for kind, end, count in (
                ('live', 'refused', 2), ('live', 'late', 2),
                ('live', 'record', 2), ('cold', 'record', 2),
                ('paused live', 'late', 2), ('live', 'error', 2),
                ('cold', 'refused', 2), ('cold', 'late', 2),
                ('cold', 'error', 2), ('cold', 'confirm', 3)):
            code, servers, calls = self.run_script(
                self.moves(kind, 'live'), u0=end)
            self.assertEqual((1, count), (code, len(calls)), (kind, end))
            self.assertEqual(('one', 'ACTIVE'), servers['u1'])
            if end != 'refused':
                self.assertIn('stopped: server u0 is', self.errors)

    def test_shelve(self):
        code, servers, calls = self.run_script(self.moves(
            'live', 'shelve', 'shelve'))
        self.assertEqual((0, ''), (code, self.errors))
        self.assertEqual({
            'u0': ('two', 'ACTIVE'), 'u1': (None, 'SHELVED_OFFLOADED'),
            'u2': (None, 'SHELVED_OFFLOADED')}, servers)
        self.assertEqual(4, len(calls))
        self.assertEqual(
            'To start fw 1 again: openstack server unshelve -- u1\n'
            'To start fw 1 again: openstack server unshelve -- u2\n'
            + CHECK,
            self.output)

    def test_shelving_fails(self):
        for end, status in (('refused', 'ACTIVE'), ('late', 'ACTIVE'),
                            ('kept', 'SHELVED')):
            code, servers, calls = self.run_script(
                self.moves('shelve', 'shelve'), u0=end)
            self.assertEqual((1, 2, ''), (code, len(calls), self.output), end)
            self.assertEqual(('one', status), servers['u0'])
            self.assertEqual(f'stopped: server u0 is {status} on one, to be '
                             'shelved\n', self.errors)


class CommandsTest(base.TestCase):

    def test_last_migration(self):
        """What the function of the script asks for."""
        lines = '\n'.join(rendering.commands([LIVE])).replace('\\\n', '')
        (version, args), *_moves = parsed(
            line.strip() for line in lines.splitlines())
        self.assertEqual(
            ('2.59', 'server migration list', 1, ['Status'], 'value'),
            (version, args.command, args.limit, args.columns,
             args.formatter))

    def test_planned(self):
        """What the script asks for before it changes anything."""
        lines = '\n'.join(rendering.commands([LIVE])).replace('\\\n', '')
        (version, server), (_version, services) = parsed(
            line.partition('$(')[2].removesuffix(')')
            for line in lines.splitlines()
            if line.strip().startswith(('now=$(open', 'services=$(')))
        self.assertEqual(
            ('2.59', 'server show', 'value', [
                'OS-EXT-SRV-ATTR:host', 'OS-EXT-STS:task_state',
                'OS-EXT-STS:vm_state', 'locked']),
            (version, server.command, server.formatter, server.columns))
        self.assertEqual(
            ('compute service list', 'nova-compute', 'value',
             ['Host', 'Status', 'State']),
            (services.command, services.service, services.formatter,
             services.columns))

    def test_live(self):
        (version, args), = parsed(rendering.commands([LIVE]))
        self.assertEqual(
            ('2.30', 'server migrate', True, 'two', LIVE.uuid),
            (version, args.command, args.live_migration, args.host,
             args.server))

    def test_cold(self):
        move = trial.move_of(mock.Mock(
            uuid='u', flavor=mock.Mock(memory=1)), 'one', 'two',
            movable.COLD)
        (version, args), (_version,
                          confirm) = parsed(rendering.commands([move]))
        self.assertEqual(
            ('2.56', 'server migrate', False, 'two'),
            (version, args.command, args.live_migration, args.host))
        self.assertEqual(('server migration confirm', 'u'),
                         (confirm.command, confirm.server))

    def test_room_that_was_left(self):
        """Nova gives it back a moment after a move has ended."""
        def moves(*hosts):
            return [trial.ServerMove(uuid=source, name=source, flavor='f',
                                     memory=1,
                                     source=source, destination=destination)
                    for source, destination in hosts]

        for hosts, pauses in (
                ((('one', 'two'), ('three', 'two')), []),
                ((('one', 'two'), ('two', 'three')), []),
                ((('one', 'two'), ('three', 'one')), [1]),
                ((('one', 'two'), ('three', 'four'), ('four', 'one'),
                  ('five', 'one'), ('six', 'four')), [2, 4])):
            lines = list(rendering.commands(moves(*hosts)))
            begun = 0
            before = []
            for line in lines:
                begun += line.startswith('openstack ')
                if line == 'sleep 5':
                    before.append(begun)
            self.assertEqual(pauses, before, lines)
            self.assertEqual(len(hosts), len(parsed(lines)))

    def test_servers_that_belong_together(self):
        """Nova does not know at once where live migrations have ended."""
        def move(name, *related, kind='live'):
            return trial.ServerMove(
                uuid=name, name=name, flavor='f', memory=1, kind=kind,
                source='one', destination='two', related=related)

        for moves, pauses in (
                ((move('a'), move('b', 'c')), []),
                ((move('a', 'b'), move('b', 'a')), [1]),
                ((move('a'), move('b'), move('c', 'x', 'a')), [2]),
                ((move('a'), move('b', 'a'), move('c', 'a')), [1]),
                ((move('a'), move('b', 'a'), move('c', 'b')), [1, 2]),
                ((move('a', kind='cold'), move('b', 'a')), [])):
            begun = 0
            before = []
            for line in rendering.commands(moves):
                begun += ' --host ' in line
                if line == 'sleep 130':
                    before.append(begun)
            self.assertEqual(pauses, before, moves)

    def test_disable(self):
        (_version, args), = parsed([rendering.disable('one', "it's broken")])
        self.assertEqual(
            ('compute service set', 'one', 'nova-compute', True,
             "it's broken"),
            (args.command, args.host, args.service, args.disable,
             args.disable_reason))

    def test_odd_names(self):
        """Names end neither a comment nor a word."""
        odd = 'a b; rm -rf $(x) `y`'
        lines = list(rendering.commands([trial.ServerMove(
            uuid='u', name=f'{odd}\nc', flavor='f', memory=1, source=odd,
            destination=odd)]))
        self.assertFalse([line for line in lines if '\n' in line])
        (_version, args), = parsed(lines)
        self.assertEqual(odd, args.host)
        lines = list(rendering.commands([trial.ServerMove(
            uuid='u', name=f'{odd}\nc', flavor='f', memory=1, source=odd,
            destination='', kind=movable.SHELVE)]))
        self.assertFalse([line for line in lines if '\n' in line])
        (_version, args), = parsed(lines)
        self.assertEqual((['u'], True), (args.servers, args.offload))
        self.assertEqual(['left', 'u', odd], shlex.split(lines[-2]))
        self.assertEqual(
            [f'To start {odd}\\nc again: openstack server unshelve -- u'],
            shlex.split(lines[-1])[2:])


class LackingTest(base.TestCase):

    def test_text(self):
        """Figures of several hosts are those of one that is named."""
        policy = 'nfv:vswitch_numa_affinity=strict'
        filters = refusals.Lack(
            kind=refusals.LackKind.FILTERS, host='two', hosts=2,
            names=('NFVTopologyFilter', 'VSwitchNUMAAffinityFilter'),
            text=f'{policy}: 8 needed, 2 free')
        placement = refusals.Lack(kind=refusals.LackKind.PLACEMENT,
                                  names=('PCPU=8',),
                                  text='PCPU 8 needed, 6 free', host='one')
        group = refusals.Lack(kind=refusals.LackKind.GROUP, host='four',
                              hosts=3,
                              names=('anti-affinity',))
        hint = refusals.Lack(kind=refusals.LackKind.HINT, host='five',
                             names=('same_host',))
        self.assertEqual(
            'no host takes it: the server group (anti-affinity) on 3 hosts; '
            'NFVTopology and VSwitchNUMAAffinity on two, the nearest of 2 '
            f'hosts ({policy}: 8 needed, 2 free); Placement on one (PCPU 8 '
            'needed, 6 free); other causes on 1 host',
            rendering.lacking_text((group, filters, placement, hint)))
        self.assertEqual('there is no other host', rendering.lacking_text(()))

    def test_servers_that_are_placed_first(self):
        for hosts, text in ((1, 'two would'), (3, 'two and 2 other hosts '
                                                  'would')):
            self.assertEqual(
                f'no host takes it: {text}, but other servers that have to '
                'move are placed there first', rendering.lacking_text([
                    refusals.Lack(kind=refusals.LackKind.GUESTS, host='two',
                                  hosts=hosts)]))

    def test_all_kinds(self):
        for kind in refusals.LackKind:
            self.assertNotEqual('', rendering.lacking_text(
                [refusals.Lack(kind=kind, host='one')]))
