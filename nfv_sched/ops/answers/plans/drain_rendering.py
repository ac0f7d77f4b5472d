# SPDX-License-Identifier: Apache-2.0
"""Render plans that empty one host, or several, as text, rows and commands."""

from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import typing as ty

from nfv_sched.base import strings
from nfv_sched.ops.answers.plans import document
from nfv_sched.ops.answers.plans import rendering
from nfv_sched.ops.cli import tables
from nfv_sched.ops.model import movable
from nfv_sched.ops.run import values

#: Columns for one host; for several "Round" and "Host" precede them.
_COLUMNS = ('Move', 'Server', 'Server ID', 'Flavor', 'How', 'From', 'To',
            'Why', 'VFs detached')
#: Columns that are not for people.
_FOR_PROGRAMS = ('Server ID', 'VFs detached')
#: Kind of the move of a server that stays.
_STAYS = 'not at all'
_WORDS = ((movable.LIVE, 'live'), (movable.COLD, 'cold'),
          (movable.SHELVE, 'shelved'), (None, _STAYS))
_MIGRATIONS = {'migration': 'cold migration',
               'live-migration': 'live migration'}
#: How far a host keeps a policy that is relaxed.
_KEPT = {'yes': ', which is kept there, too',
         'partly': ', which is partly kept there',
         'no': ', which is not kept there', None: ''}
_SHELVING = ('Shelving stops a server; its image is saved, unless it boots '
             'from a volume; its ports and IP addresses stay; when it is '
             'unshelved, Nova looks for a host anew, and may find none.')

_Plan = document.Drain | document.RollingDrain
#: A row: title of the column -> value; "how" and "why" are for people.
_Row = Mapping[str, ty.Any]


def text(plan: _Plan) -> list[tables.Part]:
    if isinstance(plan, document.Drain):
        parts: list[tables.Part] = [_headline(plan)]
        plans, least, again = [plan], ('Flavor',), ''
    else:
        parts = [_headline_of_rounds(plan)]
        plans, least = [*plan.emptied, *plan.not_emptied], ('Flavor', 'Move')
        again = ' The hosts of a round must be enabled again before the next.'
    rows = [{**row, 'How': row.get('how'), 'Why': row['why']}
            for row in _rows(plan)]
    if rows:
        # Otherwise each server is on the host that is emptied.
        several_sources = any(each.making_room for each in plans)
        shown = [title for title in columns(plan)
                 if title not in _FOR_PROGRAMS
                 and (several_sources or title != 'From')]
        parts += ['', tables.Table(shown, [
            [row.get(title, '') or ('' if title == 'Why' else '-')
             for title in shown] for row in rows], least), '']
    if plan.moves:
        parts.append('Each move was made in the simulator, one after the '
                     f'other.{again}')
    parts += dict.fromkeys(note for each in plans for note in _notes(each))
    if again and any(each.shelved for each in plans):
        parts.append('Start them after the last round: before, they may take '
                     'the place of others that are to move.')
    return parts


def columns(plan: _Plan) -> Sequence[str]:
    return _COLUMNS if isinstance(plan, document.Drain) else (
        'Round', 'Host', *_COLUMNS)


def records(plan: _Plan) -> list[Sequence[ty.Any]]:
    titles = columns(plan)
    return [[row.get(title, '') for title in titles] for row in _rows(plan)]


def _rows(plan: _Plan) -> Iterator[_Row]:
    if isinstance(plan, document.RollingDrain):
        for number, each in (
                *((of_round.round, each) for of_round in plan.rounds
                  for each in of_round.hosts),
                *(('', each) for each in plan.not_emptied)):
            for row in _rows(each) if each.servers else [{
                    'why': 'it has no servers' if number
                    else 'a server may come back'}]:
                yield {'Round': number, 'Host': each.host, **row}
        return
    names = {each.server_id: each.server for each in plan.servers}
    for each in plan.servers:
        why = _why(each, names)
        yield {
            'Move': each.move or '', 'Server': each.server,
            'Server ID': each.server_id, 'Flavor': each.flavor,
            'How': each.how or '',
            'how': values.how(each.how or _STAYS, each.vfs_detached),
            'From': each.source, 'To': each.destination or '',
            'Why': why, 'why': why,
            'VFs detached': rendering.vfs_cell(each.vfs_detached)}


def _headline(plan: document.Drain) -> str:
    if not plan.servers:
        return f'{plan.host} has no servers.'
    kinds = [each.how for each in plan.servers if each.makes_room_for is None]
    servers = strings.count(len(kinds), 'server')
    if plan.others is not None:
        servers = f'{len(kinds)} of {len(kinds) + plan.others} servers'
    headline = f'{servers} of {plan.host}: {_counts(kinds)}.'
    if plan.making_room:
        headline += (f' {strings.count(len(plan.making_room), "move")} on '
                     'other hosts to make room.')
    if (plan.staying or plan.shelved) and plan.exact:
        return f'{headline} No other order or destinations move more of them.'
    return headline


def _counts(kinds: Sequence[str | None]) -> str:
    return ', '.join(f'{kinds.count(kind)} {word}' for kind, word in _WORDS
                     if kind in kinds)


def _headline_of_rounds(plan: document.RollingDrain) -> str:
    count = strings.count
    number = len(plan.emptied)
    hosts = count(number, 'host')
    if plan.not_emptied:
        hosts = f'{number} of {number + len(plan.not_emptied)} hosts'
    if not plan.rounds:
        return f'None of {count(len(plan.not_emptied), "host")} is emptied.'
    headline = f'{hosts} emptied in {count(len(plan.rounds), "round")}'
    moves = plan.moves
    if not moves:
        return f'{headline}, without a move.'
    uuids = [move.id for move in moves]
    twice = sum(uuids.count(uuid) > 1 for uuid in set(uuids))
    again = f' {count(twice, "server")} move{"s" * (twice == 1)} more ' \
            'than once.' if twice else ''
    return (f'{headline} by {count(len(moves), "move")}: '
            f'{_counts([move.kind for move in moves])}.{again}')


def _notes(plan: document.Drain) -> Iterator[tables.Part]:
    if any(each.vfs_detached for each in plan.servers):
        yield values.VFS_DETACHED
    if plan.shelved:
        yield _SHELVING
    for each in plan.shelved:
        yield tables.Line(rendering.to_unshelve(each.server_id, each.server),
                          is_command=True)
    for server in plan.unfinished:
        yield (f'Also holding resources of {plan.host}: {server.server}: '
               f'{unfinished_move(server, plan.host)}.')
    for failed in plan.failed:
        yield f'Not possible in the simulator: {failed}'
    yield from map(rendering.gap_text, plan.unread)


def unfinished_move(server: document.ReturningServer, host: str) -> str:
    what = f'its {_MIGRATIONS.get(server.how, server.how)}'
    if server.to_confirm:
        return (f'{what} to {server.destination} is not confirmed: it can '
                'come back')
    where = f'to {server.destination}' if server.source == host else (
        f'from {server.source}')
    return f'{what} {where} is {server.status}'


def _why(each: document.DrainServer, names: Mapping[str, str]) -> str:
    if each.makes_room_for is not None:
        return f'makes room for {names[each.makes_room_for]}'
    if each.how not in (None, movable.SHELVE):
        return '' if each.obstacle is None else each.obstacle.text
    sentences = [rendering.why(each), *map(_relaxed_text, each.relaxations)]
    if each.not_shelved not in (None, each.obstacle):
        sentences.append(f'Not shelved: {each.not_shelved.text}')
    return '. '.join(sentences)


def _relaxed_text(move: document.MoveRelaxation) -> str:
    return f'It could go to {move.host} ' + ' and '.join(
        f'if {each.policy} may be kept less' if each.becomes == each.policy
        else f'with {each.becomes}{_KEPT[each.kept]}'
        for each in move.policies)


def commands(plan: document.Drain) -> Iterator[str]:
    """Yield commands to move servers; first, to disable a host if all go."""
    if plan.others is None:
        yield rendering.disable(plan.host, values.REASON)
    yield from rendering.commands(plan.moves)
