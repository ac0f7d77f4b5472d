# SPDX-License-Identifier: Apache-2.0

"""Explain how Nova orders the hosts that passed, and which weigher decides."""

from collections.abc import Sequence

from nfv_sched.ops.answers.explain import document
from nfv_sched.ops.answers.explain import scheduling
from nfv_sched.ops.simulator import nova_internals

CONF = nova_internals.CONF


def explain(
    scheduling_round: scheduling.SchedulingRound,
) -> document.HostOrder | None:
    """Explain the order of the hosts; return None if none passed."""
    if not scheduling_round.passed:
        return None
    hosts = scheduling_round.passed
    weighers = [(type(each.weigher).__name__, _weights(each))
                for each in scheduling_round.weighers]
    totals = _totals(hosts, [weights for _name, weights in weighers])
    order = sorted(range(len(hosts)), key=lambda i: totals[i], reverse=True)
    best = {hosts[i] for i in order if totals[i] == totals[order[0]]}
    return document.HostOrder(
        hosts=tuple(document.HostTotal(host=hosts[i], weight=totals[i])
                    for i in order),
        weighers=tuple(document.WeigherWeights(
            weigher=name, weights=tuple(weights[i] for i in order),
            first_without_it=_first_without(hosts, best, [
                other_weights for other, (_name, other_weights)
                in enumerate(weighers)
                if other != number]))
            for number, (name, weights) in enumerate(weighers)),
        equal_hosts=len(best),
        host_subset_size=CONF.filter_scheduler.host_subset_size,
        read_at=None, age_seconds=None)


def _weights(weighed: scheduling.Weighed) -> tuple[document.HostWeight, ...]:
    normal = list(nova_internals.normalize_weights(
        list(weighed.raw), minval=weighed.weigher.minval,
        maxval=weighed.weigher.maxval))
    return tuple(
        document.HostWeight(
            host=host, raw=raw, normalized=normal, multiplier=multiplier,
            weight=multiplier * normal)
        for host, raw, normal, multiplier in zip(
            weighed.hosts, weighed.raw, normal, weighed.multipliers))


def _totals(hosts: Sequence[str],
            weighers: Sequence[Sequence[document.HostWeight]]) -> list[float]:
    totals = [0.0] * len(hosts)
    # In the order of Nova, as sums of floats depend on it.
    for weights in weighers:
        for i, weight in enumerate(weights):
            totals[i] += weight.weight
    return totals


def _first_without(
    hosts: Sequence[str], best: set[str],
    other_weighers: Sequence[Sequence[document.HostWeight]],
) -> str | None:
    """Return the host that these weighers put first, if it is another one."""
    totals = _totals(hosts, other_weighers)
    most = max(totals)
    first = [host for host, total in zip(hosts, totals) if total == most]
    if best & set(first):
        return None
    return first[0]
