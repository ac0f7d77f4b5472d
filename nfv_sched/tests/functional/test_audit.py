# SPDX-License-Identifier: Apache-2.0
"""The audit of a real Nova: nothing on a sound cloud, and each fault."""

import argparse
from importlib import metadata
import json
import types

from keystoneauth1 import session
from keystoneauth1 import token_endpoint
from nova.cmd import manage
from nova.db.main import api as main_db
from nova.db.main import models
from nova import objects
import os_traits
from osc_placement import http
from osc_placement import plugin
from oslo_utils.fixture import uuidsentinel as uuids
import sqlalchemy as sa

from nfv_sched.limits import names
from nfv_sched.ops.answers.audit import all_checks
from nfv_sched.ops.answers.audit import values
from nfv_sched.ops.answers.plans import drain
from nfv_sched.ops.commands import drain as drain_command
from nfv_sched.ops.model import movable
from nfv_sched.tests.functional import base
from nfv_sched.tests.functional import test_snapshot
from nfv_sched.tests.unit.limits import neutron_api


class AuditTestCase(test_snapshot.SnapshotTestCase):

    def found(self):
        self.findings = all_checks.findings(self.read())
        return {(each.kind, each.host, each.server_id)
                for each in self.findings}

    def assertFound(self, *expected):
        found = self.found()
        self.assertEqual(set(expected), found, self.findings)

    def settle(self):
        self._run_periodics()
        self.publish()

    def execute(self, statement):
        with main_db.get_context_manager(
                self.cell_context()).writer.using(
                    self.cell_context()) as session:
            session.execute(statement)

    def node_of(self, host):
        return objects.ComputeNode.get_first_node_by_host_for_old_compat(
            self.ctxt, host)

    def change_host(self, host, change):
        node = self.node_of(host)
        found = objects.NUMATopology.obj_from_db_obj(node.numa_topology)
        change(found)
        table = models.ComputeNode.__table__
        self.execute(sa.update(table).where(
            table.c.uuid == node.uuid).values(
                numa_topology=found._to_json()))

    def change_server(self, server, change):
        instance = objects.Instance.get_by_uuid(
            self.ctxt, server['id'], expected_attrs=['numa_topology'])
        change(instance.numa_topology)
        table = models.InstanceExtra.__table__
        self.execute(sa.update(table).where(
            table.c.instance_uuid == server['id']).values(
                numa_topology=instance.numa_topology._to_json()))

    def change_flavor(self, server, key, value):
        """Change an extra spec in a server's own flavor; None removes it."""
        table = models.InstanceExtra.__table__
        row = table.c.instance_uuid == server['id']
        with main_db.get_context_manager(
                self.cell_context()).reader.using(
                    self.cell_context()) as session:
            text, = session.execute(sa.select(table.c.flavor).where(row)).one()
        flavor = json.loads(text)
        specs = flavor['cur']['nova_object.data']['extra_specs']
        specs.pop(key, None)
        if value is not None:
            specs[key] = value
        self.execute(sa.update(table).where(row).values(
            flavor=json.dumps(flavor)))

    def allocations(self, consumer):
        return self.placement.get(
            f'/allocations/{consumer}', version='1.28').body

    def put_allocations(self, consumer, allocations, generation=None):
        answer = self.placement.put(f'/allocations/{consumer}', {
            'allocations': allocations, 'consumer_generation': generation,
            'project_id': uuids.project, 'user_id': uuids.user},
            version='1.28')
        self.assertEqual(204, answer.status, answer.body)

    def root(self, host):
        return self.compute_rp_uuids[host]


class SoundTest(AuditTestCase):
    """Whatever servers do, nothing false is found."""

    def test_life(self):
        self.flags(ledger='placement', group='nfv_sched')
        self.publish()
        strict = self.flavor_with({
            **base.pinned(hw__mem_page_size='1GB'),
            'nfv:vswitch_numa_affinity': 'strict'}, memory_mb=1024)
        device = self.flavor_with({**base.pinned(
            hw__pci_numa_affinity_policy='required'),
            'pci_passthrough:alias': 'nic:1'})
        mixed = self.flavor_with({
            'hw:cpu_policy': 'mixed', 'hw:cpu_dedicated_mask': '^0',
            'nfv:shared_vcpu': '0'}, vcpus=2)
        emulator = self.flavor_with(base.pinned(
            hw__emulator_threads_policy='isolate'), vcpus=1)
        servers = {}
        for name, flavor in (
                ('strict', strict), ('device', device), ('mixed', mixed),
                ('emulator', emulator),
                ('plain', self.flavor_with({}, vcpus=1))):
            servers[name] = self.boot(flavor, host='host1')
            with self.row(name):
                self.assertEqual('ACTIVE', servers[name]['status'])
        servers['port'] = self.boot(
            self.flavor_with(base.pinned()), networks=[self.port()],
            host='host1')
        self.neutron_api_ports(servers['port'], 'host1')
        self.settle()
        self.assertFound()
        server, = (each for each in self.read().servers
                   if each.uuid == servers['port']['id'])
        self.assertEqual(server.devices, (server.ports[0].device,))
        with self.row('live migration'):
            self.live_migrate(servers['emulator'])
            self.settle()
            self.assertFound()
        with self.row('cold migration, not confirmed'):
            self.cold_migrate(servers['device'])
            self.settle()
            self.assertFound()
            move, = self.read().moves
            self.assertEqual(
                ('migration', 'finished', 'host1', 'host2',
                 servers['device']['id']),
                (move.kind, move.status, move.source, move.target,
                 move.server))
            self.assertEqual([1, 1], [len(move.before), len(move.after)])
        with self.row('confirmed'):
            self._confirm_resize(servers['device'])
            self.settle()
            self.assertFound()
            self.assertEqual((), self.read().moves)
        with self.row('resize, not confirmed'):
            self.resize(servers['mixed'], emulator)
            self.settle()
            self.assertFound()
            self._revert_resize(servers['mixed'])
        with self.row('shelved'):
            self.shelve_and_unshelve(servers['plain'])
            self.settle()
            self.assertFound()
        with self.row('deleted'):
            self._delete_server(servers['mixed'])
            self.settle()
            self.assertFound()
        with self.row('evacuated'):
            self.fail_host('host1')
            self.evacuate(servers['strict'])
            self.publish()
            found = self.found()
            self.assertEqual(
                {(values.LEFT_BEHIND, 'host1')},
                {(kind, host) for kind, host, _server in found},
                self.findings)
            move, = self.read().moves
            self.assertEqual(('evacuation', 'done'),
                             (move.kind, move.status))

    def test_owner_trait(self):
        """Since 34 Nova marks its own providers, here on all releases."""
        self.flags(ledger='placement', group='nfv_sched')
        self.publish()
        path = f'/resource_providers/{self.root("host1")}/traits'
        answer = self.placement.get(path, version='1.6').body
        answer['traits'] = [*{*answer['traits'], os_traits.OWNER_NOVA}]
        self.assertEqual(200, self.placement.put(
            path, answer, version='1.6').status)
        self.boot(self.flavor_with({
            **base.pinned(), 'pci_passthrough:alias': 'nic:1'}), host='host1')
        self.settle()
        host, = (each for each in self.read().hosts if each.name == 'host1')
        self.assertIn(os_traits.OWNER_NOVA, host.providers[0].traits)
        self.assertFound()


class RepairTest(AuditTestCase):
    """The commands that the audit prints repair what it has found."""

    def setUp(self):
        super().setUp()
        self.flags(ledger='placement', group='nfv_sched')
        self.publish()
        self.server = self.boot(
            self.flavor_with(base.pinned()), networks=[self.port()],
            host='host1')
        self.other = self.boot(self.flavor_with(base.pinned()), host='host1')
        self.settle()
        self.assertFound()

    def repair(self, *expected):
        """Run the commands of the only finding (kind, host, server).

        Nothing is found after the next round of nfv-sched-ledger then.
        """
        self.assertFound(expected)
        finding, = self.findings
        self.assertTrue(finding.commands)
        for words in finding.commands:
            self.run_words(*words)
        self.publish()
        self.assertFound()

    def run_words(self, program, category, *words):
        if program == 'openstack':
            return self.run_openstack(category, *words)
        self.assertEqual('nova-manage', program)
        action = getattr(manage.CATEGORIES[category](), words[0])
        parser = argparse.ArgumentParser()
        for names_, options in action.args:
            parser.add_argument(*names_, **options)
        arguments = vars(parser.parse_args(words[1:]))
        self.assertIn(action(**arguments), (None, 0, 4), words)

    def run_openstack(self, *words):
        options, words = plugin.build_option_parser(
            argparse.ArgumentParser()).parse_known_args(words)
        entry, = metadata.entry_points(
            group='openstack.placement.v1', name='_'.join(words[:4]))
        placement = self.placement.fixture
        connection = session.Session(auth=token_endpoint.Token(
            placement.endpoint, placement.token))
        clients = types.SimpleNamespace(
            session=connection, placement=http.SessionClient(
                connection, {'service_type': 'placement'},
                options.os_placement_api_version))
        command = entry.load()(
            types.SimpleNamespace(client_manager=clients), None)
        command.take_action(
            command.get_parser(entry.name).parse_args(words[4:]))

    def change(self, server, change):
        before = self.allocations(server['id'])
        changed = {uuid: {'resources': dict(each['resources'])}
                   for uuid, each in before['allocations'].items()}
        change(changed)
        self.put_allocations(server['id'], changed,
                             before['consumer_generation'])

    def test_missing(self):
        """Of a server without ports, and of one that has one."""
        for server in self.other, self.server:
            self.assertEqual(204, self.placement.delete(
                f'/allocations/{server["id"]}').status)
            self.repair(values.ALLOCATION_MISSING, 'host1', server['id'])

    def test_differs(self):
        self.change(self.other, lambda has: has[
            self.root('host1')]['resources'].update(PCPU=3))
        self.repair(values.ALLOCATION_DIFFERS, 'host1', self.other['id'])

    def test_differs_with_the_ledger(self):
        """Nova drops what it does not know; the ledger counts it again."""
        ledger = names.provider_uuid(self.root('host1'))
        self.change(self.server, lambda has: has.update({
            ledger: {'resources': {names.PORTS: 1}}}))
        self.publish()
        self.change(self.server, lambda has: has[
            self.root('host1')]['resources'].update(PCPU=3))
        self.repair(values.ALLOCATION_DIFFERS, 'host1', self.server['id'])
        self.assertNotIn(ledger, self.allocations(
            self.server['id'])['allocations'])

    def test_elsewhere(self):
        self.change(self.other, lambda has: has.update({
            self.root('host2'): {'resources': {'MEMORY_MB': 64}}}))
        self.repair(values.ALLOCATION_ELSEWHERE, 'host2', self.other['id'])

    def test_in_another_ledger(self):
        """Nova passes over resources that are not its own."""
        ledger = names.provider_uuid(self.root('host2'))
        self.change(self.other, lambda has: has.update({
            ledger: {'resources': {names.PORTS: 1}}}))
        self.repair(values.ALLOCATION_ELSEWHERE, 'host2', self.other['id'])

    def test_orphan(self):
        memory = {self.root('host2'): {'resources': {'MEMORY_MB': 64}}}
        ledger = {names.provider_uuid(self.root('host2')): {
            'resources': {names.PORTS: 1}}}
        for allocations in memory, memory | ledger:
            self.put_allocations(uuids.nobody, allocations)
            self.repair(values.ALLOCATION_ORPHAN, 'host2', None)
        # Those of servers stay.
        self.assertTrue(self.allocations(self.other['id'])['allocations'])

    def test_not_mapped(self):
        objects.HostMapping.get_by_host(self.ctxt, 'host2').destroy()
        table = models.ComputeNode.__table__
        self.execute(sa.update(table).where(
            table.c.host == 'host2').values(mapped=0))
        self.repair(values.UNMAPPED, 'host2', None)

    def assertMoveEnds(self, kind, server, ports=()):
        """Assert that the plan of a finding's command moves and ends it."""
        self.found()
        words, = (command for each in self.findings
                  if (each.kind, each.server_id) == (kind, server['id'])
                  for command in each.commands)
        self.assertEqual(('nfv-sched', 'host', 'drain'), words[:3])
        parsed = drain_command.DrainHost(None, None).get_parser(
            'drain').parse_args(words[3:])
        move, = drain.plan(self.read(), parsed.hosts[0],
                           uuids=parsed.server).moves
        self.assertEqual((server['id'], 'host2'),
                         (move.id, move.destination))
        if move.kind is movable.LIVE:
            self.live_migrate(server, host=move.destination)
        else:
            self.cold_migrate(server, host=move.destination)
            self._confirm_resize(server)
        for port in ports:
            port['binding:host_id'] = move.destination
        self.settle()
        self.assertFound()
        return move

    def pin(self, server, choose):
        """Pin a server's first vCPU to the CPU chosen for its present one."""
        def change(topology):
            cell = topology.cells[0]
            vcpu = min(cell.cpu_pinning)
            cell.cpu_pinning = {**cell.cpu_pinning, vcpu: choose(
                cell.cpu_pinning[vcpu])}

        self.change_server(server, change)

    def test_policy(self):
        def change(topology):
            for cell in topology.cells:
                cell.network_metadata.physnets ^= {'nfv_vswitch'}

        strict = self.boot(self.flavor_with({
            **base.pinned(), 'nfv:vswitch_numa_affinity': 'strict'}),
            host='host1')
        self.settle()
        self.change_host('host1', change)
        self.assertFound((values.POLICY, 'host1', strict['id']))
        move = self.assertMoveEnds(values.POLICY, strict)
        self.assertEqual(movable.LIVE if base.LIVE_MIGRATION_IS_STEERED
                         else movable.COLD, move.kind)

    def test_pinned_twice(self):
        flavor = self.flavor_with({**base.pinned(), 'nfv:numa_node.0': '1'})
        pair = {server['id']: server for server in (
            self.boot(flavor, host='host1') for _ in range(2))}
        self.settle()
        first, second = pair.values()
        cell, = objects.Instance.get_by_uuid(
            self.ctxt, second['id'],
            expected_attrs=['numa_topology']).numa_topology.cells
        self.pin(first, lambda _old: min(cell.cpu_pinning.values()))
        self.found()
        finding, = (each for each in self.findings
                    if each.kind == values.PINNED_TWICE)
        self.assertMoveEnds(values.PINNED_TWICE, pair[finding.server_id])

    def test_not_dedicated(self):
        self.pin(self.other, lambda _old: 99)
        self.assertMoveEnds(values.NOT_DEDICATED, self.other)

    def test_pages(self):
        self.change_flavor(self.other, 'hw:mem_page_size', 'small')
        self.assertFound((values.PAGES, 'host1', self.other['id']))
        self.assertMoveEnds(values.PAGES, self.other)

    def test_remote_network(self):
        """The network is near the other node of the host now."""
        def change(topology):
            for cell in topology.cells:
                cell.network_metadata.physnets ^= {'foo'}

        server = self.boot(self.flavor_with(base.pinned()),
                           networks=[{'uuid': base.FOO}], host='host1')
        self.settle()
        network = neutron_api.network(physnet='foo')
        self.neutron_api.networks.append(network)
        interface, = objects.VirtualInterfaceList.get_by_instance_uuid(
            self.ctxt, server['id'])
        port, = self.bind('host1', device=server['id'],
                          project=server['tenant_id'])
        port.update(id=interface.uuid, network_id=network['id'])
        self.publish()
        self.change_host('host1', change)
        self.assertFound((values.REMOTE_NETWORK, 'host1', server['id']))
        self.assertMoveEnds(values.REMOTE_NETWORK, server, [port])

    def test_remote_device(self):
        """With the policy of the instruction the device is near."""
        server = self.boot(self.flavor_with(
            {**base.pinned(), 'nfv:pci_numa_affinity': 'prefer',
             'pci_passthrough:alias': 'nic:1'}), host='host1')
        self.settle()
        table = models.PciDevice.__table__
        own, = objects.Instance.get_by_uuid(
            self.ctxt, server['id'],
            expected_attrs=['numa_topology']).numa_topology.cells
        self.execute(sa.update(table).where(
            table.c.instance_uuid == server['id']).values(
                numa_node=1 - own.id))
        self.assertFound((values.REMOTE_DEVICE, 'host1', server['id']))
        self.change_flavor(server, 'nfv:pci_numa_affinity', 'strict')
        self.assertFound((values.POLICY, 'host1', server['id']))
        self.assertMoveEnds(values.POLICY, server)
