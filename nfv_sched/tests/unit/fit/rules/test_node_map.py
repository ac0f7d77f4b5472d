# SPDX-License-Identifier: Apache-2.0
"""Guest nodes on given host nodes."""

from nfv_sched.fit.numa import rule as numa_rule
from nfv_sched.fit.rules import node_map
from nfv_sched.tests import strategies
from nfv_sched.tests.unit import clouds
from nfv_sched.tests.unit.filters import base
from nfv_sched.tests.unit.fit.numa import base as numa_base
from nfv_sched.tests.unit.fit.rules import base as rules_base


class TestNodeMapping(base.FilterTestCase):
    """Guest nodes on named host nodes, or a refusal."""

    def test_order_of_interchangeable_nodes(self):
        two = clouds.guest(cells=2)
        host = clouds.host()
        self.assertEqual(['host1'], self.passing(
            [host], clouds.spec(nodes={0: 0, 1: 1}, cells=2)))
        self.assertEqual([0, 1], self.node_of(host, two))
        # Nova puts them in the host's order; labels cannot turn them round.
        self.assertIn('change places', self.refusal(
            [clouds.host()], clouds.spec(nodes={0: 1, 1: 0}, cells=2)))
        self.assertIn('change places', self.refusal(
            [clouds.host(nodes=4)], clouds.spec(nodes={0: 2}, cells=2)))

    def test_held_by_capacity(self):
        # Guest node 0 has more vCPUs than host node 0 has CPUs.
        topology = clouds.host_topology(cpus=14)
        topology.cells[0].pcpuset = set(range(1, 14))
        guest = clouds.guest(cells=2, vcpus=14)
        guest.cells[1].pcpuset = set(range(14, 27))
        host = strategies.host_state(topology)
        spec = strategies.request_spec(
            guest, None, {'nfv:numa_node.0': '1', 'nfv:numa_node.1': '0'})
        self.assertEqual(['host1'], self.passing([host], spec))
        self.assertEqual([1, 0], self.node_of(host, guest))

    def test_absent_nodes(self):
        self.assertIn('host NUMA node 7 needed', self.refusal(
            [clouds.host()], clouds.spec(nodes={0: 7})))
        self.assertIn('the server has 1 NUMA node', self.refusal(
            [clouds.host()], clouds.spec(nodes={1: 0})))


class TestRule(base.FilterTestCase):
    def rule(self, **kwargs):
        found, = rules_base.rules_of(clouds.spec(**kwargs))
        self.assertIsInstance(found, node_map.NodeMapRule)
        return found

    def test_of(self):
        rule = self.rule(cells=2, nodes={1: 0}, extra_specs={
            'hw:numa_node.0': '3'})
        self.assertEqual(((0, 3), (1, 0)), rule.pairs)
        self.assertEqual('hw:numa_node.0=3, nfv:numa_node.1=0', rule.text)
        self.assertTrue(rule.strict)

    def test_broken(self):
        rule = self.rule(cells=2, nodes={1: 0})
        guest_on_host = numa_base.guest_on_host(numa_base.evaluation(
            clouds.host_topology(), clouds.guest(cells=2)))
        for chosen, said in (
                ((1, 0), None),
                ((0, 1), 'nfv:numa_node.1=0: host NUMA node 0 needed, it is '
                         'on 1')):
            broken = rule.violation_reason((0b01,), guest_on_host,
                                           numa_rule.Pinning(chosen, ((), ())))
            self.assertEqual(said, broken and str(broken))

    def test_always_where_nova_may_mistake_guest_nodes(self):
        """Though the mapped one fits its host node only."""
        host = clouds.host_topology(nodes=3)
        for cell in host.cells[1:]:
            cell.pcpuset = set(sorted(cell.pcpuset)[:2])
        found = numa_base.evaluation(host, numa_base.unlike_guest(4, 1))
        guest_on_host = numa_base.guest_on_host(found)
        rule = self.rule(cells=2, nodes={0: 0})
        facts = rule.read(found.host, guest_on_host.names)
        self.assertEqual(0b001, found.static_fits[0])
        self.assertFalse(rule.is_always_satisfied(facts, guest_on_host, []))

    def test_always(self):
        """Without labels only where Nova has no choice."""
        for nodes, cells, mapped, always in (
                (1, 1, {0: 0}, True), (2, 1, {0: 0}, False),
                (2, 2, {0: 0, 1: 1}, True), (2, 2, {0: 1}, False),
                (3, 2, {0: 0}, False)):
            found = numa_base.evaluation(
                clouds.host_topology(nodes=nodes), clouds.guest(cells=cells))
            guest_on_host = numa_base.guest_on_host(found)
            rule = self.rule(cells=cells, nodes=mapped)
            self.assertEqual(always, rule.is_always_satisfied(
                rule.read(found.host, guest_on_host.names), guest_on_host, []))
