# SPDX-License-Identifier: Apache-2.0
"""The filter of the virtual switch."""

from nfv_sched.filters import vswitch_numa_affinity
from nfv_sched.tests.unit import clouds
from nfv_sched.tests.unit.filters import base


class TestVSwitchNUMAAffinityFilter(base.FilterTestCase):

    def passes(self, host, spec):
        return vswitch_numa_affinity.VSwitchNUMAAffinityFilter().host_passes(
            host, spec)

    def test_requests_that_it_looks_at(self):
        """Node mappings, too: they are kept if this is the only filter."""
        for looked, spec in (
                (False, clouds.spec()),
                (False, clouds.spec(numa=False)),
                (False, clouds.spec(extra_specs={
                    'nfv:numa_affinity.vswitch': 'strict'})),
                (True, clouds.spec('strict')),
                (True, clouds.spec('prefer')),
                (True, clouds.spec(nodes={0: 0}))):
            self.assertEqual(
                not looked, self.passes(base.unreadable(), spec))

    def test_strict(self):
        for topology, passes in (
                ({}, True), ({'free': {0: 0}}, True),
                ({'free': {1: 1}}, False), ({'switch': None}, False)):
            host = clouds.host(**topology)
            self.assertEqual(passes, self.passes(host, clouds.spec('strict')))
            if passes:
                self.assertEqual([1], self.node_of(host))

    def test_prefer(self):
        """No host is lost by it."""
        for topology, node in (({}, 1), ({'free': {1: 1}}, 0),
                               ({'switch': None}, 0)):
            host = clouds.host(**topology)
            self.assertTrue(self.passes(host, clouds.spec('prefer')))
            self.assertEqual([node], self.node_of(host))

    def test_mapping(self):
        host = clouds.host()
        self.assertTrue(self.passes(host, clouds.spec(nodes={0: 1})))
        self.assertEqual([1], self.node_of(host))
        self.assertFalse(self.passes(
            clouds.host(free={1: 1}), clouds.spec(nodes={0: 1})))
