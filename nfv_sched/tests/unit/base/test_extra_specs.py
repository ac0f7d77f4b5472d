# SPDX-License-Identifier: Apache-2.0
"""Extra specs and image properties become one validated policy."""

from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st

from nfv_sched.base import extra_specs
from nfv_sched.tests import base


class TestParse(base.TestCase):

    def test_nothing_asked(self):
        self.assertIs(extra_specs.NO_POLICY, extra_specs.parse({}))
        self.assertIs(extra_specs.NO_POLICY, extra_specs.parse(None, None))
        self.assertEqual(
            extra_specs.NO_POLICY,
            extra_specs.parse({'hw:cpu_policy': 'dedicated'}))

    def test_each_key(self):
        parsed = extra_specs.parse({
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

    def test_synonyms_mean_the_same(self):
        native = extra_specs.parse({
            'nfv:vswitch_numa_affinity': 'prefer',
            'nfv:pci_numa_affinity': 'strict',
            'nfv:shared_vcpu': '0', 'nfv:numa_node.0': '1'})
        synonym = extra_specs.parse({
            'hw:wrs:vswitch_numa_affinity': 'prefer',
            'hw:wrs:pci_numa_affinity': 'strict',
            'hw:wrs:shared_vcpu': '0', 'hw:numa_node.0': '1'})
        self.assertEqual(
            (native.vswitch, native.pci, native.shared_vcpu, native.node_map),
            (synonym.vswitch, synonym.pci, synonym.shared_vcpu,
             synonym.node_map))
        self.assertEqual('hw:wrs:vswitch_numa_affinity', synonym.vswitch_key)

    def test_both_spellings_may_agree(self):
        parsed = extra_specs.parse({
            'nfv:vswitch_numa_affinity': 'strict',
            'hw:wrs:vswitch_numa_affinity': 'strict',
            'nfv:numa_node.0': '1', 'hw:numa_node.0': '1'})
        self.assertEqual((), parsed.errors)
        self.assertEqual('strict', parsed.vswitch)

    def test_contradictions(self):
        for text, specs in (
                ('contradicts', {'nfv:vswitch_numa_affinity': 'strict',
                                 'hw:wrs:vswitch_numa_affinity': 'prefer'}),
                ('contradicts', {'nfv:numa_node.0': '1',
                                 'hw:numa_node.0': '0'}),
                ('contradicts', {'nfv:pci_numa_affinity': 'strict',
                                 'hw:pci_numa_affinity_policy': 'preferred'}),
                ('already', {'nfv:numa_node.0': '1',
                             'nfv:numa_node.1': '1'})):
            self.assertIn(text, extra_specs.parse(specs).errors[0].text)

    def test_native_pci_policy(self):
        for value, meant in (('required', 'strict'), ('socket', 'socket'),
                             ('preferred', 'prefer'), ('legacy', 'legacy')):
            self.assertEqual(meant, extra_specs.parse(
                {'hw:pci_numa_affinity_policy': value}).pci)
            self.assertEqual(meant, extra_specs.parse(
                {}, {'hw_pci_numa_affinity_policy': value}).pci)

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
            errors = extra_specs.parse(specs).errors
            self.assertEqual(1, len(errors), specs)
            self.assertLess(len(errors[0].text), 120)
            self.assertIn(errors[0].key, specs)

    def test_unknown_keys(self):
        for key, meant in (
                ('nfv:vswitch_affinity', 'nfv:vswitch_numa_affinity'),
                ('nfv:vswitch_numa_afinity', 'nfv:vswitch_numa_affinity'),
                ('nfv:VSWITCH_NUMA_AFFINITY', 'nfv:vswitch_numa_affinity'),
                ('nfv:wrs:pci_numa_affinity', 'nfv:pci_numa_affinity'),
                ('nfv:pci_numa_affinity_policy', 'nfv:pci_numa_affinity'),
                ('nfv:shared_vcpus', 'nfv:shared_vcpu'),
                ('nfv:numa_node', 'nfv:numa_node.N'),
                ('nfv:numa_nodes.0', 'nfv:numa_node.N'),
                ('nfv:numa_affinity', 'nfv:numa_affinity.PLACE'),
                ('nfv:numa_antiaffinity.x', 'nfv:numa_anti_affinity.PLACE')):
            parsed = extra_specs.parse({key: 'strict'})
            self.assertEqual(
                ((key, f'unknown key {key}, did you mean {meant}'),),
                parsed.errors)
        for key in ('nfv:', 'nfv:foo', 'nfv:cpu_policy', 'nfv:no_such_key'):
            self.assertEqual(
                ((key, f'unknown key {key}, see the flavor extra specs of '
                  f'nfv-sched'),), extra_specs.parse({key: '1'}).errors)

    def test_unknown_key_beside_others(self):
        parsed = extra_specs.parse({'nfv:vswitch_affinity': 'strict',
                                    'nfv:pci_numa_affinity': 'always',
                                    'nfv:numa_node.1': '0'})
        self.assertEqual(2, len(parsed.errors))
        self.assertEqual(((1, 0),), parsed.node_map)

    def test_keys_of_others(self):
        for key in ('hw:wrs:vcpus:min', 'nfv', 'nfvx:vswitch_affinity',
                    'aggregate_instance_extra_specs:nfv:x', 'vswitch'):
            self.assertIs(extra_specs.NO_POLICY,
                          extra_specs.parse({key: 'strict'}))

    def test_hostile_keys(self):
        for key in ('nfv:' + 'x' * 1000000, 'nfv:shared_vcpu ',
                    'nfv:shared_\u0475cpu', 'nfv:\x00\n\x1b[31m',
                    'nfv:\udc80', 'nfv:\u202e' * 100, 'nfv:%s{0}'):
            (_key, error), = extra_specs.parse({key: '0'}).errors
            self.assertLess(len(error), 120)
            self.assertTrue(error.startswith("unknown key 'nfv:"), error)
            self.assertTrue(error.isprintable())
            error.encode()
        self.assertIn("'nfv:shared_vcpu ', did you mean nfv:shared_vcpu",
                      extra_specs.parse({'nfv:shared_vcpu ': '0'}).errors[
                          0].text)
        errors = extra_specs.parse(
            {f'nfv:vswitch_{number}': 'x' for number in range(50000)}).errors
        self.assertEqual(4, len(errors))
        self.assertEqual(('', '49997 more unknown keys'), errors[-1])

    @settings(max_examples=300)
    @given(st.dictionaries(
        st.one_of(st.sampled_from((
            'nfv:vswitch_numa_affinity', 'nfv:numa_node.0', 'nfv:numa_node.1',
            'hw:numa_node.0', 'nfv:shared_vcpu', 'nfv:pci_numa_affinity',
            'hw:pci_numa_affinity_policy')), st.text(), st.integers(),
            st.text().map('nfv:'.__add__)),
        st.one_of(st.text(), st.none(), st.integers(), st.floats(),
                  st.sampled_from(('strict', 'prefer', '0', '1')),
                  st.lists(st.integers()))))
    def test_never_raises(self, specs):
        parsed = extra_specs.parse(specs, specs)
        self.assertIsInstance(parsed, extra_specs.NFVPolicy)
        hash(parsed)
