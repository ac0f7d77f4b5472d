# SPDX-License-Identifier: Apache-2.0
"""The API refuses extra specs that mean nothing."""

from nfv_sched.tests.live import base


class ExtraSpecsTest(base.LiveTestCase):

    def answer(self, key: str, value: str):
        return self.set_extra_specs(self.made, {key: value})

    def setUp(self):
        super().setUp()
        self.made = self.flavor()

    def test_good_values(self):
        for key, value in (
                ('nfv:vswitch_numa_affinity', 'strict'),
                ('hw:wrs:vswitch_numa_affinity', 'prefer'),
                ('nfv:pci_numa_affinity', 'prefer'),
                ('hw:wrs:pci_numa_affinity', 'strict'),
                ('nfv:shared_vcpu', '0'),
                ('hw:wrs:shared_vcpu', '1'),
                ('nfv:numa_node.0', '1'),
                ('hw:numa_node.1', '0')):
            answer = self.answer(key, value)
            self.assertEqual(200, answer.status_code, f'{key}: {answer.text}')

    def test_bad_values(self):
        for key, value in (
                ('nfv:vswitch_numa_affinity', 'always'),
                ('hw:wrs:vswitch_numa_affinity', 'Strict'),
                ('nfv:pci_numa_affinity', ''),
                ('hw:wrs:pci_numa_affinity', 'required'),
                ('nfv:shared_vcpu', '-1'),
                ('hw:wrs:shared_vcpu', 'first'),
                ('nfv:numa_node.0', 'one'),
                ('hw:numa_node.0', '0,1'),
                ('nfv:numa_node.x', '0')):
            answer = self.answer(key, value)
            self.assertEqual(400, answer.status_code, f'{key}={value}')
            self.assertIn('Validation failed', answer.text)

    def test_unknown_keys(self):
        for key in ('nfv:vswitch_affinity', 'hw:wrs:vswitch'):
            self.assertEqual(400, self.answer(key, 'strict').status_code)
