# SPDX-License-Identifier: Apache-2.0
"""Hold why the PCI devices of a host are too few, and write it as text.

:mod:`nfv_sched.fit.numa.pci_shortage` works it out of the pools of a host.
"""

from collections.abc import Iterable, Sequence
import enum
import typing as ty

from nfv_sched.base import strings

#: The policy ``nfv:pci_numa_affinity=strict``, beside Nova's own.
STRICT = 'strict'


class ShortageKind(enum.StrEnum):
    #: The host has fewer free devices than are needed.
    TOO_FEW = 'too_few'
    #: Only a PF and VFs of the same card are left: who takes the PF takes its
    #: VFs.
    ONE_CARD = 'one_card'
    #: The host has enough, but not on NUMA nodes that suit the NUMA policy.
    NUMA = 'numa'
    #: There are enough, but Nova gives an earlier request what a later one
    #: needs.
    ORDER = 'order'
    #: Placement has granted devices that do not serve the requests.
    GRANTED = 'granted'


class MissKind(enum.StrEnum):
    TYPE = 'type'
    PHYSICAL_NETWORK = 'physical_network'
    TRUSTED = 'trusted'
    #: The NUMA node of the devices is not known.
    NODE_UNKNOWN = 'node_unknown'
    OTHER_NODE = 'other_node'
    OTHER_SOCKET = 'other_socket'
    #: The host does not report the sockets of its NUMA nodes.
    SOCKET_UNKNOWN = 'socket_unknown'
    LIVE_MIGRATABLE = 'live_migratable'
    REMOTE_MANAGED = 'remote_managed'
    #: Another property that the alias names.
    PROPERTY = 'property'
    #: Reserved in Placement, where they are counted by resource class; only
    #: a snapshot knows.
    RESERVED = 'reserved'


class DeviceNeed(ty.NamedTuple):
    """A PCI request that cannot be served together with the others."""

    count: int
    noun: str
    alias: str = ''  #: name of the alias; empty for a port
    physical_network: str = ''  #: that of a port; empty if it has none
    trusted: bool = False
    policy: str = ''  #: NUMA policy that counts: one of Nova's, or ``STRICT``
    #: names of the networks that such a port may be on; empty in
    #: nova-scheduler, which knows none
    networks: tuple[str, ...] = ()


class NearMiss(ty.NamedTuple):
    """Free devices that lack exactly one property."""

    kind: MissKind
    count: int
    noun: str  #: name of such devices; the resource class of those reserved
    #: value of the property that is asked for; the policy for NUMA nodes and
    #: sockets
    wanted: str = ''
    #: values that the devices have; numbers of NUMA nodes for those
    found: tuple[str, ...] = ()
    name: str = ''  #: name of the property, of kind ``PROPERTY``


class DeviceShortage(ty.NamedTuple):
    """The smallest set of PCI requests that a host cannot serve."""

    kind: ShortageKind
    needs: tuple[DeviceNeed, ...]
    free: int  #: number of devices that it can be given at most
    #: free devices that lack one property for one of the requests
    misses: tuple[NearMiss, ...] = ()
    #: whether the devices would not do on an empty host, either: no CPUs or
    #: memory of NUMA nodes are missing
    alone: bool = True

    @property
    def needed(self) -> int:
        return sum(need.count for need in self.needs)

    @property
    def noun(self) -> str:
        nouns = {need.noun for need in self.needs}
        return nouns.pop() if len(nouns) == 1 else 'PCI device'

    @property
    def policies(self) -> tuple[str, ...]:
        return tuple(sorted({need.policy for need in self.needs
                             if need.policy}))

    @property
    def requests(self) -> tuple[DeviceNeed, ...]:
        """The requests without their numbers, to be compared."""
        return tuple(sorted({need._replace(count=0) for need in self.needs}))


def needs_text(needs: Iterable[DeviceNeed], free: str = '') -> str:
    """Return the devices of some requests: "2 VFs on physnet data"."""
    groups: dict[tuple[str, str], list[DeviceNeed]] = {}
    for need in needs:
        noun = f'trusted {need.noun}' if need.trusted else need.noun
        network = need.physical_network
        suffix = f' on physnet {network}' if network else ''
        groups.setdefault((noun, suffix), []).append(need)
    texts = []
    for (noun, suffix), alike in groups.items():
        names = ', '.join(dict.fromkeys(
            name for need in alike for name in (need.alias, *need.networks)
            if name))
        texts.append(
            strings.count(sum(need.count for need in alike), f'{free}{noun}')
            + suffix + (f' ({names})' if names else ''))
    return ' and '.join(texts)


def policy_text(shortage: DeviceShortage) -> str:
    policies = [policy for policy in shortage.policies if policy != STRICT]
    return f' under PCI NUMA policy {", ".join(policies)}' if policies else ''


def free_text(shortage: DeviceShortage, where: str = '',
              advise: bool = False) -> str:
    """Return what is free, and near misses; ``where`` begins with a space."""
    parts = [f'{shortage.free} free{where}']
    several = len({need.alias for need in shortage.needs}) > 1
    match shortage.kind:
        case ShortageKind.TOO_FEW if several and shortage.free:
            parts[0] += ': they are the same device' + (
                's' if shortage.free > 1 else '')
        case ShortageKind.ONE_CARD:
            parts = ['only a PF and VFs of the same card are free: taking the '
                     'PF takes its VFs']
        case ShortageKind.ORDER:
            parts = ['Nova gives those free to the other request first'
                     if len(shortage.needs) > 1 else
                     'Nova counts others that it does not give']
        case ShortageKind.GRANTED:
            parts = ['Placement grants devices that do not serve them']
    return '; '.join([*parts, *(
        miss_text(miss) + (f' ({remedy(miss)})' if advise else '')
        for miss in shortage.misses)])


def miss_text(miss: NearMiss) -> str:
    devices = strings.count(miss.count, f'free {miss.noun}')
    are = 'is' if miss.count == 1 else 'are'
    have = 'has' if miss.count == 1 else 'have'
    values = ', '.join(miss.found)
    match miss.kind:
        case MissKind.TYPE:
            return f'{devices} {are} {values}, not {miss.wanted}'
        case MissKind.PHYSICAL_NETWORK:
            return f'{devices} {are} on ' + (
                f'physnet {values}' if values else 'no physnet')
        case MissKind.TRUSTED:
            return f'{devices} {are} not trusted'
        case MissKind.NODE_UNKNOWN:
            return f'the NUMA node of {devices} is not known'
        case MissKind.OTHER_NODE | MissKind.OTHER_SOCKET:
            nodes = 'node' if len(miss.found) == 1 else 'nodes'
            return f'{devices} {are} on NUMA {nodes} {values}' + (
                ', another socket' if miss.kind is MissKind.OTHER_SOCKET
                else '')
        case MissKind.SOCKET_UNKNOWN:
            return f'the socket of {devices} is not known'
        case MissKind.LIVE_MIGRATABLE:
            return f'{devices} {have} live_migratable {values or "unset"}'
        case MissKind.REMOTE_MANAGED:
            return f'{devices} {are} ' + (
                'remote-managed' if values == 'true' else 'not remote-managed')
        case MissKind.RESERVED:
            return f'{miss.count} {miss.noun} {are} reserved in Placement'
    return (f'{devices} {have} {miss.name} {values or "unset"}, '
            f'not {miss.wanted}')


def remedy(miss: NearMiss) -> str:
    match miss.kind:
        case MissKind.TYPE:
            if miss.wanted == 'type-PF' and 'type-PCI' in miss.found:
                return ('enable SR-IOV in the firmware, or ask for '
                        'device_type type-PCI in [pci] alias')
            return 'correct device_type in [pci] alias, or vnic_type of ports'
        case MissKind.PHYSICAL_NETWORK:
            return ('correct physical_network in [pci] device_spec of the '
                    'host, or that of the network')
        case MissKind.TRUSTED:
            return ('set trusted in [pci] device_spec of the host, or use '
                    'ports that need not be trusted')
        case MissKind.NODE_UNKNOWN:
            return ('let the firmware report the NUMA node, or use the PCI '
                    'NUMA policy legacy or preferred')
        case MissKind.OTHER_NODE:
            return ('use devices of the other NUMA node, or the PCI NUMA '
                    'policy preferred')
        case MissKind.OTHER_SOCKET | MissKind.SOCKET_UNKNOWN:
            return 'use the PCI NUMA policy preferred'
        case MissKind.LIVE_MIGRATABLE:
            return 'correct live_migratable in [pci] device_spec or alias'
        case MissKind.REMOTE_MANAGED:
            return 'correct remote_managed in [pci] device_spec'
        case MissKind.RESERVED:
            return 'lower reserved of the inventory in Placement'
    return f'correct {miss.name} in [pci] alias or device_spec'


def merge(misses: Sequence[NearMiss]) -> tuple[NearMiss, ...]:
    """Add up near misses that are alike, in the order of their kinds."""
    counts: dict[tuple, list[NearMiss]] = {}
    for miss in misses:
        counts.setdefault((
            list(MissKind).index(miss.kind), miss.noun, miss.wanted,
            miss.name), []).append(miss)
    return tuple([alike[0]._replace(
        count=sum(miss.count for miss in alike),
        found=tuple(sorted({value for miss in alike for value in miss.found})))
        for _key, alike in sorted(counts.items())])
