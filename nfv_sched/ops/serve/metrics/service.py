# SPDX-License-Identifier: Apache-2.0
"""Read the cloud again and again, and answer requests meanwhile."""

import argparse
from collections.abc import Callable
import contextlib
import logging
import signal
import ssl
import threading
import time
import types
import typing as ty

from nfv_sched.base import files
from nfv_sched.base import strings
from nfv_sched.ops.cli import errors
from nfv_sched.ops.commands import arguments
from nfv_sched.ops.serve.metrics import server

if ty.TYPE_CHECKING:
    from nfv_sched.ops.serve.metrics import collecting

LOG = logging.getLogger(__name__)

#: Minimum pause between two readings, relative to the time that one takes.
_REST = 0.5


class _Stopped(BaseException):
    """Raised by the signal handler to end the command."""


def add_options(parser: argparse.ArgumentParser, listen: str) -> None:
    parser.add_argument(
        '--tls-cert', metavar='FILE',
        help=f'{listen}serve HTTPS with this certificate')
    parser.add_argument(
        '--tls-key', metavar='FILE',
        help='its private key (default: in the file of --tls-cert)')
    parser.add_argument(
        '--interval', metavar='SECONDS', default=300.0,
        type=lambda text: arguments.amount(
            text, 1, 86400, 'a number of seconds'),
        help=f'{listen}from the start of one reading of the cloud '
             'to the start of the next, but the pause is at least half of '
             'the time that it took (default: 300)')


def add_collecting_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        '--flavors', metavar='PATTERN', action='append', default=[],
        help='count only servers of flavors whose name matches, with * '
             'and ?; can be repeated')
    parser.add_argument(
        '--failover', action='store_true',
        help='add the servers of each host that would find no place if it '
             'were lost, see "cloud failover"; takes minutes in large clouds')
    parser.add_argument(
        '--journal', metavar='DIR',
        help='directory of the decision journal (default: that of the '
             'configuration; with --from, none)')


def run(parsed_args: argparse.Namespace, collection: 'collecting.Collection',
        respond: Callable[[server.HTTPRequest], server.Answer],
        tls: ssl.SSLContext | None, stdout: ty.TextIO, path: str = '') -> None:
    """Serve until SIGTERM or SIGINT.

    :param stdout: gets the URL of the server, with the path
    :raises CloudUnreadError: if it cannot listen there
    :raises UsageError: if the first reading finds no chosen flavor
    """
    address, port = parsed_args.listen
    connections = server.connections_within_limit()
    if connections < server.CONNECTIONS:
        LOG.warning(
            'The limit of open files allows only %d connections instead '
            'of %d; raise it (ulimit -n, or LimitNOFILE= of the unit)',
            connections, server.CONNECTIONS)
    stopped = threading.Event()

    def stop(_number: int, _frame: types.FrameType | None) -> None:
        if not stopped.is_set():
            stopped.set()
            raise _Stopped

    with files.naming(f'{address}:{port}', errors.CloudUnreadError):
        listener = server.Listener((address, port), respond, tls, connections)
    listener.start()
    try:
        with contextlib.suppress(_Stopped):
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, stop)
            stdout.write(f'{"http" if tls is None else "https"}://'
                         f'{f"[{address}]" if ":" in address else address}:'
                         f'{listener.server_port}{path}\n')
            stdout.flush()
            collection.begin()
            first = True
            while True:
                began = time.monotonic()
                _try(collection, first)
                first = False
                took = time.monotonic() - began
                stopped.wait(max(parsed_args.interval - took, _REST * took))
    finally:
        listener.stop()


def _try(collection: 'collecting.Collection', first: bool) -> None:
    """Collect; log errors.

    :raises UsageError: at the first collection only: later, a
        chosen flavor may have been deleted
    """
    try:
        for message in collection.collect():
            LOG.warning('%s', message)
    except Exception as exc:
        if first and isinstance(exc, errors.UsageError):
            raise
        collection.collector.errors += 1
        if isinstance(exc, errors.CommandError):
            LOG.error('The last figures are kept: %s',
                      strings.mask_secrets(str(exc)))
        else:
            LOG.exception('The last figures are kept')


def tls_context(parsed_args: argparse.Namespace,
                certificates: ssl.VerifyMode = ssl.CERT_REQUIRED,
                ) -> ssl.SSLContext | None:
    """Return the TLS settings; None to serve HTTP.

    :param certificates: whether clients need one, with ``--tls-client-ca``
    """
    if parsed_args.tls_cert is None:
        if parsed_args.tls_key or parsed_args.tls_client_ca:
            raise errors.UsageError('--tls-cert needed')
        return None
    with files.naming(
            f'{parsed_args.tls_cert}: the certificate, its key or the '
            'authorities cannot be used', errors.CloudUnreadError):
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(parsed_args.tls_cert, parsed_args.tls_key)
        if parsed_args.tls_client_ca is not None:
            context.load_verify_locations(parsed_args.tls_client_ca)
            context.verify_mode = certificates
    return context


def address(text: str) -> tuple[str, int]:
    """Return address and port; the default address is that of loopback."""
    address, colon, port = text.rpartition(':')
    if not colon or not port.isdecimal() or not 0 <= int(port) < 65536:
        raise argparse.ArgumentTypeError(
            f'{text!r} is not like 127.0.0.1:9180')
    return address.strip('[]') or '127.0.0.1', int(port)
