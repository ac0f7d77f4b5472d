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
        self.assertEqual(
            [('b', 1000.5), ('c', 1.0), ('a', 0.0)],
            [(each.host, each.weight) for each in found.hosts])
        ram, prefer = found.weighers
        self.assertEqual(('_RAM', None), (ram.weigher, ram.first_without_it))
        self.assertEqual(('_Prefer', 'c'),
                         (prefer.weigher, prefer.first_without_it))
        self.assertEqual(('b', 20, .5, 1.0), (
            ram.weights[0].host, ram.weights[0].raw,
            ram.weights[0].normalized, ram.weights[0].multiplier))
        self.assertEqual(1, found.equal_hosts)

    def test_equal(self):
        found = self.explain((_RAM(), (5, 5, 5), 1.0),
                             (_Prefer(), (1, 1, 0), 2.0))
        self.assertEqual(2, found.equal_hosts)
        self.assertEqual([None, None], [
            each.first_without_it for each in found.weighers])
