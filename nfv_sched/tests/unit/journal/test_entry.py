# SPDX-License-Identifier: Apache-2.0
"""Entries of the journal as lines."""

import dataclasses
import json

from nfv_sched.journal import entry
from nfv_sched.tests import base

FLAVOR = entry.RefusedFlavor(
    name='fw', id='7', vcpus=4, memory=4096,
    extra_specs={'hw:cpu_policy': 'dedicated', 'odd\nkey': '\xfc"'})


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
            entry.RefusalReason(
                filter=name, policy='nfv:key=strict', need='2 CPUs needed',
                have='1 free',
                hosts=tuple(f'{name}-{n}' for n in range(hosts)))
            for name in ('First', 'Second')), **more})


def numbered(number, **more):
    """One of several refusals that are equal.

    :param number: its number
    """
    return refusal(time=f'2026-01-02T03:04:05.{number:03}Z',
                   server=f'server-{number}', request=f'req-{number}',
                   before=(f'before-{number}',), **more)


def other(number, by, **more):
    """A refusal by something else than a filter of nfv-sched.

    :param by: value of ``entry.RefusedBy``
    """
    return numbered(number, by=by, **{
        'filter': '', 'passes': (), 'reasons': (), **more})


def placed(number, hosts=2, **more):
    """One of several servers that were placed where a filter in shadow is.

    :param hosts: how many hosts it would have refused
    """
    return entry.PlacedServer(**{
        'time': f'2026-01-02T03:04:05.{number:03}Z',
        'server': f'server-{number}', 'request': f'req-{number}',
        'flavor': FLAVOR, 'host': 'First-0', 'shadow': ('First', 'Weigher'),
        'change': 'refused', 'by': ('First',),
        'reasons': refusal(hosts).reasons[:1], **more})


class LineTest(base.TimedTestCase):

    def test_there_and_back(self):
        for value in (refusal(), refusal(move=True, flavor=None),
                      placed(1), placed(1, 0, change='elsewhere', by=()),
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
                line.replace(b'"hosts":2', b'"hosts":"2"'),
                line.replace(b'"hosts":2', b'"hosts":2.0'),
                line.replace(b'"hosts":2', b'"hosts":true'),
                line.replace(b'"hosts":2', b'"hosts":-2'),
                line.replace(b'"hosts":2', b'"hosts":2,"more":2'),
                line.replace(b'"hosts":2,', b''),
                line.replace(b'"vcpus":4', b'"vcpus":null'),
                line.replace(b'"dedicated"', b'1'),
                line.replace(b'"dedicated"', b'"%s"' % (b'x' * 262145)),
                line.replace(b'"before":["uuid-0"]', b'"before":"uuid-0"')):
            self.assertNotEqual(line, text)
            self.assertRaises(entry.LineError, entry.parse, text)

    def test_older_release(self):
        """A refusal that is not joined has no key that it does not know."""
        line = (
            b'{"version":1,"refusal":{"time":"t","server":"s","project":"p",'
            b'"flavor":{"name":"f","id":"7","vcpus":4,"memory":1024,'
            b'"extra_specs":{"a":"b","c":"d"}},'
            b'"filter":"F","reasons":[{"filter":"F","policy":"p","need":"n",'
            b'"hosts":["h"]}]}}\n')
        value = entry.parse(line)
        self.assertEqual(('p', 1, False),
                         (value.project, value.count, value.copied))
        self.assertEqual(line.replace(b'"project":"p",', b'').replace(
            b'"server":"s",', b'"server":"s","project":"p",'),
            entry.line(value))


class JoinTest(base.TimedTestCase):

    def test_there_and_back(self):
        values = [numbered(number) for number in range(3)]
        joined = entry.joined(entry.joined(*values[:2]), values[2])
        self.assertEqual((3, 'server-2'), (joined.count, joined.server))
        self.assertEqual(joined, entry.parse(entry.line(joined)))
        self.assertEqual(values, list(entry.single(joined)))

    def test_equal(self):
        value = refusal()
        first, second = value.reasons
        for equal in (
                numbered(7),
                refusal(reasons=(second, first)),
                refusal(reasons=(first, dataclasses.replace(
                    second, hosts=second.hosts[::-1])))):
            self.assertEqual(entry.key(value), entry.key(equal))

    def test_different(self):
        value = refusal()
        first, second = value.reasons
        keys = {entry.key(each) for each in (
            value, refusal(project='another'), refusal(move=True),
            refusal(filter='Third'), refusal(flavor=None),
            refusal(flavor=dataclasses.replace(FLAVOR, extra_specs={})),
            refusal(unnamed=1), refusal(passes=()), refusal(hosts=3),
            refusal(reasons=(first,)),
            refusal(reasons=(first, dataclasses.replace(
                second, have='0 free'))))}
        self.assertEqual(11, len(keys))

    def test_copy(self):
        value = refusal()
        self.assertEqual(dataclasses.replace(value, copied=True),
                         entry.parse(entry.copy(entry.line(value))))


class ShortLineTest(base.TimedTestCase):

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

    def test_halves_of_characters(self):
        value = refusal(message='a\ud800b', project='\u20ac')
        parsed = entry.parse(entry.line(value))
        self.assertEqual('a?b', parsed.message)
        self.assertEqual('\u20ac', parsed.project)

    def test_too_long_without_hosts(self):
        self.assertRaises(
            entry.LineError, entry.short_line, refusal(), 100)


class PlacedServerTest(base.TimedTestCase):

    def test_joined(self):
        """As refusals are, if all else is equal."""
        entries = [placed(number) for number in range(3)]
        self.assertEqual(1, len({entry.key(each) for each in entries}))
        for other in (placed(1, host='b'), placed(1, change=''),
                      placed(1, shadow=()), placed(1, instead='c')):
            self.assertNotEqual(entry.key(entries[0]), entry.key(other))
        joined = entry.joined(entry.joined(*entries[:2]), entries[2])
        self.assertEqual(3, joined.count)
        self.assertEqual(entries, list(entry.single(
            entry.parse(entry.line(joined)))))

    def test_short(self):
        whole = placed(1, 1000)
        short = entry.parse(entry.short_line(whole, 2000))
        self.assertEqual(1000, short.unnamed + len(short.reasons[0].hosts))
