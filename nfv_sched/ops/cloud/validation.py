# SPDX-License-Identifier: Apache-2.0
"""Check a snapshot for contradictions and impossible values.

A file may have been edited.  :mod:`nfv_sched.ops.cloud.codec` checks the
types of fields; this module checks everything else that the tools rely on.
"""

from collections.abc import Collection, Iterable
import dataclasses
import typing as ty

from oslo_config import cfg

from nfv_sched.base import conf
from nfv_sched.base import extra_specs
from nfv_sched.base import files
from nfv_sched.ops.cloud import codec
from nfv_sched.ops.cloud import marks
from nfv_sched.ops.cloud import names
from nfv_sched.ops.cloud import snapshot

_KINDS = frozenset({'type-VF', 'type-PF', 'type-PCI', 'vdpa'})
_STATUSES = frozenset({'available', 'claimed', 'allocated', 'removed',
                       'deleted', 'unavailable', 'unclaimable'})
_NUMA_POLICIES = (None, 'legacy', 'preferred', 'required', 'socket')
_SERVICES = (snapshot.DHCP, snapshot.ROUTER)
_AGENTS = (*_SERVICES, snapshot.OVN)
#: No host has more ports or rules; the simulator makes each of them.
MAX_LOAD = 100_000
# Items of files.max_items() that a port counts for.
_ITEMS_PER_PORT = 8
# Nova compares each device with all pools of its host, so that many of both
# take long.  A pool has the VFs of a PF with equal tags, or another device.
#: Maximum number of PCI devices of a host.
MAX_DEVICES = 4096
_MAX_POOLS = 512
_MAX_PAGE_SIZES = 64
_RATIOS = ('cpu_allocation_ratio', 'ram_allocation_ratio',
           'disk_allocation_ratio')


def check(cloud: snapshot.Cloud) -> None:
    """Check a snapshot; raise WrongError or FileLimitError."""
    for what in ('hosts', 'servers', 'groups'):
        _check_unique(what, [each.uuid for each in getattr(cloud, what)])
    _check_unique('resource providers', [
        provider.uuid for host in cloud.hosts for provider in host.providers])
    for number, host in enumerate(cloud.hosts):
        try:
            _check_host(host)
        except codec.WrongError as exc:
            exc.path[:0] = ['hosts', number]
            raise
    for server in cloud.servers:
        for request in server.pci_requests or ():
            if request.numa_policy not in _NUMA_POLICIES:
                raise codec.WrongError(
                    f'the NUMA policy of a PCI request of server '
                    f'{server.uuid!r} cannot be {request.numa_policy!r}')
        for port in server.ports or ():
            _check_load(f'rules of a port of server {server.uuid!r}',
                        port.rules)
    _check_network(cloud)
    # The simulator makes all ports of all hosts.
    most = max_ports()
    if sum(number or 0 for host in cloud.hosts if host.network is not None
           for name, number in dataclasses.asdict(host.network).items()
           if name != 'security_rules') > most:
        raise files.beyond(f'{most} ports, DHCP servers and routers')
    _check_options(cloud)


def check_names(cloud: snapshot.Cloud) -> None:
    for path, rule, text in marks.find(snapshot.Cloud, cloud, names.NameRule):
        _check_name(path, rule, text)
    for number, agent in enumerate(cloud.network_agents or ()):
        # OVN places the routers itself.
        _check_name(
            ('network_agents', number, 'id'), names.HOST
            if agent.kind == snapshot.OVN else names.UUID, agent.id)


def _check_name(path: tuple[str | int, ...], rule: names.NameRule,
                text: str) -> None:
    if not rule.accepts(text):
        raise codec.WrongError(
            f'{rule.text}, not {extra_specs.shown(text)}', path)


def _check_unique(what: str, values: Iterable[ty.Any]) -> None:
    seen = set()
    for name in values:
        if name in seen:
            raise codec.WrongError(
                f'two {what} are {extra_specs.shown(name, 60)}')
        seen.add(name)


def _check_host(host: snapshot.Host) -> None:
    _check_unique('nodes', [node.number for node in host.nodes or ()])
    _check_unique('devices', [device.address for device in host.devices])
    check_devices(host.devices)
    for node in host.nodes or ():
        _check_number(f'sizes of pages on node {node.number}', node.pages,
                      _MAX_PAGE_SIZES)
        _check_unique(f'sizes of pages on node {node.number}',
                      [pages.size for pages in node.pages])
    for device in host.devices:
        if device.kind not in _KINDS or device.status not in _STATUSES:
            raise codec.WrongError(
                f'device {device.address!r} is {device.kind!r} and '
                f'{device.status!r}, which no PCI device is')
    if any(len(kind) != 3 for kind in host.supported):
        raise codec.WrongError(
            'supported must have architecture, hypervisor and kind')
    if host.network is not None:
        for name, number in dataclasses.asdict(host.network).items():
            _check_load(f'network.{name}', number)
    _check_providers(host)


def check_devices(devices: Collection[snapshot.Device]) -> None:
    _check_number('devices', devices, MAX_DEVICES)
    _check_number('pools of devices', {
        (device.parent or device.address, device.vendor, device.product,
         device.kind, device.node, *sorted(device.tags.items()))
        for device in devices}, _MAX_POOLS)


def max_ports() -> int:
    return files.max_items() // _ITEMS_PER_PORT


def _check_number(what: str, values: Collection[ty.Any], most: int) -> None:
    if len(values) > most:
        raise codec.WrongError(
            f'{len(values)} {what}; no host has more than {most}')


def _check_load(what: str, number: int | None) -> None:
    if number is not None and not 0 <= number <= MAX_LOAD:
        raise codec.WrongError(
            f'{what} cannot be {number}, only 0 to {MAX_LOAD}')


def _check_providers(host: snapshot.Host) -> None:
    """Check that the providers are a tree with the host as its root."""
    if not host.providers:
        return
    if (host.providers[0].uuid != host.uuid
            or host.providers[0].parent is not None):
        raise codec.WrongError('its first resource provider is not its own')
    children: dict[str | None, list[str]] = {}
    for provider in host.providers:
        children.setdefault(provider.parent, []).append(provider.uuid)
    waiting = [host.uuid]
    while waiting:
        waiting.extend(children.pop(waiting.pop(), ()))
    for provider in host.providers[1:]:
        if provider.parent in children:
            raise codec.WrongError(
                f'resource provider {provider.uuid!r} is not under that of '
                'the host')


def _check_network(cloud: snapshot.Cloud) -> None:
    agents, services = cloud.network_agents or (), cloud.network_services
    _check_unique('network agents', [agent.id for agent in agents])
    _check_unique('network services', [service.id for service in services])
    _check_unique('networks', [network.id for network in cloud.networks or ()])
    for what, entries, allowed in (
            ('agent', agents, _AGENTS), ('service', services, _SERVICES)):
        for each in entries:
            if each.kind not in allowed:
                raise codec.WrongError(
                    f'the kind of a network {what} cannot be {each.kind!r}')
    for service in services:
        _check_load(f'ports of network service {service.id!r}', service.ports)
    for agent in agents:
        _check_unique(f'services of network agent {agent.id!r}', agent.serves)


def _check_options(cloud: snapshot.Cloud) -> None:
    ours = cloud.options.get('nfv_sched', {})
    for _group, options in conf.list_opts():
        for option in options:
            value = ours.get(option.name, option.default)
            if value is None and isinstance(option, cfg.StrOpt):
                continue
            if value != option.default and not _is_accepted(
                    option.type, value):
                raise codec.WrongError(
                    f'options.nfv_sched.{option.name} cannot be '
                    f'{extra_specs.shown(value)}')
    for name in _RATIOS:
        for key in (name, f'initial_{name}'):
            value = cloud.options.get('DEFAULT', {}).get(key)
            if not (value is None or isinstance(value, (int, float))
                    and 0 <= value <= codec.MAX_NUMBER):
                raise codec.WrongError(
                    f'options.DEFAULT.{key} cannot be '
                    f'{extra_specs.shown(value)}')


def _is_accepted(kind: ty.Any, value: ty.Any) -> bool:
    """Return whether an option accepts a value without converting it."""
    try:
        return kind(value) == value
    except (TypeError, ValueError, AttributeError, OverflowError):
        return False
