# SPDX-License-Identifier: Apache-2.0
"""A snapshot that another machine serves, and whatever else it may answer."""

import argparse
import base64
import dataclasses
import email.utils
import gzip
import os
import socket
import time

import fixtures

from nfv_sched.base import files
from nfv_sched.ops.cloud import file
from nfv_sched.ops.cloud import remote
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.serve.metrics import server
from nfv_sched.ops.serve.metrics import service
from nfv_sched.tests import base
from nfv_sched.tests import certificates

CLOUD = snapshot.Cloud(taken='2026-01-02T03:04:05Z', source='here')


class RemoteTestCase(base.TestCase):

    cloud = CLOUD

    def setUp(self):
        super().setUp()
        self.folder = self.useFixture(fixtures.TempDir()).path
        self.authority = certificates.Authority(self.folder)
        for name in (remote.TOKEN, remote.CERT, remote.KEY, 'HTTPS_PROXY',
                     'https_proxy', 'REQUESTS_CA_BUNDLE'):
            self.useFixture(fixtures.EnvironmentVariable(name))
        for name, value in ((remote.CA, self.authority.path),
                            ('NETRC', '/nonexistent')):
            self.useFixture(fixtures.EnvironmentVariable(name, value))
        self.requests = []

    def start(self, *answer, **fields):
        def respond(request):
            self.requests.append(request)
            return server.Answer(*answer, **fields)

        self.server = server.Listener(
            ('127.0.0.1', 0), respond, service.tls_context(
                argparse.Namespace(tls_cert=self.authority.certificate(
                    'server', 'IP:127.0.0.1'), tls_key=None,
                    tls_client_ca=None)))
        self.server.start()
        self.addCleanup(self.server.stop)
        self.url = f'https://127.0.0.1:{self.server.server_port}'

    def saved(self):
        path = os.path.join(self.folder, 'saved')
        file.save(self.cloud, path)
        with open(path, 'rb') as opened:
            return opened.read()


class RemoteTest(RemoteTestCase):

    def error(self, url=None):
        url = url or self.url
        error = str(self.assertRaises(file.FileError, remote.load, url))
        self.assertTrue(error.startswith(url), error)
        self.assertNotIn('\n', error)
        self.assertNotIn('Error', error)
        self.assertLess(len(error), 250)
        return error.removeprefix(url)

    def test_loaded(self):
        for content in (self.saved(), gzip.decompress(self.saved())):
            self.start(200, body=content)
            self.assertEqual(CLOUD, remote.load(self.url))
            self.assertEqual('/snapshot', self.requests[-1].path)
        for path in ('/snapshot', '/proxy/snapshot'):
            self.assertEqual(CLOUD, remote.load(f'{self.url}{path}'))
            self.assertEqual(path, self.requests[-1].path)

    def test_token(self):
        self.start(200, body=self.saved())
        remote.load(self.url)
        self.assertIsNone(self.requests[-1].headers['Authorization'])
        for token in ('ann:se:cret', 'ann:se:cret\n', 'zo\u00eb:\u20ac'):
            self.useFixture(fixtures.EnvironmentVariable(remote.TOKEN, token))
            remote.load(self.url)
            self.assertEqual(
                f'Basic {base64.b64encode(token.strip().encode()).decode()}',
                self.requests[-1].headers['Authorization'])

    def test_no_proxy_without_tls(self):
        """A proxy would read the password."""
        servers = []
        requests = []
        for number in range(2):
            servers.append(server.Listener(
                ('127.0.0.1', 0), lambda request, number=number: (
                    requests.append(number),
                    server.Answer(200, body=self.saved()))[1]))
            servers[-1].start()
            self.addCleanup(servers[-1].stop)
        url, proxy = [
            f'http://127.0.0.1:{each.server_port}' for each in servers]
        for name in ('http_proxy', 'all_proxy'):
            with fixtures.EnvironmentVariable(name, proxy):
                self.assertEqual(CLOUD, remote.load(url))
        self.assertEqual([0, 0], requests)

    def test_statuses(self):
        for status, sentence in (
                (401, ': no user with this password; NFV_SCHED_TOKEN='
                      'USER:PASSWORD, or ~/.netrc (HTTP 401)'),
                (403, ': the user or certificate may not read the snapshot '
                      '(HTTP 403)'),
                (404, ': no snapshot at this path (HTTP 404)'),
                (503, ': no snapshot yet, or too many requests; try again '
                      '(HTTP 503)'),
                (500, ': unexpected answer (HTTP 500)'),
                (204, ': unexpected answer (HTTP 204)')):
            self.start(status)
            self.assertEqual(sentence, self.error())

    def test_redirects(self):
        for location in ('https://192.0.2.1/snapshot', '/snapshot',
                         'http://127.0.0.1/', '//x', 'file:///etc/passwd'):
            self.start(302, headers={'Location': location})
            self.assertIn('redirected', self.error())
            self.assertEqual(1, len(self.requests))
            self.requests.clear()

    def test_not_trusted(self):
        self.start(200, body=self.saved())
        self.useFixture(fixtures.EnvironmentVariable(remote.CA))
        self.assertRegex(
            self.error(), r'^: the certificate is not trusted \(.+\); '
            'NFV_SCHED_CACERT names the file of its authority$')
        self.useFixture(fixtures.EnvironmentVariable(
            'REQUESTS_CA_BUNDLE', self.authority.path))
        self.assertEqual(CLOUD, remote.load(self.url))
        # Ours counts more.
        other = certificates.Authority(
            self.useFixture(fixtures.TempDir()).path).path
        self.useFixture(fixtures.EnvironmentVariable(remote.CA, other))
        self.assertIn('not trusted', self.error())

    def test_files_that_are_not_there(self):
        self.start(200, body=self.saved())
        for name in (remote.CERT, remote.CA):
            self.useFixture(fixtures.EnvironmentVariable(name, '/x/y'))
            self.assertIn('/x/y', str(self.assertRaises(
                file.FileError, remote.load, self.url)))

    def test_no_answer(self):
        with socket.create_server(('127.0.0.1', 0)) as used:
            port = used.getsockname()[1]
        url = f'https://127.0.0.1:{port}'
        self.assertEqual(
            ' does not answer (connection refused)', self.error(url))
        self.assertEqual(' does not answer (unknown host name)',
                         self.error('https://name.invalid'))

    def test_slow(self):
        """The whole answer must come in time, not only each byte."""
        self.useFixture(fixtures.MockPatchObject(remote, 'SECONDS', 1.0))
        self.start(200)

        def respond(request):
            deadline = time.monotonic() + 5
            while time.monotonic() < deadline:
                time.sleep(0.2)
            return server.Answer(200)

        self.server.respond = respond
        began = time.monotonic()
        self.error()
        self.assertLess(time.monotonic() - began, 4)

    def test_too_large(self):
        """Also after decompression, and no more of it is read."""
        sentence = (': has more than 1 MiB; --max-file-size raises the '
                    'limit, now 1 MiB')
        for content in (b'{' + b' ' * 2 ** 21, gzip.compress(
                b'{' + b' ' * 2 ** 21), self.saved() + b'\0' * 2 ** 21):
            self.start(200, body=content)
            with files.limited(1):
                self.assertEqual(sentence, self.error())

    def test_not_a_snapshot(self):
        for content in (b'', b'<html>Please log in</html>', b'[]', b'{}',
                        b'\xff\x00', gzip.compress(b'x'),
                        b'hosts:\n- name: a\n'):
            self.start(200, body=content)
            self.assertEqual(': not a snapshot', self.error())
        self.start(200, body=self.saved()[:-9])
        self.assertIn('damaged gzip file', self.error())

    def test_urls(self):
        for url, sentence in (
                ('http://192.0.2.1', ': http is for this machine only; use '
                                     'https'),
                ('http://controller:80/snapshot', ': http is for'),
                ('https://', ': no host in this URL'),
                ('https://[', ': Invalid IPv6 URL'),
                ('https://a:x', ': Port could not be cast'),
                ('https://a:70000', ': Port out of range')):
            self.assertIn(sentence, self.error(url))
        error = str(self.assertRaises(
            file.FileError, remote.load, 'https://ann:secret@192.0.2.1'))
        self.assertEqual('https://192.0.2.1: a URL must not have a password; '
                         'use NFV_SCHED_TOKEN', error)


class NewerTest(RemoteTestCase):
    """A snapshot that the server reads after it is asked for."""

    def setUp(self):
        super().setUp()
        self.useFixture(fixtures.MockPatchObject(
            remote, 'NEWER_INTERVAL', 0.01))
        self.said = []

    def serve(self, *answers):
        """Serve these to HEAD, the last again and again.

        :param answers: (time when the cloud was read, time of the server), or
            a status
        """
        self.start(200)
        rest = list(answers)
        content = self.saved()

        def respond(request):
            self.requests.append(request)
            # The body is that of the last HEAD.
            answer = rest.pop(0) if len(rest) > 1 else rest[0]
            if isinstance(answer, int):
                return server.Answer(answer)
            taken, now = answer
            return server.Answer(200, body=content, headers={
                'Last-Modified': email.utils.formatdate(taken, usegmt=True),
                'Age': str(int(now - taken))})

        self.server.respond = respond

    def newer(self):
        return remote.load_newer(self.url, self.said.append)

    def failure(self):
        return str(self.assertRaises(file.FileError, self.newer)).removeprefix(
            self.url)

    def test_waits(self):
        """The clock of the server counts, which may be years behind.

        A reading that had begun does not show what was done meanwhile.
        """
        self.serve((1000, 1300.5), (1000, 1305), (1300, 1310), (1301, 1320))
        self.assertEqual(CLOUD, self.newer())
        self.assertEqual(5, len(self.requests))
        self.assertEqual([
            f'The snapshot of {self.url} is 300 s old: waiting for one of the '
            'cloud as it is now, for 900 s at most.'], self.said)

    def test_restarted(self):
        """A server that has no snapshot for a while, or is away."""
        self.serve((1000, 1300), 503, 500, (1400, 1400))
        self.assertEqual(CLOUD, self.newer())

    def test_none_comes(self):
        self.useFixture(fixtures.MockPatchObject(
            remote, 'NEWER_SECONDS', 0.1))
        self.serve((1000, 1300))
        self.assertEqual(': no snapshot of the cloud as it is now came in 0 s',
                         self.failure())
        self.serve((1000, 1300), 503)
        self.assertEqual(
            ': no snapshot of the cloud as it is now came in 0 s: no snapshot '
            'yet, or too many requests; try again (HTTP 503)', self.failure())

    def test_anonymized(self):
        self.cloud = dataclasses.replace(CLOUD, anonymous=True)
        self.serve((1000, 1300), (1400, 1400))
        self.assertIn('the role operator is needed', self.failure())

    def test_refused(self):
        """What is wrong from the start is not waited for."""
        self.serve(401)
        self.assertIn('no user with this password', self.failure())
        self.assertEqual([], self.said)

    def test_other_servers(self):
        """One that serves any file does not know when the cloud was read."""
        for headers in (
                {}, {'Age': '5'}, {'Age': '5', 'Last-Modified': 'x'},
                {'Last-Modified': 'Thu, 26 Nov 2026 05:00:00 GMT'},
                *({'Last-Modified': 'Thu, 26 Nov 2026 05:00:00 GMT',
                   'Age': age}
                  for age in ('', 'x', '-1', '9' * 5000, '9' * 500))):
            self.start(200, body=self.saved(), headers=headers)
            self.assertEqual(': does not say when the cloud was read, as '
                             '"snapshot serve" does', self.failure())
