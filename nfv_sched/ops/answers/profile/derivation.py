# SPDX-License-Identifier: Apache-2.0
"""Derive the setup of a machine as a compute node.

The formulae are those of HPE Helion Carrier Grade's guide, of TripleO and of
Red Hat's guide to hyper-converged clouds; see :doc:`/tasks/new-host`.
"""

from collections.abc import Mapping
import dataclasses

from oslo_serialization import jsonutils

from nfv_sched.fit.numa import rule
from nfv_sched.fit.rules import place
from nfv_sched.ops.answers.machine import values
from nfv_sched.ops.answers.profile import ceph as ceph_plan
from nfv_sched.ops.answers.profile import choices
from nfv_sched.ops.answers.profile import configuration
from nfv_sched.ops.answers.profile import cpus
from nfv_sched.ops.answers.profile import document
from nfv_sched.ops.answers.profile import memory
from nfv_sched.ops.answers.profile import warnings

#: Name of the place where the Ceph OSDs run.
OSD = 'osd'


def derive(machine: values.Machine,
           chosen: choices.Choices = choices.Choices()) -> document.Profile:
    if machine.role is not None:
        if chosen.switch_cores is not None or chosen.shared or (
                chosen.osds or chosen.layout == choices.FLOATING):
            raise choices.ProfileError(
                'the CPUs are those of a TripleO role: without '
                '--vswitch-cores, --shared, --osds and --layout floating')
        chosen = dataclasses.replace(chosen, layout=choices.EVERY_NODE)
    assignment = cpus.assign(machine, chosen)
    near = cpus.nics(machine, chosen)
    switch = _switch_memory(machine, chosen, assignment, near)
    switch_mib = sum(switch.values())
    shared = cpus.cpus_of(assignment, cpus.SHARED)
    if not (shared or machine.role) and chosen.layout == choices.EVERY_NODE:
        # As TripleO, give the platform's CPUs to servers without pinned vCPUs,
        # unless cores are set aside for them.
        shared = cpus.cpus_of(assignment, cpus.PLATFORM)
    kept_memory = memory.platform_memory(machine, chosen)
    ceph = ceph_plan.plan(
        chosen, machine.memory, len(shared),
        set_aside=sum(kept_memory.values()) + switch_mib)
    for total, parts in (
            (ceph.osd_memory, cpus.osds(machine, chosen)),
            (ceph.overhead, {node.number: 1 for node in machine.usable})):
        for node, part in memory.spread(total, parts).items() if (
                total) else ():
            kept_memory[node] += part
    platform_mib = sum(kept_memory.values())
    ceph_plan.refuse_much(chosen, platform_mib + switch_mib, machine.memory)
    pages = memory.share(machine, chosen, kept_memory, switch)
    nodes = tuple([document.ProfileNode(
        node=node.number, usable=node.usable, cpus=assignment[node.number],
        cores=tuple([core.cpus for core in node.cores]),
        memory_mib=node.memory, kept_memory_mib=kept_memory[node.number],
        switch_memory_mib=switch.get(node.number, 0),
        pages=pages[node.number]) for node in machine.nodes])
    ratio = ceph.ratio if shared else None
    dedicated = cpus.cpus_of(assignment, cpus.GUESTS)
    profile = document.Profile(
        layout=chosen.layout, numa_nodes=nodes, nova=document.NovaOptions(
            cpu_shared_set=shared, cpu_dedicated_set=dedicated,
            reserved_host_memory_mib=platform_mib + switch_mib,
            reserved_huge_pages=tuple([
                document.ReservedPages(node=node.node, size_kib=each.size_kib,
                                       count=each.switch)
                for node in nodes for each in node.pages if each.switch]),
            cpu_allocation_ratio=None if ratio is None else round(ratio, 6),
            physnets={name: tuple(sorted(near_nodes))
                      for name, near_nodes in _physnets(
                          machine, chosen, assignment, near).items()},
            device_spec=tuple([_device_spec(nic, near[nic.name])
                               for nic in chosen.sriov_nics])),
        platform_memory_mib=platform_mib, kernel_arguments=(),
        ovs_other_config={}, isolated_cpus=tuple(sorted(
            (*cpus.cpus_of(assignment, cpus.SWITCH), *dedicated))),
        osd_memory_mb=ceph.osd_memory,
        vcpus_per_osd=ceph_plan.vcpus_per_osd(chosen),
        servers_by_memory=ceph.guests, server_overhead_mb=ceph.overhead,
        server_vcpus=ceph.vcpus, warnings=(), vendor=machine.vendor,
        vf_counts={nic.name: nic.vfs for nic in chosen.sriov_nics if nic.vfs})
    return dataclasses.replace(
        profile,
        kernel_arguments=tuple(configuration.kernel_arguments(profile)),
        ovs_other_config=configuration.ovs_options(profile),
        warnings=tuple(warnings.find(machine, chosen, near, profile)))


def _switch_memory(machine: values.Machine, chosen: choices.Choices,
                   assignment: cpus.Assignment,
                   near: Mapping[str, values.NIC]) -> dict[int, int]:
    """Return the MiB of the virtual switch on each NUMA node with memory."""
    if not cpus.nodes_of(assignment, cpus.SWITCH):
        return {}
    if machine.role is not None and machine.role.switch_memory:
        return {node.number: mib for node in machine.usable
                for mib in machine.role.switch_memory[node.number:][:1]}
    nodes = {node for nic in chosen.switch_nics
             if (node := near[nic.name].node) is not None}
    if not nodes and chosen.layout == choices.EVERY_NODE and not isinstance(
            chosen.switch_cores, Mapping):
        nodes = {machine.usable[0].number}  # the others only have a spare core
    nodes = nodes or set(cpus.nodes_of(assignment, cpus.SWITCH))
    return {node.number: memory.socket_memory(
        chosen.mtus if node.number in nodes else frozenset())
        for node in machine.usable}


def _physnets(machine: values.Machine, chosen: choices.Choices,
              assignment: cpus.Assignment, near: Mapping[str, values.NIC],
              ) -> dict[str, frozenset[int]]:
    physnets: dict[str, frozenset[int]] = {}
    for nic in (*chosen.switch_nics, *chosen.sriov_nics):
        nodes = frozenset(node.number for node in machine.usable
                          if node.number == near[nic.name].node)
        if nic.physnet and nodes:
            physnets[nic.physnet] = nodes | physnets.get(
                nic.physnet, frozenset())
    names = rule.Names(chosen.vswitch_label, chosen.node_label_prefix)
    osd_label = place.label_of(OSD, names)
    labels = {names.vswitch: frozenset(cpus.nodes_of(assignment, cpus.SWITCH))}
    if chosen.osd_count and (chosen.ceph_node is not None
                             or cpus.nodes_of(assignment, cpus.CEPH)):
        labels[osd_label] = frozenset(node for node, count in cpus.osds(
            machine, chosen).items() if count)
    # libvirt may leave out a node without memory or CPUs, and nova-compute
    # fails to report with a label of a node that is left out.
    of_nodes = {names.of_node(node.number): frozenset((node.number,))
                for node in machine.usable}
    if names.vswitch in (osd_label, *of_nodes):
        raise choices.ProfileError(
            f'{names.vswitch} cannot be the label of the switch: it '
            'is that of OSDs or of a NUMA node')
    labels |= of_nodes
    for name in labels.keys() & physnets.keys():
        raise choices.ProfileError(f'{name} is the name of a label, not of a '
                                   'physical network')
    return physnets | {name: nodes for name, nodes in labels.items() if nodes}


def _device_spec(chosen: choices.ChosenNIC, nic: values.NIC) -> str:
    """Return the entry of VFs; without their product, also of their NIC."""
    # Facts of Ansible have other addresses, too: virtio0.
    spec = {**({'address': nic.address} if ':' in nic.address
               else {'devname': chosen.name}),
            'product_id': nic.vf_product, 'physical_network': chosen.physnet}
    return jsonutils.dumps({key: text for key, text in spec.items() if text},
                           sort_keys=True)
