# SPDX-License-Identifier: Apache-2.0
"""Render a plan of live migrations as text, rows and commands."""

import collections
from collections.abc import Sequence
import typing as ty

from nfv_sched.base import strings
from nfv_sched.ops.answers.plans import defrag
from nfv_sched.ops.answers.plans import document
from nfv_sched.ops.answers.plans import rendering
from nfv_sched.ops.cli import tables
from nfv_sched.ops.model import movable
from nfv_sched.ops.run import values

#: Columns of :func:`records`.
COLUMNS = ('Move', 'Server', 'Server ID', 'Flavor', 'Memory MiB', 'How',
           'From', 'To', 'Makes room for', 'VFs detached')
#: Maximum number of reasons to report.
_REASONS = 5


def text(plan: document.Defrag) -> list[tables.Part]:
    table = ['', tables.Table(
        [title for title in COLUMNS
         if title not in ('Server ID', 'VFs detached')],
        [(each.move, each.server, each.flavor, each.memory_mib,
          values.how(each.how, each.vfs_detached), each.source,
          each.destination, _gains(each)) for each in plan.moves],
        ('Memory MiB', 'Flavor', 'Makes room for')), ''
    ] if plan.moves else []
    return [_headline(plan), *table, *_notes(plan)]


def records(plan: document.Defrag) -> list[Sequence[ty.Any]]:
    return [(each.move, each.server, each.server_id, each.flavor,
             each.memory_mib, each.how, each.source, each.destination,
             sum(gain.servers for gain in each.gains),
             rendering.vfs_cell(each.vfs_detached)) for each in plan.moves]


def _headline(plan: document.Defrag) -> str:
    verb = 'fits' if plan.fits_before == 1 else 'fit'
    now = f'{plan.fits_before} more {plan.flavor} {verb} now'
    if not plan.moves:
        if plan.enough:
            return f'{now}: no move is needed for {plan.wanted}.'
        return f'{now}; no moves were found that make room for more.'
    live = all(each.how == movable.LIVE for each in plan.moves)
    moves = strings.count(len(plan.moves), 'live ' * live + 'migration')
    fewest = ', and no fewer do' if plan.exact else ''
    if plan.enough:
        return f'{now}, {plan.fits_after} after {moves}{fewest}.'
    return (f'{now}, {plan.fits_after} after {moves}; '
            f'no moves were found that make room for {plan.wanted}.')


def _notes(plan: document.Defrag) -> ty.Iterator[str]:
    yield ('Ports of new servers: '
           f'{plan.ports.label}, {plan.ports.reason}.')
    if plan.moves:
        booted = min(plan.fits_after, plan.wanted)
        yield ('Each move was made in the simulator, one after the other, '
               f'and {strings.count(booted, "server")} of {plan.flavor} '
               'booted then.')
    if any(each.vfs_detached for each in plan.moves):
        yield values.VFS_DETACHED
    if plan.freeing is not None:
        yield from _no_moves(plan.freeing)
    for failed in plan.failed:
        yield f'Not possible in the simulator: {failed}'
    yield from map(rendering.gap_text, plan.unread)
    reasons = collections.Counter(
        each.obstacle.text for each in plan.not_movable).most_common()
    for reason, count in reasons[:_REASONS]:
        yield f'{strings.count(count, "server")} cannot be moved: {reason}'
    if len(reasons) > _REASONS:
        yield (f'{sum(count for _reason, count in reasons[_REASONS:])} more '
               f'cannot be moved for other reasons; -f json has them all.')


def _no_moves(
        freeing: Sequence[defrag.FreeingServer]) -> ty.Iterator[str]:
    if not freeing:
        yield ('No host takes one more, even without any one of the servers '
               'that can be moved.')
    for each in freeing[:_REASONS]:
        yield f'{each.host} takes one more without {each.name}, but ' + (
            f'wherever {each.name} goes, no more fit in all.'
            if each.has_destination else f'no other host takes {each.name}.')
    if len(freeing) > _REASONS:
        yield f'The same holds for {len(freeing) - _REASONS} more servers.'


def _gains(each: document.DefragMove) -> str:
    return ', '.join(f'{gain.servers} on {gain.host}' if gain.servers > 0 else
                     f'{-gain.servers} less on {gain.host}'
                     for gain in each.gains)
