# SPDX-License-Identifier: Apache-2.0
"""Remember servers placed by this process that Neutron does not show yet.

Between two readings of Neutron the scheduler places servers.  It remembers
them here until Neutron shows their ports, so that the next request does not
count the same capacity as free.  Servers that other processes place are not
known here; the ledger in Placement covers those.

Concurrent requests reserve ports and rules here right before Nova claims a
host, so that they do not all count on the same capacity.  Reservations also
show what Placement's answer to another request cannot include yet.

An entry ends when Neutron shows the server's ports on the host; when its ports
are gone, or bound to a host that is neither source nor destination of the
server; and after an hour in any case.  The hour is for moves, which may take
long and bind ports at their end.

If no reading has ever shown a port of the server, it may have been deleted at
once, or its build may have failed: Nova is queried, in the background
(:meth:`Memory.review`).  If fewer ports are shown than were counted, the
difference counts for ten minutes; a server whose move failed counts for an
hour.
"""

from collections.abc import Callable
from collections.abc import Set
import itertools
import math
import threading
import time
import typing as ty

from nfv_sched.limits import demand as network_demand
from nfv_sched.limits import usage

#: Seconds after which a server is assumed to be built with all its ports
#: bound, unless its ports are still on the source of a move.
BUILD_SECONDS = 600.0

#: Seconds that Nova has for the claim in Placement, and for the other servers
#: of the request. A reservation without a claim ends after that, or with the
#: request.
TAKE_SECONDS = 60.0

# Entries older than this are dropped in any case.
_LOST_SECONDS = 3600.0

# Limits of one review: servers to query Nova about, and seconds for
# queries of single ones, as the database of a cell may not answer.
_REVIEWED = 500
_REVIEW_SECONDS = 5.0


class Entry(ty.NamedTuple):
    """A server on a host: placed there, or about to be.

    Times are seconds of ``time.monotonic()``.

    :ivar ports: number of its ports on the virtual switch
    :ivar rules: number of security group rules on these ports
    :ivar when: when the entry was made
    :ivar until: when a reservation ends if Nova does not place the server
    :ivar holder: weak reference to an object that lives as long as the
        request; None once Nova has placed the server
    :ivar sources: hosts to which its ports are bound until it has moved
    :ivar settled: whether ``sources`` is complete.  The last reading before
        the server was placed may be older than its last move, so the first one
        after that may add a host.
    :ivar shown: whether a reading has shown ports of the server
    :ivar project: UUID of its project; empty if unknown
    :ivar taken: when ports and rules were reserved, before Nova's claim
    :ivar before: for a reservation, the entry that the server already had on
        this host, as when it is resized there; None if it had none
    """

    ports: int
    rules: int
    when: float
    until: float = math.inf
    holder: Callable[[], ty.Any] | None = None
    sources: frozenset[str] = frozenset()
    settled: bool = True
    shown: bool = False
    project: str = ''
    taken: float = 0.0
    before: 'Entry | None' = None

    def in_flight(self, now: float) -> bool:
        """Return whether Nova has not placed the server yet, but still may."""
        return (self.holder is not None and now <= self.until and
                self.holder() is not None)

    def lost(self, now: float) -> bool:
        """Return whether Nova did not place the server, and no longer will."""
        return self.holder is not None and not self.in_flight(now)

    def after(self, snapshot: usage.Snapshot, host: str, instance: str,
              now: float) -> 'Entry | None':
        """Return the entry updated by a snapshot; None if it has ended.

        :param now: seconds of ``time.monotonic()``
        :returns: this very entry if nothing has changed
        """
        # A resize that was refused leaves the server where it was.
        if self.lost(now):
            return self.before and self.before.after(
                snapshot, host, instance, now)
        if self.when + _LOST_SECONDS < now:
            return None
        # A reading that began before Nova placed the server proves nothing
        # about it.
        if self.holder is not None or snapshot.taken <= self.when:
            return self
        guest = snapshot.host(host).guests.get(instance)
        if guest is not None and len(guest.ports) >= self.ports:
            return None
        ports = snapshot.ports_of(instance, self.project)
        if self.shown and not ports:
            return None  # deleted
        bound = frozenset(port.host for port in ports)
        sources = self.sources
        # The first reading since: ports elsewhere are those of the source.
        if not self.settled:
            sources |= bound - {host}
        waits = not bound.isdisjoint(sources)
        if bound and not waits and host not in bound:
            return None  # placed elsewhere, after this host could not build it
        shown = self.shown or bool(ports)
        if shown and not waits and self.when + BUILD_SECONDS < snapshot.taken:
            return None
        if self.settled and shown == self.shown:
            return self
        return self._replace(sources=sources, settled=True, shown=shown)


class LedgerBalance(ty.NamedTuple):
    """Free amounts in the ledger of a host by Placement's answer.

    :ivar queried_at: when Placement was about to be queried, seconds of
        ``time.monotonic()``
    :ivar answered_at: when its answer had arrived, seconds of
        ``time.monotonic()``
    :ivar ports: free ports of the virtual switch; None if they do not limit
        the server
    :ivar rules: free security group rules; None as for ports
    """

    queried_at: float
    answered_at: float
    ports: int | None = None
    rules: int | None = None


class Unshown(ty.NamedTuple):
    """Amounts on a host that Placement's answer does not include.

    :ivar ports: ports of servers that the answer cannot include
    :ivar rules: security group rules on these ports
    :ivar more_ports: ports of these servers and of those that were being
        placed while Placement was queried, which the answer may or may not
        include
    :ivar more_rules: security group rules on these ports
    """

    ports: int = 0
    rules: int = 0
    more_ports: int = 0
    more_rules: int = 0


def left(free_by_ledger: int | None, surely_missing: int, maybe_missing: int,
         free_by_neutron: float, need: int) -> float:
    """Return how much of one resource class is free on a host.

    :param free_by_ledger: by Placement; None if that does not limit the server
    :param surely_missing: used by servers that Placement cannot have counted
    :param maybe_missing: that, and used by servers that it may have counted
    :param free_by_neutron: infinity if there are no figures
    """
    if free_by_ledger is None:
        return free_by_neutron
    if free_by_ledger - maybe_missing >= need:
        return free_by_ledger - maybe_missing
    if free_by_ledger - surely_missing < need:
        return free_by_ledger - surely_missing
    # It fits only if Placement has counted the servers that it may not have.
    return min(free_by_ledger - surely_missing, free_by_neutron)


class Memory:
    """The entries of this process, by host and server; thread-safe."""

    def __init__(self):
        self._lock = threading.Lock()
        self._hosts: dict[str, dict[str, Entry]] = {}
        self._swept = time.monotonic()

    def add(self, host: str, instance: str,
            demand: network_demand.NetworkDemand, project: str = '',
            is_move: bool = False,
            snapshot: usage.Snapshot | None = None) -> None:
        """Record that Nova has placed a server.

        :param project: UUID of its project; empty if unknown
        :param is_move: whether the server existed before
        :param snapshot: the usage snapshot, if any: it shows the source of a
            move
        """
        now = time.monotonic()
        ports = (snapshot.ports_of(instance, project)
                 if is_move and snapshot else ())
        with self._lock:
            self._add(host, instance, Entry(
                demand.vswitch_ports, demand.rules, now,
                sources=frozenset(port.host for port in ports) - {host},
                settled=not is_move, shown=bool(ports), project=project))

    def _add(self, host: str, instance: str, entry: Entry) -> None:
        now = entry.when
        entries = self._hosts.get(host, {})
        before = entries.get(instance)
        # Replaced, not changed: others may be reading it.
        reserved_at = now
        if before is not None and before.in_flight(now):
            reserved_at = before.taken
        self._hosts[host] = {
            **entries, instance: entry._replace(taken=reserved_at)}
        if now - self._swept > _LOST_SECONDS:
            self._swept = now
            self._sweep(now - _LOST_SECONDS)

    def take(
        self, snapshot: usage.Snapshot | None, host: str, instance: str,
        demand: network_demand.NetworkDemand, ports: float, rules: float,
        holder: Callable[[], ty.Any], answer: LedgerBalance | None = None,
    ) -> tuple[float, float] | None:
        """Reserve ports and rules for a server, if there are enough.

        It lasts until Nova has placed the server, and ``TAKE_SECONDS`` at most
        unless :meth:`prolong` is called.

        :param snapshot: the usage snapshot; None if it is too old
        :param ports: ports that are free by the snapshot alone
        :param rules: security group rules that are free by the snapshot alone
        :param holder: weak reference to an object that lives as long as the
            request
        :param answer: Placement's answer about the host's ledger; None if the
            host has none
        :returns: None if the reservation was made; else the numbers of ports
            and of security group rules that are free
        """
        # From the check to the entry no other request may take the same.
        with self._lock:
            if snapshot is not None:
                more_ports, more_rules, _changed = self._unread_entries(
                    snapshot, host, instance)
                ports -= more_ports
                rules -= more_rules
            if answer is not None:
                unshown = self.unshown(
                    host, answer.queried_at, answer.answered_at, instance)
                ports = left(answer.ports, unshown.ports, unshown.more_ports,
                             ports, demand.vswitch_ports)
                rules = left(answer.rules, unshown.rules, unshown.more_rules,
                             rules, demand.rules)
            if ports < demand.vswitch_ports or rules < demand.rules:
                return ports, rules
            now = time.monotonic()
            before = self._hosts.get(host, {}).get(instance)
            # Of a request that is gone: what it replaced is what the server
            # has.
            if before is not None and before.holder is not None:
                before = before.before
            self._add(host, instance, Entry(
                demand.vswitch_ports, demand.rules, now, now + TAKE_SECONDS,
                holder, before=before))
            return None

    def release(self, host: str, instance: str) -> None:
        """Remove a server's entry; the one it replaced counts again."""
        entry = self._hosts.get(host, {}).get(instance)
        if entry is not None:
            self._change(host, {instance: (entry, entry.before)})

    def unshown(self, host: str, queried_at: float, answered_at: float,
                without: str | None = None) -> Unshown:
        """Return the amounts on a host that are not in Placement's answer.

        :param queried_at: ``queried_at`` of the :class:`LedgerBalance`
        :param answered_at: ``answered_at`` of the :class:`LedgerBalance`
        :param without: UUID of a server to ignore
        """
        ports = rules = more_ports = more_rules = 0
        now = time.monotonic()
        for instance, entry in self._hosts.get(host, {}).items():
            if entry.lost(now):
                entry = entry.before
            # Nova placed it before Placement was queried, so that the answer
            # has it.
            if entry is None or instance == without or (
                    entry.holder is None and entry.when < queried_at):
                continue
            more_ports += entry.ports
            more_rules += entry.rules
            # It cannot have claimed anything before it reserved.
            if entry.taken > answered_at:
                ports += entry.ports
                rules += entry.rules
        return Unshown(ports, rules, more_ports, more_rules)

    def prolong(self, host: str, instance: str) -> None:
        """Extend a reservation: the request is still being scheduled."""
        with self._lock:
            entries = self._hosts.get(host, {})
            entry = entries.get(instance)
            if entry is not None and entry.holder is not None:
                self._hosts[host] = {**entries, instance: entry._replace(
                    until=time.monotonic() + TAKE_SECONDS)}

    def _sweep(self, oldest: float) -> None:
        for host, entries in list(self._hosts.items()):
            recent = {instance: entry for instance, entry in entries.items()
                      if entry.when > oldest}
            if recent:
                self._hosts[host] = recent
            else:
                del self._hosts[host]

    def hosts(self) -> Set[str]:
        """Return a live view of the names of the hosts with entries."""
        return self._hosts.keys()

    def servers_on(self, host: str) -> Set[str]:
        """Return the UUIDs of the servers with an entry on a host."""
        return self._hosts.get(host, {}).keys()

    def unseen(self, snapshot: usage.Snapshot, host: str,
               without: str | None = None) -> tuple[int, int]:
        """Return the ports and rules on a host that are not in a snapshot.

        :param without: UUID of a server to ignore
        """
        ports, rules, changed = self._unread_entries(snapshot, host, without)
        if changed:
            self._change(host, changed)
        return ports, rules

    def _unread_entries(
        self, snapshot: usage.Snapshot, host: str, without: str | None,
    ) -> tuple[int, int, dict[str, tuple[Entry, Entry | None]]]:
        """Return ports, rules, and server UUID -> (entry, changed entry)."""
        guests = snapshot.host(host).guests
        ports = rules = 0
        changed: dict[str, tuple[Entry, Entry | None]] = {}
        now = time.monotonic()
        for instance, entry in self._hosts.get(host, {}).items():
            after = entry.after(snapshot, host, instance, now)
            if after is not entry:
                changed[instance] = entry, after
            if after is None or instance == without:
                continue
            seen = guests.get(instance)
            if seen is None:
                ports += after.ports
                rules += after.rules
            else:
                # Its ports are bound one after the other.
                ports += max(after.ports - len(seen.ports), 0)
                rules += max(after.rules - seen.rules, 0)
        return ports, rules, changed

    def review(
        self, snapshot: usage.Snapshot,
        deleted: Callable[[list[str]], set[str]],
        host_of: Callable[[str], str],
    ) -> None:
        """Drop entries that have ended.

        Queries Nova about servers that no snapshot has shown, so filters must
        not call it.

        :param snapshot: the latest usage snapshot
        :param deleted: returns the UUIDs of those servers that Nova has
            deleted
        :param host_of: returns the name of a server's host in Nova's database
        :raises Exception: any error of these functions
        """
        for host in list(self._hosts):
            self.unseen(snapshot, host)
        unshown = list(itertools.islice((
            (host, instance, entry)
            for host, entries in list(self._hosts.items())
            for instance, entry in entries.items()
            if entry.holder is None and not entry.shown), _REVIEWED))
        if not unshown:
            return
        # One query of the API database for all of them. Their hosts have to be
        # read one by one, from the database of a cell.
        gone = deleted([instance for _host, instance, _entry in unshown])
        began = time.monotonic()
        for host, instance, entry in unshown:
            if instance in gone or (
                    entry.when + BUILD_SECONDS < began
                    and time.monotonic() < began + _REVIEW_SECONDS
                    and host_of(instance) != host):
                self._change(host, {instance: (entry, None)})

    def _change(self, host: str,
                changed: dict[str, tuple[Entry, Entry | None]]) -> None:
        with self._lock:
            entries = dict(self._hosts.get(host, {}))
            for instance, (before, after) in changed.items():
                if entries.get(instance) is not before:
                    continue  # placed again meanwhile
                if after is None:
                    del entries[instance]
                else:
                    entries[instance] = after
            if entries:
                self._hosts[host] = entries
            else:
                self._hosts.pop(host, None)

    def clear(self) -> None:
        """Drop all entries."""
        with self._lock:
            self._hosts.clear()
