# SPDX-License-Identifier: Apache-2.0
"""Read the cloud that a command works on.

It comes from Nova's databases or from a file, and its flavors, servers and
agents of Neutron also from the API alone.
"""

import argparse
import collections
from collections.abc import Callable, Collection, Iterator, Sequence
import dataclasses
import errno
import os
import re
import typing as ty

from nfv_sched.nova import concurrency
from nfv_sched.ops.cli import base
from nfv_sched.ops.cli import errors
from nfv_sched.ops.cli import formats
from nfv_sched.ops.cloud.cloud_file import examples
from nfv_sched.ops.cloud import file
from nfv_sched.ops.cloud import options as cloud_options
from nfv_sched.ops.cloud import problems
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.commands import changes
from nfv_sched.ops.simulator import progress

_NOT_IN_API = (
    'with --api or --os-cloud: the API shows no NUMA nodes, CPUs, pages and '
    'devices of hosts; save a snapshot where nova.conf names Nova\'s '
    'databases, "openstack nfv snapshot save FILE", or serve it, "openstack '
    'nfv snapshot serve", and use --from FILE or --from URL')

_UNUSABLE = 'the configuration cannot be used: '
# The form of the name of an example.
_EXAMPLE = re.compile(r'(\w[\w-]*/)?\w[\w-]*')


@dataclasses.dataclass(frozen=True, slots=True)
class Source:
    """The cloud that a command works on, as its options choose it.

    What could not be read is printed after the output.
    """

    #: True if hosts are simulated.  Of a service with several compute nodes,
    #: as with Ironic, only the first one is; the user is told so.
    simulates: bool = False
    #: True if the API can show all that is needed, so that --api is offered.
    takes_api: bool = False
    #: True if the cloud may have more or fewer hosts than there are.
    takes_changes: bool = True
    #: False if --os-cloud is not for reading, but an option of the command.
    has_account: bool = True
    #: False if a snapshot is only shown.
    needs_nova: bool = True

    def add_options(self, parser: argparse.ArgumentParser,
                    in_client: bool) -> None:
        group = parser.add_argument_group('the cloud')
        group.add_argument(
            '--from', dest='source', metavar='FILE',
            help='a snapshot, the https URL of "snapshot serve", a cloud file '
                 'or an example (default: cloud of --config-file)')
        base.add_configuration(group, '; with --from it says what filters and '
                                      'weighers the file may name')
        # Commands that cannot use the API accept the option to say why.
        group.add_argument(
            '--api', action='store_true',
            help="read the cloud by its API alone, with an account, not by "
                 "Nova's databases" if self.takes_api else argparse.SUPPRESS)
        if self.has_account and not in_client:
            group.add_argument(
                '--os-cloud', metavar='NAME',
                help='as --api, with the account of this name in clouds.yaml '
                     '(default: that of the OS_* variables)'
                if self.takes_api else argparse.SUPPRESS)
        if self.takes_changes:
            changes.add_changes(group)

    def usage(self, in_client: bool) -> list[tuple[str, str]]:
        options = [(
            '--from FILE', 'a snapshot ("snapshot save", "snapshot serve") or '
            'a cloud file; to try it: --from telco')]
        if self.takes_api:
            options.append(
                ('--api', 'the API alone, with the account of openstack')
                if in_client else
                ('--os-cloud NAME',
                 'the API alone, with an account of clouds.yaml'))
        return options

    def check(self, parsed_args: argparse.Namespace) -> None:
        """Check the options; raise UsageError if they contradict."""
        is_changed = self.takes_changes and changes.is_changed(parsed_args)
        if is_changed and (
                getattr(parsed_args, 'formatter', None) == formats.COMMANDS):
            raise errors.UsageError(
                f'-f {formats.COMMANDS} goes with none of {changes.CHANGES}: '
                'the commands would not suit the cloud')
        option = '--api'
        if self.has_account and (
                getattr(parsed_args, 'os_cloud', None) is not None):
            parsed_args.api = True
            option = '--os-cloud'
        if not parsed_args.api:
            return
        if is_changed or not self.takes_api:
            raise errors.UsageError(_NOT_IN_API)
        if parsed_args.source is not None or parsed_args.config_file:
            raise errors.UsageError(
                f'either {option}, or --from or --config-file')

    def read(self, command: base.Subcommand, parsed_args: argparse.Namespace,
             parts: Collection[str] | None = None,
             newer: Callable[[str], None] | None = None) -> snapshot.Cloud:
        """Read the cloud; raise a CommandError if that fails.

        :param parts: names of the ``Cloud`` fields that are needed, with
            ``--api``; None if the API does not show enough
        :param newer: called with a line if a newer snapshot of a server is
            waited for; None to take the one that it has
        """
        if self.needs_nova:
            # Before it is imported, as it may choose otherwise.
            concurrency.native_threads()
        if parsed_args.api:
            if parts is None:
                raise errors.UsageError(_NOT_IN_API)
            cloud = api_cloud(command, parsed_args, parts)
        elif parsed_args.source is not None:
            cloud = load(parsed_args.source, parsed_args.config_file, newer)
        else:
            cloud = live_cloud(command, parsed_args)
        command.unread = list(map(str, cloud.missing))
        notes: list[str] = []
        if self.takes_changes:
            cloud, notes = changes.changed(cloud, parsed_args)
        if self.simulates:
            notes += not_simulated(cloud)
        command.app.stderr.writelines(f'note: {note}\n' for note in notes)
        return cloud


def live_cloud(command: base.Subcommand,
               parsed_args: argparse.Namespace) -> snapshot.Cloud:
    """Read the cloud of --config-file, as it is now."""
    if command.read_live is None:
        # Nova prepares its databases once in a process.
        command.read_live = reader(base.configuration(parsed_args))
    return command.read_live()


def connection(command: base.Subcommand,
               parsed_args: argparse.Namespace) -> ty.Any:
    import openstack
    try:
        if not command.in_client:
            return openstack.connect(cloud=parsed_args.os_cloud)
        # The client has not authenticated: other commands need no account
        # (``auth_required`` is False).
        options = command.app.options
        return openstack.connection.Connection(
            config=command.app.cloud_config.get_one(
                cloud=options.cloud, argparse=options))
    except Exception as exc:  # clouds.yaml can be wrong in any way
        raise errors.CloudUnreadError(
            'no account for the API, see --os-cloud and '
            f'the OS_* variables: {exc}') from exc


def api_cloud(command: base.Subcommand, parsed_args: argparse.Namespace,
              parts: Collection[str]) -> snapshot.Cloud:
    from nfv_sched.base import connection_errors
    from nfv_sched.ops.cloud import api
    with progress.shown() as update, connection(
            command, parsed_args) as connected:
        try:
            return api.read(
                connected, parts,
                lambda what, done, total: update(done, total, what))
        except api.APIError as exc:
            raise errors.CloudUnreadError(str(exc) + (
                ': --os-cloud or the OS_* variables'
                if connection_errors.is_refused(exc) else '')) from exc


def not_simulated(cloud: snapshot.Cloud) -> Iterator[str]:
    counts = collections.Counter(host.name for host in cloud.hosts)
    for name, count in counts.items():
        if count > 1:
            yield (f'of the {count} compute nodes of {name} only the first '
                   'is looked at')


def is_file(path: str | None) -> bool:
    return path is not None and not path.lower().startswith(
        ('https://', 'http://'))


def load(path: str, config_files: Sequence[str] = (),
         newer: Callable[[str], None] | None = None,
         content: bytes | None = None) -> snapshot.Cloud:
    """Read a cloud from a file.

    :param path: a snapshot, a cloud file of the simulator, the name of an
        example, or the URL of ``nfv-sched snapshot serve``
    :param config_files: nova.conf files of this machine: the filters and
        weighers that a file may name besides those of Nova and nfv-sched
    :param newer: see :meth:`Source.read`
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
        elif not is_file(path):
            from nfv_sched.ops.cloud import remote
            cloud = (remote.load(path) if newer is None
                     else remote.load_newer(path, newer))
        else:
            # Not if "." or "/" show that a file is meant.
            if not os.path.lexists(path) and _EXAMPLE.fullmatch(path):
                paths = examples.find()
                if path not in paths:
                    raise errors.UsageError(
                        f'no file or example named {path!r}; the examples '
                        f'are: {", ".join(paths) or "none"}')
                path = str(paths[path])
            if not file.is_snapshot(path):
                return _simulate(path)
            cloud = file.load(path)
    except problems.InputError as exc:
        from nfv_sched.ops.cloud.cloud_file import text as cloud_text
        if cloud_text.is_cloud_file(path):
            raise errors.CloudUnreadError(str(exc)) from exc
        raise errors.CloudUnreadError(f'{path}: {file.NEITHER}') from exc
    if cloud_options.only_standard_classes(cloud.options):
        return cloud  # the usual case need not import Nova
    concurrency.native_threads()
    from nfv_sched.ops.simulator import configuration
    return dataclasses.replace(cloud, missing=(
        *cloud.missing, *configuration.refused_classes(cloud.options)))


def _simulate(path: str) -> snapshot.Cloud:
    """Run the steps of a cloud file and return the resulting cloud."""
    concurrency.native_threads()
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
    from nfv_sched.nova import database
    option = '--config-file ' if arguments else ''
    try:
        (database.read_configuration if databases
         else database.parse_configuration)(arguments, base.NFVSched.NAME, '')
    except (cfg.ConfigFilesNotFoundError,
            cfg.ConfigFilesPermissionDeniedError) as exc:
        number = (errno.ENOENT if isinstance(exc, cfg.ConfigFilesNotFoundError)
                  else errno.EACCES)
        raise errors.CloudUnreadError(
            f'{option}{", ".join(exc.config_files)}: '
            f'{os.strerror(number)}') from exc
    except cfg.ConfigFileParseError as exc:
        why = exc.msg.replace(
            f'at {exc.config_file}:', 'not a valid ini file: line ', 1)
        raise errors.CloudUnreadError(
            f'{option}{exc.config_file}: {why}') from exc
    except cfg.Error as exc:
        raise errors.CloudUnreadError(
            _UNUSABLE + ' '.join(str(exc).split())) from exc


def option(name: str) -> str | None:
    from nfv_sched.base import conf
    from nfv_sched.nova import database
    conf.register_opts(database.CONF)
    return database.CONF.nfv_sched[name]


def database_error(exc: Exception) -> errors.CloudUnreadError:
    from oslo_config import cfg
    from oslo_db import exception as db_exception

    from nfv_sched.nova import database
    from nfv_sched.nova import database_errors
    if isinstance(exc, db_exception.CantStartEngineError) and (
            database.CONF.api_database.connection is None):
        files = database.configuration_files()
        return errors.NotConfiguredError(
            f'[api_database] connection is not set in {", ".join(files)}'
            if files else 'no nova.conf in ~/.nova, ~, /etc/nova or /etc, so '
            'there is no cloud to read')
    if isinstance(exc, cfg.Error):
        # Nova looks at some values only when it needs them.
        return errors.CloudUnreadError(_UNUSABLE + ' '.join(str(exc).split()))
    return errors.CloudUnreadError(database_errors.text(
        exc, "Nova's API database", database.CONF.api_database.connection,
        '[api_database] connection'))


def reader(arguments: list[str]) -> Callable[[], snapshot.Cloud]:
    """Return a function that reads the live cloud, with progress on stderr.

    The configuration is read now, and the cloud at each call, which raises
    errors.CloudUnreadError if Nova's database cannot be read.

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
