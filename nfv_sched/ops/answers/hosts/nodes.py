# SPDX-License-Identifier: Apache-2.0
"""List the cores and PCI devices of a host NUMA node, and their users.

Nova reports CPUs for servers.  CPUs of the platform or the virtual switch, in
none of its sets, are known only from facts about the machine.
"""

import collections
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from nfv_sched.base import cpu_spec
from nfv_sched.fit import occupancy
from nfv_sched.ops.answers.hosts import document
from nfv_sched.ops.answers.machine import values
from nfv_sched.ops.cloud import occupied
from nfv_sched.ops.cloud import snapshot

#: A server, and one of its NUMA nodes that is on the host NUMA node.
Tenancy = tuple[document.ServerOnHost, snapshot.GuestNode]

_KINDS = {'type-VF': 'VF', 'type-PF': 'PF', 'type-PCI': 'PCI', 'vdpa': 'vDPA'}
_USED = ('claimed', 'allocated')


def largest_fit(node: snapshot.Node) -> int:
    """Return the most pinned vCPUs of a server with one NUMA node.

    That is for a server without a thread policy whose page size is one with
    free memory; without memory for the smallest one, of 1 MiB, it is 0.
    """
    if node.pages:
        has_memory = any(pages.free * pages.size >= max(pages.size, 1024)
                         for pages in node.pages)
    else:
        has_memory = node.memory > node.memory_used
    return len(node.free) if has_memory else 0


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
          machine: values.Machine | None = None,
          ) -> tuple[document.CoreUse, ...]:
    """Return the physical cores of a node; facts may have further CPUs."""
    users = _users(tenancies)
    occupied_cpus = occupancy.total(occupied.shares(
        [node], [part for _server, part in tenancies])).cpus
    facts = () if machine is None else [
        frozenset(core.cpus) for each in machine.nodes
        if each.number == node.number for core in each.cores]
    return tuple([document.CoreUse(cpus=tuple([
        document.CPUUse(
            cpu=cpu, users=tuple(users[cpu]),
            state=_state(node, cpu, users[cpu], cpu in occupied_cpus))
        for cpu in core])) for core in siblings(node, facts)])


def _users(tenancies: Iterable[Tenancy],
           ) -> collections.defaultdict[int, list[document.CPUUser]]:
    """Return the users of each CPU: first those of vCPUs."""
    uses: list[tuple[int, document.ServerOnHost, int | None]] = [
        (cpu, server, vcpu) for server, part in tenancies
        for vcpu, cpu in sorted(part.pins.items())]
    uses += [(cpu, server, None) for server, part in tenancies
             for cpu in part.reserved]
    users = collections.defaultdict(list)
    for cpu, server, vcpu in uses:
        users[cpu].append(document.CPUUser(
            server=server.label, server_id=server.server_id, vcpu=vcpu))
    return users


def _state(node: snapshot.Node, cpu: int, users: Sequence[document.CPUUser],
           is_taken: bool) -> document.CPUState:
    """Return the state; ``is_taken`` is true also if it is kept idle."""
    states = document.CPUState
    if len(users) > 1:
        return states.CONFLICT
    if users:
        return states.EMULATOR if users[0].vcpu is None else states.GUEST
    if cpu in node.pinned:
        return states.IDLE if is_taken else states.UNKNOWN
    if cpu in node.dedicated:
        return states.FREE
    return states.SHARED if cpu in node.shared else states.OTHER


def problems(node: snapshot.Node,
             tenancies: Sequence[Tenancy]) -> Iterator[str]:
    used = _users(tenancies).keys()
    uses = [cpu for core in cores(node, tenancies) for cpu in core.cpus]
    states = document.CPUState
    for cpus, text in (
            ([each.cpu for each in uses if each.state is states.UNKNOWN],
             'taken by a server that is not known, such as one that is being '
             'moved'),
            ([each.cpu for each in uses if each.state is states.CONFLICT],
             'taken by several servers'),
            (used & node.free,
             'of a server, but free by the record of the host'),
            (used - node.dedicated,
             'of a server, but not for pinned servers here')):
        if cpus:
            yield f'node {node.number}: CPU {cpu_spec.to_text(cpus)} {text}'


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
        if gone := cpus - places.keys() - machine.offline.keys():
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


def devices(
    reported: Collection[snapshot.Device], labels: Mapping[str, str],
) -> dict[int | None, tuple[document.DevicesOfNIC, ...]]:
    """Return PCI devices by NUMA node, grouped by PF or else by product.

    Removed devices do not count, nor does a PF whose VFs are in use instead.

    :param labels: UUID of a server -> its label
    """
    parents = {device.parent for device in reported}
    groups: dict[int | None, dict[tuple[str, str], list[snapshot.Device]]] = {}
    for device in reported:
        if device.status not in occupied.GONE:
            groups.setdefault(device.node, {}).setdefault(
                _name_and_kind(device), []).append(device)
    return {
        node: tuple(
            _group(name, kind, members, labels)
            for (name, kind), members in sorted(of_node.items())
            if not (len(members) == 1 and members[0].kind == 'type-PF'
                    and members[0].address in parents
                    and members[0].status not in ('available', *_USED)))
        for node, of_node in groups.items()}


def _name_and_kind(device: snapshot.Device) -> tuple[str, str]:
    kind = _KINDS.get(device.kind, device.kind)
    product = f'{device.vendor}:{device.product}'
    if device.kind == 'type-PF':
        return device.address, kind
    if device.kind == 'type-PCI':
        return product, kind
    return device.parent or product, kind


def _group(name: str, kind: str, members: Sequence[snapshot.Device],
           labels: Mapping[str, str]) -> document.DevicesOfNIC:
    servers = {device.server for device in members if device.status in _USED}
    names = sorted(labels[server] for server in servers if server in labels)
    if len(servers) > len(names):
        names.append(document.CPUState.UNKNOWN)
    return document.DevicesOfNIC(
        name=name, kind=kind, total=len(members),
        free=sum(device.status == 'available' for device in members),
        used=sum(device.status in _USED for device in members),
        servers=tuple(names))
