# SPDX-License-Identifier: Apache-2.0
"""Read a RequestSpec once: policies, guest cells, networks, PCI requests.

The filters and weighers of one request share the result and other data about
the request, as a note in an attribute of the RequestSpec.  A RequestSpec is
used by one thread of one process for one request, so nothing is locked.
"""

from collections.abc import Hashable
from collections.abc import Mapping
import dataclasses
import typing as ty

from nfv_sched import extra_specs as nfv_extra_specs
from nfv_sched.ledger import reader
from nfv_sched.network import demand as network_demand
from nfv_sched.network import sources
from nfv_sched.nova import fields
from nfv_sched.nova import scheduler
from nfv_sched.numa import decide
from nfv_sched.numa import evaluation
from nfv_sched.numa import pci
from nfv_sched.numa import rule
from nfv_sched.numa import topology
from nfv_sched import reasons
from nfv_sched import rules
from nfv_sched import shadow

_NOTE = '_nfv_sched_note'

Part = ty.TypeVar('Part')


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Request:
    """The requirements of a request, as far as hosts' NUMA nodes matter.

    :ivar policy: placement policies of flavor and image
    :ivar guest: the guest's NUMA cells, None if it has none
    :ivar pristine: the guest's NUMA cells as the claim on the compute node
        reads them; within a multi-create request Nova writes the placement of
        one server into the request of the next
    :ivar rules: the placement rules beyond Nova's own
    :ivar physnets: physical networks of the request
    :ivar tunneled: whether a tunnelled network is, or may be, among the
        networks
    :ivar tunnel_uncertain: ``tunneled`` may be wrong: Nova sets it for every
        move
    :ivar tunnel_untrue: Nova has set it although no network is tunnelled;
        ``tunneled`` is false then
    :ivar is_move: the request moves an existing server
    :ivar demands: the PCI requests; empty if none
    :ivar may_take_card: whether they may take a PF and VFs of the same card
    :ivar network_metadata: ``nova.objects.NetworkMetadata`` or None
    :ivar error: the reason why no host can take the request, or None
    :ivar nics: the network interfaces
    :ivar security_groups: UUIDs of the security groups of ports that Nova
        creates, or ``default``
    :ivar project: UUID of the project
    :ivar plain: whether Nova's own rules decide about the guest's NUMA
        topology: there are no others, no error, and no doubt about a tunnel
    :ivar one_cell: whether the guest fits a host if it fits one of its NUMA
        cells: the request is ``plain``, the guest has one NUMA cell, and
        neither networks, a choice of page sizes, nor cards matter
    """

    policy: nfv_extra_specs.NFVPolicy
    guest: topology.GuestTopology | None
    pristine: topology.GuestTopology | None
    rules: tuple[rule.Rule, ...]
    physnets: frozenset[str]
    tunneled: bool
    tunnel_uncertain: bool
    tunnel_untrue: bool
    is_move: bool
    demands: tuple[pci.Demand, ...]
    may_take_card: bool
    network_metadata: ty.Any
    error: reasons.Reason | None
    nics: tuple[network_demand.RequestedNIC, ...]
    security_groups: tuple[str, ...]
    project: str | None
    plain: bool
    one_cell: bool


class DecisionOptions(ty.NamedTuple):
    """Options of nova.conf to decide by, read once for each server.

    :ivar names: names of the labels
    :ivar predicted_is_enough: ``strict_enforcement = predicted``
    :ivar sorting: how Nova sorts the cells of a host
    :ivar limits_lost: live migrations must satisfy strict policies without the
        limits: ``moves_without_limits = refuse`` on a Nova that loses them
    :ivar keeps_room: ``numa_fragmentation_within_host``
    :ivar filters: name of each enabled filter that is not in shadow -> its
        position among them; the last one if it is enabled several times
    """

    names: rule.Names
    predicted_is_enough: bool
    sorting: evaluation.CellSorting
    limits_lost: bool
    keeps_room: bool
    filters: Mapping[str, int]


class RequestNote:
    """The data of one request that is kept while it is scheduled.

    :ivar request: the request as last read
    :ivar index: number of the server that is being placed, from 0; None if not
        known
    :ivar flavor: ``nova.objects.Flavor`` of the request, as last read
    :ivar rejected: (host, reason) of the refusals for this server
    :ivar passes: for each filter that looked at hosts for this server: its
        name, the number of hosts that it was given and that it accepted, and
        the number of refusals after it
    :ivar limits: NUMA limits objects by content, shared by like hosts
    :ivar settings: the options for this server; None until first read
    :ivar ran: filters that have run though they are not enabled; their rules
        count
    :ivar terms: values of ``shadowed`` and ``ran`` -> ``decide.Terms``
    :ivar decisions: (``id`` of the terms, whether rules lower the CPU ratio of
        the host, its shape) -> ``decide.Decision``; and shape of the PCI
        devices of a host -> ``pci.CandidateDevices``
    :ivar instance: UUID of the server that is being placed
    :ivar before: UUIDs of the servers of the request that filters have looked
        at before it
    :ivar queried_at: when Nova was about to query Placement for candidates,
        seconds of ``time.monotonic()``; None if not known
    :ivar ledgers: the ledgers in Placement's answer; None if not known
    :ivar taken: (host, UUID of the server) of each host on which resources
        were taken; see ``network_limits.contention.Contested``
    :ivar placed: UUIDs of the servers of the request that Nova has placed on a
        host that a filter of limits passed; empty if none of these has run
    :ivar recorded: whether the journal has the refusal of the request
    :ivar sources: sources of the network load of hosts; None for those of the
        process
    :ivar live_migration: whether the request is for a live migration; None
        until Nova's database is read
    :ivar in_shadow: the filters and weighers in shadow; None until first read
    :ivar shadowed: names of filters that do not count, as they are in shadow
        on the hosts that are decided about now; None for those of the option
    :ivar observed: on a note on which filters in shadow decide, names of
        those; None on all others
    """

    __slots__ = ('request', 'index', 'flavor', 'rejected', 'passes',
                 'limits', 'settings', 'ran', 'terms', 'decisions',
                 'instance', 'before', 'queried_at', 'ledgers', 'taken',
                 'placed', 'recorded', 'sources', 'live_migration',
                 'in_shadow', 'shadowed', 'observed', '_key', '_extra_specs',
                 '_pristine', '_parts')

    def __init__(self):
        self.request: Request | None = None
        self.index: int | None = None
        self.flavor: ty.Any = None
        self.rejected: list[tuple[str, reasons.Lazy]] = []
        self.passes: list[tuple[str, int, int, int]] = []
        self.limits: dict = {}
        self.settings: DecisionOptions | None = None
        self.ran: tuple[str, ...] = ()
        self.terms: dict[tuple[str, ...], decide.Terms] = {}
        self.decisions: dict[Hashable,
                             decide.Decision | pci.CandidateDevices] = {}
        self.instance: str | None = None
        self.before: tuple[str, ...] = ()
        self.queried_at: float | None = None
        self.ledgers: reader.Reading | None = None
        self.taken: list[tuple[str, str]] = []
        self.placed: set[str] = set()
        self.recorded: bool = False
        self.sources: sources.Sources | None = None
        self.live_migration: bool | None = None
        self.in_shadow: shadow.InShadow | None = None
        self.shadowed: frozenset[str] | None = None
        self.observed: frozenset[str] | None = None
        self._key: tuple = ()
        self._extra_specs: dict = {}
        self._pristine: topology.GuestTopology | None = None
        self._parts: dict[type, object] = {}

    def part(self, kind: type[Part]) -> Part | None:
        """Return the object of a class that another package keeps here."""
        return ty.cast('Part | None', self._parts.get(kind))

    def keep(self, part: object) -> None:
        """Keep an object on the note, instead of any other of its class."""
        self._parts[type(part)] = part

    def drop(self, kind: type) -> None:
        """Drop the object of a class, if there is one."""
        self._parts.pop(kind, None)

    def use(self, network: sources.Sources,
            live_migration: bool | None = None) -> None:
        """Set what the scheduler would read; None stands for no move."""
        self.sources = network
        self.live_migration = bool(live_migration)

    def begin(self, index: int | None, spec_obj=None) -> None:
        """Start a filter; forget what concerned another server.

        :param index: number of the server that is being placed, from 0; None
            if not known
        :param spec_obj: ``nova.objects.RequestSpec``
        """
        # Nova schedules the servers of a multi-create request one after the
        # other with the same RequestSpec: _schedule() only sets another
        # instance_uuid.
        instance = fields.get(spec_obj, 'instance_uuid')
        if self.instance not in (None, instance):
            self.before += (self.instance,)
        self.instance = instance
        if index != self.index or index is None:
            self.index = index
            self.rejected = []
            self.passes = []
            self.settings = self.in_shadow = self.shadowed = None
            self.terms, self.decisions = {}, {}

    def leave_out(self, names: frozenset[str]) -> None:
        """Set the filters that do not count from now on; see ``shadowed``."""
        if names != self.shadowed:
            self.shadowed, self.settings = names, None

    def follow(self, other: 'RequestNote') -> None:
        """Take over the request of another note, but none of its decisions.

        To decide about the request in another way.
        """
        if other.index is None or (other.index, other.request) != (
                self.index, self.request):
            self.settings = None
            self.limits, self.terms, self.decisions = {}, {}, {}
            self.ran = ()
        self.request, self.index = other.request, other.index
        self.flavor = other.flavor
        self.instance, self.before = other.instance, other.before
        self.queried_at, self.ledgers = other.queried_at, other.ledgers
        self.sources = other.sources
        if self.live_migration is None:
            self.live_migration = other.live_migration

    def read(self, spec_obj) -> Request:
        """Return the request, parsed again if the RequestSpec has changed.

        :param spec_obj: ``nova.objects.RequestSpec``
        :returns: the request; a mistake in it is its ``error``
        """
        flavor = fields.get(spec_obj, 'flavor')
        extra_specs = fields.get(flavor, 'extra_specs') or {}
        if not isinstance(extra_specs, Mapping):
            extra_specs = {}
        key = (flavor, fields.get(spec_obj, 'image'),
               fields.get(spec_obj, 'numa_topology'),
               fields.get(spec_obj, 'pci_requests'),
               fields.get(spec_obj, 'network_metadata'),
               fields.get(spec_obj, 'requested_networks'),
               fields.get(spec_obj, 'requested_destination'),
               fields.get(spec_obj, 'security_groups'),
               fields.get(spec_obj, 'project_id'))
        # By identity: Nova replaces these objects, as consume_from_request()
        # does with numa_topology, and comparing their content at each filter
        # would cost time. Extra specs are a plain dict, which may change in
        # place.
        if (self.request is not None and
                all(a is b for a, b in zip(key, self._key)) and
                extra_specs == self._extra_specs):
            return self.request
        # Guest cells that change with the flavor are those of another guest.
        # Otherwise Nova has narrowed them for the server before.
        if self.request is None or extra_specs != self._extra_specs:
            self._pristine = None
        self._key, self._extra_specs = key, dict(extra_specs)
        self.flavor = flavor
        self.limits = {}
        self.terms, self.decisions = {}, {}
        self.request = self._parse(extra_specs, *key[1:])
        return self.request

    def _parse(self, extra_specs, image, numa_topology, pci_requests,
               network_metadata, requested_networks, destination,
               security_groups, project) -> Request:
        properties = _Properties(fields.get(image, 'properties'))
        policy = nfv_extra_specs.parse(extra_specs, properties)
        error = None
        try:
            guest = topology.guest(numa_topology)
        except topology.OddTopologyError as exc:
            guest = None
            error = reasons.Reason(
                reasons.REQUEST, 'NUMA topology', f'unreadable: {exc}')
        if self._pristine is None:
            self._pristine = guest
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
            policy=policy, guest=guest, pristine=self._pristine,
            rules=request_rules, physnets=physnets,
            tunneled=tunneled, tunnel_uncertain=uncertain,
            tunnel_untrue=untrue, is_move=is_move, demands=demands,
            may_take_card=may_take_card,
            network_metadata=network_metadata, error=error,
            nics=_nics(networks, is_move),
            security_groups=_security_groups(security_groups),
            project=project if isinstance(project, str) else None,
            plain=plain,
            one_cell=(plain and len(guest.cells) == 1 and
                      not (guest.any_pages or physnets or tunneled or
                           may_take_card)))


def note_of(spec_obj) -> RequestNote:
    """Return the note on a RequestSpec; made on first use."""
    note = spec_obj.__dict__.get(_NOTE)
    if note is None:
        note = RequestNote()
        spec_obj.__dict__[_NOTE] = note
    return note


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
    """Return the network interfaces of a request.

    For a new server whose request names no networks Nova picks one of the
    project's: ``AUTO_NETWORK``.
    """
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
    """Return whether flavor or image need pinned CPUs on sibling threads."""
    return (
        'dedicated' in (extra_specs.get('hw:cpu_policy'),
                        properties.get('hw_cpu_policy')) and
        'require' in (extra_specs.get('hw:cpu_thread_policy'),
                      properties.get('hw_cpu_thread_policy')))


def _switch_physnets(
    physnets: frozenset[str], requests: list, networks: list,
) -> frozenset[str]:
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
