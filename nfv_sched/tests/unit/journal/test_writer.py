# SPDX-License-Identifier: Apache-2.0
"""The thread that writes the journal."""

import collections
import os
import shutil
import threading
import time
from unittest import mock

import fixtures

from nfv_sched.journal import entry
from nfv_sched.journal import files
from nfv_sched.journal import writer
from nfv_sched.ops.answers.journal import reading
from nfv_sched.tests import base
from nfv_sched.tests.unit.journal import test_entry


class JournalTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.useFixture(fixtures.MonkeyPatch(
            'nfv_sched.journal.writer.PAUSE', 0))
        self.directory = os.path.join(
            self.useFixture(fixtures.TempDir()).path, 'journal')
        self.place = writer.JournalLocation(self.directory, 2 ** 20)
        self.journal = writer.JournalWriter()
        self.addCleanup(self.journal.stop)

    def put(self, number=0, make=None, project='', **more):
        """Put a refusal that is equal to no other one.

        :param number: makes it different
        :param make: makes the refusal
        :param project: whose it is
        """
        more = {'server': str(number), 'unnamed': number, **more}
        self.journal.put(
            make or (lambda: test_entry.refusal(project=project, **more)),
            self.place, project)

    def servers(self):
        return [refusal.server
                for refusal in reading.read(self.directory).refusals]

    def test_all_are_written_in_order(self):
        for number in range(20):
            self.put(number)
        self.journal.stop()
        self.assertEqual([str(n) for n in range(20)], self.servers())
        self.put(20)
        self.journal.stop()
        self.assertIn('20', self.servers())
        self.assertEqual('', self.log.output)

    def test_nobody_waits(self):
        """Not for a disk that hangs either; what is lost is told."""
        begun, go_on = threading.Event(), threading.Event()

        def hang():
            begun.set()
            go_on.wait(60)
            return test_entry.refusal(server='first')

        self.put(make=hang)
        begun.wait(60)
        for number in range(writer.QUEUE + 7):
            self.put(number)
        go_on.set()
        self.journal.stop()
        found = reading.read(self.directory)
        self.assertEqual(1 + writer.QUEUE, len(found.refusals))
        self.assertEqual(7, found.lost)
        self.assertIn('7 entries are not in the decision journal',
                      self.log.output)

    def test_cannot_be_written(self):
        """That is said once, and when it is over."""
        with open(self.directory, 'w'):
            pass
        for number in range(3):
            self.put(number)
            self.journal_is_idle()
        self.assertEqual(1, self.log.output.count('cannot be written'))
        self.assertIn('File exists', self.log.output)
        os.unlink(self.directory)
        self.put(3)
        self.journal.stop()
        self.assertIn('can be written again', self.log.output)
        self.assertEqual(['3'], self.servers())
        self.assertEqual(6, reading.read(self.directory).lost)

    def journal_is_idle(self):
        """Wait until all before this has been dealt with."""
        done = threading.Event()

        def make():
            done.set()
            raise ValueError('not an entry')

        self.put(make=make)
        self.assertTrue(done.wait(60))

    def test_no_entry_can_be_made(self):
        self.journal_is_idle()
        self.put(1)
        self.journal.stop()
        self.assertEqual(['1'], self.servers())
        self.assertIn('ValueError: not an entry', self.log.output)

    def test_other_place(self):
        self.put(1)
        self.journal_is_idle()
        self.directory += '-2'
        self.place = writer.JournalLocation(self.directory, 2 ** 20)
        self.put(2)
        self.journal.stop()
        self.assertEqual(['2'], self.servers())

    def test_others_can_change_it(self):
        """That is logged once, and it is written all the same."""
        os.mkdir(self.directory)
        os.chmod(self.directory, 0o777)
        for number in range(2):
            self.put(number)
            self.journal_is_idle()
        self.assertEqual(['0', '1'], self.servers())
        self.assertEqual(1, self.log.output.count(
            f'Other users can change the decision journal in '
            f'{self.directory}: {self.directory} belongs'))

    def test_share_of_the_queue(self):
        """A project that fills it loses its own refusals, the newest."""
        begun, go_on = threading.Event(), threading.Event()

        def hang():
            begun.set()
            go_on.wait(60)
            return test_entry.refusal(server='first', project='loud')

        self.put(make=hang, project='loud')
        begun.wait(60)
        for number in range(5000):
            self.put(number, project='loud')
            if number % 250 == 0:
                self.put(f'quiet-{number // 250}', unnamed=number,
                         project=f'quiet-{number // 250}')
        go_on.set()
        self.journal.stop()
        content = reading.read(self.directory)
        projects = collections.Counter(
            refusal.project for refusal in content.refusals)
        self.assertEqual(1 + writer.QUEUE - 20, projects.pop('loud'))
        self.assertEqual({f'quiet-{n}': 1 for n in range(20)}, projects)
        self.assertEqual(5000 - (writer.QUEUE - 20), content.lost)

    # Joining

    def lines(self):
        """The entries as they are in the files, in order."""
        entries = []
        for file in files.listed(self.directory):
            with open(file.path, 'rb') as opened:
                entries += map(entry.parse, opened)
        return entries

    def put_equal(self, *numbers, **more):
        for number in numbers:
            value = test_entry.numbered(number, **more)
            self.put(make=lambda value=value: value, project=value.project)

    def test_equal_refusals_are_joined(self):
        self.put_equal(*range(5), project='a')
        self.put_equal(5, project='b')
        self.put_equal(6, project='a', move=True)
        self.journal.stop()
        self.assertEqual([1, 1, 1, 4],
                         [value.count for value in self.lines()])
        content = reading.read(self.directory)
        self.assertEqual(
            [f'server-{n}' for n in range(7)],
            [refusal.server for refusal in content.refusals])
        self.assertEqual([f'req-{n}' for n in range(7)],
                         [refusal.request for refusal in content.refusals])
        for uuid in ('server-2', 'before-2'):
            refusal, = reading.read(self.directory, uuid).refusals
            self.assertEqual(('server-2', 'req-2'),
                             (refusal.server, refusal.request))

    def test_all_servers_are_in_there(self):
        """However many are refused alike."""
        with mock.patch.object(writer, 'QUEUE', 10 ** 4):
            self.put_equal(*range(1000))
            self.journal.stop()
        self.assertEqual({f'server-{n}' for n in range(1000)},
                         set(self.servers()))
        self.assertLess(len(self.lines()), 1000 * 2 / 90)
        self.assertGreaterEqual(
            writer.JOINED_SERVERS,
            max(2 * value.count for value in self.lines()))

    def test_more_servers_than_are_joined(self):
        """Those of a multi-create request."""
        before = tuple(map(str, range(2 * writer.JOINED_SERVERS)))
        for number in range(3):
            self.put(number, before=before, unnamed=0)
        self.journal.stop()
        self.assertEqual([1, 1, 1], [value.count for value in self.lines()])

    def test_joined_for_a_while(self):
        """They are written though nothing else is refused."""
        self.useFixture(fixtures.MonkeyPatch(
            'nfv_sched.journal.writer.JOIN', 0.2))
        self.put_equal(0, 1, 2)
        for _ in range(600):
            if os.path.isdir(self.directory) and len(self.servers()) == 3:
                break
            time.sleep(0.1)
        first, joined = self.lines()
        self.assertEqual((1, ''), (first.count, first.written))
        self.assertEqual(2, joined.count)
        # The metrics count what was written since they were read.
        self.assertGreater(joined.written, joined.time)

    def test_few_are_remembered(self):
        """No number of kinds of refusals fills the memory."""
        for number in range(3 * writer.RECENT):
            self.put(number)
        self.journal_is_idle()
        # The first was forgotten; the last is joined with.
        self.put(0)
        self.put(3 * writer.RECENT - 1)
        self.journal_is_idle()
        self.assertEqual(3 * writer.RECENT + 1, len(self.servers()))
        self.journal.stop()
        self.assertEqual(3 * writer.RECENT + 2, len(self.servers()))

    def test_joined_ones_cannot_be_written(self):
        """They are counted as lost."""
        self.useFixture(fixtures.MonkeyPatch(
            'nfv_sched.journal.writer.JOIN', 0.2))
        self.put_equal(0)
        for _ in range(600):
            if os.path.isdir(self.directory) and self.servers():
                break
            time.sleep(0.1)
        shutil.rmtree(self.directory)
        with open(self.directory, 'w'):
            pass
        self.put_equal(1, 2, 3)
        for _ in range(600):
            if 'cannot be written' in self.log.output:
                break
            time.sleep(0.1)
        os.unlink(self.directory)
        self.put(9)
        self.journal.stop()
        content = reading.read(self.directory)
        self.assertEqual(['9'], self.servers())
        self.assertEqual(3, content.lost)


class StampTest(base.TestCase):

    def test_stamp(self):
        self.assertEqual('2026-11-22T16:03:06.250Z',
                         writer.stamp(1795363386.25))
