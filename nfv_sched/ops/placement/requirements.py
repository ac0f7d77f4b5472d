# SPDX-License-Identifier: Apache-2.0
"""What a query for allocation candidates requires of a host.

Each requirement is compared with the tree of a host: its resource providers,
that of the compute node first.  The tree is a candidate if nothing is missing
of any requirement.
"""

from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import enum
import itertools
import typing as ty

from nfv_sched.ops.placement import resource_provider

Tree = Sequence[resource_provider.ResourceProvider]
#: Resource classes with amounts; can be a part of a dictionary's key.
Amounts = tuple[tuple[str, int], ...]


class RequirementKind(enum.IntEnum):
    """Kind of a requirement.

    If a host misses several and one stands for all, it is the lowest.
    """

    TREE = 1
    TRAIT = 2
    FORBIDDEN_TRAIT = 3
    AGGREGATE = 4
    FORBIDDEN_AGGREGATE = 5
    RESOURCE = 6
    #: A granular request group.
    GROUP = 7
    #: Providers for all groups at once.
    CHOICE = 8


@dataclasses.dataclass(frozen=True, slots=True)
class UnmetRequirement:
    """What a host misses of a requirement.

    :ivar names: the trait, the resource class, the UUID of the compute node
        or those of the aggregates; for a group or a choice its traits
    :ivar forbidden: forbidden traits of a group or a choice
    :ivar needed: what is needed, where that is an amount
    :ivar providers: number of providers that could give the resource class
    :ivar free: the most that one of these can still give; if their units
        differ, of those that allow such an amount at once
    :ivar total: the sum of what these can still give
    :ivar at_once: whether the units of any of them allow such an amount
    """

    kind: RequirementKind
    names: tuple[str, ...]
    needed: Amounts = ()
    forbidden: tuple[str, ...] = ()
    providers: int = 0
    free: int = 0
    total: int = 0
    at_once: bool = True

    @property
    def name(self) -> str:
        """The trait or resource class."""
        return self.names[0]

    @property
    def amount(self) -> int:
        """How much of the resource class is needed."""
        return self.needed[0][1]


class Requirement(ty.Protocol):
    """One thing that a query requires."""

    @property
    def kind(self) -> RequirementKind:
        """The kind of the requirement."""

    def missing(self, tree: Tree) -> UnmetRequirement | None:
        """Return what a tree misses; None if it meets the requirement."""


def _nested(tree: Tree, resource_class: str) -> Tree:
    """Return the nested providers of a class that the compute node lacks."""
    if resource_class in tree[0].inventories:
        return ()
    return [each for each in tree if resource_class in each.inventories]


@dataclasses.dataclass(frozen=True, slots=True)
class TreeRequirement:
    """One compute node, by its UUID."""

    uuid: str
    kind: ty.ClassVar[RequirementKind] = RequirementKind.TREE

    def missing(self, tree: Tree) -> UnmetRequirement | None:
        if tree[0].uuid == self.uuid:
            return None
        return UnmetRequirement(self.kind, (self.uuid,))


@dataclasses.dataclass(frozen=True, slots=True)
class TraitRequirement:
    """A trait of the compute node.

    A provider that gives a resource class in its place may have the trait
    instead; which provider that is, is a matter of the choice.

    :ivar classes: resource classes that are needed
    :ivar of_root: whether only the compute node itself counts
    """

    trait: str
    classes: frozenset[str] = frozenset()
    of_root: bool = False
    kind: ty.ClassVar[RequirementKind] = RequirementKind.TRAIT

    def missing(self, tree: Tree) -> UnmetRequirement | None:
        if self.trait in tree[0].traits or not self.of_root and any(
                self.trait in each.traits for name in self.classes
                for each in _nested(tree, name)):
            return None
        return UnmetRequirement(self.kind, (self.trait,))


@dataclasses.dataclass(frozen=True, slots=True)
class ForbiddenTraitRequirement:
    """A trait that no provider which gives something may have.

    :ivar classes: resource classes that are needed
    :ivar forbidden: all traits that are forbidden for nested providers
    :ivar of_root: whether only the compute node itself counts, even if it
        gives nothing
    """

    trait: str
    classes: frozenset[str] = frozenset()
    forbidden: frozenset[str] = frozenset()
    of_root: bool = False
    kind: ty.ClassVar[RequirementKind] = RequirementKind.FORBIDDEN_TRAIT

    def missing(self, tree: Tree) -> UnmetRequirement | None:
        elsewhere: list[Tree] = []
        if not self.of_root and len(tree) > 1:
            elsewhere = [givers for name in self.classes
                         if (givers := _nested(tree, name))]
        root_gives = not elsewhere or len(elsewhere) < len(self.classes)
        if root_gives and self.trait in tree[0].traits or any(
                self.trait in self._nearest(givers).traits
                for givers in elsewhere):
            return UnmetRequirement(self.kind, (self.trait,))
        return None

    def _nearest(self, givers: Tree) -> resource_provider.ResourceProvider:
        """Return the provider with the fewest forbidden traits."""
        return min(givers, key=lambda each: len(self.forbidden & each.traits))


@dataclasses.dataclass(frozen=True, slots=True)
class AggregateRequirement:
    """One of some aggregates, by their UUIDs."""

    aggregates: frozenset[str]
    kind: ty.ClassVar[RequirementKind] = RequirementKind.AGGREGATE

    def missing(self, tree: Tree) -> UnmetRequirement | None:
        if self.aggregates & tree[0].aggregates:
            return None
        return UnmetRequirement(self.kind, tuple(sorted(self.aggregates)))


@dataclasses.dataclass(frozen=True, slots=True)
class ForbiddenAggregateRequirement:
    """None of some aggregates, by their UUIDs."""

    aggregates: frozenset[str]
    kind: ty.ClassVar[RequirementKind] = RequirementKind.FORBIDDEN_AGGREGATE

    def missing(self, tree: Tree) -> UnmetRequirement | None:
        present = self.aggregates & tree[0].aggregates
        if not present:
            return None
        return UnmetRequirement(self.kind, tuple(sorted(present)))


@dataclasses.dataclass(frozen=True, slots=True)
class ResourceRequirement:
    """An amount of a resource class from one provider.

    That is the compute node if it has the class at all, else one nested in it.

    :ivar forbidden: traits that a nested provider must not have
    """

    resource_class: str
    amount: int
    forbidden: frozenset[str] = frozenset()
    kind: ty.ClassVar[RequirementKind] = RequirementKind.RESOURCE

    def missing(self, tree: Tree) -> UnmetRequirement | None:
        name, needed = self.resource_class, {self.resource_class: self.amount}
        givers: Tree = tree[:1]
        if name not in tree[0].inventories:
            givers = _nested(tree, name)
            # If all have such a trait, that is what is missing.
            givers = [each for each in givers
                      if not self.forbidden & each.traits] or givers
        for each in givers:
            if each.allows(needed):
                return None
        fitting = [each for each in givers
                   if each.inventories[name].allows(self.amount)]
        free = [max(0, each.free(name)) for each in fitting or givers]
        return UnmetRequirement(
            self.kind, (name,), ((name, self.amount),),
            providers=len(givers), free=max(free, default=0), total=sum(free),
            at_once=bool(fitting) or not givers)


@dataclasses.dataclass(frozen=True, slots=True)
class GroupRequirement:
    """A request group: one provider anywhere in the tree gives all of it.

    :ivar traits: required traits
    :ivar forbidden: forbidden traits
    :ivar parts: what is required of that provider
    :ivar suffixes: of the groups that are alike; empty for what the
        unsuffixed group needs of a nested provider
    """

    amounts: Amounts
    traits: frozenset[str]
    forbidden: frozenset[str]
    parts: tuple[Requirement, ...]
    suffixes: tuple[str, ...] = ('',)
    kind: ty.ClassVar[RequirementKind] = RequirementKind.GROUP

    @classmethod
    def of(cls, amounts: Mapping[str, int], required: Collection[str] = (),
           forbidden: Collection[str] = (),
           suffix: str = '') -> 'GroupRequirement':
        """Return the requirement for amounts and traits of one provider."""
        return cls(
            tuple(amounts.items()), frozenset(required), frozenset(forbidden),
            (*map(TraitRequirement, required),
             *map(ForbiddenTraitRequirement, forbidden),
             *itertools.starmap(ResourceRequirement, amounts.items())),
            (suffix,))

    def met_by(self, provider: resource_provider.ResourceProvider) -> bool:
        """Return whether a provider alone can give the group."""
        alone = (provider,)
        return not any(part.missing(alone) for part in self.parts)

    def missing(self, tree: Tree) -> UnmetRequirement | None:
        if any(map(self.met_by, tree)):
            return None
        return UnmetRequirement(self.kind, tuple(sorted(self.traits)),
                                self.amounts,
                                tuple(sorted(self.forbidden)))


class Shares(ty.NamedTuple):
    """How a tree has to meet a query.

    :ivar own: amounts that the compute node itself gives
    :ivar groups: what one provider each must give: the resource classes of
        the unsuffixed group that only nested providers have, then the groups
        with a suffix
    :ivar nested: number of these resource classes
    """

    own: Mapping[str, int]
    groups: tuple[GroupRequirement, ...]
    nested: int


@dataclasses.dataclass(frozen=True)
class ChoiceRequirement:
    """Providers for all that is needed, at the same time.

    :ivar amounts: those of the unsuffixed group
    :ivar required: traits that the providers of the unsuffixed group must
        have together
    :ivar forbidden: traits that its nested providers must not have
    :ivar groups: one for each suffix
    :ivar isolated: whether each of these needs a provider of its own
    """

    amounts: Mapping[str, int]
    required: frozenset[str]
    forbidden: frozenset[str]
    groups: tuple[GroupRequirement, ...]
    isolated: bool
    kind: ty.ClassVar[RequirementKind] = RequirementKind.CHOICE

    def shares(self, tree: Tree) -> Shares:
        """Return which providers of a tree have to give what."""
        own = self.amounts
        if len(tree) < 2 or own.keys() <= tree[0].inventories.keys():
            return Shares(own, self.groups, 0)
        elsewhere = [name for name in own if _nested(tree, name)]
        return Shares(
            {name: amount for name, amount in own.items()
             if name not in elsewhere},
            (*(GroupRequirement.of({name: own[name]},
                                   forbidden=self.forbidden)
               for name in elsewhere), *self.groups), len(elsewhere))

    def choices(self, tree: Tree) -> Iterator[tuple[
            resource_provider.ResourceProvider, ...]]:
        """Yield each choice of providers for the groups of the shares."""
        own, groups, nested = self.shares(tree)
        givers = list(tree[:1]) if own else []
        able = [list(filter(group.met_by, tree)) for group in groups]
        if not all(able):
            return iter(())
        sums: dict[str, dict[str, int]] = {tree[0].uuid: dict(own)}
        chosen: list[resource_provider.ResourceProvider] = []

        def choose(number: int) -> Iterator[tuple[
                resource_provider.ResourceProvider, ...]]:
            if nested and number == nested and not self._covered(
                    givers + chosen):
                return
            if number == len(groups):
                yield tuple(chosen)
                return
            amounts = groups[number].amounts
            for provider in able[number]:
                if self.isolated and provider in chosen[nested:]:
                    continue
                of_provider = sums.setdefault(provider.uuid, {})
                resource_provider.add(of_provider, amounts)
                if provider.allows(of_provider):
                    chosen.append(provider)
                    yield from choose(number + 1)
                    chosen.pop()
                resource_provider.add(of_provider, amounts, -1)

        return choose(0)

    def _covered(self, providers: Tree) -> bool:
        """Return whether providers together have the required traits."""
        return self.required <= set().union(
            *(provider.traits for provider in providers))

    def missing(self, tree: Tree) -> UnmetRequirement | None:
        if next(self.choices(tree), None) is not None:
            return None
        needed: dict[str, int] = {}
        for group in self.shares(tree).groups:
            resource_provider.add(needed, group.amounts)
        return UnmetRequirement(
            self.kind, _union(group.traits for group in self.groups),
            tuple(needed.items()),
            _union(group.forbidden for group in self.groups))


def _union(sets: Iterable[frozenset[str]]) -> tuple[str, ...]:
    return tuple(sorted(frozenset().union(*sets)))
