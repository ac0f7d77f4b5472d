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
import threading
import typing as ty

from nfv_sched.scheduler import filter_stats


class LoggedRefusal(ty.NamedTuple):
    """A refusal that was logged."""

    seconds: float  #: time since the epoch
    server: str | None  #: UUID; None if not known
    filter: str  #: class name of the filter that refused the last host
    text: str


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
        self.times = filter_stats.Times()
        self.shadow = filter_stats.ShadowCounts()
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
