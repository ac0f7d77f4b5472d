# SPDX-License-Identifier: Apache-2.0

"""Ask every enabled filter alone about every host.

Each filter gets HostStates and a request of its own, so that none depends on
what another has done to them.  A host that Placement did not find is judged
with the allocation candidate that it would have if it lacked nothing there.
Nova's own filters give no reason: that of some is derived from the HostState.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from collections.abc import MutableMapping, Sequence
import contextlib
import copy
import dataclasses
import functools
import typing as ty

from nova import exception
from nova import objects

from nfv_sched.base import reasons
from nfv_sched.filters import nfv_topology
from nfv_sched.fit.numa import evaluation
from nfv_sched.fit.numa import pci_shortage
from nfv_sched.fit.numa import shortage
from nfv_sched.ops.cloud import blazar
from nfv_sched.ops.model.verdicts import values
from nfv_sched.ops.simulator import compute
from nfv_sched.ops.simulator import placement
from nfv_sched.ops.simulator import scheduler
from nfv_sched.ops.simulator import state as states
from nfv_sched.scheduler import notes
from nfv_sched.scheduler import refusals
from nfv_sched.scheduler import visit

#: Name of each filter -> name of each host that it refuses -> why.
Verdicts = Mapping[str, Mapping[str, values.HostRefusal]]

#: Command for a host that is not mapped to its cell.
DISCOVER_COMMAND = ('nova-manage', 'cell_v2', 'discover_hosts')

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
    if (shadow_note := note.shadow) is not None:
        shadowed[name] = {
            host: values.of_reason(name, refusals.resolve(reason))
            for host, (_name, reason) in shadow_note.rejected.items()}
    refused = [host.host for host in hosts if host.host not in passed]
    by_host = {host: values.of_reason(name, refusals.resolve(reason))
               for host, reason in note.rejected}
    silent = set(refused) - by_host.keys()
    # Nova's own filters give reasons in debug logs at most, so these are
    # worked out.
    if silent:
        hosts, spec = new_hosts()
        note = notes.note_of(spec)
        note.begin(0, spec)
        for host in hosts:
            if host.host in silent:
                by_host[host.host] = _reason(name, host, spec, note)
    return {host: by_host[host] for host in refused}


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


def _reason(name: str, host_state: ty.Any, spec: objects.RequestSpec,
            note: notes.RequestNote) -> values.HostRefusal:
    """Return why a filter of Nova refuses a fresh HostState, if known."""
    refusal = _refuse()
    # The record of the host may be malformed.
    with contextlib.suppress(Exception):
        refusal = _known_reason(name, host_state, spec, note)
    # Filters of Nova have no policies.
    return dataclasses.replace(
        refusal, filter=name, policy=None, policy_value=None)


_refuse = functools.partial(values.refusal, '')


def _known_reason(name: str, host_state: ty.Any, spec: objects.RequestSpec,
                  note: notes.RequestNote) -> values.HostRefusal:
    match name:
        case 'AggregateInstanceExtraSpecsFilter':
            return _aggregate_specs(host_state, spec)
        case blazar.FILTER:
            return _blazar(host_state, spec)
        case 'ComputeFilter':
            return _compute(host_state)
        case 'IoOpsFilter':
            return _refuse(f'{host_state.num_io_ops} servers being built or '
                           'moved there')
        case 'NUMATopologyFilter':
            return _numa(host_state, spec, note)
        case 'NumInstancesFilter':
            return _refuse(f'{host_state.num_instances} servers there')
        case 'PciPassthroughFilter':
            return _pci(host_state, spec, note)
        case 'ServerGroupAffinityFilter':
            return _refuse('the server group is on ' + ', '.join(
                sorted(spec.instance_group.hosts)[:3]))
        case 'ServerGroupAntiAffinityFilter':
            here = sum(uuid in host_state.instances
                       for uuid in spec.instance_group.members)
            return _refuse(f'{here} of the server group there', rank=-here)
    return _refuse()


def _compute(host_state):
    service = host_state.service
    if not compute.is_mapped(host_state):
        return _refuse('no host mapping: run ' + ' '.join(DISCOVER_COMMAND),
                       kind='unmapped')
    if service.get('disabled'):
        why = service.get('disabled_reason')
        return _refuse(f'service disabled{f": {why}" if why else ""}',
                       kind='disabled')
    return _refuse('service down', kind='down')


def _numa(host_state, spec, note):
    if scheduler.too_many_arrangements(host_state, spec):
        return _refuse(
            "Nova's search on this host would try more than "
            f'{evaluation.MAX_CLAIM_TRIES} arrangements: '
            'nova-scheduler would stand still')
    # NFVTopologyFilter accepts the same hosts, and has reasons.
    nfv_filter = nfv_topology.NFVTopologyFilter()
    request = note.read(spec)
    if request.error is not None:
        return values.of_reason('', request.error)
    decision = nfv_filter.decide(
        host_state, request, note, nfv_filter.prepare(request, note))
    if decision.accepted or decision.reason is None:
        return _refuse()
    return values.of_reason('', refusals.resolve(decision.reason))


def _pci(host_state, spec, note):
    devices = visit.resources(host_state).devices(
        note.read(spec), visit.first_mapping(host_state))
    missing = None if devices is None else pci_shortage.find(devices)
    return _refuse() if missing is None else values.of_reason(
        '', reasons.devices_reason(
            missing, reasons.CAPACITY, shortage.PCI_DEVICES))


def _aggregate_specs(host_state, spec):
    scope = 'aggregate_instance_extra_specs:'
    required = {key.removeprefix(scope): value for key, value
                in spec.flavor.extra_specs.items()
                # Nova's filter looks at keys without a scope as well.
                if ':' not in key or key.startswith(scope)}
    have: dict[str, set[str]] = {}
    for aggregate in host_state.aggregates:
        for key, value in aggregate.metadata.items():
            have.setdefault(key, set()).add(value)
    return _refuse('; '.join(
        f'{key}={value} needed, ' + (
            f'aggregates have {", ".join(sorted(have[key]))}'
            if key in have else 'no aggregate has the key')
        for key, value in sorted(required.items())
        if value not in have.get(key, ())))


def _blazar(host_state, spec):
    refusal = blazar.refusal(host_state.aggregates, spec)
    if refusal.is_reserved:
        return _refuse(
            refusal.text, kind='reserved', need='a '
            'reservation needed on hosts that are kept for reservations')
    return _refuse(refusal.text)
