# SPDX-License-Identifier: Apache-2.0
"""The command ``nfv-sched plan run``."""

import argparse
import os

from nfv_sched.base import strings
from nfv_sched.ops.answers.plans import document
from nfv_sched.ops.cli import base
from nfv_sched.ops.cli import errors
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.commands import arguments
from nfv_sched.ops.commands import plan_execution
from nfv_sched.ops.commands import plan_file
from nfv_sched.ops.commands import source

_EPILOG = """\
FILE is what a command that plans moves has written with --save.

First everything is checked, and nothing is done if the cloud is not as the
plan says. Hosts that are emptied are disabled then; of a plan of several
hosts, one round is carried out. Each migration is waited for by its record in
Nova; cold migrations are confirmed. At the end it is checked, as cloud audit
does it, whether the servers keep their strict policies. This needs Nova's
databases, or --from with the URL of "snapshot serve".

Several moves are made at a time (--parallel), but only one to a host, and none
before an earlier one whose capacity it may need. After a failure no other move
begins, except evacuations. Ctrl-C has the same effect; pressed again, it ends
the command, not the migrations. FILE.journal says how far the plan has come,
so the same command goes on after an interruption, and tries again what failed.

With --replan, after a failure or if the cloud is not as the plan says, the
rest is planned again, and carried out; it takes the place of FILE. For servers
it needs Nova's databases, or --from.

examples:
  nfv-sched plan run drain.json --dry-run --from cloud.json.gz
  nfv-sched plan run drain.json --yes --parallel 2 --enable-after --replan 3
  nfv-sched plan run drain.json --from https://ctl1.example.org:9181

exit code: 0 if all moves are made and all is reached that was asked for; 1 if
something could not be read or written, and is named; 2 if the command line is
wrong; 3 if something is left to do, or a strict policy is not kept; 130 if it
was interrupted before the end.
"""


class RunPlan(plan_execution.RunMixin, base.Command):
    """Carry out a plan of moves, or of evacuations."""

    closes_hosts = True
    epilog = _EPILOG

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument('file', metavar='FILE', help='the plan, as JSON')
        base.add_configuration(parser)
        parser.add_argument(
            '--journal', metavar='FILE',
            help='file that says how far the plan has come (default: that of '
                 'the plan, with .journal, or .round-N.journal, after its '
                 'name)')
        parser.add_argument(
            '--round', type=arguments.positive, metavar='N',
            help='of a plan of several hosts: the round to carry out '
                 '(default: the first that is left)')
        self.add_run_options(parser)
        parser.add_argument(
            '--from', dest='source', metavar='URL',
            help='the https URL of "snapshot serve", in place of Nova\'s '
                 'databases: for --replan, and to check strict policies; with '
                 '--dry-run also a snapshot, to make the moves there')

    def check(self, parsed_args: argparse.Namespace) -> None:
        if source.is_file(parsed_args.source) and not parsed_args.dry_run:
            raise errors.UsageError(
                '--from needs the https URL of "snapshot serve": a file does '
                'not show the cloud as it is after the moves')

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        saved = plan_file.read(parsed_args.file, parsed_args.round)
        plan = saved.plan
        if parsed_args.round and not plan.round:
            raise errors.UsageError('--round is for a plan of several hosts')
        if parsed_args.enable_after and (plan.round or not plan.closed_hosts):
            raise errors.UsageError(plan_execution.NO_ENABLE)
        self.check_terminal(parsed_args)
        cloud = None
        if source.is_file(parsed_args.source):
            if saved.is_of_agents:
                raise errors.UsageError(
                    '--dry-run --from FILE is for plans that move servers')
            cloud = source.load(parsed_args.source, parsed_args.config_file)
            self.unread = list(map(str, cloud.missing))
        return self.carry_out(parsed_args, saved, cloud)

    def cloud_again(self, parsed_args: argparse.Namespace,
                    saved: plan_file.SavedPlan) -> snapshot.Cloud:
        """Read the cloud; agents by API without --config-file or --from."""
        if parsed_args.journal is None:
            _check_earlier_rounds(saved)
        if saved.is_of_agents and parsed_args.source is None and (
                not parsed_args.config_file):
            cloud = source.api_cloud(self, parsed_args, ('network_agents',))
        else:
            cloud = self.current_cloud(parsed_args)
        self.unread = list(map(str, cloud.missing))
        return cloud


def _check_earlier_rounds(saved: plan_file.SavedPlan) -> None:
    """Check that a new plan leaves out only rounds that have begun."""
    if not isinstance(saved.document, document.RollingDrain):
        return
    for each in saved.document.rounds:
        journal, _plan = plan_file.journal_of(
            saved.path, saved.digest, each.round)
        if each.round < saved.plan.round and any(
                host.moves for host in each.hosts) and (
                not os.path.lexists(journal)):
            raise errors.CloudUnreadError(
                f'there is no new plan: round {each.round} was not carried '
                'out, and its hosts would be left out: '
                + ', '.join(strings.line(host.host) for host in each.hosts))
