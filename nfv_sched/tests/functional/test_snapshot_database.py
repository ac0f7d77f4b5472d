# SPDX-License-Identifier: Apache-2.0
"""``nfv-sched snapshot save`` on a MariaDB, by accounts that may do little."""

import contextlib
import socket
import subprocess
import sys
import threading
import time

import testtools

from nfv_sched.ops.cloud import file
from nfv_sched.ops.cloud import snapshot
from nfv_sched.tests.functional import test_ledger_process
from nfv_sched.tests import mariadb
from nfv_sched.tests import nova_database
from nfv_sched.tests.unit.limits import neutron_api

DATABASES = ('api', 'cell0', 'cell1', 'cell2')
_CONF = """
[api_database]
connection = {api}
[database]
connection = {main}
"""


@testtools.skipUnless(mariadb.is_installed(), 'MariaDB is not installed')
class ReadOnlyTest(test_ledger_process.ProcessTestCase):
    """Four hosts in two cells, with three guests each."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.database = mariadb.MariaDB()
        cls.database.setUp()
        cls.addClassCleanup(cls.database.cleanUp)
        cls.database.execute(
            *(f'CREATE DATABASE {name}' for name in DATABASES),
            'CREATE USER reader', 'GRANT SELECT ON *.* TO reader',
            'CREATE USER partial',
            *(f'GRANT SELECT ON {name}.* TO partial'
              for name in DATABASES[:-1]))
        conf = f'{cls.database.directory}/fill.conf'
        with open(conf, 'w') as out:
            out.write(_CONF.format(api=cls.database.url('api'),
                                   main=cls.database.url('cell1')))
        subprocess.run(
            [sys.executable, '-m', 'nfv_sched.tests.nova_database',
             '--config-file', conf, '--hosts', '4', '--guests', '3',
             *(f'{name}={cls.database.url(name)}'
               for name in DATABASES[1:])],
            check=True, capture_output=True, timeout=600)

    def setUp(self):
        super().setUp()
        self.file = f'{self.directory}/cloud.json.gz'
        self.neutron.ports.extend(
            neutron_api.port(**port) for port in nova_database.ports(4, 3))

    def read_by(self, user):
        """Let the command read as somebody; the API knows the cells so."""
        with open(self.conf) as conf:
            text = conf.read().replace(
                f'sqlite:///{self.directory}/api.sqlite',
                self.database.url('api', user))
        with open(self.conf, 'w') as conf:
            conf.write(text)
        for name in DATABASES[1:]:
            self.move(name, self.database.url(name, user))

    def move(self, cell, url):
        self.database.execute(
            f"UPDATE api.cell_mappings SET database_connection = '{url}' "
            f"WHERE name = '{cell}'")

    def content(self):
        """A checksum of each table."""
        tables = self.database.execute(
            'SELECT table_schema, table_name FROM information_schema.tables '
            f'WHERE table_schema IN {DATABASES}')
        return self.database.execute('CHECKSUM TABLE ' + ', '.join(
            f'{schema}.{table}' for schema, table in tables))

    def save(self):
        began = time.monotonic()
        process = self.start('snapshot', 'save', self.file,
                             module='nfv_sched.ops.cli.base')
        out, err = process.communicate(timeout=200)
        self.assertNotIn('Traceback', err)
        told = test_ledger_process.without_progress(err).splitlines()
        return (process.returncode, told, file.load(self.file),
                time.monotonic() - began)

    def test_select_only(self):
        self.read_by('reader')
        before = self.content()
        code, told, cloud, _ = self.save()
        self.assertEqual((0, []), (code, told))
        self.assertEqual(before, self.content())
        self.assertEqual(
            [(nova_database.host_name(number), f'cell{number % 2 + 1}', 2,
              True, nova_database.VFS) for number in range(4)],
            [(host.name, host.cell, len(host.nodes), host.enabled,
              len(host.devices)) for host in cloud.hosts])
        node, other = cloud.hosts[0].nodes
        self.assertEqual((8, 4), (len(node.pinned), len(other.pinned)))
        self.assertEqual(12, len(cloud.servers))
        for server in cloud.servers:
            pinned, = server.nodes
            host, = (host for host in cloud.hosts
                     if host.name == server.host)
            self.assertLessEqual(set(pinned.pins.values()),
                                 host.nodes[pinned.host_node].pinned)
            self.assertEqual(1, len(server.devices))
            self.assertEqual(
                server.name.endswith(f'-{nova_database.SHARING}'),
                server.shares)
        self.assertEqual(nova_database.FLAVORS, len(cloud.flavors))

    def check_without_cell2(self, name, seconds=60):
        """Check that only cell2 is missing, with an error of this name."""
        code, told, cloud, took = self.save()
        missing, = cloud.missing
        self.assertEqual((1, [f'error: {missing}']), (code, told))
        self.assertEqual((snapshot.MissingKind.CELL, 'cell2'),
                         (missing.kind, missing.cell))
        self.assertIn(name, missing.text)
        self.assertEqual({'cell1'}, {host.cell for host in cloud.hosts})
        self.assertEqual(6, len(cloud.servers))
        self.assertLess(took, seconds)

    def test_no_right_on_a_cell(self):
        self.read_by('partial')
        self.check_without_cell2('partial')

    def test_dead_cell(self):
        self.read_by('reader')
        with contextlib.closing(socket.create_server(
                ('127.0.0.1', 0))) as server:
            port = server.getsockname()[1]
        self.move('cell2', f'mysql+pymysql://reader@127.0.0.1:{port}/cell2')
        self.check_without_cell2(f'127.0.0.1:{port}')

    def test_cell_that_hangs(self):
        """It takes the connection, and says nothing."""
        self.read_by('reader')
        server = socket.create_server(('127.0.0.1', 0))
        self.addCleanup(server.close)
        taken = []

        def accept():
            with contextlib.suppress(OSError):
                while True:
                    taken.append(server.accept()[0])

        threading.Thread(target=accept, daemon=True).start()
        port = server.getsockname()[1]
        self.move('cell2', f'mysql+pymysql://reader@127.0.0.1:{port}/cell2')
        self.check_without_cell2(f'127.0.0.1:{port}', 120)
        self.assertEqual(1, len(taken))
