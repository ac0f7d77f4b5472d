# SPDX-License-Identifier: Apache-2.0
"""Keep the state of a scheduler process beyond its requests, in ``STATE``.

The object is made when this module is imported, that is when
``nova-scheduler`` loads its filters, before it forks its workers.  Nothing is
started by that.

Each worker has a copy after the fork.  It is empty, as the parent schedules
nothing.

It ends with the process.  Tests reset it.
"""

import collections
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
import threading
import typing as ty


class LoggedRefusal(ty.NamedTuple):
    """A refusal that was logged."""

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


class Times:
    """The times of the filters of a process; for use by several threads.

    They are measured once for all hosts of a request, so that it costs nothing
    per host.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._passes: dict[str, Passes] = {}

    def add(self, name: str, hosts: int, seconds: float) -> None:
        """Count a pass of a filter."""
        with self._lock:
            passes = self._passes.get(name, Passes())
            self._passes[name] = Passes(
                passes.count + 1, passes.hosts + hosts,
                passes.seconds + seconds, max(passes.longest, seconds))

    def all(self) -> Mapping[str, Passes]:
        """Return the passes of each filter by its name; waits for no lock."""
        # The report of a worker is made by a signal handler in whichever
        # thread is interrupted; that may be one which holds the lock.
        return dict(self._passes)


class ShadowCounts:
    """The numbers of servers that what is in shadow would have changed.

    For use by several threads.
    """

    #: Name under which servers are counted, whatever examined them.
    ALL = 'all'

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._servers: collections.Counter[str] = collections.Counter()
        self._changed: collections.Counter[tuple[str, str]] = (
            collections.Counter())

    def add(self, names: Iterable[str], change: str,
            by: Iterable[str]) -> None:
        """Count a server that Nova has placed; see ``entry.PlacedServer``.

        :param names: filters and weighers in shadow that have examined it
        """
        with self._lock:
            self._servers.update([self.ALL, *names])
            if change:
                self._changed.update(
                    [(name, change) for name in (self.ALL, *by)])

    def all(self) -> Mapping[str, tuple[int, Mapping[str, int]]]:
        """Return (servers, change -> servers) by name; waits for no lock."""
        changed = dict(self._changed)
        return {name: (count, {change: number for (other, change), number
                               in sorted(changed.items()) if other == name})
                for name, count in sorted(dict(self._servers).items())}


class Process:
    """The state of a process, for use by several threads.

    :ivar times: times of the filters
    :ivar shadow: outcomes of filters and weighers in shadow
    :ivar refusals: the last refusals
    :ivar lookups: looks up items in Neutron; None until it is needed
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._reset()

    def _reset(self) -> None:
        self.times = Times()
        self.shadow = ShadowCounts()
        self.refusals: collections.deque[LoggedRefusal] = collections.deque(
            maxlen=20)
        self.lookups: ty.Any = None

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
