# SPDX-License-Identifier: Apache-2.0
"""Check a snapshot for contradictions and impossible values.

A file may have been edited.  :mod:`nfv_sched.ops.cloud.codec` checks the
types of fields; this module checks everything else that the tools rely on.
"""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
import dataclasses
import typing as ty

from oslo_config import cfg

from nfv_sched.base import conf
from nfv_sched.base import extra_specs
from nfv_sched.base import files
from nfv_sched.ops.cloud import codec
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
    """Check a snapshot.

    :raises WrongError: if it has contradictions or impossible values
    :raises FileLimitError: if it has too many ports, DHCP servers and routers
    """
    _check_unique('hosts', [host.uuid for host in cloud.hosts])
    _check_unique('servers', [server.uuid for server in cloud.servers])
    _check_unique('groups', [group.uuid for group in cloud.groups])
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
    _check_loads(cloud)
    _check_options(cloud)


# A check for names, and what to tell people that a name must be.
_Rule = tuple[Callable[[str], bool], str]
_UUID: _Rule = (names.is_uuid, names.UUID)
_HOST: _Rule = (names.is_host, names.HOST)
_PRINTABLE: _Rule = (names.is_printable, names.PRINTABLE)


def check_names(cloud: snapshot.Cloud) -> None:
    """Check the names and IDs of a file that appear in printed commands.

    Names of servers, networks and routers may be anything: no command
    contains them.

    :raises WrongError: if a name or ID is invalid
    """
    for path, rule, texts in _names(cloud):
        for text in texts:
            if text is not None and not rule[0](text):
                error = codec.WrongError(
                    f'{rule[1]}, not {extra_specs.shown(text)}')
                error.path = path
                raise error


def _names(cloud: snapshot.Cloud) -> Iterator[
        tuple[list[str | int], _Rule, Iterable[str | None]]]:
    """Yield (path, rule, names or IDs) of all names and IDs to check."""
    for number, host in enumerate(cloud.hosts):
        yield ['hosts', number, 'uuid'], _UUID, (host.uuid,)
        yield ['hosts', number, 'name'], _HOST, (host.name,)
        yield ['hosts', number, 'hypervisor'], _PRINTABLE, (host.hypervisor,)
        yield ['hosts', number, 'cell'], _PRINTABLE, (host.cell,)
        yield ['hosts', number, 'zone'], _PRINTABLE, (host.zone,)
        yield ['hosts', number, 'aggregates'], _PRINTABLE, host.aggregates
        for index, provider in enumerate(host.providers):
            yield (['hosts', number, 'providers', index], _UUID,
                   (provider.uuid, provider.parent))
    for number, server in enumerate(cloud.servers):
        yield ['servers', number, 'uuid'], _UUID, (server.uuid,)
        yield ['servers', number, 'group'], _UUID, (server.group,)
        yield ['servers', number, 'host'], _HOST, (server.host,)
        yield ['servers', number, 'cell'], _PRINTABLE, (server.cell,)
        yield ['servers', number, 'zone'], _PRINTABLE, (server.zone,)
        yield (['servers', number, 'flavor', 'name'], _PRINTABLE,
               (server.flavor.name,))
    for number, flavor in enumerate(cloud.flavors):
        yield ['flavors', number], _PRINTABLE, (flavor.name, flavor.id)
    for number, aggregate in enumerate(cloud.aggregates):
        yield ['aggregates', number, 'name'], _PRINTABLE, (aggregate.name,)
        yield ['aggregates', number, 'hosts'], _HOST, aggregate.hosts
    for number, group in enumerate(cloud.groups):
        yield ['groups', number, 'uuid'], _UUID, (group.uuid,)
        yield ['groups', number, 'members'], _UUID, group.members
    for number, move in enumerate(cloud.moves or ()):
        yield ['moves', number], _UUID, (move.uuid, move.server)
        yield ['moves', number], _HOST, (move.source, move.target)
    for number, agent in enumerate(cloud.network_agents or ()):
        # The ID of an OVN gateway is the name of its chassis.  OVN places
        # the routers itself.
        yield (['network_agents', number, 'id'],
               _HOST if agent.kind == snapshot.OVN else _UUID, (agent.id,))
        yield ['network_agents', number, 'host'], _HOST, (agent.host,)
        yield ['network_agents', number, 'serves'], _UUID, agent.serves
    for number, service in enumerate(cloud.network_services):
        yield ['network_services', number, 'id'], _UUID, (service.id,)


def _check_unique(what: str, names: Iterable[ty.Any]) -> None:
    seen = set()
    for name in names:
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
        for field in dataclasses.fields(host.network):
            _check_load(f'network.{field.name}',
                        getattr(host.network, field.name))
    _check_providers(host)


def check_devices(devices: Collection[snapshot.Device]) -> None:
    """Check that a host does not have too many devices, or pools of them."""
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


def _check_loads(cloud: snapshot.Cloud) -> None:
    """Check that the simulator can make all ports of all hosts."""
    most = max_ports()
    if sum(getattr(host.network, field.name) or 0
           for host in cloud.hosts if host.network is not None
           for field in dataclasses.fields(host.network)
           if field.name != 'security_rules') > most:
        raise files.beyond(f'{most} ports, DHCP servers and routers')


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
    under_host: set[str] = set()
    waiting = [host.uuid]
    while waiting:
        uuid = waiting.pop()
        under_host.add(uuid)
        waiting.extend(children.get(uuid, ()))
    for provider in host.providers:
        if provider.uuid not in under_host:
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
    """Check the options that the tools themselves use."""
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
