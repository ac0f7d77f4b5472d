# SPDX-License-Identifier: Apache-2.0
"""Clients of the server of metrics that are slow, silent or too many."""

import argparse
import contextlib
import os
import socket
import ssl
import subprocess
import threading
import time
import urllib.request

import fixtures

from nfv_sched.cmd import metrics
from nfv_sched.cmd import metrics_server
from nfv_sched.tests import base


class ServerTest(base.TestCase):

    BODY = b'a_metric 1\n'

    def setUp(self):
        super().setUp()
        self.useFixture(fixtures.MockPatchObject(
            metrics_server, 'SECONDS', 1.0))
        self.start(self.BODY)

    def start(self, body, address='127.0.0.1', tls=None):
        self.server = metrics_server.Server(
            (address, 0), lambda accept: ('text/plain', body), tls)
        self.server.start()
        self.addCleanup(self.server.stop)
        self.address = self.server.server_address[:2]

    def connect(self):
        client = socket.create_connection(self.address, timeout=10)
        self.addCleanup(client.close)
        return client

    def scrape(self):
        with urllib.request.urlopen(
                'http://%s:%d/metrics' % self.address, timeout=10) as answer:
            return answer.read()

    def ask(self, request):
        """Return the first line of the answer to raw bytes."""
        client = self.connect()
        with contextlib.suppress(OSError):
            client.sendall(request)
        with contextlib.suppress(ConnectionResetError):
            return client.makefile('rb').readline()
        return b''

    def test_idle_connections(self):
        """A scrape takes the place of the oldest of 500 of them."""
        before = threading.active_count()
        clients = [self.connect() for _number in range(500)]
        self.assertEqual(self.BODY, self.scrape())
        self.assertLessEqual(threading.active_count() - before,
                             2 * metrics_server.CONNECTIONS)
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
        """It reads nothing of a long answer."""
        self.start(b'x' * 10 ** 8)
        client = self.connect()
        client.sendall(b'GET /metrics HTTP/1.0\r\n\r\n')
        deadline = time.monotonic() + 8
        while self.server._began and time.monotonic() < deadline:
            time.sleep(0.1)
        time.sleep(0.1)
        while self.server._began and time.monotonic() < deadline:
            time.sleep(0.1)
        self.assertEqual({}, self.server._began)

    def test_requests(self):
        for request, status in (
            (b'GET /metrics HTTP/1.1\r\n\r\n', b'200'),
            (b'HEAD / HTTP/1.1\r\n\r\n', b'200'),
            (b'GET /x HTTP/1.1\r\n\r\n', b'404'),
            (b'POST /metrics HTTP/1.1\r\n\r\n', b'501'),
            (b'GET /' + b'x' * 20000, b'431'),
            (b'GET / HTTP/1.1\r\n' + b'X: y\r\n' * 5000, b'431'),
            (b'GET / HTTP/1.1\r\n' + b'X: y\r\n' * 200 + b'\r\n', b'431'),
        ):
            line = self.ask(request)
            # A client that is still writing may see a reset.
            if line or status != b'431':
                self.assertIn(status, line)
        self.assertEqual(self.BODY, self.scrape())

    def test_ipv6(self):
        try:
            self.start(self.BODY, '::1')
        except OSError:
            self.skipTest('no IPv6')
        self.assertIn(b'200', self.ask(b'GET / HTTP/1.0\r\n\r\n'))

    def test_tls(self):
        """Garbage, and a client that only connects, harm nobody else."""
        path = os.path.join(self.useFixture(fixtures.TempDir()).path, 'pem')
        subprocess.run(
            ['openssl', 'req', '-x509', '-newkey', 'rsa:2048', '-nodes',
             '-subj', '/CN=localhost', '-addext',
             'subjectAltName=IP:127.0.0.1', '-keyout', path, '-out',
             f'{path}.crt'], check=True, capture_output=True)
        arguments = argparse.Namespace(
            tls_cert=f'{path}.crt', tls_key=path, tls_client_ca=None)
        self.start(self.BODY, tls=metrics.tls_context(arguments))
        self.connect()
        for garbage in (b'GET / HTTP/1.0\r\n\r\n', b'\x16\x03\x01' * 9999):
            self.assertNotIn(b'200', self.ask(garbage))
        self.assertEqual(self.BODY, self.scrape_tls(path))
        arguments.tls_client_ca = f'{path}.crt'
        self.start(self.BODY, tls=metrics.tls_context(arguments))
        self.assertRaises(OSError, self.scrape_tls, path)

    def scrape_tls(self, path):
        with urllib.request.urlopen(
                'https://%s:%d/metrics' % self.address, timeout=10,
                context=ssl.create_default_context(
                    cafile=f'{path}.crt')) as answer:
            return answer.read()
