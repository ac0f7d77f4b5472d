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
PlacementStage = verdict_values.PlacementStage


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
class Filter:
    """One filter of Nova's own chain.

    :ivar name: its class name
    :ivar before: number of hosts that it was given; None if it was not run
    :ivar after: number of hosts that it passed
    :ivar alone: number of all known hosts that it refuses alone
    :ivar error: the exception that it raised
    """

    name: str
    before: int | None = None
    after: int | None = None
    alone: int = 0
    error: str | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Weight:
    """The weight that a weigher gives to a host.

    :ivar raw: the weight as the weigher returns it
    :ivar normal: the weight normalized over the hosts that passed
    :ivar multiplier: the weigher's multiplier for this host
    """

    raw: float
    normal: float
    multiplier: float

    @property
    def value(self) -> float:
        """The normalized weight times the multiplier."""
        return self.multiplier * self.normal


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Weigher:
    """A weigher, and its weights in the order of ``Weighing.hosts``.

    :ivar name: its class name
    :ivar weights: a weight for each host
    :ivar without: the host that would be first without it, if that is another
        one: then this weigher decides
    """

    name: str
    weights: tuple[Weight, ...]
    without: str | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Weighing:
    """The order of the hosts that passed.

    :ivar hosts: their names, the best first
    :ivar totals: their weights
    :ivar weighers: weighers of Nova's configuration
    :ivar equal: number of hosts that share the first place
    :ivar subset: ``[filter_scheduler] host_subset_size``: Nova takes one of
        the first so many at random
    :ivar taken: when the cloud was read: ISO 8601, UTC; empty if not known
    :ivar age: seconds since then; None if not known
    """

    hosts: tuple[str, ...]
    totals: tuple[float, ...]
    weighers: tuple[Weigher, ...] = ()
    equal: int = 1
    subset: int = 1
    taken: str = ''
    age: int | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ChosenHost:
    """The host to which a server would go.

    :ivar host: name of the host
    :ivar nodes: host NUMA node of each guest NUMA node; None if it has none
    :ivar cpus: host CPUs to which it would be pinned
    :ivar devices: PCI addresses
    :ivar notes: claims that failed before
    """

    host: str
    nodes: tuple[int, ...] | None = None
    cpus: tuple[int, ...] = ()
    devices: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Relaxation:
    """A change of the request, or two, with which it would fit.

    :ivar text: the change
    :ivar hosts: number of hosts that pass then
    :ivar host: host to which the first server would go
    :ivar requested: the changed request; ``requests.request.ExplainedRequest``
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
class NextStep:
    """A step that an operator can take after a refusal.

    :ivar command: words of the command line; empty if there is no command
    :ivar host: name of the host that it is about; empty for none
    :ivar like: names of hosts that new ones must be like
    :ivar lacks: what such a host has too little of, if it must be larger
    :ivar moves: number of live migrations
    """

    kind: StepKind
    command: tuple[str, ...] = ()
    host: str = ''
    like: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()
    moves: int = 0


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
    placement: PlacementStage = PlacementStage()
    filters: tuple[Filter, ...] = ()
    hosts: tuple[ExplainedHost, ...] = ()
    weighing: Weighing | None = None
    places: tuple[ChosenHost, ...] = ()
    wanted: int = 1
    nearest: tuple[str, ...] = ()
    relaxations: tuple[Relaxation, ...] = ()
    tried: int = 0
    untried: int = 0
    steps: tuple[NextStep, ...] = ()
    seconds: ty.Mapping[str, float] = dataclasses.field(default_factory=dict)
