# SPDX-License-Identifier: Apache-2.0
"""Write the captions of hosts, NUMA nodes and servers that all maps share."""

from collections.abc import Iterator
from collections.abc import Sequence

from nfv_sched.base import strings
from nfv_sched.ops.answers.hosts import rendering
from nfv_sched.ops.answers.hosts import values
from nfv_sched.ops.cloud import snapshot


def of_host(view: values.HostView) -> Iterator[str]:
    """Yield facts about a host, a phrase each."""
    reason = view.host.disabled_reason
    yield f'{view.state} ({reason})' if reason else view.state
    if view.dedicated:
        yield f'{view.used}/{view.dedicated} pCPUs used'
        yield (f'largest fit {fit(view)} possible' if view.free
               else 'no free pCPU')
    ports = view.limits.ports
    if ports.used is not None:
        limit = '' if ports.limit is None else f'/{ports.limit}'
        yield f'{ports.used}{limit} switch ports'
    small = view.small_pages
    if small is not None and small.floating:
        yield (f'{small.floating}/{small.available} MiB of small pages used '
               'without NUMA topology')
    network = view.host.network
    if network is not None:
        for number, what in ((network.dhcp_servers, 'DHCP server'),
                             (network.routers, 'router')):
            if number:
                yield strings.count(number, what)
    if view.hidden:
        yield strings.count(view.hidden, 'CPU') + ' not for servers'
    if view.remote:
        yield strings.count(len(view.remote), 'remote server')


def fit(view: values.HostView) -> str:
    """Return the largest fit on a host, and what is possible.

    The same number of free CPUs would make the latter possible if they were
    on one NUMA node.
    """
    if not view.dedicated:
        return ''
    if not view.free:
        return 'full'
    return f'{view.largest_fit} of {view.possible_fit}'


def groups(view: values.HostView) -> list[tuple[str, list[str]]]:
    """Return what a host belongs to: labels, and the names for each."""
    aggregates = sorted(view.host.aggregates)
    networks = [
        network.name if network.physnet is None
        else f'{network.name} ({network.physnet})'
        for network in view.networks]
    return [(label, names) for label, names in (
        ('availability zone', [view.host.zone] if view.host.zone else []),
        (_plural('aggregate', aggregates), aggregates),
        (_plural('network', networks), networks)) if names]


def _plural(noun: str, names: Sequence[str]) -> str:
    """Return a noun for names, in the plural if there are several."""
    return noun if len(names) == 1 else f'{noun}s'


def of_groups(view: values.HostView) -> list[str]:
    """Describe what a host belongs to, a phrase for each kind of group."""
    return [f'{label}: {", ".join(names)}' for label, names in groups(view)]


def of_node(view: values.NodeView) -> str:
    """Describe the usage of a NUMA node, and what fits."""
    total = len(view.node.dedicated)
    if not total:
        return 'no pCPUs'
    return f'{view.used}/{total} pCPUs, fits {view.largest_fit}'


def of_guest(guest: values.GuestView) -> str:
    """Describe size and NUMA nodes of a server."""
    size = strings.count(guest.vcpus, 'vCPU')
    if guest.state != 'active':
        size += f', {guest.state}'
    if not guest.parts:
        return f'{size}, floating'
    nodes = ', '.join(str(part.node) for part in guest.parts)
    return f'{size}, node{"s" * (len(guest.parts) > 1)} {nodes}'


def near(view: values.NodeView) -> str:
    """Describe the physical networks and places near a NUMA node."""
    phrases = [f'{_plural(noun, names)} {", ".join(names)}'
               for noun, names in (('physnet', view.networks),
                                   ('place', view.places)) if names]
    if view.node.tunneled:
        phrases.append('tunnels')
    return '; '.join(phrases)


def pages(pages: snapshot.Pages) -> str:
    """Return used and usable pages of a NUMA node, with their unit."""
    return (f'{rendering.page_cell(pages)} '
            f'{"MiB" if rendering.is_small(pages.size) else "pages"}')


def headline(count: int) -> str:
    """Return the headline of a map of some number of hosts."""
    return f'Host map: {strings.count(count, "host")}'
