# SPDX-License-Identifier: Apache-2.0

"""What stock Nova does on the clouds of the other test modules.

These tests are the controls: without the plugin the guests land on the wrong
NUMA node or find no host.  If one of them fails, Nova has changed, and the
tests of the plugin that rest on it may pass for the wrong reason.
"""

from nfv_sched.tests.functional import base


class StockPlacementTest(base.CloudTestCase):
    """Nova's own filter knows the nodes, and nobody asks for one."""

    def test_boot_and_moves_ignore_the_switch(self):
        """Every move ends on node 0, the switch is on node 1."""
        self.start_two(switch=[1])
        server = self.boot(self.flavor(), host='host1')
        self.assertPlaced(server, [0], 'host1')

        self.move_cold(server, [0], 'host2')

        self.live_migrate(server, 'host1')
        self.assertPlaced(server, [0], 'host1')

        self.shelve_and_unshelve(server)
        self.assertPlaced(server, [0])

        source = self.host(server)
        self.fail_host(source)
        self.evacuate(server)
        self.assertNotEqual(source, self.host(server))
        self.assertPlaced(server, [0])

    def test_boot_ignores_the_switch(self):
        self.start_host('host1', switch=[1])

        with self.row('several guests in one request: on both nodes'):
            servers = self.boot_many(self.flavor(), 2)
            self.assertEqual([[0], [1]], sorted(map(self.nodes, servers)))

        with self.row('our policy is only a word'):
            # Nova takes our keys in a flavor and does nothing with them.
            self.admin_api.microversion = '2.85'
            flavor = self.flavor(nfv__vswitch_numa_affinity='strict')
            self.assertPlaced(self.boot(flavor), [0])

    def test_physical_network_is_honoured_at_boot(self):
        """The lever that the plugin uses is there in stock Nova."""
        self.start_host('host1', physnets={'foo': [0], 'bar': [1]})
        self.assertPlaced(self.boot(self.flavor(), [base.BAR]), [1])


class StockTunnelTest(base.CloudTestCase):
    """Nova's defect: a guest that moves seems to need the tunnels' node."""

    def test_guest_of_another_node_finds_no_host(self):
        for name in ('host1', 'host2'):
            self.start_host(name, physnets={'foo': [0], 'bar': [1]},
                            tunnel=[0])
        server = self.assertPlaced(self.boot(self.flavor(), [base.BAR]), [1])
        self.assertMoveRefused(self.cold_migrate, server)
        self.assertPlaced(server, [1])


class StockPCITest(base.PCI, base.CloudTestCase):
    """Nova looks at devices where it claims, not where it chooses."""

    extra_filters = ['NUMATopologyFilter', 'PciPassthroughFilter']

    def test_devices_that_are_only_preferred(self):
        """A guest takes a remote device though a local one is free."""
        self.start_host('host1', devices={'nics': [1], 'vfs': [0, 0]})
        flavor = self.pci_flavor('nic:1',
                                 hw__pci_numa_affinity_policy='preferred')
        self.assertPlaced(self.boot(flavor), [0], devices=[1])
        self.assertNothingLeft()

    def test_moves_forget_the_policy_of_the_flavor(self):
        """Nova's defect: the claim of a move takes that of the alias."""
        self.start_host('host1', devices={'nics': [1]})
        self.start_host('host2', devices={'nics': [None, 0], 'vfs': [1] * 3})
        flavor = self.pci_flavor('nic:1',
                                 hw__pci_numa_affinity_policy='required')
        server = self.assertPlaced(self.boot(flavor), [1], 'host1', [1])
        # The scheduler counts on the device of node 0.
        self.move_cold(server, [1], 'host2', [None])
