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
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from collections.abc import Sequence
import contextlib
import dataclasses
import functools
import itertools
import math
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
from nfv_sched.ops.model.counting import document
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

BindingKind = document.BindingKind
HostLimit = document.HostLimit
LostLimit = document.LostLimit

#: Nova's filters that the count itself replaces.
_COUNTED = ('NUMATopologyFilter', 'PciPassthroughFilter')
_KINDS = {'VSwitchPortLimitFilter': BindingKind.PORTS,
          'SecurityRuleLimitFilter': BindingKind.RULES,
          'ComputeFilter': BindingKind.SERVICE}
_NOTHING_LIFTED: frozenset[LostLimit] = frozenset()
_SEVERAL = HostLimit(
    BindingKind.SEVERAL, why='the PCI devices that Placement grants do not '
    'suit the NUMA nodes with capacity', alone=False)
_NO_PORTS = assumed_ports.assume(assumed_ports.Basis.NUMBER)
#: Nova requires this trait for the thread policy require, and forbids it for
#: isolate, unless it asks for VCPU in place of PCPU.
_HYPERTHREADING = os_traits.HW_CPU_HYPERTHREADING


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class NewServers:
    """Ports, image, project and hints of the servers to be counted."""

    #: ports of each; None for those of the flavor's servers
    ports: assumed_ports.Choice = None
    #: image properties that Nova knows
    image: Mapping[str, str] = dataclasses.field(default_factory=dict)
    #: ID of their project; None for one that no aggregate is reserved for
    project: str | None = None
    #: scheduler hints
    hints: Mapping[str, Sequence[str]] = dataclasses.field(
        default_factory=dict)


@dataclasses.dataclass(frozen=True, slots=True)
class FlavorCapacity:
    """The number of servers of a flavor that a cloud takes."""

    flavor: snapshot.Flavor
    #: capacity of each host, by its name
    hosts: Mapping[str, document.HostFit]
    #: why Nova takes no server of this flavor; None if it does
    error: str | None = None
    #: ports that each server is assumed to have
    ports: assumed_ports.NewPorts = _NO_PORTS
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
    def fits(self) -> int:
        return sum(host.fits for host in self.hosts.values())

    @property
    def placement(self) -> int:
        return sum(host.placement_grants for host in self.hosts.values())

    @property
    def lost(self) -> tuple[document.LostCapacity, ...]:
        """Servers that Placement would grant and hosts do not take, by cause.

        Highest number first; together the difference of :attr:`placement` and
        :attr:`fits`.
        """
        servers_by_cause: collections.Counter[losses.Cause] = (
            collections.Counter())
        for host in self.hosts.values():
            servers_by_cause.update(host.lost)
        return tuple([document.LostCapacity(
            limits=cause.limits, any_one=cause.any_one, servers=servers)
            for cause, servers in servers_by_cause.most_common()])

    @property
    def fragmented(self) -> int:
        """Servers lost to CPUs that are free, but not on suitable nodes."""
        return sum(lost.servers for lost in self.lost if [
            limit.kind for limit in lost.limits] == [
                BindingKind.CPUS_ON_NODES])

    def within(self, hosts: Iterable[str]) -> 'FlavorCapacity':
        """Return the capacity of some hosts only; ignore unknown names."""
        return dataclasses.replace(self, hosts={
            name: self.hosts[name] for name in hosts if name in self.hosts})


def capacities(cloud: snapshot.Cloud, flavors: Sequence[snapshot.Flavor],
               new: NewServers = NewServers(), *,
               hosts: Collection[str] | None = None, empty: bool = False,
               update: Callable[[int, int], None] = lambda done,
               total: None) -> list[FlavorCapacity]:
    """Count how many more servers of each flavor fit a cloud.

    See also :func:`counting_on`.

    :param flavors: each is counted as if no servers of the others were booted
    :param hosts: names of the hosts that count; None for all
    :param update: called with (flavors done, all flavors)
    """
    with counting_on(cloud, new, empty) as counting:
        flavor_capacities = []
        for index, flavor in enumerate(flavors):
            update(index, len(flavors))
            flavor_capacities.append(counting.capacity(flavor, hosts))
        update(len(flavors), len(flavors))
        return flavor_capacities


@contextlib.contextmanager
def counting_on(cloud: snapshot.Cloud, new: NewServers = NewServers(),
                empty: bool = False) -> Iterator['Counting']:
    """Simulate a cloud and yield a :class:`Counting` on it.

    :param empty: count as if there were no servers
    :raises nfv_sched.ops.cloud.problems.InputError: if a filter of
        the cloud is not installed, or an option is bad
    """
    hosts = occupied.without_servers(cloud) if empty else cloud
    if any(host.providers for host in cloud.hosts):
        # The records of hosts include what servers use. Where Placement was
        # not read, only the servers show their allocations.
        hosts = dataclasses.replace(hosts, servers=())
    with start.started(hosts) as state:
        yield Counting(state, assumed_ports.per_flavor(cloud, new.ports), new,
                       figures=has_figures(cloud), keep_ledgers=not empty)


def has_figures(cloud: snapshot.Cloud) -> bool:
    return any(host.network is not None for host in cloud.hosts)


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class CountedHost:
    """A host that is read once for all flavors."""

    name: str
    state: ty.Any  #: ``nova.scheduler.host_manager.HostState``
    room: host_count.FreeResources  #: its free NUMA resources and PCI devices
    root: str  #: UUID of its root resource provider
    no_fit: document.HostFit  #: its capacity if nothing fits

    def fit(self, fits: int, placement_grants: int,
            limits: Iterable[HostLimit]) -> document.HostFit:
        return dataclasses.replace(
            self.no_fit, fits=fits, placement_grants=placement_grants,
            limits=tuple(limits))


class Counting:
    """A count of servers on the hosts of a simulated cloud.

    Nothing is changed there.

    :param figures: whether used ports and rules of hosts are known; if not,
        their limits are ignored
    :param keep_ledgers: leave ledgers as they were read
    """

    def __init__(self, state: states.State,
                 ports_of: assumed_ports.OfFlavor = assumed_ports.always(1),
                 new: NewServers = NewServers(), *, figures: bool = True,
                 keep_ledgers: bool = False):
        self._state = state
        self.placement = state.placement
        self._ports_of = ports_of
        self._new = new
        if figures:
            # NOTE: A ledger reserves ports that no server has allocated.
            # Where the servers were left out, all ports would be reserved
            # beside what is allocated, and count twice.
            state.network.refresh(keep_ledgers)
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
        nodes = host.record.nodes or ()
        return CountedHost(
            host.name, host_state, room, host_state.uuid, document.HostFit(
                host=host.name, host_id=host_state.uuid, fits=0,
                placement_grants=0, limits=(), numa_nodes=tuple([
                    document.FreeCPUs(
                        node=node.number, pcpus=len(node.dedicated),
                        pcpus_free=len(node.free))
                    for node in nodes if node.dedicated]),
                used_pcpus={
                    node.number: (len(node.dedicated) - len(node.free),
                                  len(node.dedicated)) for node in nodes}))

    def capacity(self, flavor: snapshot.Flavor,
                 hosts: Collection[str] | None = None,
                 image: Mapping[str, str] | None = None) -> FlavorCapacity:
        chosen = self.hosts(hosts)
        ports = self._ports_of(flavor)
        try:
            guest = self.guest(flavor, image)
            by_host = guest.count(chosen)
        except servers.Refused as exc:
            return FlavorCapacity(
                flavor, {host.name: host.fit(0, 0, (_refusal(exc),))
                         for host in chosen}, str(exc), ports,
                getattr(exc, 'names', ()), getattr(exc, 'alias', None))
        return FlavorCapacity(
            flavor, by_host, ports=ports, uncounted=uncounted(flavor),
            unverified=guest.grants.unverified)

    def hosts(self, names: Collection[str] | None = None) -> list[CountedHost]:
        return [host for host in self._hosts
                if names is None or host.name in names]

    def guest(self, flavor: snapshot.Flavor,
              image: Mapping[str, str] | None = None) -> 'CountedGuest':
        """Return a new server of a flavor, to be counted.

        :raises servers.Refused: if Nova refuses the flavor, or has no hosts
            for the project
        """
        server = servers.SimulatedServer(
            flavor.name, flavor.name,
            project=self._new.project or nova_internals.PROJECT)
        ports = self._ports_of(flavor)
        sim_request.create(self._state, server, sim_request.BootRequest(
            flavor=flavor, image=self._new.image if image is None else image,
            ports=ports.plugs, hints=self._new.hints, stored=True))
        spec = server.spec
        if ports.unplugged:
            # Such networks have no affinity to NUMA nodes.
            spec.requested_networks = objects.NetworkRequestList(objects=[
                objects.NetworkRequest(network_id='auto')
                for _ in range(ports.unplugged)])
        return self.guest_of(spec)

    def guest_of(self, spec: objects.RequestSpec,
                 limits_lost: bool = False) -> 'CountedGuest':
        """Return the server of a request, which is changed.

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


def uncounted(flavor: snapshot.Flavor) -> tuple[str, ...]:
    # Cyborg knows what a device profile needs; it is not read.
    return tuple({'accel:device_profile'} & flavor.extra_specs.keys())


def _refusal(exc: servers.Refused) -> HostLimit:
    kind, name = BindingKind.FLAVOR, None
    if isinstance(exc, placement_count.NoAggregateError):
        kind = BindingKind.AGGREGATE
    elif isinstance(exc, placement_count.RefusedQueryError) and exc.names:
        kind, name = BindingKind.UNKNOWN_NAME, exc.names[0].kind
    return HostLimit(kind, name, why=str(exc))


def _of_filter(name: str, why: str, is_mapped: bool = True) -> HostLimit:
    kind = _KINDS.get(name, BindingKind.FILTER)
    if kind is BindingKind.SERVICE and not is_mapped:
        kind = BindingKind.UNMAPPED
    return HostLimit(
        kind, name if kind is BindingKind.FILTER else None, why=why)


def _of_blazar(host_state: ty.Any, spec: objects.RequestSpec,
               text: str) -> HostLimit:
    refusal = blazar.refusal(host_state.aggregates, spec)
    if refusal.is_reserved:
        return HostLimit(BindingKind.RESERVED, why=refusal.text)
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
        note.use(state.network, note.live_migration)
        note.begin(0, spec)
        self.request = note.read(spec)
        terms = active_rules.deciding(note, self.request)
        if terms is not None and limits_lost:
            # A plan keeps strict policies, even where live migrations need
            # not: [nfv_sched] moves_without_limits = accept.
            terms = terms._replace(limits_lost=terms.strict)
        #: The request as the filters decide that are not in shadow.
        self.guest_request = host_count.GuestRequest(
            self.request, terms, active_rules.limits_claim(note, self.request),
            active_rules.settings(note).sorting, limits_lost)
        self._found: dict[ty.Hashable, tuple[HostLimit, ...]] = {}
        #: Counters by the limits of the request that are lifted.
        self._counters = {
            _NOTHING_LIFTED: host_count.Counter(self.guest_request)}

    def count(self, hosts: Sequence[CountedHost],
              ) -> dict[str, document.HostFit]:
        refusals = self._refusals_beside({host: 0 for host in hosts})
        by_host, counts = {}, {}
        for host in hosts:
            by_host[host.name], counts[host.name] = self._count(
                host, refusals[host.name])
        later = {host: by_host[host.name].fits - 1 for host in hosts
                 if by_host[host.name].fits > 1}
        changed = self._refusals_beside(later)
        for host in later:
            if changed[host.name]:
                # Some filter depends on the number of servers on the host.
                by_host[host.name] = self._bisect_fits(
                    host, by_host[host.name])
        # If all that Placement grants were there but one.
        most = {host: max(counted.fits, counted.placement_grants - 1)
                for host in hosts for counted in [by_host[host.name]]}
        full = self._refusals_beside({
            host: servers for host, servers in most.items() if servers})
        # The filters that refuse one more server on full hosts.
        for name, limits in self._refusals_beside({
                host: by_host[host.name].fits for host in hosts
                if full.get(host.name) and by_host[host.name].fits
                and not changed.get(host.name)}).items():
            if limits:
                by_host[name] = dataclasses.replace(
                    by_host[name], limits=_together(
                        *limits, *by_host[name].limits))
        for host in hosts:
            counted = by_host[host.name]
            if counted.placement_grants > counted.fits:
                by_host[host.name] = dataclasses.replace(
                    counted, lost=self._lost_by_cause(
                        host, counted, counts[host.name], self._most_by_filter(
                            host, refusals[host.name],
                            full.get(host.name, ()), most[host])))
        return by_host

    def _most_by_filter(self, host: CountedHost, refusals: Sequence[HostLimit],
                        full: Sequence[HostLimit],
                        more: int) -> dict[LostLimit, int]:
        """Return how many servers each filter takes that refuses a host.

        :param refusals: the filters that refuse it as it is
        :param full: the filters that refuse it with ``more`` servers
        """
        most = {each.on_any_host: 0 for each in refusals}
        for limit in [each.on_any_host for each in full]:
            if limit not in most:
                # One more than the servers beside which it takes another.
                most[limit] = 1 + bisect.bisect_left(
                    range(1, more), True, key=lambda number: limit in [
                        each.on_any_host for each
                        in self._refusals_beside({host: number})[host.name]])
        return most

    def _lost_by_cause(self, host: CountedHost, counted: document.HostFit,
                       on_nodes: host_count.Count,
                       most: dict[LostLimit, int]) -> dict[losses.Cause, int]:
        """Attribute the servers that Placement would grant a host.

        :param on_nodes: the count of its NUMA cells and devices
        """
        granted = counted.placement_grants
        for number, limit in self.limits_of(host):
            if number < granted:
                most[limit.on_any_host] = number
        inside = frozenset(limits := bindings.liftable(
            self.case(host, on_nodes.left), host.room, granted))

        def gain(lifted: frozenset[LostLimit]) -> int:
            cap = min([granted, *(number for limit, number in most.items()
                                  if limit not in lifted)])
            if cap <= counted.fits:
                return 0
            return max(0, min(cap, self._count_without(
                host, on_nodes.left, lifted & inside, granted).fits
            ) - counted.fits)

        causes = losses.attribute([*most, *limits], functools.cache(gain))
        if rest := granted - counted.fits - sum(causes.values()):
            cause = losses.Cause((self._remaining_limit(
                host, granted, on_nodes, inside, bool(causes)),))
            causes[cause] = causes.get(cause, 0) + rest
        return causes

    def _count_without(
        self, host: CountedHost, remaining: host_count.FreeResources,
        lifted: frozenset[LostLimit], most: int,
    ) -> host_count.Count:
        """Count the servers on one host without some limits.

        :param remaining: its free capacity after the servers that fit
        :param lifted: of the limits that ``liftable`` returned for it
        """
        if (counter := self._counters.get(lifted)) is None:
            counter = self._counters[lifted] = host_count.Counter(
                bindings.lift(self.case(host, remaining), lifted))
        case = self.case(host, host.room, lifted)
        if self.grants.simple:
            return counter.count(case.room, case.ratios, most)
        return self._count_granted(host, case, most)

    def _remaining_limit(
        self, host: CountedHost, granted: int, on_nodes: host_count.Count,
        lifted: frozenset[LostLimit], some: bool,
    ) -> LostLimit:
        """Return the limit of the servers that lifting limits does not help.

        :param some: whether lifting them helps other servers
        """
        if not some and not on_nodes.more:
            for limit in self._limits_in(self.case(host, on_nodes.left)):
                if limit.on_any_host not in lifted:
                    return limit.on_any_host
        without = self._count_without(host, on_nodes.left, lifted, granted)
        limits = self._limits_in(self.case(host, without.left, lifted))
        return (limits or (_SEVERAL,))[0].on_any_host

    def _count(self, host: CountedHost, refusals: Sequence[HostLimit],
               ) -> tuple[document.HostFit, host_count.Count]:
        """Count the servers on one host, and in its NUMA cells and devices."""
        allowed = self.grants.for_host(host.root)
        limits = self.limits_of(host)
        case = self.case(host, host.room)
        limit = 0 if refusals else min(
            [count for count, _limit in limits], default=math.inf)
        if self.grants.simple:
            counted = self._counters[_NOTHING_LIFTED].count(
                host.room, case.ratios, int(min(allowed.count, limit)))
        else:
            counted = self._count_granted(host, case, limit)
        fits = counted.fits
        lacks = self.grants.lacks(host.root, allowed, fits)
        outside = [*refusals,
                   *(each for count, each in limits if count <= fits),
                   *itertools.filterfalse(self._is_of_threads, lacks)]
        inside: Sequence[HostLimit] = ()
        if not counted.more:
            inside = self._limits_in(case._replace(room=counted.left))
        for lack in filter(self._is_of_threads, lacks):
            # Without the thread policy the trait would not be required; more
            # of any other resource would not help.
            policy = [each for each in inside
                      if each.kind is BindingKind.THREADS]
            if policy:
                inside = policy
            else:
                outside.append(HostLimit(
                    BindingKind.THREADS, why=f'the thread policy: {lack.why}'))
        if not counted.more and not inside and not outside:
            inside = self.grants.lacks(
                host.root, allowed, fits, groups=True) or [_SEVERAL]
        several = len(outside) + bool(inside) > 1
        # Placement grants all that fit, if only by a later query.
        return host.fit(
            fits, max(fits, allowed.believed), _together(*outside, *inside)
            if several else [*outside, *inside]), counted

    def to_grow(self, host: CountedHost) -> tuple[HostLimit, ...]:
        granted = self.grants.lacks(
            host.root, self.grants.for_host(host.root), 0)
        if self._refusals_beside({host: 0})[host.name] or any(
                number < 1 for number, _limit in self.limits_of(host)) or any(
                    lack.kind is not BindingKind.RESOURCE_CLASS
                    for lack in granted):
            return ()
        case = self.case(host, host.room)
        inside = bindings.to_grow(case)
        if not inside and self._limits_in(case):
            return ()
        return (*granted, *inside)

    def _is_of_threads(self, lack: HostLimit) -> bool:
        """Return whether the thread policy is why a trait is required."""
        # Nova reads the trait in a flavor as the policy of a pinned guest.
        guest = self.request.guest
        return (lack.kind is BindingKind.TRAIT
                and lack.name == _HYPERTHREADING and guest is not None
                and (guest.isolates or guest.requires_siblings))

    def _limits_in(self, case: host_count.Case) -> tuple[HostLimit, ...]:
        # Hosts in the same state share them.
        key = case._replace(room=case.room.key)
        if key not in self._found:
            self._found[key] = bindings.find(case)
        return self._found[key]

    def _count_granted(self, host: CountedHost, case: host_count.Case,
                       limit: float) -> host_count.Count:
        """Count where Placement chooses the devices of each server."""
        scratch = self._state.placement.copy(host.root)
        fits = 0
        while True:
            placed = host_count.place_first(
                case, list(self.grants.offers(scratch, host.root)))
            if placed is None or fits >= limit:
                return host_count.Count(fits, placed is not None, case.room)
            case = case._replace(room=placed.room)
            scratch.take(placement.allocations_of(placed.candidate))
            fits += 1

    def case(
        self, host: CountedHost, room: host_count.FreeResources,
        lifted: frozenset[LostLimit] = _NOTHING_LIFTED,
    ) -> host_count.Case:
        """Return one more server on a host, without the lifted limits."""
        guest_request, state = self._counters[lifted].wanted, host.state
        cpu, ram = state.cpu_allocation_ratio, state.ram_allocation_ratio
        if cpu is None or ram is None:
            return host_count.Case(guest_request, room, host_count.NO_RATIOS)
        terms = guest_request.terms
        if terms is not None and host.room.host is not None:
            cpu = decide.capped_ratio(
                host.room.host, cpu, terms.capping,
                functools.partial(network_limits.host_limit,
                                  nova_scheduler.CONF, state))
        return host_count.Case(guest_request, room, bindings.lifted_ratios(
            fit.ratios(cpu, ram), lifted))

    # -- filters

    def refusals(
        self, hosts: Sequence[tuple[CountedHost, occupancy.Amounts]],
    ) -> dict[str, list[HostLimit]]:
        """Return the filters that refuse each host, by name of the host.

        :param hosts: each with the amounts that added servers use there
        """
        refusals: dict[str, list[HostLimit]] = {
            host.name: [] for host, _load in hosts}
        with contextlib.ExitStack() as stack:
            for host, load in hosts:
                stack.enter_context(_more_servers_on(host.state, load))
            for each in self._filters:
                name = type(each).__name__
                each.run_filter_for_index(0)
                try:
                    passed = {state.host for state in each.filter_all(
                        [host.state for host, _load in hosts], self.spec)}
                except exception.NoValidHost:
                    # Raised instead of returning no host, as by the filters of
                    # nfv-sched for the server of index 0.
                    passed = set()
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
        self._state.manager.filterings.clear()
        return refusals

    def _refusals_beside(
        self, servers: Mapping[CountedHost, int],
    ) -> dict[str, list[HostLimit]]:
        amounts = occupancy.amounts(self.spec)
        return self.refusals([(host, occupancy.NOTHING.plus(amounts, number))
                              for host, number in servers.items()])

    def _bisect_fits(self, host: CountedHost,
                     counted: document.HostFit) -> document.HostFit:
        """Bisect the count where a filter refuses a host that is not full."""
        # It takes one server for sure.
        fits = 1 + bisect.bisect_left(
            range(1, counted.fits), True, key=lambda number: bool(
                self._refusals_beside({host: number})[host.name]))
        return host.fit(fits, counted.placement_grants,
                        self._refusals_beside({host: fits})[host.name])

    @property
    def needs(self) -> dict[str, int]:
        """Ports and rules that limits count: resource class -> amount."""
        note = limits_note.for_request(self._note, self.request)
        return {each.counted.resource_class: each.counted.need(note.demand)
                for each in self._limits if each.concerns(self.request)}

    def limits_of(
        self, host: CountedHost, used: placement.Placement | None = None,
    ) -> list[tuple[int, HostLimit]]:
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
            note = limits_note.for_request(self._note, self.request)
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


def _together(*limits: HostLimit) -> tuple[HostLimit, ...]:
    return tuple([dataclasses.replace(each, alone=False) for each in limits])


def ledger_of(host: CountedHost, resource_class: str,
              used: placement.Placement) -> placement.Provider | None:
    """Return the resource provider with a host's ledger; None without one."""
    return next((provider for provider in used.tree(host.root)
                 if resource_class in provider.inventories), None)


@contextlib.contextmanager
def _more_servers_on(host_state: ty.Any,
                     more: occupancy.Amounts) -> Iterator[None]:
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
