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
"""Base class of the filters of network limits: ports and rules."""

import abc
import dataclasses
import functools
import math
import typing as ty

from nfv_sched.filters import base
from nfv_sched.ledger import names
from nfv_sched.network import demand as network_demand
from nfv_sched.network import limits as network_limits
from nfv_sched.network import recent
from nfv_sched.network import turn
from nfv_sched.network import usage
from nfv_sched.network import visit
from nfv_sched.nova import scheduler
from nfv_sched.numa import decide
from nfv_sched import reasons
from nfv_sched import request as nfv_request

_ACCEPTED = decide.Decision(True)


@dataclasses.dataclass(frozen=True, slots=True)
class _Allowance:
    """What the limits of hosts with the same aggregates allow a guest.

    :ivar reason: why all these hosts are refused; None if they are not
    :ivar limits: all limits
    :ivar room: the filter's limit less what Neutron does not know, such as
        physical ports; infinity also if the figures from Neutron are too old
    :ivar full: makes the reason for a full host from how much is left there
    :ivar picky: whether :meth:`NetworkLimitFilter.host_refusal` must be asked
    """

    reason: reasons.Lazy | None
    limits: network_limits.Limits
    room: float
    full: turn.Refusal
    picky: bool


class _Common:
    """What is the same for all hosts in one pass of a filter.

    :ivar network: the network note of the request
    :ivar need: how much the guest takes: ports or rules
    :ivar shown: host name -> ``usage.HostUsage``; empty if the figures from
        Neutron are too old
    :ivar own: names of the hosts on which a moved guest may be already
    :ivar recent: names of the hosts on which this process has placed anything
        lately
    :ivar allowances: what the limits of each host allow
    """

    __slots__ = ('network', 'need', 'shown', 'own', 'recent', 'allowances')

    def __init__(
        self, network: visit.NetworkNote, need: int,
        allowances: scheduler.PerAggregates[_Allowance],
    ):
        self.network = network
        self.need = need
        self.shown = network.snapshot.hosts if network.fresh else {}
        self.own = network.own.keys() if network.fresh else ()
        self.recent = network.recent.hosts()
        self.allowances = allowances


class NetworkLimitFilter(base.NFVHostFilter, metaclass=abc.ABCMeta):
    """Refuse hosts that carry too many ports, or too many rules.

    Each subclass counts one of them.  What a host carries is what Neutron
    shows and what this process has placed since.  With ``[nfv_sched] ledger =
    placement``, the ledger in Placement's answer counts instead on hosts that
    have one; what the guest takes is then added to the allocation candidates,
    and Placement checks it again at the claim.
    """

    #: Resource class of the ledger.
    resource_class: str

    #: Gives how much a host carries, from its ``usage.HostUsage``.
    carried: ty.Callable[[usage.HostUsage], int]

    #: ``order`` of the reasons, and how they call what is counted.
    order: int
    noun: str

    def __init__(self):
        super().__init__()
        visit.watch_placement()

    @abc.abstractmethod
    def need(self, demand: network_demand.NetworkDemand) -> int:
        """How much the guest of a request takes.

        :param demand: what it takes of the network
        """

    @abc.abstractmethod
    def own(self, guest: usage.Guest) -> int:
        """How much of what a host carries belongs to one guest.

        :param guest: its ports and rules on the host
        """

    @abc.abstractmethod
    def unseen(self, ports: int, rules: int) -> int:
        """The one of two numbers that this filter counts.

        :param ports: number of ports that a reading does not show
        :param rules: number of rules that a reading does not show
        """

    @abc.abstractmethod
    def room(self, limits: network_limits.Limits) -> tuple[float, float]:
        """The limit of a host, and the limit less what Neutron does not know.

        :param limits: limits of the host
        """

    @abc.abstractmethod
    def guest_refusal(
        self, demand: network_demand.NetworkDemand,
        limits: network_limits.Limits,
    ) -> reasons.Reason | None:
        """Why a new guest exceeds a limit of guests; None if it does not.

        :param demand: what it takes of the network
        :param limits: limits of the host
        """

    def is_picky(self, limits: network_limits.Limits) -> bool:
        """Whether :meth:`host_refusal` can refuse a host with these limits.

        :param limits: limits of the host
        """
        return False

    def host_refusal(
        self, limits: network_limits.Limits, shown: usage.HostUsage,
    ) -> reasons.Reason | None:
        """Why a host takes no new guests, however little they need.

        :param limits: limits of the host
        :param shown: what Neutron has bound to it
        :returns: None if it takes some
        """
        return None

    def decide(self, host_state, request, request_note):
        """Decide about one host; see the class."""
        reason = self._refusal(host_state, self._begin(request, request_note))
        return _ACCEPTED if reason is None else decide.Decision(
            False, reason, ())

    def _pass_all(self, host_states, request, request_note):
        if request.error is not None:
            return super()._pass_all(host_states, request, request_note)
        common = self._begin(request, request_note)
        network = common.network
        network.filter = type(self).__name__
        passed, refused = [], []
        for host_state in host_states:
            try:
                reason = self._refusal(host_state, common)
            except Exception:
                reason = self._unusable(host_state)
            if reason is None:
                passed.append(host_state)
            else:
                refused.append((host_state.host, reason))
        network.passed = {host_state.host for host_state in passed}
        return passed, refused

    def _begin(self, request: nfv_request.Request,
               request_note: nfv_request.RequestNote) -> _Common:
        network = visit.of(request_note, request)
        need = self.need(network.demand)
        common = _Common(network, need, scheduler.PerAggregates(
            functools.partial(self._allowance, network, need)))
        if need:
            network.standings[self.resource_class] = functools.partial(
                self._standing, common)
        return common

    def _allowance(self, network: visit.NetworkNote, need: int,
                   host_state) -> _Allowance:
        """What the limits of a host, by its aggregates, allow the guest."""
        limits = network.limits.of(host_state)
        reason = None
        if not network.request.is_move:
            reason = self.guest_refusal(network.demand, limits)
        # Without figures the guest's rules are not known, but its ports are.
        if reason is None and network.deny and (
                need or network.demand.vswitch_ports):
            reason = functools.partial(self._stale, need, network.snapshot)
        limit, room = self.room(limits)
        return _Allowance(
            reason, limits, room if network.fresh else math.inf,
            functools.partial(self._full, need, limit),
            network.fresh and self.is_picky(limits))

    def _refusal(self, host_state, common: _Common) -> reasons.Lazy | None:
        """Why a host is refused.

        If it is not, the result is None, and the host is prepared for the
        claim.
        """
        allowance = common.allowances.of(host_state)
        if allowance.reason is not None:
            return allowance.reason
        need = common.need
        if not need:
            return None
        network, name = common.network, host_state.host
        shown = common.shown.get(name, usage.NO_USAGE)
        free = allowance.room - self.carried(shown)
        own = self._own(host_state, common) if name in common.own else None
        if own is not None:
            free += own
        elif allowance.picky:
            reason = self.host_refusal(allowance.limits, shown)
            if reason is not None:
                return reason
        if name in common.recent and network.fresh:
            free -= self.unseen(*network.recent.unseen(
                network.snapshot, name, network.instance))
        # A limit that is too low for any guest needs no ledger.
        if network.ledgers is not None and (
                free >= need or need <= allowance.room):
            free = self._by_ledger(host_state, common, free, own)
        if free < need:
            return functools.partial(allowance.full, free)
        turn.contest(host_state, network)
        return None

    def _own(self, host_state, common: _Common) -> int | None:
        """How much the guest has on a host already; None if not there."""
        guest = common.network.own_on(host_state)
        return None if guest is None else self.own(guest)

    def _by_ledger(self, host_state, common: _Common, free: float,
                   own: int | None) -> float:
        """How much is left on a host, by its ledger if it has one.

        If that is enough, what the guest takes is added to the host's
        allocation candidates.

        :param free: what is left by Neutron and this process
        :param own: what the guest has there already; None if it is not there
        """
        network, need = common.network, common.need
        left = in_ledger = network.ledgers.left(
            host_state.uuid, self.resource_class)
        if in_ledger is None:
            return free
        surely = perhaps = 0
        if host_state.host in common.recent:
            unshown = network.recent.unshown(
                host_state.host, network.ledgers.asked,
                network.ledgers.answered, network.instance)
            surely = self.unseen(unshown.ports, unshown.rules)
            perhaps = self.unseen(unshown.more_ports, unshown.more_rules)
            left = recent.left(in_ledger, surely, perhaps, free, need)
        if own:
            # Until a resize on the same host is confirmed, Placement counts
            # the guest twice, as it does with CPUs. It takes no more than
            # before, so it is not refused if there is no room for that.
            if min(free - own, in_ledger - perhaps) >= need:
                names.ask(host_state, self.resource_class, need)
            return free
        if left >= need:
            names.ask(host_state, self.resource_class, need)
        return left

    def _standing(self, common: _Common, host_state) -> turn.Standing:
        """What is left on a host that has passed, right before its claim."""
        network, name = common.network, host_state.host
        allowance = common.allowances.of(host_state)
        left = allowance.room - self.carried(
            common.shown.get(name, usage.NO_USAGE))
        own = self._own(host_state, common) if name in common.own else None
        in_ledger = None
        if network.ledgers is not None and not own:
            in_ledger = network.ledgers.left(
                host_state.uuid, self.resource_class)
        return turn.Standing(left + (own or 0), in_ledger, allowance.full)

    def _full(self, need: int, limit: float, free: float) -> reasons.Reason:
        left = max(int(free), 0)
        # The ledger may have a limit that this process does not have.
        have = f'{left} of {limit:.0f} free' if math.isfinite(limit) else (
            f'{left} free')
        return reasons.Reason(
            self.order, self.noun, f'{need} needed', have, left)

    def _stale(self, need: int,
               snapshot: usage.Snapshot | None) -> reasons.Reason:
        return reasons.Reason(
            self.order, self.noun, f'{need} needed' if need else
            "those of the guest's ports needed",
            'no figures from Neutron' if snapshot is None else
            f'the figures from Neutron are {snapshot.age():.0f} s old')

    def _allowed(self, what: str, need: int, most: float) -> reasons.Reason:
        """The reason for a guest that asks for more than a guest may have.

        :param what: what is limited
        :param need: how much it asks for
        :param most: the limit
        """
        return reasons.Reason(
            self.order, what, f'{need} needed', f'at most {most:.0f} allowed',
            int(most), own=True)
