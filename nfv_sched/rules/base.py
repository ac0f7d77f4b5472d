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
"""What a rule must answer.

A rule is one placement policy of one request.  The solver
(:mod:`nfv_sched.numa.decide`) knows no rule.  It asks each of them: which host
cells are left for each guest cell (:meth:`Rule.narrow`)?  Is the rule kept if
the claim chooses these (:meth:`Rule.kept`)?  Whatever the host looks like by
then (:meth:`Rule.always`)?  How far does a preference come true
(:meth:`Rule.degree`)?  And if it comes to nothing, why (:meth:`Rule.lacks`,
:meth:`Rule.no_room`, :meth:`Rule.not_held`)?

Rules are made once for a request and shared by all hosts.  What a rule has to
know of a host it reads once (:meth:`Rule.read`) and is given again with each
question: its *facts*.  Host cells are positions among the NUMA nodes of the
host; a bitmask has a bit for each.
"""

import abc
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import itertools
import typing as ty

from nfv_sched.numa import candidates
from nfv_sched.numa import fit
from nfv_sched.numa import pci
from nfv_sched.numa import shortage
from nfv_sched.numa import topology
from nfv_sched import policy as nfv_policy
from nfv_sched import reasons

Facts = ty.Any

_NOWHERE: frozenset[str] = frozenset()


class RequestError(Exception):
    """A request that no host can take.

    :param policy: what is wrong: the key and its value, or ``flavor``
    :param need: why, in words
    """

    def __init__(self, policy: str, need: str):
        super().__init__(f'{policy}: {need}')
        self.reason = reasons.Reason(reasons.REQUEST, policy, need)


class Asked(ty.NamedTuple):
    """What a request says, for those who look for rules in it.

    :ivar policy: the policies of nfv-sched's own keys
    :ivar extra_specs: all extra specs of the flavor
    :ivar properties: image properties by name, anything with ``get``
    :ivar guest: the guest's NUMA nodes; None if it has none
    :ivar numa_topology: ``nova.objects.InstanceNUMATopology`` or None
    :ivar demands: the PCI requests
    :ivar physnets: physical networks that are reached through the virtual
        switch
    :ivar tunneled: whether a tunnelled network is known to be among the
        networks
    :ivar needs_threads: Nova wants a host with sibling threads
    """

    policy: nfv_policy.NFVPolicy
    extra_specs: Mapping[str, ty.Any]
    properties: ty.Any
    guest: topology.Guest | None
    numa_topology: ty.Any
    demands: tuple[pci.Demand, ...]
    physnets: frozenset[str]
    tunneled: bool
    needs_threads: bool


class Names(ty.NamedTuple):
    """What the labels are called.

    :ivar vswitch: label of the host cells with the virtual switch
    :ivar node_prefix: prefix of the label of one host cell
    """

    vswitch: str
    node_prefix: str


class Labels(ty.NamedTuple):
    """Labels of a host that help a rule.

    :ivar held: those that a claim is given whether they are needed or not, in
        case the host was misread or changes
    :ivar tried: those with which the claim may do what the rule asks
    """

    held: frozenset[str] = _NOWHERE
    tried: frozenset[str] = _NOWHERE


class Goal(ty.NamedTuple):
    """What a choice of host cells must come to.

    :ivar masks: host cells that are left to each guest cell
    :ivar rules: the rules that are to be kept, with their facts
    :ivar condition: what is asked of the chosen host cells together
    """

    masks: Sequence[int]
    rules: tuple[tuple['Rule', Facts], ...] = ()
    condition: candidates.Condition | None = None

    @property
    def where(self) -> str:
        """What is special about the host cells that are left, in words."""
        return ''.join(rule.where for rule, _facts in self.rules)


class Ground(ty.Protocol):
    """What is known of a guest on a host, besides the facts of the rules.

    :ivar evaluation: where the guest fits, by Nova's own rules
    :ivar names: what the labels are called
    :ivar devices: the PCI devices that it can have; None if it asks for none,
        or the host says nothing of them
    :ivar strict_text: the strict rules of the request, for reasons that
        concern them all
    :ivar groups: host cells near each network of the request, as bitmasks
    :ivar stock: what Nova asks of the chosen host cells for the devices
    """

    evaluation: ty.Any
    names: Names
    devices: pci.Devices | None
    strict_text: str
    groups: list[int]
    stock: candidates.Condition | None

    def always_within(self, groups: Sequence[int], cells: int) -> bool:
        """Whether no state of the host lets a claim leave these host cells.

        :param groups: bitmasks of which the chosen host cells must meet each
        """

    def always_on(self, groups: Sequence[int], cells: int) -> bool:
        """Whether no state of the host lets a claim leave out one of these."""

    def node_labels(self, cells: int) -> frozenset[str] | None:
        """Labels of these host cells; None if one has none of its own."""

    def possible(self, goal: Goal) -> bool:
        """Whether any choice is what is wanted."""

    def label_sets(self, goal: Goal) -> Iterator[frozenset[str]]:
        """Sets of labels with which the claim may do it, the least first."""


@dataclasses.dataclass(frozen=True, eq=False)
class Rule(abc.ABC):
    """One placement policy of one request; see the module.

    No method raises, but :meth:`of`.

    :ivar text: the policy as the request says it, for reasons
    :ivar strict: it is kept, or the host refused; else it is preferred
    :ivar ours: the request has a key for it that is not Nova's.  If no rule
        is, nothing is added to what Nova tells the claim.
    """

    #: What the rule is called; the entry point in ``nfv_sched.rules``.
    name: ty.ClassVar[str]
    #: Names of the filters that keep it; the first that is enabled refuses
    #: hosts by it.
    filters: ty.ClassVar[tuple[str, ...]]
    #: Place among the reasons of a request, and among the rules.
    order: ty.ClassVar[int]
    #: Keys of the flavor that it reads.  What follows a point varies, and is
    #: there for those who misspell it.
    keys: ty.ClassVar[tuple[str, ...]] = ()
    #: It is kept whichever filters are enabled.
    general: ty.ClassVar[bool] = False
    #: It has a say in which host cells are chosen, not only in which hosts.
    steers: ty.ClassVar[bool] = True
    #: It has a degree, by which hosts are weighed.
    weighed: ty.ClassVar[bool] = False
    #: It says which guest cell goes where.
    assigns: ty.ClassVar[bool] = False
    #: It lowers the CPU allocation ratio (:meth:`cpu_ratio`).
    caps: ty.ClassVar[bool] = False
    #: It is about where PCI devices are.
    devices: ty.ClassVar[bool] = False

    text: str
    strict: bool = True
    ours: bool = True

    @classmethod
    @abc.abstractmethod
    def of(cls, asked: Asked) -> Iterable['Rule']:
        """The rules of this kind that a request has; mostly none or one.

        :param asked: what the request says
        :raises RequestError: if it contradicts itself
        """

    @classmethod
    def faults(cls, extra_specs: Mapping[str, ty.Any]) -> Iterable[str]:
        """What is wrong with its keys, whatever else a request says.

        For those who look at flavors; :meth:`of` raises it.  The keys that
        :func:`nfv_sched.policy.parse` reads are seen to there.

        :param extra_specs: all extra specs of a flavor
        """
        return ()

    @property
    def where(self) -> str:
        """What is special about the host cells that it leaves, in words."""
        return ''

    def cpu_ratio(self, host: topology.HostTopology, ratio: float,
                  limit: Callable[[str], float]) -> float:
        """Shared vCPUs that a shared CPU of the host takes.

        :param host: the host's NUMA nodes
        :param ratio: Nova's CPU allocation ratio
        :param limit: tells a limit of ``[nfv_sched]`` for this host
        """
        return ratio

    def too_full(
        self, evaluation, ratios: fit.Ratios,
    ) -> reasons.Reason | None:
        """Why a guest does not fit, if it is for what the rule takes away.

        :param evaluation: where it fits with what :meth:`cpu_ratio` says
        :param ratios: Nova's allocation ratios of the host
        """
        return None

    def never(self, host: topology.HostTopology) -> reasons.Reason | None:
        """Why a host can never keep the rule, whether the guest fits or not.

        Asked before anything else.

        :param host: the host's NUMA nodes
        """
        return None

    def read(self, host: topology.HostTopology, names: Names) -> Facts:
        """What the rule has to know of a host; something hashable.

        Hosts that are alike in this, and in what Nova looks at, are decided
        about once: a rule must not look at anything else of a host.

        :param host: the host's NUMA nodes
        :param names: what the labels are called
        """
        return None

    def lacks(self, facts: Facts, ground: Ground) -> reasons.Reason | None:
        """Why a host that the guest fits cannot keep the rule at all."""
        return None

    def applies(self, facts: Facts, ground: Ground) -> bool:
        """Whether a preference can come true on the host at all."""
        return True

    def narrow(self, facts: Facts, goal: Goal) -> Sequence[int]:
        """Host cells that are left to each guest cell."""
        return goal.masks

    def condition(
        self, facts: Facts, ground: Ground,
    ) -> candidates.Condition | None:
        """What is asked of the chosen host cells together.

        Not more than one rule of a request may ask for anything, and must
        then ask all that Nova does (``ground.stock``).
        """
        return None

    def kept(self, facts: Facts, ground: Ground,
             chosen: Sequence[int]) -> bool:
        """Whether the rule is kept by a choice.

        :param chosen: host cell of each guest cell
        """
        return True

    def always(self, facts: Facts, ground: Ground,
               groups: Sequence[int]) -> bool:
        """Whether a claim keeps the rule in every state of the host.

        :param groups: bitmasks of host cells; the claim takes one of each
        """
        return True

    def labels(self, facts: Facts, ground: Ground) -> Labels:
        """Labels that help; those of single host cells are tried anyway."""
        return Labels()

    def degree(self, facts: Facts, ground: Ground,
               chosen: Sequence[int]) -> float:
        """How far the rule is kept by a choice, 0 to 1."""
        return 0.0

    def partly(self, facts: Facts, ground: Ground,
               must: Goal) -> Iterable[frozenset[str]]:
        """Sets of labels with which a preference may come true in part.

        :param must: what has to be kept in any case
        """
        return ()

    def no_room(self, facts: Facts, ground: Ground,
                before: Goal) -> reasons.Reason:
        """Why no choice is left; for rules that narrow.

        :param before: what was asked before this rule, where some were
        """
        return reasons.Reason(self.order, self.text, 'room needed', 'none')

    def not_held(self, facts: Facts, ground: Ground,
                 before: Goal) -> reasons.Reason | None:
        """Why the claim cannot be held to the rule, if it is the rule's own.

        :param before: what was asked before, to which it can be held
        """
        return None

    def assigned(self, facts: Facts) -> Iterable[tuple[int, int, str]]:
        """Guest cells that the rule puts on certain host cells.

        :returns: guest cell, bitmask of host cells, the key that says so
        """
        return ()

    def needs_topology(self, text: str = '') -> reasons.Reason:
        """Why a guest without NUMA topology is refused.

        :param text: the policy, if it is not that of the whole rule
        """
        return reasons.Reason(
            self.order, text or self.text,
            'a guest NUMA topology needed, set hw:numa_nodes', own=True)

    def floating(self, host: topology.HostTopology | None,
                 names: Names) -> float | reasons.Reason:
        """What becomes of a guest without NUMA topology.

        Its CPUs float over the whole host.

        :param host: the host's NUMA nodes; None if it has none
        :param names: what the labels are called
        :returns: the degree, or why the host is refused
        """
        return 0.0


class CellsRule(Rule):
    """A rule that all guest cells are to be on certain host cells.

    Its facts are a bitmask of these; None if the host does not say.
    """

    weighed = True

    @abc.abstractmethod
    def label(self, names: Names) -> str | None:
        """The label of these host cells; None if there can be none."""

    @abc.abstractmethod
    def undeclared(self) -> reasons.Reason:
        """Why a host that does not say is refused."""

    @property
    @abc.abstractmethod
    def noun(self) -> str:
        """What is special about these host cells, in words."""

    @property
    def where(self) -> str:
        """The noun as it follows the word for host cells."""
        return f' {self.noun}'

    def lacks(self, facts, ground):
        """The reason for a host that does not declare these host cells."""
        return self.undeclared() if facts is None else None

    def applies(self, facts, ground):
        """Whether the host has such host cells."""
        return bool(facts)

    def narrow(self, facts, goal):
        """Masks without any other host cell."""
        return [mask & facts for mask in goal.masks]

    def kept(self, facts, ground, chosen):
        """Whether only such host cells are chosen."""
        return not candidates.mask_of(chosen) & ~facts

    def always(self, facts, ground, groups):
        """Whether the claim can choose no other host cell."""
        return ground.always_within(groups, facts)

    def labels(self, facts, ground):
        """The label of these host cells, if the host declares it."""
        label = self.label(ground.names)
        if label is None or label not in ground.evaluation.host.labels:
            return Labels()
        own = frozenset([label])
        return Labels(own if self.strict else _NOWHERE, own)

    def degree(self, facts, ground, chosen):
        """The part of the guest cells that are on such host cells."""
        if not facts:
            return 0.0
        return (candidates.mask_of(chosen) & facts).bit_count() / len(chosen)

    def partly(self, facts, ground, must):
        """Labels that put as many guest cells there as fit."""
        cells = len(must.masks)
        if cells == 1:
            return
        target = candidates.most_local(
            must.masks, facts, ground.groups, ground.stock)
        for rows in itertools.combinations(range(cells), target):
            goal = Goal(
                [mask & facts if row in rows else mask
                 for row, mask in enumerate(must.masks)],
                (*must.rules, (self, facts)), must.condition)
            if ground.possible(goal):
                yield from ground.label_sets(goal)
                break

    def no_room(self, facts, ground, before):
        """Why the guest cells do not all fit on such host cells."""
        host = ground.evaluation.host
        nodes = host.nodes(facts)
        cells = len(ground.evaluation.guest.cells)
        for rule, known in before.rules:
            for _guest, mask, key in rule.assigned(known):
                if not mask & facts:
                    return self.apart(host.nodes(mask)[0], key, nodes)
        if len(nodes) < cells:
            return reasons.Reason(
                self.order, self.text,
                f'{shortage.text(cells, "host NUMA node")} {self.noun} '
                f'needed', f'has {len(nodes)}', len(nodes))
        if any(mask & facts for mask in ground.evaluation.masks) and not any(
                mask & facts for mask in before.masks):
            return reasons.Reason(
                self.order, self.text,
                f'NUMA nodes{before.where}{self.where} with room needed',
                'none')
        return shortage.capacity_reason(
            ground.evaluation, self.text, facts, self.order,
            f'{before.where}{self.where}', ground.groups, ground.devices)

    def floating(self, host, names):
        """Kept only if the host has one NUMA node, and that is such."""
        one_node = host is not None and len(host.cells) == 1
        facts = self.read(host, names) if one_node else None
        if facts:
            return 1.0
        if not self.strict:
            return 0.0
        if not one_node:
            return self.needs_topology()
        if facts is None:
            return self.undeclared()
        return reasons.Reason(
            self.order, self.text, f'1 host NUMA node {self.noun} needed',
            'has 0')

    @abc.abstractmethod
    def apart(self, node: int, key: str, nodes: Sequence[int]):
        """Why a guest cell that has to be on another node is refused.

        :param node: number of the host NUMA node
        :param key: what says that it has to be there
        :param nodes: numbers of those where it should be
        """
