# SPDX-License-Identifier: Apache-2.0
"""Immutable values for a machine: its NUMA nodes, cores, memory and NICs."""

import collections
from collections.abc import Mapping
import dataclasses

from nfv_sched.ops.cli import errors


class MachineError(errors.CloudUnreadError):
    """Facts about a machine that cannot be read or are invalid."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Core:
    """A physical core."""

    cpus: tuple[int, ...]  #: its online logical CPUs (sibling threads), sorted
    socket: int | None = None  #: number of its socket; None if unknown


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class MachineNode:
    """A NUMA node."""

    number: int
    cores: tuple[Core, ...] = ()  #: sorted by their CPUs
    memory: int = 0  #: in MiB

    @property
    def cpus(self) -> frozenset[int]:
        return frozenset(cpu for core in self.cores for cpu in core.cpus)

    @property
    def usable(self) -> bool:
        """Whether the node can host a guest NUMA node: has CPUs and memory."""
        return bool(self.cores and self.memory)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class NIC:
    """A network interface."""

    #: name of the interface; the PCI address if it has none, as under a DPDK
    #: driver
    name: str
    address: str = ''  #: PCI address; an empty string if unknown
    node: int | None = None  #: number of its NUMA node; None if unknown
    vfs: int | None = None  #: number of VFs now; None if unknown
    most_vfs: int | None = None  #: largest number of VFs; None if unknown
    #: product ID of its VFs, in hexadecimal; an empty string if unknown
    vf_product: str = ''


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class TripleORole:
    """The use that a TripleO role makes of a host."""

    guests: frozenset[int]  #: CPUs for pinned servers
    shared: frozenset[int]  #: CPUs for shared vCPUs
    switch: frozenset[int]  #: CPUs of the virtual switch
    #: MiB of the switch on each NUMA node from 0 on; empty if not given
    switch_memory: tuple[int, ...]
    platform_memory: int  #: MiB kept from servers; 0 if not given


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A machine."""

    nodes: tuple[MachineNode, ...]  #: NUMA nodes, sorted by number
    nics: tuple[NIC, ...] = ()  #: network interfaces, sorted by name
    #: supported huge page sizes in KiB; None if unknown
    page_sizes: frozenset[int] | None = None
    #: vendor of the CPUs: ``intel``, ``amd``, or an empty string
    vendor: str = ''
    #: logical CPU that is present, but not online -> its NUMA node; None if
    #: that is unknown
    offline: Mapping[int, int | None] = dataclasses.field(default_factory=dict)
    #: logical CPU -> its frequency governor, if known
    governors: Mapping[int, str] = dataclasses.field(default_factory=dict)
    #: whether the facts show CPUs that are not online
    knows_offline: bool = True
    #: threads that a core has if all are online; None if only the numbers of
    #: cores tell
    core_threads: int | None = None
    #: whether only the total memory is known, and was divided evenly among
    #: several NUMA nodes
    even_memory: bool = False
    role: TripleORole | None = None  #: None if all is to be chosen

    @property
    def cpus(self) -> frozenset[int]:
        return frozenset(cpu for node in self.nodes for cpu in node.cpus)

    @property
    def memory(self) -> int:
        return sum(node.memory for node in self.nodes)

    @property
    def threads(self) -> int:
        """The largest number of online threads of a core; 0 without cores."""
        return max((len(core.cpus) for node in self.nodes
                    for core in node.cores), default=0)

    @property
    def usable(self) -> tuple[MachineNode, ...]:
        return tuple(node for node in self.nodes if node.usable)

    def sockets(self) -> Mapping[int, int]:
        """Return the number of cores by socket, by NUMA node if unknown."""
        return collections.Counter(
            node.number if core.socket is None else core.socket
            for node in self.nodes for core in node.cores)
