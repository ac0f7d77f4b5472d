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
"""The filter in place of Nova's NUMATopologyFilter."""

from nfv_sched.tests.unit import clouds
from nfv_sched.tests.unit.filters import base


class TestNothingThere(base.FilterTestCase):
    """Hosts that have nothing to give."""

    def setUp(self):
        super().setUp()
        self.flags(expose_reasons='none')

    def test_host_without_numa_topology(self):
        host = clouds.host()
        host.numa_topology = None
        self.assertEqual([], self.passing([host], clouds.spec()))
        self.assertEqual(['host1'], self.passing(
            [host], clouds.spec(numa=False)))

    def test_no_allocation_candidates(self):
        host = clouds.host()
        host.allocation_candidates = []
        self.assertEqual([], self.passing([host], clouds.spec()))
