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
"""What the filters of network limits have in common."""

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
    """What the limits of hosts with the same aggregates mean for a guest.

    :ivar reason: why the guest is not for them, or None
    :ivar limits: all limits
    :ivar room: what is left of the filter's limit without guests; infinity
        also if the figures from Neutron are not believed
    :ivar full: why a host is refused, from what is left on it
    :ivar picky: whether some of them take no guests, whatever these need
    """

    reason: reasons.Lazy | None
    limits: network_limits.Limits
    room: float
    full: turn.Refusal
    picky: bool


class _Common:
    """What all hosts have in common in one pass of a filter.

    :ivar network: what is known for the request
    :ivar need: how much the guest takes
    :ivar shown: host name -> what Neutron shows; empty if it is not believed
    :ivar own: names of the hosts on which the guest may be already, if so
    :ivar recent: names of the hosts on which anything was placed lately
    :ivar allowances: what the limits of each host mean
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
    """Refuse hosts that carry too much of something.

    What a host carries is known from Neutron, and from what this process has
    placed since.  With ``[nfv_sched] ledger = placement`` what the guest takes
    is added to the allocation candidates, and Placement has the last word:
    where a host has a ledger, what Placement has just said of that counts.
    """

    #: Resource class of the ledger.
    resource_class: str

    #: How much a host carries, from its ``usage.HostUsage``.
    carried: ty.Callable[[usage.HostUsage], int]

    #: Place of the reasons, and what they call it.
    order: int
    noun: str

    def __init__(self):
        super().__init__()
        visit.watch_placement()

    @abc.abstractmethod
    def need(self, demand: network_demand.NetworkDemand) -> int:
        """How much a guest takes."""

    @abc.abstractmethod
    def own(self, guest: usage.Guest) -> int:
        """How much of what a host carries is a guest's."""

    @abc.abstractmethod
    def unseen(self, ports: int, rules: int) -> int:
        """How much Neutron does not show yet."""

    @abc.abstractmethod
    def room(self, limits: network_limits.Limits) -> tuple[float, float]:
        """The limit of a host, and what is left of it without guests."""

    @abc.abstractmethod
    def guest_refusal(
        self, demand: network_demand.NetworkDemand,
        limits: network_limits.Limits,
    ) -> reasons.Reason | None:
        """Why a new guest is not for a host, whatever it carries."""

    def is_picky(self, limits: network_limits.Limits) -> bool:
        """Whether :meth:`host_refusal` can refuse any host."""
        return False

    def host_refusal(
        self, limits: network_limits.Limits, shown: usage.HostUsage,
    ) -> reasons.Reason | None:
        """Why a host takes no guests, whatever they need."""
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
        """What the limits of a host mean for the guest."""
        limits = network.limits.of(host_state)
        reason = None
        if not network.request.is_move:
            reason = self.guest_refusal(network.demand, limits)
        # Without figures the rules are not known, but the ports are.
        if reason is None and network.deny and (
                need or network.demand.vswitch_ports):
            reason = functools.partial(self._stale, need, network.snapshot)
        limit, room = self.room(limits)
        return _Allowance(
            reason, limits, room if network.fresh else math.inf,
            functools.partial(self._full, need, limit),
            network.fresh and self.is_picky(limits))

    def _refusal(self, host_state, common: _Common) -> reasons.Lazy | None:
        """Why a host is refused; None, with all that follows, if not."""
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
        """How much the guest has on a host; None if it is not there."""
        guest = common.network.own_on(host_state)
        return None if guest is None else self.own(guest)

    def _by_ledger(self, host_state, common: _Common, free: float,
                   own: int | None) -> float:
        """How much is left on a host if its ledger counts.

        If that is enough, the guest claims what it takes.

        :param free: what is left otherwise
        :param own: what the guest has there
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
            # Placement would count it twice, as it does with CPUs, until the
            # resize is confirmed. It adds nothing, so it is not refused for
            # that.
            if min(free - own, in_ledger - perhaps) >= need:
                names.claim(host_state, self.resource_class, need)
            return free
        if left >= need:
            names.claim(host_state, self.resource_class, need)
        return left

    def _standing(self, common: _Common, host_state) -> turn.Standing:
        """How a host that has passed stands when Nova comes to it."""
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
        """A guest asks for more than a guest may have."""
        return reasons.Reason(
            self.order, what, f'{need} needed', f'at most {most:.0f} allowed',
            int(most), own=True)
