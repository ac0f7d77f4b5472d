# SPDX-License-Identifier: Apache-2.0
"""Which few live migrations make room for more guests of a flavor.

In a small cloud the fewest moves are found, whatever they are.  In a large one
guests are sought without which a guest of the flavor fits their host: single
ones first, then pairs, then three; and for each of them a host that has room
to spare.  What is found was done in the simulator before it is told.
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

#: At most so many guests of a host leave it for one new guest.
_LARGEST_SET = 3
_PAIR = 2
#: Clouds of up to so many (guest, host) pairs are searched exhaustively, as
#: long as that takes no longer than so many seconds.
_PAIRS = 64
_SECONDS = 20.0
#: How often a plan that failed in the simulator is sought anew.
_ROUNDS = 8


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class DefragStep:
    """A move, and what it is for.

    :ivar move: the move
    :ivar gains: new guests for which there is room after this move, and not
        before: name of the host -> how many; less than 0 where there were more
    """

    move: trial.ServerMove
    gains: ty.Mapping[str, int]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class DefragPlan:
    """Moves that make room.

    :ivar flavor: name of the flavor
    :ivar count: how many more guests of it were asked for
    :ivar before: how many fit without any move
    :ivar after: how many fit after the moves, as far as was counted
    :ivar steps: the moves, in order; empty if none are needed, or none help.
        If they do not make room for all, they do for some.
    :ivar fixed: UUID of each server that cannot be moved -> why
    :ivar failed: moves that the simulator refused: why
    :ivar exact: whether no smaller number of moves makes this room
    :ivar gaps: what was not read, so that the plan may not be carried out
    :ivar ports: kinds of the ports that each new guest has
    :ivar ports_reason: why these are assumed, for people
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
    ports: str = ''
    ports_reason: str = ''

    @property
    def enough(self) -> bool:
        """Whether as many fit then as were asked for."""
        return self.after >= self.count


def plan(
    found: snapshot.Cloud, flavor: snapshot.Flavor, count: int, *,
    max_moves: int = 10, avoid: Collection[str] = (),
    ports: assumed_ports.Choice = None,
    update: Callable[[int, int, str], None] = lambda done, total, what: None,
) -> DefragPlan:
    """The fewest live migrations after which more guests fit.

    :param found: the cloud
    :param flavor: flavor of the new guests
    :param count: how many of them are to fit
    :param max_moves: the most moves
    :param avoid: patterns of names of servers that stay, and of hosts that
        nobody leaves or goes to
    :param ports: the ports that each new guest has
    :param update: called with (steps done, steps in all, what is done)
    :raises nfv_sched.ops.simulator.servers.Refused: if Nova does not take the
        flavor
    :raises nfv_sched.ops.cloud_file.problems.InputError: if a filter of
        the cloud is not installed, or an option is bad
    """
    forbidden: set[tuple[str, str]] = set()
    failed: list[str] = []
    with start.started(found) as state:
        known = plans_arrangements.Positions(found, state, ports)
        search = _DefragSearch(known, flavor, count, max_moves, avoid,
                               forbidden,
                               gap.of_cloud(found), update)
        for _round in range(_ROUNDS):
            moves, exact = search.moves()
            wrong = None
            if moves:
                part = trial.part(found, search.hosts(moves))
                wrong = trial.failure(
                    start.restored(part),
                    known, moves, flavor=flavor,
                    count=min(count, search.total(moves)),
                    update=lambda done, total: update(
                        done, total, 'moves tried'))
            if wrong is None:
                return search.plan(moves, exact and not failed, failed)
            refused = wrong.move or moves[-1]
            forbidden.add((refused.uuid, refused.destination))
            failed.append(f'{refused.name} to {refused.destination}: '
                          f'{wrong.reason}')
        return search.plan((), False, failed)


class _DefragSearch:
    """The search for moves.

    :param known: the cloud
    :param flavor: flavor of the new guests
    :param count: how many of them are to fit
    :param max_moves: the most moves
    :param avoid: patterns of names that are left alone
    :param forbidden: moves that are not to be made: (server, destination)
    :param gaps: what was not read
    :param update: see :func:`plan`
    """

    def __init__(self, known: plans_arrangements.Positions,
                 flavor: snapshot.Flavor,
                 count: int, max_moves: int, avoid: Collection[str],
                 forbidden: Collection[tuple[str, str]],
                 gaps: tuple[gap.Gap, ...],
                 update: Callable[[int, int, str], None]):
        self._known = known
        self._flavor = flavor
        self._count = count
        self._max_moves = max_moves
        self._avoid = avoid
        self._forbidden = forbidden
        self._gaps = gaps
        self._update = update
        self._guest = known.new(flavor)
        counted = self._guest.counted.count(list(known.hosts.values()))
        self._now = {name: each.fits for name, each in counted.items()}
        self._before = sum(self._now.values())
        self._fits: dict[tuple[str, Hashable], int] = {}
        self._why: dict[str, movable.Obstacle | None] = {}
        self._most: dict[Hashable, list[int]] = {}
        self._left: dict[Hashable, int] = {}

    # -- what there is

    def _may_change(self, name: str) -> bool:
        return not any(fnmatch.fnmatchcase(name, each)
                       for each in self._avoid)

    def _why_not(self, uuid: str) -> movable.Obstacle | None:
        """Why a server stays where it is; None if it may be moved."""
        if uuid not in self._why:
            server = self._known.servers[uuid]
            self._why[uuid] = (
                self._known.why_not(movable.LIVE, uuid)
                if self._may_change(server.name)
                else movable.Obstacle(movable.ObstacleKind.AVOIDED))
        return self._why[uuid]

    def _movable(self, name: str,
                 arrangement: plans_arrangements.Arrangement) -> list[str]:
        """UUIDs of the servers of a host that may be moved."""
        if not self._may_change(name):
            return []
        position = self._known.position(name, arrangement)
        return [uuid for uuid in (*self._known.on_host[name], *position.came)
                if self._known.where(uuid, arrangement) == name
                and self._why_not(uuid) is None]

    def _fit(self, position: plans_arrangements.Position) -> int:
        """How many new guests fit a host."""
        if not (position.came or position.left):
            return self._now[position.host.name]
        key = position.host.name, position.key
        known = self._fits.get(key)
        if known is None:
            known = self._fits[key] = self._known.fits(
                position, self._guest,
                self._now[position.host.name] + self._count)
        return known

    def _total(self, arrangement: plans_arrangements.Arrangement) -> int:
        """How many new guests fit the cloud."""
        return self._before + sum(
            self._fit(position) - self._now[name]
            for name, position in arrangement.positions.items())

    # -- searches

    def moves(self) -> tuple[tuple[trial.ServerMove, ...], bool]:
        """The moves that are best.

        :returns: (moves, whether there are no fewer that do as well)
        """
        if self._before >= self._count:
            return (), True
        pairs = len(self._known.hosts) * sum(
            map(len, self._known.on_host.values()))
        if pairs <= _PAIRS:
            return self._fewest()
        found = self._greedy()
        # One move cannot be too many.
        return found, len(found) == 1

    def _fewest(self) -> tuple[tuple[trial.ServerMove, ...], bool]:
        """The fewest moves, by trying them all; else the best of few."""
        began = time.monotonic()
        now = plans_arrangements.Arrangement()
        if self._most_gained(now, self._max_moves) < (
                self._count - self._before):
            return self._greedy(), False
        for most in range(1, self._max_moves + 1):
            self._update(most, self._max_moves, 'numbers of moves')
            seen: set[Hashable] = set()
            try:
                found = self._deeper(now, (), most, seen, began + _SECONDS)
            except TimeoutError:
                return self._greedy(), False
            if found is not None:
                return found, True
        return self._greedy(), False

    def _deeper(
        self, arrangement: plans_arrangements.Arrangement,
        moves: tuple[trial.ServerMove, ...],
        left: int, seen: set[Hashable], until: float,
    ) -> tuple[trial.ServerMove, ...] | None:
        """Moves after which enough fit, with at most so many more."""
        lacking = self._count - self._total(arrangement)
        if lacking <= 0:
            return moves
        if not left or self._most_gained(arrangement, left) < lacking:
            return None
        if time.monotonic() > until:
            raise TimeoutError()
        key = (left, frozenset(arrangement.where.items()), frozenset(
            (name, position.key)
            for name, position in arrangement.positions.items()))
        if key in seen:
            return None
        seen.add(key)
        for move, after in self._all_moves(arrangement):
            found = self._deeper(after, (*moves, move), left - 1, seen,
                                 until)
            if found is not None:
                return found
        return None

    def _most_gained(
        self, arrangement: plans_arrangements.Arrangement, left: int,
    ) -> int:
        """A number of new guests that no so many moves exceed.

        As if guests could leave without going anywhere.
        """
        total = [0] * (left + 1)
        for name in self._known.hosts:
            best = self._gains(arrangement, name, left)
            total = [max(total[size - part] + best[part]
                         for part in range(size + 1))
                     for size in range(left + 1)]
        return total[left]

    def _gains(self, arrangement: plans_arrangements.Arrangement, name: str,
               left: int) -> list[int]:
        """How many more fit a host if up to so many servers leave it."""
        position = self._known.position(name, arrangement)
        uuids = self._movable(name, arrangement)
        key = name, position.key, left
        known = self._most.get(key)
        if known is None:
            fits = self._fit(position)
            known = [0]
            for size in range(1, left + 1):
                # The more leave, the more fit.
                sets = itertools.combinations(
                    uuids, min(size, len(uuids))) if size <= _PAIR else [uuids]
                known.append(max(known[-1], max(
                    (self._without(position, chosen, fits)
                     for chosen in sets), default=0)))
            self._most[key] = known
        return known

    def _without(self, position: plans_arrangements.Position,
                 uuids: Sequence[str], fits: int) -> int:
        """How many more new guests fit a host without some servers."""
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
                key=lambda found: self._cost(found[0])):
            yield from self._moves_of(arrangement, uuid, source)

    def _moves_of(
        self, arrangement: plans_arrangements.Arrangement, uuid: str,
        source: str,
        hosts: Collection[str] | None = None,
    ) -> Iterator[tuple[trial.ServerMove, plans_arrangements.Arrangement]]:
        """Each move of a server, and the cloud after it."""
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
        """What it costs to move a server: memory, MiB."""
        return self._known.servers[uuid].flavor.memory

    def _greedy(self) -> tuple[trial.ServerMove, ...]:
        """Moves that make room, host by host, the cheapest first."""
        arrangement = plans_arrangements.Arrangement()
        moves: tuple[trial.ServerMove, ...] = ()
        while self._total(arrangement) < self._count:
            left = self._max_moves - len(moves)
            found = self._cheapest(arrangement, min(left, _LARGEST_SET))
            if found is None:
                break  # for fewer new guests it may be of use all the same
            more, arrangement = found
            moves = (*moves, *more)
        return moves

    def _cheapest(
        self, arrangement: plans_arrangements.Arrangement, most: int,
    ) -> tuple[tuple[trial.ServerMove, ...],
               plans_arrangements.Arrangement] | None:
        """The fewest moves, then the least memory, for one more guest."""
        for size in range(1, most + 1):
            sets = sorted(
                (sum(map(self._cost, uuids)), name, uuids)
                for name in self._known.hosts
                for uuids in itertools.combinations(
                    self._movable(name, arrangement), size))
            for done, (_cost, name, uuids) in enumerate(sets):
                if done % 50 == 0:
                    self._update(done, len(sets), 'sets of servers')
                position = self._known.position(name, arrangement)
                if not self._could(position, uuids) or self._without(
                        position, uuids, self._fit(position)) < 1:
                    continue
                found = self._away(arrangement, uuids, name)
                if found is not None:
                    return found
        return None

    def _could(self, position: plans_arrangements.Position,
               uuids: Sequence[str]) -> bool:
        """Whether there are CPUs enough without some servers, in sum."""
        wanted = self._guest.counted.wanted
        guest, host = wanted.request.guest, position.room.host
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
        """Move servers to hosts where they take no room of new guests."""
        before = self._total(arrangement)
        moves: tuple[trial.ServerMove, ...] = ()
        after = arrangement
        # Large ones first: they find a place less easily.
        for uuid in sorted(uuids, key=self._cost, reverse=True):
            found = self._elsewhere(after, uuid, source)
            if found is None:
                return None
            move, after = found
            moves = (*moves, move)
        return (moves, after) if self._total(after) > before else None

    def _elsewhere(
        self, arrangement: plans_arrangements.Arrangement, uuid: str,
        source: str,
    ) -> tuple[trial.ServerMove, plans_arrangements.Arrangement] | None:
        """The move that costs least room; hosts without room come first."""
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

    # -- what is told

    def _arrangements(self, moves: Sequence[trial.ServerMove]) -> Iterator[
            plans_arrangements.Arrangement]:
        """The cloud before the first move, and after each of them."""
        arrangement = plans_arrangements.Arrangement()
        yield arrangement
        for move in moves:
            after = self._known.move(arrangement, move.uuid, move.destination)
            arrangement = arrangement if after is None else after
            yield arrangement

    def hosts(self, moves: Sequence[trial.ServerMove]) -> set[str]:
        """Names of the hosts of a plan, and of enough others with room.

        :param moves: the plan
        """
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
        """How many new guests fit after moves."""
        *_before, last = self._arrangements(moves)
        return self._total(last)

    def plan(self, moves: Sequence[trial.ServerMove], exact: bool,
             failed: Sequence[str]) -> DefragPlan:
        """The plan with some moves.

        :param exact: whether there are no fewer
        :param failed: why others failed
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
            ports=ports.label, ports_reason=ports.reason,
            flavor=self._flavor.name, count=self._count,
            before=self._before, after=self._total(arrangements[-1]),
            steps=tuple(steps), fixed=fixed, failed=tuple(failed),
            exact=(exact and not self._gaps
                   and self._total(arrangements[-1]) >= self._count),
            gaps=self._gaps)
