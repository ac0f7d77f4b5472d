# SPDX-License-Identifier: Apache-2.0
"""A cloud file is compiled to a snapshot and steps."""

from oslo_utils.fixture import uuidsentinel as uuids

from nfv_sched.ops.cloud.cloud_file import examples
from nfv_sched.ops.cloud.cloud_file import loader
from nfv_sched.ops.cloud import codec
from nfv_sched.ops.cloud import scenario
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.cloud import validation
from nfv_sched.ops.model.requests import assumed_ports
from nfv_sched.ops.simulator import engine
from nfv_sched.ops.simulator import record
from nfv_sched.ops.simulator import start
from nfv_sched.tests import snapshots
from nfv_sched.tests.unit.ops.simulator import base

CLOUD = """
options: {DEFAULT: {default_availability_zone: here}}
hosts:
- {name: 'a{n}', count: 2, cores: 4, threads: 2, memory: 8 GiB,
   reserved_memory: 100, pages: {2M: 64}, shared_cores_per_node: 1,
   traits: [CUSTOM_FAST], switch_nodes: [1], places: {osd: [0]},
   dhcp_servers: 2, routers: {count: 3, ports: 2}, other_ports: 4,
   cpu_allocation_ratio: 2.0, pci_devices: [
     {type: VF, node: 1, count: 2, physical_network: p0, trusted: true}]}
- {name: b, cores: 4, memory: 8 GiB, disabled: true}
aggregates:
- {name: west, hosts: 'a*', metadata: {availability_zone: west}}
networks: {vf: {physical_network: p0, vnic_type: direct}}
security_groups: {web: {ingress: 2, egress: 3}}
server_groups: {apart: {policy: anti-affinity, max_server_per_host: 2}}
flavors: {f: {vcpus: 1, memory: 512}}
steps: [{boot: s, flavor: f}]
"""


class CompileTest(base.SimulatorTestCase):

    def setUp(self):
        super().setUp()
        self.scenario = loader.loads(CLOUD, 'cloud.yaml')
        self.cloud = self.scenario.cloud

    def test_network(self):
        """All ports are counted; what they are for is kept beside."""
        host, _other, disabled = self.cloud.hosts
        self.assertEqual(
            snapshot.HostNetwork(vswitch_ports=2 + 3 * 2 + 4, routers=3,
                                 security_rules=0, dhcp_servers=2),
            host.network)
        services = scenario.services_of(self.scenario)
        self.assertEqual(scenario.HostServices(2, 3, 2, 4), services['a2'])
        self.assertEqual(scenario.HostServices(), services[disabled.name])
        self.assertEqual('ovs', self.scenario.network_service)

    def test_vnic_types(self):
        for kind in assumed_ports.VNIC_TYPES:
            found = loader.loads(CLOUD.replace(
                'vnic_type: direct', f'vnic_type: {kind}'), 'cloud.yaml')
            self.assertEqual(kind, found.networks['vf'].vnic_type)

    def test_names_for_steps(self):
        found = self.scenario
        self.assertEqual(
            ('p0', 'direct'), (found.networks['vf'].physnet,
                               found.networks['vf'].vnic_type))
        self.assertEqual(5, found.security_groups['web'].rules)
        self.assertEqual({'max_server_per_host': '2'},
                         found.server_groups['apart'].rules)
        self.assertEqual({'a1': {'osd': (0,)}, 'a2': {'osd': (0,)}, 'b': {}},
                         found.places)
        self.assertEqual({'a1': 'a{n}', 'a2': 'a{n}', 'b': 'b'}, found.alike)
        self.assertEqual(['boot'], [step.action for step in found.steps])

    def test_examples_are_sound(self):
        found = examples.find()
        del found['thousand-hosts']  # takes seconds
        for name, path in found.items():
            cloud = loader.load(str(path)).cloud
            again = codec.decode(snapshot.Cloud, codec.encode(cloud))
            validation.check_names(again)
            validation.check(again)
            self.assertEqual(cloud, again, name)

    def test_as_recorded(self):
        """Nova's objects of an empty host say the same again."""
        with self.simulation(CLOUD) as simulation:
            recorded = record.cloud(simulation.state)
        for name in ('flavors', 'aggregates', 'groups', 'networks',
                     'network_agents', 'network_services'):
            self.assertEqual(getattr(self.cloud, name),
                             getattr(recorded, name), name)
        for before, after in zip(self.cloud.hosts, recorded.hosts):
            for name in ('name', 'uuid', 'cell', 'enabled', 'zone', 'stats',
                         'aggregates', 'vcpus', 'memory', 'memory_used',
                         'disk', 'cpu_ratio', 'nodes', 'network',
                         'supported', 'providers'):
                self.assertEqual(getattr(before, name),
                                 getattr(after, name), name)


class StepsOfSnapshotTest(base.SimulatorTestCase):
    def setUp(self):
        super().setUp()
        self.ports = (
            snapshot.Port(id=uuids.one, network=uuids.net, rules=5),
            snapshot.Port(id=uuids.two, network=uuids.net, physnet='p0',
                          vnic_type='direct', rules=0))
        self.cloud = snapshots.cloud(
            [snapshots.host()], [snapshots.server(ports=self.ports)])

    def test_networks(self):
        found = loader.loads_steps('steps: []', 'steps.yaml', self.cloud)
        self.assertEqual(
            {uuids.net: ('normal', None),
             f'{uuids.net}/direct': ('direct', 'p0')},
            {name: (network.vnic_type, network.physnet)
             for name, network in found.networks.items()})

    def test_security_groups(self):
        with start.started(self.cloud) as state:
            server, = state.servers.values()
            self.assertEqual([[5], []], [
                [group.rules for group in port.security_groups]
                for port in server.ports])
            load, = state.network.loads().values()
            self.assertEqual(5, load.usage.rules)

    def test_detach(self):
        """By either name of a network."""
        lan = scenario.stable_uuid('network', 'lan')
        cloud = snapshots.cloud([snapshots.host()], [snapshots.server(
            ports=tuple([snapshot.Port(id=uuid, network=lan)
                         for uuid in (uuids.one, uuids.two, uuids.three)]))])
        steps = loader.loads_steps(
            'networks: {lan: {tunneled: true}}\nsteps:\n'
            f'- {{detach: vm, network: {lan}}}\n'
            '- {detach: vm, network: lan}\n', 'steps.yaml', cloud)
        with start.started(cloud, scenario=steps) as state:
            result = engine.Simulation(state).run()
            self.assertEqual([True, True],
                             [each.ok for each in result.outcomes])
            self.assertEqual([uuids.one], [
                port.id for port in state.servers['vm'].ports])
