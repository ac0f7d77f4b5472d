# SPDX-License-Identifier: Apache-2.0
"""Define the interface of a rule: one placement policy of one request.

The solver (:mod:`nfv_sched.fit.numa.decide`) knows no rule.  It calls each of
them: which host cells are left for each guest cell (:meth:`Rule.narrow`)?  Is
the rule satisfied if the claim chooses these (:meth:`Rule.is_satisfied`)?
Does the claim satisfy it in every state of the host
(:meth:`Rule.is_always_satisfied`)?  How far is it satisfied
(:meth:`Rule.degree`)?  And why is the host refused
(:meth:`Rule.missing_reason`, :meth:`Rule.capacity_reason`,
:meth:`Rule.claim_reason`)?

Rules are made once for a request and shared by all hosts.  A rule reads what
it needs of a host once (:meth:`Rule.read`); the result, its *facts*, is passed
to most of its other methods.  Host cells are positions among the NUMA nodes of
the host; a bitmask has a bit for each.
"""

import abc
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
import dataclasses
import re
import typing as ty

from nfv_sched.base import extra_specs as nfv_extra_specs
from nfv_sched.base import reasons
from nfv_sched.base import strings
from nfv_sched.fit.numa import candidates
from nfv_sched.fit.numa import fit
from nfv_sched.fit.numa import pci
from nfv_sched.fit.numa import shortage
from nfv_sched.fit.numa import topology

Facts = ty.Any

_NOWHERE: frozenset[str] = frozenset()
# Number of a NUMA node in a label, without leading zeros.
_NUMBER = re.compile('0|[1-9][0-9]*')


class RequestError(Exception):
    """Raised if no host can take the request; ``reason`` says why.

    :param policy: the key with its value, or ``flavor``
    :param need: the requirement that is not met
    """

    def __init__(self, policy: str, need: str):
        super().__init__(f'{policy}: {need}')
        self.reason = reasons.Reason(reasons.REQUEST, policy, need)


class RequestParts(ty.NamedTuple):
    """The parts of a request from which rules are made."""

    policy: nfv_extra_specs.NFVPolicy  #: the policies of nfv-sched's own keys
    extra_specs: Mapping[str, ty.Any]  #: all extra specs of the flavor
    properties: ty.Any  #: image properties by name, anything with ``get``
    #: the guest's NUMA cells; None if it has none
    guest: topology.GuestTopology | None
    numa_topology: ty.Any  #: ``nova.objects.InstanceNUMATopology`` or None
    demands: tuple[pci.Demand, ...]  #: the PCI requests
    #: physical networks that are reached through the virtual switch
    physnets: frozenset[str]
    #: whether a tunnelled network is known to be among the networks
    tunneled: bool
    needs_threads: bool  #: Nova requires a host with sibling threads


class Names(ty.NamedTuple):
    """Names of the labels, from nova.conf."""

    vswitch: str  #: label of the host cells with the virtual switch
    #: prefix of the label of a host cell; the NUMA node number follows
    node_prefix: str

    def of_node(self, number: int) -> str:
        return f'{self.node_prefix}{number}'

    def node(self, label: str) -> int | None:
        """Return the NUMA node number in a node label; None for others."""
        number = label[len(self.node_prefix):]
        if label.startswith(self.node_prefix) and _NUMBER.fullmatch(number):
            return int(number)
        return None


class Labels(ty.NamedTuple):
    """Labels of a host with which the claim may satisfy a rule."""

    #: added to the limits if possible even where the claim satisfies the rule
    #: without them, in case the host was misread or changes
    held: frozenset[str] = _NOWHERE
    #: labels that together may make the claim satisfy the rule
    tried: frozenset[str] = _NOWHERE


class Pinning(ty.NamedTuple):
    """The host cells and CPUs on which a guest runs."""

    chosen: Sequence[int]  #: position of the host cell of each guest cell
    #: for each guest cell the host CPUs of its pinned vCPUs
    pins: Sequence[Sequence[int]]
    #: host CPUs to which other guests are pinned
    others: frozenset[int] = frozenset()


class Goal(ty.NamedTuple):
    """The requirements on a choice of host cells."""

    #: for each guest cell the host cells left to it, as a bitmask
    masks: Sequence[int]
    #: the rules to satisfy, with their facts
    rules: tuple[tuple['Rule', Facts], ...] = ()
    #: the condition on all chosen host cells together
    condition: candidates.Condition | None = None
    #: for each guest cell the host cells that the rules leave to it on an
    #: empty host, as a bitmask; for reasons, empty otherwise
    allowed: Sequence[int] = ()

    @property
    def places(self) -> tuple[str, ...]:
        """Properties of the remaining host cells, for reasons."""
        return tuple([rule.where.strip() for rule, _facts in self.rules
                      if rule.where])


class GuestOnHost(ty.Protocol):
    """A guest on a host, as methods of a rule see it beside their facts.

    ``cells`` and ``groups`` are bitmasks; claims take one cell of each group.
    """

    evaluation: ty.Any  #: where the guest fits, by Nova's own rules
    names: Names  #: names of the labels
    #: the host's free PCI devices; None if none are requested or reported
    devices: pci.CandidateDevices | None
    #: the texts of all strict rules, for reasons that concern them all
    strict_text: str
    #: host cells near each network of the request, as bitmasks
    groups: list[int]
    #: that devices meet Nova's own NUMA policies; None without devices
    stock: candidates.Condition | None

    def always_within(self, groups: Sequence[int], cells: int) -> bool:
        """Return whether no claim, in any host state, takes other cells."""

    def always_on(self, groups: Sequence[int], cells: int) -> bool:
        """Return whether every claim, in any host state, takes all cells."""

    def always_meets(self, groups: Sequence[int],
                     condition: candidates.Condition) -> bool:
        """Return whether every claim, in any host state, meets a condition."""

    def node_labels(self, cells: int) -> frozenset[str] | None:
        """Return their node labels; None if one has none of its own."""

    def possible(self, goal: Goal) -> bool:
        """Return whether any choice satisfies a goal."""

    def label_sets(self, goal: Goal) -> Iterator[frozenset[str]]:
        """Yield sets of labels to try, with which the claim may reach a goal.

        First each set with the labels that the rules request to be held, then
        each without them.  Both times in this order: no labels, the labels of
        one rule, of all rules, of single host cells, and of the switch.
        """


@dataclasses.dataclass(frozen=True, eq=False)
class Rule(abc.ABC):
    """One placement policy of one request; see the module.

    A rule overrides the methods that concern it.  No method but
    :meth:`from_request` raises.  Unless a method documents them otherwise,
    ``facts`` is what :meth:`read` returned for the host, and ``chosen`` is a
    choice: the position of the host cell of each guest cell.
    """

    #: Name of the rule, and of its entry point in ``nfv_sched.rules``.
    name: ty.ClassVar[str]
    #: Class names of the filters that enforce it; the first that is enabled
    #: refuses hosts by it.
    filters: ty.ClassVar[tuple[str, ...]]
    #: Position among the reasons of a request, and among its rules: between
    #: ``reasons.CAPACITY`` and ``reasons.OTHERS``, which is for rules of other
    #: packages.
    order: ty.ClassVar[int]
    #: Extra specs that it reads, to find misspelt ones.  What follows the
    #: first dot stands for any text, as in ``nfv:numa_node.N``.
    keys: ty.ClassVar[tuple[str, ...]] = ()
    #: It counts whichever filters are enabled.
    always_active: ty.ClassVar[bool] = False
    #: It may exclude host cells; otherwise only whole hosts.
    excludes_cells: ty.ClassVar[bool] = True
    #: Weighers rank hosts by its degree.
    weighed: ty.ClassVar[bool] = False
    #: It assigns guest cells to host cells (:meth:`assigned_cells`).
    assigns_cells: ty.ClassVar[bool] = False
    #: It lowers the CPU allocation ratio (:meth:`cpu_ratio`).
    lowers_cpu_ratio: ty.ClassVar[bool] = False
    #: It concerns the NUMA nodes of PCI devices.
    devices: ty.ClassVar[bool] = False

    text: str  #: the policy for reasons: the key with its value
    #: a host that cannot satisfy it is refused; else it is only preferred
    strict: bool = True
    #: the request has it by a key of nfv-sched, not by one of Nova. If no rule
    #: of a request is ours, no labels are added to its limits.
    ours: bool = True

    def __init_subclass__(cls, **kwargs: ty.Any) -> None:
        """Refuse a class that excludes host cells without holding the claim.

        By default is_satisfied and is_always_satisfied do not see what narrow
        excludes: the rule would count as satisfied on all host cells.
        """
        super().__init_subclass__(**kwargs)
        if cls.narrow is not Rule.narrow and (
                cls.is_satisfied is Rule.is_satisfied or
                cls.is_always_satisfied is Rule.is_always_satisfied):
            raise TypeError(
                f'{cls.__name__}: a rule with narrow() needs is_satisfied() '
                'and is_always_satisfied() of its own')

    @classmethod
    @abc.abstractmethod
    def from_request(cls, request_parts: RequestParts) -> Iterable['Rule']:
        """Return the rules of this class for a request; mostly none or one.

        :raises RequestError: if no host can take the request
        """

    @classmethod
    def faults(
        cls, extra_specs: Mapping[str, ty.Any],
    ) -> Iterable[nfv_extra_specs.Fault]:
        """Return the faults in a flavor that :meth:`from_request` raises."""
        # extra_specs.parse checks the keys that it reads.
        return ()

    @property
    def where(self) -> str:
        """Remaining cells for reasons: " with the virtual switch", or ""."""
        return ''

    def cpu_ratio(self, host: topology.HostTopology, ratio: float,
                  limit: Callable[[str], float]) -> float:
        """Return the CPU allocation ratio: shared vCPUs per shared CPU.

        :param ratio: the ratio by Nova and the rules before this one
        :param limit: returns the value of a limit of ``[nfv_sched]``, by name,
            for this host
        :returns: ``ratio`` or less
        """
        return ratio

    def cpu_ratio_reason(self, evaluation,
                         ratios: fit.Ratios) -> reasons.Reason | None:
        """Return the reason if only the ratio of :meth:`cpu_ratio` refuses.

        :param evaluation: the guest on the host with the ratio of
            :meth:`cpu_ratio`
        :param ratios: Nova's allocation ratios of the host
        :returns: None if it would not fit with Nova's ratio either
        """
        return None

    def unsuitable_reason(
        self, host: topology.HostTopology,
    ) -> reasons.Reason | None:
        """Return why not even an empty host can satisfy the rule, or None."""
        return None

    def read(self, host: topology.HostTopology, names: Names) -> Facts:
        """Return the facts: all that the rule needs of a host; hashable.

        Hosts with equal facts that Nova, too, treats alike share one decision:
        a rule must not look at anything else of a host.
        """
        return None

    def missing_reason(self, facts: Facts,
                       guest_on_host: GuestOnHost) -> reasons.Reason | None:
        """Return what the host is missing for the rule, however empty it is.

        Such as a label or PCI devices.  Called for strict rules if the guest
        fits; None if nothing is missing.
        """
        return None

    def applies(self, facts: Facts, guest_on_host: GuestOnHost) -> bool:
        """Return whether a preferred rule can be satisfied, even in part."""
        return True

    def narrow(self, facts: Facts, goal: Goal) -> Sequence[int]:
        """Return the masks of a goal without host cells that are excluded."""
        return goal.masks

    def condition(self, facts: Facts,
                  guest_on_host: GuestOnHost) -> candidates.Condition | None:
        """Return the condition on the chosen host cells, if any."""
        return None

    def is_satisfied(self, facts: Facts, guest_on_host: GuestOnHost,
                     chosen: Sequence[int]) -> bool:
        """Return whether a choice satisfies the rule, by its condition."""
        condition = self.condition(facts, guest_on_host)
        return condition is None or condition.test(candidates.mask_of(chosen))

    def violation_reason(self, facts: Facts, guest_on_host: GuestOnHost,
                         pinning: Pinning) -> reasons.Reason | None:
        """Return why a guest that runs already does not satisfy the rule.

        :param pinning: where it runs
        :returns: None if it satisfies the rule
        """
        if self.is_satisfied(facts, guest_on_host, pinning.chosen):
            return None
        host = guest_on_host.evaluation.host
        nodes = sorted({host.cells[index].id for index in pinning.chosen})
        return reasons.Reason(
            self.order, self.text, f'NUMA nodes{self.where} needed',
            f'it is on {", ".join(map(str, nodes))}')

    def is_always_satisfied(self, facts: Facts, guest_on_host: GuestOnHost,
                            groups: Sequence[int]) -> bool:
        """Return whether the claim satisfies the rule in every host state.

        That is, whichever guests come or go before the claim is made.  By
        default by its condition, which must not depend on the state of the
        host then.

        :param groups: bitmasks of host cells; the claim takes one of each
        """
        condition = self.condition(facts, guest_on_host)
        return condition is None or guest_on_host.always_meets(
            groups, condition)

    def labels(self, facts: Facts, guest_on_host: GuestOnHost) -> Labels:
        """Return labels to try, beside node labels, which always are tried."""
        return Labels()

    def degree(self, facts: Facts, guest_on_host: GuestOnHost,
               chosen: Sequence[int]) -> float:
        """Return how far a choice satisfies the rule, from 0 to 1."""
        return 0.0

    def partial_labels(self, facts: Facts, guest_on_host: GuestOnHost,
                       must: Goal) -> Iterable[frozenset[str]]:
        """Return sets of labels with which the rule may be satisfied in part.

        Called for preferred rules that cannot be satisfied in full.

        :param must: the goal of the strict rules
        """
        return ()

    def capacity_reason(self, facts: Facts, guest_on_host: GuestOnHost,
                        before: Goal) -> reasons.Reason:
        """Return why no choice is left once this strict rule is applied.

        :param before: the goal without this rule, for which there are choices
        """
        return reasons.Reason(self.order, self.text, 'capacity needed', 'none')

    def claim_reason(self, facts: Facts, guest_on_host: GuestOnHost,
                     before: Goal) -> reasons.Reason | None:
        """Return why no labels make the claim satisfy this strict rule.

        :param before: the goal without this rule, which labels can enforce
        :returns: None to leave it to a general reason
        """
        return None

    def assigned_cells(self, facts: Facts) -> Iterable[tuple[int, int, str]]:
        """Return the mapped cells: guest cell, bitmask of host cells, key."""
        return ()

    def needs_topology(self, text: str = '') -> reasons.Reason:
        """Return the reason that refuses a guest without NUMA topology."""
        return reasons.Reason(
            self.order, text or self.text,
            'a guest NUMA topology needed, set hw:numa_nodes', own=True)

    def floating(self, host: topology.HostTopology | None,
                 names: Names) -> float | reasons.Reason:
        """Return how far a guest without NUMA topology satisfies the rule.

        The CPUs of such a guest float over the whole host.

        :param host: the host's NUMA cells; None if it reports none
        :returns: the degree, or the reason if the host is refused
        """
        return 0.0


class CellsRule(Rule):
    """A rule by which all guest cells are to be on certain host cells.

    Its facts are the bitmask of these; None if the host does not declare them.
    """

    weighed = True

    @abc.abstractmethod
    def label(self, names: Names) -> str | None:
        """Return the label of these host cells; None if they have none."""

    @abc.abstractmethod
    def undeclared_reason(self) -> reasons.Reason:
        """Return the reason for a host that declares no such host cells."""

    @property
    @abc.abstractmethod
    def noun(self) -> str:
        """Description of these host cells for reasons: "with the switch"."""

    @property
    def where(self) -> str:
        return f' {self.noun}'

    def missing_reason(self, facts, guest_on_host):
        return self.undeclared_reason() if facts is None else None

    def applies(self, facts, guest_on_host):
        return bool(facts)

    def narrow(self, facts, goal):
        return [mask & facts for mask in goal.masks]

    def is_satisfied(self, facts, guest_on_host, chosen):
        return not candidates.mask_of(chosen) & ~facts

    def is_always_satisfied(self, facts, guest_on_host, groups):
        return guest_on_host.always_within(groups, facts)

    def labels(self, facts, guest_on_host):
        label = self.label(guest_on_host.names)
        if label is None or label not in guest_on_host.evaluation.host.labels:
            return Labels()
        own = frozenset([label])
        # A strict rule holds the claim by the label even where it is satisfied
        # without: the record of the host may be misread, or change until the
        # claim. A preference restricts the claim only where it must.
        return Labels(own if self.strict else _NOWHERE, own)

    def degree(self, facts, guest_on_host, chosen):
        if not facts:
            return 0.0
        return (candidates.mask_of(chosen) & facts).bit_count() / len(chosen)

    def partial_labels(self, facts, guest_on_host, must):
        """Yield labels that may put the most guest cells there at once."""
        cells = len(must.masks)
        if cells == 1:
            return
        try:
            target = candidates.most_local(
                must.masks, facts, guest_on_host.groups, guest_on_host.stock)
        except candidates.TooManySets:
            return
        for rows in candidates.row_sets(cells, target):
            goal = Goal(
                [mask & facts if row in rows else mask
                 for row, mask in enumerate(must.masks)],
                (*must.rules, (self, facts)), must.condition)
            if guest_on_host.possible(goal):
                yield from guest_on_host.label_sets(goal)
                break

    def capacity_reason(self, facts, guest_on_host, before):
        host = guest_on_host.evaluation.host
        nodes = host.nodes(facts)
        cells = len(guest_on_host.evaluation.guest.cells)
        # A mapping that contradicts the rule is the flavor's mistake.
        for rule, rule_facts in before.rules:
            for _guest, mask, key in rule.assigned_cells(rule_facts):
                if not mask & facts:
                    return self.node_map_reason(
                        host.nodes(mask)[0], key, nodes)
        if len(nodes) < cells:
            return reasons.Reason(
                self.order, self.text,
                f'{strings.count(cells, "host NUMA node")} {self.noun} '
                f'needed', f'has {len(nodes)}', len(nodes))
        places = (*before.places, self.noun)
        allowed = [mask & facts for mask in before.allowed
                   or [host.all_cells] * cells]
        if not any(allowed):
            return shortage.no_node(self.order, self.text, places)
        return shortage.capacity_reason(
            guest_on_host.evaluation, self.text, allowed, self.order, places,
            guest_on_host.groups, guest_on_host.devices)

    def floating(self, host, names):
        """Return degree 1 if the host's only NUMA node is such a node."""
        # Where all CPUs are on one node, the guest cannot float elsewhere.
        one_node = host is not None and len(host.cells) == 1
        facts = self.read(host, names) if one_node else None
        if facts:
            return 1.0
        if not self.strict:
            return 0.0
        if not one_node:
            return self.needs_topology()
        if facts is None:
            return self.undeclared_reason()
        return reasons.Reason(
            self.order, self.text, f'1 host NUMA node {self.noun} needed',
            'has 0')

    @abc.abstractmethod
    def node_map_reason(self, node: int, key: str, nodes: Sequence[int]):
        """Return the reason if the node mapping puts a guest cell elsewhere.

        :param node: number of the host NUMA node of the mapping
        :param key: extra spec of the mapping
        :param nodes: numbers of the host NUMA nodes that satisfy this rule
        """
