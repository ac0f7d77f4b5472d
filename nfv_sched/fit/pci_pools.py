# SPDX-License-Identifier: Apache-2.0
"""Take and give back the PCI devices of a host, as Nova's PCI tracker does.

On the compute node, devices are taken from the end of their pools and are put
back there.  A PF is not free while a VF of it is taken, nor are its VFs while
the PF is.  Pools are immutable, so each function returns others.
"""

import collections
from collections.abc import Hashable, Iterable, Mapping, Sequence
import itertools
import typing as ty

from nfv_sched.fit.numa import pci
from nfv_sched.fit.numa import topology

_DEPENDENT = (pci.VF, pci.VDPA)
_PROVIDER = 'rp_uuid'
# Values that are not properties of a pool, but of the devices in it now.
_CONTENTS = ('count', 'devices', _PROVIDER)
# Differs from host to host.
_ADDRESS = 'address'


class _Device(ty.NamedTuple):
    pool: int  #: number of its pool
    server: str | None  #: UUID of its server when the host was read, or None
    parent: int | None  #: number of its PF, or None
    children: Sequence[int]  #: numbers of its VFs


class _Inventory(ty.NamedTuple):
    """All pools and PCI devices of a host, free or not, by number."""

    pools: Sequence[Mapping[str, ty.Any]]  #: properties of each pool
    #: UUID of the resource provider of each pool, or None
    providers: Sequence[str | None]
    devices: Sequence[_Device]


class PCIPools:
    """The free PCI devices of a host, in the pools of Nova; immutable.

    :ivar pools: pools of ``nova.pci.stats.PciDeviceStats``, without the
        devices
    """

    __slots__ = ('pools', '_inventory', '_free', '_key')

    def __init__(self, inventory: _Inventory,
                 free: Mapping[int, Sequence[int]]):
        self._inventory = inventory
        #: Number of each pool, in Nova's order -> its free devices.
        self._free = {pool: tuple(devices) for pool, devices in free.items()}
        self._key: Hashable = None
        self.pools = []
        for pool, devices in free.items():
            self.pools.append({**inventory.pools[pool], 'count': len(devices)})
            if inventory.providers[pool]:
                self.pools[-1][_PROVIDER] = inventory.providers[pool]

    @classmethod
    def read(cls, pools: Sequence[Mapping[str, ty.Any]],
             occupied: Iterable[tuple[ty.Any, Mapping[str, ty.Any]]] = (),
             ) -> 'PCIPools':
        """Read the PCI devices of a host.

        :param pools: pools of ``PciDeviceStats``: those of a compute node have
            their devices, those of the scheduler only numbers
        :param occupied: (``PciDevice``, its pool without contents) of each
            device that is not free
        """
        kinds = [_properties(pool) for pool in pools]
        providers = [pool.get(_PROVIDER) for pool in pools]
        entries: list[tuple[ty.Any, int]] = []
        free = {}
        for number, pool in enumerate(pools):
            # Nova leaves the devices out of the pools in the record of a
            # compute node, which is what the scheduler has.
            devices = pool.get('devices') or [None] * pool['count']
            free[number] = range(len(entries), len(entries) + len(devices))
            entries += [(device, number) for device in devices]
        for device, pool in occupied:
            properties = _properties(pool)
            if properties not in kinds:
                kinds.append(properties)
                providers.append(None)
            number = kinds.index(properties)
            # Nova forgets the provider of a pool without free devices.
            providers[number] = providers[number] or pool.get(_PROVIDER)
            entries.append((device, number))
        parents, children = _parents([device for device, _number in entries])
        return cls(_Inventory(kinds, providers, [
            _Device(pool, device and device.instance_uuid,
                    parents.get(number), children[number])
            for number, (device, pool) in enumerate(entries)]), free)

    @property
    def key(self) -> Hashable:
        """A value that decides the answers of :meth:`take`, now and later.

        Equal keys give equal answers.  Addresses and UUIDs of providers are
        not part of it.
        """
        if self._key is None:
            inventory = self._inventory
            providers: dict[str | None, int] = {}
            free = set(itertools.chain(*self._free.values()))
            self._key = (tuple([
                (repr(sorted(item for item in inventory.pools[pool].items()
                             if item[0] != _ADDRESS)),
                 providers.setdefault(inventory.providers[pool],
                                      len(providers)), devices)
                for pool, devices in self._free.items()]), tuple([
                    (number, device.parent)
                    for number, device in enumerate(inventory.devices)
                    if number in free and device.parent in free]))
        return self._key

    def of_server(self, uuid: str) -> tuple[int, ...]:
        """Return the devices that a server had when the host was read."""
        return tuple([
            number for number, device in enumerate(self._inventory.devices)
            if device.server == uuid])

    def freed_by(self, uuid: str) -> list[Mapping[str, ty.Any]]:
        """Return the pool of each device that may be free without a server.

        A PF is only if no other server has a VF of it.
        """
        devices, own = self._inventory.devices, self.of_server(uuid)
        freed = set(own).union(*[
            {devices[number].parent, *devices[number].children}
            for number in own]) - {None}
        return [self._inventory.pools[devices[number].pool]
                for number in freed]

    def take(self, demands: Sequence[pci.Demand], mapping: Mapping | None,
             host: topology.HostTopology,
             cells: int | None) -> 'tuple[PCIPools, tuple[int, ...]] | None':
        """Return the pools after the claim of a server, and its devices.

        :param mapping: None or empty without PCI in Placement
        :param cells: bitmask; None for a server without NUMA topology
        :returns: None if there are too few devices
        """
        pools, devices = self, []
        for demand in demands:
            # One by one: devices that one request blocks are not free then.
            chosen = pci.CandidateDevices(
                pci.HostDevices(pools.pools, (demand,), host), mapping,
            ).taken(cells)
            if chosen is None:
                return None
            pools, numbers = pools._take_devices(chosen)
            devices += numbers
        return pools, tuple(devices)

    def _take_devices(
        self, chosen: Sequence[tuple[int, int]],
    ) -> 'tuple[PCIPools, list[int]]':
        """Take (position of a pool, number) each from the ends of pools."""
        free = {pool: list(devices) for pool, devices in self._free.items()}
        pools = list(free)
        dropped = set()
        numbers = []
        for position, count in chosen:
            for _ in range(count):
                # As _allocate_devs; then what _handle_device_dependents does.
                number = free[pools[position]].pop()
                numbers.append(number)
                device = self._inventory.devices[number]
                blocked = {device.parent, *device.children}
                for pool, devices in free.items():
                    if not blocked.isdisjoint(devices):
                        devices[:] = [each for each in devices
                                      if each not in blocked]
                        # Nova drops only pools that become empty this way.
                        if not devices:
                            dropped.add(pool)
        return PCIPools(self._inventory, {
            pool: devices for pool, devices in free.items()
            if pool not in dropped}), numbers

    def give_back(self, devices: Iterable[int]) -> 'PCIPools':
        inventory = self._inventory
        pools = {pool: list(numbers) for pool, numbers in self._free.items()}
        # The provider is one more key of the dictionary in Nova.
        sizes = {pool: len(inventory.pools[pool])
                 + (inventory.providers[pool] is not None) for pool in pools}
        free = set(itertools.chain(*pools.values()))
        for device in devices:
            # In the order in which PciDevice.free returns them, which is the
            # order of the pool from then on.
            for number in [*self._freed_with(device, free), device]:
                if number in free:
                    continue
                free.add(number)
                pool = inventory.devices[number].pool
                if pool not in pools:
                    # NOTE: Nova then sorts its pools by their number of
                    # properties; this one still lacks its resource provider.
                    pools[pool] = []
                    sizes[pool] = len(inventory.pools[pool])
                    pools = {each: pools[each] for each in sorted(
                        pools, key=sizes.__getitem__)}
                pools[pool].append(number)
        return PCIPools(inventory, pools)

    def _freed_with(self, device: int, free: set[int]) -> Sequence[int]:
        devices = self._inventory.devices
        parent = devices[device].parent
        if parent is not None and all(
                child in free for child in devices[parent].children
                if child != device):
            return [parent]
        return devices[device].children


def _properties(pool: Mapping[str, ty.Any]) -> dict[str, ty.Any]:
    return {name: value for name, value in pool.items()
            if name not in _CONTENTS}


def _parents(
    devices: Sequence[ty.Any],
) -> tuple[Mapping[int, int], Mapping[int, list[int]]]:
    """Return the number of the PF of each VF, and the reverse."""
    numbers = {device.address: number
               for number, device in enumerate(devices) if device is not None}
    parents = {}
    children: dict[int, list[int]] = collections.defaultdict(list)
    # Nova keeps the VFs of a PF in this order.
    for _address, number in sorted(numbers.items()):
        parent = numbers.get(devices[number].parent_addr)
        if parent is not None and devices[number].dev_type in _DEPENDENT:
            parents[number] = parent
            children[parent].append(number)
    return parents, children
