# SPDX-License-Identifier: Apache-2.0

"""PCI affinity, shared vCPUs, thread policies after every way to move a guest.

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
from nfv_sched.tests.functional import test_thread_policies


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
        self.start_hosts()
        servers = [self.boot(self.strict, host='host1'),
                   self.boot(self.prefer, host='host1')]
        for server in servers:
            self.assertPlaced(server, [1], 'host1', [1])
        return servers


class PCIMoves:
    """The cases; subclasses say who gives the devices out."""

    def test_unshelve_and_cold_migration(self):
        for server in self.start_pair():
            self.shelve_and_unshelve(server)
            self.assertPlaced(server, self.nodes(server),
                              devices=self.nodes(server))
            if self.host(server) == 'host2':
                self.move_cold(server)
            self.assertPlaced(server, [1], 'host1', [1])
            self.cold_migrate(server)
            self.assertEqual([0], self.nodes(server))
            self.assertEqual([0], self.device_nodes(server))
            self._revert_resize(server)
            self.assertPlaced(server, [1], 'host1', [1])
            self.move_cold(server, [0], 'host2', [0])
        self.assertNothingLeft()

    def test_no_room_near_the_devices(self):
        """Strict stays where it is, prefer takes a remote device."""
        strict, prefer = self.start_pair()
        self.fill('host2', 0)
        self.assertMoveRefused(self.cold_migrate, strict)
        self.assertPlaced(strict, [1], 'host1', [1])
        self.move_cold(prefer, [1], 'host2', [0])
        self.fail_host('host1')
        self.assertMoveRefused(self.evacuate, strict)

    def test_evacuation(self):
        servers = self.start_pair()
        self.fail_host('host1')
        for server in servers:
            self.evacuate(server, start=False)
            self.assertPlaced(server, [0], 'host2', [0], 'SHUTOFF')

    def test_resize(self):
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
        server = self.boot_with_port_that_prefers()
        self.live_migrate(server)
        self.assertPlaced(server, [0], 'host2', [0])

    @testtools.skipIf(base.LIVE_MIGRATION_IS_STEERED,
                      'this Nova steers live migrations')
    def test_port_that_prefers_is_not_steered(self):
        """It goes, to any node.

        A strict server has no such port, so Nova's own policy holds it to its
        devices, without the limits: see test_live_migration.
        """
        self.start_hosts()
        server = self.boot_with_port_that_prefers()
        self.live_migrate(server)
        self.assertPlaced(server, self.nodes(server), 'host2', [0])

    def boot_with_port_that_prefers(self):
        flavor = self.flavor(nfv__pci_numa_affinity='prefer')
        server = self.boot(flavor, [self.port(policy='preferred')],
                           host='host1')
        self.assertPlaced(server, [1], 'host1', [1])
        return server


class SharedVCPUMovesTest(base.CappedCPUs, PCIMovesTestCase):
    """Two shared vCPUs for a NUMA node, on every host."""

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
        self.start_two()
        # Nova by itself would use node 0, which is empty otherwise.
        self.fill_shared('host2', 0)
        with self.row('cold migration'):
            server = self.boot(self.shared(), host='host1')
            self.assertShared(server, 0, 'host1')
            self.cold_migrate(server)
            self.assertEqual([1], self.nodes(server))
            self._revert_resize(server)
            self.assertShared(server, 0, 'host1')
            self.move_cold(server)
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
        self.start_two()
        self.fill_shared('host2', 0)
        # Nova by itself would use node 0 all the same.
        self.occupy(self.flavor(vcpus=3, nfv__numa_node_0='1'), 'host2')
        server = self.boot(self.shared(), host='host1')
        self.live_migrate(server)
        self.assertShared(server, 1, 'host2')

    @testtools.skipIf(base.LIVE_MIGRATION_IS_STEERED,
                      'this Nova steers live migrations')
    def test_live_migration_that_cannot_be_steered(self):
        """Nova by itself would use the node whose shared CPUs are full."""
        self.start_two()
        server = self.boot(self.shared(), host='host1')
        with self.row('an empty host'):
            self.assertMoveRefused(self.live_migrate, server)
        self.fill_shared('host2', 0)
        self.occupy(self.flavor(vcpus=3, nfv__numa_node_0='1'), 'host2')
        self.assertMoveRefused(self.live_migrate, server)
        self.assertShared(server, 0, 'host1')


class ThreadPolicyMovesTestCase(test_thread_policies.ThreadPolicyTestCase):
    """Moves of a guest with a thread policy from the first host.

    Only the second host is like the first.  Each NUMA node has two shared
    CPUs and four for pinned guests.

    :cvar thread_policy: its policy
    :cvar sizes: vCPUs before and after a resize -> physical cores they take
    :cvar threads_per_core: of the first two hosts
    """

    thread_policy = ''
    sizes = {}
    threads_per_core = 2

    def setUp(self):
        super().setUp()
        self.small, self.large = [
            self.threads(self.thread_policy, vcpus) for vcpus in self.sizes]

    def shared_cpus(self, nodes):
        return {node * self.node_cpus + cpu
                for node in range(nodes) for cpu in (0, 1)}

    def start_hosts(self):
        # Nova by itself prefers the host with most memory.
        self._start('host3', 3 - self.threads_per_core, memory_gib=64)
        for name in ('host1', 'host2'):
            self._start(name, self.threads_per_core)

    def _start(self, name, threads, **kwargs):
        self.node_cores, self.node_threads = 6 // threads, threads
        self.start_host(name, **kwargs)

    def fill(self, host):
        self.occupy(self.flavor(vcpus=4), host, times=2)

    def assertThreads(self, server, host=None):
        """The guest has as many cores as its policy says, and runs there."""
        self.assertPlaced(server, self.nodes(server), host)
        pins = self.pins(server)
        self.assertEqual(self.sizes[len(pins)],
                         len(set(self.cores(server))))
        self.assertEqual({vcpu: {cpu} for vcpu, cpu in pins.items()},
                         self.domain_cpus(server))

    def boot_on_first(self):
        server = self.boot(self.small, host='host1')
        self.assertThreads(server, 'host1')
        return server


class ThreadPolicyMoves:
    """The moves of a guest whose policy is never given up."""

    def test_moves(self):
        self.start_hosts()
        with self.row('cold migration'):
            server = self.boot_on_first()
            self.cold_migrate(server)
            self.assertEqual('host2', self.host(server))
            self._revert_resize(server)
            self.assertThreads(server, 'host1')
            self.move_cold(server)
            self.assertThreads(server, 'host2')
        with self.row('resize'):
            server = self.boot_on_first()
            self.resize(server, self.large)
            self._confirm_resize(server)
            self.assertThreads(server, 'host2')
        with self.row('unshelve'):
            server = self.boot_on_first()
            self.shelve_and_unshelve(server)
            self.assertIn(self.host(server), ('host1', 'host2'))
            self.assertThreads(server)
        with self.row('live migration'):
            server = self.boot_on_first()
            self.live_migrate(server)
            self.assertThreads(server, 'host2')
            self.live_migrate(server, 'host1')
            self.assertThreads(server, 'host1')
        with self.row('no room'):
            self.fill('host2')
            self.move_without_room()
        self.assertNothingLeft()
        server = self.boot_on_first()
        self.fail_host('host1')
        self.evacuate(server)
        self.assertThreads(server, 'host2')

    def test_resize_to_the_policy(self):
        """A guest without it, on a host of the other kind."""
        self.start_hosts()
        server = self.boot(self.flavor(), host='host3')
        self.resize(server, self.large)
        self._confirm_resize(server)
        self.assertIn(self.host(server), ('host1', 'host2'))
        self.assertThreads(server)

    def move_without_room(self):
        """The third host has room, but no cores of the kind."""
        server = self.boot_on_first()
        self.assertMoveRefused(self.cold_migrate, server)
        self.assertMoveRefused(self.resize, server, self.large)
        self.assertMoveRefused(self.live_migrate, server)
        self.assertThreads(server, 'host1')

    def test_evacuation_and_unshelve_without_room(self):
        self.start_hosts()
        self.fill('host2')
        server, shelved = self.boot_on_first(), self.boot_on_first()
        self._shelve_server(shelved)
        self.fail_host('host1')
        self.assertMoveRefused(self.evacuate, server)
        self.api.post_server_action(shelved['id'], {'unshelve': None})
        self.assertEqual('SHELVED_OFFLOADED', self.show(shelved)['status'])


class RequireMovesTest(ThreadPolicyMoves, ThreadPolicyMovesTestCase):
    """Siblings; the third host has no hyperthreading."""

    thread_policy = 'require'
    sizes = {3: 2, 4: 2}

    def fill(self, host):
        """Leave single threads only."""
        self.occupy(self.flavor(vcpus=3), host, times=2)


class IsolateMovesTest(ThreadPolicyMoves, ThreadPolicyMovesTestCase):
    """Whole cores; the third host, with hyperthreading, has none."""

    thread_policy = 'isolate'
    sizes = {3: 3, 4: 4}
    threads_per_core = 1
