# SPDX-License-Identifier: Apache-2.0
"""Change the limits of nfv-sched in a snapshot."""

from collections.abc import Mapping
import dataclasses
import types

from nfv_sched.base import conf
from nfv_sched.ledger import inventory as ledger_inventory
from nfv_sched.limits import decide
from nfv_sched.limits import names as ledger_names
from nfv_sched.limits import options as network_limits
from nfv_sched.nova import scheduler
from nfv_sched.ops.cloud import snapshot

#: Options that :func:`changed` may change.
NAMES = (*network_limits.Limits._fields, 'shared_vcpus_per_core')


def changed(cloud: snapshot.Cloud,
            values: Mapping[str, float]) -> snapshot.Cloud:
    """Return a cloud with other values of options in ``NAMES``.

    Metadata of aggregates overrides them, as it does the options.  Ledgers
    have the inventories that the ledger service would publish.
    """
    before = _options(cloud)
    section = {**cloud.options.get(conf.GROUP.name, {}), **values}
    cloud = dataclasses.replace(
        cloud, options={**cloud.options, conf.GROUP.name: section})
    after = _options(cloud)
    if before == after:
        return cloud
    hosts = []
    for host in cloud.hosts:
        state = types.SimpleNamespace(host=host.name, aggregates=[
            each for each in cloud.aggregates if host.name in each.hosts])
        hosts.append(_with_ledger(
            host, network_limits.of_host(state, before),
            network_limits.of_host(state, after)))
    return dataclasses.replace(cloud, hosts=tuple(hosts))


def overriding(cloud: snapshot.Cloud, name: str) -> list[str]:
    return [each.name for each in cloud.aggregates if name in each.metadata]


def _options(cloud: snapshot.Cloud) -> network_limits.Limits:
    conf.register_opts(scheduler.CONF)
    section = cloud.options.get(conf.GROUP.name, {})
    return network_limits.Limits(*(
        section.get(name, default) for name, default in zip(
            network_limits.Limits._fields,
            network_limits.defaults(scheduler.CONF))))


def _with_ledger(host: snapshot.Host, before: network_limits.Limits,
                 after: network_limits.Limits) -> snapshot.Host:
    ledger = ledger_names.provider_uuid(host.uuid)
    network = host.network or snapshot.HostNetwork()
    carried = {
        decide.PORTS.resource_class: (decide.PORTS, network.vswitch_ports),
        decide.RULES.resource_class: (decide.RULES, network.security_rules)}
    return dataclasses.replace(host, providers=tuple([
        each if each.uuid != ledger else dataclasses.replace(
            each, inventories={
                name: inventory if name not in carried
                else _inventory(inventory, *carried[name], before, after)
                for name, inventory in each.inventories.items()})
        for each in host.providers]))


def _inventory(inventory: snapshot.Inventory, quantity: decide.Quantity,
               carried: int | None, before: network_limits.Limits,
               after: network_limits.Limits) -> snapshot.Inventory:
    """Return the ledger's inventory; ``carried`` is None if not known."""
    unallocated = quantity.used(
        before, max((carried or 0) - inventory.used, 0))
    limit = quantity.limit(before)
    if limit < ledger_names.UNLIMITED:
        # Without capacity the ledger does not show how much is in use.
        rest = int(decide.free(int(limit), inventory.capacity))
        unallocated = rest if inventory.capacity else max(rest, unallocated)
    published = ledger_inventory.Account(
        quantity.limit(after), inventory.used,
        unallocated + quantity.hidden(after) - quantity.hidden(before),
    ).inventory()
    return dataclasses.replace(
        inventory, total=published.total, reserved=published.reserved,
        max_unit=published.total)
