# SPDX-License-Identifier: Apache-2.0
"""List the cores of a host NUMA node, their users, and what fits."""

from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence

from nfv_sched.base import cpu_spec
from nfv_sched.fit import occupancy
from nfv_sched.ops.answers.hosts import values
from nfv_sched.ops.cloud import occupied
from nfv_sched.ops.cloud import snapshot

#: A server, and one of its NUMA nodes that is on the host NUMA node.
Tenancy = tuple[values.GuestView, snapshot.GuestNode]


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
          ) -> tuple[tuple[values.Thread, ...], ...]:
    """Return the threads of each core of a NUMA node.

    :param tenancies: servers with a NUMA node here
    :param facts: see :func:`siblings`
    """
    pinned, reserved = _owners(tenancies)
    occupied_cpus = occupancy.total(occupied.shares(
        [node], [part for _guest, part in tenancies])).cpus
    return tuple(
        tuple(_thread(node, cpu, pinned, reserved, cpu in occupied_cpus)
              for cpu in core)
        for core in siblings(node, facts))


def _owners(tenancies: Iterable[Tenancy]) -> tuple[
        dict[int, list[values.CPUOwner]], dict[int, list[values.CPUOwner]]]:
    """Return owners by CPU: of pinned vCPUs, and of emulator threads."""
    pinned: dict[int, list[values.CPUOwner]] = {}
    reserved: dict[int, list[values.CPUOwner]] = {}
    for guest, part in tenancies:
        for vcpu, cpu in sorted(part.pins.items()):
            pinned.setdefault(cpu, []).append(values.CPUOwner(
                guest=guest, vcpu=vcpu))
        for cpu in part.reserved:
            reserved.setdefault(cpu, []).append(values.CPUOwner(guest=guest))
    return pinned, reserved


def _thread(node: snapshot.Node, cpu: int,
            pinned: Mapping[int, list[values.CPUOwner]],
            reserved: Mapping[int, list[values.CPUOwner]],
            is_taken: bool) -> values.Thread:
    """Return the state and the owners of a CPU.

    :param is_taken: a server occupies it, possibly just to keep it idle
    """
    owners = tuple(pinned.get(cpu, [])) + tuple(reserved.get(cpu, []))
    cpu_states = values.CPUState
    if len(owners) > 1:
        state = cpu_states.CONFLICT
    elif owners:
        state = cpu_states.GUEST if cpu in pinned else cpu_states.EMULATOR
    elif cpu in node.pinned:
        state = cpu_states.IDLE if is_taken else cpu_states.UNKNOWN
    elif cpu in node.dedicated:
        state = cpu_states.FREE
    elif cpu in node.shared:
        state = cpu_states.SHARED
    else:
        state = cpu_states.OTHER
    return values.Thread(cpu=cpu, state=state, owners=owners)


def problems(node: snapshot.Node,
             tenancies: Sequence[Tenancy]) -> list[str]:
    """Return contradictions between the records of a host and its servers.

    They concern one NUMA node.
    """
    pinned, reserved = _owners(tenancies)
    threads = [thread for core in cores(node, tenancies) for thread in core]
    where = f'node {node.number}'
    notes = []
    for state, text in (
            (values.CPUState.UNKNOWN, 'taken by a server that is not known, '
                                      'such as one that is being moved'),
            (values.CPUState.CONFLICT, 'taken by several servers')):
        cpus = [thread.cpu for thread in threads if thread.state is state]
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
