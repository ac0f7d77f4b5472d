#    Licensed under the Apache License, Version 2.0 (the "License"); you may
#    not use this file except in compliance with the License. You may obtain
#    a copy of the License at
#
#         http://www.apache.org/licenses/LICENSE-2.0
#
#    Unless required by applicable law or agreed to in writing, software
#    distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
#    WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
#    License for the specific language governing permissions and limitations
#    under the License.
"""The free PCI devices of a host, as guests take them one after the other.

What the claim on the compute node does in
``nova.pci.stats.PciDeviceStats.consume_requests``: devices are taken from the
end of their pools, and with a VF its PF is gone, with a PF its VFs are.
Nothing is changed: each claim gives a new view.
"""

from collections.abc import Hashable
from collections.abc import Mapping
from collections.abc import Sequence
import typing as ty

from nfv_sched.numa import pci
from nfv_sched.numa import topology

_DEPENDENT = (pci.VF, pci.VDPA)
# Differ from host to host, or are counted otherwise.
_NO_PROPERTY = frozenset(('count', 'devices', 'address', 'rp_uuid'))


class Supply:
    """The free PCI devices of a host; never changed.

    :ivar pools: pools as ``nova.pci.stats.PciDeviceStats`` has them
    :ivar devices: for each pool, the numbers of its devices
    :ivar parents: number of a VF -> number of its PF
    """

    __slots__ = ('pools', 'devices', 'parents', '_key')

    def __init__(
        self, pools: Sequence[Mapping[str, ty.Any]],
        devices: Sequence[tuple[int, ...]], parents: Mapping[int, int],
    ):
        self.pools = tuple(pools)
        self.devices = tuple(devices)
        self.parents = parents
        self._key: Hashable = None

    @classmethod
    def of(cls, pools: Sequence[Mapping[str, ty.Any]]) -> 'Supply':
        """Read the pools of a host.

        :param pools: of ``PciDeviceStats``: those of a compute node have
            their devices, those of the scheduler only numbers
        """
        numbers: dict[str, int] = {}
        parents: dict[int, int] = {}
        known: list[tuple[int, str]] = []
        devices, plain = [], []
        number = 0
        for pool in pools:
            found = []
            for device in pool.get('devices') or [None] * pool['count']:
                found.append(number)
                if device is not None:
                    numbers[device.address] = number
                    parent = device.parent_addr
                    if parent and device.dev_type in _DEPENDENT:
                        known.append((number, parent))
                number += 1
            devices.append(tuple(found))
            plain.append({name: value for name, value in pool.items()
                          if name != 'devices'})
        for child, parent in known:
            if parent in numbers:
                parents[child] = numbers[parent]
        return cls(plain, devices, parents)

    @property
    def key(self) -> Hashable:
        """What decides the answers of :meth:`take`, now and later.

        With equal keys they are the same.  Addresses and UUIDs of providers
        are not in it.
        """
        if self._key is None:
            providers: dict[str, int] = {}
            self._key = (tuple([
                (repr(sorted(
                    (name, value) for name, value in pool.items()
                    if name not in _NO_PROPERTY)),
                 providers.setdefault(pool.get('rp_uuid'), len(providers)),
                 devices)
                for pool, devices in zip(self.pools, self.devices)]),
                tuple(sorted(self.parents.items())))
        return self._key

    def take(
        self, demands: Sequence[pci.Demand], mapping: Mapping | None,
        host: topology.HostTopology, cells: int | None,
    ) -> 'Supply | None':
        """The devices that are left after the claim of a guest.

        :param demands: its PCI requests
        :param mapping: mappings of the allocation candidate; None or empty
            without PCI in Placement
        :param host: the host's NUMA nodes
        :param cells: bitmask of the host cells of the guest; None for one
            without NUMA topology
        :returns: None if there are too few
        """
        left = self
        for demand in demands:
            # One by one: what a device takes with it is gone for the next.
            found = pci.Devices(
                pci.HostDevices(left.pools, (demand,), host), mapping,
            ).taken(cells)
            if found is None:
                return None
            left = left._without(found)
        return left

    def _without(self, taken: Sequence[tuple[int, int]]) -> 'Supply':
        """What is left without some devices.

        With a VF its PF is gone, too, and with a PF its VFs are.

        :param taken: (position of a pool, how many of its devices) each
        """
        devices = [list(numbers) for numbers in self.devices]
        gone = set()  # pools that Nova drops, as they have become empty
        for pool, count in taken:
            for _ in range(count):
                number = devices[pool].pop()
                related = [child for child, parent in self.parents.items()
                           if parent == number]
                if number in self.parents:
                    related.append(self.parents[number])
                for other in related:
                    for index, numbers in enumerate(devices):
                        if other in numbers:
                            numbers.remove(other)
                            if not numbers:
                                gone.add(index)
        kept = [index for index in range(len(devices)) if index not in gone]
        return Supply(
            [{**self.pools[index], 'count': len(devices[index])}
             for index in kept],
            [tuple(devices[index]) for index in kept], self.parents)
