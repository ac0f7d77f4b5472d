# SPDX-License-Identifier: Apache-2.0
"""Pages are made in another process, which may end or take too long."""

import io
import json
import logging
import os
import pathlib
import pickle
import signal
import subprocess
import sys
import threading
import time

import fixtures

from nfv_sched.ops.cloud import file
from nfv_sched.ops.serve.pages import html
from nfv_sched.ops.serve.pages import views
from nfv_sched.ops.serve.pages import worker
from nfv_sched.tests import base
from nfv_sched.tests import snapshots
from nfv_sched.tests.unit.ops.serve.pages import seen

_SECONDS = 240  # far more than a busy machine takes to import Nova


class PageWorkerTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.useFixture(fixtures.MockPatchObject(
            worker, 'ANSWER_SECONDS', _SECONDS))
        self.content = self.content_of(3)

    def content_of(self, hosts):
        with io.BytesIO() as raw:
            file.dump(snapshots.generated(hosts), raw)
            return raw.getvalue()

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
        made = self.worker()
        site = views.SnapshotPages(file.load('x', self.content))
        for path in (*html.TITLES, '/servers/x'):
            self.assertEqual(site.respond(path, {'q': 'a'}, 60), made.respond(
                path, {'q': 'a'}, self.content, '1', 60), path)
        process = self.process()
        for number in (1, 2, 3, 2, 1):
            self.assertIn(f'{number} host', self.headline(made, number))
        self.assertEqual(process, self.process())

        # The process ends while nothing is asked for.
        os.kill(process, signal.SIGKILL)
        self.assertIn('2 hosts', self.headline(made, 2))

    def headline(self, made, hosts):
        page = made.respond('/', {}, self.content_of(hosts), f'of {hosts}', 60)
        return seen.SeenPage(page.body.decode()).headings[0][1]

    def test_answers_are_data(self):
        """Nothing but data, which cannot add headers, is taken for a page."""
        page = html.message(html.http.HTTPStatus.NOT_FOUND, 'x', 1)
        head = json.dumps([404, html.TYPE, dict(page.headers)]).encode()
        self.assertEqual(page, worker.parse(head + b'\n' + page.body))
        for answer in (
                pickle.dumps(page), b'', b'{}', b'7', b'[]', b'[' * 99999,
                b'null', b'[1, "a", {}]', b'[404, 1, {}]', b'[404, "a", []]',
                b'[404, "a\\r\\nb", {}]', b'[404, "a", {"b": "c\\n"}]',
                b'[404, "a", {"b\\r\\n": "c"}]', b'[404, "a", {"b": 1}]',
                b'[404, "a", {"b": "\\u2028"}]', b'["404", "a", {}]'):
            self.assertRaises(ValueError, worker.parse, answer)

    def test_limits(self):
        """What takes too long is told, and then not tried again."""
        logger = self.useFixture(fixtures.FakeLogger(
            'nfv_sched', level=logging.WARNING))
        made = self.worker(limit=1e-3)
        # To read it takes longer.
        asked = '/', {}, self.content_of(100), '1', 60
        page = made.respond(*asked)
        self.assertIn(f'ended with -{signal.SIGALRM:d} at /', logger.output)
        self.assertEqual(page, made.respond(*asked))
        # What it would be searched for makes no difference.
        self.assertEqual(page, made.respond(
            '/', {'q': 'a', 'other': '1'}, *asked[2:]))
        self.assertEqual(1, logger.output.count('ended'))
        self.assertEqual((503, None), (
            page.status, page.headers.get('Retry-After')))
        self.assertIn('takes too long', seen.SeenPage(page.body.decode()).text)

        made = self.worker()
        self.useFixture(fixtures.MockPatchObject(worker, 'ANSWER_SECONDS', .1))
        # It is answered at once, and calculated all the same.
        pages_seen = []
        end = time.monotonic() + _SECONDS
        while time.monotonic() < end:
            pages_seen.append(made.respond('/', {}, self.content, '1', 60))
            if pages_seen[-1].status == 200:
                break
        self.assertEqual([503, 200], [
            pages_seen[0].status, pages_seen[-1].status])
        self.assertEqual('5', pages_seen[0].headers['Refresh'])

    def test_unreadable(self):
        made = self.worker()
        for content in (b'', b'{}', self.content[:-9], b'secret'):
            page = made.respond('/', {}, content, '1', 60)
            self.assertEqual(500, page.status)
            self.assertNotIn('secret', seen.SeenPage(page.body.decode()).text)

    def test_closed(self):
        made = self.worker()
        made.close()
        self.assertEqual(
            503, made.respond('/', {}, self.content, '1', 60).status)

    def test_quiet(self):
        """Warnings of Nova's libraries are not in the log of the service."""
        path = os.path.join(
            self.useFixture(fixtures.TempDir()).path, 'content')
        with open(path, 'wb') as opened:
            opened.write(self.content)
        done = subprocess.run([sys.executable, '-c', f"""
from nfv_sched.ops.serve.pages import worker
worker.ANSWER_SECONDS = {_SECONDS}
made = worker.PageWorker()
with open({path!r}, 'rb') as opened:
    page = made.respond('/', {{}}, opened.read(), '1', 60)
made.close()
print(page.status)"""], check=True, capture_output=True, text=True)
        self.assertEqual(('200\n', ''), (done.stdout, done.stderr))

    def test_light(self):
        """Nova is imported in that process only."""
        subprocess.run([sys.executable, '-c', """
import sys
from nfv_sched.ops.serve.pages import html, worker
html.message(html.http.HTTPStatus.NOT_FOUND, 'x')
assert 'nova' not in sys.modules"""], check=True)
