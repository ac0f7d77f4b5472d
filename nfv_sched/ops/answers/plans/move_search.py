# SPDX-License-Identifier: Apache-2.0
"""Search live migrations for a goal.

An integer program proposes them, and the hosts take them or not.  Moves after
which a host takes a certain server are searched likewise.
"""

import collections
from collections.abc import Callable, Collection, Hashable, Iterable
from collections.abc import Iterator, Mapping, Sequence
import itertools
import time
import typing as ty

from nfv_sched.ops.answers.plans import document
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.model import arrangements
from nfv_sched.ops.model import movable
from nfv_sched.ops.model import program
from nfv_sched.ops.model import trial
from nfv_sched.ops.run import values
from nfv_sched.ops.simulator import start

#: Time limit of the program, in seconds.
SECONDS = 30.0
#: Highest number of moves that make room for one server.
_MOST_MOVES = 3
#: Highest number of plans that are tried in the simulator.
_ROUNDS = 8
#: Highest number of solutions of the program that are tried.
_SOLUTIONS = 40

Update = Callable[[int, int | None, str], None]
_Arrival = tuple[arrangements.Guest, program.Option]
_Result = ty.TypeVar('_Result')


def facts(positions: arrangements.Positions, uuid: str,
          move: values.Move | None) -> dict[str, ty.Any]:
    """Return what rows of all plans have; without a move the server stays."""
    server = positions.servers[uuid]
    source = move.source if move else server.host
    destination = move and move.destination or None
    return {
        'server': server.name, 'server_id': uuid,
        'flavor': server.flavor.name, 'flavor_id': server.flavor.id or None,
        'how': move and move.kind, 'source': source,
        'source_id': positions.host_id(source), 'destination': destination,
        'destination_id': positions.host_id(destination),
        'related': move.related if move else (),
        'vfs_detached': move.vfs_detached if move else 0,
        'copied': move and move.copied, 'only_node': move and move.only_node}


class HostCounts:
    """A figure of each host, as the number of new servers that fit it.

    :param now: name of each host -> its figure
    :param after: returns that of a host after moves
    """

    def __init__(self, now: Mapping[str, int],
                 after: Callable[[arrangements.Position], int]):
        self.now = now
        self._after = after
        #: (host, key of its state) -> counted so far
        self.known: dict[tuple[str, Hashable], int] = {}

    def on_host(self, position: arrangements.Position) -> int:
        if not (position.came or position.left):
            return self.now[position.host.name]
        key = position.host.name, position.key
        if key not in self.known:
            self.known[key] = self._after(position)
        return self.known[key]

    def total(self, arrangement: arrangements.Arrangement) -> int:
        return sum(self.now.values()) + sum(
            self.on_host(position) - self.now[name]
            for name, position in arrangement.positions.items())


class MoveSearch:
    """A search for moves.

    :param value: returns the gain of the goal in an arrangement
    :param fits: returns the number of new servers that fit a host
    :param forbidden: (UUID of the server, destination) of moves that must not
        be made
    :param seconds: time limit of the program
    :ivar before: the value without moves
    :ivar bound: no moves have a higher value; None if not known
    """

    def __init__(self, positions: arrangements.Positions,
                 goal: program.MoveGoal,
                 value: Callable[[arrangements.Arrangement], int],
                 max_moves: int, *,
                 fits: Callable[[arrangements.Position], int] = lambda
                 position: 0, forbidden: set[tuple[str, str]],
                 update: Update, seconds: float):
        self.positions = positions
        self._goal = goal
        self.value = value
        self.before = value(arrangements.AS_IS)
        self._fits = fits
        self._max_moves = max_moves
        self._forbidden = forbidden
        self._seconds = seconds
        self._update = update

    def tried(self, run: Callable[[Sequence[values.Move]],
                                  tuple[_Result, trial.Failure | None]],
              ) -> tuple[tuple[values.Move, ...], bool, tuple[str, ...],
                         _Result | None]:
        """Return moves that the simulator makes.

        :param run: makes them there, if there are any; returns also a result
        :returns: moves, whether no fewer have this effect, reasons of moves
            that were refused, and the result of the moves; None without moves
        """
        reasons: list[str] = []
        for _round in range(_ROUNDS):
            moves, exact = self.moves()
            result, failure = run(moves) if moves else (None, None)
            if failure is None:
                return moves, exact and not reasons, tuple(reasons), result
            # If new servers find no host: the last was to make room for them.
            refused = failure.move or moves[-1]
            self._forbidden.add((refused.id, refused.destination))
            reasons.append(failure.text(refused))
        return (), False, tuple(reasons), None

    def _why_not(self, uuid: str) -> movable.MoveObstacle | None:
        return self.positions.why_not(self.positions.kind(uuid), uuid)

    def _movers(self) -> Iterator[program.Mover]:
        positions = self.positions
        hosts: dict[Hashable, tuple[str, ...]] = {}
        for uuid in itertools.chain(*[
                uuids for name, uuids in positions.on_host.items()
                if name not in positions.closed]):
            if self._why_not(uuid) is not None:
                continue
            guest = positions.guest(uuid, positions.kind(uuid))
            group = positions.group(uuid)
            degrees = positions.to_keep(uuid, positions.kind(uuid))
            likeness = guest, group and group.uuid, tuple(degrees.items())
            if likeness not in hosts:
                # Of an affinity group, where fellows are now; a move needs one
                # there.
                there = positions.hosts if group is None or (
                    group.policy != 'affinity') else {
                    positions.servers[member].host for member in group.members
                    if member in positions.servers}
                hosts[likeness] = tuple([
                    name for name in positions.hosts
                    if name not in positions.closed and name in there
                    and positions.in_cell(uuid, name)])
            yield program.Mover(
                uuid, guest, likeness, hosts[likeness], degrees, {})

    def moves(self) -> tuple[tuple[values.Move, ...], bool]:
        """Return the best moves, and whether no fewer have this effect.

        What a host does not take as the program has it becomes a constraint,
        and it is solved again.  Sets :attr:`bound`.
        """
        self.bound = None
        if self.before >= self._goal.most:
            return (), True
        until = time.monotonic() + self._seconds
        self._update(0, None, 'searching for moves')
        problem = program.Program(
            self.positions, self._goal, list(self._movers()))
        best: tuple[values.Move, ...] = ()
        most, least, fewest, exact = self.before, 0, 0, False
        # Sets of arrivals that are ruled out: first all that one solution
        # missed; then each of its arrivals, as another may be in the way.
        waiting = collections.deque([frozenset[_Arrival]()])
        tried: set[frozenset[_Arrival]] = set()
        while waiting and len(tried) < _SOLUTIONS and not exact and (
                (seconds := until - time.monotonic()) > 0):
            refused = waiting.popleft()
            if refused in tried:
                continue
            self._update(len(tried), None, 'solutions tried')
            solution = problem.solve(self._max_moves, seconds, refused)
            moves, value, missed = self._follow(solution)
            if not tried:
                self.bound = solution.bound
                least = len(solution.arriving)
                fewest = solution.fewest and least
            tried.add(refused)
            if (value, -len(moves)) > (most, -len(best)):
                best, most = moves, value
                exact = value == self.bound and len(moves) == fewest
            if most == self.bound and not fewest and len(best) <= least:
                break
            if missed:
                waiting.appendleft(refused | missed)
                waiting.extend(refused | {(each.mover.guest, option)}
                               for each, option in solution.arriving)
        return best, exact or not best and self.bound == self.before

    def _follow(self, solution: program.Solution) -> tuple[
            tuple[values.Move, ...], int, frozenset[_Arrival]]:
        """Make the moves of a solution, as far as hosts take the servers.

        :returns: moves, up to the one after which the value is highest; that
            value; and arrivals that did not come about, or only by way of a
            third host
        """
        order = _Order(self.positions, solution, self._fits,
                       self._forbidden, self._max_moves)
        moves: list[values.Move] = []
        most = self.before, 0
        for move, arrangement in order.steps():
            moves.append(move)
            most = max(most, (self.value(arrangement), -len(moves)))
        return tuple(moves[:-most[1]]), most[0], frozenset([
            (each.mover.guest, option) for each, option in order.missed])

    def states(self, moves: Sequence[values.Move]) -> Iterator[
            arrangements.Arrangement]:
        """Yield the cloud before the first move, and after each move."""
        arrangement = arrangements.AS_IS
        yield arrangement
        for move in moves:
            after = self.positions.move(arrangement, move.id, move.destination)
            arrangement = arrangement if after is None else after
            yield arrangement

    def fixed_servers(self) -> tuple[document.FixedServer, ...]:
        return tuple([
            document.FixedServer(
                server=self.positions.servers[uuid].name, server_id=uuid,
                obstacle=obstacle)
            for uuids in self.positions.on_host.values() for uuid in uuids
            if (obstacle := self._why_not(uuid)) is not None])

    def row(self, number: int, move: values.Move,
            gains: Iterable[document.CapacityGain] = (),
            ) -> document.DefragMove:
        server = self.positions.servers[move.id]
        return document.DefragMove(
            move=number, memory_mib=server.flavor.memory,
            paused=server.state == movable.PAUSED, gains=tuple(gains),
            **facts(self.positions, move.id, move))


class _Order:
    """An order of the moves of a solution that hosts take.

    A claim chooses the NUMA cells, by what is free at that time.

    :param fits: returns the number of new servers that fit a host
    :param max_moves: highest number of moves
    :ivar missed: arrivals when nothing was left to do but by a third host
    """

    def __init__(self, positions: arrangements.Positions,
                 solution: program.Solution,
                 fits: Callable[[arrangements.Position], int],
                 forbidden: Collection[tuple[str, str]], max_moves: int):
        self._positions = positions
        self._fits = fits
        self._forbidden = forbidden
        self._new = solution.on_host
        self._leaving = list(solution.leaving)
        self._arriving = list(solution.arriving)
        self.missed: Sequence[tuple[program.Class, program.Option]] = ()
        #: number of servers that may move by way of a third host
        self._spare = max_moves - len(self._leaving)

    def steps(self) -> Iterator[tuple[values.Move, arrangements.Arrangement]]:
        """Yield moves, each with the cloud after it.

        On other NUMA cells than in the solution only where nothing else is
        left to do, and as many new servers fit that host.  Where servers wait
        for each other, one goes to a third host first.
        """
        arrangement = arrangements.AS_IS
        while True:
            chosen = None
            for anywhere in (False, True):
                for spoilt, *step in self._possible(arrangement, anywhere):
                    if chosen is None or spoilt < chosen[0]:
                        chosen = spoilt, *step
                    if not spoilt:
                        break
                if chosen is not None:
                    break
            else:
                self.missed = self.missed or tuple(self._arriving)
                chosen = next(self._aside(arrangement), None)
                if chosen is None:
                    return
            _spoilt, leaving, arriving, name, arrangement = chosen
            self._leaving.remove(leaving)
            of_class, uuid, source = leaving
            if arriving is None:
                self._spare -= 1
                self._leaving.append((of_class, uuid, name))
            else:
                self._arriving.remove(arriving)
            yield trial.move_of(self._positions, uuid, source, name,
                                self._positions.kind(uuid)), arrangement

    def _possible(self, arrangement: arrangements.Arrangement,
                  anywhere: bool) -> Iterator[tuple[ty.Any, ...]]:
        """Yield moves that are possible now.

        :returns: (number of arrivals at the source that would not end where
            they should, leaving and arriving server, host, the cloud after it)
        """
        positions = self._positions
        pending = collections.Counter(
            option.host for _class, option in self._arriving)
        for leaving in sorted(
                self._leaving, key=lambda each: pending[each[2]]):
            of_class, uuid, source = leaving
            for each, option in dict.fromkeys(self._arriving):
                name = option.host
                if each is not of_class or (uuid, name) in self._forbidden:
                    continue
                after = positions.move(arrangement, uuid, name)
                if after is None:
                    continue
                position = after.positions[name]
                if (self._fits(position) >= self._new[name] if anywhere
                        else positions.cells(position, uuid) == option.cells):
                    yield (self._spoilt(after.positions[source], source),
                           leaving, (each, option), name, after)

    def _aside(self, arrangement: arrangements.Arrangement) -> Iterator[
            tuple[ty.Any, ...]]:
        """Yield moves to hosts of no other move, as :meth:`_possible` does.

        Of servers in whose place another one can come then.
        """
        pending = collections.Counter(
            option.host for _class, option in self._arriving)
        for leaving in self._leaving if self._spare > 0 else ():
            of_class, uuid, source = leaving
            if not pending[source]:
                continue
            for name in dict.fromkeys(each.host for each in of_class.options):
                after = None if name in pending or (
                    (uuid, name) in self._forbidden) else (
                        self._positions.move(arrangement, uuid, name))
                if after is None:
                    continue
                if self._spoilt(after.positions[source],
                                source) < pending[source]:
                    yield 0, leaving, None, name, after
                break

    def _spoilt(self, position: arrangements.Position, source: str) -> int:
        """Return how many arrivals at a host would end on other cells."""
        return sum(
            (after := position.put(each.mover.guest, '')) is not None
            and self._positions.cells(after, '') != option.cells
            for each, option in self._arriving if option.host == source)


def make_room(
    cloud: snapshot.Cloud, uuid: str, kind: movable.MoveKind, *,
    fixed: Collection[str], closed: Collection[str],
    forbidden: Collection[tuple[str, str]], options: movable.MoveOptions,
    seconds: float, update: Update,
) -> tuple[Sequence[values.Move], snapshot.Cloud, tuple[str, ...]]:
    """Return few moves after which some host takes a server.

    They were carried out in the simulator, with the move of the server itself.
    To be called within :func:`simulator.start.started`.

    :param fixed: UUIDs of servers that stay
    :param closed: names of hosts that neither lose nor get servers
    :returns: moves of others, then that of the server, or none; the cloud
        after them; and reasons of moves that the simulator refused
    """
    positions = arrangements.Positions(
        cloud, start.restored(cloud), closed=closed,
        options=movable.MoveOptions(
            avoid=(*options.avoid, *fixed), cold_for_vfs=options.cold_for_vfs))
    guest = positions.guest(uuid, kind)
    forbidden = set(forbidden)

    def takes(position: arrangements.Position) -> int:
        """Return 1 if the server may go to a host after moves, else 0."""
        name = position.host.name
        # Where others are now, as far as it matters for this host.
        arrangement = arrangements.Arrangement(where={
            **dict.fromkeys(position.left, ''),
            **dict.fromkeys(position.came, name)})
        return int(
            name not in closed and (uuid, name) not in forbidden
            and positions.in_cell(uuid, name)
            and positions.together(arrangement, uuid, name, soft=False)
            and position.put(guest, uuid, positions.degrees(uuid)) is not None)

    # No host takes the server now, or the drain would have found it.
    counts = HostCounts({name: 0 for name in positions.hosts
                        if name not in closed}, takes)
    search = MoveSearch(
        positions, program.FitNewServers(guest, counts.now, 1), counts.total,
        _MOST_MOVES, fits=counts.on_host, forbidden=forbidden,
        seconds=seconds, update=update)

    def run(moves: Sequence[values.Move]) -> tuple[
            ty.Any, trial.Failure | None]:
        *_before, last = search.states(moves)
        name = next(filter(lambda name: takes(last.positions[name]),
                           last.positions))
        moves = (*moves, trial.move_of(
            positions, uuid, positions.servers[uuid].host or '', name, kind))
        after, failure = trial.run(cloud, positions, moves)
        # The server may be forbidden to go there from now on.
        counts.known.clear()
        return (moves, after), failure

    _moves, _exact, failed, result = search.tried(run)
    return *(result or ((), cloud)), failed
