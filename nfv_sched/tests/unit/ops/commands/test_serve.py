# SPDX-License-Identifier: Apache-2.0
"""The command ``nfv-sched snapshot serve``, and who may read what."""

import argparse
import base64
import contextlib
import dataclasses
import gzip
import http.client
import os
import queue
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
import types
from unittest import mock

import bcrypt
import fixtures

from nfv_sched.ops.cloud import file
from nfv_sched.ops.cloud import remote
from nfv_sched.ops.serve.metrics import auth
from nfv_sched.ops.serve.metrics import server
from nfv_sched.ops.serve.metrics import service
from nfv_sched.ops.serve.pages import worker
from nfv_sched.ops.serve import publication
from nfv_sched.tests import certificates
from nfv_sched.tests import snapshots
from nfv_sched.tests.unit.ops.cloud import test_anonymize
from nfv_sched.tests.unit.ops.commands import base
from nfv_sched.tests.unit.ops.commands import test_metrics

CLOUD = test_anonymize.CLOUD
METRICS = b'a_metric{host="acme-1"} 1\n'
#: Names of the cloud.
NAMES = ('acme', 'ACME', test_anonymize.PROJECT, CLOUD.hosts[0].uuid,
         CLOUD.servers[0].uuid, 'Bob')
_HASH = bcrypt.hashpw(b'secret', bcrypt.gensalt(4)).decode()
USERS = f"""\
ann:{_HASH}:operator
bob:{_HASH}:reader
eve:{_HASH}
prom:{_HASH}:metrics
host1.example.org:*:operator
host2.example.org:*:reader
"""


def loads(content):
    return file.load('x', content)


def authorization(user, password='secret'):
    return {'Authorization': 'Basic ' + base64.b64encode(
        f'{user}:{password}'.encode()).decode()}


def start_process(test, *args, **environment):
    """Start ``snapshot serve`` at a free port, over HTTP.

    :returns: the process, and a function that asks it as an operator and
        returns status, ETag and body
    """
    process = subprocess.Popen(
        [sys.executable, '-W', 'ignore', '-m', 'nfv_sched.ops.cli.base',
         'snapshot', 'serve', '--listen', '127.0.0.1:0', '--interval', '1',
         *args], env={**os.environ, **environment},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    test.addCleanup(process.communicate)
    test.addCleanup(process.kill)
    url = process.stdout.readline().strip()
    test.assertRegex(url, r'^http://127\.0\.0\.1:\d+$')
    process.port = int(url.rpartition(':')[2])

    def ask(path):
        client = http.client.HTTPConnection(
            '127.0.0.1', process.port, timeout=60)
        with contextlib.closing(client):
            client.request('GET', path, headers=authorization('ann'))
            answer = client.getresponse()
            return answer.status, answer.headers['ETag'], answer.read()

    return process, ask


def wait_for(test, accepts):
    """Wait until a function returns true, on a slow machine too."""
    end = time.monotonic() + 120
    while not accepts():
        test.assertLess(time.monotonic(), end)
        time.sleep(0.1)


class ServeTestCase(base.CommandTestCase):

    def setUp(self):
        super().setUp()
        self.useFixture(fixtures.MockPatchObject(auth, 'PAUSE_FACTOR', 0))
        self.authority = certificates.Authority(self.folder)
        self.users = self.write_file('users', USERS)
        self.pages = worker.PageWorker()
        self.addCleanup(self.pages.close)

    def start(self, cloud=CLOUD, users=None, pages=None):
        """Serve a cloud; None for one that has not been read yet."""
        self.published = publication.Publication(
            auth.read(users or self.users),
            lambda accept: ('text/plain', METRICS), pages or self.pages)
        if cloud is not None:
            self.published.publish(cloud)
        self.serve(self.published.respond)

    def serve(self, respond):
        tls = service.tls_context(argparse.Namespace(
            tls_cert=self.authority.certificate(
                'server', 'IP:127.0.0.1'), tls_key=None,
            tls_client_ca=self.authority.path), ssl.CERT_OPTIONAL)
        self.server = server.Listener(('127.0.0.1', 0), respond, tls)
        self.server.start()
        self.addCleanup(self.server.stop)
        self.url = f'https://127.0.0.1:{self.server.server_port}'

    def client_tls(self, certificate=None):
        tls = ssl.create_default_context(cafile=self.authority.path)
        if certificate is not None:
            tls.load_cert_chain(certificate)
        return tls

    def ask(self, path, headers=None, method='GET', certificate=None):
        client = http.client.HTTPSConnection(
            '127.0.0.1', self.server.server_port, timeout=60,
            context=self.client_tls(certificate))
        with contextlib.closing(client):
            client.request(method, path, headers=headers or {})
            answer = client.getresponse()
            answer.body = answer.read()
        return answer

    def connect(self, request=b''):
        client = self.client_tls().wrap_socket(
            socket.create_connection(
                ('127.0.0.1', self.server.server_port), timeout=20),
            server_hostname='127.0.0.1')
        self.addCleanup(client.close)
        client.sendall(request)
        return client

    def connect_as(self, user, path):
        """Connect, and ask for a path, but do not read the answer."""
        return self.connect(
            f'GET {path} HTTP/1.0\r\nAuthorization: '
            f'{authorization(user)["Authorization"]}\r\n\r\n'.encode())


class RoleTest(ServeTestCase):

    #: All but those of pages.
    PATHS = ('/snapshot', '/metrics', '/x', '/snapshot/', '/users',
             '/../etc/passwd')

    def test_nothing_without_a_password(self):
        self.start()
        for path in (*self.PATHS, '/', '/servers', '/pages.css'):
            for headers in ({}, authorization('ann', 'x'),
                            authorization('x'), {'Authorization': 'x'},
                            authorization('host1.example.org', '*'),
                            authorization('host1.example.org', ''),
                            {'Authorization': 'Bearer secret'}):
                answer = self.ask(path, headers)
                self.assertEqual((401, b''), (answer.status, answer.body))
                self.assertIn('Basic', answer.headers['WWW-Authenticate'])
        answer = self.ask('/healthz')
        self.assertEqual((200, b'OK\n'), (answer.status, answer.body))

    def test_roles(self):
        self.start()
        for user, statuses in (('ann', (200, 200, 404)),
                               ('bob', (200, 403, 404)),
                               ('eve', (200, 403, 404)),
                               ('prom', (403, 200, 403))):
            self.assertEqual(statuses, tuple(
                self.ask(path, authorization(user)).status
                for path in self.PATHS[:3]), user)

    def test_operators_get_the_file(self):
        self.start()
        answer = self.ask('/snapshot', authorization('ann'))
        self.assertEqual('application/gzip', answer.headers['Content-Type'])
        self.assertEqual(CLOUD, loads(answer.body))
        path = self.in_folder('saved')
        file.save(CLOUD, path)
        with open(path, 'rb') as saved:
            self.assertEqual(saved.read(), answer.body)
        self.assertEqual(METRICS, self.ask(
            '/metrics', authorization('ann')).body)

    def test_readers_get_no_names(self):
        self.start()
        texts = []
        for user in ('bob', 'eve'):
            for path in (*self.PATHS, '/healthz'):
                for method in ('GET', 'HEAD', 'POST'):
                    answer = self.ask(path, authorization(user), method)
                    body = answer.body
                    if answer.headers['Content-Type'] == (
                            'application/gzip') and body:
                        body = gzip.decompress(body)
                        cloud = loads(answer.body)
                        self.assertTrue(cloud.anonymous)
                        self.assertEqual(2, len(cloud.hosts))
                    texts.append(f'{answer.headers}{body.decode()}')
        self.assertLess(5000, sum(map(len, texts)))
        full = gzip.decompress(self.ask(
            '/snapshot', authorization('ann')).body).decode()
        for name in NAMES:
            self.assertIn(name, full)
            for text in texts:
                self.assertNotIn(name, text)

    def test_invented_names_stay(self):
        self.start()
        before = loads(self.ask('/snapshot', authorization('bob')).body)
        self.published.publish(dataclasses.replace(
            CLOUD, hosts=CLOUD.hosts[:1]))
        after = loads(self.ask('/snapshot', authorization('bob')).body)
        self.assertEqual(1, len(after.hosts))
        self.assertIn(after.hosts[0], before.hosts)
        self.assertEqual(before.servers, after.servers)

    def test_nobody_reads_it_anonymized(self):
        """Then it is not anonymized, which takes time."""
        users = self.write_file('operators', f'ann:{_HASH}:operator\n')
        with mock.patch.object(publication.anonymize, 'replace') as replace:
            self.start(users=users)
        replace.assert_not_called()
        self.assertEqual(
            200, self.ask('/snapshot', authorization('ann')).status)

    def test_certificates(self):
        self.start()
        known = self.authority.certificate('host1.example.org')
        for path, status in (('/snapshot', 200), ('/metrics', 200),
                             ('/x', 404)):
            self.assertEqual(status, self.ask(path, certificate=known).status)
        answer = self.ask('/snapshot', certificate=known)
        self.assertEqual(CLOUD, loads(answer.body))
        other = self.authority.certificate(
            'x', 'DNS:host2.example.org,email:a@example.org')
        self.assertEqual(403, self.ask('/metrics', certificate=other).status)
        self.assertTrue(loads(self.ask(
            '/snapshot', certificate=other).body).anonymous)
        # A password counts more, right or wrong.
        self.assertEqual(200, self.ask(
            '/metrics', authorization('ann'), certificate=other).status)
        self.assertEqual(401, self.ask(
            '/metrics', authorization('ann', 'x'), certificate=known).status)

    def test_strange_certificates(self):
        """One of a name without a line, and of another authority."""
        self.start()
        strange = self.authority.certificate('nobody.example.org')
        answer = self.ask('/snapshot', certificate=strange)
        self.assertEqual(403, answer.status)
        self.assertEqual(b'No user has a name of this certificate.\n',
                         answer.body)
        self.assertEqual(200, self.ask(
            '/snapshot', authorization('bob'), certificate=strange).status)
        folder = self.useFixture(fixtures.TempDir()).path
        other = certificates.Authority(folder).certificate('host1.example.org')
        self.assertRaises(OSError, self.ask, '/snapshot', certificate=other)


class AnswerTest(ServeTestCase):

    def test_etag(self):
        self.start()
        tags = {}
        for user in ('ann', 'bob'):
            answer = self.ask('/snapshot', authorization(user))
            tag = tags[user] = answer.headers['ETag']
            self.assertRegex(tag, '^"[0-9a-f]{64}"$')
            for value in (tag, f'W/{tag}', f'"x", {tag}', '*'):
                again = self.ask('/snapshot', {
                    **authorization(user), 'If-None-Match': value})
                self.assertEqual((304, b''), (again.status, again.body))
                self.assertEqual(tag, again.headers['ETag'])
            for value in ('', '"x"', tag.strip('"'), tags['ann'][:-2] + '"'):
                again = self.ask('/snapshot', {
                    **authorization(user), 'If-None-Match': value})
                self.assertEqual(answer.body, again.body)
        self.assertNotEqual(tags['ann'], tags['bob'])
        # One of another role does not say that it is the same.
        self.assertEqual(200, self.ask('/snapshot', {
            **authorization('bob'), 'If-None-Match': tags['ann']}).status)
        self.published.publish(dataclasses.replace(CLOUD, hosts=()))
        again = self.ask('/snapshot', {
            **authorization('ann'), 'If-None-Match': tags['ann']})
        self.assertEqual(200, again.status)
        self.assertEqual((), loads(again.body).hosts)

    def test_headers(self):
        taken = time.strftime('%Y-%m-%dT%H:%M:%SZ',
                              time.gmtime(time.time() - 100))
        self.start(dataclasses.replace(CLOUD, taken=taken))
        for user in ('ann', 'bob'):
            answer = self.ask('/snapshot', authorization(user))
            self.assertAlmostEqual(100, int(answer.headers['Age']), delta=30)
            self.assertRegex(answer.headers['Last-Modified'], 'GMT$')
            self.assertEqual('private, no-cache',
                             answer.headers['Cache-Control'])

    def test_not_read_yet(self):
        self.start(None)
        for path, headers in (('/healthz', {}),
                              ('/snapshot', authorization('ann')),
                              ('/snapshot', authorization('bob'))):
            answer = self.ask(path, headers)
            self.assertEqual(503, answer.status)
            self.assertEqual('10', answer.headers['Retry-After'])

    def test_healthy(self):
        """Only while readers get what operators get."""
        self.start(None)
        health = []

        def replace(cloud, key):
            health.append(self.ask('/healthz').status)
            return test_anonymize.anonymize.replace(cloud, key)

        def fail(cloud, key):
            raise ValueError

        other = dataclasses.replace(CLOUD, hosts=())
        for function, cloud, during, after in (
                (fail, CLOUD, None, 503), (replace, CLOUD, 503, 200),
                (replace, CLOUD, 200, 200), (fail, other, None, 503),
                (replace, CLOUD, 503, 200)):
            with mock.patch.object(publication, 'anonymize',
                                   types.SimpleNamespace(replace=function)):
                try:
                    self.published.publish(cloud)
                except ValueError:
                    self.assertIsNone(during)
                else:
                    self.assertEqual(during, health.pop())
            self.assertEqual(after, self.ask('/healthz').status)
            self.assertEqual(cloud, loads(self.ask(
                '/snapshot', authorization('ann')).body))

    def test_turns_of_pages(self):
        """Those of one user, however many, delay others by one page."""
        go, made = threading.Event(), []

        def respond(path, query, content, version, age):
            made.append(query['u'])
            go.wait(60)
            return server.Answer(200, 'text/html', b'<p>')

        self.useFixture(fixtures.MockPatchObject(server, 'SECONDS', 60.0))
        self.start(pages=types.SimpleNamespace(respond=respond))
        clients = []
        for user in (*['bob'] * 9, 'ann', 'bob'):
            clients.append(self.connect_as(user, f'/?u={user}'))
            wait_for(self, lambda: self.published.turns.waiting ==
                     len(clients))
        go.set()
        for client in clients:
            self.assertIn(b' 200 ', client.makefile('rb').readline())
        self.assertEqual('ann', made[1])

    def test_pages(self):
        asked = []

        def respond(path, query, content, version, age):
            asked.append((path, query, loads(content).anonymous, version,
                          age > 0))
            return server.Answer(200, 'text/html', b'<p>')

        self.start(pages=types.SimpleNamespace(respond=respond))
        for user, anonymous in (('ann', False), ('bob', True)):
            tag = self.ask('/snapshot', authorization(user)).headers['ETag']
            answer = self.ask('/servers/a%20b?a=1&b=%3C&c=&a=2',
                              authorization(user))
            self.assertEqual((200, b'<p>', 'DENY'), (
                answer.status, answer.body,
                answer.headers['X-Frame-Options']))
            self.assertEqual(
                ('/servers/a%20b', {'a': '1', 'b': '<'}, anonymous, tag, True),
                asked.pop())
        self.assertEqual(404, self.ask('/x', authorization('ann')).status)
        self.assertEqual(403, self.ask('/', authorization('prom')).status)
        self.assertEqual(401, self.ask('/').status)
        self.assertEqual([], asked)

    def test_real_pages(self):
        self.start()
        for path in ('/', '/servers', f'/servers/{CLOUD.servers[0].uuid}'):
            for user in ('ann', 'bob'):
                end = time.monotonic() + 300
                while True:
                    answer = self.ask(path, authorization(user))
                    # The process takes some seconds to start.
                    if answer.status != 503 or time.monotonic() > end:
                        break
                    time.sleep(1)
                self.assertEqual('DENY', answer.headers['X-Frame-Options'])
                text = answer.body.decode()
                if user == 'ann':
                    self.assertEqual(200, answer.status, text)
                    self.assertIn('acme', text)
                elif 'servers/' in path:
                    self.assertEqual(404, answer.status, text)
                else:
                    self.assertEqual(200, answer.status, text)
                    self.assertNotIn('acme', text)

    def test_pages_need_a_snapshot(self):
        self.start(None)
        for path, status in (('/', 503), ('/x', 404), ('/pages.css', 200)):
            answer = self.ask(path, authorization('bob'))
            self.assertEqual((status, status != 200), (
                answer.status, b'/pages.css' in answer.body))

    def test_without_passwords(self):
        with mock.patch.object(auth, 'read', lambda path:
                               publication.LocalUsers()):
            self.start()
        for host, status in (
                ('127.0.0.1:9181', 200), ('localhost', 200), ('[::1]:1', 200),
                ('LOCALHOST:1', 200), ('[::1]', 200),
                ('evil.example:9181', 403), ('[', 403), ('', 403)):
            self.assertEqual(status, self.ask(
                '/snapshot', {'Host': host}).status, host)
        for status, headers in (
                (403, {'X-Forwarded-For': '192.0.2.1'}), (403, {'via': 'x'}),
                (403, {'Sec-Fetch-Site': 'cross-site'}),
                (200, {'Sec-Fetch-Site': 'same-origin'}),
                (200, {'Sec-Fetch-Site': 'cross-site',
                       'Sec-Fetch-User': '?1'})):
            self.assertEqual(status, self.ask(
                '/snapshot', {'Host': 'localhost', **headers}).status)


class AttackTest(ServeTestCase):
    CLOUD = dataclasses.replace(
        CLOUD, hosts=(dataclasses.replace(
            CLOUD.hosts[0], cpu_info=os.urandom(10 ** 5).hex()),))

    def setUp(self):
        super().setUp()
        self.useFixture(fixtures.MockPatchObject(server, 'SECONDS', 1.0))

    def test_download_while_many_connect(self):
        """A slow one goes on; without a right nothing lasts longer."""
        self.start(self.CLOUD)
        whole = self.ask('/snapshot', authorization('ann')).body
        self.assertLess(10 ** 5, len(whole))
        reader = self.connect_as('ann', '/snapshot').makefile('rb')
        self.assertIn(b'200', reader.readline())
        ends = time.monotonic() + 3
        while time.monotonic() < ends:
            for _number in range(server.CONNECTIONS):
                idle = socket.create_connection(
                    ('127.0.0.1', self.server.server_port), timeout=20)
                self.addCleanup(idle.close)
            time.sleep(0.2)
        head, _end, body = reader.read().partition(b'\r\n\r\n')
        self.assertEqual(whole, body)

    def test_those_with_a_right_have_a_limit(self):
        self.useFixture(fixtures.MockPatchObject(publication, 'SECONDS', 4.0))
        self.start()
        asked = queue.SimpleQueue()
        self.server.respond = lambda request: (
            request.connection.extend(b'ann', publication.SECONDS) or
            asked.put(request.connection) or
            server.Answer(200, body=b'x' * 10 ** 8))
        self.connect(b'GET / HTTP/1.0\r\n\r\n')
        closed = asked.get(timeout=20).closed
        self.assertFalse(closed.wait(1.5))
        self.assertTrue(closed.wait(8))

    def test_one_user_has_all(self):
        """If all connections have a right, only its own are closed for others.

        The newest of it, and those of other users, are answered.
        """
        # None is closed because its time is up.
        self.useFixture(fixtures.MockPatchObject(server, 'SECONDS', 60.0))
        self.start()
        go, admitted = threading.Event(), []

        def respond(request):
            answer = self.published.respond(request)
            admitted.append(request.connection.user)
            while request.query == 'wait' and not go.is_set() and (
                    not request.connection.closed.wait(0.1)):
                pass
            return answer

        self.server.respond = respond
        self.addCleanup(go.set)
        clients = {user: [] for user in ('ann', 'eve', 'bob')}
        for user, number in (('ann', 2), ('eve', 1),
                             ('bob', 2 * server.CONNECTIONS)):
            for _number in range(number):
                clients[user].append(self.connect_as(user, '/snapshot?wait'))
                wait_for(self, lambda: clients['bob'] or (
                    len(admitted) == sum(map(len, clients.values()))))
        for user in ('ann', 'eve', 'bob'):
            self.assertEqual(
                200, self.ask('/snapshot', authorization(user)).status)
        go.set()
        for client in (*clients['ann'], *clients['eve'], clients['bob'][-1]):
            self.assertIn(b' 200 ', client.makefile('rb').readline())
        with contextlib.suppress(ConnectionResetError):
            self.assertEqual(b'', clients['bob'][0].recv(1))

    def test_time_for_a_right(self):
        """Those of a user with a right leave others the time to get one."""
        self.useFixture(fixtures.MockPatchObject(server, 'SECONDS', 60.0))
        self.start()
        self.server.respond = lambda request: (
            request.connection.extend(b'bob', 60.0) or
            request.connection.closed.wait(60) or server.problem(404))
        for _number in range(server.CONNECTIONS):
            self.connect(b'GET / HTTP/1.0\r\n\r\n')
        client = self.connect(b'GET / HTTP/1.0\r\n')
        for _number in range(server.CONNECTIONS):
            self.connect(b'GET / HTTP/1.0\r\n\r\n')
        self.server.respond = self.published.respond
        client.sendall(b'\r\n')
        self.assertIn(b' 401 ', client.makefile('rb').readline())


class FromTest(ServeTestCase):
    """``--from https://...``, with each way to prove who asks."""

    CLOUD = dataclasses.replace(test_metrics.CLOUD, servers=(
        snapshots.server('router-1', pins={0: range(4)}, host='one'),))

    def setUp(self):
        super().setUp()
        self.start(self.CLOUD)
        for name, value in ((remote.CA, self.authority.path),
                            (remote.TOKEN, 'ann:secret')):
            self.useFixture(fixtures.EnvironmentVariable(name, value))

    def test_served_again(self):
        _process, ask = start_process(
            self, '--from', self.url, '--auth-file', self.users)
        wait_for(self, lambda: ask('/healthz')[0] == 200)
        self.assertEqual(self.CLOUD, loads(ask('/snapshot')[2]))

    def test_accounts(self):
        netrc = self.write_file(
            'netrc', 'machine 127.0.0.1 login ann password secret\n')
        for name, value in (
                (remote.TOKEN, 'ann:secret'), ('NETRC', netrc),
                (remote.CERT, self.authority.certificate(
                    'host1.example.org'))):
            self.useFixture(fixtures.EnvironmentVariable(remote.TOKEN))
            with fixtures.EnvironmentVariable(name, value):
                code, out, err = self.run_command(
                    'host', 'list', '--from', f'{self.url}/')
            # A cell is missing.
            self.assertEqual(1, code, err)
            self.assertIn('one', out)


class CommandTest(base.CommandTestCase):

    def setUp(self):
        super().setUp()
        self.cloud = self.save_cloud(test_metrics.CLOUD)
        self.users = self.write_file('users', USERS)

    def test_usage(self):
        for args, message in (
                (('--tls-cert', self.users), '--auth-file is needed'),
                (('--listen', ':0', '--auth-file', self.in_folder('x')),
                 f'{self.in_folder("x")}: No such file'),
                (('--listen', '0.0.0.0:0', '--auth-file', self.users),
                 '--tls-cert needed: others can reach 0.0.0.0'),
                (('--listen', ':0', '--auth-file', self.users,
                  '--tls-client-ca', self.users), '--tls-cert needed'),
                (('--listen', ':0', '--auth-file', self.users,
                  '--tls-cert', self.users), 'cannot be used')):
            code, out, err = self.run_command(
                'snapshot', 'serve', '--from', self.cloud, *args)
            self.assertIn(message, err)
            self.assertIn(code, (1, 2))
            self.assertEqual('', out)
        self.refused('--auth-file is needed', 'snapshot', 'serve')

    def test_refresh(self):
        """One that fails keeps the last snapshot, and others follow."""
        temporary = self.in_folder('tmp')
        os.mkdir(temporary)
        process, ask = start_process(
            self, '--from', self.cloud, '--auth-file', self.users,
            TMPDIR=temporary)

        def errors():
            figures = test_metrics.figures(ask('/metrics')[2].decode())
            return figures['nfv_sched_collection_errors_total',]

        wait_for(self, lambda: ask('/healthz')[0] == 200)
        status, tag, content = ask('/snapshot')
        self.assertEqual(test_metrics.CLOUD, loads(content))
        # Nothing is on a disk, which kill -9 would leave there.
        self.assertEqual([], os.listdir(temporary))

        os.rename(self.cloud, self.cloud + '-away')
        wait_for(self, lambda: errors() >= 2)
        self.assertEqual((200, tag, content), ask('/snapshot'))

        file.save(dataclasses.replace(
            test_metrics.CLOUD, hosts=test_metrics.CLOUD.hosts[1:]),
            self.cloud)
        wait_for(self, lambda: ask('/snapshot')[1] != tag)
        self.assertEqual(1, len(loads(ask('/snapshot')[2]).hosts))

        process.send_signal(signal.SIGTERM)
        _out, err = process.communicate(timeout=60)
        self.assertEqual(0, process.returncode, err)
        self.assertIn('The last figures are kept', err)
        self.assertNotIn('Traceback', err)
