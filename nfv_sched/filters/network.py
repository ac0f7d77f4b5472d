# SPDX-License-Identifier: Apache-2.0
"""Define the base class of the filters that limit network load on a host.

That is the ports of its virtual switch, and their security group rules.
"""

import functools

from nfv_sched.base import reasons
from nfv_sched.filters import base
from nfv_sched.fit.numa import decide
from nfv_sched.limits import decide as limits_decide
from nfv_sched.limits import usage
from nfv_sched.nova import features
from nfv_sched.nova import scheduler
from nfv_sched.scheduler import contention
from nfv_sched.scheduler import figures
from nfv_sched.scheduler.limits_note import NetworkNote
from nfv_sched.scheduler.notes import note_of
from nfv_sched.scheduler import refusals

_ACCEPTED = decide.Decision(True)


def explain_lost_host(spec_obj) -> None:
    """Report the reason if other requests filled the last host of this one.

    :raises nova.exception.NoValidHost: see ``refusals.report``
    """
    # Filters report theirs when they refuse; this host has passed them all.
    note = note_of(spec_obj)
    network = note.part(NetworkNote)
    if network is not None and network.lost_last_host and (
            network.filter and note.index == 0):
        refusals.report(network.filter, note, 0)


class NetworkLimitFilter(base.NFVHostFilter):
    """Refuse hosts that carry too many ports, or security group rules.

    Each subclass counts one of them.  The usage of a host is what Neutron has
    bound to it and what this process has placed there since.  With
    ``[nfv_sched] ledger = placement``, the ledger in Placement's answer counts
    instead on hosts that have one; what the guest takes is then added to the
    allocation candidates, and Placement checks it again at the claim.
    """

    #: What is counted.
    counted: limits_decide.Quantity

    def __init__(self):
        super().__init__()
        figures.process_sources()
        scheduler.watch_requests(
            figures.placement_asked, figures.placement_answered,
            explain_lost_host)

    def is_broken(self, request):
        """Return whether limits cannot be kept."""
        return features.is_broken(features.Feature.LIMITS)

    def prepare(self, request, request_note):
        """Return the network note of the request."""
        network = figures.for_request(request_note, request)
        # A request that takes nothing cannot be kept from a host right before
        # its claim either.
        if self.counted.need(network.demand):
            network.counted.add(self.counted)
        return network

    def decide(self, host_state, request, request_note, prepared):
        """Decide about one host; see the class."""
        network, counted = prepared, self.counted
        demand, limits = network.demand, network.limits.for_host(host_state)
        reason = None
        if not request.is_move:
            reason = limits_decide.refuse_server(counted, demand, limits)
        need = counted.need(demand)
        # Without data from Neutron the guest's rules are not known, but its
        # ports are.
        if reason is None and network.deny and (need or demand.vswitch_ports):
            reason = functools.partial(
                self._stale_reason, need, network.snapshot)
        if reason is not None:
            return decide.Decision(False, reason, ())
        if not need:
            return _ACCEPTED
        shown = network.shown.get(host_state.host, usage.NO_USAGE)
        own = network.own_on(host_state)
        # A server that is on the host already may stay, as with a resize.
        services = shown.dhcp_servers + shown.routers if own is None else 0
        reason = limits_decide.decide(
            counted, demand, limits, network.left(counted, host_state),
            services)
        if reason is not None:
            return decide.Decision(False, reason, ())
        # From here to the claim other requests of this process may take the
        # same ports.
        contention.contest(host_state, network)
        return _ACCEPTED

    def _filter_hosts(self, host_states, request, request_note):
        passed, refused = super()._filter_hosts(
            host_states, request, request_note)
        network = request_note.part(NetworkNote)
        if network is not None and not self._is_shadowed(request_note):
            network.filter = type(self).__name__
            # When all of these are lost to other requests, the reason can be
            # told; see contention.
            network.passed = {host_state.host for host_state in passed}
        return passed, refused

    def _stale_reason(self, need: int,
                      snapshot: usage.Snapshot | None) -> reasons.Reason:
        return reasons.Reason(
            self.counted.order, self.counted.noun,
            f'{need} needed' if need else "those of the server's ports needed",
            'no figures from Neutron' if snapshot is None else
            f'the figures from Neutron are {snapshot.age():.0f} s old')
