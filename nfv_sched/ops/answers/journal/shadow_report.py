# SPDX-License-Identifier: Apache-2.0
"""Count what filters and weighers in shadow would have changed."""

import collections
from collections.abc import Iterable
import dataclasses

from nfv_sched.journal import entry
from nfv_sched.ops.answers.journal import reading

_REFUSED = entry.ShadowChange.REFUSED
_ELSEWHERE = entry.ShadowChange.ELSEWHERE


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


def report(
    placed: Iterable[entry.PlacedServer], since: str = '',
    refused: Iterable[entry.Refusal] = (),
) -> ShadowReport:
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
        last_time=entries[-1].time if entries else None,
        servers=len(entries),
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
