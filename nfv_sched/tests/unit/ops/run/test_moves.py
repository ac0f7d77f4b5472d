# SPDX-License-Identifier: Apache-2.0
"""Moves, request by request, with answers that are not as the API says."""

import json
import types
from unittest import mock

import fixtures

from nfv_sched.ops.run import moves
from nfv_sched.ops.run import values
from nfv_sched.tests import base
from nfv_sched.tests.unit.ops.run import migrating_nova

_ID = migrating_nova.id_of('a')
_AGENTS = [migrating_nova.id_of(name) for name in ('one', 'two')]


def spoilt(body):
    yield from ([], {}, None, 7, 'x', [body])
    for key, value in body.items():
        yield {}
        for other in (None, 7, 'x', {}, [None], [7], [[]], [{}]):
            yield {**body, key: other}
        for row in [value] if isinstance(value, dict) else value:
            for name, field in row.items():
                fewer = {each: row[each] for each in row if each != name}
                for changed in (fewer, {**row, name: []}, {**row, name: 7}):
                    yield {key: changed if value is row else [changed]}


class Cloud(migrating_nova.MigratingNova):
    """Nova and Neutron without HTTP; one answer may be spoilt.

    :ivar asked: method and body of each answer
    :ivar place: index of the answer in place of which there is ``body``
    """

    def __init__(self, how, place=None, body=None):
        super().__init__(migrating_nova.document(
            f'a {how} {"-" if how == "shelve" else "two"}'))
        self.served = [[{'id': _ID}], []]
        self.asked = []
        self.place, self.body = place, body
        self.compute = self.network = mock.Mock(request=self.request)

    def request(self, path, method, json=None, params=None, **_options):
        words = path.strip('/').split('/')
        query = {key: [value] for key, value in (params or {}).items()}
        status, body = (self.of_agents if 'agents' in words else self.answer)(
            method, words, query, json)
        self.asked.append((method, body))
        if len(self.asked) - 1 == self.place:
            body = self.body
        return response(status, body)

    def of_agents(self, method, words, query, body):
        number = _AGENTS.index(words[1])
        match method, words[2:]:
            case 'GET', []:
                return 200, {'agent': {'alive': True, 'admin_state_up': True}}
            case 'GET', _:
                return 200, {'networks': list(self.served[number])}
            case 'DELETE', _:
                self.served[number].clear()
            case 'POST', _:
                self.served[number].append({'id': _ID})
        return 204, {}


def response(status, body):
    content = json.dumps(body)
    return types.SimpleNamespace(
        status_code=status, content=content.encode(), reason='',
        json=lambda: json.loads(content))


def move_of(how):
    agents = dict(zip(('source_agent', 'destination_agent'), _AGENTS))
    return values.Move(
        number=1, kind=how, id=_ID, name='a', source='one',
        destination='' if how == 'shelve' else 'two',
        **agents if how == 'dhcp' else {})


class MalformedTest(base.TestCase):
    def setUp(self):
        super().setUp()
        self.useFixture(fixtures.MockPatchObject(moves, 'GRACE', 0))

    def make(self, how, *args, failing=()):
        cloud = Cloud('live' if how == 'dhcp' else how, *args)
        cloud.failing = set(failing)
        return cloud, self.run_out(cloud, how)

    def run_out(self, cloud, how):
        said = []
        try:
            for text in moves.make(cloud, move_of(how), None, mock.Mock()):
                said.append(text)
                self.assertLess(len(said), 200)
        except moves.MoveError as exc:
            if not cloud.failing:
                raise
            said.append(str(exc))
        return said

    def test_moves(self):
        """The move goes on, and is made once."""
        for how, actions in (
                ('live', ['os-migrateLive']), ('shelve', ['shelve']),
                ('cold', ['migrate', 'confirmResize']), ('dhcp', [])):
            good, _said = self.make(how)
            cases = 0
            for place, (method, body) in enumerate(good.asked):
                for wrong in spoilt(body) if method == 'GET' else ([], 7):
                    cloud, _said = self.make(how, place, wrong)
                    self.assertEqual(
                        actions, [each[1] for each in cloud.actions],
                        (how, place, wrong))
                    self.assertEqual(
                        [], cloud.served[0] if how == 'dhcp' else [
                            each for each in cloud.placed.values()
                            if each['OS-EXT-SRV-ATTR:host'] == 'one'
                            or each['status'] == 'VERIFY_RESIZE'])
                    cases += 1
            self.assertGreater(cases, 100)

    def test_failure(self):
        """Why a move has failed is not waited for for ever."""
        good, said = self.make('live', failing='a')
        self.assertIn('No valid host was found', said[-1])
        places = [place for place, (_method, body) in enumerate(good.asked)
                  if 'instanceActions' in body or 'instanceAction' in body]
        for place in places:
            for wrong in spoilt(good.asked[place][1]):
                _cloud, said = self.make('live', place, wrong, failing='a')
                self.assertIn('was not moved: the migration is in status err',
                              said[-1])
        with mock.patch.object(moves, 'EVENTS_END', 0):
            cloud = Cloud('live')
            cloud.failing = {'a'}
            of_actions = cloud.answer
            cloud.answer = lambda method, path, *args: (
                (200, []) if 'os-instance-actions' in path
                else of_actions(method, path, *args))
            self.assertIn('Nova gives no reason',
                          self.run_out(cloud, 'live')[-1])

    def test_checks(self):
        for call in (
                lambda cloud: list(moves.problems(cloud, [move_of('cold')])),
                lambda cloud: list(moves.problems(cloud, [move_of('dhcp')])),
                lambda cloud: list(moves.unfinished(cloud, [_ID])),
                lambda cloud: list(moves.shelved(cloud, [_ID])),
                lambda cloud: moves.is_on_source(cloud, move_of('dhcp')),
                lambda cloud: moves.set_status(
                    cloud, 'one', 'r', mock.Mock())):
            good = Cloud('live')
            call(good)
            for place, (method, body) in enumerate(good.asked):
                for wrong in spoilt(body) if method == 'GET' else ():
                    try:
                        call(Cloud('live', place, wrong))
                    except (moves.NoAnswerError, moves.MoveError):
                        pass
        for wrong in ([], {}, {'services': None}, {'services': [{}]}, 7, None):
            self.assertRaises(moves.NoAnswerError, moves.compute_services,
                              Cloud('live', 0, wrong))
