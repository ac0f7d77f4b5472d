# SPDX-License-Identifier: Apache-2.0
"""The old command ``nfv-sched metadefs save``."""

import json
import os

import fixtures

from nfv_sched.ops.metadefs import metadefs
from nfv_sched.tests.unit.ops.commands import base


class SaveTest(base.CommandTestCase):

    def setUp(self):
        super().setUp()
        self.directory = os.path.join(
            self.useFixture(fixtures.TempDir()).path, 'new', 'metadefs')

    def saved(self):
        """File name -> text."""
        found = {}
        for name in os.listdir(self.directory):
            with open(os.path.join(self.directory, name)) as file:
                found[name] = file.read()
        return found

    def test_save(self):
        for _ in range(2):
            code, out, err = self.run_command(
                'metadefs', 'save', self.directory)
            self.assertEqual(
                (0, 'warning: "metadefs save" will be removed in the next '
                    'release; use the files in etc/nfv_sched/metadefs\n'),
                (code, err))
            self.assertEqual(
                [f'{self.directory}/{each.file}: {each.name}, '
                 f'{len(each.properties)} properties'
                 for each in metadefs.namespaces()], out.splitlines())
            self.assertEqual(
                {each.file: each.text() for each in metadefs.namespaces()},
                self.saved())

    def test_places(self):
        """Besides those that are there anyway, once each."""
        code, _out, _err = self.run_command(
            'metadefs', 'save', self.directory, '--place', 'osd',
            '--place', 'vswitch', '--place', 'NVMe_0')
        self.assertEqual(0, code)
        properties = json.loads(
            self.saved()['nfv-placement.json'])['properties']
        self.assertEqual(
            [f'numa_affinity.{place}' for place in (
                'vswitch', 'osd', 'NVMe_0')],
            [name for name in properties if name.startswith('numa_affinity')])
        self.assertIn('label nfv_NVMe_0.',
                      properties['numa_affinity.NVMe_0']['description'])

    def test_bad_places(self):
        for place in ('', 'a.b', 'x' * 65, 'a b'):
            code, _out, err = self.run_command(
                'metadefs', 'save', self.directory, '--place', place)
            self.assertEqual(2, code)
            self.assertIn('is not a name of a place', err)
        self.assertFalse(os.path.exists(self.directory))

    def test_cannot_be_written(self):
        os.makedirs(os.path.join(self.directory, 'nfv-guest.json'))
        code, _out, err = self.run_command(
            'metadefs', 'save', self.directory)
        self.assertEqual(1, code)
        self.assertIn('error: ', err)
        self.assertIn('nfv-guest.json', err)
