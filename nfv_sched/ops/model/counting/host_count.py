# SPDX-License-Identifier: Apache-2.0
"""Count the servers that fit the NUMA cells and PCI devices of a host.

Servers are put on a view of the host one after the other, as the scheduler's
filters and the claim on the compute node would: no server is booted, no Nova
object is created.  Hosts in the same state share one count.

Placement, and filters that look at anything else, are not asked here.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
import dataclasses
import typing as ty

from nfv_sched.fit import decide
from nfv_sched.fit.numa import decide as numa_decide
from nfv_sched.fit.numa import evaluation as numa_evaluation
from nfv_sched.fit.numa import fit
from nfv_sched.fit.numa import pci
from nfv_sched.fit.numa import topology
from nfv_sched.fit import occupancy
from nfv_sched.fit import pci_pools
from nfv_sched.fit import request as nfv_request

_NO_NODES = topology.HostTopology(())
NO_RATIOS = decide.UNLIMITED


@dataclasses.dataclass(frozen=True, slots=True)
class FreeResources:
    """The free capacity of a host."""

    #: its NUMA topology; None if it reports none
    host: topology.HostTopology | None
    #: its free PCI devices; None if it reports none
    devices: pci_pools.PCIPools | None = None

    @property
    def key(self) -> Hashable:
        """Key of a state; the same servers fit hosts of the same key."""
        return (self.host and self.host.state,
                self.devices and self.devices.key)


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class GuestRequest:
    """A request for a server, and how the scheduler decides about it."""

    request: nfv_request.Request
    #: rules by which filters of nfv-sched decide; None if none of them has a
    #: say
    terms: numa_decide.Terms | None = None
    #: whether a filter of NUMA topology sets limits for the claim
    limited: bool = True
    #: order in which Nova tries the NUMA cells of a host
    sorting: numa_evaluation.CellSorting = numa_evaluation.CellSorting()
    limits_lost: bool = False  #: whether the limits do not reach the claim

    def is_near_networks(self, host: topology.HostTopology) -> bool:
        request = self.request
        return bool(request.tunneled and host.tunnel or
                    not request.physnets.isdisjoint(host.labels))

    @property
    def has_one_cell(self) -> bool:
        """Whether a claim looks at nothing but the NUMA cell that it takes."""
        guest = self.request.guest
        return guest is not None and len(guest.cells) == 1 and not (
            guest.any_pages or self.request.demands)

    @property
    def single(self) -> bool:
        """Whether each host NUMA cell can be counted by itself."""
        guest, terms = self.request.guest, self.terms
        # With isolated vCPUs Nova cannot always record the CPU of isolated
        # emulator threads: a claim may fail while another cell has enough.
        return (self.has_one_cell and not (guest.reserved and guest.isolates)
                and (terms is None or not (terms.rules or terms.refusing)))


class Case(ty.NamedTuple):
    """One more server, and a host."""

    wanted: GuestRequest
    room: FreeResources  #: free capacity of the host
    ratios: fit.Ratios  #: its allocation ratios, lowered by the rules


def place(case: Case) -> FreeResources | None:
    """Put a server on a host, if Placement does not choose its devices.

    :returns: free capacity afterwards; None if a filter or the claim refuses
    """
    placed = place_first(case, _ANY_DEVICES)
    return None if placed is None else placed.room


class Placed(ty.NamedTuple):
    """A server that was put on a host."""

    candidate: Mapping[str, ty.Any]
    room: FreeResources  #: free capacity of the host afterwards
    #: text of each policy -> degree to which it is kept, 0 to 1
    degrees: Mapping[str, float]
    #: shares of the server in the host's NUMA cells
    shares: tuple[occupancy.Share, ...]
    devices: tuple[int, ...]  #: numbers of its PCI devices


def place_first(case: Case,
                candidates: Sequence[Mapping[str, ty.Any]]) -> Placed | None:
    """Put a server on a host by one of its allocation candidates.

    As in the filters, candidates that the host cannot serve are dropped, and
    the one that keeps the preferred rules best is claimed.

    :returns: None if the host is refused
    """
    best = None
    for candidate in candidates:
        decision, evaluation = _decide(case, candidate.get('mappings'))
        # Of equal ones the first, as in Placement's order; see Visit.
        if decision.accepted and (
                best is None or decision.value > best[1].value):
            best = candidate, decision, evaluation
    return None if best is None else _claim(case, *best)


def decision(case: Case) -> numa_decide.Decision:
    """Return how filters decide if Placement chooses no devices."""
    return _decide(case, None)[0]


_REFUSED = numa_decide.Decision(False)
# Without "mappings" a candidate names no devices, as where PCI is not in
# Placement.
_ANY_DEVICES: Sequence[Mapping[str, ty.Any]] = ({},)


def _decide(case: Case, mapping: Mapping | None) -> tuple[
        numa_decide.Decision, numa_evaluation.Evaluation | None]:
    """Return the decision of the filters, and where the guest fits.

    The latter is None if the host is refused, or the guest has no NUMA
    topology.
    """
    guest_request, room, ratios = case
    request, terms = guest_request.request, guest_request.terms
    if request.error is not None:
        return _REFUSED, None
    # The claim compares no ratios without limits.
    if not guest_request.limited:
        ratios = NO_RATIOS
    host = decide.HostResources(
        None, ratios.cpu, ratios.ram,
        None if room.devices is None else room.devices.pools,
        topology=room.host)
    decision = numa_decide.PLAIN
    if terms is not None:
        decision = decide.decide(host, request, mapping, terms)
        if not decision.accepted:
            return decision, None
    # Nova's own PciPassthroughFilter, and NUMATopologyFilter if enabled.
    devices = host.devices(request, mapping)
    if request.demands and (devices is None or devices.taken(None) is None):
        return _REFUSED, None
    if request.guest is None:
        return decision, None
    if room.host is None:
        return _REFUSED, None
    evaluation = host.evaluate(request, guest_request.sorting)
    if terms is None and guest_request.limited and not evaluation.accepted(
            numa_decide.claim_groups(room.host, request, decision),
            None if devices is None else devices.stock):
        return _REFUSED, None
    return decision, evaluation


def evaluate(case: Case,
             host: topology.HostTopology) -> numa_evaluation.Evaluation:
    """Return where a guest, which has a NUMA topology, fits on a host."""
    request, devices = case.wanted.request, case.room.devices
    return numa_evaluation.Evaluation(
        host, request.guest, case.ratios, devices.pools if devices else None,
        bool(request.demands), case.wanted.sorting, request.pristine)


def _claim(case: Case, candidate: Mapping[str, ty.Any],
           decision: numa_decide.Decision,
           evaluation: numa_evaluation.Evaluation | None) -> Placed | None:
    """Claim a server that the filters accept; return None if that fails."""
    guest_request, room, _ratios = case
    request, mapping = guest_request.request, candidate.get('mappings')
    demands = request.demands
    host, cells = room.host, None
    shares: tuple[occupancy.Share, ...] = ()
    if evaluation is not None:
        devices = devices_of(case, mapping)
        groups = []
        if guest_request.limited and guest_request.limits_lost:
            evaluation = evaluate(
                case._replace(ratios=NO_RATIOS), evaluation.host)
        elif guest_request.limited:
            groups = numa_decide.claim_groups(
                evaluation.host, request, decision)
        claimed = evaluation.claimed(
            groups, None if devices is None else devices.stock)
        if claimed is None:
            return None
        shares = occupancy.claimed_shares(
            evaluation.pristine, evaluation.host, claimed)
        # Nova's claim succeeds, but the resource tracker cannot record it, so
        # that the server ends in ERROR.
        try:
            host = occupancy.take(evaluation.host, shares)
        except occupancy.UnrecordedError:
            return None
        cells = sum(1 << cell for cell in claimed.cells)
    served = room.devices, ()
    if demands:
        served = room.devices.take(demands, mapping, host or _NO_NODES, cells)
    if served is None:
        return None
    pools, numbers = served
    return Placed(
        candidate, FreeResources(host, pools), decision.degrees, shares,
        numbers)


def devices_of(case: Case,
               mapping: Mapping | None) -> pci.CandidateDevices | None:
    """Return the free PCI devices of a host that a server may use.

    :param mapping: of the allocation candidate, if PCI is in Placement
    :returns: None if the server needs none, or the host reports none
    """
    demands, room = case.wanted.request.demands, case.room
    if not demands or room.devices is None:
        return None
    return pci.CandidateDevices(pci.HostDevices(
        room.devices.pools, demands, room.host or _NO_NODES), mapping)


class Count(ty.NamedTuple):
    """The number of servers that a host takes."""

    fits: int  #: number of servers; no more than the limit
    more: bool  #: whether it would take one more than the limit
    #: free capacity afterwards, of a host in the same state; not computed if
    #: there is ``more``
    left: FreeResources


@dataclasses.dataclass(slots=True)
class _Chain:
    """A state of a host to which one server after the other is added."""

    left: ty.Any
    fits: int = 0
    full: bool = False

    def follow(self, put: Callable[[ty.Any], ty.Any], limit: int) -> None:
        """Add servers until one more than a limit fits, or the host is full.

        :param put: returns the state with one more server; None if it is full
        """
        while self.fits <= limit and not self.full:
            if (after := put(self.left)) is None:
                self.full = True
            else:
                self.left = after
                self.fits += 1


class Counter:
    """A counter of servers of one kind; it caches counts by host state."""

    def __init__(self, guest_request: GuestRequest):
        self.wanted = guest_request
        self._chains: dict[Hashable, _Chain] = {}

    def count(self, room: FreeResources, ratios: fit.Ratios,
              limit: int) -> Count:
        guest_request, request = self.wanted, self.wanted.request
        if request.error is not None:
            return Count(0, False, room)
        if not guest_request.limited:
            ratios = NO_RATIOS
        if request.guest is None and not request.demands:
            # Its CPUs float and its memory is Placement's matter, so the host
            # never fills up by what is counted here.
            fits = place(Case(guest_request, room, ratios)) is not None
            return Count(limit if fits else 0, fits, room)
        # Cells of a thousand hosts are in few states. On a cell without pages
        # the claim of a second server cannot be recorded.
        if guest_request.single and room.host is not None and all(
                cell.pages for cell in room.host.cells) and (
                    not guest_request.is_near_networks(room.host)):
            return self._count_cells(room.host, room, ratios, limit)
        chain = self._chains.setdefault((room.key, ratios), _Chain(room))
        chain.follow(
            lambda left: place(Case(guest_request, left, ratios)), limit)
        if chain.fits > limit:
            return Count(limit, True, room)
        return Count(chain.fits, False, chain.left)

    def _count_cells(self, host: topology.HostTopology, room: FreeResources,
                     ratios: fit.Ratios, limit: int) -> Count:
        """Count a guest with one NUMA cell, each host NUMA cell by itself."""
        fits = 0
        changed_cells: list[topology.HostCell] = []
        for host_cell in host.cells:
            chain = self._chains.setdefault(
                (host_cell.state, ratios),
                _Chain(topology.HostTopology((host_cell,))))
            chain.follow(lambda single: self._take_cell(single, ratios), limit)
            fits += chain.fits
            changed_cells += chain.left.cells
        if fits > limit:
            return Count(limit, True, room)
        return Count(fits, False, FreeResources(
            host.changed(tuple(changed_cells)), room.devices))

    def _take_cell(self, host: topology.HostTopology,
                   ratios: fit.Ratios) -> topology.HostTopology | None:
        """Put a guest with one NUMA cell on a host with one."""
        guest = self.wanted.request.pristine
        cell = guest.cells[0]
        if fit.check(host.cells[0], cell, cell.pagesize, guest.reserved,
                     ratios):
            return None
        return occupancy.take(host, occupancy.claimed_shares(
            guest, host, numa_evaluation.ClaimChoice(
                (0,), (cell.pagesize,), (0,))))
