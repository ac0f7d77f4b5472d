# SPDX-License-Identifier: Apache-2.0
"""Carry out plans for commands."""

import argparse
from collections.abc import Callable
from collections.abc import Iterator
import contextlib
import shlex
import signal
import typing as ty

from nfv_sched.ops.cloud import source
from nfv_sched.ops.execution import values
from nfv_sched import strings

if ty.TYPE_CHECKING:
    from nfv_sched.ops.execution import run

#: Default maximum number of moves at a time.
PARALLEL = 4
#: Default time after which a move is not waited for any longer, in seconds.
TIMEOUT = 3600

_ENABLE = ('openstack', 'compute', 'service', 'set', '--enable', '--')
_INTERRUPTED = 130


class RunMixin(source.AccountMixin):
    """Mixin of a subcommand that carries out a plan."""

    def check_terminal(self, parsed_args: argparse.Namespace) -> None:
        """Check that somebody can be asked, unless --yes is given.

        :raises UsageError: if standard input is not a terminal
        """
        if not (parsed_args.yes or self.app.stdin.isatty()):
            raise source.UsageError(
                '--yes is needed where nobody can be asked: standard input '
                'is not a terminal')

    def carry_out(self, parsed_args: argparse.Namespace,
                  plan: values.MovePlan, digest: str, journal_path: str, *,
                  dry_run: bool = False, most: int = PARALLEL,
                  timeout: float = TIMEOUT, enable: bool = False) -> int:
        """Carry out a plan, and print what is done.

        :param digest: hash of the plan
        :param journal_path: file that says how far it has come
        :param dry_run: only compare the plan with the cloud
        :param most: maximum number of moves at a time
        :param timeout: seconds after which a move is not waited for
        :param enable: whether the emptied host is enabled again
        :returns: exit code
        :raises CloudUnreadError: if the plan, the journal or an API cannot be
            used
        """
        try:
            plan.check()
        except ValueError as exc:
            raise source.CloudUnreadError(f'the plan: {exc}') from exc
        # The client's libraries take a second to import.
        from nfv_sched import http_limits
        from nfv_sched.ops.execution import moves
        from nfv_sched.ops.execution import run
        with contextlib.ExitStack() as stack:
            try:
                journal = stack.enter_context(contextlib.closing(
                    run.MoveJournal(
                        journal_path, digest, write=not dry_run)))
            except run.MoveJournalError as exc:
                raise source.CloudUnreadError(str(exc)) from exc
            for warning in plan.warnings:
                self.app.stderr.write(f'note: {strings.line(warning)}\n')
            for line in run.listed(plan, journal):
                self._say(line)
            connection = stack.enter_context(self._connection(parsed_args))
            if connection.session.timeout is None:
                connection.session.timeout = moves.TIMEOUT
            stack.enter_context(http_limits.limited(connection.session))
            execution = run.PlanRun(
                connection, plan, journal, most=most, timeout=timeout,
                say=self._say)
            try:
                return self._execute(execution, dry_run, parsed_args.yes,
                                     enable)
            except (moves.NoAnswerError, moves.MoveError) as exc:
                raise source.CloudUnreadError(str(exc)) from exc

    def _execute(self, execution: 'run.PlanRun', dry_run: bool, agreed: bool,
                 enable: bool) -> int:
        problems = list(execution.problems())
        for problem in problems:
            self.print_error(problem)
        if problems:
            self._say('Nothing was changed: the cloud is not as the plan '
                      'says.')
            return source.FINDINGS
        if dry_run:
            self._say('Nothing was changed: --dry-run.')
            return 0
        if not (agreed or self._is_agreed()):
            self._say('Nothing was changed.')
            return source.FINDINGS
        with _interruptible(execution, self._say):
            execution.run()
        return self._summarize(execution, enable)

    def _is_agreed(self) -> bool:
        self.app.stderr.write('Begin? [y/N] ')
        self.app.stderr.flush()
        return self.app.stdin.readline().strip().lower() in ('y', 'yes')

    def _summarize(self, execution: 'run.PlanRun', enable: bool) -> int:
        """Print what was done and what was not; return the exit code."""
        remaining = execution.left()
        plan = execution.plan
        self._say(f'{len(plan.moves) - len(remaining)} of '
                  f'{strings.count(len(plan.moves), "move")} made.')
        for move in remaining:
            self.print_error(f'move {move.number}: {move} ' + (
                execution.failed.get(move.number)
                or f'stays on {move.source}'))
        for sentence in plan.left_undone:
            self.print_error(sentence)
        if remaining:
            self._say('The same command goes on with the rest.')
        if plan.closed_host:
            if enable and not remaining:
                execution.enable()
                self._say(f'{plan.closed_host} is enabled.')
            else:
                self._say(f'{plan.closed_host} is disabled. To enable it: '
                          + shlex.join((*_ENABLE, plan.closed_host,
                                        'nova-compute')))
        if execution.interrupted and remaining and not execution.failed:
            return _INTERRUPTED
        return source.FINDINGS if remaining or plan.left_undone else 0

    def _say(self, text: str) -> None:
        self.app.stdout.write(f'{strings.line(text)}\n')
        self.app.stdout.flush()


@contextlib.contextmanager
def _interruptible(execution: 'run.PlanRun',
                   say: Callable[[str], None]) -> Iterator[None]:
    """Let the first signal stop a plan after the moves that have begun."""
    def stop(number: int, _frame: ty.Any) -> None:
        if execution.interrupted:
            raise KeyboardInterrupt
        execution.interrupt()
        say('Interrupted: waiting for the moves that have begun. Again, and '
            'they are not waited for.')

    before = {number: signal.signal(number, stop)
              for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
