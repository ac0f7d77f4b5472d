# SPDX-License-Identifier: Apache-2.0
"""The samples for systemd and logrotate do what they say.

Command lines are read by the commands themselves, units by systemd, and the
log is turned by logrotate, where these are installed.
"""

import configparser
import os
import pathlib
import shlex
import shutil
import signal
import socket
import subprocess
import sys

import fixtures
import testtools

from nfv_sched.ops.cli import base as cli_base
from nfv_sched.tests import base

ROOT = pathlib.Path(base.__file__).parents[2]
ETC = ROOT / 'etc' / 'nfv_sched'
UNITS = sorted((ETC / 'systemd').iterdir())
SERVICES = [path for path in UNITS if path.suffix == '.service']
DROP_IN = ETC / 'systemd' / 'nfv-sched-addresses.conf'
LEDGER = ETC / 'systemd' / 'nfv-sched-ledger.service'
LOGROTATE = ETC / 'logrotate.d' / 'nfv-sched-ledger'

#: Where the samples have the configuration.
NOVA_CONF = '/etc/nova/nova.conf'

#: A program as pip makes it.
PROGRAM = """\
from nfv_sched.cmd.ledger import main
import sys
sys.exit(main())
"""

#: Logs as the service does, and turns the log in between.
TURNING = """\
import subprocess, sys
from oslo_config import cfg
from oslo_log import log
conf = cfg.ConfigOpts()
log.register_options(conf)
conf(['--log-file', sys.argv[1]], project='nova', default_config_files=[])
log.setup(conf, 'nfv-sched-ledger')
log.getLogger('nfv_sched').warning('before')
subprocess.run(sys.argv[2:], check=True)
log.getLogger('nfv_sched').warning('after')
"""


class _Unit(configparser.RawConfigParser):
    """Reads a unit, whose keys may be there several times."""

    def __init__(self, path):
        super().__init__(delimiters=('=',), strict=False)
        self.optionxform = str
        self.read(path)


def commands(path):
    unit = _Unit(path)
    if not unit.has_section('Service'):
        return []
    found = [shlex.split(value) for key, value in unit.items('Service')
             if key.startswith('Exec')]
    return [words for words in found if 'nfv-sched' in words[0]]


class UnitsTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.top = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.conf = self.top / 'nova.conf'
        self.conf.write_text('[DEFAULT]\ntransport_url = fake:/\n'
                             f'state_path = {self.top}\n')

    def run_ledger(self, words, **variables):
        program = self.top / 'nfv-sched-ledger'
        program.write_text(PROGRAM)
        return subprocess.Popen(
            [sys.executable, '-W', 'ignore', program] + [
                str(self.conf) if word == NOVA_CONF else word
                for word in words],
            env=dict(os.environ, PYTHONPATH=str(ROOT), **variables),
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    @staticmethod
    def parse(words):
        """The subcommand of a command line, and its options."""
        factory, _, rest = cli_base.NFVSched().command_manager.find_command(
            words[1:])
        command = factory(None, None)
        return command, command.get_parser('nfv-sched').parse_args(rest)

    def test_there_are_commands(self):
        programs = [words[0] for path in UNITS for words in commands(path)]
        self.assertEqual(
            ['/usr/bin/nfv-sched', '/usr/bin/nfv-sched-ledger',
             *['/usr/bin/nfv-sched'] * 3], programs)

    def test_subcommands(self):
        """nfv-sched has the subcommand, and that the options."""
        for path in UNITS:
            for words in commands(path):
                if words[0].endswith('/nfv-sched'):
                    _command, parsed = self.parse(words)
                    self.assertEqual([NOVA_CONF], parsed.config_file)

    def test_ledger(self):
        """It takes its options, and would begin."""
        words, = commands(LEDGER)
        process = self.run_ledger([*words[1:], '--dry-run'])
        # It is asked for nothing to do, once it has read all.
        self.assertEqual('nfv-sched-ledger: --dry-run needs --once\n',
                         process.communicate(timeout=300)[0])

    def test_ledger_notifies(self):
        """systemd learns that it has begun, and SIGTERM ends it."""
        self.assertEqual('notify', _Unit(LEDGER)['Service']['Type'])
        words, = commands(LEDGER)
        logs = self.top / 'log'
        logs.mkdir()
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            manager.bind(str(self.top / 'notify'))
            manager.settimeout(300)
            process = self.run_ledger(
                [*words[1:], '--log-dir', str(logs)],
                NOTIFY_SOCKET=str(self.top / 'notify'))
            self.addCleanup(process.kill)
            self.assertEqual(b'READY=1', manager.recv(100))
        process.terminate()
        process.communicate(timeout=300)
        # oslo.service on eventlet sends READY before it handles signals; for
        # systemd both ends are clean.
        self.assertIn(process.returncode, (0, -signal.SIGTERM))
        # The one that the sample for logrotate takes.
        self.assertEqual(['nfv-sched-ledger.log'], os.listdir(logs))
        self.assertIn(f'/{os.listdir(logs)[0]} {{', LOGROTATE.read_text())

    def test_timers_have_services(self):
        for path in UNITS:
            if path.suffix == '.timer':
                self.assertNotIn('Unit', _Unit(path)['Timer'])
                unit = _Unit(path.with_suffix('.service'))
                self.assertEqual('oneshot', unit['Service']['Type'])

    def test_shadow_report(self):
        """It reports the time since the last report, once a week."""
        path = ETC / 'systemd' / 'nfv-sched-shadow-report.service'
        words, = commands(path)
        command, parsed = self.parse(words)
        command.check(parsed)
        self.assertTrue(parsed.shadow)
        self.assertEqual(7, parsed.days)
        timer = _Unit(path.with_suffix('.timer'))['Timer']
        self.assertEqual({'OnCalendar': 'weekly', 'Persistent': 'true'},
                         dict(timer))

    def test_limits(self):
        """No service takes more of its host than it may."""
        for path in SERVICES:
            lines = path.read_text().splitlines()
            for name in ('LimitNOFILE', 'TasksMax', 'MemoryMax'):
                self.assertEqual(1, sum(
                    line.startswith(f'{name}=') for line in lines),
                    f'{path.name}: {name}')

    def test_hardening(self):
        """All services have the same restrictions, but for what they need."""
        restrictions = {}
        for path in SERVICES:
            text = path.read_text()
            start = text.index('NoNewPrivileges=')
            restrictions[path.stem] = {
                line for line in text[start:].splitlines()
                if '=' in line and not line.startswith((
                    '#', 'ReadWritePaths=', 'UMask=', 'TasksMax=',
                    'WantedBy='))}
        exporter = restrictions['nfv-sched-exporter']
        for name in ('nfv-sched-ledger', 'nfv-sched-shadow-report',
                     'nfv-sched-snapshot'):
            self.assertEqual(exporter, restrictions[name])
        # It keeps the group of a file that it replaces.
        self.assertEqual(
            {'PrivateUsers=yes', 'SystemCallFilter=fchown'},
            exporter ^ restrictions['nfv-sched-metrics'])

    @testtools.skipUnless(shutil.which('systemd-analyze'), 'no systemd')
    def test_exposure(self):
        """systemd finds them well protected, from 0.0 to 10.0."""
        for path in SERVICES:
            done = subprocess.run(
                ['systemd-analyze', 'security', '--offline=true',
                 '--no-pager', '--threshold=15', path], text=True,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            if 'unrecognized option' in done.stdout:
                self.skipTest('systemd before 250')
            self.assertEqual(0, done.returncode, done.stdout)

    def test_addresses(self):
        """A drop-in denies all but loopback; the units deny nothing.

        What they read is elsewhere, at addresses that no sample can know.
        """
        service = dict(_Unit(DROP_IN)['Service'])
        self.assertEqual({'IPAddressDeny': 'any',
                          'IPAddressAllow': 'localhost'}, service)
        for path in UNITS:
            if path != DROP_IN:
                self.assertNotRegex(path.read_text(), '(?m)^IPAddress')

    @testtools.skipUnless(shutil.which('systemd-analyze'), 'no systemd')
    def test_systemd_drop_in(self):
        """systemd takes it with each service, its examples, too."""
        examples = ('#IPAddressAllow=', 'IPAddressAllow=')
        self.assertEqual('', self.verify())
        self.assertEqual('', self.verify(examples))
        for old in ('192.0.2.0/24', '2001:db8::/64'):
            said = self.verify(examples, (old, 'controller'))
            for path in SERVICES:
                self.assertIn(f'{path.name}.d', said)

    @testtools.skipUnless(shutil.which('systemd-analyze'), 'no systemd')
    def test_systemd_finds_errors(self):
        self.assertIn('Unknown', self.verify(('Restart=', 'Resart=')))
        self.assertIn('Failed to parse',
                      self.verify(('TimeoutStopSec=90', 'TimeoutStopSec=x')))

    def verify(self, *replacements):
        """What systemd says of the units, and not of others that it has."""
        program = self.top / 'program'
        program.write_text('#!/bin/sh\n')
        program.chmod(0o755)
        copies = []
        for path in UNITS:
            text = path.read_text()
            for words in commands(path):
                text = text.replace(words[0], str(program))
            for old, new in replacements:
                text = text.replace(old, new)
            if path == DROP_IN:
                drop_in = text
                continue
            copies.append(self.top / path.name)
            copies[-1].write_text(text)
        for copy in copies:
            if copy.suffix == '.service':
                directory = self.top / f'{copy.name}.d'
                directory.mkdir(exist_ok=True)
                (directory / 'addresses.conf').write_text(drop_in)
        done = subprocess.run(
            ['systemd-analyze', 'verify', *copies], text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return ''.join(line for line in done.stdout.splitlines(keepends=True)
                       if 'nfv-sched' in line)

    def test_documented(self):
        """Each is named where operators read of it."""
        text = ''.join(path.read_text() for path in (
            ROOT / 'doc' / 'source').rglob('*.rst'))
        self.assertEqual([], [
            path.name for path in [*UNITS, LOGROTATE]
            if path.relative_to(ROOT).as_posix() not in text])


@testtools.skipUnless(shutil.which('logrotate'), 'no logrotate')
class LogrotateTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.top = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.log = self.top / 'nfv-sched-ledger.log'

    def command(self, *options):
        text = LOGROTATE.read_text()
        for old, new in (
                ('/var/log/nova/nfv-sched-ledger.log', str(self.log)),
                # There may be no such user, and the tests are not root's.
                ('    su nova nova\n', '')):
            self.assertEqual(1, text.count(old))
            text = text.replace(old, new)
        sample = self.top / 'sample'
        sample.write_text(text)
        sample.chmod(0o600)
        self.top.chmod(0o700)
        return [shutil.which('logrotate'), *options,
                '--state', self.top / 'state', sample]

    def test_understood(self):
        done = subprocess.run(
            self.command('--debug'), text=True, check=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.assertNotIn('error:', done.stdout)
        self.assertIn('(8 rotations)', done.stdout)

    def test_turned(self):
        """No line is lost, and none is written into the old log."""
        subprocess.run(
            [sys.executable, '-W', 'ignore', '-c', TURNING, self.log,
             *self.command('--force')],
            check=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        old = self.top / f'{self.log.name}.1'
        for path, line in (old, 'before'), (self.log, 'after'):
            self.assertEqual(1, len(path.read_text().splitlines()))
            self.assertTrue(path.read_text().rstrip().endswith(line))
