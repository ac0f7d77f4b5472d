# SPDX-License-Identifier: Apache-2.0
"""Carry out plans for commands."""

import argparse
from collections.abc import Callable, Iterable, Iterator, Mapping
import contextlib
import shlex
import signal
import sys
import time
import typing as ty

from nfv_sched.base import files
from nfv_sched.base import strings
from nfv_sched.ops.cli import base
from nfv_sched.ops.cli import errors
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.commands import arguments
from nfv_sched.ops.commands import plan_file
from nfv_sched.ops.commands import source
from nfv_sched.ops.run import values

if ty.TYPE_CHECKING:
    from nfv_sched.ops.run import runner

#: Default maximum number of moves at a time.
PARALLEL = 4
#: Default time after which a move is not waited for any longer, in seconds.
TIMEOUT = 3600

_ENABLE = ('openstack', 'compute', 'service', 'set', '--enable', '--')
_UNSHELVE = ('openstack', 'server', 'unshelve', '--')
_INTERRUPTED = 130
NO_ENABLE = '--enable-after is for a plan that empties one host'
_CHANGED = 'Nothing was changed: the cloud is not as the plan says.'


class RunMixin:
    """Mixin of a subcommand that carries out a plan."""

    closes_hosts = False  #: whether plans may empty a host

    def add_run_options(self, parser: argparse.ArgumentParser,
                        condition: str = '') -> None:
        if not (self.in_client or self.cloud and self.cloud.has_account):
            parser.add_argument(
                '--os-cloud', metavar='NAME',
                help=f'{condition}the account of this name in clouds.yaml '
                     '(default: that of the OS_* variables)')
        parser.add_argument(
            '--yes', action='store_true',
            help=f'{condition}do not ask whether to begin; needed without a '
                 'terminal')
        aims = parser.add_mutually_exclusive_group()
        aims.add_argument(
            '--dry-run', action='store_true',
            help=f'{condition}check the plan against the cloud, and change '
                 'nothing')
        parser.add_argument(
            '--parallel', type=arguments.positive, metavar='N',
            help=f'{condition}maximum number of moves at a time (default: '
                 f'{PARALLEL})')
        parser.add_argument(
            '--timeout', type=arguments.positive, metavar='SECONDS',
            help=f'{condition}time after which a move is not waited for any '
                 f'longer (default: {TIMEOUT})')
        parser.set_defaults(enable_after=False, journal=None)
        if self.closes_hosts:
            parser.add_argument(
                '--enable-after', action='store_true',
                help=f'{condition}enable the host again when all moves are '
                     'made')
        aims.add_argument(
            '--replan', type=arguments.positive, metavar='N', default=0,
            help=f'{condition}if a move fails, or the cloud is not as the '
                 'plan says, plan again and go on, at most N times')

    def cloud_again(self, parsed_args: argparse.Namespace,
                    saved: plan_file.SavedPlan) -> snapshot.Cloud:
        """Read the cloud as it is now, for a new plan."""
        return self.cloud.read(
            self, parsed_args, ('network_agents',), self.print_line)

    def current_cloud(self, parsed_args: argparse.Namespace) -> snapshot.Cloud:
        """Read the cloud as it is now, or wait for a snapshot of it."""
        if parsed_args.source is None:
            return source.live_cloud(self, parsed_args)
        if source.is_file(parsed_args.source):
            raise errors.NotConfiguredError('a file, not a cloud')
        return source.load(
            parsed_args.source, parsed_args.config_file, self.print_line)

    def rest_command(self, parsed_args: argparse.Namespace) -> str | None:
        """Return what goes on with the plan; None if this command does."""
        return None

    def check_terminal(self, parsed_args: argparse.Namespace) -> None:
        """Check that somebody can be asked, if that is needed."""
        if not (parsed_args.dry_run or parsed_args.yes
                or self.app.stdin.isatty()):
            raise errors.UsageError(
                '--yes is needed where nobody can be asked: standard input '
                'is not a terminal')

    def check_complete(self) -> None:
        missing, self.unread = self.unread, []
        if missing:
            raise errors.CloudUnreadError('\n'.join([
                *missing, 'the plan is not run, as it may be wrong: '
                'see "plan run"']))

    def carry_out(self, parsed_args: argparse.Namespace,
                  saved: plan_file.SavedPlan,
                  cloud: snapshot.Cloud | None = None) -> int:
        """Carry out a plan, and print what is done; return the exit code.

        :param cloud: of a file, on which the moves are only tried
        :raises CloudUnreadError: if the plan, the journal or an API cannot be
            used
        """
        with files.naming('the plan', errors.CloudUnreadError):
            saved.plan.check()
        path, journal_plan = plan_file.journal_of(
            saved.path, saved.digest, saved.plan.round)
        from nfv_sched.base import http_limits
        from nfv_sched.ops.run import moves
        from nfv_sched.ops.run import runner
        with contextlib.ExitStack() as stack:
            journal = stack.enter_context(contextlib.closing(
                runner.MoveJournal(parsed_args.journal or path, journal_plan,
                                   write=not parsed_args.dry_run)))
            execution = _Execution(self, parsed_args, saved, journal)
            # Whatever happens: errors, signals, and a cloud that has changed.
            stack.callback(execution.say_closed)
            stack.enter_context(_on_signal(
                signal.default_int_handler, signal.SIGTERM))
            execution.print_plan()
            if cloud is not None:
                return execution.simulate(cloud)
            connection = stack.enter_context(
                source.connection(self, parsed_args))
            stack.enter_context(http_limits.limited(connection.session))
            try:
                return (execution.compare if parsed_args.dry_run
                        else execution.make)(connection)
            except (moves.NoAnswerError, moves.MoveError) as exc:
                raise errors.CloudUnreadError(str(exc)) from exc

    def command_text(self, words: Iterable[str]) -> str:
        program = self.app.NAME + (' nfv' if self.in_client else '')
        return f'{program} {shlex.join(words)}'

    def print_error(self, error: ty.Any) -> int:
        """Write an error to stderr, if that can be written; return 1."""
        try:
            return super().print_error(error)
        except OSError:
            base.discard_output(sys.stderr)
            return 1

    def report_line(self, text: str) -> None:
        """Print a line about a move, which goes on even if that fails."""
        # NOTE: Ctrl-C in "plan run FILE 2>&1 | tee LOG" ends tee at once.
        try:
            self.print_line(text)
        except OSError:
            base.discard_output()

    def print_line(self, text: str) -> None:
        self.app.stdout.write(f'{strings.line(text)}\n')
        self.app.stdout.flush()


class _Execution:
    """Carries out a plan, and those that take its place."""

    def __init__(self, command: RunMixin, parsed_args: argparse.Namespace,
                 saved: plan_file.SavedPlan, journal: 'runner.MoveJournal'):
        self._command = command
        self._args = parsed_args
        self._saved = saved
        self._journal = journal
        self._print = command.print_line
        self._print_error = command.print_error

    def say_closed(self) -> None:
        plan, journal, say = (
            self._saved.plan, self._journal, self._command.report_line)
        for host, is_known in journal.closed.items():
            if host not in plan.given_up_hosts:
                say(f'{host} {"is" if is_known else "may be"} disabled. '
                    'To enable it: '
                    + shlex.join((*_ENABLE, host, 'nova-compute')))
        for host in plan.given_up_hosts:
            say(f'If {host} is not to be emptied later, enable it: '
                + shlex.join((*_ENABLE, host, 'nova-compute')))
        if plan.next_round and all(map(journal.is_done, plan.moves)) and (
                plan.moves or journal.closed):
            say('When that is done, the next round: '
                + self._command.command_text((
                    'plan', 'run', self._saved.path, '--round',
                    str(plan.next_round))))

    def print_plan(self) -> None:
        for warning in self._saved.plan.warnings:
            self._command.app.stderr.write(f'note: {strings.line(warning)}\n')
        for line in self._journal.listed(self._saved.plan):
            self._print(line)

    def _run_of(self, connection: ty.Any) -> 'runner.PlanRun':
        from nfv_sched.ops.run import runner
        return runner.PlanRun(
            connection, self._saved.plan, self._journal,
            most=self._args.parallel or PARALLEL,
            timeout=self._args.timeout or TIMEOUT,
            say=self._command.report_line)

    def _differs(self, run: 'runner.PlanRun') -> bool:
        problems = list(run.problems())
        for problem in problems:
            self._print_error(problem)
        return bool(problems)

    def simulate(self, cloud: snapshot.Cloud) -> int:
        from nfv_sched.ops.model import trial
        problem = trial.problem(cloud, self._journal.left(self._saved.plan))
        if problem:
            self._print_error(problem)
            self._print(_CHANGED)
            return base.FINDINGS
        self._print('Nothing was changed: --dry-run. The moves were made in '
                    f'the simulator, in the cloud as of {cloud.taken}.')
        return 0

    def compare(self, connection: ty.Any) -> int:
        run = self._run_of(connection)
        if self._differs(run):
            self._print(_CHANGED)
            return base.FINDINGS
        self._print('Nothing was changed: --dry-run.')
        returned = [*run.astray(), *run.returned()]
        for clause in returned:
            self._print_error(clause)
        return base.FINDINGS if returned else 0

    def make(self, connection: ty.Any) -> int:
        from nfv_sched.ops.run import moves
        agreed = self._args.yes
        failed: dict[tuple[str, str], str] = {}
        for attempts in range(self._args.replan, -1, -1):
            run = self._run_of(connection)
            # What has begun goes on in any case.
            try:
                is_changed = self._differs(run)
            except (moves.MoveError, moves.NoAnswerError) as exc:
                if not run.in_progress():
                    raise
                self._print_error(exc)
                is_changed = True
            if not is_changed or run.in_progress():
                if not (agreed or self._is_agreed()):
                    self._print('Nothing was changed.')
                    return base.FINDINGS
                agreed = True

                def stop(_number: int, _frame: ty.Any) -> None:
                    # The first signal lets the moves that have begun end.
                    if run.interrupted:
                        raise KeyboardInterrupt
                    run.interrupt()

                with _on_signal(stop, signal.SIGINT, signal.SIGTERM):
                    run.run(only_begun=is_changed)
            elif attempts == self._args.replan and (
                    run.is_early or not attempts):
                self._print(_CHANGED)
                # Hosts that are not back yet are no reason for a new plan.
                if not run.is_early:
                    self._offer()
                return base.FINDINGS
            # A new plan would not know where a move in progress ends, or would
            # do without a host that comes back.
            if run.interrupted or not (is_changed or run.failed) or (
                    run.in_progress() or run.is_early or not attempts):
                break
            self._print('The rest is planned anew.')
            failed.update(run.refused)
            try:
                self._plan_rest(failed)
            except (KeyboardInterrupt, errors.CommandError) as exc:
                for line in str(exc).splitlines():
                    self._print_error(line)
                self._summarize(run)
                return (_INTERRUPTED if isinstance(exc, KeyboardInterrupt)
                        else base.UNREAD)
            self.print_plan()
        return self._summarize(run)

    def _plan_rest(self, failed: Mapping[tuple[str, str], str]) -> None:
        """Save a new plan in place of this one."""
        time.sleep(values.FREED_SECONDS)
        saved, journal = self._saved, self._journal
        cloud = self._command.cloud_again(self._args, saved)
        self._command.check_complete()
        from nfv_sched.ops.commands import replanning
        document = replanning.plan_again(
            saved.document, cloud, failed, saved.plan.round, [
                move.number for move in saved.plan.moves
                if journal.is_done(move)])
        plan = plan_file.moves_of(document.content)
        with files.naming('the new plan', errors.CloudUnreadError):
            plan.check()
            _path, journal_plan = plan_file.journal_of(
                saved.path, plan_file.digest(
                    document.text('json').encode()), plan.round)
        with files.naming('the journal cannot be written',
                          errors.CloudUnreadError):
            journal.announce(journal_plan)
        # What is left of the old plan is said if this one is not saved.
        self._saved = plan_file.save(saved.path, document)
        journal.replan(journal_plan)
        from nfv_sched.ops.answers.plans import rendering
        if text := rendering.time_text(document.content).strip():
            self._print(text)

    def _offer(self) -> None:
        if words := self._saved.plan.command:
            self._print('With --replan 1 it goes on with a new plan, that of: '
                        + self._command.command_text(words))

    def _is_agreed(self) -> bool:
        app = self._command.app
        app.stderr.write('Begin? [y/N] ')
        app.stderr.flush()
        return app.stdin.readline().strip().lower() in ('y', 'yes')

    def _summarize(self, run: 'runner.PlanRun') -> int:
        plan, remaining = run.plan, run.left()
        returned = list(run.returned())
        self._print('; '.join((
            f'{len(plan.moves) - len(remaining)} of '
            f'{strings.count(len(plan.moves), "move")} made', *returned))
            + '.')
        for move in remaining:
            self._print_error(f'move {move.number}: {move} ' + (
                run.failed.get(move.number) or f'stays on {move.source}'))
        unfinished = [*plan.left_undone, *run.unfinished(), *run.left_behind()]
        for sentence in unfinished:
            self._print_error(sentence)
        if remaining:
            command = self._command.rest_command(self._args)
            self._print('The same command goes on with the rest.'
                        if command is None
                        else f'To go on with the rest: {command}')
            if not run.interrupted:
                self._offer()
        elif self._args.enable_after:
            run.enable()
            for host in plan.closed_hosts:
                self._print(f'{host} is enabled.')
        for uuid, name in run.shelved():
            self._print(f'{name} is shelved. To start it again: '
                        + shlex.join((*_UNSHELVE, uuid)))
        if run.interrupted and remaining and not run.failed:
            return _INTERRUPTED
        checked = self._verify(run.moved())
        if remaining or unfinished or returned:
            return base.FINDINGS
        return checked

    def _verify(self, uuids: set[str]) -> int:
        if not uuids or self._saved.is_of_agents:
            return 0
        from nfv_sched.ops.answers.audit import all_checks
        try:
            cloud = self._command.current_cloud(self._args)
            findings, unchecked = all_checks.of_places(cloud, uuids)
        except errors.NotConfiguredError:
            self._print("Strict policies were not checked: this needs Nova's "
                        'databases, or --from with the URL of "snapshot '
                        'serve".')
            return 0
        except (errors.CloudUnreadError, KeyboardInterrupt) as exc:
            why = str(exc) or 'interrupted'
            self._print_error(
                f'strict policies of {strings.count(len(uuids), "server")} '
                f'that were moved were not checked: {why}')
            command = self._command.rest_command(self._args)
            self._print('The same command checks them.' if command is None
                        else f'To check them: {command}')
            return (base.UNREAD if isinstance(exc, errors.CloudUnreadError)
                    else _INTERRUPTED)
        for each in findings:
            self._print_error(
                f'{each.server or ""} ({each.server_id}) on {each.host}: '
                f'{each.finding}')
        if unchecked:
            names = {server.uuid: server.name for server in cloud.servers}
            self._print_error('strict policies were not checked of ' +
                              strings.some([names.get(uuid, uuid)
                                            for uuid in unchecked]))
            return base.UNREAD
        if findings:
            return base.FINDINGS
        self._print('Checked: the strict policies of the servers that were '
                    'moved are kept.')
        return 0


@contextlib.contextmanager
def _on_signal(handler: Callable[[int, ty.Any], None],
               *numbers: signal.Signals) -> Iterator[None]:
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, former in before.items():
            signal.signal(number, former)
