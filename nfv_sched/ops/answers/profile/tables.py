# SPDX-License-Identifier: Apache-2.0
"""Format a profile as tables for people, and rows for scripts."""

from collections.abc import Iterator
from collections.abc import Sequence
import typing as ty

from nfv_sched.base import cpu_spec
from nfv_sched.ops.answers.profile import check
from nfv_sched.ops.answers.profile import choices
from nfv_sched.ops.answers.profile import configuration
from nfv_sched.ops.answers.profile import cpus
from nfv_sched.ops.answers.profile import derivation as profiles
from nfv_sched.ops.cli import tables

COLUMNS = ('Function', 'Node', 'CPUs', 'Memory kept MiB', 'Pages')
CHECK_COLUMNS = ('Option', 'Has', 'Should have')
_NONE = '-'
_NOT_SET = 'not set'


def text(profile: profiles.HostProfile) -> list[tables.Part]:
    """Return a profile for people."""
    nodes = [node.number for node in profile.nodes]
    parts: list[tables.Part] = [
        tables.Table(('', *(f'Node {number}' for number in nodes)),
                     list(_by_node(profile)), is_main=False),
        '', *_settings(profile)]
    for warning in profile.warnings:
        parts += ['', tables.Line(
            f'Warning: {warning.text}. Do: {warning.do}.', tables.MEDIUM)]
    return parts


def _by_node(profile: profiles.HostProfile) -> Iterator[Sequence[str]]:
    for function in cpus.FUNCTIONS:
        if profile.cpus(function):
            yield (_function(function), *(
                cpu_spec.to_text(node.cpus[function]) or _NONE
                for node in profile.nodes))
    yield ('memory kept', *(_mib(node.memory.kept)
                            for node in profile.nodes))
    for size in profile.page_sizes:
        yield (f'{choices.PAGE_NAMES[size]} pages', *(
            _pages(node.memory.pages.get(size, 0),
                   node.memory.reserved.get(size, 0))
            for node in profile.nodes))


def _function(function: str) -> str:
    # As everywhere for people; the JSON document has "guests".
    return 'servers' if function == cpus.GUESTS else function


def _mib(number: int) -> str:
    return f'{number} MiB' if number % 1024 else f'{number // 1024} GiB'


def _pages(count: int, reserved: int) -> str:
    if not reserved:
        return str(count)
    return f'{count}, {reserved} of them for the switch'


def _settings(profile: profiles.HostProfile) -> Iterator[str]:
    """Yield the settings of Nova and OVS-DPDK, a line each."""
    settings = profile.settings
    for name, numbers in (('cpu_shared_set', settings.shared),
                          ('cpu_dedicated_set', settings.dedicated)):
        if numbers:
            yield f'[compute] {name} = {cpu_spec.to_text(numbers)}'
    yield f'reserved_host_memory_mb = {settings.reserved_memory}'
    for value in check.reserved_pages(settings.reserved_pages):
        yield f'reserved_huge_pages = {value}'
    if settings.cpu_ratio is not None:
        yield f'cpu_allocation_ratio = {check.ratio(settings.cpu_ratio)}'
    options = configuration.ovs_options(profile)
    for name in ('pmd-cpu-mask', 'dpdk-socket-mem'):
        if name in options:
            yield f'{name} = {options[name]}'
    yield 'labels: ' + ', '.join(
        f'{name} = {",".join(map(str, sorted(nodes)))}'
        for name, nodes in settings.physnets.items())
    ceph = profile.ceph
    if ceph.guests is not None:
        yield (f'servers by memory: {ceph.guests}' + (
            f'; vCPUs on shared CPUs: {ceph.vcpus}'
            if settings.shared else ''))


def rows(profile: profiles.HostProfile) -> list[Sequence[ty.Any]]:
    """Return a row for each function and NUMA node with CPUs or memory."""
    rows = []
    for node in profile.nodes:
        for function in cpus.FUNCTIONS:
            numbers = cpu_spec.to_text(node.cpus[function])
            memory = (node.memory.kept or '') if (
                function == cpus.PLATFORM) else ''
            pages = ' '.join(
                f'{choices.PAGE_NAMES[size]}:{node.memory.guest_pages(size)}'
                for size in sorted(node.memory.pages)) if (
                    function == cpus.GUESTS) else ''
            if numbers or memory or pages:
                rows.append((_function(function), node.number, numbers, memory,
                             pages))
    return rows


def check_text(compared: check.OptionDifferences) -> list[tables.Part]:
    """Return what --check finds, for people."""
    parts: list[tables.Part] = [tables.Line(sentence, tables.BAD)
                                for sentence in start_errors(compared)]
    if compared.differences:
        parts.append(tables.Table(CHECK_COLUMNS, check_rows(compared)))
    elif compared.compares and not parts:
        parts.append('nova.conf is as the profile has it.')
    if compared.powered_down:
        parts.append(powered_down(compared))
    return parts


def start_errors(compared: check.OptionDifferences) -> list[str]:
    """Return a sentence for each error of nova-compute."""
    return [('nova-compute does not report this host: ' if each.starts else
             'nova-compute does not start: ') + each.reason
            for each in compared.start_errors]


def powered_down(compared: check.OptionDifferences) -> str:
    """Return the sentence about CPUs that Nova has switched off."""
    cpus = cpu_spec.to_text(compared.powered_down)
    return (
        f'Nova has switched off CPU {cpus} ([libvirt] cpu_power_management), '
        + ('which count as there.' if compared.compares else
           'whose cores are not known, so nothing is compared: give facts '
           'from when these CPUs were on.'))


def check_rows(compared: check.OptionDifferences) -> list[Sequence[str]]:
    """Return a row for each difference."""
    return [(
        each.option if each.section == 'DEFAULT' and each.belongs is None
        else f'[{each.section}] {each.option}', each.has or _NOT_SET,
        f'{_NOT_SET}; Nova reads it in [{each.belongs}]' if each.belongs
        else each.should_have or _NOT_SET) for each in compared.differences]
