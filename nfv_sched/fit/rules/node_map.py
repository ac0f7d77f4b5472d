# SPDX-License-Identifier: Apache-2.0
"""Keep guest NUMA nodes on given host NUMA nodes."""

import dataclasses
import functools
import operator

from nfv_sched.base import extra_specs
from nfv_sched.base import reasons
from nfv_sched.base import strings
from nfv_sched.fit.numa import candidates
from nfv_sched.fit.numa import rule
from nfv_sched.fit.numa import shortage


@dataclasses.dataclass(frozen=True, eq=False)
class NodeMapRule(rule.Rule):
    """``nfv:numa_node.{n}``: guest NUMA node n runs on a given host NUMA node.

    Facts: for each pair the bit of its host cell; 0 if the host has no NUMA
    node of that number.
    """

    name = 'node_map'
    filters = ('NFVTopologyFilter', 'VSwitchNUMAAffinityFilter')
    order = 10
    keys = (f'{extra_specs.NUMA_NODE}N',)
    always_active = True
    assigns_cells = True

    #: (guest NUMA node, number of the host NUMA node)
    pairs: tuple[tuple[int, int], ...] = ()
    #: for each pair its extra spec with the value
    keys_used: tuple[str, ...] = ()

    @classmethod
    def from_request(cls, request_parts):
        policy = request_parts.policy
        if not policy.node_map:
            return ()
        texts = tuple(f'{key}={node}' for (_guest, node), key in zip(
            policy.node_map, policy.node_keys))
        cells = len(request_parts.guest.cells) if request_parts.guest else 0
        for (guest, _node), text in zip(policy.node_map, texts):
            # Validators of extra specs see one key at a time, so only here is
            # it known that the guest has no such node.
            if cells and guest >= cells:
                raise rule.RequestError(
                    text,
                    f'the server has {strings.count(cells, "NUMA node")}')
        return (cls(', '.join(texts), pairs=policy.node_map, keys_used=texts),)

    def read(self, host, names):
        return tuple([host.bit_of(node) for _guest, node in self.pairs])

    def missing_reason(self, facts, guest_on_host):
        for (_guest, node), key, bit in zip(self.pairs, self.keys_used, facts):
            if not bit:
                cells = len(guest_on_host.evaluation.host.cells)
                return reasons.Reason(
                    self.order, key, f'host NUMA node {node} needed',
                    f'has {strings.count(cells, "NUMA node")}', cells)
        return None

    def narrow(self, facts, goal):
        masks = list(goal.masks)
        for (guest, _node), bit in zip(self.pairs, facts):
            masks[guest] &= bit
        return masks

    def is_satisfied(self, facts, guest_on_host, chosen):
        return all(1 << chosen[guest] == bit
                   for (guest, _node), bit in zip(self.pairs, facts))

    def violation_reason(self, facts, guest_on_host, pinning):
        cells = guest_on_host.evaluation.host.cells
        for (guest, node), key, bit in zip(self.pairs, self.keys_used, facts):
            index = pinning.chosen[guest]
            if 1 << index != bit:
                return reasons.Reason(
                    self.order, key, f'host NUMA node {node} needed',
                    f'it is on {cells[index].id}')
        return None

    def is_always_satisfied(self, facts, guest_on_host, groups):
        """Return whether every claim keeps mapped guest cells in their place.

        Nova may take one guest cell for another (see
        :mod:`nfv_sched.fit.numa.walk`), so this is known in few cases only.
        """
        evaluation = guest_on_host.evaluation
        guest, cells = evaluation.pristine, len(evaluation.guest.cells)
        if (len(evaluation.host.cells) == cells and
                evaluation.interchangeable and not guest.any_pages):
            # Nova first tries guest cell 0 on host cell 0 and so on. Where
            # like guest cells fit in any order, they fit in that one.
            return all(bit == 1 << row
                       for (row, _node), bit in zip(self.pairs, facts))
        # A page request narrowed at one host cell may rule out the next.
        if cells > 1 and guest.any_pages:
            return False
        if cells > 1 and not cells == len(evaluation.host.cells) == 2:
            return False
        static = (evaluation.static_masks if cells == 1
                  else evaluation.static_fits)
        for (row, _node), bit in zip(self.pairs, facts):
            masks = list(static)
            masks[row] &= ~bit
            if candidates.feasible(masks, groups):
                return False
        return True

    def labels(self, facts, guest_on_host):
        own = guest_on_host.node_labels(
            functools.reduce(operator.or_, facts, 0)) or frozenset()
        # Then the label is the mapping. With several guest cells it would
        # leave open which is where, and restrict the claim for nothing.
        single = len(guest_on_host.evaluation.guest.cells) == 1
        return rule.Labels(own if single else frozenset(), own)

    def capacity_reason(self, facts, guest_on_host, before):
        masks = self.narrow(facts, before)
        for (guest, _node), key, bit in zip(self.pairs, self.keys_used, facts):
            if not masks[guest]:
                allowed = [guest_on_host.evaluation.host.all_cells] * len(
                    masks)
                allowed[guest] = bit
                # What the named host node lacks, under the key that names it.
                capacity = shortage.capacity_reason(
                    guest_on_host.evaluation, within=allowed)
                return capacity._replace(order=self.order, policy=key)
        if guest_on_host.devices is not None and candidates.feasible(
                masks, guest_on_host.groups):
            reason = shortage.devices_reason(
                guest_on_host.evaluation, guest_on_host.devices, masks,
                guest_on_host.strict_text, self.order)
            if reason is not None:
                return reason
        return reasons.Reason(
            self.order, guest_on_host.strict_text,
            'needs NUMA nodes that suit the node mapping, networks and PCI '
            'devices', 'none')

    def assigned_cells(self, facts):
        for (guest, _node), key, bit in zip(self.pairs, self.keys_used, facts):
            yield guest, bit, key

    def floating(self, host, names):
        """Return a reason unless the only NUMA node is the right one."""
        one_node = host is not None and len(host.cells) == 1
        for (guest, node), key in zip(self.pairs, self.keys_used):
            if guest or not one_node or host.cells[0].id != node:
                return self.needs_topology(key)
        return 0.0
