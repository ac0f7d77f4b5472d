# SPDX-License-Identifier: Apache-2.0
"""Generated cases are in the equivalence tests; here are those worth a name.
"""

from nova import objects

from nfv_sched.fit.numa import pci
from nfv_sched.fit.numa import topology
from nfv_sched.fit import pci_pools
from nfv_sched.tests import base
from nfv_sched.tests.unit import clouds


def device(address, kind, parent=None, server=None):
    return objects.PciDevice(address=address, dev_type=kind,
                             parent_addr=parent, instance_uuid=server)


def pool(kind, *addresses, parent=None, node=0):
    return {
        'vendor_id': '8086', 'product_id': '154d', 'dev_type': kind,
        'numa_node': node, 'count': len(addresses), 'devices': [
            device(address, kind, parent) for address in addresses]}


def demand(kind, count=1, policy='legacy'):
    return pci.demands([objects.InstancePCIRequest(
        count=count, alias_name='nic', numa_policy=policy,
        spec=[{'product_id': '154d', 'dev_type': kind}])])


class PCIPoolsTestCase(base.TestCase):

    def setUp(self):
        super().setUp()
        self.host = topology.host_topology(clouds.host_topology(nodes=2))
        self.free = pci_pools.PCIPools.read([
            pool('type-VF', 'a1', 'a2', parent='a'),
            pool('type-VF', 'b1', 'b2', parent='b', node=1),
            pool('type-PF', 'a'), pool('type-PF', 'b', node=1)])

    def claim(self, free, demands, cells=0b11):
        return free.take(demands, None, self.host, cells)

    def take(self, free, demands, cells=0b11):
        pools, _devices = self.claim(free, demands, cells)
        return pools

    def counts(self, free):
        return [(each['dev_type'], each['numa_node'], each['count'])
                for each in free.pools]


class TestTake(PCIPoolsTestCase):
    def test_anywhere(self):
        after = self.take(
            self.free, demand('type-VF', 4, 'required'), None)
        self.assertEqual([('type-VF', 0, 0), ('type-VF', 1, 0)],
                         self.counts(after))

    def test_too_few(self):
        self.assertIsNone(self.claim(self.free, demand('type-VF', 5)))

    def test_without_devices_only_numbers_count(self):
        free = pci_pools.PCIPools.read(
            [{key: value for key, value in pool('type-VF', 'a1', 'a2').items()
              if key != 'devices'}])
        self.assertEqual([('type-VF', 0, 1)],
                         self.counts(self.take(free, demand('type-VF'))))

    def test_key(self):
        other = pci_pools.PCIPools.read([
            pool('type-VF', 'c1', 'c2', parent='c'),
            pool('type-VF', 'd1', 'd2', parent='d', node=1),
            pool('type-PF', 'c'), pool('type-PF', 'd', node=1)])
        self.assertEqual(self.free.key, other.key)
        self.assertNotEqual(
            self.free.key, self.take(self.free, demand('type-VF')).key)


class TestGiveBack(PCIPoolsTestCase):
    def test_devices_of_servers_that_were_there(self):
        """Their pool may have no free device, and Nova then has none."""
        vfs = {name: value for name, value in pool(
            'type-VF', parent='a').items()}
        pfs = {**pool('type-PF'), 'rp_uuid': 'provider'}
        for status_of_pf, owner in (('blocked', None), ('taken', 'x')):
            free = pci_pools.PCIPools.read([], [
                (device('a', 'type-PF', server=owner), pfs),
                (device('a1', 'type-VF', 'a', owner and 'y'), vfs),
                (device('a2', 'type-VF', 'a', 'x'), vfs)])
            self.assertEqual([], free.pools)
            after = free.give_back(free.of_server('x'))
            self.assertEqual(
                [('type-PF', 0, 1), ('type-VF', 0, 2 if owner else 1)]
                if owner else [('type-VF', 0, 1)],
                sorted(self.counts(after)), status_of_pf)
            # More may become free once others have gone, too.
            self.assertEqual(
                ['type-PF', 'type-VF', 'type-VF'][:3 if owner else 2],
                sorted(each['dev_type'] for each in free.freed_by('x')))

    def test_nothing_twice(self):
        pools, devices = self.claim(self.free, demand('type-VF'))
        after = pools.give_back(devices)
        self.assertEqual(self.counts(after),
                         self.counts(after.give_back(devices)))
