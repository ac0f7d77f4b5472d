# SPDX-License-Identifier: Apache-2.0
"""Search live migrations after which more servers fit the hosts.

In a small cloud the search is exhaustive.  In a large one it looks for servers
whose removal lets a new server fit their host: single ones first, then pairs,
then three; and for each of them for a host with capacity to spare.  Moves
after which a host takes a certain server are searched likewise.
"""

from collections.abc import Callable, Collection, Hashable, Iterator, Mapping
from collections.abc import Sequence
import itertools
import time

from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.model import arrangements
from nfv_sched.ops.model import movable
from nfv_sched.ops.model import trial
from nfv_sched.ops.run import values
from nfv_sched.ops.simulator import start

#: Highest number of servers that leave a host for one new server.
_LARGEST_SET = 3
#: Highest number of (server, host) pairs for an exhaustive search, and the
#: time limit of that, in seconds.
_PAIRS = 64
SECONDS = 20.0
#: Highest number of moves that make room for one server, and of such solutions
#: that are tried in the simulator.
_MOST_MOVES = 3
_ROUNDS = 8

Update = Callable[[int, int | None, str], None]
#: A move, or moves, and the cloud after them.
_Moved = tuple[values.Move, arrangements.Arrangement]
_AllMoved = tuple[tuple[values.Move, ...], arrangements.Arrangement]
#: Progress of a search: how many sets of moves there are is not known before.
_SEARCHING = 'searching for moves'


class MoveSearch:
    """A search for moves after which new servers fit.

    :param fits_now: name of each host -> number of new servers that fit it
    :param fits_after: returns the same for a host after moves
    :param fixed: UUIDs of servers that stay
    :param closed: names of hosts that neither lose nor get servers
    :param forbidden: (UUID of the server, destination) of moves that must not
        be made; see also :meth:`forbid`
    :param seconds: time limit of the exhaustive search
    """

    def __init__(self, positions: arrangements.Positions,
                 guest: arrangements.Guest, fits_now: Mapping[str, int],
                 fits_after: Callable[[arrangements.Position], int],
                 count: int, max_moves: int, *, fixed: Collection[str],
                 closed: Collection[str], forbidden: set[tuple[str, str]],
                 update: Update, seconds: float = SECONDS):
        self._positions = positions
        self._guest = guest
        self._now = fits_now
        self._fits_after = fits_after
        self._before = sum(fits_now.values())
        self._count = count
        self._max_moves = max_moves
        self._fixed = fixed
        self._closed = closed
        self._forbidden = forbidden
        self._seconds = seconds
        self._update = update
        self._fits: dict[tuple[str, Hashable], int] = {}
        self._why: dict[str, movable.MoveObstacle | None] = {}
        self._most: dict[Hashable, list[int]] = {}
        self._gain_without: dict[Hashable, int] = {}

    def forbid(self, moves: Sequence[values.Move],
               failure: trial.Failure) -> str:
        """Do not make a move again that failed; return why it did."""
        # If new servers find no host: the last move was to make room for them.
        refused = failure.move or moves[-1]
        self._forbidden.add((refused.id, refused.destination))
        return failure.text(refused)

    # -- state of the cloud

    def _why_not(self, uuid: str) -> movable.MoveObstacle | None:
        if uuid not in self._why:
            self._why[uuid] = (
                movable.obstacle(movable.ObstacleKind.AVOIDED)
                if uuid in self._fixed else self._positions.why_not(
                    self._positions.kind(uuid), uuid))
        return self._why[uuid]

    def _movable(self, name: str,
                 arrangement: arrangements.Arrangement) -> list[str]:
        if name in self._closed:
            return []
        position = self._positions.position(name, arrangement)
        uuids = *self._positions.on_host[name], *position.came
        return [uuid for uuid in uuids
                if self._positions.where(uuid, arrangement) == name
                and self._why_not(uuid) is None]

    def _count_fits(self, position: arrangements.Position) -> int:
        if not (position.came or position.left):
            return self._now[position.host.name]
        key = position.host.name, position.key
        if (fits := self._fits.get(key)) is None:
            fits = self._fits[key] = self._fits_after(position)
        return fits

    def _count_total(self, arrangement: arrangements.Arrangement) -> int:
        return self._before + sum(
            self._count_fits(position) - self._now[name]
            for name, position in arrangement.positions.items())

    # -- searches

    def moves(self) -> tuple[tuple[values.Move, ...], bool]:
        """Return the best moves, and whether no fewer have this effect."""
        if self._before >= self._count:
            return (), True
        pairs = len(self._positions.hosts) * sum(
            map(len, self._positions.on_host.values()))
        if pairs <= _PAIRS:
            return self._search_fewest()
        moves = self._search_greedily()
        # A plan of one move is minimal.
        return moves, len(moves) == 1

    def _search_fewest(self) -> tuple[tuple[values.Move, ...], bool]:
        """Search all moves for the fewest; fall back to greedy search."""
        until = time.monotonic() + self._seconds
        now = arrangements.AS_IS
        # If not even servers that vanish would be enough, no search finds a
        # plan for all; the greedy one may find one for some.
        if self._most_gained(now, self._max_moves) < (
                self._count - self._before):
            return self._search_greedily(), False
        # Deeper only after all shorter plans: the first one found has the
        # fewest moves.
        for most in range(1, self._max_moves + 1):
            self._update(0, None, _SEARCHING)
            seen: set[Hashable] = set()
            try:
                moves = self._search(now, (), most, seen, until)
            except TimeoutError:
                return self._search_greedily(), False
            if moves is not None:
                return moves, True
        return self._search_greedily(), False

    def _search(self, arrangement: arrangements.Arrangement,
                moves: tuple[values.Move, ...], moves_left: int,
                seen: set[Hashable],
                until: float) -> tuple[values.Move, ...] | None:
        """Return moves after which all new servers fit; else None.

        :param moves: moves that led to this arrangement
        :raises TimeoutError: when the time is over
        """
        lacking = self._count - self._count_total(arrangement)
        if lacking <= 0:
            return moves
        if not moves_left or self._most_gained(
                arrangement, moves_left) < lacking:
            return None
        if time.monotonic() > until:
            raise TimeoutError()
        # The same moves in another order mostly lead to the same cloud.
        key = (moves_left, frozenset(arrangement.where.items()), frozenset(
            (name, position.key)
            for name, position in arrangement.positions.items()))
        if key in seen:
            return None
        seen.add(key)
        pairs = sorted(
            ((uuid, source) for source in self._positions.hosts
             for uuid in self._movable(source, arrangement)),
            key=lambda pair: self._cost(pair[0]))
        for uuid, source in pairs:
            for move, after in self._moves_of(arrangement, uuid, source):
                solution = self._search(after, (*moves, move), moves_left - 1,
                                        seen, until)
                if solution is not None:
                    return solution
        return None

    def _most_gained(self, arrangement: arrangements.Arrangement,
                     moves_left: int) -> int:
        """Return an upper bound: servers leave without going elsewhere."""
        # More servers than there are cannot leave.
        moves_left = min(moves_left, sum(
            map(len, self._positions.on_host.values())))
        total = [0] * (moves_left + 1)
        for name in self._positions.hosts:
            best = self._gains(arrangement, name, moves_left)
            total = [max(total[size - part] + best[part]
                         for part in range(size + 1))
                     for size in range(moves_left + 1)]
        return total[moves_left]

    def _gains(self, arrangement: arrangements.Arrangement, name: str,
               moves_left: int) -> list[int]:
        """Return the gain of a host if up to 0, 1, 2, ... servers leave."""
        position = self._positions.position(name, arrangement)
        uuids = self._movable(name, arrangement)
        key = name, position.key, moves_left
        if (gains := self._most.get(key)) is None:
            gains = [0]
            for size in range(1, moves_left + 1):
                # Beyond pairs, an upper bound: all that may leave do.
                sets = itertools.combinations(
                    uuids, min(size, len(uuids))) if size <= 2 else [uuids]
                gains.append(max(gains[-1], max(
                    (self._gain(position, chosen) for chosen in sets),
                    default=0)))
            self._most[key] = gains
        return gains

    def _gain(self, position: arrangements.Position,
              uuids: Sequence[str]) -> int:
        """Return how many more new servers fit without some servers."""
        key = position.host.name, position.key, tuple(uuids)
        if key not in self._gain_without:
            fits = self._count_fits(position)
            for uuid in uuids:
                position = self._positions.without(position, uuid)
            self._gain_without[key] = self._count_fits(position) - fits
        return self._gain_without[key]

    def _moves_of(
        self, arrangement: arrangements.Arrangement, uuid: str, source: str,
        hosts: Collection[str] | None = None,
    ) -> Iterator[_Moved]:
        for name in self._positions.hosts if hosts is None else hosts:
            if (uuid, name) in self._forbidden or name in self._closed:
                continue
            after = self._positions.move(arrangement, uuid, name)
            if after is not None:
                yield trial.move_of(
                    self._positions, uuid, source, name,
                    self._positions.kind(uuid)), after

    def _cost(self, uuid: str) -> int:
        """Return the cost of moving a server: its memory, in MiB."""
        return self._positions.servers[uuid].flavor.memory

    def _search_greedily(self) -> tuple[values.Move, ...]:
        """Return moves found host by host, the cheapest first."""
        arrangement = arrangements.AS_IS
        moves: tuple[values.Move, ...] = ()
        while self._count_total(arrangement) < self._count:
            moves_left = self._max_moves - len(moves)
            cheapest = self._cheapest_moves(
                arrangement, min(moves_left, _LARGEST_SET))
            if cheapest is None:
                break  # the moves may still help fewer new servers
            more, arrangement = cheapest
            moves = (*moves, *more)
        return moves

    def _cheapest_moves(self, arrangement: arrangements.Arrangement,
                        most: int) -> _AllMoved | None:
        """Return the fewest, then cheapest moves for one new server."""
        for size in range(1, most + 1):
            sets = sorted(
                (sum(map(self._cost, uuids)), name, uuids)
                for name in self._positions.hosts
                for uuids in itertools.combinations(
                    self._movable(name, arrangement), size))
            for index, (_cost, name, uuids) in enumerate(sets):
                if index % 50 == 0:
                    self._update(0, None, _SEARCHING)
                position = self._positions.position(name, arrangement)
                # A sum of CPUs rules out most sets at a fraction of the cost
                # of a count.
                if not self._has_cpus(position, uuids) or (
                        self._gain(position, uuids) < 1):
                    continue
                moved = self._move_away(arrangement, uuids, name)
                if moved is not None:
                    return moved
        return None

    def _has_cpus(self, position: arrangements.Position,
                  uuids: Sequence[str]) -> bool:
        """Return whether a host has enough CPUs in total without servers."""
        guest = self._guest.counted.request.guest
        host = position.room.host
        if guest is None or host is None:
            return True
        need = sum(cell.dedicated for cell in guest.cells) + guest.reserved
        free = sum(len(cell.free_cpus) for cell in host.cells)
        return need <= free + sum(
            len(share.cpus) for uuid in uuids
            for share in self._positions.shares(position, uuid))

    def _move_away(self, arrangement: arrangements.Arrangement,
                   uuids: Sequence[str], source: str) -> _AllMoved | None:
        """Move servers away, if more new servers fit the cloud then."""
        before = self._count_total(arrangement)
        moves: tuple[values.Move, ...] = ()
        after = arrangement
        # Large servers first: fewer hosts take them.
        for uuid in sorted(uuids, key=self._cost, reverse=True):
            if (step := self._find_move(after, uuid, source)) is None:
                return None
            move, after = step
            moves = (*moves, move)
        return (moves, after) if self._count_total(after) > before else None

    def _find_move(self, arrangement: arrangements.Arrangement, uuid: str,
                   source: str) -> _Moved | None:
        hosts = sorted(
            (name for name in self._positions.hosts if name != source),
            # Hosts that take no new server have nothing to lose.
            key=lambda name: (self._now[name] > 0,
                              self._positions.free_cpus(name)))
        best: tuple[int, values.Move, arrangements.Arrangement] | None = None
        for move, after in self._moves_of(arrangement, uuid, source, hosts):
            name = move.destination
            before = self._positions.position(name, arrangement)
            lost = (self._count_fits(before)
                    - self._count_fits(after.positions[name]))
            if best is None or lost < best[0]:
                best = lost, move, after
            if lost <= 0:
                break
        return None if best is None else best[1:]

    def states(self, moves: Sequence[values.Move]) -> Iterator[
            arrangements.Arrangement]:
        """Yield the cloud before the first move, and after each move."""
        arrangement = arrangements.AS_IS
        yield arrangement
        for move in moves:
            after = self._positions.move(
                arrangement, move.id, move.destination)
            arrangement = arrangement if after is None else after
            yield arrangement


def make_room(
    cloud: snapshot.Cloud, uuid: str, kind: movable.MoveKind, *,
    fixed: Collection[str], closed: Collection[str],
    forbidden: Collection[tuple[str, str]], cold_for_vfs: bool,
    seconds: float, update: Update,
) -> tuple[Sequence[values.Move], snapshot.Cloud, list[str]]:
    """Return few moves after which some host takes a server.

    They were carried out in the simulator, with the move of the server itself.
    To be called within :func:`simulator.start.started`.

    For ``fixed``, ``closed`` and ``forbidden`` see :class:`MoveSearch`.

    :returns: moves of others, then that of the server, or none; the cloud
        after them; and reasons of moves that the simulator refused
    """
    positions = arrangements.Positions(
        cloud, start.restored(cloud), cold_for_vfs=cold_for_vfs)
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
            and position.put(
                guest, uuid, positions.degrees(uuid)) is not None)

    failed: list[str] = []
    for _round in range(_ROUNDS):
        search = MoveSearch(
            # No host takes the server now, or the drain would have found it.
            positions, guest, dict.fromkeys(positions.hosts, 0), takes, 1,
            _MOST_MOVES, fixed=fixed, closed=closed, forbidden=forbidden,
            seconds=seconds, update=update)
        moves, _exact = search.moves()
        *_before, last = search.states(moves)
        destination = next((name for name, position in last.positions.items()
                            if takes(position)), None)
        if destination is None:
            break
        moves = (*moves, trial.move_of(
            positions, uuid, positions.servers[uuid].host or '', destination,
            kind))
        after, failure = trial.run(cloud, positions, moves)
        if failure is None:
            return moves, after, failed
        failed.append(search.forbid(moves, failure))
    return (), cloud, failed
