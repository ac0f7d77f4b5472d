# SPDX-License-Identifier: Apache-2.0
"""Time per host of the whole chain of NUMA filters and weighers.

Stock Nova's ``NUMATopologyFilter`` and ``PciPassthroughFilter`` against the
filters and weighers of nfv-sched, on the same hosts for the same guest in one
run; the ratio is what counts, the machine's speed cancels out.  What is
printed is CPU time, the best of several rounds.

The hosts have two NUMA nodes of 32 CPUs, half of them taken at random, 96
pages of 1 GiB and 8 VFs each; the guest wants 8 dedicated CPUs, 8 GiB in 1 GiB
pages, and one VF.  *topology + PCI* is ``NFVTopologyFilter`` and
``PCINUMAAffinityFilter`` alone; *chain* is all filters and weighers of
nfv-sched but those of network load, for which there is ``network.py``.

Hosts that the guest fits alike are decided about once.  So there are two kinds
of them: *alike*, with half of everything in use, and *mixed*, with random
numbers of free CPUs, pages and VFs, some of them full.

Usage: python benchmarks/chain.py [--hosts 100,1000,10000] [--rounds 5]
                                  [--without NAME,...] [--profile] [--quick]
"""

import argparse
import cProfile
import gc
import itertools
import logging
import math
import pstats
import random
import sys
import time
import warnings

warnings.simplefilter('ignore')

import nova.conf  # noqa: E402
from nova import objects  # noqa: E402
from nova.pci import stats  # noqa: E402
from nova.scheduler.filters import numa_topology_filter  # noqa: E402
from nova.scheduler.filters import pci_passthrough_filter  # noqa: E402
from nova.scheduler import host_manager  # noqa: E402
from nova.scheduler import weights as nova_weights  # noqa: E402

from nfv_sched import filters  # noqa: E402
from nfv_sched.filters import network as network_filters  # noqa: E402
from nfv_sched.filters import nfv_topology  # noqa: E402
from nfv_sched.filters import pci_numa_affinity  # noqa: E402
from nfv_sched import weights  # noqa: E402
from nfv_sched.weights import network as network_weights  # noqa: E402

NODES = 2
CPUS = 32
VFS = 8

REQUESTS = {
    'no key of ours': {},
    'PCI strict': {'nfv:pci_numa_affinity': 'strict'},
    'PCI and vSwitch strict': {
        'nfv:pci_numa_affinity': 'strict',
        'nfv:vswitch_numa_affinity': 'strict'},
    'PCI and vSwitch prefer': {
        'nfv:pci_numa_affinity': 'prefer',
        'nfv:vswitch_numa_affinity': 'prefer'},
}


def topology(rng, mixed):
    """A host topology with the switch on node 0.

    :param mixed: whether its usage is random
    """
    cells = []
    for index in range(NODES):
        ids = list(range(index * CPUS, (index + 1) * CPUS))
        cells.append(objects.NUMACell(
            id=index, socket=index, cpuset=set(), pcpuset=set(ids),
            memory=131072, cpu_usage=0, memory_usage=0,
            pinned_cpus=set(rng.sample(
                ids, rng.randrange(CPUS + 1) if mixed else CPUS // 2)),
            siblings=[set(ids[i:i + 2]) for i in range(0, CPUS, 2)],
            mempages=[
                objects.NUMAPagesTopology(
                    size_kb=4, total=8 * 1024 * 1024, used=0, reserved=0),
                objects.NUMAPagesTopology(
                    size_kb=1048576, total=96, reserved=0,
                    used=rng.randrange(97) if mixed else 48)],
            network_metadata=objects.NetworkMetadata(
                physnets={f'nfv_node{index}', 'nfv_vswitch'} if index == 0
                else {f'nfv_node{index}'}, tunneled=False)))
    return objects.NUMATopology(cells=cells)


def host_states(topologies, mixed=False):
    """Fresh HostStates, as Nova makes them for every request."""
    states, rng = [], random.Random(2)
    for index, numa_topology in enumerate(topologies):
        state = host_manager.HostState(f'host{index}', 'node', 'cell')
        state.numa_topology = numa_topology
        state.pci_stats = stats.PciDeviceStats(
            numa_topology, objects.PciDevicePoolList(objects=[
                objects.PciDevicePool(
                    vendor_id='8086', product_id='1515', numa_node=node,
                    count=rng.randrange(VFS + 1) if mixed else VFS,
                    tags={'dev_type': 'type-VF',
                          'physical_network': 'physnet4'})
                for node in range(NODES)]))
        state.cpu_allocation_ratio = 1.0
        state.ram_allocation_ratio = 1.0
        state.allocation_candidates = [{'mappings': {'': ['provider']}}]
        state.aggregates = []
        state.stats = {}
        states.append(state)
    return states


def request(extra_specs):
    """A request as the scheduler gets it."""
    return objects.RequestSpec(
        flavor=objects.Flavor(name='guest', extra_specs={
            'hw:cpu_policy': 'dedicated', 'hw:mem_page_size': '1GB',
            'pci_passthrough:alias': 'vf:1', **extra_specs}),
        image=objects.ImageMeta(properties=objects.ImageMetaProps()),
        numa_topology=objects.InstanceNUMATopology(cells=[
            objects.InstanceNUMACell(
                id=0, cpuset=set(), pcpuset=set(range(8)), memory=8192,
                pagesize=1048576, cpu_policy='dedicated',
                cpu_thread_policy=None)]),
        pci_requests=objects.InstancePCIRequests(requests=[
            objects.InstancePCIRequest(
                count=1, alias_name='vf', numa_policy='legacy',
                spec=[{'vendor_id': '8086', 'product_id': '1515',
                       'dev_type': 'type-VF'}],
                request_id='2f1d7f8e-0f6b-4e0a-8d0e-1f3f1c2b7a11')]),
        scheduler_hints={}, requested_resources=[],
        instance_uuid='5f0c6e0e-6b2f-4a4b-8d7e-0f9c1a2b3c4d')


def seconds(topologies, extra_specs, filter_classes, weigher_classes, rounds,
            mixed=False):
    """Best CPU time of one pass over the hosts, and how many passed."""
    handler = nova_weights.HostWeightHandler()
    best, passed = math.inf, 0
    nova.conf.CONF.set_override(
        'enabled_filters', [cls.__name__ for cls in filter_classes],
        'filter_scheduler')
    for _ in range(rounds):
        states = host_states(topologies, mixed)
        spec = request(extra_specs)
        enabled = [cls() for cls in filter_classes]
        weighers = [cls() for cls in weigher_classes]
        # Or a collection of what was made before falls into some row: with
        # few hosts it can take half of the time.
        gc.collect()
        begin = time.process_time()
        for instance in enabled:
            states = list(instance.filter_all(states, spec))
        if weighers:
            handler.get_weighed_objects(weighers, states, spec)
        best = min(best, time.process_time() - begin)
        passed = len(states)
    return best, passed


STOCK = [numa_topology_filter.NUMATopologyFilter,
         pci_passthrough_filter.PciPassthroughFilter]
DECISION = [nfv_topology.NFVTopologyFilter,
            pci_numa_affinity.PCINUMAAffinityFilter]


def numa_only(classes):
    """Filters or weighers without those of network load."""
    return [cls for cls in classes if not issubclass(
        cls, (network_filters.NetworkLimitFilter,
              network_weights.NetworkLoadWeigher))]


def profile(topologies, extra_specs):
    """Print where the chain spends its time."""
    states, spec = host_states(topologies), request(extra_specs)
    enabled = [cls() for cls in numa_only(filters.all_filters())]
    profiler = cProfile.Profile()
    profiler.enable()
    for instance in enabled:
        states = list(instance.filter_all(states, spec))
    profiler.disable()
    pstats.Stats(profiler).sort_stats('tottime').print_stats(20)


def main():
    """Print one line for each number of hosts and each kind of request."""
    parser = argparse.ArgumentParser(
        description=__doc__.partition('\n')[0])
    parser.add_argument(
        '--hosts', default='100,1000,10000',
        help='numbers of hosts, comma-separated (default: %(default)s)')
    parser.add_argument(
        '--rounds', type=int, default=5,
        help='passes of which the best counts (default: %(default)s)')
    parser.add_argument(
        '--without', default='', metavar='NAME,...',
        help='filters and weighers that are not in the chain')
    parser.add_argument(
        '--profile', action='store_true',
        help='also profile the chain on the first number of hosts')
    parser.add_argument(
        '--quick', action='store_true',
        help='only see that this works: few hosts, one round')
    options = parser.parse_args()
    if options.quick:
        options.hosts, options.rounds = '20', 1

    logging.disable(logging.CRITICAL)
    objects.register_all()
    nova.conf.CONF([], project='nova', default_config_files=[])
    rng = random.Random(1)
    counts = [int(count) for count in options.hosts.split(',')]
    all_topologies = {mixed: [
        topology(rng, mixed) for _ in range(max(counts))]
        for mixed in (False, True)}

    chained = [[cls for cls in numa_only(classes)
                if cls.__name__ not in options.without.split(',')]
               for classes in (filters.all_filters(),
                               weights.all_weighers())]
    row = '%-24s %-6s %6s %6s %10s %12s %10s %7s %7s'
    print(row % ('guest', 'kind', 'hosts', 'fit', 'stock us', 'topo+PCI us',
                 'chain us', 'ratio', 'chain'))
    for count, mixed in itertools.product(counts, (False, True)):
        topologies = all_topologies[mixed][:count]
        stock, fit = seconds(
            topologies, {}, STOCK, [], 1 if count > 1000 else options.rounds,
            mixed)
        for name, extra_specs in REQUESTS.items():
            decision, _passed = seconds(
                topologies, extra_specs, DECISION, [], options.rounds, mixed)
            chain, passed = seconds(
                topologies, extra_specs, *chained, options.rounds, mixed)
            if not extra_specs and passed != fit:
                sys.exit(f'stock Nova accepts {fit} hosts, not {passed}')
            if not passed:
                sys.exit(f'{name}: all hosts are refused')
            print(row % (
                name, 'mixed' if mixed else 'alike', count, passed, *(
                    f'{value / count * 1e6:.1f}'
                    for value in (stock, decision, chain)),
                f'{stock / decision:.0f} x', f'{stock / chain:.0f} x'))
            sys.stdout.flush()
    if options.profile:
        for name in ('no key of ours', 'PCI and vSwitch strict'):
            print(f'\n{name}:')
            profile(all_topologies[False][:counts[0]], REQUESTS[name])


if __name__ == '__main__':
    main()
