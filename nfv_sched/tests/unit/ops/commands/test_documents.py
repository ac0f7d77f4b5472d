# SPDX-License-Identifier: Apache-2.0
"""What commands print as JSON and YAML, against the documented schemas."""

import csv
import io
import json
import pathlib

import fixtures
import jsonschema
import yaml

from nfv_sched.ops.cli import base as cli_base
from nfv_sched.ops.cli import documents
from nfv_sched.ops.cloud_file import examples
from nfv_sched.ops.snapshot import file
from nfv_sched.tests.unit.ops.audit import clouds
from nfv_sched.tests.unit.ops.audit import faults
from nfv_sched.tests.unit.ops.commands import base

FOLDER = pathlib.Path(__file__).parents[5] / 'doc/source/schemas'


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
        jsonschema.Draft202012Validator(json.loads(
            (FOLDER / f'{schema}.json').read_text())).validate(document)
        _code, out, _err = self.run_command(*args, '-f', 'yaml')
        self.assertEqual(document.keys(), yaml.safe_load(out).keys())
        return document

    def rows(self, *args):
        """Run a command; return the rows that it prints as CSV."""
        _code, out, _err = self.run_command(*args, '-f', 'csv')
        rows = list(csv.DictReader(io.StringIO(out, newline='')))
        self.assertEqual(len(rows), len(out.splitlines()) - 1)
        return rows

    def test_files(self):
        """Files are what tools/json-schemas writes."""
        schemas = cli_base.json_schemas()
        self.assertEqual(schemas, {
            path.stem: json.loads(path.read_text())
            for path in FOLDER.glob('*.json')})
        for schema in schemas.values():
            jsonschema.Draft202012Validator.check_schema(schema)

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


def broken(name):
    """Return the sound cloud with a fault."""
    fault = faults.FAULTS[name]
    cloud = clouds.sound()
    return fault.plant(list(fault.spots(cloud))[-1])
