# SPDX-License-Identifier: Apache-2.0

"""Limits of vSwitch ports and security-group rules."""

import collections

from nova.tests.functional.libvirt import base as libvirt_base
from oslo_utils.fixture import uuidsentinel as uuids

from nfv_sched.ledger import neutron
from nfv_sched.nova import scheduler
from nfv_sched.tests.functional import base
from nfv_sched.tests.functional import network


class PortLimitTest(network.NetworkCloudTestCase):
    """A host has 6 ports for guests."""

    def test_up_to_the_limit(self):
        """Boots in a row, without a round of publication in between."""
        self.start_host('host1')
        self.publish()
        del self.neutron_api.requests[:]
        for nics in (2, 1, 3):
            self.guest(nics)
        self.assertEqual(
            [], self.neutron_api.asked('ports'), 'only groups are needed')
        full = 'vSwitch ports: 1 needed, 0 of 10 free (1 host)'
        self.refused(full)
        with self.row('the same after a round'):
            self.publish()
            self.assertEqual((6, 6 * network.DEFAULT_RULES),
                             self.on_host('host1'))
            self.refused(full)
        with self.row('servers that take no port'):
            self.boot(self.small)
        with self.row('one is gone'):
            self.delete_all(self.booted[1:2])
            self.refused('vSwitch ports: 2 needed, 1 of 10 free', nics=2)
            self.guest()
            self.refused(full)

    def test_several_hosts(self):
        """The one with room is found; the best is named if there is none."""
        for host in ('host1', 'host2', 'host3'):
            self.start_host(host)
        self.bind('host1', 5)
        self.bind('host2', 4, owner='network:router_interface')
        self.bind('host3', 6)
        self.publish()
        self.assertEqual('host2', self.host(self.guest(2)))
        self.refused('vSwitch ports: 2 needed, best host: 1 of 10 free '
                     '(3 hosts)', nics=2)
        self.assertEqual('host1', self.host(self.guest()))
        with self.row('limits of servers'):
            self.flags(vnics_per_guest=2, group='nfv_sched')
            self.refused('vNICs of a server: 3 needed, best host: at most 2 '
                         'allowed (3 hosts)', nics=3)
        with self.row('DHCP servers and routers'):
            self.flags(network_services_per_node=5,
                       vswitch_ports_per_node=0, group='nfv_sched')
            self.publish()
            self.refused('DHCP servers and routers: capacity beside them '
                         'needed, 6 on the host', host='host3')
            self.guest(host='host1')
        with self.row('limits of aggregates'):
            for host, limit in (('host1', '10'), ('host2', '0')):
                self.set_metadata(host, vswitch_ports_per_node=limit,
                                  vnics_per_guest='7')
            self.publish()
            self.refused('vSwitch ports: 2 needed, 0 of 10 free', nics=2,
                         host='host1')
            self.guest(nics=7, host='host2')

    def test_multi_create(self):
        """Guests of one request count among each other; all or nothing."""
        self.start_two()
        self.bind('host1', 6)
        self.publish()
        with self.row('more than fit'):
            before = self.usages()
            for server in self.guests(4, nics=2, minimum=1, expect='ERROR'):
                self.assertRefused(server)
            self.assertEqual(before, self.usages())
        with self.row('all that fit'):
            servers = self.guests(3, nics=2)
            self.assertEqual({'host2'}, set(map(self.host, servers)))
            self.refused('vSwitch ports: 1 needed, best host: 0 of 10 free')
        self.neutron_api.ports.clear()
        self.publish()
        with self.row('two hosts'):
            servers = self.guests(6, nics=2)
            self.assertEqual(
                {'host1': 3, 'host2': 3},
                collections.Counter(map(self.host, servers)))
            self.refused()


class RuleLimitTest(network.NetworkCloudTestCase):
    """A host takes 20 rules; the default group has 4 of them."""

    limits = {'security_rules_per_node': 20, 'security_rules_per_port': 12}
    hosts = ('host1',)

    def test_rules(self):
        ten = self.security_group(10)
        with self.row('rules of a port'):
            self.refused('security-group rules of a port: 13 needed, '
                         'at most 12 allowed',
                         security_groups=[self.security_group(13)])
            self.refused('security-group rules of a port: 14 needed',
                         security_groups=[ten, {'name': 'default'}])
        with self.row('up to the limit'):
            self.guest(nics=2)
            self.guest(security_groups=[ten])
            self.refused('security-group rules: 4 needed, 2 of 20 free')
            self.guest(security_groups=[self.security_group(2)])
            self.publish()
            self.assertEqual((4, 20), self.on_host('host1'))
            self.refused('security-group rules: 4 needed, 0 of 20 free')
            self.guest(security_groups=[self.security_group(0)])
        with self.row('a port that exists'):
            self.assertEqual((0, 0), self.on_host('host1'))
            port = self.neutron.create_port({'port': {
                'network_id': base.TUNNELED,
                'security_groups': [ten['name']],
                'binding:vnic_type': 'normal'}})['port']['id']
            self.boot(self.small, networks=[{'port': port}])
            self.guest(nics=2)
            self.refused('security-group rules: 4 needed, 2 of 20 free')


class GroupsTest(network.NetworkCloudTestCase):
    """A host takes 24 rules."""

    limits = {'vswitch_ports_per_node': 0, 'security_rules_per_node': 24,
              'security_rules_per_port': 21}
    hosts = ('host1',)

    OPEN = {**libvirt_base.LibvirtNeutronFixture.network_3,
            'id': uuids.open_network, 'port_security_enabled': False}

    def test_no_answer(self):
        """Then a port has as many rules as a port may have."""
        self.neutron_api.faults['security-group-rules'] = (
            lambda handler, query, body: handler.reply({}, 503))
        group = self.security_group(2)
        self.guest(security_groups=[group])
        self.refused('security-group rules: 21 needed, 3 of 24 free',
                     security_groups=[group])
        self.assertIn('cannot be asked for the ports and security groups',
                      self.log.output)

    def test_network_without_port_security(self):
        self.guest(security_groups=[self.security_group(20)])
        self.guest()
        self.refused('security-group rules: 4 needed, 0 of 24 free')
        self.neutron._networks[uuids.open_network] = self.OPEN
        self.boot(self.small, networks=[uuids.open_network])


class SRIOVTest(base.PCI, network.NetworkCloudTestCase):
    """Ports beside the switch."""

    extra_filters = ['PciPassthroughFilter',
                     *network.NetworkCloudTestCase.extra_filters]
    limits = {'vswitch_ports_per_node': 5, 'security_rules_per_node': 4,
              'sriov_vfs_per_guest': 2, 'pci_nics_per_guest': 1}

    def test_ports_and_devices(self):
        self.start_host('host1', devices={
            'port_vfs': [0] * 4, 'vfs': [0] * 4, 'nics': [0, 0],
            'pfs': [0, 0]})
        self.publish()
        self.guest()
        with self.row('the switch is full'):
            self.refused('vSwitch ports: 1 needed, 0 of 5 free')
        with self.row('ports beside it'):
            server = self.boot(
                self.small, networks=[self.port(), self.port()])
            self.assertEqual([0, 0], self.device_nodes(server))
            self.assertEqual((1, 4), self.on_host('host1'))
            self.assertEqual(
                2, neutron.read_snapshot().host('host1').sriov_ports)
        with self.row('one of each'):
            self.assertRefused(
                self.boot(self.small, expect='ERROR',
                          networks=[self.port(), {'uuid': base.TUNNELED}]),
                'vSwitch ports: 1 needed, 0 of 5 free')
        with self.row('virtual functions of a server'):
            self.assertRefused(
                self.boot(self.small, expect='ERROR',
                          networks=[self.port() for _ in range(3)]),
                'VFs of a server: 3 needed, at most 2 allowed')
            self.assertRefused(
                self.boot(self.flavor_with(
                    {'pci_passthrough:alias': 'vf:2'}, vcpus=1),
                    networks=[self.port()], expect='ERROR'),
                'VFs of a server: 3 needed, at most 2 allowed')
        with self.row('NICs of a server'):
            self.assertRefused(
                self.boot(self.flavor_with(
                    {'pci_passthrough:alias': 'pf:2'}, vcpus=1),
                    expect='ERROR'),
                'PFs of a server: 2 needed, at most 1 allowed')


class MovesTest(network.NetworkCloudTestCase):
    """A guest with two ports moves, where there is room for them."""

    hosts = ('host1', 'host2')

    def setUp(self):
        super().setUp()
        self.larger = self.flavor_with({}, vcpus=2, memory_mb=128)

    def start_guest(self):
        self.server = self.guest(nics=2, host='host1')
        self.fill('host2', 5)

    def fill(self, host, ports):
        self.filling = self.bind(host, ports)
        self.publish()

    def make_room(self):
        self.unbind(self.filling[:1])
        self.publish()

    def assertFull(self, move, *args):
        self.assertMoveRefused(move, self.server, *args)
        self.assertIn('vSwitch ports: 2 needed, 1 of 10 free (1 host)',
                      self.log.output)

    def test_migrations(self):
        self.start_guest()
        self.assertFull(self.cold_migrate)
        self.assertFull(self.live_migrate)
        self.assertFull(self.resize, self.larger)
        self.make_room()
        self.cold_migrate(self.server)
        self.assertEqual('host2', self.host(self.server))
        # It holds its ports on both hosts until somebody decides.
        self.refused(host='host2')
        self._revert_resize(self.server)
        self.assertEqual((2, 8), self.on_host('host1'))
        self.resize(self.server, self.larger)
        self._revert_resize(self.server)
        self.live_migrate(self.server)
        self.assertEqual('host2', self.host(self.server))
        self.refused('vSwitch ports: 1 needed, 0 of 10 free', host='host2')
        self.guest(nics=6, host='host1')

    def test_ports_of_others(self):
        """Anybody can say that a port is a server's."""
        self.start_guest()
        for host, owner, project in (
            ('', '', uuids.other), ('', 'compute:nova', uuids.other),
            ('', 'compute:nova', self.neutron.tenant_id),
            ('elsewhere', 'compute:nova', uuids.other),
        ):
            self.bind(host, 10, owner=owner, device=self.server['id'],
                      project=project)
        self.make_room()
        uuid = self.server['id']
        self.assertEqual('host1', scheduler.host_of_server(uuid))
        self.assertEqual('', scheduler.host_of_server(uuids.other))
        self.assertFalse(scheduler.may_be_live_migration(uuid))
        self.assertTrue(scheduler.may_be_live_migration(uuids.other))
        self.assertTrue(scheduler.has_connected_servers([uuid]))
        self.assertFalse(scheduler.has_connected_servers([uuids.other]))
        self.assertEqual(set(), scheduler.deleted_servers([uuid]))
        self.cold_migrate(self.server)
        self.assertEqual('host2', self.host(self.server))
        self._revert_resize(self.server)
        self.live_migrate(self.server)
        self.assertEqual('host2', self.host(self.server))
        self.refused('vSwitch ports: 1 needed, 0 of 10 free', host='host2')

    def test_evacuation(self):
        self.start_guest()
        other = self.guest(nics=2, host='host1')
        self.fail_host('host1')
        self.assertFull(self.evacuate)
        self.make_room()
        self.evacuate(other)
        self.assertEqual('host2', self.host(other))
        self.refused('vSwitch ports: 1 needed, 0 of 10 free', host='host2')

    def test_unshelve(self):
        self.start_guest()
        self._shelve_server(self.server)
        self.assertEqual((0, 0), self.on_host('host1'))
        self.bind('host1', 5)
        self.publish()
        self.api.post_server_action(self.server['id'], {'unshelve': None})
        self.assertEqual('SHELVED_OFFLOADED',
                         self.show(self.server)['status'])
        self.assertIn('vSwitch ports: 2 needed, best host: 1 of 10 free '
                      '(2 hosts)', self.log.output)
        self.make_room()
        self._unshelve_server(self.server)
        self.assertEqual('host2', self.host(self.server))


class OutageTest(network.NetworkCloudTestCase):
    """A service is not there."""

    hosts = ('host1',)

    def test_neutron(self):
        """What is published still counts."""
        self.guest(nics=4)
        self.neutron_api.stop()
        self.guest()
        self.refused('vSwitch ports: 2 needed, 1 of 10 free', nics=2)
        self.boot(self.small)
        self.neutron_api.start()
        self.guest()
        self.refused('vSwitch ports: 1 needed, 0 of 10 free')

    def test_not_published(self):
        """Such hosts take any server."""
        self.guest(nics=6)
        self.start_host('host2')
        self.assertEqual('host2', self.host(self.guest(nics=7)))
        self.publish()
        self.refused('vSwitch ports: 1 needed, best host: 0 of 10 free '
                     '(2 hosts)')
