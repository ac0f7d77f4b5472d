# SPDX-License-Identifier: Apache-2.0
"""Check the entries of ``hosts``, and make their NUMA nodes and PCI devices.

Physical cores are numbered over the whole host, node 0 first.  With *split*
siblings, as Linux usually numbers them, the threads of core ``c`` are CPUs
``c``, ``c + cores``, ...; with *adjacent* siblings they have consecutive
numbers.

On each node the first cores are for the platform (node 0 only), the next for
the virtual switch (on its nodes only), the next for shared vCPUs, and the rest
for pinned vCPUs.

Every PF and every standard device has its own PCI bus: the device is ``00.0``
there, and the VFs of a PF follow.  VFs that are listed without a PF get the
address of a PF that is not for guests.
"""

import collections
from collections.abc import Iterator, Mapping, Sequence
import dataclasses
import itertools
import re
import typing as ty

from nfv_sched.base import cpu_spec
from nfv_sched.base import files
from nfv_sched.fit.numa import rule
from nfv_sched.fit.rules import place as rule_place
from nfv_sched.ops.cloud.cloud_file import model
from nfv_sched.ops.cloud import codec
from nfv_sched.ops.cloud import names as cloud_names
from nfv_sched.ops.cloud import problems
from nfv_sched.ops.cloud import scenario as scenarios
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.cloud import validation
from nfv_sched.ops.cloud import values

_OF_PLACEMENT = re.compile('[A-Z0-9_]+')
_MAX_HOSTS = 100_000
_MAX_NODES = 64
# Items of files.max_items() that a CPU or device of a group counts for.
_ITEMS_PER_PART = 8
_DEFAULT_NODES = 2
_DEFAULT_VSWITCH_CORES = 2
_DEFAULT_PLATFORM_CORES = 1

# Type of device in the file -> in Nova.
_NOVA_TYPES = {'VF': 'type-VF', 'PF': 'type-PF', 'vdpa': 'vdpa',
               'standard': 'type-PCI'}
# Those of which a card has several.
_OF_A_PF = ('VF', 'vdpa')

# A VF and a PF of an X710 network card, and a QuickAssist accelerator.
_VENDOR = '8086'
_PRODUCTS = {'VF': '154c', 'PF': '1572', 'vdpa': '101e', 'standard': '0443'}

_FUNCTIONS = 8
_VFS_OF_A_BUS = 31 * _FUNCTIONS


class HostCompiler:
    def __init__(self, cloud: model.CloudFile, errors: problems.Problems,
                 defaults: scenarios.Defaults):
        self._cloud = cloud
        self._errors = errors
        self._defaults = defaults
        ours = cloud.options.get('nfv_sched', {})
        self._names = rule.Names(
            str(ours.get('vswitch_label', defaults.switch_label)),
            str(ours.get('node_label_prefix', defaults.node_prefix)))
        self._pci_in_placement = cloud.pci_in_placement
        if cloud.pci_in_placement is None:
            self._pci_in_placement = cloud.options.get('pci', {}).get(
                'report_in_placement', False)
        # What is in all groups so far.
        self._amounts: collections.Counter[str] = collections.Counter()

    def groups(self) -> tuple[model.HostGroup, ...]:
        groups, seen, total = [], {}, 0
        for i, host in enumerate(self._cloud.hosts):
            path = ('hosts', i)
            total += host.count or 1
            if total > _MAX_HOSTS:
                self._errors.add(path, f'more than {_MAX_HOSTS} hosts')
                break
            if (group := self._group(path, host)) is None:
                continue
            for name in group.names:
                if name in seen:
                    line = self._errors.line(('hosts', seen[name]))
                    self._errors.add((*path, 'name'),
                                     f'the host {name!r} is there already, '
                                     f'from line {line}')
                    break
                seen[name] = i
            groups.append(group)
            if self._are_too_large(path, group):
                break
        return tuple(groups)

    def _are_too_large(self, path: problems.Path,
                       group: model.HostGroup) -> bool:
        # The hosts of a group share their CPUs and devices, not their ports.
        most = files.max_items() // _ITEMS_PER_PART
        ports = _ports(group)
        for key, what, number, limit in (
                ('cores', 'CPUs in groups of hosts',
                 sum(group.cores) * group.threads, most),
                ('pci_devices', 'PCI devices in groups of hosts',
                 len(group.devices), most),
                (max(ports, key=ports.__getitem__),
                 'ports, DHCP servers and routers',
                 len(group.names) * (sum(ports.values()) + group.dhcp_servers
                                     + group.routers.count),
                 validation.max_ports())):
            self._amounts[what] += number
            if self._amounts[what] > limit:
                self._errors.add((*path, key),
                                 str(files.beyond(f'{limit} {what}')))
                return True
        return False

    def _group(self, path: problems.Path,
               host: model.HostGroup) -> model.HostGroup | None:
        before = len(self._errors)
        nodes = host.numa_nodes or (
            len(host.cores) if isinstance(host.cores, tuple)
            else _DEFAULT_NODES)
        if nodes > _MAX_NODES:
            self._errors.add((*path, 'cores'), f'has {nodes} values; no host '
                             f'has more than {_MAX_NODES} NUMA nodes')
            return None
        if host.dedicated_cpus is not None or host.shared_cpus is not None:
            for key in ('platform_cores', 'vswitch_cores',
                        'shared_cores_per_node'):
                if getattr(host, key) is not None:
                    self._errors.add((*path, key), 'cannot be combined with '
                                     'dedicated_cpus or shared_cpus')
        self._check_nodes((*path, 'switch_nodes'), host.switch_nodes, nodes)
        self._check_nodes((*path, 'tunnel_nodes'), host.tunnel_nodes, nodes)
        self._check_devices(path, host, nodes)
        if host.dhcp_servers and self._cloud.network_service == 'ovn':
            self._errors.add((*path, 'dhcp_servers'),
                             'with OVN the switch of each host answers DHCP; '
                             'there are no servers to count')
        physnets = self._physnets(path, host, nodes)
        host = self._spread(path, host, nodes)
        if host.reserved_memory > sum(host.memory):
            self._errors.add((*path, 'reserved_memory'),
                             f'{host.reserved_memory} MiB is more than the '
                             f'{sum(host.memory)} MiB of the host')
        ports = _ports(host)
        if sum(ports.values()) > validation.MAX_LOAD:
            self._errors.add(
                (*path, max(ports, key=ports.__getitem__)),
                f'the host would have {sum(ports.values())} ports of the '
                f'virtual switch; no host has more than {validation.MAX_LOAD}')
        self._check_providers((*path, 'providers'), host)
        devices: tuple[snapshot.Device, ...] = ()
        if not cloud_names.is_host(host.name):
            self._errors.add((*path, 'name'), cloud_names.HOST.text)
        try:
            devices = _devices(host.pci_devices)
        except codec.WrongError as e:
            self._errors.add((*path, 'pci_devices'), str(e))
        if len(self._errors) > before:
            return None
        try:
            numa_nodes = _numa_nodes(host, physnets)
        except codec.WrongError as e:
            self._errors.add((*path, *e.path), e.message)
            return None
        return dataclasses.replace(host, names=_names(host), nodes=numa_nodes,
                                   devices=devices)

    def _check_nodes(self, path: problems.Path, where: Sequence[int],
                     nodes: int) -> None:
        for i, node in enumerate(where):
            if node >= nodes:
                self._errors.add((*path, i), f'there is no NUMA node {node}; '
                                             f'the host has {nodes}')

    def _check_providers(self, path: problems.Path,
                         host: model.HostGroup) -> None:
        names = [entry.name for entry in host.providers]
        for i, entry in enumerate(host.providers):
            if entry.name in names[:i]:
                self._errors.add((*path, i, 'name'),
                                 f'{entry.name!r} is there already')
            for name in (*entry.inventories, *entry.traits):
                if not _OF_PLACEMENT.fullmatch(name):
                    self._errors.add(
                        (*path, i), f'{name!r} is not the name of a resource '
                                    'class or trait')
            for name, each in entry.inventories.items():
                if each.reserved > each.total:
                    self._errors.add(
                        (*path, i, 'inventories', name),
                        f'{each.reserved} reserved of {each.total}')

    def _check_devices(self, path: problems.Path, host: model.HostGroup,
                       nodes: int) -> None:
        for i, entry in enumerate(host.pci_devices):
            inner = (*path, 'pci_devices', i)
            if entry.node is not None and entry.node >= nodes:
                self._errors.add((*inner, 'node'),
                                 f'there is no NUMA node {entry.node}; the '
                                 f'host has {nodes}')
            if entry.type != 'PF':
                for key in ('vfs', 'vf_product'):
                    if getattr(entry, key) is not None:
                        self._errors.add((*inner, key),
                                         'is for devices of the type PF')
            elif self._pci_in_placement and entry.vfs:
                self._errors.add((*inner, 'vfs'),
                                 'Nova does not take a PF and its VFs '
                                 'together when Placement tracks PCI devices')

    def _physnets(self, path: problems.Path, host: model.HostGroup,
                  nodes: int) -> list[set[str]]:
        physnets: list[set[str]] = [set() for _ in range(nodes)]
        names = self._names
        of_nodes = {names.of_node(n): (n,) for n in range(nodes)}
        reserved = {names.vswitch, *of_nodes}
        declared: dict[str, Sequence[int]] = {names.vswitch: host.switch_nodes}
        if host.node_labels:
            declared |= of_nodes
        for name, where in host.places.items():
            inner = (*path, 'places', name)
            label = rule_place.label_of(name, names)
            if not rule_place.NAME.fullmatch(name):
                self._errors.add(inner, f'{name!r} is not the name of a place')
            elif name == rule_place.VSWITCH:
                self._errors.add(inner, 'use switch_nodes')
            elif rule_place.place_of(label, names) != name:
                self._errors.add(inner, 'has a label that is of something '
                                        'else')
            self._check_nodes(inner, where, nodes)
            declared[label] = where
            reserved.add(label)
        for name, where in host.physical_networks.items():
            inner = (*path, 'physical_networks', name)
            if name in reserved:
                self._errors.add(inner, 'is the name of a label; use '
                                        'switch_nodes, places and node_labels')
            self._check_nodes(inner, where, nodes)
            declared.setdefault(name, where)
        for name, where in declared.items():
            for node in where:
                if node < nodes:
                    physnets[node].add(name)
        return physnets

    def _spread(self, path: problems.Path, host: model.HostGroup,
                nodes: int) -> model.HostGroup:
        """Return a host with defaults, and a value for each NUMA node."""
        cores = host.vswitch_cores
        if not isinstance(cores, tuple):
            count = _DEFAULT_VSWITCH_CORES if cores is None else cores
            cores = tuple(count if node in host.switch_nodes else 0
                          for node in range(nodes))
        defaults = {
            'shared_cores_per_node': 0,
            'platform_cores': _DEFAULT_PLATFORM_CORES,
            'cpu_allocation_ratio': self._defaults.cpu_ratio,
            'ram_allocation_ratio': self._defaults.ram_ratio,
            'disk_allocation_ratio': self._defaults.disk_ratio}
        host = dataclasses.replace(host, vswitch_cores=cores, **{
            key: default for key, default in defaults.items()
            if getattr(host, key) is None})
        return dataclasses.replace(host, **{
            key: self._per_node((*path, key), getattr(host, key), nodes)
            for key in values.keys_with(model.HostGroup, values.PER_NODE)})

    def _per_node(self, path: problems.Path, value: ty.Any,
                  nodes: int) -> tuple[ty.Any, ...]:
        """Return the value for each NUMA node; ``value`` may be for all."""
        if isinstance(value, Mapping):
            of_items = {item: self._per_node(path, each, nodes)
                        for item, each in value.items()}
            return tuple([{item: each[node]
                           for item, each in of_items.items()
                           if node < len(each)} for node in range(nodes)])
        if not isinstance(value, tuple):
            return (value,) * nodes
        if len(value) != nodes:
            self._errors.add(path, f'has {len(value)} values, but there are '
                                   f'{nodes} NUMA nodes')
        elif any(isinstance(number, tuple) for each in value
                 if isinstance(each, Mapping) for number in each.values()):
            self._errors.add(path, 'has a list within a list')
        return value


def _ports(host: model.HostGroup) -> dict[str, int]:
    """Return the ports of a host that do not belong to servers, by key."""
    return {'dhcp_servers': host.dhcp_servers,
            'routers': host.routers.count * host.routers.ports,
            'other_ports': host.other_ports}


def _names(host: model.HostGroup) -> tuple[str, ...]:
    if (placeholder := re.search(r'\{n(?::0(\d))?\}', host.name)) is None:
        if host.count is None:
            return (host.name,)
        return tuple(f'{host.name}-{n}' for n in range(1, host.count + 1))
    width = int(placeholder[1] or 0)
    return tuple(host.name.replace(placeholder[0], str(n).zfill(width))
                 for n in range(1, (host.count or 1) + 1))


def _numa_nodes(host: model.HostGroup,
                physnets: Sequence[set[str]]) -> tuple[snapshot.Node, ...]:
    """Return the NUMA nodes of a host whose keys have a value for each."""
    total = sum(host.cores)
    for key in ('cores', 'memory'):
        if not any(getattr(host, key)):
            raise codec.WrongError('no NUMA node has any', [key])
    if total * host.threads >= cpu_spec.MOST_CPUS:
        raise codec.WrongError(
            f'the host would have {total * host.threads} CPUs; no host has '
            f'more than {cpu_spec.MOST_CPUS - 1}', ['cores'])
    cpus = range(total * host.threads)
    cores = [frozenset(cpus[core * host.threads:(core + 1) * host.threads]
                       if host.siblings == 'adjacent' else cpus[core::total])
             for core in range(total)]
    ends = list(itertools.accumulate(host.cores))
    node_cores = [cores[end - count:end]
                  for count, end in zip(host.cores, ends)]
    sets = (_sets_by_size(host, node_cores)
            if host.dedicated_cpus is None and host.shared_cpus is None
            else _explicit_sets(host, node_cores))
    if host.legacy_pinning:
        sets = [(one | other, one | other) for one, other in sets]
    if not any(shared or dedicated for shared, dedicated in sets):
        raise codec.WrongError('no CPU is left for servers', ['cores'])
    return tuple([snapshot.Node(
        number=node, socket=node // host.nodes_per_socket, shared=shared,
        dedicated=dedicated, memory=host.memory[node],
        siblings=_siblings(node_cores[node], shared | dedicated),
        pages=_pages(host, node), physnets=frozenset(physnets[node]),
        tunneled=node in host.tunnel_nodes)
        for node, (shared, dedicated) in enumerate(sets)])


# Shared and dedicated CPUs of a NUMA node.
_Sets = tuple[frozenset[int], frozenset[int]]


def _explicit_sets(
    host: model.HostGroup, node_cores: Sequence[Sequence[frozenset[int]]],
) -> list[_Sets]:
    node_cpus = [frozenset().union(*cores) for cores in node_cores]
    everything = frozenset().union(*node_cpus)
    dedicated = host.dedicated_cpus or frozenset()
    shared = host.shared_cpus or frozenset()
    for key, cpus in ('dedicated_cpus', dedicated), ('shared_cpus', shared):
        if outside := cpus - everything:
            raise codec.WrongError(
                f'CPU {min(outside)} is not on the host, which has CPUs '
                f'0-{max(everything)}', [key])
    if dedicated & shared and not host.legacy_pinning:
        raise codec.WrongError(
            f'CPU {min(dedicated & shared)} is dedicated as well; only '
            'legacy_pinning allows that', ['shared_cpus'])
    return [(shared & cpus, dedicated & cpus) for cpus in node_cpus]


def _sets_by_size(
    host: model.HostGroup, node_cores: Sequence[Sequence[frozenset[int]]],
) -> list[_Sets]:
    sets = []
    for node, cores in enumerate(node_cores):
        platform = host.platform_cores if node == 0 else 0
        switch = host.vswitch_cores[node]
        shared = host.shared_cores_per_node[node]
        needed = platform + switch + shared
        # One without cores has memory alone.
        if cores and needed > len(cores):
            raise codec.WrongError(
                f'NUMA node {node} has {len(cores)} cores, but {platform} for '
                f'the platform, {switch} for the virtual switch and {shared} '
                f'shared ones are {needed}', ['cores'])
        sets.append((frozenset().union(*cores[platform + switch:needed]),
                     frozenset().union(*cores[needed:])))
    return sets


def _pages(host: model.HostGroup, node: int) -> tuple[snapshot.Pages, ...]:
    memory_kib = host.memory[node] * 1024
    huge_kib = sum(size * total for size, total in host.pages[node].items())
    if huge_kib > memory_kib:
        raise codec.WrongError(
            f'the pages of NUMA node {node} take {huge_kib // 1024} MiB, but '
            f'it has {host.memory[node]} MiB', ['pages'])
    small = (memory_kib - huge_kib) // values.SMALL_PAGE_KIB
    totals = {values.SMALL_PAGE_KIB: small, **host.pages[node]}
    reserved = host.reserved_pages[node]
    for size, count in reserved.items():
        if count > totals.get(size, 0):
            raise codec.WrongError(
                f'{count} pages of {size} KiB are reserved on NUMA node '
                f'{node}, which has {totals.get(size, 0)}', ['reserved_pages'])
    return tuple(snapshot.Pages(
        size=size, total=total, reserved=reserved.get(size, 0))
        for size, total in sorted(totals.items()))


def _siblings(cores: Sequence[frozenset[int]],
              cpus: frozenset[int]) -> tuple[frozenset[int], ...]:
    """Return the guest CPUs of each core; empty if no core has several."""
    siblings = tuple([core for each in cores if (core := cpus & each)])
    return siblings if any(len(core) > 1 for core in siblings) else ()


def _nova_tags(entry: model.PCIDevices | model.PCIAlias) -> dict[str, str]:
    """Return the keys that are passed to Nova, with values as strings."""
    texts = {}
    for key in values.keys_with(type(entry), values.FOR_NOVA):
        value = getattr(entry, key)
        if isinstance(value, tuple):
            texts[key] = ','.join(value)
        elif value is not None:
            texts[key] = values.parse_text(value)
    return texts


def _functions(bus: str, entry: model.PCIDevices,
               count: int) -> Iterator[snapshot.Device]:
    """Yield the devices on one bus; ``count`` is the number of VFs."""
    kind = entry.type
    common = {'node': entry.node, 'vendor': (entry.vendor or _VENDOR).lower(),
              'tags': _nova_tags(entry)}
    product = (entry.product or _PRODUCTS[kind]).lower()
    first = f'{bus}:00.0'
    if kind not in _OF_A_PF:
        yield snapshot.Device(address=first, kind=_NOVA_TYPES[kind],
                              product=product, **common)
        if kind == 'standard':
            return
        kind = 'VF'
        product = (entry.vf_product or _PRODUCTS[kind]).lower()
    for number in range(count):
        slot, function = divmod(number, _FUNCTIONS)
        yield snapshot.Device(
            address=f'{bus}:{slot + 1:02x}.{function}',
            kind=_NOVA_TYPES[kind], product=product, parent=first, **common)


def _devices(
        entries: Sequence[model.PCIDevices]) -> tuple[snapshot.Device, ...]:
    """Return PCI devices with tags of device_spec; WrongError if too many."""
    buses = itertools.count(1)
    devices: list[snapshot.Device] = []
    for entry in entries:
        if entry.type in _OF_A_PF:
            cards, vfs = 1, entry.count
        else:
            cards, vfs = entry.count, entry.vfs or 0
        if vfs > _VFS_OF_A_BUS:
            raise codec.WrongError(f'a PF has at most {_VFS_OF_A_BUS} VFs')
        for number in itertools.islice(buses, cards):
            bus = f'{number >> 8:04x}:{number & 255:02x}'
            devices.extend(_functions(bus, entry, vfs))
            if len(devices) > validation.MAX_DEVICES:
                raise codec.WrongError('no host has more than '
                                       f'{validation.MAX_DEVICES} devices')
    validation.check_devices(devices)
    return tuple(devices)


def pci_alias(name: str, entry: model.PCIAlias) -> dict[str, str]:
    """Return the value of ``[pci] alias`` for an entry of ``pci_aliases``."""
    result = {'name': name, 'device_type': _NOVA_TYPES[entry.type]}
    if entry.resource_class is None or entry.vendor is not None:
        result['vendor_id'] = (entry.vendor or _VENDOR).lower()
    if entry.resource_class is None or entry.product is not None:
        result['product_id'] = (entry.product or _PRODUCTS[entry.type]).lower()
    return {**result, **_nova_tags(entry)}
