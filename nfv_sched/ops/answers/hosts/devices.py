# SPDX-License-Identifier: Apache-2.0
"""Group the PCI devices of a host by NIC and by NUMA node."""

from collections.abc import Collection
from collections.abc import Container
from collections.abc import Mapping

from nfv_sched.ops.answers.hosts import document
from nfv_sched.ops.cloud import occupied
from nfv_sched.ops.cloud import snapshot

_KINDS = {'type-VF': 'VF', 'type-PF': 'PF', 'type-PCI': 'PCI',
          'vdpa': 'vDPA'}
_USED = ('claimed', 'allocated')


def grouped(
    devices: Collection[snapshot.Device], labels: Mapping[str, str],
) -> dict[int | None, tuple[document.DevicesOfNIC, ...]]:
    """Return PCI devices by NUMA node, grouped by PF or else by product.

    Removed devices do not count, nor does a PF whose VFs are in use instead.

    :param labels: UUID of a server -> its label
    """
    groups_by_node: dict[int | None, dict[tuple[str, str],
                                          list[snapshot.Device]]] = {}
    for device in devices:
        if device.status not in occupied.GONE:
            groups_by_node.setdefault(device.node, {}).setdefault(
                _key(device), []).append(device)
    parents = {device.parent for device in devices}
    return {node: tuple(_group(key, members, labels)
                        for key, members in sorted(groups.items())
                        if not _is_for_vfs(members, parents))
            for node, groups in groups_by_node.items()}


def _is_for_vfs(members: list[snapshot.Device],
                parents: Container[str | None]) -> bool:
    """Return True for a PF that is not available because its VFs are."""
    (first, *rest) = members
    return (not rest and first.kind == 'type-PF' and
            first.address in parents and
            first.status not in ('available', *_USED))


def _key(device: snapshot.Device) -> tuple[str, str]:
    kind = _KINDS.get(device.kind, device.kind)
    product = f'{device.vendor}:{device.product}'
    if device.kind == 'type-PF':
        return device.address, kind
    if device.kind == 'type-PCI':
        return product, kind
    return device.parent or product, kind


def _group(key: tuple[str, str], members: list[snapshot.Device],
           labels: Mapping[str, str]) -> document.DevicesOfNIC:
    name, kind = key
    servers = {device.server for device in members
               if device.status in _USED}
    names = sorted(labels[server] for server in servers if server in labels)
    has_unknown = len(servers) > len(names)
    return document.DevicesOfNIC(
        name=name, kind=kind, total=len(members),
        free=sum(device.status == 'available' for device in members),
        used=sum(device.status in _USED for device in members),
        servers=(*names, *(['unknown guest'] if has_unknown else [])))
