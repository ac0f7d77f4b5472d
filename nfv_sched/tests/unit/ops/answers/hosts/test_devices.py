# SPDX-License-Identifier: Apache-2.0
"""PCI devices by NIC."""

from nfv_sched.ops.answers.hosts import devices
from nfv_sched.ops.cloud import snapshot
from nfv_sched.tests import base


def device(number, kind='type-VF', status='available', **fields):
    return snapshot.Device(**{**dict(
        address=f'0000:01:00.{number}', vendor='8086', product='154c',
        kind=kind, status=status, node=0), **fields})


class DevicesTest(base.TestCase):

    def grouped(self, *found):
        return {node: [(group.name, group.kind, group.free, group.used,
                        group.total, group.servers) for group in groups]
                for node, groups in devices.grouped(
                    found, {'1': 'a', '2': 'b'}).items()}

    def test_nics(self):
        self.assertEqual({
            0: [('0000:01:00.0', 'VF', 1, 2, 4, ('a', 'b'))],
            1: [('0000:02:00.0', 'VF', 1, 0, 1, ())],
        }, self.grouped(
            device(0, 'type-PF', 'unavailable'),
            *(device(number, status=status, parent='0000:01:00.0', server=who)
              for number, status, who in (
                  (1, 'available', None), (2, 'allocated', '2'),
                  (3, 'claimed', '1'), (4, 'unavailable', None),
                  (5, 'removed', None), (6, 'deleted', None))),
            device(7, node=1, parent='0000:02:00.0')))

    def test_pf(self):
        """It is there if it can be had, or is had, or has no VFs."""
        for status, there in (('available', True), ('allocated', True),
                              ('unavailable', False)):
            (groups,) = self.grouped(
                device(0, 'type-PF', status), device(
                    1, parent='0000:01:00.0')).values()
            self.assertEqual(
                there, 'PF' in [kind for _name, kind, *_rest in groups])
        self.assertEqual(
            {0: [('0000:01:00.0', 'PF', 0, 0, 1, ())]},
            self.grouped(device(0, 'type-PF', 'unavailable')))

    def test_others(self):
        self.assertEqual({
            0: [('8086:154c', 'PCI', 1, 1, 2, ('unknown guest',))],
            None: [('8086:154c', 'VF', 1, 0, 1, ())],
        }, self.grouped(
            device(0, 'type-PCI'),
            device(1, 'type-PCI', 'allocated', server='9'),
            device(2, node=None)))

    def test_unknown_kind(self):
        self.assertEqual({0: [('8086:154c', 'odd', 1, 0, 1, ())]},
                         self.grouped(device(0, 'odd')))
