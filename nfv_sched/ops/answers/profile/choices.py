# SPDX-License-Identifier: Apache-2.0
"""Define the choices of an operator for a host."""

from collections.abc import Mapping, Sequence
import dataclasses

from nfv_sched.ops.cli import errors

#: One core of node 0 for the platform: HPE Helion Carrier Grade.
HCG = 'hcg'
#: One core of each NUMA node for the platform: TripleO.
EVERY_NODE = 'every-node'
#: Servers share all CPUs with the platform: hyper-converged clouds.
FLOATING = 'floating'
LAYOUTS = (HCG, EVERY_NODE, FLOATING)

#: KiB of the pages that are not huge.
SMALL = 4
#: Name of each size of pages -> KiB: of x86, and of Arm, POWER and Z.
PAGE_SIZES = {
    '16G': 1 << 24, '2G': 1 << 21, '1G': 1 << 20, '512M': 1 << 19,
    '32M': 1 << 15, '16M': 1 << 14, '2M': 1 << 11, '1M': 1 << 10, '64K': 64,
    '4K': SMALL}
PAGE_NAMES = {size: name for name, size in PAGE_SIZES.items()}

HDD, SSD, NVME = 'hdd', 'ssd', 'nvme'
OSD_TYPES = (HDD, SSD, NVME)

#: Workloads of TripleO: name -> (GB of a server, utilisation of its CPUs).
WORKLOADS: Mapping[str, tuple[float, float]] = {
    'default': (2.0, 0.5),
    'many_small_vms': (1.0, 0.2),
    'few_large_vms': (4.0, 0.8),
    'nfv_default': (8.0, 0.9),
}


class ProfileError(errors.UsageError):
    """The machine cannot be set up as chosen; the message says why."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ChosenNIC:
    """A NIC of the virtual switch, or one with VFs for servers."""

    name: str  #: name of the interface, or its PCI address
    physnet: str = ''  #: physical network that it serves, or an empty string
    vfs: int | None = None  #: number of VFs to create; None to leave them


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """All choices for a host."""

    layout: str = HCG  #: one of :data:`LAYOUTS`
    #: physical cores for the virtual switch: for each of the NUMA nodes of its
    #: NICs, or NUMA node -> cores; None for the default
    switch_cores: int | Mapping[int, int] | None = None
    switch_nics: Sequence[ChosenNIC] = ()  #: NICs of the virtual switch
    sriov_nics: Sequence[ChosenNIC] = ()  #: NICs with VFs for servers
    mtus: frozenset[int] = frozenset()  #: MTUs of its networks, in bytes
    #: True to use one core of each NUMA node for shared vCPUs
    shared: bool = False
    #: (KiB, part of the memory for servers) for each size of huge pages; None
    #: for 1 GiB pages, or the next smaller that there are
    pages: tuple[tuple[int, float], ...] | None = None
    #: True if DHCP servers or routers run on the host
    network_node: bool = False
    #: type of disks -> number of Ceph OSDs on such disks
    osds: Mapping[str, int] = dataclasses.field(default_factory=dict)
    osds_per_device: int = 1  #: OSDs on each device; matters for NVMe only
    gb_per_osd: float = 5.0  #: memory of an OSD in GB
    mb_per_gb: int = 1024  #: MB in a GB: 1024, or 1000 as in the older guide
    ceph_node: int | None = None  #: NUMA node of the OSDs; None for all
    #: memory of an average server in GB, or None
    guest_gb: float | None = None
    #: CPU utilisation of an average server, above 0 to 1
    utilisation: float = 1.0
    #: label of NUMA nodes with the virtual switch
    vswitch_label: str = 'nfv_vswitch'
    #: prefix of the labels of single NUMA nodes
    node_label_prefix: str = 'nfv_node'

    @property
    def osd_count(self) -> int:
        return sum(self.osds.values())
