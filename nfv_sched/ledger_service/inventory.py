# SPDX-License-Identifier: Apache-2.0
"""Work out the inventories of a host in the ledger.  No I/O.

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
``virtual_interfaces``; the ``device_id`` of the port does not count, as
tenants can change it.  A port that Nova has plugged for no server is reserved.

Neutron is read first and the allocations after that.  Between the two:

* A server that arrives has an allocation and no port yet.  It counts once.
* A server that leaves, or is deleted, has ports and no allocation any more.
  It counts as reserved until the next round, as if it had left later:
  Placement may refuse another server for one interval.  (In the other order, a
  server that arrives would count twice, and others would be refused although
  there is capacity.)
* A port that Nova is plugging for a server is bound before it is in that
  table.  It counts as reserved, beside the allocation, until the round after
  it is.
* A port attached after Neutron was read, or a rule added, is missing.  For one
  interval Placement may accept one server too many.  This is the only error of
  that kind, and no order avoids it: Neutron does not ask the ledger.

A migration that is not in Nova's database covers nothing: again, at worst a
server is refused.
"""

from collections.abc import Mapping
import math
import typing as ty

from nfv_sched.ledger import names
from nfv_sched.network import limits
from nfv_sched.network import usage

#: Consumer UUID -> resource class -> amount allocated from one provider.
Allocations = Mapping[str, Mapping[str, int]]


class LedgerInventory(ty.NamedTuple):
    """The inventory of one resource class on one host.

    :ivar total: total of the inventory; never less than what is allocated
    :ivar reserved: part of ``total`` that no server may allocate
    """

    total: int
    reserved: int

    @property
    def capacity(self) -> int:
        """Amount that servers may allocate in all."""
        return self.total - self.reserved

    def to_placement(self) -> dict:
        """Return the inventory in the form of Placement's API."""
        return {'total': self.total, 'reserved': self.reserved,
                'min_unit': 1, 'max_unit': self.total, 'step_size': 1,
                'allocation_ratio': 1.0}


class Account(ty.NamedTuple):
    """Limit and usage of one resource class on one host.

    :ivar limit: amount that the host may carry; infinity if there is no limit
    :ivar allocated: amount that servers have allocated
    :ivar unallocated: amount in use without an allocation, physical ports
        included
    """

    limit: float
    allocated: int
    unallocated: int

    @property
    def overdrawn(self) -> bool:
        """True if servers have allocated more than the limit."""
        return self.allocated > self.limit

    def inventory(self) -> LedgerInventory:
        """Return the inventory to publish."""
        # Without a limit nothing needs to be reserved, so nothing needs to be
        # written when ports come and go.
        if self.limit >= names.UNLIMITED:
            return LedgerInventory(names.UNLIMITED, 0)
        limit = math.floor(self.limit)
        # Placement accepts no total of 0. What is above the limit is reserved,
        # so that a host that is too full takes no more.
        total = max(limit, self.allocated, 1)
        return LedgerInventory(total, total - max(limit - self.unallocated, 0))


def update(
    existing: Mapping[str, Mapping],
    new_inventories: Mapping[str, LedgerInventory],
    can_raise: bool,
) -> tuple[dict[str, Mapping], bool]:
    """Work out the inventories to write to a provider.

    :param existing: resource class -> inventory in Placement
    :param new_inventories: resource class -> inventory to publish
    :param can_raise: whether a capacity may be raised
    :returns: (resource class -> inventory to write, those of other classes
        unchanged; whether that includes everything in ``new_inventories``)
    """
    written = dict(existing)
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


def by_guest(
    allocations: Allocations, migrations: Mapping[str, str], name: str,
) -> dict[str, int]:
    """Return the amount of one resource class that each server has allocated.

    :param allocations: allocations from one host's provider in the ledger
    :param migrations: UUID of a migration -> UUID of the server that it moves
    """
    amounts: dict[str, int] = {}
    for consumer, resources in allocations.items():
        guest = migrations.get(consumer, consumer)
        amounts[guest] = amounts.get(guest, 0) + resources.get(name, 0)
    return amounts


def accounts(
    host: usage.HostUsage, guests: Mapping[str, usage.GuestUsage],
    host_limits: limits.Limits, allocations: Allocations,
    migrations: Mapping[str, str],
) -> dict[str, Account]:
    """Return limit and usage of ports and rules on a host.

    :param host: usage of the host by Neutron
    :param guests: server UUID -> its part of ``host``
    :param allocations: allocations from the host's provider in the ledger
    :param migrations: UUID of a migration -> UUID of the server that it moves
    :returns: resource class -> account
    """
    ports = by_guest(allocations, migrations, names.PORTS)
    rules = by_guest(allocations, migrations, names.RULES)
    more_ports = host.vswitch_ports
    more_rules = host.rules
    for uuid, guest in guests.items():
        # No more than this server has bound: an allocation does not cover
        # ports of others.
        more_ports -= min(len(guest.ports), ports.get(uuid, 0))
        more_rules -= min(guest.rules, rules.get(uuid, 0))
    return {
        names.PORTS: Account(
            host_limits.vswitch_ports_per_node, sum(ports.values()),
            host_limits.vswitch_physical_ports + more_ports),
        names.RULES: Account(
            host_limits.security_rules_per_node, sum(rules.values()),
            more_rules),
    }
