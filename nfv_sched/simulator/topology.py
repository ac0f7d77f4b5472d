#    Licensed under the Apache License, Version 2.0 (the "License"); you may
#    not use this file except in compliance with the License. You may obtain
#    a copy of the License at
#
#         http://www.apache.org/licenses/LICENSE-2.0
#
#    Unless required by applicable law or agreed to in writing, software
#    distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
#    WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
#    License for the specific language governing permissions and limitations
#    under the License.

"""From the dimensions of a host to its CPU sets and NUMA nodes.

Physical cores are numbered over the whole host, node 0 first.  With *split*
siblings, as Linux usually numbers them, the threads of core ``c`` are CPUs
``c``, ``c + cores``, ...; with *adjacent* siblings they follow each other.

On every node the first cores go to the platform (node 0 only), the next to
the virtual switch (its nodes only), the next to guests with shared CPUs, the
rest to guests with dedicated CPUs.  Nothing here knows Nova.
"""

import dataclasses
import typing as ty

from nfv_sched.simulator import model

SMALL_PAGE_KIB = 4


class LayoutError(ValueError):
    """Dimensions that contradict each other.

    :ivar field: the key of the host they are about
    """

    def __init__(self, field: str, message: str):
        super().__init__(message)
        self.field = field


@dataclasses.dataclass(frozen=True, slots=True)
class Dimensions:
    """A host as its owner describes it; one entry a NUMA node where plural.

    :ivar cores: physical cores
    :ivar threads: hardware threads a core
    :ivar adjacent: whether sibling threads have adjacent numbers
    :ivar memory_mib: memory in MiB
    :ivar pages: huge pages: KiB to number
    :ivar reserved_pages: pages guests may not use: KiB to number
    :ivar nodes_per_socket: NUMA nodes a socket
    :ivar platform_cores: cores of node 0 for the host itself
    :ivar vswitch_cores: cores for the virtual switch
    :ivar shared_cores: cores for guests with shared CPUs
    :ivar dedicated_cpus: explicit CPU set; with it, or the next, the three
        above do not count
    :ivar shared_cpus: explicit CPU set
    :ivar legacy_pinning: all guest CPUs are both shared and dedicated
    :ivar physnets: physical networks and labels
    :ivar tunnel_nodes: nodes near which tunnelled networks are
    """

    cores: tuple[int, ...]
    threads: int
    adjacent: bool
    memory_mib: tuple[int, ...]
    pages: tuple[ty.Mapping[int, int], ...]
    reserved_pages: tuple[ty.Mapping[int, int], ...]
    nodes_per_socket: int
    platform_cores: int
    vswitch_cores: tuple[int, ...]
    shared_cores: tuple[int, ...]
    dedicated_cpus: frozenset[int] | None
    shared_cpus: frozenset[int] | None
    legacy_pinning: bool
    physnets: tuple[frozenset[str], ...]
    tunnel_nodes: frozenset[int]


def core_cpus(core: int, cores: int, threads: int,
              adjacent: bool) -> tuple[int, ...]:
    """The logical CPUs of a physical core.

    :param core: number of the core on the host
    :param cores: physical cores of the host
    :param threads: hardware threads a core
    :param adjacent: whether sibling threads have adjacent numbers
    """
    if adjacent:
        return tuple(range(core * threads, (core + 1) * threads))
    return tuple(core + thread * cores for thread in range(threads))


def _explicit(dims: Dimensions, node_cpus: ty.Sequence[frozenset[int]]):
    everything = frozenset().union(*node_cpus)
    dedicated = dims.dedicated_cpus or frozenset()
    shared = dims.shared_cpus or frozenset()
    for field, cpus in (('dedicated_cpus', dedicated),
                        ('shared_cpus', shared)):
        outside = sorted(cpus - everything)
        if outside:
            raise LayoutError(field, f'CPU {outside[0]} is not on the host, '
                                     f'which has CPUs 0-{max(everything)}')
    if dims.legacy_pinning:
        dedicated = shared = dedicated | shared
    elif dedicated & shared:
        raise LayoutError(
            'shared_cpus', f'CPU {min(dedicated & shared)} is dedicated as '
                           'well; only legacy_pinning allows that')
    return [(shared & cpus, dedicated & cpus) for cpus in node_cpus]


def _dimensioned(dims: Dimensions,
                 node_cores: ty.Sequence[ty.Sequence[tuple[int, ...]]]):
    sets = []
    for node, cores in enumerate(node_cores):
        platform = dims.platform_cores if node == 0 else 0
        switch, shared = dims.vswitch_cores[node], dims.shared_cores[node]
        wanted = platform + switch + shared
        if wanted > len(cores):
            raise LayoutError(
                'cores', f'NUMA node {node} has {len(cores)} cores, but '
                         f'{platform} for the platform, {switch} for the '
                         f'virtual switch and {shared} shared ones are '
                         f'{wanted}')
        first = platform + switch
        shared_set = frozenset(
            cpu for core in cores[first:first + shared] for cpu in core)
        dedicated_set = frozenset(
            cpu for core in cores[first + shared:] for cpu in core)
        if dims.legacy_pinning:
            shared_set = dedicated_set = shared_set | dedicated_set
        sets.append((shared_set, dedicated_set))
    return sets


def _node_pages(dims: Dimensions, node: int) -> tuple[model.PageSpec, ...]:
    memory_kib = dims.memory_mib[node] * 1024
    left = memory_kib - sum(
        size * total for size, total in dims.pages[node].items())
    if left < 0:
        raise LayoutError(
            'pages', f'the pages of NUMA node {node} take '
                     f'{(memory_kib - left) // 1024} MiB, but it has '
                     f'{dims.memory_mib[node]} MiB')
    totals = {SMALL_PAGE_KIB: left // SMALL_PAGE_KIB, **dims.pages[node]}
    reserved = dims.reserved_pages[node]
    for size, count in reserved.items():
        if count > totals.get(size, 0):
            raise LayoutError(
                'reserved_pages', f'{count} pages of {size} KiB are reserved '
                                  f'on NUMA node {node}, which has '
                                  f'{totals.get(size, 0)}')
    return tuple(model.PageSpec(size, total, reserved.get(size, 0))
                 for size, total in sorted(totals.items()))


def build(dims: Dimensions) -> tuple[model.NodeLayout, ...]:
    """Lay a host out.

    :param dims: its dimensions
    :returns: its NUMA nodes
    :raises LayoutError: if the dimensions contradict each other
    """
    total = sum(dims.cores)
    node_cores, first = [], 0
    for count in dims.cores:
        node_cores.append([
            core_cpus(core, total, dims.threads, dims.adjacent)
            for core in range(first, first + count)])
        first += count
    node_cpus = [frozenset(cpu for core in cores for cpu in core)
                 for cores in node_cores]
    if dims.dedicated_cpus is None and dims.shared_cpus is None:
        sets = _dimensioned(dims, node_cores)
    else:
        sets = _explicit(dims, node_cpus)
    if not any(shared or dedicated for shared, dedicated in sets):
        raise LayoutError('cores', 'no CPU is left for guests')
    return tuple(
        model.NodeLayout(
            id=node,
            socket=node // dims.nodes_per_socket,
            cpus=node_cpus[node],
            shared=sets[node][0],
            dedicated=sets[node][1],
            siblings=tuple(frozenset(core) for core in node_cores[node]),
            memory_mib=dims.memory_mib[node],
            pages=_node_pages(dims, node),
            physnets=dims.physnets[node],
            tunneled=node in dims.tunnel_nodes)
        for node in range(len(dims.cores)))
