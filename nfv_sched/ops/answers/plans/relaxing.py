# SPDX-License-Identifier: Apache-2.0
"""Find policies without which a host takes a server that is to move.

They are tried one by one, and two together if no single one helps: a strict
policy becomes prefer, and one that is kept may be kept less.
"""

from collections.abc import Collection
from collections.abc import Iterator
from collections.abc import Sequence
import dataclasses
import itertools
import typing as ty

from nfv_sched.ops.answers.explain import relaxation
from nfv_sched.ops.answers.plans import document
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.model import arrangements
from nfv_sched.ops.model import movable
from nfv_sched.ops.model import trial
from nfv_sched.ops.simulator import servers
from nfv_sched.ops.simulator import start

_PARTLY = 0.5


class _Change(ty.NamedTuple):
    """A policy, and what becomes of it."""

    policy: str
    becomes: str
    key: str  #: extra spec that changes
    value: str | None  #: its new value; None if it only has to be kept less


def moves(cloud: snapshot.Cloud, uuid: str, kind: movable.MoveKind,
          closed: Collection[str]) -> tuple[document.MoveRelaxation, ...]:
    """Return how policies can be relaxed so that a host takes a server.

    To be called within :func:`simulator.start.started`.
    """
    server = next(each for each in cloud.servers if each.uuid == uuid)
    positions = arrangements.Positions(cloud, start.restored(cloud))
    changes = list(_changes(server, positions))
    for size in (1, 2):
        relaxed = [move for chosen in itertools.combinations(changes, size)
                   if (move := _move(cloud, server, kind, closed, chosen))]
        if relaxed:
            return tuple(relaxed)
    return ()


def _changes(server: snapshot.Server,
             positions: arrangements.Positions) -> Iterator[_Change]:
    specs = server.flavor.extra_specs
    strict = dict(relaxation.lenient_values(specs))
    for key, value in strict.items():
        yield _Change(f'{key}={specs[key]}', f'{key}={value}', key, value)
    for text, degree in positions.degrees(server.uuid).items():
        key = text.partition('=')[0]
        if degree > 0 and key not in strict:
            yield _Change(text, text, key, None)


def _move(cloud: snapshot.Cloud, server: snapshot.Server,
          kind: movable.MoveKind, closed: Collection[str],
          changes: Sequence[_Change]) -> document.MoveRelaxation | None:
    """Return the move with changed policies; None if no host takes it."""
    uuid, source = server.uuid, server.host or ''
    specs = {**server.flavor.extra_specs, **{
        change.key: change.value for change in changes
        if change.value is not None}}
    server = dataclasses.replace(
        server, flavor=dataclasses.replace(
            server.flavor, extra_specs=specs))
    cloud = dataclasses.replace(cloud, servers=tuple([
        server if each.uuid == uuid else each for each in cloud.servers]))
    positions = arrangements.Positions(cloud, start.restored(cloud))
    try:
        guest = positions.guest(uuid, kind)
    except servers.Refused:
        return None
    relaxed = {change.becomes for change in changes}
    degrees = {text: degree for text, degree
               in positions.degrees(uuid).items() if text not in relaxed}
    for name in sorted(positions.hosts, key=positions.free_cpus):
        if name in closed or not (
                positions.in_cell(uuid, name) and positions.together(
                    arrangements.AS_IS, uuid, name, soft=False)):
            continue
        position = positions.position(name)
        if positions.put(position, guest, uuid, degrees) is None:
            continue
        _after, failure = trial.run(
            cloud, positions, [trial.move_of(server, source, name, kind)])
        # That a policy is kept less is what was to be allowed.
        if failure is None or failure.degrades:
            return document.MoveRelaxation(
                host=name, host_id=positions.host_id(name),
                policies=tuple([
                    document.PolicyChange(
                        policy=change.policy, becomes=change.becomes,
                        kept=_kept_level(positions, position, guest, uuid,
                                         change.becomes))
                    for change in changes]))
    return None


def _kept_level(
    positions: arrangements.Positions, position: arrangements.Position,
    guest: arrangements.Guest, uuid: str, text: str,
) -> ty.Literal['yes', 'partly', 'no'] | None:
    if text not in positions.degrees(uuid):
        return None
    if positions.put(position, guest, uuid, {text: 1.0}) is not None:
        return 'yes'
    is_partly = positions.put(position, guest, uuid, {text: _PARTLY})
    return 'no' if is_partly is None else 'partly'
