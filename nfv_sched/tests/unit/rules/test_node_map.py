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
"""Guest nodes on given host nodes."""

from nfv_sched.tests import strategies
from nfv_sched.tests.unit import clouds
from nfv_sched.tests.unit.filters import base


class TestNodeMapping(base.FilterTestCase):
    """Guest nodes on named host nodes, or a refusal."""

    def test_one_guest_node(self):
        for node in (0, 1):
            host = clouds.host()
            self.assertEqual(['host1'], self.passing(
                [host], clouds.spec(nodes={0: node})))
            self.assertEqual([node], self.node_of(host))

    def test_needs_a_label(self):
        self.assertIn('nfv_node', self.refusal(
            [clouds.host(node_labels=False)], clouds.spec(nodes={0: 0})))

    def test_the_label_of_the_switch_will_do(self):
        host = clouds.host(node_labels=False, switch=(1,))
        self.assertEqual(
            ['host1'], self.passing([host], clouds.spec(nodes={0: 1})))
        self.assertEqual([1], self.node_of(host))

    def test_order_of_interchangeable_nodes(self):
        two = clouds.guest(cells=2)
        host = clouds.host()
        self.assertEqual(['host1'], self.passing(
            [host], clouds.spec(nodes={0: 0, 1: 1}, cells=2)))
        self.assertEqual([0, 1], self.node_of(host, two))
        # Nova puts them in the host's order; labels cannot turn them round.
        self.assertIn('change places', self.refusal(
            [clouds.host()], clouds.spec(nodes={0: 1, 1: 0}, cells=2)))
        self.assertIn('change places', self.refusal(
            [clouds.host(nodes=4)], clouds.spec(nodes={0: 2}, cells=2)))

    def test_held_by_capacity(self):
        # Guest node 0 has more vCPUs than host node 0 has CPUs.
        topology = clouds.host_topology(cpus=14)
        topology.cells[0].pcpuset = set(range(1, 14))
        guest = clouds.guest(cells=2, vcpus=14)
        guest.cells[1].pcpuset = set(range(14, 27))
        host = strategies.host_state(topology)
        spec = strategies.request_spec(
            guest, None, {'nfv:numa_node.0': '1', 'nfv:numa_node.1': '0'})
        self.assertEqual(['host1'], self.passing([host], spec))
        self.assertEqual([1, 0], self.node_of(host, guest))

    def test_absent_nodes(self):
        self.assertIn('host NUMA node 7 needed', self.refusal(
            [clouds.host()], clouds.spec(nodes={0: 7})))
        self.assertIn('the guest has 1 NUMA node', self.refusal(
            [clouds.host()], clouds.spec(nodes={1: 0})))
