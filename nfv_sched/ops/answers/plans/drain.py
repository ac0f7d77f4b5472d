# SPDX-License-Identifier: Apache-2.0
"""Plan how to empty a host: move each server live, cold or not at all.

Or some of its servers only: every move ends where their strict policies are
kept.  What no move takes off the host is shelved, if that is wanted.  Servers
of hosts that are down are evacuated.

A server that many hosts take always finds one that no other server of the plan
has gone to.  Each of the others goes to the first host that takes it; if some
find none, an integer program chooses the hosts, within a time limit.
"""

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator
from collections.abc import Mapping, Sequence
import dataclasses
import functools
import itertools
import time
import types
import typing as ty

from nfv_sched.ops.answers.plans import document
from nfv_sched.ops.answers.plans import gap
from nfv_sched.ops.answers.plans import move_search
from nfv_sched.ops.answers.plans import refusals
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.model import arrangements
from nfv_sched.ops.model import movable
from nfv_sched.ops.model import program
from nfv_sched.ops.model import trial
from nfv_sched.ops.run import values
from nfv_sched.ops.simulator import start

#: Default time limit of the search.
SECONDS = 30.0
#: Highest number of failures in the simulator.
_ROUNDS = 12
#: Highest number of refused live migrations that are tried to another host.
_LIVE_ROUNDS = 6
#: Highest number of orders in which servers are tried on one host.
_ORDERS = 2_000
#: Highest number of sets of servers that hosts refuse.
_REFUSED = 100
Update = Callable[[int, int, str], None]
#: UUID of a server, and a destination to which it is not moved, because that
#: has failed -> why; the destination is empty for shelving.
Failed = Mapping[tuple[str, str], str]
#: UUIDs of servers in the order in which a host takes them, and the host then.
_Filled = tuple[tuple[str, ...], arrangements.Position]
NONE_FAILED: Failed = types.MappingProxyType({})
_P = ty.TypeVar('_P', document.Drain, document.Evacuation)


@dataclasses.dataclass(frozen=True, slots=True)
class DrainTerms:
    options: document.DrainOptions
    failed: Failed
    seconds: float  #: time limit of each search
    update: Update  #: called with (steps done, all steps, activity)


def plan(cloud: snapshot.Cloud, host: str,
         options: document.DrainOptions = document.DrainOptions(), *,
         uuids: Collection[str] | None = None, failed: Failed = NONE_FAILED,
         seconds: float = SECONDS, update: Update = lambda done, total,
         what: None) -> document.Drain:
    """Plan migrations after which as few servers as possible are left.

    :param uuids: servers of the host to move; None for all
    :raises InputError: if a filter of the cloud is not installed, or an option
        is bad
    """
    with start.started(cloud) as state:
        positions = arrangements.Positions(cloud, state, options=options)
        return numbered(empty(cloud, positions, host, DrainTerms(
            options, failed, seconds, update), uuids)[0])


def numbered(plan: _P, first: int = 1) -> _P:
    return dataclasses.replace(plan, servers=tuple([
        dataclasses.replace(each, move=number if each.how else None)
        for number, each in enumerate(plan.servers, first)]))


def empty(
    cloud: snapshot.Cloud, positions: arrangements.Positions, host: str,
    terms: DrainTerms, uuids: Collection[str] | None = None,
    closed: Collection[str] = (), later: Collection[str] = (),
) -> tuple[document.Drain, snapshot.Cloud]:
    """Plan as :func:`plan` does, within :func:`simulator.start.started`.

    Moves are not numbered.

    :param closed: names of other hosts that get no servers
    :param later: names of hosts that get servers only if no others take them
    :returns: also the cloud after the moves
    """
    search = _DrainSearch(positions, (host,), uuids, closed, later, terms)
    fields, after = _possible_moves(cloud, (host,), search, terms)
    result = document.Drain(
        host=host, host_id=positions.of_name[host].uuid, others=search.others,
        unfinished=unfinished(cloud, host) if uuids is None else (),
        options=terms.options, **fields)
    if terms.options.make_room and any(
            server.obstacle is None for server in result.staying):
        result, after = _with_room(result, after, search, terms)
    if terms.options.relax:
        result = _with_relaxations(result, after, search)
    if terms.options.shelve:
        result, after = _with_shelving(result, after, positions, terms.failed)
    return result, after


def evacuate(cloud: snapshot.Cloud, hosts: Sequence[str], *,
             relax: bool = False, avoid: tuple[str, ...] = (),
             failed: Failed = NONE_FAILED, seconds: float = SECONDS,
             update: Update = lambda done, total,
             what: None) -> document.Evacuation:
    """Plan evacuations of as many servers as possible, from hosts at once.

    The hosts count as down, whatever the snapshot says.  See :func:`plan`.
    """
    with start.started(cloud) as state:
        positions = arrangements.Positions(
            cloud, state, options=movable.MoveOptions(avoid=avoid))
        terms = DrainTerms(document.DrainOptions(), failed, seconds, update)
        search = _DrainSearch(
            positions, hosts, None, (), (), terms, movable.EVACUATE)
        fields, after = _possible_moves(cloud, hosts, search, terms)
        result = document.Evacuation(
            hosts=tuple(hosts), relax=relax, avoid=avoid, **fields)
        if relax:
            result = _with_relaxations(result, after, search)
        return numbered(result)


def _possible_moves(
    cloud: snapshot.Cloud, hosts: Collection[str], search: '_DrainSearch',
    terms: DrainTerms,
) -> tuple[dict[str, ty.Any], snapshot.Cloud]:
    """Find moves off hosts that the simulator makes.

    :returns: (fields that each such plan has of them, the cloud after them)
    """
    reasons: list[str] = []
    until = time.monotonic() + terms.seconds
    run = functools.partial(
        trial.run, cloud, search.positions,
        update=lambda done, total: terms.update(done, total, 'moves tried'))
    while True:
        moves, exact = search.moves(until)
        after, failure = run(moves)
        if failure is None:
            break
        refused = failure.move or moves[-1]
        if search.forbid(refused, failure):
            continue
        reasons.append(failure.text(refused))
        if len(reasons) == _ROUNDS:
            # The moves before the one that fails are good by themselves.
            moves, exact = moves[:failure.done], False
            after, _failure = run(moves)
            break
    unread = gap.of_cloud(cloud, hosts)
    return {'servers': tuple(search.servers(moves)), 'failed': tuple(reasons),
            'exact': exact and not unread, 'unread': unread,
            'bound': None if unread or reasons else search.bound}, after


def _with_relaxations(plan: _P, cloud: snapshot.Cloud,
                      search: '_DrainSearch') -> _P:
    """Say which policies keep servers that stay after a plan."""
    return dataclasses.replace(plan, servers=tuple([
        server if server.how or server.obstacle else dataclasses.replace(
            server, relaxations=refusals.relaxations(
                cloud, server.server_id, search.kinds[server.server_id],
                search.closed))
        for server in plan.servers]))


def _row(positions: arrangements.Positions, uuid: str,
         move: values.Move | None = None,
         **fields: ty.Any) -> document.DrainServer:
    """Return a server, which stays on its host without a move."""
    return document.DrainServer(**{
        'move': None, 'obstacle': None, 'lacks': (),
        **move_search.facts(positions, uuid, move), **fields})


def _with_room(plan: document.Drain, cloud: snapshot.Cloud,
               search: '_DrainSearch', terms: DrainTerms,
               ) -> tuple[document.Drain, snapshot.Cloud]:
    """Add moves on other hosts that make room for servers that stay.

    The servers of the host move once: none makes room for another.

    :param cloud: the cloud after the plan
    :returns: also the cloud after all moves
    """
    positions = search.positions
    own = frozenset(server.server_id for server in plan.servers)
    added: list[document.DrainServer] = []
    failed = list(plan.failed)
    # Large servers first: fewer hosts take them.
    for server in sorted(
            [server for server in plan.staying if server.obstacle is None],
            key=lambda server: -positions.servers[
                server.server_id].flavor.memory):
        uuid = server.server_id
        for kind, obstacle in search.ways(uuid):
            moves, after, reasons = move_search.make_room(
                cloud, uuid, kind, fixed=own, closed=search.closed,
                forbidden=terms.failed, options=terms.options,
                seconds=terms.seconds, update=terms.update)
            failed += reasons
            if moves:
                cloud = after
                added += [_row(positions, move.id, move, **{
                    'obstacle': obstacle} if move.id == uuid else {
                        'makes_room_for': uuid}) for move in moves]
                break
    arrived = {each.server_id for each in added}
    staying = [server for server in plan.staying
               if server.server_id not in arrived]
    return _with_servers(plan, added, staying, failed=tuple(failed),
                         exact=plan.exact and not staying, bound=None), cloud


def _with_shelving(
    plan: document.Drain, cloud: snapshot.Cloud,
    positions: arrangements.Positions, forbidden: Collection[tuple[str, str]],
) -> tuple[document.Drain, snapshot.Cloud]:
    """Shelve servers that stay, after all moves.

    Not those that could move if a policy were relaxed.

    :param cloud: the cloud after the moves of the plan
    :param positions: the cloud before them
    :returns: also the cloud after all
    """
    shelved: list[document.DrainServer] = []
    staying: list[document.DrainServer] = []
    failed = list(plan.failed)
    for server in plan.staying:
        uuid = server.server_id
        obstacle = positions.why_not(movable.SHELVE, uuid)
        if obstacle is not None or server.relaxations or (
                (uuid, '') in forbidden):
            staying.append(dataclasses.replace(server, not_shelved=obstacle))
            continue
        move = trial.move_of(positions, uuid, plan.host, '', movable.SHELVE)
        # One server after the other: those that can be shelved are, whatever
        # becomes of the rest.
        cloud, failure = trial.run(cloud, positions, [move])
        if failure is None:
            shelved.append(_row(positions, uuid, move, lacks=server.lacks,
                                obstacle=server.obstacle))
        else:
            failed.append(f'to shelve {move.name}: {failure.reason}')
            staying.append(server)
    return _with_servers(plan, shelved, staying, failed=tuple(failed)), cloud


def _with_servers(plan: document.Drain, moved: Iterable[document.DrainServer],
                  staying: Iterable[document.DrainServer],
                  **fields: ty.Any) -> document.Drain:
    return dataclasses.replace(plan, servers=(
        *[server for server in plan.servers if server.how is not None],
        *moved, *staying), **fields)


def unfinished(cloud: snapshot.Cloud,
               host: str) -> tuple[document.ReturningServer, ...]:
    """Return servers elsewhere with unfinished moves from or to a host."""
    host_ids = {each.name: each.uuid for each in reversed(cloud.hosts)}
    servers = {server.uuid: server for server in cloud.servers}
    pending = []
    for move in cloud.moves or ():
        server = servers.get(move.server)
        if server is None or server.host == host or (
                host not in (move.source, move.target)):
            continue
        if not server.task and server.state != snapshot.RESIZED:
            continue  # the move is abandoned; the audit reports it
        if move.settled and (
                move.source != host or move.kind == snapshot.EVACUATION):
            continue
        pending.append(document.ReturningServer(
            server=server.name, server_id=server.uuid, how=move.kind,
            status=move.status, source=move.source,
            source_id=host_ids.get(move.source or ''), destination=move.target,
            destination_id=host_ids.get(move.target or ''),
            to_confirm=move.settled))
    return tuple(sorted(
        pending, key=lambda each: (each.server, each.server_id)))


def _count(chosen: Mapping[str, _Filled]) -> int:
    return sum(len(order) for order, _after in chosen.values())


class _DrainSearch:
    """A search for destinations; for its parameters see :func:`empty`.

    :param hosts: names of the hosts that the servers leave
    :param kind: kind of all moves; None for live migrations, or cold ones
    :ivar others: number of other servers of the hosts, which are not to be
        moved; None if all are
    :ivar bound: no moves move more servers
    """

    def __init__(self, positions: arrangements.Positions, hosts: Sequence[str],
                 uuids: Collection[str] | None, closed: Collection[str],
                 later: Collection[str], terms: DrainTerms,
                 kind: movable.MoveKind | None = None):
        self.positions = positions
        self.closed = positions.closed.union(hosts, closed)
        self._failed = terms.failed
        self._beyond: set[str] = set()  #: UUIDs that come after --max-moves
        self._update = terms.update
        # Moves that the simulator refused: (server, how, destination) -> why.
        self._forbidden: dict[tuple[str, movable.MoveKind, str], str] = {}
        self._live_rounds = 0
        self._takes: dict[Hashable, bool] = {}
        cells = {positions.of_name[host].cell for host in hosts}
        #: Hosts with the fewest free CPUs first.
        self._hosts = sorted(
            (name for name in positions.hosts if name not in self.closed
             and positions.of_name[name].cell in cells),
            # Full hosts first: what is free on the others stays together.
            key=lambda name: (name in later, positions.free_cpus(name)))
        own = [uuid for host in hosts for uuid in positions.on_host[host]]
        self._uuids = [uuid for uuid in own if uuids is None or uuid in uuids]
        self._most = terms.options.max_moves or len(self._uuids)
        self.others = None if uuids is None else len(own) - len(self._uuids)
        #: UUID of each server that can be moved -> how.
        self.kinds: dict[str, movable.MoveKind] = {}
        self._reasons: dict[str, movable.MoveObstacle | None] = {}
        for uuid in self._uuids:
            if kind is not None:
                why = positions.why_not(kind, uuid)
                task = positions.servers[uuid].task
                # What Nova would evacuate, and "cloud failover" counts.
                if why is None and not values.can_evacuate(task):
                    why = movable.obstacle(
                        movable.ObstacleKind.BUSY, task or '')
                if why is None:
                    self.kinds[uuid] = kind
                self._reasons[uuid] = why
                continue
            live = positions.why_not(movable.LIVE, uuid)
            cold = positions.why_not(movable.COLD, uuid)
            # Before Nova 34 the claim of a live migration gets no limits (bug
            # 2153425).
            if live is None and cold is None and (
                    self._needs_limits(uuid) and any(
                        self._takes_alone(name, uuid, movable.COLD) and
                        not self._takes_alone(name, uuid, movable.LIVE)
                        for name in self._hosts)):
                live = movable.obstacle(movable.ObstacleKind.LIMITS)
            if live is None:
                self.kinds[uuid] = movable.LIVE
            elif cold is None:
                self.kinds[uuid] = movable.COLD
            elif live.kind == movable.ObstacleKind.VFS:
                live = cold
            self._reasons[uuid] = live
        #: Servers of a hint same_host, which have to be on the host before it.
        self._partners = {
            uuid: frozenset(positions.hinted(arrangements.SAME_HOST, uuid))
            & self.kinds.keys() - {uuid} for uuid in self.kinds}
        #: Servers that must be on the same host as another.
        self._joint = frozenset(filter(self._partners.get, self.kinds)).union(
            *self._partners.values())
        #: Servers that are like no other, as hints name them.
        self._named = self._joint.union(*[
            positions.hinted(arrangements.DIFFERENT_HOST, uuid)
            for uuid in self.kinds])
        #: Names of the hosts to which each can go.
        self._reach: dict[str, list[str]] = {}
        #: (host, UUIDs of servers that come there) -> an order of them
        self._orders: dict[tuple[str, frozenset[str]], _Filled | None] = {}

    def ways(self, uuid: str) -> Iterator[
            tuple[movable.MoveKind, movable.MoveObstacle | None]]:
        """Yield how a server can be moved, and why not live."""
        kind = self.kinds[uuid]
        yield kind, self._reasons[uuid]
        if kind == movable.LIVE and self._needs_limits(uuid) and (
                self.positions.why_not(movable.COLD, uuid) is None):
            yield movable.COLD, movable.obstacle(movable.ObstacleKind.LIMITS)

    def forbid(self, move: values.Move, failure: trial.Failure) -> bool:
        """Do not make a move again that the simulator refused.

        A server with no other host for a live migration is migrated cold from
        now on, if it can be, and so is one for which a policy would be kept
        less: Nova 33 does not keep a server on its NUMA nodes in a live
        migration, to whichever host.

        :returns: whether the server is migrated cold instead
        """
        uuid = move.id
        self._forbidden[uuid, move.kind, move.destination] = failure.reason
        if move.kind != movable.LIVE or self.positions.why_not(
                movable.COLD, uuid) is not None:
            return False
        if not failure.degrades and self._live_rounds < _LIVE_ROUNDS and any(
                True for _name in self._candidates(uuid)):
            self._live_rounds += 1
            return False
        self.kinds[uuid] = movable.COLD
        self._reasons[uuid] = movable.obstacle(
            movable.ObstacleKind.REFUSED_LIVE,
            f'{move.destination}: {failure.reason}')
        return True

    # -- destinations of each server alone

    def _likeness(self, uuid: str) -> Hashable:
        """Return a key; servers with equal keys are interchangeable."""
        return (self.positions.guest(uuid, self.kinds[uuid]),
                tuple(sorted(self.positions.degrees(uuid).items())),
                self.positions.servers[uuid].group,
                uuid if uuid in self._named else None)

    def _candidates(self, uuid: str) -> Iterator[str]:
        """Yield the hosts that take a server, the best first.

        Either as they are, or after a server of its hint same_host has come.
        """
        positions = self.positions
        worse: list[str] = []  # these keep a policy less
        hosts = sorted(self._hosts, key=lambda name: not positions.together(
            arrangements.AS_IS, uuid, name))
        for name in hosts:
            if (uuid, name) in self._failed or (
                    uuid, self.kinds[uuid], name) in self._forbidden or (
                    not positions.in_cell(uuid, name)) or (
                    not self._may_join(uuid, name)):
                continue
            if self._takes_alone(name, uuid, self.kinds[uuid]):
                # A migration keeps all policies.
                if self.kinds[uuid] is not movable.EVACUATE or (
                        self._takes_alone(name, uuid, movable.COLD)):
                    yield name
                else:
                    worse.append(name)
        yield from worse

    def _takes_alone(self, name: str, uuid: str,
                     kind: movable.MoveKind) -> bool:
        positions = self.positions
        key = name, positions.guest(uuid, kind), tuple(sorted(
            positions.to_keep(uuid, kind).items()))
        if key not in self._takes:
            self._takes[key] = positions.take(
                positions.position(name), uuid, kind) is not None
        return self._takes[key]

    def _needs_limits(self, uuid: str) -> bool:
        """Return whether a live migration loses limits of a strict policy."""
        return self.positions.guest(uuid, movable.LIVE) is not (
            self.positions.guest(uuid, movable.COLD))

    def _may_join(self, uuid: str, name: str) -> bool:
        """Return whether group and hints allow a host, now or later."""
        return any(
            self.positions.together(arrangement, uuid, name, soft=False)
            for arrangement in (arrangements.AS_IS, *(
                arrangements.Arrangement(where={partner: name})
                for partner in self._partners[uuid]
                if name in self._reach.get(partner, ()))))

    # -- destinations of all servers together

    def moves(self, until: float) -> tuple[tuple[values.Move, ...], bool]:
        """Return moves of most servers, and whether no others move more.

        Sets :attr:`bound`.
        """
        self._reach, self._orders = {}, {}
        for index, uuid in enumerate(self.kinds):
            self._update(index, len(self.kinds), 'servers')
            self._find_reach(uuid)
        # Those that follow others can go where these can.
        while any([self._find_reach(uuid) for uuid in self.kinds
                   if self._partners[uuid]]):
            pass
        movers = [self._mover(uuid) for uuid in self.kinds
                  if self._reach[uuid]]
        few = [each for each in movers if each.uuid in self._joint
               or len(each.hosts) < len(self.kinds)]
        self._update(len(self.kinds), len(self.kinds), 'servers')
        # Servers with the fewest hosts first.
        movers.sort(key=lambda each: (
            len(each.hosts), -self.positions.servers[each.uuid].flavor.memory,
            each.hosts))
        self.bound = len(movers)
        chosen = self._completed({}, movers)
        if _count(chosen) < self.bound:
            chosen = self._choose(chosen, movers, few, until)
        moves = [trial.move_of(
            self.positions, uuid, self.positions.servers[uuid].host or '',
            name, self.kinds[uuid])
            for name, (order, _after) in chosen.items() for uuid in order]
        self._beyond = {move.id for move in moves[self._most:]}
        self.bound = min(self.bound, self._most)
        moves = moves[:self._most]
        return tuple(moves), len(moves) == self.bound

    def _find_reach(self, uuid: str) -> bool:
        """Find the hosts of a server; return whether there are more now."""
        before = len(self._reach.get(uuid, ()))
        # Each other server blocks one host at most, except those that must be
        # on the same host: for them, all hosts count.
        self._reach[uuid] = list(itertools.islice(
            self._candidates(uuid),
            None if uuid in self._joint else len(self.kinds)))
        return len(self._reach[uuid]) > before

    def _mover(self, uuid: str) -> program.Mover:
        leaders, names = self._partners[uuid], self._reach[uuid]
        return program.Mover(
            uuid, self.positions.guest(uuid, self.kinds[uuid]),
            self._likeness(uuid), tuple(names),
            self.positions.to_keep(uuid, self.kinds[uuid]), {
                name: leaders for name in names
                if leaders and not self.positions.together(
                    arrangements.AS_IS, uuid, name, soft=False)})

    def _choose(self, best: dict[str, _Filled],
                movers: Sequence[program.Mover],
                few: Sequence[program.Mover],
                until: float) -> dict[str, _Filled]:
        """Return a choice of hosts for most servers.

        :param few: those of them that few hosts take; the others find one in
            any case
        """
        problem = program.Program(self.positions, program.MoveGoal(), few)
        # What hosts do not take together.
        refused: list[tuple[str, frozenset[str]]] = []
        is_sure = True
        while _count(best) < self.bound and len(refused) < _REFUSED and (
                (seconds := until - time.monotonic()) > 0):
            self._update(len(refused), _REFUSED, 'solutions tried')
            proposed, most = problem.assign(seconds, refused)
            if is_sure and most is not None:
                self.bound = min(self.bound, len(movers) - len(few) + most)
            chosen = {}
            for name, uuids in proposed.items():
                try:
                    filled = self._filled(name, uuids, until)
                except TimeoutError:
                    filled, is_sure = None, False
                if filled is None:
                    refused.append((name, frozenset(uuids)))
                else:
                    chosen[name] = filled
            best = max(best, self._completed(chosen, movers), key=_count)
            if len(chosen) == len(proposed):
                break
        return best

    def _completed(self, chosen: Mapping[str, _Filled],
                   movers: Sequence[program.Mover]) -> dict[str, _Filled]:
        """Add the servers that hosts take besides, each on the first host."""
        chosen = dict(chosen)
        # Again, as one may follow another that comes later.
        while True:
            come = {uuid for order, _after in chosen.values()
                    for uuid in order}
            for each in movers:
                for name in each.hosts if each.uuid not in come else ():
                    after = self._joined(chosen, name, each.uuid)
                    if after is not None:
                        chosen[name] = after
                        break
            if _count(chosen) == len(come):
                return chosen

    def _joined(self, chosen: Mapping[str, _Filled], name: str,
                uuid: str) -> _Filled | None:
        """Return a host after one more server has come; None if it cannot."""
        positions = self.positions
        order, position = chosen.get(name) or ((), positions.position(name))
        where = arrangements.Arrangement(where=dict.fromkeys(order, name))
        after = positions.take(
            position, uuid, self.kinds[uuid]) if positions.together(
                where, uuid, name, soft=False) else None
        return None if after is None else ((*order, uuid), after)

    def _filled(self, name: str, uuids: Sequence[str],
                until: float) -> _Filled | None:
        """Return an order in which a host takes servers; None: there is none.

        The order decides which CPUs and devices are left.

        :raises TimeoutError: if there are too many orders, or time is over
        """
        key = name, frozenset(uuids)
        if key in self._orders:
            return self._orders[key]
        states: set[Hashable] = set()
        pending: list[_Filled] = [((), self.positions.position(name))]
        for _order in range(_ORDERS):
            if not pending:
                filled = None
                break
            filled = pending.pop()
            if len(filled[0]) == len(uuids):
                break
            if time.monotonic() > until:
                raise TimeoutError()
            # Of interchangeable servers, only one need be tried as the next.
            alike = {self._likeness(uuid): uuid for uuid in reversed(uuids)
                     if uuid not in filled[0]}
            for uuid in alike.values():
                after = self._joined({name: filled}, name, uuid)
                state = after and (frozenset(after[0]), after[1].room.key)
                if after is not None and state not in states:
                    states.add(state)
                    pending.append(after)
        else:
            raise TimeoutError()
        self._orders[key] = filled
        return filled

    # -- the plan

    def servers(
        self, moves: Sequence[values.Move],
    ) -> Iterator[document.DrainServer]:
        positions = self.positions
        moved = {move.id for move in moves}
        for move in moves:
            yield _row(positions, move.id, move,
                       obstacle=self._reasons[move.id])
        for uuid in self._uuids:
            if uuid in moved:
                continue
            if uuid in self._beyond:
                yield _row(positions, uuid, obstacle=movable.obstacle(
                    movable.ObstacleKind.MAX_MOVES))
                continue
            if uuid not in self.kinds:
                yield _row(positions, uuid, obstacle=self._reasons[uuid])
                continue
            lacks = refusals.lacks(
                positions, uuid, self.closed,
                positions.to_keep(uuid, self.kinds[uuid]),
                {name: text for (refused, kind, name), text
                 in self._forbidden.items()
                 if (refused, kind) == (uuid, self.kinds[uuid])},
                {name: text for (moved_uuid, name), text
                 in self._failed.items() if moved_uuid == uuid})
            yield _row(positions, uuid, lacks=lacks)
