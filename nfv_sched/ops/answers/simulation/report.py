# SPDX-License-Identifier: Apache-2.0

"""Tell the result of a simulation: as a document, and as tables of it."""

from collections.abc import Collection, Iterable, Sequence
import dataclasses
import functools
import math
import typing as ty

from nfv_sched.base import cpu_spec
from nfv_sched.base import strings
from nfv_sched.limits import decide
from nfv_sched.limits import names as ledger_names
from nfv_sched.ops.answers.simulation import document
from nfv_sched.ops.cli import tables
from nfv_sched.ops.cloud import scenario as scenarios
from nfv_sched.ops.simulator import compute
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
_PAGE_NAMES = {2048: '2M', 1048576: '1G', 4: '4K'}

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


def page_name(size_kib: int) -> str:
    return _PAGE_NAMES.get(size_kib, f'{size_kib}K')


def _has_devices(result: outcome.SimulationResult) -> bool:
    return any(host.devices for host in result.scenario.cloud.hosts)


def _has_places(result: outcome.SimulationResult) -> bool:
    return any(result.scenario.places.values())


def _place_columns(result: outcome.SimulationResult) -> list[tables.Column]:
    """Return a column of all places for people, and one of each."""
    together = [_column('Places', None, _places_text)]
    return [*(together if _has_places(result) else ()), *(
        _detail(f'Place {name}', functools.partial(_place, name))
        for name in sorted({name for places in result.scenario.places.values()
                            for name in places}))]


_Placed = document.SimulatedServerState | outcome.SimulatedStep


def _places_text(row: _Placed) -> str:
    return outcome.places_text(row.places)


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


def servers(result: outcome.SimulationResult) -> ReportTable:
    """Return the table of servers after the last step.

    People see columns for PCI devices and places if any host has these.
    """
    no_devices = not _has_devices(result)
    return ReportTable('Servers', (
        _column('Server', 'server'), _detail('Server ID', 'server_id'),
        _column('Flavor', 'flavor'), _column('Status', 'status'),
        _column('Host', 'host'), _detail('Host ID', 'host_id'),
        _column('NUMA nodes', _numa_nodes),
        _column('Pinned CPUs', _pinned_cpus),
        _column('vSwitch', 'vswitch', _vswitch),
        _detail('vSwitch policy', 'vswitch_policy'), *_place_columns(result),
        _column('PCI', 'pci', _pci, is_detail=no_devices),
        _detail('PCI policy', 'pci_policy'),
        _column('PCI devices', _addresses, _addresses_by_node,
                is_detail=no_devices),
        _column('Remark', 'remark')), server_states(result))


def _pinned_cpus(row: document.SimulatedServerState) -> str:
    return cpu_spec.to_text(row.pinned_cpus)


def _vswitch(row: document.SimulatedServerState) -> str:
    return _policy(row.vswitch_policy, row.vswitch)


def _pci(row: document.SimulatedServerState) -> str:
    return _policy(row.pci_policy, row.pci)


def _policy(policy: str | None, near: str | None) -> str:
    """Return where a server is, and its policy: ``local (policy strict)``."""
    text = f'policy {policy}' if policy else 'no policy'
    if near:
        return f'{near} ({text})'
    return text if policy else ''


def steps(result: outcome.SimulationResult) -> ReportTable:
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
        _column('Remark', _step_remark)), result.outcomes)


def _step_remark(step: outcome.SimulatedStep) -> str:
    return '; '.join(filter(None, (step.reason, *_notes(step))))


def _notes(of: outcome.SimulatedStep) -> tuple[str, ...]:
    return of.notes if of.ok or of.action != 'live_migrate' else ()


class NodeOfReport(ty.NamedTuple):
    """A NUMA node of a host, or the sum over those of a group of hosts."""

    host: str  #: name of the host, or of the group
    host_id: str
    has_switch: bool  #: whether the virtual switch is on any node of the host
    node: document.SimulatedNode


def hosts(result: outcome.SimulationResult, full: bool = False) -> ReportTable:
    """Return the table of used resources, with a row per host NUMA node.

    :param full: whether to list each host even if there are more than
        ``MANY_HOSTS``; if not, rows are sums over groups of equal hosts
    """
    rows = []
    for host in result.hosts:
        nodes = node_states(host)
        has_switch = any(node.vswitch for node in nodes)
        rows += [NodeOfReport(host.name, host.uuid, has_switch, node)
                 for node in nodes]
    title, groups = 'Used on the hosts', None
    if not full and len(result.hosts) > MANY_HOSTS:
        title += ', summed up by group'
        groups = _sum_by_title(rows, _titles(result))
    sizes = sorted({each.size_kib for row in rows for each in row.node.pages})
    kinds = sorted({(each.type, each.physical_network) for row in rows
                    for each in row.node.pci_devices},
                   key=lambda kind: (kind[0], kind[1] or ''))
    partial = functools.partial
    amounts = []
    for name, amount in (
            ('Memory MiB', _memory),
            *((f'{page_name(size)} pages', partial(_pages, size))
              for size in sizes),
            *((f'{kind}s{f" {physnet}" if physnet else ""}',
               partial(_devices, (kind, physnet)))
              for kind, physnet in kinds)):
        amounts += [_detail(f'{name} used', partial(_used, amount)),
                    _detail(f'{name} total', partial(_total, amount))]
    return ReportTable(title, (
        _column('Host', 'host'), _detail('Host ID', 'host_id'),
        _column('Node', 'node.node'), _column('Switch', _switch),
        _column('Places', 'node.places', is_detail=not _has_places(result)),
        _column('pCPUs used', partial(_used, _pcpus),
                partial(_used_text, _pcpus)),
        _detail('pCPUs total', 'node.pcpus'),
        _column('Shared used', partial(_used, _shared),
                partial(_used_text, _shared)),
        _detail('Shared total', 'node.shared_vcpus'),
        _column('Memory used MiB', None, partial(_used_text, _memory)),
        _column('Pages used', None, _pages_text),
        *([_column('PCI devices used', None, _devices_text)]
          if _has_devices(result) else ()), *amounts), rows, groups)


def _switch(row: NodeOfReport) -> str:
    return tables.yes_or_no(
        None if row.node.node is None or not row.has_switch
        else row.node.vswitch)


#: A total and free amount, or None for a NUMA node without any.
_Amount = tuple[int, int] | None


def _pcpus(node: document.SimulatedNode) -> _Amount:
    return node.pcpus, node.pcpus_free


def _shared(node: document.SimulatedNode) -> _Amount:
    return node.shared_vcpus, node.shared_vcpus_free


def _memory(node: document.SimulatedNode) -> _Amount:
    return node.memory_mib, node.memory_free_mib


def _pages(size: int, node: document.SimulatedNode) -> _Amount:
    return next(((pages.total, pages.free) for pages in node.pages
                 if pages.size_kib == size), None)


def _devices(kind: tuple[str, str | None],
             node: document.SimulatedNode) -> _Amount:
    return next(((each.total, each.free) for each in node.pci_devices
                 if (each.type, each.physical_network) == kind), None)


def _used(amount: ty.Callable[[document.SimulatedNode], _Amount],
          row: NodeOfReport) -> int | None:
    pair = amount(row.node)
    return None if pair is None else pair[0] - pair[1]


def _total(amount: ty.Callable[[document.SimulatedNode], _Amount],
           row: NodeOfReport) -> int | None:
    pair = amount(row.node)
    return None if pair is None else pair[0]


def _used_text(amount: ty.Callable[[document.SimulatedNode], _Amount],
               row: NodeOfReport) -> str:
    total = _total(amount, row)
    return f'{_used(amount, row)}/{total}' if total else '-'


def _pages_text(row: NodeOfReport) -> str:
    return ', '.join([
        f'{page_name(each.size_kib)} {each.total - each.free}/{each.total}'
        for each in row.node.pages if each.size_kib > 4 and each.total])


def _devices_text(row: NodeOfReport) -> str:
    """Return used devices of a NUMA node: ``VF physnet0 3/8, PF 1/1``."""
    return ', '.join([' '.join(filter(None, (
        each.type, each.physical_network,
        f'{each.total - each.free}/{each.total}')))
        for each in row.node.pci_devices])


def _titles(result: outcome.SimulationResult) -> dict[str, str]:
    of_group: dict[str, list[str]] = {}
    for host in result.hosts:
        of_group.setdefault(_group(result, host.name), []).append(host.name)
    titles = {}
    for names in of_group.values():
        title = ' ... '.join(dict.fromkeys((names[0], names[-1])))
        titles.update(dict.fromkeys(names, title))
    return titles


def _group(result: outcome.SimulationResult, host: str) -> str:
    return result.scenario.alike.get(host, host)


def _sum_by_title(rows: Iterable[NodeOfReport],
                  titles: ty.Mapping[str, str]) -> list[NodeOfReport]:
    groups: dict[tuple[str, int | None], list[NodeOfReport]] = {}
    for row in rows:
        groups.setdefault((titles[row.host], row.node.node), []).append(row)
    names = ('pcpus', 'pcpus_free', 'shared_vcpus', 'shared_vcpus_free',
             'memory_mib', 'memory_free_mib')
    return [
        same[0]._replace(host=title, node=_sum([row.node for row in same],
                                               names))
        for (title, _node), same in groups.items()]


def _sum(values: Sequence[ty.Any], names: Sequence[str]) -> ty.Any:
    """Return the first of equal nodes, pages or devices, with sums of all."""
    first = values[0]
    sums = {name: sum(getattr(each, name) for each in values)
            for name in names}
    if isinstance(first, document.SimulatedNode):
        sums |= {name: tuple([
            _sum(parts, ('total', 'free'))
            for parts in zip(*(getattr(each, name) for each in values))])
            for name in ('pages', 'pci_devices')}
    return dataclasses.replace(first, **sums)


def has_network(result: outcome.SimulationResult) -> bool:
    return network.is_told(result.scenario)


class LoadRow(ty.NamedTuple):
    """The network load of a host, or the loads of a group of hosts."""

    host: str
    host_id: str
    loads: tuple[document.SimulatedLoad, ...]

    @property
    def load(self) -> document.SimulatedLoad:
        return self.loads[0]


def network_loads(result: outcome.SimulationResult,
                  full: bool = False) -> ReportTable:
    """Return the table of the network load, with a row for each host.

    :param full: whether to list each host even if there are more than
        ``MANY_HOSTS``; if not, such tables have the lowest and highest number
        of each group of equal hosts
    """
    title, groups = 'The network on the hosts', None
    rows = [LoadRow(host.name, host.uuid, (_load(
        host.name, result.loads[host.name], result.scenario),))
        for host in result.hosts]
    if not full and len(rows) > MANY_HOSTS:
        title += ', least to most of each group'
        titles = _titles(result)
        loads: dict[str, list[document.SimulatedLoad]] = {}
        for row in rows:
            loads.setdefault(titles[row.host], []).append(row.load)
        groups = [LoadRow(name, '', tuple(each))
                  for name, each in loads.items()]
    no_claims = all(load.claimed is None for load in result.loads.values())
    partial = functools.partial
    return ReportTable(title, (
        _column('Host', 'host'), _detail('Host ID', 'host_id'),
        _column('vSwitch ports', 'load.vswitch_ports', partial(
            _of_limit, 'vswitch_ports', 'vswitch_port_limit')),
        _detail('vSwitch port limit', 'load.vswitch_port_limit'),
        _column('of servers', 'load.server_ports',
                partial(_span, 'server_ports')),
        _column('Rules', 'load.security_rules', partial(
            _of_limit, 'security_rules', 'security_rule_limit')),
        _detail('Rule limit', 'load.security_rule_limit'),
        _column('DHCP servers', 'load.dhcp_servers',
                partial(_span, 'dhcp_servers')),
        _column('Routers', 'load.routers', partial(_span, 'routers')),
        *(_column(f'Claimed {noun}', f'load.claimed_{noun}',
                  partial(_span, f'claimed_{noun}'), is_detail=no_claims)
          for noun in ('ports', 'rules'))), rows, groups)


def _span(field: str, row: LoadRow) -> str:
    numbers = [number for load in row.loads
               if (number := getattr(load, field)) is not None]
    return _ends(numbers) if numbers else '-'


def _of_limit(field: str, limit: str, row: LoadRow) -> str:
    limits = [getattr(load, limit) for load in row.loads]
    return f'{_span(field, row)}/' + _ends(
        [math.inf if each is None else each for each in limits])


def _ends(numbers: Collection[float]) -> str:
    """Return the lowest and highest number as text: ``3-7``, or ``3``."""
    return '-'.join(dict.fromkeys([
        'unlimited' if math.isinf(number) else str(number)
        for number in (min(numbers), max(numbers))]))


def _claimed_amount(load: network.HostLoad, resource_class: str) -> int | None:
    if load.claimed is None:
        return None
    return load.claimed.get(resource_class, 0)


def _load(name: str, load: network.HostLoad,
          scenario: scenarios.Scenario) -> document.SimulatedLoad:
    def limit(value: float) -> int | None:
        return None if math.isinf(value) else math.floor(value)

    return document.SimulatedLoad(
        host=name, vswitch_ports=load.ports,
        vswitch_port_limit=limit(decide.PORTS.limit(load.limits)),
        physical_ports=decide.PORTS.hidden(load.limits),
        server_ports=load.usage.guest_ports,
        dhcp_ports=load.usage.dhcp_ports,
        router_ports=load.usage.router_ports,
        other_ports=load.usage.other_ports,
        sriov_ports=load.usage.sriov_ports, security_rules=load.usage.rules,
        security_rule_limit=limit(decide.RULES.limit(load.limits)),
        dhcp_servers=network.dhcp_servers(scenario, load),
        routers=load.usage.routers,
        claimed_ports=_claimed_amount(load, ledger_names.PORTS),
        claimed_rules=_claimed_amount(load, ledger_names.RULES))


def server_states(result: outcome.SimulationResult) -> tuple[
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
    states = []
    devices = _free_devices(host)
    for cell in host.topology().cells:
        shared = int(len(cell.cpuset) * host.record.cpu_ratio)
        states.append(document.SimulatedNode(
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
        states.append(document.SimulatedNode(
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
          result: outcome.SimulationResult) -> document.SimulatedHostState:
    provider = result.placement.providers[host.uuid]
    return document.SimulatedHostState(
        host=host.name, host_id=host.uuid, group=_group(result, host.name),
        down=host.down,
        servers=tuple(sorted(
            s.name for s in result.servers if s.host is host)),
        placement_free={name: provider.free(name)
                        for name in sorted(provider.inventories)},
        numa_nodes=node_states(host))


def cloud_document(result: outcome.SimulationResult,
                   keys: Collection[str]) -> document.SimulatedCloud:
    return document.SimulatedCloud(
        file=result.scenario.path, seconds=round(result.seconds, 3),
        expectations=document.ExpectationCounts(
            checked=result.checks, failed=tuple(result.failures)),
        servers=server_states(result) if 'servers' in keys else None,
        hosts=tuple([_host(host, result) for host in result.hosts])
        if 'hosts' in keys else None,
        network=tuple([_load(name, load, result.scenario)
                       for name, load in result.loads.items()])
        if 'network' in keys else None,
        steps=tuple(result.outcomes) if 'steps' in keys else None)


def summary(result: outcome.SimulationResult) -> str:
    succeeded = sum(1 for o in result.outcomes if o.ok)
    refused = len(result.outcomes) - succeeded
    text = (f'{strings.count(len(result.hosts), "host")}, '
            f'{strings.count(len(result.servers), "server")}: '
            f'{succeeded} done, {refused} refused, in {result.seconds:.1f} s')
    if result.checks:
        met = result.checks - len(result.failures)
        text += f'; {met} of {result.checks} expectations met'
    return text
