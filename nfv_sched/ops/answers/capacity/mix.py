# SPDX-License-Identifier: Apache-2.0
"""Count how many times a mix of servers fits a cloud.

Servers are put on the first host that takes them, one after the other.  So the
count is reached surely; servers in another order may fit more often.
"""

import collections
from collections.abc import Collection, Sequence

from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.model.counting import capacity
from nfv_sched.ops.model.counting import host_changes
from nfv_sched.ops.model.counting import placement_count
from nfv_sched.ops.simulator import servers


def times(cloud: snapshot.Cloud, mix: Sequence[tuple[snapshot.Flavor, int]],
          new: capacity.NewServers = capacity.NewServers(), *,
          hosts: Collection[str] | None = None, empty: bool = False) -> int:
    """Count how many times a mix of servers fits a cloud at least.

    See also :func:`nfv_sched.ops.model.counting.capacity.capacities`.

    :param mix: flavors, and the number of servers of each in the mix
    :raises nfv_sched.ops.simulator.servers.Refused: if Nova takes no server of
        one of the flavors; says which, and why
    """
    with capacity.counting_on(cloud, new, empty) as counting:
        # Large servers first: small ones fit into the rest.
        kinds = sorted(
            [(host_changes.MovableGuest(_guest(counting, flavor)), count)
             for flavor, count in mix],
            key=lambda kind: -kind[0].counted.spec.vcpus)
        positions = [host_changes.of_host(host, counting.placement)
                     for host in counting.hosts(hosts)]
        #: Server -> index of the first host that may still take it.
        first: collections.Counter[host_changes.MovableGuest] = (
            collections.Counter())

        def put(guest: host_changes.MovableGuest) -> bool:
            for number in range(first[guest], len(positions)):
                first[guest] = number
                if (after := positions[number].put(guest)) is not None:
                    positions[number] = after
                    return True
            first[guest] = len(positions)
            return False

        rounds = 0
        while rounds < placement_count.MANY and all(
                put(guest) for guest, count in kinds
                for _number in range(count)):
            rounds += 1
        return rounds


def _guest(counting: capacity.Counting,
           flavor: snapshot.Flavor) -> capacity.CountedGuest:
    try:
        return counting.guest(flavor)
    except servers.Refused as exc:
        raise servers.Refused(f'{flavor.name}: {exc}') from exc
