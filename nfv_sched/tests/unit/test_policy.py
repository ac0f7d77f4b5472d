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
"""Extra specs and image properties become one validated policy."""

from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st

from nfv_sched import policy
from nfv_sched.tests import base


class TestParse(base.TestCase):

    def test_nothing_asked(self):
        self.assertIs(policy.NO_POLICY, policy.parse({}))
        self.assertIs(policy.NO_POLICY, policy.parse(None, None))
        self.assertTrue(policy.parse({'hw:cpu_policy': 'dedicated'}).empty)

    def test_each_key(self):
        parsed = policy.parse({
            'nfv:vswitch_numa_affinity': 'strict',
            'nfv:pci_numa_affinity': 'prefer',
            'nfv:shared_vcpu': '3',
            'nfv:numa_node.0': '1',
            'nfv:numa_node.1': '0',
        })
        self.assertEqual('strict', parsed.vswitch)
        self.assertEqual('prefer', parsed.pci)
        self.assertEqual(3, parsed.shared_vcpu)
        self.assertEqual(((0, 1), (1, 0)), parsed.node_map)
        self.assertEqual((), parsed.errors)
        self.assertFalse(parsed.empty)

    def test_synonyms_mean_the_same(self):
        native = policy.parse({
            'nfv:vswitch_numa_affinity': 'prefer',
            'nfv:pci_numa_affinity': 'strict',
            'nfv:shared_vcpu': '0', 'nfv:numa_node.0': '1'})
        synonym = policy.parse({
            'hw:wrs:vswitch_numa_affinity': 'prefer',
            'hw:wrs:pci_numa_affinity': 'strict',
            'hw:wrs:shared_vcpu': '0', 'hw:numa_node.0': '1'})
        self.assertEqual(
            (native.vswitch, native.pci, native.shared_vcpu, native.node_map),
            (synonym.vswitch, synonym.pci, synonym.shared_vcpu,
             synonym.node_map))
        self.assertEqual('hw:wrs:vswitch_numa_affinity', synonym.vswitch_key)

    def test_both_spellings_may_agree(self):
        parsed = policy.parse({
            'nfv:vswitch_numa_affinity': 'strict',
            'hw:wrs:vswitch_numa_affinity': 'strict',
            'nfv:numa_node.0': '1', 'hw:numa_node.0': '1'})
        self.assertEqual((), parsed.errors)
        self.assertEqual('strict', parsed.vswitch)

    def test_spellings_that_contradict(self):
        parsed = policy.parse({
            'nfv:vswitch_numa_affinity': 'strict',
            'hw:wrs:vswitch_numa_affinity': 'prefer'})
        self.assertIn('contradicts', parsed.errors[0])
        parsed = policy.parse({'nfv:numa_node.0': '1', 'hw:numa_node.0': '0'})
        self.assertIn('contradicts', parsed.errors[0])

    def test_native_pci_policy(self):
        for value, meant in (('required', 'strict'), ('socket', 'socket'),
                             ('preferred', 'prefer'), ('legacy', 'legacy')):
            self.assertEqual(meant, policy.parse(
                {'hw:pci_numa_affinity_policy': value}).pci)
            self.assertEqual(meant, policy.parse(
                {}, {'hw_pci_numa_affinity_policy': value}).pci)
        parsed = policy.parse({'nfv:pci_numa_affinity': 'strict',
                               'hw:pci_numa_affinity_policy': 'preferred'})
        self.assertIn('contradicts', parsed.errors[0])

    def test_bad_values(self):
        for specs in (
                {'nfv:vswitch_numa_affinity': 'Strict'},
                {'nfv:vswitch_numa_affinity': ''},
                {'nfv:pci_numa_affinity': 'required'},
                {'nfv:shared_vcpu': '-1'},
                {'nfv:shared_vcpu': 'all'},
                {'nfv:shared_vcpu': '9' * 5000},
                {'nfv:shared_vcpu': '\u0663'},
                {'nfv:numa_node.0': 'x'},
                {'nfv:numa_node.0': '1.0'},
                {'nfv:numa_node.': '0'},
                {'nfv:numa_node.a': '0'},
                {'nfv:numa_node.0.1': '0'},
                {'nfv:numa_node.0': None}):
            errors = policy.parse(specs).errors
            self.assertEqual(1, len(errors), specs)
            self.assertLess(len(errors[0]), 120)

    def test_two_guest_nodes_on_one_host_node(self):
        errors = policy.parse(
            {'nfv:numa_node.0': '1', 'nfv:numa_node.1': '1'}).errors
        self.assertIn('already', errors[0])

    @settings(max_examples=300)
    @given(st.dictionaries(
        st.one_of(st.sampled_from((
            'nfv:vswitch_numa_affinity', 'nfv:numa_node.0', 'nfv:numa_node.1',
            'hw:numa_node.0', 'nfv:shared_vcpu', 'nfv:pci_numa_affinity',
            'hw:pci_numa_affinity_policy')), st.text(), st.integers()),
        st.one_of(st.text(), st.none(), st.integers(), st.floats(),
                  st.sampled_from(('strict', 'prefer', '0', '1')),
                  st.lists(st.integers()))))
    def test_never_raises(self, specs):
        parsed = policy.parse(specs, specs)
        self.assertIsInstance(parsed, policy.NFVPolicy)
        hash(parsed)
