# SPDX-License-Identifier: Apache-2.0
"""Define the document of ``server explain --then``."""

from collections.abc import Mapping
import dataclasses
import typing as ty

from nfv_sched.journal import entry
from nfv_sched.ops.answers.journal import reading


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class JournalFlavor:
    """The flavor of a refused server."""

    flavor: str  #: its name
    flavor_id: str | None  #: its ID; null if it was not written
    vcpus: int  #: number of vCPUs
    memory_mib: int  #: memory in MiB
    extra_specs: Mapping[str, str]  #: extra specs at the time of the refusal


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class JournalFilter:
    """The result of a filter."""

    filter: str  #: its class name
    hosts_in: int  #: number of hosts that it was given
    hosts_out: int  #: number of hosts that it passed


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class JournalReason:
    """A reason why hosts were refused."""

    filter: str  #: class name of the filter that refused them
    #: the extra spec that was not kept, or another policy; the filter if it
    #: gives no reasons, as those of Nova
    policy: str
    policy_value: str | None  #: value of the extra spec; null if it is none
    needed: str  #: what the server needs, for people
    #: what these hosts have, for people; null if that is not said
    available: str | None
    hosts: tuple[str, ...]  #: names of the hosts


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class JournalRefusal:
    """A server for which Nova found no host."""

    time: str  #: when: ISO 8601, UTC
    server_id: str  #: UUID of the server
    #: UUIDs of servers of the same request for which there was a host; all
    #: others if there were no allocation candidates
    failed_with_it: tuple[str, ...]
    request_id: str | None  #: ID of the request; null if it was not written
    project_id: str | None  #: ID of the project; null likewise
    moves: bool  #: whether an existing server was to be moved
    flavor: JournalFlavor | None  #: the flavor; null if the request had none
    #: ``nfv-sched``; ``placement``, which had no allocation candidates;
    #: ``placement-error``, if it could not be asked; ``filter``, one of Nova
    #: or of others; ``claim`` if no host that passed all filters could be
    #: claimed; ``nova``, before any filter
    refused_by: str
    #: class name of the filter that removed the last host; null if none did
    filter: str | None
    #: query strings for allocation candidates, without the limit; empty if a
    #: filter removed the last host
    placement_queries: tuple[str, ...]
    #: what Nova said, if ``refused_by`` is ``nova``; else null
    message: str | None
    #: filters that examined hosts, in order; only those of nfv-sched if one of
    #: these removed the last host
    filters: tuple[JournalFilter, ...]
    reasons: tuple[JournalReason, ...]  #: why hosts were refused
    #: number of refused hosts that the entry does not name
    hosts_left_out: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class JournalPlaced:
    """A server that Nova placed, and what would have been different."""

    time: str  #: when: ISO 8601, UTC
    server_id: str  #: UUID of the server
    request_id: str | None  #: ID of the request; null if it was not written
    project_id: str | None  #: ID of the project; null likewise
    moves: bool  #: whether an existing server was moved
    flavor: JournalFlavor | None  #: the flavor; null if the request had none
    host: str  #: name of the host
    #: filters of nfv-sched that examined hosts, in order
    filters: tuple[JournalFilter, ...]
    #: class names of the filters and weighers in shadow that have examined it
    in_shadow: tuple[str, ...]
    #: ``refused`` if they would have left no host, ``elsewhere`` if it would
    #: have gone to another one; null if neither
    change: str | None
    changed_by: tuple[str, ...]  #: those of them that would have changed it
    #: name of the host that would have been first; null if it is not known
    instead: str | None
    reasons: tuple[JournalReason, ...]  #: why hosts would have been refused
    hosts_left_out: int  #: number of such hosts that the entry does not name


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class JournalRefusals:
    """Refusals of the decision journal."""

    refusals: tuple[JournalRefusal, ...]  #: refusals, the oldest first
    #: the same server where it was placed, the oldest first; empty for all
    #: servers
    placed: tuple[JournalPlaced, ...]
    not_written: int  #: number of entries that could not be written
    removed: int  #: number of older refusals that were removed to make room


def refusals(content: reading.JournalContent,
             with_placed: bool = False) -> JournalRefusals:
    return JournalRefusals(
        refusals=tuple([JournalRefusal(
            **_common(each), failed_with_it=each.before,
            refused_by=each.by or reading.NFV_SCHED,
            filter=each.filter or None, placement_queries=each.queries,
            message=each.message or None) for each in content.refusals]),
        placed=tuple([JournalPlaced(
            **_common(each), host=each.host, in_shadow=each.shadow,
            change=each.change or None, changed_by=each.by,
            instead=each.instead or None)
            for each in (content.placed if with_placed else ())]),
        not_written=content.lost, removed=content.removed)


def _common(value: entry.Refusal | entry.PlacedServer) -> dict[str, ty.Any]:
    flavor = value.flavor
    return {
        'time': value.time, 'server_id': value.server,
        'request_id': value.request or None,
        'project_id': value.project or None, 'moves': value.move,
        'flavor': None if flavor is None else JournalFlavor(
            flavor=flavor.name, flavor_id=flavor.id or None,
            vcpus=flavor.vcpus, memory_mib=flavor.memory,
            extra_specs=flavor.extra_specs),
        'filters': tuple([JournalFilter(
            filter=each.filter, hosts_in=each.hosts, hosts_out=each.left)
            for each in value.passes]),
        'reasons': tuple(map(_reason, value.reasons)),
        'hosts_left_out': value.unnamed}


def _reason(reason: entry.RefusalReason) -> JournalReason:
    policy, equals, value = reason.policy.partition('=')
    return JournalReason(
        filter=reason.filter, policy=policy,
        policy_value=value if equals else None, needed=reason.need,
        available=reason.have or None, hosts=reason.hosts)
