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

It answers the queries that Nova's scheduler sends -- it reads the query
string itself, as the service would -- with one allocation candidate for each
host that has room, and takes claims all or nothing.  Suffixed request groups
(ports with bandwidth, devices in Placement) and sharing providers are not
simulated: no host is a candidate for a request with them.
"""

from collections.abc import Mapping, MutableMapping
import dataclasses
import typing as ty
from urllib import parse

from nfv_sched.simulator import nova_api

_ANOTHER = 'not the host asked for'
_TOO_LITTLE = 'without enough '


@dataclasses.dataclass(frozen=True, slots=True)
class Inventory:
    """What a provider has of one resource class.

    :ivar total: amount there is
    :ivar reserved: amount kept back
    :ivar ratio: overcommitment
    """

    total: int
    reserved: int = 0
    ratio: float = 1.0

    @property
    def capacity(self) -> int:
        """What may be allocated in all."""
        return int((self.total - self.reserved) * self.ratio)


@dataclasses.dataclass(slots=True)
class Provider:
    """A resource provider.

    :ivar uuid: its UUID
    :ivar name: its name
    :ivar inventories: by resource class
    :ivar traits: its traits
    :ivar aggregates: UUIDs of its aggregates
    :ivar used: allocated amounts by resource class
    """

    uuid: str
    name: str
    inventories: Mapping[str, Inventory]
    traits: set[str]
    aggregates: set[str] = dataclasses.field(default_factory=set)
    used: dict[str, int] = dataclasses.field(default_factory=dict)

    def free(self, resource_class: str) -> int:
        """How much of a resource class can still be allocated."""
        inventory = self.inventories.get(resource_class)
        if inventory is None:
            return 0
        return inventory.capacity - self.used.get(resource_class, 0)

    def lacks(self, amounts: Mapping[str, int]) -> str | None:
        """The first resource class of which too little is left."""
        for resource_class, amount in amounts.items():
            inventory = self.inventories.get(resource_class)
            # The max_unit of Nova's inventories is their total.
            if (inventory is None or amount > inventory.total or
                    amount > self.free(resource_class)):
                return resource_class
        return None


@dataclasses.dataclass(frozen=True, slots=True)
class Query:
    """A query for allocation candidates.

    :ivar amounts: resources by class
    :ivar required: traits required
    :ivar forbidden: traits forbidden
    :ivar members_of: sets of aggregates, one of each needed
    :ivar tree: the only provider asked for, or None
    :ivar limit: how many candidates at most, or None
    :ivar unsupported: parts of the query that are not simulated
    """

    amounts: Mapping[str, int]
    required: frozenset[str]
    forbidden: frozenset[str]
    members_of: tuple[frozenset[str], ...]
    tree: str | None
    limit: int | None
    unsupported: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> 'Query':
        """Read the query string of ``GET /allocation_candidates``."""
        amounts: dict[str, int] = {}
        required, forbidden = set(), set()
        members, unsupported = [], []
        tree = limit = None
        for key, value in parse.parse_qsl(text):
            match key:
                case 'resources':
                    for item in value.split(','):
                        name, _, amount = item.partition(':')
                        amounts[name] = int(amount)
                case 'required' | 'root_required':
                    if value.startswith('in:'):
                        unsupported.append(f'{key}={value}')
                        continue
                    for trait in value.split(','):
                        (forbidden if trait[0] == '!' else required).add(
                            trait.lstrip('!'))
                case 'member_of' if not value.startswith('!'):
                    members.append(frozenset(
                        value.removeprefix('in:').split(',')))
                case 'in_tree':
                    tree = value
                case 'limit':
                    limit = int(value)
                case 'group_policy':
                    pass
                case _:
                    unsupported.append(f'{key}={value}')
        return cls(amounts, frozenset(required), frozenset(forbidden),
                   tuple(members), tree, limit, tuple(unsupported))

    def __str__(self) -> str:
        words = [f'{name}={amount}' for name, amount in self.amounts.items()]
        words += [f'trait {trait}' for trait in sorted(self.required)]
        return ', '.join(words)


class Ledger:
    """The providers and what consumers took of them.

    The methods that Nova's scheduler calls have the names and parameters of
    its Placement client.
    """

    def __init__(self) -> None:
        self.providers: dict[str, Provider] = {}
        self.allocations: dict[str, dict[str, dict[str, int]]] = {}
        #: Queries of the present request, and how many hosts each found.
        self.queries: list[tuple[Query, int]] = []

    def add(self, provider: Provider) -> None:
        """Add a resource provider."""
        self.providers[provider.uuid] = provider

    # What Nova calls

    def get_allocation_candidates(self, context: ty.Any,
                                  resources: ty.Any):
        """Answer a query of the scheduler.

        :param context: not used
        :param resources: ``nova.scheduler.utils.ResourceRequest``
        :returns: (allocation requests, provider summaries, version)
        """
        query = Query.parse(resources.to_querystring())
        found = []
        if not query.unsupported:
            found = [p for p in self.providers.values()
                     if self._misses(p, query) is None]
        if query.limit is not None:
            found = found[:query.limit]
        self.queries.append((query, len(found)))
        requests = [
            {'allocations': {p.uuid: {'resources': dict(query.amounts)}},
             'mappings': {'': [p.uuid]}} for p in found]
        summaries = {p.uuid: {} for p in found}
        return requests, summaries, nova_api.ALLOCATION_REQUEST_VERSION

    def claim_resources(self, context: ty.Any, consumer_uuid: str,
                        alloc_request: Mapping, project_id: str,
                        user_id: str, allocation_request_version: str,
                        consumer_generation: int | None = None) -> bool:
        """Allocate all that an allocation request says, or nothing.

        A consumer that has allocations keeps them: that is an evacuation,
        and the source is given back later.

        :returns: whether there was room
        """
        wanted = {uuid: dict(allocation['resources']) for uuid, allocation
                  in alloc_request['allocations'].items()}
        for uuid, amounts in wanted.items():
            provider = self.providers.get(uuid)
            if provider is None or provider.lacks(amounts) is not None:
                return False
        held = self.allocations.setdefault(consumer_uuid, {})
        for uuid, amounts in wanted.items():
            _add(held.setdefault(uuid, {}), amounts)
            _add(self.providers[uuid].used, amounts)
        return True

    def delete_allocation_for_instance(self, context: ty.Any, uuid: str,
                                       *args: ty.Any,
                                       **kwargs: ty.Any) -> bool:
        """Give back all that a consumer has."""
        for provider, amounts in self.allocations.pop(uuid, {}).items():
            _add(self.providers[provider].used, amounts, -1)
        return True

    # What the simulator calls

    def move(self, source: str, target: str) -> None:
        """Hand the allocations of one consumer to another, as moves do."""
        held = self.allocations.pop(source, {})
        self.allocations.setdefault(target, {}).update(held)

    def remove_provider(self, consumer: str, provider: str) -> None:
        """Give back what a consumer has of one provider."""
        held = self.allocations.get(consumer, {})
        amounts = held.pop(provider, None)
        if amounts is not None:
            _add(self.providers[provider].used, amounts, -1)
        if not held:
            self.allocations.pop(consumer, None)

    def _misses(self, provider: Provider, query: Query) -> str | None:
        """Why a provider is no candidate, or None if it is one."""
        if query.tree is not None and provider.uuid != query.tree:
            return _ANOTHER
        for trait in query.required:
            if trait not in provider.traits:
                return f'without the trait {trait}'
        for trait in query.forbidden:
            if trait in provider.traits:
                return f'with the forbidden trait {trait}'
        for aggregates in query.members_of:
            if not aggregates & provider.aggregates:
                return 'not in the availability zone asked for'
        lacking = provider.lacks(query.amounts)
        if lacking is not None:
            return f'{_TOO_LITTLE}{lacking}'
        return None

    def explain(self, query: Query) -> str:
        """Why a query found nothing, for people.

        :param query: the query
        """
        if query.unsupported:
            return ('not simulated in a Placement request: ' +
                    ', '.join(query.unsupported))
        return (f'Placement has no host with {query}: '
                f'{self.missing(query)}')

    def missing(self, query: Query) -> str:
        """What the hosts lack that a query did not find; '' if none does.

        :param query: the query
        """
        missing: dict[str, list[Provider]] = {}
        for provider in self.providers.values():
            why = self._misses(provider, query)
            if why is not None:
                missing.setdefault(why, []).append(provider)
        if query.tree is not None and len(missing) > 1:
            missing.pop(_ANOTHER, None)
        parts = []
        for why, providers in missing.items():
            count = len(providers)
            text = f'{count} host{"s" if count > 1 else ""} {why}'
            if why.startswith(_TOO_LITTLE):
                name = why.removeprefix(_TOO_LITTLE)
                most = max(provider.free(name) for provider in providers)
                text += f' (most free: {most})'
            parts.append(text)
        return ', '.join(parts)


def _add(to: MutableMapping[str, int], amounts: Mapping[str, int],
         sign: int = 1) -> None:
    for name, amount in amounts.items():
        left = to.get(name, 0) + sign * amount
        if left:
            to[name] = left
        else:
            to.pop(name, None)
