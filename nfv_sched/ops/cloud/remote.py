# SPDX-License-Identifier: Apache-2.0
"""Read a snapshot that ``nfv-sched snapshot serve`` has.

The user and the password are in ``NFV_SCHED_TOKEN``, or in ``~/.netrc``.
"""

from collections.abc import Callable
import email.utils
import ipaddress
import os
import time
import typing as ty
import urllib.parse

import requests

from nfv_sched.base import connection_errors
from nfv_sched.base import files
from nfv_sched.base import http_limits
from nfv_sched.ops.cloud import file
from nfv_sched.ops.cloud import snapshot

#: Environment variables: ``USER:PASSWORD``, authorities of the server's
#: certificate, a client certificate, and its key.
TOKEN = 'NFV_SCHED_TOKEN'
CA = 'NFV_SCHED_CACERT'
CERT = 'NFV_SCHED_CERT'
KEY = 'NFV_SCHED_KEY'

#: Path of the snapshot.
PATH = '/snapshot'
#: Seconds for the whole answer.
SECONDS = 300.0
#: Seconds for which a newer snapshot is waited for: three times the default
#: interval of the server.
NEWER_SECONDS = 900.0
#: Seconds between two questions whether there is one.
NEWER_INTERVAL = 5.0

_REASONS = {
    401: f'no user with this password; {TOKEN}=USER:PASSWORD, or ~/.netrc',
    403: 'the user or certificate may not read the snapshot',
    404: 'no snapshot at this path',
    503: 'no snapshot yet, or too many requests; try again',
}


def load(url: str) -> snapshot.Cloud:
    """Read a snapshot over HTTPS, by its URL or that of the server."""
    url, where = _check_url(url)
    content = _answer(url, where).content
    try:
        return file.load(where, content)
    except file.NotASnapshotError as exc:
        # It might be the page of a login.
        raise file.FileError(f'{where}: not a snapshot') from exc


def load_newer(url: str, say: Callable[[str], None]) -> snapshot.Cloud:
    """Read a snapshot that the server begins to read from now on.

    :param say: called with a line before it is waited for
    """
    url, where = _check_url(url)
    began, age = _began_and_age(url, where)
    # By the clock of the server: that of this machine may differ.
    now = began + age
    end = time.monotonic() + NEWER_SECONDS
    say(f'The snapshot of {where} is {age:.0f} s old: waiting for one of the '
        f'cloud as it is now, for {NEWER_SECONDS:.0f} s at most.')
    failure = ''
    # Both are in whole seconds.
    while began <= now:
        if time.monotonic() >= end:
            raise file.FileError(
                f'{where}: no snapshot of the cloud as it is now came in '
                f'{NEWER_SECONDS:.0f} s' + (failure and f': {failure}'))
        time.sleep(NEWER_INTERVAL)
        try:
            began, _age = _began_and_age(url, where)
            failure = ''
        except file.FileError as exc:
            # The server may have been restarted.
            failure = str(exc).removeprefix(f'{where}: ')
    cloud = load(url)
    if cloud.anonymous:
        raise file.FileError(
            f'{where}: the snapshot has invented names; a user with the role '
            'operator is needed')
    return cloud


def _began_and_age(url: str, where: str) -> tuple[float, float]:
    """Return start, since the epoch by the server's clock, and age in s."""
    headers = _answer(url, where, 'HEAD').headers
    try:
        age = int(headers['Age'])
        if age < 0:
            raise ValueError
        return email.utils.parsedate_to_datetime(
            headers['Last-Modified']).timestamp(), float(age)
    except (KeyError, ValueError, OverflowError) as exc:
        raise file.FileError(
            f'{where}: does not say when the cloud was read, as "snapshot '
            'serve" does') from exc


def _check_url(url: str) -> tuple[str, str]:
    """Return the URLs of snapshot and server; may raise file.FileError."""
    with files.naming(url, file.FileError):
        parts = urllib.parse.urlsplit(url)
        host = parts.port != 0 and parts.hostname
    if not host:
        raise file.FileError(f'{url}: no host in this URL')
    if parts.username is not None:
        # It would be in the list of processes.
        raise file.FileError(
            f'{connection_errors.origin_of(url)}: a URL must not have a '
            f'password; use {TOKEN}')
    if parts.scheme.lower() == 'http' and not is_loopback(host):
        raise file.FileError(
            f'{url}: http is for this machine only; use https')
    if not parts.path.strip('/'):
        url = parts._replace(path=PATH).geturl()
    return url, connection_errors.origin_of(url)


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == 'localhost'


def _answer(url: str, where: str, method: str = 'GET') -> requests.Response:
    """Return a usable answer to a request; raise FileError without one."""
    try:
        with http_limits.bounded(
                requests.Session(), files.max_size()) as session:
            if token := os.environ.get(TOKEN):
                user, _colon, password = token.strip().partition(':')
                session.auth = (user.encode(), password.encode())
            if os.environ.get(CERT):
                session.cert = (os.environ[CERT],
                                os.environ.get(KEY) or os.environ[CERT])
            # Without TLS, a proxy of the environment would read the password,
            # and its loopback is another one.
            proxies: ty.Any = ({'http': None, 'all': None}
                               if url.lower().startswith('http:') else None)
            answer = session.request(
                method, url, timeout=SECONDS, allow_redirects=False,
                proxies=proxies,
                # True lets REQUESTS_CA_BUNDLE decide.
                verify=os.environ.get(CA) or True)
    except http_limits.TooLongError as exc:
        raise file.FileError(
            f'{where}: {files.beyond(f"{files.max_size() >> 20} MiB")}'
        ) from exc
    except http_limits.HTTPLimitError as exc:
        raise file.FileError(f'{where}: {exc}') from exc
    except (requests.exceptions.RequestException, OSError, ValueError) as exc:
        raise file.FileError(_error_text(where, exc)) from exc
    if answer.status_code == 200:
        return answer
    reason = _REASONS.get(answer.status_code, 'unexpected answer')
    if answer.is_redirect:
        raise file.FileError(
            f'{where}: redirected (HTTP {answer.status_code}), which is not '
            'followed')
    raise file.FileError(f'{where}: {reason} (HTTP {answer.status_code})')


def _error_text(where: str, error: Exception) -> str:
    not_accepted = connection_errors.certificate_error(error)
    if not_accepted is not None:
        return (f'{where}: the certificate is not trusted ({not_accepted}); '
                f'{CA} names the file of its authority')
    if (why := connection_errors.reason(error)) is None:
        return f'{where}: {error}'
    return f'{where} does not answer ({why})'
