# SPDX-License-Identifier: Apache-2.0
"""The command ``nfv-sched journal list``."""

import os
import subprocess
import sys

import fixtures

from nfv_sched.journal import entry
from nfv_sched.tests.unit.journal import test_entry
from nfv_sched.tests.unit.ops.commands import base


class ListTest(base.CommandTestCase):

    def setUp(self):
        super().setUp()
        self.directory = self.useFixture(fixtures.TempDir()).path
        self.file = os.path.join(
            self.directory, 'refusals-20260102T030405Z-1-0123abcd.jsonl')
        with open(self.file, 'wb') as file:
            for name in ('uuid-1', 'uuid-2'):
                file.write(entry.line(test_entry.refusal(server=name)))

    def list(self, *args):
        return self.run_command('journal', 'list', *args)

    def rows(self, *args):
        code, out, err = self.list(
            '--dir', self.directory, '-f', 'csv', *args)
        self.assertEqual((0, ''), (code, err))
        return self.csv_rows(out)

    def test_rows(self):
        self.assertEqual(['uuid-1', 'uuid-2'],
                         [row['Server'] for row in self.rows()])
        row, = self.rows('--server', 'uuid-2')
        self.assertEqual({
            'Time': '2026-01-02T03:04:05.678Z', 'Server': 'uuid-2',
            'Flavor': 'fw', 'Hosts': 4, 'Filter': 'Second',
            'Reason': 'nfv:key=strict: 2 CPUs needed, 1 free (2 hosts); '
                      '+1 more'}, row)
        row, = self.rows('--server', 'uuid-2', '--full')
        self.assertEqual(
            ['nfv:key=strict: 2 CPUs needed, 1 free: First-0, First-1',
             'nfv:key=strict: 2 CPUs needed, 1 free: Second-0, Second-1'],
            row['Reason'].split('; '))

    def test_configured(self):
        conf = os.path.join(self.directory, 'nova.conf')
        with open(conf, 'w') as file:
            file.write(f'[nfv_sched]\ndecision_journal = {self.directory}\n')
        code, out, err = self.process('--config-file', conf)
        self.assertEqual((0, ''), (code, err))
        self.assertIn('uuid-2', out)
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
             'journal', 'list', *args], capture_output=True, text=True)
        return done.returncode, done.stdout, done.stderr

    def test_something_is_missing(self):
        with open(self.file, 'ab') as file:
            file.write(entry.line(entry.Lost(time='t', count=3)) + b'{')
        code, out, err = self.list('--dir', self.directory)
        self.assertEqual(1, code)
        self.assertIn('uuid-2', out)
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
        row, = self.rows('--server', 'server-1')
        self.assertEqual(('server-1', '2026-01-02T03:04:05.001Z'),
                         (row['Server'], row['Time']))

    def test_removed(self):
        with open(self.file, 'ab') as file:
            file.write(entry.line(entry.Lost(time='t', removed=4740)))
        code, _out, err = self.list('--dir', self.directory)
        self.assertEqual(
            (0, '4740 older refusals were removed to make room\n'),
            (code, err))

    def test_no_directory(self):
        path = os.path.join(self.directory, 'nowhere')
        self.assertEqual(
            (1, '', f'error: {path}: No such file or directory\n'),
            self.list('--dir', path))
