# SPDX-License-Identifier: Apache-2.0
"""Count the servers that Placement would still grant on each host.

The queries are those that Nova's scheduler makes of a request.  Placement
counts amounts of the whole host; it does not know how much of them is on which
NUMA node.
"""

from collections.abc import Iterator, Sequence
import dataclasses
import typing as ty

from nova import exception
from nova import objects

from nfv_sched.ops.model.counting import document
from nfv_sched.ops.simulator import nova_internals
from nfv_sched.ops.simulator import placement
from nfv_sched.ops.simulator.placement import requirements
from nfv_sched.ops.simulator.placement import resource_provider
from nfv_sched.ops.simulator.placement import sentences
from nfv_sched.ops.simulator import servers
from nfv_sched.ops.simulator import state as states

BindingKind = document.BindingKind
HostLimit = document.HostLimit

#: Servers granted if a request asks for no resources.
MANY = 10 ** 6

_Kind = requirements.RequirementKind
_KINDS = {
    _Kind.TRAIT: BindingKind.TRAIT,
    _Kind.FORBIDDEN_TRAIT: BindingKind.TRAIT,
    _Kind.AGGREGATE: BindingKind.AGGREGATE,
    _Kind.FORBIDDEN_AGGREGATE: BindingKind.ISOLATED_AGGREGATE,
    _Kind.RESOURCE: BindingKind.RESOURCE_CLASS,
}
_NAMED = (BindingKind.TRAIT, BindingKind.RESOURCE_CLASS)


class NoAggregateError(servers.Refused):
    """No aggregate is reserved for the project, and Nova requires one."""


class RefusedQueryError(servers.Refused):
    """Placement refuses the request; ``names`` are unknown to it."""

    def __init__(self, refusal: str, names: tuple[placement.Unknown, ...]):
        super().__init__(placement.refusal(refusal))
        self.names = names


def queries(state: states.State,
            spec: objects.RequestSpec) -> list[placement.Query]:
    """Return the queries that Nova's scheduler sends to Placement.

    :param spec: the request; Nova's request filters change it
    :returns: the query, and for pinned servers the fallback with VCPU in place
        of PCPU; without one that Placement refuses
    :raises Refused: if Nova's scheduler fails on the request, Placement
        refuses it, or Nova has no hosts for the project
    """
    try:
        requests = nova_internals.placement_requests(
            state.context, spec, state.manager)
    except nova_internals.NoTenantAggregateError as exc:
        raise NoAggregateError(str(exc)) from exc
    except (exception.NovaException, ValueError) as exc:
        raise servers.Refused(
            f"Nova's scheduler refuses the flavor: {exc}") from exc
    parsed = [placement.Query.parse(request.to_querystring())
              for request in requests]
    accepted = [query for query in parsed
                if not state.placement.refusal(query)]
    if not accepted:
        raise RefusedQueryError(state.placement.refusal(parsed[0]),
                                state.placement.unknown(parsed[0]))
    return accepted


class Granted(ty.NamedTuple):
    """The number of servers that Placement grants on a host."""

    #: by the scheduler's first query whose resource classes the host has
    believed: int
    #: by the first query until it finds no capacity, then by the next
    count: int
    #: allocations of all these servers together
    allocations: placement.Allocations


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Grants:
    """The servers that Placement grants to one request, host by host."""

    model: placement.Placement  #: resource providers; unchanged by each call
    queries: Sequence[placement.Query]  #: of the scheduler, in its order

    @property
    def unverified(self) -> tuple[placement.Unknown, ...]:
        return self.model.unverified(self.queries[0])

    @property
    def simple(self) -> bool:
        """Whether only the number matters: Placement chooses no devices."""
        return not any(query.groups for query in self.queries)

    def for_host(self, root: str) -> Granted:
        counts: list[int] = []
        allocations: dict[str, dict[str, int]] = {}
        try:
            for query in self.queries:
                counts.append(0)
                # What a query has been granted is gone for the next.
                for count, amounts in self._grants_of_query(root, query):
                    self.model.take(amounts)
                    for uuid, of_provider in amounts.items():
                        resource_provider.add(allocations.setdefault(
                            uuid, {}), of_provider.items())
                    counts[-1] += count
        finally:
            # The providers are those of the simulated cloud, on which all
            # flavors are counted.
            self.model.give(allocations)
        believed = next((count for query, count in zip(self.queries, counts)
                         if self._has_classes(root, query)), 0)
        return Granted(believed, sum(counts), allocations)

    def _has_classes(self, root: str, query: placement.Query) -> bool:
        tree = self.model.tree(root)
        return bool(tree) and query.choice.shares(tree).own.keys() <= (
            tree[0].inventories.keys())

    def _grants_of_query(self, root: str, query: placement.Query) -> Iterator[
            tuple[int, placement.Allocations]]:
        """Yield numbers of servers of one query, with their allocations.

        The caller must take these allocations before it asks for the next.
        """
        tree = self.model.tree(root)
        if query.unsupported or not tree:
            return
        if query.choice.shares(tree).groups:
            # Devices of a tree may be of several providers, so they are taken
            # one server after the other.
            for _number in range(MANY):
                candidate = next(self.model.candidates(root, query), None)
                if candidate is None:
                    return
                yield 1, placement.allocations_of(candidate)
        elif not any(requirement.missing(tree)
                     for requirement in query.host_requirements):
            amounts = query.amounts
            count = min([MANY, *(tree[0].free(name) // amount
                                 for name, amount in amounts.items()
                                 if amount)])
            yield count, {root: {name: count * amount
                                 for name, amount in amounts.items()}}

    def offers(self, scratch: placement.Placement,
               root: str) -> Iterator[dict]:
        """Yield allocation candidates of a host; ``scratch`` has its tree."""
        for query in self.queries:
            if not query.unsupported and root in scratch.providers:
                yield from scratch.candidates(root, query)

    def lacks(self, root: str, granted: Granted, guests: int,
              groups: bool = False) -> list[HostLimit]:
        """Return why Placement grants no further server on a host.

        :param guests: number of servers that were put there
        :param groups: whether providers of granular groups count, which may
            be PCI devices
        :returns: empty if Placement would grant one more, or lacks only
            devices; else what the first query lacks whose resource classes the
            host has
        """
        if guests < granted.count:
            return []
        best = next((query for query in self.queries
                     if self._has_classes(root, query)), self.queries[0])
        if not (tree := self.model.tree(root)):
            return [HostLimit(BindingKind.PLACEMENT,
                              why='no resource provider in Placement')]
        if best.unsupported:
            return [HostLimit(
                BindingKind.UNSURE, 'Placement', why='not worked out: a query '
                f'with {", ".join(best.unsupported)}')]
        # Another choice of devices may have let more servers in than granted.
        more = {root: {name: (guests - granted.count) * amount for name, amount
                       in best.choice.shares(tree).own.items()}}
        self.model.take(granted.allocations)
        self.model.take(more)
        try:
            missing = [each for requirement in best.host_requirements
                       if (each := requirement.missing(tree))]
            if not missing and (groups or not best.groups) and (
                    choice := best.choice.missing(tree)):
                missing = [choice]
        finally:
            self.model.give(more)
            self.model.give(granted.allocations)
        return list(dict.fromkeys(map(_limit_of, sorted(
            missing, key=lambda each: each.kind))))


def _limit_of(missing: requirements.UnmetRequirement) -> HostLimit:
    kind = _KINDS.get(missing.kind, BindingKind.PLACEMENT)
    name = missing.name if kind in _NAMED else None
    classes = {name for group in missing.groups for name, _amount
               in group.amounts}
    if len(classes) == 1:
        kind, name = BindingKind.RESOURCE_CLASS, classes.pop()
    return HostLimit(kind, name, why=sentences.shortage(missing))
