# SPDX-License-Identifier: Apache-2.0
"""Read a machine from this host's /sys, or from files with facts."""

from collections.abc import Mapping
from collections.abc import Sequence
import os
import re
import typing as ty
import zlib

from nfv_sched.base import files
from nfv_sched.ops.answers.machine import ansible
from nfv_sched.ops.answers.machine import facts
from nfv_sched.ops.answers.machine import ironic
from nfv_sched.ops.answers.machine import libvirt
from nfv_sched.ops.answers.machine import lscpu
from nfv_sched.ops.answers.machine import sysfs
from nfv_sched.ops.answers.machine import values

#: What is easily taken for facts: how it begins, and the command.
_FOR_PEOPLE = tuple((re.compile(start), name) for start, name in (
    ('Architecture:', 'lscpu'), (r'CPU +[A-Z]', 'lscpu -e'),
    ('available: ', 'numactl -H'), ('CPU model:', 'virsh nodeinfo'),
    (r'processor\s*:', 'cat /proc/cpuinfo')))


def machine(files: Sequence[str] = (), root: str | None = None,
            memory: Sequence[int] | None = None) -> values.Machine:
    """Read a machine.

    :param files: paths of files with facts, the best first; if there are
        none, ``/sys`` is read
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
    try:
        return _load(path)
    except values.MachineError as exc:
        raise values.MachineError(f'{path}: {exc}') from exc


def _load(path: str) -> facts.Facts:
    """Read a file, and recognize its kind by its content."""
    try:
        if os.path.isdir(path):
            raise values.MachineError(
                'is a directory; give a copy of /sys with --sys')
        text = files.read(path).decode()
    except (files.FileLimitError, EOFError, zlib.error) as exc:
        raise values.MachineError(str(exc)) from exc
    except OSError as exc:
        raise values.MachineError(str(exc.strerror or exc)) from exc
    except ValueError as exc:
        raise values.MachineError('is not valid UTF-8') from exc
    for read_text in lscpu.read_text, libvirt.read:
        if (known_facts := read_text(text)) is not None:
            return known_facts
    for start, name in _FOR_PEOPLE:
        if start.match(text):
            raise values.MachineError(
                f'is what "{name}" prints for people; give what '
                f'"{facts.LSCPU}" prints')
    data = _parse_json(ansible.without_headline(text))
    for read in lscpu.read, ironic.read, ansible.read:
        if (known_facts := read(data)) is not None:
            return known_facts
    raise values.MachineError(
        'is JSON, but not from lscpu, Ironic (inspection) or Ansible (facts); '
        f'"{facts.LSCPU}" prints what is needed')


def _parse_json(text: str) -> ty.Any:
    try:
        try:
            data = files.parse_json(text.encode())
        except ValueError:
            changed = lscpu.quote_bare(text)
            if changed == text:
                raise
            data = files.parse_json(changed.encode())
        files.check(data)
    except files.FileLimitError as exc:
        raise values.MachineError(str(exc)) from exc
    except (ValueError, RecursionError) as exc:
        raise values.MachineError(
            f'is neither JSON nor output of "lscpu -p": {exc}; '
            f'"{facts.LSCPU}" prints what is needed') from exc
    return data
