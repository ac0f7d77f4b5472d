# SPDX-License-Identifier: Apache-2.0
"""The command ``nfv-sched simulation run``."""

import argparse
from collections.abc import Iterator, Sequence
import dataclasses
import itertools
import typing as ty

from nfv_sched.base import strings
from nfv_sched.ops.answers.simulation import document
from nfv_sched.ops.cli import base
from nfv_sched.ops.cli import documents
from nfv_sched.ops.cli import errors
from nfv_sched.ops.cli import tables
from nfv_sched.ops.cloud.cloud_file import examples
from nfv_sched.ops.commands import changes
from nfv_sched.ops.commands import snapshot as snapshot_command
from nfv_sched.ops.commands import source
from nfv_sched.ops.simulator import progress

_EPILOG = """\
vSwitch and Places say whether the NUMA nodes of a server are near the switch
or a place, PCI whether its devices are on its NUMA nodes: local if all are,
partial if some, remote if none. The policy is in brackets.

examples:
  nfv-sched simulation run --list-examples
  nfv-sched simulation run cloud.yaml --config-file /etc/nova/nova.conf
  nfv-sched simulation run --from cloud.json.gz --add-hosts 4:c-7 steps.yaml
  nfv-sched simulation run cloud.yaml --save cloud.json.gz
  nfv-sched simulation run --from cloud.json.gz --sequence servers.csv

exit code: 0 if all expectations are met, 3 if one is not; 1 if a file cannot
be read or used, 2 if the command line is wrong.
"""

_ALL = 'servers', 'hosts', 'network', 'steps'
#: Value of --show -> sections; others are the name of one.
_SECTIONS = {'both': _ALL[:3], 'all': _ALL}
#: Default for a sequence: it may have thousands of servers.
_OF_SEQUENCE = 'requests', 'hosts', 'network'


def _servers_and_hosts(result, all_hosts: bool):
    """Return the servers and hosts of a result that its steps concern."""
    names = {outcome.server for outcome in result.outcomes}
    hosts = {name for outcome in result.outcomes
             for name in (outcome.source, outcome.destination,
                          outcome.server)}
    return dataclasses.replace(
        result,
        servers=[server for server in result.servers if server.name in names],
        hosts=[host for host in result.hosts
               if all_hosts or host.name in hosts])


class RunSimulation(base.Lister):
    """Simulate a cloud file with Nova's own scheduler and claims.

    CLOUD is a YAML file with hosts, flavors, networks and steps: boots,
    deletes and moves, with expectations. The output shows the host, host NUMA
    nodes and pinned CPUs of each server, or why it was refused; of several
    files, a line each. No service, database or network is needed.

    With --from, CLOUD has steps, flavors and other things that they need. Only
    the servers and hosts of the steps are shown.
    """

    epilog = _EPILOG
    writes = 'save'
    schemas = {'simulation-run': document.SimulatedCloud,
               'simulation-run-sequence': document.SimulatedSequence,
               'simulation-run-files': document.SimulatedFiles,
               'simulation-run-examples': document.ExampleClouds}

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        what = parser.add_mutually_exclusive_group()
        what.add_argument(
            'clouds', nargs='*', default=[], metavar='CLOUD',
            help='cloud file; of several, whether expectations are met')
        what.add_argument(
            '--example', metavar='NAME',
            help='run an example that comes with nfv-sched')
        what.add_argument(
            '--list-examples', action='store_true',
            help='list the examples and where they are')
        parser.add_argument(
            '--from', dest='source', metavar='FILE',
            help='a snapshot, a URL, a cloud file, or the name of an example: '
                 'CLOUD has no hosts, but steps for the servers and hosts '
                 'that are there')
        parser.add_argument(
            '--sequence', metavar='FILE',
            help='then boot and delete pinned servers: csv with the columns '
                 'arrival, vcpus, memory (MiB) and, if wanted, departure, '
                 'numa_nodes, group, policy; with --from, CLOUD is not needed')
        changes.add_changes(parser.add_argument_group('the cloud'))
        parser.add_argument(
            '--show', choices=[*_ALL, 'requests', *_SECTIONS],
            help='servers at the end, used resources of the hosts, their '
                 'network load, the steps, or the sizes of --sequence '
                 '(default: servers, or sizes, and hosts, and network if '
                 'there is any; csv and value: servers, or sizes)')
        parser.add_argument(
            '--reasons', choices=['none', 'policy', 'summary', 'hosts'],
            help='how much a refusal by a filter of nfv-sched says '
                 '(default: what the file or configuration says, else hosts)')
        parser.add_argument(
            '--seed', type=int, default=0, metavar='N',
            help='Nova chooses at random among equal hosts; another number '
                 'makes another choice (default: 0)')
        parser.add_argument(
            '--save', metavar='FILE',
            help='save the cloud at the end as a snapshot, to be read with '
                 '--from without running the steps again; - for standard '
                 'output')
        parser.add_argument(
            '--anonymize', action='store_true',
            help='with --save: replace names and UUIDs')
        parser.add_argument(
            '--config-file', action='append', default=[], metavar='FILE',
            help='configuration of nova-scheduler to use, such as nova.conf; '
                 'with --from, options of that file replace it; can be '
                 'repeated')

    def check(self, parsed_args: argparse.Namespace) -> None:
        if parsed_args.anonymize and parsed_args.save is None:
            raise errors.UsageError('--anonymize is for --save')
        for option in ('save', 'sequence'):
            if getattr(parsed_args, option) is not None and (
                    parsed_args.list_examples or len(parsed_args.clouds) > 1):
                raise errors.UsageError(f'--{option} is for a single cloud')
        if parsed_args.show == 'requests' and parsed_args.sequence is None:
            raise errors.UsageError('--show requests is for --sequence')
        if not (parsed_args.clouds or parsed_args.example is not None
                or parsed_args.list_examples or parsed_args.source is not None
                and parsed_args.sequence is not None):
            raise errors.UsageError(
                'one of CLOUD, --example and --list-examples is needed')
        if parsed_args.source is None and changes.is_changed(parsed_args):
            raise errors.UsageError(
                f'{changes.CHANGES} are for --from; a cloud file has its '
                'hosts and options in itself')

    def run(self, parsed_args: argparse.Namespace) -> int:
        self._failures: list[str] = []
        try:
            code = super().run(parsed_args)
            self.app.stdout.flush()
        except BrokenPipeError:
            base.discard_output()
            code = 0
        if not self._failures:
            return code
        self.app.stderr.write(
            f'{strings.count(len(self._failures), "expectation")} failed:\n')
        for failure in self._failures:
            self.app.stderr.write(f'  {failure}\n')
        return code or base.FINDINGS

    def take_action(self, parsed_args: argparse.Namespace):
        self._tables: dict[str, tables.Table] = {}
        self._sizes: tuple[document.RequestedSize, ...] = ()
        if parsed_args.list_examples:
            clouds = tuple([
                document.ExampleCloud(
                    name=name, description=examples.description(path),
                    file=str(path))
                for name, path in examples.find().items()])
            self._document = documents.Document(
                document.ExampleClouds(examples=clouds), ('examples',))
            return self.cells(parsed_args, [
                tables.Column(name.capitalize(), name)
                for name in ('name', 'description', 'file')], clouds)
        paths = parsed_args.clouds
        if parsed_args.source is not None:
            if parsed_args.example is not None:
                raise errors.UsageError('--from needs files with steps')
            self._cloud = source.load(parsed_args.source,
                                      parsed_args.config_file)
            self.unread = [f'{parsed_args.source}: {missing}'
                           for missing in self._cloud.missing]
            self._cloud, notes = changes.changed(self._cloud, parsed_args)
            self.app.stderr.writelines(f'note: {note}\n' for note in notes)
        if parsed_args.example is not None:
            by_name = examples.find()
            if parsed_args.example not in by_name:
                raise errors.UsageError(
                    f'no example named {parsed_args.example!r}; there are: '
                    f'{", ".join(by_name) or "none"}')
            paths = [str(by_name[parsed_args.example])]
        if len(paths) > 1:
            if parsed_args.show:
                raise errors.UsageError('--show is for a single file')
            files = tuple([self._check(path, parsed_args) for path in paths])
            self._document = documents.Document(
                document.SimulatedFiles(files=files), ('files',))
            return self.cells(parsed_args, [
                tables.Column(field.name.capitalize(), field.name)
                for field in dataclasses.fields(document.SimulatedFile)],
                files)
        return self._simulate(paths[0] if paths else None, parsed_args)

    def _check(self, path: str, parsed_args: argparse.Namespace,
               ) -> document.SimulatedFile:
        result = self._run_cloud(path, parsed_args)
        self._failures += result.failures
        succeeded = sum(outcome.ok for outcome in result.outcomes)
        return document.SimulatedFile(
            file=path, hosts=len(result.hosts), done=succeeded,
            refused=len(result.outcomes) - succeeded,
            expectations=result.checks, failed=len(result.failures),
            seconds=round(result.seconds, 1))

    @staticmethod
    def _sections_to_show(parsed_args: argparse.Namespace) -> tuple[str, ...]:
        one_table = parsed_args.formatter in ('csv', 'value')
        show = parsed_args.show or ('servers' if one_table else 'both')
        sections = _SECTIONS.get(show, (show,))
        if parsed_args.sequence is not None:
            if parsed_args.show is None:
                sections = _OF_SEQUENCE[:1] if one_table else _OF_SEQUENCE
            elif show in _SECTIONS:
                sections = ('requests', *sections)
        if one_table and len(sections) > 1:
            raise errors.UsageError(
                f'-f {parsed_args.formatter} has room for one table: use '
                '--show servers, hosts, network, steps or requests')
        return sections

    def _run_cloud(self, path: str | None, parsed_args: argparse.Namespace):
        from nfv_sched.ops.answers.simulation import reading
        from nfv_sched.ops.answers.simulation import report
        from nfv_sched.ops.simulator import engine
        from nfv_sched.ops.simulator import start
        how = {'reasons': parsed_args.reasons, 'seed': parsed_args.seed}
        if parsed_args.source is None:
            started = reading.loaded(
                path, config_files=parsed_args.config_file,
                sequence_path=parsed_args.sequence, **how)
        else:
            started = start.started(self._cloud, **how, scenario=(
                reading.steps(path, self._cloud, parsed_args.sequence)))
        with started as state, progress.shown() as update:
            result = engine.Simulation(state, update).run()
            self._save(state, parsed_args)
            if parsed_args.sequence is not None:
                self._sizes = report.count_requests(state, result)
        return result if parsed_args.source is None else _servers_and_hosts(
            result, parsed_args.show == 'hosts'
            or parsed_args.sequence is not None)

    def _save(self, state: ty.Any, parsed_args: argparse.Namespace) -> None:
        if parsed_args.save is None:
            return
        from nfv_sched.ops.simulator import record
        cloud = record.cloud(state)
        if parsed_args.source is not None:
            # What was not read of the first cloud is missing in this one.
            cloud = dataclasses.replace(
                cloud, missing=self._cloud.missing,
                anonymous=self._cloud.anonymous)
        # Standard output has the result, perhaps as a document.
        self.app.stderr.writelines(snapshot_command.save(
            cloud, parsed_args.save, parsed_args.anonymize))

    def _simulate(self, path: str, parsed_args: argparse.Namespace):
        sections = self._sections_to_show(parsed_args)
        result = self._run_cloud(path, parsed_args)
        self._failures += result.failures
        from nfv_sched.ops.answers.simulation import report
        from nfv_sched.ops.simulator import network
        if sections == _OF_SEQUENCE and not result.scenario.alike and (
                len(result.hosts) > report.MANY_HOSTS):
            sections = _OF_SEQUENCE[:1]
        if len(sections) > 1 and not network.is_told(result.scenario):
            sections = tuple(key for key in sections if key != 'network')
        if parsed_args.formatter in documents.FORMATS:
            self._document = documents.Document(
                report.cloud_document(result, sections, self._sizes), sections)
            return (), ()
        self._summary = report.summary(result)
        for key in sections:
            table = report.table(
                result, key, parsed_args.show == key, self._sizes)
            self._tables[table.title] = tables.Table(
                *self.cells(parsed_args, table.columns, table.rows),
                report.LEAST_IMPORTANT, is_whole=bool(parsed_args.columns))
        first, *_others = self._tables.values()
        return first.columns, first.rows

    def produce_output(self, parsed_args: argparse.Namespace,
                       column_names: Sequence[str], data: ty.Iterable) -> int:
        if not self._tables or parsed_args.formatter != base.TABLE:
            return super().produce_output(parsed_args, column_names, data)
        self.check_columns(parsed_args, list(dict.fromkeys(
            column for table in self._tables.values()
            for column in table.columns)))
        self.print_text(parsed_args, self._text(parsed_args.columns))
        return 0

    def _text(self, chosen: Sequence[str]) -> Iterator[tables.Part]:
        for title, table in self._tables.items():
            picked = [column in chosen if chosen
                      else column not in self.details
                      for column in table.columns]
            if any(picked):
                yield title
                yield dataclasses.replace(
                    table,
                    columns=list(itertools.compress(table.columns, picked)),
                    rows=[list(itertools.compress(row, picked))
                          for row in table.rows])
                yield ''
        if not chosen:
            yield self._summary
