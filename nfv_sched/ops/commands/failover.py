# SPDX-License-Identifier: Apache-2.0
"""The command ``nfv-sched cloud failover``."""

import argparse
import math

from nfv_sched.ops.answers.plans import document
from nfv_sched.ops.cli import documents
from nfv_sched.ops.cli import errors
from nfv_sched.ops.commands import arguments
from nfv_sched.ops.commands import planning
from nfv_sched.ops.commands import source
from nfv_sched.ops.simulator import progress

_EPILOG = f"""\
For each host: its servers, how many of them find another host when they are
evacuated, and which are stranded, and why.

The servers are evacuated one after the other, the newest first, as the API
lists them, and each goes where the scheduler puts it. Shelved servers do not
count. A server that Nova does not evacuate is stranded, too.

examples:
  nfv-sched cloud failover --host 'compute-1*' --from cloud.json.gz
  nfv-sched cloud failover --aggregate rack-7 --together

{planning.exit_codes('a server finds no place')}"""


class FailoverCloud(planning.Report):
    """Check which servers find no host after the loss of a host.

    The table shows only hosts with such servers, csv and value a row for each
    such server, json and yaml all hosts.
    """

    cloud = source.Source(simulates=True)
    epilog = _EPILOG
    schemas = {'cloud-failover': document.Failover}

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        arguments.add_hosts(parser)
        lost = parser.add_mutually_exclusive_group()
        lost.add_argument(
            '--each', action='store_true',
            help='lose each of the hosts alone, while all others are up '
                 '(default)')
        lost.add_argument(
            '--together', action='store_true',
            help='lose all of the hosts at once')
        lost.add_argument(
            '--at-once', type=arguments.positive, default=1, metavar='N',
            help='lose each set of so many hosts; for each host, the set that '
                 'strands most of its servers is told')

    def report(self, parsed_args: argparse.Namespace) -> planning.Output:
        cloud = self.cloud.read(self, parsed_args)
        names = arguments.host_names(cloud, parsed_args.host, parsed_args)
        number = parsed_args.at_once
        if number > 1 and not 0 < math.comb(len(names), number) <= 100_000:
            raise errors.UsageError(f'--at-once {number}: {len(names)} hosts '
                                    'have no such sets, or above 100000')
        from nfv_sched.ops.answers.plans import failover
        from nfv_sched.ops.answers.plans import rendering
        with progress.shown() as update:
            effect = failover.check(
                cloud, names, together=parsed_args.together, at_once=number,
                update=update)
        self.has_findings = any(loss.stranded for loss in effect.hosts)
        return planning.Output(
            text=rendering.failover_text(effect),
            table=rendering.failover_table(effect),
            columns=rendering.FAILOVER,
            rows=rendering.failover_records(effect),
            document=documents.Document(effect, ('hosts',)))
