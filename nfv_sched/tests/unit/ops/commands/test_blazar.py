# SPDX-License-Identifier: Apache-2.0
"""Commands on a cloud with reservations of OpenStack Blazar."""

import dataclasses

from nfv_sched.ops.cloud import snapshot
from nfv_sched.tests.unit.ops import blazar_clouds
from nfv_sched.tests.unit.ops.commands import base

WHOLE = blazar_clouds.WHOLE


class BlazarTest(base.CommandTestCase):

    def setUp(self):
        super().setUp()
        blazar_clouds.enable(self)

    def test_unknown_reservation(self):
        """The free pool is none."""
        path = self.save_cloud(blazar_clouds.cloud())
        for name in ('x', 'freepool'):
            self.refused(
                f'error: no reservation of Blazar named {name!r}; there are: ',
                'capacity', 'list', '--reservation', name, '--from', path)

    def test_explain_server(self):
        cloud = blazar_clouds.cloud()
        for project, name, code, text in (
                ('alpha', WHOLE, 0, 'It would go to whole'),
                ('beta', WHOLE, 3,
                 f'reservation {WHOLE} is for project alpha'),
                ('alpha', blazar_clouds.LATER, 3,
                 f'not in reservation {blazar_clouds.LATER}')):
            path = self.save_cloud(dataclasses.replace(
                cloud, servers=(snapshot.Server(
                    uuid='a' * 32, name='new', host=None, cell='cell1',
                    state='error', project=project, flavor=cloud.flavors[0],
                    hints={'reservation': (name,)}),)))
            out, _err = self.exits(
                code, 'server', 'explain', 'new', '--try-seconds', '0',
                '--from', path)
            self.assertIn(text, out)
