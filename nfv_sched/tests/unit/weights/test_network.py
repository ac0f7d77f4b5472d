# SPDX-License-Identifier: Apache-2.0
"""What the weighers of network load have in common."""

from nfv_sched.tests.unit.weights import network
from nfv_sched.weights import dhcp_server
from nfv_sched.weights import router
from nfv_sched.weights import vswitch_port


class TestNothingKnown(network.NetworkWeigherTestCase):

    def test_nothing_known(self):
        """Without published figures all hosts are alike."""
        self.neutron({'number': 3}, routers={'host1': 3}, dhcp={'host1': 3})
        for weigher in (dhcp_server.DHCPServerWeigher(),
                        router.RouterWeigher(),
                        vswitch_port.VSwitchPortWeigher()):
            self.assertEqual({0.0}, {
                weight for _name, weight in self.order(
                    weigher, *self.hosts(), published=())})

    def test_one_not_known(self):
        """It must not attract all servers."""
        self.neutron(routers={'host1': 3, 'host2': 1})
        one, two, three = self.hosts()
        self.assertEqual(
            [('host2', 1.0), ('host1', 0.0), ('host3', 0.0)], self.order(
                router.RouterWeigher(), one, two, three,
                published=(one, two)))
