# SPDX-License-Identifier: Apache-2.0
"""The NUMA limits that a decision leaves for the claim."""

from nova import objects

from nfv_sched.scheduler import visit
from nfv_sched.tests import base


def limits(physnets=None, tunneled=False):
    metadata = {} if physnets is None else {
        'network_metadata': objects.NetworkMetadata(
            physnets=set(physnets), tunneled=tunneled)}
    return objects.NUMATopologyLimits(
        cpu_allocation_ratio=4.0, ram_allocation_ratio=1.5, **metadata)


class WithLabelsTest(base.TestCase):

    def test_labels_are_added(self):
        for before, labels, physnets in (
                (None, {'nfv_node1'}, {'nfv_node1'}),
                ([], {'nfv_node1'}, {'nfv_node1'}),
                (['one'], {'nfv_node1'}, {'one', 'nfv_node1'}),
                (['one'], set(), {'one'})):
            given = limits(before)
            made = visit.with_labels(given, frozenset(labels), False)
            self.assertEqual(physnets, made.network_metadata.physnets)
            self.assertEqual((4.0, 1.5), (made.cpu_allocation_ratio,
                                          made.ram_allocation_ratio))
            if before is not None:
                self.assertEqual(set(before), given.network_metadata.physnets)

    def test_tunnel(self):
        """Whether the claim must be near the tunnel endpoint."""
        for tunneled, ignored, kept in (
                (True, False, True), (True, True, False),
                (False, False, False)):
            made = visit.with_labels(
                limits(['one'], tunneled), frozenset(), ignored)
            self.assertEqual(kept, made.network_metadata.tunneled)
