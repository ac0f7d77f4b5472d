# SPDX-License-Identifier: Apache-2.0
"""Plan how to empty a host: move each server live, cold or not at all.

What no move takes off the host is shelved, if that is wanted.

Or some of its servers only, such as those whose strict policy is not kept:
every move ends where the strict policies of the server are kept.

A server that many hosts take always finds one that no other server of the plan
has gone to; for the others all combinations are tried, within a time limit.
Each plan is carried out in the simulator before it is returned.
"""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Hashable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import itertools
import time
import types

from nfv_sched.ops.answers.plans import gap
from nfv_sched.ops.answers.plans import making_room
from nfv_sched.ops.answers.plans import refusals
from nfv_sched.ops.answers.plans import relaxing
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.model import arrangements
from nfv_sched.ops.model import movable
from nfv_sched.ops.model import trial
from nfv_sched.ops.simulator import start
from nfv_sched.ops.simulator import state as states

#: Default time limit of the search.
SECONDS = 30.0
#: Highest number of failures in the simulator.
_ROUNDS = 12
#: Highest number of refused live migrations that are tried to another host.
_LIVE_ROUNDS = 6
#: Highest number of different states of a host with the same servers.
_WAYS = 32
_AS_IS = arrangements.Arrangement()
#: No move has failed.
NONE_FAILED: Mapping[tuple[str, str], str] = types.MappingProxyType({})
_KINDS = {'migration': 'cold migration', 'live-migration': 'live migration'}

Update = Callable[[int, int, str], None]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class DrainedServer:
    """A server of the host, or one elsewhere that makes room, and its move.

    :ivar flavor: name of its flavor
    :ivar source: name of its host
    :ivar kind: None if it stays
    :ivar destination: name of the host to which it goes; None if it stays or
        is shelved
    :ivar reason: why it is moved cold, or cannot be moved to any host
    :ivar lacking: if it stays, or is shelved, for another reason, the causes
        that keep it off other hosts
    :ivar room_for: UUID of the server of the host that takes its place; None
        for a server of the host
    :ivar relaxed: moves that are possible if policies are relaxed, if that was
        asked for
    :ivar not_shelved: why it is not shelved, if that was asked for
    :ivar vfs_detached: see :class:`trial.ServerMove`
    """

    uuid: str
    name: str
    flavor: str
    source: str
    kind: movable.MoveKind | None = None
    destination: str | None = None
    reason: movable.Obstacle | None = None
    lacking: tuple[refusals.Lack, ...] = ()
    room_for: str | None = None
    relaxed: tuple[relaxing.RelaxedMove, ...] = ()
    not_shelved: movable.Obstacle | None = None
    vfs_detached: int | None = 0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Unfinished:
    """A server elsewhere that may come, or come back, to the host.

    :ivar reason: its move, as a clause to be read after the name
    :ivar move: migration or resize that has not ended
    """

    uuid: str
    name: str
    reason: str
    move: snapshot.Migration


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class DrainPlan:
    """A plan that empties a host, or moves some of its servers.

    :ivar host: name of the host
    :ivar guests: servers that are moved, in order, also those elsewhere that
        make room; then those that are shelved, and those that stay
    :ivar others: number of servers of the host that are not to be moved; None
        if all are
    :ivar unfinished: servers elsewhere that hold resources on the host, if it
        is emptied
    :ivar moves: moves, in order
    :ivar failed: reasons of moves that the simulator refused
    :ivar exact: whether no plan moves more servers
    :ivar gaps: data that was not read; the plan may fail because of it
    """

    host: str
    guests: tuple[DrainedServer, ...]
    others: int | None = None
    unfinished: tuple[Unfinished, ...] = ()
    moves: tuple[trial.ServerMove, ...] = ()
    failed: tuple[str, ...] = ()
    exact: bool = True
    gaps: tuple[gap.Gap, ...] = ()

    @property
    def staying(self) -> tuple[DrainedServer, ...]:
        """Servers that are not moved."""
        return tuple([guest for guest in self.guests if guest.kind is None])

    @property
    def shelved(self) -> tuple[DrainedServer, ...]:
        """Servers that are shelved."""
        return tuple([guest for guest in self.guests
                      if guest.kind == movable.SHELVE])

    @property
    def making_room(self) -> tuple[DrainedServer, ...]:
        """Servers of other hosts that are moved, once for each move."""
        return tuple([guest for guest in self.guests
                      if guest.room_for is not None])

    @property
    def names(self) -> Mapping[str, str]:
        """Name of each server, by UUID."""
        return {guest.uuid: guest.name for guest in self.guests}


def plan(
    cloud: snapshot.Cloud, host: str, *,
    uuids: Collection[str] | None = None, make_room: bool = False,
    relax: bool = False, shelve: bool = False, cold_for_vfs: bool = False,
    failed: Mapping[tuple[str, str], str] = NONE_FAILED,
    seconds: float = SECONDS,
    update: Update = lambda done, total, what: None,
) -> DrainPlan:
    """Plan migrations after which as few servers as possible are left.

    :param host: name of the host that is emptied
    :param uuids: servers of the host to move; None for all
    :param make_room: whether servers of other hosts may be moved, too, to make
        room for those that would stay
    :param relax: whether policies are named that would have to be relaxed
    :param shelve: whether servers are shelved that would stay, unless a
        relaxed policy that is named would let them move
    :param cold_for_vfs: see :class:`arrangements.Positions`
    :param failed: UUIDs of servers, each with a destination to which it is not
        moved, because that has failed -> why; empty for shelving
    :param seconds: time limit of the search
    :param update: called with (steps done, all steps, activity)
    :raises nfv_sched.ops.cloud.cloud_file.problems.InputError: if a filter of
        the cloud is not installed, or an option is bad
    """
    with start.started(cloud) as state:
        return empty(
            cloud, arrangements.Positions(
                cloud, state, cold_for_vfs=cold_for_vfs), host, uuids=uuids,
            make_room=make_room, relax=relax, shelve=shelve, failed=failed,
            seconds=seconds, update=update)[0]


def empty(
    cloud: snapshot.Cloud, positions: arrangements.Positions, host: str, *,
    uuids: Collection[str] | None = None, closed: Collection[str] = (),
    later: Collection[str] = (), make_room: bool = False,
    relax: bool = False, shelve: bool = False,
    failed: Mapping[tuple[str, str], str] = NONE_FAILED,
    seconds: float = SECONDS,
    update: Update = lambda done, total, what: None,
) -> tuple[DrainPlan, snapshot.Cloud]:
    """Plan as :func:`plan` does, within :func:`simulator.start.started`.

    :param positions: the cloud
    :param closed: names of other hosts that get no servers
    :param later: names of hosts that get servers only if no others take them
    :returns: also the cloud after the moves
    """
    reasons: list[str] = []
    search = _DrainSearch(
        positions, host, uuids, closed, later, failed,
        unfinished(cloud, host) if uuids is None else (),
        gap.of_cloud(cloud, (host,)), update)
    until = time.monotonic() + seconds

    def try_moves(moves: Sequence[trial.ServerMove]) -> tuple[
            states.State, trial.Failure | None]:
        # With the hosts of the plan alone, which takes a fraction of the time.
        state = start.restored(trial.part(cloud, {
            host, *[move.destination for move in moves]}))
        return state, trial.failure(
            state, positions, moves,
            update=lambda done, total: update(done, total, 'moves tried'))

    while True:
        moves, exact = search.moves(until)
        state, failure = try_moves(moves)
        if failure is None:
            break
        refused = failure.move or moves[-1]
        if search.forbid(refused, failure):
            continue
        reasons.append(f'{refused.name} to {refused.destination}: '
                       f'{failure.reason}')
        if len(reasons) == _ROUNDS:
            # The moves before the one that fails are good by themselves.
            moves, exact = moves[:failure.done], False
            state, _failure = try_moves(moves)
            break
    result = search.plan(moves, exact, reasons)
    after = trial.after(cloud, state, moves) if moves else cloud
    if make_room and any(guest.reason is None for guest in result.staying):
        result, after = _with_room(
            result, after, search, frozenset((host, *closed)), failed,
            positions.cold_for_vfs, seconds, update)
    if relax:
        result = dataclasses.replace(result, guests=tuple([
            guest if guest.kind or guest.reason else dataclasses.replace(
                guest, relaxed=relaxing.moves(
                    after, guest.uuid, search.kinds[guest.uuid],
                    (host, *closed)))
            for guest in result.guests]))
    if shelve:
        result, after = _with_shelving(result, after, positions, failed)
    return result, after


def _with_room(
    plan: DrainPlan, cloud: snapshot.Cloud,
    search: '_DrainSearch', closed: Collection[str],
    forbidden: Collection[tuple[str, str]], cold_for_vfs: bool,
    seconds: float, update: Update,
) -> tuple[DrainPlan, snapshot.Cloud]:
    """Add moves on other hosts that make room for servers that stay.

    The servers of the host move once: none makes room for another.

    :param plan: a plan without such moves
    :param cloud: the cloud after it
    :param search: the search for the plan
    :param closed: names of the hosts that get no servers
    :param forbidden: (UUID of the server, destination) of moves that must not
        be made
    :param seconds: time limit of the search for each server
    :returns: also the cloud after all moves
    """
    own = frozenset(guest.uuid for guest in plan.guests)
    added: list[DrainedServer] = []
    moves, failed = list(plan.moves), list(plan.failed)
    arrived = set()
    # Large servers first: fewer hosts take them.
    for guest in sorted(
            [guest for guest in plan.staying if guest.reason is None],
            key=lambda guest: -_memory(cloud, guest.uuid)):
        for kind, reason in search.ways(guest.uuid):
            solution = making_room.solution(
                cloud, guest.uuid, kind, fixed=own, closed=closed,
                forbidden=forbidden, cold_for_vfs=cold_for_vfs,
                seconds=seconds, update=update)
            failed += solution.failed
            if solution.moves:
                break
        else:
            continue
        cloud = solution.after
        moves += solution.moves
        arrived.add(guest.uuid)
        added += [DrainedServer(
            uuid=move.uuid, name=move.name, flavor=move.flavor,
            source=move.source, kind=move.kind, destination=move.destination,
            room_for=guest.uuid, vfs_detached=move.vfs_detached)
            for move in solution.moves[:-1]]
        added.append(dataclasses.replace(
            guest, kind=kind, reason=reason, lacking=(),
            destination=solution.moves[-1].destination,
            vfs_detached=solution.moves[-1].vfs_detached))
    staying = tuple([guest for guest in plan.staying
                     if guest.uuid not in arrived])
    return dataclasses.replace(
        plan, guests=(
            *[guest for guest in plan.guests if guest.kind is not None],
            *added, *staying),
        moves=tuple(moves), failed=tuple(failed),
        exact=plan.exact and not staying), cloud


def _with_shelving(
    plan: DrainPlan, cloud: snapshot.Cloud, positions: arrangements.Positions,
    forbidden: Collection[tuple[str, str]],
) -> tuple[DrainPlan, snapshot.Cloud]:
    """Shelve servers that stay, after all moves.

    Not those that could move if a policy were relaxed.

    :param cloud: the cloud after the moves of the plan
    :param positions: the cloud before them
    :returns: also the cloud after all
    """
    shelved: list[DrainedServer] = []
    staying: list[DrainedServer] = []
    moves, failed = list(plan.moves), list(plan.failed)
    for guest in plan.staying:
        obstacle = positions.why_not(movable.SHELVE, guest.uuid)
        if obstacle is not None or guest.relaxed or (
                (guest.uuid, '') in forbidden):
            staying.append(dataclasses.replace(guest, not_shelved=obstacle))
            continue
        move = trial.move_of(positions.servers[guest.uuid], plan.host, '',
                             movable.SHELVE)
        # One server after the other: those that can be shelved are, whatever
        # becomes of the rest.
        state = start.restored(trial.part(cloud, {plan.host}))
        failure = trial.failure(state, positions, [move])
        if failure is not None:
            failed.append(f'to shelve {move.name}: {failure.reason}')
            staying.append(guest)
            continue
        cloud = trial.after(cloud, state, [move])
        moves.append(move)
        shelved.append(dataclasses.replace(guest, kind=movable.SHELVE))
    return dataclasses.replace(
        plan, guests=(
            *[guest for guest in plan.guests if guest.kind is not None],
            *shelved, *staying),
        moves=tuple(moves), failed=tuple(failed)), cloud


def _memory(cloud: snapshot.Cloud, uuid: str) -> int:
    return next(server.flavor.memory for server in cloud.servers
                if server.uuid == uuid)


def unfinished(cloud: snapshot.Cloud, host: str) -> tuple[Unfinished, ...]:
    """Return servers elsewhere with unfinished moves from or to a host."""
    servers = {server.uuid: server for server in cloud.servers}
    pending = []
    for move in cloud.moves or ():
        server = servers.get(move.server)
        if server is None or server.host == host or (
                host not in (move.source, move.target)):
            continue
        what = _KINDS.get(move.kind, move.kind)
        if not server.task and server.state != snapshot.RESIZED:
            continue  # the move is abandoned; the audit reports it
        if move.settled:
            if move.source != host or move.kind == snapshot.EVACUATION:
                continue
            reason = (f'its {what} to {move.target} is not confirmed: it can '
                      f'come back')
        elif move.source == host:
            reason = f'its {what} to {move.target} is {move.status}'
        else:
            reason = f'its {what} from {move.source} is {move.status}'
        pending.append(Unfinished(
            uuid=server.uuid, name=server.name, reason=reason, move=move))
    return tuple(sorted(pending, key=lambda each: (each.name, each.uuid)))


class _DrainSearch:
    """A search for destinations.

    :param host: name of the host that is emptied
    :param uuids: servers of the host to move; None for all
    :param closed: names of other hosts that get no servers
    :param later: names of hosts that get servers only if no others take them
    :param failed: see :func:`plan`
    :param pending: servers elsewhere that hold resources there
    :param gaps: data that was not read
    :param update: see :func:`plan`
    """

    def __init__(self, positions: arrangements.Positions, host: str,
                 uuids: Collection[str] | None, closed: Collection[str],
                 later: Collection[str],
                 failed: Mapping[tuple[str, str], str],
                 pending: tuple[Unfinished, ...], gaps: tuple[gap.Gap, ...],
                 update: Update):
        self._positions = positions
        self._host = host
        self._closed = frozenset((host, *closed))
        self._failed = failed
        self._pending = pending
        self._gaps = gaps
        self._update = update
        # Moves that the simulator refused: (server, how, destination) -> why.
        self._forbidden: dict[tuple[str, movable.MoveKind, str], str] = {}
        self._live_rounds = 0
        self._takes: dict[Hashable, bool] = {}
        #: Hosts with the fewest free CPUs first.
        self._hosts = sorted(
            (name for name in positions.hosts if name not in self._closed
             and positions.of_name[name].cell == positions.of_name[host].cell),
            # Full hosts first: what is free on the others stays together.
            key=lambda name: (name in later, positions.free_cpus(name)))
        self._uuids = [uuid for uuid in positions.on_host[host]
                       if uuids is None or uuid in uuids]
        self._others = None if uuids is None else (
            len(positions.on_host[host]) - len(self._uuids))
        self._kinds: dict[str, movable.MoveKind] = {}
        self._reasons: dict[str, movable.Obstacle | None] = {}
        for uuid in self._uuids:
            live = positions.why_not(movable.LIVE, uuid)
            cold = positions.why_not(movable.COLD, uuid)
            # Before Nova 34 the claim of a live migration gets no limits (bug
            # 2153425).
            if live is None and cold is None and self._loses_limits(uuid):
                live = movable.Obstacle(movable.ObstacleKind.LIMITS)
            if live is None:
                self._kinds[uuid] = movable.LIVE
            elif cold is None:
                self._kinds[uuid] = movable.COLD
            elif live.kind is movable.ObstacleKind.VFS:
                live = cold
            self._reasons[uuid] = live
        #: Servers of a hint same_host, which have to be on the host before it.
        self._partners = {
            uuid: frozenset(positions.hinted(arrangements.SAME_HOST, uuid))
            & self._kinds.keys() - {uuid} for uuid in self._kinds}
        self._leading = frozenset().union(*self._partners.values())
        #: Names of the hosts to which each can go.
        self._reach: dict[str, list[str]] = {}
        self._ways: dict[
            tuple[str, frozenset[str]],
            list[tuple[tuple[str, ...], arrangements.Position]]] = {}

    @property
    def kinds(self) -> Mapping[str, movable.MoveKind]:
        """UUID of each server that can be moved -> how."""
        return self._kinds

    def ways(self, uuid: str) -> Iterator[
            tuple[movable.MoveKind, movable.Obstacle | None]]:
        """Yield how a server can be moved, and why not live."""
        kind = self._kinds[uuid]
        yield kind, self._reasons[uuid]
        if kind == movable.LIVE and self._needs_limits(uuid) and (
                self._positions.why_not(movable.COLD, uuid) is None):
            yield movable.COLD, movable.Obstacle(movable.ObstacleKind.LIMITS)

    def forbid(self, move: trial.ServerMove, failure: trial.Failure) -> bool:
        """Do not make a move again that the simulator refused.

        A server with no other host for a live migration is migrated cold from
        now on, if it can be, and so is one for which a policy would be kept
        less: Nova 33 does not keep a server on its NUMA nodes in a live
        migration, to whichever host.

        :param failure: why the simulator refused the move
        :returns: whether the server is migrated cold instead
        """
        uuid = move.uuid
        self._forbidden[uuid, move.kind, move.destination] = failure.reason
        if move.kind != movable.LIVE or self._positions.why_not(
                movable.COLD, uuid) is not None:
            return False
        if not failure.degrades and self._live_rounds < _LIVE_ROUNDS and any(
                True for _name in self._candidates(uuid)):
            self._live_rounds += 1
            return False
        self._kinds[uuid] = movable.COLD
        self._reasons[uuid] = movable.Obstacle(
            movable.ObstacleKind.REFUSED_LIVE,
            f'{move.destination}: {failure.reason}')
        return True

    # -- destinations of each server alone

    def _likeness(self, uuid: str) -> Hashable:
        """Return a key; servers with equal keys are interchangeable."""
        return (self._positions.guest(uuid),
                tuple(sorted(self._positions.degrees(uuid).items())),
                self._positions.servers[uuid].group,
                uuid if uuid in self._leading else None)

    def _candidates(self, uuid: str) -> Iterator[str]:
        """Yield the hosts that take a server, the best first.

        Either as they are, or after a server of its hint same_host has come.
        """
        positions = self._positions
        hosts = sorted(self._hosts, key=lambda name: not positions.together(
            _AS_IS, uuid, name))
        for name in hosts:
            if (uuid, name) in self._failed or (
                    uuid, self._kinds[uuid], name) in self._forbidden or (
                    not self._may_join(uuid, name)):
                continue
            if self._takes_alone(name, uuid, self._kinds[uuid]):
                yield name

    def _takes_alone(self, name: str, uuid: str,
                     kind: movable.MoveKind) -> bool:
        """Return whether a host as it is takes a server."""
        positions = self._positions
        guest, degrees = positions.guest(uuid, kind), positions.degrees(uuid)
        key = name, guest, tuple(sorted(degrees.items()))
        if key not in self._takes:
            self._takes[key] = positions.put(
                positions.position(name), guest, uuid, degrees) is not None
        return self._takes[key]

    def _loses_limits(self, uuid: str) -> bool:
        """Return whether some host takes a server cold, and not live."""
        return self._needs_limits(uuid) and any(
            self._takes_alone(name, uuid, movable.COLD) and
            not self._takes_alone(name, uuid, movable.LIVE)
            for name in self._hosts)

    def _needs_limits(self, uuid: str) -> bool:
        """Return whether a live migration loses limits of a strict policy."""
        return self._positions.guest(uuid, movable.LIVE) is not (
            self._positions.guest(uuid, movable.COLD))

    def _may_join(self, uuid: str, name: str) -> bool:
        """Return whether group and hints allow a host, now or later."""
        return any(
            self._positions.together(arrangement, uuid, name, soft=False)
            for arrangement in (_AS_IS, *(
                arrangements.Arrangement(where={partner: name})
                for partner in self._partners[uuid]
                if name in self._reach.get(partner, ()))))

    def _in_order(self) -> Iterator[str]:
        """Yield the servers, none before a partner that may go first."""
        pending = list(self._kinds)
        while pending:
            ready = [uuid for uuid in pending
                     if self._partners[uuid].isdisjoint(pending)]
            yield from ready or pending
            pending = [uuid for uuid in pending
                       if ready and uuid not in ready]

    # -- destinations of all servers together

    def moves(self, until: float) -> tuple[tuple[trial.ServerMove, ...], bool]:
        """Return moves of as many servers as possible.

        :param until: time limit, by the monotonic clock
        :returns: (moves, whether no others move more servers)
        """
        many, few = {}, {}
        self._reach = {}
        for index, uuid in enumerate(self._in_order()):
            self._update(index, len(self._kinds), 'servers')
            # Each other server blocks one host at most, except those that
            # must be on the same host: for them, all hosts count.
            bound = uuid in self._leading or bool(self._partners[uuid])
            names = self._reach[uuid] = list(itertools.islice(
                self._candidates(uuid), None if bound else len(self._kinds)))
            (few if bound or len(names) < len(self._kinds)
             else many)[uuid] = names
        self._update(len(self._kinds), len(self._kinds), 'servers')
        chosen, exact = self._choose(few, until)
        arrangement = arrangements.Arrangement()
        moves: list[trial.ServerMove] = []
        for name, uuids in chosen.items():
            order, position = self._orders(name, uuids)[0]
            for uuid in order:
                moves.append(self._move(uuid, name))
                arrangement = dataclasses.replace(
                    arrangement, where={**arrangement.where, uuid: name},
                    positions={**arrangement.positions, name: position})
        for uuid, names in many.items():
            for name in names:
                after = self._put_server(arrangement, uuid, name)
                if after is not None:
                    arrangement = after
                    moves.append(self._move(uuid, name))
                    break
        return tuple(moves), exact

    def _put_server(self, arrangement: arrangements.Arrangement, uuid: str,
                    name: str) -> arrangements.Arrangement | None:
        """Return the cloud with a server on a host; None if refused."""
        positions = self._positions
        if not positions.together(arrangement, uuid, name, soft=False):
            return None
        after = positions.put(positions.position(name, arrangement),
                              self._move_request(uuid), uuid,
                              positions.degrees(uuid))
        return None if after is None else arrangement.moved(uuid, after)

    def _move_request(self, uuid: str) -> arrangements.Guest:
        """Return the request of a server for its kind of move."""
        return self._positions.guest(uuid, self._kinds[uuid])

    def _move(self, uuid: str, name: str) -> trial.ServerMove:
        return trial.move_of(self._positions.servers[uuid], self._host, name,
                             self._kinds[uuid], self._positions.related(uuid))

    def _choose(
        self, few: Mapping[str, Sequence[str]], until: float,
    ) -> tuple[Mapping[str, frozenset[str]], bool]:
        """Choose hosts for servers that few hosts take.

        :param few: UUID of each -> names of the hosts that take it alone
        :returns: (host -> servers that go there, whether no choice moves more)
        """
        # Servers with the fewest hosts first; interchangeable ones in a row.
        kinds = list(dict.fromkeys(map(self._likeness, few)))
        following = [uuid for uuid in few if self._partners[uuid]]
        order = sorted(few, key=lambda uuid: (
            following.index(uuid) if uuid in following else -1,
            len(few[uuid]), -self._positions.servers[uuid].flavor.memory,
            few[uuid], kinds.index(self._likeness(uuid))))
        best: Mapping[str, frozenset[str]] = {}
        most, exact = 0, True
        try:
            for chosen, count in self._search(
                    order, few, {}, 0, lambda: most, until):
                if count > most:
                    best, most = chosen, count
                if most == sum(map(bool, few.values())):
                    break
        except TimeoutError:
            exact = False
        return best, exact

    def _search(
        self, order: Sequence[str], few: Mapping[str, Sequence[str]],
        chosen: Mapping[str, frozenset[str]], first: int,
        most: Callable[[], int], until: float, count: int = 0,
    ) -> Iterator[tuple[Mapping[str, frozenset[str]], int]]:
        """Yield choices that move more servers than the most so far.

        :param order: UUIDs of the servers that are left to choose for
        :param chosen: host -> servers that go there
        :param first: index of the first host that the next server may take: of
            interchangeable servers, each takes only hosts from the previous
            one's on
        :param most: returns the most so far
        :raises TimeoutError: when the time is over
        """
        if time.monotonic() > until:
            raise TimeoutError()
        if count > most():
            yield chosen, count
        if count + len(order) <= most() or not order:
            return
        uuid, *rest = order
        like = bool(rest) and few[rest[0]] == few[uuid] and (
            self._likeness(rest[0]) == self._likeness(uuid))
        for place in range(first, len(few[uuid])):
            name = few[uuid][place]
            together = chosen.get(name, frozenset()) | {uuid}
            if self._orders(name, together):
                yield from self._search(
                    rest, few, {**chosen, name: together},
                    place if like else 0, most, until, count + 1)
        # The server stays, and so do all interchangeable ones after it.
        while like:
            uuid, *rest = rest
            like = bool(rest) and few[rest[0]] == few[uuid] and (
                self._likeness(rest[0]) == self._likeness(uuid))
        yield from self._search(rest, few, chosen, 0, most, until, count)

    def _orders(
        self, name: str, uuids: frozenset[str],
    ) -> list[tuple[tuple[str, ...], arrangements.Position]]:
        """Return orders in which a host takes servers, and its state then."""
        if not uuids:
            return [((), self._positions.position(name))]
        key = name, uuids
        orders = self._ways.get(key)
        if orders is None:
            orders = self._ways[key] = self._new_orders(name, uuids)
        return orders

    def _new_orders(
        self, name: str, uuids: frozenset[str],
    ) -> list[tuple[tuple[str, ...], arrangements.Position]]:
        positions = self._positions
        # Of interchangeable servers, only one need be tried as the last.
        last = {self._likeness(uuid): uuid for uuid in sorted(uuids)}
        orders_by_state: dict[Hashable, tuple[
            tuple[str, ...], arrangements.Position]] = {}
        for uuid in last.values():
            where = arrangements.Arrangement(
                where=dict.fromkeys(uuids - {uuid}, name))
            if not positions.together(where, uuid, name, soft=False):
                continue
            for order, position in self._orders(name, uuids - {uuid}):
                after = positions.put(position, self._move_request(uuid), uuid,
                                      positions.degrees(uuid))
                if after is not None:
                    orders_by_state.setdefault(
                        after.room.key, ((*order, uuid), after))
                # The order in which servers come decides which CPUs and
                # devices are left, and there are factorials of orders.
                if len(orders_by_state) == _WAYS:
                    return list(orders_by_state.values())
        return list(orders_by_state.values())

    # -- the plan

    def plan(self, moves: Sequence[trial.ServerMove], exact: bool,
             failed: Sequence[str]) -> DrainPlan:
        """Return the plan with some moves.

        :param exact: whether no others move more servers
        :param failed: reasons why other moves failed
        """
        positions = self._positions
        moves_by_uuid = {move.uuid: move for move in moves}
        guests = [self._guest(move.uuid, move) for move in moves]
        why = refusals.Lacks(positions)
        for uuid in self._uuids:
            if uuid in moves_by_uuid:
                continue
            guest = self._guest(uuid)
            if uuid in self._kinds:
                guest = dataclasses.replace(
                    guest, reason=None, lacking=why.for_server(
                        uuid, self._closed, positions.degrees(uuid),
                        {name: text for (refused, kind, name), text
                         in self._forbidden.items()
                         if (refused, kind) == (uuid, self._kinds[uuid])},
                        {name: text for (moved, name), text
                         in self._failed.items() if moved == uuid}))
            guests.append(guest)
        return DrainPlan(host=self._host, guests=tuple(guests),
                         others=self._others, unfinished=self._pending,
                         moves=tuple(moves), failed=tuple(failed),
                         exact=exact and not self._gaps, gaps=self._gaps)

    def _guest(self, uuid: str,
               move: trial.ServerMove | None = None) -> DrainedServer:
        server = self._positions.servers[uuid]
        return DrainedServer(
            uuid=uuid, name=server.name, flavor=server.flavor.name,
            source=self._host, kind=move and move.kind,
            destination=move and move.destination,
            reason=self._reasons[uuid],
            vfs_detached=move.vfs_detached if move else 0)
