# SPDX-License-Identifier: Apache-2.0
"""Describe hosts in words, for tables and maps."""

from collections.abc import Iterable, Iterator, Sequence
import functools
import itertools

from nfv_sched.base import strings
from nfv_sched.ops.answers.hosts import document
from nfv_sched.ops.cli import tables

_MIB = 1024  # KiB
_PARTS = {0: '', 1: '', 2: ' (half)', 3: ' (third)', 4: ' (quarter)'}


def page_size(size: int) -> str:
    """Return a page size in KiB in short form, such as ``2M``."""
    amount, unit = strings.size(size).split()
    return amount + unit[0]


def is_small(size: int) -> bool:
    """Return True for small pages, which count in MiB; ``size`` is in KiB."""
    return size < _MIB


def page_amounts(pages: document.PagesUse) -> tuple[int, ...]:
    """Return used, usable and free pages of a NUMA node; small ones in MiB."""
    numbers = pages.used, pages.total, pages.free
    if is_small(pages.size_kib):
        numbers = tuple([number * pages.size_kib // _MIB
                         for number in numbers])
    return numbers


def page_cell(pages: document.PagesUse) -> str:
    return '{}/{}'.format(*page_amounts(pages))


def state(host: document.HostDetails) -> str:
    reason = host.disabled_reason
    return f'{host.state} ({reason})' if reason else host.state


def limit(use: document.HostLimitUse) -> str:
    return (f'{"?" if use.used is None else use.used}/'
            f'{"unlimited" if use.limit is None else use.limit}')


def small_pages(small: document.SmallPagesUse) -> str:
    text = (f'{small.used_without_nodes_mib} of {small.available_mib} used by '
            f'servers without NUMA topology, {small.used_on_nodes_mib} by '
            f'others; {small.reserved_mib} reserved')
    return text if small.free_mib >= 0 else (
        f'{text}, {min(-small.free_mib, small.reserved_mib)} of it used')


def server_on(server: document.ServerName) -> str:
    return server.label + _PARTS.get(
        server.spans, f' (1 of {server.spans} parts)')


def user(user: document.CPUUser) -> str:
    return f'{user.server} ' + (
        'emulator' if user.vcpu is None else f'vCPU {user.vcpu}')


def cpu(cpu: document.CPUUse) -> str:
    users = ' and '.join(map(user, cpu.users))
    if cpu.state == document.CPUState.CONFLICT:
        return f'conflict: {users}'
    return users or _owner(cpu.state)


def _part(part: document.ServerPart) -> str:
    counts = [f'{part.pinned_vcpus} pinned' if part.pinned_vcpus else '',
              f'{part.shared_vcpus} shared' if part.shared_vcpus else '']
    return f'node {part.node}: {", ".join(filter(None, counts)) or "memory"}'


def server(server: document.ServerOnHost) -> str:
    where = '; '.join(map(_part, server.numa_nodes)) or 'floats over the host'
    text = (f"{server.label}: {strings.count(server.vcpus, 'vCPU')}, "
            f"{server.memory_mib} MiB, {where}")
    if server.state != 'active':
        text += f', {server.state}'
    return text + ''.join(f', {reason}' for reason in server.remote)


def pages(pages: document.PagesUse) -> str:
    text = page_cell(pages).replace('/', ' of ')
    text += ' MiB used' if is_small(pages.size_kib) else ' used'
    if pages.reserved:
        text += f', {pages.reserved} more reserved'
    return text


def devices(group: document.DevicesOfNIC) -> str:
    text = f'{group.kind} {group.name}, {group.used} of {group.total} used'
    if group.servers:
        text += f', used by {", ".join(map(_owner, group.servers))}'
    return text


def _owner(name: str) -> str:
    # As everywhere for people; documents have "unknown guest".
    return 'unknown server' if name == document.CPUState.UNKNOWN else name


def core_lines(cores: Sequence[document.CoreUse]) -> Iterator[str]:
    numbers = [','.join([str(each.cpu) for each in core.cpus])
               for core in cores]
    width = max(map(len, numbers), default=0)
    for text, core in zip(numbers, cores):
        whose = list(map(cpu, core.cpus))
        if len(set(whose)) == 1:
            whose = whose[:1]
        yield f'CPU {text:<{width}}  {", ".join(whose)}'


def host_captions(host: document.HostDetails) -> Iterator[str]:
    yield state(host)
    if host.pcpus:
        yield f'{host.pcpus_used}/{host.pcpus} pCPUs used'
        yield (f'largest fit {fit(host)} possible' if host.pcpus_free
               else 'no free pCPU')
    network = host.network
    ports = network.vswitch_ports
    if ports.used is not None:
        of_limit = '' if ports.limit is None else f'/{ports.limit}'
        yield f'{ports.used}{of_limit} switch ports'
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
    zone, aggregates = host.availability_zone, sorted(host.aggregates)
    networks = [name if physnet is None else f'{name} ({physnet})'
                for name, physnet in host.networks]
    return [(label, names) for label, names in (
        ('availability zone', [zone] if zone else []),
        (_plural('aggregate', aggregates), aggregates),
        (_plural('network', networks), networks)) if names]


def _plural(noun: str, names: Sequence[str]) -> str:
    return noun if len(names) == 1 else f'{noun}s'


def node_caption(node: document.NodeOfHost) -> str:
    if not node.pcpus:
        return 'no pCPUs'
    return f'{node.pcpus_used}/{node.pcpus} pCPUs, fits {node.largest_fit}'


def server_caption(server: document.ServerOnHost) -> str:
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


def page_use(pages: document.PagesUse) -> str:
    return (f'{page_cell(pages)} '
            f'{"MiB" if is_small(pages.size_kib) else "pages"}')


def headline(count: int) -> str:
    return f'Host map: {strings.count(count, "host")}'


def columns(rows: Iterable[document.NodeRow]) -> list[tables.Column]:
    """Return the columns of ``host list``; the page sizes are those of rows.

    Names of hosts are in each row, because --sort-column can separate the
    rows of a host.
    """
    column = tables.Column
    detail = functools.partial(tables.Column, is_detail=True)
    sizes = sorted({each.size_kib for row in rows for each in row.pages})
    return [
        column('Host', 'host'), detail('Host ID', 'host_id'),
        column('Availability zone', 'availability_zone'),
        column('State', 'state'), column('Node', 'node'),
        column('Switch', lambda row: None if row.node is None
               else tables.yes_or_no(row.switch)),
        column('pCPUs used', 'pcpus_used', lambda row: '' if row.pcpus is None
               else f'{row.pcpus_used}/{row.pcpus}'),
        detail('pCPUs total', 'pcpus'), column('Largest fit', 'largest_fit'),
        column('Shared used', 'shared_vcpus', _shared),
        detail('Shared total', 'shared_vcpu_limit'),
        detail('Memory MiB used', 'memory_used_mib'),
        detail('Memory MiB total', 'memory_mib'),
        *itertools.chain.from_iterable(map(_page_columns, sizes)),
        column('VFs used', 'vfs.used', lambda row: '' if row.vfs is None
               else f'{row.vfs.used}/{row.vfs.total}'),
        detail('VFs total', 'vfs.total'), detail('VFs free', 'vfs.free'),
        column('Ports used', 'network.vswitch_ports.used',
               lambda row: limit(row.network.vswitch_ports)),
        detail('Ports limit', 'network.vswitch_ports.limit'),
        detail('Ports free', 'network.vswitch_ports.free'),
        column('Rules used', 'network.security_rules.used',
               lambda row: limit(row.network.security_rules)),
        detail('Rules limit', 'network.security_rules.limit'),
        detail('Rules free', 'network.security_rules.free'),
        detail('DHCP servers', 'network.dhcp_servers'),
        detail('Routers', 'network.routers'),
        detail('Services limit', 'network.services_limit'),
        detail('Limit sources', 'network.sources'),
        detail('Limit notes', 'network.notes'), detail('Networks', 'networks'),
        column('Servers',
               lambda row: ', '.join([each.label for each in row.servers]),
               lambda row: ', '.join(map(server_on, row.servers))),
        detail('Server IDs', lambda row: ', '.join(
            [each.server_id for each in row.servers])),
        detail('Aggregates', 'aggregates')]


def _shared(row: document.NodeRow) -> str:
    if row.shared_vcpu_limit is None:
        return str(row.shared_vcpus)
    return f'{row.shared_vcpus}/{row.shared_vcpu_limit}'


def _page_columns(size: int) -> list[tables.Column]:
    """Return the columns of pages of a size in KiB; small ones in MiB."""
    def amounts(row: document.NodeRow) -> tuple[int | None, ...]:
        if row.small_pages_kib == size:
            return row.memory_used_mib, row.memory_mib, None
        return next((page_amounts(pages) for pages in row.pages
                     if pages.size_kib == size), (None, None, None))

    def text(row: document.NodeRow) -> str:
        used, total, _free = amounts(row)
        return '' if used is None else f'{used}/{total}'

    title = page_size(size) + (' MiB' if is_small(size) else '')
    return [
        tables.Column(f'{title} used', lambda row: amounts(row)[0], text),
        tables.Column(f'{title} total', lambda row: amounts(row)[1],
                      is_detail=True),
        tables.Column(f'{title} free', lambda row: amounts(row)[2],
                      is_detail=True)]
