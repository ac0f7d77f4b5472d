# SPDX-License-Identifier: Apache-2.0
"""Keep the latest snapshot, and answer requests for it."""

from collections.abc import Callable
import contextlib
import dataclasses
import email.utils
import hashlib
import http
import io
import logging
import secrets
import time
import urllib.parse

from nfv_sched.ops.cloud import anonymize
from nfv_sched.ops.cloud import file
from nfv_sched.ops.cloud import remote
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.serve.metrics import auth
from nfv_sched.ops.serve.metrics import rendering
from nfv_sched.ops.serve.metrics import server
from nfv_sched.ops.serve.pages import html
from nfv_sched.ops.serve.pages import worker

LOG = logging.getLogger(__name__)

#: Seconds that a client with a right to the answer has for it.
SECONDS = 120.0
#: Seconds after which a client should ask again for the first snapshot.
RETRY_SECONDS = 10
#: Seconds for which a client waits until others have got their pages.
TURN_SECONDS = 10.0

_NOT_READ = 'The cloud has not been read yet.'

METRICS = '/metrics'
HEALTH = '/healthz'


@dataclasses.dataclass(frozen=True, slots=True)
class PublishedSnapshot:
    """A snapshot as clients of a role get it."""

    content: bytes  #: as in a file of ``snapshot save``
    etag: str
    taken: float  #: seconds since the epoch when the cloud was read

    @property
    def age(self) -> float:
        return max(0.0, time.time() - self.taken)


class LocalUsers:
    """All users of this machine, who need no password."""

    @staticmethod
    def has_role(role: auth.Role) -> bool:
        return role is auth.Role.OPERATOR

    @staticmethod
    def user(request: server.HTTPRequest) -> auth.User | server.Answer:
        headers = request.headers
        # Neither proxies nor pages of other sites, whatever their names are.
        with contextlib.suppress(ValueError):
            host = urllib.parse.urlsplit(f'//{headers.get("Host", "")}')
            if remote.is_loopback(host.hostname or '') and not any(
                    name in headers for name in (
                        'Forwarded', 'Via', 'X-Forwarded-For')) and (
                    headers.get('Sec-Fetch-Site') != 'cross-site'
                    or 'Sec-Fetch-User' in headers):
                return auth.User(b'', auth.Role.OPERATOR)
        return server.problem(403, 'Only users of this machine are answered.')


class Publication:
    """The latest snapshot, with its names and anonymized.

    :param users: who may read it; without readers nothing is anonymized
    :param render: takes an ``Accept`` header; returns content type and text
    """

    def __init__(self, users: auth.Users | LocalUsers,
                 render: Callable[[str], tuple[str, bytes]],
                 pages: worker.PageWorker):
        self._users = users
        self._render = render
        self._pages = pages
        # One key for as long as the process lives, so that an invented name
        # stays the same from snapshot to snapshot.
        self._key = secrets.token_bytes(32)
        self._published: dict[auth.Role, PublishedSnapshot] = {}
        self._is_healthy = False
        self.turns = server.Turns()

    def publish(self, cloud: snapshot.Cloud) -> None:
        try:
            self._published[auth.Role.OPERATOR] = _packed(cloud)
            if self._users.has_role(auth.Role.READER):
                self._published[auth.Role.READER] = _packed(
                    anonymize.replace(cloud, self._key).cloud)
        except Exception:
            self._is_healthy = False
            raise
        self._is_healthy = True

    def respond(self, request: server.HTTPRequest) -> server.Answer:
        if request.path == HEALTH:
            if self._is_healthy:
                return server.Answer(200, body=b'OK\n')
            if self._published:
                return _no_snapshot('Readers do not have the last snapshot.')
            return _no_snapshot()
        user = self._users.user(request)
        if isinstance(user, server.Answer):
            return user
        # Only now: a client without a right to the answer must not occupy a
        # connection for so long.
        request.connection.extend(user.name, SECONDS)
        role = user.role
        if request.path == METRICS:
            # They have the names of hosts and flavors.
            if role is auth.Role.READER:
                return server.problem(403)
            return server.Answer(200, *self._render(
                request.headers.get('Accept', '')))
        if role is auth.Role.METRICS:
            return server.problem(403)
        published = self._published.get(role)
        if request.path == remote.PATH:
            return _no_snapshot() if published is None else _answer(
                published, request.headers.get('If-None-Match', ''))
        if request.path == html.STYLESHEET:
            return html.stylesheet()
        if not worker.is_page(request.path):
            return html.message(http.HTTPStatus.NOT_FOUND,
                                'There is no such page.')
        if published is None:
            return worker.busy_page(_NOT_READ)
        query: dict[str, str] = {}
        for key, value in urllib.parse.parse_qsl(request.query):
            query.setdefault(key, value)
        with self.turns.take(
                user.name, request.connection, TURN_SECONDS) as has_turn:
            return self._pages.respond(
                request.path, query, published.content, published.etag,
                published.age) if has_turn else worker.busy_page(
                    'Other pages are being calculated.')


def _packed(cloud: snapshot.Cloud) -> PublishedSnapshot:
    with io.BytesIO() as raw:
        file.dump(cloud, raw)
        content = raw.getvalue()
    return PublishedSnapshot(
        content, f'"{hashlib.sha256(content).hexdigest()}"',
        rendering.seconds(cloud.taken))


def _no_snapshot(text: str = _NOT_READ) -> server.Answer:
    return server.problem(503, text, Retry_After=str(RETRY_SECONDS))


def _answer(published: PublishedSnapshot, etags: str) -> server.Answer:
    headers = {
        'ETag': published.etag,
        'Last-Modified': email.utils.formatdate(published.taken, usegmt=True),
        'Age': str(int(published.age)),
        # Clients may keep it, and have to ask whether it has changed.
        'Cache-Control': 'private, no-cache',
        'Vary': 'Authorization',
    }
    # If-None-Match compares weakly (RFC 9110), and a proxy that compresses
    # makes tags weak.
    tags = {tag.strip().removeprefix('W/') for tag in etags.split(',')}
    if tags & {published.etag, '*'}:
        return server.Answer(http.HTTPStatus.NOT_MODIFIED, headers=headers)
    return server.Answer(200, 'application/gzip', published.content, {
        **headers,
        'Content-Disposition': 'attachment; filename="cloud.json.gz"'})
