# SPDX-License-Identifier: Apache-2.0
"""Define the documents of ``capacity list`` and ``capacity show``."""

from collections.abc import Collection, Mapping
import dataclasses
import typing as ty

from nfv_sched.ops.cloud import blazar
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.model.counting import document as counting
from nfv_sched.ops.model.requests import assumed_ports
from nfv_sched.ops.simulator import placement

if ty.TYPE_CHECKING:
    from nfv_sched.ops.model.counting import capacity


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class BlazarHost:
    """A host that OpenStack Blazar keeps for reservations."""

    host: str  #: its name
    host_id: str  #: UUID of its compute node
    #: present reservations; empty if it is free for one
    reservations: tuple[blazar.BlazarReservation, ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class BlazarHosts:
    """The hosts that OpenStack Blazar keeps, as aggregates show them."""

    #: whether BlazarFilter is enabled; if not, Nova places any server on these
    #: hosts
    filter_enabled: bool
    hosts: tuple[BlazarHost, ...]  #: those of the hosts that count


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ResourceQuota:
    """The quota of a project for one resource."""

    #: "instances", "cores", "ram" (MiB); with unified limits "servers",
    #: "class:VCPU", "class:PCPU", "class:MEMORY_MB" and so on
    resource: str
    limit: int | None  #: its limit; null if there is none
    used: int  #: amount in use; may be more than the limit
    needed: int  #: amount that one more server of the flavor needs

    @property
    def allows(self) -> int | None:
        """The number of servers that it allows; None if there is no limit."""
        if self.limit is None or not self.needed:
            return None
        return max(self.limit - self.used, 0) // self.needed


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class QuotaAllowance:
    """The number of servers of a flavor that a project's quota allows."""

    allows: int | None  #: number of servers; null if there is no limit
    #: the quota for each resource that a server needs
    resources: tuple[ResourceQuota, ...]

    @property
    def scarce(self) -> tuple[ResourceQuota, ...]:
        """The resources of which the quota allows no more servers."""
        return tuple([each for each in self.resources
                      if each.allows is not None
                      and each.allows == self.allows])


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class FlavorFit:
    """The number of servers of a flavor that fit a part of the cloud."""

    host: str | None  #: name of the host; null unless by host
    host_id: str | None  #: UUID of its compute node; null likewise
    #: name of the aggregate; null unless by aggregate, and for hosts in no
    #: aggregate
    aggregate: str | None
    aggregate_id: str | None  #: its UUID; null likewise, or if it was not read
    flavor: str  #: name of the flavor
    flavor_id: str | None  #: ID of the flavor; null if it was not read
    fits: int  #: number of servers that fit one after the other
    #: number of servers that Placement alone would grant
    placement_grants: int
    hosts_with_capacity: int  #: number of hosts that take at least one
    #: servers that Placement would grant and hosts do not take, by the limits;
    #: together "placement_grants" less "fits"
    lost: tuple[counting.LostCapacity, ...]
    #: number of servers that still fit after the loss of as many hosts as
    #: --survive says; null without it
    fits_after_loss: int | None
    #: number of servers that would fit if the hosts were empty; null without
    #: --empty
    fits_if_empty: int | None
    #: number of servers that the quota of the project allows, in all of the
    #: cloud; null without --project, with --from, or if it could not be read
    quota: QuotaAllowance | None
    #: why Nova takes no server of the flavor, for people; null if it does
    error: str | None
    #: ports that each server is assumed to have
    ports: assumed_ports.NewPorts
    #: extra specs that may let fewer servers fit, and could not be counted
    uncounted: tuple[str, ...]
    #: traits of which it was not read whether Placement knows them; if not,
    #: Nova takes no server
    unverified: tuple[placement.Unknown, ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class FlavorFits:
    """The number of servers of each flavor that fit."""

    by: ty.Literal['cloud', 'aggregate', 'host']  #: what a row is for
    #: number of hosts lost in "fits_after_loss"; null without --survive
    hosts_lost: int | None
    #: hosts that OpenStack Blazar keeps for reservations; null if there are
    #: none
    blazar: BlazarHosts | None
    #: a row for each flavor and part of the cloud
    capacities: tuple[FlavorFit, ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class MixPart:
    """A flavor of a mix."""

    flavor: str  #: name of the flavor
    flavor_id: str | None  #: ID of the flavor; null if it was not read
    count: int  #: number of servers of it in each mix
    #: ports that each server is assumed to have
    ports: assumed_ports.NewPorts


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class MixFit:
    """The number of times that a mix of servers fits (--mix)."""

    mix: tuple[MixPart, ...]  #: the flavors
    fits: int  #: how many times all of the mix fits
    #: how many times it would if the hosts were empty; null without --empty
    fits_if_empty: int | None
    #: hosts that OpenStack Blazar keeps for reservations; null if there are
    #: none
    blazar: BlazarHosts | None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class HostFits:
    """The number of servers of a flavor that fit each host."""

    flavor: str  #: name of the flavor
    flavor_id: str | None  #: ID of the flavor; null if it was not read
    #: why Nova takes no server of the flavor, for people; null if it does
    error: str | None
    #: ports that each server is assumed to have
    ports: assumed_ports.NewPorts
    #: extra specs that may let fewer servers fit, and could not be counted
    uncounted: tuple[str, ...]
    #: traits of which it was not read whether Placement knows them; if not,
    #: Nova takes no server
    unverified: tuple[placement.Unknown, ...]
    #: hosts that OpenStack Blazar keeps for reservations; null if there are
    #: none
    blazar: BlazarHosts | None
    hosts: tuple[counting.HostFit, ...]  #: a row for each host


class CloudPart(ty.NamedTuple):
    hosts: Collection[str]  #: names of its hosts
    host: snapshot.Host | None = None  #: its only one, by host
    #: the aggregate, by aggregate; None also for hosts in no aggregate
    aggregate: snapshot.Aggregate | None = None


def fit(counted: 'capacity.FlavorCapacity', part: CloudPart, *,
        survive: int | None = None,
        if_empty: 'capacity.FlavorCapacity | None' = None,
        allowance: QuotaAllowance | None = None) -> FlavorFit:
    """Return the row of a flavor for a part of the cloud.

    :param allowance: what the quota of the project allows; None if not known
    :param survive: number of hosts lost; None if that is of no interest
    :param if_empty: counted for empty hosts; None likewise
    """
    within = counted.within(part.hosts)
    most = sorted((host.fits for host in within.hosts.values()), reverse=True)
    host, aggregate = part.host, part.aggregate
    return FlavorFit(
        host=host and host.name, host_id=host and host.uuid,
        aggregate=aggregate and aggregate.name,
        aggregate_id=aggregate and aggregate.uuid or None,
        fits=within.fits, placement_grants=within.placement,
        hosts_with_capacity=sum(fits > 0 for fits in most), lost=within.lost,
        fits_after_loss=None if survive is None else sum(most[survive:]),
        fits_if_empty=None if if_empty is None else if_empty.within(
            part.hosts).fits, quota=allowance, **_of_flavor(counted))


def host_fits(cloud: snapshot.Cloud, counted: 'capacity.FlavorCapacity',
              leaving: Mapping[str, snapshot.Server] | None = None,
              ) -> HostFits:
    """Count what fits by host; ``leaving``: host -> server that leaves it."""
    leaving = leaving or {}
    return HostFits(
        blazar=blazar_hosts(cloud, counted.hosts), hosts=tuple([
            dataclasses.replace(each, next=_leaving(leaving[name]))
            if name in leaving else each
            for name, each in counted.hosts.items()]), **_of_flavor(counted))


def _of_flavor(counted: 'capacity.FlavorCapacity') -> dict[str, ty.Any]:
    return {
        'flavor': counted.flavor.name, 'flavor_id': counted.flavor.id or None,
        'error': counted.error, 'uncounted': counted.uncounted,
        'unverified': counted.unverified, 'ports': counted.ports}


def _leaving(server: snapshot.Server) -> counting.LeavingServer:
    return counting.LeavingServer(
        server=server.name, server_id=server.uuid, vcpus=server.flavor.vcpus,
        memory_mib=server.flavor.memory, numa_nodes=tuple([
            counting.LeavingPart(node=node.host_node, pcpus=len(cpus))
            for node in server.nodes or ()
            if (cpus := node.reserved.union(node.pins.values()))]))


def blazar_hosts(cloud: snapshot.Cloud,
                 names: Collection[str]) -> BlazarHosts | None:
    """Return the hosts of Blazar among those named; None if there are none."""
    of_host = blazar.hosts(cloud)
    names = frozenset(names)
    hosts = tuple([
        BlazarHost(host=host.name, host_id=host.uuid,
                   reservations=of_host[host.name])
        for host in cloud.hosts
        if host.name in of_host and host.name in names])
    return BlazarHosts(filter_enabled=blazar.is_filtering(cloud),
                       hosts=hosts) if hosts else None
