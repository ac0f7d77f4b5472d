# SPDX-License-Identifier: Apache-2.0
"""Make pages in a process of their own.

The simulation of a snapshot sets options of Nova in the whole process and
takes seconds of a CPU, and memory.  The process that reads the cloud and
serves it must not be concerned, whatever is asked for.
"""

from collections.abc import Mapping, Sequence
import dataclasses
import http
import json
import logging
import multiprocessing
from multiprocessing import connection as mp_connection
import signal
import time
import typing as ty
import urllib.parse

from nfv_sched.base import quiet
from nfv_sched.base import strings
from nfv_sched.ops.cli import errors
from nfv_sched.ops.serve.metrics import server
from nfv_sched.ops.serve.pages import html

LOG = logging.getLogger(__name__)

#: Seconds after which a request is answered.
ANSWER_SECONDS = 25.0
#: Seconds after which the process that makes pages is killed.
LIMIT_SECONDS = 120

_AGAIN = 5  # seconds
_CLOUDS = 2
# Answer of the process that needs the snapshot first.
_NEEDS_SNAPSHOT = b'?'
_MOST_BYTES = 1 << 26  # of an answer
_MOST_FAILURES = 2  # of one page
_MOST_FAILED = 1000  # pages
_STOP_SECONDS = 5.0


class PageWorker:
    """A process that makes pages, started when the first one is asked for.

    It has read what anybody may have made, so its answers are no more than
    JSON and bytes.  One page is made at a time.  If that takes too long, the
    answer tells the browser to ask again, while the process goes on; if it
    takes much too long, the process ends itself, and this page of this
    snapshot is refused from then on.

    :param config_files: nova.conf files of this machine: the filters and
        weighers that a snapshot may name besides those of Nova and nfv-sched
    :param limit: seconds after which the process is killed
    """

    def __init__(self, config_files: Sequence[str] = (),
                 limit: float = LIMIT_SECONDS, name: str = ''):
        self._config_files = tuple(config_files)
        self._name = name
        self._limit = limit
        self._process: ty.Any = None
        self._connection: ty.Any = None
        self._running: PageRequest | None = None
        # How often the process has ended, by PageRequest.calculation.
        self._failures: dict[tuple[str, ...], int] = {}
        self._closed = False

    def respond(self, path: str, query: Mapping[str, str], content: bytes,
                version: str, age_seconds: float) -> server.Answer:
        """Return the page for a path of :func:`is_page`.

        May be called by several threads, but by one at a time.

        :param version: changes whenever the snapshot does
        """
        page_request = PageRequest(
            path, dict(query), content, version, age_seconds)
        end = time.monotonic() + ANSWER_SECONDS
        while not self._closed and (
                self._failures.get(page_request.calculation, 0)
                < _MOST_FAILURES):
            try:
                return self._answer(page_request, end)
            except (OSError, EOFError, ValueError):
                self._note_end(self._running or page_request)
        return html.message(
            http.HTTPStatus.SERVICE_UNAVAILABLE,
            'This page takes too long, or too much memory, to calculate.')

    def close(self) -> None:
        self._closed = True
        if (process := self._process) is not None:
            process.terminate()
            process.join(_STOP_SECONDS)
            if process.is_alive():
                process.kill()

    def _answer(self, page_request: 'PageRequest',
                end: float) -> server.Answer:
        """Return the answer of the process until a time; see :meth:`respond`.

        :raises OSError, EOFError: if the process has ended
        :raises ValueError: if its answer is malformed
        """
        self._start()
        while True:
            if (running := self._running) is None:
                self._connection.send_bytes(json.dumps([
                    page_request.path, page_request.query,
                    page_request.version, page_request.age_seconds]).encode())
                self._running = running = page_request
            if not self._connection.poll(max(end - time.monotonic(), 0)):
                return busy_page('The page is being calculated.')
            answer = self._connection.recv_bytes(_MOST_BYTES)
            if answer == _NEEDS_SNAPSHOT:
                self._connection.send_bytes(running.content)
                continue
            page = parse(answer)
            self._running = None
            if running.key == page_request.key:
                return page

    def _start(self) -> None:
        if self._process is not None and self._process.is_alive():
            return
        if self._running is not None:
            self._note_end(self._running)
        # Not a fork: this process has threads, and options of Nova.
        context = multiprocessing.get_context('spawn')
        self._connection, other = context.Pipe()
        self._process = context.Process(
            target=_serve,
            args=(other, self._config_files, self._limit, self._name),
            daemon=True, name='nfv-sched pages')
        self._process.start()
        other.close()

    def _note_end(self, running: 'PageRequest') -> None:
        self._running, process, self._process = None, self._process, None
        if self._closed:
            return
        code = None
        if process is not None:
            process.kill()  # if it has sent what is no answer
            process.join(_STOP_SECONDS)
            code = process.exitcode
        LOG.warning('The process that makes pages has ended with %s at %s',
                    code, strings.visible(running.path))
        # It may have ended by itself, before it got the request.
        calculation = running.calculation
        self._failures[calculation] = self._failures.get(calculation, 0) + (
            _MOST_FAILURES if code == -signal.SIGALRM else 1)
        if len(self._failures) > _MOST_FAILED:
            self._failures.pop(next(iter(self._failures)))


@dataclasses.dataclass(frozen=True, slots=True)
class PageRequest:
    """A request for a page of a snapshot; see :meth:`PageWorker.respond`."""

    path: str
    query: Mapping[str, str]
    content: bytes
    version: str
    age_seconds: float

    @property
    def calculation(self) -> tuple[str, ...]:
        """All that decides how long the page takes to calculate."""
        return (self.version, urllib.parse.unquote(self.path),
                self.query.get('show', ''))

    @property
    def key(self) -> tuple[str, ...]:
        """All that decides what is on the page."""
        return (self.version, self.path,
                *(text for pair in sorted(self.query.items())
                  for text in pair))


def parse(answer: bytes) -> server.Answer:
    head, _line_break, body = answer.partition(b'\n')
    try:
        status, content_type, headers = json.loads(head)
        lines = [content_type, *headers, *headers.values()]
        if all(line.isascii() and line.isprintable() for line in lines):
            return server.Answer(http.HTTPStatus(status), content_type, body,
                                 headers)
    except (TypeError, AttributeError, RecursionError) as exc:
        raise ValueError('not an answer') from exc
    raise ValueError('not an answer')


def is_page(path: str) -> bool:
    return path in html.TITLES or path.startswith('/servers/')


def busy_page(text: str) -> server.Answer:
    return html.message(http.HTTPStatus.SERVICE_UNAVAILABLE,
                        f'{text} Please ask again.', _AGAIN)


@quiet.warnings_ignored()
def _serve(connection: mp_connection.Connection,
           config_files: Sequence[str], limit: float, name: str) -> None:
    """Make pages until the other end of the connection is closed."""
    # Ctrl-C in a terminal is for the parent, which ends this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    # Filters warn of each host that is down, for each page.
    logging.basicConfig(level=logging.ERROR)
    # Before anything of Nova is imported.
    from nfv_sched.nova import concurrency
    concurrency.native_threads()
    from nfv_sched.ops.commands import source
    from nfv_sched.ops.serve.pages import views
    # By version, that which was used last is the last.
    sites: dict[str, views.SnapshotPages] = {}
    while True:
        try:
            path, query, version, age_seconds = json.loads(
                connection.recv_bytes())
            content = None
            if version not in sites:
                connection.send_bytes(_NEEDS_SNAPSHOT)
                content = connection.recv_bytes()
        except EOFError:
            return
        signal.setitimer(signal.ITIMER_REAL, limit)
        try:
            if content is not None:
                if len(sites) >= _CLOUDS:
                    sites.pop(next(iter(sites)))
                sites[version] = views.SnapshotPages(source.load(
                    'snapshot', config_files, content=content), name)
            sites[version] = site = sites.pop(version)
            page = site.respond(path, query, age_seconds)
        except Exception as exc:
            if isinstance(exc, errors.CommandError):
                LOG.error('No page of %s: %s', strings.visible(path),
                          strings.one_line(exc))
            else:
                LOG.exception('No page of %s', strings.visible(path))
            page = html.message(
                http.HTTPStatus.INTERNAL_SERVER_ERROR,
                'This page cannot be made; see the log of the service.')
        signal.setitimer(signal.ITIMER_REAL, 0)
        connection.send_bytes(json.dumps(
            [page.status, page.content_type, dict(page.headers)]).encode()
            + b'\n' + page.body)
