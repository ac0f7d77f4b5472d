# SPDX-License-Identifier: Apache-2.0
"""Define the document of ``server explain`` and ``flavor explain``."""

from collections.abc import Collection
from collections.abc import Mapping
import dataclasses
import typing as ty

from nfv_sched.base import device_shortage
from nfv_sched.base import strings
from nfv_sched.ops.answers.explain import sentences
from nfv_sched.ops.answers.explain import values
from nfv_sched.ops.answers import requests as request_document

if ty.TYPE_CHECKING:
    from nfv_sched.ops.model.requests import subject as subjects
    from nfv_sched.ops.simulator import request

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
    need: values.PlacementNeed | None
    free: int | None
    reserved: int


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
    """

    filter: str
    policy: str | None
    policy_value: str | None
    why: str | None
    shortage: ResourceShortage | None
    kind: str | None
    raised: bool


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
    placement_lacks: tuple[PlacementLack, ...]
    refusals: tuple[HostRefusal, ...]
    refusals_in_shadow: tuple[HostRefusal, ...]
    passes: bool
    removed_by: str | None
    rank: int | None


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
    refusal: HostRefusal | None
    places: tuple[str, ...]
    physical_networks: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class HelpfulChange:
    """A change, or two together, with which the request would fit.

    :ivar text: the change, for people
    :ivar request: the changed request
    :ivar hosts_enabled: names of hosts that have to be enabled, mapped and up
    :ivar hosts: number of hosts that pass then
    :ivar host: name of the host to which the first server would go
    """

    text: str
    request: RequestedServers
    hosts_enabled: tuple[str, ...]
    hosts: int
    host: str


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
    destinations: tuple[values.Destination, ...]
    placement: values.PlacementAnswer
    filters: tuple[values.FilterStage, ...]
    hosts: tuple[HostVerdict, ...]
    weighing: values.HostOrder | None
    nearest: tuple[str, ...]
    changes: tuple[HelpfulChange, ...]
    changes_tried: int
    changes_untried: int
    next_steps: tuple[values.HelpfulStep, ...]
    seconds: Mapping[str, float]


def explained(
    explanation: values.Explanation, subject: 'subjects.ExplainSubject',
    names: Collection[str], host_ids: Mapping[str, str],
) -> Explained:
    """Return the document of an explanation.

    :param names: names of the hosts to show
    :param host_ids: UUID of each host by its name
    """
    server = subject.server
    return Explained(
        server=server.name if server else None,
        server_id=server.uuid if server else None,
        server_state=server.state if server else None, host=subject.present,
        request=_request(subject.requested), assumed=explanation.assumed,
        usual_ports=None if subject.usual_ports is None
        else request_document.new_ports(subject.usual_ports),
        fits=explanation.fits, reason=explanation.reason or None,
        causes=tuple([_cause(cause, len(explanation.hosts), host_ids)
                      for cause in explanation.causes]),
        destinations=explanation.places, placement=explanation.placement,
        filters=explanation.filters,
        hosts=tuple([_host(host, host_ids) for host in explanation.hosts
                     if host.name in names]),
        weighing=explanation.weighing,
        nearest=explanation.nearest,
        changes=tuple([HelpfulChange(
            text=each.text, request=_request(each.requested),
            hosts_enabled=each.enabled, hosts=each.hosts, host=each.host)
            for each in explanation.relaxations]),
        changes_tried=explanation.tried, changes_untried=explanation.untried,
        next_steps=explanation.steps, seconds=explanation.seconds)


def _request(
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


def _host(host: values.ExplainedHost,
          host_ids: Mapping[str, str]) -> HostVerdict:
    return HostVerdict(
        host=host.name, host_id=host_ids[host.name], runs_there=host.present,
        placement_finds=host.found, placement_lacks=tuple([PlacementLack(
            text=text,
            need=None if lack is None else lack.need,
            free=None if lack is None else lack.free,
            reserved=sum(miss.count for miss in lack.misses) if lack else 0)
            for text, lack in zip(
                host.misses, host.lacks or (None,) * len(host.misses))]),
        refusals=tuple(map(_refusal, host.refusals)),
        refusals_in_shadow=tuple(map(_refusal, host.shadowed)),
        passes=host.passed, removed_by=host.stopped, rank=host.rank)


def _refusal(refusal: values.FilterRefusal) -> HostRefusal:
    policy, equals, value = refusal.policy.partition('=')
    shortage = refusal.shortage
    return HostRefusal(
        filter=refusal.filter, policy=policy or None,
        policy_value=value if equals else None, why=refusal.text or None,
        shortage=None if shortage is None else ResourceShortage(
            resource=shortage.amount.resource.value,
            needed=shortage.amount.needed, free=shortage.free,
            pci_devices=shortage.devices and _devices(shortage.devices)),
        kind=refusal.kind.value or None, raised=refusal.raised)


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


def _cause(cause: values.CommonCause, hosts: int,
           host_ids: Mapping[str, str]) -> RefusalCause:
    lack, refusal = cause.lack, cause.refusal
    shortage = None if refusal is None else refusal.shortage
    return RefusalCause(
        text=sentences.cause(cause, hosts),
        kind=ty.cast(ty.Any, cause.kind.value), hosts=len(cause.hosts),
        nearest_host=cause.nearest, nearest_host_id=host_ids[cause.nearest],
        filters=cause.filters,
        need=None if lack is None else lack.need,
        free=None if lack is None else lack.free,
        refusal=None if refusal is None else _refusal(refusal),
        places=() if shortage is None else tuple(map(str, shortage.places)),
        physical_networks=cause.networks)
