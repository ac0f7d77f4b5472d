# SPDX-License-Identifier: Apache-2.0

"""The tools of these tests: what must fail does fail."""

import testtools

from nfv_sched.tests import base as tests_base
from nfv_sched.tests.functional import base


class Rows(base.CloudTestCase):
    """Run by the test below only."""

    def with_a_failing_row(self):
        with self.row('the first'):
            self.fail('on purpose')
        with self.row('the second'):
            pass

    def with_passing_rows(self):
        with self.row('the only one'):
            pass


class RowsTest(tests_base.TimedTestCase):

    def run_rows(self, method):
        result = testtools.TestResult()
        Rows(method).run(result)
        self.assertEqual(1, result.testsRun)
        return result

    def test_failing_row_fails_its_test(self):
        result = self.run_rows('with_a_failing_row')
        self.assertFalse(result.wasSuccessful())
        self.assertEqual(1, len(result.failures))
        self.assertIn('the first', str(result.failures[0][1]))
        self.assertNotIn('the second', str(result.failures[0][1]))

    def test_passing_rows_do_not(self):
        self.assertTrue(self.run_rows('with_passing_rows').wasSuccessful())
