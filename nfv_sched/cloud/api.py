#    Licensed under the Apache License, Version 2.0 (the "License"); you may
#    not use this file except in compliance with the License. You may obtain
#    a copy of the License at
#
#         http://www.apache.org/licenses/LICENSE-2.0
#
#    Unless required by applicable law or agreed to in writing, software
#    distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
#    WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
#    License for the specific language governing permissions and limitations
#    under the License.
"""Read a cloud by its API, with an account of it and nothing else.

Flavors, servers as far as their flavors, and what the agents of Neutron serve:
no API shows NUMA nodes, pinned CPUs, pages or devices.  Nothing is written.
What cannot be read is an error: what is left would be no answer.
"""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterator
from collections.abc import Mapping
import datetime
import typing as ty

from keystoneauth1 import exceptions as ks_exceptions
from openstack import connection as sdk_connection
from openstack import exceptions as sdk_exceptions

from nfv_sched.cloud import agents
from nfv_sched.cloud import snapshot
from nfv_sched.network import neutron

#: Seconds that a request may take, if the account says nothing else.
TIMEOUT = 60

# The first one at which flavors come with extra specs (Rocky).
_MICROVERSION = '2.61'
# Nova gives fewer if [api] max_limit is less, with a link to the rest.
_PAGE = 1000

_ERRORS = (ks_exceptions.ClientException, sdk_exceptions.SDKException,
           OSError)
# What an answer raises that is not as Nova writes it.
_MALFORMED = (AttributeError, KeyError, TypeError, ValueError)


class APIError(Exception):
    """The API cannot be read, or not completely; says why."""


def read(
    connection: sdk_connection.Connection, parts: Collection[str],
    progress: Callable[[str, int, int], None] = lambda what, done, total: None,
) -> snapshot.Cloud:
    """Read parts of a cloud.

    :param connection: with an account of the cloud
    :param parts: names of its fields: ``flavors``, ``servers``,
        ``network_agents`` (with what these serve)
    :param progress: called with what is read, how much is done, and how much
        there is
    :returns: the cloud; servers have a name and a flavor, and no host
    :raises APIError: if any answer is missing, refused or malformed
    """
    taken = datetime.datetime.now(datetime.UTC).strftime('%Y-%m-%dT%H:%M:%SZ')
    if connection.session.timeout is None:
        connection.session.timeout = TIMEOUT
    found: dict[str, ty.Any] = {}
    if 'flavors' in parts:
        progress('flavors', 0, 1)
        found['flavors'] = tuple(sorted(
            _all(connection, 'flavors', {'is_public': 'None'}, _flavor),
            key=lambda flavor: flavor.name))
    if 'servers' in parts:
        progress('servers', 0, 1)
        found['servers'] = tuple(sorted(
            _all(connection, 'servers', {'all_tenants': '1'}, _server),
            key=lambda server: server.uuid))
    if 'network_agents' in parts:
        served = _agents(connection, progress)
        found['network_agents'] = served.agents
        found['network_services'] = served.services
    return snapshot.Cloud(taken=taken, source='the API', **found)


# Nova


def _all(connection: sdk_connection.Connection, resource: str,
         query: Mapping[str, str], parse: Callable[[Mapping], ty.Any],
         ) -> list[ty.Any]:
    """All items of a resource of the compute API, each once.

    :param resource: ``flavors`` or ``servers``
    :param query: what to ask for
    :param parse: makes a value of an item
    """
    try:
        return [parse(row) for row in _rows(connection, resource, query)]
    # First: what is no JSON is an OSError, too.
    except _MALFORMED as exc:
        raise APIError(f'the compute API cannot be read: malformed {resource}'
                       f': {exc.__class__.__name__}: {exc}') from exc
    except _ERRORS as exc:
        raise APIError(f'the compute API cannot be read: {exc}') from exc


def _rows(connection: sdk_connection.Connection, resource: str,
          query: Mapping[str, str]) -> Iterator[Mapping]:
    seen: set[str] = set()
    marker: dict[str, str] = {}
    while True:
        response = connection.compute.get(
            f'/{resource}/detail', microversion=_MICROVERSION,
            params={**query, **marker, 'limit': str(_PAGE)})
        if response.status_code != 200:
            raise APIError(_refusal(resource, response))
        body = response.json()
        rows = [row for row in body[resource] if row['id'] not in seen]
        yield from rows
        if not rows or not any(link['rel'] == 'next' for link in body.get(
                f'{resource}_links', ())):
            return
        seen.update(row['id'] for row in rows)
        marker['marker'] = rows[-1]['id']


def _refusal(resource: str, response: ty.Any) -> str:
    """Why the compute API answers otherwise than with a list."""
    told = (f'the compute API cannot be read: GET /{resource}/detail: '
            f'{response.status_code} {response.reason}')
    if response.status_code == 403:
        return f'{told}; the account needs a role that may list all {resource}'
    if response.status_code == 406:
        return f'{told}; microversion {_MICROVERSION} is needed'
    return told


def _flavor(row: Mapping) -> snapshot.Flavor:
    return snapshot.Flavor(
        name=row['name'], id=row['id'],
        public=bool(row.get('os-flavor-access:is_public', True)),
        disabled=bool(row.get('OS-FLV-DISABLED:disabled')),
        ephemeral=row.get('OS-FLV-EXT-DATA:ephemeral') or 0, **_sizes(row))


def _server(row: Mapping) -> snapshot.Server:
    flavor = row['flavor']
    return snapshot.Server(
        uuid=row['id'], name=row.get('name') or '',
        project=row.get('tenant_id') or '', flavor=snapshot.Flavor(
            name=flavor['original_name'],
            ephemeral=flavor.get('ephemeral') or 0, **_sizes(flavor)))


def _sizes(row: Mapping) -> dict[str, ty.Any]:
    """What is named alike in a flavor, and in that of a server."""
    if 'extra_specs' not in row:
        raise APIError('the compute API shows this account no extra specs of '
                       'flavors')
    return {'vcpus': int(row['vcpus']), 'memory': int(row['ram']),
            'disk': int(row['disk']),
            # Empty if there is none, before microversion 2.75.
            'swap': int(row.get('swap') or 0),
            'extra_specs': {key: str(value) for key, value in
                            row['extra_specs'].items()}}


# Neutron


def _agents(connection: sdk_connection.Connection,
            progress: Callable[[str, int, int], None]) -> agents.Found:
    try:
        found = agents.read(
            neutron.Reader(network=connection.network), progress)
    except (neutron.NeutronError, *_ERRORS) as exc:
        raise APIError(f'the network API cannot be read: {exc}') from exc
    if not found.agents:
        # To other accounts it shows none, and says nothing of it.
        raise APIError(
            'the network API shows this account no agents for DHCP or '
            'routers; there are none, or the account needs the role admin')
    return found
