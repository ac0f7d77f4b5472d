# SPDX-License-Identifier: Apache-2.0
"""How much room for large guests a guest takes from a host.

What is free of a host NUMA node, in CPUs, is the less of its free CPUs for
pinned vCPUs and its free memory.  Its room is the square of that: a node that
is half free has a quarter of the room of an empty one.  So guests that are
placed by the least loss fill one NUMA node after the other and leave the
others whole, and a guest without huge pages goes where these have run out.

This only counts; whether a guest fits is told by :mod:`nfv_sched.numa.fit`.
"""

from collections.abc import Collection
from collections.abc import Mapping
from collections.abc import Sequence

from nfv_sched.numa import evaluation as numa_evaluation
from nfv_sched.numa import topology

# What is free of CPUs alone, or of memory alone, counts so much.
_ALONE = 0.1
# Room near free PCI devices counts so much more, so that guests without
# devices keep away from it.
_NEAR_DEVICES = 0.5
# The room of the host as a whole, beside that of its NUMA nodes, counts so
# much: for guests with several NUMA nodes.
_WHOLE_HOST = 0.6


def lost(
    host: topology.HostTopology, guest: topology.GuestTopology,
    chosen: Sequence[int], near: Collection[int | None] = (),
) -> float:
    """The room for large guests that a guest takes from a host.

    :param host: the host's NUMA nodes
    :param guest: the guest's NUMA nodes
    :param chosen: position of the host cell of each guest cell
    :param near: numbers of the host NUMA nodes with free PCI devices
    :returns: in square CPUs; less is better. Free memory counts as many CPUs
        as have so much memory on average on the host cell.
    """
    cells = [_Cell(cell, near) for cell in host.cells]
    free = left = sum([cell.free for cell in cells])
    loss, reserved = 0.0, guest.reserved
    for position, guest_cell in zip(chosen, guest.cells):
        cell = cells[position]
        lost_there, free_there = cell.taken(guest_cell, reserved)
        loss += lost_there
        left -= cell.free - free_there
        reserved = 0
    return loss + _WHOLE_HOST / len(cells) * (free * free - left * left)


def order(evaluation: numa_evaluation.Evaluation) -> tuple[int, ...]:
    """Positions of the host cells, by the room that a guest takes there.

    The first loses least; equal ones are in the order in which Nova tries
    them.  The largest of the guest cells is looked at, and not whether it
    fits.

    :param evaluation: the guest on the host
    """
    host, guest = evaluation.host, evaluation.guest
    near = nodes_with_devices(evaluation.pools)
    guest_cell = max(guest.cells, key=lambda cell: cell.dedicated)
    losses = [_Cell(cell, near).taken(guest_cell, 0)[0]
              for cell in host.cells]
    return tuple(sorted(evaluation.order, key=losses.__getitem__))


def nodes_with_devices(
    pools: Sequence[Mapping] | None,
) -> frozenset[int | None]:
    """Numbers of the host NUMA nodes with free PCI devices.

    :param pools: PCI device pools of the host
    """
    return frozenset([
        node for node, count in numa_evaluation.free_devices(pools).items()
        if count > 0])


class _Cell:
    """What is free on a host cell.

    :ivar free: the less of free CPUs and free memory, in CPUs
    """

    __slots__ = ('free', '_cell', '_threads', '_cpus', '_whole', '_free_kb',
                 '_cpus_per_kb', '_pages', '_huge', '_weight', '_room')

    def __init__(self, cell: topology.HostCell,
                 near: Collection[int | None]):
        self._cell = cell
        siblings, free = cell.siblings, cell.free_cpus
        self._threads = threads = len(siblings[0]) if siblings else 1
        self._cpus = self._whole = len(free)
        if 0 < self._cpus < cell.dedicated:
            self._whole = sum(map(free.issuperset, siblings)) * threads
        total = self._read_memory(cell)
        self._cpus_per_kb = (
            (cell.dedicated or cell.shared) / total if total > 0 else 0.0)
        self._weight = 1.0 + _NEAR_DEVICES if cell.id in near else 1.0
        self._room, self.free = self._measure(
            self._cpus, self._whole, self._free_kb)

    def _read_memory(self, cell: topology.HostCell) -> int:
        """Find the pages that count: huge ones, or all if there are none.

        :returns: KiB in all
        """
        pages = self._pages = cell.pages
        self._huge = False
        if not pages:
            self._free_kb = (cell.memory - cell.memory_usage) * 1024
            return cell.memory * 1024
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
        """The room, and how much is free: CPUs or memory, whichever is less.

        :param free: free CPUs
        :param whole: those of cores that are wholly free; the others count
            half
        :param free_kb: free memory
        """
        cpus = (free + whole) / 2
        memory = free_kb * self._cpus_per_kb
        if not self._cell.dedicated:
            cpus = memory  # no pinned guest ever fits
        elif not self._cpus_per_kb:
            memory = cpus  # there is nothing of what is counted
        least = cpus if cpus < memory else memory
        return self._weight * (least * least + _ALONE * (
            cpus * cpus + memory * memory)), least

    def taken(self, guest: topology.GuestCell,
              reserved: int) -> tuple[float, float]:
        """The room that a guest cell takes, and what is free then.

        :param guest: the guest cell
        :param reserved: further CPUs for the guest's emulator threads
        """
        free, whole, free_kb = self._cpus, self._whole, self._free_kb
        need = guest.dedicated + reserved
        if need:
            threads = self._threads
            if guest.threads == topology.THREADS_ISOLATE:
                need *= threads
            free = max(free - need, 0)
            # Nova takes whole cores first.
            whole = min(max(whole - -(-need // threads) * threads, 0), free)
        if self._takes(guest.pagesize):
            free_kb = max(free_kb - guest.memory * 1024, 0)
        room, free_then = self._measure(free, whole, free_kb)
        return self._room - room, free_then

    def _takes(self, pagesize: int | None) -> bool:
        """Whether a guest cell gets its memory from the pages that count.

        :param pagesize: page request of the guest cell
        """
        if not pagesize or pagesize == topology.PAGES_SMALL:
            return not self._huge
        if pagesize < 0 or not self._pages:
            return True
        return any(page.size_kb == pagesize for page in self._pages)
