# SPDX-License-Identifier: Apache-2.0
"""Plans are carried out on the cloud, and what they are for is then so."""

import subprocess

from nfv_sched.tests.live import base
from nfv_sched.tests.live import test_tools

_CLIENT = 120  # seconds


class RebalanceTest(test_tools.ToolsTestCase):

    def setUp(self):
        super().setUp()
        self.report_agents([
            agent for host in self.hosts for agent in (
                {'host': host, 'agent_type': 'Open vSwitch agent',
                 'configurations': {
                     'tunnel_types': ['vxlan'],
                     'bridge_mappings': {'physnet0': 'br-physnet0'}}},
                {'host': host, 'agent_type': 'DHCP agent',
                 'configurations': {'networks': 0}},
                {'host': host, 'agent_type': 'L3 agent',
                 'configurations': {'agent_mode': 'legacy', 'routers': 0}})])
        # Those of the left host, by their kind.
        self.agents = {agent.agent_type: agent
                       for agent in self.admin.network.agents()
                       if agent.host == base.LEFT}

    def network(self):
        """A network with DHCP on the left host."""
        client = self.admin.network
        network = client.create_network(name=self.name())
        self.addCleanup(client.delete_network, network)
        client.create_subnet(
            network_id=network.id, ip_version=4, cidr='10.77.0.0/24')
        client.add_dhcp_agent_to_network(self.agents['DHCP agent'], network)
        return network

    def router(self, network):
        """A router with an interface on a network, on the left host."""
        client = self.admin.network
        router = client.create_router(name=self.name(), is_ha=False)
        self.addCleanup(client.delete_router, router)
        port = client.create_port(network_id=network.id)
        client.add_interface_to_router(router, port_id=port.id)
        self.addCleanup(client.remove_interface_from_router, router,
                        port_id=port.id)
        # Neutron may have chosen another agent by now.
        for agent in client.routers_hosting_l3_agents(router):
            client.remove_router_from_agent(agent.id, router)
        client.add_router_to_agent(self.agents['L3 agent'], router)
        return router

    def test_disabled(self):
        """What an agent that is disabled has goes elsewhere, with --run."""
        network = self.network()
        router = self.router(network)
        client = self.admin.network
        for kind in ('DHCP agent', 'L3 agent'):
            client.update_agent(self.agents[kind], is_admin_state_up=False)
        moves = {'dhcp': [], 'router': []}
        for move in self.document('agent', 'rebalance', codes=(3,))['moves']:
            moves[move['kind']].append(move['service_id'])
        self.assertIn(network.id, moves['dhcp'])
        self.assertEqual([router.id], moves['router'])
        done = subprocess.run(
            self.command('agent', 'rebalance', '--save',
                         str(self.directory / 'plan.json'), '--run', '--yes'),
            env=self.bed.layout.account(), timeout=_CLIENT, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.assertEqual(0, done.returncode, done.stdout)
        self.assertEqual(
            [], list(client.agent_hosted_routers(self.agents['L3 agent'])))
        self.assertNotIn(network.id, [
            found.id for found in client.dhcp_agent_hosting_networks(
                self.agents['DHCP agent'])])
        self.document('agent', 'rebalance')
