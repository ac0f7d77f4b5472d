# SPDX-License-Identifier: Apache-2.0
"""A simulation goes on from its snapshot as it would have gone on."""

import dataclasses
import random

import yaml

from nfv_sched.limits import names
from nfv_sched.ops.cloud.cloud_file import loader
from nfv_sched.ops.cloud import codec
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.simulator import engine
from nfv_sched.ops.simulator import record
from nfv_sched.ops.simulator import start
from nfv_sched.tests import base as tests_base
from nfv_sched.tests.unit.ops.simulator import base

NAMES = """\
flavors:
  plain: {vcpus: 2, memory: 1024, disk: 5}
  pinned: &pinned
    vcpus: 2
    memory: 1024
    extra_specs: {"hw:cpu_policy": dedicated, "hw:mem_page_size": 2MB}
  wide:
    vcpus: 4
    memory: 2048
    extra_specs:
      hw:cpu_policy: dedicated
      hw:numa_nodes: 2
      hw:cpu_thread_policy: require
  near:
    vcpus: 2
    memory: 1024
    extra_specs:
      hw:cpu_policy: dedicated
      nfv:vswitch_numa_affinity: strict
  fast:
    vcpus: 2
    memory: 1024
    extra_specs: {"hw:cpu_policy": dedicated, "pci_passthrough:alias": "vf:1"}
  mixed:
    vcpus: 3
    memory: 1024
    extra_specs: {"hw:cpu_policy": mixed, "hw:cpu_dedicated_mask": "^0"}
images:
  two: {hw_numa_nodes: 2}
networks:
  data: {physical_network: physnet0}
  vf: {physical_network: physnet0, vnic_type: direct}
  tenant: {tunneled: true}
security_groups:
  web: {ingress: 3, egress: 2}
server_groups:
  apart: {policy: anti-affinity}
"""
CLOUD = NAMES + tests_base.cloud_file("""\
options:
  nfv_sched: {ledger: placement, vswitch_ports_per_node: 12}
pci_aliases:
  vf: {type: VF, live_migratable: true}
hosts:
- name: host{n}
  count: 3
  cores: 10
  threads: 2
  memory: 16 GiB
  pages: {2M: 2048}
  shared_cores_per_node: 2
  physical_networks: {physnet0: [0]}
  dhcp_servers: 2
  routers: {count: 1, ports: 2}
  other_ports: 1
  pci_devices:
  - {type: VF, node: 0, count: 3, physical_network: physnet0,
     live_migratable: true}
  - {type: VF, node: 1, count: 3, live_migratable: true}
aggregates:
- {name: racks, hosts: [host1, host2], metadata: {availability_zone: west}}
""")
HOSTS = ('host1', 'host2', 'host3')
FLAVORS = ('plain', 'pinned', 'wide', 'near', 'fast', 'mixed')
MOVES = ('live_migrate', 'cold_migrate', 'resize', 'evacuate', 'shelve',
         'unshelve', 'rebuild', 'attach', 'detach', 'delete')


class Steps:
    """Steps drawn at random; ``names`` are the servers that are there."""

    def __init__(self, seed):
        self._random = random.Random(seed)
        self.names = []
        self._booted = 0

    def draw(self, count):
        return [step for _ in range(count) for step in self._step()]

    def _step(self):
        chosen = self._random
        if len(self.names) < 4 or chosen.random() < .4:
            return [self._boot()]
        action = chosen.choice(MOVES)
        name = chosen.choice(self.names)
        step = {action: name}
        if action == 'resize':
            step.update(flavor=chosen.choice(FLAVORS), same_host=True)
        elif action in ('attach', 'detach'):
            step['network'] = chosen.choice(('data', 'tenant'))
        elif action == 'rebuild' and chosen.random() < .5:
            step['image'] = 'two'
        if action in ('resize', 'cold_migrate'):
            step['revert'] = chosen.random() < .3
        elif action == 'delete':
            self.names.remove(name)
        steps = [step]
        if action == 'evacuate':
            # What it leaves on its host is not in a snapshot.
            steps.append({'host_up': '*'})
        return steps

    def _boot(self):
        chosen = self._random
        self._booted += 1
        name = f'server{self._booted}'
        self.names.append(name)
        step = {'boot': name, 'flavor': chosen.choice(FLAVORS), 'networks': [
            chosen.choice(('data', 'vf', 'tenant'))
            for _ in range(chosen.randrange(3))]}
        for key, value, odds in (
                ('group', 'apart', .3), ('availability_zone', 'west', .3),
                ('security_groups', ['web'], .5), ('image', 'two', .1),
                ('ignore_hosts', ['host2'], .1)):
            if chosen.random() < odds:
                step[key] = value
        return step


class RecordTest(base.SimulatorTestCase):

    def text(self, steps, head=CLOUD):
        return head + yaml.safe_dump({'steps': steps})

    def outcomes(self, simulation, first=0):
        return [dataclasses.replace(found, step=0)
                for found in simulation.outcomes[first:]]

    def end(self, simulation):
        state = simulation.state
        return (self.books(simulation), {
            name: (server.status, server.pinned_cpus, server.devices,
                   [port.network.name for port in server.ports])
            for name, server in state.servers.items()
            if server.status != 'DELETED'}, {
                name: (load.ports, load.usage.rules, load.usage.routers,
                       load.usage.dhcp_servers, load.usage.guest_ports)
                for name, load in state.network.loads().items()})

    def whole(self, before, after, seed):
        """Run all steps; return (outcomes after, end, snapshot between)."""
        with self.simulation(self.text(before + after)) as simulation:
            steps = simulation.state.scenario.steps
            for step in steps[:len(before)]:
                simulation.step(step)
            taken = record.cloud(simulation.state)
            first = len(simulation.outcomes)
            random.seed(seed)
            for step in steps[len(before):]:
                simulation.step(step)
            return self.outcomes(simulation, first), self.end(
                simulation), taken

    def continued(self, taken, after, seed):
        taken = codec.decode(snapshot.Cloud, codec.encode(taken))
        scenario = loader.loads_steps(
            self.text(after, NAMES), 'steps.yaml', taken)
        with start.started(taken, seed=seed, scenario=scenario) as state:
            simulation = engine.Simulation(state)
            simulation.run()
            return self.outcomes(simulation), self.end(simulation)

    def test_goes_on(self):
        done = 0
        for seed in range(30):
            steps = Steps(seed)
            before, after = steps.draw(12), steps.draw(12)
            wanted, end, taken = self.whole(before, after, seed)
            found, ended = self.continued(taken, after, seed)
            self.assertEqual(wanted, found, f'seed {seed}')
            self.assertEqual(end, ended, f'seed {seed}')
            done += sum(each.ok for each in found)
        # Most of it is not refused.
        self.assertGreater(done, 30 * 6)

    def test_all_is_given_back(self):
        """To the last page, whatever the servers have gone through."""
        for seed in range(10):
            steps = Steps(seed)
            drawn = steps.draw(24)
            with self.simulation(self.text(
                    [*drawn, {'delete': steps.names}])) as simulation:
                before = self.books(simulation)
                simulation.run()
                self.assertEqual(before, self.books(simulation), seed)

    def test_the_same_again(self):
        _outcomes, _end, taken = self.whole(Steps(1).draw(20), [], 0)
        with start.started(taken) as state:
            again = record.cloud(state)
        for name in ('hosts', 'servers', 'flavors', 'aggregates', 'groups',
                     'options', 'consumers'):
            self.assertEqual(getattr(taken, name), getattr(again, name))

    def test_ledger_of_last_step(self):
        """It reserves the port that the last step attached."""
        head = NAMES + """\
options:
  nfv_sched: {ledger: placement, vswitch_ports_per_node: 12}
hosts:
- {name: host, cores: 4, memory: 8 GiB, shared_cores_per_node: 1}
"""
        steps = """
            - {boot: a, flavor: plain, networks: [tenant]}
            - {attach: a, network: tenant}
            """
        with self.simulation(self.cloud(steps, head)) as simulation:
            simulation.run()
            taken = record.cloud(simulation.state)
        ledger, = [each.inventories[names.PORTS]
                   for each in taken.hosts[0].providers
                   if names.PORTS in each.inventories]
        physical = 4
        self.assertEqual((physical + 1, 1), (ledger.reserved, ledger.used))

    def test_unconfirmed_move(self):
        """What it holds on its source is there, too."""
        steps = [{'boot': 'a', 'flavor': 'pinned', 'host': 'host1'},
                 {'resize': 'a', 'flavor': 'wide', 'confirm': False}]
        _outcomes, _end, taken = self.whole(steps, [], 0)
        server, = taken.servers
        move, = taken.moves
        self.assertEqual(
            (server.uuid, 'resize', 'finished', 'host1', server.host),
            (move.server, move.kind, move.status, move.source, move.target))
        self.assertEqual([1, 2], [len(move.before), len(move.after)])
        self.assertEqual(server.nodes, move.after)
        source, = (host for host in taken.hosts if host.name == 'host1')
        self.assertLessEqual(set(move.before[0].pins.values()),
                             source.nodes[move.before[0].host_node].pinned)
        self.assertEqual({'PCPU': 2, 'MEMORY_MB': 1024},
                         taken.consumers[move.uuid][source.uuid])
        with start.started(taken) as state:
            again = record.cloud(state)
        self.assertEqual(taken.consumers, again.consumers)

    def test_network_agents(self):
        def taken(text):
            with self.simulation(self.text([{'host_down': 'host2'}],
                                           text)) as simulation:
                simulation.run()
                return record.cloud(simulation.state)

        cloud = taken(CLOUD)
        self.assertEqual(
            [(kind, host, host != 'host2', {'physnet0'}, count)
             for kind, count in (('dhcp', 2), ('router', 1))
             for host in HOSTS],
            [(agent.kind, agent.host, agent.alive, agent.physnets,
              len(agent.serves)) for agent in cloud.network_agents])
        self.assertEqual(
            [1] * 6 + [2] * 3,
            [service.ports for service in cloud.network_services])
        self.assertEqual(
            sorted(service.id for service in cloud.network_services),
            sorted(name for agent in cloud.network_agents
                   for name in agent.serves))
        text = CLOUD.replace('  dhcp_servers: 2\n', '')
        cloud = taken(text + 'network_service: ovn\n')
        self.assertEqual(
            [('ovn', 1)] * 3, [(agent.kind, len(agent.serves))
                               for agent in cloud.network_agents])
        self.assertEqual((), cloud.network_services)
        self.assertEqual(
            (), taken(text + 'network_service: none\n').network_agents)
