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
"""The ledger's resource providers, through Placement's API.

Reads and writes what it is told; what belongs there is another module's job.
Every write is guarded by the generation that was read before, or does nothing
when it is repeated, so that several writers do not undo each other's work.
"""

from collections.abc import Callable
from collections.abc import Mapping
import dataclasses
import operator
import typing as ty

from keystoneauth1 import adapter as ks_adapter
from keystoneauth1 import exceptions as ks_exceptions
from keystoneauth1 import loading as ks_loading
from keystoneauth1 import session as ks_session

from nfv_sched.network import ledger

_GROUP = 'placement'  # section of nova.conf
_MICROVERSION = '1.38'
_TIMEOUT = 30.0  # seconds, unless [placement] timeout says otherwise
_IN_USE = ('placement.resource_provider.inuse', 'placement.inventory.inuse')
_NAME_LENGTH = 200
_SUFFIX = '_nfv_ledger'

Found = ty.TypeVar('Found')


class PlacementError(Exception):
    """Placement did not do what was asked.

    :ivar status: HTTP status of an answer that is none of success, else None
    :ivar detail: what that answer says
    """

    status: int | None = None
    detail: str = ''


class UnavailableError(PlacementError):
    """Placement does not answer, or not to this user."""


class NotFoundError(PlacementError):
    """The provider is not there."""


class ConflictError(PlacementError):
    """Somebody else has changed the provider meanwhile."""


class InUseError(PlacementError):
    """There are allocations from the provider."""


class NoParentError(PlacementError):
    """The compute node has no provider yet."""


@dataclasses.dataclass(frozen=True, slots=True)
class Provider:
    """A provider of the ledger.

    :ivar uuid: UUID
    :ivar name: name
    :ivar compute: UUID of the compute node that it belongs to
    :ivar generation: number that grows with every change but the removal of
        allocations
    """

    uuid: str
    name: str
    compute: str
    generation: int


def name_of(hypervisor: str, uuid: str) -> str:
    """Name of a provider.

    :param hypervisor: name of the compute node
    :param uuid: UUID of the provider
    """
    if len(hypervisor) + len(_SUFFIX) > _NAME_LENGTH:
        hypervisor = f'{hypervisor[:_NAME_LENGTH - len(_SUFFIX) - 9]}_' \
                     f'{uuid[:8]}'
    return hypervisor + _SUFFIX


_DEFINITIONS = (f'/resource_classes/{ledger.PORTS}',
                f'/resource_classes/{ledger.RULES}',
                f'/traits/{ledger.TRAIT}')


class Client:
    """A connection to Placement; several threads may use it.

    :param conf: configuration object with ``[placement]``
    :param threads: how many do
    :raises UnavailableError: if there is no way to Placement
    """

    def __init__(self, conf, threads: int = 1):
        self._adapter = _connect(conf)
        session = self._adapter.session
        for scheme in ('http://', 'https://'):
            session.session.mount(scheme, ks_session.TCPKeepAliveAdapter(
                pool_connections=1, pool_maxsize=threads))

    def close(self) -> None:
        """Close the connections that are kept open."""
        self._adapter.session.session.close()

    def define(self) -> None:
        """Make the resource classes and the trait known to Placement."""
        for path in _DEFINITIONS:
            self._request('PUT', path)

    def undefined(self) -> list[str]:
        """Resource classes and trait that Placement does not know yet."""
        return [path.rpartition('/')[2] for path in _DEFINITIONS
                if not self._found(path)]

    def providers(self) -> list[Provider]:
        """All providers of the ledger."""
        # Whoever else uses the trait has to look after it.
        return [
            provider for provider in self._find(_provider)
            if provider.compute and (
                provider.uuid == ledger.provider_uuid(provider.compute))]

    def uuids(
        self, resource_class: str | None = None, amount: int = 0,
    ) -> frozenset[str]:
        """UUIDs of all providers of the ledger, or of those with room.

        Those are among them that somebody else has given the trait.

        :param resource_class: what there must be room for, ``ledger.PORTS``
            or ``ledger.RULES``; None for all providers
        :param amount: how much room, more than 0
        """
        return frozenset(self._find(
            operator.itemgetter('uuid'), resource_class, amount))

    def _find(
        self, read: Callable[[dict], Found],
        resource_class: str | None = None, amount: int = 0,
    ) -> list[Found]:
        """Find providers by the trait.

        :param read: makes of what Placement tells of one what is wanted
        :param resource_class: see :meth:`uuids`
        :param amount: see :meth:`uuids`
        """
        path = f'/resource_providers?required={ledger.TRAIT}'
        names = [ledger.TRAIT]
        if resource_class is not None:
            path += f'&resources={resource_class}:{amount}'
            names.append(resource_class)
        try:
            answer = self._request('GET', path)
            return [read(found) for found in answer['resource_providers']]
        except PlacementError as exc:
            # Nobody has created the trait or the class, hence no provider
            # that has it, yet.
            if exc.status == 400 and any(
                    name in exc.detail for name in names):
                return []
            raise
        except (KeyError, TypeError) as exc:
            raise PlacementError(f'GET {path}: the answer is malformed') from (
                exc)

    def create(self, compute: str, hypervisor: str) -> int | None:
        """Create the provider of a compute node.

        It is not one of the ledger before :meth:`mark`.

        :param compute: UUID of the compute node
        :param hypervisor: name of the compute node
        :returns: its generation; None if it was there already, perhaps with
            inventories and allocations
        :raises NoParentError: if the compute node has no provider yet
        """
        uuid = ledger.provider_uuid(compute)
        try:
            return self._request('POST', '/resource_providers', {
                'uuid': uuid, 'name': name_of(hypervisor, uuid),
                'parent_provider_uuid': compute})['generation']
        except UnavailableError:
            raise
        except ConflictError:
            if not self.exists(uuid):
                raise  # it is the name that is there already
            return None
        except PlacementError as exc:
            if self.exists(compute):
                raise
            raise NoParentError(
                'the compute node has no resource provider') from exc

    def exists(self, uuid: str) -> bool:
        """Whether there is a provider, be it of the ledger or not.

        :param uuid: of the provider
        """
        return self._found(f'/resource_providers/{uuid}')

    def _found(self, path: str) -> bool:
        try:
            self._request('GET', path)
        except NotFoundError:
            return False
        return True

    def mark(self, uuid: str, generation: int) -> int:
        """Make a provider one of the ledger.

        To be done last: whoever finds a provider by its trait finds the
        inventories, too.

        :param uuid: of the provider
        :param generation: when it was read
        :returns: the generation from now on
        :raises ConflictError: if it is not of that generation any more
        """
        return self._request('PUT', f'/resource_providers/{uuid}/traits', {
            'traits': [ledger.TRAIT],
            'resource_provider_generation': generation,
        })['resource_provider_generation']

    def inventories(self, uuid: str) -> tuple[int, dict[str, dict]]:
        """Generation and inventories, resource class -> inventory.

        :param uuid: of the provider
        """
        answer = self._request(
            'GET', f'/resource_providers/{uuid}/inventories')
        return answer['resource_provider_generation'], answer['inventories']

    def allocations(self, uuid: str) -> tuple[int, dict[str, dict[str, int]]]:
        """Generation and allocations, consumer -> resource class -> amount.

        :param uuid: of the provider
        """
        answer = self._request(
            'GET', f'/resource_providers/{uuid}/allocations')
        return answer['resource_provider_generation'], {
            consumer: allocation['resources']
            for consumer, allocation in answer['allocations'].items()}

    def replace(
        self, uuid: str, generation: int, inventories: Mapping[str, dict],
    ) -> int:
        """Write all inventories.

        :param uuid: of the provider
        :param generation: when it was read
        :param inventories: resource class -> inventory
        :returns: the generation from now on
        :raises ConflictError: if it is not of that generation any more
        """
        return self._request(
            'PUT', f'/resource_providers/{uuid}/inventories', {
                'resource_provider_generation': generation,
                'inventories': dict(inventories),
            })['resource_provider_generation']

    def remove(self, uuid: str) -> None:
        """Remove a provider that nobody has allocations from.

        :param uuid: of the provider
        :raises InUseError: if somebody has
        """
        try:
            self._request('DELETE', f'/resource_providers/{uuid}')
        except NotFoundError:
            pass

    def _request(self, method: str, path: str, body: dict | None = None):
        """The decoded answer to a request, None if it has no body."""
        try:
            response = self._adapter.request(
                path, method, json=body, raise_exc=False,
                headers={'Accept': 'application/json'})
        except (ks_exceptions.ClientException, OSError) as exc:
            raise UnavailableError(f'{method} {path}: {exc}') from exc
        if response.status_code in (200, 201, 204):
            if not response.content:
                return None
            try:
                return response.json()
            except ValueError as exc:
                raise PlacementError(
                    f'{method} {path}: the answer is no JSON') from exc
        raise _error(method, path, response)


def _connect(conf) -> ks_adapter.Adapter:
    """A way to Placement, by the section ``[placement]`` of nova.conf.

    :raises UnavailableError: if the section cannot be used
    """
    try:
        auth = ks_loading.load_auth_from_conf_options(conf, _GROUP)
        if auth is None:
            raise UnavailableError(
                'no connection to Placement: [placement] auth_type is not set')
        session = ks_loading.load_session_from_conf_options(
            conf, _GROUP, auth=auth)
        if session.timeout is None:
            session.timeout = _TIMEOUT
        return ks_loading.load_adapter_from_conf_options(
            conf, _GROUP, session=session, auth=auth,
            default_microversion=_MICROVERSION)
    except (ks_exceptions.ClientException, OSError) as exc:
        raise UnavailableError(f'no connection to Placement: {exc}') from exc


def _provider(found: dict) -> Provider:
    return Provider(found['uuid'], found['name'],
                    found['parent_provider_uuid'], found['generation'])


def _error(method: str, path: str, response) -> PlacementError:
    """What an answer with another status means."""
    status = response.status_code
    code, detail = '', response.reason
    try:
        error = response.json()['errors'][0]
        code = error.get('code', '')
        # Placement wraps its messages in lines.
        detail = ' '.join(error.get('detail', '').split()) or detail
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):
        pass
    kind = PlacementError
    if status == 404:
        kind = NotFoundError
    elif status in (401, 403, 429, 502, 503, 504):
        kind = UnavailableError
    elif status == 409:
        # Others than these: two have created the same at the same moment.
        kind = InUseError if code in _IN_USE else ConflictError
    exc = kind(f'{method} {path}: {status} {detail}')
    exc.status, exc.detail = status, detail
    return exc
