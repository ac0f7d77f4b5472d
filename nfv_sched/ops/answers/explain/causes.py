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

_DISABLED = os_traits.COMPUTE_STATUS_DISABLED
# Of causes of equally many hosts, the first of these is told.
_ORDER = ty.get_args(document.CauseKind)


@dataclasses.dataclass(frozen=True, slots=True)
class _Failure:
    """A failure of one host, which others may have, too."""

    host: document.HostVerdict
    kind: document.CauseKind
    detail: Hashable = None  #: equal for equal failures of a kind
    missing: float = 1.0  #: the missing part of the resource, 0 to 1
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
        each = _cause(alike, len(explained), networks)
        causes.append(dataclasses.replace(
            each, text=sentences.cause(each, len(hosts))))
        unexplained -= explained
    return tuple(causes)


def _cause(alike: Sequence[_Failure], hosts: int,
           networks: Sequence[snapshot.Network]) -> document.RefusalCause:
    """Return a cause, without its text."""
    nearest = min(alike, key=lambda each: (
        each.missing, -(each.refusal.rank if each.refusal else 0)))
    shortage, lack = nearest.shortage, nearest.lack
    return document.RefusalCause(
        text='', kind=nearest.kind, hosts=hosts,
        nearest_host=nearest.host.host, nearest_host_id=nearest.host.host_id,
        filters=tuple(dict.fromkeys(
            each.refusal.filter for each in alike if each.refusal)),
        need=lack and lack.need, free=lack and lack.free,
        refusal=_name_networks(nearest.refusal, networks),
        places=tuple(map(str, shortage.places)) if shortage else (),
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


def _failures(host: document.HostVerdict) -> Iterator[_Failure]:
    """Yield what a host fails, Placement first."""
    for lack in host.placement_lacks:
        need = lack.need
        if need is None:
            yield _Failure(host, 'cut-off')
        elif need.kind == 'forbidden_trait' and need.traits == (_DISABLED,):
            yield _Failure(host, 'disabled', lack=lack)
        else:
            needed = sum(need.resources.values())
            missing = 1.0 if lack.free is None or not needed else (
                max(needed - lack.free, 0) / needed)
            yield _Failure(host, 'placement', need.text, missing, lack)
    for refusal in host.refusals:
        kind, detail = _kind_of(refusal)
        yield _Failure(host, kind, detail, refusal.missing, refusal=refusal)
    if not host.failures and host.removed_by and not host.passes:
        yield _Failure(host, 'filter', host.removed_by,
                       refusal=values.refusal(host.removed_by))


def _kind_of(
    refusal: values.HostRefusal,
) -> tuple[document.CauseKind, Hashable]:
    """Return the kind of a failure, and its detail."""
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
