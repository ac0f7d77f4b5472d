# SPDX-License-Identifier: Apache-2.0
"""Render requirements, met and unmet, in words for people.

No code decides by these texts: unmet requirements are values of
:mod:`nfv_sched.ops.simulator.placement.requirements`.
"""

import collections
from collections.abc import Iterable, Mapping

from nfv_sched.base import device_shortage
from nfv_sched.ops.simulator.placement import requirements

Kind = requirements.RequirementKind

_CHOICE = 'a choice of providers for all of them'


def demand(amounts: Iterable[tuple[str, int]], traits: Iterable[str],
           forbidden: Iterable[str] = ()) -> str:
    words = [f'{name}={amount}' for name, amount in amounts]
    words += [f'trait {trait}' for trait in sorted(traits)]
    words += [f'no trait {trait}' for trait in sorted(forbidden)]
    return ', '.join(words)


def title(requirement: requirements.Requirement,
          names: Mapping[str, str]) -> str:
    """Return a title for ``explain``; ``names`` are those of UUIDs."""
    match requirement:
        case requirements.TreeRequirement():
            return f'host {_joined(names, [requirement.uuid])}'
        case requirements.TraitRequirement():
            no = '' if requirement.kind is Kind.TRAIT else 'no '
            return f'{no}trait {requirement.trait}'
        case requirements.AggregateRequirement():
            return (f'{"not in " if requirement.forbidden else ""}aggregate '
                    + _joined(names, requirement.aggregates, ' or '))
        case requirements.ResourceRequirement():
            return f'{requirement.resource_class}={requirement.amount}'
        case requirements.GroupRequirement():
            text = demand(requirement.amounts, requirement.traits,
                          requirement.forbidden)
            count = len(requirement.suffixes)
            return f'{count} times {text}' if count > 1 else text
    return _CHOICE


def lack(missing: requirements.UnmetRequirement,
         names: Mapping[str, str]) -> str:
    """Describe an unmet requirement of one host, for ``explain``."""
    match missing.kind:
        case Kind.TREE:
            return f'not host {_joined(names, missing.names)}'
        case Kind.TRAIT:
            return f'no trait {missing.name}'
        case Kind.FORBIDDEN_TRAIT:
            return f'has trait {missing.name}'
        case Kind.AGGREGATE:
            return f'not in aggregate {_joined(names, missing.names, " or ")}'
        case Kind.FORBIDDEN_AGGREGATE:
            return f'in aggregate {_joined(names, missing.names, " and ")}'
        case Kind.RESOURCE:
            need = f'{missing.name} {missing.amount} needed'
            if not missing.providers:
                return f'{need}, has none'
            if missing.free >= missing.amount:
                return f'{need}, not granted at once'
            return f'{need}, {missing.free} free{_reserved(missing)}'
    return _providers(missing)


def clause(missing: requirements.UnmetRequirement) -> str:
    """Describe an unmet requirement, to follow a number of hosts."""
    match missing.kind:
        case Kind.TREE:
            return 'not the host asked for'
        case Kind.TRAIT:
            return f'without the trait {missing.name}'
        case Kind.FORBIDDEN_TRAIT:
            return f'with the forbidden trait {missing.name}'
        case Kind.AGGREGATE:
            return 'not in the availability zone or aggregate asked for'
        case Kind.FORBIDDEN_AGGREGATE:
            return 'in an aggregate kept for other traits'
        case Kind.RESOURCE if missing.free >= missing.amount:
            return f'not granting {missing.amount} {missing.name} at once'
        case Kind.RESOURCE:
            return f'without enough {missing.name}'
    return f'without providers that together give {_demand(missing)}'


def shortage(missing: requirements.UnmetRequirement) -> str:
    """Describe the unmet requirement of one more server on a host."""
    match missing.kind:
        case Kind.AGGREGATE:
            return 'not in the aggregates asked for'
        case Kind.RESOURCE:
            need = f'{missing.amount} {missing.name}'
            if not missing.at_once:
                return f'{need} are not granted at once'
            if missing.total >= missing.amount:
                return (f'{need} needed from one provider, {missing.total} '
                        f'free in all{_reserved(missing)}')
            return f'{need} needed, {missing.total} free{_reserved(missing)}'
        case Kind.GROUP | Kind.CHOICE:
            return _providers(missing)
    return clause(missing)


def _reserved(missing: requirements.UnmetRequirement) -> str:
    return ''.join(f'; {device_shortage.miss_text(miss)}'
                   for miss in missing.misses)


def _providers(missing: requirements.UnmetRequirement) -> str:
    """Describe the providers that groups need and a host does not have."""
    groups = collections.Counter(
        demand(group.amounts, group.traits, group.forbidden)
        for group in missing.groups)
    count = len(missing.groups)
    if missing.kind is Kind.GROUP:
        text = f'{_demand(missing)} on one provider needed, none has it'
    elif count == 1:
        text = f'{next(iter(groups))} on one provider needed, none has it'
    elif not missing.needed:
        return _CHOICE
    elif not count:
        text = ('no providers in the host that together have '
                f'{demand(missing.needed, ())} and the traits asked for')
    elif len(groups) == 1 and missing.isolated:
        text = (f'{count} providers with {next(iter(groups))} each needed, '
                f'{count - 1} {"has" if count == 2 else "have"} it')
    else:
        needs = ' and '.join(
            each if number == 1 else f'{number} times {each}'
            for each, number in groups.items())
        apart = ' of different providers' if missing.isolated else ''
        text = f'{needs}{apart} needed, not all of it at once'
    return text + _reserved(missing)


def _demand(missing: requirements.UnmetRequirement) -> str:
    return demand(missing.needed, missing.names, missing.forbidden)


def _joined(names: Mapping[str, str], uuids: Iterable[str],
            word: str = '') -> str:
    return word.join(sorted(names.get(uuid, uuid) for uuid in uuids))
