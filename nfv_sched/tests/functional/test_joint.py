# SPDX-License-Identifier: Apache-2.0

"""Several policies at once.

Each of them alone can be met, on one NUMA node or another.  Together they are
met on one node, or the guest does not run.
"""

from nfv_sched.tests.functional import base

STRICT_SWITCH = {'nfv__vswitch_numa_affinity': 'strict'}
STRICT_PCI = {'nfv__pci_numa_affinity': 'strict',
              'pci_passthrough__alias': 'nic:1'}
BOTH = dict(STRICT_SWITCH, **STRICT_PCI)
PREFERRED = {'hw__pci_numa_affinity_policy': 'preferred',
             'pci_passthrough__alias': 'nic:1'}


class JointTestCase(base.PCI, base.WholePluginTestCase):

    def guest(self, *policies, vcpus=base.GUEST_VCPUS, **more):
        specs = {}
        for policy in policies:
            specs.update(policy)
        return self.flavor(vcpus=vcpus, **dict(specs, **more))

    def assertImpossible(self, flavor):
        before = self.usages()
        server = self.boot(flavor, expect='ERROR')
        self.assertRefused(server)
        self.assertRegex(self.fault(server), 'nfv:|PCI')
        self.assertEqual(before, self.usages())


class Conjunctions:
    """The switch on node 0, the only device on node 1, and the like."""

    def test_switch_and_device_on_different_nodes(self):
        self.start_host('host1', switch=[0],
                        devices={'nics': [1], 'vfs': [0] * 3})

        with self.row('each alone'):
            self.assertPlaced(self.boot(self.guest(STRICT_SWITCH)), [0])
            self.assertPlaced(self.boot(self.guest(STRICT_PCI)), [1],
                              devices=[1])

        with self.row('both: refused'):
            self.assertImpossible(self.guest(BOTH))

        with self.row('strict for the switch, a device that is preferred'):
            flavor = self.guest(STRICT_SWITCH, PREFERRED)
            self.assertPlaced(self.boot(flavor), [0], devices=[1])

        with self.row('strict for the device, a switch that is preferred'):
            flavor = self.guest(STRICT_PCI,
                                nfv__vswitch_numa_affinity='prefer')
            self.assertPlaced(self.boot(flavor), [1], devices=[1])

        with self.row('both are preferred'):
            flavor = self.guest(PREFERRED,
                                nfv__vswitch_numa_affinity='prefer')
            server = self.boot(flavor)
            self.assertPlaced(server, self.nodes(server), devices=[1])

        with self.row('two guest nodes, only one near the switch: refused'):
            self.assertImpossible(self.guest(BOTH, hw__numa_nodes='2'))

        with self.row('device of the node of the switch'):
            flavor = self.guest(BOTH, pci_passthrough__alias='vf:2')
            self.assertPlaced(self.boot(flavor), [0], devices=[0, 0])

        self.assertNothingLeft()

    def test_hosts_that_differ(self):
        """Only the second host has both on one node."""
        self.start_host('host1', switch=[0], memory_gib=64,
                        devices={'nics': [1, 1], 'vfs': [0] * 3})
        self.start_host('host2', switch=[1], memory_gib=8,
                        devices={'nics': [1, 1], 'vfs': [0] * 3})
        both = self.guest(BOTH)

        with self.row('the host that has both'):
            for _ in range(2):
                self.assertPlaced(self.boot(both), [1], 'host2', [1])
            # One host lacks devices now, the other a node with both.
            self.assertImpossible(both)
            self.assertPlaced(self.boot(self.guest(STRICT_PCI)), [1],
                              'host1', [1])

        with self.row('both are preferred'):
            flavor = self.guest(PREFERRED,
                                nfv__vswitch_numa_affinity='prefer')
            self.assertPlaced(self.boot(flavor), [1], 'host2', [1])

        with self.row('several guests in one request'):
            for server in self.boot_many(both, 2):
                self.assertPlaced(server, [1], 'host2', [1])

        with self.row('too many in one request'):
            self.boot_many(both, 3, expect='ERROR')
            self.assertEqual({'host1': {}, 'host2': {}}, self.usages())

        self.assertNothingLeft()


class ConjunctionsTest(Conjunctions, JointTestCase):
    pass


class ConjunctionsWithPCIInPlacementTest(Conjunctions, JointTestCase):

    in_placement = True
