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
"""The weigher of routers."""

from nfv_sched.tests.unit.weights import network
from nfv_sched.weights import router


class TestRouterWeigher(network.NetworkWeigherTestCase):

    def test_routers(self):
        """Gateway ports say where routers are, and so do agents."""
        self.flags(router_weight_multiplier=4.0)
        self.neutron(
            {'owner': 'network:router_gateway', 'instance': 'r1',
             'host': 'host2'}, routers={'host3': 2})
        self.assertEqual(
            [('host1', 4.0), ('host2', 2.0), ('host3', 0.0)],
            self.order(router.RouterWeigher(), *self.hosts()))

    def test_multiplier_of_an_aggregate(self):
        """An aggregate can turn a weigher round."""
        self.neutron(routers={'host1': 1})
        hosts = [self.host(metadata={'router_weight_multiplier': '-3'}),
                 self.host('host2', metadata={
                     'router_weight_multiplier': '-3'})]
        self.assertEqual([('host1', 0.0), ('host2', -3.0)], self.order(
            router.RouterWeigher(), *hosts))
