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
"""The thread that writes the journal."""

import os
import threading

import fixtures

from nfv_sched.advice import journal
from nfv_sched.journal import writer
from nfv_sched.tests import base
from nfv_sched.tests.unit.journal import test_entry


class JournalTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.useFixture(fixtures.MonkeyPatch(
            'nfv_sched.journal.writer.PAUSE', 0))
        self.directory = os.path.join(
            self.useFixture(fixtures.TempDir()).path, 'journal')
        self.place = writer.Place(self.directory, 2 ** 20)
        self.journal = writer.Journal()
        self.addCleanup(self.journal.stop)

    def put(self, number=0, make=None):
        self.journal.put(
            make or (lambda: test_entry.refusal(server=str(number))),
            self.place)

    def servers(self):
        return [refusal.server
                for refusal in journal.read(self.directory).refusals]

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
        found = journal.read(self.directory)
        self.assertEqual(1 + writer.QUEUE, len(found.refusals))
        self.assertEqual(7, found.lost)
        self.assertIn('7 refusals are not in the decision journal',
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
        self.assertEqual(6, journal.read(self.directory).lost)

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
        self.place = writer.Place(self.directory, 2 ** 20)
        self.put(2)
        self.journal.stop()
        self.assertEqual(['2'], self.servers())


class StampTest(base.TestCase):

    def test_stamp(self):
        self.assertEqual('2026-11-22T16:03:06.250Z',
                         writer.stamp(1795363386.25))
