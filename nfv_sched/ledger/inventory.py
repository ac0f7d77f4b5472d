# SPDX-License-Identifier: Apache-2.0
"""Work out the inventories of a host, and what servers give back.  No I/O.

Placement lets servers allocate ``total - reserved`` of a resource class.  A
server that was placed with the ledger has an allocation.  Everything else on
the virtual switch has none and is therefore reserved: physical ports, DHCP
servers, routers, ports attached after boot, servers from before the plugin.

A server's ports and rules are covered by its own allocation from this host and
by those of its migrations: while a server moves, Nova gives its allocation on
the source to the migration, until the move ends or is confirmed, and its ports
stay bound to the source for a part of that time.  An allocation covers no more
than its own server uses here, so none covers the ports of another server.

A port belongs to the server for which Nova has plugged it, by the table
``virtual_interfaces``: tenants can change the ``device_id`` of the port.  A
port that Nova has plugged for no server is reserved.

Neutron is read first, page by page, then Nova's table, then the allocations.
Between them:

* A server that arrives has an allocation and no port yet.  It counts once.
  (In the other order it would count twice.)
* A server that leaves a host, because it is deleted, shelved or moved, or
  could not be built, has ports and no allocation any more, or ports that Nova
  has plugged for no server any more.
* A port that Nova is plugging is bound before it is in that table.

So what is uncovered now and was not in the last round is doubtful: the table
and then Neutron are read again for these ports, after the allocations, and
only those that are still there are reserved.  Nova unbinds ports, deletes the
rows and deletes the allocation in this order, so whatever has lost its row or
its allocation because it leaves is not bound any more.  Without this, the
ports of a stack that is deleted during a round would be reserved until the
next one, and the stack could not be created again before.  If Neutron does not
answer the second time, the host keeps its inventories, as without the first.

What a round can still get wrong lasts until the next round that sees it; see
"How far it can be wrong" in the documentation of the ledger.

Nova does not lower the allocation of a server when a port is detached or a
rule removed.  So an amount that a server has not used for :data:`ROUNDS`
rounds is removed from its allocation.  A server that is being built, or that
moves here, has an allocation before its ports are bound, and they are bound
one after the other.  Its allocation is left alone until a port of it has been
seen here with this allocation, while its ports change, and while Nova has a
task for it, which the publisher checks.

Host NUMA nodes are treated alike (:mod:`nfv_sched.ledger.nodes`): what a
server has pinned there by Nova's database, and has not allocated, is reserved.
"""

import collections
from collections.abc import Mapping
import math
import operator
import types
import typing as ty

from nfv_sched.limits import decide
from nfv_sched.limits import names
from nfv_sched.limits import options
from nfv_sched.limits import usage

_NOTHING: Mapping[str, int] = types.MappingProxyType({})
_NO_FIGURES: 'Mapping[str, LedgerInventory]' = types.MappingProxyType({})

#: Resource classes that only tell a number; see :meth:`Load.figures`.
FIGURES = (names.DHCP_SERVERS, names.ROUTERS)

#: Rounds in a row with the same allocation, the same ports and the same number
#: of rules, after which a server gives back what it does not use.
ROUNDS = 3


class LedgerInventory(ty.NamedTuple):
    total: int  #: total of the inventory; never less than what is allocated
    reserved: int  #: part of ``total`` that no server may allocate

    @property
    def capacity(self) -> int:
        return self.total - self.reserved

    def to_placement(self) -> dict:
        return {'total': self.total, 'reserved': self.reserved,
                'min_unit': 1, 'max_unit': self.total, 'step_size': 1,
                'allocation_ratio': 1.0}


class Load(ty.NamedTuple):
    """The load of the virtual switch of a host, without physical ports."""

    ports: int  #: number of ports
    rules: int  #: number of their security group rules
    #: server UUID -> its part of the ports and rules
    servers: Mapping[str, usage.GuestUsage]
    #: UUIDs of those ports that may be servers', but that Nova has plugged for
    #: no server
    unplugged: frozenset[str] = frozenset()
    #: number of DHCP servers; None if it is not known
    dhcp_servers: int | None = None
    routers: int = 0  #: number of routers
    #: resource class -> total of host NUMA nodes; None if they, or what is
    #: pinned there, could not be read
    nodes: Mapping[str, int] | None = None

    def figures(self) -> dict[str, LedgerInventory]:
        return {name: LedgerInventory(names.UNLIMITED, number)
                for name, number in (
                    (names.DHCP_SERVERS, self.dhcp_servers),
                    (names.ROUTERS, self.routers)) if number is not None}


class Account(ty.NamedTuple):
    #: amount that the host may carry; infinity if there is no limit
    limit: float
    allocated: int  #: amount that servers have allocated
    #: amount in use without an allocation, physical ports included
    unallocated: int

    @property
    def overdrawn(self) -> bool:
        return self.allocated > self.limit

    def inventory(self) -> LedgerInventory:
        # Without a limit, too, weighers read from it how much is in use.
        if self.limit >= names.UNLIMITED:
            return LedgerInventory(
                names.UNLIMITED, min(self.unallocated, names.UNLIMITED))
        limit = math.floor(self.limit)
        # Placement accepts no total of 0. What is above the limit is reserved,
        # so that a host that is too full takes no more.
        total = max(limit, self.allocated, 1)
        return LedgerInventory(
            total, total - max(decide.free(limit, self.unallocated), 0))


def update(
    existing: Mapping[str, Mapping],
    new_inventories: Mapping[str, LedgerInventory],
    can_raise: bool, figures: Mapping[str, LedgerInventory] = _NO_FIGURES,
    gone: Mapping[str, int] = _NOTHING,
) -> tuple[dict[str, Mapping], bool]:
    """Work out the inventories to write to a provider.

    :param can_raise: whether a capacity may be raised
    :param figures: those of :meth:`Load.figures`; written if capacities may be
        raised
    :param gone: resource class that the host has no more -> amount allocated
    :returns: (resource class -> inventory to write, those of other classes
        unchanged; whether that includes everything in ``new_inventories``)
    """
    written = dict(existing)
    if can_raise:
        for name in FIGURES:
            written.pop(name, None)
        written.update((name, inventory.to_placement())
                       for name, inventory in figures.items())
    for name, allocated in gone.items():
        inventory = written.pop(name)
        if allocated:
            written[name] = {**inventory, 'reserved': inventory['total']}
    complete = True
    for name, inventory in new_inventories.items():
        if can_raise or inventory.capacity <= _capacity(existing.get(name)):
            written[name] = inventory.to_placement()
        else:
            complete = False
    return written, complete


def _capacity(inventory: Mapping | None) -> float:
    if inventory is None:
        return 0
    return ((inventory['total'] - inventory['reserved'])
            * inventory['allocation_ratio'])


def by_server(allocations: Mapping[str, Mapping[str, int]],
              migrations: Mapping[str, str]) -> dict[str, dict[str, int]]:
    """Return server -> resource class -> amount that it has allocated.

    :param allocations: consumer UUID -> the same, of one provider
    :param migrations: UUID of a migration -> UUID of its server
    """
    amounts: dict[str, dict[str, int]] = collections.defaultdict(
        collections.Counter)
    for consumer, resources in allocations.items():
        amounts[migrations.get(consumer, consumer)].update(resources)
    return dict(amounts)


def uncovered(load: Load, covered: Mapping[str, Mapping[str, int]],
              host_limits: options.Limits) -> dict[str, tuple[int, int]]:
    """Return the amounts in use beyond what their servers have allocated.

    Of ports, or of rules if the host has no limit of ports, and of NUMA nodes.

    :param covered: server UUID -> resource class -> amount allocated
    :returns: UUID of a server, or of a port of none -> (amount, amount of
        NUMA nodes), not both 0
    """
    quantity = next((each for each in decide.QUANTITIES
                     if each.limit(host_limits) < names.UNLIMITED), None)
    amounts = dict.fromkeys(() if quantity is None else load.unplugged, (1, 0))
    for uuid, server in load.servers.items():
        held = covered.get(uuid, _NOTHING)
        amount = 0 if quantity is None else max(
            0, quantity.own(server) - held.get(quantity.resource_class, 0))
        pins = _uncovered_pins(server, held).total()
        if amount or pins:
            amounts[uuid] = amount, pins
    return amounts


def _uncovered_pins(server: usage.GuestUsage,
                    held: Mapping[str, int]) -> collections.Counter[str]:
    return collections.Counter(server.pins) - collections.Counter(held)


def doubtful(load: Load, covered: Mapping[str, Mapping[str, int]],
             host_limits: options.Limits,
             before: Mapping[str, tuple[int, int]]) -> list[str]:
    """Return what may have left the host since Neutron and Nova were read.

    :param before: what was uncovered in the last round; see :func:`uncovered`
    :returns: UUIDs of servers, and of ports of none
    """
    return [uuid for uuid, amounts in uncovered(
        load, covered, host_limits).items() if any(
            map(operator.gt, amounts, before.get(uuid, (0, 0))))]


def accounts(load: Load, covered: Mapping[str, Mapping[str, int]],
             host_limits: options.Limits) -> dict[str, Account]:
    by_class = {}
    for quantity in decide.QUANTITIES:
        name = quantity.resource_class
        # No more than the server has bound: an allocation does not cover
        # ports of others.
        own = sum(min(quantity.own(server),
                      covered.get(uuid, _NOTHING).get(name, 0))
                  for uuid, server in load.servers.items())
        by_class[name] = Account(
            quantity.limit(host_limits),
            sum(amounts.get(name, 0) for amounts in covered.values()),
            quantity.used(host_limits, quantity.pick(
                load.ports, load.rules)) - own)
    reserved: collections.Counter[str] = collections.Counter()
    for uuid, server in load.servers.items():
        reserved.update(_uncovered_pins(server, covered.get(uuid, _NOTHING)))
    for name, total in (load.nodes or _NOTHING).items():
        by_class[name] = Account(
            total, sum(amounts.get(name, 0) for amounts in covered.values()),
            reserved[name])
    return by_class


class Sight(ty.NamedTuple):
    """The state of a server on a host as the last rounds have seen it."""

    held: names.Held
    #: its ports and rules that Neutron had bound to the host
    guest: usage.GuestUsage
    #: whether a port was bound here, or CPUs or pages pinned, since it has
    #: this allocation
    bound: bool
    rounds: int  #: number of rounds in a row with this state
    last: int  #: number of the last of these rounds

    @property
    def due(self) -> bool:
        """True if the server can give back what it does not use."""
        return self.bound and self.rounds >= ROUNDS


def look(before: Sight | None, held: names.Held, guest: usage.GuestUsage,
         number: int) -> Sight:
    """Return the sight of a server, updated by this round.

    :param number: number of this round; several calls in a round count once
    """
    bound = bool(guest.ports or guest.pins)
    if before is None or before.held != held:
        return Sight(held, guest, bound, 1, number)
    bound = bound or before.bound
    # After a round that did not read this host it is not known whether the
    # ports were the same all the time.
    if before.guest != guest or before.last not in (number, number - 1):
        return Sight(held, guest, bound, 1, number)
    return before._replace(
        bound=bound, rounds=before.rounds + number - before.last, last=number)


def used_part(sight: Sight, rules_known: bool) -> dict[str, int]:
    """Return the amounts that a server uses of its allocation, without 0.

    :param rules_known: whether Neutron shows the rules of all its ports; if
        not, all allocated rules count as used
    """
    held = collections.Counter(sight.held.resources)
    used = held.copy()
    used[names.PORTS] = len(sight.guest.ports)
    if rules_known:
        used[names.RULES] = sight.guest.rules
    # Without any its record was not read.
    for name in filter(names.is_of_node, held if sight.guest.pins else ()):
        used[name] = sight.guest.pins.get(name, 0)
    return dict(held & used)
