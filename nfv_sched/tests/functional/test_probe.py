# SPDX-License-Identifier: Apache-2.0
"""The command ``nfv-sched-status ledger probe`` and a real Placement.

The Placement of these tests answers one request after the other, so it never
grants too much by itself: a test changes the inventory behind the probe's back
to make it seem so.
"""

import contextlib
import io
import json
import os
import threading
import time

import fixtures
from nova.conf import placement as placement_conf
from oslo_config import cfg
from oslo_upgradecheck import upgradecheck
from oslo_utils.fixture import uuidsentinel as uuids
from placement.tests.functional.fixtures import placement as placement_fixtures

from nfv_sched.cmd import status
from nfv_sched.ledger import probe
from nfv_sched.limits import names
from nfv_sched.nova import database
from nfv_sched.tests import base
from nfv_sched.tests import placement_api

_CONFLICT = (409, json.dumps({'errors': [{
    'status': 409, 'code': 'placement.concurrent_update',
    'detail': 'somebody else was faster'}]}).encode())


class ProbeTest(base.TestCase):

    def setUp(self):
        super().setUp()
        fixture = self.useFixture(placement_fixtures.PlacementFixture())
        self.api = placement_api.PlacementAPI(
            fixture.conf_fixture.conf).start_for(self)
        self.conf = os.path.join(
            self.useFixture(fixtures.TempDir()).path, 'nova.conf')
        with open(self.conf, 'w') as conf:
            conf.write('[placement]\nauth_type = none\n'
                       f'endpoint_override = {self.api.url}\n')
        # Nova's has read the arguments of the tests.
        self.conf_opts = conf = cfg.ConfigOpts()
        conf.register_group(placement_conf.placement_group)
        self.useFixture(fixtures.MonkeyPatch(
            'nfv_sched.nova.scheduler.CONF', conf))
        self.useFixture(fixtures.MockPatchObject(upgradecheck, 'CONF'))
        self.useFixture(fixtures.MonkeyPatch(
            'nfv_sched.nova.database.parse_configuration',
            lambda args, prog, description: database.parse(conf, args, prog)))
        self.before = self.everything()

    def placement(self, method, path, body=None):
        """Ask Placement past the server; returns the decoded answer."""
        status, data = self.api.call(method, path, body)
        self.assertIn(status, (200, 201, 204), data)
        return json.loads(data) if data else None

    def everything(self):
        return [sorted(item if isinstance(item, str) else item['name']
                       for item in self.placement('GET', f'/{what}')[what])
                for what in ('resource_providers', 'traits',
                             'resource_classes')]

    def probe(self, *args):
        return self.output(status.main, [
            '--config-file', self.conf, 'ledger', 'probe', *args])

    def output(self, run, args):
        self.conf_opts.reset()
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = run(args)
        self.assertNotIn('Traceback', err.getvalue())
        return code, out.getvalue(), err.getvalue()

    def assert_nothing_left(self):
        self.api.before = lambda method, path: None
        self.api.fault = lambda method, path: None
        self.assertEqual(self.before, self.everything())
        claimed = {path for method, path in self.api.requests
                   if method == 'PUT' and path.startswith('/allocations/')}
        self.assertTrue(claimed)
        for path in claimed:
            self.assertEqual(
                {}, self.placement('GET', path)['allocations'])

    def room(self, room):
        """Change behind the back of the probe how much room there is."""
        lock = threading.Lock()
        done = []

        def change(method, path):
            if method != 'PUT' or not path.startswith('/allocations/'):
                return
            # No claim passes before it is done.
            with lock:
                if done:
                    return
                done.append(True)
                found, = self.placement(
                    'GET', f'/resource_providers?required={probe.NAME}'
                )['resource_providers']
                path = f'/resource_providers/{found["uuid"]}/inventories'
                body = self.placement('GET', path)
                body['inventories'][probe.NAME]['total'] = room
                self.placement('PUT', path, body)

        self.api.before = change

    def test_right(self):
        code, out, err = self.probe()
        self.assertEqual((0, ''), (code, err))
        self.assertEqual(3, out.count(
            '12 claims at once, capacity for 7: 7 granted, 0 met a conflict, '
            '5 refused; after the conflicts were tried again 7 granted'))
        self.assertIn('RIGHT, as far as this shows: no claims met', out)
        self.assert_nothing_left()

    def test_conflicts(self):
        """Those that meet one try again, and all room is used."""
        left = ['x'] * 9

        def fault(method, path):
            if method == 'PUT' and path.startswith('/allocations/') and left:
                left.pop()
                return _CONFLICT

        self.api.fault = fault
        code, out, err = self.probe('--bursts', '1')
        self.assertEqual((0, ''), (code, err))
        self.assertIn('9 met a conflict', out)
        self.assertIn('tried again 7 granted', out)
        self.assertIn('RIGHT: no more was granted than there was', out)
        self.assert_nothing_left()

    def test_too_much(self):
        self.room(11)
        code, out, _err = self.probe()
        self.assertEqual(3, code)
        self.assertIn('capacity for 7: 11 granted', out)
        self.assertIn('WRONG: Placement granted more than there was.', out)
        self.assertIn('allocation_conflict_retry_count = 1', out)
        self.assert_nothing_left()

    def test_refused_while_there_is_room(self):
        self.room(5)
        code, out, _err = self.probe()
        self.assertEqual(4, code)
        self.assertIn('refused while there was capacity', out)
        self.assert_nothing_left()

    def test_failure(self):
        """Whatever fails, and wherever, nothing is left behind."""
        for method, part, at in (
            ('PUT', '/allocations/', 5), ('GET', '/allocations', 1),
            ('PUT', '/inventories', 0), ('PUT', '/traits', 1),
        ):
            count = [0]

            def fault(found, path, method=method, part=part, at=at,
                      count=count):
                if found == method and part in path:
                    count[0] += 1
                    return 503 if count[0] == at + 1 else None

            self.api.fault = fault
            code, out, err = self.probe()
            self.assertEqual(1, code, (method, part))
            self.assertRegex(err, '^nfv-sched-status: .* 503 .*\n$')
            self.assertNotIn('RIGHT', out)
            self.api.fault = lambda method, path: None
            self.assertEqual(self.before, self.everything())

    def test_interrupted(self):
        def interrupt(probe):
            raise KeyboardInterrupt()

        with fixtures.MonkeyPatch(
                'nfv_sched.ledger.probe.Probe.granted', interrupt):
            self.assertEqual((130, '', ''), self.probe())
        self.assert_nothing_left()

    def leave(self, uuid, age):
        """What a probe leaves behind that is killed."""
        self.placement('PUT', f'/resource_classes/{probe.NAME}')
        self.placement('PUT', f'/traits/{probe.NAME}')
        self.placement('POST', '/resource_providers', {
            'uuid': uuid, 'name':
            f'{probe.PREFIX}{int(time.time() - age)}-{uuid[:8]}'})
        self.placement('PUT', f'/resource_providers/{uuid}/traits', {
            'traits': [probe.NAME], 'resource_provider_generation': 0})
        self.placement('PUT', f'/resource_providers/{uuid}/inventories', {
            'inventories': {probe.NAME: {'total': 7}},
            'resource_provider_generation': 1})
        self.placement('PUT', f'/allocations/{uuid}', {
            'allocations': {uuid: {'resources': {probe.NAME: 1}}},
            'project_id': 'p', 'user_id': 'u', 'consumer_generation': None})

    def test_left_behind(self):
        """The next one removes it, but none that may still be running."""
        self.leave(uuids.dead, 3600)
        code, _out, err = self.probe('--bursts', '1')
        self.assertEqual((0, ''), (code, err))
        self.assert_nothing_left()
        self.leave(uuids.running, 60)
        running = self.everything()
        code, _out, err = self.probe('--bursts', '1')
        self.assertEqual((0, ''), (code, err))
        self.assertEqual(running, self.everything())

    def test_of_no_use_to_others(self):
        """No class that Nova asks for, no parent, not in the ledger."""
        found = []

        def look(method, path):
            if method == 'PUT' and path.startswith('/allocations/'):
                self.api.before = lambda method, path: None
                for provider in self.placement(
                        'GET', '/resource_providers')['resource_providers']:
                    path = f'/resource_providers/{provider["uuid"]}'
                    found.append((
                        provider['parent_provider_uuid'],
                        list(self.placement('GET', f'{path}/inventories')[
                            'inventories']),
                        self.placement('GET', f'{path}/traits')['traits']))

        self.api.before = look
        self.assertEqual(0, self.probe('--bursts', '1')[0])
        self.assertEqual([(None, [probe.NAME], [probe.NAME])], found)
        self.assertNotIn(names.TRAIT, found[0][2])

    def test_arguments(self):
        code, _out, err = self.probe('--claims', '7')
        self.assertEqual(
            (status.UNUSABLE, 'nfv-sched-status: --claims must be more than '
             '--capacity\n'), (code, err))
        for value in '0', '-1', 'many', '1001':
            self.assertEqual(status.UNUSABLE,
                             self.probe('--bursts', value)[0])
        with contextlib.suppress(SystemExit):
            self.assertEqual([], self.api.writes())

    def test_no_placement(self):
        self.api.stop()
        code, out, err = self.probe()
        self.assertEqual((1, ''), (code, out))
        self.assertRegex(err, r'^nfv-sched-status: GET /traits/\w+: .*\n$')
        with open(self.conf, 'w') as conf:
            conf.write('[placement]\nauth_type = unknown\n')
        code, out, err = self.probe()
        self.assertEqual((1, ''), (code, out))
        self.assertIn('nfv-sched-status: no connection to Placement', err)
