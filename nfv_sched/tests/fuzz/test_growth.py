# SPDX-License-Identifier: Apache-2.0
"""Large files of every kind, which may come from a few compressed kilobytes.

What takes time or memory out of proportion to the size of a file does not show
in the small files of the other tests.  The limit of memory is theirs; that of
time is many times what is needed, so that a slow machine fails no test, and
still too short for what grows with the square of the size.
"""

import contextlib
import gzip
import json
import os
import uuid

from nfv_sched.base import files
from nfv_sched.journal import entry
from nfv_sched.ops.answers.journal import reading
from nfv_sched.ops.answers.machine import read as machine_files
from nfv_sched.ops.answers.machine import values as machine_values
from nfv_sched.ops.answers.profile import reported
from nfv_sched.ops.cli import documents
from nfv_sched.ops.cloud.cloud_file import loader
from nfv_sched.ops.cloud import codec
from nfv_sched.ops.cloud import file
from nfv_sched.ops.cloud import problems
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.commands import plan_file
from nfv_sched.ops.run import runner
from nfv_sched.tests.fuzz import base
from nfv_sched.tests.fuzz import test_files
from nfv_sched.tests.unit.journal import test_entry
from nfv_sched.tests.unit.ops.answers.profile import machines
from nfv_sched.tests.unit.ops.commands import test_bad_snapshots
from nfv_sched.tests.unit.ops.run import migrating_nova

#: Seconds on a CPU.
_SECONDS = 40
#: Items of which one is enough for an error.
_MANY = 2_000_000


def _id(number):
    return str(uuid.UUID(int=number))


class GrowthTest(test_files.FilesTestCase):

    @contextlib.contextmanager
    def limited(self):
        with base.time_limited(_SECONDS), base.memory_limited():
            yield

    def packed(self, name, document, **lists):
        """Write a compressed document, with JSON items in place of lists."""
        text = json.dumps(document)
        for key, items in lists.items():
            text = text.replace(f'"{key}"', f'[{items}]')
        return self.write(name, gzip.compress(text.encode(), 1))

    def refuse(self, path, message, *command):
        code, _out, err = self.check(*command, seconds=_SECONDS)
        self.assertEqual((1, f'error: {path}: {message}\n'), (code, err))

    def snapshot(self):
        return {'format': file.FORMAT, 'version': snapshot.VERSION,
                'cloud': codec.encode(test_bad_snapshots.CLOUD)}

    def test_snapshot(self):
        document = self.snapshot()
        cloud = document['cloud']
        host, server = cloud['hosts'][1], cloud['servers'][0]
        names = [f'h{number}' for number in range(2000)]
        cloud['hosts'] = [
            {**host, 'uuid': _id(number), 'name': name, 'hypervisor': name,
             'providers': [{'uuid': _id(number), 'name': name}]}
            for number, name in enumerate(names)]
        many = range(20_000)
        ids = list(map(_id, many))
        cloud['servers'] = [
            {**server, 'uuid': each, 'name': each, 'host': names[0]}
            for each in ids]
        flavor = cloud['flavors'][0]
        cloud['flavors'] = [{**flavor, 'name': each} for each in ids]
        cloud['aggregates'] = [
            {'name': each, 'hosts': names[:9]} for each in ids]
        cloud['groups'] = [
            {'uuid': each, 'name': 'g', 'policy': 'affinity',
             'members': ids[:9]} for each in ids]
        cloud['moves'] = [
            {'uuid': each, 'server': each, 'kind': 'migration',
             'status': 'done', 'source': names[0]} for each in ids]
        cloud['networks'] = [{'id': each, 'name': 'n'} for each in ids]
        service = cloud['network_services'][0]
        cloud['network_services'] = [{**service, 'id': each} for each in ids]
        agent = cloud['network_agents'][0]
        cloud['network_agents'] = [
            {**agent, 'id': each, 'host': names[0], 'serves': ids[:9]}
            for each in ids]
        path = self.packed('cloud.json.gz', document)
        with self.limited():
            self.assertEqual(len(ids), len(file.load(path).servers))

    def test_chain_of_providers(self):
        document = self.snapshot()
        host = document['cloud']['hosts'][0]
        providers = host['providers'] = host['providers'][:1]
        parent = host['uuid']
        for number in range(1, 100_000):
            providers.append(
                {'uuid': _id(number), 'name': 'p', 'parent': parent})
            parent = _id(number)
        path = self.packed('cloud.json.gz', document)
        code, out, err = self.check('host', 'list', '--from', path,
                                    seconds=_SECONDS)
        self.assertEqual((0, ''), (code, err))
        self.assertIn(host['name'], out)

    def test_cloud_file(self):
        many = 20_000
        path = self.write('cloud.yaml', ''.join((
            'hosts:\n', *(
                f'- {{name: h{number}, cores: 4, memory: 8 GiB}}\n'
                for number in range(1000)),
            '- {name: "x{n}", cores: 4, memory: 8 GiB, count: 50000}\n'
            'flavors: {f: {vcpus: 1, memory: 1 GiB}}\n'
            'aggregates:\n', *(
                f'- {{name: a, hosts: x{number + 1}}}\n'
                for number in range(1000)),
            'steps:\n- {boot: s, flavor: f, count: 100000}\n', *(
                f'- {{delete: s-{100_000 - number}}}\n'
                for number in range(1, many)))).encode())
        with self.limited():
            self.assertEqual(many, len(loader.load(path).steps))

    def test_products_in_cloud_file(self):
        """Short steps and patterns that stand for many names."""
        hosts = ('hosts:\n- {name: "h{n}", cores: 4, memory: 8 GiB, '
                 'count: 50000}\nflavors: {f: {vcpus: 1, memory: 1 GiB}}\n')
        boots = ''.join(f'- {{boot: s{number}, flavor: f, count: 100000}}\n'
                        for number in range(3000))
        for text, message in (
                (f'steps:\n{boots}', 'steps[1].count: has more than '
                 '131072 servers in all steps; --max-file-size raises'),
                ('steps:\n' + "- {host_down: 'h*'}\n" * 3000,
                 'steps[20].host_down: has more than 1048576 names to '
                 'compare with patterns; --max-file-size raises'),
                ('aggregates:\n' + "- {name: a, hosts: 'h*'}\n" * 3000
                 + 'steps: []\n', 'aggregates[20].hosts: has more than '
                 '1048576 names to compare with patterns')):
            path = self.write('cloud.yaml', f'{hosts}{text}'.encode())
            with self.limited(), files.limited(16):
                error = self.assertRaises(
                    problems.InputError, loader.load, path)
            problem, = error.problems
            self.assertIn(message, problem)

    def test_plan(self):
        plan = migrating_nova.document('a live two')
        server, = plan['servers']
        ids = list(map(_id, range(30_000)))
        plan['servers'] = [
            {**server, 'move': number, 'server_id': each,
             'related': ids[number - 2:number]}
            for number, each in enumerate(ids, 1)]
        path = self.packed('plan.json', plan)
        with self.limited():
            self.assertEqual(
                len(ids), len(plan_file.read(path).plan.moves))

    def profile(self):
        return {'schema': documents.VERSION, **documents.builtins_of(
            machines.derive(machines.machine(cores=4), shared=True))}

    def test_profile(self):
        profile = self.profile()
        count, per_node = 16_000, 4
        cpus = list(range(count * per_node))
        nodes = range(count)
        node = profile['numa_nodes'][0]
        profile['numa_nodes'] = [
            {**node, 'node': number, 'cores': [
                [2 * core, 2 * core + 1] for core in range(
                    number * per_node // 2, (number + 1) * per_node // 2)]}
            for number in nodes]
        profile['nova'] = {
            **profile['nova'], 'cpu_shared_set': cpus[::2],
            'cpu_dedicated_set': cpus[1::2], 'physnets': {
                f'p{number}': list(nodes) for number in range(10)},
            'reserved_huge_pages': [
                {'node': number, 'size_kib': 2048, 'count': 1}
                for number in nodes]}
        path = self.packed('profile.json', profile)
        with self.limited():
            host = reported.added_to(test_bad_snapshots.CLOUD, path)
        self.assertEqual(count, len(host.nodes))
        self.assertEqual(len(cpus), host.vcpus)

    def test_wrong_items(self):
        """Of many wrong items, one is named."""
        path = self.write(
            'cloud.yaml', b'hosts: [%s]\n' % b','.join([b'1'] * 60_000))
        with self.limited():
            error = self.assertRaises(
                problems.InputError, loader.load, path)
        self.assertIn(f'{path}:1: hosts[0]: must be an object, not 1',
                      error.problems)

        start = self.good('cloud.json')
        plan, profile = migrating_nova.document('a live two'), self.profile()
        server, node = plan['servers'][0], profile['numa_nodes'][0]
        for document, field, value, message in (
                (plan, 'servers', 'X', 'servers[0]: must be an object'),
                (plan, 'servers', [{**server, 'related': 'X'}],
                 'servers[0].related[0]: must be text'),
                (plan, 'failed', 'X', 'failed[0]: must be text'),
                (profile, 'numa_nodes', 'X',
                 'numa_nodes[0]: must be an object'),
                (profile, 'numa_nodes', [{**node, 'cores': 'X'}],
                 'numa_nodes[0].cores[0]: must be a list')):
            path = self.packed('changed.json', {**document, field: value},
                               X=','.join(['1'] * _MANY))
            self.refuse(path, f'{message}, not 1', *(
                ('plan', 'run', path, '--dry-run') if document is plan else
                ('host', 'list', '--add-hosts', f'2:{path}', '--from',
                 start)))

    def test_journal(self):
        many = 40_000
        self.write('refusals-20260102T030405Z-1-0123abcd.jsonl',
                   test_entry.line(entry.Refusal(time='', server=_id(1))) *
                   many)
        with self.limited():
            content = reading.read(self.folder)
        self.assertEqual((many, ()),
                         (len(content.refusals), content.unread))

    def test_plan_journal(self):
        many = 40_000
        record = {'plan': 'x', 'time': '2026-01-02T03:04:05+00:00',
                  'state': 'done', 'migration': None, 'text': None}
        path = self.write('plan.journal', b''.join(
            json.dumps({**record, 'move': number, 'id': _id(
                number)}).encode() + b'\n' for number in range(1, many + 1)))
        os.chmod(path, 0o600)
        with self.limited(), contextlib.closing(
                runner.MoveJournal(path, 'x', write=False)) as read:
            self.assertEqual(many, len(read.last))

    def test_facts(self):
        """As many CPUs as a host can have, and more."""
        cpus = [{'cpu': number, 'node': number % 64, 'socket': 0,
                 'core': number % 32768, 'online': True}
                for number in range(1 << 16)]
        path = self.packed('facts', {'cpus': cpus})
        with self.limited():
            machine = machine_files.machine([path], memory=[1024] * 64)
        self.assertEqual(64, len(machine.nodes))
        lines = ''.join(f'{number},0,0,{number},Y\n'
                        for number in range(200_000))
        path = self.write('lscpu', gzip.compress(
            f'# CPU,Node,Socket,Core,Online\n{lines}'.encode(), 1))
        code, _out, err = self.check(
            'host', 'profile', '--facts', path, '--node-memory', '64',
            seconds=_SECONDS)
        self.assertEqual((1, 'error: CPU 65536 is out of range\n'),
                         (code, err))

    def test_capabilities(self):
        """Many CPUs, elements within elements, and entities that grow."""
        most = files.max_yaml_items()
        cpus = ''.join(
            f'<cpu id="{number}" socket_id="0" siblings="{number}"/>'
            for number in range(1 << 16))
        text = ('<capabilities><host><topology><cells><cell id="0"><memory>'
                f'99999999</memory><cpus>{cpus}</cpus></cell></cells>'
                '</topology></host></capabilities>')
        path = self.write('facts', gzip.compress(text.encode(), 1))
        with self.limited():
            machine = machine_files.machine([path])
        self.assertEqual(1 << 16, len(machine.cpus))
        for text, message in (
            ('<a>' * most, 'is not XML: no element found: line 1, column '
                           f'{3 * most}'),
            ('<a/>' * (most + 1), f'has more than {most} items; '
             '--max-file-size raises the limit, now 128 MiB'),
            ('<!DOCTYPE a [<!ENTITY a0 "aaaaaaaa">' + ''.join(
                f'<!ENTITY a{number} "{f"&a{number - 1};" * 9}">'
                for number in range(1, 20)) + ']><a>&a19;</a>',
             'has a document type, which virsh does not print'),
        ):
            path = self.write('facts', gzip.compress(text.encode(), 1))
            self.refuse(path, message, 'host', 'profile', '--facts', path)
        # What lscpu leaves out in JSON.
        path = self.write('facts', gzip.compress(
            b'{"cpus": [' + b'{"a": -' * 100_000 + b' ' * 1_000_000, 1))
        with self.limited():
            self.assertRaises(machine_values.MachineError,
                              machine_files.machine, [path])
