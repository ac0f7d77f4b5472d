# SPDX-License-Identifier: Apache-2.0

"""Define an explanation as plain values."""

import dataclasses
import enum
import typing as ty

from nfv_sched.ops.model.verdicts import values as verdict_values

RefusalKind = verdict_values.RefusalKind
FilterRefusal = verdict_values.FilterRefusal
PlacementNeed = verdict_values.PlacementNeed
placement_need = verdict_values.placement_need
QueryLack = verdict_values.QueryLack
StageRequirement = verdict_values.StageRequirement
StageRemoval = verdict_values.StageRemoval
PlacementAnswer = verdict_values.PlacementAnswer
NOT_ASKED = verdict_values.NOT_ASKED
PlacementQuery = verdict_values.PlacementQuery


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedHost:
    """A host with the reasons why it does or does not pass.

    :ivar present: whether the explained server runs there
    :ivar misses: requirements of the query to Placement that it does not meet
    :ivar lacks: the same as values; empty if the answer was cut off
    :ivar found: whether Placement's answer has it
    :ivar refusals: refusals by filters, each asked alone
    :ivar shadowed: refusals by filters that are in shadow there, without
        effect; empty if other filters refuse it
    :ivar passed: whether Nova's own chain passes it
    :ivar stopped: filter of the chain that removed it; None if none has
    :ivar rank: its place among the hosts that passed, from 1; None if it did
        not pass
    """

    name: str
    present: bool = False
    misses: tuple[str, ...] = ()
    lacks: tuple[QueryLack, ...] = ()
    found: bool = False
    refusals: tuple[FilterRefusal, ...] = ()
    shadowed: tuple[FilterRefusal, ...] = ()
    passed: bool = False
    stopped: str | None = None
    rank: int | None = None

    @property
    def failures(self) -> int:
        """Number of requirements and filters that it fails."""
        return len(self.misses) + len(self.refusals)

    @property
    def missing(self) -> float:
        """The largest missing part of a resource; 1 if something else is."""
        return max((each.missing for each in self.refusals), default=0.0)


class CauseKind(enum.StrEnum):
    """Kind of what keeps a request off hosts."""

    #: The compute service is disabled.
    DISABLED = 'disabled'
    #: It is down.
    DOWN = 'down'
    #: The host is not mapped to its cell.
    UNMAPPED = 'unmapped'
    #: OpenStack Blazar keeps the host for reservations.
    RESERVED = 'reserved'
    #: The request itself is wrong, on any host.
    REQUEST = 'request'
    #: ``[scheduler] max_placement_results`` has cut off the host.
    CUT = 'cut-off'
    #: A requirement of the query to Placement is not met.
    PLACEMENT = 'placement'
    #: No NUMA node has all that it must be near, however empty it is: the
    #: virtual switch and the networks, for example.
    DEPLOYMENT = 'deployment'
    #: NUMA nodes have too little of a resource.
    SHORTAGE = 'shortage'
    #: A filter refuses for another reason.
    FILTER = 'filter'
    #: A filter raises an exception.
    ERROR = 'error'


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CommonCause:
    """Something that keeps a request off hosts.

    :ivar hosts: names of the hosts; each is in one cause only
    :ivar nearest: name of the host that lacks least of it
    :ivar lack: what this host lacks of a query to Placement; None for filters
    :ivar refusal: how a filter refuses this host; None for Placement
    :ivar filters: class names of the filters that refuse for it
    :ivar networks: the physical networks of the request that a NUMA node must
        be near; empty if it is not about networks
    """

    kind: CauseKind
    hosts: tuple[str, ...]
    nearest: str
    lack: QueryLack | None = None
    refusal: FilterRefusal | None = None
    filters: tuple[str, ...] = ()
    networks: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class FilterStage:
    """A filter of Nova's chain.

    :ivar filter: its class name
    :ivar hosts_in: number of hosts that it was given; null if it was not run
    :ivar hosts_out: number of hosts that it passed; null likewise
    :ivar refuses_alone: number of all hosts that it refuses, asked alone
    :ivar error: the exception that it raised; null if it raised none
    """

    filter: str
    hosts_in: int | None
    hosts_out: int | None
    refuses_alone: int
    error: str | None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class HostWeight:
    """The weight that a weigher gives to a host.

    :ivar host: name of the host
    :ivar raw: weight as the weigher returns it
    :ivar normalized: weight normalized over the hosts that pass
    :ivar multiplier: multiplier of the weigher for the host
    :ivar weight: normalized weight times multiplier
    """

    host: str
    raw: float
    normalized: float
    multiplier: float
    weight: float


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class WeigherWeights:
    """A weigher, and its weights.

    :ivar weigher: its class name
    :ivar first_without_it: name of the host that would be first without it;
        null if that is the same one
    :ivar weights: the weights, of the best host first
    """

    weigher: str
    first_without_it: str | None
    weights: tuple[HostWeight, ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class HostTotal:
    """The weight of a host.

    :ivar host: name of the host
    :ivar weight: sum of its weights
    """

    host: str
    weight: float


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class HostOrder:
    """The order of the hosts that pass.

    :ivar hosts: the hosts, the best first
    :ivar weighers: weighers of Nova's configuration; empty if only one host
        passes
    :ivar equal_hosts: number of hosts that share the first place
    :ivar host_subset_size: that option of [filter_scheduler]: Nova takes one
        of the first so many at random
    :ivar read_at: when the cloud was read: ISO 8601, UTC; null if not known
    :ivar age_seconds: seconds since then; null likewise
    """

    hosts: tuple[HostTotal, ...]
    weighers: tuple[WeigherWeights, ...]
    equal_hosts: int
    host_subset_size: int
    read_at: str | None
    age_seconds: int | None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Destination:
    """The host to which a server would go.

    :ivar host: name of the host
    :ivar host_id: UUID of its compute node
    :ivar numa_nodes: NUMA node of the host for each of the server; null if it
        has none
    :ivar cpus: CPUs of the host to which it would be pinned
    :ivar pci_devices: PCI addresses of its devices
    :ivar failed_claims: claims on other hosts that failed before, for people
    """

    host: str
    host_id: str
    numa_nodes: tuple[int, ...] | None
    cpus: tuple[int, ...]
    pci_devices: tuple[str, ...]
    failed_claims: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Relaxation:
    """A change of the request, or two, with which it would fit.

    :ivar text: the change
    :ivar hosts: number of hosts that pass then
    :ivar host: host to which the first server would go
    :ivar requested: the changed request; a ``BootRequest``
    :ivar enabled: names of hosts that are enabled, mapped and up for it
    """

    text: str
    hosts: int
    host: str
    requested: ty.Any = None
    enabled: tuple[str, ...] = ()


class StepKind(enum.StrEnum):
    """Kind of what an operator can do after a refusal."""

    #: Enable the compute service of a host that would take the server.
    ENABLE = 'enable'
    #: Map such a host to its cell.
    MAP = 'map'
    #: Live-migrate servers to make room.
    DEFRAG = 'defrag'
    #: See which server is in the way on each host.
    SERVERS = 'servers'
    #: Add hosts like some of the cloud.
    ADD_HOST = 'add-host'
    #: Add a larger host, as none is large enough, however empty.
    LARGER_HOST = 'larger-host'


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class HelpfulStep:
    """A step that can be taken after a refusal.

    :ivar text: what it is good for, for people
    :ivar kind: "enable" or "map" a host that would take the server; "defrag"
        as other servers can make room by moving; "servers" shows what is in
        the way; "add-host" as one more would take it; "larger-host" as none
        is large enough, however empty
    :ivar command: words of the command line; empty if there is no command
    :ivar host: name of the host that it is about; null for none
    :ivar like: names of the hosts that new ones must be like, or larger
    :ivar lacks: what such a host has too little of even if it is empty, for
        people; empty if it need not be larger
    :ivar moves: number of live migrations that make room; null if it is not
        "defrag"
    """

    text: str
    kind: ty.Literal['enable', 'map', 'defrag', 'servers', 'add-host',
                     'larger-host']
    command: tuple[str, ...]
    host: str | None
    like: tuple[str, ...]
    lacks: tuple[str, ...]
    moves: int | None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """An explanation where a request fits, and why not elsewhere.

    :ivar subject: the server or flavor, for people
    :ivar assumed: assumptions about the request, a sentence each
    :ivar request: the request, for people
    :ivar fits: whether all of its servers would be placed
    :ivar reason: why it does not fit; empty if it does
    :ivar causes: what keeps the first server off all hosts, that of most hosts
        first; empty if a host takes it
    :ivar placement: the stage of Placement
    :ivar filters: Nova's own chain, in order
    :ivar hosts: all known hosts
    :ivar weighing: order of the hosts that passed; None if none did
    :ivar places: the host of each server, as far as it fits
    :ivar wanted: number of servers of the request
    :ivar nearest: names of the hosts with the fewest failures, the nearest
        first
    :ivar relaxations: changes with which it would fit, the best first; each
        was tried; two together if no single one helps
    :ivar tried: number of changes that were tried
    :ivar untried: number of changes for which there was no time
    :ivar steps: what to do next, where that is known
    :ivar seconds: stage -> seconds it took
    """

    subject: str
    assumed: tuple[str, ...] = ()
    request: str = ''
    fits: bool = False
    reason: str = ''
    causes: tuple[CommonCause, ...] = ()
    placement: PlacementAnswer = NOT_ASKED
    filters: tuple[FilterStage, ...] = ()
    hosts: tuple[ExplainedHost, ...] = ()
    weighing: HostOrder | None = None
    places: tuple[Destination, ...] = ()
    wanted: int = 1
    nearest: tuple[str, ...] = ()
    relaxations: tuple[Relaxation, ...] = ()
    tried: int = 0
    untried: int = 0
    steps: tuple[HelpfulStep, ...] = ()
    seconds: ty.Mapping[str, float] = dataclasses.field(default_factory=dict)
