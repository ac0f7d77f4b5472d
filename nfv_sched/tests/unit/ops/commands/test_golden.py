# SPDX-License-Identifier: Apache-2.0
"""What commands print about the example clouds, as kept in git.

A change is compared with a few clouds. ``NFV_SCHED_GOLDEN=all`` compares all
of them; ``tools/regenerate golden`` writes the files, by
``NFV_SCHED_GOLDEN=write``.
"""

import argparse
import dataclasses
import datetime
import difflib
import gzip
import hashlib
from importlib import metadata
import json
import os
import pathlib
import re
import time

import fixtures
from oslo_utils import fixture as utils_fixture

import nfv_sched
from nfv_sched.journal import entry
from nfv_sched.ops.cli import base as cli_base
from nfv_sched.ops.cloud.cloud_file import examples
from nfv_sched.ops.cloud import file
from nfv_sched.tests.unit.journal import test_entry
from nfv_sched.tests.unit.ops.commands import base

ROOT = pathlib.Path(nfv_sched.__file__).parents[1]
FOLDER = ROOT / 'nfv_sched' / 'tests' / 'golden'
MODE = os.environ.get('NFV_SCHED_GOLDEN', '')

#: The clouds that each change is compared with; of the others there are only
#: digests of their JSON.
FEW = ('carrier-grade', 'cookbook', 'fragmented', 'network-nodes-ovn',
       'refusals', 'telco', 'two-hosts')
#: The cloud on which slow commands take minutes, and what it has instead.
LARGE, LARGE_CASES = 'thousand-hosts', ('cloud audit', 'host list')
#: Commands that have no golden file: why.
LEFT_OUT = {
    'complete': 'prints what shells read, which test_complete compares',
    'host profile': 'reads a machine; OtherTest has one',
    'help': 'test_help compares it',
    'plan run': 'changes a cloud, of which the functional tests have one',
    'snapshot save': 'reads Nova; OtherTest has what it writes',
    'snapshot serve': 'serves what the other commands print',
}
#: YAML has what JSON has.
SAME = {'yaml'}
#: Formats with the values of a table, for which each change has one cloud; and
#: the cloud with most flavors, of which it has only this.
PLAIN, PLAIN_CLOUD = {'csv', 'value'}, 'telco'
BIG, OF_BIG = 'cookbook', {'json', 'commands'}
#: Formats of clouds of which there are only digests.
DIGESTED = {'json', 'text'}
#: Lines of a difference that a failure shows.
SHOWN = 40
#: The release of Nova with which the files are made.
NOVA = '34'
#: Servers of a journal.
SERVERS = ('80e65682-9818-5377-8b64-6e5bbebcfd08',
           '290d77d6-056b-5891-a716-5c2cfd04dc0c')
NOW = datetime.datetime(2026, 1, 2, 3, 4, 5)

#: The part of what is printed that differs from run to run -> what stands for
#: it.
UNSTEADY = (
    (re.compile(r'\bin \d+\.\d s\b'), 'in N s'),
    (re.compile(r'("seconds": )(?:\d+\.\d+|\{[^}]*\})'), r'\1N'),
    (re.compile(r'(nfv_sched_\w+_seconds )\d\S*'), r'\1N'),
)

Case = tuple[str, ...]


def parsers() -> dict[str, argparse.ArgumentParser]:
    """Return the parser of each command by its name."""
    app = cli_base.NFVSched()
    return {name: point.load()(app, None, name).get_parser(name)
            for name, point in app.command_manager}


def formats(parser: argparse.ArgumentParser) -> list[tuple[str, Case]]:
    """Return the formats of a command, each with its option."""
    for action in parser._actions:
        if action.dest in ('formatter', 'format') and action.choices:
            return [(name, (action.option_strings[0], name))
                    for name in sorted({*action.choices} - SAME)]
    return [('text', ())]


def of_cloud(path: str) -> dict[str, list[Case]]:
    """Return what is asked about a cloud: command -> its arguments."""
    cloud = file.load(path)
    hosts = sorted(host.name for host in cloud.hosts)[:1]
    flavors = sorted(cloud.flavors, key=lambda each: each.name)
    asked = [each.name for each in (*flavors[:1], *sorted(
        flavors, key=lambda each: (each.vcpus, each.memory, each.name),
    )[-1:])]
    asked = list(dict.fromkeys(asked))
    # The biggest flavor is the one that is refused, or nearly.
    refused = [each for each in cloud.servers[1:] if each.host is None]
    servers = [each.uuid for each in (*cloud.servers[:1], *refused[:1])]
    return {
        'agent rebalance': [()],
        'capacity list': [
            (), ('--by', 'host', '--empty'), ('--survive', '1')],
        'capacity show': [(name, *more) for name in asked
                          for more in ((), ('--next',))],
        'cloud audit': [()],
        'cloud defrag': [('--flavor', name) for name in asked],
        'cloud failover': [(), ('--together',)],
        'flavor explain': [
            *((name,) for name in asked), (asked[-1], '--for-tenant'),
            (asked[-1], '--all-filters', '--all')],
        'flavor lint': [('--all', '--hosts')],
        'flavor translate': [('--all',)],
        'host drain': [(name, *more) for name in hosts
                       for more in ((), ('--make-room',))],
        'host list': [(), ('--sort', 'fit')],
        'host map': [()],
        'host show': [(name,) for name in hosts],
        'metrics': [('--textfile', '-')],
        'server explain': [(name,) for name in servers],
    }


class GoldenTestCase(base.CommandTestCase):

    def setUp(self):
        super().setUp()
        if metadata.version('nova').partition('.')[0] != NOVA:
            self.skipTest('the files are made with the newest Nova')
        self.useFixture(fixtures.EnvironmentVariable('COLUMNS', '200'))
        self.useFixture(fixtures.EnvironmentVariable('TZ', 'UTC'))
        self.useFixture(utils_fixture.TimeFixture(NOW))
        # No search ends because the machine is busy.
        clock = time.monotonic
        self.useFixture(fixtures.MockPatch(
            'time.monotonic', lambda: clock() / 100))
        self.folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.printed: dict[str, list[str]] = {}
        self.asked: set[str] = set()
        self.parsers = parsers()

    def ask(self, command: str, args: Case, source: Case = (),
            ) -> None:
        """Run a command in all of its formats, and keep what it prints."""
        self.asked.add(command)
        for name, option in formats(self.parsers[command]):
            if not self.is_wanted(name):
                continue
            words = [*command.split(), *args, *option]
            code, out, err = self.run_command(*words, *source)
            text = f'$ {" ".join(words)}\n{out}{err}exit code {code}\n\n'
            text = text.replace(str(self.folder), 'FOLDER').replace(
                str(ROOT), 'ROOT')
            for pattern, steady in UNSTEADY:
                text = pattern.sub(steady, text)
            if name == 'json':  # a third of the size
                text = re.sub('^ +', '', text, flags=re.MULTILINE)
            self.printed.setdefault(name, []).append(text)

    def is_wanted(self, form: str) -> bool:
        """Whether to print this format."""
        return True

    def compare(self, name: str) -> None:
        """Compare what was printed with the files of a name."""
        differences = []
        for form, texts in self.printed.items():
            path = FOLDER / f'{name}.{form}.txt'
            text = ''.join(texts)
            if MODE == 'write':
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
                continue
            kept = path.read_text() if path.exists() else ''
            differences += difflib.unified_diff(
                kept.splitlines(), text.splitlines(),
                f'kept/{path.name}', f'printed/{path.name}', lineterm='', n=1)
        if differences:
            rest = len(differences) - SHOWN
            self.fail('\n'.join([
                'it prints something else; if that is meant: '
                'tools/regenerate golden', *differences[:SHOWN],
                *([f'... {rest} more lines'] if rest > 0 else [])]))


class CloudTest(GoldenTestCase):
    """The answers about a cloud, by format."""

    def is_wanted(self, form: str) -> bool:
        if self.cloud not in FEW:
            return form in DIGESTED
        if MODE or self.cloud == PLAIN_CLOUD:
            return True
        return form in OF_BIG if self.cloud == BIG else form not in PLAIN

    def compare_cloud(self, name: str) -> None:
        self.cloud = name
        snapshot = str(self.folder / 'cloud')
        if name != LARGE:
            self.ask('simulation run', (
                '--example', name, '--show', 'all', '--reasons', 'hosts'))
        self.run_command(
            'simulation', 'run', '--example', name, '--save', snapshot)
        # As long in every clone: pictures cut long paths.
        cloud = file.load(snapshot)
        file.save(dataclasses.replace(cloud, source=cloud.source.replace(
            str(ROOT), 'ROOT')), snapshot)
        for command, cases in of_cloud(snapshot).items():
            if name != LARGE or command in LARGE_CASES:
                for args in cases:
                    self.ask(command, args, ('--from', snapshot))
        if name not in FEW:
            self.printed = {'digests': [
                f'{text.splitlines()[0]}: '
                f'{hashlib.sha256(text.encode()).hexdigest()[:16]}\n'
                for texts in self.printed.values() for text in texts]}
        self.compare(name)
        if name != LARGE:
            missing = {*self.parsers} - self.asked - {*LEFT_OUT}
            self.assertEqual(set(), missing, (
                'a command without golden files: add it to of_cloud()'))


def _of(name):
    def test(self):
        self.compare_cloud(name)
    return test


for _name in examples.find() if MODE else FEW:
    setattr(CloudTest, f'test_{re.sub("[^a-z]", "_", _name)}', _of(_name))


class OtherTest(GoldenTestCase):
    """The answers about other files, by command."""

    def test_profile(self):
        facts = str(ROOT / 'etc/nfv_sched/examples/facts/ironic.json')
        self.ask('host profile', ('--facts', facts))
        self.compare('host-profile')

    def test_flavors(self):
        path = str(ROOT / 'etc/nfv_sched/examples/titanium-flavors.json')
        for command in 'flavor lint', 'flavor translate':
            self.ask(command, ('--file', path))
        self.compare('flavor-file')

    def test_journal(self):
        path = self.folder / 'refusals-20260102T030405Z-1-0123abcd.jsonl'
        path.write_bytes(b''.join(
            test_entry.line(test_entry.refusal(server=name))
            for name in SERVERS) +
            test_entry.line(entry.Lost(
                time='2026-01-02T03:04:05.678Z', count=3)))
        for options in (), ('--full',), ('--shadow',):
            self.ask('server explain', (
                '--then', *options, '--journal', str(self.folder)))
        self.compare('journal')

    def test_snapshot(self):
        # An anonymous one has other names each time.
        path = self.folder / 'cloud'
        self.run_command('simulation', 'run', '--example', 'two-hosts',
                         '--save', str(path))
        document = json.loads(gzip.decompress(path.read_bytes()))
        for key in 'source', 'nova', 'nfv_sched':  # file and releases
            del document['cloud'][key]
        self.printed['json'] = [json.dumps(document, indent=0)]
        self.compare('snapshot')
