# SPDX-License-Identifier: Apache-2.0
"""Make a machine of facts that several sources have about it.

``lscpu`` knows cores, but no memory; the facts of Ansible know memory, but
neither NUMA nodes nor sibling threads.  Each source says what it knows.
"""

from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses

from nfv_sched import cpu_spec
from nfv_sched.ops.machine import values

#: More NUMA nodes than that, no Linux has.
MOST_NODES = 1 << 10
#: More sibling threads of a core than that are an error, too.
MOST_THREADS = 64
#: More memory of a NUMA node than that, in MiB, is one, too: 64 TiB.
MOST_MEMORY = 1 << 26

LSCPU = 'lscpu -J -e=CPU,NODE,SOCKET,CORE,ONLINE'


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CPU:
    """An online logical CPU.

    :ivar number: its number
    :ivar node: number of its NUMA node
    :ivar core: anything that only its sibling threads have, too
    :ivar socket: number of its socket, or None
    """

    number: int
    node: int
    core: tuple
    socket: int | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What one source knows; None is for what it does not know.

    :ivar cpus: the online CPUs
    :ivar offline: numbers of CPUs that are not online
    :ivar memory: number of each NUMA node -> its memory in MiB
    :ivar total_memory: all memory in MiB
    :ivar nics: network interfaces
    :ivar page_sizes: sizes of huge pages in KiB
    :ivar vendor: ``intel`` or ``amd``
    """

    cpus: tuple[CPU, ...] | None = None
    offline: frozenset[int] | None = None
    memory: Mapping[int, int] | None = None
    total_memory: int | None = None
    nics: tuple[values.NIC, ...] | None = None
    page_sizes: frozenset[int] | None = None
    vendor: str | None = None


def vendor(name: str) -> str | None:
    """The vendor of CPUs by a name of vendor or model.

    :param name: such as ``GenuineIntel``
    """
    for word in ('intel', 'amd'):
        if word in name.lower():
            return word
    return None


def page_sizes(flags: Iterable[str]) -> frozenset[int] | None:
    """Sizes of huge pages by the flags of x86 CPUs, in KiB.

    :param flags: of ``/proc/cpuinfo``
    :returns: None if the flags are not those of such a CPU
    """
    known = set(flags)
    if not known & {'pse', 'pdpe1gb'}:
        return None
    return frozenset({2048} | ({1048576} if 'pdpe1gb' in known else set()))


def merge(sources: Iterable[Facts]) -> Facts:
    """What several sources know; the first that knows something counts.

    Of NICs, the first that knows the NUMA node of one.

    :param sources: the best first
    """
    sources = list(sources)
    found: dict = {'nics': next((
        source.nics for source in sources if any(
            nic.node is not None for nic in source.nics or ())), None)}
    if found['nics'] is None:
        del found['nics']
    for source in sources:
        for field in dataclasses.fields(Facts):
            value = getattr(source, field.name)
            if value is not None:
                found.setdefault(field.name, value)
    return Facts(**found)


def machine(facts: Facts) -> values.Machine:
    """A machine of what is known.

    :param facts: what is known
    :raises MachineError: if something is missing, or contradicts itself
    """
    if not facts.cpus:
        raise values.MachineError(
            'NUMA nodes and sibling threads of the CPUs are not known; give '
            f'what "{LSCPU}" prints there by a further --facts, or run this '
            'on the machine itself, which has them in /sys')
    cores = _cores(facts.cpus)
    memory, even = _memory(facts, sorted(cores))
    return values.Machine(
        nodes=tuple(values.MachineNode(
            number=number, cores=cores.get(number, ()),
            memory=memory.get(number, 0))
            for number in sorted({*cores, *memory})),
        nics=tuple(sorted(facts.nics or (), key=lambda nic: nic.name)),
        page_sizes=facts.page_sizes, vendor=facts.vendor or '',
        offline=facts.offline or frozenset(), even_memory=even)


def _cores(cpus: Iterable[CPU]) -> dict[int, tuple[values.Core, ...]]:
    """Number of each NUMA node -> its cores."""
    seen: set[int] = set()
    of_core: dict[tuple, list[CPU]] = {}
    for cpu in cpus:
        _expect_number(cpu.number, 'CPU')
        _expect_number(cpu.node, 'NUMA node', MOST_NODES)
        if cpu.number in seen:
            raise values.MachineError(f'CPU {cpu.number} is there twice')
        seen.add(cpu.number)
        of_core.setdefault(cpu.core, []).append(cpu)
    found: dict[int, list[values.Core]] = {}
    for threads in of_core.values():
        nodes = {cpu.node for cpu in threads}
        numbers = tuple(sorted(cpu.number for cpu in threads))
        if len(nodes) > 1:
            raise values.MachineError(
                f'the sibling threads {", ".join(map(str, numbers))} are on '
                'several NUMA nodes')
        found.setdefault(nodes.pop(), []).append(values.Core(
            cpus=numbers, socket=threads[0].socket))
    return {node: tuple(sorted(cores, key=lambda core: core.cpus))
            for node, cores in found.items()}


def expect_threads(threads: Collection[int]) -> None:
    """Refuse a core with more sibling threads than any CPU has.

    :raises MachineError: if there are too many
    """
    if len(threads) > MOST_THREADS:
        raise values.MachineError(
            f'a core cannot have {len(threads)} sibling threads')


def _expect_number(number: int, what: str,
                   most: int = cpu_spec.MOST_CPUS) -> None:
    if not 0 <= number < most:
        raise values.MachineError(f'{what} {number} is out of range')


def _memory(facts: Facts, nodes: list[int]) -> tuple[Mapping[int, int], bool]:
    """Memory of each NUMA node in MiB, and whether it was spread evenly."""
    if facts.memory is not None:
        for node, memory in facts.memory.items():
            _expect_number(node, 'NUMA node', MOST_NODES)
            if not 0 <= memory <= MOST_MEMORY:
                raise values.MachineError(
                    f'NUMA node {node} cannot have {memory} MiB of memory')
        return facts.memory, False
    if facts.total_memory is None:
        raise values.MachineError(
            'the memory of the NUMA nodes is not known; add --node-memory')
    if not 0 <= facts.total_memory <= MOST_MEMORY:
        raise values.MachineError(
            f'it cannot have {facts.total_memory} MiB of memory')
    part = facts.total_memory // len(nodes)
    return {node: part for node in nodes}, len(nodes) > 1
