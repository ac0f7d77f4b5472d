# SPDX-License-Identifier: Apache-2.0
"""Define the document of ``server explain`` and ``flavor explain``."""

from collections.abc import Mapping
import dataclasses
import enum
import functools
import typing as ty

from nfv_sched.base import strings
from nfv_sched.ops.answers import requests as request_document
from nfv_sched.ops.cli import documents
from nfv_sched.ops.model.verdicts import values

if ty.TYPE_CHECKING:
    from nfv_sched.ops.simulator import request

_internal = functools.partial(dataclasses.field, metadata=documents.INTERNAL)

#: Most characters that the API accepts in a key or value.
_LONGEST = 255


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RequestedPort:
    """A port of each server.

    :ivar network: name of its network; null if it is not known
    :ivar network_id: UUID of its network; null likewise
    :ivar physical_network: name of the physical network; null if it has none
    :ivar vnic_type: Neutron's vNIC type, such as "normal" or "direct"
    """

    network: str | None
    network_id: str | None
    physical_network: str | None
    vnic_type: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RequestedServers:
    """A request for servers.

    :ivar servers: number of servers
    :ivar flavor: name of the flavor
    :ivar flavor_id: ID of the flavor; null if it is not known
    :ivar vcpus: number of vCPUs
    :ivar memory_mib: memory in MiB
    :ivar disk_gib: root and ephemeral disks in GiB
    :ivar extra_specs: extra specs of the flavor
    :ivar image_properties: properties of the image that matter for scheduling
    :ivar ports: ports of each server
    :ivar availability_zone: name of the zone; null for any
    :ivar server_group: name of the server group; null without one
    :ivar scheduler_hints: other hints, each with its values
    """

    servers: int
    flavor: str
    flavor_id: str | None
    vcpus: int
    memory_mib: int
    disk_gib: int
    extra_specs: Mapping[str, str]
    image_properties: Mapping[str, str]
    ports: tuple[RequestedPort, ...]
    availability_zone: str | None
    server_group: str | None
    scheduler_hints: Mapping[str, tuple[str, ...]]


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
class HostVerdict:
    """A host, and why it does or does not pass.

    :ivar host: its name
    :ivar host_id: UUID of its compute node
    :ivar runs_there: whether the explained server runs there; what it has was
        given back
    :ivar placement_finds: whether Placement's answer has the host
    :ivar placement_lacks: requirements of Placement that it does not meet
    :ivar refusals: refusals by filters, each asked alone
    :ivar refusals_in_shadow: refusals by filters that are in shadow there,
        without effect; empty if other filters refuse it
    :ivar passes: whether Nova's chain passes it
    :ivar removed_by: class name of the filter of the chain that removed it;
        null if none has
    :ivar rank: its place among the hosts that pass, from 1; null if it does
        not pass
    """

    host: str
    host_id: str
    runs_there: bool
    placement_finds: bool
    placement_lacks: tuple[values.PlacementLack, ...]
    refusals: tuple[values.HostRefusal, ...]
    refusals_in_shadow: tuple[values.HostRefusal, ...]
    passes: bool
    removed_by: str | None
    rank: int | None

    @property
    def misses(self) -> tuple[str, ...]:
        """What it lacks of Placement, for people."""
        return tuple([lack.text for lack in self.placement_lacks])

    @property
    def failures(self) -> int:
        """Number of requirements and filters that it fails."""
        return len(self.placement_lacks) + len(self.refusals)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RefusalCause:
    """Something that keeps the request off hosts, as far as it is common.

    :ivar text: the cause, for people
    :ivar kind: "deployment" if no NUMA node has all that it must be near,
        however empty it is; "shortage" of a resource of NUMA nodes;
        "placement" for a requirement of Placement; "filter" for another
        refusal of a filter, "error" if it raises an exception; "request" if
        the request itself is wrong; "disabled", "down", "unmapped" hosts, or
        "reserved" by OpenStack Blazar; "cut-off" by [scheduler]
        max_placement_results
    :ivar hosts: number of hosts; each is in one cause only
    :ivar nearest_host: name of the host that lacks least of it
    :ivar nearest_host_id: UUID of its compute node
    :ivar filters: class names of the filters that refuse for it
    :ivar need: the requirement of Placement; null if it is none
    :ivar free: what the nearest host has of it, as in hosts; null likewise
    :ivar refusal: how a filter refuses the nearest host; null for Placement
    :ivar places: properties that the NUMA nodes must have, for people
    :ivar physical_networks: physical networks that they must be near
    :ivar lack: the ``PlacementLack`` of the nearest host; None for filters
    """

    text: str
    kind: ty.Literal[
        'disabled', 'down', 'unmapped', 'reserved', 'request', 'cut-off',
        'placement', 'deployment', 'shortage', 'filter', 'error']
    hosts: int
    nearest_host: str
    nearest_host_id: str
    filters: tuple[str, ...]
    need: values.PlacementNeed | None
    free: int | None
    refusal: values.HostRefusal | None
    places: tuple[str, ...]
    physical_networks: tuple[str, ...]
    lack: ty.Any = _internal()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class HelpfulChange:
    """A change, or two together, with which the request would fit.

    :ivar text: the change, for people
    :ivar request: the changed request
    :ivar hosts_enabled: names of hosts that have to be enabled, mapped and up
    :ivar hosts: number of hosts that pass then
    :ivar host: name of the host to which the first server would go
    :ivar requested: the changed request as a ``BootRequest``
    """

    text: str
    request: RequestedServers
    hosts_enabled: tuple[str, ...]
    hosts: int
    host: str
    requested: ty.Any = _internal()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """An explanation where a request fits, and why not elsewhere.

    :ivar server: name of the explained server; null for a flavor
    :ivar server_id: its UUID; null likewise
    :ivar server_state: its state in Nova (vm_state); null likewise
    :ivar host: name of the host where it runs; null if there is none
    :ivar request: servers that the scheduler is to place
    :ivar assumed: assumptions about the request, for people
    :ivar usual_ports: ports that "capacity list" assumes for each new server
        of the flavor, while the request has none, as no --network is given;
        null otherwise
    :ivar fits: whether all servers of the request would be placed
    :ivar reason: why it does not fit, for people; null if it does
    :ivar causes: what keeps the first server off all hosts, that of most hosts
        first; empty if a host takes it
    :ivar destinations: where each server would go, as far as it fits
    :ivar placement: the stage in which Nova asks Placement
    :ivar filters: Nova's chain, in order
    :ivar hosts: the hosts of --host, or all
    :ivar weighing: order of the hosts that pass; null if none does
    :ivar nearest: names of the hosts with the fewest failures, the nearest
        first
    :ivar changes: changes with which it would fit, the best first; two
        together if no single one helps
    :ivar changes_tried: number of changes that were tried
    :ivar changes_untried: number of changes for which there was no time
    :ivar next_steps: what to do next, where that is known
    :ivar seconds: stage of the explanation -> seconds that it took
    :ivar subject: the server or flavor, for people
    :ivar asks_for: the request, for people
    """

    server: str | None
    server_id: str | None
    server_state: str | None
    host: str | None
    request: RequestedServers
    assumed: tuple[str, ...]
    usual_ports: request_document.NewPorts | None
    fits: bool
    reason: str | None
    causes: tuple[RefusalCause, ...]
    destinations: tuple[Destination, ...]
    placement: values.PlacementAnswer
    filters: tuple[FilterStage, ...]
    hosts: tuple[HostVerdict, ...]
    weighing: HostOrder | None
    nearest: tuple[str, ...]
    changes: tuple[HelpfulChange, ...]
    changes_tried: int
    changes_untried: int
    next_steps: tuple[HelpfulStep, ...]
    seconds: Mapping[str, float]
    subject: str = _internal()
    asks_for: str = _internal()


def requested(
    boot_request: 'request.BootRequest',
) -> RequestedServers:
    flavor = boot_request.flavor
    return RequestedServers(
        servers=boot_request.count, flavor=flavor.name,
        flavor_id=flavor.id or None,
        vcpus=flavor.vcpus, memory_mib=flavor.memory,
        disk_gib=flavor.disk + flavor.ephemeral,
        extra_specs=_cut_properties(flavor.extra_specs),
        image_properties=_cut_properties(boot_request.image),
        ports=tuple([RequestedPort(
            network=network.name or None, network_id=network.id or None,
            physical_network=network.physnet,
            vnic_type=network.vnic_type or 'normal')
            for network, _groups in boot_request.ports]),
        availability_zone=boot_request.zone,
        server_group=boot_request.group,
        scheduler_hints=boot_request.hints)


def _cut_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """Return properties; only those of an edited file can be too long."""
    return {strings.short(key, _LONGEST): strings.short(value, _LONGEST)
            for key, value in properties.items()}
