# SPDX-License-Identifier: Apache-2.0
"""Render entries of the decision journal as text and rows."""

from collections.abc import Iterator, Sequence
import itertools

from nfv_sched.base import strings
from nfv_sched.journal import entry
from nfv_sched.ops.answers.journal import document
from nfv_sched.ops.cli import tables

SHADOW_COLUMNS = (
    tables.Column('In shadow', 'name'), tables.Column('Servers', 'servers'),
    tables.Column('Refused', 'refused'),
    tables.Column('Elsewhere', 'elsewhere'))

#: Columns of entries that a narrow table loses first.
LEAST_IMPORTANT = ('Hosts', 'Flavor', 'Filter', 'Time')

#: What refused a server, if it was no filter -> name in tables.
_CAUSES = {
    entry.RefusedBy.PLACEMENT: 'Placement',
    entry.RefusedBy.PLACEMENT_ERROR: 'Placement',
    entry.RefusedBy.CLAIM: 'claim',
    entry.RefusedBy.NOVA: 'Nova'}

_Entry = entry.Refusal | entry.PlacedServer


def shadow_text(report: document.ShadowReport) -> list[tables.Part]:
    parts: list[tables.Part] = [
        f'{report.refused} of {report.servers} servers placed from '
        f'{report.first_time} to {report.last_time} would have been refused, '
        f'and {report.elsewhere} would have gone to another host.'
        if report.servers else
        'The journal has no server that filters or weighers in shadow have '
        'examined.']
    if report.refusals:
        count = sum(each.servers for each in report.refusals)
        parts.append(f'{strings.count(count, "server")} found no host: ' + (
            ', '.join(f'{each.servers} by {each.filter or each.refused_by}'
                      for each in report.refusals)) + '.')
    if report.servers:
        parts += ['', tables.of_rows(SHADOW_COLUMNS, report.counts)]
    if report.reasons:
        parts += ['', tables.Table(
            ('Policy', 'Filter', 'Refused', 'Elsewhere'), [
                (each.policy, each.filter, each.refused, each.elsewhere)
                for each in report.reasons], is_main=False)]
    return parts


def columns(full: bool) -> Sequence[tables.Column]:
    """Return the columns of entries; ``full`` gives reasons with hosts."""
    return (
        tables.Column('Time', 'time'), tables.Column('Server', 'server'),
        tables.Column('Flavor', lambda value: (
            value.flavor.name if value.flavor else '')),
        tables.Column('Hosts', lambda value: (
            value.passes[0].hosts if value.passes else None)),
        tables.Column('Filter', _cause_name),
        tables.Column('Reason', lambda value: tables.Lines([
            f'{reason}: {", ".join(reason.hosts)}'
            for reason in value.reasons])
            if full and value.reasons else summary(value)))


def _cause_name(value: _Entry) -> str:
    if isinstance(value, entry.PlacedServer):
        return f'{", ".join(value.by)} (in shadow)' if value.by else ''
    return value.filter or _CAUSES.get(value.by, value.by)


def summary(value: _Entry) -> str:
    """Return the reason that most hosts have, and the number of others.

    If no filter removed the last host, what did.
    """
    reasons = value.reasons
    if isinstance(value, entry.PlacedServer):
        reasons = document.reasons_of(value)
    elif value.by and not value.filter:
        return _cause(value)
    if not reasons:
        return ''
    most = max(reasons, key=lambda reason: len(reason.hosts))
    more = len(reasons) - 1
    return f'{most} ({strings.count(len(most.hosts), "host")})' + (
        f'; +{more} more' if more else '')


def _cause(refusal: entry.Refusal) -> str:
    """Return why there was no host, if no filter removed the last one."""
    match refusal.by:
        case entry.RefusedBy.PLACEMENT:
            return ('no allocation candidates for '
                    + ' or '.join(refusal.queries))
        case entry.RefusedBy.PLACEMENT_ERROR:
            return ('Placement could not be asked, or reported an error: see '
                    'the log of nova-scheduler')
        case entry.RefusedBy.CLAIM:
            hosts = refusal.passes[-1].left if refusal.passes else 0
            return 'no host could be claimed in Placement' + (
                f', of {hosts} that passed all filters' if hosts else '')
    return (refusal.message or
            'no host of the allocation candidates is allowed')


def missing(lost: int, removed: int) -> str:
    return (f'{lost} entries could not be written\n' if lost else '') + (
        f'{removed} older refusals were removed to make room\n'
        if removed else '')


def text(value: _Entry) -> Iterator[tables.Part]:
    if isinstance(value, entry.PlacedServer):
        yield f'{value.time} placed on {value.host}'
        if value.shadow:
            yield _outcome(value)
    elif value.filter:
        yield f'{value.time} {value.filter} refused the last host'
    else:
        yield tables.Line(
            f'{value.time} ' + (
                'Placement had no allocation candidates'
                if value.by == entry.RefusedBy.PLACEMENT
                else _cause(value)), indent=2)
    fields = [('Server', value.server)]
    if isinstance(value, entry.Refusal) and value.before:
        fields.append(('With it', ', '.join(value.before)))
    if value.request:
        fields.append(('Request', value.request))
    fields.append(('Project', value.project or 'unknown'))
    if (flavor := value.flavor) is not None:
        fields.append(('Flavor', f'{flavor.name}: ' + ', '.join((
            f'{flavor.vcpus} vCPUs', f'{flavor.memory} MiB',
            *(f'{key}={value}' for key, value in
              sorted(flavor.extra_specs.items()))))))
    if value.move:
        fields.append(('Move', 'yes'))
    if isinstance(value, entry.Refusal):
        for number, query in enumerate(value.queries):
            fields += itertools.zip_longest(
                ['or' if number else 'Asked'], query.split('&'), fillvalue='')
    for number, each in enumerate(value.passes):
        fields.append(('' if number else 'Filters', (
            f'{each.filter}: {strings.count(each.hosts, "host")}, '
            f'{each.left} left')))
    for name, field in fields:
        yield tables.Line(f'{name:10}{field}', indent=12)
    for name, reasons in itertools.groupby(
            value.reasons, lambda reason: reason.filter):
        yield name
        for reason in reasons:
            yield tables.Line(f'  {reason}', indent=4)
            yield tables.Line(f'    on {", ".join(reason.hosts)}', indent=7)
    if value.unnamed:
        yield (f'and {strings.count(value.unnamed, "host")} that had no '
               'space in the journal')


def _outcome(placed: entry.PlacedServer) -> str:
    names = ', '.join(placed.by)
    if placed.change == entry.ShadowChange.REFUSED:
        return f'{names} in shadow would have refused the last host'
    if placed.change == entry.ShadowChange.ELSEWHERE:
        return (f'{names} in shadow would have placed it on '
                f'{placed.instead or "another host"}')
    return f'{", ".join(placed.shadow)} in shadow would change nothing'
