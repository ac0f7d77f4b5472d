# SPDX-License-Identifier: Apache-2.0
"""Compare Placement with the hosts and servers of Nova."""

from collections.abc import Collection
from collections.abc import Mapping

import os_resource_classes as orc

from nfv_sched.limits import names
from nfv_sched.ops.answers.audit import hosts
from nfv_sched.ops.answers.audit import values
from nfv_sched.ops.answers.hosts import memory
from nfv_sched.ops.cloud import occupied
from nfv_sched.ops.cloud import snapshot

_VCPU, _PCPU, _MEMORY = orc.VCPU, orc.PCPU, orc.MEMORY_MB
# Hypervisor types whose servers take whole machines, not CPUs and memory.
_WHOLE_MACHINES = ('ironic',)
# "nova-manage placement audit" passes over consumers without any of these.
_AUDITED = frozenset({
    orc.VCPU, orc.MEMORY_MB, orc.DISK_GB, orc.VGPU,
    orc.NET_BW_EGR_KILOBIT_PER_SEC, orc.NET_BW_IGR_KILOBIT_PER_SEC, orc.PCPU,
    orc.MEM_ENCRYPTION_CONTEXT})
# With this version of Placement the consumer keeps its project and user.
_VERSION = '1.28'


def check(site: hosts.Site) -> hosts.Findings:
    if site.host.hypervisor_type in _WHOLE_MACHINES:
        return
    if site.host.providers:
        yield from _inventories(site)
        yield from _overused(site)
    elif _is_read(site):
        yield site.finding(values.INVENTORY, 'no resource provider in '
                           'Placement: it gets no servers')
    else:
        return
    for server in site.steady:
        yield from _allocations(site, server)
    yield from _find_strangers(site)


def _is_read(site: hosts.Site) -> bool:
    """Return True if the lack of a provider is known, not just unread."""
    return site.cloud.consumers is not None and site.host.uuid not in (
        site.cloud.unread(snapshot.MissingKind.PROVIDERS))


def _inventories(site: hosts.Site) -> hosts.Findings:
    nodes = site.host.nodes
    if not nodes:
        return
    root = site.host.providers[0]
    # With vcpu_pin_set the same CPUs serve pinned and shared servers, and
    # nova-compute reports them as VCPU.
    for name, count in (
            (_PCPU, sum(len(node.dedicated - node.shared) for node in nodes)),
            (_VCPU, sum(len(node.shared) for node in nodes))):
        inventory = root.inventories.get(name)
        total = 0 if inventory is None else inventory.total
        if total != count:
            yield site.finding(
                values.INVENTORY,
                f'{name}: {total} in Placement, {count} on the host')


def _overused(site: hosts.Site) -> hosts.Findings:
    ledger = names.provider_uuid(site.host.uuid)  # has a check of its own
    for provider in site.host.providers:
        for name, inventory in provider.inventories.items():
            # Nested providers are reserved to take no further servers.
            total = inventory.total - (
                0 if provider.parent else inventory.reserved)
            if provider.uuid != ledger and (
                    inventory.used > int(total * inventory.ratio)):
                yield site.finding(
                    values.OVERUSED, f'{provider.name}: {inventory.used} '
                    f'{name} allocated, '
                    f'{memory.limit_text(total, inventory.ratio)} may be')


def _amounts_on_host(site: hosts.Site,
                     allocations: hosts.Allocations) -> dict[str, int]:
    amounts: dict[str, int] = {}
    for provider in site.host.providers:
        for name, amount in allocations.get(provider.uuid, {}).items():
            amounts[name] = amounts.get(name, 0) + amount
    return amounts


def _allocations(site: hosts.Site,
                 server: snapshot.Server) -> hosts.Findings:
    if server.allocations is None:
        return
    amounts = _amounts_on_host(site, server.allocations)
    if not amounts:
        yield site.finding(
            values.ALLOCATION_MISSING, 'has nothing of its host in Placement',
            server, commands=_allocation(server, bool(server.allocations)))
        return
    wrong = [f'{name} {amounts.get(name, 0)} instead of {amount}'
             for name, amount in _expected_amounts(site, server).items()
             if amounts.get(name, 0) != amount]
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
    """Return the CPUs and memory that a server should have allocated.

    Resource classes that its flavor sets itself (``resources:...``) are not
    included.
    """
    amounts = occupied.allocation(
        server, _PCPU in site.host.providers[0].inventories)
    expected = {name: amounts.get(name, 0) for name in (_PCPU, _VCPU, _MEMORY)}
    for key in server.flavor.extra_specs:
        group, colon, name = key.partition(':')
        if colon and group.startswith('resources'):
            expected.pop(name, None)
    return expected


def _find_strangers(site: hosts.Site) -> hosts.Findings:
    """Find allocations of consumers that are not servers on this host."""
    here = {server.uuid for server in site.servers}
    here.update(move.server for move in site.moves if not move.settled)
    moves = {move.uuid for move in site.cloud.moves or ()}
    strangers = {consumer: allocations for provider in site.host.providers
                 for consumer, allocations in site.whole.holders.get(
                     provider.uuid, ())
                 if consumer not in here and consumer not in moves
                 and consumer not in site.whole.unread}
    for consumer, allocations in strangers.items():
        server = site.known.get(consumer)
        text = f'{_amounts_text(_amounts_on_host(site, allocations))} of '
        if server is None:
            yield site.finding(
                values.ALLOCATION_ORPHAN, f'{text}{consumer}, which is '
                'neither a server nor a move under way',
                commands=_removal(site, consumer, allocations))
        elif not site.host.up:
            yield site.finding(values.LEFT_BEHIND,
                               text + hosts.where(server), server)
        elif server.task is None:
            yield site.finding(
                values.ALLOCATION_ELSEWHERE, text + hosts.where(server),
                server, commands=_removal(site, consumer, allocations))


def _removal(site: hosts.Site, consumer: str,
             allocations: hosts.Allocations) -> tuple[hosts.Command, ...]:
    return removal(consumer, {
        provider.uuid: allocations[provider.uuid]
        for provider in site.host.providers
        if allocations.get(provider.uuid)})


def removal(consumer: str, allocations: Mapping[str, Collection[str]],
            ) -> tuple[hosts.Command, ...]:
    if all(_AUDITED.intersection(classes)
           for classes in allocations.values()):
        return tuple([
            ('nova-manage', 'placement', 'audit', '--resource_provider', uuid,
             '--delete') for uuid in allocations])
    return (('openstack', '--os-placement-api-version', _VERSION, 'resource',
             'provider', 'allocation', 'unset', *[
                 word for uuid in allocations
                 for word in ('--provider', uuid)], consumer),)


def _amounts_text(amounts: Mapping[str, int]) -> str:
    return ', '.join(f'{amount} {name}' for name, amount in sorted(
        amounts.items(), key=lambda item: (item[0] in (
            names.PORTS, names.RULES), item[0])))
