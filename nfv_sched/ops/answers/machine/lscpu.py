# SPDX-License-Identifier: Apache-2.0
"""Read the output of ``lscpu``, as JSON or as ``-p`` prints it.

Only the lists of CPUs, ``lscpu -J -e`` or ``lscpu -p`` with the columns CPU,
NODE, SOCKET, CORE, CACHE and ONLINE, show which CPUs are sibling threads.  The
summary, ``lscpu -J``, is enough if each core has one thread, and has the CPU
flags.  ``lscpu`` prints neither memory nor NICs.
"""

from collections.abc import Iterator, Mapping, Sequence
import re
import typing as ty

from nfv_sched.ops.answers.machine import facts
from nfv_sched.ops.answers.machine import values

_NODE_CPUS = re.compile(r'NUMA node(\d{1,5}) CPU\(s\)')
#: Columns that together identify a core, where its number is unique.
_CORE = ('drawer', 'book', 'socket', 'cluster', 'core')
_FIRST_CACHES = ('l1d', 'l1')
#: NOTE: util-linux before 2.41 prints this for an empty cell of a number: that
#: of an offline CPU, or the node of a kernel without NUMA (its issue 3430).
BARE = re.compile(r'(":\s*)-(?=\s*[,}\]])')


def read_text(text: str) -> facts.Facts | None:
    """Parse output of ``lscpu -p``; None if it is something else."""
    lines = text.splitlines()
    # The names of the columns are in the last comment.
    titles = next((line for line in reversed(lines) if line[:1] == '#'), '')
    columns = titles[1:].strip().lower().split(',')
    if not text.startswith('#') or 'cpu' not in columns:
        return None
    rows = []
    for line in lines:
        if line and not line.startswith('#'):
            cells = line.split(',')
            if len(cells) != len(columns):
                raise values.MachineError(
                    f'{line[:40]!r} has not the columns {",".join(columns)}')
            rows.append(dict(zip(columns, cells)))
    # Without -a it prints only those that are online.
    return _facts(rows, lists_offline=False)


def read(data: ty.Any) -> facts.Facts | None:
    """Convert output of ``lscpu -J``, also with ``-e``; None for another."""
    if not isinstance(data, dict):
        return None
    rows = data.get('cpus')
    if isinstance(rows, list):
        if not all(isinstance(row, dict) for row in rows):
            raise values.MachineError('"cpus" is not a list of CPUs')
        return _facts([{str(name).lower(): cell for name, cell in row.items()}
                       for row in rows], lists_offline=True)
    entries = data.get('lscpu')
    return _summary(entries) if isinstance(entries, list) else None


def _facts(rows: Sequence[Mapping[str, ty.Any]],
           lists_offline: bool) -> facts.Facts:
    if not rows:
        raise values.MachineError('there is no CPU')
    if any('cpu' not in row or 'core' not in row for row in rows):
        raise values.MachineError(
            'the columns CPU and CORE are needed, by which sibling threads '
            f'are known: {facts.LSCPU}')
    # A socket may have several NUMA nodes.
    if 'node' not in rows[0]:
        raise values.MachineError(f'the column NODE is needed: {facts.LSCPU}')
    online, offline = {}, []
    for row in rows:
        if (number := _cell_number(row['cpu'])) is None:
            raise values.MachineError(f'{row["cpu"]!r} is not a CPU')
        if number in online:
            raise values.MachineError(f'CPU {number} is there twice')
        # lscpu knows nothing else about a CPU that is not online.
        if _is_off(row):
            offline.append(number)
        else:
            online[number] = row
    nodes = facts.nodes({number: _cell_number(row.get('node'))
                         for number, row in online.items()})
    return facts.Facts(
        cpus=tuple([facts.CPU(
            number=number, node=nodes[number],
            core=None if _cell_number(row['core']) is None else tuple(
                _cell_number(row.get(name)) for name in _CORE),
            socket=_cell_number(row.get('socket')), cache=_first_cache(row))
            for number, row in online.items()]),
        offline=dict.fromkeys(offline) if offline or lists_offline else None)


def _first_cache(row: Mapping[str, ty.Any]) -> int | None:
    """Return the number of the first-level cache of a CPU; None if unknown.

    ``-e`` has one column for all caches, such as "L1d:L1i:L2:L3", ``-p`` one
    for each.
    """
    for name, cell in row.items():
        for level, number in zip(name.split(':'), str(cell).split(':')):
            if level in _FIRST_CACHES and cell is not None:
                return _cell_number(number)
    return None


def _is_off(row: Mapping[str, ty.Any]) -> bool:
    online = row.get('online')
    if online is None or online == '':
        return _cell_number(row['core']) is None
    return str(online).lower() in ('false', 'no', 'n')


def _cell_number(cell: ty.Any) -> int | None:
    # The kernel has -1 for a core or a NUMA node that it does not know.
    if cell in (None, '', '-', -1, '-1'):
        return None
    return cell if type(cell) is int else facts.number(cell, 'a cell')


def _summary(entries: list) -> facts.Facts:
    """Convert a summary.

    The facts have no CPUs if a core has several threads, as the summary does
    not show which CPUs are siblings.
    """
    fields = dict(_fields(entries))
    flags = fields.get('Flags', '').split()
    nodes = {int(match[1]): facts.cpu_list(text) for match, text in (
        (_NODE_CPUS.fullmatch(name), text) for name, text in fields.items())
        if match and text}
    cpus = None
    threads = fields.get('Thread(s) per core', '')
    if threads == '1':
        if not nodes:
            nodes = {0: facts.cpu_list(fields.get('On-line CPU(s) list', ''))}
        cpus = tuple(facts.CPU(number=cpu, node=node, core=(cpu,))
                     for node, numbers in sorted(nodes.items())
                     for cpu in sorted(numbers))
    return facts.Facts(
        cpus=cpus, threads=_cell_number(threads) or None,
        offline=dict.fromkeys(facts.cpu_list(
            fields.get('Off-line CPU(s) list', ''))),
        page_sizes=facts.page_sizes(flags),
        vendor=facts.vendor(fields.get('Vendor ID', '')))


def _fields(entries: ty.Any) -> Iterator[tuple[str, str]]:
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict):
            yield (str(entry.get('field', '')).removesuffix(':'),
                   str(entry.get('data') or ''))
            yield from _fields(entry.get('children'))
