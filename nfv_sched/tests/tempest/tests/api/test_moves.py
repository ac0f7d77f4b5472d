# SPDX-License-Identifier: Apache-2.0
"""A strict guest stays strict wherever it goes."""

from tempest.common import waiters
from tempest import config
from tempest.lib import decorators

from nfv_sched.tests.tempest.tests.api import base

CONF = config.CONF

AFFINITY = 'nfv:vswitch_numa_affinity'


class MovesTest(base.NFVSchedTest):
    """Moves that Nova's scheduler decides."""

    needed_filters = ('NFVTopologyFilter', 'VSwitchNUMAAffinityFilter')

    def flavor(self, vcpus=2):
        return self.create_flavor(
            *base.pinned(vcpus, **{AFFINITY: 'strict'}))

    def require_feature(self, name):
        """Skip the test unless ``[compute-feature-enabled]`` has it."""
        if not CONF.compute_feature_enabled[name]:
            raise self.skipException(
                f'[compute-feature-enabled] {name} is false')

    def require_destination(self):
        """Skip the test unless there are two hosts with a switch."""
        if sum(bool(self.vswitch_nodes(host)) for host in self.hosts) < 2:
            raise self.skipException(
                'There are not two compute hosts with a virtual switch')

    def wait_for(self, server_id, status):
        waiters.wait_for_server_status(
            self.admin_servers_client, server_id, status)

    @decorators.idempotent_id('6e2d9f05-b8c3-4a17-93e6-4c7b1d0a8601')
    def test_cold_migration(self):
        self.require_feature('cold_migration')
        self.require_destination()
        server = self.boot(self.flavor())
        source = self.assert_with_vswitch(server)
        self.admin_servers_client.migrate_server(server)
        self.wait_for(server, 'VERIFY_RESIZE')
        self.assertNotEqual(source, self.assert_with_vswitch(server))
        self.admin_servers_client.confirm_resize_server(server)
        self.wait_for(server, 'ACTIVE')
        self.assertNotEqual(source, self.assert_with_vswitch(server))

    @decorators.idempotent_id('6e2d9f05-b8c3-4a17-93e6-4c7b1d0a8602')
    def test_resize(self):
        """A guest that becomes strict goes to the switch, and back."""
        self.require_feature('resize')
        server = self.boot(self.create_flavor(1, {}))
        self.servers_client.resize_server(server, self.flavor())
        self.wait_for(server, 'VERIFY_RESIZE')
        self.assert_with_vswitch(server)
        self.servers_client.revert_resize_server(server)
        self.wait_for(server, 'ACTIVE')
        self.assertEqual([], self.guest_nodes(server))
        self.servers_client.resize_server(server, self.flavor())
        self.wait_for(server, 'VERIFY_RESIZE')
        self.servers_client.confirm_resize_server(server)
        self.wait_for(server, 'ACTIVE')
        self.assert_with_vswitch(server)

    @decorators.idempotent_id('6e2d9f05-b8c3-4a17-93e6-4c7b1d0a8603')
    def test_live_migration(self):
        self.require_feature('live_migration')
        self.require_destination()
        server = self.boot(self.flavor())
        source = self.assert_with_vswitch(server)
        self.admin_servers_client.live_migrate_server(
            server, host=None, block_migration='auto')
        self.wait_for(server, 'ACTIVE')
        self.assertNotEqual(source, self.assert_with_vswitch(server))

    @decorators.idempotent_id('6e2d9f05-b8c3-4a17-93e6-4c7b1d0a8604')
    def test_shelve_and_unshelve(self):
        self.require_feature('shelve')
        server = self.boot(self.flavor())
        self.assert_with_vswitch(server)
        self.servers_client.shelve_server(server)
        if CONF.compute.shelved_offload_time:
            self.wait_for(server, 'SHELVED')
            self.servers_client.shelve_offload_server(server)
        self.wait_for(server, 'SHELVED_OFFLOADED')
        self.servers_client.unshelve_server(server)
        self.wait_for(server, 'ACTIVE')
        self.assert_with_vswitch(server)
