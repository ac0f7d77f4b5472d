# SPDX-License-Identifier: Apache-2.0
"""Define where the network load of hosts is read.

Nothing here imports the Neutron client.  A process has one :class:`Sources`;
see :mod:`nfv_sched.scheduler.figures`.  The simulator has figures of its
own: it puts another :class:`Sources` on the note of each request before the
first filter runs.
"""

import typing as ty

from nfv_sched.limits import demand
from nfv_sched.limits import reservations
from nfv_sched.limits import usage


class UsageSource(ty.Protocol):
    """A source of usage snapshots; see ``neutron.SnapshotSource``."""

    def get(self) -> usage.Snapshot | None:
        """Return the latest snapshot, however old; None before the first."""

    def is_fresh(self, snapshot: usage.Snapshot | None) -> bool:
        """Return whether a snapshot is within ``max_snapshot_age``."""

    def look_up(self, snapshot: usage.Snapshot | None,
                interfaces: demand.Interfaces) -> None:
        """Store in ``interfaces.more`` what the snapshot does not include."""


class Sources:
    """The sources of the network load of hosts.

    :ivar figures: source of the usage snapshots from Neutron
    :ivar recent: servers that this process has placed lately, which the
        snapshot may not show yet
    """

    __slots__ = ('figures', 'recent')

    def __init__(self, figures: UsageSource,
                 memory: reservations.Memory | None = None):
        self.figures = figures
        self.recent = memory or reservations.Memory()
