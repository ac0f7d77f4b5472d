# SPDX-License-Identifier: Apache-2.0
"""Render a plan of live migrations as text, rows and commands."""

import collections
from collections.abc import Sequence
import typing as ty

from nfv_sched.ops.answers.plans import defrag
from nfv_sched.ops.answers.plans import rendering
from nfv_sched.ops.cli import tables
from nfv_sched.ops.model import movable
from nfv_sched.ops.run import values

COLUMNS = ('Move', 'Server', 'Flavor', 'Memory MiB', 'How', 'From', 'To',
           'Makes room for')
#: Columns of :func:`records`.
RECORD_COLUMNS = ('Move', 'Server', 'Server ID', *COLUMNS[2:], 'VFs detached')
_LEAST_IMPORTANT = ('Memory MiB', 'Flavor', 'Makes room for')
#: Maximum number of reasons to report.
_REASONS = 5


def text(plan: defrag.DefragPlan) -> list[tables.Part]:
    """Return a plan for people."""
    table = ['', tables.Table(
        COLUMNS, rows(plan), _LEAST_IMPORTANT), ''] if plan.steps else []
    return [_headline(plan), *table, *_notes(plan)]


def _headline(plan: defrag.DefragPlan) -> str:
    now = f'{plan.before} more {plan.flavor} {_fit_verb(plan.before)} now'
    if not plan.steps:
        if plan.enough:
            return f'{now}: no move is needed for {plan.count}.'
        return f'{now}; no moves were found that make room for more.'
    live = all(step.move.kind == movable.LIVE for step in plan.steps)
    moves = tables.count(len(plan.steps), 'live ' * live + 'migration')
    fewest = ', and no fewer do' if plan.exact else ''
    if plan.enough:
        return f'{now}, {plan.after} after {moves}{fewest}.'
    return (f'{now}, {plan.after} after {moves}; '
            f'no moves were found that make room for {plan.count}.')


def _fit_verb(count: int) -> str:
    return 'fits' if count == 1 else 'fit'


def _notes(plan: defrag.DefragPlan) -> ty.Iterator[str]:
    yield f'Ports of new servers: {plan.ports.label}, {plan.ports.reason}.'
    if plan.steps:
        yield ('Each move was made in the simulator, one after the other, '
               f'and {tables.count(min(plan.after, plan.count), "server")} '
               f'of {plan.flavor} booted then.')
    if any(step.move.vfs_detached for step in plan.steps):
        yield values.VFS_DETACHED
    if plan.freeing is not None:
        yield from _no_moves(plan.freeing)
    for failed in plan.failed:
        yield f'Not possible in the simulator: {failed}'
    yield from map(rendering.gap_text, plan.gaps)
    reasons = collections.Counter(plan.fixed.values()).most_common()
    for reason, count in reasons[:_REASONS]:
        yield f'{tables.count(count, "server")} cannot be moved: {reason}'
    if len(reasons) > _REASONS:
        yield (f'{sum(count for _reason, count in reasons[_REASONS:])} more '
               f'cannot be moved for other reasons; -f json has them all.')


def _no_moves(
        freeing: Sequence[defrag.FreeingServer]) -> ty.Iterator[str]:
    """Yield why no moves help."""
    if not freeing:
        yield ('No host takes one more, even without any one of the servers '
               'that can be moved.')
    for each in freeing[:_REASONS]:
        yield f'{each.host} takes one more without {each.name}, but ' + (
            f'wherever {each.name} goes, no more fit in all.'
            if each.has_destination else f'no other host takes {each.name}.')
    if len(freeing) > _REASONS:
        yield f'The same holds for {len(freeing) - _REASONS} more servers.'


def rows(plan: defrag.DefragPlan) -> list[Sequence[ty.Any]]:
    """Return a row for each move."""
    return [(number, step.move.name, step.move.flavor, step.move.memory,
             values.how(step.move.kind, step.move.vfs_detached),
             step.move.source, step.move.destination, _gains(step))
            for number, step in enumerate(plan.steps, 1)]


def records(plan: defrag.DefragPlan) -> list[Sequence[ty.Any]]:
    """Return a row for each move, with its gain on all hosts together."""
    return [(*row[:2], step.move.uuid, *row[2:4], step.move.kind, *row[5:-1],
             sum(step.gains.values()),
             rendering.vfs_cell(step.move.vfs_detached))
            for row, step in zip(rows(plan), plan.steps)]


def _gains(step: defrag.DefragStep) -> str:
    return ', '.join(f'{gain} on {host}' if gain > 0 else
                     f'{-gain} less on {host}'
                     for host, gain in step.gains.items())
