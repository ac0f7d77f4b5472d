# SPDX-License-Identifier: Apache-2.0
"""Weigh hosts by the capacity for large guests that a guest takes."""

from collections.abc import Sequence

from oslo_log import log as logging

from nfv_sched.fit import decide
from nfv_sched.fit.numa import decide as numa_decide
from nfv_sched.fit.numa import fragmentation
from nfv_sched.fit import request as nfv_request
from nfv_sched.scheduler import active_rules
from nfv_sched.scheduler import notes
from nfv_sched.scheduler import visit
from nfv_sched.weights import multiplier

LOG = logging.getLogger(__name__)


class NUMAFragmentationWeigher(multiplier.MultipliedWeigher):
    """Prefer hosts where the guest leaves most capacity for large guests.

    A host weighs the less, the more capacity it loses to the guest, on the
    NUMA nodes that the claim is expected to choose and as a whole.  Capacity
    is the square of the lesser of free CPUs for pinned vCPUs and free memory
    pages, and counts more near free PCI devices.  So NUMA nodes fill up one
    after the other.

    Nova normalises the weights, as those of its own resource weighers.  All
    hosts weigh the same for guests without NUMA topology, which float over the
    CPUs of the host.  Off by default: the multiplier is 0.
    """

    multiplier = 'numa_fragmentation_weight_multiplier'

    def weigh_hosts(self, weighed_obj_list, weight_properties):
        """Return the negative capacity lost on each host; Nova normalises it.

        Hosts that cannot be weighed are as bad as the worst.
        """
        multiplier_of = self.read_multipliers().for_host
        hosts = [weighed.obj for weighed in weighed_obj_list]
        counted = list(map(multiplier_of, hosts))
        # Off by default, and then it must cost nothing.
        if not any(counted):
            return [0.0] * len(hosts)
        losses = self._losses(hosts, counted, weight_properties)
        # 0 would be the best weight of all, as losses are negative weights.
        worst = max([loss for loss in losses if loss is not None], default=0.0)
        return [-(worst if loss is None else loss) for loss in losses]

    def _losses(self, hosts: Sequence, counted: Sequence[float],
                spec_obj) -> list[float | None]:
        """Return the capacity that each host loses; None if irrelevant."""
        losses: list[float | None] = [None] * len(hosts)
        try:
            request_note = notes.note_of(spec_obj)
            request = request_note.read(spec_obj)
            if request.guest is None or request.error is not None:
                return losses
            weighed_request = _WeighedRequest(request_note, request)
        except Exception:
            LOG.exception('The request for server %s cannot be read',
                          getattr(spec_obj, 'instance_uuid', None))
            return losses
        for index, host_state in enumerate(hosts):
            try:
                if counted[index]:
                    losses[index] = weighed_request.lost(host_state)
            except Exception:
                LOG.exception('Host %s cannot be weighed',
                              getattr(host_state, 'host', host_state))
        return losses


class _WeighedRequest:
    """A request of a guest with NUMA topology, with rules and options."""

    def __init__(self, request_note: notes.RequestNote,
                 request: nfv_request.Request):
        self.note = request_note
        self.request = request
        self.terms = active_rules.deciding(request_note, request)
        self.limited = active_rules.limits_claim(request_note, request)
        self.sorting = active_rules.settings(request_note).sorting
        #: Whether Nova's own rules and order determine where the guest goes.
        self.is_plain = self.terms is None or request.plain

    def lost(self, host_state) -> float | None:
        """Return the capacity that a host loses; None if it is refused."""
        request, mapping = self.request, None
        if request.demands:
            mapping = visit.first_mapping(host_state)
        if self.is_plain:  # without a visit, for speed
            host = visit.resources(host_state)
            if host.read() is None or (
                    host.cpu_ratio is None or host.ram_ratio is None):
                return None
            host.evaluate(request, self.sorting)
            # Without a filter that writes limits the claim knows no networks
            # either.
            decision = numa_decide.PLAIN if self.limited else None
        else:
            host_visit = visit.for_host(host_state, self.note)
            decision = host_visit.decision(host_state, request, self.terms)
            if not decision.accepted:
                return None
            host = host_visit.host
        chosen = decide.expected_cells(host, request, mapping, decision)
        if chosen is None:
            return None
        return fragmentation.lost(
            host.topology, request.guest, chosen,
            fragmentation.nodes_with_devices(host.pools))
