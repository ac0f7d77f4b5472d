# SPDX-License-Identifier: Apache-2.0

from nfv_sched.ops.model.counting import document
from nfv_sched.ops.model.counting import placement_count
from nfv_sched.ops.simulator import placement
from nfv_sched.ops.simulator.placement import requirements
from nfv_sched.ops.simulator.placement import sentences
from nfv_sched.tests import base
from nfv_sched.tests import snapshots
from nfv_sched.tests.unit.ops import small_clouds

Kind = document.BindingKind


class TestGrants(base.TestCase):

    def setUp(self):
        super().setUp()
        self.placement = placement.Placement()
        self.placement.add(snapshots.provider(
            'root', {'CUSTOM_A'},
            PCPU=placement.inventory(16, max_unit=8, step_size=2, used=2),
            VCPU=placement.inventory(4, ratio=4.0),
            MEMORY_MB=placement.inventory(1000, reserved=100)))
        for number in range(2):
            self.placement.add(snapshots.provider(
                f'nic{number}', parent='root', CUSTOM_NIC=2))

    def grants(self, *queries):
        return placement_count.Grants(self.placement, [
            placement.Query.parse(query) for query in queries])

    def counts(self, found):
        granted = found.for_host('root')
        return granted.believed, granted.count

    def limit(self, name, needed, free):
        return document.HostLimit(
            Kind.RESOURCE_CLASS, name, why=sentences.shortage(
                requirements.UnmetRequirement(
                    requirements.RequirementKind.RESOURCE, (name,),
                    ((name, needed),), free=free, total=free)))

    def lacks(self, found, guests, root='root'):
        return found.lacks(root, found.for_host(root), guests)

    def test_the_scarcest(self):
        found = self.grants('resources=PCPU:2,MEMORY_MB:100')
        self.assertEqual((7, 7), self.counts(found))
        found = self.grants('resources=PCPU:2,MEMORY_MB:300')
        self.assertEqual(3, found.for_host('root').believed)

    def test_traits_and_aggregates(self):
        for query, kind in (
                ('required=CUSTOM_B', (Kind.TRAIT, 'CUSTOM_B')),
                ('required=!CUSTOM_A', (Kind.TRAIT, 'CUSTOM_A')),
                ('member_of=x', Kind.AGGREGATE)):
            found = self.grants(f'resources=PCPU:2&{query}')
            self.assertEqual(0, found.for_host('root').believed)
            self.assertEqual([kind],
                             small_clouds.kinds_of(self.lacks(found, 0)))

    def test_the_second_query(self):
        """VCPU in place of PCPU, when there is no PCPU left."""
        found = self.grants('resources=PCPU:4', 'resources=VCPU:4')
        self.assertEqual((3, 7), self.counts(found))
        self.assertEqual([], self.lacks(found, 6))
        # Those that the second query grants take no PCPU.
        self.assertEqual([self.limit('PCPU', 4, 2)], self.lacks(found, 7))

    def test_the_second_query_alone(self):
        """What it grants is not missing of the first."""
        found = self.grants('resources=PCPU:4&required=CUSTOM_B',
                            'resources=VCPU:2')
        self.assertEqual((0, 8), self.counts(found))
        self.assertEqual([(Kind.TRAIT, 'CUSTOM_B')],
                         small_clouds.kinds_of(self.lacks(found, 8)))

    def test_more_guests_than_granted(self):
        """Another choice of devices can give more."""
        found = self.grants('resources=PCPU:4&resources_1=CUSTOM_NIC:2')
        self.assertEqual((2, 2), self.counts(found))
        self.assertEqual([], self.lacks(found, 2))
        self.assertEqual([self.limit('PCPU', 4, 2)], self.lacks(found, 3))

    def test_the_model_stays_as_it_is(self):
        before = {name: dict(each.used)
                  for name, each in self.placement.providers.items()}
        for query in ('resources=PCPU:2', 'resources=PCPU:2&'
                      'resources_1=CUSTOM_NIC:1', 'resources=CUSTOM_NIC:1'):
            found = self.grants(query)
            granted = found.for_host('root')
            found.lacks('root', granted, granted.count)
            self.assertEqual(before, {
                name: dict(each.used)
                for name, each in self.placement.providers.items()})

    def test_devices(self):
        found = self.grants('resources=PCPU:2&resources_1=CUSTOM_NIC:1&'
                            'resources_2=CUSTOM_NIC:1&group_policy=none')
        self.assertFalse(found.simple)
        self.assertEqual(2, found.for_host('root').believed)
        scratch = self.placement.copy('root')
        scratch.take(placement.allocations_of(
            next(found.offers(scratch, 'root'))))
        self.assertEqual(2, found.for_host('root').count)
        self.assertEqual({}, self.placement.providers['nic0'].used)

    def add(self, name, amount, *traits):
        self.placement.add(snapshots.provider(
            name, traits, parent='root', VGPU=amount))

    def test_nested_class(self):
        self.add('gpu0', 3, 'CUSTOM_G')
        self.add('gpu1', 2)
        for query, count, lack in (
                ('VGPU:1', 5, '1 VGPU needed, 0 free'),
                ('VGPU:2', 2, '2 VGPU needed, 1 free'),
                ('VGPU:4', 0, '4 VGPU are not granted at once'),
                ('VGPU:1&required=!CUSTOM_G', 2, '1 VGPU needed, 0 free'),
                ('VGPU:1&required=CUSTOM_G', 3,
                 'no providers in the host that together have VGPU=1 and '
                 'the traits asked for'),
                ('VGPU:1&required=CUSTOM_B', 0,
                 'without the trait CUSTOM_B')):
            found = self.grants(f'resources=PCPU:2,{query}')
            self.assertEqual((count, count), self.counts(found), query)
            self.assertEqual([lack], [
                each.why for each in self.lacks(found, count)], query)
        self.assertTrue(found.simple)
        self.assertEqual({}, self.placement.providers['gpu0'].used)

    def test_nested_class_in_parts(self):
        """Each of two providers has one left."""
        for name in 'gpu0', 'gpu1':
            self.add(name, 3)
        found = self.grants('resources=PCPU:2,VGPU:2')
        self.assertEqual((2, 2), self.counts(found))
        self.assertEqual(
            ['2 VGPU needed from one provider, 2 free in all'],
            [each.why for each in self.lacks(found, 2)])

    def test_nested_class_that_is_forbidden(self):
        self.add('gpu0', 3, 'CUSTOM_G')
        found = self.grants('resources=PCPU:2,VGPU:1&required=!CUSTOM_G')
        self.assertEqual((0, 0), self.counts(found))
        self.assertEqual(['with the forbidden trait CUSTOM_G'], [
            each.why for each in self.lacks(found, 0)])

    def test_the_compute_node_is_full_first(self):
        self.add('gpu0', 9)
        found = self.grants('resources=PCPU:2,VGPU:1')
        self.assertEqual((7, 7), self.counts(found))
        self.assertEqual([(Kind.RESOURCE_CLASS, 'PCPU')],
                         small_clouds.kinds_of(self.lacks(found, 7)))

    def test_unknown_host(self):
        found = self.grants('resources=PCPU:2')
        self.assertEqual(0, found.for_host('other').believed)
        self.assertEqual([Kind.PLACEMENT], small_clouds.kinds_of(
            self.lacks(found, 0, 'other')))
