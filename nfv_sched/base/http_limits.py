# SPDX-License-Identifier: Apache-2.0
"""Limit the size and duration of the answers of HTTP services.

:func:`limit` applies to all requests of a session of keystoneauth1: those of
the service, of version discovery, and of Keystone.  An answer is then complete
and in memory when the caller gets it, or the request fails.
"""

import contextlib
import http.client
import io
import math
import socket
import threading
import time
import traceback
import typing as ty
import urllib.parse
import zlib

from keystoneauth1 import exceptions as ks_exceptions
from keystoneauth1 import session as ks_session
import requests
import urllib3

from nfv_sched.base import connection_errors

#: Maximum size of an answer in bytes, also after it is decompressed.
ANSWER_BYTES = 64 * 2 ** 20
#: Seconds from the request to the end of the answer, if it has no timeout.
ANSWER_SECONDS = 60.0
#: Maximum number of redirects of a request, all of them to the same server.
REDIRECTS = 3
#: Errors of code that expects an answer as the API describes it.
MALFORMED = (ArithmeticError, AttributeError, LookupError, RecursionError,
             TypeError, ValueError)

_PACKAGE = __name__.partition('.')[0]
#: Errors of code, rather than of a service.
DEFECTS = (AttributeError, ImportError, NameError, NotImplementedError,
           TypeError)
_CHUNK_BYTES = 65536
_REDIRECT_STATUSES = (301, 302, 303, 305, 307, 308)
_PORTS = {'http': 80, 'https': 443}
# Errors of reading a body. TLS errors are OSErrors.
_READ_ERRORS = (urllib3.exceptions.HTTPError, http.client.HTTPException,
                OSError, ValueError, zlib.error)


class HTTPLimitError(requests.exceptions.RequestException):
    """An answer that is too long, too slow, malformed or redirected away."""


class TooLongError(HTTPLimitError):
    """An answer that is too long."""


class LibraryError(TypeError):
    """An error of a library that differs from what is expected here.

    keystoneauth1 would take a ``RequestException`` for a service that does not
    answer, and look for another version of it.
    """


def limit(session: ks_session.Session, connections: int = 10) -> None:
    """Limit all answers that a session gets, and mask accounts in URLs.

    :param connections: number of connections to a server that are kept open
    """
    connection_errors.mask_session(session)
    session.redirect = REDIRECTS
    # Of [placement] and [neutron]; old releases of keystoneauth1 have none.
    options = {name: value for name in ('tls_ciphers', 'tls_min_version')
               if (value := getattr(session, name, None))}
    for scheme in _PORTS:
        session.session.mount(f'{scheme}://', _Adapter(
            pool_connections=10, pool_maxsize=connections, **options))


def session_over(sock: socket.socket) -> ks_session.Session:
    """Return a session that gets all its answers from a connected socket.

    To see whether the installed libraries work; it has the limits of
    :func:`limit`.
    """
    def connect(connection: ty.Any) -> None:
        connection.sock = sock

    session = ks_session.Session()
    session.session.trust_env = False  # it may name a proxy
    limit(session)
    for scheme in _PORTS:
        session.session.adapters[
            f'{scheme}://'].poolmanager.pool_classes_by_scheme = _pools(
                type('OverSocket', (), {'connect': connect}))
    return session


def binary_session(size: int) -> requests.Session:
    """Return a session for answers that are not text.

    :param size: maximum size of an answer in bytes
    """
    session = requests.Session()
    session.max_redirects = REDIRECTS
    for scheme in _PORTS:
        session.mount(f'{scheme}://', _BinaryAdapter(size))
    return session


@contextlib.contextmanager
def limited(session: ks_session.Session) -> ty.Iterator[None]:
    """Limit the answers of a caller's session within this context."""
    adapters = session.session.adapters.copy()
    redirect, request = session.redirect, session.request
    limit(session)
    try:
        yield
    finally:
        session.session.close()
        session.session.adapters = adapters
        session.redirect, session.request = redirect, request


def is_defect(error: BaseException) -> bool:
    """Return whether a library, or nfv-sched, is why a request failed.

    The libraries raise errors of the same classes for malformed documents.

    :param error: exception of keystoneauth1, or one that it did not expect
    """
    if isinstance(error, LibraryError):
        return True
    # Raised by the use of a library, rather than inside of it.
    frames = [frame for frame, _line in traceback.walk_tb(error.__traceback__)]
    return isinstance(error, DEFECTS) and bool(frames) and (
        frames[-1].f_globals.get('__name__', '').partition('.')[0] == _PACKAGE)


def reason(error: BaseException) -> str:
    """Return why a request failed; mask accounts in the error.

    :param error: exception of keystoneauth1, or one that it did not expect
    """
    connection_errors.mask_texts(error)
    if isinstance(error, ks_exceptions.UnknownConnectionError) and isinstance(
            error.original, HTTPLimitError):
        return str(error.original)  # without the URL
    if isinstance(error, LibraryError):
        return str(error)
    if isinstance(error, MALFORMED) and not isinstance(error, OSError):
        return (f'malformed URL or answer: {error.__class__.__name__}: '
                f'{error}')
    where = connection_errors.origin(error) or 'the service'
    why = connection_errors.reason(error)
    if why is not None:
        return f'{where} does not answer ({why})'
    if connection_errors.is_refused(error):
        return f'{where} does not accept the account (HTTP 401)'
    return str(error)


class _Current(threading.local):
    """The time by which a thread must have read its answer."""

    deadline = math.inf


_current = _Current()


class _Reader(io.RawIOBase):
    """A reader of a socket that stops at the deadline of the answer.

    The timeout of a socket is for each read: headers that come byte by byte
    never exceed it.
    """

    def __init__(self, sock: socket.socket):
        super().__init__()
        self._sock = sock
        self._raw = sock.makefile('rb', buffering=0)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: ty.Any) -> int | None:
        if _current.deadline < math.inf:
            seconds = _current.deadline - time.monotonic()
            if seconds <= 0:
                raise TimeoutError('timed out')
            self._sock.settimeout(seconds)
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()


class _Socket:
    """A connected socket, with or without TLS, that keeps deadlines."""

    def __init__(self, sock: socket.socket):
        self._sock = sock

    def __getattr__(self, name: str) -> ty.Any:
        return getattr(self._sock, name)

    def makefile(self, mode: str, buffering: int = -1) -> io.BufferedReader:
        """Return the file from which ``http.client`` reads an answer."""
        return io.BufferedReader(_Reader(self._sock))


class _Deadlines:
    """A connection of urllib3 whose answers have a deadline."""

    def connect(self) -> None:
        """Connect; a TLS handshake has a deadline anyway."""
        super().connect()  # type: ignore[misc]
        self.sock = _Socket(self.sock)

    def _tunnel(self) -> None:
        """Ask a proxy for a tunnel; TLS then needs the socket itself."""
        sock = self.sock
        self.sock = _Socket(sock)
        super()._tunnel()  # type: ignore[misc]
        self.sock = sock


def _pools(*bases: type) -> dict[str, type]:
    """Return the classes of connection pools, by scheme.

    Connections are those that urllib3 makes now: libraries such as
    wsgi-intercept replace their classes.

    :param bases: classes whose methods connections have instead of urllib3's
    """
    pools = {}
    for scheme, pool in (('http', urllib3.HTTPConnectionPool),
                         ('https', urllib3.HTTPSConnectionPool)):
        connection = type(
            'Connection', (_Deadlines, *bases, pool.ConnectionCls), {})
        pools[scheme] = type(
            'Pool', (pool,), {'ConnectionCls': connection})
    return pools


class _Adapter(ks_session.TCPKeepAliveAdapter):
    """An adapter that reads answers as a whole, within limits."""

    def max_bytes(self) -> int:
        """Return the maximum size of an answer."""
        return ANSWER_BYTES

    def init_poolmanager(self, *args: ty.Any, **kwargs: ty.Any) -> None:
        super().init_poolmanager(*args, **kwargs)
        self.poolmanager.pool_classes_by_scheme = _pools()

    def proxy_manager_for(self, proxy: str, **kwargs: ty.Any) -> ty.Any:
        manager = super().proxy_manager_for(proxy, **kwargs)
        if not proxy.lower().startswith('socks'):
            manager.pool_classes_by_scheme = _pools()
        return manager

    def send(self, request: requests.PreparedRequest, stream: bool = False,
             timeout: ty.Any = None, **kwargs: ty.Any) -> requests.Response:
        """Return the answer to a request, with its body.

        :param stream: has no effect
        :param timeout: seconds for the whole answer
        :raises HTTPLimitError: if the answer breaks a limit
        """
        # requests would ask for gzip, which lets a small answer become a large
        # one in memory. Services or proxies that compress all the same are
        # understood.
        request.headers['Accept-Encoding'] = 'identity'
        seconds = (timeout if isinstance(timeout, (int, float))
                   else ANSWER_SECONDS)
        _current.deadline = time.monotonic() + seconds
        try:
            response = super().send(
                request, stream=True, timeout=seconds, **kwargs)
            try:
                _check_redirect(request, response)
                body = _body(response, self.max_bytes())
            except BaseException:
                response.raw.close()
                raise
        except _READ_ERRORS as exc:
            if isinstance(exc, requests.exceptions.RequestException):
                raise
            if time.monotonic() >= _current.deadline:
                raise HTTPLimitError(f'the answer was not complete after '
                                     f'{seconds:g} s') from exc
            raise HTTPLimitError(f'the answer is malformed: {exc}') from exc
        except DEFECTS as exc:
            raise LibraryError(
                'urllib3 or requests differs from what is expected: '
                f'{exc.__class__.__name__}: {exc}') from exc
        finally:
            _current.deadline = math.inf
        # As requests does when it reads a body; otherwise its content, text
        # and json() would read on from the connection.
        response._content = self._drop_undecodable(body)
        response._content_consumed = True
        # Otherwise requests guesses, which takes minutes for large bodies.
        response.encoding = 'utf-8'
        return response

    def _drop_undecodable(self, body: bytes) -> bytes:
        try:
            body.decode()
        except UnicodeDecodeError:
            # Not JSON either, and as text it would have wrong characters.
            return b''
        return body


class _BinaryAdapter(_Adapter):
    """An adapter for answers that are not text.

    :param size: maximum size of an answer in bytes
    """

    def __init__(self, size: int):
        self._size = size
        super().__init__()

    def max_bytes(self) -> int:
        """Return the maximum size of an answer."""
        return self._size

    def _drop_undecodable(self, body: bytes) -> bytes:
        return body


def _check_redirect(request: requests.PreparedRequest,
                    response: requests.Response) -> None:
    """Refuse a redirect that takes the token to another server."""
    location = response.headers.get('Location')
    if response.status_code not in _REDIRECT_STATUSES or location is None:
        return
    try:
        same = _origin(urllib.parse.urljoin(request.url, location)) == (
            _origin(request.url))
    except ValueError:
        same = False
    if not same:
        raise HTTPLimitError(f'{response.status_code} {response.reason}: '
                             'redirected to another server')


def _origin(url: str) -> tuple[str | None, str | None, int | None]:
    """Return scheme, host and port; raise ValueError for a bad URL."""
    # By the parser that is used for requests.
    parsed = urllib3.util.parse_url(url)
    return parsed.scheme, parsed.host, parsed.port or _PORTS.get(
        parsed.scheme or '')


def _body(response: requests.Response, most: int) -> bytes:
    """Read the body of an answer.

    :param most: its maximum size
    :raises HTTPLimitError: if it is too long or incomplete
    """
    length = response.headers.get('Content-Length', '')
    # Python refuses to convert thousands of digits, so the length of the
    # number comes first. An answer to HEAD has the length of a body that does
    # not come.
    if length.isdecimal() and (
            len(length) > 19 or int(length) > most):
        if response.request.method != 'HEAD':
            raise _too_long(most)
    decompress = _decompressor(response.headers.get('Content-Encoding', ''))
    chunks, received, size = [], 0, 0
    while chunk := response.raw.read(_CHUNK_BYTES, decode_content=False):
        received += len(chunk)
        if decompress is not None:
            # One byte more than allowed is enough to see that it is too long.
            chunk = decompress.decompress(chunk, most - size + 1)
        chunks.append(chunk)
        size += len(chunk)
        if size > most or received > most:
            raise _too_long(most)
    # urllib3 before 2.0 does not check it.
    if response.raw.length_remaining:
        raise HTTPLimitError(
            'the answer is incomplete: '
            f'{response.raw.length_remaining} bytes are missing')
    if decompress is not None and received and not decompress.eof:
        raise HTTPLimitError('the answer is incomplete: its end is missing')
    return b''.join(chunks)


def _decompressor(encoding: str) -> ty.Any:
    """Return a decompressor for a body; None if it is not compressed.

    :param encoding: header ``Content-Encoding``
    :raises HTTPLimitError: if it is not supported
    """
    encoding = encoding.strip().lower()
    if encoding in ('', 'identity'):
        return None
    if encoding in ('gzip', 'x-gzip', 'deflate'):
        # 32: with the header of gzip or zlib, whichever it is. Servers
        # disagree about what "deflate" means.
        return zlib.decompressobj(zlib.MAX_WBITS | 32)
    raise HTTPLimitError('the answer has a content encoding that was not '
                         'requested')


def _too_long(most: int) -> TooLongError:
    return TooLongError(f'the answer is longer than {most} bytes')
