#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Count the results of a test run::

    stestr last --subunit | python test_totals.py

Reads a subunit v2 stream and writes "<passed> <failed> <skipped>", then a
line for each failed test: its name, and the last line of its traceback.  A
test that was started and never finished counts as failed.
"""

import collections
import sys

import subunit
import testtools

_PASSED = frozenset(('success', 'xfail'))
_SKIPPED = frozenset(('skip',))


class _Results(testtools.StreamResult):
    """Remembers the last status of each test, and its tracebacks."""

    def __init__(self):
        super().__init__()
        self.status_of = {}
        self.tracebacks = collections.defaultdict(bytes)

    def status(self, test_id=None, test_status=None, file_name=None,
               file_bytes=None, **kwargs):
        if test_id is None:
            return
        if test_status not in (None, 'exists'):
            self.status_of[test_id] = test_status
        if file_bytes and (file_name or '').startswith('traceback'):
            self.tracebacks[test_id] += file_bytes


def results(stream):
    """Return the results in a subunit v2 stream.

    :param stream: binary file
    :returns: tuple of passed, failed, skipped, and a list of lines about the
        failed tests
    """
    found = _Results()
    found.startTestRun()
    subunit.ByteStreamToStreamResult(
        stream, non_subunit_name='output').run(found)
    found.stopTestRun()
    totals = collections.Counter()
    lines = []
    for test_id, status in found.status_of.items():
        if status in _PASSED:
            totals['passed'] += 1
        elif status in _SKIPPED:
            totals['skipped'] += 1
        else:
            totals['failed'] += 1
            traceback = found.tracebacks[test_id].decode(errors='replace')
            lines.append(': '.join(
                (test_id, *traceback.strip().splitlines()[-1:])))
    return totals['passed'], totals['failed'], totals['skipped'], lines


if __name__ == '__main__':
    *counts, failed = results(sys.stdin.buffer)
    print(*counts)
    for line in failed:
        print(line)
