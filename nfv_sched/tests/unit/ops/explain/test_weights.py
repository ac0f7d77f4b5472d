#    Licensed under the Apache License, Version 2.0 (the "License"); you may
#    not use this file except in compliance with the License. You may obtain
#    a copy of the License at
#
#         http://www.apache.org/licenses/LICENSE-2.0
#
#    Unless required by applicable law or agreed to in writing, software
#    distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
#    WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
#    License for the specific language governing permissions and limitations
#    under the License.

import testtools

from nfv_sched.ops.explain import scheduling
from nfv_sched.ops.explain import weights


class _Weigher:
    minval = maxval = None


class _RAM(_Weigher):
    pass


class _Prefer(_Weigher):
    minval, maxval = 0, 1


class WeightsTest(testtools.TestCase):

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
