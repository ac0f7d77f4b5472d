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

#: Dedicated CPUs of the node of the switch.
NODE_CPUS = {base.LEFT: 6, base.RIGHT: 6}
ROUNDS = 3

#: Rules of the security group of each guest.
GROUP_RULES = 10


class BurstTest(base.LiveTestCase):
    """Many guests at once, and fewer slots: exactly those are taken."""

    def burst(self, flavor, count, **kwargs) -> list:
        with futures.ThreadPoolExecutor(count) as pool:
            asked = [pool.submit(self.request, flavor, **kwargs)
                     for _ in range(count)]
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
        servers = self.burst(self.flavor(1, 64), BURST,
                             networks=self.networks(),
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

    def test_numa_nodes(self):
        """Strict servers fill the switch's nodes, and no claim fails late."""
        nodes = {base.LEFT: 0, base.RIGHT: 1}
        zone = self.name()
        self.aggregate(nodes, availability_zone=zone)
        flavor = self.flavor(2, 64, **base.STRICT)
        for _ in range(ROUNDS):
            before = {host: self.bed.computes[host].log.stat().st_size
                      for host in nodes}
            servers = self.burst(flavor, sum(NODE_CPUS.values()) // 2,
                                 availability_zone=zone)
            self.assertEqual({'ACTIVE'}, {server.status for server in servers})
            for host, start in before.items():
                log = self.bed.computes[host].log.read_bytes()[start:]
                self.assertNotIn(b'Failed to claim', log, host)
            self.assertEqual(NODE_CPUS, {
                host: self.used(f'CUSTOM_NFV_NODE{node}_PCPU')[host]
                for host, node in nodes.items()})
            self.assertEqual(NODE_CPUS, {
                host: self.pinned_cpus(host) for host in nodes})
            self._delete_servers()
            self.wait_until(self._idle, 60, 'the hosts are empty')

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
