# SPDX-License-Identifier: Apache-2.0
"""Count the small pages of a host: for the platform, NUMA guests and others.

A server without NUMA topology is on no NUMA node, so nova-compute records its
memory on none: only the sum over the host shows whether any is left.
"""

from collections.abc import Iterable
import dataclasses

from nfv_sched.ops.cloud import occupied
from nfv_sched.ops.cloud import snapshot

_MIB = 1024  # KiB


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SmallPages:
    """Memory in pages of the smallest size of a host, in MiB.

    :ivar size: size of a page in KiB
    :ivar total: all pages
    :ivar reserved: for the platform: ``reserved_host_memory_mb`` minus
        reserved huge pages
    :ivar on_nodes: used by servers with a NUMA topology
    :ivar floating: used by servers without NUMA topology
    :ivar ratio: allocation ratio of the memory of these
    """

    size: int
    total: int
    reserved: int
    on_nodes: int = 0
    floating: int = 0
    ratio: float = 1.0

    @property
    def available(self) -> int:
        """The MiB for servers without NUMA topology, used or not."""
        return max(self.total - self.reserved - self.on_nodes, 0)

    @property
    def free(self) -> int:
        """The MiB left; below 0, servers use memory of the platform."""
        return (self.total - self.reserved - self.on_nodes - self.floating)

    @property
    def overuse(self) -> str:
        """Description of what floating servers use beyond; empty if none."""
        ratio = max(self.ratio, 1.0)
        if self.floating <= self.available * ratio:
            return ''
        return (f'servers without NUMA topology use {self.floating} MiB of '
                f'small pages, {limit_text(self.available, ratio)} MiB may be '
                f'used beyond the reserve of {self.reserved} MiB')


def limit_text(amount: int, ratio: float) -> str:
    """Return an amount multiplied by an allocation ratio, with both."""
    most = int(amount * ratio)
    return f'{most} ({ratio:g} x {amount})' if most != amount else str(most)


def small_pages(host: snapshot.Host,
                servers: Iterable[snapshot.Server], ratio: float = 1.0,
                ) -> SmallPages | None:
    """Return the small pages of a host.

    :param servers: the servers on the host
    :param ratio: allocation ratio of its memory
    :returns: None if it reports no pages, or huge ones only
    """
    pages = [each for node in host.nodes or () for each in node.pages]
    size = min((each.size for each in pages), default=_MIB)
    if size >= _MIB:
        return None
    servers = list(servers)
    small = [each for each in pages if each.size == size]
    huge_reserved = sum(each.reserved * each.size // _MIB
                        for each in pages if each.size != size)
    return SmallPages(
        size=size, total=_mib(small, 'total'),
        reserved=max(_mib(small, 'reserved'),
                     occupied.reserved_memory(host, sum(
                         server.flavor.memory for server in servers))
                     - huge_reserved),
        on_nodes=_mib(small, 'used'),
        floating=sum(server.flavor.memory for server in servers
                     if server.nodes is None), ratio=ratio)


def _mib(pages: Iterable[snapshot.Pages], field: str) -> int:
    return int(sum(getattr(each, field) * each.size
                   for each in pages)) // _MIB
