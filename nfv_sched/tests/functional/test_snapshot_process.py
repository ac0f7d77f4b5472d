# SPDX-License-Identifier: Apache-2.0
"""The command ``nfv-sched snapshot save``, in a process of its own."""

import datetime
import os

from nova.db.api import models as api_models
from nova.db.main import models as main_models
from oslo_utils.fixture import uuidsentinel as uuids
import sqlalchemy as sa

from nfv_sched.ops.cloud import file
from nfv_sched.ops.cloud import snapshot
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

    def test_disabled_host(self):
        self.change(
            'cell1.sqlite', main_models.Service.__table__.insert().values(
                host='host1', binary='nova-compute', topic='compute',
                report_count=1, disabled=True, disabled_reason='broken',
                created_at=datetime.datetime(2020, 1, 1), deleted=0))
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
        self.change(
            'cell1.sqlite', main_models.Service.__table__.insert().values(
                host='host1', binary='nova-compute', topic='compute',
                report_count=1, disabled=False,
                created_at=datetime.datetime(2020, 1, 1), deleted=0))
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
