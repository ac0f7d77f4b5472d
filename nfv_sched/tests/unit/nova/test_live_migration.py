# SPDX-License-Identifier: Apache-2.0
"""What becomes of the scheduler's limits in a live migration."""

import importlib.util
import pathlib
import re
import subprocess

import fixtures
from nova.conductor.tasks import live_migrate
import testtools

from nfv_sched.nova import scheduler as nova_scheduler
from nfv_sched.tests import base
from nfv_sched.tests import documented


class LiveMigrationLimitsTest(base.TestCase):
    """Whether live migrations carry limits, by what Nova's code does."""

    PATH = 'nova/conductor/tasks/live_migrate.py'
    PATCH = (documented.ROOT / 'doc' / 'source' / 'install' /
             'nova-live-migration-limits.patch')

    def setUp(self):
        super().setUp()
        self.source = pathlib.Path(live_migrate.__file__).read_text()
        carries = nova_scheduler.live_migration_carries_limits
        carries.cache_clear()
        self.addCleanup(carries.cache_clear)

    def carries(self, source):
        """Return the answer about a Nova with this source."""
        path = pathlib.Path(self.useFixture(fixtures.TempDir()).path, 'm.py')
        path.write_text(source)
        spec = importlib.util.spec_from_file_location('changed', path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        self.useFixture(fixtures.MockPatchObject(
            live_migrate, 'LiveMigrationTask', module.LiveMigrationTask))
        nova_scheduler.live_migration_carries_limits.cache_clear()
        return nova_scheduler.live_migration_carries_limits()

    def patched(self, source):
        """Return a source with the patch of the documentation."""
        root = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        (root / self.PATH).parent.mkdir(parents=True)
        (root / self.PATH).write_text(source)
        # Without the repository that a folder of temporary files may be in.
        self.useFixture(fixtures.EnvironmentVariable(
            'GIT_CEILING_DIRECTORIES', str(root.parent)))
        subprocess.run(['git', 'apply', str(self.PATCH)], cwd=root, check=True)
        return (root / self.PATH).read_text()

    def without_fix(self):
        return re.sub(r'\n +self\.limits = selection\.limits(?=\n)', '',
                      self.source)

    def test_nova_that_lacks_the_task(self):
        """Limits are taken to be lost; nothing raises."""
        self.useFixture(fixtures.MonkeyPatch(
            'nova.conductor.tasks.live_migrate.LiveMigrationTask',
            fixtures.MonkeyPatch.delete))
        self.assertFalse(nova_scheduler.live_migration_carries_limits())

    def test_without_the_fix(self):
        self.assertFalse(self.carries(self.without_fix()))
        self.assertEqual('', self.log.output)

    def test_with_a_backport(self):
        self.assertTrue(self.carries(self.patched(self.without_fix())))

    @testtools.skipIf(nova_scheduler.live_migration_carries_limits(),
                      'this Nova has the fix of bug 2153425')
    def test_patch_of_the_installed_nova(self):
        self.assertFalse(self.carries(self.source))
        self.assertTrue(self.carries(self.patched(self.source)))

    def test_another_nova(self):
        """Without an answer, live migrations are taken to lose limits."""
        self.assertFalse(self.carries(self.source.replace(
            'def _find_destination(self)', 'def _find(self)')))
        self.assertIn('it is taken to lose them', self.log.output)


class LiveMigrationTest(base.TestCase):

    def test_databases_that_cannot_be_read(self):
        """A move may be a live migration then."""
        self.assertTrue(nova_scheduler.may_be_live_migration('no such server'))
        self.assertIn('no such server', self.log.output)
