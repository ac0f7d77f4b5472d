# SPDX-License-Identifier: Apache-2.0
"""Plans are carried out on the cloud, and what they are for is then so."""

import collections
from concurrent import futures
import signal
import subprocess
import threading
import time

from nfv_sched.tests.live import base
from nfv_sched.tests.live.bed import cloud
from nfv_sched.tests.live import test_faults
from nfv_sched.tests.live import test_tools


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
        self.carry_out('agent', 'rebalance')
        self.assertEqual(
            [], list(client.agent_hosted_routers(self.agents['L3 agent'])))
        self.assertNotIn(network.id, [
            found.id for found in client.dhcp_agent_hosting_networks(
                self.agents['DHCP agent'])])
        self.document('agent', 'rebalance')


class EvacuationTest(test_tools.ToolsTestCase, test_faults.FaultTestCase):
    """Two hosts are lost, each with as many strict servers as it takes."""

    def lose(self, *hosts):
        """End nova-compute there, and say so to Nova."""
        for host in hosts:
            self.addCleanup(self.recover, host)
            self.bed.computes[host].stop()
            self.assertTrue(self.force_down(host, True))

    def recover(self, host):
        """Start nova-compute again, which ends what was evacuated."""
        self.bed.computes[host].run()
        self.wait_until(lambda: self.force_down(host, False), 120,
                        f'{host} is not forced down any more')

    def force_down(self, host, forced_down):
        answer = self.admin.compute.put(
            f'/os-services/{self.compute_service(host).id}',
            json={'forced_down': forced_down}, microversion=base.MICROVERSION)
        return answer.status_code == 200

    def assert_evacuated(self, servers, *lost):
        for server in map(self.show, servers):
            # Since 2.95 of the API, by which some are evacuated at once, they
            # are stopped.
            self.assertIn(server.status, ('ACTIVE', 'SHUTOFF'))
            self.assertIsNone(server.task_state)
            self.assertNotIn(server.compute_host, lost)
            self.assert_strict(server)

    def test_by_plan(self):
        servers = self.all_settled([
            self.request(self.strict, host=host)
            for host in (base.LEFT, base.RIGHT) for _ in range(3)])
        self.lose(base.LEFT, base.RIGHT)
        began = time.monotonic()
        self.carry_out('host', 'evacuate', base.LEFT, base.RIGHT)
        seconds = time.monotonic() - began
        self.assert_evacuated(servers, base.LEFT, base.RIGHT)
        for host in (base.LEFT, base.RIGHT):
            self.recover(host)
        self.wait_until_up()
        # All at once, and the rest by plan.
        lost = base.BOTH, base.QUAD
        self.lose(*lost)
        began = time.monotonic()
        with futures.ThreadPoolExecutor(len(servers)) as pool:
            list(pool.map(self.admin.compute.evacuate_server, servers))
        self.wait_until(
            lambda: all(self.show(server).task_state is None
                        for server in servers), 120, 'nothing moves')
        at_once = time.monotonic() - began
        left = sum(self.show(server).compute_host in lost
                   for server in servers)
        print(f'evacuations of {len(servers)}: by plan {seconds:.0f} s; '
              f'at once {at_once:.0f} s, {left} not moved')
        self.carry_out('host', 'evacuate', *lost)
        self.assert_evacuated(servers, *lost)


class RearrangeTest(test_tools.ToolsTestCase, test_faults.FaultTestCase):
    """Six strict servers are on one host, which takes no more."""

    def servers(self):
        return list(self.admin.compute.servers(all_projects=True))

    def where(self):
        return {server.id: server.compute_host for server in self.servers()}

    def run_plan(self, path, code, number=None):
        """Run a plan; with a signal, send it while the second move is made."""
        with subprocess.Popen(
                self.command('plan', 'run', path, '--yes', '--parallel=1'),
                env=self.bed.layout.account(), text=True,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
            said = ''
            timer = threading.Timer(300, process.kill)
            timer.start()
            self.addCleanup(timer.cancel)
            for line in process.stdout:
                said += line
                if number and said.count(': begins') == 2:
                    process.send_signal(number)
                    number = None
        self.assertEqual(code, process.returncode, said)

    def carry_out_in_two(self, command, number, code):
        """Plan, end the run by a signal, and go on to what was promised."""
        path = str(self.directory / f'{command}.json')
        plan = self.document('cloud', command, '--save', path)
        before = self.where()
        after = before | {move['server_id']: move['destination']
                          for move in plan['moves']}
        self.run_plan(path, code, number)
        self.assertNotIn(self.where(), (before, after))
        self.run_plan(path, 0)
        self.assertEqual(after, self.where())
        self.assertEqual(6, len(self.assert_kept(self.servers())))
        again = self.document('cloud', command)
        self.assertEqual([], again['moves'])
        self.assertEqual(plan['after'], again['before'])
        return len(plan['moves']), plan['after']

    def test_spread_and_consolidate(self):
        self.limit_each(6)
        self.all_settled([self.request(
            self.strict, networks=self.networks(), host=base.BOTH,
            metadata={cloud.MIGRATION_SECONDS: '5'}) for _ in range(6)])
        self.assertEqual(
            (4, 0), self.carry_out_in_two('spread', signal.SIGINT, 130))
        self.assertEqual(
            {base.LEFT: 1, base.RIGHT: 1, base.BOTH: 2, base.QUAD: 2},
            collections.Counter(self.where().values()))
        self.assertEqual((4, 3), self.carry_out_in_two(
            'consolidate', signal.SIGKILL, -signal.SIGKILL))
        self.assertEqual(1, len(set(self.where().values())))
        # None was moved twice.
        self.assertEqual(8, sum(
            len(self._migrations(server)) for server in self.servers()))
