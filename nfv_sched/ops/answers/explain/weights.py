# SPDX-License-Identifier: Apache-2.0

"""Explain how Nova orders the hosts that passed, and which weigher decides."""

from collections.abc import Sequence

from nfv_sched.ops.answers.explain import scheduling
from nfv_sched.ops.answers.explain import values
from nfv_sched.ops.simulator import nova_internals

CONF = nova_internals.CONF


def explain(
    scheduling_round: scheduling.SchedulingRound,
) -> values.Weighing | None:
    """Explain the order of the hosts.

    :param scheduling_round: the filters and weighers that ran for a server
    :returns: None if no host passed
    """
    if not scheduling_round.passed:
        return None
    hosts = scheduling_round.passed
    weighers = [(type(each.weigher).__name__, _weights(each))
                for each in scheduling_round.weighers]
    totals = _totals(hosts, [weights for _name, weights in weighers])
    order = sorted(range(len(hosts)), key=lambda i: totals[i], reverse=True)
    best = {hosts[i] for i in order if totals[i] == totals[order[0]]}
    return values.Weighing(
        hosts=tuple(hosts[i] for i in order),
        totals=tuple(totals[i] for i in order),
        weighers=tuple(values.Weigher(
            name=name, weights=tuple(weights[i] for i in order),
            without=_first_without(hosts, best, [
                other_weights for other, (_name, other_weights)
                in enumerate(weighers)
                if other != number]))
            for number, (name, weights) in enumerate(weighers)),
        equal=len(best), subset=CONF.filter_scheduler.host_subset_size)


def _weights(weighed: scheduling.Weighed) -> tuple[values.Weight, ...]:
    normal = list(nova_internals.normalize_weights(
        list(weighed.raw), minval=weighed.weigher.minval,
        maxval=weighed.weigher.maxval))
    return tuple(
        values.Weight(raw=raw, normal=normal, multiplier=multiplier)
        for raw, normal, multiplier in zip(
            weighed.raw, normal, weighed.multipliers))


def _totals(hosts: Sequence[str],
            weighers: Sequence[Sequence[values.Weight]]) -> list[float]:
    totals = [0.0] * len(hosts)
    # In the order of Nova, as sums of floats depend on it.
    for weights in weighers:
        for i, weight in enumerate(weights):
            totals[i] += weight.value
    return totals


def _first_without(
    hosts: Sequence[str], best: set[str],
    other_weighers: Sequence[Sequence[values.Weight]],
) -> str | None:
    """Return the host that these weighers put first, if it is another one."""
    totals = _totals(hosts, other_weighers)
    most = max(totals)
    first = [host for host, total in zip(hosts, totals) if total == most]
    if best & set(first):
        return None
    return first[0]
