# SPDX-License-Identifier: Apache-2.0
"""Model hypothetical states of a cloud after moves.

Like a host in :mod:`nfv_sched.ops.model.counting.host_changes`, a cloud is an
immutable value (:class:`Arrangement`), so that plans can be tried and dropped.
Plans made with it are checked in the simulator before they are shown.
"""

from collections.abc import Collection, Hashable, Mapping, Sequence
import dataclasses
import types
import typing as ty

import os_resource_classes as orc

from nfv_sched.fit.numa import decide
from nfv_sched.fit import occupancy
from nfv_sched.nova import scheduler as nova_scheduler
from nfv_sched.ops.cloud import occupied
from nfv_sched.ops.cloud import scenario
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.model.counting import capacity
from nfv_sched.ops.model.counting import host_changes
from nfv_sched.ops.model import movable
from nfv_sched.ops.model.requests import assumed_ports
from nfv_sched.ops.model.verdicts import filters as verdict_filters
from nfv_sched.ops.model.verdicts import placement as verdict_placement
from nfv_sched.ops.run import values
from nfv_sched.ops.simulator import request
from nfv_sched.ops.simulator import servers
from nfv_sched.ops.simulator import state as states

Position = host_changes.Position
Guest = host_changes.MovableGuest

_NOTHING: Mapping[str, ty.Any] = types.MappingProxyType({})
#: Affinity of the devices -> degree of the policies about devices.
_NEAR = {'local': 1.0, 'partial': 0.5, 'remote': 0.0}
_SOFT = 'soft-'
_AFFINITY = 'affinity'
#: Hints of the scheduler that name servers.
SAME_HOST = 'same_host'
DIFFERENT_HOST = 'different_host'
#: Hint -> filter that obeys it.
_HINTS = {SAME_HOST: 'SameHostFilter', DIFFERENT_HOST: 'DifferentHostFilter'}


@dataclasses.dataclass(frozen=True, slots=True)
class Arrangement:
    """A cloud after some moves; immutable."""

    #: changed hosts, by name
    positions: Mapping[str, Position] = dataclasses.field(default_factory=dict)
    #: UUID of each moved server -> name of its host
    where: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def moved(self, uuid: str, *positions: Position) -> 'Arrangement':
        """Return the cloud with changed hosts, the destination last."""
        changed = {each.host.name: each for each in positions}
        return Arrangement({**self.positions, **changed},
                           {**self.where, uuid: positions[-1].host.name})


#: A cloud without moves.
AS_IS = Arrangement()


#: The answer of Placement, and verdicts of the filters on the hosts in it.
Refusals = tuple[verdict_placement.PlacementResult, verdict_filters.Verdicts]


class Positions:
    """The hosts and servers of a cloud, for plans; nothing is changed there.

    :param state: the cloud that was started from ``cloud``, with its servers
    :param closed: names of hosts that neither lose nor get servers, either
    :ivar simulated: servers in the simulator by UUID
    """

    def __init__(self, cloud: snapshot.Cloud, state: states.State,
                 new: capacity.NewServers = capacity.NewServers(),
                 options: movable.MoveOptions = movable.MoveOptions(),
                 closed: Collection[str] = ()):
        self._cloud = cloud
        self.options = options
        self._state = state
        self.ports_of = assumed_ports.per_flavor(cloud, new.ports)
        self._counting = capacity.Counting(
            state, self.ports_of, new, figures=capacity.has_figures(cloud))
        self.hosts = {host.name: host for host in self._counting.hosts()}
        self.of_name = {host.name: host for host in scenario.hosts_of(cloud)}
        self.servers = {server.uuid: server for server in cloud.servers}
        self.simulated = {server.uuid: server
                          for server in state.servers.values()}
        self.on_host: dict[str, list[str]] = {name: [] for name in self.hosts}
        for server in cloud.servers:
            if server.host in self.on_host:
                self.on_host[server.host].append(server.uuid)
        self._members = {
            member: group for group in cloud.groups
            for member in group.members if member in self.servers}
        self.closed = frozenset(filter(options.avoids, self.hosts)).union(
            closed)
        enabled = nova_scheduler.enabled_filters()
        self._hints = frozenset(
            hint for hint, name in _HINTS.items() if name in enabled)
        self._guests: dict[Hashable, Guest] = {}
        self._refused: dict[Hashable, servers.Refused] = {}
        self._refusals: dict[Guest, Refusals] = {}
        self._now: dict[str, Position] = {}
        self._shares: dict[str, tuple[occupancy.Share, ...]] = {}
        self._degrees: dict[str, Mapping[str, float]] = {}

    # -- servers

    def new(self, flavor: snapshot.Flavor) -> Guest:
        return Guest(self._counting.guest(flavor), hosts=self.hosts.values())

    def guest(self, uuid: str, kind: movable.MoveKind | None = None) -> Guest:
        """Return a server as one that can be moved.

        The kind of the move matters because some releases of Nova do not take
        NUMA limits along in a live migration.

        :raises servers.Refused: if Nova refuses a move before it looks for a
            host
        """
        server, simulated = self.servers[uuid], self.simulated[uuid]
        limits_lost = kind == movable.LIVE and (
            not nova_scheduler.live_migration_carries_limits())
        key = _kind(server), limits_lost
        # Its traceback would grow each time it is raised.
        if key in self._refused:
            raise self._refused[key].with_traceback(None)
        if key not in self._guests:
            try:
                spec = request.of_move(
                    self._state, simulated, None, (), live=limits_lost)
                # Filters know only the present hosts of servers; together()
                # replaces them.
                spec.scheduler_hints = {
                    hint: values for hint, values
                    in (spec.scheduler_hints or {}).items()
                    if hint not in _HINTS}
                self._guests[key] = Guest(
                    self._counting.guest_of(spec, limits_lost),
                    simulated.has_fixed_devices, self.hosts.values())
            except servers.Refused as exc:
                self._refused[key] = exc
                raise
        return self._guests[key]

    def host_id(self, name: str | None) -> str | None:
        host = self.of_name.get(name or '')
        return None if host is None else host.uuid

    def why_not(self, kind: movable.MoveKind,
                uuid: str) -> movable.MoveObstacle | None:
        """Return why a server cannot be moved, to whichever host."""
        server = self.servers[uuid]
        if self.options.avoids(server.name) or uuid in self.options.avoid:
            return movable.obstacle(movable.ObstacleKind.AVOIDED)
        if kind is movable.COLD and self.options.live_only:
            return movable.obstacle(movable.ObstacleKind.LIVE_ONLY)
        obstacle = movable.why_not(kind, server, self.of_name.get(
            server.host or ''), self._cloud.nova)
        if obstacle is not None or kind is movable.SHELVE:
            return obstacle  # no host has to be found
        try:
            guest = self.guest(uuid)
        except servers.Refused as exc:
            return movable.obstacle(movable.ObstacleKind.REFUSED, str(exc))
        if kind is movable.LIVE and guest.fixed:
            return movable.obstacle(movable.ObstacleKind.DEVICES)
        if kind is movable.LIVE and self.kind(uuid) is movable.COLD:
            return movable.obstacle(movable.ObstacleKind.VFS)
        return None

    def kind(self, uuid: str) -> movable.MoveKind:
        """Return how a server is migrated unless something prevents it."""
        return movable.COLD if self.options.cold_for_vfs and (
            movable.vfs_detached(self.servers[uuid])) else movable.LIVE

    def refusals(self, guest: Guest) -> Refusals:
        """Explain which hosts do not take a server, as they are.

        Server groups and hints are left out; see :meth:`together`.
        """
        if guest not in self._refusals:
            queries = guest.counted.grants.queries
            answer = verdict_placement.explain(self._state, queries)
            self._refusals[guest] = answer, verdict_filters.alone(
                self._state, guest.counted.spec, queries, hosts=answer.found)
        return self._refusals[guest]

    # -- hosts

    def position(self, name: str,
                 arrangement: Arrangement | None = None) -> Position:
        """Return a host after some moves; without an arrangement, as it is."""
        if arrangement is not None and name in arrangement.positions:
            return arrangement.positions[name]
        if name not in self._now:
            self._now[name] = host_changes.of_host(
                self.hosts[name], self._state.placement)
        return self._now[name]

    def where(self, uuid: str, arrangement: Arrangement) -> str | None:
        return arrangement.where.get(uuid, self.servers[uuid].host)

    def without(self, position: Position, uuid: str) -> Position:
        if uuid in position.came:
            return position.without(uuid)
        devices = position.room.devices
        spec = self.guest(uuid).counted.spec
        return position.without(uuid, host_changes.Footprint(
            self.shares(position, uuid),
            devices.of_server(uuid) if devices else (),
            occupancy.amounts(spec), {
                provider: amounts for provider, amounts
                in self._state.placement.allocations.get(uuid, {}).items()
                if provider in position.used.providers}))

    def take(self, position: Position, uuid: str,
             kind: movable.MoveKind | None = None) -> Position | None:
        """Return a host with a server that keeps its policies as now."""
        return position.put(
            self.guest(uuid, kind), uuid, self.to_keep(uuid, kind))

    def fits(self, position: Position, guest: Guest, most: int) -> int:
        for count in range(most):
            if (after := position.put(guest)) is None:
                return count
            position = after
        return most

    def to_keep(self, uuid: str,
                kind: movable.MoveKind | None) -> Mapping[str, float]:
        """Return the least degrees of policies after a move of this kind."""
        # Strict ones are kept in any case, by the filters.
        return _NOTHING if kind is movable.EVACUATE else self.degrees(uuid)

    def degrees(self, uuid: str) -> Mapping[str, float]:
        """Return how far each policy of a server is kept: text -> 0 to 1."""
        if uuid not in self._degrees:
            self._degrees[uuid] = self.degrees_of(self.simulated[uuid])
        return self._degrees[uuid]

    def degrees_of(self,
                   simulated: servers.SimulatedServer) -> Mapping[str, float]:
        """Return how far each policy is kept where the simulator has it."""
        guest = self.guest(simulated.uuid)
        if simulated.host is None:
            return _NOTHING
        name = simulated.host.name
        terms = guest.counted.guest_request.terms
        host = self.hosts[name].room.host
        if terms is None or host is None or not terms.rules:
            return _NOTHING
        if simulated.nodes is None:
            return decide.floating(host, terms).degrees
        order = {cell.id: place for place, cell in enumerate(host.cells)}
        chosen = [order[node] for node in simulated.nodes if node in order]
        if not chosen:
            return _NOTHING
        return self.degrees_on(
            guest, name, chosen, _NEAR.get(simulated.pci or '', 0.0))

    def degrees_on(self, guest: Guest, name: str, cells: Sequence[int],
                   devices: float = 1.0) -> Mapping[str, float]:
        """Return how far each policy is kept on cells of a host.

        :param devices: degree of the policies about devices
        """
        terms = guest.counted.guest_request.terms
        host = self.hosts[name].room.host
        return {} if terms is None or host is None else {
            rule.text: devices if rule.devices else rule.degree(
                rule.read(host, terms.names), None, cells)
            for rule in terms.rules if rule.weighed}

    def only_node(self, uuid: str, name: str, kind: movable.MoveKind,
                  copied: values.CopiedData | None) -> int | None:
        """Return the NUMA node that strict policies leave a server on a host.

        :returns: None if they leave it a choice, or if it needs what neither
            nodes nor Placement count, such as devices, or its group there
        """
        counted = self.guest(uuid, kind).counted
        request = counted.guest_request
        host, terms = self.hosts[name].room.host, request.terms
        if host is None or terms is None or terms.predicted_is_enough or not (
                terms.steered and request.has_one_cell):
            return None
        # Nova compares local disks with what is free on the host right then.
        if self.policy(uuid) == _AFFINITY or (
                kind == movable.LIVE and copied.disk_mib != 0) or any(
                query.groups for query in counted.grants.queries):
            return None
        (cells,), _rules = decide.strict_cells(host, [host.all_cells], terms)
        nodes = host.nodes(cells)
        return nodes[0] if len(nodes) == 1 else None

    # -- moves

    def move(self, arrangement: Arrangement, uuid: str,
             name: str) -> Arrangement | None:
        """Return the cloud after the migration of a server; see :meth:`kind`.

        The destination takes the server before the source frees anything; no
        policy of the server is kept less than now, nor that of its server
        group.

        :returns: None if the move is not possible
        """
        source = self.where(uuid, arrangement)
        if name == source or source not in self.hosts or (
                not self.in_cell(uuid, name)
                or not self.together(arrangement, uuid, name)):
            return None
        # On the destination first: during a migration the server has
        # resources on both hosts.
        after = self.take(
            self.position(name, arrangement), uuid, self.kind(uuid))
        if after is None:
            return None
        before = self.without(self.position(source, arrangement), uuid)
        return arrangement.moved(uuid, before, after)

    def in_cell(self, uuid: str, name: str) -> bool:
        """Return whether a host is in the cell of a server, as far as known.

        The compute services of one cell do not reach the other.
        """
        host = self.of_name.get(self.servers[uuid].host or '')
        return host is None or host.cell == self.of_name[name].cell

    def together(self, arrangement: Arrangement, uuid: str, name: str,
                 soft: bool = True) -> bool:
        """Return whether server group and hints allow a host.

        :param soft: whether soft policies must not be kept less than on the
            present host; otherwise they are ignored
        """
        if self.broken_hint(arrangement, uuid, name) is not None:
            return False
        group = self._members.get(uuid)
        if group is None or not soft and group.policy.startswith(_SOFT):
            return True
        there = self._count_fellows(arrangement, group, uuid, name)
        here = self._count_fellows(arrangement, group, uuid,
                                   self.where(uuid, arrangement))
        if group.policy == _AFFINITY:
            # Nova counts the source as a host of the group.
            return there > 0
        if group.policy == _SOFT + _AFFINITY:
            return there >= here
        if group.policy.startswith(_SOFT):
            return there <= here
        return there < group.most_on_host

    def broken_hint(self, arrangement: Arrangement, uuid: str,
                    name: str) -> str | None:
        for hint in _HINTS:
            uuids = self.hinted(hint, uuid)
            if uuids and (hint == SAME_HOST) != any(
                    each in self.servers
                    and self.where(each, arrangement) == name
                    for each in uuids):
                return hint
        return None

    def hinted(self, hint: str, uuid: str) -> tuple[str, ...]:
        """Return UUIDs in a hint of a server, if a filter obeys it."""
        return self.servers[uuid].hints.get(
            hint, ()) if hint in self._hints else ()

    def related(self, uuid: str) -> tuple[str, ...]:
        """Return UUIDs of the servers whose hosts matter to filters.

        The filters of server hints and of anti-affinity compare hosts with
        these, by what compute nodes report to nova-scheduler.
        """
        fellows = self._members[uuid].members if (
            self.policy(uuid) == 'anti-affinity') else ()
        return tuple(dict.fromkeys(
            each for each in (*self.hinted(SAME_HOST, uuid),
                              *self.hinted(DIFFERENT_HOST, uuid), *fellows)
            if each != uuid))

    def group(self, uuid: str) -> snapshot.Group | None:
        return self._members.get(uuid)

    def policy(self, uuid: str) -> str:
        group = self._members.get(uuid)
        return '' if group is None else group.policy

    def free_cpus(self, name: str) -> int:
        host = self.hosts[name].room.host
        return sum(len(cell.free_cpus) for cell in host.cells) if host else 0

    def _count_fellows(self, arrangement: Arrangement, group: snapshot.Group,
                       uuid: str, name: str | None) -> int:
        return sum(
            member != uuid and member in self.servers
            and self.where(member, arrangement) == name
            for member in group.members)

    def cells(self, position: Position, uuid: str) -> tuple[int, ...]:
        return tuple(sorted({
            share.position for share in self.shares(position, uuid)}))

    def shares(self, position: Position,
               uuid: str) -> tuple[occupancy.Share, ...]:
        if uuid in position.came:
            return position.came[uuid].shares
        if position.room.host is None:
            return ()
        if uuid not in self._shares:
            self._shares[uuid] = occupied.shares(
                self.of_name[position.host.name].nodes or (),
                self.servers[uuid].nodes or ())
        return self._shares[uuid]


def _kind(server: snapshot.Server) -> Hashable:
    """Return a key; equal requests, except for server groups, share it."""
    flavor = server.flavor
    return (
        flavor.name, flavor.vcpus, flavor.memory, flavor.disk,
        flavor.ephemeral, flavor.swap,
        tuple(sorted(flavor.extra_specs.items())),
        tuple(sorted(server.image.items())),
        None if server.ports is None else tuple([
            (port.network, port.vnic_type, port.physnet, port.rules)
            for port in server.ports]),
        tuple([(request.alias, request.count, request.numa_policy, tuple([
            frozenset(tags.items()) for tags in request.specs]))
            for request in server.pci_requests or ()]),
        server.zone, server.project, server.cell,
        tuple(sorted(server.hints.items())),
        sum(amounts.get(orc.DISK_GB, 0)
            for amounts in (server.allocations or {}).values()))
