# SPDX-License-Identifier: Apache-2.0
"""The texts of device shortages; elsewhere kinds and numbers are compared."""

from nfv_sched.base import device_shortage
from nfv_sched.base.device_shortage import DeviceNeed
from nfv_sched.base.device_shortage import MissKind
from nfv_sched.base.device_shortage import NearMiss
from nfv_sched.base.device_shortage import ShortageKind
from nfv_sched.tests import base

_GPUS = (DeviceNeed(1, 'PCI device', 'gpu-a'),
         DeviceNeed(1, 'PCI device', 'gpu-b'))


class TextTest(base.TimedTestCase):

    def test_needs(self):
        for needs, text in (
                (_GPUS, '2 free PCI devices (gpu-a, gpu-b)'),
                ([DeviceNeed(1, 'VF', '', 'data')] * 2,
                 '2 free VFs on physnet data'),
                ([DeviceNeed(1, 'PF', 'nic'),
                  DeviceNeed(2, 'VF', '', 'data', True)],
                 '1 free PF (nic) and 2 free trusted VFs on physnet data')):
            self.assertEqual(text, device_shortage.needs_text(needs, 'free '))

    def test_free(self):
        for kind, free, text in (
                (ShortageKind.TOO_FEW, 0, '0 free'),
                (ShortageKind.TOO_FEW, 1, '1 free: they are the same device'),
                (ShortageKind.ONE_CARD, 1,
                 'only a PF and VFs of the same card are free: taking the PF '
                 'takes its VFs'),
                (ShortageKind.ORDER, 1,
                 'Nova gives those free to the other request first'),
                (ShortageKind.GRANTED, 1,
                 'Placement grants devices that do not serve them'),
                (ShortageKind.NUMA, 1, '1 free')):
            self.assertEqual(text, device_shortage.free_text(
                device_shortage.DeviceShortage(kind, _GPUS, free)))

    def test_misses(self):
        remedies = set()
        for kind, wanted, found, text in (
                (MissKind.TYPE, 'type-PF', 'type-PCI',
                 '2 free VFs are type-PCI, not type-PF'),
                (MissKind.PHYSICAL_NETWORK, 'a', 'b',
                 '2 free VFs are on physnet b'),
                (MissKind.TRUSTED, 'True', 'false',
                 '2 free VFs are not trusted'),
                (MissKind.NODE_UNKNOWN, 'required', '',
                 'the NUMA node of 2 free VFs is not known'),
                (MissKind.OTHER_NODE, 'required', '1',
                 '2 free VFs are on NUMA node 1'),
                (MissKind.OTHER_SOCKET, 'socket', '1',
                 '2 free VFs are on NUMA node 1, another socket'),
                (MissKind.SOCKET_UNKNOWN, 'socket', '1',
                 'the socket of 2 free VFs is not known'),
                (MissKind.LIVE_MIGRATABLE, 'true', '',
                 '2 free VFs have live_migratable unset'),
                (MissKind.REMOTE_MANAGED, 'False', 'true',
                 '2 free VFs are remote-managed'),
                (MissKind.PROPERTY, '1515', '1516',
                 '2 free VFs have product_id 1516, not 1515'),
                (MissKind.RESERVED, '', '',
                 '2 VF are reserved in Placement')):
            miss = NearMiss(kind, 2, 'VF', wanted, (found,) if found else (),
                            'product_id')
            self.assertEqual(text, device_shortage.miss_text(miss))
            remedies.add(device_shortage.remedy(miss))
        self.assertEqual(len(MissKind) - 1, len(remedies))

    def test_equal_misses_are_one(self):
        miss = NearMiss(MissKind.PHYSICAL_NETWORK, 1, 'VF', 'a', ('b',))
        self.assertEqual(
            (miss._replace(count=3, found=('b', 'c')),),
            device_shortage.merge([miss, miss._replace(
                count=2, found=('c',))]))
