# SPDX-License-Identifier: Apache-2.0
"""Calculate the capacity for servers after moves of routers and DHCP servers.

Such moves free ports of the virtual switch on some hosts and take some on
others.  Where ports limit capacity, the number of servers that fit changes.
"""

from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import math
import typing as ty

from nfv_sched.ops.answers.hosts import view
from nfv_sched.ops.answers.rebalance import levelling
from nfv_sched.ops.cloud import occupied
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.model.counting import capacity


class Gain(ty.NamedTuple):
    """The change of capacity by moves.

    :ivar ports: name of a host -> ports of its virtual switch that are freed;
        negative if more are taken
    :ivar guests: name of a flavor -> how many more servers fit the cloud,
        negative for fewer; flavors without a change are left out
    :ivar flavor_ids: name of each of these flavors -> its ID; empty if it was
        not read
    """

    ports: Mapping[str, int]
    guests: Mapping[str, int]
    flavor_ids: Mapping[str, str]


def gain(cloud: snapshot.Cloud, plans: Sequence[levelling.RebalancePlan],
         update: ty.Callable[[int, int], None] = lambda done, total: None,
         ) -> Gain:
    """Return the change of capacity by the moves of plans.

    :param cloud: the cloud that the plans are for
    :param update: called with (flavors done, all flavors)
    :raises nfv_sched.ops.cloud.cloud_file.problems.InputError: if a filter of
        the cloud is not installed, or an option is bad
    """
    ports: dict[str, int] = {}
    for plan in plans:
        for move in plan.moves:
            for agent, sign in ((move.source, 1), (move.target, -1)):
                ports[agent.host] = ports.get(agent.host, 0) + (
                    sign * move.service.ports)
    ports = {host: count for host, count in sorted(ports.items()) if count}
    later = after(cloud, plans)
    flavors = [flavor for flavor in cloud.flavors if not flavor.disabled]
    hosts = _port_limited_hosts(cloud, ports, flavors)
    if not hosts:
        return Gain(ports, {}, {})
    now, then = (
        capacity.capacities(each, flavors, hosts=hosts, update=update)
        for each in (cloud, later))
    changes = [(one.flavor, other.fits - one.fits)
               for one, other in zip(now, then) if other.fits != one.fits]
    return Gain(ports, {flavor.name: change for flavor, change in changes},
                {flavor.name: flavor.id for flavor, _change in changes})


def after(cloud: snapshot.Cloud,
          plans: Iterable[levelling.RebalancePlan]) -> snapshot.Cloud:
    """Return the cloud after the moves of the plans for it."""
    changes: dict[str, dict[str, int]] = {}
    serves = {agent.id: set(agent.serves)
              for agent in cloud.network_agents or ()}
    for plan in plans:
        field = 'dhcp_servers' if plan.kind == snapshot.DHCP else 'routers'
        for move in plan.moves:
            serves[move.source.id].discard(move.service.id)
            serves[move.target.id].add(move.service.id)
            for agent, sign in ((move.source, -1), (move.target, 1)):
                of_host = changes.setdefault(agent.host, {})
                for name, count in (('vswitch_ports', move.service.ports),
                                    (field, 1)):
                    of_host[name] = of_host.get(name, 0) + sign * count
    return dataclasses.replace(
        cloud, hosts=tuple([
            dataclasses.replace(host, network=occupied.changed_network(
                host.network, changes.get(host.name, {})))
            for host in cloud.hosts]),
        network_agents=cloud.network_agents and tuple([
            dataclasses.replace(agent, serves=tuple(sorted(serves[agent.id])))
            for agent in cloud.network_agents]))


def _port_limited_hosts(cloud: snapshot.Cloud, ports: Mapping[str, int],
                        flavors: Sequence[snapshot.Flavor]) -> set[str]:
    """Return the names of hosts where ports may limit capacity.

    :param ports: host -> ports that are freed
    """
    least = min((flavor.memory for flavor in flavors), default=0)
    if not flavors or not least:
        return set(ports) if flavors else set()
    free = view.free_ports(cloud)
    limited = set()
    for host in cloud.hosts:
        if host.name in ports and host.name in free:
            memory = host.memory * (host.memory_ratio or 1.0)
            most = math.ceil(max(memory - host.memory_used, 0) / least)
            current = free[host.name]
            if min(current, current + ports[host.name]) < most:
                limited.add(host.name)
    return limited
