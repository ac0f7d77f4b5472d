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

"""What Nova asks Placement for a request, and what each host misses of it."""

import collections
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import typing as ty

import os_resource_classes as orc

from nfv_sched.advice.explain import values
from nfv_sched.simulator import placement
from nfv_sched.simulator import state as states

_CPUS = (orc.PCPU, orc.VCPU)
_CHOICE = 'a choice of devices for all of them'

Query = placement.Query
_Drop = Callable[[Query, bool], Query]
_Misses = Callable[[placement.Provider, Sequence[placement.Provider]],
                   str | None]
_Free = Callable[[placement.Provider, Sequence[placement.Provider]], int]


class _Requirement(ty.NamedTuple):
    """One requirement of a query.

    :ivar text: what is required
    :ivar drop: a query without it; the second argument says that the query
        asks for VCPU in place of PCPU
    :ivar misses: what a compute node, with the providers of its tree, misses
        of it; None if it meets it
    :ivar free: how much of it there is, of an amount
    """

    text: str
    drop: _Drop
    misses: _Misses
    free: _Free | None = None


class Answer(ty.NamedTuple):
    """The stage of Placement.

    :ivar stage: for the explanation
    :ivar found: names of the hosts in the answers
    :ivar misses: name of each other host -> what it misses
    :ivar required: name of each other host -> the requirements that it misses
    :ivar free: name of each other host -> total that is free of the missed
        resource classes; of two that miss the same, more is nearer
    """

    stage: values.Placement
    found: frozenset[str]
    misses: Mapping[str, tuple[str, ...]]
    required: Mapping[str, tuple[str, ...]]
    free: Mapping[str, int]


def explain(state: states.State, queries: Sequence[Query]) -> Answer:
    """Explain the answers of Placement.

    :param state: the cloud
    :param queries: the queries of one request: the first, and the one that
        asks for VCPU in place of PCPU, if there is one
    """
    roots = {host.uuid: name for name, host in state.hosts.items()}
    model = state.placement
    found: set[str] = set()
    fitting: set[str] = set()
    for query in queries:
        found.update(roots[root] for root in model.answer(query))
        fitting.update(name for root, name in roots.items()
                       if model.finds(root, query))
    names = {aggregate.uuid: aggregate.name
             for aggregate in state.manager.aggs_by_id.values()}
    required = [list(_requirements(query, names, roots))
                for query in queries]
    missed = {
        name: _misses(model, root, queries, required)
        for root, name in roots.items() if name not in fitting}
    unknown = model.unknown(queries[0]) if queries else ()
    if unknown:
        # What else they miss does not matter as long as it is refused.
        text = placement.refusal(unknown)
        missed = dict.fromkeys(
            roots.values(), {text: placement.ignorance(unknown)})
    amounts = {each.text: each.free for requirements in required
               for each in requirements if each.free is not None}
    free = {
        name: sum(amounts[text](model.providers[root], model.tree(root))
                  for text in missed[name] if text in amounts)
        for root, name in roots.items() if name in missed}
    removed = collections.Counter(
        text for of_host in missed.values() for text in of_host)
    misses = {name: tuple(of_host.values())
              for name, of_host in missed.items()}
    cut = fitting - found
    for name in cut:
        misses[name] = ('left out of the answer, which is cut off',)
    return Answer(
        values.Placement(
            queries=tuple(str(query) for query in queries),
            hosts=len(roots), left=len(found),
            requirements=tuple(_dropped(
                state, queries, required, roots, misses)),
            removed=dict(removed.most_common()),
            fallback=len(queries) > 1,
            limit=queries[0].limit if queries else None, cut=len(cut),
            unsupported=tuple(dict.fromkeys(
                text for query in queries for text in query.unsupported)),
            unknown=_unknown(unknown),
            unverified=_unknown(
                model.unverified(queries[0]) if queries else ())),
        frozenset(found), misses,
        {name: tuple(of_host) for name, of_host in missed.items()}, free)


def _unknown(names: Iterable[placement.Unknown]) -> tuple[
        values.Unknown, ...]:
    return tuple([values.Unknown(kind=each.kind, name=each.name)
                  for each in names])


def _dropped(
    state: states.State, queries: Sequence[Query],
    required: Sequence[Sequence[_Requirement]], roots: Mapping[str, str],
    misses: Mapping[str, tuple[str, ...]],
) -> Iterator[values.Requirement]:
    """Each requirement of the first query, and what comes without it."""
    model = state.placement
    for requirement in required[0] if required else ():
        relaxed = [requirement.drop(query, number > 0)
                   for number, query in enumerate(queries)]
        missing = sum(
            requirement.misses(model.providers[root], model.tree(root))
            is not None for root in roots)
        without = sum(
            any(model.finds(root, query) for query in relaxed)
            for root in roots)
        yield values.Requirement(
            text=requirement.text, without=without, missing=missing)


def _misses(
    model: placement.Placement, root: str, queries: Sequence[Query],
    required: Sequence[Sequence[_Requirement]],
) -> Mapping[str, str]:
    """What a host misses of the query that it misses least of.

    Of two alike it is the one for resource classes that the host has.

    :returns: what is required -> what it misses of that
    """
    found: dict[tuple[int, int], Mapping[str, str]] = {}
    for query, requirements in zip(queries, required):
        texts = {requirement.text: requirement.misses(
            model.providers[root], model.tree(root))
            for requirement in requirements}
        missed = {required: text for required, text in texts.items()
                  if text is not None}
        if not missed:
            # Each of them alone could be met.
            missed = {_CHOICE: _CHOICE}
        own, _nested = query.root.split(model.tree(root))
        unknown = len(own.amounts.keys() -
                      model.providers[root].inventories.keys())
        found.setdefault((len(missed), unknown), missed)
    return found[min(found)] if found else {}


def _requirements(
    query: Query, aggregates: Mapping[str, str], roots: Mapping[str, str],
) -> Iterator[_Requirement]:
    """The requirements of a query.

    :param aggregates: UUID -> name
    :param roots: UUID of each compute node -> name of its host
    """
    group = query.root
    for name, amount in group.amounts.items():
        yield _of_class(name, amount)
    for trait in sorted(group.required):
        yield _of_trait(trait, group)
    for trait in sorted(group.forbidden):
        yield _of_forbidden(trait, group)
    for members in group.members_of:
        yield _of_aggregates(members, aggregates)
    if group.forbidden_aggregates:
        yield _of_forbidden_aggregates(group.forbidden_aggregates, aggregates)
    if query.tree is not None:
        yield _of_tree(query.tree, roots.get(query.tree, query.tree))
    alike: dict[str, list[str]] = {}
    for suffix, nested in query.groups.items():
        alike.setdefault(str(nested), []).append(suffix)
    for text, suffixes in alike.items():
        yield _of_groups(text, suffixes, query.groups[suffixes[0]])


def _root(query: Query, **changes: ty.Any) -> Query:
    return dataclasses.replace(
        query, root=dataclasses.replace(query.root, **changes))


def _of_class(name: str, amount: int) -> _Requirement:

    def drop(query: Query, fallback: bool) -> Query:
        amounts = dict(query.root.amounts)
        if fallback and name in _CPUS:
            # It asks for the CPUs of both kinds as VCPU.
            amounts[orc.VCPU] = amounts.get(orc.VCPU, 0) - amount
            if amounts[orc.VCPU] <= 0:
                del amounts[orc.VCPU]
        else:
            amounts.pop(name, None)
        return _root(query, amounts=amounts)

    def givers(provider, tree):
        return [provider] if name in provider.inventories else [
            each for each in tree if name in each.inventories]

    def free(provider, tree):
        return max([0, *(each.free(name) for each in givers(provider, tree))])

    def misses(provider, tree):
        if not givers(provider, tree):
            return f'{name} {amount} needed, has none'
        if any(each.lacks({name: amount}) is None
               for each in givers(provider, tree)):
            return None
        return f'{name} {amount} needed, {free(provider, tree)} free'

    return _Requirement(f'{name}={amount}', drop, misses, free)


def _of_trait(trait: str, group: placement.Group) -> _Requirement:

    def misses(provider, tree):
        # Some nested provider that gives resources may have it, too.
        own, _nested = group.split(tree)
        return (f'no trait {trait}'
                if trait in own.required - provider.traits else None)

    return _Requirement(
        f'trait {trait}',
        lambda query, _: _root(query, required=query.root.required - {trait}),
        misses)


def _of_forbidden(trait: str, group: placement.Group) -> _Requirement:

    def misses(provider, tree):
        own, nested = group.split(tree)
        if trait in own.forbidden & provider.traits or any(
                trait in part.forbidden and all(
                    trait in each.traits for each in tree
                    if name in each.inventories)
                for name, part in nested.items()):
            return f'has trait {trait}'
        return None

    return _Requirement(
        f'no trait {trait}',
        lambda query, _: _root(
            query, forbidden=query.root.forbidden - {trait}),
        misses)


def _of_aggregates(members: frozenset[str],
                   names: Mapping[str, str]) -> _Requirement:
    known = sorted(names.get(uuid, uuid) for uuid in members)
    text = f'aggregate {" or ".join(known)}'
    return _Requirement(
        text,
        lambda query, _: _root(query, members_of=tuple(
            each for each in query.root.members_of if each != members)),
        lambda provider, tree: (
            None if members & provider.aggregates else f'not in {text}'))


def _of_forbidden_aggregates(avoided: frozenset[str],
                             names: Mapping[str, str]) -> _Requirement:

    def misses(provider, tree):
        found = sorted(names.get(uuid, uuid)
                       for uuid in avoided & provider.aggregates)
        return f'in aggregate {" and ".join(found)}' if found else None

    known = sorted(names.get(uuid, uuid) for uuid in avoided)
    return _Requirement(
        f'not in aggregate {" or ".join(known)}',
        lambda query, _: _root(query, forbidden_aggregates=frozenset()),
        misses)


def _of_tree(root: str, name: str) -> _Requirement:
    return _Requirement(
        f'host {name}',
        lambda query, _: dataclasses.replace(query, tree=None),
        lambda provider, tree: (
            None if provider.uuid == root else f'not host {name}'))


def _of_groups(text: str, suffixes: Sequence[str],
               group: placement.Group) -> _Requirement:
    count = len(suffixes)

    def misses(provider, tree):
        if any(group.misses(each) is None for each in tree):
            return None
        return f'{text} on one device needed, none has it'

    return _Requirement(
        f'{count} times {text}' if count > 1 else text,
        lambda query, _: dataclasses.replace(query, groups={
            suffix: each for suffix, each in query.groups.items()
            if str(each) != text}),
        misses)
