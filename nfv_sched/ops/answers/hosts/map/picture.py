# SPDX-License-Identifier: Apache-2.0
"""Draw a map of hosts as a picture: one SVG file, one host below another."""

from collections.abc import Iterator
from collections.abc import Sequence
import dataclasses

import markupsafe

from nfv_sched.ops.answers.hosts import document
from nfv_sched.ops.answers.hosts.map import captions
from nfv_sched.ops.answers.hosts.map import drawing
from nfv_sched.ops.answers.hosts.map import marks as map_marks
from nfv_sched.ops.answers.hosts.map import page
from nfv_sched.ops.cloud import snapshot

_MARGIN = 12
_COLUMNS = 4  # most NUMA nodes in a row
_WIDTH = _COLUMNS * (drawing.WIDTH + _MARGIN) + _MARGIN
_LINE = 16
_LETTER = 6.7  # upper bound of the mean width of a letter at 11 pixels
_BOLD = 10.5  # the same at 15 pixels, bold
_KEY_SPACE = 40  # for a sign in the key, beside its text


@dataclasses.dataclass(frozen=True, slots=True)
class TextLine:
    """A line of text."""

    kind: str
    x: int
    y: int
    text: str
    title: str = ''  #: the whole text, if it is shortened


@dataclasses.dataclass(frozen=True, slots=True)
class Mark:
    """A sign in the key, with its meaning."""

    shape: str
    x: int
    y: int
    sign: str
    text: str


@dataclasses.dataclass(frozen=True, slots=True)
class PlacedNode:
    """A NUMA node with its position, as attributes of its picture."""

    node: drawing.NodePicture
    place: markupsafe.Markup


@dataclasses.dataclass(frozen=True, slots=True)
class PlacedGuest:
    """A server in the list below a host."""

    x: int
    y: int
    width: int
    height: int
    letters: str
    colour: str
    text: str
    far: str  #: what is remote from it
    title: str


@dataclasses.dataclass(frozen=True, slots=True)
class Card:
    """A host with everything drawn for it."""

    y: int
    width: int
    height: int
    lines: list[TextLine]
    nodes: list[PlacedNode]
    guests: list[PlacedGuest]


@dataclasses.dataclass(frozen=True, slots=True)
class Sheet:
    """The whole picture."""

    width: int
    height: int
    margin: int
    head: list[TextLine]
    key: list[Mark]
    hosts: list[Card]


def render(cloud: snapshot.Cloud,
           details: Sequence[document.HostDetails]) -> Iterator[str]:
    """Yield the picture, piece by piece; the hosts in the given order."""
    hosts = [page.host(each, '') for each in details]
    nodes = [node for host in hosts for node in host.nodes]
    has_others = map_marks.has_others(details)
    key = page.key(has_others)
    return page.templates().get_template('picture.svg').generate(
        headline=captions.headline(len(details)), tab=page.tab(),
        shapes=page.shapes(nodes, key), width=drawing.WIDTH,
        bars=drawing.BAR_WIDTH, others=has_others,
        sheet=_sheet(cloud, hosts, key))


def _sheet(cloud: snapshot.Cloud, hosts: Sequence[page.HostSection],
           key: Sequence[tuple[str, str, str]]) -> Sheet:
    columns = min(max((len(host.nodes) for host in hosts), default=1),
                  _COLUMNS)
    # The text needs the width of two nodes.
    width = _MARGIN + max(columns, 2) * (drawing.WIDTH + _MARGIN)
    y = _MARGIN + 14
    head = [TextLine('host', _MARGIN, y, captions.headline(len(hosts)))]
    for kind, text in (('facts', page.about(cloud)), *(
            ('missing', f'Not everything could be read: {missing}')
            for missing in cloud.missing)):
        y += _LINE
        head.append(_line(kind, _MARGIN, y, text, width))
    marks, y = _key(key, y + 30, width)
    y += _MARGIN
    cards = []
    for host in hosts:
        cards.append(_card(host, y, width))
        y += cards[-1].height + _MARGIN
    return Sheet(width + 2 * _MARGIN, y, _MARGIN, head, marks, cards)


def _line(kind: str, x: int, y: int, text: str, width: int) -> TextLine:
    letter = _BOLD if kind == 'host' else _LETTER
    short = drawing.shortened(text, int((width - x - _MARGIN) / letter))
    return TextLine(kind, x, y, short, '' if short == text else text)


def _key(key: Sequence[tuple[str, str, str]], y: int,
         width: int) -> tuple[list[Mark], int]:
    """Lay out the key; return its signs and where it ends."""
    marks, x = [], _MARGIN
    for shape, sign, text in key:
        room = int(len(text) * _LETTER) + _KEY_SPACE
        if x > _MARGIN and x + room > width:
            x, y = _MARGIN, y + 32
        marks.append(Mark(shape, x, y, sign, text))
        x += room
    return marks, y + 12


def _card(host: page.HostSection, top: int, width: int) -> Card:
    y = 24
    lines = [_line('host', _MARGIN, y, host.title, width)]
    for kind, text in (
            ('facts', ' \N{MIDDLE DOT} '.join(host.facts)),
            *(('facts', f'{label}: {", ".join(names)}')
              for label, names in host.groups),
            *(('odd', note) for note in host.notes),
            *(('facts', f'Device without NUMA node: {text}')
              for text in host.devices)):
        y += _LINE
        lines.append(_line(kind, _MARGIN, y, text, width))
    y += _MARGIN
    nodes = []
    step = drawing.WIDTH + _MARGIN
    columns = max((width - _MARGIN) // step, 1)
    for start in range(0, len(host.nodes), columns):
        row = host.nodes[start:start + columns]
        nodes += [PlacedNode(node, markupsafe.Markup(
            f' x="{_MARGIN + number * step}" y="{y}"'))
            for number, node in enumerate(row)]
        y += max(node.height for node in row) + _MARGIN
    guests = []
    columns = max((width - _MARGIN) // step, 1)
    for start in range(0, len(host.guests), columns):
        line = host.guests[start:start + columns]
        height = 32 if any(guest.remote for guest in line) else 18
        guests += [_guest(guest, _MARGIN + number * step, y, height)
                   for number, guest in enumerate(line)]
        y += height + 2
    return Card(top, width, y + _MARGIN, lines, nodes, guests)


def _guest(guest: page.GuestRow, x: int, y: int, height: int) -> PlacedGuest:
    room = int((drawing.WIDTH - 34) / _LETTER)
    far = '; '.join(guest.remote)
    name = drawing.shortened(guest.label, max(room - len(guest.text) - 2, 8))
    return PlacedGuest(
        x, y, drawing.WIDTH, height, guest.letters, guest.colour,
        drawing.shortened(f'{name}  {guest.text}', room),
        drawing.shortened(far, room),
        ' '.join(filter(None, (guest.label, guest.text, far))))
