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
