# SPDX-License-Identifier: Apache-2.0
"""Work out what servers pin of the NUMA nodes of a host.  No I/O.

For each node that a claim can be held to, the ledger has a resource class for
its dedicated CPUs and one for its pages of each size but the smallest.
Servers whose claim has no choice of nodes allocate them
(:mod:`nfv_sched.scheduler.visit`); what others have pinned is reserved.
"""

import collections
from collections.abc import Iterable, Mapping
import typing as ty

from nfv_sched.limits import names

_ISOLATE = 'isolate'


def totals(host: ty.Any) -> dict[str, int]:
    """Return resource class -> total of the host; empty if it needs none.

    A claim cannot be held to a node of a host without labels, and on a host
    with one node Placement counts what there is.

    :param host: ``nova.objects.NUMATopology``, or None
    :raises Exception: any, if old releases of Nova wrote it
    """
    amounts: dict[str, int] = {}
    if host is None or len(host.cells) == 1 or not any(
            cell.network_metadata.physnets for cell in host.cells):
        return amounts
    for cell in host.cells:
        amounts[names.node_cpus(cell.id)] = len(cell.pcpuset)
        for page in sorted(cell.mempages, key=lambda page: page.size_kb)[1:]:
            amounts[names.node_pages(cell.id, page.size_kb)] = (
                page.total - page.reserved)
    return {name: amount for name, amount in amounts.items() if amount > 0}


def pinned(host: ty.Any, of_classes: Mapping[str, int],
           cells: Iterable[Mapping[str, ty.Any]]) -> dict[str, int]:
    """Return resource class -> amount that a server has of the nodes.

    :param host: ``nova.objects.NUMATopology``
    :param of_classes: resource classes that count
    :param cells: its NUMA cells as stored by Nova, of all places where it is
        on the host
    :raises Exception: one of ``records.MALFORMED``, if a cell is not as Nova
        stores it
    """
    siblings = {cell.id: cell.siblings for cell in host.cells}
    amounts: collections.Counter[str] = collections.Counter()
    for cell in cells:
        node = cell['id']
        cpus = {*(cell.get('cpu_pinning_raw') or {}).values(),
                *(cell.get('cpuset_reserved') or ())}
        if cpus and cell.get('cpu_thread_policy') == _ISOLATE:
            cpus = set().union(*[
                core for core in siblings.get(node, ()) if core & cpus])
        amounts[names.node_cpus(node)] += len(cpus)
        if size := cell.get('pagesize'):
            amounts[names.node_pages(node, size)] += (
                cell['memory'] * 1024 // size)
    return {name: amount for name, amount in amounts.items()
            if amount and name in of_classes}
