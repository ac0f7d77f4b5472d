#    Licensed under the Apache License, Version 2.0 (the "License"); you may
#    not use this file except in compliance with the License. You may obtain
#    a copy of the License at
#
#         http://www.apache.org/licenses/LICENSE-2.0
#
#    Unless required by applicable law or agreed to in writing, software
#    distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
#    WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
#    License for the specific language governing permissions and limitations
#    under the License.

"""What a cloud file says, as immutable values.

The loader makes these after it has checked them; nothing here checks, reads
files or knows Nova.
"""

import dataclasses
import typing as ty


@dataclasses.dataclass(frozen=True, slots=True)
class PageSpec:
    """Memory pages of one size on one host NUMA node.

    :ivar size_kib: page size in KiB
    :ivar total: pages of that size
    :ivar reserved: how many of them guests may not use
    """

    size_kib: int
    total: int
    reserved: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class NodeLayout:
    """One NUMA node of a host, dimensioned.

    :ivar id: number of the NUMA node
    :ivar socket: number of its socket
    :ivar cpus: all logical CPUs of the node, the host's own included
    :ivar shared: CPUs for guests with shared CPUs
    :ivar dedicated: CPUs for guests with dedicated CPUs
    :ivar siblings: the logical CPUs of each physical core
    :ivar memory_mib: all memory of the node in MiB, huge pages included
    :ivar pages: its pages, smallest first; 4 KiB pages are the rest that the
        huge pages leave
    :ivar physnets: physical networks declared near the node, labels included
    :ivar tunneled: whether tunnelled networks are declared near the node
    """

    id: int
    socket: int
    cpus: frozenset[int]
    shared: frozenset[int]
    dedicated: frozenset[int]
    siblings: tuple[frozenset[int], ...]
    memory_mib: int
    pages: tuple[PageSpec, ...]
    physnets: frozenset[str]
    tunneled: bool


@dataclasses.dataclass(frozen=True, slots=True)
class PCIDevice:
    """A PCI device that guests may have.

    :ivar address: PCI address
    :ivar kind: ``VF``, ``PF`` or ``standard``
    :ivar node: its NUMA node, or None if the host does not tell
    :ivar vendor: vendor id, four hexadecimal digits
    :ivar product: product id, four hexadecimal digits
    :ivar parent: PCI address of the PF of a VF, or None
    :ivar physical_network: physical network it is cabled to, or None
    """

    address: str
    kind: str
    node: int | None
    vendor: str
    product: str
    parent: str | None = None
    physical_network: str | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class PCIConfig:
    """The PCI devices of a host.

    :ivar devices: the devices
    :ivar device_spec: entries of Nova's ``[pci] device_spec`` for them
    """

    devices: tuple[PCIDevice, ...] = ()
    device_spec: tuple[ty.Mapping[str, str], ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class HostGroup:
    """Hosts that are alike.

    :ivar key: how the file names the group
    :ivar names: the hosts in it
    :ivar nodes: their NUMA nodes
    :ivar legacy_pinning: whether all guest CPUs are both shared and
        dedicated, as ``vcpu_pin_set`` has it
    :ivar threads: hardware threads per core
    :ivar switch_nodes: NUMA nodes on which the virtual switch runs
    :ivar reserved_mib: memory in MiB that Placement keeps from guests
    :ivar disk_gib: disk for guests in GiB
    :ivar cpu_ratio: shared vCPUs per shared CPU
    :ivar ram_ratio: memory overcommitment of guests without huge pages
    :ivar disk_ratio: disk overcommitment
    :ivar traits: Placement traits besides those that follow from the rest
    :ivar disabled: whether the compute service is disabled
    :ivar pci: PCI devices for guests
    :ivar dhcp_servers: networks that a DHCP agent serves on each host; each
        takes a port of the virtual switch
    :ivar routers: virtual routers on each host
    :ivar router_ports: ports of the virtual switch that each router takes
    :ivar other_ports: ports of the virtual switch that are neither a guest's
        nor one of these
    :ivar places: NUMA nodes of each further place, by its name
    """

    key: str
    names: tuple[str, ...]
    nodes: tuple[NodeLayout, ...]
    legacy_pinning: bool
    threads: int
    switch_nodes: frozenset[int]
    reserved_mib: int
    disk_gib: int
    cpu_ratio: float
    ram_ratio: float
    disk_ratio: float
    traits: frozenset[str]
    disabled: bool
    pci: PCIConfig = PCIConfig()
    dhcp_servers: int = 0
    routers: int = 0
    router_ports: int = 1
    other_ports: int = 0
    places: ty.Mapping[str, frozenset[int]] = dataclasses.field(
        default_factory=dict)

    def cores_of(self, cpus: ty.Iterable[int]) -> int:
        """On how many physical cores some logical CPUs are."""
        wanted = frozenset(cpus)
        return sum(1 for node in self.nodes for core in node.siblings
                   if core & wanted)


@dataclasses.dataclass(frozen=True, slots=True)
class AggregateSpec:
    """A host aggregate.

    :ivar name: its name
    :ivar hosts: the hosts in it
    :ivar metadata: its metadata
    """

    name: str
    hosts: tuple[str, ...]
    metadata: ty.Mapping[str, str]


@dataclasses.dataclass(frozen=True, slots=True)
class FlavorSpec:
    """A flavor.

    :ivar name: its name
    :ivar vcpus: vCPUs
    :ivar memory_mib: memory in MiB
    :ivar disk_gib: root disk in GiB
    :ivar extra_specs: its extra specs
    """

    name: str
    vcpus: int
    memory_mib: int
    disk_gib: int
    extra_specs: ty.Mapping[str, str]


@dataclasses.dataclass(frozen=True, slots=True)
class NetworkSpec:
    """A network.

    :ivar name: its name
    :ivar physical_network: physical network, or None
    :ivar tunneled: whether it is tunnelled between the hosts
    :ivar vnic_type: vNIC type of its ports: normal, direct (a VF) or
        direct-physical (a PF)
    :ivar numa_policy: PCI NUMA policy of its ports, or None
    """

    name: str
    physical_network: str | None
    tunneled: bool
    vnic_type: str = 'normal'
    numa_policy: str | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class GroupSpec:
    """A server group.

    :ivar name: its name
    :ivar policy: affinity, anti-affinity, soft-affinity or
        soft-anti-affinity
    :ivar max_server_per_host: rule of anti-affinity, or None
    """

    name: str
    policy: str
    max_server_per_host: int | None


@dataclasses.dataclass(frozen=True, slots=True)
class Expectation:
    """What a step is expected to do. None: no expectation.

    :ivar placed: how many servers the step places, or True for all
    :ivar refused: how many it refuses, or True for all
    :ivar hosts: hosts of which every placed server is on one
    :ivar not_hosts: hosts on which no placed server is
    :ivar nodes: host NUMA node of each guest NUMA node
    :ivar nodes_in: host NUMA nodes of which every guest NUMA node is on one
    :ivar vswitch: ``local``, ``partial`` or ``remote``: which of the guest's
        NUMA nodes are where the virtual switch runs
    :ivar places: (place, the same of it) pairs
    :ivar pci: ``local``, ``partial`` or ``remote``: which of the guest's PCI
        devices are on its NUMA nodes
    :ivar pci_devices: (host NUMA node or None, devices there) pairs, all
        devices of the guest
    :ivar cores: how many physical cores the dedicated vCPUs are on
    :ivar reason: text in the reason of every refused server
    :ivar ports: (host, ports of its virtual switch after the step) pairs
    :ivar rules: (host, security-group rules on it after the step) pairs
    :ivar line: line of the file
    :ivar servers: expectations of single servers by name
    """

    placed: int | bool | None = None
    refused: int | bool | None = None
    hosts: tuple[str, ...] | None = None
    not_hosts: tuple[str, ...] | None = None
    nodes: tuple[int, ...] | None = None
    nodes_in: tuple[int, ...] | None = None
    vswitch: str | None = None
    places: tuple[tuple[str, str], ...] = ()
    pci: str | None = None
    pci_devices: tuple[tuple[int | None, int], ...] | None = None
    cores: int | None = None
    reason: str | None = None
    ports: tuple[tuple[str, int], ...] = ()
    rules: tuple[tuple[str, int], ...] = ()
    line: int = 0
    servers: tuple[tuple[str, 'Expectation'], ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Step:
    """One step of the file.

    :ivar number: position in the file, from 1
    :ivar line: line of the file
    :ivar action: boot, delete, cold_migrate, ...
    :ivar targets: servers (hosts for host_down and host_up) it is about
    :ivar flavor: flavor of a boot or a resize
    :ivar image: image of a boot or a rebuild
    :ivar networks: networks of a boot, an attach or a detach, one port each
    :ivar security_groups: security groups of its ports; none stands for the
        default group of the project
    :ivar multi_create: whether a boot asks for all its servers in one request
    :ivar host: host asked for; the filters still decide
    :ivar force: host asked for past the filters
    :ivar ignore_hosts: hosts left out
    :ivar zone: availability zone asked for
    :ivar group: server group of a boot
    :ivar same_host: whether a resize may stay on its host
    :ivar confirm: whether a resize or cold migration is confirmed at once
    :ivar revert: whether it is reverted at once
    :ivar state: what becomes of Neutron: ``up``, ``stale`` or ``down``
    :ivar expect: what is expected
    """

    number: int
    line: int
    action: str
    targets: tuple[str, ...]
    flavor: str | None = None
    image: str | None = None
    networks: tuple[str, ...] = ()
    security_groups: tuple[str, ...] = ()
    multi_create: bool = False
    host: str | None = None
    force: str | None = None
    ignore_hosts: tuple[str, ...] = ()
    zone: str | None = None
    group: str | None = None
    same_host: bool = False
    confirm: bool = True
    revert: bool = False
    state: str | None = None
    expect: Expectation | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Cloud:
    """All that a cloud file says.

    :ivar path: the file
    :ivar description: its description
    :ivar options: (group, option, value, line) of Nova's configuration
    :ivar filters: enabled filters, or None for the default ones
    :ivar pci_aliases: (name, alias as Nova's ``[pci] alias`` has it) pairs,
        or None if the file has none
    :ivar pci_in_placement: whether Placement tracks PCI devices, or None
    :ivar groups: hosts
    :ivar aggregates: host aggregates
    :ivar flavors: flavors by name
    :ivar images: image properties by image name
    :ivar networks: networks by name
    :ivar server_groups: server groups by name
    :ivar steps: the steps in order
    :ivar security_groups: rules, ingress and egress, by security group
    :ivar network_service: what Neutron tells of DHCP servers and routers:
        ``ovs`` (agents), ``ovn`` (gateway ports of routers) or ``none``
        (their ports only)
    """

    path: str
    description: str
    options: tuple[tuple[str, str, ty.Any, int], ...]
    filters: tuple[str, ...] | None
    groups: tuple[HostGroup, ...]
    aggregates: tuple[AggregateSpec, ...]
    flavors: ty.Mapping[str, FlavorSpec]
    images: ty.Mapping[str, ty.Mapping[str, ty.Any]]
    networks: ty.Mapping[str, NetworkSpec]
    server_groups: ty.Mapping[str, GroupSpec]
    steps: tuple[Step, ...]
    pci_aliases: tuple[tuple[str, ty.Mapping[str, str]], ...] | None = None
    pci_in_placement: bool | None = None
    security_groups: ty.Mapping[str, int] = dataclasses.field(
        default_factory=dict)
    network_service: str = 'none'

    @property
    def host_count(self) -> int:
        """How many hosts there are."""
        return sum(len(group.names) for group in self.groups)
