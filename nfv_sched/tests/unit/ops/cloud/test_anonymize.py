# SPDX-License-Identifier: Apache-2.0
"""What is left of names in a cloud that is given away."""

import dataclasses
import json
import re
import types
import typing
from unittest import mock

from oslo_utils.fixture import uuidsentinel as uuids

from nfv_sched.limits import names as ledger_names
from nfv_sched.ops.answers.explain import explanation
from nfv_sched.ops.cloud import anonymize
from nfv_sched.ops.cloud.cloud_file import examples
from nfv_sched.ops.cloud import codec
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.commands import source
from nfv_sched.ops.model.requests import subject
from nfv_sched.ops.simulator import start
from nfv_sched.tests import base

# Of a policy; names of labels are replaced.
_LABEL = re.compile(r'\.\w+=')
PROJECT = '0123456789abcdef0123456789abcdef'
SPECS = {'hw:cpu_policy': 'dedicated', 'nfv:vswitch_numa_affinity': 'strict'}
FLAVOR = snapshot.Flavor(
    name='acme.router', id='42', vcpus=2, memory=512, extra_specs=SPECS)


def host(name: str, **fields) -> snapshot.Host:
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


_Kind = snapshot.MissingKind
CLOUD = snapshot.Cloud(
    taken='2026-01-02T03:04:05Z', source='acme', missing=(
        snapshot.Missing(kind=_Kind.CELL, cell='acme-cell',
                         uuids=(uuids.cell,), text='no db.acme.example'),
        snapshot.Missing(kind=_Kind.SILENT_CELL, cell='acme-far',
                         uuids=(uuids.far,)),
        snapshot.Missing(kind=_Kind.HOST, hosts=('acme-3',), text='acme'),
        snapshot.Missing(kind=_Kind.SERVER, uuids=(uuids.first,)),
        snapshot.Missing(kind=_Kind.NEUTRON,
                         text='http://neutron.acme.example')),
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


def texts(hint, name, tokens):
    """Return a value whose every text has a secret of its own.

    :param hint: type hint of a field of a snapshot
    :param tokens: gets the secrets
    """
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        return texts(args[0], name, tokens)
    if origin in (typing.Union, types.UnionType):
        return texts(next(arg for arg in args if arg is not type(None)),
                     name, tokens)
    if dataclasses.is_dataclass(hint):
        return hint(**{
            field.name: texts(kind, f'{hint.__name__}{field.name}', tokens)
            for field in dataclasses.fields(hint)
            for kind in (typing.get_type_hints(
                hint, include_extras=True)[field.name],)})

    def secret():
        token = f'Zq{len(tokens)}{name}qZ'.replace('_', '')
        tokens.append(token)
        return token

    if hint is str or hint is typing.Any:
        return secret()
    forms = (secret, lambda: f'aggregate:{secret()}=true',
             lambda: f'CUSTOM_{secret().upper()}', lambda: f'hw_{secret()}',
             lambda: f'os_{secret()}', lambda: f'/var/lib/{secret()}/x',
             lambda: f'nfv_{secret()}', lambda: f'num_proj_{secret()}',
             lambda: f'trait:CUSTOM_{secret()}', lambda: f'é{secret()}\u200b',
             lambda: f'<in> {secret()}', lambda: f'hw:{secret()}.0',
             lambda: f'filter_tenant_id_{secret()}', lambda: 'img_signature',
             lambda: json.dumps({secret(): [{'vpd': {'x': secret()}}]}),
             lambda: '{"a": "%s"}' % ''.join(
                 f'\\u{ord(char):04x}' for char in secret()),
             lambda: 'hw_machine_type', lambda: 'group',
             lambda: 'filter_tenant_id', lambda: 'capabilities')
    if origin is tuple and args[0] is str:
        return tuple(form() for form in forms)
    if origin is frozenset:
        return frozenset([0, 1]) if args[0] is int else frozenset(
            form() for form in forms)
    if origin is tuple:
        return (texts(args[0], name, tokens), texts(args[0], name, tokens))
    if origin is not None:  # a mapping
        if args[0] is not str:
            return {0: 1}
        return {form(): texts(args[1], name, tokens) if
                typing.get_origin(args[1]) or dataclasses.is_dataclass(args[1])
                or args[1] is int else value()
                for form in forms for value in forms[:3]}
    return {int: 1, float: 1.0, bool: True, _Kind: _Kind.OTHER}[hint]


class EveryTextTest(base.TestCase):

    def test_nothing_is_left(self):
        """Of any text in any field, those of later releases included."""
        tokens: list[str] = []
        cloud = texts(snapshot.Cloud, 'cloud', tokens)
        cloud = dataclasses.replace(cloud, options={
            **cloud.options,
            'DEFAULT': {'default_schedule_zone': 'ZqzoneqZ',
                        'transport_url': 'rabbit://ZqqZ:ZqqZ@h'},
            'filter_scheduler': {'enabled_filters': ['ZqFilterqZ'],
                                 'isolated_hosts': ['ZqhqZ']},
            'nfv_sched': {'vswitch_label': 'ZqvqZ',
                          'node_label_prefix': 'ZqnqZ',
                          'decision_journal': '/var/ZqqZ/x'}})
        self.assertGreater(len(tokens), 1000)
        before = json.dumps(codec.encode(cloud)).lower()
        self.assertLess(1000, before.count('zq'))
        for key in (None, b'key'):
            after = json.dumps(codec.encode(
                anonymize.replace(cloud, key).cloud)).lower()
            self.assertNotIn('zq', after)
            self.assertNotIn('qz', after)
            for part in ('var', 'lib', 'u005a'):
                self.assertNotIn(f'"{part}', after)

    def test_places_of_names(self):
        serial, mac = 'AC1234', '52:54:00:12:34:56'
        capabilities = json.dumps({
            'network': ['rx', 'tx', 'acme'], 'vpd': {
                'card_serial_number': '1234567890', 'mac': mac}})
        specs = {
            'pci_passthrough:alias': 'acme-nic:2',
            'trait:CUSTOM_ACME_RACK': 'required',
            'resources:CUSTOM_ACME_GPU': '1',
            'aggregate_instance_extra_specs:acme': 'true',
            'owner': uuids.other, 'note': 'on acme-1 only, see 10.0.0.1'}
        flavor = dataclasses.replace(FLAVOR, extra_specs={**SPECS, **specs})
        host = CLOUD.hosts[0]
        device = dataclasses.replace(host.devices[0], tags={
            'physical_network': 'acme-net', 'resource_class': 'acme-gpu',
            'traits': 'CUSTOM_ACME_RACK', 'capabilities': capabilities,
            'vendor': 'acme', 'serial_number': serial})
        root = dataclasses.replace(
            host.providers[0], traits=frozenset({'CUSTOM_ACME_RACK'}),
            inventories={'CUSTOM_ACME_GPU': snapshot.Inventory(total=1),
                         'CUSTOM_NFV_NODE0_PCPU': snapshot.Inventory(total=1),
                         'CUSTOM_PCI_8086_154C': snapshot.Inventory(total=1)})
        nested = dataclasses.replace(
            host.providers[2], name=f'{host.hypervisor}_0000:81:00.0')
        other = dataclasses.replace(
            host.providers[2], uuid=uuids.acme, name=f'{host.hypervisor}_acme')
        host = dataclasses.replace(
            host, devices=(device,), providers=(root, nested, other),
            stats={'num_acme': '1', 'io_workload': '2'}, cpu_info=json.dumps(
                {'vendor': 'acme', 'topology': {'sockets': 2},
                 'card': 49177555123456, 'pins': [884455667.7889900]}))
        server = dataclasses.replace(
            CLOUD.servers[0], flavor=flavor, image={
                'os_password': 'acme', 'hw_customer': 'acme',
                'img_signature': 'acme', 'img_mappings': '[{"a": "acme"}]',
                'img_block_device_mapping': '[{"a": "acme"}]',
                'hw_numa_nodes': '1', 'hw_cpu_policy': 'dedicated',
                'hw_numa_cpus.0': '0-3', 'hw_disk_bus': 'acme'},
            pci_requests=(snapshot.PCIRequest(
                id=uuids.request, alias='acme-nic', specs=(
                    {'vendor_id': '8086', 'tag': 'acme'},)),))
        aggregate = dataclasses.replace(
            CLOUD.aggregates[0], metadata={
                'acme': 'true', 'hosts': 'acme-1', 'id': uuids.first})
        result = anonymize.replace(dataclasses.replace(
            CLOUD, hosts=(host,), servers=(server,), flavors=(flavor,),
            aggregates=(aggregate,)))
        cloud = result.cloud
        text = json.dumps(codec.encode(cloud)).lower()
        for name in ('acme', '1234567890', '49177555123456', '884455667', mac,
                     serial, '10.0.0.1', uuids.other, 'password', 'customer',
                     'signature', 'mapping'):
            self.assertNotIn(name.lower(), text)
        # What was equal still is.
        new, = cloud.hosts
        specs = cloud.flavors[0].extra_specs
        self.assertEqual(specs, cloud.servers[0].flavor.extra_specs)
        trait, = new.providers[0].traits
        self.assertEqual('required', specs[f'trait:{trait}'])
        gpu, = (name for name in new.providers[0].inventories
                if name not in (
                    'CUSTOM_PCI_8086_154C', 'CUSTOM_NFV_NODE0_PCPU'))
        self.assertEqual('1', specs[f'resources:{gpu}'])
        tags = new.devices[0].tags
        self.assertEqual(trait, tags['traits'])
        self.assertEqual(gpu, f'CUSTOM_{tags["resource_class"].upper()}')
        request, = cloud.servers[0].pci_requests
        self.assertEqual(f'{request.alias}:2', specs['pci_passthrough:alias'])
        self.assertEqual({'8086'}, set(request.specs[0].values()) - {
            value for name, value in request.specs[0].items()
            if name != 'vendor_id'})
        metadata = cloud.aggregates[0].metadata
        self.assertEqual(new.name, metadata['hosts'])
        key, = (name for name, value in metadata.items() if value == 'true')
        self.assertEqual(
            'true', specs[f'aggregate_instance_extra_specs:{key}'])
        self.assertEqual(cloud.servers[0].uuid, metadata['id'])
        self.assertEqual(f'{new.hypervisor}_0000:81:00.0',
                         new.providers[1].name)
        self.assertEqual({'sockets': 2}, json.loads(new.cpu_info)['topology'])
        self.assertEqual('2', new.stats['io_workload'])
        self.assertEqual(
            {'hw_numa_nodes': '1', 'hw_cpu_policy': 'dedicated',
             'hw_numa_cpus.0': '0-3'}, {
                 name: value for name, value in cloud.servers[0].image.items()
                 if name != 'hw_disk_bus'})
        # It is counted for the one who saves it.
        self.assertEqual((2, 1), (
            result.replaced['flavor extra_specs'],
            result.replaced['aggregate metadata']))
        self.assertNotIn('host name', result.replaced)


class NumberTest(base.TestCase):

    #: What Nova or nfv-sched reads as a number.
    SPECS = {
        'hw:cpu_cores': '4711', 'hw:numa_cpus.0': '4-11', 'nfv:shared_vcpu':
        '4711', 'resources:VCPU': '4711', 'resources1:CUSTOM_BAUD': '4711',
        'quota:vif_inbound_average': '4711', 'hw:mem_page_size': '4711kB',
        'capabilities:free_ram_mb': '>= 4711',
        'aggregate_instance_extra_specs:speed': '>= 4711'}
    METADATA = {'ram_weight_multiplier': '4711', 'max_io_ops_per_host': '4711',
                'vswitch_ports_per_node': '4711', 'speed': '4711',
                'cpu_allocation_ratio': '47.11', 'hw_cpu_cores': '4711'}
    #: What identifies customers, in keys that are free, or seem to be known.
    VALUES = ('4711', '-47.11', '47-4711', '4711MB', 'acme.4711', 'x 4711,0',
              '<or> 4711 <or> 47', 's== 4711', '{"a": [4711, "4711"]}',
              'num_proj_4711', 'nfv_4711', 'resources4711', 'trait4711',
              '4.7.11.4711')
    KEYS = ('customer', 'acme:4711', '4711', 'id', 'project', 'num_4711',
            'nfv_customer', 'contract.4711', 'nfv:4711', 'hw:4711')

    def anonymize(self, specs, metadata=None, tags=None):
        hosts = (dataclasses.replace(CLOUD.hosts[0], devices=(
            dataclasses.replace(CLOUD.hosts[0].devices[0],
                                tags=tags or {}),)),)
        flavor = dataclasses.replace(FLAVOR, extra_specs=specs)
        cloud = anonymize.replace(dataclasses.replace(
            CLOUD, hosts=hosts, flavors=(flavor,), servers=(),
            aggregates=(dataclasses.replace(
                CLOUD.aggregates[0], metadata=metadata or {}),)), b'key').cloud
        return (cloud.flavors[0].extra_specs, cloud.aggregates[0].metadata,
                cloud.hosts[0].devices[0].tags)

    def test_known_keys(self):
        specs, metadata, _tags = self.anonymize(self.SPECS, self.METADATA)
        self.assertEqual(list(self.SPECS.values()), list(specs.values()))
        self.assertEqual(list(self.METADATA.values()), list(metadata.values()))
        self.assertEqual({
            name for name in self.METADATA if name != 'speed'},
            set(self.METADATA) & set(metadata))

    def test_free_keys(self):
        for value in self.VALUES:
            for parts in self.anonymize(
                    {f'{prefix}{key}': value for key in self.KEYS
                     for prefix in ('', 'aggregate_instance_extra_specs:')} |
                    {'accel:device_profile': value},
                    dict.fromkeys(self.KEYS, value),
                    dict.fromkeys(('customer', 'acme:4711', '4711'), value)):
                for name, new in parts.items():
                    self.assertNotRegex(
                        f'{name} {new}', r'(?<!\d)-?4?7?-?4711|47\.11|\b47\b')

    def test_equal_ones_stay_equal(self):
        specs, metadata, _tags = self.anonymize(
            {'aggregate_instance_extra_specs:rack.47': '4711'},
            {'rack.47': '4711', 'row': '4711'})
        name, = set(metadata) & {key.partition(':')[2] for key in specs}
        self.assertEqual(set(specs.values()), set(metadata.values()))


class KeyTest(base.TestCase):

    def test_names_stay(self):
        """In a cloud that has changed, and not with another key."""
        later = dataclasses.replace(
            CLOUD, hosts=(host('acme-0'), *CLOUD.hosts[1:]),
            servers=(dataclasses.replace(
                CLOUD.servers[0], uuid=uuids.third, name='acme-new'),
                *CLOUD.servers))
        before, after, other = (
            codec.encode(anonymize.replace(cloud, key).cloud)
            for cloud, key in ((CLOUD, b'key'), (later, b'key'),
                               (CLOUD, b'other')))
        self.assertEqual(before['flavors'], after['flavors'])
        self.assertEqual(before['network_agents'], after['network_agents'])
        self.assertEqual(before['groups'], after['groups'])
        self.assertEqual(1, sum(
            each in after['hosts'] for each in before['hosts']))
        for field in ('hosts', 'servers', 'flavors'):
            for each in before[field]:
                self.assertNotIn(each, other[field])
        names = {each['uuid']: each['name'] for each in after['servers']}
        for each in before['servers']:
            self.assertEqual(each['name'], names[each['uuid']])

    def test_numbers_are_unique(self):
        with mock.patch.object(anonymize, 'KEYED_NUMBERS', 3):
            cloud = anonymize.replace(CLOUD, b'key').cloud
        self.assertEqual(2, len({host.name for host in cloud.hosts}))


class DecisionTest(base.TestCase):

    EXAMPLES = ('aggregates', 'availability-zones', 'pci-passthrough',
                'io-numa', 'hyper-converged', 'ports-fill-up')

    def test_verdicts(self):
        kinds = set()
        for name, path in examples.find().items():
            if path.stem not in self.EXAMPLES:
                continue
            cloud = source.load(str(path))
            verdicts = self.verdicts(cloud)
            self.assertEqual(
                verdicts, self.verdicts(anonymize.replace(cloud).cloud), name)
            kinds.update(refusal[0] for of_request in verdicts
                         for host in of_request[-1] for refusal in host[-1])
        self.assertGreater(len(kinds), 5, kinds)

    @staticmethod
    def verdicts(cloud):
        found = []
        with start.started(cloud) as state:
            chosen = [subject.flavor(cloud, state, flavor.id)
                      for flavor in cloud.flavors]
            chosen += [subject.server(cloud, state, server.uuid)
                       for server in cloud.servers]
            for each in chosen:
                explained = explanation.explain(state, each, relax_seconds=0)
                placed = explained.placement
                found.append((
                    each.requested.flavor.vcpus, each.requested.flavor.memory,
                    explained.fits, placed.hosts_left, len(placed.unknown),
                    [requirement.hosts_missing_it for requirement
                     in placed.requirements],
                    sorted((host.passes, len(host.misses), sorted(
                        (refusal.filter, _LABEL.sub('=', refusal.key),
                         refusal.rank, refusal.raised, refusal.kind)
                        for refusal in host.refusals))
                        for host in explained.hosts)))
        return sorted(found)


class AnonymizeTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.cloud = anonymize.replace(CLOUD).cloud

    def test_same_everywhere(self):
        cloud = self.cloud
        self.assertEqual({f'host{number}' for number in range(1, 6)}, {
            *(each.name for each in cloud.hosts), cloud.moves[0].target,
            *(name for each in cloud.missing for name in each.hosts),
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
                3, port.physnet, 'False')),
            (of_port.id, of_port.port, of_port.numa_policy, (
                len(of_port.specs[0]), of_port.specs[0]['physical_network'],
                of_port.specs[0]['remote_managed'])))
        self.assertIsNotNone(flavored.alias)
        self.assertEqual((first.uuid,), cloud.groups[0].members)
        self.assertEqual(cloud.groups[0].uuid, first.group)
        self.assertEqual({'group': (first.group,)}, first.hints)
        self.assertEqual({'different_host': (first.uuid,)}, second.hints)
        self.assertEqual(first.project, second.project)
        self.assertEqual(32, len(first.project))
        aggregate, = cloud.aggregates
        self.assertEqual(
            first.project,
            aggregate.metadata['filter_tenant_id'].split(',')[0])
        self.assertIn(f'num_proj_{first.project}', mine.stats)
        names = aggregate.metadata['instance_type'].split(',')
        self.assertEqual((first.flavor.name, 2), (names[0], len(set(names))))
        root, ledger, _other, agent = mine.providers
        self.assertEqual((f'{mine.hypervisor}_{agent.uuid[:8]}', root.uuid),
                         (agent.name, agent.parent))
        self.assertEqual((mine.uuid, mine.hypervisor), (root.uuid, root.name))
        self.assertEqual(
            (ledger_names.provider_uuid(mine.uuid), root.uuid,
             f'{mine.hypervisor}_nfv_ledger'),
            (ledger.uuid, ledger.parent, ledger.name))
        self.assertEqual(ledger.uuid, mine.devices[0].tags['rp_uuid'])
        physnet = first.ports[0].physnet
        self.assertEqual(
            {'nfv_node0', 'nfv_vswitch', physnet}, mine.nodes[0].physnets)
        self.assertEqual(physnet, mine.devices[0].tags['physical_network'])
        self.assertEqual(
            {'HW_CPU_X86_AVX2', f'CUSTOM_PHYSNET_{physnet.upper()}'},
            root.traits)

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
        self.assertEqual({'cell1', 'cell2', 'cell0', ''}, {
            each.cell for each in (*cloud.servers, *cloud.missing)})
        for one, other in zip(CLOUD.hosts, cloud.hosts):
            self.assertEqual(one.network, other.network)
            self.assertEqual(one.devices[0].address, other.devices[0].address)
            self.assertEqual(
                one.nodes, tuple(dataclasses.replace(
                    node, physnets=one.nodes[0].physnets)
                    for node in other.nodes))
        self.assertEqual(
            [each.kind for each in CLOUD.missing],
            [each.kind for each in cloud.missing])
        self.assertEqual({''}, {each.text for each in cloud.missing})
        cell, silent, host, server, _neutron = cloud.missing
        first = next(each for each in cloud.servers if each.host)
        self.assertEqual(cell.cell, first.cell)
        self.assertNotEqual(cell.cell, silent.cell)
        self.assertNotEqual(cell.uuids, silent.uuids)
        self.assertNotIn(host.hosts[0], {each.name for each in cloud.hosts})
        self.assertEqual((first.uuid,), server.uuids)

    def test_networks_with_names_like_labels(self):
        """A label is no more than the options say, and stays a label."""
        labels = {'sw', 'n0', 'n12', 'nfv_osd'}
        names = {'swift', 'north', 'n', 'n0x'}
        host = dataclasses.replace(CLOUD.hosts[0], nodes=(
            dataclasses.replace(CLOUD.hosts[0].nodes[0],
                                physnets=frozenset(labels | names)),))
        cloud = anonymize.replace(dataclasses.replace(
            CLOUD, hosts=(host,), options={'nfv_sched': {
                'vswitch_label': 'sw', 'node_label_prefix': 'n'}})).cloud
        options = cloud.options['nfv_sched']
        found = cloud.hosts[0].nodes[0].physnets
        self.assertEqual(set(), (names | labels) & found)
        self.assertEqual(len(labels | names), len(found))
        prefix = options['node_label_prefix']
        self.assertLess(
            {options['vswitch_label'], f'{prefix}0', f'{prefix}12'}, found)
        self.assertEqual(1, len(
            [name for name in found if name.startswith('nfv_')]))

    def test_hosts_of_unread_cells(self):
        hosts = (*CLOUD.hosts, dataclasses.replace(
            CLOUD.hosts[0], uuid=uuids.other, cell='acme: far one'))
        cloud = anonymize.replace(dataclasses.replace(
            CLOUD, hosts=hosts, missing=(snapshot.Missing(
                kind=_Kind.CELL, cell='acme: far one'),))).cloud
        missing, = cloud.missing
        self.assertNotIn('acme', missing.cell)
        self.assertEqual(1, sum(
            host.cell == missing.cell for host in cloud.hosts))

    def test_ironic(self):
        """The name of a node is its UUID."""
        host = dataclasses.replace(
            CLOUD.hosts[0], hypervisor=uuids.acme, uuid=uuids.acme)
        cloud = anonymize.replace(dataclasses.replace(
            CLOUD, hosts=(host,), consumers={uuids.move: {uuids.acme: {}}},
        )).cloud
        host, = cloud.hosts
        self.assertEqual([{host.uuid}, {host.uuid}], [
            set(cloud.consumers[cloud.moves[0].uuid]),
            *(set(each.allocations) for each in cloud.servers
              if each.allocations)])

    def test_another_time_another_name(self):
        self.assertNotEqual(
            self.cloud.groups[0].uuid,
            anonymize.replace(CLOUD).cloud.groups[0].uuid)

    def test_nothing_there(self):
        empty = snapshot.Cloud(taken='2026-01-02T03:04:05Z')
        self.assertEqual(dataclasses.replace(empty, anonymous=True),
                         anonymize.replace(empty).cloud)
