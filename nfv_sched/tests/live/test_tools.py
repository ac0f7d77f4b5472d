# SPDX-License-Identifier: Apache-2.0
"""The commands that look at a cloud, on one of real processes.

They read it by an account of the databases that may do no more than SELECT.
What they say is compared with what the cloud does.
"""

import contextlib
import json
import pathlib
import re
import signal
import socket
import subprocess
import sys
import urllib.request
import uuid

import fixtures
from prometheus_client import parser
import pymysql

from nfv_sched.ops.cloud import file
from nfv_sched.tests.live import base
from nfv_sched.tests.live.bed import configuration
from nfv_sched.tests.live.bed import database
from nfv_sched.tests.live.bed import ports

# Seconds.
_COMMAND = 300
_SCRAPE = 120

_PROGRESS = re.compile(r'^\d+ of \d+ [a-zA-Z ]+ done\n', re.MULTILINE)


def without_progress(errors: str) -> str:
    """Return standard error without the lines that show progress."""
    return _PROGRESS.sub('', errors)


class ToolsTestCase(base.LiveTestCase):

    def setUp(self):
        super().setUp()
        self.directory = pathlib.Path(
            self.useFixture(fixtures.TempDir()).path)
        layout = self.bed.layout
        override = self.directory / 'reader.conf'
        override.write_text(
            '[api_database]\n'
            f'connection = {database.reader_url(layout, "nova_api")}\n'
            '[nfv_sched]\n'
            f'cell_database_user = {database.READER}\n'
            f'cell_database_password = {layout.password}\n')
        scheduler = layout.etc / 'nova' / f'{configuration.SCHEDULERS[0]}.conf'
        self.configured = [f'--config-file={path}'
                           for path in (scheduler, override)]

    def command(self, *args):
        """What a shell would run."""
        return [sys.executable, '-m', 'nfv_sched.ops.cli.base', *args,
                *self.configured]

    def run_command(self, *args, code=0, live=True):
        """Run a command of nfv-sched.

        :param code: what it has to exit with; of several, one
        :param live: whether it reads the live cloud
        :returns: standard output and errors
        """
        command = self.command(*args)
        if not live:
            command = command[:-len(self.configured)]
        done = subprocess.run(
            command, env=self.bed.layout.environment(), text=True,
            timeout=_COMMAND, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertIn(done.returncode,
                      code if isinstance(code, tuple) else (code,),
                      done.stdout + done.stderr)
        self.assertNotIn('Warning', done.stderr)
        return done.stdout, done.stderr

    def document(self, *args, **kwargs):
        """Run a command, and read the JSON that it prints."""
        return json.loads(self.run_command(*args, '-f', 'json', **kwargs)[0])

    def save(self, **kwargs):
        """Save a snapshot; returns its path, and errors."""
        path = str(self.directory / 'cloud.json.gz')
        return path, self.run_command('snapshot', 'save', path, **kwargs)[1]


class SnapshotTest(ToolsTestCase):

    def test_account_may_only_read(self):
        layout = self.bed.layout
        for name, table in (('nova_api', 'aggregates'),
                            ('nova', 'instances')):
            connection = pymysql.connect(
                host=ports.ADDRESS, port=layout.ports['mariadb'],
                user=database.READER, password=layout.password, database=name)
            with contextlib.closing(connection), connection.cursor() as cursor:
                cursor.execute(f'SELECT COUNT(*) FROM {table}')
                self.assertRaises(
                    pymysql.err.OperationalError, cursor.execute,
                    f"UPDATE {table} SET created_at = NOW()")

    def test_servers_and_hosts(self):
        server = self.boot(
            self.flavor(2, **base.STRICT), networks=self.networks(2))
        path, errors = self.save()
        self.assertEqual('', without_progress(errors))
        cloud = file.load(path)
        self.assertEqual(
            self.hosts, sorted(host.name for host in cloud.hosts))
        found, = (each for each in cloud.servers if each.uuid == server.id)
        self.assertEqual(server.compute_host, found.host)
        self.assertEqual(
            [(node['host_node'], {int(vcpu): cpu for vcpu, cpu
                                  in node['cpu_pinning'].items()})
             for node in self.nodes(server)],
            [(node.host_node, dict(node.pins)) for node in found.nodes])
        self.assertEqual(2, len(found.ports))
        self.assertEqual(
            2, sum(amounts.get(base.PORTS, 0)
                   for amounts in found.allocations.values()))
        for host in cloud.hosts:
            self.assertEqual(self.pinned_cpus(host.name), sum(
                len(node.pinned) for node in host.nodes), host.name)

        rows = self.document('host', 'list')['numa_nodes']
        self.assertEqual(
            sorted((host.name, node.number) for host in cloud.hosts
                   for node in host.nodes),
            sorted((row['host'], row['node']) for row in rows))
        self.assertEqual(
            self.host_nodes(server),
            [row['node'] for row in rows if row['pcpus_used']])
        for row in rows:
            self.assertEqual(row['node'] in self.switch_nodes(row['host']),
                             row['switch'], row)
        # The same from the file.
        self.assertEqual(rows, self.document(
            'host', 'list', '--from', path, live=False)['numa_nodes'])
        page = self.directory / 'map.html'
        self.run_command('host', 'map', '--format', 'html', '-o', str(page))
        text = page.read_text()
        for name in (*self.hosts, server.name):
            self.assertIn(name, text)

    def test_dead_cell(self):
        """It is named, and the rest is shown."""
        with socket.socket() as unused:
            unused.bind((ports.ADDRESS, 0))
            cell = uuid.uuid4().hex
            # Disabled, so that nova-scheduler leaves it alone.
            self.bed.database(
                'nova_api', 'INSERT INTO cell_mappings (uuid, name, '
                'transport_url, database_connection, disabled) '
                'VALUES (%s, %s, %s, %s, 1)',
                (cell, 'far', 'none:///', 'mysql+pymysql://nobody:no@'
                 f'{ports.ADDRESS}:{unused.getsockname()[1]}/nova'))
            self.addCleanup(
                self.bed.database, 'nova_api',
                'DELETE FROM cell_mappings WHERE uuid = %s', (cell,))
            out, errors = self.run_command('host', 'list', code=1)
        self.assertIn('(far) cannot be read', errors)
        for host in self.hosts:
            self.assertIn(host, out)


class ExplainTest(ToolsTestCase):

    def test_refused(self):
        """On each host what it lacks; what helps really helps."""
        flavor = self.flavor(7, **base.STRICT)
        self.boot_refused(flavor)
        refused = self._servers[-1]
        found = self.document('server', 'explain', refused, code=3)
        self.assertFalse(found['fits'])
        self.assertEqual(sorted(self.hosts), sorted(
            host['host'] for host in found['hosts']))
        self.assertEqual([], [host for host in found['hosts']
                              if host['passes']])
        self.assertEqual(len(self.hosts), sum(
            cause['hosts'] for cause in found['causes']))
        # Fewer vCPUs: as many as it says.
        self.assertIn(6, {change['request']['vcpus']
                          for change in found['changes']})
        self.boot(self.flavor(6, **base.STRICT))

    def test_running(self):
        flavor = self.flavor(2, **base.STRICT)
        server = self.boot(flavor)
        found = self.document('server', 'explain', server.id)
        self.assertTrue(found['fits'])
        present, = (host['host'] for host in found['hosts']
                    if host['runs_there'])
        self.assertEqual(server.compute_host, present)
        # Each host that is said to pass takes it, the others do not.
        found = self.document('flavor', 'explain', flavor.name)
        for host in found['hosts']:
            if host['passes']:
                self.boot(flavor, host=host['host'])
            else:
                self.boot_refused(flavor, host=host['host'])


class CapacityTest(ToolsTestCase):

    def fits(self, flavor):
        row, = self.document(
            'capacity', 'list', '--flavor', flavor.name)['capacities']
        return row['fits']

    def test_until_refused(self):
        """As many guests as it says can be booted, and no more."""
        for extra_specs in (
                base.pinned(), base.STRICT,
                {'hw:cpu_policy': 'dedicated', 'hw:numa_nodes': '2',
                 'hw:mem_page_size': '2MB'}):
            flavor = self.flavor(6, **extra_specs)
            expected = self.fits(flavor)
            self.assertGreater(expected, 2)
            servers = []
            for _ in range(expected):
                servers.append(self.boot(flavor))
            self.boot_refused(flavor)
            self.assertEqual(0, self.fits(flavor))
            self.delete(*servers)
            self.wait_until(self._idle, 60, 'the hosts are empty')


class MetricsTest(ToolsTestCase):

    def test_scraped(self):
        flavor = self.flavor(2, **base.STRICT)
        server = self.boot(flavor)
        node, = self.host_nodes(server)
        with socket.socket() as unused:
            unused.bind((ports.ADDRESS, 0))
            address = f'{ports.ADDRESS}:{unused.getsockname()[1]}'
        process = subprocess.Popen(
            self.command('metrics', '--listen', address),
            env=self.bed.layout.environment(), text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)

        def scraped():
            with contextlib.suppress(OSError):
                with urllib.request.urlopen(
                        f'http://{address}/metrics', timeout=10) as answer:
                    return answer.read().decode()

        def sample(text, name, **labels):
            values = [
                each.value for family in parser.text_string_to_metric_families(
                    text) for each in family.samples
                if each.name == name and labels.items()
                <= each.labels.items()]
            return values[0] if values else None

        text = self.wait_until(
            lambda: (text := scraped()) and sample(
                text, 'nfv_sched_flavor_fits', flavor=flavor.name)
            is not None and text, _SCRAPE, 'metrics are served')
        self.assertEqual(2, sample(
            text, 'nfv_sched_node_pcpus', host=server.compute_host,
            node=str(node), state='used'))
        self.assertEqual(
            sample(text, 'nfv_sched_flavor_fits', flavor=flavor.name,
                   aggregate=''),
            sample(text, 'openstack_free_capacity_by_flavor_total',
                   flavor_name=flavor.name))
        process.send_signal(signal.SIGTERM)
        self.assertEqual(0, process.wait(30))
