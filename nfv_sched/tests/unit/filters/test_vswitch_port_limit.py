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
"""The filter of ports; what it has in common with others is elsewhere."""

from nfv_sched.filters import vswitch_port_limit
from nfv_sched.ledger import names
from nfv_sched.network import usage
from nfv_sched.tests.unit import clouds
from nfv_sched.tests.unit.filters import test_network


class TestVSwitchPortLimitFilter(test_network.NetworkTestCase):

    def setUp(self):
        super().setUp()
        self.ports = vswitch_port_limit.VSwitchPortLimitFilter()

    def test_guests_that_take_none(self):
        """They pass, however full a host is, unless devices are too many."""
        self.flags(sriov_vfs_per_guest=1, expose_reasons='none')
        self.neutron({'number': 8})
        for refused, request in (
                (False, {'ports': 0}), (True, {}),
                (True, {'ports': 0, 'devices': [clouds.pci_request(2)]}),
                (True, {'move': True})):
            self.assertEqual([] if refused else ['host1'], self.passing(
                [self.host()], self.spec(**request), self.ports), request)

    def test_full(self):
        """Physical ports are ports of the switch."""
        self.neutron({'number': 7})
        self.assertEqual(['host1'], self.passing(
            [self.host()], self.spec(), self.ports))
        self.flags(vswitch_physical_ports=3)
        self.assertEqual(
            'vSwitch ports: 1 needed, 0 of 10 free (1 host)',
            self.refused([self.host()], self.spec(), self.ports))

    def test_what_it_counts(self):
        self.assertEqual(names.PORTS, self.ports.resource_class)
        self.assertEqual(5, self.ports.unseen(5, 70))
        self.assertEqual(0, self.ports.carried(usage.HostUsage('host1')))
