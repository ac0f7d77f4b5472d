# SPDX-License-Identifier: Apache-2.0
"""Render plans, and what lost hosts do, as text, rows and commands."""

import collections
from collections.abc import Iterable, Iterator, Mapping, Sequence
import dataclasses
import shlex
import typing as ty

from nfv_sched.base import strings
from nfv_sched.ops.answers.plans import document
from nfv_sched.ops.answers.plans import gap
from nfv_sched.ops.answers.plans import refusals
from nfv_sched.ops.cli import tables
from nfv_sched.ops.model import movable
from nfv_sched.ops.run import values

#: Microversions of the compute API from which a destination can be named.
_LIVE, _COLD, _EVACUATE = '2.30', '2.56', '2.29'
#: Maximum number of kinds of hosts in the reason of one server.
_LACKS = 3
#: Maximum number of reasons to report for servers that stay.
_REASONS = 5

#: Kind of the move of a server that stays.
_STAYS = 'not at all'
_WORDS = ((movable.LIVE, 'live'), (movable.COLD, 'cold'),
          (movable.EVACUATE, 'evacuated'), (movable.SHELVE, 'shelved'),
          (None, _STAYS))
_MIGRATIONS = {'migration': 'cold migration',
               'live-migration': 'live migration'}
#: How far a host keeps a policy that is relaxed.
_KEPT = {'yes': ', which is kept there, too',
         'partly': ', which is partly kept there',
         'no': ', which is not kept there', None: ''}
_SHELVING = ('Shelving stops a server; its image is saved, unless it boots '
             'from a volume; its ports and IP addresses stay; when it is '
             'unshelved, Nova looks for a host anew, and may find none.')

_Drain = document.Drain | document.RollingDrain


class _Row(ty.NamedTuple):
    """A server of a plan, or a host without servers."""

    server: document.DrainServer | None
    why: str  #: why it moves so, or stays
    host: str | None = None  #: name of the host that is emptied, of several
    round: int | None = None  #: number of its round; None if it stays in use


_DETACHED_AND_COPIED = (
    tables.Column('VFs detached', 'vfs_detached', is_detail=True),
    tables.Column('Copied MiB', 'copied.mib', is_detail=True))
#: Columns for one host that is emptied, and for hosts that are down.
DRAIN = (
    tables.Column('Move', 'server.move'),
    tables.Column('Server', 'server.server'),
    tables.Column('Server ID', 'server.server_id', is_detail=True),
    tables.Column('Flavor', 'server.flavor'),
    tables.Column('How', 'server.how', lambda row: row.server and values.how(
        row.server.how or _STAYS, row.server.vfs_detached)),
    tables.Column('From', 'server.source'),
    tables.Column('To', 'server.destination'),
    tables.Column('Why', 'why', lambda row: row.why if row.server else (
        'it has no servers' if row.round else 'a server may come back')),
    *[dataclasses.replace(each, value=f'server.{each.value}')
      for each in _DETACHED_AND_COPIED])
#: The same for several hosts that are emptied.
ROLLING_DRAIN = (tables.Column('Round', 'round'),
                 tables.Column('Host', 'host'), *DRAIN)


# Plans that empty hosts


def drain_text(plan: _Drain) -> list[tables.Part]:
    if isinstance(plan, document.Drain):
        headline = _drain_headline(plan)
        plans, columns, least, again = [plan], DRAIN, ('Flavor',), ''
    else:
        headline = _rounds_headline(plan)
        plans = [*plan.emptied, *plan.not_emptied]
        columns, least = ROLLING_DRAIN, ('Flavor', 'Move')
        again = ' The hosts of a round must be enabled again before the next.'
    parts: list[tables.Part] = [headline + time_text(plan)]
    if rows := drain_rows(plan):
        # Otherwise each server is on the host that is emptied.
        parts += ['', _server_table(columns, rows, least, any(
            each.making_room for each in plans)), '']
    if plan.moves:
        parts.append('Each move was made in the simulator, one after the '
                     f'other.{again}')
    parts += dict.fromkeys(
        note for each in plans for note in _drain_notes(each))
    if again and any(each.shelved for each in plans):
        parts.append('Start them after the last round: before, they may take '
                     'the place of others that are to move.')
    return parts


def _server_table(columns: Iterable[tables.Column], rows: Iterable[_Row],
                  least: Sequence[str], with_source: bool) -> tables.Table:
    return dataclasses.replace(
        tables.of_rows([each for each in columns
                        if with_source or each.title != 'From'], rows),
        least_important=least)


def drain_rows(plan: _Drain | document.Evacuation) -> list[_Row]:
    if not isinstance(plan, document.RollingDrain):
        return list(_server_rows(plan))
    rows = []
    for number, each in (*((of_round.round, each) for of_round in plan.rounds
                           for each in of_round.hosts),
                         *((None, each) for each in plan.not_emptied)):
        rows += list(_server_rows(each, each.host, number)) or [
            _Row(None, '', each.host, number)]
    return rows


def _server_rows(plan: document.Drain | document.Evacuation,
                 *of_host: ty.Any) -> Iterator[_Row]:
    names = {each.server_id: each.server for each in plan.servers}
    for each in plan.servers:
        yield _Row(each, _why_so(each, names), *of_host)


def _why_so(each: document.DrainServer, names: Mapping[str, str]) -> str:
    if each.makes_room_for is not None:
        return f'makes room for {names[each.makes_room_for]}'
    if each.how not in (None, movable.SHELVE):
        return '' if each.obstacle is None else each.obstacle.text
    sentences = [_why_none(each)]
    for move in each.relaxations:
        sentences.append(f'It could go to {move.host} ' + ' and '.join(
            f'if {change.policy} may be kept less'
            if change.becomes == change.policy
            else f'with {change.becomes}{_KEPT[change.kept]}'
            for change in move.policies))
    if each.not_shelved not in (None, each.obstacle):
        sentences.append(f'Not shelved: {each.not_shelved.text}')
    return '. '.join(sentences)


def _drain_headline(plan: document.Drain) -> str:
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
    return headline + (
        '' if plan.options.max_moves else _most_text(plan, 'move'))


def _most_text(plan: document.Drain | document.Evacuation, verb: str) -> str:
    """Return how many more servers other plans may move."""
    if not {None, movable.SHELVE}.intersection(
            each.how for each in plan.servers):
        return ''
    if plan.exact:
        return f' No other order or destinations {verb} more of them.'
    return '' if plan.bound is None else (
        f' Other plans {verb} {plan.bound} at most.')


def _counts(kinds: Sequence[str | None]) -> str:
    return ', '.join(f'{kinds.count(kind)} {word}' for kind, word in _WORDS
                     if kind in kinds)


def _rounds_headline(plan: document.RollingDrain) -> str:
    count = strings.count
    number = len(plan.emptied)
    hosts = count(number, 'host')
    if plan.not_emptied:
        hosts = f'{number} of {number + len(plan.not_emptied)} hosts'
    if not plan.rounds:
        return f'None of {count(len(plan.not_emptied), "host")} is emptied.'
    headline = f'{hosts} emptied in {count(len(plan.rounds), "round")}'
    if not (moves := plan.moves):
        return f'{headline}, without a move.'
    times = collections.Counter(move.id for move in moves)
    twice = sum(number > 1 for number in times.values())
    again = f' {count(twice, "server")} move{"s" * (twice == 1)} more ' \
            'than once.' if twice else ''
    return (f'{headline} by {count(len(moves), "move")}: '
            f'{_counts([move.kind for move in moves])}.{again}')


def _drain_notes(plan: document.Drain) -> Iterator[tables.Part]:
    if any(each.vfs_detached for each in plan.servers):
        yield values.VFS_DETACHED
    if plan.shelved:
        yield _SHELVING
    for each in plan.shelved:
        yield tables.Line(
            f'To start {strings.line(each.server) or each.server_id} again: '
            f'openstack server unshelve -- {each.server_id}', is_command=True)
    for server in plan.unfinished:
        yield (f'Also holding resources of {plan.host}: {server.server}: '
               f'{unfinished_move(server, plan.host)}.')
    yield from _gaps(plan)


def unfinished_move(server: document.ReturningServer, host: str) -> str:
    what = f'its {_MIGRATIONS.get(server.how, server.how)}'
    if server.to_confirm:
        return (f'{what} to {server.destination} is not confirmed: it can '
                'come back')
    where = f'to {server.destination}' if server.source == host else (
        f'from {server.source}')
    return f'{what} {where} is {server.status}'


# Plans that evacuate servers of hosts that are down


def evacuation_text(plan: document.Evacuation) -> list[tables.Part]:
    hosts = strings.some(plan.hosts)
    if not plan.servers:
        return [f'{hosts}: no servers.']
    kinds = [each.how for each in plan.servers]
    headline = (f'{strings.count(len(kinds), "server")} of {hosts}: '
                f'{_counts(kinds)}.')
    parts = [headline + _most_text(plan, 'evacuate'), '', _server_table(
        DRAIN, drain_rows(plan), ('Flavor',), len(plan.hosts) > 1), '']
    if plan.moves:
        parts.append('Each evacuation was made in the simulator, one after '
                     'the other.')
    return [*parts, *_gaps(plan)]


# Plans that make room for new servers


#: Columns of moves that spread servers, or empty hosts.
MOVES = (
    tables.Column('Move', 'move'), tables.Column('Server', 'server'),
    tables.Column('Server ID', 'server_id', is_detail=True),
    tables.Column('Flavor', 'flavor'),
    tables.Column('Memory MiB', 'memory_mib'),
    tables.Column('How', 'how', lambda each: values.how(
        each.how, each.vfs_detached)),
    tables.Column('From', 'source'), tables.Column('To', 'destination'),
    *_DETACHED_AND_COPIED)
DEFRAG = (
    *MOVES[:-2],
    tables.Column('Makes room for', lambda each: sum(
        gain.servers for gain in each.gains), lambda each: ', '.join(
            f'{gain.servers} on {gain.host}' if gain.servers > 0
            else f'{-gain.servers} less on {gain.host}'
            for gain in each.gains)),
    *_DETACHED_AND_COPIED)


def defrag_text(plan: document.Defrag) -> list[tables.Part]:
    table = ['', dataclasses.replace(
        tables.of_rows(DEFRAG, plan.moves),
        least_important=('Memory MiB', 'Flavor', 'Makes room for')), ''
    ] if plan.moves else []
    return [_defrag_headline(plan) + time_text(plan), *table,
            *_defrag_notes(plan)]


def _defrag_headline(plan: document.Defrag) -> str:
    verb = 'fits' if plan.fits_before == 1 else 'fit'
    now = f'{plan.fits_before} more {plan.flavor} {verb} now'
    most = strings.count(plan.options.max_moves, 'move')
    rest = 'no moves were found that make room for ' + (
        str(plan.wanted) if plan.moves else 'more')
    if plan.bound is not None:
        rest = (f'no plan of {most} makes room for more'
                if plan.bound <= plan.fits_after
                else f'{rest}. With {most}, {plan.bound} fit at most')
    if not plan.moves:
        if plan.enough:
            return f'{now}: no move is needed for {plan.wanted}.'
        return f'{now}; {rest}.'
    live = all(each.how == movable.LIVE for each in plan.moves)
    moves = strings.count(len(plan.moves), 'live ' * live + 'migration')
    fewest = ', and no fewer do' if plan.exact else ''
    if plan.enough:
        return f'{now}, {plan.fits_after} after {moves}{fewest}.'
    return f'{now}, {plan.fits_after} after {moves}; {rest}.'


def rearrange_text(plan: document.Rearrangement) -> list[tables.Part]:
    table = ['', dataclasses.replace(
        tables.of_rows(MOVES, plan.moves),
        least_important=('Memory MiB', 'Flavor')), ''] if plan.moves else []
    parts = [_rearrange_headline(plan) + time_text(plan), *table]
    if plan.moves:
        parts.append('Each move was made in the simulator, one after the '
                     'other.')
    if plan.stranded is not None:
        lost = f'{strings.count(plan.stranded, "server")} at most'
        parts.append(
            f'Without the empty hosts, {lost if plan.stranded else "none"} '
            'would find no host if another one were lost.')
    return [*parts, *_move_notes(plan)]


def _rearrange_headline(plan: document.Rearrangement) -> str:
    even = plan.options.spread
    most = strings.count(plan.options.max_moves, 'move')
    noun = 'CPU' if even else 'host'
    before = strings.count(plan.before, noun)
    state = (f'NUMA nodes are uneven by {before}' if even
             else f'{before} without servers')
    if plan.moves and plan.options.hosts and plan.enough:
        rest = f'{"no" if plan.exact else "perhaps"} fewer moves do'
    elif plan.bound == plan.after or even and not plan.after:
        rest = f'no plan of {most} does better'
    elif plan.bound is None:
        rest = 'whether other moves do better is not known'
    else:
        rest = (f'no plan of {most} has '
                f'{"fewer" if even else "more"} than {plan.bound}')
    if not plan.moves:
        return (f'{state}: no move is needed.'
                if plan.exact and plan.bound is None or (
                    even and not plan.before)
                else f'{state}: no moves were found; {rest}.')
    moves = strings.count(len(plan.moves), 'migration')
    memory = sum(each.memory_mib for each in plan.moves)
    return (f'{state} now, {strings.count(plan.after, noun)} after {moves} '
            f'with {memory} MiB of memory; {rest}.')


def _defrag_notes(plan: document.Defrag) -> Iterator[str]:
    yield f'Ports of new servers: {plan.ports.label}, {plan.ports.reason}.'
    if plan.moves:
        booted = min(plan.fits_after, plan.wanted)
        yield ('Each move was made in the simulator, one after the other, '
               f'and {strings.count(booted, "server")} of {plan.flavor} '
               'booted then.')
    yield from _move_notes(plan)


def _move_notes(
        plan: document.Defrag | document.Rearrangement) -> Iterator[str]:
    if any(each.vfs_detached for each in plan.moves):
        yield values.VFS_DETACHED
    yield from _gaps(plan)
    reasons = collections.Counter(
        each.obstacle.text for each in plan.not_movable).most_common()
    for reason, count in reasons[:_REASONS]:
        yield f'{strings.count(count, "server")} cannot be moved: {reason}'
    if len(reasons) > _REASONS:
        yield (f'{sum(count for _reason, count in reasons[_REASONS:])} more '
               f'cannot be moved for other reasons; -f json has them all.')


# Lost hosts


#: Columns of :func:`failover_records`.
FAILOVER = ('Host', 'Server', 'Server ID', 'Flavor', 'Why')


def failover_text(effect: document.Failover) -> list[tables.Part]:
    hosts = [loss for loss in effect.hosts if loss.stranded]
    condition, whose = (
        f'If any one host of {len(effect.hosts)} is lost', 'all its')
    if effect.at_once > 1:
        condition, whose = (f'If any {effect.at_once} of {len(effect.hosts)} '
                            'hosts are lost at once', 'all their')
    if effect.together:
        condition, whose = (
            f'If {strings.count(len(effect.hosts), "host")} are lost at once',
            f'their {sum(loss.servers for loss in effect.hosts)}')
    parts: list[tables.Part] = [tables.Line(
        f'{condition}, {whose} servers find a place.', tables.GOOD)]
    if hosts:
        stranded = sum(len(loss.stranded) for loss in hosts)
        parts = [tables.Line(
            f'{condition}: {strings.count(stranded, "server")} of '
            f'{strings.count(len(hosts), "host")} '
            f'{"finds" if stranded == 1 else "find"} no place'
            f'{"" if effect.at_once == 1 else ", or more"}.', tables.BAD),
            '', failover_table(effect)]
    return [*parts, *map(gap_text, dict.fromkeys(
        each for loss in effect.hosts for each in loss.unread))]


def failover_table(effect: document.Failover) -> tables.Table:
    return tables.Table(
        ('Host', 'Servers', 'Evacuable', 'Stranded'),
        [(' with '.join(filter(None, (loss.host, ', '.join(loss.lost_with)))),
          loss.servers, loss.evacuable,
          tables.Lines([f'{each.server} ({each.flavor}): {_why_none(each)}'
                        for each in loss.stranded]))
         for loss in effect.hosts if loss.stranded],
        ('Evacuable', 'Servers'))


def failover_records(effect: document.Failover) -> list[Sequence[ty.Any]]:
    return [(loss.host, each.server, each.server_id, each.flavor,
             _why_none(each))
            for loss in effect.hosts for each in loss.stranded]


# What all of them have


def time_text(plan: ty.Any) -> str:
    """Return a sentence for the headline; empty if nothing was estimated."""
    estimates = document.estimates_of(plan)
    if not estimates or not plan.moves:
        return ''
    estimate, seconds = estimates[0], [each.seconds for each in estimates]
    if None in seconds:
        return ' How long it takes is not known, as local disks are not known.'
    return (f' About {strings.count(max(1, -(-sum(seconds) // 60)), "minute")}'
            f' at {estimate.mib_per_second} MiB/s, {estimate.parallel} at '
            'once: an estimate.')


def parts(plan: ty.Any) -> tuple[
        list[tables.Part], Sequence[tables.Column], Sequence[ty.Any]]:
    """Return the text of a plan, and the columns and rows of its table."""
    match plan:
        case document.Defrag():
            return defrag_text(plan), DEFRAG, plan.moves
        case document.Rearrangement():
            return rearrange_text(plan), MOVES, plan.moves
        case document.Evacuation():
            return evacuation_text(plan), DRAIN, drain_rows(plan)
        case document.RollingDrain():
            return drain_text(plan), ROLLING_DRAIN, drain_rows(plan)
    return drain_text(plan), DRAIN, drain_rows(plan)


def commands(plan: values.MovePlan) -> Iterator[str]:
    """Yield commands of the client that disable hosts, and begin each move.

    Checks, waiting and confirming are left to ``plan run``.
    """
    for host in plan.closed_hosts:
        yield _openstack(
            None, 'compute', 'service', 'set', '--disable',
            '--disable-reason', values.REASON, '--', host, 'nova-compute')
    for move in plan.moves:
        if move.kind == movable.SHELVE:
            yield _openstack(
                None, 'server', 'shelve', '--offload', '--', move.id)
            continue
        if move.is_evacuation:
            yield _openstack(_EVACUATE, 'server', 'evacuate', '--wait',
                             '--host', move.destination, '--', move.id)
            continue
        live = move.kind == movable.LIVE
        yield _openstack(
            _LIVE if live else _COLD, 'server', 'migrate',
            *['--live-migration'] * live, '--host', move.destination, '--',
            move.id)


def _openstack(version: str | None, *words: str) -> str:
    of_version = ('--os-compute-api-version', version) if version else ()
    return shlex.join(('openstack', *of_version, *words))


def _why_none(each: document.DrainServer | document.StrandedServer) -> str:
    return (lacking_text(each.lacks) if each.obstacle is None
            else each.obstacle.text)


def lacking_text(lacking: Sequence[document.CapacityLack]) -> str:
    if not lacking:
        return 'there is no other host'
    parts = [_lack_text(each) for each in lacking[:_LACKS]]
    if len(lacking) > _LACKS:
        more = sum(each.hosts for each in lacking[_LACKS:])
        parts.append(f'other causes on {strings.count(more, "host")}')
    return f'no host takes it: {"; ".join(parts)}'


def _lack_text(lack: document.CapacityLack) -> str:
    kind = refusals.LackKind(lack.kind)
    if kind is refusals.LackKind.GUESTS:
        more_hosts = '' if lack.hosts == 1 else (
            f' and {strings.count(lack.hosts - 1, "other host")}')
        return (f'{lack.nearest}{more_hosts} would, but other servers that '
                'have to move are placed there first')
    what = kind.clause.format(
        ' and '.join(name.removesuffix('Filter') for name in lack.names)
        if kind is refusals.LackKind.FILTERS else ', '.join(lack.names))
    if lack.why is None:
        return f'{what} on {strings.count(lack.hosts, "host")}'
    # The figures are those of one host.
    nearest = '' if lack.hosts == 1 else (
        f', the nearest of {lack.hosts} hosts')
    return f'{what} on {lack.nearest}{nearest} ({lack.why})'


def _gaps(plan: document.Drain | document.Evacuation | document.Defrag
          | document.Rearrangement) -> Iterator[str]:
    for failed in plan.failed:
        yield f'Not possible in the simulator: {failed}'
    yield from map(gap_text, plan.unread)


def gap_text(missing: document.UnreadData) -> str:
    kind = gap.GapKind(missing.kind)
    names = (strings.brief(', '.join(missing.names))
             if kind is gap.GapKind.RECORD else strings.some(missing.names))
    return kind.clause.format(
        names=names, of_names=f' of {names}' if names else '')
