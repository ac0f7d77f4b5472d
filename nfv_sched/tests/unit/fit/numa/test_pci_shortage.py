# SPDX-License-Identifier: Apache-2.0
"""Why PCI devices are too few, in kinds and numbers.

That the named requests are the fewest is in ``equivalence``.
"""

from unittest import mock

from nfv_sched.base import device_shortage
from nfv_sched.base.device_shortage import MissKind
from nfv_sched.base.device_shortage import ShortageKind
from nfv_sched.fit.numa import candidates
from nfv_sched.fit.numa import pci
from nfv_sched.fit.numa import pci_shortage
from nfv_sched.fit.numa import topology
from nfv_sched.tests import base as tests_base
from nfv_sched.tests.unit import clouds

_CARD = {'dev_type': 'type-VF', 'vendor_id': '8086', 'product_id': '1515',
         'remote_managed': 'false', 'numa_node': 0, 'address': '01'}
_GPU = {'dev_type': 'type-PCI', 'vendor_id': '10de', 'product_id': '20b5',
        'numa_node': 0, 'address': '02'}


def pool(count=1, base=_CARD, **properties):
    if base is _CARD:
        properties.setdefault('physical_network', 'data')
    return {**base, 'count': count, **properties}


def port(count=1, policy='legacy', **spec):
    """A request of a port; without a policy it has no NUMA topology."""
    request = clouds.pci_request(count, policy, None)
    request.spec = [{'physical_network': 'data', 'remote_managed': 'False',
                     **spec}]
    return request


def alias(name='nic', count=1, policy='legacy', **spec):
    request = clouds.pci_request(count, policy, name)
    request.spec = [spec]
    return request


class TestShortage(tests_base.TestCase):

    def find(self, pools, *requests, masks=None, nodes=2, **kwargs):
        return pci_shortage.find(pci.CandidateDevices(pci.HostDevices(
            pools, pci.demands(requests), topology.host_topology(
                clouds.host_topology(nodes=nodes))), None), masks, **kwargs)

    def assert_short(self, kind, names, free, found):
        self.assertEqual((kind, names, free), (
            found.kind, device_shortage.needs_text(found.needs), found.free))

    def test_requests_that_share_devices(self):
        gpus = [alias(name, vendor_id='10de', product_id='20b5')
                for name in ('gpu-a', 'gpu-b')]
        self.assert_short(
            ShortageKind.TOO_FEW, '2 PCI devices (gpu-a, gpu-b)', 1,
            self.find([pool(3), pool(base=_GPU)], port(), *gpus))
        self.assert_short(
            ShortageKind.TOO_FEW, '2 VFs on physnet data', 1,
            self.find([pool(), pool(physical_network='lan')], port(), port(),
                      port(physical_network='lan')))
        self.assertIsNone(self.find([pool(2)], port(), port()))

    def test_alias_and_port(self):
        self.assert_short(
            ShortageKind.TOO_FEW, '2 VFs (nic) and 1 VF on physnet data', 2,
            self.find([pool(2)], alias(count=2, dev_type='type-VF'), port()))

    def test_pf_and_its_vfs(self):
        pf = pool(dev_type='type-PF')
        nic = alias(dev_type='type-PF')
        self.assert_short(
            ShortageKind.ONE_CARD, '1 PF (nic) and 1 VF on physnet data', 1,
            self.find([pf, pool(4)], nic, port()))
        self.assertIsNone(
            self.find([pf, pool(4), pool(address='02')], nic, port()))
        # A VF of it is in use.
        self.assert_short(ShortageKind.TOO_FEW, '1 PF (nic)', 0,
                          self.find([pool(3)], nic, port()))

    def test_order_of_requests(self):
        """Nova gives the port a device that only the alias can use."""
        found = self.find(
            [pool(trusted='true'), pool(address='02')], port(),
            port(trusted='True'))
        self.assert_short(
            ShortageKind.ORDER,
            '1 VF on physnet data and 1 trusted VF on physnet data', 1, found)

    def test_numa_nodes(self):
        """Whether the devices would do if the host were empty."""
        for pools, free in (([pool(numa_node=1)], 0),
                            ([pool(), pool(numa_node=1, address='02')], 1)):
            found = self.find(pools, *[port(policy='required')] * len(pools),
                              masks=[0b01])
            self.assert_short(
                ShortageKind.NUMA, '2 VFs on physnet data' if free else
                '1 VF on physnet data', free, found)
            self.assertEqual((('required',), bool(free)),
                             (found.policies, found.alone))
        found = self.find([pool(numa_node=1)], port(policy='preferred'),
                          masks=[0b01], local=True)
        self.assertEqual(('strict',), found.policies)

    def test_near_misses(self):
        """Free devices that lack one property, and no others."""
        required = port(policy='required')
        pf = alias(dev_type='type-PF', vendor_id='8086', product_id='1515')
        for pools, request, masks, misses in (
                ([pool(2, dev_type='type-PCI'), pool(base=_GPU)], pf, None,
                 [(MissKind.TYPE, 2, 'type-PF', ('type-PCI',))]),
                ([pool(2, physical_network='sriov'),
                  pool(physical_network='lan', trusted='true'),
                  pool(dev_type='vdpa', physical_network='lan')], port(), None,
                 [(MissKind.PHYSICAL_NETWORK, 3, 'data', ('lan', 'sriov'))]),
                ([pool(2, trusted='false'), pool(3),
                  pool(physical_network='lan')], port(trusted='True'), None,
                 [(MissKind.TRUSTED, 5, 'True', ('false',))]),
                ([pool(4, numa_node=None), pool(2, numa_node=1),
                  pool(physical_network='lan', numa_node=1)], required, [1],
                 [(MissKind.NODE_UNKNOWN, 4, 'required', ()),
                  (MissKind.OTHER_NODE, 2, 'required', ('1',))]),
                ([pool(4, numa_node=None, physical_network='lan')], required,
                 [1], []),
                ([pool(2, numa_node=1)], port(policy='socket'), [1],
                 [(MissKind.OTHER_SOCKET, 2, 'socket', ('1',))]),
                ([pool(2), pool(2, live_migratable='false')],
                 port(live_migratable='true'), None,
                 [(MissKind.LIVE_MIGRATABLE, 4, 'true', ('false',))]),
                ([pool(2, remote_managed='true')], port(), None,
                 [(MissKind.REMOTE_MANAGED, 2, 'False', ('true',))]),
                ([pool(product_id='1516')], alias(
                    vendor_id='8086', product_id='1515'), None,
                 [(MissKind.PROPERTY, 1, '1515', ('1516',))])):
            found = self.find(pools, request, masks=masks)
            self.assertEqual(misses, [
                (miss.kind, miss.count, miss.wanted, miss.found)
                for miss in found.misses])

    def test_request_without_a_specification(self):
        request = alias(count=2)
        request.spec = []
        self.assert_short(ShortageKind.TOO_FEW, '2 PCI devices (nic)', 0,
                          self.find([pool()], request))

    def test_more_requests_than_sets_are_tried(self):
        found = self.find([pool(19)], *[port()] * 20, alias(
            dev_type='type-PCI'))
        self.assertEqual((1, 0), (found.needed, found.free))
        found = self.find([pool(19)], *[port()] * 20)
        self.assertEqual((20, 19), (found.needed, found.free))

    def test_unlike_requests_cost_little(self):
        """Those that the same pools serve are alike, whatever they ask."""
        for wanted, free, nodes, guest_cells, needed in (
                (12, 5, 2, 0, 6), (12, 11, 2, 0, 12), (12, 11, 8, 4, 8),
                (12, 11, 16, 8, 12), (40, 39, 2, 0, 40)):
            properties = {f'tag{number}': 'x' for number in range(wanted)}
            pools = [pool(numa_node=number % nodes, address=f'{number:02}',
                          **properties) for number in range(free)]
            devices = pci.CandidateDevices(pci.HostDevices(
                pools, pci.demands([
                    alias(name, policy='required', **{name: 'x'})
                    for name in properties]), topology.host_topology(
                        clouds.host_topology(nodes=nodes))), None)
            masks = [(1 << nodes) - 1] * guest_cells or None
            if masks is not None:
                # The decision has tried these sets of host cells.
                self.assertFalse(candidates.satisfiable(
                    masks, (), devices.stock))
            real = pci.CandidateDevices
            with mock.patch.object(
                    real, 'serve', autospec=True,
                    side_effect=real.serve) as serve, mock.patch.object(
                        real, 'claimable', autospec=True,
                        side_effect=real.claimable) as claimable:
                found = pci_shortage.find(devices, masks)
            # The first question has an answer for each set of host cells.
            self.assertEqual(needed, found.needed)
            tried = serve.call_count + claimable.call_count
            self.assertLess(tried, 4000 if masks is None else 8000)
