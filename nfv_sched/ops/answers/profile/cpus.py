# SPDX-License-Identifier: Apache-2.0
"""Assign a function to each CPU.

Functions get whole cores, those with the lowest CPUs first, so that sibling
threads stay together: platform, virtual switch, Ceph OSDs, shared vCPUs, and
the rest for pinned servers.  A TripleO role has its own lists.
"""

import collections
from collections.abc import Mapping, Sequence
import itertools
import math

from nfv_sched.base import cpu_spec
from nfv_sched.base import strings
from nfv_sched.ops.answers.machine import values
from nfv_sched.ops.answers.profile import ceph as ceph_plan
from nfv_sched.ops.answers.profile import choices

PLATFORM = 'platform'
SWITCH = 'switch'
CEPH = 'ceph'
SHARED = 'shared'
GUESTS = 'guests'
#: All functions, in the order in which they get their cores.
FUNCTIONS = (PLATFORM, SWITCH, CEPH, SHARED, GUESTS)

#: NUMA node -> function -> its CPUs.
Assignment = Mapping[int, Mapping[str, tuple[int, ...]]]


def nodes_of(assignment: Assignment, function: str) -> list[int]:
    return [node for node, cpus in assignment.items() if cpus[function]]


def cpus_of(assignment: Assignment, function: str) -> tuple[int, ...]:
    return tuple(sorted(cpu for cpus in assignment.values()
                        for cpu in cpus[function]))


def nics(machine: values.Machine,
         chosen: choices.Choices) -> dict[str, values.NIC]:
    """Return the chosen NICs by the names or addresses that chose them."""
    # If several have a name, the first one counts.
    nics = {name: nic for nic in reversed(machine.nics)
            for name in (nic.name, nic.address)}
    names = [nic.name for nic in (*chosen.switch_nics, *chosen.sriov_nics)]
    for name in names:
        if name not in nics:
            raise choices.ProfileError(_no_nic(name, machine))
    if len({nics[nic.name] for nic in chosen.sriov_nics}) < len(
            chosen.sriov_nics):
        raise choices.ProfileError('--sriov-nic names a NIC twice')
    return {name: nics[name] for name in names}


def _no_nic(name: str, machine: values.Machine) -> str:
    if machine.nics:
        return (f'there is no NIC {name}; there are: '
                f'{", ".join(nic.name for nic in machine.nics)}')
    return ('the facts have no NICs: add --facts with the inspection data of '
            'Ironic, or --sys with a copy of /sys of the machine; or, in '
            'place of --vswitch-nic, give --vswitch-cores NODE:N with the '
            f'NODE that "cat /sys/class/net/{name}/device/numa_node" prints, '
            'and add the physical network beside the labels yourself')


def switch_cores(machine: values.Machine,
                 chosen: choices.Choices) -> dict[int, int]:
    """Return the number of cores for the virtual switch by NUMA node.

    A single number applies to each NUMA node with a NIC of the switch, or to
    the first node if no NIC is named, as in the carrier-grade guide.  Where
    the platform has a core on every node, so has the switch: TripleO's rule.

    :raises ProfileError: if the switch cannot be on a chosen node
    """
    usable = [node.number for node in machine.usable]
    if (cores := chosen.switch_cores) is None:
        cores = 0 if chosen.layout == choices.FLOATING else 2
    if isinstance(cores, Mapping):
        for node in cores:
            if node not in usable:
                raise choices.ProfileError(
                    f'the switch cannot be on NUMA node {node}: nodes with '
                    f'CPUs and memory are {", ".join(map(str, usable))}')
        return {node: count for node, count in sorted(cores.items()) if count}
    if not cores:
        return {}
    near = nics(machine, chosen)
    nodes = {near[nic.name].node for nic in chosen.switch_nics} & set(usable)
    cores_by_node = {node: cores for node in sorted(nodes or usable[:1])}
    if chosen.layout == choices.EVERY_NODE:
        cores_by_node = {node: cores_by_node.get(node, 1) for node in usable}
    return cores_by_node


def _as_in(role: values.TripleORole, machine: values.Machine) -> Assignment:
    lists = {SWITCH: role.switch, SHARED: role.shared, GUESTS: role.guests}
    counts = collections.Counter(itertools.chain(*lists.values()))
    if wrong := {cpu for cpu, count in counts.items()
                 if count > 1 or cpu not in machine.cpus}:
        raise choices.ProfileError(
            f'CPU {cpu_spec.to_text(wrong)} of the TripleO role is in two '
            'lists, or not online here')
    if not (platform := machine.cpus - counts.keys() or role.shared):
        raise choices.ProfileError('the TripleO role leaves the host no CPU')
    lists |= {PLATFORM: platform, CEPH: frozenset()}
    return {node.number: {
        function: tuple(sorted(node.cpus & lists[function]))
        for function in FUNCTIONS} for node in machine.nodes}


def assign(machine: values.Machine, chosen: choices.Choices) -> Assignment:
    if not (usable := [node.number for node in machine.usable]):
        raise choices.ProfileError('no NUMA node has both CPUs and memory')
    if machine.role is not None:
        return _as_in(machine.role, machine)
    free_cores = {node.number: list(node.cores) for node in machine.nodes}
    threads = {node.number: max((len(core.cpus) for core in node.cores),
                                default=1) for node in machine.nodes}
    assigned: dict[int, dict[str, tuple[int, ...]]] = {
        node: dict.fromkeys(FUNCTIONS, ()) for node in free_cores}

    def give(function: str, node: int, count: int) -> None:
        if count > len(free_cores[node]):
            raise choices.ProfileError(
                f'NUMA node {node} has '
                f'{strings.count(len(free_cores[node]), "core")} left, '
                f'but {count} wanted for: {function}')
        assigned[node][function] = tuple(sorted((
            *assigned[node][function],
            *(cpu for core in free_cores[node][:count] for cpu in core.cpus))))
        del free_cores[node][:count]

    if chosen.layout != choices.FLOATING:
        # CPUs on a node without memory are far from all memory.
        for node in set(free_cores) - set(usable):
            give(PLATFORM, node, len(free_cores[node]))
        for node in usable[:1] if chosen.layout == choices.HCG else usable:
            give(PLATFORM, node, 1)
    for node, count in switch_cores(machine, chosen).items():
        give(SWITCH, node, count)
    if chosen.layout == choices.FLOATING:
        for node in free_cores:
            give(SHARED, node, len(free_cores[node]))
    else:
        per_osd = ceph_plan.vcpus_per_osd(chosen)
        for node, count in osds(machine, chosen).items():
            give(CEPH, node, _cores_with(
                per_osd * count, free_cores[node], threads[node]))
        if chosen.shared:
            for node in usable:
                give(SHARED, node, 1)
        for node in usable:
            give(GUESTS, node, len(free_cores[node]))
    if not nodes_of(assigned, SHARED if chosen.layout == choices.FLOATING
                    else GUESTS):
        raise choices.ProfileError('no CPU is left for servers')
    return assigned


def _cores_with(cpus: int, cores: Sequence[values.Core], threads: int) -> int:
    """Return the number of cores that have at least ``cpus`` CPUs.

    :param threads: CPUs of each further core, if there are too few
    """
    count = 0
    for core in cores:
        if cpus <= 0:
            return count
        cpus -= len(core.cpus)
        count += 1
    return count + max(math.ceil(cpus / threads), 0)


def osds(machine: values.Machine, chosen: choices.Choices) -> dict[int, int]:
    """Return the OSDs on each NUMA node: on a chosen one, or spread evenly."""
    usable = [node.number for node in machine.usable]
    nodes = usable if chosen.ceph_node is None else [chosen.ceph_node]
    if not set(nodes) <= set(usable):
        raise choices.ProfileError(
            f'the OSDs cannot be on NUMA node {chosen.ceph_node}: nodes with '
            f'CPUs and memory are {", ".join(map(str, usable))}')
    part, more = divmod(chosen.osd_count, len(nodes))
    return {node: part + (number < more) for number, node in enumerate(nodes)}
