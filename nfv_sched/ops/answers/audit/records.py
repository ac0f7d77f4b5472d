# SPDX-License-Identifier: Apache-2.0
"""Compare the record of a host with those of the servers on it.

The usage that Nova's ``numa_usage_from_instance_numa`` would record for the
servers is computed and compared with the usage that the host reports; and
vCPUs and memory that are not confined as they should be are found.
"""

from nfv_sched.base import cpu_spec
from nfv_sched.base import strings
from nfv_sched.fit import occupancy
from nfv_sched.ops.answers.audit import hosts
from nfv_sched.ops.answers.audit import values
from nfv_sched.ops.answers.hosts import view
from nfv_sched.ops.cloud import occupied
from nfv_sched.ops.cloud import snapshot

_PAGE_SIZE = 'hw:mem_page_size'

#: Servers, each with one of its NUMA nodes.
_Parts = list[tuple[snapshot.Server, snapshot.GuestNode]]


def mapping(site: hosts.Site) -> hosts.Findings:
    if not site.host.mapped:
        yield site.finding(
            values.UNMAPPED, 'no host mapping in the API database: servers '
            'that the scheduler puts there end in ERROR',
            commands=(('nova-manage', 'cell_v2', 'discover_hosts'),))


def overuse(site: hosts.Site) -> hosts.Findings:
    host = site.host
    cpu, ram = (max(view.ratio(site.whole.cloud, host, of), 1.0)
                for of in ('cpu', 'ram'))
    amounts = []
    for node in host.nodes or ():
        small = min((pages.size for pages in node.pages), default=0)
        where = f'node {node.number}'
        amounts += [
            (where, 'MiB', node.memory_used, node.memory, ram),
            (where, 'shared vCPUs', node.shared_used, len(node.shared), cpu),
            *((where, f'pages of {pages.size} KiB', pages.used, pages.usable,
               ram if pages.size == small else 1.0) for pages in node.pages)]
    amounts.append(('host', 'MiB', host.memory_used, host.memory, ram))
    for where, noun, used, total, ratio in amounts:
        if used > int(total * ratio):
            yield site.finding(
                values.OVERUSED, f'{where}: {used} {noun} used, '
                f'{view.limit_text(total, ratio)} may be used')


def moves(site: hosts.Site) -> hosts.Findings:
    """Find migrations that Nova counts as unfinished but does not continue."""
    for move in site.moves:
        if move.source != site.host.name or move.kind == snapshot.EVACUATION:
            continue
        if (server := site.whole.servers.get(move.server)) is None:
            who = f'of {hosts.describe_other(move.server, None)}'
        elif server.task is None and server.state != snapshot.RESIZED:
            who = 'of a server that is not being moved'
        else:
            continue
        yield site.finding(
            values.STALE_MOVE,
            f'{move.kind} to {move.target or "an unknown host"} is '
            f'{move.status} since {move.updated or "an unknown time"}, {who}',
            server, since=move.updated)


def check(site: hosts.Site) -> hosts.Findings:
    """Find contradictions between the NUMA usage of host and servers."""
    by_node: dict[int, _Parts] = {}
    for server, part in site.certain:
        by_node.setdefault(part.host_node, []).append((server, part))
    for node in site.host.nodes or ():
        here = by_node.pop(node.number, [])
        yield from _find_misplaced(site, node, here)
        yield from _find_missing(site, node, here)
        if not site.guessed:
            yield from _find_unknown(site, node, [
                *(part for _server, part in here),
                *(part for part in site.possible
                  if part.host_node == node.number)])
    for number, here in by_node.items():
        for server in {server.uuid: server for server, _part in here}.values():
            yield site.finding(
                values.NOT_IN_RECORD,
                f'on node {number}, which the host does not report', server)


def _find_misplaced(site: hosts.Site, node: snapshot.Node,
                    here: _Parts) -> hosts.Findings:
    """Find CPUs used by several servers, or not dedicated to pinned ones."""
    owners: dict[int, list[snapshot.Server]] = {}
    for server, part in here:
        for cpu in [*part.pins.values(), *part.reserved]:
            owners.setdefault(cpu, []).append(server)
        if beyond := occupied.exclusive_cpus(part) - node.dedicated:
            yield site.finding(
                values.NOT_DEDICATED,
                f'node {node.number}: CPU {cpu_spec.to_text(beyond)} is not '
                'for pinned servers there', server)
    groups: dict[tuple[str, ...], list[int]] = {}
    for cpu, servers in owners.items():
        if len(servers) > 1:
            groups.setdefault(tuple(
                server.uuid for server in servers), []).append(cpu)
    for uuids, cpus in groups.items():
        servers = [site.whole.servers[uuid] for uuid in uuids]
        other_names = dict.fromkeys(
            each.name or each.uuid for each in servers[1:])
        yield site.finding(
            values.PINNED_TWICE,
            f'node {node.number}: CPU {cpu_spec.to_text(cpus)} is also that '
            f'of {", ".join(other_names)}', servers[0],
            max(map(hosts.settled, servers)))


def _find_missing(site: hosts.Site, node: snapshot.Node,
                  here: _Parts) -> hosts.Findings:
    """Find resources that servers use but the host records as free."""
    shares = occupied.shares([node], [part for _server, part in here])
    lacking: dict[str, set[int]] = {}
    for (server, part), share in zip(here, shares):
        if cpus := share.cpus & occupied.exclusive_cpus(part) & node.free:
            lacking.setdefault(server.uuid, set()).update(cpus)
    rest = _excess(node, occupancy.total(shares), -1)
    for number, (uuid, cpus) in enumerate(lacking.items()):
        phrases = [f'CPU {cpu_spec.to_text(cpus)}', *([] if number else rest)]
        yield site.finding(
            values.NOT_IN_RECORD, f'node {node.number}: {", ".join(phrases)} '
            'of the server free in the record of the host',
            site.whole.servers[uuid])
    if rest and not lacking:
        yield site.finding(
            values.NOT_IN_RECORD, f'node {node.number}: {", ".join(rest)} of '
            'its servers free in its record')


def _find_unknown(site: hosts.Site, node: snapshot.Node,
                  parts: list[snapshot.GuestNode]) -> hosts.Findings:
    usage = occupancy.total(occupied.shares([node], parts))
    cpus = node.pinned - usage.cpus
    phrases = [f'CPU {cpu_spec.to_text(cpus)}'] if cpus else []
    phrases += _excess(node, usage, 1)
    if phrases:
        kind, who = values.UNKNOWN_GUEST, 'though no server has it'
        if not site.host.up:
            kind, who = values.LEFT_BEHIND, (
                'by servers that were evacuated or deleted while it was down')
        yield site.finding(
            kind, f'node {node.number}: {", ".join(phrases)} taken in its '
            f'record, {who}')


def _excess(node: snapshot.Node, usage: occupancy.Usage,
            sign: int) -> list[str]:
    """Name what a record has more (sign 1) or less (-1) than servers use."""
    memory = sign * (node.memory_used - usage.memory)
    shared = sign * (node.shared_used - usage.shared)
    phrases = [f'{memory} MiB'] if memory > 0 else []
    if shared > 0:
        phrases.append(f'{shared} shared vCPUs')
    # Where only small pages differ, the memory has said it already.
    smallest = min((pages.size for pages in node.pages), default=0)
    for pages in node.pages:
        count = sign * (pages.used - usage.pages.get(pages.size, 0))
        if count > 0 and not (pages.size == smallest and memory > 0):
            phrases.append(f'{count} pages of {strings.size(pages.size)}')
    return phrases


def floating(site: hosts.Site) -> hosts.Findings:
    """Find servers whose vCPUs float over CPUs that others are pinned to.

    With ``cpu_shared_set`` floating vCPUs have CPUs of their own and do no
    harm.  They do where shared and pinned servers use the same CPUs
    (``vcpu_pin_set``), and on a host without shared CPUs.
    """
    nodes = site.host.nodes or ()
    pinned: dict[int, set[str]] = {}
    for server, part in site.certain:
        if occupied.exclusive_cpus(part):
            pinned.setdefault(part.host_node, set()).add(server.uuid)
    if not pinned:
        return
    apart = any(node.shared for node in nodes)
    hurt = {node.number for node in nodes if node.number in pinned and (
        not apart or node.shared & node.dedicated)}
    for server in site.steady:
        where = hurt
        if server.nodes is not None:
            where = hurt & {part.host_node for part in server.nodes
                            if part.shared}
        shown = sorted(number for number in where
                       if pinned[number] != {server.uuid})
        if shown:
            yield site.finding(
                values.FLOATING, 'floats over the CPUs that servers are '
                f'pinned to, on node {", ".join(map(str, shown))}', server)


def reserve(site: hosts.Site) -> hosts.Findings:
    """Yield a finding if floating servers use memory of the platform.

    Placement counts huge pages as memory for them, too.  With an allocation
    ratio above 1 they may use that many times the small pages.
    """
    small = view.small_pages(site.host, site.servers, view.ratio(
        site.whole.cloud, site.host, 'ram'))
    if small is None or not site.host.providers:
        return  # the reserved memory is not known
    if overuse := view.overuse(small):
        yield site.finding(values.RESERVE, overuse)


def networks(site: hosts.Site) -> hosts.Findings:
    """Find more than the carrier-grade guide allows, where DHCP is served."""
    cloud, by_host = site.whole.cloud, site.whole.served
    if not (served := by_host.get(site.host.name)):
        return
    subnets = {each.id: each.subnets for each in cloud.network_services}
    first = next(each for each in cloud.hosts if each.name in by_host)
    for where, ids, most in (('here', served, 250), (
            'in all', subnets if first is site.host else (), 850)):
        if (count := sum(subnets.get(uuid, 0) for uuid in ids)) > most:
            yield site.finding(
                values.SUBNETS, f'{count} subnets {where}, more than {most}')
    for uuid in served:
        if (ports := site.whole.ports[uuid]) > 1024:
            yield site.finding(values.ADDRESSES, f'{ports} ports of servers '
                               f'in network {uuid}, more than 1024')


def pages(site: hosts.Site) -> hosts.Findings:
    """Find servers with ``hw:mem_page_size`` but no memory in pages."""
    for server in site.steady:
        page_size = server.flavor.extra_specs.get(_PAGE_SIZE)
        if page_size is not None and (server.nodes is None or not all(
                part.page_size for part in server.nodes)):
            yield site.finding(
                values.PAGES, f'{_PAGE_SIZE}={page_size}, but its '
                f'{server.flavor.memory} MiB are claimed in no page size',
                server)
