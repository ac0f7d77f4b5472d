# SPDX-License-Identifier: Apache-2.0
"""Answer HTTP requests, whatever slow, silent or too many clients do."""

from collections.abc import Callable
from collections.abc import Mapping
import dataclasses
import email.message
import http
import http.server
import io
import logging
import os
import resource
import socket
import socketserver
import ssl
import threading
import time
import typing as ty

from nfv_sched import strings

LOG = logging.getLogger(__name__)

#: Seconds for a request and its answer, TLS handshake included.
SECONDS = 10.0
#: Maximum number of connections. One more closes the oldest.
CONNECTIONS = 32
#: Number of file descriptors left for reading the cloud.
RESERVED_FILES = 64
#: Maximum size of the first line and the headers of a request, in bytes.
REQUEST_BYTES = 16384

_METHODS = ('GET', 'HEAD')
# Seconds between two checks for connections that have used up their time.
_POLL = 0.5


def connections_within_limit() -> int:
    """Return how many connections the limit of open files allows.

    It is at least 1 and at most ``CONNECTIONS``.
    """
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if limit == resource.RLIM_INFINITY:
        return CONNECTIONS
    free_files = limit - len(os.listdir('/proc/self/fd')) - RESERVED_FILES
    # Twice: connections that are being closed count, too. One less: a new
    # connection is accepted before the oldest is closed.
    return max(1, min(CONNECTIONS, (free_files - 1) // 2))


@dataclasses.dataclass(frozen=True, slots=True)
class HTTPRequest:
    """A request of a client; it has no body.

    :ivar query: what follows the question mark of the URL
    :ivar certificate: as by ``SSLSocket.getpeercert``; empty without a
        certificate that was verified
    :ivar extend: gives the connection this many seconds from now on; only for
        clients that have a right to the answer
    """

    path: str
    query: str
    headers: email.message.Message
    certificate: Mapping[str, ty.Any]
    extend: Callable[[float], None]


@dataclasses.dataclass(frozen=True, slots=True)
class Answer:
    """An answer to a request."""

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
    """A handler that answers one request of a connection."""

    server: 'Listener'
    server_version = 'nfv-sched'
    sys_version = ''

    def setup(self) -> None:
        """Read the request, up to its limit."""
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
        """Answer the request, if there is one."""
        if self._is_long:
            self.requestline, self.command = '', ''
            self.request_version = 'HTTP/1.0'
            self.send_error(431)
        else:
            self.handle_one_request()

    def parse_request(self) -> bool:
        """Return whether there is a request to be answered."""
        if not super().parse_request():
            return False
        if self.command not in _METHODS:
            self._send(problem(405, Allow=', '.join(_METHODS)))
            return False
        return True

    def do_GET(self) -> None:  # noqa: N802
        """Answer a request."""
        path, _mark, query = self.path.partition('?')
        certificate = self.request.getpeercert() if isinstance(
            self.request, ssl.SSLSocket) else None
        try:
            answer = self.server.respond(HTTPRequest(
                path, query, self.headers, certificate or {},
                lambda seconds: self.server.extend(self.request, seconds)))
        except Exception:
            LOG.exception('A request for %s was not answered',
                          strings.visible(path))
            answer = problem(500)
        self._send(answer)

    do_HEAD = do_GET  # noqa: N815

    def _send(self, answer: Answer) -> None:
        self.send_response(answer.status)
        if answer.status != http.HTTPStatus.NOT_MODIFIED:
            self.send_header('Content-Type', answer.content_type)
            self.send_header('Content-Length', str(len(answer.body)))
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != 'HEAD':
            self.wfile.write(answer.body)

    def log_message(self, *args: ty.Any) -> None:
        """Write nothing, as clients could fill the log."""


class Listener(http.server.ThreadingHTTPServer):
    """A server with threads of its own.

    :param address: IP address or name, and port
    :param respond: answers a request, in one of several threads
    :param tls: settings for HTTPS; None for HTTP
    :param connections: maximum number of connections
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
        # Connections, the oldest first, and when the time of each is up.
        self._deadlines: dict[socket.socket, float] = {}
        self._extended: set[socket.socket] = set()
        self._slots = threading.BoundedSemaphore(2 * connections)
        self.address_family = socket.getaddrinfo(
            *address, type=socket.SOCK_STREAM)[0][0]
        super().__init__(address, _Handler)
        self._thread = threading.Thread(
            target=self.serve_forever, args=(_POLL,),
            name='nfv-sched-listener', daemon=True)

    @property
    def open_connections(self) -> int:
        """The number of open connections."""
        return len(self._deadlines)

    def server_bind(self) -> None:
        """Bind without looking up the name of the host."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = self.server_address[:2]

    def start(self) -> None:
        """Start to answer requests."""
        self._thread.start()

    def stop(self) -> None:
        """Stop to answer requests, and close all connections."""
        self.shutdown()
        self.server_close()
        self._thread.join()
        self._cut(0)

    def get_request(self) -> tuple[socket.socket, ty.Any]:
        """Accept a connection; its thread does the TLS handshake."""
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
                request = self._tls.wrap_socket(
                    request, server_side=True, do_handshake_on_connect=False)
            except (OSError, ValueError) as exc:
                request.close()
                raise OSError(str(exc)) from exc
        return request, address

    def process_request(self, request: ty.Any, client_address: ty.Any) -> None:
        """Answer in a thread, closing the oldest connection if necessary."""
        self._cut(self._connections - 1)
        # A thread whose connection was closed ends at once, so this wait for a
        # free thread is short.
        if not self._slots.acquire(timeout=1):
            self.shutdown_request(request)
            return
        with self._lock:
            self._deadlines[request] = time.monotonic() + SECONDS
        try:
            super().process_request(request, client_address)
        except BaseException:  # no thread can be started
            self._forget(request)
            raise

    def process_request_thread(self, request: ty.Any,
                               client_address: ty.Any) -> None:
        """Answer one request."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._forget(request)

    def extend(self, request: socket.socket, seconds: float) -> None:
        """Give a connection this many seconds from now on.

        It is then closed for others only if these have all connections.
        """
        request.settimeout(seconds)
        with self._lock:
            if request in self._deadlines:
                self._deadlines[request] = time.monotonic() + seconds
                self._extended.add(request)

    def _forget(self, request: ty.Any) -> None:
        with self._lock:
            self._deadlines.pop(request, None)
            self._extended.discard(request)
        self._slots.release()

    def service_actions(self) -> None:
        """Close connections whose time is up; called between requests."""
        self._cut(self._connections)

    def _cut(self, most: int) -> None:
        """Close late connections, and the oldest ones beyond ``most``."""
        now = time.monotonic()
        with self._lock:
            surplus = len(self._deadlines) - most
            for request in sorted(
                    self._deadlines,
                    key=lambda each: (self._deadlines[each] > now,
                                      each in self._extended)):
                if surplus <= 0 and now < self._deadlines[request]:
                    break
                surplus -= 1
                del self._deadlines[request]
                self._extended.discard(request)
                try:
                    # SSLSocket.shutdown must not be called from other threads.
                    socket.socket.shutdown(request, socket.SHUT_RDWR)
                except OSError:
                    pass  # the client has closed it

    def handle_error(self, request: ty.Any, client_address: ty.Any) -> None:
        """Write nothing, as clients that disconnect or fail TLS are normal."""
