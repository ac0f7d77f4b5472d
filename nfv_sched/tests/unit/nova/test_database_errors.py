# SPDX-License-Identifier: Apache-2.0
"""What is said of a database that cannot be read."""

import os
import socket
import struct
import threading

import fixtures
from oslo_db.sqlalchemy import enginefacade
import sqlalchemy as sa

from nfv_sched.nova import database_errors
from nfv_sched.tests import base

OPTION = '[api_database] connection'


class TextTest(base.TestCase):

    def text(self, url):
        """What is said of a database that is read by oslo.db, as by Nova."""
        context = type('Context', (), {})
        enginefacade.transaction_context_provider(context)
        facade = enginefacade.transaction_context()
        facade.configure(connection=url, max_retries=1, retry_interval=0)
        try:
            with facade.reader.using(context()) as session:
                session.execute(sa.text('SELECT * FROM aggregates')).all()
        except Exception as exc:
            text = database_errors.text(exc, 'the database', url, OPTION)
            self.assertNotIn('s3cret', text)
            return text
        raise AssertionError(f'{url} was read')

    def refusing(self, code, state, text):
        """The address of a MySQL that refuses each client with an error."""
        server = socket.create_server(('127.0.0.1', 0))
        self.addCleanup(server.close)
        body = b'\xff' + struct.pack('<H', code) + f'#{state}{text}'.encode()

        def serve():
            while True:
                try:
                    client, _address = server.accept()
                except OSError:
                    return
                with client:
                    client.sendall(
                        struct.pack('<I', len(body))[:3] + b'\0' + body)

        threading.Thread(target=serve, daemon=True).start()
        return f'127.0.0.1:{server.getsockname()[1]}'

    def test_no_answer(self):
        gone, silent = (socket.create_server(('127.0.0.1', 0))
                        for _ in range(2))
        self.addCleanup(silent.close)
        closed, where = (f'127.0.0.1:{server.getsockname()[1]}'
                         for server in (gone, silent))
        gone.close()
        for host, why in ((closed, 'connection refused'),
                          (where, 'no answer in time'),
                          ('db.invalid', 'unknown host name')):
            self.assertEqual(
                f'the database at {host} does not answer ({why}): {OPTION}',
                self.text(f'mysql+pymysql://nova:s3cret@{host}/nova'
                          '?connect_timeout=1&read_timeout=1'))

    def test_refused(self):
        for code, state, said, text in (
                (1045, '28000', "Access denied for user 'nova'@'x'",
                 'does not accept the user nova with this password'),
                (1049, '42000', "Unknown database 'api'",
                 'does not exist: api'),
                (1044, '42000', "Access denied for user 'nova'@'x' to "
                 "database 'api'", 'does not let the user nova read api')):
            where = self.refusing(code, state, said)
            self.assertEqual(
                f'the database at {where} {text}: {OPTION}',
                self.text(f'mysql+pymysql://nova:s3cret@{where}/api'))

    def test_sqlite(self):
        folder = self.useFixture(fixtures.TempDir()).path
        path = os.path.join(folder, 'x')
        self.assertEqual(
            f'the database lacks the table aggregates, so {path} may be '
            f'another database: {OPTION}', self.text(f'sqlite:///{path}'))
        self.assertEqual(
            f'the database does not exist: {path}/y: {OPTION}',
            self.text(f'sqlite:///{path}/y'))

    def test_url(self):
        for url, text in (
                ('odd://nova:s3cret@db/x',
                 ' at db is of an unknown kind: odd'),
                ('nova:s3cret@db',
                 ' has no URL like mysql+pymysql://HOST/DATABASE')):
            self.assertEqual(f'the database{text}: {OPTION}', self.text(url))

    def test_other(self):
        self.assertEqual(
            f'the database cannot be read, see {OPTION}: odd',
            database_errors.text(ValueError('odd [SQL: SELECT *]'),
                                 'the database', None, OPTION))
