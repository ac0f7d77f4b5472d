# SPDX-License-Identifier: Apache-2.0
"""Files of all kinds that were changed, read by the commands.

A command ends with a documented exit code, within limits of time and memory,
says in lines what is wrong, and does nothing else on the machine.
"""

import base64
import contextlib
import gzip
import hashlib
import importlib
import io
import json
import os
import pathlib
import re
import sys
import time
import uuid

import bcrypt
import fixtures
from keystoneauth1 import session as ks_session
from prometheus_client import parser
import requests
from testtools import content
from testtools import content_type
import yaml

from nfv_sched.journal import entry
from nfv_sched.ops.cli import documents
from nfv_sched.ops.cli import errors
from nfv_sched.ops.cloud import api
from nfv_sched.ops.cloud.cloud_file import examples
from nfv_sched.ops.cloud import codec
from nfv_sched.ops.cloud import file
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.commands import plan_file
from nfv_sched.ops.commands import source
from nfv_sched.ops.run import values
from nfv_sched.ops.serve.metrics import auth
from nfv_sched.ops.serve.metrics import server
from nfv_sched.tests.fuzz import base
from nfv_sched.tests.fuzz import mutations
from nfv_sched.tests import snapshots
from nfv_sched.tests.unit.journal import test_entry
from nfv_sched.tests.unit.ops.answers.machine import test_read
from nfv_sched.tests.unit.ops.answers.machine import trees
from nfv_sched.tests.unit.ops.answers.plans import running
from nfv_sched.tests.unit.ops.answers.profile import machines
from nfv_sched.tests.unit.ops.commands import base as cmd_base
from nfv_sched.tests.unit.ops.commands import test_bad_snapshots
from nfv_sched.tests.unit.ops.commands import test_rebalance

_CONTROL = re.compile('[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e]')
_MAX_LINE = 4000
_MAX_LINES = 200
_HOST = 'one'
_FLAVOR = 'vrouter.4'
_SERVER = 'vm'

#: Commands that read a cloud, without those that test_bad_snapshots has.
_COMMANDS = (
    *test_bad_snapshots.COMMANDS, *test_bad_snapshots.OF_AGENTS,
    ('host', 'list', '-f', 'json'), ('host', 'list', '-f', 'yaml'),
    ('host', 'map', '--format', 'svg'), ('host', 'show', _HOST, '-f', 'shell'),
    ('server', 'explain', _SERVER, '--then'),
    ('flavor', 'explain', _FLAVOR, '-f', 'json'),
    ('capacity', 'list', '-f', 'json'), ('capacity', 'list', '--survive', '1'),
    ('capacity', 'list', '--mix', f'{_FLAVOR}=1'),
    ('capacity', 'show', _FLAVOR, '--like', _SERVER),
    ('cloud', 'audit', '-f', 'json'), ('cloud', 'failover'),
    ('cloud', 'failover', _HOST), ('host', 'drain', _HOST),
    ('host', 'drain', _HOST, '-f', 'commands'), ('cloud', 'defrag'),
    ('cloud', 'defrag', '-f', 'json'), ('metrics', '--failover'),
    ('flavor', 'lint', '--all'), ('flavor', 'translate', '--all', '-f',
                                  'json'))

CLOUD = """\
hosts:
- {name: one, count: 2, cores: 4, threads: 2, memory: 16 GiB, nodes: 2}
flavors:
  vrouter.4:
    vcpus: 4
    memory: 4 GiB
    extra_specs: {'hw:cpu_policy': dedicated, 'hw:numa_nodes': '1'}
  small: {vcpus: 1, memory: 1 GiB}
steps:
- {boot: vm, flavor: vrouter.4}
- {boot: other, flavor: small}
- {delete: other}
"""
STEPS = """\
steps:
- boot: new
  flavor: vrouter.4
- delete: new
- boot: again
  flavor: small
  expect: {refused: x}
flavors:
  small: {vcpus: 1, memory: 1 GiB}
"""
FLAVORS = {'flavors': [{
    'id': '1', 'name': 'f', 'vcpus': 4, 'ram': 1024, 'disk': 1,
    'swap': '', 'OS-FLV-EXT-DATA:ephemeral': 0, 'rxtx_factor': 1.0,
    'os-flavor-access:is_public': True, 'OS-FLV-DISABLED:disabled': False,
    'extra_specs': {
        'hw:cpu_policy': 'dedicated', 'hw:numa_nodes': '2',
        'hw:numa_cpus.0': '0,1', 'hw:numa_cpus.1': '2,3',
        'hw:numa_mem.0': '512', 'hw:numa_mem.1': '512',
        'hw:mem_page_size': 'large', 'pci_passthrough:alias': 'a:1',
        'hw:cpu_realtime_mask': '^0', 'hw:pci_numa_affinity_policy': 'legacy',
        'trait:CUSTOM_X': 'required', 'resources:VGPU': '1',
        'capabilities:cpu_info:features': '<in> x',
        'aggregate_instance_extra_specs:x': 'y'}}]}
PRINTED_FLAVORS = [
    {'ID': '1', 'Name': 'f', 'RAM': 1024, 'Disk': 1, 'Ephemeral': 0,
     'VCPUs': 1, 'Is Public': True, 'Swap': 0, 'RXTX Factor': 1.0,
     'Properties': {'hw:cpu_thread_policy': 'require'}}]
IMAGE = {'id': '11111111-1111-4111-8111-111111111111', 'name': 'i',
         'min_ram': 1, 'min_disk': 1, 'properties': {
             'hw_numa_nodes': '2', 'hw_cpu_policy': 'dedicated',
             'hw_vif_multiqueue_enabled': 'true', 'os_type': 'linux',
             'img_hv_type': 'kvm', 'hw_mem_page_size': '1GB'}}
NOVA_CONF = """\
[DEFAULT]
reserved_host_memory_mb = 4096
cpu_allocation_ratio = 16.0
reserved_huge_pages = node:0,size:2048,count:64
reserved_huge_pages = node:1,size:1GB,count:1
[compute]
cpu_shared_set = 0-1
cpu_dedicated_set = 2-3,^3
[neutron]
physnets = data
[neutron_physnet_data]
numa_nodes = 0
"""
#: Beside what any text may have.
_INI = ('[', ']', '[DEFAULT]', '[x', '=', ': ', '%(x)s', '$transport_url',
        '$reserved_host_memory_mb', '${x', '$$', '^', 'node:x', 'size:1EB',
        'count:-1', ' x')
_LSCPU = ('# CPU,Node', 'Y', 'N', '65536', '65535', '4096', '0', '1.0', '<',
          '</cell>', '&x;', '<!DOCTYPE x>', "'")
_SYSFS = ('0-65535', '1-0', '0,' * 3000, '0x')
_PROMETHEUS = ('NaN', '+Inf', '-Inf', '{', '}', '{policy="x"}', '{x="y"}',
               '"', '\\', '# TYPE', '# HELP', '# TYPE x counter', '1 1',
               '# EOF', '253402300800', '1e18', '-62135596801')
_JOURNAL = ('null', '{}', '[', '9999-99-99', '0001-01-01T00:00:00+23:59',
            '9999-12-31T23:59:59-23:59', '2026-01-02', 'replanned', 'moving',
            '"asked"', '\n', '\n\n')
# What is asked for before a move begins, or about a server at the end.
_REQUEST = re.compile(
    '/os-services|/servers/[0-9a-f-]{36}|'
    '/agents/[0-9a-f-]{36}(/dhcp-networks|/l3-routers)?')
_USERS = (':', '$2y$04$', '$2y$03$', '$2y$14$', '$2y$31$', '$2y$00$', '{SHA}',
          '$apr1$', '', '#', '\x00', '\u202e', 'admin', '\ufeff', 'x' * 70000)


def _damaged(data, chance):
    if chance.random() < 0.8:
        return data
    return mutations.changed_bytes(data, chance)


def _changed_text(text, chance, tokens):
    return _damaged(mutations.changed_text(text, chance, (
        *mutations.TEXTS, *tokens)).encode(errors='surrogatepass'), chance)


def _changed(original, chance, tokens=mutations.YAML):
    """Return a document, as JSON or YAML, or a text, as changed bytes."""
    if isinstance(original, str):
        return _changed_text(original, chance, tokens)
    if chance.random() < 0.5:
        return _damaged(mutations.json_bytes(
            mutations.changed(original, chance), chance), chance)
    return _changed_text(yaml.safe_dump(original), chance, tokens)


class EmptyCloud(contextlib.AbstractContextManager):
    """A connection to a cloud without servers and agents; notes ``paths``."""

    def __init__(self):
        self.session = ks_session.Session()
        self.compute = self.network = self
        self.paths = set()

    def __exit__(self, *exc_info):
        pass

    def request(self, path, method, json, params, **options):
        if method != 'GET' or not _REQUEST.fullmatch(path):
            raise AssertionError(f'{method} {path}')
        self.paths.add(path)
        response = requests.Response()
        response.status_code = 200
        answer = b'{"services": []}'
        if path != '/os-services':
            response.status_code, answer = 404, b'{}'
        response.raw = io.BytesIO(answer)
        return response


class FilesTestCase(cmd_base.CommandTestCase):
    def setUp(self):
        super().setUp()
        self.contents = {}
        self.addOnException(self.attach_files)
        # A module that would be found if it were looked for.
        self.write(f'{mutations.MARKER}.py', b'raise SystemExit(42)\n')
        self.useFixture(fixtures.MonkeyPatch(
            'sys.path', [self.folder, *sys.path]))

    def write(self, name, data):
        path = os.path.join(self.folder, name)
        pathlib.Path(path).write_bytes(data)
        self.contents[name] = data
        return path

    def attach_files(self, _exc_info):
        """Show the files of the smallest case that fails."""
        for name, value in self.contents.items():
            self.addDetail(str(name), content.Content(
                content_type.UTF8_TEXT,
                lambda value=value: [repr(value[:20000]).encode()]))

    def good(self, name):
        path = os.path.join(self.folder, name)
        file.save(test_bad_snapshots.CLOUD, path)
        return path

    def check(self, *command, fault=None, seconds=base.MAX_SECONDS):
        """Run a command on files that may be changed.

        :param fault: path of the file that is at fault if the command says
            that something cannot be read
        :param seconds: time on a CPU that it may take
        """
        began = time.process_time()
        with (base.WATCH.watching(self.folder), base.time_limited(seconds),
              base.memory_limited()):
            code, out, err = self.run_command(*command)
        took = time.process_time() - began
        where = f'{command}: {code} {err[:3000]}'
        self.assertIn(code, (0, 1, 2, 3), where)
        self.assertNotIn('internal error', err, where)
        self.assertEqual([], list(base.WATCH.events), where)
        self.assertLess(took, seconds, where)
        self.assertIsNone(_CONTROL.search(out + err), where)
        lines = err.splitlines()
        self.assertLess(len(lines), _MAX_LINES, where)
        self.assertLess(max(map(len, lines), default=0), _MAX_LINE, where)
        if code in (1, 2):
            self.assertNotEqual([], lines, where)
        if fault is not None and code == 1:
            for line in lines:
                self.assertIn(fault, line, where)
        return code, out, err


class FilesTest(FilesTestCase):

    def cloud_command(self, chance, path):
        command = chance.choice(_COMMANDS)
        if command[0] == 'metrics':
            command = (*command, '--textfile',
                       os.path.join(self.folder, 'cloud.prom'))
        elif command[0] == 'simulation':
            command = (*command, self.write('steps.yaml', STEPS.encode()))
        self.check(*command, '--from', path)

    def test_snapshot(self):
        clouds = [
            {'format': file.FORMAT, 'version': snapshot.VERSION,
             'cloud': codec.encode(cloud)} for cloud in (
                 test_bad_snapshots.CLOUD, test_bad_snapshots.CLOUD,
                 snapshots.generated(hosts=1, cores=4, guests=2))]

        def run(chance):
            data = mutations.json_bytes(
                mutations.changed(chance.choice(clouds), chance), chance)
            self.cloud_command(chance, self.write('cloud.json', data))

        base.count_cases(self, run)

    def test_snapshot_bytes(self):
        with open(self.good('cloud.json.gz'), 'rb') as packed:
            good = packed.read()
        plain = gzip.decompress(good)

        def run(chance):
            data = mutations.changed_bytes(
                chance.choice((good, plain)), chance)
            self.cloud_command(chance, self.write(
                'changed', data if chance.random() < 0.8
                else gzip.compress(data, 1)))

        base.count_cases(self, run)

    def test_cloud(self):
        start = self.good('cloud.json')
        clouds = [CLOUD] * 6 + [
            path.read_text() for name, path in examples.find().items()
            if name != 'thousand-hosts']
        clouds += list(map(yaml.safe_load, clouds))
        steps = (STEPS, yaml.safe_load(STEPS))

        def run(chance):
            if chance.random() < 0.3:
                path = self.write('steps.yaml', _changed(
                    chance.choice(steps), chance))
                self.check('simulation', 'run', path, '--from', start,
                           fault=path)
                return
            path = self.write('cloud.yaml', _changed(
                chance.choice(clouds), chance))
            if chance.random() < 0.7:
                self.check('simulation', 'run', path, fault=path)
            else:
                self.cloud_command(chance, path)

        base.count_cases(self, run)

    def test_profile(self):
        start = self.good('cloud.json')
        document = {'schema': documents.VERSION, **documents.builtins_of(
            machines.derive(machines.machine(cores=4), shared=True))}

        def run(chance):
            path = self.write('profile.json', mutations.json_bytes(
                mutations.changed(document, chance), chance))
            self.check(*chance.choice((
                ('capacity', 'list'), ('host', 'list', '-f', 'json'),
                ('host', 'map'), ('cloud', 'failover'),
                ('server', 'explain', _SERVER))), '--add-hosts', f'2:{path}',
                '--from', start, fault=path)

        base.count_cases(self, run)

    def test_flavors(self):
        start = self.good('cloud.json')
        flavors = self.write('flavors.json', json.dumps(FLAVORS).encode())
        documents = (FLAVORS, FLAVORS['flavors'][0], PRINTED_FLAVORS,
                     yaml.safe_load(CLOUD)['flavors'])
        images = (IMAGE, {**IMAGE, **IMAGE['properties']})
        commands = (('lint',), ('lint', '--hosts', '--from', start),
                    ('translate',), ('translate', '-f', 'commands'),
                    ('translate', '-f', 'json', '--from', start))

        def run(chance):
            of_image = chance.random() < 0.3
            path = self.write('changed', _changed(
                chance.choice(images if of_image else documents), chance))
            if of_image:
                command = (chance.choice(('lint', 'translate')), '--image',
                           path, *chance.choice((
                               ('--file', flavors),
                               ('--all', '--from', start))))
            else:
                command = (*chance.choice(commands), '--file', path)
            self.check('flavor', *command, fault=path)

        base.count_cases(self, run)

    def test_facts(self):
        originals = (
            test_read.LIST, test_read.OLD_LIST, test_read.SUMMARY,
            test_read.IRONIC, test_read.ANSIBLE, test_read.PARSABLE,
            test_read.PARSABLE_DEFAULT, test_read.CAPABILITIES,
            json.dumps(test_read.LIST).replace('null', '-'))
        good = self.write('good', json.dumps(test_read.LIST).encode())

        def run(chance):
            path = self.write('facts', _changed(
                chance.choice(originals), chance, _LSCPU))
            self.profile(chance, '--facts', path, *chance.choice((
                (), ('--facts', good), ('--node-memory', '64,64'))))

        base.count_cases(self, run)

    def profile(self, chance, *arguments):
        """Run a command that reads a machine.

        What no file has is not the fault of one of them.
        """
        self.check('host', 'profile', *arguments, *chance.choice((
            (), ('-f', 'json'), ('-f', 'nova.conf'), ('-f', 'ansible'),
            ('-f', 'kernel'), ('-f', 'tuned'), ('-f', 'ovs'), ('--shared',),
            ('--vswitch-nic', 'physnet0=ens1f0'),
            ('--layout', 'every-node'), ('--layout', 'floating'))))

    def test_sysfs(self):
        path = os.path.join(self.folder, 'sys')
        trees.machine(path, {0: (65536, [(0, 2), (4, 6)]),
                             1: (65536, [(1, 3), (5, 7)])},
                      nics=[('0000:01:00.0', ['ens1f0'], 0)])
        texts = {each: each.read_text() for each in sorted(
            pathlib.Path(path).rglob('*')) if each.is_file()}
        names = list(texts)

        def change(name, chance):
            change = chance.choice(('text',) * 3 + ('none', 'folder', 'link'))
            if change == 'text':
                self.write(name, _changed_text(texts[name], chance, _SYSFS))
                return
            name.unlink()
            if change == 'folder':
                name.mkdir()
            elif change == 'link':
                name.symlink_to(name)

        def run(chance):
            changed = {chance.choice(names)
                       for _number in range(chance.choice((1, 1, 2, 4)))}
            try:
                for name in sorted(changed):
                    change(name, chance)
                self.profile(chance, '--sys', path)
            finally:
                for name in changed:
                    if name.is_dir():
                        name.rmdir()
                    else:
                        name.unlink(missing_ok=True)
                    name.write_text(texts[name])

        base.count_cases(self, run)

    def test_nova_conf(self):
        # Not the file's fault: os-brick runs grep when Nova imports it.
        importlib.import_module('nfv_sched.nova.compute_start')
        facts = self.write('facts', json.dumps(test_read.LIST).encode())

        def run(chance):
            path = self.write('nova.conf', _changed_text(
                NOVA_CONF, chance, _INI))
            self.check('host', 'profile', '--facts', facts, '--node-memory',
                       '64,64', '--vswitch-cores', '0', '--check', path,
                       fault=path)

        base.count_cases(self, run)

    def test_journal(self):
        """A journal of decisions, and metrics that were written before."""
        start = self.good('cloud.json')
        folder = os.path.join(self.folder, 'journal')
        os.mkdir(folder)
        path = os.path.join(
            folder, 'refusals-20260102T030405Z-1-0123abcd.jsonl')
        server = test_bad_snapshots.SERVER.uuid
        lines = [test_entry.line(test_entry.refusal(server=server)),
                 test_entry.line(test_entry.refusal(flavor=None)),
                 test_entry.line(entry.Lost(time='2026-01-02', count=3))]
        documents = [json.loads(line) for line in lines]
        explain = ('server', 'explain', '--then', '--journal', folder)
        commands = (explain, (*explain, '--full', '-f', 'csv'),
                    ('server', 'explain', server, *explain[2:]),
                    (*explain, '-f', 'json'))
        textfile = os.path.join(self.folder, 'nfv.prom')
        metrics = ('metrics', '--journal', folder, '--from', start,
                   '--textfile', textfile)
        self.write(path, b'\n'.join(lines))
        self.check(*metrics)
        text = '\n'.join(
            line for line in pathlib.Path(textfile).read_text().splitlines()
            if 'refus' in line or 'host_up' in line)
        self.assertIn('policy=', text)

        def run(chance):
            changed = [mutations.json_bytes(mutations.changed(
                chance.choice(documents), chance), chance)
                for _number in range(chance.choice((0, 1, 3)))]
            self.write(path, _damaged(b'\n'.join([*lines, *changed]), chance))
            if chance.random() < 0.5:
                self.check(*chance.choice(commands))
                return
            self.write(textfile, _changed_text(text, chance, _PROMETHEUS))
            self.check(*metrics)
            # What cannot be read would be without all metrics.
            with open(textfile, encoding='utf-8') as written:
                list(parser.text_fd_to_metric_families(written))

        base.count_cases(self, run)

    def plans(self):
        cloud, agents = self.good('cloud.json'), os.path.join(
            self.folder, 'agents.json')
        file.save(snapshots.with_uuids(test_rebalance.CLOUD), agents)
        full = os.path.join(self.folder, 'full.json')
        file.save(running.disabled(test_bad_snapshots.CLOUD, 'two'), full)
        for command in (
                ('host', 'drain', _HOST, '--from', cloud),
                ('host', 'drain', _HOST, '--server', _SERVER, '--from', cloud),
                ('host', 'drain', _HOST, '--shelve', '--from', full),
                ('host', 'drain', '*', '--from', cloud),
                ('host', 'drain', _HOST, '--at-once', '1', '--shelve',
                 '--from', full),
                ('cloud', 'defrag', '--flavor', _FLAVOR, '--from', cloud),
                ('agent', 'rebalance', '--from', agents)):
            _code, out, err = self.run_command(*command, '-f', 'json')
            document = json.loads(out)
            if 'flavor' in document:
                # No move makes room there, so this one is made up.
                document['moves'] = [{
                    'move': 1, 'server': 'a', 'server_id': str(uuid.UUID(
                        int=1)), 'flavor': _FLAVOR, 'memory_mib': 1,
                    'how': 'cold', 'paused': False, 'source': _HOST,
                    'destination': 'two', 'destination_id': str(uuid.UUID(
                        int=2)), 'gains': [], 'related': []}]
            yield json.loads(re.sub('"([0-9a-f]{32})"', lambda match: (
                f'"{uuid.UUID(match[1])}"'), json.dumps(document)))

    def test_plan(self):
        """A plan sends no request but those for its own servers."""
        documents = list(self.plans())
        self.assertEqual({'"how": "shelve"', '"rounds": [{'}, {
            text for text in ('"how": "shelve"', '"rounds": [{')
            if text in json.dumps(documents)})
        # Of a new plan for the rest of a plan.
        *_others, rounds = [each for each in documents if 'rounds' in each]
        documents.append({**rounds, 'rounds': [
            {**each, 'round': each['round'] + 1, 'given_up': [_HOST]}
            for each in rounds['rounds']]})
        self.useFixture(fixtures.MockPatchObject(
            source, 'reader', return_value=lambda: running.disabled(
                test_bad_snapshots.CLOUD, _HOST)))
        self.useFixture(fixtures.MockPatchObject(values, 'FREED_SECONDS', 0))
        self.useFixture(fixtures.MockPatchObject(
            api, 'read', return_value=test_rebalance.CLOUD))
        connection = EmptyCloud()
        self.useFixture(fixtures.MockPatch(
            'openstack.connect', lambda cloud: connection))
        records = [json.dumps({
            'plan': 'x', 'time': '2026-01-02T03:04:05+00:00', 'move': 1,
            'id': 'x' if state == 'replanned' else str(uuid.UUID(int=1)),
            'state': state, 'migration': None, 'text': None})
            for state in ('asked', 'done', 'failed', 'replanned')]
        plan = os.path.join(self.folder, 'plan')

        def run_plan(chance):
            document = chance.choice(documents)
            if chance.random() < 0.7:
                document = mutations.changed(document, chance)
            data = _damaged(mutations.json_bytes(document, chance), chance)
            self.write('plan', data)
            number = chance.choice((0, 0, 1, 2))
            path, digest = plan_file.journal_of(
                plan, hashlib.sha256(data).hexdigest(), number)
            self.write(os.path.basename(path), mutations.changed_text(
                '\n'.join([*records, '']).replace('"x"', f'"{digest}"'),
                chance, (*mutations.TEXTS, *_JOURNAL)).encode(
                    errors='surrogatepass') if chance.random() < 0.5 else b'')
            self.check('plan', 'run', plan, *chance.choice((
                ('--dry-run',), ('--yes', '--replan', '1'))), *(
                    ('--round', str(number)) if number else ()))
            for each in pathlib.Path(self.folder).glob('plan.*journal'):
                each.unlink()

        base.count_cases(self, run_plan)
        self.assertNotEqual(set(), connection.paths)

    def test_users(self):
        self.useFixture(fixtures.MockPatchObject(auth, 'PAUSE_FACTOR', 0))
        outcomes = set()
        hashed = bcrypt.hashpw(b'secret', bcrypt.gensalt(4)).decode()
        text = f'# x\nadmin:{hashed}:operator\nother:{hashed}\nhost:*\n'
        header = 'Basic ' + base64.b64encode(b'admin:secret').decode()

        def run(chance):
            path = self.write('users', _changed_text(text, chance, _USERS))
            os.chmod(path, 0o600)
            given = header if chance.random() < 0.5 else (
                mutations.changed_bytes(
                    header.encode(), chance).decode('latin-1'))
            try:
                with base.WATCH.watching(self.folder), base.time_limited():
                    found = auth.read(path).user(server.HTTPRequest(
                        '/', '', {'Authorization': given}, {},
                        server.Connection(None, '192.0.2.1')))
            except errors.CloudUnreadError as exc:
                self.assertIn(path, str(exc))
                self.assertLess(len(str(exc)), _MAX_LINE)
            else:
                outcomes.add(type(found))
                if isinstance(found, server.Answer):
                    self.assertEqual(401, found.status)
            self.assertEqual([], list(base.WATCH.events))

        base.count_cases(self, run)
        self.assertEqual({auth.User, server.Answer}, outcomes)
