# SPDX-License-Identifier: Apache-2.0
"""Read a cloud from Nova's databases, Placement and Neutron.

Nothing is written.  Only errors of Nova's API database are raised; anything
else that cannot be read is named in the result, with the rest of the cloud.
"""

import collections
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent import futures
import contextlib
import dataclasses
import datetime
import functools
import importlib.metadata
import json
import typing as ty

from oslo_config import cfg

from nfv_sched.base import conf as nfv_conf
from nfv_sched.base import connection_errors
from nfv_sched.base import strings
from nfv_sched.ledger import client as placement_client
from nfv_sched.ledger import neutron
from nfv_sched.limits import usage
from nfv_sched.nova import records
from nfv_sched.ops.cloud import agents
from nfv_sched.ops.cloud import options as cloud_options
from nfv_sched.ops.cloud import scenario
from nfv_sched.ops.cloud import snapshot

# Image properties, and prefixes of them, that do not matter for scheduling.
_OTHER_PROPERTIES = ('base_image_ref', 'owner', 'boot_roles', 'stores',
                     'disk_format', 'container_format')
_OTHER_PREFIXES = ('owner_', 'user_id', 'instance_uuid', 'clean_', 'image_',
                   'os_glance_', 'os_hash_')
# Errors from a row that is not as Nova writes it.
_MALFORMED = (AttributeError, KeyError, TypeError, ValueError)
_Kind = snapshot.MissingKind
_Missing = list[snapshot.Missing]


def read(conf, progress: records.Progress = lambda what, finished,
         total: None) -> snapshot.Cloud:
    """Read a cloud; may raise any error of the API database."""
    timestamp = datetime.datetime.now(datetime.UTC).strftime(
        '%Y-%m-%dT%H:%M:%SZ')
    missing: _Missing = []
    aggregates = tuple([
        snapshot.Aggregate(**{**row, 'hosts': tuple(row['hosts'])})
        for row in records.aggregates()])
    groups = tuple([
        snapshot.Group(**{**row, 'rules': _texts(row['rules']),
                          'members': tuple(row['members'])})
        for row in records.groups()])
    flavors = [flavor_of(row) for row in records.flavors()]
    cells = records.Cells()
    hosts = _hosts(conf, cells, aggregates, missing)
    progress('hosts', len(hosts), len(hosts))
    servers, moving = _servers(cells, groups, hosts, missing, progress)
    moves = _moves(cells, moving, missing)
    missing[:0] = _unread_cells(cells)
    network: usage.Snapshot | None = None
    served: dict[str, ty.Any] = {}
    placed = Places({}, None, {})
    progress('Neutron', 0, 1)
    with _noted(missing, _Kind.NEUTRON, conf, 'neutron'):
        network = neutron.read_snapshot(conf)
        progress('Neutron', 1, 1)
    if network is not None:
        with _noted(missing, _Kind.NETWORK_AGENTS, conf, 'neutron'), (
                contextlib.closing(neutron.Reader(conf))) as reader:
            served = agents.read(reader, progress)
    threads = conf.nfv_sched.ledger_threads
    with _noted(missing, _Kind.PLACEMENT, conf, 'placement'), (
            contextlib.closing(placement_client.Client(
                conf, threads))) as client:
        placed = read_places(
            client, threads, [host.uuid for host in hosts],
            [each.uuid for each in aggregates if each.uuid], progress)
    if placed.failed:
        missing.append(snapshot.Missing(
            kind=_Kind.PROVIDERS, uuids=tuple(sorted(placed.failed)),
            text=next(iter(placed.failed.values()))))
    unread = {host.name for host in hosts if host.uuid in placed.failed}
    uuids = {server.uuid for server in servers}
    return snapshot.Cloud(
        taken=timestamp, source="Nova's databases, Placement and Neutron",
        nova=release('nova'), nfv_sched=release('nfv-sched'),
        missing=tuple([
            dataclasses.replace(each, text=strings.mask_secrets(each.text))
            for each in missing]), options=options(conf),
        hosts=tuple(sorted((dataclasses.replace(
            host, providers=placed.providers.get(host.uuid, ()),
            network=None if network is None else _host_network(
                host.name, network)) for host in hosts),
            key=lambda host: (host.name, host.hypervisor))),
        servers=tuple(sorted((dataclasses.replace(
            server,
            ports=server.ports if network is None else _ports(server, network),
            allocations=None
            if placed.allocations is None or server.host in unread
            else placed.allocations.get(server.uuid, {}))
            for server in servers), key=lambda server: server.uuid)),
        flavors=tuple(sorted(flavors, key=lambda flavor: flavor.name)),
        aggregates=aggregates, groups=groups,
        moves=moves, consumers=None if placed.allocations is None else {
            consumer: allocations
            for consumer, allocations in placed.allocations.items()
            if consumer not in uuids},
        traits=placed.traits, resource_classes=placed.resource_classes,
        **served)


@contextlib.contextmanager
def _noted(missing: _Missing, kind: snapshot.MissingKind, conf,
           section: str) -> Iterator[None]:
    """Add a service that cannot be read to missing, with a wrong option."""
    try:
        yield
    except (neutron.NeutronError, placement_client.PlacementError) as exc:
        try:
            # [neutron] and others can name a section that they share.
            section = conf[section].auth_section or section
            auth_url = conf[section].auth_url
        except cfg.Error:
            auth_url = None
        option = connection_errors.wrong_option(exc, section, auth_url)
        missing.append(snapshot.Missing(
            kind=kind, text=f'{exc}: {option}' if option else str(exc)))


def release(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ''


def _texts(values: Mapping) -> dict[str, str]:
    return {str(key): value if isinstance(value, str) else json.dumps(value)
            for key, value in values.items() if value is not None}


def options(conf) -> dict[str, dict[str, ty.Any]]:
    """Return the options to save in a snapshot: section -> name -> value."""
    sections: dict[str, dict[str, ty.Any]] = {}
    for section, names in cloud_options.SAVED.items():
        group = conf if section == 'DEFAULT' else conf[section]
        sections[section] = {name: group[name] for name in names
                             if name in group}
    sections['filter_scheduler'].update(
        (name, value) for name, value in conf.filter_scheduler.items()
        if name.endswith(cloud_options.MULTIPLIER))
    sections['nfv_sched'] = {
        name: value for name, value in conf.nfv_sched.items()
        if name not in nfv_conf.OF_COMMANDS}
    return sections


def _unread_cells(cells: records.Cells) -> Iterator[snapshot.Missing]:
    if cells.empty:
        yield snapshot.Missing(kind=_Kind.NO_CELLS)
    for cell, error in cells.failures:
        yield snapshot.Missing(
            kind=_Kind.SILENT_CELL if error is None else _Kind.CELL,
            cell=records.name_of(cell), uuids=(cell.uuid,), text=error or '')


def _hosts(conf, cells: records.Cells, aggregates,
           missing: _Missing) -> list[snapshot.Host]:
    """Return the hosts, without data from Placement and Neutron."""
    of_host = scenario.aggregates_by_host(aggregates)
    zones = scenario.zones_of(aggregates)
    mapped = records.mapped_hosts()
    hosts = []
    for cell_hosts in cells.hosts():
        for compute in cell_hosts.computes:
            service = cell_hosts.services.get(compute.host)
            with _left_out(missing, _Kind.HOST, hosts=(compute.host,)):
                hosts.append(_host(
                    compute, cell_hosts.cell,
                    cell_hosts.devices.get(compute.id, []),
                    aggregates=tuple([
                        each.name for each in of_host[compute.host]]),
                    zone=zones.get(
                        compute.host, conf.default_availability_zone),
                    # Nova cannot use a compute node without a service.
                    enabled=service is not None and not (
                        service.disabled or cell_hosts.disabled),
                    disabled_reason='its cell is disabled'
                    if cell_hosts.disabled
                    else service and service.disabled_reason,
                    up=service is not None and cells.is_up(service),
                    mapped=mapped.get(compute.host) == cell_hosts.uuid))
    return hosts


@contextlib.contextmanager
def _left_out(missing: _Missing, kind: snapshot.MissingKind,
              **names: tuple[str, ...]) -> Iterator[None]:
    """Leave out a row that is not as Nova writes it; add it to missing."""
    try:
        yield
    except _MALFORMED as exc:
        missing.append(snapshot.Missing(
            kind=kind, text=f'{exc.__class__.__name__}: {exc}', **names))


def _host(row, cell: str, devices: Iterable, **service) -> snapshot.Host:
    topology = records.deserialized(row.numa_topology)
    pools = _pools(row.pci_stats)
    return snapshot.Host(
        name=row.host, hypervisor=row.hypervisor_hostname or row.host,
        uuid=row.uuid or '', cell=cell, hypervisor_type=row.hypervisor_type,
        hypervisor_version=row.hypervisor_version, supported=tuple(map(
            tuple, json.loads(row.supported_instances or '[]'))),
        cpu_info=row.cpu_info or '',
        stats=_texts(records.deserialized(row.stats) or {}),
        vcpus=row.vcpus, vcpus_used=row.vcpus_used, memory=row.memory_mb,
        memory_used=row.memory_mb_used, disk=row.local_gb,
        disk_used=row.local_gb_used,
        disk_available_least=row.disk_available_least,
        cpu_ratio=row.cpu_allocation_ratio or None,
        memory_ratio=row.ram_allocation_ratio or None,
        disk_ratio=row.disk_allocation_ratio or None,
        nodes=None if topology is None else tuple(
            host_node(cell) for cell in topology['cells']),
        devices=tuple(device(each, _tags(each, pools)) for each in devices),
        **service)


def host_node(cell: Mapping) -> snapshot.Node:
    """Convert a ``nova.objects.NUMACell`` without versions."""
    network = cell.get('network_metadata') or {}
    cores = tuple(map(frozenset, cell.get('siblings') or ()))
    return snapshot.Node(
        number=cell['id'], socket=cell.get('socket'),
        shared=frozenset(cell['cpuset']),
        dedicated=frozenset(cell.get('pcpuset') or ()),
        pinned=frozenset(cell.get('pinned_cpus') or ()),
        # Without hyperthreading a file would have a line for each CPU.
        siblings=cores if any(len(core) > 1 for core in cores) else (),
        memory=cell['memory'], memory_used=cell.get('memory_usage', 0),
        shared_used=cell.get('cpu_usage', 0),
        pages=tuple(snapshot.Pages(
            size=pages['size_kb'], total=pages['total'],
            used=pages.get('used', 0), reserved=pages.get('reserved', 0))
            for pages in cell.get('mempages') or ()),
        physnets=frozenset(network.get('physnets') or ()),
        tunneled=bool(network.get('tunneled')))


def _pools(text: str | None) -> list[Mapping]:
    pools = records.deserialized(text)
    if isinstance(pools, Mapping):
        pools = pools.get('objects')
    return [pool for pool in pools or ()
            if isinstance(pool.get('tags'), Mapping)]


def device(row, tags: Mapping[str, str]) -> snapshot.Device:
    """Convert a ``nova.objects.PciDevice``, or a row of its table."""
    return snapshot.Device(
        address=row.address, vendor=row.vendor_id, product=row.product_id,
        kind=row.dev_type, node=row.numa_node, status=row.status,
        parent=row.parent_addr, server=row.instance_uuid,
        request=row.request_id, tags=tags)


def _tags(row, pools: list[Mapping]) -> dict[str, str]:
    """Return the tags that a device certainly has.

    Nova stores tags of pools, not of devices, and a pool only as long as one
    of its devices is free.  If a device fits several pools, only the tags
    that all of them share are certain.
    """
    extra = records.deserialized(row.extra_info) or {}
    common: dict[str, str] | None = None
    for pool in pools:
        tags = _texts(pool['tags'])
        address = tags.get('address')
        interface = tags.get('parent_ifname')
        if (
            (pool['vendor_id'], pool['product_id'], pool.get('numa_node'))
            != (row.vendor_id, row.product_id, row.numa_node)
            or tags.pop('dev_type', row.dev_type) != row.dev_type
            or address and address not in (row.address, row.parent_addr)
            or interface and interface != extra.get('parent_ifname')
        ):
            continue
        common = tags if common is None else dict(
            common.items() & tags.items())
    return common or {}


# Guest NUMA nodes before and after a migration that is in progress or not yet
# confirmed.
_Moving = tuple[tuple[snapshot.GuestNode, ...] | None,
                tuple[snapshot.GuestNode, ...] | None]


def _servers(
    cells: records.Cells, groups: Iterable[snapshot.Group],
    hosts: Iterable[snapshot.Host], missing: _Missing,
    progress: records.Progress,
) -> tuple[list[snapshot.Server], dict[str, _Moving]]:
    """Return servers with the ports that Nova knows; by UUID, what moves."""
    group_of = {
        member: group.uuid for group in groups for member in group.members}
    # A server that is migrated has devices on two hosts.
    devices = collections.defaultdict[tuple[str | None, str], list[str]](list)
    for host in hosts:
        for each in host.devices:
            devices[each.server, host.name].append(each.address)
    # Parse each flavor once: many servers have the same one.
    flavor = functools.lru_cache(maxsize=4096)(
        lambda text: flavor_of(records.deserialized(text)['cur']))
    rows = {row.columns.uuid: row for row in cells.servers(progress)}
    specs: dict[str, dict[str, ty.Any]] = {}
    for uuid, text in records.request_specs(rows, progress):
        with _left_out(missing, _Kind.REQUEST_SPEC, uuids=(uuid,)):
            spec = records.deserialized(text)
            specs[uuid] = {'zone': spec.get('availability_zone'), 'hints': {
                name: tuple(map(str, values if isinstance(values, list)
                                else [values]))
                for name, values in (
                    spec.get('scheduler_hints') or {}).items()}}
    servers, moving = [], {}
    for uuid, row in rows.items():
        with _left_out(missing, _Kind.SERVER, uuids=(uuid,)):
            server = _server(
                row, flavor, group=group_of.get(uuid),
                devices=tuple(devices.get((uuid, row.columns.host), ())),
                **specs.get(uuid, {}))
            context = records.deserialized(row.columns.migration_context) or {}
            moving[uuid] = (guest_nodes(context.get('old_numa_topology')),
                            guest_nodes(context.get('new_numa_topology')))
            servers.append(server)
    return servers, moving


def _server(row: records.ServerRow, flavor, **more) -> snapshot.Server:
    columns = row.columns
    topology = records.deserialized(columns.numa_topology)
    return snapshot.Server(
        uuid=columns.uuid, name=columns.display_name or '',
        host=columns.host, cell=row.cell, project=columns.project_id or '',
        state=columns.vm_state or '', task=columns.task_state,
        locked=bool(columns.locked),
        # Keep fractions of seconds, which some databases store: the API sorts
        # by them.
        fault=row.fault, created=records.iso(columns.created_at, 'auto'),
        moved=records.iso(row.moved),
        flavor=flavor(columns.flavor) if columns.flavor else
        snapshot.Flavor(
            name='', vcpus=columns.vcpus or 0, memory=columns.memory_mb or 0,
            disk=columns.root_gb or 0, ephemeral=columns.ephemeral_gb or 0),
        image={name: text for name, text in row.image.items()
               if name not in _OTHER_PROPERTIES
               and not name.startswith(_OTHER_PREFIXES)},
        # Without a host they have the numbers of guest nodes, from the flavor.
        nodes=guest_nodes(topology) if columns.host is not None else None,
        emulator_threads=topology and topology.get('emulator_threads_policy'),
        pci_requests=stored_requests(columns.pci_requests),
        ports=_interfaces(columns.network_info), shares=row.shares, **more)


def _moves(cells: records.Cells, moving: Mapping[str, _Moving],
           missing: _Missing) -> tuple[snapshot.Migration, ...]:
    moves = []
    for row in cells.moves():
        with _left_out(missing, _Kind.MIGRATION, uuids=(str(row.uuid),)):
            before, after = moving.get(row.instance_uuid, (None, None))
            moves.append(snapshot.Migration(
                uuid=row.uuid or '', server=row.instance_uuid or '',
                kind=row.migration_type or '', status=row.status or '',
                source=row.source_compute, target=row.dest_compute,
                updated=records.iso(row.updated_at or row.created_at),
                before=before, after=after))
    return tuple(sorted(moves, key=lambda move: move.uuid))


def flavor_of(fields: ty.Any) -> snapshot.Flavor:
    """Convert a ``nova.objects.Flavor``, with or without versions."""
    return snapshot.Flavor(
        name=fields['name'], id=fields['flavorid'], vcpus=fields['vcpus'],
        memory=fields['memory_mb'], disk=fields['root_gb'] or 0,
        ephemeral=fields['ephemeral_gb'] or 0, swap=fields['swap'] or 0,
        public=bool(fields.get('is_public', True)),
        disabled=bool(fields.get('disabled')),
        extra_specs=_texts(fields.get('extra_specs') or {}))


def guest_nodes(topology: ty.Any) -> tuple[snapshot.GuestNode, ...] | None:
    """Convert an ``InstanceNUMATopology``, with or without versions."""
    if topology is None:
        return None
    return tuple(_guest_node(cell) for cell in topology['cells'])


def _guest_node(cell: ty.Any) -> snapshot.GuestNode:
    shared = frozenset(cell.get('cpuset') or ())
    dedicated = frozenset(cell.get('pcpuset') or ())
    policy = cell.get('cpu_policy')
    if policy == 'dedicated' and not dedicated:
        # Before Victoria pinned vCPUs were in cpuset.  Nova converts a
        # stored topology only when it loads the server.
        shared, dedicated = frozenset(), shared
    return snapshot.GuestNode(
        host_node=cell['id'], shared=shared, dedicated=dedicated,
        pins={int(vcpu): cpu for vcpu, cpu in (
            cell.get('cpu_pinning_raw') or {}).items()},
        memory=cell['memory'], page_size=cell.get('pagesize'),
        cpu_policy=policy, thread_policy=cell.get('cpu_thread_policy'),
        reserved=frozenset(cell.get('cpuset_reserved') or ()))


def stored_requests(
        text: str | None) -> tuple[snapshot.PCIRequest, ...] | None:
    """Parse ``instance_extra.pci_requests``; None if there is no record."""
    if (requests := records.deserialized(text)) is None:
        return None
    return tuple(snapshot.PCIRequest(
        id=request.get('request_id'), count=request['count'],
        alias=request.get('alias_name'),
        specs=tuple(
            {name: value if value is None else str(value)
             for name, value in spec.items()
             if name not in snapshot.ALLOCATED_TAGS}
            for spec in request['spec'] or ()),
        numa_policy=request.get('numa_policy'),
        port=request.get('requester_id')) for request in requests)


def _interfaces(text: str | None) -> tuple[snapshot.Port, ...] | None:
    """Parse ``instance_info_caches.network_info``; None if there is none."""
    if (interfaces := records.deserialized(text)) is None:
        return None
    ports = {}
    for interface in interfaces:
        network = interface.get('network') or {}
        meta = network.get('meta') or {}
        profile = interface.get('profile') or {}
        ports[interface['id']] = snapshot.Port(
            id=interface['id'], network=network.get('id') or '',
            network_name=network.get('label') or '',
            vnic_type=interface.get('vnic_type') or 'normal',
            physnet=meta.get('physical_network') or (
                interface.get('details') or {}).get('physical_network'),
            device=profile.get('pci_slot'),
            has_allocation=bool(profile.get('allocation')))
    return tuple(ports.values())


def _host_network(name: str, network: usage.Snapshot) -> snapshot.HostNetwork:
    used = network.host(name)
    return snapshot.HostNetwork(
        vswitch_ports=used.vswitch_ports,
        security_rules=None if network.hides_groups else used.rules,
        dhcp_servers=used.dhcp_servers if network.dhcp_known else None,
        routers=used.routers)


def _ports(server: snapshot.Server,
           network: usage.Snapshot) -> tuple[snapshot.Port, ...]:
    """Return the ports of a server from Neutron, with networks from Nova."""
    of_nova = {port.id: port for port in server.ports or ()}
    return tuple(dataclasses.replace(
        of_nova.get(port.id) or snapshot.Port(id=port.id),
        vnic_type=port.vnic_type, rules=None if network.hides_groups
        else network.rules_of(port.security_groups))
        for port in network.ports_of(server.uuid, server.project))


class Places(ty.NamedTuple):
    #: UUID of compute node -> its providers
    providers: dict[str, tuple[snapshot.Provider, ...]]
    #: UUID of consumer -> provider -> class -> amount; None if not read
    allocations: dict[str, dict[str, dict[str, int]]] | None
    #: UUID of compute node that could not be read -> error
    failed: dict[str, str]
    traits: frozenset[str] | None = None  #: all traits; None if unknown
    #: all resource classes; None if unknown
    resource_classes: frozenset[str] | None = None


# A provider, and its allocations: consumer -> class -> amount.
_Reading = tuple[snapshot.Provider, Mapping[str, dict[str, int]]]


def read_places(client: placement_client.Client, threads: int,
                computes: Collection[str], aggregates: Collection[str],
                progress: records.Progress) -> Places:
    """Read the resource providers of hosts; ``failed`` has errors of some.

    Usages are not read: they are the sums of the allocations.
    """
    providers: dict[str, tuple[snapshot.Provider, ...]] = {}
    allocations: dict[str, dict[str, dict[str, int]]] = {}
    failed: dict[str, str] = {}
    with futures.ThreadPoolExecutor(threads) as pool:
        try:
            readings = _start(client, pool, computes, aggregates)
            for count, reading in enumerate(futures.as_completed(readings)):
                progress('resource providers', count, len(readings))
                uuid = readings[reading]
                try:
                    tree = reading.result()
                except placement_client.UnavailableError:
                    raise
                except placement_client.PlacementError as exc:
                    failed[uuid] = str(exc)
                    continue
                providers[uuid] = tuple([provider for provider, _ in tree])
                for provider, consumers in tree:
                    for consumer, resources in consumers.items():
                        allocations.setdefault(consumer, {})[
                            provider.uuid] = resources
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    progress('resource providers', len(readings), len(readings))
    return Places(providers, allocations, failed, _names(client.traits),
                  _names(client.resource_classes))


def _names(read_names: Callable[[], list[str]]) -> frozenset[str] | None:
    try:
        return frozenset(read_names())
    except placement_client.PlacementError:
        return None


def _start(
    client: placement_client.Client, pool: futures.Executor,
    computes: Collection[str], aggregates: Collection[str],
) -> dict[futures.Future[list[_Reading]], str]:
    """Start to read the provider trees of hosts.

    Traits and aggregates are read first, a request for each of them: there
    are thousands of providers, and few traits.
    """
    trees: dict[str, list[placement_client.ProviderRow]] = {
        uuid: [] for uuid in computes}
    for member in client.members():
        if member.root in trees:
            trees[member.root].append(member)
    traits = _owners(client, pool, 'required', client.traits(used=True))
    member_of = _owners(client, pool, 'member_of', aggregates)
    return {pool.submit(_read_tree, client, members, traits, member_of): uuid
            for uuid, members in trees.items()}


def _owners(client: placement_client.Client, pool: futures.Executor, key: str,
            names: Collection[str]) -> dict[str, set[str]]:
    """Return the traits, or aggregates, of each provider, by its UUID."""
    names_by_uuid: dict[str, set[str]] = {}
    for name, members in zip(names, pool.map(
            lambda name: client.members(f'?{key}={name}'), names)):
        for member in members:
            names_by_uuid.setdefault(member.uuid, set()).add(name)
    return names_by_uuid


def _read_tree(client: placement_client.Client,
               members: list[placement_client.ProviderRow],
               traits: Mapping[str, set[str]],
               aggregates: Mapping[str, set[str]]) -> list[_Reading]:
    """Read the provider tree of a host, root first."""
    tree = []
    for member in sorted(members, key=lambda member: (
            member.parent is not None, member.name)):
        # A provider that was deleted since it was listed is left out.
        with contextlib.suppress(placement_client.NotFoundError):
            tree.append(_read_provider(
                client, member, frozenset(traits.get(member.uuid, ())),
                frozenset(aggregates.get(member.uuid, ()))))
    # Leave out providers below one that was deleted.
    while True:
        present = {None, *(provider.uuid for provider, _ in tree)}
        rest = [each for each in tree if each[0].parent in present]
        if len(rest) == len(tree):
            return tree
        tree = rest


def _read_provider(
    client: placement_client.Client, member: placement_client.ProviderRow,
    traits: frozenset[str], aggregates: frozenset[str],
) -> _Reading:
    _generation, inventories = client.inventories(member.uuid)
    _generation, held = client.held(member.uuid)
    allocations = {consumer: each.resources for consumer, each in held.items()}
    used: collections.Counter[str] = collections.Counter()
    for resources in allocations.values():
        used.update(resources)
    return snapshot.Provider(
        uuid=member.uuid, name=member.name, parent=member.parent,
        traits=traits, aggregates=aggregates, inventories={
            name: snapshot.Inventory(
                total=inventory['total'], reserved=inventory['reserved'],
                ratio=float(inventory['allocation_ratio']),
                min_unit=inventory['min_unit'], max_unit=inventory['max_unit'],
                step_size=inventory['step_size'], used=used[name])
            for name, inventory in inventories.items()}), allocations
