# SPDX-License-Identifier: Apache-2.0
"""A snapshot has what the API, the databases and Placement say of a cloud."""

import datetime
import json
import os

import fixtures
from nova import context as nova_context
from nova.db.api import api as api_db
from nova.db.main import api as main_db
from nova.db.main import models as main_models
from nova import objects
from oslo_utils.fixture import uuidsentinel as uuids
import sqlalchemy as sa

from nfv_sched.limits import names
from nfv_sched.ops.cloud import anonymize
from nfv_sched.ops.cloud import codec
from nfv_sched.ops.cloud import database
from nfv_sched.ops.cloud import file
from nfv_sched.ops.cloud import snapshot
from nfv_sched.tests.functional import base
from nfv_sched.tests.functional import test_ledger_service
from nfv_sched.tests.unit.limits import neutron_api

_READS = ('SELECT', 'PRAGMA', 'SHOW', 'BEGIN', 'ROLLBACK', 'COMMIT',
          'SAVEPOINT', 'RELEASE')
# Compute services in this process report, and end what they did, meanwhile.
_BACKGROUND = ('UPDATE services', 'UPDATE instance_actions')

_Kind = snapshot.MissingKind


class SnapshotTestCase(base.PCI, test_ledger_service.LedgerTestCase):
    """Two hosts with devices."""

    extra_filters = base.WholePluginTestCase.extra_filters
    available_filters = base.NFVCloudTestCase.available_filters
    weight_classes = base.NFVCloudTestCase.weight_classes
    huge_pages = 2
    node_threads = 2
    #: Name of each host -> its PCI devices.
    devices = dict.fromkeys(
        ('host1', 'host2'), {'nics': [0, 1], 'port_vfs': [1, 1]})

    def setUp(self):
        super().setUp()
        for name, devices in self.devices.items():
            self.start_host(name, physnets={'foo': (0,)}, tunnel=(1,),
                            devices=devices)
        self.progress = []

    def read(self):
        """Read the cloud; nothing may be written meanwhile."""
        engines = [api_db.context_manager.writer.get_engine()]
        for cell in objects.CellMappingList.get_all(self.ctxt):
            with nova_context.target_cell(self.ctxt, cell) as context:
                engines.append(
                    main_db.get_context_manager(context).writer.get_engine())
        written = []

        def look(connection, cursor, statement, *args):
            if not statement.lstrip().upper().startswith(_READS):
                written.append(statement)

        engines = list(dict.fromkeys(engines))
        for engine in engines:
            sa.event.listen(engine, 'before_cursor_execute', look)
        writes = len(self.placement_api.writes())
        try:
            cloud = database.read(
                base.CONF, lambda *args: self.progress.append(args))
        finally:
            for engine in engines:
                sa.event.remove(engine, 'before_cursor_execute', look)
        self.assertEqual([], [statement for statement in written
                              if not statement.startswith(_BACKGROUND)])
        self.assertEqual(writes, len(self.placement_api.writes()))
        self.assertEqual(
            cloud, codec.decode(snapshot.Cloud, codec.encode(cloud)))
        return cloud

    def neutron_api_ports(self, server, host):
        interfaces = objects.VirtualInterfaceList.get_by_instance_uuid(
            self.ctxt, server['id'])
        groups = [self.group(5)]
        for interface in interfaces:
            port, = self.bind(host, vnic_type='direct', groups=groups,
                              device=server['id'],
                              project=server['tenant_id'])
            port['id'] = interface.uuid
        return [interface.uuid for interface in interfaces]

    def boot_all(self):
        """Boot a pinned guest with device and port, a plain, a refused one."""
        aggregate = self._create_aggregate('racks', 'west')
        for host in ('host1', 'host2'):
            self.admin_api.add_host_to_aggregate(aggregate, host)
        group = self.api.post_server_groups(
            {'name': 'pair', 'policy': 'anti-affinity',
             'rules': {'max_server_per_host': 2}})
        pinned = self.boot(
            self.flavor_with(
                {**base.pinned(hw__mem_page_size='1GB'),
                 'pci_passthrough:alias': 'nic:1'}, memory_mb=1024),
            networks=[self.port()], availability_zone='west')
        hinted = {'os:scheduler_hints': {'group': group['id']}}
        body = self._build_server(
            image_uuid=base.IMAGE, networks='none',
            flavor_id=self.flavor_with({'hw:numa_nodes': '2'}, vcpus=4))
        shared = self.api.api_post(
            '/servers', {'server': body, **hinted}).body['server']
        self.booted.append(shared['id'])
        shared = self.wait_for(shared, 'ACTIVE')
        refused = self.boot(self.flavor(vcpus=64), expect='ERROR')
        self._run_periodics()
        return pinned, shared, refused, group


class ReadTest(SnapshotTestCase):

    def test_all(self):
        pinned, shared, refused, group = self.boot_all()
        host = self.host(pinned)
        port, = self.neutron_api_ports(pinned, host)
        self.bind('host2', 3, owner='network:dhcp')
        self.publish()
        cloud = self.read()
        self.assertEqual((), cloud.missing)
        self.assertFalse(cloud.anonymous)
        for one in cloud.hosts:
            self.check_host(one)
        self.assertEqual(['host1', 'host2'],
                         [one.name for one in cloud.hosts])
        found = {server.uuid: server for server in cloud.servers}
        self.assertEqual({pinned['id'], shared['id'], refused['id']},
                         found.keys())
        for server in (pinned, shared, refused):
            self.check_server(found[server['id']], server)
        self.check_pinned(found[pinned['id']], host, port)
        self.assertEqual(
            ('error', None, 'cell0', None, {}), tuple(
                getattr(found[refused['id']], name) for name in (
                    'state', 'host', 'cell', 'nodes', 'allocations')))
        self.assertEqual(refused['fault']['message'],
                         found[refused['id']].fault)
        member = found[shared['id']]
        self.assertEqual(
            (group['id'], {'group': (group['id'],)}),
            (member.group, member.hints))
        self.assertEqual((snapshot.Group(
            uuid=group['id'], name='pair', policy='anti-affinity',
            rules={'max_server_per_host': '2'}, members=(shared['id'],)),),
            cloud.groups)
        racks, = cloud.aggregates
        self.assertEqual(
            ('racks', {'availability_zone': 'west'}, ('host1', 'host2')),
            (racks.name, racks.metadata, racks.hosts))
        self.assertEqual(
            {(flavor['name'], flavor['id'], flavor['vcpus'], flavor['ram'],
              tuple(sorted(flavor['extra_specs'].items())))
             for flavor in self.admin_api.get_flavors()},
            {(flavor.name, flavor.id, flavor.vcpus, flavor.memory,
              tuple(sorted(flavor.extra_specs.items())))
             for flavor in cloud.flavors})
        options = cloud.options
        self.assertIn('VSwitchNUMAAffinityFilter',
                      options['filter_scheduler']['enabled_filters'])
        self.assertEqual(
            1.0, options['filter_scheduler']['cpu_weight_multiplier'])
        self.assertEqual(20, options['nfv_sched']['vswitch_ports_per_node'])
        self.assertEqual(1000, options['scheduler']['max_placement_results'])
        text = json.dumps(options)
        for secret in ('password', 'http', 'sqlite', 'connection'):
            self.assertNotIn(secret, text)
        self.assertEqual({'hosts', 'servers', 'request specs', 'Neutron',
                          'resource providers'},
                         {what for what, _done, _total in self.progress})
        self.assertIn(('servers', 3, 3), self.progress)
        anonymous = json.dumps(codec.encode(anonymize.replace(cloud).cloud))
        for name in (pinned['id'], pinned['name'], pinned['tenant_id'],
                     port, cloud.hosts[0].uuid, 'racks', 'physnet4'):
            self.assertNotIn(name, anonymous)

    def check_host(self, host):
        node = self.compute_node(host.name)
        self.assertEqual(
            (node.uuid, node.hypervisor_hostname, node.vcpus,
             node.vcpus_used, node.memory_mb, node.memory_mb_used,
             node.local_gb, node.local_gb_used, node.disk_available_least,
             node.cpu_info, node.hypervisor_type, node.hypervisor_version,
             True, True, None, 'west', ('racks',), 'cell1'),
            (host.uuid, host.hypervisor, host.vcpus, host.vcpus_used,
             host.memory, host.memory_used, host.disk, host.disk_used,
             host.disk_available_least, host.cpu_info, host.hypervisor_type,
             host.hypervisor_version, host.enabled, host.up,
             host.disabled_reason, host.zone, host.aggregates, host.cell))
        topology = objects.NUMATopology.obj_from_db_obj(node.numa_topology)
        self.assertEqual(len(topology.cells), len(host.nodes))
        for cell, mine in zip(topology.cells, host.nodes):
            self.assertEqual(
                (cell.id, cell.socket, cell.cpuset, cell.pcpuset,
                 cell.pinned_cpus, cell.memory, cell.memory_usage,
                 cell.cpu_usage, cell.network_metadata.physnets,
                 cell.network_metadata.tunneled, cell.free_pcpus,
                 sorted(map(sorted, cell.siblings)),
                 [(page.size_kb, page.total, page.used, page.reserved)
                  for page in cell.mempages]),
                (mine.number, mine.socket, mine.shared, mine.dedicated,
                 mine.pinned, mine.memory, mine.memory_used,
                 mine.shared_used, mine.physnets, mine.tunneled, mine.free,
                 sorted(map(sorted, mine.siblings)),
                 [(page.size, page.total, page.used, page.reserved)
                  for page in mine.pages]))
        self.assertEqual(
            {(device.address, device.vendor_id, device.product_id,
              device.dev_type, device.numa_node, device.status,
              device.parent_addr, device.instance_uuid, device.request_id)
             for device in objects.PciDeviceList.get_by_compute_node(
                 self.ctxt, node.id)},
            {(device.address, device.vendor, device.product, device.kind,
              device.node, device.status, device.parent, device.server,
              device.request) for device in host.devices})
        self.assertEqual(
            {'physnet4'},
            {device.tags.get('physical_network') for device in host.devices
             if device.product == base.HostDevices.PORT_VF
             and device.status == 'available'})
        self.assertEqual(
            [(host.uuid, None), (names.provider_uuid(host.uuid), host.uuid)],
            [(provider.uuid, provider.parent) for provider in host.providers
             if provider.uuid in (
                 host.uuid, names.provider_uuid(host.uuid))])
        for provider in host.providers:
            path = f'/resource_providers/{provider.uuid}'

            def get(what, path=path):
                return self.placement.get(
                    f'{path}/{what}', version='1.19').body[what]

            usages = get('usages')
            self.assertEqual(
                {name: (found['total'], found['reserved'],
                        found['allocation_ratio'], found['min_unit'],
                        found['max_unit'], found['step_size'], usages[name])
                 for name, found in get('inventories').items()},
                {name: (found.total, found.reserved, found.ratio,
                        found.min_unit, found.max_unit, found.step_size,
                        found.used)
                 for name, found in provider.inventories.items()})
            self.assertEqual(set(get('traits')), provider.traits)
            self.assertEqual(set(get('aggregates')), provider.aggregates)
        self.assertEqual(
            snapshot.HostNetwork(
                vswitch_ports=3, security_rules=0, dhcp_servers=3, routers=0)
            if host.name == 'host2' else snapshot.HostNetwork(
                vswitch_ports=0, security_rules=0, dhcp_servers=0,
                routers=0), host.network)

    def check_server(self, mine, server):
        instance = objects.Instance.get_by_uuid(
            self.ctxt if mine.host else self.cell_context(
                objects.CellMapping.CELL0_UUID), server['id'],
            expected_attrs=['flavor', 'numa_topology', 'pci_devices'])
        self.assertEqual(
            (instance.display_name, instance.host, instance.project_id,
             instance.vm_state, instance.task_state,
             instance.flavor.name, instance.flavor.flavorid,
             instance.flavor.vcpus, instance.flavor.memory_mb,
             instance.flavor.root_gb, instance.flavor.extra_specs,
             instance.created_at.replace(tzinfo=None).isoformat() + 'Z'),
            (mine.name, mine.host, mine.project, mine.state, mine.task,
             mine.flavor.name, mine.flavor.id, mine.flavor.vcpus,
             mine.flavor.memory, mine.flavor.disk, mine.flavor.extra_specs,
             mine.created))
        self.assertEqual(
            sorted(device.address for device in instance.pci_devices),
            sorted(mine.devices))
        if mine.host is None:
            return
        for cell, node in zip(instance.numa_topology.cells, mine.nodes):
            self.assertEqual(
                (cell.id, cell.cpuset, cell.pcpuset, cell.cpu_pinning or {},
                 cell.memory, cell.pagesize, cell.cpu_policy,
                 cell.cpu_thread_policy, cell.cpuset_reserved or set()),
                (node.host_node, node.shared, node.dedicated, node.pins,
                 node.memory, node.page_size, node.cpu_policy,
                 node.thread_policy, node.reserved))
        self.assertEqual(
            {provider: found['resources'] for provider, found in
             self.placement.get(f'/allocations/{mine.uuid}').body[
                 'allocations'].items()}, mine.allocations)

    def check_pinned(self, server, host, port):
        node, = server.nodes
        self.assertEqual(2, len(node.pins))
        self.assertEqual(1024 * 1024, node.page_size)
        self.assertEqual(2, len(server.devices))
        mine, = server.ports
        self.assertEqual(
            (port, base.SRIOV, 'direct', 'physnet4', 5),
            (mine.id, mine.network, mine.vnic_type, mine.physnet,
             mine.rules))
        self.assertIn(mine.device, server.devices)
        self.assertTrue(mine.network_name)
        alias, of_port = server.pci_requests
        self.assertEqual(
            ('nic', None, 1, 1),
            (alias.alias, of_port.alias, alias.count, of_port.count))
        self.assertEqual('physnet4', of_port.specs[0]['physical_network'])
        self.assertEqual((host, 'west'), (server.host, server.zone))


class NetworkAgentsTest(SnapshotTestCase):

    def test_all(self):
        network = neutron_api.network('lan', 'physnet4')
        agent = neutron_api.agent('DHCP agent', 'host1', networks=1)
        self.neutron_api.networks.append(network)
        self.neutron_api.agents = [agent, neutron_api.agent(
            'Open vSwitch agent', 'host1', bridge_mappings={'physnet4': 'b'})]
        self.neutron_api.served[agent['id']] = [network]
        port, = self.bind('host1', 1, owner='network:dhcp')
        port['network_id'] = network['id']
        cloud = self.read()
        self.assertEqual(((), (snapshot.NetworkAgent(
            id=agent['id'], kind='dhcp', host='host1',
            physnets=frozenset({'physnet4'}), serves=(network['id'],)),),
            (snapshot.NetworkService(
                id=network['id'], kind='dhcp', name='lan', ports=1,
                physnets=frozenset({'physnet4'})),)),
            (cloud.missing, cloud.network_agents, cloud.network_services))
        self.assertIn(('network agents', 1, 1), self.progress)
        # Only that is not for this user.
        path = f'agents/{agent["id"]}/dhcp-networks'
        self.neutron_api.faults[path] = (
            lambda handler, query, body: handler.reply({}, 403))
        cloud = self.read()
        self.assertEqual((snapshot.Missing(
            kind=_Kind.NETWORK_AGENTS, text=f'GET {path}: 403 Forbidden'),),
            cloud.missing)
        self.assertEqual((None, ()), (
            cloud.network_agents, cloud.network_services))
        self.assertEqual(
            [1, 0], [host.network.dhcp_servers for host in cloud.hosts])


class MissingTest(SnapshotTestCase):
    """Something cannot be read; the rest is there."""

    def test_all(self):
        server = self.boot(self.flavor())
        self.neutron_api.stop()
        self.placement_api.fault = lambda method, path: (
            500 if self.compute_rp_uuids['host1'] + '/inventories' in path
            else None)
        cloud = self.read()
        network, providers = cloud.missing
        self.assertEqual(
            (_Kind.NEUTRON, _Kind.PROVIDERS,
             (self.compute_rp_uuids['host1'],)),
            (network.kind, providers.kind, providers.uuids))
        self.assertIn('GET /', providers.text)
        self.assertEqual([False, True],
                         [bool(host.providers) for host in cloud.hosts])
        mine, = cloud.servers
        self.assertEqual(mine.host == 'host1', mine.allocations is None)
        self.assertEqual((), mine.ports)
        self.assertEqual([None, None],
                         [host.network for host in cloud.hosts])
        self.assertEqual(server['id'], mine.uuid)
        self.placement_api.fault = lambda method, path: (
            500 if '?required=' in path else None)
        placement = self.read().missing[1]
        self.assertEqual(_Kind.PLACEMENT, placement.kind)
        self.assertIn('GET /', placement.text)
        self.placement_api.stop()
        cloud = self.read()
        self.assertEqual([_Kind.NEUTRON, _Kind.PLACEMENT],
                         [each.kind for each in cloud.missing])
        self.assertEqual([(), ()], [host.providers for host in cloud.hosts])
        self.assertIsNone(cloud.servers[0].allocations)


class MovingTest(SnapshotTestCase):
    """What changes while it is read; the file can be read all the same."""

    def load(self, cloud):
        path = os.path.join(self.useFixture(fixtures.TempDir()).path, 'cloud')
        file.save(cloud, path)
        return file.load(path)

    def test_server_in_two_cells(self):
        server = self.boot(self.flavor())
        there = objects.Instance.get_by_uuid(
            self.cell_context(), server['id'], expected_attrs=['flavor'])
        objects.Instance(
            self.cell_context(objects.CellMapping.CELL0_UUID),
            uuid=there.uuid, project_id=there.project_id,
            user_id=there.user_id, flavor=there.flavor,
            vm_state='error').create()
        self.assertEqual([server['id']], [
            each.uuid for each in self.load(self.read()).servers])

    def test_when_servers_moved(self):
        """The last move from another host counts, to wherever it led."""
        moving, staying = (self.boot(self.flavor_with({
            'hw:numa_nodes': '1'}), host='host1') for _ in range(2))

        def moved():
            return {server.uuid: server.moved
                    for server in self.load(self.read()).servers}

        self.assertEqual({moving['id']: '', staying['id']: ''}, moved())
        self.live_migrate(moving, host='host2')
        move, = objects.MigrationList.get_by_filters(
            self.ctxt, {'instance_uuid': moving['id']})
        began = move.created_at.strftime('%Y-%m-%dT%H:%M:%SZ')
        self.assertEqual({moving['id']: began, staying['id']: ''}, moved())
        # Those from its host, such as failed ones, change nothing.
        table = main_models.Migration.__table__
        with main_db.get_context_manager(self.cell_context()).writer.using(
                self.cell_context()) as session:
            for day, server, source in (
                    (1, moving, 'host2'), (2, staying, 'host1'),
                    (3, staying, 'host2'), (4, staying, 'host3'),
                    (5, staying, None)):
                session.execute(sa.insert(table).values(
                    uuid=getattr(uuids, f'move{day}'),
                    instance_uuid=server['id'], source_compute=source,
                    migration_type='live-migration', status='error',
                    created_at=datetime.datetime(2040, 1, day), deleted=0))
        self.assertEqual(
            {moving['id']: began, staying['id']: '2040-01-04T00:00:00Z'},
            moved())

    def test_provider_that_goes(self):
        """Those below it are left out, too."""
        self.publish()
        root = self.compute_rp_uuids['host1']
        self.placement_api.fault = lambda method, path: (
            404 if f'{root}/inventories' in path else None)
        hosts = {host.name: host.providers
                 for host in self.load(self.read()).hosts}
        self.assertEqual((), hosts['host1'])
        self.assertLess(1, len(hosts['host2']))
