# SPDX-License-Identifier: Apache-2.0
"""The command ``nfv-sched cloud defrag``."""

import argparse
import typing as ty

from nfv_sched.ops.answers.plans import document
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.commands import arguments
from nfv_sched.ops.commands import planning

_EPILOG = f"""\
Servers may not fit although the hosts together have enough free CPUs, pages
and devices. The plan has the fewest live migrations that were found, prefers
servers with little memory, and says how many new servers no plan exceeds, if
that is proved. The new servers are booted in the simulator, too. No policy of
a server, or of its server group, is satisfied less than before.

{planning.MOVES_HELP}
examples:
  nfv-sched cloud defrag --flavor vrouter.16 --max-moves 2 --avoid 'ims*'
  nfv-sched cloud defrag --flavor fw.8 --from cloud.json.gz -f json

{planning.exit_codes('no moves were found that make room for so many')}"""


class DefragCloud(planning.MovePlanCommand):
    """Plan live migrations that make room for more servers of a flavor."""

    epilog = _EPILOG
    schemas = {'cloud-defrag': document.Defrag}

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument(
            '--flavor', required=True, metavar='NAME',
            help='flavor of the new servers')
        parser.add_argument(
            '--count', type=arguments.positive, default=1, metavar='N',
            help='number of new servers (default: 1)')
        arguments.add_moves(parser, 10)
        arguments.add_ports(parser)

    def make_plan(self, parsed_args: argparse.Namespace, cloud: snapshot.Cloud,
                  update: ty.Any) -> document.Defrag:
        from nfv_sched.ops.answers.plans import move_search
        from nfv_sched.ops.commands import replanning
        options = document.DefragOptions(
            max_moves=parsed_args.max_moves, like=parsed_args.like,
            networks=tuple(parsed_args.networks), ports=parsed_args.ports,
            **self.move_options(parsed_args))
        return replanning.plan_defrag(
            cloud, parsed_args.flavor, parsed_args.count, options, update,
            seconds=parsed_args.seconds or move_search.SECONDS)
