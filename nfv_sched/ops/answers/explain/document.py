# SPDX-License-Identifier: Apache-2.0
"""Define the document of ``server explain`` and ``flavor explain``."""

from collections.abc import Mapping
import dataclasses
import typing as ty

from nfv_sched.base import strings
from nfv_sched.ops.cli import documents
from nfv_sched.ops.model.counting import document as counting
from nfv_sched.ops.model.requests import assumed_ports
from nfv_sched.ops.model.verdicts import values

if ty.TYPE_CHECKING:
    from nfv_sched.ops.simulator import request

#: Most characters that the API accepts in a key or value.
_LONGEST = 255


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RequestedPort:
    """A port of each server."""

    network: str | None  #: name of its network; null if it is not known
    network_id: str | None  #: UUID of its network; null likewise
    #: name of the physical network; null if it has none
    physical_network: str | None
    vnic_type: str  #: Neutron's vNIC type, such as "normal" or "direct"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RequestedServers:
    """A request for servers."""

    servers: int  #: number of servers
    flavor: str  #: name of the flavor
    flavor_id: str | None  #: ID of the flavor; null if it is not known
    vcpus: int  #: number of vCPUs
    memory_mib: int  #: memory in MiB
    disk_gib: int  #: root and ephemeral disks in GiB
    extra_specs: Mapping[str, str]  #: extra specs of the flavor
    #: properties of the image that matter for scheduling
    image_properties: Mapping[str, str]
    ports: tuple[RequestedPort, ...]  #: ports of each server
    availability_zone: str | None  #: name of the zone; null for any
    server_group: str | None  #: name of the server group; null without one
    #: other hints, each with its values
    scheduler_hints: Mapping[str, tuple[str, ...]]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class FilterStage:
    """A filter of Nova's chain."""

    filter: str  #: its class name
    #: number of hosts that it was given; null if it was not run
    hosts_in: int | None
    hosts_out: int | None  #: number of hosts that it passed; null likewise
    refuses_alone: int  #: number of all hosts that it refuses, asked alone
    error: str | None  #: the exception that it raised; null if it raised none


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class HostWeight:
    """The weight that a weigher gives to a host."""

    host: str  #: name of the host
    raw: float  #: weight as the weigher returns it
    normalized: float  #: weight normalized over the hosts that pass
    multiplier: float  #: multiplier of the weigher for the host
    weight: float  #: normalized weight times multiplier


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class WeigherWeights:
    """A weigher, and its weights."""

    weigher: str  #: its class name
    #: name of the host that would be first without it; null if that is the
    #: same one
    first_without_it: str | None
    weights: tuple[HostWeight, ...]  #: the weights, of the best host first


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class HostTotal:
    """The weight of a host."""

    host: str  #: name of the host
    weight: float  #: sum of its weights


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class HostOrder:
    """The order of the hosts that pass."""

    hosts: tuple[HostTotal, ...]  #: the hosts, the best first
    #: weighers of Nova's configuration; empty if only one host passes
    weighers: tuple[WeigherWeights, ...]
    equal_hosts: int  #: number of hosts that share the first place
    #: that option of [filter_scheduler]: Nova takes one of the first so many
    #: at random
    host_subset_size: int
    #: when the cloud was read: ISO 8601, UTC; null if not known
    read_at: str | None
    age_seconds: int | None  #: seconds since then; null likewise


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Destination:
    """The host to which a server would go."""

    host: str  #: name of the host
    host_id: str  #: UUID of its compute node
    #: NUMA node of the host for each of the server; null if it has none
    numa_nodes: tuple[int, ...] | None
    cpus: tuple[int, ...]  #: CPUs of the host to which it would be pinned
    pci_devices: tuple[str, ...]  #: PCI addresses of its devices
    #: claims on other hosts that failed before, for people
    failed_claims: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class HelpfulStep:
    """A step that can be taken after a refusal."""

    text: str  #: what it is good for, for people
    #: "enable" or "map" a host that would take the server; "defrag" as other
    #: servers can make room by moving; "servers" shows what is in the way;
    #: "add-host" as one more would take it; "larger-host" as none is large
    #: enough, however empty
    kind: ty.Literal['enable', 'map', 'defrag', 'servers', 'add-host',
                     'larger-host']
    #: words of the command line; empty if there is no command
    command: tuple[str, ...] = counting.always(default=())
    #: name of the host that it is about; null for none
    host: str | None = counting.always(default=None)
    #: names of the hosts that new ones must be like, or larger
    like: tuple[str, ...] = counting.always(default=())
    #: what such a host has too little of even if it is empty, for people;
    #: empty if it need not be larger
    lacks: tuple[str, ...] = counting.always(default=())
    #: number of live migrations that make room; null if it is not "defrag"
    moves: int | None = counting.always(default=None)


#: Of causes that keep a request off as many hosts, the first of these is told.
CauseKind = ty.Literal[
    'disabled', 'down', 'unmapped', 'reserved', 'request', 'cut-off',
    'placement', 'deployment', 'shortage', 'filter', 'error']


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class HostVerdict:
    """A host, and why it does or does not pass."""

    host: str  #: its name
    host_id: str  #: UUID of its compute node
    #: whether the explained server runs there; what it has was given back
    runs_there: bool
    placement_finds: bool  #: whether Placement's answer has the host
    #: requirements of Placement that it does not meet
    placement_lacks: tuple[values.PlacementLack, ...]
    #: refusals by filters, each asked alone
    refusals: tuple[values.HostRefusal, ...]
    #: refusals by filters that are in shadow there, without effect; empty if
    #: other filters refuse it
    refusals_in_shadow: tuple[values.HostRefusal, ...]
    passes: bool  #: whether Nova's chain passes it
    #: class name of the filter of the chain that removed it; null if none has
    removed_by: str | None
    #: its place among the hosts that pass, from 1; null if it does not pass
    rank: int | None

    @property
    def misses(self) -> tuple[str, ...]:
        return tuple([lack.text for lack in self.placement_lacks])

    @property
    def failures(self) -> int:
        return len(self.placement_lacks) + len(self.refusals)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RefusalCause:
    """Something that keeps the request off hosts, as far as it is common."""

    text: str  #: the cause, for people
    #: "deployment" if no NUMA node has all that it must be near, however empty
    #: it is; "shortage" of a resource of NUMA nodes; "placement" for a
    #: requirement of Placement; "filter" for another refusal of a filter,
    #: "error" if it raises an exception; "request" if the request itself is
    #: wrong; "disabled", "down", "unmapped" hosts, or "reserved" by OpenStack
    #: Blazar; "cut-off" by [scheduler] max_placement_results
    kind: CauseKind
    hosts: int  #: number of hosts; each is in one cause only
    nearest_host: str  #: name of the host that lacks least of it
    nearest_host_id: str  #: UUID of its compute node
    filters: tuple[str, ...]  #: class names of the filters that refuse for it
    #: the requirement of Placement; null if it is none
    need: values.PlacementNeed | None
    #: what the nearest host has of it, as in hosts; null likewise
    free: int | None
    #: how a filter refuses the nearest host; null for Placement
    refusal: values.HostRefusal | None
    #: properties that the NUMA nodes must have, for people
    places: tuple[str, ...]
    #: physical networks that they must be near
    physical_networks: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class HelpfulChange:
    """A change, or two together, with which the request would fit."""

    text: str  #: the change, for people
    request: RequestedServers  #: the changed request
    #: names of hosts that have to be enabled, mapped and up
    hosts_enabled: tuple[str, ...]
    hosts: int  #: number of hosts that pass then
    host: str  #: name of the host to which the first server would go
    #: the changed request as a ``BootRequest``
    requested: ty.Any = documents.internal()
    size: int = documents.internal()  #: rank of its size, the smallest first


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """An explanation where a request fits, and why not elsewhere."""

    server: str | None  #: name of the explained server; null for a flavor
    server_id: str | None  #: its UUID; null likewise
    server_state: str | None  #: its state in Nova (vm_state); null likewise
    host: str | None  #: name of the host where it runs; null if there is none
    request: RequestedServers  #: servers that the scheduler is to place
    assumed: tuple[str, ...]  #: assumptions about the request, for people
    #: ports that "capacity list" assumes for each new server of the flavor,
    #: while the request has none, as no --network is given; null otherwise
    usual_ports: assumed_ports.NewPorts | None
    fits: bool  #: whether all servers of the request would be placed
    reason: str | None  #: why it does not fit, for people; null if it does
    #: what keeps the first server off all hosts, that of most hosts first;
    #: empty if a host takes it
    causes: tuple[RefusalCause, ...]
    #: where each server would go, as far as it fits
    destinations: tuple[Destination, ...]
    #: the stage in which Nova asks Placement
    placement: values.PlacementAnswer
    filters: tuple[FilterStage, ...]  #: Nova's chain, in order
    hosts: tuple[HostVerdict, ...]  #: the hosts of --host, or all
    #: order of the hosts that pass; null if none does
    weighing: HostOrder | None
    #: names of the hosts with the fewest failures, the nearest first
    nearest: tuple[str, ...]
    #: changes with which it would fit, the best first; two together if no
    #: single one helps
    changes: tuple[HelpfulChange, ...]
    changes_tried: int  #: number of changes that were tried
    changes_untried: int  #: number of changes for which there was no time
    #: what to do next, where that is known
    next_steps: tuple[HelpfulStep, ...]
    #: stage of the explanation -> seconds that it took
    seconds: Mapping[str, float]
    subject: str = documents.internal()  #: the server or flavor, for people
    asks_for: str = documents.internal()  #: the request, for people


def requested(boot_request: 'request.BootRequest') -> RequestedServers:
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
        availability_zone=boot_request.zone, server_group=boot_request.group,
        scheduler_hints=boot_request.hints)


def _cut_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """Cut long properties, which only an edited file has."""
    return {strings.short(key, _LONGEST): strings.short(value, _LONGEST)
            for key, value in properties.items()}
