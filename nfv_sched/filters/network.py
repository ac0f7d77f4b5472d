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
import functools
import math

from nfv_sched.filters import base
from nfv_sched import load
from nfv_sched.network import ledger
from nfv_sched.network import limits as network_limits
from nfv_sched.network import usage
from nfv_sched.numa import steering
from nfv_sched import reasons

_ACCEPTED = steering.Decision(True)


class NetworkLimitFilter(base.NFVHostFilter, metaclass=abc.ABCMeta):
    """Refuse hosts that carry too much of something.

    What a host carries is known from Neutron, and from what this process has
    placed since.  With ``[nfv_sched] ledger = placement`` what the guest takes
    is added to the allocation candidates, and Placement has the last word;
    before the last host is refused for want of room in its ledger, the ledger
    is read anew.
    """

    #: Resource class of the ledger.
    resource_class: str

    #: Place of the reasons, and what they call it.
    order: int
    noun: str

    @abc.abstractmethod
    def need(self, network: load.NetworkNote) -> int:
        """How much the guest takes."""

    @abc.abstractmethod
    def room(
        self, limits: network_limits.Limits, shown: usage.HostUsage,
        ports: int, rules: int, instance: str | None,
    ) -> tuple[int, int, float]:
        """What a host carries without the guest, and how much it may.

        :param shown: what Neutron shows
        :param ports: ports that it does not show yet
        :param rules: rules that it does not show yet
        :param instance: UUID of the guest's server
        :returns: what it carries, what the guest has there already, limit
        """

    @abc.abstractmethod
    def guest_refusal(
        self, network: load.NetworkNote, limits: network_limits.Limits,
    ) -> reasons.Reason | None:
        """Why a new guest is not for this host, whatever it carries."""

    def host_refusal(
        self, limits: network_limits.Limits, shown: usage.HostUsage,
    ) -> reasons.Reason | None:
        """Why the host takes no guests, whatever they need."""
        return None

    def reconsiders(self, request_note):
        """Whether the ledgers were read again."""
        return request_note.network is not None and (
            request_note.network.renew())

    def decide(self, host_state, request, request_note):
        """Decide about one host; see the class."""
        network = load.of(request_note, request)
        limits = network.limits.of(host_state)
        if not request.is_move:
            reason = self.guest_refusal(network, limits)
            if reason is not None:
                return steering.Decision(False, reason)
        need = self.need(network)
        if not need:
            return _ACCEPTED
        if network.deny:
            return steering.Decision(False, functools.partial(
                self._stale, need, network.snapshot))
        free, limit, own = math.inf, math.inf, 0
        if network.fresh:
            shown, ports, rules = load.carried(
                network.snapshot, host_state)
            reason = self.host_refusal(limits, shown)
            if reason is not None:
                return steering.Decision(False, reason)
            carried, own, limit = self.room(
                limits, shown, ports, rules, request_note.instance)
            free = limit - carried
            if request_note.index:
                free -= need * load.placed(host_state, network)
        if network.published(host_state):
            roomy = self._in_ledger(host_state, network, need, free, own)
        else:
            roomy = free >= need
        if not roomy:
            return steering.Decision(False, functools.partial(
                self._full, need, free, limit))
        load.watch(host_state, network)
        return _ACCEPTED

    def _in_ledger(self, host_state, network: load.NetworkNote, need: int,
                   free: float, own: int) -> bool:
        """Whether a host may have room in its ledger, and then claim it.

        :param free: how much is left by what is known otherwise
        :param own: how much of it the guest has on the host already
        """
        if own:
            # Placement would count it twice, as it does with CPUs, until the
            # resize is confirmed. It adds nothing, so it is not refused for
            # that.
            if free < need:
                return False
            if free - own >= need:
                ledger.claim(host_state, self.resource_class, need)
            return True
        room = network.room(self.resource_class, need)
        known_full = room is not None and (
            ledger.provider_uuid(host_state.uuid) not in room)
        if known_full or (free < need and not network.renewed):
            network.doubted = True
            return False
        ledger.claim(host_state, self.resource_class, need)
        return True

    def _full(self, need: int, free: float, limit: float) -> reasons.Reason:
        left = max(int(free), 0) if math.isfinite(free) else None
        if left is None or left >= need:
            # What the ledger says; it knows what others have placed.
            have = f'fewer than {need} free'
            left = 0
        else:
            have = f'{left} of {limit:.0f} free'
        return reasons.Reason(
            self.order, self.noun, f'{need} needed', have, left)

    def _stale(self, need: int,
               snapshot: usage.Snapshot | None) -> reasons.Reason:
        return reasons.Reason(
            self.order, self.noun, f'{need} needed',
            'no figures from Neutron' if snapshot is None else
            f'the figures from Neutron are {snapshot.age():.0f} s old')

    def _allowed(self, what: str, need: int, most: float) -> reasons.Reason:
        """A guest asks for more than a guest may have."""
        return reasons.Reason(
            self.order, what, f'{need} needed', f'at most {most:.0f} allowed',
            int(most))
