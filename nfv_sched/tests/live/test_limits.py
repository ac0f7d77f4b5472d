# SPDX-License-Identifier: Apache-2.0
"""Limits of hosts while all scheduler workers decide at once.

Limits come from metadata of aggregates, small enough for a burst to fill the
cloud.  What guests take is read from Placement.
"""

import collections
from collections.abc import Mapping
from concurrent import futures
import subprocess
import time

from nfv_sched.tests.live import base
from nfv_sched.tests.live.bed import configuration
from nfv_sched.tests.live.bed import services

BURST = 40
WORKERS = 4

#: How many guests a host may take.
PORT_SLOTS = {base.LEFT: 5, base.RIGHT: 6, base.BOTH: 7, base.QUAD: 8}
RULE_SLOTS = {base.LEFT: 2, base.RIGHT: 3, base.BOTH: 3, base.QUAD: 4}

#: Rules of the security group of each guest.
GROUP_RULES = 10

# Seconds until each worker has read Neutron again and knows a new group.
_NEUTRON_READ = 25


class BurstTest(base.LiveTestCase):
    """Forty guests at once, and fewer slots: exactly those are taken."""

    def burst(self, **kwargs) -> list:
        """Ask for all guests at once, and wait for all of them."""
        flavor = self.flavor(1, 64)
        self.before = self.bed.scheduler_logs()
        with futures.ThreadPoolExecutor(BURST) as pool:
            asked = [pool.submit(self.request, flavor, **kwargs)
                     for _ in range(BURST)]
            servers = [future.result() for future in asked]
        return [self.settled(server) for server in servers]

    def assert_exact(self, servers, slots: Mapping[str, int],
                     resource_class: str, need: int):
        """As many guests on each host as fit, and the others refused.

        :param need: what each of them has to have allocated
        """
        unledgered = [
            f'{server.id} on {server.compute_host}' for server in servers
            if server.status == 'ACTIVE' and
            self.allocated(server.id, resource_class) != need]
        self.assertEqual([], unledgered)
        placed = collections.Counter(
            server.compute_host for server in servers
            if server.status == 'ACTIVE')
        refused = [server.fault['message'] for server in servers
                   if server.status != 'ACTIVE']
        self.assertEqual(slots, dict(placed), collections.Counter(refused))
        for message in refused:
            self.assertTrue(message.startswith(base.NO_VALID_HOST), message)
        # All have answered requests of the burst.
        self.assertEqual(WORKERS, len(
            self.workers_that_said(' sending reply ', self.before)))

    def test_ports(self):
        self.limit_ports(PORT_SLOTS)

        servers = self.burst(networks=self.networks())
        self.assert_exact(servers, PORT_SLOTS, base.PORTS, 1)
        self.assertEqual(PORT_SLOTS, self.used(base.PORTS))
        message = self.boot_refused(
            self.flavor(1, 64), networks=self.networks())
        self.assertIn('vSwitch ports: 1 needed', message)
        self.assertNotIn('free', message)
        # One slot that is given back is taken again.
        leaver = next(server for server in servers
                      if server.status == 'ACTIVE')
        self.delete(leaver)
        server = self.boot(self.flavor(1, 64), networks=self.networks())
        self.assertEqual(leaver.compute_host, server.compute_host)

        self._delete_servers()
        self.assertEqual(dict.fromkeys(PORT_SLOTS, 0), self.used(base.PORTS))
        self.wait_for_room(base.PORTS, PORT_SLOTS)

    def test_rules(self):
        for host, slots in RULE_SLOTS.items():
            self.aggregate(
                [host], security_rules_per_node=GROUP_RULES * slots)
        room = {host: GROUP_RULES * slots
                for host, slots in RULE_SLOTS.items()}
        group = self.security_group()
        self.wait_for_room(base.RULES, room)
        time.sleep(_NEUTRON_READ)

        servers = self.burst(networks=self.networks(),
                             security_groups=[{'name': group.name}])
        self.assert_exact(servers, RULE_SLOTS, base.RULES, GROUP_RULES)
        self.assertEqual(room, self.used(base.RULES))
        message = self.boot_refused(
            self.flavor(1, 64), networks=self.networks(),
            security_groups=[{'name': group.name}])
        self.assertIn(f'security-group rules: {GROUP_RULES} needed', message)

        self._delete_servers()
        self.assertEqual(dict.fromkeys(RULE_SLOTS, 0), self.used(base.RULES))
        self.wait_for_room(base.RULES, room)

    def security_group(self):
        """A security group with a known number of rules."""
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


class ProbeTest(base.LiveTestCase):
    """Placement of the bed is configured as the ledger needs it."""

    def test_probe(self):
        conf = (self.bed.layout.etc / 'nova' /
                f'{configuration.SCHEDULERS[0]}.conf')
        done = subprocess.run(
            [services.program('nfv-sched-status'), f'--config-file={conf}',
             'ledger', 'probe', '--bursts', '5'],
            env=self.bed.layout.environment(), text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)
        self.assertEqual(
            5, done.stdout.count('were tried again 7 granted'), done.stdout)
        self.assertIn('RIGHT', done.stdout)
        self.assertEqual([], [
            provider['name'] for provider in self._placement(
                '/resource_providers')['resource_providers']
            if 'probe' in provider['name']])


class GuestLimitTest(base.LiveTestCase):
    """Limits of a guest, and what it takes."""

    def test_every_port_of_the_switch_counts(self):
        server = self.boot(self.flavor(), networks=self.networks(3))
        self.assertEqual(3, self.allocated(server.id, base.PORTS))
        self.assertGreater(self.allocated(server.id, base.RULES), 0)
        self.delete(server)
        self.assertEqual(0, self.allocated(server.id, base.PORTS))

    def test_eight_vnics(self):
        self.boot(self.flavor(), networks=self.networks(8))
        message = self.boot_refused(self.flavor(), networks=self.networks(9))
        self.assertIn('vNICs of a server', message)
