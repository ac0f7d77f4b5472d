# SPDX-License-Identifier: Apache-2.0
import dataclasses

from oslo_utils.fixture import uuidsentinel as uuids

from nfv_sched.ops.cli import errors
from nfv_sched.ops.cloud import scenario
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.model.counting import capacity
from nfv_sched.ops.model.counting import document
from nfv_sched.ops.model.requests import assumed_ports
from nfv_sched.tests import base
from nfv_sched.tests.unit.ops import small_clouds


def server(*kinds, name='s', state='active', rules=None, flavor='fw',
           **fields):
    """A server with ports of (vNIC type, physical network) each."""
    return snapshot.Server(
        uuid=getattr(uuids, name), name=name, state=state, host='one',
        flavor=small_clouds.flavor(name=flavor), ports=tuple(
            snapshot.Port(id=getattr(uuids, f'{name}-{number}'),
                          network=getattr(uuids, f'net-{physnet}'),
                          vnic_type=vnic_type, physnet=physnet, rules=rules)
            for number, (vnic_type, physnet) in enumerate(kinds)), **fields)


NORMAL, DATA, VF = ('normal', None), ('normal', 'data'), ('direct', 'data')


class ServersTest(base.TestCase):
    """The ports that most servers have."""

    def assertPorts(self, label, alike, *servers):
        found = assumed_ports.of_servers(servers)
        self.assertEqual((assumed_ports.Basis.SERVERS, label, alike,
                          len(servers)), (
            found.basis, found.label, found.servers_alike,
            found.servers))
        return found

    def test_most(self):
        self.assertPorts('1 normal', 2, server(NORMAL), server(NORMAL),
                         server(VF))
        self.assertPorts('1 direct@data, 1 normal', 2, server(NORMAL, VF),
                         server(VF, NORMAL), server(NORMAL))
        self.assertPorts('none', 1, server())

    def test_ties(self):
        """Rather too few servers are counted than too many."""
        for label, *servers in (
                ('1 direct@data', server(VF), server(NORMAL, NORMAL)),
                ('2 normal', server(DATA), server(NORMAL, NORMAL)),
                ('1 normal@data', server(DATA), server(NORMAL)),
                ('1 normal', server(NORMAL), server())):
            self.assertPorts(label, 1, *servers)
            self.assertPorts(label, 1, *reversed(servers))

    def test_rules(self):
        """Those that most of them have; of two, the one with more."""
        few, many = (server(NORMAL, name=name, rules=rules)
                     for name, rules in (('a', 2), ('b', 9)))
        for rules, servers in ((9, (few, many)), (2, (few, many, few))):
            (_network, groups), = assumed_ports.of_servers(servers).plugs
            self.assertEqual([rules], [group.rules for group in groups])

    def test_servers_that_do_not_count(self):
        failed = server(state='error')
        found = assumed_ports.of_servers((failed, server(state='building')))
        self.assertEqual((assumed_ports.Basis.NO_SERVERS, '1 normal'),
                         (found.basis, found.label))
        self.assertEqual('1 direct@data', assumed_ports.of_servers(
            (failed, server(VF, state='error'), failed)).label)
        unread = dataclasses.replace(failed, ports=None, state='active')
        found = assumed_ports.of_servers((unread, failed))
        self.assertEqual((assumed_ports.Basis.UNREAD, '1 normal'),
                         (found.basis, found.label))

    def test_per_flavor(self):
        cloud = small_clouds.cloud(servers=(
            server(VF, flavor='a'), server(DATA, flavor='b')))
        of_flavor = assumed_ports.per_flavor(cloud, None)
        self.assertEqual(
            ['1 direct@data', '1 normal@data', '1 normal'],
            [of_flavor(small_clouds.flavor(name=name)).label
             for name in 'abc'])
        for choice, label, description in (
            (3, '3 normal', '3 normal ports'), (0, 'none', 'none'),
            (assumed_ports.of_server(server(VF)), '1 direct@data',
             '1 direct port on physical network data'),
        ):
            found = assumed_ports.per_flavor(cloud, choice)(
                small_clouds.flavor(name='a'))
            self.assertEqual((label, description),
                             (found.label, found.description))

    def test_reason(self):
        for kinds, reason in (
                ([VF], 'the existing server of the flavor has'),
                ([VF, VF], 'all 2 servers of the flavor have'),
                ([VF, VF, DATA], '2 of 3 servers of the flavor have'),
                ([VF, DATA], '1 of 2 servers of the flavor has')):
            self.assertEqual(f'as {reason}', assumed_ports.of_servers(
                list(map(server, kinds))).reason)


class NetworksTest(base.TestCase):
    """Networks of the command line."""

    def setUp(self):
        super().setUp()
        self.cloud = small_clouds.cloud(small_clouds.host(), servers=(
            server(VF, name='a'), server(NORMAL, DATA, name='b')))
        self.cloud = dataclasses.replace(
            self.cloud, networks=(
                snapshot.Network(id=uuids.mgmt, name='mgmt'),
                snapshot.Network(id=uuids.out, name='outside',
                                 physnet='ext'),
                snapshot.Network(id=uuids.same1, name='twins'),
                snapshot.Network(id=uuids.same2, name='twins'),
                snapshot.Network(id=uuids.one, name='two', physnet='a'),
                snapshot.Network(id=uuids.two, name='two', physnet='b'),
                snapshot.Network(id=uuids.file, name='sriov',
                                 physnet='data', vnic_type='direct',
                                 numa_policy='required')),
            network_services=(snapshot.NetworkService(
                id=uuids.dhcp, kind='dhcp', name='leased',
                physnets=frozenset({'ext'})),))

    def plug(self, text):
        (network,
         _groups), = assumed_ports.of_networks(self.cloud, [text]).plugs
        return network.physnet, network.vnic_type, network.numa_policy

    def test_names(self):
        """A NUMA policy is of the ports that the network has only."""
        for text, expected in (
                ('mgmt', (None, 'normal', None)),
                (uuids.mgmt, (None, 'normal', None)),
                ('outside', ('ext', 'normal', None)),
                ('outside,vnic-type=direct', ('ext', 'direct', None)),
                ('outside,physnet=data', ('data', 'normal', None)),
                ('outside,physnet=', (None, 'normal', None)),
                ('leased', ('ext', 'normal', None)),
                ('twins', (None, 'normal', None)),
                ('sriov', ('data', 'direct', 'required')),
                ('sriov,vnic-type=normal', ('data', 'normal', None)),
                ('unread,physnet=data', ('data', 'normal', None)),
                ('unread,physnet=', (None, 'normal', None))):
            self.assertEqual(expected, self.plug(text), text)

    def test_network_of_ports(self):
        """Known by ports alone, that are of one kind or of two."""
        cloud = dataclasses.replace(self.cloud, servers=self.cloud.servers[:1])
        text = getattr(uuids, 'net-data')
        self.assertEqual(('data', 'normal', None), self.plug(text))
        found = assumed_ports.of_networks(cloud, [text])
        self.assertEqual('1 direct@data', found.label)
        self.assertEqual(1, len(found.notes))

    def test_name_in_ports(self):
        """As Nova has it, where Neutron was not read."""
        like = self.cloud.servers[0]
        cloud = dataclasses.replace(
            self.cloud, networks=None, servers=(dataclasses.replace(
                like, ports=(dataclasses.replace(
                    like.ports[0], network_name='fast'),)),))
        self.assertEqual('1 direct@data',
                         assumed_ports.of_networks(cloud, ['fast']).label)

    def test_unknown(self):
        for text, *words in (
                ('mgnt', 'no network named ', 'mgmt'),
                ('data', 'no network named ', 'physnet=NAME'),
                (uuids.nowhere, 'no network named '),
                ('two', 'several networks named ', uuids.one, uuids.two),
                ('mgmt,vnic-type=dirct', 'vNIC type', 'direct'),
                ('mgmt,phsnet=x', 'physnet=NAME'),
                ('mgmt,physnet', 'physnet=NAME'), (',physnet=x', 'name')):
            error = self.assertRaises(
                errors.NotInCloudError, assumed_ports.of_networks,
                self.cloud, [text])
            for word in words:
                self.assertIn(word, str(error))

    def test_unknown_physical_network(self):
        for text, notes in (('x,physnet=dta', 1), ('x,physnet=data', 0),
                            ('x,physnet=', 0), ('outside', 0)):
            self.assertEqual(notes, len(assumed_ports.of_networks(
                self.cloud, [text]).notes), text)

    def test_rules(self):
        """As most ports of the network have, else most of all ports."""
        cloud = dataclasses.replace(self.cloud, servers=(
            server(DATA, DATA, DATA, name='a', rules=2),
            server(NORMAL, NORMAL, name='b', rules=5)))

        def groups(*args):
            return [group.rules for group in assumed_ports.of_networks(
                cloud, *args).plugs[0][1]]

        web = scenario.SecurityGroup(uuids.web, 7)
        self.assertEqual([5], groups([getattr(uuids, 'net-None')]))
        self.assertEqual([2], groups(['new,physnet=']))
        self.assertEqual([7], groups(['new,physnet='], (web,)))
        cloud = self.cloud
        self.assertEqual([], groups(['new,physnet=']))

    def test_like(self):
        self.assertEqual('1 normal, 1 normal@data',
                         assumed_ports.of_server(self.cloud.servers[1]).label)
        self.assertRaises(
            errors.NotInCloudError, assumed_ports.of_server,
            dataclasses.replace(self.cloud.servers[0], ports=None))


class CountTest(base.TestCase):
    def count(self, cloud, flavor, choice=None, **kwargs):
        found, = capacity.capacities(
            cloud, [flavor], capacity.NewServers(ports=choice), **kwargs)
        return found

    def test_vfs(self):
        flavor = small_clouds.flavor(2, name='fw')
        device = dataclasses.replace(small_clouds.device(1, 1), tags={
            'remote_managed': 'false', 'physical_network': 'data'})
        cloud = small_clouds.cloud(
            small_clouds.host('one', devices=(device,)),
            small_clouds.host('two'),
            servers=(dataclasses.replace(
                server(VF, flavor='fw', state='error'), host=None),))
        found = self.count(cloud, flavor)
        self.assertEqual({'one': 1, 'two': 0}, {
            name: host.fits for name, host in found.hosts.items()})
        self.assertEqual('1 direct@data', found.ports.label)
        self.assertEqual((document.BindingKind.DEVICES, 'VF'),
                         small_clouds.kinds_of(found.hosts['two'].limits)[0])
        self.assertEqual(16, self.count(cloud, flavor, 1).fits)
        away = assumed_ports.of_networks(
            cloud, ['x,physnet=away,vnic-type=direct'])
        self.assertEqual(0, self.count(cloud, flavor, away).fits)
        self.assertEqual(1, self.count(cloud, flavor, empty=True).fits)

    def test_numa_policy_of_port(self):
        """That of the port counts, that of another flavor does not."""
        flavor = small_clouds.flavor(2, name='fw')
        device = dataclasses.replace(small_clouds.device(1, None), tags={
            'remote_managed': 'false', 'physical_network': 'data'})
        old = server(VF, flavor='fw')
        old = dataclasses.replace(old, pci_requests=(snapshot.PCIRequest(
            id=uuids.request, count=1, numa_policy='required',
            port=old.ports[0].id),))
        cloud = small_clouds.cloud(small_clouds.host('one', devices=(device,)),
                                   servers=(old,))
        self.assertEqual(0, self.count(cloud, flavor).fits)
        other = dataclasses.replace(old, flavor=small_clouds.flavor(
            name='fw', hw__pci_numa_affinity_policy='required'))
        self.assertEqual(1, self.count(cloud, flavor, assumed_ports.of_server(
            other)).fits)

    def test_rules(self):
        flavor = small_clouds.flavor(1, name='fw')
        cloud = small_clouds.cloud(
            small_clouds.host('one', network=snapshot.HostNetwork(
                vswitch_ports=3, security_rules=7)),
            servers=(server(NORMAL, NORMAL, flavor='fw', rules=3),),
            nfv_sched={'security_rules_per_node': 20})
        self.assertEqual(2, self.count(cloud, flavor).fits)
        self.assertEqual(3, self.count(cloud, flavor, empty=True).fits)
        self.assertEqual(16, self.count(cloud, flavor, 2).fits)
