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
from nfv_sched.ops.cloud import names
from nfv_sched.ops.cloud import values

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


class Kind(enum.StrEnum):
    """Kind of what a text names, a mark of fields.

    An anonymized name begins with it.  Of a text that may name several of
    these, the last counts.
    """

    UUID = 'UUID'
    TIME = 'time'
    VERSION = 'version'
    PCI_ADDRESS = 'PCI address'
    PCI_ID = 'PCI ID'
    GROUP = 'group'
    SERVICE = 'service'
    NETWORK = 'network'
    SERVER = 'server'
    CELL = 'cell'
    HYPERVISOR = 'node'
    FLAVOR = 'flavor'
    AGGREGATE = 'aggregate'
    ZONE = 'zone'
    PHYSNET = 'physnet'
    HOST = 'host'


# Limits of numbers in a file; by default a number must be 0 or more.
_Signed = ty.Annotated[int, pydantic.Field(ge=-1 << 63)]
_VCPUs = ty.Annotated[int, pydantic.Field(le=cpu_spec.MOST_CPUS - 1)]
# The length of names in Nova's databases.
_Name = ty.Annotated[str, pydantic.Field(max_length=255)]
_AnyUUID = ty.Annotated[str, Kind.UUID]
_Time = ty.Annotated[str, Kind.TIME]  # ISO 8601, UTC
_Version = ty.Annotated[str, Kind.VERSION]
_Address = ty.Annotated[str, Kind.PCI_ADDRESS]
_PCIID = ty.Annotated[str, Kind.PCI_ID]
_Physnet = ty.Annotated[str, Kind.PHYSNET]
_NetworkName = ty.Annotated[str, Kind.NETWORK]
# Names and IDs that appear in printed commands are checked; names of servers,
# networks and routers may be anything.
_UUID = ty.Annotated[_AnyUUID, names.UUID]
_Host = ty.Annotated[_Name, Kind.HOST, names.HOST]
_Hypervisor = ty.Annotated[_Name, Kind.HYPERVISOR, names.PRINTABLE]
_Cell = ty.Annotated[_Name, Kind.CELL, names.PRINTABLE]
_Zone = ty.Annotated[_Name, Kind.ZONE, names.PRINTABLE]
_AggregateName = ty.Annotated[_Name, Kind.AGGREGATE, names.PRINTABLE]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Pages:
    size: values.Positive  #: KiB
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
    """A NUMA node as nova-compute reports it, with the CPUs of guests only."""

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
    physnets: frozenset[_Physnet] = frozenset()
    #: whether tunnelled networks have affinity to the node
    tunneled: bool = False

    @property
    def free(self) -> frozenset[int]:
        return self.dedicated - self.pinned

    @property
    def cores(self) -> tuple[frozenset[int], ...]:
        return self.siblings or tuple(
            frozenset((cpu,)) for cpu in sorted(self.shared | self.dedicated))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    address: _Address
    vendor: _PCIID
    product: _PCIID
    kind: str  #: ``type-VF``, ``type-PF``, ``type-PCI``, ``vdpa``
    node: _Signed | None = None  #: number of its NUMA node; None if unknown
    #: Nova's status: ``available``, ``claimed``, ``allocated``, ``removed``,
    #: ``deleted``, ``unavailable``, ``unclaimable``
    status: str = 'available'
    parent: _Address | None = None  #: that of its PF
    server: _AnyUUID | None = None  #: server that it is assigned to
    request: _AnyUUID | None = None  #: PCI request that it fulfils
    #: such as ``physical_network``, from ``[pci] device_spec``
    tags: Mapping[str, str] = values.empty_mapping()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Inventory:
    """The inventory of one resource class of a resource provider."""

    total: int
    reserved: int = 0
    ratio: float = 1.0
    min_unit: values.Positive = 1
    max_unit: values.Positive = 2 ** 31 - 1
    step_size: values.Positive = 1
    used: int = 0  #: sum of all allocations

    @classmethod
    def of_total(cls, total: int, reserved: int = 0,
                 **fields: ty.Any) -> 'Inventory':
        """Return an inventory of which one server may take all."""
        return cls(total=total, reserved=reserved, **{
            'max_unit': total, **fields})

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

    uuid: _UUID
    name: str
    #: UUID of its parent; None for the root of the host's tree
    parent: _UUID | None = None
    #: by resource class
    inventories: Mapping[str, Inventory] = values.empty_mapping()
    traits: frozenset[str] = frozenset()
    #: UUIDs of Nova's host aggregates that it is a member of
    aggregates: frozenset[_AnyUUID] = frozenset()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class HostNetwork:
    """Numbers of what is on a host, from Neutron; each is None if unknown."""

    #: ports of the virtual switch without physical ones
    vswitch_ports: int | None = None
    security_rules: int | None = None  #: security group rules of these ports
    dhcp_servers: int | None = None
    routers: int | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """A compute node and its service."""

    name: _Host  #: name of the host, that of the compute service
    hypervisor: _Hypervisor  #: name of the compute node
    uuid: _UUID  #: UUID of the compute node, and of its resource provider
    cell: _Cell = ''  #: name of the Nova cell, or its UUID if it has no name
    enabled: bool = True
    disabled_reason: str | None = None  #: the operator's
    up: bool = True
    #: whether Nova's API database maps the host to its cell; if not, requests
    #: that the scheduler sends there fail
    mapped: bool = True
    zone: _Zone = 'nova'
    aggregates: tuple[_AggregateName, ...] = ()  #: names of its aggregates
    hypervisor_type: str = 'QEMU'  #: such as ``QEMU``
    #: Nova's number for the version, such as 8002000
    hypervisor_version: int = 0
    #: Nova's supported_instances: (architecture, hypervisor, VM mode) of each
    supported: tuple[tuple[str, ...], ...] = ()
    cpu_info: str = ''  #: JSON as nova-compute reports it
    #: number of servers and other figures that nova-compute reports
    stats: Mapping[str, str] = values.empty_mapping()
    vcpus: _VCPUs = 0  #: number of CPUs for guests
    vcpus_used: int = 0  #: number of vCPUs of guests
    memory: int = 0  #: MiB
    memory_used: int = 0  #: MiB, including reserved memory
    disk: int = 0  #: GiB
    disk_used: int = 0  #: GiB
    disk_available_least: _Signed | None = None  #: GiB; None if unknown
    #: allocation ratios; None if not reported
    cpu_ratio: float | None = None
    memory_ratio: float | None = None
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

    name: ty.Annotated[_Name, Kind.FLAVOR, names.PRINTABLE]
    id: ty.Annotated[_Name, Kind.UUID, names.PRINTABLE] = ''
    vcpus: _VCPUs
    memory: int  #: MiB
    disk: int = 0  #: GiB
    ephemeral: int = 0  #: GiB
    swap: int = 0  #: MiB
    public: bool = True
    disabled: bool = False
    extra_specs: Mapping[str, str] = values.empty_mapping()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class GuestNode:
    host_node: int  #: number of the host NUMA node that it is on
    #: vCPUs that float over the shared CPUs of the host node
    shared: frozenset[int] = frozenset()
    dedicated: frozenset[int] = frozenset()  #: vCPUs that are pinned
    pins: Mapping[int, int] = values.empty_mapping()  #: vCPU -> host CPU
    memory: int  #: MiB
    page_size: int | None = None  #: KiB; None if it was not requested
    #: ``dedicated``, ``mixed``, ``shared`` or None
    cpu_policy: str | None = None
    #: ``prefer``, ``isolate``, ``require`` or None
    thread_policy: str | None = None
    reserved: frozenset[int] = frozenset()  #: host CPUs of emulator threads


#: Neutron's vNIC types; Nova has no list of all of them.
VNICType = ty.Literal[
    'normal', 'direct', 'direct-physical', 'macvtap', 'vdpa',
    'virtio-forwarder', 'smart-nic', 'baremetal', 'remote-managed',
    'accelerator-direct', 'accelerator-direct-physical']


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Port:
    id: _AnyUUID
    network: _AnyUUID = ''
    network_name: _NetworkName = ''  #: empty if unknown
    vnic_type: str = 'normal'  #: such as ``normal`` or ``direct``
    physnet: _Physnet | None = None
    device: _Address | None = None
    rules: int | None = None  #: of its security groups; None if unknown
    #: whether it has an allocation in Placement, such as for a minimum
    #: bandwidth
    has_allocation: bool = False


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PCIRequest:
    """A request of a server for PCI devices, as Nova stores it."""

    #: UUID, which is ``request`` of the assigned devices
    id: _AnyUUID | None = None
    count: ty.Annotated[int, values.within(1, 1024)] = 1
    #: name of the alias in the flavor; None if a port requests it
    alias: str | None = None
    #: alternatives; a device must have all tags of one of these
    specs: tuple[Mapping[str, str | None], ...] = ()
    #: NUMA affinity policy, such as ``required``
    numa_policy: str | None = None
    port: _AnyUUID | None = None  #: None if Nova does not store it


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    uuid: _UUID
    name: ty.Annotated[_Name, Kind.SERVER]
    host: _Host | None = None  #: name of its host; None if it has none
    cell: _Cell = ''
    project: ty.Annotated[_Name, Kind.UUID] = ''
    state: str = 'active'  #: Nova's vm_state, such as ``active`` or ``error``
    task: str | None = None  #: Nova's task_state
    locked: bool = False  #: whether its owner or an operator has locked it
    #: message of its last fault; None if it is not in error
    fault: str | None = None
    created: _Time = ''
    #: start of its last known move away from a host that is not its current
    #: one; empty if unknown
    moved: _Time = ''
    flavor: Flavor  #: copy from its boot or last resize
    #: properties of its image that matter for scheduling
    image: Mapping[str, str] = values.empty_mapping()
    #: guest NUMA nodes; None if it has no NUMA topology
    nodes: tuple[GuestNode, ...] | None = None
    emulator_threads: str | None = None  #: ``share``, ``isolate`` or None
    devices: tuple[_Address, ...] = ()
    #: PCI requests of flavor and ports; None if not read
    pci_requests: tuple[PCIRequest, ...] | None = None
    #: ports from Neutron, or from Nova if Neutron was not read; None if
    #: unknown
    ports: tuple[Port, ...] | None = None
    shares: bool = False  #: whether Manila shares are attached
    group: _UUID | None = None  #: its server group
    zone: _Zone | None = None  #: requested availability zone
    hints: Mapping[str, tuple[str, ...]] = values.empty_mapping()
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

    uuid: _UUID  #: UUID of the migration, and of its consumer in Placement
    server: _UUID
    #: ``migration``, ``resize``, ``live-migration``, ``evacuation``
    kind: str = ''
    status: str = ''  #: Nova's status, such as ``running`` or ``finished``
    source: _Host | None = None  #: name of the source host
    target: _Host | None = None  #: name of the destination; None if unknown
    updated: _Time = ''  #: time of its last change
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
    name: _AggregateName
    uuid: _AnyUUID = ''
    metadata: Mapping[str, str] = values.empty_mapping()
    hosts: tuple[_Host, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    uuid: _UUID
    name: ty.Annotated[_Name, Kind.GROUP] = ''
    policy: str  #: such as ``anti-affinity``
    #: rules of the policy, such as ``max_server_per_host``
    rules: Mapping[str, str] = values.empty_mapping()
    members: tuple[_UUID, ...] = ()  #: servers

    @property
    def most_on_host(self) -> int:
        """Number of servers that a host may have, with anti-affinity."""
        most = self.rules.get('max_server_per_host', '')
        return int(most) if most.isdecimal() and len(most) < 10 else 1


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class NetworkAgent:
    """A Neutron agent that runs DHCP servers or routers on a host."""

    id: _AnyUUID  #: for ``ovn`` the name of the chassis
    #: ``dhcp``, ``router``, or ``ovn`` for a gateway of ML2/OVN, whose routers
    #: OVN itself places
    kind: str
    host: _Host
    alive: bool = True  #: whether it is alive, as Neutron reports it
    enabled: bool = True  #: whether it is administratively up
    zone: _Zone = ''  #: availability zone of Neutron
    #: of an L3 agent: ``legacy``, ``dvr``, ``dvr_snat``, ``dvr_no_external``
    mode: str = ''
    external_only: bool = False  #: for routers with a gateway only
    #: physical networks that the virtual switch of its host reaches; None if
    #: no agent that is alive there reports them
    physnets: frozenset[_Physnet] | None = None
    #: tunnel types of this switch; None if not reported
    tunnels: frozenset[str] | None = None
    serves: tuple[_UUID, ...] = ()  #: networks or routers


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class NetworkService:
    """A network with DHCP, or a router, that Neutron agents serve."""

    id: _UUID  #: that of the network or router
    kind: str  #: ``dhcp`` or ``router``
    name: ty.Annotated[str, Kind.SERVICE] = ''
    #: number of virtual switch ports that it takes on each host that serves it
    ports: int = 0
    #: physical networks that it needs there; None if not all of its networks
    #: are known
    physnets: frozenset[_Physnet] | None = frozenset()
    tunnels: frozenset[str] = frozenset()  #: tunnel types that it needs there
    zones: tuple[_Zone, ...] = ()  #: requested; empty if none
    external: bool = False  #: whether it is a router with a gateway
    ha: bool = False  #: whether it is an HA router, served by several agents
    distributed: bool = False  #: whether it is a distributed router (DVR)
    subnets: int = 0  #: number of subnets of a network, with DHCP or without


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    id: _AnyUUID
    name: _NetworkName = ''
    #: physical network of its first segment that has one, which Nova uses;
    #: None if no segment has one
    physnet: _Physnet | None = None
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


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """Information that could not be read; str() is a sentence for people."""

    kind: MissingKind
    cell: _Cell = ''  #: name of the cell, or its UUID if it has no name
    hosts: tuple[ty.Annotated[str, Kind.HOST], ...] = ()
    #: of the cell, servers, migration, or compute nodes
    uuids: tuple[_AnyUUID, ...] = ()
    #: the error, without secrets; of some kinds the whole sentence
    text: str = ''

    def __str__(self) -> str:
        named = self.hosts or self.uuids
        name = min(named, default='')
        if self.cell not in ('', name):
            # The format of cells in Nova's logs.
            name = f'{name}({self.cell})' if name else self.cell
        # An anonymized snapshot has no texts.
        sentence = _SENTENCES.get(self.kind) or (
            '{text}' if self.text else
            'Something is left out, and the snapshot does not say what')
        return sentence.format(
            name=name, count=len(named), s='' if len(named) == 1 else 's',
            text=self.text, error=f': {self.text}' if self.text else '')


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Cloud:
    taken: _Time  #: time when it was read
    source: str = ''  #: description of the source, for people
    nova: _Version = ''  #: release of Nova where it was read
    nfv_sched: _Version = ''  #: release of nfv-sched that read it
    anonymous: bool = False  #: whether names and UUIDs were replaced
    missing: tuple[Missing, ...] = ()  #: information that could not be read
    #: options of Nova and nfv-sched that matter for scheduling: section ->
    #: name -> value
    options: Mapping[str, Mapping[str, ty.Any]] = values.empty_mapping()
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
