# SPDX-License-Identifier: Apache-2.0
"""Define hosts as ``host list``, ``host show`` and maps show them."""

from collections.abc import Iterable
from collections.abc import Iterator
import dataclasses
import enum
import functools

from nfv_sched.ops.answers.simulation import document
from nfv_sched.ops.cli import documents

_internal = functools.partial(dataclasses.field, metadata=documents.INTERNAL)


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
    """A server.

    :ivar server: its name
    :ivar server_id: its UUID
    :ivar label: its name without control characters, unique on the host
    :ivar spans: number of host NUMA nodes that it is on
    """

    server: str
    server_id: str
    label: str = _internal()
    spans: int = _internal()


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

    @property
    def percent_used(self) -> float:
        """The part of the limit that is not free, in percent."""
        if self.limit is None or self.free is None:
            return 0.0
        return 100.0 * (1 - max(self.free, 0) / max(self.limit, 1))


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

    @property
    def percent_used(self) -> float:
        """The higher percentage of ports and rules."""
        return max(self.vswitch_ports.percent_used,
                   self.security_rules.percent_used)


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
    :ivar small_pages_kib: size of the small pages that the memory of servers
        without NUMA topology is of; None of other rows
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
    small_pages_kib: int | None = _internal(default=None)


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
    :ivar pcpus_free: number of free ones
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
    pcpus_free: int = _internal()
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
    :ivar label: its name without control characters, unique on the host
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
    label: str = _internal()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SmallPagesUse:
    """Memory in pages of the smallest size.

    :ivar size_kib: size of a page in KiB
    :ivar total_mib: all pages, in MiB
    :ivar reserved_mib: kept for the platform, in MiB
    :ivar used_on_nodes_mib: of servers with NUMA topology, in MiB
    :ivar used_without_nodes_mib: of other servers, in MiB
    :ivar free_mib: the rest, in MiB; negative if the reserve is used
    :ivar ratio: allocation ratio of the memory of servers without topology
    """

    size_kib: int
    total_mib: int
    reserved_mib: int
    used_on_nodes_mib: int
    used_without_nodes_mib: int
    free_mib: int
    ratio: float = _internal(default=1.0)

    @property
    def available_mib(self) -> int:
        """The MiB for servers without NUMA topology, used or not."""
        return max(self.free_mib + self.used_without_nodes_mib, 0)


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
    :ivar possible_fit: largest fit if all free CPUs were on its largest NUMA
        node
    :ivar shared_vcpus: number of vCPUs in use, with pinned ones
    :ivar shared_vcpu_limit: shared vCPUs that it can take if it reports no
        NUMA nodes
    :ivar networks: name, or else UUID, and physical network of each network
        of its servers
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
    possible_fit: int = _internal()
    shared_vcpus: int = _internal()
    shared_vcpu_limit: int = _internal()
    networks: tuple[tuple[str, str | None], ...] = _internal(default=())

    @property
    def floating(self) -> tuple[ServerOnHost, ...]:
        return tuple(each for each in self.servers if not each.numa_nodes)

    @property
    def remote(self) -> tuple[ServerOnHost, ...]:
        """The servers with a device or network near another NUMA node."""
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
        availability_zone=host.availability_zone, network=host.network)
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
    if host.numa_nodes and not floating:
        return
    rest = dict(
        node=None, switch=None, pcpus=None, pcpus_used=None, largest_fit=None,
        pages=(), vfs=None, networks=(), servers=tuple([ServerName(
            server=each.server, server_id=each.server_id, label=each.label,
            spans=0) for each in floating]))
    if not host.numa_nodes:
        yield NodeRow(
            **about, **rest, shared_vcpus=host.shared_vcpus,
            shared_vcpu_limit=host.shared_vcpu_limit,
            memory_mib=host.memory_mib, memory_used_mib=host.memory_used_mib)
        return
    yield NodeRow(
        **about, **rest, shared_vcpus=sum(each.vcpus for each in floating),
        shared_vcpu_limit=None,
        memory_mib=None if small is None else small.available_mib,
        memory_used_mib=sum(each.memory_mib for each in floating),
        small_pages_kib=None if small is None else small.size_kib)
