#    Licensed under the Apache License, Version 2.0 (the "License"); you may
#    not use this file except in compliance with the License. You may obtain
#    a copy of the License at
#
#         http://www.apache.org/licenses/LICENSE-2.0
#
#    Unless required by applicable law or agreed to in writing, software
#    distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
#    WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
#    License for the specific language governing permissions and limitations
#    under the License.
"""By which account the databases of cells are read."""

import fixtures
from nova import objects
from oslo_utils.fixture import uuidsentinel as uuids

from nfv_sched.nova import database
from nfv_sched.tests import base


class AccountTest(base.TestCase):

    def connections(self, *connections):
        """What the connections of cell mappings become."""
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
