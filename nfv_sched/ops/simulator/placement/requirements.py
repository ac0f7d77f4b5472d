# SPDX-License-Identifier: Apache-2.0
"""Check hosts against the requirements of an allocation candidate query.

Each requirement is checked against the provider tree of a host, the compute
node first.  A host is a candidate if its tree meets all requirements.
"""

import collections
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
import dataclasses
import enum
import itertools
import typing as ty

from nfv_sched.base import device_shortage
from nfv_sched.ops.simulator.placement import resource_provider

# Of more groups not all sets are tried.
_MOST_TRIED = 8

Provider = resource_provider.ResourceProvider
Tree = Sequence[Provider]
#: Resource classes with amounts; hashable, for keys of dictionaries.
Amounts = tuple[tuple[str, int], ...]


class RequirementKind(enum.IntEnum):
    """Kind of a requirement; the lowest unmet one stands for all."""

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
    kind: RequirementKind
    #: the trait, the resource class, the UUID of the compute node, the UUIDs
    #: of the aggregates, or the traits of a group or a choice
    names: tuple[str, ...]
    needed: Amounts = ()  #: needed amounts, of a resource, a group or a choice
    forbidden: tuple[str, ...] = ()  #: forbidden traits of a group or a choice
    providers: int = 0  #: number of providers that have the resource class
    #: largest free amount of one of these providers; if any of them allow the
    #: amount in one allocation (min_unit, max_unit, step_size), of those only
    free: int = 0
    total: int = 0  #: sum of the free amounts of the same providers
    #: whether any of them allow the amount in one allocation
    at_once: bool = True
    #: the fewest groups for which there are not enough providers, of a choice
    groups: tuple['GroupRequirement', ...] = ()
    isolated: bool = False  #: whether each of them needs a different provider
    #: reserved amounts of nested providers
    misses: tuple[device_shortage.NearMiss, ...] = ()

    @property
    def name(self) -> str:
        return self.names[0]

    @property
    def amount(self) -> int:
        return self.needed[0][1]


def _reserved(tree: Tree, resource_classes: Iterable[str],
              ) -> tuple[device_shortage.NearMiss, ...]:
    """Return the amounts of classes that are reserved of nested providers."""
    amounts = [(name, sum(
        each.inventories[name].reserved for each in tree
        if each.parent is not None and name in each.inventories))
        for name in sorted(set(resource_classes))]
    return tuple([device_shortage.NearMiss(
        device_shortage.MissKind.RESERVED, amount, name)
        for name, amount in amounts if amount])


def _nested_providers(tree: Tree, resource_class: str) -> Tree:
    """Return the nested providers of a class; none if the root has it."""
    if resource_class in tree[0].inventories:
        return ()
    return [each for each in tree if resource_class in each.inventories]


@dataclasses.dataclass(frozen=True, slots=True)
class TreeRequirement:
    """A requirement of one compute node, by its UUID."""

    uuid: str
    kind: ty.ClassVar[RequirementKind] = RequirementKind.TREE

    def missing(self, tree: Tree) -> UnmetRequirement | None:
        return None if tree[0].uuid == self.uuid else UnmetRequirement(
            self.kind, (self.uuid,))


@dataclasses.dataclass(frozen=True, slots=True)
class TraitRequirement:
    """A trait that a provider of the requested resources must have, or lack.

    A nested provider that gives a resource class in place of the compute node
    may have a required trait instead; ChoiceRequirement picks that provider.
    """

    trait: str
    classes: frozenset[str] = frozenset()  #: needed resource classes
    #: whether it is about the compute node alone, even if that gives nothing
    of_root: bool = False
    #: None for a required trait; else all traits that nested providers must
    #: not have
    forbidden: frozenset[str] | None = None

    @property
    def kind(self) -> RequirementKind:
        return (RequirementKind.TRAIT if self.forbidden is None
                else RequirementKind.FORBIDDEN_TRAIT)

    def missing(self, tree: Tree) -> UnmetRequirement | None:
        if self.forbidden is None and self.trait in tree[0].traits:
            return None
        elsewhere = [] if self.of_root or len(tree) < 2 else [
            givers for name in self.classes
            if (givers := _nested_providers(tree, name))]
        if self.forbidden is None:
            is_met = any(self.trait in each.traits
                         for givers in elsewhere for each in givers)
        else:
            root_gives = not elsewhere or len(elsewhere) < len(self.classes)
            is_met = not (
                root_gives and self.trait in tree[0].traits or any(
                    self.trait in min(givers, key=lambda each: len(
                        self.forbidden & each.traits)).traits
                    for givers in elsewhere))
        return None if is_met else UnmetRequirement(self.kind, (self.trait,))


@dataclasses.dataclass(frozen=True, slots=True)
class AggregateRequirement:
    """A requirement of membership in one of several aggregates, or in none."""

    aggregates: frozenset[str]  #: their UUIDs
    forbidden: bool = False

    @property
    def kind(self) -> RequirementKind:
        return (RequirementKind.FORBIDDEN_AGGREGATE if self.forbidden
                else RequirementKind.AGGREGATE)

    def missing(self, tree: Tree) -> UnmetRequirement | None:
        present = self.aggregates & tree[0].aggregates
        if bool(present) is not self.forbidden:
            return None
        return UnmetRequirement(
            self.kind, tuple(sorted(present or self.aggregates)))


@dataclasses.dataclass(frozen=True, slots=True)
class ResourceRequirement:
    """An amount from the compute node, or if it lacks the class nested."""

    resource_class: str
    amount: int
    #: traits that a nested provider must not have
    forbidden: frozenset[str] = frozenset()
    kind: ty.ClassVar[RequirementKind] = RequirementKind.RESOURCE

    def missing(self, tree: Tree) -> UnmetRequirement | None:
        name, needed = self.resource_class, {self.resource_class: self.amount}
        givers: Tree = tree[:1]
        if name not in tree[0].inventories:
            givers = _nested_providers(tree, name)
            # If all have a forbidden trait, TraitRequirement reports it.
            givers = [each for each in givers
                      if not self.forbidden & each.traits] or givers
        if any(each.allows(needed) for each in givers):
            return None
        fitting = [each for each in givers
                   if each.inventories[name].allows(self.amount)]
        free = [max(0, each.free(name)) for each in fitting or givers]
        return UnmetRequirement(
            self.kind, (name,), ((name, self.amount),),
            providers=len(givers), free=max(free, default=0), total=sum(free),
            at_once=bool(fitting) or not givers,
            misses=_reserved(givers, [name]))


@dataclasses.dataclass(frozen=True, slots=True)
class GroupRequirement:
    """A request group: one provider anywhere in the tree gives all of it."""

    amounts: Amounts
    traits: frozenset[str]
    forbidden: frozenset[str]
    #: requirements for that provider
    parts: tuple[TraitRequirement | ResourceRequirement, ...]
    #: suffixes of all groups that are equal; one empty string for resources of
    #: the unsuffixed group from a nested provider
    suffixes: tuple[str, ...] = ('',)
    kind: ty.ClassVar[RequirementKind] = RequirementKind.GROUP

    @classmethod
    def from_amounts(
        cls, amounts: Mapping[str, int], required: Collection[str] = (),
        forbidden: Collection[str] = (), suffix: str = '',
    ) -> 'GroupRequirement':
        return cls(
            tuple(amounts.items()), frozenset(required), frozenset(forbidden),
            (*map(TraitRequirement, required),
             *(TraitRequirement(trait, forbidden=frozenset())
               for trait in forbidden),
             *itertools.starmap(ResourceRequirement, amounts.items())),
            (suffix,))

    def met_by(self, provider: Provider) -> bool:
        alone = (provider,)
        return not any(part.missing(alone) for part in self.parts)

    def missing(self, tree: Tree) -> UnmetRequirement | None:
        if any(map(self.met_by, tree)):
            return None
        return UnmetRequirement(self.kind, tuple(sorted(self.traits)),
                                self.amounts, tuple(sorted(self.forbidden)),
                                misses=_reserved(tree, dict(self.amounts)))


class Shares(ty.NamedTuple):
    """A query divided among the providers of a tree."""

    own: Mapping[str, int]  #: amounts from the compute node itself
    #: groups of which each comes from one provider: first one for each
    #: resource class of the unsuffixed group that only nested providers have,
    #: then the suffixed groups
    groups: tuple[GroupRequirement, ...]


@dataclasses.dataclass(frozen=True)
class ChoiceRequirement:
    """A requirement of providers for all groups at the same time."""

    amounts: Mapping[str, int]  #: amounts of the unsuffixed group
    #: traits that the providers of the unsuffixed group must have together
    required: frozenset[str]
    #: traits that its nested providers must not have
    forbidden: frozenset[str]
    groups: tuple[GroupRequirement, ...]  #: one for each suffix
    isolated: bool  #: whether each of these groups needs a different provider
    kind: ty.ClassVar[RequirementKind] = RequirementKind.CHOICE

    def shares(self, tree: Tree) -> Shares:
        """Divide the amounts among the compute node and nested providers."""
        own = self.amounts
        if len(tree) < 2 or own.keys() <= tree[0].inventories.keys():
            return Shares(own, self.groups)
        elsewhere = [name for name in own if _nested_providers(tree, name)]
        return Shares(
            {name: amount for name, amount in own.items()
             if name not in elsewhere},
            (*(GroupRequirement.from_amounts(
                {name: own[name]}, forbidden=self.forbidden)
               for name in elsewhere), *self.groups))

    def choices(self, tree: Tree) -> Iterator[tuple[Provider, ...]]:
        """Yield each possible choice of one provider per group of shares."""
        own, groups = self.shares(tree)
        nested_count = len(groups) - len(self.groups)
        compute_node = list(tree[:1]) if own else []
        providers_of = [list(filter(group.met_by, tree)) for group in groups]
        if not all(providers_of):
            return iter(())
        requested: dict[str, dict[str, int]] = {tree[0].uuid: dict(own)}
        chosen: list[Provider] = []

        def choose(index: int) -> Iterator[tuple[Provider, ...]]:
            """Yield the choices that begin with the chosen providers."""
            # The traits of the unsuffixed group are checked as soon as all of
            # its providers are chosen.
            if nested_count and index == nested_count and (
                    not self.required <= set().union(*(
                        each.traits for each in compute_node + chosen))):
                return
            if index == len(groups):
                yield tuple(chosen)
                return
            amounts = groups[index].amounts
            for provider in providers_of[index]:
                # group_policy=isolate concerns the suffixed groups only.
                if self.isolated and provider in chosen[nested_count:]:
                    continue
                from_provider = requested.setdefault(provider.uuid, {})
                resource_provider.add(from_provider, amounts)
                if provider.allows(from_provider):
                    chosen.append(provider)
                    yield from choose(index + 1)
                    chosen.pop()
                resource_provider.add(from_provider, amounts, -1)

        return choose(0)

    def missing(self, tree: Tree) -> UnmetRequirement | None:
        if next(self.choices(tree), None) is not None:
            return None
        needed: dict[str, int] = {}
        for group in self.shares(tree).groups:
            resource_provider.add(needed, group.amounts)
        return UnmetRequirement(
            self.kind, _union(group.traits for group in self.groups),
            tuple(needed.items()),
            _union(group.forbidden for group in self.groups),
            groups=self._fewest(tree), isolated=self.isolated,
            misses=_reserved(tree, needed))

    def _fewest(self, tree: Tree) -> tuple[GroupRequirement, ...]:
        """Return the fewest groups that no providers meet; all of many."""
        if len(self.groups) > _MOST_TRIED:
            return self.groups
        tried = set()
        for size in range(len(self.groups)):
            for groups in itertools.combinations(self.groups, size):
                # Groups differ in their suffixes.
                key = frozenset(collections.Counter(
                    dataclasses.replace(group, suffixes=())
                    for group in groups).items())
                if key in tried:
                    continue
                tried.add(key)
                if next(dataclasses.replace(
                        self, groups=groups).choices(tree), None) is None:
                    return groups
        return self.groups


#: Their ``missing()`` returns None if a tree meets the requirement.
Requirement = (TreeRequirement | TraitRequirement | AggregateRequirement
               | ResourceRequirement | GroupRequirement | ChoiceRequirement)


def _union(sets: Iterable[frozenset[str]]) -> tuple[str, ...]:
    return tuple(sorted(frozenset().union(*sets)))
