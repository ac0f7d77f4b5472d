# SPDX-License-Identifier: Apache-2.0
"""Check compute nodes, aggregates and flavors in Nova's database.

NUMA topologies are those that each compute node has reported last.
"""

from collections.abc import Iterable, Iterator
import contextlib
import functools
import math

from oslo_upgradecheck import upgradecheck

from nfv_sched.base import strings
from nfv_sched.checks import findings
from nfv_sched.checks import scheduler
from nfv_sched.fit.numa import rule
from nfv_sched.fit.numa import topology
from nfv_sched.fit import rules
from nfv_sched.limits import options as limits
from nfv_sched.nova import database
from nfv_sched.nova import scheduler as nova_scheduler
from nfv_sched.scheduler import shadow

_BARE_METAL = 'ironic'

# Maximum number of different mistakes in flavors to show.
_MOST = 10

#: Attempts with which no server of a storm was lost.
ATTEMPTS = 10
_PINNED = ('dedicated', 'mixed')

#: Shown below the mistakes.
ADVICE = (
    'No host takes servers of these flavors. Correct them with "openstack '
    '--os-compute-api-version 2.86 flavor set", and remove a wrong key with '
    '"openstack flavor unset --property".')


class Computes:
    """The compute nodes, read from Nova's database on first use."""

    @functools.cached_property
    def _read(self) -> tuple[list[database.ComputeNode], list[str], str]:
        """Compute nodes, errors of cells, and that of the API database."""
        try:
            return *database.compute_nodes(), ''
        except Exception as exc:
            return [], [], ('see [api_database] connection: '
                            f'{strings.brief(exc)}.')

    def nodes(self, what: str) -> list[database.ComputeNode]:
        """Return the compute nodes, except bare metal, sorted by host.

        :param what: what is checked
        :raises findings.UnreadError: if none can be read
        """
        nodes, failures, error = self._read
        if error or failures and not nodes:
            raise findings.UnreadError(
                what, error or f'{"; ".join(map(strings.brief, failures))}.')
        return sorted(
            (node for node in nodes
             if node.hypervisor_type.lower() != _BARE_METAL),
            key=lambda node: (node.host, node.name))

    def unread(self) -> list[findings.Finding]:
        """Return a warning for each cell that cannot be read."""
        return [findings.warning(
            f'Compute nodes were not looked at: {strings.brief(failure)}.')
            for failure in self._read[1]]


def _view(node: database.ComputeNode) -> topology.HostTopology | None:
    """Return the reported NUMA cells; raise OddTopologyError if unreadable."""
    try:
        return topology.host_topology(database.numa_topology(node))
    except Exception as exc:
        raise topology.OddTopologyError(str(exc)) from exc


def _views(
    nodes: Iterable[database.ComputeNode],
) -> dict[str, topology.HostTopology]:
    """Return host name -> NUMA cells, for topologies that can be read."""
    views = {}
    for node in nodes:
        # labels() warns of those that cannot.
        with contextlib.suppress(topology.OddTopologyError):
            if (view := _view(node)) is not None:
                views[node.host] = view
    return views


def labels(conf, computes: Computes) -> upgradecheck.Result:
    """Check that compute nodes declare where their virtual switch runs."""
    if not scheduler.uses_labels(conf):
        return findings.success(
            'Not needed: no filter that uses labels is enabled.')
    switch = scheduler.VSWITCH in conf.filter_scheduler.enabled_filters
    nodes, problems = computes.nodes('Labels'), computes.unread()
    if not nodes:
        return findings.conclude(
            problems + [
                findings.warning('There are no compute nodes yet.')], '')
    faults: dict[str, list[str]] = {}
    declared = 0
    ordinary = []
    for node in nodes:
        try:
            view = _view(node)
        except topology.OddTopologyError as exc:
            problems.append(findings.warning(
                f'{node.host}: its NUMA topology is unreadable: '
                f'{strings.brief(exc)}.'))
            continue
        if view is None:
            faults.setdefault(_NO_TOPOLOGY, []).append(node.host)
            continue
        if view.labels or view.tunnel:
            declared += 1
        elif conf.workarounds.disable_fallback_pcpu_query and (
                not _has_dedicated_set(view)):
            # No pinned servers go there, so it needs no labels.
            ordinary.append(node.host)
            continue
        for fault in _label_faults(conf, view, switch):
            faults.setdefault(fault, []).append(node.host)
    problems += [findings.warning(
        f'{strings.some(hosts)}: {fault}') for fault, hosts in faults.items()]
    if switch and not declared:
        problems.append(findings.failure(
            'No compute node says where its virtual switch runs, so no '
            'server with nfv:vswitch_numa_affinity=strict can be placed: '
            'declare the labels in the nova.conf of the compute nodes and '
            'restart nova-compute.'))
    return findings.conclude(
        problems, f'{declared} compute nodes declare their labels.' + (
            f' No labels, and no dedicated CPUs: {strings.some(ordinary)}.'
            if ordinary else ''))


_NO_TOPOLOGY = (
    'no NUMA topology is reported, so no server with a NUMA topology is '
    'placed there. See whether nova-compute has reported and its driver is '
    'libvirt.')


def _label_faults(conf, host_topology: topology.HostTopology,
                  switch: bool) -> Iterator[str]:
    names = rule.Names(conf.nfv_sched.vswitch_label,
                       conf.nfv_sched.node_label_prefix)
    label, prefix = names
    if switch and label not in host_topology.labels:
        yield f'no label {label}. ' + (
            'Only their physical networks say where the switch runs.'
            if host_topology.labels or host_topology.tunnel else
            'Servers with nfv:vswitch_numa_affinity=strict are not placed '
            'there.') + f' Declare [neutron_physnet_{label}] numa_nodes.'
    present = {number: nodes for name, nodes in host_topology.labels.items()
               if name != label and (number := names.node(name)) is not None}
    for number, mask in sorted(present.items()):
        if not host_topology.bit_of(number):
            yield (f'label {prefix}{number}, but the host has no NUMA node '
                   f'{number}. Remove the label.')
        elif mask != host_topology.bit_of(number):
            nodes = ', '.join(map(str, host_topology.nodes(mask)))
            yield (f'label {prefix}{number} is on NUMA node {nodes}, and not '
                   f'used. Set [neutron_physnet_{prefix}{number}] '
                   f'numa_nodes = {number}.')
    cell_ids = [cell.id for cell in host_topology.cells]
    missing = [names.of_node(node) for node in cell_ids if node not in present]
    if missing and len(cell_ids) > 1:
        yield (f'no label {", ".join(missing)}. Servers with several NUMA '
               'nodes, nfv:numa_node or nfv:numa_anti_affinity are refused '
               'there where labels would be needed to hold them. Declare one '
               'for each NUMA node.')


def aggregates(computes: Computes) -> upgradecheck.Result:
    """Check that aggregates override options with valid values."""
    nodes = computes.nodes('The metadata of aggregates')
    aggregates_by_id = {aggregate.id: aggregate for node in nodes
                        for aggregate in node.aggregates}
    limit_names = (*limits.Limits._fields, 'shared_vcpus_per_core')
    problems = []
    overriding = 0
    for aggregate in aggregates_by_id.values():
        for name, value in sorted(aggregate.metadata.items()):
            if name == shadow.OPTION:
                problems.append(findings.warning(
                    f'Aggregate {aggregate.name}: {name} has no effect any '
                    'more. Remove it, and set [nfv_sched] shadow for the '
                    'whole cloud.'))
            if name not in limit_names and not (
                    name.endswith('_weight_multiplier')
                    and name in nova_scheduler.CONF.nfv_sched):
                continue
            overriding += 1
            if not _is_number(value):
                problems.append(findings.warning(
                    f'Aggregate {aggregate.name}: {name}={value} is '
                    'not a number and has no effect. Correct or remove it.'))
    return findings.conclude(
        problems, f'{overriding} overrides in {len(aggregates_by_id)} '
        'aggregates.')


def _is_number(value: str) -> bool:
    try:
        return not math.isnan(float(value))
    except ValueError:
        return False


def pinning(conf, computes: Computes) -> upgradecheck.Result:
    """Check that Placement counts pinned servers on the CPUs that they get.

    With the fallback query Nova also asks Placement for hosts where the pinned
    CPUs of a server are allocated as ``VCPU`` instead of ``PCPU``.  Hosts
    without ``cpu_dedicated_set`` only have ``VCPU``; the others are offered in
    both ways.
    """
    disabled = conf.workarounds.disable_fallback_pcpu_query
    option = '[workarounds] disable_fallback_pcpu_query'
    views, problems = _views(computes.nodes(option)), computes.unread()
    legacy = [host for host, view in views.items()
              if any(cell.dedicated and cell.legacy for cell in view.cells)]
    dedicated = [host for host, view in views.items()
                 if _has_dedicated_set(view)]
    if disabled and legacy and not dedicated:
        problems.append(findings.warning(
            f'{option} is true, but no host has [compute] cpu_dedicated_set, '
            'so pinned servers find none: set it, and cpu_shared_set for '
            'other servers, on the hosts for pinned ones.'))
    elif not disabled and dedicated and not legacy:
        problems.append(findings.warning(
            f'{option} is false, though every host for pinned servers has '
            '[compute] cpu_dedicated_set. A pinned server can then be counted '
            'against the shared CPUs of a host: set the option to true.'))
    elif not disabled and dedicated:
        problems.append(findings.warning(
            f'{option} is false, so pinned servers can go to '
            f'{strings.some(legacy)} without [compute] cpu_dedicated_set. On '
            'the other hosts they can then be counted against the shared '
            'CPUs: set cpu_dedicated_set, and cpu_shared_set for other '
            'servers, on all hosts for pinned ones, then the option to true.'))
    return findings.conclude(
        problems, f'{option} is {str(disabled).lower()}, as the '
        f'{len(views)} compute nodes want it.' + (
            f' No pinned servers go to {strings.some(legacy)} without '
            '[compute] cpu_dedicated_set.' if disabled and legacy else ''))


def _has_dedicated_set(host_topology: topology.HostTopology) -> bool:
    return any(cell.dedicated and not cell.legacy
               for cell in host_topology.cells)


def retries(conf) -> upgradecheck.Result:
    """Check that Nova makes enough attempts for pinned servers in a burst.

    Placement counts the CPUs of whole hosts, so that servers requested at the
    same moment are granted the same NUMA node, and all but one fail there.
    """
    most = conf.scheduler.max_attempts
    pinned = [] if most >= ATTEMPTS else sorted(
        flavor.name for flavor in _flavors()
        if flavor.extra_specs.get('hw:cpu_policy') in _PINNED)
    return findings.conclude([findings.warning(
        f'[scheduler] max_attempts is {most}: of servers with pinned CPUs '
        f'({strings.some(pinned)}) that are booted at the same moment, some '
        f'end in ERROR. Set {ATTEMPTS} where nova-scheduler and '
        'nova-conductor run.')] if pinned else [], (
            '[scheduler] max_attempts is enough here; nova-conductor needs '
            'the same.'))


def _flavors() -> list:
    """Return all flavors, or raise ``findings.UnreadError``."""
    try:
        return list(database.flavors())
    except Exception as exc:
        raise findings.UnreadError(
            'Flavors', 'see [api_database] connection: '
            f'{strings.brief(exc)}.') from exc


def flavors() -> upgradecheck.Result:
    """Check that the extra specs of nfv-sched are valid in all flavors."""
    all_flavors = _flavors()
    faults: dict[str, list[str]] = {}
    for flavor in all_flavors:
        for error in rules.faults(flavor.extra_specs):
            faults.setdefault(error, []).append(flavor.name)
    problems = [findings.warning(f'{strings.some(names)}: {error}.')
                for error, names in sorted(faults.items())[:_MOST]]
    if len(faults) > _MOST:
        problems.append(findings.warning(
            f'{len(faults) - _MOST} more mistakes in flavors.'))
    if problems:
        problems.append(findings.warning(ADVICE))
    return findings.conclude(
        problems, 'The extra specs of nfv-sched are right in all '
        f'{len(all_flavors)} flavors.')
