# SPDX-License-Identifier: Apache-2.0
"""How long the filters take, for the report of the scheduler's state.

Measured once for all hosts of a request, so that it costs nothing per host.
"""

from collections.abc import Mapping
import threading
import typing as ty


class Passes(ty.NamedTuple):
    """What the passes of a filter took so far.

    :ivar count: how many there were
    :ivar hosts: hosts that it was given in all of them
    :ivar seconds: all of them together
    :ivar longest: the longest, in seconds
    """

    count: int = 0
    hosts: int = 0
    seconds: float = 0.0
    longest: float = 0.0


class Times:
    """The times of a process; for use by several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._passes: dict[str, Passes] = {}

    def add(self, name: str, hosts: int, seconds: float) -> None:
        """Count a pass.

        :param name: of the filter
        :param hosts: how many hosts it was given
        :param seconds: what it took
        """
        with self._lock:
            known = self._passes.get(name, Passes())
            self._passes[name] = Passes(
                known.count + 1, known.hosts + hosts,
                known.seconds + seconds, max(known.longest, seconds))

    def all(self) -> Mapping[str, Passes]:
        """Name of a filter -> its passes; waits for no lock."""
        return dict(self._passes)
