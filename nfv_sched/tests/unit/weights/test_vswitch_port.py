# SPDX-License-Identifier: Apache-2.0
"""The weigher of ports."""

from nova import objects

from nfv_sched.tests.unit.weights import network
from nfv_sched.weights import vswitch_port


class TestVSwitchPortWeigher(network.NetworkWeigherTestCase):

    def test_ports(self):
        """All ports count, physical ones and new guests' too."""
        self.neutron({'number': 2}, {'host': 'host2', 'number': 3},
                     {'host': 'host3', 'number': 1})
        hosts = self.hosts()
        hosts[2] = self.host('host3', metadata={
            'vswitch_physical_ports': '7'})
        self.assertEqual(['host1', 'host2', 'host3'], [
            name for name, _weight in self.order(
                vswitch_port.VSwitchPortWeigher(), *hosts)])
        spec = self.spec(2)
        self.passing([hosts[0]], spec)
        hosts[0].consume_from_request(spec)
        objects.Selection.from_host_state(hosts[0])
        self.assertEqual(['host2', 'host1', 'host3'], [
            name for name, _weight in self.order(
                vswitch_port.VSwitchPortWeigher(), *hosts)])
