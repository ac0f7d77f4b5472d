# SPDX-License-Identifier: Apache-2.0

"""Ask every enabled filter alone about every host.

Each filter gets HostStates and a request of its own, so that none depends on
what another has done to them.  A host that Placement did not find is judged
with the allocation candidate that it would have if it lacked nothing there.
"""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import MutableMapping
from collections.abc import Sequence
import copy
import functools
import typing as ty

from nova import exception
from nova import objects

from nfv_sched.base import reasons
from nfv_sched.ops.model.verdicts import nova_filters
from nfv_sched.ops.model.verdicts import values
from nfv_sched.ops.simulator import placement
from nfv_sched.ops.simulator import state as states
from nfv_sched.scheduler import notes
from nfv_sched.scheduler import refusals

#: Name of each filter -> name of each host that it refuses -> why.
Verdicts = Mapping[str, Mapping[str, values.HostRefusal]]


_NewHosts = Callable[[], tuple[list, objects.RequestSpec]]


def _new_hosts(
    state: states.State, stored: objects.RequestSpec,
    candidates: Mapping[str, Sequence[Mapping]],
    summaries: Mapping[str, Mapping],
) -> tuple[list, objects.RequestSpec]:
    """Return new HostStates of all hosts, and a copy of the request.

    :param candidates: UUID of each compute node -> allocation candidates
    :param summaries: UUID of each provider -> provider summary
    """
    spec = stored.obj_clone()
    notes.note_of(spec).use(state.network,
                            notes.note_of(stored).live_migration)
    notes.placement_answered(spec, summaries)
    hosts = list(state.manager.get_host_states_by_uuids(
        state.context, list(candidates), spec))
    for host in hosts:
        # Filters may change them. copy.deepcopy() takes seven times as long.
        host.allocation_candidates = [{
            'allocations': {
                uuid: {'resources': dict(allocation['resources'])}
                for uuid, allocation in candidate['allocations'].items()},
            'mappings': {suffix: list(uuids) for suffix, uuids
                         in candidate['mappings'].items()}}
            for candidate in candidates[host.uuid]]
    return hosts, spec


def _passing_hosts(inner: ty.Any, hosts: Sequence,
                   spec: objects.RequestSpec) -> set[str]:
    """Return the names of the hosts that a filter passes.

    :raises Exception: whatever the filter raises, except NoValidHost
    """
    # A filter of another package may skip the first server of a request.
    if not inner.run_filter_for_index(0):
        return {host.host for host in hosts}
    try:
        return {host.host for host in inner.filter_all(hosts, spec) or ()}
    except exception.NoValidHost:
        # Filters of nfv-sched raise it to tell the tenant the reason.
        return set()


def _verdict(
    name: str, inner: ty.Any, new_hosts: _NewHosts,
    shadowed: MutableMapping[str, Mapping[str, values.HostRefusal]],
) -> dict[str, values.HostRefusal]:
    """Return why a filter refuses each host that it refuses, by host name.

    :param shadowed: gets the hosts that it would refuse, but for shadow
    """
    hosts, spec = new_hosts()
    try:
        passed = _passing_hosts(inner, hosts, spec)
    except Exception:
        # One odd host must not hide what the filter says of the others.
        return _one_by_one(name, inner, new_hosts)
    note = notes.note_of(spec)
    shadow_note = note.shadow
    if shadow_note is not None:
        shadowed[name] = {
            host: _refusal(name, reason) for host, (_name, reason)
            in shadow_note.rejected.items()}
    refused = [host.host for host in hosts if host.host not in passed]
    by_host = {host: _refusal(name, reason) for host, reason in note.rejected}
    silent = set(refused) - by_host.keys()
    # Nova's own filters give reasons in debug logs at most, so these are
    # worked out.
    if silent:
        hosts, spec = new_hosts()
        note = notes.note_of(spec)
        note.begin(0, spec)
        for host in hosts:
            if host.host in silent:
                by_host[host.host] = nova_filters.reason(
                    name, host, spec, note)
    return {host: by_host[host] for host in refused}


def _refusal(name: str, reason: reasons.Lazy) -> values.HostRefusal:
    return values.of_reason(name, refusals.resolve(reason))


def _one_by_one(name: str, inner: ty.Any,
                new_hosts: _NewHosts) -> dict[str, values.HostRefusal]:
    """Ask a filter that raises about each host by itself."""
    hosts, spec = new_hosts()
    by_host = {}
    for host in hosts:
        try:
            if not _passing_hosts(inner, [host], copy.copy(spec)):
                by_host[host.host] = values.refusal(name)
        except Exception as exc:
            by_host[host.host] = values.refusal(
                name, f'raised {type(exc).__name__}: {exc}', raised=True)
    return by_host


def _candidates(model: placement.Placement, root: str,
                queries: Sequence[placement.Query]) -> list[dict]:
    """Return the allocation candidates of a host, as if it lacked nothing."""
    candidates = [candidate for query in queries
                  for candidate in model.candidates(root, query)]
    # Each filter is asked about each host, also one that Placement would not
    # have named.
    return candidates or [model.assumed(root, query) for query in queries[:1]]


def _unreadable(state: states.State, spec: objects.RequestSpec
                ) -> Iterator[tuple[str, str]]:
    """Yield the hosts for which Nova fails to build HostStates, and why."""

    def read(uuids: list[str]) -> None:
        list(state.manager.get_host_states_by_uuids(
            state.context, uuids, spec))

    try:
        return read([host.uuid for host in state.hosts.values()])
    except Exception:
        for name, host in state.hosts.items():
            try:
                read([host.uuid])
            except Exception as exc:
                yield name, ('the record of the host cannot be read: '
                             f'{type(exc).__name__}: {exc}')


def alone(
    state: states.State, spec: objects.RequestSpec,
    queries: Sequence[placement.Query],
    progress: Callable[[int, int], None] = lambda done, total: None,
    hosts: Collection[str] | None = None,
    shadowed: MutableMapping[str, Mapping[str, values.HostRefusal]] | None
        = None,
) -> Verdicts:
    """Ask every enabled filter about every host.

    :param spec: the request; not changed
    :param progress: called with (filters done, all filters)
    :param hosts: names of the hosts that matter; None for all
    :param shadowed: gets the same of filters in shadow, which have no effect
    """
    enabled = state.manager.enabled_filters
    candidates = {host.uuid: _candidates(state.placement, host.uuid, queries)
                  for name, host in state.hosts.items()
                  if hosts is None or name in hosts}
    unreadable = dict(_unreadable(state, spec))
    for name in unreadable:
        candidates.pop(state.hosts[name].uuid, None)
    new_hosts = functools.partial(_new_hosts, state, spec, candidates,
                                  state.placement.summaries())
    verdicts: dict[str, dict[str, values.HostRefusal]] = {}
    for number, inner in enumerate(enabled):
        progress(number, len(enabled))
        name = type(inner).__name__
        verdicts[name] = _verdict(
            name, inner, new_hosts, {} if shadowed is None else shadowed)
        verdicts[name].update(
            (host, values.refusal(name, text, raised=True))
            for host, text in unreadable.items())
    progress(len(enabled), len(enabled))
    return verdicts
