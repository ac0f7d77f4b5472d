# SPDX-License-Identifier: Apache-2.0
"""The wording of requirements, and of what is missing; asserted here only."""

from nfv_sched.base import device_shortage
from nfv_sched.ops.simulator import placement
from nfv_sched.ops.simulator.placement import requirements
from nfv_sched.ops.simulator.placement import sentences
from nfv_sched.tests import base

Kind = requirements.RequirementKind
NAMES = {'agg-1': 'racks', 'uuid-1': 'host1'}


def missing(kind, *names, **figures):
    return requirements.UnmetRequirement(kind, names, **figures)


def resource(**figures):
    return missing(Kind.RESOURCE, 'VGPU', needed=(('VGPU', 3),), **figures)


class SentencesTest(base.TimedTestCase):

    def test_titles(self):
        query = placement.Query.parse(
            'resources=VCPU:2&required=A,!B&member_of=in:agg-1,other'
            '&member_of=!agg-1&in_tree=uuid-1&resources_a=NIC:1,PORT:2'
            '&required_a=T,!U&resources_b=NIC:1&resources_c=NIC:1'
            '&group_policy=none')
        self.assertEqual([
            'VCPU=2', 'trait A', 'no trait B', 'aggregate other or racks',
            'not in aggregate racks', 'host host1',
            'NIC=1, PORT=2, trait T, no trait U', '2 times NIC=1',
            'a choice of providers for all of them'], [
                sentences.title(each, NAMES) for each
                in (*query.single_requirements, query.choice)])

    def test_what_is_missing(self):
        needed = (('NIC', 1), ('PORT', 2))
        for each, lack, clause, shortage in (
                (missing(Kind.TREE, 'uuid-1'), 'not host host1',
                 'not the host asked for', None),
                (missing(Kind.TRAIT, 'T'), 'no trait T',
                 'without the trait T', None),
                (missing(Kind.FORBIDDEN_TRAIT, 'T'), 'has trait T',
                 'with the forbidden trait T', None),
                (missing(Kind.AGGREGATE, 'agg-1', 'other'),
                 'not in aggregate other or racks',
                 'not in the availability zone or aggregate asked for',
                 'not in the aggregates asked for'),
                (missing(Kind.FORBIDDEN_AGGREGATE, 'agg-1', 'other'),
                 'in aggregate other and racks',
                 'in an aggregate kept for other traits', None),
                (resource(), 'VGPU 3 needed, has none',
                 'without enough VGPU', '3 VGPU needed, 0 free'),
                (resource(providers=1, free=2, total=2),
                 'VGPU 3 needed, 2 free', 'without enough VGPU',
                 '3 VGPU needed, 2 free'),
                (resource(providers=2, free=2, total=4),
                 'VGPU 3 needed, 2 free', 'without enough VGPU',
                 '3 VGPU needed from one provider, 4 free in all'),
                (resource(providers=1, free=2, total=2, at_once=False),
                 'VGPU 3 needed, 2 free', 'without enough VGPU',
                 '3 VGPU are not granted at once'),
                (resource(providers=1, free=9, total=9, at_once=False),
                 'VGPU 3 needed, not granted at once',
                 'not granting 3 VGPU at once',
                 '3 VGPU are not granted at once'),
                (missing(Kind.GROUP, 'T', needed=needed, forbidden=('U',)),
                 'NIC=1, PORT=2, trait T, no trait U on one provider needed, '
                 'none has it', 'without providers that together give '
                 'NIC=1, PORT=2, trait T, no trait U',
                 'NIC=1, PORT=2, trait T, no trait U on one provider needed, '
                 'none has it'),
                (missing(Kind.CHOICE, 'T', needed=needed),
                 'no providers in the host that together have NIC=1, PORT=2 '
                 'and the traits asked for',
                 'without providers that together give NIC=1, PORT=2, trait T',
                 'no providers in the host that together have NIC=1, PORT=2 '
                 'and the traits asked for')):
            self.assertEqual(
                (lack, clause, shortage or clause),
                (sentences.lack(each, NAMES), sentences.clause(each),
                 sentences.shortage(each)))

    def test_groups_that_compete(self):
        gpu = requirements.GroupRequirement.from_amounts({'VGPU': 1})
        trait = requirements.GroupRequirement.from_amounts(
            {'VGPU': 1}, required=['T'])
        reserved = device_shortage.NearMiss(
            device_shortage.MissKind.RESERVED, 2, 'VGPU')
        for groups, isolated, misses, text in (
                ((gpu,), True, (), 'VGPU=1 on one provider needed, none has '
                 'it'),
                ((gpu,) * 2, True, (reserved,),
                 '2 providers with VGPU=1 each needed, 1 has it; 2 VGPU are '
                 'reserved in Placement'),
                ((gpu, gpu, gpu), True, (),
                 '3 providers with VGPU=1 each needed, 2 have it'),
                ((gpu, gpu, trait), False, (),
                 '2 times VGPU=1 and VGPU=1, trait T needed, not all of it at '
                 'once')):
            each = requirements.UnmetRequirement(
                Kind.CHOICE, (), (('VGPU', len(groups)),), groups=groups,
                isolated=isolated, misses=misses)
            self.assertEqual(
                (text, text), (sentences.lack(each, NAMES),
                               sentences.shortage(each)))
