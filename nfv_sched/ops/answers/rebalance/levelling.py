# SPDX-License-Identifier: Apache-2.0
"""Plan moves that spread DHCP servers and routers evenly over agents.

An agent of Neutron serves networks or routers, here called services, and these
take ports of the virtual switch of its host.  Either their number, which is
the default, or their ports are levelled.  Agents that are down or disabled are
emptied first.  Then, as long as the load of one agent exceeds that of another
that can take one of its services by more than a threshold, a service is moved:
from the agent with the highest load to the one with the lowest (the other of
number and ports decides between equal loads), and of the possible services the
one that brings the ports of the two closest together.  If none of that agent
can go there, the next agent is tried, and so on; this follows the virtual
infrastructure manager of StarlingX.  No service is moved twice.

Each of these moves makes two loads more alike and neither as high as the
higher one was, so the search ends.  If numbers are levelled and every agent
can take every service, the number of moves is minimal.
"""

import bisect
from collections.abc import Iterable, Iterator, Mapping, Sequence
import shlex
import typing as ty

from nfv_sched.base import strings
from nfv_sched.ops.answers.rebalance import document
from nfv_sched.ops.cloud import snapshot

#: Default of the highest accepted difference between the loads of agents.
THRESHOLD = 3

#: Words of the client's commands for the services of an agent, by kind.
_SERVED = {snapshot.DHCP: ('network', '--dhcp'),
           snapshot.ROUTER: ('router', '--l3')}
#: Modes of agents that take only distributed routers.
_DISTRIBUTED_ONLY = ('dvr', 'dvr_no_external')


def in_use(agent: snapshot.NetworkAgent) -> bool:
    return (agent.alive and agent.enabled
            and agent.mode not in _DISTRIBUTED_ONLY)


def movable(service: snapshot.NetworkService) -> bool:
    return not (service.ha or service.distributed or service.physnets is None)


def obstacle(service: snapshot.NetworkService,
             agent: snapshot.NetworkAgent) -> str | None:
    """Return why an agent in use can never take a service; None if it can."""
    if agent.physnets is None:
        return 'no agent says what the switch reaches'
    lacking = sorted(service.physnets - agent.physnets)
    if agent.tunnels is not None:
        lacking += [f'{kind} tunnels' for kind in sorted(
            service.tunnels - agent.tunnels)]
    if lacking:
        return f'no {", ".join(lacking)}'
    if service.zones and agent.zone not in service.zones:
        return 'in another availability zone'
    if agent.external_only and not service.external:
        return 'takes only routers with a gateway'
    return None


def plans(cloud: snapshot.Cloud,
          kinds: Iterable[str] = (snapshot.DHCP, snapshot.ROUTER), *,
          threshold: int = THRESHOLD, by_ports: bool = False,
          room: Mapping[str, int] | None = None) -> document.Rebalance:
    """Plan the moves for a cloud.

    :param kinds: kinds of agents; those of OVN go with routers
    :param threshold: highest accepted difference between the loads of agents,
        1 or more
    :param by_ports: level ports, not the number; for routers of OVN, whose
        ports are not known, always the number
    :param room: host -> free ports of its virtual switch; hosts without a
        limit may be left out
    :returns: a plan for each kind that has agents, and moves without what
        they free
    """
    plans: list[document.AgentPlan] = []
    moves: list[document.AgentMove] = []
    free_ports = dict(room or {})
    planned_kinds = set(kinds)
    if snapshot.ROUTER in planned_kinds:
        planned_kinds.add(snapshot.OVN)
    for kind in (snapshot.DHCP, snapshot.ROUTER, snapshot.OVN):
        agents = [agent for agent in cloud.network_agents or ()
                  if agent.kind == kind]
        if kind in planned_kinds and agents:
            planner = _Planner(agents, cloud.network_services, threshold,
                               by_ports and kind != snapshot.OVN, free_ports,
                               len(moves) + 1)
            plans.append(planner.plan(kind))
            moves += planner.moves
    return document.Rebalance(moves=tuple(moves), plans=tuple(plans),
                              freed_ports=(), gained_servers=())


#: An agent with its load, to be sorted by it: ports or number, whichever is
#: levelled, the other of the two, host, UUID.
_Entry = tuple[int, int, str, str]


class _Planner:
    """A search for moves between the agents of a kind; see :func:`plans`.

    :param free_ports: host -> free ports of its virtual switch; changed
    :param first: number of the first move
    """

    def __init__(self, agents: Sequence[snapshot.NetworkAgent],
                 services: Iterable[snapshot.NetworkService], threshold: int,
                 by_ports: bool, free_ports: dict[str, int], first: int):
        self._threshold, self._by_ports, self._free_ports = (
            threshold, by_ports, free_ports)
        self._services = {each.id: each for each in services}
        self._agents = sorted(agents, key=lambda each: (each.host, each.id))
        self._agents_by_id = {agent.id: agent for agent in agents}
        self._services_of = {agent.id: set(agent.serves) for agent in agents}
        self._ports = {agent.id: 0 for agent in agents}
        # Services that may still be moved, by their requirements.
        self._groups: dict[str, dict[tuple, set[str]]] = {}
        for agent in agents:
            groups = self._groups[agent.id] = {}
            for service in map(self._services.get, agent.serves):
                if service is not None:
                    self._ports[agent.id] += service.ports
                    if movable(service):
                        groups.setdefault(
                            _requirements_of(service), set()).add(service.id)
        # Agents in use, the emptiest first.
        self._order = sorted(
            self._entry(agent) for agent in agents if in_use(agent))
        self._fit: dict[tuple, bool] = {}
        # (service, agent): a service does not return to an agent.
        self._moved_from: set[tuple[str, str]] = set()
        self._stuck: set[str] = set()
        self._first = first
        self.moves: list[document.AgentMove] = []

    def plan(self, kind: str) -> document.AgentPlan:
        before, loads = self._spread(), list(map(self._load, self._agents))
        stays: list[document.StuckServices] = []
        is_ovn = kind == snapshot.OVN
        if not is_ovn:
            stays = self._empty_agents()
            while self._level():
                pass
            order = self._emptiest_first()
            for source in reversed(order):
                due = [target for target in order
                       if self._gap(source, target) > self._threshold]
                if due:
                    stays += self._stays(source, self._movable_of(source), due)
        served = {name for agent in self._agents for name in agent.serves}
        return document.AgentPlan(
            kind=ty.cast(ty.Any, kind), threshold=self._threshold,
            levels='ports' if self._by_ports else 'services',
            before=before, after=self._spread(),
            agents=tuple([document.AgentUse(
                host=agent.host, agent_id=agent.id, in_use=in_use(agent),
                services=number, services_after=number_after,
                ports=None if is_ovn else ports,
                ports_after=None if is_ovn else ports_after)
                for agent, (number, ports), (number_after, ports_after)
                in zip(self._agents, loads, map(self._load, self._agents))]),
            stays=tuple(stays), left_out=tuple([document.SkippedRouter(
                service=each.name or None, service_id=each.id, ha=each.ha,
                distributed=each.distributed,
                networks_known=each.physnets is not None)
                for name, each in sorted(self._services.items())
                if name in served and not movable(each)]))

    def _spread(self) -> document.Spread:
        """Return the highest and lowest load of agents in use, or 0."""
        order = self._order or [(0, 0, '', '')]
        return document.Spread(most=order[-1][0], fewest=order[0][0])

    def _load(self, agent: snapshot.NetworkAgent) -> tuple[int, int]:
        return len(self._services_of[agent.id]), self._ports[agent.id]

    def _entry(self, agent: snapshot.NetworkAgent) -> _Entry:
        load = self._load(agent)
        return (*(reversed(load) if self._by_ports else load), agent.host,
                agent.id)

    def _emptiest_first(self) -> list[snapshot.NetworkAgent]:
        return [self._agents_by_id[uuid] for *_load, uuid in self._order]

    def _empty_agents(self) -> list[document.StuckServices]:
        """Empty agents that are not in use; return the rest."""
        stays = []
        for agent in self._agents:
            if in_use(agent):
                continue
            # First services that few agents can take, then large ones.
            targets = self._emptiest_first()
            names = sorted(
                self._movable_of(agent), key=lambda name: (
                    sum(self._fits(name, target) for target in targets),
                    -self._services[name].ports, name))
            unplaced = []
            for name in names:
                target = next((target for target in self._emptiest_first()
                               if self._can_take(name, target)), None)
                if target is None:
                    unplaced.append(name)
                else:
                    self._move(name, agent, target)
            stays += self._stays(agent, unplaced, targets)
        return stays

    def _level(self) -> bool:
        """Make the next move that is due; return False if there is none."""
        order = self._emptiest_first()
        for source in reversed(order):
            if self._gap(source, order[0]) <= self._threshold:
                return False
            if source.id in self._stuck:
                continue
            for target in order:
                if self._gap(source, target) <= self._threshold:
                    break
                names = self._choices(source, target)
                if names:
                    # That which brings the ports of both closest.
                    apart = self._ports[source.id] - self._ports[target.id]
                    self._move(min(names, key=lambda name: (
                        abs(apart - 2 * self._services[name].ports), name)),
                        source, target)
                    return True
            self._stuck.add(source.id)
        return False

    def _gap(self, source: snapshot.NetworkAgent,
             target: snapshot.NetworkAgent) -> int:
        levelled = int(self._by_ports)
        return self._load(source)[levelled] - self._load(target)[levelled]

    def _choices(self, source: snapshot.NetworkAgent,
                 target: snapshot.NetworkAgent) -> list[str]:
        gap = self._gap(source, target)
        return [
            name for names in self._groups[source.id].values()
            if names and self._fits(next(iter(names)), target)
            for name in names if 0 < (
                self._services[name].ports if self._by_ports else 1
            ) < gap and self._can_take(name, target)]

    def _movable_of(self, agent: snapshot.NetworkAgent) -> Iterator[str]:
        for names in self._groups[agent.id].values():
            yield from names

    def _fits(self, name: str, agent: snapshot.NetworkAgent) -> bool:
        service = self._services[name]
        key = agent.id, _requirements_of(service)
        if key not in self._fit:
            self._fit[key] = obstacle(service, agent) is None
        return self._fit[key]

    def _can_take(self, name: str, agent: snapshot.NetworkAgent) -> bool:
        return (self._fits(name, agent)
                and name not in self._services_of[agent.id]
                and (name, agent.id) not in self._moved_from
                and self._services[name].ports <= self._free_ports.get(
                    agent.host, self._services[name].ports))

    def _move(self, name: str, source: snapshot.NetworkAgent,
              target: snapshot.NetworkAgent) -> None:
        service = self._services[name]
        self._groups[source.id][_requirements_of(service)].discard(name)
        self._moved_from.add((name, source.id))
        self._change(source, service, -1)
        self._change(target, service, 1)
        self.moves.append(document.AgentMove(
            move=self._first + len(self.moves),
            kind=ty.cast(ty.Any, service.kind), service=service.name or None,
            service_id=service.id, source=source.host,
            source_agent_id=source.id, destination=target.host,
            destination_agent_id=target.id, ports=service.ports,
            after=self._spread(), commands=tuple([
                shlex.join(('openstack', 'network', 'agent', verb,
                            *_SERVED[service.kind], '--', agent.id,
                            service.id))
                for verb, agent in (('remove', source), ('add', target))])))
        # Other agents may have services for the one with the lower load now.
        self._stuck.discard(target.id)
        if in_use(source):
            self._stuck -= {
                agent.id for agent in self._agents if agent.id in self._stuck
                and self._gap(agent, source) > self._threshold
                and self._choices(agent, source)}

    def _change(self, agent: snapshot.NetworkAgent,
                service: snapshot.NetworkService, sign: int) -> None:
        """Assign a service to an agent, or with -1 remove it."""
        if in_use(agent):
            del self._order[bisect.bisect_left(
                self._order, self._entry(agent))]
        carried = self._services_of[agent.id]
        (carried.add if sign > 0 else carried.remove)(service.id)
        self._ports[agent.id] += sign * service.ports
        if agent.host in self._free_ports:
            self._free_ports[agent.host] -= sign * service.ports
        if in_use(agent):
            bisect.insort(self._order, self._entry(agent))

    def _stays(self, agent: snapshot.NetworkAgent, names: Iterable[str],
               targets: Sequence[snapshot.NetworkAgent],
               ) -> list[document.StuckServices]:
        by_reason: dict[str, list[document.ServedThing]] = {}
        for name in sorted(names, key=lambda name: (
                self._services[name].name, name)):
            by_reason.setdefault(self._reason(name, targets), []).append(
                document.ServedThing(
                    service=self._services[name].name or None,
                    service_id=name))
        return [document.StuckServices(
            host=agent.host, agent_id=agent.id, why=reason,
            services=tuple(services))
            for reason, services in by_reason.items()]

    def _reason(self, name: str,
                targets: Iterable[snapshot.NetworkAgent]) -> str:
        hosts: dict[str, list[str]] = {}
        for target in targets:
            if (reason := obstacle(self._services[name], target)) is None:
                reason = 'would be no more even'
                if name in self._services_of[target.id]:
                    reason = 'has it already'
                elif not self._can_take(name, target):
                    reason = 'no ports left on the virtual switch'
            hosts.setdefault(reason, []).append(target.host)
        return '; '.join(
            f'{strings.some(names)}: {reason}'
            for reason, names in hosts.items()
        ) or 'no other agent is in use'


def _requirements_of(service: snapshot.NetworkService) -> tuple:
    return (service.physnets, service.tunnels, service.zones, service.external)
