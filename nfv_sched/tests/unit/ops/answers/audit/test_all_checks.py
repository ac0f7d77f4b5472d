# SPDX-License-Identifier: Apache-2.0
"""A sound cloud has no findings, and each fault is found."""

import dataclasses
import pathlib
import re
import shlex

import nfv_sched
from nfv_sched.ops.answers.audit import all_checks
from nfv_sched.ops.answers.audit import hosts
from nfv_sched.ops.answers.audit import placement
from nfv_sched.ops.answers.audit import values
from nfv_sched.ops.answers.hosts import view
from nfv_sched.ops.cloud import snapshot
from nfv_sched.tests import base
from nfv_sched.tests import snapshots
from nfv_sched.tests.unit.ops.answers.audit import clouds
from nfv_sched.tests.unit.ops.answers.audit import faults

_Kind = snapshot.MissingKind


def kinds(cloud, **fields):
    return [found.kind for found in all_checks.findings(cloud, **fields)]


def _missing(kind, uuid):
    return snapshot.Missing(kind=kind, uuids=(uuid,))


class FaultsTest(base.TestCase):

    def test_sound(self):
        self.assertEqual([], all_checks.findings(clouds.sound()))

    def test_each_fault(self):
        """Wherever it can be, it is found, and nothing else is."""
        for name, fault in faults.FAULTS.items():
            spots = list(fault.spots(clouds.sound()))
            self.assertTrue(spots, name)
            for spot in spots[:4]:
                found = all_checks.findings(fault.plant(spot))
                where = f'{name}: {spot.host.name} {found}'
                self.assertIn((fault.kind, spot.host.name), {
                    (each.kind, each.host) for each in found
                    if not fault.of_server
                    or each.server_id == spot.server.uuid
                } | {(each.kind, spot.host.name) for each in found
                     if each.kind == values.ALLOCATION_ELSEWHERE}, where)
                self.assertEqual(set(), {each.kind for each in found} - {
                    fault.kind, *fault.allowed}, where)

    def test_devices_in_placement(self):
        """Those of a server are those that Placement allocates to it."""
        cloud, _simulation = clouds.of_text("""\
pci_in_placement: true
pci_aliases: {qat: {type: standard, resource_class: CUSTOM_QAT}}
hosts:
- name: h
  cores: 8
  memory: 16 GiB
  shared_cores_per_node: 1
  pci_devices:
  - {type: standard, node: 0, count: 11, vendor: "8086", product: 37c8,
     resource_class: CUSTOM_QAT}
flavors:
  q: {vcpus: 1, memory: 512, extra_specs: {"pci_passthrough:alias": "qat:10"}}
steps:
- {boot: a, flavor: q}
""")
        self.assertEqual([], all_checks.findings(cloud))
        server, = cloud.servers
        root, *cards = cloud.hosts[0].providers
        spare, = (card for card in cards
                  if card.uuid not in server.allocations)
        first = next(card for card in cards if card is not spare)
        spot = faults.Spot(cloud, cloud.hosts[0], server)
        self.assertEqual([values.DEVICE_DIFFERS] * 2, kinds(spot.change(
            server={'allocations': {
                (spare.uuid if uuid == first.uuid else uuid): amounts
                for uuid, amounts in server.allocations.items()}})))
        self.assertEqual([values.OVERUSED], kinds(spot.change(host={
            'providers': spot.with_inventory(
                'CUSTOM_QAT', -1, first.uuid)})))
        # A device that is kept from further servers is not used too much.
        self.assertEqual([], kinds(spot.change(host={'providers': tuple(
            dataclasses.replace(card, inventories={
                name: dataclasses.replace(each, reserved=each.total)
                for name, each in card.inventories.items()})
            if card in cards else card for card in (root, *cards))})))

    def test_device_of_another_tag(self):
        """Tags are compared if they are known of the device."""
        cloud = clouds.sound()
        spot = next(faults.FAULTS['other product'].spots(cloud))
        request, = spot.server.pci_requests
        for tags, found in (({'physical_network': 'b'}, True),
                            ({'physical_network': 'A'}, False), ({}, False)):
            changed = faults.Spot(spot.change(host={'devices': tuple(
                dataclasses.replace(device, tags=tags)
                for device in spot.host.devices)}), spot.host, spot.server)
            self.assertEqual(
                [values.DEVICE_DIFFERS] * found, kinds(changed.change(
                    server={'pci_requests': (dataclasses.replace(
                        request, specs=tuple(
                            {**spec, 'physical_network': 'a'}
                            for spec in request.specs)),)})))

    def test_ratio(self):
        """A ratio allows more than there is; pages of a size do not."""
        cloud = clouds.sound()
        for name, found in (('fewer pages', True), ('less memory', False),
                            ('memory of the host', False)):
            fault = faults.FAULTS[name]
            broken = fault.plant(next(fault.spots(cloud)))
            self.assertEqual(found, values.OVERUSED in kinds(
                dataclasses.replace(broken, hosts=tuple(
                    dataclasses.replace(host, memory_ratio=1.5)
                    for host in broken.hosts))), name)
        self.assertEqual(['96 (1.5 x 64)', '10'], [
            view.limit_text(64, 1.5), view.limit_text(10, 1.05)])

    def test_subnets(self):
        """Of the whole cloud they are told where some are served."""
        cloud = snapshots.cloud(
            [snapshots.host('one'), snapshots.host('two')], network_agents=[
                snapshot.NetworkAgent(id='a', kind='dhcp', host='one',
                                      serves=('n',))],
            network_services=[snapshot.NetworkService(
                id=uuid, kind='dhcp', subnets=count)
                for uuid, count in (('n', 250), ('m', 600))])
        self.assertEqual([], all_checks.findings(cloud))
        cloud.network_services.append(snapshot.NetworkService(
            id='o', kind='dhcp', subnets=1))
        self.assertEqual(
            [('one', '851 subnets in all, more than 850')], [
                (each.host, each.finding)
                for each in all_checks.findings(cloud)])

    def test_each_kind_has_a_fault(self):
        self.assertEqual(
            set(values.KINDS) - {values.LEFT_BEHIND},
            {fault.kind for fault in faults.FAULTS.values()})

    def test_each_kind_is_explained(self):
        path = pathlib.Path(nfv_sched.__file__).parents[1] / (
            'doc/source/tasks/check-records.rst')
        self.assertEqual(list(values.KINDS), re.findall(
            r'^   \* - ``([a-z-]+)``$', path.read_text(), re.MULTILINE))

    def test_commands(self):
        """Findings of these kinds have some, whatever the cloud."""
        moved = {values.POLICY, values.REMOTE_DEVICE, values.REMOTE_NETWORK,
                 values.PINNED_TWICE, values.NOT_DEDICATED, values.PAGES,
                 values.DEVICE_MISSING, values.DEVICE_EXTRA,
                 values.DEVICE_DIFFERS}
        allocated = {values.ALLOCATION_MISSING, values.ALLOCATION_DIFFERS,
                     values.ALLOCATION_ELSEWHERE, values.ALLOCATION_ORPHAN}
        for fault in faults.FAULTS.values():
            cloud = clouds.sound()
            cloud = fault.plant(list(fault.spots(cloud))[0])
            for each in all_checks.findings(cloud):
                programs = {words[:3] for words in each.commands}
                expected = set()
                if each.kind in moved:
                    expected = {('nfv-sched', 'host', 'drain')}
                elif each.kind in allocated:
                    expected = {('nova-manage', 'placement', (
                        'heal_allocations' if each.server_id and each.kind
                        != values.ALLOCATION_ELSEWHERE else 'audit'))}
                elif each.kind == values.UNMAPPED:
                    expected = {('nova-manage', 'cell_v2', 'discover_hosts')}
                self.assertEqual(expected, programs, each)
                for words in each.commands:
                    self.assertIn(shlex.join(words), each.what_to_do)

    def test_removed_allocations(self):
        """Nova's command passes over classes that it does not know."""
        for allocations, words in (
                ({'a': ['PCPU', 'CUSTOM_X']}, 'nova-manage placement audit '
                 '--resource_provider a --delete'),
                ({'a': ['PCPU'], 'b': ['CUSTOM_X']},
                 'openstack --os-placement-api-version 1.28 resource provider '
                 'allocation unset --provider a --provider b c')):
            self.assertEqual((tuple(words.split()),),
                             placement.removal('c', allocations))

    def test_ports_with_allocations(self):
        """Nova would not allocate their bandwidth again."""
        cloud = clouds.sound()
        for has_allocation, commands in ((True, 0), (False, 1)):
            broken = dataclasses.replace(cloud, servers=tuple(
                dataclasses.replace(server, allocations={}, ports=tuple(
                    dataclasses.replace(
                        port, has_allocation=has_allocation)
                    for port in server.ports or ()))
                for server in cloud.servers))
            findings = [each for each in all_checks.findings(broken)
                        if each.kind == values.ALLOCATION_MISSING and any(
                            server.uuid == each.server_id and server.ports
                            for server in broken.servers)]
            self.assertTrue(findings)
            self.assertEqual({commands}, {
                len(each.commands) for each in findings})


class SinceTest(base.TestCase):
    """What a finding cannot be older than."""

    CREATED, MOVED, LATER = '2026-01-01', '2026-02-01', '2026-03-01'

    def since(self, kind, since='', **fields):
        server = snapshots.server('a', **{'created': self.CREATED, **fields})
        site, = hosts.sites(
            snapshots.cloud([snapshots.host()], [server]))
        return site.finding(kind, 'text', server, since).since

    def test_servers(self):
        """On its host since its move; elsewhere left by any earlier one."""
        for kind in (values.POLICY, values.NOT_IN_RECORD,
                     values.ALLOCATION_MISSING):
            self.assertEqual(self.CREATED, self.since(kind))
            self.assertEqual(self.MOVED, self.since(kind, moved=self.MOVED))
        for kind in (values.DEVICE_GONE, values.LEFT_BEHIND,
                     values.ALLOCATION_ELSEWHERE):
            self.assertEqual(self.CREATED, self.since(kind, moved=self.MOVED))
        self.assertIsNone(self.since(values.POLICY, created=''))

    def test_the_latest_counts(self):
        for since, wanted in ((self.CREATED, self.MOVED),
                              (self.LATER, self.LATER)):
            self.assertEqual(wanted, self.since(
                values.POLICY, since, moved=self.MOVED))

    def test_stale_move(self):
        """Nobody has gone on with it since."""
        for gone in (False, True):
            cloud = clouds.sound()
            server = next(each for each in cloud.servers if each.host)
            move = snapshot.Migration(
                uuid='m', kind='live-migration', status='running',
                server=faults.NOBODY if gone else server.uuid,
                source=server.host, target='x', updated=self.LATER)
            found = all_checks.findings(dataclasses.replace(
                cloud, moves=(*cloud.moves, move)))
            self.assertEqual([(values.STALE_MOVE, self.LATER)], [
                (each.kind, each.since) for each in found])

    def test_pinned_twice(self):
        """Not before the later of them came."""
        fault = next(each for each in faults.FAULTS.values()
                     if each.kind == values.PINNED_TWICE)
        cloud = fault.plant(next(iter(fault.spots(clouds.sound()))))
        found, = (each for each in all_checks.findings(cloud)
                  if each.kind == values.PINNED_TWICE)
        later = next(server for server in cloud.servers
                     if server.name in found.finding.split()[-1])
        self.assertNotEqual(later.uuid, found.server_id)
        cloud = faults.replace_server(cloud, later, moved=self.LATER)
        found, = (each for each in all_checks.findings(cloud)
                  if each.kind == values.PINNED_TWICE)
        self.assertEqual(self.LATER, found.since)


class LeftBehindTest(base.TestCase):
    """What is on a host that is down, and gone when it is up again."""

    def findings(self, *steps):
        cloud, _simulation = clouds.after([
            {'boot': 'a', 'flavor': 'vf_strict', 'host': 'host1'},
            {'boot': 'b', 'flavor': 'huge', 'host': 'host1'}, *steps])
        return all_checks.findings(cloud)

    def test_evacuated(self):
        found = self.findings({'evacuate': 'a'})
        self.assertEqual({(values.LEFT_BEHIND, 'host1')},
                         {(each.kind, each.host) for each in found})
        text = '\n'.join(each.finding for each in found)
        for part in ('CPU', '1024 MEMORY_MB, 2 PCPU', 'device 0000:'):
            self.assertIn(part, text)
        self.assertEqual([], self.findings(
            {'evacuate': 'a'}, {'host_up': 'host1'}))

    def test_evacuation_that_is_known(self):
        cloud, _simulation = clouds.after([
            {'boot': 'a', 'flavor': 'pinned', 'host': 'host1'},
            {'evacuate': 'a'}])
        server, = cloud.servers
        self.assertEqual({values.LEFT_BEHIND}, set(kinds(dataclasses.replace(
            cloud, moves=(snapshot.Migration(
                uuid='m', server=server.uuid, kind='evacuation',
                status='done', source='host1', target=server.host),)))))


class InFlightTest(base.TestCase):
    """While Nova works on a server, nothing false is said."""

    def moved(self, cloud, server, **fields):
        return faults.replace_server(cloud, server, **fields)

    def test_task(self):
        """Its record, its host's and Placement may differ."""
        cloud = clouds.sound()
        for server in cloud.servers:
            for fields in ({'allocations': {}}, {'nodes': None},
                           {'allocations': {cloud.hosts[0].uuid: {
                               'MEMORY_MB': 1}}}):
                self.assertEqual([], [
                    found for found in all_checks.findings(self.moved(
                        cloud, server, task='migrating', **fields))
                    if found.server_id == server.uuid
                    or found.kind not in (values.UNKNOWN_GUEST,
                                          values.LEDGER)])

    def test_deleted(self):
        """Its allocation is gone first, then its row."""
        cloud = clouds.sound()
        for server in cloud.servers:
            if server.state != 'resized':
                self.assertLessEqual({
                    found.kind for found in all_checks.findings(self.moved(
                        cloud, server, state='deleted', allocations={}))
                }, {values.UNKNOWN_GUEST, values.LEDGER})

    def test_subnets_in_all(self):
        """Said once, of the first host with DHCP."""
        cloud = clouds.sound()
        names = [host.name for host in cloud.hosts[1:]]
        each = 850 // len(names) + 1
        self.assertLess(each, 250)
        found, = all_checks.findings(dataclasses.replace(
            cloud, network_agents=tuple([snapshot.NetworkAgent(
                id=name, kind=snapshot.DHCP, host=name, serves=(name,))
                for name in names]),
            network_services=tuple([snapshot.NetworkService(
                id=name, kind=snapshot.DHCP, subnets=each)
                for name in names])))
        self.assertEqual((values.SUBNETS, names[0]), (found.kind, found.host))

    def test_live_migration(self):
        """What the target has claimed already is no unknown guest's."""
        before, _ = clouds.after([
            {'boot': 'a', 'flavor': 'pinned', 'host': 'host1'}])
        after, _ = clouds.after([
            {'boot': 'a', 'flavor': 'pinned', 'host': 'host1'},
            {'live_migrate': 'a', 'host': 'host2'}])
        source, target = before.hosts[0], after.hosts[1]
        server, there = before.servers[0], after.servers[0]
        cloud = dataclasses.replace(
            before, hosts=(source, target, *before.hosts[2:]),
            consumers={'move': server.allocations})
        cloud = self.moved(cloud, server, task='migrating',
                           allocations=there.allocations)
        self.assertIn(values.UNKNOWN_GUEST, kinds(cloud))
        move = snapshot.Migration(
            uuid='move', server=server.uuid, kind='live-migration',
            status='running', source='host1', target='host2',
            before=server.nodes, after=there.nodes)
        self.assertEqual([], all_checks.findings(dataclasses.replace(
            cloud, moves=(move,))))
        # Even if Nova does not say what it has there.
        self.assertEqual([], all_checks.findings(dataclasses.replace(
            cloud, moves=(dataclasses.replace(move, after=None),))))

    def test_not_confirmed(self):
        """It holds what it had on the source, and nothing else does."""
        cloud = clouds.sound()
        move, = cloud.moves
        self.assertIn(values.UNKNOWN_GUEST,
                      kinds(dataclasses.replace(cloud, moves=())))
        self.assertIn(values.ALLOCATION_ORPHAN,
                      kinds(dataclasses.replace(cloud, moves=())))
        source, = (host for host in cloud.hosts if host.name == move.source)
        spot = faults.Spot(cloud, source)
        node = source.nodes[0]
        self.assertEqual([values.UNKNOWN_GUEST], kinds(spot.change(host={
            'nodes': spot.with_node(
                0, pinned=node.pinned | {min(node.free)})})))

    def test_not_confirmed_on_the_same_host(self):
        """The devices that it had before are not near it, and need not be."""
        apart = 0
        for flavor in ('mapped', 'on_osd'):
            cloud, _ = clouds.after([
                {'boot': 'a', 'flavor': 'vf_strict', 'host': 'host1'},
                {'resize': 'a', 'flavor': flavor, 'same_host': True,
                 'confirm': False}])
            server, = cloud.servers
            self.assertEqual('resized', server.state)
            nodes = {part.host_node for part in server.nodes}
            held = [device for device in cloud.hosts[0].devices
                    if device.server == server.uuid]
            self.assertEqual(1, len(held))
            apart += held[0].node not in nodes
            self.assertEqual([], all_checks.findings(cloud))
        self.assertEqual(1, apart)


class UnreadTest(base.TestCase):
    """What was not read is not found wrong."""

    def test_parts(self):
        cloud = clouds.sound()
        without = dataclasses.replace(
            cloud, consumers=None, hosts=tuple(
                dataclasses.replace(host, providers=(), network=None)
                for host in cloud.hosts), servers=tuple(
                    dataclasses.replace(server, ports=None, allocations=None)
                    for server in cloud.servers))
        self.assertEqual([], all_checks.findings(without))
        self.assertEqual([], all_checks.findings(dataclasses.replace(
            cloud, moves=None, consumers=None)))
        self.assertNotIn(values.UNKNOWN_GUEST, kinds(dataclasses.replace(
            cloud, hosts=tuple(dataclasses.replace(host, nodes=None)
                               for host in cloud.hosts))))

    def test_placement_read_in_part(self):
        """A host without providers may be one that could not be read."""
        cloud = clouds.sound()
        host = cloud.hosts[0]
        unread = faults.replace_host(dataclasses.replace(
            cloud, missing=(snapshot.Missing(
                kind=_Kind.PROVIDERS, uuids=(host.uuid,)),),
            servers=tuple(
                dataclasses.replace(server, allocations=None)
                if server.host == host.name else server
                for server in cloud.servers)), host, providers=())
        self.assertEqual([], all_checks.findings(unread))
        idle = [server for server in unread.servers
                if server.host != host.name]
        unread = dataclasses.replace(unread, servers=tuple(idle), groups=())
        self.assertNotIn(values.INVENTORY, kinds(unread))
        self.assertIn(values.INVENTORY, kinds(
            dataclasses.replace(unread, missing=())))

    def test_unread_cells(self):
        """Only their hosts are left out."""
        cloud = clouds.sound()
        one, *others = cloud.hosts
        every = (dataclasses.replace(one, cell='cell1'), *(
            dataclasses.replace(host, cell='cell10') for host in others))
        for cell, left in (('cell1', every[1:]), ('cell10', every[:1]),
                           ('cell', every)):
            for kind in _Kind.CELL, _Kind.SILENT_CELL:
                self.assertEqual(list(left), hosts.readable(
                    dataclasses.replace(cloud, hosts=every, missing=(
                        snapshot.Missing(kind=kind, cell=cell, text='cell1'),
                    ))), cell)
        for kind in set(_Kind) - {
                _Kind.CELL, _Kind.SILENT_CELL, _Kind.OTHER}:
            self.assertEqual(list(every), hosts.readable(
                dataclasses.replace(cloud, hosts=every, missing=(
                    snapshot.Missing(
                        kind=kind, text='cell1',
                        hosts=('Cell cell1 cannot be read: x',)),))))

    def test_unread_records(self):
        """What cannot be read is not taken for gone, by its UUID alone."""
        cloud = clouds.sound()
        gone = next(server for server in cloud.servers if server.devices)
        uuid, move = gone.uuid, faults.NOBODY
        cloud = dataclasses.replace(
            cloud, servers=tuple(server for server in cloud.servers
                                 if server != gone),
            consumers={uuid: gone.allocations, move: gone.allocations})
        orphan, device = values.ALLOCATION_ORPHAN, values.DEVICE_GONE
        for missing, remaining in (
                ((), {orphan, device}),
                ((_missing(_Kind.SERVER, uuid),
                  _missing(_Kind.MIGRATION, move)), set()),
                ((_missing(_Kind.SERVER, uuid),), {orphan}),
                ((_missing(_Kind.MIGRATION, move),), {orphan, device}),
                ((snapshot.Missing(kind=_Kind.NEUTRON, text=f'{uuid} {move}'),
                  snapshot.Missing(kind=_Kind.HOST, hosts=(uuid, move))),
                 {orphan, device})):
            self.assertEqual(remaining, {orphan, device} & set(kinds(
                dataclasses.replace(cloud, missing=missing))), missing)

    def test_node_that_is_gone(self):
        cloud = clouds.sound()
        host = cloud.hosts[0]
        found = all_checks.findings(faults.replace_host(
            cloud, host, nodes=host.nodes[:1]))
        self.assertIn((values.NOT_IN_RECORD,
                       'on node 1, which the host does not report'),
                      {(each.kind, each.finding) for each in found})


class FloatingTest(base.TestCase):

    def cloud(self, shared):
        node = snapshots.node(shared=shared)
        pins = sorted(node.dedicated)[:2]
        return snapshots.cloud(
            [snapshots.host(nodes=(dataclasses.replace(
                node, pinned=frozenset(pins)),))],
            [snapshots.server(
                'pinned', {0: pins}, fields={'cpu_policy': 'dedicated'}),
             snapshots.server('plain')])

    def test_no_shared_cpus(self):
        self.assertNotIn(values.FLOATING, kinds(self.cloud(1)))
        found, = (each for each in all_checks.findings(self.cloud(0))
                  if each.kind == values.FLOATING)
        self.assertEqual('plain', found.server)
