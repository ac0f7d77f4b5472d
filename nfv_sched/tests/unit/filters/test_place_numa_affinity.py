# SPDX-License-Identifier: Apache-2.0
"""The filter of places."""

from nfv_sched.filters import place_numa_affinity
from nfv_sched.tests import outcomes
from nfv_sched.tests.unit import clouds
from nfv_sched.tests.unit.filters import base

AT = outcomes.AT
AWAY = outcomes.AWAY_FROM


class TestNotEnabled(base.PlaceTestCase):
    def test_rule_without_its_filter(self):
        """Nobody keeps it, as nobody was asked to."""
        host = self.host(osd=(0,))
        others = self.filters[:3] + self.filters[4:]
        self.assertEqual([0], self.placed(
            host, self.spec({f'{AWAY}osd': 'strict'}), others))


class TestPlaceNUMAAffinityFilter(base.PlaceTestCase):

    def test_requests_that_it_looks_at(self):
        for looked, spec in (
                (False, clouds.spec()), (False, clouds.spec('strict')),
                *((True, self.spec({f'{key}osd': value}))
                  for key in (AT, AWAY) for value in ('strict', 'prefer'))):
            self.assertEqual(looked, base.looks_at(
                place_numa_affinity.PlaceNUMAAffinityFilter(), spec))
