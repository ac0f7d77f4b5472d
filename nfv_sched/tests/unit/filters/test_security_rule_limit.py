# SPDX-License-Identifier: Apache-2.0
"""The filter of security-group rules."""

from nfv_sched.filters import security_rule_limit
from nfv_sched.tests.unit import clouds
from nfv_sched.tests.unit.filters import network

RULES = network.RULES


class TestSecurityRuleLimitFilter(network.NetworkTestCase):

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
                # It is there already.
                (False, {'ids': ['port1'], 'move': True})):
            self.assertEqual([] if refused else ['host1'], self.passing(
                [self.host()], self.spec(**request, groups=['a']),
                self.rules), request)


class TestRules(network.NetworkTestCase):
    def setUp(self):
        super().setUp()
        self.flags(vswitch_ports_per_node=0, security_rules_per_node=100,
                   security_rules_per_port=30)

    def test_limit(self):
        """Rules count once for each port."""
        self.neutron({'number': 8, 'groups': ['a']}, rules={'a': 10, 'b': 5})
        self.assertEqual(['host1'], self.passing(
            [self.host()], self.spec(2, ['a'])))
        self.assertEqual(
            'security-group rules: 30 needed, 20 of 100 free (1 host)',
            self.refused([self.host()], self.spec(2, ['a', 'b'])))

    def test_per_port(self):
        """A port of a new guest has at most so many rules."""
        self.neutron(rules={'a': 20, 'b': 11})
        self.assertEqual(
            'security-group rules of a port: 31 needed, at most 30 allowed '
            '(1 host)', self.refused([self.host()], self.spec(1, ['a', 'b'])))
        self.assertEqual(['host1'], self.passing(
            [self.host()], self.spec(1, ['a'])))
        self.assertEqual(['host1'], self.passing(
            [self.host()], self.spec(1, ['a', 'b'], move=True)))

    def test_unknown_groups(self):
        """They have as many rules as a port may have."""
        self.neutron({'number': 8, 'groups': ['a']}, rules={'a': 10})
        self.lookups.unasked = ('new',)
        for assumed, need in ((30, 30), (0, 128)):
            self.flags(security_rules_per_port=assumed)
            for shown in self.lookups.value, None:
                self.lookups.value = shown
                self.assertEqual(
                    f'security-group rules: {need} needed, 20 of 100 free '
                    '(1 host)',
                    self.refused([self.host()], self.spec(1, ['new'])))
            self.lookups.value = self.shown

    def test_looked_up_once(self):
        """For all hosts, filters and servers of a request."""
        self.neutron(rules={'a': 5})
        hosts, spec = [self.host(), self.host('host2')], self.spec(1, ['a'])
        self.assertEqual(['host1', 'host2'], self.passing(
            hosts, spec, network.PORTS, RULES))
        hosts[0].consume_from_request(spec)
        spec.instance_uuid = network.UUIDS[2]
        self.passing(hosts, spec, network.PORTS, RULES, index=1)
        lacking, = self.lookups.asked
        self.assertEqual((('a',), ('net',)),
                         (lacking.groups, lacking.networks))
