# SPDX-License-Identifier: Apache-2.0
"""What all rules have in common, and how they are found."""

import dataclasses

from nfv_sched.base import extra_specs as nfv_extra_specs
from nfv_sched.base import reasons
from nfv_sched.fit.numa import candidates
from nfv_sched.fit.numa import decide
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


@dataclasses.dataclass(frozen=True, eq=False)
class LastCellRule(numa_rule.CellsRule):
    """Guest cells on the last host cell, which has a label."""

    name = 'last'
    filters = ('LastFilter',)
    order = reasons.OTHERS
    noun = 'at the end'

    @classmethod
    def from_request(cls, request_parts):
        return ()

    def label(self, names):
        """One that no host declares."""
        return 'nfv_last'

    def read(self, host, names):
        return 1 << len(host.cells) - 1 if len(host.cells) != 3 else None

    def undeclared_reason(self):
        return reasons.Reason(self.order, self.text, 'an end needed')

    def node_map_reason(self, node, key, nodes):
        return reasons.Reason(
            self.order, self.text, f'not {node} for {key}', f'{nodes}')


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


class TestCellsRule(test_decide.DecideTestCase):
    def test_strict(self):
        decision = self.decide(LastCellRule('last'))
        self.assertAccepted(['nfv_node1'], decision, ['nfv_node1'])
        self.assertEqual({'last': 1.0}, decision.degrees)

    def test_no_label(self):
        """It is not its own, so it is nothing to the claim."""
        self.assertFalse(
            self.decide(LastCellRule('last'), node_labels=False,
                        switch=None).accepted)
        self.assertAccepted(
            ['nfv_last'], self.decide(
                LastCellRule('last'), node_labels=False, switch=None,
                physnets={'nfv_last': (1,)}), ['nfv_last'])

    def test_host_that_does_not_say(self):
        self.assertRefused(
            ('LastFilter',), 'last: an end needed',
            self.decide(LastCellRule('last'), nodes=3))
        decision = self.decide(LastCellRule('last', False), nodes=3)
        self.assertAccepted([], decision)
        self.assertEqual({'last': 0.0}, decision.degrees)

    def test_no_room(self):
        for host, guest, text in (
                ({'free': {1: 1}}, clouds.guest(),
                 '2 dedicated CPUs on one NUMA node at the end needed, '
                 '1 free'),
                ({}, clouds.guest(cells=2),
                 '2 host NUMA nodes at the end needed, has 1')):
            self.assertRefused(
                ('LastFilter',), f'last: {text}',
                self.decide(LastCellRule('last'), guest=guest, **host))

    def test_apart(self):
        """What puts a guest cell elsewhere is named."""
        mapped, = rules.from_request(request_parts({'nfv:numa_node.0': '0'}))
        self.assertRefused(
            ('LastFilter',), 'last: not 0 for nfv:numa_node.0=0, [1]',
            self.decide(mapped, LastCellRule('last')))

    def test_degree(self):
        rule = LastCellRule('last', False)
        for chosen, facts, degree in (
                ((1,), 0b10, 1.0), ((0,), 0b10, 0.0), ((0, 1), 0b10, 0.5),
                ((0, 1), None, 0.0)):
            self.assertEqual(degree, rule.degree(facts, None, chosen))

    def test_kept(self):
        rule = LastCellRule('last')
        for chosen, facts, kept in (
                ((1,), 0b10, True), ((0,), 0b10, False),
                ((0, 1), 0b10, False), ((1, 2), 0b110, True)):
            self.assertEqual(kept, rule.is_satisfied(facts, None, chosen))

    def test_broken(self):
        """By a guest that runs already."""
        rule = LastCellRule('last=strict')
        found = numa_base.evaluation(
            clouds.host_topology(), clouds.guest())
        for chosen, said in (
                ((1,), None),
                ((0,), 'last=strict: NUMA nodes at the end needed, it is '
                       'on 0')):
            broken = rule.violation_reason(
                0b10, numa_base.guest_on_host(found),
                numa_rule.Pinning(chosen, ((0, 1),)))
            self.assertEqual(said, broken and str(broken))

    def test_guest_without_numa_topology(self):
        """It floats over the host, which must be such a node as a whole."""
        names = numa_base.NAMES
        one, two, three = (
            numa_base.evaluation(clouds.host_topology(nodes=nodes),
                                 clouds.guest()).host
            for nodes in (1, 2, 3))
        for strict in (True, False):
            self.assertEqual(
                1.0, LastCellRule('last', strict).floating(one, names))
        for host in (None, two, three):
            self.assertEqual(
                0.0, LastCellRule('last', False).floating(host, names))
            self.assertIn('hw:numa_nodes', str(
                LastCellRule('last').floating(host, names)))


class TestFilters(tests_base.TestCase):

    def test_each_has_a_filter(self):
        """And none is taken for Nova's own rules."""
        for cls in rules.classes():
            self.assertTrue(cls.filters)
            self.assertNotEqual(decide.FIT, cls.filters)
