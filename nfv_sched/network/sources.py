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
"""Where filters and weighers read the network load of hosts.

A process has one :class:`Sources`.  The simulator, which has figures of its
own, gives the note of each request another object before the first filter
runs.
"""

import typing as ty

from nfv_sched.network import demand
from nfv_sched.network import neutron
from nfv_sched.network import recent
from nfv_sched.network import usage
from nfv_sched.request import RequestNote


class Figures(ty.Protocol):
    """Gives figures from Neutron; see :class:`neutron.SnapshotSource`."""

    def get(self) -> usage.Snapshot | None:
        """The latest figures, however old; None if there are none."""

    def is_fresh(self, snapshot: usage.Snapshot | None) -> bool:
        """Whether figures are younger than ``max_snapshot_age``."""

    def look_up(self, snapshot: usage.Snapshot | None,
                interfaces: demand.Interfaces) -> None:
        """Write to ``interfaces.more`` what the figures lack about them."""


class Sources:
    """The sources of the network load of hosts.

    :param figures: gives the figures; if None, they are read from Neutron in
        the background, from the first call of their ``get`` on

    :ivar figures: gives figures from Neutron
    :ivar recent: what this process has placed lately, which the figures may
        not show yet
    """

    __slots__ = ('figures', 'recent')

    def __init__(self, figures: Figures | None = None):
        self.recent = recent.Memory()
        self.figures = figures or neutron.SnapshotSource(memory=self.recent)


#: The sources of this process.
PROCESS = Sources()


def of(note: RequestNote) -> Sources:
    """The sources that a request reads.

    :param note: the note of the request
    """
    return note.sources or PROCESS
