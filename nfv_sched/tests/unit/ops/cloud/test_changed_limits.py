# SPDX-License-Identifier: Apache-2.0
"""A cloud with other limits, against one that really has them."""

from nfv_sched.limits import names
from nfv_sched.ops.cloud import changed_limits
from nfv_sched.tests.unit.ops.cloud import test_changed_hosts

HOSTS = ['a-1', 'b-1', 'b-2']
#: Values by option, of which each changes what fits or is in the ledger.
CHANGES = (
    {'vswitch_ports_per_node': 20}, {'vswitch_ports_per_node': 3},
    {'vswitch_ports_per_node': 0}, {'vswitch_physical_ports': 3},
    {'security_rules_per_node': 600}, {'security_rules_per_node': 1000,
                                       'vswitch_ports_per_node': 7})


class ChangedLimitsTest(test_changed_hosts.ChangedHostsTestCase):

    def ledgers(self, cloud):
        return {host.name: dict(provider.inventories)
                for host in cloud.hosts for provider in host.providers
                if provider.uuid == names.provider_uuid(host.uuid)}

    def check(self, ledger):
        before = self.simulated(
            test_changed_hosts.document(HOSTS, ledger=ledger))
        counts = set()
        for change in CHANGES:
            cloud = changed_limits.changed(before, change)
            real = self.simulated(test_changed_hosts.document(
                HOSTS, ledger=ledger, **change))
            self.assertEqual(self.ledgers(real), self.ledgers(cloud), change)
            counted = self.counted(real)
            self.assertEqual(counted, self.counted(cloud), change)
            counts.add(str(counted))
        self.assertLess(2, len(counts))

    def test_as_if_really_so(self):
        self.check('none')

    def test_ledger(self):
        self.check('placement')
        self.assertTrue(self.ledgers(self.simulated(
            test_changed_hosts.document(HOSTS, ledger='placement'))))

    def test_aggregates(self):
        cloud = self.simulated(test_changed_hosts.document(HOSTS))
        self.assertEqual(['east'], changed_limits.overriding(
            cloud, 'vswitch_ports_per_node'))
        self.assertEqual([], changed_limits.overriding(
            cloud, 'security_rules_per_node'))
