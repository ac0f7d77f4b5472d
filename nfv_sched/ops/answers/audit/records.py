# SPDX-License-Identifier: Apache-2.0
"""Compare the record of a host with those of the servers on it.

The usage that Nova's ``numa_usage_from_instance_numa`` would record for the
servers is computed and compared with the usage that the host reports.
"""

from collections.abc import Iterable
from collections.abc import Iterator

from nfv_sched.base import cpu_spec
from nfv_sched.base import strings
from nfv_sched.fit import occupancy
from nfv_sched.ops.answers.audit import hosts
from nfv_sched.ops.answers.audit import repairs
from nfv_sched.ops.answers.audit import values
from nfv_sched.ops.answers.hosts import memory
from nfv_sched.ops.answers.hosts import view
from nfv_sched.ops.cloud import occupied
from nfv_sched.ops.cloud import snapshot


def mapping(site: hosts.Site) -> Iterator[values.AuditFinding]:
    if not site.host.mapped:
        yield values.finding(
            values.UNMAPPED, site.title, 'no host mapping in the API '
            'database: servers that the scheduler puts there end in ERROR',
            commands=repairs.discover())


def overuse(site: hosts.Site) -> Iterator[values.AuditFinding]:
    cpu, ram = (max(view.ratio(site.cloud, site.host, of), 1.0)
                for of in ('cpu', 'ram'))
    for node in site.host.nodes or ():
        small = min((pages.size for pages in node.pages), default=0)
        yield from _overused(site, f'node {node.number}', [
            ('MiB', node.memory_used, node.memory, ram),
            ('shared vCPUs', node.shared_used, len(node.shared), cpu),
            *((f'pages of {pages.size} KiB', pages.used, pages.usable,
               ram if pages.size == small else 1.0) for pages in node.pages)])
    yield from _overused(site, 'host', [
        ('MiB', site.host.memory_used, site.host.memory, ram)])


def _overused(
    site: hosts.Site, where: str,
    amounts: Iterable[tuple[str, int, int, float]],
) -> Iterator[values.AuditFinding]:
    for noun, used, total, ratio in amounts:
        if used > int(total * ratio):
            yield values.finding(
                values.OVERUSED, site.title,
                f'{where}: {used} {noun} used, '
                f'{memory.limit_text(total, ratio)} may be used')


def check(site: hosts.Site) -> Iterator[values.AuditFinding]:
    """Find contradictions between the NUMA usage of host and servers."""
    by_node: dict[int, list[tuple[snapshot.Server,
                                  snapshot.GuestNode]]] = {}
    for server, part in site.certain:
        by_node.setdefault(part.host_node, []).append((server, part))
    more: dict[int, list[snapshot.GuestNode]] = {}
    for part in site.possible:
        more.setdefault(part.host_node, []).append(part)
    for node in site.host.nodes or ():
        here = by_node.pop(node.number, [])
        yield from _find_misplaced(site, node, here)
        yield from _find_missing(site, node, here)
        if not site.guessed:
            yield from _find_unknown(site, node, [
                *(part for _server, part in here),
                *more.get(node.number, ())])
    for number, here in by_node.items():
        for server in {server.uuid: server for server, _part in here}.values():
            yield values.finding(
                values.NOT_IN_RECORD, site.title,
                f'on node {number}, which the host does not report', server)


def _find_misplaced(
    site: hosts.Site, node: snapshot.Node,
    here: list[tuple[snapshot.Server, snapshot.GuestNode]],
) -> Iterator[values.AuditFinding]:
    """Find CPUs used by several servers, or not dedicated to pinned ones."""
    owners: dict[int, list[snapshot.Server]] = {}
    for server, part in here:
        for cpu in [*part.pins.values(), *part.reserved]:
            owners.setdefault(cpu, []).append(server)
        beyond = occupied.exclusive_cpus(part) - node.dedicated
        if beyond:
            yield values.finding(
                values.NOT_DEDICATED, site.title,
                f'node {node.number}: CPU {cpu_spec.to_text(beyond)} is not '
                f'for pinned servers there', server)
    groups: dict[tuple[str, ...], list[int]] = {}
    for cpu, servers in owners.items():
        if len(servers) > 1:
            groups.setdefault(tuple(
                server.uuid for server in servers), []).append(cpu)
    for uuids, cpus in groups.items():
        first = site.known[uuids[0]]
        other_names = dict.fromkeys(
            site.known[uuid].name or uuid for uuid in uuids[1:])
        yield values.finding(
            values.PINNED_TWICE, site.title,
            f'node {node.number}: CPU {cpu_spec.to_text(cpus)} is also that '
            'of ' + ', '.join(other_names), first,
            max(values.settled(site.known[uuid]) for uuid in uuids))


def _find_missing(
    site: hosts.Site, node: snapshot.Node,
    here: list[tuple[snapshot.Server, snapshot.GuestNode]],
) -> Iterator[values.AuditFinding]:
    """Find resources that servers use but the host records as free."""
    shares = occupied.shares([node], [part for _server, part in here])
    usage = occupancy.total(shares)
    lacking: dict[str, set[int]] = {}
    for (server, part), share in zip(here, shares):
        cpus = share.cpus & occupied.exclusive_cpus(part) & node.free
        if cpus:
            lacking.setdefault(server.uuid, set()).update(cpus)
    rest = _amounts(
        usage.memory - node.memory_used, usage.shared - node.shared_used,
        {pages.size: usage.pages.get(pages.size, 0) - pages.used
         for pages in node.pages})
    for number, (uuid, cpus) in enumerate(lacking.items()):
        yield values.finding(
            values.NOT_IN_RECORD, site.title, _problem_text(
                node, 'of the server free in the record of the host', [
                    f'CPU {cpu_spec.to_text(cpus)}',
                    *([] if number else rest)]),
            site.known[uuid])
    if rest and not lacking:
        yield values.finding(
            values.NOT_IN_RECORD, site.title, _problem_text(
                node, 'of its servers free in its record', rest))


def _find_unknown(
    site: hosts.Site, node: snapshot.Node, parts: list[snapshot.GuestNode],
) -> Iterator[values.AuditFinding]:
    """Find resources that the host records as used but no server uses."""
    usage = occupancy.total(occupied.shares([node], parts))
    cpus = node.pinned - usage.cpus
    phrases = [f'CPU {cpu_spec.to_text(cpus)}'] if cpus else []
    phrases += _amounts(
        node.memory_used - usage.memory, node.shared_used - usage.shared,
        {pages.size: pages.used - usage.pages.get(pages.size, 0)
         for pages in node.pages})
    if phrases:
        kind, who = values.UNKNOWN_GUEST, 'though no server has it'
        if not site.host.up:
            kind, who = values.LEFT_BEHIND, (
                'by servers that were evacuated or deleted while it was down')
        yield values.finding(kind, site.title, _problem_text(
            node, f'taken in its record, {who}', phrases))


def _amounts(memory: int, shared: int, pages: dict[int, int]) -> list[str]:
    phrases = []
    if memory > 0:
        phrases.append(f'{memory} MiB')
    if shared > 0:
        phrases.append(f'{shared} shared vCPUs')
    # Where only small pages differ, the memory has said it already.
    smallest = min(pages, default=0)
    phrases += [f'{count} pages of {strings.size(size)}'
                for size, count in pages.items() if count > 0 and not (
                    size == smallest and memory > 0)]
    return phrases


def _problem_text(node: snapshot.Node, problem: str,
                  phrases: list[str]) -> str:
    return f'node {node.number}: {", ".join(phrases)} {problem}'
