# SPDX-License-Identifier: Apache-2.0
"""Define the document of ``agent rebalance``."""

import dataclasses
import typing as ty


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Loads of the agents in use."""

    most: int  #: highest load: a number of services, or of ports
    fewest: int  #: lowest load

    def __str__(self) -> str:
        return f'{self.most}-{self.fewest}'


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class AgentMove:
    """A move of a network's DHCP server, or of a router."""

    move: int  #: number of the move
    kind: ty.Literal['dhcp', 'router']  #: "dhcp" or "router"
    service: str | None  #: name of the network or router; null if it has none
    service_id: str  #: its UUID
    source: str  #: name of the host of the agent that serves it
    source_agent_id: str  #: UUID of this agent
    destination: str  #: name of the host of the agent that is to serve it
    destination_agent_id: str  #: UUID of this agent
    ports: int  #: number of ports of the virtual switch that it takes
    after: Spread  #: loads after this move
    commands: tuple[str, ...]  #: commands for a shell that make the move


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class AgentUse:
    """The load of an agent."""

    host: str  #: name of its host
    agent_id: str  #: UUID of the agent; name of the chassis for "ovn"
    in_use: bool  #: whether it is alive, enabled and takes such services
    services: int  #: number of its services
    services_after: int  #: the same after the moves
    #: ports of the virtual switch that they take; null for "ovn"
    ports: int | None
    ports_after: int | None  #: the same after the moves


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ServedThing:
    """A network or router."""

    service: str | None  #: its name; null if it has none
    service_id: str  #: its UUID


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class StuckServices:
    """Services that should be moved and cannot be."""

    host: str  #: name of the host of their agent
    agent_id: str  #: UUID of the agent
    why: str  #: reason, for people
    services: tuple[ServedThing, ...]  #: DHCP servers or routers that stay


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SkippedRouter(ServedThing):
    """A router that is left out."""

    ha: bool  #: whether it is highly available
    distributed: bool  #: whether it is distributed (DVR)
    networks_known: bool  #: whether Neutron shows its networks

    @property
    def lacks_networks(self) -> bool:
        """Whether it is left out only as its networks are not known."""
        return not (self.ha or self.distributed)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class AgentPlan:
    """The distribution of services of one kind."""

    #: "ovn" is routers at gateways of ML2/OVN, which places them itself
    kind: ty.Literal['dhcp', 'router', 'ovn']
    levels: ty.Literal['services', 'ports']  #: what is levelled
    threshold: int  #: highest accepted difference between loads
    before: Spread  #: loads now
    after: Spread  #: loads after the moves
    agents: tuple[AgentUse, ...]  #: agents of this kind, with their services
    #: services that should be moved and cannot be
    stays: tuple[StuckServices, ...]
    left_out: tuple[SkippedRouter, ...]  #: routers that are left out

    @property
    def imbalance(self) -> int:
        """Difference between the loads of agents in use now."""
        return self.before.most - self.before.fewest


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class FreedPorts:
    """A change of the ports of a virtual switch."""

    host: str  #: name of the host
    ports: int  #: number of ports that are freed; negative if more are taken


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class GainedServers:
    """A change of the number of servers that fit."""

    flavor: str  #: name of the flavor
    flavor_id: str | None = None  #: ID of the flavor; null if it was not read
    servers: int  #: how many more fit the cloud; negative for fewer


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Rebalance:
    """An even distribution of DHCP servers and routers."""

    moves: tuple[AgentMove, ...]  #: moves, in order
    plans: tuple[AgentPlan, ...]  #: a plan for each kind that has agents
    #: hosts whose ports change by the moves
    freed_ports: tuple[FreedPorts, ...]
    #: flavors of which more or fewer servers fit then
    gained_servers: tuple[GainedServers, ...]

    def moves_of(self, plan: AgentPlan) -> tuple[AgentMove, ...]:
        return tuple([each for each in self.moves if each.kind == plan.kind])
