# SPDX-License-Identifier: Apache-2.0

"""Calculate the CPU sets and NUMA nodes of a host from its dimensions.

Physical cores are numbered over the whole host, node 0 first.  With *split*
siblings, as Linux usually numbers them, the threads of core ``c`` are CPUs
``c``, ``c + cores``, ...; with *adjacent* siblings they have consecutive
numbers.

On each node the first cores are for the platform (node 0 only), the next for
the virtual switch (on its nodes only), the next for shared vCPUs, and the rest
for pinned vCPUs.  Nothing here knows Nova.
"""

import typing as ty

from nfv_sched.base import cpu_spec
from nfv_sched.ops.cloud.cloud_file import model
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.cloud import values


class LayoutError(ValueError):
    """Dimensions that contradict each other, in the key ``field``."""

    def __init__(self, field: str, message: str):
        super().__init__(message)
        self.field = field


def core_cpus(core: int, cores: int, threads: int,
              adjacent: bool) -> tuple[int, ...]:
    if adjacent:
        return tuple(range(core * threads, (core + 1) * threads))
    return tuple(core + thread * cores for thread in range(threads))


def _explicit_sets(
    host: model.HostGroup, node_cpus: ty.Sequence[frozenset[int]],
):
    everything = frozenset().union(*node_cpus)
    dedicated = host.dedicated_cpus or frozenset()
    shared = host.shared_cpus or frozenset()
    for field, cpus in (('dedicated_cpus', dedicated),
                        ('shared_cpus', shared)):
        outside = sorted(cpus - everything)
        if outside:
            raise LayoutError(field, f'CPU {outside[0]} is not on the host, '
                                     f'which has CPUs 0-{max(everything)}')
    if host.legacy_pinning:
        dedicated = shared = dedicated | shared
    elif dedicated & shared:
        raise LayoutError(
            'shared_cpus', f'CPU {min(dedicated & shared)} is dedicated as '
                           'well; only legacy_pinning allows that')
    return [(shared & cpus, dedicated & cpus) for cpus in node_cpus]


def _sets_by_size(host: model.HostGroup,
                  node_cores: ty.Sequence[ty.Sequence[tuple[int, ...]]]):
    sets = []
    for node, cores in enumerate(node_cores):
        platform = host.platform_cores if node == 0 else 0
        switch = host.vswitch_cores[node]
        shared = host.shared_cores_per_node[node]
        needed = platform + switch + shared
        if not cores:  # memory alone
            sets.append((frozenset(), frozenset()))
            continue
        if needed > len(cores):
            raise LayoutError(
                'cores', f'NUMA node {node} has {len(cores)} cores, but '
                         f'{platform} for the platform, {switch} for the '
                         f'virtual switch and {shared} shared ones are '
                         f'{needed}')
        first = platform + switch
        shared_set = frozenset(
            cpu for core in cores[first:first + shared] for cpu in core)
        dedicated_set = frozenset(
            cpu for core in cores[first + shared:] for cpu in core)
        if host.legacy_pinning:
            shared_set = dedicated_set = shared_set | dedicated_set
        sets.append((shared_set, dedicated_set))
    return sets


def _node_pages(host: model.HostGroup,
                node: int) -> tuple[snapshot.Pages, ...]:
    memory_kib = host.memory[node] * 1024
    remaining_kib = memory_kib - sum(
        size * total for size, total in host.pages[node].items())
    if remaining_kib < 0:
        raise LayoutError(
            'pages', f'the pages of NUMA node {node} take '
                     f'{(memory_kib - remaining_kib) // 1024} MiB, but it has '
                     f'{host.memory[node]} MiB')
    totals = {values.SMALL_PAGE_KIB: remaining_kib // values.SMALL_PAGE_KIB,
              **host.pages[node]}
    reserved = host.reserved_pages[node]
    for size, count in reserved.items():
        if count > totals.get(size, 0):
            raise LayoutError(
                'reserved_pages', f'{count} pages of {size} KiB are reserved '
                                  f'on NUMA node {node}, which has '
                                  f'{totals.get(size, 0)}')
    return tuple(snapshot.Pages(
        size=size, total=total, reserved=reserved.get(size, 0))
        for size, total in sorted(totals.items()))


def _siblings(cores: ty.Iterable[tuple[int, ...]],
              cpus: frozenset[int]) -> tuple[frozenset[int], ...]:
    """Return the guest CPUs of each core; empty if no core has several."""
    siblings = tuple([core for each in cores if (core := cpus & set(each))])
    return siblings if any(len(core) > 1 for core in siblings) else ()


def build(host: model.HostGroup, physnets: ty.Sequence[ty.Iterable[str]]
          ) -> tuple[snapshot.Node, ...]:
    """Return the NUMA nodes of a host.

    :param host: with a tuple for each key that has a value per NUMA node
    :param physnets: physical networks and labels of each NUMA node
    :raises LayoutError: if the dimensions contradict each other
    """
    total = sum(host.cores)
    for key in ('cores', 'memory'):
        if not any(getattr(host, key)):
            raise LayoutError(key, 'no NUMA node has any')
    if total * host.threads >= cpu_spec.MOST_CPUS:
        raise LayoutError(
            'cores', f'the host would have {total * host.threads} CPUs; no '
                     f'host has more than {cpu_spec.MOST_CPUS - 1}')
    node_cores, first = [], 0
    for count in host.cores:
        node_cores.append([
            core_cpus(core, total, host.threads,
                      host.siblings == 'adjacent')
            for core in range(first, first + count)])
        first += count
    node_cpus = [frozenset(cpu for core in cores for cpu in core)
                 for cores in node_cores]
    if host.dedicated_cpus is None and host.shared_cpus is None:
        sets = _sets_by_size(host, node_cores)
    else:
        sets = _explicit_sets(host, node_cpus)
    if not any(shared or dedicated for shared, dedicated in sets):
        raise LayoutError('cores', 'no CPU is left for servers')
    cpus = [shared | dedicated for shared, dedicated in sets]
    return tuple(
        snapshot.Node(
            number=node,
            socket=node // host.nodes_per_socket,
            shared=sets[node][0],
            dedicated=sets[node][1],
            siblings=_siblings(node_cores[node], cpus[node]),
            memory=host.memory[node],
            pages=_node_pages(host, node),
            physnets=frozenset(physnets[node]),
            tunneled=node in host.tunnel_nodes)
        for node in range(len(host.cores)))
