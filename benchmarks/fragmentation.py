# SPDX-License-Identifier: Apache-2.0
"""How many large guests still fit after guests have come and gone.

The same random arrivals and departures of pinned guests with 1 GiB pages are
played against Nova's default weighers, against its options to pack hosts and
NUMA nodes, and against ``NUMAFragmentationWeigher``.  Scheduler, weighers and
claims are Nova's own.  At each level of use a part of the guests leaves and
others come, some times over.  Then it is counted how many guests of 8 and of
16 vCPUs on one NUMA node, and of 32 vCPUs on two, would still fit, and how
many hosts are in use.

With ``--pairs`` a part of the guests, in percent, has two NUMA nodes.

What is printed is the mean over the seeds, with the least and the most.  With
``--mixed`` guests have 1, 2 or 4 GiB for a vCPU, and pages are scarce.

Usage: python benchmarks/fragmentation.py [--hosts 40] [--seeds 3] [--waves 3]
       [--leave 20] [--levels 60,75,90] [--mixed] [--pairs 25]
       [--ways WAY ...] [--jobs N] [--quick]
"""

import argparse
import concurrent.futures
import json
import logging
import os
import random
import statistics
import sys
import tempfile
import time
import typing as ty
import warnings

warnings.simplefilter('ignore')

from nfv_sched.ops.answers.simulation import reading  # noqa: E402
from nfv_sched.ops.cloud import actions  # noqa: E402
from nfv_sched.ops.cloud import snapshot  # noqa: E402
from nfv_sched.ops.model.counting import capacity  # noqa: E402
from nfv_sched.ops.simulator import engine  # noqa: E402
from nfv_sched.ops.simulator import record  # noqa: E402

NODES, CORES, THREADS = 2, 16, 2
PCPUS = NODES * CORES * THREADS  # of a host
VCPUS = (2, 4, 6, 8, 10, 12)  # of the guests that come and go
#: vCPUs and NUMA nodes of the guests that are counted.
LARGE = ((8, 1), (16, 1), (32, 2))

_PACK_HOSTS = {'filter_scheduler': {
    'cpu_weight_multiplier': -1.0, 'ram_weight_multiplier': -1.0}}
_PACK_NODES = {'compute': {
    'packing_host_numa_cells_allocation_strategy': True}}
_WEIGHER = {'nfv_sched': {'numa_fragmentation_weight_multiplier': 100.0}}
#: Name -> options of nova.conf.
WAYS = {
    'default': {},
    'pack nodes': _PACK_NODES,
    'pack hosts': _PACK_HOSTS,
    'pack both': _PACK_HOSTS | _PACK_NODES,
    'weigher': _WEIGHER,
    'weigher, pack nodes': _WEIGHER | _PACK_NODES,
}
#: Those that are played by default.
USUAL = ('default', 'pack hosts', 'pack both', 'weigher')


class Memory(ty.NamedTuple):
    """Pages of 1 GiB.

    :ivar node: of a host NUMA node
    :ivar guests: of a guest for each vCPU, to choose from
    :ivar large: of a guest that is counted, for each vCPU
    """

    node: int
    guests: tuple[int, ...]
    large: int


AMPLE = Memory(120, (1,), 1)
MIXED = Memory(64, (1, 1, 2, 4), 2)


class Churn(ty.NamedTuple):
    """How guests come and go.

    :ivar levels: use of pCPUs at which to count, in percent
    :ivar waves: how often guests leave at each level
    :ivar leave: how many of them each time, in percent
    :ivar memory: pages of hosts and guests
    :ivar pairs: how many of them have two NUMA nodes, in percent
    """

    levels: tuple[int, ...]
    waves: int
    leave: int
    memory: Memory
    pairs: int


class Event(ty.NamedTuple):
    """A guest comes or goes, or guests are counted.

    :ivar level: use of pCPUs at which to count, in percent; 0: none
    :ivar guest: number of the guest
    :ivar vcpus: of a guest that comes; 0 if it goes
    :ivar pages: of a guest that comes, for each vCPU
    :ivar nodes: NUMA nodes of a guest that comes
    """

    level: int = 0
    guest: int = 0
    vcpus: int = 0
    pages: int = 0
    nodes: int = 1


class Count(ty.NamedTuple):
    """What was counted.

    :ivar level: use of pCPUs that was meant, in percent
    :ivar used: use of pCPUs, in percent
    :ivar refused: guests that found no host so far
    :ivar hosts: hosts with guests
    :ivar fits: vCPUs and NUMA nodes of a guest -> how many more fit
    """

    level: int
    used: float
    refused: int
    hosts: int
    fits: dict[tuple[int, int], int]


def events(seed, hosts, churn):
    """Arrivals and departures, and when to count; the same for all ways."""
    rng = random.Random(seed)
    there: dict[int, int] = {}
    number, used, total = 0, 0, hosts * PCPUS
    for level in churn.levels:
        target = total * level // 100
        for wave in range(churn.waves + 1):
            while used < target:
                number += 1
                vcpus = rng.choice([each for each in VCPUS
                                    if used + each <= target] or VCPUS[:1])
                there[number] = vcpus
                used += vcpus
                yield Event(guest=number, vcpus=vcpus,
                            pages=rng.choice(churn.memory.guests),
                            nodes=1 + (rng.random() * 100 < churn.pairs))
            if wave == churn.waves:
                break
            for gone in rng.sample(
                    sorted(there), len(there) * churn.leave // 100):
                used -= there.pop(gone)
                yield Event(guest=gone)
        yield Event(level=level)


def cloud_file(hosts, options, pages):
    """The text of a cloud file."""
    flavors = ''.join(f"""
  vnf.{vcpus}.{each}.{nodes}:
    vcpus: {vcpus}
    memory: {vcpus * each} GiB
    extra_specs: {{hw:cpu_policy: dedicated, hw:mem_page_size: 1GB,
                   hw:numa_nodes: {nodes}}}"""
                      for vcpus in VCPUS for each in sorted(set(pages.guests))
                      for nodes in (1, 2))
    return f"""
filters: [ComputeFilter, NFVTopologyFilter]
options: {json.dumps(options)}
hosts:
  - name: 'compute-{{n:03}}'
    count: {hosts}
    numa_nodes: {NODES}
    cores: {CORES}
    threads: {THREADS}
    memory: {pages.node + 8} GiB
    pages: {{1G: {pages.node}}}
    platform_cores: 0
    vswitch_cores: 0
    switch_nodes: []
flavors: {flavors}
steps: []
"""


def play(way, seed, hosts, churn):
    """Play all events; what was counted at each level, and the seconds."""
    logging.disable(logging.CRITICAL)
    began, found = time.process_time(), []
    with tempfile.NamedTemporaryFile('w', suffix='.yaml') as file:
        file.write(cloud_file(hosts, WAYS[way], churn.memory))
        file.flush()
        refused, placed = 0, set()
        with reading.loaded(file.name, seed=seed) as state:
            simulation = engine.Simulation(state)
            for event in events(seed, hosts, churn):
                name = f'guest-{event.guest}'
                if event.level:
                    found.append((event.level, refused, record.cloud(state)))
                elif not event.vcpus:
                    if name in placed:
                        simulation.step(actions.ServerStep(
                            action='delete', targets=(name,)))
                else:
                    simulation.step(actions.Boot(
                        action='boot', boot=name, targets=(name,),
                        flavor=f'vnf.{event.vcpus}.{event.pages}.'
                               f'{event.nodes}'))
                    if state.servers[name].host is None:
                        refused += 1
                    else:
                        placed.add(name)
    return ([_count(*each, churn.memory.large) for each in found],
            time.process_time() - began)


def _count(level, refused, cloud, pages):
    """Count how many large guests still fit."""
    fits = capacity.capacities(cloud, [snapshot.Flavor(
        name=f'large.{vcpus}', vcpus=vcpus, memory=vcpus * pages * 1024,
        extra_specs={
            'hw:cpu_policy': 'dedicated', 'hw:mem_page_size': '1GB',
            'hw:numa_nodes': str(nodes)})
        for vcpus, nodes in LARGE])
    pinned = [sum(len(node.pinned) for node in host.nodes)
              for host in cloud.hosts]
    return Count(level, 100 * sum(pinned) / PCPUS / len(cloud.hosts), refused,
                 sum(map(bool, pinned)), {
        large: each.fits for large, each in zip(LARGE, fits)})


def spread(values):
    """Mean, least and most, as text."""
    return (f'{statistics.mean(values):5.1f} '
            f'({min(values)}-{max(values)})')


def report(found, levels):
    """Print what was counted.

    :param found: way -> counts of each seed
    """
    width = max(map(len, found))
    for number, level in enumerate(levels):
        print(f'\n{level} % of the pCPUs in use')
        print(f'{"":<{width}}  {"used":>5}  {"refused":>7}  {"hosts":>5}  '
              + '  '.join(f'{f"{vcpus} vCPUs on {nodes}":>16}'
                          for vcpus, nodes in LARGE))
        for way, counts in found.items():
            here = [each[number] for each in counts]
            fits = [[each.fits[large] for each in here] for large in LARGE]
            print(f'{way:<{width}}  '
                  f'{statistics.mean(each.used for each in here):5.1f}  '
                  f'{statistics.mean(each.refused for each in here):7.1f}  '
                  f'{statistics.mean(each.hosts for each in here):5.1f}  '
                  + '  '.join(f'{spread(each):>16}' for each in fits))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--hosts', type=int, default=40)
    parser.add_argument('--seeds', type=int, default=3)
    parser.add_argument('--waves', type=int, default=3,
                        help='how often guests leave at each level')
    parser.add_argument('--leave', type=int, default=20,
                        help='how many of them each time, in percent')
    parser.add_argument('--mixed', action='store_true')
    parser.add_argument('--pairs', type=int, default=0,
                        help='guests with two NUMA nodes, in percent')
    parser.add_argument('--levels', default='60,75,90')
    parser.add_argument('--jobs', type=int, default=os.cpu_count())
    parser.add_argument('--ways', nargs='+', choices=WAYS, default=USUAL)
    parser.add_argument('--quick', action='store_true')
    args = parser.parse_args()
    if args.quick:
        args.hosts, args.seeds, args.waves, args.levels = 4, 1, 1, '75'
    churn = Churn(tuple(map(int, args.levels.split(','))), args.waves,
                  args.leave, MIXED if args.mixed else AMPLE, args.pairs)
    began = time.monotonic()
    with concurrent.futures.ProcessPoolExecutor(args.jobs) as pool:
        running = {way: [pool.submit(
            play, way, seed, args.hosts, churn)
            for seed in range(args.seeds)] for way in args.ways}
        done = {way: [each.result() for each in runs]
                for way, runs in running.items()}
    report({way: [counts for counts, _seconds in runs]
            for way, runs in done.items()}, churn.levels)
    print(f'\n{time.monotonic() - began:.0f} s; CPU time of one run:')
    for way, runs in done.items():
        print(f'{way}: {statistics.mean(each[1] for each in runs):.0f} s')
    return 0


if __name__ == '__main__':
    sys.exit(main())
