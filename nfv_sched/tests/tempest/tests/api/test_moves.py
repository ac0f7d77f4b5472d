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

    def boot_for(self, feature):
        """Boot a strict guest that can be moved; skip the test if none can."""
        if not CONF.compute_feature_enabled[feature]:
            raise self.skipException(
                f'[compute-feature-enabled] {feature} is false')
        if sum(bool(self.vswitch_nodes(host)) for host in self.hosts) < 2:
            raise self.skipException(
                'There are not two compute hosts with a virtual switch')
        server = self.boot(self.create_flavor(
            *base.pinned(**{AFFINITY: 'strict'})))
        return server, self.assert_with(self.vswitch_nodes, server)

    def wait_for(self, server_id, status):
        waiters.wait_for_server_status(
            self.admin_servers_client, server_id, status)

    @decorators.idempotent_id('6e2d9f05-b8c3-4a17-93e6-4c7b1d0a8601')
    def test_cold_migration(self):
        server, source = self.boot_for('cold_migration')
        self.admin_servers_client.migrate_server(server)
        self.wait_for(server, 'VERIFY_RESIZE')
        self.assertNotEqual(source, self.assert_with(
            self.vswitch_nodes, server))
        self.admin_servers_client.confirm_resize_server(server)
        self.wait_for(server, 'ACTIVE')
        self.assertNotEqual(source, self.assert_with(
            self.vswitch_nodes, server))

    @decorators.idempotent_id('6e2d9f05-b8c3-4a17-93e6-4c7b1d0a8603')
    def test_live_migration(self):
        server, source = self.boot_for('live_migration')
        self.admin_servers_client.live_migrate_server(
            server, host=None, block_migration='auto')
        self.wait_for(server, 'ACTIVE')
        self.assertNotEqual(source, self.assert_with(
            self.vswitch_nodes, server))
