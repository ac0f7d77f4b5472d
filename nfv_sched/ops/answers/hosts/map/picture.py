# SPDX-License-Identifier: Apache-2.0
"""Draw a map of hosts as a picture: one SVG file, one host below another."""

from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import typing as ty

import markupsafe

from nfv_sched.ops.answers.hosts import document
from nfv_sched.ops.answers.hosts.map import captions
from nfv_sched.ops.answers.hosts.map import drawing
from nfv_sched.ops.answers.hosts.map import page
from nfv_sched.ops.answers.hosts import rendering
from nfv_sched.ops.cloud import snapshot

_MARGIN = 12
_COLUMNS = 4  # most NUMA nodes in a row
_STEP = drawing.WIDTH + _MARGIN  # from column to column
_LINE = 16
_LETTER = 6.7  # upper bound of the mean width of a letter at 11 pixels
_BOLD = 10.5  # the same at 15 pixels, bold
_KEY_SPACE = 40  # for a sign in the key, beside its text

_T = ty.TypeVar('_T')


def render(cloud: snapshot.Cloud,
           details: Sequence[document.HostDetails]) -> Iterator[str]:
    """Yield the picture, piece by piece; the hosts in the given order."""
    drawn = page.pictures(details)
    columns = min(max(map(len, drawn['nodes'].values()), default=1), _COLUMNS)
    # The text needs the width of two nodes.
    width = _MARGIN + max(columns, 2) * _STEP
    headline, y = captions.headline(len(details)), _MARGIN + 14
    head = [('host', _MARGIN, y, headline)]
    for kind, text in (('facts', page.about(cloud)), *(
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
    return page.templates().get_template('picture.svg').generate({
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
            ('facts', ' \N{MIDDLE DOT} '.join(captions.of_host(host))),
            *(('facts', f'{label}: {", ".join(names)}')
              for label, names in captions.groups(host)),
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
    """Yield items by row, each with its x."""
    for start in range(0, len(items), columns):
        yield [(_MARGIN + number * _STEP, item) for number, item in enumerate(
            items[start:start + columns])]


def _texts(server: document.ServerOnHost) -> tuple[str, str, str]:
    """Return the lines of a server, and all that they were shortened from."""
    room = int((drawing.WIDTH - 34) / _LETTER)
    text, far = captions.of_server(server), '; '.join(server.remote)
    name = drawing.shortened(server.label, max(room - len(text) - 2, 8))
    return (drawing.shortened(f'{name}  {text}', room),
            drawing.shortened(far, room),
            ' '.join(filter(None, (server.label, text, far))))
