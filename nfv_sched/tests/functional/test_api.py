#    Licensed under the Apache License, Version 2.0 (the "License"); you may
#    not use this file except in compliance with the License. You may obtain
#    a copy of the License at
#
#         http://www.apache.org/licenses/LICENSE-2.0
#
#    Unless required by applicable law or agreed to in writing, software
#    distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
#    WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
#    License for the specific language governing permissions and limitations
#    under the License.
"""Flavors and servers by Nova's own API, against those of its databases."""

from unittest import mock

from keystoneauth1 import noauth
from keystoneauth1 import session as ks_session
from openstack import connection as sdk_connection

from nfv_sched.cloud import api
from nfv_sched.cloud import read
from nfv_sched.network import neutron
from nfv_sched.tests.functional import base


class APITest(base.NFVCloudTestCase):

    def connection(self, client):
        """One with the account of a client of Nova's tests."""
        return sdk_connection.Connection(session=ks_session.Session(
            auth=noauth.NoAuth(endpoint=client.base_url),
            additional_headers={
                'X-Auth-User': client.auth_user,
                'X-User-Id': client.auth_user,
                'X-Auth-Project-Id': client.project_id,
                'X-Roles': ','.join(client.roles)}))

    def test_same(self):
        self.start_host()
        flavor = self.flavor(nfv__vswitch_numa_affinity='strict')
        self.flavor_with({})
        self.boot(flavor)
        # There is no Neutron that could be read here.
        with mock.patch.object(neutron, 'Reader',
                               side_effect=neutron.NeutronError('none')):
            wanted = read.read(base.CONF)
        found = api.read(
            self.connection(self.admin_api), ('flavors', 'servers'))
        self.assertEqual(wanted.flavors, found.flavors)
        self.assertEqual(
            [(server.uuid, server.name, server.flavor.name,
              dict(server.flavor.extra_specs)) for server in wanted.servers],
            [(server.uuid, server.name, server.flavor.name,
              dict(server.flavor.extra_specs)) for server in found.servers])
        self.assertEqual(1, len(found.servers))

    def test_tenant(self):
        """Who may not list the servers of others is told so."""
        flavor = self.flavor_with({'hw:numa_nodes': '1'})
        connection = self.connection(self.api)
        self.assertIn(
            {'hw:numa_nodes': '1'},
            [dict(each.extra_specs) for each in api.read(
                connection, ('flavors',)).flavors if each.id == flavor])
        error = self.assertRaises(
            api.APIError, api.read, connection, ('servers',))
        self.assertIn('403 Forbidden; the account needs a role', str(error))
