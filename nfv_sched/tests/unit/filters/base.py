# SPDX-License-Identifier: Apache-2.0
"""Filters as Nova's handler calls them, and the claims that follow.

On Nova's own HostStates, limits and claims.
"""

import collections

from nova import exception
from nova import objects
from nova.scheduler import filters as nova_filters
from nova.scheduler.filters import numa_topology_filter
from nova.virt import hardware

from nfv_sched.filters import cpu_thread_policy
from nfv_sched.filters import nfv_topology
from nfv_sched.filters import pci_numa_affinity
from nfv_sched.filters import place_numa_affinity
from nfv_sched.filters import shared_vcpu
from nfv_sched.filters import vswitch_numa_affinity
from nfv_sched.tests import base as tests_base
from nfv_sched.tests import strategies
from nfv_sched.tests.unit import clouds

PCI_STRICT = {'nfv:pci_numa_affinity': 'strict'}
PCI_PREFER = {'nfv:pci_numa_affinity': 'prefer'}


def claimed(host_topology, guest, limits):
    """Return the host node of each guest cell; None if the claim fails."""
    result = hardware.numa_fit_instance_to_host(
        strategies.clone(host_topology), strategies.clone(guest),
        provider_mapping=None, limits=limits)
    return None if result is None else [cell.id for cell in result.cells]


class FilterTestCase(tests_base.TestCase):

    def setUp(self):
        super().setUp()
        self.flags(expose_reasons='summary')
        self.topology = nfv_topology.NFVTopologyFilter()
        self.vswitch = vswitch_numa_affinity.VSwitchNUMAAffinityFilter()
        self.stock = numa_topology_filter.NUMATopologyFilter()
        self.handler = nova_filters.HostFilterHandler()
        self.filters = [self.topology, self.vswitch]

    def orders(self):
        """Sets of filters that must come to the same result."""
        return ([self.topology, self.vswitch], [self.vswitch, self.topology],
                [self.vswitch])

    def passing(self, hosts, spec, enabled=None, index=0):
        return [host.host for host in self.handler.get_filtered_objects(
            enabled or self.filters, hosts, spec, index)]

    def refusal(self, hosts, spec, enabled=None):
        return str(self.assertRaises(
            exception.NoValidHost, self.passing, hosts, spec, enabled))

    def node_of(self, host_state, guest=None):
        """Where the claim puts the guest, with the limits of the host."""
        selection = objects.Selection.from_host_state(host_state)
        return claimed(host_state.numa_topology, guest or clouds.guest(),
                       selection.limits.numa_topology)


class JointTestCase(FilterTestCase):

    def setUp(self):
        super().setUp()
        self.filters += [
            pci_numa_affinity.PCINUMAAffinityFilter(),
            shared_vcpu.SharedVCPUFilter(),
            cpu_thread_policy.CPUThreadPolicyFilter()]

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


class EnforcementTestCase(JointTestCase):

    def labels(self, host):
        """Labels of ours in the limits that a Selection carries."""
        limits = objects.Selection.from_host_state(host).limits.numa_topology
        if 'network_metadata' not in limits:
            return set()
        return {name for name in limits.network_metadata.physnets
                if name.startswith('nfv_')}


class PlaceTestCase(JointTestCase):

    def setUp(self):
        super().setUp()
        self.filters.insert(
            3, place_numa_affinity.PlaceNUMAAffinityFilter())

    @staticmethod
    def host(name='host1', switch=None, node_labels=True, devices=None,
             nodes=2, free=None, **places):
        """Return a host with places, given as NUMA nodes by name."""
        return clouds.host(
            name, devices, nodes=nodes, switch=switch, free=free,
            node_labels=node_labels, physnets={
                f'nfv_{key}': near for key, near in places.items()})

    @staticmethod
    def spec(extra_specs, **kwargs):
        return clouds.spec(extra_specs=extra_specs, **kwargs)

    def placed(self, host, spec, enabled=None):
        """Host nodes of the guest after the claim; ``None`` if refused."""
        self.flags(expose_reasons='none')
        passed = self.passing([host], spec, enabled)
        self.flags(expose_reasons='summary')
        if not passed:
            return None
        claimed = self.claimed(host, spec)
        self.assertIsNotNone(claimed, 'the claim fails')
        return claimed[0]

    def labels(self, host):
        """What the claim of a host that has passed is told."""
        limits = host.limits['numa_topology']
        if 'network_metadata' not in limits or not limits.network_metadata:
            return set()
        return set(limits.network_metadata.physnets)


class PCITestCase(JointTestCase):
    def spec(self, keys, policy='legacy', count=1, vswitch=None,
             **kwargs):
        return clouds.spec(vswitch, extra_specs=keys, devices=[
            clouds.pci_request(count, policy)], **kwargs)


class SharedVCPUTestCase(JointTestCase):

    KEYS = {'hw:cpu_policy': 'mixed', 'hw:cpu_dedicated_mask': '^0',
            'nfv:shared_vcpu': '0'}

    def host(self, usage=(0, 0), ratio=100.0, threads=1, name='host1'):
        """Four shared and four dedicated CPUs on each node."""
        topology = clouds.host_topology(
            cpus=8, switch=None, threads=threads, shared=4)
        for cell, used in zip(topology.cells, usage):
            cell.cpu_usage = used
        return strategies.host_state(topology, ratio, 1.0, name)

    def spec(self, keys=None, shared=(0,), dedicated=(1, 2), threads=None):
        guest = objects.InstanceNUMATopology(cells=[objects.InstanceNUMACell(
            id=0, cpuset=set(shared), pcpuset=set(dedicated), memory=512,
            cpu_policy='mixed', cpu_thread_policy=threads)])
        return strategies.request_spec(
            guest, None, self.KEYS if keys is None else keys)


def provide(host, spec, providers):
    """Give a host a candidate for each provider of its first PCI request.

    The devices of each node are of the provider with the number of the node.
    """
    request = spec.pci_requests.requests[0]
    for pool in host.pci_stats.pools:
        pool['rp_uuid'] = f'provider{pool["numa_node"]}'
    host.allocation_candidates = [
        {'allocations': {}, 'mappings': {
            '': [host.uuid], f'{request.request_id}-0': [f'provider{number}']}}
        for number in providers]
    return host


def looks_at(host_filter, spec):
    """Whether it refuses a host of which nothing can be said."""
    host = clouds.host()
    host.numa_topology = 'nonsense'
    return not host_filter.host_passes(host, spec)
