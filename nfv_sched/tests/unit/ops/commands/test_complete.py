# SPDX-License-Identifier: Apache-2.0
"""What shells propose where a command of nfv-sched is not yet complete."""

import argparse
import functools
import importlib.util
import os
import pathlib
import re
import shlex
import subprocess
import sys

import fixtures
import testtools

import nfv_sched
from nfv_sched.ops.cli import base as cli_base
from nfv_sched.tests import base
from nfv_sched.tests.unit.ops.commands import test_help

ROOT = pathlib.Path(nfv_sched.__file__).parents[1]

#: The package bash-completion, where it is installed, or what is used of it.
LIBRARY = '/usr/share/bash-completion/bash_completion'
STANDIN = """\
_get_comp_words_by_ref() {
    cur=${COMP_WORDS[COMP_CWORD]}
    prev=${COMP_WORDS[COMP_CWORD - 1]}
    words=("${COMP_WORDS[@]}")
}
"""


@functools.cache
def function() -> str:
    return test_help.run('complete')[1].rpartition('LOADED ')[0]


def subcommands():
    app = cli_base.NFVSched()
    for name, entry_point in app.command_manager:
        yield name, entry_point.load()(app, None)


@testtools.skipUnless(importlib.util.find_spec('sphinx'), 'no Sphinx')
class InstallTest(base.TestCase):

    def test_manuals(self):
        top = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        done = subprocess.run(
            [ROOT / 'tools' / 'install-manuals', top / 'usr'], text=True,
            env=dict(os.environ, PYTHON=sys.executable),
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.assertEqual(0, done.returncode, done.stdout)
        share = top / 'usr' / 'share'
        self.assertEqual(function(), (
            share / 'bash-completion/completions/nfv-sched').read_text())
        for name, section in (('nfv-sched', 1), ('nfv-sched-status', 1),
                              ('nfv-sched-ledger', 8)):
            page = share / 'man' / f'man{section}' / f'{name}.{section}'
            self.assertRegex(
                page.read_text(encoding='utf-8'),
                rf'(?m)^\.TH "{name.upper()}" "{section}" ')
        self.assertEqual(4, len(done.stdout.splitlines()))


class BashTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.top = pathlib.Path(self.useFixture(fixtures.TempDir()).path)

    def run_shell(self, *command):
        done = subprocess.run(
            command, cwd=self.top, check=True, text=True, timeout=120,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env={'PATH': os.environ['PATH'], 'HOME': str(self.top),
                 'LC_ALL': 'C.UTF-8', 'TERM': 'dumb'})
        self.assertEqual('', done.stderr)
        return done.stdout

    def test_commands(self):
        commands = {name.split()[0] for name, _ in subcommands()}
        self.assertLess(8, len(commands))
        self.assertEqual({*commands, 'complete', 'help'},
                         set(self.proposed('nfv-sched', '')))

    def test_subcommands(self):
        self.assertEqual(
            ['drain', 'evacuate', 'list', 'map', 'profile', 'show'],
            sorted(self.proposed('nfv-sched', 'host', '')))
        self.assertEqual(['map'], self.proposed('nfv-sched', 'host', 'm'))

    def test_options(self):
        self.assertEqual(
            {'--from', '--flavors', '--failover'},
            set(self.proposed('nfv-sched', 'metrics', '--f')))
        self.assertIn(
            '--sort', self.proposed('nfv-sched', 'host', 'list', '--so'))

    def test_all_options(self):
        text = function()
        for name, subcommand in subcommands():
            for action in subcommand.get_parser(name)._actions:
                if action.help == argparse.SUPPRESS:
                    continue
                for option in action.option_strings:
                    words = re.sub(r'[ -]', '_', name)
                    self.assertRegex(
                        text, rf"(?m)^  cmds_{words}='.*{option}[ ']")

    def test_files(self):
        (self.top / 'cloud.json.gz').touch()
        for before in (['simulation', 'run'], ['host', 'list', '--from']):
            self.assertIn('cloud.json.gz', self.proposed(
                'nfv-sched', *before, 'cl'))

    def proposed(self, *words):
        """What bash proposes for the last of some words."""
        library = STANDIN
        if os.path.exists(LIBRARY):
            library = f'source {LIBRARY}\n'
        script = (
            f'{library}{function()}\n'
            f'COMP_WORDS=({shlex.join(words)})\n'
            'COMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n'
            'COMP_LINE="${COMP_WORDS[*]}"\n'
            'COMP_POINT=${#COMP_LINE}\n'
            # What bash has been told to call.
            'set -- $(complete -p nfv-sched)\n'
            '"$3" nfv-sched\n'
            'printf "%s\\n" "${COMPREPLY[@]}"\n')
        return self.run_shell('bash', '--norc', '-c', script).split()
