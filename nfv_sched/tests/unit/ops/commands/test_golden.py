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
import shlex
import time

import fixtures
from oslo_utils import fixture as utils_fixture

import nfv_sched
from nfv_sched.journal import entry
from nfv_sched.ops.cli import base as cli_base
from nfv_sched.ops.cloud.cloud_file import examples
from nfv_sched.ops.cloud import file
from nfv_sched.ops.cloud import snapshot
from nfv_sched.tests import snapshots
from nfv_sched.tests.unit.journal import test_entry
from nfv_sched.tests.unit.ops.answers.audit import clouds
from nfv_sched.tests.unit.ops.answers.plans import running
from nfv_sched.tests.unit.ops.answers.plans import test_move_search
from nfv_sched.tests.unit.ops.answers.rebalance import test_levelling
from nfv_sched.tests.unit.ops import blazar_clouds
from nfv_sched.tests.unit.ops.commands import base
from nfv_sched.tests.unit.ops.commands import test_audit
from nfv_sched.tests.unit.ops.commands import test_capacity
from nfv_sched.tests.unit.ops.commands import test_explain
from nfv_sched.tests.unit.ops.commands import test_flavors
from nfv_sched.tests.unit.ops.commands import test_hosts
from nfv_sched.tests.unit.ops.commands import test_profile
from nfv_sched.tests.unit.ops.commands import test_rebalance
from nfv_sched.tests.unit.ops.commands import test_simulate
from nfv_sched.tests.unit.ops.commands import test_vfs
from nfv_sched.tests.unit.ops import limited_clouds
from nfv_sched.tests.unit.ops import small_clouds

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

#: What is special -> servers, where host "one" is emptied or lost.
LAYOUTS = {
    'the fullest host with room is filled first': (
        'a p4 one', 'b p2 one', 'c p4 two'),
    'who has one host to go to is not in the way of another': (
        'a p1 one', 'b p4 one', 'c p3 two', 'd p4 three', 'e p3 three'),
    'two small ones rather than a large one': (
        'a p4 one', 'b p2 one', 'c p2 one', 'd p4 two', 'e p4 three',
        'f p4 three'),
    'no room for one of two': (
        'a p4 one', 'b p3 one', 'c p4 two', 'd p2 two', 'e p4 three',
        'f p1 three'),
    'CPUs are free, but not where the policy wants them': (
        'a strict one', 'b strict two', 'c strict two', 'd strict three',
        'e strict three'),
    'a preference that can be kept nowhere else': (
        'a prefer one', 'w strict two', 'x strict two', 'y strict three',
        'z strict three'),
    'anti-affinity, and a host without a member': (
        'a p1 one apart', 'b p1 two apart'),
    'anti-affinity, and members everywhere': (
        'a p1 one apart', 'b p1 two apart', 'c p1 three apart'),
    'affinity lets no member leave': (
        'a p1 one together', 'b p1 one together'),
    'a soft policy is kept if there is a host for that': (
        'a p1 one soft', 'b p1 two soft', 'c p4 two'),
    'a soft policy is in no one\'s way': (
        'a p1 one soft', 'b p1 two soft', 'c p1 three soft'),
    'of two for one place, and of like age, the last is first': (
        'a p4 one', 'b p4 one', 'c p4 two', 'd p4 two', 'e p4 three'),
    'who fits nowhere is in nobody\'s way': (
        'a p4 one', 'b p2 one', 'c p3 two', 'd p2 two', 'e p3 three',
        'f p3 three'),
    'room for several on one host': (
        'a p1 one', 'b p1 one', 'c p1 one', 'd p4 two', 'e p4 two'),
}

Case = tuple[str, ...]


def parsers() -> dict[str, argparse.ArgumentParser]:
    app = cli_base.NFVSched()
    return {name: point.load()(app, None, name).get_parser(name)
            for name, point in app.command_manager}


def formats(parser: argparse.ArgumentParser) -> list[tuple[str, Case]]:
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
    # Within any time limit.
    rearranged = [('--max-moves', '5')] * (len(cloud.hosts) < 50)
    return {
        'agent rebalance': [()],
        'capacity list': [
            (), ('--by', 'host', '--empty'), ('--survive', '1')],
        'capacity show': [(name, *more) for name in asked
                          for more in ((), ('--next',))],
        'cloud audit': [()],
        'cloud consolidate': rearranged,
        'cloud defrag': [('--flavor', name) for name in asked],
        'cloud failover': [(), ('--together',)],
        'cloud spread': rearranged,
        'flavor explain': [
            *((name,) for name in asked), (asked[-1], '--for-tenant'),
            (asked[-1], '--all-filters', '--all')],
        'flavor lint': [('--all', '--hosts')],
        'flavor translate': [('--all',)],
        'host drain': [(name, *more) for name in hosts
                       for more in ((), ('--make-room',))],
        'host evacuate': [(name,) for name in hosts],
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
        return True

    def compare(self, name: str) -> None:
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


class OptionsTest(GoldenTestCase, running.RunningTestCase):
    """The answers about small clouds, with options, by subject."""

    wanted: Case = ('commands', 'table', 'text')

    def is_wanted(self, form: str) -> bool:
        return form in self.wanted

    def write(self, name: str, content: str | dict) -> str:
        path = self.folder / name
        path.write_text(content if isinstance(content, str)
                        else json.dumps(content))
        return str(path)

    def ask_all(self, cloud: snapshot.Cloud | None, *lines: str) -> None:
        source: Case = ()
        if cloud is not None:
            file.save(cloud, str(self.folder / 'cloud'))
            source = ('--from', str(self.folder / 'cloud'))
        for line in lines:
            group, name, *args = shlex.split(line)
            self.ask(f'{group} {name}', tuple([
                each.replace('FOLDER', str(self.folder)) for each in args]),
                source)

    def test_capacity(self):
        self.wanted += ('json',)
        small = test_capacity.SMALL
        cloud = dataclasses.replace(test_capacity.CLOUD, servers=(small,))
        self.ask_all(
            cloud, 'capacity list --by aggregate',
            'capacity list --flavor v* --by host --host [ts]*',
            'capacity list --host one', 'capacity list --aggregate n*',
            'capacity list --az east --survive 1 --empty',
            'capacity list --mix vrouter.4=1,fw.6=1 --empty',
            'capacity list --mix fw.6=2',
            'capacity list --mix fw.6=1,fw.6=1',
            'capacity show vrouter.4 --next',
            'capacity show vrouter.4 --host one')
        like = dataclasses.replace(
            small, name='like', flavor=test_capacity.FLAVORS[0],
            ports=(snapshot.Port(id='p', network='n', vnic_type='direct',
                                 physnet='data', rules=0),))
        self.ask_all(
            dataclasses.replace(cloud, servers=(like,), networks=(
                snapshot.Network(id='n', name='fast', physnet='data'),
                snapshot.Network(id='m', name='mgmt'))),
            'capacity list', 'capacity list --flavor v* --ports 2',
            'capacity list --flavor v* --network mgmt --network m',
            'capacity list --flavor f* --like like',
            'capacity list --mix vrouter.4=1,fw.6=1',
            'capacity show vrouter.4', 'capacity show vrouter.4 --ports 1')
        flavor = small_clouds.flavor
        self.ask_all(
            dataclasses.replace(cloud, flavors=(
                flavor(name='gpu', accel__device_profile='gpus'),
                flavor(name='slow', trait__CUSTOM_FAST='forbidden'),
                flavor(name='secret', hw__mem_encryption='true'),
                flavor(name='odd[1]'), flavor(name='zero', hw__numa_nodes='0'),
                flavor(name='odd', hw__cpu_thread_policy='x'))),
            'capacity list', 'capacity list --flavor odd[1]',
            'capacity list --flavor secret --image-property '
            'hw_firmware_type=uefi --image-property hw_machine_type=q35',
            'capacity show odd --next')
        self.ask_all(small_clouds.cloud(flavors=test_capacity.FLAVORS),
                     'capacity list', 'host list')
        self.compare('options-capacity')

    def test_limits(self):
        self.wanted += ('json',)
        for cloud in limited_clouds.LIMITED.values():
            self.ask_all(cloud, 'capacity list', *(
                f'capacity show {flavor.name}' for flavor in cloud.flavors))
        self.compare('limits')

    def test_explain(self):
        path = self.write('explain.yaml', test_explain.CLOUD)
        self.ask_all(
            file.load(self.saved(path)),
            'server explain s-1', 'server explain s-1 --network tun',
            'server explain s-3 --network tun',
            'server explain s-3 --network tun --for-tenant',
            'flavor explain fast', 'flavor explain fast --host h-*',
            'flavor explain fast --for-tenant', 'flavor explain pinned',
            'flavor explain pinned --network tun --count 2')
        self.compare('options-explain')

    def saved(self, path: str) -> str:
        to = f'{path}.cloud'
        self.run_command('simulation', 'run', path, '--save', to)
        return to

    def test_flavors(self):
        self.ask_all(
            test_flavors.CLOUD, 'flavor lint --all', 'flavor lint good l*',
            'flavor lint large --hosts', 'flavor lint odd --hosts',
            'flavor lint --all --hosts', 'flavor lint good --used',
            'flavor lint good --image-property hw_vif_model=avp',
            'flavor translate good odd', 'flavor translate odd')
        self.write('old', {'old one': {
            'vcpus': 4, 'ram': 1024,
            'properties': test_flavors.TranslateTest.SPECS}})
        self.write('listed', [{
            'ID': '-7', 'Name': 'f', 'VCPUs': 2, 'RAM': 2048, 'Disk': 20,
            'Ephemeral': 5, 'Swap': 512, 'Is Public': False,
            'Properties': {'hw:numa_nodes': '1'}}])
        self.write('keys', {'f': {'vcpus': 2, 'ram': 1, 'properties': {
            'hw:wrs:shared_vcpu': '2', 'hw:wrs:min_vcpus': '2',
            'hw:unknown': 'x', 'sw:wrs:guest:heartbeat': 'false',
            'sw:wrs:auto_recovery': 'true',
            'hw:wrs:live_migration_timeout': '800'}}})
        self.write('none', {'f': {'vcpus': 1, 'ram': 1}})
        self.write('image', {
            'id': SERVERS[0], 'name': '$(x)', 'properties': {
                'hw_vif_model': 'avp', 'hw_numa_node.0': '1', 'other': 'x'}})
        self.ask_all(None, *(f'flavor {command} --file FOLDER/{name}'
                             for command in ('lint', 'translate')
                             for name in ('old', 'listed', 'keys', 'none')),
                     'flavor translate --image FOLDER/image')
        self.ask_all(
            small_clouds.cloud(flavors=(dataclasses.replace(
                small_clouds.flavor(4, name='old one'),
                extra_specs=test_flavors.TranslateTest.SPECS),)),
            'flavor translate --all')
        self.compare('options-flavors')

    def test_hosts(self):
        self.ask_all(
            test_hosts.made_cloud(), 'host list', 'host list --az edge',
            *(f'host list --sort {order}'
              for order in ('name', 'free', 'worst')),
            *(f"host list --sort-column '{column}'" for column in (
                'pCPUs used', 'Servers', 'shared_used', '1G used')),
            'host list --full 100', *(f'host show {name}' for name in 'abc'),
            'host map', 'host map --host [bc]')
        self.compare('options-hosts')

    def test_rebalance(self):
        self.wanted += ('json',)
        self.ask_all(
            snapshots.with_uuids(test_rebalance.CLOUD), 'agent rebalance',
            'agent rebalance --kind dhcp', 'agent rebalance --threshold 6',
            'agent rebalance --kind router --ports --threshold 5')
        routers = test_levelling.routers
        made = [*routers('h', 2, ha=True),
                test_levelling.service('spread', distributed=True),
                *routers('r', 6, physnets=frozenset({'x'})),
                *routers('u', 2, physnets=None)]
        self.ask_all(
            snapshots.with_uuids(dataclasses.replace(
                test_rebalance.CLOUD, network_services=tuple(made),
                network_agents=(
                    *test_rebalance.agents('router', made[:-1], made[-1:]),
                    test_levelling.agent('three', 'r0', alive=False),
                    test_levelling.agent('four', enabled=False)))),
            'agent rebalance')
        self.compare('options-rebalance')

    def test_plans(self):
        self.wanted += ('json',)
        for servers, lines in (
                (('b vf one', 'a p4 one', 'c p4 two', 'd p4 three'), (
                    'host drain one', 'host drain one --server b',
                    'host drain one t*', 'host drain * --at-once 2',
                    'host drain --availability-zone nova', 'cloud failover',
                    'cloud failover --host t* --together')),
                (('a p4 one', 'b p4 one', 'c p4 two', 'd p4 two', 'e p4 three',
                  'f p4 three'), ('host drain *', 'host drain one --shelve',
                                  'cloud failover')),
                (test_move_search.TIGHT, (
                    'host drain one', 'host drain one --make-room',
                    'host drain one --make-room --at-once 1')),
                (('a strict one', 'w strict two', 'x strict two',
                  'y strict three', 'z strict three'),
                 ('host drain one --relax', 'host evacuate one --relax')),
                (('a prefer one', 'w strict two', 'x strict two',
                  'y strict three', 'z strict three'),
                 ('host drain one --relax', 'host evacuate o* two')),
                (('a p1 one',), ('host drain two',))):
            self.ask_all(self.running(*servers), *lines)
        for name, servers in LAYOUTS.items():
            self.printed.setdefault('table', []).append(f'# {name}\n')
            self.ask_all(self.running(*servers), 'host drain one',
                         'cloud failover --host one', 'cloud failover')
        self.ask_all(self.running('a p1 one', steps="""\
            - {resize: a, flavor: p2, host: two, confirm: false}
            """), 'host drain one')
        cloud = self.running(steps=test_vfs.BOOTS, head=test_vfs.HEAD)
        self.ask_all(cloud, 'host drain one', 'host drain one --cold-for-vfs',
                     'host drain one two', 'host drain one two --cold-for-vfs')
        cloud = self.running(steps=test_vfs.ROOM, head=test_vfs.HEAD)
        self.ask_all(dataclasses.replace(cloud, servers=tuple([
            dataclasses.replace(
                each, state='stopped' if each.name == 'd' else each.state)
            for each in cloud.servers])), *(
                f'{command}{more}' for command in (
                    'host drain one --make-room', 'cloud defrag --flavor p4',
                    'cloud defrag --flavor p4 --count 2 --avoid a')
                for more in ('', ' --cold-for-vfs')))
        self.compare('options-plans')

    def test_audit(self):
        self.wanted += ('json',)
        self.ask_all(
            test_audit.broken('switch moved', 'orphan', 'ledger'),
            'cloud audit', "cloud audit --kind 'alloc*' --kind 'pol*'",
            "cloud audit --kind 'cpu-*'", 'cloud audit --host host2')
        self.ask_all(clouds.sound(), 'cloud audit', 'cloud audit -c Host',
                     'cloud audit --print-empty')
        self.compare('options-audit')

    def test_blazar(self):
        self.wanted += ('json',)
        blazar_clouds.enable(self)
        self.ask_all(
            blazar_clouds.cloud(), 'capacity list', 'capacity show pinned',
            'capacity list --mix pinned=1', 'capacity list --host other',
            *(f'capacity list --by host --reservation {name}' for name in (
                blazar_clouds.WHOLE, blazar_clouds.SLOTS,
                blazar_clouds.LATER)),
            'capacity list --by host --project beta --reservation '
            f'{blazar_clouds.WHOLE}', 'flavor explain pinned',
            'flavor explain pinned --for-tenant')
        self.ask_all(blazar_clouds.cloud(None), 'capacity list',
                     'capacity show pinned')
        self.compare('options-blazar')

    def test_profile(self):
        self.wanted = 'table', 'nova.conf', 'kernel', 'ovs', 'ansible'
        self.write('facts', test_profile.IRONIC)
        for args in ('--shared', '--layout floating', '--layout every-node',
                     '--pages 1G:51%,2M:25%',
                     '--vswitch-nic ens6f0 --mtu 9000',
                     '--shared --vswitch-nic physnet0=ens1f0',
                     '--sriov-nic physnet1=ens6f0:8',
                     '--vswitch-cores 0', '--layout floating --osds 10 '
                     '--guest-gb 2 --utilisation 0.1 --gb-per-osd 3 '
                     '--mb-per-gb 1000', '--layout floating --workload '
                     'nfv_default', '--osds 8:nvme --osds-per-device 4 '
                     '--ceph-node 1', '--vswitch-label sw '
                     '--node-label-prefix n'):
            self.ask_all(None, f'host profile --facts FOLDER/facts {args}')
        self.compare('options-profile')

    def test_simulation(self):
        self.write('cloud.yaml', test_simulate.CLOUD)
        self.write('network.yaml', test_simulate.CLOUD.replace(
            'count: 2', 'count: 2, routers: 3'))
        self.ask_all(None, *(f'simulation run FOLDER/{args}' for args in (
            'cloud.yaml', *(f'cloud.yaml --show {part}' for part in (
                'hosts', 'network', 'servers', 'steps')),
            'network.yaml', *(f'cloud.yaml --reasons {level}' for level in (
                'policy', 'summary')))))
        self.compare('options-simulation')
