# SPDX-License-Identifier: Apache-2.0
"""Read rows of Nova's databases in bulk; never write.

Nova's objects are not used for this: some write to the database while they are
read, to bring old rows up to date (allocation ratios of compute nodes, NUMA
topologies of servers and request specs), which an account that may only read
cannot, and they take many times as long.  Errors of the API database are
raised as they are.
"""

import collections
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
import contextlib
import datetime
import json
import typing as ty

from nova.compute import vm_states
from nova import context as nova_context
from nova.db.api import api as api_db
from nova.db.api import models as api_models
from nova.db.main import api
from nova.db.main import models
from nova import exception
from nova import servicegroup
from oslo_utils import timeutils
import sqlalchemy as sa

from nfv_sched.nova import database

#: Maximum number of rows of servers and request specs to read at once.
CHUNK = 500
#: Maximum number of values in one SQL condition.
_VALUES = 500
# A migration with such a status uses no resources any more.
_OVER = ('confirmed', 'reverted', 'error', 'failed', 'completed',
         'cancelled', 'done')
# Newest rows of a table without an index of times that are looked through.
_NEWEST = 10000
# Event of nova-compute, one for each attempt -> what is attempted.
_ATTEMPTS = {'compute__do_build_and_run_instance': 'boot',
             'compute_prep_resize': 'resize',
             'compute_check_can_live_migrate_destination': 'live-migration'}
_IMAGE = 'image_'  # prefix of keys of system_metadata
_NAME = 'nova_object.name'
_DATA = 'nova_object.data'

#: What a record raises that is not as Nova writes it.
MALFORMED = (AttributeError, LookupError, TypeError, ValueError)

#: Called with (what, done, total) as reading goes on.
Progress = Callable[[str, int, int], None]


class ServerRow(ty.NamedTuple):
    cell: str
    #: columns of ``instances``, ``instance_extra``, ``instance_info_caches``
    columns: ty.Any
    image: dict[str, str]  #: properties of its image, as strings
    fault: str | None  #: message of its last fault; None if it is not in error
    shares: bool = False  #: whether it uses shares of Manila
    #: when its last move from another host began; None if there is none
    moved: datetime.datetime | None = None


class CellHosts(ty.NamedTuple):
    uuid: str
    cell: str
    computes: list  #: rows of ``compute_nodes``
    services: dict[str, ty.Any]  #: host -> row of ``services``
    #: ID of the compute node -> rows of ``pci_devices``
    devices: dict[int, list]
    disabled: bool  #: whether Nova sends no new servers to the cell


def deserialized(text: str | None) -> ty.Any:
    """Return a serialized object's data; ValueError if it is not JSON."""
    # Fields that are not set are missing, sets are lists, keys of dicts are
    # strings. An empty column gives None.
    return None if not text else json.loads(text, object_hook=lambda each: (
        each[_DATA] if _NAME in each and _DATA in each else each))


def name_of(cell) -> str:
    return cell.name or cell.uuid


class Cells:
    """All cells, read at once, each in a thread with Nova's time limit.

    A cell that fails once is not read again.

    :ivar empty: whether there are no cells, other than cell0
    """

    def __init__(self):
        self._context = nova_context.get_admin_context()
        self._groups = servicegroup.API()
        self._cells = {
            cell.uuid: cell for cell in database.all_cells(self._context)}
        self.failures: list[database.UnreadCell] = []
        self.empty = all(cell.is_cell0() for cell in self._cells.values())

    def _read(self, read: Callable, cells: Iterable[str]) -> dict[str, ty.Any]:
        results, unread = database.read_cells(
            [self._cells[uuid] for uuid in cells if uuid in self._cells],
            read, self._context)
        for each in unread:
            self.failures.append(each)
            del self._cells[each.cell.uuid]
        return results

    def hosts(self) -> list[CellHosts]:
        return [CellHosts(uuid, name_of(self._cells[uuid]), *rows,
                          bool(self._cells[uuid].disabled))
                for uuid, rows in self._read(
                    _hosts, list(self._cells)).items()]

    def moves(self) -> Iterator:
        """Yield unfinished migrations of all cells that answer; see _moves."""
        for rows in self._read(_moves, list(self._cells)).values():
            yield from rows

    def is_up(self, service) -> bool:
        return self._groups.service_is_up(dict(service._mapping))

    def servers(self, progress: Progress) -> Iterator[ServerRow]:
        """Yield the servers that are in cells that answer, cell0 included."""
        totals = self._read(_count_servers, list(self._cells))
        total, count = sum(totals.values()), 0
        progress('servers', count, total)
        last = dict.fromkeys(totals, 0)
        while last:
            rounds = self._read(
                lambda context: _servers(context, last[context.cell_uuid]),
                list(last))
            for uuid in list(last):
                rows = rounds.get(uuid, ())
                if len(rows) == CHUNK:
                    last[uuid] = rows[-1][0].id
                else:
                    del last[uuid]
                cell = self._cells.get(uuid)
                for row in rows:
                    yield ServerRow(name_of(cell), *row)
                count += len(rows)
            progress('servers', count, max(total, count))


def _moves(context) -> list:
    """Return unfinished migrations, and evacuations not cleaned up after."""
    table = models.Migration.__table__
    return _rows(context, _select_present(
        table, 'uuid', 'instance_uuid', 'migration_type', 'status',
        'source_compute', 'dest_compute', 'created_at', 'updated_at',
    ).where(sa.or_(
        # An evacuation is "done" once the server runs elsewhere, and
        # "completed" when nova-compute has started on the source again
        # (_destroy_evacuated_instances).
        table.c.status.not_in(_OVER),
        sa.and_(table.c.status == 'done',
                table.c.migration_type == 'evacuation'),
    )).order_by(table.c.id))


def _rows(context, query) -> list:
    with api.get_context_manager(context).reader.using(context) as session:
        return list(session.execute(query))


def _api_rows(query) -> list:
    context = nova_context.get_admin_context()
    with api_db.context_manager.reader.using(context) as session:
        return list(session.execute(query))


def _rows_with(context, query, column, values: Iterable[str]) -> Iterator:
    for part in _chunks(values):
        yield from _rows(context, query.where(column.in_(part)))


def _select_present(table, *columns: str):
    return sa.select(*(table.c[name] for name in columns)).where(
        table.c.deleted == 0)


def _hosts(context) -> tuple[list, dict, dict]:
    computes = _rows(context, _select_present(
        models.ComputeNode.__table__, 'id', 'uuid', 'host',
        'hypervisor_hostname', 'hypervisor_type', 'hypervisor_version',
        'supported_instances', 'cpu_info', 'stats', 'vcpus', 'vcpus_used',
        'memory_mb', 'memory_mb_used', 'local_gb', 'local_gb_used',
        'disk_available_least', 'cpu_allocation_ratio',
        'ram_allocation_ratio', 'disk_allocation_ratio', 'numa_topology',
        'pci_stats'))
    table = models.Service.__table__
    services = _rows(context, _select_present(
        table, 'host', 'binary', 'topic', 'disabled', 'disabled_reason',
        'forced_down', 'last_seen_up', 'created_at',
    ).where(table.c.binary == 'nova-compute'))
    table = models.PciDevice.__table__
    devices: dict[int, list] = {}
    for device in _rows(context, _select_present(
        table, 'compute_node_id', 'address', 'vendor_id', 'product_id',
        'dev_type', 'numa_node', 'status', 'parent_addr', 'instance_uuid',
        'request_id', 'extra_info',
    ).order_by(table.c.address)):
        devices.setdefault(device.compute_node_id, []).append(device)
    return ([compute for compute in computes if compute.host],
            {service.host: service for service in services}, devices)


def _shown_servers(table, query):
    # A server that moves between cells is in both; one of the rows is hidden.
    return query.where(table.c.deleted == 0, sa.or_(
        table.c.hidden.is_(None), table.c.hidden == sa.false()))


def _count_servers(context) -> int:
    table = models.Instance.__table__
    (count,), = _rows(context, _shown_servers(
        table, sa.select(sa.func.count()).select_from(table)))
    return count


def _servers(context, last: int) -> list[tuple]:
    """Return :class:`ServerRow` without cell of servers after ID ``last``."""
    table = models.Instance.__table__
    extra = models.InstanceExtra.__table__
    cache = models.InstanceInfoCache.__table__
    # By ID and not by offset: servers that are deleted meanwhile would shift
    # the rows, and others would be left out.
    rows = _rows(context, _shown_servers(table, sa.select(
        *(table.c[name] for name in (
            'id', 'uuid', 'display_name', 'host', 'project_id', 'vm_state',
            'task_state', 'created_at', 'vcpus', 'memory_mb', 'root_gb',
            'ephemeral_gb', 'availability_zone', 'locked')),
        extra.c.flavor, extra.c.numa_topology, extra.c.migration_context,
        extra.c.pci_requests, cache.c.network_info,
    ).select_from(table.outerjoin(extra, sa.and_(
        extra.c.instance_uuid == table.c.uuid, extra.c.deleted == 0)
    ).outerjoin(cache, sa.and_(
        cache.c.instance_uuid == table.c.uuid, cache.c.deleted == 0))
    )).where(table.c.id > last).order_by(table.c.id).limit(CHUNK))
    images: dict[str, dict[str, str]] = {row.uuid: {} for row in rows}
    table = models.InstanceSystemMetadata.__table__
    for row in _rows_with(context, _select_present(
            table, 'instance_uuid', 'key', 'value').where(
                table.c.key.startswith(_IMAGE, autoescape=True)),
            table.c.instance_uuid, images):
        if row.value is not None:
            images[row.instance_uuid][row.key.removeprefix(_IMAGE)] = row.value
    faults: dict[str, str] = {}
    table = models.InstanceFault.__table__
    # The API shows faults for these only; older ones may be long mended.
    for row in _rows_with(context, _select_present(
            table, 'instance_uuid', 'message').order_by(
                table.c.created_at, table.c.id), table.c.instance_uuid,
            [row.uuid for row in rows if row.vm_state == vm_states.ERROR]):
        faults[row.instance_uuid] = row.message
    column = models.ShareMapping.__table__.c.instance_uuid
    sharing = {row.instance_uuid for row in _rows_with(
        context, sa.select(column), column, images)}
    moved = _last_moves(context, {row.uuid: row.host for row in rows})
    return [(row, images[row.uuid], faults.get(row.uuid),
             row.uuid in sharing, moved.get(row.uuid)) for row in rows]


def _last_moves(context, hosts: Mapping[str, str | None],
                ) -> dict[str, datetime.datetime]:
    """Return when servers last moved from other hosts, or tried, in UTC."""
    table = models.Migration.__table__
    began = sa.func.max(table.c.created_at).label('began')
    last_moves: dict[str, datetime.datetime] = {}
    for row in _rows_with(context, sa.select(
            table.c.instance_uuid, table.c.source_compute, began).where(
                table.c.deleted == 0, table.c.source_compute.is_not(None),
                table.c.created_at.is_not(None)).group_by(
                    table.c.instance_uuid, table.c.source_compute),
            table.c.instance_uuid, hosts):
        uuid = row.instance_uuid
        if row.source_compute != hosts[uuid]:
            last_moves[uuid] = max(row.began, last_moves.get(uuid, row.began))
    return last_moves


def late_failures() -> tuple[Mapping[tuple[str, str], int], list[str]]:
    """Count what failed on nova-compute in the last hour.

    :returns: (by name and label of the metric; the cells that cannot be read,
        without which there are no counts)
    """
    total: collections.Counter[tuple[str, str]] = collections.Counter()
    results, unread = database.read_cells(database.all_cells(
        nova_context.get_admin_context()), _late_failures)
    for counts in results.values():
        total.update(counts)
    return {} if unread else total, list(map(str, unread))


def _late_failures(context) -> dict[tuple[str, str], int]:
    since = timeutils.utcnow() - datetime.timedelta(hours=1)
    # NOTE: Only texts of faults tell that a claim has failed. A boot gets one
    # when no host is left, and it need not have the reason.
    claim, retries = (kind.msg_fmt.partition('%')[0] for kind in (
        exception.ComputeResourcesUnavailable, exception.MaxRetriesExceeded))
    faults = _newest(models.InstanceFault, 'instance_uuid', 'message',
                     'created_at')
    is_claim = faults.message.contains(claim, autoescape=True)
    (claims, given_up), = _rows(context, sa.select(*(
        sa.func.count(sa.case((kind, faults.instance_uuid)).distinct())
        for kind in (is_claim, sa.and_(
            faults.message.startswith(retries, autoescape=True),
            sa.not_(is_claim))))).where(faults.created_at >= since))
    events = _newest(models.InstanceActionEvent, 'event', 'action_id',
                     'start_time')
    repeated = dict(map(tuple, _rows(context, sa.select(
        events.event, sa.func.count() - sa.func.count(
            events.action_id.distinct())).where(
                events.event.in_(_ATTEMPTS), events.start_time >= since
    ).group_by(events.event))))
    return {('late_failures', 'claim'): claims,
            ('late_failures', 'retries'): given_up,
            **{('retries', name): repeated.get(event, 0)
               for event, name in _ATTEMPTS.items()}}


def _newest(model, *columns: str):
    return sa.select(*(getattr(model, name) for name in columns)).order_by(
        model.id.desc()).limit(_NEWEST).subquery().c


def plugged_servers(
    ports: Iterable[tuple[database.ComputeNode, Iterable[str]]],
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the servers for which Nova has plugged ports.

    Read from ``virtual_interfaces`` in the database of the cell of each
    compute node.  ``instance_info_caches`` would not do: nova-compute heals it
    from the ``device_id`` of the ports, which tenants can set.

    :returns: (port UUID -> server UUID, without ports that are plugged for no
        server; UUID of a cell that cannot be read -> error text)
    """
    cells: dict[str, ty.Any] = {}
    of_cell: dict[str, list[str]] = {}
    for node, uuids in ports:
        cells[node.cell.uuid] = node.cell
        of_cell.setdefault(node.cell.uuid, []).extend(uuids)
    results, unread = database.read_cells(
        cells.values(), lambda context: _servers_by_port(
            context, of_cell[context.cell_uuid]))
    return {port: server for of_ports in results.values()
            for port, server in of_ports.items()}, {
                each.cell.uuid: str(each) for each in unread}


def pinned_cells(
    nodes: Iterable[database.ComputeNode],
    servers: Collection[str] | None = None,
) -> tuple[dict[str, dict[str, list[dict]]], dict[str, str]]:
    """Return the NUMA cells of servers, by host and UUID of the server.

    A server that is moved has those of its source and those of its
    destination, until the move is confirmed or has ended.

    :param servers: UUIDs of the servers to read; None for all on the hosts
    :returns: (host -> server -> its cells as stored; UUID of a cell of the
        cloud that cannot be read -> error text)
    """
    hosts: dict[str, set[str]] = {}
    cells = {}
    for node in nodes:
        cells[node.cell.uuid] = node.cell
        hosts.setdefault(node.cell.uuid, set()).add(node.host)
    results, unread = database.read_cells(
        cells.values(), lambda context: _pinned_cells(
            context, hosts[context.cell_uuid], servers))
    by_host: dict[str, dict[str, list[dict]]] = {}
    for of_cell in results.values():
        for host, server, numa_cells in of_cell:
            by_host.setdefault(host, {}).setdefault(
                server, []).extend(numa_cells)
    return by_host, {each.cell.uuid: str(each) for each in unread}


def _pinned_cells(context, hosts: Collection[str],
                  servers: Collection[str] | None) -> list[tuple]:
    """Return (host, server, NUMA cells) of the servers on some hosts.

    A server whose record cannot be read counts as without any. So does one
    that Nova has marked as deleted before it frees CPUs, allocation and row.
    """
    table = models.Instance.__table__
    extra = models.InstanceExtra.__table__
    query = _shown_servers(table, sa.select(
        table.c.uuid, table.c.host, extra.c.numa_topology,
        extra.c.migration_context,
    ).select_from(table.join(extra, sa.and_(
        extra.c.instance_uuid == table.c.uuid, extra.c.deleted == 0))
    )).where(table.c.host.is_not(None), sa.func.coalesce(
        extra.c.numa_topology, extra.c.migration_context).is_not(None),
        table.c.vm_state.is_distinct_from(vm_states.DELETED))
    rows = (_rows(context, query) if servers is None
            else _rows_with(context, query, table.c.uuid, servers))
    places: list[tuple[str, str, ty.Any]] = []
    moving = {}
    for row in rows:
        with contextlib.suppress(*MALFORMED):
            if (move := deserialized(row.migration_context)) is not None:
                moving[row.uuid] = int(move['migration_id']), row, dict(move)
            elif row.host in hosts:
                places.append((row.host, row.uuid, deserialized(
                    row.numa_topology)))
    table = models.Migration.__table__
    migrations = {migration.id: migration for migration in _rows_with(
        context, _select_present(
            table, 'id', 'status', 'source_compute', 'dest_compute'),
        table.c.id, [number for number, _row, _move in moving.values()])}
    for uuid, (number, row, move) in moving.items():
        migration = migrations.get(number)
        if migration is not None and migration.status not in _OVER:
            places += [
                (migration.source_compute, uuid,
                 move.get('old_numa_topology')),
                (migration.dest_compute, uuid, move.get('new_numa_topology'))]
        # The context is left over, or about to be removed.
        elif migration is not None and migration.status == 'error' and (
                migration.dest_compute == row.host):
            # See ResourceTracker._update_available_resource.
            places.append((row.host, uuid, move.get('new_numa_topology')))
        else:
            with contextlib.suppress(*MALFORMED):
                places.append((row.host, uuid, deserialized(
                    row.numa_topology)))
    return [(host, uuid, numa['cells']) for host, uuid, numa in places
            if host in hosts and isinstance(numa, dict)
            and isinstance(numa.get('cells'), list)]


def _servers_by_port(context, ports: Iterable[str]) -> dict[str, str]:
    table = models.VirtualInterface.__table__
    # By ID: should there be two rows of a port, the newest counts.
    return {row.uuid: row.instance_uuid for row in _rows_with(
        context, _select_present(table, 'uuid', 'instance_uuid').order_by(
            table.c.id), table.c.uuid, ports)}


def _chunks(values: Iterable[str]) -> Iterator[list[str]]:
    items = list(values)
    for start in range(0, len(items), _VALUES):
        yield items[start:start + _VALUES]


def request_specs(uuids: Iterable[str],
                  progress: Progress) -> Iterator[tuple[str, str]]:
    """Yield (server UUID, latest request spec, serialized) of servers."""
    table = api_models.RequestSpec.__table__
    uuids = list(uuids)
    count = 0
    for part in _chunks(uuids):
        progress('request specs', count, len(uuids))
        for row in _api_rows(sa.select(
                table.c.instance_uuid, table.c.spec).where(
                    table.c.instance_uuid.in_(part))):
            yield row.instance_uuid, row.spec
        count += len(part)
    progress('request specs', count, len(uuids))


def _by_first(query) -> Mapping[ty.Any, list]:
    """Return the rows of a query of the API database by their first column."""
    rows: dict[ty.Any, list] = collections.defaultdict(list)
    for row in _api_rows(query):
        rows[row[0]].append(row)
    return rows


def aggregates() -> list[dict[str, ty.Any]]:
    table = api_models.Aggregate.__table__
    rows = _api_rows(sa.select(
        table.c.id, table.c.name, table.c.uuid).order_by(table.c.id))
    table = api_models.AggregateMetadata.__table__
    metadata = _by_first(sa.select(
        table.c.aggregate_id, table.c.key, table.c.value))
    table = api_models.AggregateHost.__table__
    hosts = _by_first(sa.select(
        table.c.aggregate_id, table.c.host).order_by(table.c.host))
    return [{'name': row.name, 'uuid': row.uuid or '',
             'metadata': {key: value for _id, key, value in metadata[row.id]},
             'hosts': [host for _id, host in hosts[row.id]]} for row in rows]


def mapped_hosts() -> dict[str, str]:
    """Return host -> UUID of its cell."""
    host = api_models.HostMapping.__table__
    cell = api_models.CellMapping.__table__
    return {row.host: row.uuid for row in _api_rows(
        sa.select(host.c.host, cell.c.uuid).select_from(
            host.join(cell, cell.c.id == host.c.cell_id)))}


def groups() -> list[dict[str, ty.Any]]:
    group = api_models.InstanceGroup.__table__
    policy = api_models.InstanceGroupPolicy.__table__
    member = api_models.InstanceGroupMember.__table__
    rows = _api_rows(sa.select(
        group.c.id, group.c.uuid, group.c.name, policy.c.policy,
        policy.c.rules).select_from(group.outerjoin(
            policy, policy.c.group_id == group.c.id)).order_by(group.c.id))
    members = _by_first(sa.select(
        member.c.group_id, member.c.instance_uuid).order_by(member.c.id))
    return list({row.id: {
        'uuid': row.uuid, 'name': row.name or '', 'policy': row.policy or '',
        'rules': deserialized(row.rules) or {},
        'members': [uuid for _id, uuid in members[row.id]],
    } for row in rows}.values())


def flavors() -> list[dict[str, ty.Any]]:
    """Return columns and ``extra_specs`` of all flavors, private ones too."""
    table = api_models.Flavors.__table__
    rows = _api_rows(sa.select(*(table.c[name] for name in (
        'id', 'name', 'flavorid', 'vcpus', 'memory_mb', 'root_gb',
        'ephemeral_gb', 'swap', 'is_public', 'disabled'))
    ).order_by(table.c.id))
    table = api_models.FlavorExtraSpecs.__table__
    extra_specs = _by_first(sa.select(
        table.c.flavor_id, table.c.key, table.c.value))
    return [{**row._mapping, 'extra_specs': {
        key: value for _id, key, value in extra_specs[row.id]
        if value is not None}} for row in rows]


def iso(moment: datetime.datetime | None, timespec: str = 'seconds') -> str:
    return '' if moment is None else f'{moment.isoformat("T", timespec)}Z'
