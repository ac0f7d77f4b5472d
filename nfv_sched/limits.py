#    Licensed under the Apache License, Version 2.0 (the "License"); you may
#    not use this file except in compliance with the License. You may obtain
#    a copy of the License at
#
#         http://www.apache.org/licenses/LICENSE-2.0
#
#    Unless required by applicable law or agreed to in writing, software
#    distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
#    WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
#    License for the specific language governing permissions and limitations
#    under the License.
"""A decision becomes the limits that the claim on the compute node must keep.

``HostState.limits`` goes with a server to its host: the allocation ratios, and
the networks that the chosen host NUMA nodes must be near.  Labels of ours are
such networks.
"""

from nova import objects

from nfv_sched.nova import scheduler
from nfv_sched.numa import decide
from nfv_sched.request import Request
from nfv_sched.request import RequestNote

_LIMITS = 'numa_topology'


class KeptLimits(dict):
    """Limits of a host whose NUMA part only nfv-sched writes.

    Nova's own ``NUMATopologyFilter`` writes fresh ones on every pass; in
    whatever order the filters run, ours stay.
    """

    __slots__ = ()

    def __setitem__(self, key, value):
        if key != _LIMITS:
            super().__setitem__(key, value)

    def keep(self, limits) -> None:
        """Write the NUMA part.

        :param limits: ``nova.objects.NUMATopologyLimits``
        """
        super().__setitem__(_LIMITS, limits)


def with_labels(limits, labels: frozenset[str], ignore_tunnel: bool):
    """A copy of NUMA limits with labels added.

    :param limits: ``nova.objects.NUMATopologyLimits``; not changed
    :param labels: physical networks that chosen host nodes must be near
    :param ignore_tunnel: leave out the tunnel endpoint
    :returns: ``nova.objects.NUMATopologyLimits``
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
    host_state, note: RequestNote, request: Request,
    decision: decide.Decision, cpu_ratio: float,
) -> None:
    """Tell the claim on the compute node what it must keep.

    :param host_state: ``nova.scheduler.host_manager.HostState``
    :param note: the note of the request
    :param request: the request
    :param decision: that accepts the host
    :param cpu_ratio: shared vCPUs that a shared CPU takes; Nova's allocation
        ratio of the host, or less
    """
    labels = decision.labels
    ignore_tunnel = decision.ignore_tunnel or request.tunnel_untrue
    ratio = host_state.ram_allocation_ratio
    # One object for all hosts that are alike in this.
    key = (cpu_ratio, ratio, labels, ignore_tunnel)
    made = note.limits.get(key)
    if made is None:
        made = scheduler.numa_topology_limits(
            cpu_ratio, ratio, request.network_metadata)
        if labels or ignore_tunnel:
            made = with_labels(made, labels, ignore_tunnel)
        note.limits[key] = made
    limits = host_state.limits
    if isinstance(limits, KeptLimits):
        limits.keep(made)
    elif labels or ignore_tunnel or (
            cpu_ratio != host_state.cpu_allocation_ratio):
        limits = host_state.limits = KeptLimits(limits)
        limits.keep(made)
    else:
        limits[_LIMITS] = made
