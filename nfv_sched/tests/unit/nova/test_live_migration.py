# SPDX-License-Identifier: Apache-2.0
"""What becomes of the scheduler's limits in a live migration."""

import fixtures
import testtools

from nfv_sched.nova import behaviour
from nfv_sched.nova import scheduler as nova_scheduler
from nfv_sched.tests import base
from nfv_sched.tests import live_migration


class LiveMigrationLimitsTest(base.TestCase):
    """Whether live migrations carry limits, by what Nova's code does."""

    def carries(self, source):
        with live_migration.LiveMigrationFixture(source):
            return behaviour.live_migration_carries_limits()

    def test_as_released(self):
        """The release tells how Nova behaves."""
        self.assertEqual(nova_scheduler.live_migration_carries_limits(),
                         behaviour.live_migration_carries_limits())
        self.assertEqual([], list(behaviour.differences()))

    def test_not_as_released(self):
        self.useFixture(fixtures.MonkeyPatch(
            'nova.virt.hardware.numa_fit_instance_to_host',
            lambda *args, **kwargs: None))
        differences = list(behaviour.differences())
        self.assertTrue(differences[0].startswith(
            'claims sort NUMA nodes by PCI devices: cannot be seen'))
        newer = not nova_scheduler.pinned_guests_need_cell_memory()
        self.assertEqual(
            ['pinned servers need free memory beside huge pages: yes'] * newer,
            differences[1:])

    def test_without_the_fix(self):
        self.assertFalse(self.carries(live_migration.without_fix()))

    def test_with_a_backport(self):
        self.assertTrue(self.carries(live_migration.patched(
            live_migration.without_fix())))

    @testtools.skipIf(nova_scheduler.live_migration_carries_limits(),
                      'this Nova has the fix of bug 2153425')
    def test_patch_of_the_installed_nova(self):
        self.assertFalse(self.carries(live_migration.SOURCE))
        self.assertTrue(self.carries(live_migration.patched(
            live_migration.SOURCE)))


class LiveMigrationTest(base.TestCase):

    def test_databases_that_cannot_be_read(self):
        """A move may be a live migration then."""
        self.assertTrue(nova_scheduler.may_be_live_migration('no such server'))
        self.assertIn('no such server', self.log.output)
