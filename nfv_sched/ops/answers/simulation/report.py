# SPDX-License-Identifier: Apache-2.0

"""Convert the result of a simulation to tables and to a document.

All cells of tables for people are strings; records, for programs, have one
name or number in each cell; the document, for JSON and YAML, has lists, too.
Nothing here prints.
"""

from collections.abc import Collection, Iterable, Sequence
import dataclasses
import itertools
import math
import typing as ty

from nfv_sched.base import cpu_spec
from nfv_sched.base import strings
from nfv_sched.limits import decide
from nfv_sched.limits import names as ledger_names
from nfv_sched.ops.answers.simulation import document
from nfv_sched.ops.cli import tables
from nfv_sched.ops.cloud.cloud_file import scenario as scenarios
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
_LEAST_IMPORTANT = ('Places', 'PCI', 'vSwitch', 'Switch', 'PCI devices',
                    'Flavor')
_PAGE_NAMES = {2048: '2M', 1048576: '1G', 4: '4K'}


@dataclasses.dataclass(frozen=True, slots=True)
class ReportTable:
    """A table; all cells are strings.

    :ivar key: name of the table in the document and on the command line
    :ivar title: heading
    :ivar records: columns and rows for programs; of the same rows if each host
        has rows of its own
    """

    key: str
    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[ty.Any]]
    records: tuple[Sequence[str], Sequence[Sequence[ty.Any]]]


@dataclasses.dataclass(frozen=True, slots=True)
class NodeState:
    """Total and free resources of a host NUMA node.

    :ivar host: name of the host, or of a group
    :ivar node: number of the NUMA node; None for PCI devices without one
    :ivar vswitch: whether the virtual switch runs on the node
    :ivar pcpus: number of dedicated CPUs
    :ivar pcpus_free: number of free dedicated CPUs
    :ivar shared: capacity for shared vCPUs
    :ivar shared_free: free capacity for shared vCPUs; negative if exceeded
    :ivar memory: memory in MiB
    :ivar memory_free: free memory in MiB
    :ivar pages: (page size in KiB, number of pages for guests, number of free
        pages) of each page size
    :ivar devices: (kind, physical network) -> (number of PCI devices, number
        of free devices)
    :ivar places: names of the places of the node
    """

    host: str
    node: int | None
    vswitch: bool
    pcpus: int
    pcpus_free: int
    shared: int
    shared_free: int
    memory: int
    memory_free: int
    pages: tuple[tuple[int, int, int], ...]
    devices: ty.Mapping[tuple[str, str | None], tuple[int, int]] = (
        dataclasses.field(default_factory=dict))
    places: tuple[str, ...] = ()


def _devices(host: compute.ComputeHost):
    """Return ``NodeState.devices`` of each NUMA node, or None, of a host."""
    free = host.free_devices()
    counts: dict[int | None, dict[tuple[str, str | None],
                                  tuple[int, int]]] = {}
    for device in host.record.devices:
        of_node = counts.setdefault(device.node, {})
        key = (_KINDS.get(device.kind, device.kind),
               device.tags.get('physical_network'))
        total, available = of_node.get(key, (0, 0))
        of_node[key] = (total + 1, available + (device.address in free))
    return counts


def node_states(host: compute.ComputeHost) -> list[NodeState]:
    """Return the resources of each NUMA node of a host.

    PCI devices without NUMA information are on an additional node None.
    """
    states = []
    devices = _devices(host)
    for cell in host.topology().cells:
        shared = int(len(cell.cpuset) * host.record.cpu_ratio)
        states.append(NodeState(
            host=host.name, node=cell.id,
            vswitch=cell.id in host.switch_nodes,
            pcpus=len(cell.pcpuset), pcpus_free=len(cell.free_pcpus),
            shared=shared, shared_free=shared - cell.cpu_usage,
            memory=cell.memory, memory_free=cell.avail_memory,
            pages=tuple(
                (page.size_kb, page.total - page.reserved,
                 page.free)
                for page in cell.mempages),
            devices=devices.get(cell.id, {}),
            places=tuple(name for name, where in host.places.items()
                         if cell.id in where)))
    if None in devices:
        states.append(NodeState(host.name, None, False, 0, 0, 0, 0, 0, 0, (),
                                devices[None]))
    return states


def text(report_tables: Sequence[ReportTable], chosen: Sequence[str] = (),
         details: Collection[str] = ()) -> list[tables.Part]:
    """Return tables for people.

    :param chosen: columns to show; empty for all but the details
    """
    parts: list[tables.Part] = []
    for table in report_tables:
        shown = [column in chosen if chosen else column not in details
                 for column in table.columns]
        parts += [table.title, tables.Table(
            list(itertools.compress(table.columns, shown)),
            [list(itertools.compress(row, shown)) for row in table.rows],
            _LEAST_IMPORTANT, is_whole=bool(chosen)), '']
    return parts


def page_name(size_kib: int) -> str:
    """Return a short name of a page size: ``2M``."""
    return _PAGE_NAMES.get(size_kib, f'{size_kib}K')


def _numbers(values: Iterable[int] | None) -> str:
    return '' if values is None else ','.join(map(str, values))


def _used_text(free: int, total: int) -> str:
    return f'{total - free}/{total}' if total else '-'


def _policy(policy: str | None, result: str | None) -> str:
    """Return where a server is, and its policy: ``local (policy strict)``."""
    text = f'policy {policy}' if policy else 'no policy'
    if result:
        return f'{result} ({text})'
    return text if policy else ''


def _device_list(devices: Iterable[tuple[str, int | None]]) -> str:
    """Return PCI addresses by NUMA node: ``node 0: 01:00.0 01:00.1``."""
    by_node: dict[int | None, list[str]] = {}
    for address, node in devices:
        by_node.setdefault(node, []).append(address.removeprefix('0000:'))
    return '; '.join(
        f'{"no node" if node is None else f"node {node}"}: '
        f'{" ".join(addresses)}'
        for node, addresses in sorted(
            by_node.items(), key=lambda item: (item[0] is None,
                                               item[0] or 0)))


def _has_devices(result: outcome.SimulationResult) -> bool:
    return any(host.devices for host in result.scenario.cloud.hosts)


def _has_places(result: outcome.SimulationResult) -> bool:
    return any(result.scenario.places.values())


def _remark(server: simulated.SimulatedServer,
            outcomes: Sequence[outcome.StepOutcome]) -> str:
    """Return the reason of a server's refusal, and its failed claims."""
    if not outcomes:
        return ''
    last = outcomes[-1]
    text = server.reason or ''
    if text and last.action != 'boot':
        text = f'{last.action} refused: {text}'
    return '; '.join((*([text] if text else []), *_notes(last)))


def _notes(of: outcome.StepOutcome) -> tuple[str, ...]:
    """Return the notes on an outcome that its reason does not repeat."""
    return of.notes if of.ok or of.action != 'live_migrate' else ()


def _by_server(result: outcome.SimulationResult) -> dict[
        str, list[outcome.StepOutcome]]:
    by_server: dict[str, list[outcome.StepOutcome]] = {}
    for o in result.outcomes:
        by_server.setdefault(o.server, []).append(o)
    return by_server


def servers(result: outcome.SimulationResult) -> ReportTable:
    """Return the table of servers after the last step.

    It has columns for PCI devices and places if any host has these.
    """
    outcomes = _by_server(result)
    devices, places = _has_devices(result), _has_places(result)
    return ReportTable(
        'servers', 'Servers',
        ('Server', 'Flavor', 'Status', 'Host', 'NUMA nodes', 'Pinned CPUs',
         'vSwitch', *(('Places',) if places else ()),
         *(('PCI', 'PCI devices') if devices else ()), 'Remark'),
        [(server.name, server.flavor_name, server.status,
          server.host.name if server.host else '',
          _numbers(server.nodes), cpu_spec.to_text(server.pinned_cpus),
          _policy(server.policy.vswitch, server.vswitch),
          *((outcome.places_text(server.places),) if places else ()),
          *((_policy(server.policy.pci, server.pci),
             _device_list(server.devices)) if devices else ()),
          _remark(server, outcomes.get(server.name, ())))
         for server in result.servers], _server_records(result))


def _server_records(
    result: outcome.SimulationResult,
) -> tuple[Sequence[str], list[tuple]]:
    """Return columns and rows of servers for programs."""
    outcomes = _by_server(result)
    places = _place_names(result)
    return ('Server', 'Server ID', 'Flavor', 'Status', 'Host', 'Host ID',
            'NUMA nodes', 'Pinned CPUs', 'vSwitch', 'vSwitch policy',
            *places, 'PCI', 'PCI policy', 'PCI devices', 'Remark'), [
        (server.name, server.uuid, server.flavor_name, server.status,
         server.host.name if server.host else None,
         server.host.uuid if server.host else None, _numbers(server.nodes),
         cpu_spec.to_text(server.pinned_cpus), server.vswitch,
         server.policy.vswitch, *map(server.places.get, places.values()),
         server.pci, server.policy.pci, _addresses(server.devices),
         _remark(server, outcomes.get(server.name, ())))
        for server in result.servers]


def _place_names(result: outcome.SimulationResult) -> dict[str, str]:
    """Return the column of each place, with its name."""
    return {f'Place {name}': name for name in sorted({
        name for places in result.scenario.places.values()
        for name in places})}


def _addresses(devices: Iterable[tuple[str, int | None]]) -> str:
    return ', '.join([address for address, _node in devices])


def steps(result: outcome.SimulationResult) -> ReportTable:
    """Return the table of outcomes, with a row for each step and server."""
    devices, places = _has_devices(result), _has_places(result)
    return ReportTable(
        'steps', 'Steps',
        ('Step', 'Action', 'Server', 'Result', 'From', 'To', 'NUMA nodes',
         'vSwitch', *(('Places',) if places else ()),
         *(('PCI', 'PCI devices') if devices else ()), 'Remark'),
        [(str(o.step), o.action, o.server, 'done' if o.ok else 'refused',
          o.source or '', o.host or '', _numbers(o.nodes), o.vswitch or '',
          *((outcome.places_text(o.places),) if places else ()),
          *((o.pci or '', _device_list(o.devices)) if devices else ()),
          '; '.join(filter(None, (o.reason, *_notes(o)))))
         for o in result.outcomes], _step_records(result))


def _step_records(
    result: outcome.SimulationResult,
) -> tuple[Sequence[str], list[tuple]]:
    """Return columns and rows of steps for programs."""
    places = _place_names(result)
    host_ids = {host.name: host.uuid for host in result.hosts}
    # A step may also be of a host.
    ids = host_ids | {server.name: server.uuid for server in result.servers}
    return ('Step', 'Action', 'Server', 'Server ID', 'Result', 'From',
            'From ID', 'To', 'To ID', 'NUMA nodes', 'vSwitch', *places, 'PCI',
            'PCI devices', 'Remark'), [
        (o.step, o.action, o.server, ids.get(o.server),
         'done' if o.ok else 'refused', o.source,
         host_ids.get(o.source or ''), o.host, host_ids.get(o.host or ''),
         _numbers(o.nodes), o.vswitch, *map(o.places.get, places.values()),
         o.pci, _addresses(o.devices),
         '; '.join(filter(None, (o.reason, *_notes(o)))))
        for o in result.outcomes]


def _pages_text(pages: Iterable[tuple[int, int, int]]) -> str:
    return ', '.join(f'{page_name(size)} {total - free}/{total}'
                     for size, total, free in pages if size > 4 and total)


def _used_devices(state: NodeState) -> str:
    """Return used devices of a NUMA node: ``VF physnet0 3/8, PF 1/1``."""
    return ', '.join(
        f'{kind}{f" {network}" if network else ""} {total - free}/{total}'
        for (kind, network), (total, free) in state.devices.items())


def hosts(result: outcome.SimulationResult, full: bool = False) -> ReportTable:
    """Return the table of used resources, with a row per host NUMA node.

    :param full: whether to list each host even if there are more than
        ``MANY_HOSTS``; if not, rows are sums over groups of equal hosts
    """
    devices, places = _has_devices(result), _has_places(result)
    columns = ('Host', 'Node', 'Switch', *(('Places',) if places else ()),
               'pCPUs used', 'Shared used', 'Memory used MiB', 'Pages used',
               *(('PCI devices used',) if devices else ()))
    if full or len(result.hosts) <= MANY_HOSTS:
        title = 'Used on the hosts'
        states = [state for host in result.hosts
                  for state in node_states(host)]
    else:
        title = 'Used on the hosts, summed up by group'
        states = _sum_by_title(result)
    with_switch = {state.host for state in states if state.vswitch}
    return ReportTable('hosts', title, columns, [
        (s.host, '-' if s.node is None else str(s.node),
         tables.yes_or_no(None if s.node is None or s.host not in with_switch
                          else s.vswitch),
         *((', '.join(s.places),) if places else ()),
         _used_text(s.pcpus_free, s.pcpus),
         _used_text(s.shared_free, s.shared),
         _used_text(s.memory_free, s.memory), _pages_text(s.pages),
         *((_used_devices(s),) if devices else ()))
        for s in states], _node_records(result))


def _node_records(
    result: outcome.SimulationResult,
) -> tuple[Sequence[str], list[tuple]]:
    """Return columns and rows of NUMA nodes for programs."""
    states = [(host, state) for host in result.hosts
              for state in node_states(host)]
    sizes = sorted({size for _host, state in states
                    for size, _total, _free in state.pages})
    kinds = sorted({kind for _host, state in states
                    for kind in state.devices},
                   key=lambda kind: (kind[0], kind[1] or ''))
    columns = ['Host', 'Host ID', 'Node', 'Switch', 'Places', *(
        f'{name} {text}' for name in (
            'pCPUs', 'Shared', 'Memory MiB', *(
                f'{page_name(size)} pages' for size in sizes), *(
                    f'{kind}s{f" {physnet}" if physnet else ""}'
                    for kind, physnet in kinds))
        for text in ('used', 'total'))]
    rows = []
    for host, state in states:
        pages = {size: (total, free) for size, total, free in state.pages}
        amounts = [
            (state.pcpus, state.pcpus_free), (state.shared, state.shared_free),
            (state.memory, state.memory_free), *map(pages.get, sizes),
            *map(state.devices.get, kinds)]
        rows.append((
            host.name, host.uuid, state.node,
            tables.yes_or_no(state.vswitch if state.node is not None
                             and host.switch_nodes else None),
            ', '.join(state.places),
            *(number for amount in amounts for number in (
                (None, None) if amount is None
                else (amount[0] - amount[1], amount[0])))))
    return columns, rows


def _titles(result: outcome.SimulationResult) -> dict[str, str]:
    """Return the title of its group of equal hosts, by host name."""
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


def _sum_by_title(result: outcome.SimulationResult) -> list[NodeState]:
    titles = _titles(result)
    groups: dict[tuple[str, int | None], list[NodeState]] = {}
    for host in result.hosts:
        for state in node_states(host):
            groups.setdefault((titles[host.name], state.node),
                              []).append(state)
    return [
        NodeState(
            title, node, states[0].vswitch,
            *(sum(getattr(s, name) for s in states) for name in (
                'pcpus', 'pcpus_free', 'shared', 'shared_free', 'memory',
                'memory_free')),
            pages=tuple(
                (size, sum(s.pages[i][1] for s in states),
                 sum(s.pages[i][2] for s in states))
                for i, (size, _, _) in enumerate(states[0].pages)),
            devices={
                kind: (sum(s.devices[kind][0] for s in states),
                       sum(s.devices[kind][1] for s in states))
                for kind in states[0].devices},
            places=states[0].places)
        for (title, node), states in groups.items()]


def _span(values: Iterable[float]) -> str:
    """Return the lowest and highest number as text: ``3-7``, or ``3``."""
    texts = ['unlimited' if math.isinf(value) else f'{value:.0f}'
             for value in sorted(set(values))]
    return '-'.join(dict.fromkeys([texts[0], texts[-1]]))


def _known_span(values: Iterable[int | None]) -> str:
    numbers = [value for value in values if value is not None]
    return _span(numbers) if numbers else '-'


def has_network(result: outcome.SimulationResult) -> bool:
    """Return whether the network load matters in the scenario."""
    return network.is_told(result.scenario)


def network_loads(result: outcome.SimulationResult,
                  full: bool = False) -> ReportTable:
    """Return the table of the network load, with a row for each host.

    :param full: whether to list each host even if there are more than
        ``MANY_HOSTS``; if not, such tables have the lowest and highest number
        of each group of equal hosts
    """
    title = 'The network on the hosts'
    groups: dict[str, list[network.HostLoad]] = {}
    if full or len(result.hosts) <= MANY_HOSTS:
        groups = {host.name: [result.loads[host.name]]
                  for host in result.hosts}
    else:
        title += ', least to most of each group'
        titles = _titles(result)
        for host in result.hosts:
            groups.setdefault(titles[host.name], []).append(
                result.loads[host.name])
    claims = any(load.claimed is not None for load in result.loads.values())
    rows = []
    for name, loads in groups.items():
        row = [
            name,
            f'{_span(load.ports for load in loads)}/'
            f'{_span(decide.PORTS.limit(load.limits) for load in loads)}',
            _span(load.usage.guest_ports for load in loads),
            f'{_span(load.usage.rules for load in loads)}/'
            f'{_span(decide.RULES.limit(load.limits) for load in loads)}',
            _known_span(network.dhcp_servers(result.scenario, load)
                        for load in loads),
            _span(load.usage.routers for load in loads)]
        if claims:
            row += [_known_span(_claimed_amount(load, resource_class)
                                for load in loads)
                    for resource_class in (
                        ledger_names.PORTS, ledger_names.RULES)]
        rows.append(tuple(row))
    return ReportTable(
        'network', title,
        ('Host', 'vSwitch ports', 'of servers', 'Rules', 'DHCP servers',
         'Routers', *(('Claimed ports', 'Claimed rules') if claims else ())),
        rows, _load_records(result))


def _load_records(
    result: outcome.SimulationResult,
) -> tuple[Sequence[str], list[tuple]]:
    """Return columns and rows of the network load for programs."""
    rows = []
    for host in result.hosts:
        load = _load(host.name, result.loads[host.name], result.scenario)
        rows.append((
            host.name, host.uuid, load.vswitch_ports, load.vswitch_port_limit,
            load.server_ports, load.security_rules, load.security_rule_limit,
            load.dhcp_servers, load.routers, load.claimed_ports,
            load.claimed_rules))
    return ('Host', 'Host ID', 'vSwitch ports', 'vSwitch port limit',
            'of servers', 'Rules', 'Rule limit', 'DHCP servers', 'Routers',
            'Claimed ports', 'Claimed rules'), rows


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


def _server(
        server: simulated.SimulatedServer,
        outcomes: Sequence[outcome.StepOutcome],
) -> document.SimulatedServerState:
    pinned: list[document.PinnedVCPU] = []
    if server.nodes is not None:
        pinned = [document.PinnedVCPU(vcpu=vcpu, cpu=cpu)
                  for cell in server.instance.numa_topology.cells
                  for vcpu, cpu in sorted((cell.cpu_pinning or {}).items())]
    return document.SimulatedServerState(
        server=server.name, server_id=server.uuid, flavor=server.flavor_name,
        status=server.status,
        host=server.host.name if server.host else None,
        numa_nodes=server.nodes, pinned_cpus=server.pinned_cpus,
        pinned_vcpus=tuple(pinned), floating_vcpus=tuple([
            document.FloatingVCPUs(vcpus=vcpus, cpus=cpus)
            for vcpus, cpus in server.floating]),
        cores=server.cores, vswitch_policy=server.policy.vswitch,
        vswitch=server.vswitch, places=server.places,
        pci_policy=server.policy.pci, pci=server.pci,
        pci_devices=_assigned_devices(server.devices), reason=server.reason,
        notes=outcomes[-1].notes if outcomes else ())


def _assigned_devices(devices: Iterable[tuple[str, int | None]],
                      ) -> tuple[document.AssignedDevice, ...]:
    return tuple([document.AssignedDevice(address=address, node=node)
                  for address, node in devices])


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
        numa_nodes=tuple([document.SimulatedNode(
            node=state.node, vswitch=state.vswitch, places=state.places,
            pcpus=state.pcpus, pcpus_free=state.pcpus_free,
            shared_vcpus=state.shared, shared_vcpus_free=state.shared_free,
            memory_mib=state.memory, memory_free_mib=state.memory_free,
            pages=tuple([
                document.FreePages(size_kib=size, total=total, free=free)
                for size, total, free in state.pages]),
            pci_devices=tuple([document.FreeDevices(
                type=kind, physical_network=network, total=total, free=free)
                for (kind, network), (total, free)
                in state.devices.items()])) for state in node_states(host)]))


def _step(o: outcome.StepOutcome) -> document.SimulatedStep:
    return document.SimulatedStep(
        step=o.step, action=o.action, server=o.server,
        result='done' if o.ok else 'refused', status=o.status,
        source=o.source, destination=o.host, numa_nodes=o.nodes,
        cores=o.cores, vswitch=o.vswitch, places=o.places, pci=o.pci,
        pci_devices=_assigned_devices(o.devices), reason=o.reason or None,
        notes=o.notes)


def cloud_document(result: outcome.SimulationResult,
                   keys: Collection[str]) -> document.SimulatedCloud:
    """Return the result as one document, for JSON and YAML.

    :param keys: parts to include: servers, hosts, network, steps
    """
    outcomes = _by_server(result)
    return document.SimulatedCloud(
        file=result.scenario.path, seconds=round(result.seconds, 3),
        expectations=document.ExpectationCounts(
            checked=result.checks, failed=tuple(result.failures)),
        servers=tuple([
            _server(server, outcomes.get(server.name, ()))
            for server in result.servers]) if 'servers' in keys else None,
        hosts=tuple([_host(host, result) for host in result.hosts])
        if 'hosts' in keys else None,
        network=tuple([_load(name, load, result.scenario)
                       for name, load in result.loads.items()])
        if 'network' in keys else None,
        steps=tuple(map(_step, result.outcomes))
        if 'steps' in keys else None)


def summary(result: outcome.SimulationResult) -> str:
    """Return a line with the numbers of hosts, servers and outcomes."""
    succeeded = sum(1 for o in result.outcomes if o.ok)
    refused = len(result.outcomes) - succeeded
    text = (f'{strings.count(len(result.hosts), "host")}, '
            f'{strings.count(len(result.servers), "server")}: '
            f'{succeeded} done, {refused} refused, in {result.seconds:.1f} s')
    if result.checks:
        met = result.checks - len(result.failures)
        text += f'; {met} of {result.checks} expectations met'
    return text
