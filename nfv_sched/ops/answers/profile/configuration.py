# SPDX-License-Identifier: Apache-2.0
"""Format a profile for nova.conf, kernel, tuned, OVS-DPDK and Ansible."""

from collections.abc import Iterable
from collections.abc import Iterator
import typing as ty

from nfv_sched.base import cpu_spec
from nfv_sched.ops.answers.profile import check
from nfv_sched.ops.answers.profile import choices
from nfv_sched.ops.answers.profile import cpus
from nfv_sched.ops.answers.profile import derivation as profiles


def mask(numbers: Iterable[int]) -> str:
    """Return CPUs as a hexadecimal mask, such as ``0x6``."""
    return hex(sum(1 << number for number in set(numbers)))


def nova_conf(profile: profiles.HostProfile) -> str:
    """Return the sections of nova.conf."""
    return ''.join(f'{line}\n' for line in _nova_conf(profile))


def _nova_conf(profile: profiles.HostProfile) -> Iterator[str]:
    settings = profile.settings
    yield '[DEFAULT]'
    yield '# What Placement keeps from servers, with the pages of the switch.'
    yield f'reserved_host_memory_mb = {settings.reserved_memory}'
    for value in check.reserved_pages(settings.reserved_pages):
        yield f'reserved_huge_pages = {value}'
    if settings.cpu_ratio is not None:
        yield f'cpu_allocation_ratio = {check.ratio(settings.cpu_ratio)}'
    yield ''
    yield '[compute]'
    for name, numbers in (('cpu_shared_set', settings.shared),
                          ('cpu_dedicated_set', settings.dedicated)):
        if numbers:
            yield f'{name} = {cpu_spec.to_text(numbers)}'
    yield ''
    yield '[neutron]'
    yield '# Add the physical networks that are there already.'
    yield f'physnets = {",".join(settings.physnets)}'
    for name, nodes in settings.physnets.items():
        yield ''
        yield f'[neutron_physnet_{name}]'
        yield f'numa_nodes = {_numbers(nodes)}'


def _numbers(numbers: Iterable[int]) -> str:
    return ','.join(map(str, sorted(numbers)))


def pages(profile: profiles.HostProfile, size: int) -> dict[int, int]:
    """Return the huge pages of a size in KiB by NUMA node, without zeros."""
    return {node.number: count for node in profile.nodes
            if (count := node.memory.pages.get(size, 0))}


def kernel_arguments(profile: profiles.HostProfile) -> list[str]:
    """Return the arguments of the kernel.

    The kernel spreads a plain number of pages evenly over all NUMA nodes with
    memory; numbers for each node need Linux 5.16.
    """
    arguments = []
    for size in profile.page_sizes:
        name = choices.PAGE_NAMES[size]
        if not arguments:
            # TripleO wrote 1GB.
            arguments.append(f'default_hugepagesz={name}' + (
                'B' if name == '1G' else ''))
        arguments += [f'hugepagesz={name}',
                      f'hugepages={_page_count(profile, size)}']
    if profile.vendor == 'intel':
        arguments.append('intel_iommu=on')
    arguments.append('iommu=pt')
    if profile.isolated:
        isolated = cpu_spec.to_text(profile.isolated)
        arguments += [f'isolcpus={isolated}', f'nohz_full={isolated}',
                      f'rcu_nocbs={isolated}']
    return arguments


def _page_count(profile: profiles.HostProfile, size: int) -> str:
    counts = pages(profile, size)
    if is_even(profile, size):
        return str(sum(counts.values()))
    return ','.join(f'{node}:{count}' for node, count in counts.items())


def is_even(profile: profiles.HostProfile, size: int) -> bool:
    """Return True if all nodes with memory have equally many pages."""
    counts = {node.memory.pages.get(size, 0) for node in profile.nodes
              if node.memory.kept or node.memory.pages or node.usable}
    return len(counts) == 1


def kernel(profile: profiles.HostProfile) -> str:
    """Return the line of arguments of the kernel, with comments."""
    lines = [' '.join(kernel_arguments(profile))]
    uneven = [size for size in profile.page_sizes
              if not is_even(profile, size)]
    if uneven:
        lines.append('# Pages of single NUMA nodes need Linux 5.16 or its '
                     'backport. Before that, leave hugepages=')
        lines.append('# out, and run early in the boot:')
    for size in uneven:
        for node, count in pages(profile, size).items():
            lines.append(
                f'# echo {count} > /sys/devices/system/node/node{node}'
                f'/hugepages/hugepages-{size}kB/nr_hugepages')
    if not profile.vendor:
        lines.append('# The vendor of the CPUs is not known: Intel needs '
                     'intel_iommu=on, too.')
    return ''.join(f'{line}\n' for line in lines)


def tuned(profile: profiles.HostProfile) -> str:
    """Return the variables of tuned, and which of its profiles to use."""
    if not profile.isolated:
        return '# No CPU is isolated.\n# tuned-adm profile virtual-host\n'
    return ('# /etc/tuned/cpu-partitioning-variables.conf\n'
            f'isolated_cores={cpu_spec.to_text(profile.isolated)}\n'
            '# Then: tuned-adm profile cpu-partitioning\n')


def ovs_options(profile: profiles.HostProfile) -> dict[str, str]:
    """Return ``other_config`` of OVS-DPDK; empty without switch cores.

    A running switch starts DPDK as soon as ``dpdk-init`` is set, with the
    options set by then, so it comes last.
    """
    switch = profile.cpus(cpus.SWITCH)
    if not switch:
        return {}
    options = {}
    memory = {node.number: node.memory.switch for node in profile.nodes}
    # One number for each NUMA node from 0 on, also for missing numbers. DPDK
    # refuses more than it was built for; zeros at the end may be left out.
    last = max((node for node, mib in memory.items() if mib), default=0)
    options['dpdk-socket-mem'] = ','.join(
        str(memory.get(number, 0)) for number in range(last + 1))
    platform = profile.cpus(cpus.PLATFORM)
    if platform:
        options['dpdk-lcore-mask'] = mask(platform)
    options['pmd-cpu-mask'] = mask(switch)
    options['dpdk-init'] = 'true'
    return options


def ovs(profile: profiles.HostProfile) -> str:
    """Return the commands that set up OVS-DPDK."""
    options = ovs_options(profile)
    if not options:
        return '# The virtual switch has no cores of its own.\n'
    return ''.join(
        f'ovs-vsctl --no-wait set Open_vSwitch . other_config:{name}='
        f'{value}\n' for name, value in options.items()) + (
        '# If DPDK was on before: restart ovs-vswitchd.\n')


def variables(profile: profiles.HostProfile) -> dict[str, ty.Any]:
    """Return the variables for Ansible."""
    settings = profile.settings
    return {
        'nfv_cpu_shared_set': cpu_spec.to_text(settings.shared),
        'nfv_cpu_dedicated_set': cpu_spec.to_text(settings.dedicated),
        'nfv_reserved_host_memory_mb': settings.reserved_memory,
        'nfv_reserved_huge_pages':
            check.reserved_pages(settings.reserved_pages),
        'nfv_cpu_allocation_ratio': settings.cpu_ratio,
        'nfv_physnets': [
            {'name': name, 'numa_nodes': sorted(nodes)}
            for name, nodes in settings.physnets.items()],
        'nfv_kernel_arguments': ' '.join(kernel_arguments(profile)),
        'nfv_isolated_cores': cpu_spec.to_text(profile.isolated),
        'nfv_platform_cpus': cpu_spec.to_text(profile.cpus(cpus.PLATFORM)),
        'nfv_ceph_cpus': cpu_spec.to_text(profile.cpus(cpus.CEPH)),
        'nfv_huge_pages': [
            {'node': node, 'size_kib': size, 'count': count}
            for size in profile.page_sizes
            for node, count in pages(profile, size).items()],
        'nfv_ovs_other_config': ovs_options(profile),
    }
