# SPDX-License-Identifier: Apache-2.0
"""Filter hosts by NUMA topology, instead of Nova's NUMATopologyFilter."""

from nfv_sched.base import reasons
from nfv_sched.filters import base
from nfv_sched.fit.numa import decide
from nfv_sched.nova import features
from nfv_sched.scheduler import active_rules
from nfv_sched.scheduler import visit

_NO_CANDIDATES = decide.Decision(False, reasons.Reason(
    reasons.HOST, 'Placement', 'an allocation candidate needed'))


class NFVTopologyFilter(base.NFVHostFilter):
    """Accept hosts on whose NUMA nodes the guest fits.

    A drop-in for Nova's ``NUMATopologyFilter``: it accepts the same hosts, in
    a fraction of the time, and hands the same limits to the claim on the
    compute node.  It differs in four points.

    * ``nfv:numa_node.{n}`` is enforced: guest NUMA node n runs on that host
      NUMA node, or the host is refused.
    * For every move Nova assumes that the server uses a tunnelled network.  A
      host that only fails this assumption is accepted.
    * A host on which Nova's search would take minutes is refused.
    * So is one of whose devices the claim would take a PF and VFs of the same
      card: it would fail, and the host lose these VFs.

    A guest with a NUMA topology needs a host with one.
    """

    def concerns(self, request):
        return request.guest is not None or bool(request.rules) or (
            request.may_take_card)

    def is_broken(self, request):
        return features.hides_extra_specs() or (
            base.predictions_are_broken(request)) or (
            features.is_broken(features.Feature.POLICIES) and any(
                rule.ours for rule in request.rules))

    def prepare(self, request, request_note):
        return active_rules.for_request(request_note, request)

    def decide(self, host_state, request, request_note, prepared):
        if request.guest is not None and (
                host_state.numa_topology is not None):
            # NUMATopologyFilter keeps the candidates that fit
            # (CandidateFilterMixin), so without any it refuses the host.
            if not host_state.allocation_candidates:
                return _NO_CANDIDATES
        # The usual request, at a fraction of the time.
        if request.plain:
            return visit.judge_once(
                host_state, request_note, request, prepared)
        return visit.for_host(host_state, request_note).judge(
            host_state, request, prepared)
