# SPDX-License-Identifier: Apache-2.0
"""Guests with the virtual switch."""

import itertools

from nfv_sched.fit.numa import topology
from nfv_sched.fit.rules import vswitch
from nfv_sched.tests import outcomes
from nfv_sched.tests.unit import clouds
from nfv_sched.tests.unit.filters import base
from nfv_sched.tests.unit.fit.numa import base as numa_base
from nfv_sched.tests.unit.fit.rules import base as rules_base


class TestTable(base.FilterTestCase):
    """The outcomes of vSwitch NUMA affinity, filter sets in every order."""

    def _result(self, spec, guest=None, **topology):
        outcomes = set()
        for enabled in self.orders():
            self.flags(expose_reasons='none')
            host = clouds.host(**topology)
            request = spec()
            if self.passing([host], request, enabled):
                outcomes.add(tuple(self.node_of(host, guest) or ()))
            else:
                outcomes.add('refused')
        self.assertEqual(1, len(outcomes), outcomes)
        return outcomes.pop()

    def test_control_stock_takes_node_0(self):
        host = clouds.host()
        self.assertTrue(self.stock.host_passes(host, clouds.spec()))
        self.assertEqual([0], self.node_of(host))

    def test_outcomes(self):
        for row, declares in itertools.product(
                outcomes.OUTCOMES, outcomes.Declares):
            switch = range(2 - row.wanted_nodes, 2)
            topology = {
                'switch': (
                    None if declares is outcomes.Declares.NOTHING else switch),
                'node_labels': declares is outcomes.Declares.ALL,
                # A mapped guest does not go to node 0 by itself.
                'free': {1: 1} if row.full else (
                    {0: 2} if row.mapped_away else {})}
            guest = clouds.guest(cells=row.guest_nodes)
            found = self._result(
                lambda row=row: clouds.spec(
                    cells=row.guest_nodes,
                    extra_specs=row.extra_specs(node=0)),
                guest, **topology)
            self.assertEqual(
                row.ends[declares],
                self._ends(found, row, switch, guest, topology),
                f'{row.title}; hosts declare {declares.value}: {found}')

    def _ends(self, found, row, switch, guest, topology):
        if found == 'refused':
            return outcomes.Ends.REFUSED
        if topology['switch'] is None:
            # The host has no limits: this is what Nova does by itself.
            stock = self.node_of(clouds.host(**topology), guest)
            return outcomes.Ends.ANYWHERE if list(found) == stock else None
        if set(found) <= set(switch):
            self.assertEqual(row.guest_nodes, len(set(found)))
            return outcomes.Ends.WITH
        self.assertFalse(set(found) & set(switch), found)
        return outcomes.Ends.AWAY

    def test_no_declaration(self):
        self.assertEqual('refused', self._result(
            lambda: clouds.spec('strict'), switch=None))
        self.assertEqual((0,), self._result(
            lambda: clouds.spec('prefer'), switch=None))

    def test_four_nodes_exact(self):
        two = clouds.guest(cells=2)
        spec = lambda: clouds.spec('strict', cells=2)  # noqa: E731
        self.assertEqual({2, 3}, set(self._result(
            spec, two, nodes=4, switch=(2, 3), free={2: 2, 3: 2})))
        # The switch's label alone holds one guest node, not both.
        self.assertEqual('refused', self._result(
            spec, two, nodes=4, switch=(2, 3), node_labels=False))

    def test_predicted_is_enough_if_the_operator_says_so(self):
        self.flags(strict_enforcement='predicted')
        two = clouds.guest(cells=2)
        spec = lambda: clouds.spec('strict', cells=2)  # noqa: E731
        self.assertEqual({2, 3}, set(self._result(
            spec, two, nodes=4, switch=(2, 3), node_labels=False,
            free={0: 2, 1: 2})))
        self.assertEqual('refused', self._result(
            spec, two, nodes=4, switch=(2, 3), node_labels=False,
            free={2: 2, 3: 2}))

    def test_split_switch(self):
        split = {'switch': (0, 1), 'physnets': {'foo': (0,), 'bar': (1,)}}
        self.assertEqual((1,), self._result(
            lambda: clouds.spec('strict', network=clouds.network('bar')),
            **split))
        self.assertEqual('refused', self._result(
            lambda: clouds.spec(
                'strict', network=clouds.network('foo', 'bar')), **split))
        self.assertEqual((0, 1), self._result(
            lambda: clouds.spec(
                'strict', network=clouds.network('foo', 'bar'), cells=2),
            clouds.guest(cells=2), **split))

    def test_switch_declared_by_the_networks(self):
        self.assertEqual((1,), self._result(
            lambda: clouds.spec('strict', network=clouds.network('bar')),
            switch=None, node_labels=False, physnets={'bar': (1,)}))

    def test_one_node_host_without_guest_topology(self):
        self.flags(expose_reasons='none')
        for host, expected in (
                (clouds.host(nodes=1, switch=(0,)), ['host1']),
                (clouds.host(nodes=1, switch=None), []),
                (clouds.host(nodes=2, switch=(0, 1)), [])):
            self.assertEqual(expected, self.passing(
                [host], clouds.spec('strict', numa=False)))
        self.assertEqual(['host1'], self.passing(
            [clouds.host()], clouds.spec('prefer', numa=False)))


class TestRule(base.FilterTestCase):
    def rule(self, *args, **kwargs):
        found, = rules_base.rules_of(clouds.spec(*args, **kwargs))
        self.assertIsInstance(found, vswitch.VSwitchRule)
        return found

    def test_of(self):
        for value, strict in (('strict', True), ('prefer', False)):
            for key in ('nfv:vswitch_numa_affinity',
                        'hw:wrs:vswitch_numa_affinity'):
                rule = self.rule(extra_specs={key: value})
                self.assertEqual((f'{key}={value}', strict, True), (
                    rule.text, rule.strict, rule.ours))
        self.assertEqual((), rules_base.rules_of(clouds.spec()))

    def test_networks(self):
        rule = self.rule('strict', network=clouds.network(
            'foo', tunneled=True))
        self.assertEqual(({'foo'}, True), (rule.physnets, rule.tunneled))
        # On a move nobody knows whether the tunnel is used.
        rule = self.rule('strict', move=True, network=clouds.network(
            tunneled=True))
        self.assertFalse(rule.tunneled)

    def test_read(self):
        """The label, or all networks of the request, say where it is."""
        rule = self.rule('strict', network=clouds.network(
            'foo', 'bar', tunneled=True))
        both = {'foo': (0,), 'bar': (1,)}
        for host, expected in (
                ({'switch': (0,), 'physnets': both}, 0b001),
                ({'physnets': both, 'tunnel': (2,)}, 0b111),
                ({'physnets': both}, None),
                ({'physnets': {'foo': (0,)}, 'tunnel': (2,)}, None)):
            view = topology.host_topology(clouds.host_topology(
                nodes=3, **{'switch': None, **host}))
            self.assertEqual(expected, rule.read(view, numa_base.NAMES))
        alone = self.rule('strict')
        self.assertIsNone(alone.read(view, numa_base.NAMES))
