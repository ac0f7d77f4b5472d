# SPDX-License-Identifier: Apache-2.0
"""Define the columns of capacities."""

from collections.abc import Collection, Iterable, Sequence
import functools
import json

from nfv_sched.base import strings
from nfv_sched.ops.answers.capacity import document
from nfv_sched.ops.cli import tables
from nfv_sched.ops.model.counting import document as counting

#: Resource of a quota -> its title, if its unit is not in its name.
_RESOURCES = {'ram': 'ram MiB'}

_column = tables.Column
_detail = functools.partial(tables.Column, is_detail=True)


def not_known(fits: document.FlavorFit | document.HostFits) -> list[str]:
    """Return facts that are not known and may let fewer servers fit."""
    return [*fits.uncounted, *map(str, fits.unverified)]


def fit_columns(fits: Sequence[document.FlavorFit], *, by: str = 'cloud',
                has_quota: bool = False, survive: int | None = None,
                empty: bool = False) -> list[tables.Column]:
    """Return the columns of flavors.

    :param by: ``cloud``, ``aggregate`` or ``host``
    :param survive: number of hosts lost; None for no column
    """
    title = by.capitalize()
    labels = dict.fromkeys(lost.label for fit in fits for lost in fit.lost)
    return [
        *([] if by == 'cloud' else [
            _column(title, by, lambda fit: getattr(fit, by) or '(none)'),
            _detail(f'{title} ID', f'{by}_id')]),
        _column('Flavor', 'flavor'), _detail('Flavor ID', 'flavor_id'),
        _column('Fits', 'fits'),
        *(_quota_columns(fits) if has_quota else ()),
        _column('Placement capacity', 'placement_grants'),
        _column('Hosts with capacity', 'hosts_with_capacity'),
        _detail('Error', 'error'),
        _column('Lost capacity by cause', lambda fit: json.dumps(
            {lost.label: lost.servers for lost in fit.lost}), _lost_text),
        *(_detail(f'Lost to {label}', lambda fit, label=label: {
            lost.label: lost.servers for lost in fit.lost}.get(label, 0))
          for label in labels),
        *([] if survive is None else [
            _column(f'After losing {survive}', 'fits_after_loss')]),
        *([_column('If empty', 'fits_if_empty')] if empty else []),
        _column('Ports', 'ports.listed', lambda fit: fit.ports.label),
        _detail('Ports from', 'ports.basis'),
        _detail('Not known', lambda fit: ', '.join(not_known(fit)))]


def _lost_text(fit: document.FlavorFit) -> tables.Lines | str:
    if fit.error is not None:
        return fit.error
    return tables.Lines([f'{lost.label}: {lost.servers}'
                         for lost in fit.lost]) if fit.lost else ''


def _quota_columns(fits: Sequence[document.FlavorFit]) -> list[tables.Column]:
    resources = dict.fromkeys(
        use.resource for fit in fits if fit.quota is not None
        for use in fit.quota.resources)
    return [
        _column('Quota allows', 'quota.allows', _allowed),
        _column('Quota used', None, lambda fit: fit.quota and ', '.join([
            f'{use.resource} {use.used}/{use.limit}'
            for use in fit.quota.scarce])), *(
            _detail(f'Quota {_RESOURCES.get(name, name)} {text}',
                    functools.partial(_quota, name, text))
            for name in resources for text in ('used', 'limit', 'needed'))]


def _allowed(fit: document.FlavorFit) -> int | str | None:
    if fit.quota is None:
        return None
    return 'unlimited' if fit.quota.allows is None else fit.quota.allows


def _quota(resource: str, field: str, fit: document.FlavorFit) -> int | None:
    return next((getattr(use, field) for use in (
        fit.quota.resources if fit.quota is not None else ())
        if use.resource == resource), None)


def shared_limits(
    hosts: Sequence[counting.HostFit],
) -> tuple[counting.HostLimit, ...]:
    if len(hosts) < 2 or len({each.fits for each in hosts}) > 1:
        return ()
    return tuple([each for each in hosts[0].limits
                  if all(each in host.limits for host in hosts)])


def shared_sentence(hosts: Sequence[counting.HostFit],
                    shared: Iterable[counting.HostLimit]) -> str:
    """Return what stands once above a table instead of in all its rows."""
    return f'On all {len(hosts)} hosts: {_why(hosts[0].fits, shared)}.'


def host_columns(
    fits: document.HostFits, *, leaving: bool = False,
    shared: Collection[counting.HostLimit] = (),
) -> list[tables.Column]:
    """Return the columns of hosts; people do not see the shared limits."""
    def own(host: counting.HostFit) -> list[counting.HostLimit]:
        return [each for each in host.limits if each not in shared]

    is_detail = bool(shared) and not any(
        each.why for host in fits.hosts for each in own(host))
    nodes = sorted({node.node for host in fits.hosts
                    for node in host.numa_nodes})
    return [
        _column('Host', 'host'), _detail('Host ID', 'host_id'),
        _column('Fits', 'fits'),
        _column('Placement capacity', 'placement_grants'),
        _column('pCPUs used', functools.partial(_pcpus, 0), _used_text),
        _detail('pCPUs total', functools.partial(_pcpus, 1)),
        *(_detail(f'Node {node} pCPUs {text}',
                  functools.partial(_node_pcpus, node, position))
          for node in nodes for position, text in enumerate(
              ('used', 'total'))),
        _column('Limiting resource', lambda host: _bound(host.limits),
                lambda host: _bound(own(host)), is_detail),
        _column('Why', lambda host: _why(host.fits, host.limits),
                lambda host: _why(host.fits, own(host)), is_detail),
        *([_column('Next', 'next.server', _held),
           _detail('Next ID', 'next.server_id'),
           _detail('Next vCPUs', 'next.vcpus'),
           _detail('Next memory MiB', 'next.memory_mib')] if leaving else ()),
        _detail('Ports', lambda host: fits.ports.listed),
        _detail('Ports from', lambda host: fits.ports.basis),
        _detail('Not known', lambda host: ', '.join(not_known(fits)))]


def _pcpus(position: int, host: counting.HostFit) -> int:
    return sum(pair[position] for pair in host.used_pcpus.values())


def _node_pcpus(node: int, position: int,
                host: counting.HostFit) -> int | None:
    return host.used_pcpus.get(node, (None, None))[position]


def _used_text(host: counting.HostFit) -> str:
    return ', '.join(f'{used}/{total}'
                     for used, total in host.used_pcpus.values() if total)


def _bound(limits: Sequence[counting.HostLimit]) -> str:
    separator = ' and ' if limits and not limits[0].alone else ', '
    return separator.join(dict.fromkeys(each.label for each in limits))


def _why(fits: int, limits: Iterable[counting.HostLimit]) -> str:
    why = '; '.join(each.why for each in limits)
    # The columns before it are of the host as it is.
    return f'after {fits} more: {why}' if why and fits else why


def _held(host: counting.HostFit) -> str:
    if (server := host.next) is None:
        return ''
    parts = [f'{strings.count(part.pcpus, "pCPU")} on node {part.node}'
             for part in server.numa_nodes]
    return f'{server.server}: ' + (
        ' + '.join(parts) or f'{strings.count(server.vcpus, "vCPU")}, '
        f'{server.memory_mib} MiB')
