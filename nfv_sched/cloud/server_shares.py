# SPDX-License-Identifier: Apache-2.0
"""Convert the NUMA nodes of servers to what they occupy of their host."""

from collections.abc import Sequence

from nfv_sched.cloud import snapshot
from nfv_sched.host import occupancy
from nfv_sched.numa import topology


def share(nodes: Sequence[snapshot.Node],
          part: snapshot.GuestNode) -> occupancy.Share | None:
    """Return what a NUMA node of a server occupies of its host.

    :param nodes: all NUMA nodes of the host
    :param part: the NUMA node of the server
    :returns: None if the host does not report this NUMA node
    """
    for position, node in enumerate(nodes):
        if node.number == part.host_node:
            return occupancy.share(
                position, _cell(part), exclusive_cpus(part), part.page_size,
                node.cores, [pages.size for pages in node.pages])
    return None


def _cell(part: snapshot.GuestNode) -> topology.GuestCell:
    return topology.GuestCell(
        len(part.shared), len(part.dedicated), part.memory, part.page_size,
        topology.CPU_POLICIES.get(part.cpu_policy or '', topology.SHARED),
        topology.THREAD_POLICIES.get(
            part.thread_policy or '', topology.THREADS_PREFER))


def exclusive_cpus(part: snapshot.GuestNode) -> set[int]:
    """Return the host CPUs of pinned vCPUs and of emulator threads.

    Siblings that isolated vCPUs leave idle are not among them.
    """
    return {*part.pins.values(), *part.reserved}
