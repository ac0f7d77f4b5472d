# SPDX-License-Identifier: Apache-2.0
"""The limits that reach the claim, when others have a hand in it.

On Nova's own HostStates, limits and claims.
"""

from nova import objects
from nova.scheduler import filters as nova_filters
from nova.virt import hardware

from nfv_sched.tests import strategies
from nfv_sched.tests.unit import clouds
from nfv_sched.tests.unit.filters import base


class _DropFirst(nova_filters.BaseHostFilter):
    """Somebody else's filter, which drops the first allocation candidate."""

    def host_passes(self, host_state, spec_obj):
        del host_state.allocation_candidates[0]
        return True


class ClaimedCandidateTest(base.EnforcementTestCase):
    """The limits are those of the allocation candidate that was claimed."""

    def placed(self, *enabled):
        """A guest near its device, which is on either node.

        Nova by itself would choose node 0 for a guest that takes remote
        devices.
        """
        spec = clouds.spec(extra_specs=base.PCI_PREFER, devices=[
            clouds.pci_request(policy='preferred')])
        request, = spec.pci_requests.requests
        host = base.provide(
            clouds.host(devices={0: 1, 1: 1}), spec, (1, 0))
        before = clouds.host(devices={0: 1, 1: 1})
        self.assertEqual(['host1'], self.passing([host], spec, enabled))
        mappings = host.allocation_candidates[0]['mappings']
        guest = strategies.clone(spec.numa_topology)
        spec.requested_resources = [objects.RequestGroup(
            requester_id=name, provider_uuids=providers)
            for name, providers in mappings.items() if name]
        host.consume_from_request(spec)
        limits = objects.Selection.from_host_state(host).limits.numa_topology
        before.pci_stats.pools[:] = [
            dict(pool, rp_uuid=f'provider{pool["numa_node"]}')
            for pool in before.pci_stats.pools]
        # The claim asks Placement's mapping of the request.
        claimed = hardware.numa_fit_instance_to_host(
            before.numa_topology, guest, provider_mapping=mappings,
            limits=limits, pci_requests=[request],
            pci_stats=before.pci_stats)
        self.assertIsNotNone(claimed)
        return [cell.id for cell in claimed.cells], self.labels(host)

    def test_first(self):
        self.assertEqual(([1], {'nfv_node1'}), self.placed(*self.filters))

    def test_first_dropped_afterwards(self):
        self.assertEqual(([0], {'nfv_node0'}),
                         self.placed(*self.filters, _DropFirst()))

    def test_first_dropped_in_between(self):
        self.assertEqual(([0], {'nfv_node0'}), self.placed(
            self.filters[0], _DropFirst(), *self.filters[1:]))
