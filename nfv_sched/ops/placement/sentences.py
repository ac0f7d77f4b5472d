# SPDX-License-Identifier: Apache-2.0
"""Render requirements, met and unmet, in words for people.

No code decides by these texts: unmet requirements are values of
:mod:`nfv_sched.ops.placement.requirements`.
"""

from collections.abc import Iterable
from collections.abc import Mapping

from nfv_sched.ops.placement import requirements

Kind = requirements.RequirementKind

_CHOICE = 'a choice of devices for all of them'


def demand(amounts: Iterable[tuple[str, int]], traits: Iterable[str],
           forbidden: Iterable[str] = ()) -> str:
    """Return the amounts and traits of one request group, as a list."""
    words = [f'{name}={amount}' for name, amount in amounts]
    words += [f'trait {trait}' for trait in sorted(traits)]
    words += [f'no trait {trait}' for trait in sorted(forbidden)]
    return ', '.join(words)


def title(requirement: requirements.Requirement,
          names: Mapping[str, str]) -> str:
    """Return the title of a requirement in the output of ``explain``.

    :param names: names of aggregates and hosts by UUID
    """
    match requirement:
        case requirements.TreeRequirement():
            return f'host {_sorted_names(names, [requirement.uuid])[0]}'
        case requirements.TraitRequirement():
            return f'trait {requirement.trait}'
        case requirements.ForbiddenTraitRequirement():
            return f'no trait {requirement.trait}'
        case requirements.AggregateRequirement():
            members = _sorted_names(names, requirement.aggregates)
            return f'aggregate {" or ".join(members)}'
        case requirements.ForbiddenAggregateRequirement():
            members = _sorted_names(names, requirement.aggregates)
            return f'not in aggregate {" or ".join(members)}'
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
    """Describe an unmet requirement of one host, for ``explain``.

    :param names: names of aggregates and hosts by UUID
    """
    match missing.kind:
        case Kind.TREE:
            return f'not host {_sorted_names(names, missing.names)[0]}'
        case Kind.TRAIT:
            return f'no trait {missing.name}'
        case Kind.FORBIDDEN_TRAIT:
            return f'has trait {missing.name}'
        case Kind.AGGREGATE:
            members = _sorted_names(names, missing.names)
            return f'not in aggregate {" or ".join(members)}'
        case Kind.FORBIDDEN_AGGREGATE:
            members = _sorted_names(names, missing.names)
            return f'in aggregate {" and ".join(members)}'
        case Kind.RESOURCE:
            need = f'{missing.name} {missing.amount} needed'
            if not missing.providers:
                return f'{need}, has none'
            if missing.free >= missing.amount:
                return f'{need}, not granted at once'
            return f'{need}, {missing.free} free'
        case Kind.GROUP:
            return f'{_demand(missing)} on one device needed, none has it'
    return _CHOICE


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
    return f'without devices that together give {_demand(missing)}'


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
                        'free in all')
            return f'{need} needed, {missing.total} free'
        case Kind.CHOICE:
            return ('no providers in the host that together have '
                    f'{demand(missing.needed, ())} and the traits asked for')
    return clause(missing)


def _demand(missing: requirements.UnmetRequirement) -> str:
    return demand(missing.needed, missing.names, missing.forbidden)


def _sorted_names(names: Mapping[str, str], uuids: Iterable[str]) -> list[str]:
    return sorted(names.get(uuid, uuid) for uuid in uuids)
