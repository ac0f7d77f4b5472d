# SPDX-License-Identifier: Apache-2.0
"""Render a plan that empties a host, as text, rows and commands."""

from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import typing as ty

from nfv_sched.ops.answers.plans import drain
from nfv_sched.ops.answers.plans import relaxing
from nfv_sched.ops.answers.plans import rendering
from nfv_sched.ops.cli import tables
from nfv_sched.ops.model import movable
from nfv_sched.ops.run import values

COLUMNS = ('Move', 'Server', 'Flavor', 'How', 'To', 'Why')
#: Columns of a plan with moves on other hosts.
_ROOM_COLUMNS = ('Move', 'Server', 'Flavor', 'How', 'From', 'To', 'Why')
#: Columns of :func:`records`.
RECORD_COLUMNS = ('Move', 'Server', 'Server ID', 'Flavor', 'How', 'From', 'To',
                  'Why', 'VFs detached')
_LEAST_IMPORTANT = ('Flavor',)
#: Kind of the move of a server that stays.
STAYS = 'not at all'
_SHELVING = ('Shelving stops a server; its image is saved, unless it boots '
             'from a volume; its ports and IP addresses stay; when it is '
             'unshelved, Nova looks for a host anew, and may find none.')


def text(plan: drain.DrainPlan) -> list[tables.Part]:
    """Return a plan for people."""
    columns, table_rows = COLUMNS, rows(plan)
    if plan.making_room:
        columns = _ROOM_COLUMNS
        table_rows = [(*row[:4], guest.source, *row[4:])
                      for row, guest in zip(table_rows, plan.guests)]
    table = ['', tables.Table(
        columns, table_rows, _LEAST_IMPORTANT), ''] if plan.guests else []
    return [_headline(plan), *table, *_notes(plan)]


def _headline(plan: drain.DrainPlan) -> str:
    if not plan.guests:
        return f'{plan.host} has no servers.'
    kinds = [guest.kind for guest in plan.guests if guest.room_for is None]
    parts = [f'{kinds.count(kind)} {word}' for kind, word in (
        (movable.LIVE, 'live'), (movable.COLD, 'cold'),
        (movable.SHELVE, 'shelved'), (None, STAYS))
        if kinds.count(kind)]
    guests = tables.count(len(kinds), "server")
    if plan.others is not None:
        guests = f'{len(kinds)} of {len(kinds) + plan.others} servers'
    headline = f'{guests} of {plan.host}: {", ".join(parts)}.'
    if plan.making_room:
        headline += (f' {tables.count(len(plan.making_room), "move")} on '
                     'other hosts to make room.')
    if (plan.staying or plan.shelved) and plan.exact:
        return f'{headline} No other order or destinations move more of them.'
    return headline


def _notes(plan: drain.DrainPlan) -> Iterator[tables.Part]:
    if plan.moves:
        yield 'Each move was made in the simulator, one after the other.'
    yield from notes(plan)


def notes(plan: drain.DrainPlan) -> Iterator[tables.Part]:
    """Yield what else is to be known of a plan."""
    if any(guest.vfs_detached for guest in plan.guests):
        yield values.VFS_DETACHED
    if plan.shelved:
        yield _SHELVING
    for guest in plan.shelved:
        yield tables.Line(rendering.to_unshelve(guest.uuid, guest.name),
                          is_command=True)
    for server in plan.unfinished:
        yield (f'Also holding resources of {plan.host}: {server.name}: '
               f'{server.reason}.')
    for failed in plan.failed:
        yield f'Not possible in the simulator: {failed}'
    yield from map(rendering.gap_text, plan.gaps)


def rows(plan: drain.DrainPlan) -> list[Sequence[ty.Any]]:
    """Return a row for each server."""
    return [(number if guest.kind else '-', guest.name, guest.flavor,
             how(guest), guest.destination or '-', reason(guest, plan.names))
            for number, guest in enumerate(plan.guests, 1)]


def how(guest: drain.DrainedServer) -> str:
    """Return how a server is moved, and how many VFs are detached."""
    return values.how(guest.kind or STAYS, guest.vfs_detached)


def reason(guest: drain.DrainedServer, names: Mapping[str, str]) -> str:
    """Return why a server is not moved live, or not at all.

    :param names: name of each server, by UUID
    """
    if guest.room_for is not None:
        return f'makes room for {names[guest.room_for]}'
    if guest.kind not in (None, movable.SHELVE):
        return '' if guest.reason is None else str(guest.reason)
    sentences = [rendering.lacking_text(guest.lacking)
                 if guest.reason is None else str(guest.reason),
                 *map(_relaxed_text, guest.relaxed)]
    if guest.not_shelved not in (None, guest.reason):
        sentences.append(f'Not shelved: {guest.not_shelved}')
    return '. '.join(sentences)


def _relaxed_text(move: relaxing.RelaxedMove) -> str:
    """Return a sentence about policies that would have to be relaxed."""
    return (f'It could go to {move.host} '
            + ' and '.join(map(_policy_text, move.policies)))


def _policy_text(policy: relaxing.RelaxedPolicy) -> str:
    if policy.becomes == policy.policy:
        return f'if {policy.policy} may be kept less'
    match policy.kept:
        case relaxing.Kept.YES:
            degree = ', which is kept there, too'
        case relaxing.Kept.PARTLY:
            degree = ', which is partly kept there'
        case relaxing.Kept.NO:
            degree = ', which is not kept there'
        case _:
            degree = ''
    return f'with {policy.becomes}{degree}'


def records(plan: drain.DrainPlan) -> list[Sequence[ty.Any]]:
    """Return a row for each server, for programs."""
    return [(number if guest.kind else '', guest.name, guest.uuid,
             guest.flavor, guest.kind or '', guest.source,
             guest.destination or '', reason(guest, plan.names),
             rendering.vfs_cell(guest.vfs_detached))
            for number, guest in enumerate(plan.guests, 1)]


def commands(plan: drain.DrainPlan) -> Iterator[str]:
    """Yield commands to move servers; first, to disable a host if all go."""
    if plan.others is None:
        yield rendering.disable(plan.host, values.REASON)
    yield from rendering.commands(plan.moves)
