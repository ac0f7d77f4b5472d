# SPDX-License-Identifier: Apache-2.0

from nfv_sched.ops.answers.explain import scheduling
from nfv_sched.ops.answers.explain import weights
from nfv_sched.tests import base


class _Weigher:
    minval = maxval = None


class _RAM(_Weigher):
    pass


class _Prefer(_Weigher):
    minval, maxval = 0, 1


class WeightsTest(base.TimedTestCase):

    def explain(self, *weighers):
        hosts = ('a', 'b', 'c')
        return weights.explain(scheduling.SchedulingRound(
            passed=hosts, weighers=[
                scheduling.Weighed(weigher, hosts, raw, [multiplier] * 3)
                for weigher, raw, multiplier in weighers]))

    def test_order_and_what_decides(self):
        found = self.explain((_RAM(), (10, 20, 30), 1.0),
                             (_Prefer(), (0, 1, 0), 1000.0))
        self.assertEqual(('b', 'c', 'a'), found.hosts)
        self.assertEqual((1000.5, 1.0, 0.0), found.totals)
        ram, prefer = found.weighers
        self.assertEqual(('_RAM', None), (ram.name, ram.without))
        self.assertEqual(('_Prefer', 'c'), (prefer.name, prefer.without))
        self.assertEqual((20, .5, 1.0), (
            ram.weights[0].raw, ram.weights[0].normal,
            ram.weights[0].multiplier))
        self.assertEqual(1, found.equal)

    def test_equal(self):
        found = self.explain((_RAM(), (5, 5, 5), 1.0),
                             (_Prefer(), (1, 1, 0), 2.0))
        self.assertEqual(2, found.equal)
        self.assertEqual([None, None], [each.without
                                        for each in found.weighers])

    def test_none_passed(self):
        self.assertIsNone(weights.explain(scheduling.SchedulingRound()))
