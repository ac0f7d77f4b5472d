# SPDX-License-Identifier: Apache-2.0
"""Answers of Nova, Placement and Neutron that break the limits.

Each reader reads a server that answers so, and version discovery does.
"""

import contextlib
import gzip
import itertools
import json
import os
import time
import tracemalloc

import fixtures
from keystoneauth1 import session as ks_session

from nfv_sched.base import http_limits
from nfv_sched.ledger import client
from nfv_sched.ledger import neutron
from nfv_sched.ops.cloud import api
from nfv_sched.tests import http_server
from nfv_sched.tests.unit.limits import base
from nfv_sched.tests.unit.limits import neutron_api
from nfv_sched.tests.unit.ops.cloud import nova_api

_SECONDS = 0.3  # timeout of all readers
_BYTES = 10 ** 6  # limit of all answers
_CHUNK = b'10000\r\n' + b' ' * 65536 + b'\r\n'


class _Server(http_server.LocalServer):
    """A server whose requests are answered by a fault.

    :ivar fault: called with the handler
    :ivar sound: called with a path; returns a body that is sent instead
    :ivar requests: (path, token)
    :ivar clients: address of the client of each
    """

    expected = OSError

    def __init__(self):
        super().__init__(_handler_class(self))
        self.fault = None
        self.sound = lambda path: None
        self.requests = []
        self.clients = []


def _handler_class(server):

    class Handler(http_server.Handler):

        def _any(self):
            server.clients.append(self.client_address)
            server.requests.append(
                (self.path, self.headers.get('X-Auth-Token')))
            body = server.sound(self.path.partition('?')[0])
            if body is None:
                server.fault(self)
                return
            _reply(json.dumps(body).encode())(self)

        do_GET = do_HEAD = do_PUT = do_POST = _any  # noqa: N815

    return Handler


def _reply(data, status=200, length=None, **headers):
    """Return a fault that sends one answer."""
    def fault(handler):
        handler.send_response(status)
        headers.setdefault('Content_Type', 'application/json')
        for name, value in headers.items():
            handler.send_header(name.replace('_', '-'), value)
        handler.send_header(
            'Content-Length', str(len(data) if length is None else length))
        handler.end_headers()
        handler.wfile.write(data)
        handler.close_connection = length is not None
    return fault


def _stream(*parts, pause=0.0, **headers):
    """Return a fault that sends the last part again and again."""
    def fault(handler):
        handler.send_response(200)
        handler.send_header('Content-Type', 'application/json')
        for name, value in headers.items():
            handler.send_header(name.replace('_', '-'), value)
        handler.end_headers()
        _send(handler, parts, pause)
    return fault


def _raw(*parts, pause=0.0):
    """Return a fault that sends the last part again and again, all raw."""
    return lambda handler: _send(handler, parts, pause)


def _send(handler, parts, pause):
    handler.close_connection = True
    deadline = time.monotonic() + 20
    for part in itertools.chain(parts[:-1], itertools.repeat(parts[-1])):
        handler.wfile.write(part)
        if time.monotonic() > deadline:
            return
        time.sleep(pause)


def _truncated_chunks(handler):
    handler.send_response(200)
    handler.send_header('Transfer-Encoding', 'chunked')
    handler.end_headers()
    handler.wfile.write(b'2\r\n{}\r\n')
    handler.close_connection = True


_BOMB = gzip.compress(bytes(10 ** 8))
_BOMB_IN_BOMB = gzip.compress(gzip.compress(bytes(10 ** 8)))
_DRIP = 0.05

FAULTS = {
    'endless body': _stream(b' ' * 65536),
    'endless chunks': _stream(_CHUNK, Transfer_Encoding='chunked'),
    'endless tiny chunks': _stream(
        b'1\r\n \r\n', pause=_DRIP, Transfer_Encoding='chunked'),
    'huge length': _reply(b'{"', length=10 ** 9),
    'length of many digits': _reply(b'{"', length=10 ** 30),
    'bomb': _reply(_BOMB, Content_Encoding='gzip'),
    'bomb in chunks': _stream(
        b'%x\r\n%s\r\n' % (len(_BOMB), _BOMB), b'0\r\n\r\n',
        Content_Encoding='gzip', Transfer_Encoding='chunked'),
    'bomb in a bomb': _reply(
        _BOMB_IN_BOMB, Content_Encoding='gzip, gzip'),
    'unknown encoding': _reply(b'{}', Content_Encoding='br'),
    'half of gzip': _reply(
        gzip.compress(os.urandom(1000))[:500], Content_Encoding='gzip'),
    'endless gzip of nothing': _stream(
        gzip.compress(b'')[:10], b'\x00\x00\x00\xff\xff' * 10000,
        Content_Encoding='gzip'),
    'silence': _raw(b'', pause=2),
    'slow body': _stream(b'{', b' ', pause=_DRIP, Content_Length='1000'),
    'slow body without length': _stream(b'{', b' ', pause=_DRIP),
    'truncated': _reply(b'{}', length=1000),
    'truncated chunks': _truncated_chunks,
    'not HTTP': _raw(b'\x00' * 100000),
    'no JSON': _reply(b'<html>x</html>', Content_Type='text/html'),
    'empty': _reply(b''),
    'deep': _reply(b'[' * 500000),
    'deep objects': _reply(b'{"a":' * 100000),
    'not UTF-8': _reply(b'{"versions": "\xff\xfe\xfd"}' * 100),
    'long number': _reply(b'9' * 100000),
}


class LimitsTest(base.NeutronTestCase):

    def setUp(self):
        super().setUp()
        self.useFixture(fixtures.FakeLogger('keystoneauth'))
        self.server = _Server().start_for(self)
        self.other = _Server().start_for(self)
        self.other.fault = _reply(b'{}')
        for name, value in (
            ('nfv_sched.base.http_limits.ANSWER_BYTES', _BYTES),
            ('nfv_sched.base.http_limits.ANSWER_SECONDS', _SECONDS),
        ):
            self.useFixture(fixtures.MonkeyPatch(name, value))
        self.cloud = nova_api.CloudAPI().start_for(self)
        self.flags(neutron_request_timeout=_SECONDS)

    def configure(self, **options):
        super().configure(**options)
        with open(self.nova_conf, 'a') as nova_conf:
            nova_conf.write(
                '[placement]\nauth_type = none\n'
                f'endpoint_override = {options["endpoint_override"]}\n'
                f'timeout = {_SECONDS}\n')
        base.CONF(['--config-file', self.nova_conf], project='nova')

    def neutron(self, sound=lambda path: None):
        self.configure(auth_type='none', endpoint_override=self.server.url)
        self.flags(neutron_request_timeout=_SECONDS)
        self.server.sound = sound
        with contextlib.closing(neutron.Reader()) as reader:
            reader.read()

    def neutron_list(self):
        """Read Neutron, whose version documents are sound."""
        versions = neutron_api.NeutronAPI.versions(self.server)
        self.neutron({'/': versions, '': versions,
                      '/v2.0/': {'resources': []}}.get)

    def placement_list(self):
        self.configure(auth_type='none', endpoint_override=self.server.url)
        self.server.sound = lambda path: None
        with contextlib.closing(client.Client(base.CONF)) as reader:
            reader.providers()

    def nova(self, parts=('servers',), sound=lambda path: None):
        self.cloud.nova.url = self.server.url
        self.server.sound = sound
        api.read(self.cloud.connect(), parts)

    def nova_list(self):
        """Read Nova, whose version document is sound."""
        version = {'version': {
            'id': 'v2.1', 'status': 'CURRENT', 'version': '2.100',
            'min_version': '2.1', 'links': [
                {'rel': 'self', 'href': f'{self.server.url}/v2.1/'}]}}
        self.nova(('flavors',), {'/v2.1': version, '/v2.1/': version}.get)

    READERS = ('neutron', 'neutron_list', 'placement_list', 'nova',
               'nova_list')

    def assert_refused(self, reader, name):
        """It is one error, in time."""
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        began = time.monotonic()
        try:
            getattr(self, reader)()
        except (neutron.NeutronError, client.PlacementError,
                api.APIError) as exc:
            self.assertLess(len(str(exc)), 2000, f'{reader}: {name}')
            self.assertNotIn('Unexpected exception', str(exc))
        else:
            self.fail(f'{reader}: {name}: accepted')
        # Faults that go on do so for longer.
        self.assertLess(time.monotonic() - began, 10, f'{reader}: {name}')
        peak = tracemalloc.get_traced_memory()[1] - before
        self.assertLess(peak, 30 * _BYTES, f'{reader}: {name}')

    def test_faults(self):
        tracemalloc.start()
        self.addCleanup(tracemalloc.stop)
        for reader in self.READERS:
            for name, self.server.fault in FAULTS.items():
                self.assert_refused(reader, name)

    def test_redirect(self):
        """The token goes to no other server, nor to another port."""
        for reader in self.READERS:
            for status in (301, 302, 303, 305, 307, 308):
                self.server.fault = _reply(
                    b'{}', status, Location=f'{self.other.url}/elsewhere')
                self.assert_refused(reader, str(status))
            for location in (
                    f'//{self.other.url.partition("//")[2]}/x',
                    f'{self.server.url}@{self.other.url[7:]}/x', 'http://[',
                    f'{self.other.url}\\@{self.server.url[7:]}/'):
                self.server.fault = _reply(b'{}', 302, Location=location)
                self.assert_refused(reader, location)
        self.assertEqual([], self.other.requests)

    def test_redirects_to_the_same_server(self):
        """They are followed a few times, as for a missing slash."""
        session = ks_session.Session()
        http_limits.limit(session)
        self.server.fault = lambda handler: _reply(
            b'', 302, Location=f'{self.server.url}{handler.path}/')(handler)
        self.server.sound = lambda path: {} if path == '/a//' else None
        response = session.get(f'{self.server.url}/a', authenticated=False)
        self.assertEqual(200, response.status_code)
        response = session.get(f'{self.server.url}/b', authenticated=False)
        self.assertEqual(302, response.status_code)
        self.assertEqual(3 + 1 + http_limits.REDIRECTS,
                         len(self.server.requests))

    def test_keystone(self):
        for name in ('endless body', 'slow body', 'bomb', 'deep'):
            self.server.fault = FAULTS[name]
            self.cloud.url = self.server.url
            self.assert_refused('nova', name)

    def test_sound_answers(self):
        """Compressed or not, with cookies for the next request."""
        session = ks_session.Session()
        http_limits.limit(session)
        body = json.dumps({'key': 'é' * 1000}).encode()
        for fault in (
            _reply(body, Set_Cookie='server=one'),
            _reply(gzip.compress(body), Content_Encoding='gzip'),
            _reply(body, Content_Type='text/plain; charset=latin-1')
        ):
            self.server.fault = fault
            response = session.get(self.server.url, authenticated=False)
            self.assertEqual({'key': 'é' * 1000}, response.json())
        self.server.fault = _reply(b'', length=10 ** 9)
        response = session.head(self.server.url, authenticated=False)
        self.assertEqual(b'', response.content)
        self.assertEqual(
            (http_limits.ANSWER_SECONDS, 'one'),
            (session.timeout, session.session.cookies.get('server')))

    def test_connection_is_used_again(self):
        """Also after the time of the first request has passed."""
        session = ks_session.Session(timeout=0.2)
        http_limits.limit(session)
        self.server.sound = lambda path: {}
        for _number in range(2):
            session.get(self.server.url, authenticated=False)
            time.sleep(0.3)
        self.assertEqual(1, len(set(self.server.clients)))

    def test_session_of_a_caller(self):
        """It is as before, also after an error, and not closed."""
        def state():
            return (session.session, session.redirect,
                    dict(session.session.hooks), dict(session.session.headers))

        self.cloud.nova.url = self.server.url
        connection = self.cloud.connect()
        session = connection.session
        before = state()
        for self.server.fault in _reply(b''), FAULTS['endless body']:
            self.assertRaises(
                api.APIError, api.read, connection, ('servers',))
            self.assertEqual(before, state())
        self.server.sound = lambda path: {}
        session.get(self.server.url, authenticated=False)
