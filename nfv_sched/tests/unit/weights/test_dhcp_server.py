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
"""The weigher of DHCP servers."""

from nfv_sched.tests.unit.weights import network
from nfv_sched.weights import dhcp_server
from nfv_sched.weights import router


class TestDHCPServerWeigher(network.NetworkWeigherTestCase):

    def test_dhcp_servers(self):
        """The host with the fewest DHCP servers is the best."""
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
