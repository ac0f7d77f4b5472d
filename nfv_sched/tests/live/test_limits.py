# SPDX-License-Identifier: Apache-2.0
"""Limits of hosts while all scheduler workers decide at once.

Limits come from metadata of aggregates, small enough for a burst to fill the
cloud.  What guests take is read from Placement.
"""

import collections
from concurrent import futures

from nfv_sched.tests.live import base

BURST = 40
WORKERS = 4

#: How many guests a host may take.
RULE_SLOTS = {base.LEFT: 2, base.RIGHT: 3, base.BOTH: 3, base.QUAD: 4}

#: Rules of the security group of each guest.
GROUP_RULES = 10


class BurstTest(base.LiveTestCase):
    """Forty guests at once, and fewer slots: exactly those are taken."""

    def burst(self, **kwargs) -> list:
        flavor = self.flavor(1, 64)
        with futures.ThreadPoolExecutor(BURST) as pool:
            asked = [pool.submit(self.request, flavor, **kwargs)
                     for _ in range(BURST)]
            servers = [future.result() for future in asked]
        return [self.settled(server) for server in servers]

    def test_rules(self):
        """As many guests on each host as fit, and the others refused."""
        room = {host: GROUP_RULES * slots
                for host, slots in RULE_SLOTS.items()}
        for host, rules in room.items():
            self.aggregate([host], security_rules_per_node=rules)
        group = self.security_group()
        self.wait_for_room(base.RULES, room)
        before = self.bed.scheduler_logs()
        servers = self.burst(networks=self.networks(),
                             security_groups=[{'name': group.name}])
        placed = [server for server in servers if server.status == 'ACTIVE']
        self.assertEqual({GROUP_RULES}, {
            self.allocated(server.id, base.RULES) for server in placed})
        refused = collections.Counter(
            server.fault['message'] for server in servers
            if server.status != 'ACTIVE')
        self.assertEqual(RULE_SLOTS, dict(collections.Counter(
            server.compute_host for server in placed)), refused)
        for message in refused:
            self.assertTrue(message.startswith(base.NO_VALID_HOST), message)
        # All have answered requests of the burst.
        self.assertEqual(WORKERS, len(
            self.workers_that_said(' sending reply ', before)))
        self.assertEqual(room, self.used(base.RULES))

        self._delete_servers()
        self.assertEqual(dict.fromkeys(RULE_SLOTS, 0), self.used(base.RULES))
        self.wait_for_room(base.RULES, room)

    def security_group(self):
        network = self.tenant.network
        group = network.create_security_group(name=self.name())
        self.addCleanup(network.delete_security_group, group)
        # After the guests, which use it.
        self.addCleanup(self._delete_servers)
        there = len(list(network.security_group_rules(
            security_group_id=group.id)))
        for index in range(GROUP_RULES - there):
            network.create_security_group_rule(
                security_group_id=group.id, direction='ingress',
                ethertype='IPv4', protocol='tcp',
                port_range_min=1000 + index, port_range_max=1000 + index)
        return group
