# SPDX-License-Identifier: Apache-2.0
"""The cloud at one moment: hosts, servers, flavors, networks, configuration.

Immutable values, as they are read from Nova's databases, Placement and Neutron
and written to a file.  All tools work on them; nothing here does I/O or knows
Nova.  CPUs and NUMA nodes have the numbers that the host gives them, amounts
of memory are in MiB, page sizes in KiB.

A file has the same fields (:mod:`nfv_sched.ops.snapshot.file`).  A change that
older releases would read wrongly needs a new ``VERSION``.
"""

from collections.abc import Mapping
import dataclasses
import enum
import typing as ty

import pydantic

from nfv_sched import cpu_spec

#: Of the format.
VERSION = 2

#: Kinds of agents of Neutron.
DHCP = 'dhcp'
ROUTER = 'router'
OVN = 'ovn'

#: State of a server whose move is to be confirmed.
RESIZED = 'resized'
#: Kind of a move from a host that is lost.
EVACUATION = 'evacuation'

#: Tags that Nova adds to a PCI request once it has devices.
ALLOCATED_TAGS = frozenset(('rp_uuids', 'parent_ifname'))

# What numbers in a file may be, where it is not 0 or more.
_Positive = ty.Annotated[int, pydantic.Field(ge=1)]
_Signed = ty.Annotated[int, pydantic.Field(ge=-1 << 63)]
_VCPUs = ty.Annotated[int, pydantic.Field(le=cpu_spec.MOST_CPUS - 1)]
# As Nova's databases have them.
_Name = ty.Annotated[str, pydantic.Field(max_length=255)]
_Devices = ty.Annotated[int, pydantic.Field(ge=1, le=1024)]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Pages:
    """Memory pages of one size on a host NUMA node.

    :ivar size: KiB
    :ivar total: number of pages
    :ivar used: number of pages that guests have
    :ivar reserved: number of pages that guests may not have
    """

    size: _Positive
    total: int
    used: int = 0
    reserved: int = 0

    @property
    def usable(self) -> int:
        """Number of pages that guests may have."""
        return max(self.total - self.reserved, 0)

    @property
    def free(self) -> int:
        """Number of pages that guests can still have."""
        return max(self.total - self.used - self.reserved, 0)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A NUMA node of a host, as nova-compute reports it.

    CPUs that are neither for shared nor for pinned guests are missing.

    :ivar number: its number
    :ivar socket: number of the socket; None if the host does not say
    :ivar shared: CPUs for shared guests
    :ivar dedicated: CPUs for pinned guests
    :ivar pinned: CPUs that guests are pinned to
    :ivar siblings: CPUs of each physical core, in Nova's order; empty if no
        core has more than one
    :ivar memory: MiB, huge pages included
    :ivar memory_used: MiB that guests have
    :ivar shared_used: vCPUs of shared guests
    :ivar pages: by size, in Nova's order
    :ivar physnets: physical networks near it, labels included
    :ivar tunneled: whether the endpoint of tunnels is near it
    """

    number: _VCPUs
    socket: _Signed | None = None
    shared: frozenset[int] = frozenset()
    dedicated: frozenset[int] = frozenset()
    pinned: frozenset[int] = frozenset()
    siblings: tuple[frozenset[int], ...] = ()
    memory: int
    memory_used: int = 0
    shared_used: int = 0
    pages: tuple[Pages, ...] = ()
    physnets: frozenset[str] = frozenset()
    tunneled: bool = False

    @property
    def free(self) -> frozenset[int]:
        """CPUs for pinned guests that no guest is pinned to."""
        return self.dedicated - self.pinned

    @property
    def cores(self) -> tuple[frozenset[int], ...]:
        """CPUs of each physical core, in Nova's order."""
        return self.siblings or tuple(
            frozenset((cpu,)) for cpu in sorted(self.shared | self.dedicated))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """A PCI device that guests may have.

    :ivar address: PCI address
    :ivar vendor: vendor ID
    :ivar product: product ID
    :ivar kind: ``type-VF``, ``type-PF``, ``type-PCI``, ``vdpa``
    :ivar node: number of its NUMA node; None if it is not known
    :ivar status: as Nova has it: ``available``, ``claimed``, ``allocated``,
        ``removed``, ``deleted``, ``unavailable``, ``unclaimable``
    :ivar parent: PCI address of its PF
    :ivar server: UUID of the server that has it
    :ivar request: ID of the PCI request that it was given for
    :ivar tags: such as ``physical_network``, from ``[pci] device_spec``
    """

    address: str
    vendor: str
    product: str
    kind: str
    node: _Signed | None = None
    status: str = 'available'
    parent: str | None = None
    server: str | None = None
    request: str | None = None
    tags: Mapping[str, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Inventory:
    """What a resource provider has of a resource class.

    :ivar total: amount
    :ivar used: allocated
    """

    total: int
    reserved: int = 0
    ratio: float = 1.0
    min_unit: _Positive = 1
    max_unit: _Positive = 2 ** 31 - 1
    step_size: _Positive = 1
    used: int = 0

    @property
    def capacity(self) -> int:
        """What can be allocated in all."""
        return int((self.total - self.reserved) * self.ratio)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """A resource provider of a host in Placement.

    :ivar parent: UUID of the one above; None for that of the host itself
    :ivar inventories: by resource class
    :ivar aggregates: UUIDs of Nova's host aggregates that it is in
    """

    uuid: str
    name: str
    parent: str | None = None
    inventories: Mapping[str, Inventory] = dataclasses.field(
        default_factory=dict)
    traits: frozenset[str] = frozenset()
    aggregates: frozenset[str] = frozenset()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class HostNetwork:
    """What the network puts on a host, as Neutron shows it.

    :ivar vswitch_ports: ports of the virtual switch, physical ones not
        counted; None if it is not known
    :ivar security_rules: security-group rules of these ports
    :ivar dhcp_servers: None if it is not known
    :ivar routers: None if it is not known
    """

    vswitch_ports: int | None = None
    security_rules: int | None = None
    dhcp_servers: int | None = None
    routers: int | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """A compute node and its service.

    :ivar name: of the compute service
    :ivar hypervisor: name of the compute node
    :ivar uuid: of the compute node, and of its resource provider
    :ivar cell: name or UUID of the cell
    :ivar enabled: whether the service is enabled
    :ivar disabled_reason: why it is disabled, in the operator's words
    :ivar up: whether the service reports
    :ivar mapped: whether Nova's API database maps it to its cell; otherwise
        what the scheduler sends there fails
    :ivar zone: availability zone
    :ivar aggregates: names of its aggregates
    :ivar hypervisor_type: such as ``QEMU``
    :ivar hypervisor_version: as Nova has it, such as 8002000
    :ivar supported: what it can run: architecture, hypervisor, kind of virtual
        machine
    :ivar cpu_info: as nova-compute reports it
    :ivar stats: numbers of servers and the like, as nova-compute reports them
    :ivar vcpus: all CPUs for guests
    :ivar vcpus_used: vCPUs of guests
    :ivar memory: MiB
    :ivar memory_used: MiB, what is reserved included
    :ivar disk: GiB
    :ivar disk_used: GiB
    :ivar disk_available_least: GiB; None if it is not known
    :ivar cpu_ratio: CPU allocation ratio; None if it reports none
    :ivar memory_ratio: the same of memory
    :ivar disk_ratio: the same of disk
    :ivar nodes: its NUMA nodes; None if it reports none
    :ivar devices: its PCI devices
    :ivar providers: its resource providers, the one of the host first; empty
        if Placement was not read
    :ivar network: what the network puts on it; None if Neutron was not read
    """

    name: _Name
    hypervisor: _Name
    uuid: str
    cell: _Name = ''
    enabled: bool = True
    disabled_reason: str | None = None
    up: bool = True
    mapped: bool = True
    zone: _Name = 'nova'
    aggregates: tuple[str, ...] = ()
    hypervisor_type: str = 'QEMU'
    hypervisor_version: int = 0
    supported: tuple[tuple[str, ...], ...] = ()
    cpu_info: str = ''
    stats: Mapping[str, str] = dataclasses.field(default_factory=dict)
    vcpus: _VCPUs = 0
    vcpus_used: int = 0
    memory: int = 0
    memory_used: int = 0
    disk: int = 0
    disk_used: int = 0
    disk_available_least: _Signed | None = None
    cpu_ratio: float | None = None
    memory_ratio: float | None = None
    disk_ratio: float | None = None
    nodes: tuple[Node, ...] | None = None
    devices: tuple[Device, ...] = ()
    providers: tuple[Provider, ...] = ()
    network: HostNetwork | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Flavor:
    """A flavor as it is now, or as a server was booted or resized with it.

    :ivar memory: MiB
    :ivar disk: GiB
    :ivar ephemeral: GiB
    :ivar swap: MiB
    """

    name: _Name
    id: _Name = ''
    vcpus: _VCPUs
    memory: int
    disk: int = 0
    ephemeral: int = 0
    swap: int = 0
    public: bool = True
    disabled: bool = False
    extra_specs: Mapping[str, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class GuestNode:
    """A NUMA node of a server.

    :ivar host_node: number of the host NUMA node that it is on
    :ivar shared: vCPUs that float over the shared CPUs of the host node
    :ivar pins: vCPU -> CPU of the host
    :ivar dedicated: vCPUs that are pinned
    :ivar memory: MiB
    :ivar page_size: KiB; None if it has no page size of its own
    :ivar cpu_policy: ``dedicated``, ``mixed``, ``shared`` or None
    :ivar thread_policy: ``prefer``, ``isolate``, ``require`` or None
    :ivar reserved: CPUs of the host that its emulator threads have
    """

    host_node: int
    shared: frozenset[int] = frozenset()
    dedicated: frozenset[int] = frozenset()
    pins: Mapping[int, int] = dataclasses.field(default_factory=dict)
    memory: int
    page_size: int | None = None
    cpu_policy: str | None = None
    thread_policy: str | None = None
    reserved: frozenset[int] = frozenset()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Port:
    """A port of a server.

    :ivar network: UUID of its network
    :ivar network_name: name of its network; empty if it is not known
    :ivar vnic_type: such as ``normal`` or ``direct``
    :ivar physnet: physical network of its network
    :ivar device: PCI address of its device
    :ivar rules: security-group rules; None if that is not known
    :ivar has_allocation: whether it has resources of its own in Placement,
        such as a minimum bandwidth
    """

    id: str
    network: str = ''
    network_name: str = ''
    vnic_type: str = 'normal'
    physnet: str | None = None
    device: str | None = None
    rules: int | None = None
    has_allocation: bool = False


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PCIRequest:
    """A request of a server for PCI devices, as Nova stores it.

    :ivar id: UUID, which the devices have as ``request``
    :ivar count: number of devices
    :ivar alias: name of the alias in the flavor; None for that of a port
    :ivar specs: tags that a device must have; any of these
    :ivar numa_policy: NUMA affinity policy, such as ``required``
    :ivar port: ID of the port; None if Nova does not store it
    """

    id: str | None = None
    count: _Devices = 1
    alias: str | None = None
    specs: tuple[Mapping[str, str | None], ...] = ()
    numa_policy: str | None = None
    port: str | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A server.

    :ivar host: name of its host; None if it has none
    :ivar project: UUID
    :ivar state: Nova's vm_state, such as ``active`` or ``error``
    :ivar task: Nova's task_state
    :ivar fault: message of its last fault; None if it is not in error
    :ivar created: ISO 8601, UTC
    :ivar moved: when its last known move from another host than its present
        one began: ISO 8601, UTC; empty if none is known
    :ivar flavor: as it was booted, or resized
    :ivar image: properties of its image that matter for placement
    :ivar nodes: its NUMA nodes; None if it has none
    :ivar emulator_threads: ``share``, ``isolate`` or None
    :ivar devices: PCI addresses
    :ivar pci_requests: what devices it asks for, those of its ports included;
        None if that was not read
    :ivar ports: its ports, as Neutron has them, else as Nova does; None if
        they are not known
    :ivar shares: whether it has shares of Manila
    :ivar group: UUID of its server group
    :ivar zone: availability zone that it asks for
    :ivar hints: scheduler hints
    :ivar allocations: what it has in Placement: provider -> class -> amount;
        None if Placement was not read
    """

    uuid: str
    name: _Name
    host: _Name | None = None
    cell: _Name = ''
    project: _Name = ''
    state: str = 'active'
    task: str | None = None
    fault: str | None = None
    created: str = ''
    moved: str = ''
    flavor: Flavor
    image: Mapping[str, str] = dataclasses.field(default_factory=dict)
    nodes: tuple[GuestNode, ...] | None = None
    emulator_threads: str | None = None
    devices: tuple[str, ...] = ()
    pci_requests: tuple[PCIRequest, ...] | None = None
    ports: tuple[Port, ...] | None = None
    shares: bool = False
    group: str | None = None
    zone: _Name | None = None
    hints: Mapping[str, tuple[str, ...]] = dataclasses.field(
        default_factory=dict)
    allocations: Mapping[str, Mapping[str, int]] | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """A migration of Nova that may still hold something on either host.

    That is one under way, or done and not confirmed yet; an evacuation until
    its source is up again.

    :ivar uuid: of the migration, and of what it has in Placement
    :ivar server: UUID
    :ivar kind: ``migration``, ``resize``, ``live-migration``, ``evacuation``
    :ivar status: as Nova has it, such as ``running`` or ``finished``
    :ivar source: name of the host that the server leaves
    :ivar target: name of the host that it goes to; None if not yet known
    :ivar updated: when it changed last: ISO 8601, UTC
    :ivar before: NUMA nodes of the server on the source; None if it has none,
        or they are not known
    :ivar after: the same on the target
    """

    uuid: str
    server: str
    kind: str = ''
    status: str = ''
    source: str | None = None
    target: str | None = None
    updated: str = ''
    before: tuple[GuestNode, ...] | None = None
    after: tuple[GuestNode, ...] | None = None

    @property
    def settled(self) -> bool:
        """Whether the server is where it goes to, and will stay so.

        That is so with a resize or cold migration that is to be confirmed, and
        with an evacuation that is done.
        """
        return self.status == 'finished' or (
            self.kind == EVACUATION and self.status == 'done')


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Aggregate:
    """A host aggregate.

    :ivar hosts: names
    """

    name: _Name
    uuid: str = ''
    metadata: Mapping[str, str] = dataclasses.field(default_factory=dict)
    hosts: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A server group.

    :ivar policy: such as ``anti-affinity``
    :ivar rules: of the policy, such as ``max_server_per_host``
    :ivar members: UUIDs of servers
    """

    uuid: str
    name: _Name = ''
    policy: str
    rules: Mapping[str, str] = dataclasses.field(default_factory=dict)
    members: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class NetworkAgent:
    """An agent of Neutron that runs DHCP servers or routers on a host.

    :ivar id: UUID
    :ivar kind: ``dhcp``, ``router``, or ``ovn`` for a gateway of ML2/OVN,
        which has routers that OVN itself places
    :ivar host: name of its host
    :ivar alive: whether it reports
    :ivar enabled: whether it is administratively up
    :ivar zone: availability zone of Neutron
    :ivar mode: of an agent for routers: ``legacy``, ``dvr``, ``dvr_snat``,
        ``dvr_no_external``
    :ivar external_only: whether it takes no routers without a gateway
    :ivar physnets: physical networks that the virtual switch of its host
        reaches; None if no agent there says so, or none that reports
    :ivar tunnels: types of tunnels of this switch; None if it does not say
    :ivar serves: UUIDs of networks, or routers
    """

    id: str
    kind: str
    host: _Name
    alive: bool = True
    enabled: bool = True
    zone: str = ''
    mode: str = ''
    external_only: bool = False
    physnets: frozenset[str] | None = None
    tunnels: frozenset[str] | None = None
    serves: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class NetworkService:
    """What agents of Neutron serve: a network with DHCP, or a router.

    :ivar id: UUID of the network, or router
    :ivar kind: ``dhcp`` or ``router``
    :ivar ports: ports of the virtual switch that it takes where it is served
    :ivar physnets: physical networks that it needs there; None if not all of
        its networks are known
    :ivar tunnels: types of tunnels that it needs there
    :ivar zones: availability zones that it asks for; empty if for none
    :ivar external: whether it is a router with a gateway
    :ivar ha: whether it is a router that several agents have
    :ivar distributed: whether it is a router on the hosts of its guests
    """

    id: str
    kind: str
    name: str = ''
    ports: int = 0
    physnets: frozenset[str] | None = frozenset()
    tunnels: frozenset[str] = frozenset()
    zones: tuple[str, ...] = ()
    external: bool = False
    ha: bool = False
    distributed: bool = False


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """A network of Neutron.

    :ivar id: UUID
    :ivar physnet: physical network, as Nova takes it: that of its first
        segment that has one; None if none has
    :ivar vnic_type: vNIC type of all of its ports, where the network says so,
        as in a cloud file of the simulator; None in Neutron
    :ivar numa_policy: PCI NUMA policy of all of its ports, likewise
    """

    id: str
    name: str = ''
    physnet: str | None = None
    vnic_type: str | None = None
    numa_policy: str | None = None


def age(taken: str) -> int | None:
    """Return how long ago a cloud was read, in seconds; None if unknown.

    :param taken: time in ISO 8601, as in :class:`Cloud`
    """
    from oslo_utils import timeutils
    try:
        read = timeutils.normalize_time(timeutils.parse_isotime(taken))
    except ValueError:
        return None
    return max(0, int(timeutils.delta_seconds(read, timeutils.utcnow())))


class MissingKind(enum.StrEnum):
    """Kind of something that could not be read."""

    NO_CELLS = 'no-cells'
    CELL = 'cell'
    #: A cell that does not answer in time.
    SILENT_CELL = 'silent-cell'
    #: Malformed records of these.
    HOST = 'host'
    SERVER = 'server'
    REQUEST_SPEC = 'request-spec'
    MIGRATION = 'migration'
    NEUTRON = 'neutron'
    NETWORK_AGENTS = 'network-agents'
    PLACEMENT = 'placement'
    #: Resource providers of some hosts.
    PROVIDERS = 'providers'
    #: What the API does not show: hosts of cells that do not answer, with
    #: their servers; servers whose flavor is not shown; fields of all servers.
    SILENT_HOSTS = 'silent-hosts'
    SERVERS = 'servers'
    SERVER_FIELDS = 'server-fields'
    #: A filter or weigher that a file names and this machine does not have.
    CLASS = 'class'
    #: Anything, as in a file of version 1, which has the text alone.
    OTHER = 'other'


#: What may concern any host or server of a cell.
UNREAD_CELLS = (MissingKind.CELL, MissingKind.SILENT_CELL)

# Of others, the text is the whole sentence.
_SENTENCES: Mapping[MissingKind, str] = {
    MissingKind.NO_CELLS: 'There are no cells',
    MissingKind.CELL: 'Cell {name} cannot be read{error}',
    MissingKind.SILENT_CELL: 'Cell {name} does not answer in time',
    MissingKind.HOST:
        'Host {name} is left out, its record is malformed{error}',
    MissingKind.SERVER:
        'Server {name} is left out, its record is malformed{error}',
    MissingKind.REQUEST_SPEC: 'What was asked for server {name} is left out, '
                              'its record is malformed{error}',
    MissingKind.MIGRATION:
        'Migration {name} is left out, its record is malformed{error}',
    MissingKind.NEUTRON: 'Neutron cannot be read{error}',
    MissingKind.NETWORK_AGENTS: "Neutron's agents cannot be read{error}",
    MissingKind.PLACEMENT: 'Placement cannot be read{error}',
    MissingKind.PROVIDERS:
        'Placement cannot be read for {count} host{s}, such as{error}',
    MissingKind.SILENT_HOSTS:
        '{count} host{s} and all servers there are left out: cells do not '
        'answer, such as that of {name}',
    MissingKind.SERVERS:
        'Left out: {count} server{s} without a flavor, as while a cell does '
        'not answer, such as {name}'}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """Something that could not be read; as a string, a sentence for people.

    :ivar cell: name of the cell, or its UUID if it has none
    :ivar hosts: names of the hosts
    :ivar uuids: of the cell, servers, migration, or compute nodes
    :ivar text: the error, without secrets; the whole sentence of some kinds
    """

    kind: MissingKind
    cell: _Name = ''
    hosts: tuple[str, ...] = ()
    uuids: tuple[str, ...] = ()
    text: str = ''

    def __str__(self) -> str:
        names = self.hosts or self.uuids
        name = min(names, default='')
        if self.cell not in ('', name):
            # As in Nova's logs.
            name = f'{name}({self.cell})' if name else self.cell
        return _SENTENCES.get(self.kind, '{text}').format(
            name=name, count=len(names), s='' if len(names) == 1 else 's',
            text=self.text, error=f': {self.text}' if self.text else '')


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Cloud:
    """A cloud at one moment.

    :ivar taken: when it was read: ISO 8601, UTC
    :ivar source: what was read, in words
    :ivar nova: release of Nova where it was read
    :ivar nfv_sched: release of nfv-sched that read it
    :ivar anonymous: whether names and UUIDs were replaced
    :ivar missing: what could not be read
    :ivar options: options of Nova and nfv-sched that matter for scheduling:
        section -> name -> value
    :ivar moves: migrations that may hold something on their hosts; None if
        they were not read
    :ivar consumers: what others than servers have in Placement, such as
        migrations: consumer -> provider -> class -> amount; None if that was
        not read
    :ivar network_agents: agents of Neutron; None if they were not read
    :ivar network_services: what these serve
    :ivar networks: networks of Neutron; None if they were not read
    :ivar traits: all traits that Placement knows, also those that no provider
        has; None if they were not read
    :ivar resource_classes: the same of resource classes
    """

    taken: str
    source: str = ''
    nova: str = ''
    nfv_sched: str = ''
    anonymous: bool = False
    missing: tuple[Missing, ...] = ()
    options: Mapping[str, Mapping[str, ty.Any]] = dataclasses.field(
        default_factory=dict)
    hosts: tuple[Host, ...] = ()
    servers: tuple[Server, ...] = ()
    flavors: tuple[Flavor, ...] = ()
    aggregates: tuple[Aggregate, ...] = ()
    groups: tuple[Group, ...] = ()
    moves: tuple[Migration, ...] | None = None
    consumers: Mapping[str, Mapping[str, Mapping[str, int]]] | None = None
    network_agents: tuple[NetworkAgent, ...] | None = None
    network_services: tuple[NetworkService, ...] = ()
    networks: tuple[Network, ...] | None = None
    traits: frozenset[str] | None = None
    resource_classes: frozenset[str] | None = None

    def unread(self, *kinds: MissingKind) -> frozenset[str]:
        """Return the UUIDs of what is missing of some kinds."""
        return frozenset([uuid for each in self.missing if each.kind in kinds
                          for uuid in each.uuids])
