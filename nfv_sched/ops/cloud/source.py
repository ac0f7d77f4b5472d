# SPDX-License-Identifier: Apache-2.0
"""Where a command gets the cloud from that it looks at.

From Nova's databases, from the API alone, or from a file.  The commands print
values and exit with 0 if all is well, 1 if something could not be read, 2 if
the command line is wrong, 3 if there is something to do about the cloud.
"""

import argparse
import collections
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Sequence
import dataclasses
import errno
import fnmatch
import os
import re
import typing as ty

from nfv_sched.ops.cli import base
from nfv_sched.ops.cloud_file import problems
from nfv_sched.ops.simulator import progress
from nfv_sched.ops.snapshot import file
from nfv_sched.ops.snapshot import options as cloud_options
from nfv_sched.ops.snapshot import snapshot

UNREAD = 1
USAGE = 2
FINDINGS = 3

EXIT_CODES = """\
exit code: 0; 1 if something could not be read, and is named; 2 if the command
line is wrong.
"""

_NOT_IN_API = (
    'the API shows no NUMA nodes, pinned CPUs, pages or devices; this needs '
    "Nova's databases, where nova.conf names them, or --from FILE")


_ADDED = re.compile(r' (\[SQL: |\(Background on this error at: ).*')


class CloudUnreadError(Exception):
    """The cloud cannot be read at all; says why."""


class UsageError(Exception):
    """A command line that cannot be used; says why."""


class NotThereError(UsageError):
    """It does not go with the cloud, as far as that was read; says why.

    What it names may be in what could not be read.
    """


#: What makes a command end with a line for each thing that is wrong.
EXPECTED = (CloudUnreadError, UsageError, problems.InputError)


class Telling:
    """Part of a subcommand that reads something, before ``base.Command``.

    Errors are told in a line each, and the exit code says what is wrong.
    """

    #: Set by a command that has found something to do.
    found = False

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Run the command; called by cliff.

        :returns: exit code
        """
        self._missing: list[str] = []
        try:
            self.check(parsed_args)
            code = super().run(parsed_args)
        except EXPECTED as exc:
            for line in str(exc).splitlines():
                self.tell(line)
            # What is missing may be why.
            if self._missing and isinstance(
                    exc, (NotThereError, problems.InputError)):
                return self._tell_missing()
            return USAGE if isinstance(exc, UsageError) else UNREAD
        except BrokenPipeError:
            raise
        except OSError as exc:
            self.tell(exc.strerror or exc)
            return UNREAD
        except Exception as exc:
            if self.app.options.debug:
                raise
            self.tell(f'internal error: {type(exc).__name__}: {exc}; '
                      '--debug before the command shows where')
            return UNREAD
        if self._missing:
            return self._tell_missing()
        return code or (FINDINGS if self.found else 0)

    def _tell_missing(self) -> int:
        """Tell what could not be read; returns the exit code for that."""
        for text in self._missing:
            self.tell(text)
        return UNREAD

    def check(self, parsed_args: argparse.Namespace) -> None:
        """Refuse a command line before anything is read.

        :raises UsageError: if it cannot be used
        """

    def produce_output(self, parsed_args: argparse.Namespace,
                       column_names: Sequence[str],
                       data: Iterable) -> int:
        """Print the result in the chosen format; called by cliff.

        :raises UsageError: if none of the wanted columns is there
        """
        self.check_columns(parsed_args, column_names)
        return super().produce_output(parsed_args, column_names, data)

    @staticmethod
    def check_columns(parsed_args: argparse.Namespace,
                      column_names: Sequence[str]) -> None:
        """Refuse a choice of columns of which none is there.

        :param parsed_args: those of the command line
        :param column_names: all that there are
        :raises UsageError: if none of the wanted columns is there
        """
        wanted = parsed_args.columns
        if wanted and not set(wanted) & set(column_names):
            raise UsageError(f'no column {", ".join(wanted)}; there are: '
                             f'{", ".join(column_names)}')


class Looking(Telling):
    """Part of a subcommand that looks at a cloud, before ``base.Command``.

    ``take_action`` gets the cloud from :meth:`cloud`; what could not be read
    is told after the output.
    """

    #: Whether hosts are simulated: of a service with several compute nodes,
    #: as Ironic has them, only the first is.
    simulates = False

    #: Whether what the API shows may be enough for it.
    takes_api = False

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """The parser with the options for the cloud."""
        parser = super().get_parser(prog_name)
        group = parser.add_argument_group('the cloud')
        group.add_argument(
            '--from', dest='source', metavar='FILE',
            help='a snapshot, or a cloud file of the simulator, whose steps '
                 'are run first; without it, the cloud of --config-file is '
                 'read; with it, --config-file says which other filters and '
                 'weighers the file may name')
        base.add_configuration(group)
        # Commands that cannot use it say why.
        group.add_argument(
            '--api', action='store_true',
            help="read the cloud by its API alone, with an account, not by "
                 "Nova's databases" if self.takes_api else argparse.SUPPRESS)
        if not self._in_client():
            group.add_argument(
                '--os-cloud', metavar='NAME',
                help='with --api: the account, by its name in clouds.yaml '
                     '(default: that of the OS_* variables)'
                if self.takes_api else argparse.SUPPRESS)
        return parser

    def check(self, parsed_args: argparse.Namespace) -> None:
        """Refuse options that contradict each other."""
        if not parsed_args.api:
            if getattr(parsed_args, 'os_cloud', None) is not None:
                raise UsageError('--os-cloud is for --api')
            return
        if not self.takes_api:
            raise UsageError(f'with --api: {_NOT_IN_API}')
        if parsed_args.source is not None or parsed_args.config_file:
            raise UsageError('either --api, or --from or --config-file')

    def cloud(self, parsed_args: argparse.Namespace,
              parts: Collection[str] | None = None) -> snapshot.Cloud:
        """Read the cloud.

        :param parsed_args: those of the command line
        :param parts: names of the fields that are enough, with ``--api``;
            None if what the API shows is not
        :raises CloudUnreadError: if there is nothing to look at
        :raises UsageError: if the API is not enough
        """
        if parsed_args.api:
            if parts is None:
                raise UsageError(f'with --api: {_NOT_IN_API}')
            cloud = self._by_api(parsed_args, parts)
        elif parsed_args.source is not None:
            cloud = load(parsed_args.source, parsed_args.config_file)
        else:
            cloud = read(base.configuration(parsed_args))
        self._missing = list(map(str, cloud.missing))
        if self.simulates:
            counts = collections.Counter(host.name for host in cloud.hosts)
            for name, count in counts.items():
                if count > 1:
                    self.app.stderr.write(
                        f'note: of the {count} compute nodes of {name} only '
                        'the first is looked at\n')
        return cloud

    def _in_client(self) -> bool:
        """Whether it is a command of ``openstack``, not of nfv-sched."""
        return self.app is not None and self.app.NAME != base.NFVSched.NAME

    def _by_api(self, parsed_args: argparse.Namespace,
                parts: Collection[str]) -> snapshot.Cloud:
        # Nova and the client's libraries take seconds to import.
        from nfv_sched.ops.snapshot import api
        with progress.shown() as update, self._connection(
                parsed_args) as connection:
            try:
                return api.read(
                    connection, parts,
                    lambda what, done, total: update(done, total, what))
            except api.APIError as exc:
                raise CloudUnreadError(str(exc)) from exc

    def _connection(self, parsed_args: argparse.Namespace) -> ty.Any:
        """A connection to the API, with the account of the command line."""
        import openstack
        from openstack import connection
        try:
            if not self._in_client():
                return openstack.connect(cloud=parsed_args.os_cloud)
            # The client has not checked it: other commands need no account.
            return connection.Connection(config=self.app.cloud_config.get_one(
                cloud=self.app.options.cloud, argparse=self.app.options))
        except Exception as exc:  # whatever is in the files of accounts
            raise CloudUnreadError(
                'no account for the API, see --os-cloud and '
                f'the OS_* variables: {exc}') from exc


def load(path: str, config_files: Sequence[str] = ()) -> snapshot.Cloud:
    """Read a cloud from a file.

    :param path: of a snapshot, or of a cloud file of the simulator
    :param config_files: of this machine; they say which classes besides those
        of Nova and nfv-sched a file may name
    :returns: the cloud; what it names and this machine does not have is among
        what is missing
    :raises CloudUnreadError: if it cannot be read
    """
    if config_files:
        configure([f'--config-file={name}' for name in config_files],
                  databases=False)
    try:
        if not file.is_snapshot(path):
            return _simulate(path)
        cloud = file.load(path)
    except (file.FileError, problems.InputError) as exc:
        raise CloudUnreadError(str(exc)) from exc
    if cloud_options.only_standard_classes(cloud.options):
        return cloud  # quickly, without Nova
    from nfv_sched.ops.simulator import configuration
    return dataclasses.replace(cloud, missing=(
        *cloud.missing, *configuration.refused_classes(cloud.options)))


def _simulate(path: str) -> snapshot.Cloud:
    """The cloud of a cloud file, after its steps; progress is on stderr.

    :raises InputError: if anything is wrong with the file
    """
    from nfv_sched.ops.simulator import engine
    from nfv_sched.ops.simulator import record
    from nfv_sched.ops.simulator import start
    with start.loaded(path) as state, progress.shown() as update:
        engine.Simulation(state, update).run()
        return record.cloud(state)


def configure(arguments: Sequence[str], databases: bool = True) -> None:
    """Read the configuration of Nova.

    :param arguments: by which Nova reads it
    :param databases: whether to prepare to read Nova's databases
    :raises CloudUnreadError: if it cannot be used; names the file, in a line
    """
    from oslo_config import cfg

    # Nova is imported by now only if somebody wants such a command.
    from nfv_sched.nova import database
    try:
        (database.read_configuration if databases
         else database.parse_configuration)(
            arguments, base.NFVSched.NAME, '')
    except cfg.Error as exc:
        path, why = _unusable(exc)
        raise CloudUnreadError(
            f'the configuration cannot be used: {why}' if path is None else
            f'{"--config-file " if arguments else ""}{path}: {why}') from exc


def _unusable(exc: Exception) -> tuple[str | None, str]:
    """The file of a configuration that cannot be used, and why it cannot.

    :param exc: as reading it ends
    :returns: None for a file that is not known
    """
    from oslo_config import cfg
    match exc:
        case cfg.ConfigFilesNotFoundError():
            return ', '.join(exc.config_files), os.strerror(errno.ENOENT)
        case cfg.ConfigFilesPermissionDeniedError():
            return ', '.join(exc.config_files), os.strerror(errno.EACCES)
        case cfg.ConfigFileParseError():
            path = exc.config_file
            return path, exc.msg.replace(f'at {path}:', 'line ', 1)
    return None, ' '.join(str(exc).split())


def database_error(exc: Exception) -> CloudUnreadError:
    """The error, in a line, that reading Nova's databases has ended with.

    :param exc: as it has ended
    """
    from oslo_config import cfg
    # Without what SQLAlchemy adds: the whole query, and where to read on.
    told = _ADDED.sub('', ' '.join(str(exc).split()))
    if isinstance(exc, cfg.Error):
        # Nova looks at some values only when it needs them.
        return CloudUnreadError(f'the configuration cannot be used: {told}')
    return CloudUnreadError(
        "Nova's database cannot be read, see [api_database] "
        f'connection: {told}')


def reader(arguments: list[str]) -> Callable[[], snapshot.Cloud]:
    """A function that reads a live cloud, with progress on stderr.

    The configuration is read now, and the cloud at each call, which raises
    CloudUnreadError if Nova's database cannot be read.

    :param arguments: by which Nova reads its configuration
    :raises CloudUnreadError: if the configuration cannot be used
    """
    configure(arguments)
    from nfv_sched.nova import database
    from nfv_sched.ops.snapshot import database as snapshot_database

    def read_now() -> snapshot.Cloud:
        with progress.shown() as update:
            try:
                return snapshot_database.read(
                    database.CONF,
                    lambda what, done, total: update(done, total, what))
            except Exception as exc:
                raise database_error(exc) from exc

    return read_now


def read(arguments: list[str]) -> snapshot.Cloud:
    """Read a live cloud once; see :func:`reader`.

    :param arguments: by which Nova reads its configuration
    :raises CloudUnreadError: if that or Nova's database cannot be read
    """
    return reader(arguments)()


def chosen(names: Iterable[str], patterns: Sequence[str],
           what: str) -> list[str]:
    """Those of some names that match a pattern; all without patterns.

    :param names: of hosts and the like
    :param patterns: with ``*`` and ``?``
    :param what: what they are names of, for people
    :raises NotThereError: if a pattern matches none
    """
    names = list(names)
    if not patterns:
        return names
    for pattern in patterns:
        if not any(_is_of(name, pattern) for name in names):
            raise NotThereError(f'no {what} matches {pattern!r}')
    return [name for name in names if any(
        _is_of(name, pattern) for pattern in patterns)]


def _is_of(name: str, pattern: str) -> bool:
    # A name may have brackets, and is itself a pattern of it then.
    return name == pattern or fnmatch.fnmatchcase(name, pattern)


def flavor(cloud: snapshot.Cloud, name: str) -> snapshot.Flavor:
    """A flavor of a cloud.

    :param cloud: the cloud
    :param name: its name
    :raises NotThereError: if there is none of that name
    """
    for each in cloud.flavors:
        if each.name == name:
            return each
    raise NotThereError(f'no flavor is named {name!r}')


def number(text: str, least: int = 0) -> int:
    """A number on the command line.

    :param text: as it was given
    :param least: what it must be at least
    :raises argparse.ArgumentTypeError: if it is no such number
    """
    value = int(text)
    if value < least:
        raise argparse.ArgumentTypeError(f'a number from {least} is needed')
    return value


def positive(text: str) -> int:
    """A number from 1; see :func:`number`.

    :param text: as it was given
    """
    return number(text, 1)


def add_image_properties(parser: argparse.ArgumentParser) -> None:
    """Add the option for properties of an image.

    :param parser: of the command
    """
    parser.add_argument(
        '--image-property', action='append', default=[],
        dest='properties', metavar='KEY=VALUE',
        help='a property of the image; can be repeated')


def image_properties(parsed_args: argparse.Namespace) -> dict[str, str]:
    """The properties of an image on the command line.

    :param parsed_args: with the option of :func:`add_image_properties`
    :raises UsageError: if one has no key or no value
    """
    found = {}
    for text in parsed_args.properties:
        key, equals, value = text.partition('=')
        if not (key and equals):
            raise UsageError(f'--image-property {text}: KEY=VALUE needed')
        found[key] = value
    return found


def add_networks(parser: argparse.ArgumentParser) -> None:
    """Add the option for networks, which :func:`ports` does not need alone.

    :param parser: of the command
    """
    parser.add_argument(
        '--network', action='append', default=[], dest='networks',
        metavar='NET[,physnet=P][,vnic-type=T]',
        help='a network, by name or ID, on which the server has a port; one '
             'that the cloud does not show needs physnet=P; without a vNIC '
             'type the port is normal, or as all ports of the network; can '
             'be repeated')


def add_ports(parser: argparse.ArgumentParser) -> None:
    """Add the options that say which ports new servers of a flavor have.

    :param parser: of the command
    """
    group = parser.add_mutually_exclusive_group()
    group.add_argument(
        '--like', metavar='UUID|NAME',
        help='new servers have ports as this server has them (default: as '
             'most servers of the flavor have them)')
    group.add_argument(
        '--ports', type=number, metavar='N',
        help='new servers have so many ports on the virtual switch, on '
             'networks that are not near any NUMA node')
    add_networks(group)


def ports(cloud: snapshot.Cloud, parsed_args: argparse.Namespace) -> ty.Any:
    """Return the ports that the options of :func:`add_ports` say.

    :returns: ``ops.requests.assumed_ports.Choice``
    :raises NotThereError: if the cloud has no such network or server
    """
    from nfv_sched.ops.requests import assumed_ports
    try:
        if parsed_args.networks:
            return assumed_ports.of_networks(cloud, parsed_args.networks)
        if parsed_args.like is not None:
            return assumed_ports.of_server(
                server(cloud, parsed_args.like))
    except assumed_ports.UnknownNetworkError as exc:
        raise NotThereError(str(exc)) from exc
    return parsed_args.ports


def server(cloud: snapshot.Cloud, name: str) -> snapshot.Server:
    """Return a server of a cloud.

    :param name: its UUID, or its name if no other has it
    :raises NotThereError: if there is no such server, or several
    """
    from nfv_sched.ops.requests import request
    from nfv_sched.ops.requests import subject
    try:
        return subject.find(cloud, name)
    except request.ExplainError as exc:
        raise NotThereError(str(exc)) from exc


def known_image_properties(
        parsed_args: argparse.Namespace) -> dict[str, str]:
    """Return the properties of an image, all of which Nova knows.

    :param parsed_args: with the option of :func:`add_image_properties`
    :raises UsageError: if one has no key or value, or Nova does not know or
        take it
    """
    from nova import exception

    from nfv_sched.ops.simulator import nova_internals
    properties = image_properties(parsed_args)
    unknown = nova_internals.unknown_image_properties(properties)
    if unknown:
        raise UsageError(f'Nova knows no image property {unknown[0]!r}')
    try:
        nova_internals.image_meta(properties)
    except (ValueError, exception.NovaException) as exc:
        raise UsageError(f'Nova does not take the image: {exc}') from exc
    return properties


def add_hosts(parser: argparse.ArgumentParser) -> None:
    """Add the options that choose hosts.

    :param parser: of a subcommand
    """
    for name, what in (('host', 'these hosts'),
                       ('aggregate', 'hosts of these aggregates'),
                       ('az', 'hosts of these availability zones')):
        parser.add_argument(
            f'--{name}', action='append', default=[], metavar='PATTERN',
            help=f'only {what}; * and ? stand for anything; can be repeated')


def hosts(
    cloud: snapshot.Cloud, names: Sequence[str] = (),
    zones: Sequence[str] = (), aggregates: Sequence[str] = (),
) -> list[snapshot.Host]:
    """The hosts that match patterns; all without patterns.

    :param cloud: the cloud
    :param names: patterns of names
    :param zones: patterns of availability zones
    :param aggregates: patterns of aggregates that have hosts
    :raises NotThereError: if a pattern matches nothing
    """
    found = list(cloud.hosts)
    for patterns, what, of in (
        (names, 'host', lambda host: (host.name,)),
        (zones, 'availability zone', lambda host: (host.zone,)),
        (aggregates, 'aggregate of a host', lambda host: host.aggregates),
    ):
        if patterns:
            known = {name for host in cloud.hosts for name in of(host)}
            wanted = set(chosen(sorted(known), patterns, what))
            found = [host for host in found if wanted & set(of(host))]
    return found
