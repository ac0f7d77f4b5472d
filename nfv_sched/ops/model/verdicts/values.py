# SPDX-License-Identifier: Apache-2.0
"""Define why Placement or a filter refuses a host, as plain values."""

import dataclasses
import typing as ty

from nfv_sched.base import device_shortage
from nfv_sched.base import reasons
from nfv_sched.ops.model.counting import document
from nfv_sched.ops.simulator import placement


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RequestedDevices:
    """PCI devices that an alias or a port asks for."""

    count: int  #: number of devices
    devices: str  #: "PF", "VF" or "PCI device"
    alias: str | None  #: name of the alias; null for a port
    physical_network: str | None  #: that of a port; null for none
    #: names of the networks that the port may be on; empty for an alias, and
    #: for single hosts
    networks: tuple[str, ...]
    trusted: bool  #: whether they must be trusted VFs
    #: the PCI NUMA policy that counts: one of Nova's, or "strict" of
    #: nfv:pci_numa_affinity; null if NUMA nodes are not the cause
    numa_policy: str | None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class NearDevices:
    """Free PCI devices that lack exactly one property."""

    #: the property
    lacks: ty.Literal[
        'type', 'physical_network', 'trusted', 'node_unknown', 'other_node',
        'other_socket', 'socket_unknown', 'live_migratable', 'remote_managed',
        'property', 'reserved']
    count: int  #: number of such devices
    devices: str  #: "PF", "VF", "PCI device" or "device"
    wanted: str  #: the value that is asked for, or the PCI NUMA policy
    #: values that the devices have; numbers of their NUMA nodes
    found: tuple[str, ...]
    do: str  #: what an operator can do about it


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class MissingDevices:
    """The fewest PCI requests that a host cannot serve together."""

    #: "too_few" devices; "one_card" if only a PF and VFs of one card are left;
    #: "numa" if they are not on NUMA nodes that suit the policy; "order" if
    #: Nova gives an earlier request what a later one needs; "granted" if
    #: Placement has granted others
    kind: ty.Literal['too_few', 'one_card', 'numa', 'order', 'granted']
    requests: tuple[RequestedDevices, ...]  #: these requests, in Nova's order
    #: free devices that lack one property that is asked for
    near_misses: tuple[NearDevices, ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ResourceShortage:
    """A resource of which a host has too little."""

    #: "pages" is memory in pages of the requested size, "cpu_threads"
    #: dedicated CPUs under the thread policy, "shared_vcpus" and
    #: "memory_ratio" what the allocation ratios leave
    resource: ty.Literal[
        'numa_nodes', 'pages', 'memory', 'dedicated_cpus', 'shared_cpus',
        'cpu_threads', 'shared_vcpus', 'memory_ratio', 'pci_devices',
        'vswitch_ports', 'security_rules']
    #: amount that is needed; MiB for "memory", "memory_ratio" and "pages"
    needed: int
    #: amount on the NUMA node of the host that comes closest, of those that
    #: the server may have; on the host for "vswitch_ports" and
    #: "security_rules", of which limits leave too few
    free: int
    #: why there are too few PCI devices; null for others
    pci_devices: MissingDevices | None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class HostRefusal:
    """The refusal of a host by a filter that is asked alone."""

    filter: str  #: class name of the filter
    #: the extra spec that is not kept, or another policy; null if the filter
    #: does not say
    policy: str | None
    policy_value: str | None  #: value of the extra spec; null likewise
    #: the amount needed and the amount there, for people; null likewise
    why: str | None
    #: the resource that is missing; null if it is none, or not known
    shortage: ResourceShortage | None
    #: "unmapped" if the host is not mapped to its cell, "disabled" or "down"
    #: of its compute service, "reserved" by OpenStack Blazar, "request" if the
    #: request itself is wrong; null otherwise
    kind: str | None
    raised: bool  #: whether the filter failed with an exception
    #: the requirement, for people, without anything about the host; empty if
    #: the filter does not say
    need: str = document.internal()
    #: how close the host came; higher is closer
    rank: int = document.internal()
    #: ``reasons.Shortage`` of the resource that is missing; None if it is
    #: none, or not known
    lacks: ty.Any = document.internal()

    @property
    def missing(self) -> float:
        """The missing part of the resource; 1 if it is about none."""
        return 1.0 if self.lacks is None else self.lacks.missing

    @property
    def key(self) -> str:
        """The extra spec with its value, or another policy; may be empty."""
        return (self.policy or '') + (
            '' if self.policy_value is None else f'={self.policy_value}')


def refusal(filter_name: str, text: str = '', *, policy: str = '',
            need: str = '', rank: int = 0,
            shortage: reasons.Shortage | None = None, kind: str | None = None,
            raised: bool = False) -> HostRefusal:
    """Return the refusal of a host by a filter.

    :param text: the amount needed and the amount there
    :param policy: the extra spec with its value, or another policy
    """
    key, equals, value = policy.partition('=')
    return HostRefusal(
        filter=filter_name, policy=key or None,
        policy_value=value if equals else None, why=text or None,
        shortage=resource_shortage(shortage), kind=kind, raised=raised,
        need=need, rank=rank, lacks=shortage)


def of_reason(filter_name: str, reason: reasons.Reason) -> HostRefusal:
    of_request = reason.order == reasons.REQUEST
    return refusal(
        # Beside the name of the filter, the policy need not be told.
        filter_name, str(reason) if of_request else reasons.text(reason),
        policy=reason.policy, need=reason.need, rank=reason.rank,
        shortage=reason.shortage, kind='request' if of_request else None)


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


@dataclasses.dataclass(frozen=True, slots=True)
class PlacementNeed:
    """A requirement of a query to Placement."""

    text: str  #: the requirement, for people
    #: "resource" is an amount of a resource class, "group" amounts and traits
    #: of one provider, "tree" one host, "choice" providers for all groups at
    #: once, "unknown" what Placement refuses
    kind: ty.Literal[
        'tree', 'trait', 'forbidden_trait', 'aggregate',
        'forbidden_aggregate', 'resource', 'group', 'choice', 'unknown']
    #: amount of each resource class
    resources: ty.Mapping[str, int] = document.always(default_factory=dict)
    #: required traits, or the forbidden one of "forbidden_trait"
    traits: tuple[str, ...] = document.always(default=())
    #: forbidden traits of a group
    forbidden_traits: tuple[str, ...] = document.always(default=())
    #: names of aggregates, of which the host must be in one, or for
    #: "forbidden_aggregate" in none
    aggregates: tuple[str, ...] = document.always(default=())
    #: name of the only host; null otherwise
    host: str | None = document.always(default=None)
    count: int = document.always(default=1)  #: how many times it is asked for


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PlacementLack:
    """A requirement of Placement that a host does not meet."""

    text: str  #: what is missing, for people
    #: the requirement; null if the host was cut off by [scheduler]
    #: max_placement_results
    need: PlacementNeed | None
    #: largest free amount of one provider of the host, for a resource; null
    #: otherwise, and if no provider has the class
    free: int | None = document.always(default=None)
    #: amount that is reserved of nested providers
    reserved: int = document.always(default=0)

    @property
    def missing(self) -> float:
        """The missing part of the resources; 1 if it is about none."""
        needed = sum(self.need.resources.values()) if self.need else 0
        return 1.0 if self.free is None or not needed else (
            max(needed - self.free, 0) / needed)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class StageRequirement:
    """A requirement of the first query, with its effect."""

    need: PlacementNeed  #: the requirement
    hosts_missing_it: int  #: number of hosts that do not meet it
    hosts_without_it: int  #: number of hosts found if only it is dropped


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class StageRemoval:
    """Hosts that no query finds."""

    need: PlacementNeed  #: the requirement that they do not meet
    hosts: int  #: number of hosts


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PlacementQuery:
    """A query to Placement."""

    #: its requirements: a host must meet all of them
    needs: tuple[PlacementNeed, ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PlacementAnswer:
    """The stage in which Nova asks Placement."""

    queries: tuple[PlacementQuery, ...]  #: Nova's queries, in order
    hosts: int  #: number of known hosts
    hosts_left: int  #: number of hosts in the answers
    #: requirements of the first query
    requirements: tuple[StageRequirement, ...]
    #: hosts that no query finds, each counted once
    removed: tuple[StageRemoval, ...]
    asks_again: bool  #: whether Nova asks again for VCPU in place of PCPU
    #: that option of [scheduler]; null if Placement was not asked
    max_placement_results: int | None
    hosts_cut_off: int  #: number of hosts that this limit has cut off
    #: parts of the queries that cannot be answered here; no host is found then
    unsupported: tuple[str, ...]
    #: why Placement refuses the queries; null if it does not
    refused: str | None
    #: names that Placement does not know, if it refuses them
    unknown: tuple[placement.Unknown, ...]
    #: forbidden traits that Placement may not know
    unverified: tuple[placement.Unknown, ...]
