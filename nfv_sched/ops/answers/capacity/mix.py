# SPDX-License-Identifier: Apache-2.0
"""Count how many times a mix of servers fits a cloud.

Servers are put on the first host that takes them, one after the other.  So the
count is reached surely; servers in another order may fit more often.
"""

from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence

from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.model.counting import capacity
from nfv_sched.ops.model.counting import host_changes
from nfv_sched.ops.model.counting import placement_count
from nfv_sched.ops.model.requests import assumed_ports
from nfv_sched.ops.simulator import servers


def times(
    cloud: snapshot.Cloud, mix: Sequence[tuple[snapshot.Flavor, int]], *,
    hosts: Collection[str] | None = None, empty: bool = False,
    ports: assumed_ports.Choice = None,
    image: Mapping[str, str] = capacity.NO_IMAGE,
    project: str | None = None,
    hints: Mapping[str, Sequence[str]] = capacity.NO_HINTS,
) -> int:
    """Count how many times a mix of servers fits a cloud at least.

    See also :func:`nfv_sched.ops.model.counting.capacity.capacities`.

    :param mix: flavors, and the number of servers of each in the mix
    :raises nfv_sched.ops.simulator.servers.Refused: if Nova takes no server of
        one of the flavors; says which, and why
    """
    with capacity.counting_on(
            cloud, empty, ports, project, hints) as counting:
        # Large servers first: small ones fit into the rest.
        kinds = sorted(
            [(host_changes.MovableGuest(_guest(counting, flavor, image)),
              count)
             for flavor, count in mix],
            key=lambda kind: -kind[0].counted.spec.vcpus)
        filling = _Filling(
            host_changes.of_host(host, counting.placement)
            for host in counting.hosts(hosts))
        rounds = 0
        while rounds < placement_count.MANY and all(
                filling.put(guest) for guest, count in kinds
                for _number in range(count)):
            rounds += 1
        return rounds


def _guest(counting: capacity.Counting, flavor: snapshot.Flavor,
           image: Mapping[str, str]) -> capacity.CountedGuest:
    try:
        return counting.guest(flavor, image)
    except servers.Refused as exc:
        raise servers.Refused(f'{flavor.name}: {exc}') from exc


class _Filling:
    """The hosts of a cloud while servers are added."""

    def __init__(self, hosts: Iterable[host_changes.Position]):
        self._hosts = list(hosts)
        #: Server -> index of the first host that may still take it.
        self._next: dict[host_changes.MovableGuest, int] = {}

    def put(self, guest: host_changes.MovableGuest) -> bool:
        """Put a server on the first host that takes it; False if none does."""
        for number in range(self._next.get(guest, 0), len(self._hosts)):
            self._next[guest] = number
            after = self._hosts[number].put(guest)
            if after is not None:
                self._hosts[number] = after
                return True
        self._next[guest] = len(self._hosts)
        return False
