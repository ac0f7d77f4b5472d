# SPDX-License-Identifier: Apache-2.0
"""Help, and command lines that are wrong: at once, and without noise."""

import importlib.metadata
import subprocess
import sys

import fixtures

from nfv_sched.ops.cli import base as cli_base
from nfv_sched.ops.cloud import file
from nfv_sched.tests import base
from nfv_sched.tests import snapshots

#: What takes long to import, and is not needed to say what a command does.
# Not Eventlet: in the release before, oslo.utils itself imports it.
HEAVY = ('nova', 'jinja2', 'jsonschema', 'openstack', 'sqlalchemy', 'yaml')

_RUN = """\
import importlib
import sys
code = 1
try:
    code = importlib.import_module(sys.argv[1]).main(sys.argv[2:])
except SystemExit as exc:
    code = exc.code
print('LOADED', [name for name in {heavy} if name in sys.modules])
sys.exit(code)
"""


def run(*args, module='nfv_sched.ops.cli.base', heavy=HEAVY):
    """Run a command in a process of its own, with Python's warnings."""
    done = subprocess.run(
        [sys.executable, '-c', _RUN.format(heavy=heavy), module, *args],
        capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout, done.stderr


class HelpTest(base.TestCase):

    def seen(self, *args, **options):
        code, out, err = run(*args, **options)
        self.assertEqual((0, ''), (code, err), args)
        out, _, loaded = out.rpartition('LOADED ')
        self.assertEqual('[]', loaded.strip(), args)
        return out

    def test_subcommands(self):
        entries = importlib.metadata.entry_points(group=cli_base.NAMESPACE)
        commands = sum(cli_base.GROUPS.values(), ())
        self.assertEqual(
            sorted(name.replace('_', ' ') for name in entries.names),
            sorted(commands))
        listed = self.seen('--help')
        for name in commands:
            out = self.seen(*name.split(), '--help')
            self.assertIn(f'usage: nfv-sched {name} ', out)
            self.assertLessEqual(len(out.splitlines()), 60, name)
            summary = out.split('\n\n')[1].partition('\n')[0]
            self.assertIn(f'  {summary[:-1]}\n', listed)
            self.assertIn('\nexamples:\n  nfv-sched ', out)
            self.assertIn('\nexit code', out)
            text = ' '.join(out.rpartition('\nexit code')[2].split())
            self.assertRegex(text, '2,? if the command line', name)

    def test_all(self):
        for args in ([], ['--help'], ['help']):
            out = self.seen(*args, heavy=(*HEAVY, 'pydantic', 'oslo_config'))
            self.assertIn('\nHow many more fit:\n  capacity list ', out)
            # The example of README, too.
            self.assertIn('\n  nfv-sched host list --from telco\n', out)
            self.assertIn('usage: nfv-sched ', out)
            self.assertRegex(out, r'\n  snapshot save +Save the cloud')
            self.assertNotIn('Could not load', out)
            for names in cli_base.GROUPS.values():
                for name in names:
                    self.assertEqual(1, out.count(f'\n  {name}  '), name)

    def test_help(self):
        self.assertIn('usage: nfv-sched snapshot save ',
                      self.seen('help', 'snapshot', 'save'))
        self.assertIn('  snapshot save\n', self.seen('help', 'snapshot'))
        # After options of the command, too.
        for option in ('-h', '--help'):
            self.assertIn('usage: nfv-sched host list ', self.seen(
                'host', 'list', '--from', 'telco', option))

    def test_common_options(self):
        brief, full = (self.seen('host', 'drain', '-h'),
                       self.seen('help', 'host', 'drain'))
        self.assertIn('nfv-sched help host drain\n', brief)
        self.assertNotIn('ignored', full)
        for option in ('--max-file-size', '--yes', '-f', '--from', '--save',
                       '--sort-column'):
            self.assertIn(f'\n  {option} ', full)
            self.assertEqual(option in ('--from', '--save'),
                             f'\n  {option} ' in brief, option)

    def test_client(self):
        brief, full = (
            run(*args, module='openstackclient.shell')[1].splitlines()
            for args in (('nfv', 'host', 'profile', '--help'),
                         ('help', 'nfv', 'host', 'profile')))
        self.assertLessEqual(len(brief), 60 + len(['LOADED']))
        self.assertGreater(len(full), 100)

    def test_snapshot(self):
        """Hosts of a snapshot are shown without Nova."""
        path = self.useFixture(fixtures.TempDir()).join('cloud.json')
        file.save(snapshots.cloud(), path)
        self.seen('host', 'list', '--from', path,
                  heavy=('nova', 'oslo_service'))

    def test_complete(self):
        self.assertIn('snapshot', self.seen('complete'))

    def test_programs(self):
        for name in ('ledger', 'status'):
            out = self.seen('--help', module=f'nfv_sched.cmd.{name}')
            self.assertIn(f'usage: nfv-sched-{name} ', out)
            self.assertIn('--config-file', out)
        self.assertIn('--dry-run', self.seen(
            '--once', '-h', module='nfv_sched.cmd.ledger'))
        self.assertIn('--json', self.seen(
            'upgrade', '--help', module='nfv_sched.cmd.status'))


class WrongTest(base.TestCase):
    def told(self, *args):
        code, out, err = run(*args)
        self.assertEqual((2, 'LOADED []\n'), (code, out), args)
        return err

    def test_no_such_subcommand(self):
        for args in (['snapshot', 'svae'], ['snapsot', 'save'],
                     ['help', 'snapsot'], ['snapsot', '--help'],
                     ['snapshot'], ['snapshot', 'svae', '-f', 'json']):
            err = self.told(*args)
            self.assertIn('Did you mean one of these?\n', err)
            self.assertIn('  snapshot save\n', err)

    def test_suggestions(self):
        """Commands that begin so, or have a similar word; no old names."""
        for word, names in (
                ('server', ['server explain']),
                ('capacity', ['capacity list', 'capacity show']),
                ('snapsot', ['snapshot save', 'snapshot serve']),
                ('explian', ['flavor explain', 'server explain']),
                ('drian', ['host drain'])):
            _usage, _question, *found = self.told(word).splitlines()
            self.assertEqual(names, [line.strip() for line in found])
        self.assertEqual("Unknown command ['nope']\n", self.told('nope'))

    def test_option(self):
        for args in (['--wrong'], ['snapshot', 'save', '--wrong', 'file'],
                     ['snapshot', 'save'],
                     ['host', 'list', '-f', 'wrong']):
            self.assertRegex(
                self.told(*args), '^usage: nfv-sched .*\n.* error: ')
