# SPDX-License-Identifier: Apache-2.0
"""Format a profile for nova.conf, kernel, tuned, OVS-DPDK and Ansible."""

from collections.abc import Collection, Iterable

from nfv_sched.base import cpu_spec
from nfv_sched.ops.answers.profile import choices
from nfv_sched.ops.answers.profile import cpus
from nfv_sched.ops.answers.profile import document
from nfv_sched.ops.cli import documents


def page_size(size: int) -> str:
    name = choices.PAGE_NAMES.get(size)
    return str(size) if name is None else f'{name}B'


def reserved_pages(pages: Iterable[document.ReservedPages]) -> list[str]:
    return [f'node:{each.node},size:{page_size(each.size_kib)},'
            f'count:{each.count}' for each in pages]


def options(nova: document.NovaOptions) -> dict[str, dict[str, list[str]]]:
    """Return section -> option -> its values; none if it is not set."""
    number = nova.cpu_allocation_ratio
    return {
        'compute': {
            'cpu_shared_set': _cpus(nova.cpu_shared_set),
            'cpu_dedicated_set': _cpus(nova.cpu_dedicated_set)},
        'DEFAULT': {
            'reserved_host_memory_mb': [str(nova.reserved_host_memory_mib)],
            'reserved_huge_pages': reserved_pages(nova.reserved_huge_pages),
            'cpu_allocation_ratio': [] if number is None else [
                f'{number:.6f}'.rstrip('0').rstrip('.')]},
        'pci': {'device_spec': list(nova.device_spec)}}


def _cpus(numbers: Collection[int]) -> list[str]:
    return [cpu_spec.to_text(numbers)] if numbers else []


def lines(nova: document.NovaOptions, section: str) -> list[str]:
    return [f'{option} = {text}'
            for option, texts in options(nova)[section].items()
            for text in texts]


def nova_conf(profile: document.Profile) -> str:
    nova = profile.nova
    return '\n'.join((
        '[DEFAULT]',
        '# What Placement keeps from servers, with the pages of the switch.',
        *lines(nova, 'DEFAULT'), '', '[compute]', *lines(nova, 'compute'), '',
        *(('[pci]', *lines(nova, 'pci'), '') if nova.device_spec else ()),
        '[neutron]',
        '# Add the physical networks that are there already.',
        f'physnets = {",".join(nova.physnets)}',
        *(f'\n[neutron_physnet_{name}]\n'
          f'numa_nodes = {",".join(map(str, nodes))}'
          for name, nodes in nova.physnets.items()), ''))


def pages(profile: document.Profile, size: int) -> dict[int, int]:
    """Return the huge pages of a size in KiB by NUMA node, without zeros."""
    return {node.node: count for node in profile.numa_nodes
            if (count := node.page_count(size))}


def kernel_arguments(profile: document.Profile) -> list[str]:
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
        counts = pages(profile, size)
        arguments += [f'hugepagesz={name}', 'hugepages=' + (
            str(sum(counts.values())) if is_even(profile, size) else
            ','.join(f'{node}:{count}' for node, count in counts.items()))]
    if profile.vendor == 'intel':
        arguments.append('intel_iommu=on')
    arguments.append('iommu=pt')
    if profile.isolated_cpus:
        isolated = cpu_spec.to_text(profile.isolated_cpus)
        arguments += [f'isolcpus={isolated}', f'nohz_full={isolated}',
                      f'rcu_nocbs={isolated}']
        if housekeeping := frozenset().union(*map(
                profile.cpus, cpus.FUNCTIONS)).difference(
                    profile.isolated_cpus):
            arguments.append(f'irqaffinity={cpu_spec.to_text(housekeeping)}')
    return arguments


def is_even(profile: document.Profile, size: int) -> bool:
    counts = {node.page_count(size) for node in profile.numa_nodes
              if node.kept_memory_mib or node.pages or node.usable}
    return len(counts) == 1


def kernel(profile: document.Profile) -> str:
    lines = [' '.join(profile.kernel_arguments)]
    uneven = [size for size in profile.page_sizes
              if not is_even(profile, size)]
    if uneven:
        lines += ['# Pages of single NUMA nodes need Linux 5.16 or its '
                  'backport. Before that, leave hugepages=',
                  '# out, and run early in the boot:']
    lines += [f'# echo {count} > /sys/devices/system/node/node{node}'
              f'/hugepages/hugepages-{size}kB/nr_hugepages'
              for size in uneven
              for node, count in pages(profile, size).items()]
    for nic, vfs in profile.vf_counts.items():
        device = (f'bus/pci/devices/{nic}' if ':' in nic
                  else f'class/net/{nic}/device')
        lines.append('# Early in each boot, before nova-compute: '
                     f'echo {vfs} > /sys/{device}/sriov_numvfs')
    if profile.isolated_cpus:
        lines.append('# Guides for low latency add nosoftlockup processor.'
                     'max_cstate=0; on Intel also intel_idle.max_cstate=0 '
                     'intel_pstate=disable')
    if not profile.vendor:
        lines.append('# The vendor of the CPUs is not known: Intel needs '
                     'intel_iommu=on, too.')
    return ''.join(f'{line}\n' for line in lines)


def tuned(profile: document.Profile) -> str:
    if not profile.isolated_cpus:
        return ('# No CPU is isolated.\n# tuned-adm profile virtual-host; '
                'network-latency for small reads from Ceph\n')
    return ('# /etc/tuned/cpu-partitioning-variables.conf\n'
            f'isolated_cores={cpu_spec.to_text(profile.isolated_cpus)}\n'
            '# Then: tuned-adm profile cpu-partitioning\n')


def ovs_options(profile: document.Profile) -> dict[str, str]:
    """Return ``other_config`` of OVS-DPDK; empty without switch cores.

    A running switch starts DPDK as soon as ``dpdk-init`` is set, with the
    options set by then, so it comes last.
    """
    if not (switch := profile.cpus(cpus.SWITCH)):
        return {}
    memory = {node.node: node.switch_memory_mib for node in profile.numa_nodes}
    # One number for each NUMA node from 0 on, also for missing numbers. DPDK
    # refuses more than it was built for; zeros at the end may be left out.
    last = max((node for node, mib in memory.items() if mib), default=0)
    platform = profile.cpus(cpus.PLATFORM)
    return {
        'dpdk-socket-mem': ','.join(
            str(memory.get(number, 0)) for number in range(last + 1)),
        **({'dpdk-lcore-mask': _mask(platform)} if platform else {}),
        'pmd-cpu-mask': _mask(switch), 'dpdk-init': 'true'}


def _mask(numbers: Iterable[int]) -> str:
    return hex(sum(1 << number for number in numbers))


def ovs(profile: document.Profile) -> str:
    if not (options := profile.ovs_other_config):
        return '# The virtual switch has no cores of its own.\n'
    return ''.join(
        f'ovs-vsctl --no-wait set Open_vSwitch . other_config:{name}='
        f'{value}\n' for name, value in options.items()) + (
        '# Of each NIC: options:n_rxq=(CPUs of the switch on its node)\n'
        '# If DPDK was on before: restart ovs-vswitchd.\n')


def ansible(profile: document.Profile) -> str:
    nova = profile.nova
    return documents.dumps({
        'nfv_cpu_shared_set': cpu_spec.to_text(nova.cpu_shared_set),
        'nfv_cpu_dedicated_set': cpu_spec.to_text(nova.cpu_dedicated_set),
        'nfv_reserved_host_memory_mb': nova.reserved_host_memory_mib,
        'nfv_reserved_huge_pages':
            reserved_pages(nova.reserved_huge_pages),
        'nfv_cpu_allocation_ratio': nova.cpu_allocation_ratio,
        'nfv_physnets': [
            {'name': name, 'numa_nodes': list(nodes)}
            for name, nodes in nova.physnets.items()],
        'nfv_pci_device_spec': list(nova.device_spec),
        'nfv_vf_counts': profile.vf_counts,
        'nfv_kernel_arguments': ' '.join(profile.kernel_arguments),
        'nfv_isolated_cores': cpu_spec.to_text(profile.isolated_cpus),
        'nfv_platform_cpus': cpu_spec.to_text(profile.cpus(cpus.PLATFORM)),
        'nfv_ceph_cpus': cpu_spec.to_text(profile.cpus(cpus.CEPH)),
        'nfv_huge_pages': [
            {'node': node, 'size_kib': size, 'count': count}
            for size in profile.page_sizes
            for node, count in pages(profile, size).items()],
        'nfv_ovs_other_config': profile.ovs_other_config,
    }, 'yaml')
