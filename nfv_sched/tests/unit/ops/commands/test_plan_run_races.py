# SPDX-License-Identifier: Apache-2.0
"""``nfv-sched plan run`` where others act, or answers do not come."""

import contextlib
import os
import re
import shlex
import threading
from unittest import mock

import fixtures

from nfv_sched.ops.cli import errors
from nfv_sched.ops.commands import plan_file
from nfv_sched.ops.run import moves
from nfv_sched.ops.run import runner
from nfv_sched.tests.unit.ops.commands import test_plan_run


class ConfirmedLateTest(test_plan_run.PlanRunTestCase):

    def test_migration_first(self):
        """Nova confirms the migration before the server shows it."""
        self.plan('a cold two')
        states = iter(['VERIFY_RESIZE'] * 4)

        def show(found):
            status, body = found
            if 'server' in body and self.nova.migrations and (
                    self.nova.migrations[0]['status'] == 'confirmed'):
                body = {'server': {**body['server'], 'status': next(
                    states, 'ACTIVE')}}
            return status, body

        self.nova.faults['servers'] = show
        self.carry_out()
        self.assertEqual({'a': 'two'}, self.hosts())
        self.assertEqual('unused', next(states, 'unused'))


class OthersTest(test_plan_run.PlanRunTestCase):
    """What others do with a server after the run was killed."""

    def setUp(self):
        super().setUp()
        self.plan('a cold two')
        with contextlib.closing(self.open_journal()) as journal:
            journal.add(self.move, 'asked')

    def open_journal(self):
        saved = plan_file.read(self.path)
        self.move, = saved.plan.moves
        return runner.MoveJournal(f'{self.path}.journal', saved.digest)

    def migrate(self, host, migration_type='migration'):
        """Have somebody migrate the server until it is to be confirmed."""
        server = self.nova.server('a')
        self.nova.answer('POST', ['servers', server['id'], 'action'], {}, {
            'migrate': {'host': host}})
        self.nova.migrations[0].update(
            status='finished', migration_type=migration_type)
        server.update({
            'status': 'VERIFY_RESIZE', 'OS-EXT-SRV-ATTR:host': host,
            'OS-EXT-STS:task_state': None, 'OS-EXT-STS:vm_state': 'resized'})

    def test_resize(self):
        """That is for the owner of the server to confirm."""
        self.migrate('two', 'resize')
        self.carry_out_fails('a is VERIFY_RESIZE on two, not on one\n')
        self.assertEqual([('a', 'migrate', 'two')], self.nova.actions)

    def test_elsewhere(self):
        self.migrate('three')
        self.carry_out_fails('a was moved to three by another request, which '
                             'is not confirmed\n')
        self.assertEqual([('a', 'migrate', 'three')], self.nova.actions)

    def ask(self):
        """Have Nova begin with what the run that was killed has asked."""
        self.nova.answer('POST', ['servers', self.move.id, 'action'], {}, {
            'migrate': {'host': 'two'}})

    def test_under_way(self):
        """Nova takes a second to begin."""
        self.useFixture(fixtures.MockPatchObject(moves, 'GRACE', 30))
        timer = threading.Timer(1, self.ask)
        timer.start()
        self.carry_out()
        timer.join()
        self.assertEqual([('a', 'migrate', 'two'),
                          ('a', 'confirmResize', None)], self.nova.actions)

    def test_overtaken(self):
        """It begins when it is asked again."""
        answer = self.nova.answer

        def overtake(method, path, query, body):
            if method == 'POST':
                self.nova.answer = answer
                self.ask()
            return answer(method, path, query, body)

        self.nova.answer = overtake
        self.carry_out()
        self.assertEqual([
            ('a', 'migrate', 'two'), ('a', 'migrate', 'two'),
            ('a', 'confirmResize', None)], self.nova.actions)


class FullDiskTest(test_plan_run.PlanRunTestCase):

    def test_partial_line(self):
        """There is space again for the records after it."""
        self.plan('a live two', 'b live three')
        saved = plan_file.read(self.path)
        path = f'{self.path}.journal'
        with contextlib.closing(runner.MoveJournal(path, saved.digest)) as (
                journal):
            for move in saved.plan.moves:
                journal.add(move, 'asked')
            size = os.path.getsize(path)
            write = os.write
            with mock.patch('os.write', lambda descriptor, data: write(
                    descriptor, data[:40])):
                self.assertRaises(
                    OSError, journal.add, saved.plan.moves[0], 'done')
            self.assertEqual(size, os.path.getsize(path))
            journal.add(saved.plan.moves[1], 'done')
        with contextlib.closing(runner.MoveJournal(path, saved.digest)) as (
                journal):
            self.assertEqual(
                {1: 'asked', 2: 'done'}, {
                    number: record.state
                    for number, record in journal.last.items()})


class BegunTest(test_plan_run.PlanRunTestCase):
    """What has begun goes on, whatever happens to the rest."""

    def setUp(self):
        super().setUp()
        self.plan('a cold two', 'b live two')
        self.nova.moving.clear()
        self.carry_out('--yes', '--timeout', '1', code=3)
        self.nova.moving.set()
        self.nova.services[0]['status'] = 'enabled'

    def test_not_disabled(self):
        self.nova.faults['PUT'] = lambda found: (403, {
            'forbidden': {'code': 403, 'message': 'Not you.'}})
        out, err = self.carry_out(code=1)
        self.assertIn('no other move begins: Not you\n', out)
        self.assertEqual('error: Not you\n', err)
        self.assertEqual('ACTIVE', self.nova.server('a')['status'])
        self.assertEqual({'a': 'two', 'b': 'one'}, self.hosts())

    def test_unread(self):
        self.nova.faults['os-services'] = lambda found: (
            200, {'services': [{}]})
        _out, err = self.carry_out(code=3)
        self.assertEqual(
            "error: GET /os-services: malformed answer: without a proper "
            "'host'\nerror: move 2: b stays on one\n", err)
        self.assertEqual('ACTIVE', self.nova.server('a')['status'])
        self.assertEqual({'a': 'two', 'b': 'one'}, self.hosts())
        self.nova.faults['os-services'] = lambda found: (500, {})
        self.carry_out_fails('error: GET /os-services: 500', code=1)


class ClosedHostTest(test_plan_run.PlanRunTestCase):
    """A host that is left disabled, or may be, is named at the end."""

    IS, MAY_BE = [
        f'\none {verb} disabled. To enable it: openstack compute service set '
        '--enable -- one nova-compute\n' for verb in ('is', 'may be')]

    def setUp(self):
        super().setUp()
        self.plan('a live two', 'b live two')

    def check(self, *args, code, says):
        """Run the plan; compare what it says of the host, None for nothing."""
        out, err = self.carry_out('--yes', *args, code=code)
        self.assertEqual(
            [each for each in (says,) if each],
            [each for each in (self.IS, self.MAY_BE) if each in f'\n{out}'],
            out + err)
        return out, err

    def test_unanswered(self):
        """The request has an effect, and no answer."""
        self.nova.faults['PUT'] = lambda found: (504, {})
        self.check(code=1, says=self.MAY_BE)
        self.nova.faults = {'os-services': lambda found: (503, {})}
        self.check(code=1, says=self.MAY_BE)
        self.nova.faults.clear()
        self.check(code=0, says=self.IS)
        self.nova.services[0]['status'] = 'enabled'
        self.check(code=0, says=None)

    def test_refused(self):
        self.nova.faults['PUT'] = lambda found: (
            self.nova.services[0].update(status='enabled') or (403, {}))
        self.check(code=1, says=None)
        self.nova.faults = {'os-services': lambda found: (503, {})}
        self.check(code=1, says=None)

    def test_not_enabled(self):
        """--enable-after, while Nova does not answer."""
        for number, grace, code, says in (
                (2, 30, 0, None), (100, 0.2, 1, self.IS)):
            self.plan('a live two', 'b live two')
            answers = iter([(503, {})] * number)
            self.nova.faults['os-services'] = lambda found, each=answers: (
                found if 'one' in self.hosts().values()
                else next(each, found))
            with mock.patch.object(moves, 'GRACE', grace):
                out, err = self.check(
                    '--enable-after', '--journal',
                    self.in_folder(f'journal-{number}'),
                    code=code, says=says)
            self.assertEqual(not code, 'one is enabled.\n' in out)
            self.assertEqual(code, err.count('GET /os-services: 503'))
            self.assertEqual('disabled' if code else 'enabled',
                             self.nova.services[0]['status'])

    def test_changed(self):
        self.nova.failing = {'a'}
        self.check(code=3, says=self.IS)
        self.nova.server('b')['locked'] = True
        out, _err = self.check(code=3, says=self.IS)
        self.assertIn('Nothing was changed: ', out)
        self.nova.faults['GET'] = lambda found: (503, {})
        self.check(code=1, says=self.IS)
        self.api.stop()
        self.check(code=1, says=self.IS)


class ReturnedTest(test_plan_run.PlanRunTestCase):

    def test_server(self):
        """A replay of a plan does not move again what has come back."""
        self.plan('a live two', 'b live three', 'c shelve -')
        self.carry_out()
        number = len(self.nova.actions)
        self.nova.server('a')['OS-EXT-SRV-ATTR:host'] = 'one'
        self.nova.server('b')['OS-EXT-SRV-ATTR:host'] = 'two'
        out, _err = self.carry_out(code=3)
        self.assertIn('3 of 3 moves made; a is on one again.\n', out)
        _out, err = self.carry_out('--dry-run', code=3)
        self.assertEqual('error: a is on one again\n', err)
        self.assertEqual(number, len(self.nova.actions))


class RefusedConfirmationTest(test_plan_run.PlanRunTestCase):

    def test_again(self):
        """The server is where it should be; the next run confirms it."""
        self.plan('a cold two')
        answer = self.nova.answer

        def refuse(method, path, query, body):
            if body and 'confirmResize' in body:
                return status, {'x': {'message': 'No.'}}
            return answer(method, path, query, body)

        self.nova.answer = refuse
        for status in (400, 403, 404):
            _out, err = self.carry_out(code=3)
            self.assertEqual(
                'error: move 1: a is on two, waits to be confirmed, and holds '
                'resources on one, too: No; to confirm it: openstack server '
                f'resize confirm -- {self.nova.server("a")["id"]}\n', err)
            self.assertEqual('moving', self.journal()[-1]['state'])
        self.nova.answer = answer
        self.carry_out()
        self.assertEqual('ACTIVE', self.nova.server('a')['status'])


class RetriesTest(test_plan_run.PlanRunTestCase):

    def test_status_code_retries(self):
        """An account with which other clients repeat requests."""
        self.plan('a live two')
        self.nova.faults['os-migrateLive'] = lambda found: (503, {})
        variables = {name: os.environ[name] for name in self.api.variables()}
        for name in variables:
            self.useFixture(fixtures.EnvironmentVariable(name))
        path = self.write_file('clouds.yaml', {'clouds': {'x': {
            'status_code_retries': 2, 'auth': {
                name.removeprefix('OS_').lower(): value
                for name, value in variables.items()}}}})
        self.useFixture(fixtures.EnvironmentVariable(
            'OS_CLIENT_CONFIG_FILE', path))
        self.carry_out('--yes', '--os-cloud', 'x')
        self.assertEqual([('a', 'os-migrateLive', 'two')], self.nova.actions)


class OverwrittenPlanTest(test_plan_run.ReplanTestCase):
    """A command that plans anew must not replace a plan that has begun."""

    def setUp(self):
        super().setUp()
        self.nova.failing = {'a'}
        self.path = self.in_folder('a plan')
        self.out, _err = self.drain(code=3)
        with open(self.path, 'rb') as stream:
            self.plan_saved = stream.read()

    def refused(self, *args):
        """Save another plan there, in vain; return standard error."""
        err = super().refused(
            f'error: {self.path} is not written: ', 'host', 'drain', 'two',
            '--save', self.path, *args, code=1)
        with open(self.path, 'rb') as stream:
            self.assertEqual(self.plan_saved, stream.read())
        return err

    def test_rest(self):
        command, = re.findall('To go on with the rest: nfv-sched (.*)',
                              self.out)
        self.assertEqual(['plan', 'run', self.path], shlex.split(command))
        number = len(self.nova.actions)
        for args in ((), ('--run', '--yes')):
            self.assertIn('is the journal of another plan; remove it, or use '
                          'another file; to go on with the plan in it: '
                          f'nfv-sched {command}\n', self.refused(*args))
        self.assertEqual(number, len(self.nova.actions))
        self.nova.failing = set()
        self.exits(0, *shlex.split(command), '--yes')
        self.assertNotIn('one', self.hosts().values())

    def test_in_use(self):
        with contextlib.closing(runner.MoveJournal(
                f'{self.path}.journal',
                plan_file.digest(self.plan_saved))):
            self.assertIn('is in use', self.refused())

    def test_round(self):
        """A later round has a journal of its own."""
        os.rename(f'{self.path}.journal', f'{self.path}.round-2.journal')
        self.assertIn("'{}' --round 2\n".format(self.path), self.refused())

    def test_not_begun(self):
        """A run that asked, and was told not to begin."""
        os.truncate(f'{self.path}.journal', 0)
        self.exits(0, 'host', 'drain', 'two', '--save', self.path)


class UnsavedPlanTest(test_plan_run.ReplanTestCase):

    def test_not_saved(self):
        """What was made of the old plan is counted."""
        self.nova.failing = {'b'}
        self.drain(code=3)
        with mock.patch.object(
                plan_file, 'save',
                side_effect=errors.CloudUnreadError('disk full')):
            out, err = self.carry_out('--yes', '--replan', '1', code=1)
        self.assertIn('error: disk full\n', err)
        self.assertIn('1 of 2 moves made.\n', out)
        self.nova.failing = set()
        self.carry_out()
        self.assertNotIn('one', self.hosts().values())


class UnansweredAgentTest(test_plan_run.AgentPlanTestCase):
    """Neutron refuses what it has done already, or gives no answer."""

    def setUp(self):
        super().setUp()
        self.first = self.moves[0]

    def hosts_of_first(self):
        return [key for key in ('source', 'destination')
                if {'id': self.first['service_id']} in self.api.served[
                    self.first[f'{key}_agent_id']]]

    def delay(self, what):
        """Have the first change take effect only when it is asked again."""
        change = self.api.change

        def repeated(*args):
            self.api.change = change
            change(*args)
            return change(*args)

        def unanswered(*args):
            if args[0] != what:
                return change(*args)
            self.api.change = repeated
            return 504, {}

        self.api.change = unanswered

    def assert_moved(self, *args):
        self.carry_out(*args)
        self.assertEqual(['destination'], self.hosts_of_first())

    def test_removed(self):
        self.delay('remove')
        self.assert_moved('--yes', '--parallel', '1')

    def test_added(self):
        self.delay('add')
        self.assert_moved('--yes', '--parallel', '1')

    def test_on_none(self):
        """The source agent was disabled meanwhile, too."""
        self.api.refusing = set(self.api.served)
        self.carry_out_fails(
            ' is on no agent now: It is full; it could not be given back to '
            f'{self.first["source"]}: It is full\n',
            '--yes', '--parallel', '1', '--replan', '1')
        self.assertEqual([], self.hosts_of_first())
        self.api.refusing = set()
        self.assert_moved()
