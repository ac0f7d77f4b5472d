# SPDX-License-Identifier: Apache-2.0
"""Render refusals of the decision journal as text and rows."""

from collections.abc import Iterator
import itertools

from nfv_sched.journal import entry
from nfv_sched.ops.cli import tables
from nfv_sched import strings


def text(refusal: entry.Refusal) -> list[tables.Part]:
    """Return a refusal with all reasons and hosts, in several lines."""
    return list(_lines(refusal))


def summary(refusal: entry.Refusal) -> str:
    """Return the reason that most hosts have, and the number of others."""
    if not refusal.reasons:
        return ''
    most = max(refusal.reasons, key=lambda reason: len(reason.hosts))
    more = len(refusal.reasons) - 1
    return f'{most} ({strings.count(len(most.hosts), "host")})' + (
        f'; +{more} more' if more else '')


def missing(lost: int, removed: int) -> str:
    """Return lines that say how many refusals the journal lacks."""
    text = ''
    if lost:
        text += f'{lost} refusals could not be written\n'
    if removed:
        text += f'{removed} older refusals were removed to make room\n'
    return text


#: Columns of :func:`row`.
COLUMNS = ('Time', 'Server', 'Flavor', 'Hosts', 'Filter', 'Reason')


def row(refusal: entry.Refusal, full: bool = False) -> tuple:
    """Return a refusal as a row of a table.

    :param full: whether to give all reasons, with the hosts of each
    """
    return (
        refusal.time, refusal.server,
        refusal.flavor.name if refusal.flavor else '',
        refusal.passes[0].hosts if refusal.passes else None,
        refusal.filter,
        tables.Lines([f'{reason}: {", ".join(reason.hosts)}'
                      for reason in refusal.reasons])
        if full else summary(refusal))


def _lines(refusal: entry.Refusal) -> Iterator[tables.Part]:
    yield f'{refusal.time} {refusal.filter} refused the last host'
    yield _field('Server', refusal.server)
    if refusal.before:
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
               'room in the journal')


def _field(name: str, value: str) -> tables.Line:
    return tables.Line(f'{name:10}{value}', indent=12)
