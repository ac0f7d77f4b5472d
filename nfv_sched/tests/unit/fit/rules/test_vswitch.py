# SPDX-License-Identifier: Apache-2.0
"""Guests with the virtual switch."""

from nfv_sched.fit.numa import topology
from nfv_sched.fit.rules import vswitch
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
