#    Licensed under the Apache License, Version 2.0 (the "License"); you may
#    not use this file except in compliance with the License. You may obtain
#    a copy of the License at
#
#         http://www.apache.org/licenses/LICENSE-2.0
#
#    Unless required by applicable law or agreed to in writing, software
#    distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
#    WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
#    License for the specific language governing permissions and limitations
#    under the License.
"""The hosts of a cloud as they would be, with servers gone and others come.

What a host has left is a value (:class:`Position`), and so is a cloud
(:class:`Arrangement`): putting a server on a host, or taking it away, gives
another one, so that plans can be tried and dropped.  Hosts are asked as the
scheduler's filters, Placement and the claim on the compute node would answer;
what they say is checked in the simulator before anybody sees it.
"""

from collections.abc import Hashable
from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses
import functools
import types
import typing as ty

import os_resource_classes as orc

from nfv_sched.advice import capacity
from nfv_sched.advice.explain import filters as explain_filters
from nfv_sched.advice.explain import placement as explain_placement
from nfv_sched.advice.plans import movable
from nfv_sched.advice import ports as assumed_ports
from nfv_sched.advice import room as rooms
from nfv_sched.cloud import server_shares
from nfv_sched.cloud import snapshot
from nfv_sched.host import occupancy
from nfv_sched.nova import scheduler as nova_scheduler
from nfv_sched.numa import decide
from nfv_sched.numa import supply
from nfv_sched.numa import topology
from nfv_sched.simulator import layout
from nfv_sched.simulator import placement
from nfv_sched.simulator import request
from nfv_sched.simulator import restore_hosts
from nfv_sched.simulator import servers
from nfv_sched.simulator import state as states

_NOTHING: Mapping[str, ty.Any] = types.MappingProxyType({})
_NOBODY: frozenset[str] = frozenset()
#: How near a device is -> degree of the policies about devices.
_NEAR = {'local': 1.0, 'partial': 0.5, 'remote': 0.0}
_SOFT = 'soft-'
_AFFINITY = 'affinity'
_ANTI_AFFINITY = 'anti-affinity'
#: Hints of the scheduler that name servers.
SAME_HOST = 'same_host'
DIFFERENT_HOST = 'different_host'
#: These -> the filters that obey them.
_HINTS = {SAME_HOST: 'SameHostFilter',
          DIFFERENT_HOST: 'DifferentHostFilter'}
_NO_HINT: tuple[str, ...] = ()


def _no_field() -> ty.Any:
    return dataclasses.field(default_factory=lambda: _NOTHING)


class Held(ty.NamedTuple):
    """What a server has of a host, to be given back.

    :ivar shares: its parts of the host cells
    :ivar allocations: in Placement: provider -> resource class -> amount
    :ivar devices: with which other PCI devices are left when they are taken;
        None if it has none, or those that it had from the beginning
    """

    shares: tuple[occupancy.Share, ...]
    allocations: Mapping[str, Mapping[str, int]]
    devices: tuple | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """A host as it would be; never changed.

    :ivar host: as it is now
    :ivar room: what is left of its NUMA nodes and PCI devices
    :ivar used: what is left of its resource providers; not to be changed
    :ivar load: what has come, less what has left, for other filters
    :ivar carried: the same for limits of ports and rules
    :ivar came: UUID of each server that has come -> what it has
    :ivar left: UUIDs of the servers that were here and have left
    """

    host: capacity.Host
    room: rooms.Room
    used: placement.Placement
    load: capacity.Load = capacity.NO_LOAD
    carried: Mapping[str, int] = _no_field()
    came: Mapping[str, Held] = _no_field()
    left: frozenset[str] = _NOBODY

    @property
    def key(self) -> Hashable:
        """Hosts of the same name and key are alike."""
        return (self.room.key, self.load, tuple(sorted(self.carried.items())),
                frozenset(self.came), self.left)


@dataclasses.dataclass(frozen=True, slots=True)
class Arrangement:
    """A cloud as it would be; never changed.

    :ivar positions: the hosts that are not as they are now, by name
    :ivar where: UUID of each server that was moved -> name of its host
    """

    positions: Mapping[str, Position] = _no_field()
    where: Mapping[str, str] = _no_field()

    def moved(self, uuid: str, *positions: Position) -> 'Arrangement':
        """The cloud after a move.

        :param positions: the hosts that have changed; the last one has it now
        """
        changed = {each.host.name: each for each in positions}
        return Arrangement({**self.positions, **changed},
                           {**self.where, uuid: positions[-1].host.name})


class Guest:
    """Servers that hosts treat alike, or new ones of a flavor.

    :param counted: one of them as :mod:`nfv_sched.advice.capacity` counts it
    :param fixed: whether live migration cannot move its PCI devices
    """

    def __init__(self, counted: capacity.Guest, fixed: bool = False):
        self.counted = counted
        self.fixed = fixed
        self.needs = counted.needs
        self._refused: dict[tuple[str, capacity.Load], bool] = {}

    def refused(self, position: Position,
                others: Iterable[capacity.Host] = ()) -> bool:
        """Whether a filter that is not counted refuses a host.

        :param others: asked together with it, which is quicker
        """
        key = position.host.name, position.load
        if key not in self._refused:
            hosts = {position.host.name: (position.host, position.load)}
            if position.load == capacity.NO_LOAD:
                hosts.update({each.name: (each, capacity.NO_LOAD)
                              for each in others})
            found = self.counted.refusals(list(hosts.values()))
            for host, load in hosts.values():
                self._refused[host.name, load] = bool(found[host.name])
        return self._refused[key]


class Refusals(ty.NamedTuple):
    """Why hosts do not take a guest.

    :ivar placement: the answer of Placement
    :ivar filters: what each filter says of the hosts in that
    """

    placement: explain_placement.Answer
    filters: explain_filters.Verdicts


class Positions:
    """The hosts and servers of a cloud, for plans; changes nothing.

    :param found: the snapshot
    :param state: the cloud that was started from it, with its servers
    :param ports: the ports of new guests
    :param project: ID of the project of new guests; None for one that no
        aggregate is for

    :ivar servers: the servers of the snapshot by UUID
    :ivar simulated: the same in the simulator
    :ivar ports_of: gives the ports of new guests of a flavor
    """

    def __init__(self, found: snapshot.Cloud, state: states.State,
                 ports: assumed_ports.Choice = None,
                 project: str | None = None):
        self._found = found
        self._state = state
        self.ports_of = assumed_ports.per_flavor(found, ports)
        self._counting = capacity.Counting(state, self.ports_of, any(
            host.network is not None for host in found.hosts), project)
        self.hosts = {host.name: host for host in self._counting.hosts()}
        self.of_name = {host.name: host for host in layout.hosts(found)}
        self.servers = {server.uuid: server for server in found.servers}
        self.simulated = {server.uuid: server
                          for server in state.servers.values()}
        self.on_host: dict[str, list[str]] = {name: [] for name in self.hosts}
        for server in found.servers:
            if server.host in self.on_host:
                self.on_host[server.host].append(server.uuid)
        self._members = {
            member: group for group in found.groups
            for member in group.members if member in self.servers}
        enabled = nova_scheduler.enabled_filters()
        self._hints = frozenset(
            hint for hint, name in _HINTS.items() if name in enabled)
        self._guests: dict[Hashable, Guest] = {}
        self._refused: dict[Hashable, servers.Refused] = {}
        self._now: dict[str, Position] = {}
        self._degrees: dict[str, Mapping[str, float]] = {}
        self._supplies: dict[
            tuple[str, frozenset[str]], supply.Supply] = {}

    @functools.cached_property
    def _tags(self) -> Mapping[tuple, Mapping[str, str]]:
        """The tags of PCI devices, for those of which Nova stores none."""
        return restore_hosts.common_tags(self._found)

    # -- guests

    def new(self, flavor: snapshot.Flavor,
            image: Mapping[str, str] = capacity.NO_IMAGE) -> Guest:
        """A new guest of a flavor.

        :param flavor: the flavor
        :param image: properties of the image, that Nova can read
        :raises servers.Refused: if Nova does not take the flavor
        """
        return Guest(self._counting.guest(flavor, image))

    def guest(self, uuid: str, kind: movable.MoveKind | None = None) -> Guest:
        """A server as a guest.

        :raises servers.Refused: if Nova refuses a move before it looks for a
            host
        """
        server, simulated = self.servers[uuid], self.simulated[uuid]
        limits_lost = kind == movable.LIVE and (
            not nova_scheduler.live_migration_carries_limits())
        key = _kind(server), limits_lost
        if key in self._refused:
            raise self._refused[key].with_traceback(None)
        if key not in self._guests:
            try:
                self._guests[key] = self._guest(simulated, limits_lost)
            except servers.Refused as exc:
                self._refused[key] = exc
                raise
        return self._guests[key]

    def _guest(self, simulated: servers.Server, limits_lost: bool) -> Guest:
        spec = request.of_move(self._state, simulated, None, ())
        # Filters know only where servers are now; see together().
        spec.scheduler_hints = {
            hint: values for hint, values
            in (spec.scheduler_hints or {}).items() if hint not in _HINTS}
        counted = self._counting.guest_of(spec)
        counted.wanted = dataclasses.replace(
            counted.wanted, limits_lost=limits_lost)
        return Guest(counted, simulated.has_fixed_devices)

    def why_not(self, kind: movable.MoveKind,
                uuid: str) -> movable.Obstacle | None:
        """Return why a server cannot be moved, wherever there is room."""
        server = self.servers[uuid]
        obstacle = movable.why_not(kind, server, self.of_name.get(
            server.host or ''), self._found.nova)
        if obstacle is not None:
            return obstacle
        try:
            guest = self.guest(uuid)
        except servers.Refused as exc:
            return movable.Obstacle(movable.ObstacleKind.REFUSED, str(exc))
        if kind is movable.LIVE and guest.fixed:
            return movable.Obstacle(movable.ObstacleKind.DEVICES)
        return None

    def refusals(self, guest: Guest) -> Refusals:
        """Explain which hosts do not take a guest, as they are.

        Server groups and hints are left out; see :meth:`together`.
        """
        grants = guest.counted.grants
        answer = explain_placement.explain(self._state, grants.queries)
        return Refusals(answer, explain_filters.alone(
            self._state, guest.counted.spec, grants.queries,
            hosts=answer.found))

    # -- hosts

    def position(self, name: str,
                 arrangement: Arrangement | None = None) -> Position:
        """A host.

        :param arrangement: the cloud as it would be; None for as it is
        """
        if arrangement is not None and name in arrangement.positions:
            return arrangement.positions[name]
        known = self._now.get(name)
        if known is None:
            host = self.hosts[name]
            known = self._now[name] = Position(
                host=host, room=host.room,
                used=self._state.placement.copy(host.root))
        return known

    def where(self, uuid: str, arrangement: Arrangement) -> str | None:
        """Name of the host of a server."""
        return arrangement.where.get(uuid, self.servers[uuid].host)

    def take(self, position: Position, uuid: str,
             guest: Guest | None = None) -> Position | None:
        """A host without one of its servers.

        :param guest: the same as a guest; None for one of the snapshot
        :returns: None if it cannot be told what is left then
        """
        guest, came = guest or self.guest(uuid), dict(position.came)
        held = came.pop(uuid, None)
        left = position.left
        if held is None:
            held = self._held(position, uuid)
            left = left | {uuid}
        room = self._room_without(position, uuid, held, left, came)
        if room is None:
            return None
        used = position.used.copy(position.host.root)
        used.give(held.allocations)
        return Position(
            host=position.host, room=room, used=used,
            load=position.load.plus(guest.counted.spec, -1),
            carried=_sum(position.carried, guest.needs, -1),
            came=came, left=left)

    def put(self, position: Position, guest: Guest, uuid: str | None = None,
            degrees: Mapping[str, float] = _NOTHING) -> Position | None:
        """A host with one more guest.

        :param uuid: UUID of the server that it is; None for a new one
        :param degrees: how far each policy must be kept at least
        :returns: None if the host does not take it
        """
        counted = guest.counted
        host = position.host
        offers = list(counted.grants.offers(position.used, host.root))
        if not offers:
            return None
        placed = rooms.place_first(
            counted.wanted, position.room, counted.ratios(host), offers)
        if placed is None or any(
                placed.degrees.get(text, 0.0) < degree
                for text, degree in degrees.items()):
            return None
        if guest.refused(position, self.hosts.values()) or any(
                count < 1 for count, _binding in counted.limits_of(
                    host, position.carried, position.used)):
            return None
        used = position.used.copy(host.root)
        allocations = placement.allocations_of(placed.candidate)
        for resource_class, amount in guest.needs.items():
            ledger = capacity.ledger_of(host, resource_class, used)
            if ledger is not None:
                allocations.setdefault(ledger.uuid, {})[
                    resource_class] = amount
        used.take(allocations)
        came = position.came
        if uuid is not None:
            came = {**came, uuid: Held(
                placed.shares, allocations, (
                    counted.wanted, placed.candidate.get('mappings'))
                if counted.wanted.request.demands else None)}
        return Position(
            host=host, room=placed.room, used=used,
            load=position.load.plus(counted.spec),
            carried=_sum(position.carried, guest.needs),
            came=came, left=position.left)

    def fits(self, position: Position, guest: Guest, most: int) -> int:
        """How many new guests fit a host, one after the other.

        :param most: it is not counted further
        """
        count = 0
        left: Position | None = position
        while count < most:
            left = self.put(left, guest)
            if left is None:
                break
            count += 1
        return count

    def degrees(self, uuid: str) -> Mapping[str, float]:
        """How far each policy of a server is kept where it is now.

        :returns: text of the policy -> degree, 0 to 1
        """
        known = self._degrees.get(uuid)
        if known is None:
            known = self._degrees[uuid] = self.degrees_of(
                self.simulated[uuid])
        return known

    def degrees_of(self, simulated: servers.Server) -> Mapping[str, float]:
        """How far each policy of a server is kept where the simulator has it.

        :param simulated: the server
        :returns: text of the policy -> degree, 0 to 1
        """
        terms = self.guest(simulated.uuid).counted.wanted.terms
        host = None
        if simulated.host is not None:
            host = self.hosts[simulated.host.name].room.host
        if terms is None or host is None:
            return _NOTHING
        if simulated.nodes is None:
            return decide.floating(host, terms).degrees
        order = {cell.id: place for place, cell in enumerate(host.cells)}
        chosen = [order[node] for node in simulated.nodes if node in order]
        if not chosen:
            return _NOTHING
        near = _NEAR.get(simulated.pci or '', 0.0)
        return {
            rule.text: near if rule.devices else rule.degree(
                rule.read(host, terms.names), None, chosen)
            for rule in terms.rules if rule.weighed}

    # -- moves

    def move(self, arrangement: Arrangement, uuid: str,
             name: str) -> Arrangement | None:
        """The cloud after a server was live-migrated to a host.

        The destination takes it before the source gives anything back; no
        policy of it is kept less than now, nor that of its server group.

        :param arrangement: the cloud before
        :param name: name of the destination
        :returns: None if that is not possible
        """
        source = self.where(uuid, arrangement)
        if name == source or source not in self.hosts or (
                self.of_name[name].cell != self.of_name[source].cell
                or not self.together(arrangement, uuid, name)):
            return None
        after = self.put(self.position(name, arrangement),
                         self.guest(uuid, movable.LIVE), uuid,
                         self.degrees(uuid))
        if after is None:
            return None
        before = self.take(self.position(source, arrangement), uuid)
        if before is None:
            return None
        return arrangement.moved(uuid, before, after)

    def together(self, arrangement: Arrangement, uuid: str, name: str,
                 soft: bool = True) -> bool:
        """Whether server group and hints of a server let it go to a host.

        :param name: name of the host
        :param soft: whether soft policies must not be kept less than where it
            is; otherwise they do not matter
        """
        if self.broken_hint(arrangement, uuid, name) is not None:
            return False
        group = self._members.get(uuid)
        if group is None or not soft and group.policy.startswith(_SOFT):
            return True
        there = self._fellows(arrangement, group, uuid, name)
        here = self._fellows(arrangement, group, uuid,
                             self.where(uuid, arrangement))
        if group.policy == _AFFINITY:
            # Nova takes the source for a host of the group.
            return there > 0
        if group.policy == _SOFT + _AFFINITY:
            return there >= here
        if group.policy.startswith(_SOFT):
            return there <= here
        most = group.rules.get('max_server_per_host', '')
        return there < (int(most) if most.isdigit() else 1)

    def broken_hint(self, arrangement: Arrangement, uuid: str,
                    name: str) -> str | None:
        """Return the hint of a server by which a host is refused, or None."""
        for hint in _HINTS:
            uuids = self.hinted(hint, uuid)
            if uuids and (hint == SAME_HOST) != self._any_on(
                    name, uuids, arrangement):
                return hint
        return None

    def hinted(self, hint: str, uuid: str) -> tuple[str, ...]:
        """Return UUIDs in a hint of a server, if a filter obeys it."""
        if hint not in self._hints:
            return _NO_HINT
        return self.servers[uuid].hints.get(hint, _NO_HINT)

    def related(self, uuid: str) -> tuple[str, ...]:
        """Return UUIDs of servers with whose hosts Nova compares a host.

        The filters of server hints and of anti-affinity do, by what compute
        nodes tell nova-scheduler.

        :param uuid: UUID of the server that is to be placed
        """
        group = self._members.get(uuid)
        fellows = group.members if group is not None and (
            group.policy == _ANTI_AFFINITY) else ()
        return tuple(dict.fromkeys(
            each for each in (*self.hinted(SAME_HOST, uuid),
                              *self.hinted(DIFFERENT_HOST, uuid), *fellows)
            if each != uuid))

    def _any_on(self, name: str, uuids: Iterable[str],
                arrangement: Arrangement) -> bool:
        """Whether any of some servers is on a host."""
        return any(uuid in self.servers
                   and self.where(uuid, arrangement) == name
                   for uuid in uuids)

    def policy(self, uuid: str) -> str | None:
        """The policy of the server group of a server; None if it has none."""
        group = self._members.get(uuid)
        return None if group is None else group.policy

    def free_cpus(self, name: str) -> int:
        """Number of free CPUs for pinned guests of a host as it is now."""
        room: rooms.Room = self.hosts[name].room
        return sum(len(cell.free_cpus)
                   for cell in (room.host.cells if room.host else ()))

    def _fellows(self, arrangement: Arrangement, group: snapshot.Group,
                 uuid: str, name: str | None) -> int:
        """Number of other members of a group on a host."""
        return sum(
            member != uuid and member in self.servers
            and self.where(member, arrangement) == name
            for member in group.members)

    # -- what is given back

    def _held(self, position: Position, uuid: str) -> Held:
        """What a server has where it was from the beginning."""
        shares = []
        if position.room.host is not None:
            nodes = self.of_name[position.host.name].nodes or ()
            shares = [server_shares.share(nodes, node)
                      for node in self.servers[uuid].nodes or ()]
        held = self._state.placement.allocations.get(uuid, {})
        return Held(tuple(filter(None, shares)), {
            provider: amounts for provider, amounts in held.items()
            if provider in position.used.providers})

    def _room_without(
        self, position: Position, uuid: str, held: Held,
        left: frozenset[str], came: Mapping[str, Held],
    ) -> rooms.Room | None:
        host = position.room.host
        if host is not None and held.shares:
            host = occupancy.give_back(host, held.shares)
        devices = position.room.devices
        if held.devices or uuid in left and self.servers[uuid].devices:
            devices = self._devices(position.host, host, left, came)
            if devices is None:
                return None
        return rooms.Room(host, devices)

    def _devices(
        self, host: capacity.Host, nodes: topology.HostTopology | None,
        left: frozenset[str], came: Mapping[str, Held],
    ) -> supply.Supply | None:
        """The free PCI devices, as they are without some and with others.

        :returns: None if those that came find none then
        """
        devices = self._supply_without(host.name, left)
        for held in came.values():
            if held.devices is None:
                continue
            wanted, mapping = held.devices
            cells = None
            if wanted.request.guest is not None:
                cells = occupancy.cell_mask(held.shares)
            taken = devices.take(
                wanted.request.demands, mapping,
                nodes or topology.HostTopology(()), cells)
            if taken is None:
                return None
            devices = taken
        return devices

    def _supply_without(self, name: str,
                        departed: frozenset[str]) -> supply.Supply:
        host = self.of_name[name]
        # Nova's PCI tracker takes milliseconds for a host, and a search asks
        # for the same servers hundreds of times.
        owners = departed.intersection([
            device.server for device in host.devices if device.server])
        devices = self._supplies.get((name, owners))
        if devices is None:
            devices = self._supplies[name, owners] = supply.Supply.of(
                restore_hosts.pools_without(
                    host, self._state.hosts[name].group, owners, self._tags))
        return devices


def _kind(server: snapshot.Server) -> Hashable:
    """Servers of the same kind ask for the same, but for server groups."""
    flavor = server.flavor
    return (
        flavor.name, flavor.vcpus, flavor.memory, flavor.disk,
        flavor.ephemeral, flavor.swap,
        tuple(sorted(flavor.extra_specs.items())),
        tuple(sorted(server.image.items())),
        None if server.ports is None else tuple([
            (port.network, port.vnic_type, port.physnet, port.rules)
            for port in server.ports]),
        tuple([(request.count, request.numa_policy, tuple([
            frozenset(tags.items()) for tags in request.specs]))
            for request in server.pci_requests or ()
            if request.alias is None]),
        server.zone, server.project, server.cell,
        tuple(sorted(server.hints.items())),
        sum(amounts.get(orc.DISK_GB, 0)
            for amounts in (server.allocations or {}).values()))


def _sum(carried: Mapping[str, int], needs: Mapping[str, int],
         sign: int = 1) -> Mapping[str, int]:
    if not any(needs.values()):
        return carried
    return {name: carried.get(name, 0) + sign * needs.get(name, 0)
            for name in {*carried, *needs}}
