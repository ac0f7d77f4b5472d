# SPDX-License-Identifier: Apache-2.0
"""The command ``nfv-sched snapshot save``, in a process of its own."""

import datetime
import os
import re
import shlex
import subprocess
import sys

from nova.db.api import models as api_models
from nova.db.main import models as main_models
from oslo_utils.fixture import uuidsentinel as uuids
import sqlalchemy as sa

from nfv_sched.ops.cloud import file
from nfv_sched.ops.cloud import snapshot
from nfv_sched.tests import documented
from nfv_sched.tests.functional import test_ledger_process

_Kind = snapshot.MissingKind


class CommandTest(test_ledger_process.ProcessTestCase):
    def setUp(self):
        super().setUp()
        self.file = f'{self.directory}/cloud.json.gz'

    def change(self, database, *statements):
        engine = sa.create_engine(f'sqlite:///{self.directory}/{database}')
        with engine.begin() as connection:
            for statement in statements:
                connection.execute(statement)
        engine.dispose()

    def save(self, *args):
        process = self.start('snapshot', 'save', self.file, *args,
                             module='nfv_sched.ops.cli.base')
        out, err = process.communicate(timeout=120)
        self.assertNotIn('Traceback', err)
        return (process.returncode, out,
                test_ledger_process.without_progress(err))

    def add_service(self, **values):
        self.change(
            'cell1.sqlite', main_models.Service.__table__.insert().values(
                host='host1', binary='nova-compute', topic='compute',
                created_at=datetime.datetime(2020, 1, 1), report_count=1,
                deleted=0, **values))

    def test_kolla(self):
        """Kolla's file is enough; standard output is the snapshot only."""
        page = documented.ROOT / 'doc/source/install/kolla.rst'
        words = shlex.split(re.search(
            r'# (docker .*) > cloud', page.read_text().replace('\\\n', ''))[1])
        mount = words[words.index('--volume') + 1]
        self.assertEqual('/etc/nova/nova.conf:ro', mount.partition(':')[2])
        with open(self.conf, 'a') as conf:  # has folders that are not here
            conf.write('[DEFAULT]\nlog_dir = /var/log/kolla/nova\n'
                       'state_path = /var/lib/nova\n[placement]\ncafile =\n')
        with open(self.file, 'wb') as saved:
            subprocess.run(
                [sys.executable, '-m', 'nfv_sched.ops.cli.base', *words[-3:],
                 '--config-file', self.conf], check=True, stdout=saved,
                stderr=subprocess.PIPE)
        self.assertEqual(1, len(file.load(self.file).hosts))

    def test_disabled_host(self):
        self.add_service(disabled=True, disabled_reason='broken')
        code, out, err = self.save()
        self.assertEqual((0, ''), (code, err))
        self.assertIn(f'{self.file}: 1 host, 0 servers, ', out)
        cloud = file.load(self.file)
        host, = cloud.hosts
        self.assertEqual(
            ('host1', 'node1', 'cell1', False, 'broken', False, None, None),
            (host.name, host.hypervisor, host.cell, host.enabled,
             host.disabled_reason, host.up, host.nodes, host.cpu_ratio))
        self.assertEqual(3, host.network.dhcp_servers)
        self.assertEqual(['node1'],
                         [provider.name for provider in host.providers])

    def test_disabled_cell(self):
        """Nova looks for no place there."""
        self.add_service(disabled=False)
        cells = api_models.CellMapping.__table__
        self.change('api.sqlite', cells.update().values(disabled=True))
        self.assertEqual(0, self.save()[0])
        host, = file.load(self.file).hosts
        self.assertEqual((False, 'its cell is disabled'),
                         (host.enabled, host.disabled_reason))

    def test_something_is_missing(self):
        self.change(
            'api.sqlite', api_models.CellMapping.__table__.insert().values(
                uuid=uuids.far, name='far', transport_url='none:///',
                database_connection='sqlite:////nonexistent/db',
                disabled=False))
        self.neutron.stop()
        self.placement.stop()
        code, out, err = self.save()
        self.assertEqual(1, code)
        cloud = file.load(self.file)
        self.assertEqual(
            [f'error: {text}' for text in cloud.missing], err.splitlines())
        cell, network, placement = cloud.missing
        self.assertEqual(
            (_Kind.CELL, 'far', (uuids.far,)),
            (cell.kind, cell.cell, cell.uuids))
        self.assertTrue(cell.text)
        self.assertEqual((_Kind.NEUTRON, _Kind.PLACEMENT),
                         (network.kind, placement.kind))
        self.assertIn('1 host, ', out)
        self.assertIsNone(cloud.hosts[0].network)

    def test_malformed(self):
        """A row that Nova has not written is left out, and told."""
        table = main_models.ComputeNode.__table__
        for text in ('{', '7', '[]', '{"cells": [{}]}'):
            self.change(
                'cell1.sqlite', table.update().values(numa_topology=text))
            code, out, err = self.save()
            self.assertEqual((1, 1), (code, len(err.splitlines())), err)
            cloud = file.load(self.file)
            missing, = cloud.missing
            self.assertEqual((_Kind.HOST, ('host1',), ()), (
                missing.kind, missing.hosts, cloud.hosts))
            self.assertEqual(f'error: {missing}\n', err)

    def test_nothing_can_be_read(self):
        with open(self.conf, 'a') as conf:
            conf.write('[api_database]\nconnection = sqlite:////nowhere/x\n')
        code, out, err = self.save()
        self.assertEqual((1, '', 1), (code, out, len(err.splitlines())), err)
        self.assertEqual("error: Nova's API database does not exist: "
                         '/nowhere/x: [api_database] connection\n', err)
        self.assertFalse(os.path.exists(self.file))
