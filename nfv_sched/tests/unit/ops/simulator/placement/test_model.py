# SPDX-License-Identifier: Apache-2.0

"""The model says what Placement would say."""

import operator

from nfv_sched.ops.simulator import placement
from nfv_sched.ops.simulator.placement import requirements
from nfv_sched.ops.simulator.placement import sentences
from nfv_sched.tests import base

Kind = requirements.RequirementKind
_ANY = 'group_policy=none'


class _Resources:
    def __init__(self, text):
        self.text = text

    def to_querystring(self):
        return self.text


class PlacementTestCase(base.TimedTestCase):

    def setUp(self):
        super().setUp()
        self.placement = placement.Placement()
        for name in 'ab':
            self.placement.add(placement.Provider(
                name, name, {'VCPU': placement.Inventory(4, 0, 2.0),
                             'MEMORY_MB': placement.Inventory(1000, 100)},
                {'T'} if name == 'b' else set(), {f'agg-{name}'}))

    def candidates(self, text):
        requests, summaries, _ = self.placement.get_allocation_candidates(
            None, _Resources(text))
        self.assertEqual(len(requests), len(summaries))
        return [next(iter(r['allocations'])) for r in requests]

    def claim(self, consumer, provider, **amounts):
        return self.placement.claim_resources(
            None, consumer, {'allocations': {
                provider: {'resources': amounts}}}, 'p', 'u', '1.36')

    def test_amounts(self):
        self.assertEqual(['a', 'b'],
                         self.candidates('resources=VCPU:4,MEMORY_MB:900'))
        # More than one provider has, though less than its overcommitment.
        self.assertEqual([], self.candidates('resources=VCPU:5'))
        self.assertEqual([], self.candidates('resources=MEMORY_MB:901'))
        self.assertEqual([], self.candidates('resources=PCPU:1'))

    def test_other_conditions(self):
        for text, found in (
                ('required=T', ['b']), ('required=!T', ['a']),
                ('root_required=!T', ['a']), ('member_of=in:agg-a,x', ['a']),
                ('in_tree=b', ['b']), ('limit=1', ['a']),
                ('limit=5&group_policy=none', ['a', 'b']),
                ('resources_x=VCPU:1&same_subtree=_x', [])):
            self.assertEqual(found,
                             self.candidates(f'resources=VCPU:1&{text}'))
        for text in ('resources=VCPU:1&same_subtree=_a,_b',
                     'resources=VCPU:1&required_x=T',
                     'resources=VCPU:1&required=in:T,U'):
            self.assertIsNone(self.placement.get_allocation_candidates(
                None, _Resources(text)))

    def test_claims_are_all_or_nothing(self):
        self.assertTrue(self.claim('one', 'a', VCPU=4, MEMORY_MB=500))
        self.assertFalse(self.claim('two', 'a', VCPU=1, MEMORY_MB=500))
        self.assertNotIn('two', self.placement.allocations)
        self.assertEqual(4, self.placement.providers['a'].free('VCPU'))
        self.assertFalse(self.claim('two', 'nowhere', VCPU=1))

    def test_moves(self):
        self.claim('server', 'a', VCPU=2)
        self.placement.move('server', 'migration')
        self.assertTrue(self.claim('server', 'b', VCPU=3))
        self.assertEqual((2, 3), tuple(
            p.used['VCPU'] for p in self.placement.providers.values()))
        self.placement.delete_allocation_for_instance(None, 'migration')
        self.assertEqual({}, self.placement.providers['a'].used)
        self.placement.delete_allocation_for_instance(None, 'server')
        self.assertEqual({}, self.placement.allocations)

    def test_evacuation_holds_both(self):
        self.claim('server', 'a', VCPU=2)
        self.claim('server', 'b', VCPU=2)
        self.placement.remove_provider('server', 'a')
        self.assertEqual({'server': {'b': {'VCPU': 2}}},
                         self.placement.allocations)
        self.assertEqual({}, self.placement.providers['a'].used)

    def test_take_and_give(self):
        """What was taken is given back whatever happens in between."""
        self.claim('server', 'a', VCPU=1)
        amounts = {'a': {'VCPU': 7, 'MEMORY_MB': 10}, 'b': {'VCPU': 3}}
        self.placement.take(amounts)
        # There is less than nothing left.
        self.placement.take({'a': {'VCPU': 2}})
        self.assertEqual([-2, 5], [
            self.placement.providers[name].free('VCPU') for name in 'ab'])
        self.assertEqual(['b'], self.candidates('resources=VCPU:1'))
        self.placement.delete_allocation_for_instance(None, 'server')
        self.placement.give(amounts)
        self.assertEqual({'VCPU': 2}, self.placement.providers['a'].used)
        self.assertEqual({}, self.placement.providers['b'].used)
        self.assertEqual({}, self.placement.allocations)

    def test_copy(self):
        self.claim('server', 'a', VCPU=1)
        copy = self.placement.copy('a')
        self.assertEqual(['a'], list(copy.providers))
        self.assertEqual({}, copy.allocations)
        copy.take({'a': {'VCPU': 2}})
        self.placement.take({'a': {'MEMORY_MB': 3}})
        self.assertEqual({'VCPU': 3}, copy.providers['a'].used)
        self.assertEqual({'VCPU': 1, 'MEMORY_MB': 3},
                         self.placement.providers['a'].used)
        self.assertEqual({}, self.placement.copy('').providers)

    def test_record(self):
        """What was read is counted as used already."""
        self.placement.record('server', {'a': {'VCPU': 2}})
        self.assertEqual({}, self.placement.providers['a'].used)
        self.assertEqual({'server': {'a': {'VCPU': 2}}},
                         self.placement.allocations)

    def test_traits_and_inventories_replaced(self):
        self.claim('server', 'a', VCPU=2)
        self.placement.set_traits('a', {'T', 'U'})
        self.assertEqual(['a'], self.candidates('resources=VCPU:1&required=U'))
        self.placement.set_inventories('a', {'VCPU': placement.Inventory(2)})
        self.assertEqual(['b'], self.candidates('resources=VCPU:1'))
        self.assertEqual({'VCPU': 2}, self.placement.tree('a')[0].used)

    def test_nobody_else_changes_it(self):
        provider = self.placement.providers['a']
        for change in (
                lambda: provider.used.update(VCPU=1),
                lambda: provider.traits.add('X'),
                lambda: provider.aggregates.add('X'),
                lambda: provider.inventories.pop('VCPU'),
                lambda: setattr(provider, 'traits', {'X'}),
                lambda: self.placement.providers.pop('a'),
                lambda: self.placement.allocations.pop('server', None)):
            self.assertRaises(AttributeError, change)
        for mapping in (provider.used, provider.inventories,
                        self.placement.providers, self.placement.allocations):
            self.assertRaises(TypeError, operator.setitem, mapping, 'X', 1)

    def test_explanation_without_hosts(self):
        empty = placement.Placement()
        self.assertEqual('Placement has no hosts', empty.explain(
            placement.Query.parse('resources=VCPU:1')))

    def test_explanation(self):
        self.claim('server', 'a', VCPU=4)
        self.candidates('resources=VCPU:4,PCPU:1&required=T')
        text = self.placement.explain(self.placement.queries[-1][0])
        self.assertIn('VCPU=4', text)
        self.assertIn('1 host without the trait T', text)
        self.assertIn('1 host without enough PCPU (most free: 0)', text)

    def test_explanation_of_several_hosts(self):
        """Each counts with what stands first, and amounts with the most."""
        self.placement.take({'a': {'VCPU': 6}})

        def of(hosts, kind, name, most=None, **figures):
            clause = sentences.clause(requirements.UnmetRequirement(
                kind, (name,), **figures))
            free = '' if most is None else f' (most free: {most})'
            return f'{hosts} {clause}{free}'

        few = {'needed': (('VCPU', 5),)}
        for query, texts in (
                ('resources=VCPU:5', [
                    of('1 host', Kind.RESOURCE, 'VCPU', 2, **few),
                    of('1 host', Kind.RESOURCE, 'VCPU', 8, free=8, **few)]),
                ('resources=VCPU:5&in_tree=a', [
                    of('1 host', Kind.RESOURCE, 'VCPU', 2, **few)]),
                ('resources=VCPU:3&in_tree=b', [
                    of('1 host', Kind.TREE, 'b')]),
                ('resources=VCPU:3&required=X,W', [
                    of('2 hosts', Kind.TRAIT, 'W')]),
                ('resources=PCPU:1', [
                    of('2 hosts', Kind.RESOURCE, 'PCPU', 0,
                       needed=(('PCPU', 1),))])):
            self.assertEqual(', '.join(texts), self.placement.explain_rest(
                placement.Query.parse(query)))


class NestedTestCase(base.TimedTestCase):
    """Suffixed groups take providers nested in a compute node."""

    def setUp(self):
        super().setUp()
        self.placement = placement.Placement()
        for name, cards in (('a', 1), ('b', 2)):
            self.placement.add(placement.Provider(
                name, name, {'VCPU': placement.Inventory(8)}, set()))
            for number in range(cards):
                self.placement.add(placement.Provider(
                    f'{name}{number}', '', {'NIC': placement.Inventory(2)},
                    {f'T{number}'}, parent=name))

    def candidates(self, text):
        requests, self.summaries, _ = self.placement.get_allocation_candidates(
            None, _Resources('resources=VCPU:1&' + text))
        for request in requests:
            self.assertTrue(self.placement.claim_resources(
                None, 'try', request, 'p', 'u', '1.36'))
            self.placement.delete_allocation_for_instance(None, 'try')
        return sorted(
            ''.join(f'{suffix}{uuids[0]}' for suffix, uuids
                    in sorted(request['mappings'].items()))
            for request in requests)

    def test_every_choice_is_a_candidate(self):
        self.assertEqual(['a_xa0', 'b_xb0', 'b_xb1'],
                         self.candidates('resources_x=NIC:1'))
        self.assertEqual({'a', 'a0', 'b', 'b0', 'b1'}, set(self.summaries))
        self.assertEqual(
            ['a_xa0_ya0', 'b_xb0_yb0', 'b_xb0_yb1', 'b_xb1_yb0',
             'b_xb1_yb1'],
            self.candidates(f'resources_x=NIC:1&resources_y=NIC:1&{_ANY}'))
        self.assertEqual(
            ['b_xb0_yb1', 'b_xb1_yb0'],
            self.candidates('resources_x=NIC:1&resources_y=NIC:1'
                            '&group_policy=isolate'))

    def test_order(self):
        query = placement.Query.parse('resources=VCPU:1&resources_x=NIC:1'
                                      f'&resources_y=NIC:1&in_tree=b&{_ANY}')

        def orders(find):
            return {tuple([tuple([uuid for uuid, in (
                each['mappings'][f'_{suffix}'] for suffix in 'xy')])
                for each in find()]) for _ in range(30)}

        one, = orders(lambda: self.placement.candidates('b', query))
        self.assertEqual((('b0', 'b0'), ('b0', 'b1'), ('b1', 'b0'),
                          ('b1', 'b1')), one)
        self.assertGreater(
            len(orders(lambda: self.placement.answer(query)['b'])), 1)
        self.placement.shuffled = False
        self.assertEqual(
            {one}, orders(lambda: self.placement.answer(query)['b']))

    def test_summaries(self):
        self.placement.add(placement.Provider(
            'a-books', '', {'PORT': placement.Inventory(9, 2),
                            'RULE': placement.Inventory(5)}, {'T'},
            parent='a'))
        self.placement.claim_resources(None, 'server', {'allocations': {
            'a-books': {'resources': {'PORT': 3}}}}, 'p', 'u', '1.36')
        self.candidates('resources_x=NIC:1&in_tree=a')
        self.assertEqual({'a', 'a0', 'a-books'}, set(self.summaries))
        self.assertEqual({
            'resources': {'PORT': {'capacity': 7, 'used': 3},
                          'RULE': {'capacity': 5, 'used': 0}},
            'traits': ['T'], 'parent_provider_uuid': 'a',
            'root_provider_uuid': 'a'}, self.summaries['a-books'])
        self.assertEqual(1, self.placement.queries[-1][1])

    def test_groups_share_what_a_provider_has(self):
        self.assertEqual(
            ['b_xb0_yb1', 'b_xb1_yb0'],
            self.candidates(f'resources_x=NIC:2&resources_y=NIC:1&{_ANY}'))
        self.assertEqual([], self.candidates(
            'resources_x=NIC:2&resources_y=NIC:1&resources_z=NIC:2'
            f'&{_ANY}'))
        text = self.placement.explain(self.placement.queries[-1][0])
        self.assertIn('2 times NIC=2', text)
        self.assertIn('2 hosts without providers that together give NIC=5',
                      text)

    def test_traits_and_limit(self):
        self.assertEqual(['b_xb1'],
                         self.candidates('resources_x=NIC:1&required_x=T1'))
        self.assertEqual(1, len(self.candidates(
            'resources_x=NIC:1&in_tree=b&limit=1')))

    def test_a_host_is_given_back_with_all_of_its_providers(self):
        request = self.placement.get_allocation_candidates(
            None, _Resources('resources=VCPU:1&resources_x=NIC:1'
                             '&in_tree=b'))[0][0]
        self.placement.claim_resources(None, 'server', request, 'p', 'u', '1')
        self.assertEqual(2, len(self.placement.allocations['server']))
        self.placement.remove_provider('server', 'b')
        self.assertEqual({}, self.placement.allocations)
        for provider in self.placement.providers.values():
            self.assertEqual({}, provider.used)


class NestedClassTestCase(base.TimedTestCase):
    """A class that only nested providers have is taken from one of them."""

    def setUp(self):
        super().setUp()
        self.placement = placement.Placement()
        self.placement.shuffled = False
        for name, cards in (('a', 1), ('b', 2)):
            self.placement.add(placement.Provider(
                name, name, {'VCPU': placement.Inventory(8)}, {'ROOT'}))
            for number in range(cards):
                self.placement.add(placement.Provider(
                    f'{name}{number}', '', {'VGPU': placement.Inventory(2)},
                    {f'T{number}'}, parent=name))

    def candidates(self, text):
        requests, _summaries, _ = self.placement.get_allocation_candidates(
            None, _Resources(text))
        return requests

    def given(self, text):
        found = []
        for request in self.candidates(f'resources=VCPU:1,VGPU:1&{text}'):
            self.assertEqual(request['mappings'][''],
                             list(request['allocations']))
            found.append(''.join(request['mappings']['']))
        return found

    def test_each_provider_is_a_choice(self):
        self.assertEqual(['aa0', 'bb0', 'bb1'], self.given(''))
        self.assertEqual(['bb0'], self.given('in_tree=b&limit=1'))
        self.assertEqual({
            'allocations': {'a': {'resources': {'VCPU': 1}},
                            'a0': {'resources': {'VGPU': 2}}},
            'mappings': {'': ['a', 'a0']}},
            self.candidates('resources=VGPU:2,VCPU:1')[0])

    def test_amounts(self):
        """One provider must give all of a class."""
        self.assertEqual([], self.candidates('resources=VCPU:1,VGPU:3'))
        text = self.placement.explain(self.placement.queries[-1][0])
        self.assertIn('2 hosts without enough VGPU (most free: 2)', text)

    def test_exhausted(self):
        for number in range(2):
            self.assertTrue(self.placement.claim_resources(
                None, f'server{number}', self.candidates(
                    'resources=VCPU:1,VGPU:1&in_tree=a')[0],
                'p', 'u', '1.36'))
        self.assertEqual([], self.given('in_tree=a'))
        self.assertIn('1 host without enough VGPU (most free: 0)',
                      self.placement.explain(self.placement.queries[-1][0]))
        self.placement.remove_provider('server0', 'a')
        self.assertEqual(['aa0'], self.given('in_tree=a'))

    def test_traits(self):
        """All that give resources have the required ones together."""
        self.assertEqual(['aa0', 'bb0'], self.given('required=T0'))
        self.assertEqual(['bb1'], self.given('required=ROOT,T1'))
        self.assertEqual(['bb1'], self.given('required=!T0'))
        self.assertEqual([], self.given('required=T0,T1'))
        self.assertEqual([], self.given('required=!ROOT'))
        self.assertEqual([], self.given('required=T2'))
        self.assertEqual([], self.given('required=!T0&in_tree=a'))
        self.assertIn('1 host with the forbidden trait T0',
                      self.placement.explain(self.placement.queries[-1][0]))

    def test_traits_of_the_root(self):
        self.assertEqual([], self.given('root_required=T0'))
        self.assertEqual(['aa0', 'bb0', 'bb1'],
                         self.given('root_required=ROOT,!T0'))
        self.assertEqual([], self.given('root_required=!ROOT'))

    def test_traits_of_what_gives_nothing(self):
        self.assertEqual([], self.candidates(
            'resources=VCPU:1&required=T0'))
        self.assertEqual([], self.candidates(
            'resources=VGPU:1&required=ROOT'))
        found = self.candidates('resources=VGPU:1&required=!ROOT&in_tree=a')
        self.assertEqual([{
            'allocations': {'a0': {'resources': {'VGPU': 1}}},
            'mappings': {'': ['a0']}}], found)

    def test_several_classes(self):
        self.placement.add(placement.Provider(
            'a1', '', {'VGPU': placement.Inventory(1),
                       'KEY': placement.Inventory(1)}, {'T1'}, parent='a'))
        text = 'resources=VCPU:1,VGPU:1,KEY:1'
        self.assertEqual(
            [['a', 'a0', 'a1'], ['a', 'a1']],
            [found['mappings'][''] for found in self.candidates(text)])
        self.assertEqual(
            [['a', 'a0', 'a1']],
            [found['mappings'][''] for found
             in self.candidates(f'{text}&required=T0,T1')])

    def test_groups_with_suffixes(self):
        """They share what is left, and are isolated among themselves."""
        text = 'resources=VCPU:1,VGPU:1&resources_x=VGPU:1&in_tree=a'
        found, = self.candidates(f'{text}&group_policy=isolate')
        self.assertEqual({'': ['a', 'a0'], '_x': ['a0']}, found['mappings'])
        self.assertEqual({'VGPU': 2}, found['allocations']['a0']['resources'])
        self.assertEqual([], self.candidates(
            f'{text}&resources_y=VGPU:1&{_ANY}'))

    def test_what_the_root_has_is_taken_from_it(self):
        self.placement.add(placement.Provider(
            'a1', '', {'VCPU': placement.Inventory(9)}, set(), parent='a'))
        self.assertEqual(['aa0'], self.given('in_tree=a'))
        self.assertEqual([], self.candidates('resources=VCPU:9'))

    def test_assumed(self):
        query = placement.Query.parse('resources=VCPU:1,VGPU:9')
        self.assertEqual({'': ['b', 'b0']}, self.placement.assumed(
            'b', query)['mappings'])
