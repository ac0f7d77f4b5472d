# SPDX-License-Identifier: Apache-2.0
"""What the claim does with labels."""

from nova import objects

from nfv_sched.fit.numa import rule as numa_rule
from nfv_sched.fit.rules import vswitch
from nfv_sched.tests import base as tests_base
from nfv_sched.tests import strategies
from nfv_sched.tests.unit import clouds
from nfv_sched.tests.unit.filters import base
from nfv_sched.tests.unit.fit.numa import base as numa_base


class HeldLabelsTest(base.EnforcementTestCase):
    """Labels that are there whether the host as it is needs them or not."""

    def test_the_host_has_changed_since(self):
        host = clouds.host(physnets={'physnet0': [1]})
        spec = clouds.spec('strict', network=clouds.network('physnet0'))
        self.assertEqual(['host1'], self.passing([host], spec))
        host.numa_topology = clouds.host_topology(
            physnets={'physnet0': [0, 1]})
        self.assertEqual(([1], []), self.claimed(host, spec))


class IsolateTest(base.EnforcementTestCase):
    """Guests with several NUMA nodes whose vCPUs want cores of their own."""

    def spec(self, vcpus, vswitch):
        numbers = iter(range(sum(vcpus)))
        return strategies.request_spec(
            objects.InstanceNUMATopology(cells=[
                objects.InstanceNUMACell(
                    id=cell, cpuset=set(), memory=512,
                    pcpuset={next(numbers) for _ in range(count)},
                    cpu_policy='dedicated', cpu_thread_policy='isolate')
                for cell, count in enumerate(vcpus)]),
            None, {'nfv:vswitch_numa_affinity': vswitch} if vswitch else {})

    def test_strict(self):
        for nodes, switch, vcpus, passes in (
                (4, (0, 2), (2, 2), False), (4, (0, 1, 2), (1, 1, 1), False),
                (4, (0, 1, 2, 3), (2, 2), True), (3, (0, 2), (2, 2), True),
                (2, (0, 1), (2, 1), True), (3, (0, 1, 2), (1, 2), True),
                (5, (0, 1, 2, 3, 4), (1, 2), True),
                (3, (0, 1), (1, 2), False), (3, (0, 1, 2), (1, 1, 2), False)):
            host = clouds.host(nodes=nodes, switch=switch)
            spec = self.spec(vcpus, 'strict')
            if not passes:
                self.assertIn('pins no CPUs of other NUMA nodes',
                              self.refusal([host], spec))
                continue
            self.assertEqual(['host1'], self.passing([host], spec))
            placed, _devices = self.claimed(host, spec)
            self.assertLessEqual(set(placed), set(switch))


class TestClaimPredictor(tests_base.TestCase):
    def predictor(self, guest=None, groups=(), devices=None, **host):
        found = numa_base.evaluation(
            clouds.host_topology(**host), guest or clouds.guest())
        return numa_base.guest_on_host(found, devices, groups)

    def goal(self, predictor, *rules, masks=None):
        return numa_rule.Goal(
            masks or predictor.evaluation.masks,
            tuple((rule, rule.read(predictor.host, predictor.names))
                  for rule in rules))

    def test_always_within(self):
        """In every state of the host, not only in this."""
        predictor = self.predictor(nodes=3, free={0: 0, 2: 0})
        self.assertEqual((1,), predictor.predicted(frozenset()))
        for groups, cells, always in (
                ([], 0b010, False), ([], 0b111, True), ([0b010], 0b010, True),
                ([0b110], 0b010, False), ([0b110], 0b110, True)):
            self.assertEqual(always, predictor.always_within(groups, cells))

    def test_always_on(self):
        predictor = self.predictor(clouds.guest(cells=2), nodes=3)
        for groups, cells, always in (
                ([], 0b001, False), ([0b001], 0b001, True),
                ([0b001, 0b010], 0b011, True), ([0b011], 0b011, False)):
            self.assertEqual(always, predictor.always_on(groups, cells))
        self.assertTrue(self.predictor(clouds.guest(cells=2)).always_on(
            [], 0b11))

    def test_node_labels(self):
        predictor = self.predictor(nodes=3)
        for cells, expected in ((0b001, {'nfv_node0'}), (0, set()),
                                (0b110, {'nfv_node1', 'nfv_node2'})):
            self.assertEqual(expected, predictor.node_labels(cells))
        self.assertIsNone(self.predictor(node_labels=False).node_labels(0b01))
        # A label that two nodes carry is none of either.
        self.assertIsNone(self.predictor(
            node_labels=False,
            physnets={'nfv_node1': (0, 1)}).node_labels(0b10))

    def test_label_sets(self):
        """The least first; the switch may be there by chance."""
        predictor = self.predictor(nodes=3, switch=(1,))
        found = list(predictor.label_sets(self.goal(
            predictor, masks=[0b110])))
        self.assertEqual([set(), {'nfv_node1'}, {'nfv_node2'},
                          {'nfv_vswitch'}], found)

    def test_label_sets_of_a_strict_rule(self):
        """First with its label in any case, then without."""
        rule = vswitch.VSwitchRule('switch')
        predictor = self.predictor(node_labels=False)
        self.assertEqual(
            [{'nfv_vswitch'}, set()],
            list(predictor.label_sets(self.goal(predictor, rule))))
        preferred = vswitch.VSwitchRule('switch', strict=False)
        self.assertEqual(
            [set(), {'nfv_vswitch'}],
            list(predictor.label_sets(self.goal(predictor, preferred))))

    def test_pins_stay(self):
        """Under ``isolate``; others are not recorded when they stray."""
        isolated = clouds.guest(cells=2)
        for cell in isolated.cells:
            cell.cpu_thread_policy = 'isolate'
        exact = frozenset(['nfv_node1', 'nfv_node3'])
        for nodes, guest, labels, kept in (
                (4, clouds.guest(cells=2), exact, True),
                (4, isolated, exact, False),
                (4, isolated, frozenset(['nfv_vswitch']), True),
                (2, isolated, frozenset(['nfv_node1']), True)):
            predictor = self.predictor(guest, nodes=nodes)
            self.assertEqual(kept, predictor.keeps_pins(labels))
            self.assertEqual(not kept, predictor.pins_astray)
