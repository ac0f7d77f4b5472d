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
"""A request meets what the network puts on a host.

The counterpart of ``placement`` for ports and security-group rules: the
filters of limits are thin, what they share is here.  It is worked out once per
request and kept with it, so that all filters see the same snapshot.
"""

from collections.abc import Callable
from collections.abc import Mapping
import functools
import math
import time
import typing as ty
import weakref

from nfv_sched.network import claims
from nfv_sched.network import demand as network_demand
from nfv_sched.network import ledger_reader
from nfv_sched.network import limits as network_limits
from nfv_sched.network import neutron
from nfv_sched.network import usage
from nfv_sched import nova_compat
from nfv_sched.numa import pci
from nfv_sched import reasons
from nfv_sched.request import note_of
from nfv_sched.request import Request
from nfv_sched.request import RequestNote

CONF = nova_compat.CONF

_WATCHED = '_nfv_sched_watched'

_ALL_SHOWN = claims.Unshown()

Refusal = Callable[[float], reasons.Reason]


class NetworkNote:
    """What is known of the network's load for one request.

    :ivar request: the request as read when this was made
    :ivar snapshot: latest figures from Neutron, however old; None if none
    :ivar fresh: whether they are believed
    :ivar deny: no host is accepted without fresh figures
    :ivar demand: what the guest takes
    :ivar limits: limits of the hosts
    :ivar ledgers: what Placement said of the ledgers, None if that is not
        known or not used
    :ivar host: where Nova has the server; empty if that is not known, None if
        nobody has asked yet
    :ivar note: the request's note
    :ivar passed: names of the hosts that passed the last filter of limits
    :ivar asked: those that Nova has come to for its claim
    :ivar explain: to be called if none of them has room any more; raises if
        the reason may be told
    :ivar attempt: weak reference to the host for which the guest has taken its
        claim, and the number of servers on it then
    """

    __slots__ = ('note', 'request', 'instance', 'snapshot', 'fresh', 'deny',
                 'demand', 'limits', 'ledgers', 'host', 'passed', 'asked',
                 'explain', 'attempt', '_own')

    def __init__(self, request_note: RequestNote, request: Request):
        self.note = request_note
        self.request = request
        self.instance = request_note.instance
        options = CONF.nfv_sched
        self.snapshot = neutron.SOURCE.get()
        self.fresh = neutron.SOURCE.is_fresh(self.snapshot)
        self.deny = not self.fresh and options.stale_snapshot_policy == 'deny'
        self.limits = network_limits.by_host(
            network_limits.defaults(CONF))
        self.ledgers: ledger_reader.Reading | None = None
        if options.ledger == 'placement':
            self.ledgers = request_note.ledgers
            if self.ledgers is None:
                ledger_reader.tell_missing()
        self.host: str | None = None
        self.passed: set[str] = set()
        self.asked: set[str] = set()
        self.explain: Callable[[], None] | None = None
        self.attempt: tuple[ty.Any, int] | None = None
        interfaces = network_demand.Interfaces(
            request.nics, request.security_groups, request.project,
            self.snapshot,
            request_note.instance if request.is_move else None)
        neutron.SOURCE.look_up(self.snapshot, interfaces)
        self.demand = network_demand.of_request(
            interfaces, _count(request.demands, 'VF'),
            _count(request.demands, 'PF'),
            sum(device.count for device in request.demands
                if device.from_port),
            network_limits.assumed_rules(CONF))
        self._own: dict[str, list[usage.Port]] = {}
        if request.is_move:
            for port in map(interfaces.port, interfaces.nics):
                if port is not None and port.host and (
                        not usage.bypasses_vswitch(port.vnic_type)):
                    self._own.setdefault(port.host, []).append(port)

    def own_on(self, host_state) -> usage.Guest | None:
        """What the server has on a host already; None if it is not there.

        Anybody may say that a port is a server's.  A server's own are those
        of its project, and those that its request names, on the host that
        Nova has it on.

        :param host_state: ``nova.scheduler.host_manager.HostState``
        """
        ports = self._own.get(host_state.host)
        if ports is None:
            return None
        if self.host is None:
            self.host = nova_compat.host_of_server(self.instance)
        if self.host not in (host_state.host, ''):
            return None
        return usage.Guest(
            tuple(port.id for port in ports),
            sum(self.snapshot.rules_of(port.security_groups)
                for port in ports))

    def in_ledger(self, host_state, resource_class: str) -> int | None:
        """How much the ledger of a host had left by Placement's answer.

        :param host_state: ``nova.scheduler.host_manager.HostState``
        :param resource_class: ``ledger.PORTS`` or ``ledger.RULES``
        :returns: None if it has none, or that is not known
        """
        if self.ledgers is None:
            return None
        return self.ledgers.left(host_state.uuid, resource_class)

    def unshown(self, host_state) -> claims.Unshown:
        """What Placement's answer does not have of a host.

        :param host_state: ``nova.scheduler.host_manager.HostState``
        """
        if not claims.CLAIMS.any_on(host_state.host):
            return _ALL_SHOWN
        return claims.CLAIMS.unshown(
            host_state.host, self.ledgers.asked, self.ledgers.answered,
            self.instance)


def watch_placement() -> None:
    """Keep for each request what Placement says of its candidate hosts."""
    nova_compat.when_placement_answers(placement_asked, placement_answered)


def placement_asked(spec_obj) -> None:
    """Nova is about to ask Placement for candidates.

    :param spec_obj: ``nova.objects.RequestSpec``
    """
    note_of(spec_obj).asked = time.monotonic()


def placement_answered(spec_obj, summaries: Mapping | None) -> None:
    """Placement has answered.

    :param spec_obj: ``nova.objects.RequestSpec``
    :param summaries: see ``ledger_reader.Reading``; None if it was not asked
    """
    note = note_of(spec_obj)
    now = time.monotonic()
    note.ledgers = None if summaries is None else ledger_reader.Reading(
        summaries, now if note.asked is None else note.asked, now)
    note.network = None


def _count(devices: tuple[pci.Demand, ...], noun: str) -> int:
    return sum(device.count for device in devices if device.noun == noun)


def of(request_note: RequestNote, request: Request) -> NetworkNote:
    """The note on the network's load; made anew for each server.

    :param request_note: the request's note
    :param request: the request as read now
    """
    note = request_note.network
    if note is None or note.request is not request or (
            note.instance != request_note.instance):
        previous, note = note, NetworkNote(request_note, request)
        if previous is not None and previous.instance == note.instance:
            # Nova decides once more when the last server is placed.
            note.attempt = previous.attempt
        for host, instance in request_note.taken:
            claims.CLAIMS.prolong(host, instance)
        request_note.network = note
    return note


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

    def __init__(self, candidates, host_state, network: NetworkNote):
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
        attempt = network.attempt
        if attempt is not None:
            before, servers = attempt[0](), attempt[1]
            if before is not None and before.num_instances > servers:
                return True  # it is placed, and Nova looks for alternates
            network.attempt = None
            if before is not None:
                claims.CLAIMS.release(before.host, network.instance)
        network.asked.add(host_state.host)
        left = claims.CLAIMS.take(
            network.snapshot if network.fresh else None, host_state.host,
            network.instance, network.demand, self.ports, self.rules,
            self._host_state, answer)
        if left is None:
            network.attempt = (self._host_state, host_state.num_instances)
            network.note.taken.append((host_state.host, network.instance))
            return True
        note = network.note
        ports, rules = left
        if ports < network.demand.vswitch_ports and self.no_ports is not None:
            note.rejected.append((host_state.host, self.no_ports(ports)))
        elif self.no_rules is not None:
            note.rejected.append((host_state.host, self.no_rules(rules)))
        if network.passed <= network.asked:
            give_back(note)
            if note.index == 0 and network.explain is not None:
                network.explain()
        return False

    def _answer(self) -> claims.Answer | None:
        """What Placement said of the ledger of the host."""
        if self.ledger_ports is None and self.ledger_rules is None:
            return None
        ledgers = self.network.ledgers
        return claims.Answer(ledgers.asked, ledgers.answered,
                             self.ledger_ports, self.ledger_rules)


def give_back(request_note: RequestNote) -> None:
    """No host is left for a server: the others of its request go, too.

    :param request_note: the request's note
    """
    taken = request_note.taken
    if request_note.instance in request_note.placed:
        return  # Nova decides once more when the last server is placed
    for host, instance in taken:
        claims.CLAIMS.release(host, instance)
    request_note.taken = []


def contest(host_state, network: NetworkNote) -> Contested:
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


def watch(host_state, network: NetworkNote) -> None:
    """Remember what a server takes as soon as Nova places it on a host.

    :param host_state: ``nova.scheduler.host_manager.HostState`` that passes
    :param network: what is known for the request
    """
    note = network.note
    if host_state.__dict__.get(_WATCHED) is not note:
        host_state.__dict__[_WATCHED] = note
        nova_compat.when_placed(host_state, after=functools.partial(
            _remember, note))


def _remember(note: RequestNote, host_state, instance: str) -> None:
    network = note.network
    claims.CLAIMS.add(host_state.host, instance, network.demand,
                      network.request.project or '', network.request.is_move,
                      network.snapshot)
    note.taken.append((host_state.host, instance))
    note.placed.add(instance)
