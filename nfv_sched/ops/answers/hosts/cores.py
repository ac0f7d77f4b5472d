# SPDX-License-Identifier: Apache-2.0
"""List the cores of a host NUMA node, their users, and what fits."""

from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses

from nfv_sched.base import cpu_spec
from nfv_sched.fit import occupancy
from nfv_sched.ops.answers.hosts import document
from nfv_sched.ops.cloud import occupied
from nfv_sched.ops.cloud import snapshot

#: A server, and one of its NUMA nodes that is on the host NUMA node.
Tenancy = tuple[document.ServerOnHost, snapshot.GuestNode]


def largest_fit(node: snapshot.Node) -> int:
    """Return the most pinned vCPUs of a server with one NUMA node."""
    # That is for a server without a thread policy whose page size is one with
    # free memory; without free memory it is 0.
    return len(node.free) if _has_memory(node) else 0


def _has_memory(node: snapshot.Node) -> bool:
    """Return True if the smallest server, with 1 MiB, has memory here."""
    if not node.pages:
        return node.memory > node.memory_used
    return any(pages.free * pages.size >= max(pages.size, 1024)
               for pages in node.pages)


def siblings(node: snapshot.Node,
             facts: Iterable[frozenset[int]] = ()) -> list[list[int]]:
    """Return the CPUs of each physical core, in order.

    :param facts: CPUs of each core by facts about the machine; without them
        only CPUs for servers are known
    """
    cpus = node.shared | node.dedicated
    cores = [*node.siblings,
             *(frozenset([cpu]) for cpu in cpus.difference(*node.siblings))]
    for core in facts:
        cpus |= core
        same = [each for each in cores if each & core]
        cores = [each for each in cores if not each & core]
        cores.append(core.union(*same))
    return sorted(filter(None, (sorted(core & cpus) for core in cores)))


def cores(node: snapshot.Node, tenancies: Sequence[Tenancy],
          facts: Iterable[frozenset[int]] = (),
          ) -> tuple[document.CoreUse, ...]:
    pinned, reserved = _users(tenancies)
    occupied_cpus = occupancy.total(occupied.shares(
        [node], [part for _server, part in tenancies])).cpus
    return tuple([document.CoreUse(cpus=tuple([
        _cpu(node, cpu, pinned, reserved, cpu in occupied_cpus)
        for cpu in core])) for core in siblings(node, facts)])


def _users(tenancies: Iterable[Tenancy]) -> tuple[
        dict[int, list[document.CPUUser]], dict[int, list[document.CPUUser]]]:
    pinned: dict[int, list[document.CPUUser]] = {}
    reserved: dict[int, list[document.CPUUser]] = {}
    for server, part in tenancies:
        user = document.CPUUser(server=server.label,
                                server_id=server.server_id, vcpu=None)
        for vcpu, cpu in sorted(part.pins.items()):
            pinned.setdefault(cpu, []).append(
                dataclasses.replace(user, vcpu=vcpu))
        for cpu in part.reserved:
            reserved.setdefault(cpu, []).append(user)
    return pinned, reserved


def _cpu(node: snapshot.Node, cpu: int,
         pinned: Mapping[int, list[document.CPUUser]],
         reserved: Mapping[int, list[document.CPUUser]],
         is_taken: bool) -> document.CPUUse:
    """Return the state and the users of a CPU.

    :param is_taken: a server occupies it, possibly just to keep it idle
    """
    users = tuple(pinned.get(cpu, [])) + tuple(reserved.get(cpu, []))
    cpu_states = document.CPUState
    if len(users) > 1:
        state = cpu_states.CONFLICT
    elif users:
        state = cpu_states.GUEST if cpu in pinned else cpu_states.EMULATOR
    elif cpu in node.pinned:
        state = cpu_states.IDLE if is_taken else cpu_states.UNKNOWN
    elif cpu in node.dedicated:
        state = cpu_states.FREE
    elif cpu in node.shared:
        state = cpu_states.SHARED
    else:
        state = cpu_states.OTHER
    return document.CPUUse(cpu=cpu, state=state, users=users)


def problems(node: snapshot.Node,
             tenancies: Sequence[Tenancy]) -> list[str]:
    """Return contradictions between records of a NUMA node and its servers."""
    pinned, reserved = _users(tenancies)
    uses = [cpu for core in cores(node, tenancies) for cpu in core.cpus]
    where = f'node {node.number}'
    notes = []
    for state, text in (
            (document.CPUState.UNKNOWN,
             'taken by a server that is not known, such as one that is being '
             'moved'),
            (document.CPUState.CONFLICT, 'taken by several servers')):
        cpus = [each.cpu for each in uses if each.state is state]
        if cpus:
            notes.append(f'{where}: CPU {cpu_spec.to_text(cpus)} {text}')
    used_cpus = pinned.keys() | reserved.keys()
    free = used_cpus & node.free
    if free:
        notes.append(f'{where}: CPU {cpu_spec.to_text(free)} of a server, but '
                     'free by the record of the host')
    beyond = used_cpus - node.dedicated
    if beyond:
        notes.append(f'{where}: CPU {cpu_spec.to_text(beyond)} of a server, '
                     'but not for pinned servers here')
    return notes
