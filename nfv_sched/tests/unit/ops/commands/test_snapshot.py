# SPDX-License-Identifier: Apache-2.0
"""The command: its arguments, and what it says."""

import fixtures

from nfv_sched.nova import database
from nfv_sched.ops.cloud import database as snapshot_database
from nfv_sched.ops.cloud import file
from nfv_sched.ops.cloud import snapshot
from nfv_sched.tests import snapshots
from nfv_sched.tests.unit.ops.commands import base

CLOUD = snapshot.Cloud(
    taken='2026-01-02T03:04:05Z',
    hosts=(snapshot.Host(name='one', hypervisor='one', uuid='1' * 32),),
    servers=tuple(snapshot.Server(
        uuid=f'{number:032}', name='vm',
        flavor=snapshot.Flavor(name='f', vcpus=1, memory=64))
        for number in range(2)))


class SaveTest(base.CommandTestCase):

    def setUp(self):
        super().setUp()
        self.configured = self.useFixture(fixtures.MockPatchObject(
            database, 'read_configuration')).mock
        self.read = self.useFixture(fixtures.MockPatchObject(
            snapshot_database, 'read', return_value=CLOUD)).mock
        self.file = self.in_folder('cloud')

    def save(self, *args):
        return self.run_command('snapshot', 'save', *args)

    def test_saved(self):
        self.assertRegex(self.shown(
            'snapshot', 'save', self.file, '--config-file', 'a',
            '--config-file', 'b'),
            rf'^{self.file}: 1 host, 2 servers, 0\.\d kB\n$')
        self.assertEqual(CLOUD, file.load(self.file))
        self.assertEqual(['--config-file=a', '--config-file=b'],
                         self.configured.call_args[0][0])

    def test_missing(self):
        self.read.return_value = snapshot.Cloud(
            taken='', missing=snapshots.missing(
                'Cell 2 does\nnot answer', 'Nor does cell 3'))
        code, out, err = self.save(self.file)
        self.assertEqual(1, code)
        self.assertEqual('error: Cell 2 does not answer\n'
                         'error: Nor does cell 3\n', err)
        self.assertIn('0 hosts', out)

    def test_replaced_texts(self):
        self.read.return_value = snapshot.Cloud(taken='', flavors=(
            snapshot.Flavor(name='f', vcpus=1, memory=1,
                            extra_specs={'acme': 'acme', 'x': 'y'}),))
        code, out, _err = self.save(self.file, '--anonymize')
        self.assertEqual(0, code)
        self.assertIn('1 free text replaced: flavor extra_specs (1)\n', out)
        self.assertNotIn('replaced', self.save(self.file)[1])

    def test_missing_from_an_anonymous_one(self):
        """Who saves it must know the names; who reads it must not."""
        self.read.return_value = snapshot.Cloud(
            taken='', missing=(snapshot.Missing(
                kind=snapshot.MissingKind.SILENT_CELL, cell='acme'),))
        code, _out, err = self.save(self.file, '--anonymize')
        self.assertEqual(
            (1, 'error: Cell acme does not answer in time\n'), (code, err))
        missing, = file.load(self.file).missing
        self.assertEqual((snapshot.MissingKind.SILENT_CELL, 'cell1'),
                         (missing.kind, missing.cell))

    def test_progress(self):
        """Reading says how far it is; a moment is not worth a line."""
        def reading(conf, progress):
            progress('servers', 1, 2)
            return CLOUD

        self.read.side_effect = reading
        self.assertEqual('', self.save(self.file)[2])
        self.useFixture(fixtures.MonkeyPatch(
            'nfv_sched.ops.simulator.progress.DELAY', 0))
        self.assertEqual('1 of 2 servers done\n', self.save(self.file)[2])
