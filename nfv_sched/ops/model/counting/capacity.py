# SPDX-License-Identifier: Apache-2.0
"""Count how many more servers of each flavor fit, and what limits them.

Each host is counted by itself with its free capacity: servers are added as
long as Placement finds capacity with the query of Nova's scheduler, the
enabled filters pass the host, and the claim on the compute node succeeds
(:mod:`nfv_sched.ops.model.counting.host_count`).  The counts of hosts add up.
Server groups and quotas are ignored.  Servers have no scheduler hints but
those that are given, the ports that
:mod:`nfv_sched.ops.model.requests.assumed_ports` assumes, and belong to a
project that no aggregate is reserved for, unless one is named.
"""

import bisect
import collections
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import contextlib
import dataclasses
import functools
import itertools
import math
import types
import typing as ty

from nova import exception
from nova import objects
import os_traits

from nfv_sched.base import extensions
from nfv_sched.filters import base as filters_base
from nfv_sched.filters import network as network_filters
from nfv_sched.filters import nfv_topology
from nfv_sched.fit import decide
from nfv_sched.fit.numa import fit
from nfv_sched.fit.numa import topology
from nfv_sched.fit import occupancy
from nfv_sched.fit import pci_pools
from nfv_sched.limits import decide as limits_decide
from nfv_sched.limits import options as network_limits
from nfv_sched.nova import scheduler as nova_scheduler
from nfv_sched.ops.cloud import blazar
from nfv_sched.ops.cloud import occupied
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.model.counting import binding as bindings
from nfv_sched.ops.model.counting import host_count
from nfv_sched.ops.model.counting import losses
from nfv_sched.ops.model.counting import placement_count
from nfv_sched.ops.model.requests import assumed_ports
from nfv_sched.ops.simulator import compute
from nfv_sched.ops.simulator import nova_internals
from nfv_sched.ops.simulator import placement
from nfv_sched.ops.simulator import request as sim_request
from nfv_sched.ops.simulator import servers
from nfv_sched.ops.simulator import start
from nfv_sched.ops.simulator import state as states
from nfv_sched.scheduler import active_rules
from nfv_sched.scheduler import limits_note
from nfv_sched.scheduler import notes

Binding = bindings.Binding
BindingKind = bindings.BindingKind

#: Nova's filters that the count itself replaces.
_COUNTED = ('NUMATopologyFilter', 'PciPassthroughFilter')
_COMPUTE = 'ComputeFilter'
_KINDS = {'VSwitchPortLimitFilter': BindingKind.PORTS,
          'SecurityRuleLimitFilter': BindingKind.RULES,
          _COMPUTE: BindingKind.SERVICE}
NO_IMAGE: Mapping[str, str] = types.MappingProxyType({})
NO_HINTS: Mapping[str, Sequence[str]] = types.MappingProxyType({})
_NOTHING_LIFTED: frozenset[Binding] = frozenset()
_SEVERAL = Binding(
    BindingKind.SEVERAL, 'the PCI devices that Placement grants do not suit '
    'the NUMA nodes with capacity', alone=False)
_NO_PORTS = assumed_ports.Ports(
    basis=assumed_ports.Basis.NUMBER)
#: Nova requires this trait for the thread policy require, and forbids it for
#: isolate, unless it asks for VCPU in place of PCPU.
_HYPERTHREADING = os_traits.HW_CPU_HYPERTHREADING
_ACCELERATOR = 'accel:device_profile'


@dataclasses.dataclass(frozen=True, slots=True)
class HostCapacity:
    """The number of servers of a flavor that one host takes."""

    fits: int  #: number of servers that fit one after the other
    placement: int  #: number of servers that Placement would grant
    binding: tuple[Binding, ...] = ()  #: limits that keep the next server off
    #: servers that Placement would grant and the host does not take, by cause
    lost: Mapping[losses.Cause, int] = dataclasses.field(
        default_factory=dict, hash=False)


@dataclasses.dataclass(frozen=True, slots=True)
class FlavorCapacity:
    """The number of servers of a flavor that a cloud takes."""

    flavor: snapshot.Flavor
    fits: int
    placement: int
    hosts: Mapping[str, HostCapacity]  #: capacity of each host, by its name
    #: why Nova takes no server of this flavor; None if it does
    error: str | None = None
    #: ports that each server is assumed to have
    ports: assumed_ports.Ports = _NO_PORTS
    #: names in the request that Placement does not know
    unknown: tuple[placement.Unknown, ...] = ()
    #: a PCI alias that Nova does not know; None if there is none
    unknown_alias: str | None = None
    #: extra specs that may let fewer servers fit, and that could not be
    #: counted; see :func:`uncounted`
    uncounted: tuple[str, ...] = ()
    #: forbidden traits that Placement may not know, because its traits were
    #: not read; if so, Nova takes no server of this flavor
    unverified: tuple[placement.Unknown, ...] = ()

    @property
    def with_room(self) -> int:
        return sum(host.fits > 0 for host in self.hosts.values())

    @property
    def lost(self) -> Mapping[losses.Cause, int]:
        """Servers that Placement would grant and hosts do not take, by cause.

        Highest number first; together the difference of :attr:`placement` and
        :attr:`fits`.
        """
        servers_by_cause: collections.Counter[losses.Cause] = (
            collections.Counter())
        for host in self.hosts.values():
            servers_by_cause.update(host.lost)
        return dict(servers_by_cause.most_common())

    @property
    def fragmented(self) -> int:
        """Servers lost to CPUs that are free, but not on suitable nodes."""
        return sum(count for cause, count in self.lost.items() if [
            limit.kind for limit in cause.limits] == [
                BindingKind.CPUS_ON_NODES])

    def within(self, hosts: Iterable[str]) -> 'FlavorCapacity':
        """Return the capacity of some hosts only; ignore unknown names."""
        by_host = {name: self.hosts[name] for name in hosts
                   if name in self.hosts}
        return dataclasses.replace(
            self, hosts=by_host, fits=sum(
                host.fits for host in by_host.values()),
            placement=sum(host.placement for host in by_host.values()))


def capacities(
    cloud: snapshot.Cloud, flavors: Sequence[snapshot.Flavor], *,
    hosts: Collection[str] | None = None, empty: bool = False,
    ports: assumed_ports.Choice = None,
    image: Mapping[str, str] = NO_IMAGE, project: str | None = None,
    hints: Mapping[str, Sequence[str]] = NO_HINTS,
    update: Callable[[int, int], None] = lambda done, total: None,
) -> list[FlavorCapacity]:
    """Count how many more servers of each flavor fit a cloud.

    :param flavors: each is counted as if no servers of the others were booted
    :param hosts: names of the hosts that count; None for all
    :param empty: count as if there were no servers
    :param ports: ports of each server; None for those of the flavor's servers
    :param image: image properties of each server that Nova knows
    :param project: ID of the servers' project; None for one that no aggregate
        is reserved for
    :param hints: scheduler hints of each server
    :param update: called with (flavors done, all flavors)
    :raises nfv_sched.ops.cloud.problems.InputError: if a filter of
        the cloud is not installed, or an option is bad
    """
    with counting_on(cloud, empty, ports, project, hints) as counting:
        flavor_capacities = []
        for index, flavor in enumerate(flavors):
            update(index, len(flavors))
            flavor_capacities.append(counting.capacity(flavor, hosts, image))
        update(len(flavors), len(flavors))
        return flavor_capacities


@contextlib.contextmanager
def counting_on(
    cloud: snapshot.Cloud, empty: bool, ports: assumed_ports.Choice,
    project: str | None = None,
    hints: Mapping[str, Sequence[str]] = NO_HINTS,
) -> Iterator['Counting']:
    """Simulate a cloud and yield a :class:`Counting` on it.

    :param empty: count as if there were no servers
    :param ports: ports of each server; None for those of the flavor's servers
    :param project: ID of the servers' project; None for one that no aggregate
        is reserved for
    :param hints: scheduler hints of each server
    :raises nfv_sched.ops.cloud.problems.InputError: if a filter of
        the cloud is not installed, or an option is bad
    """
    hosts = occupied.without_servers(cloud) if empty else cloud
    if any(host.providers for host in cloud.hosts):
        # The records of hosts include what servers use. Where Placement was
        # not read, only the servers show their allocations.
        hosts = dataclasses.replace(hosts, servers=())
    with start.started(hosts) as state:
        yield Counting(state, assumed_ports.per_flavor(cloud, ports),
                       any(
            host.network is not None for host in cloud.hosts), project,
            keep_ledgers=not empty, hints=hints)


class CountedHost(ty.NamedTuple):
    """A host that is read once for all flavors."""

    name: str
    state: ty.Any  #: ``nova.scheduler.host_manager.HostState``
    room: host_count.FreeResources  #: its free NUMA resources and PCI devices
    root: str  #: UUID of its root resource provider


class Counting:
    """A count of servers on the hosts of a simulated cloud.

    Nothing is changed there.

    :param ports: ports of new servers, or a function that returns them by
        flavor
    :param figures: whether used ports and rules of hosts are known; if not,
        their limits are ignored
    :param project: ID of the new servers' project; None for one that no
        aggregate is reserved for
    :param keep_ledgers: leave ledgers as they were read
    """

    def __init__(
        self, state: states.State,
        ports: assumed_ports.OfFlavor | assumed_ports.Ports
        | int = 1,
        figures: bool = True, project: str | None = None,
        keep_ledgers: bool = False,
        hints: Mapping[str, Sequence[str]] = NO_HINTS,
    ):
        self._state = state
        self.placement = state.placement
        self._ports_of = (
            ports if callable(ports) else assumed_ports.always(ports))
        self._project = project
        self._hints = hints
        if figures:
            # NOTE: A ledger reserves ports that no server has allocated.
            # Where the servers were left out, all ports would be reserved
            # beside what is allocated, and count twice.
            state.network.refresh(state.owners(), keep_ledgers)
        ours = {cls.__name__: cls for cls in extensions.classes(
            'nfv_sched.filters')}
        self._limits: list[network_filters.NetworkLimitFilter] = []
        self._filters = []
        for each in state.manager.enabled_filters:
            name = type(each).__name__
            cls = ours.get(name, object)
            if issubclass(cls, network_filters.NetworkLimitFilter):
                if figures:
                    self._limits.append(cls())
            elif name not in _COUNTED and not issubclass(
                    cls, (filters_base.RuleFilter,
                          nfv_topology.NFVTopologyFilter)):
                self._filters.append(each)
        host_states = list(state.manager.get_host_states_by_uuids(
            state.context, None, None))
        self._hosts = [self._read_host(each) for each in host_states]

    def _read_host(self, host_state) -> CountedHost:
        host = self._state.hosts[host_state.host]
        devices = None
        if host_state.pci_stats is not None:
            # Without devices there is no need for the tracker, which is slow.
            devices = pci_pools.PCIPools.read(())
            if host.record.devices:
                devices = pci_pools.PCIPools.read(
                    host.pci_tracker.stats.pools,
                    host.pci_tracker.occupied())
        room = host_count.FreeResources(
            topology.host_topology(host_state.numa_topology), devices)
        try:
            room.key  # reads all of the record
        except topology.OddTopologyError:
            # As in the filters, no server with a NUMA topology fits there.
            room = host_count.FreeResources(None, devices)
        return CountedHost(host.name, host_state, room, host_state.uuid)

    def capacity(
        self, flavor: snapshot.Flavor, hosts: Collection[str] | None = None,
        image: Mapping[str, str] = NO_IMAGE,
    ) -> FlavorCapacity:
        """Count the servers of a flavor, on all hosts if ``hosts`` is None."""
        chosen = self.hosts(hosts)
        ports = self._ports_of(flavor)
        try:
            guest = self.guest(flavor, image)
            by_host = guest.count(chosen)
        except servers.Refused as exc:
            refused = HostCapacity(0, 0, (_refusal(exc),))
            return FlavorCapacity(
                flavor, 0, 0, {host.name: refused for host in chosen},
                str(exc), ports, unknown=exc.names if isinstance(
                    exc, placement_count.RefusedQueryError) else (),
                unknown_alias=exc.alias if isinstance(
                    exc, servers.UnknownAliasError) else None)
        return FlavorCapacity(
            flavor, sum(host.fits for host in by_host.values()),
            sum(host.placement for host in by_host.values()), by_host,
            ports=ports, uncounted=uncounted(flavor),
            unverified=guest.grants.unverified)

    def hosts(self, names: Collection[str] | None = None) -> list[CountedHost]:
        return [host for host in self._hosts
                if names is None or host.name in names]

    def guest(self, flavor: snapshot.Flavor,
              image: Mapping[str, str] = NO_IMAGE) -> 'CountedGuest':
        """Return a new server of a flavor, to be counted.

        :raises servers.Refused: if Nova refuses the flavor, or has no hosts
            for the project
        """
        return self.guest_of(self._spec(flavor, image))

    def guest_of(self, spec: objects.RequestSpec,
                 limits_lost: bool = False) -> 'CountedGuest':
        """Return the server of a request, which is changed.

        :param limits_lost: whether NUMA limits do not reach the claim
        :raises servers.Refused: if Nova's scheduler fails on it
        """
        # In nova-scheduler a wrapper does this; nothing is scheduled here.
        notes.placement_answered(spec, self._summaries)
        return CountedGuest(
            self._state, spec, self._filters, self._limits, limits_lost)

    @functools.cached_property
    def _summaries(self) -> Mapping[str, Mapping]:
        """Provider summaries of all hosts; they do not change here."""
        return self._state.placement.summaries()

    def _spec(self, flavor: snapshot.Flavor,
              image: Mapping[str, str]) -> objects.RequestSpec:
        """Return the request for a new server of a flavor."""
        server = servers.SimulatedServer(flavor.name, flavor.name,
                                         project=self._project
                                         or nova_internals.PROJECT)
        server.image_meta = nova_internals.image_meta(image)
        ports = self._ports_of(flavor)
        server.ports = sim_request.requested_ports(
            self._state, flavor.name, ports.plugs, (), server.project)
        server.instance = sim_request.new_instance(
            self._state, server,
            states.nova_flavor(flavor))
        spec = sim_request.describe(
            self._state, server, {'scheduler_hints': {
                name: list(each) for name, each in self._hints.items()}},
            None, ['default'], flavor.name)
        if ports.unplugged:
            # Such networks have no affinity to NUMA nodes.
            spec.requested_networks = objects.NetworkRequestList(objects=[
                objects.NetworkRequest(network_id='auto')
                for _ in range(ports.unplugged)])
        spec.num_instances = 1
        return spec


def uncounted(flavor: snapshot.Flavor) -> tuple[str, ...]:
    """Return the extra specs of a flavor that the count ignores."""
    # Cyborg knows what a device profile needs; it is not read.
    return tuple([key for key in flavor.extra_specs if key == _ACCELERATOR])


def _refusal(exc: servers.Refused) -> Binding:
    if isinstance(exc, placement_count.NoAggregateError):
        return Binding(BindingKind.AGGREGATE, str(exc))
    if isinstance(exc, placement_count.RefusedQueryError) and exc.names:
        return Binding(
            BindingKind.UNKNOWN_NAME, str(exc), exc.names[0].kind)
    return Binding(BindingKind.FLAVOR, str(exc))


def _of_filter(name: str, text: str, is_mapped: bool = True) -> Binding:
    kind = _KINDS.get(name, BindingKind.FILTER)
    if kind is BindingKind.SERVICE and not is_mapped:
        kind = BindingKind.UNMAPPED
    return Binding(
        kind, text, name if kind is BindingKind.FILTER else '')


def _of_blazar(host_state: ty.Any, spec: objects.RequestSpec,
               text: str) -> Binding:
    """Return the limit for a host that the filter of Blazar refuses."""
    refusal = blazar.refusal(host_state.aggregates, spec)
    if refusal.is_reserved:
        return Binding(BindingKind.RESERVED, refusal.text)
    return _of_filter(blazar.FILTER, refusal.text or text)


class CountedGuest:
    """A new server of a flavor, to be counted on hosts.

    :param filters: enabled filters that have to be asked; see
        :class:`Counting` for those that the count itself replaces
    :param limits: filters that limit ports and security group rules
    :param limits_lost: whether NUMA limits do not reach the claim
    :raises servers.Refused: if Nova's scheduler fails on the request
    """

    def __init__(self, state: states.State, spec: objects.RequestSpec,
                 filters: Sequence, limits: Sequence[
                     network_filters.NetworkLimitFilter],
                 limits_lost: bool = False):
        self._state = state
        self._filters = filters
        self._limits = limits
        # A group would count the servers that it has, and not those that are
        # added.
        spec.instance_group = None
        self.grants = placement_count.Grants(
            state.placement, placement_count.queries(state, spec))
        self.spec = spec
        note = self._note = notes.note_of(spec)
        note.use(state.network.lookups, note.live_migration)
        note.begin(0, spec)
        self.request = note.read(spec)
        #: The request as the filters decide that are not in shadow.
        self.guest_request = self._as_decided(limits_lost)
        self._bindings: dict[ty.Hashable, tuple[Binding, ...]] = {}
        #: Counters by the limits of the request that are lifted.
        self._counters = {
            _NOTHING_LIFTED: host_count.Counter(self.guest_request)}

    def _as_decided(self, limits_lost: bool) -> host_count.GuestRequest:
        note, request = self._note, self.request
        terms = active_rules.deciding(note, request)
        if terms is not None and limits_lost:
            # A plan keeps strict policies, even where live migrations need
            # not: [nfv_sched] moves_without_limits = accept.
            terms = terms._replace(limits_lost=terms.strict)
        return host_count.GuestRequest(
            request, terms, active_rules.limits_claim(note, request),
            active_rules.settings(note).sorting, limits_lost)

    def count(self, hosts: Sequence[CountedHost]) -> dict[str, HostCapacity]:
        refusals = self.refusals([(host, occupancy.NOTHING) for host in hosts])
        by_host, counts = {}, {}
        for host in hosts:
            by_host[host.name], counts[host.name] = self._count(
                host, refusals[host.name])
        later = [host for host in hosts if by_host[host.name].fits > 1]
        changed = self.refusals([
            (host, self._amounts(by_host[host.name].fits - 1))
            for host in later])
        for host in later:
            if changed[host.name]:
                # Some filter depends on the number of servers on the host.
                by_host[host.name] = self._bisect_fits(
                    host, by_host[host.name])
        # If all that Placement grants were there but one.
        most = {host.name: max(counted.fits, counted.placement - 1)
                for host in hosts for counted in [by_host[host.name]]}
        full = self.refusals([(host, self._amounts(most[host.name]))
                              for host in hosts if most[host.name]])
        self._bind_filters(by_host, [
            host for host in hosts if full.get(host.name)
            and by_host[host.name].fits and not changed.get(host.name)])
        for host in hosts:
            counted = by_host[host.name]
            if counted.placement > counted.fits:
                by_host[host.name] = dataclasses.replace(
                    counted, lost=self._lost_by_cause(
                        host, counted, counts[host.name], self._most_by_filter(
                            host, refusals[host.name],
                            full.get(host.name, ()), most[host.name])))
        return by_host

    def _bind_filters(self, counts: dict[str, HostCapacity],
                      hosts: Sequence[CountedHost]) -> None:
        """Add the filters that refuse one more server on full hosts."""
        refusals = self.refusals([
            (host, self._amounts(counts[host.name].fits)) for host in hosts])
        for host in hosts:
            counted = counts[host.name]
            if refusals[host.name]:
                counts[host.name] = dataclasses.replace(counted, binding=tuple(
                    each._replace(alone=False) for each in (
                        *refusals[host.name], *counted.binding)))

    def _most_by_filter(
        self, host: CountedHost, refusals: Sequence[Binding],
        full: Sequence[Binding], more: int,
    ) -> dict[Binding, int]:
        """Return how many servers each filter takes that refuses a host.

        :param refusals: the filters that refuse it as it is
        :param full: the filters that refuse it with ``more`` servers
        """
        most = {bindings.nameable(each): 0 for each in refusals}
        for limit in map(bindings.nameable, full):
            if limit not in most:
                # One more than the servers beside which it takes another.
                most[limit] = 1 + bisect.bisect_left(
                    range(1, more), True, key=lambda number: limit in map(
                        bindings.nameable, self.refusals(
                            [(host, self._amounts(number))])[host.name]))
        return most

    def _lost_by_cause(
        self, host: CountedHost, counted: HostCapacity,
        on_nodes: host_count.Count, most: dict[Binding, int],
    ) -> dict[losses.Cause, int]:
        """Attribute the servers that Placement would grant a host.

        :param on_nodes: the count of its NUMA cells and devices
        """
        for number, limit in self.limits_of(host):
            if number < counted.placement:
                most[bindings.nameable(limit)] = number
        inside = frozenset(limits := bindings.liftable(
            self.guest_request, host.room, on_nodes.left,
            self.ratios(host), counted.placement))

        def count(lifted: frozenset[Binding]) -> host_count.Count:
            return self._count_without(
                host, on_nodes.left, lifted & inside, counted.placement)

        def gain(lifted: frozenset[Binding]) -> int:
            cap = min([counted.placement, *(
                number for limit, number in most.items()
                if limit not in lifted)])
            if cap <= counted.fits:
                return 0
            return max(0, min(cap, count(lifted).fits) - counted.fits)

        causes = losses.attribute([*most, *limits], functools.cache(gain))
        rest = counted.placement - counted.fits - sum(causes.values())
        if rest:
            cause = losses.Cause((self._remaining_limit(
                host, counted, on_nodes, inside, bool(causes)),))
            causes[cause] = causes.get(cause, 0) + rest
        return causes

    def _count_without(self, host: CountedHost,
                       remaining: host_count.FreeResources,
                       lifted: frozenset[Binding],
                       most: int) -> host_count.Count:
        """Count the servers on one host without some limits.

        :param remaining: its free capacity after the servers that fit
        :param lifted: of the limits that ``liftable`` returned for it
        """
        counter = self._counters.get(lifted)
        if counter is None:
            counter = self._counters[lifted] = host_count.Counter(
                bindings.lift(self.guest_request, remaining, lifted))
        ratios = bindings.lifted_ratios(
            self._ratios(host, counter.wanted), lifted)
        if self.grants.simple:
            return counter.count(host.room, ratios, most)
        return self._count_granted(host, counter.wanted, ratios, most)

    def _remaining_limit(
        self, host: CountedHost, counted: HostCapacity,
        on_nodes: host_count.Count, lifted: frozenset[Binding], some: bool,
    ) -> Binding:
        """Return the limit of the servers that lifting limits does not help.

        :param on_nodes: the count of the host's NUMA cells and devices
        :param some: whether lifting them helps other servers
        """
        if not some and not on_nodes.more:
            for limit in map(bindings.nameable, self._binding(
                    self.guest_request, on_nodes.left, self.ratios(host))):
                if limit not in lifted:
                    return limit
        without = self._count_without(
            host, on_nodes.left, lifted, counted.placement)
        guest_request = self._counters[lifted].wanted
        binding = self._binding(
            guest_request, without.left, bindings.lifted_ratios(
                self._ratios(host, guest_request), lifted))
        return bindings.nameable((binding or (_SEVERAL,))[0])

    def _count(self, host: CountedHost, refusals: Sequence[Binding],
               ) -> tuple[HostCapacity, host_count.Count]:
        """Count the servers on one host.

        :param refusals: the filters that refuse it as it is
        :returns: also the count of its NUMA cells and devices
        """
        allowed = self.grants.for_host(host.root)
        limits = self.limits_of(host)
        guest_request, ratios = self.guest_request, self.ratios(host)
        limit = min([count for count, _binding in limits], default=math.inf)
        if refusals:
            limit = 0
        if self.grants.simple:
            counted = self._counters[_NOTHING_LIFTED].count(
                host.room, ratios, int(min(allowed.count, limit)))
        else:
            counted = self._count_granted(host, guest_request, ratios, limit)
        fits = counted.fits
        lacks = self.grants.lacks(host.root, allowed, fits)
        outside = [*refusals,
                   *(each for count, each in limits if count <= fits),
                   *itertools.filterfalse(self._is_of_threads, lacks)]
        inside: Sequence[Binding] = ()
        if not counted.more:
            inside = self._binding(guest_request, counted.left, ratios)
        for lack in filter(self._is_of_threads, lacks):
            # Without the thread policy the trait would not be required; more
            # of any other resource would not help.
            policy = [each for each in inside
                      if each.kind is BindingKind.THREADS]
            if policy:
                inside = policy
            else:
                outside.append(Binding(
                    BindingKind.THREADS, f'the thread policy: {lack.text}'))
        if not counted.more:
            if not inside and not outside:
                inside = self.grants.lacks(
                    host.root, allowed, fits, groups=True) or [_SEVERAL]
        binding = [*outside, *inside]
        if len(outside) + bool(inside) > 1:
            binding = [each._replace(alone=False) for each in binding]
        # Placement grants all that fit, if only by a later query.
        return HostCapacity(
            fits, max(fits, allowed.believed), tuple(binding)), counted

    def to_grow(self, host: CountedHost) -> tuple[Binding, ...]:
        """Return bindings.to_grow for a host, and its lacks in Placement."""
        granted = self.grants.lacks(
            host.root, self.grants.for_host(host.root), 0)
        if self.refusals([(host, occupancy.NOTHING)])[host.name] or any(
                number < 1 for number, _limit in self.limits_of(host)) or any(
                    lack.kind is not BindingKind.RESOURCE_CLASS
                    for lack in granted):
            return ()
        case = self.guest_request, host.room, self.ratios(host)
        inside = bindings.to_grow(*case)
        if not inside and self._binding(*case):
            return ()
        return (*granted, *inside)

    def _is_of_threads(self, lack: Binding) -> bool:
        """Return whether the thread policy is why a trait is required."""
        # Nova reads the trait in a flavor as the policy of a pinned guest.
        guest = self.request.guest
        return (lack.kind is BindingKind.TRAIT
                and lack.name == _HYPERTHREADING and guest is not None
                and (guest.isolates or guest.requires_siblings))

    def _binding(
        self, guest_request: host_count.GuestRequest,
        room: host_count.FreeResources, ratios: fit.Ratios,
    ) -> tuple[Binding, ...]:
        """Return the limits of NUMA cells and devices, cached by state."""
        key = (guest_request, room.key, ratios)
        binding = self._bindings.get(key)
        if binding is None:
            binding = self._bindings[key] = bindings.find(
                guest_request, room, ratios)
        return binding

    def _count_granted(
        self, host: CountedHost, guest_request: host_count.GuestRequest,
        ratios: fit.Ratios, limit: float,
    ) -> host_count.Count:
        """Count where Placement chooses the devices of each server."""
        scratch = self.grants.start(host.root)
        fits, room = 0, host.room
        while True:
            candidates = list(self.grants.offers(scratch, host.root))
            placed = host_count.place_first(
                guest_request, room, ratios, candidates)
            if placed is None:
                break
            if fits >= limit:
                return host_count.Count(fits, True, room)
            room = placed.room
            scratch.take(placement.allocations_of(placed.candidate))
            fits += 1
        return host_count.Count(fits, False, room)

    def ratios(self, host: CountedHost) -> fit.Ratios:
        """Return the allocation ratios of a host, lowered by the rules."""
        return self._ratios(host, self.guest_request)

    @staticmethod
    def _ratios(host: CountedHost,
                guest_request: host_count.GuestRequest) -> fit.Ratios:
        state = host.state
        cpu, ram = state.cpu_allocation_ratio, state.ram_allocation_ratio
        if cpu is None or ram is None:
            return host_count.NO_RATIOS
        if guest_request.terms is not None and host.room.host is not None:
            cpu = decide.capped_ratio(
                host.room.host, cpu, guest_request.terms.capping,
                functools.partial(nova_scheduler.host_limit, state))
        return fit.ratios(cpu, ram)

    # -- filters

    def refusals(
        self, hosts: Sequence[tuple[CountedHost, occupancy.Amounts]],
    ) -> dict[str, list[Binding]]:
        """Return the filters that refuse each host, by name of the host.

        :param hosts: each with the amounts that added servers use there
        """
        refusals: dict[str, list[Binding]] = {
            host.name: [] for host, _load in hosts}
        with contextlib.ExitStack() as stack:
            for host, load in hosts:
                stack.enter_context(_more_servers_on(host.state, load))
            for each in self._filters:
                name = type(each).__name__
                each.run_filter_for_index(0)
                passed = _passing_hosts(
                    each, [host.state for host, _load in hosts], self.spec)
                for host, load in hosts:
                    if host.name in passed:
                        continue
                    text = f'{name} refuses the host'
                    if load.servers:
                        text = f'{text} with {load.servers} more'
                    refusals[host.name].append(
                        _of_blazar(host.state, self.spec, text)
                        if name == blazar.FILTER else _of_filter(
                            name, text, compute.is_mapped(host.state)))
        self._state.manager.counts.clear()
        return refusals

    def _amounts(self, guests: int) -> occupancy.Amounts:
        return occupancy.NOTHING.plus(occupancy.amounts(self.spec), guests)

    def _bisect_fits(
        self, host: CountedHost, counted: HostCapacity,
    ) -> HostCapacity:
        """Bisect the count where a filter refuses a host that is not full."""
        low, high = 1, counted.fits - 1  # it takes low servers for sure
        refusals: list[Binding] = []
        while low <= high:
            guests = (low + high) // 2
            refusing = self.refusals(
                [(host, self._amounts(guests))])[host.name]
            if refusing:
                refusals, high = refusing, guests - 1
            else:
                low = guests + 1
        fits = low
        refusals = refusals or self.refusals(
            [(host, self._amounts(fits))])[host.name]
        return HostCapacity(fits, counted.placement, tuple(refusals))

    @property
    def needs(self) -> dict[str, int]:
        """Ports and rules that limits count: resource class -> amount."""
        note = limits_note.for_request(self._note, self.request)
        return {each.counted.resource_class: each.counted.need(note.demand)
                for each in self._limits if each.concerns(self.request)}

    def limits_of(
        self, host: CountedHost, used: placement.Placement | None = None,
    ) -> list[tuple[int, Binding]]:
        """Return how many servers each limit of ports and rules allows.

        :param used: its resource providers after some changes; None for the
            current ones
        :returns: pairs of number of servers and the limit that keeps off the
            next
        """
        host_limits = []
        for each in self._limits:
            name = type(each).__name__
            if name in self._note.in_shadow() or (
                    not each.concerns(self.request)):
                continue
            note = limits_note.for_request(
                self._note, self.request)
            limits = network_limits.of_host(
                host.state, network_limits.defaults(nova_scheduler.CONF))
            quantity = each.counted
            reason = limits_decide.refuse_server(
                quantity, note.demand, limits) or limits_decide.decide(
                    quantity, note.demand, limits, math.inf,
                    note.services(host.state))
            if reason is not None:
                host_limits.append((0, _of_filter(name, str(reason))))
                continue
            need = quantity.need(note.demand)
            ledger = ledger_of(host, quantity.resource_class,
                               used or self._state.placement)
            if need and ledger is not None and (
                    quantity.limit(limits) < math.inf):
                free = max(0, ledger.free(quantity.resource_class))
                host_limits.append((free // need, _of_filter(
                    name, f'{need} {quantity.noun} needed, {free % need} '
                    f'of {quantity.limit(limits):.0f} left')))
        return host_limits


def ledger_of(host: CountedHost, resource_class: str,
              used: placement.Placement,
              ) -> placement.Provider | None:
    """Return the resource provider with the ledger of a host.

    :returns: None if the host has none
    """
    return next((provider for provider in used.tree(host.root)
                 if resource_class in provider.inventories), None)


def _passing_hosts(each, host_states: list, spec) -> set[str]:
    # Filters may raise it instead of returning no host, as those of nfv-sched
    # do for the server of index 0.
    try:
        return {state.host for state in each.filter_all(host_states, spec)}
    except exception.NoValidHost:
        return set()


@contextlib.contextmanager
def _more_servers_on(
    host_state: ty.Any, more: occupancy.Amounts,
) -> Iterator[None]:
    """Prepare a HostState for filters, with more servers on it."""
    before = host_state.limits, host_state.allocation_candidates
    undo = occupancy.consume(host_state, more)
    # Filters write limits here, and take away allocation candidates, of which
    # _schedule() gives each host those of the request; PciPassthroughFilter
    # and others refuse a host that has none left.
    host_state.limits = {}
    host_state.allocation_candidates = [
        {'allocations': {host_state.uuid: {'resources': {}}},
         'mappings': {'': [host_state.uuid]}}]
    try:
        yield
    finally:
        undo()
        host_state.limits, host_state.allocation_candidates = before
