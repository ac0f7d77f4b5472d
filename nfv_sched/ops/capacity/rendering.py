# SPDX-License-Identifier: Apache-2.0
"""Render capacities as rows of tables."""

from collections.abc import Mapping
from collections.abc import Sequence
import typing as ty

from nfv_sched.ops.cli import tables
from nfv_sched.ops.snapshot import snapshot

if ty.TYPE_CHECKING:
    from nfv_sched.ops.counting import capacity
    from nfv_sched.ops.counting import losses

#: Columns of :func:`assumptions`.
ASSUMED_COLUMNS = ('Ports', 'Ports from', 'Not known')
#: Columns of :func:`host_row`.
HOST_COLUMNS = ('Host', 'Fits', 'Placement capacity', 'pCPUs used',
                'Limiting resource', 'Why')


def assumptions(flavor_capacity: 'capacity.FlavorCapacity') -> list[str]:
    """Return the assumptions about servers of a flavor."""
    return [flavor_capacity.ports.label, flavor_capacity.ports.basis.value,
            ', '.join(not_known(flavor_capacity))]


def not_known(flavor_capacity: 'capacity.FlavorCapacity') -> list[str]:
    """Return facts that are not known and may let fewer servers fit."""
    return [*flavor_capacity.uncounted, *map(str, flavor_capacity.unverified)]


def flavor_row(flavor_capacity: 'capacity.FlavorCapacity',
               quota: Sequence[ty.Any] = ()) -> list:
    """Return the row of a flavor, with values of columns for a quota."""
    return [flavor_capacity.flavor.name, flavor_capacity.fits, *quota,
            flavor_capacity.placement, flavor_capacity.with_room,
            flavor_capacity.error or _lost(flavor_capacity.lost)]


def host_row(host: snapshot.Host,
             host_capacity: 'capacity.HostCapacity') -> list:
    """Return the row of a host in the capacity for one flavor."""
    return [host.name, host_capacity.fits, host_capacity.placement,
            _used(host), _bound(host_capacity), '; '.join(
                binding.text for binding in host_capacity.binding)]


def _lost(servers: 'Mapping[losses.Cause, int]') -> tables.Lines | str:
    """Describe lost servers by cause, a line for each."""
    return tables.Lines([
        f'{cause.label}: {count}' for cause, count in servers.items()]) if (
            servers) else ''


def _bound(host_capacity: 'capacity.HostCapacity') -> str:
    """Return the limits of a host, without the figures."""
    binding = host_capacity.binding
    labels = list(dict.fromkeys(each.label for each in binding))
    if binding and not binding[0].alone and len(labels) > 1:
        return ' and '.join(labels)
    return ', '.join(labels)


def _used(host: snapshot.Host) -> str:
    """Return used and all CPUs for pinned servers of each NUMA node."""
    return ', '.join(
        f'{len(node.dedicated) - len(node.free)}/{len(node.dedicated)}'
        for node in host.nodes or () if node.dedicated)
