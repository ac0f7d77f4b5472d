# SPDX-License-Identifier: Apache-2.0
"""What shells propose where a command of nfv-sched is not yet complete."""

import argparse
import functools
from importlib import metadata
import importlib.util
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

import fixtures
import testtools

import nfv_sched
from nfv_sched.ops.cli import base as cli_base
from nfv_sched.tests import base
from nfv_sched.tests.unit.ops.commands import test_help
from nfv_sched.tests.unit import test_releases

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

#: Press Tab in a zsh on a terminal, and print what is added to its matches.
ZSH = r"""
zmodload zsh/zpty
zpty z zsh -f -i
zpty -w z 'PROMPT= RPROMPT=; unsetopt prompt_cr prompt_sp; stty -echo'
zpty -w z 'autoload -Uz compinit; compinit -u -D'
zpty -w z "cd ${(q)1}; source ${(q)1}/_nfv-sched"
zpty -w z 'finish() { print -r -- "THE""END"; exit }'
zpty -w z 'comppostfuncs=(finish); bindkey "^I" complete-word'
zpty -w z 'compadd() {
    local match
    local -a matches
    if [[ ${@[1,(i)(-|--)]} != *-[OAD]* ]]; then
        builtin compadd -A matches "$@"
        for match in $matches; do print -r -- "MATCH<$match>"; done
    fi
    builtin compadd "$@"
}'
zpty -w z 'print "REA""DY"'
zpty -r z output '*READY*'
zpty -n -w z "$2"$'\t'
zpty -r z output '*THEEND*'
print -r -- $output
"""


@functools.cache
def function(shell: str = 'bash') -> str:
    """What the command prints."""
    return test_help.run(
        'complete', '--shell', shell)[1].rpartition('LOADED ')[0]


def subcommands():
    """Names of commands, and the commands that are not deprecated."""
    app = cli_base.NFVSched()
    for name, entry_point in app.command_manager:
        subcommand = entry_point.load()(app, None)
        if not subcommand.deprecated:
            yield name, subcommand


def as_committed():
    """Whether this environment writes the files of share/ as they are."""
    pinned = test_releases.pinned_versions(ROOT / 'constraints.txt')
    return sys.version_info[:2] == (3, 11) and all(
        metadata.version(name) == pinned[name]
        for name in ('cliff', 'docutils', 'nova', 'sphinx'))


@testtools.skipUnless(importlib.util.find_spec('sphinx'), 'no Sphinx')
class InstallTest(base.TestCase):

    def test_manuals(self):
        """One command installs man pages and completions.

        Those that packages have are the same: "tools/install-manuals ."
        writes them.
        """
        top = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        done = subprocess.run(
            [ROOT / 'tools' / 'install-manuals', top / 'usr'], text=True,
            env=dict(os.environ, PYTHON=sys.executable),
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.assertEqual(0, done.returncode, done.stdout)
        share = top / 'usr' / 'share'
        for shell, name in (
                ('bash', 'bash-completion/completions/nfv-sched'),
                ('fish', 'fish/vendor_completions.d/nfv-sched.fish'),
                ('zsh', 'zsh/site-functions/_nfv-sched')):
            self.assertEqual(function(shell), (share / name).read_text())
        for name, section in (('nfv-sched', 1), ('nfv-sched-status', 1),
                              ('nfv-sched-ledger', 8)):
            page = share / 'man' / f'man{section}' / f'{name}.{section}'
            self.assertRegex(
                page.read_text(encoding='utf-8'),
                rf'(?m)^\.TH "{name.upper()}" "{section}" ')
        written = {path.relative_to(share): path.read_text(encoding='utf-8')
                   for path in share.rglob('*') if path.is_file()}
        self.assertEqual(6, len(written))
        self.assertEqual(6, len(done.stdout.splitlines()))
        committed = {
            path.relative_to(ROOT / 'share'): path.read_text(encoding='utf-8')
            for path in (ROOT / 'share').rglob('*') if path.is_file()}
        self.assertEqual(committed.keys(), written.keys())
        if as_committed():
            for path, text in written.items():
                self.assertEqual(committed[path], text, path)


class CompleteMixin:
    """What is the same in all shells."""

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
        """All but the deprecated ones, and nothing else."""
        commands = {name.split()[0] for name, _ in subcommands()}
        self.assertLess(8, len(commands))
        self.assertEqual(commands, set(self.proposed('nfv-sched', '')))

    def test_subcommands(self):
        self.assertEqual(
            ['drain', 'list', 'map', 'profile', 'show'],
            sorted(self.proposed('nfv-sched', 'host', '')))
        self.assertEqual(['map'], self.proposed('nfv-sched', 'host', 'm'))

    def test_options(self):
        self.assertEqual(
            {'--from', '--flavors', '--failover'},
            set(self.proposed('nfv-sched', 'metrics', '--f')))
        self.assertIn(
            '--sort', self.proposed('nfv-sched', 'host', 'list', '--so'))

    def test_all_options(self):
        """Those of each command's parser are in the function."""
        text = function(self.shell)
        for name, subcommand in subcommands():
            for action in subcommand.get_parser(name)._actions:
                if action.help == argparse.SUPPRESS:
                    continue
                for option in action.option_strings:
                    self.assertTrue(
                        re.search(self.mention(name, option), text),
                        (name, option))
        self.assertNotIn('--zone', text)
        self.assertNotIn('-l zone', text)

    def test_files(self):
        (self.top / 'cloud.json.gz').touch()
        for before in (['simulation', 'run'], ['host', 'list', '--from']):
            self.assertIn('cloud.json.gz', self.proposed(
                'nfv-sched', *before, 'cl'))


class BashTest(CompleteMixin, base.TestCase):
    shell = 'bash'

    def mention(self, name, option):
        words = re.sub(r'[ -]', '_', name)
        return rf"(?m)^  cmds_{words}='.*{option}[ ']"

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

    def test_quiet(self):
        """It is quick, and says nothing else."""
        code, out, err = test_help.run('complete')
        self.assertEqual((0, ''), (code, err))
        self.assertEqual('[]', out.rpartition('LOADED ')[2].strip())


class ValuesMixin(CompleteMixin):
    """What fish and zsh propose that bash does not."""

    def test_values(self):
        self.assertEqual(
            {'csv', 'json', 'table', 'value', 'yaml'},
            set(self.proposed('nfv-sched', 'host', 'list', '-f', '')))
        self.assertEqual(['json'], self.proposed(
            'nfv-sched', 'host', 'list', '--format', 'j'))

    def test_other_name(self):
        text = test_help.run(
            'complete', '--shell', self.shell, '--name', 'nfv')[1]
        self.assertNotIn('nfv-sched host', text)
        self.assertNotIn('_nfv_sched', text)


@testtools.skipUnless(shutil.which('fish'), 'no fish')
class FishTest(ValuesMixin, base.TestCase):
    shell = 'fish'

    def mention(self, name, option):
        letter = '-l ' if option.startswith('--') else '-s '
        return (rf"(?m)^complete .*_after \\'{name}\\''.* "
                rf"{letter}{option.lstrip('-')}( |$)")

    def proposed(self, *words):
        """What fish proposes for the last of some words."""
        (self.top / 'nfv-sched.fish').write_text(function('fish'))
        return [line.split('\t')[0] for line in self.run_shell(
            'fish', '--no-config', '-c',
            'source nfv-sched.fish; '
            f'complete -C "{" ".join(words)}"').splitlines()]


@testtools.skipUnless(shutil.which('zsh'), 'no zsh')
class ZshTest(ValuesMixin, base.TestCase):
    shell = 'zsh'

    def mention(self, name, option):
        return (rf"(?s)\('{name}'\)\n((?! ;;).)*"
                rf"(\)|\*){option}\[")

    def proposed(self, *words):
        """What zsh proposes for the last of some words."""
        (self.top / '_nfv-sched').write_text(function('zsh'))
        (self.top / 'press').write_text(ZSH)
        return re.findall('MATCH<(.*)>', self.run_shell(
            'zsh', '-f', 'press', self.top, ' '.join(words)))
