# SPDX-License-Identifier: Apache-2.0
"""Count the small pages of a host: for the platform, NUMA guests and others.

A server without NUMA topology is on no NUMA node, so nova-compute records its
memory on none: only the sum over the host shows whether any is left.
"""

from collections.abc import Iterable

from nfv_sched.ops.answers.hosts import document
from nfv_sched.ops.cloud import occupied
from nfv_sched.ops.cloud import snapshot

_MIB = 1024  # KiB


def overuse(small: document.SmallPagesUse) -> str:
    ratio, available = max(small.ratio, 1.0), small.available_mib
    if small.used_without_nodes_mib <= available * ratio:
        return ''
    return (f'servers without NUMA topology use '
            f'{small.used_without_nodes_mib} MiB of small pages, '
            f'{limit_text(available, ratio)} MiB may be used beyond the '
            f'reserve of {small.reserved_mib} MiB')


def limit_text(amount: int, ratio: float) -> str:
    most = int(amount * ratio)
    return f'{most} ({ratio:g} x {amount})' if most != amount else str(most)


def small_pages(host: snapshot.Host,
                servers: Iterable[snapshot.Server], ratio: float = 1.0,
                ) -> document.SmallPagesUse | None:
    """Return the small pages of a host; None if it does not report any."""
    pages = [each for node in host.nodes or () for each in node.pages]
    size = min((each.size for each in pages), default=_MIB)
    if size >= _MIB:
        return None
    servers = list(servers)
    small = [each for each in pages if each.size == size]
    huge_reserved = sum(each.reserved * each.size // _MIB
                        for each in pages if each.size != size)
    total, on_nodes = _mib(small, 'total'), _mib(small, 'used')
    reserved = max(_mib(small, 'reserved'), occupied.reserved_memory(
        host, sum(server.flavor.memory for server in servers))
        - huge_reserved)
    floating = sum(server.flavor.memory for server in servers
                   if server.nodes is None)
    return document.SmallPagesUse(
        size_kib=size, total_mib=total, reserved_mib=reserved,
        used_on_nodes_mib=on_nodes, used_without_nodes_mib=floating,
        free_mib=total - reserved - on_nodes - floating, ratio=ratio)


def _mib(pages: Iterable[snapshot.Pages], field: str) -> int:
    return int(sum(getattr(each, field) * each.size
                   for each in pages)) // _MIB
