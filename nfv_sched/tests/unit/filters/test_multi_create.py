# SPDX-License-Identifier: Apache-2.0
"""Several servers of one request on one host."""

from nova import objects

from nfv_sched.tests.unit import clouds
from nfv_sched.tests.unit.filters import base


class TestMultiCreate(base.FilterTestCase):
    def _place(self, host, spec, index, enabled):
        if not self.passing([host], spec, enabled, index):
            return False
        host.consume_from_request(spec)
        return True

    def test_limits_serve_all_servers_placed(self):
        for enabled in self.orders():
            self.flags(expose_reasons='none')
            host = clouds.host()
            host.stats = {'num_instances': 0}
            before = host.numa_topology
            spec = clouds.spec('strict')
            self.assertTrue(self._place(host, spec, 0, enabled))
            self.assertTrue(self._place(host, spec, 1, enabled))
            self.assertFalse(self._place(host, spec, 2, enabled))
            # Nova filters once more to find alternates.
            self.assertEqual([], self.passing([host], spec, enabled, 1))
            limits = objects.Selection.from_host_state(
                host).limits.numa_topology
            self.assertEqual([1], base.claimed(before, clouds.guest(), limits))
            self.assertEqual(
                {4, 5, 6, 7}, host.numa_topology.cells[1].pinned_cpus)
            self.assertEqual(set(), host.numa_topology.cells[0].pinned_cpus)

    def test_a_refused_spill_leaves_the_limits_alone(self):
        for enabled in self.orders():
            host = clouds.host()
            before = host.numa_topology
            spec = clouds.spec('prefer')
            self.assertTrue(self._place(host, spec, 0, enabled))
            self.assertTrue(self._place(host, spec, 1, enabled))
            # The next server could be here only away from the switch. Nova
            # may choose another host for it, or look for alternates only.
            self.assertEqual(['host1'], self.passing(
                [host], spec, enabled, 2))
            limits = objects.Selection.from_host_state(
                host).limits.numa_topology
            self.assertEqual([1], base.claimed(before, clouds.guest(), limits))

    def test_a_spill_drops_the_preference(self):
        for enabled in self.orders():
            host = clouds.host()
            spec = clouds.spec('prefer')
            for index in range(3):
                self.assertTrue(self._place(host, spec, index, enabled))
            limits = objects.Selection.from_host_state(
                host).limits.numa_topology
            labels = limits.network_metadata.physnets \
                if 'network_metadata' in limits else set()
            self.assertNotIn(clouds.VSWITCH, labels)
            self.assertEqual(2, len(host.numa_topology.cells[0].pinned_cpus))
            self.assertEqual(4, len(host.numa_topology.cells[1].pinned_cpus))

    def test_labels_of_servers_that_differ_are_not_mixed(self):
        # Room for one guest on nodes 0 and 1, for another on 2 and 3; the
        # switch runs on all but one guest's nodes serve both.
        self.flags(expose_reasons='none')
        host = clouds.host(nodes=5, cpus=2, switch=(0, 1, 2, 3))
        spec = clouds.spec('strict', cells=2)
        enabled = [self.topology, self.vswitch]
        self.assertTrue(self._place(host, spec, 0, enabled))
        first = {cell.id for cell in host.numa_topology.cells
                 if cell.pinned_cpus}
        self.assertFalse(self._place(host, spec, 1, enabled))
        limits = objects.Selection.from_host_state(host).limits.numa_topology
        self.assertEqual(
            {clouds.VSWITCH, *(f'nfv_node{node}' for node in first)},
            limits.network_metadata.physnets)
