# SPDX-License-Identifier: Apache-2.0
"""The ledger in Placement is what Nova and Neutron make of it.

Nova's database and Placement are real; the publisher reaches Placement over
HTTP.  Neutron is a server of the test's own, whose ports are bound to the
hosts where the test wants them.
"""

import contextlib
import io
import pathlib
import threading
import time

import fixtures
from nova import context
from nova import objects
from nova.scheduler import request_filter
from oslo_utils.fixture import uuidsentinel as uuids

from nfv_sched.cmd import ledger as command
from nfv_sched.ledger import client as ledger_client
from nfv_sched.ledger import metrics
from nfv_sched.ledger import publisher
from nfv_sched.limits import names
from nfv_sched.tests.functional import base
from nfv_sched.tests.functional import network
from nfv_sched.tests.unit.limits import neutron_api

Action = publisher.Action


class LedgerTestCase(network.LedgerCloud, base.CloudTestCase):
    """A cloud with a limit of 20 ports, 2 of them physical, and 100 rules."""

    def configure(self):
        super().configure()
        self.start_apis(neutron_api.NeutronAPI())
        self.flags(vswitch_ports_per_node=20, vswitch_physical_ports=2,
                   security_rules_per_node=100, group='nfv_sched')

    def setUp(self):
        super().setUp()
        self.log = self.useFixture(fixtures.FakeLogger('nfv_sched'))

    def publisher(self, *hosts):
        for host in hosts:
            self.start_host(host)
        made = publisher.Publisher()
        self.addCleanup(made.close)
        return made

    def publish(self, made=None, **kwargs):
        """Do a round; returns what became of each host.

        What Neutron shows it has shown for long.
        """
        made = made or self.publisher()
        with network.undoubted():
            done = made.round(**kwargs)
        self.assertEqual([], done.failures)
        return {report.host: report.action for report in done.hosts}

    def inventory(self, host, resource_class=names.PORTS):
        """Total and reserved, None if there is no such provider."""
        answer = self.placement.get(
            f'/resource_providers/{self.provider(host)}/inventories')
        if answer.status == 404:
            return None
        inventory = answer.body['inventories'].get(resource_class)
        return inventory and (inventory['total'], inventory['reserved'])

    def traits(self, host):
        return self.placement.get(
            f'/resource_providers/{self.provider(host)}/traits',
            version='1.6').body['traits']

    def allocate(self, consumer, host, ports=0, rules=0, status=204):
        resources = {name: amount for name, amount in (
            (names.PORTS, ports), (names.RULES, rules)) if amount}
        answer = self.placement.put(f'/allocations/{consumer}', {
            'allocations': {
                self.provider(host): {'resources': resources}},
            'consumer_generation': None, 'project_id': uuids.project,
            'user_id': uuids.user}, version='1.28')
        self.assertEqual(status, answer.status, answer.body)

    def bind(self, host, count=1, device=None, owner='compute:nova',
             groups=(), vnic_type='normal', project=''):
        """Let Neutron report ports on a host, and Nova note servers' ones."""
        ports = [neutron_api.port(
            owner=owner, device=device, host=host, groups=groups,
            vnic_type=vnic_type, project=project) for _ in range(count)]
        self.neutron_api.ports.extend(ports)
        if device and owner.startswith('compute:'):
            self.plug(ports, device)
        return ports

    @staticmethod
    def plug(ports, instance):
        """Let Nova note that ports are a server's, and no other's."""
        for port in ports:
            interface = objects.VirtualInterface.get_by_uuid(
                context.get_admin_context(), port['id'])
            if interface is not None:
                interface.destroy()
            interface = objects.VirtualInterface(
                context.get_admin_context(), instance_uuid=instance,
                address=f'{port["mac_address"]}/{port["id"]}',
                uuid=port['id'])
            interface.create()

    def group(self, rules):
        group = getattr(uuids, f'group{len(self.neutron_api.rules)}')
        self.neutron_api.rules.extend(
            neutron_api.rule(group) for _ in range(rules))
        return group


class PublicationTest(LedgerTestCase):
    def test_first_round(self):
        self.start_two()
        self.bind('host1', 3, owner='network:dhcp')
        self.assertEqual({'host1': Action.CREATED, 'host2': Action.CREATED},
                         self.publish())
        self.assertEqual((20, 5), self.inventory('host1'))
        self.assertEqual((20, 2), self.inventory('host2'))
        self.assertEqual((100, 0), self.inventory('host1', names.RULES))
        provider = self.placement.get(
            f'/resource_providers/{self.provider("host1")}',
            version='1.14').body
        self.assertEqual('host1_nfv_ledger', provider['name'])
        self.assertEqual(self.compute_rp_uuids['host1'],
                         provider['parent_provider_uuid'])
        self.assertEqual([names.TRAIT], self.traits('host1'))
        inventory = self.placement.get(
            f'/resource_providers/{self.provider("host1")}/inventories/'
            f'{names.PORTS}').body
        self.assertEqual((1, 20, 1, 1.0), tuple(inventory[key] for key in (
            'min_unit', 'max_unit', 'step_size', 'allocation_ratio')))

    def test_found_when_complete(self):
        """Whoever finds a provider by its trait finds what is in it."""
        self.start_host('host1')
        found = []

        def look(method, path):
            if method == 'PUT' and path.endswith('/traits'):
                found.append(self.inventory('host1'))
                found.append(self.inventory('host1', names.RULES))

        self.placement_api.before = look
        self.publish()
        self.assertEqual([(20, 2), (100, 0)], found)

    def test_nothing_changes(self):
        """The second round writes nothing and hardly reads anything."""
        for host in ('host1', 'host2'):
            self.start_host(host)
            self.bind(host, 2, owner='network:dhcp')
        made = self.publisher()
        # After that many rounds a host is read again, whatever has changed.
        self.useFixture(fixtures.MockPatch(
            'random.randint', return_value=publisher.ROUNDS))
        self.publish(made)
        self.publish(made)  # finds the classes of NUMA nodes
        self.placement_api.requests.clear()
        self.assertEqual(
            {'host1': Action.UNCHANGED, 'host2': Action.UNCHANGED},
            self.publish(made))
        self.assertEqual(
            [('GET', f'/resource_providers?required={names.TRAIT}')],
            self.placement_api.requests)
        # Another instance has to read, but nothing to write either.
        self.placement_api.requests.clear()
        self.publish()
        self.assertEqual(
            ['PUT /resource_classes/' + names.PORTS,
             'PUT /resource_classes/' + names.RULES,
             'PUT /resource_classes/' + names.DHCP_SERVERS,
             'PUT /resource_classes/' + names.ROUTERS,
             'PUT /traits/' + names.TRAIT],
            [' '.join(request) for request in self.placement_api.writes()])

    def test_nova_leaves_it_alone(self):
        """The periodic update of nova-compute keeps the provider.

        Since 34 Nova marks its own providers with ``OWNER_NOVA``.
        """
        self.start_host('host1')
        root = (f'/resource_providers/{self.compute_rp_uuids["host1"]}'
                '/traits')
        before = self.placement.get(root, version='1.6').body['traits']
        if hasattr(request_filter, 'MIN_COMPUTE_VERSION_OWNER_TRAIT'):
            self.assertIn('OWNER_NOVA', before)
        self.publish()
        self._run_periodics()
        self.computes['host1'].manager.rt.reportclient.clear_provider_cache()
        self._run_periodics()
        self.assertEqual((20, 2), self.inventory('host1'))
        self.assertEqual([names.TRAIT], self.traits('host1'))
        self.assertEqual(set(before), set(self.placement.get(
            root, version='1.6').body['traits']))

    def test_too_little(self):
        """Ports that Neutron suddenly does not show stay reserved."""
        made = self.publisher('host1')
        self.bind('host1', 5, groups=[self.group(10)])
        self.publish(made)
        for resource in 'ports', 'security-group-rules':
            key = resource.replace('-', '_')
            self.neutron_api.faults = {
                resource: lambda handler, query, body, key=key:
                handler.reply({key: []})}
            for _ in range(4):
                self.assertRaises(publisher.RoundError, made.round)
            self.assertEqual((20, 7), self.inventory('host1'))
            self.assertEqual((100, 50), self.inventory('host1', names.RULES))
        self.neutron_api.faults = {}
        self.publish(made)
        self.assertEqual((20, 7), self.inventory('host1'))

    def test_changed_by_hand(self):
        """It is changed back; what is not the ledger's is left alone."""
        made = self.publisher('host1')
        self.publish(made)
        path = f'/resource_providers/{self.provider("host1")}/inventories'
        body = self.placement.get(path).body
        body['inventories'][names.PORTS]['reserved'] = 0
        del body['inventories'][names.RULES]
        body['inventories']['VGPU'] = {'total': 1}
        self.assertEqual(200, self.placement.put(path, body).status)
        self.assertEqual({'host1': Action.CHANGED}, self.publish(made))
        self.assertEqual((20, 2), self.inventory('host1'))
        self.assertEqual((100, 0), self.inventory('host1', names.RULES))
        self.assertEqual((1, 0), self.inventory('host1', 'VGPU'))

    def test_limit_below_what_is_used(self):
        """The total stays above what is allocated; all of it is reserved."""
        made = self.publisher('host1')
        self.publish(made)
        self.allocate(uuids.guest, 'host1', 12, 60)
        self.bind('host1', 12, uuids.guest)
        self.flags(vswitch_ports_per_node=10, security_rules_per_node=50,
                   group='nfv_sched')
        self.assertEqual({'host1': Action.CHANGED}, self.publish(made))
        self.assertEqual((12, 4), self.inventory('host1'))
        self.assertEqual((60, 10), self.inventory('host1', names.RULES))
        self.allocate(uuids.another, 'host1', 1, status=409)
        self.release(uuids.guest)
        self.neutron_api.ports.clear()
        self.publish(made)
        self.assertEqual((10, 2), self.inventory('host1'))
        self.allocate(uuids.another, 'host1', 8)
        self.allocate(uuids.one_more, 'host1', 1, status=409)

    def test_limit_lifted(self):
        """No limit is a huge one; the inventory stays."""
        self.start_host('host1')
        self.bind('host1', 3, owner='network:dhcp')
        made = self.publisher()
        self.publish(made)
        self.flags(vswitch_ports_per_node=0, group='nfv_sched')
        self.publish(made)
        self.assertEqual((names.UNLIMITED, 5), self.inventory('host1'))
        self.allocate(uuids.guest, 'host1', 1000)
        self.flags(vswitch_ports_per_node=20, group='nfv_sched')
        self.publish(made)
        self.assertEqual((1000, 985), self.inventory('host1'))

    def test_host_without_provider(self):
        self.start_two()
        uuid = self.compute_rp_uuids['host2']
        self.placement.delete(f'/resource_providers/{uuid}')
        made = self.publisher()
        for dry_run in (True, False):
            self.assertEqual(
                {'host1': Action.CREATED, 'host2': Action.WAITING},
                self.publish(made, dry_run=dry_run))
        self.computes['host2'].manager.rt.reportclient.clear_provider_cache()
        self._run_periodics()
        self.assertEqual({'host1': Action.UNCHANGED, 'host2': Action.CREATED},
                         self.publish(made))

    def test_left_half_done(self):
        """Another instance died before the trait was set."""
        self.start_host('host1')
        self.publish()
        path = f'/resource_providers/{self.provider("host1")}'
        generation = self.placement.get(path).body['generation']
        self.placement.put(f'{path}/traits', {
            'traits': [], 'resource_provider_generation': generation},
            version='1.6')
        self.bind('host1', owner='network:dhcp')
        self.assertEqual({'host1': Action.CREATED}, self.publish())
        self.assertEqual((20, 3), self.inventory('host1'))
        # Only now the number of DHCP servers.
        self.assertEqual({'host1': Action.CHANGED}, self.publish())
        self.assertEqual({'host1': Action.UNCHANGED}, self.publish())

    def test_name_is_taken(self):
        self.start_two()
        self.assertEqual(201, self.placement.post('/resource_providers', {
            'uuid': uuids.other, 'name': 'host1_nfv_ledger'}).status)
        self.assertEqual({'host1': Action.FAILED, 'host2': Action.CREATED},
                         self.publish())

    def test_trait_of_somebody_else(self):
        self.start_host('host1')
        self.publish()
        self.placement.post('/resource_providers', {
            'uuid': uuids.other, 'name': 'other'})
        self.assertEqual(200, self.placement.put(
            f'/resource_providers/{uuids.other}/traits', {
                'traits': [names.TRAIT], 'resource_provider_generation': 0},
            version='1.6').status)
        self.assertEqual({'host1': Action.UNCHANGED}, self.publish())
        self.assertEqual(200, self.placement.get(
            f'/resource_providers/{uuids.other}').status)

    def test_removed_host(self):
        """Nova removes the provider with the one of the compute node."""
        made = self.publisher('host1', 'host2')
        self.publish(made)
        service = self.admin_api.get_services(
            binary='nova-compute', host='host2')[0]
        self.computes['host2'].stop()
        self.admin_api.api_delete(f'/os-services/{service["id"]}')
        for uuid in (self.provider('host2'), self.compute_rp_uuids['host2']):
            self.assertEqual(404, self.placement.get(
                f'/resource_providers/{uuid}').status)
        self.assertEqual({'host1': Action.UNCHANGED}, self.publish(made))

    def test_left_over(self):
        """A provider whose compute node is gone is emptied, not deleted."""
        made = self.publisher('host1', 'host2')
        self.publish(made)
        self.allocate(uuids.guest, 'host2', 1)
        self.compute_node('host2').destroy()
        self.assertEqual(
            {'host1': Action.UNCHANGED, 'host2_nfv_ledger': Action.IN_USE},
            self.publish(made))
        self.assertEqual((20, 2), self.inventory('host2'))
        self.assertEqual([names.TRAIT], self.traits('host2'))
        self.release(uuids.guest)
        self.assertEqual(
            {'host1': Action.UNCHANGED, 'host2_nfv_ledger': Action.REMOVED},
            self.publish(made))
        self.assertIsNone(self.inventory('host2'))
        self.assertEqual([], self.traits('host2'))
        self.assertEqual([], [
            path for method, path in self.placement_api.requests
            if method == 'DELETE'])
        self.assertEqual({'host1': Action.UNCHANGED}, self.publish(made))

    def test_left_over_whose_root_lives(self):
        """nova-compute finds below its provider what it remembers."""
        made = self.publisher('host1')
        self.publish(made)
        node = self.compute_node('host1')
        node.destroy()
        self.assertEqual({'host1_nfv_ledger': Action.REMOVED},
                         self.publish(made))
        # It makes its compute node again, and reports to Placement.
        self._run_periodics(raise_on_error=True)
        self.assertNotIn('Failed to update', self.stdlog.logger.output)
        self.assertEqual(self.compute_rp_uuids['host1'], (
            self.compute_node('host1').uuid))
        self.assertEqual({'host1': Action.CREATED}, self.publish(made))
        self.assertEqual((20, 2), self.inventory('host1'))

    def test_traits_of_others_stay(self):
        made = self.publisher('host1')
        self.publish(made)
        self.placement.put('/traits/CUSTOM_OTHER', {}, version='1.6')
        path = f'/resource_providers/{self.provider("host1")}/traits'
        body = self.placement.get(path, version='1.6').body
        body['traits'] = ['CUSTOM_OTHER']
        self.placement.put(path, body, version='1.6')
        self.assertEqual({'host1': Action.CREATED}, self.publish(made))
        self.assertEqual({'CUSTOM_OTHER', names.TRAIT},
                         set(self.traits('host1')))
        self.compute_node('host1').destroy()
        self.publish(made)
        self.assertEqual(['CUSTOM_OTHER'], self.traits('host1'))

    def test_cell_is_down(self):
        """What is published for its hosts stays."""
        made = self.publisher('host1', 'host2')
        self.publish(made)

        def fail(context):
            raise RuntimeError('no database')

        with fixtures.MonkeyPatch(
                'nova.objects.ComputeNodeList.get_all', fail):
            self.assertRaises(publisher.RoundError, made.round)
        self.assertEqual((20, 2), self.inventory('host2'))
        # One cell of two: its hosts are not among those that are known.
        real = publisher.database.compute_nodes

        def half():
            nodes, _failures = real()
            return ([node for node in nodes if node.host == 'host1'],
                    ['cell2 did not answer'])

        with fixtures.MonkeyPatch(
                'nfv_sched.nova.database.compute_nodes', half):
            done = made.round()
        self.assertEqual(['cell2 did not answer'], done.failures)
        self.assertTrue(done.failed)
        self.assertEqual((20, 2), self.inventory('host2'))

    def test_bare_metal(self):
        self.start_host('host1')
        node = self.compute_node('host1')
        node.hypervisor_type = 'ironic'
        node.save()
        self.assertEqual({'host1': Action.LEFT_OUT}, self.publish())
        self.assertIsNone(self.inventory('host1'))
        self.assertIn('host1', self.log.output)

    def test_cell_does_not_say_whose_ports_are(self):
        """What is published for its hosts stays; without any, no round."""
        made = self.publisher('host1')
        self.publish(made)
        self.allocate(uuids.guest, 'host1', 3)
        self.bind('host1', 3, uuids.guest)
        with fixtures.MonkeyPatch(
                'nova.db.main.models.VirtualInterface', None):
            error = self.assertRaises(publisher.RoundError, made.round)
            self.assertIn('(cell1)', str(error))
        self.assertEqual((20, 2), self.inventory('host1'))
        node, = publisher.database.compute_nodes()[0]
        lost = node._replace(
            uuid=uuids.lost, host='host2',
            cell=objects.CellMapping(uuid=uuids.cell, name='lost'))
        with fixtures.MonkeyPatch(
            'nfv_sched.nova.database.compute_nodes',
            lambda: ([node, lost], []),
        ), fixtures.MonkeyPatch(
            'nfv_sched.nova.records.plugged_servers',
            lambda ports: ({}, {uuids.cell: 'cell lost did not answer'}),
        ):
            done = made.round()
        self.assertEqual(['cell lost did not answer'], done.failures)
        self.assertEqual(['host1'], [report.host for report in done.hosts])
        # Ports do not wait for what servers have pinned.
        with fixtures.MonkeyPatch(
                'nfv_sched.nova.records.pinned_cells',
                lambda *args: ({}, {node.cell.uuid: 'too slow'})):
            done = made.round()
        self.assertEqual(['too slow'], done.failures)
        self.assertEqual(['host1'], [report.host for report in done.hosts])

    def second_node(self, host):
        node = self.compute_node(host)
        second = objects.ComputeNode(self.ctxt)
        for name in objects.ComputeNode.fields:
            if name not in ('id', 'uuid') and node.obj_attr_is_set(name) and (
                    getattr(node, name) is not None):
                with contextlib.suppress(Exception):
                    setattr(second, name, getattr(node, name))
        second.uuid = uuids.second
        second.hypervisor_hostname = 'second'
        second.create()
        return second

    def test_second_compute_node(self):
        """A host loses its place in the ledger, and gets it back."""
        made = self.publisher('host1', 'host2')
        self.publish(made)
        self.allocate(uuids.guest, 'host1', 3)
        second = self.second_node('host1')
        self.publish(made, dry_run=True)
        self.assertEqual([names.TRAIT], self.traits('host1'))
        for _ in range(2):
            self.assertEqual(
                {'host1': Action.LEFT_OUT, 'host2': Action.UNCHANGED},
                self.publish(made))
            self.assertEqual([], self.traits('host1'))
            # There are allocations.
            self.assertEqual((20, 2), self.inventory('host1'))
        with contextlib.closing(
                ledger_client.Client(publisher.CONF)) as client:
            self.assertEqual([self.provider('host2')], [
                provider.uuid for provider in client.providers()])
        second.destroy()
        self.bind('host1', 2, owner='network:router_interface')
        self.assertEqual(
            {'host1': Action.CREATED, 'host2': Action.UNCHANGED},
            self.publish(made))
        self.assertEqual([names.TRAIT], self.traits('host1'))
        self.assertEqual((20, 4), self.inventory('host1'))

    def test_second_compute_node_and_an_inventory_removed(self):
        """A process that does one round marks the host all the same."""
        self.start_host('host1')
        self.bind('host1', 3, owner='network:dhcp')
        self.publish()
        second = self.second_node('host1')
        self.publish()
        path = f'/resource_providers/{self.provider("host1")}/inventories'
        for name in names.RULES, names.PORTS:
            self.assertEqual(204, self.placement.delete(
                f'{path}/{name}').status)
            second.destroy()
            self.assertEqual({'host1': Action.CREATED}, self.publish())
            self.assertEqual([names.TRAIT], self.traits('host1'))
            self.assertEqual((20, 5), self.inventory('host1'))
            self.assertEqual((100, 0), self.inventory('host1', names.RULES))
            second = self.second_node('host1')
            self.assertEqual({'host1': Action.LEFT_OUT}, self.publish())

    def test_second_compute_node_and_more_room(self):
        """Nobody knows who has published that, so it takes a round more."""
        self.start_host('host1')
        ports = self.bind('host1', 5, owner='network:dhcp')
        self.publish()
        second = self.second_node('host1')
        self.publish()
        second.destroy()
        self.unbind(ports)
        self.assertEqual({'host1': Action.CREATED}, self.publish())
        self.assertEqual([names.TRAIT], self.traits('host1'))
        self.assertEqual((20, 7), self.inventory('host1'))
        self.assertEqual({'host1': Action.CHANGED}, self.publish())
        self.assertEqual((20, 2), self.inventory('host1'))


class ReturnTest(LedgerTestCase):
    """What guests do not use of what they have claimed is given back."""

    def setUp(self):
        super().setUp()
        self.start_host('host1')
        self.made = self.publisher()
        self.publish(self.made)

    def claimed(self, consumer, host='host1'):
        body = self.placement.get(
            f'/resource_providers/{self.provider(host)}/allocations').body
        found = body['allocations'].get(consumer, {'resources': {}})
        return tuple(found['resources'].get(name, 0)
                     for name in (names.PORTS, names.RULES))

    def rounds(self, count=3):
        for _ in range(count):
            with network.undoubted():
                done = self.made.round()
        return done.hosts[0]

    def server(self, ports=3, rules=30):
        server = self.boot(self.flavor(), host='host1')
        body = self.placement.get(
            f'/allocations/{server["id"]}', version='1.38').body
        body['allocations'][self.provider('host1')] = {
            'resources': {name: amount for name, amount in (
                (names.PORTS, ports), (names.RULES, rules)) if amount}}
        body['consumer_type'] = 'INSTANCE'
        self.assertEqual(204, self.placement.put(
            f'/allocations/{server["id"]}', body, version='1.38').status)
        return server['id']

    def test_detached(self):
        """5 of 6 ports: others have the room, and no more than that."""
        self.allocate(uuids.guest, 'host1', 6, 60)
        group = self.group(10)
        ports = self.bind('host1', 6, uuids.guest, groups=[group])
        self.rounds(4)
        self.assertEqual((6, 60), self.claimed(uuids.guest))
        self.unbind(ports[1:])
        self.rounds(2)
        self.assertEqual((6, 60), self.claimed(uuids.guest))
        report = self.rounds(1)
        self.assertEqual((Action.CHANGED, '5 ports and 50 rules given back'),
                         (report.action, report.note))
        self.assertEqual((1, 10), self.claimed(uuids.guest))
        self.assertIn(f'Server {uuids.guest} has given back 5 ports and 50 '
                      'rules on host host1', self.log.output)
        self.assertEqual((20, 2), self.inventory('host1'))
        self.allocate(uuids.too_large, 'host1', 18, status=409)
        self.allocate(uuids.just_right, 'host1', 17, 90)
        # Deleted at once: no more than what it had is free.
        self.unbind(ports[:1])
        self.release(uuids.guest)
        self.allocate(uuids.another, 'host1', 2, status=409)
        self.allocate(uuids.another, 'host1', 1)

    def test_all_detached(self):
        """Everything else that a server has allocated stays as it is."""
        server = self.server()
        path = f'/allocations/{server}'
        before = self.placement.get(path, version='1.38').body
        ports = self.bind('host1', 3, server)
        self.rounds(1)
        self.unbind(ports)
        self.rounds()
        after = self.placement.get(path, version='1.38').body
        del before['allocations'][self.provider('host1')]
        for body in before, after:
            del body['consumer_generation']
            for allocation in body['allocations'].values():
                del allocation['generation']
        self.assertEqual(before, after)
        self.assertEqual('INSTANCE', after['consumer_type'])
        self.assertIn('PCPU', str(after))
        self._run_periodics(raise_on_error=True)

    def test_being_built(self):
        """However long the next port takes."""
        server = self.server()
        instance = objects.Instance.get_by_uuid(self.ctxt, server)
        self.bind('host1', 1, server)
        for state in ({'vm_state': 'building', 'task_state': None},
                      {'vm_state': 'active', 'task_state': 'networking'}):
            instance.update(state)
            instance.save()
            self.rounds(8)
            self.assertEqual((3, 30), self.claimed(server))
        instance.task_state = None
        instance.save()
        self.rounds(6)
        self.assertEqual((1, 0), self.claimed(server))

    def test_hidden_groups(self):
        """Rules that are not shown are not known to be none."""
        self.neutron_api.hides_groups = True
        self.allocate(uuids.guest, 'host1', 3, 30)
        self.bind('host1', 2, uuids.guest, groups=[uuids.hidden])
        self.rounds(6)
        self.assertEqual((2, 30), self.claimed(uuids.guest))

    def test_migration(self):
        """A guest that may return to what its migration has here."""
        server = self.server(6, 0)
        instance = objects.Instance.get_by_uuid(self.ctxt, server)
        migration = objects.Migration(
            self.ctxt, instance_uuid=server, status='finished',
            source_compute='host1', source_node='host1',
            migration_type='resize', uuid=uuids.migration,
            old_instance_type_id=instance.flavor.id,
            new_instance_type_id=instance.flavor.id)
        migration.create()
        self.allocate(uuids.migration, 'host1', 4)
        self.bind('host1', 2, server)
        self.rounds(8)
        self.assertEqual((6, 0), self.claimed(server))
        self.assertEqual((4, 0), self.claimed(uuids.migration))
        self.release(uuids.migration)
        self.rounds(publisher.ROUNDS)
        self.assertEqual((2, 0), self.claimed(server))

    def test_dry_run(self):
        self.allocate(uuids.guest, 'host1', 3)
        self.bind('host1', 1, uuids.guest)
        self.rounds(2)
        self.placement_api.requests.clear()
        report, = self.made.round(dry_run=True).hosts
        self.assertEqual((Action.CHANGED, '2 ports given back'),
                         (report.action, report.note))
        self.assertEqual([], self.placement_api.writes())
        self.assertEqual((3, 0), self.claimed(uuids.guest))

    def test_somebody_else_changes_it(self):
        """That is no error; the guest is looked at anew."""
        server = self.server()
        self.bind('host1', 1, server)
        path = f'/allocations/{server}'
        count = [0]

        def change(method, target):
            if (method, target) == ('PUT', path):
                count[0] += 1
                body = self.placement.get(path, version='1.28').body
                self.assertEqual(204, self.placement.put(
                    path, body, version='1.28').status)

        self.placement_api.before = change
        report = self.rounds()
        self.assertEqual((Action.UNCHANGED, ''), report[1::2])
        self.assertEqual((1, (3, 30)), (count[0], self.claimed(server)))
        self.placement_api.before = lambda method, path: None
        self.rounds(2)
        self.assertEqual((3, 30), self.claimed(server))
        self.rounds(1)
        self.assertEqual((1, 0), self.claimed(server))


class RaceTest(LedgerTestCase):
    def test_always_in_between(self):
        """A host that is never still fails; the others do not."""
        made = self.publisher('host1', 'host2')
        self.publish(made)
        self.flags(vswitch_ports_per_node=5, group='nfv_sched')
        victim = f'{self.provider("host1")}/inventories'
        count = [0]

        def allocate(method, path):
            if method == 'PUT' and path.endswith(victim):
                count[0] += 1
                self.allocate(getattr(uuids, f'guest{count[0]}'), 'host1', 1)

        self.placement_api.before = allocate
        self.assertEqual({'host1': Action.FAILED, 'host2': Action.CHANGED},
                         self.publish(made))
        self.placement_api.before = lambda method, path: None
        self.assertEqual({'host1': Action.CHANGED, 'host2': Action.UNCHANGED},
                         self.publish(made))

    def test_busy_host(self):
        """Guests that come while Neutron is read do not keep it waiting."""
        made = self.publisher('host1')
        self.bind('host1', 6, owner='network:dhcp')
        self.publish(made)
        count = [0]

        def come(method, path):
            if path.endswith('/allocations'):
                count[0] += 1
                self.allocate(getattr(uuids, f'guest{count[0]}'), 'host1', 1)

        self.placement_api.before = come
        for reserved in range(7, 2, -1):
            self.neutron_api.ports.pop()
            self.assertEqual({'host1': Action.CHANGED}, self.publish(made))
            self.assertEqual((20, reserved), self.inventory('host1'))
        # A new one knows it from the second round on.
        self.neutron_api.ports.pop()
        made = self.publisher()
        self.assertEqual({'host1': Action.LATER}, self.publish(made))
        self.assertEqual({'host1': Action.CHANGED}, self.publish(made))
        self.assertEqual((20, 2), self.inventory('host1'))

    def test_host_that_another_has_published(self):
        """It is not taken for a leftover by one that knows less of Nova."""
        self.start_host('host1')
        real = publisher.database.compute_nodes

        def outdated():
            result = real()
            patch.cleanUp()
            self.start_host('host2')
            self.publish()
            return result

        patch = fixtures.MonkeyPatch(
            'nfv_sched.nova.database.compute_nodes', outdated)
        patch.setUp()
        self.publish()
        self.assertEqual((20, 2), self.inventory('host2'))


class FindTest(LedgerTestCase):
    def setUp(self):
        super().setUp()
        self.client = ledger_client.Client(publisher.CONF)
        self.addCleanup(self.client.close)

    def test_nothing_published(self):
        """Placement knows neither the trait nor the resource classes."""
        self.assertEqual([], self.client.providers())
        answer = self.placement.put(f'/traits/{names.TRAIT}', {},
                                    version='1.6')
        self.assertEqual(201, answer.status)
        self.assertEqual([], self.client.providers())

    def test_refused(self):
        """A 400 for any other reason does not mean that there is none."""
        self.placement_api.fault = lambda method, path: 400
        self.assertRaises(ledger_client.PlacementError, self.client.providers)


class FailureTest(LedgerTestCase):
    def setUp(self):
        super().setUp()
        self.useFixture(fixtures.MonkeyPatch(
            'nfv_sched.ledger.publisher.Keeper.FIRST_PAUSE', 0.05))
        self.flags(ledger_publish_interval=0.1, group='nfv_sched')

    def keep(self):
        keeper = publisher.Keeper()
        thread = threading.Thread(target=keeper.run)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(keeper.stop)

    def wait_until(self, condition, seconds=30.0):
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                self.fail(f'nothing happened; the log:\n{self.log.output}')
            time.sleep(0.02)

    def test_neutron(self):
        """Nothing is lowered or raised, and new hosts wait."""
        self.start_host('host1')
        self.bind('host1', 3, owner='network:dhcp')
        self.keep()
        self.wait_until(lambda: self.inventory('host1') == (20, 5))
        self.neutron_api.stop()
        self.wait_until(lambda: 'cannot be brought' in self.log.output)
        self.start_host('host2')
        self.flags(vswitch_ports_per_node=10, group='nfv_sched')
        time.sleep(0.5)
        self.assertEqual((20, 5), self.inventory('host1'))
        self.assertIsNone(self.inventory('host2'))
        self.assertEqual(
            1, self.log.output.count('cannot be brought up to date'))
        self.neutron_api.start()
        self.wait_until(lambda: self.inventory('host2') == (10, 2))
        self.wait_until(lambda: self.inventory('host1') == (10, 5))
        self.wait_until(lambda: 'kept up to date again' in self.log.output)

    def test_metrics(self):
        path = pathlib.Path(self.useFixture(fixtures.TempDir()).path) / 'prom'
        self.flags(ledger_metrics=str(path), group='nfv_sched')
        metrics.REFUSED.clear()
        self.start_host('host1')
        conflicts = [409]
        self.placement_api.fault = lambda method, path: (
            conflicts.pop() if path.endswith('/inventories')
            and method == 'PUT' and conflicts else None)
        self.keep()
        self.wait_until(path.exists)
        self.neutron_api.stop()
        self.wait_until(lambda: 'cannot be brought' in self.log.output)
        written = path.read_text()
        # The second attempt finds that the provider exists.
        self.assertIn('ledger_refused_total{status="409"} 2', written)
        self.assertNotIn('timestamp_seconds 0.0', written)
        time.sleep(0.5)  # what is published grows old
        self.assertEqual(written, path.read_text())
        # Whatever is wrong with the path, the service goes on.
        self.flags(ledger_metrics='\ud800', group='nfv_sched')
        self.wait_until(lambda: 'metrics cannot be written' in self.log.output)
        self.neutron_api.start()
        self.wait_until(lambda: 'kept up to date again' in self.log.output)

    def test_placement(self):
        self.start_host('host1')
        self.placement_api.stop()
        self.keep()
        self.wait_until(lambda: 'cannot be brought' in self.log.output)
        time.sleep(0.5)
        self.assertEqual(
            1, self.log.output.count('cannot be brought up to date'))
        self.assertNotIn('Traceback', self.log.output)
        self.placement_api.start()
        self.wait_until(lambda: self.inventory('host1') == (20, 2))
        self.wait_until(lambda: 'kept up to date again' in self.log.output)

    def test_placement_is_overloaded(self):
        """An answer of 503 for one host ends the round."""
        made = self.publisher('host1', 'host2')
        self.placement_api.fault = lambda method, path: (
            503 if path.endswith('/inventories') else None)
        self.assertRaises(publisher.RoundError, made.round)
        self.placement_api.fault = lambda method, path: None
        self.publish(made)
        self.assertEqual((20, 2), self.inventory('host1'))

    #: What Placement never answers with.
    ODD = (b'', b'<html>', b'[]', b'null', b'"text"', b'{}', b'[' * 100000,
           b'{"a":' * 100000, b'{"resource_providers": {}}',
           b'{"resource_providers": [7]}',
           b'{"resource_providers": [{"uuid": 7, "name": "x", "generation": 1,'
           b' "parent_provider_uuid": null}]}', b'\xff\xfe')

    def test_odd_list(self):
        """Without the list of the providers there is no round."""
        made = self.publisher('host1')
        self.publish(made)
        for body in self.ODD:
            self.placement_api.fault = lambda method, path, body=body: (
                body if 'required=' in path else None)
            error = self.assertRaises(publisher.RoundError, made.round)
            self.assertIn(f'GET /resource_providers?required={names.TRAIT}: '
                          'the answer is ', str(error))
        self.placement_api.fault = lambda method, path: None
        self.assertEqual({'host1': Action.UNCHANGED}, self.publish(made))

    def test_odd_answers(self):
        """One clear line for each host, and no traceback."""
        hosts = ('host1', 'host2')
        for host in hosts:
            self.start_host(host)
        self.publish()
        odd = self.ODD + (
            b'{"resource_provider_generation": "x", "allocations": {},'
            b' "inventories": {}}',
            b'{"resource_provider_generation": 1, "allocations": [],'
            b' "inventories": []}',
            b'{"resource_provider_generation": 1, "allocations": {"x": 1},'
            b' "inventories": {"x": {"total": "many"}}}')
        for what in ('allocations', 'inventories'):
            for body in odd:
                self.placement_api.fault = lambda method, path, body=body: (
                    body if path.endswith(f'/{what}') else None)
                done = self.publisher().round()
                for report in done.hosts:
                    self.assertEqual(Action.FAILED, report.action)
                    self.assertRegex(
                        report.note, f'^GET /resource_providers/[-0-9a-f]*/'
                        f'{what}: the answer is (not JSON|malformed)$')
        self.assertNotIn('Traceback', self.log.output)

    def test_odd_errors(self):
        """An answer that is none of success says little, and is no crash."""
        made = self.publisher('host1')
        self.publish(made)
        self.bind('host1', 3, owner='network:dhcp')
        for body in self.ODD + (b'{"errors": [{"detail": 7, "code": []}]}',):
            self.placement_api.fault = lambda method, path, body=body: (
                (500, body) if method == 'PUT' else None)
            report, = made.round().hosts
            self.assertEqual(Action.FAILED, report.action)
            self.assertIn('/inventories: 500 ', report.note)
        self.assertNotIn('Traceback', self.log.output)

    def test_one_traceback(self):
        """Whatever nobody has thought of is the same for all hosts."""
        for host in ('host1', 'host2', 'host3'):
            self.start_host(host)
        made = self.publisher()
        with fixtures.MonkeyPatch(
                'nfv_sched.ledger.inventory.accounts', None):
            done = made.round()
        self.assertEqual([Action.FAILED] * 3,
                         [report.action for report in done.hosts])
        self.assertEqual(1, self.log.output.count('Traceback'))

    def test_more_allocated_than_there_is(self):
        """An error, once a round."""
        self.start_two()
        self.publish()
        self.allocate(uuids.guest, 'host1', 12, 60)
        ports = self.bind('host1', 12, uuids.guest, groups=[self.group(5)])
        self.bind('host2', 1, uuids.other)
        self.flags(vswitch_ports_per_node=10, group='nfv_sched')
        self.keep()
        self.wait_until(lambda: self.log.output.count(
            'More is allocated than there is: host host1 (12 ports of 10)')
            > 2)
        self.assertNotIn('host host2', self.log.output)
        self.assertEqual(
            1, self.log.output.count('Host host1 carries more than it may: '
                                     '14 ports, limit 10'))
        self.release(uuids.guest)
        self.unbind(ports)
        self.wait_until(lambda: self.inventory('host1') == (10, 2))


class CommandTest(LedgerTestCase):
    def once(self, dry_run=False):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = command.once(dry_run)
        return code, out.getvalue(), err.getvalue()

    def test_once(self):
        self.start_two()
        self.publish()
        self.allocate(uuids.guest, 'host2', 7, 70)
        self.flags(vswitch_ports_per_node=0, group='nfv_sched')
        self.placement_api.requests.clear()
        row = 'host2 changed unlimited 2 7 100 0 70'
        code, out, _err = self.once(dry_run=True)
        self.assertIn('Nothing was changed.', out)
        self.assertIn(row, ' '.join(out.split()))
        self.assertEqual([], self.placement_api.writes())
        code, out, _err = self.once()
        self.assertNotIn('Nothing', out)
        self.assertIn(row, ' '.join(out.split()))
        code, out, _err = self.once()
        self.assertEqual(2, out.count('unchanged'))

    def test_dry_run_of_a_removal(self):
        self.start_host('host1')
        self.once()
        self.compute_node('host1').destroy()
        _code, out, _err = self.once(dry_run=True)
        self.assertIn('host1_nfv_ledger removed', ' '.join(out.split()))
        self.assertEqual((20, 2), self.inventory('host1'))

    def test_one_host_fails(self):
        self.start_two()
        self.placement_api.fault = lambda method, path: (
            500 if self.provider('host1') in path else None)
        code, out, _err = self.once()
        self.assertEqual(1, code)
        self.assertIn('host1 failed', ' '.join(out.split()))
        self.assertIn('500 Fault', out)
        self.assertIn('host2 created', ' '.join(out.split()))

    def test_not_configured(self):
        self.flags(auth_type=None, group='placement')
        code, out, err = self.once()
        self.assertEqual((1, ''), (code, out))
        self.assertIn('[placement] auth_type is not set', err)

    def test_nothing_answers(self):
        self.start_host('host1')
        self.neutron_api.stop()
        code, out, err = self.once()
        self.assertEqual((1, ''), (code, out))
        self.assertIn('nfv-sched-ledger: no connection to Neutron', err)
        self.placement_api.stop()
        code, out, err = self.once()
        self.assertEqual((1, ''), (code, out))
        self.assertIn('/resource_classes/', err)
