# SPDX-License-Identifier: Apache-2.0
"""Define the document of ``agent rebalance``."""

import dataclasses
import typing as ty


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Loads of the agents in use.

    :ivar most: highest load: a number of services, or of ports
    :ivar fewest: lowest load
    """

    most: int
    fewest: int

    def __str__(self) -> str:
        return f'{self.most}-{self.fewest}'


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class AgentMove:
    """A move of a network's DHCP server, or of a router.

    :ivar move: number of the move
    :ivar kind: "dhcp" or "router"
    :ivar service: name of the network or router; null if it has none
    :ivar service_id: its UUID
    :ivar source: name of the host of the agent that serves it
    :ivar source_agent_id: UUID of this agent
    :ivar destination: name of the host of the agent that is to serve it
    :ivar destination_agent_id: UUID of this agent
    :ivar ports: number of ports of the virtual switch that it takes
    :ivar after: loads after this move
    :ivar commands: commands for a shell that make the move
    """

    move: int
    kind: ty.Literal['dhcp', 'router']
    service: str | None
    service_id: str
    source: str
    source_agent_id: str
    destination: str
    destination_agent_id: str
    ports: int
    after: Spread
    commands: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class AgentUse:
    """The load of an agent.

    :ivar host: name of its host
    :ivar agent_id: UUID of the agent; name of the chassis for "ovn"
    :ivar in_use: whether it is alive, enabled and takes such services
    :ivar services: number of its services
    :ivar services_after: the same after the moves
    :ivar ports: ports of the virtual switch that they take; null for "ovn"
    :ivar ports_after: the same after the moves
    """

    host: str
    agent_id: str
    in_use: bool
    services: int
    services_after: int
    ports: int | None
    ports_after: int | None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ServedThing:
    """A network or router.

    :ivar service: its name; null if it has none
    :ivar service_id: its UUID
    """

    service: str | None
    service_id: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class StuckServices:
    """Services that should be moved and cannot be.

    :ivar host: name of the host of their agent
    :ivar agent_id: UUID of the agent
    :ivar why: reason, for people
    :ivar services: DHCP servers or routers that stay
    """

    host: str
    agent_id: str
    why: str
    services: tuple[ServedThing, ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SkippedRouter:
    """A router that is left out.

    :ivar service: its name; null if it has none
    :ivar service_id: its UUID
    :ivar ha: whether it is highly available
    :ivar distributed: whether it is distributed (DVR)
    :ivar networks_known: whether Neutron shows its networks
    """

    service: str | None
    service_id: str
    ha: bool
    distributed: bool
    networks_known: bool


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class AgentPlan:
    """The distribution of services of one kind.

    :ivar kind: "ovn" is routers at gateways of ML2/OVN, which places them
        itself
    :ivar levels: what is levelled
    :ivar threshold: highest accepted difference between loads
    :ivar before: loads now
    :ivar after: loads after the moves
    :ivar agents: agents of this kind, with their services
    :ivar stays: services that should be moved and cannot be
    :ivar left_out: routers that are left out
    """

    kind: ty.Literal['dhcp', 'router', 'ovn']
    levels: ty.Literal['services', 'ports']
    threshold: int
    before: Spread
    after: Spread
    agents: tuple[AgentUse, ...]
    stays: tuple[StuckServices, ...]
    left_out: tuple[SkippedRouter, ...]

    @property
    def imbalance(self) -> int:
        """Difference between the loads of agents in use now."""
        return self.before.most - self.before.fewest


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class FreedPorts:
    """A change of the ports of a virtual switch.

    :ivar host: name of the host
    :ivar ports: number of ports that are freed; negative if more are taken
    """

    host: str
    ports: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class GainedServers:
    """A change of the number of servers that fit.

    :ivar flavor: name of the flavor
    :ivar flavor_id: ID of the flavor; null if it was not read
    :ivar servers: how many more fit the cloud; negative for fewer
    """

    flavor: str
    flavor_id: str | None = None
    servers: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Rebalance:
    """An even distribution of DHCP servers and routers.

    :ivar moves: moves, in order
    :ivar plans: a plan for each kind that has agents
    :ivar freed_ports: hosts whose ports change by the moves
    :ivar gained_servers: flavors of which more or fewer servers fit then
    """

    moves: tuple[AgentMove, ...]
    plans: tuple[AgentPlan, ...]
    freed_ports: tuple[FreedPorts, ...]
    gained_servers: tuple[GainedServers, ...]

    def moves_of(self, plan: AgentPlan) -> tuple[AgentMove, ...]:
        """Return the moves of a plan, in order."""
        return tuple([each for each in self.moves if each.kind == plan.kind])

    @property
    def unknown_networks(self) -> list[SkippedRouter]:
        """Routers left out only because their networks are not known."""
        return [each for plan in self.plans for each in plan.left_out
                if not (each.ha or each.distributed)]
