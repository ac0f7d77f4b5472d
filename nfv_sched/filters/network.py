# SPDX-License-Identifier: Apache-2.0
"""Define the base class of the filters that limit network load on a host.

That is the ports of its virtual switch, and their security group rules.
"""

import abc
import functools
import math

from nfv_sched.base import reasons
from nfv_sched.filters import base
from nfv_sched.fit.numa import decide
from nfv_sched.limits import allowance as network_limits_allowance
from nfv_sched.limits.demand import NetworkDemand
from nfv_sched.limits import options as network_limits
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


class NetworkLimitFilter(base.NFVHostFilter, metaclass=abc.ABCMeta):
    """Refuse hosts that carry too many ports, or security group rules.

    Each subclass counts one of them.  The usage of a host is what Neutron has
    bound to it and what this process has placed there since.  With
    ``[nfv_sched] ledger = placement``, the ledger in Placement's answer counts
    instead on hosts that have one; what the guest takes is then added to the
    allocation candidates, and Placement checks it again at the claim.
    """

    #: What is counted.
    counted: network_limits_allowance.Quantity

    def __init__(self):
        super().__init__()
        figures.process_sources()
        scheduler.watch_requests(
            figures.placement_asked, figures.placement_answered,
            explain_lost_host)

    def is_broken(self, request):
        """Return whether limits cannot be kept."""
        return features.is_broken(features.Feature.LIMITS)

    @abc.abstractmethod
    def room(self, limits: network_limits.Limits) -> tuple[float, float]:
        """Return the limit of a host, and the part of it for Neutron's usage.

        Neutron does not show the physical ports of a switch, so the second
        number is less by these.
        """

    @abc.abstractmethod
    def guest_refusal(
        self, demand: NetworkDemand, limits: network_limits.Limits,
    ) -> reasons.Reason | None:
        """Return why a new guest exceeds a limit of guests, if it does."""

    def is_picky(self, limits: network_limits.Limits) -> bool:
        """Return whether :meth:`host_refusal` can refuse with these limits."""
        return False

    def host_refusal(
        self, limits: network_limits.Limits, host_usage: usage.HostUsage,
    ) -> reasons.Reason | None:
        """Return why a host takes no guests at all; None if it takes some."""
        return None

    def prepare(self, request, request_note):
        """Return the ``FreeQuantity`` of the hosts."""
        network = figures.for_request(request_note, request)
        free_quantity = network_limits_allowance.FreeQuantity(
            network, self.counted, scheduler.PerAggregates(
                functools.partial(self._allowance, network)))
        # A request that takes nothing cannot be kept from a host right before
        # its claim either.
        if free_quantity.need:
            network.rooms[self.counted.resource_class] = free_quantity
        return free_quantity

    def decide(self, host_state, request, request_note, prepared):
        """Decide about one host; see the class."""
        free_quantity = prepared
        allowance = free_quantity.allowances.for_host(host_state)
        if allowance.reason is not None:
            return decide.Decision(False, allowance.reason, ())
        if not free_quantity.need:
            return _ACCEPTED
        shown = free_quantity.shown.get(host_state.host, usage.NO_USAGE)
        own = free_quantity.own_on(host_state) if free_quantity.own else None
        # A server that is on the host already may stay, as with a resize.
        if own is None and allowance.picky:
            reason = self.host_refusal(allowance.limits, shown)
            if reason is not None:
                return decide.Decision(False, reason, ())
        free = free_quantity.left(host_state, allowance, shown, own)
        if free < free_quantity.need:
            return decide.Decision(False, functools.partial(
                free_quantity.full, allowance, free), ())
        # From here to the claim other requests of this process may take the
        # same ports.
        contention.contest(host_state, free_quantity.network)
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

    def _allowance(self, network: NetworkNote,
                   host_state) -> network_limits_allowance.Allowance:
        """Return what the limits of a host, by its aggregates, allow."""
        limits = network.limits.for_host(host_state)
        if self._is_shadowed(network.note):
            # Asked only by concurrent requests: see contention.
            return network_limits_allowance.Allowance(
                None, limits, math.inf, math.inf, False, counts=False)
        reason = None
        # A server that runs must stay movable when a limit of guests is
        # lowered.
        if not network.request.is_move:
            reason = self.guest_refusal(network.demand, limits)
        # Without data from Neutron the guest's rules are not known, but its
        # ports are.
        need = self.counted.need(network.demand)
        if reason is None and network.deny and (
                need or network.demand.vswitch_ports):
            reason = functools.partial(
                self._stale_reason, need, network.snapshot)
        limit, room = self.room(limits)
        return network_limits_allowance.Allowance(
            reason, limits, limit, room if network.fresh else math.inf,
            network.fresh and self.is_picky(limits))

    def _stale_reason(self, need: int,
                      snapshot: usage.Snapshot | None) -> reasons.Reason:
        return reasons.Reason(
            self.counted.order, self.counted.noun,
            f'{need} needed' if need else "those of the server's ports needed",
            'no figures from Neutron' if snapshot is None else
            f'the figures from Neutron are {snapshot.age():.0f} s old')

    def _allowed(self, what: str, need: int, most: float) -> reasons.Reason:
        """Return the reason for a guest beyond a limit for one guest."""
        return reasons.Reason(
            self.counted.order, what, f'{need} needed',
            f'at most {most:.0f} allowed', int(most), own=True)
