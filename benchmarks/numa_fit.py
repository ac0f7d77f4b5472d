# SPDX-License-Identifier: Apache-2.0
"""Time per host of stock NUMATopologyFilter and of NFVTopologyFilter.

Both filters judge the same hosts for the same request in one run; the ratio
is what counts, the machine's speed cancels out.  What is printed is CPU time,
the best of several rounds.  A host whose guest fits stays unchanged: nothing
is consumed.  Where all hosts are refused, ours works out the reason for the
log and the tenant besides.

Usage: python benchmarks/numa_fit.py [--hosts 100,1000,10000] [--rounds 3]
                                     [--quick]
"""

import argparse
import gc
import logging
import math
import random
import sys
import time
import warnings

warnings.simplefilter('ignore')

import nova.conf  # noqa: E402
from nova import objects  # noqa: E402
from nova.scheduler.filters import numa_topology_filter  # noqa: E402
from nova.scheduler import host_manager  # noqa: E402

from nfv_sched.filters import nfv_topology  # noqa: E402

# Stock Nova is not asked where it would go through more permutations.
MAX_STOCK_PERMUTATIONS = 50000


def topology(rng, cells, cpus, threads, full):
    """A host topology; about half of its CPUs are taken.

    :param full: leave no room for a pinned guest anywhere
    """
    result = []
    for index in range(cells):
        ids = list(range(index * cpus, (index + 1) * cpus))
        usable = ids[2:]
        count = len(usable) if full else len(usable) // 2
        pinned = set(rng.sample(usable, count))
        siblings = [set(ids[i:i + threads])
                    for i in range(0, cpus, threads)]
        result.append(objects.NUMACell(
            id=index, socket=index, cpuset=set(ids[:2]), pcpuset=set(usable),
            memory=65536, cpu_usage=0, memory_usage=count * 1024,
            pinned_cpus=pinned, siblings=siblings,
            mempages=[
                objects.NUMAPagesTopology(
                    size_kb=4, total=8 * 1024 * 1024, used=0, reserved=0),
                objects.NUMAPagesTopology(
                    size_kb=1048576, total=32, used=count // 2, reserved=0)],
            network_metadata=objects.NetworkMetadata(
                physnets={'nfv_node%d' % index}, tunneled=False)))
    return objects.NUMATopology(cells=result)


def guest(cells, vcpus, memory, pagesize=None, uneven=False):
    """A pinned guest; ``uneven`` gives its last cell one vCPU more."""
    base, result = 0, []
    for index in range(cells):
        width = vcpus + (1 if uneven and index == cells - 1 else 0)
        result.append(objects.InstanceNUMACell(
            id=index, cpuset=set(), pcpuset=set(range(base, base + width)),
            memory=memory, pagesize=pagesize, cpu_policy='dedicated',
            cpu_thread_policy=None))
        base += width
    return objects.InstanceNUMATopology(cells=result)


def spec_of(numa_topology):
    return objects.RequestSpec(
        flavor=objects.Flavor(name='guest', extra_specs={
            'hw:cpu_policy': 'dedicated'}),
        image=objects.ImageMeta(properties=objects.ImageMetaProps()),
        numa_topology=numa_topology, scheduler_hints={},
        pci_requests=objects.InstancePCIRequests(requests=[]),
        requested_resources=[],
        instance_uuid='5f0c6e0e-6b2f-4a4b-8d7e-0f9c1a2b3c4d')


def host_states(topologies):
    """Fresh HostStates, as Nova makes them for every request."""
    states = []
    for index, numa_topology in enumerate(topologies):
        state = host_manager.HostState('host%d' % index, 'node', 'cell')
        state.numa_topology = numa_topology
        state.cpu_allocation_ratio = 4.0
        state.ram_allocation_ratio = 1.0
        state.allocation_candidates = [{'mappings': {}}]
        state.stats = {}
        states.append(state)
    return states


def seconds(filter_class, topologies, numa_topology, rounds):
    """Best CPU time of one pass over the hosts, and how many passed."""
    best, passed = math.inf, None
    for _ in range(rounds):
        states = host_states(topologies)
        spec = spec_of(numa_topology.obj_clone())
        instance = filter_class()
        gc.collect()  # see chain.py
        begin = time.process_time()
        passed = list(instance.filter_all(states, spec))
        best = min(best, time.process_time() - begin)
    return best, len(passed)


def compare(name, topologies, numa_topology, rounds, stock_hosts):
    """Print one row."""
    ours, passed = seconds(
        nfv_topology.NFVTopologyFilter, topologies, numa_topology, rounds)
    ours = ours / len(topologies) * 1e6
    permutations = math.perm(
        len(topologies[0].cells), len(numa_topology.cells))
    if permutations > MAX_STOCK_PERMUTATIONS:
        stock_text, ratio = 'not run', '%d permutations' % permutations
    else:
        sample = topologies[:stock_hosts]
        stock, stock_passed = seconds(
            numa_topology_filter.NUMATopologyFilter, sample, numa_topology,
            rounds)
        check = seconds(nfv_topology.NFVTopologyFilter, sample,
                        numa_topology, 1)[1]
        if stock_passed != check:
            sys.exit('%s: stock accepts %d of %d hosts, nfv-sched %d' % (
                name, stock_passed, len(sample), check))
        stock = stock / len(sample) * 1e6
        stock_text, ratio = '%.1f' % stock, '%.0f x' % (stock / ours)
    print('%-40s %7d %7d %12s %10.2f %10s' % (
        name, len(topologies), passed, stock_text, ours, ratio), flush=True)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0])
    parser.add_argument('--hosts', default='100,1000,10000',
                        help='host counts of the two-node rows')
    parser.add_argument('--rounds', type=int, default=3)
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument(
        '--quick', action='store_true',
        help='only see that this works: few hosts, one round')
    args = parser.parse_args()
    # At most so many hosts with many nodes, which take stock Nova long.
    most = 100
    if args.quick:
        args.hosts, args.rounds, most = '20', 1, 1

    logging.disable(logging.CRITICAL)
    nova.conf.CONF([], project='nova', default_config_files=[])
    objects.register_all()
    rng = random.Random(args.seed)

    print('%-40s %7s %7s %12s %10s %10s' % (
        'case', 'hosts', 'passed', 'stock us', 'ours us', 'ratio'))
    for count in map(int, args.hosts.split(',')):
        hosts = [topology(rng, 2, 32, 2, False) for _ in range(count)]
        compare('2 nodes, 1-cell guest, fits', hosts,
                guest(1, 8, 8192, 1048576), args.rounds, 2000)
        compare('2 nodes, 2-cell guest, fits', hosts,
                guest(2, 4, 4096), args.rounds, 2000)
        compare('2 nodes, uneven 2-cell guest, fits', hosts,
                guest(2, 4, 4096, uneven=True), args.rounds, 2000)
        full = [topology(rng, 2, 32, 2, True) for _ in range(count)]
        # One host is left, so that no reason has to be worked out.
        compare('2 nodes, 1-cell guest, refused', full[1:] + hosts[:1],
                guest(1, 8, 8192, 1048576), args.rounds, 2000)
        compare('2 nodes, 1-cell guest, all refused', full,
                guest(1, 8, 8192, 1048576), args.rounds, 2000)
    for cells, wanted, count in ((8, 2, 100), (8, 8, 20), (16, 2, 100),
                                 (16, 8, 100)):
        count = min(count, most)
        for uneven in (False, True):
            kind = 'uneven ' if uneven else ''
            hosts = [topology(rng, cells, 16, 2, False)
                     for _ in range(count)]
            compare('%d nodes, %s%d-cell guest, fits' % (
                cells, kind, wanted), hosts,
                guest(wanted, 2, 1024, uneven=uneven), args.rounds, 20)
            full = [topology(rng, cells, 16, 2, True)
                    for _ in range(count)]
            compare('%d nodes, %s%d-cell guest, refused' % (
                cells, kind, wanted), full,
                guest(wanted, 2, 1024, uneven=uneven), args.rounds, 20)
            # Room on all nodes but one: no permutation fits.
            if wanted == cells:
                continue
            partly = [objects.NUMATopology(
                cells=good.cells[:wanted - 1] + bad.cells[wanted - 1:])
                for good, bad in zip(hosts, full)]
            compare('%d nodes, %s%d-cell guest, 1 node short' % (
                cells, kind, wanted), partly,
                guest(wanted, 2, 1024, uneven=uneven), args.rounds, 20)


if __name__ == '__main__':
    main()
