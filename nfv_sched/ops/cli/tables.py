# SPDX-License-Identifier: Apache-2.0
"""Render tables and lines of text for people, and values for programs.

Lines are broken at spaces, and at commas where that is not enough, but never
inside a word, so that numbers, keys and names can be found and copied.
Where there is no space for all columns, reasons and advice are printed below
their rows, and other columns are left out and named.
"""

import bisect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
import dataclasses
import itertools
import re
import typing as ty

from cliff import columns as cliff_columns

from nfv_sched.base import strings

#: Spaces between columns.
_GAP = 2
#: Spaces before a column that is printed below a row.
_INDENT = 4
#: Lines of blank cells.
_BLANK = frozenset({'', '-'})
#: Columns of sentences and lists are left out if they would be narrower.
_READABLE = 16
# A number stays with its label: "pCPUs: 5" is one word.
_WORD = re.compile(r'\s*\S+(?:(?<=:) \d+(?!\S))?')
_PIECE = re.compile(r'[^,]*,+|[^,]+')
_NUMERIC = re.compile(r'-|-?\d+(\.\d+)?|(\?|\d+)/(\d+|unlimited)', re.ASCII)
_NOT_IN_WORD = re.compile(r'\W')

#: Columns that are not left out: the answers of a table, in sentences.
SENTENCES = frozenset({
    'Do', 'Finding', 'Lacks', 'Limiting resource', 'Next', 'Reason', 'Remark',
    'Stranded', 'What to do', 'Why'})

GOOD, MEDIUM, BAD = 'green', 'yellow', 'red'
#: Style -> code of its colour on a terminal.
_CODES = {GOOD: 32, MEDIUM: 33, BAD: 31}
_OTHER_TEXT = ''
#: Column -> first word of a cell -> its style on a terminal.
_STYLES: Mapping[str, Mapping[str, str]] = {
    'Class': {'error': BAD},
    'How': {'live': GOOD, 'cold': MEDIUM, 'not': BAD},
    'Result': {'done': GOOD, 'refused': BAD},
    'Severity': {'error': BAD, 'warning': MEDIUM},
    'State': {'up': GOOD, 'disabled': MEDIUM, 'down': BAD},
    'Status': {'active': GOOD, 'ACTIVE': GOOD, 'error': BAD, 'ERROR': BAD,
               'refused': BAD},
    'Verdict': {'passes': GOOD, 'found': GOOD, 'not': '', 'removed': MEDIUM,
                _OTHER_TEXT: BAD},
}


class Lines(cliff_columns.FormattableColumn):
    """A cell of several lines, with line breaks inside them escaped."""

    def human_readable(self) -> str:
        return '\n'.join(map(strings.line, self._value))

    def machine_readable(self) -> str:
        return '; '.join(self._value)


@dataclasses.dataclass(frozen=True, slots=True)
class Line:
    """A line of text; line breaks in it are escaped."""

    text: str
    style: str = ''  #: how it is shown on a terminal, such as :data:`BAD`
    #: number of spaces before the text where the line is broken
    indent: int = 0
    #: whether it has a command to be copied: the line is not broken, as a
    #: shell would run each part
    is_command: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Table:
    """A table, with columns of numbers aligned to the right."""

    columns: Sequence[str]
    rows: Sequence[Sequence[ty.Any]]
    #: columns that are left out first if there is no space for all, in this
    #: order; then those at the right end; of these the ones of
    #: :data:`SENTENCES` are printed below each row instead
    least_important: Sequence[str] = ()
    is_whole: bool = False  #: whether no column may be left out
    #: whether ``--column`` chooses the columns of this table
    is_main: bool = True


@dataclasses.dataclass(frozen=True, slots=True)
class Column:
    """A column of rows that are values of one type."""

    title: str
    #: the cell for programs, one name or number: attributes joined by dots, or
    #: a function of the row; None if only people have the column
    value: str | Callable[[ty.Any], ty.Any] | None
    #: function of the row that returns the cell for people; None for the same
    #: cell
    text: Callable[[ty.Any], ty.Any] | None = None
    #: whether people see it only if they ask for it, and then as programs do
    is_detail: bool = False

    def cell(self, row: ty.Any) -> ty.Any:
        if not isinstance(self.value, str):
            return self.value(row)
        for name in self.value.split('.'):
            row = row if row is None else getattr(row, name)
        return ', '.join(row) if isinstance(row, tuple) else row

    def for_people(self, row: ty.Any) -> ty.Any:
        if self.is_detail or self.text is None:
            return self.cell(row)
        return self.text(row)


def of_rows(columns: Iterable[Column], rows: Iterable[ty.Any]) -> Table:
    shown = [each for each in columns if not each.is_detail]
    return Table([each.title for each in shown], [
        [each.for_people(row) for each in shown] for row in rows])


#: A text is a line without a style.
Part = str | Line | Table


def render(parts: Iterable[Part], width: int | None = None,
           color: bool = False) -> str:
    """Return text and tables as one text, which is safe to print.

    :param width: of the lines; a longer word, or command, is not broken;
        None for lines as long as they need
    """
    lines: list[str] = []
    for part in parts:
        if isinstance(part, Table):
            lines += _table(part, width, color)
        else:
            lines += _line(Line(part) if isinstance(part, str) else part,
                           width, color)
    return ''.join(f'{line}\n' for line in lines)


def _line(line: Line, width: int | None, color: bool) -> Iterator[str]:
    first, *more_lines = _wrapped(strings.line(line.text),
                                  None if line.is_command else width,
                                  line.indent)
    for text in (first, *(' ' * line.indent + each for each in more_lines)):
        yield _colored(text, line.style if color else '')


def _colored(text: str, style: str) -> str:
    return f'\x1b[{_CODES[style]}m{text}\x1b[0m' if text and style else text


def _wrapped(text: str, width: int | None, indent: int = 0) -> list[str]:
    """Break a line; all lines but the first are shorter by ``indent``."""
    text = text.rstrip()
    if width is None or _length(text) <= width:
        return [text]
    lines = ['']
    for word in _WORD.findall(text):
        room = width - indent if len(lines) > 1 else width
        if _length(lines[-1] + word) <= room:
            lines[-1] += word
            continue
        if lines[-1]:
            lines.append('')
            word, room = word.lstrip(), width - indent
        if _length(word) <= room:
            lines[-1] = word
            continue
        for piece in _PIECE.findall(word):
            if lines[-1] and _length(lines[-1] + piece) > room:
                lines.append('')
            lines[-1] += piece
    return lines


def _length(text: str) -> int:
    if text.isascii():
        return len(text)
    from rich import cells
    return cells.cell_len(text)


def _table(table: Table, width: int | None, color: bool) -> Iterator[str]:
    rows = [tuple(map(cell_lines, row)) for row in table.rows]
    columns = [_Column(title, [row[number] for row in rows])
               for number, title in enumerate(table.columns)]
    shown, below = (columns, []) if table.is_whole else _arranged(
        columns, width, table.least_important)
    widths = _widths(shown, width)
    titles = [_wrapped(each.title, most) for each, most in zip(shown, widths)]
    height = max(map(len, titles), default=0)
    yield from _side_by_side(shown, widths, itertools.repeat(''), [
        [''] * (height - len(lines)) + lines for lines in titles])
    yield '\N{BOX DRAWINGS LIGHT HORIZONTAL}' * (
        sum(widths) + _GAP * (len(shown) - 1))
    for row in range(len(rows)):
        styles = [each.style(row) if color else '' for each in shown]
        yield from _side_by_side(shown, widths, styles, [
            [part for line in each.lines[row] for part in _wrapped(line, most)]
            for each, most in zip(shown, widths)])
        for column in below:
            yield from _below(column, row, width)
    left_out = [each.title for each in columns
                if each not in shown and each.title not in SENTENCES]
    if left_out:
        yield from _line(Line(
            f'Left out for lack of space: {", ".join(left_out)}; see ' + (
                '-c, --max-width 0 or -f csv' if table.is_main
                else '--max-width 0')), width, False)


def _side_by_side(columns: Sequence['_Column'], widths: Sequence[int],
                  styles: Iterable[str],
                  cells: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a row, of which all cells fit their columns."""
    for parts in itertools.zip_longest(*cells, fillvalue=''):
        padded = []
        for column, width, style, text in zip(columns, widths, styles, parts):
            space = ' ' * (width - _length(text))
            text = _colored(text, style)
            padded.append(space + text if column.is_numeric else text + space)
        yield (' ' * _GAP).join(padded).rstrip()


def _below(column: '_Column', row: int, width: int | None) -> Iterator[str]:
    lines = column.lines[row]
    if _BLANK.issuperset(lines):
        return
    first, *more_lines = lines if len(lines) == 1 else ['', *lines]
    for text in (f'{" " * _INDENT}{column.title}: {first}',
                 *(f'{" " * 2 * _INDENT}{line}' for line in more_lines)):
        yield from _line(Line(text, indent=2 * _INDENT), width, False)


def yes_or_no(value: bool | None) -> str:
    return '' if value is None else 'yes' if value else 'no'


def cell_lines(cell: ty.Any) -> list[str]:
    if isinstance(cell, cliff_columns.FormattableColumn):
        return list(map(strings.line, cell.human_readable().split('\n')))
    if cell is None or cell == '':
        return ['-']
    if isinstance(cell, (list, tuple)):
        cell = ', '.join(map(str, cell))
    return [strings.line(str(cell))]


def are_numeric(cells: Iterable[Sequence[str]]) -> bool:
    """Return whether all cells are numbers or blank, and one is a number."""
    texts = {line for cell in cells for line in cell} - _BLANK
    return bool(texts) and all(map(_NUMERIC.fullmatch, texts))


class _Column:
    """A column of a table.

    :ivar natural: width in which no line is broken
    :ivar minimum: width in which no word is broken
    """

    def __init__(self, title: str, lines: Sequence[Sequence[str]]):
        self.title = title
        self.lines = lines
        self.is_numeric = are_numeric(lines)
        all_lines = [line for cell in lines for line in cell]
        self.natural = max(map(_length, [title, *all_lines]))
        self.minimum = max(
            max((_length(piece) for line in [title, *all_lines]
                 for word in _WORD.findall(line)
                 for piece in _PIECE.findall(word.lstrip())),
                default=0),
            min(max(map(_length, all_lines), default=0), _READABLE))

    def style(self, row: int) -> str:
        styles = _STYLES.get(self.title, {})
        first_word = _NOT_IN_WORD.split(self.lines[row][0], maxsplit=1)[0]
        return styles.get(first_word, styles.get(_OTHER_TEXT, ''))


def _arranged(columns: Sequence[_Column], width: int | None,
              least: Sequence[str]) -> tuple[list[_Column], list[_Column]]:
    """Return columns to show, and below rows; drop ``least``, in its order."""
    shown = _fitting(columns, width, least)
    # The others at the right, too, so that the order is the same.
    below = list(itertools.dropwhile(shown.__contains__, [
        each for each in columns if each.title in SENTENCES]))
    if below:
        shown = _fitting([each for each in columns if each not in below],
                         width, least)
    return shown, below


def _fitting(columns: Sequence[_Column], width: int | None,
             least: Sequence[str]) -> list[_Column]:
    """Return the columns that have space; the first is always shown."""
    if width is None:
        return list(columns)
    ranks = {title: rank for rank, title in enumerate(reversed(least), 1)}
    shown: list[_Column] = []
    for column in sorted(columns, key=lambda each: ranks.get(each.title, 0)):
        needed = sum(each.minimum + _GAP for each in shown) + column.minimum
        if not shown or needed <= width:
            shown.append(column)
    return [each for each in columns if each in shown]


def _widths(columns: Sequence[_Column], width: int | None) -> list[int]:
    """Return the width of each column: wide ones are made equally wide."""
    def at(level: int) -> list[int]:
        return [min(each.natural, max(each.minimum, level))
                for each in columns]

    widest = max((each.natural for each in columns), default=0)
    if width is None:
        return at(widest)
    space = max(width - _GAP * (len(columns) - 1), sum(at(0)))
    # sum(at(level)) does not fall as the level rises.
    return at(bisect.bisect_right(range(1, widest + 1), space,
                                  key=lambda level: sum(at(level))))
