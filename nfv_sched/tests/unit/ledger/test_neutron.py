# SPDX-License-Identifier: Apache-2.0
"""What is read from Neutron, and what an unsound answer leads to."""

import contextlib
import logging
import time

import fixtures

from nfv_sched.base import connection_errors
from nfv_sched.ledger import neutron
from nfv_sched.tests.unit.limits import base
from nfv_sched.tests.unit.limits import neutron_api


class ReadTest(base.NeutronTestCase):
    def test_agents(self):
        """ML2/OVS: agents say how much they serve, ports what they plug."""
        self.api.rules = [neutron_api.rule('sg', 'egress'),
                          neutron_api.rule('sg'), neutron_api.rule('other')]
        self.api.ports = [
            neutron_api.port(host='h1', device='vm1', groups=['sg'],
                             project='p'),
            neutron_api.port(host='h1', device='vm1', groups=['sg', 'other'],
                             project='p'),
            neutron_api.port(host='h1', device='vm2', vnic_type='direct',
                             project='p'),
            neutron_api.port('network:dhcp', host='h1'),
            neutron_api.port('network:router_interface', 'r', host='h2')]
        self.api.agents = [
            neutron_api.agent('Open vSwitch agent', 'h1', devices=5),
            neutron_api.agent('DHCP agent', 'h1', networks=3, subnets=4),
            neutron_api.agent('L3 agent', 'h2', routers=6)]
        snapshot = neutron.read_snapshot()
        host1, host2 = snapshot.host('h1'), snapshot.host('h2')
        self.assertEqual(
            (2, 1, 0, 1, 3), (host1.guest_ports, host1.dhcp_ports,
                              host1.router_ports, host1.sriov_ports,
                              host1.vswitch_ports))
        self.assertEqual(5, host1.rules)
        self.assertEqual((3, 0), (host1.dhcp_servers, host1.routers))
        self.assertEqual((1, 6), (host2.router_ports, host2.routers))
        self.assertTrue(snapshot.dhcp_known)
        self.assertEqual(3, len(snapshot.ports_of('vm1', 'p'))
                         + len(snapshot.ports_of('vm2', 'p')))

    def test_dead_agents(self):
        """What a dead agent said last does not count; its ports do."""
        self.api.ports = [neutron_api.port('network:dhcp', host='h1')]
        self.api.agents = [
            neutron_api.agent('DHCP agent', 'h1', alive=False, networks=30)]
        self.assertEqual(1, neutron.read_snapshot().host('h1').dhcp_servers)

    def test_gateway_ports(self):
        """ML2/OVN: gateway ports say where routers are."""
        self.api.ports = [
            neutron_api.port('network:router_gateway', 'r1', host='h1'),
            neutron_api.port('network:router_gateway', 'r2', host='h1'),
            neutron_api.port('network:router_gateway', 'r3', host='h2'),
            neutron_api.port('network:router_interface', 'r1'),
            neutron_api.port('network:distributed', 'ovnmeta-n')]
        self.api.agents = [
            neutron_api.agent('OVN Controller Gateway agent', 'h1'),
            neutron_api.agent('OVN Controller agent', 'h2')]
        snapshot = neutron.read_snapshot()
        self.assertEqual((2, 2, 0), (
            snapshot.host('h1').routers, snapshot.host('h1').router_ports,
            snapshot.host('h1').dhcp_servers))
        self.assertEqual(1, snapshot.host('h2').routers)
        self.assertFalse(snapshot.dhcp_known)
        self.assertEqual({'h1', 'h2'}, set(snapshot.hosts))

    def test_missing_extensions(self):
        """Without security groups there are no rules."""
        self.api.ports = [neutron_api.port(host='h1')]
        del self.api.ports[0]['security_groups']
        self.api.missing = {'security-group-rules', 'agents'}
        host = neutron.read_snapshot().host('h1')
        self.assertEqual((1, 0), (host.guest_ports, host.rules))

    def test_thousands(self):
        """Every port and rule is counted once, from pages of what counts."""
        self.flags(neutron_page_size=500)
        self.api.rules = [neutron_api.rule(f'sg{number % 20}')
                          for number in range(1000)]
        self.api.ports = [
            neutron_api.port(host=f'h{number % 7}', device=f'vm{number // 2}',
                             groups=[f'sg{number % 20}'])
            for number in range(3210)]
        snapshot = neutron.read_snapshot()
        self.assertEqual({port['id'] for port in self.api.ports},
                         set(snapshot.ports))
        self.assertEqual(3210, sum(
            host.guest_ports for host in snapshot.hosts.values()))
        self.assertEqual(3210 * 50, sum(
            host.rules for host in snapshot.hosts.values()))
        asked = self.api.asked('ports')
        self.assertEqual(7, len(asked))
        for query in asked:
            self.assertEqual(['500'], query['limit'])
            self.assertEqual(
                {'id', 'device_owner', 'device_id', 'binding:host_id',
                 'binding:vnic_type', 'security_groups', 'project_id'},
                set(query['fields']))
        # A full last page is followed by a look for more.
        self.assertEqual(3, len(self.api.asked('security-group-rules')))

    def test_hosts_of(self):
        """Few ports are asked for at a time, and no others."""
        self.api.ports = [neutron_api.port(host=f'h{number}' if number else '')
                          for number in range(130)]
        wanted = {port['id']: port['binding:host_id']
                  for port in self.api.ports[:120]}
        with contextlib.closing(neutron.Reader()) as reader:
            self.assertEqual(wanted, reader.hosts_of([*wanted, 'none']))
        self.assertEqual([50, 50, 21], [
            len(query['id']) for query in self.api.asked('ports')])

    def test_lower_limit_of_neutron(self):
        """Neutron decides how long a page is."""
        self.api.max_limit = 7
        self.api.ports = [neutron_api.port(host='h') for _ in range(30)]
        self.assertEqual(30, neutron.read_snapshot().host('h').guest_ports)
        self.assertEqual(5, len(self.api.asked('ports')))

    def test_neutron_without_pages(self):
        """An answer longer than what was asked for is the whole."""
        self.flags(neutron_page_size=10)
        self.api.ports = [neutron_api.port(host='h') for _ in range(30)]

        def everything(handler, query, body):
            handler.reply({'ports': self.api.ports})

        self.api.faults['ports'] = everything
        self.assertEqual(30, neutron.read_snapshot().host('h').guest_ports)

    def test_deleted_marker(self):
        """The last port of a page may be gone when the next is asked for.

        If it is not, the ports of the page before are not counted twice.
        """
        self.flags(neutron_page_size=10)
        for gone, times in ((True, 2), (False, 1)):
            self.api.ports = [neutron_api.port(host='h') for _ in range(35)]
            refused = []

            def refuse(handler, query, body):
                if 'marker' not in query or len(refused) == times:
                    return True
                refused.append(query['marker'][0])
                self.api.ports = [port for port in self.api.ports if not (
                    gone and port['id'] in refused)]
                handler.reply({}, 404)
                return False

            self.api.faults['ports'] = refuse
            snapshot = neutron.read_snapshot()
            self.assertEqual(times, len(set(refused)))
            self.assertEqual(35, snapshot.host('h').guest_ports)

    def test_keystone(self):
        """Credentials, region and interface are those of nova.conf."""
        self.api.ports = [neutron_api.port(host='h')]
        self.configure_keystone(
            region_name='RegionOne', valid_interfaces='internal')
        self.assertEqual(1, neutron.read_snapshot().host('h').guest_ports)

    def test_wrong_password(self):
        """It is an error like any other, and stays secret."""
        self.configure_keystone(password='wrong-password')
        error = self.error()
        self.assertIn('401', error)
        self.assertNotIn('wrong-password', error + self.log.output)

    def test_password_in_url(self):
        """It is masked, whatever is wrong with the URL."""
        log = self.useFixture(fixtures.FakeLogger(level=logging.DEBUG))
        for url in ('https://nova:s3cret@127.0.0.1:1/',
                    'http://nova:s3/cret@127.0.0.1:1/v2.0',
                    'http://nova:s3#cret@127.0.0.1:1/',
                    'http://nova:s3cret@127.0.0.1:port/',
                    'http://nova:s3cret@[::1/'):
            for options in (
                dict(auth_type='none', endpoint_override=url),
                dict(auth_type='password', auth_url=url, username='nova',
                     password='s3', project_name='service',
                     user_domain_id='default', project_domain_id='default'),
            ):
                self.configure(**options)
                error = self.assertRaises(
                    neutron.NeutronError, neutron.read_snapshot)
                # Tracebacks have all of these.
                for each in connection_errors.causes(error):
                    self.assertNotIn('nova:s3cret@', str(each))
                self.assertNotIn('s3', self.log.output + log.output)
                if 'auth_url' in options:
                    self._forget_plugin('password')

    def test_no_credentials(self):
        self.configure()
        self.error()


def _status(code):
    def fault(handler, query, body):
        handler.reply({'NeutronError': 'out of order'}, code)
    return fault


def _body(data):
    def fault(handler, query, body):
        handler.reply(data)
    return fault


def _items(change):
    """A sound body but for its last item."""
    def fault(handler, query, body):
        key = next(key for key in body if not key.endswith('_links'))
        body[key].append(change(dict(body[key][-1])))
        handler.reply(body)
    return fault


def _closed(handler, query, body):
    handler.close_connection = True


def _empty_but_more(handler, query, body):
    handler.reply({f'{key}{suffix}': value
                   for key in ('ports', 'agents', 'security_group_rules')
                   for suffix, value in (
                       ('', []), ('_links', [{'rel': 'next', 'href': 'x'}]))})


class UnsoundTest(base.NeutronTestCase):
    """Any answer that is not complete and well-formed fails the reading."""

    FAULTS = {
        '401': _status(401),
        '403': _status(403),
        '500': _status(500),
        '503': _status(503),
        'no JSON': _body(b'<html>Bad gateway</html>'),
        'nothing': _body(b''),
        'no object': _body([]),
        'other keys': _body({'networks': []}),
        'no list': _body({'ports': {}, 'agents': {},
                          'security_group_rules': {}}),
        'item is null': _items(lambda item: None),
        'item without ID': _items(lambda item: item.pop('id') and item),
        'odd links': lambda handler, query, body: handler.reply(
            body | {f'{key}_links': 7 for key in (
                'ports', 'agents', 'security_group_rules')}),
        'closed': _closed,
        'empty page with more': _empty_but_more,
    }

    def setUp(self):
        super().setUp()
        self.api.ports = [neutron_api.port(host='h', groups=['sg'])]
        self.api.rules = [neutron_api.rule('sg')]
        self.api.agents = [neutron_api.agent('DHCP agent', 'h', networks=1)]

    def assert_unsound(self, resource, name, fault):
        reader = neutron.Reader()
        self.addCleanup(reader.close)
        self.api.faults = {}
        self.assertEqual(1, reader.read().host('h').rules)
        self.api.faults = {resource: fault}
        with self.subTest(resource, name=name):
            self.assertRaises(neutron.NeutronError, reader.read)

    def test_every_resource(self):
        for name, fault in self.FAULTS.items():
            for resource in ('ports', 'security-group-rules', 'agents'):
                self.assert_unsound(resource, name, fault)

    def test_later_page(self):
        """A fault in the middle counts as much as one at the start."""
        self.flags(neutron_page_size=2)
        for name, fault in self.FAULTS.items():
            extra = [neutron_api.port(host='i') for _ in range(4)]

            def later(handler, query, body, fault=fault):
                return 'marker' not in query or fault(handler, query, body)

            self.api.ports += extra
            self.assert_unsound('ports', name, later)
            self.api.ports = self.api.ports[:1]

    def test_later_page_not_found(self):
        """That there are no rules is not said in the middle of them."""
        self.flags(neutron_page_size=2)
        self.api.rules = [neutron_api.rule('other') for _ in range(5)]
        self.api.rules.append(neutron_api.rule('sg'))
        self.assert_unsound(
            'security-group-rules', 'no further page',
            lambda handler, query, body: 'marker' not in query
            or handler.reply({}, 404))

    def test_fields(self):
        for resource, field, value in (
            ('ports', 'binding:host_id', 7),
            ('ports', 'device_id', {}),
            ('ports', 'device_owner', []),
            ('ports', 'binding:vnic_type', 1),
            ('ports', 'security_groups', 'sg'),
            ('ports', 'security_groups', [None]),
            ('security-group-rules', 'security_group_id', 7),
            ('agents', 'agent_type', 7),
        ):
            self.assert_unsound(
                resource, f'{field}={value}',
                _items(lambda item: item | {'id': 'x', field: value}))
        for change in ({'host': None}, {'configurations': 'x'},
                       {'configurations': {'networks': 'many'}},
                       {'configurations': {'networks': -1}}):
            self.api.agents = [
                neutron_api.agent('DHCP agent', 'h', networks=1)]
            self.assert_unsound(
                'agents', change,
                lambda handler, query, body: handler.reply({
                    'agents': [self.api.agents[0] | change]}))

    def test_user_without_rights(self):
        """Ports without their host would be an empty cloud."""
        for port in self.api.ports:
            del port['binding:host_id']
        self.assertIn('role admin or service', self.error())

    def test_groups_are_hidden(self):
        """To the role service Neutron shows ports, but not their groups."""
        text = 'Limits of security-group rules are not kept: '
        self.api.ports = [neutron_api.port(host='h1', groups=['empty'])]
        with contextlib.closing(neutron.Reader()) as reader:
            reader.read()
            self.assertNotIn(text, self.log.output)
            self.api.hides_groups = True
            for _ in range(2):
                self.assertEqual(1, reader.read().host('h1').guest_ports)
            self.assertEqual(1, self.log.output.count(text))

    def test_probe(self):
        self.api.ports = [
            neutron_api.port('network:dhcp', host='h1'),
            neutron_api.port(host='h1', groups=['sg'])]
        with contextlib.closing(neutron.Reader()) as reader:
            shown, hidden = reader.probe()
            self.assertIn('where ports are bound', shown)
            self.assertEqual('', hidden)
            self.api.hides_groups = True
            self.assertIn('needs the role admin', reader.probe()[1])
            self.api.ports = []
            shown, hidden = reader.probe()
            self.assertIn('no ports yet', shown)
            self.assertEqual('', hidden)

    def test_groups_hidden_behind_others(self):
        """The user's own groups are shown; that says nothing of others."""
        own, hidden = neutron_api.group('service', 'own'), 'hidden'
        self.api.groups = [own]
        self.api.ports = [
            neutron_api.port(host='h1', groups=[own['id']]),
            neutron_api.port(host='h1', groups=[hidden])]
        self.assertFalse(neutron.read_snapshot().hides_groups)
        self.api.faults['security-groups'] = (
            lambda handler, query, body: handler.reply({
                'security_groups': [own]}))
        self.assertTrue(neutron.read_snapshot().hides_groups)
        self.assertIn('Limits of security-group rules are not kept',
                      self.log.output)

    def test_group_that_is_deleted_meanwhile(self):
        """With its port, between the two lists: it was not hidden."""
        self.api.ports = [neutron_api.port(host='h1', groups=['g'])]

        def delete(handler, query, body):
            self.api.ports = []
            handler.reply({'security_groups': []})

        self.api.faults['security-groups'] = delete
        self.assertFalse(neutron.read_snapshot().hides_groups)

    def test_endless_list(self):
        """Pages that are always followed by another one."""
        self.useFixture(fixtures.MonkeyPatch(
            'nfv_sched.ledger.neutron.PAGES', 20))
        self.flags(neutron_page_size=1)
        self.api.faults['ports'] = (
            lambda handler, query, body: handler.reply({
                'ports': [neutron_api.port(host='h')]}))
        self.assertIn('ports: more than 20 pages', self.error())
        self.assertEqual(20, len(self.api.asked('ports')))

    def test_endless_reading(self):
        """Each answer is in time, but they do not come to an end."""
        self.flags(neutron_page_size=1, max_snapshot_age=1.0)

        def slow(handler, query, body):
            time.sleep(0.2)
            handler.reply({'ports': [neutron_api.port(host='h')]})

        self.api.faults['ports'] = slow
        begin = time.monotonic()
        self.assertRaises(neutron.NeutronError, neutron.read_snapshot)
        self.assertLess(time.monotonic() - begin, 3)

    def test_wrong_address(self):
        """No ports at all at this URL: not an empty cloud."""
        self.api.missing = {'ports'}
        self.assertIn('404', self.error())

    def test_marker_without_effect(self):
        """The same page again and again does not go on for ever."""
        self.flags(neutron_page_size=2)
        self.api.ports = [neutron_api.port(host='h') for _ in range(2)]

        def same(handler, query, body):
            handler.reply({'ports': self.api.ports})

        self.api.faults['ports'] = same
        self.assertIn('same page', self.error())

    def test_refused(self):
        self.api.stop()
        self.error()

    def test_silent(self):
        """No answer within the timeout, whatever other services get."""
        self.configure(auth_type='none', endpoint_override=self.api.url,
                       timeout=60)
        self.flags(neutron_request_timeout=0.3)
        self.api.faults['ports'] = lambda *args: time.sleep(3)
        begin = time.monotonic()
        self.assertRaises(neutron.NeutronError, neutron.read_snapshot)
        self.assertLess(time.monotonic() - begin, 2.5)
