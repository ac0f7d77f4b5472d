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

The counterpart of :mod:`nfv_sched.visit` for ports and security-group rules:
the filters of limits are thin, what they share is here.  It is worked out once
per request and kept with it, so that all filters see the same snapshot.
"""

from collections.abc import Callable
from collections.abc import Mapping
import time
import typing as ty

from nfv_sched.ledger import reader
from nfv_sched.network import demand as network_demand
from nfv_sched.network import limits as network_limits
from nfv_sched.network import turn
from nfv_sched.network import usage
from nfv_sched.nova import scheduler
from nfv_sched.numa import pci
from nfv_sched.request import note_of
from nfv_sched.request import Request
from nfv_sched.request import RequestNote

CONF = scheduler.CONF


class NetworkNote:
    """What is known of the network's load for one request.

    :ivar request: the request as read when this was made
    :ivar recent: what was placed lately
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
    :ivar filter: name of that filter
    :ivar standings: resource class -> what tells how much of it is left on a
        host, for a filter that keeps a limit
    :ivar own: host name -> ports that the server has there already, or may
        have; see :meth:`own_on`
    """

    __slots__ = ('note', 'request', 'instance', 'recent', 'snapshot', 'fresh',
                 'deny', 'demand', 'limits', 'ledgers', 'host', 'passed',
                 'asked', 'filter', 'standings', 'own')

    def __init__(self, request_note: RequestNote, request: Request):
        self.note = request_note
        self.request = request
        self.instance = request_note.instance
        options = CONF.nfv_sched
        figures = request_note.sources.figures
        self.recent = request_note.sources.recent
        self.snapshot = figures.get()
        self.fresh = figures.is_fresh(self.snapshot)
        self.deny = not self.fresh and options.stale_snapshot_policy == 'deny'
        self.limits = network_limits.by_host(
            network_limits.defaults(CONF))
        self.ledgers: reader.Reading | None = None
        if options.ledger == 'placement':
            self.ledgers = request_note.ledgers
            if self.ledgers is None:
                reader.tell_missing()
        self.host: str | None = None
        self.passed: set[str] = set()
        self.asked: set[str] = set()
        self.filter = ''
        interfaces = network_demand.Interfaces(
            request.nics, request.security_groups, request.project,
            self.snapshot,
            request_note.instance if request.is_move else None)
        figures.look_up(self.snapshot, interfaces)
        self.demand = network_demand.of_request(
            interfaces, _count(request.demands, 'VF'),
            _count(request.demands, 'PF'),
            sum(device.count for device in request.demands
                if device.from_port),
            network_limits.assumed_rules(CONF))
        self.standings: dict[str, Callable[[ty.Any], turn.Standing]] = {}
        self.own: dict[str, list[usage.Port]] = {}
        if request.is_move:
            for port in map(interfaces.port, interfaces.nics):
                if port is not None and port.host and (
                        not usage.bypasses_vswitch(port.vnic_type)):
                    self.own.setdefault(port.host, []).append(port)

    def own_on(self, host_state) -> usage.Guest | None:
        """What the server has on a host already; None if it is not there.

        Anybody may say that a port is a server's.  A server's own are those
        of its project, and those that its request names, on the host that
        Nova has it on.

        :param host_state: ``nova.scheduler.host_manager.HostState``
        """
        ports = self.own.get(host_state.host)
        if ports is None:
            return None
        if self.host is None:
            self.host = scheduler.host_of_server(self.instance)
        if self.host not in (host_state.host, ''):
            return None
        return usage.Guest(
            tuple(port.id for port in ports),
            sum(self.snapshot.rules_of(port.security_groups)
                for port in ports))


def watch_placement() -> None:
    """Keep for each request what Placement says of its candidate hosts."""
    scheduler.when_placement_answers(placement_asked, placement_answered)


def placement_asked(spec_obj) -> None:
    """Nova is about to ask Placement for candidates.

    :param spec_obj: ``nova.objects.RequestSpec``
    """
    note_of(spec_obj).asked = time.monotonic()


def placement_answered(spec_obj, summaries: Mapping | None) -> None:
    """Placement has answered.

    :param spec_obj: ``nova.objects.RequestSpec``
    :param summaries: see ``reader.Reading``; None if it was not asked
    """
    note = note_of(spec_obj)
    now = time.monotonic()
    note.ledgers = None if summaries is None else reader.Reading(
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
        note = NetworkNote(request_note, request)
        for host, instance in request_note.taken:
            note.recent.prolong(host, instance)
        request_note.network = note
    return note
