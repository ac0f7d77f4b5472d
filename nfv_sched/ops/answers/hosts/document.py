# SPDX-License-Identifier: Apache-2.0
"""Define the documents of ``host list`` and ``host show``."""

from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
import dataclasses
import typing as ty

from nfv_sched.ops.answers.simulation import document

if ty.TYPE_CHECKING:
    from nfv_sched.ops.answers.hosts import limit_use
    from nfv_sched.ops.answers.hosts import memory
    from nfv_sched.ops.answers.hosts import values
    from nfv_sched.ops.cloud import snapshot


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ServerName:
    """A server.

    :ivar server: its name
    :ivar server_id: its UUID
    """

    server: str
    server_id: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PagesUse:
    """Memory pages of one size.

    :ivar size_kib: size of a page in KiB
    :ivar total: number of pages that servers can have
    :ivar used: number of pages that servers use, possibly more than there are
    :ivar free: number of free ones
    :ivar reserved: number of further pages that servers cannot have
    """

    size_kib: int
    total: int
    used: int
    free: int
    reserved: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class DeviceUse:
    """PCI devices of one kind.

    :ivar total: number of devices, unavailable ones included
    :ivar used: number of those of servers
    :ivar free: number of available ones
    """

    total: int
    used: int
    free: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class HostLimitUse:
    """Use of a limit of a host.

    :ivar used: use; null if it is not known
    :ivar limit: the limit; null if there is none
    :ivar free: what new servers can have; null without a limit, or if it is
        not known
    """

    used: int | None
    limit: int | None
    free: int | None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class NetworkUse:
    """The load that the network puts on a host.

    :ivar vswitch_ports: ports of the virtual switch, physical ones included
    :ivar security_rules: rules of the security groups of these ports
    :ivar dhcp_servers: number of DHCP servers; null if not known
    :ivar routers: number of routers; null if not known
    :ivar services_limit: most DHCP servers and routers; null for unlimited
    :ivar sources: where this is from: "neutron", "ledger"
    :ivar notes: over-allocations, for people
    """

    vswitch_ports: HostLimitUse
    security_rules: HostLimitUse
    dhcp_servers: int | None
    routers: int | None
    services_limit: int | None
    sources: tuple[str, ...]
    notes: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class NodeRow:
    """A NUMA node of a host, or what is on none.

    :ivar host: name of the host
    :ivar host_id: UUID of its compute node
    :ivar availability_zone: name of its zone
    :ivar state: "up", or what keeps it from taking servers
    :ivar node: number of the NUMA node; null for a host that reports none,
        and for servers without NUMA topology
    :ivar switch: whether the virtual switch is there; null if the host does
        not say where it is
    :ivar pcpus: number of CPUs for pinned servers; null without a node
    :ivar pcpus_used: number of those in use; null likewise
    :ivar largest_fit: most vCPUs of a new pinned server with one NUMA node;
        null likewise
    :ivar shared_vcpus: number of shared vCPUs of servers
    :ivar shared_vcpu_limit: how many the shared CPUs can take; null if it is
        that of the nodes of the host
    :ivar memory_mib: memory in MiB; without a node what is left of small
        pages; null if that is not known
    :ivar memory_used_mib: memory of servers, in MiB
    :ivar pages: pages of each size
    :ivar vfs: VFs near it; null without a node
    :ivar networks: physical networks near it
    :ivar servers: servers with a part there
    :ivar network: what the network puts on the host
    """

    host: str
    host_id: str
    availability_zone: str
    state: str
    node: int | None
    switch: bool | None
    pcpus: int | None
    pcpus_used: int | None
    largest_fit: int | None
    shared_vcpus: int
    shared_vcpu_limit: int | None
    memory_mib: int | None
    memory_used_mib: int
    pages: tuple[PagesUse, ...]
    vfs: DeviceUse | None
    networks: tuple[str, ...]
    servers: tuple[ServerName, ...]
    network: NetworkUse


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class NodeRows:
    """The NUMA nodes of hosts.

    :ivar numa_nodes: a row for each NUMA node, and one for what is on none
    """

    numa_nodes: tuple[NodeRow, ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CPUUser:
    """A server that uses a CPU.

    :ivar server: its name, unique on the host
    :ivar server_id: its UUID
    :ivar vcpu: number of the vCPU; null for emulator threads
    """

    server: str
    server_id: str
    vcpu: int | None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CPUUse:
    """A CPU of a host.

    :ivar cpu: its number
    :ivar state: what it is used for: "guest", "emulator", "idle", "unknown
        guest", "conflict", "shared", "free" or "not Nova's"
    :ivar users: servers that use it, one unless they conflict
    """

    cpu: int
    state: str
    users: tuple[CPUUser, ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CoreUse:
    """A physical core.

    :ivar cpus: its CPUs
    """

    cpus: tuple[CPUUse, ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class DevicesOfNIC:
    """PCI devices of a NIC, or of one product.

    :ivar name: PCI address of the PF, or vendor and product
    :ivar kind: "VF", "PF", "PCI" or "vDPA"
    :ivar total: number of devices, unavailable ones included
    :ivar used: number of those of servers
    :ivar free: number of available ones
    :ivar servers: names of servers that use some, unique on the host
    """

    name: str
    kind: str
    total: int
    used: int
    free: int
    servers: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class NodeOfHost:
    """A NUMA node of the host.

    :ivar node: its number
    :ivar socket: number of its socket; null if the host does not report it
    :ivar switch: whether the virtual switch is there; null if the host does
        not say where it is
    :ivar networks: physical networks near it
    :ivar places: places there
    :ivar tunnel_endpoint: whether tunnelled networks are near it
    :ivar pcpus: number of CPUs for pinned servers
    :ivar pcpus_used: number of those in use
    :ivar largest_fit: most vCPUs of a new pinned server with one NUMA node
    :ivar shared_vcpus: number of shared vCPUs of servers
    :ivar shared_vcpu_limit: how many its shared CPUs can take
    :ivar shared_cpus: its shared CPUs
    :ivar memory_mib: memory in MiB
    :ivar memory_used_mib: memory of servers, in MiB
    :ivar pages: pages of each size
    :ivar devices: PCI devices near it
    :ivar cores: its physical cores
    :ivar servers: servers with a part there
    """

    node: int
    socket: int | None
    switch: bool | None
    networks: tuple[str, ...]
    places: tuple[str, ...]
    tunnel_endpoint: bool
    pcpus: int
    pcpus_used: int
    largest_fit: int
    shared_vcpus: int
    shared_vcpu_limit: int
    shared_cpus: tuple[int, ...]
    memory_mib: int
    memory_used_mib: int
    pages: tuple[PagesUse, ...]
    devices: tuple[DevicesOfNIC, ...]
    cores: tuple[CoreUse, ...]
    servers: tuple[ServerName, ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ServerPart:
    """The part of a server on a NUMA node.

    :ivar node: number of the NUMA node of the host
    :ivar pinned_vcpus: number of pinned vCPUs
    :ivar pins: the CPU of each pinned vCPU
    :ivar shared_vcpus: number of vCPUs that float over shared CPUs
    :ivar memory_mib: memory in MiB
    :ivar page_size_kib: size of its pages in KiB; null if it has none
    """

    node: int
    pinned_vcpus: int
    pins: tuple[document.PinnedVCPU, ...]
    shared_vcpus: int
    memory_mib: int
    page_size_kib: int | None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ServerOnHost:
    """A server of the host.

    :ivar server: its name
    :ivar server_id: its UUID
    :ivar project_id: ID of its project; null if it is not known
    :ivar flavor: name of its flavor
    :ivar flavor_id: ID of the flavor; null if it was not read
    :ivar state: its state in Nova (vm_state)
    :ivar vcpus: number of vCPUs
    :ivar memory_mib: memory in MiB
    :ivar numa_nodes: its parts; empty if it floats over the host
    :ivar remote: devices and networks near other NUMA nodes only, for people
    """

    server: str
    server_id: str
    project_id: str | None
    flavor: str
    flavor_id: str | None
    state: str
    vcpus: int
    memory_mib: int
    numa_nodes: tuple[ServerPart, ...]
    remote: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SmallPagesUse:
    """Memory in pages of the smallest size.

    :ivar size_kib: size of a page in KiB
    :ivar total_mib: all pages, in MiB
    :ivar reserved_mib: kept for the platform, in MiB
    :ivar used_on_nodes_mib: of servers with NUMA topology, in MiB
    :ivar used_without_nodes_mib: of other servers, in MiB
    :ivar free_mib: the rest, in MiB; negative if the reserve is used
    """

    size_kib: int
    total_mib: int
    reserved_mib: int
    used_on_nodes_mib: int
    used_without_nodes_mib: int
    free_mib: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class HostDetails:
    """A host.

    :ivar host: its name, unique in the cloud
    :ivar host_id: UUID of its compute node
    :ivar state: "up", or what keeps it from taking servers
    :ivar disabled_reason: why the operator disabled it; null if it was not
    :ivar cell: name of its Nova cell; null if it is not known
    :ivar availability_zone: name of its zone
    :ivar aggregates: names of its aggregates
    :ivar pcpus: number of CPUs for pinned servers
    :ivar pcpus_used: number of those in use
    :ivar largest_fit: most vCPUs of a new pinned server with one NUMA node
    :ivar wholeness: part of the free CPUs that one such server can use, 0 to
        1; null without free CPUs
    :ivar memory_mib: memory in MiB
    :ivar memory_used_mib: used memory in MiB, with that of the platform
    :ivar small_pages: memory in small pages; null if it reports none
    :ivar network: what the network puts on the host
    :ivar cpus_not_for_servers: number of CPUs of which Nova does not know;
        null without --facts
    :ivar notes: oddities, for people
    :ivar numa_nodes: its NUMA nodes; empty if it reports none
    :ivar devices_without_node: PCI devices of which the node is not known
    :ivar servers: its servers, the oldest first
    """

    host: str
    host_id: str
    state: str
    disabled_reason: str | None
    cell: str | None
    availability_zone: str
    aggregates: tuple[str, ...]
    pcpus: int
    pcpus_used: int
    largest_fit: int
    wholeness: float | None
    memory_mib: int
    memory_used_mib: int
    small_pages: SmallPagesUse | None
    network: NetworkUse
    cpus_not_for_servers: int | None
    notes: tuple[str, ...]
    numa_nodes: tuple[NodeOfHost, ...]
    devices_without_node: tuple[DevicesOfNIC, ...]
    servers: tuple[ServerOnHost, ...]


def listed(views: 'Iterable[values.HostView]') -> NodeRows:
    """Return the document of several hosts."""
    return NodeRows(numa_nodes=tuple([
        row for view in views for row in _rows(view)]))


def _rows(view: 'values.HostView') -> Iterator[NodeRow]:
    """Yield the rows of a host."""
    network = _network(view)
    for each in view.nodes:
        node = each.node
        used, total, free = each.devices_of('VF')
        yield NodeRow(
            host=view.title, host_id=view.host.uuid,
            availability_zone=view.host.zone, state=view.state,
            node=node.number, switch=each.switch, pcpus=len(node.dedicated),
            pcpus_used=each.used, largest_fit=each.largest_fit,
            shared_vcpus=node.shared_used,
            shared_vcpu_limit=each.shared_limit, memory_mib=node.memory,
            memory_used_mib=node.memory_used,
            pages=tuple(map(_pages, node.pages)),
            vfs=DeviceUse(total=total, used=used, free=free),
            networks=each.networks, servers=_names(each.guests),
            network=network)
    if view.nodes and not view.floating:
        return
    small = view.small_pages
    whole = not view.nodes
    yield NodeRow(
        host=view.title, host_id=view.host.uuid,
        availability_zone=view.host.zone, state=view.state, node=None,
        switch=None, pcpus=None, pcpus_used=None, largest_fit=None,
        shared_vcpus=view.host.vcpus_used if whole else sum(
            guest.vcpus for guest in view.floating),
        shared_vcpu_limit=view.shared_limit if whole else None,
        memory_mib=view.host.memory if whole else (
            small.available if small is not None else None),
        memory_used_mib=view.host.memory_used if whole else sum(
            guest.memory for guest in view.floating),
        pages=(), vfs=None, networks=(), servers=_names(view.floating),
        network=network)


def shown(view: 'values.HostView') -> HostDetails:
    """Return the document of a host."""
    host = view.host
    return HostDetails(
        host=view.title, host_id=host.uuid, state=view.state,
        disabled_reason=host.disabled_reason or None, cell=host.cell or None,
        availability_zone=host.zone, aggregates=host.aggregates,
        pcpus=view.dedicated, pcpus_used=view.used,
        largest_fit=view.largest_fit, wholeness=view.wholeness,
        memory_mib=host.memory, memory_used_mib=host.memory_used,
        small_pages=_small_pages(view.small_pages),
        network=_network(view),
        cpus_not_for_servers=view.hidden, notes=view.notes,
        numa_nodes=tuple(map(_node, view.nodes)),
        devices_without_node=tuple(map(_devices, view.devices)),
        servers=tuple(map(_server, view.guests)))


def _names(guests: 'Sequence[values.GuestView]') -> tuple[ServerName, ...]:
    return tuple([ServerName(server=guest.name, server_id=guest.uuid)
                  for guest in guests])


def _pages(pages: 'snapshot.Pages') -> PagesUse:
    return PagesUse(
        size_kib=pages.size, total=pages.usable, free=pages.free,
        used=pages.used, reserved=pages.reserved)


def _limit(usage: 'limit_use.LimitUse') -> HostLimitUse:
    return HostLimitUse(used=usage.used, limit=usage.limit, free=usage.free)


def _network(view: 'values.HostView') -> NetworkUse:
    network, limits = view.host.network, view.limits
    return NetworkUse(
        vswitch_ports=_limit(limits.ports),
        security_rules=_limit(limits.rules),
        dhcp_servers=None if network is None else network.dhcp_servers,
        routers=None if network is None else network.routers,
        services_limit=limits.services_limit, sources=limits.sources,
        notes=limits.notes)


def _small_pages(small: 'memory.SmallPages | None') -> SmallPagesUse | None:
    return None if small is None else SmallPagesUse(
        size_kib=small.size, total_mib=small.total,
        reserved_mib=small.reserved, used_on_nodes_mib=small.on_nodes,
        used_without_nodes_mib=small.floating, free_mib=small.free)


def _devices(group: 'values.DeviceGroup') -> DevicesOfNIC:
    return DevicesOfNIC(
        name=group.name, kind=group.kind, total=group.total, used=group.used,
        free=group.free, servers=group.guests)


def _node(view: 'values.NodeView') -> NodeOfHost:
    node = view.node
    return NodeOfHost(
        node=node.number, socket=node.socket, switch=view.switch,
        networks=view.networks, places=view.places,
        tunnel_endpoint=node.tunneled, pcpus=len(node.dedicated),
        pcpus_used=view.used, largest_fit=view.largest_fit,
        shared_vcpus=node.shared_used, shared_vcpu_limit=view.shared_limit,
        shared_cpus=tuple(sorted(node.shared)), memory_mib=node.memory,
        memory_used_mib=node.memory_used,
        pages=tuple(map(_pages, node.pages)),
        devices=tuple(map(_devices, view.devices)),
        cores=tuple([CoreUse(cpus=tuple([CPUUse(
            cpu=thread.cpu, state=thread.state.value, users=tuple([CPUUser(
                server=owner.guest.label, server_id=owner.guest.uuid,
                vcpu=owner.vcpu) for owner in thread.owners]))
            for thread in core])) for core in view.cores]),
        servers=_names(view.guests))


def _server(guest: 'values.GuestView') -> ServerOnHost:
    return ServerOnHost(
        server=guest.name, server_id=guest.uuid,
        project_id=guest.project or None, flavor=guest.flavor,
        flavor_id=guest.flavor_id or None, state=guest.state,
        vcpus=guest.vcpus, memory_mib=guest.memory,
        numa_nodes=tuple([ServerPart(
            node=part.node, pinned_vcpus=part.dedicated,
            pins=tuple([document.PinnedVCPU(vcpu=vcpu, cpu=cpu)
                        for vcpu, cpu in part.pins]),
            shared_vcpus=part.shared, memory_mib=part.memory,
            page_size_kib=part.page_size) for part in guest.parts]),
        remote=guest.remote)
