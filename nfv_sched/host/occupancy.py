# SPDX-License-Identifier: Apache-2.0
"""Work out what servers occupy of the NUMA cells of a host.

The figures are those that Nova's ``numa_usage_from_instance_numa`` records of
a host with these servers.  Hosts are immutable, so each function returns
another one.  :func:`give_back` undoes :func:`take` with the same shares,
whatever else was taken or given back in between.
"""

from collections.abc import Iterable
from collections.abc import Set
import itertools
import typing as ty

from nfv_sched.numa import evaluation as numa_evaluation
from nfv_sched.numa import pack
from nfv_sched.numa import topology


class UnrecordedError(Exception):
    """Nova accepts a claim, but fails to record it."""


class Share(ty.NamedTuple):
    """A server's part of a NUMA cell of its host.

    :ivar position: of the host cell among those of the host
    :ivar cpus: host CPUs that no other server may be pinned to, idle siblings
        of isolated vCPUs included
    :ivar shared: number of vCPUs on shared host CPUs
    :ivar memory: MiB
    :ivar page_size: KiB; 0 on a host cell that reports no memory pages
    """

    position: int
    cpus: frozenset[int]
    shared: int
    memory: int
    page_size: int

    @property
    def pages(self) -> int:
        """Number of memory pages."""
        # Nova puts no server on a host cell where this is a fraction.
        return self.memory * 1024 // self.page_size if self.page_size else 0


def share(
    position: int, cell: topology.GuestCell, cpus: Iterable[int],
    page_size: int | None, siblings: Iterable[Set[int]],
    page_sizes: Iterable[int],
) -> Share:
    """Return what a guest cell occupies of a host cell.

    :param position: position of the host cell
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
    return Share(position, exclusive, cell.shared, cell.memory,
                 page_size or min(page_sizes, default=0))


def claimed_share(
    host: topology.HostTopology, position: int, cell: topology.GuestCell,
    cpus: Iterable[int], page_size: int | None,
) -> Share:
    """Return what a guest cell occupies of a host; see :func:`share`."""
    host_cell = host.cells[position]
    return share(position, cell, cpus, page_size, host_cell.siblings,
                 [pages.size_kb for pages in host_cell.pages])


def claimed_shares(
    evaluation: numa_evaluation.Evaluation, claimed: numa_evaluation.Claimed,
) -> tuple[Share, ...]:
    """Return what a guest occupies after its claim.

    :param evaluation: the guest on the host
    :param claimed: the choice of the claim
    """
    guest, host = evaluation.pristine, evaluation.host
    shares = []
    for index, (cell, position, page_size, pinned) in enumerate(zip(
            guest.cells, *claimed)):
        cpus: set[int] = set()
        # Nova's search may take a guest cell for another that has been fitted
        # already. Then it has no pins.
        if cell.cpus != topology.SHARED and pinned >= 0:
            cpus = pack.pins(host.cells[pinned], cell,
                             0 if index else guest.reserved)
        shares.append(claimed_share(host, position, cell, cpus, page_size))
    return tuple(shares)


def cell_mask(shares: Iterable[Share]) -> int:
    """Return the host cells of a server, as a bitmask."""
    mask = 0
    for each in shares:
        mask |= 1 << each.position
    return mask


def take(
    host: topology.HostTopology, shares: Iterable[Share],
) -> topology.HostTopology:
    """Return a host after the claim of a server was recorded.

    :param shares: the parts of the server
    :raises UnrecordedError: if CPUs are not free, or not for pinned vCPUs, or
        a host cell has no memory pages at all
    """
    cells = list(host.cells)
    for each in shares:
        cell = cells[each.position]
        if not each.page_size or not each.cpus <= cell.free_cpus:
            raise UnrecordedError()
        cells[each.position] = cell.changed(
            free=cell.free_cpus - each.cpus if each.cpus else cell.free_cpus,
            cpu_usage=cell.cpu_usage + each.shared,
            memory_usage=cell.memory_usage + each.memory,
            pages=_without(cell.pages, each))
    return host.changed(tuple(cells))


def _without(pages: tuple[topology.Pages, ...],
             each: Share) -> tuple[topology.Pages, ...]:
    """Return memory pages without those of a share."""
    size = each.page_size
    return tuple([
        page._replace(free_kb=page.free_kb - each.pages * size)
        if page.size_kb == size else page for page in pages])


def give_back(
    host: topology.HostTopology, shares: Iterable[Share],
) -> topology.HostTopology:
    """Return a host without a server.

    Nothing is freed beyond what an empty host has, even if the record of the
    host lacks the server, or a part of it.

    :param shares: the parts of the server
    """
    cells = list(host.cells)
    for each in shares:
        cell = cells[each.position]
        cells[each.position] = cell.changed(
            free=cell.free_cpus | each.cpus & cell.dedicated_cpus,
            cpu_usage=max(0, cell.cpu_usage - each.shared),
            memory_usage=max(0, cell.memory_usage - each.memory),
            pages=tuple([
                page._replace(free_kb=min(
                    page.free_kb + each.pages * page.size_kb,
                    page.total_kb - page.reserved_kb))
                if page.size_kb == each.page_size else page
                for page in cell.pages]))
    return host.changed(tuple(cells))


def empty(host: topology.HostTopology) -> topology.HostTopology:
    """Return a host without servers."""
    return freed(host, cpus=True, shared=True, memory=True)


def freed(
    host: topology.HostTopology, *, cpus: bool = False, shared: bool = False,
    memory: bool = False,
) -> topology.HostTopology:
    """Return a host on which servers occupy nothing of some resources.

    :param cpus: free the CPUs that servers are pinned to
    :param shared: free shared vCPUs
    :param memory: free the memory, pages of all sizes included
    """
    cells = []
    for cell in host.cells:
        vacant = cell.emptied()
        cells.append(cell.changed(
            free=(vacant if cpus else cell).free_cpus,
            cpu_usage=(vacant if shared else cell).cpu_usage,
            memory_usage=(vacant if memory else cell).memory_usage,
            pages=(vacant if memory else cell).pages))
    return host.changed(tuple(cells))
