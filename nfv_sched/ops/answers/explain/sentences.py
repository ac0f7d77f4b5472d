# SPDX-License-Identifier: Apache-2.0
"""Write the causes of a refusal as sentences."""

from nfv_sched.base import device_shortage
from nfv_sched.base import reasons
from nfv_sched.base import strings
from nfv_sched.ops.answers.explain import document
from nfv_sched.ops.model.verdicts import values

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
    return f'{_hosts_text(each, hosts)}: {_text(each)}.'


def deployment(each: document.RefusalCause) -> str:
    """Return what helps against a cause that is how hosts are deployed."""
    refusal = _refusal(each)
    change = f'another {refusal.policy}' if (
        refusal.policy_value is not None) else (
            'more guest NUMA nodes (hw:numa_nodes)')
    return ('That is how they are deployed: no smaller flavor and no emptier '
            f'host helps, only {change}, other networks, or hosts with all of '
            'this on one NUMA node.')


def _hosts_text(each: document.RefusalCause, hosts: int) -> str:
    count = each.hosts
    if count == 1:
        prefix = '' if hosts > 1 else 'The only host, '
        return f'{prefix}{each.nearest_host}'
    if count == hosts:
        return 'Both hosts' if hosts == 2 else f'All {hosts} hosts'
    return f'{count} of {hosts} hosts'


def _text(each: document.RefusalCause) -> str:
    match each.kind:
        case 'disabled' | 'down':
            return f'the compute service is {each.kind}'
        case 'unmapped':
            return 'not mapped to a cell'
        case 'reserved':
            return 'reserved by Blazar'
        case 'cut-off':
            return ('[scheduler] max_placement_results leaves them out of the '
                    'answer of Placement')
        case 'placement':
            return _placement(each)
    refusal = _refusal(each)
    match each.kind:
        case 'request':
            return f'the request itself is wrong: {refusal.why}'
        case 'error':
            return f'{refusal.filter} {refusal.why}'
        case 'deployment':
            return f'no NUMA node is{_place_text(each, refusal.lacks)}'
        case 'shortage':
            return _shortage(each, refusal.lacks)
    who = f'{refusal.filter} refuses' + (
        f' for {refusal.key}' if refusal.key else '')
    if not refusal.why:
        return who
    example = f', {each.nearest_host} for example' if each.hosts > 1 else ''
    return f'{who}{example}: {refusal.why}'


def _refusal(each: document.RefusalCause) -> values.HostRefusal:
    assert each.refusal is not None
    return each.refusal


def _shortage(each: document.RefusalCause, shortage: reasons.Shortage) -> str:
    amount, devices = shortage.amount, shortage.devices
    if amount.resource is _Resource.PAGE_SIZE:
        return _refusal(each).why or ''
    need = _amount_text(amount) if devices is None else (
        device_shortage.needs_text(devices.needs, 'free '))
    place = ' on one NUMA node' if shortage.of_node else ''
    beside = ' and '.join(map(_amount_text, shortage.beside))
    if beside:
        beside = f' that also has {beside}' if (
            amount.resource is not _Resource.NUMA_NODES) else (
                f' with {beside}{" each" if amount.needed > 1 else ""}')
    text = f'{need}{place}{_place_text(each, shortage)}{beside} needed'
    if devices is not None:
        nearest = f' on {each.nearest_host}' if each.hosts > 1 else ''
        return (f'{text}{device_shortage.policy_text(devices)}, '
                f'{device_shortage.free_text(devices, nearest, True)}')
    return f'{text}, {_nearest_text(each)} has {shortage.free or "none"}'


def _nearest_text(each: document.RefusalCause) -> str:
    return (f'the nearest host, {each.nearest_host},' if each.hosts > 1
            else 'it')


def _place_text(each: document.RefusalCause,
                shortage: reasons.Shortage) -> str:
    names = ' and '.join(each.physical_networks)
    return reasons.where(
        f'near {names}' if place == reasons.Place.NETWORKS and names else place
        for place in shortage.places)


def _amount_text(amount: reasons.Amount) -> str:
    if amount.resource is _Resource.PCI_DEVICES:
        return strings.count(amount.needed, f'free {amount.noun}')
    noun = _NOUNS[amount.resource].format('free ', amount.noun)
    return f'{amount.needed} ' + (
        noun.removesuffix('s') if amount.needed == 1 else noun)


def _placement(each: document.RefusalCause) -> str:
    lack = each.lack
    need = lack.need
    match need.kind:
        case 'unknown':
            return need.text
        case 'resource':
            (name, amount), = need.resources.items()
            text = f'{amount} {name} needed by Placement'
            if lack.free is None:
                return f'{text}, none has any' if each.hosts > 1 else (
                    f'{text}, it has none')
            if lack.free >= amount:
                return f'{text}, which it does not grant at once'
            return f'{text}, {_nearest_text(each)} has {lack.free}'
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
