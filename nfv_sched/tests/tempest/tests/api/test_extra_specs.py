# SPDX-License-Identifier: Apache-2.0
"""The API knows the extra specs of nfv-sched."""

from tempest.lib import decorators
from tempest.lib import exceptions as lib_exc

from nfv_sched.tests.tempest.tests.api import base


class ExtraSpecsTest(base.NFVSchedTest):
    """Good values are stored under either spelling."""

    def assert_stored(self, **extra_specs):
        flavor = self.create_flavor(1, extra_specs)
        stored = self.flavors_client.list_flavor_extra_specs(flavor)
        self.assertEqual(extra_specs, stored['extra_specs'])

    @decorators.idempotent_id('0a1f7c5e-6f0b-4c8e-9a61-5f3f3a6f7b10')
    def test_own_spelling(self):
        self.assert_stored(**{
            'nfv:vswitch_numa_affinity': 'strict',
            'nfv:pci_numa_affinity': 'prefer',
            'nfv:shared_vcpu': '0',
            'nfv:numa_node.0': '1',
            'nfv:numa_node.12': '31',
        })

    @decorators.idempotent_id('c5d2b8f4-1d7a-4f5c-8f0e-7e2a94d36c21')
    def test_carrier_grade_spelling(self):
        self.assert_stored(**{
            'hw:wrs:vswitch_numa_affinity': 'prefer',
            'hw:wrs:pci_numa_affinity': 'strict',
            'hw:wrs:shared_vcpu': '1',
            'hw:numa_node.0': '0',
        })


class ExtraSpecsNegativeTest(base.NFVSchedTest):
    """Bad values are refused with a 400, and nothing is stored."""

    def assert_refused(self, key, *values):
        flavor = self.create_flavor(1, {})
        for value in values:
            self.assertRaises(
                lib_exc.BadRequest, self.flavors_client.set_flavor_extra_spec,
                flavor, **{key: value})
        stored = self.flavors_client.list_flavor_extra_specs(flavor)
        self.assertEqual({}, stored['extra_specs'])

    @decorators.attr(type=['negative'])
    @decorators.idempotent_id('3e7c2a90-58bb-4b0e-8d5c-6c1e7c0b9d32')
    def test_affinity_negative(self):
        for key in ('nfv:vswitch_numa_affinity', 'nfv:pci_numa_affinity',
                    'hw:wrs:vswitch_numa_affinity',
                    'hw:wrs:pci_numa_affinity'):
            self.assert_refused(key, 'sometimes', 'Strict', ' strict', '')

    @decorators.attr(type=['negative'])
    @decorators.idempotent_id('7b4f1d68-0f39-4f0c-b9f2-2d0a5e8e1f43')
    def test_shared_vcpu_negative(self):
        for key in ('nfv:shared_vcpu', 'hw:wrs:shared_vcpu'):
            self.assert_refused(key, '-1', 'first', '0,1', '1.0', '')

    @decorators.attr(type=['negative'])
    @decorators.idempotent_id('e2a9c6d3-7d45-4e1b-a0d8-94b7f3c5a654')
    def test_numa_node_negative(self):
        for key in ('nfv:numa_node.0', 'hw:numa_node.0'):
            self.assert_refused(key, '-1', 'one', '0,1', '')
        for key in ('nfv:numa_node.x', 'nfv:numa_node.', 'nfv:numa_node.-1'):
            self.assert_refused(key, '0')

    @decorators.attr(type=['negative'])
    @decorators.idempotent_id('95d0e7f1-3c26-4a9d-8c47-1b6f2d8e0765')
    def test_unknown_key_negative(self):
        """A slip of the pen is noticed when it is made."""
        for key in ('nfv:vswitch_affinity', 'hw:wrs:vswitch'):
            self.assert_refused(key, 'strict')

    @decorators.attr(type=['negative'])
    @decorators.idempotent_id('d8b3f5a2-9e17-4c64-b3a5-8e7c0f1d2876')
    def test_update_negative(self):
        key = 'nfv:vswitch_numa_affinity'
        flavor = self.create_flavor(1, {key: 'prefer'})
        self.assertRaises(
            lib_exc.BadRequest,
            self.flavors_client.update_flavor_extra_spec,
            flavor, key, **{key: 'always'})
        stored = self.flavors_client.show_flavor_extra_spec(flavor, key)
        self.assertEqual('prefer', stored[key])
