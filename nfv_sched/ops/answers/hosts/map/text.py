# SPDX-License-Identifier: Apache-2.0
"""Draw a map of hosts as text, for terminals."""

from collections.abc import Iterator
from collections.abc import Sequence

from nfv_sched.ops.answers.hosts.map import captions
from nfv_sched.ops.answers.hosts.map import marks
from nfv_sched.ops.answers.hosts import rendering
from nfv_sched.ops.answers.hosts import values
from nfv_sched.ops.cli import tables
from nfv_sched.ops.cloud import snapshot

_WIDTH = 64  # most characters of a row of cores
_INDENT = 4  # of these rows, and of lines that continue another


def render(cloud: snapshot.Cloud, views: Sequence[values.HostView],
           width: int | None = None) -> Iterator[str]:
    """Yield the map, line by line; without a width, lines are not broken."""
    for line in _lines(views, width):
        indent = len(line) - len(line.lstrip()) + _INDENT
        yield tables.render([tables.Line(line, indent=indent)], width)


def _lines(views: Sequence[values.HostView],
           width: int | None) -> Iterator[str]:
    """Yield lines that may be too long, but for those with CPUs."""
    for view in views:
        yield from _host(view, width)
        yield ''
    yield 'The CPUs of a core stand together.'
    for sign, meaning in marks.key(marks.has_others(views)):
        yield f'{sign}  {meaning}'
    yield '*  a device or network of the server is near another node'


def _host(view: values.HostView, width: int | None) -> Iterator[str]:
    letters = marks.letters(view)
    colours = marks.colours(letters)
    yield f'{view.title}: {", ".join(captions.of_host(view))}'
    groups = captions.of_groups(view)
    if groups:
        yield f'  {"; ".join(groups)}'
    for note in view.notes:
        yield f'  ! {note}'
    for node in view.nodes:
        switch = ', virtual switch' if node.switch else ''
        yield f'  node {node.node.number}: {captions.of_node(node)}{switch}'
        cells = [''.join(marks.sign(thread, letters, colours).text
                         for thread in core) for core in node.cores]
        yield from _wrapped(cells, width)
        facts = [f'{_page_title(pages.size)} {captions.pages(pages)}'
                 for pages in node.node.pages if pages.total or pages.used]
        facts += [f'{group.kind} {group.name} {group.used}/{group.total}'
                  for group in node.devices]
        if facts:
            yield f'    used: {", ".join(facts)}'
        if node.node.shared:
            yield (f'    shared: {node.node.shared_used}/'
                   f'{node.shared_limit} vCPUs')
        near = captions.near(node)
        if near:
            yield f'    near: {near}'
    for guest in view.guests:
        sign = letters.get(guest.uuid, '')
        mark = '*' if guest.remote else ' '
        yield (f'  {sign:>2}{mark} {guest.label}: {captions.of_guest(guest)}'
               + ''.join(f'; {text}' for text in guest.remote))


def _page_title(size: int) -> str:
    """Return the name of a page size, in KiB."""
    text = rendering.page_size(size)
    return f'small pages ({text})' if rendering.is_small(size) else text


def _wrapped(cells: Sequence[str], width: int | None) -> Iterator[str]:
    most = _WIDTH if width is None else min(_WIDTH, width - _INDENT)
    indent = ' ' * _INDENT
    line = ''
    for cell in cells:
        if line and len(line) + len(cell) > most:
            yield f'{indent}{line.rstrip()}'
            line = ''
        line += f'{cell} '
    if line:
        yield f'{indent}{line.rstrip()}'
