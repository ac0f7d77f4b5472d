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
"""What is left of names in a cloud that is given away."""

import dataclasses
import json

from oslo_utils.fixture import uuidsentinel as uuids

from nfv_sched.cloud import anonymize
from nfv_sched.cloud import codec
from nfv_sched.cloud import snapshot
from nfv_sched.cloud import unread
from nfv_sched.ledger import names as ledger_names
from nfv_sched.tests import base

PROJECT = '0123456789abcdef0123456789abcdef'
SPECS = {'hw:cpu_policy': 'dedicated', 'nfv:vswitch_numa_affinity': 'strict'}
FLAVOR = snapshot.Flavor(
    name='acme.router', id='42', vcpus=2, memory=512, extra_specs=SPECS)


def host(name: str, **fields) -> snapshot.Host:
    """A host with all that has names."""
    uuid = getattr(uuids, name)
    ledger = ledger_names.provider_uuid(uuid)
    return snapshot.Host(
        name=name, hypervisor=f'{name}.acme.example', uuid=uuid,
        cell='acme-cell', enabled=False, disabled_reason='ask Bob of Acme',
        zone='acme-west', aggregates=('acme-racks',),
        stats={f'num_proj_{PROJECT}': '2', 'num_instances': '2'},
        nodes=(snapshot.Node(
            number=0, memory=1024, dedicated=frozenset({0, 1}),
            physnets=frozenset({'acme-net', 'nfv_node0', 'nfv_vswitch'})),),
        devices=(snapshot.Device(
            address='0000:81:00.1', vendor='8086', product='154c',
            kind='type-VF', server=uuids.first, request=uuids.request,
            tags={'physical_network': 'acme-net', 'rp_uuid': ledger,
                  'card_serial_number': 'ACME1'}),),
        providers=(
            snapshot.Provider(
                uuid=uuid, name=f'{name}.acme.example',
                traits=frozenset({'HW_CPU_X86_AVX2',
                                  'CUSTOM_PHYSNET_ACME_NET'}),
                aggregates=frozenset({uuids.aggregate})),
            snapshot.Provider(
                uuid=ledger, name=f'{name}.acme.example_nfv_ledger',
                parent=uuid),
            snapshot.Provider(
                uuid=getattr(uuids, name + 'rp'), name='acme-bridge',
                parent=uuid),
            snapshot.Provider(
                uuid=getattr(uuids, name + 'agent'), parent=uuid,
                name=f'{name}.acme.example:Open vSwitch agent:br-acme')),
        network=snapshot.HostNetwork(vswitch_ports=3), **fields)


CLOUD = snapshot.Cloud(
    taken='2026-01-02T03:04:05Z', source='acme', missing=(
        'Cell acme-far cannot be read: no route to db.acme.example',
        f'Cell {uuids.cell}(acme-far) does not answer in time',
        'Host acme-3 is left out, its record is malformed: acme',
        'Neutron cannot be read: http://neutron.acme.example'),
    options={'nfv_sched': {'vswitch_label': 'nfv_vswitch'},
             'DEFAULT': {'default_schedule_zone': 'acme-west',
                         'default_availability_zone': 'acme-east'},
             'filter_scheduler': {
                 'isolated_hosts': ['acme-2', 'acme-gone'],
                 'isolated_images': [uuids.image], 'host_subset_size': 1}},
    hosts=(host('acme-1'), host('acme-2')),
    servers=(
        snapshot.Server(
            uuid=uuids.first, name='acme-vm', host='acme-1',
            cell='acme-cell', project=PROJECT, flavor=FLAVOR,
            moved='2026-01-01T00:00:00Z',
            image={'hw_numa_nodes': '1', 'customer': 'Acme',
                   'os_command_line': 'acme'},
            ports=(snapshot.Port(
                id=uuids.port, network=uuids.network, physnet='acme-net',
                network_name='acme-lan', device='0000:81:00.1'),),
            pci_requests=(
                snapshot.PCIRequest(id=uuids.flavored, alias='acme-gpu'),
                snapshot.PCIRequest(
                    id=uuids.request, port=uuids.port, numa_policy='required',
                    specs=({'physical_network': 'acme-net',
                            'remote_managed': 'False', 'acme': 'x'},))),
            group=uuids.group, zone='acme-west',
            hints={'group': (uuids.group,), 'query': ('acme-1',)},
            devices=('0000:81:00.1',),
            allocations={uuids.acme: {'PCPU': 2}}),
        snapshot.Server(
            uuid=uuids.second, name='acme-vm', cell='cell0', state='error',
            fault='acme-1 is full', flavor=FLAVOR, project=PROJECT,
            hints={'different_host': (uuids.first,)})),
    flavors=(FLAVOR,),
    aggregates=(snapshot.Aggregate(
        name='acme-racks', uuid=uuids.aggregate, hosts=('acme-1', 'acme-2'),
        metadata={'availability_zone': 'acme-west', 'pinned': 'true',
                  'filter_tenant_id': f'{PROJECT}, {uuids.other}',
                  'instance_type': 'acme.router, acme.gone'}),),
    groups=(snapshot.Group(
        uuid=uuids.group, name='acme-pair', policy='anti-affinity',
        members=(uuids.first,)),),
    moves=(snapshot.Migration(
        uuid=uuids.move, server=uuids.first, source='acme-1',
        target='acme-gone'),),
    consumers={uuids.move: {getattr(uuids, 'acme-1'): {'PCPU': 2}}},
    network_agents=(
        snapshot.NetworkAgent(
            id=uuids.agent, kind='dhcp', host='acme-1', zone='acme-west',
            physnets=frozenset({'acme-net', 'acme-2nd'}),
            tunnels=frozenset({'vxlan'}), serves=(uuids.network,)),
        snapshot.NetworkAgent(
            id=uuids.gateway, kind='router', host='acme-gateway',
            mode='legacy', serves=(uuids.router,))),
    network_services=(
        snapshot.NetworkService(
            id=uuids.network, kind='dhcp', name='acme-lan', ports=1,
            physnets=frozenset({'acme-net'}), zones=('acme-west',)),
        snapshot.NetworkService(
            id=uuids.router, kind='router', name='acme-out',
            physnets=frozenset({'acme-2nd'}))))


class AnonymizeTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.cloud = anonymize.anonymize(CLOUD)

    def test_no_name_is_left(self):
        text = json.dumps(codec.encode(self.cloud)).lower()
        for name in ('acme', 'bob', PROJECT, '"42"', *(
                getattr(uuids, name) for name in (
                    'acme-1', 'first', 'request', 'port', 'network', 'group',
                    'aggregate', 'other', 'cell', 'move', 'agent', 'gateway',
                    'router'))):
            self.assertNotIn(name, text)
        self.assertNotIn(ledger_names.provider_uuid(
            getattr(uuids, 'acme-1')), text)
        self.assertTrue(self.cloud.anonymous)

    def test_same_everywhere(self):
        cloud = self.cloud
        self.assertEqual({'host1', 'host2', 'host3', 'host4'}, {
            *(each.name for each in cloud.hosts), cloud.moves[0].target,
            *(each.host for each in cloud.network_agents)})
        move, = cloud.moves
        source, = (each for each in cloud.hosts if each.name == move.source)
        self.assertEqual({move.uuid: {source.uuid: {'PCPU': 2}}},
                         cloud.consumers)
        first = next(each for each in cloud.servers if each.host)
        second = next(each for each in cloud.servers if not each.host)
        self.assertEqual(first.uuid, move.server)
        mine = next(each for each in cloud.hosts if each.name == first.host)
        self.assertEqual(first.uuid, mine.devices[0].server)
        flavored, of_port = first.pci_requests
        port, = first.ports
        self.assertEqual(
            (mine.devices[0].request, port.id, 'required', (
                {'physical_network': port.physnet,
                 'remote_managed': 'False'},)),
            (of_port.id, of_port.port, of_port.numa_policy, of_port.specs))
        self.assertIsNotNone(flavored.alias)
        self.assertEqual((first.uuid,), cloud.groups[0].members)
        self.assertEqual(cloud.groups[0].uuid, first.group)
        self.assertEqual({'group': (first.group,)}, first.hints)
        self.assertEqual({'different_host': (first.uuid,)}, second.hints)
        self.assertEqual(first.project, second.project)
        self.assertEqual(32, len(first.project))
        self.assertEqual(first.flavor, cloud.flavors[0])
        self.assertEqual(mine.zone, first.zone)
        aggregate, = cloud.aggregates
        self.assertEqual(tuple(sorted(each.name for each in cloud.hosts)),
                         aggregate.hosts)
        self.assertEqual((aggregate.name,), mine.aggregates)
        self.assertEqual(mine.zone, aggregate.metadata['availability_zone'])
        self.assertEqual(
            first.project,
            aggregate.metadata['filter_tenant_id'].split(',')[0])
        self.assertIn(f'num_proj_{first.project}', mine.stats)
        names = aggregate.metadata['instance_type'].split(',')
        self.assertEqual((first.flavor.name, 2), (names[0], len(set(names))))
        root, ledger, _other, agent = mine.providers
        self.assertEqual((f'{mine.hypervisor}_{agent.uuid[:8]}', root.uuid),
                         (agent.name, agent.parent))
        self.assertEqual((mine.uuid, mine.hypervisor),
                         (root.uuid, root.name))
        self.assertEqual({aggregate.uuid}, root.aggregates)
        self.assertEqual(
            (ledger_names.provider_uuid(mine.uuid), root.uuid,
             f'{mine.hypervisor}_nfv_ledger'),
            (ledger.uuid, ledger.parent, ledger.name))
        self.assertEqual(ledger.uuid, mine.devices[0].tags['rp_uuid'])
        physnet = first.ports[0].physnet
        self.assertEqual(
            {'nfv_node0', 'nfv_vswitch', physnet}, mine.nodes[0].physnets)
        self.assertEqual(
            physnet, mine.devices[0].tags['physical_network'])
        self.assertEqual(
            {'HW_CPU_X86_AVX2', f'CUSTOM_PHYSNET_{physnet.upper()}'},
            root.traits)

    def test_network_agents(self):
        """They fit the hosts and what they serve."""
        cloud = self.cloud
        services = {each.kind: each for each in cloud.network_services}
        agents = {each.kind: each for each in cloud.network_agents}
        dhcp, router = agents['dhcp'], agents['router']
        first, = (each for each in cloud.servers if each.host)
        self.assertEqual(
            (first.host, cloud.hosts[0].zone, ('vxlan',), 'legacy'),
            (dhcp.host, dhcp.zone, tuple(dhcp.tunnels), router.mode))
        self.assertEqual([(services['dhcp'].id,), (services['router'].id,)],
                         [dhcp.serves, router.serves])
        self.assertEqual((dhcp.zone,), services['dhcp'].zones)
        physnet = first.ports[0].physnet
        self.assertEqual({physnet}, services['dhcp'].physnets)
        self.assertEqual({physnet, *services['router'].physnets},
                         dhcp.physnets)
        self.assertEqual((2, None), (len(dhcp.physnets), router.physnets))
        self.assertEqual(services['dhcp'].id, first.ports[0].network)

    def test_what_stays(self):
        cloud = self.cloud
        self.assertEqual(SPECS, cloud.flavors[0].extra_specs)
        self.assertEqual('true', cloud.aggregates[0].metadata['pinned'])
        self.assertEqual(CLOUD.options['nfv_sched'],
                         cloud.options['nfv_sched'])
        zones = cloud.options['DEFAULT']
        self.assertEqual(cloud.hosts[0].zone, zones['default_schedule_zone'])
        self.assertNotIn(zones['default_availability_zone'],
                         ('', cloud.hosts[0].zone))
        scheduler = cloud.options['filter_scheduler']
        self.assertIn(scheduler['isolated_hosts'][0],
                      [each.name for each in cloud.hosts])
        self.assertEqual(cloud.moves[0].target, scheduler['isolated_hosts'][1])
        self.assertNotIn(uuids.image, scheduler['isolated_images'])
        self.assertEqual(1, scheduler['host_subset_size'])
        self.assertIn({'hw_numa_nodes': '1'},
                      [server.image for server in cloud.servers])
        self.assertIn('2026-01-01T00:00:00Z',
                      [server.moved for server in cloud.servers])
        self.assertEqual({'cell1', 'cell0'},
                         {each.cell for each in cloud.servers})
        for one, other in zip(CLOUD.hosts, cloud.hosts):
            self.assertEqual(one.network, other.network)
            self.assertEqual(one.devices[0].address,
                             other.devices[0].address)
            self.assertEqual(
                one.nodes, tuple(dataclasses.replace(
                    node, physnets=one.nodes[0].physnets)
                    for node in other.nodes))
        self.assertEqual(
            ('Cell cell2 cannot be read', 'Cell cell2 does not answer in time',
             'A host is left out, its record is malformed',
             'Neutron cannot be read'), cloud.missing)

    def test_networks_with_names_like_labels(self):
        """A label is no more than the options say."""
        labels = {'sw', 'n0', 'n12', 'nfv_osd'}
        names = {'swift', 'north', 'n', 'n0x'}
        host = dataclasses.replace(CLOUD.hosts[0], nodes=(
            dataclasses.replace(CLOUD.hosts[0].nodes[0],
                                physnets=frozenset(labels | names)),))
        cloud = anonymize.anonymize(dataclasses.replace(
            CLOUD, hosts=(host,), options={'nfv_sched': {
                'vswitch_label': 'sw', 'node_label_prefix': 'n'}}))
        found = cloud.hosts[0].nodes[0].physnets
        self.assertLess(labels, found)
        self.assertEqual(set(), names & found)
        self.assertEqual(len(labels | names), len(found))

    def test_hosts_of_unread_cells(self):
        """They are found as before."""
        hosts = (*CLOUD.hosts, dataclasses.replace(
            CLOUD.hosts[0], uuid=uuids.other, cell='acme: far one'))
        cloud = anonymize.anonymize(dataclasses.replace(
            CLOUD, hosts=hosts, missing=(
                f'Cell {uuids.cell}(acme: far one) cannot be read: acme',)))
        text, = cloud.missing
        self.assertNotIn('acme', text)
        name, _what = unread.cell(text)
        self.assertEqual(1, sum(host.cell == name for host in cloud.hosts))

    def test_another_time_another_name(self):
        self.assertNotEqual(
            self.cloud.groups[0].uuid,
            anonymize.anonymize(CLOUD).groups[0].uuid)

    def test_nothing_there(self):
        empty = snapshot.Cloud(taken='2026-01-02T03:04:05Z')
        self.assertEqual(dataclasses.replace(empty, anonymous=True),
                         anonymize.anonymize(empty))
