# SPDX-License-Identifier: Apache-2.0
"""Plan few live migrations after which more servers of a flavor fit."""

from collections.abc import Collection, Sequence
import fnmatch
import itertools
import typing as ty

from nfv_sched.ops.answers.plans import document
from nfv_sched.ops.answers.plans import gap
from nfv_sched.ops.answers.plans import move_search
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.model import arrangements
from nfv_sched.ops.model.counting import capacity
from nfv_sched.ops.model import movable
from nfv_sched.ops.model.requests import assumed_ports
from nfv_sched.ops.model import trial
from nfv_sched.ops.run import values
from nfv_sched.ops.simulator import start

#: Highest number of plans that are tried in the simulator.
_ROUNDS = 8


def plan(cloud: snapshot.Cloud, flavor: snapshot.Flavor, count: int,
         options: document.DefragOptions = document.FEW_MOVES, *,
         ports: assumed_ports.Choice = None,
         failed: Collection[tuple[str, str]] = (),
         seconds: float = move_search.SECONDS,
         update: move_search.Update = lambda done, total,
         what: None) -> document.Defrag:
    """Plan the fewest live migrations after which new servers fit.

    :param options: those of ports are only repeated in the document
    :param ports: ports of each new server; None for those of the flavor's
        servers
    :param failed: UUIDs of servers, each with a destination to which it is not
        moved, because that has failed
    :param seconds: time limit of each search
    :raises nfv_sched.ops.simulator.servers.Refused: if Nova refuses the flavor
    :raises InputError: as :func:`drain.plan`
    """
    reasons: list[str] = []
    with start.started(cloud) as state:
        search = _DefragSearch(
            arrangements.Positions(
                cloud, state, capacity.NewServers(ports=ports),
                options.cold_for_vfs),
            flavor, count, options, set(failed), gap.of_cloud(cloud), seconds,
            update)
        for _round in range(_ROUNDS):
            moves, exact = search.moves()
            failure = search.fails(cloud, moves) if moves else None
            if failure is None:
                return search.plan(moves, exact and not reasons, reasons)
            reasons.append(search.forbid(moves, failure))
        return search.plan((), False, reasons)


class _DefragSearch(move_search.MoveSearch):
    def __init__(self, positions: arrangements.Positions,
                 flavor: snapshot.Flavor,
                 count: int, options: document.DefragOptions,
                 forbidden: set[tuple[str, str]],
                 gaps: tuple[document.UnreadData, ...], seconds: float,
                 update: move_search.Update):
        def is_avoided(name: str) -> bool:
            return any(fnmatch.fnmatchcase(name, each)
                       for each in options.avoid)

        guest = positions.new(flavor)
        counted = guest.counted.count(list(positions.hosts.values()))
        now = {name: each.fits for name, each in counted.items()}
        super().__init__(
            positions, guest, now, lambda position: positions.fits(
                position, guest, now[position.host.name] + count),
            count, options.max_moves, fixed={
                uuid for uuid, server in positions.servers.items()
                if is_avoided(server.name)},
            closed=set(filter(is_avoided, positions.hosts)),
            forbidden=forbidden, update=update, seconds=seconds)
        self._flavor = flavor
        self._options = options
        self._gaps = gaps

    def fails(self, cloud: snapshot.Cloud,
              moves: Sequence[values.Move]) -> trial.Failure | None:
        """Make the moves, and boot the new servers, in the simulator."""
        # On the hosts of the moves, and enough others for new servers.
        names = trial.hosts_of(moves)
        room = 0
        for name, fits in self._now.items():
            if room < self._count and fits and name not in names:
                room += fits
                names.add(name)
        *_before, last = self.states(moves)
        return trial.failure(
            start.restored(trial.part(cloud, names)), self._positions, moves,
            flavor=self._flavor,
            count=min(self._count, self._count_total(last)),
            update=lambda done, total: self._update(
                done, total, 'moves tried'))

    def plan(self, moves: Sequence[values.Move], exact: bool,
             failed: Sequence[str]) -> document.Defrag:
        positions = self._positions
        states = list(self.states(moves))
        after = self._count_total(states[-1])
        fixed = [
            document.FixedServer(
                server=positions.servers[uuid].name, server_id=uuid,
                obstacle=obstacle)
            for uuids in positions.on_host.values() for uuid in uuids
            if (obstacle := self._why_not(uuid)) is not None]
        return document.Defrag(
            flavor=self._flavor.name, flavor_id=self._flavor.id or None,
            wanted=self._count, fits_before=self._before, fits_after=after,
            enough=after >= self._count, moves=tuple(itertools.starmap(
                self._with_gains, zip(
                    itertools.count(1), moves, states, states[1:]))),
            not_movable=tuple(fixed), failed=tuple(failed),
            exact=exact and not self._gaps and after >= self._count,
            bound=None if self._gaps else self.bound,
            ports=positions.ports_of(self._flavor), options=self._options,
            unread=self._gaps)

    def _with_gains(self, number: int, move: values.Move,
                    before: arrangements.Arrangement,
                    after: arrangements.Arrangement) -> document.DefragMove:
        positions = self._positions
        server = positions.servers[move.id]
        gains = []
        for name in (move.source, move.destination):
            gain = (self._count_fits(after.positions[name])
                    - self._count_fits(positions.position(name, before)))
            if gain:
                gains.append(document.CapacityGain(
                    host=name, host_id=positions.host_id(name),
                    servers=gain))
        return document.DefragMove(
            move=number, server=move.name, server_id=move.id,
            flavor=server.flavor.name, flavor_id=server.flavor.id or None,
            memory_mib=server.flavor.memory, how=ty.cast(ty.Any, move.kind),
            paused=server.state == movable.PAUSED, source=move.source,
            source_id=positions.host_id(move.source),
            destination=move.destination,
            destination_id=positions.of_name[move.destination].uuid,
            gains=tuple(gains), related=move.related,
            vfs_detached=move.vfs_detached)
