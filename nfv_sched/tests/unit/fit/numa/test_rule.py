# SPDX-License-Identifier: Apache-2.0
"""What all rules have in common, and how they are found."""

import dataclasses

from nfv_sched.base import extra_specs as nfv_extra_specs
from nfv_sched.base import reasons
from nfv_sched.fit.numa import candidates
from nfv_sched.fit.numa import rule as numa_rule
from nfv_sched.fit import rules
from nfv_sched.tests import base as tests_base
from nfv_sched.tests.unit import clouds
from nfv_sched.tests.unit.fit.numa import base as numa_base
from nfv_sched.tests.unit.fit.numa import test_decide


class NamesTest(tests_base.TestCase):
    def test_nodes(self):
        for prefix in ('nfv_node', 'n', ''):
            names = numa_rule.Names('nfv_vswitch', prefix)
            for number in (0, 7, 10, 127):
                label = names.of_node(number)
                self.assertEqual(f'{prefix}{number}', label)
                self.assertEqual(number, names.node(label))

    def test_no_nodes(self):
        names = numa_rule.Names('nfv_vswitch', 'nfv_node')
        for label in ('nfv_node', 'nfv_nodes', 'nfv_node0x', 'nfv_node00',
                      'nfv_node-1', 'nfv_node \n1', 'nfv_node\u0661', '0',
                      'my_nfv_node0', 'nfv_vswitch', 'physnet0', ''):
            self.assertIsNone(names.node(label), label)


@dataclasses.dataclass(frozen=True, eq=False)
class BareRule(numa_rule.Rule):
    """A rule that asks for nothing."""

    name = 'bare'
    filters = ('BareFilter',)
    order = reasons.OTHERS

    @classmethod
    def from_request(cls, request_parts):
        return ()


def request_parts(extra_specs, guest=None):
    return numa_rule.RequestParts(
        nfv_extra_specs.parse(extra_specs), extra_specs, {}, guest, None, (),
        frozenset(), False, False)


@dataclasses.dataclass(frozen=True, eq=False)
class UnlikeRule(BareRule):
    """Guest cells that are not on exactly these host cells."""

    name = 'unlike'
    cells: int = 0

    def condition(self, facts, guest_on_host):
        return candidates.Condition(self.cells.__ne__, 0b11)


class TestFound(tests_base.TestCase):
    def test_classes(self):
        found = rules.classes()
        orders = [cls.order for cls in found]
        self.assertEqual(sorted(set(orders)), orders)
        self.assertGreater(orders[0], reasons.CAPACITY)
        self.assertLess(orders[-1], reasons.OTHERS)
        for cls in found:
            self.assertEqual(f'nfv_sched.fit.rules.{cls.name}', cls.__module__)
            self.assertTrue(cls.filters)

    def test_of(self):
        self.assertEqual((), rules.from_request(request_parts({})))
        self.assertEqual(
            ['nfv:numa_node.0=1', 'nfv:vswitch_numa_affinity=prefer',
             'nfv:numa_affinity.osd=strict'],
            [rule.text for rule in rules.from_request(request_parts({
                'nfv:numa_affinity.osd': 'strict', 'nfv:numa_node.0': '1',
                'nfv:vswitch_numa_affinity': 'prefer'}))])

    def test_of_a_contradiction(self):
        error = self.assertRaises(
            numa_rule.RequestError, rules.from_request,
            request_parts({'nfv:shared_vcpu': '0'}))
        self.assertEqual(reasons.REQUEST, error.reason.order)
        self.assertEqual('nfv:shared_vcpu=0', error.reason.policy)
        self.assertEqual(str(error), str(error.reason))

    def test_faults(self):
        """Those of the keys alone, of whichever rule."""
        self.assertEqual([], rules.faults({'nfv:shared_vcpu': '0'}))
        self.assertEqual(
            ['nfv:shared_vcpu', 'nfv:numa_affinity.a'],
            [fault.key for fault in rules.faults(
                {'nfv:shared_vcpu': 'x', 'nfv:numa_affinity.a': 'b'})])


class TestBareRule(test_decide.DecideTestCase):
    """A rule that answers nothing changes nothing."""

    def test_decisions(self):
        for host in ({}, {'free': {0: 1}}, {'free': {0: 1, 1: 1}}):
            for strict in (True, False):
                without = self.decide(**host)
                decision = self.decide(BareRule('bare', strict), **host)
                self.assertEqual(without.accepted, decision.accepted)
                self.assertEqual((set(), {}), (
                    decision.labels, dict(decision.degrees)))

    def test_answers(self):
        guest_on_host = numa_base.guest_on_host(numa_base.evaluation(
            clouds.host_topology(), clouds.guest()))
        host, names, rule = (
            guest_on_host.host, guest_on_host.names, BareRule('bare'))
        goal = numa_rule.Goal((0b11,))
        facts = rule.read(host, names)
        self.assertEqual([], list(rule.faults({'nfv:x': 'y'})))
        self.assertEqual('', rule.where)
        self.assertEqual(4.0, rule.cpu_ratio(host, 4.0, float))
        for answer in (facts, rule.unsuitable_reason(host),
                       rule.missing_reason(facts, guest_on_host),
                       rule.condition(facts, guest_on_host),
                       rule.claim_reason(facts, guest_on_host, goal)):
            self.assertIsNone(answer)
        self.assertTrue(rule.applies(facts, guest_on_host))
        self.assertTrue(rule.is_satisfied(facts, guest_on_host, (0,)))
        self.assertTrue(rule.is_always_satisfied(facts, guest_on_host, []))
        self.assertEqual((0b11,), rule.narrow(facts, goal))
        self.assertEqual(numa_rule.Labels(), rule.labels(facts, guest_on_host))
        self.assertEqual(0.0, rule.degree(facts, guest_on_host, (0,)))
        self.assertEqual(0.0, rule.floating(None, names))
        self.assertEqual([], [*rule.partial_labels(facts, guest_on_host, goal),
                              *rule.assigned_cells(facts)])
        self.assertEqual('bare: capacity needed, none',
                         str(rule.capacity_reason(facts, guest_on_host, goal)))

    def test_needs_topology(self):
        """It is the request that lacks it."""
        rule = BareRule('bare')
        for text, said in (('', 'bare'), ('key=1', 'key=1')):
            reason = rule.needs_topology(text)
            self.assertEqual(
                f'{said}: a guest NUMA topology needed, set hw:numa_nodes',
                str(reason))
            self.assertTrue(reason.own)


class TestConditions(test_decide.DecideTestCase):
    """Rules with no more than a condition."""

    def test_claim_is_held(self):
        """Without labels, too, where no claim can miss it."""
        guest_on_host = numa_base.guest_on_host(numa_base.evaluation(
            clouds.host_topology(), clouds.guest()))
        rule = UnlikeRule('unlike', cells=0b1)
        self.assertFalse(rule.is_satisfied(None, guest_on_host, (0,)))
        self.assertTrue(rule.is_satisfied(None, guest_on_host, (1,)))
        for groups, always in (
                ([], False), ([0b1], False), ([0b10], True),
                ([0b11, 0b10], True)):
            self.assertEqual(
                always,
                rule.is_always_satisfied(None, guest_on_host, groups), groups)
        self.assertTrue(UnlikeRule('unlike', cells=0b11).is_always_satisfied(
            None, guest_on_host, []))

    def test_devices_too(self):
        """Nova's own condition is added to it."""
        given = {0: 1}, clouds.pci_request(1, 'required')
        self.assertAccepted(['nfv_node0'], self.decide(
            UnlikeRule('unlike', cells=0b10), given=given), ['nfv_node0'])
        self.assertRefused(
            ('BareFilter',), 'unlike: capacity needed, none',
            self.decide(UnlikeRule('unlike', cells=0b1), given=given))

    def test_narrow_alone(self):
        """Nothing would hold the claim."""
        def define():
            class NarrowRule(BareRule):
                def narrow(self, facts, goal):
                    return [mask & 1 for mask in goal.masks]
        error = self.assertRaises(TypeError, define)
        self.assertIn('NarrowRule', str(error))

    def test_both_are_kept(self):
        for cells, node in ((0b1, 1), (0b10, 0)):
            self.assertAccepted([f'nfv_node{node}'], self.decide(
                UnlikeRule('unlike', cells=cells)), [f'nfv_node{node}'])
        # There is no room; no labels need be tried.
        self.assertRefused(
            ('BareFilter',), 'two: capacity needed, none',
            self.decide(UnlikeRule('one', cells=0b1),
                        UnlikeRule('two', cells=0b10)))
