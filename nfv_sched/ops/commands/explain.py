# SPDX-License-Identifier: Apache-2.0
"""The commands ``nfv-sched server explain`` and ``flavor explain``."""

import abc
import argparse
from collections.abc import Iterable
import dataclasses
import gc
import time
import typing as ty

from oslo_utils import uuidutils

from nfv_sched.journal import writer
from nfv_sched.ops.answers.explain import document as explain_document
from nfv_sched.ops.answers.journal import document as journal_document
from nfv_sched.ops.answers.journal import reading
from nfv_sched.ops.answers.journal import rendering
from nfv_sched.ops.cli import base
from nfv_sched.ops.cli import documents
from nfv_sched.ops.cli import errors
from nfv_sched.ops.cli import tables
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.commands import arguments
from nfv_sched.ops.commands import planning
from nfv_sched.ops.commands import source
from nfv_sched.ops.simulator import progress

# NOTE: A large cloud is millions of objects that live as long as the command.
# Python 3.11 looks for cycles among them whenever there are 700 more.  Without
# that, "flavor explain" took 4.0 s of CPU time instead of 5.5 s for a snapshot
# of 1000 hosts with two NUMA nodes and 20 servers.
_NEW_OBJECTS = 500_000  # that are made before Python looks again
# Records of all servers of a request are kept in memory.
_MOST_SERVERS = 1000

_SHARED = """\
Nova's own scheduler code is asked in this process, with Placement as it was
read: nothing is claimed, and nobody is notified.

"""


class _Explain(planning.Report):
    cloud = source.Source(simulates=True)

    #: What --network takes the place of, for its help text.
    replaced_networks = ''

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        arguments.add_networks(parser, self.replaced_networks)
        parser.add_argument(
            '--host', action='append', default=[], dest='patterns',
            metavar='PATTERN',
            help='show only these hosts; the answer is still that of all '
                 'hosts; can be repeated')
        parser.add_argument(
            '--all', action='store_true',
            help='show all hosts, however many')
        parser.add_argument(
            '--details', action='store_true',
            help='show what Placement and each filter did, too')
        parser.add_argument(
            '--all-filters', action='store_true',
            help='show filters that refuse no host, too')
        parser.add_argument(
            '--for-tenant', action='store_true',
            help='print a text for the owner of the server, without names and '
                 'figures of hosts, instead')
        parser.add_argument(
            '--try-seconds', type=float, metavar='SECONDS', default=60.0,
            help='how long changes of a request that does not fit are tried; '
                 '0 to try none (default: 60)')

    def check(self, parsed_args: argparse.Namespace) -> None:
        super().check(parsed_args)
        if parsed_args.for_tenant and (
                parsed_args.formatter != base.TABLE or parsed_args.columns):
            raise errors.UsageError(
                '--for-tenant is a text: it does not go with -f and -c')

    def run(self, parsed_args: argparse.Namespace) -> int:
        before = gc.get_threshold()
        gc.set_threshold(_NEW_OBJECTS, *before[1:])
        try:
            return super().run(parsed_args)
        finally:
            gc.set_threshold(*before)

    @abc.abstractmethod
    def subject(self, cloud: snapshot.Cloud, state: ty.Any,
                parsed_args: argparse.Namespace) -> ty.Any:
        """Return an ``ops.model.requests.subject.ExplainSubject``."""

    def report(self, parsed_args: argparse.Namespace) -> planning.Output:
        cloud = self.cloud.read(self, parsed_args)
        from nfv_sched.ops.answers.explain import explanation
        from nfv_sched.ops.answers.explain import next_steps
        from nfv_sched.ops.answers.explain import rendering as of_explain
        from nfv_sched.ops.simulator import start
        with start.started(cloud) as state:
            about = self.subject(cloud, state, parsed_args)
            with progress.shown() as update:
                explained = explanation.explain(
                    state, about, progress=update,
                    relax_seconds=parsed_args.try_seconds)
        # The same cloud and ports, for other commands.
        options = base.configuration(parsed_args)
        if parsed_args.source is not None:
            options += ['--from', parsed_args.source]
        for network in parsed_args.networks:
            options += ['--network', network]
        if not parsed_args.networks:
            options += next_steps.own_ports(about)
        explained = dataclasses.replace(explained, next_steps=tuple(
            next_steps.find(cloud, about, explained, options)))
        names = frozenset(arguments.chosen(
            [host.host for host in explained.hosts], parsed_args.patterns,
            'host'))
        self.has_findings = not explained.fits
        shown = {each.host: each for each in explained.hosts
                 if each.host in names}
        best_first = of_explain.best_first(explained, shown.values())
        columns, rows = self.cells(
            parsed_args, of_explain.COLUMNS, list(shown.values()))
        text: Iterable[tables.Part] = ()
        if parsed_args.for_tenant:
            text = of_explain.tenant_text(explained, about)
        elif parsed_args.formatter == base.TABLE:
            text = of_explain.text(
                explained, best_first if not parsed_args.sort_columns else [
                    shown[row[0]] for row in base.sorted_by(
                        parsed_args, columns, rows)],
                most=None if parsed_args.all or parsed_args.patterns
                else of_explain.SHOWN, details=parsed_args.details,
                all_filters=parsed_args.all_filters)
        return planning.Output(
            text=list(text), table=of_explain.host_table(best_first),
            columns=columns, rows=rows,
            document=documents.Document(dataclasses.replace(
                explained, hosts=tuple(shown.values())), ('hosts',)))


class ExplainServer(_Explain):
    """Explain where a server fits, and why not elsewhere.

    A server without a host is scheduled again in a copy of the cloud, as Nova
    has stored its request. A server that runs is scheduled as if it were
    booted now, with its resources free: where it would go, and where else it
    could be.
    """

    schemas = {'server-explain': explain_document.Explained,
               'server-explain-then': journal_document.JournalRefusals,
               'server-explain-shadow': journal_document.ShadowReport}
    background = """\
With --then, the decision journal says why a server was refused, or would have
been if what is in shadow had counted. Without a server it lists all refusals,
the oldest first: how many hosts the first recorded filter got, which filter
removed the last one, and the reason that most hosts have, or what Placement
was asked.

"""
    epilog = _SHARED + """\
examples:
  nfv-sched server explain router-7 --from cloud.json.gz --host 'c-1*'
  nfv-sched server explain router-7 --network provider,physnet=physnet0
  nfv-sched server explain 8b1d6a52-0e0b-4b5a-9a55-2f7a51f0c111 --then
  nfv-sched server explain --then --shadow --journal c1 --journal c2

exit code: 0 if it would fit, and for a list of refusals, 3 if it would not, or
was not, 1 if something could not be read, 2 if the command line is wrong.
"""

    replaced_networks = ', in place of all its own networks'
    least_important = rendering.LEAST_IMPORTANT  # of a list of refusals

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument('server', metavar='UUID|NAME', nargs='?',
                            help='a server, by its unique name; optional '
                                 'with --then')
        parser.add_argument(
            '--then', action='store_true',
            help='explain the recorded refusal, from [nfv_sched] '
                 'decision_journal of this host, not the present '
                 'state; without a server, list all refusals')
        parser.add_argument(
            '--full', action='store_true',
            help='with --then and no server: all reasons and their hosts')
        parser.add_argument(
            '--shadow', action='store_true',
            help='with --then and no server: count the servers that were '
                 'refused, and those that would have been, or gone to another '
                 'host, if the filters and weighers in shadow had counted')
        parser.add_argument(
            '--days', type=float, metavar='N',
            help='with --shadow: count the last N days only')
        parser.add_argument(
            '--journal', metavar='DIR', action='append', default=[],
            help='with --then: directory of the journal, instead of that of '
                 'the configuration; can be repeated, for the journals of '
                 'several hosts with nova-scheduler')

    def check(self, parsed_args: argparse.Namespace) -> None:
        super().check(parsed_args)
        if parsed_args.shadow and parsed_args.server is not None:
            raise errors.UsageError('--shadow is about all servers')
        if parsed_args.days is not None and not (
                parsed_args.shadow and parsed_args.days > 0):
            raise errors.UsageError(
                '--days goes with --shadow, and needs a number above 0')
        if parsed_args.then:
            if parsed_args.for_tenant:
                raise errors.UsageError('--for-tenant does not go with --then')
            return
        if parsed_args.server is None:
            raise errors.UsageError(
                'name a server, or add --then to list all refusals')
        for option in ('full', 'shadow', 'journal'):
            if getattr(parsed_args, option):
                raise errors.UsageError(f'--{option} needs --then')

    def report(self, parsed_args: argparse.Namespace) -> planning.Output:
        if not parsed_args.then:
            return super().report(parsed_args)
        lists_all = parsed_args.server is None
        if not (directories := parsed_args.journal):
            source.configure(base.configuration(parsed_args), databases=False)
            directories = [source.option('decision_journal')]
            if not directories[0]:
                raise errors.CloudUnreadError(
                    'there is no journal: [nfv_sched] decision_journal is '
                    'not set')
        read = reading.read(
            *directories, required=bool(parsed_args.journal),
            server=None if lists_all else self._uuid(parsed_args))
        self.unread += read.unread
        if lists_all or not read.refusals:
            self.app.stderr.write(rendering.missing(read.lost, read.removed))
        if parsed_args.shadow:
            since = ('' if parsed_args.days is None else
                     writer.stamp(max(time.time() - 86400 *
                                      parsed_args.days, 0)))
            report = journal_document.shadow_report(
                read.placed, since, read.refusals)
            columns, rows = self.cells(
                parsed_args, rendering.SHADOW_COLUMNS, report.counts)
            return planning.Output(
                text=rendering.shadow_text(report), columns=columns,
                rows=rows, document=documents.Document(report, ('counts',)))
        entries = read.refusals if lists_all else sorted(
            (*read.refusals, *read.placed), key=lambda each: each.time)
        self.has_findings = bool(read.refusals) and not lists_all
        text: list[tables.Part] = []
        if not entries:
            which = 's' if lists_all else ' of this server'
            text = [f'The journal has no refusal{which}.']
        elif not lists_all:
            text = [part for each in entries
                    for part in ('', *rendering.text(each))][1:]
        columns, rows = self.cells(parsed_args, rendering.columns(
            parsed_args.full or not lists_all), entries)
        return planning.Output(
            text=text, columns=columns, rows=rows, document=documents.Document(
                journal_document.refusals(read, not lists_all),
                ('refusals',)))

    def _uuid(self, parsed_args: argparse.Namespace) -> str:
        if uuidutils.is_uuid_like(parsed_args.server):
            return parsed_args.server
        cloud = self.cloud.read(self, parsed_args)
        return arguments.server(cloud, parsed_args.server).uuid

    def subject(self, cloud, state, parsed_args):
        from nfv_sched.ops.model.requests import subject
        return subject.server(cloud, state, parsed_args.server,
                              parsed_args.networks)


class ExplainFlavor(_Explain):
    """Explain where new servers of a flavor fit, and why not elsewhere."""

    schemas = {'flavor-explain': explain_document.Explained}
    epilog = _SHARED + """\
examples:
  nfv-sched flavor explain vrouter.16 --network provider --count 3
  nfv-sched flavor explain fw.8 --image fw-2026.1
  nfv-sched flavor explain fw.8 --group spread --from cloud.json.gz

exit code: 0 if it would fit, 3 if it would not, 1 if something could not be
read, 2 if the command line is wrong.
"""

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument('flavor', metavar='NAME', help='the flavor')
        arguments.add_image(parser)
        arguments.add_zone(parser, dest='zone', metavar='ZONE',
                           help='availability zone')
        parser.add_argument(
            '--group', metavar='UUID|NAME', help='server group')
        parser.add_argument(
            '--count', type=int, default=1, metavar='N',
            help=f'make so many servers by one request, {_MOST_SERVERS} at '
                 'most (default: 1)')

    def subject(self, cloud, state, parsed_args):
        from nfv_sched.ops.model.requests import subject
        if not 1 <= parsed_args.count <= _MOST_SERVERS:
            raise errors.UsageError(f'--count: 1 to {_MOST_SERVERS} needed')
        return subject.flavor(
            cloud, state, parsed_args.flavor,
            image=arguments.glance_properties(parsed_args),
            networks=parsed_args.networks, zone=parsed_args.zone,
            group=parsed_args.group, count=parsed_args.count)
