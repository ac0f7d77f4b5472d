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
"""Generated cases are in the equivalence tests; here are those worth a name.
"""

from nova import objects

from nfv_sched.numa import pci
from nfv_sched.numa import supply
from nfv_sched.numa import topology
from nfv_sched.tests import base
from nfv_sched.tests.unit import clouds


def pool(kind, *addresses, parent=None, node=0):
    """A pool with its devices, as the compute node has it."""
    return {
        'vendor_id': '8086', 'product_id': '154d', 'dev_type': kind,
        'numa_node': node, 'count': len(addresses), 'devices': [
            objects.PciDevice(address=address, dev_type=kind,
                              parent_addr=parent) for address in addresses]}


def demand(kind, count=1, policy='legacy'):
    return pci.demands([objects.InstancePCIRequest(
        count=count, alias_name='nic', numa_policy=policy,
        spec=[{'product_id': '154d', 'dev_type': kind}])])


class TestSupply(base.TestCase):

    def setUp(self):
        super().setUp()
        self.host = topology.host_topology(clouds.host_topology(nodes=2))
        self.free = supply.Supply.of([
            pool('type-VF', 'a1', 'a2', parent='a'),
            pool('type-VF', 'b1', 'b2', parent='b', node=1),
            pool('type-PF', 'a'), pool('type-PF', 'b', node=1)])

    def take(self, free, demands, cells=0b11):
        return free.take(demands, None, self.host, cells)

    def counts(self, free):
        return [(each['dev_type'], each['numa_node'], each['count'])
                for each in free.pools]

    def test_a_vf_takes_its_pf_with_it(self):
        self.assertEqual(
            [('type-VF', 0, 2), ('type-VF', 1, 1), ('type-PF', 0, 1)],
            self.counts(self.take(self.free, demand('type-VF'), 0b10)))

    def test_a_pf_takes_its_vfs_with_it(self):
        left = self.take(self.free, demand('type-PF'), 0b01)
        # An empty pool stays if devices were given from it.
        self.assertEqual([('type-VF', 1, 2), ('type-PF', 0, 0),
                          ('type-PF', 1, 1)], self.counts(left))
        self.assertIsNone(self.take(left, demand('type-VF'), 0b01))

    def test_a_pf_of_a_vf_of_the_same_guest_is_gone(self):
        both = demand('type-VF') + demand('type-PF')
        self.assertIsNone(self.take(self.free, both, 0b01))
        self.assertIsNotNone(self.take(self.free, both, 0b11))

    def test_anywhere(self):
        left = self.take(
            self.free, demand('type-VF', 4, 'required'), None)
        self.assertEqual([('type-VF', 0, 0), ('type-VF', 1, 0)],
                         self.counts(left))

    def test_too_few(self):
        self.assertIsNone(self.take(self.free, demand('type-VF', 5)))

    def test_without_devices_only_numbers_count(self):
        free = supply.Supply.of(
            [{key: value for key, value in pool('type-VF', 'a1', 'a2').items()
              if key != 'devices'}])
        self.assertEqual([('type-VF', 0, 1)],
                         self.counts(self.take(free, demand('type-VF'))))

    def test_key(self):
        other = supply.Supply.of([
            pool('type-VF', 'c1', 'c2', parent='c'),
            pool('type-VF', 'd1', 'd2', parent='d', node=1),
            pool('type-PF', 'c'), pool('type-PF', 'd', node=1)])
        self.assertEqual(self.free.key, other.key)
        self.assertNotEqual(
            self.free.key, self.take(self.free, demand('type-VF')).key)
