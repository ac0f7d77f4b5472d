# SPDX-License-Identifier: Apache-2.0
"""Evaluate where the cells of one guest fit on one host.

An evaluation is made once per host and request.  It follows Nova's own rules
about CPUs, memory and pages, and predicts which host cells Nova would choose.
Networks and PCI devices are arguments of its methods, and it knows no policy
of nfv-sched.
"""

from collections.abc import Mapping, Sequence
import functools
import math
import typing as ty

from nfv_sched.fit.numa import candidates
from nfv_sched.fit.numa.candidates import Condition
from nfv_sched.fit.numa import fit
from nfv_sched.fit.numa import topology
from nfv_sched.fit.numa.topology import GuestTopology
from nfv_sched.fit.numa.topology import HostTopology
from nfv_sched.fit.numa import walk

# Permutations of host cells that the claim may try without labels. Each takes
# Nova ten microseconds or more.
MAX_CLAIM_TRIES = 5_000_000
# The same with labels, which Nova tests only on whole permutations.
MAX_STEERED_TRIES = walk.MAX_STEPS


class CellSorting(ty.NamedTuple):
    """The rules by which Nova sorts host cells before it tries them."""

    #: the most used cells come first, by ``[compute]
    #: packing_host_numa_cells_allocation_strategy``
    packing: bool = False
    #: a claim keeps a guest that requests no PCI devices away from cells with
    #: free ones, as the scheduler does
    devices_in_claims: bool = True


class ClaimChoice(ty.NamedTuple):
    cells: tuple[int, ...]  #: position of the host cell of each guest cell
    #: page size of each guest cell, KiB; None if it has no page request
    pagesizes: tuple[int | None, ...]
    #: position of the host cell whose CPUs each guest cell is pinned to; it
    #: may differ, or be -1 for none: see
    #: :class:`nfv_sched.fit.numa.walk.Traces`
    pinned: tuple[int, ...]


class Evaluation:
    """A guest on a host, and the host cells that its cells fit.

    :param pools: free PCI devices of the host; only the order in which Nova
        tries the host cells depends on them
    :param pristine: the guest as the claim on the compute node reads it, if
        Nova has changed ``guest`` since
    """

    __slots__ = ('host', 'guest', 'pristine', 'ratios', 'pools',
                 'pci_requested', 'sorting', 'masks', '_codes', '_uniform',
                 '_static', '_order')

    def __init__(self, host: HostTopology, guest: GuestTopology,
                 ratios: fit.Ratios, pools: Sequence[Mapping] | None = None,
                 pci_requested: bool = False,
                 sorting: CellSorting = CellSorting(),
                 pristine: GuestTopology | None = None):
        self.host = host
        self.guest = guest
        self.pristine = guest if pristine is None else pristine
        self.ratios = ratios
        self.pools = pools
        self.pci_requested = pci_requested
        self.sorting = sorting
        self._codes: dict | None = None
        self._uniform: bool | None = None
        self._static: tuple[int, ...] | None = None
        self._order: list[int] | None = None
        #: Host cells that each guest cell fits, as bitmasks.
        self.masks = self._fitting_masks(host.cells)

    def _fitting_masks(self,
                       cells: Sequence[topology.HostCell]) -> tuple[int, ...]:
        guest_cells = self.guest.cells
        reserved = self.guest.reserved
        if len(guest_cells) == 1:
            return (self._mask(cells, guest_cells[0], reserved),)
        masks = []
        last, mask = None, 0
        for cell in guest_cells:
            # Guest cells mostly follow like ones, and share their mask. The
            # first may need a CPU more, for emulator threads.
            if cell != last or reserved:
                mask = self._mask(cells, cell, reserved)
                last = None if reserved else cell
                reserved = 0
            masks.append(mask)
        return tuple(masks)

    def _mask(self, cells: Sequence[topology.HostCell],
              cell: topology.GuestCell, reserved: int) -> int:
        check, ratios, pagesize = fit.check, self.ratios, cell.pagesize
        mask, bit = 0, 1
        for host_cell in cells:
            if not check(host_cell, cell, pagesize, reserved, ratios):
                mask |= bit
            bit <<= 1
        return mask

    @property
    def static_masks(self) -> tuple[int, ...]:
        """Bitmasks of the host cells that a claim could give each guest cell.

        They hold for a host without other guests.  They may include host cells
        that the guest cell does not fit: Nova may narrow a request for "large"
        pages to a size that another host cell has, and may take unlike guest
        cells for each other (see :mod:`nfv_sched.fit.numa.walk`).
        """
        if self._static is None:
            cells = self._empty_cells()
            masks = list(self._fitting_masks(cells))
            # The claim reads what Nova has not narrowed yet.
            if self.pristine.any_pages:
                sizes = {page.size_kb for cell in cells for page in cell.pages}
                for index, cell in enumerate(self.pristine.cells):
                    # numa_fit_instance_to_host reserves the CPU of emulator
                    # threads with guest cell 0 only.
                    reserved = 0 if index else self.guest.reserved
                    for size in sizes if cell.pagesize else ():
                        masks[index] |= self._mask(
                            cells, cell._replace(pagesize=size), reserved)
            # Nova caches a fit by the ids of host cell and guest cell. Once
            # two guest cells have the same id, one gets what the other fitted.
            if not self.interchangeable:
                union = 0
                for mask in masks:
                    union |= mask
                masks = [union] * len(masks)
            self._static = tuple(masks)
        return self._static

    @property
    def static_fits(self) -> tuple[int, ...]:
        """Host cells that each guest cell would fit if empty, as bitmasks."""
        return self._fitting_masks(self._empty_cells())

    def _empty_cells(self) -> Sequence[topology.HostCell]:
        """Return host cells without guests, but as they are if all fit now."""
        fit_all = -1
        for mask in self.masks:
            fit_all &= mask
        if self.pristine.any_pages:
            fit_all = 0  # with pages of another size they may not
        return [cell if fit_all >> index & 1 else cell.emptied()
                for index, cell in enumerate(self.host.cells)]

    @property
    def too_few_cells(self) -> bool:
        return len(self.host.cells) < len(self.guest.cells)

    @property
    def uniform(self) -> bool:
        """Whether Nova's answer is independent of the course of its search.

        It is if all guest cells fit the same host cells, and a page request
        leads to the same page size on all host cells.
        """
        if self._uniform is None:
            masks, guest = self.masks, self.guest
            self._uniform = (
                masks.count(masks[0]) == len(masks) and
                (not guest.any_pages or
                 all(self._one_page_size(cell) for cell in guest.cells)))
        return self._uniform

    def _one_page_size(self, cell: topology.GuestCell) -> bool:
        if not cell.pagesize:
            return True
        sizes = [fit.page_size(host_cell, cell.pagesize, cell.memory)
                 for host_cell in self.host.cells]
        if not (distinct_sizes := set(sizes) - {0}):
            return True
        if len(distinct_sizes) > 1:
            return False
        # The search narrows the request to this size at the first host cell
        # that has it, and asks the other host cells for this size only. They
        # must not answer otherwise then.
        size = distinct_sizes.pop()
        return all(
            fit.page_size(host_cell, size, cell.memory) == first
            for host_cell, first in zip(self.host.cells, sizes))

    @property
    def interchangeable(self) -> bool:
        cells = self.guest.cells
        return not self.guest.reserved and cells.count(cells[0]) == len(cells)

    @property
    def order(self) -> list[int]:
        """Positions of the host cells, in the order of a claim's search."""
        if self._order is None:
            self._order = self._sorted_cells(
                self.pci_requested or self.sorting.devices_in_claims)
        return self._order

    def _sorted_cells(self, by_devices: bool) -> list[int]:
        cells = self.host.cells
        order = list(range(len(cells)))
        # Nova does not sort where the guest takes all host cells.
        if len(cells) <= len(self.guest.cells):
            return order
        # Nova sorts by memory, then by CPUs, then by devices: the last counts
        # most. The signs turn its descending sorts into ascending ones.
        sign = 1 if self.sorting.packing else -1
        # Like Nova: all guest cells have the same policy.
        shared = self.guest.cells[0].cpus == topology.SHARED
        free = free_devices(self.pools) if by_devices else {}
        # Without PCI requests Nova fills the cells without devices first.
        near = -1 if self.pci_requested else 1
        keys = [
            (near * free.get(cell.id, 0),
             -sign * cell.cpu_usage if shared else sign * len(cell.free_cpus),
             sign * (cell.memory - cell.memory_usage))
            for cell in cells]
        # One stable sort by all three. Nova sorts three times, and
        # reverse=True, too, leaves equal cells in their order.
        order.sort(key=keys.__getitem__)
        return order

    def _fits(self, guest_cell: int, host_cell: int,
              pagesize: int | None) -> tuple[bool, int, bool]:
        """Return the answer of ``walk.Fits`` to one step of the search."""
        if self._codes is None:
            self._codes = {}
        key = (guest_cell, host_cell, pagesize)
        if (answer := self._codes.get(key)) is None:
            cell = self.guest.cells[guest_cell]
            host = self.host.cells[host_cell]
            reserved = 0 if guest_cell else self.guest.reserved
            code = fit.check(host, cell, pagesize, reserved, self.ratios)
            # Nova narrows the page request of the guest cell before it looks
            # at CPUs, and leaves it so if these do not fit.
            page_size = 0
            if pagesize and code != fit.NO_PAGES:
                page_size = fit.page_size(host, pagesize, cell.memory)
            # _pack_instance_onto_cores sets the id of a pinned guest cell. For
            # mixed CPUs the allocation ratios are compared only after that.
            renumbered = code == fit.FITS or (
                cell.cpus == topology.MIXED and
                code in (fit.NO_SHARED_ROOM, fit.NO_MEMORY_ROOM))
            answer = self._codes[key] = (
                code == fit.FITS, page_size, renumbered)
        return answer

    def request_traces(self) -> walk.Traces:
        """Return the guest cells as the scheduler's request has them now."""
        return walk.Traces(
            self.guest.ids, [cell.pagesize for cell in self.guest.cells])

    def claim_traces(self) -> walk.Traces:
        """Return the guest cells as the claim on the host reads them."""
        return walk.Traces(
            self.pristine.ids,
            [cell.pagesize for cell in self.pristine.cells])

    def _search(self, groups: Sequence[int], condition: Condition | None,
                traces: walk.Traces,
                order: Sequence[int]) -> tuple[int, ...] | None:
        def met(chosen: int) -> bool:
            return (all(chosen & group for group in groups) and
                    (condition is None or condition.test(chosen)))

        return walk.search(
            [cell.id for cell in self.host.cells], order, traces,
            self._fits, met)

    def choose(self, groups: Sequence[int] = (),
               condition: Condition | None = None) -> tuple[int, ...] | None:
        """Return the host cells that Nova would choose.

        :param groups: bitmasks of host cells; one of each must be chosen
        :returns: position of the host cell of each guest cell; None if Nova
            does not accept the host
        """
        if self.too_few_cells:
            return None
        if not self.uniform:
            try:
                return self._search(
                    groups, condition, self.claim_traces(), self.order)
            # The search is too long to follow. This is Nova's choice unless a
            # guest cell gets what another has fitted.
            except walk.Undecided:
                pass
        try:
            return candidates.first(self.masks, self.order, groups, condition)
        except candidates.TooManySets:
            return self._found_soon(
                groups, condition, None, self.order) if self.uniform else None

    def accepted(self, groups: Sequence[int] = (),
                 condition: Condition | None = None,
                 traces: walk.Traces | None = None) -> bool:
        """Return whether Nova accepts the host; faster than ``choose``.

        :param traces: state of the guest cells before the search, changed; by
            default as the claim reads them
        """
        if self.too_few_cells:
            return False
        if self.uniform:
            try:
                return candidates.satisfiable(self.masks, groups, condition)
            except candidates.TooManySets:
                return self._found_soon(
                    groups, condition, traces,
                    self._filter_order()) is not None
        try:
            return self._search(
                groups, condition, traces or self.claim_traces(),
                self._filter_order()) is not None
        except walk.Undecided:
            pass
        try:
            return candidates.satisfiable(self.masks, groups, condition)
        except candidates.TooManySets:
            return False

    def _filter_order(self) -> list[int]:
        # NOTE: By free devices in every release; only claims differ.
        return self.order if (
            self.pci_requested or self.sorting.devices_in_claims
        ) else self._sorted_cells(True)

    def _found_soon(self, groups: Sequence[int], condition: Condition | None,
                    traces: walk.Traces | None,
                    order: Sequence[int]) -> tuple[int, ...] | None:
        """Return the choice of Nova's search if it ends early; else None."""
        # Else there may be no choice at all, and Nova might search for hours.
        try:
            return self._search(
                groups, condition, traces or self.claim_traces(), order)
        except walk.Undecided:
            return None

    def choose_steered(
        self, groups: Sequence[int],
        condition: Condition | None = None,
    ) -> tuple[int, ...] | None:
        """Return the host cells that the claim chooses under labels.

        Labels make Nova discard whole permutations, which it otherwise rarely
        does.  It may then search for long, or reuse an earlier fit without the
        pins that belong to it, so that the claim cannot be recorded.

        :returns: position of the host cell of each guest cell; None if the
            claim fails, cannot be recorded or would take too long
        :raises walk.Undecided: if there are too many permutations to tell
        """
        if self.too_few_cells:
            return None
        # A single guest cell, or one that no host cell fits, needs no search
        # to follow. Nova tests networks on whole permutations only, so it goes
        # through all that precede the choice.
        if self.uniform:
            try:
                chosen = candidates.first(
                    self.masks, self.order, groups, condition)
            except candidates.TooManySets as exc:
                raise walk.Undecided() from exc
            if chosen is None or len(chosen) == 1:
                return chosen
            if self.claim_tries(chosen) > MAX_STEERED_TRIES:
                return None

        traces = self.claim_traces()
        chosen = self._search(groups, condition, traces, self.order)
        # The resource tracker fails to record these pins (CPUPinningUnknown).
        # Under "isolate" it records wrong ones instead, without an error.
        if chosen is not None and any(
                cell.dedicated and traces.pinned[index] != chosen[index]
                for index, cell in enumerate(self.guest.cells)):
            return None
        return chosen

    def claimed(self, groups: Sequence[int] = (),
                condition: Condition | None = None) -> ClaimChoice | None:
        """Return the claim's choice; None if it does not accept the host."""
        if self.too_few_cells:
            return None
        guest = self.pristine
        # One guest cell with a fixed page size has no traces that matter.
        if len(guest.cells) > 1 or guest.any_pages:
            traces = self.claim_traces()
            try:
                chosen = self._search(groups, condition, traces, self.order)
            except walk.Undecided:
                pass
            else:
                return None if chosen is None else ClaimChoice(
                    chosen, tuple(traces.pagesizes), tuple(traces.pinned))
        try:
            chosen = candidates.first(
                self.masks, self.order, groups, condition)
        except candidates.TooManySets:
            chosen = None
        if chosen is None:
            return None
        return ClaimChoice(chosen, tuple([
            fit.page_size(self.host.cells[host], cell.pagesize, cell.memory)
            if cell.pagesize else None
            for host, cell in zip(chosen, guest.cells)]), chosen)

    def claim_tries(self, assignment: Sequence[int]) -> int:
        return candidates.tries_before(assignment, self.order)

    @property
    def many_permutations(self) -> bool:
        return many_permutations(len(self.host.cells), len(self.guest.cells))


@functools.cache
def many_permutations(host_cells: int, guest_cells: int) -> bool:
    return math.perm(host_cells, guest_cells) > MAX_CLAIM_TRIES


def free_devices(pools: Sequence[Mapping] | None) -> Mapping[int | None, int]:
    """Count free PCI devices by NUMA node; None for those without one."""
    free: dict[int | None, int] = {}
    for pool in pools or ():
        node = pool.get('numa_node')
        free[node] = free.get(node, 0) + pool.get('count', 0)
    return free
