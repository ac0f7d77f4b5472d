# SPDX-License-Identifier: Apache-2.0
"""Tell what is on the hosts of a cloud."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
import json
import math
import types

from nfv_sched.base import conf
from nfv_sched.base import cpu_spec
from nfv_sched.base import extra_specs
from nfv_sched.fit.rules import place
from nfv_sched.limits import decide
from nfv_sched.limits import names as ledger_names
from nfv_sched.limits import options as limits
from nfv_sched.ops.answers.hosts import document
from nfv_sched.ops.answers.hosts import nodes
from nfv_sched.ops.answers.machine import values as machine_values
from nfv_sched.ops.answers.simulation import document as simulated
from nfv_sched.ops.cloud import occupied
from nfv_sched.ops.cloud import scenario
from nfv_sched.ops.cloud import snapshot

_MIB = 1024  # KiB
# Ports of these types are on the virtual switch.
_ON_SWITCH = ('normal', 'macvtap-none', 'vhostuser')
_DEFAULTS = {option.name: option.default
             for _group, options in conf.list_opts() for option in options}


def views(cloud: snapshot.Cloud,
          hosts: Sequence[snapshot.Host] | None = None,
          facts: Mapping[str, machine_values.Machine] | None = None,
          ) -> tuple[document.HostDetails, ...]:
    """Return hosts of a cloud, in its order.

    :param hosts: None for all
    :param facts: UUID of a host -> facts about it that do not contradict
        Nova, see :func:`nfv_sched.ops.answers.hosts.nodes.contradictions`
    """
    facts = facts or {}
    servers = by_host(cloud)
    names = titles(cloud.hosts)
    aggregates = scenario.aggregates_by_host(cloud.aggregates)
    network_names = {network.id: network.name
                     for network in cloud.networks or ()}
    return tuple(
        _view(cloud, host, names[host.uuid], servers.get(host.uuid, []),
              aggregates[host.name], facts.get(host.uuid), network_names)
        for host in (cloud.hosts if hosts is None else hosts))


def free_ports(cloud: snapshot.Cloud) -> dict[str, int]:
    """Return the free ports of the virtual switch of each host, by name.

    Hosts without a limit, or whose ports are not known, are left out.
    """
    aggregates = scenario.aggregates_by_host(cloud.aggregates)
    free_by_host = {}
    for host in cloud.hosts:
        most = limits_of(cloud, host, aggregates[host.name])
        if host.network is not None and (
                host.network.vswitch_ports is not None
                and math.isfinite(decide.PORTS.limit(most))):
            free_by_host[host.name] = int(
                decide.PORTS.free(most, host.network.vswitch_ports))
    return free_by_host


def titles(hosts: Sequence[snapshot.Host]) -> dict[str, str]:
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


def _view(cloud: snapshot.Cloud, host: snapshot.Host, title: str,
          servers: list[snapshot.Server],
          aggregates: list[snapshot.Aggregate],
          machine: machine_values.Machine | None,
          network_names: Mapping[str, str]) -> document.HostDetails:
    label = scenario.label_names(cloud).vswitch
    switch = frozenset(node.number for node in host.nodes or ()
                       if label in node.physnets)
    names = labels(servers)
    here = {server.uuid: server_on_host(
        server, host, names[server.uuid], switch) for server in servers}
    tenancies: dict[int, list[nodes.Tenancy]] = {}
    for server in servers:
        for part in server.nodes or ():
            tenancies.setdefault(part.host_node, []).append(
                (here[server.uuid], part))
    groups = nodes.devices(host.devices, names)
    numbers = {node.number for node in host.nodes or ()}
    cpu_ratio = ratio(cloud, host, 'cpu')
    small = small_pages(host, servers, ratio(cloud, host, 'ram'))
    shown = tuple([
        _node(node, cloud, switch, tenancies.get(node.number, []),
              groups.get(node.number, ()), cpu_ratio, machine)
        for node in host.nodes or ()])
    possible = min(sum(node.pcpus_free for node in shown),
                   max((node.pcpus for node in shown), default=0))
    largest_fit = max((node.largest_fit for node in shown), default=0)
    return document.HostDetails(
        host=title, host_id=host.uuid, state=_state(host),
        disabled_reason=host.disabled_reason or None, cell=host.cell or None,
        availability_zone=host.zone, aggregates=host.aggregates,
        pcpus=sum(node.pcpus for node in shown),
        pcpus_used=sum(node.pcpus_used for node in shown),
        largest_fit=largest_fit,
        wholeness=largest_fit / possible if possible else None,
        memory_mib=host.memory, memory_used_mib=host.memory_used,
        small_pages=small,
        network=_network_use(host, limits_of(cloud, host, aggregates)),
        cpus_not_for_servers=_hidden(host, machine), notes=tuple(_notes(
            host, tenancies, here.values(), small, machine)),
        numa_nodes=shown, devices_without_node=tuple([
            group for number, members in groups.items()
            if number not in numbers for group in members]),
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
    return ', '.join([fault for fault, is_well in (
        ('disabled', host.enabled), ('down', host.up),
        ('unmapped', host.mapped)) if not is_well]) or 'up'


def _node(node: snapshot.Node, cloud: snapshot.Cloud, switch: frozenset[int],
          tenancies: list[nodes.Tenancy],
          groups: tuple[document.DevicesOfNIC, ...], ratio: float,
          machine: machine_values.Machine | None) -> document.NodeOfHost:
    networks, places = _labels(node, cloud)
    servers = {server.server_id: server for server, _part in tenancies}
    return document.NodeOfHost(
        node=node.number, socket=node.socket,
        switch=node.number in switch if switch else None,
        networks=networks, places=places, tunnel_endpoint=node.tunneled,
        pcpus=len(node.dedicated), pcpus_used=len(node.pinned),
        pcpus_free=len(node.free), largest_fit=nodes.largest_fit(node),
        shared_vcpus=node.shared_used,
        shared_vcpu_limit=int(len(node.shared) * ratio),
        shared_cpus=tuple(sorted(node.shared)), memory_mib=node.memory,
        memory_used_mib=node.memory_used, pages=tuple([document.PagesUse(
            size_kib=pages.size, total=pages.usable, free=pages.free,
            used=pages.used, reserved=pages.reserved)
            for pages in node.pages]),
        devices=groups, cores=nodes.cores(node, tenancies, machine),
        servers=tuple([document.ServerName(
            server=each.server, server_id=each.server_id, label=each.label,
            spans=len(each.numa_nodes)) for each in servers.values()]))


def _labels(node: snapshot.Node, cloud: snapshot.Cloud) -> tuple[
        tuple[str, ...], tuple[str, ...]]:
    names = scenario.label_names(cloud)
    networks, places = [], []
    for label in sorted(node.physnets - {names.vswitch}):
        if (name := place.place_of(label, names)) is not None:
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
              aggregates: Iterable[snapshot.Aggregate]) -> limits.Limits:
    options = cloud.options.get('nfv_sched', {})
    return limits.of_host(
        types.SimpleNamespace(host=host.name, aggregates=aggregates),
        limits.Limits(*(
            _DEFAULTS[name] if options.get(name) is None else options[name]
            for name in limits.Limits._fields)))


def _hidden(host: snapshot.Host,
            machine: machine_values.Machine | None) -> int | None:
    """Count CPUs not reported for servers; return None if it is not known."""
    if host.nodes is None:
        return None
    reported = [node.shared | node.dedicated for node in host.nodes]
    if machine is not None:
        return len(machine.cpus.difference(*reported))
    try:
        topology = json.loads(host.cpu_info)['topology']
        count = math.prod(int(topology[name]) for name in (
            'cells', 'sockets', 'cores', 'threads'))
    except (KeyError, TypeError, ValueError, OverflowError, RecursionError):
        return None
    return max(count - sum(map(len, reported)), 0)


def _notes(host: snapshot.Host, tenancies: Mapping[int, list[nodes.Tenancy]],
           servers: Collection[document.ServerOnHost],
           small: document.SmallPagesUse | None,
           machine: machine_values.Machine | None) -> Iterator[str]:
    if not host.mapped:
        yield ('no host mapping: nothing that is scheduled there starts '
               'until nova-manage cell_v2 discover_hosts is run')
    if small is not None and (text := overuse(small)):
        yield text
    if host.nodes is None:
        yield ('it reports no NUMA nodes: no server with pinned CPUs, huge '
               'pages or NUMA nodes fits')
    for node in host.nodes or ():
        yield from nodes.problems(node, tenancies.get(node.number, []))
    numbers = {node.number for node in host.nodes or ()}
    for server in servers:
        if lost := sorted({part.node for part in server.numa_nodes} - numbers):
            yield (f'{server.label} is on node {", ".join(map(str, lost))}, '
                   'which the host does not report')
    known_servers = {server.server_id for server in servers}
    strangers = sorted(
        device.address for device in host.devices
        if device.server is not None and device.server not in known_servers)
    if strangers:
        yield (f'{len(strangers)} devices of servers that are not known '
               f'here, such as {strangers[0]}')
    if machine is not None and host.nodes is not None:
        for node in machine.nodes:
            if node.cores and node.number not in numbers:
                yield (f'CPU {cpu_spec.to_text(node.cpus)} on node '
                       f'{node.number}, which the host does not report, by '
                       'the facts about it')


def labels(servers: Iterable[snapshot.Server]) -> dict[str, str]:
    """Return a label for each server of a host, by UUID.

    It is the name, with a part of the UUID unless the name is unique here.
    """
    uuids_by_name: dict[str, list[str]] = {}
    for server in servers:
        uuids_by_name.setdefault(server.name.strip(), []).append(server.uuid)
    return {uuid: name if name and len(uuids) == 1 else
            f'{name} ({uuid[:8]})'.strip()
            for name, uuids in uuids_by_name.items() for uuid in uuids}


def server_on_host(server: snapshot.Server, host: snapshot.Host, label: str,
                   switch: frozenset[int]) -> document.ServerOnHost:
    """Return a server on a host; ``switch`` is empty if not reported."""
    parts = _parts(server.nodes or ())
    own = {part.node for part in parts}
    wants_switch = extra_specs.parse(
        server.flavor.extra_specs, server.image).vswitch or any(
            port.vnic_type in _ON_SWITCH and port.physnet is not None
            for port in server.ports or ())
    return document.ServerOnHost(
        server=server.name, server_id=server.uuid, label=label,
        project_id=server.project or None, flavor=server.flavor.name,
        flavor_id=server.flavor.id or None, state=server.state,
        vcpus=server.flavor.vcpus, memory_mib=server.flavor.memory,
        numa_nodes=parts, remote=tuple(_remote(
            server, host, own, switch)) if parts else (),
        lacks_nearby=bool(parts and _remote(
            server, host, own, switch if wants_switch else frozenset())))


def _parts(nodes: Sequence[snapshot.GuestNode],
           ) -> tuple[document.ServerPart, ...]:
    by_node: dict[int, list[snapshot.GuestNode]] = {}
    for node in nodes:
        by_node.setdefault(node.host_node, []).append(node)
    return tuple([
        document.ServerPart(
            node=number,
            pinned_vcpus=sum(len(node.dedicated) for node in guest_nodes),
            shared_vcpus=sum(len(node.shared) for node in guest_nodes),
            memory_mib=sum(node.memory for node in guest_nodes),
            page_size_kib=guest_nodes[0].page_size,
            pins=tuple([simulated.PinnedVCPU(vcpu=vcpu, cpu=cpu)
                        for vcpu, cpu in sorted(
                            pin for node in guest_nodes
                            for pin in node.pins.items())]))
        for number, guest_nodes in sorted(by_node.items())])


def _remote(server: snapshot.Server, host: snapshot.Host, own: set[int],
            switch: frozenset[int]) -> list[str]:
    reasons = []
    for device in host.devices:
        if device.server == server.uuid and device.node is not None and (
                device.node not in own):
            reasons.append(f'device {device.address} is near node '
                           f'{device.node}')
    near_nodes = near(host)
    for network in sorted({
            port.physnet for port in server.ports or ()
            if port.physnet is not None and port.device is None}):
        nodes = near_nodes.get(network)
        if nodes and own.isdisjoint(nodes):
            reasons.append(f'network {network} is near node {listed(nodes)}')
    if switch and own.isdisjoint(switch) and any(
            port.vnic_type in _ON_SWITCH for port in server.ports or ()):
        reasons.append(f'the virtual switch is on node {listed(switch)}')
    return reasons


def near(host: snapshot.Host) -> Mapping[str, set[int]]:
    """Return the nodes near each physical network or label, as numbers."""
    nodes_by_network: dict[str, set[int]] = {}
    for node in host.nodes or ():
        for network in node.physnets:
            nodes_by_network.setdefault(network, set()).add(node.number)
    return nodes_by_network


def listed(numbers: Iterable[int]) -> str:
    return ', '.join(map(str, sorted(numbers)))


def overuse(small: document.SmallPagesUse) -> str:
    ratio, available = max(small.ratio, 1.0), small.available_mib
    if small.used_without_nodes_mib <= available * ratio:
        return ''
    return (f'servers without NUMA topology use '
            f'{small.used_without_nodes_mib} MiB of small pages, '
            f'{limit_text(available, ratio)} MiB may be used beyond the '
            f'reserve of {small.reserved_mib} MiB')


def limit_text(amount: int, ratio: float) -> str:
    most = int(amount * ratio)
    return f'{most} ({ratio:g} x {amount})' if most != amount else str(most)


def small_pages(host: snapshot.Host, servers: Iterable[snapshot.Server],
                ratio: float = 1.0) -> document.SmallPagesUse | None:
    """Return the small pages of a host; None if it does not report any.

    A server without NUMA topology is on no NUMA node, so nova-compute records
    its memory on none: only the sum over the host shows whether any is left.
    """
    pages = [each for node in host.nodes or () for each in node.pages]
    size = min((each.size for each in pages), default=_MIB)
    if size >= _MIB:
        return None
    servers = list(servers)
    small = [each for each in pages if each.size == size]
    huge_reserved = sum(each.reserved * each.size // _MIB
                        for each in pages if each.size != size)
    total, on_nodes = _mib(small, 'total'), _mib(small, 'used')
    reserved = max(_mib(small, 'reserved'), occupied.reserved_memory(
        host, sum(server.flavor.memory for server in servers))
        - huge_reserved)
    floating = sum(server.flavor.memory for server in servers
                   if server.nodes is None)
    return document.SmallPagesUse(
        size_kib=size, total_mib=total, reserved_mib=reserved,
        used_on_nodes_mib=on_nodes, used_without_nodes_mib=floating,
        free_mib=total - reserved - on_nodes - floating, ratio=ratio)


def _mib(pages: Iterable[snapshot.Pages], field: str) -> int:
    return int(sum(getattr(each, field) * each.size for each in pages)) // _MIB


def _network_use(host: snapshot.Host,
                 most: limits.Limits) -> document.NetworkUse:
    network = host.network or snapshot.HostNetwork()
    uuid = ledger_names.provider_uuid(host.uuid)
    ledger: Mapping[str, snapshot.Inventory] = next((
        provider.inventories for provider in host.providers
        if provider.uuid == uuid), {})
    uses, notes = [], []
    for noun, quantity, carried in (
            ('ports', decide.PORTS, network.vswitch_ports),
            ('rules', decide.RULES, network.security_rules)):
        limit = _whole(quantity.limit(most))
        inventory = ledger.get(quantity.resource_class)
        free = None
        if limit is not None and inventory is not None:
            free = inventory.capacity - inventory.used
        elif limit is not None and carried is not None:
            free = max(int(quantity.free(most, carried)), 0)
        uses.append(document.HostLimitUse(
            used=None if carried is None else quantity.used(most, carried),
            limit=limit, free=free))
        if inventory is not None:
            # nfv-sched-ledger raises a total that is below the allocations.
            total = inventory.total if limit is None else min(
                limit, inventory.total)
            if inventory.used > total:
                notes.append(f'{inventory.used} {noun} allocated of {total}')
    return document.NetworkUse(
        vswitch_ports=uses[0], security_rules=uses[1],
        dhcp_servers=network.dhcp_servers, routers=network.routers,
        services_limit=_whole(most.network_services_per_node),
        sources=tuple(name for name, is_there in (
            ('neutron', network.vswitch_ports is not None),
            ('ledger', ledger)) if is_there), notes=tuple(notes))


def _whole(limit: float) -> int | None:
    return None if math.isinf(limit) else int(limit)
