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
"""The filter of security-group rules."""

from nfv_sched.filters import security_rule_limit
from nfv_sched.ledger import names
from nfv_sched.network import usage
from nfv_sched.tests.unit import clouds
from nfv_sched.tests.unit.filters import test_network


class TestSecurityRuleLimitFilter(test_network.NetworkTestCase):

    def setUp(self):
        super().setUp()
        self.rules = security_rule_limit.SecurityRuleLimitFilter()
        self.flags(security_rules_per_node=10, security_rules_per_port=0)

    def test_guests_that_take_none(self):
        """They pass, however full a host is; devices have no rules."""
        self.flags(expose_reasons='none')
        self.neutron({'number': 2, 'groups': ['a']}, rules={'a': 6})
        for refused, request in (
                (False, {'ports': 0}), (True, {}),
                (False, {'ports': 0, 'devices': [clouds.pci_request()]}),
                (True, {'ids': ['port1'], 'move': True})):
            self.assertEqual([] if refused else ['host1'], self.passing(
                [self.host()], self.spec(**request, groups=['a']),
                self.rules), request)

    def test_full(self):
        """Full ports, whatever the switch still takes."""
        self.neutron({'groups': ['a']}, rules={'a': 4, 'b': 3})
        self.assertEqual(['host1'], self.passing(
            [self.host()], self.spec(2, ['b']), self.rules))
        self.assertEqual(
            'security-group rules: 8 needed, 6 of 10 free (1 host)',
            self.refused([self.host()], self.spec(2, ['a']), self.rules))

    def test_what_it_counts(self):
        self.assertEqual(names.RULES, self.rules.resource_class)
        self.assertEqual(70, self.rules.unseen(5, 70))
        self.assertEqual(0, self.rules.carried(usage.HostUsage('host1')))
