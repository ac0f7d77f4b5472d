# SPDX-License-Identifier: Apache-2.0
"""Read the cloud that a command works on, and report what could not be read.

The cloud comes from Nova's databases or from a file, and its flavors, servers
and agents of Neutron also from the API alone.  The commands print values and
exit with 0 if all is well, 1 if something could not be read, 2 if the command
line is wrong, 3 if the operator should act on the result.
"""

import argparse
import collections
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from collections.abc import Sequence
import dataclasses
import errno
import fnmatch
import math
import os
import re
import typing as ty

from nfv_sched.base import strings
from nfv_sched.nova import concurrency
from nfv_sched.ops.cli import atomic_file
from nfv_sched.ops.cli import base
from nfv_sched.ops.cli import documents
from nfv_sched.ops.cli import formats
from nfv_sched.ops.cloud.cloud_file import examples
from nfv_sched.ops.cloud import file
from nfv_sched.ops.cloud import names as name_checks
from nfv_sched.ops.cloud import options as cloud_options
from nfv_sched.ops.cloud import problems
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.simulator import progress

UNREAD = 1
FINDINGS = 3

EXIT_CODES = """\
exit code: 0; 1 if something could not be read, and is named; 2 if the command
line is wrong.
"""

_NOT_IN_API = (
    'with --api or --os-cloud: the API shows no NUMA nodes, CPUs, pages and '
    'devices of hosts; save a snapshot where nova.conf names Nova\'s '
    'databases, "openstack nfv snapshot save FILE", or serve it, "openstack '
    'nfv snapshot serve", and use --from FILE or --from URL')

_HOST = 'host'
# Maximum number of hosts to add.
_MOST_NEW = 1000
# Maximum number of ports of a new server; each is an object of Nova.
_MOST_PORTS = 1000
# What makes a pattern of a name.
_WILDCARD = re.compile('[*?[]')
_UNUSABLE = 'the configuration cannot be used: '
# The form of the name of an example.
_EXAMPLE = re.compile(r'(\w[\w-]*/)?\w[\w-]*')


#: Options of :func:`add_changes`, for people.
CHANGES = '--add-hosts, --remove-host and --limit'


class CloudUnreadError(Exception):
    """The cloud cannot be read at all; the message says why."""


class NotConfiguredError(CloudUnreadError):
    """No configuration file names a database of Nova."""


class UsageError(Exception):
    """The command line is wrong; the message says why."""


class NotInCloudError(UsageError):
    """The cloud, as far as it was read, lacks what the command line names.

    It may be among what could not be read.
    """


#: Exceptions that are reported as one line per problem, without a traceback.
EXPECTED = (CloudUnreadError, UsageError, problems.InputError)


class ErrorMixin:
    """Mixin of a subcommand that reads something, also by an account.

    It goes before ``base.Command``.  Errors are printed in one line each and
    decide the exit code.
    """

    #: Set by a command if the operator should act on the result.
    has_findings = False

    #: Option of a file that is written beside what is printed.
    writes = ''

    def run(self, parsed_args: argparse.Namespace) -> int:
        self._missing: list[str] = []
        self._read_live: Callable[[], snapshot.Cloud] | None = None
        stdout = self.app.stdout
        try:
            self.check(parsed_args)
            if self.writes and atomic_file.is_stdout(
                    getattr(parsed_args, self.writes)):
                self.app.stdout = self.app.stderr
            code = super().run(parsed_args)
        except EXPECTED as exc:
            for line in str(exc).splitlines():
                self.print_error(line)
            if isinstance(exc, NotConfiguredError):
                for option, help_text in self.cloud_options():
                    self.app.stderr.write(f'  {option:<18}  {help_text}\n')
            # The name may be in a part of the cloud that was not read.
            if not (self._missing and isinstance(
                    exc, (NotInCloudError, problems.InputError))):
                return 2 if isinstance(exc, UsageError) else UNREAD
        except BrokenPipeError:
            raise  # main() ends the command without an error
        except OSError as exc:
            self.print_error(exc.strerror or exc)
            return UNREAD
        except Exception as exc:
            if self.app.options.debug:
                raise
            self.print_error(
                f'internal error: {type(exc).__name__}: {exc}; '
                '--debug before the command shows where')
            return UNREAD
        finally:
            self.app.stdout = stdout
        for text in self._missing:
            self.print_error(text)
        if self._missing:
            return UNREAD
        return code or (FINDINGS if self.has_findings else 0)

    def cloud_options(self) -> Sequence[tuple[str, str]]:
        """Return the options that choose a cloud, each with its meaning."""
        return [('--config-file FILE', 'nova.conf of nova-scheduler, which '
                 "names Nova's databases")]

    def check(self, parsed_args: argparse.Namespace) -> None:
        """Check the command line before anything is read.

        :raises UsageError: if options contradict each other
        """

    def produce_output(self, parsed_args: argparse.Namespace,
                       column_names: Sequence[str], data: Iterable) -> int:
        if parsed_args.formatter not in documents.FORMATS:
            self.check_columns(parsed_args, column_names)
        try:
            return super().produce_output(parsed_args, column_names, data)
        except documents.UnknownKeyError as exc:
            raise UsageError(str(exc)) from exc

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
            raise UsageError(f'no column {", ".join(unknown)}; there are: '
                             f'{", ".join(column_names)}')
        parsed_args.columns = [titles[documents.key_of(name)]
                               for name in parsed_args.columns]

    def live_cloud(self, parsed_args: argparse.Namespace) -> snapshot.Cloud:
        """Read the cloud of --config-file, as it is now.

        :raises CloudUnreadError: if it cannot be read
        """
        if self._read_live is None:
            # Nova prepares its databases once in a process.
            self._read_live = reader(base.configuration(parsed_args))
        return self._read_live()

    def _in_client(self) -> bool:
        """Return True for a command of ``openstack``, not of nfv-sched."""
        return self.app is not None and self.app.NAME != base.NFVSched.NAME

    def _connection(self, parsed_args: argparse.Namespace) -> ty.Any:
        import openstack
        from openstack import connection
        try:
            if not self._in_client():
                return openstack.connect(cloud=parsed_args.os_cloud)
            # The client has not authenticated: other commands need no
            # account (``auth_required`` is False).
            return connection.Connection(config=self.app.cloud_config.get_one(
                cloud=self.app.options.cloud, argparse=self.app.options))
        except Exception as exc:  # clouds.yaml can be wrong in any way
            raise CloudUnreadError(
                'no account for the API, see --os-cloud and '
                f'the OS_* variables: {exc}') from exc

    def api_cloud(self, parsed_args: argparse.Namespace,
                  parts: Collection[str]) -> snapshot.Cloud:
        """Read parts of the cloud, named as fields of ``Cloud``, by API."""
        # Nova and the client's libraries take seconds to import.
        from nfv_sched.base import connection_errors
        from nfv_sched.ops.cloud import api
        with progress.shown() as update, self._connection(
                parsed_args) as connection:
            try:
                return api.read(
                    connection, parts,
                    lambda what, done, total: update(done, total, what))
            except api.APIError as exc:
                raise CloudUnreadError(str(exc) + (
                    ': --os-cloud or the OS_* variables'
                    if connection_errors.is_refused(exc) else '')) from exc


class CloudMixin(ErrorMixin):
    """Mixin of a subcommand that works on a cloud; before ``base.Command``.

    ``take_action`` gets the cloud from :meth:`cloud`; what could not be read
    is printed after the output.
    """

    #: True if hosts are simulated.  Of a service with several compute nodes,
    #: as with Ironic, only the first one is; the user is told so.
    simulates = False

    #: True if the API can show all that is needed, so that --api is offered.
    takes_api = False

    #: True if the cloud may have more or fewer hosts than there are.
    takes_changes = True

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        group = parser.add_argument_group('the cloud')
        group.add_argument(
            '--from', dest='source', metavar='FILE',
            help='a snapshot, or the https URL of "snapshot serve", or a '
                 'cloud file of the simulator, whose steps are run first, or '
                 'the name of an example; without it, the cloud of '
                 '--config-file is read; with it, --config-file says which '
                 'other filters and weighers the file may name')
        base.add_configuration(group)
        # Commands that cannot use the API accept the option to say why.
        group.add_argument(
            '--api', action='store_true',
            help="read the cloud by its API alone, with an account, not by "
                 "Nova's databases" if self.takes_api else argparse.SUPPRESS)
        if not self._in_client():
            self.add_account(group)
        if self.takes_changes:
            add_changes(group)
        return parser

    def add_account(self, group: argparse._ArgumentGroup) -> None:
        group.add_argument(
            '--os-cloud', metavar='NAME',
            help='as --api, with the account of this name in clouds.yaml '
                 '(default: that of the OS_* variables)'
            if self.takes_api else argparse.SUPPRESS)

    def cloud_options(self) -> Sequence[tuple[str, str]]:
        options = [*super().cloud_options(), (
            '--from FILE', 'a snapshot ("snapshot save", "snapshot serve") or '
            'a cloud file; to try it: --from telco')]
        if self.takes_api:
            options.append(
                ('--api', 'the API alone, with the account of openstack')
                if self._in_client() else
                ('--os-cloud NAME',
                 'the API alone, with an account of clouds.yaml'))
        return options

    def check(self, parsed_args: argparse.Namespace) -> None:
        if self.takes_changes and is_changed(parsed_args) and (
                getattr(parsed_args, 'formatter', None) == formats.COMMANDS):
            raise UsageError(
                f'-f {formats.COMMANDS} goes with none of {CHANGES}: the '
                'commands would not suit the cloud')
        option = '--api'
        if getattr(parsed_args, 'os_cloud', None) is not None:
            parsed_args.api = True
            option = '--os-cloud'
        if not parsed_args.api:
            return
        if not self.takes_api or (
                self.takes_changes and is_changed(parsed_args)):
            raise UsageError(_NOT_IN_API)
        if parsed_args.source is not None or parsed_args.config_file:
            raise UsageError(f'either {option}, or --from or --config-file')

    def cloud(self, parsed_args: argparse.Namespace,
              parts: Collection[str] | None = None,
              newer: Callable[[str], None] | None = None) -> snapshot.Cloud:
        """Read the cloud; raise one of :data:`EXPECTED` if that fails.

        :param parts: names of the ``Cloud`` fields that are needed, with
            ``--api``; None if the API does not show enough
        :param newer: called with a line if a newer snapshot of a server is
            waited for; None to take the one that it has
        """
        # Before anything of Nova is imported, which may choose otherwise.
        concurrency.native_threads()
        if parsed_args.api:
            if parts is None:
                raise UsageError(_NOT_IN_API)
            cloud = self.api_cloud(parsed_args, parts)
        elif parsed_args.source is not None:
            cloud = load(parsed_args.source, parsed_args.config_file, newer)
        else:
            cloud = self.live_cloud(parsed_args)
        self._missing = list(map(str, cloud.missing))
        if self.takes_changes:
            cloud, notes = changed(cloud, parsed_args)
            self.app.stderr.writelines(f'note: {note}\n' for note in notes)
        if self.simulates:
            self.app.stderr.writelines(
                f'note: {note}\n' for note in not_simulated(cloud))
        return cloud

    def image_properties(
            self, parsed_args: argparse.Namespace) -> dict[str, str]:
        """Return the image properties of the command line.

        Those of ``--image`` are read from Glance; ``--image-property`` takes
        precedence.
        """
        properties = image_properties(parsed_args)
        if parsed_args.image is None:
            return properties
        if parsed_args.source is not None:
            raise UsageError(
                '--image: a file has no images; give the properties with '
                '--image-property KEY=VALUE')
        from nfv_sched.ops.model.requests import images
        with images.connection() as connection:
            try:
                return {**images.properties(connection, parsed_args.image),
                        **properties}
            except images.UnknownImageError as exc:
                raise NotInCloudError(str(exc)) from exc
            except images.GlanceError as exc:
                raise CloudUnreadError(str(exc)) from exc


def not_simulated(cloud: snapshot.Cloud) -> Iterator[str]:
    counts = collections.Counter(host.name for host in cloud.hosts)
    for name, count in counts.items():
        if count > 1:
            yield (f'of the {count} compute nodes of {name} only the first '
                   'is looked at')


def is_url(path: str) -> bool:
    return path.lower().startswith(('https://', 'http://'))


def load(path: str, config_files: Sequence[str] = (),
         newer: Callable[[str], None] | None = None,
         content: bytes | None = None) -> snapshot.Cloud:
    """Read a cloud from a file.

    :param path: a snapshot, a cloud file of the simulator, the name of an
        example, or the URL of ``nfv-sched snapshot serve``
    :param config_files: nova.conf files of this machine: the filters and
        weighers that a file may name besides those of Nova and nfv-sched
    :param newer: see :meth:`CloudMixin.cloud`
    :param content: of a snapshot, which is then not read
    :returns: the cloud; classes that are not installed here are added to what
        is missing
    :raises CloudUnreadError: if the file cannot be read
    :raises UsageError: if it is the name of neither a file nor an example
    """
    if config_files:
        configure([f'--config-file={name}' for name in config_files],
                  databases=False)
    try:
        if content is not None:
            cloud = file.load(path, content)
        elif is_url(path):
            # requests and keystoneauth1 take time to import.
            from nfv_sched.ops.cloud import remote
            cloud = (remote.load(path) if newer is None
                     else remote.load_newer(path, newer))
        else:
            # Not if "." or "/" show that a file is meant.
            if not os.path.lexists(path) and _EXAMPLE.fullmatch(path):
                paths = examples.find()
                if path not in paths:
                    raise UsageError(
                        f'no file or example named {path!r}; the examples '
                        f'are: {", ".join(paths) or "none"}')
                path = str(paths[path])
            if not file.is_snapshot(path):
                return _simulate(path)
            cloud = file.load(path)
    except file.FileError as exc:
        raise CloudUnreadError(str(exc)) from exc
    except problems.InputError as exc:
        from nfv_sched.ops.cloud.cloud_file import text as cloud_text
        if cloud_text.is_cloud_file(path):
            raise CloudUnreadError(str(exc)) from exc
        raise CloudUnreadError(f'{path}: {file.NEITHER}') from exc
    if cloud_options.only_standard_classes(cloud.options):
        return cloud  # the usual case need not import Nova
    from nfv_sched.ops.simulator import configuration
    return dataclasses.replace(cloud, missing=(
        *cloud.missing, *configuration.refused_classes(cloud.options)))


def _simulate(path: str) -> snapshot.Cloud:
    """Run the steps of a cloud file and return the resulting cloud.

    :raises InputError: if anything is wrong with the file
    """
    from nfv_sched.ops.answers.simulation import reading
    from nfv_sched.ops.simulator import engine
    from nfv_sched.ops.simulator import record
    with reading.loaded(path) as state, progress.shown() as update:
        engine.Simulation(state, update).run()
        return record.cloud(state)


def configure(arguments: Sequence[str], databases: bool = True) -> None:
    """Read the configuration of Nova.

    :param arguments: command line arguments for Nova's configuration
    :param databases: also prepare to read Nova's databases
    :raises CloudUnreadError: if it cannot be used; names the file, in a line
    """
    from oslo_config import cfg

    # Before anything of Nova is imported, which may choose otherwise.
    concurrency.native_threads()
    # Imported here so that --help does not wait for Nova.
    from nfv_sched.nova import database
    option = '--config-file ' if arguments else ''
    try:
        (database.read_configuration if databases
         else database.parse_configuration)(
            arguments, base.NFVSched.NAME, '')
    except (cfg.ConfigFilesNotFoundError,
            cfg.ConfigFilesPermissionDeniedError) as exc:
        number = (errno.ENOENT if isinstance(exc, cfg.ConfigFilesNotFoundError)
                  else errno.EACCES)
        raise CloudUnreadError(f'{option}{", ".join(exc.config_files)}: '
                               f'{os.strerror(number)}') from exc
    except cfg.ConfigFileParseError as exc:
        why = exc.msg.replace(
            f'at {exc.config_file}:', 'not a valid ini file: line ', 1)
        raise CloudUnreadError(f'{option}{exc.config_file}: {why}') from exc
    except cfg.Error as exc:
        raise CloudUnreadError(_UNUSABLE + ' '.join(str(exc).split())) from exc


def journal_folder() -> str | None:
    """Return the folder of the decision journal in the configuration read."""
    from nfv_sched.base import conf
    from nfv_sched.nova import database
    conf.register_opts(database.CONF)
    return database.CONF.nfv_sched.decision_journal


def database_error(exc: Exception) -> CloudUnreadError:
    from oslo_config import cfg
    from oslo_db import exception as db_exception

    from nfv_sched.nova import database
    from nfv_sched.nova import database_errors
    if isinstance(exc, db_exception.CantStartEngineError) and (
            database.CONF.api_database.connection is None):
        files = database.configuration_files()
        return NotConfiguredError(
            f'[api_database] connection is not set in {", ".join(files)}'
            if files else 'no nova.conf in ~/.nova, ~, /etc/nova or /etc, so '
            'there is no cloud to read')
    if isinstance(exc, cfg.Error):
        # Nova looks at some values only when it needs them.
        return CloudUnreadError(_UNUSABLE + ' '.join(str(exc).split()))
    return CloudUnreadError(database_errors.text(
        exc, "Nova's API database", database.CONF.api_database.connection,
        '[api_database] connection'))


def reader(arguments: list[str]) -> Callable[[], snapshot.Cloud]:
    """Return a function that reads the live cloud, with progress on stderr.

    The configuration is read now, and the cloud at each call, which raises
    CloudUnreadError if Nova's database cannot be read.

    :raises CloudUnreadError: if the configuration cannot be used
    """
    configure(arguments)
    from nfv_sched.nova import database
    from nfv_sched.ops.cloud import database as snapshot_database

    def read_now() -> snapshot.Cloud:
        with progress.shown() as update:
            try:
                return snapshot_database.read(
                    database.CONF,
                    lambda what, done, total: update(done, total, what))
            except Exception as exc:
                raise database_error(exc) from exc

    return read_now


def chosen(names: Iterable[str], patterns: Sequence[str],
           noun: str) -> list[str]:
    """Return the names that match a pattern; all names without patterns.

    :param patterns: with ``*`` and ``?``
    :param noun: noun for the names in the error message; of a ``host`` the
        first label is enough
    :raises NotInCloudError: if a pattern matches none
    """
    names = list(names)
    if not patterns:
        return names
    selected = set()
    for pattern in patterns:
        # A name with brackets does not match itself as a pattern.
        matches = {name for name in names if name == pattern
                   or fnmatch.fnmatchcase(name, pattern)}
        if not matches and is_pattern(pattern):
            raise NotInCloudError(f'no {noun} matches {pattern!r}')
        if not matches and noun == _HOST:
            matches = {host_name(names, pattern)}
        if not matches:
            raise NotInCloudError(name_checks.unknown(noun, pattern, names))
        selected |= matches
    return [name for name in names if name in selected]


def host_name(hosts: Iterable[str], name: str) -> str:
    """Return the name of the host that a command line means.

    :param name: name of a host, or the first label of it if it is unique
    :raises NotInCloudError: if no host or several match
    """
    hosts = list(hosts)
    if name in hosts:
        return name
    matches = sorted({
        each for each in hosts if each.partition('.')[0] == name})
    if not matches:
        raise NotInCloudError(name_checks.unknown(_HOST, name, hosts))
    if len(matches) > 1:
        raise NotInCloudError(
            f'several hosts named {name!r}: {", ".join(matches)}')
    return matches[0]


def is_pattern(text: str) -> bool:
    return _WILDCARD.search(text) is not None


def flavor(cloud: snapshot.Cloud, name: str) -> snapshot.Flavor:
    for each in cloud.flavors:
        if each.name == name:
            return each
    raise NotInCloudError(name_checks.unknown(
        'flavor', name, [each.name for each in cloud.flavors]))


def number(text: str, least: int = 0) -> int:
    value = int(text)
    if value < least:
        raise argparse.ArgumentTypeError(f'a number from {least} is needed')
    return value


def positive(text: str) -> int:
    return number(text, 1)


def add_image(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        '--image', metavar='NAME|ID',
        help='the image, whose properties are read from Glance')
    add_image_properties(parser)


def add_image_properties(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        '--image-property', action='append', default=[],
        dest='properties', metavar='KEY=VALUE',
        help='a property of the image; can be repeated')


def image_properties(parsed_args: argparse.Namespace) -> dict[str, str]:
    properties = {}
    for text in parsed_args.properties:
        key, equals, value = text.partition('=')
        if not (key and equals):
            raise UsageError(f'--image-property {text}: KEY=VALUE needed')
        properties[key] = value
    return properties


def add_networks(parser: argparse.ArgumentParser, replaced: str = '') -> None:
    parser.add_argument(
        '--network', action='append', default=[], dest='networks',
        metavar='NET[,physnet=P][,vnic-type=T][,trusted=B]',
        help='a network, by name or ID, on which the server has a port'
             f'{replaced}; one that the cloud does not show needs physnet=P; '
             'without a vNIC type the port is normal, or as all ports of the '
             'network; can be repeated')


def add_ports(parser: argparse.ArgumentParser) -> None:
    group = parser.add_mutually_exclusive_group()
    group.add_argument(
        '--like', metavar='UUID|NAME',
        help='new servers have the ports of this server (default: those '
             'that most servers of the flavor have)')
    group.add_argument(
        '--ports', type=number, metavar='N',
        help='new servers have N ports on the virtual switch, on networks '
             'that are not near any NUMA node')
    add_networks(group)


def ports(cloud: snapshot.Cloud, parsed_args: argparse.Namespace) -> ty.Any:
    """Return the ``assumed_ports.Choice`` of the options of ``add_ports``."""
    from nfv_sched.ops.model.requests import assumed_ports
    # The plan that is made again may be a file that somebody edited.
    if (parsed_args.ports or 0) > _MOST_PORTS:
        raise UsageError(f'--ports: {_MOST_PORTS} at most')
    try:
        if parsed_args.networks:
            return assumed_ports.of_networks(cloud, parsed_args.networks)
        if parsed_args.like is not None:
            return assumed_ports.of_server(server(cloud, parsed_args.like))
    except assumed_ports.UnknownNetworkError as exc:
        raise NotInCloudError(str(exc)) from exc
    return parsed_args.ports


def server(cloud: snapshot.Cloud, name: str) -> snapshot.Server:
    """Return a server by its UUID, or by its name if that is unique."""
    from nfv_sched.ops.model.requests import subject
    try:
        return subject.find(cloud, name)
    except subject.ExplainError as exc:
        raise NotInCloudError(str(exc)) from exc


def check_image_properties(properties: Mapping[str, str]) -> None:
    from nova import exception

    from nfv_sched.ops.simulator import nova_internals
    if unknown := nova_internals.unknown_image_properties(properties):
        raise UsageError(f'Nova knows no image property {unknown[0]!r}')
    try:
        nova_internals.image_meta(properties)
    except (ValueError, exception.NovaException) as exc:
        raise UsageError(f'Nova does not take the image: {exc}') from exc


def add_hosts(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        '--host', action='append', default=[], metavar='PATTERN',
        help='only these hosts; * and ? stand for anything; can be repeated')
    add_host_groups(parser)


def add_host_groups(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        '--aggregate', action='append', default=[], metavar='PATTERN',
        help='only hosts of these aggregates; * and ? stand for anything; '
             'can be repeated')
    add_zone(parser, action='append', default=[], dest='az', metavar='PATTERN',
             help='only hosts of these availability zones; * and ? stand for '
                  'anything; can be repeated')


def add_changes(parser: argparse._ActionsContainer) -> None:
    parser.add_argument(
        '--add-hosts', action='append', default=[], type=_copies,
        metavar='N:HOST|FILE',
        help='as if there were N more hosts like this one, but empty and '
             'enabled, in the same aggregates; or as a file of "host profile '
             '-f json" sets one up: in no aggregate, without PCI devices, '
             'CPU traits and network agents, the rest as on a host of the '
             'cloud; ./NAME is a file; can be repeated')
    parser.add_argument(
        '--remove-host', action='append', default=[], metavar='PATTERN',
        help='as if there were no such hosts, and none of their servers; * '
             'and ? stand for anything; can be repeated')
    parser.add_argument(
        '--limit', action='append', default=[], type=_limit,
        metavar='NAME=VALUE',
        help='as if this option of [nfv_sched], a limit such as '
             'vswitch_ports_per_node, had this value; 0 for no limit; '
             'aggregates that set the limit keep theirs; can be repeated')


def _limit(text: str) -> tuple[str, float]:
    name, _equals, value = text.partition('=')
    try:
        amount = float(value)
    except ValueError:
        amount = math.nan
    if not math.isfinite(amount):
        raise argparse.ArgumentTypeError(
            f'NAME=VALUE needed, with a number, not {text!r}')
    return name, amount


def _copies(text: str) -> tuple[int, str]:
    count, _colon, name = text.partition(':')
    if not name or not count.isdecimal() or not 1 <= int(count) <= _MOST_NEW:
        raise argparse.ArgumentTypeError(
            f'N:HOST or N:FILE needed, with 1 to {_MOST_NEW} hosts, not '
            f'{text!r}')
    return int(count), name


def is_changed(parsed_args: argparse.Namespace) -> bool:
    return bool(parsed_args.add_hosts or parsed_args.remove_host or
                parsed_args.limit)


def changed(
    cloud: snapshot.Cloud, parsed_args: argparse.Namespace,
) -> tuple[snapshot.Cloud, list[str]]:
    """Return a cloud with the changes of :func:`add_changes`.

    :returns: also sentences about them, for people
    """
    notes: list[str] = []
    if not is_changed(parsed_args):
        return cloud, notes
    # Imports of the services' code take time that most commands do not need.
    from nfv_sched.ops.cloud import changed_hosts
    names = list(dict.fromkeys(host.name for host in cloud.hosts))
    gone = (chosen(names, parsed_args.remove_host, _HOST)
            if parsed_args.remove_host else [])
    if sum(count for count, _name in parsed_args.add_hosts) > _MOST_NEW:
        raise UsageError(f'--add-hosts: {_MOST_NEW} hosts at most')
    for count, text in parsed_args.add_hosts:
        # A host comes first, and "./" before a file.
        try:
            name = None if os.sep in text else host_name(names, text)
        except NotInCloudError:
            if not os.path.exists(text):
                raise
            name = None
        if name is None:
            cloud, note = _with_profiled(cloud, text, count)
            notes.append(note)
            continue
        if any(host.providers for host in cloud.hosts) and not all(
                host.providers for host in cloud.hosts if host.name == name):
            raise UsageError(
                f'--add-hosts: no resource provider of host {name} was read')
        cloud, new = changed_hosts.added(cloud, name, count)
        notes.append(f'{_as_if(new)}, like {name}')
    if gone:
        servers = sum(server.host in gone for server in cloud.servers)
        cloud = changed_hosts.removed(cloud, frozenset(gone))
        notes.append(f'as if there were no {strings.some(gone)}, without '
                     f'{strings.count(servers, "server")} there')
    if parsed_args.limit:
        cloud = _with_limits(cloud, parsed_args, notes)
    return cloud, notes


def _as_if(new: Sequence[str]) -> str:
    return f'as if there were {new[0]}' + (
        f' to {new[-1]}' if len(new) > 1 else '')


def _with_profiled(cloud: snapshot.Cloud, path: str,
                   count: int) -> tuple[snapshot.Cloud, str]:
    from nfv_sched.ops.answers.profile import choices
    from nfv_sched.ops.answers.profile import reported
    from nfv_sched.ops.cloud import changed_hosts
    like = reported.model(cloud)
    try:
        host = reported.added_to(cloud, path)
    except choices.ProfileError as exc:
        raise CloudUnreadError(str(exc)) from exc
    cloud, new = changed_hosts.added_new(cloud, host, count)
    note = f'{_as_if(new)}, by the profile {path}'
    if like is not None:
        note += f', with the hypervisor and disk of {like.name}'
    return cloud, note


def _with_limits(cloud: snapshot.Cloud, parsed_args: argparse.Namespace,
                 notes: list[str]) -> snapshot.Cloud:
    """Return a cloud with the limits of ``--limit``; add notes about them."""
    from nfv_sched.ops.cloud import changed_limits
    values = dict(parsed_args.limit)
    for name, value in values.items():
        if name not in changed_limits.NAMES:
            raise UsageError('--limit: ' + name_checks.unknown(
                'limit', name, changed_limits.NAMES))
        notes.append(f'as if [nfv_sched] {name} were {value:g}')
        if aggregates := changed_limits.overriding(cloud, name):
            notes.append(
                f'{name} is that of the metadata in '
                f'{strings.some(aggregates)}, where --limit changes nothing')
    return changed_limits.changed(cloud, values)


def add_zone(parser: argparse.ArgumentParser, *, help: str,
             **options: ty.Any) -> None:
    parser.add_argument('--availability-zone', help=help, **options)
    parser.add_argument('--az', '--zone', help=argparse.SUPPRESS, **options)


def hosts(cloud: snapshot.Cloud, names: Sequence[str] = (),
          zones: Sequence[str] = (),
          aggregates: Sequence[str] = ()) -> list[snapshot.Host]:
    """Return hosts that match each kind of pattern given; all without any.

    :raises NotInCloudError: if a pattern matches nothing
    """
    hosts = list(cloud.hosts)
    for each in cloud.aggregates:
        if each.name in aggregates and not each.hosts:
            raise NotInCloudError(f'aggregate {each.name!r} has no hosts')
    for patterns, what, of in (
        (names, _HOST, lambda host: (host.name,)),
        (zones, 'availability zone', lambda host: (host.zone,)),
        (aggregates, 'aggregate', lambda host: host.aggregates),
    ):
        if patterns:
            all_names = {name for host in cloud.hosts for name in of(host)}
            chosen_names = set(chosen(sorted(all_names), patterns, what))
            hosts = [host for host in hosts if chosen_names & set(of(host))]
    return hosts
