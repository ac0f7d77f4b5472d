# SPDX-License-Identifier: Apache-2.0
"""Read the output of ``virsh capabilities``: the machine as Nova sees it."""

import typing as ty
from xml.etree import ElementTree

from nfv_sched.base import files
from nfv_sched.ops.answers.machine import facts
from nfv_sched.ops.answers.machine import values

_ROOT = 'capabilities'
_KIB = {'KiB': 1, 'MiB': 1 << 10, 'GiB': 1 << 20}


def read(text: str) -> facts.Facts | None:
    """Parse capabilities of a host; return None unless it is XML."""
    if text.lstrip()[:1] != '<':
        return None
    host = _parse(text)
    cpus, offline, memory = [], {}, {}
    for cell in host.iterfind('topology/cells/cell'):
        node = _number(cell.get('id'), 'the id of a cell')
        memory[node] = _kib(cell.find('memory')) // 1024
        for cpu in cell.iterfind('cpus/cpu'):
            number = _number(cpu.get('id'), 'the id of a CPU')
            siblings = cpu.get('siblings')
            # libvirt knows nothing else about a CPU that is not online.
            if siblings is None:
                offline[number] = node
                continue
            cpus.append(facts.CPU(
                number=number, node=node,
                core=facts.core_of(facts.cpu_list(siblings)),
                socket=_number(cpu.get('socket_id'), 'socket_id')))
    # The smallest are those that are not huge.
    sizes = sorted(map(_size, host.iterfind('cpu/pages')))[1:]
    return facts.Facts(
        cpus=tuple(cpus), offline=offline,
        threads=max((len(cpu.core or ()) for cpu in cpus), default=None),
        memory=memory or None, page_sizes=frozenset(sizes) or None,
        vendor=facts.vendor(host.findtext('cpu/vendor') or ''))


def _parse(text: str) -> ElementTree.Element:
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
    if root.tag != _ROOT or host is None:
        raise values.MachineError(
            'is XML, but not what "virsh capabilities" prints')
    return host


def _number(text: ty.Any, what: str) -> int:
    if isinstance(text, str) and text.isascii() and text.isdigit() and (
            len(text) < 20):
        return int(text)
    raise values.MachineError(f'{what} is {str(text)[:40]!r}, not a number')


def _kib(element: ElementTree.Element | None) -> int:
    unit = _KIB.get('KiB' if element is None else element.get('unit', 'KiB'))
    if element is None or unit is None:
        raise values.MachineError('a cell has no memory in KiB')
    return unit * _number((element.text or '').strip(), 'the memory of a cell')


def _size(element: ElementTree.Element) -> int:
    return _number(element.get('size'), 'the size of pages') * _KIB.get(
        element.get('unit', 'KiB'), 1)
