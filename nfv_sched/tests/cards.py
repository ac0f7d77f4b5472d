# SPDX-License-Identifier: Apache-2.0
"""PCI cards of a host, in Nova's own pools with their devices."""

import typing as ty

from nova import exception
from nova import objects
from nova.pci import manager
from nova.pci import stats
from nova.pci import whitelist
from oslo_serialization import jsonutils


class Card(ty.NamedTuple):
    """A card in a slot of its own.

    :ivar kind: ``type-PF`` with VFs, or the type of a single function
    :ivar vfs: free VFs
    :ivar used: further VFs, which are in use; the PF is not free then
    :ivar listed: whether a PF is for servers, not only its VFs
    :ivar tags: those of ``[pci] device_spec``
    """

    node: int | None = 0
    kind: str = 'type-PF'
    vfs: int = 0
    used: int = 0
    listed: bool = True
    tags: ty.Mapping[str, str] = {}


def pci_stats(topology, cards):
    specs, devices = [], []
    for slot, card in enumerate(cards, 1):
        specs.append(jsonutils.dumps({
            'address': f'0000:{slot:02x}:*.*', **card.tags}))
        for number in range(1 + card.vfs + card.used):
            if not number and card.kind == 'type-VF':
                continue
            virtual = number or card.kind == 'type-VF'
            devices.append(objects.PciDevice(
                id=len(devices) + 1, compute_node_id=1, vendor_id='8086',
                product_id='1515' if virtual else '1572',
                address=f'0000:{slot:02x}:{number >> 3:02x}.{number & 7}',
                parent_addr=f'0000:{slot:02x}:00.0' if virtual else None,
                dev_type='type-VF' if virtual else card.kind,
                numa_node=card.node, extra_info={}, status='available'
                if number <= card.vfs and (number or (
                    card.listed and not card.used)) else 'allocated'))
    manager.PciDevTracker._build_device_tree(devices)
    made = stats.PciDeviceStats(
        topology, dev_filter=whitelist.Whitelist(specs))
    for device in devices:
        if device.status == 'available':
            made.add_device(device)
    return made


def as_scheduled(made):
    """The same as the scheduler has them: without the devices."""
    return stats.PciDeviceStats(
        made.numa_topology, stats=made.to_device_pools_obj(),
        dev_filter=made.dev_filter)


def claims(made, requests, cells=None):
    """Return whether a claim gets its devices; the pools are changed."""
    if not requests:
        return True
    try:
        return made.consume_requests(requests, cells) is not None
    # Nova takes a device twice if one request may have a PF and its VFs.
    except (exception.PciDeviceRequestFailed, IndexError):
        return False
