# SPDX-License-Identifier: Apache-2.0
"""The extra specs as the Nova API validates them."""

from nova.api.validation.extra_specs import validators
from nova import exception

from nfv_sched.base import extra_specs
from nfv_sched.fit import rules
from nfv_sched.scheduler import validators as nfv_validators
from nfv_sched.tests import base


class TestValidators(base.TestCase):
    """Through Nova's own registry, which loads the installed entry point."""

    def test_every_key_and_synonym(self):
        names = {v.name for v in nfv_validators.register()}
        for key, synonym in extra_specs.SYNONYMS.items():
            suffix = '{id}' if key.endswith('.') else ''
            self.assertIn(key + suffix, names)
            self.assertIn(synonym + suffix, names)

    def test_keys_are_those_of_the_scheduler(self):
        names = {v.name.partition('{')[0]
                 for v in nfv_validators.register()}
        known = {key[:key.find('.') + 1] or key for key in extra_specs.keys()}
        self.assertEqual(known, {
            name for name in names if name.startswith(extra_specs.NAMESPACE)})
        for key in ('nfv:vswitch_affinity', 'nfv:numa_node', 'nfv:nonsense'):
            self.assertRaises(exception.ValidationError,
                              validators.validate, key, '0')
            self.assertNotEqual((), extra_specs.parse({key: '0'}).errors)

    def test_parameters(self):
        for validator in nfv_validators.register():
            names = [parameter['name'] for parameter in validator.parameters]
            if validator.name.startswith(
                    ('nfv:numa_affinity', 'nfv:numa_anti_affinity')):
                self.assertEqual(['place'], names)
            elif '{' in validator.name:
                self.assertEqual(['id'], names)
            else:
                self.assertEqual([], names)
            for name in names:
                self.assertIn('{%s}' % name, validator.name)
            for parameter in validator.parameters:
                for example in parameter['examples']:
                    self.assertRegex(
                        example, f'^({parameter["pattern"]})$')

    def test_validation_and_parsing_agree(self):
        places = [
            f'{key}{place}' for key in (
                'nfv:numa_affinity.', 'nfv:numa_anti_affinity.')
            for place in ('osd', 'OSD_1-a', '-', 'x' * 64, 'x' * 65, '',
                          'a.b', 'a b', '\u00e9', 'osd/0', '{place}')]
        for value in ('strict', 'prefer', 'x', '', '0', '1', '12345', ' 1'):
            for key in ('nfv:vswitch_numa_affinity', 'nfv:pci_numa_affinity',
                        'hw:wrs:vswitch_numa_affinity', 'nfv:shared_vcpu',
                        'hw:wrs:shared_vcpu', 'nfv:numa_node.0',
                        'hw:numa_node.1', 'nfv:numa_node.x', 'nfv:nonsense',
                        *places):
                try:
                    validators.validate(key, value)
                    valid = True
                except exception.ValidationError:
                    valid = False
                self.assertEqual(
                    valid, not rules.faults({key: value}),
                    (key, value))
