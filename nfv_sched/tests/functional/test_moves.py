# SPDX-License-Identifier: Apache-2.0

"""Virtual switch affinity after every way to move a guest.

The switch is on node 1; without the plugin each of these moves ends on node
0 (see test_stock_nova).
"""

import testtools

from nfv_sched.tests.functional import base
from nfv_sched.tests import live_migration


class MovesTestCase(base.NFVCloudTestCase):
    """One strict and one prefer guest, moved side by side."""

    def setUp(self):
        super().setUp()
        self.strict = self.flavor(nfv__vswitch_numa_affinity='strict')
        self.prefer = self.flavor(nfv__vswitch_numa_affinity='prefer')

    def start_pair(self, labels=base.ALL_LABELS):
        self.start_hosts(labels)
        return self.boot_pair()

    def start_hosts(self, labels=base.ALL_LABELS):
        self.start_two(switch=[1], labels=labels)

    def boot_pair(self):
        servers = [self.boot(self.strict, host='host1'),
                   self.boot(self.prefer, host='host1')]
        for server in servers:
            self.assertPlaced(server, [1], 'host1')
        return servers


class ColdMigrationTest(MovesTestCase):

    def test_cold_migration(self):
        self.start_hosts()

        with self.row('confirmed'):
            for server in self.boot_pair():
                self.move_cold(server, [1], 'host2')

        with self.row('reverted'):
            for server in self.boot_pair():
                self.cold_migrate(server)
                self.assertEqual([1], self.nodes(server))
                self.assertEqual('host2', self.host(server))
                self._revert_resize(server)
                self.assertPlaced(server, [1], 'host1')

        with self.row('switch node full: strict stays, prefer spills over'):
            strict, prefer = self.boot_pair()
            self.occupy(self.strict, 'host2', times=2)
            self.assertMoveRefused(self.cold_migrate, strict)
            self.assertPlaced(strict, [1], 'host1')
            self.move_cold(prefer, [0], 'host2')

    def test_cold_migration_with_only_the_switch_declared(self):
        for server in self.start_pair(base.SWITCH_LABEL):
            self.move_cold(server, [1], 'host2')

    def test_cold_migration_of_a_mapped_guest(self):
        self.start_two(switch=[0])
        server = self.boot(self.flavor(nfv__numa_node_0='1'), host='host1')
        self.assertPlaced(server, [1], 'host1')
        self.move_cold(server, [1], 'host2')

    def test_between_hosts_with_the_switch_on_different_nodes(self):
        self.start_host('host1', switch=[1])
        self.start_host('host2', switch=[0])
        # Node 0 of the second host is the busier one.
        self.assertEqual([[0]], self.occupy(self.flavor(), 'host2'))
        server = self.boot(self.strict, host='host1')
        self.assertPlaced(server, [1], 'host1')
        self.move_cold(server, [0], 'host2')
        self.move_cold(server, [1], 'host1')
        self.shelve_and_unshelve(server)
        self.assertIn((self.host(server), self.nodes(server)),
                      [('host1', [1]), ('host2', [0])])

    def test_two_guest_nodes(self):
        self.start_two(switch=[0, 1])
        server = self.boot(self.flavor(
            nfv__vswitch_numa_affinity='strict', hw__numa_nodes='2'))
        source = self.host(server)
        self.move_cold(server)
        self.assertNotEqual(source, self.host(server))
        self.assertEqual([0, 1], sorted(self.nodes(server)))


class LiveMigrationTest(MovesTestCase):

    @testtools.skipUnless(base.LIVE_MIGRATION_IS_STEERED,
                          'this Nova does not steer live migrations')
    def test_live_migration(self):
        for server in self.start_pair():
            self.live_migrate(server)
            self.assertPlaced(server, [1], 'host2')
            self.live_migrate(server, 'host1')
            self.assertPlaced(server, [1], 'host1')
            self.live_migrate(server)

    @testtools.skipIf(base.LIVE_MIGRATION_IS_STEERED,
                      'this Nova steers live migrations')
    def test_live_migration_that_cannot_be_steered(self):
        """A strict guest stays, unless the operator says otherwise."""
        strict, prefer = self.start_pair()
        self.assertMoveRefused(self.live_migrate, strict)
        self.assertPlaced(strict, [1], 'host1')
        self.live_migrate(prefer)
        self.assertEqual('host2', self.host(prefer))
        # Other moves keep the limits.
        self.move_cold(strict, [1], 'host2')
        self.shelve_and_unshelve(strict)
        self.assertEqual([1], self.nodes(strict))
        # As the help of the option says, this may end on either node.
        self.flags(moves_without_limits='accept', group='nfv_sched')
        source = self.host(strict)
        self.live_migrate(strict)
        self.assertNotEqual(source, self.host(strict))
        self.flags(moves_without_limits='refuse', group='nfv_sched')
        self.fail_host(self.host(strict))
        self.evacuate(strict)
        self.assertPlaced(strict, [1], source)

    @testtools.skipIf(base.LIVE_MIGRATION_IS_STEERED,
                      'this Nova steers live migrations')
    def test_live_migration_that_needs_no_steering(self):
        """A switch on every node: there is no wrong one."""
        self.start_two(switch=[0, 1])
        server = self.boot(self.strict, host='host1')
        self.live_migrate(server)
        self.assertEqual('host2', self.host(server))

    def test_live_migration_to_full_switch_node(self):
        strict, prefer = self.start_pair()
        self.occupy(self.strict, 'host2', times=2)
        self.assertMoveRefused(self.live_migrate, strict)
        self.assertPlaced(strict, [1], 'host1')
        self.live_migrate(prefer)
        self.assertPlaced(prefer, [0], 'host2')


class LimitsOfLiveMigrationsTest(MovesTestCase):
    """Nova without the fix of bug 2153425, and with the patch for it."""

    def migrate(self, source):
        """Live-migrate by this source of Nova's task; return NUMA nodes."""
        self.useFixture(live_migration.LiveMigrationFixture(source))
        self.flags(moves_without_limits='accept', group='nfv_sched')
        strict, _prefer = self.start_pair()
        self.live_migrate(strict)
        self.assertEqual('host2', self.host(strict))
        return self.nodes(strict)

    def test_without_the_fix(self):
        """The labels do not reach the claim."""
        self.assertEqual([0], self.migrate(live_migration.without_fix()))

    def test_patch(self):
        self.assertEqual([1], self.migrate(
            live_migration.patched(live_migration.without_fix())))


class ResizeTest(MovesTestCase):

    def test_resize_to_another_host(self):
        small = {policy: self.flavor(vcpus=1,
                                     nfv__vswitch_numa_affinity=policy)
                 for policy in ('strict', 'prefer')}
        strict, prefer = self.start_pair()
        for server, flavor in ((strict, small['strict']),
                               (prefer, small['prefer'])):
            self.resize(server, flavor)
            self.assertEqual([1], self.nodes(server))
            self._revert_resize(server)
            self.assertPlaced(server, [1], 'host1')
            self.resize(server, flavor)
            self._confirm_resize(server)
            self.assertPlaced(server, [1], 'host2')

    def test_resize_to_a_strict_flavor_on_another_host(self):
        """A guest without a policy is on node 0, and leaves that."""
        self.start_hosts()
        server = self.boot(self.flavor(), host='host1')
        self.assertPlaced(server, [0], 'host1')
        self.resize(server, self.strict)
        self._confirm_resize(server)
        self.assertPlaced(server, [1], 'host2')

    def test_resize_to_the_same_host(self):
        self.flags(allow_resize_to_same_host=True)
        self.start_host('host1', switch=[1])
        for policy in ('strict', 'prefer'):
            with self.row(policy):
                server = self.boot(self.flavor(
                    nfv__vswitch_numa_affinity=policy))
                self.assertPlaced(server, [1])
                flavor = self.flavor(
                    vcpus=1, nfv__vswitch_numa_affinity=policy)
                # Node 0 is empty, and node 1 has the guest twice.
                self.resize(server, flavor)
                self.assertEqual([1], self.nodes(server))
                self._revert_resize(server)
                self.assertPlaced(server, [1])
                self.resize(server, flavor)
                self._confirm_resize(server)
                self.assertPlaced(server, [1], 'host1')

    def test_resize_to_a_strict_flavor_on_the_same_host(self):
        """The new policy moves the guest to the switch; a revert back."""
        self.flags(allow_resize_to_same_host=True)
        self.start_host('host1', switch=[1])
        server = self.assertPlaced(self.boot(self.flavor()), [0])
        # Both nodes are equally busy, so that Nova would stay on node 0.
        self.assertEqual([[1]], self.occupy(self.strict, 'host1'))
        self.resize(server, self.strict)
        self.assertEqual([1], self.nodes(server))
        self._revert_resize(server)
        self.assertPlaced(server, [0])
        self.resize(server, self.strict)
        self._confirm_resize(server)
        self.assertPlaced(server, [1], 'host1')


class OtherMovesTest(MovesTestCase):
    """Evacuation, unshelve, rebuild."""

    def test_evacuation(self):
        servers = self.start_pair()
        self.fail_host('host1')
        for server in servers:
            self.evacuate(server)
            self.assertPlaced(server, [1], 'host2')

    def test_evacuation_to_full_switch_node(self):
        strict, prefer = self.start_pair()
        self.occupy(self.strict, 'host2', times=2)
        self.fail_host('host1')
        self.assertMoveRefused(self.evacuate, strict)
        self.evacuate(prefer)
        self.assertPlaced(prefer, [0], 'host2')

    def test_unshelve_and_rebuild(self):
        self.start_hosts()

        with self.row('unshelve'):
            for server in self.boot_pair():
                self.shelve_and_unshelve(server)
                self.assertPlaced(server, [1])

        with self.row('unshelve with the switch nodes full'):
            # Strict stays shelved until there is room, and then starts.
            strict, prefer = self.boot_pair()
            self._shelve_server(strict)
            self._shelve_server(prefer)
            self.occupy(self.strict, 'host1', times=2)
            fillers = list(self.booted)
            self.occupy(self.strict, 'host2', times=2)
            self.api.post_server_action(strict['id'], {'unshelve': None})
            self.assertEqual('SHELVED_OFFLOADED',
                             self.show(strict)['status'])
            self._unshelve_server(prefer)
            self.assertPlaced(prefer, [0])
            self.delete_all([uuid for uuid in self.booted
                             if uuid not in fillers])
            self._unshelve_server(strict)
            self.assertPlaced(strict, [1], 'host2')

        with self.row('rebuild keeps the node, also when that is full'):
            strict, prefer = self.boot_pair()
            for server in (strict, prefer):
                self._rebuild_server(
                    server, 'a2459075-d96c-40d5-893e-577ff92e721c')
                self.assertPlaced(server, [1], 'host1')


class NoLabelsMovesTest(base.NFVCloudTestCase):
    """Prefer is neutral on moves too where hosts declare nothing."""

    def test_cold_migration(self):
        self.start_two(labels=base.NO_LABELS)
        server = self.boot(self.flavor(
            nfv__vswitch_numa_affinity='prefer'), host='host1')
        self.move_cold(server, [0], 'host2')
        self.assertMoveRefused(
            self.resize, server,
            self.flavor(nfv__vswitch_numa_affinity='strict'))
