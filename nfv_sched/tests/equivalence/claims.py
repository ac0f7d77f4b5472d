# SPDX-License-Identifier: Apache-2.0
"""The claim on the compute node, made by Nova's own functions.

What ``nova.compute.claims.Claim`` and the resource tracker do with the limits
of the scheduler and with the PCI devices of a host, step by step.
"""

import types
import typing as ty

from nova.compute import claims
from nova.compute import utils as compute_utils
from nova import exception
from nova import objects
from nova.virt import hardware

from nfv_sched.tests import strategies


class Claimed(ty.NamedTuple):
    """What a claim has chosen.

    :ivar nodes: host NUMA node of each guest cell; empty without a guest
        NUMA topology
    :ivar devices: (number of the PCI request, NUMA node of the device) for
        each device
    :ivar topology: Nova's ``InstanceNUMATopology``, None without one
    """

    nodes: tuple[int, ...]
    devices: tuple[tuple[int, int | None], ...]
    topology: ty.Any


def placed_requests(requests, candidate):
    """Return PCI requests as they are stored once Placement has answered."""
    requests = [request.obj_clone() for request in requests]
    compute_utils.update_pci_request_with_placement_allocations(
        None, None, requests, candidate['mappings'])
    return requests


def compute_stats(topology, pools):
    """``PciDeviceStats`` as the compute node has them, with the devices."""
    made = strategies.pci_stats(topology, pools)
    number = 0
    for pool in made.pools:
        pool['devices'] = []
        for _ in range(pool['count']):
            number += 1
            pool['devices'].append(objects.PciDevice(
                id=number, compute_node_id=1, numa_node=pool['numa_node'],
                address='0000:80:%02x.%d' % divmod(number, 8),
                dev_type=pool.get('dev_type', 'type-PCI')))
            pool['devices'][-1].child_devices = []
            pool['devices'][-1].parent_device = None
    return made


def fit(host, guest, limits, pools, requests):
    """``Claim._claim_test``: the guest's cells, or None if it fails.

    :param requests: PCI requests as stored, see :func:`placed_requests`
    :returns: ``InstanceNUMATopology``; one without cells for a guest without
        NUMA topology
    """
    host = strategies.clone(host) if host is not None else None
    pci_stats = strategies.pci_stats(host, pools)
    if requests and not pci_stats.support_requests(
            requests, provider_mapping=None):
        return None
    if guest is None:
        return objects.InstanceNUMATopology(cells=[])
    return numa_fit(
        host, strategies.clone(guest), limits, requests, pci_stats)


def numa_fit(host, guest, limits, requests, pci_stats):
    """Run the NUMA test of Nova's own ``Claim``.

    :param requests: PCI requests as stored, see :func:`placed_requests`
    :returns: ``InstanceNUMATopology``, or None if the claim fails
    """
    claim = claims.Claim.__new__(claims.Claim)
    claim.instance = types.SimpleNamespace(numa_topology=guest)
    claim.tracker = types.SimpleNamespace(
        pci_tracker=types.SimpleNamespace(stats=pci_stats))
    claim._pci_requests = types.SimpleNamespace(requests=requests)
    claim.claimed_numa_topology = None
    node = objects.ComputeNode(
        numa_topology=host and host._to_json())
    claim._test_numa_topology(node, limits)
    return claim.claimed_numa_topology


def consume(host, topology, pools, requests):
    """``PciDevTracker.claim_instance``: the devices that are taken.

    :returns: (number of the request, NUMA node) for each device
    :raises nova.exception.PciDeviceRequestFailed: if they are not there
    """
    pci_stats = compute_stats(host, pools)
    devices = pci_stats.consume_requests(
        requests, topology.cells or None) if requests else []
    numbers = {request.request_id: number
               for number, request in enumerate(requests)}
    return tuple(sorted(
        ((numbers[device.request_id], device.numa_node)
         for device in devices), key=repr))


def claim(host, guest, limits, pools=(), requests=(), candidate=None,
          record=True):
    """Make the whole claim; host, guest and requests are not changed.

    :param candidate: the allocation candidate that was claimed
    :param record: whether a claim fails if its pins cannot be written down
    :returns: :class:`Claimed`, or None if the claim fails
    """
    if candidate is not None:
        requests = placed_requests(requests, candidate)
    else:
        requests = [request.obj_clone() for request in requests]
    topology = fit(host, guest, limits, pools, requests)
    if topology is None:
        return None
    if record and topology.cells and all(
            cell.mempages for cell in host.cells):
        try:
            hardware.numa_usage_from_instance_numa(
                strategies.clone(host), topology)
        except exception.CPUPinningUnknown:
            return None
    return Claimed(
        tuple(cell.id for cell in topology.cells),
        consume(host, topology, pools, requests), topology)
