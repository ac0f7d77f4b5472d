# SPDX-License-Identifier: Apache-2.0
"""Lists of CPUs as texts."""

import hypothesis
from hypothesis import strategies as st

from nfv_sched.base import cpu_spec
from nfv_sched.tests import base


class CPUSpecTest(base.TestCase):

    @hypothesis.given(st.frozensets(st.integers(0, 200)))
    def test_there_and_back(self, numbers):
        self.assertEqual(numbers, cpu_spec.parse(cpu_spec.to_text(numbers)))

    def test_to_text(self):
        for numbers, text in (
                ((), ''), ((3,), '3'), ((0, 1), '0-1'),
                ((8, 0, 2, 1, 3), '0-3,8'), ((0, 2, 4), '0,2,4'),
                ((8, 7, 5, 0, 1, 2), '0-2,5,7-8')):
            self.assertEqual(text, cpu_spec.to_text(numbers))

    def test_parse(self):
        for text, cpus in (('0-3,^2,8', {0, 1, 3, 8}), ('', set()),
                           (' 1 , 2 - 3 ', {1, 2, 3})):
            self.assertEqual(cpus, cpu_spec.parse(text))

    def test_no_list(self):
        for text in ('x', '0-', '5-3', '-1', '1,', '0-65536', '65536', '1,,2',
                     '0-99999999999', '0-65535,0', f'{" " * 200_000}x',
                     f'1{" " * 200_000}x', ','.join(['0-65535'] * 20000)):
            self.assertRaises(ValueError, cpu_spec.parse, text)
