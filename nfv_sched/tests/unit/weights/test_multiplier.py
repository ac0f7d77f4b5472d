# SPDX-License-Identifier: Apache-2.0
"""By how much weights count."""

import threading

import fixtures
from nova import objects

from nfv_sched.tests import base
from nfv_sched.tests.unit import clouds
from nfv_sched.weights import all_weighers


class TestMultipliers(base.TestCase):

    def test_each_weigher(self):
        """An option of the name that aggregates use, too."""
        for number, cls in enumerate(all_weighers()):
            name, host, weigher = cls.multiplier, clouds.host(), cls()
            host.aggregates = []
            for value in (base.CONF.nfv_sched[name], 2.25 + number):
                self.flags(**{name: value})
                clouds.weigh(weigher, clouds.spec())
                self.assertEqual(value, weigher.weight_multiplier(host))
            host.aggregates = [objects.Aggregate(metadata={name: '7.5'})]
            clouds.weigh(weigher, clouds.spec())
            self.assertEqual(7.5, weigher.weight_multiplier(host))

    def test_several_aggregates(self):
        """The lowest counts, as with Nova's own weighers, if it is finite.

        Others would leave all hosts without order.
        """
        self.useFixture(fixtures.FakeLogger('nova.scheduler.utils'))
        for cls in all_weighers():
            default = base.CONF.nfv_sched[cls.multiplier]
            for expected, *values in (
                    (-3.0, '4', '-3', '9'), (default, 'much'),
                    *((default, value, value)
                      for value in ('nan', 'inf', '-inf', '1e999'))):
                host = clouds.host()
                host.aggregates = [
                    objects.Aggregate(metadata={cls.multiplier: value})
                    for value in values]
                self.assertEqual(expected, cls().weight_multiplier(host))

    def test_requests_of_two_threads(self):
        """Each request keeps the multipliers that it has begun with."""
        for cls in all_weighers():
            weigher, host = cls(), clouds.host()
            host.aggregates = []
            self.flags(**{cls.multiplier: 2.0})
            clouds.weigh(weigher, clouds.spec(), host)
            # Another request comes after a reload of nova.conf.
            self.flags(**{cls.multiplier: 3.0})
            multipliers = []

            def schedule():
                late = clouds.host()
                late.aggregates = []
                clouds.weigh(weigher, clouds.spec(), late)
                multipliers.append(weigher.weight_multiplier(late))

            thread = threading.Thread(target=schedule)
            thread.start()
            thread.join()
            self.assertEqual([3.0], multipliers)
            self.assertEqual(2.0, weigher.weight_multiplier(host))
            # As Nova does for the next server of the first request.
            clouds.weigh(weigher, clouds.spec(), host)
            self.assertEqual(3.0, weigher.weight_multiplier(host))
