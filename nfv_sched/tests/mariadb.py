# SPDX-License-Identifier: Apache-2.0
"""A MariaDB of a test's own, in a directory, reached through a socket."""

import contextlib
import getpass
import os
import shutil
import subprocess
import time

import fixtures
import pymysql

_SECONDS = 120  # until it answers
_OPTIONS = ('skip-networking', 'skip-log-bin', 'skip-name-resolve',
            'innodb-flush-log-at-trx-commit=0', 'innodb-doublewrite=0',
            'innodb-flush-method=nosync', 'innodb-log-file-size=64M',
            'performance-schema=OFF', 'character-set-server=utf8mb3',
            'collation-server=utf8mb3_general_ci', 'max-connections=200')


def program(name: str) -> str | None:
    """Where a program of MariaDB is; None if it is not installed."""
    return shutil.which(name) or shutil.which(
        name, path='/usr/sbin:/usr/local/sbin')


def is_installed() -> bool:
    return all(map(program, ('mariadbd', 'mariadb-install-db')))


class MariaDB(fixtures.Fixture):
    """A server, until the clean-up.

    Its account ``root`` may do all and has no password.
    """

    def _setUp(self):
        self.directory = self.useFixture(fixtures.TempDir()).path
        self._socket = os.path.join(self.directory, 'sock')
        data = os.path.join(self.directory, 'data')
        log = os.path.join(self.directory, 'log')
        user = getpass.getuser()
        with open(log, 'wb') as out:
            subprocess.run(
                [program('mariadb-install-db'), '--no-defaults',
                 f'--datadir={data}', f'--user={user}', '--skip-test-db',
                 '--auth-root-authentication-method=normal'],
                stdout=out, stderr=out, check=True)
            process = subprocess.Popen(
                [program('mariadbd'), '--no-defaults', f'--datadir={data}',
                 f'--socket={self._socket}', f'--user={user}',
                 f'--pid-file={self.directory}/pid',
                 *(f'--{option}' for option in _OPTIONS)],
                stdout=out, stderr=out)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        end = time.monotonic() + _SECONDS
        while True:
            try:
                self.execute('SELECT 1')
            except pymysql.OperationalError:
                if process.poll() is None and time.monotonic() < end:
                    time.sleep(0.1)
                    continue
                with open(log) as told:
                    raise RuntimeError(f'MariaDB: {told.read()[-2000:]}')
            break

    def url(self, database: str, user: str = 'root') -> str:
        """Return a database's address, for an account without password."""
        return (f'mysql+pymysql://{user}@localhost/{database}'
                f'?unix_socket={self._socket}&charset=utf8')

    def execute(self, *statements: str) -> list[tuple]:
        """Run statements as ``root``, and return the rows of the last one."""
        with contextlib.closing(pymysql.connect(
                unix_socket=self._socket, user='root',
                autocommit=True)) as connection:
            with connection.cursor() as cursor:
                for statement in statements:
                    cursor.execute(statement)
                return list(cursor.fetchall())
