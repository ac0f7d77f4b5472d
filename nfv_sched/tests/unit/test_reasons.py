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
"""What becomes of refusals when somebody reads them."""

from nfv_sched import reasons
from nfv_sched.tests import base


def _capacity(free):
    return reasons.Reason(
        reasons.CAPACITY, 'NUMA topology',
        '8 dedicated CPUs on one NUMA node needed', f'{free} free', free)


class TestText(base.TestCase):

    def test_summary_has_the_best_host(self):
        self.assertEqual(
            'NUMA topology: 8 dedicated CPUs on one NUMA node needed, '
            'best host: 6 free (3 hosts)',
            reasons.summary_text([_capacity(2), _capacity(6), _capacity(4)]))

    def test_summary_of_one_host(self):
        self.assertEqual(
            'NUMA topology: 8 dedicated CPUs on one NUMA node needed, '
            '2 free (1 host)', reasons.summary_text([_capacity(2)]))

    def test_fixed_order(self):
        vswitch = reasons.Reason(reasons.VSWITCH, 'vswitch', 'a switch')
        text = reasons.summary_text([vswitch, vswitch, _capacity(1)])
        self.assertLess(text.index('NUMA topology'), text.index('vswitch'))
        self.assertIn('(2 hosts)', text)

    def test_fits_into_a_fault(self):
        many = [reasons.Reason(reasons.VSWITCH, f'policy {i}', 'n' * 60)
                for i in range(20)]
        text = reasons.summary_text(many)
        self.assertLessEqual(len(text.encode()), reasons.MAX_BYTES)
        self.assertRegex(text, r'\+\d+ more$')
        named = [(f'host{i}', reason) for i, reason in enumerate(many)]
        text = reasons.hosts_text(named)
        self.assertLessEqual(len(text.encode()), reasons.MAX_BYTES)
        self.assertRegex(text, r'\+\d+ hosts$')

    def test_one_long_reason_is_clipped_at_a_word(self):
        text = reasons.summary_text([reasons.Reason(
            reasons.REQUEST, 'flavor', 'w\u00f6rd ' * 100)])
        self.assertLessEqual(len(text.encode()), reasons.MAX_BYTES)
        self.assertTrue(text.endswith('w\u00f6rd...'))

    def test_nothing_refused(self):
        self.assertEqual('', reasons.summary_text([]))
        self.assertEqual('', reasons.hosts_text([]))

    def test_a_bad_request_is_told_once(self):
        bad = reasons.Reason(reasons.REQUEST, 'flavor', 'nonsense')
        self.assertEqual('flavor: nonsense',
                         reasons.summary_text([bad] * 5))
