# SPDX-License-Identifier: Apache-2.0
"""Carry out a plan on a copy of the cloud, as Nova would.

The simulator calls Nova's own scheduler with the destination of each move, and
claims resources with Nova's own code, one move after the other.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from collections.abc import Sequence
import dataclasses
import typing as ty

from nfv_sched.ops.cloud import actions
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.model import arrangements
from nfv_sched.ops.model import movable
from nfv_sched.ops.run import values
from nfv_sched.ops.simulator import engine
from nfv_sched.ops.simulator import lifecycle
from nfv_sched.ops.simulator import record
from nfv_sched.ops.simulator import request
from nfv_sched.ops.simulator import servers
from nfv_sched.ops.simulator import start
from nfv_sched.ops.simulator import state as states

_STEPS: Mapping[str, ty.Any] = {
    movable.LIVE: 'live_migrate', movable.EVACUATE: 'evacuate'}
# Degrees are sums of fractions.
_EPSILON = 1e-9


def move_of(positions: arrangements.Positions, uuid: str, source: str,
            destination: str, kind: movable.MoveKind) -> values.Move:
    """Return a move of a server; ``destination`` is empty if shelved."""
    server = positions.servers[uuid]
    copied = movable.copied(kind, server, positions.host_id(server.host))
    return values.Move(
        kind=ty.cast(values.Kind, kind), id=uuid, name=server.name,
        source=source, destination=destination,
        related=positions.related(uuid) if destination else (),
        vfs_detached=movable.vfs_detached(server)
        if kind == movable.LIVE else 0,
        copied=copied, only_node=positions.only_node(
            uuid, destination, kind, copied) if destination else None)


class Failure(ty.NamedTuple):
    """A failed step of a trial."""

    done: int  #: number of moves that were made before
    #: the move that failed; None if new servers found no host
    move: values.Move | None
    reason: str
    #: whether the move is possible, but a policy is kept less afterwards
    degrades: bool = False

    def text(self, move: values.Move) -> str:
        """Return it for people; ``move`` is the one that is not made."""
        return f'{move.name} to {move.destination}: {self.reason}'


def part(cloud: snapshot.Cloud, hosts: Collection[str]) -> snapshot.Cloud:
    return dataclasses.replace(
        cloud, hosts=tuple(each for each in cloud.hosts
                           if each.name in hosts),
        servers=tuple(each for each in cloud.servers if each.host in hosts))


def run(cloud: snapshot.Cloud, positions: arrangements.Positions,
        moves: Sequence[values.Move],
        update: Callable[[int, int], None] = lambda done,
        total: None) -> tuple[snapshot.Cloud, Failure | None]:
    """Return the cloud after moves; unchanged, and why, if one fails.

    What was not read of the cloud is not in the result either.
    """
    if not moves:
        return cloud, None
    # With these hosts alone, which takes a fraction of the time.
    state = start.restored(part(cloud, hosts_of(moves)))
    failed = failure(state, positions, moves, update=update)
    return (_after(cloud, state, moves) if failed is None else cloud), failed


def problem(cloud: snapshot.Cloud, moves: Sequence[values.Move]) -> str:
    """Return why moves of servers cannot be made; empty if they can."""
    with start.started(cloud) as state:
        positions = arrangements.Positions(cloud, state)
        places = {uuid: server.host
                  for uuid, server in positions.servers.items()}
        for move in moves:
            if places.get(move.id) != move.source:
                return f'{move.name} is not on {move.source}'
            if move.destination and move.destination not in positions.hosts:
                return f'there is no host {move.destination}'
            if obstacle := positions.why_not(
                    movable.MoveKind(move.kind), move.id):
                return f'{move.name}: {obstacle.text}'
            places[move.id] = move.destination
        _cloud, failed = run(cloud, positions, moves)
    return '' if failed is None else failed.text(moves[failed.done])


def hosts_of(moves: Iterable[values.Move]) -> set[str]:
    return {name for move in moves for name in (move.source, move.destination)}


def _after(cloud: snapshot.Cloud, state: states.State,
           moves: Sequence[values.Move]) -> snapshot.Cloud:
    recorded = record.cloud(state)
    # Only these hosts have changed; all others are taken from the snapshot,
    # which may know more than the simulator.  It makes up what was not read,
    # and that must not look as if it had been.
    names = hosts_of(moves)
    hosts = {each.uuid: each for each in recorded.hosts if each.name in names}
    moved = {move.id for move in moves}
    servers_after = {each.uuid: each for each in recorded.servers
                     if each.uuid in moved}
    return dataclasses.replace(
        cloud, hosts=tuple([
            each if (after := hosts.get(each.uuid)) is None
            else dataclasses.replace(
                after, providers=each.providers and after.providers,
                network=each.network and after.network)
            for each in cloud.hosts]),
        servers=tuple([
            each if (after := servers_after.get(each.uuid)) is None
            else dataclasses.replace(
                each, host=after.host, nodes=after.nodes,
                state=each.state if after.host else after.state,
                devices=after.devices,
                allocations=each.allocations and after.allocations)
            for each in cloud.servers]))


def failure(state: states.State, positions: arrangements.Positions,
            moves: Sequence[values.Move], *,
            flavor: snapshot.Flavor | None = None, count: int = 0,
            update: Callable[[int, int], None] = lambda done,
            total: None) -> Failure | None:
    """Carry out a plan; return why it fails, or None.

    No migration may keep a policy of the server less than it is kept before.

    :param state: the cloud in the simulator, at least the hosts of the plan
        and those for the new servers; changed
    :param positions: the cloud as it is
    :param flavor: flavor of new servers that are booted afterwards
    :param update: called with (steps done, all steps)
    """
    total = len(moves) + count
    simulation = engine.Simulation(state)
    simulated = {server.uuid: server for server in state.servers.values()}
    for index, move in enumerate(moves):
        update(index, total)
        server = simulated[move.id]
        is_shelved = move.kind == movable.SHELVE
        # Right before the move: an earlier one of the plan may have moved it.
        is_free = is_shelved or move.kind == movable.EVACUATE
        before = {} if is_free else positions.degrees_of(server)
        step: dict[str, ty.Any] = {
            'number': index + 1, 'targets': (server.name,)}
        if is_shelved:
            simulation.step(actions.ServerStep(action='shelve', **step))
        elif move.kind in _STEPS:
            simulation.step(actions.MoveStep(
                action=_STEPS[move.kind], host=move.destination, **step))
        else:
            simulation.step(actions.ColdMove(
                action='cold_migrate', host=move.destination, **step))
        outcome = simulation.outcomes[-1]
        if not outcome.ok:
            return Failure(index, move, outcome.reason)
        if is_free:
            continue
        after = positions.degrees_of(server)
        worse = [policy for policy, degree in before.items()
                 if after.get(policy, 0.0) < degree - _EPSILON]
        if worse:
            return Failure(index, move, f'{", ".join(worse)} would be kept '
                           'less', degrades=True)
    for number in range(count if flavor is not None else 0):
        update(len(moves) + number, total)
        server = servers.SimulatedServer(f'new server {number + 1}',
                                         flavor.name)
        state.servers[server.name] = server
        try:
            lifecycle.boot_as(state, server, request.BootRequest(
                flavor=flavor, ports=positions.ports_of(flavor).plugs))
        except servers.Refused as exc:
            return Failure(len(moves), None, str(exc))
    update(total, total)
    return None
