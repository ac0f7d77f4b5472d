# SPDX-License-Identifier: Apache-2.0
"""Work out why the PCI devices of a host do not serve a guest.

Slow, and called only when a reason is read.  No I/O, no Nova objects.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
import contextlib
import functools
import itertools
import operator
import typing as ty

from nfv_sched.base.device_shortage import DeviceNeed
from nfv_sched.base.device_shortage import DeviceShortage
from nfv_sched.base.device_shortage import merge
from nfv_sched.base.device_shortage import MissKind
from nfv_sched.base.device_shortage import NearMiss
from nfv_sched.base.device_shortage import ShortageKind
from nfv_sched.base.device_shortage import STRICT
from nfv_sched.fit.numa import candidates
from nfv_sched.fit.numa import pci

# Most pools that each of two searches for the fewest requests looks at: about
# 10 ms. All sets of 8 requests for 8 pools take half of it.
_MOST_LOOKS = 16_000
_LOOKS_BESIDE = 8  # as much as one more test of host cells takes

_KINDS = {
    'dev_type': MissKind.TYPE,
    'physical_network': MissKind.PHYSICAL_NETWORK,
    'trusted': MissKind.TRUSTED,
    'live_migratable': MissKind.LIVE_MIGRATABLE,
    'remote_managed': MissKind.REMOTE_MANAGED,
}


class _TooLongError(Exception):
    """A search was given up."""


class _Effort:
    """The pools of devices that a search may still look at."""

    def __init__(self) -> None:
        self._left = _MOST_LOOKS

    def spend(self, looks: int) -> None:
        self._left -= looks
        if self._left < 0:
            raise _TooLongError


class _CellChoice(ty.NamedTuple):
    """The host cells of which a guest gets some; see :func:`find`."""

    masks: Sequence[int]
    groups: Sequence[int]
    local: bool
    #: whether the claim counts, too, not only Nova's filters
    claimed: bool = True

    def serve(self, devices: pci.CandidateDevices,
              effort: _Effort | None = None) -> bool:
        """Return whether some of the cells do; may raise _TooLongError."""
        looks = _looks(devices)

        def test(cells: int) -> bool:
            if effort is not None:
                effort.spend(looks)
            return (devices.keeps_local(cells) if self.local
                    else devices.accepts(cells)) and (
                        not self.claimed or devices.claimable(cells))

        try:
            return candidates.satisfiable(
                self.masks, self.groups,
                candidates.Condition(test, devices.relevant))
        except candidates.TooManySets:
            return True


def find(devices: pci.CandidateDevices, masks: Sequence[int] | None = None,
         groups: Sequence[int] = (), local: bool = False,
         empty: Sequence[int] | None = None) -> DeviceShortage | None:
    """Return the smallest set of requests that cannot be served.

    :param masks: host cells that each guest cell fits, as bitmasks; None if
        only devices count, wherever they are
    :param local: whether devices must be on the chosen host cells, whatever
        Nova's NUMA policy of the request is
    :param empty: ``masks`` if nothing else ran on the host; all cells if None
    :returns: None if all can be served, or that is not known
    """
    cells = None
    if masks is not None:
        if not candidates.feasible(masks, groups):
            return None
        cells = _CellChoice(masks, groups, local)

    def served(part: pci.CandidateDevices,
               effort: _Effort | None = None) -> bool:
        if cells is not None:
            return cells.serve(part, effort)
        if effort is not None:
            effort.spend(_looks(part))
        return part.claimable(None)

    if served(devices):
        return None
    part = devices.only(_fewest(devices, served))
    kind = _kind(part, cells)
    alone = True
    if kind is ShortageKind.NUMA and cells is not None:
        host = devices.devices.host
        if empty is None:
            empty = [host.all_cells] * len(cells.masks)
        alone = list(empty) == list(cells.masks) or not cells._replace(
            masks=empty).serve(part)
    return _described(part, kind, cells, alone)


def _looks(devices: pci.CandidateDevices) -> int:
    return _LOOKS_BESIDE + sum(map(len, devices.devices.matched))


def _fewest(devices: pci.CandidateDevices,
            served: Callable[..., bool]) -> Sequence[int]:
    """Return the numbers of the fewest requests that are not served.

    If there are too many sets to try, it is a set of which none can be left
    out; if even that takes too long, others may be among them.
    """
    every = range(len(devices.devices.wanted))
    with contextlib.suppress(_TooLongError):
        return _smallest(devices, served)
    effort = _Effort()
    fewest = list(every)
    size = len(fewest)
    with contextlib.suppress(_TooLongError):
        while size > 1:
            size = (size + 1) // 2
            for start in every[::size]:
                left_out = range(start, start + size)
                fewer = [each for each in fewest if each not in left_out]
                if len(fewer) < len(fewest) and not served(
                        devices.only(fewer), effort):
                    fewest = fewer
    return fewest


def _smallest(devices: pci.CandidateDevices,
              served: Callable[..., bool]) -> Sequence[int]:
    """Return the first of the smallest sets; may raise _TooLongError."""
    host_devices, effort = devices.devices, _Effort()
    every = range(len(host_devices.wanted))
    # Requests for the same devices are alike: most of many ports are.
    alike = [
        (demand.count, demand.policy, demand.pfs, demand.vfs,
         host_devices.matched[number], devices.granted(number))
        for number, demand in enumerate(host_devices.wanted)]
    like = [alike.index(each) for each in alike]
    tried = set()
    for size in range(1, len(every)):
        for numbers in itertools.combinations(every, size):
            key = tuple([like[number] for number in numbers])
            if key in tried:
                effort.spend(1)
                continue
            tried.add(key)
            if not served(devices.only(numbers), effort):
                return numbers
    return every


def _kind(devices: pci.CandidateDevices,
          cells: _CellChoice | None) -> ShortageKind:
    if devices.claimable(None):
        return (ShortageKind.ONE_CARD if cells is not None
                and pci.may_take_card(devices.devices.wanted)
                and cells._replace(claimed=False).serve(devices)
                else ShortageKind.NUMA)
    if devices.taken(None) is not None:
        return ShortageKind.ONE_CARD
    if free(devices) < devices.requested:
        return ShortageKind.TOO_FEW
    return (ShortageKind.GRANTED if any(
        map(devices.granted, range(len(devices.devices.wanted))))
        else ShortageKind.ORDER)


def _described(devices: pci.CandidateDevices, kind: ShortageKind,
               cells: _CellChoice | None, alone: bool) -> DeviceShortage:
    demands = devices.devices.wanted
    near: int | None = None
    misses: tuple[NearMiss, ...] = ()
    local = cells is not None and cells.local
    # What all of them but the smallest request leave can be served.
    count = devices.requested - min(demand.count for demand in demands)
    if kind is ShortageKind.NUMA and cells is not None:
        near = _best_cells(devices, cells)
        count = min(free(devices, functools.partial(
            _suits, devices.devices, near, local)), devices.requested - 1)
    elif kind is ShortageKind.TOO_FEW:
        count = free(devices)
        if cells is not None:
            near = devices.devices.host.all_cells
    if kind in (ShortageKind.NUMA, ShortageKind.TOO_FEW):
        misses = merge(list(_misses(devices, near, local)))
    return DeviceShortage(kind, tuple([
        need._replace(policy='' if kind is not ShortageKind.NUMA
                      else STRICT if local else demand.policy)
        for need, demand in zip(needs(devices), demands)]),
        count, misses, alone)


def needs(devices: pci.CandidateDevices) -> list[DeviceNeed]:
    """Return all requests, without their policies."""
    return [DeviceNeed(demand.count, demand.noun, demand.alias,
                       demand.physical_network, demand.trusted)
            for demand in devices.devices.wanted]


def _suits(devices: pci.HostDevices, cells: int, local: bool,
           demand: pci.Demand, pool: ty.Any) -> bool:
    if local:
        return bool(pool.near & cells) or len(devices.host.cells) == 1
    match demand.policy:
        case pci.PREFERRED:
            return True
        case pci.LEGACY:
            return pool.unknown or bool(pool.near & cells)
        case pci.SOCKET:
            return bool(pool.near & (cells | devices.same_socket(cells)))
    return bool(pool.near & cells)


def free(devices: pci.CandidateDevices,
         suits: Callable[[pci.Demand, ty.Any], bool] = lambda demand,
         pool: True) -> int:
    """Count the free devices that suit one of the requests, each once."""
    counts = {
        pool.index: devices.devices.counts[pool.index]
        for number, (demand, pools) in enumerate(
            zip(devices.devices.wanted, devices.devices.matched))
        for pool in pools if pool.usable and suits(demand, pool)
        and _may_be_granted(devices, number, pool.provider)}
    return sum(counts.values())


def _may_be_granted(devices: pci.CandidateDevices, number: int,
                    provider: str | None) -> bool:
    granted = devices.granted(number)
    return not granted or provider in granted


def _best_cells(devices: pci.CandidateDevices, cells: _CellChoice) -> int:
    """Return the host cells with most of the devices that may be chosen."""
    masks = cells.masks
    union = functools.reduce(operator.or_, masks)
    best = 0
    for _cell in masks:
        if not (rest := candidates.bits(union & ~best)):
            break
        best |= max((1 << bit for bit in rest), key=lambda bit: free(
            devices, functools.partial(
                _suits, devices.devices, best | bit, cells.local)))
    return best


def _misses(devices: pci.CandidateDevices, cells: int | None,
            local: bool) -> Iterator[NearMiss]:
    """Yield the free devices that lack one property, pool by pool."""
    host_devices = devices.devices
    seen = set()
    for number, demand in enumerate(host_devices.wanted):
        places = {pool.index: pool for pool in host_devices.matched[number]}
        for index, (pool, count) in enumerate(
                zip(host_devices.pools, host_devices.counts)):
            if not count or not _may_be_granted(
                    devices, number, pool.get('rp_uuid')):
                continue
            lacks = min((list(_lacks(demand, dict(spec), pool))
                         for spec in demand.specs), key=len, default=[])
            place = places.get(index) or host_devices.place(index, demand)
            if cells is not None and not _suits(
                    host_devices, cells, local, demand, place):
                lacks.append(_far(host_devices, demand, pool, place, local))
            if len(lacks) != 1:
                continue
            miss = lacks[0]._replace(count=count)
            if (index, miss.kind, miss.wanted) not in seen:
                seen.add((index, miss.kind, miss.wanted))
                yield miss


def _far(devices: pci.HostDevices, demand: pci.Demand, pool: Mapping,
         place: ty.Any, local: bool) -> NearMiss:
    policy = STRICT if local else demand.policy
    miss = NearMiss(MissKind.OTHER_NODE, 0, _noun(pool), policy)
    if not place.near:
        return miss._replace(kind=MissKind.NODE_UNKNOWN)
    if policy == pci.SOCKET:
        miss = miss._replace(
            kind=MissKind.OTHER_SOCKET if devices.same_socket(place.near)
            else MissKind.SOCKET_UNKNOWN)
    return miss._replace(found=(str(pool.get('numa_node')),))


def _lacks(demand: pci.Demand, spec: Mapping,
           pool: Mapping) -> Iterator[NearMiss]:
    """Yield the properties of a spec that devices of a pool do not have."""
    noun = _noun(pool)
    missing = {name: value for name, value in spec.items()
               if not pci.property_matches(pool.get(name), value)}
    kind = pool.get('dev_type')
    if not demand.gives(kind) and 'dev_type' not in missing:
        missing['dev_type'] = spec.get('dev_type') or pci.VF
    if not demand.remote and pci.is_remote(pool):
        missing['remote_managed'] = False
    for name, value in missing.items():
        there = pool.get(name)
        yield NearMiss(
            _KINDS.get(name, MissKind.PROPERTY), 0,
            'device' if name == 'dev_type' else noun, str(value),
            () if there is None else (str(there).lower() if name in (
                'trusted', 'remote_managed', 'live_migratable')
                else str(there),), name if name not in _KINDS else '')


def _noun(pool: Mapping) -> str:
    return {pci.PF: pci.PF_NOUN, pci.VF: pci.VF_NOUN}.get(
        pool.get('dev_type', ''), pci.DEVICE_NOUN)
