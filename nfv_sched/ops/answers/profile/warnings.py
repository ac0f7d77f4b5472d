# SPDX-License-Identifier: Apache-2.0
"""Warn about what the guides advise against in a machine and its profile."""

from collections.abc import Iterator, Mapping

from nfv_sched.base import strings
from nfv_sched.ops.answers.machine import facts
from nfv_sched.ops.answers.machine import values
from nfv_sched.ops.answers.profile import ceph as ceph_plan
from nfv_sched.ops.answers.profile import choices
from nfv_sched.ops.answers.profile import cpus
from nfv_sched.ops.answers.profile import document
from nfv_sched.ops.answers.profile import memory

# Minimum of a compute node by the carrier-grade guide.
_SOCKETS, _CORES, _MEMORY = 2, 8, 32 * 1024
_MOST_SWITCH_CORES = 8
#: Least MiB of small pages per node; less is what 1 GiB pages left over.
_LEAST = 1024
#: Accepted difference between NUMA nodes, relative to the larger: firmware
#: keeps some memory.
_UNEVEN = 0.02

_Warning = document.ProfileWarning


def find(machine: values.Machine, chosen: choices.Choices,
         near: Mapping[str, values.NIC],
         profile: document.Profile) -> Iterator[_Warning]:
    yield from _machine(machine)
    yield from _memory(machine, chosen)
    yield from _small_pages(profile)
    yield from _switch(chosen, near, profile)
    yield from _cpus(machine, profile)
    yield from _ceph(machine, chosen, profile)


def _machine(machine: values.Machine) -> Iterator[_Warning]:
    sockets = machine.sockets()
    if len(sockets) < _SOCKETS:
        yield _Warning(
            f'{strings.count(len(sockets), "socket")}, fewer than {_SOCKETS}',
            'a host for carrier-grade servers needs two; use this one for '
            'tests')
    small = {number: cores for number, cores in sorted(sockets.items())
             if cores < _CORES}
    if small:
        yield _Warning(
            f'fewer than {_CORES} cores on ' + ', '.join(
                f'socket {number} ({cores})'
                for number, cores in small.items()),
            'platform and switch take a large part of them: use CPUs with '
            'more cores')
    if machine.offline:
        yield _Warning(
            f'offline CPUs: {strings.some(map(str, sorted(machine.offline)))}',
            'they have no function here: bring them online and make the '
            'profile anew, or see that they stay off. If Nova switches them '
            'off ([libvirt] cpu_power_management), use facts from before')
    if machine.threads > 2 and machine.core_threads is None:
        yield _Warning(
            f'cores of {machine.threads} threads, by numbers that on some '
            'CPUs are not unique', 'see that "Thread(s) per core" of lscpu is '
            f'{machine.threads}; else give what "{facts.LSCPU}" prints')


def _memory(machine: values.Machine,
            chosen: choices.Choices) -> Iterator[_Warning]:
    if machine.memory < _MEMORY:
        yield _Warning(f'{machine.memory} MiB of memory, less than {_MEMORY}',
                       'add memory, the same on each NUMA node')
    if machine.even_memory:
        yield _Warning('only the sum of the memory is known; each NUMA node '
                       'was given the same', 'say it: --node-memory')
    sizes = {node.number: node.memory for node in machine.nodes if node.usable}
    if sizes and max(sizes.values()) - min(sizes.values()) > (
            _UNEVEN * max(sizes.values())):
        yield _Warning(
            'NUMA nodes differ in memory: ' + ', '.join(
                f'node {number} {memory} MiB'
                for number, memory in sizes.items()),
            'put the same modules in all channels of each socket')
    for node in machine.nodes:
        if not node.cores:
            yield _Warning(
                f'NUMA node {node.number} has memory, but no CPUs',
                'Nova puts no server there: all of it is kept from servers')
        elif not node.memory:
            yield _Warning(
                f'NUMA node {node.number} has CPUs, but no memory',
                'no server can be there: put memory there')
    yield from _page_sizes(machine, chosen)


def _page_sizes(machine: values.Machine,
                chosen: choices.Choices) -> Iterator[_Warning]:
    if (has := machine.page_sizes) is None:
        return
    flag = ' (flag pdpe1gb)' if machine.vendor else ''
    for size, _part in memory.sizes(machine, chosen):
        name = choices.PAGE_NAMES[size]
        if size not in has:
            yield _Warning(
                f'there are no pages of {name}{flag if name == "1G" else ""}',
                'choose another --pages: ' + ', '.join(
                    choices.PAGE_NAMES[each] for each in sorted(has)
                    if each in choices.PAGE_NAMES) + (
                    '; or let the firmware or hypervisor show the flag'
                    if flag and name == '1G' else ''))
        elif chosen.pages is None and name != '1G':
            yield _Warning(
                f'there are no pages of 1G{flag}, so pages of {name} are '
                'used', f'nothing, if flavors ask for pages of {name}, or for '
                'large ones')


def _small_pages(profile: document.Profile) -> Iterator[_Warning]:
    usable = [node for node in profile.numa_nodes if node.usable]
    free_memory = sum(
        node.memory_mib - node.kept_memory_mib
        - sum(each.size_kib * each.total for each in node.pages) // 1024
        for node in usable)
    if profile.nova.cpu_shared_set and free_memory < _LEAST * len(usable):
        yield _Warning(
            f'{max(free_memory, 0)} MiB of small pages are left beyond what '
            'is kept: servers on the shared CPUs without huge pages take '
            'memory of the platform', 'leave some, such as --pages 1G:80%, or '
            'have their flavors ask for hw:mem_page_size')


def _switch(chosen: choices.Choices, near: Mapping[str, values.NIC],
            profile: document.Profile) -> Iterator[_Warning]:
    on = profile.nodes(cpus.SWITCH)
    of_switch = profile.cpus(cpus.SWITCH)
    cores = sum(not of_switch.isdisjoint(core)
                for node in profile.numa_nodes for core in node.cores)
    if not cores:
        if chosen.layout != choices.FLOATING:
            yield _Warning(
                'no core for the virtual switch', 'servers with '
                'nfv:vswitch_numa_affinity=strict are refused here: give it '
                'cores by --vswitch-cores')
    elif cores > _MOST_SWITCH_CORES:
        yield _Warning(
            f'{cores} cores for the virtual switch, more than '
            f'{_MOST_SWITCH_CORES}', 'more than eight were never tested by '
            'the guides: use SR-IOV for more traffic')
    vfs = {near[nic.name]: nic.vfs for nic in chosen.sriov_nics}
    for name, nic in near.items():
        most = vfs.get(nic, 0)
        if most is not None and (nic.vfs or 0) > most:
            yield _Warning(
                f'{nic.vfs} VFs of NIC {name}, not {most}', 'create no more '
                'than servers use: unused ones cost throughput')
        if (node := nic.node) is None:
            yield _Warning(
                f'the NUMA node of NIC {name} is not known',
                'add --facts with the inspection data of Ironic, or --sys '
                'with a copy of /sys of the machine, which has it in '
                f'class/net/{name}/device/numa_node (-1 if the firmware does '
                'not say)')
        elif cores and node not in on:
            yield _Warning(
                f'NIC {name} is on NUMA node {node}, which has no core for '
                'the switch', 'packets of the switch cross to another node, '
                'and no node is near both its VFs and the switch: '
                f'--vswitch-cores {node}:N, or another NIC')
    if (mtu := max(chosen.mtus, default=0)) > 1500:
        yield _Warning(f'an MTU of {mtu}', 'use it for bulk traffic only: '
                       'jumbo frames slow requests and responses down')
    of_switch = [near[nic.name] for nic in chosen.switch_nics]
    for nic in chosen.sriov_nics:
        if near[nic.name] in of_switch and not near[nic.name].vf_product:
            yield _Warning(
                f'NIC {nic.name} is of the switch, and device_spec is for all '
                'of it, as the product of its VFs is not known', 'a server '
                'could get the NIC itself: add --sys with a copy of /sys of '
                'the machine, or take another NIC')
        most = near[nic.name].most_vfs
        if nic.vfs and most is not None and nic.vfs > most:
            yield _Warning(
                f'{nic.vfs} VFs of NIC {nic.name}, which has {most} at most',
                'the kernel creates none of them: choose fewer, or raise the '
                'maximum in the firmware of the NIC')


def _cpus(machine: values.Machine,
          profile: document.Profile) -> Iterator[_Warning]:
    if machine.threads > 1 and profile.nova.cpu_dedicated_set:
        yield _Warning(
            'cores have several threads: Nova refuses servers with '
            'hw:cpu_thread_policy=isolate here',
            'have flavors ask for require and twice the vCPUs, or turn '
            'threads off in the firmware where latency counts most')
    empty = [str(node.node) for node in profile.numa_nodes
             if node.usable and not node.cpus[cpus.GUESTS]]
    if empty and profile.layout != choices.FLOATING:
        yield _Warning(
            'no CPU is left for pinned servers on NUMA node '
            f'{", ".join(empty)}',
            'give fewer cores to the switch or to OSDs there')


def _ceph(machine: values.Machine, chosen: choices.Choices,
          profile: document.Profile) -> Iterator[_Warning]:
    ratio = profile.nova.cpu_allocation_ratio
    if ratio is not None and ratio > ceph_plan.MOST_RATIO:
        yield _Warning(
            f'a CPU allocation ratio of {ratio:g}, more than '
            f'{ceph_plan.MOST_RATIO}', 'give a higher --utilisation, or '
            f'lower the ratio to {ceph_plan.MOST_RATIO}')
    if not chosen.osd_count:
        return
    nodes = profile.nodes(cpus.CEPH)
    if chosen.ceph_node is None and nodes and len(machine.usable) > 1:
        yield _Warning(
            'no --ceph-node: OSDs have cores on NUMA node '
            f'{", ".join(map(str, nodes))}',
            'give --ceph-node NODE, the node of their disks: where OSDs are '
            'on all nodes, servers with nfv:numa_anti_affinity.osd=strict are '
            'refused')
    types = sorted(kind for kind, count in chosen.osds.items() if count)
    if len(types) > 1:
        yield _Warning(
            f'OSDs on disks of several types: {", ".join(types)}',
            'each OSD is given one CPU: use one type of disks a host')
    elif types == [choices.NVME] and (
            chosen.osds_per_device != ceph_plan.BEST_PER_NVME):
        yield _Warning(
            'NVMe devices with '
            f'{strings.count(chosen.osds_per_device, "OSD")} each',
            f'{ceph_plan.BEST_PER_NVME} OSDs on each make best use of them: '
            f'--osds-per-device {ceph_plan.BEST_PER_NVME}')
    if chosen.guest_gb is None:
        yield _Warning(
            'what servers need is not known: no CPU allocation ratio, and '
            'nothing kept for what the host needs for each server',
            'say --guest-gb and --utilisation, or --workload')
