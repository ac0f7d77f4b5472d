#!/usr/bin/env python3
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
