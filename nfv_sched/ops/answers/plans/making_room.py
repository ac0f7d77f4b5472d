# SPDX-License-Identifier: Apache-2.0
"""Find moves of other servers after which a host takes a server.

They are searched as those after which a new server fits, and carried out in
the simulator, with the move of the server itself, before they are returned.
"""

from collections.abc import Collection
from collections.abc import Sequence
import typing as ty

from nfv_sched.ops.answers.plans import move_search
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.model import arrangements
from nfv_sched.ops.model import movable
from nfv_sched.ops.model import trial
from nfv_sched.ops.run import values
from nfv_sched.ops.simulator import start

#: Highest number of moves for one server, as of servers that leave a host for
#: a new one.
_MOST_MOVES = 3
#: Highest number of solutions that are tried in the simulator.
_ROUNDS = 8


def solution(
    cloud: snapshot.Cloud, uuid: str, kind: movable.MoveKind, *,
    fixed: Collection[str], closed: Collection[str],
    forbidden: Collection[tuple[str, str]], cold_for_vfs: bool,
    seconds: float, update: move_search.Update,
) -> tuple[Sequence[values.Move], snapshot.Cloud, list[str]]:
    """Return few moves after which some host takes a server.

    To be called within :func:`simulator.start.started`.

    :param fixed: UUIDs of servers that are not moved
    :param closed: names of hosts that neither lose nor get servers
    :param forbidden: (UUID of the server, destination) of moves that must not
        be made
    :returns: moves of others, then that of the server, or none; the cloud
        after them; and reasons of moves that the simulator refused
    """
    positions = arrangements.Positions(
        cloud, start.restored(cloud), cold_for_vfs=cold_for_vfs)
    forbidden = set(forbidden)
    failed: list[str] = []
    for _round in range(_ROUNDS):
        search = _RoomSearch(
            uuid, fixed, closed, positions, positions.guest(uuid, kind),
            # No host takes the server now, or the drain would have found it.
            dict.fromkeys(positions.hosts, 0), 1, _MOST_MOVES,
            forbidden=forbidden, seconds=seconds, update=update)
        moves, _exact = search.moves()
        destination = search.destination(moves) if moves else None
        if destination is None:
            break
        server = positions.servers[uuid]
        moves = (*moves, trial.move_of(
            server, server.host or '', destination, kind,
            positions.related(uuid)))
        after, failure = trial.run(cloud, positions, moves)
        if failure is None:
            return moves, after, failed
        failed.append(search.forbid(moves, failure))
    return (), cloud, failed


class _RoomSearch(move_search.MoveSearch):
    """A search for moves after which a host takes a server."""

    def __init__(self, uuid: str, fixed: Collection[str],
                 closed: Collection[str], *args: ty.Any, **options: ty.Any):
        self._uuid = uuid
        self._fixed_servers = fixed
        self._closed_hosts = closed
        super().__init__(*args, **options)

    def _may_leave(self, uuid: str) -> bool:
        return uuid not in self._fixed_servers and super()._may_leave(uuid)

    def _may_change(self, name: str) -> bool:
        return name not in self._closed_hosts and super()._may_change(name)

    def _fits_after(self, position: arrangements.Position) -> int:
        """Return 1 if the server may go to a host after moves, else 0."""
        positions, name = self._positions, position.host.name
        # Where others are now, as far as it matters for this host.
        arrangement = arrangements.Arrangement(where={
            **dict.fromkeys(position.left, ''),
            **dict.fromkeys(position.came, name)})
        return int(
            name not in self._closed_hosts
            and (self._uuid, name) not in self._forbidden
            and positions.in_cell(self._uuid, name)
            and positions.together(arrangement, self._uuid, name, soft=False)
            and positions.put(position, self._guest, self._uuid,
                              positions.degrees(self._uuid)) is not None)

    def destination(self, moves: Collection[values.Move]) -> str | None:
        *_before, last = self._arrangements(moves)
        return next((name for name, position in last.positions.items()
                     if self._count_fits(position)), None)
