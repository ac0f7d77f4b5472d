# SPDX-License-Identifier: Apache-2.0
"""Write the causes of a refusal as sentences."""

from collections.abc import Callable
from collections.abc import Sequence
import typing as ty

from nfv_sched.base import device_shortage
from nfv_sched.base import reasons
from nfv_sched.base import strings
from nfv_sched.ops.answers.explain import document

_Kind = document.CauseKind
_Resource = reasons.Resource
_MIB = 'MiB of '

# Resources on NUMA nodes, after an amount; with a place for "free ".
_NOUNS = {
    _Resource.PAGES: _MIB + '{}memory in pages of {}',
    _Resource.MEMORY: _MIB + '{}memory',
    _Resource.DEDICATED_CPUS: '{}dedicated CPUs',
    _Resource.SHARED_CPUS: 'shared CPUs',
    _Resource.CPU_THREADS: '{}CPUs under the thread policy',
    _Resource.SHARED_VCPUS: '{}shared vCPUs',
    _Resource.MEMORY_RATIO: _MIB + 'memory within the RAM allocation ratio',
    _Resource.NUMA_NODES: 'NUMA nodes',
    _Resource.VSWITCH_PORTS: 'vSwitch ports',
    _Resource.SECURITY_RULES: 'security-group rules',
}


def cause(each: document.RefusalCause, hosts: int) -> str:
    """Return a cause as a sentence; ``hosts`` is the number of all."""
    return f'{_hosts_text(each, hosts)}: {_TEXTS[each.kind](each)}.'


def deployment(each: document.RefusalCause) -> str:
    """Return what helps against a cause that is how hosts are deployed."""
    assert each.refusal is not None
    change = f'another {each.refusal.policy}' if (
        each.refusal.policy_value is not None) else (
            'more guest NUMA nodes (hw:numa_nodes)')
    return ('That is how they are deployed: no smaller flavor and no emptier '
            f'host helps, only {change}, other networks, or hosts with all of '
            'this on one NUMA node.')


def step(
    kind: document.StepKind, *, command: Sequence[str] = (),
    host: str | None = None, like: Sequence[str] = (),
    lacks: Sequence[str] = (), moves: int | None = None,
) -> document.HelpfulStep:
    return document.HelpfulStep(
        text=_step_text(kind, host, like, lacks, moves or 0),
        kind=ty.cast(ty.Any, kind), command=tuple(command), host=host,
        like=tuple(like), lacks=tuple(lacks), moves=moves)


def _step_text(kind: document.StepKind, host: str | None, like: Sequence[str],
               lacks: Sequence[str], moves: int) -> str:
    """Return what a step is good for, as a sentence without its end."""
    match kind:
        case document.StepKind.ENABLE:
            return f'{host} would take it, but is disabled'
        case document.StepKind.MAP:
            return f'{host} would take it, but is not mapped to its cell'
        case document.StepKind.DEFRAG:
            return (f'{strings.count(moves, "live migration")} of other '
                    'servers would make room')
        case document.StepKind.SERVERS:
            return 'the smallest server in the way on each host'
        case document.StepKind.ADD_HOST:
            names = ' and '.join(dict.fromkeys(like))
            hosts = 'a host' if len(like) == 1 else (
                f'{len(like)} hosts')
            return f'Add {hosts} like {names}'
        case document.StepKind.LARGER_HOST:
            hosts = 'a larger host' if len(like) == 1 else (
                f'{len(like)} larger hosts')
            return (f'Add {hosts}: {like[0]} does not suffice, '
                    f'even if it is empty: {"; ".join(lacks)}')
    return ''


def _hosts_text(each: document.RefusalCause, hosts: int) -> str:
    count = each.hosts
    if count == 1:
        prefix = '' if hosts > 1 else 'The only host, '
        return f'{prefix}{each.nearest_host}'
    if count == hosts:
        return 'Both hosts' if hosts == 2 else f'All {hosts} hosts'
    return f'{count} of {hosts} hosts'


def _shortage(each: document.RefusalCause) -> str:
    shortage = _shortage_of(each)
    if shortage.amount.resource is _Resource.PAGE_SIZE and each.refusal:
        return each.refusal.why
    devices = shortage.devices
    need = _amount_text(
        shortage.amount, shortage.amount.needed) if devices is None else (
            device_shortage.needs_text(devices.needs, 'free '))
    place = ' on one NUMA node' if shortage.of_node else ''
    text = f'{need}{place}{_place_text(each)}{_beside_text(each)}'
    if devices is not None:
        nearest = f' on {each.nearest_host}' if each.hosts > 1 else ''
        return (f'{text} needed{device_shortage.policy_text(devices)}, '
                f'{device_shortage.free_text(devices, nearest, True)}')
    has = f'has {shortage.free}' if shortage.free else 'has none'
    return f'{text} needed, {_nearest_text(each)} {has}'


def _beside_text(each: document.RefusalCause) -> str:
    shortage = _shortage_of(each)
    beside = ' and '.join(_amount_text(amount, amount.needed)
                          for amount in shortage.beside)
    if not beside:
        return ''
    if shortage.amount.resource is not _Resource.NUMA_NODES:
        return f' that also has {beside}'
    return f' with {beside}{" each" if shortage.amount.needed > 1 else ""}'


def _nearest_text(each: document.RefusalCause) -> str:
    return (f'the nearest host, {each.nearest_host},' if each.hosts > 1
            else 'it')


def _deployment(each: document.RefusalCause) -> str:
    return f'no NUMA node is{_place_text(each)}'


def _shortage_of(each: document.RefusalCause) -> reasons.Shortage:
    assert each.refusal is not None and each.refusal.lacks is not None
    return each.refusal.lacks


def _place_text(each: document.RefusalCause) -> str:
    names = ' and '.join(each.physical_networks)
    return reasons.where(
        f'near {names}' if place == reasons.Place.NETWORKS and names else place
        for place in _shortage_of(each).places)


def _amount_text(
    amount: reasons.Amount, number: int, free: str = 'free ',
) -> str:
    if amount.resource is _Resource.PCI_DEVICES:
        return strings.count(number, f'{free}{amount.noun}')
    noun = _NOUNS[amount.resource].format(free, amount.noun)
    if number == 1 and noun.endswith('s'):
        noun = noun.removesuffix('s')
    return f'{number} {noun}'


def _placement(each: document.RefusalCause) -> str:
    lack = each.lack
    assert lack is not None
    need = lack.need
    if need.kind == 'unknown':
        return need.text
    if need.kind == 'resource':
        (name, amount), = need.resources.items()
        text = f'{amount} {name} needed by Placement'
        if lack.free is None:
            return f'{text}, none has any' if each.hosts > 1 else (
                f'{text}, it has none')
        if lack.free >= amount:
            return f'{text}, which it does not grant at once'
        return f'{text}, {_nearest_text(each)} has {lack.free}'
    match need.kind:
        case 'trait':
            return f'no trait {need.traits[0]}'
        case 'forbidden_trait':
            return f'the trait {need.traits[0]}, which is forbidden'
        case 'aggregate':
            return f'not in aggregate {" or ".join(need.aggregates)}'
        case 'forbidden_aggregate':
            return f'in aggregate {" or ".join(need.aggregates)}'
        case 'tree':
            return f'not host {need.host}'
    return lack.text or need.text


def _filter(each: document.RefusalCause) -> str:
    refusal = each.refusal
    assert refusal is not None
    who = f'{refusal.filter} refuses'
    if refusal.key:
        who += f' for {refusal.key}'
    if not refusal.why:
        return who
    if each.hosts == 1:
        return f'{who}: {refusal.why}'
    return f'{who}, {each.nearest_host} for example: {refusal.why}'


def _request(each: document.RefusalCause) -> str:
    assert each.refusal is not None
    return f'the request itself is wrong: {each.refusal.why}'


def _error(each: document.RefusalCause) -> str:
    assert each.refusal is not None
    return f'{each.refusal.filter} {each.refusal.why}'


def _constant(text: str) -> Callable[[document.RefusalCause], str]:
    return lambda each: text


_TEXTS: dict[document.CauseKind, Callable[[document.RefusalCause], str]] = {
    _Kind.DISABLED: _constant('the compute service is disabled'),
    _Kind.DOWN: _constant('the compute service is down'),
    _Kind.UNMAPPED: _constant('not mapped to a cell'),
    _Kind.RESERVED: _constant('reserved by Blazar'),
    _Kind.REQUEST: _request,
    _Kind.CUT: _constant(
        '[scheduler] max_placement_results leaves them out of the answer of '
        'Placement'),
    _Kind.PLACEMENT: _placement,
    _Kind.DEPLOYMENT: _deployment,
    _Kind.SHORTAGE: _shortage,
    _Kind.FILTER: _filter,
    _Kind.ERROR: _error,
}
