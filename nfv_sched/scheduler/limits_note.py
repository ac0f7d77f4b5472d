# SPDX-License-Identifier: Apache-2.0
"""Keep the network usage data of one request, for all hosts.

There is one object for each server of a request, kept on the request note, so
that all filters of limits see the same data.  Facts about NUMA nodes are
kept for each host; see :mod:`nfv_sched.scheduler.visit`.
"""

import math

from nfv_sched.fit.numa import pci
from nfv_sched.fit.request import Request
from nfv_sched.ledger import reader
from nfv_sched.limits import decide
from nfv_sched.limits import demand as network_demand
from nfv_sched.limits import names
from nfv_sched.limits import options as network_limits
from nfv_sched.limits import reservations
from nfv_sched.limits import sources
from nfv_sched.limits import usage
from nfv_sched.nova import scheduler
from nfv_sched.scheduler.notes import RequestNote

CONF = scheduler.CONF


class NetworkNote:
    """The network load and the demand of one server of a request.

    :param request_note: note of the whole request
    :param load: the sources of the network load

    :ivar note: note of the whole request
    :ivar instance: UUID of the server
    :ivar recent: servers that this process has placed lately
    :ivar snapshot: the latest usage snapshot, however old; None if there is
        none
    :ivar fresh: whether the snapshot is within ``max_snapshot_age``
    :ivar deny: whether to refuse hosts because the snapshot is not fresh
    :ivar demand: the network demand of the server
    :ivar limits: limits of the hosts
    :ivar ledgers: the ledgers in Placement's answer; None if they are not used
        or not known
    :ivar host: name of the server's host in Nova's database; empty if unknown,
        None before Nova is queried
    :ivar filter: class name of the filter of limits that has run last
    :ivar passed: names of the hosts that it has passed
    :ivar tried_hosts: names of the hosts that Nova has tried to claim
    :ivar lost_last_host: whether other requests have filled the last of these
    :ivar shown: host name -> ``usage.HostUsage``; empty if the snapshot is not
        fresh
    :ivar counted: what the filters of limits that have run count
    :ivar own: host name -> ports that a moved server has, or may have, there;
        see :meth:`own_on`
    """

    __slots__ = ('note', 'request', 'instance', 'recent', 'snapshot', 'fresh',
                 'deny', 'demand', 'limits', 'ledgers', 'host', 'passed',
                 'tried_hosts', 'lost_last_host', 'filter', 'shown', 'counted',
                 'own')

    def __init__(self, request_note: RequestNote, request: Request,
                 load: sources.Sources):
        self.note = request_note
        self.request = request
        self.instance = request_note.instance
        options = CONF.nfv_sched
        figures = load.figures
        self.recent = load.recent
        self.snapshot = figures.get()
        self.fresh = figures.is_fresh(self.snapshot)
        self.deny = not self.fresh and options.stale_snapshot_policy == 'deny'
        self.limits = network_limits.by_host(
            network_limits.defaults(CONF))
        self.ledgers: reader.Reading | None = None
        if options.ledger == 'placement':
            self.ledgers = request_note.ledgers
            if self.ledgers is None:
                reader.log_missing()
        self.host: str | None = None
        self.passed: set[str] = set()
        self.tried_hosts: set[str] = set()
        self.lost_last_host = False
        self.filter = ''
        interfaces = network_demand.Interfaces(
            request.nics, request.security_groups, request.project,
            self.snapshot,
            # Only a server that exists has ports of its own in the snapshot.
            request_note.instance if request.is_move else None)
        figures.look_up(self.snapshot, interfaces)
        self.demand = network_demand.of_request(
            interfaces, _count(request.demands, 'VF'),
            _count(request.demands, 'PF'),
            sum(device.count for device in request.demands
                if device.from_port),
            network_limits.assumed_rules(CONF))
        self.shown = (
            self.snapshot.hosts if self.snapshot and self.fresh else {})
        self.counted: set[decide.Quantity] = set()
        self.own: dict[str, list[usage.NeutronPort]] = {}
        if request.is_move and self.fresh:
            for port in map(interfaces.port, interfaces.nics):
                # By the host that they are bound to: the source of the move,
                # or the same host if it is resized there.
                if port is not None and port.host and (
                        not usage.bypasses_vswitch(port.vnic_type)):
                    self.own.setdefault(port.host, []).append(port)

    def own_on(self, host_state) -> usage.GuestUsage | None:
        """Return a moved server's ports and rules on a host; None if none.

        A tenant can set the ``device_id`` of a port to any server.  Only ports
        of the server's project, and those that its request names, count, and
        only on the host on which Nova has the server.
        """
        ports = self.own.get(host_state.host)
        if ports is None:
            return None
        if self.host is None:
            self.host = scheduler.host_of_server(self.instance)
        # Empty if Nova's database does not answer in time. Neutron's binding
        # has to do then; the ports are of the server's project.
        if self.host not in (host_state.host, ''):
            return None
        return usage.GuestUsage(
            tuple(port.id for port in ports),
            sum(self.snapshot.rules_of(port.security_groups)
                for port in ports))

    def by_neutron(self, quantity: decide.Quantity, host_state) -> float:
        """Return how much is free on a host by the data from Neutron alone.

        :returns: infinity if these are too old
        """
        if not self.fresh:
            return math.inf
        free = quantity.free(
            self.limits.for_host(host_state), quantity.carried(
                self.shown.get(host_state.host, usage.NO_USAGE)))
        own = self.own_on(host_state)
        # Its own ports are in Neutron's usage of this host already.
        return free if own is None else free + quantity.own(own)

    def left(self, quantity: decide.Quantity, host_state) -> float:
        """Return how much is free on a host, now.

        If that is enough, and the host has a ledger, the server's need is
        added to the host's allocation candidates.
        """
        free = self.by_neutron(quantity, host_state)
        is_recent = host_state.host in self.recent.hosts()
        if is_recent and self.fresh:
            free -= quantity.pick(*self.recent.unseen(
                self.snapshot, host_state.host, self.instance))
        need = quantity.need(self.demand)
        # Even an empty host may be too small; then the ledger is not needed.
        if self.ledgers is None or free < need and (
                need > quantity.free(self.limits.for_host(host_state))):
            return free
        resource_class = quantity.resource_class
        free_by_ledger = in_ledger = self.ledgers.left(
            host_state.uuid, resource_class)
        if in_ledger is None:
            return free
        surely = perhaps = 0
        if is_recent:
            unshown = self.recent.unshown(
                host_state.host, self.ledgers.queried_at,
                self.ledgers.answered_at, self.instance)
            surely = quantity.pick(unshown.ports, unshown.rules)
            perhaps = quantity.pick(unshown.more_ports, unshown.more_rules)
            free_by_ledger = reservations.left(
                in_ledger, surely, perhaps, free, need)
        own = self.own_on(host_state)
        if own is not None and quantity.own(own):
            # Until a resize on the same host is confirmed, Placement counts
            # the server twice, as it does with CPUs. It takes no more than
            # before, so it is not refused if the ledger lacks that much.
            if min(free - quantity.own(own), in_ledger - perhaps) >= need:
                names.ask(host_state, resource_class, need)
            return free
        if free_by_ledger >= need:
            names.ask(host_state, resource_class, need)
        return free_by_ledger

    def in_ledger(self, quantity: decide.Quantity, host_state) -> int | None:
        """Return how much was free in the ledger of a host.

        :returns: None if that does not limit the server, as one that resizes
            on its host
        """
        own = self.own_on(host_state)
        if self.ledgers is None or own is not None and quantity.own(own):
            return None
        return self.ledgers.left(host_state.uuid, quantity.resource_class)


def _count(devices: tuple[pci.Demand, ...], noun: str) -> int:
    return sum(device.count for device in devices if device.noun == noun)
