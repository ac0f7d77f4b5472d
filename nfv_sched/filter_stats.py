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
