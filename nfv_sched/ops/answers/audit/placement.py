# SPDX-License-Identifier: Apache-2.0
"""Compare Placement with the hosts and servers of Nova, and with Neutron."""

import collections
from collections.abc import Collection, Iterable, Mapping
import dataclasses

import os_resource_classes as orc

from nfv_sched.ledger import inventory
from nfv_sched.ledger import nodes
from nfv_sched.limits import names
from nfv_sched.limits import usage
from nfv_sched.ops.answers.audit import hosts
from nfv_sched.ops.answers.audit import values
from nfv_sched.ops.answers.hosts import view
from nfv_sched.ops.cloud import occupied
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.simulator import restore_hosts

_VCPU, _PCPU, _MEMORY = orc.VCPU, orc.PCPU, orc.MEMORY_MB
# "nova-manage placement audit" passes over consumers without any of these.
_AUDITED = frozenset({
    orc.VCPU, orc.MEMORY_MB, orc.DISK_GB, orc.VGPU,
    orc.NET_BW_EGR_KILOBIT_PER_SEC, orc.NET_BW_IGR_KILOBIT_PER_SEC, orc.PCPU,
    orc.MEM_ENCRYPTION_CONTEXT})
# With this version of Placement the consumer keeps its project and user.
_VERSION = '1.28'


def check(site: hosts.Site) -> hosts.Findings:
    # Its servers take whole machines, not CPUs and memory.
    if site.host.hypervisor_type == 'ironic':
        return
    if site.host.providers:
        yield from _inventories(site)
        yield from _overused(site)
    elif site.whole.cloud.consumers is not None and site.host.uuid not in (
            site.whole.cloud.unread(snapshot.MissingKind.PROVIDERS)):
        yield site.finding(values.INVENTORY, 'no resource provider in '
                           'Placement: it gets no servers')
    else:
        return
    for server in site.steady:
        yield from _allocations(site, server)
    yield from _find_strangers(site)


def _inventories(site: hosts.Site) -> hosts.Findings:
    if not (nodes := site.host.nodes):
        return
    root = site.host.providers[0]
    # With vcpu_pin_set the same CPUs serve pinned and shared servers, and
    # nova-compute reports them as VCPU.
    for name, count in (
            (_PCPU, sum(len(node.dedicated - node.shared) for node in nodes)),
            (_VCPU, sum(len(node.shared) for node in nodes))):
        total = root.inventories[name].total if name in root.inventories else 0
        if total != count:
            yield site.finding(
                values.INVENTORY,
                f'{name}: {total} in Placement, {count} on the host')


def _overused(site: hosts.Site) -> hosts.Findings:
    ledger = names.provider_uuid(site.host.uuid)  # has a check of its own
    for provider in site.host.providers:
        for name, there in provider.inventories.items():
            # Nested providers are reserved to take no further servers.
            total = there.total - (0 if provider.parent else there.reserved)
            if provider.uuid != ledger and (
                    there.used > int(total * there.ratio)):
                yield site.finding(
                    values.OVERUSED, f'{provider.name}: {there.used} {name} '
                    f'allocated, {view.limit_text(total, there.ratio)} may be')


def _amounts_on_host(site: hosts.Site,
                     allocations: hosts.Allocations,
                     ) -> collections.Counter[str]:
    amounts: collections.Counter[str] = collections.Counter()
    for provider in site.host.providers:
        amounts.update(allocations.get(provider.uuid, {}))
    return amounts


def _allocations(site: hosts.Site, server: snapshot.Server) -> hosts.Findings:
    if server.allocations is None:
        return
    if not (amounts := _amounts_on_host(site, server.allocations)):
        yield site.finding(
            values.ALLOCATION_MISSING, 'has nothing of its host in Placement',
            server, commands=_allocation(server, bool(server.allocations)))
        return
    wrong = [f'{name} {amounts[name]} instead of {amount}'
             for name, amount in _expected_amounts(site, server).items()
             if amounts[name] != amount]
    if wrong:
        yield site.finding(
            values.ALLOCATION_DIFFERS, f'has in Placement {", ".join(wrong)}',
            server, commands=_allocation(server, anew=True))


def _allocation(server: snapshot.Server,
                anew: bool) -> tuple[hosts.Command, ...]:
    # Nova does not allocate again what ports had, such as bandwidth.
    if any(port.has_allocation for port in server.ports or ()):
        return ()
    return (('nova-manage', 'placement', 'heal_allocations', '--instance',
             server.uuid, *(('--force',) if anew else ())),)


def _expected_amounts(site: hosts.Site,
                      server: snapshot.Server) -> dict[str, int]:
    """Return CPUs and memory; not classes that the flavor sets itself."""
    amounts = occupied.allocation(
        server, _PCPU in site.host.providers[0].inventories)
    expected = {name: amounts.get(name, 0) for name in (_PCPU, _VCPU, _MEMORY)}
    for key in server.flavor.extra_specs:
        group, colon, name = key.partition(':')
        if colon and group.startswith('resources'):
            expected.pop(name, None)
    return expected


def _find_strangers(site: hosts.Site) -> hosts.Findings:
    expected = {server.uuid for server in site.servers} | site.whole.unread
    expected.update(move.server for move in site.moves if not move.settled)
    expected.update(move.uuid for move in site.whole.cloud.moves or ())
    strangers = {consumer: allocations for provider in site.host.providers
                 for consumer, allocations in site.whole.holders.get(
                     provider.uuid, ())
                 if consumer not in expected}
    for consumer, allocations in strangers.items():
        server = site.whole.servers.get(consumer)
        text = ', '.join(f'{amount} {name}' for name, amount in sorted(
            _amounts_on_host(site, allocations).items(),
            key=lambda item: (item[0] in (names.PORTS, names.RULES), item)))
        commands = removal(consumer, {
            provider.uuid: allocations[provider.uuid]
            for provider in site.host.providers
            if allocations.get(provider.uuid)})
        if server is None:
            yield site.finding(
                values.ALLOCATION_ORPHAN, f'{text} of {consumer}, which is '
                'neither a server nor a move under way', commands=commands)
            continue
        text += f' of {hosts.describe_other(consumer, server)}'
        if not site.host.up:
            yield site.finding(values.LEFT_BEHIND, text, server)
        elif server.task is None:
            yield site.finding(values.ALLOCATION_ELSEWHERE, text, server,
                               commands=commands)


def removal(consumer: str, allocations: Mapping[str, Collection[str]],
            ) -> tuple[hosts.Command, ...]:
    if all(_AUDITED.intersection(classes) for classes in allocations.values()):
        return tuple([
            ('nova-manage', 'placement', 'audit', '--resource_provider', uuid,
             '--delete') for uuid in allocations])
    return (('openstack', '--os-placement-api-version', _VERSION, 'resource',
             'provider', 'allocation', 'unset', *[
                 word for uuid in allocations
                 for word in ('--provider', uuid)], consumer),)


def check_ledger(site: hosts.Site) -> hosts.Findings:
    """Compare the ledger with Neutron, unless a server comes or goes."""
    if (not site.whole.has_ledgers or not site.host.providers
            or len(site.steady) < len(site.servers)
            or any(not move.settled for move in site.moves)):
        return
    network = site.host.network
    if network is None or network.vswitch_ports is None:
        return
    uuid = names.provider_uuid(site.host.uuid)
    ledger = next((provider for provider in site.host.providers
                   if provider.uuid == uuid), None)
    if ledger is None:
        yield site.finding(values.LEDGER, 'has no ledger in Placement')
        return
    for name, account in _accounts(site, network, ledger).items():
        have = ledger.inventories.get(name)
        capacity = 0 if have is None else have.capacity
        expected = account.inventory().capacity
        if capacity != expected:
            yield site.finding(
                values.LEDGER, f'{name}: {capacity} for servers by the '
                f'ledger, {expected} by '
                f'{"Nova" if names.is_of_node(name) else "Neutron"}')


def _accounts(site: hosts.Site, network: snapshot.HostNetwork,
              ledger: snapshot.Provider) -> dict[str, inventory.Account]:
    guests = {}
    totals = {name: total for name, total in nodes.totals(
        restore_hosts.topology(site.host.nodes)).items()
        if name in ledger.inventories} if site.host.nodes else {}
    rules_known = network.security_rules is not None
    for server in site.servers:
        ports = occupied.vswitch_ports(server)
        rules_known = rules_known and all(
            port.rules is not None for port in ports)
        guests[server.uuid] = usage.GuestUsage(
            tuple(port.id for port in ports),
            sum(port.rules or 0 for port in ports),
            _pins(site, server.nodes or ()) if totals else {})
    # Until a move is confirmed the server keeps what it had on the source.
    for move in site.moves if totals else ():
        if move.source == site.host.name:
            guest = guests.get(move.server, usage.NOTHING)
            guests[move.server] = dataclasses.replace(
                guest, pins=collections.Counter(guest.pins)
                + collections.Counter(_pins(site, move.before or ())))
    allocations = {
        consumer: by_provider[ledger.uuid]
        for consumer, by_provider in site.whole.holders.get(ledger.uuid, ())}
    accounts = inventory.accounts(
        inventory.Load(network.vswitch_ports or 0,
                       network.security_rules or 0, guests, nodes=totals),
        inventory.by_server(allocations, {
            move.uuid: move.server for move in site.whole.cloud.moves or ()}),
        view.limits_of(site.whole.cloud, site.host, site.aggregates))
    if not rules_known:
        del accounts[names.RULES]
    return accounts


def _pins(site: hosts.Site,
          parts: Iterable[snapshot.GuestNode]) -> dict[str, int]:
    host_nodes = site.host.nodes or ()
    return {name: amount for share in occupied.shares(host_nodes, parts)
            for node in [host_nodes[share.position].number]
            for name, amount in (
                (names.node_cpus(node), len(share.cpus)),
                (names.node_pages(node, share.page_size), share.pages))
            if amount}
