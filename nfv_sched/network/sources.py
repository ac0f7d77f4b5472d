# SPDX-License-Identifier: Apache-2.0
"""Sources of the network load of hosts, without the client of Neutron.

A process has one :class:`Sources`; see
:mod:`nfv_sched.network_limits.figures`.  The simulator, which has figures of
its own, gives the note of each request another object before the first filter
runs.
"""

import typing as ty

from nfv_sched.network import demand
from nfv_sched.network import reservations
from nfv_sched.network import usage


class UsageSource(ty.Protocol):
    """Gives figures from Neutron; see ``neutron.SnapshotSource``."""

    def get(self) -> usage.Snapshot | None:
        """Return the latest figures, however old; None if there are none."""

    def is_fresh(self, snapshot: usage.Snapshot | None) -> bool:
        """Return whether figures are younger than ``max_snapshot_age``."""

    def look_up(self, snapshot: usage.Snapshot | None,
                interfaces: demand.Interfaces) -> None:
        """Write to ``interfaces.more`` what the figures lack about them."""


class Sources:
    """The sources of the network load of hosts.

    :ivar figures: gives figures from Neutron
    :ivar recent: what this process has placed lately, which the figures may
        not show yet
    """

    __slots__ = ('figures', 'recent')

    def __init__(self, figures: UsageSource,
                 memory: reservations.Memory | None = None):
        self.figures = figures
        self.recent = memory or reservations.Memory()
