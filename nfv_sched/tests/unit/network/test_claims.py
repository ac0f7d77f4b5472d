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
"""What this process has placed and Neutron does not show yet."""

import time

import fixtures

from nfv_sched.network import claims
from nfv_sched.network import demand
from nfv_sched.tests import base
from nfv_sched.tests.unit.network import snapshots

TWO = demand.NetworkDemand(vswitch_ports=2, rules=10)


class ClaimsTest(base.TestCase):
    """Claims and readings."""

    def setUp(self):
        super().setUp()
        self.claims = claims.Claims()

    def unseen(self, snapshot, host='host1'):
        return self.claims.unseen(snapshot, host)

    def test_until_shown(self):
        """A claim counts as far as Neutron does not show the ports."""
        self.claims.add('host1', 'vm', TWO)
        self.assertEqual((2, 10), self.unseen(snapshots.snapshot()))
        self.assertEqual((0, 0), self.unseen(snapshots.snapshot(), 'host2'))
        part = snapshots.snapshot(
            [{'instance': 'vm', 'groups': ['a']}], rules={'a': 4})
        self.assertEqual((1, 6), self.unseen(part))
        whole = snapshots.snapshot(
            [{'instance': 'vm', 'groups': ['a']}] * 2, rules={'a': 5})
        self.assertEqual((0, 0), self.unseen(whole))

    def test_several(self):
        """Claims of a host add up; one of the same server replaces."""
        for instance in 'vm1', 'vm2', 'vm1':
            self.claims.add('host1', instance, TWO)
        self.assertEqual((4, 20), self.unseen(snapshots.snapshot()))

    def test_given_up(self):
        """A guest that has not come after a minute does not count."""
        now = time.monotonic()
        with fixtures.MonkeyPatch('time.monotonic',
                                  lambda: now - claims.BUILD_SECONDS + 1):
            self.claims.add('host1', 'late', TWO)
        with fixtures.MonkeyPatch('time.monotonic',
                                  lambda: now - claims.BUILD_SECONDS - 1):
            self.claims.add('host1', 'lost', TWO)
        self.assertEqual((2, 10), self.unseen(snapshots.snapshot()))
        self.assertEqual(['late'], list(self.claims._hosts['host1']))

    def test_old_reading(self):
        """However old the reading, what was placed since counts."""
        self.claims.add('host1', 'vm', TWO)
        self.assertEqual((2, 10), self.unseen(snapshots.snapshot(age=1000)))

    def test_swept(self):
        """Claims on hosts that nobody asks about are not kept for ever."""
        now = time.monotonic()
        self.claims.add('host1', 'old', TWO)
        with fixtures.MonkeyPatch('time.monotonic', lambda: now + 8000):
            self.claims.add('host2', 'new', TWO)
        self.assertEqual(['host2'], list(self.claims._hosts))
