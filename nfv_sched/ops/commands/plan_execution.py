# SPDX-License-Identifier: Apache-2.0
"""Carry out plans for commands."""

import argparse
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
import contextlib
import shlex
import signal
import sys
import time
import typing as ty

from nfv_sched.base import strings
from nfv_sched.ops.cli import base
from nfv_sched.ops.cloud import snapshot
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


class RunMixin(source.AccountMixin):
    """Mixin of a subcommand that carries out a plan."""

    def add_replan(self, parser: argparse.ArgumentParser,
                   condition: str = '') -> None:
        parser.add_argument(
            '--replan', type=source.positive, metavar='N', default=0,
            help=f'{condition}if a move fails, or the cloud is not as the '
                 'plan says, plan again and go on, at most N times')

    def add_run_options(self, parser: argparse.ArgumentParser,
                        condition: str = '', *, closes_hosts: bool) -> None:
        parser.add_argument(
            '--dry-run', action='store_true',
            help=f'{condition}check the plan against the cloud, and change '
                 'nothing')
        parser.add_argument(
            '--parallel', type=source.positive, metavar='N',
            help=f'{condition}maximum number of moves at a time (default: '
                 f'{PARALLEL})')
        parser.add_argument(
            '--timeout', type=source.positive, metavar='SECONDS',
            help=f'{condition}time after which a move is not waited for any '
                 f'longer (default: {TIMEOUT})')
        if closes_hosts:
            parser.add_argument(
                '--enable-after', action='store_true',
                help=f'{condition}enable the host again when all moves are '
                     'made')

    def cloud_again(self, parsed_args: argparse.Namespace,
                    saved: plan_file.SavedPlan) -> snapshot.Cloud:
        """Read the cloud as it is now, for a new plan."""
        return self.cloud(parsed_args, ('network_agents',), self._print)

    def current_cloud(self, parsed_args: argparse.Namespace) -> snapshot.Cloud:
        """Read the cloud as it is now, or wait for a snapshot of it.

        :raises NotConfiguredError: if only a file shows it
        :raises CloudUnreadError: if it cannot be read
        """
        if parsed_args.source is None:
            return self.live_cloud(parsed_args)
        if not source.is_url(parsed_args.source):
            raise source.NotConfiguredError('a file, not a cloud')
        return source.load(
            parsed_args.source, parsed_args.config_file, self._print)

    def rest_command(self, parsed_args: argparse.Namespace) -> str | None:
        """Return what goes on with the plan; None if this command does."""
        return None

    def check_terminal(self, parsed_args: argparse.Namespace) -> None:
        """Check that somebody can be asked, unless --yes is given."""
        if not (parsed_args.yes or self.app.stdin.isatty()):
            raise source.UsageError(
                '--yes is needed where nobody can be asked: standard input '
                'is not a terminal')

    def check_complete(self) -> None:
        """Check that all of the cloud was read, before a plan is run."""
        if self._missing:
            raise source.CloudUnreadError('\n'.join([
                *self._missing, 'the plan is not run, as it may be wrong: '
                'see "plan run"']))

    def carry_out(self, parsed_args: argparse.Namespace,
                  saved: plan_file.SavedPlan,
                  journal_path: str | None = None, *, dry_run: bool = False,
                  most: int | None = None, timeout: float | None = None,
                  enable: bool = False) -> int:
        """Carry out a plan, and print what is done.

        :param journal_path: file that says how far it has come; None for one
            next to that of the plan
        :param dry_run: only compare the plan with the cloud
        :param most: maximum number of moves at a time; None for the default
        :param timeout: seconds after which a move is not waited for; None
            likewise
        :param enable: whether emptied hosts are enabled again
        :returns: exit code
        :raises CloudUnreadError: if the plan, the journal or an API cannot be
            used
        """
        try:
            saved.plan.check()
        except ValueError as exc:
            raise source.CloudUnreadError(f'the plan: {exc}') from exc
        default_path, journal_plan = plan_file.journal_of(
            saved.path, saved.digest, saved.plan.round)
        if journal_path is None:
            journal_path = default_path
        # The client's libraries take a second to import.
        from nfv_sched.base import http_limits
        from nfv_sched.ops.run import moves
        from nfv_sched.ops.run import runner
        with contextlib.ExitStack() as stack:
            try:
                journal = stack.enter_context(contextlib.closing(
                    runner.MoveJournal(
                        journal_path, journal_plan,
                        write=not dry_run)))
            except runner.MoveJournalError as exc:
                raise source.CloudUnreadError(str(exc)) from exc
            plan = saved.plan
            # Whatever happens: errors, signals, and a cloud that has changed.
            stack.callback(lambda: self._say_closed(saved.path, plan, journal))
            stack.enter_context(_sigterm_as_interrupt())
            self._print_plan(plan, journal)
            connection = stack.enter_context(self._connection(parsed_args))
            if connection.session.timeout is None:
                connection.session.timeout = moves.TIMEOUT
            stack.enter_context(http_limits.limited(connection.session))

            def execution_of(current: values.MovePlan) -> 'runner.PlanRun':
                nonlocal plan
                plan = current
                return runner.PlanRun(
                    connection, plan, journal, most=most or PARALLEL,
                    timeout=timeout or TIMEOUT, say=self._report)

            try:
                if dry_run:
                    return self._compare(execution_of(plan))
                return self._execute(
                    parsed_args, saved, journal, execution_of, enable)
            except (moves.NoAnswerError, moves.MoveError) as exc:
                raise source.CloudUnreadError(str(exc)) from exc

    def _say_closed(self, path: str, plan: values.MovePlan,
                    journal: 'runner.MoveJournal') -> None:
        for host, is_known in journal.closed.items():
            if host not in plan.given_up_hosts:
                self._report(
                    f'{host} {"is" if is_known else "may be"} disabled. '
                    'To enable it: '
                    + shlex.join((*_ENABLE, host, 'nova-compute')))
        for host in plan.given_up_hosts:
            self._report(
                f'If {host} is not to be emptied later, enable it: '
                + shlex.join((*_ENABLE, host, 'nova-compute')))
        if plan.next_round and all(map(journal.is_done, plan.moves)) and (
                plan.moves or journal.closed):
            self._report(
                'When that is done, the next round: ' + self._command_text((
                    'plan', 'run', path, '--round', str(plan.next_round))))

    def _print_plan(self, plan: values.MovePlan,
                    journal: 'runner.MoveJournal') -> None:
        from nfv_sched.ops.run import runner
        for warning in plan.warnings:
            self.app.stderr.write(f'note: {strings.line(warning)}\n')
        for line in runner.listed(plan, journal):
            self._print(line)

    def _problems(self, execution: 'runner.PlanRun') -> bool:
        """Print how the cloud differs from a plan; return whether it does."""
        problems = list(execution.problems())
        for problem in problems:
            self.print_error(problem)
        return bool(problems)

    def _compare(self, execution: 'runner.PlanRun') -> int:
        if self._problems(execution):
            self._print(_CHANGED)
            return source.FINDINGS
        self._print('Nothing was changed: --dry-run.')
        returned = _returned(execution)
        for clause in returned:
            self.print_error(clause)
        return source.FINDINGS if returned else 0

    def _execute(self, parsed_args: argparse.Namespace,
                 saved: plan_file.SavedPlan,
                 journal: 'runner.MoveJournal',
                 execution_of: 'Callable[[values.MovePlan], runner.PlanRun]',
                 enable: bool) -> int:
        """Carry out a plan, and those that take its place."""
        from nfv_sched.ops.run import moves
        agreed = parsed_args.yes
        failed: dict[tuple[str, str], str] = {}
        for attempts in range(parsed_args.replan, -1, -1):
            execution = execution_of(saved.plan)
            # What has begun goes on in any case.
            try:
                is_changed = self._problems(execution)
            except (moves.MoveError, moves.NoAnswerError) as exc:
                if not execution.in_progress():
                    raise
                self.print_error(exc)
                is_changed = True
            if not is_changed or execution.in_progress():
                if not (agreed or self._is_agreed()):
                    self._print('Nothing was changed.')
                    return source.FINDINGS
                agreed = True
                with _stop_on_signal(execution):
                    execution.run(only_begun=is_changed)
            elif attempts == parsed_args.replan and (
                    execution.is_early or not attempts):
                self._print(_CHANGED)
                # Hosts that are not back yet are no reason for a new plan.
                if not execution.is_early:
                    self._offer(saved)
                return source.FINDINGS
            if execution.interrupted or not (is_changed or execution.failed):
                break
            if execution.in_progress() or execution.is_early:
                # A new plan would not know where it ends, or would do without
                # a host that comes back.
                break
            if attempts:
                self._print('The rest is planned anew.')
                failed.update(execution.refused)
                try:
                    saved = self._plan_rest(
                        parsed_args, saved, journal, failed)
                except KeyboardInterrupt:
                    self._missing = []
                    self._summarize(parsed_args, saved, execution, enable)
                    return _INTERRUPTED
                except source.EXPECTED as exc:
                    for line in str(exc).splitlines():
                        self.print_error(line)
                    self._missing = []
                    self._summarize(parsed_args, saved, execution, enable)
                    return source.UNREAD
                self._print_plan(saved.plan, journal)
        return self._summarize(parsed_args, saved, execution, enable)

    def _plan_rest(
        self, parsed_args: argparse.Namespace, saved: plan_file.SavedPlan,
        journal: 'runner.MoveJournal', failed: Mapping[tuple[str, str], str],
    ) -> plan_file.SavedPlan:
        """Save a new plan in place of another.

        :raises CloudUnreadError: if there is none, or it cannot be written
        """
        time.sleep(values.FREED_SECONDS)
        cloud = self.cloud_again(parsed_args, saved)
        self.check_complete()
        # Importing Nova takes seconds.
        from nfv_sched.ops.commands import replanning
        document = replanning.plan_again(
            saved.document, cloud, failed, saved.plan.round, [
                move.number for move in saved.plan.moves
                if journal.is_done(move)])
        plan = plan_file.moves_of(document.content)
        try:
            plan.check()
            _path, journal_plan = plan_file.journal_of(
                saved.path, plan_file.digest(
                    document.text('json').encode()), plan.round)
            journal.announce(journal_plan)
        except ValueError as exc:
            raise source.CloudUnreadError(f'the new plan: {exc}') from exc
        except OSError as exc:
            raise source.CloudUnreadError(
                'the journal cannot be written: '
                f'{exc.strerror or exc}') from exc
        again = plan_file.save(saved.path, document)
        # Only now: what is left of the old plan is said if this one is not
        # saved.
        journal.replan(journal_plan)
        return again

    def _offer(self, saved: plan_file.SavedPlan) -> None:
        if saved.plan.command:
            self._print('With --replan 1 it goes on with a new plan, that of: '
                        + self._command_text(saved.plan.command))

    def _command_text(self, words: Iterable[str]) -> str:
        program = self.app.NAME + (' nfv' if self._in_client() else '')
        return f'{program} {shlex.join(words)}'

    def _is_agreed(self) -> bool:
        self.app.stderr.write('Begin? [y/N] ')
        self.app.stderr.flush()
        return self.app.stdin.readline().strip().lower() in ('y', 'yes')

    def _summarize(self, parsed_args: argparse.Namespace,
                   saved: plan_file.SavedPlan,
                   execution: 'runner.PlanRun', enable: bool) -> int:
        """Print what was done and what was not; return the exit code."""
        remaining = execution.left()
        plan = execution.plan
        returned = _returned(execution)
        self._print('; '.join((
            f'{len(plan.moves) - len(remaining)} of '
            f'{strings.count(len(plan.moves), "move")} made', *returned))
            + '.')
        for move in remaining:
            self.print_error(f'move {move.number}: {move} ' + (
                execution.failed.get(move.number)
                or f'stays on {move.source}'))
        unfinished = [*plan.left_undone, *execution.unfinished()]
        for sentence in unfinished:
            self.print_error(sentence)
        if remaining:
            command = self.rest_command(parsed_args)
            self._print('The same command goes on with the rest.'
                        if command is None
                        else f'To go on with the rest: {command}')
            if not execution.interrupted:
                self._offer(saved)
        if enable and not remaining:
            execution.enable()
            for host in plan.closed_hosts:
                self._print(f'{host} is enabled.')
        for uuid, name in execution.shelved():
            self._print(f'{name} is shelved. To start it again: '
                        + shlex.join((*_UNSHELVE, uuid)))
        if execution.interrupted and remaining and not execution.failed:
            return _INTERRUPTED
        checked = self._verify(parsed_args, saved, execution)
        if remaining or unfinished or returned:
            return source.FINDINGS
        return checked

    def _verify(self, parsed_args: argparse.Namespace,
                saved: plan_file.SavedPlan,
                execution: 'runner.PlanRun') -> int:
        """Print whether strict policies are kept; return the exit code."""
        uuids = execution.moved()
        if not uuids or saved.is_of_agents:
            return 0
        # Importing Nova takes seconds.
        from nfv_sched.ops.answers.audit import all_checks
        try:
            cloud = self.current_cloud(parsed_args)
            findings, unchecked = all_checks.of_places(cloud, uuids)
        except source.NotConfiguredError:
            self._print("Strict policies were not checked: this needs Nova's "
                        'databases, or --from with the URL of "snapshot '
                        'serve".')
            return 0
        except source.CloudUnreadError as exc:
            self._say_unchecked(parsed_args, len(uuids), str(exc))
            return source.UNREAD
        except KeyboardInterrupt:
            self._say_unchecked(parsed_args, len(uuids), 'interrupted')
            return _INTERRUPTED
        for each in findings:
            self.print_error(
                f'{each.server or ""} ({each.server_id}) on {each.host}: '
                f'{each.finding}')
        if unchecked:
            names = {server.uuid: server.name for server in cloud.servers}
            self.print_error('strict policies were not checked of ' +
                             strings.some([names.get(uuid, uuid)
                                           for uuid in unchecked]))
            return source.UNREAD
        if not findings:
            self._print('Checked: the strict policies of the servers that '
                        'were moved are kept.')
        return source.FINDINGS if findings else 0

    def _say_unchecked(self, parsed_args: argparse.Namespace, servers: int,
                       why: str) -> None:
        self.print_error(
            f'strict policies of {strings.count(servers, "server")} that were '
            f'moved were not checked: {why}')
        command = self.rest_command(parsed_args)
        self._print('The same command checks them.' if command is None
                    else f'To check them: {command}')

    def print_error(self, error: ty.Any) -> int:
        """Write an error to stderr, if that can be written; return 1."""
        try:
            return super().print_error(error)
        except OSError:
            base.discard_output(sys.stderr)
            return 1

    def _report(self, text: str) -> None:
        """Print a line about a move, which goes on even if that fails."""
        # NOTE: Ctrl-C in "plan run FILE 2>&1 | tee LOG" ends tee at once.
        try:
            self._print(text)
        except OSError:
            base.discard_output()

    def _print(self, text: str) -> None:
        self.app.stdout.write(f'{strings.line(text)}\n')
        self.app.stdout.flush()


def _returned(execution: 'runner.PlanRun') -> list[str]:
    """Return what was moved before this run, and is back, as clauses."""
    return [f'{name} is on {host} again'
            for name, host in execution.returned()]


@contextlib.contextmanager
def _sigterm_as_interrupt() -> Iterator[None]:
    """Raise KeyboardInterrupt on SIGTERM, as on SIGINT."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextlib.contextmanager
def _stop_on_signal(execution: 'runner.PlanRun') -> Iterator[None]:
    """Let the first signal stop a plan after the moves that have begun."""
    def stop(number: int, _frame: ty.Any) -> None:
        if execution.interrupted:
            raise KeyboardInterrupt
        execution.interrupt()

    before = {number: signal.signal(number, stop)
              for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
