# SPDX-License-Identifier: Apache-2.0
"""Policies, guest cells, networks and PCI requests of a RequestSpec."""

from collections.abc import Mapping
import dataclasses
import typing as ty

from nfv_sched.base import extra_specs as nfv_extra_specs
from nfv_sched.base import reasons
from nfv_sched.fit.numa import pci
from nfv_sched.fit.numa import rule
from nfv_sched.fit.numa import topology
from nfv_sched.fit import rules
from nfv_sched.limits import demand as network_demand
from nfv_sched.nova import fields
from nfv_sched.nova import scheduler


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Request:
    policy: nfv_extra_specs.NFVPolicy
    #: the guest's NUMA cells, None if it has none
    guest: topology.GuestTopology | None
    #: the guest's NUMA cells as the claim on the compute node reads them;
    #: within a multi-create request Nova writes the placement of one server
    #: into the request of the next
    pristine: topology.GuestTopology | None
    rules: tuple[rule.Rule, ...]  #: the placement rules beyond Nova's own
    physnets: frozenset[str]
    #: whether a tunnelled network is, or may be, among the networks
    tunneled: bool
    #: ``tunneled`` may be wrong: Nova sets it for every move
    tunnel_uncertain: bool
    #: Nova has set it, but no network is tunnelled: ``tunneled`` is false
    tunnel_untrue: bool
    is_move: bool  #: the request moves an existing server
    demands: tuple[pci.Demand, ...]
    #: whether its PCI requests may take a PF and VFs of the same card
    may_take_card: bool
    network_metadata: ty.Any  #: ``nova.objects.NetworkMetadata`` or None
    #: the reason why no host can take the request, or None
    error: reasons.Reason | None
    nics: tuple[network_demand.RequestedNIC, ...]
    #: UUIDs of the security groups of ports that Nova creates, or ``default``
    security_groups: tuple[str, ...]
    project: str | None  #: UUID of the project
    #: whether Nova's own rules decide about the guest's NUMA topology: there
    #: are no others, no error, and no doubt about a tunnel
    plain: bool
    #: whether the guest fits a host if it fits one of its NUMA cells: the
    #: request is ``plain``, the guest has one NUMA cell, and neither networks,
    #: a choice of page sizes, nor cards matter
    one_cell: bool


def parse(extra_specs: Mapping, image, numa_topology, pci_requests,
          network_metadata, requested_networks, destination, security_groups,
          project, pristine: topology.GuestTopology | None) -> Request:
    """Return the requirements in the parts of a RequestSpec.

    :param pristine: the guest's NUMA cells before Nova narrowed them for
        another server; None for those of ``numa_topology``
    :returns: the request; a mistake in it is its ``error``
    """
    properties = _Properties(fields.get(image, 'properties'))
    policy = nfv_extra_specs.parse(extra_specs, properties)
    error = None
    try:
        guest = topology.guest(numa_topology)
    except topology.OddTopologyError as exc:
        guest = None
        error = reasons.Reason(
            reasons.REQUEST, 'NUMA topology', f'unreadable: {exc}')
    if policy.errors:
        error = reasons.Reason(
            reasons.REQUEST, 'flavor', '; '.join(map(str, policy.errors)))
    # New servers have a requested_destination, too, if the user names a
    # host, but only the conductor sets its cell, for moves. For a
    # cross-cell resize to a named host MigrationTask leaves the cell out.
    is_move = (fields.get(destination, 'cell') is not None or
               bool(fields.get(destination, 'allow_cross_cell_move')))
    requests = list(fields.get(pci_requests, 'requests') or [])
    demands: tuple[pci.Demand, ...] = ()
    try:
        demands = pci.demands(
            requests, scheduler.pci_alias_policy if is_move else None)
    except pci.OddDevicesError as exc:
        error = error or reasons.Reason(
            reasons.REQUEST, 'PCI devices', str(exc))
    physnets = frozenset(fields.get(network_metadata, 'physnets') or ())
    tunneled = bool(fields.get(network_metadata, 'tunneled'))
    networks = list(fields.get(requested_networks, 'objects') or [])
    # RequestSpec.ensure_network_information(), for moves, begins with
    # "tunneled = True" and only ever ors to it.
    uncertain = tunneled and is_move
    untrue = False
    if uncertain and physnets and len({
            fields.get(n, 'network_id') for n in networks
    }) == len(physnets):
        # As many physical networks as networks: none is tunnelled.
        tunneled = uncertain = False
        untrue = True
    request_rules: tuple[rule.Rule, ...] = ()
    if error is None:
        try:
            request_rules = rules.from_request(rule.RequestParts(
                policy, extra_specs, properties, guest, numa_topology,
                demands, _switch_physnets(physnets, requests, networks),
                tunneled and not uncertain,
                _needs_threads(extra_specs, properties)))
        except rule.RequestError as exc:
            error = exc.reason
    may_take_card = pci.may_take_card(demands)
    plain = (not request_rules and error is None and guest is not None and
             not uncertain and not untrue)
    return Request(
        policy=policy, guest=guest,
        pristine=guest if pristine is None else pristine, rules=request_rules,
        physnets=physnets, tunneled=tunneled, tunnel_uncertain=uncertain,
        tunnel_untrue=untrue, is_move=is_move, demands=demands,
        may_take_card=may_take_card, network_metadata=network_metadata,
        error=error,
        nics=_nics(networks, is_move),
        security_groups=_security_groups(security_groups),
        project=project if isinstance(project, str) else None,
        plain=plain,
        one_cell=(plain and len(guest.cells) == 1 and
                  not (guest.any_pages or physnets or tunneled or
                       may_take_card)))


class _Properties:
    """Image properties with a ``get`` that never raises."""

    def __init__(self, properties):
        self._properties = properties

    def get(self, name: str, default=None):
        if isinstance(self._properties, Mapping):
            return self._properties.get(name, default)
        value = fields.get(self._properties, name)
        return default if value is None else value


def _nics(networks: list, is_move: bool) -> tuple[network_demand.RequestedNIC,
                                                  ...]:
    """Return the NICs; ``AUTO_NETWORK`` if a new server names no networks."""
    if not networks and not is_move:
        return (network_demand.RequestedNIC(network_demand.AUTO_NETWORK),)
    return tuple([
        network_demand.RequestedNIC(*(fields.get(network, name) for name in (
            'network_id', 'port_id', 'pci_request_id', 'device_profile')))
        for network in networks])


def _security_groups(groups) -> tuple[str, ...]:
    """Return the UUIDs of security groups, or names where they have none."""
    return tuple([
        identifier for group in fields.get(groups, 'objects') or ()
        if isinstance(identifier := fields.get(group, 'uuid') or
                      fields.get(group, 'name'), str)])


def _needs_threads(extra_specs: Mapping, properties: _Properties) -> bool:
    return (
        'dedicated' in (extra_specs.get('hw:cpu_policy'),
                        properties.get('hw_cpu_policy')) and
        'require' in (extra_specs.get('hw:cpu_thread_policy'),
                      properties.get('hw_cpu_thread_policy')))


def _switch_physnets(physnets: frozenset[str], requests: list,
                     networks: list) -> frozenset[str]:
    """Return physical networks that are reached through the virtual switch.

    Nova does not report which port is on which physical network, so those of
    SR-IOV ports are left out only if all ports are SR-IOV ports.
    """
    if not networks or not all(fields.get(network, 'pci_request_id')
                               for network in networks):
        return physnets
    sriov_physnets = set()
    for request in requests:
        for spec in fields.get(request, 'spec') or ():
            if isinstance(spec, Mapping) and spec.get('physical_network'):
                sriov_physnets.add(spec['physical_network'])
    return physnets - sriov_physnets
