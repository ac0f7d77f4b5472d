# SPDX-License-Identifier: Apache-2.0
"""The weigher of DHCP servers."""

from nfv_sched.tests.unit.weights import network
from nfv_sched.weights import dhcp_server
from nfv_sched.weights import router


class TestDHCPServerWeigher(network.NetworkWeigherTestCase):

    def test_dhcp_servers(self):
        self.neutron(dhcp={'host1': 10, 'host2': 5})
        self.assertEqual(
            [('host3', 1.0), ('host2', 0.5), ('host1', 0.0)],
            self.order(dhcp_server.DHCPServerWeigher(), *self.hosts()))

    def test_dhcp_under_ovn(self):
        """Where DHCP is everywhere, no host is better."""
        self.neutron({'owner': 'network:router_gateway', 'instance': 'r'})
        self.assertEqual({0.0}, {weight for _name, weight in self.order(
            dhcp_server.DHCPServerWeigher(), *self.hosts())})
        self.assertEqual(
            ('host1', 0.0), self.order(
                router.RouterWeigher(), *self.hosts())[-1])
