# SPDX-License-Identifier: Apache-2.0
"""Progress on a standard error that is not a terminal."""

import contextlib
import io

import fixtures

from nfv_sched.ops.simulator import progress
from nfv_sched.tests import base


class LinesTest(base.TimedTestCase):

    def setUp(self):
        super().setUp()
        self.seconds = 100.0
        self.useFixture(fixtures.MonkeyPatch(
            'nfv_sched.ops.simulator.progress.time.monotonic',
            lambda: self.seconds))
        self.errors = io.StringIO()

    @contextlib.contextmanager
    def shown(self):
        with contextlib.redirect_stderr(self.errors), (
                progress.shown()) as update:
            self.seconds += progress.DELAY
            yield update

    def assertLines(self, *lines):
        self.assertEqual(list(lines), self.errors.getvalue().splitlines())

    def test_last_line_has_the_full_count(self):
        with self.shown() as update:
            for done in range(5):
                update(done, 4, 'resource providers')
        self.assertLines('0 of 4 resource providers done',
                         '4 of 4 resource providers done')

    def test_each_kind_of_work_ends(self):
        with self.shown() as update:
            update(0, 4, 'resource providers')
            update(4, 4, 'resource providers')
            update(0, 2, 'hosts')
            update(2, 2, 'hosts')
        self.assertLines('0 of 4 resource providers done',
                         '4 of 4 resource providers done')

    def test_unknown_amount(self):
        """It is said once: there is nothing to count."""
        with self.shown() as update:
            for _ in range(3):
                update(0, None, 'searching for moves')
                self.seconds += progress.INTERVAL
            update(0, 2, 'moves tried')
            update(2, 2, 'moves tried')
        self.assertLines('searching for moves ...', '0 of 2 moves tried done',
                         '2 of 2 moves tried done')

    def test_short_work_prints_nothing(self):
        with self.shown() as update:
            self.seconds -= progress.DELAY
            update(0, 4, 'hosts')
            update(4, 4, 'hosts')
        self.assertLines()

    def test_failed_work_does_not_end(self):
        def fail():
            with self.shown() as update:
                update(0, 4, 'hosts')
                update(3, 4, 'hosts')
                raise ValueError()

        self.assertRaises(ValueError, fail)
        self.assertLines('0 of 4 hosts done')
