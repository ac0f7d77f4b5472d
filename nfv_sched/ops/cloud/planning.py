# SPDX-License-Identifier: Apache-2.0
"""Define the base of commands that print a plan or a report.

Each prints text for people, rows for scripts (``-f value``, ``-f csv``), and
everything as a document (``-f json``, ``-f yaml``).  A plan can also be
printed as commands to run (``-f commands``).
"""

import abc
import argparse
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
import dataclasses
import shlex
import typing as ty

from nfv_sched.ops import atomic_file
from nfv_sched.ops.cli import base
from nfv_sched.ops.cli import documents
from nfv_sched.ops.cli import formats
from nfv_sched.ops.cloud import source

if ty.TYPE_CHECKING:
    from nfv_sched.ops.cli import tables

MOVES_HELP = """\
With -f commands: a script for sh, with comments. It waits for the end of each
move, and stops at the first command that fails, and at the first server that
is not on its new host. If the plan does not do all that was asked for, the
script says on stderr what is left, and ends with 3.
"""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """The result of a command, prepared for all formats.

    :ivar text: for people, with a table of some of the columns
    :ivar columns: titles of the columns
    :ivar rows: rows with a value for each column
    :ivar document: for JSON and YAML
    :ivar commands: lines for a shell; comments begin with ``#``
    """

    text: 'Sequence[tables.Part]'
    columns: Sequence[str]
    rows: Sequence[Sequence[ty.Any]]
    document: documents.Document
    commands: Sequence[str] = ()


class Report(source.CloudMixin, base.Lister, metaclass=abc.ABCMeta):
    """Base of the commands that report something about the cloud."""

    @abc.abstractmethod
    def report(self, parsed_args: argparse.Namespace) -> Output:
        """Compute the result; set ``found`` if it calls for action."""

    def take_action(self, parsed_args: argparse.Namespace) -> tuple:
        """Return columns and rows; called by cliff."""
        self._output = self.report(parsed_args)
        return self._output.columns, self._output.rows

    def document(self, column_names: Sequence[str],
                 data: Iterable) -> documents.Document:
        """Return the document; called by the base class."""
        return self._output.document

    def produce_output(self, parsed_args: argparse.Namespace,
                       column_names: Sequence[str],
                       data: Iterable) -> int:
        """Print the result in the chosen format; with --column, as rows."""
        formatter, output = parsed_args.formatter, self._output
        if formatter == formats.COMMANDS:
            self.app.stdout.write(
                ''.join(f'{line}\n' for line in output.commands))
        elif formatter == base.TABLE and not parsed_args.columns:
            self.check_columns(parsed_args, column_names)
            self.print_text(parsed_args, output.text)
        else:
            return super().produce_output(parsed_args, column_names, data)
        return 0


def incomplete(sentences: Iterable[str]) -> Iterator[str]:
    """Yield the end of a script that does not do all that was asked for.

    :param sentences: what is left to do; without any, there are no lines
    """
    messages = [' '.join(each.split()) for each in sentences]
    for message in messages:
        yield shlex.join(('printf', '%s\\n', message)) + ' >&2'
    if messages:
        yield f'exit {source.FINDINGS}'


def add_save(parser: argparse.ArgumentParser) -> None:
    """Add the option for the file of a plan."""
    parser.add_argument(
        '--save', metavar='FILE',
        help='also write the plan to a file, for "plan run FILE"')


def save(path: str, document: documents.Document) -> None:
    """Write a plan to a file, as ``-f json`` prints it.

    :raises CloudUnreadError: if it cannot be written
    """
    content = document.text('json').encode()
    try:
        atomic_file.write(path, lambda file: file.write(content))
    except atomic_file.WriteError as exc:
        raise source.CloudUnreadError(str(exc)) from exc


class PlanCommand(Report):
    """Base of the commands that plan; adds ``commands`` and ``--save``."""

    formats = {**formats.LIST, formats.COMMANDS: formats.Commands}

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser; subclasses add their options."""
        parser = super().get_parser(prog_name)
        add_save(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple:
        """Return columns and rows, and save the plan; called by cliff."""
        result = super().take_action(parsed_args)
        if parsed_args.save is not None:
            save(parsed_args.save, self._output.document)
        return result
