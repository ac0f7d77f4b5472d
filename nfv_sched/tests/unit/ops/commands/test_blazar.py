# SPDX-License-Identifier: Apache-2.0
"""Commands on a cloud with reservations of OpenStack Blazar."""

import dataclasses
import json
import os

import fixtures

from nfv_sched.ops.answers.capacity import quota
from nfv_sched.ops.cloud import file
from nfv_sched.ops.cloud import snapshot
from nfv_sched.tests.unit.ops import blazar_clouds
from nfv_sched.tests.unit.ops.commands import base
from nfv_sched.tests.unit.ops import small_clouds

WHOLE, SLOTS = blazar_clouds.WHOLE, blazar_clouds.SLOTS
UPPER = ('note: no more than this fits: pinning, pages, NUMA nodes, devices, '
         "networks and filters are not looked at, and Nova's options are not "
         'known\n')
LATER = ('note: none of these hosts is in the reservation; hosts are added '
         'when the lease starts\n')


class BlazarTest(base.CommandTestCase):

    def setUp(self):
        super().setUp()
        self.file = os.path.join(
            self.useFixture(fixtures.TempDir()).path, 'cloud')
        blazar_clouds.enable(self)
        self.save(blazar_clouds.cloud())

    def save(self, cloud):
        file.save(cloud, self.file)

    def capacity(self, *args):
        """Return the output of a command, and its last note."""
        code, out, err = self.run_command(
            'capacity', *args, '--ports', '1', '--from', self.file)
        self.assertEqual(0, code)
        return out, err

    def fits(self, *args):
        out, err = self.capacity(
            'list', *args, '--by', 'host', '-f', 'csv', '-c', 'Flavor',
            '-c', 'Host', '-c', 'Fits')
        self.assertEqual('', err)
        return {(row['Flavor'].partition(':')[0], row['Host']): row['Fits']
                for row in self.csv_rows(out)}

    def test_note(self):
        for path, rest in (
                (blazar_clouds.STAND_IN, ': other servers go elsewhere; see '
                 '--reservation\n'),
                (None, ', but BlazarFilter is not enabled, so other servers '
                 'go there, too\n')):
            self.save(blazar_clouds.cloud(path))
            for args in (('list',), ('show', 'pinned'),
                         ('list', '--mix', 'pinned=1')):
                self.assertEqual(
                    f'note: Blazar keeps 3 of 4 hosts for reservations{rest}',
                    self.capacity(*args)[1])
            self.assertEqual('', self.capacity('list', '--host', 'other')[1])

    def test_document(self):
        hosts = [('free', []),
                 ('whole', [{'id': WHOLE, 'project_id': 'alpha',
                             'kind': 'host'}]),
                 ('slots', [{'id': SLOTS, 'project_id': 'beta',
                             'kind': 'instance'}])]
        for path, args in ((blazar_clouds.STAND_IN, ('list',)),
                           (None, ('list', '--mix', 'pinned=1')),
                           (None, ('show', 'pinned'))):
            self.save(blazar_clouds.cloud(path))
            out, err = self.capacity(*args, '-f', 'json')
            self.assertEqual('', err)
            found = json.loads(out)['blazar']
            self.assertEqual(
                (path is not None, hosts), (found['filter_enabled'], [
                    (each['host'], each['reservations'])
                    for each in found['hosts']]))
            out, err = self.capacity(*args, '-f', 'json', '--host', 'other')
            self.assertIsNone(json.loads(out)['blazar'])

    def test_lost(self):
        out, _err = self.capacity('list', '--flavor', 'pinned', '-f', 'csv')
        row, = self.csv_rows(out)
        self.assertEqual(
            (4, 12), (row['Fits'], row['Lost to reserved by Blazar']))

    def test_reservation(self):
        for name, fits in (
                (WHOLE, {('pinned', 'whole'): 4,
                         ('reservation', 'whole'): 0}),
                (SLOTS, {('pinned', 'slots'): 0,
                         ('reservation', 'slots'): 2})):
            self.assertEqual(fits, self.fits('--reservation', name))
        row, = self.csv_rows(self.capacity(
            'list', '--mix', 'pinned=3', '--reservation', WHOLE,
            '-f', 'csv')[0])
        self.assertEqual(1, row['Fits'])

    def test_project(self):
        """Another than that of the reservation may have to wait for it."""
        self.assertEqual(
            {('pinned', 'whole'): 0, ('reservation', 'whole'): 0},
            self.fits('--reservation', WHOLE, '--project', 'beta'))

    def test_reservation_that_has_not_started(self):
        out, err = self.capacity(
            'list', '--reservation', blazar_clouds.LATER, '-f', 'csv')
        self.assertEqual(LATER, err)
        self.assertEqual([0, 0], [row['Fits'] for row in self.csv_rows(out)])

    def test_unknown_reservation(self):
        """The free pool is none."""
        for name in ('x', 'freepool'):
            code, out, err = self.run_command(
                'capacity', 'list', '--reservation', name, '--from',
                self.file)
            self.assertEqual((2, ''), (code, out))
            self.assertEqual(
                f'error: no reservation of Blazar named {name!r}\n', err)

    def test_api(self):
        """The hosts of the reservation, and the quota of its project."""
        self.api_shows(small_clouds.by_api(blazar_clouds.cloud()))
        projects = []
        self.useFixture(fixtures.MockPatchObject(
            quota, 'by_api', lambda connection, project: projects.append(
                project) or (lambda flavor: None)))
        for name, most, note in ((WHOLE, 4, ''),
                                 (blazar_clouds.LATER, 0, LATER)):
            code, out, err = self.run_command(
                'capacity', 'list', '--api', '--flavor', 'pinned',
                '--reservation', name, '-f', 'csv')
            row, = self.csv_rows(out)
            self.assertEqual((0, most, UPPER + note),
                             (code, row['At most'], err))
        self.assertEqual(['alpha', 'alpha'], projects)

    def test_explain(self):
        cloud = blazar_clouds.cloud()
        self.save(dataclasses.replace(cloud, hosts=cloud.hosts[:-1]))
        args = ('flavor', 'explain', 'pinned', '--try-seconds', '0',
                '--from', self.file)
        code, out, err = self.run_command(*args)
        self.assertEqual((3, ''), (code, err))
        self.assertIn('All 3 hosts: reserved by Blazar.\n', out)
        self.assertIn(f'Blazar: reserved by {WHOLE} for project alpha', out)
        self.assertIn('Blazar: in the free pool, for reservations only', out)
        _code, out, _err = self.run_command(*args, '-f', 'json')
        cause, = json.loads(out)['causes']
        self.assertEqual(('reserved', 3, ['BlazarFilter'], 'reserved'), (
            cause['kind'], cause['hosts'], cause['filters'],
            cause['refusal']['kind']))
        _code, out, _err = self.run_command(*args, '--for-tenant')
        self.assertIn('No host has what it needs:\n- a reservation needed on '
                      'hosts that are kept for reservations\n', out)
        for secret in (WHOLE, 'alpha', 'free pool'):
            self.assertNotIn(secret, out)

    def test_explain_server(self):
        """The hint of the server counts, and who it belongs to."""
        cloud = blazar_clouds.cloud()
        for project, name, code, text in (
                ('alpha', WHOLE, 0, 'It would go to whole'),
                ('beta', WHOLE, 3,
                 f'reservation {WHOLE} is for project alpha'),
                ('alpha', blazar_clouds.LATER, 3,
                 f'not in reservation {blazar_clouds.LATER}')):
            self.save(dataclasses.replace(cloud, servers=(snapshot.Server(
                uuid='a' * 32, name='new', host=None, cell='cell1',
                state='error', project=project, flavor=cloud.flavors[0],
                hints={'reservation': (name,)}),)))
            done, out, _err = self.run_command(
                'server', 'explain', 'new', '--try-seconds', '0', '--from',
                self.file)
            self.assertEqual(code, done)
            self.assertIn(text, out)
