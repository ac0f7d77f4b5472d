# SPDX-License-Identifier: Apache-2.0
"""A cloud with more or fewer hosts, against one that really has them."""

import dataclasses
import io

import yaml

from nfv_sched.ops.cloud import changed_hosts
from nfv_sched.ops.cloud import file
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.model.counting import capacity
from nfv_sched.ops.simulator import record
from nfv_sched.tests.unit.ops.simulator import base
from nfv_sched.tests.unit.ops import small_clouds

PINNED = {'hw:cpu_policy': 'dedicated'}
FLAVORS = {
    name: {'vcpus': vcpus, 'memory': '1 GiB', 'extra_specs': specs}
    for name, (vcpus, specs) in {
        'pinned': (4, PINNED), 'shared': (2, {}),
        'pages': (2, {**PINNED, 'hw:mem_page_size': '2MB'}),
        'strict': (2, {**PINNED, 'nfv:vswitch_numa_affinity': 'strict'}),
        'vf': (2, {**PINNED, 'pci_passthrough:alias': 'nic:1'}),
        'mine': (2, {'aggregate_instance_extra_specs:kind': 'nfv'}),
    }.items()}
LIMITS = {'vswitch_ports_per_node': 8, 'vswitch_physical_ports': 1,
          'security_rules_per_node': 40}


def document(names, **options):
    """Return a cloud file whose first two hosts have servers."""
    return {
        'hosts': [{
            'name': name, 'numa_nodes': 2, 'cores': 6, 'threads': 2,
            'memory': '8 GiB', 'pages': {'2M': 1024},
            'reserved_memory': '512 MiB',
            'shared_cores_per_node': 1, 'switch_nodes': [0],
            'physical_networks': {'data': [0, 1]},
            'pci_devices': [{'type': 'VF', 'node': 1, 'count': 3,
                             'physical_network': 'data'}]} for name in names],
        'aggregates': [{
            'name': 'east', 'hosts': [name for name in names
                                      if name.startswith('a')],
            'metadata': {'kind': 'nfv', 'availability_zone': 'east',
                         'vswitch_ports_per_node': '6'}}],
        'options': {
            'filter_scheduler': {'enabled_filters': ','.join((
                *small_clouds.FILTERS, 'AggregateInstanceExtraSpecsFilter',
                'NumInstancesFilter')), 'max_instances_per_host': 9},
            'nfv_sched': {**LIMITS, **options}},
        'pci_aliases': {'nic': {'type': 'VF'}},
        'networks': {'data': {'physical_network': 'data'}},
        'flavors': FLAVORS,
        'steps': [
            {'boot': f'{flavor}-{host}', 'flavor': flavor, 'host': host,
             'networks': ['data'], 'expect': {'placed': 1}}
            for flavor, host in (('strict', names[0]), ('vf', names[0]),
                                 ('shared', names[0]), ('pages', names[1]))],
    }


class ChangedHostsTestCase(base.SimulatorTestCase):

    def simulated(self, cloud_file):
        with self.simulation(yaml.safe_dump(cloud_file)) as simulation:
            self.assertEqual([], simulation.run().failures)
            return record.cloud(simulation.state)

    def counted(self, cloud):
        return {
            (found.flavor.name, name): (
                host.fits, host.placement_grants, host.limits, host.lost)
            for found in capacity.capacities(cloud, cloud.flavors)
            for name, host in found.hosts.items()}

    def read_again(self, cloud):
        stream = io.BytesIO()
        file.dump(cloud, stream)
        return file.load('cloud', stream.getvalue())


class AddedTest(ChangedHostsTestCase):

    def test_as_if_really_there(self):
        for options in ({}, {'ledger': 'placement'}):
            cloud = self.simulated(document(['a.x', 'b.x'], **options))
            real = self.simulated(document(
                ['a.x', 'b.x', 'a+1.x', 'a+2.x', 'b+1.x'], **options))
            cloud, names = changed_hosts.added(cloud, 'a.x', 2)
            self.assertEqual(['a+1.x', 'a+2.x'], names)
            cloud, names = changed_hosts.added(cloud, 'b.x', 1)
            self.assertEqual(['b+1.x'], names)
            cloud = self.read_again(cloud)
            counted = self.counted(cloud)
            self.assertEqual(self.counted(real), counted)
            self.assertGreater(counted['vf', 'a+2.x'][0],
                               counted['vf', 'a.x'][0])
            self.assertEqual(
                {host.name: (host.zone, host.aggregates, host.memory_used,
                             host.nodes) for host in real.hosts},
                {host.name: (host.zone, host.aggregates, host.memory_used,
                             host.nodes) for host in cloud.hosts})

    def test_pci_in_placement(self):
        cloud_file = document(['a', 'b'])
        cloud_file['pci_in_placement'] = True
        for host in cloud_file['hosts']:
            # Nova does not report devices of physical networks.
            del host['pci_devices'][0]['physical_network']
        cloud = self.simulated(cloud_file)
        self.assertTrue(any(host.providers[1:] for host in cloud.hosts))
        cloud = self.read_again(changed_hosts.added(cloud, 'a', 1)[0])
        counted = self.counted(cloud)
        cloud_file['hosts'].append({**cloud_file['hosts'][0], 'name': 'a+1'})
        cloud_file['aggregates'][0]['hosts'].append('a+1')
        self.assertEqual(self.counted(self.simulated(cloud_file)), counted)
        self.assertEqual(3, counted['vf', 'a+1'][0])

    def test_names_that_are_taken(self):
        cloud = small_clouds.cloud(
            small_clouds.host('a'), small_clouds.host('a+1'),
            small_clouds.host('b.x.org'))
        cloud, names = changed_hosts.added(cloud, 'a', 2)
        self.assertEqual(['a+2', 'a+3'], names)
        self.assertEqual(['b+1.x.org'],
                         changed_hosts.added(cloud, 'b.x.org', 1)[1])

    def test_disabled_and_down(self):
        """New hosts are neither, and have no ledger yet."""
        host = small_clouds.host(
            'a', traits=['COMPUTE_STATUS_DISABLED', 'CUSTOM_FAST'],
            enabled=False, up=False, mapped=False, disabled_reason='kernel',
            network=snapshot.HostNetwork(
                vswitch_ports=7, security_rules=3, dhcp_servers=2))
        cloud = changed_hosts.added(small_clouds.cloud(host), 'a', 1)[0]
        new = cloud.hosts[1]
        self.assertEqual(
            (True, True, True, None, frozenset({'CUSTOM_FAST'})),
            (new.enabled, new.up, new.mapped, new.disabled_reason,
             new.providers[0].traits))
        self.assertEqual(snapshot.HostNetwork(
            vswitch_ports=0, security_rules=0, dhcp_servers=0), new.network)
        found, = capacity.capacities(cloud, [small_clouds.flavor(4)])
        self.assertEqual({'a': 0, 'a+1': 4}, {
            name: each.fits for name, each in found.hosts.items()})

    def test_agents(self):
        agents = (
            snapshot.NetworkAgent(id='1' * 32, kind=snapshot.DHCP, host='a',
                                  alive=False, serves=('2' * 32,)),
            snapshot.NetworkAgent(id='chassis.x', kind=snapshot.OVN,
                                  host='a'),
            snapshot.NetworkAgent(id='3' * 32, kind=snapshot.DHCP, host='c'))
        cloud = dataclasses.replace(small_clouds.cloud(
            small_clouds.host('a')), network_agents=agents)
        cloud = self.read_again(changed_hosts.added(cloud, 'a', 1)[0])
        new = cloud.network_agents[3:]
        self.assertEqual(
            [('a+1', snapshot.DHCP, True, ()), ('a+1', snapshot.OVN, True,
                                                ())],
            [(each.host, each.kind, each.alive, each.serves)
             for each in new])
        self.assertEqual('chassis+1.x', new[1].id)


class RemovedTest(ChangedHostsTestCase):

    def test_as_if_never_there(self):
        for options in ({}, {'ledger': 'placement'}):
            cloud = self.simulated(document(['b', 'c', 'a'], **options))
            without = document(['c', 'a', 'd'], **options)
            without['steps'] = [
                {'boot': 'pages-c', 'flavor': 'pages', 'host': 'c',
                 'networks': ['data'], 'expect': {'placed': 1}}]
            cloud = changed_hosts.added(cloud, 'c', 1)[0]
            cloud = self.read_again(changed_hosts.removed(cloud, {'b'}))
            self.assertEqual(['pages-c'],
                             [server.name for server in cloud.servers])
            counted = self.counted(cloud)
            self.assertEqual(self.counted(self.simulated(without)), {
                (flavor, {'c+1': 'd'}.get(host, host)): counts
                for (flavor, host), counts in counted.items()})

    def test_everything_about_the_host(self):
        """Moves, groups, agents, and allocations from its providers."""
        cloud_file = document(['a', 'b'])
        cloud_file['server_groups'] = {
            'spread': {'policy': 'soft-anti-affinity'}}
        cloud_file['steps'] = [
            {'boot': 's', 'count': 2, 'flavor': 'shared', 'host': 'a',
             'group': 'spread', 'expect': {'placed': 2}},
            {'cold_migrate': 's-1', 'confirm': False,
             'expect': {'placed': 1}}]
        before = self.simulated(cloud_file)
        self.assertEqual(1, len(before.moves))
        self.assertEqual(1, len(before.consumers))
        before = dataclasses.replace(before, network_agents=(
            snapshot.NetworkAgent(id='1' * 32, kind=snapshot.DHCP,
                                  host='a'),))
        cloud = self.read_again(changed_hosts.removed(before, {'a'}))
        server, = cloud.servers
        self.assertEqual(('s-1', 'b'), (server.name, server.host))
        self.assertEqual(((), {}, ()), (
            cloud.moves, cloud.consumers, cloud.network_agents))
        self.assertEqual((server.uuid,), cloud.groups[0].members)
        self.assertEqual([()], [each.hosts for each in cloud.aggregates])
        self.counted(cloud)
        cloud = self.read_again(changed_hosts.removed(before, {'a', 'b'}))
        self.assertEqual(((), ()), (cloud.hosts, cloud.servers))
