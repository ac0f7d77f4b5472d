# SPDX-License-Identifier: Apache-2.0
"""Words of the log and the commands."""

import sys
import time
import unicodedata

import hypothesis
from hypothesis import strategies as st

from nfv_sched.base import strings
from nfv_sched.tests import base


class TestText(base.TestCase):

    def test_some(self):
        names = ['d', 'b', 'a', 'c', 'e']
        for given, most, expected in (
                ([], 5, ''), (names, 5, 'a, b, c, d, e'),
                ([*names, 'f'], 5, 'a, b, c, d, e and 1 more'),
                (set(names), 2, 'a, b and 3 more')):
            self.assertEqual(expected, strings.some(given, most))
        self.assertEqual('a, b, c, d, e and 2 more',
                         strings.some('gfedcba'))

    def test_count(self):
        self.assertEqual(
            ['0 hosts', '1 host', '2 hosts'],
            [strings.count(number, 'host') for number in range(3)])

    def test_mask_secrets(self):
        for given, expected in (
            ('GET https://nova:s3cret@host:8774/v2.1: refused',
             'GET https://***@host:8774/v2.1: refused'),
            ("'http://nova:s3/cr#e@t@host/x' and https://u:s3cret@h",
             "'http://***@host/x' and https://***@h"),
            ('mysql+pymysql://nova:s3cret@[::1]/nova?charset=utf8',
             'mysql+pymysql://***@[::1]/nova?charset=utf8'),
            ('rabbit://a:s3cret@h1:5672,b:s3cret@h2:5672/v',
             'rabbit://***@h2:5672/v'),
            ('redis://:s3cret@h:6379', 'redis://***@h:6379'),
            ("netloc 'nova:s3cret@h' is odd", "netloc ***@h' is odd"),
            ('X-Auth-Token: s3cret', 'X-Auth-Token: ***'),
            ("{'X-Subject-Token': 's3cret'}",
             "{'X-Subject-Token': '***'}"),
            ('Authorization: Bearer s3cret', 'Authorization: Bearer ***'),
            ('token gAAAAABlsecret_-0123== is bad', 'token *** is bad'),
            ('eyJhbGci.eyJzdWIi.c2ln', '***'),
            ('(x-eyJhbGci.eyJzdWIi.c2ln)', '(***)'),
            ('eyJ-eyJ- eyJ-.a', None),
            ('--os-password s3cret', '--os-password ***'),
            ('password = s3cret', 'password = ***'),
            # Nothing secret.
            ("Access denied for user 'nova'@'10.0.0.1' (using password: YES)",
             None),
            ('Host a@b does not answer; see http://host:8774/v2.1', None),
            ('two\n  lines', None), ('', None),
        ):
            self.assertEqual(given if expected is None else expected,
                             strings.mask_secrets(given))

    def test_mask_secrets_of_long_messages(self):
        """In time that grows with the length."""
        for part in ('://', 'a:', '@', '://a:@', 'X-', '--', 'gAAAA', 'eyJ',
                     'eyJ-', 'eyJ.', 'X-token:', 'password', 'password='):
            began = time.process_time()
            strings.mask_secrets(part * (200_000 // len(part)))
            self.assertLess(time.process_time() - began, 2, part)

    def test_mask_secrets_in_part_of_a_message(self):
        """A secret that would be cut is left out, too."""
        for named in ('eyJhbGci.eyJzdWIi.s3cret', "'password': 's3cret'",
                      'Authorization: Bearer s3cret', 'X-Auth-Token: s3cret',
                      '--os-password s3cret', 'http://nova:s3cret@host/'):
            for before in range((1 << 15) - 40, (1 << 15) + 10):
                masked = strings.mask_secrets(
                    f'{"a" * (before % 7)} {"some " * (before // 5)}{named}'
                    f'{" more" * 10_000}')
                self.assertNotIn('s3c', masked)
                self.assertIn('some', masked)
                self.assertLess(len(masked), 1 << 15)

    def test_one_line(self):
        for given, expected in (
                (ValueError('first\n  second'), 'first second'),
                ('mysql://user:secret@host/db', 'mysql://***@host/db')):
            self.assertEqual(expected, strings.one_line(given))
        self.assertLess(len(strings.one_line('x' * 5000)), 1100)

    def test_brief(self):
        for given, expected in (
                ('It failed.', 'It failed'),
                (ValueError('first. \nsecond'), 'first'),
                (ValueError(), 'ValueError'), ('', 'str')):
            self.assertEqual(expected, strings.brief(given))


class TestVisible(base.TestCase):

    def test_escaped(self):
        family = '\N{MAN}\N{ZERO WIDTH JOINER}\N{GIRL}'
        heart = '\u2764\ufe0f'
        for given, expected in (
                ('router-1 \u00fc \u05d0 \U0001f600', None),
                (family, None), (heart, None),
                ('a\u200db', r'a\u200db'), ('a\ufe0fb', r'a\ufe0fb'),
                ('\x1b[31mred', r'\x1b[31mred'), ('a\x00', r'a\x00'),
                ('a\x7f\x9b\xad', r'a\x7f\x9b\xad'), ('\r', r'\r'),
                ('\u061c\u200b\u2028\u202e', r'\u061c\u200b\u2028\u202e'),
                ('\ufeff\U000e0001', r'\ufeff\U000e0001'),
                ('\ud800\uffff\ue000', r'\ud800\uffff\ue000'),
                ('\u3164\u034f\u2800', r'\u3164\u034f\u2800')):
            self.assertEqual(expected or given, strings.visible(given))

    def test_breaks(self):
        self.assertEqual('a\n\tb', strings.visible('a\n\tb'))
        self.assertEqual(r'a\n\tb\u2028', strings.line('a\n\tb\u2028'))

    def test_every_character(self):
        harmful = ('Cc', 'Cf', 'Cs', 'Co', 'Cn', 'Zl', 'Zp')
        self.assertEqual([], [
            hex(number) for number in range(sys.maxunicode + 1)
            if unicodedata.category(chr(number)) in harmful
            and chr(number) in strings.line(f'a{chr(number)}b')])

    @hypothesis.given(st.text())
    def test_stays(self, given):
        """What was escaped once is not escaped again."""
        self.assertEqual(strings.line(given),
                         strings.visible(strings.line(given)))
