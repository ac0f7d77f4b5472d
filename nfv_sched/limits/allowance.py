# SPDX-License-Identifier: Apache-2.0
"""Work out how many ports and security group rules are free on a host.

A host carries what Neutron shows and what this process has placed since; in a
cloud with a ledger, Placement's answer counts as well.
"""

from collections.abc import Callable
import math
import operator
import typing as ty

from nfv_sched.base import reasons
from nfv_sched.limits import demand as network_demand
from nfv_sched.limits import names
from nfv_sched.limits import options as network_limits
from nfv_sched.limits import reservations
from nfv_sched.limits import usage
from nfv_sched.nova import scheduler


class Quantity(ty.NamedTuple):
    """A quantity that a limit counts.

    :ivar resource_class: its resource class in the ledger
    :ivar order: position of its reasons among other reasons
    :ivar noun: its name in reasons
    :ivar need: returns how much a server takes, from its ``NetworkDemand``
    :ivar carried: returns how much a host carries, from its
        ``usage.HostUsage``
    :ivar own: returns how much of that one server takes, from its
        ``usage.GuestUsage``
    :ivar pick: returns its number out of two, of ports and of rules
    :ivar resource: its kind in reasons
    """

    resource_class: str
    order: int
    noun: str
    need: Callable[[network_demand.NetworkDemand], int]
    carried: Callable[[usage.HostUsage], int]
    own: Callable[[usage.GuestUsage], int]
    pick: Callable[[int, int], int]
    resource: reasons.Resource


#: Ports of the virtual switch, without the physical ones.
PORTS = Quantity(
    names.PORTS, reasons.VSWITCH_PORTS, 'vSwitch ports',
    operator.attrgetter('vswitch_ports'),
    operator.attrgetter('vswitch_ports'),
    lambda guest: len(guest.ports), lambda ports, rules: ports,
    reasons.Resource.VSWITCH_PORTS)
#: Security group rules of these ports.
RULES = Quantity(
    names.RULES, reasons.SECURITY_RULES, 'security-group rules',
    operator.attrgetter('rules'), operator.attrgetter('rules'),
    operator.attrgetter('rules'), lambda ports, rules: rules,
    reasons.Resource.SECURITY_RULES)


class Allowance(ty.NamedTuple):
    """The limits of hosts with equal aggregates, applied to one server.

    :ivar reason: why all these hosts are refused; None if they are not
    :ivar limits: all limits
    :ivar limit: the limit of the quantity
    :ivar room: ``limit`` less what Neutron does not know, such as physical
        ports; infinity also if the data from Neutron are too old
    :ivar picky: whether a host can be refused for something else, however
        little the server needs
    :ivar counts: whether these limits count; they do not where their filter is
        in shadow
    """

    reason: reasons.Lazy | None
    limits: network_limits.Limits
    limit: float
    room: float
    picky: bool
    counts: bool = True


class Standing(ty.NamedTuple):
    """Free amount of a quantity on a host, for one server.

    :ivar left: amount that is free by the data from Neutron alone; infinity
        if these are too old, or there is no limit
    :ivar in_ledger: amount that was free in the host's ledger by Placement's
        answer; None if that does not limit the server
    """

    left: float = math.inf
    in_ledger: int | None = None


#: Standing where nothing limits the server.
NO_LIMIT = Standing()


class FreeQuantity:
    """The free amount of a quantity on each host, for one server of a request.

    :param network: the network note of the request
    :param quantity: ``PORTS`` or ``RULES``
    :param allowances: the allowances by host

    :ivar network: the network note of the request
    :ivar need: how much the server takes
    :ivar allowances: the allowances by host
    :ivar shown: host name -> ``usage.HostUsage``; empty if the figures from
        Neutron are too old
    :ivar own: names of the hosts on which a moved server may have ports
        already
    """

    __slots__ = ('network', 'need', 'allowances', 'shown', 'own',
                 '_quantity', '_carried', '_recent')

    def __init__(self, network, quantity: Quantity,
                 allowances: scheduler.PerAggregates[Allowance]):
        self.network = network
        self.need = quantity.need(network.demand)
        self.allowances = allowances
        self.shown = network.snapshot.hosts if network.fresh else {}
        self.own = network.own.keys() if network.fresh else ()
        self._quantity = quantity
        self._carried = quantity.carried
        # Names of hosts on which this process has placed anything lately.
        self._recent = network.recent.hosts()

    def own_on(self, host_state) -> int | None:
        """Return what the server takes there already; None if not there."""
        if host_state.host not in self.own:
            return None
        guest = self.network.own_on(host_state)
        return None if guest is None else self._quantity.own(guest)

    def left(self, host_state, allowance: Allowance,
             host_usage: usage.HostUsage, own: int | None) -> float:
        """Return how much is free on a host.

        If that is enough, and the host has a ledger, the server's need is
        added to the host's allocation candidates.

        :param host_usage: usage of the host by the data from Neutron
        :param own: amount that the server takes there already; None if it is
            not there
        """
        network = self.network
        free = allowance.room - self._carried(host_usage)
        # Its own ports are in Neutron's usage of this host already.
        if own is not None:
            free += own
        # Without a fresh snapshot room is infinite, and nothing can be unseen.
        if host_state.host in self._recent and network.fresh:
            free -= self._quantity.pick(*network.recent.unseen(
                network.snapshot, host_state.host, network.instance))
        # Even an empty host may be too small; then the ledger is not needed.
        if network.ledgers is not None and (
                free >= self.need or self.need <= allowance.room):
            free = self._by_ledger(host_state, free, own)
        return free

    def _by_ledger(self, host_state, free: float, own: int | None) -> float:
        """Return how much is free on a host, by its ledger if it has one.

        :param free: amount that is free by Neutron and this process
        """
        network, need = self.network, self.need
        resource_class = self._quantity.resource_class
        free_by_ledger = in_ledger = network.ledgers.left(
            host_state.uuid, resource_class)
        if in_ledger is None:
            return free
        surely = perhaps = 0
        if host_state.host in self._recent:
            unshown = network.recent.unshown(
                host_state.host, network.ledgers.queried_at,
                network.ledgers.answered_at, network.instance)
            surely = self._quantity.pick(unshown.ports, unshown.rules)
            perhaps = self._quantity.pick(
                unshown.more_ports, unshown.more_rules)
            free_by_ledger = reservations.left(
                in_ledger, surely, perhaps, free, need)
        if own:
            # Until a resize on the same host is confirmed, Placement counts
            # the server twice, as it does with CPUs. It takes no more than
            # before, so it is not refused if the ledger lacks that much.
            if min(free - own, in_ledger - perhaps) >= need:
                names.ask(host_state, resource_class, need)
            return free
        if free_by_ledger >= need:
            names.ask(host_state, resource_class, need)
        return free_by_ledger

    def standing(self, host_state) -> Standing:
        """Return how much is free on a host, right before its claim."""
        network = self.network
        free = self.allowances.for_host(host_state).room - self._carried(
            self.shown.get(host_state.host, usage.NO_USAGE))
        own = self.own_on(host_state)
        in_ledger = None
        # As in _by_ledger: a server that resizes on its host is not limited by
        # the ledger.
        if network.ledgers is not None and not own:
            in_ledger = network.ledgers.left(
                host_state.uuid, self._quantity.resource_class)
        return Standing(free + (own or 0), in_ledger)

    def full(self, allowance: Allowance, free: float) -> reasons.Reason:
        """Return the reason to refuse a host where so little is left."""
        limit = allowance.limit
        number = max(int(free), 0)
        # The ledger may have a limit that this process does not have.
        have = (f'{number} of {limit:.0f} free' if math.isfinite(limit)
                else f'{number} free')
        return reasons.Reason(
            self._quantity.order, self._quantity.noun, f'{self.need} needed',
            have, number, shortage=reasons.Shortage(
                reasons.Amount(self._quantity.resource, self.need), number,
                most=int(max(allowance.room, 0))
                if math.isfinite(allowance.room) else None))
