# SPDX-License-Identifier: Apache-2.0

"""Try changes of a request, one or two, to find those with which it fits."""

import collections
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import contextlib
import dataclasses
import itertools
import time
import typing as ty

from oslo_utils import strutils

from nfv_sched.base import strings
from nfv_sched.nova import flavors
from nfv_sched.ops.answers.explain import document
from nfv_sched.ops.answers.explain import scheduling
from nfv_sched.ops.model.requests import assumed_ports
from nfv_sched.ops.simulator import compute
from nfv_sched.ops.simulator import request
from nfv_sched.ops.simulator import state as states

# Sizes of changes, the smallest first.
_PREFER = 0
_HOST = 1
_PAGES = 2
_NODES = 3
_SMALLER = 4
_KEY = 5
_WITHOUT = 6

#: Extra spec -> its most lenient value.
_LENIENT = {
    'hw:pci_numa_affinity_policy': 'preferred',
    'hw:cpu_thread_policy': 'prefer',
}
#: Extra specs that do not decide where a server fits.
_HARMLESS = (
    'quota:', 'hw_rng:', 'hw_video:', 'os:', 'vmware:', 'powervm:',
    'hw:cpu_sockets', 'hw:cpu_cores', 'hw:cpu_threads', 'hw:cpu_max_',
    'hw:boot_menu', 'hw:watchdog_action', 'hw:vif_multiqueue_enabled',
    'hw:serial_port_count', 'hw:hide_hypervisor_id')
#: Extra spec that requests PCI devices.
ALIAS = 'pci_passthrough:alias'
#: Size of small pages, in KiB.
SMALL = 4
#: Extra spec with a page size.
PAGE_SIZE = 'hw:mem_page_size'
_NUMA_NODES = 'hw:numa_nodes'
#: Extra spec -> others that Nova refuses or ignores without it.
_DEPENDENT = {
    'hw:cpu_policy': (
        'hw:cpu_thread_policy', 'hw:cpu_dedicated_mask', 'hw:cpu_realtime',
        'hw:emulator_threads_policy'),
    _NUMA_NODES: ('hw:numa_cpus.', 'hw:numa_mem.', 'nfv:numa_node.',
                  'hw:numa_node.'),
    'hw:cpu_realtime': ('hw:cpu_realtime_mask',),
}
_PAGE_TEXTS = {4: 'small', 2048: '2MB', 1048576: '1GB'}
_STEPS = 32  # maximum number of amounts of memory
_VCPU_STEPS = 512  # and of vCPUs, of which no real flavor has more
_DISABLED_HOSTS = 5  # maximum number that are tried one by one
_MOST_NODES = 16
_MOST_DEVICES = 256
_HOSTS = 'hosts'
# Each trial runs the scheduler over all hosts, half a second for a thousand.
# So pairs end after this part of the time, or if so many make it fit.
_PAIRS_TIME = 0.25
_MOST_PAIRS = 3


class Change(ty.NamedTuple):
    """A change of a request."""

    text: str
    size: int  #: rank of its size, the smallest first
    requested: request.BootRequest
    #: extra spec, or another part of the request, that changes; two changes of
    #: one do not go together
    subject: str
    enabled: tuple[str, ...] = ()  #: names of hosts that are enabled for it


class Search(ty.NamedTuple):
    """Changes of one amount, smallest first, to find the largest that fits."""

    changes: Sequence[Change]


class Pair(ty.NamedTuple):
    """Two changes together, the second one of several amounts perhaps."""

    subjects: frozenset[str]
    size: int  #: rank of the size of both, the smallest first
    trials: Change | Search  #: what to try, as a single change


class RelaxationResult(ty.NamedTuple):
    """The outcome of the trials."""

    #: changes that fit, the best first
    changes: tuple[document.HelpfulChange, ...]
    tried: int  #: number of trials
    untried: int  #: number of changes for which there was no time


def relax(state: states.State, boot_request: request.BootRequest,
          seconds: float,
          progress: Callable[[int, int], None]) -> RelaxationResult:
    """Try changes of a request that does not fit, in pairs if none helps.

    :param state: the cloud; restored afterwards
    :param seconds: time after which no trial begins
    :param progress: called with (changes done, all changes)
    """
    ends = time.monotonic() + seconds
    todo: list[Change | Search] = [
        *changes(state, boot_request), *searches(boot_request)]
    trier = _Trier(state)
    for number, item in enumerate(todo):
        progress(number, len(todo))
        trier.try_all(item, ends)
    # Pairs only if no single change helps: there are hundreds of them.
    if not trier.fitting:
        ends = min(ends, time.monotonic() + _PAIRS_TIME * seconds)
        helped: set[frozenset[str]] = set()
        both = pairs(state, boot_request)
        for number, pair in enumerate(both):
            if len(helped) == _MOST_PAIRS:
                break
            progress(number, len(both))
            if pair.subjects not in helped and trier.try_all(
                    pair.trials, ends):
                helped.add(pair.subjects)
        progress(len(both), len(both))
    else:
        progress(len(todo), len(todo))
    trier.fitting.sort(key=lambda item: (-item[1].hosts, item[0]))
    return RelaxationResult(tuple(each for _size, each in trier.fitting),
                            trier.tried, trier.untried)


def pairs(state: states.State,
          boot_request: request.BootRequest) -> list[Pair]:
    """Return the pairs of changes that are worth trying, the smallest first.

    Two changes that each take away a part of the request are left out, such as
    two networks: that is another server.
    """
    both: dict[frozenset[str], Pair] = {}
    # None is searched for twice: of many ports, none is left.
    for first in (*changes(state, boot_request), *[
            search.changes[0] for search in _port_searches(
                boot_request)]):
        for second in (*changes(state, first.requested),
                       *searches(first.requested)):
            several = second.changes if isinstance(second, Search) else (
                second,)
            joined = [_join(first, each) for each in several
                      if each.subject != first.subject]
            if not joined or first.size == several[0].size == _WITHOUT:
                continue
            both.setdefault(
                frozenset({first.text, several[-1].text}), Pair(
                    frozenset({first.subject, several[0].subject}),
                    joined[0].size, Search(joined) if isinstance(
                        second, Search) else joined[0]))
    return sorted(both.values(), key=lambda pair: pair.size)


def _join(first: Change, second: Change) -> Change:
    return Change(
        f'{first.text} and {second.text}', first.size + second.size,
        second.requested, f'{first.subject} {second.subject}',
        first.enabled + second.enabled)


class _Trier:
    """Tries changes, and keeps those that fit.

    :ivar fitting: pairs of the size of a change and the change
    """

    def __init__(self, state: states.State):
        self._state = state
        self.fitting: list[tuple[int, document.HelpfulChange]] = []
        self.tried = self.untried = 0

    def try_all(self, item: Change | Search, ends: float) -> bool:
        """Try a change, or the largest that fits; return whether one does."""
        trials = _find_largest(item.changes) if isinstance(item, Search) else (
            _try_once(item))
        result = None
        try:
            change = next(trials)
            while True:
                if time.monotonic() >= ends:
                    self.untried += 1
                    break
                self.tried += 1
                this = _try(self._state, change)
                if this is not None:
                    result = change.size, this
                change = trials.send(this is not None)
        except StopIteration:
            pass
        if result is not None:
            self.fitting.append(result)
        return result is not None


_Trials = ty.Generator[Change, bool, None]


def _try_once(change: Change) -> _Trials:
    yield change


def _find_largest(changes: Sequence[Change]) -> _Trials:
    """Bisect for the largest that fits, if all smaller ones fit too."""
    low, high = 0, len(changes)
    while low < high:
        middle = (low + high) // 2
        if (yield changes[middle]):
            low = middle + 1
        else:
            high = middle


def _try(state: states.State, change: Change) -> document.HelpfulChange | None:
    """Boot with a change; return None if that is refused."""
    result = scheduling.run(state, change.requested,
                            _enable_hosts(state, change.enabled))
    if result.reason is not None:
        return None
    return document.HelpfulChange(
        text=strings.short(change.text),
        request=document.requested(change.requested),
        hosts_enabled=change.enabled, hosts=len(result.passed),
        host=result.places[0].host, requested=change.requested)


@contextlib.contextmanager
def _enable_hosts(state: states.State, names: Sequence[str]) -> Iterator[None]:
    """Have some hosts enabled, mapped and up in this context."""
    before = []
    for name in names:
        host = state.hosts[name]
        traits = state.placement.providers[host.uuid].traits
        before.append((host, host.record, host.down, traits))
        # Nova looks twice: its query to Placement forbids the trait
        # COMPUTE_STATUS_DISABLED, and ComputeFilter reads the service.
        host.record = dataclasses.replace(
            host.record, enabled=True, mapped=True)
        host.down = False
        state.placement.change(
            host.uuid, traits=traits - {compute.DISABLED})
    try:
        yield
    finally:
        for host, record, down, traits in before:
            host.record, host.down = record, down
            state.placement.change(host.uuid, traits=traits)


def changes(state: states.State,
            boot_request: request.BootRequest) -> Iterator[Change]:
    yield from _lenient_changes(boot_request)
    yield from _hosts(state, boot_request)
    yield from _page_sizes(state, boot_request)
    yield from _numa_nodes(state, boot_request)
    yield from _without_keys(boot_request)
    yield from _without_devices(boot_request)
    yield from _without_others(boot_request)


def lenient_values(
    specs: Mapping[str, str],
) -> Iterator[tuple[str, str]]:
    """Yield the extra specs that insist on something.

    :returns: of each, the key and the most lenient value
    """
    for key, value in specs.items():
        lenient = _LENIENT.get(key)
        if lenient is None and key.startswith(('nfv:', 'hw:wrs:')) and (
                value == 'strict'):
            lenient = 'prefer'
        if lenient is not None and value != lenient:
            yield key, lenient


def _lenient_changes(
    boot_request: request.BootRequest,
) -> Iterator[Change]:
    specs = boot_request.flavor.extra_specs
    for key, lenient in lenient_values(specs):
        yield Change(f'{key}={lenient}', _PREFER,
                     boot_request.with_specs({**specs, key: lenient}),
                     key)


def _hosts(state: states.State,
           boot_request: request.BootRequest) -> Iterator[Change]:
    names = [name for name, host in state.hosts.items()
             if host.down or not (host.record.enabled and host.record.mapped)]
    for name in names[:_DISABLED_HOSTS]:
        yield Change(f'{name} {_repairs_text(state, [name])}', _HOST,
                     boot_request, _HOSTS, (name,))
    if len(names) > 1:
        yield Change(f'all {len(names)} disabled hosts '
                     f'{_repairs_text(state, names)}', _HOST,
                     boot_request,
                     _HOSTS, tuple(names))


def _repairs_text(state: states.State, names: Sequence[str]) -> str:
    hosts = [state.hosts[name] for name in names]
    changes = []
    if any(host.down or not host.record.enabled for host in hosts):
        changes.append('enabled and up')
    if not all(host.record.mapped for host in hosts):
        changes.append('mapped (nova-manage cell_v2 discover_hosts)')
    return ', '.join(changes)


def _page_sizes(
    state: states.State, boot_request: request.BootRequest,
) -> Iterator[Change]:
    specs = boot_request.flavor.extra_specs
    if PAGE_SIZE not in specs:
        return
    # A size that no host has could only be refused.
    sizes = {SMALL, *(pages.size for host in state.hosts.values()
                      for node in host.record.nodes or ()
                      for pages in node.pages)}
    for size in sorted(sizes):
        text = _PAGE_TEXTS.get(size, str(size))
        if page_kib(specs[PAGE_SIZE]) != size:
            yield Change(f'{PAGE_SIZE}={text}', _PAGES,
                         boot_request.with_specs(
                             {**specs, PAGE_SIZE: text}), PAGE_SIZE)


def page_kib(value: str) -> int | None:
    """Return the page size of an extra spec in KiB; None without a size."""
    sizes = {text.lower(): size for size, text in _PAGE_TEXTS.items()}
    if value.lower() in sizes:
        return sizes[value.lower()]
    try:
        return int(value) if value.isdecimal() else (
            strutils.string_to_bytes(value, return_int=True) // 1024)
    except ValueError:
        return None


def _numa_nodes(
    state: states.State, boot_request: request.BootRequest,
) -> Iterator[Change]:
    specs = boot_request.flavor.extra_specs
    # A guest without such keys has no NUMA topology and may use the whole
    # host; a number of NUMA nodes could only restrict it.
    if not any(key.startswith('hw:') for key in specs):
        return
    most = max((len(host.record.nodes or ()) for host in state.hosts.values()),
               default=0)
    # These extra specs name the guest NUMA nodes that change.
    dropped = sorted(key for key in specs
                     if key.startswith(_DEPENDENT[_NUMA_NODES]))
    other_specs = {key: value for key, value in specs.items()
                   if key not in dropped}
    without = f", without {', '.join(dropped)}" if dropped else ''
    for nodes in range(1, min(most, boot_request.flavor.vcpus,
                              _MOST_NODES) + 1):
        # Nova divides nothing with a remainder: without hw:numa_cpus.N and
        # hw:numa_mem.N it refuses such flavors (ImageNUMATopologyAsymmetric).
        if nodes == _nodes_of(specs) or (
                boot_request.flavor.vcpus % nodes
                or boot_request.flavor.memory % nodes):
            continue
        yield Change(
            f'{_NUMA_NODES}={nodes}{without}', _NODES,
            boot_request.with_specs(
                {**other_specs, _NUMA_NODES: str(nodes)}), _NUMA_NODES)


def _nodes_of(specs: Mapping[str, str]) -> int:
    value = specs.get(_NUMA_NODES, '1')
    return int(value) if value.isdecimal() and int(value) else 1


def _without_keys(
    boot_request: request.BootRequest,
) -> Iterator[Change]:
    specs = boot_request.flavor.extra_specs
    for key in specs:
        if key == ALIAS or key.startswith(_HARMLESS):
            continue
        dropped = {key, *(
            other for other in specs for prefix in _DEPENDENT.get(key, ())
            if other.startswith(prefix))}
        yield Change(
            'without ' + ', '.join(sorted(dropped)), _KEY,
            boot_request.with_specs({
                name: value for name, value in specs.items()
                if name not in dropped}), key)


def _without_devices(
    boot_request: request.BootRequest,
) -> Iterator[Change]:
    for alias in _aliases(boot_request):
        yield _change_alias(boot_request, alias, '')


def _aliases(boot_request: request.BootRequest) -> list[str]:
    value = boot_request.flavor.extra_specs.get(ALIAS, '')
    return [alias.strip() for alias in value.split(',') if alias.strip()]


def _change_alias(boot_request: request.BootRequest, alias: str,
                  fewer: str) -> Change:
    specs = dict(boot_request.flavor.extra_specs)
    aliases = _aliases(boot_request)
    aliases[aliases.index(alias)] = fewer
    specs[ALIAS] = ','.join(filter(None, aliases))
    if not specs[ALIAS]:
        del specs[ALIAS]
    text, size = (f'the PCI devices {fewer}', _SMALLER) if fewer else (
        f'without the PCI devices {alias}', _WITHOUT)
    return Change(text, size, boot_request.with_specs(specs), ALIAS)


def _without_others(
    boot_request: request.BootRequest,
) -> Iterator[Change]:
    for network, count in _port_counts(boot_request).items():
        if count == 1:
            yield _fewer_ports(boot_request, network, 1, 1)
    for name in boot_request.image:
        yield Change(
            f'without the image property {name}', _KEY, dataclasses.replace(
                boot_request, image={
                    key: value for key, value
                    in boot_request.image.items() if key != name}),
            f'image {name}')
    if boot_request.zone is not None:
        yield Change('in any availability zone', _WITHOUT,
                     dataclasses.replace(boot_request, zone=None), 'zone')
    if boot_request.group is not None:
        yield Change('outside its server group', _WITHOUT,
                     dataclasses.replace(boot_request, group=None),
                     'group')
    for name in boot_request.hints:
        yield Change(
            f'without the hint {name}', _WITHOUT, dataclasses.replace(
                boot_request, hints={
                    key: value for key, value
                    in boot_request.hints.items() if key != name}),
            f'hint {name}')


def _port_counts(
    boot_request: request.BootRequest,
) -> collections.Counter:
    return collections.Counter(
        network for network, _ in boot_request.ports)


def _fewer_ports(boot_request: request.BootRequest,
                 network: ty.Any, count: int, fewer: int) -> Change:
    """Return a change without the last ``fewer`` of the ports on a network."""
    label = assumed_ports.network_label(network)
    if fewer < count:
        text, size = (f'with {strings.count(fewer, "port")} fewer on {label}',
                      _SMALLER)
    else:
        ports = 'a port' if count == 1 else f'the {count} ports'
        text, size = f'without {ports} on {label}', _WITHOUT
    own = itertools.count()
    return Change(text, size, dataclasses.replace(
        boot_request, ports=tuple([
            port for port in boot_request.ports
            if port[0] != network or next(own) < count - fewer])), 'ports')


def searches(boot_request: request.BootRequest) -> Iterator[Search]:
    """Yield amounts of which a smaller one may fit.

    Less than half of the CPUs or the memory is another server, which nobody
    asked for.
    """
    flavor, specs = (boot_request.flavor,
                     boot_request.flavor.extra_specs)
    nodes = _nodes_of(specs)
    step = nodes * (2 if specs.get('hw:cpu_thread_policy') == 'require'
                    else 1)
    step *= max(-(-flavor.vcpus // (step * _VCPU_STEPS)), 1)
    yield Search([
        Change(strings.count(vcpus, 'vCPU'), _SMALLER,
               boot_request.with_flavor(vcpus=vcpus), 'vcpus')
        for vcpus in range(step, flavor.vcpus, step)
        if 2 * vcpus >= flavor.vcpus
        and _has_topology(vcpus, boot_request)])
    page = (page_kib(specs.get(PAGE_SIZE, '')) or SMALL) / 1024
    step = int(max(page, 64)) * nodes
    count = -(-flavor.memory // step)
    step *= max(-(-count // _STEPS), 1)
    yield Search([
        Change(strings.size(memory * 1024), _SMALLER,
               boot_request.with_flavor(memory=memory), 'memory')
        for memory in range(step, flavor.memory, step)
        if 2 * memory >= flavor.memory])
    yield from _port_searches(boot_request)
    for alias in _aliases(boot_request):
        name, _colon, count = alias.rpartition(':')
        if count.isdecimal() and 1 < int(count) <= _MOST_DEVICES:
            yield Search([
                _change_alias(boot_request, alias, f'{name}:{fewer}')
                for fewer in range(1, int(count))])


def _port_searches(
    boot_request: request.BootRequest,
) -> Iterator[Search]:
    for network, count in _port_counts(boot_request).items():
        if count > 1:
            yield Search([
                _fewer_ports(boot_request, network, count, fewer)
                for fewer in range(count, 0, -1)])


def _has_topology(vcpus: int,
                  boot_request: request.BootRequest) -> bool:
    """Return whether flavor and image allow a virtual CPU topology."""
    counts = []
    for part in ('sockets', 'cores', 'threads'):
        exact = _topology_limit(part, boot_request)
        most = _topology_limit(f'max_{part}', boot_request)
        counts.append([
            count for count in flavors.divisors(vcpus, most or vcpus)
            if exact in (None, count)])
    sockets, cores, threads = counts
    return any(vcpus % (a * b) == 0 and vcpus // (a * b) in threads
               for a in sockets for b in cores)


def _topology_limit(part: str, boot_request: request.BootRequest,
                    ) -> int | None:
    value = boot_request.flavor.extra_specs.get(
        f'hw:cpu_{part}', boot_request.image.get(f'hw_cpu_{part}', ''))
    return int(value) if value.isdecimal() and int(value) else None
