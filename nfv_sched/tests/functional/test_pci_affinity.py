# SPDX-License-Identifier: Apache-2.0

"""PCI NUMA affinity, on the devices and NUMA nodes of real claims.

Each case runs without and with PCI in Placement: there an allocation
candidate fixes the device before the compute service sees the guest, and the
first candidate is not the one with the local device by itself.
"""

from nfv_sched.tests.functional import base

POLICY = 'nfv:pci_numa_affinity'
NATIVE = 'hw:pci_numa_affinity_policy'


class PCITestCase(base.PCI, base.WholePluginTestCase):
    def setUp(self):
        super().setUp()
        self.plain = self.flavor()

    def preferred(self, alias, **extra_specs):
        """A flavor that Nova lets have remote devices."""
        return self.pci_flavor(
            alias, hw__pci_numa_affinity_policy='preferred', **extra_specs)

    def assertNoDevices(self, server):
        """Assert that a guest was refused for want of local devices.

        The reason names the policy, or the devices where Nova's own rule
        would have refused the host too.
        """
        self.assertRefused(server)
        self.assertRegex(self.fault(server), POLICY + '|PCI device|VF')

    def assertFixedByPlacement(self, flavor, nodes, devices):
        """The guest runs where Placement fixes its devices, and only there.

        The claim may take any device of a request that merely prefers local
        ones, unless Placement has given one out.
        """
        if self.in_placement:
            self.assertPlaced(self.boot(flavor), nodes, devices=devices)
        else:
            self.assertRefused(self.boot(flavor, expect='ERROR'), POLICY)


class OneHost:
    """Devices on node 1, others on node 0."""

    def test_devices_on_one_node(self):
        # Nova by itself goes to node 0, which has more devices.
        self.start_host('host1', devices={'nics': [1, 1], 'vfs': [0, 0, 0]})
        strict = self.strict_pci('nic:1')

        with self.row('strict: node 1'):
            self.assertPlaced(self.boot(strict), [1], devices=[1])
            self.assertPlaced(self.boot(strict), [1], devices=[1])

        with self.row('strict, two devices'):
            self.assertPlaced(self.boot(self.strict_pci('nic:2')), [1],
                              devices=[1, 1])

        with self.row('strict, virtual functions: node 0'):
            self.assertPlaced(self.boot(self.strict_pci('vf:2')), [0],
                              devices=[0, 0])

        with self.row('strict, devices of both nodes: refused'):
            self.assertNoDevices(
                self.boot(self.strict_pci('nic:1,vf:1'), expect='ERROR'))

        with self.row('strict, devices of both nodes, two guest nodes'):
            flavor = self.strict_pci('nic:1,vf:1', hw__numa_nodes='2')
            server = self.boot(flavor)
            self.assertEqual([0, 1], sorted(self.nodes(server)))
            self.assertEqual([0, 1], self.device_nodes(server))

        with self.row('strict, mapped to node 0: refused'):
            self.assertNoDevices(
                self.boot(self.strict_pci('nic:1', nfv__numa_node_0='0'),
                          expect='ERROR'))

        with self.row('strict, mapped to node 1'):
            self.assertPlaced(
                self.boot(self.strict_pci('nic:1', nfv__numa_node_0='1')),
                [1], devices=[1])

        with self.row('preferred alone: on the host as by stock Nova'):
            for flavor in (self.preferred('nic:1'),
                           self.pci_flavor('nic-preferred:1')):
                self.assertPlaced(self.boot(flavor), [0], devices=[1])

        with self.row('prefer goes where the devices are'):
            for flavor in (
                    self.pci_flavor('nic:1', nfv__pci_numa_affinity='prefer'),
                    self.preferred('nic:1', nfv__pci_numa_affinity='prefer')):
                self.assertPlaced(self.boot(flavor), [1], devices=[1])

        with self.row('prefer, mapped to node 0: remote device'):
            flavor = self.preferred('nic:1', nfv__numa_node_0='0')
            self.assertPlaced(self.boot(flavor), [0], devices=[1])

        with self.row('required'):
            flavor = self.pci_flavor(
                'nic:1', hw__pci_numa_affinity_policy='required')
            self.assertPlaced(self.boot(flavor), [1], devices=[1])
            flavor = self.pci_flavor('nic-required:1')
            self.assertPlaced(self.boot(flavor), [1], devices=[1])

        with self.row('strict, on an alias that prefers'):
            self.assertFixedByPlacement(
                self.strict_pci('nic-preferred:1'), [1], [1])

        with self.row('strict, on an alias for the socket'):
            self.assertFixedByPlacement(
                self.strict_pci('nic-socket:1'), [1], [1])

        with self.row('strict contradicts preferred'):
            flavor = self.strict_pci(
                'nic:1', hw__pci_numa_affinity_policy='preferred')
            self.assertRefused(self.boot(flavor, expect='ERROR'),
                               POLICY, NATIVE)

        with self.row('strict, guest without NUMA topology'):
            flavor = self.flavor_with({POLICY: 'strict',
                                       'pci_passthrough:alias': 'nic:1'})
            self.assertRefused(self.boot(flavor, expect='ERROR'),
                               POLICY + '=strict', 'hw:numa_nodes')

        self.assertNothingLeft()

    def test_full_node(self):
        self.start_host('host1', devices={'nics': [1, 1], 'vfs': [0, 0, 0]})
        self.fill('host1', 1)
        before = self.usages()

        for title, flavor in (
                ('strict', self.strict_pci('nic:1')),
                ('required', self.pci_flavor(
                    'nic:1', hw__pci_numa_affinity_policy='required')),
                ('prefer, by the rule of Nova', self.pci_flavor(
                    'nic:1', nfv__pci_numa_affinity='prefer')),
                ('strict, on an alias that prefers',
                 self.strict_pci('nic-preferred:1'))):
            with self.row(title):
                self.assertNoDevices(self.boot(flavor, expect='ERROR'))
                self.assertEqual(before, self.usages())

        for title, flavor in (
                ('preferred', self.preferred('nic:1')),
                ('prefer and preferred', self.preferred(
                    'nic:1', nfv__pci_numa_affinity='prefer')),
                ('alias that prefers', self.pci_flavor('nic-preferred:2')),
                ('required, of the socket', self.pci_flavor(
                    'nic:1', hw__pci_numa_affinity_policy='socket'))):
            with self.row(title + ': remote devices'):
                server = self.assertPlaced(self.boot(flavor), [0])
                self.assertEqual({1}, set(self.device_nodes(server)))

        self.assertNothingLeft()

    def test_devices_of_several_kinds(self):
        """All devices of a guest count, not only those of one request."""
        self.start_host('host1', devices={
            'nics': [0, 0, 0, 1], 'pfs': [0, 1], 'vfs': [1, 1, 1]})

        with self.row('only node 1 has all kinds'):
            flavor = self.strict_pci('nic:1,pf:1,vf:2')
            server = self.boot(flavor)
            self.assertPlaced(server, [1], devices=[1, 1, 1, 1])
            # What is left are two kinds on node 0 and one on node 1.
            self.assertRefused(self.boot(flavor, expect='ERROR'))
            self.assertPlaced(self.boot(self.strict_pci('nic:1,pf:1')), [0],
                              devices=[0, 0])

        with self.row('more than one node has'):
            self.assertNoDevices(
                self.boot(self.strict_pci('nic:4'), expect='ERROR'))
            self.assertPlaced(
                self.boot(self.strict_pci('nic:3')), [0],
                devices=[0, 0, 0])

        with self.row('prefer: as many local devices as can be'):
            # Three on node 0 and one on node 1.
            flavor = self.preferred('nic:4', nfv__pci_numa_affinity='prefer')
            self.assertPlaced(self.boot(flavor), [0], devices=[0, 0, 0, 1])

        with self.row('two guest nodes have them all'):
            server = self.boot(self.strict_pci('nic:4', hw__numa_nodes='2'))
            self.assertEqual([0, 1], sorted(self.nodes(server)))
            self.assertEqual([0, 0, 0, 1], self.device_nodes(server))

        self.assertNothingLeft()


class SilentDevices:
    """Devices that do not tell their NUMA node."""

    def test_devices_without_numa_information(self):
        self.start_host('host1', memory_gib=64, devices={'nics': [None] * 2})
        self.start_host('host2', memory_gib=8,
                        devices={'nics': [None, 1], 'vfs': [0] * 3})

        with self.row('no policy: as Nova'):
            server = self.boot(self.pci_flavor('nic:1'), host='host1')
            self.assertEqual([None], self.device_nodes(server))

        with self.row('strict: refused'):
            self.assertRefused(
                self.boot(self.strict_pci('nic:1'), host='host1',
                          expect='ERROR'), POLICY + '=strict')

        with self.row('required: refused by Nova'):
            flavor = self.pci_flavor(
                'nic:1', hw__pci_numa_affinity_policy='required')
            self.assertRefused(
                self.boot(flavor, host='host1', expect='ERROR'))

        with self.row('strict, beside a local one'):
            # The claim may take either, unless Placement has fixed it.
            strict = self.strict_pci('nic:1')
            if self.in_placement:
                self.assertPlaced(self.boot(strict), [1], 'host2', [1])
                self.assertRefused(self.boot(strict, expect='ERROR'), POLICY)
            else:
                self.assertRefused(self.boot(strict, expect='ERROR'), POLICY)

        with self.row('strict and required'):
            flavor = self.strict_pci(
                'nic:1', hw__pci_numa_affinity_policy='required')
            self.assertPlaced(self.boot(flavor), [1], 'host2', [1])
            self.assertRefused(self.boot(flavor, expect='ERROR'))

        with self.row('prefer: a local one, on a host that Nova likes less'):
            flavor = self.preferred('nic:1', nfv__pci_numa_affinity='prefer')
            self.assertPlaced(self.boot(flavor), [1], 'host2', [1])
            server = self.boot(flavor)
            self.assertPlaced(server, self.nodes(server), devices=[None])

        self.assertNothingLeft()

    def test_host_with_one_node(self):
        """Every device is local there, whether it tells or not."""
        self.start_host('host1', nodes=1, devices={'nics': [None, 0, None]})
        with self.row('strict'):
            self.assertPlaced(self.boot(self.strict_pci('nic:3')), [0],
                              devices=[None, None, 0])
        with self.row('strict, guest without NUMA topology'):
            flavor = self.flavor_with({POLICY: 'strict',
                                       'pci_passthrough:alias': 'nic:3'},
                                      vcpus=1)
            self.assertPlaced(self.boot(flavor), None,
                              devices=[None, None, 0])
        self.assertNothingLeft()


class Sockets:
    """Hosts with several NUMA nodes on a socket."""

    nodes_per_socket = 2
    node_cores = 3

    def test_sockets(self):
        self.start_host('host1', nodes=4,
                        devices={'nics': [1, 1], 'vfs': [2] * 3})
        socket = self.pci_flavor(
            'nic:1', hw__pci_numa_affinity_policy='socket')
        strict = self.strict_pci('nic:1')
        full = {node: self.flavor(vcpus=2, nfv__numa_node_0=str(node))
                for node in range(4)}

        with self.row('the node of the device'):
            self.assertPlaced(self.boot(strict), [1], devices=[1])

        with self.row('the other node of the socket'):
            self.occupy(full[1], 'host1')
            self.assertPlaced(self.boot(socket), [0], devices=[1])
            self.assertNoDevices(self.boot(strict, expect='ERROR'))

        with self.row('the other socket: refused'):
            self.occupy(full[0], 'host1')
            self.occupy(full[1], 'host1')
            self.assertRefused(self.boot(socket, expect='ERROR'))
            self.assertRefused(self.boot(strict, expect='ERROR'))
            # There is room there for guests that want no device.
            self.assertIn(self.nodes(self.boot(self.flavor())), ([2], [3]))

        with self.row('strict, on an alias for the socket'):
            self.assertFixedByPlacement(
                self.strict_pci('nic-socket:1'), [1], [1])

        self.assertNothingLeft()


class ManyHosts:
    """Prefer means: only if no host can give a local device."""

    def test_prefer_looks_at_the_whole_cloud(self):
        # In the order in which Nova by itself would use them.
        self.start_host('host1', memory_gib=64,
                        devices={'nics': [0, 0], 'vfs': [1] * 3})
        self.start_host('host2', memory_gib=32,
                        devices={'nics': [1, 0], 'vfs': [0] * 3})
        self.start_host('host3', memory_gib=8,
                        devices={'nics': [1, 1], 'vfs': [0] * 3})
        self.fill('host1', 0)
        prefer = self.preferred('nic:2', nfv__pci_numa_affinity='prefer')

        with self.row('more local devices are better'):
            # Both, one of two, none.
            self.assertPlaced(self.boot(prefer), [1], 'host3', [1, 1])
            server = self.boot(prefer)
            self.assertPlaced(server, self.nodes(server), 'host2', [0, 1])
            self.assertPlaced(self.boot(prefer), [1], 'host1', [0, 0])

        with self.row('several guests in one request'):
            servers = self.boot_many(prefer, 2)
            self.assertEqual(
                {'host2', 'host3'}, set(map(self.host, servers)))
            for server in servers:
                if self.host(server) == 'host3':
                    self.assertPlaced(server, [1], devices=[1, 1])

        with self.row('several strict guests in one request'):
            strict = self.strict_pci('nic:1')
            servers = self.boot_many(strict, 4)
            for server in servers:
                self.assertEqual(self.nodes(server),
                                 self.device_nodes(server))
            self.assertNotIn('host1', map(self.host, servers))

        with self.row('more strict guests than devices'):
            before = self.usages()
            self.boot_many(strict, 5, expect='ERROR')
            self.assertEqual(before, self.usages())

        self.assertNothingLeft()


class ClaimTest(OneHost, SilentDevices, ManyHosts, PCITestCase):
    """The compute service chooses the devices."""


class PlacementTest(OneHost, SilentDevices, ManyHosts, PCITestCase):
    """Placement gives the devices out."""

    in_placement = True


class SocketsClaimTest(Sockets, PCITestCase):
    pass


class SocketsPlacementTest(Sockets, PCITestCase):
    in_placement = True


class PortsTest(PCITestCase):
    """SR-IOV ports; Placement does not know their devices."""

    in_placement = True

    def test_ports(self):
        self.start_host('host1', devices={
            'nics': [0] * 4, 'vfs': [0] * 2, 'port_vfs': [1] * 3,
            'port_pfs': [1]})
        strict = self.flavor(nfv__pci_numa_affinity='strict')

        with self.row('strict'):
            server = self.boot(strict, [self.port(), self.port()])
            self.assertPlaced(server, [1], devices=[1, 1])

        with self.row('strict, virtual function and whole device'):
            server = self.boot(
                strict, [self.port(), self.port('direct-physical')])
            self.assertPlaced(server, [1], devices=[1, 1])

        with self.row('strict, mapped to node 0: refused'):
            flavor = self.flavor(nfv__pci_numa_affinity='strict',
                                 nfv__numa_node_0='0')
            self.assertNoDevices(
                self.boot(flavor, [self.port()], expect='ERROR'))

        with self.row('strict, beside an alias on the other node: refused'):
            self.assertNoDevices(
                self.boot(self.strict_pci('vf:1'), [self.port()],
                          expect='ERROR'))

        with self.row('strict, beside an alias, two guest nodes'):
            server = self.boot(self.strict_pci('vf:1', hw__numa_nodes='2'),
                               [self.port()])
            self.assertEqual([0, 1], self.device_nodes(server))

        with self.row('prefer, on a port that prefers'):
            flavor = self.flavor(nfv__pci_numa_affinity='prefer')
            server = self.boot(flavor, [self.port(policy='preferred')])
            self.assertPlaced(server, [1], devices=[1])

        with self.row('strict, on a port that prefers: refused'):
            self.assertRefused(
                self.boot(strict, [self.port(policy='preferred')],
                          expect='ERROR'), POLICY + '=strict')

        with self.row('strict, on a port that requires'):
            server = self.boot(strict, [self.port(policy='required')])
            self.assertPlaced(server, [1], devices=[1])

        with self.row('node 1 full'):
            self.fill('host1', 1)
            self.assertRefused(
                self.boot(strict, [self.port()], expect='ERROR'))
            self.assertRefused(
                self.boot(self.plain, [self.port(policy='required')],
                          expect='ERROR'))
            server = self.boot(self.plain, [self.port(policy='preferred')])
            self.assertPlaced(server, [0], devices=[1])

        self.assertNothingLeft()


class PredictedTest(PCITestCase):
    """Where the operator is content with a prediction of the claim."""

    def configure(self):
        super().configure()
        self.flags(strict_enforcement='predicted', group='nfv_sched')

    def test_strict_on_requests_that_prefer(self):
        self.start_host('host1', devices={
            'nics': [1] * 2, 'vfs': [0] * 3, 'port_vfs': [1]})
        with self.row('alias'):
            self.assertPlaced(self.boot(self.strict_pci('nic-preferred:1')),
                              [1], devices=[1])
        with self.row('port'):
            server = self.boot(self.flavor(nfv__pci_numa_affinity='strict'),
                               [self.port(policy='preferred')])
            self.assertPlaced(server, [1], devices=[1])
        with self.row('node 1 full'):
            self.fill('host1', 1)
            self.assertRefused(
                self.boot(self.strict_pci('nic-preferred:1'),
                          expect='ERROR'), POLICY + '=strict')


class NoLabelsTest(PCITestCase):
    """Hosts that do not name their nodes: Nova's own rules are what holds."""

    in_placement = True

    def test_unlabelled_host(self):
        self.start_host('host1', labels=base.NO_LABELS,
                        devices={'nics': [1, 1], 'vfs': [0] * 3})
        with self.row('strict'):
            for _ in range(2):
                self.assertPlaced(self.boot(self.strict_pci('nic:1')), [1],
                                  devices=[1])
        with self.row('strict, on an alias that prefers'):
            # Placement fixes the device, but nothing holds the guest.
            self.assertRefused(
                self.boot(self.strict_pci('nic-preferred:1'),
                          expect='ERROR'), POLICY + '=strict')
        with self.row('preferred'):
            server = self.boot(self.preferred('nic:1'))
            self.assertPlaced(server, self.nodes(server), devices=[1])
