# SPDX-License-Identifier: Apache-2.0
"""Parse the allocation candidate queries of Nova's scheduler."""

import collections
from collections.abc import Mapping
import dataclasses
import functools
import re
from urllib import parse

import os_resource_classes as orc

from nfv_sched.ops.simulator.placement import malformed
from nfv_sched.ops.simulator.placement import requirements
from nfv_sched.ops.simulator.placement import sentences

#: Kinds of names.
TRAIT = 'trait'
RESOURCE_CLASS = 'resource class'

_CPUS = (orc.PCPU, orc.VCPU)
# Stands for a suffix: traits that the compute node itself must have or lack.
_ROOT = '/'
_KEY = re.compile(r'(resources|required|member_of|in_tree)([\w-]*)')


@dataclasses.dataclass(frozen=True)
class Query:
    """A query for allocation candidates."""

    #: resource class -> amount, of the unsuffixed group
    amounts: Mapping[str, int]
    required: frozenset[str]  #: required traits of the unsuffixed group
    forbidden: frozenset[str]  #: forbidden traits of the unsuffixed group
    #: the required traits that the compute node itself must have, whichever
    #: providers give the resources
    root_required: frozenset[str]
    #: the forbidden traits that only the compute node itself must not have
    root_forbidden: frozenset[str]
    #: sets of aggregates; the compute node must be in at least one aggregate
    #: of each set
    members_of: tuple[frozenset[str], ...]
    #: the compute node must be in none of these
    forbidden_aggregates: frozenset[str]
    groups: tuple[requirements.GroupRequirement, ...]  #: one for each suffix
    isolated: bool  #: whether each of these groups needs a different provider
    #: UUID of the only compute node to consider; None for all
    tree: str | None
    limit: int | None  #: most candidates to return; None for no limit
    unsupported: tuple[str, ...]  #: parts of the query that are not simulated
    #: why Placement cannot read the query; it asks for nothing then
    fault: malformed.Malformed | None = None

    @classmethod
    def parse(cls, text: str) -> 'Query':
        """Parse the query string of ``GET /allocation_candidates``."""
        # Of each group, by its suffix.
        amounts: dict[str, dict[str, int]] = {'': {}}
        required: dict[str, set[str]] = {'': set()}
        forbidden: dict[str, set[str]] = {'': set()}
        members, unsupported = [], []
        avoided: set[str] = set()
        tree = limit = None
        isolated = False
        fault = malformed.find(text)
        for key, value in parse.parse_qsl(text) if fault is None else ():
            match = _KEY.fullmatch(key)
            name, suffix = match.groups() if match else (key, '')
            if key == 'root_required':
                name, suffix = 'required', _ROOT
            match name:
                case 'resources':
                    of_group = amounts.setdefault(suffix, {})
                    for item in value.split(','):
                        resource_class, _, amount = item.partition(':')
                        of_group[resource_class] = int(amount)
                case 'required' if not value.startswith('in:'):
                    for trait in map(str.strip, value.split(',')):
                        (forbidden if trait[0] == '!' else
                         required).setdefault(suffix, set()).add(
                             trait.lstrip('!'))
                case 'member_of' if not suffix:
                    uuids = value.removeprefix('!').removeprefix(
                        'in:').split(',')
                    if value.startswith('!'):
                        avoided.update(uuids)
                    else:
                        members.append(frozenset(uuids))
                case 'in_tree' if not suffix:
                    tree = value
                case 'limit':
                    limit = int(value)
                case 'group_policy':
                    isolated = value == 'isolate'
                case _:
                    unsupported.append(f'{key}={value}')
        root_required = frozenset(required.pop(_ROOT, ()))
        root_forbidden = frozenset(forbidden.pop(_ROOT, ())) - forbidden['']
        unsupported += [f'group {suffix} without resources' for suffix
                        in sorted(required.keys() | forbidden.keys())
                        if suffix not in amounts]
        return cls(
            amounts=amounts.pop(''), members_of=tuple(members),
            required=root_required.union(required['']),
            forbidden=root_forbidden.union(forbidden['']),
            root_required=root_required, root_forbidden=root_forbidden,
            forbidden_aggregates=frozenset(avoided), groups=tuple([
                requirements.GroupRequirement.from_amounts(
                    of_group, required.get(suffix, ()),
                    forbidden.get(suffix, ()), suffix)
                for suffix, of_group in amounts.items()]),
            isolated=isolated, tree=tree, limit=limit,
            unsupported=tuple(unsupported), fault=fault)

    def __str__(self) -> str:
        texts = [sentences.demand(self.amounts.items(), self.required)]
        for text, count in collections.Counter([
                sentences.demand(group.amounts, group.traits)
                for group in self.groups]).items():
            texts.append(f'{count} times {text}' if count > 1 else text)
        return ', '.join(filter(None, texts))

    @property
    def names(self) -> tuple[frozenset[str], frozenset[str]]:
        return self.required.union(self.forbidden, *(
            group.traits | group.forbidden for group in self.groups)), (
                frozenset(self.amounts).union(
                    *(dict(group.amounts) for group in self.groups)))

    @functools.cached_property
    def host_requirements(self) -> tuple[requirements.Requirement, ...]:
        """The requirements of the query without those of suffixed groups."""
        classes = frozenset(self.amounts)
        nested = self.forbidden - self.root_forbidden
        needs: list[requirements.Requirement] = [
            requirements.ResourceRequirement(name, amount, nested)
            for name, amount in self.amounts.items()]
        needs += [requirements.TraitRequirement(
            trait, classes, trait in self.root_required)
            for trait in sorted(self.required)]
        needs += [requirements.TraitRequirement(
            trait, classes, trait in self.root_forbidden, nested)
            for trait in sorted(self.forbidden)]
        needs += map(requirements.AggregateRequirement, self.members_of)
        if self.forbidden_aggregates:
            needs.append(requirements.AggregateRequirement(
                self.forbidden_aggregates, forbidden=True))
        if self.tree is not None:
            needs.append(requirements.TreeRequirement(self.tree))
        return tuple(needs)

    @functools.cached_property
    def single_requirements(self) -> tuple[requirements.Requirement, ...]:
        """All requirements but :attr:`choice`; equal groups are merged."""
        alike: dict[tuple, list[requirements.GroupRequirement]] = {}
        for group in self.groups:
            alike.setdefault((group.amounts, group.traits, group.forbidden),
                             []).append(group)
        return (*self.host_requirements, *(
            dataclasses.replace(same[0], suffixes=tuple([
                suffix for group in same for suffix in group.suffixes]))
            for same in alike.values()))

    @functools.cached_property
    def choice(self) -> requirements.ChoiceRequirement:
        return requirements.ChoiceRequirement(
            self.amounts, self.required - self.root_required,
            self.forbidden - self.root_forbidden, self.groups, self.isolated)

    def without(self, requirement: requirements.Requirement,
                is_fallback: bool) -> 'Query':
        """Return the query without one of its :attr:`single_requirements`.

        :param requirement: one of this query, or of the request's first query
        :param is_fallback: whether this query asks for VCPU where the first
            query asks for PCPU
        """
        match requirement:
            case requirements.ResourceRequirement():
                changes = {'amounts': _subtract(
                    self.amounts, requirement, is_fallback)}
            case requirements.TraitRequirement(forbidden=None):
                changes = {'required': self.required - {requirement.trait}}
            case requirements.TraitRequirement():
                changes = {'forbidden': self.forbidden - {requirement.trait}}
            case requirements.AggregateRequirement(forbidden=True):
                changes = {'forbidden_aggregates': frozenset()}
            case requirements.AggregateRequirement():
                changes = {'members_of': tuple([
                    each for each in self.members_of
                    if each != requirement.aggregates])}
            case requirements.TreeRequirement():
                changes = {'tree': None}
            case requirements.GroupRequirement():
                changes = {'groups': tuple([
                    group for group in self.groups
                    if group.suffixes[0] not in requirement.suffixes])}
        return dataclasses.replace(self, **changes)


def _subtract(amounts: Mapping[str, int],
              requirement: requirements.ResourceRequirement,
              is_fallback: bool) -> dict[str, int]:
    name = requirement.resource_class
    reduced = dict(amounts)
    if is_fallback and name in _CPUS:
        # The fallback query asks for PCPUs and VCPUs together as VCPU.
        reduced[orc.VCPU] = reduced.get(orc.VCPU, 0) - requirement.amount
        if reduced[orc.VCPU] <= 0:
            del reduced[orc.VCPU]
    else:
        reduced.pop(name, None)
    return reduced


@dataclasses.dataclass(frozen=True, slots=True)
class QueriedName:
    """A name in a query that Placement does not know, or may not know."""

    kind: str  #: "trait" or "resource class"
    name: str  #: name of the trait or resource class

    def __str__(self) -> str:
        return f'{self.kind} {self.name}'


def refusal(brief: str) -> str:
    """Return the message for a refused query; ``brief`` follows "it"."""
    return ('Placement refuses the request, so that Nova takes no host: it '
            f'{brief}')
