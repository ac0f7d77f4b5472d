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
"""PCI affinity, shared vCPUs and thread policies, alone and together."""

import collections
import itertools
import re

from nova import exception
from nova import objects
from nova.pci import request as pci_request
from nova.scheduler import filters as nova_filters
from nova.scheduler.filters import numa_topology_filter
from nova.scheduler.filters import pci_passthrough_filter
from nova.scheduler import weights as nova_weights
from nova.virt import hardware
from oslo_serialization import jsonutils

from nfv_sched.filters import cpu_thread_policy
from nfv_sched.filters import nfv_topology
from nfv_sched.filters import pci_numa_affinity
from nfv_sched.filters import shared_vcpu
from nfv_sched.filters import vswitch_numa_affinity
from nfv_sched.tests import base
from nfv_sched.tests import strategies
from nfv_sched.tests.unit import clouds
from nfv_sched.weights import pci_numa_affinity as pci_weigher
from nfv_sched.weights import shared_vcpu as shared_weigher

STRICT = {'nfv:pci_numa_affinity': 'strict'}
PREFER = {'nfv:pci_numa_affinity': 'prefer'}


class JointTestCase(base.TestCase):

    def setUp(self):
        super().setUp()
        self.flags(expose_reasons='summary')
        self.handler = nova_filters.HostFilterHandler()
        self.filters = [
            nfv_topology.NFVTopologyFilter(),
            vswitch_numa_affinity.VSwitchNUMAAffinityFilter(),
            pci_numa_affinity.PCINUMAAffinityFilter(),
            shared_vcpu.SharedVCPUFilter(),
            cpu_thread_policy.CPUThreadPolicyFilter()]

    def passing(self, hosts, spec, enabled=None):
        return [host.host for host in self.handler.get_filtered_objects(
            enabled or self.filters, hosts, spec, 0)]

    def refusal(self, hosts, spec, enabled=None):
        return str(self.assertRaises(
            exception.NoValidHost, self.passing, hosts, spec, enabled))

    def claimed(self, host, spec):
        """Host nodes of the guest, and of its devices, after the claim."""
        limits = objects.Selection.from_host_state(
            host).limits.numa_topology
        requests = spec.pci_requests.requests
        mapping = host.allocation_candidates[0]['mappings']
        placed = hardware.numa_fit_instance_to_host(
            strategies.clone(host.numa_topology),
            spec.numa_topology.obj_clone(), provider_mapping=mapping,
            limits=limits, pci_requests=requests, pci_stats=host.pci_stats)
        if placed is None:
            return None
        before = self.counts(host)
        if requests:
            host.pci_stats.apply_requests(requests, mapping, placed.cells)
        after = self.counts(host)
        return ([cell.id for cell in placed.cells],
                sorted(node for node in before
                       for _ in range(before[node] - after[node])))

    @staticmethod
    def counts(host):
        counts = collections.Counter()
        for pool in host.pci_stats.pools if host.pci_stats else ():
            counts[pool['numa_node']] += pool['count']
        return counts


class TestPCI(JointTestCase):

    def spec(self, keys, policy='legacy', count=1, vswitch=None,
             **kwargs):
        return clouds.spec(vswitch, extra_specs=keys, devices=[
            clouds.pci_request(count, policy)], **kwargs)

    def test_strict(self):
        for policy in ('legacy', 'required'):
            host, spec = clouds.host(devices={1: 2}), self.spec(
                STRICT, policy)
            self.assertEqual(['host1'], self.passing([host], spec))
            self.assertEqual(([1], [1]), self.claimed(host, spec))

    def test_strict_without_labels(self):
        host = clouds.host(devices={1: 2}, switch=None, node_labels=False)
        spec = self.spec(STRICT)
        self.assertEqual(['host1'], self.passing([host], spec))
        self.assertEqual(([1], [1]), self.claimed(host, spec))

    def test_strict_with_local_devices_gone(self):
        host = clouds.host(devices={1: 2}, free={1: 1})
        self.assertIn(
            '1 VF on one NUMA node with room needed, 0 free on NUMA node 0 ',
            self.refusal([host], self.spec(STRICT)))

    def test_default_reason(self):
        """It tells nothing of which NUMA node has room, or devices."""
        self.flags(expose_reasons='policy')
        texts = {self.refusal([clouds.host(
            devices={with_devices: 2}, free={1 - with_devices: 2,
                                             with_devices: 1})],
            self.spec(STRICT)) for with_devices in (0, 1)}
        self.assertEqual({
            'No valid host was found. PCI devices: 1 VF on one NUMA node with '
            'room needed, no host has it'}, texts)

    def test_default_reason_has_the_numbers_of_the_request_only(self):
        """Whatever the host has, and has left."""
        self.flags(expose_reasons='policy')
        seen = collections.Counter()
        for cells, nodes, free, devices, switch, labels in itertools.product(
                (1, 2), (1, 3), (5, 6, 11), (4, 9, None), (None, (0,), (0, 1)),
                (True, False)):
            hosts = [clouds.host(
                f'host{number}', nodes=nodes, cpus=13, switch=switch and [
                    node for node in switch if node < nodes],
                node_labels=labels, free={number % nodes: free},
                devices=devices and {nodes - 1: devices})
                for number in range(2)]
            for mapped in ({}, {0: 1}):
                try:
                    self.passing(hosts, clouds.spec(
                        'strict', cells=cells, vcpus=7, nodes=mapped,
                        extra_specs=STRICT,
                        devices=[clouds.pci_request(8, 'legacy')]))
                except exception.NoValidHost as error:
                    text = error.kwargs['reason']
                else:
                    continue
                seen[text] += 1
                # What was asked for, in words and in extra specs.
                for own in ('nfv:numa_node.0=1', 'nfv_node0, nfv_node1',
                            '7 dedicated CPUs', '8 VFs', 'host NUMA node 1 ',
                            f'{cells} NUMA nodes', f'{cells} host NUMA nodes'):
                    text = text.replace(own, '')
                self.assertNotRegex(re.sub(r'\+\d+ more', '', text), r'\d')
        self.assertGreater(len(seen), 10)

    def test_reason_names_the_policy(self):
        host = clouds.host(devices={0: 3, 1: 8})
        self.assertIn(
            'nfv:pci_numa_affinity=strict: 8 VFs on one NUMA node with room '
            'needed, 3 free on NUMA node 0', self.refusal(
                [host], self.spec(STRICT, 'preferred', 8, nodes={0: 0})))

    def test_strict_and_no_numa_information(self):
        for devices in ({None: 2}, {None: 2, 0: 1, 1: 1}):
            host = clouds.host(devices=devices)
            self.refusal([host], self.spec(STRICT, count=1))
        self.assertIn('NUMA information', self.refusal(
            [clouds.host(devices={None: 2, 0: 1, 1: 1})], self.spec(STRICT)))
        self.assertEqual(['host1'], self.passing(
            [clouds.host(devices={None: 2}, nodes=1, switch=None)],
            self.spec(STRICT)))

    def test_strict_and_preferred(self):
        # Nova would take a remote device if the local one is gone.
        host = clouds.host(devices={0: 1, 1: 1})
        spec = self.spec(STRICT, 'preferred')
        self.assertIn('hw:pci_numa_affinity_policy=required needed',
                      self.refusal([host], spec))
        self.flags(strict_enforcement='predicted')
        host = clouds.host(devices={0: 1, 1: 1})
        self.assertEqual(['host1'], self.passing(
            [host], self.spec(STRICT, 'preferred')))

    def test_strict_and_preferred_with_pci_in_placement(self):
        # The allocation names the device, the label holds the guest there.
        spec = self.spec(STRICT, 'preferred')
        host = self.placement_host(spec, {0: 1, 1: 1}, node_labels=True)
        self.assertEqual(['host1'], self.passing([host], spec))
        self.assertEqual(2, len(host.allocation_candidates))
        host.allocation_candidates.reverse()
        self.assertEqual(['host1'], self.passing([host], spec))
        self.assertEqual(([1], [1]), self.claimed(host, spec))
        spec = self.spec(STRICT, 'preferred')
        self.refusal([self.placement_host(
            spec, {0: 1, 1: 1}, node_labels=False, switch=None)], spec)

    def test_strict_with_fewer_devices_than_asked_for(self):
        # Nova leaves out the provider on the other node, and the guest gets
        # one device instead of two.
        spec = self.spec(STRICT, 'required', 2)
        request = spec.pci_requests.requests[0]
        host = self.placement_host(spec, {0: 2, 1: 2})
        host.allocation_candidates = [{'allocations': {}, 'mappings': {
            f'{request.request_id}-0': ['provider0'],
            f'{request.request_id}-1': ['provider1']}}]
        self.refusal([host], spec)

    def test_strict_and_socket(self):
        # Nova takes no device without NUMA information for these.
        for sockets, passes in (((0, 1), True), ((0, 0), False)):
            host = clouds.host(devices={None: 2, 0: 1, 1: 1})
            for cell, socket in zip(host.numa_topology.cells, sockets):
                cell.socket = socket
            spec = self.spec(STRICT, 'socket')
            if passes:
                self.assertEqual(['host1'], self.passing([host], spec))
                self.assertEqual(
                    1, len(set(map(tuple, self.claimed(host, spec)))))
            else:
                self.refusal([host], spec)

    def placement_host(self, spec, devices, **topology):
        """A host with one allocation candidate for each node's device."""
        host = clouds.host(devices=devices, **topology)
        request = spec.pci_requests.requests[0]
        for pool in host.pci_stats.pools:
            pool['rp_uuid'] = f'provider{pool["numa_node"]}'
        host.allocation_candidates = [
            {'allocations': {}, 'mappings': {
                '': [host.uuid],
                f'{request.request_id}-0': [f'provider{node}']}}
            for node in devices]
        return host

    def test_the_claim_of_a_move_knows_the_alias_only(self):
        # The policy of the flavor is in the request, but the claim makes the
        # requests anew from the aliases.
        for alias, policy, passes in (
                ('required', 'required', True), ('legacy', 'required', True),
                ('preferred', 'required', False),
                ('socket', 'required', False), (None, 'required', False),
                ('preferred', 'preferred', False)):
            pci_request.get_alias_from_config.cache_clear()
            self.addCleanup(pci_request.get_alias_from_config.cache_clear)
            self.flags(alias=[jsonutils.dumps({
                'name': 'vf' if alias else 'other', 'vendor_id': '8086',
                'product_id': '1515', 'numa_policy': alias or 'required'})],
                group='pci')
            host = clouds.host(devices={0: 2, 1: 1})
            for cell in host.numa_topology.cells:
                cell.socket = 0
            spec = self.spec(STRICT, policy, move=True)
            if passes:
                self.assertEqual(['host1'], self.passing([host], spec))
            else:
                self.assertIn('aliases', self.refusal([host], spec))

    def test_placement_does_not_fix_the_device_of_a_move(self):
        pci_request.get_alias_from_config.cache_clear()
        self.addCleanup(pci_request.get_alias_from_config.cache_clear)
        self.flags(alias=[jsonutils.dumps({
            'name': 'vf', 'vendor_id': '8086', 'product_id': '1515',
            'numa_policy': 'preferred'})], group='pci')
        spec = self.spec(STRICT, 'preferred', move=True)
        self.assertIn('aliases', self.refusal(
            [self.placement_host(spec, {0: 1, 1: 1})], spec))

    def test_candidates_that_break_strict_are_dropped(self):
        spec = self.spec(STRICT, vswitch='strict')
        host = self.placement_host(spec, {0: 1, 1: 1})
        self.assertEqual(['host1'], self.passing([host], spec))
        self.assertEqual(1, len(host.allocation_candidates))
        self.assertEqual(([1], [1]), self.claimed(host, spec))

    def test_local_candidate_first(self):
        # One node has the devices of two kinds, the other those of one.
        spec = self.spec(PREFER, 'preferred')
        other = clouds.pci_request(1, 'preferred', product_id='1572')
        spec.pci_requests.requests.append(other)
        request = spec.pci_requests.requests[0]
        host = clouds.host(devices={0: 1, 1: 1})
        host.pci_stats.pools.append(dict(
            host.pci_stats.pools[1], product_id='1572'))
        for number, pool in enumerate(host.pci_stats.pools):
            pool['rp_uuid'] = f'provider{number}'
        host.allocation_candidates = [
            {'allocations': {}, 'mappings': {
                f'{request.request_id}-0': [f'provider{number}'],
                f'{other.request_id}-0': ['provider2']}}
            for number in (0, 1)]
        self.assertEqual(['host1'], self.passing([host], spec))
        self.assertEqual(2, len(host.allocation_candidates))
        self.assertEqual(([1], [1, 1]), self.claimed(host, spec))

    def test_order_of_candidates_is_kept_otherwise(self):
        spec = self.spec({}, 'legacy')
        host = self.placement_host(spec, {1: 1, 0: 1})
        before = list(host.allocation_candidates)
        self.assertEqual(['host1'], self.passing([host], spec))
        self.assertEqual(before, host.allocation_candidates)

    def test_preferred_and_several_candidates(self):
        """What Nova's search for one leaves behind counts for the next."""
        host = objects.NUMATopology(cells=[objects.NUMACell(
            id=node, cpuset={2 * node, 2 * node + 1}, pcpuset=set(),
            memory=8192, cpu_usage=0, memory_usage=0, pinned_cpus=set(),
            siblings=[{2 * node}, {2 * node + 1}], mempages=pages, socket=0)
            for node, pages in enumerate(([], [], [
                objects.NUMAPagesTopology(
                    size_kb=4, total=8192 * 256, used=0, reserved=0)]))])
        guest = objects.InstanceNUMATopology(cells=[
            objects.InstanceNUMACell(
                id=index, cpuset=cpuset, pcpuset=set(), memory=128)
            for index, cpuset in enumerate(({0}, {1, 2}))])
        for topology in (numa_topology_filter.NUMATopologyFilter(),
                         nfv_topology.NFVTopologyFilter()):
            state = strategies.host_state(
                strategies.clone(host), 4.0, 1.5, candidates=[
                    {'allocations': {}, 'mappings': {'': [strategies.ROOT]}}
                    for _ in range(3)])
            state.pci_stats = clouds.pci_stats(state.numa_topology, {0: 1})
            spec = strategies.request_spec(
                strategies.clone(guest), None, {},
                pci=[clouds.pci_request(policy='preferred')])
            self.assertTrue(topology.host_passes(state, spec))
            self.assertTrue(pci_passthrough_filter.PciPassthroughFilter()
                            .host_passes(state, spec))

    def test_prefer_picks_the_node(self):
        # Node 1 has more devices in all, and Nova tries it first.
        host = clouds.host(devices={0: 1, 1: 0})
        host.pci_stats.pools.append({
            'vendor_id': '8086', 'product_id': '1572', 'numa_node': 1,
            'count': 4, 'dev_type': 'type-PCI'})
        spec = self.spec(PREFER, 'preferred')
        self.assertEqual(['host1'], self.passing([host], spec))
        self.assertEqual(
            {'nfv_node0'},
            host.limits['numa_topology'].network_metadata.physnets)

    def test_preference_of_nova_does_not_steer(self):
        """Without a key of ours the claim gets what stock Nova sends."""
        for move in (False, True):
            spec = self.spec({}, 'preferred', network=clouds.network(
                'physnet0', tunneled=True), move=move)
            ours, stock = [clouds.host(devices={0: 1, 1: 0}, tunnel=(1,),
                                       physnets={'physnet0': [0, 1]})
                           for _ in range(2)]
            self.assertEqual(['host1'], self.passing([ours], spec))
            numa_topology_filter.NUMATopologyFilter().host_passes(stock, spec)
            self.assertEqual(
                stock.limits['numa_topology'].obj_to_primitive(),
                ours.limits['numa_topology'].obj_to_primitive())
            # It still ranks: the other host can give a device nearby.
            near = clouds.host('near', devices={0: 1, 1: 1}, tunnel=(0, 1))
            self.assertEqual(['near'], self.passing([near], spec))
            weights = pci_weigher.PCINUMAAffinityWeigher().weigh_objects(
                [nova_weights.WeighedHost(each, 0) for each in (ours, near)],
                spec)
            self.assertEqual([0.0, 1.0], weights)

    def test_prefer_takes_remote_devices(self):
        host = clouds.host(devices={1: 2}, free={1: 1})
        spec = self.spec(PREFER, 'preferred')
        self.assertEqual(['host1'], self.passing([host], spec))
        self.assertEqual(([0], [1]), self.claimed(host, spec))

    def test_guest_without_numa_topology(self):
        self.assertIn('set hw:numa_nodes', self.refusal(
            [clouds.host(devices={0: 1})], self.spec(STRICT, numa=False)))
        self.assertEqual(['host1'], self.passing(
            [clouds.host(devices={0: 1}, nodes=1)],
            self.spec(STRICT, numa=False)))
        self.assertEqual(['host1'], self.passing(
            [clouds.host(devices={0: 1})], self.spec(PREFER, numa=False)))

    def test_no_devices_asked_for(self):
        self.assertEqual(['host1'], self.passing(
            [clouds.host()], clouds.spec(extra_specs=STRICT)))

    def test_weigher(self):
        hosts = [clouds.host('none', devices={1: 1}, free={1: 1}),
                 clouds.host('local', devices={0: 1})]
        for keys in (PREFER, {}):
            spec = self.spec(keys, 'preferred')
            weigher = pci_weigher.PCINUMAAffinityWeigher()
            self.assertEqual([0.0, 1.0], [
                weigher._weigh_object(host, spec) for host in hosts])
        spec = self.spec({}, 'legacy')
        self.assertEqual([0.0, 0.0], [
            weigher._weigh_object(host, spec) for host in hosts])

    def test_weigher_outweighs_resources(self):
        hosts = [clouds.host('none', devices={1: 1}, free={1: 1}),
                 clouds.host('local', devices={0: 1})]
        hosts[0].free_ram_mb = 500000
        handler = nova_weights.HostWeightHandler()
        weighers = [cls() for cls in handler.get_matching_classes(
            ['nova.scheduler.weights.all_weighers',
             'nfv_sched.weights.all_weighers'])]
        spec = self.spec(PREFER, 'preferred')
        self.assertEqual('local', handler.get_weighed_objects(
            weighers, hosts, spec)[0].obj.host)


class TestTogether(JointTestCase):
    """Each need alone can be met; what counts is all of them at once."""

    def test_switch_and_device(self):
        for switch, device, free, node in (
                ((0,), 0, {}, 0), ((1,), 1, {}, 1), ((0, 1), 0, {}, 0),
                ((0, 1), 1, {}, 1), ((0,), 1, {}, None), ((1,), 0, {}, None),
                ((0, 1), 1, {1: 1}, None)):
            results = set()
            for order in itertools.permutations(self.filters[:3]):
                self.flags(expose_reasons='none')
                host = clouds.host(
                    devices={device: 1}, switch=switch, free=free)
                spec = clouds.spec('strict', extra_specs=STRICT,
                                   devices=[clouds.pci_request()])
                passed = self.passing([host], spec, list(order))
                results.add(bool(passed))
                if passed:
                    self.assertEqual(
                        ([node], [node]), self.claimed(host, spec))
            self.assertEqual({node is not None}, results)

    def test_mapping_and_device(self):
        for node in (0, 1):
            spec = clouds.spec(nodes={0: node}, extra_specs=STRICT,
                               devices=[clouds.pci_request()])
            host = clouds.host(devices={1: 1})
            if node:
                self.assertEqual(['host1'], self.passing([host], spec))
                self.assertEqual(([1], [1]), self.claimed(host, spec))
            else:
                self.refusal([host], spec)

    def test_prefer_gives_way_to_strict(self):
        host = clouds.host(devices={0: 1}, switch=(1,))
        spec = clouds.spec('prefer', extra_specs=STRICT,
                           devices=[clouds.pci_request()])
        self.assertEqual(['host1'], self.passing([host], spec))
        self.assertEqual(([0], [0]), self.claimed(host, spec))

    def test_enabled_filters_count_from_the_first(self):
        """But each refuses by its own rule."""
        nova_filters_enabled = [
            'NFVTopologyFilter', 'PCINUMAAffinityFilter']
        self.flags(enabled_filters=nova_filters_enabled,
                   group='filter_scheduler')
        host = clouds.host(devices={0: 1})
        spec = clouds.spec(nodes={0: 1}, extra_specs=STRICT,
                           devices=[clouds.pci_request(1, 'preferred')])
        self.assertEqual(
            ['host1'], self.passing([host], spec, self.filters[:1]))
        self.assertIn('nfv:pci_numa_affinity=strict', self.refusal(
            [host], spec, self.filters))


class TestSharedVCPU(JointTestCase):

    KEYS = {'hw:cpu_policy': 'mixed', 'hw:cpu_dedicated_mask': '^0',
            'nfv:shared_vcpu': '0'}

    def host(self, usage=(0, 0), ratio=100.0, threads=1, name='host1'):
        """Four shared and four dedicated CPUs on each node."""
        topology = clouds.host_topology(cpus=8, switch=None)
        for cell, used in zip(topology.cells, usage):
            ids = sorted(cell.pcpuset)
            cell.cpuset, cell.pcpuset = set(ids[:4]), set(ids[4:])
            cell.cpu_usage = used
            cell.siblings = [set(ids[i:i + threads])
                             for i in range(0, 8, threads)]
        return strategies.host_state(topology, ratio, 1.0, name)

    def spec(self, keys=None, shared=(0,), dedicated=(1, 2), threads=None):
        guest = objects.InstanceNUMATopology(cells=[objects.InstanceNUMACell(
            id=0, cpuset=set(shared), pcpuset=set(dedicated), memory=512,
            cpu_policy='mixed', cpu_thread_policy=threads)])
        return strategies.request_spec(
            guest, None, self.KEYS if keys is None else keys)

    def test_placed(self):
        host, spec = self.host(), self.spec()
        self.assertEqual(['host1'], self.passing([host], spec))
        self.assertEqual(
            16.0, host.limits['numa_topology'].cpu_allocation_ratio)

    def test_cap_is_per_core(self):
        # Node 0 is full at 16 for each core.
        for threads, full in ((1, 64), (2, 32), (4, 16)):
            host = self.host((full, full - 1), threads=threads)
            spec = self.spec()
            self.assertEqual(['host1'], self.passing([host], spec))
            self.assertEqual(([1], []), self.claimed(host, spec))
            host = self.host((full, full), threads=threads)
            self.assertIn(
                'nfv:shared_vcpu=0: room for 1 on the shared CPUs of one '
                'NUMA node needed, 0 free',
                self.refusal([host], self.spec()))
            self.flags(enabled_filters=[
                'NFVTopologyFilter', 'SharedVCPUFilter'],
                group='filter_scheduler')
            host, spec = self.host((full, full), threads=threads), self.spec()
            self.assertEqual(
                ['host1'], self.passing([host], spec, self.filters[:1]))
            self.assertIn('nfv:shared_vcpu=0: room', self.refusal(
                [host], spec, self.filters))

    def test_cap_by_option_and_aggregate(self):
        self.flags(shared_vcpus_per_core=2.0)
        self.refusal([self.host((8, 8))], self.spec())
        host = self.host((8, 8))
        host.aggregates = [objects.Aggregate(
            metadata={'shared_vcpus_per_core': '3'})]
        self.assertEqual(['host1'], self.passing([host], self.spec()))
        host = self.host((8, 8))
        host.aggregates = [objects.Aggregate(
            metadata={'shared_vcpus_per_core': 'many'})]
        self.refusal([host], self.spec())
        self.flags(shared_vcpus_per_core=0)
        self.assertEqual(
            ['host1'], self.passing([self.host((300, 300))], self.spec()))

    def test_cap_beside_the_filter_of_nova(self):
        stock = numa_topology_filter.NUMATopologyFilter()
        for enabled in ([stock, self.filters[3]], [self.filters[3], stock]):
            host, spec = self.host((64, 63)), self.spec()
            self.assertEqual(['host1'], self.passing([host], spec, enabled))
            self.assertEqual(
                16.0, host.limits['numa_topology'].cpu_allocation_ratio)
            self.assertEqual(([1], []), self.claimed(host, spec))

    def test_ratio_of_the_host_is_never_raised(self):
        host, spec = self.host(ratio=2.0), self.spec()
        self.assertEqual(['host1'], self.passing([host], spec))
        self.assertEqual(
            2.0, host.limits['numa_topology'].cpu_allocation_ratio)

    def test_refused(self):
        for text, spec in (
                ('hw:cpu_policy=mixed', self.spec(
                    {'hw:cpu_policy': 'dedicated', 'nfv:shared_vcpu': '0'})),
                ('hw:cpu_dedicated_mask=^2', self.spec(
                    {'nfv:shared_vcpu': '2'})),
                ('vCPU 1 is dedicated', self.spec(
                    {**self.KEYS, 'nfv:shared_vcpu': '1'})),
                ('no such vCPU', self.spec(
                    {**self.KEYS, 'nfv:shared_vcpu': '7'})),
                ('a dedicated vCPU beside', self.spec(dedicated=())),
                ('isolate or require', self.spec(threads='isolate')),
                ('isolate or require', self.spec(threads='require'))):
            self.assertIn(text, self.refusal([self.host()], spec))

    def test_no_shared_cpus_on_the_node(self):
        # Nova's search takes one guest cell for another, and would accept.
        host = self.host()
        for cell in host.numa_topology.cells:
            cell.cpuset = set()
        guest = objects.InstanceNUMATopology(cells=[
            objects.InstanceNUMACell(
                id=index, cpuset=shared, pcpuset=dedicated, memory=512,
                cpu_policy='mixed')
            for index, (shared, dedicated) in enumerate((
                (set(), {1}), ({0}, {2})))])
        self.refusal([host], strategies.request_spec(guest, None, self.KEYS))

    def test_weigher(self):
        weigher = shared_weigher.SharedVCPUWeigher()
        idle, used = self.host(), self.host((32, 32), name='used')
        spec = self.spec()
        self.assertAlmostEqual(1 - 1 / 64, weigher._weigh_object(idle, spec))
        self.assertAlmostEqual(1 - 33 / 64, weigher._weigh_object(used, spec))
        self.assertEqual(0.0, weigher._weigh_object(
            self.host(), clouds.spec()))


class TestThreads(JointTestCase):

    def host(self, threads, legacy=False):
        topology = clouds.host_topology(switch=None)
        for cell in topology.cells:
            ids = sorted(cell.pcpuset)
            cell.siblings = [set(ids[i:i + threads])
                             for i in range(0, 4, threads)]
            if legacy:
                cell.cpuset = set(ids)
        return strategies.host_state(topology)

    def spec(self, policy, vcpus):
        guest = clouds.guest(vcpus=vcpus)
        guest.cells[0].cpu_thread_policy = policy
        return strategies.request_spec(guest, None, {
            'hw:cpu_policy': 'dedicated', 'hw:cpu_thread_policy': policy})

    def test_table(self):
        for policy, vcpus, threads, legacy, runs in (
                ('require', 2, 1, False, False),
                ('require', 3, 1, False, False),
                ('isolate', 3, 1, False, True),
                ('prefer', 2, 1, False, True),
                ('require', 3, 2, False, True),
                ('require', 4, 2, False, True),
                ('isolate', 2, 2, False, False),
                ('isolate', 2, 2, True, True),
                ('isolate', 3, 2, True, False)):
            host, spec = self.host(threads, legacy), self.spec(policy, vcpus)
            if runs:
                self.assertEqual(['host1'], self.passing([host], spec))
                self.assertIsNotNone(self.claimed(host, spec))
                continue
            text = self.refusal([host], spec)
            if not legacy:
                self.assertIn(f'hw:cpu_thread_policy={policy}', text)
                alone = self.filters[-1:]
                self.assertEqual(text, self.refusal(
                    [self.host(threads)], self.spec(policy, vcpus), alone))

    def test_guests_that_are_not_pinned(self):
        guest = objects.InstanceNUMATopology(cells=[objects.InstanceNUMACell(
            id=0, cpuset={0, 1}, pcpuset=set(), memory=512)])
        spec = strategies.request_spec(guest, None, {
            'hw:cpu_thread_policy': 'isolate'})
        self.assertEqual(['host1'], self.passing(
            [self.host(2)], spec, self.filters[-1:]))
