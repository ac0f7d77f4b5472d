# SPDX-License-Identifier: Apache-2.0

"""Explain refusals by filters of Nova, which give no reason.

For some of them, the reason is derived from the same HostState.
"""

from collections.abc import Callable
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


class HostLack(ty.NamedTuple):
    """A requirement of a filter that a host does not meet."""

    text: str  #: for people; empty if nothing is known
    rank: int = 0  #: how close the host came; higher is closer
    #: the resource that is missing, if it is known
    shortage: reasons.Shortage | None = None
    kind: values.RefusalKind = values.RefusalKind.OTHER
    need: str = ''  #: the requirement, without anything about the host


def reason(name: str, host_state: ty.Any, spec: objects.RequestSpec,
           note: notes.RequestNote) -> HostLack:
    """Return what a host lacks.

    :param name: class name of the filter that refuses it
    :param host_state: ``nova.scheduler.host_manager.HostState``, fresh
    """
    explain = _KNOWN.get(name)
    if explain is None:
        return HostLack('')
    try:
        return explain(host_state, spec, note)
    except Exception:
        # The record of the host is malformed.
        return HostLack('')


def _compute(host_state, spec, note) -> HostLack:
    service = host_state.service
    if not compute.is_mapped(host_state):
        return HostLack(f'no host mapping: {DISCOVER}',
                        kind=values.RefusalKind.UNMAPPED)
    if service.get('disabled'):
        why = service.get('disabled_reason')
        return HostLack(f'service disabled{f": {why}" if why else ""}',
                        kind=values.RefusalKind.DISABLED)
    return HostLack('service down', kind=values.RefusalKind.DOWN)


def _numa(host_state, spec, note) -> HostLack:
    if scheduler.too_many_arrangements(host_state, spec):
        return HostLack(
            "Nova's search on this host would try more than "
            f'{evaluation.MAX_CLAIM_TRIES} arrangements: '
            'nova-scheduler would stand still')
    # NFVTopologyFilter accepts the same hosts, and has reasons.
    reason = refusal(nfv_topology.NFVTopologyFilter(), host_state, spec, note)
    return HostLack('') if reason is None else _lack(reason)


def _lack(reason: reasons.Reason) -> HostLack:
    return HostLack(text(reason), reason.rank, reason.shortage, kind(reason),
                    reason.need)


def refusal(nfv_filter: ty.Any, host_state: ty.Any,
            spec: objects.RequestSpec,
            note: notes.RequestNote) -> reasons.Reason | None:
    """Return why a filter of nfv-sched refuses a host, None if it does not."""
    request = note.read(spec)
    if request.error is not None:
        return request.error
    decision = nfv_filter.decide(
        host_state, request, note, nfv_filter.prepare(request, note))
    if decision.accepted or decision.reason is None:
        return None
    return refusals.resolve(decision.reason)


def kind(reason: reasons.Reason) -> values.RefusalKind:
    return (values.RefusalKind.REQUEST if reason.order == reasons.REQUEST
            else values.RefusalKind.OTHER)


def text(reason: reasons.Reason) -> str:
    """Return a reason for people who read it beside the name of the filter."""
    if reason.order == reasons.REQUEST:
        return str(reason)
    return reasons.text(reason)


def _pci(host_state, spec, note) -> HostLack:
    devices = visit.resources(host_state).devices(
        note.read(spec), visit.first_mapping(host_state))
    if devices is None:
        return HostLack('')
    missing = pci_shortage.find(devices)
    if missing is None:
        return HostLack('')
    return _lack(reasons.devices_reason(
        missing, reasons.CAPACITY, shortage.PCI_DEVICES))


def _members(host_state, spec, note) -> HostLack:
    group = spec.instance_group
    here = len([uuid for uuid in group.members
                if uuid in host_state.instances])
    return HostLack(f'{here} of the server group there', -here)


def _group_elsewhere(host_state, spec, note) -> HostLack:
    return HostLack('the server group is on ' + ', '.join(
        sorted(spec.instance_group.hosts)[:3]))


def _instances(host_state, spec, note) -> HostLack:
    return HostLack(f'{host_state.num_instances} servers there')


def _io(host_state, spec, note) -> HostLack:
    return HostLack(
        f'{host_state.num_io_ops} servers being built or moved there')


def _aggregate_specs(host_state, spec, note) -> HostLack:
    scope = 'aggregate_instance_extra_specs:'
    required = {key.removeprefix(scope): value for key, value
                in spec.flavor.extra_specs.items()
                # Nova's filter looks at keys without a scope as well.
                if ':' not in key or key.startswith(scope)}
    have: dict[str, set[str]] = {}
    for aggregate in host_state.aggregates:
        for key, value in aggregate.metadata.items():
            have.setdefault(key, set()).add(value)
    return HostLack('; '.join(
        f'{key}={value} needed, ' + (
            f'aggregates have {", ".join(sorted(have[key]))}'
            if key in have else 'no aggregate has the key')
        for key, value in sorted(required.items())
        if value not in have.get(key, ())))


def _blazar(host_state, spec, note) -> HostLack:
    refusal = blazar.refusal(host_state.aggregates, spec)
    if refusal.is_reserved:
        return HostLack(
            refusal.text, kind=values.RefusalKind.RESERVED, need='a '
            'reservation needed on hosts that are kept for reservations')
    return HostLack(refusal.text)


_KNOWN: dict[str, Callable[..., HostLack]] = {
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
