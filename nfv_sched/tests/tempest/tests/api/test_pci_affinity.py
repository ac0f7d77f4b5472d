# SPDX-License-Identifier: Apache-2.0
"""Guests that want the NUMA node of their PCI devices."""

from tempest import config
from tempest.lib import decorators

from nfv_sched.tests.tempest.tests.api import base

CONF = config.CONF

AFFINITY = 'nfv:pci_numa_affinity'
VSWITCH = 'nfv:vswitch_numa_affinity'


class PCIAffinityTest(base.NFVSchedTest):
    """The NUMA node of a guest with a device of the alias."""

    needed_filters = ('NFVTopologyFilter', 'PCINUMAAffinityFilter')
    needed_options = ('pci_alias',)

    def pci_nodes(self, host):
        """Host NUMA nodes with devices."""
        return base.parse_nodes(CONF.nfv_sched.pci_nodes, host)

    def flavor(self, **extra_specs):
        alias = {'pci_passthrough:alias': f'{CONF.nfv_sched.pci_alias}:1'}
        return self.create_flavor(*base.pinned(**alias, **extra_specs))

    def assert_with_device(self, server_id):
        self.assert_with(self.pci_nodes, server_id)

    @decorators.idempotent_id('8c1e5f20-7b6d-4a43-8a52-3f9e0c4b6201')
    def test_strict(self):
        flavor = self.flavor(**{AFFINITY: 'strict'})
        self.assert_with_device(self.boot(flavor))

    @decorators.idempotent_id('8c1e5f20-7b6d-4a43-8a52-3f9e0c4b6202')
    def test_prefer(self):
        flavor = self.flavor(**{AFFINITY: 'prefer'})
        self.assert_with_device(self.boot(flavor))

    @decorators.idempotent_id('8c1e5f20-7b6d-4a43-8a52-3f9e0c4b6203')
    def test_switch_and_device_on_one_node(self):
        host = self.host_where(
            lambda host: self.pci_nodes(host) & self.vswitch_nodes(host),
            'the virtual switch and devices on one NUMA node')
        server = self.boot_on(host, self.flavor(
            **{AFFINITY: 'strict', VSWITCH: 'strict'}))
        self.assert_with_device(server)
        self.assert_with_vswitch(server)

    @decorators.idempotent_id('8c1e5f20-7b6d-4a43-8a52-3f9e0c4b6204')
    def test_switch_and_device_on_different_nodes(self):
        """Each strict policy can be kept, but not both together."""
        host = self.host_where(
            lambda host: (self.pci_nodes(host) and self.vswitch_nodes(host)
                          and not (self.pci_nodes(host) &
                                   self.vswitch_nodes(host))),
            'the virtual switch and the devices on different NUMA nodes')
        message = self.boot_refused_on(host, self.flavor(
            **{AFFINITY: 'strict', VSWITCH: 'strict'}))
        self.assert_reason(message, '=strict')

    @decorators.idempotent_id('8c1e5f20-7b6d-4a43-8a52-3f9e0c4b6205')
    def test_mapped_away_from_the_device(self):
        self.require_options('node_labels')
        host = self.host_where(
            lambda host: (0 < len(self.pci_nodes(host)) <
                          self.numa_nodes(host)),
            'devices on some NUMA nodes only')
        node = min(set(range(self.numa_nodes(host))) - self.pci_nodes(host))
        message = self.boot_refused_on(host, self.flavor(
            **{AFFINITY: 'strict', 'nfv:numa_node.0': str(node)}))
        self.assert_reason(message, f'{AFFINITY}=strict')
