# SPDX-License-Identifier: Apache-2.0
"""The commands ``nfv-sched cloud spread`` and ``cloud consolidate``."""

import argparse
import typing as ty

from nfv_sched.ops.answers.plans import document
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.commands import arguments
from nfv_sched.ops.commands import planning

_PROOF = """\
A solver finds the moves, and says what no moves exceed, if it can prove that
in time. No policy of a server, or of its server group, is satisfied less.
"""


class Rearrange(planning.MovePlanCommand):
    spreads: bool

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        arguments.add_moves(parser, 100)

    def make_plan(self, parsed_args: argparse.Namespace, cloud: snapshot.Cloud,
                  update: ty.Any) -> document.Rearrangement:
        from nfv_sched.ops.answers.plans import move_search
        from nfv_sched.ops.answers.plans import rearrange
        options = document.RearrangeOptions(
            spread=self.spreads, max_moves=parsed_args.max_moves,
            points=parsed_args.points if self.spreads else None,
            hosts=None if self.spreads else parsed_args.hosts,
            **self.move_options(parsed_args))
        return rearrange.plan(
            cloud, options, update=update,
            seconds=parsed_args.seconds or move_search.SECONDS)


class SpreadCloud(Rearrange):
    """Plan migrations that use NUMA nodes evenly."""

    spreads = True
    schemas = {'cloud-spread': document.Rearrangement}
    epilog = f"""\
After a host has come back, or was added, others stay full. The plan says which
servers to migrate until the share of CPUs for pinned servers that is in use is
the same on all NUMA nodes, within one server. Plans that copy little memory
are preferred. Hosts that are disabled or down do not count.

{_PROOF}
{planning.MOVES_HELP}
examples:
  nfv-sched cloud spread --points 5 --max-moves 20 --save spread.json

{planning.exit_codes('NUMA nodes are not even after the moves')}"""

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument(
            '--points', type=arguments.positive, metavar='N',
            help='percentage points by which a NUMA node may be in use more '
                 'or less than all of them together (default: by the CPUs '
                 'that a server of the middle size has there)')


class ConsolidateCloud(Rearrange):
    """Plan the fewest migrations that empty as many hosts as possible."""

    spreads = False
    schemas = {'cloud-consolidate': document.Rearrangement}
    epilog = f"""\
Which servers to migrate, and where to, so that hosts are without servers: to
save power, or for the maintenance of many. The hosts stay enabled: disable
them before new servers come.

{_PROOF}
{planning.MOVES_HELP}
examples:
  nfv-sched cloud consolidate --hosts 2 --from cloud.json.gz
  nfv-sched cloud consolidate --max-moves 20 --avoid 'ims*' -f json

{planning.exit_codes('fewer hosts are emptied than --hosts says')}"""

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument(
            '--hosts', type=arguments.positive, metavar='N',
            help='number of hosts to empty, besides those that are empty '
                 '(default: as many as possible)')
