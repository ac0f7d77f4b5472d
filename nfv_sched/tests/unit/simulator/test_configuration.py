#    Licensed under the Apache License, Version 2.0 (the "License"); you may
#    not use this file except in compliance with the License. You may obtain
#    a copy of the License at
#
#         http://www.apache.org/licenses/LICENSE-2.0
#
#    Unless required by applicable law or agreed to in writing, software
#    distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
#    WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
#    License for the specific language governing permissions and limitations
#    under the License.

import dataclasses

from nfv_sched.simulator.cloud_file import problems
from nfv_sched.simulator import configuration
from nfv_sched.simulator import layout
from nfv_sched.tests import base
from nfv_sched.tests import snapshots
from nfv_sched.tests.unit import test_example_rule

DOCUMENTED = [
    'NFVTopologyFilter', 'VSwitchNUMAAffinityFilter', 'PCINUMAAffinityFilter',
    'PlaceNUMAAffinityFilter', 'SharedVCPUFilter', 'CPUThreadPolicyFilter']
LIMITS = ['VSwitchPortLimitFilter', 'SecurityRuleLimitFilter']


class OurFiltersTest(base.TestCase):

    def test_as_documented(self):
        self.assertEqual(DOCUMENTED + LIMITS, configuration.our_filters())

    def test_filters_without_rules(self):
        """In the order of their names, wherever they come from."""
        nova = 'nova.scheduler.filters'
        self.useFixture(test_example_rule.Installed({'nfv_sched.filters': {
            'one': f'{nova}.num_instances_filter:NumInstancesFilter',
            'two': f'{nova}.all_hosts_filter:AllHostsFilter'}}))
        self.assertEqual(
            [*DOCUMENTED, test_example_rule.EVEN, 'AllHostsFilter',
             'NumInstancesFilter', *LIMITS], configuration.our_filters())

    def test_rule_without_filter(self):
        """What cannot be loaded is not enabled."""
        self.useFixture(test_example_rule.Installed({'nfv_sched.filters': {
            test_example_rule.EVEN: 'nfv_sched.no:Filter'}}))
        self.assertEqual(DOCUMENTED + LIMITS, configuration.our_filters())

    def test_other_packages_before_limits(self):
        self.useFixture(test_example_rule.Installed())
        self.assertEqual([*DOCUMENTED, test_example_rule.EVEN, *LIMITS],
                         configuration.our_filters())


class OptionsWithoutValueTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.cloud = layout.cloud(snapshots.cloud([snapshots.host()]))

    def test_snapshot(self):
        """Nova would take null for the name of a filter."""
        for value in (None, [None]):
            cloud = dataclasses.replace(self.cloud, settings=(
                ('filter_scheduler', 'enabled_filters', value, 0),))
            with configuration.defaults(), configuration.overrides(cloud):
                self.assertIn(
                    'ComputeFilter',
                    configuration.CONF.filter_scheduler.enabled_filters)

    def test_cloud_file(self):
        cloud = dataclasses.replace(self.cloud, settings=(
            ('filter_scheduler', 'enabled_filters', None, 3),))
        with configuration.defaults():
            error = self.assertRaises(
                problems.InputError,
                configuration.overrides(cloud).__enter__)
        self.assertIn('must have a value', str(error))
