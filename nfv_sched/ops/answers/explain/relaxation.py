# SPDX-License-Identifier: Apache-2.0
"""Try changes of a request, one or two, to find those with which it fits."""

import collections
from collections.abc import Callable, Iterator, Mapping, Sequence
import contextlib
import dataclasses
import functools
import itertools
import time
import typing as ty

import os_traits
from oslo_utils import strutils

from nfv_sched.base import strings
from nfv_sched.nova import flavors
from nfv_sched.ops.answers.explain import document
from nfv_sched.ops.answers.explain import scheduling
from nfv_sched.ops.model.requests import assumed_ports
from nfv_sched.ops.simulator import request
from nfv_sched.ops.simulator import state as states

# Sizes of changes, the smallest first.
_PREFER, _HOST, _PAGES, _NODES, _SMALLER, _KEY, _WITHOUT = range(7)
FLAVOR = 100  #: size of another flavor: more than that of any pair

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
_SMALL = 4  # KiB of a small page
_PAGE_SIZE = 'hw:mem_page_size'
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
_MOST_FLAVORS = 5
# Each trial runs the scheduler over all hosts, half a second for a thousand.
# So pairs end after this part of the time, or if so many make it fit.
_PAIRS_TIME = 0.25
_MOST_PAIRS = 3


class Change(ty.NamedTuple):
    text: str
    size: int  #: rank of its size, the smallest first
    requested: request.BootRequest
    #: extra spec, or another part of the request, that changes; two changes of
    #: one do not go together
    subject: str
    enabled: tuple[str, ...] = ()  #: names of hosts that are enabled for it


#: A change, or those of one amount, the smallest first, of which the largest
#: that fits is looked for.
Changes = Sequence[Change]


@dataclasses.dataclass(slots=True)
class Trials:
    """The changes that were tried, and those with which it fits."""

    state: states.State  #: the cloud
    fitting: list[document.HelpfulChange] = dataclasses.field(
        default_factory=list)
    tried: int = 0  #: number of trials
    untried: int = 0  #: number of changes for which there was no time

    @property
    def changes(self) -> tuple[document.HelpfulChange, ...]:
        """The changes that fit, the best first, and other flavors last."""
        return tuple(sorted(self.fitting, key=lambda change: (
            (1,) if change.size == FLAVOR
            else (0, -change.hosts, change.size))))

    def find_largest(self, several: Changes, ends: float) -> bool:
        """Bisect for the largest that fits; return whether there is one."""
        largest = None
        low, high = 0, len(several)
        while low < high:
            if time.monotonic() >= ends:
                self.untried += 1
                break
            self.tried += 1
            middle = (low + high) // 2
            if (helpful := _try(self.state, several[middle])) is None:
                high = middle
            else:
                low, largest = middle + 1, helpful
        if largest is not None:
            self.fitting.append(largest)
        return largest is not None


def relax(state: states.State, boot_request: request.BootRequest,
          seconds: float, progress: Callable[[int, int], None]) -> Trials:
    """Try changes of a request that does not fit, in pairs if none helps.

    :param state: the cloud; restored afterwards
    :param seconds: time after which no trial begins
    :param progress: called with (changes done, all changes)
    """
    ends = time.monotonic() + seconds
    todo = list(changes(state, boot_request))
    trials = Trials(state)
    for number, item in enumerate(todo):
        progress(number, len(todo))
        trials.find_largest(item, ends)
    # Pairs only if no single change helps: there are hundreds of them.
    if not trials.fitting:
        ends = min(ends, time.monotonic() + _PAIRS_TIME * seconds)
        helped: set[str] = set()
        todo = pairs(state, boot_request)
        for number, pair in enumerate(todo):
            if len(helped) == _MOST_PAIRS:
                break
            progress(number, len(todo))
            subject = pair[0].subject
            if subject not in helped and trials.find_largest(pair, ends):
                helped.add(subject)
    for each in _flavors(state, boot_request):
        trials.find_largest([each], ends)
    progress(len(todo), len(todo))
    return trials


def _flavors(state: states.State,
             requested: request.BootRequest) -> Iterator[Change]:
    """Yield the largest flavors of the cloud that are no larger."""
    own = requested.flavor
    smaller = [each for each in state.flavors.values()
               if each.public and not each.disabled and each.name != own.name
               and each.vcpus <= own.vcpus and each.memory <= own.memory
               and each.disk <= own.disk]
    for each in sorted(smaller, key=lambda each: (
            -each.vcpus, -each.memory, each.name))[:_MOST_FLAVORS]:
        yield Change(f'flavor {each.name}', FLAVOR, dataclasses.replace(
            requested, flavor=each), 'flavor')


def pairs(state: states.State,
          boot_request: request.BootRequest) -> list[Changes]:
    """Return the pairs of changes that are worth trying, the smallest first.

    Not two that each take away a part of it: that is another server.
    """
    both: dict[frozenset[str], Changes] = {}
    # None is searched for twice: of many ports, none is left.
    for first in (*_single_changes(state, boot_request),
                  *(search[0] for search in _port_searches(boot_request))):
        for second in changes(state, first.requested):
            joined = [Change(
                f'{first.text} and {each.text}', first.size + each.size,
                each.requested,
                ' and '.join(sorted((first.subject, each.subject))),
                first.enabled + each.enabled)
                for each in second if each.subject != first.subject]
            if joined and not first.size == second[0].size == _WITHOUT:
                both.setdefault(
                    frozenset({first.text, second[-1].text}), joined)
    return sorted(both.values(), key=lambda pair: pair[0].size)


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
        host=result.places[0].host, requested=change.requested,
        size=change.size)


@contextlib.contextmanager
def _enable_hosts(state: states.State, names: Sequence[str]) -> Iterator[None]:
    """Have some hosts enabled, mapped and up in this context."""
    with contextlib.ExitStack() as stack:
        for name in names:
            host = state.hosts[name]
            traits = state.placement.providers[host.uuid].traits
            stack.callback(state.placement.change, host.uuid, traits=traits)
            stack.callback(setattr, host, 'record', host.record)
            stack.callback(setattr, host, 'down', host.down)
            # Nova looks twice: its query to Placement forbids the trait
            # COMPUTE_STATUS_DISABLED, and ComputeFilter reads the service.
            host.record = dataclasses.replace(
                host.record, enabled=True, mapped=True)
            host.down = False
            state.placement.change(
                host.uuid, traits=traits - {os_traits.COMPUTE_STATUS_DISABLED})
        yield


def changes(state: states.State,
            boot_request: request.BootRequest) -> Iterator[Changes]:
    for each in _single_changes(state, boot_request):
        yield [each]
    yield from searches(boot_request)


def _single_changes(state: states.State,
                    requested: request.BootRequest) -> Iterator[Change]:
    specs = requested.flavor.extra_specs
    for key, lenient in lenient_values(specs):
        yield Change(f'{key}={lenient}', _PREFER,
                     requested.with_specs({**specs, key: lenient}), key)
    yield from _hosts(state, requested)
    yield from _page_sizes(state, requested)
    yield from _numa_nodes(state, requested)
    for key in specs:
        if key != ALIAS and not key.startswith(_HARMLESS):
            dropped = sorted({key, *(
                other for other in specs
                if other.startswith(_DEPENDENT.get(key, ())))})
            yield Change('without ' + ', '.join(dropped), _KEY,
                         requested.with_specs(_without(specs, *dropped)), key)
    for alias in _aliases(requested):
        yield _change_alias(requested, alias, '')
    for network, count in _port_counts(requested).items():
        if count == 1:
            yield _fewer_ports(requested, network, 1, 1)
    replace = functools.partial(dataclasses.replace, requested)
    for name in requested.image:
        yield Change(f'without the image property {name}', _KEY, replace(
            image=_without(requested.image, name)), f'image {name}')
    if requested.zone is not None:
        yield Change('in any availability zone', _WITHOUT,
                     replace(zone=None), 'zone')
    if requested.group is not None:
        yield Change('outside its server group', _WITHOUT,
                     replace(group=None), 'group')
    for name in requested.hints:
        yield Change(f'without the hint {name}', _WITHOUT, replace(
            hints=_without(requested.hints, name)), f'hint {name}')


def lenient_values(specs: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield extra specs that insist: (key, most lenient value)."""
    for key, value in specs.items():
        lenient = _LENIENT.get(key)
        if lenient is None and key.startswith(('nfv:', 'hw:wrs:')) and (
                value == 'strict'):
            lenient = 'prefer'
        if lenient is not None and value != lenient:
            yield key, lenient


def _hosts(state: states.State,
           requested: request.BootRequest) -> Iterator[Change]:
    closed = [name for name, host in state.hosts.items()
              if host.down or not (host.record.enabled and host.record.mapped)]
    repaired = [(name, [name]) for name in closed[:_DISABLED_HOSTS]]
    if len(closed) > 1:
        repaired.append((f'all {len(closed)} disabled hosts', closed))
    for title, names in repaired:
        hosts = [state.hosts[name] for name in names]
        repairs = []
        if any(host.down or not host.record.enabled for host in hosts):
            repairs.append('enabled and up')
        if not all(host.record.mapped for host in hosts):
            repairs.append('mapped (nova-manage cell_v2 discover_hosts)')
        yield Change(f'{title} {", ".join(repairs)}', _HOST, requested,
                     'hosts', tuple(names))


def _page_sizes(state: states.State,
                requested: request.BootRequest) -> Iterator[Change]:
    specs = requested.flavor.extra_specs
    if _PAGE_SIZE not in specs:
        return
    # A size that no host has could only be refused.
    sizes = {_SMALL, *(pages.size for host in state.hosts.values()
                       for node in host.record.nodes or ()
                       for pages in node.pages)}
    for size in sorted(sizes - {_page_kib(specs[_PAGE_SIZE])}):
        text = _PAGE_TEXTS.get(size, str(size))
        yield Change(f'{_PAGE_SIZE}={text}', _PAGES,
                     requested.with_specs({**specs, _PAGE_SIZE: text}),
                     _PAGE_SIZE)


def _page_kib(value: str) -> int | None:
    """Return the page size of an extra spec in KiB; None without a size."""
    for size, text in _PAGE_TEXTS.items():
        if value.lower() == text.lower():
            return size
    try:
        return int(value) if value.isdecimal() else (
            strutils.string_to_bytes(value, return_int=True) // 1024)
    except ValueError:
        return None


def _numa_nodes(state: states.State,
                requested: request.BootRequest) -> Iterator[Change]:
    flavor, specs = requested.flavor, requested.flavor.extra_specs
    # A guest without such keys has no NUMA topology and may use the whole
    # host; a number of NUMA nodes could only restrict it.
    if not any(key.startswith('hw:') for key in specs):
        return
    most = max((len(host.record.nodes or ()) for host in state.hosts.values()),
               default=0)
    # These extra specs name the guest NUMA nodes that change.
    dropped = sorted(key for key in specs
                     if key.startswith(_DEPENDENT[_NUMA_NODES]))
    other_specs = _without(specs, *dropped)
    without = f", without {', '.join(dropped)}" if dropped else ''
    for nodes in range(1, min(most, flavor.vcpus, _MOST_NODES) + 1):
        # Nova divides nothing with a remainder: without hw:numa_cpus.N and
        # hw:numa_mem.N it refuses such flavors (ImageNUMATopologyAsymmetric).
        if nodes != _node_count(specs) and not (
                flavor.vcpus % nodes or flavor.memory % nodes):
            yield Change(
                f'{_NUMA_NODES}={nodes}{without}', _NODES,
                requested.with_specs(
                    {**other_specs, _NUMA_NODES: str(nodes)}), _NUMA_NODES)


def _node_count(specs: Mapping[str, str]) -> int:
    return _positive(specs.get(_NUMA_NODES, '')) or 1


def _without(items: Mapping[str, ty.Any], *keys: str) -> dict[str, ty.Any]:
    return {key: value for key, value in items.items() if key not in keys}


def _aliases(requested: request.BootRequest) -> list[str]:
    value = requested.flavor.extra_specs.get(ALIAS, '')
    return [alias.strip() for alias in value.split(',') if alias.strip()]


def _change_alias(requested: request.BootRequest, alias: str,
                  fewer: str) -> Change:
    aliases = _aliases(requested)
    aliases[aliases.index(alias)] = fewer
    rest = ','.join(filter(None, aliases))
    specs = _without(requested.flavor.extra_specs, ALIAS) | (
        {ALIAS: rest} if rest else {})
    text, size = (f'the PCI devices {fewer}', _SMALLER) if fewer else (
        f'without the PCI devices {alias}', _WITHOUT)
    return Change(text, size, requested.with_specs(specs), ALIAS)


def _port_counts(requested: request.BootRequest) -> collections.Counter:
    return collections.Counter(network for network, _groups in requested.ports)


def _fewer_ports(requested: request.BootRequest, network: ty.Any, count: int,
                 fewer: int) -> Change:
    label = assumed_ports.network_label(network)
    if fewer < count:
        text, size = (f'with {strings.count(fewer, "port")} fewer on {label}',
                      _SMALLER)
    else:
        ports = 'a port' if count == 1 else f'the {count} ports'
        text, size = f'without {ports} on {label}', _WITHOUT
    own = itertools.count()
    return Change(text, size, dataclasses.replace(requested, ports=tuple([
        port for port in requested.ports
        if port[0] != network or next(own) < count - fewer])), 'ports')


def searches(requested: request.BootRequest) -> Iterator[Changes]:
    """Yield amounts of which a smaller one may fit.

    Less than half of the CPUs or the memory is another server, which nobody
    asked for.
    """
    flavor, specs = requested.flavor, requested.flavor.extra_specs
    nodes = _node_count(specs)
    step = nodes * (2 if specs.get('hw:cpu_thread_policy') == 'require' else 1)
    yield [
        Change(strings.count(vcpus, 'vCPU'), _SMALLER,
               requested.with_flavor(vcpus=vcpus), 'vcpus')
        for vcpus in _smaller(flavor.vcpus, step, _VCPU_STEPS)
        if _has_topology(vcpus, requested)]
    page = (_page_kib(specs.get(_PAGE_SIZE, '')) or _SMALL) / 1024
    yield [
        Change(strings.size(memory * 1024), _SMALLER,
               requested.with_flavor(memory=memory), 'memory')
        for memory in _smaller(flavor.memory, int(max(page, 64)) * nodes,
                               _STEPS)]
    yield from _port_searches(requested)
    for alias in _aliases(requested):
        name, _colon, count = alias.rpartition(':')
        number = _positive(count) or 0
        if 1 < number <= _MOST_DEVICES:
            yield [_change_alias(requested, alias, f'{name}:{fewer}')
                   for fewer in range(1, number)]


def _port_searches(requested: request.BootRequest) -> Iterator[Changes]:
    for network, count in _port_counts(requested).items():
        if count > 1:
            yield [_fewer_ports(requested, network, count, fewer)
                   for fewer in range(count, 0, -1)]


def _smaller(amount: int, step: int, most: int) -> Iterator[int]:
    """Yield at most ``most`` amounts that are half of one at least."""
    step *= max(-(-amount // (step * most)), 1)
    return (each for each in range(step, amount, step) if 2 * each >= amount)


def _has_topology(vcpus: int, requested: request.BootRequest) -> bool:
    def limit(part: str) -> int | None:
        return _positive(requested.flavor.extra_specs.get(
            f'hw:cpu_{part}', requested.image.get(f'hw_cpu_{part}', '')))

    sockets, cores, threads = [
        [count for count in flavors.divisors(
            vcpus, limit(f'max_{part}') or vcpus)
         if limit(part) in (None, count)]
        for part in ('sockets', 'cores', 'threads')]
    return any(vcpus % (a * b) == 0 and vcpus // (a * b) in threads
               for a in sockets for b in cores)


def _positive(text: str) -> int | None:
    return (int(text) or None) if (
        text.isdecimal() and len(text) < 20) else None
