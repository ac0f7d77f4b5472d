# SPDX-License-Identifier: Apache-2.0
"""The weigher of places."""

from nfv_sched.tests import outcomes
from nfv_sched.tests.unit import clouds
from nfv_sched.tests.unit.filters import base
from nfv_sched.weights import place_numa_affinity as place_weigher

AT = outcomes.AT
AWAY = outcomes.AWAY_FROM


class TestWeigher(base.PlaceTestCase):

    def weight(self, specs, topology, **request):
        """Before and after the filters have run."""
        weigher = place_weigher.PlaceNUMAAffinityWeigher()
        host, spec = self.host(**topology), self.spec(specs, **request)
        before, = clouds.weigh(weigher, spec, host)
        self.assertEqual(['host1'], self.passing([host], spec))
        self.assertEqual([before], clouds.weigh(weigher, spec, host))
        return before

    def test_values(self):
        at, away = {f'{AT}osd': 'prefer'}, {f'{AWAY}osd': 'prefer'}
        both, strict = {f'{AT}nvme': 'prefer', **away}, {
            f'{AWAY}osd': 'strict'}
        for specs, topology, weight in (
                (at, {'osd': (1,)}, 1.0),
                (at, {'osd': (1,), 'free': {1: 1}}, 0.0),
                (at, {}, 0.0),
                (at, {'osd': (0, 1)}, 1.0),
                (away, {'osd': (0,)}, 1.0),
                (away, {'osd': (0,), 'free': {1: 1}}, 0.0),
                (away, {'osd': (0, 1)}, 0.0),
                (away, {}, 1.0),
                (both, {'nvme': (1,), 'osd': (0,)}, 1.0),
                (both, {'nvme': (0,), 'osd': (0,)}, 0.5),
                (both, {'nvme': (0,), 'osd': (0, 1)}, 0.5),
                (both, {'osd': (0, 1)}, 0.0),
                # Strict keys are not weighed.
                (strict, {'osd': (0,)}, 0.0),
                ({**strict, f'{AT}nvme': 'prefer'},
                 {'osd': (0,), 'nvme': (1,)}, 1.0),
                ({}, {'osd': (0,)}, 0.0)):
            self.assertEqual(weight, self.weight(specs, topology))

    def test_part_of_the_guest(self):
        for key in (f'{AT}osd', f'{AWAY}osd'):
            self.assertEqual(0.5, self.weight(
                {key: 'prefer'}, {'osd': (1,)}, cells=2))
