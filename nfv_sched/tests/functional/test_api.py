# SPDX-License-Identifier: Apache-2.0
"""What the APIs of Nova and Placement say, against Nova's databases."""

import dataclasses
from unittest import mock

from keystoneauth1 import noauth
from keystoneauth1 import session as ks_session
from nova import test
from nova.tests import fixtures as nova_fixtures
from openstack import connection as sdk_connection
from oslo_utils.fixture import uuidsentinel as uuids

from nfv_sched.ledger import neutron
from nfv_sched.ops.answers.hosts import document
from nfv_sched.ops.answers.hosts import view as host_view
from nfv_sched.ops.cloud import api
from nfv_sched.ops.cloud import database
from nfv_sched.ops.cloud import snapshot
from nfv_sched.tests import functional
from nfv_sched.tests.functional import base
from nfv_sched.tests.functional import test_snapshot

# What only Nova's databases, its configuration and Neutron have.
_HIDDEN_HOST = snapshot.Host(name='', hypervisor='', uuid='')
_HIDDEN_SERVER = {'cell': '', 'moved': '', 'nodes': None, 'devices': (),
                  'pci_requests': None, 'ports': None}
_HIDDEN_IMAGE = ('kernel_id', 'min_disk', 'min_ram', 'ramdisk_id')
# Nova 29 shows neither image properties nor scheduler hints of servers.
_HIDDEN_FIELDS = [] if functional.NOVA > 29 else [
    snapshot.MissingKind.SERVER_FIELDS]


def connect(client, **kwargs):
    """A connection with the account of a client of Nova's tests."""
    return sdk_connection.Connection(session=ks_session.Session(
        auth=noauth.NoAuth(endpoint=client.base_url),
        additional_headers={
            'X-Auth-User': client.auth_user,
            'X-User-Id': client.auth_user,
            'X-Auth-Project-Id': client.project_id,
            'X-Roles': ','.join(client.roles)}), **kwargs)


class APITest(base.NFVCloudTestCase):

    def test_same(self):
        self.start_host()
        flavor = self.flavor(nfv__vswitch_numa_affinity='strict')
        self.flavor_with({})
        server = self.boot(flavor)
        self.boot(flavor)
        self.admin_api.post_server_action(server['id'], {'lock': None})
        # There is no Neutron that could be read here.
        with mock.patch.object(neutron, 'Reader',
                               side_effect=neutron.NeutronError('none')):
            wanted = database.read(base.CONF)
        found = api.read(
            connect(self.admin_api), ('flavors', 'servers'))
        self.assertEqual(wanted.flavors, found.flavors)
        self.assertEqual(
            *({each.uuid: (each.name, each.locked, each.flavor.name,
                           dict(each.flavor.extra_specs))
               for each in cloud.servers} for cloud in (wanted, found)))
        self.assertEqual({server['id']: True}, {
            each.uuid: True for each in found.servers if each.locked})
        self.assertEqual(2, len(found.servers))

    def test_tenant(self):
        """Who may not list the servers of others is told so."""
        flavor = self.flavor_with({'hw:numa_nodes': '1'})
        connection = connect(self.api)
        self.assertIn(
            {'hw:numa_nodes': '1'},
            [dict(each.extra_specs) for each in api.read(
                connection, ('flavors',)).flavors if each.id == flavor])
        error = self.assertRaises(
            api.APIError, api.read, connection, ('servers',))
        self.assertIn('403 Forbidden; the account needs a role', str(error))


class HostsTest(test_snapshot.SnapshotTestCase):

    def read_api(self, client=None, parts=('hosts', 'flavors', 'servers')):
        """Read the cloud by the API."""
        return api.read(connect(
            client or self.admin_api,
            placement_endpoint_override=self.placement_api.url), parts)

    def shown(self, host):
        """As much of a host as the API shows."""
        return dataclasses.replace(host, **{
            name: getattr(_HIDDEN_HOST, name) for name in (
                'cell', 'supported', 'stats', 'nodes', 'devices',
                'network')})

    def shown_server(self, server):
        """As much of a server as the API shows."""
        # Up to Nova 32 lists have no faults of servers in other cells.
        return dataclasses.replace(
            server, **_HIDDEN_SERVER,
            hints=({'group': (server.group,)} if server.group else {})
            if _HIDDEN_FIELDS else server.hints,
            fault=server.fault if functional.NOVA > 32 else None,
            flavor=dataclasses.replace(
                server.flavor, id='', public=True, disabled=False),
            image=self.shown_image(server))

    def shown_image(self, server):
        """Image properties that the API shows; in Nova 31 it shows more."""
        if _HIDDEN_FIELDS:
            return {}
        return {name: value for name, value in server.image.items()
                if name not in _HIDDEN_IMAGE}

    def test_same(self):
        """All that both show is the same."""
        _pinned, _shared, refused, _group = self.boot_all()
        self.publish()
        self.allocate(uuids.move, 'host1', ports=1)
        service, = self.admin_api.get_services(
            host='host2', binary='nova-compute')
        self.admin_api.put_service(service['id'], {
            'status': 'disabled', 'disabled_reason': 'rewired'})
        self.admin_api.put_service_force_down(service['id'], True)
        wanted, found = self.read(), self.read_api()
        self.assertEqual(('the API', {}, None, _HIDDEN_FIELDS), (
            found.source, found.options, found.moves,
            [missing.kind for missing in found.missing]))
        self.assertEqual(list(map(self.shown, wanted.hosts)),
                         list(found.hosts))
        self.assertEqual(
            [(True, True, None), (False, False, 'rewired')],
            [(host.enabled, host.up, host.disabled_reason)
             for host in found.hosts])
        self.assertTrue(all(len(host.providers) > 1 for host in found.hosts))
        self.assertEqual(wanted.aggregates, found.aggregates)
        self.assertEqual(wanted.groups, found.groups)
        self.assertEqual(wanted.flavors, found.flavors)
        self.assertEqual(wanted.consumers, found.consumers)
        self.assertIn(uuids.move, found.consumers)
        self.assertEqual(
            list(map(self.shown_server, wanted.servers)),
            [dataclasses.replace(server, image=self.shown_image(server))
             for server in found.servers])
        self.assertEqual({True, False}, {
            bool(server.allocations) for server in found.servers})
        self.assertEqual(
            [refused['fault']['message']] if functional.NOVA > 32 else [],
            [server.fault for server in found.servers if server.fault])

    def test_hosts_alone(self):
        """What has no servers says nothing of who else holds anything."""
        server = self.boot(self.flavor())
        wanted, found = self.read(), self.read_api(parts=('hosts',))
        self.assertEqual(list(map(self.shown, wanted.hosts)),
                         list(found.hosts))
        self.assertEqual(((), (), None), (
            found.servers, found.groups, found.consumers))
        # As for the check of flavors, which needs no hosts.
        mine, = self.read_api(parts=('servers',)).servers
        self.assertEqual((server['id'], None, '', None), (
            mine.uuid, mine.host, mine.created, mine.allocations))

    def read_with_topologies(self, progress=lambda *_args: None):
        """Read all hosts, with the NUMA topologies of servers."""
        return api.read(connect(
            self.admin_api,
            placement_endpoint_override=self.placement_api.url),
            ('hosts', 'servers'), progress, lambda cloud: cloud.hosts)

    def numa_nodes(self, cloud):
        """The NUMA nodes of servers, as ``host show`` prints them."""
        return {
            (view.title, server.server): server.numa_nodes
            for view in host_view.views(cloud)
            for server in document.shown(view).servers}

    def test_topologies(self):
        """Servers are on the same nodes and CPUs by both."""
        self.boot_all()
        self.boot(self.flavor_with({
            'hw:cpu_policy': 'mixed', 'hw:cpu_dedicated_mask': '1',
            'hw:numa_nodes': '1'}))
        self.boot(self.flavor_with({}))
        wanted, found = self.read(), self.read_with_topologies()
        self.assertEqual({
            server.uuid: server.nodes and tuple([dataclasses.replace(
                node, cpu_policy=None, thread_policy=None,
                reserved=frozenset()) for node in server.nodes])
            for server in wanted.servers if server.host is not None},
            {server.uuid: server.nodes for server in found.servers})
        self.assertEqual([snapshot.MissingKind.HOST_RESOURCES], [
            each.kind for each in found.missing])
        numa_nodes = self.numa_nodes(found)
        self.assertEqual(self.numa_nodes(wanted), numa_nodes)
        parts = [part for nodes in numa_nodes.values() for part in nodes]
        self.assertEqual(
            [(0, 2), (0, 2), (1, 1), (2, 0)], sorted(
                (len(part.pins), part.shared_vcpus) for part in parts))
        self.assertIn(1024 * 1024, [part.page_size_kib for part in parts])
        self.assertIn((), numa_nodes.values())

    def test_hidden_topologies(self):
        """What Nova answers without its rules for topologies."""
        server = self.boot(self.flavor())
        for rule, reason in (
                ('host:index', 'no host NUMA nodes; '),
                ('index', '403 Forbidden; ')):
            rule = f'compute:server:topology:{rule}'
            self.policy.set_rules({rule: '!'}, overwrite=False)
            missing, _resources = self.read_with_topologies().missing
            self.assertEqual(
                (snapshot.MissingKind.TOPOLOGIES, (server['id'],),
                 f'{reason}the account needs the rule {rule}'),
                (missing.kind, missing.uuids, missing.text))

    def test_deleted_meanwhile(self):
        server = self.boot(self.flavor())

        def delete(what, finished, total):
            if (what, finished, total) == ('NUMA topologies', 0, 1):
                self._delete_server(server)

        missing, _resources = self.read_with_topologies(delete).missing
        self.assertEqual(
            (snapshot.MissingKind.TOPOLOGIES, (server['id'],),
             '404 Not Found; deleted meanwhile, perhaps'),
            (missing.kind, missing.uuids, missing.text))

    def test_not_all_of_placement(self):
        """As a database reader has it: one host fails, or all do."""
        self.boot(self.flavor())
        self.placement_api.fault = lambda method, path: (
            500 if self.compute_rp_uuids['host1'] + '/inventories' in path
            else None)
        wanted, found = self.read(), self.read_api()
        missing, = (missing for missing in found.missing
                    if missing.kind not in _HIDDEN_FIELDS)
        self.assertEqual(wanted.missing, (missing,))
        self.assertEqual(
            (snapshot.MissingKind.PROVIDERS,
             (self.compute_rp_uuids['host1'],)),
            (missing.kind, missing.uuids))
        self.assertEqual([False, True],
                         [bool(host.providers) for host in found.hosts])
        self.assertEqual(
            list(map(self.shown_server, wanted.servers)),
            [dataclasses.replace(server, image=self.shown_image(server))
             for server in found.servers])
        for status, said in ((403, 'the account needs a role that may list '
                              'resource providers, such as admin'),
                             (503, 'GET /resource_providers: 503')):
            self.placement_api.fault = lambda method, path: (
                status if path == '/resource_providers' else None)
            self.assertIn(said, self.refused())
        self.placement_api.stop()
        self.refused()

    def test_silent_cell(self):
        """Nova gives no hypervisors then; the error says which cell it is."""
        with nova_fixtures.DownCellFixture(
                [self.cell_mappings[test.CELL1_NAME]]):
            self.assertIn('cells do not answer, of 2 hosts, such as that '
                          'of host1', self.refused())
            # It gives the servers of others, and does not say so.
            found = self.read_api(parts=('servers',))
        self.assertEqual((snapshot.Missing(
            kind=snapshot.MissingKind.SILENT_HOSTS,
            hosts=('host1', 'host2')),), found.missing)

    def refused(self, client=None):
        """The line that nothing can be read with."""
        line, = str(self.assertRaises(
            api.APIError, self.read_api, client)).splitlines()
        self.assertIn(' API cannot be read: ', line)
        return line

    def test_tenant(self):
        self.assertIn('403 Forbidden; the account needs a role that may list '
                      'all aggregates', self.refused(self.api))
