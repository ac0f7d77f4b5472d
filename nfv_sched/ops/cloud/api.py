# SPDX-License-Identifier: Apache-2.0
"""Read a cloud by the APIs of Nova, Placement and Neutron.

An account of the cloud is enough.  The result has flavors, servers, hosts with
their resource providers, and Neutron's agents with their services.  No API
shows NUMA nodes, CPUs, memory pages or PCI devices of hosts.  NUMA nodes of
servers, with the host CPUs that they are pinned to, take a request for each
server, so they are read only for the servers of chosen hosts.

Nothing is written.  Anything that cannot be read raises an error, as answers
from the rest would be wrong.  Only data that the API itself leaves out, and
single hosts for which Placement fails, are named in the result instead.
"""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
import dataclasses
import datetime
import json
import typing as ty
import urllib.parse

from keystoneauth1 import exceptions as ks_exceptions
from openstack import connection as sdk_connection
from openstack import exceptions as sdk_exceptions
from openstack import utils as sdk_utils
import os_resource_classes as orc

from nfv_sched.base import http_limits
from nfv_sched.base import strings
from nfv_sched.ledger import client as placement_client
from nfv_sched.ledger import neutron
from nfv_sched.ops.cloud import agents
from nfv_sched.ops.cloud import codec
from nfv_sched.ops.cloud import images
from nfv_sched.ops.cloud import providers as snapshot_providers
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.cloud import validation

#: Timeout of a request in seconds, unless the account's session sets one.
TIMEOUT = 60

# The first microversion that shows extra specs of flavors (Rocky).
# Hypervisors have UUIDs since 2.53, and CPUs, memory and disk until 2.87; from
# 2.88 on Nova asks each nova-compute for its uptime instead.
_MICROVERSION = '2.61'
# The last microversion that this module was written for.
_LAST_MICROVERSION = '2.100'
# First microversion that shows a field of servers -> name of it for people.
_SHOWN = (((2, 96), 'availability zones asked for'),
          ((2, 98), 'image properties'), ((2, 100), 'scheduler hints'))
# The first microversion with NUMA topologies of servers (Train).
_TOPOLOGY_MICROVERSION = '2.78'
# Policy rules of Nova, without their common prefix.
_TOPOLOGY_RULE = 'compute:server:topology:index'
_HOST_NODE_RULE = 'compute:server:topology:host:index'
# Nova returns fewer if [api] max_limit is less, with a link to the rest.
_PAGE = 1000
# Number of concurrent requests to Placement.
_THREADS = 4
_SOURCE = 'the API'  # of the cloud, in words

_PATHS: Mapping[str, str] = {
    'flavors': '/flavors/detail', 'servers': '/servers/detail',
    'hypervisors': '/os-hypervisors/detail', 'services': '/os-services',
    'aggregates': '/os-aggregates', 'server_groups': '/os-server-groups'}
# Status of a service in a cell that does not answer.
_UNKNOWN = 'UNKNOWN'
# Nova cannot use a compute node without a service.
_NO_SERVICE: Mapping[str, ty.Any] = {
    'status': 'disabled', 'state': 'down', 'disabled_reason': None,
    'zone': 'nova'}
# Resources that Nova returns as a whole, without limit and marker.
_WHOLE = ('services', 'aggregates')

_Missing = list[snapshot.Missing]
_Progress = Callable[[str, int, int], None]

_ERRORS = (ks_exceptions.ClientException, sdk_exceptions.SDKException,
           OSError)


class APIError(Exception):
    """Failure to read the API completely; the message has the reason."""


def read(
    connection: sdk_connection.Connection, parts: Collection[str],
    progress: _Progress = lambda what, finished, total: None,
    choose: snapshot.HostChoice | None = None,
) -> snapshot.Cloud:
    """Read parts of a cloud.

    :param parts: fields of the cloud to read: ``flavors``, ``servers``,
        ``hosts`` (with aggregates and resource providers), ``network_agents``
        (with services)
    :param progress: called with (name of what is read, number done, total)
    :param choose: only for ``hosts`` and ``servers``: reads all hosts, but
        only the servers of those that it returns.  These have their NUMA
        nodes, but neither CPU policies nor CPUs of emulator threads.
        Resource providers and server groups are not read
    :returns: the cloud.  Hosts have no NUMA nodes and no devices.  Servers
        have name, project and flavor only; if ``hosts`` are read, too, they
        have all fields that the API shows but NUMA nodes, and server groups
        are read
    :raises APIError: if any answer is missing, refused or malformed
    """
    timestamp = datetime.datetime.now(datetime.UTC).strftime(
        '%Y-%m-%dT%H:%M:%SZ')
    if connection.session.timeout is None:
        connection.session.timeout = TIMEOUT
    try:
        with http_limits.limited(connection.session):
            fields = (_read_parts(connection, parts, progress)
                      if choose is None
                      else _of_hosts(connection, choose, progress))
        # Apply the limits of a file: the tools rely on them.
        cloud = codec.decode(snapshot.Cloud, codec.encode(snapshot.Cloud(
            taken=timestamp, source=_SOURCE, **fields)))
        validation.check(cloud)
    except http_limits.MALFORMED as exc:
        raise APIError(f'the API cannot be read: malformed answer: '
                       f'{exc.__class__.__name__}: {exc}') from exc
    return cloud


def _read_parts(connection: sdk_connection.Connection, parts: Collection[str],
                progress: _Progress) -> dict[str, ty.Any]:
    """Return the fields of the cloud, before they are checked."""
    fields: dict[str, ty.Any] = {}
    if 'flavors' in parts:
        progress('flavors', 0, 1)
        fields['flavors'] = tuple(sorted(
            _read_all(connection, 'flavors', {'is_public': 'None'}, _flavor),
            key=lambda flavor: flavor.name))
        progress('flavors', len(fields['flavors']), len(fields['flavors']))
    if 'servers' in parts and 'hosts' not in parts:
        progress('servers', 0, 1)
        missing: _Missing = []
        _services(connection, _negotiate(connection), missing)
        fields['servers'] = tuple(sorted(
            _read_all(connection, 'servers', {'all_tenants': '1'}, _server),
            key=lambda server: server.uuid))
        progress('servers', len(fields['servers']), len(fields['servers']))
        fields['missing'] = tuple(missing)
    if 'network_agents' in parts:
        served = _agents(connection, progress)
        fields['network_agents'] = served.agents
        fields['network_services'] = served.services
    if 'hosts' in parts:
        fields.update(_with_hosts(connection, 'servers' in parts, progress))
    return fields


# Nova


def _read_all(connection: sdk_connection.Connection, resource: str,
              query: Mapping[str, str], parse: Callable[[Mapping], ty.Any],
              version: str = _MICROVERSION) -> list[ty.Any]:
    """Return all items of a resource of the compute API, each once.

    :param resource: key of ``_PATHS``
    :param query: parameters of the URL
    :param parse: converts an item
    :param version: microversion of the request
    """
    rows = _groups if resource == 'server_groups' else _rows
    try:
        return [parse(row)
                for row in rows(connection, resource, query, version)]
    # Must be first: an error for malformed JSON is an OSError, too.
    except http_limits.MALFORMED as exc:
        raise APIError(f'the compute API cannot be read: malformed '
                       f'{_noun(resource)}: {exc.__class__.__name__}: {exc}'
                       ) from exc
    except _ERRORS as exc:
        raise APIError(f'the compute API cannot be read: '
                       f'{http_limits.reason(exc)}') from exc


def _rows(connection: sdk_connection.Connection, resource: str,
          query: Mapping[str, str], version: str) -> Iterator[Mapping]:
    if resource in _WHOLE:
        yield from _items_in(
            _get(connection, resource, query, version), resource)
        return
    seen: set[str] = set()
    marker: dict[str, str] = {}
    while True:
        body = _get(connection, resource,
                    {**query, **marker, 'limit': str(_PAGE)}, version)
        rows = [row for row in _items_in(body, resource)
                if row['id'] not in seen]
        yield from rows
        if not rows:
            return
        # Nova omits the link of a page of hypervisors if it left out one
        # without a service.
        if resource != 'hypervisors' and not any(
                link['rel'] == 'next'
                for link in body.get(f'{resource}_links', ())):
            return
        seen.update(row['id'] for row in rows)
        marker['marker'] = rows[-1]['id']


def _groups(connection: sdk_connection.Connection, resource: str,
            query: Mapping[str, str], version: str) -> Iterator[Mapping]:
    """Yield the server groups, which Nova pages by offset, without links."""
    seen: set[str] = set()
    offset = 0
    while True:
        page = _items_in(_get(connection, resource, {
            **query, 'limit': str(_PAGE), 'offset': str(offset)},
            version), resource)
        rows = [row for row in page if row['id'] not in seen]
        if not rows:
            return
        yield from rows
        seen.update(row['id'] for row in rows)
        offset += len(page)


def _get(connection: sdk_connection.Connection, resource: str,
         query: Mapping[str, str], version: str) -> ty.Any:
    response = connection.compute.get(
        _PATHS[resource], microversion=version, params=query)
    if response.status_code != 200:
        raise APIError(_refusal(resource, version, response))
    return response.json()


def _items_in(body: Mapping, resource: str) -> list[Mapping]:
    if not isinstance(body[resource], list):
        raise TypeError('no list')
    return body[resource]


def _refusal(resource: str, version: str, response: ty.Any) -> str:
    """Return the message for an answer that is not a list."""
    message = (f'the compute API cannot be read: GET {_PATHS[resource]}: '
               f'{response.status_code} {response.reason}')
    if response.status_code == 403:
        return (f'{message}; the account needs a role that may list all '
                f'{_noun(resource)}')
    if response.status_code == 406:
        return f'{message}; microversion {version} is needed'
    return message


def _noun(resource: str) -> str:
    return resource.replace('_', ' ')


def _negotiate(connection: sdk_connection.Connection) -> str:
    """Return the newest microversion that Nova and this module support."""
    try:
        version = sdk_utils.maximum_supported_microversion(
            connection.compute, _LAST_MICROVERSION) or _MICROVERSION
    except (*http_limits.MALFORMED, *_ERRORS) as exc:
        raise APIError(f'the compute API cannot be read: '
                       f'{http_limits.reason(exc)}') from exc
    return max(version, _MICROVERSION, key=_numbers)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split('.')))


def _flavor(row: Mapping) -> snapshot.Flavor:
    if not isinstance(row['name'], str):
        raise TypeError(f'a flavor cannot be named {row["name"]!r}')
    return snapshot.Flavor(
        name=row['name'], id=row['id'],
        public=bool(row.get('os-flavor-access:is_public', True)),
        disabled=bool(row.get('OS-FLV-DISABLED:disabled')),
        ephemeral=row.get('OS-FLV-EXT-DATA:ephemeral') or 0, **_sizes(row))


def _server(row: Mapping) -> snapshot.Server:
    flavor = row['flavor']
    return snapshot.Server(
        uuid=row['id'], name=row.get('name') or '',
        project=row.get('tenant_id') or '', locked=bool(row.get('locked')),
        flavor=snapshot.Flavor(
            name=flavor['original_name'],
            ephemeral=flavor.get('ephemeral') or 0, **_sizes(flavor)))


def _sizes(row: Mapping) -> dict[str, ty.Any]:
    """Convert the fields that flavors and flavors of servers share."""
    if 'extra_specs' not in row:
        raise APIError('the compute API shows this account no extra specs of '
                       'flavors')
    return {'vcpus': int(row['vcpus']), 'memory': int(row['ram']),
            'disk': int(row['disk']),
            # Empty if there is none, before microversion 2.75.
            'swap': int(row.get('swap') or 0),
            'extra_specs': {key: str(value) for key, value in
                            row['extra_specs'].items()}}


# Hosts, and servers on them


def _aggregates_and_hosts(
    connection: sdk_connection.Connection, version: str, missing: _Missing,
    progress: _Progress,
) -> tuple[list[snapshot.Aggregate], list[snapshot.Host]]:
    progress('hosts', 0, 1)
    aggregates = [aggregate for _number, aggregate in sorted(
        _read_all(connection, 'aggregates', {}, _aggregate),
        key=lambda row: row[0])]
    hosts = _hosts(connection, aggregates, version, missing)
    progress('hosts', len(hosts), len(hosts))
    return aggregates, hosts


def _with_hosts(connection: sdk_connection.Connection, servers: bool,
                progress: _Progress) -> dict[str, ty.Any]:
    """Return the fields of the cloud for hosts and, if asked, servers."""
    version = _negotiate(connection)
    missing: _Missing = []
    fields: dict[str, ty.Any] = {}
    aggregates, hosts = _aggregates_and_hosts(
        connection, version, missing, progress)
    if servers:
        progress('servers', 0, 1)
        fields['groups'] = tuple(_read_all(
            connection, 'server_groups', {'all_projects': 'true'}, _group,
            version))
        fields['servers'] = _servers(
            connection, fields['groups'], version, missing)
        later = [what for since, what in _SHOWN
                 if _numbers(version) < since]
        if later and fields['servers']:
            missing.append(snapshot.Missing(
                kind=snapshot.MissingKind.SERVER_FIELDS,
                text=f'The compute API has microversion {version}, and does '
                     f'not show of servers: {", ".join(later)}'))
        progress('servers', len(fields['servers']), len(fields['servers']))
    placed = _places(connection, [host.uuid for host in hosts],
                     [each.uuid for each in aggregates if each.uuid],
                     progress)
    missing.extend(placed.missing())
    if servers:
        unread = {host.name for host in hosts if host.uuid in placed.failed}
        fields['servers'] = tuple(sorted(
            (dataclasses.replace(
                server, allocations=None if server.host in unread
                else placed.allocations.get(server.uuid, {}))
             for server in fields['servers']),
            key=lambda server: server.uuid))
        fields['consumers'] = placed.others(
            server.uuid for server in fields['servers'])
    return {**fields, 'missing': tuple(missing), 'traits': placed.traits,
            'resource_classes': placed.resource_classes,
            'aggregates': tuple(aggregates), 'hosts': tuple(sorted(
                (_add_providers(host, placed.providers.get(host.uuid, ()))
                 for host in hosts),
                key=lambda host: (host.name, host.hypervisor)))}


def _aggregate(row: Mapping) -> tuple[int, snapshot.Aggregate]:
    """Return (ID, aggregate), to sort by: Nova does not sort aggregates."""
    return int(row['id']), snapshot.Aggregate(
        name=row['name'], uuid=row.get('uuid') or '',
        metadata=row['metadata'], hosts=tuple(sorted(row['hosts'])))


def _services(
    connection: sdk_connection.Connection, version: str, missing: _Missing,
) -> tuple[dict[str, Mapping], set[str]]:
    """Return nova-compute services by host, and hosts of silent cells.

    :param version: microversion; since 2.69 Nova shows the services of cells
        that do not answer, with the status UNKNOWN
    """
    services = dict(_read_all(
        connection, 'services', {'binary': 'nova-compute'},
        lambda row: (row['host'], row), version))
    silent = {name for name, row in services.items()
              if row['status'] == _UNKNOWN}
    if silent:
        # Lists of servers lack the servers on these hosts.
        missing.append(snapshot.Missing(
            kind=snapshot.MissingKind.SILENT_HOSTS,
            hosts=tuple(sorted(silent))))
    return services, silent


def _hosts(connection: sdk_connection.Connection,
           aggregates: Iterable[snapshot.Aggregate], version: str,
           missing: _Missing) -> list[snapshot.Host]:
    """Return the hosts, without their resource providers.

    :param version: microversion for services
    """
    services, silent = _services(connection, version, missing)
    of_host: dict[str, list[str]] = {}
    for aggregate in aggregates:
        for name in aggregate.hosts:
            of_host.setdefault(name, []).append(aggregate.name)
    try:
        hosts = _read_all(connection, 'hypervisors', {}, lambda row: (
            None if row['service']['host'] in silent
            else _host(row, services, of_host)))
    except APIError as exc:
        if not silent:
            raise
        # If a cell does not answer, Nova may return no hypervisors at all,
        # without a reason.
        raise APIError(f'{exc}; cells do not answer, of '
                       f'{strings.count(len(silent), "host")}, such as that '
                       f'of {min(silent)}') from exc
    return [host for host in hosts if host is not None]


def _host(row: Mapping, services: Mapping[str, Mapping],
          aggregates: Mapping[str, list[str]]) -> snapshot.Host:
    name = row['service']['host']
    service = services.get(name, _NO_SERVICE)
    return snapshot.Host(
        name=name, hypervisor=row['hypervisor_hostname'] or name,
        uuid=row['id'], hypervisor_type=row['hypervisor_type'],
        hypervisor_version=row['hypervisor_version'],
        enabled=service['status'] == 'enabled',
        disabled_reason=service['disabled_reason'],
        up=service['state'] == 'up', zone=service['zone'],
        aggregates=tuple(aggregates.get(name, ())),
        cpu_info=json.dumps(row['cpu_info']) if row.get('cpu_info') else '',
        vcpus=row['vcpus'], vcpus_used=row['vcpus_used'],
        memory=row['memory_mb'], memory_used=row['memory_mb_used'],
        disk=row['local_gb'], disk_used=row['local_gb_used'],
        disk_available_least=row['disk_available_least'])


def _add_providers(host: snapshot.Host,
                   providers: tuple[snapshot.Provider, ...]) -> snapshot.Host:
    """Return a host with its resource providers and their ratios."""
    ratios = {name: inventory.ratio for provider in reversed(providers)
              for name, inventory in provider.inventories.items()}
    return dataclasses.replace(
        host, providers=providers, cpu_ratio=ratios.get(orc.VCPU),
        memory_ratio=ratios.get(orc.MEMORY_MB),
        disk_ratio=ratios.get(orc.DISK_GB))


def _group(row: Mapping) -> snapshot.Group:
    # Before microversion 2.64 there are a list of policies and no rules.
    policy = row['policy'] if 'policy' in row else next(
        iter(row['policies']), '')
    return snapshot.Group(
        uuid=row['id'], name=row['name'] or '', policy=policy or '',
        rules=_texts(row.get('rules') or {}),
        members=tuple(sorted(row['members'])))


def _texts(values: Mapping) -> dict[str, str]:
    return {key: value if isinstance(value, str) else json.dumps(value)
            for key, value in values.items() if value is not None}


def _servers(connection: sdk_connection.Connection,
             groups: Iterable[snapshot.Group], version: str,
             missing: _Missing, host: str | None = None,
             ) -> list[snapshot.Server]:
    """Return the servers with their hosts, without allocations.

    :param host: name of their host; None for all servers
    """
    group_of = {member: group.uuid for group in groups
                for member in group.members}
    hidden: list[str] = []

    def parse(row: Mapping) -> snapshot.Server | None:
        # No flavor: the cell does not answer, or Nova has lost the server.
        if not row.get('flavor'):
            hidden.append(row['id'])
            return None
        return _placed_server(row, group_of.get(row['id']))

    query = {'all_tenants': '1'} if host is None else {
        'all_tenants': '1', 'host': host}
    # Nova ignores the host if the account may not use this filter.
    servers = [server for server in _read_all(
        connection, 'servers', query, parse, version)
        if server is not None and host in (None, server.host)]
    if hidden:
        missing.append(snapshot.Missing(
            kind=snapshot.MissingKind.SERVERS, uuids=tuple(sorted(hidden))))
    return servers


def _placed_server(row: Mapping, group: str | None) -> snapshot.Server:
    if 'OS-EXT-SRV-ATTR:host' not in row:
        raise APIError('the compute API shows this account no hosts of '
                       'servers; it needs the role admin')
    state = row['OS-EXT-STS:vm_state']
    fault = row.get('fault') if state == 'error' else None
    # Before the API shows hints, that of a member of a group is known anyway.
    hints = row.get('scheduler_hints', {'group': group} if group else {})
    return dataclasses.replace(
        _server(row), host=row['OS-EXT-SRV-ATTR:host'], state=state or '',
        task=row['OS-EXT-STS:task_state'],
        fault=fault['message'] if fault else None, created=row['created'],
        # The image of a server that was booted from a volume is ''.
        image=images.properties(_texts(
            (row.get('image') or {}).get('properties') or {})),
        group=group, zone=row.get('pinned_availability_zone'),
        hints={name: tuple(map(str, values if isinstance(values, list)
                               else [values]))
               for name, values in (hints or {}).items()})


# NUMA topologies


class _TopologyUnreadError(Exception):
    """A NUMA topology that this account is not shown; with the reason."""


def _of_hosts(
    connection: sdk_connection.Connection, choose: snapshot.HostChoice,
    progress: _Progress,
) -> dict[str, ty.Any]:
    """Return the fields of the cloud with the servers of some hosts.

    All hosts are there, without resource providers.
    """
    version = _negotiate(connection)
    missing: _Missing = []
    aggregates, hosts = _aggregates_and_hosts(
        connection, version, missing, progress)
    chosen = choose(snapshot.Cloud(
        taken='', hosts=tuple(hosts), missing=tuple(missing)))
    names = {host.name for host in chosen}
    servers = [server for name in sorted(names) for server in _servers(
        connection, (), version, missing, name)]
    computes = [host.uuid for host in hosts if host.name in names]
    other_computes = frozenset(computes) - {host.uuid for host in chosen}
    if other_computes:
        # A service can have several compute nodes, as with Ironic; only
        # allocations show on which of them a server is.
        placed = _places(connection, computes, (), progress)
        missing.extend(placed.missing())
        servers = [dataclasses.replace(
            server, allocations=None if placed.failed
            else placed.allocations.get(server.uuid, {}))
            for server in servers]
    servers = _with_topologies(connection, [
        server for server in servers
        if other_computes.isdisjoint(server.allocations or ())],
        version, missing, progress)
    if chosen:
        missing.append(snapshot.Missing(
            kind=snapshot.MissingKind.HOST_RESOURCES,
            uuids=tuple([host.uuid for host in chosen])))
    return {'missing': tuple(missing), 'aggregates': tuple(aggregates),
            'servers': tuple(sorted(servers, key=lambda each: each.uuid)),
            'hosts': tuple(sorted(
                hosts, key=lambda host: (host.name, host.hypervisor)))}


def _with_topologies(
    connection: sdk_connection.Connection, servers: list[snapshot.Server],
    version: str, missing: _Missing, progress: _Progress,
) -> list[snapshot.Server]:
    """Return servers with their NUMA nodes.

    :param version: the newest microversion of the API
    :param missing: gets what is not shown, and the malformed topologies,
        whose servers are left out
    """
    complete: list[snapshot.Server] = []
    unread: dict[str, list[str]] = {}
    for count, server in enumerate(servers):
        progress('NUMA topologies', count, len(servers))
        try:
            server = dataclasses.replace(
                server, nodes=_topology(connection, server.uuid, version))
            # Apply the limits of a file to each of them alone.
            codec.decode(snapshot.Server, codec.encode(server))
        except _TopologyUnreadError as exc:
            unread.setdefault(str(exc), []).append(server.uuid)
        except http_limits.MALFORMED as exc:
            missing.append(snapshot.Missing(
                kind=snapshot.MissingKind.SERVER, uuids=(server.uuid,),
                text=f'{exc.__class__.__name__}: {exc}'))
            continue
        complete.append(server)
    progress('NUMA topologies', len(servers), len(servers))
    missing.extend([snapshot.Missing(
        kind=snapshot.MissingKind.TOPOLOGIES, uuids=tuple(uuids), text=reason)
        for reason, uuids in unread.items()])
    return complete


def _topology(connection: sdk_connection.Connection, uuid: str, version: str,
              ) -> tuple[snapshot.GuestNode, ...] | None:
    """Return the NUMA nodes of a server; None if it has no NUMA topology.

    :raises _TopologyUnreadError: if the API does not show it
    """
    if _numbers(version) < _numbers(_TOPOLOGY_MICROVERSION):
        raise _TopologyUnreadError(
            f'the compute API has microversion {version}, and '
            f'{_TOPOLOGY_MICROVERSION} is needed')
    path = f'/servers/{urllib.parse.quote(uuid, safe="")}/topology'
    try:
        response = connection.compute.get(
            path, microversion=_TOPOLOGY_MICROVERSION)
        status = f'{response.status_code} {response.reason}'
        if response.status_code == 403:
            raise _TopologyUnreadError(
                f'{status}; the account needs the rule {_TOPOLOGY_RULE}')
        if response.status_code == 404:
            raise _TopologyUnreadError(
                f'{status}; deleted meanwhile, perhaps')
        if response.status_code != 200:
            raise APIError(
                f'the compute API cannot be read: GET {path}: {status}')
        topology = response.json()
    # JSON that is malformed is an OSError, too.
    except http_limits.MALFORMED:
        raise
    except _ERRORS as exc:
        raise APIError(f'the compute API cannot be read: '
                       f'{http_limits.reason(exc)}') from exc
    nodes = topology['nodes']
    if not isinstance(nodes, list):
        raise TypeError('nodes is not a list')
    if any('host_node' not in node for node in nodes):
        raise _TopologyUnreadError(
            f'no host NUMA nodes; the account needs the rule '
            f'{_HOST_NODE_RULE}')
    return tuple([_guest_node(node, topology['pagesize_kb'])
                  for node in nodes]) or None


def _guest_node(node: Mapping, page_size: int | None) -> snapshot.GuestNode:
    pins = {int(vcpu): cpu for vcpu, cpu in node['cpu_pinning'].items()}
    vcpus = frozenset(node['vcpu_set'])
    if not pins.keys() <= vcpus:
        raise ValueError('a pinned vCPU that is not in vcpu_set')
    return snapshot.GuestNode(
        host_node=node['host_node'], shared=vcpus - pins.keys(),
        dedicated=frozenset(pins), pins=pins, memory=node['memory_mb'],
        page_size=page_size)


# Placement


def _places(connection: sdk_connection.Connection, computes: list[str],
            aggregates: Collection[str],
            progress: _Progress) -> snapshot_providers.Places:
    try:
        return snapshot_providers.read(
            placement_client.Client(adapter=connection.placement), _THREADS,
            computes, aggregates, progress)
    except (placement_client.PlacementError, *http_limits.MALFORMED,
            *_ERRORS) as exc:
        message = 'the Placement API cannot be read: ' + ' '.join(
            str(exc).split())
        if getattr(exc, 'status', None) == 403:
            message += ('; the account needs a role that may list resource '
                        'providers, such as admin')
        raise APIError(message) from exc


# Neutron


def _agents(connection: sdk_connection.Connection,
            progress: _Progress) -> agents.NetworkAgents:
    try:
        network_agents = agents.read(
            neutron.Reader(network=connection.network), progress)
    except (neutron.NeutronError, *http_limits.MALFORMED, *_ERRORS) as exc:
        raise APIError(f'the network API cannot be read: {exc}') from exc
    if not network_agents.agents:
        # Neutron returns an empty list, not an error, to other accounts.
        raise APIError(
            'the network API shows this account no agents for DHCP or '
            'routers; there are none, or the account needs the role admin')
    return network_agents
