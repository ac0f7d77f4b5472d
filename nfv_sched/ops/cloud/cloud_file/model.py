# SPDX-License-Identifier: Apache-2.0

"""Define the contents of a cloud file as immutable types.

The fields of the types are the keys of the file, with the allowed values; keys
are defined nowhere else.  :mod:`nfv_sched.ops.cloud.schema` defines
how type hints are read.  The loader sets the fields that are not keys, and
defaults that depend on other keys.  Nothing here checks, reads files or knows
Nova.  The types of steps are in :mod:`nfv_sched.ops.cloud.actions`.
"""

from collections.abc import Mapping
import dataclasses
import typing as ty

from nfv_sched.base import cpu_spec
from nfv_sched.ops.cloud import actions
from nfv_sched.ops.cloud import schema
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.cloud import values

_T = ty.TypeVar('_T')
# Values for PCI devices that are passed to Nova unchanged.
_Said = ty.Annotated[_T, values.FOR_NOVA]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PCIDevices:
    """An entry of ``pci_devices``: equal PCI devices on one NUMA node.

    :ivar type: ``VF``, ``PF``, ``vdpa`` or ``standard``
    :ivar node: number of the NUMA node; null if the host does not report it
    :ivar count: number of devices
    :ivar vfs: number of VFs of each PF
    :ivar vendor: vendor ID
    :ivar product: product ID
    :ivar vf_product: product ID of the VFs of a PF
    :ivar physical_network: physical network that they are connected to
    :ivar trusted: whether Nova may configure trusted VFs
    :ivar remote_managed: whether the card has its own switch, as a DPU has
    :ivar live_migratable: whether a server with them can be live-migrated
    :ivar resource_class: resource class in Placement
    :ivar traits: traits in Placement
    """

    type: values.PCIKind
    node: values.Count | None
    count: ty.Annotated[int, values.within(1, 1024)] = 1
    vfs: ty.Annotated[int, values.within(0, 240)] | None = None
    vendor: values.PCIId | None = None
    product: values.PCIId | None = None
    vf_product: values.PCIId | None = None
    physical_network: _Said[values.Name] | None = None
    trusted: _Said[bool] | None = None
    remote_managed: _Said[bool] | None = None
    live_migratable: _Said[bool] | None = None
    resource_class: _Said[values.Name] | None = None
    traits: _Said[tuple[values.Name, ...]] | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PCIAlias:
    """An entry of ``pci_aliases``.

    :ivar type: ``VF``, ``PF`` or ``standard``
    :ivar numa_policy: PCI NUMA affinity policy
    :ivar vendor: vendor ID of the devices
    :ivar product: product ID of the devices
    :ivar live_migratable: whether the devices must be live-migratable
    :ivar resource_class: resource class of the devices in Placement
    :ivar traits: traits of the devices in Placement
    """

    name: str = schema.own_name()
    type: values.PCIKind
    numa_policy: _Said[values.NUMAPolicy] | None = None
    vendor: values.PCIId | None = None
    product: values.PCIId | None = None
    live_migratable: _Said[bool] | None = None
    resource_class: _Said[values.Name] | None = None
    traits: _Said[tuple[values.Name, ...]] | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Routers:
    """Virtual routers on a host.

    :ivar count: number of routers
    :ivar ports: number of virtual switch ports that each router takes
    """

    count: values.Load
    ports: values.Load = 1


def _routers(value: int | Routers) -> Routers:
    return value if isinstance(value, Routers) else Routers(count=value)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class InventoryEntry:
    """An inventory of an entry of ``providers``."""

    total: values.Positive
    reserved: values.Count = 0


def _inventory(value: int | InventoryEntry) -> InventoryEntry:
    return (value if isinstance(value, InventoryEntry)
            else InventoryEntry(total=value))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ProviderEntry:
    """An entry of ``providers``: equal resource providers in Placement.

    They are nested in the compute node, such as the GPUs of a host.

    :ivar count: number of providers
    :ivar inventories: resource class -> total, or total and reserved
    :ivar traits: their traits
    """

    name: values.Name
    count: ty.Annotated[int, values.within(1, 256)] = 1
    inventories: ty.Annotated[Mapping[values.Name, ty.Annotated[
        values.Positive | InventoryEntry, schema.Convert(_inventory)]],
        values.SOME_KEYS]
    traits: tuple[values.Name, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class HostGroup:
    """An entry of ``hosts``: hosts with the same hardware.

    Keys of NUMA nodes may have one value for all nodes in the file; the
    loader replaces it by a tuple with a value for each node.

    :ivar name: name of the host, or pattern of the names of several
    :ivar count: number of hosts; None for one
    :ivar numa_nodes: number of NUMA nodes of each host
    :ivar nodes_per_socket: NUMA nodes per socket
    :ivar cores: physical cores of each NUMA node
    :ivar threads: hardware threads per core
    :ivar siblings: numbering of the threads of a core; see
        :mod:`nfv_sched.ops.cloud.cloud_file.topology`
    :ivar memory: all memory of each NUMA node in MiB
    :ivar pages: huge pages of each NUMA node: size in KiB -> number
    :ivar reserved_pages: pages that guests must not use: size in KiB -> number
    :ivar reserved_memory: reserved memory in Placement in MiB
    :ivar disk: disk for guests in GiB
    :ivar platform_cores: cores of NUMA node 0 for the host itself
    :ivar vswitch_cores: cores of each NUMA node for the virtual switch; a
        single number is for the nodes on which the switch runs
    :ivar shared_cores_per_node: cores of each NUMA node for shared vCPUs
    :ivar dedicated_cpus: explicit CPU set for pinned vCPUs; if this or
        ``shared_cpus`` is set, the three numbers of cores are not used
    :ivar shared_cpus: explicit CPU set for shared vCPUs
    :ivar legacy_pinning: whether all guest CPUs are both shared and
        dedicated, as with ``vcpu_pin_set``
    :ivar switch_nodes: NUMA nodes on which the virtual switch runs
    :ivar places: name of each further place -> its NUMA nodes
    :ivar node_labels: whether the labels of single NUMA nodes are declared
    :ivar physical_networks: physical network -> NUMA nodes with affinity
    :ivar tunnel_nodes: NUMA nodes with affinity to tunnelled networks
    :ivar cpu_allocation_ratio: shared vCPUs per shared CPU
    :ivar ram_allocation_ratio: memory overcommitment of guests without huge
        pages
    :ivar disk_allocation_ratio: disk overcommitment
    :ivar traits: additional traits in Placement
    :ivar providers: resource providers in Placement beside its own
    :ivar pci_devices: PCI devices for guests, as in the file
    :ivar disabled: whether the compute service is disabled
    :ivar dhcp_servers: number of networks that a DHCP agent serves on each
        host; each takes a port of the virtual switch
    :ivar routers: virtual routers on each host
    :ivar other_ports: number of virtual switch ports that do not belong to
        servers, DHCP servers or routers
    :ivar names: names of the hosts
    :ivar nodes: NUMA nodes of each host
    :ivar devices: PCI devices of each host, one by one
    """

    name: values.Name
    count: ty.Annotated[int, values.within(1, 100_000)] | None = None
    numa_nodes: ty.Annotated[int, values.within(1, 64)] | None = None
    nodes_per_socket: values.Positive = 1
    cores: values.PerNode[values.Count]
    threads: ty.Annotated[int, values.within(1, 8)] = 1
    siblings: ty.Literal['split', 'adjacent'] = 'split'
    memory: values.PerNode[values.MiB]
    pages: values.PerNode[Mapping[
        values.HugePageSize, values.PerNode[values.Count]]] = (
            dataclasses.field(default_factory=dict))
    reserved_pages: values.PerNode[Mapping[
        values.PageSize, values.PerNode[values.Count]]] = (
            dataclasses.field(default_factory=dict))
    reserved_memory: values.MiB = 512
    disk: values.GiB = 1000
    platform_cores: values.Count | None = None
    vswitch_cores: values.PerNode[values.Count] | None = None
    shared_cores_per_node: values.PerNode[values.Count] | None = None
    dedicated_cpus: values.CPUSet | None = None
    shared_cpus: values.CPUSet | None = None
    legacy_pinning: bool = False
    switch_nodes: values.Nodes = (0,)
    places: Mapping[str, values.Nodes] = dataclasses.field(
        default_factory=dict)
    node_labels: bool = True
    physical_networks: Mapping[str, values.Nodes] = dataclasses.field(
        default_factory=dict)
    tunnel_nodes: values.Nodes = ()
    cpu_allocation_ratio: values.Ratio | None = None
    ram_allocation_ratio: values.Ratio | None = None
    disk_allocation_ratio: values.Ratio | None = None
    traits: frozenset[values.Name] = frozenset()
    providers: tuple[ProviderEntry, ...] = ()
    pci_devices: tuple[PCIDevices, ...] = ()
    disabled: bool = False
    dhcp_servers: values.Load = 0
    routers: ty.Annotated[values.Load | Routers,
                          schema.Convert(_routers)] = Routers(count=0)
    other_ports: values.Load = 0

    names: tuple[str, ...] = schema.worked_out(())
    nodes: tuple[snapshot.Node, ...] = schema.worked_out(())
    devices: tuple[snapshot.Device, ...] = schema.worked_out(())


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class AggregateEntry:
    """A host aggregate.

    :ivar hosts: names of its hosts; the loader expands patterns
    """

    name: values.Name
    hosts: values.Names
    metadata: Mapping[str, values.Text] = dataclasses.field(
        default_factory=dict)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class FlavorEntry:
    """A flavor.

    :ivar vcpus: number of vCPUs
    :ivar memory: memory in MiB
    :ivar disk: root disk in GiB
    :ivar validate: whether the Nova API must accept the extra specs
    """

    name: str = schema.own_name()
    vcpus: ty.Annotated[int, values.within(1, cpu_spec.MOST_CPUS - 1)]
    memory: ty.Annotated[values.MiB, schema.rule(minimum=1)]
    disk: values.GiB = 0
    extra_specs: Mapping[str, values.Text] = dataclasses.field(
        default_factory=dict)
    validate: bool = True


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class NetworkEntry:
    """A network.

    :ivar physical_network: physical network; None if it is tunnelled
    :ivar tunneled: whether it is tunnelled between the hosts; None if it
        follows from ``physical_network``
    :ivar vnic_type: vNIC type of its ports, such as direct (a VF) or
        direct-physical (a PF)
    :ivar numa_policy: PCI NUMA affinity policy of its ports
    :ivar trusted: whether its ports want trusted VFs; None for any
    """

    name: str = schema.own_name()
    physical_network: values.Name | None = None
    tunneled: bool | None = None
    vnic_type: snapshot.VNICType = 'normal'
    numa_policy: values.NUMAPolicy | None = None
    trusted: bool | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SecurityGroupEntry:
    """A security group.

    :ivar ingress: number of ingress rules
    :ivar egress: number of egress rules
    """

    ingress: values.Load = 0
    egress: values.Load = 0

    @property
    def rules(self) -> int:
        """The number of rules."""
        return self.ingress + self.egress


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ServerGroup:
    """A server group.

    :ivar max_server_per_host: most servers per host with anti-affinity
    """

    name: str = schema.own_name()
    policy: ty.Literal['affinity', 'anti-affinity', 'soft-affinity',
                       'soft-anti-affinity']
    max_server_per_host: values.Positive | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class WhatIf:
    """The contents of a file of steps, for a cloud from a snapshot.

    :ivar options: values of Nova's configuration by group and option
    :ivar filters: enabled filters; None for the default ones
    :ivar flavors: flavors by name
    :ivar images: image properties by image name
    :ivar networks: networks by name
    :ivar security_groups: security groups by name
    :ivar server_groups: server groups by name
    :ivar steps: the steps in order
    """

    description: str = ''
    options: Mapping[str, Mapping[str, ty.Any]] = dataclasses.field(
        default_factory=dict)
    filters: tuple[values.Name, ...] | None = None
    flavors: Mapping[str,
                     FlavorEntry] = dataclasses.field(default_factory=dict)
    images: Mapping[str, Mapping[str, values.Scalar]] = dataclasses.field(
        default_factory=dict)
    networks: Mapping[str,
                      NetworkEntry] = dataclasses.field(default_factory=dict)
    security_groups: Mapping[str, SecurityGroupEntry] = dataclasses.field(
        default_factory=dict)
    server_groups: Mapping[str, ServerGroup] = dataclasses.field(
        default_factory=dict)
    steps: tuple[ty.Annotated[actions.Step, schema.AsItIs(schema.rule(
        type='object', minProperties=1))], ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CloudFile(WhatIf):
    """The contents of a cloud file.

    :ivar pci_in_placement: whether Placement tracks PCI devices; None if the
        options decide
    :ivar pci_aliases: PCI aliases by name; None if the options decide
    :ivar hosts: hosts, as in the file
    :ivar aggregates: host aggregates
    :ivar network_service: source of DHCP servers and routers in Neutron:
        ``ovs`` (agents), ``ovn`` (gateway ports of routers) or ``none``
        (their ports only)
    :ivar groups: hosts, with all fields that the loader sets
    """

    flavors: ty.Annotated[Mapping[str, FlavorEntry], values.SOME_KEYS]
    pci_in_placement: bool | None = None
    pci_aliases: Mapping[str, PCIAlias] | None = None
    hosts: ty.Annotated[tuple[HostGroup, ...], values.SOME_ITEMS]
    aggregates: tuple[AggregateEntry, ...] = ()
    network_service: ty.Literal['ovs', 'ovn', 'none'] | None = None

    groups: tuple[HostGroup, ...] = schema.worked_out(())
