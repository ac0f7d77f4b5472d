# SPDX-License-Identifier: Apache-2.0
"""Define why Placement or a filter refuses a host, as plain values."""

import dataclasses
import enum
import functools
import typing as ty

from nfv_sched.base import device_shortage
from nfv_sched.base import reasons
from nfv_sched.ops.simulator import placement

#: Defines a field that is not in documents; see ``ops.cli.documents``.
_internal = functools.partial(dataclasses.field, metadata={'internal': True})


class RefusalKind(enum.StrEnum):
    """Kind of a refusal; it is known for few filters."""

    #: The host is not mapped to its cell.
    UNMAPPED = 'unmapped'
    #: The compute service of the host is disabled.
    DISABLED = 'disabled'
    #: It is down.
    DOWN = 'down'
    #: OpenStack Blazar keeps the host for reservations.
    RESERVED = 'reserved'
    #: The request itself is wrong, on any host.
    REQUEST = 'request'
    OTHER = ''


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RequestedDevices:
    """PCI devices that an alias or a port asks for.

    :ivar count: number of devices
    :ivar devices: "PF", "VF" or "PCI device"
    :ivar alias: name of the alias; null for a port
    :ivar physical_network: that of a port; null for none
    :ivar networks: names of the networks that the port may be on; empty for
        an alias, and for single hosts
    :ivar trusted: whether they must be trusted VFs
    :ivar numa_policy: the PCI NUMA policy that counts: one of Nova's, or
        "strict" of nfv:pci_numa_affinity; null if NUMA nodes are not the cause
    """

    count: int
    devices: str
    alias: str | None
    physical_network: str | None
    networks: tuple[str, ...]
    trusted: bool
    numa_policy: str | None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class NearDevices:
    """Free PCI devices that lack exactly one property.

    :ivar lacks: the property
    :ivar count: number of such devices
    :ivar devices: "PF", "VF", "PCI device" or "device"
    :ivar wanted: the value that is asked for, or the PCI NUMA policy
    :ivar found: values that the devices have; numbers of their NUMA nodes
    :ivar do: what an operator can do about it
    """

    lacks: ty.Literal[
        'type', 'physical_network', 'trusted', 'node_unknown', 'other_node',
        'other_socket', 'socket_unknown', 'live_migratable', 'remote_managed',
        'property', 'reserved']
    count: int
    devices: str
    wanted: str
    found: tuple[str, ...]
    do: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class MissingDevices:
    """The fewest PCI requests that a host cannot serve together.

    :ivar kind: "too_few" devices; "one_card" if only a PF and VFs of one card
        are left; "numa" if they are not on NUMA nodes that suit the policy;
        "order" if Nova gives an earlier request what a later one needs;
        "granted" if Placement has granted others
    :ivar requests: these requests, in Nova's order
    :ivar near_misses: free devices that lack one property that is asked for
    """

    kind: ty.Literal['too_few', 'one_card', 'numa', 'order', 'granted']
    requests: tuple[RequestedDevices, ...]
    near_misses: tuple[NearDevices, ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ResourceShortage:
    """A resource of which a host has too little.

    :ivar resource: "pages" is memory in pages of the requested size,
        "cpu_threads" dedicated CPUs under the thread policy, "shared_vcpus"
        and "memory_ratio" what the allocation ratios leave
    :ivar needed: amount that is needed; MiB for "memory", "memory_ratio" and
        "pages"
    :ivar free: amount on the NUMA node of the host that comes closest, of
        those that the server may have; on the host for "vswitch_ports" and
        "security_rules", of which limits leave too few
    :ivar pci_devices: why there are too few PCI devices; null for others
    """

    resource: ty.Literal[
        'numa_nodes', 'pages', 'memory', 'dedicated_cpus', 'shared_cpus',
        'cpu_threads', 'shared_vcpus', 'memory_ratio', 'pci_devices',
        'vswitch_ports', 'security_rules']
    needed: int
    free: int
    pci_devices: MissingDevices | None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class HostRefusal:
    """The refusal of a host by a filter that is asked alone.

    :ivar filter: class name of the filter
    :ivar policy: the extra spec that is not kept, or another policy; null if
        the filter does not say
    :ivar policy_value: value of the extra spec; null likewise
    :ivar why: the amount needed and the amount there, for people; null
        likewise
    :ivar shortage: the resource that is missing; null if it is none, or not
        known
    :ivar kind: "unmapped" if the host is not mapped to its cell, "disabled" or
        "down" of its compute service, "reserved" by OpenStack Blazar,
        "request" if the request itself is wrong; null otherwise
    :ivar raised: whether the filter failed with an exception
    :ivar need: the requirement, for people, without anything about the host;
        empty if the filter does not say
    :ivar rank: how close the host came; higher is closer
    :ivar lacks: ``reasons.Shortage`` of the resource that is missing; None if
        it is none, or not known
    """

    filter: str
    policy: str | None
    policy_value: str | None
    why: str | None
    shortage: ResourceShortage | None
    kind: str | None
    raised: bool
    need: str = _internal()
    rank: int = _internal()
    lacks: ty.Any = _internal()

    @property
    def missing(self) -> float:
        """The missing part of the resource; 1 if it is about none."""
        return 1.0 if self.lacks is None else self.lacks.missing

    @property
    def key(self) -> str:
        """The extra spec with its value, or another policy; may be empty."""
        return (self.policy or '') + (
            '' if self.policy_value is None else f'={self.policy_value}')


def refusal(
    filter_name: str, text: str = '', *, policy: str = '', need: str = '',
    rank: int = 0, shortage: reasons.Shortage | None = None,
    kind: RefusalKind = RefusalKind.OTHER, raised: bool = False,
) -> HostRefusal:
    """Return the refusal of a host by a filter.

    :param text: the amount needed and the amount there
    :param policy: the extra spec with its value, or another policy
    """
    key, equals, value = policy.partition('=')
    return HostRefusal(
        filter=filter_name, policy=key or None,
        policy_value=value if equals else None, why=text or None,
        shortage=resource_shortage(shortage), kind=kind or None,
        raised=raised, need=need, rank=rank, lacks=shortage)


def resource_shortage(
    shortage: reasons.Shortage | None,
) -> ResourceShortage | None:
    return None if shortage is None else ResourceShortage(
        resource=ty.cast(ty.Any, shortage.amount.resource.value),
        needed=shortage.amount.needed, free=shortage.free,
        pci_devices=shortage.devices and _devices(shortage.devices))


def _devices(shortage: device_shortage.DeviceShortage) -> MissingDevices:
    return MissingDevices(
        kind=ty.cast(ty.Any, shortage.kind.value),
        requests=tuple([RequestedDevices(
            count=need.count, devices=need.noun, alias=need.alias or None,
            physical_network=need.physical_network or None,
            networks=need.networks, trusted=need.trusted,
            numa_policy=need.policy or None)
            for need in shortage.needs]),
        near_misses=tuple([NearDevices(
            lacks=ty.cast(ty.Any, miss.kind.value), count=miss.count,
            devices=miss.noun, wanted=miss.wanted, found=miss.found,
            do=device_shortage.remedy(miss)) for miss in shortage.misses]))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PlacementNeed:
    """A requirement of a query to Placement.

    :ivar text: the requirement, for people
    :ivar kind: "resource" is an amount of a resource class, "group" amounts
        and traits of one provider, "tree" one host, "choice" providers for
        all groups at once, "unknown" what Placement refuses
    :ivar resources: amount of each resource class
    :ivar traits: required traits, or the forbidden one of "forbidden_trait"
    :ivar forbidden_traits: forbidden traits of a group
    :ivar aggregates: names of aggregates, of which the host must be in one,
        or for "forbidden_aggregate" in none
    :ivar host: name of the only host; null otherwise
    :ivar count: how many times it is asked for
    """

    text: str
    kind: ty.Literal[
        'tree', 'trait', 'forbidden_trait', 'aggregate',
        'forbidden_aggregate', 'resource', 'group', 'choice', 'unknown']
    resources: ty.Mapping[str, int]
    traits: tuple[str, ...]
    forbidden_traits: tuple[str, ...]
    aggregates: tuple[str, ...]
    host: str | None
    count: int


def placement_need(
    text: str, kind: str, *, resources: ty.Mapping[str, int] | None = None,
    traits: tuple[str, ...] = (), forbidden_traits: tuple[str, ...] = (),
    aggregates: tuple[str, ...] = (), host: str | None = None, count: int = 1,
) -> PlacementNeed:
    """Return a requirement of which most kinds have few fields."""
    return PlacementNeed(
        text=text, kind=ty.cast(ty.Any, kind), resources=resources or {},
        traits=traits, forbidden_traits=forbidden_traits,
        aggregates=aggregates, host=host, count=count)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PlacementLack:
    """A requirement of Placement that a host does not meet.

    :ivar text: what is missing, for people
    :ivar need: the requirement; null if the host was cut off by [scheduler]
        max_placement_results
    :ivar free: largest free amount of one provider of the host, for a
        resource; null otherwise, and if no provider has the class
    :ivar reserved: amount that is reserved of nested providers
    """

    text: str
    need: PlacementNeed | None
    free: int | None
    reserved: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class StageRequirement:
    """A requirement of the first query, with its effect.

    :ivar need: the requirement
    :ivar hosts_missing_it: number of hosts that do not meet it
    :ivar hosts_without_it: number of hosts found if only it is dropped
    """

    need: PlacementNeed
    hosts_missing_it: int
    hosts_without_it: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class StageRemoval:
    """Hosts that no query finds.

    :ivar need: the requirement that they do not meet
    :ivar hosts: number of hosts
    """

    need: PlacementNeed
    hosts: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PlacementQuery:
    """A query to Placement.

    :ivar needs: its requirements: a host must meet all of them
    """

    needs: tuple[PlacementNeed, ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PlacementAnswer:
    """The stage in which Nova asks Placement.

    :ivar queries: Nova's queries, in order
    :ivar hosts: number of known hosts
    :ivar hosts_left: number of hosts in the answers
    :ivar requirements: requirements of the first query
    :ivar removed: hosts that no query finds, each counted once
    :ivar asks_again: whether Nova asks again for VCPU in place of PCPU
    :ivar max_placement_results: that option of [scheduler]; null if Placement
        was not asked
    :ivar hosts_cut_off: number of hosts that this limit has cut off
    :ivar unsupported: parts of the queries that cannot be answered here; no
        host is found then
    :ivar refused: why Placement refuses the queries; null if it does not
    :ivar unknown: names that Placement does not know, if it refuses them
    :ivar unverified: forbidden traits that Placement may not know
    """

    queries: tuple[PlacementQuery, ...]
    hosts: int
    hosts_left: int
    requirements: tuple[StageRequirement, ...]
    removed: tuple[StageRemoval, ...]
    asks_again: bool
    max_placement_results: int | None
    hosts_cut_off: int
    unsupported: tuple[str, ...]
    refused: str | None
    unknown: tuple[placement.Unknown, ...]
    unverified: tuple[placement.Unknown, ...]


NOT_ASKED = PlacementAnswer(
    queries=(), hosts=0, hosts_left=0, requirements=(), removed=(),
    asks_again=False, max_placement_results=None, hosts_cut_off=0,
    unsupported=(), refused=None, unknown=(), unverified=())
