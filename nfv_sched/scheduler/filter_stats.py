# SPDX-License-Identifier: Apache-2.0
"""Measure the time that filters take, and count outcomes of those in shadow.

For the report of the scheduler's state.  Time is measured once for all hosts
of a request, so that it costs nothing per host.
"""

import collections
from collections.abc import Iterable
from collections.abc import Mapping
import threading
import typing as ty


class Passes(ty.NamedTuple):
    """The passes of a filter so far, and the time that they took."""

    count: int = 0
    hosts: int = 0  #: hosts that the filter was given in all of them
    seconds: float = 0.0  #: duration of all of them together
    longest: float = 0.0  #: duration of the longest, in seconds


class Times:
    """The times of a process; for use by several threads."""

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
