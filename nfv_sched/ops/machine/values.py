# SPDX-License-Identifier: Apache-2.0
"""What a machine has that is to be a compute node: CPUs, memory, NICs.

Immutable values, from whatever facts there are about the machine.
"""

import dataclasses


class MachineError(Exception):
    """Facts about a machine cannot be read, or are not sound; says why."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Core:
    """A physical core.

    :ivar cpus: its online logical CPUs, sibling threads, sorted
    :ivar socket: number of its socket, or None if it is not known
    """

    cpus: tuple[int, ...]
    socket: int | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class MachineNode:
    """A NUMA node.

    :ivar number: its number
    :ivar cores: its cores, those with the lowest CPUs first
    :ivar memory: its memory in MiB
    """

    number: int
    cores: tuple[Core, ...] = ()
    memory: int = 0

    @property
    def cpus(self) -> frozenset[int]:
        """Its online logical CPUs."""
        return frozenset(cpu for core in self.cores for cpu in core.cpus)

    @property
    def usable(self) -> bool:
        """Whether a guest with NUMA topology can be there."""
        return bool(self.cores and self.memory)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class NIC:
    """A network interface.

    :ivar name: name of the interface; the PCI address if it has none, as
        under a driver of DPDK
    :ivar address: its PCI address, or an empty text
    :ivar node: its NUMA node, or None if it is not known
    """

    name: str
    address: str = ''
    node: int | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A machine.

    :ivar nodes: its NUMA nodes, sorted by their number
    :ivar nics: its network interfaces, sorted by name
    :ivar page_sizes: huge pages that it can have, in KiB, or None if that is
        not known
    :ivar vendor: vendor of the CPUs: ``intel``, ``amd``, or an empty text
    :ivar offline: logical CPUs that are present, but not online
    :ivar even_memory: whether only the sum of the memory is known, and each
        NUMA node was given the same part
    """

    nodes: tuple[MachineNode, ...]
    nics: tuple[NIC, ...] = ()
    page_sizes: frozenset[int] | None = None
    vendor: str = ''
    offline: frozenset[int] = frozenset()
    even_memory: bool = False

    @property
    def cpus(self) -> frozenset[int]:
        """All online logical CPUs."""
        return frozenset(cpu for node in self.nodes for cpu in node.cpus)

    @property
    def memory(self) -> int:
        """All memory in MiB."""
        return sum(node.memory for node in self.nodes)

    @property
    def threads(self) -> int:
        """Most online threads of a core."""
        return max((len(core.cpus) for node in self.nodes
                    for core in node.cores), default=0)

    @property
    def usable(self) -> tuple[MachineNode, ...]:
        """NUMA nodes on which guests can be."""
        return tuple(node for node in self.nodes if node.usable)

    def sockets(self) -> dict[int, int]:
        """Number of each socket -> how many cores it has.

        A NUMA node is taken for a socket where sockets are not known.
        """
        found: dict[int, int] = {}
        for node in self.nodes:
            for core in node.cores:
                socket = node.number if core.socket is None else core.socket
                found[socket] = found.get(socket, 0) + 1
        return found
