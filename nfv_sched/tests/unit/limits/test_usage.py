# SPDX-License-Identifier: Apache-2.0
"""What is counted where, and that a snapshot stays as it is."""

from nfv_sched.limits import usage
from nfv_sched.tests import base


def build(*ports, rules=(), agent_types=(), dhcp=(), l3=(), previous=None):
    """A snapshot of (id, owner, device, host, vNIC type, groups) tuples."""
    builder = usage.SnapshotBuilder(previous)
    for group, count in rules:
        for _ in range(count):
            builder.add_rule(group)
    for agent_type in agent_types:
        builder.add_agent_type(agent_type)
    for host, networks in dhcp:
        builder.add_load(usage.DHCP_AGENT, host, networks)
    for host, routers in l3:
        builder.add_load(usage.L3_AGENT, host, routers)
    for port in ports:
        builder.add_port(*port)
    return builder.build()


class CountTest(base.TimedTestCase):
    """Each kind of port goes where the limits expect it."""

    def test_ports_beside_the_switch(self):
        """They take no port of the switch and no rule, but are known."""
        for vnic_type in ('direct', 'direct-physical', 'macvtap', 'vdpa',
                          'virtio-forwarder', 'remote-managed', 'baremetal',
                          'smart-nic', 'accelerator-direct',
                          'accelerator-direct-physical'):
            snapshot = build(
                ('p1', 'compute:nova', 'vm1', 'h1', vnic_type, ('a',), 'p'),
                rules=[('a', 7)])
            host = snapshot.host('h1')
            self.assertEqual((0, 1, 0), (
                host.vswitch_ports, host.sriov_ports, host.rules), vnic_type)
            self.assertEqual(
                ['p1'], [port.id for port in snapshot.ports_of('vm1', 'p')])

    def test_unknown_vnic_type(self):
        snapshot = build(('p', 'compute:nova', 'vm', 'h', 'quantum', ()))
        self.assertEqual(1, snapshot.host('h').guest_ports)

    def test_dhcp_and_routers_of_ports(self):
        """Without agents the ports say how many there are."""
        snapshot = build(
            ('d1', 'network:dhcp', 'dhcp-1', 'h1', 'normal', ()),
            ('d2', 'network:dhcp', 'dhcp-2', 'h1', 'normal', ()),
            ('r1', 'network:router_interface', 'r', 'h1', 'normal', ()),
            ('r2', 'network:router_gateway', 'r', 'h1', 'normal', ()),
            ('r3', 'network:router_ha_interface', 's', 'h1', 'normal', ()),
            ('f1', 'network:floatingip_agent_gateway', 'agent', 'h1',
             'normal', ()))
        host = snapshot.host('h1')
        self.assertEqual((2, 4, 6), (
            host.dhcp_ports, host.router_ports, host.vswitch_ports))
        self.assertEqual((2, 2), (host.dhcp_servers, host.routers))
        self.assertEqual({}, dict(snapshot.ports))

    def test_other_ports(self):
        """Whatever else is bound to a host takes a port there."""
        snapshot = build(
            ('p1', 'trunk:subport', 'trunk', 'h1', 'normal', ('a',)),
            ('p2', '', '', 'h1', 'normal', ()),
            ('p3', 'compute:nova', '', 'h1', 'normal', ()),
            ('p4', 'network:local_ip', 'x', 'h1', 'normal', ()),
            rules=[('a', 4)])
        host = snapshot.host('h1')
        self.assertEqual((4, 4, 4), (
            host.other_ports, host.vswitch_ports, host.rules))

    def test_unbound_ports(self):
        """They are on no host, but a request can name them."""
        snapshot = build(
            ('p1', '', '', '', 'direct', ('a',)),
            ('p2', 'compute:nova', 'shelved', '', 'normal', ()),
            ('p3', 'network:router_interface', 'r', '', 'normal', ()))
        self.assertEqual({}, dict(snapshot.hosts))
        self.assertEqual('direct', snapshot.ports['p1'].vnic_type)
        self.assertEqual([], snapshot.ports_of('shelved', ''))

    def test_unknown_names(self):
        """Hosts, groups and servers that Neutron does not know are empty."""
        snapshot = build(rules=[('a', 2)])
        self.assertEqual(usage.HostUsage('h9'), snapshot.host('h9'))
        self.assertEqual(2, snapshot.rules_of(['a', 'gone']))
        self.assertEqual([], snapshot.ports_of('vm9', 'p'))

    def test_dhcp_known(self):
        for agent_types, owner, known in (
                (('Open vSwitch agent', 'DHCP agent'), '', True),
                (('OVN Controller agent', 'OVN Metadata agent'), '', False),
                # A user that sees no agents still sees ports.
                ((), 'network:dhcp', True), ((), 'network:distributed', False),
        ):
            self.assertEqual(known, build(
                ('p', owner, 'd', 'h1', 'normal', ()),
                agent_types=agent_types).dhcp_known, (agent_types, owner))

    def test_ports_of_a_server(self):
        """Those that are bound for it and its project's."""
        snapshot = build(
            ('p1', 'compute:nova', 'vm', 'h1', 'normal', (), 'p'),
            ('p2', 'compute:nova', 'vm', 'h2', 'direct', (), 'p'),
            ('p3', 'compute:nova', 'vm', '', 'normal', (), 'p'),
            ('p4', 'compute:nova', 'vm', 'h1', 'normal', (), 'q'),
            ('p5', 'network:dhcp', 'vm', 'h1', 'normal', (), 'p'),
            ('p6', '', 'vm', 'h1', 'normal', (), 'p'))
        self.assertEqual(['p1', 'p2'], [
            port.id for port in snapshot.ports_of('vm', 'p')])
        self.assertEqual(5, snapshot.host('h1').vswitch_ports
                         + snapshot.host('h2').sriov_ports)

    def test_ports_that_change_their_owner(self):
        """Whose they are is known by those who have plugged them."""
        for owner, device in (
            ('compute:nova', 'vm'), ('compute:nova', 'other'),
            ('compute:nova', ''), ('', ''), ('network:dhcp', 'dhcp1'),
            ('network:router_interface', 'vm'),
        ):
            snapshot = build(
                ('p1', owner, device, 'h', 'normal', ('a',), 'p'),
                ('p2', 'compute:nova', 'vm', 'h', 'normal', ('b',), 'p'),
                ('p3', 'compute:nova', 'other', 'h', 'normal', ('b',), 'p'),
                ('p4', owner, device, 'h', 'direct', ('a',), 'p'),
                ('p5', owner, device, 'h2', 'normal', ('a',), 'p'),
                rules=[('a', 3), ('b', 10)])
            self.assertEqual(3, snapshot.host('h').vswitch_ports)
            ports = snapshot.switch_ports()
            self.assertEqual({'h': ['p1', 'p2', 'p3'], 'h2': ['p5']}, {
                host: [port.id for port in of_host]
                for host, of_host in ports.items()}, owner)
            self.assertEqual(
                {'vm': usage.GuestUsage(('p1', 'p2'), 13)},
                snapshot.guests(ports['h'], {
                    'p1': 'vm', 'p2': 'vm', 'p4': 'vm', 'p5': 'vm',
                    'gone': 'vm'}), owner)
            self.assertEqual({}, snapshot.guests(ports['h2'], {}), owner)

    def test_services_of_projects(self):
        """Their ports are services only where such an agent is."""
        ports = [
            (f'{owner}{host}{project}', owner, f'r{host}', host, 'normal',
             (), project)
            for owner in ('network:dhcp', 'network:router_interface')
            for host in ('h1', 'h2', 'h3') for project in ('', 'p')]
        for agents, expected in (
            ((), {'h1': (2, 2, 0), 'h2': (2, 2, 0), 'h3': (2, 2, 0)}),
            (('DHCP agent',),
             {'h1': (2, 1, 1), 'h2': (1, 1, 2), 'h3': (1, 1, 2)}),
            (('DHCP agent', 'L3 agent'),
             {'h1': (2, 2, 0), 'h2': (1, 1, 2), 'h3': (1, 1, 2)}),
            (('OVN Controller Gateway agent',),
             {'h1': (1, 2, 1), 'h2': (1, 1, 2), 'h3': (1, 1, 2)}),
        ):
            builder = usage.SnapshotBuilder()
            for agent in agents:
                builder.add_agent_type(agent)
                builder.add_agent_host(agent, 'h1')
            for port in ports:
                builder.add_port(*port)
            snapshot = builder.build()
            self.assertEqual(expected, {
                name: (host.dhcp_ports, host.router_ports, host.other_ports)
                for name, host in snapshot.hosts.items()}, agents)


class DoubtsTest(base.TimedTestCase):
    @staticmethod
    def cloud(guests, others=0, rules=0):
        return build(
            *[(f'g{number}', 'compute:nova', 'vm', 'h', 'normal', ('a',))
              for number in range(guests)],
            *[(f'o{number}', '', '', '', 'normal', ())
              for number in range(others)], rules=[('a', rules)])

    def test_doubts(self):
        for before, now, doubted in (
            ((0,), (0,), False),
            ((1,), (0,), True),
            ((1, 30), (0, 30), True),
            # What is bound to no host counts nowhere.
            ((0, 1), (0, 0), False),
            ((19,), (1,), False),
            ((20,), (9,), True),
            ((20,), (10,), False),
            ((1, 40), (1, 10), False),
            ((1, 0, 1), (1, 0, 0), True),
            ((1, 0, 20), (1, 0, 9), True),
            ((1, 0, 20), (1, 0, 10), False),
            ((4, 0, 5), (4, 0, 2), True),
            # Rules that no port has, or that went with the ports.
            ((0, 9, 20), (0, 9, 0), False),
            ((12, 0, 5), (6, 0, 5), False),
            ((1, 0, 0), (50, 50, 50), False),
        ):
            found = usage.doubts(self.cloud(*before), self.cloud(*now))
            self.assertEqual(doubted, bool(found.ports or found.rules),
                             (before, now))
            self.assertEqual(('vm',) if before[0] and not now[0] else (),
                             found.servers)


class SharedTest(base.TimedTestCase):

    def test_unchanged_ports_are_shared(self):
        ports = [('p1', 'compute:nova', 'vm1', 'h1', 'normal', ('a',)),
                 ('p2', 'compute:nova', 'vm2', 'h1', 'normal', ('a',))]
        first = build(*ports)
        moved = ('p2', 'compute:nova', 'vm2', 'h2', 'normal', ('a',))
        second = build(ports[0], moved, previous=first)
        self.assertIs(first.ports['p1'], second.ports['p1'])
        self.assertEqual('h1', first.ports['p2'].host)
        self.assertEqual('h2', second.ports['p2'].host)
        self.assertEqual((1, 1), (
            second.host('h1').guest_ports, second.host('h2').guest_ports))
