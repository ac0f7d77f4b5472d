# SPDX-License-Identifier: Apache-2.0
"""Define the documents of ``capacity list`` and ``capacity show``."""

from collections.abc import Collection
from collections.abc import Iterator
from collections.abc import Mapping
import dataclasses
import functools
import typing as ty

from nfv_sched.ops.answers import requests as request_document
from nfv_sched.ops.cli import documents
from nfv_sched.ops.cloud import blazar
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.simulator import placement

if ty.TYPE_CHECKING:
    from nfv_sched.ops.model.counting import binding
    from nfv_sched.ops.model.counting import capacity

_internal = functools.partial(dataclasses.field, metadata=documents.INTERNAL)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class LostLimit:
    """A limit to which servers are lost.

    :ivar kind: kind of the limit, such as "cpus_on_nodes", "pages",
        "devices", "policy", "networks_near", "filter", "ports"
    :ivar name: the policy, filter, page size or other name of the limit; null
        if it has none
    :ivar numa_nodes: number of NUMA nodes on which the CPUs of
        "cpus_on_nodes" are needed; null for other kinds
    """

    kind: str
    name: str | None
    numa_nodes: int | None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class LostCapacity:
    """Servers that Placement would grant and hosts do not take.

    :ivar limits: the limits to which they are lost
    :ivar any_one: whether they fit without any one of the limits; if not, only
        without all of them
    :ivar servers: number of servers
    :ivar label: names of the limits, for people
    """

    limits: tuple[LostLimit, ...]
    any_one: bool
    servers: int
    label: str = _internal()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class BlazarReservation:
    """A reservation of OpenStack Blazar that has started.

    :ivar id: its ID
    :ivar project_id: ID of its project
    :ivar kind: "host" if the whole host is reserved, "instance" if instances
        on it are
    """

    id: str
    project_id: str
    kind: ty.Literal['host', 'instance']


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class BlazarHost:
    """A host that OpenStack Blazar keeps for reservations.

    :ivar host: its name
    :ivar host_id: UUID of its compute node
    :ivar reservations: present reservations; empty if it is free for one
    """

    host: str
    host_id: str
    reservations: tuple[BlazarReservation, ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class BlazarHosts:
    """The hosts that OpenStack Blazar keeps, as aggregates show them.

    :ivar filter_enabled: whether BlazarFilter is enabled; if not, Nova places
        any server on these hosts
    :ivar hosts: those of the hosts that count
    """

    filter_enabled: bool
    hosts: tuple[BlazarHost, ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ResourceQuota:
    """The quota of a project for one resource.

    :ivar resource: "instances", "cores", "ram" (MiB); with unified limits
        "servers", "class:VCPU", "class:PCPU", "class:MEMORY_MB" and so on
    :ivar limit: its limit; null if there is none
    :ivar used: amount in use; may be more than the limit
    :ivar needed: amount that one more server of the flavor needs
    """

    resource: str
    limit: int | None
    used: int
    needed: int

    @property
    def allows(self) -> int | None:
        """The number of servers that it allows; None if there is no limit."""
        if self.limit is None or not self.needed:
            return None
        return max(self.limit - self.used, 0) // self.needed


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class QuotaAllowance:
    """The number of servers of a flavor that a project's quota allows.

    :ivar allows: number of servers; null if there is no limit
    :ivar resources: the quota for each resource that a server needs
    """

    allows: int | None
    resources: tuple[ResourceQuota, ...]

    @property
    def scarce(self) -> tuple[ResourceQuota, ...]:
        """The resources of which the quota allows no more servers."""
        return tuple([each for each in self.resources
                      if each.allows is not None
                      and each.allows == self.allows])


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class FlavorFit:
    """The number of servers of a flavor that fit a part of the cloud.

    :ivar host: name of the host; null unless by host
    :ivar host_id: UUID of its compute node; null likewise
    :ivar aggregate: name of the aggregate; null unless by aggregate, and for
        hosts in no aggregate
    :ivar aggregate_id: its UUID; null likewise, or if it was not read
    :ivar flavor: name of the flavor
    :ivar flavor_id: ID of the flavor; null if it was not read
    :ivar fits: number of servers that fit one after the other
    :ivar placement_grants: number of servers that Placement alone would grant
    :ivar hosts_with_capacity: number of hosts that take at least one
    :ivar lost: servers that Placement would grant and hosts do not take, by
        the limits; together "placement_grants" less "fits"
    :ivar fits_after_loss: number of servers that still fit after the loss of
        as many hosts as --survive says; null without it
    :ivar fits_if_empty: number of servers that would fit if the hosts were
        empty; null without --empty
    :ivar quota: number of servers that the quota of the project allows, in
        all of the cloud; null without --project, with --from, or if it could
        not be read
    :ivar error: why Nova takes no server of the flavor, for people; null if
        it does
    :ivar ports: ports that each server is assumed to have
    :ivar uncounted: extra specs that may let fewer servers fit, and could not
        be counted
    :ivar unverified: traits of which it was not read whether Placement knows
        them; if not, Nova takes no server
    :ivar assumed: the ports as ``assumed_ports.Ports``
    """

    host: str | None
    host_id: str | None
    aggregate: str | None
    aggregate_id: str | None
    flavor: str
    flavor_id: str | None
    fits: int
    placement_grants: int
    hosts_with_capacity: int
    lost: tuple[LostCapacity, ...]
    fits_after_loss: int | None
    fits_if_empty: int | None
    quota: QuotaAllowance | None
    error: str | None
    ports: request_document.NewPorts
    uncounted: tuple[str, ...]
    unverified: tuple[placement.Unknown, ...]
    assumed: ty.Any = _internal()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class FlavorFits:
    """The number of servers of each flavor that fit.

    :ivar by: what a row is for
    :ivar hosts_lost: number of hosts lost in "fits_after_loss"; null without
        --survive
    :ivar blazar: hosts that OpenStack Blazar keeps for reservations; null if
        there are none
    :ivar capacities: a row for each flavor and part of the cloud
    """

    by: ty.Literal['cloud', 'aggregate', 'host']
    hosts_lost: int | None
    blazar: BlazarHosts | None
    capacities: tuple[FlavorFit, ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class MixPart:
    """A flavor of a mix.

    :ivar flavor: name of the flavor
    :ivar flavor_id: ID of the flavor; null if it was not read
    :ivar count: number of servers of it in each mix
    :ivar ports: ports that each server is assumed to have
    """

    flavor: str
    flavor_id: str | None
    count: int
    ports: request_document.NewPorts


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class MixFit:
    """The number of times that a mix of servers fits (--mix).

    :ivar mix: the flavors
    :ivar fits: how many times all of the mix fits
    :ivar fits_if_empty: how many times it would if the hosts were empty; null
        without --empty
    :ivar blazar: hosts that OpenStack Blazar keeps for reservations; null if
        there are none
    """

    mix: tuple[MixPart, ...]
    fits: int
    fits_if_empty: int | None
    blazar: BlazarHosts | None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class FreeCPUs:
    """CPUs for pinned servers of a NUMA node.

    :ivar node: number of the NUMA node
    :ivar pcpus: number of CPUs for pinned servers
    :ivar pcpus_free: number of free ones
    """

    node: int
    pcpus: int
    pcpus_free: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class HostLimit:
    """A limit that keeps one more server off a host.

    :ivar kind: kind of the limit, such as "cpus", "cpus_on_nodes", "pages",
        "devices", "policy", "filter", "ports"
    :ivar name: the policy, filter, page size or other name of the limit; null
        if it has none
    :ivar numa_nodes: number of NUMA nodes on which the CPUs of
        "cpus_on_nodes" are needed; null for other kinds
    :ivar allowed_nodes: numbers of the NUMA nodes that policies and networks
        leave to a server; for a policy, those that it leaves; null if they
        leave all
    :ivar alone: whether one more server fits once this limit alone is lifted
    :ivar why: the amount needed and the amount free, for people
    :ivar label: kind and name, for people
    """

    kind: str
    name: str | None
    numa_nodes: int | None
    allowed_nodes: tuple[int, ...] | None
    alone: bool
    why: str
    label: str = _internal()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class LeavingPart:
    """The part of a server on a NUMA node.

    :ivar node: number of the NUMA node of the host
    :ivar pcpus: number of CPUs that are its own
    """

    node: int
    pcpus: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class LeavingServer:
    """The smallest server of a host without which one more fits.

    :ivar server: its name
    :ivar server_id: its UUID
    :ivar vcpus: number of its vCPUs
    :ivar memory_mib: its memory in MiB
    :ivar numa_nodes: NUMA nodes on which it has CPUs of its own
    """

    server: str
    server_id: str
    vcpus: int
    memory_mib: int
    numa_nodes: tuple[LeavingPart, ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class HostFit:
    """The number of servers of the flavor that fit a host.

    :ivar host: name of the host
    :ivar host_id: UUID of its compute node
    :ivar fits: number of servers that fit one after the other
    :ivar placement_grants: number of servers that Placement alone would grant
    :ivar numa_nodes: NUMA nodes with CPUs for pinned servers
    :ivar limits: what keeps the next server off
    :ivar next: the smallest server without which one more fits; null without
        --next, or if no single server would do
    :ivar used_pcpus: number of each NUMA node -> used and all CPUs for pinned
        servers
    """

    host: str
    host_id: str
    fits: int
    placement_grants: int
    numa_nodes: tuple[FreeCPUs, ...]
    limits: tuple[HostLimit, ...]
    next: LeavingServer | None
    used_pcpus: Mapping[int, tuple[int, int]] = _internal()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class HostFits:
    """The number of servers of a flavor that fit each host.

    :ivar flavor: name of the flavor
    :ivar flavor_id: ID of the flavor; null if it was not read
    :ivar error: why Nova takes no server of the flavor, for people; null if
        it does
    :ivar ports: ports that each server is assumed to have
    :ivar uncounted: extra specs that may let fewer servers fit, and could not
        be counted
    :ivar unverified: traits of which it was not read whether Placement knows
        them; if not, Nova takes no server
    :ivar blazar: hosts that OpenStack Blazar keeps for reservations; null if
        there are none
    :ivar hosts: a row for each host
    :ivar assumed: the ports as ``assumed_ports.Ports``
    """

    flavor: str
    flavor_id: str | None
    error: str | None
    ports: request_document.NewPorts
    uncounted: tuple[str, ...]
    unverified: tuple[placement.Unknown, ...]
    blazar: BlazarHosts | None
    hosts: tuple[HostFit, ...]
    assumed: ty.Any = _internal()


class CloudPart(ty.NamedTuple):
    """A part of the cloud that a row is for.

    :ivar by: ``cloud``, ``aggregate`` or ``host``
    :ivar name: its name; None for the whole cloud
    :ivar hosts: names of its hosts
    """

    by: str
    name: str | None
    hosts: Collection[str]


def _where(cloud: snapshot.Cloud, part: CloudPart) -> dict[str, str | None]:
    """Return the keys of a part of the cloud."""
    aggregates = {each.name: each for each in cloud.aggregates} if (
        part.by == 'aggregate') else {}
    aggregate = aggregates.get(part.name or '')
    hosts = {each.name: each.uuid for each in cloud.hosts} if (
        part.by == 'host') else {}
    return {'host': part.name if part.by == 'host' else None,
            'host_id': hosts.get(part.name or ''),
            'aggregate': aggregate.name if aggregate else None,
            'aggregate_id': aggregate.uuid or None if aggregate else None}


def fit(cloud: snapshot.Cloud, counted: 'capacity.FlavorCapacity',
        part: CloudPart, *, survive: int | None = None,
        if_empty: 'capacity.FlavorCapacity | None' = None,
        allowance: QuotaAllowance | None = None) -> FlavorFit:
    """Return the row of a flavor for a part of the cloud.

    :param counted: for all hosts
    :param allowance: what the quota of the project allows; None if not known
    :param survive: number of hosts lost; None if that is of no interest
    :param if_empty: counted for empty hosts; None likewise
    """
    within = counted.within(part.hosts)
    most = sorted((host.fits for host in within.hosts.values()), reverse=True)
    return FlavorFit(
        **_where(cloud, part), flavor=counted.flavor.name,
        flavor_id=counted.flavor.id or None, fits=within.fits,
        placement_grants=within.placement,
        hosts_with_capacity=within.with_room, lost=tuple(_lost(within)),
        fits_after_loss=None if survive is None else sum(most[survive:]),
        fits_if_empty=None if if_empty is None else if_empty.within(
            part.hosts).fits, quota=allowance,
        error=counted.error, ports=request_document.new_ports(counted.ports),
        uncounted=counted.uncounted, unverified=counted.unverified,
        assumed=counted.ports)


def blazar_hosts(cloud: snapshot.Cloud,
                 names: Collection[str]) -> BlazarHosts | None:
    """Return the hosts of Blazar among those named; None if there are none."""
    of_host = blazar.hosts(cloud)
    hosts = tuple([
        BlazarHost(
            host=host.name, host_id=host.uuid, reservations=tuple([
                BlazarReservation(
                    id=each.id, project_id=each.project,
                    kind='host' if each.of_hosts else 'instance')
                for each in of_host[host.name]]))
        for host in cloud.hosts
        if host.name in of_host and host.name in names])
    return BlazarHosts(filter_enabled=blazar.is_filtering(cloud),
                       hosts=hosts) if hosts else None


def _lost(counted: 'capacity.FlavorCapacity') -> Iterator[LostCapacity]:
    """Yield what ``FlavorCapacity.lost`` has, with kinds and names."""
    for cause, servers in counted.lost.items():
        yield LostCapacity(
            limits=tuple([
                LostLimit(kind=kind, name=name, numa_nodes=nodes)
                for kind, name, nodes in map(_kind, cause.limits)]),
            any_one=cause.any_one, servers=servers, label=cause.label)


def _kind(limit: 'binding.Binding') -> tuple[str, str | None, int | None]:
    return limit.kind.name.lower(), limit.name or None, limit.nodes


def host_fits(cloud: snapshot.Cloud, counted: 'capacity.FlavorCapacity',
              leaving: Mapping[str, snapshot.Server] | None = None,
              ) -> HostFits:
    """Return how many servers fit on each host.

    :param leaving: name of the host -> server to leave it
    """
    leaving = leaving or {}
    hosts = {host.name: host for host in cloud.hosts}
    return HostFits(
        flavor=counted.flavor.name, flavor_id=counted.flavor.id or None,
        error=counted.error, ports=request_document.new_ports(counted.ports),
        uncounted=counted.uncounted, unverified=counted.unverified,
        blazar=blazar_hosts(cloud, counted.hosts),
        hosts=tuple([HostFit(
            host=name, host_id=hosts[name].uuid, fits=each.fits,
            placement_grants=each.placement,
            numa_nodes=tuple([FreeCPUs(
                node=node.number, pcpus=len(node.dedicated),
                pcpus_free=len(node.free))
                for node in hosts[name].nodes or () if node.dedicated]),
            limits=tuple([HostLimit(
                kind=kind, name=name, numa_nodes=nodes,
                allowed_nodes=limit.allowed_nodes, alone=limit.alone,
                why=limit.text, label=limit.label) for limit in each.binding
                for kind, name, nodes in [_kind(limit)]]),
            next=_leaving(leaving[name]) if name in leaving else None,
            used_pcpus={
                node.number: (len(node.dedicated) - len(node.free),
                              len(node.dedicated))
                for node in hosts[name].nodes or ()})
            for name, each in counted.hosts.items()]),
        assumed=counted.ports)


def _leaving(server: snapshot.Server) -> LeavingServer:
    return LeavingServer(
        server=server.name, server_id=server.uuid, vcpus=server.flavor.vcpus,
        memory_mib=server.flavor.memory, numa_nodes=tuple([
            LeavingPart(node=node.host_node, pcpus=len(cpus))
            for node in server.nodes or ()
            if (cpus := node.reserved.union(node.pins.values()))]))
