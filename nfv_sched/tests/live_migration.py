# SPDX-License-Identifier: Apache-2.0
"""Nova's live migrations with and without the limits of the scheduler."""

import importlib.util
import pathlib
import re
import subprocess
import tempfile

import fixtures
from nova.conductor.tasks import live_migrate

from nfv_sched.tests import documented

#: The source of the task in the installed Nova.
SOURCE = pathlib.Path(live_migrate.__file__).read_text()
_PATH = 'nova/conductor/tasks/live_migrate.py'
_PATCH = (documented.ROOT / 'doc' / 'source' / 'install' /
          'nova-live-migration-limits.patch')


def without_fix() -> str:
    """Return the source without the fix of bug 2153425, as before Nova 34."""
    return re.sub(r'\n +self\.limits = selection\.limits(?=\n)', '', SOURCE)


def patched(source: str) -> str:
    """Return a source with the patch of the documentation."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / _PATH
        path.parent.mkdir(parents=True)
        path.write_text(source)
        # Without the repository that a folder of temporary files may be in.
        with fixtures.EnvironmentVariable('GIT_CEILING_DIRECTORIES',
                                          str(pathlib.Path(folder).parent)):
            subprocess.run(['git', 'apply', str(_PATCH)], cwd=folder,
                           check=True)
        return path.read_text()


class LiveMigrationFixture(fixtures.Fixture):
    """Nova's conductor with another source of its live migrations."""

    def __init__(self, source: str):
        self.source = source

    def _setUp(self):
        path = pathlib.Path(
            self.useFixture(fixtures.TempDir()).path, 'changed.py')
        path.write_text(self.source)
        spec = importlib.util.spec_from_file_location('changed', path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        self.useFixture(fixtures.MockPatchObject(
            live_migrate, 'LiveMigrationTask', module.LiveMigrationTask))
