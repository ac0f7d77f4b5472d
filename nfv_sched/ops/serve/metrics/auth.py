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
import time
import typing as ty

import bcrypt

from nfv_sched.base import files
from nfv_sched.ops.cli import errors
from nfv_sched.ops.serve.metrics import server

#: Most bytes of a file.
MAX_BYTES = 65536
#: Highest cost of a hash: checking it takes about a second.
MAX_COST = 14
#: Seconds for which a client waits for its check before it gets 503; less than
#: its connection has.
TURN_SECONDS = 9.0

# bcrypt uses no more of a password; some of its releases refuse longer ones.
_PASSWORD_BYTES = 72
# Pause after a wrong password: this factor times the duration of the check, up
# to a number of seconds. A client that guesses then uses a fifth of a CPU, and
# many use one.
PAUSE_FACTOR = 4
PAUSE_SECONDS = 1.0
_LINE = re.compile(
    rb'([^:]+):(?:\*|(\$2[aby]\$(\d\d)\$[./A-Za-z0-9]{53}))(?::(\w+))?')
_DENIED = server.Answer(401, headers={
    'WWW-Authenticate': 'Basic realm="nfv-sched", charset="UTF-8"'})


class Role(enum.Enum):
    READER = 'reader'  # the anonymized snapshot
    METRICS = 'metrics'  # the metrics alone
    OPERATOR = 'operator'  # everything


_ROLES = {role.value: role for role in Role}


class User(ty.NamedTuple):
    name: bytes
    role: Role


class Users:
    """Users who may read what is served.

    Only one password is checked at a time, and a correct one is not checked
    by bcrypt again.  Each user has the same share of the checks, whoever
    guesses the password, and all names without a line have one together.

    :param roles: others are readers
    """

    def __init__(self, hashes: Mapping[bytes, bytes],
                 roles: Mapping[bytes, Role] | None = None):
        self._hashes = dict(hashes)
        self._roles = {**dict.fromkeys(hashes, Role.READER), **(roles or {})}
        self._key = secrets.token_bytes(32)
        self._allowed: dict[bytes, bytes] = {}
        self.turns = server.Turns()

    def has_role(self, role: Role) -> bool:
        return role in self._roles.values()

    def user(self, request: server.HTTPRequest) -> 'User | server.Answer':
        """Return the user of a request, or the answer that refuses it.

        A password counts more than a certificate. Of several names in a
        certificate the one with most rights counts.
        """
        header = request.headers.get('Authorization', '')
        names = _names(request.certificate)
        if header or not names:
            if (refusal := self.refusal(request)) is not None:
                return refusal
            name, _colon, _password = _credentials(header)
            return User(name, self._roles[name])
        for role in (Role.OPERATOR, Role.READER, Role.METRICS):
            for name in sorted(names):
                if self._roles.get(name) is role:
                    return User(name, role)
        return server.problem(403, 'No user has a name of this certificate.')

    def refusal(self, request: server.HTTPRequest) -> server.Answer | None:
        """Return an answer unless the password is right; None if it is.

        An unknown user and a wrong password take equally long.
        """
        user, colon, password = _credentials(
            request.headers.get('Authorization', ''))
        if not colon or not self._hashes:
            return _DENIED
        digest = self._digest(user + b':' + password)
        if self._was_right(user, digest):
            return None
        connection = request.connection
        with self.turns.take(user if user in self._hashes else None,
                             connection, TURN_SECONDS) as has_turn:
            if not has_turn:
                # Too many passwords of this user are being checked.
                return server.problem(503)
            # Meanwhile another connection may have had it checked.
            if self._was_right(user, digest):
                return None
            began = time.monotonic()
            if self._is_right(user, password):
                self._allowed[user] = digest
                return None
            seconds = time.monotonic() - began
        # Only this connection is delayed.
        connection.closed.wait(min(PAUSE_FACTOR * seconds, PAUSE_SECONDS))
        return _DENIED

    def _was_right(self, user: bytes, digest: bytes) -> bool:
        return hmac.compare_digest(self._allowed.get(user, b''), digest)

    def _is_right(self, user: bytes, password: bytes) -> bool:
        hashed = self._hashes.get(user)
        # For an unknown user.  Costs can differ by user, so a name always gets
        # the same hash.
        hashes = list(self._hashes.values())
        number = int.from_bytes(self._digest(user), 'big')
        try:
            is_right = bcrypt.checkpw(
                password[:_PASSWORD_BYTES],
                hashed or hashes[number % len(hashes)])
        except ValueError:  # of a zero byte, in some releases
            is_right = False
        return hashed is not None and is_right

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
    return decoded.partition(b':')


def _names(certificate: Mapping[str, ty.Any]) -> set[bytes]:
    names = [value for part in certificate.get('subject', ())
             for key, value in part if key == 'commonName']
    names += [value for kind, value in certificate.get('subjectAltName', ())
              if kind in ('DNS', 'email')]
    return {name.encode() for name in names}


def read(path: str) -> Users:
    """Read a file of users.

    :raises CloudUnreadError: if it cannot be read, is open to other users of
        the host, or has a line that is not a user with a bcrypt hash
    """
    with files.naming(path, errors.CloudUnreadError):
        # Opening a FIFO would block until it has a writer.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        with open(descriptor, 'rb') as opened:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise ValueError('not a regular file')
            if status.st_mode & stat.S_IRWXO:
                raise ValueError(
                    'open to all users of this host; use "chmod o-rwx"')
            content = opened.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise ValueError(f'longer than {MAX_BYTES} bytes')
        return _users(content)


def _users(content: bytes) -> Users:
    hashes: dict[bytes, bytes] = {}
    roles: dict[bytes, Role] = {}
    for number, line in enumerate(content.split(b'\n'), 1):
        line = line.strip()
        if not line or line.startswith(b'#'):
            continue
        match = _LINE.fullmatch(line)
        # The message does not quote the line: it is a secret.
        if match is None:
            raise ValueError(
                f'line {number}: not USER:HASH or USER:HASH:ROLE with a hash '
                'of bcrypt, as by "htpasswd -nBC 10 USER", or with *')
        user, hashed, cost, role = match.groups()
        if role is not None and role.decode() not in _ROLES:
            raise ValueError(
                f'line {number}: the role is none of {", ".join(_ROLES)}')
        if hashed is not None and not 4 <= int(cost) <= MAX_COST:
            raise ValueError(f'line {number}: the cost {int(cost)} of the '
                             f'hash is not from 4 to {MAX_COST}')
        if user in roles:
            raise ValueError(f'line {number}: the user has two lines')
        roles[user] = Role.READER if role is None else _ROLES[role.decode()]
        if hashed is not None:
            hashes[user] = hashed
    if not roles:
        raise ValueError('no users')
    return Users(hashes, roles)
