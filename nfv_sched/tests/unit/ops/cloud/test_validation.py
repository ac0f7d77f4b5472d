# SPDX-License-Identifier: Apache-2.0

import dataclasses

from oslo_config import cfg

from nfv_sched.base import conf
from nfv_sched.ops.cloud import codec
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.cloud import validation
from nfv_sched.tests import base
from nfv_sched.tests import snapshots


def provider(uuid, parent=None):
    return snapshot.Provider(uuid=uuid, name=uuid, parent=parent)


class SoundTest(base.TestCase):

    def check(self, *hosts, **fields):
        validation.check(snapshots.cloud(hosts, **fields))

    def refused(self, said, *hosts, **fields):
        error = self.assertRaises(
            codec.WrongError, self.check, *hosts, **fields)
        self.assertIn(said, str(error))

    def test_sound(self):
        validation.check(snapshots.generated())
        host = snapshots.host()
        self.check(dataclasses.replace(host, providers=(
            provider(host.uuid), provider('b', 'a'), provider('a', host.uuid)
        )), options={'nfv_sched': {'vswitch_ports_per_node': 254,
                                   'node_label_prefix': None},
                     'DEFAULT': {'cpu_allocation_ratio': None},
                     'other': {'x': object()}})

    def test_the_same_twice(self):
        host, server = snapshots.host(), snapshots.server()
        node, device = snapshots.node(), snapshot.Device(
            address='0000:01:00.0', vendor='8086', product='1572',
            kind='type-PF')
        self.refused('two hosts are', host, host)
        self.refused('two servers are', servers=(server, server))
        self.refused('hosts[0]: two nodes are 0',
                     snapshots.host(nodes=(node, node)))
        self.refused("hosts[0]: two devices are '0000:01:00.0'",
                     snapshots.host(devices=(device, device)))

    def test_devices(self):
        for kind, status in (('VF', 'available'), ('type-VF', 'lost')):
            self.refused('which no PCI device is', snapshots.host(
                devices=(snapshot.Device(
                    address='a', vendor='b', product='c', kind=kind,
                    status=status),)))

    def test_providers(self):
        host = snapshots.host()
        for first, *others in (
                [provider('other')], [provider(host.uuid, 'other')],
                [provider(host.uuid), provider('a', 'none')],
                [provider(host.uuid), provider('a')],
                [provider(host.uuid), provider('a', 'b'),
                 provider('b', 'a')]):
            self.refused('resource provider', dataclasses.replace(
                host, providers=(first, *others)))

    def test_network(self):
        agent = snapshot.NetworkAgent(
            id='a', kind='dhcp', host='one', serves=('n',))
        service = snapshot.NetworkService(id='n', kind='dhcp')
        self.check(network_agents=(agent,), network_services=(service,))
        self.refused("two network agents are 'a'",
                     network_agents=(agent, agent))
        self.refused("two network services are 'n'",
                     network_services=(service, service))
        self.refused("the kind of a network agent cannot be 'x'",
                     network_agents=(dataclasses.replace(agent, kind='x'),))
        self.refused(
            "the kind of a network service cannot be 'ovn'",
            network_services=(dataclasses.replace(service, kind='ovn'),))
        self.refused(
            "two services of network agent 'a' are 'n'", network_agents=(
                dataclasses.replace(agent, serves=('n', 'n')),))

    def test_numbers(self):
        """The simulator would make each port and rule."""
        for fields in ({'vswitch_ports': 10**9}, {'security_rules': -1},
                       {'dhcp_servers': 100_001}, {'routers': 10**9}):
            (name, number), = fields.items()
            self.refused(
                f'hosts[0]: network.{name} cannot be {number}',
                dataclasses.replace(snapshots.host(),
                                    network=snapshot.HostNetwork(**fields)))
        self.check(dataclasses.replace(
            snapshots.host(), network=snapshot.HostNetwork(
                vswitch_ports=100_000, routers=0)))
        port = snapshot.Port(id='p', network='n', rules=10**9)
        self.refused('rules of a port of server', servers=(
            dataclasses.replace(snapshots.server(), ports=(port,)),))
        self.refused(
            "ports of network service 'n' cannot be", network_services=(
                snapshot.NetworkService(
                    id='n', kind='router', ports=10**9),))

    def test_options(self):
        for section, name, value in (
                ('nfv_sched', 'vswitch_ports_per_node', 'many'),
                ('nfv_sched', 'vswitch_label', 5),
                ('nfv_sched', 'node_label_prefix', ['a']),
                ('DEFAULT', 'cpu_allocation_ratio', '4'),
                ('DEFAULT', 'cpu_allocation_ratio', 1e39),
                ('DEFAULT', 'cpu_allocation_ratio', 10 ** 39),
                ('DEFAULT', 'initial_cpu_allocation_ratio', -1)):
            self.refused(f'options.{section}.{name} cannot be {value!r}',
                         options={section: {name: value}})

    def test_names(self):
        """Those that commands are printed with; Nova's own rules pass."""
        host, server = snapshots.host(), snapshots.server()
        agent = snapshot.NetworkAgent(
            id='a' * 32, kind='dhcp', host='one', serves=('b' * 32,))
        good = snapshots.cloud(
            [host], [server], network_agents=(agent,),
            network_services=(snapshot.NetworkService(
                id='b' * 32, kind='dhcp', name='\x1b any\n'),),
            flavors=(snapshots.flavor(name='large, 2 GiB\u3000\u00fc'),),
            aggregates=(snapshot.Aggregate(name='-rack 1', hosts=('a',)),))
        validation.check_names(good)
        validation.check_names(snapshots.generated())
        option = '--os-auth-url=http://127.0.0.1:1'
        for where, fields in (
                ('servers[0].uuid', {'servers': (dataclasses.replace(
                    server, uuid=option),)}),
                ('servers[0].host', {'servers': (dataclasses.replace(
                    server, host='-a'),)}),
                *((f'hosts[0].{field}', {'hosts': (dataclasses.replace(
                    host, **{field: value}),)}) for field, value in (
                        ('uuid', '--' + 'a' * 32), ('uuid', ''),
                        ('name', option), ('name', 'a b'), ('name', ''),
                        ('name', 'a\u00a0b'), ('name', 'a\u200b'),
                        ('name', 'a' * 256), ('cell', '\u202e'),
                        ('zone', 'a\nb'))),
                ('flavors[0].name', {'flavors': (
                    snapshots.flavor(name='\x1b'),)}),
                ('aggregates[0].hosts[0]', {'aggregates': (snapshot.Aggregate(
                    name='a', hosts=('-x',)),)}),
                ('network_agents[0].id', {'network_agents': (
                    dataclasses.replace(agent, id=option),)}),
                ('network_agents[0].id', {'network_agents': (
                    dataclasses.replace(agent, id='-x', kind='ovn'),)}),
                ('network_agents[0].serves[0]', {'network_agents': (
                    dataclasses.replace(agent, serves=(option,)),)}),
                ('network_services[0].id', {'network_services': (
                    snapshot.NetworkService(id='-x', kind='router'),)})):
            error = self.assertRaises(
                codec.WrongError, validation.check_names,
                dataclasses.replace(good, **fields))
            self.assertTrue(str(error).startswith(f'{where}: must be '), error)

    def test_numbers_of_a_host(self):
        """What takes Nova quadratic time has a limit for each host."""
        def devices(count, parents):
            return tuple(snapshot.Device(
                address=f'{number:x}', vendor='8086', kind='type-VF',
                product='1', parent=f'PF {number % parents}')
                for number in range(count))

        node = snapshots.node()
        self.check(snapshots.host(devices=devices(4096, 512)))
        for fields in (
                {'devices': devices(4097, 1)}, {'devices': devices(513, 513)},
                {'nodes': (dataclasses.replace(node, pages=tuple(
                    snapshot.Pages(size=size, total=1)
                    for size in range(1, 66))),)}):
            self.refused('hosts[0]: ', snapshots.host(**fields))

    def test_options_without_value(self):
        for option in conf.list_opts()[0][1]:
            options = {'nfv_sched': {option.name: None}}
            if option.default is None or isinstance(option, cfg.StrOpt):
                self.check(options=options)
            else:
                self.refused('cannot be', options=options)
