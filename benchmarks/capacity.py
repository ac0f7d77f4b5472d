# SPDX-License-Identifier: Apache-2.0
"""Time to count how many more guests of each flavor fit a cloud.

A cloud of hosts that all differ, each about three quarters full, and flavors
as operators have them: pinned on one and two NUMA nodes, huge pages, thread
policies, VFs, policies of nfv-sched, and guests that float.  Nova's own fit
and record of usage, guest after guest until one is refused, is timed on a
sample of the same hosts and flavors, and must give the same number.  What is
printed is CPU time.

Usage: python benchmarks/capacity.py [--hosts 1000] [--sample 40] [--quick]
"""

import argparse
import logging
import random
import resource
import sys
import time
import warnings

warnings.simplefilter('ignore')

from nova import objects  # noqa: E402

from nfv_sched.fit import rules  # noqa: E402
from nfv_sched.ops.cloud import snapshot  # noqa: E402
from nfv_sched.ops.model.counting import capacity  # noqa: E402
from nfv_sched.ops.simulator import nova_internals  # noqa: E402
from nfv_sched.ops.simulator import start  # noqa: E402

CORES = 14  # of a NUMA node
MEMORY = 128 * 1024  # of a NUMA node, MiB
PINNED = {'hw:cpu_policy': 'dedicated'}
PAGES = {**PINNED, 'hw:mem_page_size': '1GB'}
OPTIONS = {
    'filter_scheduler': {'enabled_filters': [
        'ComputeFilter', 'ComputeCapabilitiesFilter',
        'ImagePropertiesFilter', 'ServerGroupAntiAffinityFilter',
        'PciPassthroughFilter', *rules.filters()]},
    'pci': {'alias': ['{"name": "nic", "vendor_id": "8086", '
                      '"product_id": "154d", "device_type": "type-VF"}']}}


def flavors():
    """Twenty flavors."""
    made = [snapshot.Flavor(
        name=f'pinned.{vcpus}', vcpus=vcpus, memory=vcpus * 1024,
        extra_specs=PINNED) for vcpus in (2, 4, 8, 12, 16)]
    made += [snapshot.Flavor(
        name=f'pages.{vcpus}', vcpus=vcpus, memory=vcpus * 2048,
        extra_specs=PAGES) for vcpus in (2, 8, 16)]
    for name, vcpus, specs in (
            ('two.4', 4, {**PAGES, 'hw:numa_nodes': '2'}),
            ('two.16', 16, {**PINNED, 'hw:numa_nodes': '2'}),
            ('require.4', 4, {**PINNED, 'hw:cpu_thread_policy': 'require'}),
            ('emulator.4', 4, {**PINNED,
                               'hw:emulator_threads_policy': 'isolate'}),
            ('large.4', 4, {**PINNED, 'hw:mem_page_size': 'large'}),
            ('vf.4', 4, {**PINNED, 'pci_passthrough:alias': 'nic:1'}),
            ('vf.8', 8, {**PAGES, 'pci_passthrough:alias': 'nic:2',
                         'hw:pci_numa_affinity_policy': 'required'}),
            ('strict.8', 8, {**PAGES,
                             'nfv:vswitch_numa_affinity': 'strict'}),
            ('prefer.8', 8, {**PAGES,
                             'nfv:vswitch_numa_affinity': 'prefer'}),
            ('mixed.4', 4, {'hw:cpu_policy': 'mixed',
                            'hw:cpu_dedicated_mask': '^0'}),
            ('shared.4', 4, {'hw:numa_nodes': '1'}),
            ('floating.2', 2, {})):
        made.append(snapshot.Flavor(
            name=name, vcpus=vcpus, memory=vcpus * 1024, extra_specs=specs))
    return made


def node(rng, number, first):
    """A NUMA node, and how many CPUs, MiB and shared vCPUs guests have."""
    siblings = tuple(frozenset((first + core, first + core + 2 * CORES))
                     for core in range(CORES))
    shared = siblings[0] | siblings[1]
    dedicated = frozenset().union(*siblings) - shared
    pinned, memory = set(), 0
    while len(pinned) < 0.65 * len(dedicated) + 4 * rng.random():
        vcpus = rng.choice((2, 2, 4, 6, 8))
        free = sorted(dedicated - pinned, key=lambda cpu: (cpu % 28, cpu))
        begin = rng.choice((0, 0, 0, rng.randrange(len(free))))
        pinned.update(free[begin:begin + vcpus])
        memory += vcpus * 1024
    floating = rng.randrange(0, 24)
    labels = {f'nfv_node{number}'} | ({'nfv_vswitch'} if not number else set())
    return snapshot.Node(
        number=number, socket=number, shared=shared, dedicated=dedicated,
        pinned=frozenset(pinned), siblings=siblings, memory=MEMORY,
        memory_used=memory, shared_used=floating, physnets=frozenset(labels),
        pages=(
            snapshot.Pages(size=4, total=32 * 1024 * 256),
            snapshot.Pages(size=1048576, total=120, used=min(
                110, memory // 1024 + rng.randrange(30))))
    ), len(pinned), memory, floating


def host(rng, number):
    """A host with two NUMA nodes, about three quarters full."""
    name = f'compute-{number:04}'
    made = [node(rng, which, which * CORES) for which in range(2)]
    nodes = tuple(each[0] for each in made)
    pinned, memory, floating = (sum(each[index] for each in made)
                                for index in (1, 2, 3))
    uuid = f'{number:08x}-0000-4000-8000-000000000000'
    devices = []
    for which in range(2):
        for function in range(16):
            devices.append(snapshot.Device(
                address=f'0000:{which:02x}:02.{function:x}', vendor='8086',
                product='154d', kind='type-VF', node=which,
                status=('allocated' if rng.random() < 0.7
                        else 'available')))
    return snapshot.Host(
        name=name, hypervisor=name, uuid=uuid, cell='cell1', nodes=nodes,
        devices=tuple(devices), cpu_ratio=4.0, memory_ratio=1.0,
        disk_ratio=1.0, vcpus=4 * CORES, memory=2 * MEMORY, disk=2000,
        memory_used=memory, vcpus_used=pinned + floating,
        stats={'num_instances': '12'}, providers=(snapshot.Provider(
            uuid=uuid, name=name,
            traits=frozenset(('HW_CPU_HYPERTHREADING',)),
            inventories={
                'PCPU': snapshot.Inventory(
                    total=sum(len(each.dedicated) for each in nodes),
                    max_unit=4 * CORES, used=pinned),
                'VCPU': snapshot.Inventory(
                    total=sum(len(each.shared) for each in nodes), ratio=4.0,
                    max_unit=4 * CORES, used=floating),
                'MEMORY_MB': snapshot.Inventory(
                    total=2 * MEMORY, max_unit=2 * MEMORY, used=memory),
                'DISK_GB': snapshot.Inventory(
                    total=2000, max_unit=2000)}),))


def by_nova(state, found, sample, rng):
    """Count by Nova's own fit and record; seconds, and seconds of ours."""
    spent, guests, pairs = 0.0, 0, 0
    names = sorted(state.hosts)
    for _number in range(sample):
        result = rng.choice(found)
        name = rng.choice(names)
        model = result.flavor
        if 'alias' in str(model.extra_specs) or (
                'nfv' in str(model.extra_specs)) or not model.extra_specs:
            continue
        made = objects.Flavor(
            vcpus=model.vcpus, memory_mb=model.memory,
            extra_specs=dict(model.extra_specs))
        wanted = nova_internals.numa_get_constraints(
            made, nova_internals.image_meta({}))
        topology = state.hosts[name].topology()
        limits = objects.NUMATopologyLimits(
            cpu_allocation_ratio=4.0, ram_allocation_ratio=1.0)
        limit = result.hosts[name].fits
        began = time.process_time()
        count = 0
        while True:
            claimed = nova_internals.hardware.numa_fit_instance_to_host(
                topology, wanted.obj_clone(), None, limits)
            if claimed is None or count == limit:
                break
            topology = nova_internals.numa_usage_from_instance_numa(
                topology, claimed)
            count += 1
        spent += time.process_time() - began
        if count != limit:
            raise SystemExit(f'{model.name} on {name}: {limit} counted, Nova '
                             f'takes {count}')
        guests += count
        pairs += 1
    return spent, guests, pairs


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--hosts', type=int, default=1000)
    parser.add_argument('--sample', type=int, default=400)
    parser.add_argument('--quick', action='store_true')
    args = parser.parse_args()
    if args.quick:
        args.hosts, args.sample = 40, 40
    logging.disable(logging.CRITICAL)
    rng = random.Random(1)
    cloud = snapshot.Cloud(
        taken='2026-11-22T00:00:00Z', options=OPTIONS,
        hosts=tuple(host(rng, number) for number in range(args.hosts)))
    wanted = flavors()
    began = time.process_time()
    found = capacity.capacities(cloud, wanted)
    spent = time.process_time() - began
    print(f'{args.hosts} hosts x {len(wanted)} flavors: {spent:.1f} s, '
          f'{1e6 * spent / args.hosts / len(wanted):.0f} us for a host and '
          f'flavor')
    print(f'{"flavor":<12} {"fits":>6} {"Placement":>9}  lost to')
    for each in found:
        print(f'{each.flavor.name:<12} {each.fits:>6} {each.placement:>9}  ' +
              ', '.join(f"{lost.label} {lost.servers}"
                        for lost in each.lost))
    began = time.process_time()
    with start.started(cloud) as state:
        starting = time.process_time() - began
        seconds, guests, pairs = by_nova(state, found, args.sample, rng)
    ours = (spent - starting) / args.hosts / len(wanted)
    print(f'of that {starting:.1f} s to read the hosts, so '
          f'{1e6 * ours:.0f} us to count, and to find what binds')
    print(f'Nova, fit and record: {pairs} pairs of host and flavor with '
          f'{guests} guests, {seconds:.2f} s, '
          f'{1e6 * seconds / max(pairs, 1):.0f} us for one: '
          f'{seconds / max(pairs, 1) / ours:.0f} times as long')
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f'most memory: {peak:.0f} MiB')
    return 0


if __name__ == '__main__':
    sys.exit(main())
