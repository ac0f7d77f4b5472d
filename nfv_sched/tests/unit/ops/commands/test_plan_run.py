# SPDX-License-Identifier: Apache-2.0
"""The command ``nfv-sched plan run``."""

import dataclasses
import io
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
import time
from unittest import mock
import uuid

import fixtures

from nfv_sched.ops.cli import errors
from nfv_sched.ops.cloud import api
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.commands import plan_execution
from nfv_sched.ops.commands import source
from nfv_sched.ops.run import moves
from nfv_sched.ops.run import runner
from nfv_sched.ops.run import values
from nfv_sched.tests import snapshots
from nfv_sched.tests.unit.limits import neutron_api
from nfv_sched.tests.unit.ops.answers.plans import running
from nfv_sched.tests.unit.ops.cloud import nova_api
from nfv_sched.tests.unit.ops.commands import base
from nfv_sched.tests.unit.ops.commands import test_rebalance
from nfv_sched.tests.unit.ops.run import migrating_nova

_PROGRAM = """\
from nfv_sched.ops.cli import base
from nfv_sched.ops.cli import errors
from nfv_sched.ops.commands import source
from nfv_sched.ops.run import runner
import sys

def reader(arguments):
    raise errors.NotConfiguredError

runner.INTERVAL = 0.02
source.reader = reader
sys.exit(base.main())
"""


# Before it, to get a signal while a line is written.
_INTERRUPTED = """\
import io
import os
import signal
import sys

class Output(io.RawIOBase):

    def writable(self):
        return True

    def write(self, data):
        if b'begins' in bytes(data):
            os.kill(os.getpid(), signal.SIGINT)
        return os.write(1, data)

sys.stdout = io.TextIOWrapper(
    io.BufferedWriter(Output()), line_buffering=True)

"""


class PlanRunTestCase(base.CommandTestCase):
    def setUp(self):
        super().setUp()
        for name in [*filter(lambda name: name.startswith('OS_'), os.environ)]:
            self.useFixture(fixtures.EnvironmentVariable(name))
        # No clouds.yaml of somebody.
        self.useFixture(fixtures.EnvironmentVariable('HOME', self.folder))
        self.useFixture(fixtures.MockPatchObject(runner, 'INTERVAL', 0.02))
        self.useFixture(fixtures.MockPatchObject(values, 'FREED_SECONDS', 0))
        self.useFixture(fixtures.MockPatchObject(moves, 'GRACE', 0.3))
        # There are no databases.
        self.useFixture(fixtures.MockPatchObject(
            source, 'reader', side_effect=errors.NotConfiguredError))
        self.path = self.in_folder('plan.json')

    def plan(self, *texts, **fields):
        self.start(migrating_nova.document(*texts, **fields))

    def start(self, document):
        self.write(document)
        self.nova = migrating_nova.MigratingNova(document)
        self.listen(self.nova)

    def write(self, document):
        self.write_file(self.path, document)

    def document(self):
        return json.loads(pathlib.Path(self.path).read_bytes())

    def listen(self, nova=None):
        self.api = nova_api.start(self, nova)
        for name, value in self.api.variables().items():
            self.useFixture(fixtures.EnvironmentVariable(name, value))

    def listen_as(self, cloud):
        """Stand in for the Nova of a cloud, which migrates its servers."""
        self.nova = migrating_nova.MigratingNova({'servers': [{
            'server': server.name, 'server_id': server.uuid,
            'source': server.host} for server in cloud.servers]})
        self.listen(self.nova)

    def carry_out(self, *args, code=0):
        """Run the plan; return standard output and error."""
        return self.exits(
            code, 'plan', 'run', self.path, *(args or ('--yes',)))

    def carry_out_fails(self, text, *args, code=3):
        """Run the plan, with an error that has this text; return all."""
        _out, err = self.carry_out(*args, code=code)
        self.assertIn(text, err)
        return err

    def hosts(self):
        return {each['name']: each['OS-EXT-SRV-ATTR:host']
                for each in self.nova.placed.values()}

    def journal(self):
        with open(f'{self.path}.journal') as stream:
            return [json.loads(line) for line in stream]


class PlanRunTest(PlanRunTestCase):

    def test_on_a_file(self):
        self.run_command('host', 'drain', 'compute-1', '--from', 'telco',
                         '--save', self.path)
        args = ('--dry-run', '--from', 'telco')
        self.assertIn('were made in the simulator', self.carry_out(*args)[0])
        partly = self.save_cloud(dataclasses.replace(
            source.load('telco'), missing=(snapshot.Missing(
                kind=snapshot.MissingKind.NEUTRON, text='no answer'),)))
        self.carry_out_fails('no answer', *args[:2], partly, code=1)
        plan = self.document()
        for place, text in (('source', 'fw-1 is not on compute-2'),
                            ('destination', 'fw-1 to compute-2: ')):
            self.write({**plan, 'servers': [
                {**each, place: 'compute-2'} if each['server'] == 'fw-1'
                else each for each in plan['servers']]})
            self.carry_out_fails(f'error: {text}', *args)
        self.refused('--from needs the https URL', 'plan', 'run', self.path,
                     '--from', 'telco')

    def test_all(self):
        self.plan('a live two', 'b cold three', 'c live two')
        out, err = self.carry_out()
        self.assertEqual('', err)
        self.assertEqual({'a': 'two', 'b': 'three', 'c': 'two'}, self.hosts())
        self.assertEqual(['disabled', 'to be emptied'], [
            self.nova.services[0][key]
            for key in ('status', 'disabled_reason')])
        self.assertIn(('b', 'confirmResize', None), self.nova.actions)
        for text in ('one is disabled: to be emptied\n',
                     '2/3 b: cold migration from one to three: begins\n',
                     '2/3 b: done, ', '3 of 3 moves made.\n',
                     "Strict policies were not checked: this needs Nova's "
                     'databases, or --from with the URL of "snapshot '
                     'serve".\n',
                     'To enable it: openstack compute service set --enable '
                     '-- one nova-compute\n'):
            self.assertIn(text, out)
        # a and c go to the same host.
        self.assertEqual(2, self.nova.most)
        self.assertEqual(
            ['asked', 'moving', 'done'],
            [each['state'] for each in self.journal() if each['move'] == 2])
        self.assertEqual(0o600, os.stat(
            f'{self.path}.journal').st_mode & 0o777)
        number = len(self.nova.actions)
        out, _err = self.carry_out('--yes', '--enable-after')
        self.assertEqual(number, len(self.nova.actions))
        self.assertEqual('enabled', self.nova.services[0]['status'])
        self.assertIn('3/3 c: live migration from one to two: done\n', out)

    def test_nodes(self):
        """Moves to NUMA nodes of one host, each of which has no other."""
        for nodes, most in (((0, 1), 2), ((1, 1), 1), ((0, None), 1)):
            document = migrating_nova.document('a live two', 'b live two')
            for server, node in zip(document['servers'], nodes):
                server['only_node'] = node
            self.path = self.in_folder(f'{nodes}.json')
            self.start(document)
            self.carry_out()
            self.assertEqual(most, self.nova.most, nodes)

    def test_some_servers(self):
        """The host stays open if only some of its servers are to leave."""
        self.plan('a live two', others=3)
        out, _err = self.carry_out()
        self.assertEqual('enabled', self.nova.services[0]['status'])
        self.assertNotIn('able', out)
        self.carry_out_fails('--enable-after is for a plan that empties',
                             '--yes', '--enable-after', code=2)

    def test_stays(self):
        """A plan that does not reach all that was asked for ends with 3."""
        self.plan('a live two', stays=['b'])
        _out, err = self.carry_out(code=3)
        self.assertRegex(err, r'^error: b \(\S{36}\) stays on one\n$')

    def test_dry_run(self):
        self.plan('a live two', 'b live three')
        out, err = self.carry_out('--dry-run')
        self.assertEqual('', err)
        self.assertEqual([
            'one is disabled first.',
            '1/2 a: live migration from one to two',
            '2/2 b: live migration from one to three',
            'Nothing was changed: --dry-run.'], out.splitlines())
        self.nova.server('b')['locked'] = True
        _out, err = self.carry_out('--dry-run', code=3)
        self.assertEqual('error: move 2: b is locked\n', err)
        self.assertEqual([], self.nova.actions)
        self.assertEqual('enabled', self.nova.services[0]['status'])
        self.assertEqual([os.path.basename(self.path)],
                         os.listdir(self.folder))

    def test_question(self):
        self.plan('a live two')
        for answer, code in (('n\n', 3), ('', 3), ('y\n', 0)):
            stdin = io.StringIO(answer)
            stdin.isatty = lambda: True
            self.assertEqual([], self.nova.actions)
            with mock.patch('sys.stdin', stdin):
                found, _out, err = self.run_command('plan', 'run', self.path)
            self.assertEqual((code, 'Begin? [y/N] '), (found, err))
        self.assertEqual('two', self.hosts()['a'])
        with mock.patch('sys.stdin', io.StringIO('y\n')):
            self.refused('--yes is needed', 'plan', 'run', self.path)

    def test_no_file(self):
        """This is said before --yes is asked for."""
        with mock.patch('sys.stdin', io.StringIO()):
            self.refused('error: /none: No such file or directory\n',
                         'plan', 'run', '/none', code=1)

    def test_changed(self):
        self.plan(*[f'{name} live two' for name in 'abcdef'])
        del self.nova.placed[migrating_nova.id_of('a')]
        self.nova.server('b')['OS-EXT-SRV-ATTR:host'] = 'three'
        self.nova.server('c')['locked'] = True
        self.nova.server('d').update({
            'status': 'SHUTOFF', 'OS-EXT-STS:vm_state': 'stopped'})
        self.nova.server('e')['OS-EXT-STS:task_state'] = 'rebooting'
        self.nova.services[1]['status'] = 'disabled'
        self.nova.services[0]['state'] = 'down'
        out, err = self.carry_out(code=3)
        self.assertEqual([
            'error: two is not an enabled compute host',
            'error: nova-compute on one is down',
            'error: move 1: a has been deleted',
            'error: move 2: b is ACTIVE on three, not on one',
            'error: move 3: c is locked', 'error: move 4: d is SHUTOFF',
            'error: move 5: e is busy on one (rebooting)'], err.splitlines())
        self.assertIn('Nothing was changed', out)
        self.assertEqual([], self.nova.actions)
        self.assertEqual('enabled', self.nova.services[0]['status'])

    def test_arrived(self):
        self.plan('a live two', 'b live three')
        self.nova.server('a')['OS-EXT-SRV-ATTR:host'] = 'two'
        self.carry_out()
        self.assertEqual([('b', 'os-migrateLive', 'three')],
                         self.nova.actions)

    def test_failure(self):
        """Those that have begun end, no other begins; then it goes on."""
        self.plan('a live two', 'b live three', 'c live two')
        self.nova.failing = {'a'}
        out, err = self.carry_out(code=3)
        self.assertEqual({'a': 'one', 'b': 'three', 'c': 'one'}, self.hosts())
        self.assertEqual([
            'error: move 1: a was not moved: the migration is in status '
            'error: No valid host was found.; it is ACTIVE on '
            'one', 'error: move 3: c stays on one'], err.splitlines())
        self.assertIn('1 of 3 moves made.\n', out)
        self.nova.failing = set()
        self.carry_out()
        self.assertEqual({'a': 'two', 'b': 'three', 'c': 'two'}, self.hosts())
        self.assertEqual(4, len(self.nova.actions))

    def test_not_begun(self):
        """An error that comes before Nova does anything."""
        self.plan('a live two')
        answer = self.nova.answer

        def broken(method, *args):
            return (500, {}) if method == 'POST' else answer(method, *args)

        self.nova.answer = broken
        err = self.carry_out_fails('was not moved: POST /servers/')
        self.assertIn('/action: 500 Internal Server Error\n', err)
        self.nova.answer = answer
        self.carry_out()

    def test_away(self):
        """An API that answers no more for a while."""
        self.plan('a live two')
        answers = iter([(500, {})] * 5)
        self.nova.faults['os-migrations'] = lambda found: next(answers, found)
        out, _err = self.carry_out()
        self.assertIn('GET /os-migrations: 500 Internal Server Error\n', out)
        self.assertEqual(1, out.count('500'))

    def test_no_right(self):
        self.plan('a live two')
        del self.nova.server('a')['OS-EXT-SRV-ATTR:host']
        self.carry_out_fails('it needs the role admin')

    def test_timeout(self):
        """A migration that takes too long is waited for by the next run."""
        self.plan('a live two', 'b live two')
        self.nova.moving.clear()
        self.carry_out_fails('error: move 1: a was not over after 1 s\n',
                             '--yes', '--timeout', '1')
        self.nova.moving.set()
        out, _err = self.carry_out()
        self.assertIn('1/2 a: live migration from one to two: goes on\n', out)
        self.assertEqual(2, len(self.nova.actions))

    def test_shelve(self):
        """It is said how to start the servers again."""
        self.plan('a live two', 'b shelve -', 'c shelve -', 'd cold three')
        self.nova.server('c').update({
            'status': 'SUSPENDED', 'OS-EXT-STS:vm_state': 'suspended'})
        out, err = self.carry_out()
        self.assertEqual('', err)
        self.assertEqual(
            {'a': 'two', 'b': None, 'c': None, 'd': 'three'}, self.hosts())
        lines = out.splitlines()
        self.assertIn('2/4 b: shelving on one: begins', lines)
        for name in 'bc':
            self.assertIn(
                f'{name} is shelved. To start it again: openstack server '
                f'unshelve -- {migrating_nova.id_of(name)}', lines)
        number = len(self.nova.actions)
        # It is no more said of one that is not shelved any more.
        self.nova.server('b').update({
            'status': 'ACTIVE', 'OS-EXT-SRV-ATTR:host': 'two'})
        out, _err = self.carry_out()
        self.assertEqual(number, len(self.nova.actions))
        self.assertNotIn('b is shelved', out)
        self.assertIn('c is shelved', out)

    def test_shelve_without_offloading(self):
        """[DEFAULT] shelved_offload_time is not 0."""
        self.plan('a shelve -')
        self.nova.offloads = False
        # It is as if Nova itself were about to do it.
        answers = iter([(409, {'conflictingRequest': {
            'code': 409, 'message': 'task_state'}})])
        self.nova.faults['shelveOffload'] = lambda found: next(answers, found)
        self.carry_out()
        self.assertEqual({'a': None}, self.hosts())
        self.assertEqual(
            [('a', 'shelve'), ('a', 'shelveOffload')],
            [each[:2] for each in self.nova.actions])

    def test_not_offloaded(self):
        self.plan('a shelve -')
        self.nova.offloads = False
        self.nova.faults['shelveOffload'] = lambda found: (403, {
            'forbidden': {'code': 403, 'message': 'Not you.'}})
        _out, err = self.carry_out(code=3)
        self.assertEqual('error: move 1: a is SHELVED and still on one: Not '
                         'you\n', err)

    def test_related(self):
        """nova-scheduler must know where the others are."""
        self.plan('a live two', 'b live three a')
        self.useFixture(fixtures.MockPatchObject(values, 'SYNCED_SECONDS', 3))
        begin = time.monotonic()
        with mock.patch.object(values, 'FREED_SECONDS', 0.1):
            out, _err = self.carry_out()
        self.assertLess(2, time.monotonic() - begin)
        self.assertIn('b waits until nova-scheduler knows', out)
        self.assertEqual(1, self.nova.most)

    def test_unread(self):
        self.plan('a live two')
        document = self.document()
        document['unread'] = [{'kind': 'ports', 'names': ['b', 'a']}]
        self.write(document)
        _out, err = self.carry_out()
        self.assertEqual('note: the plan may be wrong, it was made without '
                         'ports of a, b\n', err)

    def test_bad_files(self):
        good = migrating_nova.document('a live two', 'b live two')
        self.start(good)
        server, other = good['servers']
        for document, text in (
                ([], 'not a plan'), ({}, 'not a plan'),
                ({**good, 'schema': 2}, 'schema 2: this release reads 1'),
                ({**good, 'servers': [{}]}, "servers[0]: 'move' is missing"),
                *(({**good, 'servers': [{**server, **change}, other]}, wrong)
                  for change, wrong in (
                      ({'how': 'carry'}, "servers[0].how: must be 'live',"),
                      ({'server_id': '../x'}, 'is not a UUID'),
                      ({'server_id': '{%s}' % server['server_id']},
                       'is not a UUID'),
                      ({'source': ''}, 'is not the name of a host'),
                      ({'destination': 'a\nb'}, 'is not the name of a host'),
                      ({'destination': 'x' * 256}, 'is not the name of a'),
                      ({'destination': 'one'}, 'are the same host'),
                      ({'destination': None}, 'is not the name of a host'),
                      ({'how': 'shelve'}, 'has no destination'),
                      ({'how': 'shelve', 'source': 'a\nb'},
                       'has no destination'),
                      ({'move': 2}, 'moves are not numbered from 1'),
                      # The plan against itself.
                      ({'source': 'two', 'destination': 'one'},
                       "move 1: 'one' is to be disabled, and can be no "),
                      ({'server_id': other['server_id']},
                       "is not on 'one' after the moves before")))):
            self.write(document)
            out, err = self.carry_out(code=1)
            self.assertEqual('', out)
            self.assertIn(text, err)
        for content, text in ((b'', 'not a plan: the file is empty'),
                              (b'move: 1\n', 'not a plan: not JSON from line'),
                              (b'{', 'not JSON from line 1, column 2 on'),
                              (b'\x1f\x8b', ''),
                              (b'[' * 5000, ''), (b'[0,' * 90000, '')):
            self.write_file(self.path, content)
            self.assertIn(f'error: {self.path}: ', self.carry_out_fails(
                text, '--yes', '--max-file-size', '1', code=1))
        self.assertEqual([], self.nova.requests)

    def test_bad_journals(self):
        self.plan('a live two')
        self.carry_out()
        lines = open(f'{self.path}.journal', 'rb').read()
        path = self.in_folder('journal')
        args = '--yes', '--journal', path
        for content, text in (
                (lines.replace(b'"plan": "', b'"plan": "0'),
                 'is the journal of another plan'),
                (b'{}\n', 'line 1 is not one of a journal'),
                (lines.replace(b'"id": "', b'"id": "../'),
                 'line 3 is not one of a journal'),
                (lines.replace(b'+00:00"', b'"'),
                 'line 1 is not one of a journal'),
                (lines + b'x\n', 'line 6 is not one of a journal'),
                # Files of one line that does not end.
                (b'a note', 'is not a journal'),
                (b'{"format": "x"}', 'is not a journal'),
                (lines + b'x', 'is not a journal')):
            self.write_file(path, content)
            self.carry_out_fails(f'error: {path}: {text}', *args, code=1)
            self.assertEqual(content, pathlib.Path(path).read_bytes())
        # What was being written when the power failed.
        for rest in (b'{', b'{"plan": "0', b'\0' * 20):
            self.write_file(path, lines + rest)
            self.carry_out(*args)
            self.assertEqual(lines, pathlib.Path(path).read_bytes())
        for change, text in ((('chmod', 0o640), 'others have access to it'),
                             (('chmod', 0o602), 'others have access to it'),
                             (('chown', 65534, 65534), 'another user')):
            if change[0] == 'chown' and os.geteuid():
                continue
            getattr(os, change[0])(path, *change[1:])
            for mode in ('--yes', '--dry-run'):
                self.assertIn(f'error: {path}: ', self.carry_out_fails(
                    text, mode, '--journal', path, code=1))
            os.chmod(path, 0o600)
        os.remove(path)
        os.mkfifo(path)
        self.carry_out_fails('not a regular file', *args, code=1)

    def test_in_use(self):
        self.plan('a live two')
        self.nova.moving.clear()
        codes = []
        runs = threading.Thread(target=lambda: codes.append(
            self.process().wait(60)))
        runs.start()
        self.wait_for_actions(1)
        self.carry_out_fails('is in use', code=1)
        self.nova.moving.set()
        runs.join()
        self.assertEqual([0], codes)

    # -- as a process

    def process(self, program=_PROGRAM, stderr=subprocess.PIPE):
        return subprocess.Popen(
            [sys.executable, '-c', program, 'plan', 'run', self.path,
             '--yes'], stdout=subprocess.PIPE, stderr=stderr, text=True)

    def wait_for_actions(self, number, seconds=60.0):
        deadline = time.monotonic() + seconds
        while len(self.nova.actions) < number:
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.02)

    def interrupt(self, process):
        """Press Ctrl-C while a move is made, and let that end."""
        process.send_signal(signal.SIGINT)
        time.sleep(0.5)
        self.assertIsNone(process.poll())
        self.nova.moving.set()

    def test_interrupted_while_it_prints(self):
        """Nor does a move begin that could be made at the same time."""
        self.plan('a live two', 'b live three')
        out, err = self.process(_INTERRUPTED + _PROGRAM).communicate(
            timeout=60)
        self.assertIn('Interrupted: waiting for the moves', out)
        self.assertEqual('error: move 2: b stays on one\n', err)
        self.assertEqual({'a': 'two', 'b': 'one'}, self.hosts())

    def test_no_reader(self):
        """Ctrl-C ends "tee", too, to which all is written."""
        self.plan('a live two', 'b live two')
        self.nova.moving.clear()
        process = self.process(stderr=subprocess.STDOUT)
        self.wait_for_actions(1)
        process.stdout.close()
        self.interrupt(process)
        self.assertEqual(130, process.wait(60))
        self.assertEqual({'a': 'two', 'b': 'one'}, self.hosts())
        self.assertEqual('done', self.journal()[-1]['state'])

    def test_interrupted(self):
        """The first Ctrl-C lets what has begun end, the second does not."""
        self.plan('a live two', 'b live two')
        self.nova.moving.clear()
        process = self.process()
        self.wait_for_actions(1)
        self.interrupt(process)
        out, err = process.communicate(timeout=60)
        self.assertEqual(130, process.returncode, err)
        self.assertIn('Interrupted: waiting for the moves', out)
        self.assertEqual('error: move 2: b stays on one\n', err)
        self.assertEqual({'a': 'two', 'b': 'one'}, self.hosts())
        self.nova.moving.clear()
        process = self.process()
        self.wait_for_actions(2)
        for _ in range(2):
            process.send_signal(signal.SIGINT)
            time.sleep(0.5)
        out, err = process.communicate(timeout=60)
        self.assertEqual((130, ''), (process.returncode, err))
        self.assertIn('\none is disabled. To enable it: openstack ', out)
        self.nova.moving.set()
        self.carry_out()
        self.assertEqual(2, len(self.nova.actions))


class EvacuationTest(PlanRunTestCase):
    """Host "one" is down; what happens to a server stops no other."""

    def setUp(self):
        super().setUp()
        self.start(migrating_nova.evacuation(
            'a evacuate two', 'b evacuate three',
            'b-fellow evacuate three b', 'c evacuate two', stays=['d']))
        self.services = {each['host']: each for each in self.nova.services}
        self.services['one']['state'] = 'down'

    def assert_left(self, *names, after=()):
        """Carry out the plan; these, and "d", are then on their host."""
        _out, err = self.carry_out(*after, code=3)
        self.assertEqual({*names, 'd'}, {
            name for name, host in self.hosts().items() if host == 'one'})
        return err

    def test_all(self):
        self.nova.server('a').update({
            'locked': True, 'OS-EXT-STS:task_state': 'powering-off'})
        self.assertNotIn('not in the plan', self.assert_left())
        self.assertEqual({('a', 'evacuate', 'two'), ('c', 'evacuate', 'two'),
                          ('b', 'evacuate', 'three'),
                          ('b-fellow', 'evacuate', 'three')},
                         set(self.nova.actions))
        # One at a time to each host, and none disabled.
        self.assertEqual(2, self.nova.most)
        self.assertEqual('enabled', self.services['one']['status'])

    def test_host_is_up(self):
        self.services['one']['state'] = 'up'
        self.assertIn('nova-compute on one is up',
                      self.assert_left('a', 'b', 'b-fellow', 'c'))
        self.assertEqual([], self.nova.actions)

    def test_unlike_the_plan(self):
        """Of what is not as planned, a dry run tells, and others go on."""
        self.nova.server('a')['OS-EXT-STS:task_state'] = 'deleting'
        self.carry_out_fails(
            'move 1: a is busy on one (deleting)', '--dry-run')
        self.assertIn('is busy on one (deleting)', self.assert_left('a'))

    def test_not_in_the_plan(self):
        unknown = {**self.nova.server('d'), 'id': str(uuid.uuid4()),
                   'name': 'unknown'}
        self.nova.placed[unknown['id']] = unknown
        self.assertIn(f'unknown ({unknown["id"]}) is on one, and not in the '
                      'plan', self.assert_left('unknown'))

    def test_destination_lost(self):
        """Nova is not asked, which would leave the server in ERROR."""
        def lost(found):
            self.services['two']['state'] = 'down'
            return found

        # After the checks, when the first goes elsewhere.
        self.nova.faults['evacuate'] = lost
        err = self.assert_left('c', after=('--yes', '--parallel', '1'))
        self.assertIn('two is down or disabled', err)
        self.assertNotIn('c', [name for name, *_ in self.nova.actions])

    def test_failed(self):
        """Those that depend on it are not tried, others are."""
        self.nova.failing = {'b'}
        self.assertIn('was not tried', self.assert_left('b', 'b-fellow'))
        self.assertNotIn('b-fellow', [name for name, *_ in self.nova.actions])

    def test_forgotten(self):
        """Nova gives up, or ends an older record in place of this one."""
        self.useFixture(fixtures.MockPatchObject(moves, 'EVENTS_END', 0.3))
        self.nova.moving.clear()

        def forget(found):
            for each in self.nova.placed.values():
                each['OS-EXT-STS:task_state'] = None
            if self.nova.actions[-1][0] == 'c':
                self.nova.server('c')['OS-EXT-SRV-ATTR:host'] = 'two'
            return found

        self.nova.faults['evacuate'] = forget
        err = self.assert_left('a', 'b', 'b-fellow')
        self.assertIn('Nova does nothing', err)
        self.assertNotIn('move 4: c', err)

    def test_bad_plans(self):
        for text, how, error in (
                ('a live three', {}, 'evacuations go with no other moves'),
                ('a evacuate one', {'source': 'three'},
                 'none of the hosts that are lost')):
            document = migrating_nova.evacuation(text, 'b evacuate two')
            document['servers'][0].update(how)
            self.write(document)
            self.carry_out_fails(error, code=1)


class SavedPlanTest(PlanRunTestCase, running.RunningTestCase):
    def test_drain(self):
        args = 'host', 'drain', 'one', '--from', self.save_cloud(
            self.running('b vf one', 'a p4 one', 'c p4 two'))
        self.assertEqual(0, self.run_command(
            *args, '--save', self.path, '-f', 'value')[0])
        text = pathlib.Path(self.path).read_text()
        self.assertEqual(text, self.run_command(*args, '-f', 'json')[1])
        self.start(json.loads(text))
        self.carry_out()
        self.assertNotIn('one', self.hosts().values())

    def save_rounds(self, *servers, code=0, at_once='1', steps=''):
        cloud = self.save_cloud(self.running(*servers, steps=steps))
        self.assertEqual(code, self.run_command(
            'host', 'drain', '*', '--at-once', at_once, '--from', cloud,
            '--save', self.path, '-f', 'value')[0])
        self.start(self.document())

    def status(self, name):
        return next(each for each in self.nova.services
                    if each['host'] == name)

    def test_rounds(self):
        """A round at a time; hosts have to come back before the next."""
        self.save_rounds('a p1 one', 'b p1 one', 'c p1 two')
        out, _err = self.carry_out()
        self.assertEqual([
            'three is disabled first.', 'three is disabled: to be emptied',
            '0 of 0 moves made.', 'three is disabled. To enable it: openstack '
            'compute service set --enable -- three nova-compute',
            'When that is done, the next round: nfv-sched plan run '
            f'{self.path} --round 2'], out.splitlines())
        second = '--yes', '--round', '2'
        self.carry_out_fails(
            'error: three is not an enabled compute host\n', *second)
        self.assertEqual('enabled', self.status('two')['status'])
        self.status('three').update(status='enabled', state='down')
        self.carry_out_fails(
            'error: nova-compute on three is down\n', *second)
        self.status('three')['state'] = 'up'
        out, _err = self.carry_out(*second)
        self.assertIn('two is disabled: to be emptied\n', out)
        self.assertIn('--round 3\n', out)
        self.assertNotIn('two', self.hosts().values())
        self.status('two')['status'] = 'enabled'
        out, _err = self.carry_out('--yes', '--round', '3')
        self.assertIn('2 of 2 moves made.\n', out)
        self.assertNotIn('next round', out)
        self.assertNotIn('one', self.hosts().values())
        # Each round has its journal.
        for number, moves_made in ((2, 1), (3, 2)):
            with open(f'{self.path}.round-{number}.journal') as stream:
                self.assertEqual(moves_made, stream.read().count('"done"'))
        self.carry_out_fails(
            'is the journal of another plan', '--yes', '--round', '3',
            '--journal', f'{self.path}.round-2.journal', code=1)

    def test_round_fails(self):
        self.save_rounds('a p1 one', 'b p1 one', 'c p1 two', 'd p1 two',
                         'e p1 two')
        second = '--yes', '--round', '2'
        self.nova.failing = {'a', 'b'}
        out, _err = self.carry_out(*second, code=3)
        self.assertIn('The same command goes on with the rest.\n', out)
        self.assertIn('With --replan 1 it goes on with a new plan, that of: '
                      'nfv-sched host drain --at-once=1 -- one two\n', out)
        self.assertNotIn('next round', out)
        self.nova.failing = set()
        self.carry_out(*second)

    def test_bad_rounds(self):
        self.save_rounds('a p1 one')
        good = self.document()
        first, *others = good['rounds']
        for change, text in (
                ({'at_once': 0}, 'at_once is less than 1'),
                ({'rounds': others[::-1]}, 'rounds are not numbered one'),
                ({'rounds': [{**first, 'round': 0}]}, 'rounds are not'),
                ({'rounds': [{**first, 'enabled': [
                    first['hosts'][0]['host']]}]},
                 "'two' is to be disabled, and must be enabled"),
                ({'rounds': [{**first, 'given_up': ['a\nb']}]},
                 'is not the name of a host')):
            self.write({**good, **change})
            self.carry_out_fails(text, code=1)
        self.assertEqual([], self.nova.requests)

    def test_hosts_at_once(self):
        self.save_rounds('a p1 one', at_once='2')
        self.carry_out()
        self.assertEqual(
            ['disabled', 'disabled'],
            [self.status(name)['status'] for name in ('two', 'three')])

    def test_not_emptied(self):
        """A host that is not in any round is named at the end."""
        self.save_rounds('a p1 one', code=3, steps="""\
            - {resize: a, flavor: p2, host: two, confirm: false}
            """)
        out, err = self.carry_out(code=3)
        self.assertIn('three is disabled: to be emptied\n', out)
        self.assertRegex(err, r"""(?x)
            ^error:\ one\ is\ not\ emptied\n
            error:\ a\ \(\S{36}\)\ also\ holds\ resources\ of\ one\n
            error:\ two\ is\ not\ emptied\n
            error:\ a\ \(\S{36}\)\ stays\ on\ two\n$""")

    def test_no_such_round(self):
        self.save_rounds('a p1 one')
        self.carry_out_fails('there is no round 4: the plan has 3 rounds\n',
                             '--yes', '--round', '4', code=1)
        self.carry_out_fails(
            '--enable-after is for', '--yes', '--enable-after', code=2)
        self.plan('a live two')
        self.carry_out_fails('--round is for a plan of several hosts',
                             '--yes', '--round', '1', code=2)

    def test_at_once(self):
        """--run of a plan of the live cloud."""
        cloud = self.running('a p4 one', 'b p4 two')
        self.useFixture(base.live(lambda: cloud))
        self.listen_as(cloud)
        args = 'host', 'drain', 'one', '--run'
        for more, text in (
                ((), '--run needs --save FILE'),
                (('--save', self.path), '--yes is needed'),
                (('--save', self.path, '-f', 'json'), '--run is not for -f')):
            self.refused(text, *args, *more)
        for option in ('--yes', '--dry-run', '--enable-after',
                       '--parallel 2', '--timeout 60', '--replan 1',
                       '--os-cloud x'):
            self.refused(f'{option.split()[0]} is for --run', 'host', 'drain',
                         'one', *option.split())
        for command, text in (
                (('cloud', 'defrag', '--flavor', 'x'), 'unrecognized arg'),
                (('agent', 'rebalance'), 'unrecognized arg'),
                (('host', 'drain', 'one', '--server', 'a'),
                 plan_execution.NO_ENABLE),
                (('host', 'drain', 'one', 'two'), plan_execution.NO_ENABLE)):
            self.refused(text, *command, '--save', self.path, '--run',
                         '--yes', '--enable-after')
        self.refused('not allowed with argument --dry-run', *args, '--save',
                     self.path, '--dry-run', '--replan', '1')
        # Nobody has to be asked.
        out = self.shown(*args, '--save', self.path, '--dry-run')
        self.assertIn('Nothing was changed: --dry-run.\n', out)
        self.assertEqual([], self.nova.actions)
        self.assertEqual('enabled', self.status('one')['status'])
        args = *args, '--save', self.path, '--yes'
        broken = dataclasses.replace(cloud, missing=(snapshot.Missing(
            kind=snapshot.MissingKind.HOST, hosts=('x',), text='x'),))
        with base.live(lambda: broken):
            _out, err = self.exits(1, *args)
        self.assertIn('the plan is not run', err)
        self.assertEqual([], self.nova.actions)
        out = self.shown(*args)
        self.assertIn('1 server of one: 1 live.', out)
        self.assertIn('1 of 1 move made.', out)
        self.assertNotIn('one', self.hosts().values())
        self.assertIn('one is disabled. To enable it: ', out)
        # It can be continued by plan run.
        self.carry_out()
        self.assertEqual(1, len(self.nova.actions))

    def test_options_of_run(self):
        cloud = self.running('a p1 one', 'b p1 one')
        self.useFixture(base.live(lambda: cloud))
        self.listen_as(cloud)
        out = self.shown(
            'host', 'drain', 'one', '--save', self.path, '--run', '--yes',
            '--parallel', '1', '--enable-after')
        self.assertIn('2 of 2 moves made.', out)
        self.assertIn('one is enabled.\n', out)
        self.assertEqual(1, self.nova.most)
        self.assertEqual('enabled', self.status('one')['status'])

    def test_not_saved(self):
        self.refused(
            'No such file or directory', 'cloud', 'defrag', '--from',
            'fragmented', '--flavor', 'vrouter.6', '--save',
            self.in_folder('no/plan'), code=1)


class ReplanTestCase(PlanRunTestCase, running.RunningTestCase):
    def setUp(self):
        super().setUp()
        self.flavors = {'a': 'p4', 'b': 'p2', 'c': 'p4'}
        self.locate = {'a': 'one', 'b': 'one', 'c': 'two'}.get
        self.services = tuple
        self.useFixture(base.live(self.read))
        self.listen_as(self.read())
        self.locate = lambda name: self.hosts()[name]
        self.services = lambda: self.nova.services

    def read(self):
        return running.disabled(self.running(*[
            f'{name} {flavor} {self.locate(name)}'
            for name, flavor in self.flavors.items()]), *[
                service['host'] for service in self.services()
                if service['status'] == 'disabled'])

    def drain(self, *args, code=0):
        return self.exits(code, 'host', 'drain', 'one', '--save', self.path,
                          '--run', '--yes', *args)

    def fail(self, name):
        """Have the next migration of a server fail."""
        self.nova.failing = {name}

        def once(found):
            self.nova.faults.pop('os-instance-actions', None)
            self.nova.failing = set()
            return found

        self.nova.faults['os-instance-actions'] = once


class ReplanTest(ReplanTestCase):
    def test_failure(self):
        self.fail('a')
        out, err = self.drain(code=3)
        self.assertIn('With --replan 1 it goes on with a new plan, that of: '
                      'nfv-sched host drain -- one\n', out)
        self.assertEqual('one', self.hosts()['a'])
        self.fail('a')
        out, err = self.carry_out('--yes', '--replan', '1')
        self.assertEqual('', err)
        self.assertIn('a: was not moved: the migration is in status error',
                      out)
        self.assertEqual(1, out.count('The rest is planned anew.\n'))
        self.assertIn('1/1 a: done', out)
        self.assertNotIn('one', self.hosts().values())
        # The new plan is the one of the file, and is done.
        out, _err = self.carry_out()
        self.assertIn('1 of 1 move made.', out)
        self.assertEqual([1, 1], [
            line['move'] for line in self.journal()
            if line['state'] == 'failed'])
        self.assertEqual(1, sum(
            line['state'] == 'replanned' for line in self.journal()))

    def test_enabled_meanwhile(self):
        self.nova.failing = {'a'}
        self.drain('--replan', '1', code=3)
        self.nova.failing = set()
        self.nova.services[0]['status'] = 'enabled'
        out, _err = self.carry_out()
        self.assertEqual('one is disabled first.', out.splitlines()[0])
        self.assertIn('one is disabled: to be emptied\n', out)

    def test_unchecked(self):
        """The moves are made, but the cloud cannot be read any more."""
        cloud = self.read()
        with base.live(mock.Mock(
                side_effect=[cloud, errors.CloudUnreadError('gone')])):
            _out, err = self.drain(code=1)
        self.assertEqual(
            'error: strict policies of 2 servers that were moved were not '
            'checked: gone\n', err)
        self.assertNotIn('one', self.hosts().values())
        busy = dataclasses.replace(self.read(), servers=tuple([
            dataclasses.replace(server, task='rebooting')
            if server.name == 'a' else server
            for server in self.read().servers]))
        with base.live(lambda: busy):
            _out, err = self.carry_out(code=1)
        self.assertEqual('error: strict policies were not checked of a\n',
                         err)
        out, _err = self.carry_out()
        self.assertIn('Checked: the strict policies', out)

    def test_left_out(self):
        """A server that the cloud lacks may be in what was not read."""
        self.drain()
        first, second = sorted(
            self.nova.server(name)['id'] for name in 'ab')
        kept = tuple([each for each in self.read().servers
                      if each.name == 'c'])
        for missing, unchecked in (
                ({'kind': snapshot.MissingKind.CELL, 'uuids': ('x',)},
                 f'{first}, {second}'),
                ({'kind': snapshot.MissingKind.SERVER, 'uuids': (second,)},
                 second)):
            cloud = dataclasses.replace(
                self.read(), servers=kept,
                missing=(snapshot.Missing(**missing),))
            with base.live(lambda: cloud):
                _out, err = self.carry_out(code=1)
            self.assertEqual('error: strict policies were not checked of '
                             f'{unchecked}\n', err)
        # They were deleted.
        cloud = dataclasses.replace(cloud, missing=())
        with base.live(lambda: cloud):
            out, err = self.carry_out()
        self.assertEqual('', err)

    def test_limit(self):
        self.nova.failing = {'a'}
        out, err = self.drain(
            '--replan', '1', '--mib-per-second', '9', code=3)
        self.assertEqual(1, out.count('The rest is planned anew.\nAbout 1 '))
        self.assertEqual(9, self.document()['estimate']['mib_per_second'])
        self.assertEqual(2, [each[0] for each in self.nova.actions].count('a'))
        self.assertIn('error: move 1: a was not moved', err)

    def test_question(self):
        self.fail('a')
        stdin = io.StringIO('y\n')
        stdin.isatty = lambda: True
        with mock.patch('sys.stdin', stdin):
            code, out, err = self.run_command(
                'host', 'drain', 'one', '--save', self.path, '--run',
                '--replan', '1')
        self.assertEqual((0, 'Begin? [y/N] '), (code, err), out)

    def test_in_progress(self):
        """Where a move ends that was not waited for is not known."""
        self.drain('--replan', '1')
        self.nova.server('a')['OS-EXT-SRV-ATTR:host'] = 'one'
        os.remove(f'{self.path}.journal')
        self.run_command('host', 'drain', 'one', '--save', self.path)
        self.nova.moving.clear()
        out, err = self.carry_out(
            '--yes', '--replan', '1', '--timeout', '1', code=3)
        self.assertNotIn('planned anew', out)
        self.nova.moving.set()
        # It ends, although nothing else may begin.
        self.nova.services[0]['state'] = 'down'
        out, err = self.carry_out()
        self.assertEqual('', err)

    def test_unread(self):
        """No new plan is run that may be wrong."""
        self.nova.failing = {'a'}
        self.drain(code=3)
        plan = self.document()
        for read, text in (
                (lambda: dataclasses.replace(
                    self.running('a p4 one'), missing=(snapshot.Missing(
                        kind=snapshot.MissingKind.HOST, hosts=('x',),
                        text='host x was not read'),)),
                 'host x was not read\nerror: the plan is not run'),
                (lambda: dataclasses.replace(
                    self.running('a p4 one'), hosts=()),
                 "no host named 'one'")):
            with base.live(read):
                err = self.carry_out_fails(
                    text, '--yes', '--replan', '1', code=1)
            self.assertIn('error: move 1: a was not moved', err)
            self.assertEqual(plan, self.document())
        # The old plan can still be carried out.
        self.nova.failing = set()
        self.carry_out()

    def test_options(self):
        self.refused('--replan is not for --from', 'host', 'drain', 'one',
                     '--replan', '1', '--run', '--yes', '--save', self.path,
                     '--from', 'two-hosts')
        self.refused('not allowed with argument', 'plan', 'run', self.path,
                     '--dry-run', '--replan', '1')

    def test_defrag(self):
        """The new plan has the options of the old one."""
        # The largest first: wherever the others are, it has room on a node.
        self.flavors = {'c': 'p3', 'a': 'p2', 'b': 'p2'}
        for name, host in (('b', 'two'), ('c', 'three')):
            self.nova.server(name)['OS-EXT-SRV-ATTR:host'] = host
        args = ('cloud', 'defrag', '--flavor', 'p4', '--count', '4',
                '--max-moves', '3', '--avoid', 'c*', '--ports', '0')
        self.nova.failing = {'a', 'b', 'c'}
        out, _err = self.exits(
            3, *args, '--save', self.path, '--run', '--yes')
        self.assertIn(
            "nfv-sched cloud defrag --flavor=p4 --count=4 '--avoid=c*' "
            '--max-moves=3 --ports=0\n', out)
        plan = self.document()
        self.nova.failing = set()
        plan['moves'][0]['source'] = 'three'
        plan['moves'][0]['destination'] = 'two'
        self.write(plan)
        os.remove(f'{self.path}.journal')
        self.carry_out('--yes', '--replan', '1')
        again = self.document()
        self.assertEqual(plan['options'], again['options'])
        self.assertTrue(again['enough'])

    def test_rearrange(self):
        """What is left to do has the options of the plan."""
        self.flavors = dict.fromkeys('abc', 'p2')
        for name in ('a', 'b', 'c'):
            self.nova.server(name)['OS-EXT-SRV-ATTR:host'] = 'two'
        for args in (('spread', '--max-moves=3', '--points=25'),
                     ('consolidate', '--max-moves=3', '--hosts=1')):
            self.nova.failing = {'a', 'b', 'c'}
            out, _err = self.exits(3, 'cloud', *args, '--save', self.path,
                                   '--run', '--yes')
            self.assertIn(f'nfv-sched cloud {" ".join(args)}\n', out)
            os.remove(f'{self.path}.journal')
            self.nova.failing = set()
            plan = self.document()
            plan['moves'][0].update(source='one', destination='three')
            self.write(plan)
            self.carry_out('--yes', '--replan', '1')
            self.assertEqual(plan['options'], self.document()['options'])
            os.remove(f'{self.path}.journal')


class AgentPlanTestCase(PlanRunTestCase):
    def setUp(self):
        super().setUp()
        cloud = self.save_cloud(snapshots.with_uuids(test_rebalance.CLOUD))
        self.run_command('agent', 'rebalance', '--from', cloud, '--save',
                         self.path, '-f', 'commands')
        path = pathlib.Path(self.path)
        # Of the right length, but not as Neutron writes them.
        path.write_text(re.sub('"([0-9a-f]{32})"', lambda match: (
            f'"{uuid.UUID(match[1])}"'), path.read_text()))
        self.moves = self.document()['moves']
        self.listen()
        for move in self.moves:
            for key in ('source_agent_id', 'destination_agent_id'):
                self.api.served.setdefault(move[key], [])
            self.api.served[move['source_agent_id']].append(
                {'id': move['service_id']})
        self.api.agents = [
            {**neutron_api.agent('DHCP agent', 'h'), 'id': each}
            for each in self.api.served]


class AgentPlanTest(AgentPlanTestCase):

    def test_all(self):
        self.assertEqual({'dhcp', 'router'},
                         {move['kind'] for move in self.moves})
        self.carry_out()
        for move in self.moves:
            self.assertIn({'id': move['service_id']},
                          self.api.served[move['destination_agent_id']])
        self.assertEqual(2 * len(self.moves), len(self.api.changes))
        self.carry_out()
        self.assertEqual(2 * len(self.moves), len(self.api.changes))

    def test_many_agents(self):
        """Neutron does not show all at once."""
        self.api.max_agents = 1
        self.carry_out()

    def test_at_once(self):
        """--run of a plan of what Neutron shows."""
        # Its identifiers are none.
        _out, err = self.exits(
            1, 'agent', 'rebalance', '--from', self.in_folder('cloud'),
            '--save', self.in_folder('other'), '--run', '--yes')
        self.assertIn('is not a UUID', err)

    def test_refused(self):
        first = self.moves[0]
        self.api.refusing.add(first['destination_agent_id'])
        self.carry_out_fails('was not moved: It is full\n')
        self.assertIn({'id': first['service_id']},
                      self.api.served[first['source_agent_id']])
        self.assertEqual(3, len(self.api.changes))

    def test_replan(self):
        first = self.moves[0]
        cloud = snapshots.with_uuids(test_rebalance.CLOUD)
        seen = self.useFixture(fixtures.MockPatchObject(
            api, 'read', return_value=cloud)).mock
        self.api.refusing.add(first['destination_agent_id'])
        # The cloud is as it was, so the new plan is for agents that are not.
        out, err = self.carry_out('--yes', '--replan', '1', code=1)
        self.assertIn('error: the new plan: move 1: ', err)
        self.assertIn('was not moved: It is full', err)
        seen.assert_called_once()
        self.assertIn('network_agents', seen.call_args.args[1])

    def test_changed(self):
        self.api.served[self.moves[0]['source_agent_id']] = []
        self.api.agents[1]['alive'] = False
        err = self.carry_out_fails(' is not on one\n')
        self.assertIn('is not there, down or disabled\n', err)
        self.assertEqual([], self.api.changes)
