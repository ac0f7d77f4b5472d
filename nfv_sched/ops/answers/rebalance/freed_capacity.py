# SPDX-License-Identifier: Apache-2.0
"""Calculate the capacity for servers after moves of routers and DHCP servers.

Such moves free ports of the virtual switch on some hosts and take some on
others.  Where ports limit capacity, the number of servers that fit changes.
"""

import collections
from collections.abc import Callable, Mapping, Sequence
import dataclasses
import math

from nfv_sched.ops.answers.hosts import view
from nfv_sched.ops.answers.rebalance import document
from nfv_sched.ops.cloud import occupied
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.model.counting import capacity


def with_gain(cloud: snapshot.Cloud, plan: document.Rebalance,
              update: Callable[[int, int], None] = lambda done,
              total: None) -> document.Rebalance:
    """Return a plan for the cloud with the change of capacity by its moves.

    :raises InputError: if a filter of the cloud is not installed, or an option
        is bad
    """
    freed = collections.Counter()
    for move in plan.moves:
        freed[move.source] += move.ports
        freed[move.destination] -= move.ports
    ports = {host: count for host, count in sorted(freed.items()) if count}
    flavors = [flavor for flavor in cloud.flavors if not flavor.disabled]
    hosts = _port_limited_hosts(cloud, ports, flavors)
    gained: list[document.GainedServers] = []
    if hosts:
        now, then = (
            capacity.capacities(each, flavors, hosts=hosts, update=update)
            for each in (cloud, after(cloud, plan)))
        gained = [document.GainedServers(
            flavor=one.flavor.name, flavor_id=one.flavor.id or None,
            servers=other.fits - one.fits)
            for one, other in zip(now, then) if other.fits != one.fits]
    return dataclasses.replace(
        plan, freed_ports=tuple([
            document.FreedPorts(host=host, ports=count)
            for host, count in ports.items()]), gained_servers=tuple(gained))


def after(cloud: snapshot.Cloud, plan: document.Rebalance) -> snapshot.Cloud:
    changes: dict[str, collections.Counter[str]] = {}
    serves = {agent.id: set(agent.serves)
              for agent in cloud.network_agents or ()}
    for move in plan.moves:
        serves[move.source_agent_id].discard(move.service_id)
        serves[move.destination_agent_id].add(move.service_id)
        field = 'dhcp_servers' if move.kind == snapshot.DHCP else 'routers'
        for host, sign in ((move.source, -1), (move.destination, 1)):
            of_host = changes.setdefault(host, collections.Counter())
            of_host['vswitch_ports'] += sign * move.ports
            of_host[field] += sign
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
