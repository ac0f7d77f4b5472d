# SPDX-License-Identifier: Apache-2.0
"""Model Placement in memory: providers, inventories and allocations.

The model answers the queries of Nova's scheduler, from the query string that
the service would get, and claims an allocation request completely or not at
all.  Resources of the unsuffixed request group come from the compute node
itself; a resource class that it does not have, such as VGPU, comes from any
one provider nested in it.  Resources of a suffixed group, such as one PCI
device, come from any one provider of the tree.

Differences from the service: it would offer a class of the unsuffixed group
on nested providers even if the compute node has the class, too.  Sharing
providers and conditions on subtrees are not simulated: a request with them
finds no host.  The allocation candidates of a host come in random order, as
they may from the service.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
import dataclasses
import itertools
import random
import types
import typing as ty

import os_resource_classes
import os_traits

from nfv_sched.base import strings
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.simulator.placement import queries
from nfv_sched.ops.simulator.placement import requirements
from nfv_sched.ops.simulator.placement import resource_provider
from nfv_sched.ops.simulator.placement import sentences

Provider = requirements.Provider
Query = queries.Query

#: UUID of a provider -> resource class -> amount.
Allocations = Mapping[str, Mapping[str, int]]

#: Names that every Placement service knows.
STANDARD_TRAITS = frozenset(os_traits.get_traits())
STANDARD_CLASSES = frozenset(os_resource_classes.STANDARDS)

#: Microversion for the allocation requests.
ALLOCATION_REQUEST_VERSION = '1.36'

#: Most candidates of one host if the query has no limit.
_MANY = 1000


def allocations_of(candidate: Mapping[str, ty.Any]) -> dict[
        str, dict[str, int]]:
    return {uuid: dict(allocation['resources']) for uuid, allocation
            in candidate['allocations'].items()}


class PlacementModel:
    """Resource providers and allocations.

    The methods that Nova's scheduler calls have the names and parameters of
    its Placement client.  Providers and allocations change only by methods of
    this class.

    :ivar providers: by UUID, as are allocations, of consumers
    :ivar traits: those that exist besides those of providers, as are classes;
        None if unknown
    :ivar shuffled: whether :meth:`answer` returns the allocation candidates
        of a host in random order; otherwise in that of :meth:`candidates`
    """

    def __init__(self) -> None:
        self._providers: dict[str, Provider] = {}
        self._trees: dict[str, list[Provider]] = {}
        self._allocations: dict[str, dict[str, dict[str, int]]] = {}
        self.providers: Mapping[str, Provider] = types.MappingProxyType(
            self._providers)
        self.allocations: Mapping[str, Allocations] = types.MappingProxyType(
            self._allocations)
        self.traits: frozenset[str] | None = None
        self.classes: frozenset[str] | None = None
        self.shuffled = True
        #: (query, number of hosts found) for each query of this request.
        self.queries: list[tuple[Query, int]] = []

    def tree(self, root: str) -> Sequence[Provider]:
        """Return the tree of a compute node, root first; empty if unknown."""
        return self._trees.get(root, ())

    # Changes

    def add(self, provider: snapshot.Provider,
            root: str | None = None) -> None:
        """Add a resource provider; the compute node before nested ones."""
        self._add(Provider.start(provider, root))

    def _add(self, provider: Provider) -> None:
        self._trees.setdefault(provider.root, []).append(provider)
        self._store(provider)

    def change(self, uuid: str, **changes: ty.Any) -> None:
        before = self._providers[uuid]
        tree = self._trees[before.root]
        provider = dataclasses.replace(before, **changes)
        tree[tree.index(before)] = provider
        self._store(provider)

    def _store(self, provider: Provider) -> None:
        self._providers[provider.uuid] = provider
        if self.traits is not None:
            self.traits = self.traits.union(provider.traits)

    def set_names(self, traits: frozenset[str] | None,
                  classes: frozenset[str] | None) -> None:
        self.traits, self.classes = traits, classes

    def take(self, allocations: Allocations, sign: int = 1) -> None:
        """Add to the usage of providers without checking their capacity."""
        for uuid, amounts in allocations.items():
            resource_provider.add(
                self._providers[uuid].used, amounts.items(), sign)

    def give(self, allocations: Allocations) -> None:
        """Undo :meth:`take`; other calls may have been made in between."""
        self.take(allocations, -1)

    def allocate(self, consumer: str, allocations: Allocations) -> None:
        """Add to a consumer's allocations without checking capacity."""
        self.take(allocations)
        of_consumer = self._allocations.setdefault(consumer, {})
        for uuid, amounts in allocations.items():
            resource_provider.add(of_consumer.setdefault(uuid, {}),
                                  amounts.items())

    def record(self, consumer: str, allocations: Allocations) -> None:
        """Set a consumer's allocations where the usage includes them."""
        self._allocations[consumer] = {
            uuid: dict(amounts) for uuid, amounts in allocations.items()}

    def move(self, source: str, target: str) -> None:
        """Move allocations to another consumer, as Nova's migrations do."""
        self._allocations.setdefault(target, {}).update(
            self._allocations.pop(source, {}))

    def remove(self, consumer: str) -> None:
        self.give(self._allocations.pop(consumer, {}))

    def remove_provider(self, consumer: str, root: str) -> None:
        """Remove a consumer's allocations from one compute node's tree."""
        of_consumer = self._allocations.get(consumer, {})
        for uuid in [uuid for uuid in of_consumer
                     if self._providers[uuid].root == root]:
            self.give({uuid: of_consumer.pop(uuid)})
        if not of_consumer:
            self._allocations.pop(consumer, None)

    def copy(self, root: str) -> 'PlacementModel':
        """Return a model of one compute node's tree, without allocations."""
        copy = PlacementModel()
        for provider in self.tree(root):
            copy._add(dataclasses.replace(provider, used=dict(provider.used)))
        return copy

    # Methods that Nova calls

    def get_allocation_candidates(self, context: ty.Any, resources: ty.Any):
        """Answer a query of the scheduler; None if Placement refuses it."""
        query = Query.parse(resources.to_querystring())
        if self.refusal(query):
            self.queries.append((query, 0))
            return None
        requests: list[dict] = []
        summaries: dict[str, dict] = {}
        answer = self.answer(query)
        for root, candidates in answer.items():
            requests += candidates
            for provider in self._trees[root]:
                summaries[provider.uuid] = provider.summary()
        self.queries.append((query, len(answer)))
        return requests, summaries, ALLOCATION_REQUEST_VERSION

    def claim_resources(self, context: ty.Any, consumer_uuid: str,
                        alloc_request: Mapping, project_id: str,
                        user_id: str, allocation_request_version: str,
                        consumer_generation: int | None = None) -> bool:
        """Allocate all of a request, if there is room for it, or nothing.

        In an evacuation the allocations on the source are removed later.
        """
        allocations = allocations_of(alloc_request)
        for uuid, amounts in allocations.items():
            provider = self._providers.get(uuid)
            if provider is None or not provider.allows(amounts):
                return False
        self.allocate(consumer_uuid, allocations)
        return True

    def delete_allocation_for_instance(self, context: ty.Any, uuid: str,
                                       *args: ty.Any,
                                       **kwargs: ty.Any) -> bool:
        self.remove(uuid)
        return True

    # Queries of the simulator and the tools

    def summaries(self) -> dict[str, dict]:
        return {uuid: provider.summary()
                for uuid, provider in self._providers.items()}

    def candidates(self, root: str, query: Query) -> Iterator[dict]:
        tree = self._trees[root]
        if _missing_of_host(tree, query):
            return
        shares = query.choice.shares(tree)
        for chosen in itertools.islice(
                query.choice.choices(tree), query.limit or _MANY):
            yield _candidate(shares.own, root, zip(shares.groups, chosen))

    def answer(self, query: Query) -> dict[str, list[dict]]:
        """Return the candidates of each compute node that has any."""
        answer: dict[str, list[dict]] = {}
        if query.unsupported or self.refusal(query):
            return answer
        count = 0
        for root in self._trees:
            candidates = list(self.candidates(root, query))
            if self.shuffled and len(candidates) > 1:
                random.shuffle(candidates)
            if query.limit is not None:
                del candidates[query.limit - count:]
            if candidates:
                answer[root] = candidates
                count += len(candidates)
                if count == query.limit:
                    break
        return answer

    def refusal(self, query: Query) -> str:
        """Return why Placement answers with status 400, or an empty string."""
        if query.fault is not None:
            return str(query.fault)
        unknown = ' and no '.join(map(str, self.unknown(query)))
        return f'knows no {unknown}' if unknown else ''

    def unknown(self, query: Query) -> tuple[queries.QueriedName, ...]:
        """Return the names in a query that Placement does not know.

        It refuses such a query, even one that only forbids an unknown trait.
        """
        traits, classes = query.names
        return tuple([
            queries.QueriedName(kind, name) for kind, names, present in (
                (queries.TRAIT, traits, self.traits),
                (queries.RESOURCE_CLASS, classes, self.classes))
            if present is not None and not names <= present
            for name in sorted(names - present - self._names_in_use(kind))])

    def unverified(self, query: Query) -> tuple[queries.QueriedName, ...]:
        """Return the forbidden traits that Placement may not know.

        There are some only if the traits were not read.  Required traits need
        no check: a host without them is not a candidate in either case.
        """
        if self.traits is not None:
            return ()
        forbidden = query.forbidden.union(
            *(group.forbidden for group in query.groups))
        return tuple([
            queries.QueriedName(queries.TRAIT, name) for name in sorted(
                forbidden - self._names_in_use(queries.TRAIT)
                - STANDARD_TRAITS)])

    def _names_in_use(self, kind: str) -> set[str]:
        return {name for provider in self._providers.values() for name in (
            provider.traits if kind == queries.TRAIT
            else provider.inventories)}

    def finds(self, root: str, query: Query) -> bool:
        return (not query.unsupported and not self.refusal(query) and
                any(self.candidates(root, query)))

    def assumed(self, root: str, query: Query) -> dict:
        """Return what Placement would answer if the host met the query."""
        tree = self._trees[root]
        shares = query.choice.shares(tree)
        chosen = []
        for group in shares.groups:
            able = [provider for provider in tree
                    if dict(group.amounts).keys() <= (
                        provider.inventories.keys())]
            if able:
                chosen.append((group, min(
                    able, key=lambda each: not group.met_by(each))))
        return _candidate(shares.own, root, chosen)

    # Reasons to show to people

    def explain(self, query: Query) -> str:
        if refusal := self.refusal(query):
            return queries.refusal(refusal)
        if query.unsupported:
            return ('not simulated in a Placement request: ' +
                    ', '.join(query.unsupported))
        if not self._trees:
            return 'Placement has no hosts'
        return (f'Placement has no host with {query}: '
                f'{self.explain_rest(query)}')

    def explain_rest(self, query: Query) -> str:
        """Summarize why a query does not find hosts; empty if it finds all."""
        missing = [each for tree in self._trees.values() if (each := min(
            _missing_of_host(tree, query), key=lambda each: each.kind,
            default=None) or query.choice.missing(tree))]
        elsewhere = [each for each in missing
                     if each.kind is not requirements.RequirementKind.TREE]
        alike: dict[str, list[requirements.UnmetRequirement]] = {}
        for each in elsewhere or missing:
            alike.setdefault(sentences.clause(each), []).append(each)
        parts = []
        for clause, same in alike.items():
            text = f'{strings.count(len(same), "host")} {clause}'
            if same[0].kind is requirements.RequirementKind.RESOURCE:
                text += f' (most free: {max(each.free for each in same)})'
            parts.append(text)
        return ', '.join(parts)


def _missing_of_host(tree: requirements.Tree,
                     query: Query) -> list[requirements.UnmetRequirement]:
    """Return the unmet requirements that no choice of providers can meet."""
    return [missing for requirement in query.host_requirements
            if (missing := requirement.missing(tree)) is not None]


def _candidate(own: Mapping[str, int], root: str, chosen: Iterable[
        tuple[requirements.GroupRequirement, Provider]]) -> dict:
    """Return an allocation candidate; the compute node gives ``own``."""
    amounts: dict[str, dict[str, int]] = {root: dict(own)}
    mappings = {'': [root]}
    for group, provider in chosen:
        resource_provider.add(amounts.setdefault(provider.uuid, {}),
                              group.amounts)
        uuids = mappings.setdefault(group.suffixes[0], [])
        if provider.uuid not in uuids:
            uuids.append(provider.uuid)
    if not own and len(mappings['']) > 1:
        # Nested providers give all that the unsuffixed group asks for.
        mappings[''].remove(root)
        if not amounts[root]:
            del amounts[root]
    return {
        'allocations': {uuid: {'resources': of_provider}
                        for uuid, of_provider in amounts.items()},
        'mappings': mappings}
