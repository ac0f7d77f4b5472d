# SPDX-License-Identifier: Apache-2.0
"""Define the documents of ``simulation run``."""

from collections.abc import Mapping
import dataclasses

from nfv_sched.ops.cli import documents
from nfv_sched.ops.simulator import outcome


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ExpectationCounts:
    """The expectations of a cloud file.

    :ivar checked: number of expectations that were checked
    :ivar failed: those that are not met, for people
    """

    checked: int
    failed: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PinnedVCPU:
    """A pinned vCPU.

    :ivar vcpu: number of the vCPU
    :ivar cpu: CPU of the host
    """

    vcpu: int
    cpu: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class FloatingVCPUs:
    """vCPUs that float over shared CPUs.

    :ivar vcpus: numbers of the vCPUs
    :ivar cpus: CPUs of the host
    """

    vcpus: tuple[int, ...]
    cpus: tuple[int, ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedServerState:
    """A server after the last step.

    :ivar server: its name
    :ivar server_id: its UUID
    :ivar flavor: name of its flavor
    :ivar status: status, as Nova's API shows it, or "REFUSED"
    :ivar host: name of its host; null if it has none
    :ivar numa_nodes: NUMA node of the host for each of the server; null if it
        has none
    :ivar pinned_cpus: CPUs of the host for its vCPUs and emulator threads
    :ivar pinned_vcpus: its pinned vCPUs
    :ivar floating_vcpus: its shared vCPUs, by NUMA node
    :ivar cores: number of physical cores to which it is pinned
    :ivar vswitch_policy: policy for the virtual switch; null without one
    :ivar vswitch: its NUMA nodes relative to those of the virtual switch:
        "local", "partial" or "remote"; null if that cannot be said
    :ivar places: place -> the same relative to it
    :ivar pci_policy: policy for PCI devices; null without one
    :ivar pci: its devices relative to its NUMA nodes, likewise; null without
        devices
    :ivar pci_devices: its PCI devices
    :ivar reason: why its last step was refused, for people; null if it was
        not
    :ivar notes: claims that failed before, for people
    :ivar host_id: UUID of the compute node of its host; None if it has none
    :ivar remark: reason and notes, for people
    """

    server: str
    server_id: str
    flavor: str
    status: str
    host: str | None
    numa_nodes: tuple[int, ...] | None
    pinned_cpus: tuple[int, ...]
    pinned_vcpus: tuple[PinnedVCPU, ...]
    floating_vcpus: tuple[FloatingVCPUs, ...]
    cores: int
    vswitch_policy: str | None
    vswitch: str | None
    places: Mapping[str, str]
    pci_policy: str | None
    pci: str | None
    pci_devices: tuple[outcome.AssignedDevice, ...]
    reason: str | None
    notes: tuple[str, ...]
    host_id: str | None = dataclasses.field(metadata=documents.INTERNAL)
    remark: str = dataclasses.field(metadata=documents.INTERNAL)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class FreePages:
    """Memory pages of a NUMA node.

    :ivar size_kib: size of a page in KiB
    :ivar total: number of pages for servers
    :ivar free: number of free pages
    """

    size_kib: int
    total: int
    free: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class FreeDevices:
    """PCI devices of a NUMA node.

    :ivar type: "VF", "PF", "standard" or another type of Nova
    :ivar physical_network: name of their physical network; null without one
    :ivar total: number of devices
    :ivar free: number of free devices
    """

    type: str
    physical_network: str | None
    total: int
    free: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedNode:
    """A NUMA node after the last step.

    :ivar node: number of the NUMA node; null for devices of none
    :ivar vswitch: whether the virtual switch runs there
    :ivar places: names of the places there
    :ivar pcpus: number of CPUs for pinned servers
    :ivar pcpus_free: number of free ones
    :ivar shared_vcpus: number of vCPUs that its shared CPUs can take
    :ivar shared_vcpus_free: number of those that are free; negative if
        exceeded
    :ivar memory_mib: memory in MiB
    :ivar memory_free_mib: free memory in MiB
    :ivar pages: pages of each size
    :ivar pci_devices: PCI devices near it
    """

    node: int | None
    vswitch: bool
    places: tuple[str, ...]
    pcpus: int
    pcpus_free: int
    shared_vcpus: int
    shared_vcpus_free: int
    memory_mib: int
    memory_free_mib: int
    pages: tuple[FreePages, ...]
    pci_devices: tuple[FreeDevices, ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedHostState:
    """A host after the last step.

    :ivar host: its name
    :ivar host_id: UUID of its compute node
    :ivar group: name of its group in the cloud file
    :ivar down: whether it is down
    :ivar servers: names of its servers
    :ivar placement_free: free amount of each resource class of the compute
        node in Placement
    :ivar numa_nodes: its NUMA nodes
    """

    host: str
    host_id: str
    group: str
    down: bool
    servers: tuple[str, ...]
    placement_free: Mapping[str, int]
    numa_nodes: tuple[SimulatedNode, ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedLoad:
    """The load that the network puts on a host.

    :ivar host: name of the host
    :ivar vswitch_ports: number of ports of its virtual switch
    :ivar vswitch_port_limit: how many it takes; null for unlimited
    :ivar physical_ports: number of those that are physical ports
    :ivar server_ports: number of those of servers
    :ivar dhcp_ports: number of those of DHCP servers
    :ivar router_ports: number of those of routers
    :ivar other_ports: number of other ones
    :ivar sriov_ports: number of SR-IOV ports, which are not on the switch
    :ivar security_rules: number of security group rules of its ports
    :ivar security_rule_limit: how many it takes; null for unlimited
    :ivar dhcp_servers: number of DHCP servers; null if not known
    :ivar routers: number of routers
    :ivar claimed_ports: number of ports in the ledger; null without one
    :ivar claimed_rules: number of rules in the ledger; null without one
    """

    host: str
    vswitch_ports: int
    vswitch_port_limit: int | None
    physical_ports: int
    server_ports: int
    dhcp_ports: int
    router_ports: int
    other_ports: int
    sriov_ports: int
    security_rules: int
    security_rule_limit: int | None
    dhcp_servers: int | None
    routers: int
    claimed_ports: int | None
    claimed_rules: int | None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedCloud:
    """The result of the steps of a cloud file.

    :ivar file: the cloud file
    :ivar seconds: time that the steps took
    :ivar expectations: expectations of the file
    :ivar servers: servers after the last step; null if --show leaves them out
    :ivar hosts: hosts after the last step; null likewise
    :ivar network: what the network puts on hosts; null likewise, or if the
        file has none
    :ivar steps: outcomes, in the order of the steps; null likewise
    """

    file: str
    seconds: float
    expectations: ExpectationCounts
    servers: tuple[SimulatedServerState, ...] | None
    hosts: tuple[SimulatedHostState, ...] | None
    network: tuple[SimulatedLoad, ...] | None
    steps: tuple[outcome.SimulatedStep, ...] | None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedFile:
    """The result of one of several cloud files.

    :ivar file: the cloud file
    :ivar hosts: number of hosts
    :ivar done: number of outcomes that succeeded
    :ivar refused: number of outcomes that were refused
    :ivar expectations: number of expectations that were checked
    :ivar failed: number of those that are not met
    :ivar seconds: time that the steps took
    """

    file: str
    hosts: int
    done: int
    refused: int
    expectations: int
    failed: int
    seconds: float


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedFiles:
    """The results of several cloud files.

    :ivar files: a row for each file
    """

    files: tuple[SimulatedFile, ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ExampleCloud:
    """An example.

    :ivar name: name, as --example takes it
    :ivar description: description, for people
    :ivar file: the cloud file
    """

    name: str
    description: str
    file: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ExampleClouds:
    """The examples (--list-examples).

    :ivar examples: a row for each example
    """

    examples: tuple[ExampleCloud, ...]
