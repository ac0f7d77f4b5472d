# SPDX-License-Identifier: Apache-2.0
"""Define hosts as ``host list``, ``host show`` and maps show them."""

from collections.abc import Iterable, Iterator
import dataclasses
import enum

from nfv_sched.ops.answers.simulation import document
from nfv_sched.ops.cli import documents


class CPUState(enum.StrEnum):
    """The use of a CPU of a host by Nova.

    Nova does not report CPUs that are neither for shared nor for pinned
    servers; only facts about the machine have them.
    """

    GUEST = 'guest'  # a vCPU is pinned to it
    EMULATOR = 'emulator'  # for emulator threads of a guest
    IDLE = 'idle'  # kept idle: the server on its sibling wants whole cores
    UNKNOWN = 'unknown guest'  # in use by the record, but by no known server
    CONFLICT = 'conflict'  # several servers use it
    SHARED = 'shared'
    FREE = 'free'
    OTHER = "not Nova's"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ServerName:
    """A server."""

    server: str  #: its name
    server_id: str  #: its UUID
    #: its name without control characters, unique on the host
    label: str = documents.internal()
    #: number of host NUMA nodes that it is on
    spans: int = documents.internal()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PagesUse:
    """Memory pages of one size."""

    size_kib: int  #: size of a page in KiB
    total: int  #: number of pages that servers can have
    #: number of pages that servers use, possibly more than there are
    used: int
    free: int  #: number of free ones
    reserved: int  #: number of further pages that servers cannot have


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class DeviceUse:
    """PCI devices of one kind."""

    total: int  #: number of devices, unavailable ones included
    used: int  #: number of those of servers
    free: int  #: number of available ones


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class HostLimitUse:
    """Use of a limit of a host."""

    used: int | None  #: use; null if it is not known
    limit: int | None  #: the limit; null if there is none
    #: what new servers can have; null without a limit, or if it is not known
    free: int | None

    @property
    def percent_used(self) -> float:
        """The part of the limit that is not free, in percent."""
        if self.limit is None or self.free is None:
            return 0.0
        return 100.0 * (1 - max(self.free, 0) / max(self.limit, 1))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class NetworkUse:
    """The load that the network puts on a host."""

    #: ports of the virtual switch, physical ones included
    vswitch_ports: HostLimitUse
    #: rules of the security groups of these ports
    security_rules: HostLimitUse
    dhcp_servers: int | None  #: number of DHCP servers; null if not known
    routers: int | None  #: number of routers; null if not known
    #: most DHCP servers and routers; null for unlimited
    services_limit: int | None
    sources: tuple[str, ...]  #: where this is from: "neutron", "ledger"
    notes: tuple[str, ...]  #: over-allocations, for people

    @property
    def percent_used(self) -> float:
        return max(self.vswitch_ports.percent_used,
                   self.security_rules.percent_used)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class NodeRow:
    """A NUMA node of a host, or what is on none."""

    host: str  #: name of the host
    host_id: str  #: UUID of its compute node
    availability_zone: str  #: name of its zone
    aggregates: tuple[str, ...]  #: names of its aggregates
    state: str  #: "up", or what keeps it from taking servers
    #: number of the NUMA node; null for a host that reports none, and for
    #: servers without NUMA topology
    node: int | None
    #: whether the virtual switch is there; null if the host does not say where
    #: it is
    switch: bool | None
    #: number of CPUs for pinned servers; null without a node
    pcpus: int | None
    pcpus_used: int | None  #: number of those in use; null likewise
    #: most vCPUs of a new pinned server with one NUMA node; null likewise
    largest_fit: int | None
    shared_vcpus: int  #: number of shared vCPUs of servers
    #: how many the shared CPUs can take; null if it is that of the nodes of
    #: the host
    shared_vcpu_limit: int | None
    #: memory in MiB; without a node what is left of small pages; null if that
    #: is not known
    memory_mib: int | None
    memory_used_mib: int  #: memory of servers, in MiB
    pages: tuple[PagesUse, ...]  #: pages of each size
    vfs: DeviceUse | None  #: VFs near it; null without a node
    networks: tuple[str, ...]  #: physical networks near it
    servers: tuple[ServerName, ...]  #: servers with a part there
    network: NetworkUse  #: what the network puts on the host
    #: size of the small pages that the memory of servers without NUMA topology
    #: is of; None of other rows
    small_pages_kib: int | None = documents.internal(default=None)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class NodeRows:
    """The NUMA nodes of hosts."""

    #: a row for each NUMA node, and one for what is on none
    numa_nodes: tuple[NodeRow, ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CPUUser:
    """A server that uses a CPU."""

    server: str  #: its name, unique on the host
    server_id: str  #: its UUID
    vcpu: int | None  #: number of the vCPU; null for emulator threads


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CPUUse:
    """A CPU of a host."""

    cpu: int  #: its number
    #: what it is used for: "guest", "emulator", "idle", "unknown guest",
    #: "conflict", "shared", "free" or "not Nova's"
    state: str
    #: servers that use it, one unless they conflict
    users: tuple[CPUUser, ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CoreUse:
    """A physical core."""

    cpus: tuple[CPUUse, ...]  #: its CPUs


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class DevicesOfNIC:
    """PCI devices of a NIC, or of one product."""

    name: str  #: PCI address of the PF, or vendor and product
    kind: str  #: "VF", "PF", "PCI" or "vDPA"
    total: int  #: number of devices, unavailable ones included
    used: int  #: number of those of servers
    free: int  #: number of available ones
    #: names of servers that use some, unique on the host
    servers: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class NodeOfHost:
    """A NUMA node of the host."""

    node: int  #: its number
    #: number of its socket; null if the host does not report it
    socket: int | None
    #: whether the virtual switch is there; null if the host does not say where
    #: it is
    switch: bool | None
    networks: tuple[str, ...]  #: physical networks near it
    places: tuple[str, ...]  #: places there
    tunnel_endpoint: bool  #: whether tunnelled networks are near it
    pcpus: int  #: number of CPUs for pinned servers
    pcpus_used: int  #: number of those in use
    pcpus_free: int = documents.internal()  #: number of free ones
    largest_fit: int  #: most vCPUs of a new pinned server with one NUMA node
    shared_vcpus: int  #: number of shared vCPUs of servers
    shared_vcpu_limit: int  #: how many its shared CPUs can take
    shared_cpus: tuple[int, ...]  #: its shared CPUs
    memory_mib: int  #: memory in MiB
    memory_used_mib: int  #: memory of servers, in MiB
    pages: tuple[PagesUse, ...]  #: pages of each size
    devices: tuple[DevicesOfNIC, ...]  #: PCI devices near it
    cores: tuple[CoreUse, ...]  #: its physical cores
    servers: tuple[ServerName, ...]  #: servers with a part there


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ServerPart:
    """The part of a server on a NUMA node."""

    node: int  #: number of the NUMA node of the host
    pinned_vcpus: int  #: number of pinned vCPUs
    pins: tuple[document.PinnedVCPU, ...]  #: the CPU of each pinned vCPU
    shared_vcpus: int  #: number of vCPUs that float over shared CPUs
    memory_mib: int  #: memory in MiB
    page_size_kib: int | None  #: size of its pages in KiB; null if it has none


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ServerOnHost:
    """A server of the host."""

    server: str  #: its name
    server_id: str  #: its UUID
    project_id: str | None  #: ID of its project; null if it is not known
    flavor: str  #: name of its flavor
    flavor_id: str | None  #: ID of the flavor; null if it was not read
    state: str  #: its state in Nova (vm_state)
    vcpus: int  #: number of vCPUs
    memory_mib: int  #: memory in MiB
    #: its parts; empty if it floats over the host
    numa_nodes: tuple[ServerPart, ...]
    #: devices and networks near other NUMA nodes only, for people
    remote: tuple[str, ...]
    #: its name without control characters, unique on the host
    label: str = documents.internal()
    #: whether something that it wants nearby is remote
    lacks_nearby: bool = documents.internal(default=True)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SmallPagesUse:
    """Memory in pages of the smallest size."""

    size_kib: int  #: size of a page in KiB
    total_mib: int  #: all pages, in MiB
    reserved_mib: int  #: kept for the platform, in MiB
    used_on_nodes_mib: int  #: of servers with NUMA topology, in MiB
    used_without_nodes_mib: int  #: of other servers, in MiB
    free_mib: int  #: the rest, in MiB; negative if the reserve is used
    #: allocation ratio of the memory of servers without topology
    ratio: float = documents.internal(default=1.0)

    @property
    def available_mib(self) -> int:
        """The MiB for servers without NUMA topology, used or not."""
        return max(self.free_mib + self.used_without_nodes_mib, 0)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class HostDetails:
    """A host."""

    host: str  #: its name, unique in the cloud
    host_id: str  #: UUID of its compute node
    state: str  #: "up", or what keeps it from taking servers
    #: why the operator disabled it; null if it was not
    disabled_reason: str | None
    cell: str | None  #: name of its Nova cell; null if it is not known
    availability_zone: str  #: name of its zone
    aggregates: tuple[str, ...]  #: names of its aggregates
    pcpus: int  #: number of CPUs for pinned servers
    pcpus_used: int  #: number of those in use
    largest_fit: int  #: most vCPUs of a new pinned server with one NUMA node
    #: part of the free CPUs that one such server can use, 0 to 1; null without
    #: free CPUs
    wholeness: float | None
    memory_mib: int  #: memory in MiB
    memory_used_mib: int  #: used memory in MiB, with that of the platform
    #: memory in small pages; null if it reports none
    small_pages: SmallPagesUse | None
    network: NetworkUse  #: what the network puts on the host
    #: number of CPUs of which Nova does not know; null without --facts
    cpus_not_for_servers: int | None
    notes: tuple[str, ...]  #: oddities, for people
    #: its NUMA nodes; empty if it reports none
    numa_nodes: tuple[NodeOfHost, ...]
    #: PCI devices of which the node is not known
    devices_without_node: tuple[DevicesOfNIC, ...]
    servers: tuple[ServerOnHost, ...]  #: its servers, the oldest first
    #: largest fit if all free CPUs were on its largest NUMA node
    possible_fit: int = documents.internal()
    #: number of vCPUs in use, with pinned ones
    shared_vcpus: int = documents.internal()
    #: shared vCPUs that it can take if it reports no NUMA nodes
    shared_vcpu_limit: int = documents.internal()
    #: name, or else UUID, and physical network of each network of its servers
    networks: tuple[tuple[str, str | None], ...] = documents.internal(
        default=())

    @property
    def floating(self) -> tuple[ServerOnHost, ...]:
        return tuple(each for each in self.servers if not each.numa_nodes)

    @property
    def remote(self) -> tuple[ServerOnHost, ...]:
        return tuple(each for each in self.servers if each.remote)

    @property
    def pcpus_free(self) -> int:
        return sum(node.pcpus_free for node in self.numa_nodes)

    @property
    def order(self) -> tuple:
        """Sort key that puts the host with most to gain first.

        First hosts whose free CPUs are scattered over NUMA nodes, by the part
        of the possible fit that is left, then by the number of CPUs that do
        not count; then the others, the fullest first; at last full ones and
        those without pinned CPUs.
        """
        return (self.wholeness is None, not self.pcpus, self.wholeness or 0,
                self.largest_fit - self.possible_fit, self.pcpus_free,
                self.host)


def listed(hosts: Iterable[HostDetails]) -> NodeRows:
    return NodeRows(numa_nodes=tuple([
        row for host in hosts for row in _rows(host)]))


def _rows(host: HostDetails) -> Iterator[NodeRow]:
    about = dict(
        host=host.host, host_id=host.host_id, state=host.state,
        availability_zone=host.availability_zone, network=host.network,
        aggregates=host.aggregates)
    for node in host.numa_nodes:
        devices = [each for each in node.devices if each.kind == 'VF']
        yield NodeRow(
            **about, node=node.node, switch=node.switch, pcpus=node.pcpus,
            pcpus_used=node.pcpus_used, largest_fit=node.largest_fit,
            shared_vcpus=node.shared_vcpus,
            shared_vcpu_limit=node.shared_vcpu_limit,
            memory_mib=node.memory_mib, memory_used_mib=node.memory_used_mib,
            pages=node.pages, vfs=DeviceUse(
                total=sum(each.total for each in devices),
                used=sum(each.used for each in devices),
                free=sum(each.free for each in devices)),
            networks=node.networks, servers=node.servers)
    floating, small = host.floating, host.small_pages
    if not host.numa_nodes:
        amounts = dict(
            shared_vcpus=host.shared_vcpus,
            shared_vcpu_limit=host.shared_vcpu_limit,
            memory_mib=host.memory_mib, memory_used_mib=host.memory_used_mib)
    elif floating:
        amounts = dict(
            shared_vcpus=sum(each.vcpus for each in floating),
            shared_vcpu_limit=None,
            memory_mib=None if small is None else small.available_mib,
            memory_used_mib=sum(each.memory_mib for each in floating),
            small_pages_kib=None if small is None else small.size_kib)
    else:
        return
    yield NodeRow(
        **about, **amounts, node=None, switch=None, pcpus=None,
        pcpus_used=None, largest_fit=None, pages=(), vfs=None, networks=(),
        servers=tuple([ServerName(
            server=each.server, server_id=each.server_id, label=each.label,
            spans=0) for each in floating]))
