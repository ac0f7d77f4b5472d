# SPDX-License-Identifier: Apache-2.0
"""What Nova's API says, against Nova's databases."""

from unittest import mock

from keystoneauth1 import noauth
from keystoneauth1 import session as ks_session
from nova import test
from nova.tests import fixtures as nova_fixtures
from openstack import connection as sdk_connection

from nfv_sched.ledger import neutron
from nfv_sched.ops.cloud import api
from nfv_sched.ops.cloud import database
from nfv_sched.ops.cloud import snapshot
from nfv_sched.tests.functional import base


def connect(client):
    return sdk_connection.Connection(session=ks_session.Session(
        auth=noauth.NoAuth(endpoint=client.base_url),
        additional_headers={
            'X-Auth-User': client.auth_user,
            'X-User-Id': client.auth_user,
            'X-Auth-Project-Id': client.project_id,
            'X-Roles': ','.join(client.roles)}))


class APITest(base.NFVCloudTestCase):

    def test_same(self):
        self.start_host()
        flavor = self.flavor(nfv__vswitch_numa_affinity='strict')
        self.flavor_with({})
        self.boot(flavor)
        self.boot(flavor)
        # There is no Neutron that could be read here.
        with mock.patch.object(neutron, 'Reader',
                               side_effect=neutron.NeutronError('none')):
            wanted = database.read(base.CONF)
        found = api.read(
            connect(self.admin_api), ('flavors', 'servers'))
        self.assertEqual(wanted.flavors, found.flavors)
        self.assertEqual(
            *({each.uuid: (each.name, each.flavor.name,
                           dict(each.flavor.extra_specs))
               for each in cloud.servers} for cloud in (wanted, found)))
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

    def test_silent_cell(self):
        """Nova gives the servers of others, and does not say so."""
        self.start_two()
        with nova_fixtures.DownCellFixture(
                [self.cell_mappings[test.CELL1_NAME]]):
            found = api.read(connect(self.admin_api), ('servers',))
        self.assertEqual((snapshot.Missing(
            kind=snapshot.MissingKind.SILENT_HOSTS,
            hosts=('host1', 'host2')),), found.missing)
