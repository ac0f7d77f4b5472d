# SPDX-License-Identifier: Apache-2.0
"""Render entries of the decision journal as text and rows."""

from collections.abc import Iterator
import itertools

from nfv_sched.base import strings
from nfv_sched.journal import entry
from nfv_sched.ops.answers.journal import shadow_report
from nfv_sched.ops.cli import tables


def text(value: entry.Refusal | entry.PlacedServer) -> list[tables.Part]:
    return list(_lines(value))


def shadow_text(report: shadow_report.ShadowReport) -> list[tables.Part]:
    parts: list[tables.Part] = [shadow_report.sentence(report)]
    refusals = shadow_report.refusals_sentence(report)
    if refusals:
        parts.append(refusals)
    if report.servers:
        parts += ['', tables.Table(SHADOW_COLUMNS, shadow_rows(report))]
    if report.reasons:
        parts += ['', tables.Table(
            ('Policy', 'Filter', *SHADOW_COLUMNS[2:]), [
                (each.policy, each.filter, each.refused, each.elsewhere)
                for each in report.reasons], is_main=False)]
    return parts


#: Columns of :func:`shadow_rows`.
SHADOW_COLUMNS = ('In shadow', 'Servers', 'Refused', 'Elsewhere')


def shadow_rows(report: shadow_report.ShadowReport) -> list[tuple]:
    return [(each.name, each.servers, each.refused, each.elsewhere)
            for each in report.counts]


def summary(value: entry.Refusal | entry.PlacedServer) -> str:
    """Return the reason that most hosts have, and the number of others.

    If no filter removed the last host, what did.
    """
    reasons = value.reasons
    if isinstance(value, entry.PlacedServer):
        reasons = shadow_report.reasons_of(value)
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
    if refusal.by == entry.RefusedBy.PLACEMENT:
        return 'no allocation candidates for ' + ' or '.join(refusal.queries)
    if refusal.by == entry.RefusedBy.PLACEMENT_ERROR:
        return ('Placement could not be asked, or reported an error: see the '
                'log of nova-scheduler')
    if refusal.by == entry.RefusedBy.CLAIM:
        hosts = refusal.passes[-1].left if refusal.passes else 0
        return ('no host could be claimed in Placement' + (
            f', of {hosts} that passed all filters' if hosts else ''))
    return (refusal.message or
            'no host of the allocation candidates is allowed')


#: What refused a server, if it was no filter -> name in tables.
_CAUSES = {
    entry.RefusedBy.PLACEMENT: 'Placement',
    entry.RefusedBy.PLACEMENT_ERROR: 'Placement',
    entry.RefusedBy.CLAIM: 'claim',
    entry.RefusedBy.NOVA: 'Nova'}


def missing(lost: int, removed: int) -> str:
    text = ''
    if lost:
        text += f'{lost} entries could not be written\n'
    if removed:
        text += f'{removed} older refusals were removed to make room\n'
    return text


#: Columns of :func:`row`.
COLUMNS = ('Time', 'Server', 'Flavor', 'Hosts', 'Filter', 'Reason')

#: Those that a narrow table loses first.
LEAST_IMPORTANT = ('Hosts', 'Flavor', 'Filter', 'Time')


def row(
    value: entry.Refusal | entry.PlacedServer, full: bool = False,
) -> tuple:
    if isinstance(value, entry.PlacedServer):
        name = f'{", ".join(value.by)} (in shadow)' if value.by else ''
    else:
        name = value.filter or _CAUSES.get(value.by, value.by)
    return (
        value.time, value.server,
        value.flavor.name if value.flavor else '',
        value.passes[0].hosts if value.passes else None, name,
        tables.Lines([f'{reason}: {", ".join(reason.hosts)}'
                      for reason in value.reasons])
        if full and value.reasons else summary(value))


def _outcome(placed: entry.PlacedServer) -> str:
    names = ', '.join(placed.by)
    if placed.change == entry.ShadowChange.REFUSED:
        return f'{names} in shadow would have refused the last host'
    if placed.change == entry.ShadowChange.ELSEWHERE:
        return (f'{names} in shadow would have placed it on '
                f'{placed.instead or "another host"}')
    if placed.shadow:
        return f'{", ".join(placed.shadow)} in shadow would change nothing'
    return ''


def _lines(
    refusal: entry.Refusal | entry.PlacedServer,
) -> Iterator[tables.Part]:
    placed = isinstance(refusal, entry.PlacedServer)
    if placed:
        yield f'{refusal.time} placed on {refusal.host}'
    elif refusal.filter:
        yield f'{refusal.time} {refusal.filter} refused the last host'
    else:
        yield tables.Line(
            f'{refusal.time} ' + (
                'Placement had no allocation candidates'
                if refusal.by == entry.RefusedBy.PLACEMENT
                else _cause(refusal)), indent=2)
    if placed and refusal.shadow:
        yield _outcome(refusal)
    yield _field('Server', refusal.server)
    if not placed and refusal.before:
        yield _field('With it', ', '.join(refusal.before))
    if refusal.request:
        yield _field('Request', refusal.request)
    yield _field('Project', refusal.project or 'unknown')
    flavor = refusal.flavor
    if flavor is not None:
        yield _field('Flavor', f'{flavor.name}: ' + ', '.join((
            f'{flavor.vcpus} vCPUs', f'{flavor.memory} MiB',
            *(f'{key}={value}' for key, value in
              sorted(flavor.extra_specs.items())))))
    if refusal.move:
        yield _field('Move', 'yes')
    for label, query in zip(
            itertools.chain(['Asked'], itertools.repeat('or')),
            () if placed else refusal.queries):
        for index, parameter in enumerate(query.split('&')):
            yield _field('' if index else label, parameter)
    for index, each in enumerate(refusal.passes):
        yield _field(
            '' if index else 'Filters',
            f'{each.filter}: {strings.count(each.hosts, "host")}, '
            f'{each.left} left')
    for name, reasons in itertools.groupby(
            refusal.reasons, lambda reason: reason.filter):
        yield name
        for reason in reasons:
            yield tables.Line(f'  {reason}', indent=4)
            yield tables.Line(f'    on {", ".join(reason.hosts)}', indent=7)
    if refusal.unnamed:
        yield (f'and {strings.count(refusal.unnamed, "host")} that had no '
               'space in the journal')


def _field(name: str, value: str) -> tables.Line:
    return tables.Line(f'{name:10}{value}', indent=12)
