# SPDX-License-Identifier: Apache-2.0
"""Define the base class of the filters that limit network load on a host."""

from nfv_sched.filters import base
from nfv_sched.fit.numa import decide
from nfv_sched.limits import decide as limits_decide
from nfv_sched.nova import features
from nfv_sched.nova import scheduler
from nfv_sched.scheduler import limits_note

_ACCEPTED = decide.Decision(True)


class NetworkLimitFilter(base.NFVHostFilter):
    """Refuse hosts that carry too many ports, or security group rules.

    Each subclass counts one of them.  What a server takes is added to the
    allocation candidates of hosts with a ledger in Placement, which checks it
    at the claim; hosts whose ledger has too little by Placement's answer are
    refused before.  Hosts without one are accepted.
    """

    counted: limits_decide.Quantity

    def is_broken(self, request):
        return features.is_broken(features.Feature.LIMITS)

    def prepare(self, request, request_note):
        network = limits_note.for_request(request_note, request)
        return network, network.demand

    def decide(self, host_state, request, request_note, prepared):
        (network, demand), counted = prepared, self.counted
        limits = network.limits.for_host(host_state)
        reason = None
        if not request.is_move:
            reason = limits_decide.refuse_server(counted, demand, limits)
        if reason is None and counted.need(demand):
            services = 0 if network.is_on(host_state) else (
                network.services(host_state))
            reason = limits_decide.decide(
                counted, demand, limits, network.left(counted, host_state),
                services)
            scheduler.when_placed(host_state, limits_note.REMEMBERER)
        return _ACCEPTED if reason is None else decide.Decision(
            False, reason, ())
