# SPDX-License-Identifier: Apache-2.0
"""Report the reasons to the log and the tenant if no host is left.

The log gets all reasons.  The tenant gets what ``[nfv_sched] expose_reasons``
allows, as the message of a ``NoValidHost``: Nova has no other way for it.  It
must not be raised once a server of the request has been claimed.  The journal
also gets refusals by others than nfv-sched.
"""

from collections.abc import Iterable, Iterator, Sequence
import time
import typing as ty

from nova import exception
from oslo_context import context as oslo_context
from oslo_log import log as logging

from nfv_sched.base import reasons
from nfv_sched.journal import entry
from nfv_sched.journal import writer
from nfv_sched.nova import fields
from nfv_sched.nova import no_valid_host
from nfv_sched.nova import scheduler
from nfv_sched.scheduler import notes
from nfv_sched.scheduler import process

LOG = logging.getLogger(__name__)

CONF = scheduler.CONF

_LOGGED_HOSTS_BYTES = 4096


def resolve(reason: reasons.Lazy) -> reasons.Reason:
    """Return the reason itself, by ``reasons.resolve``; never raises."""
    try:
        return reasons.resolve(reason)
    except Exception:
        LOG.exception('The reason of a refusal cannot be worked out')
        return reasons.Reason(
            reasons.CAPACITY, 'NUMA topology', 'capacity needed', 'none')


def report(name: str, request_note: notes.RequestNote,
           index: int | None) -> None:
    """Log the reasons, and add them to the journal and to the fault.

    :param index: number of the server, from 0; None if not known
    :raises nova.exception.NoValidHost: with the reason, for the first server
        of a request, if ``expose_reasons`` lets users see it
    """
    rejected = [(host, resolve(reason))
                for host, reason in request_note.rejected]
    plain = [reason for _host, reason in rejected]
    summary = reasons.summary_text(plain)
    if _is_first_run(request_note):
        process.STATE.refusals.append(process.LoggedRefusal(
            time.time(), request_note.instance, name, summary))
        if CONF.nfv_sched.decision_journal:
            _note(name, request_note, rejected)
    LOG.info('%s refused the last host for server %s: %s', name,
             request_note.instance, summary)
    if LOG.isEnabledFor(logging.DEBUG):
        LOG.debug('Refused hosts: %s', reasons.hosts_text(
            rejected, _LOGGED_HOSTS_BYTES))
    # For a later server Nova has claims of the earlier ones in Placement. If a
    # filter returns no host, _ensure_sufficient_hosts() removes them; past an
    # exception of a filter they would stay. The tenant gets the reason then.
    text = exposed(rejected) if index is not None else ''
    request_note.tenant_reason = text if index else ''
    if text and index == 0:
        raise exception.NoValidHost(reason=text)


def exposed(rejected: Sequence[tuple[str, reasons.Reason]]) -> str:
    """Return what ``expose_reasons`` lets users see; nothing for ``none``."""
    plain = [reason for _host, reason in rejected]
    match CONF.nfv_sched.expose_reasons:
        case reasons.NONE:
            return ''
        case reasons.HOSTS:
            return reasons.hosts_text(rejected)
        case reasons.SUMMARY:
            return reasons.summary_text(plain)
    return reasons.policy_text(plain)


def _is_first_run(request_note: notes.RequestNote) -> bool:
    """Return whether Nova filters for the first time for this server."""
    # When it has claimed a host it runs all filters again, to find alternates:
    # if none is left then, no server was refused. Simulated requests, which
    # have sources of their own, are left out, too.
    return request_note.lookups is None and len(
        {each[0] for each in request_note.passes}) == len(request_note.passes)


def _note(name: str, request_note: notes.RequestNote,
          rejected: list[tuple[str, reasons.Reason]]) -> None:
    """Write a refusal by a filter to the journal; never raises."""
    request_note.recorded = True
    passes = request_note.passes
    try:
        write(entry.Refusal, request_note, before=request_note.before,
              filter=name, passes=entry_passes(passes),
              reasons=entry_reasons(_with_filters(
                  [*passes, (name, 0, 0, len(rejected))], rejected)))
    except Exception:
        LOG.exception('A decision is not in the decision journal')


def _with_filters(passes: Iterable[tuple[str, int, int, int]],
                  rejected: Sequence[tuple[str, reasons.Lazy]],
                  ) -> Iterator[tuple[str, str, reasons.Lazy]]:
    """Yield (filter, host, reason) by what each filter has refused."""
    begin = 0
    for name, _hosts, _remaining, end in passes:
        for host, reason in rejected[begin:end]:
            yield name, host, reason
        begin = end


def watch() -> None:
    """Follow requests: what Placement answers, and why there is no host."""
    no_valid_host.watch(
        notes.placement_answered,
        lambda: bool(CONF.nfv_sched.decision_journal), _record, _tenant_reason)


def _tenant_reason(spec_obj) -> str:
    """Return the reason that a filter could not raise for a later server."""
    request_note = notes.note_of(spec_obj)
    # Simulations give their own.
    return request_note.tenant_reason if request_note.lookups is None else ''


def _record(followed: no_valid_host.FollowedRequest, message: str) -> None:
    """Add a request without valid host to the journal, if not there."""
    request_note = notes.note_of(followed.spec_obj)
    if request_note.lookups is not None:
        return  # a simulation
    # A filter of nfv-sched has written an entry with its reasons already; Nova
    # raises NoValidHost after it.
    if request_note.recorded:
        request_note.recorded = False
        return
    request_note.read(followed.spec_obj)
    by = _refused_by(followed)
    server = followed.spec_obj.instance_uuid
    other_servers = [uuid for uuid in followed.servers if uuid != server]
    if followed.filtered and server in followed.servers:
        other_servers = other_servers[:followed.servers.index(server)]
    reached = request_note.instance == server
    request_note.instance = server
    removed = by is entry.RefusedBy.FILTER
    write(entry.Refusal, request_note, before=tuple(other_servers),
          by=by.value, filter=followed.runs[-1].filter if removed else '',
          queries=() if removed else followed.queries(),
          message=message if by is entry.RefusedBy.NOVA else '',
          passes=entry_passes([
              (run.filter, len(run.given), len(run.left), 0)
              for run in followed.runs]),
          reasons=entry_reasons(
              _rejected_hosts(followed, request_note, reached)))


def _refused_by(followed: no_valid_host.FollowedRequest) -> entry.RefusedBy:
    if not followed.filtered and not followed.answered:
        return entry.RefusedBy.PLACEMENT_ERROR
    if not followed.filtered and followed.queries():
        return entry.RefusedBy.PLACEMENT
    if followed.passed:
        return entry.RefusedBy.CLAIM
    if followed.runs and followed.runs[-1].given:
        return entry.RefusedBy.FILTER
    return entry.RefusedBy.NOVA


def _rejected_hosts(
    followed: no_valid_host.FollowedRequest, request_note: notes.RequestNote,
    reached: bool,
) -> Iterator[tuple[str, str, reasons.Reason | None]]:
    """Yield (filter, host, reason) of each host that a filter refused.

    Other filters than those of nfv-sched give no reason.
    """
    reason_by_host = {
        (name, host): reason for name, host, reason in _with_filters(
            request_note.passes if reached else (), request_note.rejected)}
    for run in followed.runs:
        for host in run.refused:
            reason = reason_by_host.get((run.filter, host))
            yield run.filter, host, reason and resolve(reason)


def write(kind: type[entry.Refusal] | type[entry.PlacedServer],
          request_note: notes.RequestNote, **fields_of_kind: ty.Any) -> None:
    request = request_note.request
    writer.write(
        kind(time=writer.stamp(time.time()),
             request=getattr(oslo_context.get_current(), 'request_id', None)
             or '',
             server=request_note.instance or '',
             project=request.project or '', move=request.is_move,
             flavor=_flavor(request_note.flavor), **fields_of_kind),
        CONF.nfv_sched.decision_journal,
        CONF.nfv_sched.decision_journal_size * 2 ** 20)


def entry_reasons(
    rejected: Iterable[tuple[str, str, reasons.Reason | None]],
) -> tuple[entry.RefusalReason, ...]:
    """Return reasons for the journal; filters that give none come last."""
    hosts_by_reason: dict[tuple[str, reasons.Reason | None], list[str]] = {}
    for name, host, reason in rejected:
        hosts_by_reason.setdefault((name, reason), []).append(host)
    return tuple([
        entry.RefusalReason(filter=name, policy=reason.policy,
                            need=reason.need, have=reason.have,
                            hosts=tuple(hosts))
        for (name, reason), hosts in hosts_by_reason.items() if reason] + [
        entry.RefusalReason(filter=name, policy=name, need='no reason given',
                            hosts=tuple(hosts))
        for (name, reason), hosts in hosts_by_reason.items() if not reason])


def entry_passes(
    passes: Iterable[tuple[str, int, int, int]],
) -> tuple[entry.Pass, ...]:
    return tuple([entry.Pass(filter=name, hosts=hosts, left=remaining)
                  for name, hosts, remaining, _end in passes])


def _flavor(flavor) -> entry.RefusedFlavor | None:
    if flavor is None:
        return None
    return entry.RefusedFlavor(
        name=fields.get(flavor, 'name') or '',
        id=fields.get(flavor, 'flavorid') or '',
        vcpus=fields.get(flavor, 'vcpus') or 0,
        memory=fields.get(flavor, 'memory_mb') or 0,
        extra_specs=dict(fields.get(flavor, 'extra_specs') or {}))
