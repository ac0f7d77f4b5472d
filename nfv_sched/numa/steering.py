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
"""From policy to labels: which hosts can keep it, and what makes the claim.

The scheduler chooses hosts; nova-compute chooses host NUMA nodes, with the
limits that the scheduler sends.  Labels, physical networks in those limits
that at least one chosen node must be near, are all the scheduler can say.
This module finds the fewest labels with which the claim keeps a policy:
*enforced*, if no state of the host lets the claim end otherwise, or only
*predicted*, if the claim would keep it on the host as it is known now.

No I/O, no Nova objects: an evaluation and a policy in, a decision out.
"""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
import dataclasses
import functools
import itertools
import typing as ty

from nfv_sched.numa import candidates
from nfv_sched.numa.evaluation import Evaluation
from nfv_sched.numa.evaluation import MAX_CLAIM_TRIES
from nfv_sched.numa import fit
from nfv_sched.numa import topology
from nfv_sched.numa import walk
from nfv_sched import reasons

# Sets of host cells that are tried as exact targets before giving up. One is
# nearly always enough: Nova's search follows the same order.
_MAX_TARGETS = 16

_CAPACITY_TEXT = {
    fit.NO_PAGES: ('{} MiB in pages of the requested size', '{} MiB'),
    fit.NO_MEMORY: ('{} MiB of memory', '{} MiB'),
    fit.NO_DEDICATED: ('{} dedicated CPUs', '{}'),
    fit.NO_SHARED: ('{} shared CPUs', '{}'),
    fit.NO_THREADS: ('{} CPUs under the thread policy', '{}'),
    fit.NO_SHARED_ROOM: ('room for {} shared vCPUs', '{}'),
    fit.NO_MEMORY_ROOM: ('room for {} MiB of memory', '{} MiB'),
}


class Names(ty.NamedTuple):
    """What the labels are called.

    :ivar vswitch: label of the host cells with the virtual switch
    :ivar node_prefix: prefix of the label of one host cell
    """

    vswitch: str
    node_prefix: str


class Wish(ty.NamedTuple):
    """What is asked of the placement beyond Nova's own rules.

    :ivar vswitch: ``strict``, ``prefer`` or None
    :ivar vswitch_text: the extra spec, for reasons
    :ivar node_map: (guest NUMA node, host NUMA node) pairs
    :ivar node_keys: the extra spec of each pair, for reasons
    :ivar physnets: physical networks that Nova considers
    :ivar switch_physnets: those that are reached through the switch
    :ivar tunneled: whether the tunnel endpoint must be near
    :ivar tunnel_uncertain: whether that may be untrue
    :ivar limits_lost: whether the claim may be made without the limits
    """

    vswitch: str | None
    vswitch_text: str
    node_map: tuple[tuple[int, int], ...]
    node_keys: tuple[str, ...]
    physnets: frozenset[str]
    switch_physnets: frozenset[str]
    tunneled: bool
    tunnel_uncertain: bool
    limits_lost: bool = False

    @property
    def plain(self) -> bool:
        """Whether Nova's own rules are all there is."""
        return self.vswitch is None and not self.node_map


@dataclasses.dataclass(frozen=True, slots=True)
class Decision:
    """What becomes of one guest on one host.

    :ivar accepted: whether the host can take the guest
    :ivar reason: why not
    :ivar labels: physical networks to add to the limits
    :ivar strict_labels: those without which a strict policy would not hold
    :ivar ignore_tunnel: the limits must not ask for the tunnel endpoint
    :ivar local: part of the guest's NUMA nodes that end up with the switch,
        0 to 1
    :ivar displaced: the same of the server that the request placed on this
        host last, if the limits that hold it there would be lost
    """

    accepted: bool
    reason: reasons.Lazy | None = None
    labels: frozenset[str] = frozenset()
    strict_labels: frozenset[str] = frozenset()
    ignore_tunnel: bool = False
    local: float = 0.0
    displaced: float = 0.0


_NO_GROUPS: list[int] = []
PLAIN = Decision(True)


def switch_cells(
    host: topology.HostTopology, wish: Wish, names: Names,
) -> int | None:
    """Host cells on which the virtual switch runs, as a bitmask.

    The host's own label says so.  A host without it still tells by the NUMA
    affinity of its networks, if it declares that of every network that the
    request reaches through the switch.

    :returns: None if the host does not say
    """
    labels = host.labels
    declared = labels.get(names.vswitch)
    if declared:
        return declared
    cells = 0
    for physnet in wish.switch_physnets:
        near = labels.get(physnet)
        if not near:
            return None
        cells |= near
    if wish.tunneled and not wish.tunnel_uncertain:
        if not host.tunnel:
            return None
        cells |= host.tunnel
    return cells or None


def _network_groups(
    host: topology.HostTopology, wish: Wish,
) -> tuple[list[int], list[int]]:
    """What Nova asks of the chosen host cells for the networks.

    :returns: groups of the physical networks, and of the tunnel
    """
    labels = host.labels
    groups = [labels[physnet] for physnet in wish.physnets
              if physnet in labels]
    tunnel = [host.tunnel] if wish.tunneled and host.tunnel else []
    return groups, tunnel


def _text(count: int, noun: str) -> str:
    return f'{count} {noun}' if count == 1 else f'{count} {noun}s'


def capacity_reason(
    evaluation: Evaluation, policy: str = 'NUMA topology',
    within: int | None = None, order: int = reasons.CAPACITY,
    where: str = '', groups: Sequence[int] = (),
) -> reasons.Reason:
    """Why a guest finds no room, in Nova's own terms.

    :param within: bitmask of the host cells that count; all if None
    :param where: what is special about them, for the text
    :param groups: host cells near each network of the request, as bitmasks
    """
    host, guest = evaluation.host, evaluation.guest
    cells = len(guest.cells)
    within = host.all_cells if within is None else within
    if evaluation.too_few_cells:
        return reasons.Reason(
            order, policy, f'{_text(cells, "NUMA node")} needed',
            f'has {len(host.cells)}', len(host.cells))
    masks = [mask & within for mask in evaluation.masks]
    for number, (cell, mask) in enumerate(zip(guest.cells, masks)):
        if mask:
            continue
        reserved = 0 if number else guest.reserved
        best = max(
            (fit.shortage(host.cells[index], cell, reserved,
                          evaluation.ratios)
             for index in candidates.bits(within)),
            key=lambda item: (item[0], item[2]), default=None)
        if best is None or best[0] == fit.FITS:
            break
        need, have = _CAPACITY_TEXT[best[0]]
        return reasons.Reason(
            order, policy,
            f'{need.format(best[1])} on one NUMA node{where} needed',
            f'{have.format(best[2])} free', best[2])
    union = 0
    for mask in masks:
        union |= mask
    count = union.bit_count()
    if count < cells:
        return reasons.Reason(
            order, policy,
            f'room for the guest on {_text(cells, "NUMA node")}{where} '
            f'needed', f'{count} have room', count)
    for group in groups:
        if not any(mask & group for mask in masks):
            # No guest cell has room where this network is.
            return capacity_reason(
                evaluation, policy, within & group, order,
                f'{where} near the networks of the request')
    if candidates.feasible(masks):
        return reasons.Reason(
            order, policy,
            f'NUMA nodes{where} with room that are also near the networks '
            f'and PCI devices of the request needed', 'none', count)
    return reasons.Reason(
        order, policy, f'a NUMA node{where} for each guest NUMA node needed',
        'the guest NUMA nodes compete for the same', count)


class _Steering:
    """Works out the decision for one guest on one host."""

    def __init__(
        self, evaluation: Evaluation, wish: Wish, names: Names,
        accepts: Callable[[int], bool] | None, predicted_is_enough: bool,
        groups: list[int], ignore_tunnel: bool,
    ):
        self.evaluation = evaluation
        self.wish = wish
        self.names = names
        self.accepts = accepts
        self.predicted_is_enough = predicted_is_enough
        self.host = evaluation.host
        self.groups = groups
        self.ignore_tunnel = ignore_tunnel
        self.map_bits: dict[int, int] = {}
        self.switch: int | None = None
        self._undecided = False
        self._chosen: dict[frozenset[str],
                           tuple[int, ...] | None] = {}

    # -- stock rules

    def fits_stock(self, traces=None) -> bool:
        """Nova's own verdict."""
        evaluation = self.evaluation
        if traces is None and not evaluation.uniform:
            traces = evaluation.request_traces()
        return evaluation.accepted(self.groups, self.accepts, traces)

    # -- what the claim does with labels

    def label_groups(self, labels: frozenset[str]) -> list[int]:
        known = self.host.labels
        return self.groups + [known[label] for label in labels]

    def predicted(self, labels: frozenset[str]) -> tuple[int, ...] | None:
        """What the claim would choose now; None if it would not succeed."""
        if labels not in self._chosen:
            groups = self.label_groups(labels)
            chosen = None
            if not labels:
                chosen = self.evaluation.choose(groups, self.accepts)
            elif not self._undecided:
                try:
                    chosen = self.evaluation.choose_steered(
                        groups, self.accepts)
                except walk.Undecided:
                    self._undecided = True
            self._chosen[labels] = chosen
        return self._chosen[labels]

    def keeps_map(self, assignment: Sequence[int]) -> bool:
        return all(1 << assignment[guest] == bit
                   for guest, bit in self.map_bits.items())

    def _always_within(self, groups: Sequence[int], within: int) -> bool:
        """No state of the host lets a claim leave these host cells."""
        static = self.evaluation.static_masks
        for index in candidates.bits(self.host.all_cells & ~within):
            if candidates.feasible(static, [*groups, 1 << index]):
                return False
        return True

    def _always_mapped(self, groups: Sequence[int]) -> bool:
        """No state of the host lets a claim break the node mapping."""
        evaluation = self.evaluation
        if (len(self.host.cells) == len(evaluation.guest.cells) and
                evaluation.interchangeable and
                not evaluation.guest.any_pages):
            # Nova keeps the order of the cells, and if the guest cells fit
            # in any order they fit in that one, which it tries first.
            return all(bit == 1 << guest
                       for guest, bit in self.map_bits.items())
        if len(evaluation.guest.cells) > 1 and evaluation.guest.any_pages:
            return False
        cells = len(evaluation.guest.cells)
        if cells > 1 and not cells == len(self.host.cells) == 2:
            # Nova may take one guest cell for another on its way.
            return False
        static = (evaluation.static_masks if cells == 1
                  else evaluation.static_fits)
        for guest, bit in self.map_bits.items():
            others = list(static)
            others[guest] &= ~bit
            if candidates.feasible(others, groups):
                return False
        return True

    def enforced(self, labels: frozenset[str], within: int | None) -> bool:
        groups = [] if self.wish.limits_lost else self.label_groups(labels)
        if within is not None and not self._always_within(groups, within):
            return False
        return not self.map_bits or self._always_mapped(groups)

    # -- which labels

    def node_labels(self, cells: int) -> frozenset[str] | None:
        """Labels of these host cells; None if one has none of its own."""
        labels = set()
        for index in candidates.bits(cells):
            label = f'{self.names.node_prefix}{self.host.cells[index].id}'
            if self.host.labels.get(label) != 1 << index:
                return None
            labels.add(label)
        return frozenset(labels)

    def label_sets(
        self, masks: Sequence[int], vswitch: bool,
    ) -> Iterator[frozenset[str]]:
        """Label sets that may do, the least first.

        :param masks: host cells that the policy leaves to each guest cell
        :param vswitch: whether the virtual switch matters
        """
        nothing: frozenset[str] = frozenset()
        yield nothing
        switch = nothing
        if vswitch and self.names.vswitch in self.host.labels:
            switch = frozenset([self.names.vswitch])
            yield switch
        mapped = nothing
        if self.map_bits:
            bits = 0
            for bit in self.map_bits.values():
                bits |= bit
            mapped = self.node_labels(bits) or nothing
            if mapped:
                yield mapped
                if switch:
                    yield mapped | switch
        seen = set()
        targets = candidates.assignments(
            masks, self.evaluation.order, self.groups)
        for target in itertools.islice(targets, _MAX_TARGETS):
            exact = self.node_labels(candidates.mask_of(target))
            if exact and exact not in seen:
                seen.add(exact)
                yield exact

    def find(
        self, masks: Sequence[int], within: int | None,
        options: Iterable[frozenset[str]] | None, predicted_is_enough: bool,
    ) -> frozenset[str] | None:
        """The fewest labels with which the claim keeps the policy.

        :param masks: host cells that the policy leaves to each guest cell
        :param within: host cells that all guest cells must be on
        :param options: label sets to choose from; None for any
        :param predicted_is_enough: also accept what is not enforced
        """
        if options is None:
            options = self.label_sets(masks, within is not None)
        for enforced_only in (True, False):
            if not enforced_only and (
                    not predicted_is_enough or self.wish.limits_lost):
                return None
            options = list(options) if predicted_is_enough else options
            for labels in options:
                if enforced_only and not self.enforced(labels, within):
                    continue
                chosen = self.predicted(labels)
                if chosen is None or not self.keeps_map(chosen):
                    continue
                if within is not None and \
                        candidates.mask_of(chosen) & ~within:
                    continue
                return labels
        return None

    # -- decisions

    def _map(self) -> reasons.Reason | None:
        """Read the node mapping; the reason if the host lacks a node."""
        for (guest, node), key in zip(
                self.wish.node_map, self.wish.node_keys):
            bit = self.host.bit_of(node)
            if not bit:
                return reasons.Reason(
                    reasons.NODE_MAP, f'{key}={node}',
                    f'host NUMA node {node} needed',
                    f'has {_text(len(self.host.cells), "NUMA node")}',
                    len(self.host.cells))
            self.map_bits[guest] = bit
        return None

    def _map_text(self) -> str:
        return ', '.join(map(self._key_text, self.map_bits))

    def _key_text(self, guest: int) -> str:
        """The extra spec that maps a guest NUMA node, as it was written."""
        for (mapped, node), key in zip(
                self.wish.node_map, self.wish.node_keys):
            if mapped == guest:
                return f'{key}={node}'
        return 'NUMA topology'

    def _mapped_masks(self) -> list[int]:
        masks = list(self.evaluation.masks)
        for guest, bit in self.map_bits.items():
            masks[guest] &= bit
        return masks

    def _unenforced(self, policy: str) -> reasons.Reason:
        if self.wish.limits_lost:
            return reasons.Reason(
                reasons.ENFORCEMENT, policy,
                'a claim that keeps it without limits needed for a move',
                'this release of Nova may lose them')
        cells = self.host.all_cells
        if self.node_labels(cells) is None:
            return reasons.Reason(
                reasons.ENFORCEMENT, policy,
                f'labels {self.names.node_prefix}0, '
                f'{self.names.node_prefix}1, ... needed to hold the guest on '
                f'its host NUMA nodes', 'the host declares none for them')
        if self.map_bits:
            return reasons.Reason(
                reasons.ENFORCEMENT, policy,
                'a placement that the claim cannot change needed',
                'the guest NUMA nodes could change places')
        return reasons.Reason(
            reasons.ENFORCEMENT, policy,
            'NUMA nodes with the virtual switch to which the claim can be '
            'held needed', "Nova's search misses those with room")

    def _claim_too_long(self, labels: frozenset[str]) -> bool:
        """Whether Nova would search for too long without labels of ours."""
        if labels or not self.evaluation.many_permutations:
            return False
        chosen = self.predicted(labels)
        return chosen is not None and self.evaluation.claim_tries(
            chosen) > MAX_CLAIM_TRIES

    def _accept(self, labels, strict_labels, local=0.0) -> Decision:
        if self._claim_too_long(labels):
            return Decision(False, reasons.Reason(
                reasons.ENFORCEMENT, 'NUMA topology',
                'a claim of reasonable length needed',
                "Nova's search on this host would try more than "
                f'{MAX_CLAIM_TRIES} arrangements'))
        return Decision(
            True, labels=labels, strict_labels=strict_labels,
            ignore_tunnel=self.ignore_tunnel, local=local)

    def decide(self, traces, held: Decision | None) -> Decision:
        """The decision; see :func:`decide`."""
        if not self.fits_stock(traces):
            return Decision(False, functools.partial(
                capacity_reason, self.evaluation, groups=self.groups))
        if self.wish.plain:
            return self._accept(frozenset(), frozenset())
        reason = self._map()
        if reason is not None:
            return Decision(False, reason)
        masks = self._mapped_masks()
        if not candidates.feasible(masks, self.groups):
            if not self.map_bits and self.wish.vswitch != 'strict':
                # Nova takes one guest cell for another; a preference does
                # not stand in its way.
                return self._accept(frozenset(), frozenset())
            return Decision(False, functools.partial(
                self._no_mapped_room, masks))
        if self.wish.vswitch is not None:
            self.switch = switch_cells(self.host, self.wish, self.names)
        if self.wish.vswitch == 'strict':
            return self._decide_strict(masks, held)
        return self._decide_prefer(masks, held)

    def _no_mapped_room(self, masks: Sequence[int]) -> reasons.Reason:
        for guest, bit in self.map_bits.items():
            if not masks[guest]:
                capacity = capacity_reason(self.evaluation, within=bit)
                return reasons.Reason(
                    reasons.NODE_MAP, self._key_text(guest),
                    capacity.need, capacity.have, capacity.rank)
        return reasons.Reason(
            reasons.NODE_MAP, self._map_text(),
            'room that suits the node mapping, networks and PCI devices '
            'needed', 'none')

    def _decide_strict(
        self, masks: Sequence[int], held: Decision | None,
    ) -> Decision:
        switch = self.switch
        if switch is None:
            return Decision(False, reasons.Reason(
                reasons.VSWITCH, self.wish.vswitch_text,
                'a host that declares where its virtual switch runs needed',
                'no label or network affinity'))
        narrowed = [mask & switch for mask in masks]
        if not candidates.feasible(narrowed, self.groups):
            return Decision(False, self._no_switch_room)
        options = None if held is None else [held.strict_labels]
        labels = self.find(
            narrowed, switch, options, self.predicted_is_enough)
        if labels is None:
            if held is not None:
                return Decision(False, reasons.Reason(
                    reasons.VSWITCH, self.wish.vswitch_text,
                    'the NUMA nodes of the other servers of the request on '
                    'this host needed', 'full'))
            return Decision(False, self._unenforced(self.wish.vswitch_text))
        return self._accept(labels, labels, 1.0)

    def _no_switch_room(self) -> reasons.Reason:
        switch = self.switch or 0
        policy = self.wish.vswitch_text
        nodes = self.host.nodes(switch)
        runs = ', '.join(map(str, nodes))
        cells = len(self.evaluation.guest.cells)
        for guest, bit in self.map_bits.items():
            if not bit & switch:
                node = self.host.nodes(bit)[0]
                return reasons.Reason(
                    reasons.VSWITCH, policy,
                    f'guest NUMA node {guest} is mapped to host NUMA node '
                    f'{node} ({self._key_text(guest)})',
                    f'the virtual switch runs on {runs}')
        if len(nodes) < cells:
            return reasons.Reason(
                reasons.VSWITCH, policy,
                f'{cells} host NUMA nodes with the virtual switch needed',
                f'has {len(nodes)}', len(nodes))
        return capacity_reason(
            self.evaluation, policy, switch, reasons.VSWITCH,
            ' with the virtual switch', self.groups)

    def _decide_prefer(
        self, masks: Sequence[int], held: Decision | None,
    ) -> Decision:
        """A preference, or a node mapping alone."""
        any_prediction = self.predicted_is_enough or not self.map_bits
        options = None if held is None else [held.strict_labels]
        strict = self.find(masks, None, options, any_prediction)
        if strict is None:
            return Decision(False, self._unenforced(
                self._map_text() or 'NUMA topology'))
        switch = self.switch
        if not switch:
            return self._accept(strict, strict)
        narrowed = [mask & switch for mask in masks]
        if candidates.feasible(narrowed, self.groups):
            options = None if held is None else [held.labels]
            labels = self._find_preferred(narrowed, switch, options)
            if labels is not None:
                return self._accept(labels, strict, 1.0)
        return self._partly_local(masks, switch, strict, held)

    def _find_preferred(self, narrowed, switch, options):
        """Labels that hold the whole guest with the switch.

        The mapping, if there is one, must be enforced in any case.
        """
        labels = self.find(narrowed, switch, options, False)
        if labels is not None or (
                self.map_bits and not self.predicted_is_enough):
            return labels
        return self.find(narrowed, switch, options, True)

    def _partly_local(
        self, masks: Sequence[int], switch: int, strict: frozenset[str],
        held: Decision | None,
    ) -> Decision:
        """As many guest cells with the switch as there is room for."""
        cells = len(masks)
        best, best_local = strict, -1
        options: list[frozenset[str]] = [strict]
        if held is None and cells > 1:
            target = candidates.most_local(masks, switch, self.groups)
            for rows in itertools.combinations(range(cells), target):
                narrowed = [mask & switch if row in rows else mask
                            for row, mask in enumerate(masks)]
                if candidates.feasible(narrowed, self.groups):
                    options += self.label_sets(narrowed, True)
                    break
        elif held is not None:
            options = [held.labels, held.strict_labels]
        for labels in options:
            chosen = self.predicted(labels)
            if chosen is None or not self.keeps_map(chosen):
                continue
            if self.map_bits and not self.predicted_is_enough and \
                    not self.enforced(labels, None):
                continue
            local = (candidates.mask_of(chosen) & switch).bit_count()
            if local > best_local:
                best, best_local = labels, local
        decision = self._accept(best, strict, max(best_local, 0) / cells)
        if held is not None and held.labels - best:
            decision = dataclasses.replace(decision, displaced=held.local)
        return decision


def decide_plain(evaluation: Evaluation, wish) -> Decision | None:
    """The decision where Nova's own rules are all there is.

    Without PCI devices and with one allocation candidate; the hot path.

    :param wish: anything with the networks of a :class:`Wish`
    :returns: None if it takes a closer look
    """
    if evaluation.many_permutations or wish.tunnel_uncertain:
        return None
    if wish.physnets or wish.tunneled:
        physnets, tunnel = _network_groups(evaluation.host, wish)
        groups = physnets + tunnel
    else:
        groups = _NO_GROUPS
    traces = None
    if not evaluation.uniform:
        traces = evaluation.request_traces()
    if evaluation.accepted(groups, None, traces):
        return PLAIN
    return Decision(False, functools.partial(
        capacity_reason, evaluation, groups=groups))


def decide(
    evaluation: Evaluation, wish: Wish, names: Names,
    accepts: Callable[[int], bool] | None = None,
    predicted_is_enough: bool = False, traces=None,
    held: Decision | None = None,
) -> Decision:
    """Decide about one guest on one host.

    :param evaluation: where the guest fits
    :param wish: what is asked beyond that
    :param names: what the labels are called
    :param accepts: predicate on the bitmask of chosen host cells, for PCI
        devices
    :param predicted_is_enough: accept a host for a strict policy also if the
        claim keeps the policy only on the host as it is known now
    :param traces: what Nova's earlier searches have left on the guest
    :param held: the decision for a server that the same request has placed
        on this host already
    """
    physnets, tunnel = _network_groups(evaluation.host, wish)
    decision = _Steering(
        evaluation, wish, names, accepts, predicted_is_enough,
        physnets + tunnel, False).decide(traces, held)
    if not tunnel or not wish.tunnel_uncertain:
        return decision
    if decision.accepted and (
            decision.local == 1 or wish.vswitch is None):
        return decision
    # The tunnel may not be used at all: a wish, and the least of them.
    without = _Steering(
        evaluation, wish, names, accepts, predicted_is_enough,
        physnets, True).decide(traces, held)
    if without.accepted and (
            not decision.accepted or without.local > decision.local):
        return without
    return decision
