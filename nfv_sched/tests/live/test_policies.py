# SPDX-License-Identifier: Apache-2.0
"""Smoke tests of the policies.

All that they come to is asserted by the unit and the functional tests.
"""

import time

from nfv_sched.tests.live import base

STRICT_PCI = {base.PCI: 'strict'}


class PoliciesTest(base.LiveTestCase):

    def test_the_cloud_has_one_host_with_both(self):
        """The filters decide together, not one after the other."""
        flavor = self.flavor(**base.STRICT, **STRICT_PCI, **{
            'pci_passthrough:alias': 'accelerator:1'})
        server = self.boot(flavor)
        self.assertEqual(base.BOTH, server.compute_host)
        self.assertEqual([1], self.host_nodes(server))
        self.assertIn('=strict', self.boot_refused(flavor))

    def test_port_with_a_device(self):
        """It is beside the server, and no port of the switch."""
        network = self.tenant.network.find_network('physnet1')
        port = self.tenant.network.create_port(
            name=self.name(), network_id=network.id,
            binding_vnic_type='direct')
        self.addCleanup(self.tenant.network.delete_port, port)
        # Before the port, which it has.
        self.addCleanup(self._delete_servers)
        server = self.boot(
            self.flavor(**base.pinned(**STRICT_PCI)),
            networks=[{'port': port.id}, *self.networks()])
        self.assertEqual(self.device_nodes(server), self.host_nodes(server))
        self.assertEqual(1, self.allocated(server.id, base.PORTS))

    def test_dhcp_servers(self):
        """Agents report to Neutron over RPC, as those of ML2/OVS do."""
        self.aggregate(self.hosts, dhcp_server_weight_multiplier=1000)
        self.report_agents([
            {'host': host, 'agent_type': 'DHCP agent',
             'configurations': {'networks': 1 if host == base.RIGHT else 5}}
            for host in self.hosts])
        time.sleep(base.NEUTRON_READ)
        server = self.boot(self.flavor(1, 64))
        self.assertEqual(base.RIGHT, server.compute_host)
