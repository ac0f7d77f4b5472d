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
"""What one request knows of one host, and the decision about it.

All filters and weighers of NUMA placement share this.  It is kept on the
HostState, which Nova makes anew for every request, so that no filter works it
out again and none depends on another having run.
"""

import functools
import typing as ty

from nfv_sched import limits
from nfv_sched.nova import scheduler
from nfv_sched.numa import decide
from nfv_sched.numa import evaluation as numa_evaluation
from nfv_sched.numa import fit
from nfv_sched.numa import pci
from nfv_sched.numa import shape
from nfv_sched.numa import topology
from nfv_sched import reasons
from nfv_sched.request import Request
from nfv_sched.request import RequestNote

_VISIT = '_nfv_sched_visit'

NO_HOST_TOPOLOGY = decide.Decision(False, reasons.Reason(
    reasons.HOST, 'NUMA topology', 'a host with a NUMA topology needed'))
_NO_RATIOS = decide.Decision(False, reasons.Reason(
    reasons.HOST, 'NUMA topology',
    'a host that reports its allocation ratios needed'))


class Visit(scheduler.Watcher):
    """One host while one request is scheduled.

    The decision is kept until something that it depends on changes; see
    :meth:`_key`.

    :param note: the note of the request
    :param host_state: ``nova.scheduler.host_manager.HostState``

    :ivar view: the host's NUMA nodes; None if it reports none
    :ivar evaluation: where the guest fits; None if the decision did not need
        it
    """

    __slots__ = ('note', 'view', 'evaluation', '_known', '_decision',
                 '_judged', '_written', '_ratio', '_choices', '_held',
                 '_placed', '_devices')

    def __init__(self, note: RequestNote, host_state):
        self.note = note
        self.view: topology.HostTopology | None = None
        self.evaluation: numa_evaluation.Evaluation | None = None
        self._known: tuple | None = None
        self._decision: decide.Decision | None = None
        self._devices: pci.HostDevices | None = None
        # Whether judge() has made the decision: candidates dropped and limits
        # written. After decision() they are not.
        self._judged = False
        # The last decision that accepted the host, and the CPU allocation
        # ratio for its limits.
        self._written: decide.Decision | None = None
        self._ratio = 0.0
        # Mappings of each allocation candidate that was kept, and the decision
        # for it; empty if only the first was decided about.
        self._choices: ty.Sequence[tuple[ty.Any, decide.Decision]] = ()
        # The decision for the server of the request that was placed here
        # last, and how many were.
        self._held: decide.Decision | None = None
        self._placed = 0
        scheduler.when_placed(host_state, self)

    # -- Nova places a server here

    def before_placed(self, host_state):
        """Write the limits for the allocation candidate that Nova claimed.

        It may not be the first of ours: later filters may drop that one.
        """
        written = self._written
        if written is None or host_state.__dict__.get(_VISIT) is not self:
            return
        claimed = _first(host_state.allocation_candidates)
        if self._choices and claimed is not None:
            mappings = claimed.get('mappings')
            written = self._written = next(
                (decision for known, decision in self._choices
                 if known == mappings), written)
        limits.write(host_state, self.note, self.note.request, written,
                     self._ratio)

    def after_placed(self, host_state, spec_obj):
        """Remember the decision that this server was placed by."""
        self._held = self._written or decide.PLAIN
        self._placed += 1

    # -- decisions

    def _key(self, host_state, request: Request,
             terms: decide.Terms) -> tuple:
        """All that the decision depends on, to be compared.

        And the host's limits: they are written again if somebody has replaced
        them.
        """
        left = host_state.allocation_candidates
        first = left[0] if left is not None and len(left) else None
        return (
            request, terms, self._placed, host_state.numa_topology,
            host_state.pci_stats, left, first, host_state.limits,
            host_state.cpu_allocation_ratio, host_state.ram_allocation_ratio)

    def judge(self, host_state, request: Request,
              terms: decide.Terms) -> decide.Decision:
        """Decide, and change the host's allocation candidates and limits.

        Allocation candidates that the host cannot serve are dropped, and the
        limits are written for the first that is left, which Nova claims.

        :param host_state: ``nova.scheduler.host_manager.HostState``
        :param request: the request
        :param terms: how to decide
        :returns: the decision; the last one if nothing has changed since
        :raises topology.OddTopologyError: if its NUMA nodes cannot be read
        :raises pci.OddDevicesError: if its PCI devices cannot be read
        """
        if self._judged and self._known == self._key(
                host_state, request, terms):
            return self._decision
        decision = self._settle(host_state, request, terms)
        if decision is None:
            if len(host_state.allocation_candidates) > 1 and (
                    request.demands or not self.evaluation.uniform):
                decision = self._judge_candidates(host_state, request, terms)
            else:
                self._choices = ()
                decision = self._decide_first(host_state, request, terms)
            if decision.accepted:
                self._written = decision
                self._ratio = self.evaluation.ratios.cpu
                # Servers of the request that are here already keep their
                # limits until one more is placed.
                if self._held is None:
                    limits.write(host_state, self.note, request, decision,
                                 self._ratio)
        self._decision = decision
        self._known = self._key(host_state, request, terms)
        self._judged = True
        return decision

    def decision(self, host_state, request: Request,
                 terms: decide.Terms) -> decide.Decision:
        """Decide by the first allocation candidate; change nothing.

        For weighers.  Parameters, result and errors are those of
        :meth:`judge`, whose decision is used if it still holds.
        """
        key = self._key(host_state, request, terms)
        if self._known != key:
            decision = self._settle(host_state, request, terms)
            if decision is None:
                decision = self._decide_first(host_state, request, terms)
            self._decision = decision
            self._known = key
        return self._decision

    def _settle(self, host_state, request: Request,
                terms: decide.Terms) -> decide.Decision | None:
        """Read the host's NUMA nodes and work out where the guest fits.

        :returns: the decision, if it does not depend on where the guest fits;
            else None, and ``evaluation`` is set
        """
        self._known, self._judged = None, False
        self.evaluation = self._devices = None
        view = self.view = topology.host_topology(host_state.numa_topology)
        if view is not None:
            for rule in terms.refusing:
                reason = rule.never(view)
                if reason is not None:
                    return decide.Decision(False, reason, rule.filters)
        if request.guest is None:
            return decide.floating(view, terms)
        if view is None:
            return NO_HOST_TOPOLOGY
        ratio = host_state.cpu_allocation_ratio
        if ratio is None or host_state.ram_allocation_ratio is None:
            return _NO_RATIOS
        for rule in terms.capping:
            ratio = rule.cpu_ratio(
                view, ratio, functools.partial(_limit, host_state))
        self.evaluation = numa_evaluation.Evaluation(
            view, request.guest,
            fit.ratios(ratio, host_state.ram_allocation_ratio),
            pools(host_state), bool(request.demands), terms.sorting,
            request.pristine)
        return None

    def _decide_first(self, host_state, request: Request,
                      terms: decide.Terms) -> decide.Decision:
        """Decide by the first allocation candidate, or without any."""
        mapping = first_mapping(host_state)
        if not terms.rules and not terms.keeps_room:
            decision = decide.decide_plain(
                self.evaluation, request, self._devices_of(
                    host_state, request, mapping))
            if decision is not None:
                return decision
        return self._decide_candidate(host_state, request, terms, mapping)

    def _judge_candidates(self, host_state, request: Request,
                          terms: decide.Terms) -> decide.Decision:
        """Decide about each allocation candidate; drop those that are refused.

        :returns: the decision for the first that is kept; if none is, a
            refusal by a rule if there is one, else one for lack of room
        """
        traces = None
        if not self.evaluation.uniform and not terms.strict:
            # Nova tries one candidate after the other on the same guest
            # cells: what a failed search writes there changes the next.
            traces = self.evaluation.request_traces()
        prefixes = tuple(demand.request_id for demand in request.demands
                         if demand.request_id)
        kept, decision, done = [], None, {}
        for candidate in host_state.allocation_candidates:
            mapping = _mapping(candidate)
            key = None
            if traces is None:  # the order does not matter
                key = repr(sorted(
                    item for item in mapping.items()
                    if item[0].startswith(prefixes))) if prefixes else ''
            made = done.get(key)
            if made is None:
                made = self._decide_candidate(
                    host_state, request, terms, mapping, traces)
                if key is not None:
                    done[key] = made
            if made.accepted:
                kept.append((made, candidate))
            if decision is None or (
                    decision.refused_by == decide.FIT
                    and not decision.accepted and not made.accepted):
                decision = made  # it may be refused by a rule
        self._choices = [(candidate.get('mappings'), made)
                         for made, candidate in kept]
        if kept:
            # Nova claims the first. Equal ones stay in Placement's order.
            kept.sort(key=lambda item: -item[0].value)
            decision = kept[0][0]
            # In place: the list may be a network.turn.Contested.
            host_state.allocation_candidates[:] = [
                candidate for _made, candidate in kept]
        return decision

    def _decide_candidate(
        self, host_state, request: Request, terms: decide.Terms, mapping,
        traces=None,
    ) -> decide.Decision:
        """Decide by one allocation candidate, once for hosts of one shape.

        :param mapping: which provider gives which PCI device
        :param traces: what Nova's earlier searches have left on the guest
        """
        evaluation = self.evaluation
        key = None
        capped = evaluation.ratios.cpu != host_state.cpu_allocation_ratio
        if traces is None and self._held is None:
            key = shape.of(evaluation, terms, request.demands, mapping)
        if key is not None:
            key = id(terms), capped, key
        decisions = self.note.decisions
        try:
            known = None if key is None else decisions.get(key)
        except TypeError:  # the facts of a rule of others
            key = known = None
        if known is not None and known.accepted:
            return known
        again = functools.partial(
            self._work_out, host_state, request, terms, mapping, traces,
            evaluation, self._held)
        if known is None:
            known = again()
            # Which rule refuses a host may depend on its own ratio.
            if key is not None and (known.accepted or not capped):
                decisions[key] = known
        else:
            # The figures in a reason differ between hosts of one shape.
            reason = known.reason
            known = decide.Decision(False, lambda: reasons.resolve(
                again().reason or reason), known.refused_by)
        return known

    def expected(self, host_state, request: Request) -> (
            tuple[int, ...] | None):
        """The host cells that the claim is expected to choose.

        To be called after :meth:`judge` or :meth:`decision` has accepted the
        host.

        :param host_state: ``nova.scheduler.host_manager.HostState``
        :param request: the request
        :returns: position of the host cell of each guest cell; None if it is
            not known
        """
        if self.evaluation is None:
            return None
        mapping = first_mapping(host_state)
        return decide.expected(
            self.evaluation, request, self._decision,
            self._devices_of(host_state, request, mapping))

    def _work_out(
        self, host_state, request: Request, terms: decide.Terms, mapping,
        traces, evaluation: numa_evaluation.Evaluation,
        held: decide.Decision | None,
    ) -> decide.Decision:
        """Decide by one allocation candidate; see ``decide.decide``.

        :param mapping: which provider gives which PCI device
        :param traces: what Nova's earlier searches have left on the guest
        :param evaluation: where the guest fits
        :param held: the decision for the server that the same request placed
            here last
        """
        decision = decide.decide(
            evaluation, request, terms,
            self._devices_of(host_state, request, mapping), traces, held)
        ratio = host_state.cpu_allocation_ratio
        if not decision.accepted and decision.refused_by == decide.FIT and (
                evaluation.ratios.cpu != ratio):
            for rule in terms.rules:
                reason = rule.too_full(evaluation, fit.ratios(
                    ratio, evaluation.ratios.ram))
                if reason is not None:
                    return decide.Decision(False, reason, rule.filters)
        return decision

    def _devices_of(self, host_state, request: Request,
                    mapping) -> pci.Devices | None:
        """The host's free PCI devices, as one allocation candidate has them.

        :param mapping: which provider gives which PCI device
        :returns: None if the request asks for none, or the host reports none
        """
        free = pools(host_state)
        if not request.demands or free is None:
            return None
        if self._devices is None:
            self._devices = pci.HostDevices(free, request.demands, self.view)
        return pci.Devices(self._devices, mapping)


def of(host_state, note: RequestNote) -> Visit:
    """The visit of a host, kept on its HostState; made on first use.

    :param host_state: ``nova.scheduler.host_manager.HostState``
    :param note: the note of the request
    """
    visit = host_state.__dict__.get(_VISIT)
    if visit is None or visit.note is not note:
        visit = host_state.__dict__[_VISIT] = Visit(note, host_state)
    return visit


def _first(candidates_left):
    """The allocation candidate that Nova claims, or None."""
    # Not "if candidates_left": turn.Contested acts when Nova asks that.
    return candidates_left[0] if candidates_left is not None and len(
        candidates_left) else None


def _mapping(candidate) -> ty.Mapping:
    """Request group -> resource provider UUIDs; empty if not known."""
    return candidate.get('mappings') or {} if candidate else {}


def first_mapping(host_state) -> ty.Mapping:
    """Which provider gives which PCI device, by the first candidate.

    :param host_state: ``nova.scheduler.host_manager.HostState``
    :returns: request group -> resource provider UUIDs; empty if not known
    """
    return _mapping(_first(host_state.allocation_candidates))


def pools(host_state) -> list | None:
    """The PCI device pools of a host, with counts of free devices.

    :param host_state: ``nova.scheduler.host_manager.HostState``
    :returns: None if the host reports no PCI devices
    """
    return getattr(host_state.pci_stats, 'pools', None)


def _limit(host_state, name: str) -> float:
    """A limit of ``[nfv_sched]``, or of the host's aggregates."""
    return scheduler.aggregate_limit(
        host_state, name, scheduler.CONF.nfv_sched[name])
