# SPDX-License-Identifier: Apache-2.0
"""Combine facts about the machine of a host with what Nova reports.

Nova reports CPUs for servers.  CPUs of the platform or the virtual switch, in
none of its sets, are known only from facts about the machine.
"""

from collections.abc import Iterator

from nfv_sched.base import cpu_spec
from nfv_sched.ops.answers.machine import values
from nfv_sched.ops.cloud import snapshot


def cores(machine: values.Machine | None,
          number: int) -> tuple[frozenset[int], ...]:
    if machine is None:
        return ()
    return tuple(frozenset(core.cpus) for node in machine.nodes
                 if node.number == number for core in node.cores)


def contradictions(host: snapshot.Host,
                   machine: values.Machine) -> Iterator[str]:
    """Yield what is impossible in the facts by what Nova reports, as phrases.

    Such facts are of another machine, or older than a change of this one.
    Offline CPUs do not contradict: Nova itself switches CPUs off where
    ``[libvirt] cpu_power_management`` is set.
    """
    places = {cpu: node.number for node in machine.nodes for cpu in node.cpus}
    of_core = {cpu: core.cpus for node in machine.nodes
               for core in node.cores for cpu in core.cpus}
    for node in host.nodes or ():
        cpus = node.shared | node.dedicated
        gone = cpus - places.keys() - machine.offline.keys()
        if gone:
            yield (f'CPU {cpu_spec.to_text(gone)} of node {node.number} '
                   'missing')
        for other in machine.nodes:
            moved = cpus & other.cpus
            if moved and other.number != node.number:
                yield (f'CPU {cpu_spec.to_text(moved)} on node '
                       f'{other.number} instead of {node.number}')
        both = of_core.keys() & frozenset().union(*node.siblings)
        other = [core for core in node.siblings if any(
            both.intersection(of_core[cpu]) != core & both
            for cpu in core & both)]
        if other:
            yield (f'CPU {cpu_spec.to_text(frozenset().union(*other))} of '
                   f'node {node.number} with other siblings')


def notes(host: snapshot.Host,
          machine: values.Machine | None) -> Iterator[str]:
    """Yield what the facts have that Nova's NUMA nodes have no place for."""
    if machine is None or host.nodes is None:
        return
    node_numbers = {node.number for node in host.nodes}
    for node in machine.nodes:
        if node.cores and node.number not in node_numbers:
            yield (f'CPU {cpu_spec.to_text(node.cpus)} on node '
                   f'{node.number}, which the host does not report, by the '
                   'facts about it')
