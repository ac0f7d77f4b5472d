# SPDX-License-Identifier: Apache-2.0

"""PCI affinity and shared vCPUs after every way to move a guest.

The devices are on node 1 of the first host and on node 0 of the second, and
other devices, where Nova by itself would go, on the other nodes.

Some defects of Nova are in the way.  The claim of a move takes the policy of
an alias, not that of the flavor (see test_stock_nova), so guests that prefer
local devices say so by their alias.  A guest that has moved and is shelved
keeps its device, so guests are shelved before they move.  An evacuated guest
with devices does not start while its former host is down.  With PCI in
Placement the claim of a move does not follow the allocation and may add a
second device to it, so there are more devices than guests.
"""

from nova.tests.functional.api import client
import testtools

from nfv_sched.tests.functional import base


class PCIMovesTestCase(base.PCI, base.WholePluginTestCase):

    def setUp(self):
        super().setUp()
        self.strict = self.strict_pci('nic:1')
        self.prefer = self.pci_flavor('nic-preferred:1',
                                      nfv__pci_numa_affinity='prefer')

    def start_hosts(self):
        self.start_host('host1', devices={
            'nics': [1] * 4, 'vfs': [0] * 8, 'port_vfs': [1, 1]})
        self.start_host('host2', devices={
            'nics': [0] * 4, 'vfs': [1] * 8, 'port_vfs': [0, 0]})

    def start_pair(self):
        """Two hosts, and a guest of each policy on the first."""
        self.start_hosts()
        servers = [self.boot(self.strict, host='host1'),
                   self.boot(self.prefer, host='host1')]
        for server in servers:
            self.assertPlaced(server, [1], 'host1', [1])
        return servers

    def fill(self, host, node):
        """Take all pinned CPUs of a host NUMA node."""
        filler = self.flavor(vcpus=base.PINNED_CPUS_PER_NODE,
                             nfv__numa_node_0=str(node))
        self.assertEqual([[node]], self.occupy(filler, host))


class PCIMoves:
    """The cases; subclasses say who gives the devices out."""

    def test_unshelve_and_cold_migration(self):
        for server in self.start_pair():
            self.shelve_and_unshelve(server)
            self.assertPlaced(server, self.nodes(server),
                              devices=self.nodes(server))
            if self.host(server) == 'host2':
                self.cold_migrate(server)
                self._confirm_resize(server)
            self.assertPlaced(server, [1], 'host1', [1])
            self.cold_migrate(server)
            self.assertEqual([0], self.nodes(server))
            self.assertEqual([0], self.device_nodes(server))
            self._revert_resize(server)
            self.assertPlaced(server, [1], 'host1', [1])
            self.cold_migrate(server)
            self._confirm_resize(server)
            self.assertPlaced(server, [0], 'host2', [0])
        self.assertNothingLeft()

    def test_no_room_near_the_devices(self):
        """Strict stays where it is, prefer takes a remote device."""
        strict, prefer = self.start_pair()
        self.fill('host2', 0)
        self.assertMoveRefused(self.cold_migrate, strict)
        self.assertPlaced(strict, [1], 'host1', [1])
        self.cold_migrate(prefer)
        self._confirm_resize(prefer)
        self.assertPlaced(prefer, [1], 'host2', [0])
        self.fail_host('host1')
        self.assertMoveRefused(self.evacuate, strict)

    def test_evacuation(self):
        servers = self.start_pair()
        self.fail_host('host1')
        for server in servers:
            self.evacuate(server, start=False)
            self.assertPlaced(server, [0], 'host2', [0], 'SHUTOFF')

    def test_resize(self):
        """To more devices, on another host and on the same."""
        self.start_hosts()
        larger = self.strict_pci('nic:2')
        with self.row('another host'):
            server = self.boot(self.strict, host='host1')
            self.resize(server, larger)
            self.assertEqual([0, 0], self.device_nodes(server))
            self._revert_resize(server)
            self.assertPlaced(server, [1], 'host1', [1])
            self.resize(server, larger)
            self._confirm_resize(server)
            self.assertPlaced(server, [0], 'host2', [0, 0])
        with self.row('from no policy'):
            server = self.boot(self.flavor(nfv__numa_node_0='0'),
                               host='host1')
            self.assertPlaced(server, [0], 'host1', [])
            self.resize(server, larger)
            self._confirm_resize(server)
            self.assertPlaced(server, [0], 'host2', [0, 0])
        with self.row('the same host'):
            self.flags(allow_resize_to_same_host=True)
            server = self.boot(self.flavor(nfv__numa_node_0='0'),
                               host='host1')
            # The other host has no room near its devices.
            self.fill('host2', 0)
            self.resize(server, self.strict)
            self.assertEqual([1], self.nodes(server))
            self._revert_resize(server)
            self.assertPlaced(server, [0], 'host1', [])
            self.resize(server, self.strict)
            self._confirm_resize(server)
            self.assertPlaced(server, [1], 'host1', [1])
        self.assertNothingLeft()

    def test_claim_that_forgets_the_policy(self):
        """Strict is strict, also where Nova's claim is not.

        The device on node 1 of the second host does not tell its node.  The
        policy ``required`` keeps guests from it until they move.
        """
        self.start_host('host1', devices={'nics': [1, 1]})
        self.start_host('host2', devices={
            'nics': [None, 0], 'vfs': [1] * 3})
        flavor = self.strict_pci('nic:1',
                                 hw__pci_numa_affinity_policy='required')
        server = self.boot(flavor, host='host1')
        self.assertPlaced(server, [1], 'host1', [1])
        try:
            self.cold_migrate(server)
        except client.OpenStackApiException as error:
            self.assertIn('NoValidHost', str(error))
            self.assertPlaced(server, [1], 'host1', [1])
        else:
            self._confirm_resize(server)
            self.assertPlaced(server, [0], 'host2', [0])


class PCIMovesClaimTest(PCIMoves, PCIMovesTestCase):
    pass


class PCIMovesPlacementTest(PCIMoves, PCIMovesTestCase):

    in_placement = True

    def setUp(self):
        if not base.LIVE_MIGRATION_IS_STEERED:
            self.skipTest('Nova 33 loses races for Placement on such moves')
        super().setUp()


class PCILiveMigrationTest(PCIMovesTestCase):
    """Guests with SR-IOV ports, which are plugged anew at the other host."""

    def configure(self):
        super().configure()
        self.flags(device_detach_timeout=1, group='libvirt')

    def test_live_migration(self):
        self.start_hosts()
        flavor = self.flavor(nfv__pci_numa_affinity='strict')
        server = self.boot(flavor, [self.port()], host='host1')
        self.assertPlaced(server, [1], 'host1', [1])
        self.live_migrate(server)
        self.assertPlaced(server, [0], 'host2', [0])
        self.fill('host1', 1)
        self.assertMoveRefused(self.live_migrate, server)
        self.assertPlaced(server, [0], 'host2', [0])

    @testtools.skipUnless(base.LIVE_MIGRATION_IS_STEERED,
                          'this Nova does not steer live migrations')
    def test_port_that_prefers(self):
        self.start_hosts()
        flavor = self.flavor(nfv__pci_numa_affinity='prefer')
        server = self.boot(flavor, [self.port(policy='preferred')],
                           host='host1')
        self.assertPlaced(server, [1], 'host1', [1])
        self.live_migrate(server)
        self.assertPlaced(server, [0], 'host2', [0])


class SharedVCPUMovesTest(PCIMovesTestCase):
    """Two shared vCPUs for a NUMA node, on every host."""

    def configure(self):
        super().configure()
        self.flags(shared_vcpus_per_core=2.0, group='nfv_sched')
        self.flags(cpu_allocation_ratio=16.0)

    def shared(self, vcpus=2, **more):
        specs = {'hw__cpu_policy': 'mixed', 'hw__cpu_dedicated_mask': '^0',
                 'nfv__shared_vcpu': '0'}
        return self.flavor(vcpus=vcpus, **dict(specs, **more))

    def assertShared(self, server, node, host):
        """The shared vCPU is on shared CPUs of its node, the rest pinned."""
        self.assertPlaced(server, [node], host)
        cpus = self.domain_cpus(server)
        self.assertEqual({node * self.node_cpus}, cpus.pop(0))
        self.assertEqual({vcpu: {cpu} for vcpu, cpu in
                          self.pins(server).items()}, cpus)

    def fill_shared(self, host, node):
        flavor = self.shared(nfv__numa_node_0=str(node))
        self.assertEqual([[node]] * 2, self.occupy(flavor, host, times=2))

    def test_moves(self):
        for name in ('host1', 'host2'):
            self.start_host(name)
        # Nova by itself would use node 0, which is empty otherwise.
        self.fill_shared('host2', 0)
        with self.row('cold migration'):
            server = self.boot(self.shared(), host='host1')
            self.assertShared(server, 0, 'host1')
            self.cold_migrate(server)
            self.assertEqual([1], self.nodes(server))
            self._revert_resize(server)
            self.assertShared(server, 0, 'host1')
            self.cold_migrate(server)
            self._confirm_resize(server)
            self.assertShared(server, 1, 'host2')
        with self.row('resize'):
            server = self.boot(self.shared(), host='host1')
            self.resize(server, self.shared(vcpus=3))
            self._confirm_resize(server)
            self.assertShared(server, 1, 'host2')
        with self.row('unshelve'):
            server = self.boot(self.shared(), host='host1')
            self.shelve_and_unshelve(server)
            self.assertShared(server, self.nodes(server)[0],
                              self.host(server))
        with self.row('both nodes full'):
            server = self.boot(self.shared(), host='host1')
            self.fill_shared('host2', 1)
            self.assertMoveRefused(self.cold_migrate, server)
            self.assertMoveRefused(self.live_migrate, server)
            self.assertShared(server, 0, 'host1')
        with self.row('evacuation'):
            server = self.boot(self.shared(), host='host1')
            self.fail_host('host1')
            self.evacuate(server)
            self.assertShared(server, 1, 'host2')

    @testtools.skipUnless(base.LIVE_MIGRATION_IS_STEERED,
                          'this Nova does not steer live migrations')
    def test_live_migration(self):
        for name in ('host1', 'host2'):
            self.start_host(name)
        self.fill_shared('host2', 0)
        server = self.boot(self.shared(), host='host1')
        self.live_migrate(server)
        self.assertShared(server, 1, 'host2')
