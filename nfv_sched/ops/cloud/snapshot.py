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
    """Memory pages of one size on a host NUMA node.

    :ivar size: KiB
    :ivar total: number of pages
    :ivar used: number of pages that guests use
    :ivar reserved: number of pages that guests must not use
    """

    size: _Positive
    total: int
    used: int = 0
    reserved: int = 0

    @property
    def usable(self) -> int:
        """The number of pages for guests, used or not."""
        return max(self.total - self.reserved, 0)

    @property
    def free(self) -> int:
        """The number of free pages for guests."""
        return max(self.total - self.used - self.reserved, 0)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A NUMA node of a host, as nova-compute reports it.

    CPUs that guests cannot use are not included.

    :ivar socket: number of the socket; None if the host does not report it
    :ivar shared: CPUs for shared (floating) vCPUs
    :ivar dedicated: CPUs for pinned vCPUs
    :ivar pinned: CPUs that vCPUs are pinned to
    :ivar siblings: CPUs of each physical core, in Nova's order; empty if no
        core has more than one
    :ivar memory: MiB, including huge pages
    :ivar memory_used: MiB used by guests
    :ivar shared_used: number of shared vCPUs of guests
    :ivar pages: one entry for each page size, in Nova's order
    :ivar physnets: physical networks with affinity to the node, including
        the labels of NUMA nodes
    :ivar tunneled: whether tunnelled networks have affinity to the node
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
        """The CPUs for pinned vCPUs that no vCPU is pinned to."""
        return self.dedicated - self.pinned

    @property
    def cores(self) -> tuple[frozenset[int], ...]:
        """The CPUs of each physical core, in Nova's order."""
        return self.siblings or tuple(
            frozenset((cpu,)) for cpu in sorted(self.shared | self.dedicated))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """A PCI device for guests.

    :ivar address: PCI address
    :ivar vendor: vendor ID
    :ivar product: product ID
    :ivar kind: ``type-VF``, ``type-PF``, ``type-PCI``, ``vdpa``
    :ivar node: number of its NUMA node; None if unknown
    :ivar status: Nova's status: ``available``, ``claimed``, ``allocated``,
        ``removed``, ``deleted``, ``unavailable``, ``unclaimable``
    :ivar parent: PCI address of its PF
    :ivar server: UUID of the server that it is assigned to
    :ivar request: ID of the PCI request that it fulfils
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
    """The inventory of one resource class of a resource provider.

    :ivar used: sum of all allocations
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
        """The largest sum of all allocations."""
        return int((self.total - self.reserved) * self.ratio)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """A resource provider of a host in Placement.

    :ivar parent: UUID of its parent; None for the root of the host's tree
    :ivar inventories: by resource class
    :ivar aggregates: UUIDs of Nova's host aggregates that it is a member of
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
    """Ports, security group rules and services on a host, from Neutron.

    Each is a number; None if unknown.

    :ivar vswitch_ports: ports of the virtual switch without physical ones
    :ivar security_rules: security group rules of these ports
    """

    vswitch_ports: int | None = None
    security_rules: int | None = None
    dhcp_servers: int | None = None
    routers: int | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """A compute node and its service.

    :ivar name: name of the host, that of the compute service
    :ivar hypervisor: name of the compute node
    :ivar uuid: UUID of the compute node, and of its resource provider
    :ivar cell: name of the Nova cell, or its UUID if it has no name
    :ivar enabled: whether the service is enabled
    :ivar disabled_reason: the operator's reason why it is disabled
    :ivar up: whether the service is up
    :ivar mapped: whether Nova's API database maps the host to its cell; if
        not, requests that the scheduler sends there fail
    :ivar zone: availability zone
    :ivar aggregates: names of its aggregates
    :ivar hypervisor_type: such as ``QEMU``
    :ivar hypervisor_version: Nova's number for the version, such as 8002000
    :ivar supported: Nova's supported_instances: (architecture, hypervisor,
        VM mode) of each
    :ivar cpu_info: JSON as nova-compute reports it
    :ivar stats: number of servers and other figures that nova-compute reports
    :ivar vcpus: number of CPUs for guests
    :ivar vcpus_used: number of vCPUs of guests
    :ivar memory: MiB
    :ivar memory_used: MiB, including reserved memory
    :ivar disk: GiB
    :ivar disk_used: GiB
    :ivar disk_available_least: GiB; None if unknown
    :ivar cpu_ratio: CPU allocation ratio; None if not reported
    :ivar memory_ratio: memory allocation ratio; None if not reported
    :ivar disk_ratio: disk allocation ratio; None if not reported
    :ivar nodes: NUMA nodes; None if not reported
    :ivar devices: PCI devices
    :ivar providers: resource providers, the root first; empty if Placement
        was not read
    :ivar network: ports and services; None if Neutron was not read
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
    """A flavor: a current one, or the copy that a server was booted with.

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
    """A guest NUMA node.

    :ivar host_node: number of the host NUMA node that it is on
    :ivar shared: vCPUs that float over the shared CPUs of the host node
    :ivar dedicated: vCPUs that are pinned
    :ivar pins: vCPU -> host CPU
    :ivar memory: MiB
    :ivar page_size: KiB; None if it was not requested
    :ivar cpu_policy: ``dedicated``, ``mixed``, ``shared`` or None
    :ivar thread_policy: ``prefer``, ``isolate``, ``require`` or None
    :ivar reserved: host CPUs for its emulator threads
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


#: Neutron's vNIC types; Nova has no list of all of them.
VNICType = ty.Literal[
    'normal', 'direct', 'direct-physical', 'macvtap', 'vdpa',
    'virtio-forwarder', 'smart-nic', 'baremetal', 'remote-managed',
    'accelerator-direct', 'accelerator-direct-physical']


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Port:
    """A port of a server.

    :ivar network: UUID of its network
    :ivar network_name: name of its network; empty if unknown
    :ivar vnic_type: such as ``normal`` or ``direct``
    :ivar physnet: physical network of its network
    :ivar device: PCI address of its device
    :ivar rules: number of security group rules; None if unknown
    :ivar has_allocation: whether it has an allocation in Placement, such as
        for a minimum bandwidth
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

    :ivar id: UUID, which is ``request`` of the assigned devices
    :ivar count: number of devices
    :ivar alias: name of the alias in the flavor; None if a port requests it
    :ivar specs: alternatives; a device must have all tags of one of these
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
    :ivar locked: whether its owner or an operator has locked it
    :ivar fault: message of its last fault; None if it is not in error
    :ivar created: ISO 8601, UTC
    :ivar moved: start of its last known move away from a host that is not its
        current one: ISO 8601, UTC; empty if unknown
    :ivar flavor: copy from its boot or last resize
    :ivar image: properties of its image that matter for scheduling
    :ivar nodes: guest NUMA nodes; None if it has no NUMA topology
    :ivar emulator_threads: ``share``, ``isolate`` or None
    :ivar devices: PCI addresses
    :ivar pci_requests: PCI requests of flavor and ports; None if not read
    :ivar ports: ports from Neutron, or from Nova if Neutron was not read;
        None if unknown
    :ivar shares: whether Manila shares are attached
    :ivar group: UUID of its server group
    :ivar zone: requested availability zone
    :ivar hints: scheduler hints
    :ivar allocations: provider -> class -> amount; None if Placement was not
        read
    """

    uuid: str
    name: _Name
    host: _Name | None = None
    cell: _Name = ''
    project: _Name = ''
    state: str = 'active'
    task: str | None = None
    locked: bool = False
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

    :ivar uuid: UUID of the migration, and of its consumer in Placement
    :ivar server: UUID of the server
    :ivar kind: ``migration``, ``resize``, ``live-migration``, ``evacuation``
    :ivar status: Nova's status, such as ``running`` or ``finished``
    :ivar source: name of the source host
    :ivar target: name of the destination host; None if not yet known
    :ivar updated: time of its last change: ISO 8601, UTC
    :ivar before: guest NUMA nodes on the source; None if there are none, or
        unknown
    :ivar after: guest NUMA nodes on the target; None likewise
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
        """Whether the server is on the target, even if not yet confirmed."""
        # Nova's status of a resize or cold migration is "finished" until it
        # is confirmed or reverted.
        return self.status == 'finished' or (
            self.kind == EVACUATION and self.status == 'done')


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Aggregate:
    """A host aggregate.

    :ivar hosts: names of its hosts
    """

    name: _Name
    uuid: str = ''
    metadata: Mapping[str, str] = dataclasses.field(default_factory=dict)
    hosts: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A server group.

    :ivar policy: such as ``anti-affinity``
    :ivar rules: rules of the policy, such as ``max_server_per_host``
    :ivar members: UUIDs of servers
    """

    uuid: str
    name: _Name = ''
    policy: str
    rules: Mapping[str, str] = dataclasses.field(default_factory=dict)
    members: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class NetworkAgent:
    """A Neutron agent that runs DHCP servers or routers on a host.

    :ivar id: UUID; the name of the chassis for ``ovn``
    :ivar kind: ``dhcp``, ``router``, or ``ovn`` for a gateway of ML2/OVN,
        whose routers OVN itself places
    :ivar host: name of its host
    :ivar alive: whether it is alive, as Neutron reports it
    :ivar enabled: whether it is administratively up
    :ivar zone: availability zone of Neutron
    :ivar mode: of an L3 agent: ``legacy``, ``dvr``, ``dvr_snat``,
        ``dvr_no_external``
    :ivar external_only: whether it serves only routers with a gateway
    :ivar physnets: physical networks that the virtual switch of its host
        reaches; None if no agent that is alive there reports them
    :ivar tunnels: tunnel types of this switch; None if not reported
    :ivar serves: UUIDs of the networks or routers that it serves
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
    """A network with DHCP, or a router, that Neutron agents serve.

    :ivar id: UUID of the network or router
    :ivar kind: ``dhcp`` or ``router``
    :ivar ports: number of virtual switch ports that it takes on each host
        that serves it
    :ivar physnets: physical networks that it needs there; None if not all of
        its networks are known
    :ivar tunnels: tunnel types that it needs there
    :ivar zones: requested availability zones; empty if none
    :ivar external: whether it is a router with a gateway
    :ivar ha: whether it is an HA router, served by several agents
    :ivar distributed: whether it is a distributed router (DVR)
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
    :ivar physnet: physical network of its first segment that has one, which
        Nova uses; None if no segment has one
    :ivar vnic_type: vNIC type of all its ports in a cloud file of the
        simulator; None for networks from Neutron
    :ivar numa_policy: PCI NUMA policy of all its ports, likewise
    :ivar trusted: whether all its ports want trusted VFs, likewise; None for
        any VFs
    """

    id: str
    name: str = ''
    physnet: str | None = None
    vnic_type: str | None = None
    numa_policy: str | None = None
    trusted: bool | None = None


def age(taken_at: str) -> int | None:
    """Return the age of a snapshot in seconds; None if unknown.

    :param taken_at: time in ISO 8601, as in :class:`Cloud`
    """
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
    """Information that could not be read; str() gives a sentence for people.

    :ivar cell: name of the cell, or its UUID if it has no name
    :ivar hosts: names of the hosts
    :ivar uuids: UUIDs of the cell, servers, migration, or compute nodes
    :ivar text: the error, without secrets; of some kinds the whole sentence
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
            # The format of cells in Nova's logs.
            name = f'{name}({self.cell})' if name else self.cell
        sentence = _SENTENCES.get(self.kind, self.text and '{text}')
        return (sentence or _UNKNOWN).format(
            name=name, count=len(names), s='' if len(names) == 1 else 's',
            text=self.text, error=f': {self.text}' if self.text else '')


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Cloud:
    """A cloud at one moment.

    :ivar taken: time when it was read: ISO 8601, UTC
    :ivar source: description of the source, for people
    :ivar nova: release of Nova where it was read
    :ivar nfv_sched: release of nfv-sched that read it
    :ivar anonymous: whether names and UUIDs were replaced
    :ivar missing: information that could not be read
    :ivar options: options of Nova and nfv-sched that matter for scheduling:
        section -> name -> value
    :ivar moves: migrations that may occupy resources on their hosts; None if
        not read
    :ivar consumers: allocations of consumers that are not servers, such as
        migrations: consumer -> provider -> class -> amount; None if not read
    :ivar network_agents: agents of Neutron; None if not read
    :ivar network_services: DHCP networks and routers that these serve
    :ivar networks: networks of Neutron; None if not read
    :ivar traits: all traits in Placement, including those that no provider
        has; None if not read
    :ivar resource_classes: all resource classes in Placement; None if not
        read
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
        """Return the UUIDs of everything missing that is of these kinds."""
        return frozenset([uuid for each in self.missing if each.kind in kinds
                          for uuid in each.uuids])
