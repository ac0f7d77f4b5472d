# SPDX-License-Identifier: Apache-2.0
"""What the status command makes of the results of its checks."""

import contextlib
import io

import fixtures
import nova.conf
from oslo_upgradecheck import upgradecheck

from nfv_sched.checks import services
from nfv_sched.cmd import status
from nfv_sched.nova import database
from nfv_sched.tests.unit.checks import test_scheduler

CONF = nova.conf.CONF


class ChecksTest(test_scheduler.CheckTestCase):

    def run_checks(self):
        with contextlib.redirect_stdout(io.StringIO()) as output:
            code = status.Checks(CONF).check()
        return code, output.getvalue()

    def test_wrong_value_of_an_option_of_nova(self):
        self.read(
            f'{test_scheduler.AVAILABLE}{test_scheduler.WEIGHERS}'
            'ram_weight_multiplier = abc\n'
            f'enabled_filters = {test_scheduler.STOCK},'
            f'{test_scheduler.PLUGIN}\n')
        code, table = self.run_checks()
        self.assertEqual(upgradecheck.Code.FAILURE, code)
        rows = table.split('| Check: ')
        weighers, = [row for row in rows if row.startswith('Weighers')]
        self.assertIn('Result: Failure', weighers)
        self.assertIn('ram_weight_multiplier', weighers)
        self.assertIn('Correct nova.conf', weighers)
        # The others are there all the same.
        self.assertEqual(14, len(rows))
        self.assertIn('| Check: Ledger ', table)

    def test_unforeseen(self):
        self.read('enabled_filters = ComputeFilter\n')
        self.useFixture(fixtures.MockPatchObject(
            services, 'placement', side_effect=KeyError('odd')))
        code, table = self.run_checks()
        self.assertEqual(upgradecheck.Code.FAILURE, code)
        rows = table.split('| Check: ')
        placement, = [row for row in rows if row.startswith('Placement')]
        self.assertIn("The check itself failed: KeyError: 'odd'", placement)
        self.assertEqual(14, len(rows))

    def test_a_line_for_each_finding(self):
        self.read('enabled_filters = Typo,VSwitchPortLimitFilter\n',
                  '[nfv_sched]\nshadow = SharedVCPUFilter\n')
        code, table = self.run_checks()
        self.assertEqual(upgradecheck.Code.FAILURE, code)
        lines = [line.strip('| ') for line in table.splitlines()]
        filters = lines.index('Check: Filters')
        self.assertEqual('Result: Failure', lines[filters + 1])
        self.assertStartsWith(
            lines[filters + 2], 'Details: enabled_filters has Typo, VSwitch')
        self.assertTrue(any(
            line.startswith('[nfv_sched] shadow') for line in lines), table)

    def assertStartsWith(self, text, start):
        self.assertTrue(text.startswith(start), text)

    def test_bounds(self):
        self.read(options='[nfv_sched]\nneutron_request_timeout = 4\n'
                          '[placement]\ntimeout = 300\n')
        for group, name in (
            ('neutron', 'timeout'), ('placement', 'timeout'),
            ('nfv_sched', 'neutron_request_timeout'),
            ('database', 'max_retries'), ('database', 'retry_interval'),
            ('api_database', 'max_retries'),
            ('api_database', 'retry_interval'),
        ):
            self.addCleanup(CONF.clear_override, name, group)
        status.bound(CONF)
        database.limit_waiting()
        self.assertEqual(
            (10, 10, 4), (CONF.neutron.timeout, CONF.placement.timeout,
                          CONF.nfv_sched.neutron_request_timeout))
        self.assertEqual(1, CONF.database.max_retries)
