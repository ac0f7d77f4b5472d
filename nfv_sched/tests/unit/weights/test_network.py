# SPDX-License-Identifier: Apache-2.0
"""What the weighers of network load have in common."""

from nfv_sched.tests.unit.weights import network
from nfv_sched.weights import dhcp_server
from nfv_sched.weights import router
from nfv_sched.weights import vswitch_port


class TestNothingKnown(network.NetworkWeigherTestCase):

    def test_nothing_known(self):
        """Without figures, or with old ones, all hosts are alike."""
        source = self.neutron({'number': 3}, routers={'host1': 3},
                              dhcp={'host1': 3}, age=301)
        for value in source.value, None:
            source.value = value
            for weigher in (dhcp_server.DHCPServerWeigher(),
                            router.RouterWeigher(),
                            vswitch_port.VSwitchPortWeigher()):
                self.assertEqual({0.0}, {
                    weight for _name, weight in
                    self.order(weigher, *self.hosts())})
