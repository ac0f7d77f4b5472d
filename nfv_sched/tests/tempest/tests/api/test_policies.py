# SPDX-License-Identifier: Apache-2.0
"""Smoke tests of the policies, with the NUMA node read by an admin."""

from tempest import config
from tempest.lib import decorators
from tempest.lib import exceptions as lib_exc

from nfv_sched.tests import outcomes
from nfv_sched.tests.tempest.tests.api import base

CONF = config.CONF

VSWITCH = outcomes.KEY
PCI = 'nfv:pci_numa_affinity'
SHARED = 'nfv:shared_vcpu'


class VSwitchAffinityTest(base.NFVSchedTest):
    """Three rows of the table of outcomes."""

    needed_filters = ('NFVTopologyFilter', 'VSwitchNUMAAffinityFilter')

    @decorators.attr(type='smoke')
    @decorators.idempotent_id('1d5d8c32-26a1-4d38-9c8f-0a6a1be3a001')
    def test_strict(self):
        flavor = self.create_flavor(*base.pinned(**{VSWITCH: 'strict'}))
        self.assert_with(self.vswitch_nodes, self.boot(flavor))

    def others(self, host):
        return set(range(self.numa_nodes(host))) - self.vswitch_nodes(host)

    def mapped_away(self, policy):
        """Map a guest away from the switch.

        :returns: host, number of a node without the switch, flavor, and the
            row of the table
        """
        self.require_options('node_labels')
        outcome, = outcomes.rows(policy=policy, mapped_away=True)
        host = self.host_where(
            lambda host: self.vswitch_nodes(host) and self.others(host),
            'NUMA nodes with the virtual switch and without')
        node = min(self.others(host))
        return host, node, self.create_flavor(
            *base.pinned(**outcome.extra_specs(node))), outcome

    @decorators.idempotent_id('1d5d8c32-26a1-4d38-9c8f-0a6a1be3a009')
    def test_strict_mapped_away_from_the_switch(self):
        host, node, flavor, outcome = self.mapped_away('strict')
        message = self.boot_refused(
            flavor, client=self.admin_servers_client, host=host)
        self.assert_reason(message, outcome.reason.format(node=node))

    @decorators.idempotent_id('1d5d8c32-26a1-4d38-9c8f-0a6a1be3a010')
    def test_prefer_mapped_away_from_the_switch(self):
        """The mapping is kept, the preference cannot be."""
        host, node, flavor, _outcome = self.mapped_away('prefer')
        server = self.boot(
            flavor, client=self.admin_servers_client, host=host)
        self.assertEqual([node], self.host_nodes(server))


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
