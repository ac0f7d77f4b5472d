# SPDX-License-Identifier: Apache-2.0
"""The models of Placement answer as Placement does.

There are two: that of the unit tests knows what the ledger asks, that of the
simulator what the scheduler asks.  Each gets the same random requests as the
service.  ``NFV_SCHED_PLACEMENT_CASES`` says how many clouds the simulator's
is compared on, ``NFV_SCHED_PLACEMENT_QUERIES`` for how many flavors it must
refuse what the service refuses.
"""

import collections
import dataclasses
import itertools
import json
import os
import random
from urllib import parse
import uuid

import fixtures
from nova import objects
from placement.tests.functional.fixtures import placement as placement_fixtures

from nfv_sched.nova import flavors
from nfv_sched.ops.answers.flavors import document
from nfv_sched.ops.answers.flavors.lint import all_rules
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.simulator import placement as simulated
from nfv_sched.ops.simulator.placement import malformed
from nfv_sched.ops.simulator.placement import requirements
from nfv_sched.ops.simulator import state
from nfv_sched.tests import base
from nfv_sched.tests import placement_api
from nfv_sched.tests.unit.limits import placement_model

CLASSES = ('CUSTOM_MODEL_A', 'CUSTOM_MODEL_B')
TRAIT = 'CUSTOM_MODEL_TRAIT'

CASES = int(os.environ.get('NFV_SCHED_PLACEMENT_CASES', '40'))
QUERIES = int(os.environ.get('NFV_SCHED_PLACEMENT_QUERIES', '120'))


class PlacementTestCase(base.TimedTestCase):
    def setUp(self):
        super().setUp()
        self.useFixture(fixtures.FakeLogger())
        fixture = self.useFixture(placement_fixtures.PlacementFixture())
        self.service = placement_api.PlacementAPI(
            fixture.conf_fixture.conf).call


class ModelTest(PlacementTestCase):
    """The model of the unit tests."""

    def setUp(self):
        super().setUp()
        self.model = placement_model.Placement()

    def ask(self, method, path, body=None):
        """Ask both; returns status and body of what they agree on."""
        status, data = self.service(method, path, body)
        response = self.model.request(path, method, body)
        request = (method, path, body)
        self.assertEqual(status, response.status_code, (request, data))
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


ROOT_CLASSES = ('VCPU', 'MEMORY_MB', 'DISK_GB')
DEVICE_CLASSES = ('CUSTOM_NIC', 'CUSTOM_PORT', 'CUSTOM_RULE')
# What only nested providers have, though it is asked without a suffix.
NESTED_CLASSES = ('CUSTOM_GPU', 'CUSTOM_KEY')
TRAITS = ('CUSTOM_RED', 'CUSTOM_GREEN', 'CUSTOM_BLUE')


def pairs_of(query):
    """The pairs of a parsed query, but for its limit."""
    def resources(amounts):
        return ','.join(f'{name}:{amount}' for name, amount in amounts)

    def traits(required, forbidden):
        return ','.join([*required, *(f'!{trait}' for trait in forbidden)])

    of_root = query.root_required, query.root_forbidden
    pairs = [
        ('resources', resources(query.amounts.items())),
        ('required', traits(query.required - of_root[0],
                            query.forbidden - of_root[1])),
        ('root_required', traits(query.required & of_root[0],
                                 query.forbidden & of_root[1])),
        *(('member_of', f'in:{",".join(members)}')
          for members in query.members_of),
        ('in_tree', query.tree)]
    if query.forbidden_aggregates:
        pairs.append(('member_of',
                      f'!in:{",".join(query.forbidden_aggregates)}'))
    for group in query.groups:
        suffix, = group.suffixes
        pairs += [(f'resources{suffix}', resources(group.amounts)),
                  (f'required{suffix}', traits(group.traits,
                                               group.forbidden))]
    if len(query.groups) > 1:
        pairs.append(('group_policy',
                      'isolate' if query.isolated else 'none'))
    return [(key, value) for key, value in pairs if value]


def is_met(query, tree):
    return not any(each.missing(tree) for each in (
        *query.single_requirements, query.choice))


class VerdictTest(PlacementTestCase):
    """Which queries of Nova the service cannot read, with status 400."""

    GROUPS = ('', '', '1', '2', '_GPU', 's', '-x', '_' + 'a' * 63)
    CLASSES = ('VCPU', 'MEMORY_MB', 'DISK_GB', 'VGPU', 'VGPU',
               'CUSTOM_MODEL_A', 'CUSTOM_MODEL_A', 'CUSTOM_model',
               'CUSTOM_A B', 'CUSTOM_A,VGPU',
               'CUSTOM_A:1', 'CUSTOM_NONE', 'WRONG', '')
    TRAITS = ('HW_CPU_X86_AVX2', 'HW_CPU_HYPERTHREADING', 'CUSTOM_RED',
              'CUSTOM_RED', 'CUSTOM_GREEN', 'CUSTOM_red', 'CUSTOM_A B',
              'CUSTOM_RED,CUSTOM_GREEN', '!CUSTOM_RED', '!', 'in:CUSTOM_RED',
              'CUSTOM_NONE', 'HW_NONE', ' CUSTOM_RED', '')

    def setUp(self):
        super().setUp()
        self.model = simulated.Placement()
        for path in ('resource_classes/CUSTOM_MODEL_A', 'traits/CUSTOM_RED',
                     'traits/CUSTOM_GREEN'):
            self.service('PUT', f'/{path}')
        names = [frozenset(self.answer(f'/{kind}')[1]) for kind in (
            'traits', 'resource_classes')]
        self.model.set_names(*names)
        # It looks at the names of a group only if there are providers for the
        # groups before.
        for number, traits in enumerate(itertools.chain.from_iterable(
                itertools.combinations(self.TRAITS[:5:2] + self.TRAITS[1:2],
                                       count) for count in range(5))):
            provider = str(uuid.UUID(int=number + 1))
            path = f'/resource_providers/{provider}'
            self.service('POST', '/resource_providers', {
                'uuid': provider, 'name': provider})
            self.service('PUT', f'{path}/inventories', {
                'resource_provider_generation': 0, 'inventories': {
                    name: {'total': 10_000}
                    for name in ('PCPU', *self.CLASSES[:6])}})
            self.service('PUT', f'{path}/traits', {
                'resource_provider_generation': 1, 'traits': list(traits)})

    def answer(self, path):
        status, data = self.service('GET', path)
        body = json.loads(data)
        return status, [
            each if isinstance(each, str) else each['name'] for each
            in body.get('traits', body.get('resource_classes', ()))]

    def specs(self, rng):
        """Extra specs, good ones and others, and properties of an image."""
        specs = {}
        for _ in range(rng.choice((0, 1, 1, 2, 2, 3, 4))):
            group = rng.choice(self.GROUPS)
            odd = rng.random() < 0.3
            name = rng.choice(self.CLASSES[:None if odd else 7])
            specs[f'resources{group}:{name}'] = rng.choice(
                ('0', '1', '1', '2', '-1', 'x') if odd else ('1', '1', '0'))
        groups = [key[9:].partition(':')[0] for key in specs] or ['']
        for _ in range(rng.choice((0, 0, 1, 1, 2))):
            group = rng.choice(groups if rng.random() < 0.7 else self.GROUPS)
            name = rng.choice(self.TRAITS[:rng.choice((5, 5, None))])
            specs[f'trait{group}:{name}'] = rng.choice(
                ('required', 'required', 'forbidden', 'no'))
        if rng.random() < 0.5:
            specs['group_policy'] = rng.choice(
                ('none', 'isolate', 'isolate', 'any', ''))
        if rng.random() < 0.2:
            specs['hw:cpu_policy'] = 'dedicated'
            specs['hw:cpu_thread_policy'] = rng.choice(('isolate', 'require'))
        if rng.random() < 0.15:
            for name in ('VCPU', 'MEMORY_MB', 'DISK_GB'):
                specs[f'resources:{name}'] = '0'
        return specs, {f'trait:{name}': 'required' for name in rng.sample(
            self.TRAITS[:5], rng.choice((0, 0, 0, 1)))}

    def test_generated_flavors(self):
        seen = collections.Counter()
        rng = random.Random(57)
        for _ in range(QUERIES):
            specs, image = self.specs(rng)
            meta = flavors.image(image)
            flavor = state.nova_flavor(snapshot.Flavor(
                name='f', vcpus=2, memory=512, disk=rng.choice((0, 1)),
                extra_specs=specs))
            spec = flavors.request(flavor, meta, None)
            if rng.random() < 0.2:
                spec.requested_resources = [objects.RequestGroup(
                    requester_id=str(uuid.UUID(int=rng.getrandbits(128))),
                    resources={'CUSTOM_MODEL_A': 1})]
            refused = []
            for request in flavors.placement_requests(None, spec, None):
                query = request.to_querystring()
                status, _names = self.answer(f'/allocation_candidates?{query}')
                self.assertIn(status, (200, 400), query)
                parsed = simulated.Query.parse(query)
                self.assertEqual(status == 400, bool(
                    self.model.refusal(parsed)), query)
                seen[parsed.fault and parsed.fault.fault] += 1
                refused.append(status == 400)
            if spec.requested_resources:
                continue
            found = all_rules.lint([snapshot.Flavor(
                name='f', vcpus=2, memory=512, disk=flavor.root_gb,
                extra_specs=specs)],
                image=document.Image(properties=image))
            if any(each.rule == 'query-refused' for each in found):
                self.assertTrue(all(refused), specs)
        print(f'verdicts: {dict(seen)}')
        for fault in (None, *malformed.QueryFault):
            self.assertGreaterEqual(seen[fault], max(1, QUERIES // 200), seen)


class _Resources:
    """What the scheduler hands to its client."""

    def __init__(self, query):
        self.query = query

    def to_querystring(self):
        return self.query


class SimulatorTest(PlacementTestCase):
    """That of the simulator, on generated clouds.

    Trees are as Nova and the ledger make them: what a request asks without a
    suffix is only on the compute node, or only on providers nested in it; the
    rest is on any provider of its tree, and only compute nodes are in
    aggregates. What the model does not simulate
    is not asked: sharing providers, ``same_subtree``, ``required=in:``,
    member_of and in_tree of single groups.
    """

    def setUp(self):
        super().setUp()
        for name in (*DEVICE_CLASSES, *NESTED_CLASSES):
            self.asked('PUT', f'/resource_classes/{name}')
        for name in TRAITS:
            self.asked('PUT', f'/traits/{name}')

    def asked(self, method, path, body=None):
        status, data = self.service(method, path, body)
        self.assertLess(status, 300, (method, path, body, data))
        return json.loads(data) if data else None

    def test_random_clouds(self):
        self.seen = collections.Counter()
        for case in range(CASES):
            self.rng = random.Random(f'cloud {case}')
            self.case = case
            self.build()
            for _ in range(12):
                self.change()
            self.fill()
            self.tear_down()
        for name in ('found', 'nothing found', 'nested', 'several groups',
                     'nested without suffix', 'limited', 'claimed', 'no room',
                     'full', 'moved', 'evacuated', 'released', 'undone',
                     'several missing', 'found without it', 'free', 'units'):
            self.assertGreater(self.seen[name], CASES // 10, self.seen)
        for kind in requirements.RequirementKind:
            if kind is not requirements.RequirementKind.CHOICE:
                self.assertGreaterEqual(
                    self.seen[kind], CASES // 10, self.seen)

    # Clouds

    def uuid(self):
        return str(uuid.UUID(int=self.rng.getrandbits(128), version=4))

    def build(self):
        rng = self.rng
        self.model = simulated.Placement()
        self.consumers = {}
        self.aggregates = [self.uuid() for _ in range(3)]
        self.roots = [self.uuid() for _ in range(rng.randint(2, 4))]
        for root in self.roots:
            classes = rng.sample(ROOT_CLASSES, rng.choice((2, 3, 3, 3)))
            classes += rng.sample(DEVICE_CLASSES, rng.choice((0, 0, 1)))
            self.add(root, None, classes, rng.sample(
                self.aggregates, rng.randint(0, 3)))
            for _ in range(rng.choice((0, 1, 2, 3, 3))):
                classes = rng.sample(DEVICE_CLASSES,
                                     rng.choice((0, 1, 2, 2, 3)))
                classes += rng.sample(NESTED_CLASSES, rng.choice((0, 1, 2)))
                self.add(self.uuid(), root, classes, ())

    def add(self, provider, parent, classes, aggregates):
        rng = self.rng
        inventories = {}
        for name in classes:
            total = rng.randint(1, 12)
            inventories[name] = {
                'total': total, 'max_unit': total,
                'reserved': rng.choice((0, 0, 0, 1, rng.randint(0, total))),
                'allocation_ratio': rng.choice((1.0, 1.0, 1.5, 2.5, 4.0)),
                'min_unit': 1, 'step_size': 1}
            if rng.random() < 0.1:
                inventories[name].update(
                    max_unit=rng.randint(2, 12), min_unit=rng.randint(1, 2),
                    step_size=rng.randint(1, 2))
        traits = rng.sample(TRAITS, rng.choice((0, 1, 1, 2)))
        self.asked('POST', '/resource_providers', {
            'uuid': provider, 'name': provider,
            'parent_provider_uuid': parent})
        path = f'/resource_providers/{provider}'
        for what, value in (('inventories', inventories), ('traits', traits),
                            ('aggregates', list(aggregates))):
            generation = self.asked('GET', path)['generation']
            self.asked('PUT', f'{path}/{what}', {
                what: value, 'resource_provider_generation': generation})
        self.model.add(snapshot.Provider(
            uuid=provider, name=provider, parent=parent,
            inventories={name: snapshot.Inventory(
                total=values['total'], reserved=values['reserved'],
                ratio=values['allocation_ratio'], max_unit=values['max_unit'],
                min_unit=values['min_unit'], step_size=values['step_size'])
                for name, values in inventories.items()},
            traits=frozenset(traits), aggregates=frozenset(aggregates)))

    def tear_down(self):
        for consumer in list(self.consumers):
            self.release(consumer)
        providers = sorted(self.model.providers.values(),
                           key=lambda provider: provider.parent is None)
        for provider in providers:
            self.assertEqual({}, provider.used)
            self.asked('DELETE', f'/resource_providers/{provider.uuid}')

    # Requests

    def amounts(self, classes, most=3):
        names = self.rng.sample(classes, self.rng.choice((1, 1, 1, 2)))
        return ','.join(f'{name}:{self.rng.randint(1, most)}'
                        for name in names)

    def traits(self):
        return ','.join(self.rng.choice(('', '!')) + name for name in
                        self.rng.sample(TRAITS, self.rng.choice((1, 1, 1, 2))))

    def query(self):
        rng = self.rng
        pairs = [('resources', self.amounts(
            ROOT_CLASSES, rng.choice((2, 4, 9))))]
        rare = 0.1
        if rng.random() < 0.3:
            nested = self.amounts(NESTED_CLASSES)
            both = f'{pairs[0][1]},{nested}'
            pairs = [('resources', rng.choice((nested, both, both)))]
            rare = 0.4
        for key in 'required', 'root_required':
            if rng.random() < rare:
                pairs.append((key, self.traits()))
        for _ in range(rng.choice((0, 0, 0, 0, 1, 2))):
            some = rng.sample(self.aggregates, rng.randint(1, 2))
            pairs.append(('member_of', rng.choice((
                some[0], f'in:{",".join(some)}'))))
        for _ in range(rng.choice((0, 0, 0, 0, 1, 2))):
            some = rng.sample(self.aggregates, rng.randint(1, 2))
            pairs.append(('member_of', rng.choice((
                f'!{some[0]}', f'!in:{",".join(some)}'))))
        if rng.random() < 0.1:
            pairs.append(('in_tree', rng.choice((*self.roots, self.uuid()))))
        suffixes = ['_a', '_b-1', '_C'][:rng.choice((0, 1, 1, 2, 2, 3))]
        for suffix in suffixes:
            # Not what is asked without a suffix: unless group_policy is none,
            # the service then adds up amounts of different candidates.
            pairs.append((f'resources{suffix}',
                          self.amounts(DEVICE_CLASSES)))
            if rng.random() < 0.2:
                pairs.append((f'required{suffix}', self.traits()))
        if len(suffixes) > 1:
            pairs.append(('group_policy', rng.choice(('none', 'isolate'))))
        rng.shuffle(pairs)
        return pairs

    def candidates(self, pairs):
        """What both answer: (candidates, providers), each twice."""
        query = parse.urlencode(pairs)
        answer = self.asked('GET', f'/allocation_candidates?{query}')
        requests, summaries, _ = self.model.get_allocation_candidates(
            None, _Resources(query))
        self.assertEqual((), self.model.queries[-1][0].unsupported)
        return ((self.plain(answer['allocation_requests']),
                 self.summaries(answer['provider_summaries'])),
                (self.plain(requests), self.summaries(summaries)))

    def plain(self, requests):
        """Candidates that can be compared; there are none twice."""
        found = {json.dumps(
            {'allocations': {
                provider: allocation['resources'] for provider, allocation
                in request['allocations'].items()},
             'mappings': {suffix: sorted(uuids) for suffix, uuids
                          in request['mappings'].items()}}, sort_keys=True)
            for request in requests}
        self.assertEqual(len(requests), len(found))
        return found

    @staticmethod
    def summaries(summaries):
        return {provider: {**summary, 'traits': set(summary['traits'])}
                for provider, summary in summaries.items()}

    def roots_of(self, pairs):
        query = parse.urlencode(pairs)
        answer = self.asked('GET', f'/allocation_candidates?{query}')
        return {self.model.providers[provider].root
                for request in answer['allocation_requests']
                for provider in request['allocations']}

    def check_missing(self, pairs, roots):
        """Check that what a host misses keeps the service from finding it."""
        query = simulated.Query.parse(parse.urlencode(pairs))
        for root in self.roots:
            tree = self.model.tree(root)
            unmet = [(each, missing) for each in query.single_requirements
                     if (missing := each.missing(tree))]
            context = (self.case, pairs, root, unmet)
            self.assertEqual(root in roots, is_met(query, tree), context)
            self.seen['several missing'] += len(unmet) > 1
            if len(unmet) != 1:
                continue
            (requirement, missing), = unmet
            self.seen[requirement.kind] += 1
            self.seen['units'] += not missing.at_once and (
                missing.free >= missing.amount)
            self.seen[requirement.kind, self.case] += 1
            if self.seen[requirement.kind, self.case] > 2:
                # Some kinds are common, and the service is slow.
                continue
            relaxed = query.without(requirement, False)
            if relaxed.amounts and is_met(relaxed, tree):
                self.assertIn(root, self.roots_of(pairs_of(relaxed)), context)
                self.seen['found without it'] += 1
            if (missing.kind is requirements.RequirementKind.RESOURCE
                    and missing.at_once):
                self.check_free(query, missing, root, context)

    def check_free(self, query, missing, root, context):
        """As much as is free can be had, and no more."""
        for amount in missing.free, missing.free + 1:
            if 0 < amount < missing.amount:
                less = dataclasses.replace(query, amounts={
                    **query.amounts, missing.name: amount})
                if amount > missing.free or is_met(
                        less, self.model.tree(root)):
                    self.assertEqual(
                        amount == missing.free,
                        root in self.roots_of(pairs_of(less)),
                        (context, amount))
                    self.seen['free'] += 1

    def compare(self, pairs):
        """Both must answer the same; returns the candidates."""
        told = (self.case, pairs)
        (expected, expected_summaries), (got, summaries) = (
            self.candidates(pairs))
        self.assertEqual(expected, got, told)
        self.assertEqual(expected_summaries, summaries, told)
        self.check_missing(pairs, {
            self.model.providers[provider].root for candidate
            in map(json.loads, got) for provider in candidate['allocations']})
        groups = sum(key.startswith('resources_') for key, _ in pairs)
        self.seen['found' if got else 'nothing found'] += 1
        self.seen['nested'] += bool(got and groups)
        self.seen['nested without suffix'] += any(
            len(candidate['mappings']['']) > 1
            for candidate in map(json.loads, got))
        self.seen['several groups'] += bool(got and groups > 1)
        if len(got) > 1:
            # Which ones the limit leaves is not said.
            limit = self.rng.randint(1, len(got))
            self.seen['limited'] += limit < len(got)
            for answer, _ in self.candidates([*pairs, ('limit', limit)]):
                self.assertEqual(limit, len(answer), (told, limit))
                self.assertLessEqual(answer, expected, (told, limit))
        return [json.loads(text) for text in sorted(got)]

    # Claims

    def held(self, consumer):
        """What a consumer has, which must be the same in both."""
        answer = self.asked('GET', f'/allocations/{consumer}')
        expected = {provider: allocation['resources'] for provider, allocation
                    in answer['allocations'].items()}
        self.assertEqual(
            expected, self.model.allocations.get(consumer, {}), self.case)
        return expected, answer.get('consumer_generation')

    def put(self, consumer, allocations):
        """Let a consumer have this at the service; returns whether it may."""
        status, data = self.service('PUT', f'/allocations/{consumer}', {
            'allocations': {provider: {'resources': amounts} for
                            provider, amounts in allocations.items()},
            'project_id': 'p', 'user_id': 'u',
            'consumer_generation': self.held(consumer)[1]})
        self.assertIn(status, (204, 409), data)
        return status == 204

    def claim(self, consumer, wanted):
        """Claim in both what is not held yet; return whether it had room."""
        held, _ = self.held(consumer)
        expected = self.put(consumer, {**held, **wanted})
        got = self.model.claim_resources(
            None, consumer, {'allocations': {
                provider: {'resources': amounts}
                for provider, amounts in wanted.items()}}, 'p', 'u', '1.36')
        self.assertEqual(expected, got, (self.case, consumer, wanted))
        if got:
            self.consumers[consumer] = None
        self.held(consumer)
        return got

    def release(self, consumer):
        self.asked('DELETE', f'/allocations/{consumer}')
        self.model.delete_allocation_for_instance(None, consumer)
        self.consumers.pop(consumer, None)
        self.held(consumer)

    def claim_first(self, pairs, consumer, elsewhere=()):
        candidates = [candidate['allocations'] for candidate
                      in self.compare(pairs) if not any(
                          self.model.providers[provider].root in elsewhere
                          for provider in candidate['allocations'])]
        if not candidates:
            return False
        self.assertTrue(self.claim(consumer, self.rng.choice(candidates)))
        return True

    def change(self):
        rng = self.rng
        what = rng.choice(('claim', 'claim', 'claim', 'anything', 'move',
                           'evacuate', 'release', 'undo'))
        if what == 'undo':
            self.undo()
            return
        if what == 'claim' or not self.consumers:
            self.seen['claimed'] += self.claim_first(self.query(),
                                                     self.uuid())
            return
        consumer = rng.choice(list(self.consumers))
        if what == 'anything':
            # Whether or not there is room for it.
            provider = rng.choice(list(self.model.providers.values()))
            if provider.inventories:
                name = rng.choice(list(provider.inventories))
                self.seen['no room'] += not self.claim(self.uuid(), {
                    provider.uuid: {name: rng.randint(1, 20)}})
        elif what == 'move':
            self.move(consumer, self.uuid())
            self.seen['moved'] += 1
        elif what == 'evacuate':
            held, _ = self.held(consumer)
            trees = {self.model.providers[provider].root for provider in held}
            if self.claim_first([('resources', 'VCPU:1')], consumer, trees):
                self.leave(consumer, rng.choice(sorted(trees)))
                self.seen['evacuated'] += 1
        else:
            self.release(consumer)
            self.seen['released'] += 1

    def undo(self):
        """Take something in the model only, and give it back later."""
        pairs = self.query()
        candidates = self.compare(pairs)
        if candidates:
            allocations = self.rng.choice(candidates)['allocations']
            self.model.take(allocations)
            if self.consumers:
                self.release(self.rng.choice(list(self.consumers)))
            self.model.give(allocations)
            self.compare(pairs)
            self.seen['undone'] += 1

    def move(self, source, target):
        """Hand all over, as a move hands it to its migration."""
        held, generation = self.held(source)
        common = {'project_id': 'p', 'user_id': 'u'}
        self.asked('POST', '/allocations', {
            source: {**common, 'allocations': {},
                     'consumer_generation': generation},
            target: {**common, 'consumer_generation': None, 'allocations': {
                provider: {'resources': amounts}
                for provider, amounts in held.items()}}})
        self.model.move(source, target)
        del self.consumers[source]
        self.consumers[target] = None
        self.held(source)
        self.held(target)

    def leave(self, consumer, root):
        held, _ = self.held(consumer)
        self.assertTrue(self.put(consumer, {
            provider: amounts for provider, amounts in held.items()
            if self.model.providers[provider].root != root}))
        self.model.remove_provider(consumer, root)
        self.held(consumer)

    def fill(self):
        """Claim the same again and again, until nothing is left of it."""
        pairs = self.query()
        for number in itertools.count():
            if not self.claim_first(pairs, self.uuid()):
                self.seen['full'] += number > 0
                return
