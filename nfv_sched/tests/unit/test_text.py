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
"""Words of the log and the commands."""

from nfv_sched.tests import base
from nfv_sched import text


class TestText(base.TestCase):

    def test_some(self):
        names = ['d', 'b', 'a', 'c', 'e']
        for given, most, expected in (
                ([], 5, ''), (names, 5, 'a, b, c, d, e'),
                ([*names, 'f'], 5, 'a, b, c, d, e and 1 more'),
                (set(names), 2, 'a, b and 3 more')):
            self.assertEqual(expected, text.some(given, most))
        self.assertEqual('a, b, c, d, e and 2 more',
                         text.some('gfedcba'))

    def test_count(self):
        self.assertEqual(
            ['0 hosts', '1 host', '2 hosts'],
            [text.count(number, 'host') for number in range(3)])

    def test_brief(self):
        for given, expected in (
                ('It failed.', 'It failed'),
                (ValueError('first. \nsecond'), 'first'),
                (ValueError(), 'ValueError'), ('', 'str')):
            self.assertEqual(expected, text.brief(given))
