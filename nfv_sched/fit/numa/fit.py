# SPDX-License-Identifier: Apache-2.0
"""Check whether a guest cell fits a host cell, exactly by Nova's rules.

The rules and their order are those of ``_numa_fit_instance_cell`` and
``_pack_instance_onto_cores`` in ``nova.virt.hardware``, but CPUs and pages are
only counted: no CPU is chosen and nothing is changed.  The tests compare every
answer with the installed Nova.
"""

import functools
import typing as ty

from nfv_sched.fit.numa import topology
from nfv_sched.fit.numa.topology import GuestCell
from nfv_sched.fit.numa.topology import HostCell

# Results of check(): the first rule that fails, in Nova's order.
FITS = 0
NO_PAGES = 1        # no page size of the request has enough free memory
NO_MEMORY = 2       # not enough memory
NO_DEDICATED = 3    # not enough free CPUs for pinning
NO_SHARED = 4       # fewer shared CPUs than the guest cell has shared vCPUs
NO_THREADS = 5      # the thread policy cannot be satisfied
NO_SHARED_ROOM = 6  # shared CPUs overcommitted beyond the ratio
NO_MEMORY_ROOM = 7  # memory overcommitted beyond the ratio


class Ratios(ty.NamedTuple):
    cpu: float  #: unpinned vCPUs per host CPU
    ram: float  #: memory of guests per memory of the host


@functools.lru_cache(maxsize=1024)
def ratios(cpu: float, ram: float) -> Ratios:
    """Return allocation ratios, the same object for the same values."""
    return Ratios(float(cpu), float(ram))


def page_size(host: HostCell, requested: int, memory: int) -> int:
    """Return the page size that a guest cell with a page request gets.

    :param requested: KiB, or one of ``topology.PAGES_*``
    :param memory: memory of the guest cell, MiB
    :returns: KiB; 0 if no page size of the request has enough free memory
    """
    need = memory * 1024
    if requested > 0:
        free = host.free_kb(requested)
        # NUMACell.can_fit_pagesize wants a multiple of the page size, too.
        if free is None or need > free or need % requested:
            return 0
        return requested

    for size in _sizes(host, requested):
        if page_size(host, size, memory):
            return size
    return 0


def _sizes(host: HostCell, requested: int) -> list[int]:
    """Return the page sizes of a host cell that a request allows, in KiB."""
    sizes = sorted((page.size_kb for page in host.pages), reverse=True)
    if requested == topology.PAGES_SMALL:
        return sizes[-1:]
    # Nova takes all sizes but the smallest of the host cell for large ones.
    if requested == topology.PAGES_LARGE:
        return sizes[:-1]
    return [size for size in sizes if requested in (topology.PAGES_ANY, size)]


@functools.cache
def needs_cell_memory() -> bool:
    # Loads Nova, which commands that only print help do not want.
    from nfv_sched.nova import scheduler
    return scheduler.pinned_guests_need_cell_memory()


def _counts_used(cell: GuestCell) -> bool:
    """Return whether used pages do not matter to a cell that requests none."""
    # Small pages may be overcommitted, but not by pinned guests. For these
    # Nova 29 compares the memory of the cell, as check() does (bug 1811886).
    return cell.cpus == topology.SHARED or needs_cell_memory()


def _memory_fits(host: HostCell, cell: GuestCell) -> bool:
    """Return whether the memory of a guest cell without page request fits.

    Where memory may be overcommitted, a single guest cell still never exceeds
    the host cell.
    """
    need = cell.memory
    if pages := host.pages:
        smallest = min(pages)  # by size, the first field
        for page in pages:
            if page.size_kb == smallest.size_kb:
                smallest = page  # Nova takes the first of equal sizes
                break
        have = smallest.total_kb if _counts_used(cell) else smallest.free_kb
        return need * 1024 <= have and need * 1024 % smallest.size_kb == 0
    if _counts_used(cell):
        return need <= host.memory
    return need <= host.memory - host.memory_usage


def _threads_fit(host: HostCell, cell: GuestCell, reserved: int,
                 free: ty.AbstractSet[int]) -> bool:
    siblings = host.siblings
    # Nova's max() over no cores raises ValueError here.
    if not siblings:
        return False
    need = cell.dedicated
    # _get_reserved finds no CPU if no vCPU of the cell is pinned.
    if reserved and not need:
        return False

    # Nova falls back to single CPUs, so only their number counts.
    if cell.threads == topology.THREADS_PREFER:
        need += reserved
        for core in siblings:
            need -= len(core & free)
            if need <= 0:
                return True
        return need <= 0

    per_core = max(map(len, siblings)) or 1
    sizes = [len(core & free) for core in siblings]
    if cell.threads == topology.THREADS_REQUIRE:
        # The CPU for emulator threads may be any that is left.
        if per_core <= 1 or sum(sizes) < need + reserved:
            return False
        # _get_pinning uses the same number of threads of each core, and
        # "require" is not content with one.
        for threads in range(max(sizes), 1, -1):
            cores = sum([size >= threads for size in sizes])
            if threads * cores >= need:
                return True
        return False

    # isolate: one thread of each core, which must be wholly free. Hosts with
    # sibling threads and cpu_dedicated_set cannot keep the other threads idle
    # (bug 1889633).
    whole = sizes.count(per_core)
    if not whole or not need or (per_core != 1 and not host.legacy):
        return False
    if whole < need:
        return False
    # The emulator threads get a core of their own, which may be partly free.
    return not reserved or len(sizes) - sizes.count(0) > need


def check(host: HostCell, cell: GuestCell, pagesize: int | None, reserved: int,
          ratios: Ratios) -> int:
    """Check whether a guest cell fits a host cell.

    :param pagesize: page request of the guest cell as it is now, KiB or one of
        ``topology.PAGES_*``; Nova's search narrows a request such as "large"
        to the size that it finds first
    :param reserved: further CPUs for the guest's emulator threads
    :returns: ``FITS``, or the ``NO_*`` of the first rule that fails
    """
    if pagesize:
        if not page_size(host, pagesize, cell.memory):
            return NO_PAGES
    elif not _memory_fits(host, cell):
        return NO_MEMORY

    cpus = cell.cpus
    if cpus != topology.SHARED:
        need = cell.dedicated + reserved
        if need > len(host.dedicated_cpus):
            return NO_DEDICATED
        if cpus == topology.MIXED and cell.shared > host.shared:
            return NO_SHARED
        free = host.free_cpus
        if need > len(free):
            return NO_DEDICATED
        # Bug 1811886: pages of all sizes count, also with huge pages.
        if (cell.memory > host.memory - host.memory_usage
                and needs_cell_memory()):
            return NO_MEMORY
        if not _threads_fit(host, cell, reserved, free):
            return NO_THREADS
        # Nova compares the ratios for guest cells with shared vCPUs only.
        if cpus == topology.DEDICATED:
            return FITS
    elif cell.shared > host.shared:
        return NO_SHARED
    if host.cpu_usage + cell.shared > host.shared * ratios.cpu:
        return NO_SHARED_ROOM
    if host.memory_usage + cell.memory > host.memory * ratios.ram:
        return NO_MEMORY_ROOM
    return FITS


def shortage(host: HostCell, cell: GuestCell, reserved: int,
             ratios: Ratios) -> tuple[int, int, int]:
    """Return the shortage of a host cell for a guest cell.

    :returns: (``NO_*`` of the rule that fails, amount needed, amount free), in
        CPUs for the CPU rules and MiB for the memory rules; (``FITS``, 0, 0)
        if it fits
    """
    code = check(host, cell, cell.pagesize, reserved, ratios)
    need, have = 0, 0
    if code in (NO_PAGES, NO_MEMORY):
        need, have = cell.memory, memory_free(host, cell)
    elif code == NO_DEDICATED:
        need, have = cell.dedicated + reserved, len(host.free_cpus)
    elif code == NO_SHARED:
        need, have = cell.shared, host.shared
    elif code == NO_THREADS:
        need, have = cell.dedicated + reserved, _threads_free(host, cell)
        if cell.threads == topology.THREADS_ISOLATE and have >= need:
            have = need - 1
    elif code == NO_SHARED_ROOM:
        need = cell.shared
        have = int(host.shared * ratios.cpu) - host.cpu_usage
    elif code == NO_MEMORY_ROOM:
        need = cell.memory
        have = int(host.memory * ratios.ram) - host.memory_usage
    return code, need, max(have, 0)


def has_pages(host: HostCell, cell: GuestCell) -> bool:
    """Return whether a host cell has, if empty, any pages of suitable size."""
    return not cell.pagesize or any(
        page.total_kb and cell.memory * 1024 % page.size_kb == 0
        for page in host.pages
        if page.size_kb in _sizes(host, cell.pagesize))


def memory_free(host: HostCell, cell: GuestCell) -> int:
    """Return the memory that a guest cell could get on a host cell, in MiB.

    Pages count only if the guest cell's memory is a multiple of their size.
    """
    need = cell.memory * 1024
    pages = host.pages
    unused = host.memory - host.memory_usage
    if not pages:
        return host.memory if cell.cpus == topology.SHARED else unused
    sizes = _sizes(host, cell.pagesize or topology.PAGES_SMALL)
    total = not cell.pagesize and _counts_used(cell)
    free = [page.total_kb if total else page.free_kb for page in pages
            if need % page.size_kb == 0 and page.size_kb in sizes]
    most = max(free, default=0) // 1024
    if cell.cpus != topology.SHARED and needs_cell_memory():
        return min(most, unused)
    return most


def _threads_free(host: HostCell, cell: GuestCell) -> int:
    sizes = [len(core & host.free_cpus) for core in host.siblings]
    most = max(map(len, host.siblings), default=0)
    if cell.threads == topology.THREADS_REQUIRE:
        return max((threads * sum(size >= threads for size in sizes)
                    for threads in range(2, max(sizes, default=0) + 1)),
                   default=0)
    if cell.threads == topology.THREADS_ISOLATE:
        # Bug 1889633; see _threads_fit.
        if most > 1 and not host.legacy:
            return 0
        return sizes.count(most) if most else 0
    return sum(sizes)
