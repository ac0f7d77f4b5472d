# SPDX-License-Identifier: Apache-2.0
"""What a snapshot may lack, or have otherwise than a cloud file."""

import copy
import dataclasses
import random

from nfv_sched.ops.cloud import actions
from nfv_sched.ops.cloud.cloud_file import loader
from nfv_sched.ops.cloud import problems
from nfv_sched.ops.cloud import scenario
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.simulator import engine
from nfv_sched.ops.simulator import nova_internals
from nfv_sched.ops.simulator import record
from nfv_sched.ops.simulator import start
from nfv_sched.tests import snapshots
from nfv_sched.tests.unit.ops.simulator import base

UUIDS = [f'{number}0000000-0000-0000-0000-000000000000'
         for number in range(1, 8)]
PLAIN = snapshot.Flavor(name='plain', vcpus=2, memory=1024, disk=10)
PINNED = snapshot.Flavor(
    name='pinned', vcpus=2, memory=1024,
    extra_specs={'hw:cpu_policy': 'dedicated'})


def node(number=0, **fields):
    first = number * 8
    return snapshot.Node(**{
        'number': number, 'memory': 8192,
        'shared': frozenset(range(first, first + 4)),
        'dedicated': frozenset(range(first + 4, first + 8)),
        'pages': (snapshot.Pages(size=4, total=8192 * 256),), **fields})


def host(name='host1', **fields):
    return snapshot.Host(**{
        'name': name, 'hypervisor': name, 'uuid': f'uuid of {name}',
        'vcpus': 16, 'memory': 16384, 'memory_used': 512, 'disk': 100,
        'nodes': (node(0), node(1)), 'cpu_ratio': 2.0, 'memory_ratio': 1.0,
        'disk_ratio': 1.0, **fields})


def server(number=0, name='guest', **fields):
    return snapshot.Server(**{
        'uuid': UUIDS[number], 'name': name, 'host': 'host1',
        'flavor': PLAIN, **fields})


def pinned(number=0, **fields):
    return server(number, **{'flavor': PINNED, 'nodes': (snapshot.GuestNode(
        host_node=0, dedicated=frozenset((0, 1)), pins={0: 4, 1: 5},
        memory=1024, cpu_policy='dedicated'),), **fields})


def cloud(*hosts, servers=(), **fields):
    return snapshot.Cloud(**{
        'taken': '', 'hosts': hosts or (host(), host('host2')),
        'servers': tuple(servers), 'flavors': (PLAIN, PINNED), **fields})


class StartTest(base.SimulatorTestCase):

    def run_steps(self, found, text, servers=None):
        """Run YAML steps; return what each did or why not, and the state."""
        with_steps = loader.loads_steps(text, 'steps.yaml', found)
        with start.started(found, scenario=with_steps) as state:
            result = engine.Simulation(state).run()
        return [each.reason or each.destination
                for each in result.outcomes], state

    def test_without_placement(self):
        """What Placement has follows from hosts and servers."""
        found = cloud(
            host(vcpus_used=4, memory_used=2560), servers=(
                server(0), pinned(1, name='other')),
            aggregates=(snapshot.Aggregate(
                name='west', uuid=UUIDS[6], hosts=('host1', 'gone'),
                metadata={'availability_zone': 'west'}),))
        with start.started(found) as state:
            provider = state.placement.providers['uuid of host1']
            self.assertEqual(
                {'VCPU': 2, 'PCPU': 2, 'MEMORY_MB': 2048, 'DISK_GB': 10},
                provider.used)
            self.assertEqual(
                {'VCPU': 16, 'PCPU': 8, 'MEMORY_MB': 15872, 'DISK_GB': 100},
                {name: inventory.capacity for name, inventory
                 in provider.inventories.items()})
            self.assertEqual({UUIDS[6]}, provider.aggregates)

    def test_not_in_placement(self):
        provider = snapshot.Provider(
            uuid='uuid of host1', name='host1', inventories={
                'PCPU': snapshot.Inventory(total=8),
                'MEMORY_MB': snapshot.Inventory(total=16384)})
        hosts = host(providers=(provider,)), host('host2')
        step = 'steps: [{boot: s, flavor: pinned, host: %s}]'
        found = cloud(*hosts)
        self.assertEqual(['host1'], self.run_steps(found, step % 'host1')[0])
        reason, = self.run_steps(found, step % 'host2')[0]
        self.assertIn('Placement has no host', reason)
        found = dataclasses.replace(
            found, missing=(snapshot.Missing(
                kind=snapshot.MissingKind.PROVIDERS,
                uuids=('uuid of host2',)),))
        self.assertEqual(['host2'], self.run_steps(found, step % 'host2')[0])
        # Another host, and a text alone, say nothing of this one.
        for missing in (
                snapshot.Missing(kind=snapshot.MissingKind.PROVIDERS,
                                 uuids=('uuid of host3',)),
                snapshot.Missing(kind=snapshot.MissingKind.HOST,
                                 hosts=('Placement-az1-3',)),
                *snapshots.missing('Placement cannot be read for 1 host')):
            reason, = self.run_steps(dataclasses.replace(
                found, missing=(missing,)), step % 'host2')[0]
            self.assertIn('Placement has no host', reason)

    def test_ratios_that_are_not_reported(self):
        """Nova takes those of the options then."""
        silent = host(cpu_ratio=None, memory_ratio=None, disk_ratio=None)
        for options, ratios in (
                ({}, [1.0, 1.0, 1.0]),
                ({'cpu_allocation_ratio': 3.0,
                  'initial_cpu_allocation_ratio': 4.0,
                  'initial_ram_allocation_ratio': 1.5,
                  'disk_allocation_ratio': None}, [3.0, 1.5, 1.0])):
            with start.started(cloud(
                    silent, options={'DEFAULT': options})) as state:
                node = state.hosts['host1'].node
                self.assertEqual(ratios, [
                    node.cpu_allocation_ratio, node.ram_allocation_ratio,
                    node.disk_allocation_ratio])

    def test_host_without_numa_topology(self):
        found = cloud(host(nodes=None), servers=(server(),))
        done, state = self.run_steps(found, '''
            steps:
            - delete: guest
            - boot: s
              flavor: plain
            - boot: t
              flavor: pinned
            ''')
        self.assertIsNone(state.hosts['host1'].node.numa_topology)
        # Nothing says how many CPUs for shared guests it has.
        self.assertIsNone(done[0])
        self.assertIn('Placement has no host', done[2])

    def test_legacy_pinning(self):
        """With vcpu_pin_set all CPUs are shared and dedicated."""
        cpus = frozenset(range(8))
        found = cloud(host(nodes=(node(
            shared=cpus, dedicated=cpus, pinned=frozenset((4, 5))),)),
            servers=(pinned(),))
        done, state = self.run_steps(
            found, 'steps: [{boot: s, flavor: pinned}, {delete: guest}]')
        self.assertEqual(['host1', None], done)
        self.assertEqual(
            {'VCPU': 2, 'MEMORY_MB': 1024},
            state.placement.providers['uuid of host1'].used)
        cell, = state.hosts['host1'].topology().cells
        self.assertEqual(2, len(cell.pinned_cpus))
        self.assertTrue(cell.pinned_cpus.isdisjoint((4, 5)))

    def test_cpus_that_are_recorded_otherwise(self):
        """A server that goes frees only what its host has recorded."""
        choose = random.Random(1)
        cores = tuple(frozenset((cpu, cpu + 1)) for cpu in range(0, 8, 2))
        for number in range(100):
            pinned_cpus = frozenset(choose.sample(range(4, 8), choose.choice(
                (0, 2, 4))))
            found = cloud(
                host(nodes=(node(siblings=cores, pinned=pinned_cpus),)),
                servers=[pinned(place, name=f's{place}', nodes=(
                    snapshot.GuestNode(
                        host_node=0, dedicated=frozenset((0, 1)),
                        pins=dict(enumerate(choose.sample(
                            [4, 5, 6, 7, 99], 2))),
                        thread_policy=choose.choice((None, 'isolate')),
                        memory=1024, cpu_policy='dedicated'),))
                    for place in range(2)])
            with start.started(found) as state:
                simulation = engine.Simulation(state)
                left = {server.name: server.nodes[0].pins.values()
                        for server in found.servers}
                for name in ('s0', 's1'):
                    simulation.step(actions.ServerStep(
                        action='delete', number=1, targets=(name,)))
                    del left[name]
                    cell, = state.hosts['host1'].topology().cells
                    # What another server has stays taken.
                    self.assertLessEqual(
                        pinned_cpus.intersection(cpu for pins in left.values()
                                                 for cpu in pins),
                        cell.pinned_cpus, number)
                    self.assertLessEqual(cell.pinned_cpus, pinned_cpus)
            self.assertEqual(
                [True, True], [each.ok for each in simulation.outcomes],
                (number, simulation.outcomes))

    def test_names(self):
        servers = (
            server(0, 'twin'), server(1, 'twin'), server(2, ''),
            server(3, 'lone'), server(4, f'twin-{UUIDS[0][:8]}'))
        self.assertEqual(
            [UUIDS[0], f'twin-{UUIDS[1][:8]}', UUIDS[2], 'lone',
             f'twin-{UUIDS[0][:8]}'],
            [scenario.unique_names(servers)[each.uuid] for each in servers])
        found = cloud(servers=servers[1:4] + (server(5, 'twin'),))
        for way in ('lone', UUIDS[3], UUIDS[1], f'twin-{UUIDS[1][:8]}',
                    UUIDS[2]):
            done, state = self.run_steps(found, f'steps: [{{delete: {way}}}]')
            self.assertEqual([None], done)
            self.assertEqual(1, sum(
                each.status == 'DELETED'
                for each in state.servers.values()), way)
        error = self.assertRaises(
            problems.InputError, self.run_steps, found,
            'steps: [{delete: twin}]')
        self.assertEqual(
            "steps.yaml:1: steps[0].delete: there are 2 servers 'twin': "
            f'twin-{UUIDS[1][:8]}, twin-{UUIDS[5][:8]}', str(error))
        done, _state = self.run_steps(found, 'steps: [{delete: twin*}]')
        self.assertEqual([None, None], done)

    def test_files_of_steps(self):
        for text, wanted in (
                ('', 'steps.yaml: the file is empty'),
                ('hosts: []\nsteps: []',
                 'steps.yaml:1: hosts: the hosts are those of --from; a file '
                 'of steps for it has none'),
                ('flavors: {}\nsteps:\n- boot: s\n  flavor: pined',
                 "steps.yaml:4: steps[0].flavor: no flavor named 'pined'; "
                 "did you mean 'pinned'?"),
                ('steps:\n- delete: gues', "steps.yaml:2: steps[0].delete: "
                 "no server named 'gues'; did you mean 'guest'?"),
                ('steps:\n- boot: guest\n  flavor: plain',
                 "steps.yaml:2: steps[0].boot: there is a server 'guest' "
                 'already'),
                ('options: {nfv_sched: {odd: 1}}\nsteps: []',
                 'steps.yaml:1: options.nfv_sched.odd: ')):
            error = self.assertRaises(
                problems.InputError, self.run_steps,
                cloud(servers=(server(),)), text)
            self.assertIn(wanted, str(error))

    def test_names_with_line_breaks(self):
        found = cloud(servers=(dataclasses.replace(
            server(), name='vm\n\u2028\x1b[31m\r'),))
        error = self.assertRaises(
            problems.InputError, self.run_steps, found,
            'steps: [{delete: other}]')
        self.assertEqual(
            ("steps.yaml:1: steps[0].delete: no server named 'other'; "
             r'known: vm\n\u2028\x1b[31m\r',), error.problems)
        self.assertEqual(error.problems, tuple(str(error).splitlines()))

    def test_replaces(self):
        """What a file of steps has counts instead of the snapshot's."""
        done, state = self.run_steps(cloud(), '''
            flavors:
              plain:
                vcpus: 100
                memory: 1 GiB
            server_groups:
              apart: {policy: anti-affinity}
            steps:
            - {boot: a, flavor: plain}
            - {boot: b, flavor: pinned, group: apart}
            - {boot: c, flavor: pinned, group: apart}
            ''')
        self.assertIn('VCPU=100', done[0])
        self.assertEqual({'host1', 'host2'}, set(done[1:]))

    def test_not_installed(self):
        found = cloud(options={'filter_scheduler': {
            'enabled_filters': ['ComputeFilter', 'OddFilter'],
            'available_filters': ['nova.scheduler.filters.all_filters',
                                  'odd.OddFilter']}})
        error = self.assertRaises(
            problems.InputError, start.started(found).__enter__)
        self.assertIn('OddFilter', str(error))
        self.assertIn('the snapshot: ', str(error))
        self.assertEqual(1, len(error.problems))

    def test_classes(self):
        ram = 'nova.scheduler.weights.ram.RAMWeigher'
        for names, left in (([ram], [ram]), ([ram, 'odd.Weigher'], [ram]),
                            (['odd.Weigher'], []),
                            (f'{ram}, os.abort', [ram])):
            found = cloud(options={
                'filter_scheduler': {'weight_classes': names}})
            with start.started(found):
                self.assertEqual(
                    left, nova_internals.CONF.filter_scheduler.weight_classes)

    def test_options_of_this_machine(self):
        """No snapshot sets where something is written, or who logs in."""
        own = nova_internals.CONF
        own_path = own.state_path
        found = cloud(options={
            'DEFAULT': {'state_path': '/odd'},
            'nfv_sched': {'decision_journal': '/odd',
                          'cell_database_user': 'odd'}})
        with start.started(found):
            self.assertEqual(own_path, own.state_path)
            self.assertIsNone(own.nfv_sched.decision_journal)
            self.assertIsNone(own.nfv_sched.cell_database_user)

    def test_options_are_literal(self):
        r"""No text of a snapshot is replaced by another option."""
        for text in ('$state_path', r'\$state_path', '$$state_path',
                     r'\\$state_path', '${state_path}', '$', r'\$$'):
            found = cloud(options={
                'DEFAULT': {'default_schedule_zone': text},
                'filter_scheduler': {'isolated_hosts': [text]}})
            with start.started(found):
                self.assertEqual(text,
                                 nova_internals.CONF.default_schedule_zone)
                self.assertEqual(
                    [text],
                    nova_internals.CONF.filter_scheduler.isolated_hosts)

    def test_unknown_options(self):
        """Options of another release do not matter."""
        found = cloud(options={
            'odd': {'one': 1}, 'filter_scheduler': {
                'odd_weight_multiplier': 1.0, 'ram_weight_multiplier': -2.0}})
        multipliers = nova_internals.CONF.filter_scheduler
        before = multipliers.ram_weight_multiplier
        with start.started(found):
            self.assertEqual(-2.0, multipliers.ram_weight_multiplier)
        self.assertEqual(before, multipliers.ram_weight_multiplier)

    def test_alias_is_gone(self):
        """A server whose flavor Nova refuses now can only be deleted."""
        flavor = dataclasses.replace(PLAIN, extra_specs={
            'pci_passthrough:alias': 'gone:1'})
        done, _state = self.run_steps(
            cloud(servers=(server(flavor=flavor),)),
            'steps: [{live_migrate: guest}, {shelve: guest},'
            ' {unshelve: guest}, {delete: guest}]')
        self.assertIn('alias gone is not defined', done[0])
        self.assertIsNone(done[1])
        self.assertIn('alias gone is not defined', done[2])
        self.assertIsNone(done[3])

    def test_states(self):
        for state, allowed in (
                ('active', {'live_migrate', 'cold_migrate', 'evacuate',
                            'shelve', 'delete'}),
                ('stopped', {'cold_migrate', 'evacuate', 'shelve',
                             'delete'}),
                ('paused', {'live_migrate', 'shelve', 'delete'}),
                ('error', {'evacuate', 'delete'}),
                ('resized', {'delete'}), ('rescued', {'delete'})):
            for action in ('live_migrate', 'cold_migrate', 'evacuate',
                           'shelve', 'confirm', 'delete'):
                found = cloud(servers=(server(state=state),))
                with start.started(found) as simulated:
                    simulation = engine.Simulation(simulated)
                    kind = actions.TYPES[action]
                    simulation.step(kind(
                        action=action, number=1, targets=('guest',)))
                self.assertEqual(
                    action in allowed, simulation.outcomes[0].ok,
                    (state, action, simulation.outcomes[0].reason))

    def test_host_of_server_is_missing(self):
        found = cloud(servers=(server(host='gone'),))
        done, _state = self.run_steps(
            found, 'steps: [{live_migrate: guest}, {delete: guest}]')
        self.assertEqual(['its host is not in the snapshot', None], done)

    def test_cells(self):
        """A server stays in its cell."""
        found = cloud(
            host(cell='one'), host('host2', cell='one'),
            host('host3', cell='two'),
            servers=(server(), server(1, 'other', host='host3')))
        done, _state = self.run_steps(
            found, 'steps: [{live_migrate: guest}, {live_migrate: other}]')
        self.assertEqual('host2', done[0])
        self.assertIn('left out of the request', done[1])

    def test_neutron_is_unread(self):
        """Nothing is published then."""
        options = {'nfv_sched': {
            'vswitch_ports_per_node': 1, 'vswitch_physical_ports': 0}}
        step = ('networks: {n: {tunneled: true}}\n'
                'steps: [{boot: s, flavor: plain, networks: [n]}]')
        self.assertEqual(['host1'], self.run_steps(
            cloud(options=options), step)[0])
        known = host(network=snapshot.HostNetwork(
            vswitch_ports=0, security_rules=0, routers=0))
        self.assertEqual(['host1'], self.run_steps(
            cloud(known, options=options), step)[0])
        full = host(network=snapshot.HostNetwork(
            vswitch_ports=1, security_rules=0, routers=0))
        reason, = self.run_steps(cloud(full, options=options), step)[0]
        self.assertIn('host1: ', reason)

    def test_network_load(self):
        """Ports and rules come to what Neutron has shown."""
        ports = tuple(snapshot.Port(id=uuid, network=UUIDS[5], rules=4)
                      for uuid in UUIDS[:2])
        shown = snapshot.HostNetwork(
            vswitch_ports=9, security_rules=10, dhcp_servers=3, routers=2)
        found = cloud(host(network=shown), servers=(
            server(ports=ports, project='tenant'),))
        with start.started(found) as state:
            load = state.network.loads()['host1']
            self.assertEqual(
                (9, 10, 3, 2, 2),
                (load.usage.vswitch_ports, load.usage.rules,
                 load.usage.dhcp_servers, load.usage.routers,
                 load.usage.guest_ports))
            self.assertEqual(shown, record.cloud(state).hosts[0].network)

    def test_pools_of_hosts_with_equal_devices(self):
        def devices(used, node=0):
            return tuple([snapshot.Device(
                address=f'0000:01:00.{number}', vendor='8086', product='154c',
                kind='type-VF', node=node, parent='0000:01:00.0',
                status='allocated' if number < used else 'available',
                server=UUIDS[number] if number < used else None)
                for number in range(1, 4)])

        hosts = [
            host(name, devices=devices(used, node), providers=(
                snapshot.Provider(uuid=f'uuid of {name}', name=name),))
            for name, used, node in (
                ('a', 0, 0), ('b', 2, 0), ('c', 3, 0), ('d', 0, 1),
                ('e', 0, 0))]
        with start.started(cloud(*hosts)) as state:
            pools = [each.node.pci_device_pools
                     for each in state.hosts.values()]
            self.assertEqual(
                [[(0, 3)], [(0, 2)], [(0, 1)], [(1, 3)], [(0, 3)]],
                [[(pool.numa_node, pool.count) for pool in of_host]
                 for of_host in pools])
            # The tracker is slow to make.
            self.assertEqual([True] * 4 + [False], [
                'pci_tracker' in vars(each) for each in state.hosts.values()])
            # What a request changes is its own.
            for expected in (3, 3):
                first, *_others = state.manager.get_host_states_by_uuids(
                    state.context, [hosts[0].uuid], None)
                self.assertEqual(expected, first.pci_stats.pools[0]['count'])
                first.pci_stats.pools[0]['count'] = 0
            # A filter of Nova tries a request on a copy.
            copied = copy.deepcopy(first.pci_stats)
            copied.pools[0]['count'] = 1
            copied.pools.clear()
            self.assertEqual(0, first.pci_stats.pools[0]['count'])
            self.assertIs(first.pci_stats.numa_topology, copied.numa_topology)

    def test_tags_of_a_device_that_is_used(self):
        """Nova stores tags of pools only: those of its like are taken."""
        def device(number, **fields):
            return snapshot.Device(**{
                'address': f'0000:0{number}:00.1', 'vendor': '8086',
                'product': '154c', 'kind': 'type-VF', 'node': 0,
                'parent': f'0000:0{number}:00.0', **fields})

        tags = {'physical_network': 'physnet0', 'remote_managed': 'false'}
        used = device(2, status='allocated', server=UUIDS[0])
        found = cloud(host(devices=(device(1, tags={
            **tags, 'address': '0000:01:00.0'}), used)),
            servers=(server(devices=(used.address,)),))
        _done, state = self.run_steps(found, 'steps: [{delete: guest}]')
        pools = state.hosts['host1'].node.pci_device_pools
        self.assertEqual(
            [{**tags, 'dev_type': 'type-VF', 'address': f'0000:0{n}:00.0'}
             for n in (1, 2)], [pool.tags for pool in pools])
