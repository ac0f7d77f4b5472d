# SPDX-License-Identifier: Apache-2.0
"""The formats of all commands, with values that are not harmless."""

import argparse
import csv
import dataclasses
import io
import json
import os
import re
import subprocess
import typing as ty
from unittest import mock

from cliff import columns
from cliff import commandmanager
import fixtures
import yaml

from nfv_sched.ops.cli import base as cli_base
from nfv_sched.ops.cli import documents
from nfv_sched.ops.cli import formats
from nfv_sched.ops.cli import tables
from nfv_sched.tests import base
from nfv_sched.tests import snapshots
from nfv_sched.tests.unit.ops.commands import base as commands

VALUES = ('$(touch made)', '`touch made`', "'; touch made #", '"; touch made',
          '--help', 'a\nb', '\x1b[31m', '\u202ea', '\x7f', '=cmd', '\\', '',
          '\U0001f600')


class Names(columns.FormattableColumn):

    def human_readable(self):
        return ', '.join(self._value)

    def machine_readable(self):
        return self._value


class _Shown(cli_base.ShowOne):
    epilog = ''
    names = [f'Name {number}' for number in range(len(VALUES))]
    row = VALUES

    def take_action(self, parsed_args):
        return self.names, self.row


@dataclasses.dataclass
class _Row:
    name: ty.Any
    number: int


@dataclasses.dataclass
class _Rows:
    rows: list[_Row]


class _Listed(cli_base.Lister):
    epilog = ''
    rows = [(value, 1) for value in VALUES]

    def take_action(self, parsed_args):
        self._document = documents.Document(
            _Rows([_Row(*row) for row in self.rows]), ('rows',))
        return ('Name', 'Number'), self.rows


class KeyTest(base.TestCase):

    def test_percent(self):
        for title, key in (('pCPUs used', 'pcpus_used'), ('Used %',
                           'used_percent'), ('%', 'percent'),
                           ('CPU% max', 'cpu_percent_max')):
            self.assertEqual(key, documents.key_of(title))


class StdoutTest(commands.CommandTestCase):
    """``-`` is standard output for each option that takes a file to write."""

    def written(self, begin, *args):
        """Run a command whose file is ``-``: it is all that it prints."""
        folder = self.useFixture(fixtures.TempDir()).path
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(folder)
        for path in ('-', '/dev/stdout'):
            content, err = io.BytesIO(), io.StringIO()
            out = io.TextIOWrapper(content, 'utf-8')
            with mock.patch('sys.stdout', out), mock.patch('sys.stderr', err):
                self.assertIn(cli_base.main([*args, path]), (0, 3), args)
            self.assertEqual(begin, content.getvalue()[:len(begin)], args)
        self.assertEqual([], os.listdir(folder))

    def test_all(self):
        cloud = '--from', 'telco'
        for args, begin in (
                (('metrics', *cloud, '--textfile'), b'# HELP '),
                (('host', 'map', *cloud, '--format', 'svg', '-o'), b'<?xml'),
                (('simulation', 'run', '--example', 'telco', '--save'),
                 b'\x1f\x8b'),
                (('agent', 'rebalance', '--from', 'network-nodes', '--save'),
                 b'{\n'),
                (('cloud', 'defrag', *cloud, '--flavor', 'vfw.8', '--save'),
                 b'{\n'),
                (('host', 'drain', 'compute-1', *cloud, '--save'), b'{\n')):
            self.written(begin, *args)
        self.useFixture(commands.live(snapshots.cloud))
        self.written(b'\x1f\x8b', 'snapshot', 'save')

    def test_every_option(self):
        """Those that :meth:`test_all` has are all that there are."""
        app, options = cli_base.NFVSched(), set()
        for name, entry_point in commandmanager.CommandManager(
                cli_base.NAMESPACE):
            command = entry_point.load()
            if not command.deprecated:
                options |= {
                    (name, action.dest)
                    for action in command(app, None, name).get_parser(
                        name)._actions if re.search(
                            'write|save|where to', action.help or '')
                    and action.metavar == 'FILE'}
        self.assertEqual({
            ('metrics', 'textfile'), ('host map', 'output'),
            ('simulation run', 'save'), ('agent rebalance', 'save'),
            ('cloud consolidate', 'save'), ('cloud defrag', 'save'),
            ('cloud spread', 'save'), ('host drain', 'save'),
            ('host evacuate', 'save'),
            ('snapshot save', 'file')}, options)

    def test_plan_to_run(self):
        self.assertEqual(2, self.run_command(
            'host', 'drain', 'compute-1', '--from', 'telco', '--save', '-',
            '--run')[0])


class FormatTest(base.TestCase):

    def show(self, command_class, *args):
        app = cli_base.NFVSched()
        app.options = app.parser.parse_args([])
        out = io.StringIO()
        app.stdout = out
        command = command_class(app, None)
        command.run(command.get_parser('test').parse_args(args))
        return out.getvalue()

    def test_shell(self):
        folder = self.useFixture(fixtures.TempDir()).path
        for shell in ('bash', 'sh'):
            for number, value in enumerate(VALUES):
                script = self.show(_Shown, '-f', 'shell', '--prefix', 'a b_')
                done = subprocess.run(
                    [shell, '-euc', f'{script}printf %s "$a_b_name_{number}"'],
                    capture_output=True, cwd=folder, text=True, check=True)
                self.assertEqual('', done.stderr)
                self.assertEqual(
                    value.encode('unicode_escape').decode()
                    if number in (6, 7, 8) else value, done.stdout)
        self.assertEqual([], os.listdir(folder))

    def test_shell_names(self):
        class Odd(_Shown):
            names = ['$(touch a)', '2M;b', 'PATH=x', 'Names']
            row = ('a', 1, None, Names(["x'y"]))

        self.assertEqual(
            "__touch_a_=a\n_2m_b=1\npath_x=None\n"
            """names='["x'"'"'y"]'\n""",
            self.show(Odd, '-f', 'shell'))
        self.assertEqual(
            '_2m_b=1\n', self.show(Odd, '-f', 'shell', '--variable', '2m_b'))

    def test_documents(self):
        for name, read in (('json', json.loads), ('yaml', yaml.safe_load)):
            out = self.show(_Listed, '-f', name)
            self.assertTrue(out.isascii())
            self.assertTrue(out.replace('\n', '').isprintable())
            self.assertEqual(
                list(VALUES), [row['name'] for row in read(out)['rows']])

    def test_csv(self):
        """No cell is a formula, and numbers are numbers."""
        class Odd(_Listed):
            rows = [(value, value) for value in (
                '=1', '+a', '-a', '@a', '\ta', '\ra', '\n=a', '\uff1da', 'a=',
                '-', '-1', '+1.5', '-1+1', -5, -1.5, True, None,
                Names(['=a']))]

        out = self.show(Odd, '-f', 'csv')
        self.assertEqual([
            "'=1", "'+a", "'-a", "'@a", "'\\ta", "'\\ra", "'\\n=a",
            "'\uff1da",
            'a=', '-', '-1', '+1.5', "'-1+1", '-5', '-1.5', 'True', '',
            "['=a']"], [row[0] for row in csv.reader(
                io.StringIO(out, newline=''), escapechar='\\') if row][1:])
        self.assertNotIn('None', self.show(Odd, '-f', 'value'))

    def test_csv_without_quotes(self):
        class Odd(_Listed):
            rows = [('a\n=cmd', 'b\tc'), ('=cmd', 1)]

        self.assertEqual(
            ['Name,Number', r'a\\n=cmd,b\\tc', "'=cmd,1"],
            self.show(Odd, '-f', 'csv', '--quote', 'none').splitlines())

    def test_rows(self):
        for name in ('value', 'table'):
            out = self.show(_Listed, '-f', name)
            self.assertIn(r'a\nb', out)
            self.assertIn(r'\x1b[31m', out)
        self.assertEqual(len(VALUES), len(self.show(
            _Shown, '-f', 'value').splitlines()))

    def test_sorting(self):
        """Figures are sorted as numbers; what is blank is last."""
        class Sorted(_Listed):
            rows = [(value, 1) for value in (
                '10/40', 'b', None, '8/40', 9, '-', '8/10', '', 'a',
                '10 + 2 of 16', '-1', '2026-01-02', '9' * 400)]

        order = ['-1', '8/10', '8/40', 9, '10 + 2 of 16', '10/40', '9' * 400,
                 '2026-01-02', 'a', 'b']
        for name, direction, values in (
                ('Name', 'ascending', order),
                ('name', 'descending', order[::-1])):
            out = self.show(Sorted, '-f', 'json', '--sort-column', name,
                            f'--sort-{direction}')
            self.assertEqual([*values, None, '-', ''], [
                row['name'] for row in json.loads(out)['rows']])
        # The first column counts most, and unknown ones not at all.
        out = self.show(
            _Listed, '-f', 'json', '--sort-column', 'number',
            '--sort-column', 'x', '--sort-column', 'NAME')
        self.assertEqual(
            [*sorted(filter(None, VALUES)), ''],
            [row['name'] for row in json.loads(out)['rows']])
        out = self.show(Sorted, '-f', 'table', '--sort-column', 'name')
        self.assertEqual('-1', out.splitlines()[2].split()[0], out)

    def test_encodings(self):
        for encoding, expected in (
                ('latin-1', 'Name  Caf\xe9\n----------\na     ?\n'),
                ('ascii', 'Name  Caf?\n----------\na     ?\n'),
                ('utf-8', 'Name  Caf\xe9\n' + '\u2500' * 10
                 + '\na     \u4e00\n')):
            content = io.BytesIO()
            app = mock.Mock(
                stdout=io.TextIOWrapper(content, encoding, newline='\n'),
                stderr=io.StringIO())
            cli_base.protect(app)
            formats.print_parts(
                [tables.Table(('Name', 'Caf\xe9'), [('a', '\u4e00')])],
                app.stdout, argparse.Namespace(max_width=0))
            app.stdout.flush()
            self.assertEqual(expected, content.getvalue().decode(encoding))

    def test_several_commands(self):
        class Printing(_Listed):
            formats = {'commands': formats.Commands}

        self.assertEqual('$(touch made)', self.show(
            Printing, '-f', 'commands').splitlines()[0])
