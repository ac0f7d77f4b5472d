# SPDX-License-Identifier: Apache-2.0
"""Model a cloud at one moment: hosts, servers, flavors, networks, options.

All tools work on these immutable values.  They are read from Nova's databases,
Placement and Neutron, or from a file; nothing here does I/O or knows Nova.
CPUs and NUMA nodes have the numbers that the host gives them; memory is in
MiB, page sizes are in KiB.

The fields are also those of the file (:mod:`nfv_sched.ops.cloud.file`).  A
change that older releases would misread needs a new ``VERSION``.
"""

from collections.abc import Mapping
import dataclasses
import enum
import typing as ty

import os_resource_classes as orc
import pydantic

from nfv_sched.base import cpu_spec

#: Version of the file format.
VERSION = 2

#: Kinds of agents of Neutron.
DHCP = 'dhcp'
ROUTER = 'router'
OVN = 'ovn'

#: vm_state of a server whose resize or cold migration is not yet confirmed.
RESIZED = 'resized'
#: Kind of a migration from a host that is down.
EVACUATION = 'evacuation'

#: Tags that Nova adds to a PCI request once it has devices.
ALLOCATED_TAGS = frozenset(('rp_uuids', 'parent_ifname'))

# Limits of numbers in a file; by default a number must be 0 or more.
_Positive = ty.Annotated[int, pydantic.Field(ge=1)]
_Signed = ty.Annotated[int, pydantic.Field(ge=-1 << 63)]
_VCPUs = ty.Annotated[int, pydantic.Field(le=cpu_spec.MOST_CPUS - 1)]
# The length of names in Nova's databases.
_Name = ty.Annotated[str, pydantic.Field(max_length=255)]
_Devices = ty.Annotated[int, pydantic.Field(ge=1, le=1024)]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Pages:
    """Memory pages of one size on a host NUMA node."""

    size: _Positive  #: KiB
    total: int
    used: int = 0  #: number of pages that guests use
    reserved: int = 0  #: number of pages that guests must not use

    @property
    def usable(self) -> int:
        return max(self.total - self.reserved, 0)

    @property
    def free(self) -> int:
        return max(self.total - self.used - self.reserved, 0)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A NUMA node of a host, as nova-compute reports it.

    CPUs that guests cannot use are not included.
    """

    number: _VCPUs
    #: number of the socket; None if the host does not report it
    socket: _Signed | None = None
    shared: frozenset[int] = frozenset()  #: CPUs for shared (floating) vCPUs
    dedicated: frozenset[int] = frozenset()  #: CPUs for pinned vCPUs
    pinned: frozenset[int] = frozenset()  #: CPUs that vCPUs are pinned to
    #: CPUs of each physical core, in Nova's order; empty if no core has more
    #: than one
    siblings: tuple[frozenset[int], ...] = ()
    memory: int  #: MiB, including huge pages
    memory_used: int = 0  #: MiB used by guests
    shared_used: int = 0  #: number of shared vCPUs of guests
    #: one entry for each page size, in Nova's order
    pages: tuple[Pages, ...] = ()
    #: physical networks with affinity to the node, including the labels of
    #: NUMA nodes
    physnets: frozenset[str] = frozenset()
    #: whether tunnelled networks have affinity to the node
    tunneled: bool = False

    @property
    def free(self) -> frozenset[int]:
        return self.dedicated - self.pinned

    @property
    def cores(self) -> tuple[frozenset[int], ...]:
        """The CPUs of each physical core, in Nova's order."""
        return self.siblings or tuple(
            frozenset((cpu,)) for cpu in sorted(self.shared | self.dedicated))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """A PCI device for guests."""

    address: str
    vendor: str
    product: str
    kind: str  #: ``type-VF``, ``type-PF``, ``type-PCI``, ``vdpa``
    node: _Signed | None = None  #: number of its NUMA node; None if unknown
    #: Nova's status: ``available``, ``claimed``, ``allocated``, ``removed``,
    #: ``deleted``, ``unavailable``, ``unclaimable``
    status: str = 'available'
    parent: str | None = None  #: PCI address of its PF
    server: str | None = None  #: UUID of the server that it is assigned to
    request: str | None = None  #: ID of the PCI request that it fulfils
    #: such as ``physical_network``, from ``[pci] device_spec``
    tags: Mapping[str, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Inventory:
    """The inventory of one resource class of a resource provider."""

    total: int
    reserved: int = 0
    ratio: float = 1.0
    min_unit: _Positive = 1
    max_unit: _Positive = 2 ** 31 - 1
    step_size: _Positive = 1
    used: int = 0  #: sum of all allocations

    @property
    def capacity(self) -> int:
        """The largest sum of all allocations."""
        return int((self.total - self.reserved) * self.ratio)

    def allows(self, amount: int) -> bool:
        """Return whether units and step allow an amount in one allocation."""
        return (self.min_unit <= amount <= self.max_unit
                and amount % self.step_size == 0)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """A resource provider of a host in Placement."""

    uuid: str
    name: str
    #: UUID of its parent; None for the root of the host's tree
    parent: str | None = None
    #: by resource class
    inventories: Mapping[str, Inventory] = dataclasses.field(
        default_factory=dict)
    traits: frozenset[str] = frozenset()
    #: UUIDs of Nova's host aggregates that it is a member of
    aggregates: frozenset[str] = frozenset()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class HostNetwork:
    """Ports, security group rules and services on a host, from Neutron.

    Each is a number; None if unknown.
    """

    #: ports of the virtual switch without physical ones
    vswitch_ports: int | None = None
    security_rules: int | None = None  #: security group rules of these ports
    dhcp_servers: int | None = None
    routers: int | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """A compute node and its service."""

    name: _Name  #: name of the host, that of the compute service
    hypervisor: _Name  #: name of the compute node
    uuid: str  #: UUID of the compute node, and of its resource provider
    cell: _Name = ''  #: name of the Nova cell, or its UUID if it has no name
    enabled: bool = True
    #: the operator's reason why it is disabled
    disabled_reason: str | None = None
    up: bool = True
    #: whether Nova's API database maps the host to its cell; if not, requests
    #: that the scheduler sends there fail
    mapped: bool = True
    zone: _Name = 'nova'
    aggregates: tuple[str, ...] = ()  #: names of its aggregates
    hypervisor_type: str = 'QEMU'  #: such as ``QEMU``
    #: Nova's number for the version, such as 8002000
    hypervisor_version: int = 0
    #: Nova's supported_instances: (architecture, hypervisor, VM mode) of each
    supported: tuple[tuple[str, ...], ...] = ()
    cpu_info: str = ''  #: JSON as nova-compute reports it
    #: number of servers and other figures that nova-compute reports
    stats: Mapping[str, str] = dataclasses.field(default_factory=dict)
    vcpus: _VCPUs = 0  #: number of CPUs for guests
    vcpus_used: int = 0  #: number of vCPUs of guests
    memory: int = 0  #: MiB
    memory_used: int = 0  #: MiB, including reserved memory
    disk: int = 0  #: GiB
    disk_used: int = 0  #: GiB
    disk_available_least: _Signed | None = None  #: GiB; None if unknown
    #: CPU allocation ratio; None if not reported
    cpu_ratio: float | None = None
    #: memory allocation ratio; None if not reported
    memory_ratio: float | None = None
    #: disk allocation ratio; None if not reported
    disk_ratio: float | None = None
    nodes: tuple[Node, ...] | None = None  #: NUMA nodes; None if not reported
    devices: tuple[Device, ...] = ()
    #: resource providers, the root first; empty if Placement was not read
    providers: tuple[Provider, ...] = ()
    #: ports and services; None if Neutron was not read
    network: HostNetwork | None = None

    @property
    def legacy_pinning(self) -> bool:
        """Whether guest CPUs are both shared and dedicated (vcpu_pin_set)."""
        return any(node.shared & node.dedicated for node in self.nodes or ())


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Flavor:
    """A flavor: a current one, or the copy that a server was booted with."""

    name: _Name
    id: _Name = ''
    vcpus: _VCPUs
    memory: int  #: MiB
    disk: int = 0  #: GiB
    ephemeral: int = 0  #: GiB
    swap: int = 0  #: MiB
    public: bool = True
    disabled: bool = False
    extra_specs: Mapping[str, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class GuestNode:
    """A guest NUMA node."""

    host_node: int  #: number of the host NUMA node that it is on
    #: vCPUs that float over the shared CPUs of the host node
    shared: frozenset[int] = frozenset()
    dedicated: frozenset[int] = frozenset()  #: vCPUs that are pinned
    #: vCPU -> host CPU
    pins: Mapping[int, int] = dataclasses.field(default_factory=dict)
    memory: int  #: MiB
    page_size: int | None = None  #: KiB; None if it was not requested
    #: ``dedicated``, ``mixed``, ``shared`` or None
    cpu_policy: str | None = None
    #: ``prefer``, ``isolate``, ``require`` or None
    thread_policy: str | None = None
    #: host CPUs for its emulator threads
    reserved: frozenset[int] = frozenset()


#: Neutron's vNIC types; Nova has no list of all of them.
VNICType = ty.Literal[
    'normal', 'direct', 'direct-physical', 'macvtap', 'vdpa',
    'virtio-forwarder', 'smart-nic', 'baremetal', 'remote-managed',
    'accelerator-direct', 'accelerator-direct-physical']


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Port:
    """A port of a server."""

    id: str
    network: str = ''  #: UUID of its network
    network_name: str = ''  #: name of its network; empty if unknown
    vnic_type: str = 'normal'  #: such as ``normal`` or ``direct``
    physnet: str | None = None
    device: str | None = None  #: PCI address of its device
    #: number of security group rules; None if unknown
    rules: int | None = None
    #: whether it has an allocation in Placement, such as for a minimum
    #: bandwidth
    has_allocation: bool = False


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PCIRequest:
    """A request of a server for PCI devices, as Nova stores it."""

    #: UUID, which is ``request`` of the assigned devices
    id: str | None = None
    count: _Devices = 1
    #: name of the alias in the flavor; None if a port requests it
    alias: str | None = None
    #: alternatives; a device must have all tags of one of these
    specs: tuple[Mapping[str, str | None], ...] = ()
    #: NUMA affinity policy, such as ``required``
    numa_policy: str | None = None
    port: str | None = None  #: ID of the port; None if Nova does not store it


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A server."""

    uuid: str
    name: _Name
    host: _Name | None = None  #: name of its host; None if it has none
    cell: _Name = ''
    project: _Name = ''  #: UUID
    state: str = 'active'  #: Nova's vm_state, such as ``active`` or ``error``
    task: str | None = None  #: Nova's task_state
    locked: bool = False  #: whether its owner or an operator has locked it
    #: message of its last fault; None if it is not in error
    fault: str | None = None
    created: str = ''  #: ISO 8601, UTC
    #: start of its last known move away from a host that is not its current
    #: one: ISO 8601, UTC; empty if unknown
    moved: str = ''
    flavor: Flavor  #: copy from its boot or last resize
    #: properties of its image that matter for scheduling
    image: Mapping[str, str] = dataclasses.field(default_factory=dict)
    #: guest NUMA nodes; None if it has no NUMA topology
    nodes: tuple[GuestNode, ...] | None = None
    emulator_threads: str | None = None  #: ``share``, ``isolate`` or None
    devices: tuple[str, ...] = ()  #: PCI addresses
    #: PCI requests of flavor and ports; None if not read
    pci_requests: tuple[PCIRequest, ...] | None = None
    #: ports from Neutron, or from Nova if Neutron was not read; None if
    #: unknown
    ports: tuple[Port, ...] | None = None
    shares: bool = False  #: whether Manila shares are attached
    group: str | None = None  #: UUID of its server group
    zone: _Name | None = None  #: requested availability zone
    hints: Mapping[str, tuple[str, ...]] = dataclasses.field(
        default_factory=dict)
    #: provider -> class -> amount; None if Placement was not read
    allocations: Mapping[str, Mapping[str, int]] | None = None

    @property
    def is_on_volume(self) -> bool:
        """Whether it boots from a volume: it allocates no root disk."""
        return bool(self.allocations) and self.flavor.disk > sum(
            amounts.get(orc.DISK_GB, 0)
            for amounts in self.allocations.values())


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """A Nova migration that may still occupy resources on either host.

    It is in progress, or not yet confirmed; an evacuation counts until its
    source is up again.
    """

    uuid: str  #: UUID of the migration, and of its consumer in Placement
    server: str  #: UUID of the server
    #: ``migration``, ``resize``, ``live-migration``, ``evacuation``
    kind: str = ''
    status: str = ''  #: Nova's status, such as ``running`` or ``finished``
    source: str | None = None  #: name of the source host
    #: name of the destination host; None if not yet known
    target: str | None = None
    updated: str = ''  #: time of its last change: ISO 8601, UTC
    #: guest NUMA nodes on the source; None if there are none, or unknown
    before: tuple[GuestNode, ...] | None = None
    #: guest NUMA nodes on the target; None likewise
    after: tuple[GuestNode, ...] | None = None

    @property
    def settled(self) -> bool:
        """Whether the server is on the target, even if not yet confirmed."""
        # Nova's status of a resize or cold migration is "finished" until it
        # is confirmed or reverted.
        return self.status == 'finished' or (
            self.kind == EVACUATION and self.status == 'done')


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Aggregate:
    """A host aggregate, with the names of its hosts."""

    name: _Name
    uuid: str = ''
    metadata: Mapping[str, str] = dataclasses.field(default_factory=dict)
    hosts: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A server group."""

    uuid: str
    name: _Name = ''
    policy: str  #: such as ``anti-affinity``
    #: rules of the policy, such as ``max_server_per_host``
    rules: Mapping[str, str] = dataclasses.field(default_factory=dict)
    members: tuple[str, ...] = ()  #: UUIDs of servers


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class NetworkAgent:
    """A Neutron agent that runs DHCP servers or routers on a host."""

    id: str  #: UUID; the name of the chassis for ``ovn``
    #: ``dhcp``, ``router``, or ``ovn`` for a gateway of ML2/OVN, whose routers
    #: OVN itself places
    kind: str
    host: _Name
    alive: bool = True  #: whether it is alive, as Neutron reports it
    enabled: bool = True  #: whether it is administratively up
    zone: str = ''  #: availability zone of Neutron
    #: of an L3 agent: ``legacy``, ``dvr``, ``dvr_snat``, ``dvr_no_external``
    mode: str = ''
    #: whether it serves only routers with a gateway
    external_only: bool = False
    #: physical networks that the virtual switch of its host reaches; None if
    #: no agent that is alive there reports them
    physnets: frozenset[str] | None = None
    #: tunnel types of this switch; None if not reported
    tunnels: frozenset[str] | None = None
    #: UUIDs of the networks or routers that it serves
    serves: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class NetworkService:
    """A network with DHCP, or a router, that Neutron agents serve."""

    id: str  #: UUID of the network or router
    kind: str  #: ``dhcp`` or ``router``
    name: str = ''
    #: number of virtual switch ports that it takes on each host that serves it
    ports: int = 0
    #: physical networks that it needs there; None if not all of its networks
    #: are known
    physnets: frozenset[str] | None = frozenset()
    tunnels: frozenset[str] = frozenset()  #: tunnel types that it needs there
    zones: tuple[str, ...] = ()  #: requested availability zones; empty if none
    external: bool = False  #: whether it is a router with a gateway
    ha: bool = False  #: whether it is an HA router, served by several agents
    distributed: bool = False  #: whether it is a distributed router (DVR)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """A network of Neutron."""

    id: str  #: UUID
    name: str = ''
    #: physical network of its first segment that has one, which Nova uses;
    #: None if no segment has one
    physnet: str | None = None
    #: vNIC type of all its ports in a cloud file of the simulator; None for
    #: networks from Neutron
    vnic_type: str | None = None
    #: PCI NUMA policy of all its ports, likewise
    numa_policy: str | None = None
    #: whether all its ports want trusted VFs, likewise; None for any VFs
    trusted: bool | None = None


def age(taken_at: str) -> int | None:
    """Return the age of a snapshot in seconds; None if unknown."""
    from oslo_utils import timeutils
    try:
        read = timeutils.normalize_time(timeutils.parse_isotime(taken_at))
    except ValueError:
        return None
    return max(0, int(timeutils.delta_seconds(read, timeutils.utcnow())))


class MissingKind(enum.StrEnum):
    """Kind of information that could not be read."""

    NO_CELLS = 'no-cells'
    CELL = 'cell'
    #: A cell that did not answer in time.
    SILENT_CELL = 'silent-cell'
    #: Malformed records of hosts, servers, request specs and migrations.
    HOST = 'host'
    SERVER = 'server'
    REQUEST_SPEC = 'request-spec'
    MIGRATION = 'migration'
    NEUTRON = 'neutron'
    NETWORK_AGENTS = 'network-agents'
    PLACEMENT = 'placement'
    #: Resource providers of some hosts.
    PROVIDERS = 'providers'
    #: Servers in cells that do not answer, of which the API shows the hosts.
    SILENT_HOSTS = 'silent-hosts'
    #: A filter or weigher that a file names and this machine does not have.
    CLASS = 'class'
    #: Any other; also all of a file of version 1, which has texts only.
    OTHER = 'other'


#: Kinds that may concern any host or server of a cell.
UNREAD_CELLS = (MissingKind.CELL, MissingKind.SILENT_CELL)

# Sentences by kind; of other kinds, the text is the whole sentence.
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
        'answer, such as that of {name}'}

# Of such a kind in an anonymized snapshot, which has no texts.
_UNKNOWN = 'Something is left out, and the snapshot does not say what'


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """Information that could not be read; str() is a sentence for people."""

    kind: MissingKind
    cell: _Name = ''  #: name of the cell, or its UUID if it has no name
    hosts: tuple[str, ...] = ()  #: names of the hosts
    #: UUIDs of the cell, servers, migration, or compute nodes
    uuids: tuple[str, ...] = ()
    #: the error, without secrets; of some kinds the whole sentence
    text: str = ''

    def __str__(self) -> str:
        names = self.hosts or self.uuids
        name = min(names, default='')
        if self.cell not in ('', name):
            # The format of cells in Nova's logs.
            name = f'{name}({self.cell})' if name else self.cell
        sentence = _SENTENCES.get(self.kind, self.text and '{text}')
        return (sentence or _UNKNOWN).format(
            name=name, count=len(names), s='' if len(names) == 1 else 's',
            text=self.text, error=f': {self.text}' if self.text else '')


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Cloud:
    """A cloud at one moment."""

    taken: str  #: time when it was read: ISO 8601, UTC
    source: str = ''  #: description of the source, for people
    nova: str = ''  #: release of Nova where it was read
    nfv_sched: str = ''  #: release of nfv-sched that read it
    anonymous: bool = False  #: whether names and UUIDs were replaced
    missing: tuple[Missing, ...] = ()  #: information that could not be read
    #: options of Nova and nfv-sched that matter for scheduling: section ->
    #: name -> value
    options: Mapping[str, Mapping[str, ty.Any]] = dataclasses.field(
        default_factory=dict)
    hosts: tuple[Host, ...] = ()
    servers: tuple[Server, ...] = ()
    flavors: tuple[Flavor, ...] = ()
    aggregates: tuple[Aggregate, ...] = ()
    groups: tuple[Group, ...] = ()
    #: migrations that may occupy resources on their hosts; None if not read
    moves: tuple[Migration, ...] | None = None
    #: allocations of consumers that are not servers, such as migrations:
    #: consumer -> provider -> class -> amount; None if not read
    consumers: Mapping[str, Mapping[str, Mapping[str, int]]] | None = None
    #: agents of Neutron; None if not read
    network_agents: tuple[NetworkAgent, ...] | None = None
    #: DHCP networks and routers that these serve
    network_services: tuple[NetworkService, ...] = ()
    #: networks of Neutron; None if not read
    networks: tuple[Network, ...] | None = None
    #: all traits in Placement, including those that no provider has; None if
    #: not read
    traits: frozenset[str] | None = None
    #: all resource classes in Placement; None if not read
    resource_classes: frozenset[str] | None = None

    def unread(self, *kinds: MissingKind) -> frozenset[str]:
        return frozenset([uuid for each in self.missing if each.kind in kinds
                          for uuid in each.uuids])
