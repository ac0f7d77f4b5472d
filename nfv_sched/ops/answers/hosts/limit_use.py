# SPDX-License-Identifier: Apache-2.0
"""Compare the ports and security group rules of hosts with their limits."""

from collections.abc import Mapping
import dataclasses
import math

from nfv_sched.limits import decide
from nfv_sched.limits import names
from nfv_sched.limits import options
from nfv_sched.ops.cloud import snapshot


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class LimitUse:
    """Usage of one of the limits of a host.

    :ivar used: usage of the host; None if it is not known
    :ivar limit: None if there is none
    :ivar free: what new servers can have; None without a limit, or if it is
        not known
    """

    used: int | None
    limit: int | None
    free: int | None

    @property
    def percent_used(self) -> float:
        """The part of the limit that is not free, in percent."""
        if self.limit is None or self.free is None:
            return 0.0
        return 100.0 * (1 - max(self.free, 0) / max(self.limit, 1))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class HostLimits:
    """Usage of the limits of a host.

    :ivar ports: of the virtual switch, physical ones included
    :ivar rules: of the security groups of these ports
    :ivar services_limit: most DHCP servers and routers; None if there is none
    :ivar sources: where the usage is from: ``neutron``, ``ledger``, or both
    :ivar notes: over-allocations, a sentence each
    """

    ports: LimitUse
    rules: LimitUse
    services_limit: int | None
    sources: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def percent_used(self) -> float:
        """The higher percentage of ports and rules."""
        return max(self.ports.percent_used, self.rules.percent_used)


def of_host(host: snapshot.Host, most: options.Limits,
            has_ledger: bool) -> HostLimits:
    """Return the usage of the limits of a host.

    :param has_ledger: whether the ledger in Placement decides what is free
    """
    network = host.network or snapshot.HostNetwork()
    inventories = _inventories(host) if has_ledger else {}
    is_read = network.vswitch_ports is not None
    ports = _usage(decide.PORTS, network.vswitch_ports, most, inventories)
    rules = _usage(decide.RULES, network.security_rules, most, inventories)
    return HostLimits(
        ports=ports, rules=rules,
        services_limit=_whole(most.network_services_per_node),
        sources=tuple(name for name, is_there in (
            ('neutron', is_read), ('ledger', inventories)) if is_there),
        notes=tuple(filter(None, (
            _overdrawn('ports', ports, inventories.get(names.PORTS)),
            _overdrawn('rules', rules, inventories.get(names.RULES))))))


def _inventories(host: snapshot.Host) -> Mapping[str, snapshot.Inventory]:
    """Return the inventories of the ledger of a host, by resource class."""
    uuid = names.provider_uuid(host.uuid)
    return next((provider.inventories for provider in host.providers
                 if provider.uuid == uuid), {})


def _whole(limit: float) -> int | None:
    return None if math.isinf(limit) else int(limit)


def _usage(
    quantity: decide.Quantity, carried: int | None, most: options.Limits,
    inventories: Mapping[str, snapshot.Inventory],
) -> LimitUse:
    limit = _whole(quantity.limit(most))
    inventory = inventories.get(quantity.resource_class)
    free = None
    if limit is not None and inventory is not None:
        free = inventory.capacity - inventory.used
    elif limit is not None and carried is not None:
        free = max(int(quantity.free(most, carried)), 0)
    return LimitUse(
        used=None if carried is None else quantity.used(most, carried),
        limit=limit, free=free)


def _overdrawn(noun: str, usage: LimitUse,
               inventory: snapshot.Inventory | None) -> str:
    """Return a note if more is allocated than the limit; else ``''``."""
    if inventory is None:
        return ''
    # nfv-sched-ledger raises a total that is below the allocations.
    total = inventory.total if usage.limit is None else min(
        usage.limit, inventory.total)
    if inventory.used <= total:
        return ''
    return f'{inventory.used} {noun} allocated of {total}'
