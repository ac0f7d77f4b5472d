# SPDX-License-Identifier: Apache-2.0
"""What becomes of the scheduler's limits in a live migration."""

import fixtures
import testtools

from nfv_sched.nova import scheduler as nova_scheduler
from nfv_sched.tests import base
from nfv_sched.tests import live_migration


class LiveMigrationLimitsTest(base.TestCase):
    """Whether live migrations carry limits, by what Nova's code does."""

    def setUp(self):
        super().setUp()
        carries = nova_scheduler.live_migration_carries_limits
        carries.cache_clear()
        self.addCleanup(carries.cache_clear)

    def carries(self, source):
        """Return the answer about a Nova with this source."""
        with live_migration.LiveMigrationFixture(source):
            return nova_scheduler.live_migration_carries_limits()

    def test_nova_that_lacks_the_task(self):
        """Limits are taken to be lost; nothing raises."""
        self.useFixture(fixtures.MonkeyPatch(
            'nova.conductor.tasks.live_migrate.LiveMigrationTask',
            fixtures.MonkeyPatch.delete))
        self.assertFalse(nova_scheduler.live_migration_carries_limits())

    def test_without_the_fix(self):
        self.assertFalse(self.carries(live_migration.without_fix()))
        self.assertEqual('', self.log.output)

    def test_with_a_backport(self):
        self.assertTrue(self.carries(live_migration.patched(
            live_migration.without_fix())))

    @testtools.skipIf(nova_scheduler.live_migration_carries_limits(),
                      'this Nova has the fix of bug 2153425')
    def test_patch_of_the_installed_nova(self):
        self.assertFalse(self.carries(live_migration.SOURCE))
        self.assertTrue(self.carries(live_migration.patched(
            live_migration.SOURCE)))

    def test_another_nova(self):
        """Without an answer, live migrations are taken to lose limits."""
        self.assertFalse(self.carries(live_migration.SOURCE.replace(
            'def _find_destination(self)', 'def _find(self)')))
        self.assertIn('it is taken to lose them', self.log.output)


class LiveMigrationTest(base.TestCase):

    def test_databases_that_cannot_be_read(self):
        """A move may be a live migration then."""
        self.assertTrue(nova_scheduler.may_be_live_migration('no such server'))
        self.assertIn('no such server', self.log.output)
