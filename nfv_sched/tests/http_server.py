# SPDX-License-Identifier: Apache-2.0
"""A service of the tests that is reached over HTTP, on a port of its own."""

import contextlib
import http.server
import socket
import sys
import threading


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers the requests of one connection, silently."""

    protocol_version = 'HTTP/1.1'
    timeout = 60
    disable_nagle_algorithm = True

    def setup(self):
        super().setup()
        self.server.connections.add(self.connection)

    def finish(self):
        self.server.connections.discard(self.connection)
        super().finish()

    def log_message(self, *args):
        """Write nothing to stderr."""


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, address, handler_class, expected):
        self.connections = set()
        self._expected = expected
        super().__init__(address, handler_class)

    def handle_error(self, request, client_address):
        # Connections are cut off when either side goes; that is no error.
        if not isinstance(sys.exc_info()[1], self._expected):
            super().handle_error(request, client_address)


class LocalServer:
    """A server that can come and go at one address."""

    #: Exceptions of a handler that are not worth a traceback.
    expected = ConnectionError

    def __init__(self, handler_class):
        self._handler_class = handler_class
        self._server = self._listen(('127.0.0.1', 0))
        self.address = self._server.server_address
        self.url = 'http://%s:%d' % self.address
        self._thread = None

    def _listen(self, address):
        return _Server(address, self._handler_class, self.expected)

    def start(self):
        """Listen, also again after :meth:`stop`, at the same address."""
        if self._server is None:
            self._server = self._listen(self.address)
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    def start_for(self, test):
        """Listen until a test ends; returns the server itself."""
        self.start()
        test.addCleanup(self.stop)
        return self

    def stop(self):
        """Cut off all connections, and refuse new ones from now on."""
        if self._server is None:
            return
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
        for connection in list(self._server.connections):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        self._server = None
