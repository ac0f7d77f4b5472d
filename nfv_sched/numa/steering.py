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
from nfv_sched.numa import pci
from nfv_sched.numa import shortage
from nfv_sched.numa import topology
from nfv_sched.numa import walk
from nfv_sched import reasons

# Sets of host cells that are tried as exact targets before giving up. One is
# nearly always enough: Nova's search follows the same order.
_MAX_TARGETS = 16

_REQUIRED = 'hw:pci_numa_affinity_policy=required'


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
    :ivar pci: ``strict`` or ``prefer`` if the PCI devices are to be on the
        guest's NUMA nodes, beyond what Nova asks of them, or None
    :ivar pci_text: the extra spec, for reasons
    :ivar shared_cell: guest NUMA node of the vCPU that needs shared CPUs
    :ivar shared_text: the extra spec, for reasons
    :ivar steered: the request has a key of nfv-sched, so that labels may be
        added to its limits; without one a preference of Nova's own only ranks
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
    pci: str | None = None
    pci_text: str = ''
    shared_cell: int | None = None
    shared_text: str = ''
    steered: bool = True

    @property
    def plain(self) -> bool:
        """Whether Nova's own rules are all there is."""
        return (self.vswitch is None and self.pci is None and
                self.shared_cell is None and not self.node_map)

    @property
    def best(self) -> int:
        """The value of a decision with which all comes true."""
        return (self.vswitch is not None) + (self.pci is not None)

    @property
    def strict(self) -> bool:
        """Whether something must hold, or the host is refused."""
        return (bool(self.node_map) or self.vswitch == 'strict' or
                self.pci == 'strict' or self.shared_cell is not None)


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
    :ivar pci_local: part of its PCI devices that are on its host NUMA nodes
    :ivar displaces: the decision for the server that the request placed on
        this host last, if the limits that hold it there would be lost
    """

    accepted: bool
    reason: reasons.Lazy | None = None
    labels: frozenset[str] = frozenset()
    strict_labels: frozenset[str] = frozenset()
    ignore_tunnel: bool = False
    local: float = 0.0
    pci_local: float = 0.0
    displaces: 'Decision | None' = None

    @property
    def value(self) -> float:
        """How much of what is wanted comes true."""
        return self.local + self.pci_local


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


class _Goal(ty.NamedTuple):
    """What a placement must come to.

    :ivar masks: host cells that are left to each guest cell
    :ivar within: host cells that all guest cells must be on; None for any
    :ivar local: the PCI devices must be on the host cells of the guest
    """

    masks: Sequence[int]
    within: int | None = None
    local: bool = False


class _Steering:
    """Works out the decision for one guest on one host."""

    def __init__(
        self, evaluation: Evaluation, wish: Wish, names: Names,
        devices: pci.Devices | None, predicted_is_enough: bool,
        groups: list[int], ignore_tunnel: bool,
    ):
        self.evaluation = evaluation
        self.wish = wish
        self.names = names
        self.devices = devices
        self.predicted_is_enough = predicted_is_enough
        self.host = evaluation.host
        self.groups = groups
        self.ignore_tunnel = ignore_tunnel
        self.map_bits: dict[int, int] = {}
        self.switch: int | None = None
        self._undecided = False
        #: Labels that would do were not used, as CPUs could be pinned twice.
        self._pins_astray = False
        self._chosen: dict[frozenset[str],
                           tuple[int, ...] | None] = {}
        #: What Nova asks of the chosen host cells, and what we do.
        self.stock = self.local = None
        if devices is not None:
            self.stock, self.local = devices.stock, devices.local

    # -- stock rules

    def fits_stock(self, traces=None) -> bool:
        """Nova's own verdict."""
        evaluation = self.evaluation
        if traces is None and not evaluation.uniform:
            traces = evaluation.request_traces()
        return evaluation.accepted(self.groups, self.stock, traces)

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
                chosen = self.evaluation.choose(groups, self.stock)
            elif not self._undecided:
                try:
                    chosen = self.evaluation.choose_steered(
                        groups, self.stock)
                except walk.Undecided:
                    self._undecided = True
            self._chosen[labels] = chosen
        return self._chosen[labels]

    def keeps_map(self, assignment: Sequence[int]) -> bool:
        return all(1 << assignment[guest] == bit
                   for guest, bit in self.map_bits.items())

    def reached(self, goal: _Goal, chosen: Sequence[int] | None) -> bool:
        """Whether a choice of the claim is what is wanted."""
        if chosen is None or not self.keeps_map(chosen):
            return False
        cells = candidates.mask_of(chosen)
        if goal.within is not None and cells & ~goal.within:
            return False
        shared = self.wish.shared_cell
        if shared is not None and not (
                self.evaluation.masks[shared] >> chosen[shared] & 1):
            return False
        return not goal.local or self.local is None or self.local.test(cells)

    def possible(self, goal: _Goal) -> bool:
        """Whether some assignment is what is wanted."""
        return candidates.satisfiable(
            goal.masks, self.groups,
            self.local if goal.local else self.stock)

    def _always_within(self, groups: Sequence[int], within: int) -> bool:
        """No state of the host lets a claim leave these host cells."""
        static = self.evaluation.static_masks
        for index in candidates.bits(self.host.all_cells & ~within):
            if candidates.feasible(static, [*groups, 1 << index]):
                return False
        return True

    def _always_on(self, groups: Sequence[int], cells: int) -> bool:
        """No state of the host lets a claim leave out one of these cells."""
        static = self.evaluation.static_masks
        return not any(
            candidates.feasible([mask & ~(1 << index) for mask in static],
                                groups)
            for index in candidates.bits(cells))

    def _always_local(self, groups: Sequence[int]) -> bool:
        """No state of the host lets a claim take a PCI device elsewhere.

        Nova holds the claim to the NUMA policy of each request, and to the
        providers that Placement has allocated from.  Of a move it takes the
        policy of the alias, but for unshelving, which the scheduler cannot
        tell from a cold migration: there both must do.
        """
        if self.devices is None or len(self.host.cells) == 1:
            return True
        return all(
            self._stays_local(number, policy, groups)
            for number, demand in enumerate(self.devices.devices.wanted)
            for policy in {demand.claimed, demand.policy})

    def _stays_local(
        self, number: int, policy: str | None, groups: Sequence[int],
    ) -> bool:
        """No claim that follows a policy takes a device elsewhere.

        :param number: number of the PCI request
        :param policy: NUMA policy of the request; None if it is not known
        """
        devices = self.devices.devices
        fixed = self.devices.fixed(number)
        if fixed is not None:
            if policy in (pci.REQUIRED, pci.LEGACY) and \
                    fixed.bit_count() == 1:
                return True
            # Of several providers Nova may leave some out.
            return self._always_on(groups, fixed)
        if policy == pci.REQUIRED:
            return True
        if policy == pci.SOCKET and all(
                devices.same_socket(1 << index) == 1 << index
                for index in range(len(self.host.cells))):
            return True
        return policy == pci.LEGACY and not devices.has_unknown(number)

    def _always_shared(self) -> bool:
        """No state of the host lets a claim end without shared CPUs.

        Nova may take one guest cell for another on its way.  But a claim is
        recorded only if the pins of each guest cell are on its host cell, and
        Nova pins vCPUs of a guest cell only where it has found enough shared
        CPUs for the others.
        """
        guest = self.evaluation.guest
        shared = guest.cells[self.wish.shared_cell]
        return (len(guest.cells) == 1 or self.evaluation.interchangeable or
                (shared.dedicated > 0 and not guest.isolates) or
                all(cell.shared >= shared.shared for cell in self.host.cells))

    def _pins_stay(self, groups: Sequence[int]) -> bool:
        """No state of the host lets a claim pin CPUs of other host cells.

        Nova may take the pins that a guest cell got on one host cell to
        another (see :class:`nfv_sched.numa.walk.Traces`).  Such a claim cannot
        be recorded, except under ``isolate``: there Nova drops the pins that
        are not of the host cell, and they are given away again.

        It cannot come to that where Nova's search meets no pair of cells
        again under another number: with like guest cells, if there are no
        more host cells than those, or if what the chosen ones may lack is one
        of the same few host cells each time; with two guest cells, if they
        can lack nothing; and on hosts of so few cells that the tests try all
        courses of the search.

        :param groups: bitmasks of host cells of which each must be met
        """
        guest = self.evaluation.guest
        count, hosts = len(guest.cells), len(self.host.cells)
        if count == 1 or not guest.isolates or count == hosts == 2:
            return True
        if guest.any_pages:
            return False
        # All host cells that any guest cell can get.
        cells = self.evaluation.static_masks[0]
        missed = sorted(
            {group & cells for group in groups
             if (cells & ~group).bit_count() >= count}, key=int.bit_count)
        if not self.evaluation.interchangeable:
            return count == 2 and not missed and self.devices is None
        if cells.bit_count() <= count or (count, hosts) == (2, 3):
            return True
        return self.devices is None and not any(
            missed[0] & ~group for group in missed)

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

    def enforced(self, labels: frozenset[str], goal: _Goal) -> bool:
        """Whether the claim reaches the goal in every state of the host."""
        groups = [] if self.wish.limits_lost else self.label_groups(labels)
        if goal.within is not None and not self._always_within(
                groups, goal.within):
            return False
        if goal.local and not self._always_local(groups):
            return False
        if self.wish.shared_cell is not None and not self._always_shared():
            return False
        if self.map_bits and not self._always_mapped(groups):
            return False
        # Without labels of ours a preference changes nothing.
        return not self.wish.strict or self._keeps_pins(labels)

    def _keeps_pins(self, labels: frozenset[str]) -> bool:
        """Whether the claim pins CPUs of the chosen host cells only."""
        if self._pins_stay(self.label_groups(labels)):
            return True
        self._pins_astray = True
        return False

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

    def _held_labels(self) -> frozenset[str]:
        """Labels that strict policies carry, whether needed or not.

        They cost nothing, and hold if the host record was misread or has
        changed since.
        """
        labels: set[str] = set()
        if self.wish.vswitch == 'strict' and \
                self.names.vswitch in self.host.labels:
            labels.add(self.names.vswitch)
        if len(self.evaluation.guest.cells) == 1:
            for bit in self.map_bits.values():
                labels |= self.node_labels(bit) or frozenset()
        return frozenset(labels)

    def label_sets(self, goal: _Goal) -> Iterator[frozenset[str]]:
        """Label sets that may do, the least first."""
        held = self._held_labels()
        seen = set()
        for more in (held, frozenset()) if held else (held,):
            for labels in self._least_labels(goal):
                labels |= more
                if labels not in seen:
                    seen.add(labels)
                    if not labels or self._keeps_pins(labels):
                        yield labels

    def _least_labels(self, goal: _Goal) -> Iterator[frozenset[str]]:
        nothing: frozenset[str] = frozenset()
        yield nothing
        switch = nothing
        if self.names.vswitch in self.host.labels:
            switch = frozenset([self.names.vswitch])
            if goal.within is not None:
                yield switch
        if self.map_bits:
            bits = 0
            for bit in self.map_bits.values():
                bits |= bit
            mapped = self.node_labels(bits) or nothing
            if mapped:
                yield mapped
                if switch and goal.within is not None:
                    yield mapped | switch
        targets = candidates.assignments(
            goal.masks, self.evaluation.order, self.groups,
            self.local if goal.local else self.stock)
        for target in itertools.islice(targets, _MAX_TARGETS):
            exact = self.node_labels(candidates.mask_of(target))
            if exact:
                yield exact
        if switch and goal.within is None:
            # By chance it may be where the guest should be.
            yield switch

    def find(
        self, goal: _Goal, options: Iterable[frozenset[str]] | None,
    ) -> frozenset[str] | None:
        """The fewest labels with which the claim keeps a strict policy.

        :param options: label sets to choose from; None for any
        """
        if options is None:
            options = self.label_sets(goal)
        if self.predicted_is_enough:
            options = list(options)
        for labels in options:
            if self.enforced(labels, goal) and self.reached(
                    goal, self.predicted(labels)):
                return labels
        if self.predicted_is_enough and not self.wish.limits_lost:
            for labels in options:
                if self.reached(goal, self.predicted(labels)):
                    return labels
        return None

    def find_preferred(
        self, goal: _Goal, must: _Goal,
        options: Iterable[frozenset[str]] | None,
    ) -> frozenset[str] | None:
        """The fewest labels with which the claim does what is preferred.

        :param must: what strict policies ask for
        :param options: label sets to choose from; None for any
        """
        fallback = None
        for labels in self.label_sets(goal) if options is None else options:
            if not self.reached(goal, self.predicted(labels)):
                continue
            if self.enforced(labels, goal):
                return labels
            if fallback is None and self.keeps(labels, must):
                fallback = labels
        return fallback

    def keeps(self, labels: frozenset[str], must: _Goal) -> bool:
        """Whether strict policies hold with these labels."""
        return self.reached(must, self.predicted(labels)) and (
            self.predicted_is_enough or self.enforced(labels, must))

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
                    f'has {shortage.text(len(self.host.cells), "NUMA node")}',
                    len(self.host.cells))
            self.map_bits[guest] = bit
        return None

    def _strict_text(self) -> str:
        """The strict policies, for reasons that concern them all."""
        texts = list(map(self._key_text, self.map_bits))
        if self.wish.vswitch == 'strict':
            texts.append(self.wish.vswitch_text)
        if self.wish.pci == 'strict':
            texts.append(self.wish.pci_text)
        if self.wish.shared_cell is not None:
            texts.append(self.wish.shared_text)
        return ', '.join(texts) or 'NUMA topology'

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

    def _unenforced(self, goal: _Goal) -> reasons.Reason:
        """Why a placement that is possible cannot be held."""
        policy = self._strict_text()
        if self.wish.limits_lost:
            return reasons.Reason(
                reasons.ENFORCEMENT, policy,
                'a claim that keeps it without limits needed for a move',
                'this release of Nova may lose them')
        if goal.local and self.find(
                goal._replace(local=False), None) is not None:
            if any(map(self.devices.devices.has_unknown,
                       range(len(self.devices.devices.wanted)))):
                return reasons.Reason(
                    reasons.ENFORCEMENT, self.wish.pci_text,
                    'devices with NUMA information needed, or '
                    f'{_REQUIRED}', 'some have none')
            if any(demand.claimed is None
                   for demand in self.devices.devices.wanted):
                return reasons.Reason(
                    reasons.ENFORCEMENT, self.wish.pci_text,
                    "the [pci] aliases in the scheduler's configuration "
                    'needed for a move', 'it has none', own=True)
            if not any(demand.fixable or demand.from_port or
                       demand.claimed == pci.REQUIRED
                       for demand in self.devices.devices.wanted):
                return reasons.Reason(
                    reasons.ENFORCEMENT, self.wish.pci_text,
                    'aliases with numa_policy required needed for a move',
                    'the claim could take other devices', own=True)
            return reasons.Reason(
                reasons.ENFORCEMENT, self.wish.pci_text,
                f'{_REQUIRED} needed', 'the claim could take other devices',
                own=True)
        if self._pins_astray:
            return reasons.Reason(
                reasons.ENFORCEMENT, policy,
                'a claim that pins no CPUs of other NUMA nodes needed',
                'hw:cpu_thread_policy=isolate on this host allows it')
        if self.node_labels(self.host.all_cells) is None:
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
            'NUMA nodes to which the claim can be held needed',
            "Nova's search misses those with room")

    def _claim_too_long(self, labels: frozenset[str]) -> bool:
        """Whether Nova would search for too long without labels of ours."""
        if labels or not self.evaluation.many_permutations:
            return False
        chosen = self.predicted(labels)
        return chosen is not None and self.evaluation.claim_tries(
            chosen) > MAX_CLAIM_TRIES

    def _accept(
        self, labels: frozenset[str], strict_labels: frozenset[str],
        held: Decision | None = None,
    ) -> Decision:
        if self._claim_too_long(labels):
            return Decision(False, reasons.Reason(
                reasons.ENFORCEMENT, 'NUMA topology',
                'a claim of reasonable length needed',
                "Nova's search on this host would try more than "
                f'{MAX_CLAIM_TRIES} arrangements'))
        local, pci_local = 0.0, 0.0
        if not self.wish.plain:
            local, pci_local = self._locality(self.predicted(labels))
        displaces = None
        if held is not None and held.labels - labels:
            displaces = held
        return Decision(
            True, labels=labels, strict_labels=strict_labels,
            ignore_tunnel=self.ignore_tunnel, local=local,
            pci_local=pci_local, displaces=displaces)

    def _locality(self, chosen: Sequence[int] | None) -> tuple[float, float]:
        """The parts of guest and devices that are where they are wanted."""
        if chosen is None:
            return 0.0, 0.0
        cells = candidates.mask_of(chosen)
        local = 0.0
        if self.switch:
            local = (cells & self.switch).bit_count() / len(chosen)
        served = None
        if self.devices is not None and self.wish.pci is not None:
            served = self.devices.serve(cells)
        if not served or not served.total:
            return local, 0.0
        return local, served.local / served.total

    def decide(self, traces, held: Decision | None) -> Decision:
        """The decision; see :func:`decide`."""
        wish = self.wish
        if not self.fits_stock(traces):
            return Decision(False, functools.partial(
                shortage.capacity_reason, self.evaluation, groups=self.groups,
                devices=self.devices, pci_policy=wish.pci_text
                if wish.pci == 'strict' else shortage.PCI_DEVICES))
        if wish.plain:
            return self._accept(frozenset(), frozenset())
        if not wish.steered:
            return self._accept(frozenset(), frozenset(), held)
        reason = self._map()
        if reason is not None:
            return Decision(False, reason)
        if wish.vswitch is not None:
            self.switch = switch_cells(self.host, wish, self.names)
        must = _Goal(self._mapped_masks())
        if not self.possible(must):
            if not wish.strict:
                # Nova takes one guest cell for another; a preference does
                # not stand in its way.
                return self._accept(frozenset(), frozenset(), held)
            return Decision(False, functools.partial(
                self._no_mapped_room, must.masks))
        if wish.vswitch == 'strict':
            if self.switch is None:
                return Decision(False, reasons.Reason(
                    reasons.VSWITCH, wish.vswitch_text,
                    'a host that declares where its virtual switch runs '
                    'needed', 'no label or network affinity'))
            must = self._near_switch(must)
            if not self.possible(must):
                return Decision(False, self._no_switch_room)
        if wish.pci == 'strict':
            must = must._replace(local=True)
            if not self.possible(must):
                return Decision(False, functools.partial(
                    self._no_local_devices, must.masks))
        return self._decide_strict(must, held)

    def _near_switch(self, goal: _Goal) -> _Goal:
        return goal._replace(
            masks=[mask & self.switch for mask in goal.masks],
            within=self.switch)

    def _decide_strict(self, must: _Goal, held: Decision | None) -> Decision:
        strict = self.find(
            must, None if held is None else [held.strict_labels])
        if strict is not None:
            return self._decide_preferred(must, strict, held)
        if held is not None and self.wish.strict:
            return Decision(False, reasons.Reason(
                reasons.ENFORCEMENT, self._strict_text(),
                'the NUMA nodes of the other servers of the request on '
                'this host needed', 'full'))
        return Decision(False, functools.partial(self._unenforced, must))

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
                    f'the virtual switch on host NUMA node {node} needed '
                    f'({self._key_text(guest)})',
                    f'it runs on {runs}')
        if len(nodes) < cells:
            return reasons.Reason(
                reasons.VSWITCH, policy,
                f'{cells} host NUMA nodes with the virtual switch needed',
                f'has {len(nodes)}', len(nodes))
        return shortage.capacity_reason(
            self.evaluation, policy, switch, reasons.VSWITCH,
            ' with the virtual switch', self.groups, self.devices)

    def _no_mapped_room(self, masks: Sequence[int]) -> reasons.Reason:
        for guest, bit in self.map_bits.items():
            if not masks[guest]:
                capacity = shortage.capacity_reason(
                    self.evaluation, within=bit)
                return reasons.Reason(
                    reasons.NODE_MAP, self._key_text(guest),
                    capacity.need, capacity.have, capacity.rank)
        if self.devices is not None and candidates.feasible(
                masks, self.groups):
            reason = shortage.devices_reason(
                self.devices, masks, self._strict_text(), reasons.NODE_MAP)
            if reason is not None:
                return reason
        return reasons.Reason(
            reasons.NODE_MAP, self._strict_text(),
            'room that suits the node mapping, networks and PCI devices '
            'needed', 'none')

    def _no_local_devices(self, masks: Sequence[int]) -> reasons.Reason:
        where = ''
        if self.wish.vswitch == 'strict':
            where = ' with the virtual switch'
        reason = shortage.devices_reason(
            self.devices, masks, self.wish.pci_text, reasons.PCI, where,
            local=True)
        if reason is not None:
            return reason
        return reasons.Reason(
            reasons.PCI, self.wish.pci_text,
            f'NUMA nodes{where} with room and all the PCI devices needed',
            'none')

    def _decide_preferred(
        self, must: _Goal, strict: frozenset[str], held: Decision | None,
    ) -> Decision:
        """What is preferred, as far as it goes beside what must be."""
        wish = self.wish
        near = wish.vswitch == 'prefer' and bool(self.switch)
        local = wish.pci == 'prefer' and self.devices is not None
        if not near and not local:
            return self._accept(strict, strict, held)
        goals = []
        if near and local:
            goals.append(self._near_switch(must)._replace(local=True))
        if near:
            goals.append(self._near_switch(must))
        if local:
            goals.append(must._replace(local=True))
        options = None if held is None else [held.labels]
        for goal in goals:
            if self.possible(goal):
                labels = self.find_preferred(goal, must, options)
                if labels is not None:
                    return self._accept(labels, strict, held)
        return self._partly(must, near, local, strict, held)

    def _partly(
        self, must: _Goal, near: bool, local: bool, strict: frozenset[str],
        held: Decision | None,
    ) -> Decision:
        """As much of the guest and its devices as there is room for."""
        cells = len(must.masks)
        options: list[frozenset[str]] = [strict]
        if held is not None:
            options = [held.labels, held.strict_labels]
        elif near and cells > 1:
            switch = self.switch
            target = candidates.most_local(
                must.masks, switch, self.groups, self.stock)
            for rows in itertools.combinations(range(cells), target):
                goal = _Goal(
                    [mask & switch if row in rows else mask
                     for row, mask in enumerate(must.masks)], switch,
                    must.local)
                if self.possible(goal):
                    options += self.label_sets(goal)
                    break
        if held is None and local:
            options += self.label_sets(must)
        best, most = strict, (-1.0,)
        for labels in options:
            if not self.keeps(labels, must):
                continue
            part = self._locality(self.predicted(labels))
            score = (part[0] * near + part[1] * local, part[0] * near)
            if score > most:
                best, most = labels, score
        return self._accept(best, strict, held)


def expected(
    evaluation: Evaluation, wish: Wish, decision: Decision,
    devices: pci.Devices | None = None,
) -> tuple[int, ...] | None:
    """The host cells that the claim is expected to choose.

    :param decision: that accepts the host
    :param devices: the PCI devices of the host; None if none are asked for
    :returns: host cell of each guest cell; None if it cannot be said
    """
    physnets, tunnel = _network_groups(evaluation.host, wish)
    groups = physnets if decision.ignore_tunnel else physnets + tunnel
    labels = evaluation.host.labels
    groups = groups + [labels[label] for label in decision.labels]
    return evaluation.choose(
        groups, None if devices is None else devices.stock)


def decide_plain(
    evaluation: Evaluation, wish, devices: pci.Devices | None = None,
) -> Decision | None:
    """The decision where Nova's own rules are all there is.

    With one allocation candidate; the hot path.

    :param wish: anything with the networks of a :class:`Wish`
    :param devices: the PCI devices of the host; None if none are asked for
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
    if evaluation.accepted(
            groups, None if devices is None else devices.stock, traces):
        return PLAIN
    return Decision(False, functools.partial(
        shortage.capacity_reason, evaluation, groups=groups, devices=devices))


def decide(
    evaluation: Evaluation, wish: Wish, names: Names,
    devices: pci.Devices | None = None,
    predicted_is_enough: bool = False, traces=None,
    held: Decision | None = None,
) -> Decision:
    """Decide about one guest on one host.

    :param evaluation: where the guest fits
    :param wish: what is asked beyond that
    :param names: what the labels are called
    :param devices: the PCI devices of the host; None if none are asked for
    :param predicted_is_enough: accept a host for a strict policy also if the
        claim keeps the policy only on the host as it is known now
    :param traces: what Nova's earlier searches have left on the guest
    :param held: the decision for a server that the same request has placed
        on this host already
    """
    physnets, tunnel = _network_groups(evaluation.host, wish)
    decision = _Steering(
        evaluation, wish, names, devices, predicted_is_enough,
        physnets + tunnel, False).decide(traces, held)
    if not tunnel or not wish.tunnel_uncertain:
        return decision
    if decision.accepted and (
            decision.value == wish.best or wish.plain or not wish.steered):
        return decision
    # The tunnel is not known to be used, so it is only preferred.
    without = _Steering(
        evaluation, wish, names, devices, predicted_is_enough,
        physnets, True).decide(traces, held)
    if without.accepted and (
            not decision.accepted or without.value > decision.value):
        return without
    return decision
