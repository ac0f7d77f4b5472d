# SPDX-License-Identifier: Apache-2.0
"""Share the memory of NUMA nodes between platform, switch and huge pages."""

from collections.abc import Mapping
from fractions import Fraction
import math

from nfv_sched.ops.answers.machine import values
from nfv_sched.ops.answers.profile import choices
from nfv_sched.ops.answers.profile import document

_GIB = 1024
_1G, _2M = choices.PAGE_SIZES['1G'], choices.PAGE_SIZES['2M']

#: MiB for the platform, and for each NUMA node, by the carrier-grade guide.
PLATFORM, PER_NODE = 6 * _GIB, 2 * _GIB
#: MiB for the whole host, by TripleO.
HOST = 4 * _GIB
#: MiB for a host of DHCP servers or routers: 40 for each of 100 networks.
NETWORK_NODE = 4000

#: Memory of the switch on each NUMA node, in MiB.
SWITCH = _GIB
# OVS-DPDK: each packet has a buffer of whole KiB plus this number of bytes.
_BUFFER_EXTRA = 800
_BUFFERS = 4096 * 64
_SWITCH_BASE = 512 * 2 ** 20


def socket_memory(mtus: frozenset[int]) -> int:
    """Return the memory of OVS-DPDK on a NUMA node of its NICs, in MiB.

    TripleO's formula: packet buffers for each distinct MTU plus 512 MiB,
    rounded up to whole GiB.  Without MTUs, the memory for other nodes.
    """
    if not mtus:
        return SWITCH
    size = sum(
        (math.ceil(mtu / 1024) * 1024 + _BUFFER_EXTRA) * _BUFFERS
        for mtu in mtus)
    return math.ceil((size + _SWITCH_BASE) / 2 ** 30) * _GIB


def platform_memory(machine: values.Machine,
                    chosen: choices.Choices) -> dict[int, int]:
    """Return the memory of the platform on each NUMA node, in MiB."""
    usable = [node.number for node in machine.usable]
    kept_memory = {node.number: 0 for node in machine.nodes}
    if chosen.layout == choices.EVERY_NODE:
        own = machine.role and machine.role.platform_memory
        kept_memory |= spread(own or HOST, dict.fromkeys(usable, 1))
    elif chosen.layout == choices.HCG or not (
            chosen.osd_count or chosen.guest_gb is not None):
        # Else the formula for hyper-converged hosts says what is needed.
        kept_memory |= {node: PER_NODE for node in usable}
        kept_memory[usable[0]] += PLATFORM
    if chosen.network_node:
        kept_memory[usable[0]] += NETWORK_NODE
    # Servers cannot be on such a node.
    for node in machine.nodes:
        if not node.usable:
            kept_memory[node.number] = node.memory
    return kept_memory


def spread(total: int, parts: Mapping[int, int]) -> dict[int, int]:
    """Split a number into whole parts by weight: node -> weight."""
    amounts, seen, distributed = {}, 0, 0
    for node, part in parts.items():
        seen += part
        amounts[node] = total * seen // sum(parts.values()) - distributed
        distributed += amounts[node]
    return amounts


def sizes(machine: values.Machine,
          chosen: choices.Choices) -> tuple[tuple[int, float], ...]:
    """Return (KiB, part of the memory for servers) for each huge page size."""
    if chosen.pages is not None:
        return tuple((size, part) for size, part in chosen.pages
                     if size != choices.SMALL)
    if chosen.layout == choices.FLOATING:
        return ()
    return ((usual_size(machine), 1.0),)


def usual_size(machine: values.Machine) -> int:
    """Return 1 GiB in KiB, or the next smaller size that a machine has."""
    if machine.page_sizes is None:
        return _1G
    return max((size for size in machine.page_sizes
                if size <= _1G and size in choices.PAGE_NAMES), default=_2M)


def share(machine: values.Machine, chosen: choices.Choices,
          kept_memory: Mapping[int, int],
          switch: Mapping[int, int],
          ) -> dict[int, tuple[document.ProfilePages, ...]]:
    """Return the huge pages of each NUMA node.

    ``kept_memory`` (of the platform) and ``switch`` are in MiB by node.

    :raises ProfileError: if a NUMA node has too little memory
    """
    page_shares = sizes(machine, chosen)
    # The switch uses pages of 1 GiB if it can, whatever servers use.
    switch_size = _1G if any(
        size == _1G for size, _part in page_shares) else usual_size(machine)
    for_switch = {node: math.ceil(mib * 1024 / switch_size)
                  for node, mib in switch.items() if mib}
    counts = {}
    for node in machine.nodes:
        own = switch.get(node.number, 0)
        free_memory = node.memory - kept_memory[node.number] - own
        if free_memory < 0:
            raise choices.ProfileError(
                f'NUMA node {node.number} has {node.memory} MiB of memory, '
                f'but {kept_memory[node.number]} MiB are kept and {own} MiB '
                'are for the switch')
        pages = {switch_size: for_switch.get(node.number, 0)}
        for size, part in page_shares if node.usable else ():
            pages[size] = pages.get(size, 0) + int(
                free_memory * 1024 * Fraction(str(part)) / size)
        counts[node.number] = pages
    if chosen.layout == choices.EVERY_NODE and sum(
            kept_memory[node.number] for node in machine.usable) == HOST and [
            size for size, _part in page_shares] == [_1G] == [switch_size]:
        most = {node.number: (node.memory - kept_memory[node.number]) // _GIB
                for node in machine.usable}
        total = tripleo_pages(
            sum(node.memory for node in machine.usable), page_shares[0][1])
        for node, count in _split_evenly(total, most).items():
            counts[node] = {_1G: max(count, for_switch.get(node, 0))}
    return {node: tuple([
        document.ProfilePages(size_kib=size, total=count, switch=switch,
                              servers=count - switch)
        for size, count in sorted(pages.items()) if count
        for switch in [for_switch.get(node, 0) if size == switch_size else 0]])
        for node, pages in counts.items()}


def _split_evenly(total: int, most: Mapping[int, int]) -> dict[int, int]:
    """Split a number over nodes, as the kernel does with huge pages."""
    counts = {}
    # Nodes with the lowest maximum first: the others get the rest.
    for position, node in enumerate(sorted(most, key=lambda each: (
            most[each], -each))):
        counts[node] = min(most[node], total // (len(most) - position))
        total -= counts[node]
    return dict(sorted(counts.items()))


def tripleo_pages(memory: int, part: float) -> int:
    """Return the 1 GiB pages that TripleO derived, the switch's included.

    :param memory: memory of the host in MiB
    :param part: part of it, minus 4 GiB, for huge pages
    """
    return max(int((Fraction(memory, _GIB) - 4) * Fraction(str(part))), 0)
