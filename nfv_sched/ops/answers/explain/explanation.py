# SPDX-License-Identifier: Apache-2.0
"""Explain where a request fits, and why not elsewhere."""

from collections.abc import Callable, Iterator, Mapping, Sequence
import contextlib
import time

from nfv_sched.base import strings
from nfv_sched.nova import scheduler
from nfv_sched.ops.answers.explain import causes
from nfv_sched.ops.answers.explain import document
from nfv_sched.ops.answers.explain import relaxation
from nfv_sched.ops.answers.explain import scheduling
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.model.counting import capacity
from nfv_sched.ops.model.requests import assumed_ports
from nfv_sched.ops.model.requests import subject as subjects
from nfv_sched.ops.model.verdicts import filters
from nfv_sched.ops.model.verdicts import placement
from nfv_sched.ops.model.verdicts import values
from nfv_sched.ops.simulator import nova_internals
from nfv_sched.ops.simulator import request
from nfv_sched.ops.simulator import servers
from nfv_sched.ops.simulator import state as states

#: Maximum number of nearest hosts to report.
NEAREST = 5

_Weights = Sequence[document.HostWeight]


def explain(state: states.State, subject: subjects.ExplainSubject, *,
            relax_seconds: float = 60.0,
            progress: Callable[[int, int, str], None] = lambda done, total,
            what: None) -> document.Explained:
    """Explain where a request fits.

    :param state: the cloud; restored afterwards
    :param relax_seconds: time limit for changes of the request; 0 to try none
    :param progress: called with (number done, number of all, noun for them)
    """
    seconds: dict[str, float] = {}
    boot_request, server = subject.requested, subject.server
    with _time_stage(seconds, 'scheduler'):
        ran = scheduling.run(state, boot_request)
    queries = ran.queries
    with _time_stage(seconds, 'Placement'):
        answer = placement.explain(state, queries)
    verdicts: filters.Verdicts = {}
    shadowed: dict[str, Mapping[str, values.HostRefusal]] = {}
    spec = None
    with _time_stage(seconds, 'filters'):
        # Filters are not asked about a request that never got to Placement.
        if queries:
            # What is booted has to be gone again.
            with contextlib.suppress(servers.Refused), scheduling.booting(
                    state, boot_request) as (spec, _booted):
                pass
        if spec is not None:
            verdicts = filters.alone(
                state, spec, queries,
                lambda done, total: progress(done, total, 'filters'),
                shadowed=shadowed)
    with _time_stage(seconds, 'weights'):
        weighing = weigh(ran, subject.taken)
    hosts = tuple(_hosts(state, answer, verdicts, shadowed, ran, weighing,
                         subject.present))
    trials = relaxation.Trials(state)
    with _time_stage(seconds, 'changes'):
        if ran.reason is not None and relax_seconds:
            trials = relaxation.relax(
                state, boot_request, relax_seconds,
                lambda done, total: progress(done, total, 'changes'))
    found_causes: tuple[document.RefusalCause, ...] = ()
    if queries and ran.reason is not None and not ran.passed:
        found_causes = causes.find(hosts, [
            network for network, _groups in boot_request.ports])
    stages = {each.name: each for each in ran.filters}
    return document.Explained(
        server=server and server.name, server_id=server and server.uuid,
        server_state=server and server.state, host=subject.present,
        request=document.requested(boot_request),
        assumed=subject.assumed + _unknown_of(
            boot_request.flavor, answer.stage),
        usual_ports=subject.usual_ports,
        fits=ran.reason is None, reason=ran.reason or None,
        causes=found_causes, destinations=tuple(ran.places),
        placement=answer.stage, filters=tuple([
            document.FilterStage(
                filter=name, hosts_in=each and len(each.before),
                hosts_out=each and len(each.after),
                refuses_alone=len(refused), error=each and each.error)
            for name, refused in verdicts.items()
            for each in [stages.get(name)]]),
        hosts=hosts, weighing=weighing,
        nearest=_nearest_hosts(hosts) if queries and not weighing else (),
        changes=trials.changes, changes_tried=trials.tried,
        changes_untried=trials.untried, next_steps=(), seconds=seconds,
        subject=subject.text, asks_for=_text(boot_request))


def _unknown_of(flavor: snapshot.Flavor,
                stage: values.PlacementAnswer) -> tuple[str, ...]:
    return tuple([
        f'Placement knows the {each.kind} {each.name}, which was not read: '
        'otherwise it refuses the request' for each in stage.unverified] + [
        f'accelerators are not looked at: Cyborg is not read, so that {key} '
        'is left out' for key in capacity.uncounted(flavor)])


@contextlib.contextmanager
def _time_stage(seconds: dict[str, float], stage: str) -> Iterator[None]:
    began = time.monotonic()
    yield
    seconds[stage] = round(time.monotonic() - began, 3)


def _hosts(state: states.State, answer: placement.PlacementResult,
           verdicts: filters.Verdicts, shadowed: filters.Verdicts,
           ran: scheduling.Course, weighing: document.HostOrder | None,
           present: str | None) -> Iterator[document.HostVerdict]:
    passed = frozenset(ran.passed)
    ranks = {each.host: rank for rank, each in enumerate(
        weighing.hosts if weighing else (), 1)}
    stopped: dict[str, str] = {}
    for each in ran.filters:
        for name in frozenset(each.before) - frozenset(each.after):
            stopped.setdefault(name, each.name)
    for name, host in state.hosts.items():
        refusals = tuple([refused[name] for refused in verdicts.values()
                          if name in refused])
        yield document.HostVerdict(
            host=name, host_id=host.record.uuid, runs_there=name == present,
            placement_finds=name in answer.found,
            placement_lacks=answer.lacks.get(name, ()), refusals=refusals,
            # They name what other filters would do, too.
            refusals_in_shadow=() if refusals else tuple([
                refused[name] for refused in shadowed.values()
                if name in refused]),
            passes=name in passed, removed_by=stopped.get(name),
            rank=ranks.get(name))


def weigh(ran: scheduling.Course,
          read_at: str = '') -> document.HostOrder | None:
    """Explain the order of the hosts; return None if none passed."""
    if not (hosts := ran.passed):
        return None
    weighers = list(map(_weights, ran.weighers))
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
                ran.weighers, weighers))),
        equal_hosts=len(best), host_subset_size=(
            nova_internals.CONF.filter_scheduler.host_subset_size),
        read_at=read_at or None, age_seconds=snapshot.age(read_at))


def _weights(weighed: scheduling.Weighed) -> _Weights:
    normal = scheduler.normalized_weights(
        list(weighed.raw), weighed.weigher.minval, weighed.weigher.maxval)
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


def _nearest_hosts(hosts: tuple[document.HostVerdict, ...]) -> tuple[str, ...]:
    order = sorted(hosts, key=lambda host: (
        host.failures,
        max([refusal.missing for refusal in host.refusals], default=0.0),
        -max([refusal.rank for refusal in host.refusals], default=0)))
    return tuple(host.host for host in order[:NEAREST])


# Maximum length of one part of the description: the longest extra spec that
# the API accepts fits.
_PART = 600


def _text(boot_request: request.BootRequest) -> str:
    flavor = boot_request.flavor
    parts = [strings.count(flavor.vcpus, 'vCPU'), f'{flavor.memory} MiB']
    if flavor.disk + flavor.ephemeral:
        parts.append(f'{flavor.disk + flavor.ephemeral} GiB of disk')
    parts += [f'{key}={value}'
              for key, value in sorted(flavor.extra_specs.items())]
    parts += [f'image {key}={value}'
              for key, value in sorted(boot_request.image.items())]
    parts += [f'network {assumed_ports.network_label(network)}'
              for network, _ in boot_request.ports]
    if boot_request.zone:
        parts.append(f'zone {boot_request.zone}')
    if boot_request.group:
        parts.append(f'server group {boot_request.group}')
    parts += [f'hint {key}={",".join(value)}'
              for key, value in sorted(boot_request.hints.items())]
    return ', '.join(strings.short(part, _PART) for part in parts)
