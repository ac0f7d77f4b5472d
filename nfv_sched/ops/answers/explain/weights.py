# SPDX-License-Identifier: Apache-2.0

"""Explain how Nova orders the hosts that passed, and which weigher decides."""

from collections.abc import Sequence

from nfv_sched.ops.answers.explain import document
from nfv_sched.ops.answers.explain import scheduling
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.simulator import nova_internals

CONF = nova_internals.CONF

_Weights = Sequence[document.HostWeight]


def explain(
    scheduling_round: scheduling.SchedulingRound, read_at: str = '',
) -> document.HostOrder | None:
    """Explain the order of the hosts; return None if none passed.

    :param read_at: when the cloud was read
    """
    hosts = scheduling_round.passed
    if not hosts:
        return None
    weighers = list(map(_weights, scheduling_round.weighers))
    totals = _totals(hosts, weighers)
    order = sorted(range(len(hosts)), key=lambda i: totals[i], reverse=True)
    best = {hosts[i] for i in order if totals[i] == totals[order[0]]}

    def first_without(number: int) -> str | None:
        rest = _totals(hosts, weighers[:number] + weighers[number + 1:])
        most = max(rest)
        first = [host for host, total in zip(hosts, rest) if total == most]
        return None if best & set(first) else first[0]

    return document.HostOrder(
        hosts=tuple(document.HostTotal(host=hosts[i], weight=totals[i])
                    for i in order),
        weighers=tuple(document.WeigherWeights(
            weigher=type(weighed.weigher).__name__,
            weights=tuple(weights[i] for i in order),
            first_without_it=first_without(number))
            for number, (weighed, weights) in enumerate(zip(
                scheduling_round.weighers, weighers))),
        equal_hosts=len(best),
        host_subset_size=CONF.filter_scheduler.host_subset_size,
        read_at=read_at or None, age_seconds=snapshot.age(read_at))


def _weights(weighed: scheduling.Weighed) -> _Weights:
    normal = nova_internals.normalize_weights(
        list(weighed.raw), minval=weighed.weigher.minval,
        maxval=weighed.weigher.maxval)
    return [document.HostWeight(host=host, raw=raw, normalized=normalized,
                                multiplier=multiplier,
                                weight=multiplier * normalized)
            for host, raw, normalized, multiplier in zip(
                weighed.hosts, weighed.raw, normal, weighed.multipliers)]


def _totals(hosts: Sequence[str], weighers: Sequence[_Weights]) -> list[float]:
    totals = [0.0] * len(hosts)
    # In the order of Nova, as sums of floats depend on it.
    for weights in weighers:
        for i, weight in enumerate(weights):
            totals[i] += weight.weight
    return totals
