# SPDX-License-Identifier: Apache-2.0
"""The command ``nfv-sched host evacuate``."""

import argparse
import typing as ty

from nfv_sched.ops.answers.plans import document
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.commands import arguments
from nfv_sched.ops.commands import planning

_EPILOG = f"""\
Make sure that the hosts are off: Nova knows only that nova-compute does not
report, and a server that goes on running there then runs twice. Disks that are
neither shared nor volumes are lost.

Evacuations that are requested at once are often granted the same NUMA node.
The plan gives each a destination, to as many as possible, servers with few
possible hosts first. Strict policies are kept, others if a host allows it, and
server groups are respected. If one fails the others go on, and --replan plans
it anew. Planning needs Nova's databases, or --from; "plan run" only Nova's
API. A server that is being deleted, migrated or resized stays.

{planning.MOVES_HELP}
examples:
  nfv-sched host evacuate compute-3 --save lost.json --run --yes --replan 3
  nfv-sched host evacuate --aggregate rack-7 --relax -f json

{planning.exit_codes('a server is not evacuated')}"""


class EvacuateHost(planning.MovePlanCommand):
    """Plan the evacuation of the servers of hosts that are down."""

    epilog = _EPILOG
    migrates = False
    schemas = {'host-evacuate': document.Evacuation}

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        arguments.add_host_names(parser)
        arguments.add_seconds(parser)
        arguments.add_relax(parser)
        arguments.add_avoid(parser)

    def check(self, parsed_args: argparse.Namespace) -> None:
        arguments.check_host_groups(parsed_args)
        super().check(parsed_args)

    def make_plan(self, parsed_args: argparse.Namespace, cloud: snapshot.Cloud,
                  update: ty.Any) -> document.Evacuation:
        from nfv_sched.ops.answers.plans import drain
        return drain.evacuate(
            cloud, arguments.host_names(cloud, parsed_args.hosts, parsed_args),
            relax=parsed_args.relax, avoid=tuple(parsed_args.avoid),
            update=update, seconds=parsed_args.seconds or drain.SECONDS)
