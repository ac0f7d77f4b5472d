# SPDX-License-Identifier: Apache-2.0
"""``plan run --replan`` of rounds; ``plan run`` and the snapshot service."""

import dataclasses
import os
import signal
import time
from unittest import mock

import fixtures

from nfv_sched.ops.cli import errors
from nfv_sched.ops.cloud import remote
from nfv_sched.ops.commands import plan_file
from nfv_sched.ops.commands import replanning
from nfv_sched.ops.commands import source
from nfv_sched.ops.run import runner
from nfv_sched.ops.serve.metrics import auth
from nfv_sched.ops.serve.metrics import server
from nfv_sched.ops.serve import publication
from nfv_sched.tests.unit.ops.commands import test_plan_run
from nfv_sched.tests.unit.ops.commands import test_serve


class RoundsReplanTest(test_plan_run.ReplanTestCase):
    """New plans for the hosts of a round, and of those after it."""

    def setUp(self):
        super().setUp()
        # It fits on each host.
        self.flavors['c'] = 'p2'

    def drain(self, *args, code=0):
        """Plan to empty hosts "one" and "two", and carry out a round.

        Host "two" is the first: it has fewer servers.
        """
        return self.exits(code, 'host', 'drain', 'one', 'two', '--save',
                          self.path, '--run', '--yes', *args)

    def rounds(self):
        return {each['round']: [host['host'] for host in each['hosts']]
                for each in self.document()['rounds']}

    def tried(self, name):
        return [each[2] for each in self.nova.actions if each[0] == name]

    def test_round_left_out(self):
        self.shown('host', 'drain', 'one', 'two', '--save', self.path)
        self.nova.failing = {'a'}
        self.carry_out_fails(
            'error: there is no new plan: round 1 was not carried out, and '
            'its hosts would be left out: two\n',
            '--yes', '--round', '2', '--replan', '1', code=1)
        self.assertEqual({1: ['two'], 2: ['one']}, self.rounds())

    def test_other_journals(self):
        """With --journal it is not known which rounds were carried out."""
        self.shown('host', 'drain', 'one', 'two', '--save', self.path)
        self.fail('a')
        self.carry_out('--yes', '--round', '2', '--replan', '1', '--journal',
                       f'{self.path}.other')
        self.assertEqual({2: ['one']}, self.rounds())

    def test_interrupted(self):
        """While it plans anew, it still says what is disabled."""
        self.fail('c')

        def terminate(*args, **kwargs):
            signal.raise_signal(signal.SIGTERM)

        with mock.patch.object(replanning, 'plan_again', terminate):
            out, _err = self.drain('--replan', '1', code=130)
        self.assertIn('two is disabled. To enable it', out)

    def test_given_up(self):
        """No host takes it: the others wait for their own round."""
        self.nova.failing = {'c'}
        out, err = self.drain('--replan', '3', code=3)
        self.assertEqual(['one', 'three'], sorted(self.tried('c')))
        self.assertEqual('error: two is not emptied in this round\n', err)
        self.assertIn('If two is not to be emptied later, enable it: openstack'
                      ' compute service set --enable -- two nova-compute\n',
                      out)
        self.assertEqual({1: [], 2: ['one']}, self.rounds())
        self.assertEqual('enabled', self.nova.services[0]['status'])
        self.assertIn('--round 2\n', out)
        # It is said again.
        self.nova.failing = set()
        number = len(self.nova.actions)
        _out, err = self.carry_out(code=3)
        self.assertEqual('error: two is not emptied in this round\n', err)
        self.assertEqual(number, len(self.nova.actions))
        # At the end it is named with the reason.
        _out, err = self.carry_out('--yes', '--round', '2', code=3)
        self.assertRegex(err, r"""(?x)
            ^error:\ two\ is\ not\ emptied\n
            error:\ c\ \(\S+\)\ stays\ on\ two;\ its\ move\ to\ """)
        self.assertNotIn('one', self.hosts().values())

    def test_killed(self):
        """At each step of the new plan the same command goes on."""
        for what in ('plan_again', 'save'):
            with self.subTest(what=what):
                self.nova.failing = {'c'}
                step = {
                    'plan_again': mock.patch.object(
                        replanning, 'plan_again',
                        side_effect=KeyboardInterrupt),
                    'save': mock.patch.object(
                        plan_file, 'save',
                        side_effect=[mock.DEFAULT, KeyboardInterrupt],
                        wraps=plan_file.save)}[what]
                with step:
                    self.assertEqual(130, self.run_command(
                        'host', 'drain', 'one', 'two', '--save', self.path,
                        '--run', '--yes', '--replan', '1')[0])
                self.nova.failing = set()
                self.carry_out('--yes', '--round', '1')
                self.assertNotIn('two', self.hosts().values())
                os.remove(f'{self.path}.round-1.journal')
                self.nova.server('c')['OS-EXT-SRV-ATTR:host'] = 'two'
                for service in self.nova.services:
                    service['status'] = 'enabled'

    def test_killed_after(self):
        """The new plan is saved, and has not begun."""
        self.fail('c')
        with mock.patch.object(runner.MoveJournal, 'replan',
                               side_effect=KeyboardInterrupt):
            self.assertEqual(130, self.run_command(
                'host', 'drain', 'one', 'two', '--save', self.path, '--run',
                '--yes', '--replan', '1')[0])
        self.carry_out()
        self.assertEqual(['one', 'three'], sorted(self.tried('c')))
        self.assertNotIn('two', self.hosts().values())


class RestTest(test_plan_run.ReplanTestCase):
    """The command that goes on with the rest."""

    def test_options(self):
        self.nova.failing = {'a'}
        out, _err = self.drain('--parallel', '2', '--timeout', '99',
                               '--enable-after', code=3)
        self.assertIn(f'To go on with the rest: nfv-sched plan run {self.path}'
                      ' --parallel 2 --timeout 99 --enable-after\n', out)


class ServedTestCase(test_plan_run.ReplanTestCase):
    """A test with "snapshot serve" on a host, and no databases here.

    :ivar asked: number of requests for its snapshot
    :ivar refreshed: whether it reads the cloud again, before every sixth
        answer
    """

    def setUp(self):
        super().setUp()
        self.useFixture(fixtures.MockPatchObject(
            source, 'reader', side_effect=errors.NotConfiguredError))
        self.useFixture(fixtures.MockPatchObject(
            remote, 'NEWER_INTERVAL', 0.3))
        for name in (remote.TOKEN, remote.CERT, remote.KEY):
            self.useFixture(fixtures.EnvironmentVariable(name))
        self.useFixture(fixtures.EnvironmentVariable(
            remote.TOKEN, 'ann:secret'))
        self.published = publication.Publication(
            auth.read(self.write_file('users', test_serve.USERS)),
            lambda accept: ('', b''), mock.Mock())
        self.publish()
        self.asked = 0
        self.refreshed = True
        self.listener = server.Listener(('127.0.0.1', 0), self.respond)
        self.listener.start()
        self.addCleanup(self.listener.stop)
        self.url = f'http://127.0.0.1:{self.listener.server_port}'

    def read(self):
        return dataclasses.replace(super().read(), taken=now())

    def publish(self):
        self.published.publish(self.read())

    def respond(self, request):
        self.asked += 1
        if self.refreshed and not self.asked % 6:
            self.publish()
        return self.published.respond(request)


class ServedReplanTest(ServedTestCase):
    """New plans of what "snapshot serve" reads when the moves have ended."""

    def test_drain(self):
        self.fail('a')
        out, err = self.drain('--from', self.url, '--replan', '1')
        self.assertEqual('', err)
        self.assertRegex(
            out, rf'The snapshot of {self.url} is \d+ s old: waiting for one '
            r'of the cloud as it is now, for 900 s at most\.\n')
        self.assertEqual(['three', 'two'], sorted(
            each[2] for each in self.nova.actions if each[0] == 'a'))
        # GET; for the new plan, and for the check, HEADs and GET.
        self.assertEqual(13, self.asked)
        self.assertNotIn('one', self.hosts().values())
        self.assertIn('Checked: the strict policies', out)

    def test_plan_run(self):
        """It goes on with a plan of which Nova's databases are elsewhere."""
        self.nova.failing = {'a'}
        out, _err = self.drain('--from', self.url, code=3)
        self.assertIn(f'To go on with the rest: nfv-sched plan run {self.path}'
                      f' --from {self.url}\n', out)
        self.fail('a')
        out, err = self.carry_out('--yes', '--replan', '1', '--from', self.url)
        self.assertEqual('', err)
        self.assertIn('waiting for one of the cloud as it is now', out)
        self.assertNotIn('one', self.hosts().values())


class ServedCheckTest(ServedTestCase):
    """Strict policies, checked with what "snapshot serve" reads afterwards."""

    astray = False

    def setUp(self):
        super().setUp()
        # First, while the node of the virtual switch is free: before Nova 34
        # "a" would be put on it.
        self.flavors = {'b': 'strict', 'a': 'p4', 'c': 'p4'}
        self.publish()

    def read(self):
        """The cloud as it is now; server "b" may be on the wrong node."""
        cloud = super().read()
        return dataclasses.replace(cloud, servers=tuple([
            astray(each, cloud) if self.astray and each.name == 'b' else each
            for each in cloud.servers]))

    def test_kept(self):
        for out, err in (self.drain('--from', self.url),
                         self.carry_out('--yes', '--from', self.url)):
            self.assertEqual('', err)
            self.assertEqual(1, out.count('waiting for one of the cloud'))
            self.assertIn('Checked: the strict policies of the servers that '
                          'were moved are kept.\n', out)
            self.assertNotIn('not checked', out)
        self.assertNotIn('one', self.hosts().values())

    def test_not_kept(self):
        """A reading that was begun before the moves have ended is no help."""
        begun = self.read()
        self.published.publish(dataclasses.replace(
            begun, taken='2026-01-02T03:04:05Z'))
        respond = self.respond

        def respond_late(request):
            self.astray = 'one' not in self.hosts().values()
            if self.asked == 3:
                self.published.publish(begun)
            return respond(request)

        with mock.patch.object(self.listener, 'respond', respond_late):
            _out, err = self.drain('--from', self.url, code=3)
        self.assertRegex(
            err, r'^error: b \(\S+\) on (two|three): '
            r'nfv:vswitch_numa_affinity=strict.*\n$')
        self.assertGreater(self.asked, 6)

    def test_none_comes(self):
        self.useFixture(fixtures.MockPatchObject(remote, 'NEWER_SECONDS', 1))
        self.refreshed = False
        unchecked = (
            'error: strict policies of 2 servers that were moved were not '
            f'checked: {self.url}: no snapshot of the cloud as it is now came '
            'in 1 s\n')
        out, err = self.drain('--from', self.url, code=1)
        self.assertEqual(unchecked, err)
        self.assertIn('2 of 2 moves made.\n', out)
        self.assertIn(f'To check them: nfv-sched plan run {self.path} --from '
                      f'{self.url}\n', out)
        out, err = self.carry_out('--yes', '--from', self.url, code=1)
        self.assertEqual(unchecked, err)
        self.assertIn('The same command checks them.\n', out)
        self.refreshed = True
        remote.NEWER_SECONDS = 900
        out, _err = self.carry_out('--yes', '--from', self.url)
        self.assertIn('Checked: ', out)

    def test_interrupted(self):
        # In the background of a shell Python ignores it.
        self.addCleanup(signal.signal, signal.SIGINT, signal.signal(
            signal.SIGINT, signal.default_int_handler))
        respond = self.respond
        self.refreshed = False
        for number, command in ((signal.SIGINT, self.drain),
                                (signal.SIGTERM, self.carry_out)):
            def interrupt(request, number=number):
                if 'one' not in self.hosts().values():
                    os.kill(os.getpid(), number)
                return respond(request)

            with mock.patch.object(self.listener, 'respond', interrupt):
                _out, err = command('--yes', '--from', self.url, code=130)
            self.assertEqual('error: strict policies of 2 servers that were '
                             'moved were not checked: interrupted\n', err)

    def test_dry_run(self):
        """Nothing was moved, so there is nothing to wait for."""
        out, err = self.drain('--from', self.url, '--dry-run')
        self.assertEqual(('', 1), (err, self.asked))
        self.carry_out('--dry-run', '--from', self.url)
        self.assertEqual(1, self.asked)
        self.assertEqual([], self.nova.actions)

    def test_nothing_moved(self):
        self.nova.failing = {'a', 'b'}
        out, _err = self.drain('--from', self.url, '--parallel', '1', code=3)
        self.assertEqual(1, self.asked)
        self.assertNotIn('hecked', out)

    def test_file(self):
        """It does not show where servers are afterwards."""
        path = self.save_cloud(self.read())
        out, err = self.drain('--from', path)
        self.assertEqual('', err)
        self.assertIn("Strict policies were not checked: this needs Nova's "
                      'databases, or --from with the URL of "snapshot '
                      'serve".\n', out)
        for args in ((), ('--replan', '1')):
            self.carry_out_fails(
                '--from needs the https URL of "snapshot serve"',
                '--yes', '--from', path, *args, code=2)


class ServedAgentsTest(test_plan_run.AgentPlanTestCase):

    def test_no_check(self):
        """Agents have no strict policies, so nothing is read."""
        out, err = self.carry_out('--yes', '--from', 'https://192.0.2.1')
        self.assertEqual('', err)
        self.assertNotIn('checked', out)


def now():
    return time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())


def astray(placed, cloud):
    """A server as on the NUMA node without the virtual switch."""
    host = next(each for each in cloud.hosts if each.name == placed.host)
    part, = placed.nodes
    taken = {cpu for each in cloud.servers if each.host == host.name
             for node in each.nodes for cpu in node.pins.values()}
    return dataclasses.replace(placed, nodes=(dataclasses.replace(
        part, host_node=1, pins=dict(zip(
            part.pins, sorted(host.nodes[1].dedicated - taken)))),))
