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
        """Run all, of which one fails; returns the table and its rows."""
        with contextlib.redirect_stdout(io.StringIO()) as output:
            code = status.Checks(CONF).check()
        self.assertEqual(upgradecheck.Code.FAILURE, code)
        table = output.getvalue()
        rows = table.split('| Check: ')
        self.assertEqual(14, len(rows))
        return table, {row.partition(' ')[0]: row for row in rows}

    def test_wrong_value_of_an_option_of_nova(self):
        self.read(
            f'{test_scheduler.AVAILABLE}{test_scheduler.WEIGHERS}'
            'ram_weight_multiplier = abc\n'
            f'enabled_filters = {test_scheduler.STOCK},'
            f'{test_scheduler.PLUGIN}\n')
        _table, rows = self.run_checks()
        for text in ('Result: Failure', 'ram_weight_multiplier',
                     'Correct nova.conf'):
            self.assertIn(text, rows['Weighers'])
        self.assertIn('Ledger', rows)

    def test_unforeseen(self):
        self.read('enabled_filters = ComputeFilter\n')
        self.useFixture(fixtures.MockPatchObject(
            services, 'placement', side_effect=KeyError('odd')))
        _table, rows = self.run_checks()
        self.assertIn("The check itself failed: KeyError: 'odd'",
                      rows['Placement'])

    def test_a_line_for_each_finding(self):
        self.read('enabled_filters = Typo,VSwitchPortLimitFilter\n',
                  '[nfv_sched]\nshadow = SharedVCPUFilter\n')
        table, _rows = self.run_checks()
        lines = [line.strip('| ') for line in table.splitlines()]
        filters = lines.index('Check: Filters')
        self.assertEqual('Result: Failure', lines[filters + 1])
        self.assertRegex(
            lines[filters + 2], '^Details: enabled_filters has Typo, VSwitch')
        self.assertTrue(any(
            line.startswith('[nfv_sched] shadow') for line in lines), table)

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
