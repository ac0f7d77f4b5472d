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
"""Entries of the journal as lines."""

import json

import testtools

from nfv_sched.cloud import snapshot
from nfv_sched.journal import entry

FLAVOR = snapshot.Flavor(
    name='fw', id='7', vcpus=4, memory=4096,
    extra_specs={'hw:cpu_policy': 'dedicated', 'odd\nkey': '\udc80"'})


def refusal(hosts=2, **more):
    """A refusal by two filters.

    :param hosts: how many hosts each of them refused
    """
    return entry.Refusal(**{
        'time': '2026-01-02T03:04:05.678Z', 'server': 'uuid-1',
        'before': ('uuid-0',), 'request': 'req-1', 'flavor': FLAVOR,
        'filter': 'Second', 'passes': (
            entry.Pass(filter='First', hosts=2 * hosts, left=hosts),
            entry.Pass(filter='Second', hosts=hosts, left=0)),
        'reasons': tuple(
            entry.Reason(
                filter=name, policy='nfv:key=strict', need='2 CPUs needed',
                have='1 free',
                hosts=tuple(f'{name}-{n}' for n in range(hosts)))
            for name in ('First', 'Second')), **more})


class LineTest(testtools.TestCase):

    def test_there_and_back(self):
        for value in (refusal(), refusal(move=True, flavor=None),
                      entry.Lost(time='t', count=3)):
            line = entry.line(value)
            self.assertEqual(1, line.count(b'\n'))
            self.assertEqual(value, entry.parse(line))

    def test_no_entry(self):
        line = entry.line(refusal())
        data = json.loads(line)
        for text in (
                line[:-9], b'', b'{}', b'[]', b'7', b'\xff', b'[' * 10 ** 5,
                json.dumps({**data, 'version': 2}).encode(),
                json.dumps({**data, 'more': {}}).encode(),
                b'{"version": 1, "other": {}}', b'{"version": 1}',
                b'{"version": 1, "refusal": {}}',
                b'{"version": 1, "refusal": []}',
                line.replace(b'"hosts":2', b'"hosts":"2"')):
            self.assertRaises(entry.LineError, entry.parse, text)


class ShortLineTest(testtools.TestCase):

    def test_short_enough(self):
        value = refusal(hosts=100)
        line = entry.line(value)
        self.assertEqual(line, entry.short_line(value, len(line)))

    def test_hosts_are_left_out(self):
        whole = refusal(hosts=100)
        shown = []
        for limit in (len(entry.line(whole)) - 1, 1500, 1000):
            line = entry.short_line(whole, limit)
            self.assertLessEqual(len(line), limit)
            value = entry.parse(line)
            named = [host for reason in value.reasons for host in reason.hosts]
            self.assertEqual(200, len(named) + value.unnamed)
            self.assertEqual(
                [host for reason in whole.reasons
                 for host in reason.hosts][:len(named)], named)
            self.assertEqual(whole.passes, value.passes)
            shown.append(len(named))
        self.assertEqual(100, shown[0])
        self.assertGreater(shown[1], shown[2])

    def test_too_long_without_hosts(self):
        self.assertRaises(
            entry.LineError, entry.short_line, refusal(), 100)
