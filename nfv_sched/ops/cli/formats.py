# SPDX-License-Identifier: Apache-2.0
"""Adapt cliff's output formats so that any value is printed safely.

Values include names that tenants chose and the content of edited files: none
may become a command of a shell, a formula or another row.
"""

import argparse
from collections.abc import Iterable, Sequence
import os
import re
import shlex
import shutil
import typing as ty

from cliff import columns
from cliff.formatters import base
from cliff.formatters import commaseparated
from cliff.formatters import json_format
from cliff.formatters import shell
from cliff.formatters import value
from cliff.formatters import yaml_format

from nfv_sched.base import strings
from nfv_sched.ops.cli import tables

# OWASP, "CSV Injection"; the last four are the full-width forms.
_FORMULA = re.compile('[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20]')
# A number, alone or followed by something like "/40" or " of 40".
_FIGURES = re.compile(r'[+-]?\d+(\.\d+)?(?![^ /])', re.ASCII)
_NUMBER = re.compile(r'[+-]?\d+(?:\.\d+)?', re.ASCII)
#: Cells that stand for no value.
_BLANK = (None, '', '-')
_NOT_IN_NAME = re.compile('[^A-Za-z0-9_]')


class Commands(base.ListFormatter):
    """A format that prints only the first column, without its title."""

    def add_argument_group(self, parser):
        """Add no options; called by cliff."""

    def emit_list(self, column_names, data, stdout, parsed_args):
        for row in data:
            stdout.write(f'{row[0]}\n')


class CSV(commaseparated.CSVLister):
    """A CSV format with no value that a spreadsheet would run as a formula."""

    def emit_list(self, column_names, data, stdout, parsed_args):
        # After a line break would be a row, for programs that read lines; if
        # it is unquoted, even a formula.
        rows = [list(_lines(map(_no_formula, row))) for row in data]
        super().emit_list(list(map(_no_formula, column_names)), rows, stdout,
                          parsed_args)


class Shell(shell.ShellFormatter):
    """A format of variables for a POSIX shell, each value quoted."""

    def emit_one(self, column_names, data, stdout, parsed_args):
        for title, cell in zip(column_names, data):
            name = _NOT_IN_NAME.sub('_', title.lower())
            if parsed_args.variables and name not in parsed_args.variables:
                continue
            name = _NOT_IN_NAME.sub('_', parsed_args.prefix + name)
            if name[:1].isdigit():
                name = f'_{name}'
            stdout.write(f'{name}={shlex.quote(str(machine(cell)))}\n')


class TableFormatter(base.ListFormatter, base.SingleFormatter):
    """A table that fits the terminal; see :mod:`nfv_sched.ops.cli.tables`."""

    def add_argument_group(self, parser):
        group = parser.add_argument_group('table formatter')
        group.add_argument(
            '--max-width', metavar='<integer>', type=int,
            default=_variable('CLIFF_MAX_TERM_WIDTH'),
            help='maximum width of lines, 0 for no limit (default: COLUMNS, '
                 'or that of the terminal). Columns that do not fit are left '
                 'out and named, or lines below their row')
        group.add_argument(
            '--fit-width', action='store_true',
            default=bool(_variable('CLIFF_FIT_WIDTH')),
            help='limit the width in a pipe or a file, too: to COLUMNS, or 80')
        group.add_argument(
            '--print-empty', action='store_true',
            help='print the titles if there are no rows')

    def emit_list(self, column_names, data, stdout, parsed_args):
        rows = list(data)
        if rows or parsed_args.print_empty:
            print_parts([tables.Table(
                column_names, rows, is_whole=bool(parsed_args.columns),
                least_important=getattr(parsed_args, 'least_important', ()))],
                stdout, parsed_args)

    def emit_one(self, column_names, data, stdout, parsed_args):
        print_parts([tables.Table(
            ('Field', 'Value'), list(zip(column_names, data)),
            is_whole=True)], stdout, parsed_args)


def print_parts(parts: Iterable[tables.Part], stdout: ty.Any,
                parsed_args: argparse.Namespace) -> None:
    color = stdout.isatty() and not os.environ.get('NO_COLOR') and (
        os.environ.get('TERM') != 'dumb')
    text = tables.render(parts, width(stdout, parsed_args), color)
    # Everything but the colors is escaped already.
    (stdout.write_escaped if color else stdout.write)(text)


def width(stdout: ty.Any, parsed_args: argparse.Namespace) -> int | None:
    """Return the maximum width of lines; None for no limit."""
    if parsed_args.max_width is not None:
        return max(parsed_args.max_width, 0) or None
    if columns := _variable('COLUMNS'):
        return columns
    if stdout.isatty():
        return shutil.get_terminal_size().columns
    return 80 if parsed_args.fit_width else None


def _variable(name: str) -> int | None:
    text = os.environ.get(name, '')
    return int(text) if text.isascii() and text.isdigit() else None


class Value(value.ValueFormatter):
    def emit_list(self, column_names, data, stdout, parsed_args):
        super().emit_list(column_names, map(_cells, data), stdout, parsed_args)

    def emit_one(self, column_names, data, stdout, parsed_args):
        super().emit_one(column_names, _cells(data), stdout, parsed_args)


_ALL = {'json': json_format.JSONFormatter, 'table': TableFormatter,
        'value': Value, 'yaml': yaml_format.YAMLFormatter}
#: Formats of commands that print a table, and names and values.
LIST = {'csv': CSV, **_ALL}
SHOW = dict(sorted({**_ALL, 'shell': Shell}.items()))
#: Name of the format of commands to run, one per line, with # comments.
COMMANDS = 'commands'


def sorted_rows(rows: Iterable[ty.Any], column: int | str,
                descending: bool) -> list[ty.Any]:
    """Return rows by a column, or key: numbers, then text, then blanks."""
    filled: list[ty.Any] = []
    blank: list[ty.Any] = []
    for row in rows:
        (blank if machine(row[column]) in _BLANK else filled).append(row)
    return sorted(filled, key=lambda row: _order(machine(row[column])),
                  reverse=descending) + blank


def _order(cell: ty.Any) -> tuple[bool, Sequence[float], str]:
    """Return the sort key of a filled cell: ``8/40`` before ``10/40``."""
    if isinstance(cell, (int, float)):
        return False, [cell], ''
    text = str(cell)
    numbers = [float(number) for number in _NUMBER.findall(text)
               ] if _FIGURES.match(text) else []
    return not numbers, numbers, text


def machine(cell: ty.Any) -> ty.Any:
    return (cell.machine_readable()
            if isinstance(cell, columns.FormattableColumn) else cell)


def _cells(row: Iterable[ty.Any]) -> Sequence[ty.Any]:
    # Blank, as in CSV, not None.
    return _lines('' if cell is None else cell for cell in map(machine, row))


def _lines(row: Iterable[ty.Any]) -> Sequence[ty.Any]:
    return [strings.line(cell) if isinstance(cell, str) else cell
            for cell in row]


def _no_formula(cell: ty.Any) -> ty.Any:
    cell = machine(cell)
    if cell is None or isinstance(cell, (bool, int, float)):
        return cell
    text = str(cell)
    # "-" stands for no value.
    if not _FORMULA.match(text) or text == '-' or _NUMBER.fullmatch(text):
        return strings.visible(text)
    return f"'{strings.visible(text)}"
