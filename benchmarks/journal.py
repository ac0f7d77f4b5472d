# SPDX-License-Identifier: Apache-2.0
"""Time that the decision journal adds to a request that is refused.

All filters of nfv-sched but those of network load refuse a guest on hosts of
which each has less room than it needs.  What is printed is the CPU time of the
thread of the request, without and with ``[nfv_sched] decision_journal``, the
best of several rounds, which take turns.

Usage: python benchmarks/journal.py [--hosts 10,100,1000] [--rounds 100]
                                    [--quick]
"""

import argparse
import logging
import math
import tempfile
import time
import warnings

warnings.simplefilter('ignore')

import nova.conf  # noqa: E402
from nova import exception  # noqa: E402
from nova import objects  # noqa: E402
from nova.scheduler import host_manager  # noqa: E402

from nfv_sched.filters import nfv_topology  # noqa: E402
from nfv_sched.filters import vswitch_numa_affinity  # noqa: E402
from nfv_sched.journal import writer  # noqa: E402

FILTERS = (nfv_topology.NFVTopologyFilter,
           vswitch_numa_affinity.VSwitchNUMAAffinityFilter)


def host_state(index):
    """A host with the switch on node 0, where little is free."""
    state = host_manager.HostState(f'compute-{index}', 'node', 'cell')
    state.numa_topology = objects.NUMATopology(cells=[
        objects.NUMACell(
            id=node, socket=node, cpuset=set(), cpu_usage=0, memory_usage=0,
            pcpuset=set(range(node * 32, node * 32 + 32)), memory=131072,
            pinned_cpus=set(range(node * 32, node * 32 + (
                20 + index % 13 if node == 0 else index % 32))),
            siblings=[{cpu} for cpu in range(node * 32, node * 32 + 32)],
            mempages=[objects.NUMAPagesTopology(
                size_kb=4, total=2 ** 25, used=0, reserved=0)],
            network_metadata=objects.NetworkMetadata(
                physnets={f'nfv_node{node}'} | (
                    set() if node else {'nfv_vswitch'}), tunneled=False))
        for node in range(2)])
    state.cpu_allocation_ratio = state.ram_allocation_ratio = 1.0
    state.allocation_candidates = [{'mappings': {'': ['provider']}}]
    state.aggregates = []
    return state


def request():
    """A guest of 16 dedicated vCPUs near the switch."""
    return objects.RequestSpec(
        flavor=objects.Flavor(
            name='router', flavorid='7', vcpus=16, memory_mb=8192,
            extra_specs={'hw:cpu_policy': 'dedicated',
                         'nfv:vswitch_numa_affinity': 'strict'}),
        image=objects.ImageMeta(properties=objects.ImageMetaProps()),
        numa_topology=objects.InstanceNUMATopology(cells=[
            objects.InstanceNUMACell(
                id=0, cpuset=set(), pcpuset=set(range(16)), memory=8192,
                cpu_policy='dedicated')]),
        pci_requests=objects.InstancePCIRequests(requests=[]),
        scheduler_hints={}, requested_resources=[],
        instance_uuid='5f0c6e0e-6b2f-4a4b-8d7e-0f9c1a2b3c4d')


def refuse(hosts):
    """CPU time of the filters, in seconds, until they refuse the last host."""
    states, spec = [host_state(index) for index in range(hosts)], request()
    filters = [cls() for cls in FILTERS]
    begin = time.thread_time()
    try:
        for instance in filters:
            instance.run_filter_for_index(0)
            states = instance.filter_all(states, spec)
    except exception.NoValidHost:
        return time.thread_time() - begin
    raise SystemExit('there is a host')


def main():
    """Print one line for each number of hosts."""
    parser = argparse.ArgumentParser(
        description=__doc__.partition('\n')[0])
    parser.add_argument(
        '--hosts', default='10,100,1000',
        help='numbers of hosts, comma-separated (default: %(default)s)')
    parser.add_argument(
        '--rounds', type=int, default=100,
        help='refusals of which the best counts (default: %(default)s)')
    parser.add_argument(
        '--quick', action='store_true',
        help='only see that this works: few hosts, one round')
    options = parser.parse_args()
    if options.quick:
        options.hosts, options.rounds = '20', 1

    logging.getLogger().setLevel(logging.CRITICAL)
    objects.register_all()
    nova.conf.CONF([], project='nova', default_config_files=[])
    print('%6s %12s %12s %12s %12s' % (
        'hosts', 'off us', 'on us', 'more us', 'bytes'))
    for count in map(int, options.hosts.split(',')):
        with tempfile.TemporaryDirectory() as directory:
            best = {None: math.inf, directory: math.inf}
            for _ in range(options.rounds):
                for journal in best:
                    nova.conf.CONF.set_override(
                        'decision_journal', journal, 'nfv_sched')
                    best[journal] = min(best[journal], refuse(count))
            size = sum(file.size for file in writer.listed(directory))
        off, on = best.values()
        print('%6d %12.1f %12.1f %12.1f %12d' % (
            count, off * 1e6, on * 1e6, (on - off) * 1e6,
            size // options.rounds))


if __name__ == '__main__':
    main()
