# SPDX-License-Identifier: Apache-2.0
"""The command ``nfv-sched metrics``."""

import argparse
from collections.abc import Callable
import contextlib
import datetime
import io
import logging
import os
import signal
import ssl
import threading
import time
import types
import typing as ty
import zlib

from nfv_sched import files
from nfv_sched.journal import writer
from nfv_sched.ops import atomic_file
from nfv_sched.ops.cli import base
from nfv_sched.ops.cloud import source
from nfv_sched.ops.journal import command
from nfv_sched.ops.journal import journal
from nfv_sched.ops.simulator import progress
from nfv_sched.ops.snapshot import snapshot
from nfv_sched import strings

LOG = logging.getLogger(__name__)

_EPILOG = f"""\
With --textfile the cloud is read once and the file is replaced as a whole, for
the textfile collector of node_exporter: run the command by a timer.

With --listen the cloud is read every --interval seconds; requests get the
figures of the last reading. If a reading fails, the last figures stay, and
nfv_sched_snapshot_age_seconds and nfv_sched_collection_errors_total grow.
SIGTERM ends the command. Connections are closed after 10 seconds, and the
oldest of more than 32 (fewer if the limit of open files is low). Certificates
and --auth-file are read at the start.

nfv_sched_refusals_total, and the counts of filters and weighers in shadow, are
from the decision journal on this host: with --textfile all ever recorded, with
--listen those since the start.

examples:
  nfv-sched metrics --textfile /var/lib/node_exporter/nfv.prom
  nfv-sched metrics --listen 127.0.0.1:9180 --interval 300
  nfv-sched metrics --textfile nfv.prom --from cloud.json.gz --flavors 'fw.*'
  nfv-sched metrics --textfile nfv.prom --failover

{source.EXIT_CODES}"""

#: Minimum pause between two readings, relative to the time that one takes.
_REST = 0.5

#: Larger values are neither times, up to the year 9999, nor counts.
_LATEST = 253402300800


class _Stopped(BaseException):
    """Raised by the signal handler to end the command."""


class ServeMetrics(source.CloudMixin, base.Command):
    """Export metrics of the cloud for Prometheus.

    For each host NUMA node: CPUs, largest guest that fits, pages, PCI devices.
    For each host: resources, ports, security group rules, DHCP servers and
    routers. For each flavor: how many more guests fit, and Placement's number.
    For the cloud: how evenly DHCP servers and routers are spread, findings of
    the audit by kind, and refusals and outcomes in shadow in the decision
    journal.
    """

    epilog = _EPILOG

    takes_changes = False  # metrics are of the cloud as it is

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        where = parser.add_mutually_exclusive_group(required=True)
        where.add_argument(
            '--textfile', metavar='FILE',
            help='write them to this file, once')
        where.add_argument(
            '--listen', metavar='[ADDRESS]:PORT', type=_address,
            help='serve them over HTTP, until the command is ended (default '
                 'ADDRESS: 127.0.0.1; 0.0.0.0 or [::] for all addresses)')
        parser.add_argument(
            '--tls-cert', metavar='FILE',
            help='with --listen: serve HTTPS with this certificate')
        parser.add_argument(
            '--tls-key', metavar='FILE',
            help='its private key (default: in the file of --tls-cert)')
        parser.add_argument(
            '--tls-client-ca', metavar='FILE',
            help='with --tls-cert: accept only clients with a certificate of '
                 'these authorities')
        parser.add_argument(
            '--auth-file', metavar='FILE',
            help='with --listen: answer only users of this file, lines '
                 'USER:HASH as "htpasswd -nBC 10 USER" prints them (bcrypt)')
        parser.add_argument(
            '--interval', metavar='SECONDS', type=_interval, default=300.0,
            help='with --listen: from the start of one reading of the cloud '
                 'to the start of the next, but the pause is at least half of '
                 'the time that it took (default: 300)')
        parser.add_argument(
            '--flavors', metavar='PATTERN', action='append', default=[],
            help='count only guests of flavors whose name matches, with * '
                 'and ?; can be repeated')
        parser.add_argument(
            '--failover', action='store_true',
            help='add the guests of each host that would find no place if it '
                 'were lost, see "cloud failover"; takes minutes in large '
                 'clouds')
        parser.add_argument(
            '--journal', metavar='DIR',
            help='directory of the decision journal (default: that of the '
                 'configuration; with --from, none)')
        return parser

    def check(self, parsed_args: argparse.Namespace) -> None:
        """Check that the options fit together."""
        super().check(parsed_args)
        for option in ('tls_cert', 'tls_key', 'tls_client_ca', 'auth_file'):
            if parsed_args.listen is None and (
                    getattr(parsed_args, option) is not None):
                raise source.UsageError(
                    f'--{option.replace("_", "-")} goes with --listen')

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        collection = _Collection(parsed_args)
        if parsed_args.textfile is not None:
            return self._write(collection, parsed_args.textfile)
        return self._serve(collection, parsed_args)

    def _write(self, collection: '_Collection', path: str) -> int:
        """Collect once and write a file; return the exit code."""
        import prometheus_client
        try:
            # Check it before reading the cloud, which takes minutes.
            atomic_file.target(path)
        except atomic_file.WriteError as exc:
            raise source.CloudUnreadError(str(exc)) from exc
        collection.resume(path)
        self._missing += collection.collect()
        try:
            atomic_file.write(path, lambda opened: opened.write(
                prometheus_client.generate_latest(collection.registry)))
        except atomic_file.WriteError as exc:
            raise source.CloudUnreadError(str(exc)) from exc
        return 0

    def _serve(self, collection: '_Collection',
               parsed_args: argparse.Namespace) -> int:
        """Serve the metrics, and collect them again and again."""
        from prometheus_client import exposition

        from nfv_sched.ops.metrics import auth
        from nfv_sched.ops.metrics import server as nfv_server
        address, port = parsed_args.listen
        tls, users = tls_context(parsed_args), None
        if parsed_args.auth_file is not None:
            try:
                users = auth.read(parsed_args.auth_file)
            except auth.AuthFileError as exc:
                raise source.CloudUnreadError(str(exc)) from exc
        connections = nfv_server.connections_within_limit()
        if connections < nfv_server.CONNECTIONS:
            LOG.warning(
                'The limit of open files allows only %d connections instead '
                'of %d; raise it (ulimit -n, or LimitNOFILE= of the unit)',
                connections, nfv_server.CONNECTIONS)
        stopped = threading.Event()

        def stop(_number: int, _frame: types.FrameType | None) -> None:
            if not stopped.is_set():
                stopped.set()
                raise _Stopped

        def render(accept: str) -> tuple[str, bytes]:
            encoder, content_type = exposition.choose_encoder(accept)
            return content_type, encoder(collection.registry)

        try:
            server = nfv_server.MetricsServer(
                (address, port), render, tls, users, connections)
        except OSError as exc:
            raise source.CloudUnreadError(
                f'{address}:{port}: {exc.strerror or exc}') from exc
        server.start()
        try:
            with contextlib.suppress(_Stopped):
                for number in (signal.SIGTERM, signal.SIGINT):
                    signal.signal(number, stop)
                self.app.stdout.write(
                    f'{"https" if parsed_args.tls_cert else "http"}://'
                    f'{f"[{address}]" if ":" in address else address}:'
                    f'{server.server_port}/metrics\n')
                self.app.stdout.flush()
                collection.begin()
                self._collect_until_stopped(
                    collection, parsed_args.interval, stopped)
        finally:
            server.stop()
        return 0

    def _collect_until_stopped(
        self, collection: '_Collection', interval: float,
        stopped: threading.Event,
    ) -> None:
        first = True
        while True:
            began = time.monotonic()
            self._try(collection, first)
            first = False
            took = time.monotonic() - began
            stopped.wait(max(interval - took, _REST * took))

    def _try(self, collection: '_Collection', first: bool) -> None:
        """Collect; log errors.

        :raises source.UsageError: at the first collection only: later, a
            chosen flavor may have been deleted
        """
        try:
            for message in collection.collect():
                LOG.warning('%s', message)
        except Exception as exc:
            if first and isinstance(exc, source.UsageError):
                raise
            collection.collector.errors += 1
            if isinstance(exc, source.EXPECTED):
                LOG.error('The last figures are kept: %s',
                          strings.mask_secrets(str(exc)))
            else:
                LOG.exception('The last figures are kept')


class _Collection:
    """A reader of the cloud that keeps its metrics.

    :ivar registry: the library's registry of these metrics
    """

    def __init__(self, parsed_args: argparse.Namespace):
        import prometheus_client

        from nfv_sched.ops.metrics import rendering
        self._args = parsed_args
        self._metrics = rendering
        self._tally = journal.Tally()
        self._journal = parsed_args.journal
        self._read: Callable[[], snapshot.Cloud]
        if parsed_args.source is not None:
            self._read = lambda: source.load(
                parsed_args.source, parsed_args.config_file)
        else:
            self._read = source.reader(base.configuration(parsed_args))
            if self._journal is None:
                self._journal = command.directory()
        self.collector = rendering.Collector(time.time)
        self.registry = prometheus_client.CollectorRegistry()
        self.registry.register(self.collector)

    def collect(self) -> list[str]:
        """Read the cloud and the journal again.

        :returns: what could not be read, a sentence each
        :raises source.CloudUnreadError: if the cloud cannot be read at all
        :raises source.UsageError: if no flavor matches
        :raises InputError: if the cloud cannot be simulated
        """
        began = time.monotonic()
        missing = self._count_refusals()
        cloud = self._read()
        families = self._families(cloud)
        missing += map(str, cloud.missing)
        self.collector.set(
            families, _seconds(cloud.taken), time.monotonic() - began,
            len(missing))
        return missing

    def resume(self, path: str) -> None:
        """Continue the counters of an existing file.

        :param path: a file written before; may be missing
        """
        from prometheus_client import parser
        counts: dict[str, int] = {}
        servers: dict[str, int] = {}
        decisions: dict[tuple[str, str], int] = {}
        latest = latest_placed = ''
        try:
            with io.StringIO(files.read(path).decode()) as old:
                for family in parser.text_fd_to_metric_families(old):
                    for sample in family.samples:
                        if not 0 <= sample.value < _LATEST:
                            continue  # also NaN
                        if family.name == self._metrics.REFUSALS.name:
                            counts[sample.labels['policy']] = int(sample.value)
                        elif family.name == self._metrics.LATEST_REFUSAL.name:
                            # Rounding may have lost the last digits.
                            latest = writer.stamp(sample.value + 0.0005)
                        elif family.name == self._metrics.SHADOW.name:
                            servers[sample.labels['outcome']] = int(
                                sample.value)
                        elif family.name == self._metrics.DECISIONS.name:
                            decisions[
                                sample.labels['name'],
                                sample.labels['outcome']] = int(sample.value)
                        elif family.name == self._metrics.LATEST_SHADOW.name:
                            latest_placed = writer.stamp(
                                sample.value + 0.0005)
        except FileNotFoundError:
            return
        except (OSError, ValueError, KeyError, EOFError,
                zlib.error) as exc:
            LOG.warning('%s is replaced, and its counts are lost: %s',
                        path, exc)
            return
        self._tally = journal.Tally(
            counts, latest, servers, decisions, latest_placed)

    def begin(self) -> None:
        """Count refusals from now on: those already in the journal count 0.

        The counters of a new process have to start at 0.
        """
        with contextlib.suppress(journal.JournalError):
            if self._journal:
                before = journal.Tally()
                content = journal.read(self._journal)
                before.add(content.refusals, content.placed)
                self._tally = before.restarted()

    def _count_refusals(self) -> list[str]:
        if not self._journal:
            return []
        try:
            content = journal.read(self._journal)
        except journal.JournalError as exc:
            # It is missing until a first refusal, or may not be read.
            return [] if not os.path.exists(self._journal) else [
                f'The decision journal cannot be read: {exc}']
        tally = self._tally
        tally.add(content.refusals, content.placed)
        self.collector.set_refusals(
            tally.counts, _seconds(tally.latest) if tally.latest else None)
        self.collector.set_shadow(
            tally.servers, tally.decisions,
            _seconds(tally.latest_placed) if tally.latest_placed else None)
        return list(content.unread)

    def _families(self, cloud: snapshot.Cloud) -> list[ty.Any]:
        from nfv_sched.ops.audit import audit
        from nfv_sched.ops.audit import hosts
        from nfv_sched.ops.counting import capacity
        from nfv_sched.ops.hosts import view
        from nfv_sched.ops.rebalance import rebalance
        enabled = [flavor for flavor in cloud.flavors if not flavor.disabled]
        names = set(source.chosen(
            [flavor.name for flavor in enabled], self._args.flavors,
            'flavor'))
        with progress.shown() as update:
            counted = capacity.capacities(
                cloud, [flavor for flavor in enabled
                        if flavor.name in names],
                update=lambda done, total: update(done, total, 'flavors'))
        return self._metrics.families(
            cloud, view.views(cloud), counted,
            findings=(audit.findings(cloud) if hosts.names_unread(cloud)
                      else None),
            plans=rebalance.plans(cloud, room=view.free_ports(cloud)),
            losses=self._losses(cloud))

    def _losses(self, cloud: snapshot.Cloud) -> ty.Sequence[ty.Any]:
        """Return the loss of each host (``failover.Loss``), if requested."""
        if not self._args.failover:
            return ()
        from nfv_sched.ops.plans import failover
        with progress.shown() as update:
            return failover.check(
                cloud, list(dict.fromkeys(
                    host.name for host in cloud.hosts)), update=update)


def _seconds(time_stamp: str) -> float:
    """Return the seconds since the epoch of an ISO 8601 time in UTC.

    It is 0 if the time is not valid.
    """
    try:
        return datetime.datetime.fromisoformat(time_stamp).replace(
            tzinfo=datetime.timezone.utc).timestamp()
    except ValueError:
        return 0.0


def tls_context(parsed_args: argparse.Namespace) -> ssl.SSLContext | None:
    """Return the TLS settings; None to serve HTTP.

    :raises CloudUnreadError: if a file cannot be used
    """
    if parsed_args.tls_cert is None:
        if parsed_args.tls_key or parsed_args.tls_client_ca:
            raise source.UsageError('--tls-cert needed')
        return None
    try:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(parsed_args.tls_cert, parsed_args.tls_key)
        if parsed_args.tls_client_ca is not None:
            context.load_verify_locations(parsed_args.tls_client_ca)
            context.verify_mode = ssl.CERT_REQUIRED
    except OSError as exc:
        raise source.CloudUnreadError(
            f'{parsed_args.tls_cert}: the certificate, its key or the '
            f'authorities cannot be used: {exc.strerror or exc}') from exc
    return context


def _address(text: str) -> tuple[str, int]:
    """Return address and port; the default address is that of loopback."""
    address, colon, port = text.rpartition(':')
    if not colon or not port.isdecimal() or not 0 <= int(port) < 65536:
        raise argparse.ArgumentTypeError(
            f'{text!r} is not like 127.0.0.1:9180')
    return address.strip('[]') or '127.0.0.1', int(port)


def _interval(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 1 <= number <= 86400:
        raise argparse.ArgumentTypeError(
            f'{text!r} is not a number of seconds from 1 to 86400')
    return number
