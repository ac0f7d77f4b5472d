# SPDX-License-Identifier: Apache-2.0
"""Keep the state of a scheduler process beyond its requests, in ``STATE``.

The object is made when this module is imported, that is when
``nova-scheduler`` loads its filters, before it forks its workers.  Nothing is
started by that.

Each worker has a copy after the fork.  It is empty, as the parent schedules
nothing.
"""

import collections
from collections.abc import Callable, Iterable, Mapping
import threading
import typing as ty


class LoggedRefusal(ty.NamedTuple):
    seconds: float  #: time since the epoch
    server: str | None  #: UUID; None if not known
    filter: str  #: class name of the filter that refused the last host
    text: str


class Passes(ty.NamedTuple):
    """The passes of a filter so far, and the time that they took."""

    count: int = 0
    hosts: int = 0  #: hosts that the filter was given in all of them
    seconds: float = 0.0  #: duration of all of them together
    longest: float = 0.0  #: duration of the longest, in seconds


class Process:
    """The state of a process, for use by several threads.

    The report of a worker is made by a signal handler in whichever thread is
    interrupted; that may be one which holds the lock.  So what only reads
    waits for no lock.

    :ivar passes: those of each filter by its name; they are measured once for
        all hosts of a request, so that it costs nothing per host
    :ivar lookups: None until needed
    """

    #: Name under which servers are counted, whatever examined them.
    ALL = 'all'

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._reset()

    def _reset(self) -> None:
        self.passes: dict[str, Passes] = {}
        # What is in shadow has examined, and would have changed.
        self._examined: collections.Counter[str] = collections.Counter()
        self._changed: collections.Counter[tuple[str, str]] = (
            collections.Counter())
        self.refusals: collections.deque[LoggedRefusal] = collections.deque(
            maxlen=20)
        self.lookups: ty.Any = None

    def add_pass(self, name: str, hosts: int, seconds: float) -> None:
        with self._lock:
            passes = self.passes.get(name, Passes())
            self.passes[name] = Passes(
                passes.count + 1, passes.hosts + hosts,
                passes.seconds + seconds, max(passes.longest, seconds))

    def add_placed(self, names: Iterable[str], change: str,
                   by: Iterable[str]) -> None:
        """Count a server that Nova has placed; see ``entry.PlacedServer``.

        :param names: filters and weighers in shadow that have examined it
        """
        with self._lock:
            self._examined.update([self.ALL, *names])
            if change:
                self._changed.update(
                    [(name, change) for name in (self.ALL, *by)])

    def in_shadow(self) -> Mapping[str, tuple[int, Mapping[str, int]]]:
        """Return (servers, change -> servers) of what is in shadow by name."""
        changed = dict(self._changed)
        return {name: (count, {change: number for (other, change), number
                               in sorted(changed.items()) if other == name})
                for name, count in sorted(dict(self._examined).items())}

    def lookups_in_neutron(self, make: Callable[[], ty.Any]) -> ty.Any:
        """Return what looks up items; made at the first call."""
        with self._lock:
            self.lookups = self.lookups or make()
        return self.lookups

    def reset(self) -> None:
        """End the threads and forget everything; for tests."""
        if self.lookups is not None:
            self.lookups.close()
        self._reset()


STATE = Process()
