# SPDX-License-Identifier: Apache-2.0
"""The command ``nfv-sched host evacuate``."""

import argparse

from nfv_sched.ops.answers.plans import document
from nfv_sched.ops.commands import arguments
from nfv_sched.ops.commands import plan_file
from nfv_sched.ops.commands import planning
from nfv_sched.ops.commands import source
from nfv_sched.ops.simulator import progress

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

    cloud = source.Source(simulates=True, has_account=False)
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

    def report(self, parsed_args: argparse.Namespace) -> planning.Output:
        cloud = self.cloud.read(self, parsed_args)
        from nfv_sched.ops.answers.plans import drain
        from nfv_sched.ops.answers.plans import rendering
        hosts = arguments.hosts(cloud, parsed_args.hosts, parsed_args.az,
                                parsed_args.aggregate)
        with progress.shown() as update:
            plan = drain.evacuate(
                cloud, list(dict.fromkeys(host.name for host in hosts)),
                relax=parsed_args.relax, avoid=tuple(parsed_args.avoid),
                update=update,
                seconds=parsed_args.seconds or drain.SECONDS)
        self.has_findings = any(each.how is None for each in plan.servers)
        return planning.Output(
            text=rendering.evacuation_text(plan),
            rows=rendering.drain_records(plan), columns=rendering.DRAIN,
            commands=list(rendering.commands(plan.moves)),
            document=plan_file.document_of(plan))
