# SPDX-License-Identifier: Apache-2.0
"""Draw a map of hosts as text, for terminals."""

from collections.abc import Iterator, Sequence
import textwrap

from nfv_sched.ops.answers.hosts import document
from nfv_sched.ops.answers.hosts.map import marks as map_marks
from nfv_sched.ops.answers.hosts import rendering
from nfv_sched.ops.cli import tables
from nfv_sched.ops.cloud import snapshot

_WIDTH = 68  # most characters of a row of cores
_INDENT = 4  # of these rows, and of lines that continue another


def render(cloud: snapshot.Cloud, hosts: Sequence[document.HostDetails],
           width: int | None = None) -> Iterator[str]:
    """Yield the map, line by line; without a width, lines are not broken."""
    for line in _lines(hosts, width):
        indent = len(line) - len(line.lstrip()) + _INDENT
        yield tables.render([tables.Line(line, indent=indent)], width)


def _lines(hosts: Sequence[document.HostDetails],
           width: int | None) -> Iterator[str]:
    """Yield lines that may be too long, but for those with CPUs."""
    for host in hosts:
        yield from _host(host, width)
        yield ''
    yield 'The CPUs of a core stand together.'
    for sign, _kind, meaning in map_marks.key(map_marks.has_others(hosts)):
        yield f'{sign}  {meaning}'
    yield '*  a device or network of the server is near another node'


def _host(host: document.HostDetails, width: int | None) -> Iterator[str]:
    marks = map_marks.of_host(host)
    yield f'{host.host}: {", ".join(rendering.host_captions(host))}'
    groups = [f'{label}: {", ".join(names)}'
              for label, names in rendering.groups(host)]
    if groups:
        yield f'  {"; ".join(groups)}'
    for note in host.notes:
        yield f'  ! {note}'
    for node in host.numa_nodes:
        switch = ', virtual switch' if node.switch else ''
        yield f'  node {node.node}: {rendering.node_caption(node)}{switch}'
        indent = ' ' * _INDENT
        yield from textwrap.wrap(
            ' '.join([''.join([map_marks.sign(cpu, marks).text
                               for cpu in core.cpus]) for core in node.cores]),
            _WIDTH if width is None else min(_WIDTH, width),
            initial_indent=indent, subsequent_indent=indent,
            break_long_words=False, break_on_hyphens=False)
        facts = [f'{_page_title(pages.size_kib)} {rendering.page_use(pages)}'
                 for pages in node.pages
                 if pages.total or pages.reserved or pages.used]
        facts += [f'{group.kind} {group.name} {group.used}/{group.total}'
                  for group in node.devices]
        if facts:
            yield f'    used: {", ".join(facts)}'
        if node.shared_cpus:
            yield (f'    shared: {node.shared_vcpus}/'
                   f'{node.shared_vcpu_limit} vCPUs')
        if near := rendering.near(node):
            yield f'    near: {near}'
    for server in host.servers:
        sign = marks[server.server_id].text
        mark = '*' if server.remote else ' '
        yield (f'  {sign:>2}{mark} {server.label}: '
               f'{rendering.server_caption(server)}'
               + ''.join(f'; {text}' for text in server.remote))


def _page_title(size: int) -> str:
    text = rendering.page_size(size)
    return f'small pages ({text})' if rendering.is_small(size) else text
