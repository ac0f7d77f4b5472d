# SPDX-License-Identifier: Apache-2.0
"""The checks of compute nodes, as far as they need no database."""

import nova.conf
from oslo_upgradecheck import upgradecheck

from nfv_sched.checks import computes
from nfv_sched.tests import base
from nfv_sched.tests.unit import test_example_rule

CONF = nova.conf.CONF


class NoComputes(computes.Computes):
    def nodes(self, what):
        return []

    def unread(self):
        return []


class LabelsTest(base.TestCase):

    def assertNeeded(self, needed, *enabled):
        self.flags(enabled_filters=['ComputeFilter', *enabled],
                   group='filter_scheduler')
        result = computes.labels(CONF, NoComputes())
        if needed:
            self.assertEqual(upgradecheck.Code.WARNING, result.code, enabled)
            self.assertIn('no compute nodes yet', result.details)
        else:
            self.assertEqual(upgradecheck.Code.SUCCESS, result.code, enabled)
            self.assertIn('Not needed', result.details)

    def test_each_filter_that_steers_guests(self):
        for name in ('NFVTopologyFilter', 'VSwitchNUMAAffinityFilter',
                     'PCINUMAAffinityFilter', 'PlaceNUMAAffinityFilter',
                     'SharedVCPUFilter'):
            self.assertNeeded(True, name)

    def test_other_filters(self):
        """They look at whole hosts."""
        self.assertNeeded(False)
        self.assertNeeded(False, 'NUMATopologyFilter', 'CPUThreadPolicyFilter',
                          'VSwitchPortLimitFilter', 'SecurityRuleLimitFilter')

    def test_rule_of_another_package(self):
        self.assertNeeded(False, test_example_rule.EVEN)
        self.useFixture(test_example_rule.Installed())
        self.assertNeeded(True, test_example_rule.EVEN)
