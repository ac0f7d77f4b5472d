# SPDX-License-Identifier: Apache-2.0

"""Compile ``pci_devices`` and ``pci_aliases`` of a cloud file.

Every PF and every standard device has its own PCI bus: the device is ``00.0``
there, and the VFs of a PF follow.  VFs that are listed without a PF get the
address of a PF that is not for guests.  Only the names in Nova's ``[pci]``
options are used here, no code of Nova.
"""

from collections.abc import Iterable, Iterator
import itertools

from nfv_sched.ops.cloud.cloud_file import model
from nfv_sched.ops.cloud import codec
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.cloud import validation
from nfv_sched.ops.cloud import values

# Type of device in the file -> in Nova.
_NOVA_TYPES = {'VF': 'type-VF', 'PF': 'type-PF', 'vdpa': 'vdpa',
               'standard': 'type-PCI'}
# Those of which a card has several.
_OF_A_PF = ('VF', 'vdpa')

# A VF and a PF of an X710 network card, and a QuickAssist accelerator.
_VENDOR = '8086'
_PRODUCTS = {'VF': '154c', 'PF': '1572', 'vdpa': '101e', 'standard': '0443'}

_FUNCTIONS = 8
_VFS_OF_A_BUS = 31 * _FUNCTIONS


def _nova_tags(entry: model.PCIDevices | model.PCIAlias) -> dict[str, str]:
    """Return the keys that are passed to Nova, with values as strings."""
    texts = {}
    for key in values.keys_with(type(entry), values.FOR_NOVA):
        value = getattr(entry, key)
        if isinstance(value, tuple):
            texts[key] = ','.join(value)
        elif value is not None:
            texts[key] = values.parse_text(value)
    return texts


def _functions(bus: str, entry: model.PCIDevices,
               count: int) -> Iterator[snapshot.Device]:
    """Yield the devices on one bus; ``count`` is the number of VFs."""
    kind = entry.type
    common = {'node': entry.node, 'vendor': (entry.vendor or _VENDOR).lower(),
              'tags': _nova_tags(entry)}
    product = (entry.product or _PRODUCTS[kind]).lower()
    first = f'{bus}:00.0'
    if kind not in _OF_A_PF:
        yield snapshot.Device(address=first, kind=_NOVA_TYPES[kind],
                              product=product, **common)
        if kind == 'standard':
            return
        kind = 'VF'
        product = (entry.vf_product or _PRODUCTS[kind]).lower()
    for number in range(count):
        slot, function = divmod(number, _FUNCTIONS)
        yield snapshot.Device(
            address=f'{bus}:{slot + 1:02x}.{function}',
            kind=_NOVA_TYPES[kind], product=product, parent=first, **common)


def build(entries: Iterable[model.PCIDevices]) -> tuple[snapshot.Device, ...]:
    """Return the PCI devices of a host, with tags as in ``device_spec``.

    :raises WrongError: if a host cannot have so many
    """
    buses = itertools.count(1)
    devices: list[snapshot.Device] = []
    for entry in entries:
        if entry.type in _OF_A_PF:
            cards, vfs = 1, entry.count
        else:
            cards, vfs = entry.count, entry.vfs or 0
        if vfs > _VFS_OF_A_BUS:
            raise codec.WrongError(f'a PF has at most {_VFS_OF_A_BUS} VFs')
        for number in itertools.islice(buses, cards):
            bus = f'{number >> 8:04x}:{number & 255:02x}'
            devices.extend(_functions(bus, entry, vfs))
            if len(devices) > validation.MAX_DEVICES:
                raise codec.WrongError('no host has more than '
                                       f'{validation.MAX_DEVICES} devices')
    validation.check_devices(devices)
    return tuple(devices)


def alias(name: str, entry: model.PCIAlias) -> dict[str, str]:
    """Return the value of ``[pci] alias`` for an entry of ``pci_aliases``.

    Vendor and product default to those of devices of its type, unless it
    requests a resource class.
    """
    result = {'name': name, 'device_type': _NOVA_TYPES[entry.type]}
    if entry.resource_class is None or entry.vendor is not None:
        result['vendor_id'] = (entry.vendor or _VENDOR).lower()
    if entry.resource_class is None or entry.product is not None:
        result['product_id'] = (
            entry.product or _PRODUCTS[entry.type]).lower()
    return {**result, **_nova_tags(entry)}
