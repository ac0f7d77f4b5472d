# SPDX-License-Identifier: Apache-2.0
"""Read a machine from this host's /sys, or from files with facts."""

from collections.abc import Iterator, Mapping, Sequence
import os
import re
import typing as ty
from xml.etree import ElementTree

from nfv_sched.base import files
from nfv_sched.base import strings
from nfv_sched.ops.answers.machine import facts
from nfv_sched.ops.answers.machine import lscpu
from nfv_sched.ops.answers.machine import sysfs
from nfv_sched.ops.answers.machine import values

#: What is easily taken for facts: how it begins, and the command.
_FOR_PEOPLE = tuple((re.compile(start), name) for start, name in (
    ('Architecture:', 'lscpu'), (r'CPU +[A-Z]', 'lscpu -e'),
    ('available: ', 'numactl -H'), ('CPU model:', 'virsh nodeinfo'),
    (r'processor\s*:', 'cat /proc/cpuinfo')))
_KIB = {'KiB': 1, 'MiB': 1 << 10, 'GiB': 1 << 20}

_TOPOLOGY = 'numa_topology'
#: Keys under which older and newer releases nest it, if they do.
_FOLDERS = ('data', 'plugin_data')
_PARTS = ('ram', 'cpus', 'nics')
_JOINED = ('Ironic takes CPUs of one NUMA node whose cores have the same '
           'number, in several sockets or unknown (-1), for one core')

#: What parameters are in: an environment file of TripleO, a roles file.
_DEFAULTS, _OF_ROLE = 'parameter_defaults', 'RoleParametersDefault'
_PINNED = 'NovaComputeCpuDedicatedSet'

_PREFIX = 'ansible_'
_MEMORY = 'memtotal_mb'
#: The command "ansible" prints "HOST | SUCCESS => " before the JSON.
_HEADLINE = re.compile(r'^([^\s{|]+) \| [A-Z]+!? => (?=\{)', re.MULTILINE)


def machine(files: Sequence[str] = (), root: str | None = None,
            memory: Sequence[int] | None = None) -> values.Machine:
    """Read a machine.

    :param files: with facts, the best first; without any, ``/sys`` is read
    :param root: path of ``/sys`` or a copy; None reads none if there are files
    :param memory: MiB of each NUMA node, by number; overrides all files
    :raises MachineError: if facts cannot be read or are missing
    """
    sources = [load(path) for path in files]
    if root is not None or not files:
        sources.append(sysfs.read(root or sysfs.ROOT))
    merged = facts.merge(sources)
    if memory is not None:
        merged = facts.merge([facts.Facts(
            memory=_by_node(merged, memory)), merged])
    return facts.machine(merged)


def _by_node(machine_facts: facts.Facts,
             memory: Sequence[int]) -> Mapping[int, int]:
    """Assign memory to the NUMA nodes, in the order of their numbers."""
    nodes = sorted({cpu.node for cpu in machine_facts.cpus or ()}
                   | set(machine_facts.memory or ()))
    if len(nodes) != len(memory):
        raise values.MachineError(
            f'memory of {len(memory)} NUMA nodes is given, but it has '
            f'{len(nodes)}' + (
                ' with CPUs online; facts from when all were are needed'
                if machine_facts.offline else ''))
    return dict(zip(nodes, memory))


def load(path: str) -> facts.Facts:
    """Read a file, and recognize its kind by its content."""
    with files.naming(path, values.MachineError):
        if os.path.isdir(path):
            raise values.MachineError(
                'is a directory, not a file; --sys is for a copy of /sys')
        text = files.read(path).decode()
        for read_text in lscpu.read_text, _libvirt:
            if (known_facts := read_text(text)) is not None:
                return known_facts
        if _DEFAULTS in text or _OF_ROLE in text:
            return facts.Facts(role=_tripleo(text, path))
        for start, name in _FOR_PEOPLE:
            if start.match(text):
                raise values.MachineError(
                    f'is what "{name}" prints for people; give what '
                    f'"{facts.LSCPU}" prints')
        _expect_one(_HEADLINE.findall(text))
        data = _parse_json(_HEADLINE.sub('', text))
        for read in lscpu.read, _ironic, _ansible:
            if (known_facts := read(data)) is not None:
                return known_facts
        raise values.MachineError(
            'is JSON, but not from lscpu, Ironic (inspection) or Ansible '
            f'(facts); "{facts.LSCPU}" prints what is needed')


def _parse_json(text: str) -> ty.Any:
    try:
        try:
            data = files.parse_json(text.encode())
        except ValueError:
            changed = lscpu.BARE.sub(r'\1null', text)
            if changed == text:
                raise
            data = files.parse_json(changed.encode())
        files.check(data)
    except files.FileLimitError:
        raise
    except (ValueError, RecursionError) as exc:
        raise values.MachineError(
            f'is neither JSON nor output of "lscpu -p": {exc}; '
            f'"{facts.LSCPU}" prints what is needed') from exc
    return data


def _libvirt(text: str) -> facts.Facts | None:
    """Parse what ``virsh capabilities`` prints; None unless it is XML."""
    if text.lstrip()[:1] != '<':
        return None
    host = _host(text)
    cpus, offline, memory = [], {}, {}
    for cell in host.iterfind('topology/cells/cell'):
        node = facts.number(cell.get('id'), 'the id of a cell')
        memory[node] = _kib(cell.find('memory')) // 1024
        for cpu in cell.iterfind('cpus/cpu'):
            number = facts.number(cpu.get('id'), 'the id of a CPU')
            siblings = cpu.get('siblings')
            # libvirt knows nothing else about a CPU that is not online.
            if siblings is None:
                offline[number] = node
                continue
            cpus.append(facts.CPU(
                number=number, node=node,
                core=facts.core_of(facts.cpu_list(siblings)),
                socket=facts.number(cpu.get('socket_id'), 'socket_id')))
    # The smallest are those that are not huge.
    sizes = sorted(map(_page_size, host.iterfind('cpu/pages')))[1:]
    return facts.Facts(
        cpus=tuple(cpus), offline=offline,
        threads=max((len(cpu.core or ()) for cpu in cpus), default=None),
        memory=memory or None, page_sizes=frozenset(sizes) or None,
        vendor=facts.vendor(host.findtext('cpu/vendor') or ''))


def _host(text: str) -> ElementTree.Element:
    """Return the element of the host.

    Only a document type can define entities, or name other files.
    """
    if '<!DOCTYPE' in text:
        raise values.MachineError('has a document type, which virsh does not '
                                  'print')
    most = files.max_yaml_items()
    if text.count('<') > most:
        raise values.MachineError(str(files.beyond(f'{most} items')))
    try:
        root = ElementTree.fromstring(text)
    except (ElementTree.ParseError, ValueError) as exc:
        raise values.MachineError(f'is not XML: {exc}') from exc
    host = root.find('host')
    if root.tag != 'capabilities' or host is None:
        raise values.MachineError(
            'is XML, but not what "virsh capabilities" prints')
    return host


def _kib(element: ElementTree.Element | None) -> int:
    unit = _KIB.get('KiB' if element is None else element.get('unit', 'KiB'))
    if element is None or unit is None:
        raise values.MachineError('a cell has no memory in KiB')
    return unit * facts.number((element.text or '').strip(),
                               'the memory of a cell')


def _page_size(element: ElementTree.Element) -> int:
    return facts.number(element.get('size'), 'the size of pages') * _KIB.get(
        element.get('unit', 'KiB'), 1)


def _tripleo(text: str, path: str) -> values.TripleORole:
    """Parse the only role with pinned CPUs; InputError if it is not YAML."""
    from nfv_sched.ops.cloud.cloud_file import text as cloud_text
    data, _lines = cloud_text.parse(text, path)
    if isinstance(data, list):
        data = {_DEFAULTS: {str(each.get('name')): each.get(_OF_ROLE)
                            for each in data if isinstance(each, dict)}}
    usual = _part(data, _DEFAULTS) if isinstance(data, dict) else {}
    roles = {name: role for name, role in usual.items()
             if isinstance(role, dict) and _PINNED in role} or {
        name: role for name, role in usual.items() if isinstance(role, dict)
        and any(str(each).startswith('Ovs') for each in role)}
    # Those of a role go before those of all.
    parameters = {**usual, **dict(*roles.values())} if len(roles) < 2 else {}
    if not _text(parameters, _PINNED):
        raise values.MachineError(
            f'needs one role with {_PINNED}, not '
            f'{strings.some(roles) or "none"}')
    cpus = {function: facts.cpu_list(_text(parameters, name), name)
            for function, name in (
                ('guests', _PINNED), ('switch', 'OvsPmdCoreList'),
                ('shared', 'NovaComputeCpuSharedSet'))}
    return values.TripleORole(
        **cpus, switch_memory=_amounts(parameters, 'OvsDpdkSocketMemory'),
        platform_memory=sum(_amounts(parameters, 'NovaReservedHostMemory')))


def _text(parameters: Mapping[str, ty.Any], name: str) -> str:
    value = parameters.get(name)
    return ','.join(map(str, value)) if isinstance(value, list) else (
        '' if value is None else str(value))


def _amounts(parameters: Mapping[str, ty.Any], name: str) -> tuple[int, ...]:
    text = _text(parameters, name)
    return tuple([facts.number(part.strip(), name)
                  for part in text.split(',')]) if text else ()


def _ironic(data: ty.Any) -> facts.Facts | None:
    """Convert the data of an inspection; None if it is something else.

    The data come from ``openstack baremetal introspection data save`` or
    ``openstack baremetal node inventory save``.  The inspection collectors of
    ironic-python-agent must include ``numa-topology``.
    """
    if not isinstance(data, dict):
        return None
    inspection = next((
        {'inventory': data.get('inventory'), **part}
        for part in (data, *map(data.get, _FOLDERS))
        if isinstance(part, dict) and _TOPOLOGY in part), data)
    if inspection is data and not isinstance(data.get('inventory'), dict):
        return None
    if (topology := inspection.get(_TOPOLOGY)) is None:
        raise values.MachineError(
            f'there is no {_TOPOLOGY}: have Ironic inspect the node with the '
            'collector numa-topology (ipa-inspection-collectors)')
    if not isinstance(topology, dict) or not all(isinstance(
            topology.get(part, []), list) for part in _PARTS):
        raise values.MachineError(f'{_TOPOLOGY} is malformed')
    ram, cpus, nics = (topology.get(part, []) for part in _PARTS)
    processor = _part(_part(inspection, 'inventory'), 'cpu')
    flags = processor.get('flags')
    joined = _joins_cores(cpus, processor.get('socket_count'))
    return facts.Facts(
        cpus=None if joined else tuple(_ironic_cpus(cpus)),
        unusable=_JOINED if joined else None,
        # All are online in the system that inspects.
        offline=None if joined else {},
        memory={_number_in(entry, 'numa_node'):
                _number_in(entry, 'size_kb') // 1024
                for entry in ram},
        # The kernel has -1 for a NUMA node that it does not know.
        nics=tuple(values.NIC(name=str(entry['name']), node=(
            None if (node := _number_in(entry, 'numa_node')) < 0 else node))
            for entry in nics if isinstance(entry, dict) and (
                'name' in entry)),
        page_sizes=facts.page_sizes(map(str, flags)) if isinstance(
            flags, list) else None,
        vendor=facts.vendor(str(processor.get('model_name', ''))))


def _part(value: Mapping[str, ty.Any], name: str) -> Mapping[str, ty.Any]:
    part = value.get(name)
    return part if isinstance(part, dict) else {}


def _number_in(entry: ty.Any, name: str) -> int:
    value = entry.get(name) if isinstance(entry, dict) else None
    if type(value) is not int:
        raise values.MachineError(f'{_TOPOLOGY} has an entry without {name}')
    return value


def _joins_cores(entries: list, sockets: ty.Any) -> bool:
    cores = [entry for entry in entries if isinstance(entry, dict)
             and isinstance(entry.get('thread_siblings'), list)
             and len(entry['thread_siblings']) > 1]
    nodes = {_number_in(entry, 'numa_node') for entry in entries}
    return any(entry.get('cpu') == -1 for entry in cores) or bool(
        cores and isinstance(sockets, int) and sockets > len(nodes))


def _ironic_cpus(entries: list) -> Iterator[facts.CPU]:
    """Yield the logical CPUs of all cores.

    Sibling threads tell cores apart: Ironic's number of a core is unique only
    in its NUMA node.
    """
    for entry in entries:
        node = _number_in(entry, 'numa_node')
        siblings = entry.get('thread_siblings')
        if not isinstance(siblings, list) or not siblings or not all(
                type(cpu) is int for cpu in siblings):
            raise values.MachineError(
                f'{_TOPOLOGY} has a core without thread_siblings')
        core = facts.core_of(siblings)
        for cpu in siblings:
            yield facts.CPU(number=cpu, node=node, core=core)


def _expect_one(hosts: Sequence[str]) -> None:
    if len(hosts) > 1:
        raise values.MachineError(
            f'has the facts of {len(hosts)} hosts: {strings.some(hosts)}; '
            f'for one of them: "ansible {hosts[0]} -m setup > FILE"')


def _ansible(data: ty.Any) -> facts.Facts | None:
    """Convert what Ansible gathers (its module ``setup``); None if it is not.

    The facts of a host, or by host of one.  They have the total memory, the
    vendor of the CPUs and the names of the NICs, but neither NUMA nodes nor
    sibling threads nor the NUMA nodes of NICs.

    :raises MachineError: also if there are several hosts
    """
    if not isinstance(data, dict):
        return None
    if (ansible_facts := _unwrapped(data)) is None:
        hosts = {str(name): host_facts for name, each in data.items()
                 if (host_facts := _unwrapped(each))}
        _expect_one(list(hosts))
        ansible_facts = next(iter(hosts.values()), None)
    if ansible_facts is None:
        return None
    memory = ansible_facts.get(_MEMORY)
    if memory is not None and type(memory) is not int:
        raise values.MachineError(
            f'{_PREFIX}{_MEMORY} is {str(memory)[:40]!r}, not a number')
    processor = ansible_facts.get('processor')
    interfaces = ansible_facts.get('interfaces')
    return facts.Facts(
        total_memory=memory,
        vendor=facts.vendor(' '.join(map(str, processor)) if isinstance(
            processor, list) else ''),
        nics=tuple(_ansible_nics(ansible_facts, interfaces)) if isinstance(
            interfaces, list) else None)


def _unwrapped(data: ty.Any) -> Mapping[str, ty.Any] | None:
    """Return facts by their names without prefix; None if there are none."""
    if not isinstance(data, dict):
        return None
    inner = data.get('ansible_facts', data)
    if not isinstance(inner, dict):
        return None
    unwrapped = {str(name).removeprefix(_PREFIX): value
                 for name, value in inner.items()}
    return unwrapped if (
        'processor' in unwrapped or _MEMORY in unwrapped) else None


def _ansible_nics(ansible_facts: Mapping[str, ty.Any],
                  names: list) -> Iterator[values.NIC]:
    for name in names:
        # Ansible writes the name of a fact with underscores only.
        fact = ansible_facts.get(re.sub(r'\W', '_', str(name)))
        address = fact.get('pciid') if isinstance(fact, dict) else None
        if isinstance(address, str):
            yield values.NIC(name=str(name), address=address)
