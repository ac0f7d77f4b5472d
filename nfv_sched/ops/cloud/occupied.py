# SPDX-License-Identifier: Apache-2.0
"""Calculate, or remove, what the servers of a snapshot occupy on hosts.

:mod:`nfv_sched.fit.occupancy` does the arithmetic of host NUMA cells; this
module applies it to the records of a snapshot.
"""

import collections
from collections.abc import Iterable, Mapping, Sequence
import dataclasses
import typing as ty

import os_resource_classes as orc

from nfv_sched.fit.numa import topology
from nfv_sched.fit import occupancy
from nfv_sched.limits import usage
from nfv_sched.ops.cloud import snapshot

AVAILABLE = 'available'
#: Statuses of PCI devices that the host has no more.
GONE = ('removed', 'deleted')
#: Statuses of PCI devices that are assigned to a server, or blocked because
#: their PF, or one of their VFs, is assigned.
OCCUPIED = ('claimed', 'allocated', 'unclaimable', 'unavailable')


def shares(nodes: Sequence[snapshot.Node],
           parts: Iterable[snapshot.GuestNode]) -> tuple[occupancy.Share, ...]:
    """Return the shares that guest NUMA nodes have of reported nodes."""
    of_number = {node.number: (position, node)
                 for position, node in enumerate(nodes)}
    result = []
    for part in parts:
        if part.host_node in of_number:
            position, node = of_number[part.host_node]
            result.append(occupancy.share(
                position, _cell(part), exclusive_cpus(part), part.page_size,
                node.cores, [pages.size for pages in node.pages]))
    return tuple(result)


def _cell(part: snapshot.GuestNode) -> topology.GuestCell:
    return topology.GuestCell(
        len(part.shared), len(part.dedicated), part.memory, part.page_size,
        topology.CPU_POLICIES.get(part.cpu_policy or '', topology.SHARED),
        topology.THREAD_POLICIES.get(
            part.thread_policy or '', topology.THREADS_PREFER))


def exclusive_cpus(part: snapshot.GuestNode) -> set[int]:
    """Return host CPUs of pinned vCPUs and emulator threads, no siblings."""
    return {*part.pins.values(), *part.reserved}


def allocation(server: snapshot.Server, pcpus: bool) -> dict[str, int]:
    """Calculate a server's allocation from its compute node in Placement.

    :param pcpus: whether that has ``PCPU``; with ``vcpu_pin_set`` it has not
    """
    flavor, nodes = server.flavor, server.nodes or () if pcpus else ()
    pinned = sum(len(node.dedicated) for node in nodes)
    amounts = {
        orc.VCPU: flavor.vcpus - pinned,
        orc.PCPU: pinned + sum(len(node.reserved) for node in nodes),
        orc.MEMORY_MB: flavor.memory,
        orc.DISK_GB: flavor.disk + flavor.ephemeral + -(-flavor.swap // 1024)}
    return {name: amount for name, amount in amounts.items() if amount > 0}


class Totals(ty.NamedTuple):
    memory: int = 0  #: MiB
    ports: int = 0  #: ports on the virtual switch
    rules: int = 0  #: security group rules of these ports


def vswitch_ports(server: snapshot.Server) -> list[snapshot.Port]:
    return [port for port in server.ports or ()
            if not usage.bypasses_vswitch(port.vnic_type)]


def totals(cloud: snapshot.Cloud) -> Mapping[str, Totals]:
    sums: dict[str, Totals] = collections.defaultdict(Totals)
    for server in cloud.servers:
        if server.host is None:
            continue
        ports = vswitch_ports(server)
        before = sums[server.host]
        sums[server.host] = Totals(
            before.memory + server.flavor.memory, before.ports + len(ports),
            before.rules + sum(port.rules or 0 for port in ports))
    return sums


def changed_network(network: snapshot.HostNetwork | None,
                    changes: Mapping[str, int]) -> snapshot.HostNetwork | None:
    """Add numbers to figures of a host, by field; unknown ones stay None."""
    if network is None:
        return None
    # Figures of agents and of ports may differ for a while, so that a
    # difference could be negative.
    return dataclasses.replace(network, **{
        name: max(0, getattr(network, name) + count)
        for name, count in changes.items()
        if getattr(network, name) is not None})


def reserved_memory(host: snapshot.Host, memory: int) -> int:
    """Return MiB that are reserved, or else used, but not by servers."""
    for provider in host.providers[:1]:
        if orc.MEMORY_MB in provider.inventories:
            return provider.inventories[orc.MEMORY_MB].reserved
    return max(0, host.memory_used - memory)


def without_servers(cloud: snapshot.Cloud) -> snapshot.Cloud:
    sums = totals(cloud)
    return dataclasses.replace(cloud, servers=(), hosts=tuple([
        empty(host, sums[host.name]) for host in cloud.hosts]))


def empty(host: snapshot.Host, servers: Totals) -> snapshot.Host:
    network = changed_network(host.network, {
        'vswitch_ports': -servers.ports, 'security_rules': -servers.rules})
    nodes = host.nodes and tuple([dataclasses.replace(
        node, pinned=frozenset(), memory_used=0, shared_used=0, pages=tuple([
            dataclasses.replace(pages, used=0) for pages in node.pages]))
        for node in host.nodes])
    return dataclasses.replace(
        host, network=network, nodes=nodes, vcpus_used=0,
        memory_used=max(0, host.memory_used - servers.memory), disk_used=0,
        disk_available_least=None, stats={**host.stats, 'num_instances': '0'},
        devices=tuple([dataclasses.replace(
            device, server=None, request=None,
            status=AVAILABLE if device.status in OCCUPIED else device.status)
            for device in host.devices]),
        providers=tuple([dataclasses.replace(provider, inventories={
            name: dataclasses.replace(inventory, used=0)
            for name, inventory in provider.inventories.items()})
            for provider in host.providers]))
