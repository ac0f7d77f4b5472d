# SPDX-License-Identifier: Apache-2.0

"""Tell the result of a simulation: as a document, and as tables of it."""

from collections.abc import Callable, Collection, Iterable, Sequence
import dataclasses
import functools
import math
import operator
import typing as ty

from nfv_sched.base import cpu_spec
from nfv_sched.base import strings
from nfv_sched.limits import decide
from nfv_sched.limits import names as ledger_names
from nfv_sched.ops.answers.simulation import document
from nfv_sched.ops.cli import tables
from nfv_sched.ops.simulator import compute
from nfv_sched.ops.simulator import engine
from nfv_sched.ops.simulator import network
from nfv_sched.ops.simulator import outcome
from nfv_sched.ops.simulator import servers as simulated

#: If there are more hosts, tables have rows for groups of equal hosts.
MANY_HOSTS = 24

# Nova's type of a PCI device -> name in tables.
_KINDS = {'type-VF': 'VF', 'type-PF': 'PF', 'type-PCI': 'standard',
          'vdpa': 'vdpa'}
#: Columns that tables for people lose first.
LEAST_IMPORTANT = ('Places', 'PCI', 'vSwitch', 'Switch', 'PCI devices',
                   'Flavor')

_column = tables.Column
_detail = functools.partial(tables.Column, is_detail=True)


@dataclasses.dataclass(frozen=True, slots=True)
class ReportTable:
    """A table of a result."""

    title: str
    columns: Sequence[tables.Column]
    rows: Sequence[ty.Any]  #: rows, of each host
    #: rows of groups of equal hosts, for people; None for :attr:`rows`
    groups: Sequence[ty.Any] | None = None


def _has_devices(result: engine.SimulationResult) -> bool:
    return any(host.devices for host in result.scenario.cloud.hosts)


def _has_places(result: engine.SimulationResult) -> bool:
    return any(result.scenario.places.values())


def _place_columns(result: engine.SimulationResult) -> list[tables.Column]:
    """Return a column of all places for people, and one of each."""
    together = [_column(
        'Places', None, lambda row: outcome.places_text(row.places))]
    return [*(together if _has_places(result) else ()), *(
        _detail(f'Place {name}', functools.partial(_place, name))
        for name in sorted({name for places in result.scenario.places.values()
                            for name in places}))]


_Placed = document.SimulatedServerState | outcome.SimulatedStep


def _place(name: str, row: _Placed) -> str | None:
    return row.places.get(name)


def _numa_nodes(row: _Placed) -> str:
    return ','.join(map(str, row.numa_nodes or ()))


def _addresses(row: _Placed) -> str:
    return ', '.join([device.address for device in row.pci_devices])


def _addresses_by_node(row: _Placed) -> str:
    """Return PCI addresses by NUMA node: ``node 0: 01:00.0 01:00.1``."""
    by_node: dict[int | None, list[str]] = {}
    for device in row.pci_devices:
        by_node.setdefault(device.node, []).append(
            device.address.removeprefix('0000:'))
    return '; '.join(
        f'{"no node" if node is None else f"node {node}"}: '
        f'{" ".join(addresses)}'
        for node, addresses in sorted(
            by_node.items(), key=lambda item: (item[0] is None,
                                               item[0] or 0)))


def table(result: engine.SimulationResult, section: str,
          full: bool = False) -> ReportTable:
    """Return the table of a section of the document.

    :param full: whether to list each host even if there are more than
        ``MANY_HOSTS``; if not, rows are about groups of equal hosts
    """
    match section:
        case 'hosts':
            return hosts(result, full)
        case 'network':
            return network_loads(result, full)
        case 'servers':
            return servers(result)
    return steps(result)


def servers(result: engine.SimulationResult) -> ReportTable:
    """Return the table of servers after the last step.

    People see columns for PCI devices and places if any host has these.
    """
    no_devices = not _has_devices(result)
    return ReportTable('Servers', (
        _column('Server', 'server'), _detail('Server ID', 'server_id'),
        _column('Flavor', 'flavor'), _column('Status', 'status'),
        _column('Host', 'host'), _detail('Host ID', 'host_id'),
        _column('NUMA nodes', _numa_nodes),
        _column('Pinned CPUs', lambda row: cpu_spec.to_text(row.pinned_cpus)),
        _column('vSwitch', 'vswitch', lambda row: _policy(
            row.vswitch_policy, row.vswitch)),
        _detail('vSwitch policy', 'vswitch_policy'), *_place_columns(result),
        _column('PCI', 'pci', lambda row: _policy(row.pci_policy, row.pci),
                is_detail=no_devices),
        _detail('PCI policy', 'pci_policy'),
        _column('PCI devices', _addresses, _addresses_by_node,
                is_detail=no_devices),
        _column('Remark', 'remark')), server_states(result))


def _policy(policy: str | None, near: str | None) -> str:
    """Return where a server is, and its policy: ``local (policy strict)``."""
    text = f'policy {policy}' if policy else 'no policy'
    if near:
        return f'{near} ({text})'
    return text if policy else ''


def steps(result: engine.SimulationResult) -> ReportTable:
    no_devices = not _has_devices(result)
    # A step may also be of a host.
    hosts = {host.name: host.uuid for host in result.hosts}
    both = hosts | {server.name: server.uuid for server in result.servers}
    return ReportTable('Steps', (
        _column('Step', 'step'), _column('Action', 'action'),
        _column('Server', 'server'),
        _detail('Server ID', lambda row: both.get(row.server)),
        _column('Result', 'result'), _column('From', 'source'),
        _detail('From ID', lambda row: hosts.get(row.source or '')),
        _column('To', 'destination'),
        _detail('To ID', lambda row: hosts.get(row.destination or '')),
        _column('NUMA nodes', _numa_nodes), _column('vSwitch', 'vswitch'),
        *_place_columns(result), _column('PCI', 'pci', is_detail=no_devices),
        _column('PCI devices', _addresses, _addresses_by_node,
                is_detail=no_devices),
        _column('Remark', lambda step: '; '.join(
            filter(None, (step.reason, *_notes(step)))))), result.outcomes)


def _notes(of: outcome.SimulatedStep) -> tuple[str, ...]:
    return of.notes if of.ok or of.action != 'live_migrate' else ()


def hosts(result: engine.SimulationResult, full: bool = False) -> ReportTable:
    """Return the table of used resources, with a row per host NUMA node.

    Rows of groups are sums.
    """
    rows = [node for host in result.hosts for node in node_states(host)]
    title, groups = 'Used on the hosts', None
    if not full and len(result.hosts) > MANY_HOSTS:
        title += ', summed up by group'
        groups = [_sum(same, title) for title, nodes in _grouped(
            result, rows).items() for same in _by_number(nodes)]
    sizes = {each.size_kib: each.name for row in rows for each in row.pages}
    kinds = {(each.type, each.physical_network or '')
             for row in rows for each in row.pci_devices}
    partial = functools.partial
    pcpus, shared, memory = [
        operator.attrgetter(*names) for names in (
            ('pcpus', 'pcpus_free'), ('shared_vcpus', 'shared_vcpus_free'),
            ('memory_mib', 'memory_free_mib'))]
    return ReportTable(title, (
        _column('Host', 'host'), _detail('Host ID', 'host_id'),
        _column('Node', 'node'), _column('Switch', _switch),
        _column('Places', 'places', is_detail=not _has_places(result)),
        *_amounts('pCPUs', pcpus, False), *_amounts('Shared', shared, False),
        _column('Memory used MiB', None, partial(_used_text, memory)),
        _column('Pages used', None, _pages_text),
        *([_column('PCI devices used', None, _devices_text)]
          if _has_devices(result) else ()),
        *_amounts('Memory MiB', memory),
        *(column for size, name in sorted(sizes.items())
          for column in _amounts(f'{name} pages', partial(
              _of_part, 'pages', name))),
        *(column for kind, physnet in sorted(kinds)
          for column in _amounts(f'{kind}s {physnet}'.rstrip(), partial(
              _of_part, 'pci_devices', f'{kind} {physnet}'.rstrip()))),
    ), rows, groups)


def _switch(node: document.SimulatedNode) -> str:
    return tables.yes_or_no(
        None if node.node is None or not node.has_switch else node.vswitch)


#: Returns a total and free amount, or None for a NUMA node without any.
_Amount = Callable[[document.SimulatedNode], tuple[int, int] | None]


def _amounts(title: str, amount: _Amount,
             is_detail: bool = True) -> list[tables.Column]:
    """Return the columns of what is used of an amount, and of all of it."""
    partial = functools.partial
    return [_column(f'{title} used', partial(_used, amount),
                    partial(_used_text, amount), is_detail),
            _detail(f'{title} total', partial(_total, amount))]


def _of_part(field: str, name: str,
             node: document.SimulatedNode) -> tuple[int, int] | None:
    return next(((part.total, part.free) for part in getattr(node, field)
                 if part.name == name), None)


def _used(amount: _Amount, node: document.SimulatedNode) -> int | None:
    pair = amount(node)
    return pair and pair[0] - pair[1]


def _total(amount: _Amount, node: document.SimulatedNode) -> int | None:
    pair = amount(node)
    return pair and pair[0]


def _used_text(amount: _Amount, node: document.SimulatedNode) -> str:
    total = _total(amount, node)
    return f'{_used(amount, node)}/{total}' if total else '-'


def _pages_text(node: document.SimulatedNode) -> str:
    return ', '.join([
        f'{each.name} {each.total - each.free}/{each.total}'
        for each in node.pages if each.size_kib > 4 and each.total])


def _devices_text(node: document.SimulatedNode) -> str:
    """Return used devices of a NUMA node: ``VF physnet0 3/8, PF 1/1``."""
    return ', '.join([f'{each.name} {each.total - each.free}/{each.total}'
                      for each in node.pci_devices])


_Row = ty.TypeVar('_Row', document.SimulatedNode, document.SimulatedLoad)


def _grouped(result: engine.SimulationResult,
             rows: Iterable[_Row]) -> dict[str, list[_Row]]:
    """Return the rows of each group of equal hosts, by its title."""
    names: dict[str, list[str]] = {}
    for host in result.hosts:
        names.setdefault(_group(result, host.name), []).append(host.name)
    groups: dict[str, list[_Row]] = {}
    for row in rows:
        of_group = names[_group(result, row.host)]
        groups.setdefault(' ... '.join(dict.fromkeys(
            (of_group[0], of_group[-1]))), []).append(row)
    return groups


def _group(result: engine.SimulationResult, host: str) -> str:
    return result.scenario.alike.get(host, host)


def _by_number(nodes: Iterable[document.SimulatedNode],
               ) -> Iterable[list[document.SimulatedNode]]:
    same: dict[int | None, list[document.SimulatedNode]] = {}
    for node in nodes:
        same.setdefault(node.node, []).append(node)
    return same.values()


def _sum(nodes: Sequence[document.SimulatedNode],
         title: str) -> document.SimulatedNode:
    """Return the sums over equal NUMA nodes of a group of hosts."""
    def sums(values: Sequence[ty.Any], *names: str) -> ty.Any:
        return dataclasses.replace(values[0], **{
            name: sum(getattr(each, name) for each in values)
            for name in names})

    return dataclasses.replace(
        sums(nodes, 'pcpus', 'pcpus_free', 'shared_vcpus',
             'shared_vcpus_free', 'memory_mib', 'memory_free_mib'),
        host=title, **{name: tuple([
            sums(parts, 'total', 'free')
            for parts in zip(*(getattr(node, name) for node in nodes))])
            for name in ('pages', 'pci_devices')})


def has_network(result: engine.SimulationResult) -> bool:
    return network.is_told(result.scenario)


def network_loads(result: engine.SimulationResult,
                  full: bool = False) -> ReportTable:
    """Return the table of the network load, with a row for each host.

    Rows of groups have the lowest and the highest number.
    """
    title, groups = 'The network on the hosts', None
    rows = [_load(result, host.name, host.uuid) for host in result.hosts]
    if not full and len(rows) > MANY_HOSTS:
        title += ', least to most of each group'
        groups = [
            dataclasses.replace(loads[0], host=name, of_group=tuple(loads))
            for name, loads in _grouped(result, rows).items()]
    no_claims = all(load.claimed is None for load in result.loads.values())
    partial = functools.partial
    return ReportTable(title, (
        _column('Host', 'host'), _detail('Host ID', 'host_id'),
        _column('vSwitch ports', 'vswitch_ports', partial(
            _of_limit, 'vswitch_ports', 'vswitch_port_limit')),
        _detail('vSwitch port limit', 'vswitch_port_limit'),
        _column('of servers', 'server_ports', partial(_span, 'server_ports')),
        _column('Rules', 'security_rules', partial(
            _of_limit, 'security_rules', 'security_rule_limit')),
        _detail('Rule limit', 'security_rule_limit'),
        _column('DHCP servers', 'dhcp_servers',
                partial(_span, 'dhcp_servers')),
        _column('Routers', 'routers', partial(_span, 'routers')),
        *(_column(f'Claimed {noun}', f'claimed_{noun}',
                  partial(_span, f'claimed_{noun}'), is_detail=no_claims)
          for noun in ('ports', 'rules'))), rows, groups)


def _span(field: str, row: document.SimulatedLoad) -> str:
    numbers = [number for load in row.of_group or (row,)
               if (number := getattr(load, field)) is not None]
    return _ends(numbers) if numbers else '-'


def _of_limit(field: str, limit: str, row: document.SimulatedLoad) -> str:
    limits = [getattr(load, limit) for load in row.of_group or (row,)]
    return f'{_span(field, row)}/' + _ends(
        [math.inf if each is None else each for each in limits])


def _ends(numbers: Collection[float]) -> str:
    """Return the lowest and highest number as text: ``3-7``, or ``3``."""
    return '-'.join(dict.fromkeys([
        'unlimited' if math.isinf(number) else str(number)
        for number in (min(numbers), max(numbers))]))


def _load(result: engine.SimulationResult, name: str,
          host_id: str = '') -> document.SimulatedLoad:
    load = result.loads[name]

    def limit(value: float) -> int | None:
        return None if math.isinf(value) else math.floor(value)

    def claimed(resource_class: str) -> int | None:
        return None if load.claimed is None else load.claimed.get(
            resource_class, 0)

    return document.SimulatedLoad(
        host=name, host_id=host_id, vswitch_ports=load.ports,
        vswitch_port_limit=limit(decide.PORTS.limit(load.limits)),
        physical_ports=decide.PORTS.hidden(load.limits),
        server_ports=load.usage.guest_ports,
        dhcp_ports=load.usage.dhcp_ports,
        router_ports=load.usage.router_ports,
        other_ports=load.usage.other_ports,
        sriov_ports=load.usage.sriov_ports, security_rules=load.usage.rules,
        security_rule_limit=limit(decide.RULES.limit(load.limits)),
        dhcp_servers=network.dhcp_servers(result.scenario, load),
        routers=load.usage.routers,
        claimed_ports=claimed(ledger_names.PORTS),
        claimed_rules=claimed(ledger_names.RULES))


def server_states(result: engine.SimulationResult) -> tuple[
        document.SimulatedServerState, ...]:
    last = {step.server: step for step in result.outcomes}
    return tuple([_server(server, last.get(server.name))
                  for server in result.servers])


def _server(server: simulated.SimulatedServer,
            last: outcome.SimulatedStep | None,
            ) -> document.SimulatedServerState:
    pinned: list[document.PinnedVCPU] = []
    if server.nodes is not None:
        pinned = [document.PinnedVCPU(vcpu=vcpu, cpu=cpu)
                  for cell in server.instance.numa_topology.cells
                  for vcpu, cpu in sorted((cell.cpu_pinning or {}).items())]
    remark = ''
    if last is not None:
        reason = server.reason or ''
        if reason and last.action != 'boot':
            reason = f'{last.action} refused: {reason}'
        remark = '; '.join(filter(None, (reason, *_notes(last))))
    return document.SimulatedServerState(
        server=server.name, server_id=server.uuid, flavor=server.flavor_name,
        status=server.status, host=server.host and server.host.name,
        host_id=server.host and server.host.uuid,
        numa_nodes=server.nodes, pinned_cpus=server.pinned_cpus,
        pinned_vcpus=tuple(pinned), floating_vcpus=tuple([
            document.FloatingVCPUs(vcpus=vcpus, cpus=cpus)
            for vcpus, cpus in server.floating]),
        cores=server.cores, vswitch_policy=server.policy.vswitch,
        vswitch=server.vswitch, places=server.places,
        pci_policy=server.policy.pci, pci=server.pci,
        pci_devices=server.devices, reason=server.reason,
        notes=() if last is None else last.notes, remark=remark)


def node_states(
        host: compute.ComputeHost) -> tuple[document.SimulatedNode, ...]:
    """Return the resources of each NUMA node of a host.

    PCI devices without NUMA information are on an additional node None.
    """
    devices = _free_devices(host)
    cells = host.topology().cells
    of_host = functools.partial(
        document.SimulatedNode, host=host.name, host_id=host.uuid,
        has_switch=any(cell.id in host.switch_nodes for cell in cells))
    states = []
    for cell in cells:
        shared = int(len(cell.cpuset) * host.record.cpu_ratio)
        states.append(of_host(
            node=cell.id, vswitch=cell.id in host.switch_nodes,
            places=tuple(name for name, where in host.places.items()
                         if cell.id in where),
            pcpus=len(cell.pcpuset), pcpus_free=len(cell.free_pcpus),
            shared_vcpus=shared, shared_vcpus_free=shared - cell.cpu_usage,
            memory_mib=cell.memory, memory_free_mib=cell.avail_memory,
            pages=tuple([document.FreePages(
                size_kib=page.size_kb, total=page.total - page.reserved,
                free=page.free) for page in cell.mempages]),
            pci_devices=devices.get(cell.id, ())))
    if None in devices:
        states.append(of_host(
            node=None, vswitch=False, places=(), pcpus=0, pcpus_free=0,
            shared_vcpus=0, shared_vcpus_free=0, memory_mib=0,
            memory_free_mib=0, pages=(), pci_devices=devices[None]))
    return tuple(states)


def _free_devices(host: compute.ComputeHost) -> dict[
        int | None, tuple[document.FreeDevices, ...]]:
    free = host.free_devices()
    of_nodes: dict[int | None, dict[tuple[str, str | None], list[bool]]] = {}
    for device in host.record.devices:
        kind = (_KINDS.get(device.kind, device.kind),
                device.tags.get('physical_network'))
        of_nodes.setdefault(device.node, {}).setdefault(kind, []).append(
            device.address in free)
    return {node: tuple([document.FreeDevices(
        type=kind, physical_network=physnet, total=len(are_free),
        free=sum(are_free)) for (kind, physnet), are_free in kinds.items()])
        for node, kinds in of_nodes.items()}


def _host(host: compute.ComputeHost,
          result: engine.SimulationResult) -> document.SimulatedHostState:
    provider = result.placement.providers[host.uuid]
    return document.SimulatedHostState(
        host=host.name, host_id=host.uuid, group=_group(result, host.name),
        down=host.down,
        servers=tuple(sorted(
            s.name for s in result.servers if s.host is host)),
        placement_free={name: provider.free(name)
                        for name in sorted(provider.inventories)},
        numa_nodes=node_states(host))


def cloud_document(result: engine.SimulationResult,
                   keys: Collection[str]) -> document.SimulatedCloud:
    return document.SimulatedCloud(
        file=result.scenario.path, seconds=round(result.seconds, 3),
        expectations=document.ExpectationCounts(
            checked=result.checks, failed=tuple(result.failures)),
        servers=server_states(result) if 'servers' in keys else None,
        hosts=tuple([_host(host, result) for host in result.hosts])
        if 'hosts' in keys else None,
        network=tuple([_load(result, name) for name in result.loads])
        if 'network' in keys else None,
        steps=tuple(result.outcomes) if 'steps' in keys else None)


def summary(result: engine.SimulationResult) -> str:
    succeeded = sum(1 for o in result.outcomes if o.ok)
    refused = len(result.outcomes) - succeeded
    text = (f'{strings.count(len(result.hosts), "host")}, '
            f'{strings.count(len(result.servers), "server")}: '
            f'{succeeded} done, {refused} refused, in {result.seconds:.1f} s')
    if result.checks:
        met = result.checks - len(result.failures)
        text += f'; {met} of {result.checks} expectations met'
    return text
