# SPDX-License-Identifier: Apache-2.0
"""As much of Placement, in memory, as the ledger needs.

Answers what Placement answers, with its generations of providers and
consumers and its capacity checks; one request at a time.
``test_placement_model`` among the functional tests compares it with Placement.
It stands where a connection does (:func:`nfv_sched.ledger.client.Client`
asks it for everything), so that thousands of sequences can be tried.
"""

import copy
import dataclasses
import json
import urllib.parse

CONCURRENT = 'placement.concurrent_update'
IN_USE = 'placement.inventory.inuse'


class Response:
    reason = 'Reason'

    def __init__(self, status_code, body=None):
        self.status_code = status_code
        self._body = body
        self.content = b'' if body is None else b'{}'

    def json(self):
        # What Placement keeps does not change with what others do to it.
        return json.loads(json.dumps(self._body))


def _error(status, detail, code='placement.undefined_code'):
    return Response(status, {'errors': [{'code': code, 'detail': detail}]})


@dataclasses.dataclass
class Provider:
    uuid: str
    name: str
    parent: str | None
    generation: int = 0
    traits: set = dataclasses.field(default_factory=set)
    inventories: dict = dataclasses.field(default_factory=dict)


@dataclasses.dataclass
class Consumer:
    """A consumer; it is there as long as it has allocations."""

    project: str
    user: str
    generation: int = 0
    allocations: dict = dataclasses.field(default_factory=dict)


class Placement:
    """A Placement.

    :ivar providers: UUID -> provider
    :ivar consumers: UUID -> consumer
    :ivar before: called with method and path before each request
    :ivar after: called with method, path and answer after each
    """

    def __init__(self):
        self.providers = {}
        self.consumers = {}
        self.names = set()  # resource classes and traits
        self.before = lambda method, path: None
        self.after = lambda method, path, response: None

    def request(self, url, method, json=None, **kwargs):
        """See ``keystoneauth1.adapter.Adapter``."""
        self.before(method, url)
        path, _, query = url.partition('?')
        parts = path.strip('/').split('/')
        handler = getattr(
            self, f'_{method.lower()}_' + '_'.join(
                [parts[0], *(part for part in parts[2:])]))
        if len(parts) > 1:
            response = handler(parts[1], copy.deepcopy(json))
        elif query:
            response = handler(urllib.parse.parse_qs(query))
        else:
            response = handler(copy.deepcopy(json))
        self.after(method, url, response)
        return response

    def claim(self, consumer, body):
        """Put allocations as Nova; ``before`` and ``after`` are not called."""
        return self._put_allocations(consumer, copy.deepcopy(body))

    def used(self, provider, resource_class, without=None):
        return sum(
            consumer.allocations.get(provider, {}).get(resource_class, 0)
            for uuid, consumer in self.consumers.items() if uuid != without)

    def _get_resource_classes(self, query):
        return Response(200, {'resource_classes': [
            {'name': name} for name in sorted(self.names)]})

    def _put_resource_classes(self, name, body):
        new = name not in self.names
        self.names.add(name)
        return Response(201 if new else 204)

    _put_traits = _put_resource_classes

    def _get_resource_providers(self, query, body=None):
        if isinstance(query, str):
            provider = self.providers.get(query)
            if provider is None:
                return _error(404, 'no such provider')
            return Response(200, self._shown(provider))
        if any(trait not in self.names for trait in query['required']):
            return _error(400, f'No such trait(s): {query["required"]}')
        return Response(200, {'resource_providers': [
            self._shown(provider) for provider in self.providers.values()
            if provider.traits.issuperset(query['required'])]})

    @staticmethod
    def _shown(provider):
        return {'uuid': provider.uuid, 'name': provider.name,
                'generation': provider.generation,
                'parent_provider_uuid': provider.parent,
                'root_provider_uuid': provider.parent or provider.uuid}

    def _post_resource_providers(self, body):
        parent = body.get('parent_provider_uuid')
        if parent is not None and parent not in self.providers:
            return _error(400, 'parent provider UUID does not exist')
        if body['uuid'] in self.providers or any(
                provider.name == body['name']
                for provider in self.providers.values()):
            return _error(409, 'Conflicting resource provider',
                          'placement.duplicate_name')
        provider = Provider(body['uuid'], body['name'], parent)
        self.providers[provider.uuid] = provider
        return Response(200, self._shown(provider))

    def _provider_part(self, uuid, **parts):
        provider = self.providers.get(uuid)
        if provider is None:
            return _error(404, 'no such provider')
        return Response(200, {
            'resource_provider_generation': provider.generation,
            **{name: part(provider) for name, part in parts.items()}})

    def _get_resource_providers_inventories(self, uuid, body):
        return self._provider_part(
            uuid, inventories=lambda provider: provider.inventories)

    def _get_resource_providers_traits(self, uuid, body):
        return self._provider_part(
            uuid, traits=lambda provider: sorted(provider.traits))

    def _get_resource_providers_allocations(self, uuid, body):
        return self._provider_part(uuid, allocations=lambda provider: {
            name: {'resources': consumer.allocations[uuid],
                   'consumer_generation': consumer.generation}
            for name, consumer in self.consumers.items()
            if uuid in consumer.allocations})

    def _refusal(self, uuid, body):
        """The answer to a change of a provider, if it cannot be changed."""
        if uuid not in self.providers:
            return _error(404, 'no such provider')
        generation = self.providers[uuid].generation
        return generation != body['resource_provider_generation'] and _error(
            409, 'resource provider generation conflict', CONCURRENT)

    def _put_resource_providers_inventories(self, uuid, body):
        if refusal := self._refusal(uuid, body):
            return refusal
        provider = self.providers[uuid]
        if any(self.used(uuid, name) for name in provider.inventories
               if name not in body['inventories']):
            return _error(409, 'Inventory is in use', IN_USE)
        provider.inventories = body['inventories']
        provider.generation += 1
        return self._get_resource_providers_inventories(uuid, None)

    def _put_resource_providers_traits(self, uuid, body):
        if refusal := self._refusal(uuid, body):
            return refusal
        provider = self.providers[uuid]
        if not self.names.issuperset(body['traits']):
            return _error(400, 'No such trait')
        if provider.traits != set(body['traits']):
            provider.traits = set(body['traits'])
            provider.generation += 1
        return self._get_resource_providers_traits(uuid, None)

    def _get_allocations(self, uuid, body):
        consumer = self.consumers.get(uuid)
        if consumer is None:
            return Response(200, {'allocations': {}})
        return Response(200, {
            'allocations': {
                provider: {
                    'resources': resources,
                    'generation': self.providers[provider].generation}
                for provider, resources in consumer.allocations.items()},
            'project_id': consumer.project, 'user_id': consumer.user,
            'consumer_generation': consumer.generation})

    def _put_allocations(self, uuid, body):
        consumer = self.consumers.get(uuid)
        generation = None if consumer is None else consumer.generation
        if body['consumer_generation'] != generation:
            return _error(409, 'consumer generation conflict', CONCURRENT)
        allocations = {
            provider: allocation['resources']
            for provider, allocation in body['allocations'].items()}
        if not self.providers.keys() >= allocations.keys():
            return _error(400, 'no such provider')
        if not all(
                self._fits(uuid, provider, name, amount)
                for provider, resources in allocations.items()
                for name, amount in resources.items()):
            return _error(409, 'Unable to allocate inventory')
        self._set(uuid, consumer or Consumer(
            body['project_id'], body['user_id']), allocations)
        return Response(204)

    def _set(self, uuid, consumer, allocations):
        for provider in allocations or consumer.allocations:
            self.providers[provider].generation += 1
        consumer.generation += 1
        consumer.allocations = allocations
        if allocations:
            self.consumers[uuid] = consumer
        else:
            self.consumers.pop(uuid, None)

    def _fits(self, consumer, provider, name, amount):
        inventory = self.providers[provider].inventories.get(name)
        if inventory is None or not (
                inventory['min_unit'] <= amount <= inventory['max_unit']):
            return False
        used = self.used(provider, name, consumer) + amount
        return used <= (inventory['total'] - inventory['reserved']) or (
            # What makes an excess no worse is accepted.
            used <= self.used(provider, name)
            and self.used(provider, name) > 0)

    def _delete_allocations(self, uuid, body):
        if uuid not in self.consumers:
            return _error(404, 'no allocations')
        del self.consumers[uuid]
        return Response(204)

    def move(self, source, target):
        """Give a consumer's allocations to another, as Nova does in a move.

        That is one request of its own, ``POST /allocations``.
        """
        consumer = self.consumers.pop(source)
        allocations = consumer.allocations
        self._set(target, Consumer(consumer.project, consumer.user),
                  allocations)
