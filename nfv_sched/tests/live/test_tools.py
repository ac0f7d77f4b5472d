# SPDX-License-Identifier: Apache-2.0
"""The commands that look at a cloud, on one of real processes.

They read it by an account of the databases that may do no more than SELECT.
"""

import json
import pathlib
import subprocess
import sys
import uuid

import fixtures

from nfv_sched.tests.live import base
from nfv_sched.tests.live.bed import configuration
from nfv_sched.tests.live.bed import database

_COMMAND = 300  # seconds
_CONFIRM = '20'  # seconds; hosts report every 15


class ToolsTestCase(base.LiveTestCase):

    def setUp(self):
        super().setUp()
        self.directory = pathlib.Path(
            self.useFixture(fixtures.TempDir()).path)
        layout = self.bed.layout
        override = self.directory / 'reader.conf'
        override.write_text(
            '[api_database]\n'
            f'connection = {database.reader_url(layout, "nova_api")}\n'
            '[nfv_sched]\n'
            f'cell_database_user = {database.READER}\n'
            f'cell_database_password = {layout.password}\n')
        scheduler = layout.etc / 'nova' / f'{configuration.SCHEDULERS[0]}.conf'
        self.configured = [f'--config-file={path}'
                           for path in (scheduler, override)]

    def command(self, *args):
        return [sys.executable, '-m', 'nfv_sched.ops.cli.base', *args,
                *self.configured]

    def run_command(self, *args, codes=(0,)):
        done = subprocess.run(
            self.command(*args), env=self.bed.layout.environment(), text=True,
            timeout=_COMMAND, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertIn(done.returncode, codes, done.stdout + done.stderr)
        self.assertNotIn('Warning', done.stderr)
        return done.stdout

    def carry_out(self, *args):
        """Plan, and carry that out with the account of an administrator."""
        done = subprocess.run(
            self.command(*args, '--save', str(
                self.directory / f'{uuid.uuid4()}.json'), '--run', '--yes'),
            env=self.bed.layout.account(), timeout=_COMMAND, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.assertEqual(0, done.returncode, done.stdout)

    def document(self, *args, **kwargs):
        return json.loads(self.run_command(*args, '-f', 'json', **kwargs))


class CloudTest(ToolsTestCase):

    def assert_sound(self):
        """What both readings of the cloud find: nothing."""
        self.assertEqual([], self.document(
            'cloud', 'audit', '--confirm', _CONFIRM, codes=(0, 3))['findings'])

    def test_audit_while_servers_move(self):
        """At rest nothing is found, and nothing that is false meanwhile."""
        servers = [
            self.boot(self.flavor(2, **specs), host=base.LEFT, **more)
            for specs, more in (
                (base.STRICT, {'networks': self.networks(2)}),
                (base.pinned(**{'pci_passthrough:alias': 'vf:1',
                                base.PCI: 'strict'}), {}),
                (base.pinned(**{'hw:mem_page_size': '2MB'}), {}))]
        self.assert_sound()
        first, _second, last = servers
        self.live_migrate(last, base.BOTH)
        self.assert_sound()
        self.admin.compute.migrate_server(first)
        self.wait_for(first, 'VERIFY_RESIZE')
        self.assert_sound()
        self.admin.compute.confirm_server_resize(first)
        self.wait_for(first, 'ACTIVE')
        self.assert_sound()
        self.delete(first)
        self.assert_sound()
