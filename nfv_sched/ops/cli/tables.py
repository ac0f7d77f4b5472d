# SPDX-License-Identifier: Apache-2.0
"""Render tables and lines of text for people, and values for programs.

Lines are broken at spaces, and at commas where that is not enough, but never
inside a word, so that numbers, keys and names can be found and copied.
Where there is no space for all columns, reasons and advice are printed below
their rows, and other columns are left out and named.
"""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import io
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
_FIRST_WORD = re.compile(r'\w*')

#: Columns that are not left out: the answers of a table, in sentences.
SENTENCES = frozenset({
    'Do', 'Finding', 'Lacks', 'Limiting resource', 'Next', 'Reason', 'Remark',
    'Stranded', 'What to do', 'Why'})

GOOD, MEDIUM, BAD = 'green', 'yellow', 'red'
_OTHER_TEXT = ''
#: Column -> first word of a cell -> its style on a terminal.
_STYLES: Mapping[str, Mapping[str, str]] = {
    'Class': {'error': BAD},
    'How': {'live': GOOD, 'live,': MEDIUM, 'cold': MEDIUM, 'not': BAD},
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
    """Return a table of what people see of some rows."""
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
    return ''.join(_rendered(part, width, color) for part in parts)


def _rendered(part: Part, width: int | None, color: bool) -> str:
    match part:
        case Table():
            return _table(part, width, color)
        case Line():
            return _line(part, width, color)
    return _line(Line(part), width, color)


def _line(line: Line, width: int | None, color: bool) -> str:
    first, *more_lines = _wrapped(strings.line(line.text),
                                  None if line.is_command else width,
                                  line.indent)
    text = '\n'.join(
        [first, *(' ' * line.indent + each for each in more_lines)])
    if not (color and line.style):
        return f'{text}\n'
    from rich import text as rich_text
    return _printed(rich_text.Text(text, line.style), None, color)


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
    """Return the number of columns of a terminal that a text takes."""
    if text.isascii():
        return len(text)
    from rich import cells
    return cells.cell_len(text)


def _table(table: Table, width: int | None, color: bool) -> str:
    rows = [tuple(map(cell_lines, row)) for row in table.rows]
    columns = [_Column(title, [row[number] for row in rows])
               for number, title in enumerate(table.columns)]
    shown, below = (columns, []) if table.is_whole else _arranged(
        columns, width, table.least_important)
    widths = _widths(shown, width)
    # Without columns below them, the rows are one table.
    slices = [slice(number, number + 1) for number in range(len(rows))
              ] if below and rows else [slice(None)]
    text = ''.join(
        _printed(_rich_table(shown, widths, rows_of), sum(widths) + (
            _GAP * len(shown)), color) + ''.join(
                _below(each, rows_of.start, width)
                for each in below if rows)
        for rows_of in slices)
    left_out = [each.title for each in columns
                if each not in shown and each.title not in SENTENCES]
    if left_out:
        text += _line(Line(
            f'Left out for lack of space: {", ".join(left_out)}; see ' + (
                '-c, --max-width 0 or -f csv' if table.is_main
                else '--max-width 0')), width, False)
    return text


def _below(column: '_Column', row: int, width: int | None) -> str:
    lines = column.lines[row]
    if _BLANK.issuperset(lines):
        return ''
    if len(lines) > 1:
        lines = ['', *lines]
    return ''.join(_line(Line(
        f'{" " * _INDENT}{column.title}: {line}' if not number
        else f'{" " * 2 * _INDENT}{line}', indent=2 * _INDENT), width, False)
        for number, line in enumerate(lines))


def yes_or_no(value: bool | None) -> str:
    return '' if value is None else 'yes' if value else 'no'


def cell_lines(cell: ty.Any) -> list[str]:
    """Return the lines of a cell, safe to print."""
    if isinstance(cell, cliff_columns.FormattableColumn):
        return list(map(strings.line, cell.human_readable().split('\n')))
    if cell is None or cell == '':
        return ['-']
    if isinstance(cell, (list, tuple)):
        cell = ', '.join(map(str, cell))
    return [strings.line(str(cell))]


def are_numeric(cells: Iterable[Sequence[str]]) -> bool:
    """Return whether all cells, given as lines, are numbers or blank.

    At least one must be a number.
    """
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
        all_lines = [line for cell in lines for line in cell]
        self.natural = max(map(_length, [title, *all_lines]))
        self.minimum = max(
            max((_length(piece) for line in [title, *all_lines]
                 for word in _WORD.findall(line)
                 for piece in _PIECE.findall(word.lstrip())),
                default=0),
            min(max(map(_length, all_lines), default=0), _READABLE))

    @property
    def is_numeric(self) -> bool:
        return are_numeric(self.lines)


def _arranged(columns: Sequence[_Column], width: int | None,
              least: Sequence[str]) -> tuple[list[_Column], list[_Column]]:
    """Return the columns of a table, and those below its rows.

    :param least: the least important columns, the first is left out first
    """
    sentences = [each for each in columns if each.title in SENTENCES]
    shown = _fitting(columns, width, least)
    for number, column in enumerate(sentences):
        if column not in shown:
            # The others at the right, too, so that the order is the same.
            below = sentences[number:]
            return _fitting([each for each in columns if each not in below],
                            width, least), below
    return shown, []


def _fitting(columns: Sequence[_Column], width: int | None,
             least: Sequence[str]) -> list[_Column]:
    """Return the columns that have space; the first is always shown."""
    if width is None:
        return list(columns)
    order = [each for each in columns if each.title not in least]
    order += [each for title in reversed(least)
              for each in columns if each.title == title]
    shown: set[_Column] = set(order[:1])
    for column in order[1:]:
        if sum(each.minimum for each in {*shown, column}) + (
                _GAP * len(shown)) <= width:
            shown.add(column)
    return [each for each in columns if each in shown]


def _widths(columns: Sequence[_Column], width: int | None) -> list[int]:
    """Return the width of each column: wide ones are made equally wide."""
    def at(level: int) -> list[int]:
        return [min(each.natural, max(each.minimum, level))
                for each in columns]

    level = max((each.natural for each in columns), default=0)
    if width is None:
        return at(level)
    space = max(width - _GAP * (len(columns) - 1),
                sum(each.minimum for each in columns))
    # sum(at(level)) does not fall as the level rises.
    low = 0
    while low < level:
        middle = (low + level + 1) // 2
        if sum(at(middle)) <= space:
            low = middle
        else:
            level = middle - 1
    return at(low)


def _rich_table(columns: Sequence[_Column], widths: Sequence[int],
                rows: slice) -> ty.Any:
    """Return a table of some rows; only with the first it has the titles."""
    from rich import box
    from rich import table as rich_table
    from rich import text as rich_text
    table = rich_table.Table(
        box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=0,
        header_style='', show_header=not rows.start)
    cells = []
    gap = ''
    for column, width in zip(columns, widths):
        # Not rich's padding, which makes the last column too wide before 14.1.
        indent = '' if column.is_numeric else gap
        table.add_column(
            rich_text.Text('\n'.join(
                indent + part for part in _wrapped(column.title, width))),
            width=len(gap) + width, no_wrap=True,
            justify='right' if column.is_numeric else 'left')
        gap = ' ' * (_GAP - 1)
        styles = _STYLES.get(column.title, {})
        cells.append([rich_text.Text('\n'.join(
            indent + part for line in lines
            for part in _wrapped(line, width)),
            styles.get(_first_word(lines), styles.get(_OTHER_TEXT, '')))
            for lines in column.lines[rows]])
    for row in zip(*cells):
        table.add_row(*row)
    return table


def _first_word(lines: Sequence[str]) -> str:
    return ty.cast(re.Match, _FIRST_WORD.match(lines[0] if lines else ''))[0]


def _printed(renderable: ty.Any, width: int | None, color: bool) -> str:
    from rich import console as rich_console
    console = rich_console.Console(
        file=io.StringIO(), width=width or 1 << 16, markup=False,
        color_system='standard' if color else None, emoji=False,
        highlight=False, force_terminal=color, no_color=not color)
    console.print(renderable, soft_wrap=width is None)
    lines = ty.cast(io.StringIO, console.file).getvalue().splitlines()
    return ''.join(f'{line.rstrip()}\n' for line in lines)
