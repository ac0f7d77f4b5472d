# SPDX-License-Identifier: Apache-2.0
"""Define the documents of ``simulation run``."""

from collections.abc import Mapping
import dataclasses
import typing as ty

from nfv_sched.ops.cli import documents
from nfv_sched.ops.simulator import outcome


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ExpectationCounts:
    """The expectations of a cloud file."""

    checked: int  #: number of expectations that were checked
    failed: tuple[str, ...]  #: those that are not met, for people


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PinnedVCPU:
    """A pinned vCPU."""

    vcpu: int  #: number of the vCPU
    cpu: int  #: CPU of the host


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class FloatingVCPUs:
    """vCPUs that float over shared CPUs."""

    vcpus: tuple[int, ...]  #: numbers of the vCPUs
    cpus: tuple[int, ...]  #: CPUs of the host


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedServerState:
    """A server after the last step."""

    server: str  #: its name
    server_id: str  #: its UUID
    flavor: str  #: name of its flavor
    status: str  #: status, as Nova's API shows it, or "REFUSED"
    host: str | None  #: name of its host; null if it has none
    #: NUMA node of the host for each of the server; null if it has none
    numa_nodes: tuple[int, ...] | None
    #: CPUs of the host for its vCPUs and emulator threads
    pinned_cpus: tuple[int, ...]
    pinned_vcpus: tuple[PinnedVCPU, ...]  #: its pinned vCPUs
    #: its shared vCPUs, by NUMA node
    floating_vcpus: tuple[FloatingVCPUs, ...]
    cores: int  #: number of physical cores to which it is pinned
    #: policy for the virtual switch; null without one
    vswitch_policy: str | None
    #: its NUMA nodes relative to those of the virtual switch: "local",
    #: "partial" or "remote"; null if that cannot be said
    vswitch: str | None
    places: Mapping[str, str]  #: place -> the same relative to it
    pci_policy: str | None  #: policy for PCI devices; null without one
    #: its devices relative to its NUMA nodes, likewise; null without devices
    pci: str | None
    pci_devices: tuple[outcome.AssignedDevice, ...]  #: its PCI devices
    #: why its last step was refused, for people; null if it was not
    reason: str | None
    notes: tuple[str, ...]  #: claims that failed before, for people
    #: UUID of the compute node of its host; None if it has none
    host_id: str | None = documents.internal()
    #: reason and notes, for people
    remark: str = documents.internal()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class FreePages:
    """Memory pages of a NUMA node."""

    size_kib: int  #: size of a page in KiB
    total: int  #: number of pages for servers
    free: int  #: number of free pages

    @property
    def name(self) -> str:
        names = {2048: '2M', 1048576: '1G', 4: '4K'}
        return names.get(self.size_kib, f'{self.size_kib}K')


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class FreeDevices:
    """PCI devices of a NUMA node."""

    type: str  #: "VF", "PF", "standard" or another type of Nova
    #: name of their physical network; null without one
    physical_network: str | None
    total: int  #: number of devices
    free: int  #: number of free devices

    @property
    def name(self) -> str:
        return ' '.join(filter(None, (self.type, self.physical_network)))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedNode:
    """A NUMA node after the last step."""

    node: int | None  #: number of the NUMA node; null for devices of none
    vswitch: bool  #: whether the virtual switch runs there
    places: tuple[str, ...]  #: names of the places there
    pcpus: int  #: number of CPUs for pinned servers
    pcpus_free: int  #: number of free ones
    shared_vcpus: int  #: number of vCPUs that its shared CPUs can take
    #: number of those that are free; negative if exceeded
    shared_vcpus_free: int
    memory_mib: int  #: memory in MiB
    memory_free_mib: int  #: free memory in MiB
    pages: tuple[FreePages, ...]  #: pages of each size
    pci_devices: tuple[FreeDevices, ...]  #: PCI devices near it
    host: str = documents.internal()  #: name of the host, or of a group
    host_id: str = documents.internal()
    #: whether the virtual switch runs on any NUMA node of the host
    has_switch: bool = documents.internal()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedHostState:
    """A host after the last step."""

    host: str  #: its name
    host_id: str  #: UUID of its compute node
    group: str  #: name of its group in the cloud file
    down: bool  #: whether it is down
    servers: tuple[str, ...]  #: names of its servers
    #: free amount of each resource class of the compute node in Placement
    placement_free: Mapping[str, int]
    numa_nodes: tuple[SimulatedNode, ...]  #: its NUMA nodes


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedLoad:
    """The load that the network puts on a host."""

    host: str  #: name of the host
    vswitch_ports: int  #: number of ports of its virtual switch
    vswitch_port_limit: int | None  #: how many it takes; null for unlimited
    physical_ports: int  #: number of those that are physical ports
    server_ports: int  #: number of those of servers
    dhcp_ports: int  #: number of those of DHCP servers
    router_ports: int  #: number of those of routers
    other_ports: int  #: number of other ones
    sriov_ports: int  #: number of SR-IOV ports, which are not on the switch
    security_rules: int  #: number of security group rules of its ports
    security_rule_limit: int | None  #: how many it takes; null for unlimited
    dhcp_servers: int | None  #: number of DHCP servers; null if not known
    routers: int  #: number of routers
    #: number of ports in the ledger; null without one
    claimed_ports: int | None
    #: number of rules in the ledger; null without one
    claimed_rules: int | None
    host_id: str = documents.internal()
    #: loads of a group of hosts, for which this one stands; empty for none
    of_group: tuple[ty.Any, ...] = documents.internal(default=())


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedCloud:
    """The result of the steps of a cloud file."""

    file: str  #: the cloud file
    seconds: float  #: time that the steps took
    expectations: ExpectationCounts  #: expectations of the file
    #: servers after the last step; null if --show leaves them out
    servers: tuple[SimulatedServerState, ...] | None
    #: hosts after the last step; null likewise
    hosts: tuple[SimulatedHostState, ...] | None
    #: what the network puts on hosts; null likewise, or if the file has none
    network: tuple[SimulatedLoad, ...] | None
    #: outcomes, in the order of the steps; null likewise
    steps: tuple[outcome.SimulatedStep, ...] | None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RequestedSize:
    """The servers of one size in a sequence."""

    vcpus: int  #: number of their vCPUs, all pinned
    memory_mib: int  #: their memory in MiB
    numa_nodes: int  #: number of their NUMA nodes
    servers: int  #: number of these servers
    refused: int  #: number of those that were refused
    #: how many more fit the cloud after the last step, if no others come
    fit: int
    #: the most frequent reason why they were refused, for people; null if none
    #: was
    reason: str | None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedSequence(SimulatedCloud):
    """The result of a sequence of servers (--sequence)."""

    hosts_used: int  #: number of hosts with servers after the last step
    #: servers of the sequence by size, most frequent first; null if --show
    #: leaves them out
    requests: tuple[RequestedSize, ...] | None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedFile:
    """The result of one of several cloud files."""

    file: str  #: the cloud file
    hosts: int  #: number of hosts
    done: int  #: number of outcomes that succeeded
    refused: int  #: number of outcomes that were refused
    expectations: int  #: number of expectations that were checked
    failed: int  #: number of those that are not met
    seconds: float  #: time that the steps took


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedFiles:
    """The results of several cloud files."""

    files: tuple[SimulatedFile, ...]  #: a row for each file


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ExampleCloud:
    """An example."""

    name: str  #: name, as --example takes it
    description: str  #: description, for people
    file: str  #: the cloud file


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ExampleClouds:
    """The examples (--list-examples)."""

    examples: tuple[ExampleCloud, ...]  #: a row for each example
