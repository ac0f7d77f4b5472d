# SPDX-License-Identifier: Apache-2.0
"""Find out why a server finds no other host, and which policies prevent it."""

from collections.abc import Collection, Iterator, Mapping, Sequence
import dataclasses
import itertools
import types
import typing as ty

from nfv_sched.ops.answers.explain import relaxation
from nfv_sched.ops.answers.plans import document
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.model import arrangements
from nfv_sched.ops.model import movable
from nfv_sched.ops.model import trial
from nfv_sched.ops.simulator import servers
from nfv_sched.ops.simulator import start

_NONE: Mapping[str, ty.Any] = types.MappingProxyType({})


class LackKind(movable.WordedKind):
    """Cause that keeps a server off a host."""

    CELL = 'cell', 'another cell'
    GROUP = 'group', 'the server group ({})'
    HINT = 'hint', 'the hint {}'
    PLACEMENT = 'placement', 'Placement'
    FILTERS = 'filters', '{}'
    CLAIM = 'claim', 'the claim on the compute node'
    #: They would be kept less than on the present host.
    POLICIES = 'policies', '{} kept less'
    SIMULATOR = 'simulator', 'refused in the simulator'
    #: In the cloud.
    FAILED = 'failed', 'a move there has just failed'
    #: Others that leave the same host take the capacity.
    GUESTS = 'guests', 'other servers'


class _OnHost(ty.NamedTuple):
    """The cause that keeps a server off one host; higher ranks are nearer."""

    kind: LackKind
    names: tuple[str, ...] = ()
    text: str = ''
    rank: int = 0


def lacks(
    positions: arrangements.Positions, uuid: str,
    excluded_hosts: frozenset[str], degrees: Mapping[str, float] = _NONE,
    refused: Mapping[str, str] = _NONE, failed: Mapping[str, str] = _NONE,
) -> tuple[document.CapacityLack, ...]:
    """Return why a server finds no other host, the commonest first.

    Placement and filters are asked about hosts as they are, as in
    :mod:`nfv_sched.ops.answers.explain`.

    :param excluded_hosts: names of the hosts to which it cannot go anyway
    :param degrees: text of each policy -> least degree to which it must be
        kept
    :param refused: hosts to which a move failed in the simulator -> why
    :param failed: hosts to which a move failed in the cloud -> why
    """
    alike: dict[tuple, list[tuple[int, str, str]]] = {}
    for name in positions.hosts:
        if name in excluded_hosts:
            continue
        if name in failed:
            cause = _OnHost(LackKind.FAILED, text=failed[name])
        elif name in refused:
            cause = _OnHost(LackKind.SIMULATOR, text=refused[name])
        else:
            cause = _cause_on_host(positions, uuid, name, degrees)
        alike.setdefault((cause.kind, cause.names), []).append(
            (cause.rank, name, cause.text))
    rows = []
    for (kind, names), hosts in alike.items():
        # Of equally near hosts, max() takes the first.
        _rank, host, text = max(hosts, key=lambda each: each[0])
        rows.append(document.CapacityLack(
            kind=kind, names=names, hosts=len(hosts), nearest=host,
            nearest_id=positions.host_id(host), why=text or None))
    return tuple(sorted(rows, key=lambda lack: -lack.hosts))


def _cause_on_host(positions: arrangements.Positions, uuid: str, name: str,
                   degrees: Mapping[str, float]) -> _OnHost:
    if not positions.in_cell(uuid, name):
        return _OnHost(LackKind.CELL)
    # Hints and groups come first: no free capacity on the host helps.
    hint = positions.broken_hint(arrangements.AS_IS, uuid, name)
    if hint is not None:
        return _OnHost(LackKind.HINT, (hint,))
    if not positions.together(arrangements.AS_IS, uuid, name, soft=False):
        return _OnHost(LackKind.GROUP, (positions.policy(uuid),))
    guest = positions.guest(uuid)
    answer, filters = positions.refusals(guest)
    if missing := answer.lacks.get(name):
        return _OnHost(
            LackKind.PLACEMENT,
            tuple([each.need.text for each in missing if each.need]),
            ', '.join([each.text for each in missing]),
            answer.free.get(name, 0))
    refused = [hosts[name] for hosts in filters.values() if name in hosts]
    if refused:
        # Several filters give the same reason for NUMA nodes.
        sentences = dict.fromkeys(
            f'{each.key}: {each.why}' if each.key else each.why
            for each in refused if each.why)
        return _OnHost(
            LackKind.FILTERS, tuple([each.filter for each in refused]),
            '; '.join(sentences), max(each.rank for each in refused))
    position = positions.position(name)
    if position.put(guest, uuid) is None:
        return _OnHost(LackKind.CLAIM)
    if degrees and position.put(guest, uuid, degrees) is None:
        return _OnHost(LackKind.POLICIES, tuple(degrees))
    return _OnHost(LackKind.GUESTS)


class _Change(ty.NamedTuple):
    policy: str
    becomes: str
    key: str  #: extra spec that changes
    value: str | None  #: its new value; None if it only has to be kept less


def relaxations(
    cloud: snapshot.Cloud, uuid: str, kind: movable.MoveKind,
    closed: Collection[str],
) -> tuple[document.MoveRelaxation, ...]:
    """Return how policies can be relaxed so that a host takes a server.

    They are tried one by one, and two together if no single one helps: a
    strict policy becomes prefer, and one that is kept may be kept less.

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
    uuid = server.uuid
    specs = {**server.flavor.extra_specs, **{
        change.key: change.value for change in changes
        if change.value is not None}}
    server = dataclasses.replace(
        server, flavor=dataclasses.replace(server.flavor, extra_specs=specs))
    cloud = dataclasses.replace(cloud, servers=tuple([
        server if each.uuid == uuid else each for each in cloud.servers]))
    positions = arrangements.Positions(cloud, start.restored(cloud))
    try:
        guest = positions.guest(uuid, kind)
    except servers.Refused:
        return None
    relaxed = {change.becomes for change in changes}
    degrees = {text: degree for text, degree
               in positions.to_keep(uuid, kind).items() if text not in relaxed}
    for name in sorted(positions.hosts, key=positions.free_cpus):
        if name in closed or not (
                positions.in_cell(uuid, name) and positions.together(
                    arrangements.AS_IS, uuid, name, soft=False)):
            continue
        position = positions.position(name)
        if position.put(guest, uuid, degrees) is None:
            continue
        _after, failure = trial.run(cloud, positions, [
            trial.move_of(positions, uuid, server.host or '', name, kind)])
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
    if position.put(guest, uuid, {text: 1.0}) is not None:
        return 'yes'
    is_partly = position.put(guest, uuid, {text: 0.5})
    return 'no' if is_partly is None else 'partly'
