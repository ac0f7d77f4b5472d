# SPDX-License-Identifier: Apache-2.0
"""Find the smallest server that must leave a host for a new one to fit.

Whether another host takes that server is not checked here;
:mod:`nfv_sched.ops.answers.plans.defrag` plans moves.
"""

from collections.abc import Callable, Collection, Iterator

from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.model import arrangements
from nfv_sched.ops.model.counting import capacity
from nfv_sched.ops.simulator import servers
from nfv_sched.ops.simulator import start


def find(cloud: snapshot.Cloud, flavor: snapshot.Flavor,
         new: capacity.NewServers = capacity.NewServers(), *,
         hosts: Collection[str] | None = None,
         update: Callable[[int, int], None] = lambda done,
         total: None) -> Iterator[tuple[str, snapshot.Server]]:
    """Yield the smallest server of each host to leave it for a new one.

    That with the fewest vCPUs, and of these with the least memory.  Servers
    with a task in progress in Nova, or whose request is not known, are left
    out, and so are hosts without others.

    :param hosts: names of the hosts of interest; None for all
    :raises nfv_sched.ops.simulator.servers.Refused: if Nova refuses the
        flavor, or has no hosts for the project
    """
    with start.started(cloud) as state:
        positions = arrangements.Positions(cloud, state, new)
        guest = positions.new(flavor)
        chosen = [host for name, host in positions.hosts.items()
                  if hosts is None or name in hosts]
        counts = guest.counted.count(chosen)
        for index, (name, counted) in enumerate(counts.items()):
            update(index, len(counts))
            server = _smallest_freeing(positions, guest, name, counted.fits)
            if server is not None:
                yield name, server
        update(len(counts), len(counts))


def _smallest_freeing(positions: arrangements.Positions,
                      guest: arrangements.Guest, name: str,
                      fits: int) -> snapshot.Server | None:
    there = [positions.servers[uuid] for uuid in positions.on_host[name]]
    for server in sorted(there, key=lambda server: (
            server.flavor.vcpus, server.flavor.memory, server.name)):
        if server.task:
            continue
        try:
            position = positions.without(positions.position(name), server.uuid)
        except servers.Refused:
            continue
        if positions.fits(position, guest, fits + 1) > fits:
            return server
    return None
