# SPDX-License-Identifier: Apache-2.0
"""Carry out a plan: several moves at a time, with a journal.

A move begins when no earlier move of the plan that it may depend on is left.
After a failure no other begins, except evacuations, and those that have begun
are waited for.
"""

from collections.abc import Callable, Iterable, Iterator
import dataclasses
import datetime
import fcntl
import json
import os
import stat
import time
import typing as ty

from openstack import connection as sdk_connection
import pydantic

from nfv_sched.base import files
from nfv_sched.base import strings
from nfv_sched.ops.cli import atomic_file
from nfv_sched.ops.cli import errors
from nfv_sched.ops.run import moves
from nfv_sched.ops.run import schedule
from nfv_sched.ops.run import values

#: Seconds between two looks at the moves.
INTERVAL = 2.0

_MAX_JOURNAL = 16 << 20
_SHELVE: values.Kind = 'shelve'
# How each line of a journal begins.
_LINE_START = b'{"plan": "'


class MoveJournalError(errors.CloudUnreadError):
    """A journal that cannot be used; the message has its path."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class MoveRecord:
    """A line of the journal."""

    plan: str  #: hash of the plan
    time: str  #: in UTC, as ISO 8601
    move: int  #: number of the move; 0 for a host or a new plan
    id: str  #: UUID of what is moved; name of the host; hash of the new plan
    #: "asked" before Nova is asked, "moving" when its migration is known, then
    #: "done" or "failed"; of a host "closed" or "open" after "asked";
    #: "replanned" if another plan takes the place of this one
    state: ty.Literal['asked', 'moving', 'done', 'failed', 'closed', 'open',
                      'replanned']
    #: UUID of the migration; of the newest one before if "asked"; of shelving,
    #: the ID of the request
    migration: str | None = None
    text: str | None = None  #: why it failed
    kind: str | None = None  #: kind of the move; None for a host or a new plan


_RECORD = pydantic.TypeAdapter(MoveRecord)


class MoveJournal:
    """The file that says how far a plan has been carried out.

    Only one process can use it at a time.

    :param write: create it, if need be, and keep others from using it
    :ivar last: number of each move that has begun -> its last record
    :ivar earlier: UUID of what a former plan has moved, or tried to -> the
        last record of that
    :ivar closed: name of each host that was disabled -> whether that is known,
        not only asked for
    :raises MoveJournalError: if it cannot be opened, is in use, or is not of
        this plan
    """

    def __init__(self, path: str, digest: str, write: bool = True):
        self._digest = digest
        self.last: dict[int, MoveRecord] = {}
        self.earlier: dict[str, MoveRecord] = {}
        self.closed: dict[str, bool] = {}
        self._file: int | None = None
        try:
            self._file = os.open(
                atomic_file.target(path),
                (os.O_RDWR | os.O_CREAT | os.O_APPEND if write
                 else os.O_RDONLY) | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            status = os.fstat(self._file)
            if status.st_uid != os.geteuid():
                raise ValueError('belongs to another user; use another file')
            if status.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
                raise ValueError(
                    'others have access to it; take that away, as with chmod '
                    '600, if nobody else has written to it')
            if write:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._read(self._file, write)
        except atomic_file.WriteError as exc:
            raise MoveJournalError(str(exc)) from exc
        except (OSError, ValueError) as exc:
            self.close()
            if write or not isinstance(exc, FileNotFoundError):
                why = ('is in use: the plan is being carried out already'
                       if isinstance(exc, BlockingIOError)
                       else getattr(exc, 'strerror', None) or exc)
                raise MoveJournalError(f'{path}: {why}') from exc

    def _read(self, descriptor: int, write: bool) -> None:
        with open(descriptor, 'rb', closefd=False) as file:
            content = file.read(_MAX_JOURNAL + 1)
        if len(content) > _MAX_JOURNAL:
            raise ValueError(f'has more than {_MAX_JOURNAL >> 20} MiB')
        # A line that is not complete was being written when the run ended.
        complete = content[:content.rfind(b'\n') + 1]
        # After a crash some file systems show zeros in its place. Anything
        # else belongs to another file, and must not be cut off.
        rest = content[len(complete):].rstrip(b'\0')
        if rest[:len(_LINE_START)] != _LINE_START[:len(rest)]:
            raise ValueError('is not a journal; use another file')
        plans: set[str] = set()
        for number, line in enumerate(complete.splitlines(), 1):
            try:
                record = _RECORD.validate_python(files.parse_json(line))
                _age(record)
                if record.move and not values.is_uuid(record.id):
                    raise ValueError
            except (ValueError, TypeError, RecursionError) as exc:
                raise ValueError(
                    f'line {number} is not one of a journal') from exc
            plans.add(record.plan)
            if record.state == 'replanned':
                plans.add(record.id)
            elif not record.move:
                self._note_host(record.id, record.state)
            elif record.plan == self._digest:
                self.last[record.move] = record
            else:
                self.earlier[record.id] = record
        if plans and self._digest not in plans:
            raise ValueError('is the journal of another plan; remove it, or '
                             'use another file')
        if write:
            os.ftruncate(descriptor, len(complete))

    def add(self, move: values.Move, state: str, migration: str | None = None,
            text: str | None = None) -> None:
        """Write a record, to disk; raise OSError if that fails."""
        self.last[move.number] = self._write(
            move.id, state, move=move.number, migration=migration, text=text,
            kind=move.kind)

    def announce(self, digest: str) -> None:
        """Write that a plan with another digest may take the place of this."""
        self._write(digest, 'replanned')

    def set_host(self, host: str,
                 state: ty.Literal['asked', 'closed', 'open']) -> None:
        self._note_host(host, state)
        self._write(host, state)

    def _note_host(self, host: str, state: str) -> None:
        self.closed.pop(host, None)
        if state != 'open':
            self.closed[host] = state == 'closed'

    def replan(self, digest: str) -> None:
        """Go on with a plan that was announced, and is saved."""
        self._digest = digest
        self.earlier.update({
            record.id: record for record in self.last.values()})
        self.last = {}

    def _write(self, what: str, state: str, **fields: ty.Any) -> MoveRecord:
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec='seconds')
        record = MoveRecord(**{
            'plan': self._digest, 'time': now,
            'move': 0, 'id': what, 'state': ty.cast(ty.Any, state), **fields})
        line = json.dumps(dataclasses.asdict(record)).encode() + b'\n'
        descriptor = ty.cast(int, self._file)
        size = os.fstat(descriptor).st_size
        try:
            if os.write(descriptor, line) != len(line):
                raise OSError('not written completely')
            os.fsync(descriptor)
        except OSError:
            # The next record must not continue part of a line.
            os.ftruncate(descriptor, size)
            raise
        return record

    def _state(self, move: values.Move) -> str | None:
        record = self.last.get(move.number)
        return None if record is None else record.state

    def is_done(self, move: values.Move) -> bool:
        return self._state(move) == 'done'

    def has_begun(self, move: values.Move) -> bool:
        return self._state(move) in ('asked', 'moving')

    def left(self, plan: values.MovePlan) -> list[values.Move]:
        return [move for move in plan.moves if not self.is_done(move)]

    def closes(self, plan: values.MovePlan) -> bool:
        return bool(plan.closed_hosts and (self.left(plan) or not plan.moves))

    def listed(self, plan: values.MovePlan) -> Iterator[str]:
        """Yield a line for each thing that is done, or to be done."""
        if self.closes(plan):
            for host in plan.closed_hosts:
                yield f'{host} is disabled first.'
        for move in plan.moves:
            yield _line(plan, move) + (
                ': done' if self.is_done(move)
                else ': has begun' if self.has_begun(move) else '')
        if any(move.vfs_detached for move in self.left(plan)):
            yield values.VFS_DETACHED

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None


def _age(record: MoveRecord) -> float:
    since = datetime.datetime.fromisoformat(record.time)
    # One of the future is old, too: the clock was set back.
    return abs((datetime.datetime.now(datetime.UTC) - since).total_seconds())


def _number(plan: values.MovePlan, move: values.Move) -> str:
    return f'{move.number}/{len(plan.moves)}'


def _line(plan: values.MovePlan, move: values.Move) -> str:
    if move.is_shelving:
        return f'{_number(plan, move)} {move}: shelving on {move.source}'
    what = ('evacuation' if move.is_evacuation else f'{move.kind} migration'
            if move.is_of_server else f'{move.kind} move')
    return (f'{_number(plan, move)} {move}: {what} from '
            + values.how(f'{move.source} to {move.destination}',
                         move.vfs_detached))


class PlanRun:
    """The execution of a plan.

    :param timeout: seconds after which a move is not waited for any longer
    :ivar failed: number of each move that failed -> why
    :ivar refused: UUID and destination of each of them that Nova has tried ->
        why
    :ivar is_early: whether hosts of earlier rounds were not enabled and up
        when :meth:`problems` looked
    """

    def __init__(self, connection: sdk_connection.Connection,
                 plan: values.MovePlan, journal: MoveJournal, *,
                 most: int, timeout: float, say: Callable[[str], None]):
        self._connection = connection
        self.plan = plan
        self._journal = journal
        self._most = most
        self._timeout = timeout
        self._say = say
        self._running: dict[values.Move, Iterator[str]] = {}
        self._began: dict[values.Move, float] = {}
        self._last_line = ''
        self.failed: dict[int, str] = {}
        self.refused: dict[tuple[str, str], str] = {}
        self.interrupted = False
        self.is_early = False
        self._stopping = False
        self._done_before = [move for move in plan.moves
                             if journal.is_done(move)]
        if journal.last:
            # Of an older release, which did not say so.
            for host in plan.closed_hosts:
                journal.closed.setdefault(host, True)

    def left(self) -> list[values.Move]:
        return self._journal.left(self.plan)

    def in_progress(self) -> bool:
        return any(map(self._journal.has_begun, self.plan.moves))

    def problems(self) -> Iterator[str]:
        if self._journal.closed:
            services = moves.compute_services(self._connection)
            for host in list(self._journal.closed):
                if services.get(host, {}).get('status') == 'enabled':
                    # By somebody else, since the last run.
                    del self._journal.closed[host]
        away = list(moves.problems(
            self._connection, (), self.plan.enabled_hosts))
        self.is_early = bool(away)
        yield from dict.fromkeys((*away, *moves.problems(self._connection, [
            move for move in self.left()
            if not self._journal.has_begun(move)])))

    def astray(self) -> Iterator[str]:
        """Yield why single evacuations cannot be made; others go on."""
        return moves.astray(self._connection, [
            move for move in self.left() if move.is_evacuation
            and not self._journal.has_begun(move)])

    def left_behind(self) -> Iterator[str]:
        evacuations = [move for move in self.plan.moves if move.is_evacuation]
        planned = {move.id for move in evacuations}.union(self.plan.staying)
        for host in dict.fromkeys(move.source for move in evacuations):
            yield from moves.left_behind(self._connection, host, planned)

    def moved(self) -> set[str]:
        return {record.id for record in self._finished_records()
                if record.kind != _SHELVE}

    def shelved(self) -> Iterator[tuple[str, str]]:
        return moves.shelved(self._connection, dict.fromkeys(
            record.id for record in self._finished_records()
            if record.kind == _SHELVE))

    def _finished_records(self) -> list[MoveRecord]:
        return [record for record in (
            *self._journal.earlier.values(), *self._journal.last.values())
            if record.state == 'done']

    def unfinished(self) -> Iterator[str]:
        return moves.unfinished(self._connection, [
            uuid for uuid, record in self._journal.earlier.items()
            if record.state != 'done'
            and all(uuid != move.id for move in self.left())])

    def interrupt(self) -> None:
        """Begin no other move; can be called by the handler of a signal."""
        # NOTE: The signal may arrive while a line is written, so that no other
        # can be written here.
        self.interrupted = self._stopping = True

    def returned(self) -> Iterator[str]:
        """Yield a clause about what was moved before this run, and is back."""
        last = {move.id: move.destination for move in self.plan.moves}
        for move in self._done_before:
            if last[move.id] != move.source and moves.is_on_source(
                    self._connection, move):
                yield f'{move} is on {move.source} again'

    def enable(self) -> None:
        """Enable what was emptied; raises what :meth:`run` does."""
        end = time.monotonic() + moves.GRACE
        for host in self.plan.closed_hosts:
            while True:
                try:
                    self._set_status(host, None)
                    break
                except moves.NoAnswerError as exc:
                    if time.monotonic() >= end:
                        raise
                    self._say_once(str(exc))
                    time.sleep(INTERVAL)

    def run(self, *, only_begun: bool = False) -> None:
        """Make the moves that are left, until one fails.

        Those that had begun go on in any case.

        :raises moves.MoveError: if a host cannot be disabled, or NoAnswerError
        """
        self._stopping |= only_begun
        error: Exception | None = None
        remaining = self.left()
        # First of all, and whatever follows: Nova is at these already.
        for move in list(remaining):
            if self._journal.has_begun(move):
                remaining.remove(move)
                self._begin(move)
        if not only_begun:
            try:
                if self._journal.closes(self.plan):
                    for host in self.plan.closed_hosts:
                        if self._set_status(host, values.REASON):
                            self._say(f'{host} is disabled: {values.REASON}')
            except (moves.MoveError, moves.NoAnswerError) as exc:
                self._stopping = True
                error = exc
                if self._running:
                    self._say(f'no other move begins: {exc}')
        announced = False
        while self._running or (remaining and not self._stopping):
            if self.interrupted and not announced:
                announced = True
                self._say('Interrupted: waiting for the moves that have '
                          'begun. Again, and they are not waited for.')
            if not self._stopping:
                for move in self._ready_moves(remaining):
                    if len(self._running) >= self._most or self._stopping:
                        break
                    remaining.remove(move)
                    self._begin(move)
            running = len(self._running)
            for move in list(self._running):
                self._go_on(move)
            # A move that has ended may let another begin at once.
            if not running or len(self._running) == running:
                time.sleep(INTERVAL)
        if error is not None:
            raise error

    def _set_status(self, host: str, reason: str | None) -> bool:
        """Do as :func:`moves.set_status`, with records of it."""
        was_closed = self._journal.closed.get(host)
        try:
            changed = moves.set_status(
                self._connection, host, reason,
                lambda: self._record_host(host, 'asked', reason is not None))
        except moves.MoveError:
            if self._journal.closed.get(host) != was_closed:
                self._record_host(host, 'closed' if was_closed else 'open')
            raise
        if reason is None or not self._journal.closed.get(host):
            self._record_host(host, 'open' if reason is None else 'closed')
        return changed

    def _record_host(self, host: str,
                     state: ty.Literal['asked', 'closed', 'open'],
                     needed: bool = False) -> None:
        self._write(lambda: self._journal.set_host(host, state),
                    f'{host} was not disabled' if needed else '')

    def _record(self, move: values.Move, state: str,
                migration: str | None = None, text: str | None = None) -> None:
        self._write(
            lambda: self._journal.add(move, state, migration, text),
            'was not moved' if state == 'asked' else '')

    def _write(self, write: Callable[[], None], undone: str) -> None:
        """Write a record; without it, no move begins any more.

        :param undone: what is not done without it; empty if it is done already
        :raises moves.MoveError: if something is not done
        """
        try:
            write()
        except OSError as exc:
            why = f'the journal cannot be written: {exc.strerror or exc}'
            if undone:
                raise moves.MoveError(f'{undone}: {why}') from exc
            self._say(why)
            self._stopping = True

    def _ready_moves(self,
                     remaining: Iterable[values.Move]) -> list[values.Move]:
        ready: list[values.Move] = []
        blocking = list(self._running)
        for move in remaining:
            if not any(schedule.depends(move, each) for each in blocking):
                if not (seconds := self._pause(move)):
                    ready.append(move)
                # Some seconds are not worth a line.
                elif seconds > values.FREED_SECONDS and not self._running:
                    self._say_once(
                        f'{move} waits until nova-scheduler knows where the '
                        'servers are that it is to be with or apart from')
            blocking.append(move)
        return ready

    def _pause(self, move: values.Move) -> float:
        """Return for how many seconds Nova may not know of earlier moves."""
        pause = 0.0
        for earlier in self.plan.moves[:move.number - 1]:
            record = self._journal.last.get(earlier.number)
            seconds = schedule.pause(move, earlier)
            if record is not None and seconds:
                pause = max(pause, seconds - _age(record))
        for uuid, record in self._journal.earlier.items():
            # Which hosts and what kind of move is not recorded.
            if move.is_of_server:
                pause = max(pause, (
                    values.SYNCED_SECONDS if uuid in move.related
                    else values.FREED_SECONDS) - _age(record))
        return pause

    def _begin(self, move: values.Move) -> None:
        if move.is_evacuation and any(
                each.number in self.failed for each in self.plan.moves
                if each.id in move.related):
            # Without a host Nova would leave it in ERROR.
            self._fail(move, 'was not tried: a server that it is to be with '
                       'or apart from was not moved')
            return
        self._began[move] = time.monotonic()
        record = self._journal.last.get(move.number)
        progress: moves.Progress | None = None
        if record is not None and self._journal.has_begun(move):
            progress = ty.cast(
                moves.Progress,
                (record.state, record.migration, _age(record)))
        self._say(_line(self.plan, move) + (
            ': goes on' if progress else ': begins'))
        self._running[move] = moves.make(
            self._connection, move, progress,
            lambda state, migration: self._record(move, state, migration))

    def _go_on(self, move: values.Move) -> None:
        seconds = time.monotonic() - self._began[move]
        try:
            if seconds <= self._timeout:
                self._say_once(next(self._running[move]))
                return
            # It has no record of its end: the next run goes on with it.
            self._fail(move, f'was not over after {self._timeout:g} s')
        except StopIteration:
            self._record(move, 'done')
            self._say(f'{_number(self.plan, move)} {move}: done, '
                      f'{seconds:.0f} s')
        except moves.UnfinishedMoveError as exc:
            # The next run goes on with it.
            self._fail(move, str(exc))
        except moves.MoveError as exc:
            why = strings.one_line(exc)
            self._record(move, 'failed', text=why)
            self._fail(move, why)
            if isinstance(exc, moves.FailedMoveError):
                self.refused[move.id, move.destination] = why
        del self._running[move]

    def _fail(self, move: values.Move, why: str) -> None:
        # What is left on a lost host does not run: others are not kept there.
        self._stopping |= not move.is_evacuation
        self.failed[move.number] = strings.one_line(why)
        self._say(f'{_number(self.plan, move)} {move}: '
                  f'{self.failed[move.number]}')

    def _say_once(self, text: str) -> None:
        if text and text != self._last_line:
            self._last_line = text
            self._say(text)
