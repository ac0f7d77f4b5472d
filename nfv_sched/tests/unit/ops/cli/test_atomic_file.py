# SPDX-License-Identifier: Apache-2.0
"""Files that are written whole, and only where the writer wants them."""

import errno
import os
import stat
from unittest import mock

import fixtures

from nfv_sched.ops.cli import atomic_file
from nfv_sched.tests import base


class WriteTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.folder = self.useFixture(fixtures.TempDir()).path
        self.path = os.path.join(self.folder, 'file')
        self.addCleanup(os.umask, os.umask(0o022))

    def write(self, content=b'new', path=None):
        return atomic_file.write(
            path or self.path, lambda file: file.write(content))

    def read(self, path=None):
        with open(path or self.path, 'rb') as file:
            return file.read()

    def mode(self):
        return stat.S_IMODE(os.stat(self.path).st_mode)

    def refused(self, words, path=None):
        error = self.assertRaises(
            atomic_file.WriteError, self.write, path=path)
        self.assertIn(words, str(error))
        self.assertTrue(str(error).startswith(f'{path or self.path}: '))

    def test_modes(self):
        self.assertEqual(3, self.write())
        self.assertEqual((0o600, b'new'), (self.mode(), self.read()))
        for mode in (0o644, 0o640, 0o400):
            os.chmod(self.path, mode)
            self.write(b'again')
            self.assertEqual((mode, b'again'), (self.mode(), self.read()))

    def test_mode_of_another_user(self):
        """A file that somebody has put there decides nothing."""
        self.write()
        os.chmod(self.path, 0o666)
        with mock.patch('os.geteuid', return_value=os.geteuid() + 1):
            self.write()
        self.assertEqual(0o600, self.mode())

    def test_readers_of_the_old_file(self):
        """They go on with it: it is replaced, not changed."""
        self.write(b'old')
        with open(self.path, 'rb') as file:
            self.write()
            self.assertEqual(b'old', file.read())

    def test_on_disk_before_it_has_its_name(self):
        calls = mock.Mock()
        with mock.patch('os.fsync', calls.fsync), mock.patch(
                'os.replace', side_effect=os.replace) as replace:
            calls.attach_mock(replace, 'replace')
            self.write()
        self.assertEqual(['fsync', 'replace', 'fsync'],
                         [call[0] for call in calls.mock_calls])

    def test_failures(self):
        """A full disk, or a defect, leaves the old file and nothing else."""
        self.write(b'old')

        def fill(file):
            file.write(b'x' * 2 ** 20)
            raise error

        error = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.assertEqual(
            f'{self.path}: No space left on device', str(self.assertRaises(
                atomic_file.WriteError, atomic_file.write, self.path, fill)))
        error = KeyError('x')
        self.assertRaises(KeyError, atomic_file.write, self.path, fill)
        with mock.patch('os.fsync', side_effect=OSError(errno.EIO, 'bad')):
            self.refused('bad')
        self.assertEqual(b'old', self.read())
        self.assertEqual(['file'], os.listdir(self.folder))

    def test_links(self):
        """The writer's own link stays and its file is replaced."""
        link, second = (os.path.join(self.folder, name) for name in 'ab')
        os.symlink('file', link)
        os.symlink(link, second)
        self.write(path=second)  # the file is missing before
        self.assertTrue(os.path.islink(link) and os.path.islink(second))
        self.assertEqual(b'new', self.read())
        with mock.patch('os.geteuid', return_value=os.geteuid() + 1):
            for path in (link, second):
                self.refused('is a symbolic link of another user', path)
        self.assertEqual(b'new', self.read())

    def test_links_to_folders(self):
        """Those of root lead to files, those of others do not."""
        folder = os.path.join(self.folder, 'folder')
        link = os.path.join(self.folder, 'link')
        os.mkdir(folder)
        os.symlink(folder, link)
        path = os.path.join(link, 'file')
        self.write(path=path)
        real = os.lstat

        def lstat(name, **keywords):
            status = list(real(name, **keywords))
            if name == link:
                status[stat.ST_UID] = owner
            return os.stat_result(status)

        with mock.patch('os.geteuid', return_value=12345), mock.patch(
                'os.lstat', lstat):
            owner = 0
            self.write(path=path)
            owner = 54321
            self.refused('is a symbolic link of another user', path)

    def test_circles(self):
        os.symlink('file', self.path)
        self.refused('too many symbolic links')

    def test_pipes(self):
        for descriptor in os.pipe():
            self.addCleanup(os.close, descriptor)
            for folder in ('/dev/fd', '/proc/self/fd'):
                self.refused('not a regular file', f'{folder}/{descriptor}')
        for path in ('-', '/dev/stdout'):
            self.assertRaises(atomic_file.WriteError, atomic_file.target, path)

    def test_no_files(self):
        pipe = os.path.join(self.folder, 'pipe')
        os.mkfifo(pipe)
        for path in (pipe, self.folder, f'{self.folder}/', '/dev/null'):
            self.refused('not a regular file', path)
        self.write()
        self.refused('Not a directory', os.path.join(self.path, 'x'))
        self.refused('No such file', os.path.join(self.folder, 'no', 'x'))
        self.refused('null', f'{self.path}\0')
