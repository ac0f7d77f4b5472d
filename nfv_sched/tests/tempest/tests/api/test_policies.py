# SPDX-License-Identifier: Apache-2.0
"""Smoke tests of the policies, with the NUMA node read by an admin."""

from tempest import config
from tempest.lib import decorators
from tempest.lib import exceptions as lib_exc

from nfv_sched.tests.tempest.tests.api import base

CONF = config.CONF

VSWITCH = 'nfv:vswitch_numa_affinity'
PCI = 'nfv:pci_numa_affinity'
SHARED = 'nfv:shared_vcpu'


class VSwitchAffinityTest(base.NFVSchedTest):
    needed_filters = ('NFVTopologyFilter', 'VSwitchNUMAAffinityFilter')

    @decorators.attr(type='smoke')
    @decorators.idempotent_id('1d5d8c32-26a1-4d38-9c8f-0a6a1be3a001')
    def test_strict(self):
        flavor = self.create_flavor(*base.pinned(**{VSWITCH: 'strict'}))
        self.assert_with(self.vswitch_nodes, self.boot(flavor))


class PCIAffinityTest(base.NFVSchedTest):

    needed_filters = ('NFVTopologyFilter', 'PCINUMAAffinityFilter')
    needed_options = ('pci_alias',)

    def pci_nodes(self, host):
        return base.parse_nodes(CONF.nfv_sched.pci_nodes, host)

    @decorators.idempotent_id('8c1e5f20-7b6d-4a43-8a52-3f9e0c4b6201')
    def test_strict(self):
        flavor = self.create_flavor(*base.pinned(**{
            PCI: 'strict',
            'pci_passthrough:alias': f'{CONF.nfv_sched.pci_alias}:1'}))
        self.assert_with(self.pci_nodes, self.boot(flavor))


class SharedVCPUTest(base.NFVSchedTest):
    """One vCPU floats, the others are pinned on the same NUMA node."""

    needed_filters = ('NFVTopologyFilter', 'SharedVCPUFilter')
    needed_options = ('dedicated_cpus', 'shared_cpus')

    @decorators.idempotent_id('b7d4a9e2-3c10-4e95-96f8-5d2b1a7c8301')
    def test_shared_vcpu(self):
        node, = self.guest_nodes(self.boot(self.create_flavor(2, {
            'hw:cpu_policy': 'mixed', 'hw:cpu_dedicated_mask': '^0',
            'hw:numa_nodes': '1', SHARED: '0'})))
        self.assertEqual([0, 1], sorted(node['vcpu_set']))
        self.assertEqual(['1'], list(node['cpu_pinning']))


class ExtraSpecsNegativeTest(base.NFVSchedTest):

    @decorators.attr(type=['negative'])
    @decorators.idempotent_id('d8b3f5a2-9e17-4c64-b3a5-8e7c0f1d2876')
    def test_update_negative(self):
        flavor = self.create_flavor(1, {VSWITCH: 'prefer'})
        self.assertRaises(
            lib_exc.BadRequest,
            self.flavors_client.update_flavor_extra_spec,
            flavor, VSWITCH, **{VSWITCH: 'always'})
        stored = self.flavors_client.show_flavor_extra_spec(flavor, VSWITCH)
        self.assertEqual('prefer', stored[VSWITCH])


class UnvalidatedNegativeTest(base.NFVSchedTest):
    """Before 2.86 the API stores anything; no host then takes it."""

    min_microversion = '2.78'
    max_microversion = '2.85'
    needed_filters = ('NFVTopologyFilter', 'VSwitchNUMAAffinityFilter')

    @decorators.attr(type=['negative'])
    @decorators.idempotent_id('5a0c3bd1-44f7-4b22-9f14-6d1d8a2c7106')
    def test_value_past_the_api_negative(self):
        flavor = self.create_flavor(*base.pinned(**{VSWITCH: 'always'}))
        self.assert_reason(self.boot_refused(flavor), VSWITCH, 'always')
