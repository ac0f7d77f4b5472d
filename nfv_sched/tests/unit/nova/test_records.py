# SPDX-License-Identifier: Apache-2.0
"""Cells that answer, and cells that do not."""

import datetime
from unittest import mock

import fixtures
from nova import context as nova_context
from nova.db.main import api
from nova.db.main import models
from nova import objects
from oslo_utils.fixture import uuidsentinel as uuids

from nfv_sched.nova import records
from nfv_sched.tests import base


class PlainTest(base.TestCase):

    def test_versions_are_gone(self):
        topology = objects.NUMATopology(cells=[objects.NUMACell(
            id=1, cpuset={1, 2}, pcpuset=set(), memory=5, pinned_cpus={2})])
        self.assertEqual(
            {'cells': [{'id': 1, 'cpuset': [1, 2], 'pcpuset': [],
                        'memory': 5, 'pinned_cpus': [2]}]},
            records.deserialized(topology._to_json()))

    def test_nothing(self):
        self.assertIsNone(records.deserialized(None))
        self.assertIsNone(records.deserialized(''))
        self.assertRaises(ValueError, records.deserialized, '{')


class CellsTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.useFixture(fixtures.MockPatchObject(
            objects.CellMappingList, 'get_all', return_value=[
                objects.CellMapping(uuid=getattr(uuids, name), name=name,
                                    disabled=name == 'near',
                                    database_connection='sqlite://')
                for name in ('near', 'far')]))
        self.gather = self.useFixture(fixtures.MockPatchObject(
            nova_context, 'scatter_gather_cells')).mock

    def answers(self, *answers):
        self.gather.side_effect = [
            {getattr(uuids, name): answer for name, answer in each.items()}
            for each in answers]

    def asked(self, number):
        return [cell.name
                for cell in self.gather.call_args_list[number][0][1]]

    def test_no_answer(self):
        self.answers({
            'near': ([], {}, {}),
            'far': nova_context.did_not_respond_sentinel})
        cells = records.Cells()
        self.assertEqual(['near'], [hosts.cell for hosts in cells.hosts()])
        failure, = cells.failures
        self.assertEqual(('far', None), (failure.cell.name, failure.error))
        self.assertFalse(cells.empty)

    def test_not_asked_again(self):
        """A cell that fails in between keeps what was read of it."""
        row = mock.Mock(id=3)
        many = [(row, {}, None)] * records.CHUNK
        self.answers({'near': records.CHUNK + 1, 'far': records.CHUNK + 1},
                     {'near': many, 'far': many},
                     {'near': many[:1], 'far': ValueError('gone\n[SQL: x]')},)
        cells = records.Cells()
        progress = []
        found = list(cells.servers(lambda *args: progress.append(args)))
        self.assertEqual(2 * records.CHUNK + 1, len(found))
        failure, = cells.failures
        self.assertEqual('far', failure.cell.name)
        # The exception's own text, without the query.
        self.assertIn('gone', failure.error)
        self.assertNotIn('SQL', failure.error)
        self.assertEqual(('servers', len(found), 2 * records.CHUNK + 2),
                         progress[-1])
        self.answers({'near': ([], {}, {})})
        cells.hosts()
        self.assertEqual(['near'], self.asked(-1))

    def test_no_cells(self):
        objects.CellMappingList.get_all.return_value = []
        cells = records.Cells()
        self.assertEqual((True, []), (cells.empty, cells.failures))


class MovedTest(base.TestCase):
    """When servers were last known to be on another host."""

    def setUp(self):
        super().setUp()
        self.useFixture(fixtures.MockPatchObject(
            objects.CellMappingList, 'get_all', return_value=[
                objects.CellMapping(uuid=uuids.cell, name='cell')]))
        self.useFixture(fixtures.MockPatchObject(
            nova_context, 'scatter_gather_cells', self.gather))
        path = self.useFixture(fixtures.TempDir()).join('cell.sqlite')
        manager = api.create_context_manager(
            connection=f'sqlite:///{path}')
        self.engine = manager.writer.get_engine()
        self.addCleanup(self.engine.dispose)
        models.BASE.metadata.create_all(self.engine)
        self.useFixture(fixtures.MockPatchObject(
            api, 'get_context_manager', return_value=manager))

    def gather(self, context, cells, _timeout, read):
        cell, = cells
        context.cell_uuid = cell.uuid
        return {cell.uuid: read(context)}

    def insert(self, model, **values):
        with self.engine.begin() as connection:
            connection.execute(model.__table__.insert().values(
                {'deleted': 0, **values}))

    def insert_move(self, day, name, source, **values):
        self.insert(
            models.Migration, uuid=getattr(uuids, f'move{day}'),
            instance_uuid=getattr(uuids, name), source_compute=source,
            migration_type='migration',
            created_at=datetime.datetime(2026, 1, day), **values)

    def test_all(self):
        for name, host in (('a', 'x'), ('b', 'y'), ('c', None), ('d', 'x'),
                           ('e', 'x'), ('f', 'x')):
            self.insert(models.Instance, uuid=getattr(uuids, name), host=host)
        for day, name, source in (
                (1, 'a', 'y'), (2, 'a', 'x'), (3, 'b', 'z'), (4, 'b', 'x'),
                (5, 'b', 'z'), (6, 'b', 'y'), (7, 'b', None),
                (8, 'c', 'x'), (9, 'd', 'x'), (10, 'other', 'y'),
                # The host whose name comes first was left last, and first.
                (12, 'e', 'a'), (11, 'e', 'b'), (13, 'f', 'a'),
                (14, 'f', 'b')):
            self.insert_move(day, name, source)
        # Nova deletes none of a server that is there.
        self.insert_move(15, 'a', 'z', deleted=1)
        cells = records.Cells()
        found = {row.columns.uuid: row.moved and row.moved.day
                 for row in cells.servers(lambda *args: None)}
        self.assertEqual([], cells.failures)
        self.assertEqual({uuids.a: 1, uuids.b: 5, uuids.c: 8, uuids.d: None,
                          uuids.e: 12, uuids.f: 14}, found)
