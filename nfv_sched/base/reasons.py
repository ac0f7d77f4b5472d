# SPDX-License-Identifier: Apache-2.0
"""Hold the reasons of refusals, and write texts of them when they are read.

A reason names the policy, the requirement, and what the host had instead.
"""

from collections.abc import Callable, Iterable, Sequence
import enum
import typing as ty

from nfv_sched.base import device_shortage
from nfv_sched.base import strings

NONE = 'none'
POLICY = 'policy'
SUMMARY = 'summary'
HOSTS = 'hosts'

# Nova keeps 255 bytes of a fault's message, and puts its own sentence first.
_FAULT_BYTES = 255
_NOVA_SENTENCE = 'No valid host was found. '
MAX_BYTES = _FAULT_BYTES - len(_NOVA_SENTENCE)

# The order in which reasons are given: first mistakes in the request, then
# missing data and capacity of the host, then the policies. Each rule has a
# number of its own between CAPACITY and OTHERS.
REQUEST = 0
HOST = 1
CAPACITY = 2
# Rules of other packages.
OTHERS = 90
ENFORCEMENT = 91
VSWITCH_PORTS = 92
SECURITY_RULES = 93


class Resource(enum.StrEnum):
    NUMA_NODES = 'numa_nodes'
    #: Memory in pages of the requested size.
    PAGES = 'pages'
    #: Pages of a size that the host has, and of which the memory is a
    #: multiple.
    PAGE_SIZE = 'page_size'
    MEMORY = 'memory'
    DEDICATED_CPUS = 'dedicated_cpus'
    SHARED_CPUS = 'shared_cpus'
    #: Dedicated CPUs under the thread policy.
    CPU_THREADS = 'cpu_threads'
    #: Shared vCPUs that the CPU allocation ratio leaves.
    SHARED_VCPUS = 'shared_vcpus'
    #: Memory that the RAM allocation ratio leaves.
    MEMORY_RATIO = 'memory_ratio'
    PCI_DEVICES = 'pci_devices'
    #: Ports of the virtual switch that the limit of the host leaves.
    VSWITCH_PORTS = 'vswitch_ports'
    #: Rules that the limit of the host leaves.
    SECURITY_RULES = 'security_rules'


_LIMITED = (Resource.VSWITCH_PORTS, Resource.SECURITY_RULES)
_OF_HOSTS = (*_LIMITED, Resource.NUMA_NODES)


class Place(enum.StrEnum):
    """Property of NUMA nodes that comes from the request, not from a rule."""

    NETWORKS = 'near the networks of the request'
    DEVICES = 'near the PCI devices of the request'


class Amount(ty.NamedTuple):
    resource: Resource
    needed: int  #: MiB for memory
    #: name of the PCI devices, or of the pages; empty for other resources
    noun: str = ''

    def is_part_of(self, other: 'Amount') -> bool:
        return (self.resource == other.resource and self.noun == other.noun
                and self.needed <= other.needed)


class Shortage(ty.NamedTuple):
    amount: Amount  #: the resource, and the amount that is needed
    #: amount on the closest of the NUMA nodes that may be chosen
    free: int
    #: properties of the NUMA nodes that may be chosen: each a :class:`Place`
    #: or the noun of a rule, "with the virtual switch"
    places: tuple[str, ...] = ()
    beside: tuple[Amount, ...] = ()  #: what the same NUMA nodes must have, too
    #: amount that an empty host may carry, by its limit; None for other
    #: resources, or if it has no limit
    most: int | None = None
    #: why there are too few PCI devices; None for other resources
    devices: device_shortage.DeviceShortage | None = None

    @property
    def of_node(self) -> bool:
        """Whether it is needed on one NUMA node, not just on one host."""
        if self.amount.resource is not Resource.PCI_DEVICES:
            return self.amount.resource not in _OF_HOSTS
        return bool(self.places or self.beside) or (
            self.devices is not None and
            self.devices.kind is device_shortage.ShortageKind.NUMA)

    @property
    def of_limit(self) -> bool:
        """Whether a limit of the operator leaves too little."""
        return self.amount.resource in _LIMITED

    @property
    def missing(self) -> float:
        """The part of the amount that is missing, from 0 to 1."""
        needed = self.amount.needed
        return max(needed - self.free, 0) / needed if needed else 1.0

    @property
    def lacks_node(self) -> bool:
        """Whether no NUMA node has these properties, however empty it is."""
        return bool(self.places) and self.amount == (
            Resource.NUMA_NODES, 1, '')

    def is_implied_by(self, other: 'Shortage') -> bool:
        if self.devices is not None and other.devices is not None and (
                self.devices.requests != other.devices.requests):
            return False
        return frozenset(self.places) <= frozenset(other.places) and all(
            any(mine.is_part_of(each)
                for each in (other.amount, *other.beside))
            for mine in (self.amount, *self.beside))


def where(places: Iterable[str]) -> str:
    text = ' and '.join(places)
    return f' {text}' if text else ''


class Reason(ty.NamedTuple):
    #: position among the reasons of a request: ``REQUEST``, ``HOST``, ...
    order: int
    #: the policy that refused: the extra spec with its value, or words
    policy: str
    #: the requirement, with nothing about the host: tenants read it
    need: str
    have: str = ''  #: what the host had; may be empty
    #: how close the host came to the requirement; higher is closer
    rank: int = 0
    #: the request or the configuration lacks something, and ``have`` contains
    #: nothing about a host: the tenant may read it, too
    own: bool = False
    #: the resource that is missing; None if it is none
    shortage: Shortage | None = None

    @property
    def missing(self) -> float:
        """The missing part of the resource; 1 if it is about none."""
        return 1.0 if self.shortage is None else self.shortage.missing

    def __str__(self) -> str:
        return f'{self.policy}: {text(self)}'


def text(reason: Reason) -> str:
    return f'{reason.need}, {reason.have}' if reason.have else reason.need


def devices_reason(shortage: device_shortage.DeviceShortage, order: int,
                   policy: str, where: str = '',
                   places: Sequence[str] = ()) -> Reason:
    """Return the reason for PCI devices; ``where`` begins with a space."""
    amount = Amount(Resource.PCI_DEVICES, shortage.needed, shortage.noun)
    return Reason(
        order, policy,
        f'{device_shortage.needs_text(shortage.needs)}{where} needed'
        f'{device_shortage.policy_text(shortage)}',
        device_shortage.free_text(shortage), shortage.free,
        shortage=Shortage(amount, shortage.free, tuple(places),
                          devices=shortage))


Lazy = Reason | Callable[[], Reason]


def resolve(reason: Lazy) -> Reason:
    """Return the reason itself; a function works it out each time."""
    return reason if isinstance(reason, Reason) else reason()


def _clip(text: str, limit: int = MAX_BYTES) -> str:
    """Shorten a text at a space to ``limit`` bytes, with "..." at its end."""
    if len(text.encode()) <= limit:
        return text
    raw = text.encode()[:limit - 3].decode(errors='ignore')
    head, _space, _tail = raw.rpartition(' ')
    return (head or raw).rstrip(',;: ') + '...'


def _joined(texts: Sequence[str], end: str = '', limit: int = MAX_BYTES,
            more: Callable[[int], str] = '{} more'.format) -> str:
    """Join as many texts as fit, with the number of the others."""
    for listed in range(len(texts), 0, -1):
        unlisted = len(texts) - listed
        text = '; '.join(texts[:listed]) + (
            f'; +{more(unlisted)}' if unlisted else '') + end
        if len(text.encode()) <= limit:
            return text
    return _clip(texts[0], limit - len(end)) + end if texts else ''


def summarise(refused: Iterable[Reason]) -> list[tuple[Reason, int]]:
    """Group reasons, one for each refused host, by policy and need.

    :returns: for each group, the reason of the host that came closest and the
        number of hosts; sorted by ``order``, then by most hosts
    """
    best: dict[tuple[int, str, str], tuple[Reason, int]] = {}
    for reason in refused:
        key = reason[:3]
        closest, count = best.get(key, (reason, 0))
        if reason.rank > closest.rank:
            closest = reason
        best[key] = (closest, count + 1)
    return sorted(best.values(), key=lambda item: (item[0].order, -item[1]))


def _without_implied(refused: Sequence[Reason]) -> list[Reason]:
    return [
        reason for reason in refused if reason.shortage is None or not any(
            other.shortage is not None and other is not reason
            and reason.shortage.is_implied_by(other.shortage)
            and (reason.order < other.order
                 or not other.shortage.is_implied_by(reason.shortage))
            for other in refused)]


def policy_text(refused: Iterable[Reason]) -> str:
    """Return the text for ``expose_reasons = policy``: policies and needs.

    It does not tell how many hosts there are, what they have, or which of them
    came closest: a tenant who knows the host could learn what other tenants
    run there.  A need that another need includes is left out.
    """
    # The order of the summary would show tenants what more hosts lack.
    sorted_reasons = sorted(
        _without_implied([reason for reason, _count in summarise(refused)]),
        key=lambda reason: (not reason.own, reason[:3]))
    for reason in sorted_reasons:
        if reason.order == REQUEST:
            return _clip(str(reason))
    texts = [str(reason) if reason.own else f'{reason.policy}: {reason.need}'
             for reason in sorted_reasons]
    lacking = sum(not reason.own for reason in sorted_reasons)
    return _joined(texts, {0: '', 1: ', no host has it'}.get(
        lacking, '; no host has all of it'))


def summary_text(refused: Iterable[Reason]) -> str:
    """Return the text for ``summary``: with the best host, unnamed."""
    parts = []
    for reason, count in summarise(refused):
        if reason.order == REQUEST:
            return _clip(str(reason))
        best = 'best host: ' if count > 1 and reason.have else ''
        text = f'{reason.policy}: {reason.need}'
        if reason.have:
            text += f', {best}{reason.have}'
        parts.append(f'{text} ({strings.count(count, "host")})')
    return _joined(parts)


def hosts_text(refused: Iterable[tuple[str, Reason]],
               limit: int = MAX_BYTES) -> str:
    """Return the text for ``hosts``: names and reasons, closest first."""
    parts = [f'{host}: {reason}' for host, reason in sorted(
        refused, key=lambda item: (item[1].missing, -item[1].rank))]
    return _joined(
        parts, limit=limit, more=lambda count: strings.count(count, 'host'))
