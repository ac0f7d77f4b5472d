# SPDX-License-Identifier: Apache-2.0
"""Plan few live migrations after which more servers of a flavor fit."""

from collections.abc import Collection, Iterator, Sequence

from nfv_sched.ops.answers.plans import document
from nfv_sched.ops.answers.plans import gap
from nfv_sched.ops.answers.plans import move_search
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.model import arrangements
from nfv_sched.ops.model.counting import capacity
from nfv_sched.ops.model import program
from nfv_sched.ops.model.requests import assumed_ports
from nfv_sched.ops.model import trial
from nfv_sched.ops.run import values
from nfv_sched.ops.simulator import start


def plan(cloud: snapshot.Cloud, flavor: snapshot.Flavor, count: int,
         options: document.DefragOptions = document.DefragOptions(), *,
         ports: assumed_ports.Choice = None,
         failed: Collection[tuple[str, str]] = (),
         seconds: float = move_search.SECONDS,
         update: move_search.Update = lambda done, total,
         what: None) -> document.Defrag:
    """Plan the fewest live migrations after which new servers fit.

    :param options: those of ports are only repeated in the document
    :param ports: ports of each new server; None for those of the flavor's
        servers
    :param failed: (UUID of the server, destination) of moves not to make
    :raises nfv_sched.ops.simulator.servers.Refused: if Nova refuses the flavor
    :raises InputError: as :func:`drain.plan`
    """
    with start.started(cloud) as state:
        search = _DefragSearch(
            arrangements.Positions(
                cloud, state, capacity.NewServers(ports=ports),
                options),
            flavor, count, options, set(failed), gap.of_cloud(cloud), seconds,
            update)
        return search.plan(*search.tried(
            lambda moves: (None, search.fails(cloud, moves)))[:3])


class _DefragSearch(move_search.MoveSearch):
    def __init__(self, positions: arrangements.Positions,
                 flavor: snapshot.Flavor,
                 count: int, options: document.DefragOptions,
                 forbidden: set[tuple[str, str]],
                 gaps: tuple[document.UnreadData, ...], seconds: float,
                 update: move_search.Update):
        guest = positions.new(flavor)
        now = {name: each.fits for name, each in guest.counted.count(
            list(positions.hosts.values())).items()}
        self._counts = counts = move_search.HostCounts(
            now, lambda position: positions.fits(
                position, guest, now[position.host.name] + count))
        super().__init__(
            positions, program.FitNewServers(guest, now, count), counts.total,
            options.max_moves, fits=counts.on_host,
            forbidden=forbidden, update=update, seconds=seconds)
        self._count = count
        self._flavor = flavor
        self._options = options
        self._gaps = gaps

    def fails(self, cloud: snapshot.Cloud,
              moves: Sequence[values.Move]) -> trial.Failure | None:
        """Make the moves, and boot the new servers, in the simulator."""
        # On the hosts of the moves, and enough others for new servers.
        names = trial.hosts_of(moves)
        room = 0
        for name, fits in self._counts.now.items():
            if room < self._count and fits and name not in names:
                room += fits
                names.add(name)
        *_before, last = self.states(moves)
        return trial.failure(
            start.restored(trial.part(cloud, names)), self.positions, moves,
            flavor=self._flavor,
            count=min(self._count, self.value(last)),
            update=lambda done, total: self._update(
                done, total, 'moves tried'))

    def plan(self, moves: Sequence[values.Move], exact: bool,
             failed: tuple[str, ...]) -> document.Defrag:
        states = list(self.states(moves))
        after = self.value(states[-1])
        return document.Defrag(
            flavor=self._flavor.name, flavor_id=self._flavor.id or None,
            wanted=self._count, fits_before=self.before, fits_after=after,
            enough=after >= self._count, moves=tuple([
                self.row(number, move, self._gains(move, *around))
                for number, (move, *around) in enumerate(zip(
                    moves, states, states[1:]), 1)]),
            not_movable=self.fixed_servers(), failed=failed,
            exact=exact and not self._gaps and after >= self._count,
            bound=None if self._gaps else self.bound,
            ports=self.positions.ports_of(self._flavor),
            options=self._options, unread=self._gaps)

    def _gains(self, move: values.Move, before: arrangements.Arrangement,
               after: arrangements.Arrangement) -> Iterator[
                   document.CapacityGain]:
        for name in (move.source, move.destination):
            gain = (self._counts.on_host(after.positions[name])
                    - self._counts.on_host(
                        self.positions.position(name, before)))
            if gain:
                yield document.CapacityGain(
                    host=name, host_id=self.positions.host_id(name),
                    servers=gain)
