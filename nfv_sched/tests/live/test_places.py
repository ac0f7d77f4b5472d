# SPDX-License-Identifier: Apache-2.0
"""Guests at, and away from, the OSDs that hosts declare.

compute-both declares none.
"""

from nfv_sched.tests.live import base
from nfv_sched.tests import outcomes

PLACE = 'osd'
AT = outcomes.AT + PLACE
AWAY = outcomes.AWAY_FROM + PLACE

#: Dedicated CPUs of a NUMA node.
NODE = 6


class PlacesTestCase(base.LiveTestCase):

    def wanted(self, key: str, host: str) -> set[int]:
        """Host NUMA nodes where a policy wants the guest."""
        there = self.place_nodes(host, PLACE)
        if key == AT:
            return there
        return set(range(self.numa_nodes(host))) - there

    def assert_kept(self, key: str, server) -> None:
        """Every NUMA node of the guest is where it is wanted."""
        host = self.show(server).compute_host
        nodes = self.host_nodes(server)
        self.assertTrue(nodes)
        self.assertLessEqual(set(nodes), self.wanted(key, host),
                             f'{key}: on NUMA nodes {nodes} of {host}')


class OutcomesTest(PlacesTestCase):
    """The table of outcomes, on each host that a row is about."""

    def _run(self, key):
        self.run_outcomes(
            outcomes.rows(key, full=False),
            {host: self.wanted(key, host) for host in self.hosts
             if self.place_nodes(host, PLACE)})

    def test_affinity(self):
        self._run(AT)

    def test_anti_affinity(self):
        self._run(AWAY)

    def test_host_without_the_place(self):
        """Nobody can be at it, and everybody is away from it."""
        message = self.boot_refused(
            self.flavor(**base.pinned(**{AT: 'strict'})), host=base.BOTH)
        self.assertIn(f'{AT}=strict', message)
        flavor = self.flavor(NODE, **base.pinned(**{AWAY: 'strict'}))
        servers = [self.boot(flavor, host=base.BOTH) for _ in range(2)]
        self.assertEqual([0, 1], sorted(
            node for server in servers for node in self.host_nodes(server)))


class FullTest(PlacesTestCase):

    def test_full_nodes(self):
        """As many as there is room for, whichever host it is on.

        Six NUMA nodes have no OSDs: one each of left and right, two each of
        both and quad.
        """
        whole = self.flavor(NODE, **base.pinned(**{AWAY: 'strict'}))
        # One after the other: see test_vswitch.
        for _ in range(6):
            self.assert_kept(AWAY, self.boot(whole))
        message = self.boot_refused(
            self.flavor(1, **base.pinned(**{AWAY: 'strict'})))
        self.assertIn(f'{AWAY}=strict', message)
        server = self.boot(self.flavor(1, **base.pinned(**{AWAY: 'prefer'})))
        self.assertLessEqual(
            set(self.host_nodes(server)),
            self.place_nodes(server.compute_host, PLACE))

    def test_multi_create(self):
        """Guests of one request share the limits of a host."""
        flavor = self.flavor(2, **base.pinned(**{AWAY: 'strict'}))
        for server in self.request_many(flavor, 4):
            self.assertEqual('ACTIVE', self.settled(server).status)
            self.assert_kept(AWAY, server)


class MovesTest(PlacesTestCase):

    def boot_away(self):
        server = self.boot(
            self.flavor(**base.pinned(**{AWAY: 'strict'})), host=base.LEFT)
        self.assertEqual([1], self.host_nodes(server))
        return server

    def test_cold_migration(self):
        server = self.boot_away()
        self.admin.compute.migrate_server(server)
        self.wait_for(server, 'VERIFY_RESIZE')
        self.assert_kept(AWAY, server)
        self.admin.compute.confirm_server_resize(server)
        self.wait_for(server, 'ACTIVE')
        self.assertNotEqual(base.LEFT, self.show(server).compute_host)
        self.assert_kept(AWAY, server)

    def test_live_migration(self):
        """To a host with two nodes of each kind."""
        server = self.boot_away()
        if base.LIVE_MIGRATION_IS_STEERED:
            self.live_migrate(server, base.QUAD)
        else:
            self.assert_not_live_migrated(server, base.QUAD)
        self.assert_kept(AWAY, server)

    def test_resize(self):
        """A guest beside the OSDs gets the policy and leaves them."""
        server = self.boot(self.flavor(
            **base.pinned(**{AT: 'strict'})), host=base.LEFT)
        self.assertEqual([0], self.host_nodes(server))
        self.admin.compute.resize_server(
            server, self.flavor(4, **base.pinned(**{AWAY: 'strict'})).id)
        self.wait_for(server, 'VERIFY_RESIZE')
        self.assert_kept(AWAY, server)
        self.admin.compute.confirm_server_resize(server)
        self.wait_for(server, 'ACTIVE')
        self.assert_kept(AWAY, server)
