# SPDX-License-Identifier: Apache-2.0
"""Compare the ports and security group rules of hosts with their limits."""

from collections.abc import Mapping
import math

from nfv_sched.limits import decide
from nfv_sched.limits import names
from nfv_sched.limits import options
from nfv_sched.ops.answers.hosts import document
from nfv_sched.ops.cloud import snapshot


def of_host(host: snapshot.Host,
            most: options.Limits) -> document.NetworkUse:
    network = host.network or snapshot.HostNetwork()
    inventories = _inventories(host)
    is_read = network.vswitch_ports is not None
    ports = _usage(decide.PORTS, network.vswitch_ports, most, inventories)
    rules = _usage(decide.RULES, network.security_rules, most, inventories)
    return document.NetworkUse(
        vswitch_ports=ports, security_rules=rules,
        dhcp_servers=network.dhcp_servers, routers=network.routers,
        services_limit=_whole(most.network_services_per_node),
        sources=tuple(name for name, is_there in (
            ('neutron', is_read), ('ledger', inventories)) if is_there),
        notes=tuple(filter(None, (
            _overdrawn('ports', ports, inventories.get(names.PORTS)),
            _overdrawn('rules', rules, inventories.get(names.RULES))))))


def _inventories(host: snapshot.Host) -> Mapping[str, snapshot.Inventory]:
    uuid = names.provider_uuid(host.uuid)
    return next((provider.inventories for provider in host.providers
                 if provider.uuid == uuid), {})


def _whole(limit: float) -> int | None:
    return None if math.isinf(limit) else int(limit)


def _usage(
    quantity: decide.Quantity, carried: int | None, most: options.Limits,
    inventories: Mapping[str, snapshot.Inventory],
) -> document.HostLimitUse:
    limit = _whole(quantity.limit(most))
    inventory = inventories.get(quantity.resource_class)
    free = None
    if limit is not None and inventory is not None:
        free = inventory.capacity - inventory.used
    elif limit is not None and carried is not None:
        free = max(int(quantity.free(most, carried)), 0)
    return document.HostLimitUse(
        used=None if carried is None else quantity.used(most, carried),
        limit=limit, free=free)


def _overdrawn(noun: str, usage: document.HostLimitUse,
               inventory: snapshot.Inventory | None) -> str:
    if inventory is None:
        return ''
    # nfv-sched-ledger raises a total that is below the allocations.
    total = inventory.total if usage.limit is None else min(
        usage.limit, inventory.total)
    if inventory.used <= total:
        return ''
    return f'{inventory.used} {noun} allocated of {total}'
