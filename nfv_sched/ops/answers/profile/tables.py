# SPDX-License-Identifier: Apache-2.0
"""Format a profile as tables for people, and rows for scripts."""

from collections.abc import Iterable, Iterator, Sequence
import typing as ty

from nfv_sched.base import cpu_spec
from nfv_sched.base import strings
from nfv_sched.ops.answers.profile import check
from nfv_sched.ops.answers.profile import choices
from nfv_sched.ops.answers.profile import configuration
from nfv_sched.ops.answers.profile import cpus
from nfv_sched.ops.answers.profile import document
from nfv_sched.ops.cli import tables

COLUMNS = ('Function', 'Node', 'CPUs', 'Memory kept MiB', 'Pages')
CHECK_COLUMNS = ('Option', 'Has', 'Should have')
_NONE = '-'
_NOT_SET = 'not set'


def text(profile: document.Profile) -> list[tables.Part]:
    return [tables.Table(
        ('', *(f'Node {node.node}' for node in profile.numa_nodes)),
        list(_by_node(profile)), is_main=False), '', *_settings(profile),
        *_lines(profile.warnings)]


def _lines(warnings: Iterable[document.ProfileWarning]) -> list[tables.Part]:
    return [part for each in warnings for part in (
        '', tables.Line(f'Warning: {each}', tables.MEDIUM))]


def _by_node(profile: document.Profile) -> Iterator[Sequence[str]]:
    for function in cpus.FUNCTIONS:
        if profile.cpus(function):
            yield (_function(function), *(
                cpu_spec.to_text(node.cpus[function]) or _NONE
                for node in profile.numa_nodes))
    yield ('memory kept', *(strings.size(node.kept_memory_mib * 1024)
                            for node in profile.numa_nodes))
    for size in profile.page_sizes:
        yield (f'{choices.PAGE_NAMES[size]} pages', *(
            _pages(node, size) for node in profile.numa_nodes))


def _function(function: str) -> str:
    # As everywhere for people; the JSON document has "guests".
    return 'servers' if function == cpus.GUESTS else function


def _pages(node: document.ProfileNode, size: int) -> str:
    text = str(node.page_count(size))
    for pages in node.pages:
        if pages.size_kib == size and pages.switch:
            text += f', {pages.switch} of them for the switch'
    return text


def _settings(profile: document.Profile) -> Iterator[str]:
    nova = profile.nova
    for section in ('compute', 'pci'):
        for line in configuration.lines(nova, section):
            yield f'[{section}] {line}'
    yield from configuration.lines(nova, 'DEFAULT')
    options = profile.ovs_other_config
    for name in ('pmd-cpu-mask', 'dpdk-socket-mem'):
        if name in options:
            yield f'{name} = {options[name]}'
    yield 'labels: ' + ', '.join(
        f'{name} = {",".join(map(str, nodes))}'
        for name, nodes in nova.physnets.items())
    for nic, vfs in profile.vf_counts.items():
        yield f'VFs of {nic} = {vfs}'
    if profile.servers_by_memory is not None:
        yield (f'servers by memory: {profile.servers_by_memory}' + (
            f'; vCPUs on shared CPUs: {profile.server_vcpus}'
            if nova.cpu_shared_set else ''))


def rows(profile: document.Profile) -> list[Sequence[ty.Any]]:
    rows = []
    for node in profile.numa_nodes:
        memory = {cpus.PLATFORM: node.kept_memory_mib or ''}
        pages = {cpus.GUESTS: ' '.join(
            f'{choices.PAGE_NAMES[each.size_kib]}:{each.servers}'
            for each in node.pages)}
        for function in cpus.FUNCTIONS:
            cells = (cpu_spec.to_text(node.cpus[function]),
                     memory.get(function, ''), pages.get(function, ''))
            if any(cells):
                rows.append((_function(function), node.node, *cells))
    return rows


def check_text(compared: check.OptionDifferences) -> list[tables.Part]:
    parts: list[tables.Part] = [tables.Line(sentence, tables.BAD)
                                for sentence in start_errors(compared)]
    if compared.differences:
        parts.append(tables.Table(CHECK_COLUMNS, check_rows(compared)))
    elif compared.compares and not parts:
        parts.append('nova.conf is as the profile has it.')
    if compared.powered_down:
        parts.append(powered_down(compared))
    return [*parts, *_lines(compared.warnings)]


def start_errors(compared: check.OptionDifferences) -> list[str]:
    return [('nova-compute does not report this host: ' if each.starts else
             'nova-compute does not start: ') + each.reason
            for each in compared.start_errors]


def powered_down(compared: check.OptionDifferences) -> str:
    cpus = cpu_spec.to_text(compared.powered_down)
    return (
        f'Nova has switched off CPU {cpus} ([libvirt] cpu_power_management), '
        + ('which count as there.' if compared.compares else
           'whose cores are not known, so nothing is compared: give facts '
           'from when these CPUs were on.'))


def check_rows(compared: check.OptionDifferences) -> list[Sequence[str]]:
    return [(
        each.option if each.section == 'DEFAULT' and each.belongs is None
        else f'[{each.section}] {each.option}', each.has or _NOT_SET,
        f'{_NOT_SET}; Nova reads it in [{each.belongs}]' if each.belongs
        else each.should_have or _NOT_SET) for each in compared.differences]
