# SPDX-License-Identifier: Apache-2.0
"""Small clouds, as snapshots."""

import dataclasses

from nfv_sched.fit import rules
from nfv_sched.ops.cloud import snapshot

FILTERS = ('ComputeFilter', 'PciPassthroughFilter', *rules.filters(),
           'VSwitchPortLimitFilter', 'SecurityRuleLimitFilter')
MEMORY = 32768


def kinds_of(bindings):
    return [(each.kind, each.name) if each.name else each.kind
            for each in bindings]


def losses_of(found):
    """Return servers lost by kind, or by ('or' or 'and', kind, kind ...)."""
    lost = {}
    for each in found.lost:
        kinds = kinds_of(each.limits)
        lost[kinds[0] if len(kinds) == 1 else (
            'or' if each.any_one else 'and', *kinds)] = each.servers
    return lost


def node(number, pinned=(), cpus=8, memory_used=0, huge=0, threads=2):
    """A NUMA node for pinned guests.

    :param pinned: those of its CPUs that guests have, numbered from 0
    :param huge: used pages of 1 GiB, of 16
    """
    first = number * cpus
    own = range(first, first + cpus)
    return snapshot.Node(
        number=number, socket=number, dedicated=frozenset(own),
        pinned=frozenset(first + cpu for cpu in pinned),
        siblings=tuple(frozenset(own[at:at + threads])
                       for at in range(0, cpus, threads)),
        memory=MEMORY, memory_used=memory_used + 1024 * huge,
        physnets=frozenset({f'nfv_node{number}'} | (
            set() if number else {'nfv_vswitch'})),
        pages=(snapshot.Pages(size=4, total=16384 * 256),
               snapshot.Pages(size=1048576, total=16, used=huge)))


def host(name='one', *nodes, devices=(), network=None, traits=(), **fields):
    """A host whose Placement knows what its nodes have."""
    nodes = nodes or (node(0), node(1))
    uuid = f'{sum(name.encode()):08d}-0000-4000-8000-000000000000'
    pcpus = sum(len(each.dedicated) for each in nodes)
    memory = sum(each.memory for each in nodes)
    return snapshot.Host(
        name=name, hypervisor=name, uuid=uuid, cell='cell1', nodes=nodes,
        vcpus=pcpus, memory=memory, cpu_ratio=4.0, memory_ratio=1.0,
        disk_ratio=1.0, devices=devices, network=network,
        stats={'num_instances': '0'},
        memory_used=sum(each.memory_used for each in nodes),
        providers=(snapshot.Provider(
            uuid=uuid, name=name, traits=frozenset(traits), inventories={
                'PCPU': snapshot.Inventory(
                    total=pcpus, max_unit=pcpus,
                    used=sum(len(each.pinned) for each in nodes)),
                'MEMORY_MB': snapshot.Inventory(
                    total=memory, max_unit=memory,
                    used=sum(each.memory_used for each in nodes))}),),
        **fields)


def stocked(host, **inventories):
    """The host with other inventories of its compute node in Placement."""
    root, *nested = host.providers
    return dataclasses.replace(host, providers=(dataclasses.replace(
        root, inventories={**root.inventories, **inventories}), *nested))


def near(node, *physnets):
    return dataclasses.replace(node, physnets=node.physnets | set(physnets))


def device(number, node, **fields):
    return snapshot.Device(
        address=f'0000:{number:02x}:02.0', vendor='8086', product='154d',
        kind='type-VF', node=node,
        tags={'address': f'0000:{number:02x}:02.0'}, **fields)


def cloud(*hosts, filters=FILTERS, aggregates=(), servers=(), flavors=(),
          **options):
    """Return a cloud; ``options`` is section -> options."""
    return snapshot.Cloud(
        taken='2026-01-02T03:04:05Z', hosts=hosts, aggregates=aggregates,
        servers=servers, flavors=flavors, options={
            'filter_scheduler': {'enabled_filters': list(filters)},
            'pci': {'alias': [
                '{"name": "nic", "vendor_id": "8086", "product_id": "154d", '
                '"device_type": "type-VF"}']}, **options})


def crowded(most):
    """A cloud of host one, which takes so many servers at most."""
    return cloud(host(), filter_scheduler={
        'enabled_filters': [*FILTERS, 'NumInstancesFilter'],
        'max_instances_per_host': most})


def limited(ports, **fields):
    """A cloud of host one, whose switch carries so many ports, of 7."""
    return cloud(
        host(network=snapshot.HostNetwork(
            vswitch_ports=ports, security_rules=0)),
        nfv_sched={'vswitch_ports_per_node': 8, 'vswitch_physical_ports': 1},
        **fields)


def flavor(vcpus=4, name='pinned', memory=None, **specs):
    """Return a flavor of pinned guests; ``__`` in keys is a colon."""
    return snapshot.Flavor(
        name=name, vcpus=vcpus, memory=memory or 512 * vcpus,
        extra_specs={'hw:cpu_policy': 'dedicated', **{
            key.replace('__', ':'): value for key, value in specs.items()}})
