# SPDX-License-Identifier: Apache-2.0
"""Find the resources and policies that keep one more server off a host.

A resource is limiting if one more server fits as soon as there is enough of it
alone.  Each is tried by itself: on a view of the host where it is free, or
with a server that does not ask for it.  If no single resource is limiting, a
minimal set is named that has to grow together.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
import dataclasses
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
from nfv_sched.ops.model.counting import document
from nfv_sched.ops.model.counting import host_count

BindingKind = document.BindingKind
HostLimit = document.HostLimit
_Case = host_count.Case

_THREADS = {topology.THREADS_REQUIRE: 'require',
            topology.THREADS_ISOLATE: 'isolate'}
_CPUS = (BindingKind.CPUS, BindingKind.CPUS_ON_NODES)
_DEVICES = (BindingKind.DEVICES, BindingKind.DEVICES_NEAR)
# Kinds of which a host can have more.
_AMOUNTS = (*_CPUS, BindingKind.MEMORY, BindingKind.PAGES,
            BindingKind.SHARED_CPUS, *_DEVICES)
# Kinds that leave a server only some of the NUMA nodes.
_NARROWING_NODES = (BindingKind.POLICY, BindingKind.NETWORKS_NEAR)


class _Trial(ty.NamedTuple):
    """A resource or policy to lift, to see if the server fits then."""

    limit: HostLimit
    #: returns the case with this limit lifted
    without: Callable[[_Case], _Case]
    #: whether it restricts which free resources the server may use
    narrows: bool = False
    #: returns why it limits the host; None if the limit says it
    describe: Callable[[], str] | None = None


def _fits(case: _Case, trials: Iterable[_Trial] = ()) -> bool:
    for trial in trials:
        case = trial.without(case)
    return host_count.place(case) is not None


def find(case: _Case) -> tuple[HostLimit, ...]:
    """Return the NUMA resources, devices and policies that limit a host.

    :returns: empty if the server fits
    """
    room, request = case.room, case.wanted.request
    if request.error is not None:
        return (HostLimit(BindingKind.FLAVOR, why=str(request.error)),)
    if _fits(case):
        return ()
    if room.host is None and (request.guest is not None or request.demands):
        return (HostLimit(
            BindingKind.TOPOLOGY,
            why='the host reports no NUMA nodes, or none that can be read'),)
    if (reason := _page_reason(case)) is not None:
        return (HostLimit(
            BindingKind.PAGE_SIZE, why=reasons.text(reason), alone=False),)
    trials = list(_trials(case))
    if alone := [trial for trial in trials if _fits(case, [trial])]:
        rest = [trial for trial in trials if trial not in alone]
        # The server may not fit with all of them lifted, either.
        confining = _fewest(case, rest) if _fits(case, rest) else []
        return tuple([
            dataclasses.replace(
                limit, why=limit.why + _ruled_out(limit, confining))
            for limit in _described(alone)])
    if room.host is not None and request.guest is not None:
        # Without PCI devices, of which other servers may have the rest: only
        # what NUMA cells have in all is asked.
        empty = _without_devices(case)._replace(
            room=host_count.FreeResources(
                occupancy.empty(room.host), room.devices))
        if not _fits(empty):
            nodes, has = len(request.guest.cells), len(room.host.cells)
            lacks = (HostLimit(BindingKind.NUMA_NODES, why=(
                f'{nodes} NUMA nodes needed, has {has}')),
            ) if nodes > has else _described(_fewest(
                empty, list(_trials(empty, empty=True))))
            return (HostLimit(
                BindingKind.TOO_SMALL, why='too small even without other '
                f'servers: {_text_of(lacks)}', alone=False, lacks=lacks),)
    return (HostLimit(
        BindingKind.SEVERAL, why=_text_of(_described(_fewest(case, trials))),
        alone=False),)


def to_grow(case: _Case) -> tuple[HostLimit, ...]:
    """Return the resources of which a host without servers needs more.

    :returns: a minimal set; empty if the server fits, or more of them would
        not help
    """
    # More devices come where there are such: on their NUMA nodes.
    trials = [trial._replace(without=_with_more_devices)
              if trial.limit.kind in _DEVICES else trial
              for trial in _trials(case, empty=True)
              if trial.limit.kind in _AMOUNTS]
    if (case.wanted.request.error is not None or _page_reason(case)
            or not _fits(case, trials)):
        return ()
    return _described(_fewest(case, trials))


def liftable(case: _Case, room: host_count.FreeResources,
             servers: int) -> list[document.LostLimit]:
    """Return the limits of a host that :func:`lift` can lift.

    All but the CPUs for pinned servers.

    :param case: the host after the servers that fit
    :param room: free capacity of the host before
    :param servers: number of servers for which the host should have capacity;
        what it has enough of for them is left out
    """
    # On hosts none of whose NUMA nodes are near these networks, Nova's claim
    # ignores them.
    is_near = room.host is not None and case.wanted.is_near_networks(room.host)
    return [
        trial.limit.on_any_host for trial in _limit_trials(case)
        if (trial.limit.kind is not BindingKind.NETWORKS_NEAR or is_near)
        and not (trial.limit.kind in (BindingKind.MEMORY, BindingKind.PAGES)
                 and _has_memory(case.wanted.request.guest, room.host,
                                 servers))]


def lift(case: _Case,
         limits: Collection[document.LostLimit]) -> host_count.GuestRequest:
    """Return the request of a ``liftable`` case without some limits."""
    for trial in _limit_trials(case):
        if trial.limit.on_any_host in limits:
            case = trial.without(case)
    return case.wanted


def lifted_ratios(ratios: fit.Ratios,
                  limits: Collection[document.LostLimit]) -> fit.Ratios:
    kinds = {limit.kind for limit in limits}
    if BindingKind.SHARED_CPUS in kinds:
        ratios = ratios._replace(cpu=math.inf)
    if not kinds.isdisjoint((BindingKind.MEMORY, BindingKind.PAGES)):
        ratios = ratios._replace(ram=math.inf)
    return ratios


def _limit_trials(case: _Case) -> list[_Trial]:
    trials = [trial for trial in _trials(case, empty=True)
              if trial.limit.kind not in _CPUS]
    terms = case.wanted.terms
    # The thread policy is also a rule that refuses hosts. Its own trial lifts
    # that, too, so the trial of the rule is left out.
    with_threads: set[str] = set()
    if terms is not None and any(
            trial.limit.kind is BindingKind.THREADS for trial in trials):
        with_threads = {
            rule.text for rule in terms.refusing if rule.name == 'threads'}
    # What narrows the choice first, then resources.
    return sorted(
        (trial for trial in trials if trial.limit.name not in with_threads),
        key=lambda each: not each.narrows)


def _has_memory(guest: topology.GuestTopology, host: topology.HostTopology,
                servers: int) -> bool:
    """Return whether memory cannot limit so many servers on a host."""
    return all(
        cell.cpus == topology.DEDICATED and
        fit.memory_free(host_cell, cell) >= servers * cell.memory
        for host_cell in host.cells for cell in guest.cells)


def _ruled_out(limit: HostLimit, confining: Iterable[_Trial]) -> str:
    """Return, as text, what rules out the rest of what is free.

    Without it, CPUs would seem to be lacking although a node has enough.
    """
    labels = ' and '.join(
        trial.limit.label for trial in confining
        # The nodes show what these leave.
        if limit.allowed_nodes is None
        or trial.limit.kind not in _NARROWING_NODES)
    return f'; {labels} rule out the rest' if labels else ''


def _page_reason(case: _Case) -> reasons.Reason | None:
    """Return why the host can never give the server its pages."""
    guest, host = case.wanted.request.guest, case.room.host
    return None if guest is None or host is None else (
        shortage.page_reason(host, guest))


def _described(trials: Iterable[_Trial]) -> tuple[HostLimit, ...]:
    return tuple([
        each.limit if each.describe is None else dataclasses.replace(
            each.limit, why=each.describe()) for each in trials])


def _text_of(limits: Iterable[HostLimit]) -> str:
    return '; '.join(limit.why for limit in limits)


def _fewest(case: _Case, trials: list[_Trial]) -> list[_Trial]:
    """Return a minimal set of trials that together let the server fit.

    Trials are dropped from the last to the first, and policies and networks
    only after all resources: CPUs that a policy rules out are free, not
    lacking.
    """
    remaining = trials
    for trial in sorted(reversed(trials), key=lambda each: each.narrows):
        fewer = [each for each in remaining if each is not trial]
        if _fits(case, fewer):
            remaining = fewer
    return remaining


def _trials(case: _Case, empty: bool = False) -> Iterator[_Trial]:
    """Yield each resource and policy that may keep the server off.

    :param empty: whether the host has no other servers; resources are then
        lifted by leaving them out of the request
    """
    request, host = case.wanted.request, case.room.host
    # Policies first: other servers can use what they deny to this one.
    yield from _of_rules(case)
    if request.guest is not None and host is not None:
        yield from _of_cells(
            request.guest, _allowed_nodes(case.wanted, host), case.ratios,
            empty)
    if request.demands:
        yield _of_devices(case)
    if case.wanted.limited and (request.physnets or request.tunneled):
        yield _Trial(
            HostLimit(BindingKind.NETWORKS_NEAR,
                      why='NUMA nodes near the networks needed'),
            _anywhere, True)


def _of_rules(case: _Case) -> Iterator[_Trial]:
    terms, host = case.wanted.terms, case.room.host
    if terms is None:
        return
    for rule in dict.fromkeys((*terms.rules, *terms.refusing)):
        # As if the server had no other policy.
        only = _with_rules(functools.partial(operator.is_, rule), case)
        allowed = None
        if case.wanted.request.guest is not None and host is not None:
            allowed = _allowed_nodes(_anywhere(only).wanted, host).numbers
        yield _Trial(
            HostLimit(BindingKind.POLICY, rule.text, allowed_nodes=allowed),
            functools.partial(
                _with_rules, functools.partial(operator.is_not, rule)), True,
            functools.partial(_policy_text, only, rule, allowed))


def _policy_text(case: _Case, rule: numa_rule.Rule,
                 allowed_nodes: Collection[int] | None) -> str:
    """Return which NUMA nodes a policy leaves, or why it refuses the host."""
    if allowed_nodes:
        return f'{rule.text} leaves {_numbered_nodes(allowed_nodes)}'
    decision = host_count.decision(case)
    if decision.reason is None or decision.refused_by != rule.filters:
        return f'{rule.text} rules out what is free'
    return str(reasons.resolve(decision.reason))


def _with_rules(is_kept: Callable[[numa_rule.Rule], bool], case: _Case,
                among: Iterable[str] = ('rules', 'capping', 'refusing'),
                ) -> _Case:
    if (terms := case.wanted.terms) is None:
        return case
    return case._replace(wanted=dataclasses.replace(
        case.wanted, terms=terms._replace(**{
            name: tuple(filter(is_kept, getattr(terms, name)))
            for name in among})))


def _anywhere(case: _Case) -> _Case:
    """Return the case without networks that NUMA nodes must be near."""
    return _change_request(case, physnets=frozenset(), tunneled=False,
                           tunnel_uncertain=False)


class _AllowedNodes(ty.NamedTuple):
    """The NUMA nodes of a host that policies and networks leave a server."""

    host: topology.HostTopology
    cells: int  #: bitmask of these host cells
    places: tuple[str, ...] = ()  #: their properties, for texts

    @property
    def numbers(self) -> tuple[int, ...] | None:
        """Numbers of these NUMA nodes; None if they are all."""
        return None if self.cells == self.host.all_cells else tuple(
            self.host.nodes(self.cells))

    def free(self, amounts: Sequence[int]) -> str:
        """Return, as text, what is free of the amounts of each NUMA node."""
        if self.numbers is None:
            return f'{_sum(amounts)} free'
        other_cells = self.host.all_cells & ~self.cells
        here, elsewhere = ([amounts[index] for index in candidates.bits(cells)]
                           for cells in (self.cells, other_cells))
        text = f'{_sum(here)} free on {_numbered_nodes(self.numbers)}'
        if any(amount > 0 for amount in elsewhere):
            nodes = _numbered_nodes(self.host.nodes(other_cells))
            text += f' ({_sum(elsewhere)} on {nodes})'
        return text


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


def _of_cells(guest: topology.GuestTopology, allowed: _AllowedNodes,
              ratios: fit.Ratios, empty: bool) -> Iterator[_Trial]:
    cells, host_cells = guest.cells, allowed.host.cells
    free = [len(cell.free_cpus) for cell in host_cells]
    dedicated = [cell.dedicated for cell in cells]
    # Nova takes the CPU of emulator threads from the host cell of guest cell
    # 0.
    dedicated[0] += guest.reserved
    nodes = document.nodes_text(len(cells)) + reasons.where(allowed.places)

    def limit(need: str, have: Sequence[int], *kind: str,
              **fields: ty.Any) -> HostLimit:
        return HostLimit(
            *kind, **fields, allowed_nodes=allowed.numbers,
            why=f'{need} on {nodes} needed, {allowed.free(have)}')

    def enough(resource: str, unasked: Callable[[_Case], _Case],
               ) -> Callable[[_Case], _Case]:
        return unasked if empty else functools.partial(
            _free_resource, resource)

    policy = _THREADS.get(cells[0].threads)
    if any(dedicated):
        need = f'{_sum(dedicated)} pCPUs'
        if policy:
            yield _Trial(limit(
                f'{need} with thread policy {policy}', free,
                BindingKind.THREADS), _any_threads, True)
        apart = sum(free) >= sum(dedicated)
        yield _Trial(limit(
            need, free, BindingKind.CPUS_ON_NODES if apart else
            BindingKind.CPUS, numa_nodes=len(cells) if apart else None),
            enough('cpus', _no_cpus))
    kind: tuple[str, ...] = (BindingKind.MEMORY,)
    if cells[0].pagesize:
        kind = BindingKind.PAGES, cells[0].page_text
    label = document.LostLimit(*kind).label
    yield _Trial(limit(
        f'{_sum([cell.memory for cell in cells])} MiB of {label}',
        [fit.memory_free(cell, cells[0]) for cell in host_cells], *kind),
        enough('memory', _no_memory))
    shared = [cell.shared for cell in cells]
    if any(shared):
        # An infinite ratio times no CPUs would not be a number.
        have = [int(cell.shared * min(ratios.cpu, 1e6)) - cell.cpu_usage
                for cell in host_cells]
        yield _Trial(limit(f'{_sum(shared)} shared vCPUs', have,
                           BindingKind.SHARED_CPUS),
                     enough('shared', functools.partial(
                         _with_cells, shared=0)))


def _of_devices(case: _Case) -> _Trial:
    demands = case.wanted.request.demands
    devices = host_count.devices_of(case, None)
    missing = None if devices is None else pci_shortage.find(devices)
    # Enough devices if it did not matter on which NUMA nodes they are.
    near = devices is not None and missing is None
    noun = demands[0].noun if missing is None else missing.noun
    return _Trial(
        HostLimit(BindingKind.DEVICES_NEAR if near else BindingKind.DEVICES,
                  noun), _without_devices,
        describe=functools.partial(_devices_text, case, devices, missing))


def _devices_text(case: _Case, devices: pci.CandidateDevices | None,
                  missing: device_shortage.DeviceShortage | None) -> str:
    """Return what lacks; ``missing`` if it did not matter where they are."""
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
    host, terms = case.room.host, case.wanted.terms
    decision = host_count.decision(case)
    if decision.reason is not None:
        reason = reasons.resolve(decision.reason)
        if reason.shortage is not None and reason.shortage.devices:
            return reason
    if host is None or case.wanted.request.guest is None:
        return None
    evaluation = host_count.evaluate(case, host)
    allowed = _allowed_nodes(case.wanted, host)
    every = [allowed.cells] * len(evaluation.masks)
    masks = [mask & allowed.cells for mask in evaluation.masks]
    # Where CPUs or memory are missing everywhere, another limit says so.
    return shortage.devices_reason(
        evaluation, devices, masks if candidates.feasible(masks) else every,
        '', reasons.CAPACITY, allowed.places, terms is not None and any(
            rule.strict and rule.devices for rule in terms.rules),
        empty=every)


def _without_devices(case: _Case) -> _Case:
    """Drop the PCI devices, and policies that concern them."""
    return _with_rules(lambda rule: not rule.devices,
                       _change_request(case, demands=()), ['rules'])


def _with_more_devices(case: _Case) -> _Case:
    if (devices := case.room.devices) is None:
        return case
    times = sum([demand.count for demand in case.wanted.request.demands])
    return case._replace(room=dataclasses.replace(
        case.room, devices=pci_pools.PCIPools.read([
            {**pool, 'count': pool['count'] * times}
            for pool in devices.pools])))


def _sum(numbers: Sequence[int]) -> str:
    return ' + '.join(str(max(number, 0)) for number in numbers)


def _change_request(case: _Case, **changes: ty.Any) -> _Case:
    return case._replace(wanted=dataclasses.replace(
        case.wanted, request=dataclasses.replace(
            case.wanted.request, **changes)))


def _any_threads(case: _Case) -> _Case:
    return _with_cells(
        _with_rules(lambda rule: rule.name != 'threads', case, ['refusing']),
        threads=topology.THREADS_PREFER)


def _with_cells(case: _Case, **changes: ty.Any) -> _Case:
    def changed(guest):
        cells = tuple([cell._replace(**changes) for cell in guest.cells])
        return guest._replace(
            cells=cells, reserved=0 if 'dedicated' in changes
            else guest.reserved,
            any_pages=any((cell.pagesize or 0) < 0 for cell in cells))

    request = case.wanted.request
    # The filters decide about one of them, and the claim about the other.
    return _change_request(case, guest=changed(request.guest),
                           pristine=changed(request.pristine))


def _free_resource(resource: str, case: _Case) -> _Case:
    """Free what other servers use: ``cpus``, ``memory`` or ``shared``."""
    room, ratios = case.room, case.ratios
    if resource == 'memory':
        ratios = ratios._replace(ram=math.inf)
    if resource == 'shared':
        ratios = ratios._replace(cpu=math.inf)
    return case._replace(ratios=ratios, room=host_count.FreeResources(
        occupancy.freed(room.host, **{resource: True}), room.devices))


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
