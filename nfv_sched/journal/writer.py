# SPDX-License-Identifier: Apache-2.0
"""Write the journal in a thread, so that no request waits for a disk.

Entries about servers wait in a queue of limited length: if it is full, one is
dropped, of the project with the most there.  Dropped entries are counted, and
the count is reported in the log and in the journal.

An entry that is equal to one written a few seconds ago is not written at once,
but joined with those that follow it, so that a project that is refused again
and again fills the journal more slowly.
"""

import collections
from collections.abc import Callable
import dataclasses
import math
import threading
import time
import typing as ty

from oslo_log import log as logging

from nfv_sched.base import periodic
from nfv_sched.journal import entry
from nfv_sched.journal import files

LOG = logging.getLogger(__name__)

#: Maximum number of refusals in the queue.
QUEUE = 256

#: Seconds for which equal refusals are joined.
JOIN = 10.0

#: Maximum number of UUIDs of servers in an entry of joined refusals.
JOINED_SERVERS = 100

#: Maximum number of entries with which further refusals may be joined.
RECENT = 64

#: Seconds for which the thread waits before it writes, so that it does not
#: compete with the request that was refused.
PAUSE = 0.2


class JournalLocation(ty.NamedTuple):
    """Place of a journal.

    :ivar directory: directory of the journal
    :ivar size: its maximum size in bytes
    """

    directory: str
    size: int


Decided = entry.Refusal | entry.PlacedServer
Make = Callable[[], Decided]


def stamp(seconds: float) -> str:
    """Return seconds since the epoch in ISO 8601, UTC, with milliseconds."""
    whole = int(seconds)
    return time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(whole)) + (
        f'.{int((seconds - whole) * 1000):03d}Z')


class _Waiting(ty.NamedTuple):
    """A refusal in the queue."""

    make: Make
    place: JournalLocation
    project: str


class _Recent(ty.NamedTuple):
    """A refusal that was written, with those that are joined after it.

    :ivar until: when these are written, seconds of ``time.monotonic()``
    :ivar joined: the joined refusals; None if there are none yet
    """

    until: float
    joined: Decided | None = None


class _Thread:
    """The queue of one process and the thread that empties it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: list[_Waiting] = []
        self._lost = 0
        self._wake_up = threading.Event()
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        # Only used in the thread.
        self._files: files.Writer | None = None
        self._failing = False
        #: By digest, the oldest first.
        self._recent: collections.OrderedDict[bytes, _Recent] = (
            collections.OrderedDict())

    def put(self, make: Make, location: JournalLocation, project: str) -> None:
        """See :meth:`JournalWriter.put`."""
        with self._lock:
            self._waiting.append(_Waiting(make, location, project))
            if len(self._waiting) > QUEUE:
                self._drop_one()
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(
                    target=self._run, name='nfv-sched journal', daemon=True)
                self._thread.start()
        self._wake_up.set()

    def _drop_one(self) -> None:
        """Drop the newest refusal of the project with the most waiting."""
        counts = collections.Counter(
            each.project for each in reversed(self._waiting))
        project = counts.most_common(1)[0][0]
        for index in range(len(self._waiting) - 1, -1, -1):
            if self._waiting[index].project == project:
                del self._waiting[index]
                break
        self._lost += 1

    def stop(self) -> None:
        """Write all waiting refusals, and end the thread."""
        self._stopped.set()
        self._wake_up.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while not self._stopped.is_set() or self._waiting:
            if not self._stopped.is_set():
                self._wake_up.wait(self._pause())
            self._stopped.wait(PAUSE)
            self._wake_up.clear()
            try:
                self._write_waiting()
                self._write_joined(time.monotonic())
                if self._lost and not self._failing and self._files:
                    self._write_lost()
            except Exception:
                LOG.exception('The thread of the decision journal goes on')
        self._write_joined()
        if self._files is not None:
            self._files.close()

    def _pause(self) -> float | None:
        """Return the seconds until joined refusals are to be written."""
        for recent in self._recent.values():
            return max(recent.until - time.monotonic(), 0)
        return None

    def _write_waiting(self) -> None:
        """Write or join all waiting refusals."""
        with self._lock:
            waiting, self._waiting = self._waiting, []
        for each in waiting:
            try:
                self._write_or_join(each.make(), each.place)
            except Exception:
                self._count_lost(1)
                LOG.exception('A refusal is not in the decision journal')

    def _write_or_join(self, refusal: Decided,
                       location: JournalLocation) -> None:
        """Write a refusal, or keep it if an equal one was just written."""
        if self._files is None or location != (
                self._files.directory, self._files.size):
            self._write_joined()
            if self._files is not None:
                self._files.close()
            self._files = files.Writer(*location)
            part = files.changeable(location.directory)
            if part is not None:
                LOG.warning(
                    'Other users can change the decision journal in %s: %s '
                    'belongs to another user, or is open to all for writing',
                    location.directory, part)
        key = entry.key(refusal)
        recent = self._recent.get(key)
        if recent is None:
            if self._write(refusal):
                self._recent[key] = _Recent(time.monotonic() + JOIN)
            if len(self._recent) > RECENT:
                self._write_oldest()
            return
        joined = recent.joined
        if joined is None:
            joined = refusal
        elif _count_servers(joined) + _count_servers(refusal) > JOINED_SERVERS:
            self._write_late(joined)
            joined = refusal
        else:
            joined = entry.joined(joined, refusal)
        self._recent[key] = recent._replace(joined=joined)

    def _write_joined(self, now: float = math.inf) -> None:
        """Write the refusals that were joined for long enough."""
        while self._recent and next(iter(
                self._recent.values())).until <= now:
            self._write_oldest()

    def _write_oldest(self) -> None:
        """Stop joining with the oldest of the recent refusals."""
        _key, recent = self._recent.popitem(last=False)
        if recent.joined is not None:
            self._write_late(recent.joined)

    def _write_late(self, refusal: Decided) -> None:
        """Write an entry that was kept for a while."""
        self._write(dataclasses.replace(
            refusal, written=stamp(time.time())))

    def _write(self, refusal: Decided) -> bool:
        """Write an entry; if that fails, count its refusals as lost.

        :returns: whether it was written
        """
        try:
            self._files.write(entry.short_line(refusal, self._files.longest))
        except (OSError, entry.LineError) as exc:
            self._count_lost(refusal.count)
            self._log_failure(self._files.directory, exc)
        except Exception:
            self._count_lost(refusal.count)
            LOG.exception('A refusal is not in the decision journal')
        else:
            if self._failing:
                self._failing = False
                LOG.info('The decision journal in %s can be written again',
                         self._files.directory)
            return True
        return False

    def _write_lost(self) -> None:
        with self._lock:
            lost, self._lost = self._lost, 0
        LOG.warning('%d entries are not in the decision journal: they could '
                    'not be written, or not fast enough', lost)
        try:
            self._files.write(entry.line(entry.Lost(
                time=stamp(time.time()), count=lost)))
        except OSError as exc:
            self._count_lost(lost)
            self._log_failure(self._files.directory, exc)

    def _count_lost(self, count: int) -> None:
        with self._lock:
            self._lost += count

    def _log_failure(self, directory: str, exc: Exception) -> None:
        """Log that the journal cannot be written, once."""
        if not self._failing:
            LOG.warning(
                'The decision journal in %s cannot be written, entries are '
                'missing there until it can: %s', directory, exc)
        self._failing = True


def _count_servers(refusal: Decided) -> int:
    """Return the number of UUIDs of servers in an entry."""
    return refusal.count + len(refusal.before) + sum(
        len(each.before) for each in refusal.earlier)


class JournalWriter:
    """A writer of journals for a process; for use by several threads.

    The first call of :meth:`put` in a process starts a thread there; after a
    fork the child starts its own.
    """

    def __init__(self) -> None:
        self._threads = periodic.PerProcess(_Thread)

    def put(self, make: Make, location: JournalLocation,
            project: str = '') -> None:
        """Add a refusal to the queue; never wait for the disk.

        :param make: makes the entry; called in the thread
        :param project: UUID of the project; each has a share of the queue
        """
        self._threads.get().put(make, location, project)

    def stop(self) -> None:
        """Write all waiting refusals of this process, and end its thread."""
        thread = self._threads.pop()
        if thread is not None:
            thread.stop()
