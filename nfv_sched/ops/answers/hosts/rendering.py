# SPDX-License-Identifier: Apache-2.0
"""Describe hosts in words, for tables and maps."""

from collections.abc import Iterator
from collections.abc import Sequence

from nfv_sched.base import strings
from nfv_sched.ops.answers.hosts import memory
from nfv_sched.ops.answers.hosts import values
from nfv_sched.ops.cloud import snapshot

_MIB = 1024  # KiB
_PARTS = {1: '', 2: ' (half)', 3: ' (third)', 4: ' (quarter)'}


def page_size(size: int) -> str:
    """Return a page size in short form, such as ``2M``.

    :param size: KiB
    """
    for unit in ('K', 'M', 'G'):
        if size % 1024 or unit == 'G':
            return f'{size}{unit}'
        size //= 1024
    raise AssertionError


def is_small(size: int) -> bool:
    """Return True for small pages, which are counted in MiB.

    :param size: KiB
    """
    return size < _MIB


def page_column(size: int) -> str:
    """Return a title such as ``4K MiB`` or ``1G``; ``size`` is in KiB."""
    return page_size(size) + (' MiB' if is_small(size) else '')


def page_amounts(pages: snapshot.Pages) -> tuple[int, ...]:
    """Return used, usable and free pages of a NUMA node; small ones in MiB."""
    numbers = pages.used, pages.usable, pages.free
    if is_small(pages.size):
        numbers = tuple([number * pages.size // _MIB for number in numbers])
    return numbers


def page_cell(pages: snapshot.Pages) -> str:
    """Return used and usable pages of a NUMA node; small ones in MiB."""
    return '{}/{}'.format(*page_amounts(pages))


def small_pages(small: memory.SmallPages) -> str:
    """Describe the small pages of a host in a line."""
    text = (f'{small.floating} of {small.available} used by servers without '
            f'NUMA topology, {small.on_nodes} by others; {small.reserved} '
            'reserved')
    return text if small.free >= 0 else (
        f'{text}, {min(-small.free, small.reserved)} of it used')


def guest_on(guest: values.GuestView, view: values.NodeView) -> str:
    """Return the label of a server, with its part on a NUMA node."""
    of = view.part_of(guest).of
    return guest.label + _PARTS.get(of, f' (1 of {of} parts)')


def owner(owner: values.CPUOwner) -> str:
    """Describe the owner of a CPU and what it uses it for."""
    if owner.vcpu is None:
        return f'{owner.guest.label} emulator'
    return f'{owner.guest.label} vCPU {owner.vcpu}'


def thread(thread: values.Thread) -> str:
    """Describe a CPU by its owners, or else by its state."""
    owners = ' and '.join(map(owner, thread.owners))
    if thread.state is values.CPUState.CONFLICT:
        return f'conflict: {owners}'
    return owners or thread.state.value


def part(part: values.Part) -> str:
    """Describe the part of a server on a NUMA node."""
    counts = [f'{part.dedicated} pinned' if part.dedicated else '',
              f'{part.shared} shared' if part.shared else '']
    return f'node {part.node}: {", ".join(filter(None, counts)) or "memory"}'


def guest(guest: values.GuestView) -> str:
    """Describe a server in a line."""
    where = '; '.join(map(part, guest.parts)) or 'floats over the host'
    text = (f"{guest.label}: {strings.count(guest.vcpus, 'vCPU')}, "
            f"{guest.memory} MiB, {where}")
    if guest.state != 'active':
        text += f', {guest.state}'
    return text + ''.join(f', {reason}' for reason in guest.remote)


def pages(pages: snapshot.Pages) -> str:
    """Return used and usable pages of a NUMA node."""
    text = page_cell(pages).replace('/', ' of ')
    text += ' MiB used' if is_small(pages.size) else ' used'
    if pages.reserved:
        text += f', {pages.reserved} more reserved'
    return text


def devices(group: values.DeviceGroup) -> str:
    """Describe a group of devices in a line."""
    text = f'{group.kind} {group.name}, {group.used} of {group.total} used'
    if group.guests:
        text += f', used by {", ".join(group.guests)}'
    return text


def core_lines(
    cores: Sequence[Sequence[values.Thread]],
) -> Iterator[str]:
    """Yield a line for each core: its CPUs, and the owner of each."""
    numbers = [','.join(str(sibling.cpu) for sibling in core)
               for core in cores]
    width = max(map(len, numbers), default=0)
    for text, core in zip(numbers, cores):
        whose = [thread(sibling) for sibling in core]
        if len(set(whose)) == 1:
            whose = whose[:1]
        yield f'CPU {text:<{width}}  {", ".join(whose)}'
