# SPDX-License-Identifier: Apache-2.0
"""Databases of the services of OpenStack filled for the first time."""

import getpass
import grp
import os

from nfv_sched.tests.live.bed import database
from nfv_sched.tests.live.bed import layout as bed_layout
from nfv_sched.tests.live.bed import processes

_CELL = 'cell1'


def _run(layout: bed_layout.Layout, log: str, *command: str) -> None:
    processes.run(command, layout.environment(), layout.log / f'{log}.log')


def keystone(layout: bed_layout.Layout) -> None:
    def manage(*arguments):
        _run(layout, 'keystone-manage', 'keystone-manage', '--config-dir',
             str(layout.etc / 'keystone'), *arguments)

    owner = ('--keystone-user', getpass.getuser(),
             '--keystone-group', grp.getgrgid(os.getgid()).gr_name)
    manage('db_sync')
    manage('fernet_setup', *owner)
    manage('credential_setup', *owner)
    url = layout.url('keystone', '/v3')
    manage('bootstrap',
           '--bootstrap-password', layout.password,
           '--bootstrap-username', 'admin',
           '--bootstrap-project-name', 'admin',
           '--bootstrap-role-name', 'admin',
           '--bootstrap-service-name', 'keystone',
           '--bootstrap-region-id', bed_layout.REGION,
           '--bootstrap-admin-url', url,
           '--bootstrap-internal-url', url,
           '--bootstrap-public-url', url)


def placement(layout: bed_layout.Layout) -> None:
    _run(layout, 'placement-manage', 'placement-manage', '--config-file',
         str(layout.etc / 'placement' / 'placement.conf'), 'db', 'sync')


def glance(layout: bed_layout.Layout) -> None:
    _run(layout, 'glance-manage', 'glance-manage', '--config-file',
         str(layout.etc / 'glance' / 'glance-api.conf'), 'db_sync')


def neutron(layout: bed_layout.Layout) -> None:
    etc = layout.etc / 'neutron'
    _run(layout, 'neutron-db-manage', 'neutron-db-manage',
         '--config-file', str(etc / 'neutron.conf'),
         '--config-file', str(etc / 'ml2_conf.ini'), 'upgrade', 'heads')


def _nova_manage(layout: bed_layout.Layout, *arguments: str) -> None:
    _run(layout, 'nova-manage', 'nova-manage', '--config-file',
         str(layout.etc / 'nova' / 'nova.conf'), *arguments)


def nova(layout: bed_layout.Layout) -> None:
    _nova_manage(layout, 'api_db', 'sync')
    _nova_manage(layout, 'cell_v2', 'map_cell0', '--database_connection',
                 layout.database_url('nova_cell0'))
    _nova_manage(layout, 'db', 'sync')
    if not database.query(layout, 'nova_api', 'SELECT id FROM cell_mappings '
                          'WHERE name = %s', (_CELL,)):
        _nova_manage(layout, 'cell_v2', 'create_cell', '--name', _CELL)


def discover_hosts(layout: bed_layout.Layout) -> None:
    _nova_manage(layout, 'cell_v2', 'discover_hosts')
