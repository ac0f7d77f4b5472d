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
room that was found.  So each request takes it, in what this process remembers
(:mod:`nfv_sched.network.recent`), right before Nova claims it.
"""

from collections.abc import Callable
import math
import typing as ty
import weakref

from nfv_sched.ledger import names
from nfv_sched.network import recent
from nfv_sched.nova import scheduler
from nfv_sched import reasons
from nfv_sched import refusals
from nfv_sched.request import note_of
from nfv_sched.request import RequestNote

Refusal = Callable[[float], reasons.Reason]


class Standing(ty.NamedTuple):
    """How a host stands with one resource, for the guest of a request.

    :ivar left: what is left by the figures from Neutron, without what they do
        not show yet; infinity if they do not count
    :ivar in_ledger: what its ledger had left by Placement's answer; None if
        the guest is not held to that
    :ivar full: why the host is refused, from what is left
    """

    left: float = math.inf
    in_ledger: int | None = None
    full: Refusal | None = None


_NO_LIMIT = Standing()


class Contested(list):
    """Allocation candidates of a host that others may fill meanwhile.

    Nova looks whether there are any right before it claims the first.  Many
    requests at once have all found the same room by then; here each takes it,
    or finds it gone, in which case the host has no candidates any more and
    Nova goes on to the next.  If it was the last, the request is refused with
    the reason, for which Nova has no place after that.

    Only what this process places is known.  The rest is up to Placement.

    :ivar network: what is known for the request
    :ivar host: weak reference to the host; a strong one would keep it longer
        than its request
    """

    __slots__ = ('network', 'host')

    def __bool__(self):
        return len(self) > 0 and self._take()

    def _take(self) -> bool:
        network, host_state = self.network, self.host()
        if host_state is None or network.instance is None:
            return True
        ports, rules = [
            network.standings[name](host_state)
            if name in network.standings else _NO_LIMIT
            for name in (names.PORTS, names.RULES)]
        answer = None
        if ports.in_ledger is not None or rules.in_ledger is not None:
            answer = recent.Answer(
                network.ledgers.asked, network.ledgers.answered,
                ports.in_ledger, rules.in_ledger)
        elif not network.fresh:
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
            network.instance, network.demand, ports.left, rules.left,
            self.host, answer)
        if left is None:
            note.taken.append((host_state.host, network.instance))
            return True
        if left[0] < network.demand.vswitch_ports and ports.full is not None:
            note.rejected.append((host_state.host, ports.full(left[0])))
        elif rules.full is not None:
            note.rejected.append((host_state.host, rules.full(left[1])))
        if network.passed <= network.asked:
            give_back(note)
            if note.index == 0 and network.filter:
                refusals.tell(network.filter, note, 0)
        return False


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


class _Rememberer(scheduler.Watcher):
    """Remembers what servers take."""

    __slots__ = ()

    def after_placed(self, host_state, spec_obj):
        """The server is on the host, whatever Neutron shows."""
        note = note_of(spec_obj)
        network, instance = note.network, spec_obj.instance_uuid
        network.recent.add(
            host_state.host, instance, network.demand,
            network.request.project or '', network.request.is_move,
            network.snapshot)
        note.taken.append((host_state.host, instance))
        note.placed.add(instance)


_REMEMBERER = _Rememberer()


def contest(host_state, network) -> None:
    """Let the guest take room on a host right before Nova claims it.

    What it takes is remembered as soon as Nova has placed it there.

    :param host_state: ``nova.scheduler.host_manager.HostState`` that passes
    :param network: what is known for the request
    """
    candidates = host_state.allocation_candidates
    if candidates.__class__ is Contested and candidates.network is network:
        return
    contested = Contested(candidates)
    contested.network = network
    contested.host = weakref.ref(host_state)
    host_state.allocation_candidates = contested
    scheduler.when_placed(host_state, _REMEMBERER)
