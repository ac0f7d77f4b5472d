# SPDX-License-Identifier: Apache-2.0

"""Define the application ``nfv-sched`` and the base of its subcommands.

The subcommands are entry points of the group ``nfv_sched.cli``; other
packages can add theirs.
"""

import argparse
import ast
from collections.abc import Callable, Iterable, Mapping, Sequence
import contextlib
import dataclasses
import difflib
import importlib.metadata
import importlib.util
import itertools
import logging
import os
import pathlib
import sys
import typing as ty

from cliff import app
from cliff import command
from cliff import commandmanager
from cliff.formatters import base as formatters
from cliff import help
from cliff import lister
from cliff import show
from stevedore import extension

from nfv_sched.base import files
from nfv_sched.base import quiet
from nfv_sched.base import strings
from nfv_sched.ops.cli import atomic_file
from nfv_sched.ops.cli import documents
from nfv_sched.ops.cli import errors
from nfv_sched.ops.cli import formats
from nfv_sched.ops.cli import tables

NAMESPACE = 'nfv_sched.cli'

UNREAD = 1
FINDINGS = 3

EXIT_CODES = """\
exit code: 0; 1 if something could not be read, and is named; 2 if the command
line is wrong.
"""

TABLE = 'table'

#: Title of the options of commands that carry out a plan with ``--run``.
RUN_GROUP = 'with --run'
#: Title of the options of servers and OSDs on a new host.
LOAD_GROUP = 'Ceph and servers'
_COMMON_GROUPS = (
    RUN_GROUP, LOAD_GROUP, 'output formatters', 'CSV Formatter',
    'json formatter', 'shell formatter', 'table formatter', 'files',
    'the cloud')

_DESCRIPTION = """\
Answer an operator's questions about an OpenStack cloud: why a server finds no
host, how many more fit, what runs on which NUMA node. Only "plan run" and the
option --run change the cloud. No filter of nfv-sched need be enabled.

Every command reads the live cloud, where nova.conf names Nova's databases, or
a file (--from). To try one without a cloud:

  nfv-sched host list --from telco
"""

#: Question -> commands that answer it.
GROUPS = {
    'Why does a server find no host': ('server explain', 'flavor explain'),
    'How many more fit': ('capacity list', 'capacity show'),
    'What runs where': ('host list', 'host show', 'host map'),
    'Move servers and agents': (
        'host drain', 'host evacuate', 'cloud defrag', 'cloud spread',
        'cloud consolidate', 'cloud failover', 'agent rebalance', 'plan run'),
    'Check cloud, flavors and hosts': (
        'cloud audit', 'flavor lint', 'flavor translate', 'host profile'),
    'Save, watch and simulate': (
        'snapshot save', 'snapshot serve', 'metrics', 'simulation run')}


def version() -> str:
    try:
        return importlib.metadata.version('nfv-sched')
    except importlib.metadata.PackageNotFoundError:
        return 'not installed'


class _Printable:
    """A stream that escapes characters that a terminal does not show."""

    def __init__(self, stream: ty.Any):
        self._stream = stream

    def write(self, text: str) -> int:
        return self.write_escaped(strings.visible(text))

    def write_escaped(self, text: str) -> int:
        """Write text that was escaped before its colors were added."""
        encoding = getattr(self._stream, 'encoding', None)
        if encoding and not text.isascii():
            try:
                text.encode(encoding, self._stream.errors or 'strict')
            except UnicodeEncodeError:
                text = text.replace('\u2500', '-').encode(
                    encoding, 'replace').decode(encoding)
        return self._stream.write(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for text in lines:
            self.write(text)

    def __getattr__(self, name: str) -> ty.Any:
        return getattr(self._stream, name)


def protect(app: ty.Any) -> None:
    """Make a cliff application, and its log, write only visible text."""
    for name in ('stdout', 'stderr'):
        stream = getattr(app, name)
        if not isinstance(stream, _Printable):
            setattr(app, name, _Printable(stream))
    for handler in logging.getLogger().handlers:
        # Not its subclasses: they write to files.
        if type(handler) is logging.StreamHandler and not isinstance(
                handler.stream, _Printable):
            handler.setStream(_Printable(handler.stream))


class _MaskingFormatter(logging.Formatter):
    """A log formatter that masks secrets, in tracebacks too."""

    def __init__(self, formatter: logging.Formatter | None):
        super().__init__()
        self._formatter = formatter or logging.Formatter()

    def format(self, record: logging.LogRecord) -> str:
        return strings.mask_secrets(self._formatter.format(record))


def _docstring(entry_point: importlib.metadata.EntryPoint) -> str:
    """Return the docstring of a class, without the time of its import."""
    module = importlib.util.find_spec(entry_point.module)
    tree = ast.parse(pathlib.Path(module.origin).read_bytes())
    described, = (each for each in tree.body
                  if isinstance(each, ast.ClassDef)
                  and each.name == entry_point.attr)
    return ast.get_docstring(described) or ''


class _Commands(commandmanager.CommandManager):
    """The commands, each imported when it is used: cliff imports all."""

    def load_commands(self, namespace: str) -> None:
        self.group_list.append(namespace)
        for each in importlib.metadata.entry_points(group=namespace):
            self.commands[each.name.replace('_', ' ')] = each


class NFVSched(app.App):
    NAME = 'nfv-sched'

    #: Whether help leaves out what all commands have.
    is_help_brief = False

    def __init__(self):
        super().__init__(
            description=_DESCRIPTION, version=version(),
            command_manager=_Commands(NAMESPACE),
            deferred_help=True)
        # Before cliff gives the streams to the handlers of the log.
        protect(self)

    def build_option_parser(self, description, version, argparse_kwargs=None):
        parser = super().build_option_parser(
            description, version,
            {'prog': self.NAME, **(argparse_kwargs or {}),
             # The command to try stays on a line of its own.
             'formatter_class': argparse.RawDescriptionHelpFormatter})
        # cliff's says that output is suppressed.
        parser._option_string_actions['--quiet'].help = (
            'Log errors only; results are printed all the same.')
        return parser

    def run(self, argv):
        # Before cliff makes "help host list" of "host list --help".
        self.is_help_brief = argv[:1] != ['help']
        return super().run(argv)

    def print_help_if_requested(self):
        if self.options.deferred_help:
            self._print_help()

    def _print_help(self) -> ty.NoReturn:
        # cliff's own help lists the commands by letter.
        commands = dict(self.command_manager)
        groups = {**GROUPS, 'Other': sorted(
            set(commands).difference(*GROUPS.values()))}
        width = max(map(len, commands))
        self.stdout.write(self.parser.format_help())
        for title, names in groups.items():
            self.stdout.write(f'\n{title}:\n' + ''.join(
                f'  {name:<{width}}  {self._summary(name, commands[name])}\n'
                for name in names))
        raise help.HelpExit()

    def _summary(self, name: str, entry_point: ty.Any) -> str:
        try:
            is_ours = any(name in names for names in GROUPS.values())
            text = _docstring(entry_point) if is_ours else entry_point.load()(
                self, None, name).get_description()
        except Exception as exc:
            # A command of another package must not break the help.
            return f'cannot be loaded: {exc}'
        return text.partition('\n')[0].rstrip('.')

    def get_fuzzy_matches(self, cmd: str) -> list[str]:
        """Return commands that may be meant; cliff's always returns some."""
        names = sorted(self.command_manager.commands)
        if matches := [name for name in names if name.startswith(cmd)]:
            return matches
        words = {word for name in names for word in name.split()}
        near = difflib.get_close_matches(cmd, words, 1)
        return [name for name in names if set(near).intersection(name.split())]

    def configure_logging(self):
        """Set log levels; without -v or -vv, Nova's messages are not shown."""
        super().configure_logging()
        # cliff leaves the root logger at DEBUG, so Nova would spend time on
        # messages that no handler shows.
        if self.options.debug or self.options.verbose_level > 2:
            level = logging.DEBUG
        else:
            level = {0: logging.ERROR, 1: logging.WARNING}.get(
                self.options.verbose_level, logging.INFO)
        logging.getLogger('').setLevel(level)
        for handler in logging.getLogger('').handlers:
            if self.options.debug:
                handler.setLevel(logging.DEBUG)
            handler.setFormatter(_MaskingFormatter(handler.formatter))

    def run_subcommand(self, argv):
        """Run a subcommand; name similar ones on stderr if it is unknown."""
        if argv[0].startswith('-'):
            self.parser.error(f'unknown option {argv[0]}')
        if argv[0] == 'help':
            # "host list --from x --help" is "help host list --from x" here.
            argv = ['help', *itertools.takewhile(
                lambda word: not word.startswith('-'), argv[1:])]
        if argv == ['help']:
            self._print_help()
        words = argv[1:] if argv[0] == 'help' else argv
        if words and not self._is_known(words, argv[0] == 'help'):
            self.stdout = self.stderr
            argv = words
        return super().run_subcommand(argv)

    def _is_known(self, words: Sequence[str], part: bool) -> bool:
        """Return True if it exists; with ``part``, if some begin with it."""
        try:
            self.command_manager.find_command(list(words))
        except ImportError as exc:
            self.parser.error(f'{" ".join(words)} cannot be loaded: {exc}')
        except ValueError:
            return part and len(words) == 1 and any(
                name.startswith(words[0]) for name, _ in self.command_manager)
        return True


def _size(argument: str) -> int:
    if not (argument.isdecimal() and len(argument) < 7 and int(argument)):
        raise argparse.ArgumentTypeError(
            f'{argument!r} is not a number of MiB')
    return int(argument)


class Subcommand:
    """Base of the subcommands, of ``nfv-sched`` and of ``openstack nfv``.

    ``--help`` prints the docstring and epilog of a subcommand, with the line
    breaks that they have here.
    """

    #: Shown after the options.
    epilog: str
    #: What only "nfv-sched help COMMAND" shows before it.
    background = ''

    #: For ``openstack``: most subcommands need a nova.conf, not an account.
    auth_required = False

    #: The cloud that the command works on, a ``source.Source``; None if it has
    #: no options that choose one.
    cloud: ty.Any = None

    #: Option of a file that is written beside what is printed.
    writes = ''

    #: Set by a command if the operator should act on the result.
    has_findings = False

    def __init__(self, app: app.App | None, app_args: ty.Any,
                 cmd_name: str | None = None):
        super().__init__(app, app_args, cmd_name)
        #: What could not be read.
        self.unread: list[str] = []
        #: Reads the live cloud again; None before it was read.
        self.read_live: Callable[[], ty.Any] | None = None
        if app is not None:
            protect(app)

    @property
    def in_client(self) -> bool:
        """True for a command of ``openstack``, not of nfv-sched."""
        return self.app is not None and self.app.NAME != NFVSched.NAME

    def get_epilog(self) -> str:
        """Return the epilog; cliff would add the name of the package."""
        epilog = self.background + self.epilog
        if not self.in_client:
            return epilog
        return epilog.replace(
            f'\n  {NFVSched.NAME} ', f'\n  {self.app.NAME} nfv ')

    def check(self, parsed_args: argparse.Namespace) -> None:
        """Check the command line; raise UsageError if options contradict."""
        if self.cloud is not None:
            self.cloud.check(parsed_args)

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Run the command, libraries' warnings and logs suppressed.

        Errors are printed in one line each, and decide the exit code.
        """
        self.unread = []
        self.read_live = None
        stdout = self.app.stdout
        try:
            self.check(parsed_args)
            if self.writes and atomic_file.is_stdout(
                    getattr(parsed_args, self.writes)):
                self.app.stdout = self.app.stderr
            with contextlib.ExitStack() as stack:
                stack.enter_context(files.limited(parsed_args.max_file_size))
                stack.enter_context(quiet.warnings_ignored())
                if self.app.options.verbose_level <= 1 and (
                        not self.app.options.debug):
                    stack.enter_context(quiet.logs_ignored())
                code = super().run(parsed_args)
        except errors.CommandError as exc:
            for line in str(exc).splitlines():
                self.print_error(line)
            if isinstance(exc, errors.NotConfiguredError):
                self._print_sources()
            if not (self.unread and exc.may_be_unread):
                return 2 if isinstance(exc, errors.UsageError) else UNREAD
        except BrokenPipeError:
            raise  # main() ends the command without an error
        except OSError as exc:
            return self.print_error(exc.strerror or exc)
        except Exception as exc:
            if self.app.options.debug:
                raise
            return self.print_error(
                f'internal error: {type(exc).__name__}: {exc}; '
                '--debug before the command shows where')
        finally:
            self.app.stdout = stdout
        for text in self.unread:
            self.print_error(text)
        if self.unread:
            return UNREAD
        return code or (FINDINGS if self.has_findings else 0)

    def _print_sources(self) -> None:
        for option, help_text in (
                ('--config-file FILE', 'nova.conf of nova-scheduler, which '
                 "names Nova's databases"),
                *(self.cloud.usage(self.in_client) if self.cloud else ())):
            self.app.stderr.write(f'  {option:<18}  {help_text}\n')

    def print_error(self, error: ty.Any) -> int:
        self.app.stderr.write(f'error: {strings.one_line(error)}\n')
        return UNREAD

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        # The application openstack makes "help COMMAND" of --help, too.
        if is_brief := getattr(self.app, 'is_help_brief', not {
                '-h', '--help'}.isdisjoint(sys.argv)):
            self.background = ''
        parser = super().get_parser(prog_name)
        parser.formatter_class = argparse.RawDescriptionHelpFormatter
        # A new option must not change what an abbreviation means: --image was
        # --image-property.
        parser.allow_abbrev = False
        # In a group of its own: it is not what help begins with.
        parser.add_argument_group('files').add_argument(
            files.OPTION, metavar='MIB', type=_size, default=files.DEFAULT,
            help='maximum size of a file to read, after decompression; the '
                 'number of items that it may have grows with it (default: '
                 f'{files.DEFAULT})')
        if self.cloud is not None:
            self.cloud.add_options(parser, self.in_client)
        self.add_options(parser)
        if sorting := parser._option_string_actions.get('--sort-column'):
            # cliff's says that columns which do not exist are ignored.
            sorting.help = (
                'sort by this column, named by its title or as "pcpus_used"; '
                'can be repeated, the first one counts most')
        if is_brief:
            _shorten_help(parser)
        return parser

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """Add the options of a subcommand; by default, none."""


def _shorten_help(parser: argparse.ArgumentParser) -> None:
    """Leave out what many commands have, but for ``--from``."""
    for group in parser._action_groups:
        if group.title in _COMMON_GROUPS:
            group.description = None
            for action in group._group_actions:
                if action.dest != 'source':
                    action.help = argparse.SUPPRESS
    usage = parser.formatter_class(f'{parser.prog} [options]')
    usage.add_usage(None, parser._get_positional_actions(), (), '')
    parser.usage = usage.format_help().strip()
    parser.epilog = (
        'Other options, as for files and formats: '
        f'{parser.prog.replace(" ", " help ", 1)}\n\n{parser.epilog}')


class _Displaying(Subcommand):
    """Base of the subcommands that print values in several formats.

    For ``openstack``, too, only these formats are loaded: other packages may
    have added some that quote less.
    """

    #: Name of each format -> its class.
    formats: Mapping[str, type[formatters.Formatter]]

    #: Name of each JSON schema in doc/source/schemas -> what it describes.
    schemas: Mapping[str, type] = {}

    #: What is printed as JSON or YAML; set by ``take_action``.
    _document: documents.Document

    def _load_formatter_plugins(self) -> ty.Any:
        return extension.ExtensionManager.make_test_instance([
            extension.Extension(name, None, formatter, formatter())
            for name, formatter in self.formats.items()])

    def produce_output(self, parsed_args: argparse.Namespace,
                       column_names: Sequence[str], data: Iterable) -> int:
        """Print a document; raise UsageError if no chosen column is a key."""
        if parsed_args.formatter not in documents.FORMATS:
            return super().produce_output(parsed_args, column_names, data)
        self.app.stdout.write(self._document.text(
            parsed_args.formatter, columns=parsed_args.columns,
            sort_columns=getattr(parsed_args, 'sort_columns', ()),
            descending=getattr(parsed_args, 'sort_direction', '') == 'desc',
            indent=not parsed_args.noindent))
        return 0

    @staticmethod
    def check_columns(parsed_args: argparse.Namespace,
                      column_names: Sequence[str]) -> None:
        """Check that the requested columns exist, and use their titles."""
        # As in a document, server_id stands for "Server ID".
        titles = {documents.key_of(name): name for name in column_names}
        unknown = [
            name for name in (*parsed_args.columns,
                              *getattr(parsed_args, 'sort_columns', ()))
            if documents.key_of(name) not in titles]
        if unknown:
            raise errors.UsageError(
                f'no column {", ".join(unknown)}; there are: '
                f'{", ".join(column_names)}')
        parsed_args.columns = [titles[documents.key_of(name)]
                               for name in parsed_args.columns]


class Command(Subcommand, command.Command):
    """Base of the subcommands that print free text."""


class Lister(_Displaying, lister.Lister):
    formats = formats.LIST

    # It would compare cells as text; produce_output sorts numbers, too.
    need_sort_by_cliff = False

    #: Columns that a table has only if --column names them.
    details: Sequence[str] = ()

    #: Columns that a table loses first where there is no space for all.
    least_important: Sequence[str] = ()

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.set_defaults(least_important=self.least_important)
        return parser

    def produce_output(self, parsed_args: argparse.Namespace,
                       column_names: Sequence[str],
                       data: Iterable[Sequence[ty.Any]]) -> int:
        # A document has rows of its own.
        if parsed_args.formatter not in documents.FORMATS:
            self.check_columns(parsed_args, column_names)
            data = sorted_by(parsed_args, column_names, data)
        if parsed_args.formatter == TABLE and not parsed_args.columns:
            shown = [name not in self.details for name in column_names]
            column_names = list(itertools.compress(column_names, shown))
            data = [list(itertools.compress(row, shown)) for row in data]
        return super().produce_output(parsed_args, column_names, data)

    def cells(
        self, parsed_args: argparse.Namespace,
        columns: Sequence[tables.Column], rows: Iterable[ty.Any],
    ) -> tuple[Sequence[str], Iterable[Sequence[ty.Any]]]:
        if parsed_args.formatter != TABLE:
            columns = [each for each in columns if each.value is not None]
            return [column.title for column in columns], [
                [column.cell(row) for column in columns] for row in rows]
        details = [column for column in columns if column.is_detail]
        self.details = (*self.details, *(each.title for each in details))
        columns = [*(each for each in columns if not each.is_detail), *details]
        return [column.title for column in columns], [
            [column.for_people(row) for column in columns] for row in rows]

    def print_text(self, parsed_args: argparse.Namespace,
                   parts: Iterable[tables.Part]) -> None:
        formats.print_parts([dataclasses.replace(part, rows=list(sorted_by(
            parsed_args, part.columns, part.rows))) if isinstance(
                part, tables.Table) and part.is_main else part
            for part in parts], self.app.stdout, parsed_args)


def sorted_by(parsed_args: argparse.Namespace, columns: Sequence[str],
              rows: Iterable[Sequence[ty.Any]]) -> Iterable[Sequence[ty.Any]]:
    """Sort rows as ``--sort-column`` says; ignore columns they lack."""
    keys = list(map(documents.key_of, columns))
    for name in reversed(parsed_args.sort_columns):
        if documents.key_of(name) in keys:
            rows = formats.sorted_rows(
                rows, keys.index(documents.key_of(name)),
                parsed_args.sort_direction == 'desc')
    return rows


def on_screen(
    parsed_args: argparse.Namespace, table: tables.Table,
    columns: Sequence[str], rows: Iterable[Sequence[ty.Any]],
) -> tuple[Sequence[str], Iterable[Sequence[ty.Any]]]:
    """Return the columns and rows that ``--column`` chooses from.

    :param table: of the screen; unless only the rows of the other formats
        have what the command line names, it counts
    """
    keys = set(map(documents.key_of, (
        *parsed_args.columns, *parsed_args.sort_columns)))
    if keys <= set(map(documents.key_of, columns)) and not keys <= set(
            map(documents.key_of, table.columns)):
        return columns, rows
    return table.columns, table.rows


class ShowOne(_Displaying, show.ShowOne):
    formats = formats.SHOW

    def produce_output(self, parsed_args: argparse.Namespace,
                       column_names: Sequence[str], data: Iterable) -> int:
        if parsed_args.formatter not in documents.FORMATS:
            self.check_columns(parsed_args, column_names)
        return super().produce_output(parsed_args, column_names, data)


def add_configuration(
    parser: argparse.ArgumentParser | argparse._ArgumentGroup,
    more: str = '',
) -> None:
    parser.add_argument(
        '--config-file', action='append', default=[], metavar='FILE',
        help='configuration of nova-scheduler (default: nova.conf where '
             f'Nova looks for it){more}; can be repeated')


def configuration(parsed_args: argparse.Namespace) -> list[str]:
    """Return Nova's arguments for the files of :func:`add_configuration`."""
    return [f'--config-file={name}' for name in parsed_args.config_file]


def discard_output(stream: ty.TextIO | None = None) -> None:
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, (stream or sys.stdout).fileno())
    os.close(null)


def main(argv: Sequence[str] | None = None) -> int:
    if not (argv := list(sys.argv[1:] if argv is None else argv)):
        argv = ['--help']
    try:
        code = NFVSched().run(argv)
        sys.stdout.flush()
        return code
    except SystemExit as e:
        if e.code is None:
            return 0
        return e.code if isinstance(e.code, int) else 2
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        discard_output()
        return 0
    except OSError as exc:
        # Flushing the output failed, for example because a disk is full.
        discard_output()
        sys.stderr.write(f'error: {exc.strerror or exc}\n')
        return 1


if __name__ == '__main__':
    sys.exit(main())
