# SPDX-License-Identifier: Apache-2.0
"""Plan few live migrations after which more servers of a flavor fit.

In a small cloud the search is exhaustive.  In a large one it looks for servers
whose removal lets a new server fit their host: single ones first, then pairs,
then three; and for each of them for a host with capacity to spare.  Each plan
is carried out in the simulator before it is returned.
"""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Hashable
from collections.abc import Iterator
from collections.abc import Sequence
import dataclasses
import fnmatch
import itertools
import time
import typing as ty

from nfv_sched.ops.plans import arrangements as plans_arrangements
from nfv_sched.ops.plans import gap
from nfv_sched.ops.plans import movable
from nfv_sched.ops.plans import trial
from nfv_sched.ops.requests import assumed_ports
from nfv_sched.ops.simulator import start
from nfv_sched.ops.snapshot import snapshot

#: Highest number of servers that leave a host for one new server.
_LARGEST_SET = 3
_PAIR = 2
#: Highest number of (server, host) pairs for an exhaustive search, and the
#: time limit of that, in seconds.
_PAIRS = 64
_SECONDS = 20.0
#: Highest number of plans that are tried in the simulator.
_ROUNDS = 8


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class DefragStep:
    """A move, and its effect.

    :ivar gains: name of the host -> how many more new servers fit after this
        move; negative for fewer
    """

    move: trial.ServerMove
    gains: ty.Mapping[str, int]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class DefragPlan:
    """Moves after which more servers of a flavor fit.

    :ivar flavor: name of the flavor
    :ivar count: number of new servers that should fit
    :ivar before: number of new servers that fit without any move
    :ivar after: number of new servers that fit after the moves, as far as was
        counted
    :ivar steps: moves, in order; empty if none are needed, or none help.  They
        may help fewer servers than should fit.
    :ivar fixed: UUID of each server that cannot be moved -> why
    :ivar failed: reasons of moves that the simulator refused
    :ivar exact: whether no smaller number of moves has this effect
    :ivar gaps: data that was not read; the plan may fail because of it
    :ivar ports: ports that each new server is assumed to have
    """

    flavor: str
    count: int
    before: int
    after: int
    steps: tuple[DefragStep, ...] = ()
    fixed: ty.Mapping[str, movable.Obstacle] = dataclasses.field(
        default_factory=dict)
    failed: tuple[str, ...] = ()
    exact: bool = False
    gaps: tuple[gap.Gap, ...] = ()
    ports: assumed_ports.Ports = assumed_ports.Ports(
        basis=assumed_ports.Basis.NUMBER)

    @property
    def enough(self) -> bool:
        """Whether all new servers fit after the moves."""
        return self.after >= self.count


def plan(
    cloud: snapshot.Cloud, flavor: snapshot.Flavor, count: int, *,
    max_moves: int = 10, avoid: Collection[str] = (),
    ports: assumed_ports.Choice = None,
    update: Callable[[int, int, str], None] = lambda done, total, what: None,
) -> DefragPlan:
    """Plan the fewest live migrations after which new servers fit.

    :param flavor: flavor of the new servers
    :param count: number of new servers that should fit
    :param max_moves: highest number of moves
    :param avoid: patterns of names: such servers stay, and such hosts neither
        lose nor get servers
    :param ports: ports of each new server; None for those of the flavor's
        servers
    :param update: called with (steps done, all steps, activity)
    :raises nfv_sched.ops.simulator.servers.Refused: if Nova refuses the flavor
    :raises nfv_sched.ops.cloud_file.problems.InputError: if a filter of the
        cloud is not installed, or an option is bad
    """
    forbidden: set[tuple[str, str]] = set()
    failed: list[str] = []
    with start.started(cloud) as state:
        positions = plans_arrangements.Positions(cloud, state, ports)
        search = _DefragSearch(positions, flavor, count, max_moves, avoid,
                               forbidden,
                               gap.of_cloud(cloud), update)
        for _round in range(_ROUNDS):
            moves, exact = search.moves()
            failure = None
            if moves:
                part = trial.part(cloud, search.hosts(moves))
                failure = trial.failure(
                    start.restored(part),
                    positions, moves, flavor=flavor,
                    count=min(count, search.total(moves)),
                    update=lambda done, total: update(
                        done, total, 'moves tried'))
            if failure is None:
                return search.plan(moves, exact and not failed, failed)
            refused = failure.move or moves[-1]
            forbidden.add((refused.uuid, refused.destination))
            failed.append(f'{refused.name} to {refused.destination}: '
                          f'{failure.reason}')
        return search.plan((), False, failed)


class _DefragSearch:
    """A search for moves after which new servers fit.

    :param positions: the cloud
    :param avoid: patterns of names that are left alone
    :param forbidden: (UUID of the server, destination) of moves that must not
        be made; it grows during the search
    :param gaps: data that was not read
    :param update: see :func:`plan`
    """

    def __init__(self, positions: plans_arrangements.Positions,
                 flavor: snapshot.Flavor,
                 count: int, max_moves: int, avoid: Collection[str],
                 forbidden: Collection[tuple[str, str]],
                 gaps: tuple[gap.Gap, ...],
                 update: Callable[[int, int, str], None]):
        self._known = positions
        self._flavor = flavor
        self._count = count
        self._max_moves = max_moves
        self._avoid = avoid
        self._forbidden = forbidden
        self._gaps = gaps
        self._update = update
        self._guest = positions.new(flavor)
        counted = self._guest.counted.count(list(positions.hosts.values()))
        self._now = {name: each.fits for name, each in counted.items()}
        self._before = sum(self._now.values())
        self._fits: dict[tuple[str, Hashable], int] = {}
        self._why: dict[str, movable.Obstacle | None] = {}
        self._most: dict[Hashable, list[int]] = {}
        self._left: dict[Hashable, int] = {}

    # -- state of the cloud

    def _may_change(self, name: str) -> bool:
        return not any(fnmatch.fnmatchcase(name, each)
                       for each in self._avoid)

    def _why_not(self, uuid: str) -> movable.Obstacle | None:
        """Return why a server stays where it is; None if it may move."""
        if uuid not in self._why:
            server = self._known.servers[uuid]
            self._why[uuid] = (
                self._known.why_not(movable.LIVE, uuid)
                if self._may_change(server.name)
                else movable.Obstacle(movable.ObstacleKind.AVOIDED))
        return self._why[uuid]

    def _movable(self, name: str,
                 arrangement: plans_arrangements.Arrangement) -> list[str]:
        """Return UUIDs of the servers of a host that may be moved."""
        if not self._may_change(name):
            return []
        position = self._known.position(name, arrangement)
        return [uuid for uuid in (*self._known.on_host[name], *position.came)
                if self._known.where(uuid, arrangement) == name
                and self._why_not(uuid) is None]

    def _fit(self, position: plans_arrangements.Position) -> int:
        """Return how many new servers fit a host."""
        if not (position.came or position.left):
            return self._now[position.host.name]
        key = position.host.name, position.key
        fits = self._fits.get(key)
        if fits is None:
            fits = self._fits[key] = self._known.fits(
                position, self._guest,
                self._now[position.host.name] + self._count)
        return fits

    def _total(self, arrangement: plans_arrangements.Arrangement) -> int:
        """Return how many new servers fit the cloud."""
        return self._before + sum(
            self._fit(position) - self._now[name]
            for name, position in arrangement.positions.items())

    # -- searches

    def moves(self) -> tuple[tuple[trial.ServerMove, ...], bool]:
        """Return the best moves.

        :returns: (moves, whether no fewer have this effect)
        """
        if self._before >= self._count:
            return (), True
        pairs = len(self._known.hosts) * sum(
            map(len, self._known.on_host.values()))
        if pairs <= _PAIRS:
            return self._fewest()
        moves = self._greedy()
        # A plan of one move is minimal.
        return moves, len(moves) == 1

    def _fewest(self) -> tuple[tuple[trial.ServerMove, ...], bool]:
        """Search all moves for the fewest; fall back to greedy search."""
        began = time.monotonic()
        now = plans_arrangements.Arrangement()
        if self._most_gained(now, self._max_moves) < (
                self._count - self._before):
            return self._greedy(), False
        for most in range(1, self._max_moves + 1):
            self._update(most, self._max_moves, 'numbers of moves')
            seen: set[Hashable] = set()
            try:
                moves = self._deeper(now, (), most, seen, began + _SECONDS)
            except TimeoutError:
                return self._greedy(), False
            if moves is not None:
                return moves, True
        return self._greedy(), False

    def _deeper(
        self, arrangement: plans_arrangements.Arrangement,
        moves: tuple[trial.ServerMove, ...],
        moves_left: int, seen: set[Hashable], until: float,
    ) -> tuple[trial.ServerMove, ...] | None:
        """Return moves after which all new servers fit; else None.

        :param moves: moves that led to this arrangement
        :param moves_left: highest number of further moves
        :param until: time limit, by the monotonic clock
        :raises TimeoutError: when the time is over
        """
        lacking = self._count - self._total(arrangement)
        if lacking <= 0:
            return moves
        if not moves_left or self._most_gained(
                arrangement, moves_left) < lacking:
            return None
        if time.monotonic() > until:
            raise TimeoutError()
        key = (moves_left, frozenset(arrangement.where.items()), frozenset(
            (name, position.key)
            for name, position in arrangement.positions.items()))
        if key in seen:
            return None
        seen.add(key)
        for move, after in self._all_moves(arrangement):
            solution = self._deeper(after, (*moves, move), moves_left - 1,
                                    seen, until)
            if solution is not None:
                return solution
        return None

    def _most_gained(
        self, arrangement: plans_arrangements.Arrangement, moves_left: int,
    ) -> int:
        """Return an upper bound of what a number of moves can gain.

        It assumes that servers can leave without going to another host.
        """
        total = [0] * (moves_left + 1)
        for name in self._known.hosts:
            best = self._gains(arrangement, name, moves_left)
            total = [max(total[size - part] + best[part]
                         for part in range(size + 1))
                     for size in range(moves_left + 1)]
        return total[moves_left]

    def _gains(self, arrangement: plans_arrangements.Arrangement, name: str,
               moves_left: int) -> list[int]:
        """Return the gain of a host if up to 0, 1, 2, ... servers leave."""
        position = self._known.position(name, arrangement)
        uuids = self._movable(name, arrangement)
        key = name, position.key, moves_left
        gains = self._most.get(key)
        if gains is None:
            fits = self._fit(position)
            gains = [0]
            for size in range(1, moves_left + 1):
                # Beyond pairs, an upper bound: all that may leave do.
                sets = itertools.combinations(
                    uuids, min(size, len(uuids))) if size <= _PAIR else [uuids]
                gains.append(max(gains[-1], max(
                    (self._without(position, chosen, fits)
                     for chosen in sets), default=0)))
            self._most[key] = gains
        return gains

    def _without(self, position: plans_arrangements.Position,
                 uuids: Sequence[str], fits: int) -> int:
        """Return how many more new servers fit without some servers."""
        key = position.host.name, position.key, tuple(uuids)
        if key not in self._left:
            for uuid in uuids:
                position = self._known.without(position, uuid)
            self._left[key] = self._fit(position) - fits
        return self._left[key]

    def _all_moves(self,
                   arrangement: plans_arrangements.Arrangement) -> Iterator[
            tuple[trial.ServerMove, plans_arrangements.Arrangement]]:
        for uuid, source in sorted(
                ((uuid, source) for source in self._known.hosts
                 for uuid in self._movable(source, arrangement)),
                key=lambda pair: self._cost(pair[0])):
            yield from self._moves_of(arrangement, uuid, source)

    def _moves_of(
        self, arrangement: plans_arrangements.Arrangement, uuid: str,
        source: str,
        hosts: Collection[str] | None = None,
    ) -> Iterator[tuple[trial.ServerMove, plans_arrangements.Arrangement]]:
        """Yield each move of a server, and the cloud after it."""
        for name in self._known.hosts if hosts is None else hosts:
            if (uuid, name) in self._forbidden or (
                    not self._may_change(name)):
                continue
            after = self._known.move(arrangement, uuid, name)
            if after is not None:
                yield trial.move_of(
                    self._known.servers[uuid], source, name,
                    related=self._known.related(uuid)), after

    def _cost(self, uuid: str) -> int:
        """Return the cost of moving a server: its memory, in MiB."""
        return self._known.servers[uuid].flavor.memory

    def _greedy(self) -> tuple[trial.ServerMove, ...]:
        """Return moves found host by host, the cheapest first."""
        arrangement = plans_arrangements.Arrangement()
        moves: tuple[trial.ServerMove, ...] = ()
        while self._total(arrangement) < self._count:
            moves_left = self._max_moves - len(moves)
            cheapest = self._cheapest(
                arrangement, min(moves_left, _LARGEST_SET))
            if cheapest is None:
                break  # the moves may still help fewer new servers
            more, arrangement = cheapest
            moves = (*moves, *more)
        return moves

    def _cheapest(
        self, arrangement: plans_arrangements.Arrangement, most: int,
    ) -> tuple[tuple[trial.ServerMove, ...],
               plans_arrangements.Arrangement] | None:
        """Return the fewest, then cheapest moves for one new server."""
        for size in range(1, most + 1):
            sets = sorted(
                (sum(map(self._cost, uuids)), name, uuids)
                for name in self._known.hosts
                for uuids in itertools.combinations(
                    self._movable(name, arrangement), size))
            for index, (_cost, name, uuids) in enumerate(sets):
                if index % 50 == 0:
                    self._update(index, len(sets), 'sets of servers')
                position = self._known.position(name, arrangement)
                if not self._could(position, uuids) or self._without(
                        position, uuids, self._fit(position)) < 1:
                    continue
                moved = self._away(arrangement, uuids, name)
                if moved is not None:
                    return moved
        return None

    def _could(self, position: plans_arrangements.Position,
               uuids: Sequence[str]) -> bool:
        """Return whether a host has enough CPUs in total without servers."""
        guest_request = self._guest.counted.wanted
        guest, host = guest_request.request.guest, position.room.host
        if guest is None or host is None:
            return True
        need = sum(cell.dedicated for cell in guest.cells) + guest.reserved
        free = sum(len(cell.free_cpus) for cell in host.cells)
        return need <= free + sum(
            len(share.cpus) for uuid in uuids
            for share in self._known.shares(position, uuid))

    def _away(
        self, arrangement: plans_arrangements.Arrangement,
        uuids: Sequence[str],
        source: str,
    ) -> tuple[tuple[trial.ServerMove, ...],
               plans_arrangements.Arrangement] | None:
        """Move servers away, if more new servers fit the cloud then."""
        before = self._total(arrangement)
        moves: tuple[trial.ServerMove, ...] = ()
        after = arrangement
        # Large servers first: fewer hosts take them.
        for uuid in sorted(uuids, key=self._cost, reverse=True):
            step = self._elsewhere(after, uuid, source)
            if step is None:
                return None
            move, after = step
            moves = (*moves, move)
        return (moves, after) if self._total(after) > before else None

    def _elsewhere(
        self, arrangement: plans_arrangements.Arrangement, uuid: str,
        source: str,
    ) -> tuple[trial.ServerMove, plans_arrangements.Arrangement] | None:
        """Return the move that displaces the fewest new servers."""
        hosts = sorted(
            (name for name in self._known.hosts if name != source),
            key=lambda name: (self._now[name] > 0,
                              self._known.free_cpus(name)))
        best: tuple[int, trial.ServerMove,
                    plans_arrangements.Arrangement] | None = None
        for move, after in self._moves_of(arrangement, uuid, source, hosts):
            name = move.destination
            lost = (self._fit(self._known.position(name, arrangement))
                    - self._fit(after.positions[name]))
            if best is None or lost < best[0]:
                best = lost, move, after
            if lost <= 0:
                break
        return None if best is None else best[1:]

    # -- the plan

    def _arrangements(self, moves: Sequence[trial.ServerMove]) -> Iterator[
            plans_arrangements.Arrangement]:
        """Yield the cloud before the first move, and after each move."""
        arrangement = plans_arrangements.Arrangement()
        yield arrangement
        for move in moves:
            after = self._known.move(arrangement, move.uuid, move.destination)
            arrangement = arrangement if after is None else after
            yield arrangement

    def hosts(self, moves: Sequence[trial.ServerMove]) -> set[str]:
        """Return the hosts of the moves, and enough others for new servers."""
        names = {name for move in moves
                 for name in (move.source, move.destination)}
        room = 0
        for name, fits in self._now.items():
            if room >= self._count:
                break
            if fits and name not in names:
                room += fits
                names.add(name)
        return names

    def total(self, moves: Sequence[trial.ServerMove]) -> int:
        """Return how many new servers fit after moves."""
        *_before, last = self._arrangements(moves)
        return self._total(last)

    def plan(self, moves: Sequence[trial.ServerMove], exact: bool,
             failed: Sequence[str]) -> DefragPlan:
        """Return the plan with some moves.

        :param exact: whether no fewer moves have this effect
        :param failed: reasons why other moves failed
        """
        arrangements = list(self._arrangements(moves))
        steps = []
        for move, before, after in zip(moves, arrangements, arrangements[1:]):
            gains = {}
            for name in (move.source, move.destination):
                gain = (self._fit(after.positions[name]) - self._fit(
                    self._known.position(name, before)))
                if gain:
                    gains[name] = gain
            steps.append(DefragStep(move=move, gains=gains))
        fixed = {}
        for uuids in self._known.on_host.values():
            for uuid in uuids:
                obstacle = self._why_not(uuid)
                if obstacle is not None:
                    fixed[uuid] = obstacle
        ports = self._known.ports_of(self._flavor)
        return DefragPlan(
            ports=ports,
            flavor=self._flavor.name, count=self._count,
            before=self._before, after=self._total(arrangements[-1]),
            steps=tuple(steps), fixed=fixed, failed=tuple(failed),
            exact=(exact and not self._gaps
                   and self._total(arrangements[-1]) >= self._count),
            gaps=self._gaps)
