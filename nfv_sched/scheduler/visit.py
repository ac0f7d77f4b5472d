# SPDX-License-Identifier: Apache-2.0
"""Keep one host's resources and decision while one request is scheduled.

All filters and weighers of NUMA placement share them.  They are kept on the
HostState, which Nova makes anew for every request, so that no filter works
them out again and none depends on another having run.
"""

import collections
import functools
import typing as ty
import weakref

from nova import objects

from nfv_sched.base import reasons
from nfv_sched.fit import decide
from nfv_sched.fit.numa import decide as numa_decide
from nfv_sched.fit.numa.decide import Decision
from nfv_sched.fit.numa.decide import Terms
from nfv_sched.fit.numa import shape
from nfv_sched.fit.request import Request
from nfv_sched.limits.decide import refuse_nodes
from nfv_sched.limits import names
from nfv_sched.limits import options
from nfv_sched.nova import scheduler
from nfv_sched.scheduler import active_rules
from nfv_sched.scheduler.notes import RequestNote

_VISIT = '_nfv_sched_visit'


class Visit(scheduler.ConsumeListener):
    """One host while one request is scheduled.

    The decision is kept until something that it depends on changes; see
    :meth:`_key`.

    :ivar host: the resources of the host at the last decision; None before
        that
    """

    __slots__ = ('note', 'host', '_decided_key', '_decision', '_judged',
                 '_written', '_ratio', '_choices', '_held', '_placed',
                 '_taken')

    def __init__(self, request_note: RequestNote, host_state):
        self.note = request_note
        self.host: decide.HostResources | None = None
        self._decided_key: tuple | None = None
        self._decision: Decision | None = None
        # Whether judge() has made the decision, dropped candidates and written
        # limits. decision() does neither.
        self._judged = False
        # The last decision that accepted the host, and the CPU allocation
        # ratio for its limits.
        self._written: Decision | None = None
        self._ratio = 0.0
        # Mappings of each allocation candidate that was kept, in their order,
        # and the decision for it; empty if only the first was decided about.
        self._choices: ty.Sequence[tuple[ty.Any, Decision]] = ()
        # The decision for the server of the request that was placed here
        # last, and the number of servers placed here.
        self._held: Decision | None = None
        self._placed = 0
        # What servers of the request have taken of NUMA nodes since Placement
        # answered, by resource class.
        self._taken: collections.Counter[str] = collections.Counter()
        scheduler.when_placed(host_state, self)

    # -- Nova places a server here

    def before_placed(self, host_state):
        """Write the limits for the allocation candidate that Nova claimed.

        It may not be the first of ours: later filters may drop that one.
        """
        written = self._written
        # The hook stays on the HostState when a visit for another note
        # replaces this one.
        if written is None or host_state.__dict__.get(_VISIT) is not self:
            return
        if self._choices:
            claimed = first_mapping(host_state)
            written = self._written = next(
                (decision for mapping, decision in self._choices
                 if mapping == claimed), written)
        write_limits(host_state, self.note, self.note.request, written,
                     self._ratio)

    def after_placed(self, host_state, spec_obj):
        # Nova filters the hosts again for the next server of a multi-create
        # request, and reads the limits of all its servers after the last.
        # Labels of this server must stay valid until then.
        self._held = self._written or numa_decide.PLAIN
        self._placed += 1
        self._taken.update(self._of_nodes(self._held))

    # -- decisions

    def _key(self, host_state, request: Request, terms: Terms) -> tuple:
        """Return what changes while a request is scheduled, to be compared.

        The decision depends on it; the rest of the host stays as it is until
        the next request. The limits are among it, as they are written again if
        another filter has replaced them.
        """
        candidates = host_state.allocation_candidates
        first = (candidates[0]
                 if candidates is not None and len(candidates) else None)
        return (
            # The placed servers stand for the PCI pools: consume_from_request
            # changes these in place, while it replaces the NUMA topology.
            request, terms, self._placed, host_state.numa_topology,
            host_state.pci_stats, candidates, first, host_state.limits,
            host_state.cpu_allocation_ratio, host_state.ram_allocation_ratio)

    def judge(self, host_state, request: Request, terms: Terms) -> Decision:
        """Decide, and change the host's allocation candidates and limits.

        Allocation candidates that the host cannot serve are dropped, and the
        limits are written for the first that is left, which Nova claims.

        :returns: the decision; the last one if nothing has changed since
        :raises topology.OddTopologyError: if its NUMA cells cannot be read
        :raises pci.OddDevicesError: if its PCI devices cannot be read
        """
        if self._judged and self._decided_key == self._key(
                host_state, request, terms):
            return self._decision
        decision = self._decide_for_all(host_state, request, terms)
        if decision is None:
            candidates, evaluation = (
                host_state.allocation_candidates, self.host.evaluation)
            # Without PCI devices candidates differ in nothing that the
            # decision looks at.
            if len(candidates) > 1 and (
                    request.demands or not evaluation.uniform):
                decision = self._judge_candidates(candidates, request, terms)
            else:
                self._choices = ()
                decision = self._decide_candidate(
                    request, terms, first_mapping(host_state))
            if decision.accepted and terms.strict:
                decision = self._ask_nodes(host_state, terms, decision)
            if decision.accepted:
                self._written = decision
                self._ratio = evaluation.ratios.cpu
                # Servers of the request that are here already keep their
                # limits until one more is placed.
                if self._held is None:
                    write_limits(host_state, self.note, request, decision,
                                 self._ratio)
        self._decision = decision
        # Made again, as candidates and limits have been changed above.
        self._decided_key = self._key(host_state, request, terms)
        self._judged = True
        return decision

    def decision(self, host_state, request: Request, terms: Terms) -> Decision:
        """Decide by the first allocation candidate; change nothing.

        For weighers; as :meth:`judge`, whose decision is used if it holds.
        """
        key = self._key(host_state, request, terms)
        if self._decided_key != key:
            decision = self._decide_for_all(host_state, request, terms)
            if decision is None:
                decision = self._decide_candidate(
                    request, terms, first_mapping(host_state))
            self._decision = decision
            self._decided_key = key
        return self._decision

    def _decide_for_all(self, host_state, request: Request,
                        terms: Terms) -> Decision | None:
        self._decided_key, self._judged = None, False
        self.host = resources(host_state, terms)
        return decide.decide_for_all(self.host, request, terms)

    def _judge_candidates(self, candidates: list, request: Request,
                          terms: Terms) -> Decision:
        """Decide about each allocation candidate; drop refused ones.

        :returns: the decision for the first that is kept; if none is, a
            refusal by a rule if there is one, else one for lack of capacity
        """
        evaluation, traces = self.host.evaluation, None
        # A strict rule must not depend on the candidates before; each is
        # decided about by itself then.
        if not evaluation.uniform and not terms.strict:
            # Nova tries one candidate after the other on the same guest
            # cells: what a failed search writes there changes the next.
            traces = evaluation.request_traces()
        prefixes = tuple(demand.request_id for demand in request.demands
                         if demand.request_id)
        accepted, final, decisions = [], None, {}
        for candidate in candidates:
            # Candidates that differ in other groups only, such as those of
            # ports with a bandwidth, have the same decision.
            mapping = candidate.get('mappings') or {}
            key = None
            if traces is None:  # the order does not matter
                key = repr(sorted(
                    item for item in mapping.items()
                    if item[0].startswith(prefixes))) if prefixes else ''
            if (decision := decisions.get(key)) is None:
                decision = self._decide_candidate(
                    request, terms, mapping, traces)
                if key is not None:
                    decisions[key] = decision
            if decision.accepted:
                accepted.append((decision, candidate))
            if final is None or (
                    final.refused_by == numa_decide.FIT
                    and not final.accepted and not decision.accepted):
                final = decision  # it may be refused by a rule
        if accepted:
            # Nova claims the first. Equal ones stay in Placement's order.
            accepted.sort(key=lambda item: -item[0].value)
            final = accepted[0][0]
            self._keep(candidates, accepted)
        return final

    def _keep(self, candidates: list, accepted: list) -> None:
        # In place: it is the list that Nova has of the host.
        candidates[:] = [candidate for _decision, candidate in accepted]
        self._choices = [(candidate.get('mappings') or {}, decision)
                         for decision, candidate in accepted]

    def _of_nodes(self, decision: Decision) -> dict[str, int]:
        """Return what the claim takes of NUMA nodes, by resource class.

        :returns: empty if the claim has a choice of nodes
        """
        amounts: dict[str, int] = {}
        if decision.only_cells is None:
            return amounts
        guest = self.host.evaluation.pristine
        for index, (cell, position) in enumerate(zip(
                guest.cells, decision.only_cells)):
            host_cell = self.host.topology.cells[position]
            if cpus := cell.number_of_pins(
                    host_cell, 0 if index else guest.reserved):
                amounts[names.node_cpus(host_cell.id)] = cpus
            size = cell.pagesize or 0
            if size > min([page.size_kb for page in host_cell.pages],
                          default=size):
                amounts[names.node_pages(host_cell.id, size)] = (
                    cell.memory * 1024 // size)
        return amounts

    def _ask_nodes(self, host_state, terms: Terms,
                   decision: Decision) -> Decision:
        """Make the candidates take the nodes to which the claim is held.

        Without this, Placement would grant a node to each of several requests
        that are decided at once, as it counts the CPUs of whole hosts.

        :returns: the decision for the first candidate that is kept; a refusal
            if Placement has less than all of them take
        """
        ledgers, candidates = self.note.ledgers, (
            host_state.allocation_candidates)
        if ledgers is None or not candidates or (
                active_rules.loses_labels(self.note, self.note.request)):
            return decision
        accepted, lacking = [], None
        rule = next(rule for rule in terms.rules if rule.strict)
        decisions = ([each for _mapping, each in self._choices]
                     or [decision] * len(candidates))
        for candidate, each in zip(candidates, decisions):
            amounts = self._of_nodes(each)
            available = ledgers.nodes_left(host_state.uuid, amounts)
            reason = refuse_nodes(
                amounts, available, self._taken, rule.order, rule.text)
            if reason is None:
                names.ask_nodes(candidate, host_state.uuid, {
                    name: amounts[name] for name in available})
                accepted.append((each, candidate))
            lacking = lacking or reason
        if lacking is None:
            return decision
        if accepted:
            self._keep(candidates, accepted)
            return accepted[0][0]
        return Decision(False, lacking, rule.filters)

    def _decide_candidate(self, request: Request, terms: Terms,
                          mapping: ty.Mapping,
                          traces: ty.Any = None) -> Decision:
        """Decide by one allocation candidate, once for hosts of one shape.

        :param traces: the state in which Nova's earlier searches left the
            guest cells; None if that does not matter
        """
        host, key = self.host, None
        evaluation = host.evaluation
        capped = evaluation.ratios.cpu != host.cpu_ratio
        # Traces and the labels of earlier servers are this host's alone.
        if traces is None and self._held is None:
            key = shape.host_shape(evaluation, terms, request.demands, mapping)
        if key is not None:
            # The note keeps the terms as long as the decisions, so no id is
            # used twice.
            key = id(terms), capped, key
        decisions = self.note.decisions
        try:
            decision = None if key is None else decisions.get(key)
        except TypeError:  # unhashable facts of another package's rule
            key = decision = None
        if decision is not None and decision.accepted:
            return decision
        again = functools.partial(
            decide.decide_candidate, host, request, mapping, terms, traces,
            self._held)
        if decision is None:
            decision = again()
            # Which rule refuses a host may depend on its own ratio.
            if key is not None and (decision.accepted or not capped):
                decisions[key] = decision
        else:
            # The figures in a reason differ between hosts of one shape.
            reason = decision.reason
            decision = Decision(False, lambda: reasons.resolve(
                again().reason or reason), decision.refused_by)
        return decision

    def expected(self, host_state, request: Request) -> (
            tuple[int, ...] | None):
        """Return the host cells that the claim is expected to choose.

        To be called after :meth:`judge` or :meth:`decision` has accepted the
        host.

        :returns: position of that of each guest cell; None if not known
        """
        return decide.expected_cells(
            self.host, request, first_mapping(host_state), self._decision)


def for_host(host_state, request_note: RequestNote) -> Visit:
    visit = host_state.__dict__.get(_VISIT)
    if visit is None or visit.note is not request_note:
        visit = host_state.__dict__[_VISIT] = Visit(request_note, host_state)
    return visit


def placed(host_state, request_note: RequestNote, spec_obj) -> None:
    """Handle a server as placed on a HostState that Nova does not know."""
    visit = host_state.__dict__.get(_VISIT)
    if visit is not None and visit.note is request_note:
        visit.after_placed(host_state, spec_obj)


def judge_once(host_state, request_note: RequestNote, request: Request,
               terms: Terms) -> Decision:
    """Decide about a ``plain`` request; keep nothing on the host, for speed.

    :param host_state: not with an empty list of allocation candidates
    """
    candidates = host_state.allocation_candidates
    if candidates is not None and len(candidates) > 1 and (
            request.demands or not request.one_cell):
        return for_host(host_state, request_note).judge(
            host_state, request, terms)
    # No hook and no weak reference: no rule needs them.
    host = decide.HostResources(
        host_state.numa_topology, host_state.cpu_allocation_ratio,
        host_state.ram_allocation_ratio,
        getattr(host_state.pci_stats, 'pools', None), None,
        request_note.decisions)
    mapping = None
    if request.demands and candidates is not None:
        mapping = candidates[0].get('mappings')
    decision = decide.decide(host, request, mapping, terms)
    if decision.accepted:
        write_limits(host_state, request_note, request, decision,
                     host_state.cpu_allocation_ratio)
    return decision


def resources(host_state, terms: Terms | None = None) -> decide.HostResources:
    """Return the free resources of a host; no rules count without terms."""
    limit = None
    if terms is not None and terms.capping:
        # A strong reference would keep the host longer than its request.
        limit = functools.partial(
            options.host_limit, scheduler.CONF, weakref.proxy(host_state))
    return decide.HostResources(
        host_state.numa_topology, host_state.cpu_allocation_ratio,
        host_state.ram_allocation_ratio,
        getattr(host_state.pci_stats, 'pools', None), limit)


def first_mapping(host_state) -> ty.Mapping:
    """Return request group -> provider UUIDs of the first candidate, or {}."""
    candidates = host_state.allocation_candidates
    return candidates and candidates[0].get('mappings') or {}


def with_labels(limits, labels: frozenset[str], ignore_tunnel: bool):
    """Return a copy of ``NUMATopologyLimits`` with labels added.

    :param ignore_tunnel: do not require a NUMA node near the tunnel endpoint
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


def write_limits(host_state, request_note: RequestNote, request: Request,
                 decision: Decision, cpu_ratio: float) -> None:
    """Set the NUMA limits of a host to those that a decision needs.

    Nova sends ``HostState.limits`` to the host with the server: the allocation
    ratios, and the physical networks that the chosen host NUMA nodes must be
    near. The labels of the decision are added to these networks.

    :param cpu_ratio: CPU allocation ratio for the claim, in shared vCPUs per
        shared CPU: Nova's ratio of the host, or less
    """
    labels = decision.labels
    # Nova sets "tunneled" for every move
    # (RequestSpec.ensure_network_information); the networks of the request may
    # show that it is not so.
    ignore_tunnel = decision.ignore_tunnel or request.tunnel_untrue
    ratio = host_state.ram_allocation_ratio
    # Hosts with the same values share one object.
    key = (cpu_ratio, ratio, labels, ignore_tunnel)
    if (topology_limits := request_note.limits.get(key)) is None:
        topology_limits = scheduler.numa_topology_limits(
            cpu_ratio, ratio, request.network_metadata)
        if labels or ignore_tunnel:
            topology_limits = with_labels(
                topology_limits, labels, ignore_tunnel)
        request_note.limits[key] = topology_limits
    host_state.limits['numa_topology'] = topology_limits
