# SPDX-License-Identifier: Apache-2.0
"""Define the documents of ``host profile``."""

from collections.abc import Mapping
import dataclasses

from nfv_sched.ops.cli import documents


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ProfilePages:
    """Huge pages of a NUMA node."""

    size_kib: int  #: size of a page in KiB
    total: int  #: number of pages
    switch: int  #: number of pages for the virtual switch
    servers: int  #: number of pages for servers


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ProfileNode:
    """The setup of a NUMA node."""

    node: int  #: number of the NUMA node
    usable: bool  #: whether servers can be there
    cpus: Mapping[str, tuple[int, ...]]  #: function -> its logical CPUs
    cores: tuple[tuple[int, ...], ...]  #: logical CPUs of each physical core
    memory_mib: int  #: all of its memory, in MiB
    kept_memory_mib: int  #: memory that servers do not get, in MiB
    switch_memory_mib: int  #: memory of the virtual switch, in MiB
    pages: tuple[ProfilePages, ...]  #: huge pages of each size

    def page_count(self, size: int) -> int:
        return sum(each.total for each in self.pages if each.size_kib == size)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ReservedPages:
    """Huge pages that nova-compute must not give to servers."""

    node: int  #: number of the NUMA node
    size_kib: int  #: size of a page in KiB
    count: int  #: number of pages


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class NovaOptions:
    """Options of nova.conf of nova-compute."""

    cpu_shared_set: tuple[int, ...]  #: CPUs in [compute] cpu_shared_set
    cpu_dedicated_set: tuple[int, ...]  #: CPUs in [compute] cpu_dedicated_set
    reserved_host_memory_mib: int  #: reserved_host_memory_mb, in MiB
    reserved_huge_pages: tuple[ReservedPages, ...]  #: reserved_huge_pages
    #: cpu_allocation_ratio; null if it stays
    cpu_allocation_ratio: float | None
    #: physical network or label -> NUMA nodes near it
    physnets: Mapping[str, tuple[int, ...]]
    device_spec: tuple[str, ...] = ()  #: [pci] device_spec, each in JSON


@dataclasses.dataclass(frozen=True, slots=True)
class ProfileWarning:
    """A deviation from the guides."""

    warning: str  #: description, for people
    do: str  #: instructions, for people

    def __str__(self) -> str:
        return f'{self.warning}. Do: {self.do}.'


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """The setup of a machine as a compute node."""

    layout: str  #: layout of the CPUs, as --layout takes it
    numa_nodes: tuple[ProfileNode, ...]  #: its NUMA nodes
    nova: NovaOptions  #: options of nova.conf
    #: memory for the platform, OSDs and the needs of the host for each server,
    #: without the switch's, in MiB
    platform_memory_mib: int
    kernel_arguments: tuple[str, ...]  #: arguments of the kernel
    #: CPUs on which the kernel should run nothing by itself
    isolated_cpus: tuple[int, ...]
    #: keys of other_config of OVS-DPDK, with values
    ovs_other_config: Mapping[str, str]
    osd_memory_mb: int  #: memory of the OSDs, in MB of --mb-per-gb
    vcpus_per_osd: int  #: number of CPUs of each OSD
    #: number of servers that fit by memory; null without --guest-gb
    servers_by_memory: int | None
    #: memory that the host needs for these servers, in MB of --mb-per-gb
    server_overhead_mb: int
    #: number of vCPUs of servers that the CPUs carry; null without --guest-gb
    server_vcpus: int | None
    warnings: tuple[ProfileWarning, ...]  #: deviations from the guides
    #: NIC, by name or PCI address -> number of VFs to create
    vf_counts: Mapping[str, int] = dataclasses.field(default_factory=dict)
    #: vendor of the CPUs
    vendor: str = documents.internal(default='')

    def cpus(self, function: str) -> frozenset[int]:
        return frozenset(cpu for node in self.numa_nodes
                         for cpu in node.cpus[function])

    def nodes(self, function: str) -> list[int]:
        return [node.node for node in self.numa_nodes if node.cpus[function]]

    @property
    def page_sizes(self) -> tuple[int, ...]:
        return tuple(sorted({pages.size_kib for node in self.numa_nodes
                             for pages in node.pages}, reverse=True))
