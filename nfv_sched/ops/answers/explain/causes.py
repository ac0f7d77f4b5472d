# SPDX-License-Identifier: Apache-2.0
"""Find the few causes that keep a request off all hosts, and tell them.

Most hosts fail several requirements.  The cause is chosen that most of them
have in common, then that of most of the others: so the sentence is about the
cloud, and not about each host.
"""

from collections.abc import Hashable, Iterator, Sequence
import dataclasses
import typing as ty

import os_traits

from nfv_sched.base import device_shortage
from nfv_sched.base import reasons
from nfv_sched.ops.answers.explain import document
from nfv_sched.ops.cloud import scenario
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.model.verdicts import values

# Of causes of equally many hosts, the first of these is told.
_ORDER = ty.get_args(document.CauseKind)

_Resource = reasons.Resource
# Resources on NUMA nodes, after an amount.
_NOUNS = {
    _Resource.PAGES: 'MiB of free memory in pages of {}',
    _Resource.MEMORY: 'MiB of free memory',
    _Resource.DEDICATED_CPUS: 'free dedicated CPUs',
    _Resource.SHARED_CPUS: 'shared CPUs',
    _Resource.CPU_THREADS: 'free CPUs under the thread policy',
    _Resource.SHARED_VCPUS: 'free shared vCPUs',
    _Resource.MEMORY_RATIO: 'MiB of memory within the RAM allocation ratio',
    _Resource.NUMA_NODES: 'NUMA nodes',
    _Resource.PCI_DEVICES: 'free {}s',
    _Resource.VSWITCH_PORTS: 'vSwitch ports',
    _Resource.SECURITY_RULES: 'security-group rules',
}


@dataclasses.dataclass(frozen=True, slots=True)
class _Failure:
    """A failure of one host, which others may have, too."""

    host: document.HostVerdict
    kind: document.CauseKind
    detail: Hashable = None  #: equal for equal failures of a kind
    lack: values.PlacementLack | None = None
    refusal: values.HostRefusal | None = None

    @property
    def key(self) -> Hashable:
        return self.kind, self.detail

    @property
    def shortage(self) -> reasons.Shortage | None:
        """The missing resource, if it is one of NUMA nodes."""
        return self.refusal and self.refusal.lacks

    @property
    def order(self) -> tuple[int, int]:
        shortage = self.shortage
        return _ORDER.index(self.kind), (
            len(shortage.places + shortage.beside) if shortage else 0)

    @property
    def distance(self) -> tuple[float, int]:
        """The missing part, to be compared; then the rank, higher first."""
        if self.refusal is not None:
            return self.refusal.missing, -self.refusal.rank
        return (self.lack.missing if self.lack else 1.0), 0

    def is_implied_by(self, other: '_Failure') -> bool:
        """Return whether a host that has the other has this one, too."""
        mine, less = self.shortage, other.shortage
        return self.key == other.key or (
            self.kind == other.kind == 'shortage'
            and mine is not None and less is not None
            and less.is_implied_by(mine))


def find(hosts: Sequence[document.HostVerdict],
         networks: Sequence[snapshot.Network]
         ) -> tuple[document.RefusalCause, ...]:
    """Return the causes that keep a request off hosts.

    A host counts for one cause only, and hosts that fail nothing for none.

    :param networks: the network of each port of the request
    """
    failures = [each for host in hosts for each in _failures(host)]
    kinds = {each.key: each for each in failures}
    affected = {
        key: {other.host.host for other in failures
              if failure.is_implied_by(other)}
        for key, failure in kinds.items()}
    unexplained = {each.host.host for each in failures}
    causes = []
    # The cause of most hosts first, then of most that are left: few sentences
    # for all hosts.
    while unexplained:
        key = min(affected, key=lambda key: (
            -len(unexplained & affected[key]), kinds[key].order))
        explained = unexplained & affected[key]
        concerned = [each for each in failures if each.host.host in explained]
        # Every host of the others lacks it, too, but by a smaller need.
        alike = [each for each in concerned if each.key == key] or [
            each for each in concerned if kinds[key].is_implied_by(each)][:1]
        causes.append(_cause(alike, len(explained), len(hosts), networks))
        unexplained -= explained
    return tuple(causes)


def _failures(host: document.HostVerdict) -> Iterator[_Failure]:
    for lack in host.placement_lacks:
        if (need := lack.need) is None:
            yield _Failure(host, 'cut-off')
        elif need.kind == 'forbidden_trait' and need.traits == (
                os_traits.COMPUTE_STATUS_DISABLED,):
            yield _Failure(host, 'disabled', lack=lack)
        else:
            yield _Failure(host, 'placement', need.text, lack)
    for refusal in host.refusals:
        yield _Failure(host, *_kind_of(refusal), refusal=refusal)
    if not host.failures and host.removed_by and not host.passes:
        yield _Failure(host, 'filter', host.removed_by,
                       refusal=values.refusal(host.removed_by))


def _kind_of(
    refusal: values.HostRefusal,
) -> tuple[document.CauseKind, Hashable]:
    shortage = refusal.lacks
    if refusal.raised:
        return 'error', (refusal.filter, refusal.why)
    if refusal.kind == 'request':
        return 'request', refusal.why
    if refusal.kind is not None:
        # The service is disabled for Placement and for the filter.
        return ty.cast(document.CauseKind, refusal.kind), None
    if shortage is None or shortage.of_limit:
        return 'filter', (refusal.filter, refusal.key, refusal.need)
    return 'deployment' if shortage.lacks_node else 'shortage', (
        shortage.amount, shortage.places, shortage.beside,
        shortage.devices and shortage.devices.requests)


def _cause(alike: Sequence[_Failure], count: int, hosts: int,
           networks: Sequence[snapshot.Network]) -> document.RefusalCause:
    """Return a cause of ``count`` hosts, of all ``hosts``."""
    nearest = min(alike, key=lambda each: each.distance)
    shortage, lack = nearest.shortage, nearest.lack
    cause = document.RefusalCause(
        text='', kind=nearest.kind, hosts=count,
        nearest_host=nearest.host.host, nearest_host_id=nearest.host.host_id,
        filters=tuple(dict.fromkeys(
            each.refusal.filter for each in alike if each.refusal)),
        need=lack and lack.need, free=lack and lack.free,
        refusal=_name_networks(nearest.refusal, networks),
        places=tuple(map(str, shortage.places)) if shortage else (),
        physical_networks=tuple(dict.fromkeys(
            network.physnet for network in networks if network.physnet))
        if shortage and reasons.Place.NETWORKS in shortage.places else ())
    if count == 1:
        which = f'{"" if hosts > 1 else "The only host, "}{cause.nearest_host}'
    elif count == hosts:
        which = 'Both hosts' if hosts == 2 else f'All {hosts} hosts'
    else:
        which = f'{count} of {hosts} hosts'
    return dataclasses.replace(cause, text=f'{which}: {_text(cause, lack)}.')


def _name_networks(refusal: values.HostRefusal | None,
                   networks: Sequence[snapshot.Network]
                   ) -> values.HostRefusal | None:
    if refusal is None or not (refusal.lacks and refusal.lacks.devices):
        return refusal
    devices = refusal.lacks.devices
    shortage = refusal.lacks._replace(devices=devices._replace(needs=tuple([
        need if need.alias else need._replace(networks=tuple(dict.fromkeys(
            network.name for network in networks
            if network.vnic_type not in (None, scenario.NORMAL)
            and (network.physnet or '') == need.physical_network)))
        for need in devices.needs])))
    return dataclasses.replace(
        refusal, lacks=shortage, shortage=values.resource_shortage(shortage))


def _text(cause: document.RefusalCause,
          lack: values.PlacementLack | None) -> str:
    refusal = cause.refusal
    match cause.kind:
        case 'disabled' | 'down':
            return f'the compute service is {cause.kind}'
        case 'unmapped':
            return 'not mapped to a cell'
        case 'reserved':
            return 'reserved by Blazar'
        case 'cut-off':
            return ('[scheduler] max_placement_results leaves them out of the '
                    'answer of Placement')
        case 'placement':
            return _placement(cause, lack.text)
        case 'request':
            return f'the request itself is wrong: {refusal.why}'
        case 'error':
            return f'{refusal.filter} {refusal.why}'
        case 'deployment':
            return f'no NUMA node is{_place_text(cause)}'
        case 'shortage':
            return _shortage(cause, refusal)
    who = f'{refusal.filter} refuses' + (
        f' for {refusal.key}' if refusal.key else '')
    if not refusal.why:
        return who
    example = f', {cause.nearest_host} for example' if cause.hosts > 1 else ''
    return f'{who}{example}: {refusal.why}'


def _placement(cause: document.RefusalCause, missing: str) -> str:
    need, free = cause.need, cause.free
    match need.kind:
        case 'unknown':
            return need.text
        case 'resource':
            (name, amount), = need.resources.items()
            text = f'{amount} {name} needed by Placement'
            if free is None:
                return f'{text}, none has any' if cause.hosts > 1 else (
                    f'{text}, it has none')
            if free >= amount:
                return f'{text}, which it does not grant at once'
            return f'{text}, {_nearest_text(cause)} has {free}'
        case 'trait':
            return f'no trait {need.traits[0]}'
        case 'forbidden_trait':
            return f'the trait {need.traits[0]}, which is forbidden'
        case 'aggregate':
            return f'not in aggregate {" or ".join(need.aggregates)}'
        case 'forbidden_aggregate':
            return f'in aggregate {" or ".join(need.aggregates)}'
        case 'tree':
            return f'not host {need.host}'
    return missing or need.text


def _shortage(cause: document.RefusalCause,
              refusal: values.HostRefusal) -> str:
    shortage = refusal.lacks
    amount, devices = shortage.amount, shortage.devices
    if amount.resource is _Resource.PAGE_SIZE:
        return refusal.why or ''
    need = _amount_text(amount) if devices is None else (
        device_shortage.needs_text(devices.needs, 'free '))
    place = ' on one NUMA node' if shortage.of_node else ''
    if beside := ' and '.join(map(_amount_text, shortage.beside)):
        beside = f' that also has {beside}' if (
            amount.resource is not _Resource.NUMA_NODES) else (
                f' with {beside}{" each" if amount.needed > 1 else ""}')
    text = f'{need}{place}{_place_text(cause)}{beside} needed'
    if devices is None:
        return f'{text}, {_nearest_text(cause)} has {shortage.free or "none"}'
    nearest = f' on {cause.nearest_host}' if cause.hosts > 1 else ''
    return (f'{text}{device_shortage.policy_text(devices)}, '
            f'{device_shortage.free_text(devices, nearest, True)}')


def _amount_text(amount: reasons.Amount) -> str:
    noun = _NOUNS[amount.resource].format(amount.noun)
    return f'{amount.needed} ' + (
        noun.removesuffix('s') if amount.needed == 1 else noun)


def _nearest_text(cause: document.RefusalCause) -> str:
    return (f'the nearest host, {cause.nearest_host},' if cause.hosts > 1
            else 'it')


def _place_text(cause: document.RefusalCause) -> str:
    names = ' and '.join(cause.physical_networks)
    return reasons.where(
        f'near {names}' if place == reasons.Place.NETWORKS and names else place
        for place in cause.places)


def deployment(cause: document.RefusalCause) -> str:
    """Return what helps against a cause that is how hosts are deployed."""
    refusal = cause.refusal
    change = f'another {refusal.policy}' if (
        refusal.policy_value is not None) else (
            'more guest NUMA nodes (hw:numa_nodes)')
    return ('That is how they are deployed: no smaller flavor and no emptier '
            f'host helps, only {change}, other networks, or hosts with all of '
            'this on one NUMA node.')
