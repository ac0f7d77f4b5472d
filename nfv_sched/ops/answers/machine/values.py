# SPDX-License-Identifier: Apache-2.0
"""Immutable values for a machine: its NUMA nodes, cores, memory and NICs."""

from collections.abc import Mapping
import dataclasses


class MachineError(Exception):
    """Facts about a machine that cannot be read or are invalid."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Core:
    """A physical core.

    :ivar cpus: its online logical CPUs (sibling threads), sorted
    :ivar socket: number of its socket; None if unknown
    """

    cpus: tuple[int, ...]
    socket: int | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class MachineNode:
    """A NUMA node.

    :ivar cores: sorted by their CPUs
    :ivar memory: in MiB
    """

    number: int
    cores: tuple[Core, ...] = ()
    memory: int = 0

    @property
    def cpus(self) -> frozenset[int]:
        return frozenset(cpu for core in self.cores for cpu in core.cpus)

    @property
    def usable(self) -> bool:
        """Whether the node can host a guest NUMA node: has CPUs and memory."""
        return bool(self.cores and self.memory)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class NIC:
    """A network interface.

    :ivar name: name of the interface; the PCI address if it has none, as
        under a DPDK driver
    :ivar address: PCI address; an empty string if unknown
    :ivar node: number of its NUMA node; None if unknown
    """

    name: str
    address: str = ''
    node: int | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A machine.

    :ivar nodes: NUMA nodes, sorted by number
    :ivar nics: network interfaces, sorted by name
    :ivar page_sizes: supported huge page sizes in KiB; None if unknown
    :ivar vendor: vendor of the CPUs: ``intel``, ``amd``, or an empty string
    :ivar offline: logical CPU that is present, but not online -> its NUMA
        node; None if that is unknown
    :ivar governors: logical CPU -> its frequency governor, if known
    :ivar knows_offline: whether the facts show CPUs that are not online
    :ivar core_threads: threads that a core has if all are online; None if
        only the numbers of cores tell
    :ivar even_memory: whether only the total memory is known, and was divided
        evenly among several NUMA nodes
    """

    nodes: tuple[MachineNode, ...]
    nics: tuple[NIC, ...] = ()
    page_sizes: frozenset[int] | None = None
    vendor: str = ''
    offline: Mapping[int, int | None] = dataclasses.field(default_factory=dict)
    governors: Mapping[int, str] = dataclasses.field(default_factory=dict)
    knows_offline: bool = True
    core_threads: int | None = None
    even_memory: bool = False

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
        """The NUMA nodes that can host a guest NUMA node."""
        return tuple(node for node in self.nodes if node.usable)

    def sockets(self) -> dict[int, int]:
        """Return the number of cores of each socket, by the socket's number.

        A NUMA node counts as a socket where the socket is unknown.
        """
        counts: dict[int, int] = {}
        for node in self.nodes:
            for core in node.cores:
                socket = node.number if core.socket is None else core.socket
                counts[socket] = counts.get(socket, 0) + 1
        return counts
