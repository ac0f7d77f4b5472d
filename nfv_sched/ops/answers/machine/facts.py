# SPDX-License-Identifier: Apache-2.0
"""Combine the facts of several sources into a machine.

``lscpu`` knows cores, but no memory; the facts of Ansible know memory, but
neither NUMA nodes nor sibling threads.
"""

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
import dataclasses
import typing as ty

from nfv_sched.base import cpu_spec
from nfv_sched.ops.answers.machine import values

#: Linux supports at most 1024 NUMA nodes (CONFIG_NODES_SHIFT=10).
MOST_NODES = 1 << 10
#: More sibling threads of a core are taken for malformed facts.
MOST_THREADS = 64
#: The most that CPUs have, by vendor: 4 are those of Xeon Phi, 8 of POWER.
_MOST_THREADS_OF = {'intel': 4, 'amd': 2, None: 8}
#: More memory of a NUMA node, in MiB, is taken for malformed facts: 64 TiB.
MOST_MEMORY = 1 << 26

LSCPU = 'lscpu -J -e=CPU,NODE,SOCKET,CORE,CACHE,ONLINE'


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CPU:
    """An online logical CPU."""

    number: int
    node: int  #: number of its NUMA node
    #: any value that sibling threads share; None if unknown
    core: tuple | None
    socket: int | None = None  #: number of its socket; None if unknown
    #: number of its first-level cache, which only sibling threads share; None
    #: if unknown
    cache: int | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """The facts of one source; None for a fact that it does not have."""

    cpus: tuple[CPU, ...] | None = None  #: the online CPUs
    #: why a source with CPUs does not tell their cores
    unusable: str | None = None
    #: number of threads of a core, as the kernel has it
    threads: int | None = None
    #: CPU that is not online -> its NUMA node; None if unknown
    offline: Mapping[int, int | None] | None = None
    #: CPU -> its frequency governor
    governors: Mapping[int, str] | None = None
    #: number of NUMA node -> its memory in MiB
    memory: Mapping[int, int] | None = None
    total_memory: int | None = None  #: all memory in MiB
    nics: tuple[values.NIC, ...] | None = None
    page_sizes: frozenset[int] | None = None  #: sizes of huge pages in KiB
    vendor: str | None = None  #: ``intel`` or ``amd``
    role: values.TripleORole | None = None


def vendor(name: str) -> str | None:
    return next((word for word in ('intel', 'amd') if word in name.lower()),
                None)


def page_sizes(flags: Iterable[str]) -> frozenset[int] | None:
    """Return huge page sizes (KiB) by flags of an x86 CPU; None for others."""
    cpu_flags = set(flags)
    if not cpu_flags & {'pse', 'pdpe1gb'}:
        return None
    return frozenset({2048} | ({1048576} if 'pdpe1gb' in cpu_flags else set()))


def merge(sources: Iterable[Facts]) -> Facts:
    """Merge the facts of several sources: the first one that has a fact wins.

    For NICs, a source that has the NUMA node of any of them goes first.
    """
    sources = list(sources)
    located = [source.nics for source in sources if any(
        nic.node is not None for nic in source.nics or ())]
    fields: dict = {'nics': located[0]} if located else {}
    for source in sources:
        for field in dataclasses.fields(Facts):
            if (value := getattr(source, field.name)) is not None:
                fields.setdefault(field.name, value)
    return Facts(**fields)


def machine(facts: Facts) -> values.Machine:
    """Return the machine that facts describe.

    :raises MachineError: if facts are missing or contradict each other
    """
    if not facts.cpus:
        raise values.MachineError(
            'NUMA nodes and sibling threads of the CPUs are not known'
            + (f', as {facts.unusable}' if facts.unusable else '') +
            f'; give what "{LSCPU}" prints there by a further --facts')
    cores = _cores(facts)
    memory, even = _memory(facts, sorted(cores))
    return values.Machine(
        nodes=tuple(values.MachineNode(
            number=number, cores=cores.get(number, ()),
            memory=memory.get(number, 0))
            for number in sorted({*cores, *memory})),
        nics=tuple(sorted(facts.nics or (), key=lambda nic: nic.name)),
        page_sizes=facts.page_sizes, vendor=facts.vendor or '',
        offline=facts.offline or {}, governors=facts.governors or {},
        knows_offline=facts.offline is not None, even_memory=even,
        role=facts.role, core_threads=facts.threads or (max(
            len(core.cpus) for node in cores.values() for core in node)
            if all(cpu.cache is not None for cpu in facts.cpus) else None))


def _cores(facts: Facts) -> dict[int, tuple[values.Core, ...]]:
    seen: set[int] = set()
    for cpu in facts.cpus or ():
        _expect_number(cpu.number, 'CPU')
        _expect_number(cpu.node, 'NUMA node', MOST_NODES)
        if cpu.number in seen:
            raise values.MachineError(f'CPU {cpu.number} is there twice')
        seen.add(cpu.number)
    cores_by_node: dict[int, list[values.Core]] = {}
    for threads in _siblings(facts):
        nodes = {cpu.node for cpu in threads}
        numbers = tuple(sorted(cpu.number for cpu in threads))
        if len(nodes) > 1:
            raise values.MachineError(
                f'the sibling threads {", ".join(map(str, numbers))} are on '
                'several NUMA nodes')
        cores_by_node.setdefault(nodes.pop(), []).append(values.Core(
            cpus=numbers, socket=threads[0].socket))
    return {node: tuple(sorted(cores, key=lambda core: core.cpus))
            for node, cores in cores_by_node.items()}


def _siblings(facts: Facts) -> list[list[CPU]]:
    """Return the sibling threads of each core.

    The numbers of cores are unique only within a socket, and on some CPUs
    only within a cluster of it.

    :raises MachineError: if a core would have more threads than it can
    """
    cpus = facts.cpus or ()
    unknown = [cpu.number for cpu in cpus
               if cpu.core is None and cpu.cache is None]
    if unknown and facts.threads != 1:
        raise values.MachineError(
            f'the core of CPU {cpu_spec.to_text(unknown)} is not known; '
            f'"{LSCPU}" prints the caches, which only sibling threads share')
    groupings = [_grouped(cpus, lambda cpu: (cpu.core, cpu.cache)),
                 _grouped(cpus, lambda cpu: cpu.core)]
    if facts.threads is None:
        most = _MOST_THREADS_OF.get(facts.vendor, _MOST_THREADS_OF[None])
        del groupings[1]
    else:
        most = facts.threads
        if most == 1 and all(cpu.cache is None for cpu in cpus):
            groupings = [[[cpu] for cpu in cpus]]
        groupings.sort(key=lambda cores: max(map(len, cores)) != most)
    for cores in groupings:
        if max(map(len, cores)) <= most:
            return cores
    core = max(groupings[0], key=len)
    raise values.MachineError(
        f'CPU {cpu_spec.to_text(cpu.number for cpu in core)} would be one '
        f'core, but cores have {most} threads'
        f'{"" if facts.threads else " at most"}: these numbers of cores are '
        f'not unique; give what "{LSCPU}" prints there by --facts, before '
        'other files')


def _grouped(cpus: Iterable[CPU],
             key: Callable[[CPU], Hashable]) -> list[list[CPU]]:
    groups: dict[Hashable, list[CPU]] = {}
    for cpu in cpus:
        groups.setdefault(key(cpu), []).append(cpu)
    return list(groups.values())


def nodes(node_of: Mapping[int, int | None]) -> dict[int, int]:
    """Return the NUMA node of each CPU.

    A kernel without NUMA has none, which is one node for libvirt and Nova.

    :param node_of: online CPU -> its NUMA node, or None
    :raises MachineError: if some CPUs are in none
    """
    outside = [cpu for cpu, node in node_of.items() if node is None]
    if outside and len(outside) < len(node_of):
        raise values.MachineError(
            f'online, but in no NUMA node: CPU {cpu_spec.to_text(outside)}. '
            'Nova has no server there: correct the NUMA nodes in the '
            'firmware, or take these CPUs offline')
    return {cpu: node or 0 for cpu, node in node_of.items()}


def number(text: ty.Any, what: str) -> int:
    if isinstance(text, str) and text.isascii() and text.isdigit() and (
            len(text) < 20):
        return int(text)
    raise values.MachineError(f'{what} is {str(text)[:40]!r}, not a number')


def cpu_list(text: str, path: str = '') -> frozenset[int]:
    try:
        return cpu_spec.parse(text)
    except ValueError:
        raise values.MachineError(
            f'{path and path + ": "}{text[:40]!r} is not a list of CPUs'
        ) from None


def core_of(threads: Collection[int]) -> tuple[int, ...]:
    """Return what tells a core from others: its sibling threads."""
    if len(threads) > MOST_THREADS:
        raise values.MachineError(
            f'a core cannot have {len(threads)} sibling threads')
    return tuple(sorted(threads))


def _expect_number(number: int, what: str,
                   most: int = cpu_spec.MOST_CPUS) -> None:
    if not 0 <= number < most:
        raise values.MachineError(f'{what} {number} is out of range')


def _memory(facts: Facts, nodes: list[int]) -> tuple[Mapping[int, int], bool]:
    """Return the MiB of each NUMA node, and if that is but an even part."""
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
