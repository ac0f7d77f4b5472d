# SPDX-License-Identifier: Apache-2.0
"""What provider trees miss of requirements, as values.

``nfv_sched.tests.functional.test_placement_model`` compares them with the
service.
"""

import dataclasses

from nfv_sched.ops.simulator import placement
from nfv_sched.ops.simulator.placement import requirements
from nfv_sched.tests import base
from nfv_sched.tests import snapshots

Kind = requirements.RequirementKind
Missing = requirements.UnmetRequirement


def provider(*args, **kwargs):
    return placement.Provider.start(snapshots.provider(*args, **kwargs))


ROOT = provider(
    'root', {'ROOT', 'BOTH'}, aggregates={'agg-a', 'agg-b'},
    VCPU=placement.inventory(8, ratio=2.0, used=5),
    MEMORY_MB=placement.inventory(100, 10, used=95))
GPUS = tuple([
    provider(f'gpu{number}', {f'T{number}', 'GPU'}, parent='root',
             VGPU=total, KEY=1) for number, total in enumerate((4, 2))])
TREE = (ROOT, *GPUS)


def missing_of(query, tree=TREE):
    """What a tree misses of a query, but a choice of providers."""
    return [each for requirement
            in placement.Query.parse(query).single_requirements
            if (each := requirement.missing(tree))]


class RequirementsTest(base.TimedTestCase):

    def check(self, query, *missing):
        self.assertEqual(list(missing), missing_of(query), query)

    def test_kinds(self):
        for query, kind, names in (
                ('in_tree=gpu0', Kind.TREE, ('gpu0',)),
                ('required=T', Kind.TRAIT, ('T',)),
                # The provider of the CPUs is the compute node.
                ('required=GPU', Kind.TRAIT, ('GPU',)),
                ('root_required=T0', Kind.TRAIT, ('T0',)),
                ('required=!ROOT', Kind.FORBIDDEN_TRAIT, ('ROOT',)),
                ('root_required=!ROOT', Kind.FORBIDDEN_TRAIT, ('ROOT',)),
                ('member_of=in:x,c', Kind.AGGREGATE, ('c', 'x')),
                ('member_of=!in:agg-b,x,agg-a', Kind.FORBIDDEN_AGGREGATE,
                 ('agg-a', 'agg-b'))):
            self.check(f'resources=VCPU:1&{query}', Missing(kind, names))

    def test_amounts(self):
        def of(name, amount, **figures):
            return Missing(Kind.RESOURCE, (name,), ((name, amount),),
                           **figures)

        self.check('resources=PCPU:2', of('PCPU', 2))
        # More than it has, though less than its ratio gives.
        self.check('resources=VCPU:9', of(
            'VCPU', 9, providers=1, free=11, total=11, at_once=False))
        self.check('resources=MEMORY_MB:5', of('MEMORY_MB', 5, providers=1))
        self.check('resources=VGPU:5', of(
            'VGPU', 5, providers=2, free=4, total=6, at_once=False))
        self.check('resources=VGPU:3&required=!T0', of(
            'VGPU', 3, providers=1, free=2, total=2, at_once=False))

    def test_used_up(self):
        """Of providers that together have enough, no one has."""
        tree = (ROOT, *(provider(
            f'gpu{number}', parent='root',
            VGPU=placement.inventory(4, used=used))
            for number, used in enumerate((2, 3))))
        self.assertEqual([Missing(
            Kind.RESOURCE, ('VGPU',), (('VGPU', 3),), providers=2, free=2,
            total=3)], missing_of('resources=VGPU:3', tree))

    def test_fewest_groups(self):
        """What there are providers for is left out; reserved is counted."""
        tree = (ROOT, *(provider(
            f'gpu{number}', traits, parent='root',
            VGPU=placement.inventory(2, reserved=1))
            for number, traits in enumerate(({'A'}, {'A', 'B'}))))
        for query, policy, fewest in (
                ('A B', 'isolate', None), ('A A B', 'isolate', 'A A B'),
                ('B A B', 'isolate', 'B B'), ('A A', 'none', None),
                ('A A B B', 'none', 'B B')):
            groups = '&'.join(
                f'resources_{number}=VGPU:1&required_{number}={trait}'
                for number, trait in enumerate(query.split()))
            choice = placement.Query.parse(
                f'resources=VCPU:1&group_policy={policy}&{groups}').choice
            missing = choice.missing(tree)
            self.assertEqual(fewest, missing and ' '.join(
                ' '.join(group.traits) for group in missing.groups))
            if missing:
                self.assertEqual([('VGPU', 2)], [
                    (miss.noun, miss.count) for miss in missing.misses])

    def test_units(self):
        tree = (provider('root', VCPU=placement.inventory(
            16, max_unit=8, min_unit=2, step_size=2)),)
        for amount in (1, 3, 10):
            missing, = missing_of(f'resources=VCPU:{amount}', tree)
            self.assertFalse(missing.at_once)
            self.assertEqual((amount, 16), (missing.amount, missing.free))
        self.assertEqual([], missing_of('resources=VCPU:8', tree))

    def test_the_provider_with_the_fewest_forbidden_traits(self):
        tree = (ROOT, *(provider(
            f'gpu{number}', traits, parent='root', VGPU=4)
            for number, traits in enumerate(({'A', 'B'}, {'C'}))))
        self.assertEqual(
            [Missing(Kind.FORBIDDEN_TRAIT, ('C',))],
            missing_of('resources=VGPU:1&required=!A,!B,!C', tree))

    def test_groups(self):
        amounts = (('VGPU', 3),)
        for traits, missing in (
                ('GPU,T1', Missing(Kind.GROUP, ('GPU', 'T1'), amounts)),
                ('GPU,!T0', Missing(Kind.GROUP, ('GPU',), amounts, ('T0',)))):
            self.check('resources=VCPU:1&resources_a=VGPU:3&'
                       f'required_a={traits}', missing)

    def test_groups_that_are_alike(self):
        query = placement.Query.parse(
            'resources=VCPU:1&resources_a=VGPU:1&resources_b=VGPU:1&'
            'resources_c=VGPU:1&required_c=!T0&group_policy=none')
        self.assertEqual([('_a', '_b'), ('_c',)], [
            each.suffixes for each in query.single_requirements
            if each.kind is Kind.GROUP])

    def test_choice(self):
        """Each alone can be had, all together cannot."""
        for query, missing in (
                ('resources=VCPU:1&resources_a=VGPU:3&resources_b=VGPU:2'
                 '&resources_c=VGPU:2&required_c=T1&group_policy=none',
                 Missing(Kind.CHOICE, ('T1',), (('VGPU', 7),))),
                ('resources=VCPU:1,VGPU:1&required=T0,T1',
                 Missing(Kind.CHOICE, (), (('VGPU', 1),)))):
            self.check(query)
            choice = placement.Query.parse(query).choice
            self.assertEqual(missing, dataclasses.replace(
                choice.missing(TREE), groups=()))
        self.assertIsNone(placement.Query.parse(
            'resources=VCPU:1,VGPU:1,KEY:1&required=T0,T1').choice.missing(
                TREE))

    def test_without_cpus(self):
        """The second query asks for the CPUs of both kinds as VCPU."""
        queries = [placement.Query.parse(f'resources={amounts}')
                   for amounts in ('PCPU:2,VCPU:3', 'VCPU:5')]
        for dropped, amounts in zip(queries[0].single_requirements, (
                ({'VCPU': 3}, {'VCPU': 3}), ({'PCPU': 2}, {'VCPU': 2}))):
            self.assertEqual(amounts, tuple(
                query.without(dropped, number > 0).amounts
                for number, query in enumerate(queries)))
