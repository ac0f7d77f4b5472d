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
"""The filter of places."""

from nfv_sched.tests import outcomes
from nfv_sched.tests.unit.filters import base

AWAY = outcomes.AWAY_FROM


class TestNotEnabled(base.PlaceTestCase):
    """The filter is not enabled."""

    def test_rule_without_its_filter(self):
        """Nobody keeps it, as nobody was asked to."""
        host = self.host(osd=(0,))
        others = self.filters[:3] + self.filters[4:]
        self.assertEqual([0], self.placed(
            host, self.spec({f'{AWAY}osd': 'strict'}), others))
