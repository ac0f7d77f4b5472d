# SPDX-License-Identifier: Apache-2.0
"""Entries of the journal as lines."""

from nfv_sched.journal import entry
from nfv_sched.ops.answers.journal import reading
from nfv_sched.tests import base

FLAVOR = entry.RefusedFlavor(
    name='fw', id='7', vcpus=4, memory=4096,
    extra_specs={'hw:cpu_policy': 'dedicated', 'odd\nkey': '\xfc"'})


def refusal(hosts=2, **more):
    """Return a refusal by two filters, each of so many hosts."""
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
    return refusal(time=f'2026-01-02T03:04:05.{number:03}Z',
                   server=f'server-{number}', request=f'req-{number}',
                   before=(f'before-{number}',), **more)


def other(number, by, **more):
    """Return a refusal by something else than a filter of nfv-sched."""
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


def line(value):
    return entry.line(value).encode() + b'\n'


class LineTest(base.TimedTestCase):

    def test_without_defaults(self):
        self.assertEqual(
            '{"version":1,"refusal":{"time":"t","server":"s","flavor":'
            '{"name":"f","vcpus":4,"memory":1024,"extra_specs":{"a":"b"}},'
            '"reasons":[{"filter":"F","policy":"p","need":"n",'
            '"hosts":["h"]}]}}',
            entry.line(entry.Refusal(
                time='t', server='s', flavor=entry.RefusedFlavor(
                    name='f', vcpus=4, memory=1024, extra_specs={'a': 'b'}),
                reasons=(entry.RefusalReason(
                    filter='F', policy='p', need='n', hosts=('h',)),))))

    def test_one_line(self):
        self.assertNotIn('\n', entry.line(refusal(project='a\nb\ud800')))


class ShortLineTest(base.TimedTestCase):

    def test_short_enough(self):
        value = refusal(hosts=100)
        line = entry.line(value)
        self.assertEqual(line, entry.short_line(value, len(line)))

    def test_hosts_are_left_out(self):
        shown = []
        for whole in refusal(hosts=100), placed(1, hosts=200):
            for limit in (len(entry.line(whole)) - 1, 1500, 1000):
                line = entry.short_line(whole, limit)
                self.assertLessEqual(len(line), limit)
                value = reading.parse(line)
                named = [host for reason in value.reasons
                         for host in reason.hosts]
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
