# SPDX-License-Identifier: Apache-2.0
"""Work out why a guest does not fit a host by Nova's own rules.

Slow, and called only when a reason is read.  No I/O, no Nova objects.
"""

from collections.abc import Callable, Sequence
import functools
import operator

from nfv_sched.base import device_shortage
from nfv_sched.base.device_shortage import ShortageKind
from nfv_sched.base import reasons
from nfv_sched.base import strings
from nfv_sched.fit.numa import candidates
from nfv_sched.fit.numa.evaluation import Evaluation
from nfv_sched.fit.numa import fit
from nfv_sched.fit.numa import pci
from nfv_sched.fit.numa import pci_shortage
from nfv_sched.fit.numa import topology

PCI_DEVICES = 'PCI devices'

CAPACITY_TEXT = {
    fit.NO_PAGES: ('{} MiB in pages of {}', '{} MiB'),
    fit.NO_MEMORY: ('{} MiB of memory', '{} MiB'),
    fit.NO_DEDICATED: ('{} dedicated CPUs', '{}'),
    fit.NO_SHARED: ('{} shared CPUs', '{}'),
    fit.NO_THREADS: ('{} CPUs under the thread policy', '{}'),
    fit.NO_SHARED_ROOM: ('capacity for {} shared vCPUs', '{}'),
    fit.NO_MEMORY_ROOM: ('capacity for {} MiB of memory', '{} MiB'),
}


_RESOURCES = {
    fit.NO_PAGES: reasons.Resource.PAGES,
    fit.NO_MEMORY: reasons.Resource.MEMORY,
    fit.NO_DEDICATED: reasons.Resource.DEDICATED_CPUS,
    fit.NO_SHARED: reasons.Resource.SHARED_CPUS,
    fit.NO_THREADS: reasons.Resource.CPU_THREADS,
    fit.NO_SHARED_ROOM: reasons.Resource.SHARED_VCPUS,
    fit.NO_MEMORY_ROOM: reasons.Resource.MEMORY_RATIO,
}


def capacity_reason(
    evaluation: Evaluation, policy: str = 'NUMA topology',
    within: Sequence[int] | None = None, order: int = reasons.CAPACITY,
    places: Sequence[str] = (), groups: Sequence[int] = (),
    devices: pci.CandidateDevices | None = None, pci_policy: str = PCI_DEVICES,
) -> reasons.Reason:
    """Return the first shortage of a guest: the amounts needed and free.

    Only host cells that the guest could have if they were empty count.

    :param within: host cells that each guest cell may have, as bitmasks; all
        if None
    :param devices: the PCI devices of the host; None if none are requested
    :param pci_policy: ``policy`` of the reason if devices are missing
    """
    host, guest = evaluation.host, evaluation.guest
    cells = len(guest.cells)
    places = tuple(places)
    allowed = [host.all_cells] * cells if within is None else list(within)
    if (pages := page_reason(host, guest, order, policy)) is not None:
        return pages
    if evaluation.too_few_cells:
        return reasons.Reason(
            order, policy, f'{strings.count(cells, "NUMA node")} needed',
            f'has {len(host.cells)}', len(host.cells),
            shortage=_shortage(reasons.Resource.NUMA_NODES, cells,
                               len(host.cells), places))
    # Of several guest cells only one must be near each network, so no host
    # cell can be left out beforehand.
    if cells == 1:
        allowed[0], places = _chosen_from(
            evaluation, allowed[0], places, groups, devices)
    if not any(allowed):
        return no_node(order, policy, places)
    masks = [mask & cell for mask, cell in zip(evaluation.masks, allowed)]
    for number, (cell, mask) in enumerate(zip(guest.cells, masks)):
        if mask:
            continue
        reserved = 0 if number else guest.reserved
        lacks = [_lack(host.cells[index], cell, reserved, evaluation.ratios)
                 for index in candidates.bits(allowed[number])]
        if not lacks:
            break
        # About the cell that is nearest to fitting something can be done.
        _count, _missing, _code, best = min(lacks)
        if best[0] == fit.FITS:
            break
        need, have = CAPACITY_TEXT[best[0]]
        pages = cell.page_text if best[0] == fit.NO_PAGES else ''
        return reasons.Reason(
            order, policy, f'{need.format(best[1], pages)} on one NUMA node'
            f'{reasons.where(places)} needed', f'{have.format(best[2])} free',
            best[2], shortage=_shortage(
                _RESOURCES[best[0]], *best[1:], places, pages))
    count = functools.reduce(operator.or_, masks, 0).bit_count()
    there = _nodes(evaluation, places)
    if count < cells:
        return reasons.Reason(
            order, policy,
            f'needs {there} that {_capacity_clause(evaluation)}',
            f'{count} {"has" if count == 1 else "have"}', count,
            shortage=_shortage(reasons.Resource.NUMA_NODES, cells, count,
                               places)._replace(beside=_amounts(evaluation)))
    for group in groups:
        if not any(mask & group for mask in masks):
            # No guest cell fits a host cell near this network.
            return capacity_reason(
                evaluation, policy, [cell & group for cell in allowed],
                order, (*places, reasons.Place.NETWORKS))
    if devices is not None:
        reason = devices_reason(
            evaluation, devices, masks, pci_policy
            if order == reasons.CAPACITY else policy, order, places,
            groups=groups, empty=allowed)
        if reason is not None:
            return reason
    if candidates.feasible(masks):
        if not candidates.feasible(masks, groups):
            places = (*places, reasons.Place.NETWORKS)
        elif devices is not None:
            places = (*places, reasons.Place.DEVICES)
        return reasons.Reason(
            order, policy, f'needs {_nodes(evaluation, places)} that '
            f'{_capacity_clause(evaluation)}', 'none', count)
    return reasons.Reason(
        order, policy,
        f'a NUMA node{reasons.where(places)} for each guest NUMA node needed',
        'the guest NUMA nodes compete for the same', count)


def page_reason(host: topology.HostTopology, guest: topology.GuestTopology,
                order: int = reasons.CAPACITY,
                policy: str = 'NUMA topology') -> reasons.Reason | None:
    """Return the reason for pages that a host can never give a guest."""
    for cell in guest.cells:
        size = cell.pagesize or 0
        if any(fit.has_pages(each, cell) for each in host.cells):
            continue
        if size > 0 and cell.memory * 1024 % size:
            return reasons.Reason(
                reasons.REQUEST, 'page size',
                f'{cell.memory} MiB is not a multiple of '
                f'{strings.size(size)}: no host takes it')
        have = sorted({page.size_kb for each in host.cells
                       for page in each.pages if page.total_kb})
        return reasons.Reason(
            order, policy, f'pages of {cell.page_text} needed'
            if size > 0 else f'{cell.memory} MiB in pages of '
            f'{cell.page_text} needed',
            f'there are {", ".join(map(strings.size, have)) or "none"}',
            shortage=_shortage(reasons.Resource.PAGE_SIZE, cell.memory, 0, (),
                               cell.page_text))
    return None


def no_node(order: int, policy: str, places: Sequence[str]) -> reasons.Reason:
    return reasons.Reason(
        order, policy, f'needs a NUMA node{reasons.where(places)}', 'has none',
        shortage=_shortage(reasons.Resource.NUMA_NODES, 1, 0, places))


def _shortage(resource: reasons.Resource, needed: int, free: int,
              places: Sequence[str], noun: str = '') -> reasons.Shortage:
    return reasons.Shortage(reasons.Amount(resource, needed, noun), free,
                            tuple(places))


def _lack(host_cell: topology.HostCell, cell: topology.GuestCell,
          reserved: int,
          ratios: fit.Ratios) -> tuple[int, float, int, tuple[int, int, int]]:
    """Return what a guest cell lacks on a host cell, to be compared.

    :returns: number of resources of which there is too little (of memory and
        CPUs), missing part of the first, a number that is lower the later Nova
        checks it, and the first: see :func:`fit.shortage`
    """
    lack = code, needed, free = fit.shortage(host_cell, cell, reserved, ratios)
    count = 1
    # Nova stops at memory; a cell that lacks CPUs, too, is farther away.
    if code in (fit.NO_PAGES, fit.NO_MEMORY) and fit.check(
            host_cell, cell._replace(memory=0), None, reserved,
            ratios) != fit.FITS:
        count = 2
    return count, max(needed - free, 0) / (needed or 1), -code, lack


def near(masks: Sequence[int], groups: Sequence[int]) -> Sequence[int]:
    """Return masks without host cells that are not near the networks.

    Of several guest cells one near each network is enough: these are left.
    """
    if len(masks) > 1:
        return masks
    return [functools.reduce(operator.and_, groups, masks[0])]


def _chosen_from(
    evaluation: Evaluation, allowed: int, places: tuple[str, ...],
    groups: Sequence[int], devices: pci.CandidateDevices | None,
) -> tuple[int, tuple[str, ...]]:
    """Return the cells that networks and devices allow the only guest cell."""
    cells, = near([allowed], groups)
    if cells != allowed:
        places = (*places, reasons.Place.NETWORKS)
    if devices is None or evaluation.masks[0] & cells:
        return cells, places
    able = candidates.mask_of(
        index for index in candidates.bits(cells)
        if devices.accepts(1 << index))
    if able and able != cells:
        return able, (*places, reasons.Place.DEVICES)
    return cells, places


def devices_reason(
    evaluation: Evaluation, devices: pci.CandidateDevices,
    masks: Sequence[int], policy: str, order: int,
    places: Sequence[str] = (), local: bool = False,
    groups: Sequence[int] = (), empty: Sequence[int] | None = None,
) -> reasons.Reason | None:
    """Return why the PCI devices do not serve a guest on some host cells.

    For ``masks``, ``local``, ``groups`` and ``empty`` see
    :func:`pci_shortage.find`.

    :returns: None if they serve it, or that is not known
    """
    missing = pci_shortage.find(devices, masks, groups, local, empty)
    if missing is None or missing.kind is not ShortageKind.NUMA:
        return missing and reasons.devices_reason(missing, order, policy)
    cells = len(masks)
    nodes = 'one NUMA node' if cells == 1 else f'{cells} NUMA nodes'
    reason = reasons.devices_reason(
        missing, order, policy, f' on {nodes}{reasons.where(places)}', places)
    if missing.alone:
        return reason
    there = ''
    bits = candidates.bits(functools.reduce(operator.or_, masks))
    if len(bits) == cells:
        there = f' on NUMA {"node" if cells == 1 else "nodes"} ' + ', '.join(
            map(str, evaluation.host.nodes(candidates.mask_of(bits))))
    need = device_shortage.needs_text(
        missing.needs, 'free ') + device_shortage.policy_text(missing)
    return reason._replace(
        need=f'needs {_nodes(evaluation, places)} that '
        f'{_capacity_clause(evaluation, need)}',
        have=device_shortage.free_text(missing, there),
        shortage=reason.shortage._replace(beside=_amounts(evaluation)))


def _nodes(evaluation: Evaluation, places: Sequence[str]) -> str:
    cells = len(evaluation.guest.cells)
    nodes = 'a NUMA node' if cells == 1 else f'{cells} NUMA nodes'
    return f'{nodes}{reasons.where(places)}'


def _capacity_clause(evaluation: Evaluation, need: str = '') -> str:
    """Return what NUMA nodes must have for a guest, with the verb."""
    several = len(evaluation.guest.cells) > 1
    each = [_AMOUNT_TEXT[amount.resource](amount.needed)
            for amount in _amounts(evaluation)]
    if not each:
        each = ['capacity for the server']
    elif several:
        each[0] = f'each {each[0]}'
    *parts, last = [need, *each] if need else each
    return ('have ' if several else 'has ') + (
        f'{", ".join(parts)} and {last}' if parts else last)


_AMOUNT_TEXT: dict[reasons.Resource, Callable[[int], str]] = {
    reasons.Resource.DEDICATED_CPUS:
        lambda needed: strings.count(needed, 'free dedicated CPU'),
    reasons.Resource.SHARED_VCPUS:
        lambda needed: f'capacity for {strings.count(needed, "shared vCPU")}',
    reasons.Resource.PAGES: lambda needed: f'{needed} MiB in free pages',
}


def _amounts(evaluation: Evaluation) -> tuple[reasons.Amount, ...]:
    """Return CPUs and pages of each guest cell; nothing if they differ."""
    guest = evaluation.guest
    cell = guest.cells[0]
    if not evaluation.interchangeable and len(guest.cells) > 1:
        return ()
    amounts = (
        reasons.Amount(reasons.Resource.DEDICATED_CPUS, cell.dedicated and (
            cell.dedicated + guest.reserved)),
        reasons.Amount(reasons.Resource.SHARED_VCPUS, cell.shared),
        reasons.Amount(reasons.Resource.PAGES,
                       cell.memory if cell.pagesize else 0, cell.page_text))
    return tuple([amount for amount in amounts if amount.needed])
