# SPDX-License-Identifier: Apache-2.0
"""Read the facts in ``/sys`` of this machine, or in a copy of one."""

from collections.abc import Iterator
import os
import re
import string

from nfv_sched.ops.answers.machine import facts
from nfv_sched.ops.answers.machine import values

ROOT = '/sys'

_NODE = re.compile(r'node(\d{1,5})')
_PAGES = re.compile(r'hugepages-(\d{1,12})kB')
_MEMORY = re.compile(r'MemTotal:\s*(\d{1,15}) kB')
# Vendor numbers of x86 CPUs in the kernel's modalias.
_VENDORS = {'0000': 'intel', '0002': 'amd'}
_VENDOR = re.compile(r'type:x86,ven([0-9A-F]{4})')
#: PCI base class of network controllers.
_NETWORK = '0x02'
_MOST = 1 << 20


def read(root: str = ROOT) -> facts.Facts:
    try:
        return _read_facts(root)
    except (OSError, UnicodeDecodeError) as exc:
        raise values.MachineError(
            f'{getattr(exc, "filename", None) or root}: '
            f'{getattr(exc, "strerror", None) or exc}') from exc


def _read_facts(root: str) -> facts.Facts:
    nodes = os.path.join(root, 'devices/system/node')
    cpus = os.path.join(root, 'devices/system/cpu')
    if not os.path.isdir(cpus):
        raise values.MachineError(f'{root} has no devices/system/cpu')
    numbers = sorted(int(match[1]) for match in map(
        _NODE.fullmatch, _names(nodes)) if match)
    online = _cpus(cpus, 'online')
    node_of: dict[int, int | None] = dict.fromkeys(sorted(online))
    memory = {}
    hugepages = [os.path.join(root, 'kernel/mm/hugepages')]
    for node in numbers:
        folder = os.path.join(nodes, f'node{node}')
        for cpu in sorted(_cpus(folder, 'cpulist') & online):
            if node_of[cpu] is not None:
                raise values.MachineError(
                    f'CPU {cpu} is in the NUMA nodes {node_of[cpu]} and '
                    f'{node}')
            node_of[cpu] = node
        if (match := _MEMORY.search(_text(folder, 'meminfo'))) is None:
            raise values.MachineError(f'{folder}/meminfo has no MemTotal')
        memory[node] = int(match[1]) // 1024
        hugepages.append(os.path.join(folder, 'hugepages'))
    online_cpus = tuple([
        _cpu(os.path.join(cpus, f'cpu{cpu}'), cpu, node)
        for cpu, node in facts.nodes(node_of).items()])
    vendor = _VENDOR.search(_optional_text(cpus, 'modalias') or '')
    return facts.Facts(
        cpus=online_cpus, offline={
            cpu: _node_of(os.path.join(cpus, f'cpu{cpu}'))
            for cpu in sorted(_cpus(cpus, 'present') - online)},
        governors={cpu: governor for cpu in sorted(online) if (
            governor := _optional_text(
                cpus, f'cpu{cpu}', 'cpufreq/scaling_governor'))},
        # The control is on also if one thread of each core is online.
        threads=max([
            2 if _optional_text(cpus, 'smt/control') == 'on' else 1,
            *(len(cpu.core or ()) for cpu in online_cpus)]),
        memory=memory or None, page_sizes=frozenset(
            int(match[1]) for folder in hugepages for match in map(
                _PAGES.fullmatch, _names(folder)) if match) or None,
        nics=tuple(_nics(os.path.join(root, 'bus/pci/devices'))),
        vendor=_VENDORS.get(vendor[1]) if vendor else None)


def _names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except FileNotFoundError:
        return []


def _text(*path: str) -> str:
    # A copy of /sys may contain a pipe that nobody writes to; do not hang.
    with open(os.path.join(*path), encoding='utf-8',
              opener=lambda name, flags: os.open(
                  name, flags | os.O_NONBLOCK)) as file:
        # Linux 5.15 ends some lists with a NUL.
        return file.read(_MOST).strip(f'\0{string.whitespace}')


def _optional_text(*path: str) -> str | None:
    try:
        return _text(*path)
    except OSError:
        return None


def _cpus(*path: str) -> frozenset[int]:
    return facts.cpu_list(_text(*path), os.path.join(*path))


def _cpu(folder: str, number: int, node: int) -> facts.CPU:
    folder = os.path.join(folder, 'topology')
    siblings = _cpus(folder, 'thread_siblings_list')
    if number not in siblings:
        raise values.MachineError(
            f'{folder}: CPU {number} is not among its own sibling threads')
    return facts.CPU(number=number, node=node, core=facts.core_of(siblings),
                     socket=_read_number(folder, 'physical_package_id'))


def _node_of(folder: str) -> int | None:
    # cpulist of a node has only those that are online; the link stays.
    return next((int(match[1]) for match in map(
        _NODE.fullmatch, _names(folder)) if match), None)


def _read_number(*path: str) -> int | None:
    """Read a number; None if it is negative, or there is no file."""
    try:
        number = int(_text(*path))
    except FileNotFoundError:
        return None
    except ValueError:
        raise values.MachineError(
            f'{os.path.join(*path)} is not a number') from None
    return None if number < 0 else number


def _nics(folder: str) -> Iterator[values.NIC]:
    """Yield the network controllers on PCI, without VFs.

    Controllers without an interface, as under a DPDK driver, are included.
    """
    for address in _names(folder):
        device = os.path.join(folder, address)
        if not _text(device, 'class').startswith(_NETWORK) or (
                os.path.exists(os.path.join(device, 'physfn'))):
            continue
        # Interfaces of virtio devices are one level deeper.
        interfaces = _names(os.path.join(device, 'net')) + [
            name for inner in _names(device) if inner.startswith('virtio')
            for name in _names(os.path.join(device, inner, 'net'))]
        for name in interfaces or [address]:
            yield values.NIC(
                name=name, address=address,
                node=_read_number(device, 'numa_node'),
                vfs=_read_number(device, 'sriov_numvfs'),
                most_vfs=_read_number(device, 'sriov_totalvfs'),
                vf_product=_optional_text(device, 'sriov_vf_device') or '')
