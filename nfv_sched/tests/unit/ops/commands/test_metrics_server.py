# SPDX-License-Identifier: Apache-2.0
"""Clients of the server of metrics that are slow, silent or too many."""

import argparse
import base64
import contextlib
import os
import pathlib
import queue
import resource
import socket
import ssl
import threading
import time
from unittest import mock
import urllib.error
import urllib.request

import bcrypt
import fixtures

from nfv_sched.ops.cli import errors
from nfv_sched.ops.serve.metrics import auth
from nfv_sched.ops.serve.metrics import command
from nfv_sched.ops.serve.metrics import server
from nfv_sched.ops.serve.metrics import service
from nfv_sched.tests import base
from nfv_sched.tests import certificates


class ServerTest(base.TestCase):

    BODY = b'a_metric 1\n'

    def setUp(self):
        super().setUp()
        self.useFixture(fixtures.MockPatchObject(
            server, 'SECONDS', 1.0))
        self.start(self.BODY)

    def start(self, body, address='127.0.0.1', tls=None, users=None):
        self.server = server.Listener(
            (address, 0), command.responder(
                lambda accept: ('text/plain', body), users), tls)
        self.server.start()
        self.addCleanup(self.server.stop)
        self.address = self.server.server_address[:2]

    def connect(self, source=None):
        client = socket.create_connection(
            self.address, timeout=20, source_address=source and (source, 0))
        self.addCleanup(client.close)
        return client

    def scrape(self):
        with urllib.request.urlopen(
                'http://%s:%d/metrics' % self.address, timeout=10) as answer:
            return answer.read()

    def ask(self, request):
        client = self.connect()
        with contextlib.suppress(OSError):
            client.sendall(request)
        with contextlib.suppress(ConnectionResetError):
            return client.makefile('rb').read()
        return b''

    def test_idle_connections(self):
        """A scrape takes the place of the oldest of 500 of them."""
        before = threading.active_count()
        clients = [self.connect() for _number in range(500)]
        self.assertEqual(self.BODY, self.scrape())
        self.assertLessEqual(threading.active_count() - before,
                             2 * server.CONNECTIONS)
        began = time.monotonic()
        for client in clients:
            with contextlib.suppress(ConnectionResetError):
                self.assertEqual(b'', client.recv(1))
        self.assertLess(time.monotonic() - began, 8)

    def test_slow_writer(self):
        """Each byte is in time, but not the request."""
        client = self.connect()
        began = time.monotonic()
        with contextlib.suppress(OSError):
            for _number in range(100):
                client.sendall(b'G')
                time.sleep(0.1)
        self.assertLess(time.monotonic() - began, 8)
        self.assertEqual(self.BODY, self.scrape())

    def test_slow_reader(self):
        asked = queue.SimpleQueue()
        self.server.respond = lambda request: (
            asked.put(request.connection) or
            server.Answer(200, body=b'x' * 10 ** 8))
        self.connect().sendall(b'GET /metrics HTTP/1.0\r\n\r\n')
        self.assertTrue(asked.get(timeout=20).closed.wait(8))

    def test_half_a_request_while_many_connect(self):
        """Only those of the network that has most are closed for others."""
        self.useFixture(fixtures.MockPatchObject(server, 'SECONDS', 60.0))
        client = self.connect('127.0.0.2')
        client.sendall(b'GET / HTTP/1.0\r\n')
        clients = [self.connect() for _number in range(100)]
        self.assertEqual(b'', clients[0].recv(1))
        client.sendall(b'\r\n')
        self.assertIn(b' 200 ', client.makefile('rb').readline())

    def test_networks(self):
        for first, second, same in (
                ('192.0.2.1', '192.0.2.2', False),
                ('192.0.2.1', '::ffff:192.0.2.1', True),
                ('::ffff:192.0.2.1', '::ffff:192.0.2.2', False),
                ('2001:db8::1', '2001:db8::ffff:1:2:3', True),
                ('2001:db8::1', '2001:db8:0:1::1', False),
                ('fe80::1%lo', 'fe80::2%eth0', True)):
            networks = {server.Connection(None, address).network
                        for address in (first, second)}
            self.assertEqual(1 if same else 2, len(networks), networks)

    def test_requests(self):
        """Nothing of them is in an answer, which no other site can use."""
        for request, status in (
            (b'GET /metrics HTTP/1.1\r\n\r\n', b'200'),
            (b'HEAD / HTTP/1.1\r\n\r\n', b'200'),
            (b'GET /x HTTP/1.1\r\n\r\n', b'404'),
            (b'POST / HTTP/1.1\r\nContent-Length: 9999999\r\n\r\n', b'405'),
            (b'DELETE / HTTP/1.1\r\n\r\n', b'405'),
            (b'x / HTTP/1.1\r\n\r\n', b'405'),
            (b'GET /' + b'x' * 20000, b'431'),
            (b'GET / HTTP/1.1\r\n' + b'X: y\r\n' * 5000, b'431'),
            (b'GET / HTTP/1.1\r\n' + b'X: y\r\n' * 200 + b'\r\n', b'431'),
            (b'GET / HTTP/0.9\r\n' + b'<p>: y\r\n' * 200 + b'\r\n', b'431'),
            (b'<p>\r\n\r\n', b'400'), (b'GET <p> 1 2\r\n\r\n', b'400'),
            (b'GET / <p>\r\n\r\n', b'400'), (b'POST /\r\n\r\n', b'400'),
            (b'GET / HTTP/<p>\r\n\r\n', b'400'),
            (b'GET / HTTP/2.0\r\n\r\n', b'505'),
            (b'GET /<p>\r\n\r\n', b'505'),
            (b'GET / HTTP/0.9\r\n\r\n', b'505'),
            (b'POST / HTTP/0.9\r\n\r\n', b'505'),
        ):
            answer = self.ask(request)
            # A client that is still writing may see a reset.
            if answer or len(request) < server.REQUEST_BYTES:
                self.assertTrue(
                    answer.startswith(b'HTTP/1.0 %s ' % status), answer)
                self.assertEqual(status == b'405',
                                 b'\r\nAllow: GET, HEAD\r\n' in answer)
                self.assertNotIn(b'<', answer)
                self.assertIn(b'\r\nContent-Type: text/plain', answer)
                for name, value in server.HEADERS.items():
                    self.assertIn(f'\r\n{name}: {value}\r\n'.encode(), answer)
        self.assertEqual(self.BODY, self.scrape())

    def test_failure(self):
        log = self.useFixture(fixtures.FakeLogger(server.LOG.name))
        self.server.respond = lambda request: 1 / 0
        self.assertIn(b'500', self.ask(b'GET /a HTTP/1.0\r\n\r\n'))
        self.assertIn('A request for /a was not answered', log.output)
        self.assertIn('ZeroDivisionError', log.output)

    def test_addresses(self):
        """Of IPv6 alone, and of both."""
        for address, asked in (('::1', '::1'), ('::', '127.0.0.1')):
            try:
                self.start(self.BODY, address)
            except OSError:
                self.skipTest('no IPv6')
            self.address = asked, self.address[1]
            self.assertIn(b'200', self.ask(b'GET / HTTP/1.0\r\n\r\n'))

    def test_guesses_before_the_first_check(self):
        """A user who was not seen before is answered in time.

        Guesses of other names, or from elsewhere, do not even delay it.
        """
        self.useFixture(fixtures.MockPatchObject(server, 'SECONDS', 60.0))
        self.useFixture(fixtures.MockPatchObject(auth, 'TURN_SECONDS', 60.0))
        self.useFixture(fixtures.MockPatchObject(auth, 'PAUSE_FACTOR', 0))

        def request(name, password):
            return (b'GET / HTTP/1.0\r\nAuthorization: Basic %s\r\n\r\n' %
                    base64.b64encode(b'%c:%s' % (name, password)))

        def wait_for_waiting(users, number):
            end = time.monotonic() + 60
            while users.turns.waiting != number:
                self.assertLess(time.monotonic(), end)
                time.sleep(0.01)

        # How many are checked before: one that has begun, and one of each
        # other name, or network.
        guesses = server.CONNECTIONS - 1
        for names, client, before in ((b'abcdef', None, 1), (b'v', None, 1),
                                      (b'u', '127.0.0.2', 1),
                                      (b'uvx', '127.0.0.2', 3),
                                      (b'u', None, guesses)):
            go, checked = threading.Event(), []

            def check(password, hashed):
                checked.append(password)
                return go.wait(60) and password == b'secret'

            users = auth.Users({b'u': b'1', b'v': b'2'})
            self.start(self.BODY, users=users)
            with mock.patch.object(bcrypt, 'checkpw', check):
                for number in range(guesses):
                    self.connect(client).sendall(
                        request(names[number % len(names)], b'x'))
                    wait_for_waiting(users, number + 1)
                client = self.connect()
                client.sendall(request(ord('u'), b'secret'))
                wait_for_waiting(users, guesses + 1)
                go.set()
                self.assertIn(b' 200 ', client.makefile('rb').readline())
                wait_for_waiting(users, 0)
            self.assertEqual(before, checked.index(b'secret'), names)

    def test_limit_of_files(self):
        """Descriptors are left for the collection."""
        files = len(os.listdir('/proc/self/fd'))
        for limit, connections in (
                (resource.RLIM_INFINITY, server.CONNECTIONS),
                (65536, server.CONNECTIONS),
                (files + server.RESERVED_FILES + 21, 10),
                (files + server.RESERVED_FILES + 1, 1), (16, 1)):
            with mock.patch.object(resource, 'getrlimit',
                                   return_value=(limit, limit)):
                self.assertEqual(
                    connections, server.connections_within_limit())

    def test_tls(self):
        """Garbage, and a client that only connects, harm nobody else."""
        folder = self.useFixture(fixtures.TempDir()).path
        authority = certificates.Authority(folder)
        path = authority.path
        arguments = argparse.Namespace(
            tls_cert=authority.certificate('server', 'IP:127.0.0.1'),
            tls_key=None, tls_client_ca=None)
        self.start(self.BODY, tls=service.tls_context(arguments))
        self.connect()
        for garbage in (b'GET / HTTP/1.0\r\n\r\n', b'\x16\x03\x01' * 9999):
            self.assertNotIn(b'200', self.ask(garbage))
        self.assertEqual(self.BODY, self.scrape_tls(path))
        arguments.tls_client_ca = path
        self.start(self.BODY, tls=service.tls_context(arguments))
        self.assertRaises(OSError, self.scrape_tls, path)
        broken = f'{path}.broken'
        pathlib.Path(broken).write_bytes(b'-----BEGIN CERTIFICATE-----\n\xff')
        for name in ('tls_cert', 'tls_key', 'tls_client_ca'):
            self.assertRaises(
                errors.CloudUnreadError, service.tls_context,
                argparse.Namespace(**{**vars(arguments), name: broken}))

    def scrape_tls(self, path):
        with urllib.request.urlopen(
                'https://%s:%d/metrics' % self.address, timeout=10,
                context=ssl.create_default_context(cafile=path)) as answer:
            return answer.read()
