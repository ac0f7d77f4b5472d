# SPDX-License-Identifier: Apache-2.0
"""Keep concurrent requests from claiming the same ports and rules of a host.

Filters run long before Nova claims a host, and other requests of this process
may have counted on the same free ports of the virtual switch and security
group rules.  So right before Nova claims a host, the request checks again and
reserves what it takes in :mod:`nfv_sched.limits.reservations`.
"""

from collections.abc import Callable
import functools
import math
import typing as ty
import weakref

from oslo_log import log as logging

from nfv_sched.limits import decide
from nfv_sched.limits import reservations
from nfv_sched.nova import scheduler
from nfv_sched.scheduler.limits_note import NetworkNote
from nfv_sched.scheduler.notes import note_of
from nfv_sched.scheduler.notes import RequestNote


LOG = logging.getLogger(__name__)


class Contested(list):
    """Allocation candidates of a host that other requests may fill.

    Right before Nova claims the first allocation candidate of a host, it tests
    whether there are any, by the truth value of the list.  If that is false,
    it continues with the next host.  Nova has no other hook there.

    :ivar network: the network note of the request
    :ivar may_claim: returns whether Nova may claim the host
    """

    __slots__ = ('network', 'may_claim')

    def __init__(self, candidates: ty.Iterable, network: NetworkNote,
                 may_claim: Callable[[], bool]):
        super().__init__(candidates)
        self.network = network
        self.may_claim = may_claim

    def __bool__(self) -> bool:
        if not len(self):
            return False
        try:
            return self.may_claim()
        # Nova does not expect an error where it tests a list. Without this
        # check limits can be exceeded by what requests claim at once; with a
        # ledger Placement still refuses that.
        except Exception:
            LOG.exception('Room on a host cannot be taken; Nova claims it '
                          'all the same')
            return True


def _take(network: NetworkNote, reference: weakref.ref) -> bool:
    """Reserve a request's ports and rules on the host that Nova will claim.

    Only servers that this process places are known here; Placement checks the
    rest.

    :param reference: weak reference to the HostState; a strong one would keep
        it longer than its request
    :returns: whether there is enough, so that Nova may claim the host
    """
    host_state = reference()
    if host_state is None or network.instance is None:
        return True
    note = network.note
    if network.instance in note.placed:
        return True  # Nova looks for alternates
    # Nova does not tell that a claim failed. It only goes on to the next host.
    if note.taken and note.taken[-1][1] == network.instance:
        # Placement has refused the host before this one.
        network.recent.release(*note.taken.pop())
    ports, rules = [
        (network.by_neutron(each, host_state),
         network.in_ledger(each, host_state))
        if each in network.counted else (math.inf, None)
        for each in decide.QUANTITIES]
    answer = None
    if ports[1] is not None or rules[1] is not None:
        answer = reservations.LedgerBalance(
            network.ledgers.queried_at, network.ledgers.answered_at,
            ports[1], rules[1])
    elif not network.fresh:
        return True
    network.tried_hosts.add(host_state.host)
    available = network.recent.take(
        network.snapshot if network.fresh else None, host_state.host,
        network.instance, network.demand, ports[0], rules[0],
        reference, answer)
    if available is None:
        note.taken.append((host_state.host, network.instance))
        return True
    for quantity, amount in zip(decide.QUANTITIES, available):
        reason = decide.decide(
            quantity, network.demand, network.limits.for_host(host_state),
            amount)
        if reason is not None and quantity in network.counted:
            note.rejected.append((host_state.host, reason))
            break
    # Nova gives up after this host, and undoes the claims of the request's
    # other servers.
    if network.passed <= network.tried_hosts:
        release(note)
        network.lost_last_host = True
    return False


def release(request_note: RequestNote) -> None:
    """Cancel all reservations of a request.

    To be called when no host is left for a server: the request fails, and Nova
    undoes its other servers, too.
    """
    reserved = request_note.taken
    if request_note.instance in request_note.placed:
        return  # the server is placed; Nova filters again for alternates
    network = request_note.part(NetworkNote)
    for host, instance in reserved:
        network.recent.release(host, instance)
    request_note.taken = []


class _Rememberer(scheduler.ConsumeListener):
    """A listener that adds each server that Nova places to ``recent``."""

    __slots__ = ()

    def after_placed(self, host_state, spec_obj):
        """Record the ports and rules of the server on the host."""
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


def contest(host_state, network: NetworkNote) -> None:
    """Make the request reserve ports and rules right before Nova's claim.

    When Nova has placed the server there, they are recorded as placed.

    :param host_state: ``nova.scheduler.host_manager.HostState`` that passes
    """
    candidates = host_state.allocation_candidates
    # A filter of another package may have put a plain list there since. No
    # truth test here: it would take the host.
    if candidates.__class__ is Contested and candidates.network is network:
        return
    host_state.allocation_candidates = Contested(
        candidates, network,
        functools.partial(_take, network, weakref.ref(host_state)))
    scheduler.when_placed(host_state, _REMEMBERER)
