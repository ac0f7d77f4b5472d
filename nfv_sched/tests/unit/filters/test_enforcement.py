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

"""The limits that reach the claim, and what the claim makes of them later.

On Nova's own HostStates, limits and claims.
"""

import itertools

from nova import objects
from nova.pci import request as pci_request
from nova.scheduler import filters as nova_filters
from nova.virt import hardware
from oslo_serialization import jsonutils

from nfv_sched.tests import strategies
from nfv_sched.tests.unit import clouds
from nfv_sched.tests.unit.filters import test_joint


class EnforcementTestCase(test_joint.JointTestCase):

    def labels(self, host):
        """Labels of ours in the limits that a Selection carries."""
        limits = objects.Selection.from_host_state(host).limits.numa_topology
        if 'network_metadata' not in limits:
            return set()
        return {name for name in limits.network_metadata.physnets
                if name.startswith('nfv_')}


class HeldLabelsTest(EnforcementTestCase):
    """Labels that are there whether the host as it is needs them or not."""

    def test_mapping_of_a_single_guest_node(self):
        # The network holds the guest on the node already.
        host = clouds.host(physnets={'physnet0': [0]})
        spec = clouds.spec(nodes={0: 0}, network=clouds.network('physnet0'))
        self.assertEqual(['host1'], self.passing([host], spec))
        self.assertEqual({'nfv_node0'}, self.labels(host))
        # One node: there is nowhere else to go.
        host = clouds.host(nodes=1, switch=None)
        self.assertEqual(['host1'], self.passing(
            [host], clouds.spec(nodes={0: 0})))
        self.assertEqual({'nfv_node0'}, self.labels(host))

    def test_strict(self):
        for topology in ({'physnets': {'physnet0': [1]}},
                         {'switch': (0, 1), 'physnets': {'physnet0': [0, 1]}},
                         {'nodes': 1, 'switch': (0,),
                          'physnets': {'physnet0': [0]}}):
            host = clouds.host(**topology)
            spec = clouds.spec('strict', network=clouds.network('physnet0'))
            self.assertEqual(['host1'], self.passing([host], spec))
            self.assertEqual({clouds.VSWITCH}, self.labels(host))

    def test_strict_and_mapped(self):
        host = clouds.host(physnets={'physnet0': [1]})
        spec = clouds.spec('strict', nodes={0: 1},
                           network=clouds.network('physnet0'))
        self.assertEqual(['host1'], self.passing([host], spec))
        self.assertEqual({clouds.VSWITCH, 'nfv_node1'}, self.labels(host))

    def test_the_host_has_changed_since(self):
        host = clouds.host(physnets={'physnet0': [1]})
        spec = clouds.spec('strict', network=clouds.network('physnet0'))
        self.assertEqual(['host1'], self.passing([host], spec))
        host.numa_topology = clouds.host_topology(
            physnets={'physnet0': [0, 1]})
        self.assertEqual(([1], []), self.claimed(host, spec))

    def test_a_host_that_does_not_declare_them(self):
        host = clouds.host(switch=None, node_labels=False,
                           physnets={'physnet0': [1]})
        spec = clouds.spec('strict', network=clouds.network('physnet0'))
        self.assertEqual(['host1'], self.passing([host], spec))
        self.assertEqual(set(), self.labels(host))


class _DropFirst(nova_filters.BaseHostFilter):
    """Somebody else's filter, which drops the first allocation candidate."""

    def host_passes(self, host_state, spec_obj):
        del host_state.allocation_candidates[0]
        return True


class ClaimedCandidateTest(EnforcementTestCase):
    """The limits are those of the allocation candidate that was claimed."""

    def placed(self, *enabled):
        """A guest near its device, which is on either node.

        Nova by itself would choose node 0 for a guest that takes remote
        devices.
        """
        spec = clouds.spec(extra_specs=test_joint.PREFER, devices=[
            clouds.pci_request(policy='preferred')])
        request, = spec.pci_requests.requests
        host = clouds.host(devices={0: 1, 1: 1})
        for pool in host.pci_stats.pools:
            pool['rp_uuid'] = f'provider{pool["numa_node"]}'
        host.allocation_candidates = [
            {'allocations': {}, 'mappings': {
                '': [host.uuid], f'{request.request_id}-0': [provider]}}
            for provider in ('provider1', 'provider0')]
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


class UnshelveTest(EnforcementTestCase):
    """Unshelving follows the policy of the request, moves that of the alias.

    The scheduler cannot tell them apart.
    """

    def test_the_weaker_policy_counts(self):
        for alias in ('required', 'socket'):
            pci_request.get_alias_from_config.cache_clear()
            self.addCleanup(pci_request.get_alias_from_config.cache_clear)
            self.flags(alias=[jsonutils.dumps({
                'name': 'vf', 'vendor_id': '8086', 'product_id': '1515',
                'numa_policy': alias})], group='pci')
            for policy, devices, passes in (
                    ('legacy', {0: 1, 1: 1, None: 1}, False),
                    ('preferred', {0: 1, 1: 1}, False),
                    ('legacy', {0: 1, 1: 1}, True),
                    ('required', {0: 1, 1: 1, None: 1}, True)):
                host = clouds.host(devices=devices)
                spec = clouds.spec(
                    extra_specs=test_joint.STRICT, move=True,
                    devices=[clouds.pci_request(policy=policy)])
                if passes:
                    self.assertEqual(['host1'], self.passing([host], spec))
                else:
                    self.assertIn('nfv:pci_numa_affinity=strict',
                                  self.refusal([host], spec))


class IsolateTest(EnforcementTestCase):
    """Guests with several NUMA nodes whose vCPUs want cores of their own."""

    def spec(self, vcpus, vswitch):
        numbers = iter(range(sum(vcpus)))
        return strategies.request_spec(
            objects.InstanceNUMATopology(cells=[
                objects.InstanceNUMACell(
                    id=cell, cpuset=set(), memory=512,
                    pcpuset={next(numbers) for _ in range(count)},
                    cpu_policy='dedicated', cpu_thread_policy='isolate')
                for cell, count in enumerate(vcpus)]),
            None, {'nfv:vswitch_numa_affinity': vswitch} if vswitch else {})

    def test_strict(self):
        for nodes, switch, vcpus, passes in (
                (4, (0, 2), (2, 2), False), (4, (0, 1, 2), (1, 1, 1), False),
                (4, (0, 1, 2, 3), (2, 2), True), (3, (0, 2), (2, 2), True),
                (2, (0, 1), (2, 1), True), (3, (0, 1, 2), (1, 2), True),
                (5, (0, 1, 2, 3, 4), (1, 2), True),
                (3, (0, 1), (1, 2), False), (3, (0, 1, 2), (1, 1, 2), False)):
            host = clouds.host(nodes=nodes, switch=switch)
            spec = self.spec(vcpus, 'strict')
            if not passes:
                self.assertIn('pins no CPUs of other NUMA nodes',
                              self.refusal([host], spec))
                continue
            self.assertEqual(['host1'], self.passing([host], spec))
            placed, _devices = self.claimed(host, spec)
            self.assertLessEqual(set(placed), set(switch))

    def test_a_preference_costs_no_host(self):
        for nodes, switch, vcpus in itertools.product(
                (2, 3, 4, 5), ((0,), (0, 1), (1,)),
                ((2, 2), (1, 2), (1, 1, 2), (2, 1, 1))):
            if len(vcpus) > nodes:
                continue
            host = clouds.host(nodes=nodes, switch=switch)
            self.assertEqual(['host1'], self.passing(
                [host], self.spec(vcpus, 'prefer')))
            # More than one label may lead the claim astray.
            if nodes > 3 or len(set(vcpus)) > 1 and nodes > len(vcpus):
                self.assertLess(len(self.labels(host)), 2)


class SharedVCPUTest(EnforcementTestCase):
    """A shared vCPU in a guest of several NUMA nodes."""

    def test_only_some_host_nodes_have_shared_cpus(self):
        topology = clouds.host_topology(nodes=4, switch=None)
        for cell in topology.cells:
            cell.network_metadata = objects.NetworkMetadata(
                physnets=set(), tunneled=False)
        shared = topology.cells[2]
        shared.cpuset, shared.pcpuset = {8, 9}, {10, 11}
        guest = objects.InstanceNUMATopology(cells=[
            objects.InstanceNUMACell(
                id=number, cpuset=cpuset, pcpuset=pcpuset, memory=512,
                cpu_policy='mixed')
            for number, (cpuset, pcpuset) in enumerate(
                (({0}, {1, 2}), (set(), {3, 4})))])
        host = strategies.host_state(topology, 16.0, 1.0)
        spec = strategies.request_spec(
            guest, None, {'nfv:shared_vcpu': '0', 'hw:cpu_policy': 'mixed'})
        self.assertEqual(['host1'], self.passing([host], spec))
        nodes, _devices = self.claimed(host, spec)
        self.assertEqual(2, nodes[0])
