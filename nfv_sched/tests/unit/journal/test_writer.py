# SPDX-License-Identifier: Apache-2.0
"""Files of a journal, written by one process and by several."""

import multiprocessing
import os
import resource
import stat
from unittest import mock

import fixtures

from nfv_sched.journal import writer
from nfv_sched.ops.answers.journal import reading
from nfv_sched.tests import base
from nfv_sched.tests.unit.journal import test_entry

FORK = multiprocessing.get_context('fork')

#: The smallest of a journal.
SIZE = 2 ** 20


class JournalTestCase(base.TestCase):

    def setUp(self):
        super().setUp()
        self.directory = os.path.join(
            self.useFixture(fixtures.TempDir()).path, 'journal')

    def write(self, *names, hosts=2, size=SIZE):
        for name in names:
            writer.write(test_entry.refusal(hosts, server=str(name)),
                         self.directory, size)

    def listed(self):
        return writer.listed(self.directory)

    def total(self):
        return sum(file.size for file in self.listed())

    def read(self):
        return reading.read(self.directory)

    def servers(self):
        return [refusal.server for refusal in self.read().refusals]


class WriterTest(JournalTestCase):

    def test_only_the_owner_can_read(self):
        self.addCleanup(os.umask, os.umask(0))
        self.write(1)
        file, = self.listed()
        self.assertEqual(0o600, stat.S_IMODE(os.stat(file.path).st_mode))
        self.assertEqual(
            0o700, stat.S_IMODE(os.stat(self.directory).st_mode))

    def test_in_order(self):
        """In one file, which is open only while a line is written."""
        before = os.listdir('/proc/self/fd')
        self.write(*range(20))
        self.assertEqual([str(n) for n in range(20)], self.servers())
        self.assertEqual(1, len(self.listed()))
        self.assertEqual(before, os.listdir('/proc/self/fd'))
        self.assertEqual('', self.log.output)

    def test_size(self):
        """The oldest are removed, and counted; no file is renamed."""
        seen = {}
        for number in range(2000):
            self.write(number, hosts=20)
            for file in self.listed():
                self.assertEqual(
                    seen.setdefault(file.path, os.stat(file.path).st_ino),
                    os.stat(file.path).st_ino)
                self.assertLessEqual(file.size, SIZE / writer.PARTS)
            self.assertLessEqual(self.total(), SIZE)
        self.assertGreater(self.total(), SIZE * 3 / 4)
        found = self.read()
        self.assertIn('1999', self.servers())
        self.assertEqual((0, ()), (found.lost, found.unread))
        self.assertGreater(found.removed, 0)

    def test_long_lines(self):
        """Hosts are left out, so that a file has room for two."""
        self.write('big', hosts=10 ** 4)
        refusal, = self.read().refusals
        self.assertEqual(2 * 10 ** 4, refusal.unnamed + sum(
            len(reason.hosts) for reason in refusal.reasons))
        self.assertLess(self.total(), SIZE / writer.PARTS / 2)
        self.write('big', hosts=10 ** 5, size=2 ** 30)
        self.assertLess(self.listed()[-1].size, 2 * writer.LONGEST)

    def test_number_of_files(self):
        """However many processes have begun and ended."""
        os.makedirs(self.directory)
        for number in range(3 * writer.MOST_FILES):
            with open(os.path.join(
                    self.directory, 'refusals-20260102T030405Z-'
                    f'{number}-0123abcd.jsonl'), 'wb'):
                pass
        self.write('new')
        self.assertEqual(writer.MOST_FILES, len(self.listed()))
        self.assertIn('new', self.servers())

    def test_others(self):
        """What is not of the journal is neither counted nor removed."""
        os.mkdir(self.directory)
        big = os.path.join(self.directory, 'refusals.jsonl')
        with open(big, 'wb') as file:
            file.truncate(10 * SIZE)
        name = 'refusals-20260102T030405Z-1-0123abcd.jsonl'
        link = os.path.join(self.directory, name)
        os.symlink(big, link)
        os.mkdir(link.replace('-1-', '-2-'))
        self.write(1)
        self.assertEqual(1, len(self.listed()))
        self.assertEqual(10 * SIZE, os.path.getsize(big))
        self.assertTrue(os.path.islink(link))

    def test_link_in_place_of_a_file(self):
        self.write(1)
        file, = self.listed()
        os.rename(file.path, file.path + '.old')
        os.symlink(file.path + '.old', file.path)
        self.write(2)
        self.assertEqual(file.size, os.path.getsize(file.path + '.old'))
        self.assertIn('cannot be written', self.log.output)

    def test_removed_meanwhile(self):
        """By hand, or by another process that needs the room."""
        self.write(1)
        os.unlink(self.listed()[0].path)
        self.write(2)
        os.unlink(self.listed()[0].path)
        os.rmdir(self.directory)
        self.write(3)
        self.assertEqual(['3'], self.servers())

    def test_cannot_be_written(self):
        """That is said once, and when it is over."""
        with open(self.directory, 'w'):
            pass
        self.write(1, 2, 3)
        self.assertEqual(1, self.log.output.count('cannot be written'))
        self.assertIn('File exists', self.log.output)
        os.unlink(self.directory)
        self.write(4, 5)
        self.assertEqual(1, self.log.output.count('can be written again'))
        self.assertEqual(['4', '5'], self.servers())
        self.assertEqual(3, self.read().lost)

    def test_others_can_change_it(self):
        """Then they could have it written to other files."""
        os.mkdir(self.directory)
        for mode, uid in ((0o777, os.geteuid()), (0o1777, os.geteuid()),
                          (0o700, os.geteuid() + 1)):
            os.chmod(self.directory, mode)
            with mock.patch('os.geteuid', lambda uid=uid: uid):
                if os.stat(self.directory).st_uid == 0 and uid:
                    continue  # root may
                self.write(1)
            self.assertEqual([], self.listed())
        self.assertIn('open to all for writing', self.log.output)
        os.chmod(self.directory, 0o750)
        self.write(2)
        self.assertEqual(['2'], self.servers())

    def test_two_journals(self):
        self.write(1)
        self.directory += '-2'
        self.write(2)
        self.assertEqual(['2'], self.servers())

    def test_stamp(self):
        self.assertEqual('2026-11-22T16:03:06.250Z',
                         writer.stamp(1795363386.25))


class ProcessesTest(JournalTestCase):
    """As workers of nova-scheduler."""

    def start(self, target, *args, **kwargs):
        worker = FORK.Process(target=target, args=args, kwargs=kwargs)
        worker.start()
        self.addCleanup(worker.kill)
        return worker

    def end(self, *workers):
        for worker in workers:
            worker.join(60)
            self.assertEqual(0, worker.exitcode)

    def test_at_once(self):
        """No line is torn, and none is in the file of the parent."""
        self.write('parent')
        self.end(*[self.start(self.write, *[f'{n}-{i}' for i in range(100)])
                   for n in range(4)])
        self.assertEqual(5, len(self.listed()))
        self.assertEqual((), self.read().unread)
        self.assertEqual({'parent', *[
            f'{n}-{i}' for n in range(4) for i in range(100)]},
            set(self.servers()))

    def test_size_of_all(self):
        """Each file that is begun has room."""
        self.end(*[self.start(self.write, *[f'{n}-{i}' for i in range(900)],
                              hosts=40) for n in range(3)])
        found = self.read()
        self.assertEqual((0, ()), (found.lost, found.unread))
        self.assertLessEqual(self.total(), SIZE + 2 * SIZE / writer.PARTS)
        self.assertGreater(self.total(), SIZE / 2)

    def test_those_that_ended(self):
        """Their files make room for those of others."""
        for name in 'first', 'second', 'third':
            self.end(self.start(self.write, *[name] * 900, hosts=40))
        self.assertEqual({'third'}, set(self.servers()))
        self.assertLessEqual(self.total(), SIZE)

    def test_full_disk(self):
        """Nothing is left of a line that is cut off; no files pile up."""
        self.end(self.start(self.fill_disk))
        found = self.read()
        self.assertEqual(['before', 'after'], self.servers())
        self.assertEqual((50, ()), (found.lost, found.unread))
        self.assertEqual(1, len(self.listed()))

    def fill_disk(self):
        self.write('before')
        _soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE,
                           (self.listed()[0].size * 3 // 2, hard))
        self.write(*['lost'] * 50)
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        self.write('after')
