# SPDX-License-Identifier: Apache-2.0
"""Read Nova's configuration and databases, as ``nova-manage`` does.

For commands and the ledger service; filters and weighers do not use this
module.  Errors of the API database are raised as they are.
"""

from collections.abc import Callable, Iterable, Sequence
import pathlib
import typing as ty

from nova import exception
from nova import objects
from oslo_config import cfg
from oslo_log import log as logging
import oslo_messaging
from oslo_utils import importutils
import sqlalchemy as sa

from nfv_sched.nova import database_errors
from nfv_sched.nova import scheduler

CONF = scheduler.CONF

# Seconds, as an operator waits for databases. Nova gives a cell a minute.
_CONNECT = 10
_ANSWER = 30
_DRIVERS = ('mysqldb', 'pymysql')


class ComputeNode(ty.NamedTuple):
    uuid: str  #: UUID, also that of its resource provider
    name: str  #: name of the hypervisor, also that of its resource provider
    host: str  #: name of the compute service
    hypervisor_type: str
    cell: ty.Any  #: ``nova.objects.CellMapping`` of its cell
    aggregates: list  #: ``nova.objects.Aggregate`` of the host
    #: column of the database, for :func:`numa_topology`
    numa_topology: str | None


def read_configuration(args: list[str], prog: str, description: str) -> None:
    parse_configuration(args, prog, description)
    limit_waiting()
    prepare_database()


def parse_configuration(args: list[str], prog: str, description: str) -> None:
    """Read nova.conf and the arguments only; see :func:`parse` for errors."""
    from nova import config
    from nova import version
    logging.register_options(CONF)
    config.set_lib_defaults()
    register_profiler()
    parse(CONF, args, prog, description=description,
          version=version.version_string())


def parse(conf: cfg.ConfigOpts, args: Sequence[str], prog: str,
          **others) -> None:
    """Make oslo.config read nova.conf and command-line arguments.

    :raises oslo_config.cfg.ConfigFileParseError: also if a file cannot be read
    :raises oslo_config.cfg.Error: for anything else that is wrong
    """
    # oslo.config raises foreign errors for directories and invalid text.
    try:
        conf(args, project='nova', prog=prog, **others)
    except UnicodeDecodeError as exc:
        raise cfg.ConfigFileParseError(
            _no_text(args, prog),
            f'not {exc.encoding.upper()} text') from exc
    except OSError as exc:
        raise cfg.ConfigFileParseError(
            exc.filename, exc.strerror or str(exc)) from exc


def configuration_files() -> list[str]:
    return [*(CONF.config_file or ()), *(CONF.config_dir or ())]


def _no_text(args: Iterable[str], prog: str) -> str:
    """Return the first of the configuration files that is not valid text."""
    for name in (*[arg.rpartition('=')[2] for arg in args],
                 *cfg.find_config_files('nova', prog),
                 *cfg.find_config_dirs('nova', prog)):
        path = pathlib.Path(name).absolute()
        for file in sorted(path.glob('*.conf')) or [path]:
            try:
                file.read_text()
            except UnicodeDecodeError:
                return str(file)
            except (OSError, ValueError):
                pass
    return 'nova.conf'


def register_profiler() -> None:
    if (profiler := importutils.try_import('osprofiler.opts')) is not None:
        profiler.set_defaults(CONF)


def limit_waiting() -> None:
    """Connect to databases once, and fail soon if they do not answer.

    Time limits in the URL of a database (``connect_timeout``,
    ``read_timeout``) take precedence.  Call it before they are prepared.
    """
    for group in ('api_database', 'database'):
        CONF.set_override('max_retries', 1, group)
        CONF.set_override('retry_interval', 0, group)
    if not sa.event.contains(sa.engine.Engine, 'do_connect', _limit):
        sa.event.listen(sa.engine.Engine, 'do_connect', _limit)


def _limit(dialect, record, arguments, parameters) -> None:
    """Set time limits; SQLAlchemy calls this before it connects."""
    if dialect.driver in _DRIVERS:
        parameters.setdefault('connect_timeout', _CONNECT)
        parameters.setdefault('read_timeout', _ANSWER)


def prepare_database() -> None:
    """Prepare Nova's database once nova.conf is read; may raise cfg.Error."""
    from nova.db.api import api as api_db
    from nova.db.main import api as main_db
    _prepare_messaging()
    main_db.configure(CONF)
    api_db.configure(CONF)
    objects.register_all()


def _prepare_messaging() -> None:
    """Prepare Nova's message queue; nothing is sent, but Nova expects it."""
    from nova import rpc
    # Creating the transport again is cheap: nothing connects yet.
    for section, prepare in (
            ('DEFAULT', lambda: rpc.create_transport(rpc.get_transport_url())),
            ('oslo_messaging_notifications', lambda: rpc.init(CONF))):
        try:
            prepare()
        except cfg.Error:
            raise
        except oslo_messaging.DriverLoadFailure as exc:
            raise cfg.ConfigFileValueError(
                f'[{section}] transport_url: there is no messaging driver '
                f'{exc.driver!r}') from exc
        except ImportError as exc:
            raise cfg.ConfigFileValueError(
                f'[{section}] transport_url: its messaging driver needs the '
                f'Python package {exc.name}') from exc
        except Exception as exc:
            # The error may quote part of a password, parsed as the port.
            raise cfg.ConfigFileValueError(
                f'[{section}] transport_url is not a URL like '
                'rabbit://USER:PASSWORD@HOST:PORT/VIRTUAL_HOST; special '
                'characters of a password must be percent-encoded') from exc


def compute_nodes() -> tuple[list[ComputeNode], list[str]]:
    """Return compute nodes, disabled ones too, and errors of other cells."""
    from nova import context as nova_context
    context = nova_context.get_admin_context()
    cells = [cell for cell in all_cells(context) if not cell.is_cell0()]
    aggregates: dict[str, list] = {}
    for aggregate in objects.AggregateList.get_all(context):
        for host in aggregate.hosts:
            aggregates.setdefault(host, []).append(aggregate)

    results, unread = read_cells(
        cells, objects.ComputeNodeList.get_all, context)
    return [ComputeNode(
        node.uuid, node.hypervisor_hostname, node.host, node.hypervisor_type,
        cell, aggregates.get(node.host, []), node.numa_topology)
        for cell in cells for node in results.get(cell.uuid, ()) if node.host
    ], [str(each) for each in unread] if cells else ['there are no cells']


class UnreadCell(ty.NamedTuple):
    cell: ty.Any  #: ``nova.objects.CellMapping``
    error: str | None  #: None if it did not answer in time

    def __str__(self) -> str:
        return f'cell {self.cell.identity}' + (
            ' did not answer' if self.error is None else f': {self.error}')


def read_cells(cells: Iterable, read: Callable[[ty.Any], ty.Any],
               context=None) -> tuple[dict[str, ty.Any], list[UnreadCell]]:
    """Read cells at once, each in a thread with Nova's time limit.

    :param read: gets a context for the cell
    :returns: (UUID of a cell -> what was read, the cells that cannot be read)
    """
    from nova import context as nova_context

    def guarded(cell_context):
        try:
            return read(cell_context)
        except Exception as exc:  # Nova would log it every time
            return exc

    by_uuid = {cell.uuid: cell for cell in cells}
    results, unread = {}, []
    for uuid, result in nova_context.scatter_gather_cells(
            context or nova_context.get_admin_context(),
            list(by_uuid.values()), nova_context.CELL_TIMEOUT,
            guarded).items():
        if result is nova_context.did_not_respond_sentinel:
            unread.append(UnreadCell(by_uuid[uuid], None))
        elif isinstance(result, Exception):
            unread.append(UnreadCell(
                by_uuid[uuid], cell_error(result, by_uuid[uuid])))
        else:
            results[uuid] = result
    return results, unread


def all_cells(context) -> list:
    cells = list(objects.CellMappingList.get_all(context))
    for cell in cells:
        # Nothing is sent to the message queue of a cell, but with a wrong URL
        # of it Nova could not even read the database of the cell.
        cell.transport_url = 'none://'
    if user := CONF.nfv_sched.cell_database_user:
        for cell in cells:
            cell.database_connection = _by_user(
                cell.database_connection, user,
                CONF.nfv_sched.cell_database_password)
    return cells


def cell_error(exc: Exception, cell) -> str:
    """Return why a ``CellMapping`` cannot be read, in one line."""
    return database_errors.text(
        exc, 'its database', cell.database_connection
        if cell.obj_attr_is_set('database_connection') else None,
        '[nfv_sched] cell_database_user, or the cell mapping'
        if CONF.nfv_sched.cell_database_user else
        'the cell mapping (nova-manage cell_v2 list_cells)')


def _by_user(connection: str, user: str, password: str | None) -> str:
    try:
        url = sa.engine.make_url(connection)
    except sa.exc.ArgumentError:
        return connection  # connecting will say what is wrong
    return sa.engine.URL.create(
        url.drivername, user, password, url.host, url.port, url.database,
        url.query).render_as_string(hide_password=False)


def numa_topology(node: ComputeNode):
    """Return a ``NUMATopology``, None if unreported; raise if malformed."""
    if not node.numa_topology:
        return None
    return objects.NUMATopology.obj_from_db_obj(node.numa_topology)


def flavors():
    from nova import context as nova_context
    return objects.FlavorList.get_all(nova_context.get_admin_context())


def moving_instance(cell, migration: str) -> str | None:
    row = _get(cell, objects.Migration, migration)
    return row and row.instance_uuid


def is_idle(cell, instance: str) -> bool:
    """Return whether a server is gone, or has no task and is not built."""
    from nova.compute import vm_states
    server = _get(cell, objects.Instance, instance, expected_attrs=[])
    return server is None or (
        server.task_state is None and server.vm_state != vm_states.BUILDING)


def _get(cell, kind, uuid: str, **options):
    from nova import context as nova_context
    with nova_context.target_cell(
            nova_context.get_admin_context(), cell) as context:
        try:
            return kind.get_by_uuid(context, uuid, **options)
        except exception.NotFound:
            return None
