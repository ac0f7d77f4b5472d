# SPDX-License-Identifier: Apache-2.0
"""Hosts, and servers on them, by answers as Nova and Placement give them."""

from testtools import matchers

from nfv_sched.ops.cloud import api
from nfv_sched.ops.cloud import snapshot
from nfv_sched.tests import base
from nfv_sched.tests.unit.ops.cloud import nova_api


class APITestCase(base.TestCase):
    """A cloud of one host, with one server and one flavor."""

    def setUp(self):
        super().setUp()
        self.api = nova_api.CloudAPI()
        self.api.start()
        self.addCleanup(self.api.stop)
        self.nova, self.placement = self.api.nova, self.api.placement
        self.flavor = nova_api.flavor('f', hw__cpu_policy='dedicated')
        self.nova.flavors = [self.flavor]
        self.nova.hypervisors = [nova_api.hypervisor('h1')]
        self.nova.services = [nova_api.service('h1')]
        self.nova.servers = [
            nova_api.placed_server('vm', self.flavor, 'h1')]
        self.placement.add('id-of-h1', PCPU=8, MEMORY_MB=4096, allocations={
            'id-of-vm': {'PCPU': 4, 'MEMORY_MB': 2048}})

    def read(self, *parts):
        with self.api.connect() as connection:
            return api.read(
                connection, parts or ('hosts', 'flavors', 'servers'))

    def refused(self):
        """The line that nothing can be read with."""
        line, = str(self.assertRaises(api.APIError, self.read)).splitlines()
        return line

    def asked(self, resource):
        """The queries for a resource, and their microversions."""
        return [(query, version) for name, query, version in
                self.nova.requests if name == resource]


class HostsTest(APITestCase):

    def test_host(self):
        self.nova.services = [nova_api.service(
            'h1', zone='west', status='disabled', state='down',
            disabled_reason='rewired')]
        self.nova.aggregates = [
            nova_api.aggregate(10, 'b', ['h2', 'h1'], ssd='true'),
            nova_api.aggregate(9, 'a', ['h1'], availability_zone='west')]
        self.placement.add('numa', 'id-of-h1', traits=['HW_NUMA'],
                           aggregates=['id-of-b'], VF=2, allocations={
                               'id-of-vm': {'VF': 1}, 'move': {'VF': 1}})
        cloud = self.read()
        host, = cloud.hosts
        inventory = snapshot.Inventory(
            total=8, reserved=1, ratio=2.0, max_unit=8, used=4)
        self.assertEqual(snapshot.Host(
            name='h1', hypervisor='h1', uuid='id-of-h1', enabled=False,
            up=False, disabled_reason='rewired', zone='west',
            aggregates=('a', 'b'), hypervisor_type='QEMU',
            hypervisor_version=8002000, cpu_info='{"arch": "x86_64"}',
            vcpus=8, vcpus_used=2, memory=4096, memory_used=1024, disk=100,
            disk_used=20, disk_available_least=-5, memory_ratio=2.0,
            providers=(
                snapshot.Provider(
                    uuid='id-of-h1', name='name-of-id-of-h1', inventories={
                        'PCPU': inventory, 'MEMORY_MB': snapshot.Inventory(
                            total=4096, reserved=1, ratio=2.0, max_unit=4096,
                            used=2048)}),
                snapshot.Provider(
                    uuid='numa', name='name-of-numa', parent='id-of-h1',
                    traits=frozenset({'HW_NUMA'}),
                    aggregates=frozenset({'id-of-b'}),
                    inventories={'VF': snapshot.Inventory(
                        total=2, reserved=1, ratio=2.0, max_unit=2,
                        used=2)}))), host)
        self.assertEqual((snapshot.Aggregate(
            name='a', uuid='id-of-a', metadata={'availability_zone': 'west'},
            hosts=('h1',)), snapshot.Aggregate(
                name='b', uuid='id-of-b', metadata={'ssd': 'true'},
                hosts=('h1', 'h2'))), cloud.aggregates)
        self.assertEqual({'move': {'numa': {'VF': 1}}}, cloud.consumers)
        self.assertEqual(
            ({'HW_NUMA'}, {'MEMORY_MB', 'PCPU', 'VF'}),
            (cloud.traits, cloud.resource_classes))
        self.assertEqual(
            {'id-of-h1': {'PCPU': 4, 'MEMORY_MB': 2048}, 'numa': {'VF': 1}},
            cloud.servers[0].allocations)
        self.assertEqual((), cloud.missing)
        # Later ones have neither CPUs nor memory, and ask each nova-compute.
        (_query, version), _end = self.asked('hypervisors')
        self.assertEqual('compute 2.61', version)
        (query, version), = self.asked('services')
        self.assertEqual((['nova-compute'], 'compute 2.100'),
                         (query['binary'], version))

    def test_compute_nodes_of_one_service(self):
        """As Ironic has them; and one whose service is gone."""
        self.nova.hypervisors = [
            nova_api.hypervisor('h1', 'metal-2', cpu_info=None),
            nova_api.hypervisor('h1', 'metal-1'),
            nova_api.hypervisor('gone')]
        self.nova.max_limit = 1
        self.assertEqual(
            [('gone', 'gone', 'nova', False, False),
             ('h1', 'metal-1', 'nova', True, True),
             ('h1', 'metal-2', 'nova', True, True)],
            [(host.name, host.hypervisor, host.zone, host.enabled, host.up)
             for host in self.read('hosts').hosts])

    def test_silent_cell(self):
        """What Nova shows of a cell that does not answer."""
        self.nova.hypervisors.append(nova_api.hypervisor('h2'))
        self.nova.services.append({
            'binary': 'nova-compute', 'host': 'h2', 'status': 'UNKNOWN'})
        self.nova.servers.append({
            'id': 'id-of-lost', 'status': 'UNKNOWN', 'tenant_id': 'p',
            'created': '2026-01-02T03:04:05Z', 'links': []})
        cloud = self.read()
        self.assertEqual((
            snapshot.Missing(kind=snapshot.MissingKind.SILENT_HOSTS,
                             hosts=('h2',)),
            snapshot.Missing(kind=snapshot.MissingKind.SERVERS,
                             uuids=('id-of-lost',))), cloud.missing)
        self.assertEqual((['h1'], ['vm']), (
            [host.name for host in cloud.hosts],
            [server.name for server in cloud.servers]))

    def test_orphan(self):
        """A page that Nova left an orphaned compute node out of is short."""
        self.nova.hypervisors = [
            nova_api.hypervisor(f'h{number}') for number in range(3)]
        page, self.nova.max_limit = self.nova.page, 2

        def unlinked(resource, query):
            body = page(resource, query)
            body.pop('hypervisors_links', None)
            return body

        self.nova.page = unlinked
        self.assertEqual(['h0', 'h1', 'h2'], [
            host.name for host in self.read('hosts').hosts])

    def test_empty(self):
        self.nova.hypervisors = self.nova.services = self.nova.servers = []
        cloud = self.read()
        self.assertEqual(((), (), {}, ()), (
            cloud.hosts, cloud.servers, cloud.consumers, cloud.missing))


class ServersTest(APITestCase):

    def test_server(self):
        self.nova.servers = [nova_api.placed_server(
            'vm', self.flavor, 'h1', pinned_availability_zone='west',
            scheduler_hints={'group': ['id-of-g'], 'own': 'text'}, image={
                'id': 'i', 'properties': {
                    'hw_numa_nodes': '2', 'base_image_ref': 'i',
                    'owner_specified.openstack.md5': 'x'}}, **{
                'OS-EXT-STS:task_state': 'migrating'})]
        self.nova.server_groups = [
            nova_api.group('other'),
            nova_api.group('g', ['id-of-vm', 'id-of-a'],
                           max_server_per_host=2)]
        self.nova.max_limit = 1
        cloud = self.read()
        self.assertEqual((snapshot.Server(
            uuid='id-of-vm', name='vm', host='h1', project='p',
            task='migrating', created='2026-01-02T03:04:05Z',
            flavor=snapshot.Flavor(
                name='f', vcpus=4, memory=2048, disk=20,
                extra_specs={'hw:cpu_policy': 'dedicated'}),
            image={'hw_numa_nodes': '2'}, group='id-of-g', zone='west',
            hints={'group': ('id-of-g',), 'own': ('text',)},
            allocations={'id-of-h1': {'PCPU': 4, 'MEMORY_MB': 2048}}),),
            cloud.servers)
        self.assertEqual((
            snapshot.Group(uuid='id-of-other', name='other',
                           policy='anti-affinity'),
            snapshot.Group(uuid='id-of-g', name='g', policy='anti-affinity',
                           rules={'max_server_per_host': '2'},
                           members=('id-of-a', 'id-of-vm'))), cloud.groups)
        self.assertEqual(
            [['0'], ['1'], ['2']],
            [query['offset'] for query, _version in
             self.asked('server_groups')])

    def test_no_hints(self):
        """Up to Nova 29 only that of a group is known, by its members."""
        self.nova.server_groups = [nova_api.group('g', ['id-of-vm'])]
        self.nova.servers = [
            nova_api.placed_server(name, self.flavor, 'h1')
            for name in ('vm', 'other')]
        for server in self.nova.servers:
            del server['scheduler_hints']
        self.assertEqual(
            {'vm': {'group': ('id-of-g',)}, 'other': {}},
            {server.name: dict(server.hints)
             for server in self.read().servers})

    def test_refused_server(self):
        """It has no host, and a fault; others with one are no more faulty."""
        fault = {'code': 500, 'created': '', 'message': 'No valid host'}
        self.nova.servers = [
            nova_api.placed_server(
                'bad', self.flavor, None, fault=fault,
                scheduler_hints=None, **{'OS-EXT-STS:vm_state': 'error'}),
            nova_api.placed_server('good', self.flavor, 'h1', fault=fault)]
        self.assertEqual(
            [('bad', None, 'error', 'No valid host', {}),
             ('good', 'h1', 'active', None, {})],
            [(each.name, each.host, each.state, each.fault, each.allocations)
             for each in self.read().servers])

    def test_volume(self):
        self.nova.servers[0]['image'] = ''
        cloud = self.read()
        self.assertEqual({}, cloud.servers[0].image)
        self.assertEqual((), cloud.missing)

    def test_microversions(self):
        """What older ones do not show is named; no newer one is asked at."""
        hidden = ('availability zones asked for', 'image properties',
                  'scheduler hints')
        for newest, used, left in (
                ('2.109', '2.100', 3), ('2.99', '2.99', 2),
                ('2.96', '2.96', 1), ('2.95', '2.95', 0),
                ('2.60', '2.61', 0), (None, '2.61', 0)):
            self.nova.microversion = newest
            self.nova.requests.clear()
            self.assertEqual(() if left == 3 else (
                f'The compute API has microversion {used}, and does not show '
                f'of servers: {", ".join(hidden[left:])}',),
                tuple(map(str, self.read().missing)))
            self.assertEqual({f'compute {used}'}, {
                version for _query, version in self.asked('servers')})

    def test_odd_microversion(self):
        for odd in 'x', '2.x':
            self.nova.microversion = odd
            self.assertIn('the compute API cannot be read: ', self.refused())

    def test_old_groups(self):
        self.nova.microversion = '2.63'
        self.nova.server_groups = [
            {'id': 'g', 'name': 'g', 'policies': ['affinity'], 'metadata': {},
             'members': []}]
        self.assertEqual(['affinity'], [
            group.policy for group in self.read().groups])

    def test_without_hosts(self):
        """As the check of flavors reads them: hardly more is asked."""
        server, = self.read('servers').servers
        self.assertEqual((None, '', None), (
            server.host, server.created, server.allocations))
        self.assertEqual(
            [('services', 'compute 2.100'), ('servers', 'compute 2.61')],
            [(resource, version) for resource, _query, version in
             self.nova.requests])


class TopologyTest(APITestCase):
    """The NUMA topologies of the servers of a host."""

    def setUp(self):
        super().setUp()
        self.nova.hypervisors.append(nova_api.hypervisor('h2'))
        self.nova.services.append(nova_api.service('h2'))
        self.nova.servers = [
            nova_api.placed_server(name, self.flavor, host)
            for name, host in (('a', 'h1'), ('b', 'h1'), ('c', 'h2'))]
        self.placement.add('id-of-h2', PCPU=8)

    def read_host(self, name='h1', choose=None):
        with self.api.connect() as connection:
            return api.read(connection, ('hosts', 'servers'), choose=(
                choose or (lambda cloud: [
                    host for host in cloud.hosts if host.name == name])))

    def nodes(self, cloud):
        return {server.name: server.nodes for server in cloud.servers}

    def limits(self, cloud):
        """What is missing but for the NUMA nodes of the host."""
        *missing, last = cloud.missing
        self.assertEqual(snapshot.Missing(
            kind=snapshot.MissingKind.HOST_RESOURCES, uuids=('id-of-h1',)),
            last)
        return missing

    def test_topology(self):
        self.nova.topologies['id-of-a'] = nova_api.topology(
            nova_api.numa_node(1, {0: 8, 1: 9}, [2]),
            nova_api.numa_node(0, {}, [3], 512), page_size=2048)
        cloud = self.read_host()
        self.assertEqual({'b': None, 'a': (
            snapshot.GuestNode(
                host_node=1, shared=frozenset([2]), page_size=2048,
                dedicated=frozenset([0, 1]), pins={0: 8, 1: 9}, memory=1024),
            snapshot.GuestNode(
                host_node=0, shared=frozenset([3]), page_size=2048,
                memory=512))}, self.nodes(cloud))
        self.assertEqual([], self.limits(cloud))
        # Only this host is asked about, at the microversion of topologies.
        self.assertEqual(['h1', 'h2'], [host.name for host in cloud.hosts])
        self.assertEqual(
            [({}, 'compute 2.78')] * 2, self.asked('topologies'))
        (query, _version), = self.asked('servers')
        self.assertEqual(['h1'], query['host'])
        self.assertEqual([], self.asked('server_groups'))

    def test_no_hosts(self):
        cloud = self.read_host('h3')
        self.assertEqual(((), (), 2), (
            cloud.servers, cloud.missing, len(cloud.hosts)))

    def test_no_placement(self):
        """Placement is not needed."""
        self.placement.stop()
        self.assertEqual(
            {'a': None, 'b': None}, self.nodes(self.read_host()))

    def test_ignored_filter(self):
        """Nova ignores the host that an account may not ask for."""
        page = self.nova.page
        self.nova.page = lambda resource, query: page(
            resource, {key: value for key, value in query.items()
                       if key != 'host'})
        self.assertEqual({'a', 'b'}, self.nodes(self.read_host()).keys())
        self.assertEqual(2, len(self.asked('topologies')))

    def test_compute_nodes_of_one_service(self):
        """Of Ironic's nodes that were not chosen nothing is asked."""
        self.nova.hypervisors.append(nova_api.hypervisor('h1', 'other'))
        self.placement.add('id-of-other', PCPU=8, allocations={
            'id-of-b': {'PCPU': 4}})
        cloud = self.read_host(choose=lambda cloud: [
            host for host in cloud.hosts if host.uuid == 'id-of-h1'])
        self.assertEqual({'a'}, self.nodes(cloud).keys())
        self.assertEqual(1, len(self.asked('topologies')))

    def test_hidden(self):
        """What an account may not see, and servers that are gone."""
        node = nova_api.numa_node(0, {0: 1})
        del node['host_node'], node['cpu_pinning']
        for answer, reason in (
                ((403, {}), '403 Forbidden; the account needs the rule '
                            'compute:server:topology:index'),
                ((404, {}), '404 Not Found; deleted meanwhile, perhaps'),
                (nova_api.topology(node),
                 'no host NUMA nodes; the account needs the rule '
                 'compute:server:topology:host:index')):
            self.nova.topologies = {'id-of-b': answer}
            cloud = self.read_host()
            missing, = self.limits(cloud)
            self.assertEqual(
                (snapshot.MissingKind.TOPOLOGIES, ('id-of-b',), reason),
                (missing.kind, missing.uuids, missing.text))
            self.assertEqual({'a': None, 'b': None}, self.nodes(cloud))
        self.nova.topologies['id-of-a'] = (403, {})
        self.nova.topologies['id-of-b'] = (403, {})
        self.assertEqual(
            ['NUMA topology of 2 servers not known, such as of id-of-a: 403 '
             'Forbidden; the account needs the rule '
             'compute:server:topology:index'],
            [str(each) for each in self.limits(self.read_host())])

    def test_old(self):
        """Before Train nothing is asked for; later fields do not matter."""
        self.nova.microversion = '2.77'
        missing, = self.limits(self.read_host())
        self.assertEqual(
            (snapshot.MissingKind.TOPOLOGIES, ('id-of-a', 'id-of-b'),
             'the compute API has microversion 2.77, and 2.78 is needed'),
            (missing.kind, missing.uuids, missing.text))
        self.assertEqual([], self.asked('topologies'))
        self.nova.microversion = '2.78'
        self.assertEqual([], self.limits(self.read_host()))

    def test_malformed(self):
        """The server is named and left out."""
        node = nova_api.numa_node(0, {0: 1})
        for answer in (
            [], {}, (200, b'{'), {'nodes': None, 'pagesize_kb': None},
            {'nodes': {}, 'pagesize_kb': None}, {'nodes': [node]},
            nova_api.topology(None),
            nova_api.topology({'host_node': 0}),
            nova_api.topology({**node, 'host_node': '0'}),
            nova_api.topology({**node, 'host_node': -1}),
            nova_api.topology({**node, 'memory_mb': None}),
            nova_api.topology({**node, 'memory_mb': 1 << 70}),
            nova_api.topology({**node, 'vcpu_set': None}),
            nova_api.topology({**node, 'vcpu_set': []}),
            nova_api.topology({**node, 'vcpu_set': [0, 'x']}),
            nova_api.topology({**node, 'vcpu_set': [0, 1.5]}),
            nova_api.topology({**node, 'vcpu_set': [0, [1]]}),
            nova_api.topology({**node, 'vcpu_set': [0, 1 << 40]}),
            nova_api.topology({**node, 'cpu_pinning': None}),
            nova_api.topology({**node, 'cpu_pinning': {'x': 1}}),
            nova_api.topology({**node, 'cpu_pinning': {'0': '1'}}),
            nova_api.topology({**node, 'cpu_pinning': {'0': -1}}),
            nova_api.topology(node, page_size='2M'),
        ):
            self.nova.topologies['id-of-b'] = answer
            cloud = self.read_host()
            missing, = self.limits(cloud)
            self.assertEqual(
                (snapshot.MissingKind.SERVER, ('id-of-b',)),
                (missing.kind, missing.uuids))
            self.assertThat(str(missing), matchers.StartsWith(
                'Server id-of-b is left out, its record is malformed: '))
            self.assertEqual({'a': None}, self.nodes(cloud))

    def test_failed(self):
        self.nova.topologies['id-of-b'] = (500, {})
        self.assertEqual(
            'the compute API cannot be read: GET /servers/id-of-b/topology: '
            '500 Internal Server Error',
            str(self.assertRaises(api.APIError, self.read_host)))

    def test_path(self):
        """No ID leads elsewhere."""
        self.nova.servers[0]['id'] = '../os-services?x=y'
        self.read_host()
        self.assertEqual(2, len(self.asked('topologies')))


class RefusedTest(APITestCase):

    def test_nova(self):
        for resource, path in (
                ('hypervisors', '/os-hypervisors/detail'),
                ('services', '/os-services'),
                ('aggregates', '/os-aggregates'),
                ('server_groups', '/os-server-groups'),
                ('servers', '/servers/detail')):
            for status, said in (
                    (403, 'role that may list all ' + resource.replace(
                        '_', ' ')),
                    (406, ' is needed'), (500, 'Internal Server Error')):
                self.nova.answers = {resource: (status, {})}
                line = self.refused()
                self.assertIn(f'GET {path}: {status} ', line)
                self.assertIn(said, line)

    def test_nothing_of_hosts(self):
        """As Nova shows servers to who is no administrator."""
        del self.nova.servers[0]['OS-EXT-SRV-ATTR:host']
        self.assertEqual(
            'the compute API shows this account no hosts of servers; it '
            'needs the role admin', self.refused())

    def test_placement(self):
        for path, answer, said in (
                ('resource_providers', (403, {}), 'such as admin'),
                ('resource_providers', (406, {}), '406'),
                ('resource_providers', (200, b'<html>'), 'is not JSON'),
                ('resource_providers', (200, []), 'is malformed'),
                ('traits', (503, {}), '503'),
                ('resource_providers/id-of-h1/inventories', (403, {}),
                 'such as admin')):
            self.placement.answers = {path: answer}
            line = self.refused()
            self.assertTrue(line.startswith(
                'the Placement API cannot be read: '), line)
            self.assertIn(said, line)
        self.placement.stop()
        self.assertIn('the Placement API cannot be read: ', self.refused())

    def test_no_placement(self):
        self.api.placement = None
        line = self.refused()
        self.assertIn('the Placement API cannot be read: ', line)
        self.assertIn('placement', line)

    def test_one_host(self):
        """One that Placement fails for is named, and the rest is there."""
        self.nova.hypervisors.append(nova_api.hypervisor('h2'))
        self.nova.services.append(nova_api.service('h2'))
        self.nova.servers.append(
            nova_api.placed_server('other', self.flavor, 'h2'))
        self.placement.add('id-of-h2', VCPU=8, allocations={
            'id-of-other': {'VCPU': 1}})
        for answer in (500, {}), (200, {'inventories': {}}), (200, b'<'):
            self.placement.answers = {
                'resource_providers/id-of-h1/inventories': answer}
            cloud = self.read()
            missing, = cloud.missing
            self.assertEqual(
                (snapshot.MissingKind.PROVIDERS, ('id-of-h1',)),
                (missing.kind, missing.uuids))
            self.assertIn('GET /resource_providers/id-of-h1/inv',
                          missing.text)
            self.assertEqual(
                [None, {'id-of-h2': {'VCPU': 1}}],
                [server.allocations for server in sorted(
                    cloud.servers, key=lambda server: server.host)])
            self.assertEqual([0, 1], [
                len(host.providers) for host in cloud.hosts])

    def test_malformed(self):
        """Whatever is no answer of Nova is one error."""
        server, node = self.nova.servers[0], self.nova.hypervisors[0]
        for resource, rows in (
            ('hypervisors', None), ('hypervisors', [None]),
            ('hypervisors', [{**node, 'id': ['x']}]),
            ('hypervisors', [{**node, 'id': 7}]),
            ('hypervisors', [{**node, 'service': None}]),
            ('hypervisors', [{**node, 'service': {'host': ['h']}}]),
            ('hypervisors', [{**node, 'vcpus': 'many'}]),
            ('hypervisors', [{**node, 'vcpus': 1 << 40}]),
            ('hypervisors', [{**node, 'memory_mb': -1}]),
            ('hypervisors', [node, node]),
            ('hypervisors', [{key: value for key, value in node.items()
                              if key != 'vcpus'}]),
            ('services', {}), ('services', [{'state': 'up'}]),
            ('services', [{'host': 'h1', 'status': 'enabled'}]),
            ('services', [nova_api.service(['h1'])]),
            ('services', [nova_api.service('h1', zone=7)]),
            ('services', [{'host': 'h'}, {'host': 7}]),
            ('aggregates', [{}]),
            ('aggregates', [nova_api.aggregate('x', 'a')]),
            ('aggregates', [nova_api.aggregate(1, 'a', [['h1']])]),
            ('aggregates', [nova_api.aggregate(1, 'a', ssd=7)]),
            ('server_groups', [{'id': 'g', 'name': 'g', 'members': []}]),
            ('server_groups', [nova_api.group('g', [['x']])]),
            ('server_groups', [{**nova_api.group('g'), 'policy': 7}]),
            ('servers', [{**server, 'OS-EXT-SRV-ATTR:host': 7}]),
            ('servers', [{**server, 'OS-EXT-STS:vm_state': ['x']}]),
            ('servers', [{**server, 'created': None}]),
            ('servers', [{**server, 'scheduler_hints': ['x']}]),
            ('servers', [{**server, 'image': 'id'}]),
            ('servers', [{**server, 'flavor': 'f'}]),
            ('servers', [{**server, 'pinned_availability_zone': {}}]),
            ('servers', [server, server]),
        ):
            self.nova.answers = {resource: (200, {resource: rows})}
            line = self.refused()
            self.assertIn('API cannot be read: malformed ', line)

    def test_endless_groups(self):
        """A proxy that knows no offset."""
        self.nova.answers['server_groups'] = (
            200, {'server_groups': [nova_api.group('g')]})
        self.assertEqual(1, len(self.read().groups))
