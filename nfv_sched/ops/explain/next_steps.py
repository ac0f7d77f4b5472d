# SPDX-License-Identifier: Apache-2.0
"""Find the commands that help after a refusal, where one is known to apply."""

from collections.abc import Iterator
from collections.abc import Sequence
import functools

import os_resource_classes as orc

from nfv_sched.ops.explain import nova_filters
from nfv_sched.ops.explain import values
from nfv_sched.ops.requests import subject as subjects
from nfv_sched.ops.snapshot import snapshot
from nfv_sched import reasons

_Kind = values.StepKind
_PCPU = orc.PCPU
_CPUS = (reasons.Resource.DEDICATED_CPUS, reasons.Resource.CPU_THREADS)


def find(
    cloud: snapshot.Cloud, subject: subjects.ExplainSubject,
    explanation: values.Explanation, options: Sequence[str] = (),
) -> Iterator[values.NextStep]:
    """Yield the steps that help if the request does not fit.

    :param options: words of the command line that choose the cloud and the
        ports, for commands of nfv-sched
    """
    yield from _hosts(cloud, subject, explanation)
    # A server that runs was given back in a copy: its host is not so free.
    # Plans are made for the flavor as the cloud has it.
    if subject.present is not None or (
            explanation.filters is None
            or not _has_flavor(cloud, subject.requested.flavor)):
        return
    cause = next(filter(_is_about_cpus, explanation.causes), None)
    if cause is None:
        return
    needed, on_node = _needed(cause)
    usable = [host for host in cloud.hosts
              if host.enabled and host.up and host.mapped]
    largest = max((count for host in usable
                   for count in _counts(host, on_node, free=False)), default=0)
    step = functools.partial(values.NextStep, cause=cause, needed=needed)
    if largest < needed:
        yield step(kind=_Kind.LARGER_HOST, free=largest)
        return
    free = _free_at_places(explanation, cause)
    if free is None:
        free = sum(count for host in usable
                   for count in _counts(host, on_node, free=True))
    flavor = subject.requested.flavor.name
    if free >= needed:
        yield step(kind=_Kind.DEFRAG, free=free, command=(
            'nfv-sched', 'cloud', 'defrag', f'--flavor={flavor}', *options))
    else:
        yield step(kind=_Kind.ADD_HOST, free=free)
    if any(server.host for server in cloud.servers):
        yield step(kind=_Kind.SERVERS, free=free, command=(
            'nfv-sched', 'capacity', 'show', '--next', *options, '--', flavor))


def own_ports(subject: subjects.ExplainSubject) -> list[str]:
    """Return the options with which commands assume a server's own ports."""
    if subject.server is None or not subject.requested.ports:
        return []
    return ['--like', subject.server.uuid]


def _hosts(
    cloud: snapshot.Cloud, subject: subjects.ExplainSubject,
    explanation: values.Explanation,
) -> Iterator[values.NextStep]:
    """Yield commands for hosts that would take it, as was tried."""
    hosts = {host.name: host for host in cloud.hosts}
    for change in explanation.relaxations:
        # Not all hosts at once, nor together with another change.
        if len(change.enabled) != 1 or change.requested != subject.requested:
            continue
        host = hosts.get(change.enabled[0])
        if host is None or not host.up:
            continue
        if not host.mapped:
            yield values.NextStep(
                kind=_Kind.MAP, host=host.name,
                command=nova_filters.DISCOVER_COMMAND)
        if not host.enabled:
            yield values.NextStep(
                kind=_Kind.ENABLE, host=host.name, command=(
                    'openstack', 'compute', 'service', 'set', '--enable', '--',
                    host.name, 'nova-compute'))


def _has_flavor(cloud: snapshot.Cloud, flavor: snapshot.Flavor) -> bool:
    return any(
        (each.name, each.vcpus, each.memory, each.extra_specs) == (
            flavor.name, flavor.vcpus, flavor.memory, flavor.extra_specs)
        for each in cloud.flavors)


def _is_about_cpus(cause: values.CommonCause) -> bool:
    """Return whether dedicated CPUs are missing."""
    shortage = None if cause.refusal is None else cause.refusal.shortage
    if shortage is not None:
        return cause.kind is values.CauseKind.SHORTAGE and (
            shortage.amount.resource in _CPUS)
    need = None if cause.lack is None else cause.lack.need
    return need is not None and tuple(need.resources) == (_PCPU,)


def _needed(cause: values.CommonCause) -> tuple[int, bool]:
    """Return how many dedicated CPUs are needed, and if on one NUMA node."""
    if cause.refusal is not None and cause.refusal.shortage is not None:
        return cause.refusal.shortage.amount.needed, True
    assert cause.lack is not None and cause.lack.need is not None
    return cause.lack.need.resources[_PCPU], False


def _free_at_places(explanation: values.Explanation,
                    cause: values.CommonCause) -> int | None:
    """Return the free CPUs of the NUMA nodes that may be chosen, in all.

    :returns: the sum over the best node of each host; None if any node may be
        chosen
    """
    shortage = None if cause.refusal is None else cause.refusal.shortage
    if shortage is None or not shortage.places:
        return None
    return sum(max((each.shortage.free for each in host.refusals or ()
                    if each.shortage is not None
                    and each.shortage.amount == shortage.amount
                    and each.shortage.places == shortage.places), default=0)
               for host in explanation.hosts)


def _counts(host: snapshot.Host, on_node: bool, free: bool) -> list[int]:
    """Return the dedicated CPUs of each NUMA node, or of the whole host."""
    counts = [len(node.free if free else node.dedicated)
              for node in host.nodes or ()]
    return counts if on_node else [sum(counts)]
