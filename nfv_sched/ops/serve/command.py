# SPDX-License-Identifier: Apache-2.0
"""The command ``nfv-sched snapshot serve``."""

import argparse
import contextlib
import os
import socket
import ssl

from nfv_sched.ops.cli import base
from nfv_sched.ops.cli import errors
from nfv_sched.ops.commands import source
from nfv_sched.ops.serve.metrics import service

_EPILOG = f"""\
A request gets what was read last, and never causes a reading; if one fails,
the last snapshot stays. /snapshot is for --from https://HOST:PORT of all
commands, /metrics is what "nfv-sched metrics" exports, / has pages for a
browser, and /healthz is 200 if there is a snapshot; it needs no password.

Each line of --auth-file is USER:HASH:ROLE, with HASH (bcrypt) as
"htpasswd -nBC 10 USER" prints it, or * for a user with only a certificate that
has this name. The role operator reads everything; reader, the default, an
anonymized snapshot; metrics reads /metrics alone.

examples:
  nfv-sched snapshot serve --from telco
  nfv-sched snapshot serve --listen 0.0.0.0:9181 --tls-cert pem --auth-file who
  nfv-sched host list --from https://controller1.example.org:9181

{base.EXIT_CODES}"""


class ServeSnapshot(base.Command):
    """Serve a snapshot of the cloud, and metrics, over HTTPS.

    Commands on other machines then need neither Nova's configuration nor its
    databases. Operators read everything, others an anonymized snapshot.
    """

    epilog = _EPILOG
    # The clients choose.
    cloud = source.Source(takes_changes=False)

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            '--listen', metavar='[ADDRESS]:PORT', type=service.address,
            default=':9181',
            help='where to listen (default: 127.0.0.1:9181; 0.0.0.0 or [::] '
                 'for all addresses); without --tls-cert only on 127.0.0.1 or '
                 '[::1]')
        parser.add_argument(
            '--auth-file', metavar='FILE',
            help='who may read what: lines USER:HASH:ROLE, see below; only '
                 'its owner and group may be able to read it (default: with '
                 '--from and without --tls-cert, all users of this machine)')
        service.add_options(parser, '')
        parser.add_argument(
            '--tls-client-ca', metavar='FILE',
            help='with --tls-cert: clients may have a certificate of these '
                 'authorities instead of a password')
        service.add_collecting_options(parser)

    def check(self, parsed_args: argparse.Namespace) -> None:
        from nfv_sched.ops.cloud import remote
        super().check(parsed_args)
        if parsed_args.tls_cert is None and not remote.is_loopback(
                parsed_args.listen[0]):
            raise errors.UsageError(
                f'--tls-cert needed: others can reach {parsed_args.listen[0]}')
        if parsed_args.auth_file is None and (
                parsed_args.source is None or parsed_args.tls_cert):
            raise errors.UsageError(
                '--auth-file is needed to serve HTTPS, or without --from')

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        from nfv_sched.ops.serve.metrics import auth
        from nfv_sched.ops.serve.metrics import collecting
        from nfv_sched.ops.serve.pages import worker
        from nfv_sched.ops.serve import publication
        tls = service.tls_context(parsed_args, ssl.CERT_OPTIONAL)
        users: publication.LocalUsers | auth.Users = publication.LocalUsers()
        if parsed_args.auth_file is not None:
            users = auth.read(parsed_args.auth_file)
        name = os.path.basename(parsed_args.source or socket.gethostname())
        with contextlib.closing(worker.PageWorker(
                parsed_args.config_file, name=name)) as pages:
            collection = collecting.Collection(
                parsed_args, lambda cloud: published.publish(cloud))
            published = publication.Publication(
                users, collection.render, pages)
            service.run(parsed_args, collection, published.respond, tls,
                        self.app.stdout)
        return 0
