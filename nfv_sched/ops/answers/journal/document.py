# SPDX-License-Identifier: Apache-2.0
"""Define the document of ``journal list`` and ``server explain --then``."""

from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses

from nfv_sched.journal import entry
from nfv_sched.ops.answers.journal import reading


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class JournalFlavor:
    """The flavor of a refused server.

    :ivar flavor: its name
    :ivar flavor_id: its ID; null if it was not written
    :ivar vcpus: number of vCPUs
    :ivar memory_mib: memory in MiB
    :ivar extra_specs: extra specs at the time of the refusal
    """

    flavor: str
    flavor_id: str | None
    vcpus: int
    memory_mib: int
    extra_specs: Mapping[str, str]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class JournalFilter:
    """The result of a filter.

    :ivar filter: its class name
    :ivar hosts_in: number of hosts that it was given
    :ivar hosts_out: number of hosts that it passed
    """

    filter: str
    hosts_in: int
    hosts_out: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class JournalReason:
    """A reason why hosts were refused.

    :ivar filter: class name of the filter that refused them
    :ivar policy: the extra spec that was not kept, or another policy; the
        filter if it gives no reasons, as those of Nova
    :ivar policy_value: value of the extra spec; null if it is none
    :ivar needed: what the server needs, for people
    :ivar available: what these hosts have, for people; null if that is not
        said
    :ivar hosts: names of the hosts
    """

    filter: str
    policy: str
    policy_value: str | None
    needed: str
    available: str | None
    hosts: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class JournalRefusal:
    """A server for which Nova found no host.

    :ivar time: when: ISO 8601, UTC
    :ivar server_id: UUID of the server
    :ivar failed_with_it: UUIDs of servers of the same request for which there
        was a host; all others if there were no allocation candidates
    :ivar request_id: ID of the request; null if it was not written
    :ivar project_id: ID of the project; null likewise
    :ivar moves: whether an existing server was to be moved
    :ivar flavor: the flavor; null if the request had none
    :ivar refused_by: ``nfv-sched``; ``placement``, which had no allocation
        candidates; ``placement-error``, if it could not be asked; ``filter``,
        one of Nova or of others; ``claim`` if no host that passed all filters
        could be claimed; ``nova``, before any filter
    :ivar filter: class name of the filter that removed the last host; null if
        none did
    :ivar placement_queries: query strings for allocation candidates, without
        the limit; empty if a filter removed the last host
    :ivar message: what Nova said, if ``refused_by`` is ``nova``; else null
    :ivar filters: filters that examined hosts, in order; only those of
        nfv-sched if one of these removed the last host
    :ivar reasons: why hosts were refused
    :ivar hosts_left_out: number of refused hosts that the entry does not name
    """

    time: str
    server_id: str
    failed_with_it: tuple[str, ...]
    request_id: str | None
    project_id: str | None
    moves: bool
    flavor: JournalFlavor | None
    refused_by: str
    filter: str | None
    placement_queries: tuple[str, ...]
    message: str | None
    filters: tuple[JournalFilter, ...]
    reasons: tuple[JournalReason, ...]
    hosts_left_out: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class JournalPlaced:
    """A server that Nova placed, and what would have been different.

    :ivar time: when: ISO 8601, UTC
    :ivar server_id: UUID of the server
    :ivar request_id: ID of the request; null if it was not written
    :ivar project_id: ID of the project; null likewise
    :ivar moves: whether an existing server was moved
    :ivar flavor: the flavor; null if the request had none
    :ivar host: name of the host
    :ivar filters: filters of nfv-sched that examined hosts, in order
    :ivar in_shadow: class names of the filters and weighers in shadow that
        have examined it
    :ivar change: ``refused`` if they would have left no host, ``elsewhere`` if
        it would have gone to another one; null if neither
    :ivar changed_by: those of them that would have changed it
    :ivar instead: name of the host that would have been first; null if it is
        not known
    :ivar reasons: why hosts would have been refused
    :ivar hosts_left_out: number of such hosts that the entry does not name
    """

    time: str
    server_id: str
    request_id: str | None
    project_id: str | None
    moves: bool
    flavor: JournalFlavor | None
    host: str
    filters: tuple[JournalFilter, ...]
    in_shadow: tuple[str, ...]
    change: str | None
    changed_by: tuple[str, ...]
    instead: str | None
    reasons: tuple[JournalReason, ...]
    hosts_left_out: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class JournalRefusals:
    """Refusals of the decision journal.

    :ivar refusals: refusals, the oldest first
    :ivar placed: the same server where it was placed, the oldest first; empty
        for all servers
    :ivar not_written: number of entries that could not be written
    :ivar removed: number of older refusals that were removed to make room
    """

    refusals: tuple[JournalRefusal, ...]
    placed: tuple[JournalPlaced, ...]
    not_written: int
    removed: int


def refusals(content: reading.JournalContent,
             with_placed: bool = False) -> JournalRefusals:
    """Return the document of a journal.

    :param with_placed: whether it has servers that were placed, too
    """
    return JournalRefusals(
        refusals=tuple(map(_refusal, content.refusals)),
        placed=tuple(map(_placed, content.placed if with_placed else ())),
        not_written=content.lost, removed=content.removed)


def _flavor(flavor: entry.RefusedFlavor | None) -> JournalFlavor | None:
    return None if flavor is None else JournalFlavor(
        flavor=flavor.name, flavor_id=flavor.id or None,
        vcpus=flavor.vcpus, memory_mib=flavor.memory,
        extra_specs=flavor.extra_specs)


def _filters(passes: Iterable[entry.Pass]) -> tuple[JournalFilter, ...]:
    return tuple([
        JournalFilter(filter=each.filter, hosts_in=each.hosts,
                      hosts_out=each.left) for each in passes])


def _refusal(refusal: entry.Refusal) -> JournalRefusal:
    return JournalRefusal(
        time=refusal.time, server_id=refusal.server,
        failed_with_it=refusal.before, request_id=refusal.request or None,
        project_id=refusal.project or None, moves=refusal.move,
        flavor=_flavor(refusal.flavor),
        refused_by=refusal.by or reading.NFV_SCHED,
        filter=refusal.filter or None,
        placement_queries=refusal.queries, message=refusal.message or None,
        filters=_filters(refusal.passes),
        reasons=tuple(map(_reason, refusal.reasons)),
        hosts_left_out=refusal.unnamed)


def _placed(placed: entry.PlacedServer) -> JournalPlaced:
    return JournalPlaced(
        time=placed.time, server_id=placed.server,
        request_id=placed.request or None, project_id=placed.project or None,
        moves=placed.move, flavor=_flavor(placed.flavor), host=placed.host,
        filters=_filters(placed.passes),
        in_shadow=placed.shadow, change=placed.change or None,
        changed_by=placed.by, instead=placed.instead or None,
        reasons=tuple(map(_reason, placed.reasons)),
        hosts_left_out=placed.unnamed)


def _reason(reason: entry.RefusalReason) -> JournalReason:
    policy, equals, value = reason.policy.partition('=')
    return JournalReason(
        filter=reason.filter, policy=policy,
        policy_value=value if equals else None, needed=reason.need,
        available=reason.have or None, hosts=reason.hosts)
