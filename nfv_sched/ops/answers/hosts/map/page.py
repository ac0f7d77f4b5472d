# SPDX-License-Identifier: Apache-2.0
"""Draw a map of hosts as an HTML page, one file with one script, or as SVG.

Names come from tenants: the templates escape everything that they insert.
The script only shows and hides hosts; the page's Content Security Policy has
its hash, so the browser runs nothing else.
"""

import base64
from collections.abc import Iterator, Mapping, Sequence
import functools
import hashlib
import itertools
import re
import typing as ty

import jinja2
import markupsafe

from nfv_sched.base import strings
from nfv_sched.ops.answers.hosts import document
from nfv_sched.ops.answers.hosts.map import drawing
from nfv_sched.ops.answers.hosts.map import marks as map_marks
from nfv_sched.ops.answers.hosts import rendering
from nfv_sched.ops.cloud import snapshot

_UNSAFE = re.compile(r'[^A-Za-z0-9_.-]+')

_REMOTE = ('b1r', 'B', 'outlined: a device or network of the server is near '
                       'another node')
_BLANK = '-.'  # the shape alone shows what they mean
_TAB = markupsafe.Markup(
    f'<path id="tab" d="M.5 .5h{drawing.TAB_WIDTH - 1}v'
    f'{drawing.TAB_HEIGHT - 5}a4 4 0 01-4 4H4.5a4 4 0 01-4-4z"/>')

_MARGIN = 12
_COLUMNS = 4  # most NUMA nodes in a row
_STEP = drawing.WIDTH + _MARGIN  # from column to column
_LINE = 16
_LETTER = 6.7  # upper bound of the mean width of a letter at 11 pixels
_BOLD = 10.5  # the same at 15 pixels, bold
_KEY_SPACE = 40  # for a sign in the key, beside its text

_T = ty.TypeVar('_T')


def environment(*packages: str) -> jinja2.Environment:
    """Return templates that escape all; earlier packages go first."""
    return jinja2.Environment(
        loader=jinja2.ChoiceLoader(list(map(jinja2.PackageLoader, packages))),
        # XML cannot have the control characters of a text.
        finalize=lambda value: (
            strings.line(value) if type(value) is str else value),
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True,
        lstrip_blocks=True)


@functools.cache
def templates() -> jinja2.Environment:
    return environment('nfv_sched.ops.answers.hosts.map')


def render(cloud: snapshot.Cloud,
           details: Sequence[document.HostDetails]) -> Iterator[str]:
    """Yield the page, piece by piece; the hosts in the order of need."""
    return templates().get_template('page.html').generate(
        headline=rendering.headline(len(details)), cloud=about(cloud),
        missing=map(str, cloud.missing), script=_script(), policy=_policy(),
        **hosts(details))


def hosts(details: Sequence[document.HostDetails]) -> dict[str, ty.Any]:
    """Return what ``hosts.html`` needs to draw hosts, in the order of need."""
    ordered = sorted(zip(_ids(details), details),
                     key=lambda pair: pair[1].order)
    return {**pictures(details), 'hosts': ordered,
            'rendering': rendering, 'odd': markupsafe.Markup(' class="odd"')}


def pictures(details: Sequence[document.HostDetails]) -> dict[str, ty.Any]:
    """Return what the templates need to draw NUMA nodes, and the key of that.

    The key has a shape, a sign and a meaning for each state of a CPU.
    """
    marks = {host.host_id: map_marks.of_host(host) for host in details}
    nodes = {host.host_id: [drawing.node(node, marks[host.host_id])
                            for node in host.numa_nodes] for host in details}
    has_others = map_marks.has_others(details)
    key = [*((f'b{kind}', '' if sign in _BLANK else sign, meaning)
             for sign, kind, meaning in map_marks.key(has_others)), _REMOTE]
    return {
        'marks': marks, 'nodes': nodes, 'key': key, 'shapes': drawing.shapes(
            itertools.chain(*nodes.values()),
            [shape for shape, _sign, _meaning in key]),
        'tab': _TAB, 'others': has_others, 'width': drawing.WIDTH,
        'bars': drawing.BAR_WIDTH}


@functools.cache
def _script() -> markupsafe.Markup:
    return markupsafe.Markup(templates().loader.get_source(
        templates(), 'filter.js')[0])


@functools.cache
def _policy() -> str:
    """Return the Content Security Policy: this script and inline styles."""
    digest = base64.b64encode(hashlib.sha256(_script().encode()).digest())
    return ("default-src 'none'; style-src 'unsafe-inline'; "
            f"script-src 'sha256-{digest.decode()}'; base-uri 'none'; "
            "form-action 'none'")


def about(cloud: snapshot.Cloud) -> str:
    return f'As of {cloud.taken}, from {cloud.source or "a file"}'


def _ids(details: Sequence[document.HostDetails]) -> list[str]:
    """Return an HTML ID for each host, the same in every map."""
    ids: list[str] = []
    seen: dict[str, int] = {}
    for each in details:
        name = 'host-' + (_UNSAFE.sub('-', each.host).strip('-')[:60] or '-')
        seen[name] = seen.get(name, 0) + 1
        if seen[name] > 1 or _UNSAFE.search(each.host):
            name += f'~{seen[name]}'
        ids.append(name)
    return ids


def render_picture(cloud: snapshot.Cloud,
                   details: Sequence[document.HostDetails]) -> Iterator[str]:
    """Yield the picture, piece by piece; the hosts in the given order."""
    drawn = pictures(details)
    columns = min(max(map(len, drawn['nodes'].values()), default=1), _COLUMNS)
    # The text needs the width of two nodes.
    width = _MARGIN + max(columns, 2) * _STEP
    headline, y = rendering.headline(len(details)), _MARGIN + 14
    head = [('host', _MARGIN, y, headline)]
    for kind, text in (('facts', about(cloud)), *(
            ('missing', f'Not everything could be read: {missing}')
            for missing in cloud.missing)):
        y += _LINE
        head.append(_line(kind, y, text, width)[:4])
    signs, y = _key(drawn['key'], y + 30, width)
    y += _MARGIN
    cards = []
    for host in details:
        cards.append(_card(host, drawn, y, width))
        y += cards[-1]['height'] + _MARGIN
    return templates().get_template('picture.svg').generate({
        **drawn, 'headline': headline, 'sheet_width': width + 2 * _MARGIN,
        'sheet_height': y, 'margin': _MARGIN, 'head': head, 'signs': signs,
        'hosts': cards})


def _line(kind: str, y: int, text: str,
          width: int) -> tuple[str, int, int, str, str]:
    """Return a line: kind, x, y, what fits, and the whole if that is less."""
    letter = _BOLD if kind == 'host' else _LETTER
    short = drawing.shortened(text, int((width - 2 * _MARGIN) / letter))
    return kind, _MARGIN, y, short, '' if short == text else text


def _key(key: Sequence[tuple[str, str, str]], y: int, width: int,
         ) -> tuple[list[tuple[str, int, int, str, str]], int]:
    """Lay out the key; return its signs, with x and y, and where it ends."""
    marks, x = [], _MARGIN
    for shape, sign, text in key:
        room = int(len(text) * _LETTER) + _KEY_SPACE
        if x > _MARGIN and x + room > width:
            x, y = _MARGIN, y + 32
        marks.append((shape, x, y, sign, text))
        x += room
    return marks, y + 12


def _card(host: document.HostDetails, drawn: Mapping[str, ty.Any], top: int,
          width: int) -> dict[str, ty.Any]:
    y = 24
    lines = [_line('host', y, host.host, width)]
    for kind, text in (
            ('facts', ' \N{MIDDLE DOT} '.join(rendering.host_captions(host))),
            *(('facts', f'{label}: {", ".join(names)}')
              for label, names in rendering.groups(host)),
            *(('odd', note) for note in host.notes),
            *(('facts', f'Device without NUMA node: '
               f'{rendering.devices(group)}')
              for group in host.devices_without_node)):
        y += _LINE
        lines.append(_line(kind, y, text, width))
    y += _MARGIN
    nodes, servers = [], []
    columns = max((width - _MARGIN) // _STEP, 1)
    for row in _rows(drawn['nodes'][host.host_id], columns):
        nodes += [(node, markupsafe.Markup(f' x="{x}" y="{y}"'))
                  for x, node in row]
        y += max(node.height for _x, node in row) + _MARGIN
    marks = drawn['marks'][host.host_id]
    for row in _rows(host.servers, columns):
        height = 32 if any(server.remote for _x, server in row) else 18
        servers += [(x, y, height, marks[server.server_id], *_texts(server))
                    for x, server in row]
        y += height + 2
    return {'y': top, 'width': width, 'height': y + _MARGIN, 'lines': lines,
            'nodes': nodes, 'servers': servers}


def _rows(items: Sequence[_T], columns: int) -> Iterator[list[tuple[int, _T]]]:
    for start in range(0, len(items), columns):
        yield [(_MARGIN + number * _STEP, item) for number, item in enumerate(
            items[start:start + columns])]


def _texts(server: document.ServerOnHost) -> tuple[str, str, str]:
    room = int((drawing.WIDTH - 34) / _LETTER)
    text, far = rendering.server_caption(server), '; '.join(server.remote)
    name = drawing.shortened(server.label, max(room - len(text) - 2, 8))
    return (drawing.shortened(f'{name}  {text}', room),
            drawing.shortened(far, room),
            ' '.join(filter(None, (server.label, text, far))))
