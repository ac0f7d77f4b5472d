# SPDX-License-Identifier: Apache-2.0
"""A real Placement on a port of its own, without Keystone.

In functional tests Nova's fixture has Placement in the process and lets Nova
call it there.  What is no part of Nova finds the same application, on the same
database, here over HTTP.  A test can count the requests, let others come in
between, and take the server away.
"""

import io
import json
import sys
import threading
import urllib.parse

from placement import deploy

from nfv_sched.tests import http_server


class PlacementAPI(http_server.LocalServer):
    """A server.

    :param conf: configuration of Placement with ``auth_strategy = noauth2``
    :ivar requests: (method, path) of what was asked, in order
    :ivar before: called with method and path before each request
    :ivar fault: called with method and path; returns a status to answer with
        instead, or a body, or both, or None
    """

    expected = OSError

    def __init__(self, conf):
        super().__init__(_handler_class(self))
        self._app = deploy.loadapp(conf)
        # SQLite has one writer.
        self._lock = threading.Lock()
        self.requests = []
        self.before = lambda method, path: None
        self.fault = lambda method, path: None

    def writes(self):
        return [request for request in self.requests if request[0] != 'GET']

    def call(self, method, path, body=None):
        """Ask the application past the server: status and data."""
        status, _headers, data = self.answer(
            method, path, {'Content-Type': 'application/json',
                           'Accept': 'application/json',
                           'OpenStack-API-Version': 'placement 1.36'},
            b'' if body is None else json.dumps(body).encode())
        return int(status[:3]), data

    def answer(self, method, target, headers, body):
        """Status line, headers and body of the answer to a request."""
        path, _, query = target.partition('?')
        self.requests.append((method, target))
        self.before(method, target)
        fault = self.fault(method, target)
        if isinstance(fault, int):
            return f'{fault} Fault', [], b''
        if fault is not None:
            status, data = fault if isinstance(fault, tuple) else (200, fault)
            return f'{status} Fault', [
                ('Content-Type', 'application/json')], data
        environ = {
            'REQUEST_METHOD': method, 'SCRIPT_NAME': '',
            'PATH_INFO': urllib.parse.unquote(path), 'QUERY_STRING': query,
            'SERVER_NAME': self.address[0], 'SERVER_PORT':
            str(self.address[1]), 'SERVER_PROTOCOL': 'HTTP/1.1',
            'REMOTE_ADDR': '127.0.0.1',
            'CONTENT_TYPE': headers.get('Content-Type', ''),
            'CONTENT_LENGTH': str(len(body)),
            'HTTP_X_AUTH_TOKEN': 'admin',
            'HTTP_ACCEPT': headers.get('Accept', ''),
            'HTTP_OPENSTACK_API_VERSION':
            headers.get('OpenStack-API-Version', ''),
            'wsgi.version': (1, 0), 'wsgi.url_scheme': 'http',
            'wsgi.input': io.BytesIO(body), 'wsgi.errors': sys.stderr,
            'wsgi.multithread': True, 'wsgi.multiprocess': False,
            'wsgi.run_once': False}
        begun = []
        with self._lock:
            result = self._app(environ, lambda *args: begun.append(args))
            try:
                data = b''.join(result)
            finally:
                if hasattr(result, 'close'):
                    result.close()
        return begun[-1][0], begun[-1][1], data


def _handler_class(api):

    class Handler(http_server.Handler):

        def _any(self):
            body = self.rfile.read(
                int(self.headers.get('Content-Length') or 0))
            status, headers, data = api.answer(
                self.command, self.path, self.headers, body)
            code, _, reason = status.partition(' ')
            self.send_response(int(code), reason)
            for name, value in headers:
                if name.lower() != 'content-length':
                    self.send_header(name, value)
            if int(code) != 204:
                self.send_header('Content-Length', str(len(data)))
            self.end_headers()
            if int(code) != 204:
                self.wfile.write(data)

        do_GET = do_PUT = do_POST = do_DELETE = _any  # noqa: N815

    return Handler
