# SPDX-License-Identifier: Apache-2.0
"""Counting PCI devices down, against Nova's own answer.

Generated cases are in the equivalence tests; here are those worth a name.
"""

from nova import objects

from nfv_sched.fit.numa import pci
from nfv_sched.fit.numa import topology
from nfv_sched.tests import base
from nfv_sched.tests.unit import clouds


class TestDevices(base.TestCase):

    def devices(self, pools, *requests, nodes=2, mapping=None, **tags):
        """What a host gives, by ours; remembers what it takes to ask Nova."""
        numa_topology = clouds.host_topology(nodes=nodes)
        self.stats = clouds.pci_stats(numa_topology, pools, **tags)
        self.requests, self.mapping = list(requests), mapping
        return pci.CandidateDevices(
            pci.HostDevices(self.stats.pools, pci.demands(requests),
                            topology.host_topology(numa_topology)), mapping)

    def assertServed(self, local, total, devices, cells):
        self.assertEqual(pci.Served(local, total), devices.serve(cells))
        self.assertTrue(self.nova(cells))

    def assertNotServed(self, devices, cells):
        self.assertIsNone(devices.serve(cells))
        self.assertFalse(self.nova(cells))

    def nova(self, cells):
        return self.stats.support_requests(
            self.requests, self.mapping,
            [objects.InstanceNUMACell(id=node) for node in range(8)
             if cells >> node & 1])

    def test_sockets_unknown(self):
        devices = self.devices({1: 2}, clouds.pci_request(1, 'socket'))
        for cell in self.stats.numa_topology.cells:
            cell.socket = None
        self.assertNotServed(devices, 0b01)
        self.assertServed(1, 1, devices, 0b10)

    def test_special_devices_are_kept_for_those_who_ask(self):
        for tags in ({'dev_type': 'type-PF'}, {'dev_type': 'vdpa'},
                     {'remote_managed': 'true'}):
            request = clouds.pci_request()
            request.spec = [{'product_id': '1515'}]
            self.assertNotServed(
                self.devices({0: 1}, request, **tags), 0b01)
            request.spec = [{'product_id': '1515', **tags}]
            self.assertServed(
                1, 1, self.devices({0: 1}, request, **tags), 0b01)

    def test_case_of_properties(self):
        self.assertServed(1, 1, self.devices(
            {0: 1}, clouds.pci_request(physical_network='PhysNet1'),
            physical_network='physnet1'), 0b01)

    def test_live_migratable(self):
        for asked in ('true', 'false'):
            self.assertNotServed(self.devices(
                {0: 1}, clouds.pci_request(live_migratable=asked)), 0b01)
            self.assertServed(1, 1, self.devices(
                {0: 1}, clouds.pci_request(live_migratable=asked),
                live_migratable=asked), 0b01)

    def test_placement_fixes_the_device(self):
        request = clouds.pci_request(2)
        for mapped, cells, served in (('one', 0b01, True),
                                      ('one', 0b10, False),
                                      ('two', 0b01, False)):
            devices = self.devices(
                {0: 2}, request, rp_uuid='one', mapping={
                    f'{request.request_id}-0': [mapped],
                    f'{request.request_id}-1': [mapped], '': ['host']})
            if served:
                self.assertServed(2, 2, devices, cells)
                self.assertEqual(0b01, devices.fixed(0))
            else:
                self.assertNotServed(devices, cells)

    def test_ports_are_not_in_placement(self):
        request = clouds.pci_request(alias=None)
        devices = self.devices({0: 2}, request, mapping={
            f'{request.request_id}-0': ['elsewhere']})
        self.assertServed(1, 1, devices, 0b01)
        self.assertIsNone(devices.fixed(0))

    def test_pools_are_left_alone(self):
        devices = self.devices({0: 2}, clouds.pci_request(2))
        devices.serve(0b01)
        self.assertEqual(2, self.stats.pools[0]['count'])

    def test_odd_data(self):
        request = clouds.pci_request()
        self.assertRaises(pci.OddDevicesError, pci.demands, [None])
        host = topology.host_topology(clouds.host_topology())
        self.assertRaises(
            pci.OddDevicesError, pci.HostDevices, [{'numa_node': 0}],
            pci.demands([request]), host)
