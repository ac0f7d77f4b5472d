# SPDX-License-Identifier: Apache-2.0
"""Keep the network demand of one request, and what hosts have left for it.

All filters of limits and weighers see the same object.  Facts about NUMA nodes
are kept for each host; see :mod:`nfv_sched.scheduler.visit`.
"""

import collections
import math

from nfv_sched.fit.numa import pci
from nfv_sched.fit.request import Request
from nfv_sched.ledger import neutron
from nfv_sched.ledger import reader
from nfv_sched.limits import decide
from nfv_sched.limits import demand as network_demand
from nfv_sched.limits import names
from nfv_sched.limits import options as network_limits
from nfv_sched.limits import usage
from nfv_sched.nova import scheduler
from nfv_sched.scheduler.notes import note_of
from nfv_sched.scheduler.notes import RequestNote
from nfv_sched.scheduler import process

CONF = scheduler.CONF


class NetworkNote:
    """The network demand of each server of a request.

    Neutron is asked for what it takes when that is needed first.

    :ivar ledgers: the ledgers in Placement's answer; None if not known
    :ivar placed: host name -> UUIDs of the servers of the request that Nova
        has placed there since Placement answered
    """

    def __init__(self, request_note: RequestNote, request: Request,
                 lookups: network_demand.LookupSource):
        self.request = request
        self.limits = network_limits.by_host(network_limits.defaults(CONF))
        self.ledgers: reader.Reading | None = request_note.ledgers
        if self.ledgers is None:
            reader.log_missing()
        self._reading = self.ledgers or reader.Reading({})
        self.placed: dict[str, set[str]] = collections.defaultdict(set)
        self._note = request_note
        self._lookups = lookups
        self._demand: network_demand.NetworkDemand | None = None
        # Name of the server's host in Nova's database; empty if unknown, None
        # before Nova is queried.
        self._host: str | None = None
        # Hosts that the ports of a moved server are bound to.
        self._bound: set[str] = set()

    @property
    def demand(self) -> network_demand.NetworkDemand:
        if self._demand is not None:
            return self._demand
        request = self.request
        interfaces = network_demand.Interfaces(
            request.nics, request.security_groups, request.project,
            self._note.instance if request.is_move else None)
        interfaces.use(self._lookups.look_up(interfaces.lacking()))
        if request.is_move:
            self._bound = {
                port.host for port in map(interfaces.port, interfaces.nics)
                if port is not None and not usage.bypasses_vswitch(
                    port.vnic_type)}
        self._demand = network_demand.of_request(
            interfaces, _count(request.demands, 'VF'),
            _count(request.demands, 'PF'),
            sum(device.count for device in request.demands
                if device.from_port), network_limits.assumed_rules(CONF))
        return self._demand

    def is_for(self, request: Request) -> bool:
        """Return whether a request takes the same as the one of this note."""
        return request is self.request or all(
            getattr(request, name) == getattr(self.request, name)
            for name in ('nics', 'security_groups', 'project', 'is_move',
                         'demands'))

    def is_on(self, host_state) -> bool:
        """Return whether a server that is moved is on a host already.

        It may stay there, as with a resize.  A tenant can set the
        ``device_id`` of a port to any server.  Only ports of the server's
        project, and those that its request names, count, and only on the host
        on which Nova has the server.
        """
        if host_state.host not in self._bound:
            return False
        if self._host is None:
            self._host = scheduler.host_of_server(self._note.instance)
        # Empty if Nova's database does not answer in time. Neutron's binding
        # has to do then; the ports are of the server's project.
        return self._host in (host_state.host, '')

    def left(self, quantity: decide.Quantity, host_state) -> float:
        """Return how much the ledger of a host has left for the server.

        :returns: infinity if the host has no ledger, or the server is there
            already: until a resize on the same host is confirmed, Placement
            counts it twice, as it does with CPUs
        """
        remaining = self._reading.left(
            host_state.uuid, quantity.resource_class)
        if remaining is None:
            return math.inf
        need = quantity.need(self.demand)
        # Nova filters once more for a server that it has placed, to find
        # alternates. A limit that was lowered holds before the ledger has it.
        remaining = min(
            remaining - need * len(
                self.placed[host_state.host] - {self._note.instance}),
            quantity.free(self.limits.for_host(host_state)))
        if remaining >= need:
            names.ask(host_state, quantity.resource_class, need)
        return math.inf if self.is_on(host_state) else remaining

    def figure(self, name: str, host_state) -> int | None:
        """Return a number that the ledger's service has published of a host.

        :param name: ``names.DHCP_SERVERS`` or ``names.ROUTERS``
        :returns: None if it is not known
        """
        return self._reading.figure(host_state.uuid, name)

    def services(self, host_state) -> int:
        return sum(self.figure(name, host_state) or 0
                   for name in (names.DHCP_SERVERS, names.ROUTERS))

    def ports(self, host_state) -> int | None:
        """Return the ports of a host's virtual switch, with physical ones."""
        remaining = self._reading.left(host_state.uuid, names.PORTS)
        if remaining is None:
            return None
        limit = decide.PORTS.limit(self.limits.for_host(host_state))
        used = int(decide.free(min(limit, names.UNLIMITED), remaining))
        placed = len(self.placed[host_state.host])
        return used + placed * self.demand.vswitch_ports if placed else used


def _count(devices: tuple[pci.Demand, ...], noun: str) -> int:
    return sum(device.count for device in devices if device.noun == noun)


class _Rememberer(scheduler.ConsumeListener):
    """A listener that counts what servers of a request take on hosts.

    Nova queries Placement once for all servers of a request.
    """

    def after_placed(self, host_state, spec_obj):
        if (network := note_of(spec_obj).network) is not None:
            network.placed[host_state.host].add(spec_obj.instance_uuid)


#: To be registered for each host that passes.
REMEMBERER = _Rememberer()


def for_request(request_note: RequestNote, request: Request) -> NetworkNote:
    """Return the network note of a request, for all of its servers."""
    note = request_note.network
    # Nova changes the request between the servers of a multi-create, but not
    # what they take.
    if note is None or note.ledgers is not request_note.ledgers or (
            not note.is_for(request)):
        note = request_note.network = NetworkNote(
            request_note, request, request_note.lookups or (
                process.STATE.lookups_in_neutron(neutron.Lookups)))
    return note
