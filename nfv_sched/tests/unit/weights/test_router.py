# SPDX-License-Identifier: Apache-2.0
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
