# SPDX-License-Identifier: Apache-2.0
"""Render a plan that empties several hosts, as text and rows."""

from collections.abc import Iterator
from collections.abc import Sequence
import typing as ty

from nfv_sched.ops.answers.plans import drain
from nfv_sched.ops.answers.plans import drain_rendering
from nfv_sched.ops.answers.plans import rendering
from nfv_sched.ops.answers.plans import rolling
from nfv_sched.ops.cli import tables
from nfv_sched.ops.model import movable

COLUMNS = ('Round', 'Host', 'Move', 'Server', 'Flavor', 'How', 'From', 'To',
           'Why')
#: Columns of :func:`records`.
RECORD_COLUMNS = ('Round', 'Host', 'Move', 'Server', 'Server ID', 'Flavor',
                  'How', 'From', 'To', 'Why', 'VFs detached')
_LEAST_IMPORTANT = ('Flavor', 'Move')


def text(plan: rolling.RollingPlan) -> list[tables.Part]:
    """Return a plan for people."""
    columns, table_rows = COLUMNS, rows(plan)
    if not any(each.making_room for plans in plan.rounds for each in plans):
        # Each server is on the host that is emptied.
        place = columns.index('From')
        columns, *table_rows = [(*row[:place], *row[place + 1:])
                                for row in (columns, *table_rows)]
    return [_headline(plan), '', tables.Table(
        columns, table_rows, _LEAST_IMPORTANT), '', *_notes(plan)]


def _headline(plan: rolling.RollingPlan) -> str:
    count = tables.count
    number = sum(map(len, plan.rounds))
    hosts = count(number, 'host')
    if plan.not_emptied:
        hosts = f'{number} of {number + len(plan.not_emptied)} hosts'
    if not plan.rounds:
        return f'None of {count(len(plan.not_emptied), "host")} is emptied.'
    headline = f'{hosts} emptied in {count(len(plan.rounds), "round")}'
    moves = plan.moves
    kinds = [move.kind for move in moves]
    parts = [f'{kinds.count(kind)} {word}' for kind, word in (
        (movable.LIVE, 'live'), (movable.COLD, 'cold'),
        (movable.SHELVE, 'shelved')) if kind in kinds]
    if not parts:
        return f'{headline}, without a move.'
    uuids = [move.uuid for move in moves]
    twice = sum(uuids.count(uuid) > 1 for uuid in set(uuids))
    again = f' {count(twice, "server")} move{"s" * (twice == 1)} more ' \
            'than once.' if twice else ''
    return (f'{headline} by {count(len(moves), "move")}: '
            f'{", ".join(parts)}.{again}')


def _notes(plan: rolling.RollingPlan) -> Iterator[tables.Part]:
    if plan.moves:
        yield ('Each move was made in the simulator, one after the other. '
               'The hosts of a round must be enabled again before the next.')
    plans = [each for of_round in plan.rounds for each in of_round]
    yield from dict.fromkeys(
        note for each in (*plans, *plan.not_emptied)
        for note in drain_rendering.notes(each))
    if any(each.shelved for each in plans):
        yield ('Start them after the last round: before, they may take the '
               'place of others that are to move.')


def rows(plan: rolling.RollingPlan) -> list[Sequence[ty.Any]]:
    """Return a row for each move, and for each server that stays."""
    return [(number or '-', each.host, move or '-', guest.name, guest.flavor,
             drain_rendering.how(guest), guest.source,
             guest.destination or '-',
             drain_rendering.reason(guest, each.names)) if guest else
            (number or '-', each.host, *['-'] * 6, 'it has no servers'
             if number else 'a server may come back')
            for number, each, move, guest in _guests(plan)]


def records(plan: rolling.RollingPlan) -> list[Sequence[ty.Any]]:
    """Return rows for programs."""
    return [(number or '', each.host, move or '', guest.name, guest.uuid,
             guest.flavor, guest.kind or '', guest.source,
             guest.destination or '', drain_rendering.reason(
                 guest, each.names), rendering.vfs_cell(guest.vfs_detached))
            if guest else
            (number or '', each.host, *[''] * (len(RECORD_COLUMNS) - 2))
            for number, each, move, guest in _guests(plan)]


def _guests(plan: rolling.RollingPlan) -> Iterator[
        tuple[int, drain.DrainPlan, int, drain.DrainedServer | None]]:
    """Yield (round, plan of the host, number of the move, server).

    Rounds and moves are numbered from 1; 0 is for servers that stay.  A host
    without servers to show has one None.
    """
    for number, plans in enumerate(plan.rounds, 1):
        move = 0
        for each in plans:
            for guest in each.guests:
                move += 1
                yield number, each, move, guest
            if not each.guests:
                yield number, each, 0, None
    for each in plan.not_emptied:
        for guest in each.guests or (None,):
            yield 0, each, 0, guest
