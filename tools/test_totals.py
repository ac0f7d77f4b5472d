#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Count the results of a test run::

    stestr last --subunit | python test_totals.py

Reads a subunit v2 stream and writes "<passed> <failed> <skipped>".  A test
that was started and never finished counts as failed.
"""

import collections
import sys

import subunit
import testtools

_PASSED = frozenset(('success', 'xfail'))
_SKIPPED = frozenset(('skip',))


class _Results(testtools.StreamResult):
    """Remembers the last status of each test."""

    def __init__(self):
        super().__init__()
        self.status_of = {}

    def status(self, test_id=None, test_status=None, **kwargs):
        if test_id is not None and test_status not in (None, 'exists'):
            self.status_of[test_id] = test_status


def count(stream):
    """Count the results in a subunit v2 stream.

    :param stream: binary file
    :returns: tuple of passed, failed, skipped
    """
    results = _Results()
    results.startTestRun()
    subunit.ByteStreamToStreamResult(
        stream, non_subunit_name='output').run(results)
    results.stopTestRun()
    totals = collections.Counter(
        'passed' if status in _PASSED
        else 'skipped' if status in _SKIPPED
        else 'failed'
        for status in results.status_of.values())
    return totals['passed'], totals['failed'], totals['skipped']


if __name__ == '__main__':
    print(*count(sys.stdin.buffer))
