# SPDX-License-Identifier: Apache-2.0
"""Define the documents of ``host profile``."""

from collections.abc import Mapping
import dataclasses

from nfv_sched.ops.cli import documents


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ProfilePages:
    """Huge pages of a NUMA node.

    :ivar size_kib: size of a page in KiB
    :ivar total: number of pages
    :ivar switch: number of pages for the virtual switch
    :ivar servers: number of pages for servers
    """

    size_kib: int
    total: int
    switch: int
    servers: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ProfileNode:
    """The setup of a NUMA node.

    :ivar node: number of the NUMA node
    :ivar usable: whether servers can be there
    :ivar cpus: function -> its logical CPUs
    :ivar cores: logical CPUs of each physical core
    :ivar memory_mib: all of its memory, in MiB
    :ivar kept_memory_mib: memory that servers do not get, in MiB
    :ivar switch_memory_mib: memory of the virtual switch, in MiB
    :ivar pages: huge pages of each size
    """

    node: int
    usable: bool
    cpus: Mapping[str, tuple[int, ...]]
    cores: tuple[tuple[int, ...], ...]
    memory_mib: int
    kept_memory_mib: int
    switch_memory_mib: int
    pages: tuple[ProfilePages, ...]

    def page_count(self, size: int) -> int:
        return sum(each.total for each in self.pages if each.size_kib == size)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ReservedPages:
    """Huge pages that nova-compute must not give to servers.

    :ivar node: number of the NUMA node
    :ivar size_kib: size of a page in KiB
    :ivar count: number of pages
    """

    node: int
    size_kib: int
    count: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class NovaOptions:
    """Options of nova.conf of nova-compute.

    :ivar cpu_shared_set: CPUs in [compute] cpu_shared_set
    :ivar cpu_dedicated_set: CPUs in [compute] cpu_dedicated_set
    :ivar reserved_host_memory_mib: reserved_host_memory_mb, in MiB
    :ivar reserved_huge_pages: reserved_huge_pages
    :ivar cpu_allocation_ratio: cpu_allocation_ratio; null if it stays
    :ivar physnets: physical network or label -> NUMA nodes near it
    """

    cpu_shared_set: tuple[int, ...]
    cpu_dedicated_set: tuple[int, ...]
    reserved_host_memory_mib: int
    reserved_huge_pages: tuple[ReservedPages, ...]
    cpu_allocation_ratio: float | None
    physnets: Mapping[str, tuple[int, ...]]


@dataclasses.dataclass(frozen=True, slots=True)
class ProfileWarning:
    """A deviation from the guides.

    :ivar warning: description, for people
    :ivar do: instructions, for people
    """

    warning: str
    do: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """The setup of a machine as a compute node.

    :ivar layout: layout of the CPUs, as --layout takes it
    :ivar numa_nodes: its NUMA nodes
    :ivar nova: options of nova.conf
    :ivar platform_memory_mib: memory for the platform, OSDs and the needs of
        the host for each server, without the switch's, in MiB
    :ivar kernel_arguments: arguments of the kernel
    :ivar isolated_cpus: CPUs on which the kernel should run nothing by itself
    :ivar ovs_other_config: keys of other_config of OVS-DPDK, with values
    :ivar osd_memory_mb: memory of the OSDs, in MB of --mb-per-gb
    :ivar vcpus_per_osd: number of CPUs of each OSD
    :ivar servers_by_memory: number of servers that fit by memory; null
        without --guest-gb
    :ivar server_overhead_mb: memory that the host needs for these servers, in
        MB of --mb-per-gb
    :ivar server_vcpus: number of vCPUs of servers that the CPUs carry; null
        without --guest-gb
    :ivar warnings: deviations from the guides
    :ivar vendor: vendor of the CPUs
    """

    layout: str
    numa_nodes: tuple[ProfileNode, ...]
    nova: NovaOptions
    platform_memory_mib: int
    kernel_arguments: tuple[str, ...]
    isolated_cpus: tuple[int, ...]
    ovs_other_config: Mapping[str, str]
    osd_memory_mb: int
    vcpus_per_osd: int
    servers_by_memory: int | None
    server_overhead_mb: int
    server_vcpus: int | None
    warnings: tuple[ProfileWarning, ...]
    vendor: str = dataclasses.field(default='', metadata=documents.INTERNAL)

    def cpus(self, function: str) -> frozenset[int]:
        return frozenset(cpu for node in self.numa_nodes
                         for cpu in node.cpus[function])

    @property
    def page_sizes(self) -> tuple[int, ...]:
        """The sizes of its huge pages in KiB, the largest first."""
        return tuple(sorted({pages.size_kib for node in self.numa_nodes
                             for pages in node.pages}, reverse=True))
