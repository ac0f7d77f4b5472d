# SPDX-License-Identifier: Apache-2.0
"""Define the contents of a cloud file as immutable types.

The fields of the types are the keys of the file, with the allowed values; keys
are defined nowhere else.  A key without a default is required; None is the
default of a key that may be missing, and is not written as null.  The loader
sets the internal fields, which are not keys, and defaults that depend on other
keys.  Nothing here checks, reads files or knows
Nova.  The types of steps are in :mod:`nfv_sched.ops.cloud.actions`.
"""

from collections.abc import Mapping
import dataclasses
import typing as ty

import pydantic

from nfv_sched.base import cpu_spec
from nfv_sched.ops.cli import documents
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.cloud import values

_T = ty.TypeVar('_T')
# Values for PCI devices that are passed to Nova unchanged.
_Said = ty.Annotated[_T, values.FOR_NOVA]
GroupPolicy = ty.Literal['affinity', 'anti-affinity', 'soft-affinity',
                         'soft-anti-affinity']


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PCIDevices:
    """An entry of ``pci_devices``: equal PCI devices on one NUMA node."""

    type: values.PCIKind
    #: number of the NUMA node; null if the host does not report it
    node: values.Count | None
    count: ty.Annotated[int, values.within(1, 1024)] = 1
    #: number of VFs of each PF
    vfs: ty.Annotated[int, values.within(0, 240)] | None = None
    vendor: values.PCIId | None = None
    product: values.PCIId | None = None
    vf_product: values.PCIId | None = None  #: product ID of the VFs of a PF
    physical_network: _Said[values.Name] | None = None
    #: whether Nova may configure trusted VFs
    trusted: _Said[bool] | None = None
    #: whether the card has its own switch, as a DPU has
    remote_managed: _Said[bool] | None = None
    #: whether a server with them can be live-migrated
    live_migratable: _Said[bool] | None = None
    resource_class: _Said[values.Name] | None = None
    traits: _Said[tuple[values.Name, ...]] | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PCIAlias:
    type: values.PCIKind
    numa_policy: _Said[values.NUMAPolicy] | None = None
    vendor: values.PCIId | None = None
    product: values.PCIId | None = None
    #: whether the devices must be live-migratable
    live_migratable: _Said[bool] | None = None
    resource_class: _Said[values.Name] | None = None
    traits: _Said[tuple[values.Name, ...]] | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Routers:
    count: values.Load
    #: number of virtual switch ports that each router takes
    ports: values.Load = 1


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class InventoryEntry:
    total: values.Positive
    reserved: values.Count = 0


_Inventory = ty.Annotated[
    values.Positive | InventoryEntry, pydantic.AfterValidator(
        lambda value: value if isinstance(value, InventoryEntry)
        else InventoryEntry(total=value))]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ProviderEntry:
    """Equal resource providers below the compute node, such as GPUs."""

    name: values.Name
    count: ty.Annotated[int, values.within(1, 256)] = 1
    #: resource class -> total, or total and reserved
    inventories: ty.Annotated[Mapping[values.Name, _Inventory],
                              values.NOT_EMPTY]
    traits: tuple[values.Name, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class HostGroup:
    """An entry of ``hosts``: hosts with the same hardware."""

    name: values.Name  #: name of the host, or pattern of the names of several
    #: number of hosts; None for one
    count: ty.Annotated[int, values.within(1, 100_000)] | None = None
    numa_nodes: ty.Annotated[int, values.within(1, 64)] | None = None
    nodes_per_socket: values.Positive = 1
    cores: values.PerNode[values.Count]  #: physical cores of each NUMA node
    #: hardware threads per core
    threads: ty.Annotated[int, values.within(1, 8)] = 1
    #: numbering of the threads of a core; see
    #: :mod:`nfv_sched.ops.cloud.cloud_file.hosts`
    siblings: ty.Literal['split', 'adjacent'] = 'split'
    memory: values.PerNode[values.MiB]  #: all memory of each NUMA node in MiB
    #: huge pages of each NUMA node: size in KiB -> number
    pages: values.PerNode[Mapping[
        values.HugePageSize, values.PerNode[values.Count]]] = (
            values.empty_mapping())
    #: pages that guests must not use: size in KiB -> number
    reserved_pages: values.PerNode[Mapping[
        values.PageSize, values.PerNode[values.Count]]] = (
            values.empty_mapping())
    reserved_memory: values.MiB = 512  #: reserved memory in Placement in MiB
    disk: values.GiB = 1000  #: disk for guests in GiB
    #: cores of NUMA node 0 for the host itself
    platform_cores: values.Count | None = None
    #: cores of each NUMA node for the virtual switch; a single number is for
    #: the nodes on which the switch runs
    vswitch_cores: values.PerNode[values.Count] | None = None
    #: cores of each NUMA node for shared vCPUs
    shared_cores_per_node: values.PerNode[values.Count] | None = None
    #: explicit CPU set for pinned vCPUs; if this or ``shared_cpus`` is set,
    #: the three numbers of cores are not used
    dedicated_cpus: values.CPUSet | None = None
    shared_cpus: values.CPUSet | None = None  #: that for shared vCPUs
    #: whether all guest CPUs are both shared and dedicated, as with
    #: ``vcpu_pin_set``
    legacy_pinning: bool = False
    switch_nodes: values.Nodes = (0,)  #: those of the virtual switch
    #: name of each further place -> its NUMA nodes
    places: Mapping[str, values.Nodes] = values.empty_mapping()
    #: whether the labels of single NUMA nodes are declared
    node_labels: bool = True
    #: physical network -> NUMA nodes with affinity
    physical_networks: Mapping[str, values.Nodes] = values.empty_mapping()
    tunnel_nodes: values.Nodes = ()  #: those near tunnelled networks
    #: shared vCPUs per shared CPU
    cpu_allocation_ratio: values.Ratio | None = None
    #: memory overcommitment of guests without huge pages
    ram_allocation_ratio: values.Ratio | None = None
    disk_allocation_ratio: values.Ratio | None = None
    traits: frozenset[values.Name] = frozenset()
    #: resource providers in Placement beside its own
    providers: tuple[ProviderEntry, ...] = ()
    pci_devices: tuple[PCIDevices, ...] = ()
    disabled: bool = False  #: whether the compute service is disabled
    #: number of networks that a DHCP agent serves on each host; each takes a
    #: port of the virtual switch
    dhcp_servers: values.Load = 0
    routers: ty.Annotated[values.Load | Routers, pydantic.AfterValidator(
        lambda value: value if isinstance(value, Routers)
        else Routers(count=value))] = Routers(count=0)
    #: number of virtual switch ports that do not belong to servers, DHCP
    #: servers or routers
    other_ports: values.Load = 0

    names: tuple[str, ...] = documents.internal(default=())
    nodes: tuple[snapshot.Node, ...] = documents.internal(default=())
    #: PCI devices of each host, one by one
    devices: tuple[snapshot.Device, ...] = documents.internal(default=())


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class AggregateEntry:
    name: values.Name
    hosts: values.Names  #: names of its hosts; the loader expands patterns
    metadata: Mapping[str, values.Text] = values.empty_mapping()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class FlavorEntry:
    vcpus: ty.Annotated[int, values.within(1, cpu_spec.MOST_CPUS - 1)]
    memory: values.PositiveMiB  #: memory in MiB
    disk: values.GiB = 0  #: root disk in GiB
    extra_specs: Mapping[str, values.Text] = values.empty_mapping()
    validate: bool = True  #: whether the Nova API must accept the extra specs


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class NetworkEntry:
    #: physical network; None if it is tunnelled
    physical_network: values.Name | None = None
    #: whether it is tunnelled between the hosts; None if it follows from
    #: ``physical_network``
    tunneled: bool | None = None
    #: vNIC type of its ports, such as direct (a VF) or direct-physical (a PF)
    vnic_type: snapshot.VNICType = 'normal'
    numa_policy: values.NUMAPolicy | None = None
    #: whether its ports want trusted VFs; None for any
    trusted: bool | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SecurityGroupEntry:
    """A security group: the numbers of its rules."""

    ingress: values.Load = 0
    egress: values.Load = 0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ServerGroup:
    """A server group; ``max_server_per_host`` is for anti-affinity."""

    policy: GroupPolicy
    max_server_per_host: values.Positive | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class WhatIf:
    """The contents of a file of steps, for a cloud from a snapshot."""

    description: str = ''
    #: values of Nova's configuration by group and option
    options: Mapping[str, Mapping[str, ty.Any]] = values.empty_mapping()
    #: enabled filters; None for the default ones
    filters: tuple[values.Name, ...] | None = None
    flavors: Mapping[str, FlavorEntry] = values.empty_mapping()
    #: image properties by image name
    images: Mapping[str, Mapping[str, values.Scalar]] = values.empty_mapping()
    networks: Mapping[str, NetworkEntry] = values.empty_mapping()
    security_groups: Mapping[str, SecurityGroupEntry] = values.empty_mapping()
    server_groups: Mapping[str, ServerGroup] = values.empty_mapping()
    #: each of the type that its action has
    steps: tuple[ty.Annotated[
        Mapping[str, ty.Any], values.NOT_EMPTY], ...] = ()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CloudFile(WhatIf):
    #: whether Placement tracks PCI devices; None if the options decide
    pci_in_placement: bool | None = None
    #: PCI aliases by name; None if the options decide
    pci_aliases: Mapping[str, PCIAlias] | None = None
    hosts: ty.Annotated[tuple[HostGroup, ...], values.NOT_EMPTY]
    aggregates: tuple[AggregateEntry, ...] = ()
    #: source of DHCP servers and routers in Neutron: ``ovs`` (agents), ``ovn``
    #: (gateway ports of routers) or ``none`` (their ports only)
    network_service: ty.Literal['ovs', 'ovn', 'none'] | None = None
