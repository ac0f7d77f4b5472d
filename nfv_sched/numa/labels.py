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
"""What the claim on the compute node does with labels.

The scheduler chooses hosts; nova-compute chooses host NUMA nodes, with the
limits that the scheduler sends.  Labels, physical networks in those limits
that at least one chosen node must be near, are all the scheduler can say.

:class:`Ground` knows a guest on a host: what the claim would choose with some
labels, and what no state of the host lets it choose.  No I/O, no Nova objects.
"""

from collections.abc import Iterator
from collections.abc import Sequence
import itertools

from nfv_sched.numa import candidates
from nfv_sched.numa.evaluation import Evaluation
from nfv_sched.numa import pci
from nfv_sched.numa import walk
from nfv_sched.rules import base

# Sets of host cells that are tried as exact targets before giving up. One is
# nearly always enough: Nova's search follows the same order.
_MAX_TARGETS = 16


class Ground:
    """A guest on a host; see :class:`nfv_sched.rules.base.Ground`.

    :param evaluation: where the guest fits
    :param names: what the labels are called
    :param devices: the PCI devices of the host; None if none are asked for
    :param groups: host cells near each network of the request, as bitmasks
    """

    def __init__(
        self, evaluation: Evaluation, names: base.Names,
        devices: pci.Devices | None, groups: list[int],
    ):
        self.evaluation = evaluation
        self.names = names
        self.devices = devices
        self.groups = groups
        self.host = evaluation.host
        self.stock = None if devices is None else devices.stock
        #: The strict rules of the request, for reasons.
        self.strict_text = 'NUMA topology'
        #: Labels that would do were not used, as CPUs could be pinned twice.
        self.pins_astray = False
        self._undecided = False
        self._chosen: dict[frozenset[str],
                           tuple[int, ...] | None] = {}

    def label_groups(self, labels: frozenset[str]) -> list[int]:
        """Host cells of which the claim takes one each, as bitmasks."""
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

    def possible(self, goal: base.Goal) -> bool:
        """Whether any choice is what is wanted."""
        return candidates.satisfiable(
            goal.masks, self.groups, goal.condition)

    def always_within(self, groups: Sequence[int], cells: int) -> bool:
        """No state of the host lets a claim leave these host cells."""
        static = self.evaluation.static_masks
        return not any(
            candidates.feasible(static, [*groups, 1 << index])
            for index in candidates.bits(self.host.all_cells & ~cells))

    def always_on(self, groups: Sequence[int], cells: int) -> bool:
        """No state of the host lets a claim leave out one of these cells."""
        static = self.evaluation.static_masks
        return not any(
            candidates.feasible([mask & ~(1 << index) for mask in static],
                                groups)
            for index in candidates.bits(cells))

    def keeps_pins(self, labels: frozenset[str]) -> bool:
        """Whether the claim pins CPUs of the chosen host cells only."""
        if self._pins_stay(self.label_groups(labels)):
            return True
        self.pins_astray = True
        return False

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
        """Labels of these host cells; None if one has none of its own."""
        labels = set()
        for index in candidates.bits(cells):
            label = f'{self.names.node_prefix}{self.host.cells[index].id}'
            if self.host.labels.get(label) != 1 << index:
                return None
            labels.add(label)
        return frozenset(labels)

    def label_sets(self, goal: base.Goal) -> Iterator[frozenset[str]]:
        """Sets of labels with which the claim may do it, the least first.

        With those that the rules carry in any case, then without.
        """
        # Not in the order of the filters, which must not matter.
        found = [rule.labels(facts, self) for rule, facts in sorted(
            goal.rules, key=lambda item: (item[0].order, item[0].text))]
        held = frozenset().union(*(labels.held for labels in found))
        tried = [labels.tried for labels in reversed(found) if labels.tried]
        seen = set()
        for more in (held, frozenset()) if held else (held,):
            for labels in self._least_labels(goal, tried):
                labels |= more
                if labels not in seen:
                    seen.add(labels)
                    if not labels or self.keeps_pins(labels):
                        yield labels

    def _least_labels(
        self, goal: base.Goal, tried: list[frozenset[str]],
    ) -> Iterator[frozenset[str]]:
        yield frozenset()
        yield from tried
        if len(tried) > 1:
            yield frozenset().union(*tried)
        for target in itertools.islice(candidates.assignments(
            goal.masks, self.evaluation.order, self.groups, goal.condition,
        ), _MAX_TARGETS):
            exact = self.node_labels(candidates.mask_of(target))
            if exact:
                yield exact
        if self.names.vswitch in self.host.labels:
            # By chance it may be where the guest should be.
            yield frozenset([self.names.vswitch])
