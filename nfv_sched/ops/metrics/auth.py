# SPDX-License-Identifier: Apache-2.0
"""Find out who a client is, by a file of users with bcrypt hashes.

The file has the format of Apache's htpasswd, as for oslo.middleware.  A line
may also have a role, and ``*`` for the hash of a user who has no password but
a client certificate.
"""

import base64
from collections.abc import Mapping
import enum
import hashlib
import hmac
import os
import re
import secrets
import stat
import threading
import time
import typing as ty

import bcrypt

from nfv_sched.ops.metrics import server

#: Most bytes of a file.
MAX_BYTES = 65536
#: Highest cost of a hash: checking it takes about a second.
MAX_COST = 14
#: Maximum number of clients that wait for a check; further ones get 503.
WAITING = 4

# bcrypt uses no more of a password; some of its releases refuse longer ones.
_PASSWORD_BYTES = 72
# Pause after a wrong password: this factor times the duration of the check, up
# to a number of seconds. Guessing then uses a fifth of a CPU.
PAUSE_FACTOR = 4
PAUSE_SECONDS = 1.0
_LINE = re.compile(
    rb'([^:]+):(?:\*|(\$2[aby]\$(\d\d)\$[./A-Za-z0-9]{53}))(?::(\w+))?')


class Verdict(enum.Enum):
    """Result of the check of a password."""

    ALLOWED = enum.auto()
    DENIED = enum.auto()
    BUSY = enum.auto()  # too many clients send unchecked passwords


class Role(enum.Enum):
    """The rights of a user of a served snapshot."""

    READER = 'reader'  # the anonymized snapshot
    METRICS = 'metrics'  # the metrics alone
    OPERATOR = 'operator'  # everything


_ROLES = {role.value: role for role in Role}


class AuthFileError(Exception):
    """A file of users cannot be used; the message says why."""


class Users:
    """Users who may read what is served.

    Only one password is checked at a time, and a correct one is not checked
    by bcrypt again.

    :param hashes: user name -> bcrypt hash
    :param roles: user name -> role; others are readers
    """

    def __init__(self, hashes: Mapping[bytes, bytes],
                 roles: Mapping[bytes, Role] | None = None):
        self._hashes = dict(hashes)
        self._roles = {**dict.fromkeys(hashes, Role.READER), **(roles or {})}
        self._key = secrets.token_bytes(32)
        self._allowed: dict[bytes, bytes] = {}
        self._waiting = threading.BoundedSemaphore(WAITING)
        self._lock = threading.Lock()

    def has_role(self, role: Role) -> bool:
        """Return whether any user has a role."""
        return role in self._roles.values()

    def role(self, request: server.HTTPRequest) -> Role | server.Answer:
        """Return the role of a client, or the answer that refuses it.

        A password counts more than a certificate. Of several names in a
        certificate the one with most rights counts.
        """
        header = request.headers.get('Authorization', '')
        names = _names(request.certificate)
        if header or not names:
            refusal = self.refusal(request)
            if refusal is not None:
                return refusal
            user, _colon, _password = _credentials(header)
            return self._roles[user]
        roles = {self._roles.get(name) for name in names}
        for role in (Role.OPERATOR, Role.READER, Role.METRICS):
            if role in roles:
                return role
        return server.problem(403, 'No user has a name of this certificate.')

    def refusal(self, request: server.HTTPRequest) -> server.Answer | None:
        """Return the answer to a client without the right password.

        :returns: None if the password is right
        """
        verdict = self.check(request.headers.get('Authorization', ''))
        if verdict is Verdict.DENIED:
            return server.Answer(401, headers={
                'WWW-Authenticate':
                    'Basic realm="nfv-sched", charset="UTF-8"'})
        if verdict is Verdict.BUSY:
            return server.problem(503)
        return None

    def check(self, header: str) -> Verdict:
        """Check an ``Authorization`` header.

        An unknown user and a wrong password take equally long.
        """
        user, colon, password = _credentials(header)
        if not colon or not self._hashes:
            return Verdict.DENIED
        digest = self._digest(user + b':' + password)
        if hmac.compare_digest(self._allowed.get(user, b''), digest):
            return Verdict.ALLOWED
        if not self._waiting.acquire(blocking=False):
            return Verdict.BUSY
        try:
            with self._lock:
                return self._check_hash(user, password, digest)
        finally:
            self._waiting.release()

    def _check_hash(self, user: bytes, password: bytes,
                    digest: bytes) -> Verdict:
        hashed = self._hashes.get(user)
        began = time.monotonic()
        try:
            is_right = bcrypt.checkpw(
                password[:_PASSWORD_BYTES], hashed or self._stand_in(user))
        except ValueError:  # of a zero byte, in some releases
            is_right = False
        if hashed is not None and is_right:
            self._allowed[user] = digest
            return Verdict.ALLOWED
        time.sleep(min(PAUSE_FACTOR * (time.monotonic() - began),
                       PAUSE_SECONDS))
        return Verdict.DENIED

    def _stand_in(self, user: bytes) -> bytes:
        """Return a hash to check an unknown user's password against."""
        # Costs can differ by user, so a name always gets the same hash.
        hashes = list(self._hashes.values())
        number = int.from_bytes(self._digest(user), 'big')
        return hashes[number % len(hashes)]

    def _digest(self, data: bytes) -> bytes:
        return hmac.digest(self._key, data, hashlib.sha256)


def _credentials(header: str) -> tuple[bytes, bytes, bytes]:
    """Return user, colon and password; no colon if the header has none."""
    scheme, _space, encoded = header.partition(' ')
    try:
        decoded = base64.b64decode(encoded.strip(), validate=True)
    except ValueError:
        decoded = b''
    if scheme.lower() != 'basic':
        decoded = b''
    user, colon, password = decoded.partition(b':')
    return user, colon, password


def _names(certificate: Mapping[str, ty.Any]) -> set[bytes]:
    """Return the names in a certificate: common, of hosts, of mailboxes."""
    names = [value for part in certificate.get('subject', ())
             for key, value in part if key == 'commonName']
    names += [value for kind, value in certificate.get('subjectAltName', ())
              if kind in ('DNS', 'email')]
    return {name.encode() for name in names}


def read(path: str) -> Users:
    """Read a file of users.

    :raises AuthFileError: if it cannot be read, is open to other users of the
        host, or has a line that is not a user with a bcrypt hash
    """
    hashes: dict[bytes, bytes] = {}
    roles: dict[bytes, Role] = {}
    for number, line in enumerate(_content(path).split(b'\n'), 1):
        line = line.strip()
        if not line or line.startswith(b'#'):
            continue
        match = _LINE.fullmatch(line)
        # The message does not quote the line: it is a secret.
        if match is None:
            raise AuthFileError(
                f'{path}: line {number}: not USER:HASH or USER:HASH:ROLE with '
                'a hash of bcrypt, as by "htpasswd -nBC 10 USER", or with *')
        user, hashed, cost, role = match.groups()
        if role is not None and role.decode() not in _ROLES:
            raise AuthFileError(
                f'{path}: line {number}: the role is none of '
                f'{", ".join(_ROLES)}')
        if hashed is not None and not 4 <= int(cost) <= MAX_COST:
            raise AuthFileError(
                f'{path}: line {number}: the cost {int(cost)} of the hash is '
                f'not from 4 to {MAX_COST}')
        if user in roles:
            raise AuthFileError(
                f'{path}: line {number}: the user has two lines')
        roles[user] = Role.READER if role is None else _ROLES[role.decode()]
        if hashed is not None:
            hashes[user] = hashed
    if not roles:
        raise AuthFileError(f'{path}: no users')
    return Users(hashes, roles)


def _content(path: str) -> bytes:
    try:
        # Opening a FIFO would block until it has a writer.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        with open(descriptor, 'rb') as opened:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise AuthFileError(f'{path}: not a regular file')
            if status.st_mode & stat.S_IRWXO:
                raise AuthFileError(
                    f'{path}: open to all users of this host; use "chmod '
                    'o-rwx"')
            content = opened.read(MAX_BYTES + 1)
    except (OSError, ValueError) as exc:
        raise AuthFileError(
            f'{path}: {getattr(exc, "strerror", "") or exc}') from exc
    if len(content) > MAX_BYTES:
        raise AuthFileError(f'{path}: longer than {MAX_BYTES} bytes')
    return content
