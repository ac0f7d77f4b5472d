# SPDX-License-Identifier: Apache-2.0
"""The weigher of shared CPUs."""

from nfv_sched.tests.unit import clouds
from nfv_sched.tests.unit.filters import base
from nfv_sched.weights import shared_vcpu as shared_weigher


class TestSharedVCPUWeigher(base.SharedVCPUTestCase):

    def test_weigher(self):
        weigher = shared_weigher.SharedVCPUWeigher()
        idle, used = self.host(), self.host((32, 32), name='used')
        spec = self.spec()
        self.assertEqual([1 - 1 / 64, 1 - 33 / 64],
                         clouds.weigh(weigher, spec, idle, used))
        self.assertEqual(
            [0.0], clouds.weigh(weigher, clouds.spec(), self.host()))
