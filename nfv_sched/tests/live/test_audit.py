# SPDX-License-Identifier: Apache-2.0
"""The audit of real processes: nothing on a sound cloud, and each fault.

Faults are planted in Nova's database, in Placement and in Neutron, and taken
away again.  A compute node writes its own record anew every few seconds, so
what is planted there is planted until it is found.
"""

import json
import uuid

from nfv_sched.tests.live import base
from nfv_sched.tests.live import test_tools

_FOUND = 120  # seconds
_CONFIRM = '20'  # seconds; hosts report every 15


class AuditTestCase(test_tools.ToolsTestCase):

    def findings(self, *args):
        """(kind, host, UUID of the server) of each finding."""
        out, _errors = self.run_command(
            'cloud', 'audit', '-f', 'json', *args, code=(0, 3))
        return {(row['kind'], row['host'], row['server_id'] or '')
                for row in json.loads(out)['findings']}

    def wait_for_sound(self):
        """Wait until nothing is found any more."""
        self.wait_until(lambda: not self.findings('--confirm', '0'), _FOUND,
                        'nothing is found')

    def assert_found(self, *expected):
        """What both readings of the cloud find."""
        self.assertEqual(set(expected),
                         self.findings('--confirm', _CONFIRM))


class SoundTest(AuditTestCase):

    def test_while_servers_move(self):
        """At rest nothing is found, and nothing that is false meanwhile."""
        servers = [
            self.boot(self.flavor(2, **specs), host=base.LEFT, **more)
            for specs, more in (
                (base.STRICT, {'networks': self.networks(2)}),
                (base.pinned(**{'pci_passthrough:alias': 'vf:1',
                                base.PCI: 'strict'}), {}),
                (base.pinned(**{'hw:mem_page_size': '2MB'}), {}))]
        self.assert_found()
        first, _second, last = servers
        self.live_migrate(last, base.BOTH)
        self.assert_found()
        self.admin.compute.migrate_server(first)
        self.wait_for(first, 'VERIFY_RESIZE')
        self.assert_found()
        self.admin.compute.confirm_server_resize(first)
        self.wait_for(first, 'ACTIVE')
        self.assert_found()
        self.delete(first)
        self.assert_found()


class FaultsTest(AuditTestCase):

    def setUp(self):
        super().setUp()
        self.server = self.boot(self.flavor(2, **base.STRICT),
                                networks=self.networks(1))
        self.host = self.server.compute_host
        self.wait_for_sound()
        self.addCleanup(self.wait_for_sound)

    # Nova's database

    def execute(self, statement, *parameters):
        return self.bed.database('nova', statement, parameters)

    def test_server_older_than_its_policy(self):
        """Its flavor as booted says another node than it is on."""
        node, = self.host_nodes(self.server)
        row, = self.execute('SELECT flavor FROM instance_extra '
                            'WHERE instance_uuid = %s', self.server.id)
        flavor = json.loads(row['flavor'])
        flavor['cur']['nova_object.data']['extra_specs'][
            'nfv:numa_node.0'] = str(node + 1)

        def write(text):
            self.execute('UPDATE instance_extra SET flavor = %s '
                         'WHERE instance_uuid = %s', text, self.server.id)

        self.addCleanup(write, row['flavor'])
        write(json.dumps(flavor))
        self.assert_found(('policy-not-kept', self.host, self.server.id))

    def test_record_of_the_host(self):
        """All its CPUs are free by it, until the host writes it anew.

        That may be at any time, and is not before something has changed.
        """
        def write(text):
            self.execute(
                'UPDATE compute_nodes SET numa_topology = %s '
                'WHERE host = %s AND deleted = 0', text, self.host)

        row, = self.execute(
            'SELECT numa_topology FROM compute_nodes '
            'WHERE host = %s AND deleted = 0', self.host)
        self.addCleanup(write, row['numa_topology'])
        topology = json.loads(row['numa_topology'])
        for cell in topology['nova_object.data']['cells']:
            cell['nova_object.data']['pinned_cpus'] = []

        def planted():
            write(json.dumps(topology))
            return self.findings('--confirm', '0') == {
                ('not-in-record', self.host, self.server.id)}

        self.wait_until(planted, _FOUND, 'the record is found wrong')

    def test_stale_move(self):
        migration = str(uuid.uuid4())
        self.execute(
            'INSERT INTO migrations (uuid, instance_uuid, migration_type, '
            'status, source_compute, source_node, hidden, deleted) '
            "VALUES (%s, %s, 'live-migration', 'running', %s, %s, 0, 0)",
            migration, self.server.id, self.host, self.host)
        self.addCleanup(
            self.execute, 'DELETE FROM migrations WHERE uuid = %s', migration)
        self.assert_found(('stale-move', self.host, self.server.id))

    # Placement

    def root(self, host):
        """UUID of the resource provider of a host."""
        found, = self._placement(
            f'/resource_providers?name={host}')['resource_providers']
        return found['uuid']

    def put(self, consumer, body):
        answer = self.admin.placement.put(
            f'/allocations/{consumer}', json=body,
            microversion=base.PLACEMENT_MICROVERSION)
        self.assertEqual(204, answer.status_code, answer.text)

    def changed(self, change):
        """Change the allocations of the server, for the time of the test."""
        path = f'/allocations/{self.server.id}'

        def body(change):
            found = self._placement(path)
            # Nova does not say what it is, and Placement does not take back
            # the 'unknown' that it shows for that.
            return {**found, 'consumer_type': 'INSTANCE',
                    'allocations': change({
                        provider: {'resources': dict(each['resources'])}
                        for provider, each in found['allocations'].items()})}

        before = body(lambda found: found)['allocations']
        self.addCleanup(lambda: self.put(
            self.server.id, body(lambda found: before)))
        self.put(self.server.id, body(change))

    def test_allocations_that_differ(self):
        root = self.root(self.host)

        def change(found):
            found[root]['resources']['PCPU'] += 1
            return found

        self.changed(change)
        self.assert_found(
            ('allocation-differs', self.host, self.server.id))

    def test_allocations_elsewhere(self):
        other = next(host for host in self.hosts if host != self.host)
        root = self.root(other)
        self.changed(lambda found: {
            **found, root: {'resources': {'MEMORY_MB': 64}}})
        self.assert_found(('allocation-elsewhere', other, self.server.id))

    def test_orphan(self):
        consumer = str(uuid.uuid4())
        self.put(consumer, {
            'allocations': {self.root(self.host): {
                'resources': {'MEMORY_MB': 64}}},
            'consumer_generation': None, 'consumer_type': 'INSTANCE',
            'project_id': uuid.uuid4().hex, 'user_id': uuid.uuid4().hex})
        self.addCleanup(
            self.admin.placement.delete, f'/allocations/{consumer}')
        self.assert_found(('allocation-orphan', self.host, ''))

    # Neutron

    def test_ledger(self):
        """Neutron has more ports on a host, and nobody publishes them."""
        ledger = self.bed.services['nfv-sched-ledger']
        ledger.stop()
        self.addCleanup(ledger.run)
        network = self.admin.network
        port = network.create_port(
            network_id=self.networks()[0]['uuid'],
            device_owner='network:dhcp', device_id=self.name(),
            binding_host_id=self.host)
        self.addCleanup(network.delete_port, port)
        self.assert_found(('ledger-differs', self.host, ''))
