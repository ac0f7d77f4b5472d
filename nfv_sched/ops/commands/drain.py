# SPDX-License-Identifier: Apache-2.0
"""The command ``nfv-sched host drain``."""

import argparse
import typing as ty

from nfv_sched.ops.answers.plans import document
from nfv_sched.ops.cli import errors
from nfv_sched.ops.cli import formats
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.commands import arguments
from nfv_sched.ops.commands import plan_execution
from nfv_sched.ops.commands import planning

_BACKGROUND = """\
Strict policies are kept after the move, others no less than before, and server
groups are respected.

Several hosts, by names, patterns, --aggregate or --availability-zone, are
emptied in rounds, as for an upgrade, with few servers that move twice. --run
and "plan run" carry out one round; there is no -f commands.

"""

_EPILOG = f"""\
Each server is moved live if possible, else cold, or it stays; "Why" says why
not. The plan moves as many as possible.

{planning.MOVES_HELP}
examples:
  nfv-sched host drain compute-3
  nfv-sched host drain compute-3 --save drain.json --run --os-cloud admin
  nfv-sched host drain compute-3 --make-room --relax --from cloud.json.gz
  nfv-sched host drain --aggregate dpdk --at-once 2 --save upgrade.json

{planning.exit_codes('a server cannot be moved, or one may still come')}"""


class DrainHost(planning.MovePlanCommand):
    """Plan draining hosts: each server live, cold or not at all."""

    closes_hosts = True
    background = _BACKGROUND
    epilog = _EPILOG
    schemas = {'host-drain': document.Drain,
               'host-drain-rolling': document.RollingDrain}

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        arguments.add_host_names(parser)
        parser.add_argument(
            '--at-once', type=arguments.positive, metavar='N',
            help='of several hosts: how many are empty at the same time '
                 '(default: 1)')
        parser.add_argument(
            '--server', action='append', default=[], metavar='UUID|NAME',
            help='move only this server of the host, and do not close the '
                 'host to others; can be repeated')
        parser.add_argument(
            '--make-room', action='store_true',
            help='if no host takes a server, move servers of other hosts '
                 'first, live and three at most for each')
        arguments.add_moves(parser)
        arguments.add_relax(parser)
        parser.add_argument(
            '--shelve', action='store_true',
            help='shelve servers that no host takes, unless they are locked: '
                 'they stop')

    def check(self, parsed_args: argparse.Namespace) -> None:
        arguments.check_host_groups(parsed_args)
        if parsed_args.max_moves and (parsed_args.make_room or (
                parsed_args.shelve or _has_rounds(parsed_args))):
            raise errors.UsageError('--max-moves is for one host, without '
                                    '--make-room and --shelve')
        if _has_rounds(parsed_args):
            if parsed_args.server:
                raise errors.UsageError('--server is for one host')
            if parsed_args.formatter == formats.COMMANDS:
                raise errors.UsageError(
                    '-f commands is for one host; several are emptied in '
                    'rounds by "plan run": write the plan with --save FILE')
        if parsed_args.enable_after and (
                _has_rounds(parsed_args) or parsed_args.server):
            raise errors.UsageError(plan_execution.NO_ENABLE)
        super().check(parsed_args)

    def make_plan(self, parsed_args: argparse.Namespace, cloud: snapshot.Cloud,
                  update: ty.Any) -> document.Drain | document.RollingDrain:
        from nfv_sched.ops.answers.plans import drain
        from nfv_sched.ops.answers.plans import rolling
        options = document.DrainOptions(
            make_room=parsed_args.make_room, relax=parsed_args.relax,
            shelve=parsed_args.shelve, max_moves=parsed_args.max_moves,
            **self.move_options(parsed_args))
        if _has_rounds(parsed_args):
            return rolling.plan(
                cloud,
                arguments.host_names(cloud, parsed_args.hosts, parsed_args),
                options, at_once=parsed_args.at_once or 1, update=update,
                seconds=parsed_args.seconds or rolling.SECONDS)
        host, = arguments.host_names(cloud, parsed_args.hosts, parsed_args)
        return drain.plan(
            cloud, host, options, update=update,
            seconds=parsed_args.seconds or drain.SECONDS,
            uuids=_uuids(cloud, host, parsed_args.server))


def _has_rounds(parsed_args: argparse.Namespace) -> bool:
    return bool(
        len(parsed_args.hosts) != 1 or parsed_args.aggregate or parsed_args.az
        or parsed_args.at_once or arguments.is_pattern(parsed_args.hosts[0]))


def _uuids(cloud: snapshot.Cloud, host: str,
           names: list[str]) -> set[str] | None:
    servers = [arguments.server(cloud, name) for name in names]
    for server in servers:
        if server.host != host:
            raise errors.NotInCloudError(
                f'server {server.name} is not on {host}, but on '
                f'{server.host or "no host"}')
    return {server.uuid for server in servers} or None
