# SPDX-License-Identifier: Apache-2.0
"""Predict the choice of the claim on the compute node with given labels.

The scheduler chooses the host, nova-compute the host NUMA nodes.  The
scheduler can only influence that by labels: physical networks in the limits
that at least one chosen NUMA node must be near.

:class:`ClaimPredictor` predicts, for a guest on a host, what the claim would
choose now and what it could choose in any state of the host.  No I/O, no Nova
objects.
"""

from collections.abc import Iterator, Sequence

from nfv_sched.fit.numa import candidates
from nfv_sched.fit.numa.evaluation import Evaluation
from nfv_sched.fit.numa import pci
from nfv_sched.fit.numa import rule as numa_rule
from nfv_sched.fit.numa import walk

# Choices whose node labels are tried before giving up. One is nearly always
# enough: they come in the order of Nova's search.
_MAX_TARGETS = 16


class ClaimPredictor:
    """Predicts the choice of the claim for a guest on a host.

    Rules see it as :class:`nfv_sched.fit.numa.rule.GuestOnHost`.

    :param devices: the PCI devices of the host; None if none are requested
    """

    def __init__(self, evaluation: Evaluation, names: numa_rule.Names,
                 devices: pci.CandidateDevices | None, groups: list[int]):
        self.evaluation = evaluation
        self.names = names
        self.devices = devices
        self.groups = groups
        self.host = evaluation.host
        self.stock = None if devices is None else devices.stock
        #: Texts of the strict rules of the request, for reasons.
        self.strict_text = 'NUMA topology'
        #: Whether some labels were dismissed because the claim could pin CPUs
        #: of other host cells with them.
        self.pins_astray = False
        self._undecided = False
        self._chosen: dict[frozenset[str], tuple[int, ...] | None] = {}

    def label_groups(self, labels: frozenset[str]) -> list[int]:
        """Return bitmasks: the claim must choose one host cell of each."""
        cells_by_label = self.host.labels
        return self.groups + [cells_by_label[label] for label in labels]

    def predicted(self, labels: frozenset[str]) -> tuple[int, ...] | None:
        """Return the choice of the claim on the host as it is known now.

        :returns: position of the host cell of each guest cell; None if the
            claim would fail, or it is not known
        """
        if labels not in self._chosen:
            groups = self.label_groups(labels)
            chosen = None
            # Without labels the claim is that of stock Nova: where its search
            # is too long, a guess is enough. Labels must not rest on one.
            if not labels:
                chosen = self.evaluation.choose(groups, self.stock)
            elif not self._undecided:
                try:
                    chosen = self.evaluation.choose_steered(groups, self.stock)
                # Another set of labels would take as long.
                except walk.Undecided:
                    self._undecided = True
            self._chosen[labels] = chosen
        return self._chosen[labels]

    def possible(self, goal: numa_rule.Goal) -> bool:
        """Return whether any choice is known to satisfy a goal."""
        try:
            return candidates.satisfiable(
                goal.masks, self.groups, goal.condition)
        except candidates.TooManySets:
            return False

    def always_within(self, groups: Sequence[int], cells: int) -> bool:
        static = self.evaluation.static_masks
        return not any(
            candidates.feasible(static, [*groups, 1 << index])
            for index in candidates.bits(self.host.all_cells & ~cells))

    def always_on(self, groups: Sequence[int], cells: int) -> bool:
        static = self.evaluation.static_masks
        return not any(
            candidates.feasible([mask & ~(1 << index) for mask in static],
                                groups)
            for index in candidates.bits(cells))

    def always_meets(self, groups: Sequence[int],
                     condition: candidates.Condition) -> bool:
        try:
            return not candidates.satisfiable(
                self.evaluation.static_masks, groups, candidates.Condition(
                    lambda chosen: not condition.test(chosen),
                    condition.relevant))
        except candidates.TooManySets:
            return False

    def only_choice(self, labels: frozenset[str],
                    held: frozenset[str]) -> tuple[int, ...] | None:
        """Return the predicted choice if no state of the host allows another.

        Guest cells that are alike may change places.

        :param held: those of the labels that leave no other choice
        """
        if (chosen := self.predicted(labels)) is None or (
                len(self.host.cells) == 1):
            return None
        groups, static = self.label_groups(held), self.evaluation.static_masks
        if not self.always_within(groups, candidates.mask_of(chosen)):
            return None
        if not self.evaluation.interchangeable:
            for guest_cell, host_cell in enumerate(chosen):
                masks = list(static)
                masks[guest_cell] &= ~(1 << host_cell)
                if candidates.feasible(masks, groups):
                    return None
        return chosen

    def keeps_pins(self, labels: frozenset[str]) -> bool:
        """Return whether all claims keep pins; else set ``pins_astray``."""
        if self._pins_stay(self.label_groups(labels)):
            return True
        self.pins_astray = True
        return False

    def _pins_stay(self, groups: Sequence[int]) -> bool:
        """Return whether every claim pins CPUs of the chosen host cells only.

        Nova's search may put a guest cell on one host cell with the pins that
        it got on another (see :class:`nfv_sched.fit.numa.walk.Traces`).  Such
        a claim fails, except with ``hw:cpu_thread_policy=isolate``: there Nova
        drops the pins of other host cells when it records the claim, and gives
        these CPUs to other guests, too.

        It is known not to happen where the search never tries the same two
        cells again after it has renumbered the guest cell.  With like guest
        cells: if there are no more host cells than these, or if no PCI devices
        are requested and the groups that a choice may miss all contain the
        smallest of them.  With two unlike ones: if no PCI devices are
        requested and no choice can miss a group.  And on hosts of so few NUMA
        nodes that the tests try all courses of the search.
        """
        guest = self.evaluation.guest
        count, hosts = len(guest.cells), len(self.host.cells)
        if count == 1 or not guest.isolates or count == hosts == 2:
            return True
        # A page request that is narrowed may lead back to a host cell.
        if self.evaluation.pristine.any_pages:
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

    def node_labels(self, cells: int) -> frozenset[str] | None:
        labels = set()
        for index in candidates.bits(cells):
            # A label that another cell declares as well, by a mistake in
            # nova.conf, does not hold the claim on this one.
            label = f'{self.names.node_prefix}{self.host.cells[index].id}'
            if self.host.labels.get(label) != 1 << index:
                return None
            labels.add(label)
        return frozenset(labels)

    def label_sets(self, goal: numa_rule.Goal) -> Iterator[frozenset[str]]:
        """Yield sets of labels to try for a goal; see ``GuestOnHost``.

        Sets with which the claim might pin CPUs of other cells are left out.
        """
        # Sorted anew: the order of the filters must not matter.
        rule_labels = [rule.labels(facts, self) for rule, facts in sorted(
            goal.rules, key=lambda item: (item[0].order, item[0].text))]
        held = frozenset().union(*(labels.held for labels in rule_labels))
        tried = [labels.tried for labels in reversed(rule_labels)
                 if labels.tried]
        seen = set()
        for more in (held, frozenset()) if held else (held,):
            for labels in self._least_labels(goal, tried):
                labels |= more
                if labels not in seen:
                    seen.add(labels)
                    # Without labels the claim is that of stock Nova.
                    if not labels or self.keeps_pins(labels):
                        yield labels

    def _least_labels(
        self, goal: numa_rule.Goal, tried_labels: list[frozenset[str]],
    ) -> Iterator[frozenset[str]]:
        """Yield sets of labels, those that restrict the claim least first.

        None, those of one rule, those of all rules, those of single host
        cells, that of the switch.
        """
        yield frozenset()
        yield from tried_labels
        if len(tried_labels) > 1:
            yield frozenset().union(*tried_labels)
        for target in candidates.some(
                goal.masks, self.evaluation.order, self.groups,
                goal.condition, _MAX_TARGETS):
            if exact := self.node_labels(candidates.mask_of(target)):
                yield exact
        if self.names.vswitch in self.host.labels:
            # No rule requests it, but it may be on the right host cells.
            yield frozenset([self.names.vswitch])
