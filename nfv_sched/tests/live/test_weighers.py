# SPDX-License-Identifier: Apache-2.0
"""Guests keep away from hosts with many DHCP servers and routers.

Agents report to Neutron over RPC, as those of ML2/OVS do.  Weights count only
relative to others, so that the weigher under test gets a multiplier that
outweighs all others, from the metadata of an aggregate.
"""

import time

from nfv_sched.tests.live import base

GUESTS = 3

# Until agents have reported and each scheduler worker has read Neutron.
_NEUTRON_READ = 25  # seconds


class NetworkServiceWeighersTest(base.LiveTestCase):

    def report(self, kind: str, figure: str, light: str) -> None:
        """Let every host have such an agent, with one host loaded least."""
        self.report_agents([
            {'host': host, 'agent_type': kind,
             'configurations': {figure: 1 if host == light else 5}}
            for host in self.hosts])
        time.sleep(_NEUTRON_READ)

    def assert_goes_to(self, light: str) -> None:
        flavor = self.flavor(1, 64)
        servers = [self.request(flavor) for _ in range(GUESTS)]
        self.assertEqual(
            [light] * GUESTS,
            [self.settled(server).compute_host for server in servers])

    def check(self, multiplier: str, kind: str, figure: str) -> None:
        """The same hosts, and another one loaded least each time."""
        self.aggregate(self.hosts, **{multiplier: 1000})
        for light in (base.RIGHT, base.QUAD):
            self.report(kind, figure, light)
            self.assert_goes_to(light)

    def test_dhcp_servers(self):
        self.check('dhcp_server_weight_multiplier', 'DHCP agent', 'networks')

    def test_routers(self):
        self.check('router_weight_multiplier', 'L3 agent', 'routers')
