# SPDX-License-Identifier: Apache-2.0
"""Lay out the picture of a NUMA node.

Lengths are in pixels.  A node is a box with a square for each core, split into
its threads, with the number of the first CPU below it; bars for memory pages
and shared vCPUs; devices hang below the box like tabs.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
import dataclasses
import unicodedata

from nfv_sched.base import strings
from nfv_sched.ops.answers.hosts import document
from nfv_sched.ops.answers.hosts.map import marks
from nfv_sched.ops.answers.hosts import rendering

WIDTH = 312
MARGIN = 8
HEAD = 30  # height of the title of the box

CORE = 26
_GAP = 4  # between cores
_PITCH = 40  # from row to row
_NUMBER = 9  # from the lower edge of a core to the foot of its number
_LINE = 15
BAR_WIDTH = 108
TAB_WIDTH, TAB_HEIGHT, _TAB_PITCH = 71, 34, 75
_TABS = 4  # in a row
_TAB, _KIND = 8, 4  # most characters of name and kind in a tab
_NAME = 24  # most characters of a name in a title
_WHOSE = 80  # most characters of all names in a title
_NEAR = 44  # most characters of the line of networks and places


@dataclasses.dataclass(frozen=True, slots=True)
class Row:
    """A row of cores; the origin is the foot of the numbers."""

    y: int
    #: of each CPU: name of the shape, see :func:`shapes`; x; title
    tiles: list[tuple[str, int, str]]
    #: signs of one character at one height: y, x of each, all characters
    letters: list[tuple[int, str, str]]
    #: signs of several characters: x, y, text
    words: list[tuple[int, int, str]]
    numbers: list[tuple[int, int]]  #: x, first CPU of the core


@dataclasses.dataclass(frozen=True, slots=True)
class NodePicture:
    title: str
    text: str
    switch: bool
    box: int  #: height of the box
    height: int  #: height including the tabs below the box
    rows: list[Row]
    near: tuple[int, str, str] | None
    #: the use of each resource: y, label, length of the used part, text
    bars: list[tuple[int, str, int, str]]
    #: groups of devices: x, y, name, text, length of the used part, title
    tabs: list[tuple[int, int, str, str, int, str]]


def node(node: document.NodeOfHost,
         host_marks: Mapping[str, marks.Sign]) -> NodePicture:
    rows = list(_rows(node.cores, host_marks))
    y = HEAD + len(rows) * _PITCH + 2
    near, text = None, rendering.near(node)
    if text:
        y += _LINE
        near = (y - 5, shortened(text, _NEAR), text)
    amounts = [
        (rendering.page_size(pages.size_kib), pages.used, pages.total,
         f'{rendering.page_use(pages)} used')
        for pages in node.pages if pages.total or pages.used]
    if node.shared_cpus:
        amounts.append((
            'shared', node.shared_vcpus, node.shared_vcpu_limit,
            f'{node.shared_vcpus}/{node.shared_vcpu_limit} vCPUs used'))
    bars = []
    for label, used, total, text in amounts:
        y += _LINE
        bars.append((y - 5, label, _length(used, total, BAR_WIDTH), text))
    box = y + 4
    tabs, height = [], box + 1
    by_nic: dict[str, list[document.DevicesOfNIC]] = {}
    for group in node.devices:
        by_nic.setdefault(group.name, []).append(group)
    for index, groups in enumerate(by_nic.values()):
        row, column = divmod(index, _TABS)
        # The PF if a server uses it, or its VFs.
        shown = next((group for group in groups
                      if group.kind == 'PF' and group.used), groups[-1])
        y = box + row * (TAB_HEIGHT + 3)
        height = y + TAB_HEIGHT + 1
        tabs.append((
            MARGIN + column * _TAB_PITCH, y,
            shortened(shown.name.removeprefix('0000:'), _TAB),
            f'{shortened(shown.kind, _KIND)} {shown.used}/{shown.total}',
            _length(shown.used, shown.total, TAB_WIDTH - 12),
            '; '.join(map(rendering.devices, groups))))
    return NodePicture(f'Node {node.node}', rendering.node_caption(node),
                       bool(node.switch), box, height, rows, near, bars, tabs)


def _length(used: int, total: int, width: int) -> int:
    """Return the used part of a width; at least 1 if any is used."""
    if not used:
        return 0
    return min(max(used * width // max(total, 1), 1), width)


def _rows(cores: Sequence[document.CoreUse],
          host_marks: Mapping[str, marks.Sign]) -> Iterator[Row]:
    threads = max((len(core.cpus) for core in cores), default=1)
    width = CORE if threads <= 2 else CORE // 2 * ((threads + 1) // 2)
    each = max((WIDTH - 2 * MARGIN + _GAP) // (width + _GAP), 1)
    for number, start in enumerate(range(0, len(cores), each)):
        row = Row(HEAD + number * _PITCH + CORE + _NUMBER, [], [], [], [])
        signed: dict[int, list[tuple[int, str]]] = {}
        for index, core in enumerate(cores[start:start + each]):
            core_x = index * (width + _GAP)
            row.numbers.append((core_x + width // 2, core.cpus[0].cpu))
            for place, cpu in enumerate(core.cpus):
                sign = marks.sign(cpu, host_marks)
                shape, x, y = _place(core_x, place, len(core.cpus))
                row.tiles.append((
                    f'{shape}{sign.kind}{"r" * sign.remote}', x,
                    f'CPU {cpu.cpu}: {_whose(cpu)}'))
                x += CORE // 2 if shape == 'a' else CORE // 4
                if sign.kind in 'fi':
                    continue
                if len(sign.text) == 1:
                    signed.setdefault(y, []).append((x, sign.text))
                else:
                    row.words.append((x, y, sign.text))
        for y, texts in sorted(signed.items()):
            row.letters.append((
                y, ' '.join(str(x) for x, _text in texts),
                ''.join(text for _x, text in texts)))
        yield row


def _place(core_x: int, place: int, threads: int) -> tuple[str, int, int]:
    if threads == 1:
        return 'a', core_x, -_NUMBER - 9
    if threads == 2:
        return 'b', core_x + CORE // 2 * place, -_NUMBER - 9
    shape, y = ('d', -_NUMBER - 3) if place % 2 else ('c', -_NUMBER - 16)
    return shape, core_x + CORE // 2 * (place // 2), y


#: Shape -> x, y, width, height, relative to its row.
_SHAPES = {
    'a': (0.5, -_NUMBER - CORE + 0.5, CORE - 1, CORE - 1),
    'b': (0.5, -_NUMBER - CORE + 0.5, CORE // 2 - 1, CORE - 1),
    'c': (0.5, -_NUMBER - CORE + 0.5, CORE // 2 - 1, CORE // 2 - 1),
    'd': (0.5, -_NUMBER - CORE // 2 + 0.5, CORE // 2 - 1, CORE // 2 - 1),
}


def shapes(nodes: Iterable[NodePicture],
           more: Iterable[str]) -> list[tuple[str, str, tuple]]:
    """Return the shapes of pictures: name, class, and x, y, width, height.

    In a name the first letter is the size, the others are the colour.
    """
    used = {shape for node in nodes for row in node.rows
            for shape, _x, _title in row.tiles}
    return [(shape, f'k{shape[1]}{" r" * shape.endswith("r")}',
             _SHAPES[shape[0]]) for shape in sorted(used | {*more})]


def _whose(cpu: document.CPUUse) -> str:
    if len(cpu.users) != 1:
        return shortened(rendering.cpu(cpu), _WHOSE)
    (user,) = cpu.users
    return rendering.user(dataclasses.replace(
        user, server=shortened(user.server, _NAME)))


def columns(text: str) -> int:
    """Return the greatest width of a text, in Latin characters.

    Some single characters stand for a whole sentence, and are as wide.
    """
    return sum(max(
        len(unicodedata.normalize('NFKC', char)),
        2 if unicodedata.east_asian_width(char) in 'WF' else 1)
        for char in text) if not text.isascii() else len(text)


def shortened(text: str, width: int) -> str:
    """Return a text cut to ``width`` Latin characters, no control ones."""
    text = strings.line(text)
    if columns(text) <= width:
        return text
    beginning, remaining = '', width - 1
    for char in text:
        remaining -= columns(char)
        if remaining < 0:
            break
        beginning += char
    return beginning.rstrip() + '\N{HORIZONTAL ELLIPSIS}'
