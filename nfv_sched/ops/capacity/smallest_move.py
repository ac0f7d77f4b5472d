# SPDX-License-Identifier: Apache-2.0
"""Which one server must leave a host so that one more guest fits there.

Whether that server has room elsewhere is not asked here; a plan of moves is in
:mod:`nfv_sched.ops.plans.defrag`.
"""

from collections.abc import Callable
from collections.abc import Mapping

from nfv_sched.ops.counting import capacity
from nfv_sched.ops.plans import arrangements
from nfv_sched.ops.requests import assumed_ports
from nfv_sched.ops.simulator import servers
from nfv_sched.ops.simulator import start
from nfv_sched.ops.snapshot import snapshot


def smallest(
    cloud: snapshot.Cloud, flavor: snapshot.Flavor,
    fits: Mapping[str, int], *, ports: assumed_ports.Choice = None,
    image: Mapping[str, str] = capacity.NO_IMAGE,
    project: str | None = None,
    update: Callable[[int, int], None] = lambda done, total: None,
) -> dict[str, snapshot.Server]:
    """The smallest server of each host without which one more guest fits.

    That with the fewest vCPUs, and of these with the least memory.  Servers
    that Nova is busy with, or whose request is not known, are left out.

    :param cloud: the cloud
    :param flavor: flavor of the guests
    :param fits: name of each host that is asked about -> number of guests that
        fit there now
    :param ports: the ports that each guest has
    :param image: properties of the image of the guests, that Nova can read
    :param project: ID of the project of the guests; None for one that no
        aggregate is for
    :param update: called with (hosts done, hosts in all)
    :returns: by name of the host; hosts are missing where there is none
    :raises nfv_sched.ops.simulator.servers.Refused: if Nova does not take the
        flavor, or has no hosts for the project
    :raises nfv_sched.ops.cloud_file.problems.InputError: if a filter of
        the cloud is not installed, or an option is bad
    """
    with start.started(cloud) as state:
        known = arrangements.Positions(cloud, state, ports, project)
        guest = known.new(flavor, image)
        found = {}
        for done, (name, count) in enumerate(fits.items()):
            update(done, len(fits))
            server = _smallest(known, guest, name, count)
            if server is not None:
                found[name] = server
        update(len(fits), len(fits))
        return found


def _smallest(known: arrangements.Positions, guest: arrangements.Guest,
              name: str, fits: int) -> snapshot.Server | None:
    there = [known.servers[uuid] for uuid in known.on_host[name]]
    for server in sorted(there, key=lambda server: (
            server.flavor.vcpus, server.flavor.memory, server.name)):
        if server.task:
            continue
        try:
            position = known.without(known.position(name), server.uuid)
        except servers.Refused:
            continue
        if known.fits(position, guest, fits + 1) > fits:
            return server
    return None
