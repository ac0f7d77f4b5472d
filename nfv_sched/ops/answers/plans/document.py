# SPDX-License-Identifier: Apache-2.0
"""Define the documents of plans, and of ``cloud failover``."""

import dataclasses
import typing as ty

from nfv_sched.ops.answers import requests as request_document
from nfv_sched.ops.model import movable
from nfv_sched.ops.run import values


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CapacityLack:
    """A reason why some hosts do not take a server.

    :ivar kind: "placement", "filters", "claim" of nova-compute, "policies"
        that would be kept less, "group", "hint", "cell", "simulator", "failed"
        if a move there has failed in this run of the plan, or "guests" if
        other servers from there take the capacity
    :ivar names: the filters, requirements, policies or hints
    :ivar hosts: number of hosts of which this is so
    :ivar nearest: name of the host that comes nearest
    :ivar nearest_id: UUID of its compute node
    :ivar why: the amount needed and the amount on that host, for people; null
        if that is not known
    """

    kind: str
    names: tuple[str, ...]
    hosts: int
    nearest: str
    nearest_id: str | None = None
    why: str | None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class UnreadData:
    """Data that was not read: the result may be wrong because of it.

    :ivar kind: "neutron", "placement", "cell", "flavors", "migrations",
        "ports", "port-resources" or "record"
    :ivar names: hosts, cells or servers that lack it, or the error of a
        record; empty if all do
    """

    kind: str
    names: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PolicyChange:
    """A policy that is in the way of a move.

    :ivar policy: extra spec with its value
    :ivar becomes: the same with the value that it has to have; that of now if
        it only has to be kept less
    :ivar kept: whether the host keeps it then; null if that is not known
    """

    policy: str
    becomes: str
    kept: ty.Literal['yes', 'partly', 'no'] | None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class MoveRelaxation:
    """A move that is possible if policies are relaxed; it is not planned.

    :ivar policies: one policy, or two that have to be relaxed together
    :ivar host: name of the host that takes the server then
    :ivar host_id: UUID of its compute node
    """

    policies: tuple[PolicyChange, ...]
    host: str
    host_id: str | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class DrainServer:
    """A server of the host, or one elsewhere that makes room, and its move.

    :ivar move: number of the move; null if it stays
    :ivar server: name of the server
    :ivar server_id: its UUID
    :ivar flavor: name of its flavor
    :ivar flavor_id: ID of the flavor; null if it was not read
    :ivar how: "live" or "cold" migration, or "shelve"; null if it stays
    :ivar source: name of its host
    :ivar source_id: UUID of its compute node
    :ivar destination: name of the host to which it goes; null if it stays or
        is shelved
    :ivar destination_id: UUID of its compute node; null likewise
    :ivar obstacle: why it is not moved live, or cannot be moved; null if
        nothing is in the way
    :ivar lacks: if it stays, or is shelved, for want of a host, why each does
        not take it
    :ivar related: UUIDs of the servers that it is to be with or apart from
    :ivar makes_room_for: UUID of the server of the host for which it makes
        room; null for a server of the host
    :ivar relaxations: with --relax: moves that relaxed policies would allow
    :ivar not_shelved: with --shelve: why it is not shelved, if Nova does not,
        or it is locked
    :ivar vfs_detached: number of its VFs, or other devices of ports, that Nova
        detaches at the start of a live migration to attach others at the end;
        null if its ports are not known
    """

    move: int | None
    server: str
    server_id: str
    flavor: str
    flavor_id: str | None = None
    how: ty.Literal['live', 'cold', 'shelve'] | None
    source: str
    source_id: str | None = None
    destination: str | None
    destination_id: str | None
    obstacle: movable.MoveObstacle | None
    lacks: tuple[CapacityLack, ...]
    related: tuple[str, ...]
    makes_room_for: str | None = None
    relaxations: tuple[MoveRelaxation, ...] = ()
    not_shelved: movable.MoveObstacle | None = None
    vfs_detached: int | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ReturningServer:
    """A server elsewhere that may come, or come back, to the host.

    :ivar server: name of the server
    :ivar server_id: its UUID
    :ivar how: kind of its move, as Nova has it: "migration", "resize",
        "live-migration" or "evacuation"
    :ivar status: status of the migration in Nova
    :ivar source: name of the host that it leaves; null if not known
    :ivar source_id: UUID of its compute node; null likewise
    :ivar destination: name of the host to which it goes; null if not known
    :ivar destination_id: UUID of its compute node; null likewise
    :ivar to_confirm: whether the move has ended, and waits to be confirmed
    """

    server: str
    server_id: str
    how: str
    status: str
    source: str | None
    source_id: str | None = None
    destination: str | None
    destination_id: str | None = None
    to_confirm: bool


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class DrainOptions:
    """Options with which a host is emptied.

    :ivar make_room: whether servers of other hosts may be moved first
    :ivar relax: whether policies are named that keep servers there
    :ivar shelve: whether servers that find no other host are shelved
    :ivar cold_for_vfs: whether servers are migrated cold of which a live
        migration would detach VFs
    """

    make_room: bool
    relax: bool
    shelve: bool = False
    cold_for_vfs: bool = False


NO_OPTIONS = DrainOptions(make_room=False, relax=False)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Drain:
    """A plan that empties a host.

    :ivar host: name of the host
    :ivar host_id: UUID of its compute node
    :ivar servers: servers that are moved, in order, also those elsewhere that
        make room; then those that are shelved, and those that stay
    :ivar others: number of other servers of the host, which are not to be
        moved; null if all are
    :ivar unfinished: servers elsewhere that hold resources on the host
    :ivar failed: moves that the simulator refused, for people
    :ivar exact: whether no plan moves more servers
    :ivar options: options with which it was planned
    :ivar unread: data that was not read
    """

    host: str
    host_id: str
    servers: tuple[DrainServer, ...]
    others: int | None
    unfinished: tuple[ReturningServer, ...]
    failed: tuple[str, ...]
    exact: bool
    options: DrainOptions
    unread: tuple[UnreadData, ...]

    @property
    def staying(self) -> tuple[DrainServer, ...]:
        """Servers that are not moved."""
        return tuple([each for each in self.servers if each.how is None])

    @property
    def shelved(self) -> tuple[DrainServer, ...]:
        """Servers that are shelved."""
        return tuple([each for each in self.servers
                      if each.how == movable.SHELVE])

    @property
    def making_room(self) -> tuple[DrainServer, ...]:
        """Servers of other hosts that are moved, once for each move."""
        return tuple([each for each in self.servers
                      if each.makes_room_for is not None])

    @property
    def moves(self) -> tuple[values.Move, ...]:
        """All moves, in order."""
        return tuple([move_of(each) for each in self.servers
                      if each.how is not None])


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class DrainRound:
    """Hosts that are emptied at the same time.

    :ivar round: number of the round; the first is 1, or that in which a new
        plan was made
    :ivar enabled: names of hosts of earlier rounds that must be enabled again
        before this one
    :ivar hosts: plan of each host, in order; moves are numbered through the
        round
    :ivar given_up: names of hosts that were disabled for this round, and are
        not emptied in it since a new plan was made
    """

    round: int
    enabled: tuple[str, ...]
    hosts: tuple[Drain, ...]
    given_up: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RollingDrain:
    """A plan that empties several hosts in rounds.

    :ivar at_once: highest number of hosts of a round
    :ivar rounds: rounds, in order
    :ivar not_emptied: hosts that cannot be emptied, with the servers that
        cannot be moved
    """

    at_once: int
    rounds: tuple[DrainRound, ...]
    not_emptied: tuple[Drain, ...]

    @property
    def emptied(self) -> tuple[Drain, ...]:
        """Plans of all rounds, in order."""
        return tuple([host for each in self.rounds for host in each.hosts])

    @property
    def moves(self) -> tuple[values.Move, ...]:
        """All moves, in order."""
        return tuple([move for each in self.emptied for move in each.moves])


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CapacityGain:
    """A change of the number of new servers that fit a host.

    :ivar host: name of the host
    :ivar host_id: UUID of its compute node
    :ivar servers: how many more fit; negative for fewer
    """

    host: str
    host_id: str | None = None
    servers: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class DefragMove:
    """A move, and its effect.

    :ivar move: number of the move
    :ivar server: name of the server
    :ivar server_id: its UUID
    :ivar flavor: name of its flavor
    :ivar flavor_id: ID of the flavor; null if it was not read
    :ivar memory_mib: memory that is copied, in MiB
    :ivar how: kind of the migration
    :ivar paused: whether it is paused, and stays so
    :ivar source: name of its host
    :ivar source_id: UUID of its compute node
    :ivar destination: name of the host to which it goes
    :ivar destination_id: UUID of its compute node
    :ivar gains: hosts on which more or fewer new servers fit after this move
    :ivar related: UUIDs of the servers that it is to be with or apart from
    :ivar vfs_detached: number of its VFs, or other devices of ports, that Nova
        detaches at the start of a live migration to attach others at the end;
        null if its ports are not known
    """

    move: int
    server: str
    server_id: str
    flavor: str
    flavor_id: str | None = None
    memory_mib: int
    how: ty.Literal['live', 'cold']
    paused: bool
    source: str
    source_id: str | None = None
    destination: str
    destination_id: str
    gains: tuple[CapacityGain, ...]
    related: tuple[str, ...]
    vfs_detached: int | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class FixedServer:
    """A server that cannot be moved.

    :ivar server: its name
    :ivar server_id: its UUID
    :ivar obstacle: why it is not moved
    """

    server: str
    server_id: str
    obstacle: movable.MoveObstacle


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class DefragOptions:
    """Options with which moves were planned.

    :ivar max_moves: maximum number of moves
    :ivar avoid: patterns of names of servers and hosts
    :ivar networks: networks of each new server, as of --network
    :ivar like: name or UUID of the server whose ports new ones have; null
        without --like
    :ivar ports: number of ports of each new server; null without --ports
    :ivar cold_for_vfs: whether servers are migrated cold of which a live
        migration would detach VFs
    """

    max_moves: int
    avoid: tuple[str, ...]
    networks: tuple[str, ...]
    like: str | None
    ports: int | None
    cold_for_vfs: bool = False


FEW_MOVES = DefragOptions(
    max_moves=10, avoid=(), networks=(), like=None, ports=None)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Defrag:
    """Moves after which more servers of a flavor fit.

    :ivar flavor: name of the flavor
    :ivar flavor_id: ID of the flavor; null if it was not read
    :ivar wanted: number of new servers that are to fit
    :ivar fits_before: number that fit without any move
    :ivar fits_after: number that fit after the moves, as far as was counted
    :ivar enough: whether as many fit as wanted
    :ivar moves: moves, in order
    :ivar not_movable: servers that cannot be moved
    :ivar failed: moves that the simulator refused, for people
    :ivar exact: whether no smaller number of moves has this effect
    :ivar ports: ports that each new server is assumed to have
    :ivar options: options with which it was planned
    :ivar unread: data that was not read
    """

    flavor: str
    flavor_id: str | None = None
    wanted: int
    fits_before: int
    fits_after: int
    enough: bool
    moves: tuple[DefragMove, ...]
    not_movable: tuple[FixedServer, ...]
    failed: tuple[str, ...]
    exact: bool
    ports: request_document.NewPorts
    options: DefragOptions
    unread: tuple[UnreadData, ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class StrandedServer:
    """A server that finds no other host.

    :ivar server: its name
    :ivar server_id: its UUID
    :ivar flavor: name of its flavor
    :ivar flavor_id: ID of the flavor; null if it was not read
    :ivar obstacle: why it is not evacuated at all; null if nothing is in the
        way
    :ivar lacks: why each host does not take it
    """

    server: str
    server_id: str
    flavor: str
    flavor_id: str | None = None
    obstacle: movable.MoveObstacle | None
    lacks: tuple[CapacityLack, ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class LostHost:
    """The effect of a lost host on its servers.

    :ivar host: name of the host
    :ivar host_id: UUID of its compute node
    :ivar servers: number of its servers
    :ivar evacuable: number of those that find a host
    :ivar stranded: the others
    :ivar unread: data that was not read
    """

    host: str
    host_id: str
    servers: int
    evacuable: int
    stranded: tuple[StrandedServer, ...]
    unread: tuple[UnreadData, ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Failover:
    """The effect of lost hosts on servers.

    :ivar together: whether all of the hosts are lost at once; otherwise each
        by itself
    :ivar hosts: lost hosts, with the servers of each
    """

    together: bool
    hosts: tuple[LostHost, ...]


def move_of(each: DrainServer | DefragMove) -> values.Move:
    """Return the move of a server that is moved."""
    return values.Move(
        number=each.move or 0, kind=ty.cast(values.Kind, each.how),
        id=each.server_id, name=each.server, source=each.source,
        destination=each.destination or '', related=each.related,
        vfs_detached=each.vfs_detached)
