# SPDX-License-Identifier: Apache-2.0
"""Define the base of commands that print a plan or a report.

Each prints text for people, rows for scripts (``-f value``, ``-f csv``), and
everything as a document (``-f json``, ``-f yaml``).  A plan can also be
printed as commands to run (``-f commands``).
"""

import abc
import argparse
from collections.abc import Iterable, Sequence
import contextlib
import dataclasses
import glob
import os
import re
import textwrap
import typing as ty

from nfv_sched.ops.answers.plans import document
from nfv_sched.ops.cli import atomic_file
from nfv_sched.ops.cli import base
from nfv_sched.ops.cli import documents
from nfv_sched.ops.cli import errors
from nfv_sched.ops.cli import formats
from nfv_sched.ops.cli import tables
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.commands import arguments
from nfv_sched.ops.commands import changes
from nfv_sched.ops.commands import plan_execution
from nfv_sched.ops.commands import plan_file
from nfv_sched.ops.commands import source
from nfv_sched.ops.simulator import progress

_ROUND = re.compile(r'\.round-([0-9]+)\.journal$')

MOVES_HELP = """\
Nothing is moved without --run. Before a plan is shown, it is carried out in
the simulator by Nova's own scheduler and claims.

"plan run" carries out a plan that --save has written; --run does so at once,
after it has shown the plan and asked. -f commands: only the commands that
begin the moves; who runs them waits, and confirms cold migrations.
"""


def exit_codes(findings: str) -> str:
    """Return the meaning of the exit codes; 3 is for ``findings``."""
    return textwrap.fill(
        f'{base.EXIT_CODES.rpartition(".")[0]}; 3 if {findings}.', 79) + '\n'


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """The result of a command, prepared for all formats."""

    #: for people, with a table of some of the columns; without it, they get
    #: the table of the rows
    text: Sequence[tables.Part] = ()
    #: for people, below the table of the rows
    below: Sequence[tables.Part] = ()
    columns: Sequence[str]
    rows: Sequence[Sequence[ty.Any]]
    document: documents.Document
    commands: Sequence[str] = ()  #: lines for a shell, or of a file
    #: the table of the text, shown or not; None if it has no other columns
    #: than the rows
    table: tables.Table | None = None


class Report(base.Lister, metaclass=abc.ABCMeta):
    @abc.abstractmethod
    def report(self, parsed_args: argparse.Namespace) -> Output:
        """Compute the result; set ``has_findings`` if it calls for action."""

    def take_action(self, parsed_args: argparse.Namespace) -> tuple:
        self._output = self.report(parsed_args)
        self._document = self._output.document
        return self._output.columns, self._output.rows

    def produce_output(self, parsed_args: argparse.Namespace,
                       column_names: Sequence[str], data: Iterable) -> int:
        formatter, output = parsed_args.formatter, self._output
        if self.formats[formatter] is formats.Commands:
            self.app.stdout.writelines(f'{line}\n' for line in output.commands)
            return 0
        is_text = formatter == base.TABLE and not parsed_args.columns
        if is_text and output.text:
            self.check_columns(parsed_args, column_names)
            self.print_text(parsed_args, output.text)
            return 0
        if formatter == base.TABLE and output.table is not None:
            column_names, data = base.on_screen(
                parsed_args, output.table, column_names, data)
        code = super().produce_output(parsed_args, column_names, data)
        if is_text:
            self.print_text(parsed_args, output.below)
        return code


class PlanCommand(Report):
    """Base of the commands that plan; adds the format ``commands``."""

    formats = {**formats.LIST, formats.COMMANDS: formats.Commands}


class MovePlanCommand(plan_execution.RunMixin, PlanCommand):
    """Base of the commands whose plans can be saved and carried out."""

    cloud = source.Source(simulates=True, has_account=False)
    writes = 'save'
    migrates = True  #: whether the moves are migrations of servers

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            '--save', metavar='FILE',
            help='also write the plan to a file, for "plan run FILE"; with - '
                 'only the plan is on standard output')
        parser.add_argument(
            '--run', action='store_true',
            help='with --save: carry the plan out, too, as "plan run" does')
        self.add_run_options(
            parser.add_argument_group(base.RUN_GROUP), 'with --run: ')
        if self.migrates:
            kinds = parser.add_mutually_exclusive_group()
            kinds.add_argument(
                '--cold-for-vfs', action='store_true',
                help='migrate a server cold if Nova would detach VFs from it '
                     'during a live migration')
            kinds.add_argument('--live-only', action='store_true',
                               help='migrate no server cold')
            arguments.add_avoid(parser)
            parser.add_argument(
                '--mib-per-second', type=arguments.positive, metavar='N',
                help='estimate the time, if a host sends N MiB in a second')

    def move_options(self,
                     parsed_args: argparse.Namespace) -> dict[str, ty.Any]:
        return {'avoid': tuple(parsed_args.avoid),
                'cold_for_vfs': parsed_args.cold_for_vfs,
                'live_only': parsed_args.live_only}

    def check(self, parsed_args: argparse.Namespace) -> None:
        if parsed_args.save is not None and changes.is_changed(parsed_args):
            raise errors.UsageError(
                f'--save goes with none of {changes.CHANGES}: the plan would '
                'not suit the cloud')
        if parsed_args.run:
            self._check_run(parsed_args)
        else:
            for option in ('yes', 'replan', 'dry_run', 'parallel', 'timeout',
                           'enable_after'):
                if getattr(parsed_args, option) and not (
                        option == 'parallel' and self.migrates
                        and parsed_args.mib_per_second):
                    raise errors.UsageError(
                        f'--{option.replace("_", "-")} is for --run')
        if not (parsed_args.run or self.cloud.has_account) and (
                getattr(parsed_args, 'os_cloud', None) is not None):
            raise errors.UsageError(
                "--os-cloud is for --run: the plan needs Nova's databases, "
                'where nova.conf names them, or --from FILE')
        super().check(parsed_args)

    def _check_run(self, parsed_args: argparse.Namespace) -> None:
        if parsed_args.save is None or atomic_file.is_stdout(parsed_args.save):
            raise errors.UsageError('--run needs --save FILE: "plan run FILE" '
                                    'goes on after an interruption')
        if parsed_args.formatter != base.TABLE:
            raise errors.UsageError('--run is not for -f')
        if parsed_args.replan and source.is_file(parsed_args.source):
            raise errors.UsageError(
                '--replan is not for --from: the file does not show the '
                'cloud as it is after a failure')
        self.check_terminal(parsed_args)

    def make_plan(self, parsed_args: argparse.Namespace,
                  cloud: snapshot.Cloud, update: ty.Any) -> ty.Any:
        """Return a document with moves."""
        raise NotImplementedError

    def report(self, parsed_args: argparse.Namespace) -> Output:
        cloud = self.cloud.read(self, parsed_args)
        with progress.shown() as update:
            plan = self.make_plan(parsed_args, cloud, update)
        if self.migrates and parsed_args.mib_per_second:
            plan = document.with_time(
                plan, parsed_args.mib_per_second,
                parsed_args.parallel or plan_execution.PARALLEL)
        moves = plan_file.moves_of(plan)
        self.has_findings = bool(
            moves.left_undone or getattr(plan, 'not_emptied', ()))
        from nfv_sched.ops.answers.plans import rendering
        text, columns, rows = rendering.parts(plan)
        return Output(
            text=text, columns=[each.title for each in columns],
            rows=[[each.cell(row) for each in columns] for row in rows],
            document=plan_file.document_of(plan),
            commands=list(rendering.commands(moves)))

    def run(self, parsed_args: argparse.Namespace) -> int:
        # Cliff does not return what produce_output() does.
        self._run_code = 0
        return super().run(parsed_args) or self._run_code

    def save(self, parsed_args: argparse.Namespace,
             document: documents.Document) -> None:
        """Write a plan to a file, if so asked, as ``-f json`` prints it.

        :raises CloudUnreadError: if it cannot be written, or another plan of
            the file has been begun, or is being carried out
        """
        if (path := parsed_args.save) is None:
            return
        digest = plan_file.digest(document.text('json').encode())
        rounds = [int(match[1]) for match in map(
            _ROUND.search, glob.glob(f'{glob.escape(path)}.round-*.journal'))
            if match]
        # Nobody else carries a plan of the file out meanwhile.
        with contextlib.ExitStack() as stack:
            for number in (0, *rounds):
                journal, plan = plan_file.journal_of(path, digest, number)
                if not os.path.lexists(journal):
                    continue
                from nfv_sched.ops.run import runner
                try:
                    stack.enter_context(contextlib.closing(
                        runner.MoveJournal(journal, plan)))
                except runner.MoveJournalError as exc:
                    raise errors.CloudUnreadError(
                        f'{path} is not written: {exc}; to go on with the '
                        'plan in it: '
                        + self._run_command(parsed_args, number)) from exc
            self._saved = plan_file.save(path, document)

    def _run_command(self, parsed_args: argparse.Namespace,
                     round_number: int = 1, *options: str) -> str:
        words = ['plan', 'run', parsed_args.save]
        if round_number > 1:
            words += ['--round', str(round_number)]
        if (account := getattr(parsed_args, 'os_cloud', None)) is not None:
            words += ['--os-cloud', account]
        words += base.configuration(parsed_args)
        if parsed_args.source and not source.is_file(parsed_args.source):
            words += ['--from', parsed_args.source]
        return self.command_text([*words, *options])

    def rest_command(self, parsed_args: argparse.Namespace) -> str:
        """Return what goes on with the plan; this command plans anew."""
        options = [word for option in ('parallel', 'timeout')
                   if (value := getattr(parsed_args, option)) is not None
                   for word in (f'--{option}', str(value))]
        return self._run_command(
            parsed_args, 1, *options,
            *['--enable-after'] * parsed_args.enable_after)

    def take_action(self, parsed_args: argparse.Namespace) -> tuple:
        result = super().take_action(parsed_args)
        self.save(parsed_args, self._document)
        return result

    def produce_output(self, parsed_args: argparse.Namespace,
                       column_names: Sequence[str], data: Iterable) -> int:
        """Print the plan; carry it out, or say how it is checked."""
        code = super().produce_output(parsed_args, column_names, data)
        if parsed_args.run:
            self.check_complete()
            # They were those of the plan.
            self.has_findings = False
            self._run_code = self.carry_out(parsed_args, self._saved)
        elif parsed_args.save is not None and (
                parsed_args.formatter == base.TABLE):
            words = ['--dry-run'] + ['--from', parsed_args.source] * (
                self.migrates and source.is_file(parsed_args.source))
            self.print_line(f'Saved: {parsed_args.save}. To check it: '
                            + self._run_command(parsed_args, 1, *words))
        return code
