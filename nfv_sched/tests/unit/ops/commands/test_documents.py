# SPDX-License-Identifier: Apache-2.0
"""What commands print as JSON and YAML, against the documented schemas."""

import functools
import hashlib
import json
import pathlib
import runpy

import fixtures
import jsonschema
import yaml

from nfv_sched.ops.cloud.cloud_file import examples
from nfv_sched.tests.unit.ops.answers.audit import clouds
from nfv_sched.tests.unit.ops.answers.audit import faults
from nfv_sched.tests.unit.ops.answers.machine import trees
from nfv_sched.tests.unit.ops.commands import base
from nfv_sched.tests.unit.ops.commands import test_golden

#: What "tools/json-schemas --hashes" prints: no schema changes unnoticed.
HASHES = pathlib.Path(__file__).with_name('schema_hashes.txt')


@functools.cache
def schemas():
    return runpy.run_path(str(
        test_golden.ROOT / 'tools' / 'json-schemas'))['of_commands']()


class DocumentsTest(base.CommandTestCase):

    def setUp(self):
        super().setUp()
        self.folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)

    def example(self, name):
        return str(examples.find()[name])

    def validate(self, schema, document):
        jsonschema.Draft202012Validator(schemas()[schema]).validate(document)

    def document(self, schema, *args, codes=(0, 3)):
        code, out, err = self.run_command(*args, '-f', 'json')
        self.assertIn(code, codes, err)
        document = json.loads(out)
        self.validate(schema, document)
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
            text = json.dumps(schema, sort_keys=True)
            lines.append(
                f'{hashlib.sha256(text.encode()).hexdigest()} {name}.json\n')
        self.assertEqual(
            HASHES.read_text(), ''.join(lines),
            'if schemas are to change: tools/regenerate schemas')

    def test_columns(self):
        """--column chooses keys of rows, and keeps the rest."""
        path = self.save_cloud(broken('reserve'))
        for column in ('server_id', 'Server ID'):
            document = json.loads(self.run_command(
                'cloud', 'audit', '--from', path, '-f', 'json', '-c',
                column)[1])
            self.assertEqual((1, 5), (
                document['schema'], document['hosts_checked']))
            self.assertEqual([['server_id']] * 2, [
                list(row) for row in document['findings']])
        self.refused(
            'error: no key hots; there are: host, host_id, ', 'cloud',
            'audit', '--from', path, '-f', 'json', '-c', 'hots')

    def test_golden(self):
        kept = set()
        for path in sorted(test_golden.FOLDER.glob('*.json.txt')):
            for text in path.read_text().split('$ ')[1:]:
                command, _end, text = text.partition('\n')
                words = command.split()
                if '{' not in text:
                    continue
                document, _end = json.JSONDecoder().raw_decode(
                    text.replace('"seconds": N', '"seconds": {}'
                                 if 'explain' in words else '"seconds": 0'))
                name = '-'.join(words[:2])
                if 'rounds' in document:
                    name += '-rolling'
                for word in 'mix', 'shadow', 'then':
                    if f'--{word}' in words:
                        name += f'-{word}'
                        break
                self.validate(name, document)
                kept.add(name)
        self.assertEqual(schemas().keys() - {
            'host-profile-check', 'simulation-run-examples',
            'simulation-run-files', 'simulation-run-sequence'}, kept)

    def test_audit(self):
        for name in sorted(faults.FAULTS):
            found = self.document('cloud-audit', 'cloud', 'audit', '--from',
                                  self.save_cloud(broken(name)))
            self.assertNotEqual([], found['findings'])

    def test_journal(self):
        (self.folder / 'refusals-20260102T030405Z-1-0123abcd.jsonl').touch()
        args = 'server', 'explain', '--then', '--journal', str(self.folder)
        self.assertEqual([], self.document(
            'server-explain-then', *args)['refusals'])
        self.assertEqual(0, self.document(
            'server-explain-shadow', *args, '--shadow')['servers'])

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

    def test_translate_image(self):
        path = self.folder / 'flavors.json'
        path.write_text(json.dumps({'fine': {'vcpus': 2, 'ram': 1024}}))
        document = self.document(
            'flavor-translate', 'flavor', 'translate', '--file', str(path),
            '--image-property', 'hw_cpu_policy=x')
        self.assertEqual([None, 'IMAGE'], [
            each['image_id'] for each in document['translations']])

    def test_profile(self):
        root = self.folder / 'sys'
        trees.machine(str(root), {node: (128 * 1024, [
            (cpu, cpu + 16) for cpu in range(8 * node, 8 * node + 8)])
            for node in range(2)})
        args = 'host', 'profile', '--sys', str(root)
        for more in (('--shared', '--osds', '2'), (
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
        files = self.example('two-hosts'), self.example('router-guest')
        document = self.document(
            'simulation-run-files', 'simulation', 'run', *files)
        self.assertEqual(list(files), [
            each['file'] for each in document['files']])
        self.document('simulation-run-examples', 'simulation', 'run',
                      '--list-examples')
        path = self.folder / 'rows'
        path.write_text('arrival,vcpus,memory\n0,2,9')
        self.document('simulation-run-sequence', 'simulation', 'run',
                      files[0], '--sequence', str(path), '--show', 'requests')

    def test_column_of_a_host(self):
        document = json.loads(self.run_command(
            'host', 'show', 'east', '--from', 'two-hosts', '-f', 'json', '-c',
            'pcpus')[1])
        self.assertEqual(['schema', 'pcpus'], list(document))


def broken(name):
    fault = faults.FAULTS[name]
    cloud = clouds.sound()
    return fault.plant(list(fault.spots(cloud))[-1])
