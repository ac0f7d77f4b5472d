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
        """Run all checks.

        :param code: what the command has to exit with
        :param override: more configuration files, which count more
        :returns: results by name
        """
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
        self.assertEqual(12, len(checks))
        self.assertEqual({upgradecheck.Code.SUCCESS},
                         {check['result'] for check in checks.values()})

    def test_neutron_is_down(self):
        neutron = self.bed.services['neutron']
        self.addCleanup(neutron.run)
        neutron.stop()
        checks = self.check(upgradecheck.Code.FAILURE)
        self.assertEqual(
            ['Neutron'], [name for name, check in checks.items()
                          if check['result'] == upgradecheck.Code.FAILURE])

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

    def test_ledger_is_incomplete(self):
        """A compute node is not in the ledger: nothing keeps its limits."""
        ledger = self.bed.services['nfv-sched-ledger']
        self.addCleanup(ledger.run)
        ledger.stop()
        provider = self.ledgers()[base.QUAD]
        answer = self.admin.placement.delete(
            f'/resource_providers/{provider}',
            microversion=base.PLACEMENT_MICROVERSION)
        self.assertEqual(204, answer.status_code, answer.text)
        checks = self.check(upgradecheck.Code.WARNING)
        warnings = [check for check in checks.values()
                    if check['result'] == upgradecheck.Code.WARNING]
        self.assertEqual(1, len(warnings), checks)
        self.assertIn(base.QUAD, warnings[0]['details'])
        # The ledger's next round makes it again.
        ledger.run()
        self.wait_until(lambda: base.QUAD in self.ledgers(), 60,
                        f'{base.QUAD} is in the ledger again')
