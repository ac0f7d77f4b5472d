# SPDX-License-Identifier: Apache-2.0
"""Decide whether the PCI devices of a host serve a guest on given NUMA nodes.

The answers are those of ``nova.pci.stats.PciDeviceStats.support_requests`` and
``apply_requests``.  Nova works on a copy of all pools of the host for each set
of host NUMA nodes that its search finds; here the pools are read once and only
numbers of devices are counted down.

The answer depends only on which of the *relevant* host cells are chosen: those
that have such devices, or share a socket with them.
"""

from collections.abc import Callable, Mapping, Sequence
import copy
import typing as ty

from oslo_utils import strutils

from nfv_sched.fit.numa import candidates
from nfv_sched.fit.numa import topology

REQUIRED = 'required'
SOCKET = 'socket'
LEGACY = 'legacy'
PREFERRED = 'preferred'

PF = 'type-PF'
VF = 'type-VF'
STANDARD = 'type-PCI'
VDPA = 'vdpa'
#: Names of such devices in reasons.
PF_NOUN, VF_NOUN, DEVICE_NOUN = 'PF', 'VF', 'PCI device'

# Keys in the spec of a request that are not device properties: they are for
# Placement, or for Nova's own use.
_NOT_OF_THE_DEVICE = frozenset(['resource_class', 'traits', 'rp_uuids'])


class OddDevicesError(ValueError):
    """PCI requests or pools that cannot be read."""


def _lower(value):
    return value.lower() if isinstance(value, str) else value


class Demand(ty.NamedTuple):
    """One PCI request of a guest."""

    count: int
    #: alternatives: all (property, value) pairs that a device must have
    specs: tuple[tuple[tuple[str, ty.Any], ...], ...]
    policy: str  #: Nova's NUMA policy of the request
    #: the NUMA policy that the claim on the compute node follows; the claim of
    #: unshelving follows ``policy``. None if not known
    claimed: str | None
    #: whether the claim takes only devices of providers by Placement
    fixable: bool
    #: ID of the request, the prefix of its groups in the mappings of
    #: allocation candidates; None if it has none
    request_id: str | None
    #: the request is for a Neutron port; PCI in Placement does not cover those
    from_port: bool
    #: UUIDs of the resource providers that Placement has allocated already,
    #: one for each device; empty if none
    providers: tuple[str, ...]
    noun: str
    pfs: bool  #: whether physical functions may be given
    vdpas: bool  #: whether vDPA devices may be given
    remote: bool  #: whether devices managed from a SmartNIC may be given
    #: required ``live_migratable``: ``true``, ``false``, or None for any
    migratable: str | None
    alias: str = ''  #: name of the alias; empty for a port

    def _asked(self, name: str) -> ty.Any:
        """Return a property that all alternatives ask for alike, or None."""
        values = [dict(spec).get(name) for spec in self.specs]
        return values[0] if values and values.count(values[0]) == len(
            values) else None

    @property
    def physical_network(self) -> str:
        """The physical network that is asked for; empty if none is."""
        return str(self._asked('physical_network') or '')

    @property
    def trusted(self) -> bool:
        return strutils.bool_from_string(self._asked('trusted'))

    @property
    def vfs(self) -> bool:
        """Whether virtual functions, or vDPA devices, may be given."""
        return any(dict(spec).get('dev_type') not in (PF, STANDARD)
                   for spec in self.specs)

    def matches(self, pool: Mapping) -> bool:
        """Return whether a ``PciDeviceStats`` pool has a spec's properties."""
        # pci_device_prop_match lowers all strings; most are equal as they are.
        for spec in self.specs:
            for name, value in spec:
                have = pool.get(name)
                if have != value and not property_matches(have, value):
                    break
            else:
                return True
        return False

    def usable(self, pool: Mapping) -> bool:
        """Return whether Nova gives this request devices of a pool's type."""
        # PFs, vDPA and remote-managed devices only go to requests for them.
        if not self.gives(pool.get('dev_type')) or (
                not self.remote and is_remote(pool)):
            return False
        return (self.migratable is None or
                pool.get('live_migratable') == self.migratable)

    def gives(self, kind: str | None) -> bool:
        return (kind != PF or self.pfs) and (kind != VDPA or self.vdpas)


def is_remote(pool: Mapping) -> bool:
    return strutils.bool_from_string(pool.get('remote_managed'))


def property_matches(pool_value, value) -> bool:
    # Capabilities as of a network device, which may have more.
    if isinstance(value, list) and isinstance(pool_value, list):
        return all(item in pool_value for item in value)
    return _lower(pool_value) == _lower(value)


def _noun(specs: Sequence[Mapping], from_port: bool) -> str:
    kinds = {spec.get('dev_type') for spec in specs}
    if kinds == {PF}:
        return PF_NOUN
    # For a port with vnic_type direct Nova asks for no type of device.
    if kinds == {VF} or (from_port and VDPA not in kinds):
        return VF_NOUN
    return DEVICE_NOUN


def _demand(request, alias_policy) -> Demand:
    specs = [dict(spec) for spec in request.spec]
    policy = request.numa_policy if 'numa_policy' in request else None
    from_port = request.source == request.NEUTRON_PORT
    policy = policy or LEGACY
    claimed = policy
    # The claim of a move makes the requests for aliases anew from the flavor,
    # those for ports from Neutron's ports, with the policy of the request.
    if alias_policy is not None and not from_port:
        claimed = alias_policy(request.alias_name)
    migratable = None
    # Nova looks at it only if all alternatives want the same.
    live_migratable = {spec.get('live_migratable') for spec in specs}
    if live_migratable in ({'true'}, {'false'}):
        migratable, = live_migratable
    # Of the first alternative only, like Nova: a string with commas.
    providers = specs[0].get('rp_uuids') if specs else None
    return Demand(
        request.count,
        tuple(tuple((name, value) for name, value in spec.items()
                    if name not in _NOT_OF_THE_DEVICE) for spec in specs),
        policy, claimed, alias_policy is None and not from_port,
        request.request_id if 'request_id' in request else None, from_port,
        tuple(providers.split(',')) if providers else (),
        _noun(specs, from_port),
        any(spec.get('dev_type') == PF for spec in specs),
        any(spec.get('dev_type') == VDPA for spec in specs),
        any(strutils.bool_from_string(spec.get('remote_managed'))
            for spec in specs),
        migratable, '' if from_port or 'alias_name' not in request
        else request.alias_name or '')


def demands(
    requests: Sequence,
    alias_policy: Callable[[str], str | None] | None = None,
) -> tuple[Demand, ...]:
    """Read the PCI requests of a guest.

    :param requests: ``nova.objects.InstancePCIRequest`` each
    :param alias_policy: for moves: returns the NUMA policy of an alias by its
        name, None if not known. The claim of a move makes the requests anew
        from the aliases of the flavor; it ignores the NUMA policy of flavor or
        image, and the devices that Placement has allocated.
    :raises OddDevicesError: if one cannot be read
    """
    try:
        return tuple([_demand(request, alias_policy) for request in requests])
    except Exception as exc:
        raise OddDevicesError('a request without its fields') from exc


def may_take_card(demands: Sequence[Demand]) -> bool:
    """Return whether a PF and VFs of the same card may be taken."""
    return len(demands) > 1 and any(demand.pfs for demand in demands) and any(
        demand.vfs for demand in demands)


class Served(ty.NamedTuple):
    """The devices that Nova would take for one set of host NUMA nodes.

    With PCI in Placement they may be fewer than requested: Nova leaves out
    allocated providers that do not suit the NUMA policy if the others have
    enough devices in all.
    """

    local: int  #: number of devices on these NUMA nodes
    total: int


class _Pool(ty.NamedTuple):
    """A pool of devices that match a request."""

    index: int  #: position among the pools of the host
    near: int  #: bit of the host cell of the devices; 0 if they have none
    unknown: bool  #: whether the devices have no NUMA information
    #: whether the request may have them; see :meth:`Demand.usable`
    usable: bool
    provider: str | None  #: UUID of their resource provider, or None


class HostDevices:
    """The free PCI devices of a host that match the requests of a guest.

    :raises OddDevicesError: if a pool cannot be read
    :ivar counts: number of free devices in each pool of the host
    :ivar matched: for each request the pools that match it
    """

    __slots__ = ('host', 'wanted', 'pools', 'counts', 'matched', '_sockets',
                 '_providers', '_relevant', '_relatives')

    def __init__(self, pools: Sequence[Mapping], demands: tuple[Demand, ...],
                 host: topology.HostTopology):
        self.host = host
        self.wanted = demands
        self.pools = pools
        self._sockets: list[int] | None = None
        self._relevant: int | None = None
        self._relatives: list[list[int]] | None = None
        try:
            self.counts = [pool['count'] for pool in pools]
            self.matched = [
                [self.place(index, demand) for index, pool in enumerate(pools)
                 if demand.matches(pool)] for demand in demands]
            self._providers = [pool.get('rp_uuid') for pool in pools]
        except Exception as exc:
            raise OddDevicesError('a pool without its fields') from exc

    def place(self, index: int, demand: Demand) -> _Pool:
        pool = self.pools[index]
        node = pool.get('numa_node')
        return _Pool(
            index, 0 if node is None else self.host.bit_of(node), node is None,
            demand.usable(pool), pool.get('rp_uuid'))

    def only(self, numbers: Sequence[int]) -> 'HostDevices':
        part = copy.copy(self)
        part.wanted = tuple([self.wanted[number] for number in numbers])
        part.matched = [self.matched[number] for number in numbers]
        part._relevant = None
        return part

    @property
    def relatives(self) -> list[list[int]]:
        """Pools taken along with each: a PF takes its VFs, a VF its PF."""
        if self._relatives is None:
            # Nova's pools have the address of the PF, also those of VFs.
            kinds = [pool.get('dev_type') for pool in self.pools]
            cards = [(pool.get('address') if kind in (PF, VF, VDPA) else None,
                      kind == PF) for kind, pool in zip(kinds, self.pools)]
            self._relatives = [[
                index for index, (other, pf) in enumerate(cards)
                if address is not None and other == address and pf != is_pf]
                for address, is_pf in cards]
        return self._relatives

    @property
    def relevant(self) -> int:
        """Bitmask of the relevant host cells; see the module."""
        if self._relevant is None:
            cells = 0
            for demand, pools in zip(self.wanted, self.matched):
                near = 0
                for pool in pools:
                    near |= pool.near
                # Devices of another node of the socket count, too; without
                # socket numbers Nova takes none but the local ones.
                if demand.policy == SOCKET:
                    near = self.same_socket(near) or near
                cells |= near
            self._relevant = cells
        return self._relevant

    def same_socket(self, cells: int) -> int:
        """Return the cells on the same sockets; 0 if sockets are unknown."""
        if self._sockets is None:
            # _filter_pools_for_socket_affinity gives up if one cell lacks it.
            numbers = [cell.socket for cell in self.host.cells]
            self._sockets = [] if None in numbers else [
                sum(1 << other for other, number in enumerate(numbers)
                    if number == mine) for mine in numbers]
        if not self._sockets:
            return 0
        mask = 0
        for index in candidates.bits(cells):
            mask |= self._sockets[index]
        return mask

    def provider_is_split(self, counts: Sequence[int]) -> bool:
        """Return whether two pools have devices of one resource provider."""
        # Nova then refuses requests with an allocation in Placement.
        # A pool that an earlier request has emptied is gone from Nova's list;
        # one that was empty before is still in it.
        providers = [provider for provider, count, at_first in
                     zip(self._providers, counts, self.counts)
                     if provider is not None and (count or not at_first)]
        return len(set(providers)) < len(providers)

    # "index" is the position of a request in "wanted".

    def has_unknown(self, index: int) -> bool:
        return any(pool.unknown for pool in self.matched[index])

    def free(self, index: int, cells: int | None = None) -> int:
        """Count the free devices for a request, near ``cells`` if given."""
        return sum(self.counts[pool.index] for pool in self.matched[index]
                   if pool.usable and (cells is None or pool.near & cells))


class CandidateDevices:
    """The PCI devices of a host for one allocation candidate.

    :param mapping: mappings of the allocation candidate; None or empty without
        PCI in Placement
    """

    __slots__ = ('devices', 'requested', '_providers', '_served')

    def __init__(self, devices: HostDevices, mapping: Mapping | None):
        self.devices = devices
        self.requested = sum([demand.count for demand in devices.wanted])
        self._providers = [providers(demand, mapping)
                           for demand in devices.wanted]
        self._served: dict[int, Served | None] = {}

    @property
    def relevant(self) -> int:
        return self.devices.relevant

    def serve(self, cells: int) -> Served | None:
        """Return the devices that Nova would take; None if it refuses."""
        # Choices that differ in other cells only have the same answer.
        cells &= self.relevant
        try:
            return self._served[cells]
        except KeyError:
            served = self._served[cells] = self._serve(cells)
            return served

    def accepts(self, cells: int) -> bool:
        return self.serve(cells) is not None

    def keeps_local(self, cells: int) -> bool:
        """Return whether Nova would take all devices from these cells."""
        served = self.serve(cells)
        return served is not None and \
            served.local == served.total == self.requested

    @property
    def stock(self) -> candidates.Condition:
        """The condition that Nova can serve the guest; see :meth:`accepts`."""
        return candidates.Condition(self.accepts, self.relevant)

    @property
    def local(self) -> candidates.Condition:
        """The condition that all devices are near; see :meth:`keeps_local`."""
        return candidates.Condition(self.keeps_local, self.relevant)

    def taken(self, cells: int | None) -> list[tuple[int, int]] | None:
        """Return the devices that Nova takes for a guest on some host cells.

        :param cells: bitmask of the chosen host cells; None for a guest
            without NUMA topology, whose devices may be anywhere
        :returns: (position of a pool among those of the host, number of
            devices) in the order in which they are taken; None if Nova cannot
            serve all requests
        """
        counts = list(self.devices.counts)
        pool_counts = []
        for demand, pools, providers in zip(
                self.devices.wanted, self.devices.matched, self._providers):
            allocated = self._take(demand, pools, providers, counts, cells)
            if allocated is None:
                return None
            for pool, count in allocated:
                counts[pool.index] -= count
                pool_counts.append((pool.index, count))
        return pool_counts

    def claimable(self, cells: int | None) -> bool:
        """Return whether the claim finds the devices that Nova's filters do.

        Nova's filters do not know that a PF takes its VFs along.
        """
        devices = self.devices
        if not may_take_card(devices.wanted):
            return self.taken(cells) is not None
        counts = list(devices.counts)
        for demand, pools, providers in zip(
                devices.wanted, devices.matched, self._providers):
            allocated = self._take(demand, pools, providers, counts, cells)
            if allocated is None:
                return False
            gone: set[int] = set()
            for pool, count in allocated:
                # consume_requests raises IndexError then.
                if count and pool.index in gone:
                    return False
                counts[pool.index] -= count
                if count:
                    gone.update(devices.relatives[pool.index])
            for index in gone:
                counts[index] = 0
        return True

    def only(self, numbers: Sequence[int]) -> 'CandidateDevices':
        part = copy.copy(self)
        part.devices = self.devices.only(numbers)
        part._providers = [self._providers[number] for number in numbers]
        part.requested = sum([demand.count for demand in part.devices.wanted])
        part._served = {}
        return part

    def granted(self, number: int) -> tuple[str, ...]:
        """Return the providers of which Placement has granted a request."""
        return self._providers[number]

    def _serve(self, cells: int) -> Served | None:
        devices = self.devices
        counts = devices.counts
        if len(devices.wanted) > 1:
            counts = list(counts)
        # On a host with one node, devices without NUMA information are near.
        everywhere = len(devices.host.cells) == 1
        local = total = 0
        for demand, pools, providers in zip(
                devices.wanted, devices.matched, self._providers):
            allocated = self._take(demand, pools, providers, counts, cells)
            if allocated is None:
                return None
            for pool, count in allocated:
                if len(devices.wanted) > 1:
                    counts[pool.index] -= count
                total += count
                if everywhere or pool.near & cells:
                    local += count
        return Served(local, total)

    def _take(self, demand, pools, providers, counts, cells):
        """Return (pool, number) pairs as Nova chooses; None if too few."""
        need = demand.count
        near = self._pools_by_policy(demand, pools, counts, cells)
        if near is None:
            return None
        if not providers:
            allocated = []
            remaining = need
            for pool in near:
                # Pools of PFs and other special devices are left out only
                # here: Nova has counted them, and chosen by NUMA policy.
                if pool.usable:
                    have = counts[pool.index]
                    allocated.append((pool, min(have, remaining)))
                    remaining -= allocated[-1][1]
                    if remaining <= 0:
                        return allocated
            return None

        of_provider: dict[str, int] = {}
        for provider in providers:
            of_provider[provider] = of_provider.get(provider, 0) + 1
        # As _filter_pools_based_on_placement_allocation: a pool that has too
        # few is left out, and the others must be enough in all.
        fitting = [pool for pool in near
                   if pool.usable and pool.provider in of_provider and
                   counts[pool.index] >= of_provider[pool.provider]]
        if not fitting or sum(
                [counts[pool.index] for pool in fitting]) < need or \
                self.devices.provider_is_split(counts):
            return None
        # These may be fewer than requested: Nova counts the free devices of
        # the pools, but takes what Placement has allocated of each.
        return [(pool, of_provider[pool.provider]) for pool in fitting]

    def _pools_by_policy(self, demand, pools, counts, cells):
        """Return the pools that suit the NUMA policy, in Nova's order."""
        if cells is None:
            return pools
        need = demand.count
        local = [pool for pool in pools if pool.near & cells]
        policy = demand.policy
        if policy == REQUIRED or sum(
                [counts[pool.index] for pool in local]) >= need:
            return local
        if policy == SOCKET:
            # Devices without NUMA information never suit "socket".
            allowed = self.devices.same_socket(cells)
            return [pool for pool in pools if pool.near & allowed]
        near_or_unknown = [pool for pool in pools
                           if pool.unknown or pool.near & cells]
        if policy == LEGACY or sum(
                [counts[pool.index] for pool in near_or_unknown]) >= need:
            return near_or_unknown
        return sorted(pools, key=lambda pool: not (
            pool.unknown or pool.near & cells))

    def fixed(self, index: int) -> int | None:
        """Return the host cells of devices that Placement allocates.

        :returns: bitmask; None if the claim is free to choose devices, or one
            has no NUMA information
        """
        providers = self._providers[index]
        if not providers or not self.devices.wanted[index].fixable:
            return None
        cells = 0
        for pool in self.devices.matched[index]:
            if pool.provider in providers:
                # No labels bring the guest near a device without NUMA node.
                if not pool.near:
                    return None
                cells |= pool.near
        return cells or None


def providers(demand: Demand, mapping: Mapping | None) -> tuple[str, ...]:
    """Return a provider UUID for each device; empty if none are allocated."""
    # PCI in Placement does not cover ports: _get_rp_uuids_for_request returns
    # no provider, and any pool may be used.
    if demand.from_port:
        return ()
    if not mapping:
        return demand.providers
    if not demand.request_id:
        return ()
    # The groups of a request are {request_id}-{index}, each of one provider.
    return tuple([providers[0] for group, providers in mapping.items()
                  if group.startswith(demand.request_id)])
