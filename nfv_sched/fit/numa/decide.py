# SPDX-License-Identifier: Apache-2.0
"""Decide whether a host can take a guest, and with which labels.

The rules of the request narrow the host cells that Nova would accept.  Sets of
labels are tried, in the order of ``numa_rule.GuestOnHost.label_sets``.  The
decision has the first set with which the rules are *enforced*: the claim
satisfies them in every state that the host may be in by then.  Preferred
rules, and strict ones with ``strict_enforcement = predicted``, are content
with *predicted*: the claim would satisfy them on the host as it is known now.

No I/O and no Nova objects.  The rules are arguments; this module knows none.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
import dataclasses
import functools
import itertools
import types
import typing as ty

from nfv_sched.base import reasons
from nfv_sched.fit.numa.evaluation import CellSorting
from nfv_sched.fit.numa.evaluation import Evaluation
from nfv_sched.fit.numa.evaluation import MAX_CLAIM_TRIES
from nfv_sched.fit.numa import labels as numa_labels
from nfv_sched.fit.numa import pci
from nfv_sched.fit.numa import rule as numa_rule
from nfv_sched.fit.numa import shortage
from nfv_sched.fit.numa import topology

#: The filters that refuse a host that the guest does not fit by Nova's rules.
FIT = ('NFVTopologyFilter',)

# Up to this number of preferred rules, all combinations are tried; of more,
# only all together and each alone.
_COMBINED = 4

_NO_DEGREES: Mapping[str, float] = types.MappingProxyType({})
_NOTHING: frozenset[str] = frozenset()


@dataclasses.dataclass(frozen=True, slots=True)
class Decision:
    accepted: bool  #: whether the host can take the guest
    reason: reasons.Lazy | None = None  #: why not; None if accepted
    #: class names of the filters of the rule that leaves no choice; ``FIT`` if
    #: the guest does not fit by Nova's own rules; empty if any calling filter
    #: refuses the host. Meaningless if accepted.
    refused_by: tuple[str, ...] = FIT
    #: labels to add to the physical networks in the limits
    labels: frozenset[str] = _NOTHING
    #: the labels among them that strict rules need
    strict_labels: frozenset[str] = _NOTHING
    #: the host NUMA cells, by position, to which strict rules hold the claim
    #: in any state of the host: that of each guest cell; None if it has a
    #: choice
    only_cells: tuple[int, ...] | None = None
    #: the limits must not require the tunnel endpoint
    ignore_tunnel: bool = False
    #: text of a rule -> how far it is satisfied, 0 to 1
    degrees: Mapping[str, float] = dataclasses.field(
        default_factory=lambda: _NO_DEGREES)
    #: the decision for the server of the same request that was placed on this
    #: host last, if this one would drop labels of it. The servers share the
    #: limits of the host.
    displaces: 'Decision | None' = None

    @property
    def value(self) -> float:
        """Sum of the degrees, to compare allocation candidates."""
        return sum(self.degrees.values())


PLAIN = Decision(True)


class Terms(ty.NamedTuple):
    """The rules and options of a request, the same for all hosts."""

    #: the rules that count, in the order in which they are evaluated
    rules: tuple[numa_rule.Rule, ...]
    #: labels may be added to the limits; otherwise preferred rules only give
    #: degrees, for the weighers
    steered: bool
    names: numa_rule.Names  #: names of the labels
    #: strict rules, too, need only be predicted to be satisfied by the claim
    predicted_is_enough: bool = False
    limits_lost: bool = False  #: the claim is made without the limits
    #: the rules among them that lower the CPU allocation ratio
    capping: tuple[numa_rule.Rule, ...] = ()
    #: rules of the request that override :meth:`Rule.unsuitable_reason`,
    #: whether they count otherwise or not
    refusing: tuple[numa_rule.Rule, ...] = ()
    sorting: CellSorting = CellSorting()  #: how Nova sorts the cells of a host

    @property
    def strict(self) -> bool:
        return any(rule.strict for rule in self.rules)


class RequestNetworks(ty.Protocol):
    """The networks of a request that Nova's NUMA placement considers."""

    #: physical networks; a chosen host cell must be near each
    physnets: frozenset[str]
    tunneled: bool  #: whether one must be near the tunnel endpoint
    tunnel_uncertain: bool  #: whether ``tunneled`` may be wrong


def _network_groups(host: topology.HostTopology,
                    networks: RequestNetworks) -> tuple[list[int], list[int]]:
    """Return bitmasks of host cells near the networks, and near the tunnel.

    Nova demands nothing for networks that the host does not declare.
    """
    labels = host.labels
    groups = [labels[physnet] for physnet in networks.physnets
              if physnet in labels]
    tunnel = [host.tunnel] if networks.tunneled and host.tunnel else []
    return groups, tunnel


def claim_groups(host: topology.HostTopology, networks: RequestNetworks,
                 decision: Decision) -> list[int]:
    """Return bitmasks: the claim must choose one host cell of each."""
    physnets, tunnel = _network_groups(host, networks)
    groups = physnets if decision.ignore_tunnel else physnets + tunnel
    return groups + [host.labels[label] for label in decision.labels]


def strict_cells(host: topology.HostTopology, masks: Sequence[int],
                 terms: Terms) -> tuple[Sequence[int], list[numa_rule.Rule]]:
    """Return the host cells that strict policies leave, whatever is free.

    :returns: bitmask for each guest cell, and the rules that left cells out
    """
    narrowing = []
    for rule in terms.rules:
        facts = rule.read(host, terms.names)
        if not rule.strict or facts is None:
            continue
        narrowed = rule.narrow(facts, numa_rule.Goal(masks))
        if list(narrowed) != list(masks):
            narrowing.append(rule)
        masks = narrowed
    return masks, narrowing


def floating(host: topology.HostTopology | None, terms: Terms) -> Decision:
    """Decide about a guest with floating CPUs; None: no host cells known."""
    degrees = {}
    for rule in terms.rules:
        outcome = rule.floating(host, terms.names)
        if isinstance(outcome, reasons.Reason):
            return Decision(False, outcome, rule.filters)
        degrees[rule.text] = outcome
    return Decision(True, degrees=degrees)


def decide(evaluation: Evaluation, networks: RequestNetworks, terms: Terms,
           devices: pci.CandidateDevices | None = None, traces=None,
           held: Decision | None = None) -> Decision:
    """Decide about one guest on one host, for one allocation candidate.

    :param devices: the PCI devices of the host; None if none are requested
    :param traces: the state in which Nova's earlier searches left the guest
        cells; changed
    :param held: the decision for the server that the same request placed on
        this host last; its labels must do for this server, too
    """
    physnets, tunnel = _network_groups(evaluation.host, networks)
    decision = _Decider(
        numa_labels.ClaimPredictor(
            evaluation, terms.names, devices, physnets + tunnel),
        terms, False).decide(traces, held)
    # RequestSpec.ensure_network_information() begins with tunneled = True for
    # each move, so only on moves is the tunnel uncertain.
    if not tunnel or not networks.tunnel_uncertain:
        return decision
    # All preferred rules are satisfied in full: nothing can be better.
    if decision.accepted and (
            not terms.steered
            or decision.value == sum(rule.weighed for rule in terms.rules)):
        return decision
    # Nova sets "tunneled" for every move. Whether the server uses a tunnel is
    # not known, so its endpoint is only preferred.
    without = _Decider(
        numa_labels.ClaimPredictor(evaluation, terms.names, devices, physnets),
        terms, True).decide(traces, held)
    if without.accepted and (
            not decision.accepted or without.value > decision.value):
        return without
    if not decision.accepted and decision.refused_by == FIT:
        return without  # also refused, maybe by a rule
    return decision


class _Decider:
    """Decides about one guest on one host; see :func:`decide`."""

    def __init__(self, predictor: numa_labels.ClaimPredictor, terms: Terms,
                 ignore_tunnel: bool):
        self.predictor = predictor
        self.terms = terms
        self.ignore_tunnel = ignore_tunnel
        host = predictor.host
        self.rules = [(rule, rule.read(host, terms.names))
                      for rule in terms.rules]
        self.strict = terms.strict
        if self.strict:
            predictor.strict_text = self._text()

    def decide(self, traces, held: Decision | None) -> Decision:
        predictor = self.predictor
        evaluation = predictor.evaluation
        # The filter's search begins with the guest cells of the RequestSpec.
        # consume_from_request has changed them for earlier servers of the
        # request; the claim reads them anew from the database.
        if traces is None and not evaluation.uniform:
            traces = evaluation.request_traces()
        if not evaluation.accepted(predictor.groups, predictor.stock, traces):
            return Decision(False, functools.partial(
                shortage.capacity_reason, evaluation, groups=predictor.groups,
                devices=predictor.devices, pci_policy=next(
                    (rule.text for rule, _facts in self.rules
                     if rule.strict and rule.devices),
                    shortage.PCI_DEVICES)))
        if not self.rules:
            return self._accept(_NOTHING, _NOTHING)
        if not self.terms.steered:
            return self._accept(_NOTHING, _NOTHING, held)
        must = numa_rule.Goal(evaluation.masks, (), predictor.stock)
        if not self.strict and not predictor.possible(must):
            # Nova accepts the host only because its search takes one guest
            # cell for another. Preferred rules must not refuse it.
            return self._accept(_NOTHING, _NOTHING, held)
        for rule, facts in self.rules:
            if not rule.strict:
                continue
            # First what the host lacks whichever guests leave.
            if (reason := rule.missing_reason(facts, predictor)) is not None:
                return Decision(False, reason, rule.filters)
            narrowed = self._add_rule(must, rule, facts)
            if not predictor.possible(narrowed):
                return Decision(False, functools.partial(
                    self._capacity_reason, rule, facts, must), rule.filters)
            must = narrowed
        return self._decide_strict(must, held)

    def _add_rule(self, goal: numa_rule.Goal, rule: numa_rule.Rule,
                  facts: numa_rule.Facts) -> numa_rule.Goal:
        if (condition := rule.condition(facts, self.predictor)) is None:
            condition = goal.condition
        elif goal.condition is not None:
            condition = goal.condition & condition
        return numa_rule.Goal(rule.narrow(facts, goal),
                              (*goal.rules, (rule, facts)), condition)

    def _capacity_reason(self, rule: numa_rule.Rule, facts: numa_rule.Facts,
                         before: numa_rule.Goal) -> reasons.Reason:
        host = self.predictor.host
        allowed = numa_rule.Goal([host.all_cells] * len(before.masks))
        for other, other_facts in before.rules:
            allowed = numa_rule.Goal(other.narrow(other_facts, allowed))
        return rule.capacity_reason(facts, self.predictor,
                                    before._replace(allowed=allowed.masks))

    # -- which labels make the claim satisfy the rules

    def _satisfies(self, goal: numa_rule.Goal,
                   chosen: Sequence[int] | None) -> bool:
        return chosen is not None and all(
            rule.is_satisfied(facts, self.predictor, chosen)
            for rule, facts in goal.rules)

    def _is_enforced(self, labels: frozenset[str],
                     goal: numa_rule.Goal) -> bool:
        """Return whether labels hold the claim to a goal in any host state."""
        # Live migrations before Nova 34 lose all limits (bug 2153425).
        if self.terms.limits_lost and self.terms.capping:
            # The lower CPU allocation ratio is one of the limits.
            return False
        predictor = self.predictor
        groups = ([] if self.terms.limits_lost
                  else predictor.label_groups(labels))
        if not all(rule.is_always_satisfied(facts, predictor, groups)
                   for rule, facts in goal.rules):
            return False
        # Labels have been checked for this before; without labels, and without
        # strict rules, the claim is what stock Nova would do.
        return not self.strict or predictor.keeps_pins(labels)

    def _labels_suffice(self, labels: frozenset[str],
                        must: numa_rule.Goal) -> bool:
        return self._satisfies(must, self.predictor.predicted(labels)) and (
            self.terms.predicted_is_enough or self._is_enforced(labels, must))

    def _find(
        self, goal: numa_rule.Goal, options: Iterable[frozenset[str]] | None,
    ) -> frozenset[str] | None:
        """Return the first set of labels that makes the claim satisfy a goal.

        Sets that enforce the rules come first; then, if that is enough, sets
        with which they are predicted to be satisfied.

        :param options: sets of labels to choose from, in this order; None for
            those of ``numa_rule.GuestOnHost.label_sets``
        """
        predictor, enough = self.predictor, self.terms.predicted_is_enough
        if options is None:
            options = predictor.label_sets(goal)
        # They are gone through twice.
        if enough:
            options = list(options)
        for labels in options:
            if self._is_enforced(labels, goal) and self._satisfies(
                    goal, predictor.predicted(labels)):
                return labels
        # Without limits the claim lacks the labels and networks of the choice.
        if enough and not self.terms.limits_lost:
            for labels in options:
                if self._satisfies(goal, predictor.predicted(labels)):
                    return labels
        return None

    def _find_preferred(
        self, goal: numa_rule.Goal, must: numa_rule.Goal,
        options: Iterable[frozenset[str]] | None,
    ) -> frozenset[str] | None:
        """Return the first labels that satisfy all rules, as :meth:`_find`."""
        predictor, fallback = self.predictor, None
        for labels in (predictor.label_sets(goal)
                       if options is None else options):
            if not self._satisfies(goal, predictor.predicted(labels)):
                continue
            if self._is_enforced(labels, goal):
                return labels
            if fallback is None and self._labels_suffice(labels, must):
                fallback = labels
        return fallback

    # -- decisions

    def _accept(self, labels: frozenset[str], strict_labels: frozenset[str],
                held: Decision | None = None) -> Decision:
        if self._claim_too_long(labels):
            return Decision(False, reasons.Reason(
                reasons.ENFORCEMENT, 'NUMA topology',
                'a claim of reasonable length needed',
                "Nova's search on this host would try more than "
                f'{MAX_CLAIM_TRIES} arrangements'))
        degrees = _NO_DEGREES
        if self.rules:
            degrees = self._degrees(self.rules, labels)
        # Nova builds the Selections of a multi-create request after its last
        # server, from the limits as they are then: this decision would take
        # the labels from the server before.
        displaces = None
        if held is not None and held.labels - labels:
            displaces = held
        only_cells = None
        if self.strict and not self.terms.limits_lost:
            only_cells = self.predictor.only_choice(labels, strict_labels)
        return Decision(
            True, labels=labels, strict_labels=strict_labels,
            only_cells=only_cells, ignore_tunnel=self.ignore_tunnel,
            degrees=degrees, displaces=displaces)

    def _claim_too_long(self, labels: frozenset[str]) -> bool:
        evaluation = self.predictor.evaluation
        # With labels, choose_steered has given up after far fewer.
        if labels or not evaluation.many_permutations:
            return False
        chosen = self.predictor.predicted(labels)
        return chosen is not None and evaluation.claim_tries(
            chosen) > MAX_CLAIM_TRIES

    def _degrees(self, rules: Iterable[tuple[numa_rule.Rule, numa_rule.Facts]],
                 labels: frozenset[str]) -> dict[str, float]:
        """Predict the degree of each weighed rule, by the text of the rule."""
        chosen = self.predictor.predicted(labels)
        return {
            rule.text: 0.0 if chosen is None else rule.degree(
                facts, self.predictor, chosen)
            for rule, facts in rules if rule.weighed}

    def _decide_strict(self, must: numa_rule.Goal,
                       held: Decision | None) -> Decision:
        # The servers of one request share the limits of the host, so this
        # server must do with the labels of the one before.
        options = None if held is None else [held.strict_labels]
        if (strict := self._find(must, options)) is not None:
            return self._decide_preferred(must, strict, held)
        # The rule to name is the first with which no labels are left.
        blamed = next(
            (number for number in range(len(must.rules)) if self._find(
                self._first_rules(must, number + 1), options) is None), None)
        refused_by = FIT if blamed is None else (must.rules[blamed][0].filters)
        if held is not None and self.strict:
            return Decision(False, reasons.Reason(
                reasons.ENFORCEMENT, self.predictor.strict_text,
                'the NUMA nodes of the other servers of the request on '
                'this host needed', 'full'), refused_by)
        return Decision(False, functools.partial(
            self._not_held, must, blamed), refused_by)

    def _first_rules(self, goal: numa_rule.Goal, count: int) -> numa_rule.Goal:
        narrowed = numa_rule.Goal(
            self.predictor.evaluation.masks, (), self.predictor.stock)
        for rule, facts in goal.rules[:count]:
            narrowed = self._add_rule(narrowed, rule, facts)
        return narrowed

    def _text(self) -> str:
        return ', '.join(
            rule.text for rule in sorted(
                self.terms.rules, key=lambda rule: rule.order)
            if rule.strict)

    def _not_held(self, must: numa_rule.Goal,
                  blamed: int | None) -> reasons.Reason:
        """Return why no labels make the claim satisfy the strict rules.

        :param blamed: position of the first rule that no labels enforce; None
            if there are labels for each rule in turn
        """
        predictor = self.predictor
        policy = predictor.strict_text
        if self.terms.limits_lost:
            lost, them = (('a lower CPU allocation ratio', 'it')
                          if self.terms.capping else ('labels', 'them'))
            return reasons.Reason(
                reasons.ENFORCEMENT, policy,
                f'a claim that keeps it without {lost} needed for a live '
                f'migration',
                f'this Nova loses {them}: migrate the server cold')
        if blamed is not None:
            rule, facts = must.rules[blamed]
            reason = rule.claim_reason(
                facts, predictor, self._first_rules(must, blamed))
            if reason is not None:
                return reason
        if predictor.pins_astray:
            return reasons.Reason(
                reasons.ENFORCEMENT, policy,
                'a claim that pins no CPUs of other NUMA nodes needed',
                'hw:cpu_thread_policy=isolate on this host allows it')
        if predictor.node_labels(predictor.host.all_cells) is None:
            prefix = predictor.names.node_prefix
            return reasons.Reason(
                reasons.ENFORCEMENT, policy,
                f'labels {prefix}0, {prefix}1, ... needed to hold the server '
                f'on its host NUMA nodes', 'the host declares none for them')
        if any(rule.assigns_cells for rule, _facts in must.rules):
            return reasons.Reason(
                reasons.ENFORCEMENT, policy,
                'a placement that the claim cannot change needed',
                'the guest NUMA nodes could change places')
        return reasons.Reason(
            reasons.ENFORCEMENT, policy,
            'NUMA nodes to which the claim can be held needed',
            "Nova's search misses those with capacity")

    def _decide_preferred(self, must: numa_rule.Goal, strict: frozenset[str],
                          held: Decision | None) -> Decision:
        """Accept, with labels for as many preferred rules as possible."""
        # Sorted anew: the order of the filters must not matter.
        preferred = sorted(
            [(rule, facts) for rule, facts in self.rules
             if not rule.strict and rule.applies(facts, self.predictor)],
            key=lambda item: (item[0].order, item[0].text))
        if not preferred:
            return self._accept(strict, strict, held)
        options = None if held is None else [held.labels]
        for chosen in _combinations(preferred):
            goal = must
            for rule, facts in chosen:
                goal = self._add_rule(goal, rule, facts)
            if self.predictor.possible(goal):
                labels = self._find_preferred(goal, must, options)
                if labels is not None:
                    return self._accept(labels, strict, held)
        return self._accept_preferred(must, preferred, strict, held)

    def _accept_preferred(
        self, must: numa_rule.Goal,
        preferred: list[tuple[numa_rule.Rule, numa_rule.Facts]],
        strict: frozenset[str], held: Decision | None,
    ) -> Decision:
        """Accept with labels of the highest degrees, none of them full."""
        options: list[frozenset[str]] = [strict]
        if held is not None:
            # Labels of the last server may be dropped, but not strict ones.
            options = [held.labels, held.strict_labels]
        else:
            for rule, facts in preferred:
                options += rule.partial_labels(facts, self.predictor, must)
        best, most = strict, (-1.0,)
        for labels in options:
            if not self._labels_suffice(labels, must):
                continue
            # Equal sums are told apart by the order of the rules, so that the
            # result does not depend on that of the filters.
            degrees = tuple(self._degrees(preferred, labels).values())
            score = (sum(degrees), *degrees)
            if score > most:
                best, most = labels, score
        return self._accept(best, strict, held)


def _combinations(preferred: list) -> Iterator[Sequence]:
    """Yield sets of preferred rules to try together, the largest first."""
    count = len(preferred)
    for size in range(count, 0, -1):
        if count <= _COMBINED or size in (1, count):
            yield from itertools.combinations(preferred, size)
