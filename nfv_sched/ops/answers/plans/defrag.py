# SPDX-License-Identifier: Apache-2.0
"""Plan few live migrations after which more servers of a flavor fit.

Each plan is carried out in the simulator before it is returned.
"""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Sequence
import dataclasses
import typing as ty

from nfv_sched.ops.answers.plans import gap
from nfv_sched.ops.answers.plans import move_search
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.model import arrangements
from nfv_sched.ops.model import movable
from nfv_sched.ops.model.requests import assumed_ports
from nfv_sched.ops.model import trial
from nfv_sched.ops.simulator import start

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
class FreeingServer:
    """A server without which its host would take a new server.

    :ivar has_destination: whether another host takes it
    """

    name: str
    host: str
    has_destination: bool


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
    :ivar freeing: if no moves help, the servers that can be moved, and without
        one of which its host would take one more new server; else None
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
    freeing: tuple[FreeingServer, ...] | None = None
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
    ports: assumed_ports.Choice = None, cold_for_vfs: bool = False,
    failed: Collection[tuple[str, str]] = (),
    update: Callable[[int, int | None, str], None] = (
        lambda done, total, what: None),
) -> DefragPlan:
    """Plan the fewest live migrations after which new servers fit.

    :param flavor: flavor of the new servers
    :param count: number of new servers that should fit
    :param max_moves: highest number of moves
    :param avoid: patterns of names: such servers stay, and such hosts neither
        lose nor get servers
    :param ports: ports of each new server; None for those of the flavor's
        servers
    :param cold_for_vfs: see :class:`arrangements.Positions`
    :param failed: UUIDs of servers, each with a destination to which it is not
        moved, because that has failed
    :param update: called with (steps done, all steps, activity)
    :raises nfv_sched.ops.simulator.servers.Refused: if Nova refuses the flavor
    :raises nfv_sched.ops.cloud.cloud_file.problems.InputError: if a filter of
        the cloud is not installed, or an option is bad
    """
    forbidden = set(failed)
    reasons: list[str] = []
    with start.started(cloud) as state:
        positions = arrangements.Positions(
            cloud, state, ports, cold_for_vfs=cold_for_vfs)
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
                return search.plan(moves, exact and not reasons, reasons)
            # New servers that find no host: the last move was to make room for
            # them.
            refused = failure.move or moves[-1]
            forbidden.add((refused.uuid, refused.destination))
            reasons.append(f'{refused.name} to {refused.destination}: '
                           f'{failure.reason}')
        return search.plan((), False, reasons)


class _DefragSearch(move_search.MoveSearch):
    """A search for moves after which new servers of a flavor fit.

    :param flavor: flavor of the new servers
    :param gaps: data that was not read
    """

    def __init__(self, positions: arrangements.Positions,
                 flavor: snapshot.Flavor,
                 count: int, max_moves: int, avoid: Collection[str],
                 forbidden: Collection[tuple[str, str]],
                 gaps: tuple[gap.Gap, ...],
                 update: Callable[[int, int | None, str], None]):
        guest = positions.new(flavor)
        counted = guest.counted.count(list(positions.hosts.values()))
        super().__init__(
            positions, guest,
            {name: each.fits for name, each in counted.items()}, count,
            max_moves, avoid=avoid, forbidden=forbidden, update=update)
        self._flavor = flavor
        self._gaps = gaps

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
        return self._count_total(last)

    def plan(self, moves: Sequence[trial.ServerMove], exact: bool,
             failed: Sequence[str]) -> DefragPlan:
        """Return the plan with some moves.

        :param exact: whether no fewer moves have this effect
        :param failed: reasons why other moves failed
        """
        states = list(self._arrangements(moves))
        steps = []
        for move, before, after in zip(moves, states, states[1:]):
            gains = {}
            for name in (move.source, move.destination):
                gain = (self._count_fits(after.positions[name])
                        - self._count_fits(
                            self._positions.position(name, before)))
                if gain:
                    gains[name] = gain
            steps.append(DefragStep(move=move, gains=gains))
        fixed = {}
        for uuids in self._positions.on_host.values():
            for uuid in uuids:
                obstacle = self._why_not(uuid)
                if obstacle is not None:
                    fixed[uuid] = obstacle
        ports = self._positions.ports_of(self._flavor)
        freeing = None
        if not moves and self._before < self._count:
            freeing = tuple(FreeingServer(
                name=self._positions.servers[uuid].name, host=name,
                has_destination=has_destination)
                for uuid, name, has_destination in self._freeing())
        return DefragPlan(
            freeing=freeing,
            ports=ports,
            flavor=self._flavor.name, count=self._count,
            before=self._before, after=self._count_total(states[-1]),
            steps=tuple(steps), fixed=fixed, failed=tuple(failed),
            exact=(exact and not self._gaps
                   and self._count_total(states[-1]) >= self._count),
            gaps=self._gaps)
