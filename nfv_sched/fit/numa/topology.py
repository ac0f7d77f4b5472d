# SPDX-License-Identifier: Apache-2.0
"""Read a host's and a guest's NUMA topology into compact, immutable views.

Nova's versioned objects are read here; the modules that decide work on these
views.  Nothing here decides.

Hosts are read for every request, and reading a field of a versioned object is
slow.  So the values are taken from its ``__dict__``
(:mod:`nfv_sched.nova.fields`); fields that are not set there are read in the
ordinary way.
"""

import dataclasses
import functools
import types
import typing as ty

from nfv_sched.base import strings
from nfv_sched.nova import fields

# Special page sizes of a guest cell (nova.virt.hardware.MEMPAGES_*).
PAGES_SMALL = -1
PAGES_LARGE = -2
PAGES_ANY = -3
_PAGES = {PAGES_SMALL: 'the smallest size', PAGES_LARGE: 'a large size',
          PAGES_ANY: 'one size'}

# Host CPUs for the vCPUs of a guest cell.
SHARED = 0
DEDICATED = 1
MIXED = 2

# CPU thread policy of a guest cell. "prefer" is Nova's default.
THREADS_PREFER = 0
THREADS_REQUIRE = 1
THREADS_ISOLATE = 2

_cell_values = fields.values_of(
    'id', 'cpuset', 'pcpuset', 'siblings', 'cpu_usage', 'memory',
    'memory_usage')
_PAGE = ('size_kb', 'total', 'used', 'reserved')
_page_values = fields.values_of(*_PAGE)
_amounts = fields.values_of(*_PAGE[1:])
_network_values = fields.values_of('physnets', 'tunneled')
_CELLS = fields.key('cells')
_MEMPAGES = fields.key('mempages')
_NETWORK = fields.key('network_metadata')
_PINNED = fields.key('pinned_cpus')
_SIZE = fields.key('size_kb')
_SOCKET = fields.key('socket')


class OddTopologyError(ValueError):
    """A NUMA topology of a host or guest that cannot be read."""


class CellPages(ty.NamedTuple):
    """Memory pages of one size on a host cell; sizes and amounts in KiB."""

    size_kb: int
    free_kb: int
    total_kb: int
    reserved_kb: int


class HostCell:
    """One NUMA cell of a host; never changed.

    Properties that few requests need are read on first use.

    :param obj: ``nova.objects.NUMACell``
    :raises OddTopologyError: if it lacks its number, CPUs or memory

    :ivar id: number of the host NUMA node
    :ivar shared_cpus: host CPUs for unpinned vCPUs
    :ivar dedicated_cpus: host CPUs for pinned vCPUs
    :ivar siblings: sets of sibling threads: the CPUs of each physical core
    :ivar cpu_usage: number of unpinned vCPUs on the cell
    :ivar memory: total memory, MiB
    :ivar memory_usage: memory of the guests on the cell, MiB
    """

    __slots__ = ('id', 'shared_cpus', 'dedicated_cpus', 'siblings',
                 'cpu_usage', 'memory', 'memory_usage', '_obj', '_free',
                 '_pages', '_state')

    # Whether pages that guests use count as used.
    _occupied = True

    def __init__(self, obj):
        self._obj = obj
        self._free = self._pages = self._state = None
        try:
            (self.id, self.shared_cpus, self.dedicated_cpus, self.siblings,
             self.cpu_usage, self.memory, self.memory_usage) = _cell_values(
                obj.__dict__)
        except KeyError:
            self._read_odd(obj)

    def _read_odd(self, obj) -> None:
        """Read a cell that lacks fields, as old releases wrote them."""
        self.id = fields.read(obj, 'id')
        self.shared_cpus = fields.read(obj, 'cpuset')
        self.memory = fields.read(obj, 'memory')
        if None in (self.id, self.shared_cpus, self.memory):
            raise OddTopologyError(
                'a NUMA node without number, CPUs or memory')
        # Without pcpuset (NUMACell before 1.4): no CPUs for pinned vCPUs.
        self.dedicated_cpus = fields.read(obj, 'pcpuset', set())
        self.siblings = fields.read(obj, 'siblings', [])
        self.cpu_usage = fields.read(obj, 'cpu_usage', 0)
        self.memory_usage = fields.read(obj, 'memory_usage', 0)

    @property
    def shared(self) -> int:
        return len(self.shared_cpus)

    @property
    def dedicated(self) -> int:
        return len(self.dedicated_cpus)

    @property
    def free_cpus(self) -> ty.AbstractSet[int]:
        """CPUs for pinned vCPUs that no vCPU is pinned to."""
        if (free := self._free) is None:
            pinned = self._obj.__dict__.get(_PINNED)
            free = self._free = (
                self.dedicated_cpus - pinned if pinned
                else self.dedicated_cpus)
        return free

    @property
    def pages(self) -> tuple[CellPages, ...]:
        """Memory pages in Nova's order; may raise OddTopologyError."""
        if (pages := self._pages) is None:
            mempages = self._obj.__dict__.get(_MEMPAGES) or ()
            pages = self._pages = tuple([
                _pages(page, self._occupied) for page in mempages])
        return pages

    def free_kb(self, size_kb: int) -> int | None:
        """Return free KiB in pages of a size; None without; may raise."""
        if self._pages is None:
            # No need to read the others.
            for page in self._obj.__dict__.get(_MEMPAGES) or ():
                values = page.__dict__
                if values.get(_SIZE) == size_kb:
                    try:
                        total, used, reserved = _amounts(values)
                    except KeyError:
                        break
                    if self._occupied:
                        total -= used
                    return (total - reserved) * size_kb
        return next((page.free_kb for page in self.pages
                     if page.size_kb == size_kb), None)

    @property
    def socket(self) -> int | None:
        """Number of the socket; None if the host does not report it."""
        return self._obj.__dict__.get(_SOCKET)

    @property
    def legacy(self) -> bool:
        """Whether pinned and unpinned vCPUs share CPUs (``vcpu_pin_set``)."""
        # Nova tells vcpu_pin_set by this as well: the sets of new options are
        # disjoint. See _pack_instance_onto_cores.
        return self.dedicated_cpus == self.shared_cpus

    @property
    def threads(self) -> int:
        """Number of threads of a physical core; the most if cores differ."""
        return max(map(len, self.siblings), default=1)

    @property
    def shared_cores(self) -> int:
        """Number of physical cores with CPUs for unpinned vCPUs."""
        shared = self.shared_cpus
        cores, counted = 0, set()
        for core in self.siblings:
            if cpus := shared & core:
                cores += 1
                counted |= cpus
        # A CPU that no set of siblings has counts as a core.
        return cores + len(shared - counted)

    @property
    def state(self) -> ty.Hashable:
        """A value that decides which guests fit the cell, one after the other.

        Cells of equal state fit the same guests.  The numbers of the cell and
        of its CPUs, its socket and its networks are not part of it.
        """
        if (state := self._state) is None:
            free, dedicated = self.free_cpus, self.dedicated_cpus
            state = self._state = (
                # Counts instead of CPU numbers: capacity counts each state of
                # a cell once, though a thousand hosts use different CPUs.
                len(free), len(dedicated), self.shared, self.legacy,
                tuple([(len(core), len(core & dedicated), len(core & free))
                       for core in self.siblings]),
                self.shared_cores, self.cpu_usage, self.memory,
                self.memory_usage, self.pages)
        return state

    def emptied(self) -> 'HostCell':
        """Return a copy of this cell as if no guest were on it."""
        cell = _EmptyCell.__new__(_EmptyCell)
        cell._obj = self._obj
        cell.id = self.id
        cell.shared_cpus = self.shared_cpus
        cell._free = cell.dedicated_cpus = self.dedicated_cpus
        cell.siblings = self.siblings
        cell.memory = self.memory
        cell.cpu_usage = cell.memory_usage = 0
        cell._pages = cell._state = None
        return cell

    def changed(self, *, free: ty.AbstractSet[int], cpu_usage: int,
                memory_usage: int, pages: tuple[CellPages, ...]) -> 'HostCell':
        """Return a copy of this cell with other guests on it."""
        cell = HostCell.__new__(HostCell)
        cell._obj = self._obj
        cell.id = self.id
        cell.shared_cpus = self.shared_cpus
        cell.dedicated_cpus = self.dedicated_cpus
        cell.siblings = self.siblings
        cell.memory = self.memory
        cell._free = free
        cell.cpu_usage = cpu_usage
        cell.memory_usage = memory_usage
        cell._pages = pages
        cell._state = None
        return cell


class _EmptyCell(HostCell):
    __slots__ = ()

    _occupied = False


class GuestCell(ty.NamedTuple):
    shared: int  #: number of vCPUs on shared host CPUs
    dedicated: int  #: number of vCPUs pinned to a host CPU each
    memory: int  #: MiB
    pagesize: int | None  #: KiB, one of ``PAGES_*``, or None
    cpus: int  #: ``SHARED``, ``DEDICATED`` or ``MIXED``
    threads: int  #: ``THREADS_*``

    @property
    def page_text(self) -> str:
        """The size of its pages, for people; empty if it requests none."""
        size = self.pagesize
        return _PAGES.get(size) or strings.size(size) if size else ''

    def number_of_pins(self, host: HostCell, reserved: int) -> int:
        """Return how many CPUs of a host cell it keeps from others.

        :param reserved: further CPUs for the guest's emulator threads
        """
        if self.cpus == SHARED:
            return 0
        # Idle siblings count as used; see occupancy.share.
        return (self.dedicated + reserved) * (
            host.threads if self.threads == THREADS_ISOLATE else 1)


class GuestTopology(ty.NamedTuple):
    cells: tuple[GuestCell, ...]  #: guest cells in Nova's order
    #: the current ``id`` of each cell; Nova's search changes it
    ids: tuple[int, ...]
    #: extra dedicated CPUs of the first guest cell for emulator threads
    reserved: int
    #: whether a cell requests "small", "large" or "any" pages, which may be of
    #: different sizes on different host cells
    any_pages: bool

    @property
    def isolates(self) -> bool:
        """Whether each pinned vCPU must have a physical core of its own."""
        return any(cell.cpus != SHARED and cell.threads == THREADS_ISOLATE
                   for cell in self.cells)

    @property
    def requires_siblings(self) -> bool:
        return any(cell.cpus != SHARED and cell.threads == THREADS_REQUIRE
                   for cell in self.cells)


_tuple = tuple.__new__  # makes a named tuple in half the time


def _pages(obj, occupied: bool) -> CellPages:
    try:
        size, total, used, reserved = _page_values(obj.__dict__)
    except KeyError:
        size, total, used, reserved = [
            fields.read(obj, name, 0) for name in _PAGE]
    if size <= 0:
        raise OddTopologyError(f'memory pages of {size} KiB')
    if not occupied:
        used = 0
    return _tuple(CellPages, (size, (total - used - reserved) * size,
                              total * size, reserved * size))


#: Of each host cell: networks and labels near it, and whether the tunnel is.
Near = tuple[tuple[frozenset[str], bool], ...]

_NO_NETWORK: tuple[frozenset[str], bool] = (frozenset(), False)


def _network(obj) -> tuple[frozenset[str], bool]:
    if obj is None:
        return _NO_NETWORK
    try:
        physnets, tunneled = _network_values(obj.__dict__)
    except KeyError:
        physnets = fields.read(obj, 'physnets', ())
        tunneled = fields.read(obj, 'tunneled', False)
    return frozenset(physnets), bool(tunneled)


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class NetworkAffinity:
    """The host cells near each network and label; compared by identity."""

    near: Near
    #: physical network or label -> bitmask of the cells near it
    labels: ty.Mapping[str, int]
    tunnel: int  #: bitmask of the cells near the tunnel endpoint


@functools.lru_cache(maxsize=1024)
def _networks(near: Near) -> NetworkAffinity:
    labels: dict[str, int] = {}
    tunnel = 0
    bit = 1
    for physnets, tunneled in near:
        for physnet in physnets:
            labels[physnet] = labels.get(physnet, 0) | bit
        if tunneled:
            tunnel |= bit
        bit <<= 1
    return NetworkAffinity(near, types.MappingProxyType(labels), tunnel)


class HostTopology:
    """The NUMA cells of a host and the networks near them; never changed.

    :ivar cells: host cells in Nova's order
    :ivar all_cells: bitmask of every cell
    """

    __slots__ = ('cells', 'all_cells', '_networks')

    def __init__(self, cells: tuple[HostCell, ...]):
        self.cells = cells
        self.all_cells = (1 << len(cells)) - 1
        self._networks: NetworkAffinity | None = None

    @property
    def networks(self) -> NetworkAffinity:
        """Networks near the cells; like hosts share one object."""
        networks = self._networks
        if networks is None:
            # One object for all hosts that declare the same, so that their
            # shapes are compared by identity.
            networks = self._networks = _networks(tuple([
                _network(cell._obj.__dict__.get(_NETWORK))
                for cell in self.cells]))
        return networks

    @property
    def labels(self) -> ty.Mapping[str, int]:
        return self.networks.labels

    @property
    def tunnel(self) -> int:
        return self.networks.tunnel

    @property
    def state(self) -> ty.Hashable:
        """A value that decides which guests fit, by :attr:`HostCell.state`."""
        return tuple([(cell.id, cell.socket, cell.state)
                      for cell in self.cells]), self.networks.near

    def changed(self, cells: tuple[HostCell, ...]) -> 'HostTopology':
        """Return this host with changed cells, in the same order."""
        host = HostTopology(cells)
        host._networks = self._networks
        return host

    def bit_of(self, node: int) -> int:
        """Return the bitmask of the cell with this NUMA node number, or 0."""
        bit = 1
        for cell in self.cells:
            if cell.id == node:
                return bit
            bit <<= 1
        return 0

    def nodes(self, mask: int) -> list[int]:
        return [cell.id for index, cell in enumerate(self.cells)
                if mask >> index & 1]


def host_topology(obj) -> HostTopology | None:
    """Read a ``NUMATopology``, if any; may raise OddTopologyError."""
    if obj is None:
        return None
    if not (cells := obj.__dict__.get(_CELLS) or fields.read(obj, 'cells')):
        return None
    return HostTopology(tuple([HostCell(cell) for cell in cells]))


CPU_POLICIES = {'dedicated': DEDICATED, 'mixed': MIXED}
THREAD_POLICIES = {'require': THREADS_REQUIRE, 'isolate': THREADS_ISOLATE}


def guest(obj) -> GuestTopology | None:
    """Read an ``InstanceNUMATopology``, if any; may raise OddTopologyError."""
    if obj is None:
        return None
    if not (cells := fields.read(obj, 'cells')):
        return None
    views, ids = [], []
    for index, cell in enumerate(cells):
        if (memory := fields.read(cell, 'memory')) is None:
            raise OddTopologyError('a guest NUMA node without memory')
        views.append(GuestCell(
            len(fields.read(cell, 'cpuset', ())),
            len(fields.read(cell, 'pcpuset', ())),
            memory,
            fields.read(cell, 'pagesize') or None,
            CPU_POLICIES.get(fields.read(cell, 'cpu_policy'), SHARED),
            THREAD_POLICIES.get(
                fields.read(cell, 'cpu_thread_policy'), THREADS_PREFER)))
        ids.append(fields.read(cell, 'id', index))
    isolated = fields.read(obj, 'emulator_threads_policy') == 'isolate'
    return GuestTopology(
        tuple(views), tuple(ids), int(isolated),
        any((view.pagesize or 0) < 0 for view in views))
