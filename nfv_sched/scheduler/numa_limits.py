# SPDX-License-Identifier: Apache-2.0
"""Write the NUMA limits that the claim on the compute node must obey.

Nova sends ``HostState.limits`` to the host with the server: the allocation
ratios, and the physical networks that the chosen host NUMA nodes must be near.
The labels of a decision are added to these networks.
"""

from nova import objects

from nfv_sched.fit.numa import decide
from nfv_sched.fit.request import Request
from nfv_sched.nova import scheduler
from nfv_sched.scheduler.notes import RequestNote


def with_labels(limits, labels: frozenset[str], ignore_tunnel: bool):
    """Return a copy of ``NUMATopologyLimits`` with labels added.

    :param ignore_tunnel: do not require a NUMA node near the tunnel endpoint
    """
    physnets = set(labels)
    tunneled = False
    if 'network_metadata' in limits and limits.network_metadata is not None:
        metadata = limits.network_metadata
        if 'physnets' in metadata:
            physnets |= metadata.physnets
        if 'tunneled' in metadata:
            tunneled = metadata.tunneled
    return scheduler.numa_topology_limits(
        limits.cpu_allocation_ratio, limits.ram_allocation_ratio,
        objects.NetworkMetadata(
            physnets=physnets, tunneled=tunneled and not ignore_tunnel))


def write(
    host_state, request_note: RequestNote, request: Request,
    decision: decide.Decision, cpu_ratio: float,
) -> None:
    """Set the NUMA limits of a host to those that a decision needs.

    :param cpu_ratio: CPU allocation ratio for the claim, in shared vCPUs per
        shared CPU: Nova's ratio of the host, or less
    """
    labels = decision.labels
    # Nova sets "tunneled" for every move
    # (RequestSpec.ensure_network_information); the networks of the request may
    # show that it is not so.
    ignore_tunnel = decision.ignore_tunnel or request.tunnel_untrue
    ratio = host_state.ram_allocation_ratio
    # Hosts with the same values share one object.
    key = (cpu_ratio, ratio, labels, ignore_tunnel)
    topology_limits = request_note.limits.get(key)
    if topology_limits is None:
        topology_limits = scheduler.numa_topology_limits(
            cpu_ratio, ratio, request.network_metadata)
        if labels or ignore_tunnel:
            topology_limits = with_labels(
                topology_limits, labels, ignore_tunnel)
        request_note.limits[key] = topology_limits
    host_state.limits['numa_topology'] = topology_limits
