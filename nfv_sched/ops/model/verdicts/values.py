# SPDX-License-Identifier: Apache-2.0
"""Define why Placement or a filter refuses a host, as plain values."""

import dataclasses
import enum
import typing as ty

from nfv_sched.base import device_shortage
from nfv_sched.base import reasons

if ty.TYPE_CHECKING:
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
class QueryNeed:
    """A requirement of a query to Placement.

    :ivar kind: name of a ``requirements.RequirementKind``, in lower case
    :ivar resources: resource class -> amount
    :ivar traits: the traits, also of a forbidden trait
    :ivar forbidden_traits: forbidden traits of a group
    :ivar aggregates: names of aggregates
    :ivar host: name of the only host; None if it is not about one
    :ivar count: number of equal groups
    """

    kind: str
    resources: ty.Mapping[str, int] = dataclasses.field(default_factory=dict)
    traits: tuple[str, ...] = ()
    forbidden_traits: tuple[str, ...] = ()
    aggregates: tuple[str, ...] = ()
    host: str | None = None
    count: int = 1


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class QueryLack:
    """A requirement of a query that a host does not meet.

    :ivar title: the requirement, for people
    :ivar need: None if Placement does not know a name in the query
    :ivar free: largest free amount of one provider; None if it is about no
        resource class, or no provider has that
    :ivar text: what the host lacks, for people
    :ivar misses: reserved amounts of nested providers
    """

    title: str
    need: QueryNeed | None = None
    free: int | None = None
    text: str = ''
    misses: tuple[device_shortage.NearMiss, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class QueryRequirement:
    """One requirement of the first query to Placement.

    :ivar text: the requirement, for people
    :ivar without: number of hosts found if only this requirement is dropped
    :ivar missing: number of hosts that do not meet it, even if the fallback
        query finds them
    :ivar need: the requirement
    """

    text: str
    without: int
    missing: int
    need: QueryNeed | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PlacementStage:
    """The stage in which Nova asks Placement.

    :ivar queries: the requirements of each query: as text -> as a value
    :ivar hosts: number of known hosts
    :ivar left: number of hosts in the answers
    :ivar requirements: requirements of the first query
    :ivar removed: requirement -> number of hosts that no query finds and that
        do not meet it, each counted for the query that it is nearest to
    :ivar needs: requirement of ``removed`` -> the same as a value
    :ivar fallback: whether Nova asks again for VCPU in place of PCPU
    :ivar limit: ``[scheduler] max_placement_results``
    :ivar cut: number of hosts that this limit has cut off
    :ivar unsupported: parts of the queries that cannot be answered here; no
        host is found then
    :ivar refused: why Placement refuses the queries, so that Nova takes no
        host, to follow "Placement"; empty if it does not
    :ivar unknown: names in refused queries that Placement does not know
    :ivar unverified: forbidden traits that Placement may not know, because its
        traits were not read
    """

    queries: tuple[ty.Mapping[str, QueryNeed], ...] = ()
    hosts: int = 0
    left: int = 0
    requirements: tuple[QueryRequirement, ...] = ()
    removed: ty.Mapping[str, int] = dataclasses.field(default_factory=dict)
    needs: ty.Mapping[str, QueryNeed] = dataclasses.field(
        default_factory=dict)
    fallback: bool = False
    limit: int | None = None
    cut: int = 0
    unsupported: tuple[str, ...] = ()
    refused: str = ''
    unknown: 'tuple[placement.Unknown, ...]' = ()
    unverified: 'tuple[placement.Unknown, ...]' = ()
