# SPDX-License-Identifier: Apache-2.0
"""The weigher of ports."""


from nfv_sched.limits import names
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
        self.allocated = {'host1': {names.PORTS: 2}}
        self.assertEqual(['host2', 'host1', 'host3'], [
            name for name, _weight in self.order(
                vswitch_port.VSwitchPortWeigher(), *hosts)])
