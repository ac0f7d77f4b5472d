# SPDX-License-Identifier: Apache-2.0
"""The filter of ports; what it has in common with others is elsewhere."""

import functools

import fixtures
from nova import objects

from nfv_sched.filters import vswitch_port_limit
from nfv_sched.tests.unit import clouds
from nfv_sched.tests.unit.filters import network

UUIDS = network.UUIDS


class TestVSwitchPortLimitFilter(network.NetworkTestCase):

    def setUp(self):
        super().setUp()
        self.ports = vswitch_port_limit.VSwitchPortLimitFilter()

    def test_guests_that_take_none(self):
        """They pass, however full a host is, unless devices are too many."""
        self.flags(sriov_vfs_per_guest=1, expose_reasons='none')
        self.neutron({'number': 8})
        for refused, request in (
                (False, {'ports': 0}), (True, {}),
                (True, {'ports': 0, 'devices': [clouds.pci_request(2)]}),
                (True, {'move': True})):
            self.assertEqual([] if refused else ['host1'], self.passing(
                [self.host()], self.spec(**request), self.ports), request)


class TestPorts(network.NetworkTestCase):
    def test_limit(self):
        """The last port is given, the one after it refused with figures."""
        self.neutron({'number': 5}, {'owner': 'network:dhcp'},
                     {'owner': 'network:router_interface'})
        self.assertEqual(['host1'], self.passing(
            [self.host()], self.spec(1)))
        self.assertEqual(
            'vSwitch ports: 2 needed, 1 of 10 free (1 host)',
            self.refused([self.host()], self.spec(2)))

    def test_default_limit(self):
        """254 ports by default, 4 of them physical."""
        self.config.reset()
        self.flags(expose_reasons='summary')
        self.neutron({'number': 249})
        self.assertEqual(['host1'], self.passing(
            [self.host()], self.spec(1)))
        self.assertEqual(
            'vSwitch ports: 2 needed, 1 of 254 free (1 host)',
            self.refused([self.host()], self.spec(2)))

    def test_default_reason(self):
        """The same words, however many ports and hosts there are.

        What is wrong with the request is said in full.
        """
        self.flags(expose_reasons='policy',
                   vnics_per_guest=3, network_services_per_node=5)
        spec = functools.partial(self.spec, 2)
        for ports in (7, 8, 20):
            for hosts in (1, 3):
                self.neutron(*(
                    {'number': ports, 'host': f'host{number}'}
                    for number in range(hosts)))
                self.assertEqual(
                    'vSwitch ports: 2 needed, no host has it',
                    self.refused([self.host(f'host{number}')
                                  for number in range(hosts)], spec()))
        self.neutron(dhcp={'host1': 6})
        self.assertEqual(
            'DHCP servers and routers: capacity beside them needed, no host '
            'has it', self.refused([self.host()], spec()))
        self.neutron({'number': 20, 'host': 'host2'}, dhcp={'host1': 6})
        self.assertEqual(
            'DHCP servers and routers: capacity beside them needed; vSwitch '
            'ports: 2 needed; no host has all of it',
            self.refused([self.host(), self.host('host2')], spec()))
        host = self.host('host3', metadata={'vnics_per_guest': '1'})
        self.assertEqual(
            'vNICs of a server: 2 needed, at most 1 allowed; vSwitch ports: 2 '
            'needed, no host has it',
            self.refused([host, self.host('host2')], spec()))
        self.assertEqual(
            'vNICs of a server: 4 needed, at most 3 allowed',
            self.refused([self.host()], self.spec(4)))

    def test_no_limit(self):
        """0 turns a limit off, by option and by aggregate."""
        self.neutron({'number': 500})
        self.assertEqual([], self.passing(
            [self.host()], self.spec(1), index=1))
        self.assertEqual(['host1'], self.passing(
            [self.host(metadata={'vswitch_ports_per_node': '0'})],
            self.spec(1)))
        self.flags(vswitch_ports_per_node=0)
        self.assertEqual(['host1'], self.passing(
            [self.host()], self.spec(1)))

    def test_aggregates(self):
        """The lowest of the aggregates counts; text does not."""
        self.neutron({'number': 3})
        host = self.host(metadata={'vswitch_ports_per_node': '6'})
        host.aggregates += [
            objects.Aggregate(id=2, metadata={'vswitch_ports_per_node': 'x'}),
            objects.Aggregate(id=3, metadata={
                'vswitch_ports_per_node': '7', 'vswitch_physical_ports': '3'}),
            objects.Aggregate(id=4, metadata={'vswitch_ports_per_node': '0',
                                              'vswitch_physical_ports': '1'})]
        self.assertEqual(
            'vSwitch ports: 1 needed, 0 of 6 free (1 host)',
            self.refused([host], self.spec(1)))
        self.assertIn('vswitch_ports_per_node=x', self.log.output)

    def test_per_guest(self):
        self.neutron()
        self.flags(vnics_per_guest=3, sriov_vfs_per_guest=2,
                   pci_nics_per_guest=1)
        host, vfs, pfs = self.host(), clouds.pci_request(3), (
            clouds.pci_request(2, dev_type='type-PF'))
        for kind, need, most, ports, devices in (
                ('vNICs', 4, 3, 4, []), ('VFs', 3, 2, 1, [vfs]),
                ('PFs', 2, 1, 0, [pfs])):
            self.assertEqual(
                f'{kind} of a server: {need} needed, at most {most} allowed '
                '(1 host)',
                self.refused([host], self.spec(ports, devices=devices)))
        self.assertEqual(['host1'], self.passing([host], self.spec(3)))
        self.assertEqual(['host1'], self.passing(
            [host], self.spec(4, move=True)))

    def test_services(self):
        self.flags(network_services_per_node=5)
        self.neutron(dhcp={'host1': 3, 'host2': 3},
                     routers={'host1': 3, 'host2': 2})
        self.assertEqual(['host2'], self.passing(
            [self.host(), self.host('host2')], self.spec()))
        self.assertEqual(
            'DHCP servers and routers: capacity beside them needed, 6 on the '
            'host, at most 5 allowed (1 host)',
            self.refused([self.host()], self.spec()))

    def test_services_and_a_guest_that_stays(self):
        """It adds no DHCP server, so it is not sent away for them."""
        self.flags(network_services_per_node=5)
        self.neutron({'instance': UUIDS[0]}, dhcp={'host1': 3},
                     routers={'host1': 3})
        self.assertEqual(['host1'], self.passing(
            [self.host()], self.spec(move=True)))
        self.assertEqual([], self.passing(
            [self.host()], self.spec(move=True, instance=UUIDS[1]), index=1))

    def test_full_host_with_ports_of_others(self):
        """What names a server is not its own where it is not, or not its."""
        for port, host in (({'project': 'q'}, 'host1'), ({}, 'host2')):
            self.useFixture(fixtures.MonkeyPatch(
                'nfv_sched.nova.scheduler.host_of_server',
                {UUIDS[0]: host}.get))
            self.neutron({'number': 4},
                         {'number': 4, 'instance': UUIDS[0], **port})
            self.assertEqual(
                'vSwitch ports: 4 needed, 0 of 10 free (1 host)',
                self.refused([self.host()], self.spec(4, move=True)))
