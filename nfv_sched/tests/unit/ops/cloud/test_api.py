# SPDX-License-Identifier: Apache-2.0
"""Flavors, servers and agents by the API, as servers answer."""

import openstack

from nfv_sched.base import http_limits
from nfv_sched.ledger import neutron
from nfv_sched.ops.cloud import api
from nfv_sched.tests import base
from nfv_sched.tests.unit.limits import neutron_api
from nfv_sched.tests.unit.ops.cloud import nova_api


class ReadTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.cloud = nova_api.start(self)
        self.nova = self.cloud.nova

    def connection(self, **fields):
        found = self.cloud.connect(**fields)
        self.addCleanup(found.close)
        return found

    def read(self, *parts, **fields):
        return api.read(self.connection(**fields), parts)

    def refused(self, *parts, **fields):
        return str(self.assertRaises(
            api.APIError, self.read, *parts, **fields))

    def test_flavors(self):
        large = nova_api.flavor('large', 8, 4096, hw__numa_nodes='2')
        large.update({
            'swap': 512, 'OS-FLV-EXT-DATA:ephemeral': 10, 'disk': 30,
            'OS-FLV-DISABLED:disabled': True,
            'os-flavor-access:is_public': False})
        self.nova.flavors = [nova_api.flavor('small', 2), large]
        found, small = self.read('flavors').flavors
        self.assertEqual(
            ('large', 'id-of-large', 8, 4096, 30, 10, 512, False, True,
             {'hw:numa_nodes': '2'}),
            (found.name, found.id, found.vcpus, found.memory, found.disk,
             found.ephemeral, found.swap, found.public, found.disabled,
             dict(found.extra_specs)))
        self.assertEqual(
            ('small', 0, 0, True, False, {}),
            (small.name, small.ephemeral, small.swap, small.public,
             small.disabled, dict(small.extra_specs)))

    def test_servers(self):
        """With the flavors that they were booted with."""
        flavor = nova_api.flavor('f', 8, 4096, hw__numa_nodes='2')
        server = nova_api.server('b', flavor)
        server['flavor'].update(ephemeral=10, swap=512)
        self.nova.servers = [server, {
            **nova_api.server('a', flavor), 'name': None}]
        nameless, found = self.read('servers').servers
        self.assertEqual(
            ('id-of-b', 'b', 'p', 'f', 8, 4096, 20, 10, 512,
             {'hw:numa_nodes': '2'}),
            (found.uuid, found.name, found.project, found.flavor.name,
             found.flavor.vcpus, found.flavor.memory, found.flavor.disk,
             found.flavor.ephemeral, found.flavor.swap,
             dict(found.flavor.extra_specs)))
        self.assertEqual(('id-of-a', ''), (nameless.uuid, nameless.name))
        # Hardly more is asked.
        self.assertEqual(
            [('services', 'compute 2.69'), ('servers', 'compute 2.61')],
            [(resource, version) for resource, _query, version in
             self.nova.requests])

    def test_microversions(self):
        """No newer one than Nova has is asked for; hidden ones are errors."""
        for newest in '2.68', '2.61', None:
            self.nova.microversion = newest
            self.nova.requests.clear()
            self.assertEqual((), self.read('servers').missing)
            self.assertEqual(
                f'compute {newest or "2.61"}', self.nova.requests[0][2])
        for odd in 'x', '2.x':
            self.nova.microversion = odd
            self.assertIn('the compute API cannot be read: ',
                          self.refused('servers'))

    def test_refused(self):
        for resource, path in (('services', '/os-services'),
                               ('servers', '/servers/detail')):
            for status, said in (
                    (403, f'role that may list all {resource}'),
                    (406, ' is needed'), (500, 'Internal Server Error')):
                self.nova.answers = {resource: (status, {})}
                line = self.refused('servers')
                self.assertIn(f'GET {path}: {status} ', line)
                self.assertIn(said, line)

    def test_malformed_servers(self):
        server = nova_api.server('vm', nova_api.flavor('f'))
        for resource, rows in (
            ('services', {}), ('services', [{'host': 'h1'}]),
            ('services', [{'host': ['h1'], 'status': 'UNKNOWN'}]),
            ('services', [{'host': 'h', 'status': 'UNKNOWN'},
                          {'host': 7, 'status': 'UNKNOWN'}]),
            ('servers', [None]), ('servers', [{**server, 'flavor': 'f'}]),
            ('servers', [server, server]),
        ):
            self.nova.answers = {resource: (200, {resource: rows})}
            self.assertIn('API cannot be read: malformed ',
                          self.refused('servers'))

    def test_pages(self):
        names = ['e', 'd', 'c', 'b', 'a']
        self.nova.flavors = [nova_api.flavor(name) for name in names]
        self.nova.max_limit = 2
        self.assertEqual(sorted(names), [
            flavor.name for flavor in self.read('flavors').flavors])
        self.assertEqual(
            [(None, '1000'), (['id-of-d'], '1000'), (['id-of-b'], '1000')],
            [(query.get('marker'), *query['limit'])
             for _resource, query, _version in self.nova.requests])

    def test_links_to_nothing_new(self):
        """A server that always says there is more is not asked for ever."""
        flavor = nova_api.flavor('f')
        for links, requests in (([{'rel': 'next', 'href': 'x'}], 2),
                                ([{'rel': 'previous', 'href': 'x'}], 1)):
            self.nova.requests.clear()
            self.nova.answers['flavors'] = (200, {
                'flavors': [flavor], 'flavors_links': links})
            self.assertEqual(['f'], [
                found.name for found in self.read('flavors').flavors])
            self.assertEqual(requests, len(self.nova.requests))

    def test_timeout(self):
        """One that waits for ever would wait for ever."""
        for timeout in (None, 5):
            connection = self.connection(api_timeout=timeout)
            api.read(connection, ('flavors',), lambda *_: self.assertEqual(
                timeout or http_limits.ANSWER_SECONDS,
                connection.session.timeout))

    def test_malformed(self):
        for flavor in ({**nova_api.flavor('f'), 'extra_specs': []},
                       {**nova_api.flavor('f'), 'vcpus': None}, 'f'):
            self.nova.answers['flavors'] = (200, {'flavors': [flavor]})
            self.assertIn('malformed flavors', self.refused('flavors'))
        for body in b'<html>', [], {'flavors': [{'id': 'x'}]}:
            self.nova.answers['flavors'] = (200, body)
            self.assertIn('malformed flavors', self.refused('flavors'))
        flavor = nova_api.flavor('f')
        del flavor['extra_specs']
        self.nova.answers['flavors'] = (200, {'flavors': [flavor]})
        self.assertIn('no extra specs', self.refused('flavors'))

    def test_malformed_names(self):
        """As nothing can be sorted by them, or looked for."""
        good = nova_api.flavor('f')
        for name in (None, 5):
            self.nova.answers['flavors'] = (200, {'flavors': [
                good, {**good, 'id': 'other', 'name': name}]})
            self.assertIn('malformed flavors', self.refused('flavors'))
        for field, value in (('name', 5), ('tenant_id', ['p'])):
            self.nova.answers['servers'] = (200, {'servers': [{
                **nova_api.server('vm', good), field: value}]})
            self.assertIn('malformed answer', self.refused('servers'))

    def test_malformed_agents(self):
        router = neutron_api.router()
        agent = neutron_api.agent('L3 agent', 'h1')
        switch = neutron_api.agent('Open vSwitch agent', 'h1')
        for agents, hints, said in (
                ([agent, agent], [], 'malformed agents: one is there twice'),
                ([agent], 5, 'malformed availability_zone_hints'),
                ([agent], 'west', 'malformed availability_zone_hints'),
                ([agent, {**switch, 'configurations': {
                    'bridge_mappings': 5}}], [], 'malformed mappings')):
            self.cloud.agents = agents
            self.cloud.served = {agent['id']: [
                {**router, 'availability_zone_hints': hints}]}
            told = self.refused('network_agents')
            self.assertIn('the network API cannot be read: ', told)
            self.assertIn(said, told)

    def test_connection_stays(self):
        """It belongs to the one who made it."""
        connection = self.connection()
        neutron.Reader(network=connection.network).close()
        self.assertEqual((), api.read(connection, ('flavors',)).flavors)

    def test_no_such_service(self):
        self.cloud.services = ('network',)
        self.assertIn('the compute API cannot be read: ',
                      self.refused('flavors'))
        self.cloud.services = ('compute',)
        self.assertIn('the network API cannot be read: ',
                      self.refused('network_agents'))

    def test_no_certificates(self):
        """What the libraries raise before they have sent anything."""
        path = '/does/not/exist'
        for part, name in (('flavors', 'compute'),
                           ('network_agents', 'network')):
            connection = openstack.connect(
                load_yaml_config=False, load_envvars=False, cacert=path,
                auth={'auth_url': 'https://127.0.0.1:9/v3', 'username': 'x',
                      'password': 'x', 'project_name': 'x',
                      'user_domain_id': 'x', 'project_domain_id': 'x'})
            self.addCleanup(connection.close)
            error = str(self.assertRaises(
                api.APIError, api.read, connection, (part,)))
            self.assertIn(f'the {name} API cannot be read: ', error)
            self.assertIn(path, error)
