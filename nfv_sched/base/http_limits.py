# SPDX-License-Identifier: Apache-2.0
"""Limit the size and duration of the answers of HTTP services.

:func:`limit` applies to all requests of a session of keystoneauth1: those of
the service, of version discovery, and of Keystone.  The timeout of a request
is that of each wait for the server, and the body must be complete by then.
"""

from collections.abc import Iterator
import contextlib
import copy
import functools
import time
import typing as ty
import urllib.parse
import zlib

from keystoneauth1 import session as ks_session
import requests
import urllib3

from nfv_sched.base import connection_errors

#: Maximum size of an answer in bytes, also after it is decompressed.
ANSWER_BYTES = 64 * 2 ** 20
#: Seconds for an answer, if the session has no timeout.
ANSWER_SECONDS = 60.0
#: Maximum number of redirects of a request, all of them to the same server.
REDIRECTS = 3
#: Errors of code that expects an answer as the API describes it.
MALFORMED = (ArithmeticError, AttributeError, LookupError, RecursionError,
             TypeError, ValueError)

_REDIRECT_STATUSES = (301, 302, 303, 305, 307, 308)
_PORTS = {'http': 80, 'https': 443}


class HTTPLimitError(requests.exceptions.RequestException):
    """An answer that is too long, too slow, malformed or redirected away."""


class TooLongError(HTTPLimitError):
    """An answer that is too long."""


def limit(session: ks_session.Session) -> None:
    """Limit all answers that a session gets, and mask accounts in URLs."""
    connection_errors.mask_session(session)
    session.redirect = REDIRECTS
    if session.timeout is None:
        session.timeout = ANSWER_SECONDS
    session.session = bounded(session.session, ANSWER_BYTES)


@contextlib.contextmanager
def limited(session: ks_session.Session) -> Iterator[None]:
    """Limit the answers of a caller's session within this context."""
    before = {name: getattr(session, name)
              for name in ('session', 'redirect', 'timeout', 'request')}
    limit(session)
    try:
        yield
    finally:
        vars(session).update(before)


def bounded(session: requests.Session, size: int) -> requests.Session:
    """Return a copy of a session with answers limited to ``size`` bytes."""
    session = copy.copy(session)
    # requests would ask for gzip, which lets a small answer become a large one
    # in memory. Services or proxies that compress all the same are understood.
    session.headers = session.headers.copy()
    session.headers['Accept-Encoding'] = 'identity'
    session.hooks = {'response': [
        *session.hooks['response'], functools.partial(_check, size=size)]}
    return session


def reason(error: BaseException) -> str:
    """Return why a request failed; mask accounts in the error."""
    connection_errors.mask_texts(error)
    for each in connection_errors.causes(error):
        if isinstance(each, HTTPLimitError):
            return str(each)  # without the URL
    if isinstance(error, MALFORMED) and not isinstance(error, OSError):
        return (f'malformed URL or answer: {error.__class__.__name__}: '
                f'{error}')
    where = connection_errors.origin(error) or 'the service'
    if (why := connection_errors.reason(error)) is not None:
        return f'{where} does not answer ({why})'
    if connection_errors.is_refused(error):
        return f'{where} does not accept the account (HTTP 401)'
    return str(error)


def _check(response: requests.Response, *, size: int,
           timeout: ty.Any = None, **_options: ty.Any) -> None:
    location = response.headers.get('Location')
    if (response.status_code in _REDIRECT_STATUSES and location is not None
            and not _is_same_server(response.url, location)):
        response.close()
        raise HTTPLimitError(f'{response.status_code} {response.reason}: '
                             'redirected to another server')
    # Otherwise requests guesses, which takes minutes for large bodies.
    response.encoding = 'utf-8'
    seconds = timeout if isinstance(timeout, (int, float)) else ANSWER_SECONDS
    response.raw = _Body(response, size, seconds)


def _is_same_server(url: str, location: str) -> bool:
    """Return whether a redirect keeps the token at the same server."""
    try:
        # By the parser that is used for requests.
        before, after = [
            (parsed.scheme, parsed.host, parsed.port or _PORTS.get(
                parsed.scheme or '')) for parsed in map(
                urllib3.util.parse_url, (
                    url, urllib.parse.urljoin(url, location)))]
    except ValueError:
        return False
    return before == after


class _Body:
    """The answer of urllib3, whose body requests reads by :meth:`stream`."""

    def __init__(self, response: requests.Response, size: int, seconds: float):
        self._raw = response.raw
        self._encoding = response.headers.get('Content-Encoding', 'identity')
        self._size = size
        self._seconds = seconds
        self._deadline = (
            time.monotonic() + seconds - response.elapsed.total_seconds())

    def __getattr__(self, name: str) -> ty.Any:
        return getattr(self._raw, name)

    def stream(self, *_args: ty.Any, **_options: ty.Any) -> Iterator[bytes]:
        """Yield the decompressed body; may raise HTTPLimitError."""
        try:
            yield from self._parts()
        except (urllib3.exceptions.ProtocolError, zlib.error) as exc:
            raise HTTPLimitError(f'the answer is malformed: {exc}') from exc
        finally:
            # No effect on a complete answer, whose connection is in its pool.
            self._raw.close()

    def _parts(self) -> Iterator[bytes]:
        encoding = self._encoding.strip().lower()
        if encoding not in ('identity', 'gzip', 'x-gzip', 'deflate'):
            raise HTTPLimitError('the answer has a content encoding that was '
                                 'not requested')
        # 32: with the header of gzip or zlib, whichever it is. Servers
        # disagree about what "deflate" means.
        inflate = None if encoding == 'identity' else zlib.decompressobj(
            zlib.MAX_WBITS | 32)
        size, received, most = 0, 0, 1
        began = time.monotonic()
        while part := self._raw.read(most, decode_content=False):
            now = time.monotonic()
            if now > self._deadline:
                raise HTTPLimitError('the answer was not complete after '
                                     f'{self._seconds:g} s')
            # A read waits for all of its bytes, however slowly they come.
            most = min(2 * most, 65536) if now - began < 0.01 else 1
            received += len(part)
            if inflate is not None:
                # A byte more than allowed shows that it is too long.
                part = inflate.decompress(part, self._size - size + 1)
            size += len(part)
            if max(size, received) > self._size:
                raise TooLongError(
                    f'the answer is longer than {self._size} bytes')
            yield part
            began = time.monotonic()
        # NOTE: urllib3 before 2 (up to OpenStack 2025.2) does not compare it.
        if self._raw.length_remaining or (
                received and inflate is not None and not inflate.eof):
            raise HTTPLimitError('the answer is incomplete')
