# SPDX-License-Identifier: Apache-2.0
"""Plans are carried out on the cloud, and what they are for is then so."""

import json
import signal
import subprocess
import time

from nfv_sched.tests.live import base
from nfv_sched.tests.live import test_tools

_CLIENT = 120  # seconds


class PlanTestCase(test_tools.ToolsTestCase):

    def interrupt(self, number, *args, journal=None):
        """Begin a command, and interrupt it when it says that a move begins.

        :param number: of the signal
        :param journal: path of a file that has to say, too, that a server
            moves
        :returns: exit code
        """
        process = subprocess.Popen(
            self.command(*args), env=self.bed.layout.account(), text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.addCleanup(process.kill)
        lines = []
        for line in process.stdout:
            lines.append(line)
            if line.endswith((': begins\n', ': goes on\n')):
                while (journal and '"moving"' not in journal.read_text()
                        and process.poll() is None):
                    time.sleep(0.1)
                process.send_signal(number)
                break
        lines.append(process.communicate(timeout=_CLIENT)[0])
        self.output = ''.join(lines)
        self.assertNotIn('Traceback', self.output)
        return process.returncode

    def go_on(self, path):
        """Carry out the rest of a plan.

        :returns: standard output
        """
        done = subprocess.run(
            self.command('plan', 'run', str(path), '--yes'), text=True,
            env=self.bed.layout.account(), timeout=_CLIENT,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.assertEqual(0, done.returncode, done.stdout)
        self.assertIn('Checked: the strict policies', done.stdout)
        return done.stdout

    def run_script(self, commands):
        """Run printed commands with the client of the cloud."""
        script = self.directory / 'moves.sh'
        script.write_text(commands)
        done = subprocess.run(
            ['bash', str(script)], text=True, env=self.bed.layout.account(),
            timeout=_CLIENT * commands.count('openstack '),
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.assertEqual(0, done.returncode, done.stdout)


class DrainTest(PlanTestCase):
    """With limits that are kept in Placement."""

    def errors(self, *args):
        """Run a command; returns its errors without its progress."""
        return test_tools.without_progress(self.run_command(*args)[1])

    def test_run(self):
        """--run, killed; then plan run, interrupted, and continued."""
        servers = [
            self.boot(self.flavor(2, **base.STRICT), host=base.LEFT,
                      networks=self.networks()),
            *(self.boot(self.flavor(1, **base.pinned()), host=base.LEFT)
              for _number in range(2))]
        service, = self.admin.compute.services(
            binary='nova-compute', host=base.LEFT)
        self.addCleanup(self.admin.compute.enable_service, service.id)
        path = self.directory / 'plan.json'
        self.assertEqual(-signal.SIGKILL, self.interrupt(
            signal.SIGKILL, 'host', 'drain', base.LEFT, '--save', str(path),
            '--run', '--yes'))
        destinations = {server['server_id']: server['destination']
                        for server in json.loads(path.read_text())['servers']}
        self.assertEqual({server.id for server in servers},
                         destinations.keys())
        # All may have been moved, or be moving, by now.
        code = self.interrupt(
            signal.SIGINT, 'plan', 'run', str(path), '--yes', '--parallel',
            '1')
        self.assertIn(code, (0, 130), self.output)
        self.go_on(path)
        self.assertEqual(destinations, {
            server.id: self.show(server).compute_host for server in servers})
        for server in servers:
            self.assertEqual(1, len(list(self.admin.compute.migrations(
                server_id=server.id))))
        self.assert_strict(servers[0])


class AgentsTestCase(PlanTestCase):
    """All is on one host; one of the others lacks a physical network."""

    def setUp(self):
        super().setUp()
        self.report_agents([
            agent for host in self.hosts for agent in (
                {'host': host, 'agent_type': 'Open vSwitch agent',
                 'configurations': {
                     'tunnel_types': ['vxlan'], 'bridge_mappings': {
                         name: f'br-{name}' for name in (
                             ['physnet0'] if host == base.QUAD else
                             ['physnet0', 'physnet1'])}}},
                {'host': host, 'agent_type': 'DHCP agent',
                 'configurations': {'networks': 0}},
                {'host': host, 'agent_type': 'L3 agent',
                 'configurations': {'agent_mode': 'legacy', 'routers': 0}})])
        self.agents = {
            (agent.agent_type, agent.host): agent
            for agent in self.admin.network.agents()}

    def network(self, number):
        """A network with DHCP on the left host; if odd, on physnet1."""
        physnet = {'provider_network_type': 'vlan',
                   'provider_physical_network': 'physnet1'}
        client = self.admin.network
        network = client.create_network(
            name=self.name(), **(physnet if number % 2 else {}))
        self.addCleanup(client.delete_network, network)
        client.create_subnet(network_id=network.id, ip_version=4,
                             cidr=f'10.77.{number}.0/24')
        client.add_dhcp_agent_to_network(
            self.agents['DHCP agent', base.LEFT], network)
        return network

    def router(self, networks):
        """A router with interfaces on networks, on the left host."""
        client = self.admin.network
        router = client.create_router(name=self.name(), is_ha=False)
        self.addCleanup(client.delete_router, router)
        for network in networks:
            port = client.create_port(network_id=network.id)
            client.add_interface_to_router(router, port_id=port.id)
            self.addCleanup(client.remove_interface_from_router, router,
                            port_id=port.id)
        # Neutron may have chosen another agent by now.
        for agent in client.routers_hosting_l3_agents(router):
            client.remove_router_from_agent(agent.id, router)
        client.add_router_to_agent(
            self.agents['L3 agent', base.LEFT], router)
        return router

    def served(self):
        """Host -> names of what Neutron says that its agents serve."""
        client = self.admin.network
        found = {}
        for (kind, host), agent in self.agents.items():
            if kind == 'DHCP agent':
                things = client.dhcp_agent_hosting_networks(agent)
            elif kind == 'L3 agent':
                things = client.agent_hosted_routers(agent)
            else:
                continue
            found[kind, host] = {thing.id for thing in things}
        return found


class RebalanceTest(AgentsTestCase):

    def plan(self, code):
        return self.document('agent', 'rebalance', code=code)

    def carry_out(self):
        """Run the commands of the plan."""
        self.run_script(self.run_command(
            'agent', 'rebalance', '-f', 'commands', code=3)[0])

    def test_spread(self):
        networks = [self.network(number) for number in range(6)]
        routers = [self.router([network]) for network in networks[:5]]
        ids = {network.id for network in networks}
        before = self.served()
        self.assertLessEqual(ids, before['DHCP agent', base.LEFT])
        self.assertEqual({router.id for router in routers},
                         before['L3 agent', base.LEFT])
        document = self.plan(3)
        self.assertIn(('router', 5), [(plan['kind'], plan['before']['most'])
                                      for plan in document['plans']])
        for move in document['moves']:
            self.assertEqual(base.LEFT, move['source'])
        self.carry_out()

        after = self.served()
        for kind in ('DHCP agent', 'L3 agent'):
            numbers = [len(after[kind, host]) for host in self.hosts]
            self.assertLessEqual(max(numbers) - min(numbers), 3)
            self.assertEqual(set().union(*(
                before[kind, host] for host in self.hosts)), set().union(*(
                    after[kind, host] for host in self.hosts)))
        blue = {network.id for network in networks[1::2]}
        self.assertEqual(set(), blue & after['DHCP agent', base.QUAD])
        self.assertEqual(
            set(), {router.id for router in routers[1::2]} & after[
                'L3 agent', base.QUAD])
        self.assertEqual([], self.plan(0)['moves'])

    def test_disabled(self):
        """What an agent that is disabled has goes elsewhere, with --run."""
        network = self.network(0)
        router = self.router([network])
        client = self.admin.network
        for kind in ('DHCP agent', 'L3 agent'):
            client.update_agent(self.agents[kind, base.LEFT],
                                is_admin_state_up=False)
        moves = {'dhcp': [], 'router': []}
        for move in self.plan(3)['moves']:
            moves[move['kind']].append(move['service_id'])
        self.assertIn(network.id, moves['dhcp'])
        self.assertEqual([router.id], moves['router'])
        done = subprocess.run(
            self.command('agent', 'rebalance', '--save',
                         str(self.directory / 'plan.json'), '--run', '--yes'),
            env=self.bed.layout.account(), timeout=_CLIENT, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.assertEqual(0, done.returncode, done.stdout)
        after = self.served()
        self.assertEqual(set(), after['L3 agent', base.LEFT])
        self.assertNotIn(network.id, after['DHCP agent', base.LEFT])
        self.plan(0)
