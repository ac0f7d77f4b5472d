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
"""A request meets a host: evaluation, decision and limits.

The filters and weighers are thin; what they share is here.  What is learned
about a host is kept on its HostState, which Nova makes anew for every request,
so that no filter works it out again and none depends on another having run.
"""

from collections.abc import Mapping
import dataclasses
import functools
import typing as ty

from nova import objects

from nfv_sched.nova import scheduler
from nfv_sched.numa import decide as decide_
from nfv_sched.numa import evaluation as numa_evaluation
from nfv_sched.numa import fit
from nfv_sched.numa import pci
from nfv_sched.numa import shape
from nfv_sched.numa import shortage
from nfv_sched.numa import topology
from nfv_sched import reasons
from nfv_sched.request import Request
from nfv_sched.request import RequestNote
from nfv_sched.rules import base

_NOTE = '_nfv_sched_note'
_LIMITS = 'numa_topology'
_STOCK = 'NUMATopologyFilter'
_NO_LABELS: frozenset[str] = frozenset()


class KeptLimits(dict):
    """Limits of a host whose NUMA part only nfv-sched writes.

    Nova's own ``NUMATopologyFilter`` writes fresh ones on every pass; in
    whatever order the filters run, ours stay.
    """

    __slots__ = ()

    def __setitem__(self, key, value):
        if key != _LIMITS:
            super().__setitem__(key, value)

    def keep(self, limits) -> None:
        """Write the NUMA part.

        :param limits: ``nova.objects.NUMATopologyLimits``
        """
        super().__setitem__(_LIMITS, limits)


def _put_limits(host_state, limits, kept: bool) -> None:
    """Write the NUMA limits of a host.

    :param limits: ``nova.objects.NUMATopologyLimits``
    :param kept: whether no other filter may change them
    """
    if isinstance(host_state.limits, KeptLimits):
        host_state.limits.keep(limits)
    elif kept:
        host_state.limits = KeptLimits(host_state.limits)
        host_state.limits.keep(limits)
    else:
        host_state.limits[_LIMITS] = limits


def with_labels(limits, labels: frozenset[str], ignore_tunnel: bool):
    """A copy of NUMA limits with labels added.

    :param limits: ``nova.objects.NUMATopologyLimits``; not changed
    :param labels: physical networks that chosen host nodes must be near
    :param ignore_tunnel: leave out the tunnel endpoint
    :returns: ``nova.objects.NUMATopologyLimits``
    """
    physnets = set(labels)
    tunneled = False
    if 'network_metadata' in limits and limits.network_metadata is not None:
        metadata = limits.network_metadata
        if 'physnets' in metadata:
            physnets |= metadata.physnets
        if 'tunneled' in metadata:
            tunneled = metadata.tunneled
    return scheduler.numa_topology_limits(
        limits.cpu_allocation_ratio, limits.ram_allocation_ratio,
        objects.NetworkMetadata(
            physnets=physnets, tunneled=tunneled and not ignore_tunnel))


class HostNote:
    """What is known of one host while one request is scheduled.

    :ivar request_note: the request that this belongs to
    :ivar ran: filters that count without being enabled, as they have run
    :ivar held: decision for the server of this request that was placed here
        last, None if none was
    :ivar written: decision whose limits were written last
    :ivar choices: what each allocation candidate that was left says about the
        providers, and the decision for it; empty if there is only one
    """

    __slots__ = ('request_note', 'ran', 'held', 'written',
                 'choices', '_decided', '_judged', '_topology', '_view',
                 '_evaluation', '_guest', '_ratios', '_devices', '_capped')

    def __init__(self, request_note: RequestNote, host_state):
        self.request_note = request_note
        self.ran: tuple[str, ...] = ()
        self.held: decide_.Decision | None = None
        self.written: decide_.Decision | None = None
        self.choices: list[tuple[ty.Any, decide_.Decision]] = []
        self._topology = None
        self._view: topology.HostTopology | None = None
        self._evaluation: numa_evaluation.Evaluation | None = None
        self._guest: topology.Guest | None = None
        self._ratios: fit.Ratios | None = None
        self._devices: pci.HostDevices | None = None
        self._capped: tuple | None = None
        self._decided: tuple | None = None
        self._judged: tuple | None = None
        scheduler.when_placed(host_state, self._write_claimed, self._hold)

    def _write_claimed(self, host_state) -> None:
        """Nova places a server here: write its limits.

        Those for the allocation candidate that was claimed; a filter after
        ours may have dropped the first.
        """
        if self.written is None or host_state.__dict__.get(_NOTE) is not self:
            return
        claimed = _first(host_state.allocation_candidates)
        if self.choices and claimed is not None:
            mappings = claimed.get('mappings')
            self.written = next(
                (decision for known, decision in self.choices
                 if known == mappings), self.written)
        _put_decision(self, host_state, self.request_note.request,
                      self.written)

    def _hold(self, host_state, _instance: str | None) -> None:
        self.held = self.written or decide_.Decision(True)

    def decide(self, decision: decide_.Decision, host_state,
               terms: decide_.Terms) -> None:
        """Keep a decision for the filters and weighers after this one."""
        self._decided = (decision, terms, self.held,
                         _first(host_state.allocation_candidates))

    def decided(self, host_state,
                terms: decide_.Terms) -> decide_.Decision | None:
        """The decision, if what it depends on is unchanged."""
        kept = self._decided
        if kept is not None and (
                kept[1] is terms or kept[1] == terms) and \
                kept[2] is self.held and \
                kept[3] is _first(host_state.allocation_candidates):
            return kept[0]
        return None

    def judge(self, decision: decide_.Decision, host_state,
              request: Request, terms: decide_.Terms) -> None:
        """Keep a decision whose limits are written."""
        left = host_state.allocation_candidates
        self._judged = (
            decision, terms, request, self.held, host_state.numa_topology,
            left, _first(left), host_state.cpu_allocation_ratio,
            host_state.ram_allocation_ratio)

    def judged(self, host_state, request: Request,
               terms: decide_.Terms) -> decide_.Decision | None:
        """The decision, if an earlier filter has left the host as it is."""
        kept, left = self._judged, host_state.allocation_candidates
        if kept is not None and kept[2] is request and \
                kept[3] is self.held and \
                kept[4] is host_state.numa_topology and \
                kept[5] is left and kept[6] is _first(left) and \
                kept[7] == host_state.cpu_allocation_ratio and \
                kept[8] == host_state.ram_allocation_ratio and \
                (kept[1] is terms or kept[1] == terms):
            return kept[0]
        return None

    def view(self, host_state) -> topology.HostTopology | None:
        """The host's NUMA nodes.

        :raises topology.OddTopologyError: if they cannot be read
        """
        numa_topology = host_state.numa_topology
        if numa_topology is not self._topology:
            self._view = topology.host_topology(numa_topology)
            self._topology = numa_topology
            self._evaluation = None
            self._decided = None
        return self._view

    def cpu_ratio(self, host_state, view: topology.HostTopology,
                  terms: decide_.Terms) -> float:
        """Shared vCPUs that a shared CPU of the host takes.

        Nova's allocation ratio, or less if a rule says so.
        """
        if not terms.capping:
            return host_state.cpu_allocation_ratio
        kept = self._capped
        if kept is None or kept[0] is not view or kept[1] is not terms:
            ratio = host_state.cpu_allocation_ratio
            for rule in terms.capping:
                ratio = rule.cpu_ratio(
                    view, ratio, functools.partial(_limit, host_state))
            kept = self._capped = (view, terms, ratio)
        return kept[2]

    def evaluation(
        self, host_state, request: Request, view: topology.HostTopology,
        terms: decide_.Terms,
    ) -> numa_evaluation.Evaluation:
        """Where the guest of the request fits on this host."""
        ratios = _ratios(self.cpu_ratio(host_state, view, terms),
                         host_state.ram_allocation_ratio)
        if (self._evaluation is None or self._guest is not request.guest or
                self._ratios is not ratios):
            self._guest = request.guest
            self._ratios = ratios
            self._decided = self._devices = None
            self._evaluation = numa_evaluation.Evaluation(
                view, request.guest, ratios,
                _pci_free(host_state.pci_stats), bool(request.demands),
                settings(self.request_note).packing, request.pristine)
        return self._evaluation

    def devices(
        self, host_state, request: Request, view: topology.HostTopology,
        mapping,
    ) -> pci.Devices | None:
        """The PCI devices that the request can have on this host.

        :param mapping: which provider gives which PCI device
        :returns: None if it asks for none, or the host says nothing of them
        """
        stats = host_state.pci_stats
        if not request.demands or stats is None:
            return None
        if self._devices is None:
            self._devices = pci.HostDevices(
                stats.pools, request.demands, view)
        return pci.Devices(self._devices, mapping)


def _first(candidates_left):
    """The allocation candidate that Nova claims, or None."""
    # Not by its truth: see turn.Contested.
    return candidates_left[0] if candidates_left is not None and len(
        candidates_left) else None


@functools.lru_cache(maxsize=1024)
def _ratios(cpu, ram) -> fit.Ratios:
    return fit.Ratios(float(cpu), float(ram))


def note_of(host_state, request_note: RequestNote) -> HostNote:
    """The note on a host; made when a request first meets it."""
    note = host_state.__dict__.get(_NOTE)
    if note is None or note.request_note is not request_note:
        note = HostNote(request_note, host_state)
        host_state.__dict__[_NOTE] = note
    return note


def _pci_free(pci_stats) -> dict[int | None, int] | None:
    """Free PCI devices per host NUMA node; None if the host has no pools."""
    pools = getattr(pci_stats, 'pools', None)
    if not pools:
        return None
    free: dict[int | None, int] = {}
    for pool in pools:
        node = pool.get('numa_node')
        free[node] = free.get(node, 0) + pool.get('count', 0)
    return free


def _limit(host_state, name: str) -> float:
    """A limit of ``[nfv_sched]`` for one host."""
    return scheduler.aggregate_limit(
        host_state, name, scheduler.CONF.nfv_sched[name])


class Settings(ty.NamedTuple):
    """Options, read once per filter and request.

    :ivar names: what the labels are called
    :ivar predicted_is_enough: strict policies may rest on a prediction
    :ivar packing: Nova fills the most used NUMA node first
    :ivar limits_lost: moves must keep strict policies without limits
    :ivar filters: enabled filter -> its place among them, the last if several
    """

    names: base.Names
    predicted_is_enough: bool
    packing: bool
    limits_lost: bool
    filters: Mapping[str, int]


@functools.lru_cache(maxsize=16)
def _places(names: tuple[str, ...]) -> Mapping[str, int]:
    return {name: place for place, name in enumerate(names)}


def settings(request_note: RequestNote) -> Settings:
    """The options that count for a request."""
    known = request_note.settings
    if known is None:
        options = scheduler.CONF.nfv_sched
        known = request_note.settings = Settings(
            base.Names(options.vswitch_label, options.node_label_prefix),
            options.strict_enforcement == 'predicted',
            scheduler.packs_numa_cells(),
            options.moves_without_limits == 'refuse' and
            not scheduler.live_migration_carries_limits(),
            _places(tuple(scheduler.enabled_filters())))
    return known


def left_to_others(request_note: RequestNote, name: str,
                   decision: decide_.Decision) -> bool:
    """Whether a filter that comes later refuses the host.

    Each refuses by the rule that it is named after.  Where its own filter is
    not enabled, or has been passed when things were different, the next one
    does it.

    :param request_note: the request's note
    :param name: the filter that asks
    :param decision: by which the host is refused
    """
    filters = settings(request_note).filters
    place = filters.get(name)
    if place is None:
        return False
    for refusing in decision.refused_by:
        after = filters.get(refusing)
        if after is not None:
            # Nova's own filter may search for minutes on such a host.
            return after > place and not (
                decision.refused_by == decide_.FIT
                and place < filters.get(_STOCK, -1) < after)
    return False


def terms_of(request_note: RequestNote, request: Request,
             ran: tuple[str, ...] = ()) -> decide_.Terms:
    """How to decide about the hosts of a request.

    A rule counts if its filter is enabled.  All count from the first filter
    on, so that a host is decided about once.

    :param request_note: the request's note
    :param request: the request
    :param ran: filters that are not enabled and count
    """
    known = request_note.terms.get(ran)
    if known is None:
        options = settings(request_note)
        order = {name: len(options.filters) + place
                 for place, name in enumerate(ran)}
        order.update(options.filters)
        rules = []
        for rule in request.rules:
            place = min([order[name] for name in rule.filters
                         if name in order], default=None)
            if rule.steers and (rule.general or place is not None):
                rules.append((-1 if rule.general else place, rule))
        ordered = tuple([rule for _place, rule in sorted(
            rules, key=lambda item: item[0])])
        known = request_note.terms[ran] = decide_.Terms(
            ordered, any(rule.ours for rule in request.rules), options.names,
            options.predicted_is_enough,
            request.is_move and options.limits_lost,
            tuple([rule for rule in ordered if rule.caps]))
    return known


def _no_numa_topology(
    request: Request, view: topology.HostTopology | None,
    terms: decide_.Terms,
) -> decide_.Decision:
    """A guest without NUMA topology: its CPUs float over the whole host."""
    degrees = {}
    for rule in terms.rules:
        found = rule.floating(view, terms.names)
        if isinstance(found, reasons.Reason):
            return decide_.Decision(False, found, rule.filters)
        degrees[rule.text] = found
    return decide_.Decision(True, degrees=degrees)


def _decide_candidate(
    note: HostNote, host_state, request: Request, view, terms, mapping,
    traces=None,
) -> decide_.Decision:
    """The decision for one allocation candidate.

    :param mapping: which provider gives which PCI device
    :param traces: what Nova's earlier searches have left on the guest
    """
    evaluation = note.evaluation(host_state, request, view, terms)
    key = None
    if traces is None and note.held is None and (
            evaluation.ratios.cpu == host_state.cpu_allocation_ratio):
        stats = host_state.pci_stats
        key = shape.of(
            evaluation,
            [rule.read(view, terms.names) for rule in terms.rules],
            None if stats is None else stats.pools or (), request.demands,
            mapping)
    again = functools.partial(
        _decide_alone, note, host_state, request, view, terms, mapping,
        traces)
    if key is None:
        return again()
    decisions = note.request_note.decisions
    key = id(terms), key
    try:
        known = decisions.get(key)
    except TypeError:  # the facts of a rule of others
        return again()
    if known is None:
        known = decisions[key] = again()
    elif not known.accepted:
        # What there is too little of is the host's own.
        return dataclasses.replace(known, reason=lambda: reasons.resolve(
            again().reason or known.reason))
    return known


def _decide_alone(
    note: HostNote, host_state, request: Request, view, terms, mapping,
    traces=None,
) -> decide_.Decision:
    """The decision for one allocation candidate, worked out."""
    evaluation = note.evaluation(host_state, request, view, terms)
    decision = decide_.decide(
        evaluation, request, terms,
        note.devices(host_state, request, view, mapping), traces, note.held)
    if not decision.accepted and decision.refused_by is decide_.FIT and (
            evaluation.ratios.cpu != host_state.cpu_allocation_ratio):
        ratios = _ratios(host_state.cpu_allocation_ratio,
                         host_state.ram_allocation_ratio)
        for rule in terms.rules:
            reason = rule.too_full(evaluation, ratios)
            if reason is not None:
                return decide_.Decision(False, reason, rule.filters)
    return decision


_NO_HOST_TOPOLOGY = decide_.Decision(False, reasons.Reason(
    reasons.HOST, 'NUMA topology', 'a host with a NUMA topology needed'))
_NO_RATIOS = decide_.Decision(False, reasons.Reason(
    reasons.HOST, 'NUMA topology',
    'a host that reports its allocation ratios needed'))


def _settled(
    note: HostNote, host_state, request: Request, terms: decide_.Terms,
) -> tuple[topology.HostTopology | None, decide_.Decision | None]:
    """Read the host.

    :returns: its NUMA nodes, and the decision if it does not depend on them
    """
    view = note.view(host_state)
    if view is not None:
        for rule in request.rules:
            reason = rule.never(view)
            if reason is not None:
                return view, decide_.Decision(False, reason, rule.filters)
    if request.guest is None:
        return view, _no_numa_topology(request, view, terms)
    if view is None:
        return view, _NO_HOST_TOPOLOGY
    if host_state.cpu_allocation_ratio is None or \
            host_state.ram_allocation_ratio is None:
        return view, _NO_RATIOS
    return view, None


def _plain_refusal(
    host_state, request: Request, ratios: fit.Ratios,
) -> reasons.Reason:
    """Why a plain guest finds no room."""
    view = topology.host_topology(host_state.numa_topology)
    if view is None:
        return reasons.resolve(_NO_HOST_TOPOLOGY.reason)
    return shortage.capacity_reason(
        numa_evaluation.Evaluation(view, request.guest, ratios),
        devices=_plain_devices(host_state, request, view))


def _plain_devices(
    host_state, request: Request, view: topology.HostTopology,
) -> pci.Devices | None:
    """The PCI devices of a host for its only allocation candidate."""
    if not request.demands or host_state.pci_stats is None:
        return None
    return pci.Devices(
        pci.HostDevices(host_state.pci_stats.pools, request.demands, view),
        host_state.allocation_candidates[0].get('mappings'))


def _like_devices(
    host_state, request: Request, request_note: RequestNote,
    view: topology.HostTopology,
) -> pci.Devices | None:
    """The same, or those of another host that serve all guests alike."""
    if not request.demands or host_state.pci_stats is None:
        return None
    try:
        key = shape.of_devices(
            host_state.pci_stats.pools, request.demands,
            host_state.allocation_candidates[0].get('mappings'), view.cells)
        known = request_note.decisions.get(key)
    except Exception:  # whoever needs the devices says what is wrong
        return _plain_devices(host_state, request, view)
    if known is None:
        known = request_note.decisions[key] = _plain_devices(
            host_state, request, view)
    return known


def judge_plain(
    host_state, request: Request, request_note: RequestNote,
) -> decide_.Decision | None:
    """Decide about a host for a request that asks nothing beyond stock Nova.

    The hot path: most requests of a cloud are such.  It keeps nothing on the
    host, and a guest with one NUMA node is settled by the first host NUMA
    node that it fits.

    :returns: None if it takes :func:`judge`
    """
    if request.demands and len(host_state.allocation_candidates) > 1:
        return None
    ratios = _ratios(host_state.cpu_allocation_ratio,
                     host_state.ram_allocation_ratio)
    guest = request.guest
    cells = guest.cells
    if len(cells) == 1 and not request.physnets and not request.tunneled:
        cell, reserved = cells[0], guest.reserved
        pagesize = cell.pagesize
        if not pagesize or pagesize > 0:
            devices = None
            if request.demands:
                view = topology.host_topology(host_state.numa_topology)
                devices = _like_devices(
                    host_state, request, request_note, view)
                host_cells = view.cells
            else:
                host_cells = map(topology.HostCell,
                                 host_state.numa_topology.cells)
            bit = 1
            for host_cell in host_cells:
                if fit.check(host_cell, cell, pagesize, reserved,
                             ratios) == fit.FITS and (
                                 devices is None or devices.accepts(bit)):
                    write_plain_limits(host_state, request, request_note)
                    return decide_.PLAIN
                bit <<= 1
            return decide_.Decision(False, functools.partial(
                _plain_refusal, host_state, request, ratios))
    view = topology.host_topology(host_state.numa_topology)
    if view is None:
        return None
    evaluation = numa_evaluation.Evaluation(
        view, guest, ratios, _pci_free(host_state.pci_stats),
        bool(request.demands), settings(request_note).packing,
        request.pristine)
    if len(host_state.allocation_candidates) > 1 and not evaluation.uniform:
        return None
    decision = decide_.decide_plain(
        evaluation, request, _plain_devices(host_state, request, view))
    if decision is not None and decision.accepted:
        write_plain_limits(host_state, request, request_note)
    return decision


def decide(
    note: HostNote, host_state, request: Request,
    counts: str | None = None,
) -> tuple[decide_.Decision, decide_.Terms]:
    """Decide about a host by its first allocation candidate, or recall it.

    :param note: the host's note
    :param request: the request
    :param counts: a filter whose rules count here, enabled or not
    :returns: the decision, and how it was made
    """
    terms = terms_of(note.request_note, request, _with(note, counts))
    view, settled = _settled(note, host_state, request, terms)
    if settled is not None:
        return settled, terms
    return _decide(note, host_state, request, view, terms), terms


def _with(note: HostNote, name: str | None) -> tuple[str, ...]:
    """The filters that count without being enabled, with one more."""
    if name is None or name in note.ran or (
            name in settings(note.request_note).filters):
        return note.ran
    return (*note.ran, name)


def _decide(note: HostNote, host_state, request: Request, view,
            terms: decide_.Terms) -> decide_.Decision:
    """The decision by the first allocation candidate."""
    evaluation = note.evaluation(host_state, request, view, terms)
    known = note.decided(host_state, terms)
    if known is None:
        mapping = _mappings(host_state, request)[0]
        if not terms.rules:
            known = decide_.decide_plain(
                evaluation, request,
                note.devices(host_state, request, view, mapping))
        if known is None:
            known = _decide_candidate(
                note, host_state, request, view, terms, mapping)
        note.decide(known, host_state, terms)
    return known


def _mappings(host_state, request: Request) -> list[dict]:
    """What each allocation candidate says about the PCI requests.

    An empty mapping stands for a host without candidates.
    """
    if not request.demands:
        return [{}] * max(1, len(host_state.allocation_candidates))
    return [candidate.get('mappings') or {}
            for candidate in host_state.allocation_candidates] or [{}]


def judge(
    note: HostNote, host_state, request: Request, name: str | None = None,
) -> decide_.Decision:
    """Decide about a host and leave it as the filters after this one need it.

    Allocation candidates that the host cannot serve are dropped, and the
    limits are written for the first that is left, which Nova claims.

    :param note: the host's note
    :param request: the request
    :param name: the filter that asks; its rules count from now on
    :returns: the decision
    """
    note.ran = _with(note, name)
    terms = terms_of(note.request_note, request, note.ran)
    known = note.judged(host_state, request, terms)
    if known is not None:
        return known
    view, settled = _settled(note, host_state, request, terms)
    if settled is not None:
        return settled
    evaluation = note.evaluation(host_state, request, view, terms)
    if len(host_state.allocation_candidates) > 1 and (
            request.demands or not evaluation.uniform):
        decision = _judge_candidates(note, host_state, request, view, terms)
    else:
        note.choices = []
        decision = _decide(note, host_state, request, view, terms)
    if decision.accepted:
        write_limits(note, host_state, request, decision)
    note.judge(decision, host_state, request, terms)
    return decision


def _judge_candidates(
    note: HostNote, host_state, request: Request, view,
    terms: decide_.Terms,
) -> decide_.Decision:
    """Decide for each allocation candidate and keep those that will do.

    :returns: the decision for the first that is kept
    """
    evaluation = note.evaluation(host_state, request, view, terms)
    traces = None
    if not evaluation.uniform and not terms.strict:
        # What Nova's search for one leaves behind counts for the next.
        traces = evaluation.request_traces()
    prefixes = tuple(demand.request_id for demand in request.demands
                     if demand.request_id)
    kept, decision, done = [], None, {}
    for candidate, mapping in zip(host_state.allocation_candidates,
                                  _mappings(host_state, request)):
        key = None
        if traces is None:  # the order does not matter
            key = repr(sorted(
                item for item in mapping.items()
                if item[0].startswith(prefixes)))
        made = done.get(key)
        if made is None:
            made = _decide_candidate(
                note, host_state, request, view, terms, mapping, traces)
            if key is not None:
                done[key] = made
        if made.accepted:
            kept.append((made, candidate))
        if decision is None or (
                decision.refused_by == decide_.FIT
                and not decision.accepted and not made.accepted):
            decision = made  # what came furthest
    note.choices = [(candidate.get('mappings'), made)
                    for made, candidate in kept]
    if kept:
        # Nova claims the first. The order stays where nothing is preferred.
        kept.sort(key=lambda item: -item[0].value)
        decision = kept[0][0]
        # In place: the list may be one that notices Nova's claim.
        host_state.allocation_candidates[:] = [
            candidate for _made, candidate in kept]
    note.decide(decision, host_state, terms)
    return decision


def expected(
    note: HostNote, host_state, request: Request,
    decision: decide_.Decision, terms: decide_.Terms,
) -> tuple[numa_evaluation.Evaluation, tuple[int, ...] | None]:
    """What the claim is expected to choose.

    :param decision: that accepts the host
    :param terms: how it was made
    :returns: where the guest fits, and the host cell of each guest cell; None
        if that cannot be said
    """
    view = note.view(host_state)
    evaluation = note.evaluation(host_state, request, view, terms)
    return evaluation, decide_.expected(
        evaluation, request, decision,
        note.devices(host_state, request, view,
                     _mappings(host_state, request)[0]))


def write_limits(
    note: HostNote, host_state, request: Request,
    decision: decide_.Decision,
) -> None:
    """Tell the claim on the compute node what it must keep.

    Servers of the request that are on the host already keep their limits
    until one more is placed there.

    :param decision: that accepts the host
    """
    note.written = decision
    if note.held is None:
        _put_decision(note, host_state, request, decision)


def _put_decision(
    note: HostNote, host_state, request: Request,
    decision: decide_.Decision,
) -> None:
    labels = decision.labels
    ignore = decision.ignore_tunnel or request.tunnel_untrue
    ratio = None
    terms = terms_of(note.request_note, request, note.ran)
    if terms.capping:
        lowered = note.cpu_ratio(host_state, note.view(host_state), terms)
        if lowered != host_state.cpu_allocation_ratio:
            ratio = lowered
    _put_limits(
        host_state,
        _limits(host_state, request, note.request_note, labels, ignore, ratio),
        bool(labels) or ignore or ratio is not None)


def write_plain_limits(
    host_state, request: Request, request_note: RequestNote,
) -> None:
    """Hand the claim on the compute node what stock Nova hands it."""
    _put_limits(host_state, _limits(
        host_state, request, request_note, _NO_LABELS, False, None), False)


def _limits(host_state, request: Request, request_note: RequestNote,
            labels: frozenset[str], ignore_tunnel: bool,
            ratio: float | None):
    """NUMA limits, one object for all hosts that are alike in them."""
    cpu = host_state.cpu_allocation_ratio if ratio is None else ratio
    ram = host_state.ram_allocation_ratio
    key = (cpu, ram, labels, ignore_tunnel)
    made = request_note.limits.get(key)
    if made is None:
        made = scheduler.numa_topology_limits(
            cpu, ram, request.network_metadata)
        if labels or ignore_tunnel:
            made = with_labels(made, labels, ignore_tunnel)
        request_note.limits[key] = made
    return made
