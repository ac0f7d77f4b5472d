# SPDX-License-Identifier: Apache-2.0
"""Decide whether a host may carry the ports and rules of a server.

Nothing else does so, or works out what is free.  No I/O.
"""

from collections.abc import Callable, Mapping
import functools
import math
import operator
import typing as ty

from nfv_sched.base import reasons
from nfv_sched.base import strings
from nfv_sched.limits.demand import NetworkDemand
from nfv_sched.limits import names
from nfv_sched.limits.options import Limits
from nfv_sched.limits import usage


class Quantity(ty.NamedTuple):
    resource_class: str  #: its resource class in the ledger
    order: int
    noun: str  #: its name in reasons
    resource: reasons.Resource
    need: Callable[[NetworkDemand], int]  #: returns how much a server takes
    #: returns how much of what Neutron has bound to a host one server takes
    own: Callable[[usage.GuestUsage], int]
    #: returns its number out of two, of ports and of rules
    pick: Callable[[int, int], int]
    limit: Callable[[Limits], float]  #: returns the limit of a host
    #: returns how much a host carries that Neutron does not show
    hidden: Callable[[Limits], int]
    #: for each limit of one server its name in reasons, and the names of the
    #: demand and of the limit
    of_servers: tuple[tuple[str, str, str], ...]

    def used(self, limits: Limits, carried: int) -> int:
        """Return how much is in use where Neutron has bound an amount."""
        return self.hidden(limits) + carried

    def free(self, limits: Limits, carried: int = 0) -> float:
        return free(self.limit(limits), self.used(limits, carried))


#: Ports of the virtual switch, with the physical ones.
PORTS = Quantity(
    names.PORTS, reasons.VSWITCH_PORTS, 'vSwitch ports',
    reasons.Resource.VSWITCH_PORTS,
    operator.attrgetter('vswitch_ports'),
    lambda guest: len(guest.ports), lambda ports, rules: ports,
    lambda limits: limits.vswitch_ports_per_node,
    lambda limits: limits.vswitch_physical_ports,
    (('vNICs of a server', 'vswitch_ports', 'vnics_per_guest'),
     ('VFs of a server', 'vfs', 'sriov_vfs_per_guest'),
     ('PFs of a server', 'pci_nics', 'pci_nics_per_guest')))
#: Security group rules of these ports.
RULES = Quantity(
    names.RULES, reasons.SECURITY_RULES, 'security-group rules',
    reasons.Resource.SECURITY_RULES,
    operator.attrgetter('rules'), operator.attrgetter('rules'),
    lambda ports, rules: rules,
    lambda limits: limits.security_rules_per_node, lambda limits: 0,
    (('security-group rules of a port', 'port_rules',
      'security_rules_per_port'),))

QUANTITIES = (PORTS, RULES)


def free(limit: float, used: float) -> float:
    """Return how much of a limit is free; less than 0 if too much is used."""
    return limit - used


def decide(quantity: Quantity, demand: NetworkDemand, limits: Limits,
           available: float, services: int = 0) -> reasons.Lazy | None:
    """Decide whether a host may carry a server.

    :param services: number of DHCP servers and routers on the host; 0 for a
        server that is there already
    :returns: why not; None if it may
    """
    if not (need := quantity.need(demand)):
        return None
    if quantity is PORTS and services > limits.network_services_per_node:
        return reasons.Reason(
            quantity.order, 'DHCP servers and routers',
            'capacity beside them needed', f'{services} on the host, at most '
            f'{limits.network_services_per_node:.0f} allowed', -services)
    if available < need:
        return functools.partial(_full, quantity, need, limits, available)
    return None


def refuse_server(quantity: Quantity, demand: NetworkDemand,
                  limits: Limits) -> reasons.Reason | None:
    """Return why a new server exceeds a limit of servers; None if not.

    One that runs must stay movable when the limit is lowered.
    """
    for what, needed, limit in quantity.of_servers:
        need, most = getattr(demand, needed), getattr(limits, limit)
        if need > most:
            return reasons.Reason(
                quantity.order, what, f'{need} needed',
                f'at most {most:.0f} allowed', int(most), own=True)
    return None


def refuse_nodes(
    amounts: Mapping[str, int], available: Mapping[str, int],
    granted: Mapping[str, int], order: int, policy: str,
) -> reasons.Reason | None:
    """Return why NUMA nodes have too little for a server; None if not.

    :param amounts: resource class -> amount that the claim takes
    :param available: resource class -> amount that Placement had, without
        classes that it does not have of the host
    :param granted: resource class -> amount that the request got since then
    :param policy: the rule that leaves no other nodes, of this order
    """
    for name, amount in available.items():
        spare = int(free(amount, granted.get(name, 0)))
        if (need := amounts[name]) > spare:
            node, noun, more = names.of_node(name)
            return reasons.Reason(
                order, policy,
                f'{strings.count(need, noun)}{more} of one host NUMA node '
                'needed', f'{max(spare, 0)} of node {node} not granted to '
                'others yet', spare)
    return None


def _full(quantity: Quantity, need: int, limits: Limits,
          available: float) -> reasons.Reason:
    limit, most = quantity.limit(limits), quantity.free(limits)
    number = max(int(available), 0)
    # The ledger may have a limit that this process does not have.
    have = (f'{number} of {limit:.0f} free' if math.isfinite(limit)
            else f'{number} free')
    return reasons.Reason(
        quantity.order, quantity.noun, f'{need} needed', have, number,
        shortage=reasons.Shortage(
            reasons.Amount(quantity.resource, need), number,
            most=int(max(most, 0)) if math.isfinite(most) else None))
