# SPDX-License-Identifier: Apache-2.0
"""A client of Placement's API for the resource providers of the ledger.

Every write is guarded by the generation that was read before, or is
idempotent, so that several writers do not undo each other's work.
"""

from collections.abc import Callable, Iterable, Mapping
import functools
import typing as ty

from keystoneauth1 import adapter as ks_adapter
from keystoneauth1 import exceptions as ks_exceptions
from keystoneauth1 import loading as ks_loading

from nfv_sched.base import http_limits
from nfv_sched.base import strings
from nfv_sched.ledger import metrics
from nfv_sched.limits import names

_GROUP = 'placement'  # section of nova.conf
_MICROVERSION = '1.38'
# The last microversion in which PUT /allocations keeps the consumer type.
_UNTYPED = '1.37'
_TIMEOUT = 30.0  # seconds, unless [placement] timeout says otherwise
_IN_USE = ('placement.resource_provider.inuse', 'placement.inventory.inuse')
# Errors of connections and Keystone, and of URLs and version documents that
# are malformed.
_ERRORS = (ks_exceptions.ClientException, OSError, *http_limits.MALFORMED)
_NAME_LENGTH = 200
_SUFFIX = '_nfv_ledger'

Found = ty.TypeVar('Found')


class PlacementError(strings.MaskedError):
    """Placement did not do what was requested."""

    #: HTTP status of the answer, if it was an error; else None
    status: int | None = None
    code: str = ''  #: error code in the answer; may be empty
    detail: str = ''  #: message in the answer; may be empty


class UnavailableError(PlacementError):
    """Placement does not answer, is overloaded, or refuses this user."""


class MalformedError(PlacementError):
    """Placement's answer does not have the form that its API documents."""


class NotFoundError(PlacementError):
    """The provider, or another requested object, does not exist."""


class ConflictError(PlacementError):
    """Another client has changed the provider, or its capacity is exceeded."""


class InUseError(PlacementError):
    """The provider has allocations."""


class NoParentError(PlacementError):
    """The compute node does not have a resource provider yet."""


class ProviderRow(ty.NamedTuple):
    uuid: str
    name: str
    #: UUID of its parent, for one of the ledger its compute node; None for a
    #: root
    parent: str | None
    root: str  #: UUID of the root of its tree
    #: number that grows with every change, except when allocations are removed
    generation: int


def name_of(hypervisor: str, uuid: str) -> str:
    # Placement's names are unique and of at most 200 characters, so a name
    # that is cut needs a part of the UUID.
    if len(hypervisor) + len(_SUFFIX) > _NAME_LENGTH:
        hypervisor = f'{hypervisor[:_NAME_LENGTH - len(_SUFFIX) - 9]}_' \
                     f'{uuid[:8]}'
    return hypervisor + _SUFFIX


# By HTTP status; ConflictError also if two have created the same at once.
_KINDS: Mapping[int, type[PlacementError]] = {
    404: NotFoundError, 409: ConflictError, **dict.fromkeys(
        (401, 403, 429, 502, 503, 504), UnavailableError)}
_DEFINITIONS = (*(f'/resource_classes/{name}' for name in (
    names.PORTS, names.RULES, names.DHCP_SERVERS, names.ROUTERS)),
    f'/traits/{names.TRAIT}')


class Client:
    """A connection to Placement; for use by several threads.

    :param threads: number of these threads
    :raises UnavailableError: if ``[placement]`` cannot be used
    """

    def __init__(self, conf, threads: int = 1):
        self._adapter = connect(conf)
        session = self._adapter.session
        for each in session.session.adapters.values():
            each.init_poolmanager(10, threads)
        http_limits.limit(session)
        self._of_nodes: set[str] = set()

    def close(self) -> None:
        self._adapter.session.session.close()

    def define(self) -> None:
        for path in _DEFINITIONS:
            self._request('PUT', path)

    def define_nodes(self, names_of_classes: Iterable[str]) -> None:
        """Define resource classes of NUMA nodes; not to be called in threads.

        If two are defined at the same moment, Placement 16.0.0 may answer that
        one exists, and not create it.  So they are known only when a later
        call finds them.
        """
        if missing := set(names_of_classes) - self._of_nodes:
            self._of_nodes.update(self.resource_classes())
            for name in sorted(missing - self._of_nodes):
                self._request('PUT', f'/resource_classes/{name}')

    def undefined(self) -> list[str]:
        return [path.rpartition('/')[2] for path in _DEFINITIONS
                if not self._exists(path)]

    def providers(self) -> list[ProviderRow]:
        try:
            providers = self.members(f'?required={names.TRAIT}')
        except PlacementError as exc:
            # The trait does not exist yet, so no provider has it.
            # Placement answers 400, not an empty list, for an unknown trait.
            if exc.status == 400 and names.TRAIT in exc.detail:
                return []
            raise
        # Providers of other tools with the same trait are left alone.
        return [provider for provider in providers if provider.parent and (
            provider.uuid == names.provider_uuid(provider.parent))]

    def members(self, query: str = '') -> list[ProviderRow]:
        """Return the providers of Placement, of the ledger or not."""
        return self._request(
            'GET', f'/resource_providers{query}', read=lambda answer: [
                _provider(row)
                for row in _list(answer['resource_providers'])])

    def create(self, compute: str, hypervisor: str) -> int | None:
        """Create the nested provider of a compute node; see :meth:`mark`.

        :returns: its generation; None if it existed already, perhaps with
            inventories and allocations
        :raises NoParentError: if the compute node does not have a provider yet
        """
        uuid = names.provider_uuid(compute)
        try:
            return self._request('POST', '/resource_providers', {
                'uuid': uuid, 'name': name_of(hypervisor, uuid),
                'parent_provider_uuid': compute,
            }, lambda answer: _number(answer['generation']))
        except (UnavailableError, MalformedError):
            raise
        except ConflictError:
            # 409 is for a name as well as for a UUID that exists.
            if not self.exists(uuid):
                raise  # another provider has the name
            return None
        except PlacementError as exc:
            # Placement answers 400 if the parent does not exist, and for any
            # other mistake.
            if self.exists(compute):
                raise
            raise NoParentError(
                'the compute node has no resource provider') from exc

    def exists(self, uuid: str) -> bool:
        return self._exists(f'/resource_providers/{uuid}')

    def _exists(self, path: str) -> bool:
        try:
            self._request('GET', path)
        except NotFoundError:
            return False
        return True

    def mark(self, uuid: str, generation: int, new: bool = False) -> int:
        """Add a provider to the ledger by giving it the trait.

        Call it after the inventories are written, so that a client that finds
        a provider by its trait finds these, too.

        :param new: whether it was just created, and has no traits yet
        :returns: its new generation
        :raises ConflictError: if it has another generation by now
        """
        traits = [] if new else self._traits(uuid)[1]
        return self._set_traits(uuid, generation, [*traits, names.TRAIT])

    def unmark(self, uuid: str) -> None:
        """Remove the trait of the ledger from a provider, and nothing else.

        :raises ConflictError: if another client changes it at the same time
        """
        generation, traits = self._traits(uuid)
        if names.TRAIT in traits:
            self._set_traits(uuid, generation, [
                trait for trait in traits if trait != names.TRAIT])

    def traits(self, used: bool = False) -> list[str]:
        """Return all traits, or only those that a provider has."""
        return self._request(
            'GET', '/traits' + ('?associated=true' if used else ''),
            read=lambda answer: [
                _text(trait) for trait in _list(answer['traits'])])

    def resource_classes(self) -> list[str]:
        return self._request('GET', '/resource_classes', read=lambda answer: [
            _text(each['name'])
            for each in _list(answer['resource_classes'])])

    def _traits(self, uuid: str) -> tuple[int, list[str]]:
        return self._request(
            'GET', f'/resource_providers/{uuid}/traits', read=lambda answer: (
                _generation(answer),
                [_text(trait) for trait in _list(answer['traits'])]))

    def _set_traits(self, uuid: str, generation: int,
                    traits: Iterable[str]) -> int:
        return self._request('PUT', f'/resource_providers/{uuid}/traits', {
            'traits': sorted(set(traits)),
            'resource_provider_generation': generation}, _generation)

    def inventories(self, uuid: str) -> tuple[int, dict[str, dict]]:
        """Return (generation, resource class -> inventory) of a provider."""
        return self._request(
            'GET', f'/resource_providers/{uuid}/inventories',
            read=lambda answer: (_generation(answer), {
                _text(name): _inventory(inventory)
                for name, inventory in answer['inventories'].items()}))

    def held(self, uuid: str) -> tuple[int, dict[str, names.Held]]:
        """Return (generation of the provider, consumer UUID -> allocation)."""
        return self._request(
            'GET', f'/resource_providers/{uuid}/allocations',
            read=lambda answer: (_generation(answer), {
                _text(consumer): names.Held(
                    _number(allocation['consumer_generation']),
                    _amounts(allocation['resources']))
                for consumer, allocation in answer['allocations'].items()}))

    def replace(self, uuid: str, generation: int,
                inventories: Mapping[str, dict]) -> int:
        """Replace all inventories; return the provider's new generation.

        :raises ConflictError: if it has another generation by now
        :raises InUseError: if there are allocations of a resource class that
            is not in ``inventories``
        """
        return self._request(
            'PUT', f'/resource_providers/{uuid}/inventories', {
                'resource_provider_generation': generation,
                'inventories': dict(inventories),
            }, _generation)

    def lower(self, consumer: str, uuid: str, held: names.Held,
              remaining: Mapping[str, int]) -> bool:
        """Lower the allocation of a consumer from one provider.

        Its allocations from other providers stay.

        :param remaining: resource class -> amount that it keeps
        :returns: False if the allocation has changed since it was read
        :raises ConflictError: if it changes at the same time
        """
        path = f'/allocations/{consumer}'
        allocations, body = self._request('GET', path, read=lambda answer: (
            {provider: {'resources': _amounts(allocation['resources'])}
             for provider, allocation in answer['allocations'].items()},
            # A consumer without allocations has none of these.
            {name: answer.get(name) for name in (
                'consumer_generation', 'project_id', 'user_id')}))
        # Nova has moved or resized the server since, or another process has
        # lowered it.
        if (body['consumer_generation'] != held.generation
                or allocations.pop(uuid, None) != {
                    'resources': held.resources}):
            return False
        if remaining:
            allocations[uuid] = {'resources': dict(remaining)}
        # All allocations of the consumer, since PUT replaces them.
        self._request('PUT', path, {'allocations': allocations, **body},
                      version=_UNTYPED)
        return True

    def _request(self, method: str, path: str, body: dict | None = None,
                 read: Callable[[ty.Any], Found] | None = None,
                 version: str | None = None) -> Found | None:
        """Make one request to Placement.

        :param read: function from the decoded answer to the result
        :param version: microversion; None for ``_MICROVERSION``
        :returns: the result of ``read``; None without it
        """
        try:
            response = self._adapter.request(
                path, method, json=body, raise_exc=False,
                microversion=version or _MICROVERSION,
                headers={'Accept': 'application/json'})
        except _ERRORS as exc:
            raise UnavailableError(
                f'{method} {path}: {http_limits.reason(exc)}') from exc
        if response.status_code not in (200, 201, 204):
            if method != 'GET':
                with metrics.LOCK:
                    metrics.REFUSED[response.status_code] += 1
            raise _error(method, path, response)
        if read is None:
            return None
        try:
            answer = response.json()
        except (ValueError, RecursionError) as exc:
            raise MalformedError(
                f'{method} {path}: the answer is not JSON') from exc
        try:
            return read(answer)
        except http_limits.MALFORMED as exc:
            raise MalformedError(
                f'{method} {path}: the answer is malformed') from exc


def connect(conf) -> ks_adapter.Adapter:
    """Return an HTTP adapter by ``[placement]``, or raise UnavailableError."""
    try:
        auth = ks_loading.load_auth_from_conf_options(conf, _GROUP)
        if auth is None:
            raise UnavailableError(
                'no connection to Placement: [placement] auth_type is not set')
        session = ks_loading.load_session_from_conf_options(
            conf, _GROUP, auth=auth)
        # keystoneauth1 waits for ever otherwise.
        if session.timeout is None:
            session.timeout = _TIMEOUT
        return ks_loading.load_adapter_from_conf_options(
            conf, _GROUP, session=session, auth=auth)
    except _ERRORS as exc:
        raise UnavailableError('no connection to Placement: '
                               f'{http_limits.reason(exc)}') from exc


def _provider(provider: dict) -> ProviderRow:
    parent = provider['parent_provider_uuid']
    return ProviderRow(
        _text(provider['uuid']), _text(provider['name']),
        None if parent is None else _text(parent),
        _text(provider['root_provider_uuid']),
        _number(provider['generation']))


def _generation(answer: dict) -> int:
    return _number(answer['resource_provider_generation'])


def _inventory(inventory: dict) -> dict:
    for name in ('total', 'reserved', 'min_unit', 'max_unit', 'step_size'):
        _number(inventory[name])
    if not isinstance(inventory['allocation_ratio'], (int, float)):
        raise TypeError('allocation_ratio')
    return inventory


def _amounts(resources: dict) -> dict[str, int]:
    return {_text(name): _number(amount) for name, amount in resources.items()}


def _checked(kind: type[Found], value) -> Found:
    # bool is a subclass of int.
    if not isinstance(value, kind) or isinstance(value, bool):
        raise TypeError(f'no {kind.__name__}')
    return value


_list = functools.partial(_checked, list)
_number = functools.partial(_checked, int)
_text = functools.partial(_checked, str)


def _error(method: str, path: str, response) -> PlacementError:
    status = response.status_code
    code, detail = '', response.reason
    try:
        # A proxy before Placement answers with HTML.
        error = response.json()['errors'][0]
        code = error.get('code', '')
        # Placement wraps its messages in lines.
        detail = ' '.join(error.get('detail', '').split()) or detail
    except http_limits.MALFORMED:
        pass
    kind = InUseError if status == 409 and code in _IN_USE else _KINDS.get(
        status, PlacementError)
    exc = kind(f'{method} {path}: {status} {detail}')
    exc.status, exc.code, exc.detail = status, code, detail
    return exc
