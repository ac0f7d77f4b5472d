# SPDX-License-Identifier: Apache-2.0
"""Define the documents of ``server explain --then``, and with --shadow."""

import collections
from collections.abc import Iterable, Mapping
import dataclasses
import typing as ty

from nfv_sched.journal import entry
from nfv_sched.ops.answers.journal import reading

_REFUSED = entry.ShadowChange.REFUSED
_ELSEWHERE = entry.ShadowChange.ELSEWHERE


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


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ShadowCount:
    """Servers that a filter or weigher in shadow has examined."""

    name: str  #: class name of the filter or weigher
    servers: int  #: number of servers
    #: number of those for which it would have removed the last host
    refused: int
    #: number of those that would have gone to another host because of it
    elsewhere: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ShadowReason:
    """Servers that would have been treated differently for one policy."""

    filter: str  #: class name of the filter in shadow
    #: an extra spec with its value, or another policy, by which it would have
    #: refused hosts
    policy: str
    refused: int  #: number of servers that would have been refused
    elsewhere: int  #: number of servers that would have gone to another host


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RefusedCount:
    """Servers for which Nova found no host."""

    refused_by: str  #: see ``JournalRefusal``
    #: class name of the filter that removed the last host; null if none did
    filter: str | None
    servers: int  #: number of servers


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ShadowReport:
    """The effect that filters and weighers in shadow would have had."""

    #: when the first of the servers was placed: ISO 8601, UTC; null if there
    #: is none
    first_time: str | None
    last_time: str | None  #: when the last one was, likewise
    #: number of servers that were placed, and examined in shadow; one that was
    #: moved counts each time
    servers: int
    refused: int  #: number of those for which no host would have been left
    elsewhere: int  #: number of those that would have gone to another host
    counts: tuple[ShadowCount, ...]  #: the same for each filter and weigher
    #: the same by policy, the most frequent first; a server counts for each
    #: policy by which hosts would have been refused
    reasons: tuple[ShadowReason, ...]
    #: servers that were refused by what counts, the most frequent cause first
    refusals: tuple[RefusedCount, ...]


def shadow_report(placed: Iterable[entry.PlacedServer], since: str = '',
                  refused: Iterable[entry.Refusal] = ()) -> ShadowReport:
    """Return the report of placed, and of refused, servers.

    :param placed: entries of a journal, the oldest first
    :param since: time from which on they count; ISO 8601, UTC
    """
    entries = [each for each in placed if each.shadow and each.time >= since]
    servers: collections.Counter[str] = collections.Counter()
    changed: collections.Counter[tuple[str, str]] = collections.Counter()
    policies: collections.Counter[tuple[str, str, str]] = collections.Counter()
    for each in entries:
        servers.update(each.shadow)
        changed.update([(name, each.change) for name in each.by])
        policies.update({(reason.filter, reason.policy, each.change)
                         for reason in reasons_of(each)})
    reasons = [
        ShadowReason(filter=name, policy=policy,
                     refused=policies[name, policy, _REFUSED],
                     elsewhere=policies[name, policy, _ELSEWHERE])
        for name, policy in sorted({key[:2] for key in policies})]
    return ShadowReport(
        first_time=entries[0].time if entries else None,
        last_time=entries[-1].time if entries else None, servers=len(entries),
        refused=sum(each.change == _REFUSED for each in entries),
        elsewhere=sum(each.change == _ELSEWHERE for each in entries),
        counts=tuple([
            ShadowCount(name=name, servers=count,
                        refused=changed[name, _REFUSED],
                        elsewhere=changed[name, _ELSEWHERE])
            for name, count in sorted(servers.items())]),
        reasons=tuple(sorted(
            reasons, key=lambda each: -each.refused - each.elsewhere)),
        refusals=tuple([
            RefusedCount(refused_by=by, filter=name, servers=count)
            for (by, name), count in collections.Counter(
                (each.by or reading.NFV_SCHED, each.filter or None)
                for each in refused if each.time >= since).most_common()]))


def reasons_of(placed: entry.PlacedServer) -> list[entry.RefusalReason]:
    """Return why it would have been refused, or its host would have been."""
    return [reason for reason in placed.reasons
            if placed.change == _REFUSED or placed.host in reason.hosts]
