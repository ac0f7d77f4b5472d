# SPDX-License-Identifier: Apache-2.0
"""By which account the databases of cells are read."""

import fixtures
from nova import context as nova_context
from nova import objects
from nova import rpc
from oslo_config import cfg
from oslo_messaging import conffixture
from oslo_utils.fixture import uuidsentinel as uuids

from nfv_sched.nova import database
from nfv_sched.tests import base


class TransportTest(base.TestCase):

    def setUp(self):
        super().setUp()
        for name in ('TRANSPORT', 'NOTIFICATION_TRANSPORT', 'NOTIFIER',
                     'LEGACY_NOTIFIER'):
            self.useFixture(fixtures.MockPatchObject(rpc, name, None))
        self.useFixture(conffixture.ConfFixture(database.CONF))

    def test_one_error(self):
        """It names the option, and has no part of the password."""
        for url in ('rabbit://nova:s3cret@host:s3cret/', 'nova:s3cret@host',
                    'rabbit://nova:s3cret/x@host:5672',
                    'rabbit://nova:s3cret#x@host', 'rabbit://[::1', 'nothing',
                    '', 'odd://nova:s3cret@host', '://s3cret@x',
                    'rabbit://a:s3cret@h1:5672,b:s3cret@h2:y/',
                    'rabbit://nova:s3cret@host\u2100/',
                    'kafka://nova:s3cret@host'):
            for section in ('DEFAULT', 'oslo_messaging_notifications'):
                if url == '' and section != 'DEFAULT':
                    continue  # that of [DEFAULT] is used then
                self.config.config(transport_url='fake://')
                self.config.config(
                    transport_url=url,
                    group=None if section == 'DEFAULT' else section)
                exc = self.assertRaises(
                    cfg.Error, database.prepare_database)
                self.assertIn(f'[{section}] transport_url', str(exc), url)
                self.assertNotIn('s3cret', str(exc))
                database.CONF.clear_override(
                    'transport_url', 'oslo_messaging_notifications')

    def test_cell(self):
        """Its database is read whatever the address of its queue is."""
        cell = objects.CellMapping(
            uuid=uuids.odd, name='odd', transport_url='rabbit://h:s3cret/',
            database_connection='sqlite://')
        self.useFixture(fixtures.MockPatchObject(
            objects.CellMappingList, 'get_all',
            return_value=objects.CellMappingList(objects=[cell])))
        self.addCleanup(nova_context.CELL_CACHE.pop, uuids.odd, None)
        cells = database.all_cells(None)
        self.assertEqual(
            {uuids.odd: 1}, nova_context.scatter_gather_cells(
                nova_context.get_admin_context(), cells, 60,
                lambda context: 1))


class AccountTest(base.TestCase):

    def connections(self, *connections):
        self.useFixture(fixtures.MockPatchObject(
            objects.CellMappingList, 'get_all',
            return_value=objects.CellMappingList(objects=[
                objects.CellMapping(uuid=uuids.cell, name='cell',
                                    database_connection=connection)
                for connection in connections])))
        return [cell.database_connection
                for cell in database.all_cells(None)]

    def test_that_of_the_mappings(self):
        given = ['mysql+pymysql://nova:secret@db/nova?charset=utf8', 'no url']
        self.assertEqual(given, self.connections(*given))

    def test_another(self):
        """Passwords are escaped; what is no address stays as it is."""
        self.flags(cell_database_user='reader', cell_database_password='p@/:')
        self.assertEqual(
            ['mysql+pymysql://reader:p%40%2F%3A@db:3306/nova?charset=utf8',
             'mysql://reader:p%40%2F%3A@[::1]/nova', 'no url'],
            self.connections(
                'mysql+pymysql://nova:secret@db:3306/nova?charset=utf8',
                'mysql://[::1]/nova', 'no url'))

    def test_no_password(self):
        self.flags(cell_database_user='reader')
        self.assertEqual(['mysql://reader@db/nova'],
                         self.connections('mysql://nova:secret@db/nova'))
