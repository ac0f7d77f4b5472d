# SPDX-License-Identifier: Apache-2.0

"""Explain refusals by filters of Nova, which give no reason.

For some of them, the reason is derived from the same HostState.
"""

from collections.abc import Callable
import contextlib
import dataclasses
import functools
import typing as ty

from nova import objects

from nfv_sched.base import reasons
from nfv_sched.filters import nfv_topology
from nfv_sched.fit.numa import evaluation
from nfv_sched.fit.numa import pci_shortage
from nfv_sched.fit.numa import shortage
from nfv_sched.ops.cloud import blazar
from nfv_sched.ops.model.verdicts import values
from nfv_sched.ops.simulator import compute
from nfv_sched.ops.simulator import scheduler
from nfv_sched.scheduler import notes
from nfv_sched.scheduler import refusals
from nfv_sched.scheduler import visit

#: Command for a host that is not mapped to its cell.
DISCOVER_COMMAND = ('nova-manage', 'cell_v2', 'discover_hosts')
#: Remedy for such a host.
DISCOVER = f'run {" ".join(DISCOVER_COMMAND)}'


def reason(name: str, host_state: ty.Any, spec: objects.RequestSpec,
           note: notes.RequestNote) -> values.HostRefusal:
    """Return why a filter refuses a host, as far as that is known.

    :param name: class name of the filter
    :param host_state: ``nova.scheduler.host_manager.HostState``, fresh
    """
    refusal = _refuse()
    # The record of the host may be malformed.
    with contextlib.suppress(Exception):
        if name in _KNOWN:
            refusal = _KNOWN[name](host_state, spec, note)
    # Filters of Nova have no policies.
    return dataclasses.replace(
        refusal, filter=name, policy=None, policy_value=None)


_refuse = functools.partial(values.refusal, '')


def _compute(host_state, spec, note):
    service = host_state.service
    if not compute.is_mapped(host_state):
        return _refuse(f'no host mapping: {DISCOVER}', kind='unmapped')
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
    if missing is None:
        return _refuse()
    return values.of_reason('', reasons.devices_reason(
        missing, reasons.CAPACITY, shortage.PCI_DEVICES))


def _members(host_state, spec, note):
    here = sum(uuid in host_state.instances
               for uuid in spec.instance_group.members)
    return _refuse(f'{here} of the server group there', rank=-here)


def _group_elsewhere(host_state, spec, note):
    return _refuse('the server group is on ' + ', '.join(
        sorted(spec.instance_group.hosts)[:3]))


def _instances(host_state, spec, note):
    return _refuse(f'{host_state.num_instances} servers there')


def _io(host_state, spec, note):
    return _refuse(
        f'{host_state.num_io_ops} servers being built or moved there')


def _aggregate_specs(host_state, spec, note):
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


def _blazar(host_state, spec, note):
    refusal = blazar.refusal(host_state.aggregates, spec)
    if refusal.is_reserved:
        return _refuse(
            refusal.text, kind='reserved', need='a '
            'reservation needed on hosts that are kept for reservations')
    return _refuse(refusal.text)


_KNOWN: dict[str, Callable[..., values.HostRefusal]] = {
    'AggregateInstanceExtraSpecsFilter': _aggregate_specs,
    blazar.FILTER: _blazar,
    'ComputeFilter': _compute,
    'IoOpsFilter': _io,
    'NUMATopologyFilter': _numa,
    'NumInstancesFilter': _instances,
    'PciPassthroughFilter': _pci,
    'ServerGroupAffinityFilter': _group_elsewhere,
    'ServerGroupAntiAffinityFilter': _members,
}
