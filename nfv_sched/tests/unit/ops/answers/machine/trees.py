# SPDX-License-Identifier: Apache-2.0
"""Copies of ``/sys`` as the kernel has it, for machines that are made up."""

import os

from nfv_sched.base import cpu_spec


def write(root, path, text):
    path = os.path.join(root, path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, 'w', encoding='utf-8') as file:
        file.write(f'{text}\n')


def machine(root, nodes, offline=(), nics=(), sizes=(2048, 1048576),
            modalias='cpu:type:x86,ven0000fam0006mod004F:feature:,0000'):
    """Write the tree of a machine.

    :param nodes: number -> (MiB, cores: lists of CPUs)
    :param nics: (address, names, node)
    :param sizes: KiB of the huge pages
    """
    online = {cpu for _memory, cores in nodes.values() for core in cores
              for cpu in core}
    cpus = 'devices/system/cpu'
    write(root, f'{cpus}/online', cpu_spec.to_text(online))
    write(root, f'{cpus}/present', cpu_spec.to_text(online | set(offline)))
    if modalias:
        write(root, f'{cpus}/modalias', modalias)
    for socket, (number, (memory, cores)) in enumerate(nodes.items()):
        node = f'devices/system/node/node{number}'
        write(root, f'{node}/cpulist', cpu_spec.to_text(
            cpu for core in cores for cpu in core))
        write(root, f'{node}/meminfo',
              f'Node {number} MemTotal:  {memory * 1024} kB\n'
              f'Node {number} MemFree:   1024 kB')
        for size in sizes:
            write(root, f'{node}/hugepages/hugepages-{size}kB/nr_hugepages',
                  '0')
        for core in cores:
            for cpu in core:
                folder = f'{cpus}/cpu{cpu}/topology'
                write(root, f'{folder}/thread_siblings_list',
                      cpu_spec.to_text(core))
                write(root, f'{folder}/physical_package_id', socket)
    os.makedirs(os.path.join(root, 'bus/pci/devices'), exist_ok=True)
    for address, names, node in nics:
        folder = f'bus/pci/devices/{address}'
        write(root, f'{folder}/class', '0x020000')
        write(root, f'{folder}/numa_node', node)
        for name in names:
            write(root, f'{folder}/{name}/address', '00:11:22:33:44:55')
    write(root, 'bus/pci/devices/0000:00:1f.2/class', '0x010601')
