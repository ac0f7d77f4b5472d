# SPDX-License-Identifier: Apache-2.0
"""Users of the server of metrics, and the file that lists them."""

import base64
import os
import threading
from unittest import mock

import bcrypt
import fixtures

from nfv_sched.ops.cli import errors
from nfv_sched.ops.serve.metrics import auth
from nfv_sched.ops.serve.metrics import server
from nfv_sched.tests import base

ALLOWED, DENIED = True, False


def hashed(password, cost=4, prefix=b'2b'):
    return bcrypt.hashpw(password, bcrypt.gensalt(cost)).replace(
        b'$2b$', b'$' + prefix + b'$')


def header(user, password, scheme='Basic'):
    return f'{scheme} ' + base64.b64encode(
        user + b':' + password).decode()


def client():
    return server.Connection(None, '192.0.2.1')


def request(authorization, connection=None, certificate=()):
    return server.HTTPRequest(
        '/', '', {'Authorization': authorization}, dict(certificate),
        connection or client())


def verdict(users, authorization):
    refusal = users.refusal(request(authorization))
    return {None: ALLOWED, 401: DENIED}[refusal and refusal.status]


class UsersTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.useFixture(fixtures.MockPatchObject(
            auth, 'PAUSE_FACTOR', 0))
        self.users = auth.Users({
            b'prometheus': hashed(b'secret:1'),
            'zo\u00eb'.encode(): hashed('\u20ac'.encode())})

    def test_right(self):
        for scheme in ('Basic', 'basic', 'BASIC'):
            self.assertIs(ALLOWED, verdict(
                self.users, header(b'prometheus', b'secret:1', scheme)))
        self.assertIs(ALLOWED, verdict(
            self.users, header('zo\u00eb'.encode(), '\u20ac'.encode())))

    def test_wrong(self):
        for user, password in (
                (b'prometheus', b'secret:2'), (b'prometheus', b''),
                (b'prometheus', b'secret:1\x00'), (b'', b'secret:1'),
                (b'prometheus', b'x' * 1000), (b'x' * 9999, b'secret:1'),
                ('zo\u00eb'.encode(), b'secret:1'), (b'\xff', b'\xff')):
            self.assertIs(DENIED, verdict(self.users, header(user, password)))

    def test_malformed(self):
        right = header(b'prometheus', b'secret:1')
        with mock.patch.object(bcrypt, 'checkpw') as check:
            for value in ('', 'Basic', 'Basic ', 'Basic \xe9', 'Basic ====',
                          'Basic cHJvbWV0aGV1cw==', right[:-2] + '*',
                          right.replace('Basic', 'Bearer'),
                          right.replace('Basic ', 'Basic'), f'{right} x'):
                self.assertIs(DENIED, verdict(self.users, value), value)
        check.assert_not_called()

    def test_long_password(self):
        """bcrypt uses its first 72 bytes; some releases refuse more."""
        users = auth.Users({b'u': hashed(b'x' * 72)})
        self.assertIs(ALLOWED, verdict(users, header(b'u', b'x' * 80)))
        self.assertIs(DENIED, verdict(users, header(b'u', b'x' * 71)))

    def test_right_password_is_checked_once(self):
        """Each scrape costs no bcrypt, also with wrong ones in between."""
        right = header(b'prometheus', b'secret:1')
        self.assertIs(ALLOWED, verdict(self.users, right))
        self.assertIs(DENIED, verdict(self.users, header(b'prometheus', b'x')))
        with mock.patch.object(bcrypt, 'checkpw') as check:
            self.assertIs(ALLOWED, verdict(self.users, right))
        check.assert_not_called()

    def test_unknown_user(self):
        """bcrypt runs once, with the same cost for the same name."""
        hashes = {b'a': hashed(b'x', 4), b'b': hashed(b'x', 5)}
        users = auth.Users(hashes)
        for name in (b'c', b'd', b'e'):
            with mock.patch.object(bcrypt, 'checkpw',
                                   return_value=True) as check:
                for _number in range(3):
                    self.assertIs(DENIED, verdict(users, header(name, b'x')))
            self.assertEqual([check.call_args] * 3, check.call_args_list)
            self.assertIn(check.call_args.args[1], hashes.values())

    def test_pause(self):
        """It is the same for an unknown user as for a wrong password."""
        pauses = []
        with mock.patch.object(auth, 'PAUSE_FACTOR', 4):
            for user in (b'prometheus', b'unknown'):
                connection = client()
                with mock.patch.object(connection.closed, 'wait',
                                       pauses.append):
                    self.users.refusal(
                        request(header(user, b'x'), connection))
        self.assertEqual(2, len(pauses))
        for pause in pauses:
            self.assertTrue(0.001 < pause <= auth.PAUSE_SECONDS, pauses)

    def test_pause_of_one(self):
        """It delays nobody else, and ends when the connection is closed."""
        for name, value in ('PAUSE_FACTOR', 10 ** 6), ('PAUSE_SECONDS', 60):
            self.useFixture(fixtures.MockPatchObject(auth, name, value))
        connection, paused = client(), threading.Event()
        original = connection.closed.wait

        def wait(seconds):
            paused.set()
            original(seconds)

        self.useFixture(fixtures.MockPatchObject(
            connection.closed, 'wait', wait))
        guess = threading.Thread(target=self.users.refusal, args=(
            request(header(b'prometheus', b'x'), connection),))
        guess.start()
        self.assertTrue(paused.wait(30))
        self.assertIs(ALLOWED, verdict(
            self.users, header(b'prometheus', b'secret:1')))
        self.assertTrue(guess.is_alive())
        connection.closed.set()
        guess.join(30)
        self.assertFalse(guess.is_alive())


class ReadTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.path = os.path.join(
            self.useFixture(fixtures.TempDir()).path, 'users')

    def write(self, content, mode=0o600):
        with open(self.path, 'wb') as opened:
            opened.write(content)
        os.chmod(self.path, mode)

    def test_read(self):
        """Of all programs that make such files, with comments."""
        self.write(b'# users\n\na:%s\r\nb c:%s\n  d:%s' % (
            hashed(b'1', prefix=b'2y'), hashed(b'2', prefix=b'2a'),
            hashed(b'3')), 0o640)
        users = auth.read(self.path)
        for user, password in (b'a', b'1'), (b'b c', b'2'), (b'd', b'3'):
            self.assertIs(ALLOWED, verdict(users, header(user, password)))

    def test_roles(self):
        """Without one a user is a reader; without a hash nobody logs in."""
        good = hashed(b'x')
        self.write(b'a:%s:operator\nb:%s:reader\nc:%s\nd:%s:metrics\n'
                   b'e:*:operator\nf:*' % (good, good, good, good))
        users = auth.read(self.path)
        for user, role in ((b'a', auth.Role.OPERATOR),
                           (b'b', auth.Role.READER), (b'c', auth.Role.READER),
                           (b'd', auth.Role.METRICS)):
            self.assertIs(role, self.role(users, header(user, b'x')))
        self.useFixture(fixtures.MockPatchObject(auth, 'PAUSE_FACTOR', 0))
        for user, password in ((b'e', b'x'), (b'e', b'*'), (b'f', b'')):
            self.assertIs(DENIED, verdict(users, header(user, password)))
        for role in auth.Role:
            self.assertTrue(users.has_role(role))
        self.write(b'e:*:operator\n')
        users = auth.read(self.path)
        self.assertIs(DENIED, verdict(users, header(b'e', b'')))
        self.assertFalse(users.has_role(auth.Role.READER))

    def test_certificates(self):
        """Of several names the one with most rights counts."""
        self.write(b'a:*:operator\nb:*:reader\nc:*:metrics\n*:*:operator')
        users = auth.read(self.path)
        for names, role in ((('a',), auth.Role.OPERATOR),
                            (('c', 'b'), auth.Role.READER),
                            (('b', 'c', 'a'), auth.Role.OPERATOR),
                            (('x', 'c'), auth.Role.METRICS)):
            for certificate in (
                    {'subject': ((('commonName', names[0]),),),
                     'subjectAltName': [('DNS', name) for name in names]},
                    {'subject': ((('commonName', 'x'),),),
                     'subjectAltName': [('email', name) for name in names]}):
                self.assertIs(role, self.role(users, '', certificate))
        for certificate in (
                {'subject': ((('organizationName', 'a'),),)},
                {'subject': ((('commonName', 'A'),),)},
                {'subject': ((('commonName', 'a.b'),),)},
                {'subjectAltName': [('IP Address', 'a'), ('URI', 'a')]}):
            self.assertIn(self.role(users, '', certificate), (401, 403))

    @staticmethod
    def role(users, authorization, certificate=()):
        user = users.user(request(authorization, None, certificate))
        return user.status if isinstance(
            user, server.Answer) else user.role

    def test_malformed(self):
        """The message has no part of a hash or password."""
        good = hashed(b'x')
        for line in (
                b'a:secret', b'a', b':' + good, b'a:' + good[:-1],
                b'a:' + good + b'x', b'a:' + good.replace(b'$04$', b'$x4$'),
                b'a:' + good.replace(b'$04$', b'$31$'),
                b'a:' + good.replace(b'$04$', b'$03$'),
                b'a:$6$secret$' + b'x' * 86, b'a:{SHA}secret', b'\xff\x00',
                b'a:' + good + b':x',
                b'a:' + good + b':', b'a:' + good + b':Operator', b'a:**',
                b'a:' + good + b':operator:x', b'a:*\na:' + good,
                b'a:' + good + b'\na:' + good, b'', b'#', b'x' * 100000,
                b'a:' + good.replace(b'$2b$', b'$2$')):
            self.write(line)
            error = self.assertRaises(
                errors.CloudUnreadError, auth.read, self.path)
            self.assertTrue(str(error).startswith(f'{self.path}: '))
            self.assertLess(len(str(error)), 300)
            self.assertNotIn('secret', str(error))
            self.assertNotIn(good.decode()[7:20], str(error))

    def test_open_to_others(self):
        for mode in (0o604, 0o602, 0o644, 0o666):
            self.write(b'a:' + hashed(b'x'), mode)
            error = self.assertRaises(
                errors.CloudUnreadError, auth.read, self.path)
            self.assertIn('chmod', str(error))

    def test_not_a_file(self):
        """A pipe is not waited for."""
        os.mkfifo(self.path)
        for path in (self.path, os.path.dirname(self.path), '/dev/zero',
                     f'{self.path}-missing', 'a\0b', ''):
            self.assertRaises(
                errors.CloudUnreadError, auth.read, path)
