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
"""Keep concurrent requests from claiming the same room on a host.

That is room for ports of the virtual switch and for security-group rules.

Filters run long before Nova claims a host, and other requests of this process
may have found the same room.  So right before Nova claims a host, the request
checks again and marks its part of the room as taken in
:mod:`nfv_sched.network.recent`.
"""

import weakref

from nfv_sched.ledger import names
from nfv_sched.network import contested
from nfv_sched.network.note import NetworkNote
from nfv_sched.network import quantity
from nfv_sched.network import recent
from nfv_sched.nova import scheduler
from nfv_sched import refusals
from nfv_sched.request import note_of
from nfv_sched.request import RequestNote


def _take(network, reference: weakref.ref) -> bool:
    """Take a request's part of the room on the host that Nova is to claim.

    If other requests have taken too much by now, and it was the last host, the
    request is refused here with the reason, as Nova's own message would have
    none.  Only what this process places is known; the rest is left to
    Placement.

    :param network: the network note of the request
    :param reference: to the HostState
    :returns: whether there is room
    :raises nova.exception.NoValidHost: if no host is left
    """
    host_state = reference()
    if host_state is None or network.instance is None:
        return True
    note = network.note
    if network.instance in note.placed:
        return True  # Nova looks for alternates
    if note.taken and note.taken[-1][1] == network.instance:
        # Placement has refused the host before this one.
        network.recent.release(*note.taken.pop())
    rooms = [network.rooms.get(name) for name in (names.PORTS, names.RULES)]
    ports, rules = [quantity.NO_LIMIT if room is None
                    else room.standing(host_state) for room in rooms]
    answer = None
    if ports.in_ledger is not None or rules.in_ledger is not None:
        answer = recent.Answer(
            network.ledgers.asked, network.ledgers.answered,
            ports.in_ledger, rules.in_ledger)
    elif not network.fresh:
        return True
    network.asked.add(host_state.host)
    left = network.recent.take(
        network.snapshot if network.fresh else None, host_state.host,
        network.instance, network.demand, ports.left, rules.left,
        reference, answer)
    if left is None:
        note.taken.append((host_state.host, network.instance))
        return True
    of_ports, of_rules = rooms
    if left[0] < network.demand.vswitch_ports and of_ports is not None:
        note.rejected.append((host_state.host, of_ports.full(
            of_ports.allowances.of(host_state), left[0])))
    elif of_rules is not None:
        note.rejected.append((host_state.host, of_rules.full(
            of_rules.allowances.of(host_state), left[1])))
    if network.passed <= network.asked:
        give_back(note)
        if note.index == 0 and network.filter:
            refusals.tell(network.filter, note, 0)
    return False


def give_back(request_note: RequestNote) -> None:
    """Give back all room that a request has taken.

    To be called when no host is left for a server: the request fails, and Nova
    undoes its other servers, too.

    :param request_note: the note of the request
    """
    taken = request_note.taken
    if request_note.instance in request_note.placed:
        return  # the server is placed; Nova filters again for alternates
    network = request_note.part(NetworkNote)
    for host, instance in taken:
        network.recent.release(host, instance)
    request_note.taken = []


class _Rememberer(scheduler.Watcher):
    """Adds each server that Nova places to ``recent``."""

    __slots__ = ()

    def after_placed(self, host_state, spec_obj):
        """Remember what the server that was placed takes on the host."""
        note = note_of(spec_obj)
        network = note.part(NetworkNote)
        instance = spec_obj.instance_uuid
        network.recent.add(
            host_state.host, instance, network.demand,
            network.request.project or '', network.request.is_move,
            network.snapshot)
        note.taken.append((host_state.host, instance))
        note.placed.add(instance)


_REMEMBERER = _Rememberer()


def contest(host_state, network) -> None:
    """Have the request take room on a host right before Nova claims it.

    When Nova has placed the server there, its ports and security-group rules
    are remembered.

    :param host_state: ``nova.scheduler.host_manager.HostState`` that passes
    :param network: the network note of the request
    """
    candidates = host_state.allocation_candidates
    if candidates.__class__ is contested.Contested and (
            candidates.network is network):
        return
    made = contested.Contested(candidates)
    made.take, made.network = _take, network
    made.host = weakref.ref(host_state)
    host_state.allocation_candidates = made
    scheduler.when_placed(host_state, _REMEMBERER)
