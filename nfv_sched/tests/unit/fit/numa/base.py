# SPDX-License-Identifier: Apache-2.0
"""Guests on hosts, as the modules of ``numa/`` take them."""

import itertools

from nova import objects

from nfv_sched.fit.numa import evaluation as numa_evaluation
from nfv_sched.fit.numa import fit
from nfv_sched.fit.numa import labels
from nfv_sched.fit.numa import pci
from nfv_sched.fit.numa import rule
from nfv_sched.fit.numa import topology
from nfv_sched.tests.unit import clouds

NAMES = rule.Names(clouds.VSWITCH, 'nfv_node')


def unlike_guest(*vcpus, **fields):
    numbers = itertools.count()
    return objects.InstanceNUMATopology(cells=[
        objects.InstanceNUMACell(
            id=index, cpuset=set(), memory=512, cpu_policy='dedicated',
            pcpuset={next(numbers) for _ in range(count)}, **fields)
        for index, count in enumerate(vcpus)])


def with_pages(host, *sizes):
    """Give each host NUMA node 1 GiB in pages of these sizes, in KiB."""
    for cell, of_cell in zip(host.cells, sizes):
        cell.mempages = [
            objects.NUMAPagesTopology(
                size_kb=size, total=1048576 // size, used=0, reserved=0)
            for size in of_cell]
    return host


def pages(**sizes):
    """Free pages of each size: ``kb4=1000`` for so many of 4 KiB."""
    return [objects.NUMAPagesTopology(
        size_kb=int(size.removeprefix('kb')), total=count, used=0, reserved=0)
        for size, count in sizes.items()]


def evaluation(host, guest, cpu_ratio=1.0, ram_ratio=1.0, **kwargs):
    """Evaluate a guest on a host, both given as Nova's topologies."""
    return numa_evaluation.Evaluation(
        topology.host_topology(host), topology.guest(guest),
        fit.Ratios(cpu_ratio, ram_ratio), **kwargs)


def devices(found, free, *requests, mapping=None):
    """Return the PCI devices of a host: free VFs of each node, by node."""
    stats = clouds.pci_stats(None, free)
    return pci.CandidateDevices(pci.HostDevices(
        stats.pools, pci.demands(requests), found.host), mapping)


def guest_on_host(found, given=None, groups=()):
    """Return what is known of a guest on a host.

    :param groups: host cells near each network, as bitmasks
    """
    return labels.ClaimPredictor(found, NAMES, given, list(groups))
