# SPDX-License-Identifier: Apache-2.0
"""Tell the result of a simulation: as a document, and as tables of it."""

import collections
from collections.abc import Callable, Collection, Iterable, Sequence
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
from nfv_sched.ops.cloud import actions
from nfv_sched.ops.model.counting import capacity
from nfv_sched.ops.model.requests import assumed_ports
from nfv_sched.ops.simulator import compute
from nfv_sched.ops.simulator import engine
from nfv_sched.ops.simulator import network
from nfv_sched.ops.simulator import outcome
from nfv_sched.ops.simulator import servers as simulated
from nfv_sched.ops.simulator import state as states

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
    title: str
    columns: Sequence[tables.Column]
    rows: Sequence[ty.Any]


def table(result: engine.SimulationResult, section: str, full: bool = False,
          sizes: Sequence[document.RequestedSize] = ()) -> ReportTable:
    """Return the table of a section; ``full`` lists each of many rows."""
    match section:
        case 'hosts':
            return hosts(result, full)
        case 'network':
            return network_loads(result, full)
        case 'servers':
            return servers(result)
        case 'requests':
            return requests(sizes, full)
    return steps(result)


def count_requests(
    state: states.State, result: engine.SimulationResult,
) -> tuple[document.RequestedSize, ...]:
    """Count the boots of a sequence by size, in the state at the end."""
    flavors = {
        step.number: step.flavor
        for step in result.scenario.steps[result.scenario.own_steps:]
        if isinstance(step, actions.Boot)}
    boots = collections.defaultdict[str, list[outcome.SimulatedStep]](list)
    for each in result.outcomes:
        if each.step in flavors:
            boots[flavors[each.step]].append(each)
    # Servers of a sequence have no ports.
    counting = capacity.Counting(state, assumed_ports.always(0), figures=False)
    sizes = []
    for name, outcomes in sorted(
            boots.items(), key=lambda size: -len(size[1])):
        flavor = state.flavors[name]
        reasons = collections.Counter(
            each.reason for each in outcomes if not each.ok)
        sizes.append(document.RequestedSize(
            vcpus=flavor.vcpus, memory_mib=flavor.memory,
            numa_nodes=int(flavor.extra_specs['hw:numa_nodes']),
            servers=len(outcomes), refused=reasons.total(),
            fit=counting.capacity(flavor).fits,
            reason=max(reasons, key=reasons.__getitem__, default=None)))
    return tuple(sizes)


def requests(sizes: Sequence[document.RequestedSize],
             full: bool = False) -> ReportTable:
    title = 'Servers of the sequence'
    if not full and len(sizes) > MANY_HOSTS:
        title += (f', the {MANY_HOSTS} most frequent of {len(sizes)} sizes; '
                  '--show requests for all')
        sizes = sizes[:MANY_HOSTS]
    return ReportTable(title, (
        _column('vCPUs', 'vcpus'), _column('Memory MiB', 'memory_mib'),
        _column('NUMA nodes', 'numa_nodes'), _column('Servers', 'servers'),
        _column('Refused', 'refused'), _column('Fit', 'fit'),
        _column('Reason', 'reason')), sizes)


def servers(result: engine.SimulationResult) -> ReportTable:
    """Return the table of servers after the last step."""
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
                is_detail=not _has_devices(result)),
        _detail('PCI policy', 'pci_policy'), _addresses(result),
        _column('Remark', 'remark')), server_states(result))


def steps(result: engine.SimulationResult) -> ReportTable:
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
        *_place_columns(result),
        _column('PCI', 'pci', is_detail=not _has_devices(result)),
        _addresses(result), _column('Remark', lambda step: '; '.join(
            filter(None, (step.reason, *_notes(step)))))), result.outcomes)


def _has_devices(result: engine.SimulationResult) -> bool:
    return any(host.devices for host in result.scenario.cloud.hosts)


def _place_columns(result: engine.SimulationResult) -> list[tables.Column]:
    names = sorted(set().union(*result.scenario.places.values()))
    columns = [_detail(f'Place {name}',
                       lambda row, name=name: row.places.get(name))
               for name in names]
    if names:
        columns.insert(0, _column(
            'Places', None, lambda row: outcome.places_text(row.places)))
    return columns


_Placed = document.SimulatedServerState | outcome.SimulatedStep


def _numa_nodes(row: _Placed) -> str:
    return ','.join(map(str, row.numa_nodes or ()))


def _addresses(result: engine.SimulationResult) -> tables.Column:
    """Return a column of PCI addresses: ``node 0: 01:00.0 01:00.1``."""
    def by_node(row: _Placed) -> str:
        addresses: dict[int | None, list[str]] = {}
        for device in row.pci_devices:
            addresses.setdefault(device.node, []).append(
                device.address.removeprefix('0000:'))
        unknown = addresses.pop(None, [])
        return '; '.join(
            [f'node {node}: {" ".join(addresses[node])}'
             for node in sorted(addresses)]
            + ([f'no node: {" ".join(unknown)}'] if unknown else []))

    return _column(
        'PCI devices',
        lambda row: ', '.join([each.address for each in row.pci_devices]),
        by_node, is_detail=not _has_devices(result))


def _policy(policy: str | None, near: str | None) -> str:
    """Return where a server is, and its policy: ``local (policy strict)``."""
    text = f'policy {policy}' if policy else ''
    return f'{near} ({text or "no policy"})' if near else text


def _notes(of: outcome.SimulatedStep) -> tuple[str, ...]:
    return of.notes if of.ok or of.action != 'live_migrate' else ()


def hosts(result: engine.SimulationResult, full: bool = False) -> ReportTable:
    """Return what each host NUMA node uses; rows of groups are sums."""
    rows = [node for host in result.hosts for node in node_states(host)]
    sizes = {each.size_kib: each.name for row in rows for each in row.pages}
    kinds = {(each.type, each.physical_network or ''): each.name
             for row in rows for each in row.pci_devices}

    def memory(node: document.SimulatedNode) -> tuple[int, int]:
        return node.memory_mib, node.memory_free_mib

    columns = [
        _column('Host', 'host'), _detail('Host ID', 'host_id'),
        _column('Node', 'node'),
        _column('Switch', lambda node: tables.yes_or_no(
            None if node.node is None or not node.has_switch
            else node.vswitch)),
        _column('Places', 'places',
                is_detail=not any(result.scenario.places.values())),
        *_amounts('pCPUs', lambda node: (node.pcpus, node.pcpus_free), False),
        *_amounts('Shared', lambda node: (
            node.shared_vcpus, node.shared_vcpus_free), False),
        _column('Memory used MiB', None,
                lambda node: _used_text(memory(node))),
        _column('Pages used', None, lambda node: _parts_text(
            each for each in node.pages if each.size_kib > 4 and each.total))]
    if _has_devices(result):
        columns.append(_column('PCI devices used', None, lambda node: (
            _parts_text(node.pci_devices))))
    columns += _amounts('Memory MiB', memory)
    for _size, name in sorted(sizes.items()):
        columns += _amounts(f'{name} pages', functools.partial(
            _of_part, 'pages', name))
    for (kind, physnet), name in sorted(kinds.items()):
        columns += _amounts(f'{kind}s {physnet}'.rstrip(), functools.partial(
            _of_part, 'pci_devices', name))
    table = ReportTable('Used on the hosts', columns, rows)
    return table if full else _grouped(
        result, table, 'summed up by group', _sum)


#: A total and a free amount; None for a NUMA node without any.
_Amount = tuple[int, int] | None


def _amounts(title: str, amount: Callable[[document.SimulatedNode], _Amount],
             is_detail: bool = True) -> list[tables.Column]:
    return [
        _column(f'{title} used', lambda node: _used(amount(node)),
                lambda node: _used_text(amount(node)), is_detail),
        _detail(f'{title} total', lambda node: (
            pair[0] if (pair := amount(node)) else None))]


def _of_part(field: str, name: str, node: document.SimulatedNode) -> _Amount:
    return next(((part.total, part.free) for part in getattr(node, field)
                 if part.name == name), None)


def _used(amount: _Amount) -> int | None:
    return amount and amount[0] - amount[1]


def _used_text(amount: _Amount) -> str:
    return f'{_used(amount)}/{amount[0]}' if amount and amount[0] else '-'


def _parts_text(
    parts: Iterable[document.FreePages | document.FreeDevices],
) -> str:
    """Return what is used of parts of a node: ``VF physnet0 3/8, PF 1/1``."""
    return ', '.join([f'{each.name} {each.total - each.free}/{each.total}'
                      for each in parts])


def _grouped(result: engine.SimulationResult, table: ReportTable, how: str,
             merge: Callable[[list[ty.Any], str], ty.Any]) -> ReportTable:
    """Return a table with a row for each group of hosts, if there are many.

    :param merge: returns the row of the rows of a group, or of those of them
        for one NUMA node, and of its title
    """
    if len(result.hosts) <= MANY_HOSTS:
        return table
    members: dict[str, list[str]] = {}
    for name in [host.name for host in result.hosts]:
        group = result.scenario.alike.get(name, name)
        members.setdefault(group, []).append(name)
    titles = {name: ' ... '.join(dict.fromkeys((names[0], names[-1])))
              for names in members.values() for name in names}
    groups: dict[tuple[str, int | None], list[ty.Any]] = {}
    for row in table.rows:
        key = titles[row.host], getattr(row, 'node', None)
        groups.setdefault(key, []).append(row)
    return ReportTable(
        f'{table.title}, {how}',
        [each for each in table.columns if not each.is_detail],
        [merge(rows, title) for (title, _node), rows in groups.items()])


def _sum(nodes: Sequence[document.SimulatedNode],
         title: str) -> document.SimulatedNode:
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


def network_loads(result: engine.SimulationResult,
                  full: bool = False) -> ReportTable:
    def span(title: str, field: str, is_detail: bool = False) -> tables.Column:
        return _column(title, field, functools.partial(_span, field),
                       is_detail)

    no_claims = all(load.claimed is None for load in result.loads.values())
    columns = (
        _column('Host', 'host'), _detail('Host ID', 'host_id'),
        _column('vSwitch ports', 'vswitch_ports', functools.partial(
            _of_limit, 'vswitch_ports', 'vswitch_port_limit')),
        _detail('vSwitch port limit', 'vswitch_port_limit'),
        span('of servers', 'server_ports'),
        _column('Rules', 'security_rules', functools.partial(
            _of_limit, 'security_rules', 'security_rule_limit')),
        _detail('Rule limit', 'security_rule_limit'),
        span('DHCP servers', 'dhcp_servers'), span('Routers', 'routers'),
        span('Claimed ports', 'claimed_ports', no_claims),
        span('Claimed rules', 'claimed_rules', no_claims))
    table = ReportTable('The network on the hosts', columns, [
        _load(result, host.name, host.uuid) for host in result.hosts])
    return table if full else _grouped(
        result, table, 'least to most of each group',
        lambda loads, name: dataclasses.replace(
            loads[0], host=name, of_group=tuple(loads)))


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
    usage = load.usage

    def limit(value: float) -> int | None:
        return None if math.isinf(value) else math.floor(value)

    def claimed(resource_class: str) -> int | None:
        return None if load.claimed is None else load.claimed.get(
            resource_class, 0)

    return document.SimulatedLoad(
        host=name, host_id=host_id, vswitch_ports=load.ports,
        vswitch_port_limit=limit(decide.PORTS.limit(load.limits)),
        physical_ports=decide.PORTS.hidden(load.limits),
        server_ports=usage.guest_ports, dhcp_ports=usage.dhcp_ports,
        router_ports=usage.router_ports, other_ports=usage.other_ports,
        sriov_ports=usage.sriov_ports, security_rules=usage.rules,
        security_rule_limit=limit(decide.RULES.limit(load.limits)),
        dhcp_servers=network.dhcp_servers(result.scenario, load),
        routers=usage.routers, claimed_ports=claimed(ledger_names.PORTS),
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
    """Return the NUMA nodes of a host; None is for devices of none."""
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
        host=host.name, host_id=host.uuid, down=host.down,
        group=result.scenario.alike.get(host.name, host.name),
        servers=tuple(sorted(
            s.name for s in result.servers if s.host is host)),
        placement_free={name: provider.free(name)
                        for name in sorted(provider.inventories)},
        numa_nodes=node_states(host))


def cloud_document(
    result: engine.SimulationResult, keys: Collection[str],
    sizes: tuple[document.RequestedSize, ...] = (),
) -> document.SimulatedCloud:
    kind = document.SimulatedCloud if (
        result.scenario.own_steps is None) else functools.partial(
            document.SimulatedSequence, requests=(
                sizes if 'requests' in keys else None),
            hosts_used=sum(bool(host.instances) for host in result.hosts))
    return kind(
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
    if result.scenario.own_steps is not None:
        used = sum(bool(host.instances) for host in result.hosts)
        text += f'; {strings.count(used, "host")} in use'
    if result.checks:
        met = result.checks - len(result.failures)
        text += f'; {met} of {result.checks} expectations met'
    return text
