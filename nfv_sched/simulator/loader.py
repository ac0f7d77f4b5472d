#    Licensed under the Apache License, Version 2.0 (the "License"); you may
#    not use this file except in compliance with the License. You may obtain
#    a copy of the License at
#
#         http://www.apache.org/licenses/LICENSE-2.0
#
#    Unless required by applicable law or agreed to in writing, software
#    distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
#    WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
#    License for the specific language governing permissions and limitations
#    under the License.

"""From a cloud file to the values of :mod:`nfv_sched.simulator.model`.

Everything wrong with a file is reported as an :class:`InputError` that names
file, line and field: text that is not YAML, keys given twice, unknown keys,
wrong types, references to what is not there, dimensions that contradict each
other.  Whether Nova accepts a flavor's extra specs is asked through a
callable, so that this module does not need Nova.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
import dataclasses
import difflib
import fnmatch
import re
import typing as ty

import jsonschema

from nfv_sched.rules import place as rule_place
from nfv_sched.simulator.cloud_file import problems
from nfv_sched.simulator.cloud_file import text as cloud_text
from nfv_sched.simulator.cloud_file import values
from nfv_sched.simulator import model
from nfv_sched.simulator import pci
from nfv_sched.simulator import schema
from nfv_sched.simulator import topology

# 2.0 is a whole number to JSON, but not to code that counts with it.
_Validator = jsonschema.validators.extend(
    jsonschema.Draft202012Validator,
    type_checker=jsonschema.Draft202012Validator.TYPE_CHECKER.redefine(
        'integer', lambda checker, value: isinstance(value, int) and
        not isinstance(value, bool)))

Path = problems.Path

_MAX_HOSTS = 100_000
_HOST_ACTIONS = ('host_down', 'host_up')
_GLOB = re.compile(r'[*?\[]')


def _type_text(types: str | list[str]) -> str:
    names = {'integer': 'a whole number', 'number': 'a number',
             'string': 'text', 'boolean': 'true or false',
             'array': 'a list', 'object': 'a mapping', 'null': 'null'}
    types = [types] if isinstance(types, str) else types
    return ' or '.join(names[t] for t in types)


def _shown(value: ty.Any) -> str:
    if isinstance(value, dict):
        return 'a mapping'
    if isinstance(value, list):
        return 'a list'
    if value is None:
        return 'nothing'
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + '...'


def _explain(error) -> list[tuple[Path, str]]:
    """A schema error as fields and messages."""
    path = tuple(error.absolute_path)
    value, wanted = error.instance, error.validator_value
    match error.validator:
        case 'additionalProperties':
            known = error.schema.get('properties', {})
            return [((*path, key), f'unknown key{problems.near(key, known)}')
                    for key in value if key not in known]
        case 'required':
            missing = [key for key in wanted if key not in value]
            return [(path, f'{key!r} is missing') for key in missing]
        case 'type':
            message = (f'must be {_type_text(wanted)}, '
                       f'not {_shown(value)}')
        case 'enum':
            message = (f'{_shown(value)} is not one of '
                       f'{", ".join(map(str, wanted))}')
            if isinstance(value, str):
                message += problems.near(value, wanted).partition('; known')[0]
        case 'minimum':
            message = f'must be at least {wanted}, not {value}'
        case 'exclusiveMinimum':
            message = f'must be more than {wanted}, not {value}'
        case 'maximum':
            message = f'must be at most {wanted}, not {value}'
        case 'minLength' | 'minItems' | 'minProperties':
            message = 'must not be empty'
        case 'pattern':
            # The only pattern is that of PCI ids.
            message = (f'{_shown(value)} is not a PCI id of four '
                       'hexadecimal digits')
        case _:
            message = error.message
    return [(path, message)]


class _Builder:
    """Checks one parsed file and builds the values."""

    def __init__(self, path: str, data: ty.Any, marks: Mapping[Path, int],
                 switch_label: str, node_prefix: str,
                 ratios: Mapping[str, float],
                 check_extra_spec: Callable[[str, str], str | None]):
        self.path = path
        self.data = data
        self.problems = problems.Problems(path, marks)
        self.problem, self.known = self.problems.add, self.problems.known
        self.line = self.problems.line
        self.switch_label = switch_label
        self.node_prefix = node_prefix
        self.ratios = ratios
        self.check_extra_spec = check_extra_spec
        self.pci_in_placement = False

    def validate(self, instance: ty.Any, rules: Mapping,
                 prefix: Path = ()) -> None:
        """Check a part of the file against a schema."""
        for error in _Validator(rules).iter_errors(instance):
            for path, message in _explain(error):
                self.problem((*prefix, *path), message)

    # Parts

    def size_kib(self, path: Path, value: int | str) -> int:
        """A size in KiB; 0 if it is wrong."""
        try:
            return values.parse_size(value)
        except ValueError as e:
            self.problem(path, str(e))
            return 0

    def size_mib(self, path: Path, value: int | str) -> int:
        """A size in MiB; 0 if it is wrong."""
        kib = self.size_kib(path, value)
        if kib % 1024:
            self.problem(path, f'{value!r} is not a whole number of MiB')
        return kib // 1024

    def disk_gib(self, path: Path, value: int | str) -> int:
        """A disk size in GiB; a bare number is GiB."""
        if isinstance(value, int):
            return value
        mib = self.size_mib(path, value)
        return -(-mib // 1024)

    def per_node(self, path: Path, value: ty.Any, nodes: int) -> list:
        """One value for each NUMA node."""
        if not isinstance(value, list):
            return [value] * nodes
        if len(value) != nodes:
            self.problem(path, f'has {len(value)} values, but there are '
                               f'{nodes} NUMA nodes')
            return (value + [value[-1]] * nodes)[:nodes]
        return value

    def pages(self, path: Path, value: ty.Any, nodes: int,
              small: bool) -> list[dict[int, int]]:
        """Pages by size in KiB, of each NUMA node."""
        result = []
        for i, node in enumerate(self.per_node(path, value, nodes)):
            inner = (*path, i) if isinstance(value, list) else path
            sizes = {}
            for size, count in node.items():
                kib = self.size_kib((*inner, size),
                                    size if not size.isdigit()
                                    else f'{size}K')
                if kib < topology.SMALL_PAGE_KIB or kib & (kib - 1):
                    self.problem((*inner, size),
                                 f'{size!r} is not a page size')
                elif kib == topology.SMALL_PAGE_KIB and not small:
                    self.problem((*inner, size), '4 KiB pages are what the '
                                                 'huge pages leave')
                else:
                    sizes[kib] = count
            result.append(sizes)
        return result

    def cpus(self, path: Path, host: Mapping) -> frozenset[int] | None:
        """An explicit CPU set of a host."""
        if path[-1] not in host:
            return None
        try:
            return values.parse_cpus(host[path[-1]])
        except ValueError as e:
            self.problem(path, str(e))
            return frozenset()

    def node_list(self, path: Path, value: Sequence[int],
                  nodes: int) -> frozenset[int]:
        """NUMA nodes of a host."""
        for i, node in enumerate(value):
            if node >= nodes:
                self.problem((*path, i), f'there is no NUMA node {node}; the '
                                         f'host has {nodes}')
        return frozenset(n for n in value if n < nodes)

    def host_names(self, path: Path, host: Mapping) -> tuple[str, ...]:
        """The names of the hosts of a group."""
        name, count = host['name'], host.get('count')
        placeholder = re.search(r'\{n(?::0(\d))?\}', name)
        if placeholder is None:
            if count is None:
                return (name,)
            return tuple(f'{name}-{n}' for n in range(1, count + 1))
        width = int(placeholder[1] or 0)
        return tuple(name.replace(placeholder[0], str(n).zfill(width))
                     for n in range(1, (count or 1) + 1))

    def host_group(self, path: Path, host: Mapping) -> model.HostGroup | None:
        """One entry of ``hosts``."""
        before = len(self.problems)
        cores = host['cores']
        nodes = host.get('numa_nodes') or (
            len(cores) if isinstance(cores, list) else 2)
        if (isinstance(cores, list) and 'numa_nodes' in host and
                len(cores) != nodes):
            self.problem((*path, 'cores'),
                         f'has {len(cores)} values, but there are {nodes} '
                         'NUMA nodes')
        explicit = 'dedicated_cpus' in host or 'shared_cpus' in host
        for key in ('platform_cores', 'vswitch_cores',
                    'shared_cores_per_node'):
            if explicit and key in host:
                self.problem((*path, key), 'cannot be combined with '
                                           'dedicated_cpus or shared_cpus')
        switch = self.node_list((*path, 'switch_nodes'),
                                host.get('switch_nodes', [0]), nodes)
        physnets: list[set[str]] = [set() for _ in range(nodes)]
        reserved = {self.switch_label} | {
            f'{self.node_prefix}{n}' for n in range(nodes)}
        places = self.places(path, host.get('places', {}), nodes, reserved)
        for name, where in places.items():
            reserved.add(f'{rule_place.PREFIX}{name}')
            for node in where:
                physnets[node].add(f'{rule_place.PREFIX}{name}')
        for name, where in host.get('physical_networks', {}).items():
            inner = (*path, 'physical_networks', name)
            if name in reserved:
                self.problem(inner, 'is the name of a label; use '
                                    'switch_nodes, places and node_labels')
            for node in self.node_list(inner, where, nodes):
                physnets[node].add(name)
        for node in range(nodes):
            if node in switch:
                physnets[node].add(self.switch_label)
            if host.get('node_labels', True):
                physnets[node].add(f'{self.node_prefix}{node}')
        vswitch_cores = self.per_node(
            (*path, 'vswitch_cores'), host.get('vswitch_cores', 2), nodes)
        if not isinstance(host.get('vswitch_cores'), list):
            vswitch_cores = [count if node in switch else 0
                             for node, count in enumerate(vswitch_cores)]
        memory_path = (*path, 'memory')
        dims = topology.Dimensions(
            cores=tuple(self.per_node((*path, 'cores'), cores, nodes)),
            threads=host.get('threads', 1),
            adjacent=host.get('siblings') == 'adjacent',
            memory_mib=tuple(
                self.size_mib(memory_path, value) for value in
                self.per_node(memory_path, host['memory'], nodes)),
            pages=tuple(self.pages((*path, 'pages'), host.get('pages', {}),
                                   nodes, small=False)),
            reserved_pages=tuple(self.pages(
                (*path, 'reserved_pages'), host.get('reserved_pages', {}),
                nodes, small=True)),
            nodes_per_socket=host.get('nodes_per_socket', 1),
            platform_cores=host.get('platform_cores', 1),
            vswitch_cores=tuple(vswitch_cores),
            shared_cores=tuple(self.per_node(
                (*path, 'shared_cores_per_node'),
                host.get('shared_cores_per_node', 0), nodes)),
            dedicated_cpus=self.cpus((*path, 'dedicated_cpus'), host),
            shared_cpus=self.cpus((*path, 'shared_cpus'), host),
            legacy_pinning=host.get('legacy_pinning', False),
            physnets=tuple(map(frozenset, physnets)),
            tunnel_nodes=self.node_list(
                (*path, 'tunnel_nodes'), host.get('tunnel_nodes', []),
                nodes))
        routers = host.get('routers', 0)
        if not isinstance(routers, dict):
            routers = {'count': routers}
        if host.get('dhcp_servers') and (
                self.data.get('network_service') == 'ovn'):
            self.problem((*path, 'dhcp_servers'),
                         'with OVN the switch of each host answers DHCP; '
                         'there are no servers to count')
        reserved_mib = self.size_mib((*path, 'reserved_memory'),
                                     host.get('reserved_memory', 512))
        if reserved_mib > sum(dims.memory_mib):
            self.problem((*path, 'reserved_memory'),
                         f'{reserved_mib} MiB is more than the '
                         f'{sum(dims.memory_mib)} MiB of the host')
        disk_gib = self.disk_gib((*path, 'disk'), host.get('disk', 1000))
        devices = self.pci_config(path, host.get('pci_devices', ()), nodes)
        if len(self.problems) > before:
            return None
        try:
            layout = topology.build(dims)
        except topology.LayoutError as e:
            self.problem((*path, e.field), str(e))
            return None
        return model.HostGroup(
            key=host['name'],
            names=self.host_names(path, host),
            nodes=layout,
            legacy_pinning=dims.legacy_pinning,
            threads=dims.threads,
            switch_nodes=switch,
            places=places,
            reserved_mib=reserved_mib,
            disk_gib=disk_gib,
            cpu_ratio=self.ratio(host, 'cpu'),
            ram_ratio=self.ratio(host, 'ram'),
            disk_ratio=self.ratio(host, 'disk'),
            traits=frozenset(host.get('traits', ())),
            disabled=host.get('disabled', False),
            pci=devices,
            dhcp_servers=host.get('dhcp_servers', 0),
            routers=routers['count'],
            router_ports=routers.get('ports', 1),
            other_ports=host.get('other_ports', 0))

    def places(self, path: Path, entries: Mapping[str, Sequence[int]],
               nodes: int, reserved: set[str]) -> dict[str, frozenset[int]]:
        """The ``places`` of a host.

        :param reserved: labels that are no places
        """
        for name in entries:
            inner = (*path, 'places', name)
            if not rule_place.NAME.fullmatch(name):
                self.problem(inner, f'{name!r} is not the name of a place')
            elif name == rule_place.VSWITCH:
                self.problem(inner, 'use switch_nodes')
            elif f'{rule_place.PREFIX}{name}' in reserved:
                self.problem(inner, 'has a label that is of something else')
        return {name: self.node_list((*path, 'places', name), where, nodes)
                for name, where in entries.items()}

    def pci_config(self, path: Path, entries: Sequence[Mapping],
                   nodes: int) -> model.PCIConfig:
        """The ``pci_devices`` of a host."""
        for i, entry in enumerate(entries):
            inner = (*path, 'pci_devices', i)
            node = entry['node']
            if node is not None and node >= nodes:
                self.problem((*inner, 'node'),
                             f'there is no NUMA node {node}; the host has '
                             f'{nodes}')
            if entry['type'] != 'PF':
                for key in ('vfs', 'vf_product'):
                    if key in entry:
                        self.problem((*inner, key),
                                     'is for devices of the type PF')
            elif self.pci_in_placement and entry.get('vfs'):
                self.problem((*inner, 'vfs'),
                             'Nova does not take a PF and its VFs together '
                             'when Placement tracks PCI devices')
        try:
            return pci.build(entries)
        except pci.TooManyDevices as e:
            self.problem((*path, 'pci_devices'), str(e))
            return model.PCIConfig()

    def ratio(self, host: Mapping, kind: str) -> float:
        """An allocation ratio of a host."""
        return float(host.get(f'{kind}_allocation_ratio', self.ratios[kind]))

    def host_groups(self) -> tuple[model.HostGroup, ...]:
        """All of ``hosts``."""
        groups, seen, total = [], {}, 0
        for i, host in enumerate(self.data['hosts']):
            path = ('hosts', i)
            total += host.get('count', 1)
            if total > _MAX_HOSTS:
                self.problem(path, f'more than {_MAX_HOSTS} hosts')
                break
            group = self.host_group(path, host)
            if group is None:
                continue
            for name in group.names:
                if name in seen:
                    self.problem((*path, 'name'),
                                 f'the host {name!r} is there already, from '
                                 f'line {self.line(("hosts", seen[name]))}')
                    break
                seen[name] = i
            groups.append(group)
        return tuple(groups)

    def flavor(self, name: str, data: Mapping) -> model.FlavorSpec:
        """One entry of ``flavors``."""
        path = ('flavors', name)
        specs = {key: values.parse_text(value)
                 for key, value in data.get('extra_specs', {}).items()}
        if data.get('validate', True):
            for key, value in specs.items():
                complaint = self.check_extra_spec(key, value)
                if complaint:
                    self.problem((*path, 'extra_specs', key),
                                 f'the Nova API refuses this: {complaint}')
        return model.FlavorSpec(
            name=name, vcpus=data['vcpus'],
            memory_mib=self.size_mib((*path, 'memory'), data['memory']),
            disk_gib=self.disk_gib((*path, 'disk'), data.get('disk', 0)),
            extra_specs=specs)

    def network(self, name: str, data: Mapping) -> model.NetworkSpec:
        """One entry of ``networks``."""
        physnet = data.get('physical_network')
        tunneled = data.get('tunneled', physnet is None)
        if tunneled == (physnet is not None):
            self.problem(('networks', name),
                         'must have a physical_network or be tunneled, '
                         'one of the two')
        vnic_type = data.get('vnic_type', 'normal')
        if vnic_type == 'normal':
            if 'numa_policy' in data:
                self.problem(('networks', name, 'numa_policy'),
                             'is for the vnic_type direct or '
                             'direct-physical')
        elif physnet is None:
            self.problem(('networks', name, 'vnic_type'),
                         'needs a physical_network')
        return model.NetworkSpec(name, physnet, tunneled, vnic_type,
                                 data.get('numa_policy'))

    def aggregates(self, hosts: Sequence[str]):
        """All of ``aggregates``."""
        result = []
        for i, data in enumerate(self.data.get('aggregates', ())):
            path = ('aggregates', i)
            members: dict[str, None] = {}
            for pattern in _list(data['hosts']):
                found = _matching(pattern, hosts)
                if not found:
                    self.known((*path, 'hosts'), 'host', pattern, hosts)
                members.update(dict.fromkeys(found))
            result.append(model.AggregateSpec(
                data['name'], tuple(members),
                {key: values.parse_text(value)
                 for key, value in data.get('metadata', {}).items()}))
        return tuple(result)

    def expectation(self, path: Path, data: Mapping, hosts: Sequence[str],
                    targets: Sequence[str]) -> model.Expectation:
        """The ``expect`` of a step or of one of its servers."""
        for key in ('host', 'not_host'):
            for name in _list(data.get(key, [])):
                self.known((*path, key), 'host', name, hosts)
        for key in ('placed', 'refused'):
            count = data.get(key)
            if not isinstance(count, bool) and (count or 0) > len(targets):
                self.problem((*path, key), f'{count} is more than the '
                                           f'{len(targets)} servers of the '
                                           'step')
            if count is False:
                self.problem((*path, key), 'must be true or a number; say '
                                           '0 for none')
        figures = {}
        for key in ('ports', 'rules'):
            for name in data.get(key, {}):
                self.known((*path, key, name), 'host', name, hosts)
            figures[key] = tuple(data.get(key, {}).items())
        for name in data.get('places', {}):
            self.known((*path, 'places', name), 'place', name, {
                place for host in self.data['hosts']
                for place in host.get('places', {})})
        devices = []
        for key, count in data.get('pci_devices', {}).items():
            if key.isdigit():
                devices.append((int(key), count))
            elif key in ('none', 'null'):
                devices.append((None, count))
            else:
                self.problem((*path, 'pci_devices', key),
                             f'{key!r} is neither a NUMA node nor none')
        servers = []
        for name, inner in data.get('servers', {}).items():
            inner_path = (*path, 'servers', name)
            if self.known(inner_path, 'server in this step', name, targets):
                servers.append((name, self.expectation(
                    inner_path, inner, hosts, (name,))))
        return model.Expectation(
            placed=data.get('placed'), refused=data.get('refused'),
            hosts=_tuple(data, 'host'), not_hosts=_tuple(data, 'not_host'),
            nodes=_tuple(data, 'nodes'), nodes_in=_tuple(data, 'nodes_in'),
            vswitch=data.get('vswitch'), pci=data.get('pci'),
            places=tuple(data.get('places', {}).items()),
            pci_devices=tuple(devices) if 'pci_devices' in data else None,
            cores=data.get('cores'), reason=data.get('reason'),
            ports=figures['ports'], rules=figures['rules'],
            line=self.line(path), servers=tuple(servers))

    def step_targets(self, path: Path, action: str, data: Mapping,
                     hosts: Sequence[str],
                     servers: dict[str, None]) -> tuple[str, ...]:
        """The servers or hosts a step is about."""
        if action == 'boot':
            name, count = data['boot'], data.get('count')
            if _GLOB.search(name):
                self.problem((*path, 'boot'), 'a server name must not have '
                                              '*, ? or [')
            names = ((name,) if count is None else
                     tuple(f'{name}-{n}' for n in range(1, count + 1)))
            taken = next((n for n in names if n in servers), None)
            if taken is not None:
                self.problem((*path, 'boot'),
                             f'there is a server {taken!r} already')
            servers.update(dict.fromkeys(names))
            return names
        if action == 'neutron':
            return ()
        kind, known = (('host', hosts) if action in _HOST_ACTIONS
                       else ('server', list(servers)))
        targets: dict[str, None] = {}
        for name in _list(data[action]):
            found = _matching(name, known)
            if not found:
                self.known((*path, action), kind, name, known)
            targets.update(dict.fromkeys(found))
        if action == 'delete':
            for name in targets:
                del servers[name]
        return tuple(targets)

    def step(self, number: int, data: Mapping, hosts: Sequence[str],
             servers: dict[str, None]) -> model.Step | None:
        """One entry of ``steps``."""
        path: Path = ('steps', number - 1)
        # confirm and revert are options of a move as well, with true or false.
        actions = [key for key in data if key in schema.STEPS and
                   not isinstance(data[key], bool)]
        if len(actions) != 1:
            if actions:
                self.problem(path, 'has more than one action: '
                                   f'{", ".join(actions)}')
                return None
            first = next(iter(data))
            close = difflib.get_close_matches(first, schema.STEPS, n=1)
            hint = (f'; did you mean {close[0]!r}?' if close else
                    f'; known: {", ".join(schema.STEPS)}')
            self.problem(path, f'has no known action{hint}')
            return None
        action = actions[0]
        before = len(self.problems)
        self.validate(data, schema.STEPS[action], path)
        if len(self.problems) > before:
            return None
        targets = self.step_targets(path, action, data, hosts, servers)
        for key, kind, names in (
                ('flavor', 'flavor', self.data['flavors']),
                ('image', 'image', self.data.get('images', {})),
                ('group', 'server group',
                 self.data.get('server_groups', {})),
                ('host', 'host', hosts), ('force', 'host', hosts),
                ('network', 'network', self.data.get('networks', {}))):
            if key in data:
                self.known((*path, key), kind, data[key], names)
        for key, kind, names in (
                ('networks', 'network', self.data.get('networks', {})),
                ('security_groups', 'security group',
                 self.data.get('security_groups', {})),
                ('ignore_hosts', 'host', hosts)):
            for i, name in enumerate(data.get(key, ())):
                self.known((*path, key, i), kind, name, names)
        if data.get('multi_create'):
            for i, name in enumerate(data.get('networks', ())):
                network = self.data.get('networks', {}).get(name, {})
                if network.get('vnic_type', 'normal') != 'normal':
                    self.problem((*path, 'networks', i),
                                 'a request for several servers cannot have '
                                 'the ports that SR-IOV needs')
        networks = tuple(data.get('networks', ()))
        if 'network' in data:
            networks = (data['network'],) * data.get('count', 1)
            network = self.data.get('networks', {}).get(data['network'], {})
            if network.get('vnic_type', 'normal') != 'normal':
                self.problem((*path, 'network'), 'ports of SR-IOV come and '
                                                 'go with the server here')
        if 'host' in data and 'force' in data:
            self.problem((*path, 'force'), 'cannot be combined with host')
        if data.get('revert') and data.get('confirm'):
            self.problem((*path, 'revert'), 'cannot be combined with '
                                            'confirm: true')
        expect = None
        if 'expect' in data:
            expect = self.expectation((*path, 'expect'), data['expect'],
                                      hosts, targets)
        return model.Step(
            number=number, line=self.line(path), action=action,
            targets=targets, flavor=data.get('flavor'),
            image=data.get('image'),
            networks=networks,
            security_groups=tuple(data.get('security_groups', ())),
            multi_create=data.get('multi_create', False),
            host=data.get('host'), force=data.get('force'),
            ignore_hosts=tuple(data.get('ignore_hosts', ())),
            zone=data.get('availability_zone'), group=data.get('group'),
            same_host=data.get('same_host', False),
            confirm=data.get('confirm', not data.get('revert', False)),
            revert=data.get('revert', False),
            state=data.get('neutron'), expect=expect)

    def build(self) -> model.Cloud:
        """The whole file.

        :raises InputError: if anything is wrong with it
        """
        if self.data is None:
            raise problems.InputError([f'{self.path}: the file is empty'])
        self.validate(self.data, schema.CLOUD)
        self.problems.stop_if_wrong()
        data = self.data
        ours = data.get('options', {}).get('nfv_sched', {})
        self.switch_label = str(ours.get('vswitch_label', self.switch_label))
        self.node_prefix = str(ours.get('node_label_prefix',
                                        self.node_prefix))
        options_of = data.get('options', {})
        if 'alias' in options_of.get('pci', {}) and 'pci_aliases' in data:
            self.problem(('options', 'pci', 'alias'),
                         'cannot be combined with pci_aliases')
        self.pci_in_placement = data.get(
            'pci_in_placement',
            options_of.get('pci', {}).get('report_in_placement', False))
        aliases = None
        if 'pci_aliases' in data:
            aliases = tuple((name, pci.alias(name, value)) for name, value
                            in data['pci_aliases'].items())
        groups = self.host_groups()
        # Without all hosts, references to them would look wrong.
        self.problems.stop_if_wrong()
        hosts = [name for group in groups for name in group.names]
        flavors = {name: self.flavor(name, value)
                   for name, value in data['flavors'].items()}
        networks = {name: self.network(name, value)
                    for name, value in data.get('networks', {}).items()}
        aggregates = self.aggregates(hosts)
        server_groups = {}
        for name, value in data.get('server_groups', {}).items():
            limit = value.get('max_server_per_host')
            if limit is not None and value['policy'] != 'anti-affinity':
                self.problem(('server_groups', name, 'max_server_per_host'),
                             'is for the policy anti-affinity')
            server_groups[name] = model.GroupSpec(
                name, value['policy'], limit)
        servers: dict[str, None] = {}
        host_set = dict.fromkeys(hosts)
        steps = [self.step(i + 1, step, host_set, servers)
                 for i, step in enumerate(data['steps'])]
        self.problems.stop_if_wrong()
        options = tuple(
            (group, name, value, self.line(('options', group, name)))
            for group, values in data.get('options', {}).items()
            for name, value in values.items())
        return model.Cloud(
            path=self.path, description=data.get('description', ''),
            options=options, filters=_tuple(data, 'filters'), groups=groups,
            aggregates=aggregates, flavors=flavors,
            images=data.get('images', {}), networks=networks,
            server_groups=server_groups,
            steps=tuple(step for step in steps if step is not None),
            pci_aliases=aliases,
            pci_in_placement=data.get('pci_in_placement'),
            security_groups={
                name: value.get('ingress', 0) + value.get('egress', 0)
                for name, value in data.get('security_groups', {}).items()},
            network_service=data.get('network_service', 'ovs' if any(
                group.dhcp_servers or group.routers for group in groups)
                else 'none'))


def _list(value: ty.Any) -> list:
    return value if isinstance(value, list) else [value]


def _tuple(data: Mapping, key: str) -> tuple | None:
    return tuple(_list(data[key])) if key in data else None


def _matching(pattern: str, names: Iterable[str]) -> list[str]:
    if pattern in names:
        return [pattern]
    if not _GLOB.search(pattern):
        return []
    return [name for name in names if fnmatch.fnmatchcase(name, pattern)]


@dataclasses.dataclass(frozen=True, slots=True)
class Defaults:
    """What a file need not say.

    :ivar switch_label: label of NUMA nodes with a virtual switch
    :ivar node_prefix: prefix of the labels of single NUMA nodes
    :ivar cpu_ratio: shared vCPUs per shared CPU
    :ivar ram_ratio: memory overcommitment
    :ivar disk_ratio: disk overcommitment
    """

    switch_label: str = 'nfv_vswitch'
    node_prefix: str = 'nfv_node'
    cpu_ratio: float = 4.0
    ram_ratio: float = 1.0
    disk_ratio: float = 1.0


def _accept(name: str, value: str) -> str | None:
    return None


def loads(text: str, path: str = '<text>', defaults: Defaults = Defaults(),
          check_extra_spec: Callable[[str, str], str | None] = _accept,
          ) -> model.Cloud:
    """Build a cloud from YAML text.

    :param text: the YAML
    :param path: what to call it in messages
    :param defaults: what it need not say
    :param check_extra_spec: takes name and value of an extra spec, returns
        what is wrong with it or None
    :returns: the cloud
    :raises InputError: if anything is wrong with the text
    """
    data, marks = cloud_text.parse(text, path)
    return _Builder(path, data, marks, defaults.switch_label,
                    defaults.node_prefix,
                    {'cpu': defaults.cpu_ratio, 'ram': defaults.ram_ratio,
                     'disk': defaults.disk_ratio},
                    check_extra_spec).build()


def load(path: str, defaults: Defaults = Defaults(),
         check_extra_spec: Callable[[str, str], str | None] = _accept,
         ) -> model.Cloud:
    """Build a cloud from a YAML file.

    :param path: the file
    :param defaults: what it need not say
    :param check_extra_spec: as for :func:`loads`
    :returns: the cloud
    :raises InputError: if anything is wrong with the file
    """
    return loads(cloud_text.read(path), path, defaults, check_extra_spec)
