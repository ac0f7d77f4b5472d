# SPDX-License-Identifier: Apache-2.0
"""What the model has beyond Placement: its order, its texts, its copies.

``nfv_sched.tests.functional.test_placement_model`` compares its answers, and
what claims leave of its providers, with those of the service.
"""

from nfv_sched.ops.simulator import placement
from nfv_sched.ops.simulator.placement import requirements
from nfv_sched.ops.simulator.placement import sentences
from nfv_sched.tests import base
from nfv_sched.tests import snapshots

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
            self.placement.add(snapshots.provider(
                name, {'T'} if name == 'b' else (),
                VCPU=placement.inventory(4, ratio=2.0),
                MEMORY_MB=placement.inventory(1000, 100)))

    def candidates(self, text):
        requests, _summaries, _ = self.placement.get_allocation_candidates(
            None, _Resources(text))
        return [next(iter(r['allocations'])) for r in requests]

    def explained(self, text):
        return self.placement.explain(placement.Query.parse(text))

    def test_not_simulated(self):
        """No host is found, or Placement refuses the query."""
        self.assertEqual([], self.candidates(
            'resources=VCPU:1&resources_x=VCPU:1&same_subtree=_x'))
        for text in ('same_subtree=_a,_b', 'required_x=T', 'required=in:T,U'):
            self.assertIsNone(self.placement.get_allocation_candidates(
                None, _Resources(f'resources=VCPU:1&{text}')))

    def test_unknown_provider(self):
        self.assertFalse(self.placement.claim_resources(
            None, 'two', {'allocations': {
                'nowhere': {'resources': {'VCPU': 1}}}}, 'p', 'u', '1.36'))

    def test_copy(self):
        self.placement.allocate('server', {'a': {'VCPU': 1}})
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

    def test_change(self):
        self.placement.allocate('server', {'a': {'VCPU': 2}})
        self.placement.change('a', traits=frozenset({'T', 'U'}))
        self.assertEqual(['a'], self.candidates('resources=VCPU:1&required=U'))
        self.placement.change('a', inventories={
            'VCPU': placement.inventory(2)})
        self.assertEqual(['b'], self.candidates('resources=VCPU:1'))
        self.assertEqual({'VCPU': 2}, self.placement.tree('a')[0].used)

    def test_explanation(self):
        empty = placement.Placement()
        self.assertEqual('Placement has no hosts', empty.explain(
            placement.Query.parse('resources=VCPU:1')))
        text = self.explained('resources=VCPU:4,PCPU:1&required=T')
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
    """Providers nested in a compute node."""

    def setUp(self):
        super().setUp()
        self.placement = placement.Placement()
        self.placement.add(snapshots.provider('b', VCPU=8))
        for number in range(2):
            self.placement.add(snapshots.provider(
                f'b{number}', {f'T{number}'}, parent='b', NIC=2))

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

    def test_assumed(self):
        query = placement.Query.parse('resources=VCPU:1,NIC:9')
        self.assertEqual({'': ['b', 'b0']}, self.placement.assumed(
            'b', query)['mappings'])
