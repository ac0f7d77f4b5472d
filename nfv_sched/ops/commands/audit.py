# SPDX-License-Identifier: Apache-2.0
"""The command ``nfv-sched cloud audit``."""

import argparse
from collections.abc import Collection, Iterable, Iterator, Sequence
import shlex
import time

from nfv_sched.base import strings
from nfv_sched.ops.answers.audit import values
from nfv_sched.ops.cli import documents
from nfv_sched.ops.cli import errors
from nfv_sched.ops.commands import arguments
from nfv_sched.ops.commands import planning
from nfv_sched.ops.commands import source
from nfv_sched.ops.simulator import progress

_EPILOG = f"""\
Finds strict policies that are not satisfied now, PCI devices remote from their
server, CPUs that two servers have, servers in the record of a host that are
gone, and differences between Placement and the pinned CPUs of servers, between
the ledger and Neutron, and more. Nothing is changed.

A live cloud is read again after --confirm seconds if there are findings, and
only findings of both readings are shown. Servers with a task in progress are
left out. "Since" is the earliest time at which a finding can have begun, by
Nova's records; empty if there is none.

With -f commands: the commands that repair, as far as known, to be read first.

examples:
  nfv-sched cloud audit --host 'compute-1*' --kind policy-not-kept
  nfv-sched cloud audit --kind 'allocation*' -f commands

{planning.exit_codes('there are findings')}"""

#: Nova updates the records of hosts every 60 seconds.
_CONFIRM = 90.0
_MOST = 3600.0


class AuditCloud(planning.PlanCommand):
    """Check placement guarantees and find inconsistent records."""

    epilog = _EPILOG
    # Findings are of the cloud as it is.
    cloud = source.Source(takes_changes=False)
    schemas = {'cloud-audit': values.Audit}
    least_important = ('Server ID', 'Since', 'Kind', 'What to do')

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        arguments.add_hosts(parser)
        parser.add_argument(
            '--kind', action='append', default=[], metavar='PATTERN',
            help='only findings of these kinds; can be repeated')
        parser.add_argument(
            '--confirm', default=_CONFIRM, metavar='SECONDS',
            type=lambda text: arguments.amount(
                text, 0, _MOST, 'a number of seconds'),
            help='of a live cloud, show only what is still so after this '
                 'time; 0 to read it once (default: 90)')

    def report(self, parsed_args: argparse.Namespace) -> planning.Output:
        kinds = set(arguments.chosen(values.KINDS, parsed_args.kind, 'kind'))
        findings = self._findings(parsed_args, kinds)
        if findings and parsed_args.source is None and parsed_args.confirm:
            self.app.stderr.write(
                f'{len(findings)} to be confirmed: the cloud is read again in '
                f'{parsed_args.confirm:g} s\n')
            self.app.stderr.flush()
            time.sleep(parsed_args.confirm)
            again = set(self._findings(parsed_args, kinds))
            findings = [each for each in findings if each in again]
        self.has_findings = bool(findings)
        columns, rows = self.cells(parsed_args, values.COLUMNS, findings)
        return planning.Output(
            columns=columns, rows=rows, commands=list(_commands(findings)),
            document=documents.Document(values.Audit(
                hosts_checked=self._hosts, findings=tuple(findings)),
                ('findings',)))

    def produce_output(self, parsed_args: argparse.Namespace,
                       column_names: Sequence[str], data: Iterable) -> int:
        code = super().produce_output(parsed_args, column_names, data)
        if not self.has_findings:
            self.app.stderr.write(
                f'{strings.count(self._hosts, "host")}: nothing found.\n')
        return code

    def _findings(self, parsed_args: argparse.Namespace,
                  kinds: Collection[str]) -> list[values.AuditedFinding]:
        cloud = self.cloud.read(self, parsed_args)
        from nfv_sched.ops.answers.audit import all_checks
        from nfv_sched.ops.answers.audit import hosts
        chosen = {host.uuid for host in arguments.hosts(
            cloud, parsed_args.host, parsed_args.az, parsed_args.aggregate)}
        self._hosts = sum(
            host.uuid in chosen for host in hosts.readable(cloud))
        if not hosts.names_unread(cloud):
            raise errors.CloudUnreadError('\n'.join([
                'no host can be checked: the file does not say which of them '
                'were read completely', *self.unread]))
        with progress.shown() as update:
            return [finding for finding in all_checks.findings(
                cloud, hosts=chosen,
                update=lambda done, total: update(done, total, 'hosts'))
                if finding.kind in kinds]


def _commands(findings: Iterable[values.AuditedFinding]) -> Iterator[str]:
    printed = set()
    for each in findings:
        who = ', '.join(filter(None, (
            each.host, each.server or each.server_id)))
        yield f'# {strings.line(f"{who}: {each.kind}: {each.finding}")}'
        yield f'# to do: {values.KINDS[each.kind]}'
        for command in each.commands:
            if command not in printed:
                printed.add(command)
                yield shlex.join(command)
