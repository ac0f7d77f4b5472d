# SPDX-License-Identifier: Apache-2.0
"""Run a request through Nova's own scheduler and the claim, and undo it."""

from collections.abc import Iterator, Sequence
import contextlib
import dataclasses
import typing as ty

from nova import objects

from nfv_sched.ops.answers.explain import document
from nfv_sched.ops.simulator import conductor
from nfv_sched.ops.simulator import lifecycle
from nfv_sched.ops.simulator import placement
from nfv_sched.ops.simulator import request
from nfv_sched.ops.simulator import scheduler
from nfv_sched.ops.simulator import servers
from nfv_sched.ops.simulator import state as states


@dataclasses.dataclass(slots=True)
class Weighed:
    weigher: ty.Any
    hosts: tuple[str, ...]
    raw: Sequence[float]  #: weight of each host, not normalized
    multipliers: list[float] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(slots=True)
class Course:
    queries: tuple[placement.Query, ...] = ()  #: to Placement
    # What ran for the first server, in order.
    filters: Sequence[scheduler.Filtering] = ()
    passed: tuple[str, ...] = ()
    #: none for a single host
    weighers: list[Weighed] = dataclasses.field(default_factory=list)
    #: hosts on which its servers were claimed
    places: list[document.Destination] = dataclasses.field(
        default_factory=list)
    reason: str | None = None  #: why not all servers were; None if they were


class _Weigher:
    """A wrapper of a weigher that records its weights."""

    def __init__(self, inner: ty.Any, course: Course):
        self._inner = inner
        self._course = course

    def __getattr__(self, name: str) -> ty.Any:
        return getattr(self._inner, name)

    def weigh_objects(self, weighed: list, spec_obj: ty.Any):
        raw = list(self._inner.weigh_objects(weighed, spec_obj))
        self._course.weighers.append(Weighed(
            self._inner, scheduler.names_of(each.obj for each in weighed),
            raw))
        return raw

    def weight_multiplier(self, host_state: ty.Any) -> float:
        multiplier = self._inner.weight_multiplier(host_state)
        self._course.weighers[-1].multipliers.append(multiplier)
        return multiplier


@contextlib.contextmanager
def _record_first(state: states.State, course: Course) -> Iterator[None]:
    manager = state.manager
    weighers, filter_hosts = manager.weighers, manager.get_filtered_hosts

    def get_filtered_hosts(hosts, spec_obj, index=0):
        # Nova filters once for each server of the request, and once more for
        # alternates.
        manager.get_filtered_hosts = filter_next
        try:
            passed = list(filter_hosts(hosts, spec_obj, index) or ())
        finally:
            course.filters = tuple(manager.filterings)
        course.passed = scheduler.names_of(passed)
        return passed

    def filter_next(hosts, spec_obj, index=0):
        manager.weighers = weighers
        return filter_hosts(hosts, spec_obj, index)

    manager.weighers = [
        type(type(w).__name__, (_Weigher,), {})(w, course) for w in weighers]
    manager.get_filtered_hosts = get_filtered_hosts
    try:
        yield
    finally:
        # The method of the class shows again.
        del manager.get_filtered_hosts
        manager.weighers = weighers


@contextlib.contextmanager
def booting(
    state: states.State, boot_request: request.BootRequest,
) -> Iterator[tuple[objects.RequestSpec, list[servers.SimulatedServer]]]:
    """Add the servers of a request to the cloud in this context.

    :param state: the cloud; restored afterwards
    :returns: context with the request, as nova-conductor sends it, and the
        servers, which have no host yet
    :raises Refused: if the API refuses the request
    """
    booted = [servers.SimulatedServer(f'explained-{number}',
                                      boot_request.flavor.name,
                                      project=boot_request.project)
              for number in range(1, boot_request.count + 1)]
    notes = state.notes
    state.servers.update((server.name, server) for server in booted)
    try:
        yield request.create_together(state, booted, boot_request), booted
    finally:
        members = state.groups.get(boot_request.group or '', [])
        for server in booted:
            lifecycle.remove(state, server)
            state.servers.pop(server.name, None)
            if server.name in members:
                members.remove(server.name)
        state.notes = notes


def run(state: states.State, boot_request: request.BootRequest,
        enabled: contextlib.AbstractContextManager = contextlib.nullcontext(),
        ) -> Course:
    """Boot the servers of a request, and undo it.

    :param state: the cloud; restored afterwards
    :param enabled: has hosts enabled; entered if the API takes the request
    :returns: the outcome; nothing is raised
    """
    course = Course()
    state.placement.queries.clear()
    try:
        # A server that is removed from a host that is down leaves its
        # resources there, so the hosts stay enabled until all is undone.
        with (contextlib.ExitStack() as until_undone,
              booting(state, boot_request) as (spec, booted)):
            until_undone.enter_context(enabled)
            _boot(state, spec, booted, course)
    except servers.Refused as exc:
        course.reason = str(exc)
    except Exception as exc:
        # A third-party filter or weigher raised, or Nova's own code did for
        # an odd flavor.
        course.reason = f'{type(exc).__name__}: {exc}'
    course.queries = tuple([
        query for query, _hosts in state.placement.queries])
    return course


def _boot(state: states.State, spec: objects.RequestSpec,
          booted: list[servers.SimulatedServer], course: Course) -> None:
    with _record_first(state, course):
        lists = conductor.select(state, spec,
                                 [server.uuid for server in booted])
    for server, selections in zip(booted, lists):
        state.notes = []
        conductor.claim(state, server, spec, selections)
        course.places.append(document.Destination(
            host=server.host.name, host_id=server.host.uuid,
            numa_nodes=server.nodes, cpus=server.pinned_cpus,
            pci_devices=tuple(device.address for device in server.devices),
            failed_claims=tuple(state.notes)))
