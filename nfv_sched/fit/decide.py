# SPDX-License-Identifier: Apache-2.0
"""Decide whether a host can take the guest of a request.

This is the only place that does so: filters, weighers and the tools that count
or plan all come here.  A host is refused, in this order, if it can never
satisfy a rule, if it does not report its NUMA topology or allocation ratios,
if the guest does not fit by Nova's own rules, or if the rules of the request
leave no choice; :mod:`nfv_sched.fit.numa.decide` works out the last.

No I/O, no Nova objects but the host's NUMA topology, and nothing is changed.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from collections.abc import MutableMapping, Sequence
import dataclasses
import functools
import math
import typing as ty

from nfv_sched.base import reasons
from nfv_sched.fit.numa import candidates
from nfv_sched.fit.numa import decide as numa_decide
from nfv_sched.fit.numa.decide import Decision
from nfv_sched.fit.numa.decide import Terms
from nfv_sched.fit.numa import evaluation as numa_evaluation
from nfv_sched.fit.numa import fit
from nfv_sched.fit.numa import labels
from nfv_sched.fit.numa import pci
from nfv_sched.fit.numa import pci_shortage
from nfv_sched.fit.numa import rule as numa_rule
from nfv_sched.fit.numa import shape
from nfv_sched.fit.numa import shortage
from nfv_sched.fit.numa.topology import GuestTopology
from nfv_sched.fit.numa.topology import host_topology
from nfv_sched.fit.numa.topology import HostCell
from nfv_sched.fit.numa.topology import HostTopology
from nfv_sched.fit.request import Request

#: Without NUMA limits the claim knows no allocation ratio.
UNLIMITED = fit.Ratios(math.inf, math.inf)

#: The filters that refuse a host for a PF and VFs of one card.
CARD = ('NFVTopologyFilter', 'PCINUMAAffinityFilter')

_NO_NODES = HostTopology(())

_NO_TOPOLOGY = Decision(False, reasons.Reason(
    reasons.HOST, 'NUMA topology', 'a host with a NUMA topology needed'))
_NO_RATIOS = Decision(False, reasons.Reason(
    reasons.HOST, 'NUMA topology',
    'a host that reports its allocation ratios needed'))


@dataclasses.dataclass(slots=True, eq=False)
class HostResources:
    """The free resources of a host, evaluated for one request.

    Results for one allocation candidate are kept for the next.

    :param numa_topology: ``nova.objects.NUMATopology``, read when it is
        needed; None if the host reports none
    :param cpu_ratio: by Nova; None, as ``ram_ratio``, if it reports none
    :param pools: pools of its free PCI devices; None if it reports none
    :param limit: returns the value of a limit of ``[nfv_sched]`` for the host,
        by name; None if no rule lowers the CPU allocation ratio
    :param shared: PCI devices of earlier hosts, by their shape; changed. None
        to share none
    """

    numa_topology: ty.Any
    cpu_ratio: float | None
    ram_ratio: float | None
    pools: Sequence[Mapping] | None
    limit: Callable[[str], float] | None = None
    shared: MutableMapping[Hashable, ty.Any] | None = None
    topology: HostTopology | None = None
    evaluation: numa_evaluation.Evaluation | None = None
    _devices: pci.HostDevices | None = None

    def read(self) -> HostTopology | None:
        """Read the NUMA cells, if any; may raise OddTopologyError."""
        if self.topology is None:
            self.topology = host_topology(self.numa_topology)
        return self.topology

    def evaluate(
        self, request: Request, sorting: numa_evaluation.CellSorting,
        capping: Iterable[numa_rule.Rule] = (),
    ) -> numa_evaluation.Evaluation:
        """Return the evaluation; the host must report cells and ratios."""
        if (evaluation := self.evaluation) is None:
            ratio = self.cpu_ratio
            if self.limit is not None:
                ratio = capped_ratio(self.topology, ratio, capping, self.limit)
            evaluation = self.evaluation = numa_evaluation.Evaluation(
                self.topology, request.guest,
                fit.ratios(ratio, self.ram_ratio), self.pools,
                bool(request.demands), sorting, request.pristine)
        return evaluation

    def devices(self, request: Request,
                mapping: Mapping | None) -> pci.CandidateDevices | None:
        """Return free PCI devices; None if none are requested or reported.

        :raises pci.OddDevicesError: if they cannot be read
        """
        if not request.demands or self.pools is None:
            return None
        if self._devices is None:
            self._devices = pci.HostDevices(
                self.pools, request.demands,
                self.topology or self.read() or _NO_NODES)
        return pci.CandidateDevices(self._devices, mapping)

    def like_devices(self, request: Request,
                     mapping: Mapping | None) -> pci.CandidateDevices | None:
        """Return devices that accept the same NUMA cells as :meth:`devices`.

        Hosts whose pools give the same answers to the request share one
        object; see ``shape.of_devices``.  Its figures may be another host's.
        """
        shared = self.shared
        if shared is None or self.pools is None:
            return self.devices(request, mapping)
        try:
            key = shape.of_devices(
                self.pools, request.demands, mapping, self.topology.cells)
            devices = shared.get(key)
        except Exception:  # odd pools; devices() raises the right error
            return self.devices(request, mapping)
        if devices is None:
            devices = shared[key] = self.devices(request, mapping)
        return devices


def capped_ratio(host: HostTopology, ratio: float,
                 rules: Iterable[numa_rule.Rule],
                 limit: Callable[[str], float]) -> float:
    for rule in rules:
        ratio = rule.cpu_ratio(host, ratio, limit)
    return ratio


def decide(host: HostResources, request: Request, mapping: Mapping | None,
           terms: Terms) -> Decision:
    """Decide about a host by one of its allocation candidates.

    :param mapping: request group -> resource provider UUIDs of the allocation
        candidate; empty or None without PCI in Placement
    :raises topology.OddTopologyError: if the NUMA cells cannot be read
    :raises pci.OddDevicesError: if the PCI devices cannot be read
    """
    if request.one_cell and host.numa_topology is not None and (
            host.cpu_ratio is not None and host.ram_ratio is not None):
        return _decide_one_cell(host, request, mapping, terms)
    if (decision := decide_for_all(host, request, terms)) is None:
        decision = decide_candidate(host, request, mapping, terms)
    return decision


def _decide_one_cell(host: HostResources, request: Request,
                     mapping: Mapping | None, terms: Terms) -> Decision:
    """Decide for a guest that needs one NUMA cell only, as most do."""
    cell, reserved = request.guest.cells[0], request.guest.reserved
    ratios = fit.ratios(host.cpu_ratio, host.ram_ratio)
    devices = None
    cells: Iterable[HostCell]
    if not request.demands:
        # Read one by one: the cells after the first that fits are not read.
        cells = map(HostCell, host.numa_topology.cells)
    elif host.read() is None:
        return _NO_TOPOLOGY
    else:
        cells = host.topology.cells
        devices = host.like_devices(request, mapping)
    bit = 1
    for host_cell in cells:
        if fit.check(host_cell, cell, cell.pagesize, reserved,
                     ratios) == fit.FITS and (
                         devices is None or devices.accepts(bit)):
            return numa_decide.PLAIN
        bit <<= 1
    return Decision(False, functools.partial(
        _shortage, host, request, mapping, terms))


def _shortage(host: HostResources, request: Request,
              mapping: Mapping | None, terms: Terms) -> reasons.Reason:
    if host.read() is None:
        return reasons.resolve(_NO_TOPOLOGY.reason)
    return shortage.capacity_reason(
        host.evaluate(request, terms.sorting),
        devices=host.devices(request, mapping))


def decide_for_all(host: HostResources, request: Request,
                   terms: Terms) -> Decision | None:
    """Decide; None, with the host evaluated, if the candidate matters."""
    view = host.read()
    # Before the guest's size: on such a host no amount of free CPUs helps.
    if view is not None and terms.refusing:
        if (decision := refuse_always(view, terms.refusing)) is not None:
            return decision
    # Nova's filter looks at no host for a guest without NUMA topology, either.
    if request.guest is None:
        decision = numa_decide.floating(view, terms)
        return _without_card(decision, host, request, None)
    if view is None:
        return _NO_TOPOLOGY
    if host.cpu_ratio is None or host.ram_ratio is None:
        return _NO_RATIOS
    host.evaluate(request, terms.sorting, terms.capping)
    return None


def refuse_always(host: HostTopology,
                  rules: Iterable[numa_rule.Rule]) -> Decision | None:
    """Refuse a host that can never satisfy a rule; None if it may."""
    for rule in rules:
        if (reason := rule.unsuitable_reason(host)) is not None:
            return Decision(False, reason, rule.filters)
    return None


def decide_candidate(
    host: HostResources, request: Request, mapping: Mapping | None,
    terms: Terms, traces: ty.Any = None, held: Decision | None = None,
) -> Decision:
    """Decide by an allocation candidate, after :func:`decide_for_all`.

    For ``traces`` and ``held`` see :func:`nfv_sched.fit.numa.decide.decide`.
    """
    evaluation = host.evaluation
    devices = host.devices(request, mapping)
    if not terms.rules:
        decision = _decide_by_nova(evaluation, request, devices, traces)
        if decision is not None:
            return _without_card(decision, host, request, mapping)
    decision = numa_decide.decide(
        evaluation, request, terms, devices, traces, held)
    ratio = host.cpu_ratio
    # With Nova's ratio the guest might fit: then the rule that lowers it
    # refuses the host, and not its size.
    if not decision.accepted and decision.refused_by == numa_decide.FIT and (
            evaluation.ratios.cpu != ratio):
        for rule in terms.rules:
            reason = rule.cpu_ratio_reason(
                evaluation, fit.ratios(ratio, evaluation.ratios.ram))
            if reason is not None:
                return Decision(False, reason, rule.filters)
    return _without_card(decision, host, request, mapping)


def _without_card(decision: Decision, host: HostResources, request: Request,
                  mapping: Mapping | None) -> Decision:
    """Refuse a host of which the claim would take a PF and VFs of a card.

    Nova's filters pass it.  The claim fails, and the host loses these VFs: it
    puts back the PF only.
    """
    if not (request.may_take_card and decision.accepted):
        return decision
    if (devices := host.devices(request, mapping)) is None:
        return decision
    chosen = masks = None
    if request.guest is not None:
        chosen = expected_cells(host, request, mapping, decision)
        if chosen is None:
            return decision
        masks = [1 << cell for cell in chosen]
    # The allocation candidate of a floating server is not known.
    elif any(pool.get('rp_uuid') for pool in host.pools or ()):
        return decision
    cells = None if chosen is None else candidates.mask_of(chosen)
    if devices.taken(cells) is None or devices.claimable(cells):
        return decision
    return Decision(False, lambda: reasons.devices_reason(
        pci_shortage.find(devices, masks), reasons.CAPACITY,
        shortage.PCI_DEVICES), CARD)


def _decide_by_nova(evaluation: numa_evaluation.Evaluation, request: Request,
                    devices: pci.CandidateDevices | None,
                    traces: ty.Any) -> Decision | None:
    """Decide by Nova's own rules; None if that is not enough.

    So if the tunnel is uncertain, or Nova's claim might search for too long.
    """
    if evaluation.many_permutations or request.tunnel_uncertain:
        return None
    groups: list[int] = []
    if request.physnets or request.tunneled:
        groups = numa_decide.claim_groups(
            evaluation.host, request, numa_decide.PLAIN)
    # Nova's filter begins with the guest cells of the RequestSpec.
    if traces is None and not evaluation.uniform:
        traces = evaluation.request_traces()
    if evaluation.accepted(
            groups, None if devices is None else devices.stock, traces):
        return numa_decide.PLAIN
    return Decision(False, functools.partial(
        shortage.capacity_reason, evaluation, groups=groups,
        devices=devices))


def expected_cells(host: HostResources, request: Request,
                   mapping: Mapping | None,
                   decision: Decision | None) -> tuple[int, ...] | None:
    """Return the NUMA cells that the claim is expected to choose.

    :param decision: the decision, which accepts the host; None if no filter
        hands NUMA limits to the claim
    :returns: position of the host cell of each guest cell; None if the claim
        is expected to fail, or the guest has no NUMA cells
    """
    if (evaluation := host.evaluation) is None:
        return None
    groups: Sequence[int] = ()
    if decision is not None:
        groups = numa_decide.claim_groups(evaluation.host, request, decision)
    devices = host.devices(request, mapping)
    return evaluation.choose(
        groups, None if devices is None else devices.stock)


def broken_rules(rules: Iterable[numa_rule.Rule], host: HostTopology | None,
                 names: numa_rule.Names, guest: GuestTopology | None = None,
                 pinning: numa_rule.Pinning | None = None,
                 devices: pci.CandidateDevices | None = None,
                 networks_known: bool = True) -> Iterator[reasons.Reason]:
    """Yield the reason for each rule that a server breaks on its host.

    Nothing else on the host counts: the server runs there already.

    :param host: NUMA cells of the host; None if it reports none
    :param guest: NUMA cells of the server; None if its CPUs float
    :param pinning: host cells of these cells; None as well then
    :param networks_known: whether the networks of the server are known; they
        may declare what the host does not
    """
    if host is None or guest is None or pinning is None:
        for rule in rules:
            reason = rule.floating(host, names)
            if isinstance(reason, reasons.Reason):
                yield reason
        return
    # The server is in the usage of the host: nothing is left to be compared.
    guest_on_host = labels.ClaimPredictor(
        numa_evaluation.Evaluation(host, guest, UNLIMITED), names, devices, [])
    for rule in rules:
        if (reason := rule.unsuitable_reason(host)) is None:
            facts = rule.read(host, names)
            if (reason := rule.missing_reason(facts, guest_on_host)) is None:
                reason = rule.violation_reason(facts, guest_on_host, pinning)
            # A network of the server may declare them; see VSwitchRule.read.
            elif not networks_known:
                continue
        if reason is not None:
            yield reason
