# SPDX-License-Identifier: Apache-2.0
"""Define the documents of plans, and of ``cloud failover``."""

from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
import dataclasses
import typing as ty

from nfv_sched.base import strings
from nfv_sched.ops.answers import requests as request_document
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.run import values

if ty.TYPE_CHECKING:
    from nfv_sched.ops.answers.plans import defrag
    from nfv_sched.ops.answers.plans import drain
    from nfv_sched.ops.answers.plans import failover
    from nfv_sched.ops.answers.plans import gap
    from nfv_sched.ops.answers.plans import refusals
    from nfv_sched.ops.answers.plans import rolling
    from nfv_sched.ops.model import movable


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class MoveObstacle:
    """A reason why Nova does not move a server so, to whichever host.

    :ivar kind: kind of the obstacle, such as "devices", "busy", "state"
    :ivar name: what it is about: the host, the state, the task, Nova's
        message; null if the kind says all
    :ivar text: the same, for people, as a clause
    """

    kind: str
    name: str | None
    text: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CapacityLack:
    """A reason why some hosts do not take a server.

    :ivar kind: "placement", "filters", "claim" of nova-compute, "policies"
        that would be kept less, "group", "hint", "cell", "simulator", "failed"
        if a move there has failed in this run of the plan, or "guests" if
        other servers from there take the capacity
    :ivar names: the filters, requirements, policies or hints
    :ivar hosts: number of hosts of which this is so
    :ivar nearest: name of the host that comes nearest
    :ivar nearest_id: UUID of its compute node
    :ivar why: the amount needed and the amount on that host, for people; null
        if that is not known
    """

    kind: str
    names: tuple[str, ...]
    hosts: int
    nearest: str
    nearest_id: str | None = None
    why: str | None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class UnreadData:
    """Data that was not read: the result may be wrong because of it.

    :ivar kind: "neutron", "placement", "cell", "flavors", "migrations",
        "ports", "port-resources" or "record"
    :ivar names: hosts, cells or servers that lack it, or the error of a
        record; empty if all do
    """

    kind: str
    names: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PolicyChange:
    """A policy that is in the way of a move.

    :ivar policy: extra spec with its value
    :ivar becomes: the same with the value that it has to have; that of now if
        it only has to be kept less
    :ivar kept: whether the host keeps it then; null if that is not known
    """

    policy: str
    becomes: str
    kept: ty.Literal['yes', 'partly', 'no'] | None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class MoveRelaxation:
    """A move that is possible if policies are relaxed; it is not planned.

    :ivar policies: one policy, or two that have to be relaxed together
    :ivar host: name of the host that takes the server then
    :ivar host_id: UUID of its compute node
    """

    policies: tuple[PolicyChange, ...]
    host: str
    host_id: str | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class DrainServer:
    """A server of the host, or one elsewhere that makes room, and its move.

    :ivar move: number of the move; null if it stays
    :ivar server: name of the server
    :ivar server_id: its UUID
    :ivar flavor: name of its flavor
    :ivar flavor_id: ID of the flavor; null if it was not read
    :ivar how: "live" or "cold" migration, or "shelve"; null if it stays
    :ivar source: name of its host
    :ivar source_id: UUID of its compute node
    :ivar destination: name of the host to which it goes; null if it stays or
        is shelved
    :ivar destination_id: UUID of its compute node; null likewise
    :ivar obstacle: why it is not moved live, or cannot be moved; null if
        nothing is in the way
    :ivar lacks: if it stays, or is shelved, for want of a host, why each does
        not take it
    :ivar related: UUIDs of the servers that it is to be with or apart from
    :ivar makes_room_for: UUID of the server of the host for which it makes
        room; null for a server of the host
    :ivar relaxations: with --relax: moves that relaxed policies would allow
    :ivar not_shelved: with --shelve: why it is not shelved, if Nova does not,
        or it is locked
    :ivar vfs_detached: number of its VFs, or other devices of ports, that Nova
        detaches at the start of a live migration to attach others at the end;
        null if its ports are not known
    """

    move: int | None
    server: str
    server_id: str
    flavor: str
    flavor_id: str | None = None
    how: ty.Literal['live', 'cold', 'shelve'] | None
    source: str
    source_id: str | None = None
    destination: str | None
    destination_id: str | None
    obstacle: MoveObstacle | None
    lacks: tuple[CapacityLack, ...]
    related: tuple[str, ...]
    makes_room_for: str | None = None
    relaxations: tuple[MoveRelaxation, ...] = ()
    not_shelved: MoveObstacle | None = None
    vfs_detached: int | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ReturningServer:
    """A server elsewhere that may come, or come back, to the host.

    :ivar server: name of the server
    :ivar server_id: its UUID
    :ivar how: kind of its move, as Nova has it: "migration", "resize",
        "live-migration" or "evacuation"
    :ivar status: status of the migration in Nova
    :ivar source: name of the host that it leaves; null if not known
    :ivar source_id: UUID of its compute node; null likewise
    :ivar destination: name of the host to which it goes; null if not known
    :ivar destination_id: UUID of its compute node; null likewise
    :ivar to_confirm: whether the move has ended, and waits to be confirmed
    """

    server: str
    server_id: str
    how: str
    status: str
    source: str | None
    source_id: str | None = None
    destination: str | None
    destination_id: str | None = None
    to_confirm: bool


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class DrainOptions:
    """Options with which a host is emptied.

    :ivar make_room: whether servers of other hosts may be moved first
    :ivar relax: whether policies are named that keep servers there
    :ivar shelve: whether servers that find no other host are shelved
    :ivar cold_for_vfs: whether servers are migrated cold of which a live
        migration would detach VFs
    """

    make_room: bool
    relax: bool
    shelve: bool = False
    cold_for_vfs: bool = False


#: Kind of a lack: see :class:`CapacityLack`.
_FAILED = 'failed'
_NO_OPTIONS = DrainOptions(make_room=False, relax=False)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Drain:
    """A plan that empties a host.

    :ivar host: name of the host
    :ivar host_id: UUID of its compute node
    :ivar servers: servers that are moved, in order, also those elsewhere that
        make room; then those that are shelved, and those that stay
    :ivar others: number of other servers of the host, which are not to be
        moved; null if all are
    :ivar unfinished: servers elsewhere that hold resources on the host
    :ivar failed: moves that the simulator refused, for people
    :ivar exact: whether no plan moves more servers
    :ivar options: options with which it was planned
    :ivar unread: data that was not read
    """

    host: str
    host_id: str
    servers: tuple[DrainServer, ...]
    others: int | None
    unfinished: tuple[ReturningServer, ...]
    failed: tuple[str, ...]
    exact: bool
    options: DrainOptions
    unread: tuple[UnreadData, ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class DrainRound:
    """Hosts that are emptied at the same time.

    :ivar round: number of the round; the first is 1, or that in which a new
        plan was made
    :ivar enabled: names of hosts of earlier rounds that must be enabled again
        before this one
    :ivar hosts: plan of each host, in order; moves are numbered through the
        round
    :ivar given_up: names of hosts that were disabled for this round, and are
        not emptied in it since a new plan was made
    """

    round: int
    enabled: tuple[str, ...]
    hosts: tuple[Drain, ...]
    given_up: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RollingDrain:
    """A plan that empties several hosts in rounds.

    :ivar at_once: highest number of hosts of a round
    :ivar rounds: rounds, in order
    :ivar not_emptied: hosts that cannot be emptied, with the servers that
        cannot be moved
    """

    at_once: int
    rounds: tuple[DrainRound, ...]
    not_emptied: tuple[Drain, ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CapacityGain:
    """A change of the number of new servers that fit a host.

    :ivar host: name of the host
    :ivar host_id: UUID of its compute node
    :ivar servers: how many more fit; negative for fewer
    """

    host: str
    host_id: str | None = None
    servers: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class DefragMove:
    """A move, and its effect.

    :ivar move: number of the move
    :ivar server: name of the server
    :ivar server_id: its UUID
    :ivar flavor: name of its flavor
    :ivar flavor_id: ID of the flavor; null if it was not read
    :ivar memory_mib: memory that is copied, in MiB
    :ivar how: kind of the migration
    :ivar paused: whether it is paused, and stays so
    :ivar source: name of its host
    :ivar source_id: UUID of its compute node
    :ivar destination: name of the host to which it goes
    :ivar destination_id: UUID of its compute node
    :ivar gains: hosts on which more or fewer new servers fit after this move
    :ivar related: UUIDs of the servers that it is to be with or apart from
    :ivar vfs_detached: number of its VFs, or other devices of ports, that Nova
        detaches at the start of a live migration to attach others at the end;
        null if its ports are not known
    """

    move: int
    server: str
    server_id: str
    flavor: str
    flavor_id: str | None = None
    memory_mib: int
    how: ty.Literal['live', 'cold']
    paused: bool
    source: str
    source_id: str | None = None
    destination: str
    destination_id: str
    gains: tuple[CapacityGain, ...]
    related: tuple[str, ...]
    vfs_detached: int | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class FixedServer:
    """A server that cannot be moved.

    :ivar server: its name
    :ivar server_id: its UUID
    :ivar obstacle: why it is not moved
    """

    server: str
    server_id: str
    obstacle: MoveObstacle


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class DefragOptions:
    """Options with which moves were planned.

    :ivar max_moves: maximum number of moves
    :ivar avoid: patterns of names of servers and hosts
    :ivar networks: networks of each new server, as of --network
    :ivar like: name or UUID of the server whose ports new ones have; null
        without --like
    :ivar ports: number of ports of each new server; null without --ports
    :ivar cold_for_vfs: whether servers are migrated cold of which a live
        migration would detach VFs
    """

    max_moves: int
    avoid: tuple[str, ...]
    networks: tuple[str, ...]
    like: str | None
    ports: int | None
    cold_for_vfs: bool = False


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Defrag:
    """Moves after which more servers of a flavor fit.

    :ivar flavor: name of the flavor
    :ivar flavor_id: ID of the flavor; null if it was not read
    :ivar wanted: number of new servers that are to fit
    :ivar fits_before: number that fit without any move
    :ivar fits_after: number that fit after the moves, as far as was counted
    :ivar enough: whether as many fit as wanted
    :ivar moves: moves, in order
    :ivar not_movable: servers that cannot be moved
    :ivar failed: moves that the simulator refused, for people
    :ivar exact: whether no smaller number of moves has this effect
    :ivar ports: ports that each new server is assumed to have
    :ivar options: options with which it was planned
    :ivar unread: data that was not read
    """

    flavor: str
    flavor_id: str | None = None
    wanted: int
    fits_before: int
    fits_after: int
    enough: bool
    moves: tuple[DefragMove, ...]
    not_movable: tuple[FixedServer, ...]
    failed: tuple[str, ...]
    exact: bool
    ports: request_document.NewPorts
    options: DefragOptions
    unread: tuple[UnreadData, ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class StrandedServer:
    """A server that finds no other host.

    :ivar server: its name
    :ivar server_id: its UUID
    :ivar flavor: name of its flavor
    :ivar flavor_id: ID of the flavor; null if it was not read
    :ivar obstacle: why it is not evacuated at all; null if nothing is in the
        way
    :ivar lacks: why each host does not take it
    """

    server: str
    server_id: str
    flavor: str
    flavor_id: str | None = None
    obstacle: MoveObstacle | None
    lacks: tuple[CapacityLack, ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class LostHost:
    """The effect of a lost host on its servers.

    :ivar host: name of the host
    :ivar host_id: UUID of its compute node
    :ivar servers: number of its servers
    :ivar evacuable: number of those that find a host
    :ivar stranded: the others
    :ivar unread: data that was not read
    """

    host: str
    host_id: str
    servers: int
    evacuable: int
    stranded: tuple[StrandedServer, ...]
    unread: tuple[UnreadData, ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Failover:
    """The effect of lost hosts on servers.

    :ivar together: whether all of the hosts are lost at once; otherwise each
        by itself
    :ivar hosts: lost hosts, with the servers of each
    """

    together: bool
    hosts: tuple[LostHost, ...]


def _host_ids(cloud: snapshot.Cloud) -> dict[str, str]:
    # Of several compute nodes of one service, the first counts.
    return {host.name: host.uuid for host in reversed(cloud.hosts)}


def _flavor_ids(cloud: snapshot.Cloud) -> dict[str, str | None]:
    """Return the ID of the flavor of each server, by UUID."""
    return {server.uuid: server.flavor.id or None for server in cloud.servers}


def drained(plan: 'drain.DrainPlan', cloud: snapshot.Cloud,
            options: DrainOptions = _NO_OPTIONS, first: int = 1) -> Drain:
    """Return the document of a plan that empties a host.

    :param first: number of the first move
    """
    host_ids, flavor_ids = _host_ids(cloud), _flavor_ids(cloud)
    related = {move.uuid: move.related for move in plan.moves}
    return Drain(
        host=plan.host, host_id=host_ids[plan.host],
        servers=tuple([DrainServer(
            move=number if each.kind else None, server=each.name,
            server_id=each.uuid, flavor=each.flavor,
            flavor_id=flavor_ids.get(each.uuid),
            how=ty.cast(ty.Any, each.kind and each.kind.value),
            source=each.source, source_id=host_ids.get(each.source),
            destination=each.destination,
            destination_id=host_ids.get(each.destination or ''),
            obstacle=_obstacle(each.reason),
            lacks=_lacks(each.lacking, host_ids),
            related=related.get(each.uuid, ()), makes_room_for=each.room_for,
            relaxations=tuple([MoveRelaxation(
                host=relaxed.host, host_id=host_ids.get(relaxed.host),
                policies=tuple([PolicyChange(
                    policy=policy.policy, becomes=policy.becomes,
                    kept=ty.cast(ty.Any, policy.kept and policy.kept.value))
                    for policy in relaxed.policies]))
                for relaxed in each.relaxed]),
            not_shelved=_obstacle(each.not_shelved),
            vfs_detached=each.vfs_detached)
            for number, each in enumerate(plan.guests, first)]),
        others=plan.others,
        unfinished=tuple([ReturningServer(
            server=each.name, server_id=each.uuid, how=each.move.kind,
            status=each.move.status, source=each.move.source,
            source_id=host_ids.get(each.move.source or ''),
            destination=each.move.target,
            destination_id=host_ids.get(each.move.target or ''),
            to_confirm=each.move.settled)
            for each in plan.unfinished]),
        failed=plan.failed, exact=plan.exact, options=options,
        unread=_unread_data(plan.gaps))


def rolled(plan: 'rolling.RollingPlan', cloud: snapshot.Cloud,
           options: DrainOptions = _NO_OPTIONS, first_round: int = 1,
           before: Iterable[str] = ()) -> RollingDrain:
    """Return the document of a plan that empties several hosts.

    :param first_round: number of the first round
    :param before: names of hosts of earlier rounds, which are enabled
    """
    enabled = {host.name for host in cloud.hosts
               if host.enabled or host.name in plan.returning}
    rounds: list[DrainRound] = []
    earlier = list(before)
    for number, plans in enumerate(plan.rounds, first_round):
        hosts: list[Drain] = []
        first = 1
        for each in plans:
            hosts.append(drained(each, cloud, options, first))
            first += len(each.moves)
        rounds.append(DrainRound(round=number, enabled=tuple(earlier),
                                 hosts=tuple(hosts)))
        earlier += [each.host for each in plans if each.host in enabled]
    return RollingDrain(
        at_once=plan.at_once, rounds=tuple(rounds), not_emptied=tuple([
            drained(each, cloud, options) for each in plan.not_emptied]))


def defragmented(plan: 'defrag.DefragPlan', cloud: snapshot.Cloud,
                 options: DefragOptions) -> Defrag:
    """Return the document of a plan that makes more servers fit."""
    host_ids, flavor_ids = _host_ids(cloud), _flavor_ids(cloud)
    names = {server.uuid: server.name for server in cloud.servers}
    return Defrag(
        flavor=plan.flavor, flavor_id=next(
            (flavor.id for flavor in cloud.flavors
             if flavor.name == plan.flavor), '') or None,
        wanted=plan.count, fits_before=plan.before,
        fits_after=plan.after, enough=plan.enough,
        moves=tuple([DefragMove(
            move=number, server=step.move.name, server_id=step.move.uuid,
            flavor=step.move.flavor,
            flavor_id=flavor_ids.get(step.move.uuid),
            memory_mib=step.move.memory,
            how=ty.cast(ty.Any, step.move.kind.value),
            paused=step.move.paused, source=step.move.source,
            source_id=host_ids.get(step.move.source),
            destination=step.move.destination,
            destination_id=host_ids[step.move.destination],
            gains=tuple([CapacityGain(
                host=host, host_id=host_ids.get(host), servers=servers)
                for host, servers in step.gains.items()]),
            related=step.move.related, vfs_detached=step.move.vfs_detached,
        ) for number, step in enumerate(plan.steps, 1)]),
        not_movable=tuple([FixedServer(
            server=names[uuid], server_id=uuid,
            obstacle=ty.cast(MoveObstacle, _obstacle(obstacle)))
            for uuid, obstacle in plan.fixed.items()]),
        failed=plan.failed, exact=plan.exact,
        ports=request_document.new_ports(plan.ports), options=options,
        unread=_unread_data(plan.gaps))


def moves_of_drain(plan: Drain) -> values.MovePlan:
    """Return the moves of a plan that empties a host."""
    return values.MovePlan(
        moves=_moves(plan),
        closed_hosts=(plan.host,) if plan.others is None else (),
        left_undone=_left_undone(plan), warnings=_warnings(plan.unread),
        command=('host', 'drain', *_drain_options(plan.options), *(
            () if plan.others is None else _options(
                '--server', to_leave(plan))),
            '--', plan.host))


def _drain_options(options: DrainOptions) -> Iterator[str]:
    if options.make_room:
        yield '--make-room'
    if options.relax:
        yield '--relax'
    if options.shelve:
        yield '--shelve'
    if options.cold_for_vfs:
        yield '--cold-for-vfs'


def to_leave(plan: Drain) -> list[str]:
    """Return the UUIDs of the servers that are to leave the host."""
    return [each.server_id for each in plan.servers
            if each.makes_room_for is None]


def moves_of_round(plan: RollingDrain,
                   number: int | None = None) -> values.MovePlan:
    """Return the moves of a round of a plan that empties several hosts.

    :param number: None for the first
    :raises ValueError: if there is no such round
    """
    rounds = rounds_from(plan, number)
    this = rounds[0]
    number = this.round
    is_last = len(rounds) == 1
    remaining = (*[host for each in rounds for host in each.hosts],
                 *plan.not_emptied)
    return values.MovePlan(
        moves=tuple([move for each in this.hosts for move in _moves(each)]),
        closed_hosts=tuple([each.host for each in this.hosts]),
        enabled_hosts=this.enabled, round=number,
        next_round=None if is_last else number + 1,
        given_up_hosts=this.given_up,
        left_undone=(
            *(f'{host} is not emptied in this round'
              for host in this.given_up if not is_last or all(
                  host != each.host for each in plan.not_emptied)),
            *(text for each in plan.not_emptied if is_last
              for text in (f'{each.host} is not emptied',
                           *_left_undone(each)))),
        warnings=_warnings(dict.fromkeys(
            unread for each in this.hosts for unread in each.unread)),
        command=('host', 'drain', f'--at-once={plan.at_once}',
                 *[option for each in remaining[:1]
                   for option in _drain_options(each.options)],
                 '--', *[each.host for each in remaining]))


def rounds_from(plan: RollingDrain,
                number: int | None) -> tuple[DrainRound, ...]:
    """Return a round, and those after it.

    :param number: None for all
    :raises ValueError: if there is no such round, rounds are not numbered in
        order, or at_once is less than 1
    """
    if plan.at_once < 1:
        raise ValueError('at_once is less than 1')
    # If no host can be emptied, the first says why.
    rounds = plan.rounds or (DrainRound(round=1, enabled=(), hosts=()),)
    first, last = rounds[0].round, rounds[-1].round
    numbers = [each.round for each in rounds]
    if first < 1 or numbers != list(range(first, first + len(rounds))):
        raise ValueError('rounds are not numbered one after the other')
    if number is None:
        number = first
    if number not in numbers:
        raise ValueError(f'there is no round {number}: the plan has '
                         + strings.count(len(plan.rounds), 'round') + (
                             f', {first} to {last}' if first > 1 else ''))
    return rounds[number - first:]


def _moves(plan: Drain) -> tuple[values.Move, ...]:
    return tuple([values.Move(
        number=each.move or 0, kind=each.how, id=each.server_id,
        name=each.server, source=each.source,
        destination=each.destination or '', related=each.related,
        vfs_detached=each.vfs_detached)
        for each in plan.servers if each.how is not None])


def _left_undone(plan: Drain) -> tuple[str, ...]:
    return (
        *(f'{each.server} ({each.server_id}) stays on {plan.host}'
          + ''.join(f'; its move to {lack.nearest} has failed: {lack.why}'
                    for lack in each.lacks if lack.kind == _FAILED)
          for each in plan.servers if each.how is None),
        *(f'{each.server} ({each.server_id}) also holds resources of '
          f'{plan.host}' for each in plan.unfinished))


def moves_of_defrag(plan: Defrag) -> values.MovePlan:
    """Return the moves of a plan that makes more servers fit."""
    return values.MovePlan(
        moves=tuple([values.Move(
            number=each.move, kind=each.how, id=each.server_id,
            name=each.server, source=each.source,
            destination=each.destination, related=each.related,
            vfs_detached=each.vfs_detached)
            for each in plan.moves]),
        left_undone=() if plan.enough else (
            f'{plan.fits_after} more servers of {plan.flavor} fit, not '
            f'{plan.wanted}',),
        warnings=_warnings(plan.unread),
        command=('cloud', 'defrag', *_options('--flavor', [plan.flavor]),
                 f'--count={plan.wanted}',
                 f'--max-moves={plan.options.max_moves}',
                 *_options('--avoid', plan.options.avoid),
                 *_options('--network', plan.options.networks),
                 *_options('--like', filter(None, [plan.options.like])),
                 *(() if plan.options.ports is None else (
                     f'--ports={plan.options.ports}',)),
                 *(('--cold-for-vfs',) if plan.options.cold_for_vfs else ())))


def _options(name: str, arguments: Iterable[str]) -> Iterable[str]:
    """Return an option with each argument, which may begin with a dash."""
    return [f'{name}={each}' for each in arguments]


def _warnings(unread: Iterable[UnreadData]) -> tuple[str, ...]:
    return tuple([
        f'the plan may be wrong, it was made without {each.kind}'
        + (f' of {strings.some(each.names)}' if each.names else '')
        for each in unread])


def lost(losses: 'Iterable[failover.Loss]', together: bool,
         cloud: snapshot.Cloud) -> Failover:
    """Return the document of lost hosts.

    :param together: whether all of the hosts are lost at once
    """
    host_ids, flavor_ids = _host_ids(cloud), _flavor_ids(cloud)
    return Failover(together=together, hosts=tuple([LostHost(
        host=loss.host, host_id=host_ids[loss.host], servers=loss.guests,
        evacuable=loss.evacuable, stranded=tuple([StrandedServer(
            server=each.name, server_id=each.uuid, flavor=each.flavor,
            flavor_id=flavor_ids.get(each.uuid),
            obstacle=_obstacle(each.reason),
            lacks=_lacks(each.lacking, host_ids))
            for each in loss.stranded]), unread=_unread_data(loss.gaps))
        for loss in losses]))


def _obstacle(obstacle: 'movable.Obstacle | None') -> MoveObstacle | None:
    return None if obstacle is None else MoveObstacle(
        kind=obstacle.kind.name.lower(), name=obstacle.name or None,
        text=str(obstacle))


def _lacks(lacks: 'Iterable[refusals.Lack]',
           host_ids: Mapping[str, str]) -> tuple[CapacityLack, ...]:
    return tuple([CapacityLack(
        kind=each.kind.value, names=each.names, hosts=each.hosts,
        nearest=each.host, nearest_id=host_ids.get(each.host),
        why=each.text or None) for each in lacks])


def _unread_data(gaps: 'Iterable[gap.Gap]') -> tuple[UnreadData, ...]:
    return tuple([UnreadData(kind=each.kind.value, names=each.names)
                  for each in gaps])
