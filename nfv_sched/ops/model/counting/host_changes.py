# SPDX-License-Identifier: Apache-2.0
"""Put servers on a host and take them off, without changing the cloud.

A host after such changes is a value, so that a plan can be tried and dropped.
A server fits there if the scheduler's filters, Placement and the claim on the
compute node would take it.
"""

from collections.abc import Hashable, Iterable, Mapping
import dataclasses
import types
import typing as ty

from nfv_sched.fit import occupancy
from nfv_sched.ops.model.counting import capacity
from nfv_sched.ops.model.counting import host_count
from nfv_sched.ops.simulator import placement

_NOTHING: Mapping[str, ty.Any] = types.MappingProxyType({})


class Footprint(ty.NamedTuple):
    """The resources that a server occupies on a host."""

    shares: tuple[occupancy.Share, ...]  #: its shares of the host's NUMA cells
    devices: tuple[int, ...]  #: numbers of its PCI devices
    amounts: occupancy.Amounts  #: amounts that Nova counts for the whole host
    #: UUID of the resource provider -> resource class -> amount
    allocations: Mapping[str, Mapping[str, int]]


class MovableGuest:
    """A set of servers that hosts treat alike, or of new ones of a flavor.

    :param fixed: whether live migration cannot move its PCI devices
    :param hosts: hosts that filters are asked about at once, which is faster
    """

    def __init__(self, counted: capacity.CountedGuest, fixed: bool = False,
                 hosts: Iterable[capacity.CountedHost] = ()):
        self.counted = counted
        self.fixed = fixed
        self._hosts = hosts
        self.needs = counted.needs
        self._refused: dict[tuple[str, occupancy.Amounts], bool] = {}

    def refused(self, position: 'Position') -> bool:
        # Filters get a host with other amounts, but not with other servers, so
        # which servers came makes no difference to them.
        key = position.host.name, position.load
        if key not in self._refused:
            hosts = {position.host.name: (position.host, position.load)}
            if position.load == occupancy.NOTHING:
                hosts.update({each.name: (each, occupancy.NOTHING)
                              for each in self._hosts})
            refusals = self.counted.refusals(list(hosts.values()))
            for host, load in hosts.values():
                self._refused[host.name, load] = bool(refusals[host.name])
        return self._refused[key]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """A host after some changes; immutable."""

    host: capacity.CountedHost  #: the host before the changes
    #: free capacity of its NUMA cells and PCI devices
    room: host_count.FreeResources
    used: placement.Placement  #: its resource providers; must not be changed
    #: amounts of added less those of removed servers, for filters
    load: occupancy.Amounts = occupancy.NOTHING
    #: UUID of each added server -> what it occupies
    came: Mapping[str, Footprint] = dataclasses.field(default_factory=dict)
    #: UUIDs of removed servers that were on the host before
    left: frozenset[str] = frozenset()

    @property
    def key(self) -> Hashable:
        """Key of a state; hosts of the same name and key are alike."""
        return self.room.key, self.load, frozenset(self.came), self.left

    def put(self, guest: MovableGuest, uuid: str | None = None,
            degrees: Mapping[str, float] = _NOTHING) -> 'Position | None':
        """Return the host with one more server.

        :param uuid: UUID of the server; None for a new one
        :param degrees: text of a policy -> degree to which it must be kept at
            least, 0 to 1
        :returns: None if the host does not take the server
        """
        counted, host = guest.counted, self.host
        if not (offers := list(counted.grants.offers(self.used, host.root))):
            return None
        placed = host_count.place_first(counted.case(host, self.room), offers)
        if placed is None or any(
                placed.degrees.get(text, 0.0) < degree
                for text, degree in degrees.items()):
            return None
        # Last, as asking Nova's filters takes the longest.
        if guest.refused(self) or any(
                count < 1 for count, _binding in counted.limits_of(
                    host, self.used)):
            return None
        footprint = Footprint(
            placed.shares, placed.devices, occupancy.amounts(counted.spec),
            self._allocations(guest, placed.candidate))
        return self._change_position(
            footprint, 1, placed.room,
            came=self.came if uuid is None else {**self.came, uuid: footprint})

    def _allocations(
        self, guest: MovableGuest, candidate: Mapping[str, ty.Any],
    ) -> dict[str, dict[str, int]]:
        allocations = placement.allocations_of(candidate)
        for resource_class, amount in guest.needs.items():
            ledger = capacity.ledger_of(self.host, resource_class, self.used)
            if ledger is not None:
                of_ledger = allocations.setdefault(ledger.uuid, {})
                of_ledger[resource_class] = (
                    of_ledger.get(resource_class, 0) + amount)
        return allocations

    def without(self, uuid: str,
                footprint: Footprint | None = None) -> 'Position':
        """Return the host without a server.

        :param footprint: what the server occupies; None if :meth:`put` added
            it
        """
        came, departed = dict(self.came), self.left
        if footprint is None:
            footprint = came.pop(uuid)
        else:
            departed = departed | {uuid}
        host, devices = self.room.host, self.room.devices
        return self._change_position(
            footprint, -1, host_count.FreeResources(
                host and occupancy.give_back(host, footprint.shares),
                devices and devices.give_back(footprint.devices)),
            came=came, left=departed)

    def _change_position(self, footprint: Footprint, sign: int,
                         room: host_count.FreeResources,
                         **changes: ty.Any) -> 'Position':
        used = self.used.copy(self.host.root)
        (used.take if sign > 0 else used.give)(footprint.allocations)
        return dataclasses.replace(
            self, room=room, used=used,
            load=self.load.plus(footprint.amounts, sign), **changes)


def of_host(host: capacity.CountedHost,
            model: placement.Placement) -> Position:
    return Position(host=host, room=host.room, used=model.copy(host.root))
