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

"""Placement in memory: inventories, traits, aggregates and allocations.

It answers the queries of Nova's scheduler, from the same query string as the
service, and allocates all of a claim or nothing.  Resources of the unsuffixed
request group come from the compute node itself, or, of each class that it does
not have, such as VGPU, from any one provider nested in it; those of each
suffixed group, such as one PCI device, from any one provider of its tree.  The
service would offer a class of the unsuffixed group on nested providers also if
the compute node has it, too.  The allocation candidates of a host come in
random order, as those of the service can.  Sharing providers and conditions on
subtrees are not simulated: a request with them finds no host.
"""

import collections
from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from collections.abc import Sequence
import dataclasses
import enum
import itertools
import random
import re
import typing as ty
from urllib import parse

from nova import exception

from nfv_sched.simulator import nova_api
from nfv_sched import text as words

#: Kinds of names.
TRAIT = 'trait'
RESOURCE_CLASS = 'resource class'
# Stands for a suffix: traits that the compute node itself must have or lack.
_ROOT = '/'
_KEY = re.compile(r'(resources|required|member_of|in_tree)([\w-]*)')
# Most candidates of one host if the query has no limit.
_MANY = 1000


class MissKind(enum.Enum):
    """Kind of a miss: a clause to be read after the number of hosts."""

    HOST = 'not the host asked for'
    TRAIT = 'without the trait {}'
    FORBIDDEN_TRAIT = 'with the forbidden trait {}'
    AGGREGATE = 'not in the availability zone or aggregate asked for'
    FORBIDDEN_AGGREGATE = 'in an aggregate kept for other traits'
    RESOURCE_CLASS = 'without enough {}'
    NESTED = 'without devices that together give {}'


class Miss(ty.NamedTuple):
    """A requirement of a query that a resource provider does not meet.

    :ivar name: of the trait or resource class
    """

    kind: MissKind
    name: str = ''

    def __str__(self) -> str:
        return self.kind.value.format(self.name)


@dataclasses.dataclass(frozen=True, slots=True)
class Inventory:
    """The inventory of one resource class of a provider.

    :ivar total: total amount
    :ivar reserved: part of it that cannot be allocated
    :ivar ratio: allocation ratio
    :ivar max_unit: most that one allocation may have; None for the total, as
        Nova has it
    :ivar min_unit: least that one allocation may have
    :ivar step_size: what amounts are multiples of
    """

    total: int
    reserved: int = 0
    ratio: float = 1.0
    max_unit: int | None = None
    min_unit: int = 1
    step_size: int = 1

    def takes(self, amount: int) -> bool:
        """Whether one allocation may have an amount.

        :param amount: the amount
        """
        return (self.min_unit <= amount <= self.most
                and amount % self.step_size == 0)

    @property
    def most(self) -> int:
        """Most that one allocation may have."""
        return self.total if self.max_unit is None else self.max_unit

    @property
    def capacity(self) -> int:
        """How much can be allocated in all."""
        return int((self.total - self.reserved) * self.ratio)


@dataclasses.dataclass(slots=True)
class Provider:
    """A resource provider.

    :ivar uuid: its UUID
    :ivar name: its name
    :ivar inventories: resource class -> inventory
    :ivar traits: its traits
    :ivar aggregates: UUIDs of its aggregates
    :ivar used: resource class -> allocated amount
    :ivar parent: UUID of its parent; None if it is a compute node
    :ivar tree: UUID of the compute node of its tree; None if that is its
        parent, or itself
    """

    uuid: str
    name: str
    inventories: Mapping[str, Inventory]
    traits: set[str]
    aggregates: set[str] = dataclasses.field(default_factory=set)
    used: dict[str, int] = dataclasses.field(default_factory=dict)
    parent: str | None = None
    tree: str | None = None

    @property
    def root(self) -> str:
        """UUID of the compute node of its tree."""
        return self.tree or self.parent or self.uuid

    def free(self, resource_class: str) -> int:
        """How much of a resource class can still be allocated.

        :param resource_class: name of the class
        """
        inventory = self.inventories.get(resource_class)
        if inventory is None:
            return 0
        return inventory.capacity - self.used.get(resource_class, 0)

    def summary(self) -> dict[str, ty.Any]:
        """Its provider summary, as it comes with allocation candidates."""
        return {
            'resources': {
                name: {'capacity': inventory.capacity,
                       'used': self.used.get(name, 0)}
                for name, inventory in self.inventories.items()},
            'traits': list(self.traits),
            'parent_provider_uuid': self.parent,
            'root_provider_uuid': self.root,
        }

    def lacks(self, amounts: Mapping[str, int]) -> str | None:
        """The first resource class of which too little is left, or None.

        :param amounts: resource class -> amount
        """
        for resource_class, amount in amounts.items():
            inventory = self.inventories.get(resource_class)
            if (inventory is None or not inventory.takes(amount) or
                    amount > self.free(resource_class)):
                return resource_class
        return None


@dataclasses.dataclass(frozen=True, slots=True)
class Group:
    """A request group: what one provider must give.

    The unsuffixed group may be split among the providers of a tree.

    :ivar amounts: resource class -> amount
    :ivar required: required traits
    :ivar forbidden: forbidden traits
    :ivar members_of: sets of aggregates; the provider must be in one of each
    :ivar forbidden_aggregates: aggregates in which it must not be
    :ivar root_required: those of the required traits that the compute node
        itself must have, whichever providers give the resources
    :ivar root_forbidden: those of the forbidden traits that only the compute
        node itself must not have
    """

    amounts: Mapping[str, int]
    required: frozenset[str] = frozenset()
    forbidden: frozenset[str] = frozenset()
    members_of: tuple[frozenset[str], ...] = ()
    forbidden_aggregates: frozenset[str] = frozenset()
    root_required: frozenset[str] = frozenset()
    root_forbidden: frozenset[str] = frozenset()

    def __str__(self) -> str:
        words = [f'{name}={amount}' for name, amount in self.amounts.items()]
        words += [f'trait {trait}' for trait in sorted(self.required)]
        return ', '.join(words)

    def misses(self, provider: Provider) -> Miss | None:
        """Return why a provider cannot satisfy the group; None if it can."""
        for trait in self.required:
            if trait not in provider.traits:
                return Miss(MissKind.TRAIT, trait)
        for trait in self.forbidden:
            if trait in provider.traits:
                return Miss(MissKind.FORBIDDEN_TRAIT, trait)
        for aggregates in self.members_of:
            if not aggregates & provider.aggregates:
                return Miss(MissKind.AGGREGATE)
        if self.forbidden_aggregates & provider.aggregates:
            return Miss(MissKind.FORBIDDEN_AGGREGATE)
        lacking = provider.lacks(self.amounts)
        return None if lacking is None else Miss(
            MissKind.RESOURCE_CLASS, lacking)

    def split(self, tree: Sequence[Provider],
              ) -> tuple['Group', Mapping[str, 'Group']]:
        """Split the unsuffixed group among the providers of a host.

        A trait that a nested provider may have in its place is not required
        of the compute node; :meth:`covered` tells whether one has it.

        :param tree: the providers of the host, its own first
        :returns: what is asked of the compute node itself, and, by resource
            class, what is asked of one nested provider each, of the classes
            that only those have
        """
        if len(tree) < 2 or (
                self.amounts.keys() <= tree[0].inventories.keys()):
            return self, {}
        own = dict(self.amounts)
        nested: dict[str, Group] = {}
        elsewhere: set[str] = set()
        forbidden = self.forbidden - self.root_forbidden
        for name in self.amounts:
            givers = [provider for provider in tree
                      if name in provider.inventories]
            if givers and givers[0] is not tree[0]:
                nested[name] = Group({name: own.pop(name)},
                                     forbidden=forbidden)
                elsewhere.update(*(giver.traits for giver in givers))
        if not nested:
            return self, {}
        return dataclasses.replace(
            self, amounts=own,
            required=self.required - (elsewhere - self.root_required),
            forbidden=self.forbidden if own else self.root_forbidden,
        ), nested

    def covered(self, providers: Iterable[Provider]) -> bool:
        """Whether providers together have the traits of the split group.

        :param providers: those that give its resources
        """
        return self.required - self.root_required <= set().union(
            *(provider.traits for provider in providers))


@dataclasses.dataclass(frozen=True, slots=True)
class Query:
    """A query for allocation candidates.

    :ivar root: the unsuffixed group, for the compute node itself, or for
        providers nested in it as far as it does not have the resource classes
    :ivar groups: suffix -> group, each for any provider of its tree
    :ivar isolated: whether each of these groups needs a provider of its own
    :ivar tree: UUID of the only compute node to consider; None for all
    :ivar limit: most candidates to return; None for no limit
    :ivar unsupported: parts of the query that are not simulated
    """

    root: Group
    groups: Mapping[str, Group]
    isolated: bool
    tree: str | None
    limit: int | None
    unsupported: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> 'Query':
        """Read the query string of ``GET /allocation_candidates``.

        :param text: the query string
        """
        amounts: dict[str, dict[str, int]] = {'': {}}
        required: dict[str, set[str]] = {'': set()}
        forbidden: dict[str, set[str]] = {'': set()}
        members, unsupported = [], []
        avoided: set[str] = set()
        tree = limit = None
        isolated = False
        for key, value in parse.parse_qsl(text):
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
                    for trait in value.split(','):
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
        required[''] |= root_required
        forbidden[''] |= root_forbidden
        groups = {
            suffix: Group(wanted, frozenset(required.get(suffix, ())),
                          frozenset(forbidden.get(suffix, ())),
                          () if suffix else tuple(members),
                          frozenset(() if suffix else avoided))
            for suffix, wanted in amounts.items()}
        unsupported += [f'traits{suffix} without resources' for suffix
                        in required.keys() | forbidden.keys()
                        if suffix not in amounts]
        root = dataclasses.replace(
            groups.pop(''), root_required=root_required,
            root_forbidden=root_forbidden)
        return cls(root, groups, isolated, tree, limit,
                   tuple(unsupported))

    def __str__(self) -> str:
        texts = [str(self.root)] if str(self.root) else []
        for text, count in collections.Counter(
                map(str, self.groups.values())).items():
            texts.append(f'{count} times {text}' if count > 1 else text)
        return ', '.join(texts)

    @property
    def names(self) -> tuple[frozenset[str], frozenset[str]]:
        """All traits and resource classes that it names."""
        groups = (self.root, *self.groups.values())
        traits = frozenset().union(*(
            names for group in groups for names in (
                group.required, group.forbidden, group.root_required,
                group.root_forbidden)))
        return traits, frozenset().union(*(
            group.amounts for group in groups))


class Unknown(ty.NamedTuple):
    """A name that Placement does not know.

    :ivar kind: ``trait`` or ``resource class``
    """

    kind: str
    name: str

    def __str__(self) -> str:
        return f'{self.kind} {self.name}'


def refusal(unknown: Iterable[Unknown]) -> str:
    """Return why Placement refuses a query, for people."""
    return ('Placement refuses the request, so that Nova takes no host: it '
            f'{ignorance(unknown)}')


def ignorance(unknown: Iterable[Unknown]) -> str:
    """Return which names Placement does not know, for people."""
    return f'knows no {" and no ".join(map(str, unknown))}'


class Placement:
    """The resource providers and allocations.

    The methods that Nova's scheduler calls have the names and parameters of
    its Placement client.

    :ivar providers: UUID -> provider
    :ivar allocations: UUID of a consumer -> UUID of a provider -> resource
        class -> amount
    :ivar traits: traits that it knows beside those of its providers; None if
        it is not known which
    :ivar classes: the same of resource classes
    :ivar shuffled: whether the allocation candidates of a host come in random
        order; otherwise in that of :meth:`candidates`
    """

    def __init__(self) -> None:
        self.providers: dict[str, Provider] = {}
        self._trees: dict[str, list[Provider]] = {}
        self.allocations: dict[str, dict[str, dict[str, int]]] = {}
        self.traits: frozenset[str] | None = None
        self.classes: frozenset[str] | None = None
        self.shuffled = True
        #: (query, number of hosts found) of each query of this request.
        self.queries: list[tuple[Query, int]] = []

    def add(self, provider: Provider) -> None:
        """Add a resource provider; a nested one after its compute node.

        :param provider: the provider
        """
        self.providers[provider.uuid] = provider
        if self.traits is not None:
            self.traits = self.traits.union(provider.traits)
        self._trees.setdefault(provider.root, []).append(provider)

    def tree(self, root: str) -> list[Provider]:
        """The resource providers of a compute node, its own first.

        :param root: UUID of the compute node; empty if it has none
        """
        return self._trees.get(root, [])

    # What Nova calls

    def get_allocation_candidates(self, context: ty.Any,
                                  resources: ty.Any):
        """Answer a query of the scheduler.

        :param context: not used
        :param resources: ``nova.scheduler.utils.ResourceRequest``
        :returns: (allocation requests, provider summaries, version)
        """
        query = Query.parse(resources.to_querystring())
        unknown = self.unknown(query)
        if unknown:
            self.queries.append((query, 0))
            raise exception.NoValidHost(reason=refusal(unknown))
        requests: list[dict] = []
        summaries: dict[str, dict] = {}
        answer = self.answer(query)
        for root, found in answer.items():
            requests += found
            for provider in self._trees[root]:
                summaries[provider.uuid] = provider.summary()
        self.queries.append((query, len(answer)))
        return requests, summaries, nova_api.ALLOCATION_REQUEST_VERSION

    def summaries(self) -> dict[str, dict]:
        """Return the provider summaries of all hosts, by UUID."""
        return {uuid: provider.summary()
                for uuid, provider in self.providers.items()}

    def candidates(self, root: str, query: Query) -> list[dict]:
        """The allocation candidates of one host, in the order of providers.

        :param root: UUID of the compute node
        """
        provider = self.providers[root]
        if self._misses_root(provider, query) is not None:
            return []
        own, nested = query.root.split(self._trees[root])
        groups = _groups(query, nested)
        return [
            _candidate(own, root, zip(groups, chosen))
            for chosen in itertools.islice(
                self._choices(root, query), query.limit or _MANY)]

    def _choices(self, root: str,
                 query: Query) -> Iterator[tuple[Provider, ...]]:
        """Yield each choice of one provider for each of :func:`_groups`."""
        own, nested = query.root.split(self._trees[root])
        groups = [group for _suffix, group in _groups(query, nested)]
        count = len(nested)
        givers = [self.providers[root]] if own.amounts else []
        able = [[p for p in self._trees[root] if group.misses(p) is None]
                for group in groups]
        taken: dict[str, dict[str, int]] = {root: dict(own.amounts)}
        chosen: list[Provider] = []

        def choose(number: int) -> Iterator[tuple[Provider, ...]]:
            if nested and number == count and not query.root.covered(
                    givers + chosen):
                return
            if number == len(groups):
                yield tuple(chosen)
                return
            amounts = groups[number].amounts
            for provider in able[number]:
                if query.isolated and provider in chosen[count:]:
                    continue
                of_provider = taken.setdefault(provider.uuid, {})
                _add(of_provider, amounts)
                if provider.lacks(of_provider) is None:
                    chosen.append(provider)
                    yield from choose(number + 1)
                    chosen.pop()
                _add(of_provider, amounts, -1)

        return choose(0)

    def claim_resources(self, context: ty.Any, consumer_uuid: str,
                        alloc_request: Mapping, project_id: str,
                        user_id: str, allocation_request_version: str,
                        consumer_generation: int | None = None) -> bool:
        """Allocate all of an allocation request, or nothing.

        A consumer that has allocations keeps them: this is an evacuation, and
        those on the source are removed later.  Parameters are those of Nova's
        Placement client.

        :returns: whether there was room
        """
        wanted = {uuid: dict(allocation['resources']) for uuid, allocation
                  in alloc_request['allocations'].items()}
        for uuid, amounts in wanted.items():
            provider = self.providers.get(uuid)
            if provider is None or provider.lacks(amounts) is not None:
                return False
        self.allocate(consumer_uuid, wanted)
        return True

    def delete_allocation_for_instance(self, context: ty.Any, uuid: str,
                                       *args: ty.Any,
                                       **kwargs: ty.Any) -> bool:
        """Remove all allocations of a consumer; always true.

        :param context: not used
        :param uuid: UUID of the consumer
        """
        for provider, amounts in self.allocations.pop(uuid, {}).items():
            _add(self.providers[provider].used, amounts, -1)
        return True

    # What the simulator calls

    def allocate(self, consumer: str,
                 wanted: Mapping[str, Mapping[str, int]]) -> None:
        """Allocate without asking whether there is room.

        :param consumer: UUID of the consumer
        :param wanted: UUID of a provider -> resource class -> amount
        """
        held = self.allocations.setdefault(consumer, {})
        for uuid, amounts in wanted.items():
            _add(held.setdefault(uuid, {}), amounts)
            _add(self.providers[uuid].used, amounts)

    def answer(self, query: Query) -> dict[str, list[dict]]:
        """The allocation candidates of a query, as far as its limit allows.

        Those of a host are in random order, if :attr:`shuffled`.

        :returns: UUID of each compute node that has some -> its candidates
        """
        answer: dict[str, list[dict]] = {}
        if query.unsupported or self.unknown(query):
            return answer
        count = 0
        for root in self._trees:
            found = self.candidates(root, query)
            if self.shuffled and len(found) > 1:
                random.shuffle(found)
            if query.limit is not None:
                del found[query.limit - count:]
            if found:
                answer[root] = found
                count += len(found)
                if count == query.limit:
                    break
        return answer

    def unknown(self, query: Query) -> tuple[Unknown, ...]:
        """Return the names in a query that Placement does not know.

        It refuses the query then, with status 400, and Nova takes no host:
        also for a trait that is forbidden.
        """
        traits, classes = query.names
        return tuple([
            Unknown(kind, name) for kind, names, present in (
                (TRAIT, traits, self.traits),
                (RESOURCE_CLASS, classes, self.classes))
            if present is not None and not names <= present
            for name in sorted(names - present - self._carried(kind))])

    def unverified(self, query: Query) -> tuple[Unknown, ...]:
        """Return the forbidden traits that Placement may not know.

        Whether it does was not read.  A host without a name that is required
        is none in either case.
        """
        if self.traits is not None:
            return ()
        forbidden = query.root.forbidden.union(
            query.root.root_forbidden,
            *(group.forbidden for group in query.groups.values()))
        return tuple([
            Unknown(TRAIT, name) for name in sorted(
                forbidden - self._carried(TRAIT)
                - nova_api.STANDARD_TRAITS)])

    def _carried(self, kind: str) -> set[str]:
        """Return the traits, or resource classes, of all providers."""
        return {name for provider in self.providers.values() for name in (
            provider.traits if kind == TRAIT else provider.inventories)}

    def finds(self, root: str, query: Query) -> bool:
        """Whether a query finds a host, if it has no limit.

        :param root: UUID of the compute node
        """
        return (not query.unsupported and not self.unknown(query) and
                self._misses_root(self.providers[root], query) is None and
                next(self._choices(root, query), None) is not None)

    def assumed(self, root: str, query: Query) -> dict:
        """An allocation candidate of a host that a query does not find.

        It is what Placement would answer if the host had all it lacks.

        :param root: UUID of the compute node
        """
        own, nested = query.root.split(self._trees[root])
        chosen = []
        for suffix, group in _groups(query, nested):
            able = [provider for provider in self._trees[root]
                    if group.amounts.keys() <= provider.inventories.keys()]
            if able:
                chosen.append(((suffix, group), min(
                    able, key=lambda p: group.misses(p) is not None)))
        return _candidate(own, root, chosen)

    def move(self, source: str, target: str) -> None:
        """Give the allocations of one consumer to another, as moves do.

        :param source: UUID of the consumer that has them
        :param target: UUID of the consumer that gets them
        """
        held = self.allocations.pop(source, {})
        self.allocations.setdefault(target, {}).update(held)

    def remove_provider(self, consumer: str, provider: str) -> None:
        """Remove the allocations of a consumer from one compute node's tree.

        :param consumer: UUID of the consumer
        :param provider: UUID of the compute node
        """
        held = self.allocations.get(consumer, {})
        for uuid in [uuid for uuid in held
                     if self.providers[uuid].root == provider]:
            _add(self.providers[uuid].used, held.pop(uuid), -1)
        if not held:
            self.allocations.pop(consumer, None)

    def _misses_root(self, provider: Provider, query: Query) -> Miss | None:
        """Why a compute node cannot satisfy the unsuffixed group.

        Each resource class is looked at alone.

        :returns: None if it can
        """
        if query.tree is not None and provider.uuid != query.tree:
            return Miss(MissKind.HOST)
        tree = self._trees[provider.uuid]
        own, nested = query.root.split(tree)
        miss = own.misses(provider)
        if miss is not None:
            return miss
        for name, group in nested.items():
            misses = [group.misses(each) for each in tree
                      if name in each.inventories]
            if None not in misses:
                return misses[0]
        return None

    def _misses(self, provider: Provider, query: Query) -> Miss | None:
        """Return why a compute node is no candidate; None if it is one."""
        miss = self._misses_root(provider, query)
        if miss is not None:
            return miss
        if next(self._choices(provider.uuid, query), None) is None:
            amounts: dict[str, int] = {}
            _own, nested = query.root.split(self._trees[provider.uuid])
            for _suffix, group in _groups(query, nested):
                _add(amounts, group.amounts)
            wanted = ', '.join(f'{n}={a}' for n, a in amounts.items())
            return Miss(MissKind.NESTED, wanted)
        return None

    def explain(self, query: Query) -> str:
        """Text on why a query found no host."""
        unknown = self.unknown(query)
        if unknown:
            return refusal(unknown)
        if query.unsupported:
            return ('not simulated in a Placement request: ' +
                    ', '.join(query.unsupported))
        if not self._trees:
            return 'Placement has no hosts'
        return (f'Placement has no host with {query}: '
                f'{self.missing(query)}')

    def missing(self, query: Query) -> str:
        """What those hosts lack that a query did not find, as a text.

        :returns: empty if it found all hosts
        """
        missing: dict[Miss, list[Provider]] = {}
        for root in self._trees:
            provider = self.providers[root]
            miss = self._misses(provider, query)
            if miss is not None:
                missing.setdefault(miss, []).append(provider)
        if query.tree is not None and len(missing) > 1:
            missing.pop(Miss(MissKind.HOST), None)
        parts = []
        for miss, providers in missing.items():
            text = f'{words.count(len(providers), "host")} {miss}'
            if miss.kind is MissKind.RESOURCE_CLASS:
                most = max(each.free(miss.name) for provider in providers
                           for each in self._trees[provider.uuid])
                text += f' (most free: {most})'
            parts.append(text)
        return ', '.join(parts)


def _groups(query: Query,
            nested: Mapping[str, Group]) -> list[tuple[str, Group]]:
    """The groups that need a choice of provider, each with its suffix.

    :param nested: what its unsuffixed group asks of nested providers
    """
    return [*(('', group) for group in nested.values()),
            *query.groups.items()]


def _candidate(own: Group, root: str, chosen: Iterable[
        tuple[tuple[str, Group], Provider]]) -> dict:
    """The allocation candidate that takes a provider for each group.

    :param own: what is asked of the compute node itself
    :param root: UUID of the compute node
    :param chosen: ((suffix, group), provider) each
    """
    amounts: dict[str, dict[str, int]] = {root: dict(own.amounts)}
    mappings = {'': [root]}
    for (suffix, group), provider in chosen:
        _add(amounts.setdefault(provider.uuid, {}), group.amounts)
        uuids = mappings.setdefault(suffix, [])
        if provider.uuid not in uuids:
            uuids.append(provider.uuid)
    if not own.amounts and len(mappings['']) > 1:
        # Nested providers give all that the unsuffixed group asks for.
        mappings[''].remove(root)
        if not amounts[root]:
            del amounts[root]
    return {
        'allocations': {uuid: {'resources': of_provider}
                        for uuid, of_provider in amounts.items()},
        'mappings': mappings}


def _add(to: MutableMapping[str, int], amounts: Mapping[str, int],
         sign: int = 1) -> None:
    for name, amount in amounts.items():
        left = to.get(name, 0) + sign * amount
        if left:
            to[name] = left
        else:
            to.pop(name, None)
