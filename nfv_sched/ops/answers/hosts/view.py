# SPDX-License-Identifier: Apache-2.0
"""Tell what is on the hosts of a cloud."""

from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import json
import math
import types

from nfv_sched.base import conf
from nfv_sched.fit.numa import rule
from nfv_sched.fit.rules import place
from nfv_sched.limits import decide
from nfv_sched.limits import options as limits
from nfv_sched.ops.answers.hosts import cores
from nfv_sched.ops.answers.hosts import devices
from nfv_sched.ops.answers.hosts import document
from nfv_sched.ops.answers.hosts import guests
from nfv_sched.ops.answers.hosts import limit_use
from nfv_sched.ops.answers.hosts import machines
from nfv_sched.ops.answers.hosts import memory
from nfv_sched.ops.answers.machine import values as machine_values
from nfv_sched.ops.cloud import snapshot

_DEFAULTS = {option.name: option.default
             for _group, options in conf.list_opts() for option in options}


def views(cloud: snapshot.Cloud,
          hosts: Sequence[snapshot.Host] | None = None,
          facts: Mapping[str, machine_values.Machine] | None = None,
          ) -> tuple[document.HostDetails, ...]:
    """Return hosts of a cloud, in its order.

    :param hosts: hosts to return; None for all
    :param facts: UUID of a host -> facts about it that do not contradict
        Nova, see :func:`nfv_sched.ops.answers.hosts.machines.contradictions`
    """
    facts = facts or {}
    servers = by_host(cloud)
    names = titles(cloud.hosts)
    metadata = metadata_by_host(cloud)
    network_names = {network.id: network.name
                     for network in cloud.networks or ()}
    return tuple(
        _view(cloud, host, names[host.uuid], servers.get(host.uuid, []),
              metadata.get(host.name, []), facts.get(host.uuid),
              network_names)
        for host in (cloud.hosts if hosts is None else hosts))


def free_ports(cloud: snapshot.Cloud) -> dict[str, int]:
    """Return the free ports of the virtual switch of each host, by name.

    Hosts without a limit, or whose ports are not known, are left out.
    """
    metadata = metadata_by_host(cloud)
    free_by_host = {}
    for host in cloud.hosts:
        most = limits_of(cloud, host, metadata.get(host.name, []))
        if host.network is not None and (
                host.network.vswitch_ports is not None
                and math.isfinite(decide.PORTS.limit(most))):
            free_by_host[host.name] = int(
                decide.PORTS.free(most, host.network.vswitch_ports))
    return free_by_host


def metadata_by_host(
        cloud: snapshot.Cloud) -> dict[str, list[Mapping[str, str]]]:
    metadata: dict[str, list[Mapping[str, str]]] = {}
    for aggregate in cloud.aggregates:
        for name in aggregate.hosts:
            metadata.setdefault(name, []).append(aggregate.metadata)
    return metadata


def titles(hosts: Sequence[snapshot.Host]) -> dict[str, str]:
    """Return a unique name for each host of a cloud, by UUID."""
    same: dict[str, list[snapshot.Host]] = {}
    for host in hosts:
        same.setdefault(host.name, []).append(host)
    titles = {}
    for name, members in same.items():
        nodes = {host.hypervisor for host in members}
        for host in members:
            titles[host.uuid] = (
                name if len(members) == 1 else
                f'{name} ({host.hypervisor})' if len(nodes) == len(members)
                else f'{name} ({host.uuid})').strip() or host.uuid
    return titles


def by_host(cloud: snapshot.Cloud) -> dict[str, list[snapshot.Server]]:
    """Return the servers of each host, oldest first, by UUID of the host.

    A compute service can have several compute nodes.  The allocations of a
    server show which of them it is on.
    """
    computes: dict[tuple[str, str], list[snapshot.Host]] = {}
    for host in cloud.hosts:
        computes.setdefault((host.cell, host.name), []).append(host)
    servers_by_host: dict[str, list[snapshot.Server]] = {}
    for server in sorted(cloud.servers, key=lambda server: (
            server.created, server.name, server.uuid)):
        if server.host is None:
            continue
        members = computes.get((server.cell, server.host), [])
        if len(members) > 1:
            members = [host for host in members if host.uuid in (
                server.allocations or {})] or members
        for host in members[:1]:
            servers_by_host.setdefault(host.uuid, []).append(server)
    return servers_by_host


def _view(
    cloud: snapshot.Cloud, host: snapshot.Host, title: str,
    servers: list[snapshot.Server], metadata: list[Mapping[str, str]],
    machine: machine_values.Machine | None,
    network_names: Mapping[str, str],
) -> document.HostDetails:
    label = option(cloud, 'vswitch_label')
    switch = frozenset(node.number for node in host.nodes or ()
                       if label in node.physnets)
    names = guests.labels(servers)
    here = {server.uuid: guests.server_on_host(
        server, host, names[server.uuid], switch) for server in servers}
    tenancies: dict[int, list[cores.Tenancy]] = {}
    for server in servers:
        for part in server.nodes or ():
            tenancies.setdefault(part.host_node, []).append(
                (here[server.uuid], part))
    groups = devices.grouped(host.devices, names)
    node_numbers = {node.number for node in host.nodes or ()}
    cpu_ratio = ratio(cloud, host, 'cpu')
    small_pages = memory.small_pages(
        host, servers, ratio(cloud, host, 'ram'))
    nodes = tuple([
        _node(node, cloud, switch, tenancies.get(node.number, []),
              groups.get(node.number, ()), cpu_ratio,
              machines.cores(machine, node.number))
        for node in host.nodes or ()])
    possible = min(sum(node.pcpus_free for node in nodes),
                   max((node.pcpus for node in nodes), default=0))
    largest_fit = max((node.largest_fit for node in nodes), default=0)
    return document.HostDetails(
        host=title, host_id=host.uuid, state=_state(host),
        disabled_reason=host.disabled_reason or None, cell=host.cell or None,
        availability_zone=host.zone, aggregates=host.aggregates,
        pcpus=sum(node.pcpus for node in nodes),
        pcpus_used=sum(node.pcpus_used for node in nodes),
        largest_fit=largest_fit,
        wholeness=largest_fit / possible if possible else None,
        memory_mib=host.memory, memory_used_mib=host.memory_used,
        small_pages=small_pages, network=limit_use.of_host(
            host, limits_of(cloud, host, metadata)),
        cpus_not_for_servers=_hidden(host, machine), notes=(
            *_notes(host, tenancies, here.values(), small_pages),
            *machines.notes(host, machine)),
        numa_nodes=nodes, devices_without_node=tuple([
            group for node, members in groups.items()
            if node not in node_numbers for group in members]),
        servers=tuple(here.values()), possible_fit=possible,
        shared_vcpus=host.vcpus_used,
        shared_vcpu_limit=int(host.vcpus * cpu_ratio),
        networks=_networks(servers, network_names))


def _networks(servers: Iterable[snapshot.Server], names: Mapping[str, str],
              ) -> tuple[tuple[str, str | None], ...]:
    networks = {
        (port.network_name or names.get(port.network) or port.network,
         port.physnet or '')
        for server in servers for port in server.ports or ()}
    return tuple([(name, physnet or None)
                  for name, physnet in sorted(networks) if name])


def _state(host: snapshot.Host) -> str:
    states = [] if host.enabled else ['disabled']
    if not host.up:
        states.append('down')
    if not host.mapped:
        states.append('unmapped')
    return ', '.join(states) or 'up'


def _node(
    node: snapshot.Node, cloud: snapshot.Cloud, switch: frozenset[int],
    tenancies: list[cores.Tenancy], groups: tuple[document.DevicesOfNIC, ...],
    ratio: float, facts: Sequence[frozenset[int]],
) -> document.NodeOfHost:
    networks, places = _labels(node, cloud)
    servers = {server.server_id: server for server, _part in tenancies}
    return document.NodeOfHost(
        node=node.number, socket=node.socket,
        switch=node.number in switch if switch else None,
        networks=networks, places=places, tunnel_endpoint=node.tunneled,
        pcpus=len(node.dedicated), pcpus_used=len(node.pinned),
        pcpus_free=len(node.free), largest_fit=cores.largest_fit(node),
        shared_vcpus=node.shared_used,
        shared_vcpu_limit=int(len(node.shared) * ratio),
        shared_cpus=tuple(sorted(node.shared)), memory_mib=node.memory,
        memory_used_mib=node.memory_used, pages=tuple([document.PagesUse(
            size_kib=pages.size, total=pages.usable, free=pages.free,
            used=pages.used, reserved=pages.reserved)
            for pages in node.pages]),
        devices=groups, cores=cores.cores(node, tenancies, facts),
        servers=tuple([document.ServerName(
            server=each.server, server_id=each.server_id, label=each.label,
            spans=len(each.numa_nodes)) for each in servers.values()]))


def option(cloud: snapshot.Cloud, name: str):
    value = cloud.options.get('nfv_sched', {}).get(name)
    return _DEFAULTS[name] if value is None else value


def label_names(cloud: snapshot.Cloud) -> rule.Names:
    return rule.Names(option(cloud, 'vswitch_label'),
                      option(cloud, 'node_label_prefix'))


def _labels(node: snapshot.Node, cloud: snapshot.Cloud) -> tuple[
        tuple[str, ...], tuple[str, ...]]:
    names = label_names(cloud)
    networks, places = [], []
    for label in sorted(node.physnets - {names.vswitch}):
        name = place.place_of(label, names)
        if name is not None:
            places.append(name)
        elif names.node(label) is None:
            networks.append(label)
    return tuple(networks), tuple(places)


def ratio(cloud: snapshot.Cloud, host: snapshot.Host, of: str) -> float:
    """Return the allocation ratio of ``cpu`` or ``ram`` of a host in Nova."""
    options = cloud.options.get('DEFAULT', {})
    own = host.cpu_ratio if of == 'cpu' else host.memory_ratio
    return (own or options.get(f'{of}_allocation_ratio') or
            options.get(f'initial_{of}_allocation_ratio') or 1.0)


def limits_of(cloud: snapshot.Cloud, host: snapshot.Host,
              metadata: Iterable[Mapping[str, str]]) -> limits.Limits:
    return limits.of_host(
        types.SimpleNamespace(host=host.name, aggregates=[
            types.SimpleNamespace(metadata=pairs) for pairs in metadata]),
        limits.Limits(*(option(cloud, name)
                        for name in limits.Limits._fields)))


def _hidden(host: snapshot.Host,
            machine: machine_values.Machine | None) -> int | None:
    """Count CPUs not reported for servers; return None if it is not known."""
    if machine is not None and host.nodes is not None:
        return len(machine.cpus.difference(*(
            node.shared | node.dedicated for node in host.nodes)))
    try:
        topology = json.loads(host.cpu_info)['topology']
        count = math.prod(int(topology[name]) for name in (
            'cells', 'sockets', 'cores', 'threads'))
    except (KeyError, TypeError, ValueError, OverflowError, RecursionError):
        return None
    if host.nodes is None:
        return None
    reported = sum(len(node.shared | node.dedicated) for node in host.nodes)
    return max(count - reported, 0)


def _notes(host: snapshot.Host, tenancies: Mapping[int, list[cores.Tenancy]],
           servers: Collection[document.ServerOnHost],
           small_pages: document.SmallPagesUse | None) -> list[str]:
    notes = []
    if not host.mapped:
        notes.append('no host mapping: nothing that is scheduled there starts '
                     'until nova-manage cell_v2 discover_hosts is run')
    overuse = '' if small_pages is None else memory.overuse(small_pages)
    if overuse:
        notes.append(overuse)
    if host.nodes is None:
        notes.append('it reports no NUMA nodes: no server with pinned CPUs, '
                     'huge pages or NUMA nodes fits')
    for node in host.nodes or ():
        notes += cores.problems(node, tenancies.get(node.number, []))
    node_numbers = {node.number for node in host.nodes or ()}
    for server in servers:
        lost = sorted({part.node for part in server.numa_nodes} - node_numbers)
        if lost:
            notes.append(f'{server.label} is on node '
                         f'{", ".join(map(str, lost))}, which the host does '
                         'not report')
    known_servers = {server.server_id for server in servers}
    strangers = sorted(
        device.address for device in host.devices
        if device.server is not None and device.server not in known_servers)
    if strangers:
        notes.append(f'{len(strangers)} devices of servers that are not '
                     f'known here, such as {strangers[0]}')
    return notes
