# SPDX-License-Identifier: Apache-2.0
"""Define why Placement or a filter refuses a host, as plain values."""

import dataclasses
import enum
import typing as ty

from nfv_sched.base import device_shortage
from nfv_sched.base import reasons
from nfv_sched.ops.simulator import placement


class RefusalKind(enum.StrEnum):
    """Kind of a refusal; it is known for few filters."""

    #: The host is not mapped to its cell.
    UNMAPPED = 'unmapped'
    #: The compute service of the host is disabled.
    DISABLED = 'disabled'
    #: It is down.
    DOWN = 'down'
    #: OpenStack Blazar keeps the host for reservations.
    RESERVED = 'reserved'
    #: The request itself is wrong, on any host.
    REQUEST = 'request'
    OTHER = ''


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class FilterRefusal:
    """The refusal of a host by a filter that is asked alone.

    :ivar filter: class name of the filter
    :ivar text: the amount needed and the amount there; empty if the filter
        does not say
    :ivar policy: the extra spec with its value, or another policy that was not
        kept; empty if the filter does not say
    :ivar need: the requirement, for people, without anything about the host;
        empty if the filter does not say
    :ivar rank: how close the host came; higher is closer
    :ivar shortage: the resource that is missing; None if it is none, or not
        known
    :ivar raised: whether the filter failed with an exception
    """

    filter: str
    text: str = ''
    policy: str = ''
    need: str = ''
    rank: int = 0
    shortage: reasons.Shortage | None = None
    raised: bool = False
    kind: RefusalKind = RefusalKind.OTHER

    @property
    def missing(self) -> float:
        """The missing part of the resource; 1 if it is about none."""
        return 1.0 if self.shortage is None else self.shortage.missing


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PlacementNeed:
    """A requirement of a query to Placement.

    :ivar text: the requirement, for people
    :ivar kind: "resource" is an amount of a resource class, "group" amounts
        and traits of one provider, "tree" one host, "choice" providers for
        all groups at once, "unknown" what Placement refuses
    :ivar resources: amount of each resource class
    :ivar traits: required traits, or the forbidden one of "forbidden_trait"
    :ivar forbidden_traits: forbidden traits of a group
    :ivar aggregates: names of aggregates, of which the host must be in one,
        or for "forbidden_aggregate" in none
    :ivar host: name of the only host; null otherwise
    :ivar count: how many times it is asked for
    """

    text: str
    kind: ty.Literal[
        'tree', 'trait', 'forbidden_trait', 'aggregate',
        'forbidden_aggregate', 'resource', 'group', 'choice', 'unknown']
    resources: ty.Mapping[str, int]
    traits: tuple[str, ...]
    forbidden_traits: tuple[str, ...]
    aggregates: tuple[str, ...]
    host: str | None
    count: int


def placement_need(
    text: str, kind: str, *, resources: ty.Mapping[str, int] | None = None,
    traits: tuple[str, ...] = (), forbidden_traits: tuple[str, ...] = (),
    aggregates: tuple[str, ...] = (), host: str | None = None, count: int = 1,
) -> PlacementNeed:
    """Return a requirement of which most kinds have few fields."""
    return PlacementNeed(
        text=text, kind=ty.cast(ty.Any, kind), resources=resources or {},
        traits=traits, forbidden_traits=forbidden_traits,
        aggregates=aggregates, host=host, count=count)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class QueryLack:
    """A requirement of a query that a host does not meet.

    :ivar free: largest free amount of one provider; None if it is about no
        resource class, or no provider has that
    :ivar text: what the host lacks, for people
    :ivar misses: reserved amounts of nested providers
    """

    need: PlacementNeed
    free: int | None = None
    text: str = ''
    misses: tuple[device_shortage.NearMiss, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class StageRequirement:
    """A requirement of the first query, with its effect.

    :ivar need: the requirement
    :ivar hosts_missing_it: number of hosts that do not meet it
    :ivar hosts_without_it: number of hosts found if only it is dropped
    """

    need: PlacementNeed
    hosts_missing_it: int
    hosts_without_it: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class StageRemoval:
    """Hosts that no query finds.

    :ivar need: the requirement that they do not meet
    :ivar hosts: number of hosts
    """

    need: PlacementNeed
    hosts: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PlacementQuery:
    """A query to Placement.

    :ivar needs: its requirements: a host must meet all of them
    """

    needs: tuple[PlacementNeed, ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PlacementAnswer:
    """The stage in which Nova asks Placement.

    :ivar queries: Nova's queries, in order
    :ivar hosts: number of known hosts
    :ivar hosts_left: number of hosts in the answers
    :ivar requirements: requirements of the first query
    :ivar removed: hosts that no query finds, each counted once
    :ivar asks_again: whether Nova asks again for VCPU in place of PCPU
    :ivar max_placement_results: that option of [scheduler]; null if Placement
        was not asked
    :ivar hosts_cut_off: number of hosts that this limit has cut off
    :ivar unsupported: parts of the queries that cannot be answered here; no
        host is found then
    :ivar refused: why Placement refuses the queries; null if it does not
    :ivar unknown: names that Placement does not know, if it refuses them
    :ivar unverified: forbidden traits that Placement may not know
    """

    queries: tuple[PlacementQuery, ...]
    hosts: int
    hosts_left: int
    requirements: tuple[StageRequirement, ...]
    removed: tuple[StageRemoval, ...]
    asks_again: bool
    max_placement_results: int | None
    hosts_cut_off: int
    unsupported: tuple[str, ...]
    refused: str | None
    unknown: tuple[placement.Unknown, ...]
    unverified: tuple[placement.Unknown, ...]


NOT_ASKED = PlacementAnswer(
    queries=(), hosts=0, hosts_left=0, requirements=(), removed=(),
    asks_again=False, max_placement_results=None, hosts_cut_off=0,
    unsupported=(), refused=None, unknown=(), unverified=())
