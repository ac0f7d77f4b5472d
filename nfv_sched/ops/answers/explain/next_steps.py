# SPDX-License-Identifier: Apache-2.0
"""Find what helps after a refusal; each step has been tried."""

from collections.abc import Callable, Iterator, Sequence
import contextlib
import dataclasses
import itertools
import operator
import time
import typing as ty

from nfv_sched.base import strings
from nfv_sched.ops.answers.capacity import smallest_move
from nfv_sched.ops.answers.explain import document
from nfv_sched.ops.answers.explain import scheduling
from nfv_sched.ops.answers.plans import defrag
from nfv_sched.ops.answers.plans import document as plan_document
from nfv_sched.ops.cloud import changed_hosts
from nfv_sched.ops.cloud import scenario
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.model import arrangements
from nfv_sched.ops.model.counting import capacity
from nfv_sched.ops.model.requests import assumed_ports
from nfv_sched.ops.model.requests import subject as subjects
from nfv_sched.ops.model import trial
from nfv_sched.ops.model.verdicts import filters
from nfv_sched.ops.simulator import request
from nfv_sched.ops.simulator import servers
from nfv_sched.ops.simulator import start
from nfv_sched.ops.simulator import state as states

#: Default time limit, in seconds, for each search of servers to move.
SECONDS = 10.0
_MOVES = 3  # more take much longer to find
_TRIED = 3  # servers that leave


def find(cloud: snapshot.Cloud, subject: subjects.ExplainSubject,
         explanation: document.Explained, options: Sequence[str] = (),
         seconds: float = SECONDS) -> Iterator[document.HelpfulStep]:
    """Yield the steps that help if the request does not fit.

    :param options: words of the command line that choose the cloud and the
        ports, for commands of nfv-sched
    :param seconds: time limit for each search of servers to move
    """
    yield from _hosts(cloud, subject, explanation)
    # A server that runs was given back in a copy: its host is not so free.
    # Plans are made for the flavor as the cloud has it.
    size = operator.attrgetter('name', 'vcpus', 'memory', 'extra_specs')
    if subject.present is not None or explanation.fits or (
            size(subject.requested.flavor) not in map(size, cloud.flavors)):
        return
    requested = dataclasses.replace(
        subject.requested,
        count=subject.requested.count - len(explanation.destinations))
    group = scenario.groups_by_name(cloud).get(requested.group or '')
    # To a host, or to that of the other servers of the group.
    beside = frozenset(group.members if group is not None and (
        group.policy == 'affinity') else ())
    bound = ':' in (requested.zone or '') or any(
        server.host and server.uuid in beside for server in cloud.servers)
    with start.started(changed_hosts.emptied(cloud)) as state:
        ran = scheduling.run(state, requested)
        like = tuple(dict.fromkeys(place.host for place in ran.places))
        if ran.reason and requested.count > 1 and requested.group is None:
            # Not all of them fit the emptied hosts, but each does.
            ran = scheduling.run(state, dataclasses.replace(
                requested, count=1))
            like = requested.count * tuple(
                [place.host for place in ran.places])
        if ran.reason is not None:
            number = 1
            if group is not None and group.policy == 'anti-affinity':
                number = -(-requested.count // max(group.most_on_host, 1))
            if not bound:
                yield from _larger_hosts(state, requested, number)
            return
    # Of what no empty host takes, no moves make room for more.
    steps = list(_moves(cloud, subject, options, seconds))
    if not bound and not any(each.kind == 'defrag' for each in steps):
        yield document.HelpfulStep(
            kind='add-host', text=f'Add {_some("host", len(like))} like '
            f'{" and ".join(dict.fromkeys(like))}', like=like)
    yield from steps


def _some(noun: str, number: int) -> str:
    return f'a {noun}' if number == 1 else f'{number} {noun}s'


def _larger_hosts(state: states.State, requested: request.BootRequest,
                  number: int) -> Iterator[document.HelpfulStep]:
    """Yield the step to add larger hosts; ``state`` has no servers."""
    try:
        with scheduling.booting(state, requested) as (spec, _booted):
            counting = capacity.Counting(state)
            guest = counting.guest_of(spec)
            lacking = {host.name: lacks for host in counting.hosts()
                       if (lacks := guest.to_grow(host))}
    except servers.Refused:
        return
    if lacking:
        name = min(lacking, key=lambda name: len(lacking[name]))
        lacks = tuple([each.why for each in lacking[name]])
        yield document.HelpfulStep(
            kind='larger-host',
            text=f'Add {_some("larger host", number)}: {name} does not '
            f'suffice, even if it is empty: {"; ".join(lacks)}',
            like=(name,) * number, lacks=lacks)


def _moves(cloud: snapshot.Cloud, subject: subjects.ExplainSubject,
           options: Sequence[str],
           seconds: float) -> Iterator[document.HelpfulStep]:
    requested = subject.requested
    flavor, ports = requested.flavor, None
    if '--like' in options and subject.server is not None:
        ports = assumed_ports.of_server(subject.server)
    elif requested.ports:
        ports = assumed_ports.assume(
            assumed_ports.Basis.NETWORKS, requested.ports)
    count = () if requested.count == 1 else (f'--count={requested.count}',)
    with contextlib.suppress(TimeoutError, servers.Refused):
        plan = defrag.plan(
            cloud, flavor, requested.count,
            plan_document.DefragOptions(max_moves=_MOVES), ports=ports,
            seconds=seconds, update=limit(seconds))
        if plan.enough and _fits_after(cloud, requested, plan):
            moves = strings.count(len(plan.moves), 'live migration')
            yield document.HelpfulStep(
                kind='defrag',
                text=f'{moves} of other servers would make room', command=(
                    'nfv-sched', 'cloud', 'defrag', f'--flavor={flavor.name}',
                    *count, *options), moves=len(plan.moves))
    with contextlib.suppress(TimeoutError, servers.Refused):
        with contextlib.closing(smallest_move.find(
                cloud, flavor, capacity.NewServers(ports=ports),
                update=limit(seconds))) as leaving:
            first = list(itertools.islice(leaving, _TRIED))
        if any(_fits_without(cloud, requested, server)
               for _host, server in first):
            yield document.HelpfulStep(
                kind='servers',
                text='the smallest server in the way on each host', command=(
                    'nfv-sched', 'capacity', 'show', '--next', *options, '--',
                    flavor.name))


def limit(seconds: float) -> Callable[..., None]:
    """Return an ``update`` that raises TimeoutError after some time."""
    ends = time.monotonic() + seconds

    def update(*_progress: ty.Any) -> None:
        if time.monotonic() > ends:
            raise TimeoutError

    return update


def _fits_after(cloud: snapshot.Cloud, requested: request.BootRequest,
                plan: plan_document.Defrag) -> bool:
    with start.started(cloud) as state:
        return bool(plan.moves) and trial.failure(
            state, arrangements.Positions(cloud, state),
            list(plan_document.moves_of(plan)),
        ) is None and scheduling.run(state, requested).reason is None


def _fits_without(cloud: snapshot.Cloud, requested: request.BootRequest,
                  server: snapshot.Server) -> bool:
    with start.started(cloud) as state:
        subjects.give_back(state, server)
        return scheduling.run(state, requested).reason is None


def own_ports(subject: subjects.ExplainSubject) -> list[str]:
    if subject.server is None or not subject.requested.ports:
        return []
    return ['--like', subject.server.uuid]


def _hosts(cloud: snapshot.Cloud, subject: subjects.ExplainSubject,
           explanation: document.Explained) -> Iterator[document.HelpfulStep]:
    """Yield commands for hosts that would take it, as was tried."""
    hosts = {host.name: host for host in cloud.hosts}
    for change in explanation.changes:
        # Not all hosts at once, nor together with another change.
        if len(change.hosts_enabled) != 1 or (
                change.requested != subject.requested):
            continue
        host = hosts.get(change.hosts_enabled[0])
        if host is None or not host.up:
            continue
        if not host.mapped:
            yield document.HelpfulStep(
                kind='map', host=host.name, command=filters.DISCOVER_COMMAND,
                text=f'{host.name} would take it, but is not mapped to its '
                'cell')
        if not host.enabled:
            yield document.HelpfulStep(
                kind='enable', host=host.name,
                text=f'{host.name} would take it, but is disabled', command=(
                    'openstack', 'compute', 'service', 'set', '--enable', '--',
                    host.name, 'nova-compute'))
