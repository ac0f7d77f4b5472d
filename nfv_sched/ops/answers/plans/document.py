# SPDX-License-Identifier: Apache-2.0
"""Define the documents of plans, and of ``cloud failover``."""

import dataclasses
import typing as ty

from nfv_sched.ops.model import movable
from nfv_sched.ops.model.requests import assumed_ports
from nfv_sched.ops.run import schedule
from nfv_sched.ops.run import values


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CapacityLack:
    """A reason why some hosts do not take a server."""

    #: "placement", "filters", "claim" of nova-compute, "policies" that would
    #: be kept less, "group", "hint", "cell", "simulator", "failed" if a move
    #: there has failed in this run of the plan, or "guests" if other servers
    #: from there take the capacity
    kind: str
    names: tuple[str, ...]  #: the filters, requirements, policies or hints
    hosts: int  #: number of hosts of which this is so
    nearest: str  #: name of the host that comes nearest
    nearest_id: str | None = None  #: UUID of its compute node
    #: the amount needed and the amount on that host, for people; null if that
    #: is not known
    why: str | None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class UnreadData:
    """Data that was not read: the result may be wrong because of it."""

    #: "neutron", "placement", "cell", "flavors", "migrations", "ports",
    #: "port-resources" or "record"
    kind: str
    #: hosts, cells or servers that lack it, or the error of a record; empty if
    #: all do
    names: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PolicyChange:
    """A policy that is in the way of a move."""

    policy: str  #: extra spec with its value
    #: the same with the value that it has to have; that of now if it only has
    #: to be kept less
    becomes: str
    #: whether the host keeps it then; null if that is not known
    kept: ty.Literal['yes', 'partly', 'no'] | None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class MoveRelaxation:
    """A move that is possible if policies are relaxed; it is not planned."""

    #: one policy, or two that have to be relaxed together
    policies: tuple[PolicyChange, ...]
    host: str  #: name of the host that takes the server then
    host_id: str | None = None  #: UUID of its compute node


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class TimeEstimate:
    """An estimate of how long migrations take, by what they copy."""

    #: until all have ended; null if it is not known what one of them copies
    seconds: int | None
    mib_per_second: int  #: MiB that a host sends in a second
    parallel: int  #: maximum number of moves at a time


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class DrainServer:
    """A server of the host, or one elsewhere that makes room, and its move."""

    move: int | None  #: number of the move; null if it stays
    server: str  #: name of the server
    server_id: str  #: its UUID
    flavor: str  #: name of its flavor
    flavor_id: str | None = None  #: ID of the flavor; null if it was not read
    #: "live" or "cold" migration, "evacuate" or "shelve"; null if it stays
    how: ty.Literal['live', 'cold', 'evacuate', 'shelve'] | None
    source: str  #: name of its host
    source_id: str | None = None  #: UUID of its compute node
    #: name of the host to which it goes; null if it stays or is shelved
    destination: str | None
    destination_id: str | None  #: UUID of its compute node; null likewise
    #: why it is not moved live, or cannot be moved; null if nothing is in the
    #: way
    obstacle: movable.MoveObstacle | None
    #: if it stays, or is shelved, for want of a host, why each does not take
    #: it
    lacks: tuple[CapacityLack, ...]
    #: UUIDs of the servers that it is to be with or apart from
    related: tuple[str, ...]
    #: UUID of the server of the host for which it makes room; null for a
    #: server of the host
    makes_room_for: str | None = None
    #: with --relax: moves that relaxed policies would allow
    relaxations: tuple[MoveRelaxation, ...] = ()
    #: with --shelve: why it is not shelved, if Nova does not, or it is locked
    not_shelved: movable.MoveObstacle | None = None
    #: number of its VFs, or other devices of ports, that Nova replaces in a
    #: live migration; null if its ports are not known
    vfs_detached: int | None = None
    #: what is copied; null without a migration
    copied: values.CopiedData | None = None
    #: number of the only NUMA node of the destination for it, if it need not
    #: wait for moves to other nodes there; null otherwise
    only_node: int | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ReturningServer:
    """A server elsewhere that may come, or come back, to the host."""

    server: str  #: name of the server
    server_id: str  #: its UUID
    #: kind of its move, as Nova has it: "migration", "resize",
    #: "live-migration" or "evacuation"
    how: str
    status: str  #: status of the migration in Nova
    source: str | None  #: name of the host that it leaves; null if not known
    source_id: str | None = None  #: UUID of its compute node; null likewise
    #: name of the host to which it goes; null if not known
    destination: str | None
    #: UUID of its compute node; null likewise
    destination_id: str | None = None
    to_confirm: bool  #: whether the move has ended, and waits to be confirmed


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class DrainOptions(movable.MoveOptions):
    """Options with which a host is emptied."""

    #: whether servers of other hosts may be moved first
    make_room: bool = False
    relax: bool = False  #: whether policies are named that keep servers there
    #: whether servers that find no other host are shelved
    shelve: bool = False
    max_moves: int | None = None  #: maximum number of moves; null for any


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Drain:
    """A plan that empties a host."""

    host: str  #: name of the host
    host_id: str  #: UUID of its compute node
    #: servers that are moved, in order, also those elsewhere that make room;
    #: then those that are shelved, and those that stay
    servers: tuple[DrainServer, ...]
    #: number of other servers of the host, which are not to be moved; null if
    #: all are
    others: int | None
    #: servers elsewhere that hold resources on the host
    unfinished: tuple[ReturningServer, ...]
    failed: tuple[str, ...]  #: moves that the simulator refused, for people
    exact: bool  #: whether no plan moves more servers
    bound: int | None = None  #: no plan moves more; null if not known
    options: DrainOptions  #: options with which it was planned
    unread: tuple[UnreadData, ...]  #: data that was not read
    #: with --mib-per-second, but not in a round: how long it takes
    estimate: TimeEstimate | None = None

    @property
    def staying(self) -> tuple[DrainServer, ...]:
        return tuple([each for each in self.servers if each.how is None])

    @property
    def shelved(self) -> tuple[DrainServer, ...]:
        return tuple([each for each in self.servers
                      if each.how == movable.SHELVE])

    @property
    def making_room(self) -> tuple[DrainServer, ...]:
        """Servers of other hosts that are moved, once for each move."""
        return tuple([each for each in self.servers
                      if each.makes_room_for is not None])

    @property
    def moves(self) -> tuple[values.Move, ...]:
        return moves_of(self)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Evacuation:
    """A plan that evacuates the servers of hosts that are down."""

    hosts: tuple[str, ...]  #: names of the hosts
    #: servers that are evacuated, in order, then those that stay
    servers: tuple[DrainServer, ...]
    failed: tuple[str, ...]  #: moves that the simulator refused, for people
    exact: bool  #: whether no plan evacuates more servers
    bound: int | None = None  #: no plan evacuates more; null if not known
    relax: bool  #: whether policies are named that keep servers there
    avoid: tuple[str, ...] = ()  #: patterns of names, as of other plans
    unread: tuple[UnreadData, ...]  #: data that was not read

    @property
    def moves(self) -> tuple[values.Move, ...]:
        return moves_of(self)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class DrainRound:
    """Hosts that are emptied at the same time."""

    #: number of the round; the first is 1, or that in which a new plan was
    #: made
    round: int
    #: names of hosts of earlier rounds that must be enabled again before this
    #: one
    enabled: tuple[str, ...]
    #: plan of each host, in order; moves are numbered through the round
    hosts: tuple[Drain, ...]
    #: names of hosts that were disabled for this round, and are not emptied in
    #: it since a new plan was made
    given_up: tuple[str, ...] = ()
    #: with --mib-per-second: how long the round takes
    estimate: TimeEstimate | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RollingDrain:
    """A plan that empties several hosts in rounds."""

    at_once: int  #: highest number of hosts of a round
    rounds: tuple[DrainRound, ...]  #: rounds, in order
    #: hosts that cannot be emptied, with the servers that cannot be moved
    not_emptied: tuple[Drain, ...]

    @property
    def emptied(self) -> tuple[Drain, ...]:
        return tuple([host for each in self.rounds for host in each.hosts])

    @property
    def moves(self) -> tuple[values.Move, ...]:
        return tuple([move for each in self.emptied for move in each.moves])


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CapacityGain:
    """A change of the number of new servers that fit a host."""

    host: str  #: name of the host
    host_id: str | None = None  #: UUID of its compute node
    servers: int  #: how many more fit; negative for fewer


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class DefragMove:
    """A move, and its effect."""

    move: int  #: number of the move
    server: str  #: name of the server
    server_id: str  #: its UUID
    flavor: str  #: name of its flavor
    flavor_id: str | None = None  #: ID of the flavor; null if it was not read
    memory_mib: int  #: memory that is copied, in MiB
    how: ty.Literal['live', 'cold']  #: kind of the migration
    paused: bool  #: whether it is paused, and stays so
    source: str  #: name of its host
    source_id: str | None = None  #: UUID of its compute node
    destination: str  #: name of the host to which it goes
    destination_id: str  #: UUID of its compute node
    #: hosts on which more or fewer new servers fit after this move
    gains: tuple[CapacityGain, ...]
    #: UUIDs of the servers that it is to be with or apart from
    related: tuple[str, ...]
    #: number of its VFs, or other devices of ports, that Nova replaces in a
    #: live migration; null if its ports are not known
    vfs_detached: int | None = None
    #: what is copied; null without a migration
    copied: values.CopiedData | None = None
    #: number of the only NUMA node of the destination for it, if it need not
    #: wait for moves to other nodes there; null otherwise
    only_node: int | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class FixedServer:
    """A server that cannot be moved."""

    server: str  #: its name
    server_id: str  #: its UUID
    obstacle: movable.MoveObstacle  #: why it is not moved


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class DefragOptions(movable.MoveOptions):
    """Options with which moves were planned."""

    max_moves: int = 10  #: maximum number of moves
    #: networks of each new server, as of --network
    networks: tuple[str, ...] = ()
    #: name or UUID of the server whose ports new ones have; null without
    #: --like
    like: str | None = None
    #: number of ports of each new server; null without --ports
    ports: int | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Defrag:
    """Moves after which more servers of a flavor fit."""

    flavor: str  #: name of the flavor
    flavor_id: str | None = None  #: ID of the flavor; null if it was not read
    wanted: int  #: number of new servers that are to fit
    fits_before: int  #: number that fit without any move
    fits_after: int  #: number that fit after the moves, as far as was counted
    enough: bool  #: whether as many fit as wanted
    moves: tuple[DefragMove, ...]  #: moves, in order
    not_movable: tuple[FixedServer, ...]  #: servers that cannot be moved
    failed: tuple[str, ...]  #: moves that the simulator refused, for people
    exact: bool  #: whether no smaller number of moves has this effect
    #: number of new servers, up to ``wanted``, of which it is proved that no
    #: moves within the options make room for more; null if none is known
    bound: int | None = None
    #: ports that each new server is assumed to have
    ports: assumed_ports.NewPorts
    options: DefragOptions  #: options with which it was planned
    unread: tuple[UnreadData, ...]  #: data that was not read
    #: with --mib-per-second: how long the moves take
    estimate: TimeEstimate | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RearrangeOptions(movable.MoveOptions):
    """Options with which hosts are emptied, or servers are spread."""

    spread: bool  #: whether servers are spread; hosts are emptied otherwise
    max_moves: int  #: maximum number of moves
    #: number of hosts to empty; null for as many as possible
    hosts: int | None = None
    #: percentage points by which the use of a NUMA node may differ from that
    #: of the cloud; null for the CPUs of a server of the middle size
    points: int | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Rearrangement:
    """Moves that empty hosts, or spread servers over NUMA nodes."""

    #: hosts without servers now; or CPUs of NUMA nodes that are too many or
    #: too few in use
    before: int
    after: int  #: the same after the moves
    #: the same, of which it is proved that no moves within the options do
    #: better; null if none is known
    bound: int | None
    moves: tuple[DefragMove, ...]  #: moves, in order
    not_movable: tuple[FixedServer, ...]  #: servers that cannot be moved
    failed: tuple[str, ...]  #: moves that the simulator refused, for people
    exact: bool  #: whether no smaller number of moves has this effect
    #: highest number of servers that find no host if one is lost after the
    #: moves, without the empty ones; null if servers are spread, or none moved
    stranded: int | None = None
    options: RearrangeOptions  #: options with which it was planned
    unread: tuple[UnreadData, ...]  #: data that was not read
    #: with --mib-per-second: how long the moves take
    estimate: TimeEstimate | None = None

    @property
    def enough(self) -> bool:
        """Whether it does what was wanted, as far as something was."""
        if self.options.spread:
            return not self.after
        return self.after - self.before >= (self.options.hosts or 0)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class StrandedServer:
    """A server that finds no other host."""

    server: str  #: its name
    server_id: str  #: its UUID
    flavor: str  #: name of its flavor
    flavor_id: str | None = None  #: ID of the flavor; null if it was not read
    #: why it is not evacuated at all; null if nothing is in the way
    obstacle: movable.MoveObstacle | None
    lacks: tuple[CapacityLack, ...]  #: why each host does not take it


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class LostHost:
    """The effect of a lost host on its servers."""

    host: str  #: name of the host
    host_id: str  #: UUID of its compute node
    #: with --at-once: other hosts of the set that strands most of its servers
    lost_with: tuple[str, ...] = ()
    servers: int  #: number of its servers
    evacuable: int  #: number of those that find a host
    stranded: tuple[StrandedServer, ...]  #: the others
    unread: tuple[UnreadData, ...]  #: data that was not read


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Failover:
    """The effect of lost hosts on servers."""

    #: whether all are lost at once; otherwise each set of ``at_once`` hosts
    together: bool
    at_once: int = 1  #: number of hosts of each set; 1 with --together
    hosts: tuple[LostHost, ...]  #: lost hosts, with the servers of each


def moves_of(plan: Drain | Evacuation | DrainRound | Defrag | Rearrangement,
             ) -> tuple[values.Move, ...]:
    if isinstance(plan, DrainRound):
        return tuple([move for each in plan.hosts for move in each.moves])
    rows = (plan.moves if isinstance(plan, (Defrag, Rearrangement))
            else plan.servers)
    return tuple([
        values.Move(
            number=each.move or 0, kind=each.how, id=each.server_id,
            name=each.server, source=each.source,
            destination=each.destination or '', related=each.related,
            vfs_detached=each.vfs_detached, copied=each.copied,
            only_node=each.only_node)
        for each in rows if each.how is not None])


def with_time(plan: ty.Any, mib_per_second: int, parallel: int) -> ty.Any:
    """Return a plan that says how long it takes, or its rounds do."""
    if isinstance(plan, RollingDrain):
        return dataclasses.replace(plan, rounds=tuple([
            with_time(each, mib_per_second, parallel)
            for each in plan.rounds]))
    return dataclasses.replace(plan, estimate=TimeEstimate(
        seconds=schedule.seconds(moves_of(plan), mib_per_second, parallel),
        mib_per_second=mib_per_second, parallel=parallel))


def estimates_of(plan: ty.Any) -> list[TimeEstimate]:
    """Return the estimate of a plan, or those of its rounds; empty if none."""
    return [estimate for each in getattr(plan, 'rounds', (plan,)) if (
        estimate := getattr(each, 'estimate', None)) is not None]
