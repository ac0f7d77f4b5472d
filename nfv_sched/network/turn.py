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
"""Requests that are decided at the same time take turns at a host.

Filters run long before Nova claims a host.  By then others may have taken the
room that was found; the claim that this process keeps in mind
(:mod:`nfv_sched.network.recent`) has to be made right before Nova's own.
"""

from collections.abc import Callable
import math
import weakref

from nfv_sched.network import recent
from nfv_sched import reasons
from nfv_sched import refusals
from nfv_sched.request import RequestNote

Refusal = Callable[[float], reasons.Reason]


class Contested(list):
    """Allocation candidates of a host that others may fill meanwhile.

    Nova looks whether there are any right before it claims the first.  Many
    requests at once have all found the same room by then; here each takes it,
    or finds it gone, in which case the host has no candidates any more and
    Nova goes on to the next.  If it was the last, the request is refused with
    the reason, for which Nova has no place after that.

    Only what this process places is known.  The rest is up to Placement.

    :ivar network: what is known for the request
    :ivar ports: ports that are left on the host without what Neutron does not
        show; infinity if that does not count
    :ivar rules: the same of rules
    :ivar ledger_ports: ports that its ledger had left by Placement's answer;
        None if the guest is not held to that
    :ivar ledger_rules: the same of rules
    :ivar no_ports: why the host is refused, from the ports that are left
    :ivar no_rules: the same of rules
    """

    __slots__ = ('network', 'ports', 'rules', 'ledger_ports', 'ledger_rules',
                 'no_ports', 'no_rules', '_host_state')

    def __init__(self, candidates, host_state, network):
        super().__init__(candidates)
        self.network = network
        self.ports = self.rules = math.inf
        self.ledger_ports: int | None = None
        self.ledger_rules: int | None = None
        self.no_ports: Refusal | None = None
        self.no_rules: Refusal | None = None
        # Not the other way round too: a host would not go with its request.
        self._host_state = weakref.ref(host_state)

    def __bool__(self):
        return len(self) > 0 and self._take()

    def _take(self) -> bool:
        network, host_state = self.network, self._host_state()
        answer = self._answer()
        if host_state is None or network.instance is None or not (
                network.fresh or answer):
            return True
        note = network.note
        if network.instance in note.placed:
            return True  # Nova looks for alternates
        if note.taken and note.taken[-1][1] == network.instance:
            # Placement has refused the host before this one.
            network.recent.release(*note.taken.pop())
        network.asked.add(host_state.host)
        left = network.recent.take(
            network.snapshot if network.fresh else None, host_state.host,
            network.instance, network.demand, self.ports, self.rules,
            self._host_state, answer)
        if left is None:
            note.taken.append((host_state.host, network.instance))
            return True
        ports, rules = left
        if ports < network.demand.vswitch_ports and self.no_ports is not None:
            note.rejected.append((host_state.host, self.no_ports(ports)))
        elif self.no_rules is not None:
            note.rejected.append((host_state.host, self.no_rules(rules)))
        if network.passed <= network.asked:
            give_back(note)
            if note.index == 0 and network.filter:
                refusals.tell(network.filter, note, 0)
        return False

    def _answer(self) -> recent.Answer | None:
        """What Placement said of the ledger of the host."""
        if self.ledger_ports is None and self.ledger_rules is None:
            return None
        ledgers = self.network.ledgers
        return recent.Answer(ledgers.asked, ledgers.answered,
                             self.ledger_ports, self.ledger_rules)


def give_back(request_note: RequestNote) -> None:
    """No host is left for a server: the others of its request go, too.

    :param request_note: the request's note
    """
    taken = request_note.taken
    if request_note.instance in request_note.placed:
        return  # Nova decides once more when the last server is placed
    for host, instance in taken:
        request_note.sources.recent.release(host, instance)
    request_note.taken = []


def contest(host_state, network) -> Contested:
    """Let the guest take its claim on a host right before Nova does.

    :param host_state: ``nova.scheduler.host_manager.HostState`` that passes
    :param network: what is known for the request
    """
    candidates = host_state.allocation_candidates
    if candidates.__class__ is Contested and candidates.network is network:
        return candidates
    contested = host_state.allocation_candidates = Contested(
        candidates, host_state, network)
    return contested
