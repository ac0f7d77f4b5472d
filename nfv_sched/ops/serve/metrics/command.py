# SPDX-License-Identifier: Apache-2.0
"""The command ``nfv-sched metrics``."""

import argparse
from collections.abc import Callable

from nfv_sched.ops.cli import atomic_file
from nfv_sched.ops.cli import base
from nfv_sched.ops.cli import errors
from nfv_sched.ops.commands import source
from nfv_sched.ops.serve.metrics import auth
from nfv_sched.ops.serve.metrics import server
from nfv_sched.ops.serve.metrics import service

_EPILOG = f"""\
Without --listen the cloud is read once: run the command by a timer. With
--listen requests get the figures of the last reading; if one fails, they stay.

nfv_sched_refusals_total, and counts in shadow, are of the decision journal on
this host: with --textfile all, with --listen those since the start.

examples:
  nfv-sched metrics --from telco
  nfv-sched metrics --textfile /var/lib/node_exporter/nfv.prom
  nfv-sched metrics --listen 127.0.0.1:9180 --interval 300

{base.EXIT_CODES}"""


class ServeMetrics(base.Command):
    """Export metrics of the cloud for Prometheus.

    They are of host NUMA nodes, hosts, flavors, agents of Neutron, findings of
    the audit, refusals and retries, and of the ledger.
    """

    epilog = _EPILOG
    # Metrics are of the cloud as it is.
    cloud = source.Source(takes_changes=False)

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        where = parser.add_mutually_exclusive_group()
        where.add_argument(
            '--textfile', metavar='FILE',
            default=atomic_file.STDOUT,
            help='write them to this file, once (default: -, standard output)')
        where.add_argument(
            '--listen', metavar='[ADDRESS]:PORT', type=service.address,
            help='serve them over HTTP, until the command is ended (default '
                 'ADDRESS: 127.0.0.1; 0.0.0.0 or [::] for all addresses)')
        service.add_options(parser, 'with --listen: ')
        parser.add_argument(
            '--tls-client-ca', metavar='FILE',
            help='with --tls-cert: accept only clients with a certificate of '
                 'these authorities')
        parser.add_argument(
            '--auth-file', metavar='FILE',
            help='with --listen: answer only users of this file, lines '
                 'USER:HASH as "htpasswd -nBC 10 USER" prints them (bcrypt)')
        service.add_collecting_options(parser)

    def check(self, parsed_args: argparse.Namespace) -> None:
        super().check(parsed_args)
        for option in ('tls_cert', 'tls_key', 'tls_client_ca', 'auth_file'):
            if parsed_args.listen is None and (
                    getattr(parsed_args, option) is not None):
                raise errors.UsageError(
                    f'--{option.replace("_", "-")} goes with --listen')

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        import prometheus_client

        from nfv_sched.ops.serve.metrics import collecting
        collection = collecting.Collection(parsed_args)
        if parsed_args.listen is not None:
            users = None if parsed_args.auth_file is None else auth.read(
                parsed_args.auth_file)
            service.run(parsed_args, collection,
                        responder(collection.render, users),
                        service.tls_context(parsed_args), self.app.stdout,
                        '/metrics')
            return 0
        path = parsed_args.textfile
        if not atomic_file.is_stdout(path):
            # Check it before reading the cloud, which takes minutes.
            atomic_file.target(path)
            collection.resume(path)
        self.unread += collection.collect()
        atomic_file.write(path, lambda opened: opened.write(
            prometheus_client.generate_latest(collection.registry)))
        return 0


def responder(render: Callable[[str], tuple[str, bytes]],
              users: auth.Users | None,
              ) -> Callable[[server.HTTPRequest], server.Answer]:
    """Return a function that answers requests for the metrics.

    :param render: takes an ``Accept`` header; returns content type and text
    :param users: None for everyone
    """
    def respond(request: server.HTTPRequest) -> server.Answer:
        if refusal := users and users.refusal(request):
            return refusal
        if request.path not in ('/', '/metrics'):
            return server.problem(404)
        return server.Answer(200, *render(request.headers.get('Accept', '')))

    return respond
