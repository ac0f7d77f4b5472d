# SPDX-License-Identifier: Apache-2.0
"""The NUMA limits that a decision leaves for the claim."""

from nova import objects

from nfv_sched.scheduler import numa_limits
from nfv_sched.tests import base

LIMITS = 'numa_topology'


def limits(physnets=None, tunneled=False):
    """Limits as Nova writes them, near these networks."""
    metadata = {} if physnets is None else {
        'network_metadata': objects.NetworkMetadata(
            physnets=set(physnets), tunneled=tunneled)}
    return objects.NUMATopologyLimits(
        cpu_allocation_ratio=4.0, ram_allocation_ratio=1.5, **metadata)


class KeptLimitsTest(base.TestCase):

    def test_nova_cannot_write_over_them(self):
        """It writes those without labels each time its filter runs."""
        ours, novas = limits(['nfv_node0']), limits()
        kept = numa_limits.KeptLimits({'memory_mb': 1.0, LIMITS: novas})
        kept.keep(ours)
        kept[LIMITS] = novas
        kept['vcpu'] = 3
        self.assertEqual({'memory_mb': 1.0, 'vcpu': 3, LIMITS: ours}, kept)


class WithLabelsTest(base.TestCase):

    def test_labels_are_added(self):
        for before, labels, physnets in (
                (None, {'nfv_node1'}, {'nfv_node1'}),
                ([], {'nfv_node1'}, {'nfv_node1'}),
                (['one'], {'nfv_node1'}, {'one', 'nfv_node1'}),
                (['one'], set(), {'one'})):
            given = limits(before)
            made = numa_limits.with_labels(given, frozenset(labels), False)
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
            made = numa_limits.with_labels(
                limits(['one'], tunneled), frozenset(), ignored)
            self.assertEqual(kept, made.network_metadata.tunneled)
