# SPDX-License-Identifier: Apache-2.0
"""What all weighers have in common."""

from nova.scheduler import weights as nova_weights

from nfv_sched.tests import base
from nfv_sched.tests.unit import clouds
from nfv_sched.tests.unit import test_house
from nfv_sched.weights import all_weighers
from nfv_sched.weights import base as weights_base
from nfv_sched.weights import vswitch_numa_affinity


class TestLoading(base.TestCase):

    def test_loading(self):
        self.assertEqual(
            sorted(test_house.entry_points(
                test_house.ROOT)['nfv_sched.weighers']),
            [cls.__name__ for cls in all_weighers()])

    def test_nova_loads_the_weighers(self):
        classes = nova_weights.HostWeightHandler().get_matching_classes(
            ['nova.scheduler.weights.all_weighers',
             'nfv_sched.weights.all_weighers'])
        self.assertLess(set(all_weighers()), set(classes))


class TestNothingToWeigh(base.TestCase):
    """All hosts weigh the same, and nothing raises."""

    def setUp(self):
        super().setUp()
        self.weigher = vswitch_numa_affinity.VSwitchNUMAAffinityWeigher()

    def weights(self, spec, *hosts):
        return clouds.weigh(self.weigher, spec, *hosts)

    def test_nothing_to_choose(self):
        """A wrong request, no room, or no hosts."""
        full = clouds.host(free={0: 0, 1: 0})
        for vswitch, hosts in (
                ('nonsense', [clouds.host(), clouds.host()]),
                ('prefer', [full]), ('prefer', [])):
            self.assertEqual([0.0] * len(hosts), self.weights(
                clouds.spec(vswitch), *hosts))

    def test_request_that_cannot_be_read(self):
        self.assertEqual([0.0], self.weights('nonsense', clouds.host()))
        self.assertIn('cannot be read', self.log.output)

    def test_host_that_cannot_be_read(self):
        """The others are weighed."""
        bad = clouds.host('bad')
        bad.numa_topology = 'nonsense'
        self.assertEqual([0.0, 1.0], self.weights(
            clouds.spec('prefer'), bad, clouds.host()))
        self.assertIn('Host bad cannot be weighed', self.log.output)


class TestRange(base.TestCase):

    def test_beyond(self):
        """What a weigher says is kept within what it promises Nova."""
        class Weigher(weights_base.NFVHostWeigher):
            multiplier = 'vswitch_numa_affinity_weight_multiplier'
            rule = vswitch_numa_affinity.VSwitchNUMAAffinityWeigher.rule
            said = 0.0

            def weigh(self, host_state, found, request, rules, decision):
                return self.said

        weigher = Weigher()
        for said, weight in ((0.25, 0.25), (-3.0, 0.0), (5.0, 1.0)):
            weigher.said = said
            self.assertEqual([weight], clouds.weigh(
                weigher, clouds.spec('prefer'), clouds.host()))

    def test_not_normalised(self):
        """Hosts that are as good are not made worse."""
        handler = nova_weights.HostWeightHandler()
        weigher = vswitch_numa_affinity.VSwitchNUMAAffinityWeigher()
        for hosts, weights in (
                (['near', 'near'], [1000.0, 1000.0]),
                (['far', 'far'], [0.0, 0.0])):
            found = handler.get_weighed_objects([weigher], [
                clouds.host(free={1: 1} if name == 'far' else {})
                for name in hosts], clouds.spec('prefer'))
            self.assertEqual(weights, [each.weight for each in found])
