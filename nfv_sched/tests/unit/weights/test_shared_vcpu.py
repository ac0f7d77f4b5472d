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
