# SPDX-License-Identifier: Apache-2.0
"""``nfv-sched-status upgrade check`` with the schedulers' configuration."""

import json
import pathlib
import subprocess
import sys
import uuid

import fixtures
from oslo_upgradecheck import upgradecheck

from nfv_sched.tests.live import base
from nfv_sched.tests.live.bed import configuration


class StatusTest(base.LiveTestCase):

    def check(self, code: upgradecheck.Code,
              *override: str) -> dict[str, dict]:
        """Run all checks, with more configuration files, which count more."""
        conf = (self.bed.layout.etc / 'nova' /
                f'{configuration.SCHEDULERS[0]}.conf')
        done = subprocess.run(
            [sys.executable, '-W', 'ignore', '-m', 'nfv_sched.cmd.status',
             *(f'--config-file={path}' for path in (conf, *override)),
             'upgrade', 'check', '--json'],
            env=self.bed.layout.environment(), text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(code, done.returncode, done.stdout + done.stderr)
        checks = json.loads(done.stdout)['checks']
        return {check['check']: check for check in checks}

    def test_sound(self):
        checks = self.check(upgradecheck.Code.SUCCESS)
        self.assertEqual({upgradecheck.Code.SUCCESS},
                         {check['result'] for check in checks.values()})

    def test_role_service(self):
        """To that role Neutron shows ports, but not the rules of others."""
        keystone = self.admin.identity
        password = uuid.uuid4().hex
        user = keystone.create_user(
            name=self.name(), password=password, domain_id='default')
        self.addCleanup(keystone.delete_user, user)
        keystone.assign_project_role_to_user(
            keystone.find_project('service'), user,
            keystone.find_role('service'))
        self.boot(self.flavor(), networks=self.networks())
        directory = self.useFixture(fixtures.TempDir()).path
        override = pathlib.Path(directory, 'neutron.conf')
        override.write_text(
            f'[neutron]\nusername = {user.name}\npassword = {password}\n')
        checks = self.check(upgradecheck.Code.FAILURE, str(override))
        self.assertEqual(upgradecheck.Code.FAILURE,
                         checks['Neutron']['result'])
        self.assertIn('needs the role admin', checks['Neutron']['details'])
