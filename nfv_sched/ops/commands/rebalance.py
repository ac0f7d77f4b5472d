# SPDX-License-Identifier: Apache-2.0
"""The command ``nfv-sched agent rebalance``."""

import argparse

from nfv_sched.base import strings
from nfv_sched.ops.answers.rebalance import document as rebalance_document
from nfv_sched.ops.cli import errors
from nfv_sched.ops.cli import formats
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.commands import arguments
from nfv_sched.ops.commands import plan_file
from nfv_sched.ops.commands import planning
from nfv_sched.ops.commands import source
from nfv_sched.ops.simulator import progress

_EPILOG = f"""\
Agents that are down or disabled are emptied first. Then moves are planned as
long as an agent has more than --threshold more than another one that can take
something from it. The number of DHCP servers, or routers, is levelled; with
--ports, ports of the virtual switch. "After" is the most and the fewest that
any agent has after a move.

HA and distributed routers are not moved, nor routers whose networks Neutron
does not show. Routers of ML2/OVN are only counted: OVN itself places them.
Nothing is moved without --run.

With --api only Neutron is read, with an account that has the role admin.
A router is interrupted while it is moved. With -f commands there are two
commands for each move, without the checks that "plan run" makes.

examples:
  nfv-sched agent rebalance
  nfv-sched agent rebalance --kind router --ports --threshold 10
  nfv-sched agent rebalance -f commands > moves.sh

{planning.exit_codes('there are moves to be made, or that cannot be made')}"""

#: Noun for the agents of a --kind, in the message if there are none.
_AGENTS = {None: 'DHCP or routers', snapshot.DHCP: 'DHCP',
           snapshot.ROUTER: 'routers'}


class RebalanceAgent(planning.MovePlanCommand):
    """Plan an even distribution of DHCP servers and routers over agents."""

    epilog = _EPILOG
    migrates = False
    schemas = {'agent-rebalance': rebalance_document.Rebalance}
    cloud = source.Source(takes_api=True)

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument(
            '--kind', choices=(snapshot.DHCP, snapshot.ROUTER),
            help='only DHCP servers, or routers')
        parser.add_argument(
            '--threshold', type=arguments.positive, metavar='N',
            help='how much more one agent may carry than another, 1 or more '
                 '(default: 3)')
        parser.add_argument(
            '--ports', action='store_true',
            help='level ports of the virtual switch, not the number')

    def report(self, parsed_args: argparse.Namespace) -> planning.Output:
        cloud = self.cloud.read(self, parsed_args, ('network_agents',))
        if cloud.network_agents is None:
            raise errors.CloudUnreadError('\n'.join(
                self.unread or ['the agents of Neutron are not known']))
        from nfv_sched.ops.answers.hosts import view
        from nfv_sched.ops.answers.rebalance import freed_capacity
        from nfv_sched.ops.answers.rebalance import levelling
        from nfv_sched.ops.answers.rebalance import rendering
        kinds = (snapshot.DHCP, snapshot.ROUTER)
        plan = levelling.plans(
            cloud, kinds if parsed_args.kind is None else [parsed_args.kind],
            threshold=parsed_args.threshold or levelling.THRESHOLD,
            by_ports=parsed_args.ports, room=view.free_ports(cloud))
        self.has_findings = bool(plan.moves) or any(
            each.stays for each in plan.plans)
        if unknown := [router for each in plan.plans
                       for router in each.left_out if router.lacks_networks]:
            self.unread.append(
                f'Neutron does not show the networks of '
                f'{strings.count(len(unknown), "router")}: '
                f'{strings.some(map(rendering.name_of, unknown))}')
        if parsed_args.api and plan.moves:
            self.app.stderr.write(
                'note: limits of virtual switches are in nova.conf, and were '
                'not looked at\n')
        # Commands alone need no count of servers, which takes long.
        if parsed_args.save is not None or (
                parsed_args.formatter != formats.COMMANDS):
            with progress.shown() as update:
                plan = freed_capacity.with_gain(
                    cloud, plan,
                    lambda done, total: update(done, total, 'flavors'))
        columns, rows = self.cells(parsed_args, rendering.COLUMNS, plan.moves)
        return planning.Output(
            columns=columns, rows=rows, below=[
                *([''] if plan.moves else []),
                *(rendering.summary(plan, cloud) or [
                    'Neutron shows no agents for '
                    f'{_AGENTS[parsed_args.kind]}.'])],
            document=plan_file.document_of(plan),
            commands=[line for move in plan.moves for line in move.commands])
