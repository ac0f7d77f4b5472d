# SPDX-License-Identifier: Apache-2.0
"""Format tables and lines of text for people, and values for programs."""

from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import enum
import io
import typing as ty

from cliff import columns as cliff_columns
from rich import box
from rich import console as rich_console
from rich import table as rich_table
from rich import text as rich_text

from nfv_sched import strings

#: Most characters of a line.
WIDTH = 120
count = strings.count


class Lines(cliff_columns.FormattableColumn):
    """A cell of several lines, with line breaks inside them escaped."""

    def human_readable(self) -> str:
        return '\n'.join(map(strings.line, self._value))

    def machine_readable(self) -> str:
        return '; '.join(self._value)


def wrapped(lines: Sequence[str]) -> str:
    """Return lines as text, each broken where it is too long."""
    return ''.join(_printed(rich_text.Text(strings.line(line)))
                   for line in lines)


def table(columns: Sequence[str], rows: Iterable[Sequence[ty.Any]]) -> str:
    """Return a table as text, with columns of numbers aligned to the right.

    :param columns: titles of the columns
    :param rows: rows with a value for each column
    """
    table = rich_table.Table(box=box.SIMPLE_HEAD, pad_edge=False,
                             show_edge=False)
    rows = [tuple(map(_shown, row)) for row in rows]
    for number, column in enumerate(columns):
        numeric = bool(rows) and all(
            row[number] == '-' or row[number].isdigit() for row in rows)
        table.add_column(rich_text.Text(column), overflow='fold',
                         justify='right' if numeric else 'left')
    for row in rows:
        table.add_row(*map(rich_text.Text, row))
    return _printed(table)


def _shown(cell: ty.Any) -> str:
    return (cell.human_readable() if isinstance(cell, Lines)
            else strings.line(str(cell)))


def _printed(renderable: ty.Any) -> str:
    console = rich_console.Console(
        file=io.StringIO(), width=WIDTH, color_system=None, markup=False,
        emoji=False, highlight=False, force_terminal=False)
    console.print(renderable)
    lines = ty.cast(io.StringIO, console.file).getvalue().splitlines()
    return ''.join(f'{line.rstrip()}\n' for line in lines)


def plain(value: ty.Any) -> ty.Any:
    """Return a value made of types that JSON and YAML have.

    :param value: of dataclasses, enums, sequences, mappings and JSON types
    """
    if dataclasses.is_dataclass(value):
        return {field.name: plain(getattr(value, field.name))
                for field in dataclasses.fields(value)}
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, (tuple, list)):
        return [plain(each) for each in value]
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    return value
