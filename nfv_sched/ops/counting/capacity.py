# SPDX-License-Identifier: Apache-2.0
"""How many more guests of each flavor fit a cloud, and what binds.

Counted host by host, with what each has left: by Placement, as the query of
Nova's scheduler finds room there; by the enabled filters; and by the claim on
the compute node, guest after guest (:mod:`nfv_sched.ops.counting.host_count`).
Counts add up over hosts.  Server groups, quotas and hints of the scheduler are
not considered.  Guests have the ports that
:mod:`nfv_sched.ops.requests.assumed_ports` assumes, and are of a project that
no aggregate is for, unless one is named.
"""

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

from nfv_sched import active_rules
from nfv_sched import extensions
from nfv_sched.filters import base as filters_base
from nfv_sched.filters import network as network_filters
from nfv_sched.filters import nfv_topology
from nfv_sched.host import decide
from nfv_sched.host import occupancy
from nfv_sched.host import pci_pools
from nfv_sched.network import limits as network_limits
from nfv_sched.network import usage
from nfv_sched.network_limits import figures as network_limits_figures
from nfv_sched.nova import scheduler as nova_scheduler
from nfv_sched.numa import fit
from nfv_sched.numa import topology
from nfv_sched.ops.counting import binding as bindings
from nfv_sched.ops.counting import host_count
from nfv_sched.ops.counting import placement_count
from nfv_sched.ops import placement
from nfv_sched.ops.requests import assumed_ports
from nfv_sched.ops.simulator import compute
from nfv_sched.ops.simulator import nova_internals
from nfv_sched.ops.simulator import request as sim_request
from nfv_sched.ops.simulator import servers
from nfv_sched.ops.simulator import start
from nfv_sched.ops.simulator import state as states
from nfv_sched.ops.snapshot import occupied
from nfv_sched.ops.snapshot import snapshot
from nfv_sched import request as nfv_request

Binding = bindings.Binding
BindingKind = bindings.BindingKind

#: Nova's filters whose answer the count itself gives.
_COUNTED = ('NUMATopologyFilter', 'PciPassthroughFilter')
_COMPUTE = 'ComputeFilter'
_KINDS = {'VSwitchPortLimitFilter': BindingKind.PORTS,
          'SecurityRuleLimitFilter': BindingKind.RULES,
          _COMPUTE: BindingKind.SERVICE}
NO_IMAGE: Mapping[str, str] = types.MappingProxyType({})
_NO_MORE: Mapping[str, int] = types.MappingProxyType({})
_SEVERAL = Binding(
    BindingKind.SEVERAL, 'the PCI devices that Placement grants do not suit '
    'the NUMA nodes with room', alone=False)
_NO_PORTS = assumed_ports.Ports(
    basis=assumed_ports.Basis.NUMBER)
#: Nova requires this trait for the thread policy require, and forbids it for
#: isolate, unless it asks for VCPU in place of PCPU.
_HYPERTHREADING = os_traits.HW_CPU_HYPERTHREADING
_ACCELERATOR = 'accel:device_profile'


@dataclasses.dataclass(frozen=True, slots=True)
class HostCapacity:
    """What one host takes of a flavor.

    :ivar fits: number of guests that fit one after the other
    :ivar placement: number of guests that Placement has room for
    :ivar binding: what keeps the next one off
    """

    fits: int
    placement: int
    binding: tuple[Binding, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class FlavorCapacity:
    """What a cloud takes of a flavor.

    :ivar fits: number of guests that fit one after the other
    :ivar placement: number of guests that Placement has room for
    :ivar hosts: the same by name of the host
    :ivar error: why Nova takes no server of this flavor; None if it does
    :ivar ports: the ports that each guest has
    :ivar unknown: names in the request that Placement does not know
    :ivar unknown_alias: the PCI alias that Nova does not know, if there is one
    :ivar uncounted: extra specs that may let fewer guests fit, and that could
        not be counted; see :func:`uncounted`
    :ivar unverified: forbidden traits of which it was not read whether
        Placement knows them; if not, Nova takes no server of this flavor
    """

    flavor: snapshot.Flavor
    fits: int
    placement: int
    hosts: Mapping[str, HostCapacity]
    error: str | None = None
    ports: assumed_ports.Ports = _NO_PORTS
    unknown: tuple[placement.Unknown, ...] = ()
    unknown_alias: str | None = None
    uncounted: tuple[str, ...] = ()
    unverified: tuple[placement.Unknown, ...] = ()

    @property
    def with_room(self) -> int:
        """Number of hosts that take at least one."""
        return sum(host.fits > 0 for host in self.hosts.values())

    @property
    def lost(self) -> Mapping[str, int]:
        """What guests that Placement has room for are lost to.

        Label of the first thing that binds on their host -> number of
        guests, most first.
        """
        found: collections.Counter[str] = collections.Counter()
        for host in self.hosts.values():
            if host.placement > host.fits:
                label = (host.binding or (_SEVERAL,))[0].label
                found[label] += host.placement - host.fits
        return dict(found.most_common())

    def within(self, hosts: Iterable[str]) -> 'FlavorCapacity':
        """The same of some hosts.

        :param hosts: their names
        """
        kept = {name: self.hosts[name] for name in hosts
                if name in self.hosts}
        return dataclasses.replace(
            self, hosts=kept, fits=sum(
                host.fits for host in kept.values()),
            placement=sum(host.placement for host in kept.values()))


def capacities(
    cloud: snapshot.Cloud, flavors: Sequence[snapshot.Flavor], *,
    hosts: Collection[str] | None = None, empty: bool = False,
    ports: assumed_ports.Choice = None,
    image: Mapping[str, str] = NO_IMAGE, project: str | None = None,
    update: Callable[[int, int], None] = lambda done, total: None,
) -> list[FlavorCapacity]:
    """How many more guests of each flavor fit a cloud.

    :param flavors: the flavors; each is counted as if the others were not
    :param hosts: names of the hosts that count; None for all
    :param empty: count as if no server were there
    :param ports: the ports that each guest has
    :param image: properties of the image of each guest, that Nova can read
    :param project: ID of the project of the guests; None for one that no
        aggregate is for
    :param update: called with (flavors done, flavors in all)
    :raises nfv_sched.ops.cloud_file.problems.InputError: if a filter of
        the cloud is not installed, or an option is bad
    """
    with counting_on(cloud, empty, ports, project) as counting:
        found = []
        for done, flavor in enumerate(flavors):
            update(done, len(flavors))
            found.append(counting.of(flavor, hosts, image))
        update(len(flavors), len(flavors))
        return found


@contextlib.contextmanager
def counting_on(
    cloud: snapshot.Cloud, empty: bool, ports: assumed_ports.Choice,
    project: str | None = None,
) -> Iterator['Counting']:
    """Within this context, guests can be counted on a cloud.

    :param empty: count as if no server were there
    :param ports: the ports that each guest has
    :param project: ID of the project of the guests; None for one that no
        aggregate is for
    :raises nfv_sched.ops.cloud_file.problems.InputError: if a filter of
        the cloud is not installed, or an option is bad
    """
    hosts = occupied.without_servers(cloud) if empty else cloud
    if any(host.providers for host in cloud.hosts):
        # What servers have is in the records of hosts. Where Placement was not
        # read, only the servers show what they have allocated there.
        hosts = dataclasses.replace(hosts, servers=())
    with start.started(hosts) as state:
        yield Counting(state, assumed_ports.per_flavor(cloud, ports),
                       any(
            host.network is not None for host in cloud.hosts), project,
            keep_ledgers=not empty)


class CountedHost(ty.NamedTuple):
    """A host, as it is read once for all flavors.

    :ivar state: ``nova.scheduler.host_manager.HostState``
    :ivar room: what it has left
    :ivar root: UUID of its resource provider
    """

    name: str
    state: ty.Any
    room: host_count.FreeResources
    root: str


class Counting:
    """Counts guests on the hosts of a simulated cloud; changes nothing.

    :param ports: the ports of new guests, or what gives them by the flavor
    :param figures: whether ports and rules of hosts are known; otherwise
        their limits do not count
    :param project: ID of the project of new guests; None for one that no
        aggregate is for
    :param keep_ledgers: leave ledgers that were read as they are

    :ivar placement: the resource providers of the cloud
    """

    def __init__(
        self, state: states.State,
        ports: assumed_ports.OfFlavor | assumed_ports.Ports
        | int = 1,
        figures: bool = True, project: str | None = None,
        keep_ledgers: bool = False,
    ):
        self._state = state
        self.placement = state.placement
        self._ports_of = (
            ports if callable(ports) else assumed_ports.always(ports))
        self._project = project
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
        self._hosts = [self._read(each) for each in
                       state.manager.get_host_states_by_uuids(
                           state.context, None, None)]

    def _read(self, host_state) -> CountedHost:
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
            # As filters do, no guest with NUMA nodes is put there.
            room = host_count.FreeResources(None, devices)
        return CountedHost(host.name, host_state, room, host_state.uuid)

    def of(self, flavor: snapshot.Flavor,
           hosts: Collection[str] | None = None,
           image: Mapping[str, str] = NO_IMAGE) -> FlavorCapacity:
        """Count the guests of a flavor.

        :param hosts: names of the hosts that count; None for all
        :param image: properties of the image, that Nova can read
        """
        chosen = self.hosts(hosts)
        ports = self._ports_of(flavor)
        try:
            guest = self.guest(flavor, image)
            found = guest.count(chosen)
        except servers.Refused as exc:
            refused = HostCapacity(0, 0, (_refusal(exc),))
            return FlavorCapacity(
                flavor, 0, 0, {host.name: refused for host in chosen},
                str(exc), ports, unknown=exc.names if isinstance(
                    exc, placement_count.UnknownNameError) else (),
                unknown_alias=exc.alias if isinstance(
                    exc, servers.UnknownAliasError) else None)
        return FlavorCapacity(
            flavor, sum(host.fits for host in found.values()),
            sum(host.placement for host in found.values()), found,
            ports=ports, uncounted=uncounted(flavor),
            unverified=guest.grants.unverified)

    def hosts(self, names: Collection[str] | None = None) -> list[CountedHost]:
        """The hosts.

        :param names: of those that count; None for all
        """
        return [host for host in self._hosts
                if names is None or host.name in names]

    def guest(self, flavor: snapshot.Flavor,
              image: Mapping[str, str] = NO_IMAGE) -> 'CountedGuest':
        """A guest of a flavor.

        :param image: properties of the image, that Nova can read
        :raises servers.Refused: if Nova does not take the flavor, or has no
            hosts for the project
        """
        return self.guest_of(self._spec(flavor, image))

    def guest_of(self, spec: objects.RequestSpec) -> 'CountedGuest':
        """A guest of a request.

        :param spec: the request; changed
        :raises servers.Refused: if Nova's scheduler fails on it
        """
        if nova_scheduler.CONF.nfv_sched.ledger == 'placement':
            network_limits_figures.placement_answered(spec, self._summaries)
        return CountedGuest(self._state, spec, self._filters, self._limits)

    @functools.cached_property
    def _summaries(self) -> Mapping[str, Mapping]:
        """The provider summaries of all hosts, which do not change here."""
        return self._state.placement.summaries()

    def _spec(self, flavor: snapshot.Flavor,
              image: Mapping[str, str]) -> objects.RequestSpec:
        """The request for a guest of a flavor.

        :raises servers.Refused: if Nova's API does not take the flavor
        """
        server = servers.SimulatedServer(flavor.name, flavor.name,
                                         project=self._project
                                         or nova_internals.PROJECT)
        server.image_meta = nova_internals.image_meta(image)
        ports = self._ports_of(flavor)
        server.ports = sim_request.requested_ports(
            self._state, flavor.name, ports.plugs, (), server.project)
        server.instance = sim_request.new_instance(
            self._state, server,
            states.nova_flavor(1, flavor))
        spec = sim_request.describe(
            self._state, server, {}, None, ['default'], flavor.name)
        if ports.unplugged:
            # No network is near to anything.
            spec.requested_networks = objects.NetworkRequestList(objects=[
                objects.NetworkRequest(network_id='auto')
                for _ in range(ports.unplugged)])
        spec.num_instances = 1
        return spec


def uncounted(flavor: snapshot.Flavor) -> tuple[str, ...]:
    """Return the extra specs of a flavor that are left out of the count."""
    # Cyborg knows what a device profile needs; it is not read.
    return tuple([key for key in flavor.extra_specs if key == _ACCELERATOR])


def _refusal(exc: servers.Refused) -> Binding:
    """Return what binds if Nova takes no server at all."""
    if isinstance(exc, placement_count.NoAggregateError):
        return Binding(BindingKind.AGGREGATE, str(exc))
    if isinstance(exc, placement_count.UnknownNameError):
        return Binding(
            BindingKind.UNKNOWN_NAME, str(exc), exc.names[0].kind)
    return Binding(BindingKind.FLAVOR, str(exc))


def _of_filter(name: str, text: str, is_mapped: bool = True) -> Binding:
    """Return what binds on a host that a filter refuses."""
    kind = _KINDS.get(name, BindingKind.FILTER)
    if kind is BindingKind.SERVICE and not is_mapped:
        kind = BindingKind.UNMAPPED
    return Binding(
        kind, text, name if kind is BindingKind.FILTER else '')


class CountedGuest:
    """One more guest of a flavor, and where it may go.

    :param filters: the filters of Nova and others that are asked
    :param limits: the filters of ports and rules
    :raises servers.Refused: if Nova's scheduler fails on the request

    :ivar spec: its request
    :ivar wanted: what it asks of NUMA nodes and devices
    :ivar grants: what Placement grants
    """

    def __init__(self, state: states.State, spec: objects.RequestSpec,
                 filters: Sequence, limits: Sequence[
                     network_filters.NetworkLimitFilter]):
        self._state = state
        self._filters = filters
        self._limits = limits
        spec.instance_group = None
        self.grants = placement_count.Grants(
            state.placement, placement_count.queries(state, spec))
        self.spec = spec
        note = self._note = nfv_request.note_of(spec)
        note.sources = state.network.sources
        note.begin(0, spec)
        request = self._request = note.read(spec)
        self.wanted = host_count.GuestRequest(
            request, active_rules.deciding(note, request),
            active_rules.limits_claim(note, request),
            active_rules.settings(note).sorting)
        self._counter = host_count.Counter(self.wanted)
        self._known: dict[ty.Hashable, tuple[Binding, ...]] = {}

    def count(self, hosts: Sequence[CountedHost]) -> dict[str, HostCapacity]:
        """How many guests fit each host, by name of the host."""
        refusals = self.refusals([(host, occupancy.NOTHING) for host in hosts])
        found = {}
        for host in hosts:
            found[host.name] = self._count(host, refusals[host.name])
        later = [host for host in hosts if found[host.name].fits > 1]
        changed = self.refusals([
            (host, self._more(found[host.name].fits - 1)) for host in later])
        for host in later:
            if changed[host.name]:
                # Some filter looks at how many guests there are.
                found[host.name] = self._fewer(host, found[host.name])
        self._bind_filters(found, [
            host for host in hosts
            if found[host.name].fits and not changed.get(host.name)])
        return found

    def _bind_filters(self, counts: dict[str, HostCapacity],
                      hosts: Sequence[CountedHost]) -> None:
        """Add the filters that refuse one more guest on full hosts."""
        refusals = self.refusals([
            (host, self._more(counts[host.name].fits)) for host in hosts])
        for host in hosts:
            counted = counts[host.name]
            if refusals[host.name]:
                counts[host.name] = dataclasses.replace(counted, binding=tuple(
                    each._replace(alone=False) for each in (
                        *refusals[host.name], *counted.binding)))

    def _count(self, host: CountedHost,
               refusals: Sequence[Binding]) -> HostCapacity:
        """Count the guests on one host.

        :param refusals: the filters that refuse it as it is
        """
        allowed = self.grants.of(host.root)
        limits = self.limits_of(host)
        ratios = self.ratios(host)
        limit = min([count for count, _binding in limits], default=math.inf)
        if refusals:
            limit = 0
        if self.grants.simple:
            counted = self._counter.count(
                host.room, ratios, int(min(allowed.count, limit)))
        else:
            counted = self._count_granted(host, ratios, limit)
        fits = counted.fits
        lacks = self.grants.lacks(host.root, allowed, fits)
        outside = [*refusals,
                   *(each for count, each in limits if count <= fits),
                   *itertools.filterfalse(self._is_of_threads, lacks)]
        inside: Sequence[Binding] = ()
        if not counted.more:
            inside = self._binding(counted.left, ratios)
        for lack in filter(self._is_of_threads, lacks):
            # The trait is not asked for without the policy, but more of other
            # things does not do either.
            policy = [each for each in inside
                      if each.kind is BindingKind.THREADS]
            if policy:
                inside = policy
            else:
                outside.append(Binding(
                    BindingKind.THREADS, f'the thread policy: {lack.text}'))
        if not counted.more:
            if not inside and not outside:
                inside = [_SEVERAL]
        found = [*outside, *inside]
        if len(outside) + bool(inside) > 1:
            found = [each._replace(alone=False) for each in found]
        # What fits is granted, too, if by another query.
        return HostCapacity(
            fits, max(fits, allowed.believed), tuple(found))

    def _is_of_threads(self, lack: Binding) -> bool:
        """Whether Nova asks for a trait because of the thread policy."""
        # Nova takes the trait in a flavor for the policy of a pinned guest.
        guest = self._request.guest
        return (lack.kind is BindingKind.TRAIT
                and lack.name == _HYPERTHREADING and guest is not None
                and (guest.isolates or guest.requires_siblings))

    def _binding(self, room: host_count.FreeResources,
                 ratios: fit.Ratios) -> tuple[Binding, ...]:
        """What of NUMA nodes and devices binds; once for like hosts."""
        key = (room.key, ratios)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = bindings.of(
                self.wanted, room, ratios)
        return found

    def _count_granted(self, host: CountedHost, ratios: fit.Ratios,
                       limit: float) -> host_count.Count:
        """Count where Placement says which devices a guest gets."""
        scratch = self.grants.start(host.root)
        fits, room = 0, host.room
        while True:
            candidates = list(self.grants.offers(scratch, host.root))
            placed = host_count.place_first(
                self.wanted, room, ratios, candidates)
            if placed is None:
                break
            if fits >= limit:
                return host_count.Count(fits, True, room)
            room = placed.room
            scratch.take(placement.allocations_of(placed.candidate))
            fits += 1
        return host_count.Count(fits, False, room)

    def ratios(self, host: CountedHost) -> fit.Ratios:
        """The allocation ratios of a host, lowered by the rules."""
        state = host.state
        cpu, ram = state.cpu_allocation_ratio, state.ram_allocation_ratio
        if cpu is None or ram is None:
            return host_count.NO_RATIOS
        if self.wanted.terms is not None and host.room.host is not None:
            cpu = decide.capped_ratio(
                host.room.host, cpu, self.wanted.terms.capping,
                functools.partial(nova_scheduler.host_limit, state))
        return fit.ratios(cpu, ram)

    # -- filters

    def refusals(
        self, hosts: Sequence[tuple[CountedHost, occupancy.Amounts]],
    ) -> dict[str, list[Binding]]:
        """The filters that refuse each host, by name of the host.

        :param hosts: with what more guests have there
        """
        found: dict[str, list[Binding]] = {
            host.name: [] for host, _load in hosts}
        with contextlib.ExitStack() as stack:
            for host, load in hosts:
                stack.enter_context(_loaded(host.state, load))
            for each in self._filters:
                name = type(each).__name__
                each.run_filter_for_index(0)
                passed = _passed(
                    each, [host.state for host, _load in hosts], self.spec)
                for host, load in hosts:
                    if host.name in passed:
                        continue
                    text = f'{name} refuses the host'
                    if load.servers:
                        text = f'{text} with {load.servers} more'
                    found[host.name].append(_of_filter(
                        name, text, compute.is_mapped(host.state)))
        self._state.manager.counts.clear()
        return found

    def _more(self, guests: int) -> occupancy.Amounts:
        return occupancy.NOTHING.plus(occupancy.amounts(self.spec), guests)

    def _fewer(self, host: CountedHost, counted: HostCapacity) -> HostCapacity:
        """The count on a host that a filter refuses before it is full."""
        low, high = 1, counted.fits - 1  # number of guests it surely takes
        refusals: list[Binding] = []
        while low <= high:
            guests = (low + high) // 2
            found = self.refusals([(host, self._more(guests))])[host.name]
            if found:
                refusals, high = found, guests - 1
            else:
                low = guests + 1
        fits = low
        refusals = refusals or self.refusals(
            [(host, self._more(fits))])[host.name]
        return HostCapacity(fits, counted.placement, tuple(refusals))

    @property
    def needs(self) -> dict[str, int]:
        """What limits of ports and rules count: resource class -> amount."""
        note = network_limits_figures.of(self._note, self._request)
        return {each.counted.resource_class: each.counted.need(note.demand)
                for each in self._limits if each.concerns(self._request)}

    def limits_of(
        self, host: CountedHost, more: Mapping[str, int] = _NO_MORE,
        used: placement.Placement | None = None,
    ) -> list[tuple[int, Binding]]:
        """How many guests each limit of ports and rules allows.

        :param more: how much more it carries than it did, as :attr:`needs`
            of the guests that came, less that of those that left
        :param used: what of its resource providers is used then; None for
            what is used now
        :returns: (number of guests, what binds then) each
        """
        found = []
        for each in self._limits:
            if not each.concerns(self._request):
                continue
            note = network_limits_figures.of(self._note, self._request)
            limits = network_limits.of_host(
                host.state, network_limits.defaults(nova_scheduler.CONF))
            name = type(each).__name__
            reason = each.guest_refusal(note.demand, limits)
            shown = usage.NO_USAGE
            if note.fresh:
                shown = note.snapshot.hosts.get(host.name, usage.NO_USAGE)
            if reason is None and each.is_picky(limits):
                reason = each.host_refusal(limits, shown)
            if reason is not None:
                found.append((0, _of_filter(name, str(reason))))
                continue
            need = each.counted.need(note.demand)
            most, room = each.room(limits)
            free = (room - each.counted.carried(shown)
                    - more.get(each.counted.resource_class, 0))
            left = self._in_ledger(host, each.counted.resource_class,
                                   used or self._state.placement)
            if left is not None:
                free = left
            if need and free < math.inf:
                free = max(0, int(free))
                found.append((free // need, _of_filter(
                    name, f'{need} {each.counted.noun} needed, {free % need} '
                    f'of {most:.0f} left')))
        return found

    @staticmethod
    def _in_ledger(host: CountedHost, resource_class: str,
                   used: placement.Placement) -> int | None:
        """What the ledger of a host has left; None if it has none."""
        provider = ledger_of(host, resource_class, used)
        return None if provider is None else provider.free(resource_class)


def ledger_of(host: CountedHost, resource_class: str,
              used: placement.Placement,
              ) -> placement.Provider | None:
    """The resource provider of a host with its ledger, if it counts.

    :param resource_class: one of the ledger
    :param used: the resource providers
    """
    if nova_scheduler.CONF.nfv_sched.ledger != 'placement':
        return None
    return next((provider for provider in used.tree(host.root)
                 if resource_class in provider.inventories), None)


def _passed(each, host_states: list, spec) -> set[str]:
    """Names of the hosts that a filter passes."""
    try:
        return {state.host for state in each.filter_all(host_states, spec)}
    except exception.NoValidHost:
        return set()


@contextlib.contextmanager
def _loaded(host_state: ty.Any, more: occupancy.Amounts) -> Iterator[None]:
    """Prepare a HostState for filters, with more servers on it."""
    before = host_state.limits, host_state.allocation_candidates
    undo = occupancy.consume(host_state, more)
    host_state.limits = {}
    host_state.allocation_candidates = [
        {'allocations': {host_state.uuid: {'resources': {}}},
         'mappings': {'': [host_state.uuid]}}]
    try:
        yield
    finally:
        undo()
        host_state.limits, host_state.allocation_candidates = before
