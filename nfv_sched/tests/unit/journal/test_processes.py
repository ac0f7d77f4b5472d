# SPDX-License-Identifier: Apache-2.0
"""Several processes write a journal at once, as workers of nova-scheduler."""

import multiprocessing
import os
import resource
import signal
import time

import fixtures

from nfv_sched.journal import files
from nfv_sched.journal import writer
from nfv_sched.ops.answers.journal import reading
from nfv_sched.scheduler import process
from nfv_sched.tests import base
from nfv_sched.tests.unit.journal import test_entry

FORK = multiprocessing.get_context('fork')
WORKERS = 4
REFUSALS = 150
HOSTS = 40


def write(place, name, count=REFUSALS, project=''):
    """Write refusals of servers of a name, as fast as they can be kept."""
    for number in range(count):
        # Bound at once: the thread asks for it later.
        process.STATE.journal.put(
            lambda number=number: test_entry.refusal(
                HOSTS, server=f'{name}-{number}', unnamed=number,
                time=writer.stamp(time.time()), project=project),
            place, project)
        if number % 50 == 49:
            process.STATE.journal.stop()
    process.STATE.journal.stop()


def write_on_a_full_disk(place):
    """Write a line that is cut off, and one when there is room again."""
    write(place, 'before', 1)
    _soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    size = files.listed(place.directory)[0].size
    resource.setrlimit(resource.RLIMIT_FSIZE, (size // 2, hard))
    write(place, 'lost', 1)
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    write(place, 'after', 1)


class ProcessesTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.useFixture(fixtures.MonkeyPatch(
            'nfv_sched.journal.writer.PAUSE', 0))
        self.directory = self.useFixture(fixtures.TempDir()).path
        self.place = writer.JournalLocation(self.directory, 96 * 1024)
        self.addCleanup(process.STATE.reset)

    def start(self, target, *args):
        worker = FORK.Process(target=target, args=args)
        worker.start()
        self.addCleanup(worker.kill)
        return worker

    def total(self):
        return sum(file.size for file in files.listed(self.directory))

    @staticmethod
    def last_line(found):
        with open(found.path) as file:
            return file.readlines()[-1]

    def total_now(self, workers):
        """The sum while nobody writes: files come and go between two looks."""
        running = [worker for worker in workers if worker.is_alive()]
        for worker in running:
            os.kill(worker.pid, signal.SIGSTOP)
        for worker in running:
            os.waitid(os.P_PID, worker.pid,
                      os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        total = self.total()
        for worker in running:
            os.kill(worker.pid, signal.SIGCONT)
        return total

    def test_at_once(self):
        """The journal keeps to its size, and no line is torn."""
        # The thread of the parent is of no use to its children.
        process.STATE.journal.put(lambda: test_entry.refusal(server='parent'),
                                  self.place)
        workers = [self.start(write, self.place, f'server{n}')
                   for n in range(WORKERS)]
        line = len(test_entry.entry.line(test_entry.refusal(HOSTS)))
        largest = 0
        while any(worker.is_alive() for worker in workers):
            largest = max(largest, self.total_now(workers))
            time.sleep(0.001)
        for worker in workers:
            worker.join()
            self.assertEqual(0, worker.exitcode)
        # Each has looked for room before it wrote its line.
        bound = self.place.size + (WORKERS + 1) * line
        self.assertLessEqual(max(largest, self.total()), bound)
        self.assertGreater(WORKERS * REFUSALS * line, 4 * self.place.size)
        found = reading.read(self.directory)
        self.assertEqual(((), 0), (found.unread, found.lost))
        self.assertGreater(len(found.refusals), 40)
        written = files.listed(self.directory)
        # Times of files are rough: several may have the last one.
        ends = [self.last_line(file) for file in written
                if file.changed == written[-1].changed]
        self.assertTrue(any(f'-{REFUSALS - 1}"' in end for end in ends), ends)
        self.assertEqual({0o600}, {
            os.stat(file.path).st_mode & 0o777
            for file in files.listed(self.directory)})

    def test_those_that_ended(self):
        """Their files make room for those of others."""
        for name in ('first', 'second', 'third'):
            worker = self.start(write, self.place, name)
            worker.join()
        names = {refusal.server.partition('-')[0]
                 for refusal in reading.read(self.directory).refusals}
        self.assertEqual({'third'}, names)
        self.assertLessEqual(self.total(), self.place.size)

    def test_share_of_projects(self):
        """Of those that were refused before others, by several workers."""
        self.place = writer.JournalLocation(self.directory, 2 ** 20)
        for number in range(3):
            worker = self.start(
                write, self.place, f'quiet{number}', 2, f'quiet{number}')
            worker.join()
        workers = [
            self.start(write, self.place, f'loud{n}', 3 * REFUSALS, 'loud')
            for n in range(WORKERS)]
        for worker in workers:
            worker.join()
            self.assertEqual(0, worker.exitcode)
        content = reading.read(self.directory)
        self.assertEqual(((), 0), (content.unread, content.lost))
        self.assertLessEqual(
            {f'quiet{number}-{n}' for number in range(3) for n in range(2)},
            {refusal.server for refusal in content.refusals})
        self.assertLessEqual(self.total(), self.place.size)
        self.assertEqual(
            6 + 3 * WORKERS * REFUSALS,
            len(content.refusals) + content.removed)
        self.assertGreater(content.removed, 0)

    def test_killed(self):
        """Processes that are killed leave the refusals of others."""
        self.place = writer.JournalLocation(self.directory, 2 ** 20)
        worker = self.start(write, self.place, 'quiet', 2, 'quiet')
        worker.join()
        for _ in range(60):
            worker = self.start(write, self.place, 'loud', 10 ** 6, 'loud')
            time.sleep(0.5)
            worker.kill()
            worker.join()
            content = reading.read(self.directory)
            if content.removed > 1000:
                break
        self.assertGreater(content.removed, 0)
        self.assertEqual(
            ['quiet-0', 'quiet-1'], sorted(
                refusal.server for refusal in content.refusals
                if refusal.project == 'quiet'))

    def test_full_disk(self):
        """A line that is cut off damages no other."""
        worker = self.start(write_on_a_full_disk, self.place)
        worker.join()
        self.assertEqual(0, worker.exitcode)
        found = reading.read(self.directory)
        self.assertEqual(
            ['after-0', 'before-0'],
            sorted(refusal.server for refusal in found.refusals))
