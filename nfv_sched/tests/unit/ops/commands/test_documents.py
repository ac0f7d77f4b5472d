# SPDX-License-Identifier: Apache-2.0
"""What commands print as JSON and YAML, against the documented schemas."""

import functools
import hashlib
import json
import pathlib

import fixtures
import jsonschema
import yaml

from nfv_sched.journal import entry
from nfv_sched.ops.cli import base as cli_base
from nfv_sched.ops.cli import documents
from nfv_sched.ops.cloud.cloud_file import examples
from nfv_sched.ops.cloud import file
from nfv_sched.tests.unit.journal import test_entry
from nfv_sched.tests.unit.ops.answers.audit import clouds
from nfv_sched.tests.unit.ops.answers.audit import faults
from nfv_sched.tests.unit.ops.answers.machine import trees
from nfv_sched.tests.unit.ops.commands import base
from nfv_sched.tests.unit.ops import small_clouds

#: What "tools/json-schemas --hashes" prints: no schema changes unnoticed.
HASHES = pathlib.Path(__file__).with_name('schema_hashes.txt')


@functools.cache
def schemas():
    return cli_base.json_schemas()


class DocumentsTest(base.CommandTestCase):

    def setUp(self):
        super().setUp()
        self.folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)

    def saved(self, cloud):
        path = self.folder / 'cloud.json.gz'
        file.save(cloud, str(path))
        return str(path)

    def example(self, name):
        return str(examples.find()[name])

    def document(self, schema, *args, codes=(0, 3)):
        """Run a command; return its document, which its schema allows."""
        code, out, err = self.run_command(*args, '-f', 'json')
        self.assertIn(code, codes, err)
        document = json.loads(out)
        jsonschema.Draft202012Validator(schemas()[schema]).validate(document)
        _code, out, _err = self.run_command(*args, '-f', 'yaml')
        self.assertEqual(document.keys(), yaml.safe_load(out).keys())
        code, out, _err = self.run_command(*args, '-f', 'csv')
        if code in codes:  # a simulation has several tables
            self.csv_rows(out)
        return document

    def test_schemas(self):
        lines = []
        for name, schema in schemas().items():
            jsonschema.Draft202012Validator.check_schema(schema)
            text = documents.dumps(schema, 'json')
            lines.append(
                f'{hashlib.sha256(text.encode()).hexdigest()} {name}.json\n')
        self.assertEqual(
            HASHES.read_text(), ''.join(lines),
            'if schemas are to change: tools/regenerate schemas')

    def test_columns(self):
        """--column chooses keys of rows, and keeps the rest."""
        path = self.saved(broken('reserve'))
        for column in ('server_id', 'Server ID'):
            document = json.loads(self.run_command(
                'cloud', 'audit', '--from', path, '-f', 'json', '-c',
                column)[1])
            self.assertEqual((1, 5), (
                document['schema'], document['hosts_checked']))
            self.assertEqual([['server_id']] * 2, [
                list(row) for row in document['findings']])
        code, out, err = self.run_command(
            'cloud', 'audit', '--from', path, '-f', 'json', '-c', 'hots')
        self.assertEqual((2, ''), (code, out))
        self.assertIn('error: no key hots; there are: host, host_id, ', err)

    def test_audit(self):
        sound = self.document(
            'cloud-audit', 'cloud', 'audit', '--from',
            self.saved(clouds.sound()))
        self.assertEqual((documents.VERSION, []), (
            sound['schema'], sound['findings']))
        for name in sorted(faults.FAULTS):
            found = self.document('cloud-audit', 'cloud', 'audit', '--from',
                                  self.saved(broken(name)))
            self.assertNotEqual([], found['findings'])

    def test_capacity(self):
        fragmented = self.example('fragmented')
        for args in ((), ('--by', 'host', '--empty'),
                     ('--by', 'aggregate', '--survive', '1')):
            document = self.document('capacity-list', 'capacity', 'list',
                                     '--from', fragmented, *args)
        self.assertIn(
            [{'limits': [{'kind': 'cpus_on_nodes', 'name': None,
                          'numa_nodes': 1}],
              'any_one': True, 'servers': 1}],
            [row['lost'] for row in document['capacities']])
        self.assertEqual(1, document['hosts_lost'])
        document = self.document(
            'capacity-list-mix', 'capacity', 'list', '--from', fragmented,
            '--mix', 'fw.2=2,vrouter.6=1', '--empty')
        self.assertEqual((0, [2, 1]), (
            document['fits'], [part['count'] for part in document['mix']]))

    def test_capacity_by_api(self):
        self.api_shows(small_clouds.by_api(clouds.sound()))
        for by in ('cloud', 'aggregate', 'host'):
            document = self.document(
                'capacity-list-api', 'capacity', 'list', '--api', '--by', by)
            self.assertNotEqual([], document['capacities'])

    def test_capacity_of_hosts(self):
        for flavor, fits in (('fw.2', 7), ('vrouter.6', 0)):
            document = self.document(
                'capacity-show', 'capacity', 'show', '--from',
                self.example('fragmented'), flavor, '--next')
            self.assertEqual(fits, sum(
                host['fits'] for host in document['hosts']))
        self.assertEqual({'server_id': True, 'memory_mib': True}, {
            key: bool(host['next'][key]) for host in document['hosts']
            if host['next'] for key in ('server_id', 'memory_mib')})

    def test_explain(self):
        path = self.example('fragmented')
        document = self.document(
            'flavor-explain', 'flavor', 'explain', 'vrouter.6', '--from',
            path)
        self.assertEqual([{'PCPU': 6}], [
            each['need']['resources']
            for each in document['placement']['removed']])
        self.assertEqual([
            [{'MEMORY_MB': 6144}, {'PCPU': 6}],
            [{'MEMORY_MB': 6144}, {'VCPU': 6}]], [
                [need['resources'] for need in query['needs']
                 if need['kind'] == 'resource']
                for query in document['placement']['queries']])
        lack, = document['hosts'][0]['placement_lacks']
        self.assertEqual((4, {'PCPU': 6}), (
            lack['free'], lack['need']['resources']))
        refused = document['hosts'][2]['refusals'][0]
        self.assertEqual(('NUMA topology', None), (
            refused['policy'], refused['policy_value']))
        self.assertIn(4, [each['request']['vcpus']
                          for each in document['changes']])
        for args in (('fw.2',), ('fw.2', '--count', '9'),
                     ('fw.2', '--host', 'compute-1')):
            document = self.document(
                'flavor-explain', 'flavor', 'explain', *args, '--from', path)
        self.assertEqual(['compute-1'], [
            host['host'] for host in document['hosts']])
        self.assertTrue(document['weighing']['weighers'])
        for name in ('a-3', 'router'):
            document = self.document(
                'server-explain', 'server', 'explain', name, '--from', path)
            self.assertEqual(name, document['server'])
        self.api_shows(small_clouds.by_api(clouds.sound()))
        document = self.document(
            'server-explain', 'server', 'explain',
            clouds.sound().servers[0].name, '--api')
        self.assertIsNone(document['filters'])

    def test_journal(self):
        path = self.folder / 'refusals-20260102T030405Z-1-0123abcd.jsonl'
        path.write_bytes(b'')
        args = 'server', 'explain', '--then', '--journal', str(self.folder)
        self.assertEqual([], self.document(
            'server-explain-then', *args)['refusals'])
        uuid = '8b1d6a52-0e0b-4b5a-9a55-2f7a51f0c111'
        path.write_bytes(test_entry.line(test_entry.refusal(server=uuid)) +
                         test_entry.line(entry.Lost(time='t', count=3)))
        self.assertEqual(0, self.document(
            'server-explain-shadow', *args, '--shadow')['servers'])
        document = self.document('server-explain-then', *args)
        self.assertEqual(3, document['not_written'])
        self.assertEqual(document, self.document(
            'server-explain-then', *args, uuid))
        reason = document['refusals'][0]['reasons'][0]
        self.assertEqual(('nfv:key', 'strict', '2 CPUs needed', '1 free'), (
            reason['policy'], reason['policy_value'], reason['needed'],
            reason['available']))

    def test_defrag(self):
        for args in ((), ('--count', '2'), ('--avoid', '[abc]-*')):
            document = self.document(
                'cloud-defrag', 'cloud', 'defrag', '--from',
                self.example('fragmented'), '--flavor', 'vrouter.6', *args)
            for move in document['moves']:
                self.assertTrue(move['server_id'] and move['destination_id'])
                self.assertTrue(move['flavor_id'] and move['source_id'])
        self.assertEqual({('avoided', None)}, {
            (each['obstacle']['kind'], each['obstacle']['name'])
            for each in document['not_movable']})

    def test_drain(self):
        for host in ('compute-1', 'compute-3'):
            args = 'host', 'drain', host, '--from', self.example('fragmented')
            document = self.document('host-drain', *args)
            rows = self.csv_rows(self.run_command(*args, '-f', 'csv')[1])
            self.assertEqual(
                [(each['server_id'], each['source'], each['destination'])
                 for each in document['servers']],
                [(row['Server ID'], row['From'], row['To']) for row in rows])
            for each in document['servers']:
                self.assertEqual(document['host_id'], each['source_id'])
                self.assertTrue(each['flavor_id'])
                for lack in each['lacks']:
                    self.assertTrue(lack['nearest_id'])

    def test_drain_hosts(self):
        args = 'host', 'drain', '*', '--from', self.example('fragmented')
        document = self.document('host-drain-rolling', *args)
        rows = self.csv_rows(self.run_command(*args, '-f', 'csv')[1])
        self.assertEqual(
            [(each['round'], host['host'], server['move'],
              server['server_id'], server['destination'])
             for each in document['rounds'] for host in each['hosts']
             for server in host['servers']],
            [tuple(row[key] for key in (
                'Round', 'Host', 'Move', 'Server ID', 'To')) for row in rows])

    def test_failover(self):
        for args in ((), ('--together', '--host', 'compute-[12]')):
            document = self.document(
                'cloud-failover', 'cloud', 'failover', '--from',
                self.example('fragmented'), *args)
        stranded = document['hosts'][0]['stranded'][0]
        self.assertEqual('guests', stranded['lacks'][0]['kind'])
        self.assertTrue(stranded['flavor_id'])
        self.assertTrue(stranded['lacks'][0]['nearest_id'])

    def test_flavors(self):
        path = self.folder / 'flavors.json'
        path.write_text(json.dumps({'f': {
            'vcpus': 2, 'ram': 1024, 'properties': {
                'hw:cpu_polcy': 'dedicated', 'hw:wrs:shared_vcpu': '2'}},
            'fine': {'vcpus': 2, 'ram': 1024}}))
        for args, flavors in (((), 2), (('fine',), 1)):
            document = self.document(
                'flavor-lint', 'flavor', 'lint', '--file', str(path), *args)
            self.assertEqual(flavors, document['flavors_checked'])
            document = self.document(
                'flavor-translate', 'flavor', 'translate', '--file',
                str(path), *args, '--image-property', 'hw_cpu_policy=x')
            self.assertEqual(
                [None, 'IMAGE'],
                [each['image_id'] for each in document['translations']][-2:])
        self.document('flavor-lint', 'flavor', 'lint', '--all', '--hosts',
                      '--from', self.example('carrier-grade'))

    def test_rebalance(self):
        for name in ('network-nodes', 'network-nodes-ovn'):
            for args in ((), ('--ports', '--threshold', '1')):
                document = self.document(
                    'agent-rebalance', 'agent', 'rebalance', '--from',
                    self.example(name), *args)
                self.assertTrue(document['plans'][0]['agents'])

    def test_profile(self):
        root = self.folder / 'sys'
        trees.machine(str(root), {node: (128 * 1024, [
            (cpu, cpu + 16) for cpu in range(8 * node, 8 * node + 8)])
            for node in range(2)})
        args = 'host', 'profile', '--sys', str(root)
        for more in ((), ('--shared', '--osds', '2'), (
                '--layout', 'floating', '--guest-gb', '4')):
            document = self.document('host-profile', *args, *more)
        self.assertIsNotNone(document['servers_by_memory'])
        path = self.folder / 'nova.conf'
        for option in ('', '[compute]\ncpu_shared_set = 1\n'):
            path.write_text(option)
            document = self.document('host-profile-check', *args, '--check',
                                     str(path))
        self.assertIn(('compute', 'cpu_shared_set', '1', None, None), [
            tuple(each.values()) for each in document['differences']])

    def test_simulation(self):
        for name in ('two-hosts', 'router-guest', 'ports-fill-up',
                     'all-policies'):
            document = self.document(
                'simulation-run', 'simulation', 'run', self.example(name),
                '--show', 'all')
        self.assertTrue(document['steps'] and document['hosts'])
        files = self.example('two-hosts'), self.example('router-guest')
        document = self.document(
            'simulation-run-files', 'simulation', 'run', *files)
        self.assertEqual(list(files), [
            each['file'] for each in document['files']])
        self.document('simulation-run-examples', 'simulation', 'run',
                      '--list-examples')

    def test_hosts(self):
        """Of clouds with and without NUMA nodes, networks and devices."""
        for path in (self.saved(clouds.sound()), self.example('all-policies'),
                     self.example('ports-fill-up')):
            document = self.document('host-list', 'host', 'list', '--from',
                                     path)
            for name in {row['host'] for row in document['numa_nodes']}:
                host = self.document('host-show', 'host', 'show', name,
                                     '--from', path)
                self.assertEqual(host['pcpus_used'], sum(
                    node['pcpus_used'] for node in host['numa_nodes']))
        document = json.loads(self.run_command(
            'host', 'show', name, '--from', path, '-f', 'json', '-c',
            'pcpus')[1])
        self.assertEqual(['schema', 'pcpus'], list(document))


def broken(name):
    """Return the sound cloud with a fault."""
    fault = faults.FAULTS[name]
    cloud = clouds.sound()
    return fault.plant(list(fault.spots(cloud))[-1])
