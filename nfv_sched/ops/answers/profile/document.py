# SPDX-License-Identifier: Apache-2.0
"""Define the documents of ``host profile``."""

from collections.abc import Mapping
import dataclasses

from nfv_sched.ops.answers.profile import configuration
from nfv_sched.ops.answers.profile import derivation as profiles


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


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
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


def profiled(profile: profiles.HostProfile) -> Profile:
    """Return the document of a profile."""
    settings, ceph = profile.settings, profile.ceph
    return Profile(
        layout=profile.layout, numa_nodes=tuple([ProfileNode(
            node=node.number, usable=node.usable,
            cpus={function: tuple(sorted(cpus))
                  for function, cpus in node.cpus.items()},
            cores=node.cores, memory_mib=node.total_memory,
            kept_memory_mib=node.memory.kept,
            switch_memory_mib=node.memory.switch, pages=tuple([ProfilePages(
                size_kib=size, total=count,
                switch=node.memory.reserved.get(size, 0),
                servers=node.memory.guest_pages(size))
                for size, count in sorted(node.memory.pages.items())]))
            for node in profile.nodes]),
        nova=NovaOptions(
            cpu_shared_set=tuple(sorted(settings.shared)),
            cpu_dedicated_set=tuple(sorted(settings.dedicated)),
            reserved_host_memory_mib=settings.reserved_memory,
            reserved_huge_pages=tuple([
                ReservedPages(node=node, size_kib=size, count=count)
                for (node, size), count
                in sorted(settings.reserved_pages.items()) if count]),
            cpu_allocation_ratio=settings.cpu_ratio,
            physnets={name: tuple(sorted(nodes))
                      for name, nodes in settings.physnets.items()}),
        platform_memory_mib=profile.platform_memory,
        kernel_arguments=tuple(configuration.kernel_arguments(profile)),
        isolated_cpus=tuple(sorted(profile.isolated)),
        ovs_other_config=configuration.ovs_options(profile),
        osd_memory_mb=ceph.osd_memory, vcpus_per_osd=profile.vcpus_per_osd,
        servers_by_memory=ceph.guests, server_overhead_mb=ceph.overhead,
        server_vcpus=ceph.vcpus, warnings=tuple([
            ProfileWarning(warning=each.text, do=each.do)
            for each in profile.warnings]))
