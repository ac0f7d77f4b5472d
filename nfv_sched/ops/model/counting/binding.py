# SPDX-License-Identifier: Apache-2.0
"""Find the resources and policies that keep one more server off a host.

A resource is limiting if one more server fits as soon as there is enough of it
alone.  Each is tried by itself: on a view of the host where it is free, or
with a server that does not ask for it.  If no single resource is limiting, a
minimal set is named that has to grow together.
"""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
import dataclasses
import enum
import functools
import math
import operator
import typing as ty

from nfv_sched.base import device_shortage
from nfv_sched.base import reasons
from nfv_sched.fit.numa import candidates
from nfv_sched.fit.numa import decide as numa_decide
from nfv_sched.fit.numa import fit
from nfv_sched.fit.numa import pci
from nfv_sched.fit.numa import pci_shortage
from nfv_sched.fit.numa import rule as numa_rule
from nfv_sched.fit.numa import shortage
from nfv_sched.fit.numa import topology
from nfv_sched.fit import occupancy
from nfv_sched.fit import pci_pools
from nfv_sched.ops.model.counting import host_count

_THREADS = {topology.THREADS_REQUIRE: 'require',
            topology.THREADS_ISOLATE: 'isolate'}


class BindingKind(enum.Enum):
    """Kind of a limit; the value is its label in tables.

    {} in a value stands for the name of the :class:`Binding`, or its NUMA
    nodes.
    """

    #: The flavor contradicts itself, or Nova refuses it.
    FLAVOR = 'flavor'
    #: A placement policy; the name is its extra spec with the value.
    POLICY = 'policy'
    #: The host reports no NUMA nodes.
    TOPOLOGY = 'NUMA topology'
    #: The host has fewer NUMA nodes than the server.
    NUMA_NODES = 'NUMA nodes'
    #: The host does not suffice even without other servers.
    TOO_SMALL = 'host too small'
    #: Several resources together, none of them alone.
    SEVERAL = 'several'
    CPUS = 'pCPUs'
    #: The host has enough, but its NUMA nodes do not.
    CPUS_ON_NODES = 'pCPUs on {}'
    THREADS = 'threads'
    MEMORY = 'memory'
    PAGES = 'pages of {}'
    #: The host has no such pages, or the memory is no multiple of their size.
    PAGE_SIZE = 'page size'
    SHARED_CPUS = 'shared vCPUs'
    DEVICES = '{}s'
    #: The host has enough, but not on NUMA nodes that suit the server.
    DEVICES_NEAR = '{}s nearby'
    NETWORKS_NEAR = 'networks nearby'
    PORTS = 'ports'
    RULES = 'rules'
    #: Another filter; the name is that of its class.
    FILTER = 'filter'
    SERVICE = 'host disabled or down'
    UNMAPPED = 'no host mapping'
    #: OpenStack Blazar keeps the host for reservations.
    RESERVED = 'reserved by Blazar'
    PLACEMENT = 'Placement'
    #: The free capacity of what is named could not be determined.
    UNSURE = '{}'
    RESOURCE_CLASS = 'Placement {}'
    TRAIT = 'trait {}'
    AGGREGATE = 'aggregate'
    ISOLATED_AGGREGATE = 'isolated aggregate'
    #: Placement does not know a name; ``trait`` or ``resource class``.
    UNKNOWN_NAME = 'unknown {}'


_CPUS = (BindingKind.CPUS, BindingKind.CPUS_ON_NODES)
_DEVICES = (BindingKind.DEVICES, BindingKind.DEVICES_NEAR)
# Kinds of which a host can have more.
_AMOUNTS = (*_CPUS, BindingKind.MEMORY, BindingKind.PAGES,
            BindingKind.SHARED_CPUS, *_DEVICES)

# Kinds that leave a server only some of the NUMA nodes.
_NARROWING_NODES = (BindingKind.POLICY, BindingKind.NETWORKS_NEAR)


class Binding(ty.NamedTuple):
    """A resource or condition that keeps one more server off a host."""

    kind: BindingKind
    text: str  #: the amount needed and the amount free
    name: str = ''  #: which one of its kind; see :class:`BindingKind`
    #: whether one more server fits once this limit alone is lifted
    alone: bool = True
    #: number of NUMA nodes on which CPUs are needed; None unless it is of
    #: CPUS_ON_NODES
    nodes: int | None = None
    #: numbers of the NUMA nodes that policies and networks leave to the
    #: server; for a policy, those that it leaves. None if they leave all, or
    #: it is not about NUMA nodes.
    allowed_nodes: tuple[int, ...] | None = None
    #: what the host lacks together, if it is too small
    lacks: 'tuple[Binding, ...]' = ()

    @property
    def label(self) -> str:
        if self.kind in (BindingKind.POLICY, BindingKind.FILTER):
            return self.name
        return self.kind.value.format(
            self.name if self.nodes is None else _nodes_text(self.nodes))


def _nodes_text(nodes: int) -> str:
    return 'one NUMA node' if nodes == 1 else f'{nodes} NUMA nodes'


class _Case(ty.NamedTuple):
    """One more server, a host, and its allocation ratios."""

    wanted: host_count.GuestRequest
    room: host_count.FreeResources
    ratios: fit.Ratios

    def fits(self, trials: 'Sequence[_BindingTrial]' = ()) -> bool:
        """Return whether the server fits once the trials are lifted."""
        case = self
        for trial in trials:
            case = trial.without(case)
        return host_count.place(*case) is not None


class _BindingTrial(ty.NamedTuple):
    """A resource or policy to lift, to see if the server fits then."""

    binding: Binding
    #: returns the case with this limit lifted
    without: Callable[[_Case], _Case]
    #: whether it restricts which free resources the server may use
    narrows: bool = False
    #: returns the text of the binding; None if it has one
    describe: Callable[[], str] | None = None

    @property
    def text(self) -> str:
        return self.binding.text if self.describe is None else self.describe()


def find(
    guest_request: host_count.GuestRequest, room: host_count.FreeResources,
    ratios: fit.Ratios,
) -> tuple[Binding, ...]:
    """Return the NUMA resources, devices and policies that limit a host.

    :param ratios: its allocation ratios, lowered by the rules
    :returns: empty if the server fits
    """
    request = guest_request.request
    if request.error is not None:
        return (Binding(BindingKind.FLAVOR, str(request.error)),)
    case = _Case(guest_request, room, ratios)
    if case.fits():
        return ()
    if room.host is None and (request.guest is not None or request.demands):
        return (Binding(
            BindingKind.TOPOLOGY,
            'the host reports no NUMA nodes, or none that can be read'),)
    reason = _page_reason(case)
    if reason is not None:
        return (Binding(
            BindingKind.PAGE_SIZE, reasons.text(reason), alone=False),)
    trials = list(_trials(case))
    alone = [trial for trial in trials if case.fits([trial])]
    if alone:
        confining = _confining(case, [
            trial for trial in trials if trial not in alone])
        return tuple([
            trial.binding._replace(text=trial.text + _ruled_out(
                each for each in confining
                # The nodes show what these leave.
                if trial.binding.allowed_nodes is None or
                each.kind not in _NARROWING_NODES))
            for trial in alone])
    if room.host is not None and request.guest is not None:
        # Without PCI devices, of which other servers may have the rest: only
        # what NUMA cells have in all is asked.
        empty = _Case(
            _without_devices(guest_request), host_count.FreeResources(
                occupancy.empty(room.host), room.devices), ratios)
        if not empty.fits():
            lacks = _too_small(empty, request.guest, room.host)
            return (Binding(
                BindingKind.TOO_SMALL, 'too small even without other '
                f'servers: {_text_of(lacks)}', alone=False, lacks=lacks),)
    return (Binding(
        BindingKind.SEVERAL, _text_of(_bindings(_fewest(case, trials))),
        alone=False),)


def to_grow(
    guest_request: host_count.GuestRequest, room: host_count.FreeResources,
    ratios: fit.Ratios,
) -> tuple[Binding, ...]:
    """Return the resources of which a host without servers needs more.

    :returns: a minimal set; empty if the server fits, or more of them would
        not help
    """
    case = _Case(guest_request, room, ratios)
    # More devices come where there are such: on their NUMA nodes.
    trials = [trial._replace(without=_with_more_devices)
              if trial.binding.kind in _DEVICES else trial
              for trial in _trials(case, empty=True)
              if trial.binding.kind in _AMOUNTS]
    if (guest_request.request.error is not None or _page_reason(case)
            or not case.fits(trials)):
        return ()
    return _bindings(_fewest(case, trials))


def liftable(
    guest_request: host_count.GuestRequest, room: host_count.FreeResources,
    remaining: host_count.FreeResources, ratios: fit.Ratios, servers: int,
) -> list[Binding]:
    """Return the limits of a host that :func:`lift` can lift.

    All but the CPUs for pinned servers; without text.

    :param room: free capacity of the host
    :param remaining: the same after the servers that fit
    :param servers: number of servers for which the host should have capacity;
        what it has enough of for them is left out
    """
    request = guest_request.request
    limits = []
    for trial in _limit_trials(_Case(guest_request, remaining, ratios)):
        limit = trial.binding
        # On hosts none of whose NUMA nodes are near these networks, Nova's
        # claim ignores them.
        if limit.kind is BindingKind.NETWORKS_NEAR and (
                room.host is None or
                not guest_request.is_near_networks(room.host)):
            continue
        if limit.kind in (BindingKind.MEMORY, BindingKind.PAGES) and (
                _has_memory(request.guest, room.host, servers)):
            continue
        limits.append(nameable(limit))
    return limits


def lift(
    guest_request: host_count.GuestRequest, room: host_count.FreeResources,
    limits: Collection[Binding],
) -> host_count.GuestRequest:
    """Return the request without some limits; see :func:`lifted_ratios`.

    :param room: ``remaining`` of :func:`liftable`, which returned the limits
    """
    # The request of the result is all that is used, so ratios do not matter.
    case = _Case(guest_request, room, host_count.NO_RATIOS)
    for trial in list(_limit_trials(case)):
        if nameable(trial.binding) in limits:
            case = trial.without(case)
    return case.wanted


def lifted_ratios(ratios: fit.Ratios,
                  limits: Collection[Binding]) -> fit.Ratios:
    kinds = {limit.kind for limit in limits}
    if BindingKind.SHARED_CPUS in kinds:
        ratios = ratios._replace(cpu=math.inf)
    if not kinds.isdisjoint((BindingKind.MEMORY, BindingKind.PAGES)):
        ratios = ratios._replace(ram=math.inf)
    return ratios


def _limit_trials(case: _Case) -> Iterator[_BindingTrial]:
    """Yield the trials that leave a limit out of the request."""
    trials = [trial for trial in _trials(case, empty=True)
              if trial.binding.kind not in _CPUS]
    terms = case.wanted.terms
    with_threads: set[str] = set()
    if terms is not None and any(
            trial.binding.kind is BindingKind.THREADS for trial in trials):
        with_threads = {
            rule.text for rule in terms.refusing if rule.name == 'threads'}
    # What narrows the choice first, then resources.
    for trial in sorted(trials, key=lambda each: not each.narrows):
        # The thread policy is also a rule that refuses hosts. Its own trial
        # lifts that, too, so the trial of the rule is left out.
        if trial.binding.name not in with_threads:
            yield trial


def nameable(limit: Binding) -> Binding:
    """Return a limit without what differs between hosts, to be compared."""
    return limit._replace(text='', alone=True, allowed_nodes=None, lacks=())


def _has_memory(guest: topology.GuestTopology, host: topology.HostTopology,
                servers: int) -> bool:
    """Return whether memory cannot limit so many servers on a host."""
    return all(
        cell.cpus == topology.DEDICATED and
        fit.memory_free(host_cell, cell) >= servers * cell.memory
        for host_cell in host.cells for cell in guest.cells)


def _too_small(case: _Case, guest: topology.GuestTopology,
               host: topology.HostTopology) -> tuple[Binding, ...]:
    """Return what a host without other servers lacks."""
    cells, host_cells = len(guest.cells), len(host.cells)
    if cells > host_cells:
        return (Binding(BindingKind.NUMA_NODES,
                        f'{cells} NUMA nodes needed, has {host_cells}'),)
    return _bindings(_fewest(case, list(_trials(case, empty=True))))


def _confining(case: _Case, trials: list[_BindingTrial]) -> list[Binding]:
    """Return the limits that rule out the rest of what is free."""
    # The server may not fit with all of them lifted, either.
    if not case.fits(trials):
        return []
    return [trial.binding for trial in _fewest(case, trials)]


def _ruled_out(confining: Iterable[Binding]) -> str:
    # Without this, CPUs would seem to be lacking although a node has enough.
    labels = ' and '.join(binding.label for binding in confining)
    return f'; {labels} rule out the rest' if labels else ''


def _page_reason(case: _Case) -> reasons.Reason | None:
    """Return why the host can never give the server its pages."""
    guest, host = case.wanted.request.guest, case.room.host
    if guest is None or host is None:
        return None
    return shortage.page_reason(host, guest)


def _bindings(trials: Iterable[_BindingTrial]) -> tuple[Binding, ...]:
    return tuple([trial.binding._replace(text=trial.text)
                  for trial in trials])


def _text_of(limits: Iterable[Binding]) -> str:
    return '; '.join(limit.text for limit in limits)


def _fewest(case: _Case, trials: list[_BindingTrial]) -> list[_BindingTrial]:
    """Return a minimal set of trials that together let the server fit.

    Trials are dropped from the last to the first, and policies and networks
    only after all resources: CPUs that a policy rules out are free, not
    lacking.
    """
    remaining = trials
    for trial in sorted(reversed(trials), key=lambda each: each.narrows):
        fewer = [each for each in remaining if each is not trial]
        if case.fits(fewer):
            remaining = fewer
    return remaining


def _trials(case: _Case, empty: bool = False) -> Iterator[_BindingTrial]:
    """Yield each resource and policy that may keep the server off.

    :param empty: whether the host has no other servers; resources are then
        lifted by leaving them out of the request
    """
    guest_request, room, _ratios = case
    request = guest_request.request
    guest, host = request.guest, room.host
    # Policies first: other servers can use what they deny to this one.
    yield from _of_rules(case)
    if guest is not None and host is not None:
        yield from _of_cells(
            guest, _allowed_nodes(guest_request, host), case.ratios,
            _UNASKED if empty else _FREED)
    if request.demands:
        yield _of_devices(case)
    if guest_request.limited and (request.physnets or request.tunneled):
        yield _BindingTrial(
            Binding(BindingKind.NETWORKS_NEAR,
                    'NUMA nodes near the networks needed'),
            lambda case: case._replace(wanted=_change_request(
                case.wanted, physnets=frozenset(), tunneled=False,
                tunnel_uncertain=False)), True)


def _of_rules(case: _Case) -> Iterator[_BindingTrial]:
    terms, host = case.wanted.terms, case.room.host
    if terms is None:
        return
    for rule in dict.fromkeys((*terms.rules, *terms.refusing)):
        allowed_nodes = None
        if case.wanted.request.guest is not None and host is not None:
            allowed_nodes = _without_networks(case, rule, host).numbers
        yield _BindingTrial(
            Binding(BindingKind.POLICY, '', rule.text,
                    allowed_nodes=allowed_nodes),
            functools.partial(_without_rule, rule), True,
            functools.partial(_policy_text, case, rule, allowed_nodes))


def _policy_text(case: _Case, rule: numa_rule.Rule,
                 allowed_nodes: Collection[int] | None) -> str:
    """Return which NUMA nodes a policy leaves, or why it refuses the host.

    The policy is asked as if the server had no other.
    """
    if allowed_nodes:
        return f'{rule.text} leaves {_numbered_nodes(allowed_nodes)}'
    decision = host_count.decision(
        _with_rule_only(case.wanted, rule), case.room, case.ratios)
    if decision.reason is None or decision.refused_by != rule.filters:
        return f'{rule.text} rules out what is free'
    return str(reasons.resolve(decision.reason))


def _with_rule_only(guest_request: host_count.GuestRequest,
                    rule: numa_rule.Rule) -> host_count.GuestRequest:
    terms = ty.cast(numa_decide.Terms, guest_request.terms)
    return dataclasses.replace(guest_request, terms=terms._replace(
        rules=tuple([each for each in terms.rules if each is rule]),
        capping=tuple([each for each in terms.capping if each is rule]),
        refusing=tuple([each for each in terms.refusing if each is rule])))


def _without_networks(case: _Case, rule: numa_rule.Rule,
                      host: topology.HostTopology) -> '_AllowedNodes':
    """Return the NUMA nodes that one policy alone leaves."""
    return _allowed_nodes(_change_request(
        _with_rule_only(case.wanted, rule), physnets=frozenset(),
        tunneled=False, tunnel_uncertain=False), host)


class _AllowedNodes(ty.NamedTuple):
    """The NUMA nodes of a host that policies and networks leave a server."""

    host: topology.HostTopology
    cells: int  #: bitmask of these host cells
    places: tuple[str, ...] = ()  #: their properties, for texts

    @property
    def numbers(self) -> tuple[int, ...] | None:
        """Numbers of these NUMA nodes; None if they are all."""
        if self.cells == self.host.all_cells:
            return None
        return tuple(self.host.nodes(self.cells))

    def needed(self, nodes: int) -> str:
        return f'{_nodes_text(nodes)}{reasons.where(self.places)}'

    def free(self, amounts: Sequence[int]) -> str:
        """Return, as text, what is free of the amounts of each NUMA node."""
        if self.numbers is None:
            return f'{_sum(amounts)} free'
        other_cells = self.host.all_cells & ~self.cells
        text = f'{self._sum(amounts, self.cells)} free on ' + _numbered_nodes(
            self.numbers)
        if not any(amount > 0 for amount
                   in self._amounts_of(amounts, other_cells)):
            return text
        return (f'{text} ({self._sum(amounts, other_cells)} on '
                f'{_numbered_nodes(self.host.nodes(other_cells))})')

    @staticmethod
    def _amounts_of(amounts: Sequence[int], cells: int) -> list[int]:
        return [amounts[index] for index in candidates.bits(cells)]

    def _sum(self, amounts: Sequence[int], cells: int) -> str:
        return _sum(self._amounts_of(amounts, cells))


def _numbered_nodes(numbers: Collection[int]) -> str:
    return f'NUMA node{"s" * (len(numbers) > 1)} ' + ', '.join(
        map(str, numbers))


def _allowed_nodes(guest_request: host_count.GuestRequest,
                   host: topology.HostTopology) -> _AllowedNodes:
    """Return the NUMA nodes that strict policies and networks leave.

    All of them if nothing is left: then it is not for lack of resources that
    the server does not fit.
    """
    request, terms = guest_request.request, guest_request.terms
    masks: Sequence[int] = [host.all_cells] * len(request.guest.cells)
    places: list[str] = []
    if terms is not None:
        masks, narrowing = numa_decide.strict_cells(host, masks, terms)
        places += [rule.where.strip() for rule in narrowing if rule.where]
    if guest_request.limited:
        near = shortage.near(masks, numa_decide.claim_groups(
            host, request, numa_decide.Decision(
                True, ignore_tunnel=request.tunnel_uncertain)))
        if list(near) != list(masks):
            places.append(reasons.Place.NETWORKS)
        masks = near
    if not all(masks):
        return _AllowedNodes(host, host.all_cells)
    return _AllowedNodes(
        host, functools.reduce(operator.or_, masks), tuple(places))


def _without_rule(rule: ty.Any, case: _Case) -> _Case:
    terms = case.wanted.terms
    if terms is None:
        return case
    remaining_terms = terms._replace(
        rules=_drop_rule(terms.rules, rule),
        capping=_drop_rule(terms.capping, rule),
        refusing=_drop_rule(terms.refusing, rule))
    return case._replace(wanted=dataclasses.replace(
        case.wanted, terms=remaining_terms))


class _Cells(ty.NamedTuple):
    """Functions that lift one resource of the NUMA cells."""

    cpus: Callable[[_Case], _Case]
    memory: Callable[[_Case], _Case]
    shared: Callable[[_Case], _Case]


def _of_cells(
    guest: topology.GuestTopology, allowed: _AllowedNodes,
    ratios: fit.Ratios,
    enough: _Cells,
) -> Iterator[_BindingTrial]:
    cells, host_cells = guest.cells, allowed.host.cells
    free = [len(cell.free_cpus) for cell in host_cells]
    dedicated = [cell.dedicated for cell in cells]
    # Nova takes the CPU of emulator threads from the host cell of guest cell
    # 0.
    dedicated[0] += guest.reserved
    nodes = allowed.needed(len(cells))
    policy = _THREADS.get(cells[0].threads)
    if any(dedicated):
        need = f'{_sum(dedicated)} pCPUs'
        if policy:
            yield _BindingTrial(Binding(
                BindingKind.THREADS, f'{need} with thread policy {policy} on '
                f'{nodes} needed, {allowed.free(free)}',
                allowed_nodes=allowed.numbers), _any_threads, True)
        binding = Binding(BindingKind.CPUS, f'{need} on {nodes} needed, '
                          f'{allowed.free(free)}',
                          allowed_nodes=allowed.numbers)
        if sum(free) >= sum(dedicated):
            binding = binding._replace(
                kind=BindingKind.CPUS_ON_NODES, nodes=len(cells))
        yield _BindingTrial(binding, enough.cpus)
    size = cells[0].pagesize
    memory = Binding(BindingKind.MEMORY, '', allowed_nodes=allowed.numbers)
    if size:
        memory = memory._replace(
            kind=BindingKind.PAGES,
            name=cells[0].page_text)
    have = [fit.memory_free(cell, cells[0]) for cell in host_cells]
    yield _BindingTrial(memory._replace(
        text=f'{_sum([cell.memory for cell in cells])} MiB of {memory.label} '
        f'on {nodes} needed, {allowed.free(have)}'), enough.memory)
    shared = [cell.shared for cell in cells]
    if any(shared):
        # An infinite ratio times no CPUs would not be a number.
        have = [int(cell.shared * min(ratios.cpu, 1e6)) - cell.cpu_usage
                for cell in host_cells]
        yield _BindingTrial(Binding(
            BindingKind.SHARED_CPUS, f'{_sum(shared)} shared vCPUs on '
            f'{nodes} needed, {allowed.free(have)}',
            allowed_nodes=allowed.numbers), enough.shared)


def _of_devices(case: _Case) -> _BindingTrial:
    demands = case.wanted.request.demands
    devices = host_count.devices_of(case.wanted, case.room, None)
    missing = None if devices is None else pci_shortage.find(devices)
    # Enough devices if it did not matter on which NUMA nodes they are.
    near = devices is not None and missing is None
    noun = demands[0].noun if missing is None else missing.noun
    return _BindingTrial(
        Binding(BindingKind.DEVICES_NEAR if near else BindingKind.DEVICES,
                '', noun),
        lambda case: case._replace(wanted=_without_devices(case.wanted)),
        describe=functools.partial(_devices_text, case, devices, missing))


def _devices_text(
    case: _Case, devices: pci.CandidateDevices | None,
    missing: device_shortage.DeviceShortage | None,
) -> str:
    """Return why there are too few PCI devices.

    :param missing: the shortage if it did not matter where devices are
    """
    if devices is None:
        return 'PCI devices needed, the host has none'
    reason = reasons.devices_reason(
        missing, reasons.CAPACITY, '') if missing else _devices_reason(
            case, devices)
    if reason is None:
        needs = device_shortage.needs_text(pci_shortage.needs(devices))
        return (f'{needs} on NUMA nodes with capacity for the rest needed, '
                f'{pci_shortage.free(devices)} free on the host')
    return f'{reason.need}, {reason.have}'


def _devices_reason(case: _Case, devices: pci.CandidateDevices,
                    ) -> reasons.Reason | None:
    """Return why devices are not near NUMA nodes that the server may have."""
    guest_request, room, ratios = case
    host, terms = room.host, guest_request.terms
    decision = host_count.decision(*case)
    if decision.reason is not None:
        reason = reasons.resolve(decision.reason)
        if reason.shortage is not None and reason.shortage.devices:
            return reason
    if host is None or guest_request.request.guest is None:
        return None
    evaluation = host_count.evaluate(guest_request, room, host, ratios)
    allowed = _allowed_nodes(guest_request, host)
    every = [allowed.cells] * len(evaluation.masks)
    masks = [mask & allowed.cells for mask in evaluation.masks]
    # Where CPUs or memory are missing everywhere, another limit says so.
    return shortage.devices_reason(
        evaluation, devices, masks if candidates.feasible(masks) else every,
        '', reasons.CAPACITY, allowed.places,
        terms is not None and any(
            rule.strict and rule.devices for rule in terms.rules),
        empty=every)


def _without_devices(
        guest_request: host_count.GuestRequest) -> host_count.GuestRequest:
    """Drop the PCI devices, and policies that concern them."""
    terms = guest_request.terms
    if terms is not None:
        terms = terms._replace(rules=tuple([
            rule for rule in terms.rules if not rule.devices]))
    return dataclasses.replace(
        _change_request(guest_request, demands=()), terms=terms)


def _with_more_devices(case: _Case) -> _Case:
    devices = case.room.devices
    if devices is None:
        return case
    times = sum([demand.count for demand in case.wanted.request.demands])
    return case._replace(room=dataclasses.replace(
        case.room, devices=pci_pools.PCIPools.read([
            {**pool, 'count': pool['count'] * times}
            for pool in devices.pools])))


def _sum(numbers: Sequence[int]) -> str:
    return ' + '.join(str(max(number, 0)) for number in numbers)


def _change_request(guest_request: host_count.GuestRequest,
                    **changes: ty.Any) -> host_count.GuestRequest:
    return dataclasses.replace(guest_request, request=dataclasses.replace(
        guest_request.request, **changes))


def _drop_rule(rules: tuple, rule: ty.Any) -> tuple:
    return tuple([other for other in rules if other is not rule])


def _any_threads(case: _Case) -> _Case:
    """Lift the CPU thread policy."""
    terms = case.wanted.terms
    if terms is not None:
        terms = terms._replace(refusing=tuple([
            rule for rule in terms.refusing if rule.name != 'threads']))
    return _with_cells(
        case._replace(wanted=dataclasses.replace(case.wanted, terms=terms)),
        threads=topology.THREADS_PREFER)


def _with_cells(case: _Case, **changes: ty.Any) -> _Case:
    """Replace attributes of all guest NUMA cells."""
    def changed(guest):
        cells = tuple([cell._replace(**changes) for cell in guest.cells])
        return guest._replace(
            cells=cells, reserved=0 if 'dedicated' in changes
            else guest.reserved,
            any_pages=any((cell.pagesize or 0) < 0 for cell in cells))

    request = case.wanted.request
    # The filters decide about one of them, and the claim about the other.
    return case._replace(wanted=_change_request(
        case.wanted, guest=changed(request.guest),
        pristine=changed(request.pristine)))


def _free_resources(case: _Case, **resources: bool) -> _Case:
    room = case.room
    return case._replace(room=host_count.FreeResources(
        occupancy.freed(room.host, **resources), room.devices))


def _no_cpus(case: _Case) -> _Case:
    """Return the case with as few pinned CPUs as Nova fits."""
    guest = case.wanted.request.guest
    if guest.isolates or guest.requires_siblings:
        # Under isolate, Nova cannot fit a NUMA cell without pinned CPUs.
        return _with_cells(case, dedicated=int(guest.isolates))
    # Nova cannot fit a pinned one on a NUMA node without dedicated CPUs.
    return _with_cells(case, dedicated=0, cpus=topology.SHARED)


def _no_memory(case: _Case) -> _Case:
    """Return the case without memory, and so without a page size."""
    case = _with_cells(case, memory=0, pagesize=None)
    return case._replace(ratios=case.ratios._replace(ram=math.inf))


#: Lift a resource by freeing what other servers use of it.
_FREED = _Cells(
    cpus=functools.partial(_free_resources, cpus=True),
    memory=lambda case: _free_resources(case, memory=True)._replace(
        ratios=case.ratios._replace(ram=math.inf)),
    shared=lambda case: _free_resources(case, shared=True)._replace(
        ratios=case.ratios._replace(cpu=math.inf)))
#: Lift a resource by leaving it out of the request.
_UNASKED = _Cells(
    cpus=_no_cpus,
    memory=_no_memory,
    shared=functools.partial(_with_cells, shared=0))
