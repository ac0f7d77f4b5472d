# SPDX-License-Identifier: Apache-2.0
"""Find out why a connection failed, from the exceptions of the libraries.

Their texts, and what clients log, have the URL, with the account that may be
in it: :func:`mask_session` masks both.
"""

from collections.abc import Iterator
import logging
import os
import socket
import ssl
import urllib.parse

from keystoneauth1 import exceptions as ks_exceptions
from keystoneauth1 import session as ks_session
import requests

from nfv_sched.base import strings

_SOME_CAUSES = 20
# Loggers of clients begin with these names. Some are made for a request.
_CLIENTS = ('keystoneauth', 'openstack', 'urllib3')
_LATE_LOGGERS = tuple(f'keystoneauth.session{part}' for part in (
    '', '.request', '.response', '.body', '.request-id'))


def causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and those that led to it, the last one first."""
    current: BaseException | None = error
    for _ in range(_SOME_CAUSES):
        if current is None:
            return
        yield current
        # The last two are of oslo.db and SQLAlchemy.
        current = (current.__cause__ or current.__context__
                   or getattr(current, 'inner_exception', None)
                   or getattr(current, 'orig', None))


def certificate_error(error: BaseException) -> str | None:
    """Return why a server's certificate was refused; None if it was not."""
    of_tls = False
    for each in causes(error):
        of_tls = of_tls or isinstance(each, requests.exceptions.SSLError)
        if isinstance(each, ssl.SSLCertVerificationError):
            return each.verify_message
        # NOTE: urllib3 before 2 (up to OpenStack 2025.2) compares names
        # itself, and raises a ValueError of its own.
        if of_tls and isinstance(each, ValueError):
            return str(each)
    return None


def reason(error: BaseException) -> str | None:
    """Return why a connection failed; None if unknown or it did not fail."""
    if (not_accepted := certificate_error(error)) is not None:
        return f'TLS: {not_accepted}'
    for each in causes(error):
        match each:
            case socket.gaierror():
                return 'unknown host name'
            case ssl.SSLError():
                return f'TLS: {each.reason or each}'
            case TimeoutError():
                return 'no answer in time'
            case requests.exceptions.RequestException():
                pass  # an OSError without a number
            case OSError(errno=int() as number) if number > 0:
                return os.strerror(number).lower()
    return None


def is_refused(error: BaseException) -> bool:
    return any(isinstance(each, ks_exceptions.Unauthorized)
               for each in causes(error))


def origin(error: BaseException) -> str | None:
    """Return scheme, host and port of the HTTP request that failed."""
    for each in causes(error):
        url = None
        if isinstance(each, requests.exceptions.RequestException):
            url = each.request is not None and each.request.url
        elif isinstance(each, ks_exceptions.HttpError):
            url = each.url
        if url:
            return origin_of(url)
    return None


def origin_of(url: str) -> str:
    """Return scheme, host and port of a URL, without an account."""
    try:
        parsed = urllib.parse.urlsplit(url)
        port = f':{parsed.port}' if parsed.port else ''
    except ValueError:
        return url
    host = parsed.hostname or ''
    return f'{parsed.scheme}://{f"[{host}]" if ":" in host else host}{port}'


def wrong_option(error: BaseException, section: str,
                 auth_url: str | None) -> str:
    """Return the nova.conf options that may be wrong; empty if unknown."""
    if is_refused(error):
        return f'[{section}] username and password'
    if any(isinstance(each, ks_exceptions.EndpointNotFound)
           for each in causes(error)):
        return f'[{section}] region_name and valid_interfaces'
    if reason(error) is None:
        return ''
    failed = origin(error)
    if failed is None or auth_url and failed == origin_of(auth_url):
        return f'[{section}] auth_url'
    return (f'the endpoint in the catalog of Keystone, or [{section}] '
            'endpoint_override')


def mask_session(session: ks_session.Session) -> None:
    """Mask accounts in errors of a session, and in the log of all clients."""
    request = session.request

    def masked_request(*args, **kwargs):
        try:
            return request(*args, **kwargs)
        except Exception as exc:
            mask_texts(exc)
            raise

    # Here: oslo.log writes the exception behind a warning of keystoneauth.
    session.request = masked_request
    for name in (*_LATE_LOGGERS, *logging.root.manager.loggerDict):
        if name.startswith(_CLIENTS):
            logging.getLogger(name).addFilter(_mask_record)


def mask_texts(error: BaseException) -> None:
    """Mask accounts in an error and those that led to it, for tracebacks."""
    for each in causes(error):
        each.args = tuple(_mask(value) for value in each.args)
        for name in ('message', 'details', 'url'):  # of the two libraries
            if hasattr(each, name):
                setattr(each, name, _mask(getattr(each, name)))


def _mask(value):
    return strings.mask_secrets(value) if (
        isinstance(value, str) and '@' in value) else value


def _mask_record(record: logging.LogRecord) -> bool:
    try:
        message = record.getMessage()
    except Exception:
        return True  # whoever writes it reports the mistake
    if '@' in message:
        record.msg, record.args = strings.mask_secrets(message), ()
    return True
