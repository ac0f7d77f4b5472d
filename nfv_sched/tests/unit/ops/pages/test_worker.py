# SPDX-License-Identifier: Apache-2.0
"""Pages are made in another process, which may end or take too long."""

import logging
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

import fixtures

from nfv_sched.ops.pages import html
from nfv_sched.ops.pages import pages
from nfv_sched.ops.pages import worker
from nfv_sched.ops.snapshot import file
from nfv_sched.tests import base
from nfv_sched.tests import snapshots
from nfv_sched.tests.unit.ops.pages import seen

_SECONDS = 240  # far more than a busy machine takes to import Nova


class PageWorkerTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.folder = pathlib.Path(
            self.useFixture(fixtures.TempDir()).path)
        self.useFixture(fixtures.MockPatchObject(
            worker, 'ANSWER_SECONDS', _SECONDS))
        self.useFixture(fixtures.MockPatchObject(
            worker, 'TURN_SECONDS', _SECONDS))
        self.path = self.save(snapshots.generated(3))

    def save(self, cloud, name='cloud.json.gz'):
        path = str(self.folder / name)
        file.save(cloud, path)
        return path

    def worker(self, **options):
        made = worker.PageWorker(**options)
        self.addCleanup(made.close)
        return made

    def process(self):
        """ID of the only process that makes pages."""
        children = pathlib.Path(
            f'/proc/self/task/{threading.get_native_id()}/children')
        ids = [number for number in children.read_text().split()
               if b'spawn_main' in pathlib.Path(
                   f'/proc/{number}/cmdline').read_bytes()]
        self.assertEqual(1, len(ids))
        return int(ids[0])

    def test_pages(self):
        """They are those of the snapshot; one that has changed is read."""
        made = self.worker()
        site = pages.SnapshotPages(file.load(self.path))
        for path in (*html.TITLES, '/servers/x', html.STYLESHEET):
            self.assertEqual(site.respond(path, {'q': 'a'}, 60), made.respond(
                path, {'q': 'a'}, self.path, '1', 60), path)
        process = self.process()
        self.save(snapshots.generated(2))
        self.assertIn('3 hosts', self.headline(made, '1'))
        self.assertIn('2 hosts', self.headline(made, '2'))
        other = self.save(snapshots.generated(1), 'other.json.gz')
        self.assertIn('1 host', self.headline(made, '1', other))
        self.assertIn('2 hosts', self.headline(made, '2'))
        self.assertEqual(process, self.process())

        # The process ends while nothing is asked for.
        os.kill(process, signal.SIGKILL)
        self.assertIn('2 hosts', self.headline(made, '2'))

    def headline(self, made, version, path=None):
        page = made.respond('/', {}, path or self.path, version, 60)
        return seen.SeenPage(page).headings[0][1]

    def test_limits(self):
        """What takes too long is told, and then not tried again."""
        logger = self.useFixture(fixtures.FakeLogger(
            'nfv_sched', level=logging.WARNING))
        made = self.worker(limit=1)
        # To be simulated, which takes far longer.
        asked = '/', {}, 'thousand-hosts', '1', 60
        page = made.respond(*asked)
        self.assertIn(f'ended with -{signal.SIGALRM:d} at /', logger.output)
        self.assertEqual(page, made.respond(*asked))
        # What it would be searched for makes no difference.
        self.assertEqual(page, made.respond(
            '/', {'q': 'a', 'other': '1'}, *asked[2:]))
        self.assertEqual(1, logger.output.count('ended'))
        self.assertEqual((503, None), (
            page.status, page.headers.get('Retry-After')))
        self.assertIn('takes too long', seen.SeenPage(page).text)

        made = self.worker()
        self.useFixture(fixtures.MockPatchObject(
            worker, 'ANSWER_SECONDS', .1))
        # It is answered at once, and calculated all the same.
        pages_seen = []
        end = time.monotonic() + _SECONDS
        while time.monotonic() < end:
            pages_seen.append(made.respond('/', {}, self.path, '1', 60))
            if pages_seen[-1].status == 200:
                break
        self.assertEqual([503, 200], [
            pages_seen[0].status, pages_seen[-1].status])
        self.assertEqual('5', pages_seen[0].headers['Refresh'])

    def test_unreadable(self):
        """The snapshot is gone, or is none."""
        made = self.worker()
        for path in (str(self.folder / 'none'), __file__, str(self.folder)):
            page = made.respond('/', {}, path, '1', 60)
            self.assertEqual(500, page.status)
            self.assertNotIn(str(self.folder), seen.SeenPage(page).text)

    def test_no_page(self):
        """No process is started for that."""
        made = self.worker()
        self.assertIsNone(made.respond('/x', {}, self.path, '1', 60))
        made.close()
        self.assertEqual(
            503, made.respond('/', {}, self.path, '1', 60).status)

    def test_light(self):
        """Nova is imported in that process only."""
        subprocess.run([sys.executable, '-c', """
import sys
from nfv_sched.ops.pages import html, worker
html.message(html.http.HTTPStatus.NOT_FOUND, 'x')
assert 'nova' not in sys.modules"""], check=True)
