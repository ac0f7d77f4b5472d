# SPDX-License-Identifier: Apache-2.0
"""A tenant reads why no host takes the guest, and no host names."""

from tempest.lib import decorators

from nfv_sched.tests.tempest.tests.api import base

AFFINITY = 'nfv:vswitch_numa_affinity'
SHARED = 'nfv:shared_vcpu'


class RefusalsNegativeTest(base.NFVSchedTest):
    """Guests that no host can take, whatever else runs on it."""

    needed_filters = ('NFVTopologyFilter', 'VSwitchNUMAAffinityFilter')

    @decorators.attr(type=['negative'])
    @decorators.idempotent_id('5a0c3bd1-44f7-4b22-9f14-6d1d8a2c7101')
    def test_no_numa_topology_negative(self):
        """The owner learns which key the flavor lacks."""
        if any(self.numa_nodes(host) == 1 for host in self.hosts):
            raise self.skipException(
                'A compute host with a single NUMA node takes such guests')
        flavor = self.create_flavor(1, {AFFINITY: 'strict'})
        self.assert_reason(self.boot_refused(flavor),
                           f'{AFFINITY}=strict', 'hw:numa_nodes')

    @decorators.attr(type=['negative'])
    @decorators.idempotent_id('5a0c3bd1-44f7-4b22-9f14-6d1d8a2c7102')
    def test_contradiction_negative(self):
        synonym = 'hw:wrs:vswitch_numa_affinity'
        flavor = self.create_flavor(
            *base.pinned(**{AFFINITY: 'strict', synonym: 'prefer'}))
        self.assert_reason(self.boot_refused(flavor), AFFINITY, synonym,
                           'contradicts')

    @decorators.attr(type=['negative'])
    @decorators.idempotent_id('5a0c3bd1-44f7-4b22-9f14-6d1d8a2c7103')
    def test_more_nodes_than_the_switch_has_negative(self):
        """No host has the switch on as many nodes as the guest has."""
        nodes = 1 + max(len(self.vswitch_nodes(host)) for host in self.hosts)
        flavor = self.create_flavor(
            *base.pinned(vcpus=nodes, nodes=nodes, **{AFFINITY: 'strict'}),
            guests=nodes)
        message = self.boot_refused(flavor)
        if all(self.numa_nodes(host) >= nodes for host in self.hosts):
            self.assert_reason(message, f'{AFFINITY}=strict')

    @decorators.attr(type=['negative'])
    @decorators.idempotent_id('5a0c3bd1-44f7-4b22-9f14-6d1d8a2c7104')
    def test_node_that_no_host_has_negative(self):
        flavor = self.create_flavor(
            *base.pinned(**{'nfv:numa_node.0': '999'}))
        self.assert_reason(self.boot_refused(flavor),
                           'nfv:numa_node.0=999')

    @decorators.attr(type=['negative'])
    @decorators.idempotent_id('5a0c3bd1-44f7-4b22-9f14-6d1d8a2c7105')
    def test_shared_vcpu_of_a_dedicated_guest_negative(self):
        """Nova would pin the vCPU; the reason names the key to change."""
        self.require_filters('SharedVCPUFilter')
        flavor = self.create_flavor(2, {
            'hw:cpu_policy': 'dedicated', SHARED: '0'})
        self.assert_reason(self.boot_refused(flavor), f'{SHARED}=0',
                           'hw:cpu_policy=mixed')


class UnvalidatedNegativeTest(base.NFVSchedTest):
    """Before 2.86 the API stores anything; no host then takes it."""

    min_microversion = '2.78'
    max_microversion = '2.85'
    needed_filters = ('NFVTopologyFilter', 'VSwitchNUMAAffinityFilter')

    @decorators.attr(type=['negative'])
    @decorators.idempotent_id('5a0c3bd1-44f7-4b22-9f14-6d1d8a2c7106')
    def test_value_past_the_api_negative(self):
        flavor = self.create_flavor(*base.pinned(**{AFFINITY: 'always'}))
        self.assert_reason(self.boot_refused(flavor), AFFINITY, 'always')

    @decorators.attr(type=['negative'])
    @decorators.idempotent_id('5a0c3bd1-44f7-4b22-9f14-6d1d8a2c7107')
    def test_key_past_the_api_negative(self):
        """A misspelt key is not ignored, with or without a NUMA topology."""
        for vcpus, extra_specs in ((1, {}), base.pinned()):
            flavor = self.create_flavor(
                vcpus, {'nfv:vswitch_affinity': 'strict', **extra_specs})
            self.assert_reason(
                self.boot_refused(flavor),
                f'unknown key nfv:vswitch_affinity, did you mean {AFFINITY}')
