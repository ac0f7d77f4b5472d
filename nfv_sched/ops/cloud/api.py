# SPDX-License-Identifier: Apache-2.0
"""Read flavors, servers and agents by the APIs of Nova and Neutron.

An account of the cloud is enough.  Hosts are not read: no API shows their NUMA
nodes, CPUs, memory pages and PCI devices.

Nothing is written.  Anything that cannot be read raises an error, as answers
from the rest would be wrong.  Only what the API itself leaves out, the servers
of cells that do not answer, is named in the result instead.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
import datetime
import operator
import typing as ty

from keystoneauth1 import exceptions as ks_exceptions
from openstack import connection as sdk_connection
from openstack import exceptions as sdk_exceptions
from openstack import utils as sdk_utils

from nfv_sched.base import http_limits
from nfv_sched.ledger import neutron
from nfv_sched.ops.cloud import agents
from nfv_sched.ops.cloud import codec
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.cloud import validation

# The first microversion that shows extra specs of flavors (Rocky).
_MICROVERSION = '2.61'
# The first that shows the services of cells that do not answer, with the
# status UNKNOWN (Stein).
_SERVICES_MICROVERSION = '2.69'
# Nova returns fewer if [api] max_limit is less, with a link to the rest.
_PAGE = 1000

_PATHS: Mapping[str, str] = {
    'flavors': '/flavors/detail', 'servers': '/servers/detail',
    'services': '/os-services'}

_ERRORS = (ks_exceptions.ClientException, sdk_exceptions.SDKException, OSError)


class APIError(Exception):
    """Failure to read the API completely; the message has the reason."""


def read(connection: sdk_connection.Connection, parts: Collection[str],
         progress: agents.Progress = lambda what, finished,
         total: None) -> snapshot.Cloud:
    """Read fields of a cloud; APIError unless all are read completely."""
    timestamp = datetime.datetime.now(datetime.UTC).strftime(
        '%Y-%m-%dT%H:%M:%SZ')
    try:
        with http_limits.limited(connection.session):
            fields = _read_parts(connection, parts, progress)
        # Apply the limits of a file: the tools rely on them.
        cloud = codec.decode(snapshot.Cloud, codec.encode(snapshot.Cloud(
            taken=timestamp, source='the API', **fields)))
        validation.check(cloud)
    except http_limits.MALFORMED as exc:
        raise APIError(f'the API cannot be read: malformed answer: '
                       f'{exc.__class__.__name__}: {exc}') from exc
    return cloud


def _read_parts(connection: sdk_connection.Connection, parts: Collection[str],
                progress: agents.Progress) -> dict[str, ty.Any]:
    fields: dict[str, ty.Any] = {}
    for resource, query, parse, key in (
            ('flavors', {'is_public': 'None'}, _flavor, 'name'),
            ('servers', {'all_tenants': '1'}, _server, 'uuid')):
        if resource in parts:
            progress(resource, 0, 1)
            if resource == 'servers':
                fields['missing'] = _silent_hosts(connection)
            rows = _read_all(connection, resource, query, parse)
            fields[resource] = tuple(sorted(
                rows, key=operator.attrgetter(key)))
            progress(resource, len(rows), len(rows))
    if 'network_agents' in parts:
        fields.update(_agents(connection, progress))
    return fields


def _read_all(connection: sdk_connection.Connection, resource: str,
              query: Mapping[str, str], parse: Callable[[Mapping], ty.Any],
              version: str = _MICROVERSION) -> list[ty.Any]:
    """Return all items of a resource, a key of ``_PATHS``, each once."""
    try:
        return [parse(row)
                for row in _rows(connection, resource, query, version)]
    # Must be first: an error for malformed JSON is an OSError, too.
    except http_limits.MALFORMED as exc:
        raise APIError(f'the compute API cannot be read: malformed '
                       f'{resource}: {exc.__class__.__name__}: {exc}'
                       ) from exc
    except _ERRORS as exc:
        raise APIError(f'the compute API cannot be read: '
                       f'{http_limits.reason(exc)}') from exc


def _rows(connection: sdk_connection.Connection, resource: str,
          query: Mapping[str, str], version: str) -> Iterator[Mapping]:
    if resource == 'services':  # which Nova returns as a whole
        yield from _get(connection, resource, query, version)[resource]
        return
    seen: set[str] = set()
    marker: dict[str, str] = {}
    while True:
        body = _get(connection, resource,
                    {**query, **marker, 'limit': str(_PAGE)}, version)
        rows = [row for row in body[resource] if row['id'] not in seen]
        yield from rows
        if not rows or not any(
                link['rel'] == 'next'
                for link in body.get(f'{resource}_links', ())):
            return
        seen.update(row['id'] for row in rows)
        marker['marker'] = rows[-1]['id']


def _get(connection: sdk_connection.Connection, resource: str,
         query: Mapping[str, str], version: str) -> ty.Any:
    response = connection.compute.get(
        _PATHS[resource], microversion=version, params=query)
    if response.status_code != 200:
        message = (f'the compute API cannot be read: GET {_PATHS[resource]}: '
                   f'{response.status_code} {response.reason}')
        if response.status_code == 403:
            message += ('; the account needs a role that may list all '
                        f'{resource}')
        if response.status_code == 406:
            message += f'; microversion {version} is needed'
        raise APIError(message)
    body = response.json()
    if not isinstance(body[resource], list):
        raise TypeError('no list')
    return body


def _silent_hosts(connection: sdk_connection.Connection,
                  ) -> tuple[snapshot.Missing, ...]:
    """Return what is missing of servers: those in cells that do not answer."""
    try:
        newest = sdk_utils.maximum_supported_microversion(
            connection.compute, _SERVICES_MICROVERSION)
    except (*http_limits.MALFORMED, *_ERRORS) as exc:
        raise APIError(f'the compute API cannot be read: '
                       f'{http_limits.reason(exc)}') from exc
    services = _read_all(
        connection, 'services', {'binary': 'nova-compute'},
        lambda row: (row['host'], row['status']), newest or _MICROVERSION)
    hosts = sorted({host for host, status in services if status == 'UNKNOWN'})
    return (snapshot.Missing(
        kind=snapshot.MissingKind.SILENT_HOSTS, hosts=tuple(hosts)),
    ) if hosts else ()


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
        project=row.get('tenant_id') or '',
        flavor=snapshot.Flavor(
            name=flavor['original_name'],
            ephemeral=flavor.get('ephemeral') or 0, **_sizes(flavor)))


def _sizes(row: Mapping) -> dict[str, ty.Any]:
    if 'extra_specs' not in row:
        raise APIError('the compute API shows this account no extra specs of '
                       'flavors')
    return {'vcpus': int(row['vcpus']), 'memory': int(row['ram']),
            'disk': int(row['disk']),
            # Empty if there is none, before microversion 2.75.
            'swap': int(row.get('swap') or 0),
            'extra_specs': {key: str(value) for key, value in
                            row['extra_specs'].items()}}


def _agents(connection: sdk_connection.Connection,
            progress: agents.Progress) -> dict[str, ty.Any]:
    try:
        fields = agents.read(
            neutron.Reader(network=connection.network), progress)
    except (neutron.NeutronError, *http_limits.MALFORMED, *_ERRORS) as exc:
        raise APIError(f'the network API cannot be read: {exc}') from exc
    if not fields['network_agents']:
        # Neutron returns an empty list, not an error, to other accounts.
        raise APIError(
            'the network API shows this account no agents for DHCP or '
            'routers; there are none, or the account needs the role admin')
    del fields['networks']  # only agents were asked for
    return fields
