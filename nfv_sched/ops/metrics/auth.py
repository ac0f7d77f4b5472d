# SPDX-License-Identifier: Apache-2.0
"""Check names and passwords of clients against a file of bcrypt hashes.

The file has the format of Apache's htpasswd, as for oslo.middleware.
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

import bcrypt

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
_LINE = re.compile(rb'([^:]+):(\$2[aby]\$(\d\d)\$[./A-Za-z0-9]{53})')


class Verdict(enum.Enum):
    """Result of the check of a password."""

    ALLOWED = enum.auto()
    DENIED = enum.auto()
    BUSY = enum.auto()  # too many clients send unchecked passwords


class AuthFileError(Exception):
    """A file of users cannot be used; the message says why."""


class Users:
    """Users who may read the metrics.

    Only one password is checked at a time, and a correct one is not checked
    by bcrypt again.

    :param hashes: user name -> bcrypt hash
    """

    def __init__(self, hashes: Mapping[bytes, bytes]):
        self._hashes = dict(hashes)
        self._key = secrets.token_bytes(32)
        self._allowed: dict[bytes, bytes] = {}
        self._waiting = threading.BoundedSemaphore(WAITING)
        self._lock = threading.Lock()

    def check(self, header: str) -> Verdict:
        """Check an ``Authorization`` header.

        An unknown user and a wrong password take equally long.
        """
        scheme, _space, encoded = header.partition(' ')
        try:
            user, colon, password = base64.b64decode(
                encoded.strip(), validate=True).partition(b':')
        except ValueError:
            return Verdict.DENIED
        if scheme.lower() != 'basic' or not colon:
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


def read(path: str) -> Users:
    """Read a file of users.

    :raises AuthFileError: if it cannot be read, is open to other users of the
        host, or has a line that is not a user with a bcrypt hash
    """
    hashes: dict[bytes, bytes] = {}
    for number, line in enumerate(_content(path).split(b'\n'), 1):
        line = line.strip()
        if not line or line.startswith(b'#'):
            continue
        match = _LINE.fullmatch(line)
        # The message does not quote the line: it is a secret.
        if match is None:
            raise AuthFileError(
                f'{path}: line {number}: not USER:HASH with a hash of bcrypt, '
                'as by "htpasswd -nBC 10 USER"')
        user, hashed, cost = match.groups()
        if not 4 <= int(cost) <= MAX_COST:
            raise AuthFileError(
                f'{path}: line {number}: the cost {int(cost)} of the hash is '
                f'not from 4 to {MAX_COST}')
        if user in hashes:
            raise AuthFileError(
                f'{path}: line {number}: the user has two lines')
        hashes[user] = hashed
    if not hashes:
        raise AuthFileError(f'{path}: no users')
    return Users(hashes)


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
