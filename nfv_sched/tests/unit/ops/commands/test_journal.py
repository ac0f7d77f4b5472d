# SPDX-License-Identifier: Apache-2.0
"""Lists of refusals: ``nfv-sched server explain --then``."""

import json
import os
import subprocess
import sys

import fixtures
from oslo_utils.fixture import uuidsentinel

from nfv_sched.journal import entry
from nfv_sched.tests.unit.journal import test_entry
from nfv_sched.tests.unit.ops.commands import base

ONE, TWO = (uuidsentinel.one, uuidsentinel.two)


class ListTest(base.CommandTestCase):

    def setUp(self):
        super().setUp()
        self.directory = self.useFixture(fixtures.TempDir()).path
        self.file = os.path.join(
            self.directory, 'refusals-20260102T030405Z-1-0123abcd.jsonl')
        with open(self.file, 'wb') as file:
            for name in (ONE, TWO):
                file.write(entry.line(test_entry.refusal(server=name)))

    def list(self, *args):
        return self.run_command('server', 'explain', '--then', *args)

    def rows(self, *args):
        code, out, err = self.list(
            '--journal', self.directory, '-f', 'csv', *args)
        self.assertEqual((0, ''), (code, err))
        return self.csv_rows(out)

    def test_rows(self):
        row, other = self.rows()
        self.assertEqual(TWO, other['Server'])
        self.assertEqual({
            'Time': '2026-01-02T03:04:05.678Z', 'Server': ONE,
            'Flavor': 'fw', 'Hosts': 4, 'Filter': 'Second',
            'Reason': 'nfv:key=strict: 2 CPUs needed, 1 free (2 hosts); '
                      '+1 more'}, row)
        row, _other = self.rows('--full')
        self.assertEqual(
            ['nfv:key=strict: 2 CPUs needed, 1 free: First-0, First-1',
             'nfv:key=strict: 2 CPUs needed, 1 free: Second-0, Second-1'],
            row['Reason'].split('; '))

    def test_table(self):
        code, out, err = self.list('--journal', self.directory)
        self.assertEqual((0, ''), (code, err))
        _titles, *rows = base.cells(out)
        self.assertEqual([ONE, TWO], [row[1] for row in rows])

    def test_json(self):
        """The same values as of a single server."""
        code, out, err = self.list('--journal', self.directory, '-f', 'json')
        self.assertEqual((0, ''), (code, err))
        refusals = json.loads(out)['refusals']
        self.assertEqual([ONE, TWO], [each['server_id'] for each in refusals])
        _code, out, _err = self.list(
            TWO, '--journal', self.directory, '-f', 'json')
        self.assertEqual(json.loads(out)['refusals'], refusals[1:])

    def test_empty(self):
        os.remove(self.file)
        self.assertEqual((0, 'The journal has no refusals.\n', ''),
                         self.list('--journal', self.directory))

    def test_arguments(self):
        for args, message in (
                ((), 'name a server, or add --then to list all refusals'),
                ((ONE, '--full'), '--full needs --then')):
            self.assertEqual((2, '', f'error: {message}\n'),
                             self.run_command('server', 'explain', *args))

    def test_old_name(self):
        code, out, err = self.run_command(
            'journal', 'list', '--dir', self.directory, '--server', TWO,
            '-f', 'json')
        self.assertEqual(
            (0, 'warning: "journal list" will be removed in the next '
                'release; use "server explain --then"\n'), (code, err))
        row, = json.loads(out)['refusals']
        self.assertEqual((TWO, 4), (
            row['server_id'], row['filters'][0]['hosts_in']))

    def test_configured(self):
        conf = os.path.join(self.directory, 'nova.conf')
        with open(conf, 'w') as file:
            file.write(f'[nfv_sched]\ndecision_journal = {self.directory}\n')
        code, out, err = self.process('--config-file', conf)
        self.assertEqual((0, ''), (code, err))
        self.assertIn(TWO, out)
        with open(conf, 'w'):
            pass
        self.assertEqual(
            (1, '', 'error: there is no journal: [nfv_sched] '
                    'decision_journal is not set\n'),
            self.process('--config-file', conf))

    @staticmethod
    def process(*args):
        """The same in a process of its own, which reads nova.conf."""
        done = subprocess.run(
            [sys.executable, '-W', 'ignore', '-m', 'nfv_sched.ops.cli.base',
             'server', 'explain', '--then', *args],
            capture_output=True, text=True)
        return done.returncode, done.stdout, done.stderr

    def test_something_is_missing(self):
        with open(self.file, 'ab') as file:
            file.write(entry.line(entry.Lost(time='t', count=3)) + b'{')
        code, out, err = self.list('--journal', self.directory)
        self.assertEqual(1, code)
        self.assertIn(TWO, out)
        self.assertEqual(
            f'3 refusals could not be written\nerror: {self.file}: 1 line is '
            'cut off, or of no version that is known\n', err)

    def test_joined(self):
        """One row for each server, as if they were not joined."""
        joined = test_entry.numbered(0)
        for number in (1, 2):
            joined = entry.joined(joined, test_entry.numbered(number))
        with open(self.file, 'wb') as file:
            file.write(entry.line(joined))
        self.assertEqual(['server-0', 'server-1', 'server-2'],
                         [row['Server'] for row in self.rows()])
        self.assertEqual('2026-01-02T03:04:05.001Z', self.rows()[1]['Time'])

    def test_removed(self):
        with open(self.file, 'ab') as file:
            file.write(entry.line(entry.Lost(time='t', removed=4740)))
        code, _out, err = self.list('--journal', self.directory)
        self.assertEqual(
            (0, '4740 older refusals were removed to make room\n'),
            (code, err))

    def test_no_directory(self):
        path = os.path.join(self.directory, 'nowhere')
        self.assertEqual(
            (1, '', f'error: {path}: No such file or directory\n'),
            self.list('--journal', path))
