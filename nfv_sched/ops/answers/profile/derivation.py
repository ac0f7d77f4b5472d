# SPDX-License-Identifier: Apache-2.0
"""Derive the setup of a machine as a compute node.

The formulae are those of HPE Helion Carrier Grade's guide, of TripleO and of
Red Hat's guide to hyper-converged clouds; see :doc:`/tasks/new-host`.
"""

from collections.abc import Mapping
import dataclasses

from nfv_sched.fit.numa import rule
from nfv_sched.fit.rules import place
from nfv_sched.nova import compute_settings
from nfv_sched.ops.answers.machine import values
from nfv_sched.ops.answers.profile import ceph as ceph_plan
from nfv_sched.ops.answers.profile import choices
from nfv_sched.ops.answers.profile import cpus
from nfv_sched.ops.answers.profile import memory
from nfv_sched.ops.answers.profile import warnings

#: Name of the place where the Ceph OSDs run.
OSD = 'osd'


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class NodeProfile:
    """The setup of a NUMA node.

    :ivar cpus: function -> its logical CPUs
    :ivar usable: True if servers can be there
    :ivar cores: logical CPUs of each physical core
    :ivar total_memory: all of its memory in MiB
    """

    number: int
    cpus: Mapping[str, frozenset[int]]
    memory: memory.NodeMemory
    usable: bool
    cores: tuple[tuple[int, ...], ...]
    total_memory: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class HostProfile:
    """The setup of a machine.

    :ivar layout: layout of the CPUs
    :ivar settings: derived settings of nova.conf
    :ivar platform_memory: MiB for the platform, OSDs and the needs of the
        host for each server, without the switch's
    :ivar ceph: shares of OSDs and servers in the host
    :ivar vcpus_per_osd: CPUs of each OSD
    :ivar vendor: vendor of the CPUs
    :ivar warnings: deviations from the guides
    """

    layout: str
    nodes: tuple[NodeProfile, ...]
    settings: compute_settings.Settings
    platform_memory: int
    ceph: ceph_plan.CephPlan
    vcpus_per_osd: int
    vendor: str
    warnings: tuple[warnings.Warning, ...]

    def cpus(self, function: str) -> frozenset[int]:
        """Return all logical CPUs with a function."""
        return frozenset().union(*(node.cpus[function]
                                   for node in self.nodes))

    @property
    def isolated(self) -> frozenset[int]:
        """The CPUs on which the kernel should run nothing by itself."""
        return self.cpus(cpus.SWITCH) | self.cpus(cpus.GUESTS)

    @property
    def page_sizes(self) -> tuple[int, ...]:
        """The sizes of its huge pages in KiB, the largest first."""
        return tuple(sorted({size for node in self.nodes
                             for size in node.memory.pages}, reverse=True))


def derive(machine: values.Machine,
           chosen: choices.Choices = choices.Choices()) -> HostProfile:
    """Derive the profile of a machine.

    :raises ProfileError: if it cannot be set up as chosen
    """
    assignment = cpus.assign(machine, chosen)
    near = cpus.nic_nodes(machine, chosen)
    switch = _switch_memory(machine, chosen, assignment, near)
    shared = _shared_cpus(chosen, assignment)
    usable = [node.number for node in machine.usable]
    converged = bool(chosen.ceph.count or chosen.guest_gb is not None)
    platform = memory.platform_memory(machine, chosen, converged)
    ceph = _ceph(machine, chosen, shared,
                 sum(platform.values()) + sum(switch.values()))
    kept_memory = dict(platform)
    for total, parts in (
            (ceph.osd_memory, cpus.osds(machine, chosen.ceph)),
            (ceph.overhead, dict.fromkeys(usable, 1))):
        for node, part in memory.spread(total, parts).items() if (
                total) else ():
            kept_memory[node] += part
    if chosen.ceph.count:
        ceph_plan.refuse_much(sum(kept_memory.values()) + sum(switch.values()),
                              machine.memory, chosen.ceph.mb_per_gb)
    shares = memory.share(machine, chosen, kept_memory, switch)
    ratio = ceph.ratio if shared else None
    host_profile = HostProfile(
        layout=chosen.layout,
        nodes=tuple(NodeProfile(
            number=node.number, memory=shares[node.number],
            usable=node.usable, total_memory=node.memory,
            cores=tuple([core.cpus for core in node.cores]),
            cpus={function: assignment.cpus(function, node.number)
                  for function in cpus.FUNCTIONS})
            for node in machine.nodes),
        settings=compute_settings.Settings(
            shared=shared, dedicated=assignment.cpus(cpus.GUESTS),
            reserved_memory=sum(kept_memory.values()) + sum(switch.values()),
            reserved_pages={
                (node, size): count for node, each in shares.items()
                for size, count in each.reserved.items()},
            cpu_ratio=None if ratio is None else round(ratio, 6),
            physnets=_physnets(machine, chosen, assignment, near)),
        platform_memory=sum(kept_memory.values()), ceph=ceph,
        vcpus_per_osd=ceph_plan.vcpus_per_osd(chosen.ceph),
        vendor=machine.vendor, warnings=())
    return dataclasses.replace(host_profile, warnings=tuple(warnings.find(
        machine, chosen, assignment, near, host_profile.settings, shares)))


def _shared_cpus(chosen: choices.Choices,
                 assignment: cpus.CPUAssignment) -> frozenset[int]:
    """Return the CPUs of ``cpu_shared_set``."""
    # As TripleO, give the platform's CPUs to servers without pinned vCPUs,
    # unless cores are set aside for them.
    shared = assignment.cpus(cpus.SHARED)
    if not shared and chosen.layout == choices.EVERY_NODE:
        return assignment.cpus(cpus.PLATFORM)
    return shared


def _switch_memory(machine: values.Machine, chosen: choices.Choices,
                   assignment: cpus.CPUAssignment,
                   near: Mapping[str, int | None]) -> dict[int, int]:
    """Return the MiB of the virtual switch on each NUMA node with memory."""
    if not assignment.nodes(cpus.SWITCH):
        return {}
    nodes = {node for node in near.values() if node is not None}
    if not nodes and chosen.layout == choices.EVERY_NODE and not isinstance(
            chosen.switch_cores, Mapping):
        nodes = {machine.usable[0].number}  # the others only have a spare core
    nodes = nodes or set(assignment.nodes(cpus.SWITCH))
    return {node.number: memory.socket_memory(
        chosen.mtus if node.number in nodes else frozenset())
        for node in machine.usable}


def _ceph(machine: values.Machine, chosen: choices.Choices,
          shared: frozenset[int], kept_mib: int) -> ceph_plan.CephPlan:
    """Share memory and CPUs between OSDs and servers.

    Where the OSDs have CPUs of their own, servers get all of the shared CPUs.
    """
    floating = chosen.layout == choices.FLOATING
    return ceph_plan.plan(
        chosen.ceph, machine.memory, len(shared), chosen.guest_gb,
        chosen.utilisation, osd_cpus=None if floating else 0, kept=kept_mib)


def _physnets(machine: values.Machine, chosen: choices.Choices,
              assignment: cpus.CPUAssignment, near: Mapping[str, int | None],
              ) -> dict[str, frozenset[int]]:
    """Return the NUMA nodes of physical networks and labels."""
    physnets: dict[str, frozenset[int]] = {}
    for nic in chosen.switch_nics:
        node = near[nic.name]
        if nic.physnet and node is not None and any(
                each.number == node for each in machine.usable):
            physnets[nic.physnet] = physnets.get(
                nic.physnet, frozenset()) | {node}
    names = rule.Names(chosen.vswitch_label, chosen.node_label_prefix)
    osd_label = place.label_of(OSD, names)
    labels = {names.vswitch: frozenset(assignment.nodes(cpus.SWITCH))}
    if chosen.ceph.count and (
            chosen.ceph.node is not None or assignment.nodes(cpus.CEPH)):
        labels[osd_label] = frozenset(node for node, count in cpus.osds(
            machine, chosen.ceph).items() if count)
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
