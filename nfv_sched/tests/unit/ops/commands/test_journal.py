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


def write(directory, *entries):
    """Write a journal; return its path."""
    path = os.path.join(
        directory, 'refusals-20260102T030405Z-1-0123abcd.jsonl')
    with open(path, 'wb') as file:
        file.writelines(map(test_entry.line, entries))
    return path


class ListTest(base.CommandTestCase):

    def setUp(self):
        super().setUp()
        self.file = write(self.folder, *(
            test_entry.refusal(server=name) for name in (ONE, TWO)))

    def list(self, *args):
        return self.run_command('server', 'explain', '--then', *args)

    def test_empty(self):
        self.write_file(self.file, '')
        self.assertEqual((0, 'The journal has no refusals.\n', ''),
                         self.list('--journal', self.folder))

    def test_configured(self):
        conf = self.write_file(
            'nova.conf', f'[nfv_sched]\ndecision_journal = {self.folder}\n')
        code, out, err = self.process('--config-file', conf)
        self.assertEqual((0, ''), (code, err))
        self.assertIn(TWO, out)
        self.write_file(conf, '')
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
            file.write(test_entry.line(entry.Lost(time='t', count=3)) + b'{')
        code, out, err = self.list('--journal', self.folder)
        self.assertEqual(1, code)
        self.assertIn(TWO, out)
        self.assertEqual(
            f'3 entries could not be written\nerror: {self.file}: 1 line is '
            'cut off, or of no version that is known\n', err)

    def test_another_folder(self):
        """One without a journal is an error, not a journal without any."""
        other = self.useFixture(fixtures.TempDir()).path
        for args in ((), ('--shadow',), (ONE,)):
            err = self.refused(
                other, 'server', 'explain', '--then', *args, '--journal',
                self.folder, '--journal', other, code=1)
            self.assertTrue(err.startswith(f'error: {other}: '), err)


class ShadowReportTest(base.CommandTestCase):
    """What would have become of servers that were placed."""

    def setUp(self):
        super().setUp()
        write(self.folder, test_entry.placed(1, server=ONE),
              test_entry.placed(2, server=TWO, change='elsewhere',
                                instead='host-9'),
              test_entry.placed(3, server=ONE, change='', by=(), reasons=()))

    def then(self, *args):
        return self.shown('server', 'explain', *args, '--then', '--journal',
                          self.folder)

    def test_text(self):
        out = self.then('--shadow')
        self.assertIn('1 of 3 servers placed from', out)
        self.assertIn(['First', '3', '1', '1'], base.cells(out))
        self.assertIn(['nfv:key=strict', 'First', '1', '1'], base.cells(out))

    def test_several_hosts(self):
        """Each host has a journal of its own; the report is of all."""
        other = self.useFixture(fixtures.TempDir()).path
        write(other, test_entry.placed(0, server=TWO),
              test_entry.refusal(server=TWO))
        out = self.then('--shadow', '--journal', other)
        self.assertIn('2 of 4 servers placed from', out)
        self.assertIn('1 server found no host', out)
        document = json.loads(self.shown(
            'server', 'explain', TWO, '--then', '--journal', self.folder,
            '--journal', other, '-f', 'json', code=3))
        self.assertEqual(
            [test_entry.placed(0).time, test_entry.placed(2).time],
            [each['time'] for each in document['placed']])
        self.assertEqual(1, len(document['refusals']))

    def test_days(self):
        self.assertEqual('The journal has no server that filters or weighers '
                         'in shadow have examined.\n',
                         self.then('--shadow', '--days', '1'))

    def test_one_server(self):
        """It was placed: that is no finding."""
        out = self.then(ONE)
        self.assertIn(
            '2026-01-02T03:04:05.001Z placed on First-0\n'
            'First in shadow would have refused the last host\n', out)
        self.assertIn('  nfv:key=strict: 2 CPUs needed, 1 free\n'
                      '    on First-0, First-1\n', out)
        self.assertIn('First, Weigher in shadow would change nothing', out)
        self.assertIn('First in shadow would have placed it on host-9',
                      self.then(TWO))
        self.assertIn('First (in shadow)', self.then(TWO, '-f', 'csv'))

    def test_one_server_json(self):
        document = json.loads(self.then(TWO, '-f', 'json'))
        placed, = document['placed']
        self.assertEqual([], document['refusals'])
        self.assertEqual(
            (TWO, 'First-0', 'elsewhere', ['First'], 'host-9'),
            (placed['server_id'], placed['host'], placed['change'],
             placed['changed_by'], placed['instead']))

    def test_arguments(self):
        for args, message in (
                ((), 'name a server, or add --then to list all refusals'),
                ((ONE, '--full'), '--full needs --then'),
                ((ONE, '--then', '--shadow'), '--shadow is about all servers'),
                (('--then', '--days', '7'), '--days goes with --shadow, and '
                                            'needs a number above 0'),
                (('--then', '--shadow', '--days', '0'),
                 '--days goes with --shadow, and needs a number above 0')):
            self.assertEqual((2, '', f'error: {message}\n'),
                             self.run_command('server', 'explain', *args))
