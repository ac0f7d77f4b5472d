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

from collections.abc import Mapping
import dataclasses

from keystoneauth1 import exceptions as ks_exceptions
from keystoneauth1 import session as ks_session

from nfv_sched.network import ledger

_IN_USE = ('placement.resource_provider.inuse', 'placement.inventory.inuse')
_NAME_LENGTH = 200
_SUFFIX = '_nfv_ledger'


class PlacementError(ledger.PlacementError):
    """Placement did not do what was asked, for one provider."""


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


class Client:
    """A connection to Placement; several threads may use it.

    :param conf: configuration object with ``[placement]``
    :param threads: how many do
    :raises UnavailableError: if there is no way to Placement
    """

    def __init__(self, conf, threads: int = 1):
        try:
            self._adapter = ledger.placement_client(conf)
        except ledger.PlacementError as exc:
            raise UnavailableError(str(exc)) from exc
        session = self._adapter.session
        for scheme in ('http://', 'https://'):
            session.session.mount(scheme, ks_session.TCPKeepAliveAdapter(
                pool_connections=1, pool_maxsize=threads))

    def close(self) -> None:
        """Close the connections that are kept open."""
        self._adapter.session.session.close()

    def define(self) -> None:
        """Make the resource classes and the trait known to Placement."""
        for path in (f'/resource_classes/{ledger.PORTS}',
                     f'/resource_classes/{ledger.RULES}',
                     f'/traits/{ledger.TRAIT}'):
            self._request('PUT', path)

    def providers(self) -> list[Provider]:
        """All providers of the ledger."""
        path = f'/resource_providers?required={ledger.TRAIT}'
        try:
            answer = self._request('GET', path)
        except PlacementError as exc:
            # 400 if nobody has created the trait, hence no provider, yet.
            if getattr(exc, 'status', None) == 400 and (
                    ledger.TRAIT in str(exc)):
                return []
            raise
        # Whoever else uses the trait has to look after it.
        return [
            Provider(found['uuid'], found['name'],
                     found['parent_provider_uuid'], found['generation'])
            for found in answer['resource_providers']
            if found['parent_provider_uuid'] and found['uuid'] ==
            ledger.provider_uuid(found['parent_provider_uuid'])]

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
        try:
            self._request('GET', f'/resource_providers/{uuid}')
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
    exc.status = status
    return exc
