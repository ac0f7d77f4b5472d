# SPDX-License-Identifier: Apache-2.0
"""Reading a journal that others write, and damage."""

import collections
import json
import os
from unittest import mock

import fixtures

from nfv_sched.base import files
from nfv_sched.journal import entry
from nfv_sched.ops.answers.journal import reading
from nfv_sched.tests import base
from nfv_sched.tests.unit.journal import test_entry


class ParseTest(base.TestCase):

    def test_there_and_back(self):
        for value in (test_entry.refusal(),
                      test_entry.refusal(move=True, flavor=None),
                      test_entry.placed(1),
                      test_entry.placed(1, 0, change='elsewhere', by=()),
                      entry.Lost(time='t', count=3)):
            self.assertEqual(value, reading.parse(test_entry.line(value)))

    def test_no_entry(self):
        line = test_entry.line(test_entry.refusal())
        data = json.loads(line)
        for text in (
                line[:-9], b'', b'{}', b'[]', b'7', b'\xff', b'[' * 10 ** 5,
                json.dumps({**data, 'version': 2}).encode(),
                json.dumps({**data, 'more': {}}).encode(),
                b'{"version": 1, "other": {}}', b'{"version": 1}',
                b'{"version": 1, "refusal": {}}',
                b'{"version": [], "refusal": {"time": "t", "server": "s"}}',
                line.replace(b'"uuid-1"', b'"\\ud800"'),
                line.replace(b'"hosts":2', b'"hosts":"2"'),
                line.replace(b'"hosts":2', b'"hosts":-2'),
                line.replace(b'"hosts":2', b'"hosts":2,"more":2'),
                line.replace(b'"hosts":2,', b''),
                line.replace(b'"vcpus":4', b'"vcpus":null'),
                line.replace(b'"dedicated"', b'1'),
                line.replace(b'"dedicated"', b'"%s"' % (b'x' * 262145)),
                line.replace(b'"before":["uuid-0"]', b'"before":"uuid-0"')):
            self.assertNotEqual(line, text)
            self.assertRaises(entry.LineError, reading.parse, text)


class ReadTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.directory = self.useFixture(fixtures.TempDir()).path

    def write(self, *values, name='20260102T030405Z-1-0123abcd', end=b''):
        with open(f'{self.directory}/refusals-{name}.jsonl', 'wb') as file:
            for value in values:
                file.write(value if isinstance(value, bytes)
                           else test_entry.line(value))
            file.write(end)

    def test_of_a_server(self):
        """Also if it failed with another server of its request."""
        mine, others = [test_entry.refusal(server=name, before=())
                        for name in ('mine', 'other')]
        together = test_entry.refusal(server='other', before=('mine',))
        self.write(mine, others, together)
        self.assertEqual([mine, together],
                         list(reading.read(
                             self.directory, server='mine').refusals))
        self.assertEqual((), reading.read(
            self.directory, server='none').refusals)

    def test_too_large(self):
        """The oldest files are left out; one of them may be no journal."""
        old, new = [test_entry.refusal(time=time, server=time)
                    for time in ('2026-01-02', '2026-01-03')]
        for number, size in enumerate((2 << 30, 1 << 20)):
            name = f'2025010{number + 1}T000000Z-1-0123abcd'
            self.write(old, name=name)
            path = f'{self.directory}/refusals-{name}.jsonl'
            os.truncate(path, size)
            os.utime(path, (number, number))
        self.write(new)
        with files.limited(1):
            found = reading.read(self.directory)
        self.assertEqual((new,), found.refusals)
        self.assertEqual((
            f'{path} and 1 more, with newer files, has more than 1 MiB; '
            '--max-file-size raises the limit, now 1 MiB',), found.unread)

    def test_too_many_entries(self):
        value = test_entry.refusal()
        for lines in (test_entry.line(value) * 8193, b'\n' * 8193):
            self.write(value, lines)
            with mock.patch.object(files, 'max_items', lambda: 8 * 8192):
                found = reading.read(self.directory)
            self.assertEqual(value, found.refusals[-1])
            self.assertIn('refusals-20260102T030405Z-1-0123abcd.jsonl, with '
                          'older files, has more than 8192 entries',
                          ' '.join(found.unread))

    def test_newest_entries(self):
        for number in range(3):
            self.write(*[test_entry.numbered(number)] * 3,
                       name=f'2026010{number}T030405Z-1-0123abcd')
        with mock.patch.object(files, 'max_items', lambda: 8 * 6):
            found = reading.read(self.directory)
        self.assertEqual(['server-1', 'server-2'],
                         [each.server for each in found.refusals[::3]])
        text, = found.unread
        self.assertIn('refusals-20260100T030405Z', text)

    def test_missing(self):
        self.write(entry.Lost(time='t', count=2),
                   entry.Lost(time='t', count=1, removed=5))
        self.write(entry.Lost(time='t', removed=3),
                   name='20260102T030405Z-2-0123abcd')
        content = reading.read(self.directory)
        self.assertEqual((3, 8), (content.lost, content.removed))

    def test_damage(self):
        value = test_entry.refusal()
        cut = test_entry.line(value)[:-20]
        self.write(cut + b'\n', value, b'\0\0\n',
                   entry.Lost(time='t', count=2), end=cut)
        self.write(value, b'\xff\n', name='20260102T030405Z-2-0123abcd')
        self.write(b'not ours', name='notes')
        found = reading.read(self.directory)
        self.assertEqual((value, value), found.refusals)
        self.assertEqual(2, found.lost)
        self.assertEqual(
            ['3 lines are', '1 line is'],
            [text.partition(': ')[2][:len('3 lines are')].removesuffix(' c')
             for text in found.unread])

    def test_nothing(self):
        self.assertEqual(reading.JournalContent(),
                         reading.read(self.directory))
        missing = os.path.join(self.directory, 'missing')
        exc = self.assertRaises(
            reading.JournalError, reading.read, missing)
        self.assertEqual(f'{missing}: No such file or directory', str(exc))


class ReadAllTest(base.TestCase):
    def directory(self, *values):
        path = self.useFixture(fixtures.TempDir()).path
        with open(f'{path}/refusals-20260102T030405Z-1-0123abcd.jsonl',
                  'wb') as file:
            file.writelines(map(test_entry.line, values))
        return path

    def test_by_time(self):
        values = [test_entry.refusal(time=f'2026-01-0{day}', server=str(day))
                  for day in range(1, 4)]
        placed = [test_entry.placed(day, time=f'2026-01-0{day}')
                  for day in range(4, 6)]
        one = self.directory(values[0], placed[1], values[2])
        two = self.directory(
            values[1], placed[0], entry.Lost(time='t', count=2, removed=3))
        found = reading.read(one, two, f'{one}/')
        self.assertEqual(tuple(values), found.refusals)
        self.assertEqual(tuple(placed), found.placed)
        self.assertEqual((2, 3, ()), (found.lost, found.removed, found.unread))
        self.assertEqual((values[1],),
                         reading.read(one, two, server='2').refusals)

    def test_unreadable(self):
        """Without one of them it is not a report of the cloud."""
        self.assertRaisesRegex(
            reading.JournalError, '/none: No such file', reading.read,
            self.directory(), '/none')


class TallyTest(base.TestCase):

    @staticmethod
    def refusal(time, *policies):
        return test_entry.refusal(time=str(time), reasons=tuple(
            entry.RefusalReason(filter='F', policy=policy, need='n',
                                hosts=('h',))
            for policy in policies))

    def test_counts(self):
        tally = reading.Tally()
        tally.add([
            self.refusal(1, 'nfv:a=strict', 'nfv:a=prefer', 'vSwitch ports'),
            self.refusal(2, 'nfv:numa_node.1=0', 'nfv:numa_node.0=0')])
        self.assertEqual(
            {'nfv:a': 1, 'vSwitch ports': 1, 'nfv:numa_node': 1},
            tally.counts)
        self.assertEqual('2', tally.latest)

    def test_others(self):
        """What refused counts, if it was no filter."""
        tally = reading.Tally()
        tally.add([
            test_entry.other(1, 'placement'),
            test_entry.other(2, 'claim', reasons=self.refusal(
                2, 'nfv:a=strict').reasons),
            test_entry.other(3, 'filter', filter='F', reasons=self.refusal(
                3, 'F').reasons)])
        self.assertEqual(
            {'placement': 1, 'claim': 1, 'nfv:a': 1, 'F': 1}, tally.counts)

    def test_the_journal_forgets(self):
        tally = reading.Tally(collections.Counter(a=7), '2')
        tally.add([self.refusal(2, 'a'), self.refusal(3, 'a', 'b')])
        tally.add([self.refusal(3, 'a', 'b')])
        self.assertEqual({'a': 8, 'b': 1}, tally.counts)

    def test_no_end_of_policies(self):
        tally = reading.Tally()
        tally.add([self.refusal(n, f'policy {n}') for n in range(1, 10)])
        tally.add([self.refusal(f'a{n}', f'more {n}') for n in range(100)])
        self.assertEqual(reading.MAX_POLICIES + 1, len(tally.counts))
        self.assertEqual(109, sum(tally.counts.values()))

    def test_shadow(self):
        """By outcome, filter and weigher; accepted ones do not count."""
        tally = reading.Tally(latest='3')
        placed = [
            test_entry.placed(1),
            test_entry.placed(2, change='elsewhere', by=('Weigher',)),
            test_entry.placed(3, change='', by=()),
            test_entry.placed(4, change='', by=(), shadow=())]
        for count in (2, 4, 4):
            tally.add([], placed[:count])
        self.assertEqual({'refused': 1, 'elsewhere': 1, 'same': 1},
                         tally.servers)
        self.assertEqual({
            ('First', 'refused'): 1, ('First', 'same'): 2,
            ('Weigher', 'elsewhere'): 1, ('Weigher', 'same'): 2},
            tally.decisions)
        self.assertEqual(('3', placed[2].time),
                         (tally.latest, tally.latest_placed))
        self.assertEqual([0, 0, 0], list(tally.restarted().servers.values()))
