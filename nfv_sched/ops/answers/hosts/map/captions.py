# SPDX-License-Identifier: Apache-2.0
"""Write the captions of hosts, NUMA nodes and servers that all maps share."""

from collections.abc import Iterator
from collections.abc import Sequence

from nfv_sched.base import strings
from nfv_sched.ops.answers.hosts import document
from nfv_sched.ops.answers.hosts import rendering


def of_host(host: document.HostDetails) -> Iterator[str]:
    yield rendering.state(host)
    if host.pcpus:
        yield f'{host.pcpus_used}/{host.pcpus} pCPUs used'
        yield (f'largest fit {fit(host)} possible' if host.pcpus_free
               else 'no free pCPU')
    network = host.network
    ports = network.vswitch_ports
    if ports.used is not None:
        limit = '' if ports.limit is None else f'/{ports.limit}'
        yield f'{ports.used}{limit} switch ports'
    small = host.small_pages
    if small is not None and small.used_without_nodes_mib:
        yield (f'{small.used_without_nodes_mib}/{small.available_mib} MiB of '
               'small pages used without NUMA topology')
    for number, what in ((network.dhcp_servers, 'DHCP server'),
                         (network.routers, 'router')):
        if number:
            yield strings.count(number, what)
    if host.cpus_not_for_servers:
        yield (strings.count(host.cpus_not_for_servers, 'CPU')
               + ' not for servers')
    if host.remote:
        yield strings.count(len(host.remote), 'remote server')


def fit(host: document.HostDetails) -> str:
    """Return the largest fit on a host, and what is possible.

    The same number of free CPUs would make the latter possible if they were
    on one NUMA node.
    """
    if not host.pcpus:
        return ''
    if not host.pcpus_free:
        return 'full'
    return f'{host.largest_fit} of {host.possible_fit}'


def part_used(host: document.HostDetails) -> str:
    return f'{min(host.pcpus_used / max(host.pcpus, 1), 1):.2f}'


def networks_near(host: document.HostDetails) -> list[str]:
    return sorted({name for node in host.numa_nodes for name in node.networks})


def groups(host: document.HostDetails) -> list[tuple[str, list[str]]]:
    """Return what a host belongs to: labels, and the names for each."""
    zone, aggregates = host.availability_zone, sorted(host.aggregates)
    networks = [name if physnet is None else f'{name} ({physnet})'
                for name, physnet in host.networks]
    return [(label, names) for label, names in (
        ('availability zone', [zone] if zone else []),
        (_plural('aggregate', aggregates), aggregates),
        (_plural('network', networks), networks)) if names]


def _plural(noun: str, names: Sequence[str]) -> str:
    return noun if len(names) == 1 else f'{noun}s'


def of_node(node: document.NodeOfHost) -> str:
    if not node.pcpus:
        return 'no pCPUs'
    return f'{node.pcpus_used}/{node.pcpus} pCPUs, fits {node.largest_fit}'


def of_server(server: document.ServerOnHost) -> str:
    size = strings.count(server.vcpus, 'vCPU')
    if server.state != 'active':
        size += f', {server.state}'
    if not server.numa_nodes:
        return f'{size}, floating'
    nodes = ', '.join([str(part.node) for part in server.numa_nodes])
    return f'{size}, node{"s" * (len(server.numa_nodes) > 1)} {nodes}'


def near(node: document.NodeOfHost) -> str:
    phrases = [f'{_plural(noun, names)} {", ".join(names)}'
               for noun, names in (('physnet', node.networks),
                                   ('place', node.places)) if names]
    if node.tunnel_endpoint:
        phrases.append('tunnels')
    return '; '.join(phrases)


def pages(pages: document.PagesUse) -> str:
    return (f'{rendering.page_cell(pages)} '
            f'{"MiB" if rendering.is_small(pages.size_kib) else "pages"}')


def headline(count: int) -> str:
    return f'Host map: {strings.count(count, "host")}'
