# SPDX-License-Identifier: Apache-2.0
"""Write the captions of hosts, NUMA nodes and servers that all maps share."""

from collections.abc import Iterator

from nfv_sched.ops.hosts import values
from nfv_sched import strings


def of_host(view: values.HostView) -> Iterator[str]:
    """Yield facts about a host, a phrase each."""
    reason = view.host.disabled_reason
    yield f'{view.state} ({reason})' if reason else view.state
    if view.dedicated:
        yield f'{view.used}/{view.dedicated} pCPUs used'
        yield f'largest fit {view.largest_fit}'
    if view.wholeness is not None:
        yield f'{whole(view)} whole'
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
        yield strings.count(view.hidden, 'CPU') + ' not for guests'
    if view.remote:
        yield strings.count(len(view.remote), 'remote guest')


def whole(view: values.HostView) -> str:
    """Return the wholeness of the free CPUs of a host, in percent."""
    return '' if view.wholeness is None else f'{view.wholeness:.0%}'


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


def near(view: values.NodeView) -> list[str]:
    """Return the networks and places near a NUMA node."""
    return [*view.networks, *view.places,
            *(['tunnels'] if view.node.tunneled else [])]


def headline(count: int) -> str:
    """Return the headline of a map of some number of hosts."""
    return f'Host map: {strings.count(count, "host")}'
