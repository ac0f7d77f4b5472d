# SPDX-License-Identifier: Apache-2.0
"""Work out why a guest does not fit a host by Nova's own rules.

Slow, and called only when a reason is read.  No I/O, no Nova objects.
"""

from collections.abc import Sequence

from nfv_sched.numa import candidates
from nfv_sched.numa.evaluation import Evaluation
from nfv_sched.numa import fit
from nfv_sched.numa import pci
from nfv_sched import reasons
from nfv_sched import strings

PCI_DEVICES = 'PCI devices'

CAPACITY_TEXT = {
    fit.NO_PAGES: ('{} MiB in pages of the requested size', '{} MiB'),
    fit.NO_MEMORY: ('{} MiB of memory', '{} MiB'),
    fit.NO_DEDICATED: ('{} dedicated CPUs', '{}'),
    fit.NO_SHARED: ('{} shared CPUs', '{}'),
    fit.NO_THREADS: ('{} CPUs under the thread policy', '{}'),
    fit.NO_SHARED_ROOM: ('room for {} shared vCPUs', '{}'),
    fit.NO_MEMORY_ROOM: ('room for {} MiB of memory', '{} MiB'),
}


def capacity_reason(
    evaluation: Evaluation, policy: str = 'NUMA topology',
    within: int | None = None, order: int = reasons.CAPACITY,
    where: str = '', groups: Sequence[int] = (),
    devices: pci.CandidateDevices | None = None, pci_policy: str = PCI_DEVICES,
) -> reasons.Reason:
    """Return the first shortage of a guest: the amounts needed and free.

    :param policy: the policy that refuses the host, for the reason
    :param within: bitmask of the host cells that count; all if None
    :param order: ``order`` of the reason
    :param where: description of these host cells; begins with a space
    :param groups: host cells near each network of the request, as bitmasks
    :param devices: the PCI devices of the host; None if none are requested
    :param pci_policy: ``policy`` of the reason if devices are missing
    """
    host, guest = evaluation.host, evaluation.guest
    cells = len(guest.cells)
    within = host.all_cells if within is None else within
    if evaluation.too_few_cells:
        return reasons.Reason(
            order, policy, f'{strings.count(cells, "NUMA node")} needed',
            f'has {len(host.cells)}', len(host.cells))
    masks = [mask & within for mask in evaluation.masks]
    for number, (cell, mask) in enumerate(zip(guest.cells, masks)):
        if mask:
            continue
        reserved = 0 if number else guest.reserved
        best = max(
            (fit.shortage(host.cells[index], cell, reserved,
                          evaluation.ratios)
             for index in candidates.bits(within)),
            key=lambda item: (item[0], item[2]), default=None)
        if best is None or best[0] == fit.FITS:
            break
        need, have = CAPACITY_TEXT[best[0]]
        return reasons.Reason(
            order, policy,
            f'{need.format(best[1])} on one NUMA node{where} needed',
            f'{have.format(best[2])} free', best[2])
    union = 0
    for mask in masks:
        union |= mask
    count = union.bit_count()
    if count < cells:
        return reasons.Reason(
            order, policy,
            f'room for the guest on {strings.count(cells, "NUMA node")}{where}'
            ' needed', f'{count} have room', count)
    for group in groups:
        if not any(mask & group for mask in masks):
            # No guest cell fits a host cell near this network.
            return capacity_reason(
                evaluation, policy, within & group, order,
                f'{where} near the networks of the request')
    if devices is not None and candidates.feasible(masks, groups):
        reason = devices_reason(
            devices, masks, pci_policy if order == reasons.CAPACITY
            else policy, order, where)
        if reason is not None:
            return reason
    if candidates.feasible(masks):
        return reasons.Reason(
            order, policy,
            f'NUMA nodes{where} with room that are also near the networks '
            f'and PCI devices of the request needed', 'none', count)
    return reasons.Reason(
        order, policy, f'a NUMA node{where} for each guest NUMA node needed',
        'the guest NUMA nodes compete for the same', count)


def devices_reason(
    devices: pci.CandidateDevices, masks: Sequence[int], policy: str,
    order: int,
    where: str = '', local: bool = False,
) -> reasons.Reason | None:
    """Return the reason for the first PCI request with too few devices.

    :param masks: host cells that each guest cell fits, as bitmasks
    :param policy: the policy that refuses the host, for the reason
    :param order: ``order`` of the reason
    :param where: description of these host cells; begins with a space
    :param local: whether devices must be on the chosen host cells, whatever
        Nova's NUMA policy of the request is
    :returns: None if each request alone could be served
    """
    host_devices = devices.devices
    union = 0
    for mask in masks:
        union |= mask
    bits = candidates.bits(union)
    for number, demand in enumerate(host_devices.wanted):
        need = strings.count(demand.count, demand.noun)
        if not local and demand.policy == pci.PREFERRED:
            have = host_devices.free(number)
            if have < demand.count:
                return reasons.Reason(
                    order, policy, f'{need} needed', f'{have} free', have)
            continue
        free = sorted(
            (host_devices.free(number, host_devices.same_socket(1 << bit)
                               if demand.policy == pci.SOCKET and not local
                               else 1 << bit) for bit in bits), reverse=True)
        have = sum(free[:len(masks)])
        if demand.policy == pci.LEGACY and not local:
            have += host_devices.free_unknown(number)
        if have >= demand.count:
            continue
        nodes = 'one NUMA node' if len(masks) == 1 else (
            f'{len(masks)} NUMA nodes')
        there = ''
        if len(bits) == len(masks):
            numbers = ', '.join(map(str, host_devices.host.nodes(union)))
            there = (' on NUMA node ' if len(masks) == 1 else
                     ' on NUMA nodes ') + numbers
        return reasons.Reason(
            order, policy, f'{need} on {nodes}{where} with room needed',
            f'{have} free{there}', have)
    return None
