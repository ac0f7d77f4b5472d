#    Licensed under the Apache License, Version 2.0 (the "License"); you may
#    not use this file except in compliance with the License. You may obtain
#    a copy of the License at
#
#         http://www.apache.org/licenses/LICENSE-2.0
#
#    Unless required by applicable law or agreed to in writing, software
#    distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
#    WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
#    License for the specific language governing permissions and limitations
#    under the License.
"""Writes the journal, in a thread, so that no request waits for a disk.

What is to be written waits in a queue that has an end: what comes when it is
full is lost, counted, and told in the log and in the journal.
"""

import collections
from collections.abc import Callable
import threading
import time
import typing as ty

from oslo_log import log as logging

from nfv_sched import background
from nfv_sched.journal import entry
from nfv_sched.journal import files

LOG = logging.getLogger(__name__)

#: Refusals that may wait.
QUEUE = 256

#: Seconds that the thread lets pass before it writes, so that it does not
#: compete with the request that it is about.
PAUSE = 0.2


class Place(ty.NamedTuple):
    """Where to write.

    :ivar directory: of the journal
    :ivar size: bytes that it may have
    """

    directory: str
    size: int


Make = Callable[[], entry.Refusal]


def stamp(seconds: float) -> str:
    """A time as the journal has it: ISO 8601, UTC, with milliseconds.

    :param seconds: since the epoch
    """
    whole = int(seconds)
    return time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(whole)) + (
        f'.{int((seconds - whole) * 1000):03d}Z')


class _Thread:
    """The queue of one process and the thread that empties it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: collections.deque[tuple[Make, Place]] = (
            collections.deque())
        self._lost = 0
        self._wanted = threading.Event()
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        # Only used in the thread.
        self._files: files.Writer | None = None
        self._failing = False

    def put(self, make: Make, place: Place) -> None:
        """See :meth:`Journal.put`."""
        with self._lock:
            if len(self._waiting) >= QUEUE:
                self._lost += 1
                return
            self._waiting.append((make, place))
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(
                    target=self._run, name='nfv-sched journal', daemon=True)
                self._thread.start()
        self._wanted.set()

    def stop(self) -> None:
        """Write what waits, and end the thread."""
        self._stopped.set()
        self._wanted.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while not self._stopped.is_set() or self._waiting:
            if not self._stopped.is_set():
                self._wanted.wait()
            self._stopped.wait(PAUSE)
            self._wanted.clear()
            try:
                self._write_waiting()
            except Exception:
                LOG.exception('The thread of the decision journal goes on')
        if self._files is not None:
            self._files.close()

    def _write_waiting(self) -> None:
        """Write all that waits, and how many were lost before."""
        count = len(self._waiting)
        for _ in range(count):
            make, place = self._waiting.popleft()
            try:
                self._write(make, place)
            except (OSError, entry.LineError) as exc:
                self._count_lost(1)
                self._tell(place.directory, exc)
            except Exception:
                self._count_lost(1)
                LOG.exception('A refusal is not in the decision journal')
        if count and self._lost and not self._failing:
            self._write_lost()

    def _write(self, make: Make, place: Place) -> None:
        if self._files is None or place != (
                self._files.directory, self._files.size):
            if self._files is not None:
                self._files.close()
            self._files = files.Writer(*place)
        refusal = make()
        self._files.write(entry.short_line(refusal, self._files.longest))
        if self._failing:
            self._failing = False
            LOG.info('The decision journal in %s can be written again',
                     place.directory)

    def _write_lost(self) -> None:
        with self._lock:
            lost, self._lost = self._lost, 0
        LOG.warning('%d refusals are not in the decision journal: they could '
                    'not be written, or not fast enough', lost)
        try:
            self._files.write(entry.line(entry.Lost(
                time=stamp(time.time()), count=lost)))
        except OSError as exc:
            self._count_lost(lost)
            self._tell(self._files.directory, exc)

    def _count_lost(self, count: int) -> None:
        with self._lock:
            self._lost += count

    def _tell(self, directory: str, exc: Exception) -> None:
        """Log that the journal cannot be written, once."""
        if not self._failing:
            LOG.warning(
                'The decision journal in %s cannot be written, refusals are '
                'missing there until it can: %s', directory, exc)
        self._failing = True


class Journal:
    """The journal as a process writes it; for use by several threads.

    The first call of :meth:`put` in a process starts a thread there; after a
    fork the child starts its own.
    """

    def __init__(self) -> None:
        self._threads = background.PerProcess(_Thread)

    def put(self, make: Make, place: Place) -> None:
        """Have a refusal written soon.  Never waits for the disk.

        :param make: makes the entry; called in the thread
        :param place: where to write it
        """
        self._threads.get().put(make, place)

    def stop(self) -> None:
        """Write what waits in this process, and end its thread."""
        thread = self._threads.pop()
        if thread is not None:
            thread.stop()


#: The journal of this process.
PROCESS = Journal()
