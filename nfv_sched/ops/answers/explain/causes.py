# SPDX-License-Identifier: Apache-2.0
"""Find the few causes that keep a request off all hosts.

Most hosts fail several requirements.  The cause is chosen that most of them
have in common, then that of most of the others: so the sentence is about the
cloud, and not about each host.
"""

from collections.abc import Hashable
from collections.abc import Iterator
from collections.abc import Sequence
import dataclasses
import typing as ty

import os_traits

from nfv_sched.base import reasons
from nfv_sched.ops.answers.explain import document
from nfv_sched.ops.answers.explain import sentences
from nfv_sched.ops.cloud import scenario
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.model.verdicts import values

_Kind = document.CauseKind
_KINDS = {
    values.RefusalKind.DISABLED: _Kind.DISABLED,
    values.RefusalKind.DOWN: _Kind.DOWN,
    values.RefusalKind.UNMAPPED: _Kind.UNMAPPED,
    values.RefusalKind.RESERVED: _Kind.RESERVED,
    values.RefusalKind.REQUEST: _Kind.REQUEST,
}
_DISABLED = os_traits.COMPUTE_STATUS_DISABLED
# Of causes of equally many hosts, the first of these is told.
_ORDER = tuple(_Kind)


@dataclasses.dataclass(frozen=True, slots=True)
class _Failure:
    """A failure of one host, which others may have, too."""

    kind: document.CauseKind
    key: Hashable  #: equal for equal failures
    missing: float = 1.0  #: the missing part of the resource, 0 to 1
    lack: values.PlacementLack | None = None
    refusal: values.HostRefusal | None = None

    @property
    def shortage(self) -> reasons.Shortage | None:
        """The missing resource, if it is one of NUMA nodes."""
        return None if self.refusal is None else self.refusal.lacks

    @property
    def rank(self) -> int:
        """The rank of the refusal; higher is closer."""
        return 0 if self.refusal is None else self.refusal.rank

    @property
    def conditions(self) -> int:
        shortage = self.shortage
        return len(shortage.places + shortage.beside) if shortage else 0


def find(hosts: Sequence[document.HostVerdict],
         networks: Sequence[snapshot.Network]
         ) -> tuple[document.RefusalCause, ...]:
    """Return the causes that keep a request off hosts.

    A host counts for one cause only, and hosts that fail nothing for none.

    :param networks: the network of each port of the request
    """
    failures = {host.host: tuple(_failures(host)) for host in hosts}
    ids = {host.host: host.host_id for host in hosts}
    kinds = {failure.key: failure for each in failures.values()
             for failure in each}
    affected = {key: [name for name, each in failures.items() if any(
        _is_implied_by(failure, other) for other in each)]
        for key, failure in kinds.items()}
    order = {key: (_ORDER.index(failure.kind), failure.conditions)
             for key, failure in kinds.items()}
    unexplained = {name for name, each in failures.items() if each}
    causes = []
    # The cause of most hosts first, then of most that are left: few sentences
    # for all hosts.
    while unexplained:
        key = min(affected, key=lambda key: (
            -len(unexplained.intersection(affected[key])), order[key]))
        names = [name for name in affected[key] if name in unexplained]
        each = _cause(key, names, failures, networks, ids)
        causes.append(dataclasses.replace(
            each, text=sentences.cause(each, len(hosts))))
        unexplained.difference_update(names)
    return tuple(causes)


def _cause(key: Hashable, names: Sequence[str],
           failures: ty.Mapping[str, Sequence[_Failure]],
           networks: Sequence[snapshot.Network],
           ids: ty.Mapping[str, str]) -> document.RefusalCause:
    """Return a cause, without its text."""
    alike = [(failure, name) for name in names for failure in failures[name]
             if failure.key == key]
    # Every host of the others lacks it, too, but by a smaller need.
    nearest, name = min(alike or [(failures[names[0]][0], names[0])],
                        key=lambda each: (each[0].missing, -each[0].rank))
    shortage, lack = nearest.shortage, nearest.lack
    return document.RefusalCause(
        text='', kind=ty.cast(ty.Any, nearest.kind), hosts=len(names),
        nearest_host=name, nearest_host_id=ids[name],
        filters=tuple(dict.fromkeys(
            failure.refusal.filter for failure, _name in alike
            if failure.refusal is not None)),
        need=None if lack is None else lack.need,
        free=None if lack is None else lack.free,
        refusal=_name_networks(nearest.refusal, networks),
        places=() if shortage is None else tuple(map(str, shortage.places)),
        physical_networks=tuple(dict.fromkeys(
            network.physnet for network in networks if network.physnet))
        if shortage and reasons.Place.NETWORKS in shortage.places else (),
        lack=lack)


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


def _is_implied_by(failure: _Failure, other: _Failure) -> bool:
    """Return whether a host that has the other failure has this one, too."""
    if failure.key == other.key:
        return True
    mine, less = failure.shortage, other.shortage
    return (failure.kind is other.kind is _Kind.SHORTAGE
            and mine is not None and less is not None
            and less.is_implied_by(mine))


def _failures(host: document.HostVerdict) -> Iterator[_Failure]:
    """Yield what a host fails, Placement first."""
    for lack in host.placement_lacks:
        need = lack.need
        if need is None:
            yield _Failure(_Kind.CUT, _Kind.CUT)
            continue
        if need.kind == 'forbidden_trait' and need.traits == (_DISABLED,):
            yield _Failure(_Kind.DISABLED, _Kind.DISABLED, lack=lack)
            continue
        needed = sum(need.resources.values())
        missing = 1.0 if lack.free is None or not needed else (
            max(needed - lack.free, 0) / needed)
        yield _Failure(_Kind.PLACEMENT, (_Kind.PLACEMENT, need.text), missing,
                       lack)
    for refusal in host.refusals:
        yield _failure_of_filter(refusal)
    if not host.failures and host.removed_by and not host.passes:
        yield _Failure(_Kind.FILTER, (_Kind.FILTER, host.removed_by),
                       refusal=values.refusal(host.removed_by))


def _failure_of_filter(refusal: values.HostRefusal) -> _Failure:
    shortage = refusal.lacks
    key: Hashable
    if refusal.raised:
        kind, key = _Kind.ERROR, (refusal.filter, refusal.why)
    elif refusal.kind in _KINDS:
        kind = _KINDS[refusal.kind]
        key = refusal.why if kind is _Kind.REQUEST else kind
    elif shortage is None or shortage.of_limit:
        kind, key = _Kind.FILTER, (
            refusal.filter, refusal.key, refusal.need)
    else:
        kind = _Kind.DEPLOYMENT if shortage.lacks_node else _Kind.SHORTAGE
        key = (shortage.amount, shortage.places, shortage.beside,
               shortage.devices and shortage.devices.requests)
    # The service is disabled for Placement and for the filter.
    return _Failure(kind, key if key is kind else (kind, key),
                    refusal.missing, refusal=refusal)
