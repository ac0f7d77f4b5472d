# SPDX-License-Identifier: Apache-2.0
"""Render capacities as rows of tables."""

from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import typing as ty

from nfv_sched.ops.answers.capacity import document
from nfv_sched.ops.cli import tables
from nfv_sched.ops.cloud import snapshot

if ty.TYPE_CHECKING:
    from nfv_sched.ops.model.counting import binding
    from nfv_sched.ops.model.counting import capacity
    from nfv_sched.ops.model.counting import losses

#: Resource of a quota -> its title, if its unit is not in its name.
_RESOURCES = {'ram': 'ram MiB'}
#: Columns of :func:`assumptions`.
ASSUMED_COLUMNS = ('Ports', 'Ports from', 'Not known')
#: Columns of :func:`host_row`.
HOST_COLUMNS = ('Host', 'Fits', 'Placement capacity', 'pCPUs used',
                'Limiting resource', 'Why')


def assumptions(flavor_capacity: 'capacity.FlavorCapacity') -> list[str]:
    """Return the assumptions about servers of a flavor, for programs."""
    return [', '.join(flavor_capacity.ports.kinds),
            flavor_capacity.ports.basis.value,
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


def host_row(host: snapshot.Host, host_capacity: 'capacity.HostCapacity',
             shared: 'Collection[binding.Binding]' = ()) -> list:
    """Return the row of a host, without the limits that all share."""
    bindings = [each for each in host_capacity.binding if each not in shared]
    return [host.name, host_capacity.fits, host_capacity.placement,
            _used(host), _bound(bindings), _why(host_capacity.fits, bindings)]


def shared_limits(
    hosts: 'Collection[capacity.HostCapacity]',
) -> 'tuple[binding.Binding, ...]':
    """Return the limits that all of several hosts have, at one moment."""
    if len(hosts) < 2 or len({each.fits for each in hosts}) > 1:
        return ()
    return tuple([each for each in next(iter(hosts)).binding
                  if all(each in host.binding for host in hosts)])


def shared_sentence(hosts: 'Collection[capacity.HostCapacity]',
                    shared: 'Collection[binding.Binding]') -> str:
    """Return what stands once above a table instead of in all its rows."""
    return (f'On all {len(hosts)} hosts: '
            f'{_why(next(iter(hosts)).fits, shared)}.')


def _why(fits: int, bindings: 'Iterable[binding.Binding]') -> str:
    why = '; '.join(each.text for each in bindings)
    # The columns before it are of the host as it is.
    return f'after {fits} more: {why}' if why and fits else why


def fit_records(
    by: str, fits: Sequence[document.FlavorFit],
    parts: 'Sequence[capacity.FlavorCapacity]', *, has_quota: bool,
    survive: int | None, empty: bool,
) -> tuple[list[str], list[list]]:
    """Return columns and rows of flavors for programs.

    :param parts: what each row is of
    """
    lost = [{cause.label: servers for cause, servers in part.lost.items()}
            for part in parts]
    causes = list(dict.fromkeys(label for each in lost for label in each))
    quota_columns, quotas = _quota_records(fits) if has_quota else (
        [], [[] for _fit in fits])
    columns = [
        *_part_columns(by), 'Flavor', 'Flavor ID', 'Fits', *quota_columns,
        'Placement capacity', 'Hosts with capacity', 'Error',
        *(f'Lost to {label}' for label in causes),
        *([] if survive is None else [f'After losing {survive}']),
        *(['If empty'] if empty else []), *ASSUMED_COLUMNS]
    return columns, [[
        *_part_names(by, fit), fit.flavor, fit.flavor_id, fit.fits, *quota,
        fit.placement_grants, fit.hosts_with_capacity, fit.error,
        *(of_label.get(label, 0) for label in causes),
        *([] if survive is None else [fit.fits_after_loss]),
        *([fit.fits_if_empty] if empty else []), *assumptions(part)]
        for fit, part, of_label, quota in zip(fits, parts, lost, quotas)]


def _part_columns(by: str) -> list[str]:
    """Return the columns that name the part of the cloud of a row."""
    title = by.capitalize()
    return [] if by == 'cloud' else [title, f'{title} ID']


def _part_names(by: str, row: document.FlavorFit) -> list[str | None]:
    return {'cloud': [], 'aggregate': [row.aggregate, row.aggregate_id],
            'host': [row.host, row.host_id]}[by]


def _quota_records(
    rows: Sequence[document.FlavorFit],
) -> tuple[list[str], list[list[int | None]]]:
    """Return columns and values of the quota of a project."""
    uses = [{use.resource: use for use in row.quota.resources}
            if row.quota is not None else {} for row in rows]
    resources = list(dict.fromkeys(name for each in uses for name in each))
    columns = ['Quota allows', *(
        f'Quota {_RESOURCES.get(name, name)} {text}' for name in resources
        for text in ('used', 'limit', 'needed'))]
    return columns, [[
        None if row.quota is None else row.quota.allows, *(
            number for name in resources for number in (
                (each[name].used, each[name].limit, each[name].needed)
                if name in each else (None, None, None)))]
        for row, each in zip(rows, uses)]


def host_records(
    hosts: Sequence[snapshot.Host],
    flavor_capacity: 'capacity.FlavorCapacity',
    leaving: Mapping[str, snapshot.Server] | None,
) -> tuple[list[str], list[list]]:
    """Return columns and rows of hosts for programs.

    :param hosts: those of the capacity
    :param leaving: name of the host -> server to leave it; None without
        --next
    """
    nodes = sorted({node.number for host in hosts for node in host.nodes or ()
                    if node.dedicated})
    columns = [
        'Host', 'Host ID', *HOST_COLUMNS[1:3], 'pCPUs used', 'pCPUs total',
        *(f'Node {node} pCPUs {text}' for node in nodes
          for text in ('used', 'total')), *HOST_COLUMNS[4:],
        *([] if leaving is None else [
            'Next', 'Next ID', 'Next vCPUs', 'Next memory MiB']),
        *ASSUMED_COLUMNS]
    rows = []
    for host in hosts:
        name, fits, grants, _cpus, *limits = host_row(
            host, flavor_capacity.hosts[host.name])
        of_node = {
            node.number: (len(node.dedicated) - len(node.free),
                          len(node.dedicated)) for node in host.nodes or ()}
        server = (leaving or {}).get(name)
        rows.append([
            name, host.uuid, fits, grants, *map(sum, zip(
                (0, 0), *of_node.values())),
            *(number for node in nodes
              for number in of_node.get(node, (None, None))), *limits,
            *([] if leaving is None else [None] * 4 if server is None else [
                server.name, server.uuid, server.flavor.vcpus,
                server.flavor.memory]),
            *assumptions(flavor_capacity)])
    return columns, rows


def _lost(servers: 'Mapping[losses.Cause, int]') -> tables.Lines | str:
    """Describe lost servers by cause, a line for each."""
    return tables.Lines([
        f'{cause.label}: {count}' for cause, count in servers.items()]) if (
            servers) else ''


def _bound(bindings: 'Sequence[binding.Binding]') -> str:
    """Return the limits of a host, without the figures."""
    labels = list(dict.fromkeys(each.label for each in bindings))
    if len(labels) > 1 and not bindings[0].alone:
        return ' and '.join(labels)
    return ', '.join(labels)


def _used(host: snapshot.Host) -> str:
    """Return used and all CPUs for pinned servers of each NUMA node."""
    return ', '.join(
        f'{len(node.dedicated) - len(node.free)}/{len(node.dedicated)}'
        for node in host.nodes or () if node.dedicated)
