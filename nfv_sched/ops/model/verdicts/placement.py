# SPDX-License-Identifier: Apache-2.0
"""Explain Nova's queries to Placement, and what each host lacks of them."""

import collections
from collections.abc import Iterable, Iterator, Mapping, Sequence
import functools
import typing as ty

from nfv_sched.ops.model.verdicts import values
from nfv_sched.ops.simulator import placement
from nfv_sched.ops.simulator.placement import requirements
from nfv_sched.ops.simulator.placement import sentences
from nfv_sched.ops.simulator import state as states

Query = placement.Query
_Unmet = Sequence[tuple[requirements.Requirement,
                        requirements.UnmetRequirement]]

# The unmet requirement of a host that meets every single one.
_NO_CHOICE = requirements.UnmetRequirement(
    requirements.RequirementKind.CHOICE, ())


class PlacementResult(ty.NamedTuple):
    stage: values.PlacementAnswer  #: its part of the explanation
    found: frozenset[str]  #: names of the hosts in the answers
    #: name of each other host -> what it lacks
    lacks: Mapping[str, tuple[values.PlacementLack, ...]]
    #: name of each other host -> sum of the free amounts of resource classes
    #: that it lacks; of two that lack the same, more is nearer
    free: Mapping[str, int]


def explain(state: states.State, queries: Sequence[Query]) -> PlacementResult:
    """Explain the answers of Placement.

    :param queries: queries of one request: the first, and the fallback that
        asks for VCPU in place of PCPU, if there is one
    """
    roots = {host.uuid: name for name, host in state.hosts.items()}
    model = state.placement
    answers: set[str] = set()
    fitting: set[str] = set()
    for query in queries:
        answers.update(roots[root] for root in model.answer(query))
        fitting.update(name for root, name in roots.items()
                       if model.finds(root, query))
    unmet = {name: _nearest_unmet(model.tree(root), queries)
             for root, name in roots.items() if name not in fitting}
    names = {**roots, **{aggregate.uuid: aggregate.name for aggregate
                         in state.manager.aggs_by_id.values()}}
    lacks = {name: _lacks(of_host, names) for name, of_host in unmet.items()}
    refused = model.refusal(queries[0]) if queries and all(
        map(model.refusal, queries)) else ''
    if refused:
        # Placement refuses the whole query: nothing else matters.
        lacks = dict.fromkeys(unmet, (values.PlacementLack(
            text=refused, need=values.PlacementNeed(
                placement.refusal(refused), 'unknown')),))
        unmet = dict.fromkeys(unmet, ())
    needs = {each.need.text: each.need for of_host in lacks.values()
             for each in of_host}
    removed = collections.Counter(
        each.need.text for of_host in lacks.values() for each in of_host)
    # Placement answers with [scheduler] max_placement_results candidates at
    # most.
    cut = fitting - answers
    lacks.update(dict.fromkeys(cut, (values.PlacementLack(
        text='left out of the answer, which is cut off', need=None),)))
    return PlacementResult(
        values.PlacementAnswer(
            queries=tuple([values.PlacementQuery(needs=tuple({
                need.text: need for requirement in query.single_requirements
                for need in [_need_of(requirement, names)]}.values()))
                for query in queries]),
            hosts=len(roots), hosts_left=len(answers),
            requirements=tuple(_requirements_to_drop(
                model, queries, roots, names)),
            removed=tuple([
                values.StageRemoval(need=needs[title], hosts=hosts)
                for title, hosts in removed.most_common()]),
            asks_again=len(queries) > 1,
            max_placement_results=queries[0].limit if queries else None,
            hosts_cut_off=len(cut),
            unsupported=tuple(dict.fromkeys(
                text for query in queries for text in query.unsupported)),
            refused=refused or None,
            unknown=model.unknown(queries[0]) if refused else (),
            unverified=model.unverified(queries[0]) if queries else ()),
        frozenset(answers), lacks,
        {name: sum(missing.free for _requirement, missing in of_host)
         for name, of_host in unmet.items()})


def _lacks(unmet: _Unmet,
           names: Mapping[str, str]) -> tuple[values.PlacementLack, ...]:
    """Return what a host lacks; of requirements with one title, the last."""
    return tuple({need.text: values.PlacementLack(
        text=sentences.lack(missing, names), need=need,
        free=missing.free if missing.providers else None,
        reserved=sum(miss.count for miss in missing.misses))
        for requirement, missing in unmet
        for need in [_need_of(requirement, names)]}.values())


def _need_of(requirement: requirements.Requirement,
             names: Mapping[str, str]) -> values.PlacementNeed:
    need = functools.partial(
        values.PlacementNeed, sentences.title(requirement, names),
        requirement.kind.name.lower())
    match requirement:
        case requirements.TreeRequirement():
            return need(host=names.get(requirement.uuid, requirement.uuid))
        case requirements.TraitRequirement():
            return need(traits=(requirement.trait,))
        case requirements.AggregateRequirement():
            return need(aggregates=tuple(sorted(
                names.get(uuid, uuid) for uuid in requirement.aggregates)))
        case requirements.ResourceRequirement():
            return need(resources={
                requirement.resource_class: requirement.amount})
        case requirements.GroupRequirement():
            return need(
                resources=dict(requirement.amounts),
                traits=tuple(sorted(requirement.traits)),
                forbidden_traits=tuple(sorted(requirement.forbidden)),
                count=len(requirement.suffixes))
    return need()


def _requirements_to_drop(
    model: placement.Placement, queries: Sequence[Query],
    roots: Iterable[str], names: Mapping[str, str],
) -> Iterator[values.StageRequirement]:
    """Yield each requirement of the first query, with counts of hosts."""
    for requirement in queries[0].single_requirements if queries else ():
        relaxed = [query.without(requirement, number > 0)
                   for number, query in enumerate(queries)]
        yield values.StageRequirement(
            need=_need_of(requirement, names),
            hosts_missing_it=sum(
                requirement.missing(model.tree(root)) is not None
                for root in roots),
            hosts_without_it=sum(
                any(model.finds(root, query) for query in relaxed)
                for root in roots))


def _nearest_unmet(tree: requirements.Tree,
                   queries: Sequence[Query]) -> _Unmet:
    """Return the unmet requirements of the query that a host is nearest to.

    Between equal numbers, it is the one for resource classes that the host
    has.
    """
    nearest: list[tuple[tuple[int, int], _Unmet]] = []
    for query in queries:
        unmet = [(requirement, missing)
                 for requirement in query.single_requirements
                 if (missing := requirement.missing(tree))]
        unmet = unmet or [
            (query.choice, query.choice.missing(tree) or _NO_CHOICE)]
        absent = sum(not missing.providers for _requirement, missing in unmet
                     if missing.kind is requirements.RequirementKind.RESOURCE)
        nearest.append(((len(unmet), absent), unmet))
    return min(nearest, key=lambda each: each[0])[1] if nearest else ()
