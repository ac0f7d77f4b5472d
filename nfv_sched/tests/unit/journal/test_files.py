# SPDX-License-Identifier: Apache-2.0
"""Files of a journal, and the room that they take."""

import collections
import errno
import fcntl
import os
import stat
from unittest import mock

import fixtures

from nfv_sched.journal import entry
from nfv_sched.journal import files
from nfv_sched.ops.answers.journal import reading
from nfv_sched.tests import base
from nfv_sched.tests.unit.journal import test_entry

#: The smallest of a journal.
SIZE = 2 ** 20

LINE = b'x' * 99 + b'\n'


class WriterBase(base.TestCase):

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


class WriterTest(WriterBase):

    def test_only_the_owner_can_read(self):
        old = os.umask(0)
        self.addCleanup(os.umask, old)
        self.writer.write(LINE)
        file, = self.listed()
        self.assertEqual(0o600, stat.S_IMODE(os.stat(file.path).st_mode))
        self.assertEqual(
            0o700, stat.S_IMODE(os.stat(self.directory).st_mode))

    def test_changeable(self):
        """By its mode, its owner, and those of all that leads to it."""
        folder = self.useFixture(fixtures.TempDir()).path
        journal, link, further = (
            os.path.join(folder, *names) for names in (
                ('a', 'journal'), ('link',), ('b', 'further')))
        for name in 'ab':
            os.mkdir(os.path.join(folder, name))
        os.symlink(os.path.dirname(journal), further)
        os.symlink('b/further', link)
        there = os.path.join(link, 'journal')
        for path in (journal, there):  # yet to be made
            self.assertIsNone(files.changeable(path))
        os.mkdir(journal, 0o700)
        for path, mode in ((journal, 0o777), (journal, 0o702),
                           (journal, 0o1777),
                           (os.path.dirname(journal), 0o777)):
            before = os.stat(path).st_mode
            os.chmod(path, mode)
            for leading in (journal, there):
                self.assertEqual(path, files.changeable(leading))
            os.chmod(path, before)
        os.chmod(os.path.dirname(journal), 0o1777)
        os.chmod(journal, 0o750)
        for path in (journal, there):
            self.assertIsNone(files.changeable(path))
        if os.geteuid():
            return  # only root can give files away
        for path in (journal, link, further, os.path.dirname(further)):
            os.chown(path, 65534, -1, follow_symlinks=False)
            self.assertEqual(path, files.changeable(there))
            os.chown(path, 0, -1, follow_symlinks=False)
        os.unlink(further)
        os.symlink('further', further)  # to itself
        self.assertIsNone(files.changeable(there))

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


class ShareTest(WriterBase):
    """What is left of each project when files are removed."""

    def setUp(self):
        super().setUp()
        self.writer = self.make(SIZE)

    def entries(self):
        """The entries in all files."""
        values = []
        for file in self.listed():
            with open(file.path, 'rb') as opened:
                values += map(entry.parse, opened)
        return values

    def projects(self):
        """The servers in the journal, by project."""
        servers = collections.defaultdict(set)
        for refusal in reading.read(self.directory).refusals:
            servers[refusal.project].add(refusal.server)
        return servers

    def refuse(self, project, number, writer=None, hosts=2):
        """Write a refusal that is equal to no other."""
        writer = writer or self.writer
        writer.write(entry.short_line(test_entry.refusal(
            hosts, project=project, server=f'{project}-{number}',
            time=f'{number:09}', unnamed=number, before=()), writer.longest))

    def flood(self, count, begin=1000, hosts=20, **more):
        for number in range(begin, begin + count):
            self.refuse('loud', number, hosts=hosts, **more)

    def test_each_project_has_a_share(self):
        for project in range(20):
            for number in range(3):
                self.refuse(f'quiet-{project}', number)
        self.flood(5000, hosts=2)
        self.assertLessEqual(self.total(), SIZE)
        projects = self.projects()
        loud = projects.pop('loud')
        self.assertEqual(
            {f'quiet-{n}': {f'quiet-{n}-{i}' for i in range(3)}
             for n in range(20)}, projects)
        # It has most of the journal all the same, and its last.
        self.assertLessEqual(
            {f'loud-{n}' for n in range(5500, 6000)}, loud)
        self.assertEqual(
            5060, len(loud) + 60 + reading.read(self.directory).removed)

    def test_share_is_the_last(self):
        """Of those that a quiet project has over time."""
        for number in range(50):
            self.refuse('quiet', number)
            self.flood(20, 100 + 20 * number)
        self.flood(2000, 2000)
        quiet = self.projects()['quiet']
        self.assertIn('quiet-49', quiet)
        self.assertNotIn('quiet-0', quiet)

    def test_share_of_many_hosts(self):
        """If there is no room for all hosts, each project has some."""
        for project in range(20):
            self.refuse(f'quiet-{project}', 0, hosts=1000)
        self.flood(1000)
        self.assertEqual(21, len(self.projects()))
        self.assertEqual({2000}, {
            value.unnamed + sum(len(reason.hosts) for reason in value.reasons)
            for value in self.entries()
            if isinstance(value, entry.Refusal)
            and value.project != 'loud'})

    def test_share_of_joined_refusals(self):
        joined = test_entry.numbered(0, project='quiet')
        for number in range(1, 5):
            joined = entry.joined(
                joined, test_entry.numbered(number, project='quiet'))
        self.writer.write(entry.line(joined))
        self.flood(1000)
        self.assertEqual({f'server-{n}' for n in range(5)},
                         self.projects()['quiet'])

    def test_more_projects_than_there_is_room_for(self):
        """Those that were refused last have a share."""
        for number in range(3000):
            self.refuse(f'p{number}', number)
            self.assertLessEqual(self.total(), SIZE)
        self.assertLessEqual({f'p{n}' for n in range(2950, 3000)},
                             self.projects().keys())
        content = reading.read(self.directory)
        self.assertEqual(3000, len(content.refusals) + content.removed)

    def test_share_after_restarts(self):
        """Processes that wrote one refusal and ended leave it, too."""
        for number in range(3 * files.MAX_OPEN):
            self.refuse('quiet' if number % 3 else f'p{number}', number,
                        self.make(SIZE))
        self.flood(1000, writer=self.make(SIZE))
        self.assertEqual(2 + files.MAX_OPEN, len(self.projects()))
        self.assertLess(len(self.listed()), 20)

    def test_share_of_an_older_release(self):
        """Its files are read and copied like any other."""
        self.refuse('quiet', 0)
        file, = self.listed()
        with open(file.path, 'wb') as opened:
            opened.write(
                b'{"version":1,"refusal":{"time":"2025","server":"old",'
                b'"project":"quiet","filter":"F"}}\n'
                b'{"version":1,"lost":{"time":"2025","count":7}}\n{"versi\n')
        self.flood(1000)
        self.assertEqual({'old'}, self.projects()['quiet'])
        self.assertEqual(7, reading.read(self.directory).lost)

    def test_nothing_is_there_twice(self):
        """If a process dies before it removes what it has copied."""
        self.refuse('quiet', 0)
        with mock.patch('os.unlink', side_effect=KeyboardInterrupt):
            self.assertRaises(KeyboardInterrupt, self.flood, 1000)
        self.assertEqual(2, len([
            value for value in self.entries()
            if isinstance(value, entry.Refusal)
            and value.project == 'quiet']))
        for _ in range(2):
            refusals = reading.read(self.directory).refusals
            self.assertEqual(len(refusals), len(set(
                refusal.server for refusal in refusals)))
            self.flood(1000, 5000)
        self.assertEqual({'quiet-0'}, self.projects()['quiet'])

    def test_file_that_another_process_removes(self):
        """Its writer does not wait, and writes to another one."""
        self.refuse('quiet', 0)
        file, = self.listed()
        with open(file.path, 'r+b') as opened:
            fcntl.flock(opened, fcntl.LOCK_EX)
            self.refuse('quiet', 1)
        self.assertEqual(2, len(self.listed()))

    def test_file_that_another_process_does_not_let_go(self):
        self.refuse('quiet', 0)
        file, = self.listed()
        with open(file.path, 'r+b') as opened:
            fcntl.flock(opened, fcntl.LOCK_EX)
            self.flood(1000)
            self.assertLessEqual(self.total(), SIZE)
        self.assertEqual({'quiet-0'}, self.projects()['quiet'])

    def test_file_that_cannot_be_read(self):
        """It is removed in its turn, as those of another user."""
        self.refuse('quiet', 0)
        file, = self.listed()
        real = open

        def refuse(path, *args, **kwargs):
            if path == file.path:
                raise PermissionError(errno.EACCES, 'Permission denied')
            return real(path, *args, **kwargs)

        with mock.patch('builtins.open', refuse):
            self.flood(1000)
        self.assertNotIn(file.path, [each.path for each in self.listed()])

    def test_file_system_without_locks(self):
        with mock.patch('fcntl.flock', side_effect=OSError(
                errno.ENOLCK, 'No locks available')):
            self.refuse('quiet', 0)
            self.flood(1000)
        self.assertEqual({'quiet-0'}, self.projects()['quiet'])

    def test_full_disk(self):
        """Nothing is removed or half written; no files pile up."""
        self.refuse('quiet', 0)
        real = os.write
        # Some of what is copied before files are removed.
        space = SIZE - SIZE // 16 + 2000

        def write(file, data):
            nonlocal space
            if not space:
                raise OSError(errno.ENOSPC, 'No space left on device')
            count = real(file, data[:space])
            space -= count
            return count

        with mock.patch('os.write', write):
            self.assertRaises(OSError, self.flood, 1000)
            before = self.listed()
            for _ in range(50):
                space = 70
                self.assertRaises(OSError, self.flood, 1)
        self.assertEqual(len(before), len(self.listed()))
        self.assertEqual((), reading.read(self.directory).unread)
        self.flood(1000)
        self.assertEqual({'quiet-0'}, self.projects()['quiet'])
        self.assertEqual((), reading.read(self.directory).unread)
