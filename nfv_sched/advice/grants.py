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
"""How many more guests Placement would grant on each host.

With the query that Nova's scheduler makes of a request.  Placement counts
amounts of the whole host; what of them is on one NUMA node it does not know.
"""

from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import copy
import typing as ty

from nova import exception
from nova import objects

from nfv_sched.advice import binding
from nfv_sched.simulator import nova_api
from nfv_sched.simulator import placement
from nfv_sched.simulator import servers
from nfv_sched.simulator import state as states

Binding = binding.Binding
BindingKind = binding.BindingKind

#: If a request asks for nothing.
MANY = 10 ** 6


class NoAggregateError(servers.Refused):
    """No aggregate is for the project, and Nova wants one."""


class UnknownNameError(servers.Refused):
    """Placement does not know some names in the request."""

    def __init__(self, names: tuple[placement.Unknown, ...]):
        super().__init__(placement.refusal(names))
        self.names = names


def queries(state: states.State,
            spec: objects.RequestSpec) -> list[placement.Query]:
    """What Nova's scheduler asks Placement for a request.

    :param spec: the request; Nova's request filters change it
    :returns: the query, and for pinned guests the one for VCPU in place of
        PCPU
    :raises Refused: if Nova's scheduler fails on the request, Placement does
        not know a name in it, or Nova has no hosts for the project
    """
    try:
        requests = nova_api.placement_requests(
            state.context, spec, state.manager)
    except exception.RequestFilterFailed as exc:
        raise NoAggregateError(nova_api.NO_AGGREGATE) from exc
    except (exception.NovaException, ValueError) as exc:
        raise servers.Refused(
            f"Nova's scheduler refuses the flavor: {exc}") from exc
    parsed = [placement.Query.parse(request.to_querystring())
              for request in requests]
    unknown = state.placement.unknown(parsed[0])
    if unknown:
        raise UnknownNameError(unknown)
    return parsed


class Granted(ty.NamedTuple):
    """How many guests are granted on a host.

    :ivar believed: by the first of the scheduler's queries that asks for what
        the host has at all
    :ivar count: by the first query until it finds no room, then by the next
    """

    believed: int
    count: int


class Grants:
    """What Placement grants for one request, host by host.

    :param found: Placement; not changed
    :param queries: those of the scheduler, in its order; guests are granted
        by the first as long as it finds the host, then by the next
    """

    def __init__(self, found: placement.Placement,
                 queries: Sequence[placement.Query]):
        self._placement = found
        self.queries = queries

    @property
    def unverified(self) -> tuple[placement.Unknown, ...]:
        """Forbidden traits that Placement may not know."""
        return self._placement.unverified(self.queries[0])

    @property
    def simple(self) -> bool:
        """Whether it matters only how many guests there are.

        Not if Placement says which device a guest gets.
        """
        return not any(query.groups for query in self.queries)

    def of(self, root: str) -> 'Granted':
        """How many guests are granted one after the other on a host.

        :param root: UUID of the compute node
        """
        scratch = self._scratch(root)
        counts = [self._count(scratch, root, query)
                  for query in self.queries]
        believed = 0
        for query, count in zip(self.queries, counts):
            if self._has(root, query):
                believed = count
                break
        return Granted(believed, sum(counts))

    def _has(self, root: str, query: placement.Query) -> bool:
        """Whether a host has all resource classes of a query."""
        tree = self._placement.tree(root)
        own, _nested = query.root.split(tree)
        return bool(tree) and own.amounts.keys() <= (
            tree[0].inventories.keys())

    def _scratch(self, root: str) -> placement.Placement:
        """A copy of the resource providers of a host that are asked."""
        tree = self._placement.tree(root)
        alone = self.simple and not any(
            query.root.split(tree)[1] for query in self.queries)
        return copied(tree[:1] if alone else tree)

    def _count(self, scratch: placement.Placement, root: str,
               query: placement.Query) -> int:
        """Count guests of one query, and take what they have."""
        if query.unsupported or root not in scratch.providers:
            return 0
        if query.groups or query.root.split(scratch.tree(root))[1]:
            count = 0
            while count < MANY and self.take(scratch, root, query):
                count += 1
            return count
        provider = scratch.providers[root]
        if query.tree not in (None, root) or (
                query.root.misses(provider) is not None):
            return 0
        count = min([MANY, *(
            provider.free(name) // amount
            for name, amount in query.root.amounts.items() if amount)])
        for name, amount in query.root.amounts.items():
            provider.used[name] = provider.used.get(name, 0) + count * amount
        return count

    def start(self, root: str) -> placement.Placement:
        """A copy of a host's resource providers, to take guests from.

        :param root: UUID of the compute node
        """
        return copied(self._placement.tree(root))

    def offers(self, scratch: placement.Placement,
               root: str) -> Iterator[dict]:
        """The allocation candidates of a host.

        :param scratch: of :meth:`start`
        :param root: UUID of the compute node
        """
        for query in self.queries:
            if not query.unsupported and root in scratch.providers:
                yield from scratch.candidates(root, query)

    @staticmethod
    def take(scratch: placement.Placement, root: str,
             query: placement.Query) -> bool:
        """Take what one guest has; whether there was room.

        :param scratch: of :meth:`start`; changed
        :param root: UUID of the compute node
        """
        found = scratch.candidates(root, query)
        if found:
            claim(scratch, found[0])
        return bool(found)

    def lacks(self, root: str, granted: Granted,
              guests: int) -> list[Binding]:
        """Why a host with some more guests gets no further one.

        :param root: UUID of the compute node
        :param granted: what is granted there
        :param guests: number of guests that it has got
        :returns: empty if Placement would grant one more, or devices are all
            that it lacks; else what is lacking for the first of the queries
            that asks for what the host has at all
        """
        if guests < granted.count:
            return []
        best = next((query for query in self.queries
                     if self._has(root, query)), self.queries[0])
        tree = self._placement.tree(root)
        if not tree:
            return [Binding(BindingKind.PLACEMENT,
                            'no resource provider in Placement')]
        if best.unsupported:
            return [Binding(
                BindingKind.UNSURE, 'not worked out: a query with ' +
                ', '.join(best.unsupported), 'Placement')]
        provider = tree[0]
        group, nested = best.root.split(tree)
        found = [Binding(BindingKind.TRAIT, f'without the trait {trait}',
                         trait)
                 for trait in sorted(group.required - provider.traits)]
        found += map(_forbidden, sorted(group.forbidden & provider.traits))
        if any(not members & provider.aggregates
               for members in group.members_of):
            found.append(Binding(BindingKind.AGGREGATE,
                                 'not in the aggregates asked for'))
        if group.forbidden_aggregates & provider.aggregates:
            found.append(Binding(BindingKind.ISOLATED_AGGREGATE,
                                 'in an aggregate kept for other traits'))
        for name, amount in group.amounts.items():
            inventory = provider.inventories.get(name)
            free = provider.free(name) - guests * amount
            if inventory is not None and not inventory.takes(amount):
                found.append(_too_many(name, amount))
            elif free < amount:
                found.append(_too_few(name, amount, free))
        for name, part in nested.items():
            found += _lacking(name, part, tree, guests)
        if nested and not found and not best.groups:
            wanted = ', '.join(map(str, nested.values()))
            found.append(Binding(
                BindingKind.PLACEMENT, 'no providers in the host that '
                f'together have {wanted} and the traits asked for'))
        return found


def _lacking(name: str, group: placement.Group,
             tree: Sequence[placement.Provider],
             guests: int) -> Iterator[Binding]:
    """What nested providers lack of a class that only they have.

    :param name: the resource class
    :param group: what is asked of one of them
    :param tree: the providers of the host
    :param guests: number of guests that have got it
    """
    givers = [each for each in tree if name in each.inventories]
    able = [each for each in givers if not group.forbidden & each.traits]
    if not able:
        yield from map(_forbidden, sorted(group.forbidden & givers[0].traits))
        return
    amount = group.amounts[name]
    able = [each for each in able if each.inventories[name].takes(amount)]
    free = sum(max(each.free(name), 0) for each in able) - guests * amount
    if not able:
        yield _too_many(name, amount)
    elif free < amount:
        yield _too_few(name, amount, free)
    elif sum(max(each.free(name), 0) // amount for each in able) <= guests:
        yield Binding(
            BindingKind.RESOURCE_CLASS, f'{amount} {name} needed from one '
            f'provider, {free} free in all', name)


def _forbidden(trait: str) -> Binding:
    return Binding(
        BindingKind.TRAIT, f'with the forbidden trait {trait}', trait)


def _too_many(name: str, amount: int) -> Binding:
    return Binding(BindingKind.RESOURCE_CLASS,
                   f'{amount} {name} are not granted at once', name)


def _too_few(name: str, amount: int, free: int) -> Binding:
    return Binding(BindingKind.RESOURCE_CLASS,
                   f'{amount} {name} needed, {max(free, 0)} free', name)


def copied(providers: Iterable[placement.Provider]) -> placement.Placement:
    """Placement with a copy of some resource providers.

    :param providers: those of a host, its own first
    """
    scratch = placement.Placement()
    for provider in providers:
        provider = copy.copy(provider)
        provider.used = dict(provider.used)
        scratch.add(provider)
    return scratch


def claim(scratch: placement.Placement,
          candidate: Mapping[str, ty.Any]) -> None:
    """Take an allocation candidate.

    :param scratch: of :meth:`Grants.start`; changed
    :param candidate: one of :meth:`Grants.offers`
    """
    for uuid, allocation in candidate['allocations'].items():
        used = scratch.providers[uuid].used
        for name, amount in allocation['resources'].items():
            used[name] = used.get(name, 0) + amount
