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
"""The model of Placement that the unit tests have answers as Placement does.

Both get the same random requests, of the kinds that the ledger makes.
"""

import json
import random
import uuid

import fixtures
from placement.tests.functional.fixtures import placement as placement_fixtures
import testtools

from nfv_sched.tests import placement_api
from nfv_sched.tests.unit.network import placement_model

CLASSES = ('CUSTOM_MODEL_A', 'CUSTOM_MODEL_B')
TRAIT = 'CUSTOM_MODEL_TRAIT'


class ModelTest(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.useFixture(fixtures.FakeLogger())
        fixture = self.useFixture(placement_fixtures.PlacementFixture())
        self.api = placement_api.PlacementAPI(fixture.conf_fixture.conf)
        self.model = placement_model.Placement()

    def ask(self, method, path, body=None):
        """Ask both; returns status and body of what they agree on."""
        status, _headers, data = self.api.answer(
            method, path, {'Content-Type': 'application/json',
                           'Accept': 'application/json',
                           'OpenStack-API-Version': 'placement 1.36'},
            b'' if body is None else json.dumps(body).encode())
        response = self.model.request(path, method, body)
        request = (method, path, body)
        self.assertEqual(int(str(status)[:3]), response.status_code,
                         (request, data))
        if not response.content:
            return response.status_code, None
        expected, got = json.loads(data), response.json()
        if response.status_code >= 400:
            for answer in expected, got:
                answer['errors'] = [answer['errors'][0]['code']]
            self.assertEqual(expected['errors'], got['errors'], request)
        else:
            self.assertEqual(self.simple(expected, got), got, request)
        return response.status_code, got

    def simple(self, expected, got):
        """As much of what Placement says as the model says, too."""
        if isinstance(got, dict):
            # Whatever else is said, no item of a collection is missing.
            if not got or any(len(key) == 36 for key in got):
                self.assertEqual(set(expected), set(got))
            return {key: self.simple(expected[key], value)
                    for key, value in got.items()}
        if isinstance(got, list) and got and isinstance(got[0], dict):
            self.assertEqual(len(expected), len(got))
            found = {item['uuid']: item for item in expected}
            return [self.simple(found[item['uuid']], item) for item in got]
        if isinstance(got, list):
            return sorted(expected)
        return expected

    def inventories(self, rng):
        return {name: {
            'total': total, 'reserved': rng.randint(0, total), 'min_unit': 1,
            'max_unit': rng.choice((total, 2)), 'step_size': 1,
            'allocation_ratio': 1.0}
            for name in rng.sample(CLASSES, rng.randint(0, 2))
            for total in [rng.randint(1, 8)]}

    def test_random_requests(self):
        rng = random.Random(7)
        statuses = []
        self.ask('GET', f'/resource_providers?required={TRAIT}')
        for name in CLASSES * 2:
            self.ask('PUT', f'/resource_classes/{name}')
        for _ in range(2):
            self.ask('PUT', f'/traits/{TRAIT}')
        for _ in range(12):
            providers = [str(uuid.UUID(int=rng.getrandbits(128), version=4))
                         for _ in range(3)]
            consumers = [str(uuid.UUID(int=rng.getrandbits(128), version=4))
                         for _ in range(3)]
            for _ in range(60):
                statuses.append(self.random(rng, providers, consumers))
        for status in (200, 201, 204, 400, 404, 409):
            self.assertGreater(len([
                found for found in statuses if found == status]),
                5 if status != 201 else -1, status)

    def random(self, rng, providers, consumers):
        """Ask for anything; returns the status."""
        provider, consumer = rng.choice(providers), rng.choice(consumers)
        path = f'/resource_providers/{provider}'
        what = rng.choice((
            'create', 'provider', 'providers', 'inventories', 'inventories',
            'traits', 'claim', 'claim', 'claim', 'claim', 'release'))
        if what == 'create':
            return self.ask('POST', '/resource_providers', {
                'uuid': provider, 'name': rng.choice(providers)[:8],
                'parent_provider_uuid': rng.choice(
                    (None, *providers[:providers.index(provider)]))})[0]
        if what == 'provider':
            return self.ask('GET', path)[0]
        if what == 'providers':
            return self.ask('GET', f'/resource_providers?required={TRAIT}')[0]
        if what in ('inventories', 'traits'):
            status, body = self.ask('GET', f'{path}/{what}')
            self.ask('GET', f'{path}/allocations')
            generation = 0 if status == 404 else (
                body['resource_provider_generation'])
            return self.ask('PUT', f'{path}/{what}', {
                what: self.inventories(rng) if what == 'inventories'
                else rng.choice(([], [TRAIT], ['CUSTOM_NOWHERE'])),
                'resource_provider_generation':
                generation + rng.choice((0, 0, 0, 1))})[0]
        path = f'/allocations/{consumer}'
        _status, body = self.ask('GET', path)
        if what == 'release':
            return self.ask('DELETE', path)[0]
        generation = body.get('consumer_generation')
        if rng.random() < 0.1:
            generation = 7
        # After a claim from nowhere Placement keeps a consumer without
        # allocations, which nothing shows.
        there = [found for found in providers if found in self.model.providers]
        allocations = {
            found: {'resources': {
                name: rng.randint(1, 4)
                for name in rng.sample(CLASSES, rng.randint(1, 2))}}
            for found in rng.sample(there, min(
                rng.choice((0, 1, 1, 1, 2)), len(there)))}
        if body['allocations'] and rng.random() < 0.4:
            # Less, or the same, of what there is.
            allocations = {
                found: {'resources': {
                    name: rng.randint(1, amount) for name, amount in
                    allocation['resources'].items()}}
                for found, allocation in body['allocations'].items()}
        if generation is None and not allocations:
            return self.ask('GET', path)[0]
        return self.ask('PUT', path, {
            'allocations': allocations, 'project_id': 'p', 'user_id': 'u',
            'consumer_generation': generation})[0]
