# SPDX-License-Identifier: Apache-2.0

"""Guests that must be away from a place, moved and raced for.

Nova by itself puts guests on node 0, where the place is.
"""

from nfv_sched.tests.functional import base
from nfv_sched.tests.functional import test_concurrency
from nfv_sched.tests import outcomes

AWAY = outcomes.AWAY_FROM + 'osd'


class PlaceTestCase(base.NFVCloudTestCase):
    """Guests that must be on node 1."""

    extra_filters = ['NFVTopologyFilter', 'PlaceNUMAAffinityFilter']

    def setUp(self):
        super().setUp()
        self.strict = self.asking('strict')

    def asking(self, value, **kwargs):
        return self.flavor(**{AWAY: value}, **kwargs)

    def start_place_host(self, name, **kwargs):
        self.start_host(name, switch=(), places={'osd': [0]}, **kwargs)


class MovesTest(PlaceTestCase):
    def setUp(self):
        super().setUp()
        for name in ('host1', 'host2'):
            self.start_place_host(name)

    def boot_on_first(self):
        server = self.boot(self.strict, host='host1')
        self.assertPlaced(server, [1], 'host1')
        return server

    def test_cold_migration(self):
        with self.row('confirmed'):
            server = self.boot_on_first()
            self.move_cold(server, [1], 'host2')

        with self.row('reverted'):
            server = self.boot_on_first()
            self.cold_migrate(server)
            self.assertEqual([1], self.nodes(server))
            self._revert_resize(server)
            self.assertPlaced(server, [1], 'host1')

        with self.row('the other nodes are full: strict stays'):
            server = self.boot_on_first()
            self.occupy(self.strict, 'host2', times=2)
            self.assertMoveRefused(self.cold_migrate, server)
            self.assertPlaced(server, [1], 'host1')


class LostRaceTest(test_concurrency.LostRace, PlaceTestCase):
    """The node fills between the decision and the claim.

    Node 0 is free all the time; the guest must be away from it.
    """

    def test_strict_guest_does_not_land_on_another_node(self):
        """The claim is told the node, not where the place is."""
        self.start_place_host('host1', nodes=4)
        there = []

        def fill():
            whole = self.asking('strict', vcpus=base.PINNED_CPUS_PER_NODE)
            for _ in range(3):
                server = self.boot(whole)
                there.append(self.nodes(server)[0])

        self.assertLost(self.boot_behind(self.strict, fill))
        self.assertEqual([1, 2, 3], sorted(there))
        self.assertNothingLeft()
