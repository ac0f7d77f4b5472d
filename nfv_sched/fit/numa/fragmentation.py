# SPDX-License-Identifier: Apache-2.0
"""Measure how much capacity for large guests a guest takes from a host.

The free amount of a host NUMA node, in CPUs, is the lesser of its free CPUs
for pinned vCPUs and its free memory.  Its capacity for large guests is the
square of that: a node that is half free has a quarter of the capacity of an
empty one.  So guests that are placed by the least loss fill one NUMA node
after the other and leave the others whole, and a guest without huge pages goes
where these have run out.  What guests with two NUMA nodes can have counts
alike: the lesser of two nodes.
"""

from collections.abc import Collection, Mapping, Sequence

from nfv_sched.fit.numa import evaluation as numa_evaluation
from nfv_sched.fit.numa import topology

# Weight of the free CPUs alone, and of the free memory alone.
_ALONE = 0.1
# Extra weight near free PCI devices, to keep guests without devices away.
_NEAR_DEVICES = 0.5
# Weight of the capacity of the host as a whole, beside that of its NUMA nodes.
_WHOLE_HOST = 0.6
# Weight of the capacity of pairs of NUMA nodes.  With more, more guests with
# two nodes fit in the end; with less, fewer hosts are used.
_PAIRS = 5.0


def lost(host: topology.HostTopology, guest: topology.GuestTopology,
         chosen: Sequence[int], near: Collection[int | None] = ()) -> float:
    """Return the capacity for large guests that a guest takes from a host.

    :param chosen: position of the host cell of each guest cell
    :param near: numbers of the host NUMA nodes with free PCI devices
    :returns: in square CPUs; less is better. Free memory is converted to CPUs
        by the ratio of CPUs to memory of its host cell.
    """
    cells = [_Cell(cell, near) for cell in host.cells]
    before = [cell.free for cell in cells]
    after = before.copy()
    loss, reserved = 0.0, guest.reserved
    for position, guest_cell in zip(chosen, guest.cells):
        lost_there, after[position] = cells[position].taken(
            guest_cell, reserved)
        loss += lost_there
        reserved = 0
    return loss + _of_several(before) - _of_several(after)


def _of_several(free: list[float]) -> float:
    """Return the capacity for guests with several NUMA nodes."""
    total = sum(free)
    # The two largest together, then the next two.
    pairs = sorted(free, reverse=True)[1::2]
    return _WHOLE_HOST / len(free) * total * total + _PAIRS * sum(
        [least * least for least in pairs])


def nodes_with_devices(
    pools: Sequence[Mapping] | None,
) -> frozenset[int | None]:
    return frozenset([
        node for node, count in numa_evaluation.free_devices(pools).items()
        if count > 0])


class _Cell:
    """The free CPUs and memory of a host cell, and its capacity.

    :ivar free: the lesser of free CPUs and free memory, in CPUs
    """

    __slots__ = ('free', '_cell', '_threads', '_cpus', '_whole', '_free_kb',
                 '_cpus_per_kb', '_pages', '_huge', '_weight', '_room')

    def __init__(self, cell: topology.HostCell, near: Collection[int | None]):
        self._cell = cell
        siblings, free = cell.siblings, cell.free_cpus
        self._threads = threads = (len(siblings[0]) if siblings else 0) or 1
        self._cpus = self._whole = len(free)
        # Where all CPUs are free, or none, so are all cores, or none.
        if 0 < self._cpus < cell.dedicated:
            self._whole = sum(map(free.issuperset, siblings)) * threads
        total = self._read_memory(cell)
        self._cpus_per_kb = (
            (cell.dedicated or cell.shared) / total if total > 0 else 0.0)
        self._weight = 1.0 + _NEAR_DEVICES if cell.id in near else 1.0
        self._room, self.free = self._measure(
            self._cpus, self._whole, self._free_kb)

    def _read_memory(self, cell: topology.HostCell) -> int:
        """Find the pages that count, huge ones or all; return their KiB."""
        pages = self._pages = cell.pages
        self._huge = False
        if not pages:
            self._free_kb = (cell.memory - cell.memory_usage) * 1024
            return cell.memory * 1024
        # Large guests have huge pages, not those of the smallest size.
        if len(pages) > 1:
            smallest = min(pages).size_kb
            huge = [page for page in pages if page.size_kb != smallest
                    and page.total_kb > page.reserved_kb]
            if huge:
                pages = self._pages = huge
                self._huge = True
        free = total = 0
        for _size, free_kb, total_kb, reserved_kb in pages:
            free += free_kb
            total += total_kb - reserved_kb
        self._free_kb = free
        return total

    def _measure(self, free: int, whole: int,
                 free_kb: int) -> tuple[float, float]:
        """Return the capacity and the free amount; see the module.

        :param whole: free CPUs of wholly free cores; the others count half
        """
        cpus = (free + whole) / 2
        memory = free_kb * self._cpus_per_kb
        if not self._cell.dedicated:
            cpus = memory  # no pinned guest ever fits
        elif not self._cpus_per_kb:
            memory = cpus  # no memory is counted on this cell
        least = cpus if cpus < memory else memory
        return self._weight * (least * least + _ALONE * (
            cpus * cpus + memory * memory)), least

    def taken(self, guest: topology.GuestCell,
              reserved: int) -> tuple[float, float]:
        """Return the capacity that a guest takes, and what is free then."""
        free, whole, free_kb = self._cpus, self._whole, self._free_kb
        if need := guest.dedicated + reserved:
            threads = self._threads
            if guest.threads == topology.THREADS_ISOLATE:
                # Nova leaves the siblings of isolated vCPUs idle.
                need *= threads
            free = max(free - need, 0)
            # Nova takes whole cores first.
            whole = min(max(whole - -(-need // threads) * threads, 0), free)
        if self._counts_pages(guest.pagesize):
            free_kb = max(free_kb - guest.memory * 1024, 0)
        room, free_then = self._measure(free, whole, free_kb)
        return self._room - room, free_then

    def _counts_pages(self, pagesize: int | None) -> bool:
        if not pagesize or pagesize == topology.PAGES_SMALL:
            return not self._huge
        if pagesize < 0 or not self._pages:
            return True
        return any(page.size_kb == pagesize for page in self._pages)
