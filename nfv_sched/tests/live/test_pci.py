# SPDX-License-Identifier: Apache-2.0
"""Guests with PCI devices, and the NUMA nodes of both.

The hosts have NICs with four virtual functions each: compute-left and
compute-both on NUMA nodes 0 and 1, compute-right on 0, compute-quad on 0 and
3.  The accelerators are on node 0 of compute-right and 1 of compute-both.
"""

from nfv_sched.tests.live import base

VF = {'pci_passthrough:alias': 'vf:1'}
ACCELERATOR = {'pci_passthrough:alias': 'accelerator:1'}
STRICT = {base.PCI: 'strict'}
WITH_SWITCH = {base.VSWITCH: 'strict'}

#: Dedicated CPUs of a NUMA node.
NODE = 6


class AliasTest(base.LiveTestCase):
    """Devices that a flavor asks for."""

    def assert_local(self, server, devices: int = 1):
        nodes = self.device_nodes(server)
        self.assertEqual(devices, len(nodes))
        self.assertLessEqual(set(nodes), set(self.host_nodes(server)))

    def test_strict_on_each_host(self):
        flavor = self.flavor(**base.pinned(**VF, **STRICT))
        for host in self.hosts:
            self.assert_local(self.boot(flavor, host=host))

    def test_carrier_grade_spelling(self):
        flavor = self.flavor(**base.pinned(
            **VF, **{'hw:wrs:pci_numa_affinity': 'strict'}))
        self.assert_local(self.boot(flavor, host=base.RIGHT))

    def test_switch_and_device_on_one_node(self):
        flavor = self.flavor(**base.pinned(**VF, **STRICT, **WITH_SWITCH))
        server = self.boot(flavor, host=base.LEFT)
        self.assertEqual([0], self.host_nodes(server))
        self.assert_local(server)

    def test_switch_and_device_on_different_nodes(self):
        """Either could be kept, but not both."""
        flavor = self.flavor(**base.pinned(**VF, **STRICT, **WITH_SWITCH))
        for host in (base.RIGHT, base.QUAD):
            message = self.boot_refused(flavor, host=host)
            self.assertIn('=strict', message)

    def test_the_cloud_has_one_host_with_both(self):
        """The filters decide together, not one after the other."""
        flavor = self.flavor(**base.pinned(
            **ACCELERATOR, **STRICT, **WITH_SWITCH))
        server = self.boot(flavor)
        self.assertEqual(base.BOTH, server.compute_host)
        self.assertEqual([1], self.host_nodes(server))
        message = self.boot_refused(flavor)
        self.assertIn('=strict', message)

    def test_devices_on_both_guest_nodes(self):
        flavor = self.flavor(4, **base.pinned(
            **STRICT, **{'hw:numa_nodes': '2',
                         'pci_passthrough:alias': 'nic:2'}))
        server = self.boot(flavor, host=base.LEFT)
        self.assertEqual({0, 1}, set(self.host_nodes(server)))
        self.assertEqual([0, 1], sorted(self.device_nodes(server)))

    def test_remote_devices(self):
        """With no CPU beside any device, strict is refused, prefer runs.

        Nova's own policy has to allow remote devices.
        """
        whole = self.flavor(NODE, **base.pinned(**{'nfv:numa_node.0': '0'}))
        self.boot(whole, host=base.RIGHT)
        other = self.flavor(NODE, **base.pinned(**{'nfv:numa_node.0': '1'}))
        self.boot(other, host=base.BOTH)
        remote = {'hw:pci_numa_affinity_policy': 'preferred'}

        message = self.boot_refused(
            self.flavor(**base.pinned(**ACCELERATOR, **STRICT)))
        self.assertIn(f'{base.PCI}=strict', message)
        server = self.boot(self.flavor(**base.pinned(
            **ACCELERATOR, **remote, **{base.PCI: 'prefer'})))
        device, = self.device_nodes(server)
        self.assertNotIn(device, self.host_nodes(server))

    def test_prefer_takes_the_last_local_device(self):
        """Over the whole cloud: the one host with room beside it wins."""
        self.boot(self.flavor(NODE, **base.pinned(
            **{'nfv:numa_node.0': '0'})), host=base.RIGHT)
        server = self.boot(self.flavor(**base.pinned(**ACCELERATOR, **{
            'hw:pci_numa_affinity_policy': 'preferred',
            base.PCI: 'prefer'})))
        self.assertEqual(base.BOTH, server.compute_host)
        self.assert_local(server)


class PortTest(base.LiveTestCase):
    """Ports that bypass the virtual switch."""

    def direct_port(self, network: str):
        """A port that takes a virtual function."""
        network = self.tenant.network.find_network(network)
        port = self.tenant.network.create_port(
            name=self.name(), network_id=network.id,
            binding_vnic_type='direct')
        # After the servers, which have it.
        self._ports.append(port)
        return {'port': port.id}

    def setUp(self):
        self._ports = []
        super().setUp()

    def _delete_servers(self):
        super()._delete_servers()
        for port in self._ports:
            self.tenant.network.delete_port(port)

    def test_strict(self):
        server = self.boot(
            self.flavor(**base.pinned(**STRICT)),
            networks=[self.direct_port('physnet1')])
        self.assertEqual(self.device_nodes(server), self.host_nodes(server))

    def test_takes_no_port_of_the_switch(self):
        server = self.boot(
            self.flavor(**base.pinned(**STRICT)),
            networks=[self.direct_port('physnet0'),
                      {'uuid': self.tenant.network.find_network(
                          'tenant').id}])
        self.assertEqual(1, self.allocated(server.id, base.PORTS))
        self.assertEqual(1, len(self.device_nodes(server)))
