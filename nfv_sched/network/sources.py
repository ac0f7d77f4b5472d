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
"""Where filters and weighers learn what the network puts on hosts.

A process has one such object.  A request's note refers to it, and whatever
works for the request takes it from there.  Who has figures of his own, as the
simulator does, gives the note an object of his own before the first filter
runs.
"""

import typing as ty

from nfv_sched.network import demand
from nfv_sched.network import neutron
from nfv_sched.network import recent
from nfv_sched.network import usage


class Figures(ty.Protocol):
    """Has figures from Neutron; see :class:`neutron.SnapshotSource`."""

    def get(self) -> usage.Snapshot | None:
        """The latest figures, however old; None if there are none."""

    def is_fresh(self, snapshot: usage.Snapshot | None) -> bool:
        """Whether figures are young enough to be believed."""

    def look_up(self, snapshot: usage.Snapshot | None,
                interfaces: demand.Interfaces) -> None:
        """Note in ``interfaces.more`` what the figures lack of them."""


class Sources:
    """What is known of the network, beside what a request itself says.

    :param figures: has the figures; if None, they are read from Neutron in
        the background, from the first time that somebody asks for them

    :ivar figures: figures from Neutron
    :ivar recent: what was placed lately, and these need not show yet
    """

    __slots__ = ('figures', 'recent')

    def __init__(self, figures: Figures | None = None):
        self.recent = recent.Memory()
        self.figures = figures or neutron.SnapshotSource(memory=self.recent)


#: Those of this process.
PROCESS = Sources()
