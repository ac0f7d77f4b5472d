# SPDX-License-Identifier: Apache-2.0
"""A simulation that starts from a snapshot sees the hosts that Nova sees."""

from nova import objects
from nova.scheduler import host_manager

from nfv_sched.ops.cloud import actions
from nfv_sched.ops.simulator import engine
from nfv_sched.ops.simulator import start
from nfv_sched.tests.functional import test_snapshot

#: Attributes of a HostState that are plain values.
PLAIN = (
    'host', 'nodename', 'uuid', 'total_usable_ram_mb',
    'total_usable_disk_gb', 'disk_mb_used', 'free_ram_mb', 'free_disk_mb',
    'vcpus_total', 'vcpus_used', 'num_instances', 'num_io_ops',
    'failed_builds', 'hypervisor_type', 'hypervisor_version',
    'hypervisor_hostname', 'cpu_info', 'supported_instances', 'stats',
    'limits', 'ram_allocation_ratio', 'cpu_allocation_ratio',
    'disk_allocation_ratio')


def facts(state):
    """All that filters and weighers read of a HostState."""
    cells = state.numa_topology.cells
    return {
        **{name: getattr(state, name) for name in PLAIN},
        'numa': [{
            'ids': (cell.id, cell.socket),
            'cpus': (sorted(cell.cpuset), sorted(cell.pcpuset),
                     sorted(cell.pinned_cpus)),
            'usage': (cell.memory, cell.memory_usage, cell.cpu_usage),
            # Guests are packed in their order.
            'siblings': [sorted(core) for core in cell.siblings],
            'pages': [(page.size_kb, page.total, page.used, page.reserved)
                      for page in cell.mempages],
            'network': (sorted(cell.network_metadata.physnets),
                        cell.network_metadata.tunneled)} for cell in cells],
        'pools': sorted(map(repr, (sorted(
            (key, value) for key, value in pool.items()
            if key != 'devices') for pool in state.pci_stats.pools))),
        'aggregates': sorted(
            (each.uuid, each.name, dict(each.metadata), list(each.hosts))
            for each in state.aggregates),
        'instances': sorted(state.instances),
        'service': {name: state.service[name] for name in (
            'host', 'disabled', 'disabled_reason', 'forced_down')},
    }


def rooms(state):
    """What is free on a host, as far as a claim changes it."""
    found = facts(state)
    return {name: found[name] for name in (
        'free_ram_mb', 'free_disk_mb', 'vcpus_used', 'num_instances',
        'pools', 'instances')} | {
        'pinned': [sorted(cell.pinned_cpus)
                   for cell in state.numa_topology.cells],
        'used': [(cell.memory_usage, cell.cpu_usage,
                  [page.used for page in cell.mempages])
                 for cell in state.numa_topology.cells]}


class StartTest(test_snapshot.SnapshotTestCase):

    boot_all = test_snapshot.ReadTest.boot_all

    def real(self, what=facts):
        return self.seen(host_manager.HostManager(), what)

    def seen(self, manager, what=facts):
        return {state.host: what(state) for state
                in manager.get_host_states_by_uuids(self.ctxt, None, None)}

    def test_hosts(self):
        self.boot_all()
        self.admin_api.put_service(
            self.admin_api.get_services(host='host2')[0]['id'],
            {'status': 'disabled', 'disabled_reason': 'being repaired'})
        real = self.real()
        cloud = self.read()
        with start.started(cloud) as state:
            mine = self.seen(state.manager)
        self.maxDiff = None
        self.assertEqual(real, mine)
        self.assertEqual(2, len(real['host1']['numa']))
        self.assertNotEqual([], real['host1']['pools'])
        self.assertIs(True, real['host2']['service']['disabled'])

    def test_placement(self):
        pinned, _shared, _refused, _group = self.boot_all()
        cloud = self.read()
        with start.started(cloud) as state:
            providers = state.placement.providers
            for host in cloud.hosts:
                for provider in host.providers:
                    mine = providers[provider.uuid]
                    self.assertEqual(
                        {name: (found.capacity, found.used)
                         for name, found in provider.inventories.items()},
                        {name: (found['capacity'], found['used']) for
                         name, found in mine.summary()['resources'].items()})
                    self.assertEqual(
                        (provider.traits, provider.aggregates,
                         provider.parent, host.uuid),
                        (mine.traits, mine.aggregates, mine.parent,
                         mine.root))
            held = self.placement.get(
                f'/allocations/{pinned["id"]}').body['allocations']
            self.assertEqual(
                {uuid: found['resources'] for uuid, found in held.items()},
                state.placement.allocations[pinned['id']])

    def test_delete(self):
        pinned, shared, _refused, _group = self.boot_all()
        names = (pinned['name'], shared['name'])
        cloud = self.read()
        with start.started(cloud) as state:
            simulation = engine.Simulation(state)
            simulation.step(actions.ServerStep(
                action='delete', number=1, targets=tuple(names)))
            mine = self.seen(state.manager, rooms)
            self.assertEqual([True, True],
                             [found.ok for found in simulation.outcomes])
        for server in (pinned, shared):
            self.api.delete_server(server['id'])
            self._wait_until_deleted(server)
            self.booted.remove(server['id'])
        self._run_periodics()
        self.maxDiff = None
        self.assertEqual(self.real(rooms), mine)

    def test_boot(self):
        """A server is placed as Nova does, on what others have left."""
        self.boot_all()
        cloud = self.read()
        flavor, = (flavor.name for flavor in cloud.flavors
                   if 'hw:mem_page_size' in flavor.extra_specs)
        booted = {host: self.simulated_boot(cloud, flavor, host)
                  for host in ('host1', 'host2')}
        real = self.boot(
            next(found['id'] for found in self.admin_api.get_flavors()
                 if found['name'] == flavor), networks='none')
        instance = objects.Instance.get_by_uuid(
            self.ctxt, real['id'], expected_attrs=[
                'numa_topology', 'pci_devices'])
        cells = instance.numa_topology.cells
        self.assertEqual(
            (None, instance.host, tuple(cell.id for cell in cells),
             tuple(sorted(cpu for cell in cells
                          for cpu in cell.cpu_pinning.values())),
             sorted(device.address for device in instance.pci_devices)),
            booted[instance.host])

    def simulated_boot(self, cloud, flavor, host):
        """Where a server is after a simulated boot.

        :param host: the only host to consider; Nova chooses at random
        """
        with start.started(cloud) as state:
            simulation = engine.Simulation(state)
            simulation.step(actions.Boot(
                action='boot', number=1, boot='new', flavor=flavor,
                targets=('new',), host=host))
            found, = simulation.outcomes
            return (found.reason, found.destination, found.numa_nodes,
                    state.servers['new'].pinned_cpus,
                    sorted(device.address for device in found.pci_devices))


class DevicesInPlacementTest(StartTest):

    in_placement = True
