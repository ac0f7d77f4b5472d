# SPDX-License-Identifier: Apache-2.0
"""The command ``nfv-sched limits show``, which ``host list`` replaces."""

import argparse
from collections.abc import Iterator
import typing as ty

from nfv_sched.ops.cli import base
from nfv_sched.ops.cloud import source
from nfv_sched.ops.snapshot import snapshot

if ty.TYPE_CHECKING:
    from nfv_sched.ops.hosts import limit_use

_EPILOG = """\
examples:
  nfv-sched host list --full 90

""" + source.EXIT_CODES

_COLUMNS = (
    'Host', 'Ports', 'Port limit', 'Ports free', 'Rules', 'Rule limit',
    'Rules free', 'DHCP servers', 'Routers', 'Services limit', 'Source',
    'Age (s)', 'Note')


class ShowLimits(source.CloudMixin, base.Lister):
    """Show the use of port and security group rule limits on each host.

    Now part of "nfv-sched host list".
    """

    epilog = _EPILOG

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        source.add_hosts(parser)
        parser.add_argument(
            '--full', type=float, metavar='PERCENT',
            help='only hosts whose ports or rules are used that far')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple:
        return _COLUMNS, list(self._rows(parsed_args))

    def _rows(self, parsed_args: argparse.Namespace) -> Iterator[tuple]:
        from nfv_sched.ops.hosts import view
        cloud = self.cloud(parsed_args)
        age = snapshot.age(cloud.taken)
        for host in view.views(cloud, source.hosts(
                cloud, parsed_args.host, parsed_args.az,
                parsed_args.aggregate)):
            if parsed_args.full is None or (
                    host.limits.percent_used >= parsed_args.full):
                yield _row(host.host, host.limits, age)


def _row(host: snapshot.Host, limits: 'limit_use.HostLimits',
         age: int | None) -> tuple:
    network = host.network or snapshot.HostNetwork()
    return (
        host.name, *_cells(limits.ports), *_cells(limits.rules),
        network.dhcp_servers, network.routers,
        _limit(limits.services_limit), ', '.join(limits.sources) or None,
        None if network.vswitch_ports is None else age,
        ', '.join(limits.notes) or None)


def _cells(usage: 'limit_use.LimitUse') -> tuple:
    return usage.used, _limit(usage.limit), (
        'unlimited' if usage.limit is None else usage.free)


def _limit(number: int | None) -> int | str:
    return 'unlimited' if number is None else number
