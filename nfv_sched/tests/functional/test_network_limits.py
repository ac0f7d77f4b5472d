# SPDX-License-Identifier: Apache-2.0

"""Limits of vSwitch ports and security-group rules, without the ledger."""

import collections
import time

import fixtures
from nova.tests.functional.libvirt import base as libvirt_base
from oslo_utils.fixture import uuidsentinel as uuids

from nfv_sched.ledger import neutron
from nfv_sched.nova import scheduler
from nfv_sched.scheduler import figures
from nfv_sched.tests.functional import base
from nfv_sched.tests.functional import network


class PortLimitTest(network.NetworkCloudTestCase):
    """A host has 6 ports for guests."""

    def test_up_to_the_limit(self):
        """Boots in a row, faster than Neutron is read."""
        self.start_host('host1')
        for nics in (2, 1, 3):
            self.guest(nics)
        self.assertEqual(
            1, len(self.neutron_api.asked('ports')), 'read in between')
        full = 'vSwitch ports: 1 needed, 0 of 10 free (1 host)'
        self.refused(full)
        with self.row('the same by what Neutron shows'):
            self.forget()
            self.assertEqual((6, 6 * network.DEFAULT_RULES),
                             self.on_host('host1'))
            self.refused(full)
        with self.row('servers that take no port'):
            self.boot(self.small)
        with self.row('one is gone'):
            self.delete_all(self.booted[1:2])
            self.forget()
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
            self.refused('DHCP servers and routers: capacity beside them '
                         'needed, 6 on the host', host='host3')
            self.guest(host='host1')
        with self.row('limits of aggregates'):
            for host, limit in (('host1', '11'), ('host2', '0')):
                self.set_metadata(host, vswitch_ports_per_node=limit,
                                  vnics_per_guest='7')
            self.refused('vSwitch ports: 2 needed, 0 of 11 free', nics=2,
                         host='host1')
            self.guest(nics=7, host='host2')

    def test_multi_create(self):
        """Guests of one request count among each other; all or nothing."""
        for host in ('host1', 'host2'):
            self.start_host(host)
        self.bind('host1', 6)
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
        self.forget()
        with self.row('two hosts'):
            servers = self.guests(6, nics=2)
            self.assertEqual(
                {'host1': 3, 'host2': 3},
                collections.Counter(map(self.host, servers)))
            self.refused()


class DefaultLimitsTest(network.NetworkCloudTestCase):
    """Limits as they are if no option is set."""

    limits = {}

    def test_254_ports_and_16384_rules(self):
        for host in ('host1', 'host2'):
            self.start_host(host)
        self.bind('host1', 100, owner='compute:nova')
        self.bind('host1', 100, owner='network:dhcp')
        self.bind('host1', 49, owner='network:router_interface')
        group = self.security_group(128)
        # 127 ports are 16256 rules.
        self.bind('host2', 127, groups=[group['name']])
        # With 4 physical ports, it is the 254th.
        self.guest(host='host1')
        self.guest(host='host2', security_groups=[group])
        ports = 'vSwitch ports: 1 needed, 0 of 254 free'
        rules = 'security-group rules: 4 needed, 0 of 16384 free'
        self.refused(ports, rules)
        self.forget()
        self.assertEqual(250, self.on_host('host1')[0])
        self.assertEqual((128, 16384), self.on_host('host2'))
        self.refused(ports, rules)


class RuleLimitTest(network.NetworkCloudTestCase):
    """A host takes 20 rules; the default group has 4 of them."""

    limits = {'security_rules_per_node': 20, 'security_rules_per_port': 12}

    def test_rules(self):
        self.start_host('host1')
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
            self.forget()
            self.assertEqual((4, 20), self.on_host('host1'))
            self.refused('security-group rules: 4 needed, 0 of 20 free')
            self.guest(security_groups=[self.security_group(0)])
        self.forget()
        with self.row('a port that exists'):
            self.assertEqual((0, 0), self.on_host('host1'))
            port = self.neutron.create_port({'port': {
                'network_id': base.TUNNELED,
                'security_groups': [ten['name']],
                'binding:vnic_type': 'normal'}})['port']['id']
            self.read_neutron()
            self.boot(self.small, networks=[{'port': port}])
            self.guest(nics=2)
            self.refused('security-group rules: 4 needed, 2 of 20 free')


class YoungGroupsTest(network.NetworkCloudTestCase):
    """A host takes 24 rules; groups and ports are new to the figures."""

    limits = {'vswitch_ports_per_node': 0, 'security_rules_per_node': 24,
              'security_rules_per_port': 21}

    OPEN = {**libvirt_base.LibvirtNeutronFixture.network_3,
            'id': uuids.open_network, 'port_security_enabled': False}

    def setUp(self):
        super().setUp()
        self.start_host('host1')
        # Figures of before what follows.
        self.read_neutron()

    def test_group_and_server(self):
        """What a stack does: create a group, then a server."""
        for number in range(4):
            group = self.security_group(20)
            if number:
                self.refused('security-group rules: 20 needed, 4 of 24 free',
                             security_groups=[group])
            else:
                self.guest(security_groups=[group])
        self.assertEqual(1, len(self.neutron_api.asked('ports')))
        self.forget()
        self.assertEqual((1, 20), self.on_host('host1'))
        self.refused('security-group rules: 20 needed, 4 of 24 free',
                     security_groups=[group])

    def test_port(self):
        group = self.security_group(20)
        ports = [self.neutron.create_port({'port': {
            'network_id': base.TUNNELED, 'security_groups': [group['name']],
            'binding:vnic_type': 'normal'}})['port']['id'] for _ in range(2)]
        self.boot(self.small, networks=[{'port': ports[0]}])
        server = self.boot(
            self.small, networks=[{'port': ports[1]}], expect='ERROR')
        self.assertRefused(
            server, 'security-group rules: 20 needed, 4 of 24 free')

    def test_no_answer(self):
        """Then a port has as many rules as a port may have."""
        self.neutron_api.faults['security-group-rules'] = (
            lambda handler, query, body: handler.reply({}, 503))
        group = self.security_group(2)
        self.guest(security_groups=[group])
        self.refused('security-group rules: 21 needed, 3 of 24 free',
                     security_groups=[group])
        self.assertIn('cannot be asked for ports and security groups',
                      self.log.output)
        # What is known needs no answer.
        self.refused('security-group rules: 4 needed, 3 of 24 free')

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

    def setUp(self):
        super().setUp()
        self.larger = self.flavor_with({}, vcpus=2, memory_mb=128)

    def start_guest(self):
        for host in ('host1', 'host2'):
            self.start_host(host)
        self.server = self.guest(nics=2, host='host1')
        self.fill('host2', 5)

    def fill(self, host, ports):
        self.filling = self.bind(host, ports)
        self.read_neutron()

    def make_room(self):
        """Just enough of it."""
        self.unbind(self.filling[:1])
        self.forget()

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
        # It holds its ports on both hosts until somebody decides, as far as
        # this process knows; Neutron has them on one.
        self.refused(host='host2')
        self._revert_resize(self.server)
        self.forget()
        self.assertEqual((2, 8), self.on_host('host1'))
        self.resize(self.server, self.larger)
        self._revert_resize(self.server)
        self.forget()
        self.live_migrate(self.server)
        self.assertEqual('host2', self.host(self.server))
        self.refused(host='host2')
        self.forget()
        self.refused('vSwitch ports: 1 needed, 0 of 10 free', host='host2')
        self.guest(nics=6, host='host1')

    def test_slow_cold_migration(self):
        """Ports that are bound at the end keep their room until then.

        Neutron is read while the disk is copied, when a new guest should long
        be there.
        """
        self.useFixture(fixtures.MonkeyPatch(
            'nfv_sched.limits.reservations.BUILD_SECONDS', 0.0))
        for host in ('host1', 'host2'):
            self.start_host(host)
        server = self.guest(nics=5, host='host1')
        self.forget()
        others = []

        def copy(*args, **kwargs):
            shown = self.read_neutron()
            self.assertEqual(0, shown.host('host2').vswitch_ports)
            for nics, expect in ((5, 'ERROR'), (1, 'ACTIVE')):
                others.append(self.show(self.guest(
                    nics, host='host2', expect=expect)))
            return '{}'

        with fixtures.MonkeyPatch(
                'nova.virt.libvirt.driver.LibvirtDriver.'
                'migrate_disk_and_power_off', copy):
            self.cold_migrate(server)
        self.assertEqual(['ERROR', 'ACTIVE'],
                         [other['status'] for other in others])
        self.assertEqual((6, 24), self.on_host('host2'))
        self.read_neutron()
        self.refused('vSwitch ports: 1 needed, 0 of 10 free', host='host2')
        self.assertEqual([], list(figures.process_sources().recent.hosts()))

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
        self.forget()
        self.live_migrate(self.server)
        self.assertEqual('host2', self.host(self.server))
        self.forget()
        self.refused('vSwitch ports: 1 needed, 0 of 10 free', host='host2')

    def test_resize_on_a_full_host(self):
        """It adds nothing, so it is not refused for that."""
        self.flags(allow_resize_to_same_host=True)
        self.flags(security_rules_per_node=24, group='nfv_sched')
        self.start_host('host1')
        servers = [self.guest(nics=3), self.guest(nics=3)]
        self.forget()
        self.resize(servers[0], self.larger)
        self._confirm_resize(servers[0])
        self.resize(servers[1], self.larger)
        self._revert_resize(servers[1])
        self.assertEqual((6, 24), self.on_host('host1'))
        self.refused('vSwitch ports: 1 needed, 0 of 10 free')

    def test_evacuation(self):
        self.start_guest()
        other = self.guest(nics=2, host='host1')
        self.fail_host('host1')
        self.assertFull(self.evacuate)
        self.make_room()
        self.evacuate(other)
        self.assertEqual('host2', self.host(other))
        self.forget()
        self.refused('vSwitch ports: 1 needed, 0 of 10 free', host='host2')

    def test_unshelve(self):
        self.start_guest()
        self._shelve_server(self.server)
        self.forget()
        self.assertEqual((0, 0), self.on_host('host1'))
        self.bind('host1', 5)
        self.read_neutron()
        self.api.post_server_action(self.server['id'], {'unshelve': None})
        self.assertEqual('SHELVED_OFFLOADED',
                         self.show(self.server)['status'])
        self.assertIn('vSwitch ports: 2 needed, best host: 1 of 10 free '
                      '(2 hosts)', self.log.output)
        self.make_room()
        self._unshelve_server(self.server)
        self.assertEqual('host2', self.host(self.server))


class OutageTest(network.NetworkCloudTestCase):
    """Neutron is not there."""

    def go_stale(self):
        self.neutron_api.stop()
        self.flags(max_snapshot_age=0.1, group='nfv_sched')

    def recover(self):
        self.neutron_api.start()
        self.flags(max_snapshot_age=9000.0, group='nfv_sched')
        self.forget()

    def test_too_little(self):
        """An empty answer does not make a host empty."""
        self.start_host('host1')
        self.guest(nics=6)
        self.forget()
        full = 'vSwitch ports: 1 needed, 0 of 10 free'
        self.refused(full)
        self.neutron_api.faults['ports'] = (
            lambda handler, query, body: handler.reply({'ports': []}))
        self.assertIsNone(
            figures.process_sources().figures.renew(time.monotonic(), 20.0))
        self.assertIn('not believed', self.log.output)
        figures.process_sources().recent.clear()
        self.refused(full)

    def test_deny_and_allow(self):
        self.flags(stale_snapshot_policy='deny', group='nfv_sched')
        self.start_host('host1')
        self.neutron_api.stop()
        self.refused('vSwitch ports: 1 needed, no figures from Neutron')
        self.boot(self.small)
        self.neutron_api.start()
        self.read_neutron()
        self.guest()
        self.go_stale()
        self.refused('vSwitch ports: 1 needed, the figures from Neutron are ')
        self.recover()
        self.guest(nics=4)
        self.refused('vSwitch ports: 2 needed, 1 of 10 free', nics=2)
        # Limits are not kept until Neutron is back.
        self.go_stale()
        self.flags(stale_snapshot_policy='allow', group='nfv_sched')
        self.guest(nics=2)
        self.recover()
        self.refused('vSwitch ports: 1 needed, 0 of 10 free')
