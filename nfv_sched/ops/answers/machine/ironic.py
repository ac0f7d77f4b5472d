# SPDX-License-Identifier: Apache-2.0
"""Read the data of an inspection by Ironic.

The data come from ``openstack baremetal introspection data save`` or
``openstack baremetal node inventory save``.  The inspection collectors of
ironic-python-agent must include ``numa-topology``.
"""

from collections.abc import Mapping
import typing as ty

from nfv_sched.ops.answers.machine import facts
from nfv_sched.ops.answers.machine import values

_TOPOLOGY = 'numa_topology'
#: Keys under which older and newer releases nest it, if they do.
_FOLDERS = ('data', 'plugin_data')
_PARTS = ('ram', 'cpus', 'nics')
_JOINED = ('Ironic takes CPUs of one NUMA node whose cores have the same '
           'number, in several sockets or unknown (-1), for one core')


def read(data: ty.Any) -> facts.Facts | None:
    """Convert the data of an inspection; None if it is something else."""
    if not isinstance(data, dict):
        return None
    inspection = next((
        {'inventory': data.get('inventory'), **part}
        for part in (data, *map(data.get, _FOLDERS))
        if isinstance(part, dict) and _TOPOLOGY in part), data)
    if inspection is data and not isinstance(data.get('inventory'), dict):
        return None
    topology = inspection.get(_TOPOLOGY)
    if topology is None:
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
        cpus=None if joined else tuple(_cpus(cpus)),
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
        raise values.MachineError(
            f'{_TOPOLOGY} has an entry without {name}')
    return value


def _joins_cores(entries: list, sockets: ty.Any) -> bool:
    """Return whether entries may stand for several cores each."""
    cores = [entry for entry in entries if isinstance(entry, dict)
             and isinstance(entry.get('thread_siblings'), list)
             and len(entry['thread_siblings']) > 1]
    nodes = {_number_in(entry, 'numa_node') for entry in entries}
    return any(entry.get('cpu') == -1 for entry in cores) or bool(
        cores and isinstance(sockets, int) and sockets > len(nodes))


def _cpus(entries: list):
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
