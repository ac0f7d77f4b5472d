# SPDX-License-Identifier: Apache-2.0
"""The filter of shared vCPUs."""

import fixtures
from nova import objects

from nfv_sched.filters import shared_vcpu
from nfv_sched.nova import scheduler as nova_scheduler
from nfv_sched.scheduler import notes
from nfv_sched.tests.unit import clouds
from nfv_sched.tests.unit.filters import base


class TestSharedVCPUFilter(base.SharedVCPUTestCase):

    def setUp(self):
        super().setUp()
        self.filters = [shared_vcpu.SharedVCPUFilter()]

    def test_requests_that_it_looks_at(self):
        for looked, spec in (
                (False, clouds.spec()), (True, self.spec()),
                (False, self.spec({'hw:cpu_policy': 'mixed',
                                   'hw:cpu_dedicated_mask': '^0'}))):
            self.assertEqual(looked, base.looks_at(self.filters[0], spec))

    def test_limit_that_a_live_migration_loses(self):
        """It is in the limits, also where both nodes have room."""
        self.useFixture(fixtures.MockPatchObject(
            nova_scheduler, 'live_migration_carries_limits', lambda: False))
        for live in False, True:
            host, spec = self.host(), self.spec()
            spec.requested_destination = objects.Destination()
            notes.note_of(spec).live_migration = live
            if live:
                self.assertEqual(
                    'No valid host was found. nfv:shared_vcpu=0: a claim that '
                    'keeps it without a lower CPU allocation ratio needed for '
                    'a live migration, this Nova loses it: migrate the server '
                    'cold (1 host)', self.refusal([host], spec))
            else:
                self.assertEqual(['host1'], self.passing([host], spec))
