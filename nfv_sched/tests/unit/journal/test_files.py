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
"""Files of a journal, and the room that they take."""

import os
import stat

import fixtures

from nfv_sched.journal import files
from nfv_sched.tests import base

LINE = b'x' * 99 + b'\n'


class WriterTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.directory = os.path.join(
            self.useFixture(fixtures.TempDir()).path, 'journal')
        self.writer = self.make()

    def make(self, size=8000):
        writer = files.Writer(self.directory, size)
        self.addCleanup(writer.close)
        return writer

    def listed(self):
        return files.listed(self.directory)

    def total(self):
        return sum(file.size for file in self.listed())

    def test_only_the_owner_can_read(self):
        old = os.umask(0)
        self.addCleanup(os.umask, old)
        self.writer.write(LINE)
        file, = self.listed()
        self.assertEqual(0o600, stat.S_IMODE(os.stat(file.path).st_mode))
        self.assertEqual(
            0o700, stat.S_IMODE(os.stat(self.directory).st_mode))

    def test_one_file_after_the_other(self):
        for _ in range(21):
            self.writer.write(LINE)
        self.assertEqual([100, 1000, 1000],
                         sorted(file.size for file in self.listed()))

    def test_size_of_all(self):
        """Of two at once, too; what is written last is kept."""
        other = self.make()
        for number in range(200):
            self.writer.write(LINE)
            other.write(b'%099d\n' % number)
            self.assertLessEqual(self.total(), 8000)
        self.assertGreater(self.total(), 6500)
        text = b''
        for file in self.listed():
            with open(file.path, 'rb') as opened:
                text += opened.read()
        self.assertIn(b'%099d\n' % 199, text)
        self.assertNotIn(b'%099d\n' % 0, text)

    def test_smaller_than_before(self):
        for _ in range(80):
            self.writer.write(LINE)
        self.make(size=1000).write(LINE)
        self.assertLessEqual(self.total(), 1000)
        # The file of the first one is gone; it does not write to nowhere.
        self.writer.write(LINE)
        self.assertEqual(2, len(self.listed()))

    def test_others(self):
        """What is not of the journal is neither counted nor removed."""
        os.mkdir(self.directory)
        big = os.path.join(self.directory, 'refusals.jsonl')
        with open(big, 'wb') as file:
            file.write(b'x' * 10 ** 5)
        name = 'refusals-20260102T030405Z-1-0123abcd.jsonl'
        link = os.path.join(self.directory, name)
        os.symlink(big, link)
        os.mkdir(link.replace('-1-', '-2-'))
        self.writer.write(LINE)
        self.assertEqual(100, self.total())
        for path in (big, link):
            self.assertTrue(os.path.exists(path))

    def test_cannot_be_written(self):
        with open(self.directory, 'w'):
            pass
        self.assertRaises(OSError, self.writer.write, LINE)
        os.unlink(self.directory)
        self.writer.write(LINE)
        self.assertEqual(100, self.total())
