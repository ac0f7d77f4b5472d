# SPDX-License-Identifier: Apache-2.0

"""Check the entries of ``hosts``, and compile NUMA nodes and PCI devices."""

import collections
from collections.abc import Mapping
import dataclasses
import re
import typing as ty

from nfv_sched.base import files
from nfv_sched.fit.numa import rule
from nfv_sched.fit.rules import place as rule_place
from nfv_sched.ops.cloud.cloud_file import model
from nfv_sched.ops.cloud.cloud_file import pci
from nfv_sched.ops.cloud.cloud_file import topology
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

    def groups(self) -> tuple[model.HostGroup, ...]:
        groups, seen, total = [], {}, 0
        amounts: collections.Counter[str] = collections.Counter()
        for i, host in enumerate(self._cloud.hosts):
            path = ('hosts', i)
            total += host.count or 1
            if total > _MAX_HOSTS:
                self._errors.add(path, f'more than {_MAX_HOSTS} hosts')
                break
            group = self._group(path, host)
            if group is None:
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
            if self._are_too_large(path, group, amounts):
                break
        return tuple(groups)

    def _are_too_large(self, path: problems.Path, group: model.HostGroup,
                       amounts: collections.Counter[str]) -> bool:
        """Return whether there is too much in all groups so far.

        :param group: the last group
        :param amounts: what is in the others; that of the group is added
        """
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
            amounts[what] += number
            if amounts[what] > limit:
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
        self._check_explicit(path, host)
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
        self._check_ports(path, host)
        self._check_providers((*path, 'providers'), host)
        devices: tuple[snapshot.Device, ...] = ()
        if not cloud_names.is_host(host.name):
            self._errors.add((*path, 'name'), cloud_names.HOST.text)
        try:
            devices = pci.build(host.pci_devices)
            validation.check_devices(devices)
        except (pci.TooManyDevices, codec.WrongError) as e:
            self._errors.add((*path, 'pci_devices'), str(e))
        if len(self._errors) > before:
            return None
        try:
            layout = topology.build(host, physnets)
        except topology.LayoutError as e:
            self._errors.add((*path, e.field), str(e))
            return None
        return dataclasses.replace(host, names=_names(host), nodes=layout,
                                   devices=devices)

    def _check_explicit(self, path: problems.Path,
                        host: model.HostGroup) -> None:
        if host.dedicated_cpus is None and host.shared_cpus is None:
            return
        for key in ('platform_cores', 'vswitch_cores',
                    'shared_cores_per_node'):
            if getattr(host, key) is not None:
                self._errors.add((*path, key), 'cannot be combined with '
                                               'dedicated_cpus or shared_cpus')

    def _check_nodes(self, path: problems.Path, where: ty.Sequence[int],
                     nodes: int) -> None:
        for i, node in enumerate(where):
            if node >= nodes:
                self._errors.add((*path, i), f'there is no NUMA node {node}; '
                                             f'the host has {nodes}')

    def _check_ports(self, path: problems.Path,
                     host: model.HostGroup) -> None:
        ports = _ports(host)
        if sum(ports.values()) > validation.MAX_LOAD:
            self._errors.add(
                (*path, max(ports, key=ports.__getitem__)),
                f'the host would have {sum(ports.values())} ports of the '
                f'virtual switch; no host has more than {validation.MAX_LOAD}')

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
        declared: dict[str, ty.Sequence[int]] = {
            names.vswitch: host.switch_nodes}
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
        host = dataclasses.replace(
            host, vswitch_cores=cores,
            shared_cores_per_node=host.shared_cores_per_node or 0,
            platform_cores=_unless_none(
                host.platform_cores, _DEFAULT_PLATFORM_CORES),
            cpu_allocation_ratio=_unless_none(host.cpu_allocation_ratio,
                                              self._defaults.cpu_ratio),
            ram_allocation_ratio=_unless_none(host.ram_allocation_ratio,
                                              self._defaults.ram_ratio),
            disk_allocation_ratio=_unless_none(host.disk_allocation_ratio,
                                               self._defaults.disk_ratio))
        spread = {}
        for key in values.keys_with(model.HostGroup, values.PER_NODE):
            value = getattr(host, key)
            if isinstance(value, Mapping):
                value = self._spread_items((*path, key), value, nodes)
            elif not isinstance(value, tuple):
                value = (value,) * nodes
            elif len(value) != nodes:
                self._errors.add((*path, key),
                                 f'has {len(value)} values, but there are '
                                 f'{nodes} NUMA nodes')
            elif any(isinstance(number, tuple) for each in value
                     if isinstance(each, Mapping) for number in each.values()):
                self._errors.add((*path, key), 'has a list within a list')
            spread[key] = value
        return dataclasses.replace(host, **spread)

    def _spread_items(
        self, path: problems.Path, value: Mapping[int, int | tuple[int, ...]],
        nodes: int,
    ) -> tuple[dict[int, int], ...]:
        """Return a mapping for each NUMA node of one with lists."""
        spread: tuple[dict[int, int], ...] = tuple([{} for _ in range(nodes)])
        for item, count in value.items():
            if not isinstance(count, tuple):
                count = (count,) * nodes
            elif len(count) != nodes:
                self._errors.add(path, f'has {len(count)} values, but there '
                                       f'are {nodes} NUMA nodes')
            for of_node, number in zip(spread, count):
                of_node[item] = number
        return spread


def _unless_none(value: ty.Any, default: ty.Any) -> ty.Any:
    return default if value is None else value


def _ports(host: model.HostGroup) -> dict[str, int]:
    """Return the ports of a host that do not belong to servers, by key."""
    return {'dhcp_servers': host.dhcp_servers,
            'routers': host.routers.count * host.routers.ports,
            'other_ports': host.other_ports}


def _names(host: model.HostGroup) -> tuple[str, ...]:
    placeholder = re.search(r'\{n(?::0(\d))?\}', host.name)
    if placeholder is None:
        if host.count is None:
            return (host.name,)
        return tuple(f'{host.name}-{n}' for n in range(1, host.count + 1))
    width = int(placeholder[1] or 0)
    return tuple(host.name.replace(placeholder[0], str(n).zfill(width))
                 for n in range(1, (host.count or 1) + 1))
