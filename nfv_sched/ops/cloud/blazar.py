# SPDX-License-Identifier: Apache-2.0
"""Find the hosts and reservations of OpenStack Blazar.

Blazar itself is not asked.  It moves its hosts between host aggregates of Nova
when a lease starts and ends, and gives each host a resource provider of its
own in Placement.  Future leases cannot be seen there.
"""

from collections.abc import Iterable
import dataclasses
import typing as ty

from oslo_utils import strutils

from nfv_sched.ops.cloud import options as cloud_options
from nfv_sched.ops.cloud import snapshot

#: The filter of the package blazar-nova.
FILTER = 'BlazarFilter'
#: Scheduler hint that names a host reservation.
HINT = 'reservation'
#: Name of the aggregate of hosts without a host reservation, unless
#: ``[blazar:physical:host] aggregate_freepool_name`` says otherwise.
_FREE_POOL = 'freepool'


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class BlazarReservation:
    """A reservation of OpenStack Blazar that has started."""

    id: str  #: its ID
    project_id: str  #: ID of its project
    #: "host" if the whole host is reserved, "instance" if instances on it are
    kind: ty.Literal['host', 'instance']


def reservation(aggregate: snapshot.Aggregate) -> BlazarReservation | None:
    if (owner := aggregate.metadata.get('blazar:owner')) is None:
        return None
    # Only the aggregate of a host reservation has a zone of its own.
    kind = 'host' if 'availability_zone' in aggregate.metadata else 'instance'
    return BlazarReservation(id=aggregate.name, project_id=owner, kind=kind)


def is_filtering(cloud: snapshot.Cloud) -> bool:
    return FILTER in cloud_options.class_names(
        cloud.options, 'enabled_filters')


def hosts(cloud: snapshot.Cloud) -> dict[str, tuple[BlazarReservation, ...]]:
    """Return the present reservations of each host of Blazar, by its name."""
    of_host: dict[str, list[BlazarReservation]] = {
        host.name: [] for host in cloud.hosts if any(
            each.parent is not None
            and each.name == f'blazar_{host.hypervisor}'
            for each in host.providers)}
    for aggregate in cloud.aggregates:
        if (of_aggregate := reservation(aggregate)) is not None:
            for name in aggregate.hosts:
                of_host.setdefault(name, []).append(of_aggregate)
    for aggregate in cloud.aggregates:
        # Without Blazar this name means nothing.
        if aggregate.name == _FREE_POOL and (of_host or is_filtering(cloud)):
            for name in aggregate.hosts:
                of_host.setdefault(name, [])
    return {host.name: tuple(of_host[host.name]) for host in cloud.hosts
            if host.name in of_host}


class BlazarRefusal(ty.NamedTuple):
    text: str  #: for people; empty if it is not known
    #: whether the host is reserved, and the request names no reservation
    is_reserved: bool


def refusal(aggregates: Iterable[snapshot.Aggregate],
            spec: ty.Any) -> BlazarRefusal:
    hint = spec.get_scheduler_hint(HINT) or ()
    if isinstance(hint, str):
        hint = (hint,)
    of_hosts = [each for each in map(reservation, aggregates)
                if each is not None and each.kind == 'host']
    for each in of_hosts:
        if each.id in hint:
            return BlazarRefusal(
                f'reservation {each.id} is for project {each.project_id}',
                False)
    if hint:
        return BlazarRefusal(f'not in reservation {" or ".join(hint)}', False)
    if strutils.bool_from_string(
            spec.flavor.extra_specs.get('blazar:preemptible')):
        # Such servers may be kept to the free pool.
        return BlazarRefusal('', False)
    for each in of_hosts:
        return BlazarRefusal(
            f'reserved by {each.id} for project {each.project_id}', True)
    return BlazarRefusal('in the free pool, for reservations only', True)
