# SPDX-License-Identifier: Apache-2.0
"""Answer HTTP requests, whatever slow, silent or too many clients do."""

import collections
from collections.abc import Callable, Iterator, Mapping
import contextlib
import dataclasses
import email.message
import http
import http.server
import io
import ipaddress
import logging
import os
import resource
import socket
import socketserver
import ssl
import threading
import time
import typing as ty

from nfv_sched.base import strings

LOG = logging.getLogger(__name__)

#: Seconds for a request and its answer, TLS handshake included.
SECONDS = 10.0
#: Maximum number of connections. One more closes another one.
CONNECTIONS = 32
#: Number of file descriptors left for reading the cloud.
RESERVED_FILES = 64
#: Maximum size of the first line and the headers of a request, in bytes.
REQUEST_BYTES = 16384
#: Headers of all answers, unless an answer has others: no page of another
#: site can use it, and it is no page itself.
HEADERS: Mapping[str, str] = {
    'Content-Security-Policy': "default-src 'none'; frame-ancestors 'none'",
    'X-Content-Type-Options': 'nosniff',
    'X-Frame-Options': 'DENY',
    'Referrer-Policy': 'no-referrer',
    'Cross-Origin-Resource-Policy': 'same-origin',
    'Cache-Control': 'private, no-store'}

_METHODS = ('GET', 'HEAD')
# Seconds between two checks for connections that have used up their time.
_POLL = 0.5
# Who has an IPv6 address usually has all with these first bits.
_IPV6_BITS = 64


def connections_within_limit() -> int:
    """Return how many connections the limit of open files allows."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if limit == resource.RLIM_INFINITY:
        return CONNECTIONS
    free_files = limit - len(os.listdir('/proc/self/fd')) - RESERVED_FILES
    # Twice: connections that are being closed count, too. One less: a new
    # connection is accepted before the oldest is closed.
    return max(1, min(CONNECTIONS, (free_files - 1) // 2))


class Connection:
    """A connection, which is closed when its time is up, or for others.

    :ivar user: name of a user with a right to the answer; None until it is
        known
    :ivar woken: set when its turn has come, or it has been closed
    """

    def __init__(self, opened: socket.socket, address: str):
        self._socket = opened
        self.network = _network(address)
        self.user: bytes | None = None
        self.closed = threading.Event()
        self.woken = threading.Event()
        self.ends = time.monotonic() + SECONDS

    def extend(self, user: bytes, seconds: float) -> None:
        self._socket.settimeout(seconds)
        self.ends = time.monotonic() + seconds
        self.user = user

    def close(self) -> None:
        with contextlib.suppress(OSError):  # the client has closed it
            # SSLSocket.shutdown must not be called from other threads.
            socket.socket.shutdown(self._socket, socket.SHUT_RDWR)
        self.closed.set()
        self.woken.set()


def _network(address: str) -> str:
    """Return the addresses that one client may have, by one of them."""
    numeric = ipaddress.ip_address(address.partition('%')[0])
    if numeric.version == 4:
        return address
    if numeric.ipv4_mapped is not None:
        return str(numeric.ipv4_mapped)
    return str(ipaddress.ip_network((int(numeric), _IPV6_BITS), strict=False))


class Turns:
    """Turns of clients at something that is done for one at a time.

    Each name has the same share, whoever uses it, and of that each network of
    clients.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # Name -> network -> connections; the first of all has its turn.
        self._waiting: dict[bytes | None, dict[str, list[Connection]]] = {}

    @property
    def waiting(self) -> int:
        with self._lock:
            return sum(len(connections)
                       for networks in self._waiting.values()
                       for connections in networks.values())

    @contextlib.contextmanager
    def take(self, name: bytes | None, connection: Connection,
             seconds: float) -> Iterator[bool]:
        """Wait for a turn, which lasts for the context.

        :returns: False if the connection was closed, or the seconds are over
        """
        connection.woken.clear()
        with self._lock:
            networks = self._waiting.setdefault(name, {})
            networks.setdefault(connection.network, []).append(connection)
            if self._first() is connection or connection.closed.is_set():
                connection.woken.set()
        connection.woken.wait(seconds)
        with self._lock:
            is_first = self._first() is connection
        try:
            yield is_first and not connection.closed.is_set()
        finally:
            with self._lock:
                networks[connection.network].remove(connection)
                levels = (networks, connection.network), (self._waiting, name)
                for level, key in levels:
                    if is_first or not level[key]:
                        waiting = level.pop(key)
                        if waiting:  # the last of the next round
                            level[key] = waiting
                if self._waiting:
                    self._first().woken.set()

    def _first(self) -> Connection:
        networks = next(iter(self._waiting.values()))
        return next(iter(networks.values()))[0]


@dataclasses.dataclass(frozen=True, slots=True)
class HTTPRequest:
    """A request of a client; it has no body."""

    path: str
    query: str  #: what follows the question mark of the URL
    headers: email.message.Message
    #: as by ``SSLSocket.getpeercert``; empty without a certificate that was
    #: verified
    certificate: Mapping[str, ty.Any]
    connection: Connection


@dataclasses.dataclass(frozen=True, slots=True)
class Answer:
    status: int
    content_type: str = 'text/plain; charset=utf-8'
    body: bytes = b''
    headers: Mapping[str, str] = dataclasses.field(default_factory=dict)


def problem(status: int, text: str = '', **headers: str) -> Answer:
    """Return an answer with a text, or else the name of its status.

    :param headers: with ``_`` for ``-``
    """
    return Answer(
        status, body=f'{text or http.HTTPStatus(status).phrase}\n'.encode(),
        headers={name.replace('_', '-'): value
                 for name, value in headers.items()})


class _Handler(http.server.BaseHTTPRequestHandler):
    server: 'Listener'
    # The server has it in place of the address.
    client_address: Connection  # type: ignore[assignment]
    server_version = 'nfv-sched'
    sys_version = ''
    default_request_version = 'HTTP/1.0'

    def setup(self) -> None:
        super().setup()
        if isinstance(self.request, ssl.SSLSocket):
            self.request.do_handshake()
        data = b''
        while not (b'\r\n\r\n' in data or b'\n\n' in data):
            chunk = self.request.recv(4096)
            data += chunk
            if not chunk or len(data) > REQUEST_BYTES:
                break
        self.rfile = io.BytesIO(data[:REQUEST_BYTES + 1])  # type: ignore
        self._is_long = len(data) > REQUEST_BYTES

    def handle(self) -> None:
        if self._is_long:
            self.requestline, self.command = '', ''
            self.send_error(431)
        else:
            self.handle_one_request()

    def parse_request(self) -> bool:
        if not super().parse_request():
            return False
        if len(self.requestline.split()) < 3 or (
                self.request_version == 'HTTP/0.9'):
            self.send_error(505)
            return False
        if self.command not in _METHODS:
            self._send(problem(405, Allow=', '.join(_METHODS)))
            return False
        return True

    def do_GET(self) -> None:  # noqa: N802
        path, _mark, query = self.path.partition('?')
        certificate = self.request.getpeercert() if isinstance(
            self.request, ssl.SSLSocket) else None
        try:
            answer = self.server.respond(HTTPRequest(
                path, query, self.headers, certificate or {},
                self.client_address))
        except Exception:
            LOG.exception('A request for %s was not answered',
                          strings.visible(path))
            answer = problem(500)
        self._send(answer)

    do_HEAD = do_GET  # noqa: N815

    def send_error(self, code: int, message: str | None = None,
                   explain: str | None = None) -> None:
        """Refuse a malformed request; the library would do so in HTML."""
        # It would write no headers for HTTP/0.9.
        self.request_version = self.default_request_version
        self._send(problem(code))

    def _send(self, answer: Answer) -> None:
        self.send_response(answer.status)
        if answer.status != http.HTTPStatus.NOT_MODIFIED:
            self.send_header('Content-Type', answer.content_type)
            self.send_header('Content-Length', str(len(answer.body)))
        for name, value in {**HEADERS, **answer.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != 'HEAD':
            self.wfile.write(answer.body)

    def log_message(self, *args: ty.Any) -> None:
        """Write nothing, as clients could fill the log."""


class Listener(http.server.ThreadingHTTPServer):
    """A server with threads of its own.

    :param respond: called in one of several threads
    :param tls: settings for HTTPS; None for HTTP
    :raises OSError: if it cannot listen there
    """

    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, address: tuple[str, int],
                 respond: Callable[[HTTPRequest], Answer],
                 tls: ssl.SSLContext | None = None,
                 connections: int = CONNECTIONS):
        self.respond = respond
        self._connections = connections
        self._tls = tls
        self._lock = threading.Lock()
        self._open: list[Connection] = []  # the oldest first
        self._slots = threading.BoundedSemaphore(2 * connections)
        self.address_family = socket.getaddrinfo(
            *address, type=socket.SOCK_STREAM)[0][0]
        super().__init__(address, _Handler)
        self._thread = threading.Thread(
            target=self.serve_forever, args=(_POLL,),
            name='nfv-sched-listener', daemon=True)

    def server_bind(self) -> None:
        """Bind without looking up the name of the host."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = self.server_address[:2]

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self.shutdown()
        self.server_close()
        self._thread.join()
        self._cut(0)

    def get_request(self) -> tuple[socket.socket, Connection]:
        """Accept a connection, which is returned in place of its address."""
        try:
            request, address = super().get_request()
        except OSError:
            # If there are no file descriptors, the listening socket stays
            # readable: do not spin.
            time.sleep(_POLL)
            raise
        request.settimeout(SECONDS)
        if self._tls is not None:
            try:
                # The thread of the connection does the handshake.
                request = self._tls.wrap_socket(
                    request, server_side=True, do_handshake_on_connect=False)
            except (OSError, ValueError) as exc:
                request.close()
                raise OSError(str(exc)) from exc
        return request, Connection(request, address[0])

    def process_request(self, request: ty.Any, client_address: ty.Any) -> None:
        """Answer in a thread, closing another connection if necessary."""
        self._cut(self._connections - 1)
        # A thread whose connection was closed ends at once, so this wait for a
        # free thread is short.
        if not self._slots.acquire(timeout=1):
            self.shutdown_request(request)
            return
        with self._lock:
            self._open.append(client_address)
        try:
            super().process_request(request, client_address)
        except BaseException:  # no thread can be started
            self._forget(client_address)
            raise

    def process_request_thread(self, request: ty.Any,
                               client_address: ty.Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._forget(client_address)

    def _forget(self, connection: Connection) -> None:
        connection.closed.set()
        with self._lock:
            if connection in self._open:
                self._open.remove(connection)
        self._slots.release()

    def service_actions(self) -> None:
        """Close connections whose time is up; called between requests."""
        self._cut(self._connections)

    def _cut(self, most: int) -> None:
        """Close late connections, and others beyond ``most``."""
        now = time.monotonic()
        with self._lock:
            late = [each for each in self._open if each.ends <= now]
            while late or len(self._open) > most:
                connection = late.pop() if late else self._dispensable()
                self._open.remove(connection)
                connection.close()

    def _dispensable(self) -> Connection:
        """Return the connection to close for a new one.

        It is the oldest of the network that has most of those without a right.
        If these are few, they are left the time to get one, and it is the
        oldest of the user who has most.
        """
        users = [each for each in self._open if each.user is not None]
        strangers = [each for each in self._open if each.user is None]
        chosen = strangers if not users or (
            len(strangers) > self._connections // 4) else users
        counts = collections.Counter(
            each.user or each.network for each in chosen)
        return max(chosen, key=lambda each: counts[each.user or each.network])

    def handle_error(self, request: ty.Any, client_address: ty.Any) -> None:
        """Write nothing, as clients that disconnect or fail TLS are normal."""
