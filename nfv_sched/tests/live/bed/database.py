# SPDX-License-Identifier: Apache-2.0
"""MariaDB."""

from collections.abc import Sequence
import contextlib
import getpass
import pathlib
import shutil

import pymysql
import pymysql.cursors

from nfv_sched.tests.live.bed import errors
from nfv_sched.tests.live.bed import layout as bed_layout
from nfv_sched.tests.live.bed import ports
from nfv_sched.tests.live.bed import processes

DATABASES = ('keystone', 'placement', 'glance', 'neutron', 'nova_api',
             'nova_cell0', 'nova')

#: A user that may only read the databases of Nova.
READER = 'reader'

# Durability is of no use to a bed, and costs most of the time on slow disks.
_CONFIGURATION = """\
[mariadbd]
user = {user}
datadir = {data}
socket = {layout.run}/mariadb.sock
pid-file = {layout.run}/mariadb.pid
init-file = {layout.etc}/mariadb.sql
bind-address = {address}
port = {port}
skip-name-resolve
skip-log-bin
transaction-isolation = READ-COMMITTED
character-set-server = utf8mb3
collation-server = utf8mb3_general_ci
max_connections = 1000
innodb_buffer_pool_size = 256M
innodb_log_file_size = 64M
innodb_flush_log_at_trx_commit = 0
innodb_doublewrite = 0
innodb_flush_method = nosync
performance_schema = OFF
"""


def _program(name: str) -> str:
    for path in (None, '/usr/sbin:/usr/local/sbin'):
        found = shutil.which(name, path=path)
        if found:
            return found
    raise errors.BedError(
        f'{name} is not installed; run tools/live-packages as root')


def service(layout: bed_layout.Layout) -> processes.Service:
    return processes.Service(
        'mariadb',
        [_program('mariadbd'), f'--defaults-file={_configuration(layout)}'],
        layout.environment(), layout.directory,
        url=f'{ports.ADDRESS}:{layout.ports["mariadb"]}',
        ready=lambda: _ready(layout))


def prepare(layout: bed_layout.Layout) -> None:
    """Make its configuration and, the first time, its data directory."""
    data = layout.state / 'mariadb'
    _configuration(layout).write_text(_CONFIGURATION.format(
        user=getpass.getuser(), data=data, layout=layout,
        address=ports.ADDRESS, port=layout.ports['mariadb']))
    _init_file(layout)
    if data.exists():
        return
    # Under another name until it is whole.
    partial = layout.state / 'mariadb.new'
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    processes.run(
        [_program('mariadb-install-db'),
         f'--defaults-file={_configuration(layout)}', f'--datadir={partial}',
         '--auth-root-authentication-method=socket', '--skip-test-db'],
        layout.environment(), layout.log / 'mariadb-install-db.log')
    partial.rename(data)


def reader_url(layout: bed_layout.Layout, name: str) -> str:
    """Return the address of a database for the user that may only read."""
    return layout.database_url(name).replace(
        f'//{bed_layout.USER}:', f'//{READER}:', 1)


def query(layout: bed_layout.Layout, name: str, statement: str,
          parameters: Sequence = ()) -> list[dict]:
    connection = pymysql.connect(
        host=ports.ADDRESS, port=layout.ports['mariadb'],
        user=bed_layout.USER, password=layout.password, database=name,
        autocommit=True, connect_timeout=5, read_timeout=30,
        cursorclass=pymysql.cursors.DictCursor)
    with contextlib.closing(connection), connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        return list(cursor.fetchall())


def _configuration(layout: bed_layout.Layout) -> pathlib.Path:
    return layout.etc / 'mariadb.cnf'


def _init_file(layout: bed_layout.Layout) -> None:
    user = f"'{bed_layout.USER}'@'{ports.ADDRESS}'"
    statements = [f'CREATE DATABASE IF NOT EXISTS {name} '
                  'CHARACTER SET utf8mb3;' for name in DATABASES]
    statements += [
        f"CREATE USER IF NOT EXISTS {user} IDENTIFIED BY "
        f"'{layout.password}';",
        f'GRANT ALL ON *.* TO {user};',
    ]
    reader = f"'{READER}'@'{ports.ADDRESS}'"
    statements.append(f"CREATE USER IF NOT EXISTS {reader} IDENTIFIED BY "
                      f"'{layout.password}';")
    statements += [f'GRANT SELECT ON {name}.* TO {reader};'
                   for name in ('nova_api', 'nova_cell0', 'nova')]
    path = layout.etc / 'mariadb.sql'
    path.touch(mode=0o600)
    path.write_text('\n'.join(statements) + '\n')


def _ready(layout: bed_layout.Layout) -> str | None:
    query(layout, DATABASES[-1], 'SELECT 1')
    return None
