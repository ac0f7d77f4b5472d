# SPDX-License-Identifier: Apache-2.0
"""Work out the resources that servers occupy on a host.

The figures of NUMA cells are those that Nova's
``numa_usage_from_instance_numa`` records of a host with these servers.  Hosts
are immutable, so each function returns another one.  :func:`give_back` undoes
:func:`take` with the same shares, whatever else was taken or given back in
between.  PCI devices are in :mod:`nfv_sched.fit.pci_pools`.
"""

import collections
from collections.abc import Callable, Iterable, Mapping, Set
import itertools
import typing as ty

from nfv_sched.fit.numa import evaluation as numa_evaluation
from nfv_sched.fit.numa import pack
from nfv_sched.fit.numa import topology


class UnrecordedError(Exception):
    """Nova accepts a claim, but fails to record it."""


class Share(ty.NamedTuple):
    """A server's share of a NUMA cell of its host."""

    position: int  #: position of the host cell on the host
    #: its exclusive host CPUs, idle siblings of isolated vCPUs included
    cpus: frozenset[int]
    shared: int  #: number of vCPUs on shared host CPUs
    memory: int  #: MiB
    page_size: int  #: KiB; 0 on a host cell that reports no memory pages

    @property
    def pages(self) -> int:
        # Nova puts no server on a host cell where this is a fraction.
        return self.memory * 1024 // self.page_size if self.page_size else 0


def share(position: int, cell: topology.GuestCell, cpus: Iterable[int],
          page_size: int | None, siblings: Iterable[Set[int]],
          page_sizes: Iterable[int]) -> Share:
    """Return the share of a host cell that a guest cell occupies.

    :param cpus: host CPUs of its pinned vCPUs and of its emulator threads
    :param page_size: KiB; None for pages of the smallest size
    :param siblings: CPUs of each physical core of the host cell
    :param page_sizes: sizes of memory pages of the host cell, KiB
    """
    exclusive = frozenset(cpus if cell.cpus != topology.SHARED else ())
    if exclusive and cell.threads == topology.THREADS_ISOLATE:
        # As NUMACell.pin_cpus_with_siblings does, drop the CPUs of other host
        # cells, which the limits of a claim can make Nova choose.
        exclusive = frozenset(itertools.chain(*(
            core for core in siblings if core & exclusive)))
    # A guest without a page size is recorded in the smallest pages of the cell
    # (_numa_pagesize_usage_from_cell).
    return Share(position, exclusive, cell.shared, cell.memory,
                 page_size or min(page_sizes, default=0))


def claimed_shares(guest: topology.GuestTopology, host: topology.HostTopology,
                   claimed: numa_evaluation.ClaimChoice) -> tuple[Share, ...]:
    shares = []
    for index, (cell, position, page_size, pinned) in enumerate(zip(
            guest.cells, *claimed)):
        cpus: set[int] = set()
        # A guest cell that Nova's search took for another has no pins.
        if cell.cpus != topology.SHARED and pinned >= 0:
            cpus = pack.pins(host.cells[pinned], cell,
                             0 if index else guest.reserved)
        host_cell = host.cells[position]
        shares.append(share(
            position, cell, cpus, page_size, host_cell.siblings,
            [pages.size_kb for pages in host_cell.pages]))
    return tuple(shares)


def take(host: topology.HostTopology,
         shares: Iterable[Share]) -> topology.HostTopology:
    """Return a host after the claim of a server was recorded.

    :raises UnrecordedError: if CPUs are not free, or not for pinned vCPUs, or
        a host cell has no memory pages at all
    """
    return _change_cells(host, shares, 1)


def give_back(host: topology.HostTopology,
              shares: Iterable[Share]) -> topology.HostTopology:
    """Return a host without a server.

    Nothing is freed beyond the capacity of the empty host, even if the record
    of the host lacks the server, or a part of it.
    """
    return _change_cells(host, shares, -1)


def _change_cells(host: topology.HostTopology, shares: Iterable[Share],
                  sign: int) -> topology.HostTopology:
    cells = list(host.cells)
    for each in shares:
        cell = cells[each.position]
        if sign < 0:
            free = cell.free_cpus | each.cpus & cell.dedicated_cpus
        # NUMACell.pin_cpus raises for CPUs that are pinned or unknown, and
        # _get_smallest_pagesize for a cell without pages.
        elif each.page_size and each.cpus <= cell.free_cpus:
            free = cell.free_cpus - each.cpus if each.cpus else cell.free_cpus
        else:
            raise UnrecordedError()
        size = each.page_size
        cells[each.position] = cell.changed(
            free=free, cpu_usage=max(0, cell.cpu_usage + sign * each.shared),
            memory_usage=max(0, cell.memory_usage + sign * each.memory),
            pages=tuple([
                page._replace(free_kb=min(
                    page.free_kb - sign * each.pages * size,
                    page.total_kb - page.reserved_kb))
                if page.size_kb == size else page for page in cell.pages]))
    return host.changed(tuple(cells))


def empty(host: topology.HostTopology) -> topology.HostTopology:
    return freed(host, cpus=True, shared=True, memory=True)


def freed(host: topology.HostTopology, *, cpus: bool = False,
          shared: bool = False, memory: bool = False) -> topology.HostTopology:
    """Return a host with some resources free, all pages as memory."""
    cells = []
    for cell in host.cells:
        vacant = cell.emptied()
        cells.append(cell.changed(
            free=(vacant if cpus else cell).free_cpus,
            cpu_usage=(vacant if shared else cell).cpu_usage,
            memory_usage=(vacant if memory else cell).memory_usage,
            pages=(vacant if memory else cell).pages))
    return host.changed(tuple(cells))


class Usage(ty.NamedTuple):
    cpus: frozenset[int]  #: host CPUs that no other server may be pinned to
    shared: int  #: number of vCPUs on shared host CPUs
    memory: int  #: MiB
    pages: Mapping[int, int]  #: size of pages, KiB -> number of pages


def total(shares: Iterable[Share]) -> Usage:
    """Add up shares of one NUMA cell, even if they contradict each other."""
    shares = list(shares)
    pages: collections.Counter[int] = collections.Counter()
    for each in shares:
        pages[each.page_size] += each.pages
    return Usage(
        frozenset().union(*(each.cpus for each in shares)),
        sum(each.shared for each in shares),
        sum(each.memory for each in shares), pages)


class Amounts(ty.NamedTuple):
    """Amounts that servers take of a whole host; negative to give back."""

    servers: int = 0
    memory: int = 0  #: MiB
    disk: int = 0  #: GiB
    vcpus: int = 0

    def plus(self, more: 'Amounts', times: int = 1) -> 'Amounts':
        return Amounts(*(mine + times * each
                         for mine, each in zip(self, more)))


NOTHING = Amounts()


def amounts(spec: ty.Any) -> Amounts:
    """Return what a server of a ``RequestSpec`` or ``Flavor`` occupies."""
    return Amounts(1, spec.memory_mb, spec.root_gb + spec.ephemeral_gb,
                   spec.vcpus)


def consume(host_state: ty.Any, more: Amounts) -> Callable[[], None]:
    """Change a ``HostState`` for more servers; return the undo."""
    # Like consume_from_request, but NUMA cells, PCI devices and the number of
    # servers that are being built stay as they are: servers come one by one.
    return _set_attributes(
        host_state, free_ram_mb=host_state.free_ram_mb - more.memory,
        free_disk_mb=host_state.free_disk_mb - 1024 * more.disk,
        vcpus_used=host_state.vcpus_used + more.vcpus,
        num_instances=host_state.num_instances + more.servers)


def record(node: ty.Any, more: Amounts) -> Callable[[], None]:
    """Change a ``ComputeNode``, not its cells or PCI; return the undo."""
    memory, disk = (node.memory_mb_used + more.memory,
                    node.local_gb_used + more.disk)
    return _set_attributes(
        node, memory_mb_used=memory, free_ram_mb=node.memory_mb - memory,
        local_gb_used=disk, free_disk_gb=node.local_gb - disk,
        vcpus_used=node.vcpus_used + more.vcpus,
        running_vms=node.running_vms + more.servers)


def _set_attributes(owner: ty.Any, **values: int) -> Callable[[], None]:
    before = {name: getattr(owner, name) for name in values}

    def write(figures: Mapping[str, int]) -> None:
        for name, value in figures.items():
            setattr(owner, name, value)

    write(values)
    return lambda: write(before)
