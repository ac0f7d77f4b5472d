# SPDX-License-Identifier: Apache-2.0
"""What bash proposes where a command of nfv-sched is not yet complete."""

import functools
import os
import pathlib
import shlex
import subprocess

import fixtures

from nfv_sched.ops.cli import base as cli_base
from nfv_sched.tests import base
from nfv_sched.tests.unit.ops.commands import test_help

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
    """What the command prints."""
    return test_help.run('complete')[1].rpartition('LOADED ')[0]


class CompleteTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.top = pathlib.Path(self.useFixture(fixtures.TempDir()).path)

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
        done = subprocess.run(
            ['bash', '--norc', '-c', script], cwd=self.top, check=True,
            text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual('', done.stderr)
        return done.stdout.split()

    def test_quiet(self):
        """It is quick, and says nothing else."""
        code, out, err = test_help.run('complete')
        self.assertEqual((0, ''), (code, err))
        self.assertEqual('[]', out.rpartition('LOADED ')[2].strip())

    def test_commands(self):
        commands = {name.split()[0] for name, _ in (
            cli_base.NFVSched().command_manager)}
        self.assertLess(10, len(commands))
        self.assertLessEqual(
            commands, set(self.proposed('nfv-sched', '')))

    def test_subcommands(self):
        self.assertEqual(['drain', 'list', 'map', 'profile', 'show'],
                         self.proposed('nfv-sched', 'host', ''))
        self.assertEqual(['map'], self.proposed('nfv-sched', 'host', 'm'))

    def test_options(self):
        self.assertEqual(
            ['--flavors', '--failover'],
            self.proposed('nfv-sched', 'metrics', '--f')[-2:])
        self.assertIn(
            '--sort', self.proposed('nfv-sched', 'host', 'list', '--so'))

    def test_files(self):
        (self.top / 'cloud.json.gz').touch()
        for before in (['simulation', 'run'], ['host', 'list', '--from']):
            self.assertIn('cloud.json.gz', self.proposed(
                'nfv-sched', *before, 'cl'))
